# SPDX-License-Identifier: Apache-2.0
"""Holds the figures of a result to the numbers that docs/requirements.md has of kernels (M153 to M157).

Everything is computed from what the benchmarks counted: bytes, multiply-accumulates, seconds, and the bytes that a loop
of loads read beside them. A number that no counter tells is reported as unknown, never as met.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import results as bench

FORMATS = ("i2_s", "tl1r16", "tl2r16")


@dataclass
class Line:
    """gemv of a format by an instruction set, one token, one thread."""

    weights: str
    isa: str
    intensity: float  # operations for each byte read: a multiplication and an addition are two
    bandwidth: float | None  # percent of the bytes a second that loads read from memory, the median of the shapes
    peak: float | None  # percent of the multiplications a second that the multiplier does from the cache
    speed: float | None  # times the fastest scalar kernel of the format, from the cache
    cached: float | None  # percent of the memory's bandwidth that its speed from the cache would use


@dataclass
class Verdict:
    row: str
    met: bool
    text: str


def one_token(found: bench.Results, weights: str, isa: str, level: str) -> list[bench.Benchmark]:
    wanted = {"op": "gemv", "isa": isa, "level": level, "tokens": "1", "threads": "1"}
    return [b for b in found.benchmarks.values()
            if b.weights == weights and wanted.items() <= b.label.items()
            and b.figure("macs") and b.figure("bytes")]  # fmt: skip


def fastest(benchmarks: list[bench.Benchmark]) -> bench.Benchmark | None:
    return max(benchmarks, key=lambda b: b.figure("macs"), default=None)


def middle(benchmarks: list[bench.Benchmark], figure: str) -> float | None:
    values = [b.figure(figure) for b in benchmarks if b.figure(figure) is not None]
    return statistics.median(values) if values else None


def line(found: bench.Results, weights: str, isa: str) -> Line | None:
    near, far = (one_token(found, weights, isa, level) for level in ("cache", "memory"))
    best, scalar = fastest(near), fastest(one_token(found, weights, "scalar", "cache"))
    some = best or fastest(far)
    if some is None:
        return None
    roof = middle(far, "read_roof")
    cached = 100 * best.figure("bytes") / roof if best and roof else None
    return Line(weights, isa, 2 * some.figure("macs") / some.figure("bytes"),
                middle(far, "read_percent"), best.figure("peak_percent") if best else None,
                best.figure("macs") / scalar.figure("macs") if best and scalar else None,
                cached)  # fmt: skip


def lines(found: bench.Results) -> list[Line]:
    isas = dict.fromkeys(b.label.get("isa", "") for b in found.benchmarks.values())
    all_lines = [line(found, weights, isa) for weights in FORMATS for isa in isas]
    return [one for one in all_lines if one is not None]


def factors(row: str, weights: str, isa: str, speed: float, share: float,
            known: list[Line]) -> Verdict:  # fmt: skip
    """A speed over scalar and a share of the bandwidth, both of one instruction set."""
    wanted = f"{speed:g} times scalar and {share:g} % of the bandwidth are asked for"
    one = next((x for x in known if (x.weights, x.isa) == (weights, isa)), None)
    what = f"{weights} by {isa}"
    if one is None or one.speed is None or one.bandwidth is None:
        return Verdict(row, False, f"{what} was not measured here; {wanted}")
    text = f"{what}: {one.speed:.3g} times scalar, {one.bandwidth:.0f} % of the bandwidth; {wanted}"
    if one.bandwidth < share and one.cached is not None:
        bound = "its instructions bound it" if one.cached < share else "waiting for memory bounds it"
        text += f". Its speed from a cache would use {one.cached:.0f} % of that bandwidth: {bound}"
    return Verdict(row, one.speed >= speed and one.bandwidth >= share, text)


def intensity(known: list[Line]) -> Verdict:
    measured = [x for x in known if x.weights == "i2_s"]
    if not measured:
        return Verdict("M154", False, "i2_s was not measured here")
    value = statistics.median(x.intensity for x in measured)
    text = (f"i2_s: {value:.3g} operations for each byte of weights; about 2 are asked for. "
            "A byte holds four weights, and each is a multiplication and an addition")  # fmt: skip
    return Verdict("M154", abs(value - 2.0) <= 0.2, text)


def verdicts(known: list[Line]) -> list[Verdict]:
    return [
        Verdict("M153", False, "95 % of cache hits are asked for: no counter of hits is read. "
                "Groups of rows begin at multiples of 64 bytes"),
        intensity(known),
        Verdict("M155", False, "80 % of a GPU's peak are asked for: no GPU was measured"),
        factors("M156", "tl1r16", "neon", 4, 90, known),
        factors("M157", "tl2r16", "avx2", 8, 85, known),
    ]  # fmt: skip
