/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/convert/hf_keys.h"
#include "authoring/convert/hf_pooling.h"
#include "authoring/convert/hf_quantization.h"
#include "base/json.h"
#include "base/word_list.h"
#include "runtime/model/config/config.h"

enum { CONFIG_BYTES = 1 << 24, PATH_BYTES = 4096 };

/* A config.json while it is read; *err keeps the first error. */
typedef struct reading {
    const char *path;
    const tern_json_value *root;
    tern_status status;
    tern_error *err;
} reading;

static void fail_key(reading *r, tern_status status, const char *key, const char *what) {
    if (r->status == TERN_OK)
        r->status = tern_fail(r->err, status, "%s: \"%s\" %s", r->path, key, what);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* A fallback > 0 replaces a missing key. */
static uint32_t read_count(reading *r, const char *key, uint32_t fallback) {
    const tern_json_value *v = tern_json_get(r->root, key);
    int64_t value = fallback;
    if (v == NULL && fallback == 0)
        fail_key(r, TERN_ERR_KEY_MISSING, key, "is missing");
    else if (v != NULL && !tern_json_integer(v, &value))
        fail_key(r, TERN_ERR_KEY_TYPE, key, "is not an integer");
    if (value < 1 || value > INT32_MAX) {
        fail_key(r, TERN_ERR_KEY_RANGE, key, "is not from 1 to 2147483647");
        return 1;
    }
    return (uint32_t)value;
}

/* A number of an object. A fallback that is not NAN replaces a missing one. */
static double read_real(reading *r, const tern_json_value *object, const char *key,
                        double fallback) {
    const tern_json_value *v = tern_json_get(object, key);
    char text[64];
    if (v == NULL && !isnan(fallback))
        return fallback;
    if (v == NULL || v->type != TERN_JSON_NUMBER || v->text.size >= sizeof text) {
        fail_key(r, v == NULL ? TERN_ERR_KEY_MISSING : TERN_ERR_KEY_TYPE, key,
                 v == NULL ? "is missing" : "is not a number");
        return 1.0;
    }
    memcpy(text, v->text.data, v->text.size);
    text[v->text.size] = '\0';
    const double value = strtod(text, NULL);
    if (!(value >= 0.0 && value <= 1e12)) {
        fail_key(r, TERN_ERR_KEY_RANGE, key, "is not from 0 to 1e12");
        return 1.0;
    }
    return value;
}

/* A value as text for messages. */
static void show(const tern_json_value *v, char *text, size_t size) {
    const bool shown = v->type == TERN_JSON_STRING || v->type == TERN_JSON_NUMBER;
    (void)snprintf(text, size, shown ? "is '%.*s'" : "is neither text nor number",
                   (int)(v->text.size < 48 ? v->text.size : 48), v->text.data);
}

static void refuse_value(reading *r, tern_status status, const char *key, const tern_json_value *v,
                         const char *why) {
    char value[80], what[512];
    show(v, value, sizeof value);
    (void)snprintf(what, sizeof what, "%s, %s", value, why);
    fail_key(r, status, key, what);
}

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
static bool lacks_head(const reading *r, const hf_config *c) {
    const tern_json_value *list = tern_json_get(r->root, "architectures");
    const char *const classes[] = {c->arch->hf_class, c->arch->hf_other};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i] != NULL && is_headless(list + 1, classes[i]))
            return true;
    return false;
}

/* Sets *other if the class is the second one of its architecture. */
static const tern_arch *find_class(const tern_json_value *name, bool *other) {
    size_t n;
    const tern_arch *archs = tern_archs(&n);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            const char *class = k == 0 ? archs[i].hf_class : archs[i].hf_other;
            *other = k == 1;
            if (class != NULL && (tern_json_is_string(name, class) || is_headless(name, class)))
                return &archs[i];
        }
    return NULL;
}

static void refuse_class(reading *r, const tern_json_value *name) {
    char why[400] = "not one of ";
    const char *comma = "";
    size_t n, used = strlen(why);
    const tern_arch *archs = tern_archs(&n);
    for (size_t i = 0; i < 2 * n && used < sizeof why; i++) {
        const char *class = i % 2 == 0 ? archs[i / 2].hf_class : archs[i / 2].hf_other;
        if (class != NULL) {
            used += (size_t)snprintf(why + used, sizeof why - used, "%s%s", comma, class);
            comma = ", ";
        }
    }
    refuse_value(r, TERN_ERR_ARCH, "architectures", name, why);
}

static const tern_arch *read_architecture(reading *r, bool *other) {
    const tern_json_value *list = tern_json_get(r->root, "architectures");
    const tern_json_value *name = list;
    if (list == NULL) {
        fail_key(r, TERN_ERR_ARCH, "architectures", "is missing");
        return NULL;
    }
    if (list->type == TERN_JSON_ARRAY && list->count == 1) {
        name = list + 1;
        const tern_arch *arch = find_class(name, other);
        if (arch != NULL)
            return arch;
    }
    refuse_class(r, name);
    return NULL;
}

static bool has_key(const reading *r, const char *key) {
    return tern_json_get(r->root, key) != NULL;
}

static bool has_experts(const hf_config *c) {
    return (c->arch->has & TERN_HAS_EXPERTS) != 0;
}

/* Experts have a width key of their own, except in classes that have only one key. */
static const char *width_key(const reading *r, const hf_config *c) {
    static const char of_experts[] = "moe_intermediate_size";
    return has_experts(c) && has_key(r, of_experts) ? of_experts : of_experts + strlen("moe_");
}

static void read_sizes(reading *r, hf_config *c) {
    c->n_layer = read_count(r, "num_hidden_layers", 0);
    c->n_embd = read_count(r, "hidden_size", 0);
    c->n_ff = read_count(r, width_key(r, c), 0);
    c->n_head = read_count(r, "num_attention_heads", 0);
    c->n_head_kv = read_count(r, "num_key_value_heads", c->n_head);
    c->n_vocab = read_count(r, "vocab_size", 0);
    c->n_ctx = read_count(r, "max_position_embeddings", 0);
    const bool even = c->n_embd % c->n_head == 0;
    c->head_dim = read_count(r, "head_dim", even ? c->n_embd / c->n_head : 0);
    if (r->status == TERN_OK && c->head_dim % 2 != 0)
        fail_key(r, TERN_ERR_CONFIG, "head_dim", "is odd");
    if (r->status == TERN_OK && c->n_head % c->n_head_kv != 0)
        fail_key(r, TERN_ERR_HEADS, "num_key_value_heads", "does not divide the number of heads");
    c->norm_eps = (float)read_real(r, r->root, c->arch->encodes ? "layer_norm_eps" : "rms_norm_eps",
                                   (double)NAN);
}

/*
 * Reads the keys that only encoders have. The second class has rows of positions for padding first:
 * as many as the id of the padding token, and one more.
 */
static void read_encoder(reading *r, hf_config *c) {
    const tern_json_value *positions = tern_json_get(r->root, "position_embedding_type");
    int64_t padding = 1;
    if (positions != NULL && !tern_json_is_string(positions, "absolute"))
        refuse_value(r, TERN_ERR_CONFIG, "position_embedding_type", positions,
                     "only absolute is supported");
    if (tern_json_is_true(tern_json_get(r->root, "is_decoder")))
        fail_key(r, TERN_ERR_CONFIG, "is_decoder", "is true, which is not supported");
    c->n_types = read_count(r, "type_vocab_size", 0);
    if (!c->other_class)
        return;
    const tern_json_value *id = tern_json_get(r->root, "pad_token_id");
    if ((id != NULL && !tern_json_integer(id, &padding)) || padding < 0 ||
        padding + 1 >= (int64_t)c->n_ctx) {
        fail_key(r, TERN_ERR_KEY_RANGE, "pad_token_id", "leaves no positions");
        return;
    }
    c->first_position = (uint32_t)padding + 1;
    c->n_ctx -= c->first_position;
}

/* The ends of the mixing lie at whole pairs unless `truncate` is false. */
static void check_truncate(reading *r, const tern_json_value *scaling, const hf_config *c) {
    const tern_json_value *v = tern_json_get(scaling, "truncate");
    const bool between = v != NULL && v->type == TERN_JSON_FALSE;
    if (between != c->arch->yarn_between || (v != NULL && !between && !tern_json_is_true(v)))
        fail_key(r, TERN_ERR_CONFIG, "truncate",
                 c->arch->yarn_between ? "of yarn is not false, as in this architecture"
                                       : "of yarn is not true, as in this architecture");
}

/* Reads the parameters of YaRN that GGUF has keys for; the attention factor is the default. */
static void read_yarn(reading *r, const tern_json_value *scaling, hf_config *c) {
    static const char *const others[] = {"attention_factor", "mscale", "mscale_all_dim"};
    check_truncate(r, scaling, c);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tern_json_get(scaling, others[i]) != NULL)
            fail_key(r, TERN_ERR_CONFIG, others[i], "of yarn is not supported");
    c->yarn.factor = (float)read_real(r, scaling, "factor", (double)NAN);
    c->yarn.original =
        (float)read_real(r, scaling, "original_max_position_embeddings", (double)c->n_ctx);
    c->yarn.beta_fast = (float)read_real(r, scaling, "beta_fast", 32.0);
    c->yarn.beta_slow = (float)read_real(r, scaling, "beta_slow", 1.0);
    if (!(c->yarn.factor >= 1.0f && c->yarn.original >= 1.0f && c->yarn.original <= 16777216.0f &&
          c->yarn.beta_slow > 0.0f && c->yarn.beta_fast >= c->yarn.beta_slow))
        fail_key(r, TERN_ERR_KEY_RANGE, "rope_scaling", "has impossible factors");
}

/* The member of rope_parameters for a kind of layers, or NULL. */
static const tern_json_value *rope_of_kind(const reading *r, const char *kind) {
    return tern_json_get(tern_json_get(r->root, "rope_parameters"), kind);
}

/*
 * Finds the scaling of the angles, or NULL, and in *base the object with their base. Older files
 * have rope_theta and rope_scaling. Newer ones have both in rope_parameters, some for each kind of
 * layers. A rope_scaling that was added to these by hand counts instead, as it does in
 * transformers, where the base beside it is lost unless there are kinds of layers.
 */
static const tern_json_value *find_scaling(const reading *r, bool kinds,
                                           const tern_json_value **base) {
    const tern_json_value *full = kinds ? rope_of_kind(r, "full_attention") : NULL;
    const tern_json_value *newer = full != NULL ? full : tern_json_get(r->root, "rope_parameters");
    const tern_json_value *older = tern_json_get(r->root, "rope_scaling");
    const bool by_hand = older != NULL && older->type == TERN_JSON_OBJECT && older->count > 0;
    const tern_json_value *scaling = by_hand || newer == NULL ? older : newer;
    *base = tern_json_get(scaling, "rope_theta") != NULL                ? scaling
            : full != NULL && tern_json_get(full, "rope_theta") != NULL ? full
                                                                        : r->root;
    return scaling;
}

/* True if layers of the second kind turn by a base of their own. */
static bool has_own_bases(const tern_arch *arch) {
    return arch->second != NULL && !arch->second->alike && !arch->second->alone_turned;
}

static void read_rope(reading *r, hf_config *c) {
    const bool kinds = has_own_bases(c->arch);
    const tern_json_value *base;
    const tern_json_value *scaling = find_scaling(r, kinds, &base);
    const bool said = c->arch->second != NULL || c->arch->neighbour_folders; /* they must say it */
    c->rope_base = (float)read_real(r, base, "rope_theta", said ? (double)NAN : 10000.0);
    c->rope_linear = 1.0f;
    if (read_real(r, r->root, "partial_rotary_factor", 1.0) != 1.0 ||
        read_real(r, scaling, "partial_rotary_factor", 1.0) != 1.0)
        fail_key(r, TERN_ERR_CONFIG, "partial_rotary_factor", "other than 1 is not supported");
    if (scaling == NULL)
        return;
    const tern_json_value *type = tern_json_get(scaling, "rope_type");
    type = type != NULL ? type : tern_json_get(scaling, "type");
    if (type == NULL || tern_json_is_string(type, "default"))
        return;
    if (read_real(r, scaling, "attention_factor", 1.0) != 1.0)
        fail_key(r, TERN_ERR_CONFIG, "attention_factor", "other than 1 is not supported");
    if (tern_json_is_string(type, "linear")) {
        c->rope_linear = (float)read_real(r, scaling, "factor", (double)NAN);
    } else if (tern_json_is_string(type, "llama3") && !kinds) { /* divides all layers' angles */
        c->llama3.factor = read_real(r, scaling, "factor", (double)NAN);
        c->llama3.low = read_real(r, scaling, "low_freq_factor", (double)NAN);
        c->llama3.high = read_real(r, scaling, "high_freq_factor", (double)NAN);
        c->llama3.original_context =
            read_real(r, scaling, "original_max_position_embeddings", (double)NAN);
        if (!(c->llama3.factor >= 1.0 && c->llama3.low > 0.0 && c->llama3.high > c->llama3.low &&
              c->llama3.original_context >= 1.0))
            fail_key(r, TERN_ERR_KEY_RANGE, "rope_scaling", "has impossible factors");
    } else if (tern_json_is_string(type, "yarn")) {
        read_yarn(r, scaling, c);
    } else {
        refuse_value(r, TERN_ERR_CONFIG, "rope_type", type,
                     "not one of default, linear, llama3, yarn");
    }
}

/*
 * Reads the factors of embeddings, blocks and attention scores, and the divisor of logits. They
 * have Granite's names or MiniCPM's; with the latter the factor of blocks is scale_depth /
 * sqrt(layers), the divisor is the width over the base model's width, and scores have no factor. In
 * an architecture with such factors a missing key is an error.
 */
static void read_factors(reading *r, hf_config *c) {
    const bool minicpm = has_key(r, "scale_emb") || has_key(r, "scale_depth");
    c->embedding_scale = c->block_scale = c->logit_divisor = 1.0f;
    if (!c->arch->own_factors)
        return;
    if (minicpm) {
        c->embedding_scale = (float)read_real(r, r->root, "scale_emb", (double)NAN);
        c->block_scale =
            (float)(read_real(r, r->root, "scale_depth", (double)NAN) / sqrt((double)c->n_layer));
        c->logit_divisor =
            (float)(c->n_embd / read_real(r, r->root, "dim_model_base", (double)NAN));
    } else {
        c->embedding_scale = (float)read_real(r, r->root, "embedding_multiplier", (double)NAN);
        c->block_scale = (float)read_real(r, r->root, "residual_multiplier", (double)NAN);
        c->logit_divisor = (float)read_real(r, r->root, "logits_scaling", (double)NAN);
        c->attention_scale = (float)read_real(r, r->root, "attention_multiplier", (double)NAN);
    }
    if (!(c->embedding_scale > 0.0f && c->block_scale > 0.0f && c->logit_divisor > 0.0f &&
          isfinite(c->logit_divisor)))
        fail_key(r, TERN_ERR_KEY_RANGE, minicpm ? "scale_emb" : "embedding_multiplier",
                 "and the other factors must be above 0");
}

/* Reads the window if the class has windows and this one hides anything. */
static void read_window(reading *r, hf_config *c) {
    const tern_json_value *v = tern_json_get(r->root, "sliding_window");
    const tern_json_value *used = tern_json_get(r->root, "use_sliding_window");
    if (!c->windowed || v == NULL || v->type == TERN_JSON_NULL ||
        (used != NULL && used->type == TERN_JSON_FALSE))
        return;
    const uint32_t window = read_count(r, "sliding_window", 0);
    c->window = window < c->n_ctx ? window : 0;
}

/* The period in a list of layers. If no layer of the list sees all, it is `usual`, or more than the
 * number of layers. */
static uint32_t listed_period(reading *r, const tern_json_value *list, uint32_t n_layer,
                              uint32_t usual) {
    uint32_t period = 0, n = 0;
    bool regular = list->type == TERN_JSON_ARRAY;
    for (size_t i = 1; regular && i < list->size; i += list[i].size) {
        const bool full = tern_json_is_string(list + i, "full_attention");
        n++;
        if (full && period == 0)
            period = n;
        regular = (full || tern_json_is_string(list + i, "sliding_attention")) &&
                  full == (period != 0 && n % period == 0);
    }
    if (!regular || n != n_layer)
        fail_key(r, TERN_ERR_CONFIG, "layer_types",
                 "is not one full_attention after every so many sliding_attention, one a layer");
    return period != 0 ? period : usual > n ? usual : n + 1;
}

/* The period that a text such as LLLG says, of layers with a window and one without. */
static uint32_t written_period(reading *r, const char *key, const tern_json_value *text) {
    const size_t n = text->text.size;
    bool regular = n > 0 && text->text.data[n - 1] == 'G';
    for (size_t i = 0; regular && i + 1 < n; i++)
        regular = text->text.data[i] == 'L';
    if (!regular)
        refuse_value(r, TERN_ERR_CONFIG, key, text, "not one G after some L");
    return (uint32_t)n;
}

/* The period of layers that see everything; a list takes precedence over a number or a text. */
static uint32_t read_period(reading *r, const hf_config *c) {
    static const char newer[] = "_sliding_window_pattern";
    const tern_json_value *list = tern_json_get(r->root, "layer_types");
    const char *key = has_key(r, newer) ? newer : newer + 1;
    const tern_json_value *v = tern_json_get(r->root, key);
    const uint32_t period = v != NULL && v->type == TERN_JSON_STRING
                                ? written_period(r, key, v)
                                : read_count(r, key, c->arch->second->period);
    return list != NULL ? listed_period(r, list, c->n_layer, period) : period;
}

/* Checks which layers turn q and k: all but every so many, as in the architecture. Files have no
 * key for that. */
static void check_turned(reading *r, const hf_config *c) {
    static const char key[] = "no_rope_layers", step[] = "no_rope_layer_interval";
    const tern_json_value *list = tern_json_get(r->root, key);
    const uint32_t period = c->arch->second->period;
    uint32_t n = 0;
    bool fits = list != NULL && list->type == TERN_JSON_ARRAY;
    if (list == NULL || list->type == TERN_JSON_NULL) {
        if (read_count(r, step, period) != period)
            fail_key(r, TERN_ERR_CONFIG, step, "is not 4, as in this architecture");
        return;
    }
    for (size_t i = 1; fits && i < list->size; i += list[i].size) {
        int64_t turned = 0;
        fits = tern_json_integer(list + i, &turned) && turned == (++n % period != 0);
    }
    if (!fits || n != c->n_layer)
        fail_key(r, TERN_ERR_CONFIG, key, "is not 0 for every fourth layer and 1 for the others");
}

/* True if the folder says that no layer has a window, which makes all layers alike in some
 * architectures. */
static bool lacks_windows(const reading *r, const hf_config *c) {
    const tern_json_value *v = tern_json_get(r->root, "sliding_window");
    return c->arch->may_lack_second && (v == NULL || v->type == TERN_JSON_NULL);
}

/* Layers of two kinds: which ones have a window, its width, and the base of their rope. */
static void read_kinds(reading *r, hf_config *c) {
    const tern_json_value *rope = rope_of_kind(r, "sliding_attention");
    const tern_json_value *type = rope != NULL ? tern_json_get(rope, "rope_type") : NULL;
    if (c->arch->second == NULL || lacks_windows(r, c))
        return;
    if (!c->arch->second->windowed) {
        check_turned(r, c);
        return;
    }
    c->period = read_period(r, c);
    c->window = read_count(r, "sliding_window", 0);
    if (!has_own_bases(c->arch))
        return;
    if (type != NULL && !tern_json_is_string(type, "default"))
        refuse_value(r, TERN_ERR_CONFIG, "rope_type", type, "of windowed layers must be default");
    c->window_base =
        (float)(rope != NULL ? read_real(r, rope, "rope_theta", (double)NAN)
                             : read_real(r, r->root, "rope_local_base_freq", (double)NAN));
    if (!(c->window_base >= 1.0f))
        fail_key(r, TERN_ERR_KEY_RANGE, rope != NULL ? "rope_theta" : "rope_local_base_freq",
                 "of windowed layers is below 1");
}

/* Scores are divided by the root of a number, which is not always the width of a head. */
static void read_score_divisor(reading *r, hf_config *c) {
    if (!c->arch->gemma_folders)
        return;
    const double divisor = read_real(r, r->root, "query_pre_attn_scalar", (double)NAN);
    if (!(divisor > 0.0))
        fail_key(r, TERN_ERR_KEY_RANGE, "query_pre_attn_scalar", "must be above 0");
    c->attention_scale = 1.0f / sqrtf((float)divisor);
}

/* The key for the number of experts, which has another name in newer folders. */
static const char *count_key(const reading *r) {
    static const char newer[] = "num_local_experts";
    return has_key(r, newer) ? newer : "num_experts";
}

/* The numbers of gates that are cut are those of the architecture. */
static void check_gates(reading *r, const hf_config *c) {
    const double limit = c->arch->experts.clamp, slope = 1.702;
    if (!c->arch->stacked_folders)
        return;
    if (read_real(r, r->root, "swiglu_limit", limit) != limit)
        fail_key(r, TERN_ERR_CONFIG, "swiglu_limit", "is not 7, as in this architecture");
    if (read_real(r, r->root, "swiglu_alpha", slope) != slope)
        fail_key(r, TERN_ERR_CONFIG, "swiglu_alpha", "is not 1.702, as in this architecture");
}

/* Weights of the chosen experts are not normalized unless the architecture does so, or
 * norm_topk_prob is true. */
static void read_experts(reading *r, hf_config *c) {
    const tern_json_value *norm = tern_json_get(r->root, "norm_topk_prob");
    char what[48];
    if (!has_experts(c))
        return;
    c->n_expert = read_count(r, count_key(r), 0);
    c->n_used = read_count(r, "num_experts_per_tok", 0);
    c->expert_norm = c->arch->stacked_folders || tern_json_is_true(norm);
    check_gates(r, c);
    if (c->n_expert > TERN_MAX_EXPERTS) {
        (void)snprintf(what, sizeof what, "is %u, %d are the limit", c->n_expert, TERN_MAX_EXPERTS);
        fail_key(r, TERN_ERR_KEY_RANGE, count_key(r), what);
    }
    if (c->n_used > c->n_expert) {
        (void)snprintf(what, sizeof what, "is %u of %u experts", c->n_used, c->n_expert);
        fail_key(r, TERN_ERR_KEY_RANGE, "num_experts_per_tok", what);
    }
    if (norm != NULL && norm->type != TERN_JSON_TRUE && norm->type != TERN_JSON_FALSE)
        fail_key(r, TERN_ERR_KEY_TYPE, "norm_topk_prob", "is neither true nor false");
}

/* Each ternary matrix of such a folder has a norm of its own before it. */
static void read_input_norms(reading *r, const tern_json_value *q, hf_config *c) {
    static const char key[] = "use_rms_norm", eps[] = "rms_norm_eps";
    const double usual = 1e-6; /* transformers' default */
    if (!tern_json_is_true(tern_json_get(q, key)))
        return;
    if (c->arch->normed == NULL || c->arch->gemma_folders) {
        fail_key(r, TERN_ERR_CONFIG, key, "is true, which is not supported in this class");
        return;
    }
    c->arch = c->arch->normed;
    if ((float)read_real(r, q, eps, usual) != c->norm_eps)
        fail_key(r, TERN_ERR_CONFIG, eps,
                 "of the quantization_config is not the model's own, which is not supported");
}

/* The class of the layers says whether weight_scale multiplies or divides. */
static void read_quantization(reading *r, hf_config *c) {
    const tern_json_value *q = tern_json_get(r->root, "quantization_config");
    char why[HF_QUANTIZATION_BYTES];
    if (c->arch->stacked_folders && tern_json_is_string(tern_json_get(q, "quant_method"), "mxfp4"))
        return; /* the tensors say which weights */
    if (hf_quantization_is_foreign(r->root, why)) {
        fail_key(r, TERN_ERR_CONFIG, q != NULL ? "quantization_config" : "quantization", why);
        return;
    }
    c->weights = c->arch->ternary ? HF_WEIGHTS_MASTER : HF_WEIGHTS_PLAIN;
    if (q == NULL)
        return;
    if (has_experts(c)) {
        fail_key(r, TERN_ERR_CONFIG, "quantization_config", "of experts is not supported");
        return;
    }
    if (!hf_kept_read(q, &c->kept, why)) {
        fail_key(r, TERN_ERR_CONFIG, "modules_to_not_convert", why);
        return;
    }
    const tern_json_value *layers = tern_json_get(q, "linear_class");
    const bool automatic = tern_json_is_string(layers, "autobitlinear");
    if (layers != NULL && !automatic && !tern_json_is_string(layers, "bitlinear")) {
        refuse_value(r, TERN_ERR_CONFIG, "linear_class", layers,
                     "not one of bitlinear, autobitlinear");
    }
    const bool online = tern_json_is_string(tern_json_get(q, "quantization_mode"), "online");
    c->weights = automatic && online ? HF_WEIGHTS_MASTER : HF_WEIGHTS_TERNARY;
    if (online && c->kept.listed && !hf_kept_has(&c->kept, "lm_head.weight"))
        fail_key(r, TERN_ERR_CONFIG, "modules_to_not_convert",
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

static void check_activation(reading *r, const hf_config *c, const char *key) {
    const tern_json_value *act = tern_json_get(r->root, key);
    if (act != NULL && !is_activation(act, c->arch))
        refuse_value(r, TERN_ERR_CONFIG, key, act, "not that of this architecture");
}

static void read_graph(reading *r, hf_config *c) {
    const tern_json_value *tied = tern_json_get(r->root, "tie_word_embeddings");
    const bool usual = c->arch->embedding_head || (c->arch->gemma_folders && tied == NULL);
    check_activation(r, c, "hidden_act");
    check_activation(r, c, "hidden_activation");
    if (tern_json_is_true(tern_json_get(r->root, "use_sliding_window")))
        fail_key(r, TERN_ERR_CONFIG, "use_sliding_window", "is true, which is not supported");
    c->tied = usual || tern_json_is_true(tied) || lacks_head(r, c);
}

static void read_parts(reading *r, hf_config *c) {
    c->windowed = c->arch->may_window && (c->other_class || c->arch->hf_other == NULL);
    read_graph(r, c);
    read_sizes(r, c);
    if (c->arch->encodes)
        read_encoder(r, c);
    else
        read_rope(r, c);
    read_factors(r, c);
    read_window(r, c);
    read_kinds(r, c);
    read_score_divisor(r, c);
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
    reading r = {.path = path, .root = json.values, .err = err};
    c.arch = read_architecture(&r, &c.other_class);
    if (c.arch != NULL)
        read_parts(&r, &c);
    if (r.status == TERN_OK)
        r.status = hf_keys_check(path, json.values, &c, c.unknown, sizeof c.unknown, err);
    if (r.status == TERN_OK)
        r.status = hf_pooling_read(folder, &c.pooling, err);
    tern_json_free(&json);
    if (r.status == TERN_OK)
        *out = c;
    return r.status;
}
