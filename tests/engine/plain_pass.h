/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_ENGINE_PLAIN_PASS_H
#define TERN_TESTS_ENGINE_PLAIN_PASS_H

/* A forward pass that uses the reference functions alone, token by token, on the weights as the
 * file stores them. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/reference.h"
#include "runtime/model/config/rope.h"
#include "runtime/model/config/rope_scaling.h"
#include "runtime/model/model.h"
#include "tests/engine/plain_delta.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { TOKENS = 70, MAX_WIDTH = 2048, MAX_BLOCKS = MAX_WIDTH / TERN_BLOCK, MAX_HALF = 128 };

typedef struct plain_experts {
    uint32_t n, used; /* 0: none */
    bool norm;
    float scale, clamp;
} plain_experts;

/* The plain pass: the model's numbers, and its state between tokens. */
typedef struct plain {
    tiny_file file;
    tern_model_info info;
    tern_ref_activation gating;
    tern_ref_pairing pairing;
    float eps;
    float embedding_scale;
    float logit_divisor;
    plain_experts experts;
    double rope_gain;
    size_t half; /* half the dimensions of a head that rotate */
    const tern_config *config;
    bool turned_norms;  /* heads of q and k are normed after they are turned */
    bool late_norm;     /* the norm before the feed-forward part is named after attention */
    uint32_t window[2]; /* window of layers of each kind; 0: none */
    uint32_t period;    /* every period-th layer is of the first kind; 1: all */
    double frequency[2][MAX_HALF]; /* by kind of layer */
    tern_format kv;
    size_t row_bytes;
    uint8_t *k, *v; /* [n_layer][n_head_kv][TOKENS] rows */
    float *states;  /* [n_layer] of delta nets, as long as plain_delta_floats says */
} plain;

/* A number under one of the architecture's keys, or the default if the key is missing. */
static float number(const plain *p, const char *suffix, float missing) {
    char key[96];
    float value;
    snprintf(key, sizeof key, "%s.%s", p->info.architecture, suffix);
    return tern_gguf_f32(p->file.source, key, &value, NULL) == TERN_OK ? value : missing;
}

static bool is_listed(const plain *p, const char *key, const char *name) {
    const tern_gguf_value *names = tern_gguf_find(p->file.source, key);
    const uint8_t *cursor = names != NULL ? names->data : NULL;
    for (uint64_t i = 0; names != NULL && i < names->count; i++) {
        const tern_span text = tern_gguf_next_string(&cursor);
        if (text.size == strlen(name) && memcmp(text.data, name, text.size) == 0)
            return true;
    }
    return false;
}

/* The signs for rows of length n. The preset's file has them as 32-bit numbers, width by width. */
static void find_signs(const plain *p, size_t n, float *signs) {
    const tern_gguf_value *widths = tern_gguf_find(p->file.source, "prism.hadamard.sign_widths");
    const tern_gguf_value *values = tern_gguf_find(p->file.source, "prism.hadamard.sign_values");
    uint32_t width = 0;
    size_t at = 0;
    assert_true(widths != NULL && values != NULL && values->element == TERN_GGUF_I32);
    for (uint64_t i = 0; tern_gguf_element_u32(widths, i, &width) && width != n; i++)
        at += width;
    assert_int_equal(width, n);
    for (size_t i = 0; i < n; i++) {
        int32_t sign;
        memcpy(&sign, values->data + (at + i) * sizeof sign, sizeof sign);
        signs[i] = (float)sign;
    }
}

/* The input of that matrix: x[n] itself, or H(signs * x). */
static const float *turned(const plain *p, const char *name, const float *x, size_t n) {
    static float signs[MAX_WIDTH], y[MAX_WIDTH];
    uint32_t block = 0;
    if (!is_listed(p, "prism.hadamard.weight_names", name))
        return x;
    assert_int_equal(tern_gguf_u32(p->file.source, "prism.hadamard.block_size", &block, NULL),
                     TERN_OK);
    find_signs(p, n, signs);
    tern_ref_hadamard(x, signs, NULL, n, block, y);
    return y;
}

/* Undoes the rotation of an embedding row: signs * H(x). */
static void turn_back(const plain *p, float *x, size_t n) {
    float signs[MAX_WIDTH];
    uint32_t block = 0;
    if (!is_listed(p, "prism.hadamard.inverse_weight_names", "token_embd.weight"))
        return;
    assert_int_equal(tern_gguf_u32(p->file.source, "prism.hadamard.block_size", &block, NULL),
                     TERN_OK);
    find_signs(p, n, signs);
    tern_ref_hadamard(x, NULL, signs, n, block, x);
}

/* Longrope's factors for short texts; NULL if the file has none. */
static const float *rope_factors(const tiny_file *file) {
    static float factors[MAX_HALF];
    for (size_t i = 0; i < file->n; i++)
        if (strcmp(file->tensors[i].name, "rope_factors_short.weight") == 0)
            return memcpy(factors, file->tensors[i].data, file->tensors[i].bytes);
    return NULL;
}

static plain plain_new(const char *preset, const tern_model *model, tern_format kv) {
    const tern_config *config = &model->config;
    plain p = {.file = tiny_read(preset), .kv = kv, .period = config->period, .config = config};
    float base = 0.0f;
    char key[96];
    tern_model_describe(model, &p.info);
    p.gating = tern_ref_activation_of(model->config.gate);
    p.pairing =
        model->config.arch->rope == TERN_OP_ROPE_NEOX ? TERN_REF_PAIR_NEOX : TERN_REF_PAIR_NORM;
    snprintf(key, sizeof key, "%s.attention.layer_norm_%sepsilon", p.info.architecture,
             config->arch->layer_norms ? "" : "rms_");
    assert_int_equal(tern_gguf_f32(p.file.source, key, &p.eps, NULL), TERN_OK);
    snprintf(key, sizeof key, "%s.rope.freq_base", p.info.architecture);
    assert_int_equal(tern_gguf_f32(p.file.source, key, &base, NULL), TERN_OK);
    p.half = config->n_rot / 2;
    p.experts = (plain_experts){.n = config->n_expert,
                                .used = config->n_used,
                                .norm = config->expert_norm,
                                .scale = config->expert_scale,
                                .clamp = config->expert_clamp};
    tern_rope_frequencies((double)base, 1.0, rope_factors(&p.file), config->n_rot, p.frequency[0]);
    p.window[0] = config->kinds[0].window;
    if (config->n_kinds > 1) {
        p.window[1] = config->kinds[1].window;
        tern_rope_frequencies((double)config->kinds[1].rope_base, 1.0, NULL, config->n_rot,
                              p.frequency[1]);
    }
    if (config->n_kinds > 1 && config->arch->second->alone_turned)
        memset(p.frequency[0], 0, sizeof p.frequency[0]);
    p.rope_gain = (double)number(&p, "rope.scaling.attn_factor", 1.0f);
    p.config = config;
    p.turned_norms = (config->arch->has & TERN_HAS_TURNED_QK_NORMS) != 0;
    p.late_norm = (config->arch->has & TERN_HAS_LATE_FFN_NORM) != 0;
    for (uint32_t i = 0; i < config->n_kinds && config->kinds[i].yarn.factor > 0.0f; i++) {
        p.rope_gain = config->kinds[i].rope_gain;
        tern_rope_yarn_stretch(&config->kinds[i].yarn, (double)base, config->n_rot, p.frequency[i]);
    }
    p.logit_divisor = number(&p, "logit_scale", 1.0f);
    if (config->arch->logit_times)
        p.logit_divisor = (float)(1.0 / (double)p.logit_divisor);
    const double r = (double)number(&p, "residual_scale", 1.0f); /* the stream is divided by it */
    p.eps = (float)((double)p.eps / (r * r));
    p.embedding_scale = strncmp(p.info.architecture, "gemma", 5) == 0
                            ? sqrtf((float)p.info.n_embd)
                            : (float)((double)number(&p, "embedding_scale", 1.0f) / r);
    const size_t rows = (size_t)p.info.n_layer * p.info.n_head_kv * TOKENS;
    p.row_bytes = tiny_cache_row_bytes(kv, p.info.head_dim);
    p.k = calloc(rows, p.row_bytes);
    p.v = calloc(rows, p.row_bytes);
    p.states = calloc(p.info.n_layer, sizeof(float) * plain_delta_floats(&config->delta) + 1);
    assert_true(p.k != NULL && p.v != NULL && p.states != NULL);
    assert_true(p.info.n_ff <= MAX_WIDTH && p.info.n_head * p.info.head_dim <= MAX_WIDTH);
    assert_true(p.info.head_dim / 2 <= MAX_HALF);
    return p;
}

static void plain_free(plain *p) {
    free(p->k);
    free(p->v);
    free(p->states);
    tiny_file_free(&p->file);
}

static uint8_t *cached(const plain *p, uint8_t *cache, size_t layer, size_t head, size_t position) {
    const size_t row = (layer * p->info.n_head_kv + head) * TOKENS + position;
    return cache + row * p->row_bytes;
}

/* NULL if the file has none. */
static const tiny_tensor *find(plain *p, uint32_t layer, const char *name, const char *what) {
    char text[64];
    snprintf(text, sizeof text, "blk.%u.%s.%s", layer, name, what);
    for (size_t i = 0; i < p->file.n; i++)
        if (strcmp(p->file.tensors[i].name, text) == 0)
            return &p->file.tensors[i];
    return NULL;
}

/* Consecutive rows of a matrix that holds several matrices. */
static const tiny_tensor *rows_of(const tiny_tensor *whole, size_t first, size_t rows) {
    static tiny_tensor some;
    const size_t row_bytes = whole->bytes / whole->ne[1];
    some = *whole;
    some.ne[1] = rows;
    some.bytes = rows * row_bytes;
    some.data += first * row_bytes;
    return &some;
}

static const tiny_tensor *tensor(plain *p, uint32_t layer, const char *name) {
    const size_t dim = p->info.head_dim, q = p->info.n_head * dim, kv = p->info.n_head_kv * dim;
    const size_t n_ff = p->info.n_ff;
    const tiny_tensor *t = find(p, layer, name, "weight");
    const tiny_tensor *qkv = find(p, layer, "attn_qkv", "weight");
    const tiny_tensor *both = find(p, layer, "ffn_up", "weight");
    if (qkv != NULL && strncmp(name, "attn_", 5) == 0 && name[6] == '\0')
        return name[5] == 'q'   ? rows_of(qkv, 0, q)
               : name[5] == 'k' ? rows_of(qkv, q, kv)
                                : rows_of(qkv, q + kv, kv);
    if (both != NULL && both->ne[1] == 2 * n_ff && strncmp(name, "ffn_", 4) == 0 && t != NULL)
        return strcmp(name, "ffn_up") == 0 ? rows_of(both, n_ff, n_ff) : t;
    if (t == NULL && strcmp(name, "ffn_gate") == 0)
        return rows_of(both, 0, n_ff);
    if (t == NULL)
        check_fail("blk.%u.%s.weight is missing", layer, name);
    return t;
}

/* y[rows] *= factor `expert` of a matrix, if the file has one. */
static void scale(const plain *p, const tiny_tensor *w, size_t expert, float *y) {
    const int stem = (int)(strlen(w->name) - strlen("weight"));
    char name[72];
    float factor;
    (void)snprintf(name, sizeof name, "%.*sscale", stem, w->name);
    for (size_t i = 0; i < p->file.n; i++) {
        if (strcmp(p->file.tensors[i].name, name) != 0)
            continue;
        assert_true((expert + 1) * sizeof factor <= p->file.tensors[i].bytes);
        memcpy(&factor, p->file.tensors[i].data + expert * sizeof factor, sizeof factor);
        for (size_t r = 0; r < w->ne[1]; r++)
            y[r] *= factor;
    }
}

/* y[rows] = W x, from the file's own bytes. x is quantized as the format requires. */
static void multiply_plain(const plain *p, const tiny_tensor *w, const float *given, float *y) {
    static int8_t q[MAX_WIDTH];
    static float s, d[MAX_BLOCKS];
    static int32_t sum, block_sum[MAX_BLOCKS];
    const size_t cols = w->ne[0];
    const float *x = turned(p, w->name, given, cols);
    const size_t rows = w->ne[1];
    tern_ref_matrix matrix = {.format = tern_format_from_gguf(w->type),
                              .file = w->data,
                              .rows = rows,
                              .cols = cols,
                              .scale = 1.0f};
    const tern_activations in = {.cols = cols,
                                 .x = x,
                                 .x_stride = cols,
                                 .q = q,
                                 .q_stride = MAX_WIDTH,
                                 .s = &s,
                                 .sum = &sum,
                                 .d = d,
                                 .block_sum = block_sum,
                                 .d_stride = MAX_BLOCKS};
    const tern_tile all = {.t0 = 0, .t1 = 1, .r0 = 0, .r1 = rows};
    static float row_scale[MAX_WIDTH];
    if (rows <= MAX_WIDTH &&
        tern_ternary_row_scales(matrix.format, w->data, rows, cols, row_scale)) {
        matrix.row_scale = row_scale;
        tern_ref_quantize_token(x, cols, q, &s, &sum);
    } else if (matrix.format > TERN_FORMAT_BF16) {
        matrix.input = TERN_INPUT_BLOCK;
        tern_ref_quantize_block(x, cols, q, d, block_sum);
    }
    tern_ref_matmul(&matrix, &in, &all, y, rows);
}

static void multiply(const plain *p, const tiny_tensor *w, const float *x, float *y) {
    multiply_plain(p, w, x, y);
    scale(p, w, 0, y);
}

/* y[n] = the norm of x[n], or x where the block has no norm there. Every tensor of a file is
 * used. */
static void normalize(const plain *p, const tiny_tensor *g, const float *x, size_t n, float *y) {
    float weights[MAX_WIDTH];
    if (g == NULL) {
        memmove(y, x, n * sizeof *y);
        return;
    }
    assert_int_equal(g->ne[0], n);
    memcpy(weights, g->data, g->bytes);
    if (p->config->arch->layer_norms)
        tern_ref_layernorm(x, weights, NULL, n, p->eps, y);
    else
        tern_ref_rmsnorm(x, weights, n, p->eps, y);
}

/* The same for a matrix of a layer, whose input is normed first if the layer has a norm for it. */
static void multiply_in(plain *p, uint32_t layer, const char *name, const float *x, float *y) {
    static float normed[MAX_WIDTH];
    char own[40];
    const tiny_tensor *w = tensor(p, layer, name);
    (void)snprintf(own, sizeof own, "%s_norm_in", name);
    normalize(p, find(p, layer, own, "weight"), x, w->ne[0], normed);
    multiply(p, w, normed, y);
}

/* Norms y, the heads of q or k, each or all of them together, if the block does that. */
static void norm_heads(plain *p, uint32_t n, const char *norm, size_t n_heads, float *y) {
    const tiny_tensor *gains = find(p, n, norm, "weight");
    const size_t width = gains != NULL ? gains->ne[0] : 1;
    for (size_t at = 0; gains != NULL && at < n_heads * p->info.head_dim; at += width)
        normalize(p, gains, y + at, width, y + at);
}

/* out[n_head * head_dim] = attention at a position. Its k and v are in the cache already. */
static void attend(plain *p, uint32_t layer, size_t position, float *q, float *k, float *v,
                   float *out) {
    const size_t dim = p->info.head_dim;
    const size_t group = p->info.n_head / p->info.n_head_kv;
    float c[MAX_HALF];
    float s[MAX_HALF];
    const size_t kind = (layer + 1) % p->period != 0;
    float sinks[MAX_HALF];
    const tiny_tensor *sunk = find(p, layer, "attn_sinks", "weight");
    if (sunk != NULL)
        memcpy(sinks, sunk->data, sunk->bytes);
    tern_rope_angles(p->frequency[kind], p->rope_gain, p->half, position, c, s);
    for (size_t h = 0; h < p->info.n_head_kv; h++)
        tern_ref_rope(p->pairing, k + h * dim, c, s, p->half);
    const double steps = (double)(position / (p->config->warm_step + (p->config->warm_step == 0)));
    const double warmth = 1.0 + (double)p->config->warming * tern_log(1.0 + steps);
    tern_rope_angles(p->frequency[kind], p->rope_gain * warmth, p->half, position, c, s);
    for (size_t h = 0; h < p->info.n_head; h++)
        tern_ref_rope(p->pairing, q + h * dim, c, s, p->half);
    if (p->turned_norms) {
        norm_heads(p, layer, "attn_q_norm", p->info.n_head, q);
        norm_heads(p, layer, "attn_k_norm", p->info.n_head_kv, k);
    }
    for (size_t h = 0; h < p->info.n_head_kv; h++) {
        tern_ref_store(p->kv, k + h * dim, dim, cached(p, p->k, layer, h, position));
        tern_ref_store(p->kv, v + h * dim, dim, cached(p, p->v, layer, h, position));
        const tern_attend_args args = {.heads = {.positions = position + 1,
                                                 .tokens = 1,
                                                 .group = group,
                                                 .dim = dim,
                                                 .sinks = sunk != NULL ? sinks + h * group : NULL},
                                       .q = q + h * group * dim,
                                       .k = cached(p, p->k, layer, h, 0),
                                       .v = cached(p, p->v, layer, h, 0),
                                       .page_stride = TERN_ATTEND_CHUNK * p->row_bytes,
                                       .scale = 1.0f / sqrtf((float)dim),
                                       .cap = number(p, "attn_logit_softcapping", 0.0f),
                                       .window = p->window[kind]};
        tern_ref_attend(p->kv, &args, out + h * group * dim, group * dim);
    }
}

/* y[n] += row `row` of a bias, if the block has it. */
static void add_bias(plain *p, uint32_t layer, const char *name, size_t row, size_t n, float *y) {
    float values[MAX_WIDTH];
    const tiny_tensor *bias = find(p, layer, name, "bias");
    if (bias == NULL)
        return;
    memcpy(values, bias->data + row * n * sizeof *values, n * sizeof *values);
    tern_ref_add(y, values, n);
}

/* y = W x for a projection to n_heads heads, with its bias or with a norm of each head. */
static void project(plain *p, uint32_t n, const char *name, const char *norm, const float *x,
                    size_t n_heads, float *y) {
    const size_t dim = p->info.head_dim;
    multiply_in(p, n, name, x, y);
    add_bias(p, n, name, 0, n_heads * dim, y);
    if (norm != NULL && !p->turned_norms)
        norm_heads(p, n, norm, n_heads, y);
}

/* y = the product of one expert's matrix, with its factor and its bias. */
static void multiply_expert(plain *p, uint32_t n, const char *name, uint32_t e, const float *x,
                            float *y) {
    tiny_tensor one = *tensor(p, n, name);
    one.bytes /= one.ne[2];
    one.data += e * one.bytes;
    multiply_plain(p, &one, x, y);
    scale(p, &one, e, y);
    add_bias(p, n, name, e, one.ne[1], y);
}

/* True if expert e is among the k with the largest chances. Among equal ones the first count. */
static bool is_taken(const float *chances, uint32_t n_expert, uint32_t k, uint32_t e) {
    uint32_t before = 0;
    for (uint32_t i = 0; i < n_expert; i++)
        before += chances[i] > chances[e] || (chances[i] == chances[e] && i < e);
    return before < k;
}

/* down(act(gate(x)) * up(x)) of one expert, clamped as the model says. */
static void run_expert(plain *p, uint32_t n, uint32_t e, const float *x, float *out) {
    static float gate[MAX_WIDTH], up[MAX_WIDTH];
    const float most = p->experts.clamp;
    multiply_expert(p, n, "ffn_gate_exps", e, x, gate);
    multiply_expert(p, n, "ffn_up_exps", e, x, up);
    for (uint32_t i = 0; most > 0.0f && i < p->info.n_ff; i++) {
        gate[i] = fminf(gate[i], most);
        up[i] = fmaxf(fminf(up[i], most), -most);
    }
    tern_ref_gate(p->gating, gate, up, p->info.n_ff, gate);
    multiply_expert(p, n, "ffn_down_exps", e, gate, out);
}

/* out += the result of the expert that all tokens take, by as much as its gate says. */
static void add_shared(plain *p, uint32_t n, const float *x, float *out) {
    static float gate[MAX_WIDTH], up[MAX_WIDTH], share;
    multiply(p, tensor(p, n, "ffn_gate_inp_shexp"), x, &share);
    multiply(p, tensor(p, n, "ffn_gate_shexp"), x, gate);
    multiply(p, tensor(p, n, "ffn_up_shexp"), x, up);
    tern_ref_gate(p->gating, gate, up, p->config->n_ff_shared, gate);
    multiply(p, tensor(p, n, "ffn_down_shexp"), gate, up);
    for (uint32_t i = 0; i < p->info.n_embd; i++)
        out[i] = out[i] + up[i] * plain_logistic(share);
}

/* out = the weighted sum of the results of this token's experts. */
static void run_experts(plain *p, uint32_t n, const float *x, float *out) {
    static float chances[MAX_WIDTH], one[MAX_WIDTH];
    const plain_experts *c = &p->experts;
    float sum = 0.0f;
    bool first = true;
    multiply(p, tensor(p, n, "ffn_gate_inp"), x, chances);
    add_bias(p, n, "ffn_gate_inp", 0, c->n, chances);
    tern_ref_softmax(chances, c->n);
    for (uint32_t e = 0; e < c->n; e++)
        sum += is_taken(chances, c->n, c->used, e) ? chances[e] : 0.0f;
    for (uint32_t e = 0; e < c->n; e++) {
        if (!is_taken(chances, c->n, c->used, e))
            continue;
        const float weight = (c->norm ? chances[e] / sum : chances[e]) * c->scale;
        run_expert(p, n, e, x, one);
        for (uint32_t i = 0; i < p->info.n_embd; i++) {
            const float part = one[i] * weight;
            out[i] = first ? part : out[i] + part;
        }
        first = false;
    }
}

/* The result of the feed-forward part, before its norm. */
static void feed_forward(plain *p, uint32_t n, const float *x, float *out) {
    static float gate[MAX_WIDTH], up[MAX_WIDTH];
    if (p->experts.n > 0) {
        run_experts(p, n, x, out);
        if (p->config->n_ff_shared > 0)
            add_shared(p, n, x, out);
        return;
    }
    multiply_in(p, n, "ffn_gate", x, gate);
    multiply_in(p, n, "ffn_up", x, up);
    tern_ref_gate(p->gating, gate, up, p->info.n_ff, gate);
    normalize(p, find(p, n, "ffn_sub_norm", "weight"), gate, p->info.n_ff, gate);
    multiply_in(p, n, "ffn_down", gate, out);
}

/* The numbers of a vector of a layer, whatever ends its name. */
static const float *vector(plain *p, uint32_t n, const char *name) {
    char text[64];
    snprintf(text, sizeof text, "blk.%u.%s", n, name);
    return (const float *)(const void *)tiny_find(&p->file, text)->data;
}

/* The numbers of all states, from two matrices or from one, which has them for each head of q and
 * k: beta of its states, then alpha. */
static void multiply_rates(plain *p, uint32_t n, const float *norm, float *alpha, float *beta) {
    static float joined[MAX_WIDTH];
    const tern_delta_sizes *d = &p->config->delta;
    const size_t of = d->n_states / d->n_keys;
    if ((p->config->arch->has & TERN_HAS_JOINED_RATES) == 0) {
        multiply(p, find(p, n, "ssm_alpha", "weight"), norm, alpha);
        multiply(p, find(p, n, "ssm_beta", "weight"), norm, beta);
        return;
    }
    multiply(p, find(p, n, "ssm_ba", "weight"), norm, joined);
    for (size_t head = 0; head < d->n_keys; head++)
        for (size_t i = 0; i < of; i++) {
            beta[head * of + i] = joined[head * 2 * of + i];
            alpha[head * of + i] = joined[head * 2 * of + of + i];
        }
}

/* out[n_embd] = the result of a delta net. */
static void run_delta(plain *p, uint32_t n, const float *norm, float *out) {
    static float mixed[MAX_WIDTH], z[MAX_WIDTH], alpha[MAX_WIDTH], beta[MAX_WIDTH], y[MAX_WIDTH];
    const tern_delta_sizes *d = &p->config->delta;
    const plain_delta_vectors w = {.taps = vector(p, n, "ssm_conv1d.weight"),
                                   .rate = vector(p, n, "ssm_a"),
                                   .rate_bias = vector(p, n, "ssm_dt.bias"),
                                   .norm = vector(p, n, "ssm_norm.weight")};
    const plain_delta_inputs in = {.mixed = mixed, .z = z, .alpha = alpha, .beta = beta};
    multiply(p, find(p, n, "attn_qkv", "weight"), norm, mixed);
    multiply(p, find(p, n, "attn_gate", "weight"), norm, z);
    multiply_rates(p, n, norm, alpha, beta);
    plain_delta(d, &w, &in, p->eps, p->states + n * plain_delta_floats(d), y);
    multiply(p, find(p, n, "ssm_out", "weight"), y, out);
}

/* Takes q[heads][dim] from between their gates, which are returned. */
static const float *take_gates(const plain *p, float *q) {
    static float gates[MAX_WIDTH];
    const size_t dim = p->info.head_dim;
    for (size_t h = 0; h < p->info.n_head; h++) {
        memcpy(gates + h * dim, q + (2 * h + 1) * dim, dim * sizeof *q);
        memmove(q + h * dim, q + 2 * h * dim, dim * sizeof *q);
    }
    return gates;
}

/* out[n_embd] = the result of attention. */
static void run_attention(plain *p, uint32_t n, size_t position, const float *norm, float *out) {
    static float q[MAX_WIDTH], k[MAX_WIDTH], v[MAX_WIDTH], heads[MAX_WIDTH];
    const size_t width = (size_t)p->info.n_head * p->info.head_dim, dim = p->info.head_dim;
    const bool gated = (p->config->arch->has & TERN_HAS_QUERY_GATES) != 0;
    const float *gates = NULL;
    project(p, n, "attn_q", gated ? NULL : "attn_q_norm", norm, p->info.n_head, q);
    if (gated) {
        gates = take_gates(p, q);
        for (size_t h = 0; h < p->info.n_head; h++)
            normalize(p, find(p, n, "attn_q_norm", "weight"), q + h * dim, dim, q + h * dim);
    }
    project(p, n, "attn_k", "attn_k_norm", norm, p->info.n_head_kv, k);
    project(p, n, "attn_v", NULL, norm, p->info.n_head_kv, v);
    attend(p, n, position, q, k, v, heads);
    for (size_t i = 0; gated && i < width; i++)
        heads[i] = heads[i] * plain_logistic(gates[i]);
    normalize(p, find(p, n, "attn_sub_norm", "weight"), heads, width, heads);
    multiply_in(p, n, "attn_output", heads, out);
    add_bias(p, n, "attn_output", 0, p->info.n_embd, out);
}

static void run_layer(plain *p, uint32_t n, size_t position, float *x) {
    static float norm[MAX_WIDTH], out[MAX_WIDTH];
    normalize(p, find(p, n, "attn_norm", "weight"), x, p->info.n_embd, norm);
    if (tern_config_is_delta(p->config, n))
        run_delta(p, n, norm, out);
    else
        run_attention(p, n, position, norm, out);
    const tiny_tensor *after = find(p, n, "post_attention_norm", "weight");
    const tiny_tensor *before = p->late_norm ? after : find(p, n, "ffn_norm", "weight");
    normalize(p, p->late_norm ? NULL : after, out, p->info.n_embd, out);
    if (p->config->arch->parallel) /* of the stream before */
        normalize(p, find(p, n, "attn_norm", "weight"), x, p->info.n_embd, norm);
    tern_ref_add(x, out, p->info.n_embd);

    if (!p->config->arch->parallel)
        normalize(p, before, x, p->info.n_embd, norm);
    feed_forward(p, n, norm, out);
    normalize(p, find(p, n, "post_ffw_norm", "weight"), out, p->info.n_embd, out);
    tern_ref_add(x, out, p->info.n_embd);
}

/* logits[n_vocab] of one token at its position. */
static void run_token(plain *p, const tiny_tensor *head, int32_t token, size_t position,
                      float *logits) {
    static float x[MAX_WIDTH], norm[MAX_WIDTH];
    const tiny_tensor *embedding = tiny_find(&p->file, "token_embd.weight");
    const size_t row_bytes = embedding->bytes / p->info.n_vocab;
    tern_ref_embed(tern_format_from_gguf(embedding->type),
                   embedding->data + (size_t)token * row_bytes, p->info.n_embd, x);
    for (uint32_t i = 0; i < p->info.n_embd; i++)
        x[i] *= p->embedding_scale;
    turn_back(p, x, p->info.n_embd);
    for (uint32_t n = 0; n < p->info.n_layer; n++)
        run_layer(p, n, position, x);
    float gains[MAX_WIDTH];
    memcpy(gains, tiny_find(&p->file, "output_norm.weight")->data, p->info.n_embd * sizeof *gains);
    for (uint32_t i = 0; i < p->info.n_embd; i++)
        gains[i] /= p->logit_divisor;
    if (p->config->arch->layer_norms)
        tern_ref_layernorm(x, gains, NULL, p->info.n_embd, p->eps, norm);
    else
        tern_ref_rmsnorm(x, gains, p->info.n_embd, p->eps, norm);
    multiply(p, head, norm, logits);
    const float cap = number(p, "final_logit_softcapping", 0.0f);
    for (size_t i = 0; cap > 0.0f && i < head->ne[1]; i++)
        logits[i] = tern_ref_tanh(logits[i] / cap) * cap;
}

static const tiny_tensor *head_of(plain *p) {
    for (size_t i = 0; i < p->file.n; i++)
        if (strcmp(p->file.tensors[i].name, "output.weight") == 0)
            return &p->file.tensors[i];
    return tiny_find(&p->file, "token_embd.weight");
}

#endif
