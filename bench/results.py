# SPDX-License-Identifier: Apache-2.0
"""Reads the results that bench_kernels --json wrote: Google Benchmark's JSON with tern's labels in it, and the form
that lab/report keeps, with one entry for all repetitions of a benchmark."""

from __future__ import annotations

import json
import math
import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path

# The fields of a label are texts, as bench/cases.c writes them.
LABEL_KEYS = ("op", "format", "isa", "shape", "tokens", "level", "threads", "unit")


class ResultsError(Exception):
    """The file cannot be used; the text names the file and says what is wrong with it."""


def clock_of(name: str) -> str:
    """The clock's time where a benchmark's name says so, else the processor's."""
    return "real_time" if "/real_time" in name else "cpu_time"


@dataclass
class Benchmark:
    """All repetitions of one benchmark."""

    name: str
    label: dict[str, str]
    seconds: list[float] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)

    def figure(self, name: str) -> float | None:
        """The median over the repetitions; None when no repetition reports it."""
        values = self.figures.get(name)
        return statistics.median(values) if values else None

    @property
    def clock(self) -> str:
        """Returns the clock that `seconds` were read from."""
        return clock_of(self.name)

    @property
    def weights(self) -> str:
        """Names the weights that are multiplied: the format, or the layout that a row of another layout is named
        after."""
        named = re.match(r"tern_gem[vm]_(\w+)_\d+x\d+_", self.name)
        return named[1] if named else self.label["format"]

    def spread(self, name: str) -> float:
        """Half the range of a figure, as a share of its median."""
        values = self.figures[name]
        middle = statistics.median(values)
        return (max(values) - min(values)) / 2 / middle if middle else 0.0


@dataclass
class Results:
    path: str
    context: dict
    benchmarks: dict[str, Benchmark]
    failed: dict[str, str]  # name -> message


def parse_label(text: str) -> dict[str, str]:
    """"op=gemv unit=int8 codes" -> {"op": "gemv", "unit": "int8 codes"}."""
    label: dict[str, str] = {}
    last = None
    for word in text.split():
        key, sign, value = word.partition("=")
        if sign and key in LABEL_KEYS:
            last = key
            label[key] = value
        elif last:
            label[last] += " " + word
    return label


UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
NO_FIGURES = {"family_index", "per_family_instance_index", "repetitions", "repetition_index"}
NO_FIGURES |= {"threads", "iterations", "real_time", "cpu_time"}


def repetitions(entry: dict) -> list[dict]:
    """The runs of an entry: itself, or as many as its figures have values."""
    lists = {key: values for key, values in entry.items() if isinstance(values, list)}
    count = max(map(len, lists.values()), default=0)
    return [entry | {key: values[i] for key, values in lists.items()} for i in range(count)] or [entry]


def add_run(path: str, run: dict, found: dict[str, Benchmark]) -> None:
    """Adds one repetition."""
    name = run["run_name"]
    benchmark = found.setdefault(name, Benchmark(name, parse_label(run.get("label", ""))))
    key = benchmark.clock
    seconds = float(run[key]) * UNITS[run["time_unit"]]
    if not (math.isfinite(seconds) and seconds > 0):
        raise ResultsError(f"{path}: {name}: {key} is {run[key]}")
    benchmark.seconds.append(seconds)
    for figure, value in run.items():
        if isinstance(value, (int, float)) and figure not in NO_FIGURES:
            benchmark.figures.setdefault(figure, []).append(float(value))


def load(path: str) -> Results:
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ResultsError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("benchmarks"), list):
        raise ResultsError(f"{path}: not a result of Google Benchmark: no list 'benchmarks'")
    found: dict[str, Benchmark] = {}
    failed: dict[str, str] = {}
    for entry in data["benchmarks"]:
        try:
            if entry.get("run_type", "iteration") != "iteration":
                continue
            if entry.get("error_occurred"):
                failed[entry["run_name"]] = entry.get("error_message", "failed")
                continue
            for run in repetitions(entry):
                add_run(path, run, found)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            raise ResultsError(f"{path}: an entry of 'benchmarks' is broken: {error!r}") from None
    return Results(path, data.get("context") or {}, found, failed)
