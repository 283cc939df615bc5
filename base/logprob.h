/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_LOGPROB_H
#define TERN_BASE_LOGPROB_H

/*
 * Logarithms of probabilities in double, by additions and multiplications in a fixed order alone: a
 * libm picks other code on processors with fused multiply-add and rounds differently there. So
 * these are the same bits wherever the logits are.
 */

#include <stddef.h>

/* e^x, relative error below 4e-16 for results that are normal numbers; 0 below -745. */
double tern_double_exp(double x);

/* Natural logarithm of a positive normal number, error below 4e-16 * max(1, |result|). */
double tern_double_log(double x);

/*
 * ln(sum of e^x[i]), summed for increasing i after the largest value. Subtract it from a logit to
 * get the logarithm of its probability. n >= 1. Infinite or NaN when an x is.
 */
double tern_log_sum_exp(const float *x, size_t n);

#endif
