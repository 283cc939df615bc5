/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/load/equal_tensors.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/model/image/file_content.h"
#include "runtime/model/load/list.h"

/* ---- what could be equal --------------------------------------------------------------------- */

/* A tensor that another model holds, or of the file, in this order: of equal ones the first counts.
 */
typedef struct candidate {
    const tern_gguf_tensor *tensor;
    const tern_equal_holder *holder; /* NULL: it is of the file */
    size_t order;
    uint64_t sample, hash; /* hashes of a few bytes, and of all */
} candidate;

typedef struct candidates {
    candidate *all;
    size_t n;
    uint64_t read; /* bytes */
} candidates;

static uint64_t sample_of(const tern_gguf_tensor *t) {
    tern_hash64 h;
    tern_hash64_start(&h);
    tern_hash64_add(&h, &t->type, sizeof t->type);
    tern_hash64_add(&h, t->ne, sizeof t->ne);
    tern_content_sample(&h, t);
    return tern_hash64_value(&h);
}

static void add(candidates *c, const tern_gguf_tensor *t, const tern_equal_holder *holder,
                uint64_t sample) {
    c->all[c->n] = (candidate){.tensor = t, .holder = holder, .order = c->n, .sample = sample};
    c->n++;
}

/*
 * Adds everything that could be equal, other models first: in this order the first one counts.
 * Vectors are copied as floats.
 */
static void add_all(candidates *c, tern_equal *e) {
    for (size_t i = 0; i < e->n_holders; i++) {
        const tern_load_entry *held = e->holders[i].entry;
        if (held->kind != TERN_LOAD_IMAGE && held->sample != 0)
            add(c, held->tensor, &e->holders[i], held->sample);
    }
    for (size_t i = 0; i < tern_gguf_tensor_count(e->file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(e->file, i);
        if (t->bytes == 0 || t->ne[1] < 2)
            continue;
        e->tensors[i].sample = sample_of(t);
        add(c, t, NULL, e->tensors[i].sample);
    }
}

static int by_sample(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->sample != y->sample)
        return x->sample < y->sample ? -1 : 1;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The end of the run that begins at `at`: candidates with the same sample and the same hash. */
static size_t run_end(const candidates *c, size_t at) {
    size_t end = at + 1;
    while (end < c->n && c->all[end].sample == c->all[at].sample &&
           c->all[end].hash == c->all[at].hash)
        end++;
    return end;
}

/* Hashes all bytes of a run of candidates that share their sample. */
static void hash_run(candidates *c, size_t at, size_t end) {
    for (size_t i = at; i < end; i++) {
        const tern_gguf_tensor *t = c->all[i].tensor;
        tern_hash64 h;
        tern_hash64_start(&h);
        tern_hash64_add(&h, t->data, (size_t)t->bytes);
        c->all[i].hash = tern_hash64_value(&h);
        c->read += t->bytes;
    }
}

/* True if one of them is a tensor of the file: others are equal for nobody. */
static bool is_wanted(const candidates *c, size_t at, size_t end) {
    for (size_t i = at; i < end; i++)
        if (c->all[i].holder == NULL)
            return end - at > 1;
    return false;
}

static void hash_runs(candidates *c) {
    qsort(c->all, c->n, sizeof *c->all, by_sample);
    for (size_t at = 0, end; at < c->n; at = end) {
        end = run_end(c, at);
        if (is_wanted(c, at, end))
            hash_run(c, at, end);
    }
    qsort(c->all, c->n, sizeof *c->all, by_sample);
}

/* ---- what is equal --------------------------------------------------------------------------- */

static bool is_same(const tern_gguf_tensor *a, const tern_gguf_tensor *b) {
    const tern_int4_rows *x = &a->int4, *y = &b->int4;
    return a->type == b->type && memcmp(a->ne, b->ne, sizeof a->ne) == 0 && a->bytes == b->bytes &&
           x->group == y->group && x->zero_points == y->zero_points &&
           x->twos_complement == y->twos_complement && x->high_first == y->high_first &&
           (a->data == b->data || memcmp(a->data, b->data, (size_t)a->bytes) == 0);
}

static size_t number_of(const tern_equal *e, const tern_gguf_tensor *t) {
    return (size_t)(t - tern_gguf_tensor_at(e->file, 0));
}

/* Gives back the pages that were read for the comparison. A tensor of the file without an equal
 * keeps its few bytes, which loading reads again. */
static void drop_run(const tern_equal *e, const candidate *run, size_t n) {
    for (size_t i = 0; n > 1 && i < n; i++)
        tern_gguf_drop_pages(run[i].holder != NULL ? run[i].holder->file : e->file, run[i].tensor);
}

/* Joins candidates of one hash: the first one stands for all that equal it. */
static void join_run(tern_equal *e, size_t *n_found, candidates *c, const candidate *run,
                     size_t n) {
    tern_equal_tensor all = {.first = SIZE_MAX, .begin = *n_found};
    for (size_t i = 0; i < n; i++) {
        const tern_gguf_tensor *t = run[i].tensor;
        if (i > 0 && run[0].tensor->data != t->data)
            c->read += 2 * t->bytes;
        if (i > 0 && !is_same(run[0].tensor, t))
            continue;
        if (run[i].holder != NULL) {
            e->found[(*n_found)++] = run[i].holder->entry;
            continue;
        }
        if (all.first == SIZE_MAX)
            all.first = number_of(e, t);
        all.end = *n_found;
        all.sample = run[i].sample;
        e->tensors[number_of(e, t)] = all;
    }
}

static void join_runs(tern_equal *e, candidates *c) {
    size_t n_found = 0;
    for (size_t at = 0, end; at < c->n; at = end) {
        end = run_end(c, at);
        if (!is_wanted(c, at, end))
            continue;
        join_run(e, &n_found, c, &c->all[at], end - at);
        drop_run(e, &c->all[at], end - at);
    }
}

tern_status tern_equal_find(const tern_gguf *file, const tern_equal_holder *holders,
                            size_t n_holders, tern_equal *out, tern_error *err) {
    const size_t n = tern_gguf_tensor_count(file);
    candidates c = {.all = calloc(n + n_holders + 1, sizeof *c.all)}; /* + 1: never of size 0 */
    *out = (tern_equal){.file = file,
                        .tensors = calloc(n + 1, sizeof *out->tensors),
                        .found = calloc(n_holders + 1, sizeof *out->found),
                        .holders = holders,
                        .n_holders = n_holders};
    if (c.all == NULL || out->tensors == NULL || out->found == NULL) {
        free(c.all);
        tern_equal_free(out);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to compare %zu tensors",
                         tern_gguf_name(file), n);
    }
    for (size_t i = 0; i < n; i++)
        out->tensors[i].first = i;
    add_all(&c, out);
    hash_runs(&c);
    join_runs(out, &c);
    out->read = c.read;
    free(c.all);
    return TERN_OK;
}

void tern_equal_free(tern_equal *e) {
    free(e->tensors);
    free(e->found);
    *e = (tern_equal){.file = NULL};
}

/* ---- while loading --------------------------------------------------------------------------- */

size_t tern_equal_first(const tern_equal *e, const tern_gguf_tensor *t) {
    return e->tensors[number_of(e, t)].first;
}

bool tern_equal_is_alike(const tern_matrix *a, const tern_matrix *b) {
    return a->format == b->format && a->layout == b->layout && a->rows == b->rows &&
           a->cols == b->cols;
}

uint64_t tern_equal_sample(const tern_equal *e, const tern_gguf_tensor *t) {
    return e->tensors[number_of(e, t)].sample;
}

tern_load_entry *tern_equal_in_other(const tern_equal *e, const tern_gguf_tensor *tensor,
                                     const tern_matrix *matrix) {
    if (e == NULL)
        return NULL;
    const tern_equal_tensor *t = &e->tensors[number_of(e, tensor)];
    for (size_t i = t->begin; i < t->end; i++) {
        const tern_matrix held = tern_load_form(e->found[i]);
        if (tern_equal_is_alike(&held, matrix))
            return e->found[i];
    }
    return NULL;
}

tern_load_entry *tern_equal_image(const tern_equal *e, const void *head, const tern_matrix *scan) {
    for (size_t i = 0; e != NULL && head != NULL && i < e->n_holders; i++) {
        tern_load_entry *held = e->holders[i].entry;
        if (held->kind == TERN_LOAD_IMAGE && tern_load_rows_of(held - 1) == head &&
            held->to.image->scan.matrix.layout == scan->layout)
            return held;
    }
    return NULL;
}

void tern_equal_drop_pages(const tern_equal *e) {
    for (size_t i = 0; i < tern_gguf_tensor_count(e->file); i++) {
        const tern_equal_tensor *t = &e->tensors[i];
        if (t->first != i || t->begin < t->end)
            tern_gguf_drop_pages(e->file, tern_gguf_tensor_at(e->file, i));
    }
}
