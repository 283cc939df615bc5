/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_rest.h"

#include <string.h>

#include "authoring/convert/hf_fp4.h"
#include "base/word_list.h"

static bool is_number(safetensors_type type) {
    return type == SAFETENSORS_F32 || type == SAFETENSORS_F16 || type == SAFETENSORS_BF16 ||
           type == SAFETENSORS_F64;
}

tern_format hf_format_of(safetensors_type type) {
    return type == SAFETENSORS_F32   ? TERN_FORMAT_F32
           : type == SAFETENSORS_F16 ? TERN_FORMAT_F16
                                     : TERN_FORMAT_BF16;
}

bool hf_same_tensor(const safetensors_tensor *a, const safetensors_tensor *b) {
    return a->type == b->type && a->n_dims == b->n_dims &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0 && a->bytes == b->bytes &&
           memcmp(a->data, b->data, (size_t)a->bytes) == 0;
}

/* True for position numbers, and for the pooler, which turns the first state into a vector for
 * other tasks. */
static bool is_beside_encoder(const char *name) {
    return text_ends_with(name, "embeddings.position_ids") ||
           text_ends_with(name, "pooler.dense.weight") || text_ends_with(name, "pooler.dense.bias");
}

/* True for a bias of zeros, which changes nothing: some folders have them for every matrix. */
static bool is_zero_bias(const safetensors_tensor *t) {
    const uint8_t *bytes = t->data;
    return text_ends_with(t->name, "_proj.bias") && t->bytes > 0 && bytes[0] == 0 &&
           memcmp(bytes, bytes + 1, (size_t)t->bytes - 1) == 0;
}

tern_status hf_rest_check(const hf_config *c, const hf_files *files,
                          void (*skipped)(const safetensors_tensor *t), tern_error *err) {
    for (size_t i = 0; i < files->n; i++) {
        const safetensors_tensor *t = files->tensors[i];
        if (files->used[i] || text_ends_with(t->name, ".rotary_emb.inv_freq") || is_zero_bias(t) ||
            (c->arch->encodes && is_beside_encoder(t->name)) ||
            (c->delta.n_states > 0 && text_begins_with(t->name, "mtp.")) || /* predictors */
            (c->fp4 && hf_fp4_is_of_cache(t->name)))
            continue;
        if (is_number(t->type)) {
            return tern_fail(err, TERN_ERR_ARCH, "%s: tensor %s has no place in architecture %s",
                             t->file, t->name, c->arch->name);
        }
        skipped(t);
    }
    return TERN_OK;
}
