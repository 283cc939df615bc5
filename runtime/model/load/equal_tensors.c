/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/load/equal_tensors.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/model/image/file_content.h"

/* ---- what could be equal --------------------------------------------------------------------- */

/* A matrix of the other model, or of the file, in this order: of equal ones the first counts. */
typedef struct candidate {
    const tern_gguf_tensor *tensor;
    const tern_matrix *other; /* as the other model's products read it; NULL: they do not */
    bool is_own;              /* of the file */
    size_t order;
    uint64_t sample, hash; /* hashes of a few bytes, and of all */
} candidate;

typedef struct candidates {
    candidate *all;
    size_t n;
} candidates;

static void add(candidates *c, const tern_gguf_tensor *t, const tern_matrix *other, bool is_own) {
    tern_hash64 h;
    if (t == NULL || t->bytes == 0 || t->ne[1] < 2)
        return; /* vectors are copied as floats */
    tern_hash64_start(&h);
    tern_hash64_add(&h, &t->type, sizeof t->type);
    tern_hash64_add(&h, t->ne, sizeof t->ne);
    tern_content_sample(&h, t);
    c->all[c->n] = (candidate){.tensor = t,
                               .other = other,
                               .is_own = is_own,
                               .order = c->n,
                               .sample = tern_hash64_value(&h)};
    c->n++;
}

static void add_other(candidates *c, const tern_equal_model *m) {
    for (uint32_t n = 0; n < m->n_layer; n++)
        for (size_t i = 0; i < TERN_LAYER_LINEARS; i++) {
            const tern_linear *linear = tern_layer_linear(&m->weights->layers[n], i);
            if (linear->tensor != NULL)
                add(c, linear->tensor, &linear->matrix, false);
        }
    add(c, m->weights->head.tensor, &m->weights->head.matrix, false);
    add(c, tern_gguf_find_tensor(m->file, "token_embd.weight"), NULL, false);
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

/* Hashes all bytes of candidates that share their sample with another. */
static void hash_runs(candidates *c) {
    qsort(c->all, c->n, sizeof *c->all, by_sample);
    for (size_t at = 0, end; at < c->n; at = end) {
        end = run_end(c, at);
        for (size_t i = at; end - at > 1 && i < end; i++) {
            tern_hash64 h;
            tern_hash64_start(&h);
            tern_hash64_add(&h, c->all[i].tensor->data, (size_t)c->all[i].tensor->bytes);
            c->all[i].hash = tern_hash64_value(&h);
        }
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
static void drop_run(const tern_equal *e, const tern_gguf *other, const candidate *run, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!run[i].is_own || n > 1)
            tern_gguf_drop_pages(run[i].is_own ? e->file : other, run[i].tensor);
}

/* Joins candidates of one hash: the first one stands for all that equal it. */
static void join_run(tern_equal *e, const candidate *run, size_t n) {
    tern_equal_tensor all = {.first = SIZE_MAX};
    for (size_t i = 0; i < n; i++) {
        const tern_gguf_tensor *t = run[i].tensor;
        if (i > 0 && !is_same(run[0].tensor, t))
            continue;
        if (!run[i].is_own) {
            all.is_embedding |= run[i].other == NULL;
            all.other = all.other == NULL ? run[i].other : all.other;
            continue;
        }
        if (all.first == SIZE_MAX)
            all.first = number_of(e, t);
        e->tensors[number_of(e, t)] = all;
    }
}

/*
 * Adds everything that could be equal, the other model first: in this order the first one counts.
 */
static void add_all(candidates *c, const tern_gguf *file, const tern_equal_model *other) {
    if (other != NULL)
        add_other(c, other);
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++)
        add(c, tern_gguf_tensor_at(file, i), NULL, true);
}

static void note_other(tern_equal *e, const tern_equal_model *other) {
    const tern_embedding *rows = &other->weights->embedding;
    e->embedding = (tern_matrix){
        .format = rows->kernel->format, .layout = TERN_LAYOUT_ROWS, .data = rows->data};
    e->head = other->weights->head.matrix.data;
    e->image = other->image;
}

tern_status tern_equal_find(const tern_gguf *file, const tern_equal_model *other, tern_equal *out,
                            tern_error *err) {
    const size_t n = tern_gguf_tensor_count(file);
    const size_t others = other != NULL ? (size_t)other->n_layer * TERN_LAYER_LINEARS + 2 : 0;
    candidates c = {.all = calloc(n + others + 1, sizeof *c.all)}; /* + 1: never of size 0 */
    *out = (tern_equal){.file = file, .tensors = calloc(n + 1, sizeof *out->tensors)};
    if (c.all == NULL || out->tensors == NULL) {
        free(c.all);
        tern_equal_free(out);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to compare %zu tensors",
                         tern_gguf_name(file), n);
    }
    for (size_t i = 0; i < n; i++)
        out->tensors[i].first = i;
    if (other != NULL)
        note_other(out, other);
    add_all(&c, file, other);
    hash_runs(&c);
    for (size_t at = 0, end; at < c.n; at = end) {
        end = run_end(&c, at);
        join_run(out, &c.all[at], end - at);
        drop_run(out, other != NULL ? other->file : NULL, &c.all[at], end - at);
    }
    free(c.all);
    return TERN_OK;
}

void tern_equal_free(tern_equal *e) {
    free(e->tensors);
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

const void *tern_equal_in_other(const tern_equal *e, const tern_gguf_tensor *tensor,
                                const tern_matrix *matrix) {
    if (e == NULL)
        return NULL;
    const tern_equal_tensor *t = &e->tensors[number_of(e, tensor)];
    if (t->other != NULL && tern_equal_is_alike(t->other, matrix))
        return t->other->data;
    return t->is_embedding && matrix->layout == TERN_LAYOUT_ROWS &&
                   matrix->format == e->embedding.format
               ? e->embedding.data
               : NULL;
}

const tern_head_image *tern_equal_image(const tern_equal *e, const void *head,
                                        const tern_matrix *scan) {
    return e != NULL && head != NULL && head == e->head && tern_head_is_imaged(e->image) &&
                   e->image->scan.matrix.layout == scan->layout
               ? e->image
               : NULL;
}

void tern_equal_drop_pages(const tern_equal *e) {
    for (size_t i = 0; i < tern_gguf_tensor_count(e->file); i++) {
        const tern_equal_tensor *t = &e->tensors[i];
        if (t->first != i || t->other != NULL || t->is_embedding)
            tern_gguf_drop_pages(e->file, tern_gguf_tensor_at(e->file, i));
    }
}
