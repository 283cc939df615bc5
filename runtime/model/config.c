/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/rope.h"

enum {
    MAX_LAYERS = 1024,
    MAX_WIDTH = 65535, /* the bound of exact ternary sums, docs/numerics.md */
    MAX_HEADS = 4096,
    MAX_CONTEXT = 1 << 24
};

/* The status for a key that is 0: a model without what it counts is told from one with too much. */
static tern_status nothing_of(const char *suffix) {
    static const char *const sizes[] = {"block_count", "embedding_length", "feed_forward_length",
                                        "attention.head_count", "attention.key_length"};
    if (strcmp(suffix, "attention.head_count_kv") == 0)
        return TERN_ERR_NO_KV_HEADS;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(suffix, sizes[i]) == 0)
            return TERN_ERR_NO_SIZE;
    return TERN_ERR_KEY_RANGE;
}

/* Reads ARCH.<suffix>; fallback > 0 stands in for a missing key. */
static tern_status read_u32(const tern_gguf *file, const tern_arch *arch, const char *suffix,
                            uint32_t fallback, uint32_t low, uint32_t high, uint32_t *out,
                            tern_error *err) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", arch->name, suffix);
    uint32_t value = fallback;
    if (fallback == 0 || tern_gguf_find(file, key) != NULL) {
        const tern_status status = tern_gguf_u32(file, key, &value, err);
        if (status != TERN_OK)
            return status;
    }
    if (value < low || value > high)
        return tern_fail(err, value == 0 ? nothing_of(suffix) : TERN_ERR_KEY_RANGE,
                         "%s: key %s is %u, must be %u to %u", tern_gguf_name(file), key, value,
                         low, high);
    *out = value;
    return TERN_OK;
}

static tern_status read_f32(const tern_gguf *file, const tern_arch *arch, const char *suffix,
                            float fallback, float low, float high, float *out, tern_error *err) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", arch->name, suffix);
    float value = fallback;
    if (fallback <= 0 || tern_gguf_find(file, key) != NULL) {
        const tern_status status = tern_gguf_f32(file, key, &value, err);
        if (status != TERN_OK)
            return status;
    }
    if (!(value >= low && value <= high))
        return tern_fail(err, TERN_ERR_KEY_RANGE, "%s: key %s is %g, must be %g to %g",
                         tern_gguf_name(file), key, (double)value, (double)low, (double)high);
    *out = value;
    return TERN_OK;
}

/* Only no scaling and linear scaling are known; factor 1 is no scaling, whatever its type. */
static tern_status read_rope_scaling(const tern_gguf *file, tern_config *c, tern_error *err) {
    char key[128];
    tern_span type = {.data = "", .size = 0};
    float factor = 1.0f;
    tern_status status =
        read_f32(file, c->arch, "rope.scaling.factor", 1.0f, 1.0f / 1024, 1024, &factor, err);
    if (status == TERN_OK && factor == 1.0f)
        status =
            read_f32(file, c->arch, "rope.scale_linear", 1.0f, 1.0f / 1024, 1024, &factor, err);
    if (status != TERN_OK)
        return status;
    snprintf(key, sizeof key, "%s.rope.scaling.type", c->arch->name);
    if (tern_gguf_find(file, key) != NULL) {
        status = tern_gguf_string(file, key, &type, err);
        if (status != TERN_OK)
            return status;
    }
    const bool linear = type.size == 0 || (type.size == 6 && memcmp(type.data, "linear", 6) == 0);
    const bool none = type.size == 4 && memcmp(type.data, "none", 4) == 0;
    if (factor != 1.0f && !linear && !none)
        return tern_fail(err, TERN_ERR_CONFIG,
                         "%s: rope scaling '%.*s' is not supported (none, linear)",
                         tern_gguf_name(file), (int)(type.size < 32 ? type.size : 32), type.data);
    c->kinds[0].rope_scale = none ? 1.0f : 1.0f / factor;
    return TERN_OK;
}

static tern_status read_sizes(const tern_gguf *file, tern_config *c, tern_error *err) {
    const tern_arch *a = c->arch;
    const tern_arch_defaults none = {.of = NULL};
    const tern_arch_defaults *d = a->defaults != NULL ? a->defaults : &none;
    tern_status status;
    if ((status = read_u32(file, a, "block_count", d->n_layer, 1, MAX_LAYERS, &c->n_layer, err)) ||
        (status =
             read_u32(file, a, "embedding_length", d->n_embd, 1, MAX_WIDTH, &c->n_embd, err)) ||
        (status = read_u32(file, a, "feed_forward_length", d->n_ff, 1, MAX_WIDTH, &c->n_ff, err)) ||
        (status =
             read_u32(file, a, "attention.head_count", d->n_head, 1, MAX_HEADS, &c->n_head, err)) ||
        (status =
             read_u32(file, a, "attention.head_count_kv", d->n_head_kv ? d->n_head_kv : c->n_head,
                      1, MAX_HEADS, &c->n_head_kv, err)) ||
        (status = read_u32(file, a, "context_length", d->n_ctx, 1, MAX_CONTEXT, &c->n_ctx, err)) ||
        (status = read_f32(file, a, "attention.layer_norm_rms_epsilon", d->norm_eps, 0.0f, 1.0f,
                           &c->norm_eps, err)) ||
        (status = read_f32(file, a, "rope.freq_base", d->rope_base > 0 ? d->rope_base : 10000.0f,
                           1.0f, 1e12f, &c->kinds[0].rope_base, err)))
        return status;
    return TERN_OK;
}

static tern_status read_heads(const tern_gguf *file, tern_config *c, tern_error *err) {
    if (c->n_head % c->n_head_kv != 0)
        return tern_fail(err, TERN_ERR_HEADS, "%s: %u heads cannot share %u key/value heads",
                         tern_gguf_name(file), c->n_head, c->n_head_kv);
    const uint32_t derived = c->n_embd % c->n_head == 0 ? c->n_embd / c->n_head : 0;
    uint32_t value_dim;
    tern_status status =
        read_u32(file, c->arch, "attention.key_length", derived, 1, MAX_WIDTH, &c->head_dim, err);
    if (status == TERN_ERR_KEY_MISSING)
        return tern_fail(err, TERN_ERR_CONFIG, "%s: width %u is not a multiple of %u heads",
                         tern_gguf_name(file), c->n_embd, c->n_head);
    if (status == TERN_OK)
        status = read_u32(file, c->arch, "attention.value_length", c->head_dim, 1, MAX_WIDTH,
                          &value_dim, err);
    if (status == TERN_OK)
        status = read_u32(file, c->arch, "rope.dimension_count", c->head_dim, 2, MAX_WIDTH,
                          &c->n_rot, err);
    if (status != TERN_OK)
        return status;
    if (value_dim != c->head_dim)
        return tern_fail(err, TERN_ERR_CONFIG, "%s: key length %u and value length %u differ",
                         tern_gguf_name(file), c->head_dim, value_dim);
    if (c->n_rot % 2 != 0 || c->n_rot > c->head_dim)
        return tern_fail(err, TERN_ERR_CONFIG,
                         "%s: rope dimension count %u must be even and at most the head's %u",
                         tern_gguf_name(file), c->n_rot, c->head_dim);
    return TERN_OK;
}

/* 0 says the usual one, in files and in the programs that write them. */
static tern_status read_attention_scale(const tern_gguf *file, tern_config *c, tern_error *err) {
    const float usual = 1.0f / sqrtf((float)c->head_dim);
    const tern_status status =
        read_f32(file, c->arch, "attention.scale", usual, 0.0f, 1e6f, &c->attention_scale, err);
    if (status == TERN_OK && c->attention_scale == 0.0f)
        c->attention_scale = usual;
    return status;
}

static tern_status read_vocabulary(const tern_gguf *file, tern_config *c, tern_error *err) {
    const tern_gguf_tensor *embedding = tern_gguf_find_tensor(file, "token_embd.weight");
    if (embedding == NULL)
        return tern_fail(err, TERN_ERR_TENSOR_MISSING, "%s: tensor token_embd.weight is missing",
                         tern_gguf_name(file));
    if (embedding->n_dims != 2 || embedding->ne[0] != c->n_embd || embedding->ne[1] > INT32_MAX)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor token_embd.weight is %llu x %llu, must be %u x vocabulary",
                         tern_gguf_name(file), (unsigned long long)embedding->ne[0],
                         (unsigned long long)embedding->ne[1], c->n_embd);
    c->n_vocab = (uint32_t)embedding->ne[1];
    return TERN_OK;
}

tern_status tern_config_kinds(const tern_gguf *file, tern_config *c, tern_error *err) {
    c->n_kinds = 1;
    if (c->arch->second != NULL)
        c->kinds[c->n_kinds++] = c->arch->second->kind;
    for (uint32_t i = 0; i < c->n_kinds; i++)
        if (c->kinds[i].window != 0)
            return tern_fail(err, TERN_ERR_CONFIG,
                             "%s: layers of kind %u attend to a window of %u positions, which is "
                             "not supported",
                             tern_gguf_name(file), i, c->kinds[i].window);
    return TERN_OK;
}

uint32_t tern_config_kind_of(const tern_config *c, uint32_t layer) {
    return c->arch->second != NULL && (layer + 1) % c->arch->second->period != 0 ? 1 : 0;
}

static tern_status unknown_architecture(const tern_gguf *file, tern_span name, tern_error *err) {
    char known[200];
    return tern_fail(err, TERN_ERR_ARCH, "%s: architecture '%.*s' is not supported (%s)",
                     tern_gguf_name(file), (int)(name.size < 64 ? name.size : 64), name.data,
                     tern_arch_names(known, sizeof known));
}

tern_status tern_config_read(const tern_gguf *file, tern_config *out, tern_error *err) {
    tern_span name;
    tern_config c = {.arch = NULL};
    tern_status status = tern_gguf_string(file, "general.architecture", &name, err);
    if (status != TERN_OK)
        return status;
    c.arch = tern_arch_find(name);
    if (c.arch == NULL)
        return unknown_architecture(file, name, err);
    if ((status = read_sizes(file, &c, err)) || (status = read_heads(file, &c, err)) ||
        (status = read_attention_scale(file, &c, err)) ||
        (status = read_rope_scaling(file, &c, err)) ||
        (status = tern_config_kinds(file, &c, err)) || (status = read_vocabulary(file, &c, err)))
        return status;
    *out = c;
    return TERN_OK;
}

/* Copies the factors, since a file may be aligned to less than a float. NULL where it has none. */
static tern_status read_factors(const tern_gguf *file, size_t half, float **out, tern_error *err) {
    const tern_gguf_tensor *t = tern_gguf_find_tensor(file, "rope_freqs.weight");
    *out = NULL;
    if (t == NULL)
        return TERN_OK;
    if (t->type != 0 || t->n_dims != 1 || t->ne[0] != half)
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor rope_freqs.weight must be %zu values of type f32",
                         tern_gguf_name(file), half);
    float *factors = malloc(half * sizeof *factors);
    if (factors == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu rotation factors", half);
    memcpy(factors, t->data, half * sizeof *factors);
    for (size_t i = 0; i < half; i++)
        if (!(factors[i] > 1e-6f && factors[i] < 1e6f)) {
            const double wrong = (double)factors[i];
            free(factors);
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "%s: tensor rope_freqs.weight: element %zu is %g",
                             tern_gguf_name(file), i, wrong);
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
    const tern_status status = read_factors(file, half, &factors, err);
    if (status != TERN_OK) {
        free(frequency);
        return status;
    }
    tern_rope_frequencies((double)kind->rope_base, (double)kind->rope_scale, factors, c->n_rot,
                          frequency);
    free(factors);
    *out = frequency;
    return TERN_OK;
}
