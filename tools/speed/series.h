/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SPEED_SERIES_H
#define TERN_TOOLS_SPEED_SERIES_H

/* The repeated measurements of one figure. */

#include <stddef.h>

enum { SERIES_MAX = 1000 };

/* Zero-initialise it. Values keep their order. */
typedef struct series {
    double values[SERIES_MAX];
    size_t n;
} series;

/* Values beyond SERIES_MAX are dropped. */
void series_add(series *s, double value);

/* Median: the middle value, or the mean of the two middle ones; 0 without values. */
double series_median(const series *s);

/* Smallest and largest value; 0 without values. */
double series_low(const series *s);
double series_high(const series *s);

/* (largest - smallest) / median in percent; 0 without values or if the median is not above 0. */
double series_spread(const series *s);

#endif
