/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/tune/estimate.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tern_estimate_median(double *values, size_t n) {
    qsort(values, n, sizeof *values, compare);
    return values[n / 2];
}

/*
 * The rounds that lie outside of the interval on each side. The number of rounds above the true
 * median is binomial with 1/2. Its standard deviation is sqrt(rounds) / 2, and two of these make 95
 * %.
 */
static size_t outside(size_t rounds) {
    const size_t two = (size_t)ceil(sqrt((double)rounds));
    return rounds / 2 > two ? rounds / 2 - two : 0;
}

tern_estimate tern_estimate_of(const double *seconds, const double *again, size_t rounds) {
    double ratios[TERN_ESTIMATE_ROUNDS];
    const tern_estimate nothing = {.ratio = 1.0, .within = 1.0};
    rounds = rounds < TERN_ESTIMATE_ROUNDS ? rounds : TERN_ESTIMATE_ROUNDS;
    for (size_t r = 0; r < rounds; r++) {
        const double first = seconds[2 * r], second = seconds[2 * r + 1];
        if (!(first > 0.0 && second > 0.0 && again[r] > 0.0))
            return nothing;
        ratios[r] = 2.0 * second / (first + again[r]);
    }
    if (rounds == 0)
        return nothing;
    const double ratio = tern_estimate_median(ratios, rounds);
    const size_t out = outside(rounds);
    const double below = ratio - ratios[out], above = ratios[rounds - 1 - out] - ratio;
    return (tern_estimate){.ratio = ratio, .within = below > above ? below : above};
}

bool tern_estimate_decides(const tern_estimate *e, double limit) {
    return fabs(e->ratio - limit) > e->within;
}
