/* SPDX-License-Identifier: Apache-2.0 */

#include "kernels/delta.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    LANES = 16,  /* of a sum, docs/numerics.md */
    COLUMNS = 32 /* of a state that are changed at once: their sums stay in registers */
};

/* Rounds to the nearest integer, |x| < 2^22. */
static inline float nearest(float x) {
    return (x + 0x1.8p23f) - 0x1.8p23f;
}

/* 2^n for integral n in [-126, 127]. */
static inline float power(float n) {
    const uint32_t bits = (uint32_t)((int32_t)n + 127) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp of docs/numerics.md. */
static inline float exponential(float x) {
    x = x > -104.0f ? x : -104.0f;
    x = x < 89.0f ? x : 89.0f;
    const float n = nearest(x * 0x1.715476p+0f);
    const float r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    float q = 1.0f / 5040.0f;
    q = q * r + 1.0f / 720.0f;
    q = q * r + 1.0f / 120.0f;
    q = q * r + 1.0f / 24.0f;
    q = q * r + 1.0f / 6.0f;
    q = q * r + 1.0f / 2.0f;
    const float p = (q * (r * r) + r) + 1.0f;
    const float h = nearest(n * 0.5f);
    return (p * power(h)) * power(n - h);
}

static inline float logistic(float x) {
    return 1.0f / (1.0f + exponential(0.0f - x));
}

float tern_logistic(float x) {
    return logistic(x);
}

float tern_softplus(float x) {
    const float u = exponential(x < 0.0f ? x : 0.0f - x);
    const float s = u / (2.0f + u), w = s * s; /* ln(1 + u) = 2 artanh(s), s <= 1/3 */
    float p = 1.0f / 15.0f;
    p = p * w + 1.0f / 13.0f;
    p = p * w + 1.0f / 11.0f;
    p = p * w + 1.0f / 9.0f;
    p = p * w + 1.0f / 7.0f;
    p = p * w + 1.0f / 5.0f;
    p = p * w + 1.0f / 3.0f;
    const float half = (w * p) * s + s;
    return (x > 0.0f ? x : 0.0f) + (half + half);
}

void tern_delta_gate(float *x, const float *g, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] * logistic(g[i]);
}

void tern_delta_convolve(const float *const *rows, const float *taps, size_t n_taps, size_t n,
                         float *y) {
    for (size_t i = 0; i < n; i++)
        y[i] = rows[0][i] * taps[i * n_taps];
    for (size_t t = 1; t < n_taps; t++)
        for (size_t i = 0; i < n; i++)
            y[i] += rows[t][i] * taps[i * n_taps + t];
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] / (1.0f + exponential(0.0f - y[i]));
}

void tern_delta_unit(float *x, size_t n, float scale) {
    float p[LANES] = {0.0f};
    for (size_t i = 0; i < n; i++)
        p[i % LANES] += x[i] * x[i];
    for (size_t s = LANES / 2; s > 0; s /= 2)
        for (size_t j = 0; j < s; j++)
            p[j] += p[j + s];
    const float r = 1.0f / sqrtf(p[0] + 1e-6f);
    for (size_t i = 0; i < n; i++)
        x[i] = (x[i] * r) * scale;
}

tern_delta_rates tern_delta_rates_of(float a, float b, float bias, float rate) {
    return (tern_delta_rates){.decay = exponential(rate * tern_softplus(a + bias)),
                              .beta = logistic(b)};
}

/* Changes and reads columns [0, count) of a state; s, v and o begin at the first of them. */
static inline void step_columns(float *restrict s, size_t n, size_t count,
                                const tern_delta_token *t, const float *restrict v,
                                float *restrict o) {
    float sum[COLUMNS] = {0.0f}, change[COLUMNS];
    const float decay = t->rates.decay, beta = t->rates.beta;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < count; j++) {
            s[i * n + j] = s[i * n + j] * decay;
            sum[j] += s[i * n + j] * t->k[i];
        }
    for (size_t j = 0; j < count; j++) {
        change[j] = (v[j] - sum[j]) * beta;
        sum[j] = 0.0f;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < count; j++) {
            s[i * n + j] += t->k[i] * change[j];
            sum[j] += s[i * n + j] * t->q[i];
        }
    for (size_t j = 0; j < count; j++)
        o[j] = sum[j];
}

void tern_delta_step(float *s, size_t n, const tern_delta_token *t, float *o) {
    size_t j = 0;
    for (; j + COLUMNS <= n; j += COLUMNS)
        step_columns(s + j, n, COLUMNS, t, t->v + j, o + j);
    if (j < n)
        step_columns(s + j, n, n - j, t, t->v + j, o + j);
}
