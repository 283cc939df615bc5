/* SPDX-License-Identifier: Apache-2.0 */

/* The matrices of a model, for inspection. */

#include "tern/inspect.h"
#include <stdlib.h>

#include "kernels/iebs.h"
#include "runtime/files/gguf/int4.h"
#include "runtime/model/model.h"
#include "runtime/model/tune_model.h"

const tern_gguf *tern_model_file(const tern_model *m) {
    return m->file;
}

uint32_t tern_model_threads(const tern_model *m, uint32_t threads) {
    const uint32_t all = tern_topology_threads(m->topology);
    if (threads > 0)
        return threads;
    return tern_split_is(&m->split) ? tern_ranks_share(m->split.ranks, all) : all;
}

tern_fetch tern_model_fetch(const tern_model *m) {
    return m->fetch;
}

tern_places tern_model_places(const tern_model *m) {
    return m->places;
}

const char *tern_model_no_replicas(const tern_model *m) {
    if (m->replicas.n > 0)
        return NULL;
    if (tern_topology_nodes(m->topology) < 2)
        return "the machine has one NUMA node";
    return m->replicas.bytes > 0 ? "threads are not bound to nodes"
                                 : "nothing fits into --replicate-limit";
}

uint64_t tern_model_features(const tern_model *m) {
    return m->guard.mask;
}

const tern_kernel_row *tern_model_select(const tern_model *m, tern_op op, tern_format format,
                                         tern_layout layout) {
    return tern_guard_select(&m->guard, (tern_kernel_use){op, format, layout});
}

tern_status tern_reading_check(const tern_model_params *params, tern_error *err) {
    tern_reading reading;
    if (params == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_reading_check needs parameters");
    return tern_reading_init(&reading, params->i2s_order, params->i2s_map, params->tl_tiles, err);
}

const tern_linear *tern_model_linear(const tern_model *m, size_t i) {
    const size_t in_layers = tern_config_linears(&m->config);
    uint32_t layer;
    size_t at;
    if (i < in_layers) {
        tern_config_linear_at(&m->config, i, &layer, &at);
        return tern_layer_linear(&m->layers[layer], at);
    }
    if (i == in_layers)
        return &m->own.head;
    return i == in_layers + 1 && tern_head_is_imaged(&m->image) ? &m->image.scan : NULL;
}

/* Finds the layer and stage of a matrix. A layer's matrix is found by its tensor, because a node's
 * threads may read a copy. */
static void find_place(const tern_model *m, const tern_linear *linear, tern_linear_info *out) {
    const size_t in_layers = tern_config_linears(&m->config);
    size_t i = 0, at = 0;
    while (i < in_layers && tern_model_linear(m, i)->tensor != linear->tensor)
        i++;
    out->layer = m->config.n_layer;
    if (i < in_layers)
        tern_config_linear_at(&m->config, i, &out->layer, &at);
    out->stage = i < in_layers ? tern_block_matrix(at)->stage
                               : (linear == &m->image.scan ? TERN_STAGE_SCAN : TERN_STAGE_HEAD);
}

static const tern_kernel_row *preferred(const tern_model *m, tern_op op,
                                        const tern_tune_choice *tuned) {
    const tern_kernel_row *kernels[TERN_TUNE_CANDIDATES];
    return tern_tune_candidates(&m->guard, op, tuned->key.format, kernels) > 0 ? kernels[0] : NULL;
}

void tern_linear_describe(const tern_model *m, const tern_linear *linear, tern_linear_info *out) {
    const tern_tune_choice *tuned = tern_model_tuned(m, linear);
    const bool asked = m->choice == TERN_CHOICE_ASKED && linear->form == TERN_INPUT_TOKEN;
    *out = (tern_linear_info){.tensor = linear->tensor->name,
                              .matrix = linear->matrix,
                              .gemv = linear->gemv,
                              .gemm = linear->gemm,
                              .bytes = tern_linear_bytes(linear),
                              .experts = linear->experts,
                              .experts_used = linear->experts > 0 ? m->config.n_used : 0,
                              .choice = tuned != NULL ? "tuned" : (asked ? "asked" : "table"),
                              .table = {linear->gemv, linear->gemm}};
    if (tuned != NULL) {
        out->table[0] = preferred(m, TERN_OP_GEMV, tuned);
        out->table[1] = preferred(m, TERN_OP_GEMM, tuned);
    }
    find_place(m, linear, out);
}

/* Makes blocks of the rows of INT4; *made comes from malloc. */
static tern_status expand_int4(const tern_model *m, const tern_linear *linear, void **made,
                               tern_error *err) {
    const tern_matrix *w = &linear->matrix;
    uint64_t size = 0;
    const tern_status status = tern_format_bytes(w->format, w->rows, w->cols, &size);
    if (status != TERN_OK)
        return status;
    *made = malloc((size_t)size);
    if (*made == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the blocks of a tensor",
                         tern_gguf_name(m->file));
    tern_int4_blocks(&linear->tensor->int4, linear->tensor->data, w->rows, w->cols, *made);
    return TERN_OK;
}

/* Makes the dense matrix of sparse blocks, in their format; *made comes from malloc. */
static tern_status expand_blocks(const tern_model *m, const tern_linear *linear, void **made,
                                 tern_error *err) {
    const tern_matrix *w = &linear->matrix;
    const tern_iebs blocks = tern_iebs_view(linear->tensor->data);
    uint64_t size = 0;
    tern_status status = tern_format_bytes(w->format, w->rows, w->cols, &size);
    if (status != TERN_OK)
        return tern_fail(err, status, "%s: %zu x %zu weights are not a dense tensor",
                         tern_gguf_name(m->file), w->rows, w->cols);
    float *weights = malloc(w->rows * w->cols * sizeof *weights);
    *made = malloc((size_t)size);
    if (weights == NULL || *made == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a dense tensor",
                           tern_gguf_name(m->file));
    for (size_t r = 0; status == TERN_OK && r < w->rows; r++)
        tern_iebs_row(&blocks, r, weights + r * w->cols);
    if (status == TERN_OK)
        status = tern_quantize_weights(w->format, weights, w->rows, w->cols, *made, NULL, err);
    free(weights);
    if (status != TERN_OK) {
        free(*made);
        *made = NULL;
    }
    return status;
}

tern_status tern_linear_weights(const tern_model *m, const tern_linear *linear, const void **bytes,
                                void **made, tern_error *err) {
    const tern_gguf_tensor *tensor = linear->tensor;
    const tern_matrix *w = &linear->matrix;
    uint64_t size = 0;
    tern_import how;
    *bytes = tensor->data;
    *made = NULL;
    if (w->format == TERN_FORMAT_INT4) {
        const tern_status done = expand_int4(m, linear, made, err);
        *bytes = *made;
        return done;
    }
    if (tensor->type == TERN_GGUF_SPARSE_TYPE) {
        const tern_status done = expand_blocks(m, linear, made, err);
        *bytes = *made;
        return done;
    }
    if (w->format != TERN_FORMAT_I2_S)
        return TERN_OK;
    tern_status status = tern_reading_of(&m->reading, tensor, &how, err);
    if (status == TERN_OK && !tern_import_is_plain(&how))
        status = tern_format_bytes(w->format, w->rows, w->cols, &size);
    if (status != TERN_OK || size == 0)
        return status;
    void *imported = malloc((size_t)size);
    if (imported == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to reorder a tensor",
                         tern_gguf_name(m->file));
    status = tern_import_tensor(&how, tensor->data, w->rows, w->cols, imported, err);
    if (status != TERN_OK) {
        free(imported);
        return status;
    }
    *bytes = *made = imported;
    return TERN_OK;
}
