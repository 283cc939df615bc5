/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/equal_tensors.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/model/image/file_content.h"
#include "runtime/model/model.h"

/* ---- what could be equal --------------------------------------------------------------------- */

/* A matrix of the other model, or of the file. In this order the first of equal ones counts. */
typedef struct candidate {
    const tern_gguf_tensor *tensor;
    const tern_matrix *other; /* as the other model's products read it; NULL: they do not */
    bool is_own;              /* of the file */
    size_t order;
    uint64_t sample, hash; /* of some bytes, of all */
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

static void add_other(candidates *c, const tern_model *m) {
    for (uint32_t n = 0; n < m->config.n_layer; n++)
        for (size_t i = 0; i < TERN_LAYER_LINEARS; i++) {
            const tern_linear *linear = tern_layer_linear(&m->layers[n], i);
            if (linear->tensor != NULL)
                add(c, linear->tensor, &linear->matrix, false);
        }
    add(c, m->own.head.tensor, &m->own.head.matrix, false);
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

/* Where the run that begins at `at` ends: candidates of one sample, and of one hash. */
static size_t run_end(const candidates *c, size_t at) {
    size_t end = at + 1;
    while (end < c->n && c->all[end].sample == c->all[at].sample &&
           c->all[end].hash == c->all[at].hash)
        end++;
    return end;
}

/* Hashes all bytes of those that are not alone with their sample. */
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

/* Gives back what was read to be compared, but for a few bytes that loading reads again. */
static void drop_run(const tern_equal *e, const tern_gguf *other, const candidate *run, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!run[i].is_own || n > 1)
            tern_gguf_drop_pages(run[i].is_own ? e->file : other, run[i].tensor);
}

/* Candidates of one hash: the first one stands for all that equal it. */
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

tern_status tern_equal_find(const tern_gguf *file, const tern_reading *reading,
                            const tern_model *other, tern_equal *out, tern_error *err) {
    const size_t n = tern_gguf_tensor_count(file);
    const bool alike = other != NULL && other->runnable &&
                       tern_reading_hash(reading) == tern_reading_hash(&other->reading);
    const size_t others = alike ? (size_t)other->config.n_layer * TERN_LAYER_LINEARS + 2 : 0;
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
    if (alike) {
        const tern_embedding *e = &other->own.embedding;
        out->embedding =
            (tern_matrix){.format = e->row->format, .layout = TERN_LAYOUT_ROWS, .data = e->data};
        add_other(&c, other);
    }
    for (size_t i = 0; i < n; i++)
        add(&c, tern_gguf_tensor_at(file, i), NULL, true);
    hash_runs(&c);
    for (size_t at = 0, end; at < c.n; at = end) {
        end = run_end(&c, at);
        join_run(out, &c.all[at], end - at);
        drop_run(out, alike ? other->file : NULL, &c.all[at], end - at);
    }
    free(c.all);
    return TERN_OK;
}

void tern_equal_free(tern_equal *e) {
    free(e->tensors);
    *e = (tern_equal){.file = NULL};
}

/* ---- while loading --------------------------------------------------------------------------- */

void tern_equal_restart(tern_equal *e) {
    if (e == NULL)
        return;
    for (size_t i = 0; i < tern_gguf_tensor_count(e->file); i++)
        e->tensors[i].made.rows = 0;
    e->bytes = 0;
}

static bool is_alike(const tern_matrix *a, const tern_matrix *b) {
    return a->format == b->format && a->layout == b->layout && a->rows == b->rows &&
           a->cols == b->cols;
}

/* Where the other model has these bytes in this form; NULL: nowhere. */
static const void *find_other(const tern_equal *e, const tern_equal_tensor *t,
                              const tern_matrix *matrix) {
    if (t->other != NULL && is_alike(t->other, matrix))
        return t->other->data;
    return t->is_embedding && matrix->layout == TERN_LAYOUT_ROWS &&
                   matrix->format == e->embedding.format
               ? e->embedding.data
               : NULL;
}

tern_equal_use tern_equal_reuse(tern_equal *e, const tern_gguf_tensor *t, tern_matrix *matrix) {
    if (e == NULL)
        return TERN_EQUAL_NONE;
    const tern_equal_tensor *equal = &e->tensors[number_of(e, t)];
    const tern_equal_tensor *first = &e->tensors[equal->first];
    const void *other = find_other(e, equal, matrix);
    if (other == NULL && !is_alike(&first->made, matrix))
        return TERN_EQUAL_NONE;
    matrix->data = other != NULL ? other : first->made.data;
    return other != NULL || first->checked ? TERN_EQUAL_CHECKED : TERN_EQUAL_UNCHECKED;
}

void tern_equal_note(tern_equal *e, const tern_gguf_tensor *t, const tern_matrix *matrix,
                     bool checked) {
    if (e == NULL)
        return;
    tern_equal_tensor *first = &e->tensors[e->tensors[number_of(e, t)].first];
    if (first->made.rows > 0)
        return;
    first->made = *matrix;
    first->checked = checked;
}

void tern_equal_drop_pages(const tern_equal *e) {
    for (size_t i = 0; i < tern_gguf_tensor_count(e->file); i++) {
        const tern_equal_tensor *t = &e->tensors[i];
        if (t->first != i || t->other != NULL || t->is_embedding)
            tern_gguf_drop_pages(e->file, tern_gguf_tensor_at(e->file, i));
    }
}
