# SPDX-License-Identifier: Apache-2.0
"""Statistics of repeated measurements: ratios of means of logarithms with Welch's interval.

Times are positive and vary by factors, so everything is done with their logarithms: the ratio of
two benchmarks is exp(mean log B - mean log A), its interval Welch's t interval of that difference
(unequal variances, Satterthwaite's degrees of freedom).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LEVEL = 0.95


def beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c = 1.0
    d = 1.0 / max(abs(1.0 - (a + b) * x / (a + 1.0)), tiny)
    result = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for term in (even, odd):
            d = 1.0 / ((1.0 + term * d) or tiny)
            c = (1.0 + term / c) or tiny
            step = c * d
            result *= step
        if abs(step - 1.0) < 1e-14:
            break
    return result


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularized incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    log_front = a * math.log(x) + b * math.log1p(-x)
    log_front -= math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - math.exp(log_front) * beta_fraction(b, a, 1.0 - x) / b
    return math.exp(log_front) * beta_fraction(a, b, x) / a


def t_quantile(p: float, freedom: float) -> float:
    """The t with P(T <= t) = p, p > 1/2, by bisection of the distribution function."""

    def below(t: float) -> float:
        return 1.0 - 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))

    low, high = 0.0, 1.0
    while below(high) < p:
        high *= 2.0
    for _ in range(64):
        middle = (low + high) / 2.0
        low, high = (middle, high) if below(middle) < p else (low, middle)
    return (low + high) / 2.0


@dataclass(frozen=True)
class Estimate:
    """A ratio with its interval; `log` and `variance` are those of its logarithm's estimate."""

    log: float
    variance: float
    freedom: float

    def bound(self, sign: int, level: float = LEVEL) -> float:
        if self.variance == 0.0:
            return self.ratio
        quantile = t_quantile(0.5 + level / 2, self.freedom)
        return math.exp(self.log + sign * quantile * math.sqrt(self.variance))

    @property
    def ratio(self) -> float:
        return math.exp(self.log)

    @property
    def low(self) -> float:
        return self.bound(-1)

    @property
    def high(self) -> float:
        return self.bound(+1)


def satterthwaite(parts: list[tuple[float, float]]) -> tuple[float, float]:
    """Variance and degrees of freedom of a sum of independent parts (variance, freedom)."""
    variance = sum(v for v, _ in parts)
    denominator = sum(v * v / f for v, f in parts)
    smallest = min(f for _, f in parts)
    return variance, variance * variance / denominator if denominator > 0.0 else smallest


def mean_log(values: list[float]) -> tuple[float, float]:
    """Mean of the logarithms, and the variance of that mean."""
    logs = [math.log(v) for v in values]
    mean = math.fsum(logs) / len(logs)
    spread = math.fsum((x - mean) ** 2 for x in logs) / (len(logs) - 1)
    return mean, spread / len(logs)


def compare(a: list[float], b: list[float]) -> Estimate:
    """Returns how many times as large b is as a; both have at least two values, all positive."""
    mean_a, variance_a = mean_log(a)
    mean_b, variance_b = mean_log(b)
    parts = [(variance_a, len(a) - 1.0), (variance_b, len(b) - 1.0)]
    return Estimate(mean_b - mean_a, *satterthwaite(parts))


def geometric_mean(estimates: list[Estimate]) -> Estimate:
    """Combines independent ratios by the mean of their logarithms."""
    n = len(estimates)
    parts = [(e.variance / (n * n), e.freedom) for e in estimates]
    return Estimate(math.fsum(e.log for e in estimates) / n, *satterthwaite(parts))


def compare_pairs(a: list[float], b: list[float]) -> Estimate:
    """Returns how many times as large b is as a, from pairs (a[i], b[i]) measured one right after the other. There are
    at least two pairs, all positive. A change from pair to pair that affects both sides alike drops out."""
    mean, variance = mean_log([y / x for x, y in zip(a, b, strict=True)])
    return Estimate(mean, variance, len(a) - 1.0)
