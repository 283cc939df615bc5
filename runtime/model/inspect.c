/* SPDX-License-Identifier: Apache-2.0 */

/* The matrices of a model, for those who look at it. */

#include "tern/inspect.h"
#include "runtime/model/model.h"
#include "runtime/model/tune_model.h"

const tern_gguf *tern_model_file(const tern_model *m) {
    return m->file;
}

uint32_t tern_model_threads(const tern_model *m, uint32_t threads) {
    return threads ? threads : tern_topology_threads(m->topology);
}

const tern_linear *tern_model_linear(const tern_model *m, size_t i) {
    const size_t in_layers = (size_t)m->config.n_layer * TERN_LAYER_LINEARS;
    if (i < in_layers)
        return tern_layer_linear(&m->layers[i / TERN_LAYER_LINEARS], i % TERN_LAYER_LINEARS);
    if (i == in_layers)
        return &m->own.head;
    return i == in_layers + 1 && tern_head_is_imaged(&m->image) ? &m->image.scan : NULL;
}

/* The stage of a layer's matrix, in the order of tern_layer_linear. */
static const tern_stage stages[TERN_LAYER_LINEARS] = {
    TERN_STAGE_QKV,     TERN_STAGE_QKV,     TERN_STAGE_QKV, TERN_STAGE_OUT,
    TERN_STAGE_GATE_UP, TERN_STAGE_GATE_UP, TERN_STAGE_DOWN};

/* Whose matrix it is: that of a layer by its tensor, because a node's threads may read a copy. */
static void find_place(const tern_model *m, const tern_linear *linear, tern_linear_info *out) {
    const size_t in_layers = (size_t)m->config.n_layer * TERN_LAYER_LINEARS;
    size_t i = 0;
    while (i < in_layers && tern_model_linear(m, i)->tensor != linear->tensor)
        i++;
    out->layer = (uint32_t)(i / TERN_LAYER_LINEARS);
    out->stage = i < in_layers ? stages[i % TERN_LAYER_LINEARS]
                               : (linear == &m->image.scan ? TERN_STAGE_SCAN : TERN_STAGE_HEAD);
}

static const tern_kernel_row *preferred(const tern_model *m, tern_op op,
                                        const tern_tune_choice *tuned) {
    const tern_kernel_row *rows[TERN_TUNE_CANDIDATES];
    return tern_tune_candidates(&m->guard, op, tuned->key.format, rows) > 0 ? rows[0] : NULL;
}

void tern_linear_describe(const tern_model *m, const tern_linear *linear, tern_linear_info *out) {
    const tern_tune_choice *tuned = tern_model_tuned(m, linear);
    const bool asked = m->choice == TERN_CHOICE_ASKED && linear->form == TERN_INPUT_TOKEN;
    *out = (tern_linear_info){.tensor = linear->tensor->name,
                              .matrix = linear->matrix,
                              .gemv = linear->gemv,
                              .gemm = linear->gemm,
                              .bytes = tern_linear_bytes(linear),
                              .choice = tuned ? "tuned" : (asked ? "asked" : "table"),
                              .table = {linear->gemv, linear->gemm}};
    if (tuned) {
        out->table[0] = preferred(m, TERN_OP_GEMV, tuned);
        out->table[1] = preferred(m, TERN_OP_GEMM, tuned);
    }
    find_place(m, linear, out);
}
