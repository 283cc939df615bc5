/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/half.h"
#include "runtime/model/config/factors.h"
#include "runtime/model/config/joined_matrices.h"
#include "runtime/model/model.h"

/* An adapter's pair for some rows of a tensor. */
typedef struct part {
    const tern_adapter_pair *pair;
    size_t first; /* row of the tensor */
    double factor;
    float *a; /* [rank][columns] */
} part;

struct convert_merged {
    convert_row_fn *row; /* of the tensor as it was */
    const void *context;
    size_t cols;
    part *parts; /* [n] by ascending ids */
    size_t n;
};

static float element(const void *data, tern_format format, size_t i) {
    if (format == TERN_FORMAT_F32)
        return ((const float *)data)[i];
    const uint16_t half = ((const uint16_t *)data)[i];
    return format == TERN_FORMAT_F16 ? tern_f16_to_f32(half) : tern_bf16_to_f32(half);
}

/* Element [row][k] of B. */
static double outer_at(const tern_adapter_pair *pair, size_t row, size_t k) {
    const size_t first = row / TERN_ADAPTER_ROWS * TERN_ADAPTER_ROWS;
    return (double)element(tern_adapter_column(pair, first, k), pair->b.format, row - first);
}

/* sums[n] += what a part adds to elements from `first` on of a row. */
static void add_part_of_row(const convert_merged *m, const part *p, size_t row, size_t first,
                            size_t n, double *sums) {
    for (size_t k = 0; k < p->pair->a.rows; k++) {
        const double factor = p->factor * outer_at(p->pair, row - p->first, k);
        const float *a = p->a + k * m->cols + first;
        for (size_t i = 0; i < n; i++)
            sums[i] += factor * (double)a[i];
    }
}

static void merged_row(const void *context, size_t row, float *out) {
    enum { TOGETHER = 256 };
    const convert_merged *m = context;
    double sums[TOGETHER];
    m->row(m->context, row, out);
    for (size_t first = 0; first < m->cols; first += TOGETHER) {
        const size_t n = m->cols - first < TOGETHER ? m->cols - first : TOGETHER;
        for (size_t i = 0; i < n; i++)
            sums[i] = (double)out[first + i];
        for (size_t p = 0; p < m->n; p++)
            if (row >= m->parts[p].first && row - m->parts[p].first < m->parts[p].pair->b.rows)
                add_part_of_row(m, &m->parts[p], row, first, n, sums);
        for (size_t i = 0; i < n; i++)
            out[first + i] = (float)sums[i];
    }
}

/* ---- which tensors --------------------------------------------------------------------------- */

/* The state of one merging. */
typedef struct merging {
    const tern_model *model;
    convert_job *job;
    convert_merge *to;
    tern_error *err;
} merging;

/* Adds a pair to the parts of a tensor. */
static tern_status add_part(const merging *g, convert_merged *m, const tern_adapter_pair *pair,
                            size_t first, float scale) {
    const size_t n = pair->a.rows * pair->a.cols;
    part *grown = realloc(m->parts, (m->n + 1) * sizeof *grown);
    if (grown != NULL)
        m->parts = grown;
    float *a = malloc(n * sizeof *a);
    if (grown == NULL || a == NULL) {
        free(a);
        return tern_fail(g->err, TERN_ERR_NOMEM, "no memory for an adapter");
    }
    for (size_t i = 0; i < n; i++)
        a[i] = element(pair->a.data, pair->a.format, i);
    m->parts[m->n++] = (part){pair, first, (double)(scale * pair->factor), a};
    return TERN_OK;
}

/* The row of a tensor of that name and so many rows at which a matrix of the block begins; false:
 * it is not in it. */
static bool begins_at(const tern_model *m, const tern_block_tensor *t, const char *name,
                      size_t rows, size_t *first) {
    const tern_block_sizes sizes = tern_config_block(&m->config);
    const tern_joined *joined = tern_joined_of(m->config.arch, t);
    *first = 0;
    if (strcmp(name, t->name) == 0 && rows == tern_block_length(&sizes, t->rows))
        return true;
    if (joined == NULL || strcmp(name, joined->name) != 0 ||
        rows != tern_joined_rows(joined, &sizes))
        return false;
    for (size_t i = 0; strcmp(joined->pieces[i].name, t->name) != 0; i++)
        *first += tern_block_length(&sizes, joined->pieces[i].rows);
    return true;
}

/* Adds the pairs of all adapters for matrix `index` of a layer. */
static tern_status add_pairs(const merging *g, convert_merged *m, uint32_t layer, size_t index,
                             size_t first) {
    const tern_adapters *a = &g->model->adapters;
    tern_status status = TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < a->usual.n; i++) {
        const tern_adapter_use *use = &a->usual.uses[i];
        const tern_adapter_pair *pair = tern_adapter_pair_of(&a->list[use->id], layer, index);
        if (pair != NULL)
            status = add_part(g, m, pair, first, use->scale);
    }
    return status;
}

static tern_status find_parts(const merging *g, const convert_tensor *t, convert_merged *m) {
    uint32_t layer;
    int at = 0;
    tern_status status = TERN_OK;
    if (sscanf(t->name, "blk.%u.%n", &layer, &at) != 1 || at == 0 ||
        layer >= g->model->config.n_layer)
        return TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < TERN_LAYER_LINEARS; i++) {
        size_t first;
        if (begins_at(g->model, tern_block_matrix(i), t->name + at, t->rows, &first))
            status = add_pairs(g, m, layer, i, first);
    }
    return status;
}

static void free_merged(convert_merged *m) {
    for (size_t i = 0; i < m->n; i++)
        free(m->parts[i].a);
    free(m->parts);
    free(m);
}

static tern_status merge_tensor(merging *g, convert_tensor *t) {
    convert_merged *m = calloc(1, sizeof *m);
    if (m == NULL)
        return tern_fail(g->err, TERN_ERR_NOMEM, "no memory for tensor %s", t->name);
    m->row = t->row;
    m->context = t->context;
    m->cols = t->cols;
    const tern_status status = find_parts(g, t, m);
    if (status != TERN_OK || m->n == 0) {
        free_merged(m);
        return status;
    }
    t->row = merged_row;
    t->context = m;
    t->as_is = t->stored = NULL;
    t->raw = NULL;
    g->to->merged[g->to->n++] = m;
    return TERN_OK;
}

tern_status convert_merge_adapters(convert_merge *m, const tern_model *model, convert_job *job,
                                   tern_error *err) {
    merging g = {.model = model, .job = job, .to = m, .err = err};
    const tern_gguf_tensor *factor = tern_factor_first(model->file);
    if (factor != NULL)
        return tern_fail(err, TERN_ERR_UNIMPLEMENTED,
                         "%s: tensor %.*s is a factor of a whole matrix: adapters are not merged "
                         "into such models, take them with --lora",
                         tern_gguf_name(model->file), TERN_SPAN_SHOWN(factor->name));
    m->merged = calloc(job->n + 1, sizeof(convert_merged *));
    tern_status status = m->merged != NULL
                             ? TERN_OK
                             : tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tensors", job->n);
    for (size_t i = 0; status == TERN_OK && i < job->n; i++)
        status = merge_tensor(&g, &job->tensors[i]);
    return status;
}

void convert_merge_free(convert_merge *m) {
    for (size_t i = 0; i < m->n; i++)
        free_merged(m->merged[i]);
    free((void *)m->merged);
    *m = (convert_merge){.n = 0};
}
