/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/speed/series.h"

#include <stdlib.h>

void series_add(series *s, double value) {
    if (s->n < SERIES_MAX)
        s->values[s->n++] = value;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

double series_median(const series *s) {
    if (s->n == 0)
        return 0.0;
    series sorted = *s;
    qsort(sorted.values, sorted.n, sizeof *sorted.values, compare);
    return (sorted.values[(sorted.n - 1) / 2] + sorted.values[sorted.n / 2]) / 2.0;
}

double series_low(const series *s) {
    double low = s->n > 0 ? s->values[0] : 0.0;
    for (size_t i = 1; i < s->n; i++)
        low = s->values[i] < low ? s->values[i] : low;
    return low;
}

double series_high(const series *s) {
    double high = s->n > 0 ? s->values[0] : 0.0;
    for (size_t i = 1; i < s->n; i++)
        high = s->values[i] > high ? s->values[i] : high;
    return high;
}

double series_spread(const series *s) {
    const double middle = series_median(s);
    return middle > 0.0 ? 100.0 * (series_high(s) - series_low(s)) / middle : 0.0;
}
