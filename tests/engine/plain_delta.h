/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_ENGINE_PLAIN_DELTA_H
#define TERN_TESTS_ENGINE_PLAIN_DELTA_H

/* Delta nets of docs/numerics.md for plain_pass.h, one number after another. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/reference.h"
#include "runtime/model/config/config.h"

enum { PLAIN_TAPS = 4, PLAIN_LANES = 16 };

/* A layer's vectors, as the file has them. */
typedef struct plain_delta_vectors {
    const float *taps, *rate, *rate_bias, *norm;
} plain_delta_vectors;

/* The products of the matrices of a layer with one token. */
typedef struct plain_delta_inputs {
    const float *mixed, *z, *alpha, *beta;
} plain_delta_inputs;

static float plain_softplus(float x) {
    const float u = tern_ref_exp(-fabsf(x));
    const float s = u / (2.0f + u);
    const float w = s * s;
    float p = 0.0f;
    for (int k = 15; k >= 3; k -= 2)
        p = p * w + 1.0f / (float)k;
    const float half = (w * p) * s + s;
    return (x > 0.0f ? x : 0.0f) + (half + half);
}

static float plain_logistic(float x) {
    return 1.0f / (1.0f + tern_ref_exp(0.0f - x));
}

/* Makes x[n] as long as scale. */
static void plain_unit(float *x, size_t n, float scale) {
    float p[PLAIN_LANES] = {0.0f};
    for (size_t i = 0; i < n; i++)
        p[i % PLAIN_LANES] += x[i] * x[i];
    for (size_t s = PLAIN_LANES / 2; s > 0; s /= 2)
        for (size_t i = 0; i < s; i++)
            p[i] += p[i + s];
    const float r = 1.0f / sqrtf(p[0] + 1e-6f);
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] * r * scale;
}

/* Floats between tokens: the last rows of channels, then the states. */
static inline size_t plain_delta_floats(const tern_delta_sizes *d) {
    return (PLAIN_TAPS - 1) * tern_delta_channels(d) + tern_delta_inner(d) * d->state_dim;
}

/* y[channels] of this token, whose row then is the last one of the memory. */
static void plain_convolve(const tern_delta_sizes *d, const float *taps, const float *mixed,
                           float *memory, float *y) {
    const size_t n = tern_delta_channels(d);
    for (size_t i = 0; i < n; i++) {
        float sum = memory[i] * taps[i * PLAIN_TAPS];
        sum += memory[n + i] * taps[i * PLAIN_TAPS + 1];
        sum += memory[2 * n + i] * taps[i * PLAIN_TAPS + 2];
        sum += mixed[i] * taps[i * PLAIN_TAPS + 3];
        y[i] = sum / (1.0f + tern_ref_exp(0.0f - sum));
    }
    memmove(memory, memory + n, 2 * n * sizeof *memory);
    memcpy(memory + 2 * n, mixed, n * sizeof *memory);
}

/* Changes column j of a state and reads it. */
static float plain_column(float *state, size_t dim, size_t j, const float *q, const float *k,
                          float v, float decay, float beta) {
    float seen = 0.0f, read = 0.0f;
    for (size_t i = 0; i < dim; i++) {
        state[i * dim + j] *= decay;
        seen += state[i * dim + j] * k[i];
    }
    const float change = (v - seen) * beta;
    for (size_t i = 0; i < dim; i++) {
        state[i * dim + j] += k[i] * change;
        read += state[i * dim + j] * q[i];
    }
    return read;
}

/* out[inner] of one token, before the last matrix. */
static inline void plain_delta(const tern_delta_sizes *d, const plain_delta_vectors *w,
                               const plain_delta_inputs *in, float eps, float *memory, float *out) {
    const size_t n = tern_delta_channels(d), dim = d->state_dim;
    float *y = malloc(n * sizeof *y), *states = memory + (PLAIN_TAPS - 1) * n;
    plain_convolve(d, w->taps, in->mixed, memory, y);
    for (size_t h = 0; h < 2 * (size_t)d->n_keys; h++)
        plain_unit(y + h * dim, dim, h < d->n_keys ? 1.0f / sqrtf((float)dim) : 1.0f);
    for (size_t h = 0; h < d->n_states; h++) {
        const float *q = y + (d->grouped ? h / (d->n_states / d->n_keys) : h % d->n_keys) * dim,
                    *k = q + d->n_keys * dim;
        const float *v = y + (2 * d->n_keys + h) * dim;
        const float decay =
            tern_ref_exp(w->rate[h] * plain_softplus(in->alpha[h] + w->rate_bias[h]));
        const float beta = plain_logistic(in->beta[h]);
        for (size_t j = 0; j < dim; j++)
            out[h * dim + j] =
                plain_column(states + h * dim * dim, dim, j, q, k, v[j], decay, beta);
        tern_ref_rmsnorm(out + h * dim, w->norm, dim, eps, out + h * dim);
    }
    tern_ref_gate(TERN_REF_SILU, in->z, out, tern_delta_inner(d), out);
    free(y);
}

#endif
