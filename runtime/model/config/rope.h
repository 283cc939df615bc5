/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_CONFIG_ROPE_H
#define TERN_RUNTIME_MODEL_CONFIG_ROPE_H

/*
 * Rotation angles of RoPE, from the project's own logarithm, exponential, sine and cosine in double
 * precision: the same bits with every C library. Errors stay below 1e-15 of the result, so the
 * floats that kernels read are correctly rounded in all but one case in some 2^28.
 */

#include <stddef.h>

/*
 * frequency[i] = base^(-2i/n_rot) / factor_i * scale for i < n_rot/2. factors may be NULL (all 1).
 * base > 0, n_rot even.
 */
void tern_rope_frequencies(double base, double scale, const float *factors, size_t n_rot,
                           double *frequency);

/* c[i], s[i] = gain times cosine and sine of position * frequency[i], for i < half. Angles up to
 * 2^30. */
void tern_rope_angles(const double *frequency, double gain, size_t half, size_t position, float *c,
                      float *s);

/* The functions themselves, for tests. */
double tern_log(double x);                                /* positive and normal */
double tern_exp(double x);                                /* |x| <= 700 */
void tern_sincos(double x, double *sine, double *cosine); /* |x| <= 2^30 */

#endif
