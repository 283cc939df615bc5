/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_DELTA_H
#define TERN_KERNELS_DELTA_H

/*
 * The arithmetic of gated delta nets, in plain C: docs/numerics.md says which bits come out. No sum
 * crosses a column of a state, a channel or a head, so compilers may compute as many of them at
 * once as the processor can, and the bits stay.
 */

#include <stddef.h>

/* 1 / (1 + exp(0 - x)) */
float tern_logistic(float x);

/* ln(1 + exp(x)) */
float tern_softplus(float x);

/* x[n] = x * logistic(g) */
void tern_delta_gate(float *x, const float *g, size_t n);

/* y[n] = silu of the sums over time of rows[t][i] * taps[i][t], of n_taps rows, the oldest first.
 */
void tern_delta_convolve(const float *const *rows, const float *taps, size_t n_taps, size_t n,
                         float *y);

/* x[n] = x / |x| * scale; n > 0. */
void tern_delta_unit(float *x, size_t n, float scale);

/* By what a state is multiplied before a token changes it, and how much of the change it takes. */
typedef struct tern_delta_rates {
    float decay, beta;
} tern_delta_rates;

/* The rates of a head by the token's own two numbers, and the head's. rate <= 0. */
tern_delta_rates tern_delta_rates_of(float a, float b, float bias, float rate);

/* A head's vectors of one token, [n]. */
typedef struct tern_delta_token {
    const float *q, *k, *v;
    tern_delta_rates rates;
} tern_delta_token;

/* Changes a state s[n][n], whose rows are those of k and whose columns those of v, by a token, and
 * reads it: o[n] = the changed state's columns times q. */
void tern_delta_step(float *s, size_t n, const tern_delta_token *t, float *o);

#endif
