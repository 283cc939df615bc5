/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/config/rope.h"

#include <stdint.h>
#include <string.h>

/* ln 2 and pi/2 in pieces whose products with an integer below 2^30 (2^11 for ln 2) are exact. */
static const double ln2_high = 0x1.62e42fefp-1;      /* 33 bits */
static const double ln2_low = 0x1.473de6af278edp-34; /* the rest, 53 bits */
static const double half_pi_1 = 0x1.921fb4p+0;       /* 23 bits each */
static const double half_pi_2 = 0x1.4442d0p-24;
static const double half_pi_3 = 0x1.846988p-48;
static const double half_pi_4 = 0x1.8cc51701b839ap-72;

static double from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Nearest integer, ties to even, for |x| < 2^51. */
static double nearest(double x) {
    return (x + 0x1.8p52) - 0x1.8p52;
}

/* ln x = e ln 2 + ln m with m in [sqrt(1/2), sqrt 2): 2 atanh((m-1)/(m+1)), |.| <= 0.1716. */
double tern_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    double exponent = (double)((int)((bits >> 52) & 2047) - 1023);
    double m = from_bits((bits & 0xfffffffffffffu) | UINT64_C(0x3ff0000000000000));
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        exponent += 1.0;
    }
    const double t = (m - 1.0) / (m + 1.0);
    const double t2 = t * t;
    double sum = 0.0;
    for (int k = 23; k >= 3; k -= 2) /* 0.1716^25 / 25 < 2^-66 */
        sum = (sum + 1.0 / k) * t2;
    return exponent * ln2_high + (2.0 * t + (2.0 * t * sum + exponent * ln2_low));
}

/* exp x = 2^n exp r, |r| <= 0.3466; the series ends when 0.3466^15 / 15! < 2^-63. */
double tern_exp(double x) {
    const double n = nearest(x * 0x1.71547652b82fep+0);
    const double r = (x - n * ln2_high) - n * ln2_low;
    double sum = 1.0;
    for (int k = 14; k >= 1; k--)
        sum = sum * r / k + 1.0;
    return sum * from_bits((uint64_t)((int64_t)n + 1023) << 52);
}

/* Series on |r| <= pi/4: the next terms are below 2^-60. */
static double sine_series(double r) {
    const double r2 = r * r;
    double sum = 0.0;
    for (int k = 17; k >= 3; k -= 2)
        sum = (1.0 + sum) * (-r2 / (double)(k * (k - 1)));
    return r + r * sum;
}

static double cosine_series(double r) {
    const double r2 = r * r;
    double sum = 0.0;
    for (int k = 18; k >= 2; k -= 2)
        sum = (1.0 + sum) * (-r2 / (double)(k * (k - 1)));
    return 1.0 + sum;
}

void tern_sincos(double x, double *sine, double *cosine) {
    const double n = nearest(x * 0x1.45f306dc9c883p-1);
    double r = x - n * half_pi_1;
    r -= n * half_pi_2;
    r -= n * half_pi_3;
    r -= n * half_pi_4;
    const double s = sine_series(r);
    const double c = cosine_series(r);
    switch ((uint64_t)(int64_t)n & 3) {
    case 0:
        *sine = s, *cosine = c;
        break;
    case 1:
        *sine = c, *cosine = -s;
        break;
    case 2:
        *sine = -s, *cosine = -c;
        break;
    default:
        *sine = -c, *cosine = s;
    }
}

void tern_rope_frequencies(double base, double scale, const float *factors, size_t n_rot,
                           double *frequency) {
    const double log_base = tern_log(base);
    for (size_t i = 0; i < n_rot / 2; i++) {
        const double exponent = -2.0 * (double)i / (double)n_rot;
        const double factor = factors != NULL ? (double)factors[i] : 1.0;
        frequency[i] = tern_exp(exponent * log_base) / factor * scale;
    }
}

void tern_rope_angles(const double *frequency, double gain, size_t half, size_t position, float *c,
                      float *s) {
    for (size_t i = 0; i < half; i++) {
        double sine;
        double cosine;
        tern_sincos((double)position * frequency[i], &sine, &cosine);
        c[i] = (float)(cosine * gain);
        s[i] = (float)(sine * gain);
    }
}
