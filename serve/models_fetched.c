/* SPDX-License-Identifier: Apache-2.0 */
/* Models that clients have fetched: they come while the server runs, and may go. */

#include <stdlib.h>
#include <string.h>

#include "serve/models_internal.h"

void models_set(models *all, size_t i, const char *name, const char *path, bool fetched) {
    model_entry *e = &all->entries[i];
    e->all = all;
    e->index = i;
    e->name = name;
    e->path = path;
    e->fetched = fetched;
    e->last = &e->first;
}

bool model_is_fetched(const model_entry *e) {
    return e->fetched;
}

/* Takes a model out: it is closed when its answers have ended. With the lock. */
static void take_out(models *all, model_entry *e) {
    atomic_store(&e->removed, true);
    e->stale = e->state == MODEL_LOADED;
    (void)pthread_cond_broadcast(&all->changed);
}

bool models_remove(models *all, model_entry *e) {
    if (!e->fetched)
        return false;
    (void)pthread_mutex_lock(&all->lock);
    take_out(all, e);
    (void)pthread_mutex_unlock(&all->lock);
    return true;
}

/* Adds a model behind the others. With the lock. */
static tern_status append(models *all, const char *name, const char *path, tern_error *err) {
    const model_source *source = &all->config.server->source;
    const size_t i = all->n, n = strlen(name) + 1;
    if (i == all->most)
        return tern_fail(err, TERN_ERR_NOMEM,
                         "%s: %d models were fetched since the server began; start it again", name,
                         MODELS_FETCHED);
    char *owned = malloc(n + strlen(path) + 1);
    if (owned == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the model %s", name);
    memcpy(owned, name, n);
    memcpy(owned + n, path, strlen(path) + 1);
    const tern_status status = source->add(source->user, i, owned, owned + n, err);
    if (status != TERN_OK) {
        free(owned);
        return status;
    }
    models_set(all, i, owned, owned + n, true);
    all->entries[i].owned = owned;
    atomic_store(&all->n, i + 1);
    return TERN_OK;
}

tern_status models_add(models *all, const char *name, const char *path, tern_error *err) {
    tern_status status = TERN_OK;
    (void)pthread_mutex_lock(&all->lock);
    model_entry *e = models_find(all, name);
    const bool same = e != NULL && strcmp(e->path, path) == 0;
    if (e != NULL && !e->fetched)
        status = tern_fail(err, TERN_ERR_NAME, "%s: another model has this name", name);
    else if (!same)
        status = append(all, name, path, err);
    if (status == TERN_OK && e != NULL && !same)
        take_out(all, e);
    (void)pthread_mutex_unlock(&all->lock);
    return status;
}
