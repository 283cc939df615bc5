/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: docs/numerics.md, formula by formula, for all operations but matrix products
 * (reference_matmul.c). Slow on purpose: halves go through ldexp, rounding through nearbyint. The
 * build keeps the optimiser from vectorizing these files.
 */

#include "kernels/reference.h"

#include <math.h>
#include <string.h>

#include "kernels/reference_lanes.h"

/* ---- reductions ---------------------------------------------------------------------------- */

static float maximum(const float *v, size_t n) {
    float m = v[0];
    for (size_t i = 0; i < n; i++)
        m = v[i] > m ? v[i] : m;
    return m;
}

/* ---- halves --------------------------------------------------------------------------------- */

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

/* ---- quantization -------------------------------------------------------------------------- */

/* Largest magnitude, at least `floor`; NaN never wins. */
static float largest(const float *x, size_t n, float floor) {
    float m = floor;
    for (size_t i = 0; i < n; i++)
        m = fabsf(x[i]) > m ? fabsf(x[i]) : m;
    return m;
}

/* clamp(rne(value), low, high); NaN gives low. */
static int32_t clamped_nearest(float value, int low, int high) {
    if (!(value > (float)low))
        return low;
    return value < (float)high ? (int32_t)nearbyintf(value) : high;
}

static int8_t code_nearest(float value, int low) {
    return (int8_t)clamped_nearest(value, low, 127);
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

void tern_ref_hadamard(const float *x, const float *before, const float *after, size_t n,
                       size_t block, float *y) {
    for (size_t i = 0; i < n; i++)
        y[i] = before != NULL ? x[i] * before[i] : x[i];
    for (size_t h = 1; h < block; h *= 2)
        for (size_t i = 0; i < n; i++) {
            if (i / h % 2 != 0)
                continue;
            const float sum = y[i] + y[i + h];
            y[i + h] = y[i] - y[i + h];
            y[i] = sum;
        }
    for (size_t i = 0; i < n; i++) {
        y[i] *= 1.0f / sqrtf((float)block);
        y[i] = after != NULL ? y[i] * after[i] : y[i];
    }
}

void tern_ref_layernorm(const float *x, const float *g, const float *b, size_t n, float eps,
                        float *y) {
    lanes sum = {{0}, 0};
    lanes squares = {{0}, 0};

    for (size_t i = 0; i < n; i++)
        lanes_add(&sum, x[i]);
    const float mean = lanes_total(&sum) / (float)n;
    for (size_t i = 0; i < n; i++)
        lanes_add(&squares, (x[i] - mean) * (x[i] - mean));
    const float r = 1.0f / sqrtf(lanes_total(&squares) / (float)n + eps);
    for (size_t i = 0; i < n; i++) {
        const float scaled = ((x[i] - mean) * r) * g[i];
        y[i] = b != NULL ? scaled + b[i] : scaled;
    }
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

void tern_ref_add(float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] + y[i];
}

void tern_ref_embed(tern_format format, const void *row, size_t n, float *y) {
    for (size_t i = 0; i < n; i++)
        y[i] = tern_ref_value(format, row, i);
}

static void put_half(uint8_t *bytes, uint16_t half) {
    bytes[0] = (uint8_t)(half & 255);
    bytes[1] = (uint8_t)(half >> 8);
}

/* n <= 32 floats to a block of Q8_0. */
static void store_block(const float *x, size_t n, uint8_t *block) {
    float d;

    put_half(block, half_nearest(largest(x, n, 0.0f) / 127.0f));
    tern_ref_embed(TERN_FORMAT_F16, block, 1, &d);
    const float id = d > 0.0f ? 1.0f / d : 0.0f;
    for (size_t i = 0; i < TERN_BLOCK; i++)
        block[2 + i] = i < n ? (uint8_t)code_nearest(x[i] * id, -127) : 0;
}

void tern_ref_store(tern_format cache, const float *x, size_t n, void *out) {
    uint8_t *bytes = out;

    if (cache == TERN_FORMAT_Q8_0) {
        for (size_t i = 0; i < n; i += TERN_BLOCK, bytes += 34)
            store_block(x + i, n - i < TERN_BLOCK ? n - i : TERN_BLOCK, bytes);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (cache == TERN_FORMAT_F32)
            memcpy(bytes + 4 * i, &x[i], 4);
        else
            put_half(bytes + 2 * i, half_nearest(x[i]));
    }
}

/* ---- attention ----------------------------------------------------------------------------- */

/* The multiple of the spacing of 13 bits around x. */
float tern_ref_13_bits(float x) {
    int exponent;

    if (!(fabsf(x) < 0x1p100f))
        return x * INFINITY;
    if (fabsf(x) < 0x1p-100f)
        return 0.0f;
    (void)frexpf(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
    return ldexpf(nearbyintf(ldexpf(x, 13 - exponent)), exponent - 13);
}

/* The page that position j lies in. */
static const uint8_t *page_of(const void *rows, const tern_attend_args *a, size_t j) {
    const size_t chunk = j / TERN_ATTEND_CHUNK;
    const size_t page = a->pages != NULL ? a->pages[chunk] : chunk;
    return (const uint8_t *)rows + page * a->page_stride;
}

/* The block of 34 bytes that element i of the row of a position lies in: an f16 scale, 32 codes. */
static const uint8_t *code_block(const void *rows, const tern_attend_args *a, size_t j, size_t i) {
    const size_t blocks = (a->heads.dim + TERN_BLOCK - 1) / TERN_BLOCK;
    return page_of(rows, a, j) + (j % TERN_ATTEND_CHUNK * blocks + i / TERN_BLOCK) * 34;
}

/* Element i of the row of a position, of floats or halves. */
static float cached(tern_format cache, const void *rows, const tern_attend_args *a, size_t j,
                    size_t i) {
    return tern_ref_value(cache, page_of(rows, a, j), j % TERN_ATTEND_CHUNK * a->heads.dim + i);
}

/* q . k_j over a cache of codes: integers a block, blocks in order. */
static float code_score(const tern_attend_args *a, const float *q, size_t j) {
    const float top = largest(q, a->heads.dim, 1e-30f);
    const float inverse = 32767.0f / top;
    float score = 0.0f;

    for (size_t i0 = 0; i0 < a->heads.dim; i0 += TERN_BLOCK) {
        const uint8_t *block = code_block(a->k, a, j, i0);
        int32_t sum = 0;
        for (size_t i = i0; i < a->heads.dim && i < i0 + TERN_BLOCK; i++)
            sum += clamped_nearest(q[i] * inverse, -32767, 32767) * (int8_t)block[2 + i - i0];
        score += (float)sum * tern_ref_half(tern_ref_read16(block));
    }
    return score * ((top / 32767.0f) * a->scale);
}

/* A factor of an element of the cache. */
static float factor(tern_format cache, float x) {
    return cache == TERN_FORMAT_F16 ? tern_ref_13_bits(x) : x;
}

/* One chunk's contribution: M, L of numerics.md; O is in the caller's buffer. */
typedef struct partial {
    float m;
    float l;
} partial;

static float score(tern_format cache, const tern_attend_args *a, const float *q, size_t j) {
    lanes dot = {{0}, 0};

    if (cache == TERN_FORMAT_Q8_0)
        return code_score(a, q, j);
    for (size_t i = 0; i < a->heads.dim; i++)
        lanes_add(&dot, factor(cache, q[i]) * cached(cache, a->k, a, j, i));
    return lanes_total(&dot) * a->scale;
}

/* Positions [j0, j1) for query head q; o[i] of numerics.md comes from `chunk_value`. */
static partial chunk_weights(tern_format cache, const tern_attend_args *a, const float *q,
                             size_t j0, size_t j1, float *e) {
    lanes sum = {{0}, 0};

    for (size_t j = j0; j < j1; j++) {
        e[j - j0] = score(cache, a, q, j);
        if (a->cap > 0.0f)
            e[j - j0] = tern_ref_tanh(e[j - j0] / a->cap) * a->cap;
        if (a->mask != NULL)
            e[j - j0] += a->mask[j];
        if (a->window > 0 && j + a->window < a->heads.positions)
            e[j - j0] = -INFINITY;
    }
    const float m = maximum(e, j1 - j0);
    for (size_t j = 0; j < j1 - j0; j++) {
        e[j] = factor(cache, tern_ref_exp(e[j] - m));
        lanes_add(&sum, e[j]);
    }
    return (partial){m, lanes_total(&sum)};
}

/* The weighted codes of column i: the weights, times the scales of the values, become integers. */
static float chunk_codes(const tern_attend_args *a, size_t j0, size_t j1, const float *e,
                         size_t i) {
    float w[TERN_ATTEND_CHUNK];
    float top = 1e-30f;
    int32_t sum = 0;

    for (size_t j = j0; j < j1; j++) {
        w[j - j0] = e[j - j0] * tern_ref_half(tern_ref_read16(code_block(a->v, a, j, i)));
        top = w[j - j0] > top ? w[j - j0] : top;
    }
    for (size_t j = j0; j < j1; j++)
        sum += clamped_nearest(w[j - j0] * (32767.0f / top), 0, 32767) *
               (int8_t)code_block(a->v, a, j, i)[2 + i % TERN_BLOCK];
    return (float)sum * (top / 32767.0f);
}

static float chunk_value(tern_format cache, const tern_attend_args *a, size_t j0, size_t j1,
                         const float *e, size_t i) {
    float o = 0.0f;

    if (cache == TERN_FORMAT_Q8_0)
        return chunk_codes(a, j0, j1, e, i);
    for (size_t j = j0; j < j1; j++)
        o += e[j - j0] * cached(cache, a->v, a, j, i);
    return o;
}

/* A sink joins maximum and sum after all chunks. */
static void add_sink(float sink, partial *all, size_t dim, float *out) {
    const float m = sink > all->m ? sink : all->m;
    const float old = tern_ref_exp(all->m - m);

    for (size_t i = 0; i < dim; i++)
        out[i] *= old;
    all->l = all->l * old + tern_ref_exp(sink - m);
    all->m = m;
}

static void attend_head(tern_format cache, const tern_attend_args *a, const float *q,
                        const float *sink, float *out) {
    float e[TERN_ATTEND_CHUNK];
    partial all = {0.0f, 0.0f};
    const size_t seen = a->heads.positions;
    const size_t hidden = a->window > 0 && seen > a->window ? seen - a->window : 0;
    const size_t begin = hidden - hidden % TERN_ATTEND_CHUNK;

    for (size_t j0 = begin; j0 < seen; j0 += TERN_ATTEND_CHUNK) {
        const size_t left = seen - j0;
        const size_t j1 = j0 + (left < TERN_ATTEND_CHUNK ? left : TERN_ATTEND_CHUNK);
        const partial chunk = chunk_weights(cache, a, q, j0, j1, e);

        if (j0 == begin) {
            all = chunk;
            for (size_t i = 0; i < a->heads.dim; i++)
                out[i] = chunk_value(cache, a, j0, j1, e, i);
            continue;
        }
        const float m = chunk.m > all.m ? chunk.m : all.m;
        const float old = tern_ref_exp(all.m - m);
        const float new = tern_ref_exp(chunk.m - m);
        for (size_t i = 0; i < a->heads.dim; i++)
            out[i] = out[i] * old + chunk_value(cache, a, j0, j1, e, i) * new;
        all.l = all.l * old + chunk.l * new;
        all.m = m;
    }
    if (sink != NULL)
        add_sink(*sink, &all, a->heads.dim, out);
    for (size_t i = 0; i < a->heads.dim; i++)
        out[i] = out[i] / all.l;
}

void tern_ref_attend(tern_format cache, const tern_attend_args *args, float *out,
                     size_t out_stride) {
    const tern_attend_heads *heads = &args->heads;
    for (size_t t = 0; t < heads->tokens; t++) {
        tern_attend_args token = *args;
        token.heads.positions += t;
        token.mask = args->mask != NULL ? args->mask + t * args->mask_stride : NULL;
        for (size_t h = 0; h < heads->group; h++)
            attend_head(cache, &token, args->q + t * args->q_stride + h * heads->dim,
                        heads->sinks != NULL ? heads->sinks + h : NULL,
                        out + t * out_stride + h * heads->dim);
    }
}
