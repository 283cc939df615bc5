/* SPDX-License-Identifier: Apache-2.0 */
#include "receipts/interval.h"

#include <math.h>

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x) {
    const double tiny = 1e-300;
    double c = 1.0;
    double d = 1.0 / fmax(fabs(1.0 - (a + b) * x / (a + 1.0)), tiny);
    double result = d;
    for (int m = 1; m < 500; m++) {
        const double terms[] = {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                                -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))};
        double step = 1.0;
        for (int i = 0; i < 2; i++) {
            const double below = 1.0 + terms[i] * d;
            d = 1.0 / (below != 0.0 ? below : tiny);
            c = 1.0 + terms[i] / c;
            c = c != 0.0 ? c : tiny;
            step = c * d;
            result *= step;
        }
        if (fabs(step - 1.0) < 1e-14)
            break;
    }
    return result;
}

/* The regularized incomplete beta function I_x(a, b). */
static double incomplete_beta(double a, double b, double x) {
    if (x <= 0.0 || x >= 1.0)
        return x <= 0.0 ? 0.0 : 1.0;
    const double front = a * log(x) + b * log1p(-x) - (lgamma(a) + lgamma(b) - lgamma(a + b));
    if (x > (a + 1.0) / (a + b + 2.0))
        return 1.0 - exp(front) * beta_fraction(b, a, 1.0 - x) / b;
    return exp(front) * beta_fraction(a, b, x) / a;
}

/* P(T <= t) of Student's distribution. */
static double t_below(double t, double freedom) {
    return 1.0 - 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
}

/* The t with P(T <= t) = p, p > 1/2, by bisection. */
static double t_quantile(double p, double freedom) {
    double low = 0.0;
    double high = 1.0;
    while (t_below(high, freedom) < p && high < 1e12)
        high *= 2.0;
    for (int i = 0; i < 64; i++) {
        const double middle = (low + high) / 2.0;
        if (t_below(middle, freedom) < p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2.0;
}

/* The logarithm of value i, or of its ratio to over[i] where `over` is given. */
static double log_at(const double *values, const double *over, size_t i) {
    return log(over != NULL ? values[i] / over[i] : values[i]);
}

/* Mean of logarithms and the variance of that mean. */
static interval mean_of(const double *values, const double *over, size_t n) {
    double mean = 0.0;
    double spread = 0.0;
    for (size_t i = 0; i < n; i++)
        mean += log_at(values, over, i) / (double)n;
    for (size_t i = 0; i < n; i++) {
        const double off = log_at(values, over, i) - mean;
        spread += off * off;
    }
    const double freedom = (double)n - 1.0;
    return (interval){mean, spread / freedom / (double)n, freedom};
}

interval interval_of_pairs(const double *a, const double *b, size_t n) {
    return mean_of(b, a, n);
}

/*
 * Welch's interval. The difference of the means has the variance v = v_a + v_b, where v_a and v_b
 * are the variances of the means, s^2 / n. Its degrees of freedom are
 *     v^2 / (v_a^2 / (n_a - 1) + v_b^2 / (n_b - 1)).
 * B. L. Welch, "The generalization of 'Student's' problem when several different population
 * variances are involved", Biometrika 34 (1947), 28-35; the degrees of freedom are those of
 * F. E. Satterthwaite, "An approximate distribution of estimates of variance components",
 * Biometrics Bulletin 2 (1946), 110-114.
 */
interval interval_of_samples(const double *a, size_t n_a, const double *b, size_t n_b) {
    const interval x = mean_of(a, NULL, n_a);
    const interval y = mean_of(b, NULL, n_b);
    const double variance = x.variance + y.variance;
    const double parts = x.variance * x.variance / x.freedom + y.variance * y.variance / y.freedom;
    const double freedom = parts > 0.0 ? variance * variance / parts : fmin(x.freedom, y.freedom);
    return (interval){y.log - x.log, variance, freedom};
}

double interval_bound(const interval *e, double level, int sign) {
    if (e->variance == 0.0)
        return exp(e->log);
    return exp(e->log + sign * t_quantile(0.5 + level / 2.0, e->freedom) * sqrt(e->variance));
}
