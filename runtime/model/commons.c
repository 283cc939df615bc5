/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/model/commons.h"

#include <pthread.h>
#include <stdlib.h>

#include "tern/inspect.h"

struct tern_commons {
    pthread_mutex_t lock;
    tern_model **members; /* [n] loaded, or left and read by others */
    size_t n;
    size_t looks; /* that are not over: nothing is given back meanwhile */
};

/* ---- what is given back ---------------------------------------------------------------------- */

/* Gives back what a model that left holds for nobody: the gaps between shared entries of its arena,
 * and pages of its file. With the lock. */
static void trim(const tern_model *m) {
    size_t begin = 0;
    for (size_t i = 0; i < m->list.n; i++) {
        const tern_load_entry *e = &m->list.entries[i];
        if (e->readers == 0 && e->place == TERN_LOAD_FILE)
            tern_gguf_drop_pages(m->file, e->tensor);
        if (e->readers == 0 || e->bytes == 0)
            continue;
        tern_arena_give_back(&m->weights, begin, e->offset);
        begin = e->offset + e->bytes;
    }
    tern_arena_give_back(&m->weights, begin, m->weights.size);
}

/* The model that lists an entry. */
static tern_model *owner_of(tern_model *const *models, size_t n, const tern_load_entry *e) {
    for (size_t i = 0; i < n; i++) {
        const tern_load_list *l = &models[i]->list;
        if ((uintptr_t)e - (uintptr_t)l->entries < l->n * sizeof *l->entries)
            return models[i];
    }
    return NULL;
}

/* Gives up what a model reads of others. With the lock. */
static void read_no_more(tern_model *m) {
    for (size_t i = 0; i < m->list.n; i++)
        if (m->list.entries[i].place == TERN_LOAD_OTHER)
            m->list.entries[i].holder->readers--;
    for (size_t i = 0; i < m->n_sources; i++)
        m->sources[i]->users--;
}

/* Takes the members that nobody uses from the commons into a chain; gives back pages of those that
 * left. With the lock. */
static tern_model *sweep(tern_commons *c) {
    tern_model *done = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++) {
        tern_model *m = c->members[i];
        if (m->users == 0) {
            m->next_done = done;
            done = m;
            continue;
        }
        if (m->left && c->looks == 0)
            trim(m);
        c->members[kept++] = m;
    }
    c->n = kept;
    return done;
}

/* Ends a change of the commons: lets go of the lock, and of what has become unused. */
static void settle(tern_commons *c, void (*done)(tern_model *m)) {
    tern_model *unused = sweep(c);
    const bool empty = c->n == 0 && c->looks == 0;
    (void)pthread_mutex_unlock(&c->lock);
    while (unused != NULL) {
        tern_model *next = unused->next_done;
        done(unused);
        unused = next;
    }
    if (!empty)
        return;
    (void)pthread_mutex_destroy(&c->lock);
    free(c->members);
    free(c);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* True if a new model can read what a member holds. */
static bool is_alike(const tern_model *m, const tern_reading *reading) {
    return tern_reading_hash(&m->reading) == tern_reading_hash(reading) &&
           tern_gguf_unchanged(m->file, NULL) == TERN_OK;
}

/* A model that left has only that which others read. */
static bool offers(const tern_model *m, const tern_load_entry *e) {
    return tern_load_holds(e) && (!m->left || e->readers > 0);
}

static size_t count_entries(const tern_commons *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->members[i]->list.n;
    return n;
}

/* Notes a member and what it holds, and keeps it. */
static void note(tern_commons_look *look, tern_model *m) {
    look->models[look->n++] = m;
    m->users++;
    for (size_t i = 0; i < m->list.n; i++)
        if (offers(m, &m->list.entries[i]))
            look->holders[look->n_holders++] = (tern_equal_holder){m->file, &m->list.entries[i]};
}

tern_status tern_commons_look_at(tern_model *beside, const tern_reading *reading,
                                 tern_commons_look *look, tern_error *err) {
    *look = (tern_commons_look){.commons = NULL};
    tern_commons *c = beside != NULL ? beside->commons : NULL;
    if (c == NULL)
        return TERN_OK;
    (void)pthread_mutex_lock(&c->lock);
    look->models = calloc(c->n, sizeof *look->models);
    look->holders = calloc(count_entries(c), sizeof *look->holders);
    const bool has_memory = look->models != NULL && look->holders != NULL;
    if (has_memory) {
        look->commons = c;
        c->looks++;
        for (size_t i = 0; i < c->n; i++)
            if (is_alike(c->members[i], reading))
                note(look, c->members[i]);
    }
    (void)pthread_mutex_unlock(&c->lock);
    if (has_memory)
        return TERN_OK;
    tern_commons_look_end(look, NULL);
    return tern_fail(err, TERN_ERR_NOMEM, "no memory to look at %zu models", c->n);
}

void tern_commons_look_end(tern_commons_look *look, void (*done)(tern_model *m)) {
    tern_commons *c = look->commons;
    if (c != NULL) {
        (void)pthread_mutex_lock(&c->lock);
        c->looks--;
        for (size_t i = 0; i < look->n; i++)
            look->models[i]->users--;
        settle(c, done);
    }
    free(look->models);
    free(look->holders);
    *look = (tern_commons_look){.commons = NULL};
}

/* ---- entering and leaving -------------------------------------------------------------------- */

/* Lists the models of a look that the model took something of. */
static tern_status find_sources(tern_model *m, const tern_commons_look *look, tern_error *err) {
    m->sources = calloc(look->n + 1, sizeof *m->sources);
    if (m->sources == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu models", look->n);
    for (size_t i = 0; i < m->list.n; i++) {
        const tern_load_entry *e = &m->list.entries[i];
        tern_model *source =
            e->place == TERN_LOAD_OTHER ? owner_of(look->models, look->n, e->holder) : NULL;
        bool known = source == NULL;
        for (size_t k = 0; !known && k < m->n_sources; k++)
            known = m->sources[k] == source;
        if (!known)
            m->sources[m->n_sources++] = source;
    }
    return TERN_OK;
}

static tern_commons *commons_new(void) {
    tern_commons *c = calloc(1, sizeof *c);
    if (c != NULL)
        (void)pthread_mutex_init(&c->lock, NULL);
    return c;
}

/* Makes a model a member, and counts what it reads of others. False: no memory. */
static bool add_member(tern_commons *c, tern_model *m) {
    (void)pthread_mutex_lock(&c->lock);
    tern_model **grown = realloc(c->members, (c->n + 1) * sizeof(tern_model *));
    if (grown != NULL) {
        c->members = grown;
        c->members[c->n++] = m;
        for (size_t i = 0; i < m->n_sources; i++)
            m->sources[i]->users++;
        for (size_t i = 0; i < m->list.n; i++)
            if (m->list.entries[i].place == TERN_LOAD_OTHER)
                m->list.entries[i].holder->readers++;
        m->commons = c;
    }
    (void)pthread_mutex_unlock(&c->lock);
    return grown != NULL;
}

tern_status tern_commons_enter(tern_model *m, const tern_commons_look *look, tern_error *err) {
    tern_commons *c = look->commons != NULL ? look->commons : commons_new();
    const bool is_new = c != NULL && look->commons == NULL;
    tern_status status = find_sources(m, look, err);
    if (status == TERN_OK)
        status = tern_commons_unchanged(m, err);
    if (status == TERN_OK && (c == NULL || !add_member(c, m)))
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for a model beside others");
    if (status != TERN_OK && is_new) {
        (void)pthread_mutex_destroy(&c->lock);
        free(c);
    }
    return status;
}

void tern_commons_leave(tern_model *m, void (*done)(tern_model *m)) {
    tern_commons *c = m->commons;
    if (c == NULL) {
        done(m);
        return;
    }
    (void)pthread_mutex_lock(&c->lock);
    m->left = true;
    m->users--;
    read_no_more(m);
    settle(c, done);
}

tern_status tern_commons_unchanged(const tern_model *m, tern_error *err) {
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < m->n_sources; i++) {
        const tern_model *source = m->sources[i];
        status = tern_gguf_unchanged(source->file, err);
        if (status == TERN_OK && source->packed_image != NULL)
            status = tern_file_map_unchanged(source->packed_image, err);
    }
    return status;
}

/* ---- what is shared -------------------------------------------------------------------------- */

/* Bytes of an entry that others can read. Rows of an embedding in blocks are hardly ever read, so
 * they take no memory in the file. */
static uint64_t held_bytes(const tern_load_entry *e) {
    const bool rare = e->kind == TERN_LOAD_EMBEDDING && e->format > TERN_FORMAT_BF16;
    if (e->place == TERN_LOAD_FILE)
        return rare ? 0 : e->tensor->bytes;
    return e->kind == TERN_LOAD_MATRIX ? tern_linear_bytes(e->to.linear) : e->bytes;
}

/* The models that read an entry of `holder`. */
static uint32_t uses_of(const tern_model *holder, const tern_load_entry *e) {
    return tern_load_holds(e) ? e->readers + !holder->left : 0;
}

void tern_model_sharing(const tern_model *m, tern_sharing *out) {
    tern_commons *c = m->commons;
    *out = (tern_sharing){.shared_bytes = 0};
    if (c == NULL)
        return;
    (void)pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->members[i]->list.n; k++) {
            const tern_load_entry *e = &c->members[i]->list.entries[k];
            const uint32_t uses = uses_of(c->members[i], e);
            if (uses > 1)
                out->saved_bytes += (uses - 1) * held_bytes(e);
            if (uses > 1 && c->members[i] == m)
                out->shared_bytes += held_bytes(e);
        }
    for (size_t k = 0; k < m->list.n; k++) {
        const tern_load_entry *e = &m->list.entries[k];
        if (e->place == TERN_LOAD_OTHER &&
            uses_of(owner_of(c->members, c->n, e->holder), e->holder) > 1)
            out->shared_bytes += held_bytes(e->holder);
    }
    (void)pthread_mutex_unlock(&c->lock);
}
