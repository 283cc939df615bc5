/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word_list.h"

/* The values that are allowed for a key; null is always allowed and means "none". */
typedef enum allowed {
    ANYTHING, /* hf_config.c reads it, or no weight and no product depends on it */
    OFF,      /* false or 0 */
    ON,       /* true */
    ONE,      /* 1 */
    WINDOW,   /* 0, or at least the context, or switched off by use_sliding_window */
    LAYERS,   /* a list of "full_attention" */
    EMPTY,    /* an empty list */
    NULL_ONLY
} allowed;

static const struct rule {
    const char *name;
    allowed value;
} rules[] = {
    /* keys that are read */
    {"architectures", ANYTHING},
    {"num_hidden_layers", ANYTHING},
    {"hidden_size", ANYTHING},
    {"intermediate_size", ANYTHING},
    {"num_attention_heads", ANYTHING},
    {"num_key_value_heads", ANYTHING},
    {"vocab_size", ANYTHING},
    {"max_position_embeddings", ANYTHING},
    {"head_dim", ANYTHING},
    {"rms_norm_eps", ANYTHING},
    {"layer_norm_eps", ANYTHING},
    {"type_vocab_size", ANYTHING},
    {"position_embedding_type", ANYTHING},
    {"rope_theta", ANYTHING},
    {"rope_scaling", ANYTHING},
    {"rope_parameters", ANYTHING},
    {"partial_rotary_factor", ANYTHING},
    {"moe_intermediate_size", ANYTHING},
    {"num_experts_per_tok", ANYTHING},
    {"norm_topk_prob", ANYTHING},
    {"quantization_config", ANYTHING},
    {"hidden_act", ANYTHING},
    {"hidden_activation", ANYTHING},
    {"tie_word_embeddings", ANYTHING},
    {"use_sliding_window", ANYTHING},
    /* the tensors decide: a bias or a norm without a place is refused */
    {"attention_bias", ANYTHING},
    {"mlp_bias", ANYTHING},
    {"qkv_bias", ANYTHING},
    {"use_bias", ANYTHING},
    {"attention_out_bias", ANYTHING},
    /* keys about training, sampling and the program that wrote the file */
    {"model_type", ANYTHING},
    {"torch_dtype", ANYTHING},
    {"dtype", ANYTHING},
    {"transformers_version", ANYTHING},
    {"transformers.js_config", ANYTHING},
    {"auto_map", ANYTHING},
    {"use_cache", ANYTHING},
    {"cache_implementation", ANYTHING},
    {"bos_token_id", ANYTHING},
    {"eos_token_id", ANYTHING},
    {"eod_token_id", ANYTHING},
    {"pad_token_id", ANYTHING},
    {"sep_token_id", ANYTHING},
    {"unk_token_id", ANYTHING},
    {"initializer_range", ANYTHING},
    {"attention_dropout", ANYTHING},
    {"hidden_dropout", ANYTHING},
    {"residual_dropout", ANYTHING},
    {"hidden_dropout_prob", ANYTHING},
    {"attention_probs_dropout_prob", ANYTHING},
    {"classifier_dropout", ANYTHING},
    {"sentence_transformers", ANYTHING}, /* what is done with scores after the head */
    {"sbert_ce_default_activation_function", ANYTHING},
    {"resid_pdrop", ANYTHING},
    {"embd_pdrop", ANYTHING},
    {"pretraining_tp", ANYTHING},
    {"gradient_checkpointing", ANYTHING},
    {"is_llama_config", ANYTHING},
    {"is_bitnet_config", ANYTHING},
    {"weight_bits", ANYTHING},
    {"input_bits", ANYTHING},
    {"max_window_layers", ANYTHING},
    {"router_aux_loss_coef", ANYTHING},
    {"output_router_logits", ANYTHING},
    {"experts_per_token", ANYTHING}, /* num_experts_per_tok and the context before YaRN again */
    {"initial_context_length", ANYTHING},
    {"sliding_window_pattern", ANYTHING},
    {"output_attentions", ANYTHING},
    {"output_hidden_states", ANYTHING},
    {"return_dict", ANYTHING},
    {"torchscript", ANYTHING},
    {"id2label", ANYTHING}, /* the head's shape counts */
    {"label2id", ANYTHING},
    {"problem_type", ANYTHING},
    {"is_decoder", ANYTHING},
    {"chunk_size_feed_forward", ANYTHING},
    {"output_past", ANYTHING},
    {"directionality", ANYTHING}, /* belongs to what BERT's authors put behind the encoder */
    {"pooler_fc_size", ANYTHING},
    {"pooler_num_attention_heads", ANYTHING},
    {"pooler_num_fc_layers", ANYTHING},
    {"pooler_size_per_head", ANYTHING},
    {"pooler_type", ANYTHING},
    {"temperature", ANYTHING},
    {"top_p", ANYTHING},
    {"top_k", ANYTHING},
    {"max_length", ANYTHING},
    {"unsloth_version", ANYTHING},
    {"mamba_ssm_dtype", ANYTHING},       /* of states */
    {"mtp_num_hidden_layers", ANYTHING}, /* blocks that predict further tokens are left out */
    {"mtp_use_dedicated_embeddings", ANYTHING},
    {"unsloth_fixed", ANYTHING},
    /* keys that would change the graph */
    {"sliding_window", WINDOW},
    {"attention_chunk_size", WINDOW},
    {"layer_types", LAYERS},
    {"is_causal", ON},
    {"use_bidirectional_attention", OFF},
    {"is_encoder_decoder", OFF},
    {"add_cross_attention", OFF},
    {"rotary_pct", ONE},
    {"rope_interleaved", OFF},
    {"use_mrope", OFF},
    {"use_qk_norm", OFF},
    {"qk_layernorm", OFF},
    {"use_parallel_residual", OFF},
    {"parallel_attn", OFF},
    {"alibi", OFF},
    {"clip_qkv", OFF},
    {"swiglu_limit", NULL_ONLY},
    {"swiglu_alpha", NULL_ONLY},
    {"attn_logit_softcapping", OFF},
    {"final_logit_softcapping", OFF},
    {"num_experts", OFF},
    {"shared_expert_intermediate_size", OFF},
    {"decoder_sparse_step", ONE},
    {"mlp_only_layers", EMPTY},
    {"num_local_experts", OFF},
    {"n_routed_experts", OFF},
    {"num_nextn_predict_layers", OFF},
    {"logit_scale", ONE},
    {"logits_scaling", ONE},
    {"embedding_multiplier", ONE},
    {"scale_emb", ONE},
    {"scale_depth", NULL_ONLY},
    {"dim_model_base", NULL_ONLY},
    {"residual_multiplier", ONE},
    {"attention_multiplier", NULL_ONLY},
    {"query_pre_attn_scalar", NULL_ONLY},
    {"rope_local_base_freq", NULL_ONLY},
    {"no_rope_layers", NULL_ONLY},
    {"no_rope_layer_interval", NULL_ONLY},
    {"hadamard_config", NULL_ONLY}, /* rotated weights */
    {"attn_output_gate", ON},
    {"full_attention_interval", NULL_ONLY},
    {"linear_conv_kernel_dim", NULL_ONLY},
    {"linear_key_head_dim", NULL_ONLY},
    {"linear_value_head_dim", NULL_ONLY},
    {"linear_num_key_heads", NULL_ONLY},
    {"linear_num_value_heads", NULL_ONLY},
};

static bool is_named(const tern_json_value *key, const char *name) {
    return key->text.size == strlen(name) && memcmp(key->text.data, name, key->text.size) == 0;
}

static const struct rule *find_rule(const tern_json_value *key) {
    static const struct rule private = {"_",
                                        ANYTHING}; /* transformers writes such keys for itself */
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (is_named(key, rules[i].name))
            return &rules[i];
    return key->text.size > 0 && key->text.data[0] == '_' ? &private : NULL;
}

/* A number, or a boolean as 0 or 1. */
static bool read_number(const tern_json_value *v, double *out) {
    char text[64];
    if (v->type == TERN_JSON_TRUE || v->type == TERN_JSON_FALSE) {
        *out = v->type == TERN_JSON_TRUE;
        return true;
    }
    if (v->type != TERN_JSON_NUMBER || v->text.size >= sizeof text)
        return false;
    memcpy(text, v->text.data, v->text.size);
    text[v->text.size] = '\0';
    *out = strtod(text, NULL);
    return true;
}

/* True if every layer attends to everything. */
static bool is_full_attention(const tern_json_value *v) {
    if (v->type != TERN_JSON_ARRAY)
        return false;
    for (size_t i = 1; i < v->size; i += v[i].size)
        if (!tern_json_is_string(v + i, "full_attention"))
            return false;
    return true;
}

static bool is_neutral(allowed kind, const tern_json_value *v, const tern_json_value *root,
                       uint32_t n_ctx) {
    const tern_json_value *window = tern_json_get(root, "use_sliding_window");
    const bool off = window != NULL && window->type == TERN_JSON_FALSE;
    double value;
    if (kind == ANYTHING || v->type == TERN_JSON_NULL)
        return true;
    if (kind == LAYERS)
        return is_full_attention(v);
    if (kind == EMPTY)
        return v->type == TERN_JSON_ARRAY && v->count == 0;
    if (kind == NULL_ONLY || !read_number(v, &value))
        return false;
    switch (kind) {
    case OFF:
        return value == 0.0;
    case WINDOW:
        return value == 0.0 || value >= n_ctx || off;
    default:
        return value == 1.0;
    }
}

static tern_status refuse(const char *path, const tern_json_value *key, const tern_json_value *v,
                          tern_error *err) {
    const int size = (int)(key->text.size < 64 ? key->text.size : 64);
    double value;
    if (v->type == TERN_JSON_NUMBER && read_number(v, &value)) {
        return tern_fail(err, TERN_ERR_CONFIG, "%s: \"%.*s\" is %g, which is not supported", path,
                         size, key->text.data, value);
    }
    return tern_fail(err, TERN_ERR_CONFIG, "%s: \"%.*s\" %s, which is not supported", path, size,
                     key->text.data,
                     v->type == TERN_JSON_TRUE    ? "is true"
                     : v->type == TERN_JSON_FALSE ? "is false"
                                                  : "is set");
}

/* True for keys that hf_config.c reads, if the architecture has what they describe. */
static bool is_read(const hf_config *c, const char *name) {
    static const char *const factors[] = {
        "logits_scaling", "embedding_multiplier", "residual_multiplier", "attention_multiplier",
        "scale_emb",      "scale_depth",          "dim_model_base"};
    static const char *const windows[] = {"sliding_window", "rope_local_base_freq"};
    if (c->arch->logit_times && strcmp(name, "logit_scale") == 0)
        return true;
    if (c->n_ff_shared > 0 && strcmp(name, "shared_expert_intermediate_size") == 0)
        return true;
    if (c->arch->soft_capped && text_ends_with(name, "_logit_softcapping"))
        return true;
    if (c->delta.n_states > 0 && (strncmp(name, "linear_", strlen("linear_")) == 0 ||
                                  strcmp(name, "full_attention_interval") == 0))
        return true;
    if (c->period > 0 && strcmp(name, "layer_types") == 0)
        return true;
    if (c->arch->stacked_folders && strncmp(name, "swiglu_", strlen("swiglu_")) == 0)
        return true;
    if (c->arch->second != NULL && !c->arch->second->windowed && strncmp(name, "no_rope_", 8) == 0)
        return true;
    if (c->windowed && strcmp(name, "sliding_window") == 0)
        return true;
    if (c->arch->gemma_folders && strcmp(name, "query_pre_attn_scalar") == 0)
        return true;
    for (size_t i = 0; c->window > 0 && c->period > 0 && i < sizeof windows / sizeof *windows; i++)
        if (strcmp(name, windows[i]) == 0)
            return true;
    if (c->n_expert > 0 &&
        (strcmp(name, "num_experts") == 0 || strcmp(name, "num_local_experts") == 0))
        return true;
    for (size_t i = 0; c->arch->own_factors && i < sizeof factors / sizeof *factors; i++)
        if (strcmp(name, factors[i]) == 0)
            return true;
    return false;
}

tern_status hf_keys_check(const char *path, const tern_json_value *root, const hf_config *c,
                          char *unknown, size_t size, tern_error *err) {
    size_t used = 0;
    unknown[0] = '\0';
    const size_t end = root->type == TERN_JSON_OBJECT ? root->size : 0;
    for (size_t i = 1; i < end;) {
        const tern_json_value *key = root + i, *v = key + 1;
        const struct rule *rule = find_rule(key);
        i += 1 + v->size;
        if (rule != NULL && !is_read(c, rule->name) && !is_neutral(rule->value, v, root, c->n_ctx))
            return refuse(path, key, v, err);
        if (rule == NULL && used + key->text.size + 3 < size) {
            used += (size_t)snprintf(unknown + used, size - used, "%s%.*s", used > 0 ? ", " : "",
                                     (int)key->text.size, key->text.data);
        }
    }
    return TERN_OK;
}
