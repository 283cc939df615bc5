/* SPDX-License-Identifier: Apache-2.0 */

/* Queries of an open model. */

#include "dispatch/select.h"
#include "kernels/cache_row.h"
#include "kernels/ternary.h"
#include "runtime/model/model.h"

static uint64_t count_weights(const tern_linear *linear) {
    return (uint64_t)linear->matrix.rows * linear->matrix.cols;
}

/* The share of `all` that one token uses: of experts, only those that it takes. */
static uint64_t used_of(const tern_model *m, const tern_linear *linear, uint64_t all) {
    return linear->experts > 0 ? all / linear->experts * m->config.n_used : all;
}

/* Counts the bytes that a decoded token reads, by component, and the weights that it multiplies. */
static void describe_work(const tern_model *m, tern_model_info *out) {
    size_t count;
    const tern_block_tensor *tensors = tern_block_tensors(&count);
    for (uint32_t n = 0; n < m->config.n_layer; n++)
        for (size_t i = 0; i < count; i++) {
            if (tensors[i].kind != TERN_BLOCK_MATRIX ||
                !tern_block_has_in(m->config.arch, tern_config_kind_of(&m->config, n), &tensors[i]))
                continue;
            const tern_linear *linear = tern_layer_matrix(&m->layers[n], &tensors[i]);
            const tern_stage stage = tensors[i].stage;
            const bool attends = stage == TERN_STAGE_QKV || stage == TERN_STAGE_OUT;
            *(attends ? &out->attention_bytes : &out->feed_forward_bytes) +=
                used_of(m, linear, tern_linear_bytes(linear));
            out->block_weights += used_of(m, linear, count_weights(linear));
        }
    const bool scans = tern_head_is_imaged(&m->image); /* one token is picked by a scan */
    out->head_bytes = tern_linear_bytes(scans ? &m->image.scan : &m->own.head);
    out->head_weights = count_weights(&m->own.head);
    out->weight_bytes = out->attention_bytes + out->feed_forward_bytes + out->head_bytes;
}

static uint64_t count_parameters(const tern_gguf *file) {
    uint64_t total = 0;
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        total += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
    return total;
}

void tern_model_describe(const tern_model *m, tern_model_info *out) {
    const tern_config *c = &m->config;
    *out = (tern_model_info){.path = tern_gguf_name(m->file),
                             .architecture = c->arch->name,
                             .name = m->name,
                             .n_layer = c->n_layer,
                             .n_embd = c->n_embd,
                             .n_ff = c->n_ff,
                             .n_head = c->n_head,
                             .n_head_kv = c->n_head_kv,
                             .head_dim = c->head_dim,
                             .n_vocab = c->n_vocab,
                             .n_expert = c->n_expert,
                             .n_expert_used = c->n_used,
                             .n_ctx_train = c->n_ctx,
                             .file_bytes = tern_gguf_file_bytes(m->file),
                             .packed_bytes = m->list.bytes,
                             .replicas = m->replicas.n,
                             .replica_bytes = m->replicas.n > 0 ? m->replicas.bytes : 0,
                             .equal_bytes = m->list.saved,
                             .parameters = count_parameters(m->file)};
    describe_work(m, out);
}

void tern_model_describe_loading(const tern_model *m, tern_model_loading *out) {
    *out = m->loading;
}

uint64_t tern_model_kv_bytes(const tern_model *m, uint32_t n_ctx, tern_format kv) {
    const tern_config *c = &m->config;
    if (!tern_is_cache_format(&m->kernels, kv))
        return 0;
    const uint32_t layers = c->n_layer - tern_config_delta_layers(c);
    return 2 * (uint64_t)tern_cache_row_bytes(kv, c->head_dim) * layers * c->n_head_kv * n_ctx;
}

size_t tern_model_unused(const tern_model *m, const char *const **names) {
    *names = (const char *const *)m->unused.names;
    return m->unused.n;
}

const char *tern_model_doubt(const tern_model *m) {
    return m->doubt[0] != '\0' ? m->doubt : NULL;
}

size_t tern_model_refusals(const tern_model *m, const tern_kernel_refusal **refusals) {
    *refusals = m->guard.refused;
    return m->guard.n_refused;
}

const char *tern_model_isa(const tern_model *m) {
    return tern_isa_of_mask(m->guard.mask);
}

const char *tern_model_choice(const tern_model *m) {
    switch (m->choice) {
    case TERN_CHOICE_TUNED:
        return "tuned";
    case TERN_CHOICE_ASKED:
        return "asked";
    default:
        return "table";
    }
}

unsigned tern_model_forms(const tern_model *m) {
    unsigned forms = m->own.head.form;
    for (uint32_t n = 0; n < m->config.n_layer; n++)
        for (size_t i = 0; i < TERN_LAYER_LINEARS; i++)
            forms |= tern_layer_linear(&m->layers[n], i)->form;
    return forms;
}

bool tern_model_is_ternary(const tern_model *m) {
    bool ternary = tern_format_is_ternary(m->own.head.matrix.format);
    for (uint32_t n = 0; n < m->config.n_layer; n++)
        for (size_t i = 0; i < TERN_LAYER_LINEARS; i++)
            ternary |= tern_format_is_ternary(tern_layer_linear(&m->layers[n], i)->matrix.format);
    return ternary;
}

const char *tern_model_activations(const tern_model *m) {
    return tern_precision_name(m->precision);
}

const char *tern_model_activations_note(const tern_model *m) {
    if (m->precision_refused)
        return "ternary weights are defined with int8 activations, which are kept";
    return m->precision_note[0] != '\0' ? m->precision_note : NULL;
}

const char *tern_model_activation_forms(const tern_model *m) {
    static const char *const names[] = {"none",
                                        "float",
                                        "int8",
                                        "int8, float",
                                        "int8 blocks",
                                        "int8 blocks, float",
                                        "int8, int8 blocks",
                                        "int8, int8 blocks, float"};
    return names[tern_model_forms(m)];
}

const char *tern_model_layout(const tern_model *m) {
    tern_layout layout = TERN_LAYOUT_NONE;
    for (uint32_t n = 0; n < m->config.n_layer; n++)
        for (size_t i = 0; i < TERN_LAYER_LINEARS; i++) {
            const tern_linear *linear = tern_layer_linear(&m->layers[n], i);
            if (linear->form != TERN_INPUT_TOKEN)
                continue;
            if (layout != TERN_LAYOUT_NONE && layout != linear->matrix.layout)
                return "mixed";
            layout = linear->matrix.layout;
        }
    return tern_layout_name(layout == TERN_LAYOUT_NONE ? m->ternary : layout);
}

const char *tern_model_layout_reason(const tern_model *m) {
    return m->layout_reason;
}

tern_status tern_model_tokenizer(const tern_model *m, const tern_tokenizer **out, tern_error *err) {
    if (m->tokenizer == NULL)
        return tern_fail(err, m->tokenizer_error.status, "%s", m->tokenizer_error.message);
    *out = m->tokenizer;
    return TERN_OK;
}
