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
    char *document; /* [document_size] */
    size_t document_size;
} conversation;

struct kept {
    pthread_mutex_t lock; /* protects the members below */
    conversation *list;   /* [most], a ring */
    size_t most, next;
};

static void forget(conversation *c) {
    free(c->items);
    free(c->document);
    *c = (conversation){.items = NULL};
}

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
        forget(&k->list[i]);
    free(k->list);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}

static char *copy_of(tern_span bytes) {
    char *copy = malloc(bytes.size + 1);
    if (copy != NULL)
        memcpy(copy, bytes.data, bytes.size);
    return copy;
}

void kept_add(kept *k, const char *id, const uint8_t *owner, tern_span items, tern_span document) {
    conversation made = {.items = copy_of(items),
                         .size = items.size,
                         .document = copy_of(document),
                         .document_size = document.size};
    if (made.items == NULL || made.document == NULL) {
        forget(&made);
        return;
    }
    (void)snprintf(made.id, sizeof made.id, "%s", id);
    if (owner != NULL)
        memcpy(made.owner, owner, sizeof made.owner);
    (void)pthread_mutex_lock(&k->lock);
    conversation *c = &k->list[k->next++ % k->most];
    forget(c);
    *c = made;
    (void)pthread_mutex_unlock(&k->lock);
}

/* Finds a response; NULL: it is not kept for this owner. With the lock. */
static conversation *find(kept *k, const char *id, const uint8_t *owner) {
    static const uint8_t nobody[KEY_DIGEST_BYTES];
    owner = owner != NULL ? owner : nobody;
    for (size_t i = 0; i < k->most; i++) {
        conversation *c = &k->list[i];
        if (c->items != NULL && strcmp(c->id, id) == 0 &&
            memcmp(c->owner, owner, sizeof c->owner) == 0)
            return c;
    }
    return NULL;
}

json_t *kept_find(kept *k, const char *id, const uint8_t *owner) {
    (void)pthread_mutex_lock(&k->lock);
    const conversation *c = find(k, id, owner);
    json_t *items = c != NULL ? json_read_any(c->items, c->size, id, NULL) : NULL;
    (void)pthread_mutex_unlock(&k->lock);
    return items;
}

bool kept_write(kept *k, const char *id, const uint8_t *owner, text *out) {
    (void)pthread_mutex_lock(&k->lock);
    const conversation *c = find(k, id, owner);
    if (c != NULL)
        text_add(out, c->document, c->document_size);
    (void)pthread_mutex_unlock(&k->lock);
    return c != NULL;
}

bool kept_remove(kept *k, const char *id, const uint8_t *owner) {
    (void)pthread_mutex_lock(&k->lock);
    conversation *c = find(k, id, owner);
    if (c != NULL)
        forget(c);
    (void)pthread_mutex_unlock(&k->lock);
    return c != NULL;
}
