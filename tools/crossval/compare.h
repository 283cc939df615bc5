/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CROSSVAL_COMPARE_H
#define TERN_TOOLS_CROSSVAL_COMPARE_H

/*
 * Similarity of two vectors. All sums are computed in double, in the order of the elements. The
 * reference is the first argument everywhere.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Figures of one pair of vectors. */
typedef struct pair_figures {
    double cosine;    /* 1 when both are zero, 0 when one is */
    double max_abs;   /* largest |difference| */
    double squares;   /* sum of squared differences */
    double deviation; /* sum of the reference's squared distances from its mean */
    size_t n;
} pair_figures;

pair_figures compare_vectors(const float *reference, const float *ours, size_t n);

/* sum p (ln p - ln q) in nats; p and q are the softmax of reference and ours. Rounding may make it
 * slightly negative, about -1e-15. */
double compare_kl(const float *reference, const float *ours, size_t n);

/* Best logit minus second best; *best is the lowest id with the best logit. n >= 2. */
double compare_margin(const float *logits, size_t n, int32_t *best);

/* Accumulated figures of many pairs. Zero-initialise. */
typedef struct sum_figures {
    size_t pairs, elements;
    double cosine_min, cosine_sum;
    double max_abs;
    double squares, deviation;
} sum_figures;

void sum_add(sum_figures *s, const pair_figures *p);
void sum_merge(sum_figures *s, const sum_figures *other);

double sum_cosine_mean(const sum_figures *s); /* 1 without pairs */
double sum_rms(const sum_figures *s);         /* sqrt(mean squared difference) */
double sum_scaled_mse(const sum_figures *s);  /* squares / deviation: error at unit variance */

#endif
