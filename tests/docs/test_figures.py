# SPDX-License-Identifier: Apache-2.0
"""Every figure of a page is made from a stored document by lab/pages, or stands on a list that says why not.

The list is figures.toml beside this file. Figures are numbers with a unit of speed, time, memory or share,
numbers of a whole ("233 of 240"), and numbers with digits behind the point; a column of numbers is a table of figures
even where its head does not say so.
"""

import collections
import functools
import re
import sys
import unittest

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib

import documents
import suite

sys.path.insert(0, str(documents.ROOT / "lab"))
import page_figures  # noqa: E402

ALLOWED = documents.ROOT / "tests" / "docs" / "figures.toml"
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
UNIT = (r"(?:tok(?:ens?)?/s|tokens? (?:a|per) second|[kKMGT]i?B/s|[GMT] ?(?:weights|multiply-accumulates|MACs?|FLOPS?|w)/s"
        r"|[GMT]/s|[mµun]s|micro-?seconds|milli-?seconds|nanoseconds|s|seconds?|minutes?|hours?|%|percent|times(?! \d)"
        r"|[MGT]i?B)")
FIGURES = [
    re.compile(rf"(?<![\w.\-^/]){NUMBER}(?:(?:,| to| and| or) {NUMBER})* ?{UNIT}(?![\w/])"),
    re.compile(r"(?<![\w.])\d[\d,]* of \d[\d,]*\b(?! bytes)"),
    re.compile(r"(?<![\w.^\-])(?:\d+\.\d{2,}|\d+(?:\.\d+)?e-?\d+)(?![\w.]*\.\d|\w)"),
]
CELL = re.compile(rf"(?:about |some )?[<≤]?{NUMBER}(?: (?:to|of|/|±) {NUMBER}|, {NUMBER})*(?: (?:thousand|{UNIT}))?")
LEAST_CELLS = 3  # numbers in a column that make it one of figures


def name_of(path):
    return documents.name(path)


def by_hand(text):
    """Returns the page without the text that lab/pages makes, without code and without targets of links; lines stay."""
    plain = documents.prose(text)
    plain = page_figures.SPAN.sub(lambda found: "\n" * found[0].count("\n"), plain)
    plain = re.sub(r"`[^`\n]*`", "`", plain)
    return re.sub(r"\]\([^)\s]*\)", "]", plain)


def figures(text):
    """Returns the figures in a page's own words, in order; each place once."""
    plain, taken, found = by_hand(text), set(), []
    for pattern in FIGURES:
        for match in pattern.finditer(plain):
            if taken.isdisjoint(range(*match.span())):
                taken.update(range(*match.span()))
                found.append((match.start(), " ".join(match[0].split())))
    return [figure for _, figure in sorted(found)]


def columns(text):
    """Heads of the columns of numbers, of tables that are written by hand."""
    for header, rows in documents.tables(by_hand(text)):
        for i, head in enumerate(header):
            cells = [row[i] for row in rows if i < len(row)]
            if sum(bool(CELL.fullmatch(cell)) for cell in cells) >= LEAST_CELLS:
                yield head


def written():
    """Every page that people write."""
    return [path for path in documents.paths() if documents.name(path) != "CHANGELOG.md"]  # history


def allowed():
    with ALLOWED.open("rb") as file:
        return tomllib.load(file)


def differences(path, text, entry):
    """(figures that are not on the list, figures of the list that are not there)."""
    listed = collections.Counter(figure for group in entry.get("figures", {}).values() for figure in group)
    listed.update(f"column {head}" for group in entry.get("columns", {}).values() for head in group)
    kinds = [pattern for pattern in FIGURES[2:] if entry.get("decimals")]
    seen = [f for f in figures(text) if not any(kind.fullmatch(f) for kind in kinds)]
    found = collections.Counter([*seen, *(f"column {head}" for head in columns(text))])
    return sorted((found - listed).elements()), sorted((listed - found).elements())


@functools.cache
def value(expression):
    return page_figures.value(expression)


class Figures(unittest.TestCase):
    def test_every_page_is_made(self):
        """The text that lab/pages makes of the stored documents stands in the pages, byte for byte."""
        found = page_figures.pages()
        for path in found:
            with self.subTest(name_of(path)):
                self.assertEqual(path.read_text(encoding="utf-8"), page_figures.made(path), "run: lab/pages")
        self.assertGreater(len(found), 8)

    def test_no_figure_by_hand(self):
        entries, problems = allowed(), []
        for path in written():
            new, gone = differences(path, path.read_text(encoding="utf-8"), entries.pop(name_of(path), {}))
            problems += [f"{name_of(path)}: '{figure}' is in no document: make it by lab/pages, or say in"
                         f" {ALLOWED.name} where it comes from" for figure in new]
            problems += [f"{name_of(path)}: '{figure}' of {ALLOWED.name} is not there" for figure in gone]
        self.assertEqual([], problems)
        self.assertEqual({}, entries, "pages that do not exist")

    def test_a_changed_digit_is_seen(self):
        """Changes each digit of each figure, one at a time."""
        entries, changed, missed = allowed(), 0, []
        for path in documents.paths():
            if path not in page_figures.pages() and name_of(path) not in entries:
                continue
            text = path.read_text(encoding="utf-8")
            for at in digits_of_figures(text):
                changed += 1
                if not seen(path, changed_at(text, at), entries.get(name_of(path), {})):
                    missed.append(f"{name_of(path)}:{text.count(chr(10), 0, at) + 1}: {text[max(at - 30, 0):at + 10]!r}")
        print(f"{changed} digits changed, {len(missed)} unnoticed", flush=True)
        self.assertEqual([], missed[:20])
        self.assertGreater(changed, 3000)

    def test_a_changed_figure_of_the_list_is_seen(self):
        """A figure by hand is on the list with its number: another number is not."""
        changed = 0
        for name, entry in allowed().items():
            path = documents.ROOT / name
            text = path.read_text(encoding="utf-8")
            for figure in {f for group in entry.get("figures", {}).values() for f in group if text.count(f) == 1}:
                other = text.replace(figure, changed_at(figure, re.search("[0-9]", figure).start()))
                changed += 1
                self.assertNotEqual(differences(path, other, entry), ([], []), f"{name}: {figure}")
        self.assertGreater(changed, 50)

    def test_marks(self):
        text = 'a <!-- = figure("x", "y") -->12<!-- . --> b\n<!-- = t() -->\n| 1 |\n<!-- . -->\n'
        made = page_figures.marked(text, lambda expression: "34" if "figure" in expression else "| 2 |\n| 3 |")
        self.assertEqual(made, 'a <!-- = figure("x", "y") -->34<!-- . --> b\n<!-- = t() -->\n| 2 |\n| 3 |\n<!-- . -->\n')
        for broken in ("<!-- = a() -->1", "1<!-- . -->"):
            self.assertRaises(page_figures.PageError, page_figures.spans, broken)
        self.assertRaises(page_figures.PageError, page_figures.value, 'figure("none", "benchmark.decode_tps")')
        self.assertRaises(page_figures.PageError, page_figures.value, "no_such_function()")

    def test_no_mark_begins_a_line_of_a_paragraph(self):
        """There Markdown would take the rest of the line for HTML."""
        for path in documents.paths():
            text = documents.prose(path.read_text(encoding="utf-8"))
            for found in page_figures.SPAN.finditer(text):
                begins = found.start() == 0 or text[found.start() - 1] == "\n"
                self.assertEqual(begins, found[2].startswith("\n"), f"{name_of(path)}: {found[1]}")

    def test_what_counts_as_a_figure(self):
        for text in ("4 tokens/s", "3.5 GB/s", "12 ms", "0.4 s", "70 minutes", "31 %", "1.2 times", "54 MiB",
                     "233 of 240", "0.9991", "1.4e-5", "15 to 60 ms"):
            self.assertEqual(figures(f"It takes {text}, say."), [text])
        for text in ("`12 ms`", "16 rows", "M336", "2026-11-21", "[a](b-12%20ms)", "version 1.2", "10.4.2",
                     '<!-- = x() -->12 ms<!-- . -->'):
            self.assertEqual(figures(f"It takes {text}, say."), [])
        table = "| a | b |\n|---|---|\n| x | 1 |\n| y | 2.5 |\n| z | 30 |\n"
        self.assertEqual(list(columns(table)), ["b"])


def digits_of_figures(text):
    """Places of the digits of everything that is made on the page."""
    return [i for begin, end, _ in page_figures.spans(text) for i in range(begin, end) if text[i].isdigit()]


def changed_at(text, at):
    return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1:]


def seen(path, text, entry):
    """Says whether a check of this file fails with the page as `text`."""
    if page_figures.marked(text, value) != text:
        return True
    new, gone = differences(path, text, entry)
    return bool(new or gone)


if __name__ == "__main__":
    suite.main()
