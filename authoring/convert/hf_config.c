/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/convert/hf_keys.h"
#include "authoring/convert/hf_pooling.h"
#include "authoring/convert/hf_quantization.h"
#include "authoring/convert/hf_reading.h"
#include "base/word_list.h"
#include "runtime/model/config/config.h"

enum { CONFIG_BYTES = 1 << 24, PATH_BYTES = 4096 };

/* ---- parts of the file ----------------------------------------------------------------------- */

/* True if a name is that of a class without its head: Qwen3Model for Qwen3ForCausalLM. */
static bool is_headless(const tern_json_value *name, const char *class) {
    static const char head[] = "ForCausalLM", *const ends[] = {"Model", "TextModel"};
    const size_t n = strlen(class);
    char base[64];
    if (!text_ends_with(class, head) || n >= sizeof base)
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        (void)snprintf(base, sizeof base, "%.*s%s", (int)(n - strlen(head)), class, ends[i]);
        if (tern_json_is_string(name, base))
            return true;
    }
    return false;
}

/* True if the folder's class is one of its architecture without a head. */
static bool lacks_head(const hf_reading *r, const hf_config *c) {
    const tern_json_value *list = tern_json_get(r->root, "architectures");
    const char *const classes[] = {c->arch->hf_class, c->arch->hf_other};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i] != NULL && is_headless(list + 1, classes[i]))
            return true;
    return false;
}

/* True if a name is that of an encoder's class with a head that scores texts:
 * BertForSequenceClassification for BertModel. */
static bool is_ranker(const tern_json_value *name, const tern_arch *arch, const char *class) {
    static const char end[] = "Model", head[] = "ForSequenceClassification";
    char whole[96];
    if (!arch->encodes || !text_ends_with(class, end))
        return false;
    (void)snprintf(whole, sizeof whole, "%.*s%s", (int)(strlen(class) - strlen(end)), class, head);
    return tern_json_is_string(name, whole);
}

/* Sets c->other_class if the class is the second one of its architecture, and c->ranks. */
static const tern_arch *find_class(const tern_json_value *name, hf_config *c) {
    size_t n;
    const tern_arch *archs = tern_archs(&n);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            const char *class = k == 0 ? archs[i].hf_class : archs[i].hf_other;
            c->other_class = k == 1;
            c->ranks = class != NULL && is_ranker(name, &archs[i], class);
            if (class != NULL &&
                (c->ranks || tern_json_is_string(name, class) || is_headless(name, class)))
                return &archs[i];
        }
    return NULL;
}

static void refuse_class(hf_reading *r, const tern_json_value *name) {
    char names[TERN_ARCH_NAMES_BYTES], why[TERN_ARCH_NAMES_BYTES + 40];
    (void)snprintf(why, sizeof why, "of none of the architectures %s",
                   tern_arch_names(names, sizeof names));
    hf_refuse_value(r, TERN_ERR_ARCH, "architectures", name, why);
}

static const tern_arch *read_architecture(hf_reading *r, hf_config *c) {
    const tern_json_value *list = tern_json_get(r->root, "architectures");
    const tern_json_value *name = list;
    if (list == NULL) {
        hf_fail_key(r, TERN_ERR_ARCH, "architectures", "is missing");
        return NULL;
    }
    if (list->type == TERN_JSON_ARRAY && list->count == 1) {
        name = list + 1;
        const tern_arch *arch = find_class(name, c);
        if (arch != NULL)
            return arch;
    }
    refuse_class(r, name);
    return NULL;
}

static bool has_experts(const hf_config *c) {
    return (c->arch->has & TERN_HAS_EXPERTS) != 0;
}

/* Experts have a width key of their own, except in classes that have only one key. */
static const char *width_key(const hf_reading *r, const hf_config *c) {
    static const char of_experts[] = "moe_intermediate_size";
    return has_experts(c) && hf_has_key(r, of_experts) ? of_experts : of_experts + strlen("moe_");
}

static void read_sizes(hf_reading *r, hf_config *c) {
    c->n_layer = hf_read_count(r, "num_hidden_layers", 0);
    c->n_embd = hf_read_count(r, "hidden_size", 0);
    c->n_ff = hf_read_count(r, width_key(r, c), 0);
    c->n_head = hf_read_count(r, "num_attention_heads", 0);
    c->n_head_kv = hf_read_count(r, "num_key_value_heads", c->n_head);
    c->n_vocab = hf_read_count(r, "vocab_size", 0);
    c->n_ctx = hf_read_count(r, "max_position_embeddings", 0);
    const bool even = c->n_embd % c->n_head == 0;
    c->head_dim = hf_read_count(r, "head_dim", even ? c->n_embd / c->n_head : 0);
    if (r->status == TERN_OK && c->head_dim % 2 != 0)
        hf_fail_key(r, TERN_ERR_CONFIG, "head_dim", "is odd");
    if (r->status == TERN_OK && c->n_head % c->n_head_kv != 0)
        hf_fail_key(r, TERN_ERR_HEADS, "num_key_value_heads",
                    "does not divide the number of heads");
    c->norm_eps = (float)hf_read_real(
        r, r->root, c->arch->encodes || c->arch->layer_norms ? "layer_norm_eps" : "rms_norm_eps",
        (double)NAN);
}

/*
 * Reads the keys that only encoders have. The second class has rows of positions for padding first:
 * as many as the id of the padding token, and one more.
 */
static void read_encoder(hf_reading *r, hf_config *c) {
    const tern_json_value *positions = tern_json_get(r->root, "position_embedding_type");
    int64_t padding = 1;
    if (positions != NULL && !tern_json_is_string(positions, "absolute"))
        hf_refuse_value(r, TERN_ERR_CONFIG, "position_embedding_type", positions,
                        "only absolute is supported");
    if (tern_json_is_true(tern_json_get(r->root, "is_decoder")))
        hf_fail_key(r, TERN_ERR_CONFIG, "is_decoder", "is true, which is not supported");
    c->n_types = hf_read_count(r, "type_vocab_size", 0);
    if (!c->other_class)
        return;
    const tern_json_value *id = tern_json_get(r->root, "pad_token_id");
    if ((id != NULL && !tern_json_integer(id, &padding)) || padding < 0 ||
        padding + 1 >= (int64_t)c->n_ctx) {
        hf_fail_key(r, TERN_ERR_KEY_RANGE, "pad_token_id", "leaves no positions");
        return;
    }
    c->first_position = (uint32_t)padding + 1;
    c->n_ctx -= c->first_position;
}

/*
 * Reads the factors of embeddings, blocks and attention scores, and the divisor of logits. They
 * have Granite's names or MiniCPM's; with the latter the factor of blocks is scale_depth /
 * sqrt(layers), the divisor is the width over the base model's width, and scores have no factor. In
 * an architecture with such factors a missing key is an error.
 */
static void read_factors(hf_reading *r, hf_config *c) {
    const bool minicpm = hf_has_key(r, "scale_emb") || hf_has_key(r, "scale_depth");
    c->embedding_scale = c->block_scale = c->logit_divisor = 1.0f;
    if (c->arch->logit_times)
        c->logit_divisor = (float)hf_read_real(r, r->root, "logit_scale", (double)NAN);
    if (!c->arch->own_factors)
        return;
    if (minicpm) {
        c->embedding_scale = (float)hf_read_real(r, r->root, "scale_emb", (double)NAN);
        c->block_scale = (float)(hf_read_real(r, r->root, "scale_depth", (double)NAN) /
                                 sqrt((double)c->n_layer));
        c->logit_divisor =
            (float)(c->n_embd / hf_read_real(r, r->root, "dim_model_base", (double)NAN));
    } else {
        c->embedding_scale = (float)hf_read_real(r, r->root, "embedding_multiplier", (double)NAN);
        c->block_scale = (float)hf_read_real(r, r->root, "residual_multiplier", (double)NAN);
        c->logit_divisor = (float)hf_read_real(r, r->root, "logits_scaling", (double)NAN);
        c->attention_scale = (float)hf_read_real(r, r->root, "attention_multiplier", (double)NAN);
    }
    if (!(c->embedding_scale > 0.0f && c->block_scale > 0.0f && c->logit_divisor > 0.0f &&
          isfinite(c->logit_divisor)))
        hf_fail_key(r, TERN_ERR_KEY_RANGE, minicpm ? "scale_emb" : "embedding_multiplier",
                    "and the other factors must be above 0");
}

/* True if the key is there and null. */
static bool says_null(const hf_reading *r, const char *key) {
    const tern_json_value *root = r->root;
    const size_t end = root->type == TERN_JSON_OBJECT ? root->size : 0;
    for (size_t i = 1; i < end; i += 1 + root[i + 1].size)
        if (tern_json_is_string(root + i, key))
            return root[i + 1].type == TERN_JSON_NULL;
    return false;
}

/* A soft bound may be null, which is none. */
static float read_cap(hf_reading *r, const char *key) {
    const double cap = says_null(r, key) ? 0.0 : hf_read_real(r, r->root, key, (double)NAN);
    if (r->status == TERN_OK && !(cap >= 0.0 && cap <= 1e4))
        hf_fail_key(r, TERN_ERR_KEY_RANGE, key, "must be from 0 to 10000");
    return (float)cap;
}

static void read_caps(hf_reading *r, hf_config *c) {
    if (!c->arch->soft_capped)
        return;
    c->attention_cap = read_cap(r, "attn_logit_softcapping");
    c->logit_cap = read_cap(r, "final_logit_softcapping");
}

/* Scores are divided by the root of a number, which is not always the width of a head. */
static void read_score_divisor(hf_reading *r, hf_config *c) {
    if (!c->arch->gemma_folders)
        return;
    const double divisor = hf_read_real(r, r->root, "query_pre_attn_scalar", (double)NAN);
    if (!(divisor > 0.0))
        hf_fail_key(r, TERN_ERR_KEY_RANGE, "query_pre_attn_scalar", "must be above 0");
    c->attention_scale = 1.0f / sqrtf((float)divisor);
}

/* The key for the number of experts, which has another name in newer folders. */
static const char *count_key(const hf_reading *r) {
    static const char newer[] = "num_local_experts";
    return hf_has_key(r, newer) ? newer : "num_experts";
}

/* The numbers of gates that are cut are those of the architecture. */
static void check_gates(hf_reading *r, const hf_config *c) {
    const double limit = c->arch->experts.clamp, slope = 1.702;
    if (!c->arch->stacked_folders)
        return;
    if (hf_read_real(r, r->root, "swiglu_limit", limit) != limit)
        hf_fail_key(r, TERN_ERR_CONFIG, "swiglu_limit", "is not 7, as in this architecture");
    if (hf_read_real(r, r->root, "swiglu_alpha", slope) != slope)
        hf_fail_key(r, TERN_ERR_CONFIG, "swiglu_alpha", "is not 1.702, as in this architecture");
}

/* Weights of the chosen experts are not normalized unless the architecture does so, or
 * norm_topk_prob is true. */
static void read_experts(hf_reading *r, hf_config *c) {
    const tern_json_value *norm = tern_json_get(r->root, "norm_topk_prob");
    char what[48];
    if (!has_experts(c))
        return;
    c->n_expert = hf_read_count(r, count_key(r), 0);
    c->n_used = hf_read_count(r, "num_experts_per_tok", 0);
    const bool usual = c->arch->second != NULL && c->arch->second->delta; /* where it is missing */
    c->expert_norm = c->arch->stacked_folders || (norm == NULL ? usual : tern_json_is_true(norm));
    if (c->arch->has & TERN_HAS_SHARED_EXPERT)
        c->n_ff_shared = hf_read_count(r, "shared_expert_intermediate_size", 0);
    check_gates(r, c);
    if (c->n_expert > TERN_MAX_EXPERTS) {
        (void)snprintf(what, sizeof what, "is %u, %d are the limit", c->n_expert, TERN_MAX_EXPERTS);
        hf_fail_key(r, TERN_ERR_KEY_RANGE, count_key(r), what);
    }
    if (c->n_used > c->n_expert) {
        (void)snprintf(what, sizeof what, "is %u of %u experts", c->n_used, c->n_expert);
        hf_fail_key(r, TERN_ERR_KEY_RANGE, "num_experts_per_tok", what);
    }
    if (norm != NULL && norm->type != TERN_JSON_TRUE && norm->type != TERN_JSON_FALSE)
        hf_fail_key(r, TERN_ERR_KEY_TYPE, "norm_topk_prob", "is neither true nor false");
}

/* Each ternary matrix of such a folder has a norm of its own before it. */
static void read_input_norms(hf_reading *r, const tern_json_value *q, hf_config *c) {
    static const char key[] = "use_rms_norm", eps[] = "rms_norm_eps";
    const double usual = 1e-6; /* transformers' default */
    if (!tern_json_is_true(tern_json_get(q, key)))
        return;
    if (c->arch->normed == NULL || c->arch->gemma_folders) {
        hf_fail_key(r, TERN_ERR_CONFIG, key, "is true, which is not supported in this class");
        return;
    }
    c->arch = c->arch->normed;
    if ((float)hf_read_real(r, q, eps, usual) != c->norm_eps)
        hf_fail_key(r, TERN_ERR_CONFIG, eps,
                    "of the quantization_config is not the model's own, which is not supported");
}

/* The class of the layers says whether weight_scale multiplies or divides. */
static void read_quantization(hf_reading *r, hf_config *c) {
    const tern_json_value *q = tern_json_get(r->root, "quantization_config");
    char why[HF_QUANTIZATION_BYTES];
    if (c->arch->stacked_folders && tern_json_is_string(tern_json_get(q, "quant_method"), "mxfp4"))
        return; /* the tensors say which weights */
    if (hf_quantization_is_foreign(r->root, why)) {
        hf_fail_key(r, TERN_ERR_CONFIG, q != NULL ? "quantization_config" : "quantization", why);
        return;
    }
    c->fp4 = hf_quantization_is_fp4(r->root);
    c->weights = c->arch->ternary && !c->fp4 ? HF_WEIGHTS_MASTER : HF_WEIGHTS_PLAIN;
    if (q == NULL || c->fp4)
        return;
    if (has_experts(c)) {
        hf_fail_key(r, TERN_ERR_CONFIG, "quantization_config", "of experts is not supported");
        return;
    }
    if (!hf_kept_read(q, &c->kept, why)) {
        hf_fail_key(r, TERN_ERR_CONFIG, "modules_to_not_convert", why);
        return;
    }
    const tern_json_value *layers = tern_json_get(q, "linear_class");
    const bool automatic = tern_json_is_string(layers, "autobitlinear");
    if (layers != NULL && !automatic && !tern_json_is_string(layers, "bitlinear")) {
        hf_refuse_value(r, TERN_ERR_CONFIG, "linear_class", layers,
                        "not one of bitlinear, autobitlinear");
    }
    const bool online = tern_json_is_string(tern_json_get(q, "quantization_mode"), "online");
    c->weights = automatic && online ? HF_WEIGHTS_MASTER : HF_WEIGHTS_TERNARY;
    if (online && c->kept.listed && !hf_kept_has(&c->kept, "lm_head.weight"))
        hf_fail_key(r, TERN_ERR_CONFIG, "modules_to_not_convert",
                    "does not name lm_head: a ternary head is not supported");
    c->scale = automatic ? HF_SCALE_MULTIPLIES : HF_SCALE_DIVIDES;
    read_input_norms(r, q, c);
}

/* True if config.json names the gate's function. Encoders' GELU may be either of its two forms. */
static bool is_activation(const tern_json_value *act, const tern_arch *arch) {
    const bool gelu = arch->gate == TERN_OP_GATE_GELU;
    if (gelu && arch->encodes &&
        (tern_json_is_string(act, "gelu") || tern_json_is_string(act, "gelu_new")))
        return true;
    return tern_json_is_string(act, gelu                               ? "gelu_pytorch_tanh"
                                    : arch->gate == TERN_OP_GATE_RELU2 ? "relu2"
                                                                       : "silu");
}

static void check_activation(hf_reading *r, const hf_config *c, const char *key) {
    const tern_json_value *act = tern_json_get(r->root, key);
    if (act != NULL && !is_activation(act, c->arch))
        hf_refuse_value(r, TERN_ERR_CONFIG, key, act, "not that of this architecture");
}

static void read_graph(hf_reading *r, hf_config *c) {
    const tern_json_value *tied = tern_json_get(r->root, "tie_word_embeddings");
    const bool usual = c->arch->embedding_head || (c->arch->gemma_folders && tied == NULL);
    check_activation(r, c, "hidden_act");
    check_activation(r, c, "hidden_activation");
    if (tern_json_is_true(tern_json_get(r->root, "use_sliding_window")))
        hf_fail_key(r, TERN_ERR_CONFIG, "use_sliding_window", "is true, which is not supported");
    c->tied = usual || tern_json_is_true(tied) || lacks_head(r, c);
}

static void read_parts(hf_reading *r, hf_config *c) {
    c->windowed = c->arch->may_window && (c->other_class || c->arch->hf_other == NULL);
    read_graph(r, c);
    read_sizes(r, c);
    if (c->arch->encodes)
        read_encoder(r, c);
    else
        hf_read_rope(r, c);
    read_factors(r, c);
    hf_read_window(r, c);
    hf_read_kinds(r, c);
    read_score_divisor(r, c);
    read_caps(r, c);
    read_experts(r, c);
    read_quantization(r, c);
}

tern_status hf_config_read(const char *folder, hf_config *out, tern_error *err) {
    char path[PATH_BYTES];
    tern_json json = {.bytes = NULL};
    hf_config c = {.arch = NULL};
    if (snprintf(path, sizeof path, "%s/config.json", folder) >= (int)sizeof path)
        return tern_fail(err, TERN_ERR_IO, "%.64s...: the path is too long", folder);
    const tern_status status = tern_json_read(path, CONFIG_BYTES, &json, err);
    if (status != TERN_OK)
        return status;
    hf_reading r = {.path = path, .root = json.values, .err = err};
    c.arch = read_architecture(&r, &c);
    if (c.arch != NULL)
        read_parts(&r, &c);
    if (r.status == TERN_OK)
        r.status = hf_keys_check(path, json.values, &c, c.unknown, sizeof c.unknown, err);
    if (r.status == TERN_OK && c.ranks)
        c.pooling = TERN_POOLING_RANK;
    else if (r.status == TERN_OK)
        r.status = hf_pooling_read(folder, &c.pooling, err);
    tern_json_free(&json);
    if (r.status == TERN_OK)
        *out = c;
    return r.status;
}
