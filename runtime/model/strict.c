/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/strict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dispatch/select.h"
#include "runtime/text/tokenizer/tokenizer.h"

enum { USUAL_ALIGNMENT = 32 }; /* of tensors, if the file gives none */

/* ---- what the file does not say ------------------------------------------------------------ */

/* Refuses a file that lacks keys for which its architecture has defaults. */
static tern_status check_metadata(const tern_model *m, tern_error *err) {
    static const char *const keys[] = {"block_count",
                                       "embedding_length",
                                       "feed_forward_length",
                                       "attention.head_count",
                                       "attention.head_count_kv",
                                       "context_length",
                                       "attention.layer_norm_rms_epsilon",
                                       "rope.freq_base"};
    const tern_arch *arch = m->config.arch;
    char key[128];
    if (arch->defaults == NULL)
        return TERN_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(key, sizeof key, "%s.%s", arch->name, keys[i]);
        if (tern_gguf_find(m->file, key) == NULL)
            return tern_fail(err, TERN_ERR_STRICT,
                             "%s: strict: key %s is missing, %s's value would stand in",
                             tern_gguf_name(m->file), key, arch->defaults->of);
    }
    return TERN_OK;
}

/* Refuses unknown keys and tensors: they may change what the model says. */
static tern_status check_unused(const tern_model *m, tern_error *err) {
    char others[48] = "";
    if (m->unused.n == 0)
        return TERN_OK;
    if (m->unused.n > 1)
        snprintf(others, sizeof others, " and %zu more", m->unused.n - 1);
    return tern_fail(err, TERN_ERR_STRICT, "%s: strict: unknown %s%s would be left out",
                     tern_gguf_name(m->file), m->unused.names[0], others);
}

/*
 * Refuses bytes that no tensor claims. A tensor whose type was changed leaves most of its bytes
 * unclaimed, and means something else. Up to the next multiple of the alignment, bytes are padding.
 */
static tern_status check_claims(const tern_model *m, tern_error *err) {
    uint32_t alignment = USUAL_ALIGNMENT;
    if (tern_gguf_find(m->file, "general.alignment") != NULL) {
        const tern_status status = tern_gguf_u32(m->file, "general.alignment", &alignment, err);
        if (status != TERN_OK)
            return status;
    }
    for (size_t i = 0; i < tern_gguf_tensor_count(m->file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(m->file, i);
        const uint64_t left = t->bytes != 0 && t->extent > t->bytes ? t->extent - t->bytes : 0;
        if (left >= alignment)
            return tern_fail(err, TERN_ERR_STRICT,
                             "%s: strict: %" PRIu64 " bytes behind tensor %.*s belong to none",
                             tern_gguf_name(m->file), left,
                             (int)(t->name.size < 64 ? t->name.size : 64), t->name.data);
    }
    return TERN_OK;
}

/* Refuses codes whose meaning is a guess that does not fit their shares. */
static tern_status check_codes(const tern_model *m, tern_error *err) {
    return m->doubt[0] == '\0' ? TERN_OK
                               : tern_fail(err, TERN_ERR_STRICT, "%s: strict: %s",
                                           tern_gguf_name(m->file), m->doubt);
}

/* Refuses a guess of how text is cut: the default pre-tokenizer if the file names none, or the
 * longest match if the vocabulary has neither merges nor scores. */
static tern_status check_tokenizer(const tern_model *m, const tern_model_params *params,
                                   tern_error *err) {
    const bool guessed = m->tokenizer != NULL && params->pre_tokenizer == NULL &&
                         strcmp(tern_tokenizer_pre(m->tokenizer), "default") == 0 &&
                         tern_gguf_find(m->file, "tokenizer.ggml.pre") == NULL;
    if (guessed)
        return tern_fail(err, TERN_ERR_STRICT,
                         "%s: strict: the file names no pre-tokenizer, 'default' would stand in",
                         tern_gguf_name(m->file));
    if (m->tokenizer != NULL && strcmp(tern_tokenizer_kind(m->tokenizer), "longest match") == 0)
        return tern_fail(err, TERN_ERR_STRICT,
                         "%s: strict: the vocabulary has neither merges nor scores, the longest "
                         "match would stand in",
                         tern_tokenizer_file(m->tokenizer));
    return TERN_OK;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* True for a scalar kernel if the instruction set in use has others. */
static bool is_weak(const tern_model *m, const tern_kernel_row *kernel) {
    return !tern_kernel_is_native(m->guard.mask, kernel);
}

static tern_status weak_row(const tern_model *m, const tern_kernel_row *kernel, tern_error *err) {
    return tern_fail(err, TERN_ERR_STRICT, "%s: strict: no kernel of %s for %s, %s would stand in",
                     tern_gguf_name(m->file), tern_isa_of_mask(m->guard.mask),
                     tern_op_name(kernel->op), kernel->name);
}

/* Checks that a matrix of a block is quantized and has the layout that was asked for. */
static tern_status check_linear(const tern_model *m, const tern_linear *l, tern_error *err) {
    const tern_format_info *format = tern_format_describe(l->matrix.format);
    const tern_span name = l->tensor->name;
    const int size = (int)(name.size < 64 ? name.size : 64);
    const bool ternary =
        tern_layout_input(tern_format_layout(l->matrix.format)) == TERN_INPUT_TOKEN;
    if (tern_format_layout(l->matrix.format) == TERN_LAYOUT_ROWS)
        return tern_fail(
            err, TERN_ERR_STRICT,
            "%s: strict: tensor %.*s is %s, floats: there is no quantized kernel for it",
            tern_gguf_name(m->file), size, name.data, format->name);
    if (ternary && l->form != TERN_INPUT_TOKEN)
        return tern_fail(err, TERN_ERR_STRICT,
                         "%s: strict: tensor %.*s (%s) has several scales a row, layout %s cannot "
                         "hold it, %s would stand in",
                         tern_gguf_name(m->file), size, name.data, format->name,
                         tern_layout_name(m->ternary), tern_layout_name(l->matrix.layout));
    return TERN_OK;
}

static tern_status check_precision(const tern_model *m, tern_error *err) {
    return m->precision_refused ? tern_fail(err, TERN_ERR_STRICT, "%s: strict: %s",
                                            tern_gguf_name(m->file), tern_model_activations_note(m))
                                : TERN_OK;
}

static tern_status check_blocks(const tern_model *m, tern_error *err) {
    for (uint32_t n = 0; n < m->config.n_layer; n++)
        for (size_t i = 0; i < tern_block_linears(m->config.arch, m->layers[n].kind); i++) {
            const size_t at = tern_block_linear_at(m->config.arch, m->layers[n].kind, i);
            if (tern_block_matrix(at)->rows == TERN_SIZE_EXPERTS ||
                tern_block_matrix(at)->rows == TERN_SIZE_ONE)
                continue; /* a router is small, and files keep it in floats */
            const tern_status status = check_linear(m, tern_layer_linear(&m->layers[n], at), err);
            if (status != TERN_OK)
                return status;
        }
    return TERN_OK;
}

/* Checks every kernel that a session could use. */
static tern_status check_rows(const tern_model *m, tern_error *err) {
    static const tern_format caches[] = {TERN_FORMAT_F32, TERN_FORMAT_F16, TERN_FORMAT_Q8_0};
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        const tern_kernel_row *kernels[64];
        const size_t n = tern_model_kernels(m, caches[i], kernels, 64);
        for (size_t k = 0; k < n && k < 64; k++)
            if (is_weak(m, kernels[k]))
                return weak_row(m, kernels[k], err);
    }
    return TERN_OK;
}

/* ---- all ---------------------------------------------------------------------------------------
 */

tern_status tern_strict_plan(const tern_model *m, const tern_model_params *params,
                             tern_error *err) {
    const char *refused;
    tern_status status;
    if (tern_cpu_refused(&refused, 1) > 0)
        return tern_fail(err, TERN_ERR_STRICT,
                         "%s: strict: the processor announces %s, which does not work here: a "
                         "weaker set would stand in",
                         tern_gguf_name(m->file), refused);
    if ((status = check_metadata(m, err)) || (status = check_unused(m, err)) ||
        (status = check_claims(m, err)) || (status = check_codes(m, err)) ||
        (status = check_precision(m, err)) || (status = check_tokenizer(m, params, err)) ||
        (status = check_blocks(m, err)))
        return status;
    return check_rows(m, err);
}

tern_status tern_strict_loaded(const tern_model *m, tern_error *err) {
    if (m->guard.n_refused > 0)
        return tern_fail(err, TERN_ERR_STRICT,
                         "%s: strict: kernel %s gives wrong results on this machine (seen at %s): "
                         "another would stand in",
                         tern_gguf_name(m->file), m->guard.refused[0].row->name,
                         m->guard.refused[0].where);
    return check_rows(m, err);
}
