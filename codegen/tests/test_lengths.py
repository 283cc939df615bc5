# SPDX-License-Identifier: Apache-2.0
"""Templates are short and decide little; the functions that they become can be read.

The differences between formats, sets and caches are data (kernels/kernels.toml) or a part with a name of its
own (kernels/codes/, kernels/scales/, kernels/parts/), so a template shows one algorithm.
"""

from __future__ import annotations

import re
import sys
import unittest
from collections.abc import Iterator

from common import ROOT
import gen
import spec as table
import suite

sys.path.insert(0, str(ROOT / "tests" / "docs"))
from test_sizes import c_functions  # noqa: E402

TEMPLATE_LINES, TEMPLATE_BRANCHES, FUNCTION_LINES = 150, 12, 200

# Templates with longer functions: the most lines, and why. Plain C has no vectors: each of the sixteen rows of a group is a
# variable, and a group a function, whose lines the compiler would not have in a loop.
ROWS = "sixteen rows, one after the other"
LONGER = {
    "matmul_quads": (238, ROWS),
    "matmul_bsr_ternary": (275, ROWS),
}

TEXT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
COMMENT = re.compile(r"\{#.*?#\}", re.S)
INLINE = re.compile(r"\{[%{](.*?)[%}]\}", re.S)
BRANCH = re.compile(r"\b(?:if|elif)\b")
END = re.compile(r"[-+\s]*end")


def jinja_of(text: str) -> Iterator[str]:
    """Yields the text that Jinja evaluates: line statements and everything between its braces, but neither comments
    nor C."""
    rest = []
    for line in COMMENT.sub("", text).splitlines():
        bare = line.strip()
        if bare.startswith("%%"):
            yield bare[2:]
        elif not bare.startswith("##"):
            rest.append(line)
    yield from INLINE.findall("\n".join(rest))


def branches(text: str) -> int:
    """Statements `if` and `elif`, conditions of loops, and each `if` of an expression."""
    pieces = (TEXT.sub('""', piece) for piece in jinja_of(text) if not END.match(piece))
    return sum(len(BRANCH.findall(piece)) for piece in pieces)


def template_faults(name: str, text: str) -> list[str]:
    lines, found = text.count("\n"), branches(text)
    faults = []
    if lines >= TEMPLATE_LINES:
        faults.append(f"{name}: {lines} lines, fewer than {TEMPLATE_LINES} are wanted")
    if found > TEMPLATE_BRANCHES:
        faults.append(f"{name}: {found} branches, at most {TEMPLATE_BRANCHES}")
    return faults


def generated() -> Iterator[tuple[str, str, str, int]]:
    """File, template, function and lines of each function of every kernel."""
    for name, text in gen.outputs(table.load(ROOT)).items():
        template = re.search(r"and template kernels/(\S+)\.cu?\.j2", text)
        if template:
            for function, _, lines in c_functions(text):
                yield name, template[1], function, lines


class Templates(unittest.TestCase):
    def test_none_is_long_or_decides_much(self) -> None:
        faults, count = [], 0
        for folder in ("kernels", "bench"):
            for path in sorted((ROOT / folder).rglob("*.j2")):
                faults += template_faults(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
                count += 1
        self.assertEqual(faults, [])
        self.assertGreater(count, 100)

    def test_branches_are_counted(self) -> None:
        self.assertEqual(branches('%% if a\nif (c)\n%% elif b\n## if\n%% endif\n{# if #}\n'), 2)
        self.assertEqual(branches('{{ "x if y" if a else "if" }}{% if b %}{% endif %}\n'), 2)
        self.assertEqual(branches("%% for x in y if z\n%% endfor\n"), 1)
        many = "%% if a\n%% endif\n" * 13
        self.assertEqual(template_faults("t", many), ["t: 13 branches, at most 12"])
        self.assertEqual(template_faults("t", "x\n" * 150), ["t: 150 lines, fewer than 150 are wanted"])


class Functions(unittest.TestCase):
    def test_long_ones_are_named(self) -> None:
        faults, count, used = [], 0, set()
        for name, template, function, lines in generated():
            count += 1
            most, _ = LONGER.get(template, (FUNCTION_LINES, ""))
            if lines > FUNCTION_LINES:
                used.add(template)
            if lines > most:
                faults.append(f"{name}: {function} has {lines} lines, at most {most}")
        self.assertEqual(faults, [])
        self.assertGreater(count, 4000)
        self.assertEqual(set(LONGER) - used, set(), "these are no longer long")


if __name__ == "__main__":
    suite.main()
