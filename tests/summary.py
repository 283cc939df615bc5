#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up JUnit files that ctest wrote: names what failed, then one line of counts.

    tests/summary.py FILE...

Exit status 1 when a test failed, a file is missing, or nothing ran at all.
"""

import sys
import xml.etree.ElementTree as xml


def outcome(case: xml.Element) -> str:
    """passed, failed or skipped, of one <testcase>. Only a test itself can say that it was skipped:
    ctest says "skipped" of a program that it did not find, too."""
    if case.get("status") == "run" and case.find("failure") is None:
        return "passed"
    skipped = case.find("skipped")
    said_so = skipped is not None and skipped.get("message", "").startswith("SKIP_")
    return "skipped" if said_so else "failed"


def main(paths: list[str]) -> int:
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    sound = bool(paths)
    for path in paths:
        try:
            cases = xml.parse(path).getroot().iter("testcase")
        except (OSError, xml.ParseError) as error:
            print(f"summary: {path}: {error}", file=sys.stderr)
            sound = False
            continue
        for case in cases:
            result = outcome(case)
            counts[result] += 1
            if result != "passed":
                print(f"{result}: {case.get('name')}")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    return 0 if sound and counts["failed"] == 0 and counts["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
