# SPDX-License-Identifier: Apache-2.0
"""Reads the lists of mutants (*.list beside this file), and the rows of docs/requirements.md that they break."""

import re
from dataclasses import dataclass


class BadList(Exception):
    pass


@dataclass(frozen=True)
class Mutant:
    id: str
    function: str  # whose definition is changed; empty where `folder` is a file
    folder: str  # where it is looked for; empty: everywhere
    find: str
    change: str
    row: str  # the requirement that it breaks
    by: str  # which of the row's tests notice; empty: any
    filter: str  # TERN_TEST_FILTER, so that tests of kernels take some rows only


def place_of(text):
    """`function`, `function in FOLDER` or `in FILE`, as (function, folder)."""
    function, _, folder = f" {text} ".partition(" in ")
    return function.strip(), folder.strip()


def entry(name, lines):
    """Returns the mutant of three lines: its heading, the text that it finds, the text that it puts there."""
    head, *changes = lines
    cells = [cell.strip() for cell in head.split(" | ")]
    if [line[0] for line in changes] != ["-", "+"] or not 3 <= len(cells) <= 5:
        raise BadList(f"{name}: {cells[0]}: a mutant is ID | ROW | PLACE, a line of `- ` and a line of `+ `")
    function, folder = place_of(cells[2])
    if not function and not folder:
        raise BadList(f"{name}: {cells[0]}: neither a function nor a file")
    by, only = (cells[3:] + ["", ""])[:2]
    return Mutant(cells[0], function, folder, changes[0][2:], changes[1][2:], cells[1], by, only)


def read(paths):
    """All mutants of these files, in their order."""
    mutants = []
    for path in paths:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
        mutants += [entry(path.name, lines[i : i + 3]) for i in range(0, len(lines), 3)]
    ids = [mutant.id for mutant in mutants]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise BadList(f"ids that occur twice: {', '.join(twice)}")
    return mutants


def parts(shown):
    """`a: f, g; b` as {"a": ["f", "g"], "b": []}: tests, and those of their functions that are
    named. Words in parentheses explain; commands in backquotes are not tests."""
    tests = {}
    for part in re.sub(r"\([^()]*\)|`[^`]*`", "", shown).split(";"):
        name, colon, words = part.strip().partition(":")
        names = [name] if colon else re.findall(r"[a-z][a-z0-9_]*", name)
        words = [word.strip(" .") for word in words.split(",") if word.strip(" .")]
        for one in names:
            tests[one] = [*tests[one], *words] if tests.get(one) else words
    return tests


def rows(text):
    """The rows of docs/requirements.md: {"M1": what its last cell names}."""
    shown = {}
    for line in text.split("\n"):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))]
        if len(cells) == 4 and re.fullmatch(r"M\d+(, M\d+)*", cells[0]):
            for number in cells[0].split(", "):
                shown[number] = cells[3]
    for number, cell in shown.items():
        other = re.match(r"as (M\d+)", cell)
        if other and other[1] in shown:
            shown[number] = shown[other[1]] + "; " + cell[other.end() :]
    return {number: parts(cell) for number, cell in shown.items()}


def tests_of(mutant, shown, known):
    """{test: functions} that may notice: what `by` says, which the row must name, or all that the
    row names. `known` are the tests that there are."""
    if mutant.row not in shown:
        raise BadList(f"there is no row {mutant.row}")
    named = {test: words for test, words in shown[mutant.row].items() if test in known}
    if not mutant.by:
        if not named:
            raise BadList(f"{mutant.row} names no test")
        return named
    chosen = parts(mutant.by)
    for test, words in chosen.items():
        if test not in named:
            raise BadList(f"{mutant.row} does not name the test {test}")
        strange = [word for word in words if named[test] and word not in named[test]]
        if strange:
            raise BadList(f"{mutant.row} does not name {test}: {', '.join(strange)}")
    return {test: words or named[test] for test, words in chosen.items()}
