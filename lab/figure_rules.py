# SPDX-License-Identifier: Apache-2.0
"""Checks that the figures of a document agree with each other: every median is that of its samples, every interval that
of its runs, and every derived figure follows from the others (docs/receipts.md#benchmarks-and-comparisons)."""

from __future__ import annotations

import math
import statistics

import documents
import sealing
import stats
from documents import Place

MEDIAN = "the median of its rounds"
SPREAD = "(largest - smallest) / median of the rounds"
FIRST = "that of the first arrival"


def ratio(x: float, y: float) -> float:
    return x / y if y > 0 else 0.0


def median(values: list[float]) -> float:
    return statistics.median(values) if values else 0.0


def spread(values: list[float]) -> float:
    return sealing.spread(values) if median(values) > 0 else 0.0


# ---- one point of a benchmark ----


def check_samples(p: Place, key: str, spread_key: str, rounds: int, may_miss: bool = False) -> None:
    """The samples of a figure: as many as rounds (or none, if `may_miss`), with its median and spread."""
    values = p.at(f"rounds.{key}")
    if values is None:
        return  # not recorded
    if len(values) != rounds and not (may_miss and not values):
        p.find(f"rounds.{key}: {len(values)} values, must be {rounds}")
        return
    p.near(key, median(values), MEDIAN)
    if spread_key:
        p.near(spread_key, spread(values), SPREAD)


def check_point(doc: Place, p: Place) -> None:
    repeat = doc.number("benchmark.repeat")
    prompts = repeat if p.number("prompt_tokens") > 0 else 0
    decodes = repeat if p.number("generated_tokens") > 0 else 0
    check_samples(p, "prefill_tps", "prefill_spread_percent", prompts)
    check_samples(p, "first_token_ms", "", prompts)
    check_samples(p, "decode_tps", "decode_spread_percent", decodes)
    for key in ("p50_ms", "p95_ms"):
        check_samples(p, key, "", decodes)
    for key in ("read_gbs", "head_rows"):
        check_samples(p, key, "", decodes, may_miss=True)
    check_samples(p, "joules_per_token", "", decodes if "joules_per_token" in p.value else 0)
    if p.number("p50_ms") > p.number("p95_ms"):
        p.find("p50_ms: is more than p95_ms")
    gbs = p.number("decode_tps") * (p.number("bytes_per_token") + p.number("cache_bytes")) * 1e-9
    if doc.at("model_info.weight_bytes") is not None:
        p.near("bytes_per_token", doc.number("model_info.weight_bytes"), "model_info.weight_bytes")
    p.near("bandwidth_gbs", gbs, "bytes of a token * decode_tps")
    p.near("bandwidth_fraction", ratio(gbs, p.number("read_gbs")), "bandwidth_gbs / read_gbs")


# ---- the main point ----


def check_components(doc: Place, p: Place) -> None:
    size = p.number("bytes_per_token") + p.number("cache_bytes")
    parts = p.number("attention_bytes") + p.number("feed_forward_bytes") + p.number("head_bytes")
    p.near("bytes_per_token", parts, "attention, feed-forward and head")
    p.near("mb_per_token", 1e-6 * size, "bytes_per_token + cache_bytes")
    p.near("bytes_touched", size * p.number("generated_tokens"), "bytes of a token * tokens")
    if doc.at("model_info.file_bytes") is not None:
        coverage = ratio(size, doc.number("model_info.file_bytes"))
        p.near("coverage", coverage, "bytes of a token / model_info.file_bytes")


def check_limits(p: Place) -> None:
    values, peak = p.at("rounds.read_gbs"), p.number("peak_gmacs")
    if values is not None:
        p.near("read_low_gbs", min(values, default=0), "the smallest of its rounds")
        p.near("read_high_gbs", max(values, default=0), "the largest of its rounds")
    elif not p.number("read_low_gbs") <= p.number("read_gbs") <= p.number("read_high_gbs"):
        p.find(f"read_gbs: is {p.number('read_gbs'):g}, not between read_low_gbs and read_high_gbs")
    if "peak_gmacs" in p.value:  # there is a kernel for several tokens to measure it with
        for name in ("prefill", "decode"):
            p.near(f"{name}_peak_fraction", ratio(p.number(f"{name}_gweights"), peak), f"{name}_gweights / peak_gmacs")


def check_weights(doc: Place, p: Place) -> None:
    """Weights multiplied a second: all for a decoded token, of a prompt those of the head once."""
    formats = doc.at("model_info.weight_formats")
    if formats is None:
        return
    every, tokens = sum(formats.values()), p.number("prompt_tokens")
    head = doc.number("model_info.vocab_size") * doc.number("model_info.hidden_size")
    p.near("decode_gweights", p.number("decode_tps") * every * 1e-9, "weights * decode_tps")
    p.near("operations_per_byte", ratio(2 * every, p.number("bytes_per_token")), "2 * weights / bytes_per_token")
    weights = every - head + ratio(head, tokens)
    p.near("prefill_gweights", p.number("prefill_tps") * weights * 1e-9, "weights * prefill_tps")


def bytes_of_position(p: Place) -> float:
    """Bytes that decoding reads of the cache for a position that a token sees."""
    twice = 2 * (p.number("depth") or 1) + p.number("generated_tokens") + 1
    return 2 * p.number("cache_bytes") / twice


def check_main(doc: Place) -> Place:
    p = doc.inner("benchmark")
    check_point(doc, p)
    check_components(doc, p)
    check_limits(p)
    check_weights(doc, p)
    isa, sets = p.text("peak_isa"), doc.at("machine.instruction_sets")
    if sets is not None and isa and isa not in sets:
        p.find(f'peak_isa: "{isa}" is not one of machine.instruction_sets')
    context = doc.at("run.context")
    if p.number("generated_tokens") > 0 and context is not None:
        p.near("kv_bytes", bytes_of_position(p) * context, "cache_bytes of a position * run.context")
    if doc.at("run.threads") is not None:
        p.near("threads", doc.number("run.threads"), "run.threads")
    first = p.at("rounds.first_token_ms")
    if first:
        why = "load_ms and the first of rounds.first_token_ms"
        p.near("first_token_with_load_ms", p.number("load_ms") + first[0], why)
    return p


# ---- sweeps ----


def check_sweep(doc: Place, main: Place, key: str) -> None:
    position = bytes_of_position(main)
    for p in main.each(key):
        check_point(doc, p)
        found = bytes_of_position(p)
        if position > 0 and found > 0 and abs(found - position) > 1e-9 * position:
            p.find(f"cache_bytes: makes {found:g} bytes a position, the main point {position:g}")


def check_batches(main: Place) -> None:
    """Times of passes of several tokens, and their ratios to those of one token in the same rounds."""
    batches = main.each("batches")
    for p in batches:
        for what in ("all", "pick"):
            mine, ones = p.at(f"rounds.{what}_ms"), batches[0].at(f"rounds.{what}_ms")
            if mine is None or ones is None:
                continue
            if not mine or len(mine) != len(ones):
                p.find(f"rounds.{what}_ms: as many values as for passes of one token are needed")
                continue
            p.near(f"{what}_ms", median(mine), MEDIAN)
            ratios = [ratio(x, one) for x, one in zip(mine, ones)]
            p.near(f"{what}_ratio", median(ratios), "the median of its rounds over those of one token")
    if batches and batches[0].number("tokens") != 1:
        main.find("batches[0].tokens: is not 1")


def check_medians(main: Place, p: Place, keys: tuple[str, ...]) -> None:
    for key in keys:
        values = p.at(f"rounds.{key}") or []
        if len(values) != main.number("repeat"):
            p.find(f"rounds.{key}: {len(values)} values, must be {main.number('repeat')}")
        p.near(key, median(values), MEDIAN)


def check_sequences(main: Place) -> None:
    for p in main.each("sequences"):
        n = p.number("n")
        if n < 1:
            p.find("n: is not at least 1")
            continue
        check_medians(main, p, ("tps", "p50_ms", "p95_ms"))
        p.near("each_tps", p.number("tps") / n, "tps / n")
        size = main.number("bytes_per_token") / n + main.number("cache_bytes")
        p.near("bytes_per_token", size, "benchmark.bytes_per_token / n + cache_bytes")
        if p.number("p50_ms") > p.number("p95_ms"):
            p.find("p50_ms: is more than p95_ms")


def check_arrivals(main: Place) -> None:
    """Both belong to the same sequences, and to one prompt."""
    arrivals, sequences = main.each("arrivals"), main.each("sequences")
    keys = ("before_p50_ms", "before_p95_ms", "during_p50_ms", "during_p95_ms", "first_token_ms")
    if main.at("arrivals") is not None and len(arrivals) != len(sequences):
        main.find("arrivals: as many values as of benchmark.sequences are needed")
    for p, sequence in zip(arrivals, sequences):
        check_medians(main, p, keys)
        p.near("n", sequence.number("n"), "n of benchmark.sequences")
        for key in ("prompt_tokens", "gap_ms"):
            p.near(key, arrivals[0].number(key), FIRST)


def check_stage(p: Place, whole: float) -> None:
    work = p.number("work_ms")
    for kind in ("work", "wait"):
        p.near(f"{kind}_ms", median(p.at(f"rounds.{kind}_ms") or []), MEDIAN)
        p.near(f"{kind}_fraction", ratio(p.number(f"{kind}_ms"), whole), f"{kind}_ms / whole_ms")
    p.near("gbs", ratio(1e-6 * p.number("bytes"), work), "bytes / work_ms")


def check_stages(doc: Place, p: Place) -> None:
    """In every round, work, wait and the time outside of the stages make up the whole."""
    if p.value is None:
        return
    stages = p.each("stages")
    for stage in stages:
        check_stage(stage, p.number("whole_ms"))
    wholes, outside = (p.at(f"rounds.{key}_ms") or [] for key in ("whole", "outside"))

    def sums(kind):
        rounds = [stage.at(f"rounds.{kind}_ms") or [] for stage in stages]
        return [math.fsum(values[i] for values in rounds if i < len(values)) for i in range(len(wholes))]

    work, wait = sums("work"), sums("wait")
    for i, whole in enumerate(wholes):
        parts = work[i] + wait[i] + (outside[i] if i < len(outside) else 0)
        if abs(parts - whole) > 1e-6 * whole:
            p.find(f"rounds.whole_ms[{i}]: is {whole:g}, its parts make {parts:g}")
    p.near("whole_ms", median(wholes), MEDIAN)
    p.near("outside_ms", median(outside), MEDIAN)
    p.near("work_ms", median(work), "the median of the stages' rounds")
    p.near("wait_ms", median(wait), "the median of the stages' rounds")
    p.near("threads", doc.number("run.threads"), "run.threads")


def check_zeros(p: Place) -> None:
    for key in ("values", "zeros") if p.value is not None else ():
        total = sum(layer[key] for layer in p.at("layers"))
        p.inner("all").near(key, total, "the sum of the layers")


def benchmark(doc: Place) -> None:
    doc.positive("benchmark.repeat")
    main = check_main(doc)
    check_sweep(doc, main, "depths")
    check_sweep(doc, main, "thread_counts")
    check_batches(main)
    check_sequences(main)
    check_arrivals(main)
    for kind in ("prefill", "decode"):
        check_stages(doc, main.inner(f"stages.{kind}"))
    check_zeros(main.inner("sparsity"))


# ---- comparisons ----


def check_figures(side: Place) -> None:
    """Figures have the same names everywhere, and their medians and spreads. The names may have dots."""
    runs, medians, spreads = (side.at(part) or {} for part in ("runs", "medians", "spread_percent"))
    for name, values in runs.items():
        if len(values) < 2:
            side.find(f"runs.{name}: an interval needs two values")
        for part, there, expected, why in (
                ("medians", medians, median(values), "the median of its runs"),
                ("spread_percent", spreads, spread(values), "(largest - smallest) / median of the runs")):  # fmt: skip
            if name not in there:
                side.find(f"{part}.{name}: is missing")
            side.near_value(there.get(name), f"{part}.{name}", expected, why)
    if len(medians) != len(runs) or len(spreads) != len(runs):
        side.found.append(f"{side.shown[:-1]}: medians and spread_percent are not those of runs")


def check_side(doc: Place, which: str) -> None:
    """A side that names tern's kernels is real; for other programs nobody knows."""
    side = doc.inner(which)
    kernels = side.at("kernels") or []
    path, right = side.at("compute_path"), "real" if kernels else "other"
    if any("mock" in name.lower() for name in [side.text("name"), side.text("command"), *kernels]):
        doc.find(f"{which}: names a mock")
    elif path not in (None, right):
        side.find(f'compute_path: is "{path}", must be "{right}"')
    check_figures(side)


def pairs(a: list[float], b: list[float]):
    """Ratios of runs that went in turns: value i of both sides was measured one right after the other."""
    of_pairs = median([y / x for x, y in zip(a, b)])
    return stats.compare_pairs(a, b), of_pairs, "the geometric mean of b / a", "Student", "the median of b / a"


def independent(a: list[float], b: list[float]):
    """Ratios of sides that were measured one after the other: nothing belongs together, and one may have more."""
    why = "the geometric mean of b over that of a"
    return stats.compare(a, b), median(b) / median(a), why, "Welch", "the median of b over that of a"


def check_ratio(place: Place, name: str, level: float, method: str, a: list[float], b: list[float]) -> None:
    sound = min([*a, *b], default=0) > 0 and len(a) > 1 and len(b) > 1
    if method == "pairs" and not (sound and len(a) == len(b)):
        place.find(f"{name}: must come from as many runs of both sides, all above 0")
    elif not sound:
        place.find(f"{name}: must come from two or more runs of each side, all above 0")
    else:
        estimate, middle, why, interval, of_middle = (pairs if method == "pairs" else independent)(a, b)
        for key, value, words in (("ratio", estimate.ratio, why), ("median", middle, of_middle),
                                  ("low", estimate.bound(-1, level), f"{interval}'s interval"),
                                  ("high", estimate.bound(+1, level), f"{interval}'s interval")):  # fmt: skip
            place.near_value(place.value[name][key], f"{name}.{key}", value, words)


def comparison(doc: Place) -> None:
    level = doc.number("level")
    if not 0.5 <= level <= 0.999:
        doc.find(f"level: is {level:g}, must be 0.5 to 0.999")
        return
    for which in "ab":
        check_side(doc, which)
    a, b, ratios = doc.at("a.runs") or {}, doc.at("b.runs") or {}, doc.inner("ratios")
    common = a.keys() & b.keys()
    if not common or ratios.value.keys() != common:
        doc.find(f"ratios: {len(ratios.value)}, but a and b have {len(common)} figures in common")
    for name in ratios.value:
        check_ratio(ratios, name, level, doc.text("method"), a.get(name, []), b.get(name, []))


# ---- perplexities ----


def check_windows(doc: Place, p: Place) -> None:
    """Windows fit into the text, and each has as many scored tokens as its length and stride make."""
    ctx, stride, windows, tokens = (p.number(key) for key in ("ctx", "stride", "windows", "text_tokens"))
    if not 1 <= stride <= ctx:
        p.find(f"stride: is {stride}, must be 1 to {ctx}")
        return
    p.equal("windows", len(p.at("window_nll")), "there are as many means")
    p.equal("scored_tokens", windows * min(stride, ctx - 1 - ctx // 2), "scored tokens of the windows")
    if windows < 1 or tokens < ctx or windows - 1 > (tokens - ctx) // stride:
        p.find(f"windows: {windows} windows are not in {tokens} tokens")


def perplexity(doc: Place) -> None:
    """Everything follows from the windows' means, except the error of a token, which only the tokens give."""
    p = doc.inner("perplexity")
    doc.positive("run.threads")
    p.positive("rss_mib")
    check_windows(doc, p)
    nll, error, means = p.number("nll"), p.number("nll_error"), p.at("window_nll")
    p.near("nll", math.fsum(means) / len(means) if means else 0, "the mean of perplexity.window_nll")
    p.near("value", math.exp(nll), "e^nll")
    p.near("error", math.exp(nll) * error, "value * nll_error")
    p.near("low", math.exp(nll - 1.96 * error), "e^(nll - 1.96 nll_error)")
    p.near("high", math.exp(nll + 1.96 * error), "e^(nll + 1.96 nll_error)")


# ---- all of it ----


def check(document: dict, key: str | None = None, key_name: str = "") -> tuple[str | None, list[str]]:
    """Returns the kind of a document (None for one without figures) and every rule that it breaks. key: of the
    signature."""
    doc = Place(document, "", [])
    kinds = {documents.schema(kind)["$id"]: kind for kind in documents.KINDS}
    kind = kinds.get(doc.text("$schema"))
    if kind is None:
        doc.find(f'$schema: is "{doc.text("$schema")}", which is not one of {", ".join(kinds)}')
        return None, doc.found
    if documents.check_fields(doc, kind):
        documents.check_header(doc)
        documents.check_origin(doc)
        if kind != "comparison":
            documents.check_kernels(doc)
            documents.check_model(doc)
            documents.check_nodes(doc)
        {"benchmark": benchmark, "comparison": comparison, "perplexity": perplexity}[kind](doc)
    documents.check_digest(doc)
    documents.check_signature(doc, key, key_name)
    return kind, doc.found
