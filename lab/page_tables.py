# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/performance.md and docs/precision.md, from the documents in docs/receipts (lab/pages).

A folder of docs/receipts is a set: what one machine measured. A document's contents decide which table it belongs to,
so a set may have fewer documents than another.
"""

from __future__ import annotations

import functools
import json
import math
import re
from pathlib import Path

import known_numbers
import results
import stats

ROOT = Path(__file__).resolve().parents[1]
RECEIPTS = ROOT / "docs" / "receipts"
REPORTS = ROOT / "docs" / "report"
# The report of a machine counts the kernels of this instruction set; None stands for all that were selected.
AVX2_REPORT, AVX512_REPORT, AMX_REPORT = "amd-epyc-zen3-avx2", "amd-epyc-zen5-avx512", "intel-xeon-amx"
KERNEL_REPORTS = {AVX2_REPORT: "avx2", AVX512_REPORT: None, AMX_REPORT: None}

PRODUCTS = ("qkv", "out", "gate_up", "down")
STAGES = {  # line of the table: stages, and which time
    "products of the layers": (PRODUCTS, "work_ms"),
    "scan of the head, exact rows": (("head", "scan", "rows"), "work_ms"),
    "attention": (("attention",), "work_ms"),
    "norms, activation, quantization, rope, embedding":
        (("embed", "norm", "rope", "attended", "activation"), "work_ms"),
    "choice of the token": (("alone",), "work_ms"),
}


class PageError(Exception):
    """No document has the figure that is asked for."""


def load(name: str) -> dict:
    """A document by its set and name, "amd-epyc-zen3-avx2/bitnet-2b-2threads"."""
    path = RECEIPTS / f"{name}.json"
    try:
        return read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise PageError(f"{path}: {error.strerror}") from None


@functools.cache
def read(path: Path, _changed: int) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def at(document: dict, path: str):
    """Returns the value at "benchmark.depths[3].decode_tps"; for documents of one kind the common beginning is left
    out."""
    value = document
    for key in re.findall(r"[^.\[\]]+", path):
        try:
            value = value[int(key)] if isinstance(value, list) else value[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise PageError(f"{path}: no such field") from None
    return value


def shown(value, form: str) -> str:
    """A value by a format, behind which a unit may stand: ".1f GB/s"."""
    spec, blank, unit = form.partition(" ")
    return format(value, spec) + blank + unit


PRECISION = "precision"  # not a machine's set, but the cost of fewer bits: precision_table


def sets() -> list[str]:
    return sorted(path.name for path in RECEIPTS.iterdir() if path.is_dir() and path.name != PRECISION)


def documents(name: str, kind: str) -> dict[str, dict]:
    """The documents of one kind in a set, by name."""
    found = {p.stem: load(f"{name}/{p.stem}") for p in sorted((RECEIPTS / name).glob("*.json"))}
    return {k: d for k, d in found.items() if d["$schema"].split(":")[2] == kind}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("| --- ", "|---").replace(
        "|--- |", "|---|")


def link(name: str, document: str) -> str:
    return f"[{document}.json](receipts/{name}/{document}.json)"


def percent(x: float, digits: int = 0) -> str:
    return f"{100 * x:.{digits}f} %"


# ---- what was measured -----------------------------------------------------------------------------


def is_main(d: dict) -> bool:
    b = d["benchmark"]
    swept = any(key in b for key in ("depths", "thread_counts", "batches", "sequences", "stages", "fetch", "touch"))
    return bool(b["prefill_tps"] and b["decode_tps"]) and not swept and not d["run"]["exact_head"]


def known(values) -> list:
    return list(dict.fromkeys(v for v in values if v is not None))


def facts(name: str) -> str:
    """Processor, kernels, determinism and version, each in a line."""
    found = documents(name, "benchmark")
    machines = known(json.dumps(d["machine"]) for d in found.values() if d["machine"])
    lines = []
    for text in machines:
        m = json.loads(text)
        sets_of = ", ".join(m["instruction_sets"])
        lines.append(f"- *Processor*: {m['cpu']}, {m['cores']} cores, {m['os']}; instruction sets {sets_of}.")
    for note in known(d["origin"]["note"] for d in found.values() if d["origin"]["note"]):
        lines.append(f"- *Processor*: not in the documents, which are imported; they quote: {note}")
    devices = known(d["run"].get("device") for d in found.values())
    if devices:
        lines.append(f"- *Device*: {', '.join(devices)}, on which all passes ran ([CUDA](cuda.md)).")
    isas = known("cuda" if d["run"].get("device") else d["run"]["isa"] for d in found.values())
    rows = known(k for d in found.values() for k in d["kernels"] if re.search(r"_gem[vm]_", k))
    lines.append(f"- *Kernels*: {', '.join(isas)}; products by {', '.join(f'`{row}`' for row in rows)}. Each"
                 " document lists all that ran; compute path: "
                 f"{', '.join(known(d['compute_path'] for d in found.values())) or 'not recorded'}.")
    flags = known(d["deterministic"] for d in found.values())
    asked = {True: "asked for", False: "not asked for by a flag"}
    lines.append(f"- *Determinism*: {' and '.join(asked[f] for f in flags)}; tokens are the same bits in any case"
                 " ([determinism](determinism.md)), times are not.")
    versions = known(f"tern {d['versions']['tern']}, commit {d['versions']['commit']}, "
                     f"{d['versions']['compiler']}" for d in found.values() if d["versions"])
    if versions:
        lines.append(f"- *Version*: {'; '.join(versions)}.")
    return "\n".join(lines)


def threads_in(d: dict) -> str:
    return "none" if d["run"].get("device") else str(d["benchmark"]["threads"])


def bandwidth_of(b: dict) -> list[str]:
    """Shows GB/s and its share of the memory's; the memory of a device is not measured."""
    if not b["read_gbs"]:
        return [f"{b['bandwidth_gbs']:.1f}", "–"]
    return [f"{b['bandwidth_gbs']:.1f} of {b['read_gbs']:.1f}", percent(b["bandwidth_fraction"])]


def after_its_prompt(b: dict) -> bool:
    """Says whether decoding began where the prompt ended, as a reader of "decode" expects."""
    return b["depth"] == b["prompt_tokens"]


def main_documents(name: str) -> dict[str, dict]:
    """One document for a model and a number of threads: where decoding was measured after the prompt if
    there is one, so that a table has one depth. Documents with stages measure the whole beside them."""
    chosen: dict[tuple, tuple[str, dict]] = {}
    for document, d in documents(name, "benchmark").items():
        b = d["benchmark"]
        with_stages = "stages" in b and not d["run"]["exact_head"]
        if not (is_main(d) or with_stages) or b["prompt_tokens"] < 64 or not b["prefill_tps"]:
            continue
        key = (d["model_info"]["model_path"], threads_in(d))
        if key not in chosen or after_its_prompt(b) and not after_its_prompt(chosen[key][1]["benchmark"]):
            chosen[key] = (document, d)
    return dict(chosen.values())


def models_table(name: str) -> str:
    rows = []
    for document, d in main_documents(name).items():
        b = d["benchmark"]
        rows.append([
            d["model_info"]["model_path"].removesuffix(".gguf"), threads_in(d), str(b["depth"]),
            f"{b['prefill_tps']:.1f} (spread {b['prefill_spread_percent']:.0f} %)",
            f"{b['decode_tps']:.1f} (spread {b['decode_spread_percent']:.0f} %)",
            f"{b['p50_ms']:.1f} / {b['p95_ms']:.1f}", f"{1e-6 * b['bytes_per_token']:.0f}",
            *bandwidth_of(b), link(name, document)])
    return table(["model", "threads", "decoded after", "prefill, tokens/s", "decode, tokens/s", "ms a token, p50 / p95",
                  "MB a token", "GB/s", "of what the memory gives", "receipt"], rows)


def short_table(name: str) -> str:
    """Prompts of a few tokens: the time of the first token."""
    rows = []
    for document, d in documents(name, "benchmark").items():
        b = d["benchmark"]
        if is_main(d) and b["prompt_tokens"] < 64:
            rows.append([d["model_info"]["model_path"].removesuffix(".gguf"), str(b["threads"]),
                         str(b["prompt_tokens"]), f"{b['first_token_ms']:.0f}", f"{b['rss_mib']:.0f}",
                         link(name, document)])
    head = ["model", "threads", "tokens of prompt", "first token, ms", "memory, MiB", "receipt"]
    return "First tokens:\n\n" + table(head, rows) if rows else ""


def sweeps_table(name: str) -> str:
    rows = []
    for document, d in documents(name, "benchmark").items():
        b = d["benchmark"]
        what = []
        if "depths" in b:
            places = ", ".join(f"{p['depth']}: {p['decode_tps']:.1f}" for p in b["depths"])
            what.append(f"tokens/s after this many tokens {places}")
        if "thread_counts" in b:
            what.append("by threads " + ", ".join(f"{p['threads']}: {p['decode_tps']:.1f}"
                                                  for p in b["thread_counts"]))
        if "batches" in b:
            passes = ", ".join(f"{p['tokens']}: {p['pick_ratio']:.2f}" for p in b["batches"][1:])
            what.append(f"time of passes of several tokens over that of one token {passes}")
        if "sequences" in b:
            together = ", ".join(f"{s['n']}: {s['tps']:.1f}" for s in b["sequences"])
            what.append(f"by sequences together {together}")
        if "arrivals" in b:
            what.append("; ".join(
                f"{a['prompt_tokens']} tokens that arrive at {a['n']} sequences, {a['gap_ms']} ms aimed at, bring the "
                f"95th percentile between tokens from {a['before_p95_ms']:.0f} to {a['during_p95_ms']:.0f} ms"
                for a in b["arrivals"]))
        if "touch" in b:
            what.append(f"{1e-6 * b['touch']['bytes_per_token']:.0f} MB more touched for every token")
        if d["run"]["exact_head"] or "exact-head" in document:
            what.append("the whole head is read for every token (`--exact-head`)")
        if what:
            kv = d["run"]["kv"] or ("q8_0" if "q8_0" in document else "f16")
            rows.append([d["model_info"]["model_path"].removesuffix(".gguf"), kv, f"{b['decode_tps']:.1f}",
                         "; ".join(what), link(name, document)])
    head = ["model", "cache", "decode, tokens/s", "and", "receipt"]
    return f"Sweeps:\n\n{table(head, rows)}" if rows else ""


def stage_shares(kind: dict) -> list[float]:
    times = {s["stage"]: s for s in kind["stages"]}
    sums = [math.fsum(times[stage][key] for stage in stages if stage in times) for stages, key in STAGES.values()]
    return [x / kind["whole_ms"] for x in (*sums, kind["wait_ms"])]


def stages_table(name: str) -> str:
    columns = []
    for document, d in documents(name, "benchmark").items():
        for kind in ("decode", "prefill"):
            found = d["benchmark"].get("stages", {}).get(kind)
            if found:
                title = {"decode": "decoding", "prefill": "prompt"}[kind]
                threads = "1 thread" if found["threads"] == 1 else f"{found['threads']} threads"
                columns.append((f"{title}, {threads}", stage_shares(found), document))
    columns.sort(key=lambda column: column[0].startswith("prompt"))
    rows = [[what, *(percent(shares[i], 1) for _, shares, _ in columns)]
            for i, what in enumerate([*STAGES, "waits"])]
    links = ", ".join(dict.fromkeys(link(name, document) for *_, document in columns))
    head = ["", *(title for title, *_ in columns)]
    intro = (f"Shares of the time of a token (`--stages`), medians of the rounds, from {links}; what the stages"
             " are stands [below](#where-the-time-goes):")
    return f"{intro}\n\n{table(head, rows)}" if columns else ""


def threads_of(side: dict) -> str:
    found = re.search(r"--threads[ =](\d+)", side["command"])
    return str(side["threads"] or (found[1] if found else "all"))


def prompt_of(side: dict) -> str:
    found = re.search(r"-p (\d+)", side["command"])
    return found[1] if found else ""


def ratio(d: dict, figure: str) -> str:
    found = d["ratios"].get(figure)
    return f"{found['ratio']:.2f} [{found['low']:.2f}, {found['high']:.2f}]" if found else ""


def comparisons_table(name: str) -> str:
    rows, versions = [], []
    for document, d in documents(name, "comparison").items():
        if not document.startswith("comparison-"):
            continue
        beside = re.sub(r"-\d+(threads?|tokens)$", "", document.removeprefix("comparison-"))
        rows.append([beside, threads_of(d["b"]), prompt_of(d["b"]), ratio(d, "decode_tps"),
                     ratio(d, "prefill_tps"), link(name, document)])
        versions.append(f"- {beside}: {d['a']['version']}")
    head = ["beside", "threads", "tokens of prompt", "ratio of decoding", "ratio of prefill", "receipt"]
    intro = ("Beside other programs and builds, runs in turns; ratios above 1 mean that tern is faster, with"
             " their 95 % interval:")
    return "\n\n".join([intro, table(head, rows), "\n".join(dict.fromkeys(versions))]) if rows else ""


TABLES = (facts, models_table, short_table, sweeps_table, stages_table, comparisons_table)


def machine_sections() -> str:
    """A section for every machine with documents."""
    return "\n\n".join(f"### On {name}\n" + "\n\n".join(filter(None, (table(name) for table in TABLES))) for name in sets())


# ---- precision -------------------------------------------------------------------------------------

FORMATS = {"f16": "f16", "q8_0": "int8: q8_0", "int4-32": "int4, groups of 32", "int4-64": "int4, groups of 64",
           "int4-128": "int4, groups of 128", "int4-row": "int4, whole rows", "q4_k": "q4_k", "q5_k": "q5_k",
           "q6_k": "q6_k", "iq2_s": "iq2_s"}
WEIGHED, ROUNDED = "-imatrix", "-act-"
ACTIVATIONS = {"fp32": "fp32", "fp16": "fp16", "bf16": "bf16", "fp8": "fp8, e4m3", "fp8-e5m2": "fp8, e5m2",
               "int8": "int8, a scale for 32 columns"}


def precision_documents(model: str, what: str) -> dict[str, dict]:
    """The documents of a model by format: "int4-64", "int4-64-imatrix"."""
    found = documents(PRECISION, {"perplexity": "perplexity", "speed": "benchmark"}[what])
    return {name[len(model) + 1 : -len(what) - 1]: d for name, d in found.items() if name.startswith(f"{model}-")}


def paired(d: dict, base: dict) -> str:
    """Returns how much larger a perplexity is than another of the same windows, with Student's 95 % interval."""
    pairs = list(zip(d["perplexity"]["window_nll"], base["perplexity"]["window_nll"], strict=True))
    differences = [a - b for a, b in pairs]
    mean = math.fsum(differences) / len(pairs)
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in differences) / (len(pairs) * (len(pairs) - 1)))
    half = stats.t_quantile(0.975, len(pairs) - 1) * spread
    return f"{math.exp(mean):.3f} [{math.exp(mean - half):.3f}, {math.exp(mean + half):.3f}]"


def of_base(d: dict, base: dict) -> str:
    if d["perplexity"]["text_sha256"] != base["perplexity"]["text_sha256"]:
        raise PageError(f"{d['model_info']['model_path']}: measured with another text than what it is compared with")
    return "1" if d is base else paired(d, base)


def precision_table(model: str) -> str:
    """A line a format, with and without importance; formats that FORMATS does not name come last."""
    found = precision_documents(model, "perplexity")
    order = [f + w for f in FORMATS for w in ("", WEIGHED)]
    rows = []
    for name in sorted((n for n in found if ROUNDED not in n), key=lambda n: (order.index(n) if n in order else len(order), n)):
        plain = name.removesuffix(WEIGHED)
        label = FORMATS.get(plain, plain) + (", by importance" if name != plain else "")
        p = found[name]["perplexity"]
        rows.append([label, f"{p['value']:.3f}", of_base(found[name], found["f16"]),
                     f"{found[name]['model_info']['file_bytes'] / 1048576:.1f}",
                     f"[perplexity](receipts/{PRECISION}/{model}-{name}-perplexity.json)"])
    return table(["matrices", "perplexity", "over that of f16", "files, MiB", "receipt"], rows)


def activation_table(model: str, weights: str, own: str) -> str:
    """A line a precision of activations, for one format of weights, whose own precision is `own`."""
    found = precision_documents(model, "perplexity")
    rows = []
    for precision, label in ACTIVATIONS.items():
        name = weights if precision == own else weights + ROUNDED + precision
        d, base = found[name], found[weights]
        if precision != own and d["run"].get("activations") != precision:
            raise PageError(f"{model}-{name}: measured with other activations than {precision}")
        rows.append([label + (" (as read)" if precision == own else ""), f"{d['perplexity']['value']:.3f}",
                     of_base(d, base), f"[perplexity](receipts/{PRECISION}/{model}-{name}-perplexity.json)"])
    return table(["activations", "perplexity", f"over that of {ACTIVATIONS[own].partition(',')[0]}", "receipt"], rows)


def memory_table(model: str) -> str:
    """Peak memory and speed; the same for matrices with and without importance."""
    found = precision_documents(model, "speed")
    rows = []
    for name in (f for f in [*FORMATS, *(f + WEIGHED for f in FORMATS)] if f in found):
        b, base = found[name]["benchmark"], found["f16"]["benchmark"]
        rows.append([FORMATS[name.removesuffix(WEIGHED)], f"{b['rss_mib']:.0f}", percent(b["rss_mib"] / base["rss_mib"]),
                     f"{b['prefill_tps']:.0f}", f"{b['decode_tps']:.1f}", link(PRECISION, f"{model}-{name}-speed")])
    head = ["matrices", "peak memory, MiB", "of f16's", "prefill, tokens/s", "decode, tokens/s", "receipt"]
    return table(head, rows)


def precision_facts(model: str) -> str:
    d = precision_documents(model, "perplexity")["f16"]
    p = d["perplexity"]
    return (f"{p['windows']} windows of {p['ctx']} tokens, {p['scored_tokens']} of them scored; the standard error of the "
            f"text is {p['error']:.2f} for f16, the same tokens for all")


# ---- kernels alone ---------------------------------------------------------------------------------


@functools.cache
def benchmarks(report: str) -> results.Results:
    """Returns the part of a machine's result that docs/report keeps: only what pages read (lab/report --filter)."""
    return results.load(str(REPORTS / f"{report}.json"))


def kernel_rows(report: str) -> list[results.Benchmark]:
    """Benchmarks of a report's rows, one thread."""
    isa = KERNEL_REPORTS[report]
    return [b for b in benchmarks(report).benchmarks.values()
            if b.label.get("threads", "1") == "1" and isa in (None, b.label.get("isa"))]


def kernel(op: str, weights: str, level: str, shape: str | None = None,
           report: str = AVX2_REPORT) -> results.Benchmark | None:
    for b in kernel_rows(report):
        label = b.label
        if (label.get("op"), b.weights, label.get("level")) == (op, weights, level) \
                and shape in (None, label.get("shape")):
            return b
    return None


def scalar_factor(weights: str, isa: str, field: str, form: str = ".1f", report: str = AVX2_REPORT) -> str:
    """Returns the figures of lab/known_numbers.py for a format on an instruction set: speed over scalar, bandwidth,
    intensity."""
    line = known_numbers.line(benchmarks(report), weights, isa)
    found = getattr(line, field) if line else None
    if found is None:
        raise PageError(f"{weights} by {isa}: no {field} in {report}")
    return shown(found, form)


def benchmarks_of(report: str = AVX2_REPORT) -> int:
    """Returns how many benchmarks were measured; the file may have only some of them."""
    found = benchmarks(report)
    return found.context.get("measured", len(found.benchmarks))


def kernels_table(report: str = AVX2_REPORT) -> str:
    rows = []
    formats = dict.fromkeys(b.weights for b in kernel_rows(report) if b.label.get("op") == "gemv")
    for weights in formats:
        cache = kernel("gemv", weights, "cache", report=report)
        memory = kernel("gemv", weights, "memory", "6912x2560", report)
        gemm = kernel("gemm", weights, "cache", report=report)
        if cache and memory and gemm:
            peak = gemm.figure("peak_percent")
            rows.append([weights, f"{cache.figure('macs') / 1e9:.0f}", f"{memory.figure('macs') / 1e9:.0f}",
                         f"{memory.figure('read_percent'):.0f} %", f"{gemm.figure('macs') / 1e9:.0f}",
                         f"{peak:.0f} %" if peak else "-"])
    return table(["weights", "gemv, from the cache", "gemv, from memory (6912 x 2560)", "of the bus",
                  "gemm of 128 tokens, from the cache", "of the peak"], rows)


def tiles_table(report: str = AMX_REPORT) -> str:
    """Products of many tokens by tiles, beside those of AVX-512 in the same report."""
    rows = []
    found = [b for b in kernel_rows(report) if b.label.get("op") == "gemm"]
    for weights in dict.fromkeys(b.weights for b in found):
        by_isa = {b.label["isa"]: b for b in found if b.weights == weights}
        tiles = by_isa.pop("amx", None)
        if tiles and by_isa:
            vectors = next(iter(by_isa.values()))
            speeds = [b.figure("macs") / 1e9 for b in (tiles, vectors)]
            rows.append([weights, f"{speeds[0]:,.0f}", f"{speeds[1]:.0f}", f"{speeds[0] / speeds[1]:.1f}"])
    return table(["weights", "AMX", "AVX-512 VNNI, the same processor", "ratio"], rows)
