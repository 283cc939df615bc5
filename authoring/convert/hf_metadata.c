/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_metadata.h"

#include <stdio.h>

typedef struct keys {
    tern_gguf_writer *w;
    const char *architecture;
    char name[128];
} keys;

static const char *key(keys *k, const char *suffix) {
    (void)snprintf(k->name, sizeof k->name, "%s.%s", k->architecture, suffix);
    return k->name;
}

static void put_u32(keys *k, const char *suffix, uint32_t value) {
    tern_gguf_put_u32(k->w, key(k, suffix), value);
}

static void put_f32(keys *k, const char *suffix, float value) {
    tern_gguf_put_f32(k->w, key(k, suffix), value);
}

static void put_encoder(keys *k, const hf_config *c) {
    put_u32(k, "attention.head_count", c->n_head);
    put_f32(k, "attention.layer_norm_epsilon", c->norm_eps);
    tern_gguf_put_bool(k->w, key(k, "attention.causal"), false);
    tern_gguf_put_u32(k->w, "tokenizer.ggml.token_type_count", c->n_types);
    if (c->ranks && c->other_class) /* for llama.cpp: two tokens stand between texts of a pair */
        tern_gguf_put_bool(k->w, "tokenizer.ggml.add_sep_token", true);
}

static void put_deltas(keys *k, const hf_config *c) {
    put_u32(k, "full_attention_interval", c->period);
    put_u32(k, "ssm.conv_kernel", c->delta.n_taps);
    put_u32(k, "ssm.state_size", c->delta.state_dim);
    put_u32(k, "ssm.group_count", c->delta.n_keys);
    put_u32(k, "ssm.time_step_rank", c->delta.n_states);
    put_u32(k, "ssm.inner_size", (uint32_t)tern_delta_inner(&c->delta));
}

static void put_decoder(keys *k, const hf_config *c) {
    put_u32(k, "rope.dimension_count", c->n_rot);
    put_f32(k, "rope.freq_base", c->rope_base);
    if (c->rope_linear != 1.0f) {
        tern_gguf_put_string(k->w, key(k, "rope.scaling.type"), "linear");
        put_f32(k, "rope.scaling.factor", c->rope_linear);
    }
    if (c->yarn.factor > 0.0f) {
        tern_gguf_put_string(k->w, key(k, "rope.scaling.type"), "yarn");
        put_f32(k, "rope.scaling.factor", c->yarn.factor);
        put_u32(k, "rope.scaling.original_context_length", (uint32_t)c->yarn.original);
        put_f32(k, "rope.scaling.yarn_beta_fast", c->yarn.beta_fast);
        put_f32(k, "rope.scaling.yarn_beta_slow", c->yarn.beta_slow);
        if (c->yarn_less > 0.0f)
            put_f32(k, "rope.scaling.yarn_log_multiplier", c->yarn_less);
    }
    put_u32(k, "attention.head_count", c->n_head);
    put_u32(k, "attention.head_count_kv", c->n_head_kv);
    put_u32(k, "attention.key_length", c->head_dim);
    put_u32(k, "attention.value_length", c->head_dim);
    put_f32(k,
            c->arch->layer_norms ? "attention.layer_norm_epsilon"
                                 : "attention.layer_norm_rms_epsilon",
            c->norm_eps);
    if (c->arch->logit_times)
        put_f32(k, "logit_scale", c->logit_divisor);
    if (c->attention_scale > 0.0f)
        put_f32(k, "attention.scale", c->attention_scale);
    if (c->arch->soft_capped) {
        put_f32(k, "attn_logit_softcapping", c->attention_cap);
        put_f32(k, "final_logit_softcapping", c->logit_cap);
    }
    if (c->warming > 0.0f)
        put_f32(k, "attention.temperature_scale", c->warming);
    if (c->window > 0)
        put_u32(k, "attention.sliding_window", c->window);
    if (c->delta.n_states > 0)
        put_deltas(k, c);
    else if (c->period > 0) {
        put_u32(k, "attention.sliding_window_pattern", c->period);
        if (c->window_base > 0.0f)
            put_f32(k, "rope.freq_base_swa", c->window_base);
    }
    if (c->n_expert > 0) {
        put_u32(k, "expert_feed_forward_length", c->n_ff);
        if (c->n_ff_shared > 0)
            put_u32(k, "expert_shared_feed_forward_length", c->n_ff_shared);
        put_u32(k, "expert_count", c->n_expert);
        put_u32(k, "expert_used_count", c->n_used);
        tern_gguf_put_bool(k->w, key(k, "expert_weights_norm"), c->expert_norm);
    }
    if (c->arch->own_factors) {
        put_f32(k, "embedding_scale", c->embedding_scale);
        put_f32(k, "residual_scale", c->block_scale);
        put_f32(k, "logit_scale", c->logit_divisor);
    }
}

void hf_metadata_put(tern_gguf_writer *w, const hf_config *c, const char *name,
                     uint32_t file_type) {
    keys k = {.w = w, .architecture = c->arch->name};
    tern_gguf_put_string(w, "general.architecture", c->arch->name);
    tern_gguf_put_string(w, "general.name", name);
    put_u32(&k, "vocab_size", c->n_vocab);
    put_u32(&k, "context_length", c->n_ctx);
    put_u32(&k, "embedding_length", c->n_embd);
    put_u32(&k, "block_count", c->n_layer);
    put_u32(&k, "feed_forward_length", c->n_ff);
    if (c->arch->encodes)
        put_encoder(&k, c);
    else
        put_decoder(&k, c);
    if (c->pooling != TERN_POOLING_NONE)
        put_u32(&k, "pooling_type", (uint32_t)c->pooling);
    tern_gguf_put_u32(w, "general.file_type", file_type);
    tern_gguf_put_u32(w, "general.quantization_version", 2);
}
