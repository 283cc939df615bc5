/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/config/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/model/config/internal.h"

enum {
    MAX_LAYERS = 1024,
    MAX_WIDTH = 65535, /* the bound of exact ternary sums, docs/numerics.md */
    MAX_HEADS = 4096,
    MAX_CONTEXT = 1 << 24
};

/* The status for a key that is 0: a model that lacks what the key counts is told from one that has
 * too much. */
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

tern_status tern_config_u32(const tern_gguf *file, const tern_arch *arch, const char *suffix,
                            uint32_t fallback, uint32_t low, uint32_t high, uint32_t *out,
                            tern_error *err) {
    char key[TERN_KEY_BYTES];
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

tern_status tern_config_f32(const tern_gguf *file, const tern_arch *arch, const char *suffix,
                            float fallback, float low, float high, float *out, tern_error *err) {
    char key[TERN_KEY_BYTES];
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

tern_status tern_config_optional_f32(const tern_gguf *file, const tern_arch *arch,
                                     const char *suffix, float high, float *out, tern_error *err) {
    char key[TERN_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s", arch->name, suffix);
    *out = 0.0f;
    return tern_gguf_find(file, key) != NULL
               ? tern_config_f32(file, arch, suffix, 0.0f, 0.0f, high, out, err)
               : TERN_OK;
}

tern_status tern_config_name(const tern_gguf *file, const tern_arch *arch, const char *suffix,
                             tern_span *out, tern_error *err) {
    char key[TERN_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s", arch->name, suffix);
    *out = (tern_span){.data = "", .size = 0};
    return tern_gguf_find(file, key) != NULL ? tern_gguf_string(file, key, out, err) : TERN_OK;
}

/* ---- activation ---------------------------------------------------------------------------- */

/* Names of activations in files. "gelu" alone is left out: it means the form with erf to some
 * programs and the one with tanh to others. */
static const struct {
    const char *name;
    tern_op gate;
} activations[] = {
    {"silu", TERN_OP_GATE_SILU},
    {"swish", TERN_OP_GATE_SILU},
    {"relu2", TERN_OP_GATE_RELU2},
    {"relu_squared", TERN_OP_GATE_RELU2},
    {"gelu_pytorch_tanh", TERN_OP_GATE_GELU},
    {"gelu_tanh", TERN_OP_GATE_GELU},
};

/* Sets the gate: the architecture's own, unless the file says another. */
static tern_status read_activation(const tern_gguf *file, tern_config *c, tern_error *err) {
    tern_span name;
    const tern_status status = tern_config_name(file, c->arch, "hidden_activation", &name, err);
    c->gate = c->arch->gate;
    if (status != TERN_OK || name.size == 0)
        return status;
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (tern_span_is(name, activations[i].name)) {
            c->gate = activations[i].gate;
            return TERN_OK;
        }
    return tern_fail(err, TERN_ERR_CONFIG,
                     "%s: key %s.hidden_activation is '%.*s', which is not supported (silu, relu2, "
                     "gelu_pytorch_tanh)",
                     tern_gguf_name(file), c->arch->name, TERN_SPAN_SHOWN(name));
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* The key of the feed-forward width. Experts have a width of their own, unless the file has only
 * the usual key. */
static const char *feed_forward_key(const tern_gguf *file, const tern_arch *a) {
    static const char of_experts[] = "expert_feed_forward_length";
    char key[TERN_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s", a->name, of_experts);
    return (a->has & TERN_HAS_EXPERTS) != 0 && tern_gguf_find(file, key) != NULL
               ? of_experts
               : of_experts + strlen("expert_");
}

static tern_status read_sizes(const tern_gguf *file, tern_config *c, tern_error *err) {
    const tern_arch *a = c->arch;
    const tern_arch_defaults none = {.of = NULL};
    const tern_arch_defaults *d = a->defaults != NULL ? a->defaults : &none;
    tern_status status;
    if ((status = tern_config_u32(file, a, "block_count", d->n_layer, 1, MAX_LAYERS, &c->n_layer,
                                  err)) ||
        (status = tern_config_u32(file, a, "embedding_length", d->n_embd, 1, MAX_WIDTH, &c->n_embd,
                                  err)) ||
        (status = tern_config_u32(file, a, feed_forward_key(file, a), d->n_ff, 1, MAX_WIDTH,
                                  &c->n_ff, err)) ||
        (status = tern_config_u32(file, a, "attention.head_count", d->n_head, 1, MAX_HEADS,
                                  &c->n_head, err)) ||
        (status = tern_config_u32(file, a, "attention.head_count_kv",
                                  d->n_head_kv ? d->n_head_kv : c->n_head, 1, MAX_HEADS,
                                  &c->n_head_kv, err)) ||
        (status = tern_config_u32(file, a, "context_length", d->n_ctx, 1, MAX_CONTEXT, &c->n_ctx,
                                  err)) ||
        (status = tern_config_f32(file, a,
                                  a->encodes || a->layer_norms ? "attention.layer_norm_epsilon"
                                                               : "attention.layer_norm_rms_epsilon",
                                  d->norm_eps, 0.0f, 1.0f, &c->norm_eps, err)) ||
        (status =
             tern_config_f32(file, a, "rope.freq_base", d->rope_base > 0 ? d->rope_base : 10000.0f,
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
    tern_status status = tern_config_u32(file, c->arch, "attention.key_length", derived, 1,
                                         MAX_WIDTH, &c->head_dim, err);
    if (status == TERN_ERR_KEY_MISSING)
        return tern_fail(err, TERN_ERR_CONFIG, "%s: width %u is not a multiple of %u heads",
                         tern_gguf_name(file), c->n_embd, c->n_head);
    if (status == TERN_OK)
        status = tern_config_u32(file, c->arch, "attention.value_length", c->head_dim, 1, MAX_WIDTH,
                                 &value_dim, err);
    if (status == TERN_OK)
        status = tern_config_u32(file, c->arch, "rope.dimension_count", c->head_dim, 2, MAX_WIDTH,
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

/* A scale of 0 means the usual one, in files and in the programs that write them. */
static tern_status read_attention_scale(const tern_gguf *file, tern_config *c, tern_error *err) {
    const bool by_width = c->arch->width_scaled != 0 && c->n_layer == c->arch->width_scaled;
    const float dim = by_width ? (float)c->n_embd / (float)c->n_head : (float)c->head_dim;
    const float usual = 1.0f / sqrtf(dim);
    const tern_status status = tern_config_f32(file, c->arch, "attention.scale", usual, 0.0f, 1e6f,
                                               &c->attention_scale, err);
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
    const tern_gguf_tensor *types = tern_gguf_find_tensor(file, "token_types.weight");
    c->n_types = types != NULL && types->ne[1] <= MAX_WIDTH ? (uint32_t)types->ne[1] : 1;
    return TERN_OK;
}

/* Reads which layers see all positions. The file says how often such a layer comes, or has a flag
 * for each layer; the flags must give the architecture's period. */
static tern_status read_period(const tern_gguf *file, tern_config *c, tern_error *err) {
    static const char suffix[] = "attention.sliding_window_pattern";
    const tern_gguf_value *flags;
    char key[TERN_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s", c->arch->name, suffix);
    if (tern_gguf_array(file, key, TERN_GGUF_BOOL, &flags, NULL) != TERN_OK)
        return tern_config_u32(file, c->arch, suffix, c->arch->second->period, 1, MAX_LAYERS,
                               &c->period, err);
    for (uint32_t i = 0; i < c->n_layer; i++)
        if (flags->count != c->n_layer || (flags->data[i] != 0) != ((i + 1) % c->period != 0))
            return tern_fail(err, TERN_ERR_CONFIG,
                             "%s: key %s is not supported: not every %u-th layer sees all",
                             tern_gguf_name(file), key, c->period);
    return TERN_OK;
}

/* Reads the numbers of windowed layers. Their heads must be as wide as those of the others. */
static tern_status read_windows(const tern_gguf *file, tern_config *c, tern_error *err) {
    tern_layer_kind *kind = &c->kinds[1];
    uint32_t same;
    tern_status s;
    if ((s = read_period(file, c, err)) ||
        (s = tern_config_u32(file, c->arch, "attention.sliding_window", 0, 1, MAX_CONTEXT,
                             &kind->window, err)) ||
        (s = tern_config_f32(file, c->arch, "rope.freq_base_swa", kind->rope_base, 1.0f, 1e12f,
                             &kind->rope_base, err)) ||
        (s = tern_config_u32(file, c->arch, "attention.key_length_swa", c->head_dim, c->head_dim,
                             c->head_dim, &same, err)) ||
        (s = tern_config_u32(file, c->arch, "attention.value_length_swa", c->head_dim, c->head_dim,
                             c->head_dim, &same, err)) ||
        (s = tern_config_u32(file, c->arch, "rope.dimension_count_swa", c->n_rot, c->n_rot,
                             c->n_rot, &same, err)))
        return s;
    return TERN_OK;
}

/* Reads a window that all layers have. One as long as the context hides nothing and is ignored. */
static tern_status read_window(const tern_gguf *file, tern_config *c, tern_error *err) {
    uint32_t window;
    const tern_status status = tern_config_u32(file, c->arch, "attention.sliding_window", c->n_ctx,
                                               0, UINT32_MAX, &window, err);
    if (status == TERN_OK && window < c->n_ctx)
        c->kinds[0].window = window;
    return status;
}

static bool has_window(const tern_gguf *file, const tern_arch *arch) {
    char key[TERN_KEY_BYTES];
    snprintf(key, sizeof key, "%s.attention.sliding_window", arch->name);
    return tern_gguf_find(file, key) != NULL;
}

tern_status tern_config_kinds(const tern_gguf *file, tern_config *c, tern_error *err) {
    const tern_arch_second_kind *second = c->arch->second;
    c->n_kinds = 1;
    c->period = 1;
    if (c->arch->may_lack_second && !has_window(file, c->arch))
        return TERN_OK;
    if (second == NULL)
        return c->arch->may_window ? read_window(file, c, err) : TERN_OK;
    c->kinds[c->n_kinds++] = second->alone_turned || second->alike ? c->kinds[0] : second->kind;
    c->period = second->period;
    if (second->alone_turned) /* angles of 0 leave a head as it is */
        c->kinds[0] = (tern_layer_kind){.rope_base = c->kinds[0].rope_base, .rope_gain = 1.0};
    return second->windowed ? read_windows(file, c, err) : TERN_OK;
}

uint32_t tern_config_kind_of(const tern_config *c, uint32_t layer) {
    return (layer + 1) % c->period != 0 ? 1 : 0;
}

uint32_t tern_config_layers_of(const tern_config *c, uint32_t kind) {
    const uint32_t first = c->n_layer / c->period;
    return kind == 0 ? first : c->n_layer - first;
}

size_t tern_config_linears(const tern_config *c) {
    size_t n = 0;
    for (uint32_t kind = 0; kind < c->n_kinds; kind++)
        n += tern_config_layers_of(c, kind) * tern_block_linears(c->arch, kind);
    return n;
}

/* Whole periods are skipped at once: it is asked for each matrix while a model is opened. */
void tern_config_linear_at(const tern_config *c, size_t i, uint32_t *layer, size_t *at) {
    const size_t others = c->period > 1 ? tern_block_linears(c->arch, 1) : 0;
    const size_t whole = tern_block_linears(c->arch, 0) + (c->period - 1) * others;
    uint32_t n = (uint32_t)(i / whole) * c->period;
    i %= whole;
    for (; others > 0 && others <= i && (n + 1) % c->period != 0; n++)
        i -= others;
    *layer = n;
    *at = tern_block_linear_at(c->arch, tern_config_kind_of(c, n), i);
}

uint32_t tern_config_window(const tern_config *c) {
    uint32_t window = 0;
    for (uint32_t i = 0; i < c->n_kinds; i++)
        if (tern_config_layers_of(c, i) > 0 && c->kinds[i].window > window)
            window = c->kinds[i].window;
    return window;
}

static tern_status unknown_architecture(const tern_gguf *file, tern_span name, tern_error *err) {
    char known[TERN_ARCH_NAMES_BYTES];
    const char *what = tern_arch_missing(name);
    if (what != NULL)
        return tern_fail(err, TERN_ERR_ARCH,
                         "%s: architecture '%.*s' is not supported: it needs %s",
                         tern_gguf_name(file), TERN_SPAN_SHOWN(name), what);
    return tern_fail(err, TERN_ERR_ARCH, "%s: architecture '%.*s' is not supported (%s)",
                     tern_gguf_name(file), TERN_SPAN_SHOWN(name),
                     tern_arch_names(known, sizeof known));
}

/* Refuses the file of an adapter, whose keys may name the architecture of the model that it
 * changes. */
static tern_status check_type(const tern_gguf *file, tern_error *err) {
    static const char adapter[] = "adapter";
    tern_span type = {"", 0};
    (void)tern_gguf_string(file, "general.type", &type, NULL);
    if (type.size != sizeof adapter - 1 || memcmp(type.data, adapter, type.size) != 0)
        return TERN_OK;
    return tern_fail(err, TERN_ERR_ARCH,
                     "%s: is an adapter (LoRA), which changes another model: merge it into that "
                     "model",
                     tern_gguf_name(file));
}

/* True if the file has any of the norms before matrices: then it must have all of them. */
static bool has_input_norms(const tern_gguf *file) {
    static const char end[] = "_norm_in.weight";
    const size_t n = sizeof end - 1;
    for (size_t i = 0; i < tern_gguf_tensor_count(file); i++) {
        const tern_span name = tern_gguf_tensor_at(file, i)->name;
        if (name.size > n && memcmp(name.data + name.size - n, end, n) == 0)
            return true;
    }
    return false;
}

tern_status tern_config_read(const tern_gguf *file, tern_config *out, tern_error *err) {
    tern_span name;
    tern_config c = {.arch = NULL};
    tern_status status = check_type(file, err);
    if (status == TERN_OK)
        status = tern_gguf_string(file, "general.architecture", &name, err);
    if (status != TERN_OK)
        return status;
    c.arch = tern_arch_find(name);
    if (c.arch == NULL)
        return unknown_architecture(file, name, err);
    if (c.arch->normed != NULL && has_input_norms(file))
        c.arch = c.arch->normed;
    if ((status = read_sizes(file, &c, err)) || (status = read_heads(file, &c, err)) ||
        (status = read_attention_scale(file, &c, err)) ||
        (status = read_activation(file, &c, err)) ||
        (status = tern_config_rope_scaling(file, &c, err)) ||
        (status = tern_config_kinds(file, &c, err)) ||
        (status = tern_config_deltas(file, &c, err)) ||
        (status = tern_config_factors(file, &c, err)) ||
        (status = tern_config_experts(file, &c, err)) ||
        (status = read_vocabulary(file, &c, err)) || (status = tern_config_pooling(file, &c, err)))
        return status;
    *out = c;
    return TERN_OK;
}
