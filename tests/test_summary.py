#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/summary.py counts what ctest's JUnit files say, and fails when it should."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "summary.py"
PASSED = '<testcase name="a" status="run"/>'
FAILED = '<testcase name="b" status="fail"><failure message=""/></testcase>'
SKIPPED = '<testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'
MISSING = '<testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>'


class TestSummary(unittest.TestCase):
    def summary(self, *files: str) -> tuple[int, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, cases in enumerate(files):
                paths.append(Path(folder) / f"{number}.xml")
                paths[-1].write_text(f"<testsuite>{cases}</testsuite>", encoding="utf-8")
            command = [sys.executable, str(PROGRAM), *map(str, paths)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    def test_adds_up(self):
        self.assertEqual(
            self.summary(PASSED + SKIPPED, PASSED),
            (0, ["skipped: c", "2 passed, 0 failed, 1 skipped"]),
        )

    def test_failures(self):
        self.assertEqual(
            self.summary(PASSED + FAILED), (1, ["failed: b", "1 passed, 1 failed, 0 skipped"])
        )

    def test_a_missing_program_is_a_failure(self):
        self.assertEqual(
            self.summary(PASSED + MISSING), (1, ["failed: d", "1 passed, 1 failed, 0 skipped"])
        )

    def test_nothing_ran(self):
        self.assertEqual(self.summary(""), (1, ["0 passed, 0 failed, 0 skipped"]))
        self.assertEqual(self.summary(SKIPPED)[0], 1)

    def test_missing_and_broken_files(self):
        command = [sys.executable, str(PROGRAM), "/nonexistent.xml"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent.xml", done.stderr)
        self.assertEqual(self.summary(PASSED, "<")[0], 1)


if __name__ == "__main__":
    unittest.main()
