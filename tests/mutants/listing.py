# SPDX-License-Identifier: Apache-2.0
"""The list of mutants (*.toml beside this file), and what docs/requirements.md says of their rows."""

import re
import tomllib
from dataclasses import dataclass

KEYS = {"id", "function", "in", "find", "change", "row", "by", "filter"}


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


def read(paths):
    """All mutants of these files, in their order."""
    mutants = []
    for path in paths:
        try:
            entries = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
        except tomllib.TOMLDecodeError as error:
            raise BadList(f"{path}: {error}") from None
        for entry in entries:
            name = f"{path.name}: {entry.get('id', '(no id)')}"
            if set(entry) - KEYS or {"id", "find", "change", "row"} - set(entry):
                raise BadList(f"{name}: keys are {', '.join(sorted(KEYS))}")
            if not entry.get("function") and not entry.get("in"):
                raise BadList(f"{name}: neither a function nor a file")
            mutants.append(
                Mutant(entry["id"], entry.get("function", ""), entry.get("in", ""), entry["find"],
                       entry["change"], entry["row"], entry.get("by", ""), entry.get("filter", ""))
            )  # fmt: skip
    ids = [mutant.id for mutant in mutants]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise BadList(f"ids that are there twice: {', '.join(twice)}")
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
    """Of docs/requirements.md: {"M1": what its last cell names}."""
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
