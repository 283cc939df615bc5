# SPDX-License-Identifier: Apache-2.0
"""Figures of pages as expressions over stored documents; lab/pages replaces each expression by its value."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "bench")]
import page_counts  # noqa: E402
import page_tables  # noqa: E402
from page_tables import PageError  # noqa: E402

DOCS = ROOT / "docs"
SPAN = re.compile(r"<!-- = (.+?) -->(.*?)<!-- \. -->", re.S)
MARK = re.compile(r"<!-- (?:= .+?|\.) -->")


def figure(document: str, path: str, form: str = "") -> str:
    return page_tables.shown(page_tables.at(page_tables.load(document), path), form)


def per(document: str, path: str, other: str, form: str = ".2f") -> str:
    """One field over another of the same document; `other` may be a number."""
    found = page_tables.load(document)
    below = page_tables.at(found, other) if isinstance(other, str) else other
    return page_tables.shown(page_tables.at(found, path) / below, form)


def interval(document: str, path: str, form: str = ".2f") -> str:
    """A ratio of a comparison with its bounds: 1.66 [1.61, 1.71]."""
    found = page_tables.at(page_tables.load(document), path)
    return f"{found['ratio']:{form}} [{found['low']:{form}}, {found['high']:{form}}]"


def macs(op: str, weights: str, level: str, shape: str | None = None) -> str:
    """G multiply-accumulates a second of a kernel of the report."""
    found = page_tables.kernel(op, weights, level, shape)
    if found is None:
        raise PageError(f"{op} {weights} {level}: no such benchmark")
    return f"{found.figure('macs') / 1e9:.0f}"


def roof(weights: str, report: str = page_tables.AVX2_REPORT) -> str:
    """Returns the multiply-accumulates a second, in G, that a format's gemm does in registers."""
    return f"{page_tables.kernel('gemm', weights, 'cache', report=report).figure('peak_roof') / 1e9:.0f}"


TABLES = ("kernels_table", "tiles_table", "precision_facts", "precision_table", "activation_table", "memory_table",
          "scalar_factor", "benchmarks_of", "machine_sections")
NAMES = {"figure": figure, "per": per, "interval": interval, "macs": macs, "roof": roof}
NAMES |= {name: getattr(page_tables, name) for name in TABLES} | page_counts.NAMES


def value(expression: str) -> str:
    try:
        return str(eval(expression, {"__builtins__": {}}, NAMES))  # noqa: S307 - our own pages
    except (SyntaxError, NameError, TypeError, AttributeError) as error:
        raise PageError(f"{expression}: {error}") from None


def spans(text: str) -> list[tuple[int, int, str]]:
    """Returns (begin, end, expression) of the text between each pair of marks. A mark without the other is an error."""
    found = [(m.start(2), m.end(2), m[1]) for m in SPAN.finditer(text)]
    left = MARK.search(SPAN.sub("", text))
    if left is not None:
        raise PageError(f"{left[0]}: the mark has no end")
    return found


def marked(text: str, evaluate=None) -> str:
    """Returns the page with the text between marks made again. A table stands on lines of its own."""
    evaluate = evaluate or functools.cache(value)
    spans(text)

    def again(found: re.Match) -> str:
        made = evaluate(found[1])
        if found[2].startswith("\n"):
            made = f"\n{made}\n"
        return f"<!-- = {found[1]} -->{made}<!-- . -->"
    return SPAN.sub(again, text)


def pages() -> list[Path]:
    """Every page with figures that lab/pages makes."""
    found = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted(DOCS.glob("*.md"))
    found += sorted(p for p in ROOT.glob("*/*/README.md") if not re.match(r"build|out|\.", str(p.relative_to(ROOT))))
    return [path for path in found if SPAN.search(path.read_text(encoding="utf-8"))]


def made(path: Path) -> str:
    """Returns the page as it should be."""
    try:
        return marked(path.read_text(encoding="utf-8"))
    except PageError as error:
        raise PageError(f"{path.relative_to(ROOT)}: {error}") from None
