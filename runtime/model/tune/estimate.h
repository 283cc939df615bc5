/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_ESTIMATE_H
#define TERN_RUNTIME_MODEL_TUNE_ESTIMATE_H

/* Compares two alternatives by rounds of measurements, on a machine that does other things, too. */

#include <stdbool.h>
#include <stddef.h>

/* A median of rounds, and how far the true one may be from it. */
typedef struct tern_estimate {
    double ratio, within;
} tern_estimate;

enum { TERN_ESTIMATE_ROUNDS = 64 }; /* at most: rounds beyond these tell nothing new */

/* Sorts n >= 1 values and returns their median, of two the larger one. */
double tern_estimate_median(double *values, size_t n);

/*
 * The time of the second of two alternatives as a share of the first one's. seconds[rounds][2] has
 * both; again[rounds] has the first one at the other end of the same round. The mean of both ends
 * is used, so that a drift within a round cancels. An outlier counts as one round, whatever its
 * size. The true median lies within `within` of the ratio in 95 of 100 cases, whatever the
 * distribution (interval of the sign test). Without rounds, or with a time that is not above 0:
 * ratio 1, within 1.
 */
tern_estimate tern_estimate_of(const double *seconds, const double *again, size_t rounds);

/* True if the true ratio is surely on one side of `limit`. */
bool tern_estimate_decides(const tern_estimate *e, double limit);

#endif
