# SPDX-License-Identifier: Apache-2.0
"""The comparison document of two results of bench_kernels (docs/receipts.md).

Each was measured by itself, so that no run of one belongs to a run of the other: the document's
method is "independent". Its figures are nanoseconds of one call, by the name of the benchmark.
"""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import results
import sealing
import stats

# bench_kernels says these things about itself and the machine, and the document needs them.
TOLD = ("date", "executable", "num_cpus", "load_avg", "processor", "architecture", "os",
        "tern_version", "tern_commit", "program_sha256")


def check_told(side: results.Results) -> None:
    missing = [key for key in TOLD if not side.context.get(key)]
    if missing:
        raise results.ResultsError(
            f"{side.path}: 'context' lacks {', '.join(missing)}, which a comparison document says: "
            "measure again with bench_kernels of this version")


def machine(a: results.Results, b: results.Results) -> dict:
    """Returns the machine that both were measured on, with the higher load of the two."""
    names = {"cpu": "processor", "cores": "num_cpus", "architecture": "architecture", "os": "os"}
    for key in names.values():
        if a.context[key] != b.context[key]:
            raise results.ResultsError(
                f"{a.path} was measured with {key} {a.context[key]}, {b.path} with "
                f"{b.context[key]}: a comparison document is about one machine")
    load = max(side.context["load_avg"][0] for side in (a, b))
    return {key: a.context[name] for key, name in names.items()} | {"load_average": load}


def began(a: results.Results, b: results.Results) -> str:
    """The time of the first of both, in UTC."""
    try:
        first = min(datetime.fromisoformat(side.context["date"]) for side in (a, b))
    except ValueError as error:
        raise results.ResultsError(f"{a.path}, {b.path}: 'date': {error}") from None
    return first.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def one_of(values: set, otherwise):
    return values.pop() if len(values) == 1 else otherwise


def nanoseconds(benchmark: results.Benchmark) -> list[float]:
    return [1e9 * s for s in benchmark.seconds]


def side_json(side: results.Results, names: list[str]) -> dict:
    """One side; what differs between its benchmarks (threads, instruction set) is left open."""
    chosen = [side.benchmarks[name] for name in names]
    kernels = sorted({name.split("/")[0] for name in names})
    mock = any("mock" in kernel.lower() for kernel in kernels)
    told = side.context
    return {
        "name": Path(side.path).name, "command": Path(told["executable"]).name,
        "version": f"tern {told['tern_version']}, commit {told['tern_commit']}",
        "program_sha256": told["program_sha256"], "compute_path": "mock" if mock else "real",
        "isa": one_of({b.label.get("isa", "") for b in chosen}, ""),
        "threads": int(one_of({b.label.get("threads", "0") for b in chosen}, 0)),
        "kernels": kernels, "patterns": {b.name: b.clock for b in chosen}, "answer": "",
        **sealing.figures({b.name: nanoseconds(b) for b in chosen}),
    }


def document(a: results.Results, b: results.Results, found: dict[str, stats.Estimate]) -> dict:
    """Raises results.ResultsError where the results say too little, or come from two machines."""
    for side in (a, b):
        check_told(side)
    names = list(found)
    sides = {"a": side_json(a, names), "b": side_json(b, names)}
    ratios = {name: sealing.ratio(e, sides["b"]["medians"][name] / sides["a"]["medians"][name])
              for name, e in found.items()}
    return sealing.comparison("independent", began(a, b), [], machine(a, b), sides, ratios)
