/* SPDX-License-Identifier: Apache-2.0 */

/* Reads what a file says of its experts. */

#include <stdio.h>
#include <string.h>

#include "runtime/model/config/internal.h"

enum { SOFTMAX = 1, MAX_WIDTH = 65535 };

/*
 * Features of graphs with experts that tern does not have, by keys that must not be above `most`.
 */
static const struct {
    const char *suffix;
    uint32_t most;
    const char *what;
} others[] = {
    {"expert_shared_count", 1, "several experts for all tokens"},
    {"expert_group_count", 1, "groups of experts"},
    {"leading_dense_block_count", 0, "layers without experts"},
    {"interleave_moe_layer_step", 1, "layers without experts"},
    {"moe_every_n_layers", 1, "layers without experts"},
    {"moe_latent_size", 0, "experts of another width than the model's"},
    {"expert_chunk_feed_forward_length", 0, "experts in chunks"},
    {"expert_gating_func", SOFTMAX, "a router without softmax"},
};

static tern_status check_others(const tern_gguf *file, const tern_config *c, tern_error *err) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint32_t value;
        char key[TERN_KEY_BYTES];
        snprintf(key, sizeof key, "%s.%s", c->arch->name, others[i].suffix);
        if (tern_gguf_find(file, key) == NULL)
            continue;
        const tern_status status = tern_gguf_u32(file, key, &value, err);
        if (status != TERN_OK)
            return status;
        if (value > others[i].most)
            return tern_fail(err, TERN_ERR_CONFIG, "%s: key %s is %u: %s: not supported",
                             tern_gguf_name(file), key, value, others[i].what);
    }
    return TERN_OK;
}

static tern_status read_norm(const tern_gguf *file, tern_config *c, tern_error *err) {
    char key[TERN_KEY_BYTES];
    snprintf(key, sizeof key, "%s.expert_weights_norm", c->arch->name);
    c->expert_norm = c->arch->experts.norm;
    return tern_gguf_find(file, key) != NULL ? tern_gguf_bool(file, key, &c->expert_norm, err)
                                             : TERN_OK;
}

/* Reads the bound of gates, which must be the same in all layers: one number, or one for each
 * layer. */
static tern_status read_clamp(const tern_gguf *file, tern_config *c, tern_error *err) {
    static const char suffix[] = "swiglu_clamp_exp";
    const tern_gguf_value *each;
    char key[TERN_KEY_BYTES];
    c->expert_clamp = c->arch->experts.clamp;
    if (c->expert_clamp == 0.0f)
        return TERN_OK; /* unclaimed.c refuses a file that has the key */
    snprintf(key, sizeof key, "%s.%s", c->arch->name, suffix);
    if (tern_gguf_array(file, key, TERN_GGUF_F32, &each, NULL) != TERN_OK)
        return tern_config_f32(file, c->arch, suffix, c->expert_clamp, 0.0f, 1e30f,
                               &c->expert_clamp, err);
    for (size_t i = 0; i < each->count; i++) {
        float clamp;
        memcpy(&clamp, each->data + i * sizeof clamp, sizeof clamp);
        if (each->count != c->n_layer || !(clamp >= 0.0f) || (i > 0 && clamp != c->expert_clamp))
            return tern_fail(err, TERN_ERR_CONFIG,
                             "%s: key %s is not supported: it is not one number for all %u layers",
                             tern_gguf_name(file), key, c->n_layer);
        c->expert_clamp = clamp;
    }
    return TERN_OK;
}

/* Reads the width of the expert that all tokens take, which is that of a dense block unless the
 * file says another. */
static tern_status read_shared(const tern_gguf *file, tern_config *c, tern_error *err) {
    uint32_t usual = 0;
    if ((c->arch->has & TERN_HAS_SHARED_EXPERT) == 0)
        return TERN_OK;
    const tern_status s =
        tern_config_u32(file, c->arch, "feed_forward_length", c->n_ff, 1, MAX_WIDTH, &usual, err);
    return s != TERN_OK ? s
                        : tern_config_u32(file, c->arch, "expert_shared_feed_forward_length", usual,
                                          1, MAX_WIDTH, &c->n_ff_shared, err);
}

tern_status tern_config_experts(const tern_gguf *file, tern_config *c, tern_error *err) {
    tern_status s;
    if ((c->arch->has & TERN_HAS_EXPERTS) == 0)
        return TERN_OK;
    if ((s = tern_config_u32(file, c->arch, "expert_count", 0, 1, TERN_MAX_EXPERTS, &c->n_expert,
                             err)) ||
        (s = tern_config_u32(file, c->arch, "expert_used_count", 0, 1, c->n_expert, &c->n_used,
                             err)) ||
        (s = tern_config_f32(file, c->arch, "expert_weights_scale", 1.0f, 0.0f, 1e4f,
                             &c->expert_scale, err)) ||
        (s = read_shared(file, c, err)) || (s = read_norm(file, c, err)) ||
        (s = read_clamp(file, c, err)))
        return s;
    if (c->expert_scale == 0.0f) /* some files say 0 for no factor */
        c->expert_scale = 1.0f;
    return check_others(file, c, err);
}
