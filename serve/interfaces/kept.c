/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/kept.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/read.h"

typedef struct conversation {
    char id[48];
    uint8_t owner[KEY_DIGEST_BYTES]; /* zeros: no key */
    char *items;                     /* [size]; NULL: this place is free */
    size_t size;
} conversation;

struct kept {
    pthread_mutex_t lock; /* protects the members below */
    conversation *list;   /* [most], a ring */
    size_t most, next;
};

kept *kept_new(size_t most) {
    kept *k = calloc(1, sizeof *k);
    conversation *list = calloc(most, sizeof *list);
    if (k == NULL || list == NULL) {
        free(k);
        free(list);
        return NULL;
    }
    k->list = list;
    k->most = most;
    (void)pthread_mutex_init(&k->lock, NULL);
    return k;
}

void kept_free(kept *k) {
    if (k == NULL)
        return;
    for (size_t i = 0; i < k->most; i++)
        free(k->list[i].items);
    free(k->list);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}

void kept_add(kept *k, const char *id, const uint8_t *owner, const char *items, size_t size) {
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return;
    memcpy(copy, items, size);
    (void)pthread_mutex_lock(&k->lock);
    conversation *c = &k->list[k->next++ % k->most];
    free(c->items);
    *c = (conversation){.items = copy, .size = size};
    (void)snprintf(c->id, sizeof c->id, "%s", id);
    if (owner != NULL)
        memcpy(c->owner, owner, sizeof c->owner);
    (void)pthread_mutex_unlock(&k->lock);
}

json_t *kept_find(kept *k, const char *id, const uint8_t *owner) {
    static const uint8_t nobody[KEY_DIGEST_BYTES];
    json_t *items = NULL;
    owner = owner != NULL ? owner : nobody;
    (void)pthread_mutex_lock(&k->lock);
    for (size_t i = 0; i < k->most && items == NULL; i++) {
        const conversation *c = &k->list[i];
        if (c->items != NULL && strcmp(c->id, id) == 0 &&
            memcmp(c->owner, owner, sizeof c->owner) == 0)
            items = json_read_any(c->items, c->size, id, NULL);
    }
    (void)pthread_mutex_unlock(&k->lock);
    return items;
}
