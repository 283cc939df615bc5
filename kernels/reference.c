/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: docs/numerics.md, formula by formula. Slow on purpose: every weight is decoded where
 * it is used, halves go through ldexp, rounding through nearbyint. The build keeps the optimiser
 * from vectorizing this file.
 */

#include "kernels/reference.h"

#include <math.h>
#include <string.h>

/* ---- reductions ---------------------------------------------------------------------------- */

/* Sixteen virtual lanes: terms arrive in order, term i goes to lane i mod 16. */
typedef struct lanes {
    float p[TERN_LANES];
    size_t count;
} lanes;

static void lanes_add(lanes *sum, float term) {
    sum->p[sum->count % TERN_LANES] += term;
    sum->count++;
}

static float lanes_total(lanes *sum) {
    while (sum->count % TERN_LANES != 0)
        lanes_add(sum, 0.0f);
    for (int s = TERN_LANES / 2; s > 0; s /= 2)
        for (int j = 0; j < s; j++)
            sum->p[j] += sum->p[j + s];
    return sum->p[0];
}

static float maximum(const float *v, size_t n) {
    float m = v[0];
    for (size_t i = 0; i < n; i++)
        m = v[i] > m ? v[i] : m;
    return m;
}

/* ---- scalar functions ---------------------------------------------------------------------- */

float tern_ref_exp(float x) {
    static const float factorials[] = {720.0f, 120.0f, 24.0f, 6.0f, 2.0f};

    x = x > -104.0f ? x : -104.0f;
    x = x < 89.0f ? x : 89.0f;
    const float n = nearbyintf(x * 0x1.715476p+0f);
    const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    float q = 1.0f / 5040.0f;
    for (int i = 0; i < 5; i++)
        q = q * r + 1.0f / factorials[i];
    const float p = (q * (r * r) + r) + 1.0f;
    const float h = nearbyintf(n * 0.5f);
    return (p * ldexpf(1.0f, (int)h)) * ldexpf(1.0f, (int)(n - h));
}

/* binary16 from its definition. */
static float half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    float magnitude = ldexpf((float)(1024 + fraction), exponent - 25);

    if (exponent == 31)
        magnitude = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -magnitude : magnitude;
}

/* Nearest binary16, ties to even: round the multiple of the spacing around x. */
static uint16_t half_nearest(float x) {
    const unsigned sign = signbit(x) ? 0x8000u : 0;
    int exponent;
    uint32_t bits;

    if (isnan(x)) { /* quiet, with the payload bits that fit */
        memcpy(&bits, &x, sizeof bits);
        return (uint16_t)(sign | 0x7e00u | (bits >> 13 & 0x3ffu));
    }
    (void)frexpf(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
    const int spacing = exponent - 11 > -24 ? exponent - 11 : -24;
    const double steps = nearbyint(ldexp(fabs((double)x), -spacing)); /* <= 2048; exact before */
    const double rounded = ldexp(steps, spacing);
    if (!(rounded < 65536.0))
        return (uint16_t)(sign | 0x7c00u);
    if (rounded < 0x1p-14)
        return (uint16_t)(sign | (unsigned)steps);
    (void)frexp(rounded, &exponent);
    const unsigned fraction = (unsigned)ldexp(rounded, 11 - exponent) - 1024u;
    return (uint16_t)(sign | (unsigned)(exponent + 14) << 10 | fraction);
}

static uint16_t read16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- weights ------------------------------------------------------------------------------- */

/* Where a block of 32 starts in the file. */
static const uint8_t *block_at(tern_format format, const void *file, size_t block) {
    const size_t bytes = format == TERN_FORMAT_Q4_0 ? 18 : format == TERN_FORMAT_Q4_1 ? 20 : 34;
    return (const uint8_t *)file + block * bytes;
}

/* Code j of a block, as it enters the integer product. */
static int block_code(tern_format format, const uint8_t *block, size_t j) {
    if (format == TERN_FORMAT_Q8_0)
        return block[2 + j] < 128 ? block[2 + j] : block[2 + j] - 256;

    const uint8_t byte = block[(format == TERN_FORMAT_Q4_1 ? 4 : 2) + j % 16];
    const int nibble = j < 16 ? byte % 16 : byte / 16;
    return format == TERN_FORMAT_Q4_1 ? nibble : nibble - 8;
}

/* Code (weight + 1) of an element of the flat I2_S stream. */
static int ternary_code(const void *file, size_t element) {
    const uint8_t byte = ((const uint8_t *)file)[element / 128 * 32 + element % 32];
    static const int place[] = {64, 16, 4, 1};
    return byte / place[element % 128 / 32] % 4;
}

/* Element `index` of a row-major stream, as its exact value (Q4_1: rounded once). */
static float weight_value(tern_format format, const void *file, size_t index) {
    const uint8_t *bytes = file;

    switch (format) {
    case TERN_FORMAT_F32:
        return float_of(read16(bytes + 4 * index) | (uint32_t)read16(bytes + 4 * index + 2) << 16);
    case TERN_FORMAT_F16:
        return half_value(read16(bytes + 2 * index));
    case TERN_FORMAT_BF16:
        return float_of((uint32_t)read16(bytes + 2 * index) << 16);
    case TERN_FORMAT_I2_S:
        return (float)(ternary_code(file, index) - 1);
    default:
        break;
    }

    const uint8_t *block = block_at(format, file, index / TERN_BLOCK);
    const float product =
        (float)block_code(format, block, index % TERN_BLOCK) * half_value(read16(block));
    return format == TERN_FORMAT_Q4_1 ? product + half_value(read16(block + 2)) : product;
}

float tern_ref_weight(const tern_ref_matrix *w, size_t row, size_t col) {
    return weight_value(w->format, w->file, row * w->cols + col);
}

/* ---- matrix products ----------------------------------------------------------------------- */

static float dot_float(const tern_ref_matrix *w, size_t row, const float *x) {
    lanes sum = {{0}, 0};

    for (size_t k = 0; k < w->cols; k++)
        lanes_add(&sum, tern_ref_weight(w, row, k) * x[k]);
    return lanes_total(&sum);
}

static float dot_ternary(const tern_ref_matrix *w, size_t row, const tern_activations *x,
                         size_t t) {
    const int8_t *q = x->q + t * x->q_stride;
    int64_t raw = 0;

    for (size_t k = 0; k < w->cols; k++)
        raw += ternary_code(w->file, row * w->cols + k) * q[k];
    return (((float)raw - (float)x->sum[t]) / x->s[t]) * w->scale;
}

static float dot_blocks(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t) {
    const size_t blocks = w->cols / TERN_BLOCK;
    float acc = 0.0f;

    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *block = block_at(w->format, w->file, row * blocks + b);
        const int8_t *q = x->q + t * x->q_stride + b * TERN_BLOCK;
        const float d = x->d[t * x->d_stride + b];
        int64_t dot = 0;

        for (size_t j = 0; j < TERN_BLOCK; j++)
            dot += block_code(w->format, block, j) * q[j];
        acc += (float)dot * (half_value(read16(block)) * d);
        if (w->format == TERN_FORMAT_Q4_1)
            acc += half_value(read16(block + 2)) * (d * (float)x->block_sum[t * x->d_stride + b]);
    }
    return acc;
}

static float dot_any(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t) {
    const tern_format f = w->format;

    if (f == TERN_FORMAT_I2_S)
        return dot_ternary(w, row, x, t);
    if (f == TERN_FORMAT_Q4_0 || f == TERN_FORMAT_Q4_1 || f == TERN_FORMAT_Q8_0)
        return dot_blocks(w, row, x, t);
    return dot_float(w, row, x->x + t * x->x_stride);
}

void tern_ref_matmul(const tern_ref_matrix *w, const tern_activations *x, const tern_tile *tile,
                     float *y, size_t y_stride) {
    for (size_t t = tile->t0; t < tile->t1; t++)
        for (size_t r = tile->r0; r < tile->r1; r++)
            y[t * y_stride + r] = dot_any(w, r, x, t);
}

/* ---- quantization -------------------------------------------------------------------------- */

/* Largest magnitude, at least `floor`; NaN never wins. */
static float largest(const float *x, size_t n, float floor) {
    float m = floor;
    for (size_t i = 0; i < n; i++)
        m = fabsf(x[i]) > m ? fabsf(x[i]) : m;
    return m;
}

/* clamp(rne(value), low, 127); NaN gives low. */
static int8_t code_nearest(float value, int low) {
    if (!(value > (float)low))
        return (int8_t)low;
    return value < 127.0f ? (int8_t)nearbyintf(value) : 127;
}

void tern_ref_quantize_token(const float *x, size_t n, int8_t *q, float *s, int32_t *sum) {
    const double found = largest(x, n, 0.0f);
    const double amax = found > 1e-5 ? found : 1e-5;

    *s = (float)(127.0 / amax);
    *sum = 0;
    for (size_t i = 0; i < n; i++) {
        q[i] = code_nearest(x[i] * *s, -128);
        *sum += q[i];
    }
    for (size_t i = n; i % TERN_Q_PAD != 0; i++)
        q[i] = 0;
}

void tern_ref_quantize_block(const float *x, size_t n, int8_t *q, float *d, int32_t *block_sum) {
    for (size_t first = 0; first < n; first += TERN_BLOCK) {
        const size_t count = n - first < TERN_BLOCK ? n - first : TERN_BLOCK;
        const size_t b = first / TERN_BLOCK;
        const float amax = largest(x + first, count, 1e-30f);
        const float id = 127.0f / amax;

        d[b] = amax / 127.0f;
        block_sum[b] = 0;
        for (size_t i = first; i < first + count; i++) {
            q[i] = code_nearest(x[i] * id, -127);
            block_sum[b] += q[i];
        }
    }
    for (size_t i = n; i % TERN_Q_PAD != 0; i++)
        q[i] = 0;
}

/* ---- rows of floats ------------------------------------------------------------------------ */

void tern_ref_rmsnorm(const float *x, const float *g, size_t n, float eps, float *y) {
    lanes squares = {{0}, 0};

    for (size_t i = 0; i < n; i++)
        lanes_add(&squares, x[i] * x[i]);
    const float r = 1.0f / sqrtf(lanes_total(&squares) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] * r) * g[i];
}

void tern_ref_rope(tern_ref_pairing pairing, float *x, const float *c, const float *s,
                   size_t half) {
    for (size_t i = 0; i < half; i++) {
        float *first = pairing == TERN_REF_PAIR_NORM ? &x[2 * i] : &x[i];
        float *second = pairing == TERN_REF_PAIR_NORM ? &x[2 * i + 1] : &x[i + half];
        const float x0 = *first;
        const float x1 = *second;

        *first = x0 * c[i] - x1 * s[i];
        *second = x0 * s[i] + x1 * c[i];
    }
}

void tern_ref_softmax(float *x, size_t n) {
    const float m = maximum(x, n);
    lanes sum = {{0}, 0};

    for (size_t i = 0; i < n; i++) {
        x[i] = tern_ref_exp(x[i] - m);
        lanes_add(&sum, x[i]);
    }
    const float total = lanes_total(&sum);
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] / total;
}

void tern_ref_gate(tern_ref_gating gating, const float *g, const float *u, size_t n, float *y) {
    for (size_t i = 0; i < n; i++) {
        const float positive = g[i] > 0.0f ? g[i] : 0.0f;
        const float act = gating == TERN_REF_GATE_SILU ? g[i] / (1.0f + tern_ref_exp(0.0f - g[i]))
                                                       : positive * positive;
        y[i] = act * u[i];
    }
}

void tern_ref_add(float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] + y[i];
}

void tern_ref_embed(tern_format format, const void *row, size_t n, float *y) {
    for (size_t i = 0; i < n; i++)
        y[i] = weight_value(format, row, i);
}

void tern_ref_store(tern_format cache, const float *x, size_t n, void *out) {
    uint8_t *bytes = out;

    for (size_t i = 0; i < n; i++) {
        if (cache == TERN_FORMAT_F32) {
            memcpy(bytes + 4 * i, &x[i], 4);
            continue;
        }
        const uint16_t half = half_nearest(x[i]);
        bytes[2 * i] = (uint8_t)(half & 255);
        bytes[2 * i + 1] = (uint8_t)(half >> 8);
    }
}

/* ---- attention ----------------------------------------------------------------------------- */

/* What one chunk of positions contributes: M, L of numerics.md; O is in the caller's buffer. */
typedef struct partial {
    float m;
    float l;
} partial;

/* Positions [j0, j1) for query head q; o[i] of numerics.md comes from `chunk_value`. */
static partial chunk_weights(tern_format cache, const tern_attend_args *a, const float *q,
                             size_t j0, size_t j1, float *e) {
    lanes sum = {{0}, 0};

    for (size_t j = j0; j < j1; j++) {
        lanes dot = {{0}, 0};
        for (size_t i = 0; i < a->dim; i++)
            lanes_add(&dot, q[i] * weight_value(cache, a->k, j * a->dim + i));
        e[j - j0] = lanes_total(&dot) * a->scale;
    }
    const float m = maximum(e, j1 - j0);
    for (size_t j = 0; j < j1 - j0; j++) {
        e[j] = tern_ref_exp(e[j] - m);
        lanes_add(&sum, e[j]);
    }
    return (partial){m, lanes_total(&sum)};
}

static float chunk_value(tern_format cache, const tern_attend_args *a, size_t j0, size_t j1,
                         const float *e, size_t i) {
    float o = 0.0f;

    for (size_t j = j0; j < j1; j++)
        o += e[j - j0] * weight_value(cache, a->v, j * a->dim + i);
    return o;
}

static void attend_head(tern_format cache, const tern_attend_args *a, const float *q, float *out) {
    float e[TERN_ATTEND_CHUNK];
    partial all = {0.0f, 0.0f};

    for (size_t j0 = 0; j0 < a->positions; j0 += TERN_ATTEND_CHUNK) {
        const size_t left = a->positions - j0;
        const size_t j1 = j0 + (left < TERN_ATTEND_CHUNK ? left : TERN_ATTEND_CHUNK);
        const partial chunk = chunk_weights(cache, a, q, j0, j1, e);

        if (j0 == 0) {
            all = chunk;
            for (size_t i = 0; i < a->dim; i++)
                out[i] = chunk_value(cache, a, j0, j1, e, i);
            continue;
        }
        const float m = chunk.m > all.m ? chunk.m : all.m;
        const float old = tern_ref_exp(all.m - m);
        const float new = tern_ref_exp(chunk.m - m);
        for (size_t i = 0; i < a->dim; i++)
            out[i] = out[i] * old + chunk_value(cache, a, j0, j1, e, i) * new;
        all.l = all.l * old + chunk.l * new;
        all.m = m;
    }
    for (size_t i = 0; i < a->dim; i++)
        out[i] = out[i] / all.l;
}

void tern_ref_attend(tern_format cache, const tern_attend_args *args) {
    for (size_t h = 0; h < args->group; h++)
        attend_head(cache, args, args->q + h * args->dim, args->out + h * args->dim);
}
