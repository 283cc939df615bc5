/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/config/unclaimed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word_list.h"
#include "runtime/model/config/factors.h"

/* ---- keys ---------------------------------------------------------------------------------- */

static const tern_key_rule rules[] = {
    {"block_count", TERN_KEY_READ, NULL},
    {"embedding_length", TERN_KEY_READ, NULL},
    {"feed_forward_length", TERN_KEY_READ, NULL},
    {"context_length", TERN_KEY_READ, NULL},
    {"attention.head_count", TERN_KEY_READ, NULL},
    {"attention.head_count_kv", TERN_KEY_READ, NULL},
    {"attention.key_length", TERN_KEY_READ, NULL},
    {"attention.value_length", TERN_KEY_READ, NULL},
    {"attention.layer_norm_rms_epsilon", TERN_KEY_READ, NULL},
    {"attention.scale", TERN_KEY_READ, NULL},
    {"rope.dimension_count", TERN_KEY_READ, NULL},
    {"rope.freq_base", TERN_KEY_READ, NULL},
    {"rope.scaling.type", TERN_KEY_READ, NULL},
    {"rope.scaling.factor", TERN_KEY_READ, NULL},
    {"rope.scale_linear", TERN_KEY_READ, NULL},
    {"rope.scaling.original_context_length", TERN_KEY_READ, NULL},
    {"rope.scaling.attn_factor", TERN_KEY_READ, NULL},
    {"rope.scaling.yarn_attn_factor", TERN_KEY_READ, NULL},
    {"rope.scaling.yarn_ext_factor", TERN_KEY_READ, NULL},
    {"rope.scaling.yarn_beta_fast", TERN_KEY_READ, NULL},
    {"rope.scaling.yarn_beta_slow", TERN_KEY_READ, NULL},
    {"hidden_activation", TERN_KEY_READ, NULL},
    {"pooling_type", TERN_KEY_READ, NULL},
    {"is_matryoshka", TERN_KEY_READ, NULL},
    {"matryoshka_dimensions", TERN_KEY_READ, NULL},
    /* the shapes of tensors decide instead */
    {"vocab_size", TERN_KEY_TELLS, NULL},
    {"embedding_length_out", TERN_KEY_TELLS, NULL},
    /* epsilons of other norms: config.c reads LayerNorm's for encoders; no graph has norms of
     * groups */
    {"attention.layer_norm_epsilon", TERN_KEY_TELLS, NULL},
    {"attention.group_norm_epsilon", TERN_KEY_TELLS, NULL},
    /* says if the model was trained further after its angles were scaled */
    {"rope.scaling.finetuned", TERN_KEY_TELLS, NULL},
    {"rope.scaling.yarn_log_multiplier", TERN_KEY_ZERO, "another attention factor of yarn"},
    {"rope.scaling.alpha", TERN_KEY_FACTOR, "scaling of the rotation's base"},
    {"rope.dimension_sections", TERN_KEY_NEVER, "rotation by several positions"},
    /* keys of windows, which mean nothing without attention.sliding_window */
    {"attention.sliding_window_pattern", TERN_KEY_TELLS, NULL},
    {"attention.key_length_swa", TERN_KEY_TELLS, NULL},
    {"attention.value_length_swa", TERN_KEY_TELLS, NULL},
    {"rope.dimension_count_swa", TERN_KEY_TELLS, NULL},
    {"rope.freq_base_swa", TERN_KEY_TELLS, NULL},
    {"attention.sliding_window", TERN_KEY_WINDOW, "a window of attention"},
    {"attention.chunk_size", TERN_KEY_WINDOW, "attention in chunks"},
    {"attention.recurrent_layers", TERN_KEY_TELLS, NULL},
    {"full_attention_interval", TERN_KEY_FACTOR, "attention in some layers only"},
    {"attention.indexer.", TERN_KEY_NEVER, "sparse attention"},
    {"attention.causal", TERN_KEY_TRUE, "attention to later tokens"},
    {"attention.clamp_kqv", TERN_KEY_ZERO, "clamping of queries, keys and values"},
    {"attention.max_alibi_bias", TERN_KEY_ZERO, "a bias by distance"},
    {"attention.relative_buckets_count", TERN_KEY_ZERO, "a bias by distance"},
    {"attention.temperature_length", TERN_KEY_ZERO, "a temperature of attention"},
    {"attention.temperature_scale", TERN_KEY_ZERO, "a temperature of attention"},
    {"attention.output_scale", TERN_KEY_FACTOR, "a factor of attention's result"},
    {"attention.value_scale", TERN_KEY_FACTOR, "a factor of values"},
    {"attention.q_lora_rank", TERN_KEY_ZERO, "latent attention"},
    {"attention.kv_lora_rank", TERN_KEY_ZERO, "latent attention"},
    {"attention.key_length_mla", TERN_KEY_ZERO, "latent attention"},
    {"attention.value_length_mla", TERN_KEY_ZERO, "latent attention"},
    {"attention.shared_kv_layers", TERN_KEY_ZERO, "layers that share keys and values"},
    {"attention.group_norm_groups", TERN_KEY_ZERO, "norms of groups"},
    {"attn_logit_softcapping", TERN_KEY_ZERO, "a soft bound of attention"},
    {"final_logit_softcapping", TERN_KEY_ZERO, "a soft bound of logits"},
    {"router_logit_softcapping", TERN_KEY_ZERO, "experts"},
    {"logit_scale", TERN_KEY_FACTOR, "a factor of logits"},
    {"residual_scale", TERN_KEY_FACTOR, "a factor of each block's result"},
    {"embedding_scale", TERN_KEY_FACTOR, "a factor of embeddings"},
    {"use_parallel_residual", TERN_KEY_FALSE, "attention and feed-forward side by side"},
    {"swin_norm", TERN_KEY_FALSE, "norms after the matrices"},
    {"expert_count", TERN_KEY_ZERO, "experts"},
    {"expert_shared_count", TERN_KEY_ZERO, "experts"},
    /* keys of experts, which mean nothing without expert_count */
    {"expert_used_count", TERN_KEY_TELLS, NULL},
    {"expert_feed_forward_length", TERN_KEY_TELLS, NULL},
    {"expert_shared_feed_forward_length", TERN_KEY_TELLS, NULL},
    {"expert_chunk_feed_forward_length", TERN_KEY_TELLS, NULL},
    {"expert_group_count", TERN_KEY_TELLS, NULL},
    {"expert_group_used_count", TERN_KEY_TELLS, NULL},
    {"expert_group_scale", TERN_KEY_TELLS, NULL},
    {"experts_per_group", TERN_KEY_TELLS, NULL},
    {"interleave_moe_layer_step", TERN_KEY_TELLS, NULL},
    {"moe_every_n_layers", TERN_KEY_TELLS, NULL},
    {"moe_latent_size", TERN_KEY_TELLS, NULL},
    {"expert_weights_scale", TERN_KEY_TELLS, NULL},
    {"expert_weights_norm", TERN_KEY_TELLS, NULL},
    {"expert_gating_func", TERN_KEY_TELLS, NULL},
    {"leading_dense_block_count", TERN_KEY_TELLS, NULL},
    {"nextn_predict_layers", TERN_KEY_ZERO, "layers that predict further tokens"},
    {"embedding_length_per_layer_input", TERN_KEY_ZERO, "embeddings of each layer"},
    {"n_deepstack_layers", TERN_KEY_ZERO, "embeddings of pictures"},
    {"decoder_block_count", TERN_KEY_ZERO, "a decoder beside an encoder"},
    {"rescale_every_n_layers", TERN_KEY_ZERO, "scaling between layers"},
    {"token_shift_count", TERN_KEY_ZERO, "recurrence"},
    {"activation_sparsity_scale", TERN_KEY_NEVER, "sparse activations"},
    {"swiglu_clamp_exp", TERN_KEY_NEVER, "clamping of activations"},
    {"swiglu_clamp_shexp", TERN_KEY_NEVER, "clamping of activations"},
    {"altup.", TERN_KEY_NEVER, "several residual streams"},
    {"classifier.output_labels", TERN_KEY_TELLS, NULL}, /* read_pooling.c counts those of a head */
    {"classifier.", TERN_KEY_NEVER, "classification"},
    {"convnext.", TERN_KEY_NEVER, "convolution"},
    {"kda.", TERN_KEY_NEVER, "recurrence"},
    {"posnet.", TERN_KEY_NEVER, "convolution"},
    {"shortconv.", TERN_KEY_NEVER, "convolution"},
    /* the five that delta nets have */
    {"ssm.conv_kernel", TERN_KEY_NEVER, "state spaces"},
    {"ssm.state_size", TERN_KEY_NEVER, "state spaces"},
    {"ssm.group_count", TERN_KEY_NEVER, "state spaces"},
    {"ssm.time_step_rank", TERN_KEY_NEVER, "state spaces"},
    {"ssm.inner_size", TERN_KEY_NEVER, "state spaces"},
    {"ssm.", TERN_KEY_NEVER, "state spaces"},
    {"wkv.", TERN_KEY_NEVER, "recurrence"},
    {"tensor_data_layout", TERN_KEY_LAYOUT, "another order of rows"},
};

const tern_key_rule *tern_key_rules(size_t *n) {
    *n = sizeof rules / sizeof *rules;
    return rules;
}

static bool equals(tern_span text, const char *name) {
    return strlen(name) == text.size && memcmp(name, text.data, text.size) == 0;
}

static const tern_key_rule *find_rule(tern_span suffix) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const char *name = rules[i].suffix;
        const bool family = name[strlen(name) - 1] == '.';
        if (family ? tern_span_begins_with(suffix, name) : equals(suffix, name))
            return &rules[i];
    }
    return NULL;
}

/* Reads a number, or a boolean as 0 or 1. False: it is neither, or a negative integer. */
static bool read_number(const tern_gguf *file, const char *key, double *out) {
    uint32_t whole;
    float real;
    bool flag;
    if (tern_gguf_u32(file, key, &whole, NULL) == TERN_OK)
        *out = whole;
    else if (tern_gguf_f32(file, key, &real, NULL) == TERN_OK)
        *out = (double)real;
    else if (tern_gguf_bool(file, key, &flag, NULL) == TERN_OK)
        *out = flag;
    else
        return false;
    return true;
}

static bool is_neutral(tern_key_kind kind, double value, const tern_config *c) {
    switch (kind) {
    case TERN_KEY_ZERO:
    case TERN_KEY_FALSE:
        return value == 0.0;
    case TERN_KEY_TRUE:
        return value == 1.0;
    case TERN_KEY_FACTOR:
        return value == 0.0 || value == 1.0;
    case TERN_KEY_WINDOW:
        return value == 0.0 || value >= c->n_ctx;
    default:
        return false;
    }
}

static bool is_known_layout(const tern_gguf *file, const char *key) {
    tern_span name;
    return tern_gguf_string(file, key, &name, NULL) == TERN_OK &&
           (equals(name, "Meta AI original pth") || equals(name, "reference"));
}

/* True if the configuration reads and checks the key for this architecture: windows, factors,
 * experts. */
static bool is_own(const tern_config *c, const tern_key_rule *rule) {
    static const char *const factors[] = {"embedding_scale", "residual_scale", "logit_scale"};
    static const char *const deltas[] = {
        "full_attention_interval", "ssm.conv_kernel",        "ssm.state_size",
        "ssm.group_count",         "ssm.time_step_rank",     "ssm.inner_size",
        "nextn_predict_layers",    "rope.dimension_sections"}; /* all of them turn by the
                                                                  position of a text */
    const bool windowed = c->arch->second != NULL && c->arch->second->windowed;
    if (strcmp(rule->suffix, "expert_count") == 0)
        return (c->arch->has & TERN_HAS_EXPERTS) != 0;
    if (strcmp(rule->suffix, "swiglu_clamp_exp") == 0)
        return c->arch->experts.clamp > 0.0f;
    for (size_t i = 0; tern_block_is_delta(c->arch, 1) && i < sizeof deltas / sizeof *deltas; i++)
        if (strcmp(rule->suffix, deltas[i]) == 0)
            return true;
    if (c->arch->logit_times && strcmp(rule->suffix, "logit_scale") == 0)
        return true;
    if (strcmp(rule->suffix, "attn_logit_softcapping") == 0 ||
        strcmp(rule->suffix, "final_logit_softcapping") == 0)
        return c->arch->soft_capped;
    if (strcmp(rule->suffix, "expert_shared_count") == 0)
        return (c->arch->has & TERN_HAS_SHARED_EXPERT) != 0;
    if (strcmp(rule->suffix, "attention.sliding_window") == 0)
        return windowed || c->arch->may_window;
    if (strcmp(rule->suffix, "attention.temperature_scale") == 0 ||
        strcmp(rule->suffix, "rope.scaling.yarn_log_multiplier") == 0)
        return c->arch->warmed;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (strcmp(rule->suffix, factors[i]) == 0)
            return c->arch->own_factors;
    return false;
}

static tern_status check_rule(const tern_gguf *file, const tern_config *c, tern_span name,
                              const tern_key_rule *rule, tern_error *err) {
    char key[128], shown[40] = "set";
    double value;
    if (rule->kind == TERN_KEY_READ || rule->kind == TERN_KEY_TELLS || is_own(c, rule))
        return TERN_OK;
    snprintf(key, sizeof key, "%.*s", (int)name.size, name.data);
    if (rule->kind == TERN_KEY_LAYOUT && is_known_layout(file, key))
        return TERN_OK;
    if (rule->kind == TERN_KEY_TRUE && c->arch->encodes) {
        static const tern_key_rule both_ways = {"attention.causal", TERN_KEY_FALSE,
                                                "attention to earlier tokens alone"};
        rule = &both_ways;
    }
    if (read_number(file, key, &value)) {
        if (is_neutral(rule->kind, value, c))
            return TERN_OK;
        snprintf(shown, sizeof shown, "%g", value);
    }
    return tern_fail(err, TERN_ERR_CONFIG, "%s: key %s is %s: %s is not supported",
                     tern_gguf_name(file), key, shown, rule->what);
}

/* ---- lists --------------------------------------------------------------------------------- */

static tern_status list(tern_unused *out, const char *kind, tern_span name, tern_error *err) {
    tern_error text = {.status = TERN_OK}; /* makes the name printable */
    (void)tern_fail(&text, TERN_OK, "%s %.*s", kind, (int)(name.size < 80 ? name.size : 80),
                    name.data);
    char **names = realloc(out->names, (out->n + 1) * sizeof *names);
    char *copy = strdup(text.message);
    if (names != NULL)
        out->names = names;
    if (names == NULL || copy == NULL) {
        free(copy);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a list of names");
    }
    out->names[out->n++] = copy;
    return TERN_OK;
}

void tern_unused_free(tern_unused *list) {
    for (size_t i = 0; i < list->n; i++)
        free(list->names[i]);
    free(list->names);
    *list = (tern_unused){.n = 0};
}

static tern_status check_keys(const tern_gguf *file, const tern_config *c, tern_unused *out,
                              tern_error *err) {
    const size_t prefix = strlen(c->arch->name) + 1;
    for (size_t i = 0; i < tern_gguf_value_count(file); i++) {
        const tern_span key = tern_gguf_value_at(file, i)->key;
        if (key.size < prefix || !tern_span_begins_with(key, c->arch->name) ||
            key.data[prefix - 1] != '.')
            continue; /* about the tokenizer or the file's makers, not the graph */
        const tern_span suffix = {.data = key.data + prefix, .size = key.size - prefix};
        const tern_key_rule *rule = find_rule(suffix);
        const tern_status status =
            rule != NULL ? check_rule(file, c, key, rule, err) : list(out, "key", key, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* ---- tensors ------------------------------------------------------------------------------- */

/* Beginnings of names that tensors of a graph have. */
static const char *const graph_names[] = {"blk.",          "output",      "token_embd", "rope_",
                                          "position_embd", "token_types", "cls",        "enc.",
                                          "dec.",          "nextn",       "per_layer_", NULL};

static bool is_listed(tern_span name, const char *const *names) {
    for (; *names != NULL; names++)
        if (equals(name, *names))
            return true;
    return false;
}

static bool is_of_graph(tern_span name) {
    for (const char *const *n = graph_names; *n != NULL; n++)
        if (tern_span_begins_with(name, *n))
            return true;
    return false;
}

/* Reads the number of a block from "blk.<n>.<suffix>". Leading zeros are refused. */
static bool read_block(tern_span name, uint32_t *block, tern_span *suffix) {
    size_t at = strlen("blk.");
    const size_t first = at;
    uint32_t n = 0;
    while (at < name.size && at < first + 9 && name.data[at] >= '0' && name.data[at] <= '9')
        n = 10 * n + (uint32_t)(name.data[at++] - '0');
    if (at == first || (at > first + 1 && name.data[first] == '0') || at == name.size ||
        name.data[at] != '.')
        return false;
    *block = n;
    *suffix = (tern_span){.data = name.data + at + 1, .size = name.size - at - 1};
    return true;
}

/* True for a factor of that matrix, or of what it reads. */
static bool is_factor_of(tern_span name, const char *matrix) {
    tern_span stem;
    return tern_factor_of_name(name, &stem) != TERN_FACTOR_NONE &&
           strncmp(matrix, stem.data, stem.size) == 0 && strcmp(matrix + stem.size, "weight") == 0;
}

/* True for tensors of the block's table, for factors of its matrices, and for rotation tables,
 * which repeat the metadata. */
static bool is_block_tensor(tern_span suffix, const tern_arch *arch, uint32_t kind) {
    size_t n;
    const tern_block_tensor *tensors = tern_block_tensors(&n);
    for (size_t i = 0; i < n; i++) {
        const tern_block_tensor *t = &tensors[i];
        if ((equals(suffix, t->name) ||
             (t->kind == TERN_BLOCK_MATRIX && is_factor_of(suffix, t->name))) &&
            tern_block_has_in(arch, kind, t))
            return true;
    }
    return tern_span_begins_with(suffix, "attn_rot_embd");
}

/* True for the head, and for factors of the one that the file has. */
static bool is_of_head(const tern_gguf *file, tern_span name) {
    static const char head[] = "output.weight";
    return equals(name, head) ||
           (is_factor_of(name, head) && tern_gguf_find_tensor(file, head) != NULL);
}

static bool is_used(const tern_gguf *file, tern_span name, const tern_config *c) {
    static const char *const outside[] = {"token_embd.weight",        "output_norm.weight",
                                          "rope_freqs.weight",        "rope_factors_short.weight",
                                          "rope_factors_long.weight", NULL};
    uint32_t block;
    tern_span suffix;
    static const char *const of_encoders[] = {"position_embd.weight", "token_types.weight",
                                              "token_embd_norm.weight", "token_embd_norm.bias",
                                              NULL};
    static const char *const of_heads[] = {TERN_RANK_DENSE, TERN_RANK_DENSE_BIAS, TERN_RANK_OUT,
                                           TERN_RANK_OUT_BIAS, NULL};
    if (!tern_span_begins_with(name, "blk."))
        return (is_listed(name, outside) &&
                !(c->arch->encodes && !equals(name, "token_embd.weight"))) ||
               (c->arch->encodes && is_listed(name, of_encoders)) ||
               (c->ranks && is_listed(name, of_heads)) ||
               (!c->arch->embedding_head && is_of_head(file, name));
    return read_block(name, &block, &suffix) && block < c->n_layer &&
           is_block_tensor(suffix, c->arch, tern_config_kind_of(c, block));
}

/* Unsupported features, by the names of their tensors: how they begin, or a part of names in
 * blocks. */
static const struct {
    const char *part;
    const char *what;
    bool beginning;
} others[] = {
    {"v.", "a vision tower", true},
    {"mm.", "a vision tower", true},
    {"vision_", "a vision tower", true},
    {"a.", "a tower of sound", true},
    {"_exps", "experts", false},
    {"_shexp", "experts", false},
    {"ffn_gate_inp", "experts", false},
    {"ssm_", "state spaces or delta nets", false},
    {"time_mix", "recurrence", false},
    {"shortconv", "convolution", false},
    {"attn_kv_a", "latent attention", false},
    {"attn_qkv", "matrices of q, k and v in one", false},
};

/* The unsupported feature that a tensor belongs to; NULL: none that is known. */
static const char *owner_of(tern_span name) {
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *part = others[i].part;
        const bool found = others[i].beginning
                               ? tern_span_begins_with(name, part)
                               : tern_span_begins_with(name, "blk.") &&
                                     memmem(name.data, name.size, part, strlen(part)) != NULL;
        if (found)
            return others[i].what;
    }
    return NULL;
}

static tern_status refuse(const tern_gguf *file, const tern_config *c, tern_span name,
                          tern_error *err) {
    const int size = (int)(name.size < 64 ? name.size : 64);
    uint32_t block;
    tern_span suffix, stem;
    if (tern_span_begins_with(name, "blk.") && read_block(name, &block, &suffix) &&
        block >= c->n_layer)
        return tern_fail(err, TERN_ERR_ARCH,
                         "%s: tensor %.*s is of block %u, but %s.block_count is %u",
                         tern_gguf_name(file), size, name.data, block, c->arch->name, c->n_layer);
    if (owner_of(name) != NULL)
        return tern_fail(err, TERN_ERR_ARCH,
                         "%s: tensor %.*s belongs to %s, which is not supported",
                         tern_gguf_name(file), size, name.data, owner_of(name));
    if (tern_factor_of_name(name, &stem) != TERN_FACTOR_NONE)
        return tern_fail(err, TERN_ERR_ARCH,
                         "%s: tensor %.*s is a factor, as files in NVFP4 have it, but the model "
                         "multiplies by no matrix %.*sweight",
                         tern_gguf_name(file), size, name.data,
                         (int)(stem.size < 64 ? stem.size : 64), stem.data);
    return tern_fail(err, TERN_ERR_ARCH, "%s: architecture %s does not use tensor %.*s",
                     tern_gguf_name(file), c->arch->name, size, name.data);
}

/* True if a separate head is a copy of the embedding, which is the head in these architectures. */
static bool is_embedding_again(const tern_gguf *file, const tern_gguf_tensor *t) {
    const tern_gguf_tensor *e = tern_gguf_find_tensor(file, "token_embd.weight");
    return e != NULL && e->type == t->type && e->bytes == t->bytes && t->bytes > 0 &&
           memcmp(e->data, t->data, (size_t)t->bytes) == 0;
}

/* True for tensors of blocks that predict further tokens, which are left out. */
static bool is_of_predictor(tern_span name, const tern_config *c) {
    uint32_t block;
    tern_span suffix;
    return tern_span_begins_with(name, "blk.") && read_block(name, &block, &suffix) &&
           block >= c->n_layer && block - c->n_layer < c->n_predictors;
}

static tern_status check_tensors(const tern_gguf *file, const tern_config *c, tern_unused *out,
                                 tern_error *err) {
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_gguf_tensor *t = tern_gguf_tensor_at(file, i);
        /*
         * Programs that made these files wrote a head and never read it: the embedding is the head.
         */
        const bool spare = (c->arch->embedding_head && equals(t->name, "output.weight")) ||
                           is_of_predictor(t->name, c);
        if (is_used(file, t->name, c) || (spare && is_embedding_again(file, t)))
            continue;
        const tern_status status = (is_of_graph(t->name) || owner_of(t->name) != NULL) && !spare
                                       ? refuse(file, c, t->name, err)
                                       : list(out, "tensor", t->name, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

tern_status tern_unused_find(const tern_gguf *file, const tern_config *c, tern_unused *out,
                             tern_error *err) {
    const tern_status status = check_keys(file, c, out, err);
    return status == TERN_OK ? check_tensors(file, c, out, err) : status;
}
