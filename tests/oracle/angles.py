# SPDX-License-Identifier: Apache-2.0
"""Rotation of queries and keys in float64. Arrays are indexed [position, ...]."""

from typing import NamedTuple

import numpy as np


def rope_angles(positions, n_rot, base, factors=1.0, scale=1.0, yarn=None):
    """Returns [position, n_rot / 2]: the angle by which each pair turns."""
    i = np.arange(n_rot // 2)
    frequency = base ** (-2.0 * i / n_rot) / factors * scale
    return np.outer(positions, frequency if yarn is None else yarn.stretch(frequency, base))


class Yarn(NamedTuple):
    """YaRN as in its paper (arXiv 2309.00071, 3.2): pairs are scaled by how often they turn in the context."""

    factor: float
    original: float  # positions of the context before
    fast: float  # turns from which on a pair is left as it is
    slow: float  # turns up to which it is interpolated
    between: bool  # the ends of the ramp are not moved outwards to the next pair

    def stretch(self, frequency, base):
        half = len(frequency)
        low, high = (
            2 * half * np.log(self.original / (turns * 2 * np.pi)) / (2 * np.log(base))
            for turns in (self.fast, self.slow)
        )
        low, high = (low, high) if self.between else (np.floor(low), np.ceil(high))
        low, high = max(low, 0), min(high, 2 * half - 1)
        interpolated = np.clip((np.arange(half) - low) / max(high - low, 0.001), 0, 1)
        return frequency / self.factor * interpolated + frequency * (1 - interpolated)

    def gain(self, times=1.0):
        return 0.1 * times * np.log(self.factor) + 1


def rope(x, angles, pairing, gain=1.0):
    """Turns the first dimensions of x[position, head, dim]; the rest passes through."""
    half = angles.shape[1]
    first, second = {
        "norm": (slice(0, 2 * half, 2), slice(1, 2 * half, 2)),
        "neox": (slice(0, half), slice(half, 2 * half)),
    }[pairing]
    c, s = gain * np.cos(angles)[:, None, :], gain * np.sin(angles)[:, None, :]
    y = x.copy()
    y[..., first] = x[..., first] * c - x[..., second] * s
    y[..., second] = x[..., first] * s + x[..., second] * c
    return y
