/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_CONFIG_ROPE_SCALING_H
#define TERN_RUNTIME_MODEL_CONFIG_ROPE_SCALING_H

/*
 * The angles of RoPE in models that were extended to longer contexts: pure functions of the numbers
 * in files, in double precision and with the project's own logarithm (runtime/model/config/rope.h).
 * docs/numerics.md has the formulas.
 */

#include <stddef.h>

#include "runtime/files/arch/arch.h"

/*
 * YaRN: stretches frequency[n_rot / 2], which holds the frequencies of the base. A pair keeps its
 * frequency, has it divided by the factor, or gets one in between: how often it turns in the
 * original context decides. yarn->factor >= 1, base > 1, n_rot even.
 */
void tern_rope_yarn_stretch(const tern_rope_yarn *yarn, double base, size_t n_rot,
                            double *frequency);

/* YaRN's attention factor, 1 + 0.1 ln factor: what cosine and sine are multiplied by. `times`
 * multiplies the logarithm. */
double tern_rope_yarn_gain(const tern_rope_yarn *yarn, double times);

/* The numbers of Llama 3's scaling. */
typedef struct tern_rope_llama3 {
    double factor;           /* at least 1 */
    double low, high;        /* turns in the original context, 0 < low < high */
    double original_context; /* positions, at least 1 */
} tern_rope_llama3;

/* Llama 3: computes factors[n_rot / 2], which divide the frequencies of the base. Files hold them
 * as rope_freqs.weight. */
void tern_rope_llama3_factors(const tern_rope_llama3 *scaling, const double *frequency,
                              size_t n_rot, float *factors);

#endif
