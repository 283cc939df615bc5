/* SPDX-License-Identifier: Apache-2.0 */
#include "base/logprob.h"

#include <math.h>

/* ln 2 in two parts: the first has 32 bits, so that its product with an exponent is exact. */
static const double ln2_high = 0x1.62e42feep-1;
static const double ln2_low = 0x1.a39ef35793c76p-33;

/* 1/k!, from k = 13 down to 0. */
static const double taylor[] = {1.0 / 6227020800,
                                1.0 / 479001600,
                                1.0 / 39916800,
                                1.0 / 3628800,
                                1.0 / 362880,
                                1.0 / 40320,
                                1.0 / 5040,
                                1.0 / 720,
                                1.0 / 120,
                                1.0 / 24,
                                1.0 / 6,
                                0.5,
                                1.0,
                                1.0};

double tern_double_exp(double x) {
    if (!(x >= -745.0))
        return isnan(x) ? x : 0.0; /* below half of the smallest denormal */
    if (x > 710.0)
        return INFINITY;
    const double n = rint(x * 0x1.71547652b82fep+0); /* x / ln 2 */
    const double r = (x - n * ln2_high) - n * ln2_low;
    /* |r| <= 0.3466: what the series leaves out, r^14/14!, is below 5e-18. */
    double p = taylor[0];
    for (size_t k = 1; k < sizeof taylor / sizeof *taylor; k++)
        p = p * r + taylor[k];
    return ldexp(p, (int)n);
}

double tern_double_log(double x) {
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0x1.6a09e667f3bcdp-1) { /* sqrt(1/2): m in [0.707, 1.414) */
        m *= 2.0;
        exponent--;
    }
    /* ln m = 2 atanh(s), |s| <= 0.1716: the first term left out, s^23 * 2/23, is below 3e-19. */
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double sum = 0.0;
    for (int k = 21; k > 0; k -= 2)
        sum = sum * z + 1.0 / k;
    return exponent * ln2_high + (2.0 * s * sum + exponent * ln2_low);
}

double tern_log_sum_exp(const float *x, size_t n) {
    float largest = x[0];
    for (size_t i = 1; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += tern_double_exp((double)x[i] - (double)largest);
    return (double)largest + tern_double_log(sum);
}
