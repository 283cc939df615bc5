/* SPDX-License-Identifier: Apache-2.0 */

/* Reads how a file scales rotation angles, and makes the frequencies that follow. */

#include <stdlib.h>

#include "runtime/model/config/internal.h"
#include "runtime/model/config/rope.h"
#include "runtime/model/config/rope_scaling.h"

/* ---- scaling ------------------------------------------------------------------------------- */

/* Reads the factor from its key, or from the key's older name. 1: none. */
static tern_status read_factor(const tern_gguf *file, const tern_arch *arch, float *out,
                               tern_error *err) {
    const float low = 1.0f / 1024, high = 1024.0f;
    const tern_status status =
        tern_config_f32(file, arch, "rope.scaling.factor", 1.0f, low, high, out, err);
    if (status != TERN_OK || *out != 1.0f)
        return status;
    return tern_config_f32(file, arch, "rope.scale_linear", 1.0f, low, high, out, err);
}

/* Reads YaRN's numbers besides the factor. Missing ones have the values of YaRN's authors. */
static tern_status read_yarn(const tern_gguf *file, tern_config *c, float factor, tern_error *err) {
    tern_rope_yarn *y = &c->kinds[0].yarn;
    uint32_t original;
    tern_status s;
    if (factor < 1.0f)
        return tern_fail(err, TERN_ERR_KEY_RANGE,
                         "%s: key %s.rope.scaling.factor is %g, of yarn it must be at least 1",
                         tern_gguf_name(file), c->arch->name, (double)factor);
    if ((s = tern_config_u32(file, c->arch, "rope.scaling.original_context_length", c->n_ctx, 1,
                             1u << 24, &original, err)) ||
        (s = tern_config_f32(file, c->arch, "rope.scaling.yarn_beta_fast", 32.0f, 1e-3f, 1e6f,
                             &y->beta_fast, err)) ||
        (s = tern_config_f32(file, c->arch, "rope.scaling.yarn_beta_slow", 1.0f, 1e-3f, 1e6f,
                             &y->beta_slow, err)) ||
        (s = tern_config_f32(file, c->arch, "rope.scaling.yarn_ext_factor", 1.0f, 0.0f, 1.0f,
                             &y->mix, err)))
        return s;
    if (y->beta_fast < y->beta_slow || c->kinds[0].rope_base <= 1.0f)
        return tern_fail(err, TERN_ERR_CONFIG,
                         "%s: yarn from %g turns down to %g with the base %g is impossible",
                         tern_gguf_name(file), (double)y->beta_fast, (double)y->beta_slow,
                         (double)c->kinds[0].rope_base);
    y->original = (float)original;
    y->between = c->arch->yarn_between;
    y->factor = factor;
    return TERN_OK;
}

/* Reads the factors of cosine and sine, which files of any scaling may have. */
static tern_status read_gain(const tern_gguf *file, tern_config *c, tern_error *err) {
    static const char *const keys[] = {"rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor"};
    const tern_rope_yarn *yarn = &c->kinds[0].yarn;
    const bool mixes = yarn->factor > 0.0f && yarn->mix > 0.0f;
    double gain =
        mixes ? tern_rope_yarn_gain(yarn, 1.0) / tern_rope_yarn_gain(yarn, c->yarn_less) : 1.0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        float factor;
        const tern_status status =
            tern_config_f32(file, c->arch, keys[i], 1.0f, 1e-3f, 1e3f, &factor, err);
        if (status != TERN_OK)
            return status;
        gain *= (double)factor;
    }
    c->kinds[0].rope_gain = gain;
    return TERN_OK;
}

/* Reads by how much of its usual factor YaRN multiplies cosine and sine less, and how queries grow
 * with their position. The whole head is turned then, so its angles can hold the factor. */
static tern_status read_warming(const tern_gguf *file, tern_config *c, tern_error *err) {
    static const char less[] = "rope.scaling.yarn_log_multiplier";
    static const char warming[] = "attention.temperature_scale";
    float value = 0.0f;
    tern_status s;
    if (!c->arch->warmed)
        return TERN_OK;
    if ((s = tern_config_optional_f32(file, c->arch, less, 100.0f, &value, err)) ||
        (s = tern_config_optional_f32(file, c->arch, warming, 100.0f, &c->warming, err)) ||
        (s = tern_config_u32(file, c->arch, "rope.scaling.original_context_length", c->n_ctx, 1,
                             1u << 24, &c->warm_step, err)))
        return s;
    c->yarn_less = (double)value;
    if (c->warming > 0.0f && c->n_rot != c->head_dim)
        return tern_fail(err, TERN_ERR_CONFIG,
                         "%s: key %s.%s is %g, but only %u of %u dimensions of a head are turned",
                         tern_gguf_name(file), c->arch->name, warming, (double)c->warming, c->n_rot,
                         c->head_dim);
    return TERN_OK;
}

double tern_config_angle_gain(const tern_config *c, uint32_t table, uint32_t position) {
    const double gain = c->kinds[table % c->n_kinds].rope_gain;
    const double steps = (double)(position / (c->warm_step > 0 ? c->warm_step : 1));
    return table < c->n_kinds ? gain : gain * (1.0 + (double)c->warming * tern_log(1.0 + steps));
}

static bool has_tensor(const tern_gguf *file, const char *name) {
    return tern_gguf_find_tensor(file, name) != NULL;
}

static const char short_factors[] = "rope_factors_short.weight";
static const char long_factors[] = "rope_factors_long.weight";

/*
 * Longrope has short factors of angles, for texts up to the context that the model was first
 * trained for, and long ones for longer texts. If the length of a text decided which it gets, they
 * would change as it grows, and with them the keys of all earlier positions. So a model has the
 * context of the short factors, unless the long ones are asked for, which then hold at every
 * length.
 */
static tern_status read_longrope(const tern_gguf *file, tern_config *c, tern_error *err) {
    uint32_t original;
    float factor;
    if (!has_tensor(file, short_factors) || !has_tensor(file, long_factors) ||
        has_tensor(file, "rope_freqs.weight") || c->kinds[0].rope_scale != 1.0f ||
        c->kinds[0].yarn.factor > 0.0f)
        return tern_fail(err, TERN_ERR_CONFIG,
                         "%s: longrope needs tensors %s and %s, and no other scaling",
                         tern_gguf_name(file), short_factors, long_factors);
    const tern_status status =
        tern_config_u32(file, c->arch, "rope.scaling.original_context_length", c->n_ctx, 1,
                        1u << 24, &original, err);
    if (status != TERN_OK || original >= c->n_ctx)
        return status;
    c->n_ctx_long = c->n_ctx;
    c->n_ctx = original;
    return tern_config_f32(file, c->arch, "rope.scaling.attn_factor", 0.0f, 1e-3f, 1e3f, &factor,
                           err); /* required: it depends on the context of the long ones */
}

tern_status tern_config_take_long(const tern_gguf *file, tern_config *c, tern_error *err) {
    if (c->n_ctx_long == 0)
        return tern_fail(err, TERN_ERR_CONTEXT,
                         "%s: has no factors of its own for a longer context than %u positions",
                         tern_gguf_name(file), c->n_ctx);
    c->long_factors = true;
    c->n_ctx = c->n_ctx_long;
    return TERN_OK;
}

/* A factor of 1 is not a scaling, whatever its type. */
tern_status tern_config_rope_scaling(const tern_gguf *file, tern_config *c, tern_error *err) {
    tern_span type;
    float factor = 1.0f;
    tern_status status = read_factor(file, c->arch, &factor, err);
    if (status == TERN_OK)
        status = tern_config_name(file, c->arch, "rope.scaling.type", &type, err);
    if (status != TERN_OK)
        return status;
    if ((status = read_warming(file, c, err)) != TERN_OK)
        return status;
    c->kinds[0].rope_scale = 1.0f;
    if (factor != 1.0f && (type.size == 0 || tern_span_is(type, "linear")))
        c->kinds[0].rope_scale = 1.0f / factor;
    else if (factor != 1.0f && tern_span_is(type, "yarn"))
        status = read_yarn(file, c, factor, err);
    else if (factor != 1.0f && !tern_span_is(type, "none") && !tern_span_is(type, "longrope"))
        return tern_fail(err, TERN_ERR_CONFIG,
                         "%s: rope scaling '%.*s' is not supported (none, linear, yarn, longrope)",
                         tern_gguf_name(file), TERN_SPAN_SHOWN(type));
    if (status == TERN_OK && (tern_span_is(type, "longrope") || has_tensor(file, short_factors) ||
                              has_tensor(file, long_factors)))
        status = read_longrope(file, c, err);
    return status == TERN_OK ? read_gain(file, c, err) : status;
}

/* ---- frequencies --------------------------------------------------------------------------- */

/* Copies the factors, since a file may be aligned to less than a float. *out is NULL if it has
 * none. */
static tern_status read_factors(const tern_gguf *file, const tern_config *c, size_t half,
                                float **out, tern_error *err) {
    const char *name = c->long_factors                   ? long_factors
                       : has_tensor(file, short_factors) ? short_factors
                                                         : "rope_freqs.weight";
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, name);
    *out = NULL;
    if (t == NULL)
        return TERN_OK;
    if (t->type != 0 || t->n_dims != 1 || t->ne[0] != half)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE, "%s: tensor %s must be %zu values of type f32",
                         tern_gguf_name(file), name, half);
    float *factors = malloc(half * sizeof *factors);
    if (factors == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu rotation factors", half);
    memcpy(factors, t->data, half * sizeof *factors);
    for (size_t i = 0; i < half; i++)
        if (!(factors[i] > 1e-6f && factors[i] < 1e6f)) {
            const double wrong = (double)factors[i];
            free(factors);
            return tern_fail(err, TERN_ERR_TENSOR_DATA, "%s: tensor %s: element %zu is %g",
                             tern_gguf_name(file), name, i, wrong);
        }
    *out = factors;
    return TERN_OK;
}

tern_status tern_config_frequencies(const tern_gguf *file, const tern_config *c,
                                    const tern_layer_kind *kind, double **out, tern_error *err) {
    const size_t half = c->n_rot / 2;
    float *factors;
    double *frequency = calloc(half, sizeof *frequency);
    if (frequency == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu rotation frequencies", half);
    const tern_status status = read_factors(file, c, half, &factors, err);
    if (status != TERN_OK) {
        free(frequency);
        return status;
    }
    tern_rope_frequencies((double)kind->rope_base, (double)kind->rope_scale, factors, c->n_rot,
                          frequency);
    free(factors);
    if (kind->yarn.factor > 0.0f)
        tern_rope_yarn_stretch(&kind->yarn, (double)kind->rope_base, c->n_rot, frequency);
    *out = frequency;
    return TERN_OK;
}
