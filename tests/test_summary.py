#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/summary.py counts what ctest's JUnit files say, function by function, and fails when it should."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import suite

PROGRAM = Path(__file__).resolve().parent / "summary.py"
PASSED = '<testcase name="a" status="run"/>'
FAILED = '<testcase name="b" status="fail"><failure message=""/></testcase>'
SKIPPED = '<testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>'
MISSING = '<testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>'
HEAD = "| test | reason | why |\n|---|---|---|\n"
ANY = HEAD + "| * | * | of this test |\n"

CMOCKA = """skipped: tern_gemv_x_1x1_y
[ RUN      ] one
[       OK ] one
[ RUN      ] two
skipped: no two here
[  SKIPPED ] two
[ RUN      ] three
[  ERROR   ] --- 0 != 1
[  FAILED  ] three
[==========] 3 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] two
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] three
"""


def program(name: str, status: str, output: str) -> str:
    inner = {"fail": '<failure message=""/>', "notrun": '<skipped message="SKIP_RETURN_CODE=77"/>'}.get(status, "")
    text = output.replace("&", "&amp;").replace("<", "&lt;")
    return f'<testcase name="{name}" status="{status}">{inner}<system-out>{text}</system-out></testcase>'


class TestSummary(unittest.TestCase):
    def summary(self, *files: str, skips: str = ANY) -> tuple[int, list[str]]:
        with tempfile.TemporaryDirectory() as folder:
            allowed = Path(folder) / "skips.md"
            allowed.write_text(skips, encoding="utf-8")
            paths = []
            for number, cases in enumerate(files):
                paths.append(Path(folder) / f"{number}.xml")
                paths[-1].write_text(f"<testsuite>{cases}</testsuite>", encoding="utf-8")
            command = [sys.executable, str(PROGRAM), "--skips", str(allowed), *map(str, paths)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    def test_adds_up(self):
        self.assertEqual(
            self.summary(PASSED + SKIPPED, PASSED),
            (0, ["skipped: c: it does not say why", "2 passed, 0 failed, 1 skipped"]),
        )

    def test_failures(self):
        self.assertEqual(
            self.summary(PASSED + FAILED), (1, ["failed: b", "1 passed, 1 failed, 0 skipped"])
        )

    def test_a_missing_program_is_a_failure(self):
        self.assertEqual(
            self.summary(PASSED + MISSING), (1, ["failed: d", "1 passed, 1 failed, 0 skipped"])
        )

    def test_functions_of_cmocka(self):
        said = ["skipped: x: two: no two here", "failed: x: three", "1 passed, 1 failed, 1 skipped"]
        self.assertEqual(self.summary(program("x", "fail", CMOCKA)), (1, said))

    def test_an_end_in_no_function(self):
        """A program may fail although none of its functions does, for example when a signal ends it."""
        said = ["failed: x", "1 passed, 1 failed, 0 skipped"]
        self.assertEqual(self.summary(program("x", "fail", "[       OK ] one\n")), (1, said))

    def test_reason_of_a_program(self):
        said = ["skipped: x: no hands", "1 passed, 0 failed, 1 skipped"]
        self.assertEqual(self.summary(PASSED + program("x", "notrun", "skipped: no hands\n")), (0, said))

    def test_reasons_are_not_shared(self):
        """A reason belongs to the function behind it, and not to later ones; a program's reason is its last one."""
        output = "skipped: no one\n[  SKIPPED ] one\n[  SKIPPED ] two\n[       OK ] three\n"
        said = ["skipped: x: one: no one", "skipped: x: two: it does not say why", "1 passed, 0 failed, 2 skipped"]
        self.assertEqual(self.summary(program("x", "run", output)), (0, said))
        said = ["skipped: x: no feet", "1 passed, 0 failed, 1 skipped"]
        self.assertEqual(self.summary(PASSED + program("x", "notrun", "skipped: no hands\nskipped: no feet\n")), (0, said))

    def test_skips_are_on_the_list(self):
        cases = PASSED + program("x", "run", CMOCKA.replace("FAILED", "OK"))
        for row, allowed in (("| x: two | no two * | so |\n", True), ("| x: one | no two here | so |\n", False),
                             ("| x: two | no one here | so |\n", False), ("", False)):  # fmt: skip
            status, lines = self.summary(cases, skips=HEAD + row)
            self.assertEqual(status, 0 if allowed else 1, row)
            self.assertEqual(lines[-1], "3 passed, 0 failed, 1 skipped")
            self.assertEqual("(not in tests/skips.md)" in lines[0], not allowed)
        self.assertEqual(self.summary(PASSED, skips=HEAD + "| x | y | |\n")[0], 1)

    def test_the_list(self):
        """The file itself can be read, and gives a reason for each."""
        done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False)
        self.assertEqual((done.stdout, done.stderr), ("0 passed, 0 failed, 0 skipped\n", ""))

    def test_nothing_ran(self):
        self.assertEqual(self.summary(""), (1, ["0 passed, 0 failed, 0 skipped"]))
        self.assertEqual(self.summary(SKIPPED)[0], 1)

    def test_missing_and_broken_files(self):
        command = [sys.executable, str(PROGRAM), "/nonexistent.xml"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent.xml", done.stderr)
        self.assertEqual(self.summary(PASSED, "<")[0], 1)


class Here(unittest.TestCase):
    """tests/summary.py reads the lines that tests/suite.py writes about functions."""

    LINES = """
import sys, unittest
sys.path.insert(0, sys.argv[1])
import suite

class A(unittest.TestCase):
    def test_good(self):
        self.assertEqual(1, 1)
    def test_nothing(self):
        for n in ():
            self.assertEqual(n, n)
    def test_bad(self):
        with self.subTest(n=1):
            self.fail("so")
    def test_left_out(self):
        self.skipTest("no legs")
    def test_in_part(self):
        for n in (1, 2):
            with self.subTest(n=n):
                self.skipTest(f"no {n}")

class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("nothing")
    def test_never(self):
        pass

class C(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise ValueError
    def test_never(self):
        pass

suite.main(["x", *sys.argv[2:]])
"""

    def told(self, *names):
        command = [sys.executable, "-c", self.LINES, str(PROGRAM.parent), *names]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        words = ("[", "skipped: ")
        return done.returncode, [line for line in done.stdout.splitlines() if line.startswith(words)]

    def test_lines(self):
        self.assertEqual(self.told("A.test_good"), (0, ["[OK] A.test_good"]))
        self.assertEqual(self.told("A.test_nothing"), (1, ["[FAILED] A.test_nothing"]))
        self.assertEqual(self.told("A.test_bad"), (1, ["[FAILED] A.test_bad"]))
        self.assertEqual(self.told("A.test_left_out"), (77, ["skipped: no legs", "[SKIPPED] A.test_left_out"]))
        self.assertEqual(self.told("A.test_good", "B"), (0, ["[OK] A.test_good", "skipped: nothing", "[SKIPPED] B"]))
        self.assertEqual(self.told("B"), (77, ["skipped: nothing", "[SKIPPED] B"]))
        self.assertEqual(self.told("A.test_in_part")[1], ["skipped: no 1; no 2", "[SKIPPED] A.test_in_part"])
        self.assertEqual(self.told("C"), (1, ["[FAILED] C"]))


if __name__ == "__main__":
    suite.main()
