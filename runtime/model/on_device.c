/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/on_device.h"

#include <string.h>

#include "device/internal.h"
#include "device/mirror.h"
#include "runtime/model/config/factors.h"
#include "tern/inspect.h"

static const tern_kernel_row *find_kernel(const tern_model *m, tern_op op, tern_format format,
                                          tern_layout layout) {
    return tern_device_kernel(tern_mirror_device(m->mirror)->kind, op, format, layout);
}

static bool has_kernel(const tern_model *m, tern_op op, tern_format format, tern_layout layout) {
    return find_kernel(m, op, format, layout) != NULL;
}

const tern_kernel_row *tern_model_kernel_there(const tern_model *m, const tern_kernel_row *kernel) {
    const tern_kernel_row *there =
        m->mirror != NULL ? find_kernel(m, kernel->op, kernel->format, kernel->layout) : NULL;
    return there != NULL ? there : kernel;
}

static tern_span named(const char *text) {
    return (tern_span){.data = text, .size = strlen(text)};
}

static tern_status no_kernel(const tern_model *m, tern_op op, tern_format format, tern_span whose,
                             tern_error *err) {
    const tern_format_info *info = tern_format_describe(format);
    return tern_fail(err, TERN_ERR_KERNEL, "%s: %s has no kernel for %s%s%s, which %.*s needs",
                     tern_gguf_name(m->file), tern_device_name(tern_mirror_device(m->mirror)->kind),
                     tern_op_name(op), info != NULL ? " of " : "", info != NULL ? info->name : "",
                     (int)whose.size, whose.data);
}

/* ---- before the weights are there ---------------------------------------------------------- */

/* The part of this model's passes that no device makes; NULL: there is none. */
static const char *step_missing(const tern_model *m) {
    const tern_config *c = &m->config;
    if (c->n_expert > 0)
        return "experts";
    if (tern_config_delta_layers(c) > 0 || (c->arch->has & TERN_HAS_QUERY_GATES) != 0)
        return "delta nets";
    if (c->arch->encodes || c->arch->ungated)
        return "an encoder's blocks";
    if (c->arch->layer_norms)
        return "LayerNorm";
    if (c->attention_cap > 0.0f || c->logit_cap > 0.0f)
        return "soft bounds of scores and logits";
    if (m->hadamards.block > 0 || m->hadamards.head.block > 0 || m->hadamards.embedding.block > 0)
        return "Hadamard transforms";
    if (tern_factor_first(m->file) != NULL)
        return "factors of whole matrices";
    return NULL;
}

tern_status tern_model_open_device(tern_model *m, const char *name, tern_error *err) {
    const char *missing = step_missing(m);
    if (missing != NULL)
        return tern_fail(err, TERN_ERR_UNIMPLEMENTED,
                         "%s: %s does not run models with %s: leave --device out",
                         tern_gguf_name(m->file), name, missing);
    return tern_mirror_open(name, &m->mirror, err);
}

/* ---- weights ------------------------------------------------------------------------------- */

static tern_status send(tern_model *m, const void *data, size_t bytes, tern_error *err) {
    if (data == NULL || bytes == 0 || tern_mirror_at(m->mirror, data) != NULL)
        return TERN_OK;
    const tern_status status = tern_mirror_add(m->mirror, data, bytes, err);
    return status == TERN_OK ? tern_mirror_send(m->mirror, data, bytes, err) : status;
}

/* Sends what a matrix has outside the arena. */
static tern_status send_linear(tern_model *m, const tern_linear *linear, tern_error *err) {
    const tern_matrix *w = &linear->matrix;
    if (!has_kernel(m, TERN_OP_GEMV, w->format, w->layout) ||
        !has_kernel(m, TERN_OP_GEMM, w->format, w->layout))
        return no_kernel(m, TERN_OP_GEMV, w->format, linear->tensor->name, err);
    tern_status status = send(m, w->data, (size_t)tern_linear_bytes(linear), err);
    if (status == TERN_OK && w->row_scale != NULL)
        status = send(m, w->row_scale, w->rows * sizeof *w->row_scale, err);
    if (status == TERN_OK && linear->bias != NULL)
        status = send(m, linear->bias, w->rows * sizeof *linear->bias, err);
    return status;
}

/* Checks that the device has the operations on rows of floats that passes of this model need. */
static tern_status check_operations(const tern_model *m, tern_error *err) {
    const unsigned forms = tern_model_forms(m);
    const struct {
        tern_op op;
        bool needed;
    } operations[] = {{TERN_OP_RMSNORM, true},
                      {TERN_OP_ADD, true},
                      {TERN_OP_WATCH, true},
                      {m->config.gate, true},
                      {m->config.arch->rope, true},
                      {TERN_OP_QUANTIZE_TOKEN, (forms & TERN_INPUT_TOKEN) != 0},
                      {TERN_OP_QUANTIZE_BLOCK, (forms & TERN_INPUT_BLOCK) != 0}};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (operations[i].needed &&
            !has_kernel(m, operations[i].op, TERN_FORMAT_NONE, TERN_LAYOUT_NONE))
            return no_kernel(m, operations[i].op, TERN_FORMAT_NONE, named("the model"), err);
    if (m->kernels.round != NULL &&
        !has_kernel(m, m->kernels.round->op, TERN_FORMAT_NONE, TERN_LAYOUT_NONE))
        return no_kernel(m, m->kernels.round->op, TERN_FORMAT_NONE, named("the precision"), err);
    return TERN_OK;
}

static tern_status send_embedding(tern_model *m, tern_error *err) {
    const tern_embedding *e = &m->own.embedding;
    if (!has_kernel(m, TERN_OP_EMBED, e->kernel->format, TERN_LAYOUT_ROWS))
        return no_kernel(m, TERN_OP_EMBED, e->kernel->format, named("the embedding"), err);
    return send(m, e->data, (size_t)m->config.n_vocab * e->row_bytes, err);
}

tern_status tern_model_send_weights(tern_model *m, tern_error *err) {
    const tern_linear *linear;
    tern_status status = check_operations(m, err);
    if (status == TERN_OK)
        status = send(m, m->weights.base, m->weights.size, err);
    for (size_t i = 0; status == TERN_OK && (linear = tern_model_linear(m, i)) != NULL; i++)
        status = send_linear(m, linear, err);
    return status == TERN_OK ? send_embedding(m, err) : status;
}

/* ---- caches -------------------------------------------------------------------------------- */

tern_status tern_model_check_cache(const tern_model *m, tern_format kv, tern_error *err) {
    static const tern_op operations[] = {TERN_OP_ATTEND, TERN_OP_STORE};
    for (size_t i = 0; m->mirror != NULL && i < sizeof operations / sizeof *operations; i++)
        if (!has_kernel(m, operations[i], kv, TERN_LAYOUT_ROWS))
            return no_kernel(m, operations[i], kv, named("a cache of that format"), err);
    return TERN_OK;
}

const char *tern_model_device(const tern_model *m) {
    return m->mirror != NULL ? tern_mirror_behind(m->mirror)->name : NULL;
}

const char *tern_model_device_note(const tern_model *m) {
    return m->device_note;
}

uint64_t tern_model_device_bytes(const tern_model *m) {
    return m->mirror != NULL ? tern_mirror_bytes(m->mirror) : 0;
}
