# SPDX-License-Identifier: Apache-2.0
"""Makes tables and figures of counts and comparisons, from the documents in docs/report (lab/page_figures.py)."""

from __future__ import annotations

import functools
import json

from page_tables import REPORTS, PageError, at, percent, shown, table


@functools.cache
def report(name: str):
    path = REPORTS / f"{name}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PageError(f"{path}: {error.strerror}") from None


def reported(name: str, path: str, form: str = "") -> str:
    """One field of a document of docs/report."""
    return shown(at(report(name), path), form)


# ---- tables that a run printed -----------------------------------------------------------------------


def counts(name: str) -> str:
    """The table of docs/report/counts/NAME.json, as it stands there."""
    found = report(f"counts/{name}")
    return table(found["columns"], found["rows"])


def count(name: str, key: str, form: str = "") -> str:
    return shown(at(report(f"counts/{name}")["figures"], key), form)


# ---- sparse blocks -----------------------------------------------------------------------------------

SPARSE = ("sparse-blocks", "sparse-blocks-amx")  # on a Zen 5, on a Xeon with AMX
SPARSE_NAMES = {"f32": "f32", "f16": "f16", "i2_s": "ternary"}
ISA_NAMES = {"avx512vnni": "AVX-512 VNNI", "avx512": "AVX-512", "avxvnni": "AVX-VNNI", "avx2": "AVX2",
             "sse41": "SSE4.1", "scalar": "scalar"}
SHOWN = (25, 50, 75, 90)


def sparse_times(document: str, kind: str, isa: str) -> dict[int, float]:
    """Says how many times as fast a sparse product is, by the share of blocks that are stored."""
    return {p["stored_percent"]: p["times_as_fast"] for p in report(document)["products"]
            if (p["type"], p["isa"]) == (kind, isa)}


def sparse_limit(document: str, kind: str, isa: str) -> int:
    """Returns the largest share at which the sparse product is at least as fast, as the benchmark found."""
    return next(limit["no_slower_percent"] for limit in report(document)["limits"]
                if (limit["type"], limit["isa"]) == (kind, isa))


def sparse_table() -> str:
    rows = []
    for kind, name in SPARSE_NAMES.items():
        for isa, title in ISA_NAMES.items():
            here = sparse_times(SPARSE[0], kind, isa)
            if here:
                rows.append([name, title, *(f"{here[share]:.1f}" for share in SHOWN),
                             *(f"{sparse_limit(document, kind, isa)} %" for document in SPARSE)])
    head = ["weights", "instruction set", *(f"{share} %" for share in SHOWN), "no slower up to some",
            "on a Xeon with AMX"]
    return table(head, rows)


# ---- operations of a device --------------------------------------------------------------------------

DEVICE = "nvidia-h200"


def case(name: str) -> dict:
    for found in report(DEVICE)["cases"]:
        if found["name"] == name:
            return found
    raise PageError(f"{name}: no such case in {DEVICE}.json")


def device(name: str, path: str, form: str = "", scale: float = 1.0) -> str:
    return shown(case(name)[path] * scale, form)


def roof_of_device(form: str = ",.0f", scale: float = 1.0) -> str:
    return shown(report(DEVICE)["roof_gbs"] * scale, form)


OPERATIONS = {  # what the line says: its cases, and a remark
    "gemv t2r16, 16384 x 16384": (["gemv/t2r16/16384x16384"], "weights need no second pass, the copy writes, too"),
    "gemv t2r16, 6912 x 2560": (["gemv/t2r16/6912x2560"], "as long as a call"),
    "gemv t2r16, 2560 x 6912": (["gemv/t2r16/2560x6912"], ""),
    "gemv t5r16, 16384 x 16384": (["gemv/t5r16/16384x16384"], "instructions, not memory"),
    "gemv f16, 128256 x 2560 (a head)": (["gemv/f16/128256x2560"], ""),
    "gemv q4_0, 6912 x 2560": (["gemv/q4_0/6912x2560"], "the ordered sums of blocks wait"),
    "gemv q8_0, 6912 x 2560": (["gemv/q8_0/6912x2560"], "likewise"),
    "gemm t2r16, 6912 x 2560, 512 tokens": (["gemm/t2r16/6912x2560x512"], "by tensor cores"),
    "gemm f16, the same": (["gemm/f16/6912x2560x512"], "without"),
    "gemm q4_0, the same": (["gemm/q4_0/6912x2560x512"], "without"),
    "attention f16, one token after 1,024": (["attend/f16/1024"], "20 blocks of 132 multiprocessors"),
    "attention f16, one token after 4,096": (["attend/f16/4096"], "likewise"),
    "attention f16, 512 tokens of a prompt": (["attend/f16/512x512"], ""),
    "rmsnorm of 2,560": (["rmsnorm/2560"], "a sum in the canonical order"),
}


def operations_table() -> str:
    rows = []
    for what, (names, remark) in OPERATIONS.items():
        c = case(names[0])
        one = c["tokens"] == 1 and c["op"] in ("gemv", "attend")
        rows.append([what, f"{c['us']:.1f}", f"{c['gbs']:,.0f}" if one else "", f"{c['roof_percent']:.0f} %" if one else "",
                     f"{c['gmacs'] / 1e3:,.1f}" if c["op"] == "gemm" else "", remark])
    return table(["operation", "us", "GB/s", "of the copy", "T multiply-accumulates/s", ""], rows)


# ---- comparisons with other engines ------------------------------------------------------------------


def crossval(name: str) -> dict:
    return report(f"crossval/{name}")["found"]


def crossval_date(name: str) -> str:
    return report(f"crossval/{name}")["date"]


def ties(found: dict) -> str:
    if not found["differences"]:
        return ""
    margins = [d["reference_margin"] for c in found["cases"] for d in c["differences"]]
    words = "a near-tie, margin" if len(margins) == 1 else f"{found['near_ties']} near-ties, margins up to"
    return f"{words} {max(margins):.2f}"


def small(x: float) -> str:
    return f"{x:.2g}".replace("e-0", "e-").replace("e+0", "e+")


def caches_table(name: str) -> str:
    """The same reference with the caches of tern in f32 and in f16."""
    rows = []
    for kv in ("f32", "f16"):
        d = crossval(f"{name}-{kv}")
        whole = d["whole_positions"]
        rows.append([kv, f"{d['cosine_mean']:.7f}", f"{d['cosine_min']:.7f}", small(d["max_abs"]),
                     small(d["scaled_mse"]), f"{round(d['top1'] * whole)} of {whole}",
                     f"{d['greedy_equal']} of {d['greedy_steps']}"])
    return table(["cache of tern", "mean cosine", "least", "largest difference", "scaled MSE", "top-1", "greedy"], rows)


def engines_table(lines: dict[str, str], head: list[str]) -> str:
    """A line a document: {name of the document: what the line says, cells divided by " / "}."""
    rows = []
    for name, what in lines.items():
        d = crossval(name)
        whole = d["whole_positions"]  # without any, the engine's logits are stored only for some ids
        rows.append([*what.split(" / "), str(d["positions"]), f"{d['cosine_mean']:.7f}", f"{d['cosine_min']:.7f}",
                     f"{round(d['top1'] * whole)} of {whole}" if whole else "", f"{d['kl_mean']:.4f}" if whole else "",
                     f"{d['greedy_equal']} of {d['greedy_steps']}", ties(d)])
    return table([*head, "positions", "mean cosine", "least", "top-1", "KL", "greedy equal", "differences"], rows)


def cache_rows(chosen: dict[str, list]) -> str:
    """Keys and values of some layers: {document: [model and name of the case, layers]}."""
    rows = []
    for name, (what, layers) in chosen.items():
        found = next(c for c in crossval(name)["cases"] if c["name"] == what.rpartition(", ")[2])
        for i in layers:
            layer = found["kv_layers"][i]
            rows.append([what, ", ".join(map(str, found["kv_shape"])), str(i),
                         f"{layer['key_cosine_min']:.7f}, {small(layer['key_max_abs'])}",
                         f"{layer['value_cosine_min']:.7f}, {small(layer['value_max_abs'])}"])
    head = ["model, prompt", "shape: layers, heads, positions, width", "layer", "keys: least cosine, largest difference",
            "values: least cosine, largest difference"]
    return table(head, rows)


def largest_in_cache(name: str) -> str:
    layers = [layer for c in crossval(name)["cases"] for layer in c.get("kv_layers", [])]
    return small(max(layer[key] for layer in layers for key in ("key_max_abs", "value_max_abs")))


def near_ties_table() -> str:
    """Greedy tokens that differ from the stored answers of an engine, by the arithmetic of tern."""
    rows = [[line["arithmetic"], *(str(line[engine]["differences"]) for engine in ("llama-cpp", "transformers"))]
            for line in report("crossval/near-ties")["lines"]]
    return table(["tern's cache", "differences beside llama.cpp", "beside transformers"], rows)


def near_ties(path: str, form: str = "") -> str:
    return reported("crossval/near-ties", path, form)


NAMES = {f.__name__: f for f in (
    reported, counts, count, sparse_table, device, roof_of_device, operations_table, crossval_date, caches_table,
    engines_table, cache_rows, largest_in_cache, near_ties_table, near_ties, percent)}
NAMES["crossed"] = lambda name, path, form="": shown(at(crossval(name), path), form)


def convert_table() -> str:
    """Largest differences of converted models beside transformers, as tests/convert_compare.py wrote them."""
    rows = [[name, small(case["difference"])] for name, case in report("convert")["cases"].items()]
    return table(["model", "largest difference"], rows)


NAMES["convert_table"] = convert_table


def scaling_table(name: str) -> str:
    """Tokens a second of a geometry by number of machines, as lab/scaling had tern plan say it."""
    found = json.loads((REPORTS.parent / "scaling.json").read_text(encoding="utf-8"))
    rows = [[str(row["nodes"]), *(f"{row[key]:.1f}" for key in ("ranks_slow", "ranks_fast")),
             f"{row['rank_gb']:.2f}", f"{row['replicas']:.0f}", f"{row['replicas_64']:.0f}"]
            for row in found["tables"][name]]
    return table(["machines", "ranks, 10 Gbit/s", "ranks, 100 Gbit/s", "GB of a rank", "replicas, one user each",
                              "replicas, 64 users each"], rows)


NAMES["scaling_table"] = scaling_table
