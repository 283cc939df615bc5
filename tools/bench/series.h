/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_BENCH_SERIES_H
#define TERN_TOOLS_BENCH_SERIES_H

/* One figure, measured again and again. */

#include <stddef.h>

enum { SERIES_MAX = 1000 };

/* Zero-initialise it. Values keep the order in which they came. */
typedef struct series {
    double values[SERIES_MAX];
    size_t n;
} series;

/* What comes after SERIES_MAX values is dropped. */
void series_add(series *s, double value);

/* Middle value, or the mean of the two in the middle; 0 without values. */
double series_median(const series *s);

/* Smallest and largest value; 0 without values. */
double series_low(const series *s);
double series_high(const series *s);

/* (largest - smallest) / median in percent; 0 without values or with a median that is not above 0.
 */
double series_spread(const series *s);

#endif
