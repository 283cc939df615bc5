/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_INTERVAL_H
#define TERN_RECEIPTS_INTERVAL_H

/* Ratios of repeated measurements with their intervals, as bench/stats.py computes them. */

#include <stddef.h>

/* exp(log) is the ratio; variance is that of log, freedom its degrees of freedom. */
typedef struct interval {
    double log, variance, freedom;
} interval;

/* b over a, n > 1 positive values each: pairs that were measured one right after the other. */
interval interval_of_pairs(const double *a, const double *b, size_t n);

/* b over a, of n_b and n_a > 1 positive values that were measured independently: the ratio of their
 * geometric means. */
interval interval_of_samples(const double *a, size_t n_a, const double *b, size_t n_b);

/* The bound of the ratio below (sign -1) or above (+1) which it lies with the probability `level`
 * on both sides together. */
double interval_bound(const interval *e, double level, int sign);

#endif
