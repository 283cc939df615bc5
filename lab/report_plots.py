# SPDX-License-Identifier: Apache-2.0
"""The plots of the kernel report: a roofline per instruction set, bars per operation and shape.

Everything is derived from the results: operations, formats and instruction sets that somebody adds
to the table turn up here by themselves.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass, field

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

import results as bench  # noqa: E402

# Okabe and Ito's colours, which the colour-blind can tell apart; both backgrounds carry them.
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c", "#b8a600"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
LEVELS = {"l1": "first-level cache", "cache": "second-level cache", "memory": "memory"}
TEXT = "#010203"  # in SVG it becomes the page's own text colour

STYLE = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "tern",  # the same input gives the same file
    "axes.edgecolor": TEXT,
    "axes.labelcolor": TEXT,
    "text.color": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
WIDTH = 5.2  # inches: readable where a phone shows it
ROOFLINE = (7.2, 6.0)

# Families of formats by the beginnings of their names, in the order of the legend; a format without a family belongs to
# "other". Only few colours can be told apart, so names stand beside the points.
FAMILIES = {
    "ternary": r"i2_s|t5b?r16|tl\d|p?s?tq\d|iq\d_bn",
    "1 to 3 bits": r"[ip]?q[123]_|int2",
    "4 bits": r"i?q4_|int4|(mx|nv)fp4",
    "5 and 6 bits": r"q[56]_",
    "8 bits": r"q8_|int8",
    "16-bit floats": r"b?f16",
    "32-bit floats": r"f32",
}


@dataclass
class Plot:
    """A picture in both forms, with its description in words."""

    name: str
    title: str
    alt: str
    svg: str = field(repr=False, default="")
    png: bytes = field(repr=False, default=b"")


def in_order(values) -> list[str]:
    return list(dict.fromkeys(values))


def shade(colour: str, turn: int) -> str:
    """The colour itself; half as bright for the second turn of the palette, paler for the third."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    parts = [[p, p // 2, (p + 2 * 255) // 3][turn % 3] for p in parts]
    return "#" + "".join(f"{p:02x}" for p in parts)


def colours(names: list[str]) -> dict[str, str]:
    n = len(COLOURS)
    return {name: shade(COLOURS[i % n], i // n) for i, name in enumerate(names)}


def family_of(weights: str) -> str:
    return next((name for name, names in FAMILIES.items() if re.match(names, weights)), "other")


def entitle(figure, title: str, machine: str) -> None:
    """Writes the title and the place of the measurement above the axes, and a legend of one line."""
    axes = figure.axes[0]
    for text, above, style in ((title, 40, {"fontsize": 12, "weight": "bold"}), (machine, 26, {"fontsize": 9})):
        axes.annotate(text, (0.5, 1.0), xycoords="axes fraction", xytext=(0, above),
                      textcoords="offset points", ha="center", **style)


def finish(figure, name: str, title: str, alt: str, machine: str = "") -> Plot:
    entitle(figure, title, machine)
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, bbox_inches="tight",
                   metadata={"Date": None, "Creator": "tern"})
    raster = io.BytesIO()
    figure.savefig(raster, format="png", dpi=100, facecolor="white", bbox_inches="tight",
                   metadata={"Software": "tern"})
    pyplot.close(figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg"):].replace(TEXT, "currentColor")
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" role="img" %s>', svg, count=1)
    # Identifiers of several pictures in one page must differ.
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return Plot(name, title, alt, svg, raster.getvalue())


# ---- roofline --------------------------------------------------------------------------------------


@dataclass
class Roofs:
    """The limits of one instruction set: bytes a second of each level, multiply-adds of each unit."""

    read: dict[str, float]
    peak: dict[str, float]


def largest(found: list[bench.Benchmark], key: str, figure: str) -> dict[str, float]:
    """Per value of a label the best figure that was measured beside any benchmark."""
    best: dict[str, float] = {}
    for b in found:
        value = b.figure(figure)
        if value and key in b.label:
            best[b.label[key]] = max(best.get(b.label[key], 0.0), value)
    return best


def roofs_of(all_of: list[bench.Benchmark], isa: str) -> Roofs:
    single = [b for b in all_of if b.label.get("threads", "1") == "1"]
    mine = [b for b in single if b.label.get("isa") == isa]
    read = {k: v for k, v in largest(single, "level", "read_roof").items() if k != "l1"}
    return Roofs(read, largest(mine, "unit", "peak_roof"))


def points_of(all_of: list[bench.Benchmark], isa: str) -> list[bench.Benchmark]:
    """One thread, something multiplied."""
    return [
        b for b in all_of
        if b.label.get("isa") == isa and b.label.get("threads", "1") == "1"
        and b.figure("macs") and b.figure("bytes")
    ]


def draw_roofs(axes, roofs: Roofs, left: float, right: float) -> None:
    top = max(roofs.peak.values())
    for (level, read), style in zip(roofs.read.items(), ("-", "--", ":")):
        knee = min(right, top / read)
        axes.plot([left, knee], [left * read / 1e9, knee * read / 1e9], style, color="#8c8c8c",
                  linewidth=1.3, label=f"{LEVELS.get(level, level)}, {read / 1e9:.0f} GB/s")
    for (unit, peak), style in zip(roofs.peak.items(), ("-", "--", ":")):
        axes.plot([left, right], [peak / 1e9] * 2, style, color="#d55e00", linewidth=1.3,
                  label=f"{unit}, {peak / 1e9:.3g} G/s")


def spread_out(heights: list[float], least: float) -> list[float]:
    """Ascending heights, moved as little as needed to be `least` apart."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + least) if placed else height)
    excess = (placed[-1] - heights[-1]) / 2 if placed else 0.0  # half of it downwards
    return [height - excess for height in placed]


def name_points(axes, points: list[tuple[float, float, bench.Benchmark]], tints: dict[str, str],
                right: float) -> None:
    """Names of formats in a column at the right edge of their cluster, each with a line to its point."""
    points = sorted(points, key=lambda point: point[1])
    heights = spread_out([math.log10(y) for _, y, _ in points], 0.055)
    for (x, y, b), height in zip(points, heights):
        tint = tints[family_of(b.weights)]
        axes.annotate(b.weights, (x, y), (right, 10**height), fontsize=7, color=tint, va="center",
                      arrowprops={"arrowstyle": "-", "color": tint, "linewidth": 0.5, "shrinkB": 3})


def draw_points(axes, points: list[bench.Benchmark], shapes: dict[str, str], tints: dict[str, str]) -> None:
    """Points measured from the caches are filled and named, those from memory are open."""
    named: dict[str, list[tuple[float, float, bench.Benchmark]]] = {}
    for b in points:
        x, y = b.figure("macs") / b.figure("bytes"), b.figure("macs") / 1e9
        tint = tints[family_of(b.weights)]
        from_memory = b.label.get("level") == "memory"
        axes.plot(x, y, shapes[b.label["op"]], markersize=6, markeredgecolor=tint,
                  markerfacecolor="none" if from_memory else tint)
        if not from_memory and b.label["op"] in ("gemv", "gemm"):
            named.setdefault(b.label["op"], []).append((x, y, b))
    for found in named.values():
        name_points(axes, found, tints, 1.9 * max(x for x, *_ in found))


def draw_key(axes, shapes: dict[str, str], tints: dict[str, str], families: list[str]) -> None:
    for op, shape in shapes.items():
        axes.plot([], [], shape, color="#8c8c8c", label=op)
    axes.plot([], [], "o", color="#8c8c8c", label="filled: from the caches")
    axes.plot([], [], "o", markeredgecolor="#8c8c8c", markerfacecolor="none", label="open: from memory")
    for family in families:
        axes.plot([], [], "s", color=tints[family], label=family)


def roofline(all_of: list[bench.Benchmark], isa: str, machine: str) -> Plot | None:
    points, roofs = points_of(all_of, isa), roofs_of(all_of, isa)
    if not points or not roofs.peak:
        return None
    xs = [b.figure("macs") / b.figure("bytes") for b in points]
    left, right = min(xs) / 2, max(xs) * 5
    figure, axes = pyplot.subplots(figsize=ROOFLINE)
    draw_roofs(axes, roofs, left, right)
    shapes = dict(zip(in_order(b.label["op"] for b in points), MARKERS * 9))
    tints = colours([*FAMILIES, "other"])
    draw_points(axes, points, shapes, tints)
    draw_key(axes, shapes, tints, [f for f in tints if f in {family_of(b.weights) for b in points}])
    axes.set(xscale="log", yscale="log", xlim=(left, right),
             xlabel="multiply-accumulates for each byte of weights",
             ylabel="G multiply-accumulates a second")
    figure.legend(*axes.get_legend_handles_labels(), loc="upper center", ncols=4,
                  bbox_to_anchor=(0.5, 0.02))
    best = max(points, key=lambda b: b.figure("macs"))
    alt = (f"Roofline of {isa}: {len(points)} points. The fastest is {best.name} with "
           f"{best.figure('macs') / 1e9:.0f} G multiply-accumulates a second.")
    return finish(figure, f"roofline-{isa}", f"Roofline of {isa}, one thread", alt, machine)


# ---- bars ------------------------------------------------------------------------------------------


def group_of(b: bench.Benchmark) -> tuple[str, str, str]:
    """Operation, place and shape, threads: the bars of one picture. Cache shapes vary by format."""
    memory = b.label.get("level") == "memory"
    place = f"memory, {b.label['shape']}" if memory else "cache"
    return b.label["op"], place, b.label.get("threads", "1")


def draw_bars(axes, members: list[bench.Benchmark], formats: list[str], isas: list[str],
              tints: dict[str, str]) -> None:
    height = 0.8 / len(isas)
    at = {(b.weights, b.label["isa"]): b for b in members}
    for i, isa in enumerate(isas):
        for row, fmt in enumerate(formats):
            b = at.get((fmt, isa))
            if b is None:
                continue
            y = row - 0.4 + (i + 0.5) * height
            value = b.figure("macs") / 1e9
            axes.barh(y, value, height * 0.92, color=tints[isa])
            axes.text(value, y, f" {value:.3g}", va="center", fontsize=8)
    axes.set_yticks(range(len(formats)), formats)
    axes.set_xlabel("G weights x tokens a second")
    axes.invert_yaxis()
    axes.margins(x=0.12, y=0.01)


def bars(all_of: list[bench.Benchmark], tints: dict[str, str], machine: str) -> list[Plot]:
    """One picture for each operation on matrices and each place and shape."""
    groups: dict[tuple[str, str, str], list[bench.Benchmark]] = {}
    for b in all_of:
        if b.figure("weights") and b.figure("macs"):
            groups.setdefault(group_of(b), []).append(b)
    plots = []
    for (op, place, threads), members in sorted(groups.items()):
        formats = in_order(b.weights for b in members)
        isas = [isa for isa in tints if any(b.label["isa"] == isa for b in members)]
        figure, axes = pyplot.subplots(
            figsize=(WIDTH, 0.9 + 0.24 * len(formats) * max(len(isas), 1.4)))
        draw_bars(axes, members, formats, isas, tints)
        for isa in isas:
            axes.barh(0, 0, color=tints[isa], label=isa)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)
        together = "" if threads == "1" else f", {threads} threads"
        title = f"{op} from {place}{together}"
        best = max(members, key=lambda b: b.figure("macs"))
        alt = (f"Bars of {title}: {len(members)} rows. The fastest is {best.weights} on "
               f"{best.label['isa']} with {best.figure('macs') / 1e9:.3g} G a second.")
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        plots.append(finish(figure, f"bars-{name}", title, alt, machine))
    return plots


def draw_all(found: bench.Results) -> list[Plot]:
    with matplotlib.rc_context(STYLE):
        all_of = [b for b in found.benchmarks.values() if "isa" in b.label and "op" in b.label]
        isas = in_order(b.label["isa"] for b in all_of)
        listed = found.context.get("isas", "").split()
        isas.sort(key=lambda isa: listed.index(isa) if isa in listed else len(listed))
        machine = found.context.get("processor", "")
        lines = [roofline(all_of, isa, machine) for isa in reversed(isas)]
        return [p for p in lines if p] + bars(all_of, colours(list(reversed(isas))), machine)
