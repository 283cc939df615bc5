# SPDX-License-Identifier: Apache-2.0
"""The page of the kernel report: one self-contained HTML file with plots, table and receipt."""

from __future__ import annotations

from html import escape

import known_numbers
import results as bench

STYLE = """
:root { color-scheme: light dark; --back: #fdfdfc; --text: #1d2327; --soft: #5b656c;
  --line: #d9dee1; --box: #f3f5f6; --bar: #9cc4e4; }
@media (prefers-color-scheme: dark) { :root { --back: #15191c; --text: #e3e7e9; --soft: #9aa5ac;
  --line: #333b40; --box: #1d2327; --bar: #2f5f85; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 3rem) 4rem; max-width: 82rem;
  background: var(--back); color: var(--text);
  font: 16px/1.55 system-ui, "Segoe UI", "Liberation Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .75rem; }
p { max-width: 46rem; }
.soft, figcaption { color: var(--soft); }
.plots { display: grid; gap: 1.5rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr)); }
figure { margin: 0; padding: .9rem; border: 1px solid var(--line); border-radius: .5rem; min-width: 0; }
figure h3 { margin: 0 0 .5rem; font-size: 1rem; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { font-size: .85rem; margin-top: .5rem; }
.box { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem; }
.tall { max-height: 42rem; overflow-y: auto; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { padding: .35rem .7rem; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
thead th { position: sticky; top: 0; background: var(--box); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.share { background: linear-gradient(90deg, var(--bar) var(--share), transparent var(--share)); }
code { font: .87em ui-monospace, "Liberation Mono", monospace; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .3rem 1.2rem; margin: 0;
  padding: 1rem; background: var(--box); border-radius: .5rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
"""


def giga(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value / 1e9:.{digits}g}"


def share_cell(value: float | None) -> str:
    if value is None:
        return '<td class="n"></td>'
    return f'<td class="n share" style="--share:{min(value, 100):.0f}%">{value:.0f} %</td>'


# The columns of the table for each benchmark: heading and meaning.
COLUMNS = [
    ("row", "name of the row of the kernel table"),
    ("from", "where the operands live"),
    ("shape", "rows x columns, or elements"),
    ("tokens", "that a call multiplies with"),
    ("threads", ""),
    ("µs", "a call, median of the repetitions"),
    ("± %", "half the range of the repetitions"),
    ("GB/s", "packed weights or inputs read"),
    ("of the read roof", "share of what a loop of loads reads from there"),
    ("G MAC/s", "multiply-accumulates"),
    ("of the unit's peak", "share of what the same instructions reach without waiting for operands"),
    ("unit", "how the row multiplies"),
]
TEXTS = ("row", "from", "shape", "unit")


def table_row(b: bench.Benchmark) -> str:
    label = b.label
    row = b.name.split("/")[0]
    middle = sorted(b.seconds)[len(b.seconds) // 2]
    spread = (max(b.seconds) - min(b.seconds)) / 2 / middle * 100
    cells = [f"<td><code>{escape(row)}</code></td>"]
    cells += [f"<td>{escape(label.get(key, ''))}</td>" for key in ("level", "shape")]
    cells += [f'<td class="n">{escape(label.get(key, "1"))}</td>' for key in ("tokens", "threads")]
    cells += [f'<td class="n">{middle * 1e6:.4g}</td>']
    cells += [f'<td class="n">{spread:.0f}</td>' if len(b.seconds) > 1 else '<td class="n"></td>']
    cells += [f'<td class="n">{giga(b.figure("bytes"))}</td>', share_cell(b.figure("read_percent"))]
    cells += [f'<td class="n">{giga(b.figure("macs"))}</td>', share_cell(b.figure("peak_percent"))]
    cells += [f"<td>{escape(label.get('unit', ''))}</td>"]
    return "<tr>" + "".join(cells) + "</tr>"


def rows_table(found: bench.Results) -> str:
    head = "".join(
        f'<th scope="col"{"" if name in TEXTS else " class=n"} title="{escape(note)}">{escape(name)}</th>'
        for name, note in COLUMNS
    )
    body = "\n".join(table_row(b) for b in found.benchmarks.values())
    return (f'<div class="box tall" tabindex="0" role="region" aria-label="All benchmarks">'
            f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>")


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def known_line(x: known_numbers.Line) -> str:
    return (f"<tr><td>{escape(x.weights)}</td><td>{escape(x.isa)}</td>"
            f'<td class="n">{x.intensity:.3g}</td>{share_cell(x.bandwidth)}{share_cell(x.peak)}'
            f'<td class="n">{times(x.speed)}</td></tr>')  # fmt: skip


def known_section(found: bench.Results) -> str:
    """Shows the numbers that docs/requirements.md asks of kernels, beside the measured ones."""
    known = known_numbers.lines(found)
    items = "".join(f"<li>{v.row}: {'met' if v.met else 'not met'}. {escape(v.text)}.</li>"
                    for v in known_numbers.verdicts(known))  # fmt: skip
    names = ("weights", "instruction set", "operations a byte", "of the read roof, from memory",
             "of the unit's peak, from a cache", "times scalar, from a cache")  # fmt: skip
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    table = "".join(map(known_line, known))
    return ("<h2>Known numbers</h2><p>One token, one thread.</p>"
            f"<ul>{items}</ul>"
            + (f'<div class="box"><table><thead><tr>{head}</tr></thead><tbody>{table}</tbody></table>'
               "</div>" if known else ""))  # fmt: skip


def limits_table(context: dict) -> str:
    """Returns the lines of the context that state the machine's own speeds."""
    lines = [(k, v) for k, v in context.items() if k.startswith(("read ", "peak "))]
    if not lines:
        return ""
    units = {"read": "GB/s", "peak": "G MAC/s"}
    body = "".join(
        f'<tr><td>{escape(key)}</td><td class="n">{escape(str(value))}</td>'
        f"<td>{units[key.split()[0]]}</td></tr>"
        for key, value in sorted(lines, key=lambda line: (not line[0].startswith("read"), line[0]))
    )
    return ('<h2>What this machine gives</h2><p class="soft">One thread, before the benchmarks. Each '
            "benchmark measured its own again, right behind itself.</p>"
            f'<div class="box"><table><tbody>{body}</tbody></table></div>')


def receipt(found: bench.Results) -> str:
    c = found.context
    repetitions = [len(b.seconds) for b in found.benchmarks.values()]
    few, many = min(repetitions, default=0), max(repetitions, default=0)
    lines = [
        ("processor", f"{c.get('processor', 'unknown')}, {c.get('num_cpus', '?')} cores"),
        ("instruction sets", c.get("isas", "unknown")),
        ("compiler", c.get("compiler", "unknown")),
        ("tern", f"{c.get('tern_version', 'unknown')}, commit {c.get('tern_commit', 'unknown')}"),
        ("date", c.get("date", "unknown")),
        ("load average", ", ".join(f"{x:.2f}" for x in c.get("load_avg", [])) or "unknown"),
        ("repetitions", f"{few}" if few == many else f"{few} to {many}"),
        ("command", c.get("command") or c.get("executable") or "unknown"),
    ]
    body = "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in lines)
    return f"<h2>Receipt</h2><dl>{body}</dl>"


def figure(plot) -> str:
    svg = plot.svg.replace('role="img" %s', f'role="img" aria-label="{escape(plot.alt)}"', 1)
    return (f"<figure><h3>{escape(plot.title)}</h3>{svg}"
            f"<figcaption>{escape(plot.alt)}</figcaption></figure>")


def failures(found: bench.Results) -> str:
    if not found.failed:
        return ""
    items = "".join(
        f"<li><code>{escape(name)}</code>: {escape(message)}</li>"
        for name, message in found.failed.items()
    )
    return f'<h2>Failed</h2><ul class="failed">{items}</ul>'


def page(found: bench.Results, plots: list) -> str:
    processor = found.context.get("processor", "this machine")
    lines = [p for p in plots if p.name.startswith("roofline")]
    others = [p for p in plots if not p.name.startswith("roofline")]
    parts = [
        f"<h1>Kernels of tern on {escape(processor)}</h1>",
        f"<p>{len(found.benchmarks)} benchmarks of the rows of the kernel table that this machine "
        "runs. Each compared its answer with the reference before it was timed.</p>",
        failures(found),
    ]
    if lines:
        parts += [
            "<h2>Rooflines</h2><p>How fast a row can be at best depends on how often it uses each "
            "byte that it reads: to the left the place where the weights live is the limit, to the "
            "right the multiplier. Full points have their weights in a cache of the core, hollow "
            "ones in memory. What multiplies nothing is in the table only.</p>",
            f'<div class="plots">{"".join(map(figure, lines))}</div>',
        ]
    if others:
        parts += ["<h2>Formats</h2>", f'<div class="plots">{"".join(map(figure, others))}</div>']
    parts += [known_section(found), "<h2>All rows</h2>", rows_table(found), limits_table(found.context), receipt(found)]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Kernels of tern on {escape(processor)}</title>\n<style>{STYLE}</style>\n</head>\n"
        "<body>\n" + "\n".join(part for part in parts if part) + "\n</body>\n</html>\n"
    )
