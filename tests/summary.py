#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files that ctest wrote: names failed and skipped tests with the reasons, then prints the counts.

    tests/summary.py [--skips FILE] JUNIT...

Functions are counted, by the lines in which cmocka and tests/suite.py name each; a program without such lines
counts as one. ctest must keep what tests print (--test-output-size-passed). Exit status 1 when something failed,
when it was skipped for no reason of tests/skips.md, when a file is missing, or when nothing ran at all.
"""

import argparse
import fnmatch
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).resolve().parent / "skips.md"
ENDED = re.compile(r"\[ *(OK|FAILED|SKIPPED) *\] (?!\d+ test)(.+?)(?:, listed below:)?")
WORDS = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


class Outcome(NamedTuple):
    name: str
    result: str  # passed, failed, skipped
    reason: str = ""


def of_program(case: xml.Element) -> str:
    """Returns passed, failed or skipped for one <testcase>. Only a test itself can say that it was skipped: ctest also
    says "skipped" about a program that it did not find."""
    if case.get("status") == "run" and case.find("failure") is None:
        return "passed"
    skipped = case.find("skipped")
    said_so = skipped is not None and skipped.get("message", "").startswith("SKIP_")
    return "skipped" if said_so else "failed"


def functions(output: str) -> dict[str, Outcome]:
    """Finds reasons by name; a reason is the last line before the function's that begins with "skipped: "."""
    found, reason = {}, ""
    for line in output.splitlines():
        if line.startswith("skipped: "):
            reason = line.removeprefix("skipped: ")
        elif ended := ENDED.fullmatch(line):
            name, result = ended[2], WORDS[ended[1]]
            found.setdefault(name, Outcome(name, result, reason if result == "skipped" else ""))
            reason = ""
    return found


def outcomes(case: xml.Element) -> list[Outcome]:
    """Results of a program's functions, or of the program itself."""
    name, output = case.get("name", ""), case.findtext("system-out") or ""
    result = of_program(case)
    parts = list(functions(output).values())
    told = {part.result for part in parts}
    if not parts or (result == "failed" and "failed" not in told):  # it ended in none of them
        reasons = re.findall(r"^skipped: (.*)$", output, re.M)
        parts.append(Outcome("", result, reasons[-1] if result == "skipped" and reasons else ""))
    return [part._replace(name=f"{name}: {part.name}" if part.name else name) for part in parts]


class Skips:
    """Reads the tests that may be skipped: rows of a table, | test: function | reason | why it may |, with * in the
    first two."""

    def __init__(self, path: Path) -> None:
        rows = [line.strip("|").split("|") for line in path.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
        cells = [[cell.strip().strip("`") for cell in row] for row in rows[2:]]
        if any(len(row) != 3 or not all(row) for row in cells):
            raise ValueError(f"{path}: a row is not | test: function | reason | why it may |")
        self.patterns = [(name, reason) for name, reason, _ in cells]

    def allow(self, outcome: Outcome) -> bool:
        return any(fnmatch.fnmatchcase(outcome.name, name) and fnmatch.fnmatchcase(outcome.reason, reason)
                   for name, reason in self.patterns)  # fmt: skip


def line_of(outcome: Outcome, skips: Skips) -> str:
    if outcome.result == "failed":
        return f"failed: {outcome.name}"
    why = outcome.reason or "it does not say why"
    return f"skipped: {outcome.name}: {why}" + ("" if skips.allow(outcome) else " (not in tests/skips.md)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skips", type=Path, default=LIST)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    skips = Skips(options.skips)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    sound = True
    for path in options.files:
        try:
            cases = list(xml.parse(path).getroot().iter("testcase"))
        except (OSError, xml.ParseError) as error:
            print(f"summary: {path}: {error}", file=sys.stderr)
            sound = False
            continue
        for outcome in [outcome for case in cases for outcome in outcomes(case)]:
            counts[outcome.result] += 1
            if outcome.result != "passed":
                print(line_of(outcome, skips))
            sound = sound and (outcome.result != "skipped" or skips.allow(outcome))
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 0 if sound and counts["failed"] == 0 and counts["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
