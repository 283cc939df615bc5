/* SPDX-License-Identifier: Apache-2.0 */
/* How a config.json rotates queries and keys. */
#include <math.h>

#include "authoring/convert/hf_reading.h"

/* The ends of the mixing lie at whole pairs unless `truncate` is false. */
static void check_truncate(hf_reading *r, const tern_json_value *scaling, const hf_config *c) {
    const tern_json_value *v = tern_json_get(scaling, "truncate");
    const bool between = v != NULL && v->type == TERN_JSON_FALSE;
    if (between != c->arch->yarn_between || (v != NULL && !between && !tern_json_is_true(v)))
        hf_fail_key(r, TERN_ERR_CONFIG, "truncate",
                    c->arch->yarn_between ? "of yarn is not false, as in this architecture"
                                          : "of yarn is not true, as in this architecture");
}

/* Reads by how much queries grow with their position. Returns the factor of the logarithm in what
 * divides cosine and sine; both factors must be 1, or both be missing. */
static double read_warming(hf_reading *r, const tern_json_value *scaling, hf_config *c) {
    static const char all[] = "mscale_all_dim";
    const double one = hf_read_real(r, scaling, "mscale", 0.0);
    const double other = hf_read_real(r, scaling, all, 0.0);
    c->warming = (float)hf_read_real(r, scaling, "llama_4_scaling_beta", 0.0);
    if (one != other || (one != 0.0 && one != 1.0))
        hf_fail_key(r, TERN_ERR_CONFIG, all, "and mscale are not both 1, or both missing");
    return other;
}

/* Reads the parameters of YaRN that GGUF has keys for; the attention factor is the default. */
static void read_yarn(hf_reading *r, const tern_json_value *scaling, hf_config *c) {
    const double factor = c->arch->warmed ? read_warming(r, scaling, c) : 0.0;
    static const char *const others[] = {"attention_factor", "mscale", "mscale_all_dim"};
    check_truncate(r, scaling, c);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tern_json_get(scaling, others[i]) != NULL && !(factor == 1.0 && i > 0))
            hf_fail_key(r, TERN_ERR_CONFIG, others[i], "of yarn is not supported");
    c->yarn_less = (float)factor;
    c->yarn.factor = (float)hf_read_real(r, scaling, "factor", (double)NAN);
    c->yarn.original =
        (float)hf_read_real(r, scaling, "original_max_position_embeddings", (double)c->n_ctx);
    c->yarn.beta_fast = (float)hf_read_real(r, scaling, "beta_fast", 32.0);
    c->yarn.beta_slow = (float)hf_read_real(r, scaling, "beta_slow", 1.0);
    if (!(c->yarn.factor >= 1.0f && c->yarn.original >= 1.0f && c->yarn.original <= 16777216.0f &&
          c->yarn.beta_slow > 0.0f && c->yarn.beta_fast >= c->yarn.beta_slow))
        hf_fail_key(r, TERN_ERR_KEY_RANGE, "rope_scaling", "has impossible factors");
}

/* The member of rope_parameters for a kind of layers, or NULL. */
const tern_json_value *hf_rope_of_kind(const hf_reading *r, const char *kind) {
    return tern_json_get(tern_json_get(r->root, "rope_parameters"), kind);
}

/*
 * Finds the scaling of the angles, or NULL, and in *base the object with their base. Older files
 * have rope_theta and rope_scaling. Newer ones have both in rope_parameters, some for each kind of
 * layers. A rope_scaling that was added to these by hand counts instead, as it does in
 * transformers, where the base beside it is lost unless there are kinds of layers.
 */
static const tern_json_value *find_scaling(const hf_reading *r, bool kinds,
                                           const tern_json_value **base) {
    const tern_json_value *full = kinds ? hf_rope_of_kind(r, "full_attention") : NULL;
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
bool hf_has_own_bases(const tern_arch *arch) {
    return arch->second != NULL && !arch->second->alike && !arch->second->alone_turned;
}

/* Reads the part of a head that turns, where folders of the architecture have one. */
static void read_part(hf_reading *r, const tern_json_value *scaling, hf_config *c) {
    static const char key[] = "partial_rotary_factor";
    const double usual = c->arch->folders_turn > 0.0f ? (double)c->arch->folders_turn : 1.0;
    const double part =
        hf_read_real(r, scaling, key, hf_read_real(r, r->root, key, usual)) * c->head_dim;
    c->n_rot = part >= 2.0 && part <= c->head_dim ? (uint32_t)part : 0;
    if (c->n_rot != part || c->n_rot < 2 || c->n_rot % 2 != 0)
        hf_fail_key(r, TERN_ERR_CONFIG, key,
                    "does not give an even number of dimensions of a head");
    if (c->arch->folders_turn == 0.0f && c->n_rot != c->head_dim)
        hf_fail_key(r, TERN_ERR_CONFIG, key, "other than 1 is not supported");
}

static void read_llama3(hf_reading *r, const tern_json_value *scaling, hf_config *c) {
    c->llama3.factor = hf_read_real(r, scaling, "factor", (double)NAN);
    c->llama3.low = hf_read_real(r, scaling, "low_freq_factor", (double)NAN);
    c->llama3.high = hf_read_real(r, scaling, "high_freq_factor", (double)NAN);
    c->llama3.original_context =
        hf_read_real(r, scaling, "original_max_position_embeddings", (double)NAN);
    if (!(c->llama3.factor >= 1.0 && c->llama3.low > 0.0 && c->llama3.high > c->llama3.low &&
          c->llama3.original_context >= 1.0))
        hf_fail_key(r, TERN_ERR_KEY_RANGE, "rope_scaling", "has impossible factors");
}

/* Hunyuan's scaling is another base: the usual one times alpha ^ (d / (d - 2)). Without alpha the
 * base would depend on the length of a text. */
static void read_alpha(hf_reading *r, const tern_json_value *scaling, hf_config *c) {
    const double alpha = hf_read_real(r, scaling, "alpha", (double)NAN), d = c->head_dim;
    if (!(alpha >= 1.0 && alpha <= 1e6) || d <= 2.0)
        hf_fail_key(r, TERN_ERR_KEY_RANGE, "alpha", "is not from 1 to 1e6");
    else
        c->rope_base = (float)((double)c->rope_base * pow(alpha, d / (d - 2.0)));
}

static void read_scaling(hf_reading *r, const tern_json_value *scaling, hf_config *c) {
    const bool kinds = hf_has_own_bases(c->arch);
    const tern_json_value *type = tern_json_get(scaling, "rope_type");
    type = type != NULL ? type : tern_json_get(scaling, "type");
    if (type == NULL || tern_json_is_string(type, "default"))
        return;
    if (hf_read_real(r, scaling, "attention_factor", 1.0) != 1.0)
        hf_fail_key(r, TERN_ERR_CONFIG, "attention_factor", "other than 1 is not supported");
    if (tern_json_is_string(type, "linear"))
        c->rope_linear = (float)hf_read_real(r, scaling, "factor", (double)NAN);
    else if (tern_json_is_string(type, "llama3") && !kinds) /* divides all layers' angles */
        read_llama3(r, scaling, c);
    else if (tern_json_is_string(type, "yarn"))
        read_yarn(r, scaling, c);
    else if (tern_json_is_string(type, "dynamic") && c->arch->folders_alpha)
        read_alpha(r, scaling, c);
    else
        hf_refuse_value(r, TERN_ERR_CONFIG, "rope_type", type,
                        "not one of default, linear, llama3, yarn");
}

void hf_read_rope(hf_reading *r, hf_config *c) {
    const bool kinds = hf_has_own_bases(c->arch);
    const tern_json_value *base;
    const tern_json_value *scaling = find_scaling(r, kinds, &base);
    const bool said = c->arch->second != NULL || c->arch->neighbour_folders; /* they must say it */
    c->rope_base = (float)hf_read_real(r, base, "rope_theta", said ? (double)NAN : 10000.0);
    c->rope_linear = 1.0f;
    read_part(r, scaling, c);
    if (scaling != NULL)
        read_scaling(r, scaling, c);
}
