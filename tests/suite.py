# SPDX-License-Identifier: Apache-2.0
"""Code that every test in Python shares: the environment that it sees, its functions as lines that tests/summary.py
counts, and waiting, which tests/watch ends when nothing works any more."""

import atexit
import datetime
import faulthandler
import functools
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = 77  # exit status that ctest reports as skipped


def _start_like_ctest():
    """For a test that is called by hand: neither it nor any program that it starts sees the caller's settings for tern.
    tests/start knows which those are."""
    if "TERN_TEST_STARTED" in os.environ:
        return
    said = subprocess.run([ROOT / "tests" / "start", "env", "-0"], capture_output=True, check=True).stdout
    os.environ.clear()
    os.environ.update(line.split("=", 1) for line in os.fsdecode(said).split("\0") if line)


_start_like_ctest()
faulthandler.enable(sys.__stderr__)  # tests/watch asks a test that hangs where it is


def until(condition):
    """Waits until the condition holds, and returns its value. A condition that never holds is ended by tests/watch, for
    which this sleeps, too."""
    pause = 0.002
    Compared.count += 1
    while not (found := condition()):
        time.sleep(pause)
        pause = min(1.2 * pause, 1)
    return found


def until_asleep(process):
    """Waits until a process neither computes nor asks for a processor: then it waits for something itself."""
    look = [None]

    def rests():
        before, look[0] = look[0], threads_of(process)
        return before == look[0] and all(state == "S" for state, _ in before)

    until(rests)


def threads_of(process):
    """Returns the state of each thread, and how often it had a processor."""
    found = []
    for task in sorted(Path(f"/proc/{process}/task").iterdir()):
        text = (task / "status").read_text()
        turns = re.findall(r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)", text, re.M)
        found.append((re.search(r"^State:\s*(\w)", text, re.M)[1], turns))
    return found


def fetched_models():
    """Returns the folder where scripts/get-model keeps the caller's models."""
    return Path(os.environ["TERN_TEST_MODELS"])


def need(*modules):
    """Ends a test whose packages (tests/oracle/requirements.txt) are missing, before they are imported."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        skip(f"needs {' and '.join(modules)}")


def folder_of_caches(variable):
    """Sets the variable to a folder for data that a library of a test, and the programs that it starts, want to keep.
    The folder is gone when the test ends."""
    folder = tempfile.TemporaryDirectory(prefix="tern-test-")
    atexit.register(folder.cleanup)
    os.environ[variable] = folder.name


def day():
    """The number of today. Tests that take long take another share of what they could try each day."""
    return datetime.date.today().toordinal()


def turn():
    """The number of today's turn, for tests that have one day of three (TERN_TURN_0 in tests/CMakeLists.txt): by the
    day alone they would meet the same share again and again where 3 divides the number of shares."""
    return day() // 3


def of_the_day(items, shares=2, number=None):
    """Today's share of the items: all of them have been taken after so many days, or turns if `number` is turn()."""
    return items[(day() if number is None else number) % shares :: shares]


def skip(reason):
    """Ends a test that cannot run at all."""
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


class Compared:
    """Counts the comparisons of a function: its calls of unittest's assertions, of numpy's where numpy is there, and of
    until()."""

    count = 0

    @classmethod
    def watch(cls, owner, begin):
        """Wraps the functions of these names once, so that their calls are counted."""
        for name in dir(owner):
            of = getattr(owner, name)
            if name.startswith(begin) and callable(of) and not hasattr(of, "is_counted"):
                setattr(owner, name, cls._counted(of))

    @classmethod
    def _counted(cls, of):
        @functools.wraps(of)
        def call(*args, **kwargs):
            cls.count += 1
            return of(*args, **kwargs)

        call.is_counted = True
        return call


class Result(unittest.TextTestResult):
    """Names each function and its result, as tests/summary.py reads them. A function that compares nothing fails."""

    def startTest(self, test):
        self.bad = False
        Compared.watch(unittest.TestCase, "assert")
        if "numpy" in sys.modules:
            Compared.watch(importlib.import_module("numpy.testing"), "assert_")
        Compared.count = 0
        super().startTest(test)

    def addSuccess(self, test):
        if Compared.count:
            super().addSuccess(test)
        else:
            self.addFailure(test, (AssertionError, AssertionError("it passes and has compared nothing"), None))

    def addSubTest(self, test, subtest, error):
        self.bad = self.bad or error is not None
        super().addSubTest(test, subtest, error)

    def addError(self, test, error):
        self.bad = True
        super().addError(test, error)

    def addFailure(self, test, error):
        self.bad = True
        super().addFailure(test, error)

    def stopTest(self, test):
        reasons = [reason for other, reason in self.skipped if getattr(other, "test_case", other) is test]
        tell(name_of(test), self.bad, reasons)
        super().stopTest(test)


def tell(name, bad, reasons):
    """Prints the lines that tests/summary.py reads."""
    if reasons:
        print(f"skipped: {'; '.join(dict.fromkeys(reasons))}")
    print(f"[{'FAILED' if bad else 'SKIPPED' if reasons else 'OK'}] {name}")


def name_of(test):
    return test.id().removeprefix("__main__.").partition(" ")[0]


def run(suite, verbosity=0):
    """Runs a unittest.TestSuite and ends the program: 0, 1, or 77 when none of it could run."""
    first = "TERN_TEST_FIRST" in os.environ  # the first function that fails says enough (tests/mutants)
    runner = unittest.TextTestRunner(sys.stdout, verbosity=verbosity, resultclass=Result, failfast=first)
    result = runner.run(suite)
    # A class or module that skips, or fails, as a whole: none of its tests counts as run.
    groups = [(test, reason) for test, reason in result.skipped if not isinstance(test, unittest.TestCase)]
    for test, reason in groups:
        tell(group_of(test), False, [reason])
    for test, _ in result.errors:
        if not isinstance(test, unittest.TestCase):
            tell(group_of(test), True, [])
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(0 if result.testsRun > len(result.skipped) - len(groups) else SKIPPED)


def group_of(holder):
    """Class, of "setUpClass (__main__.Class)"."""
    return holder.id().partition("(")[2].rstrip(")").removeprefix("__main__.") or holder.id()


def main(argv=None, module="__main__"):
    """unittest.main for these tests: arguments are names of functions; -v tells more."""
    words = (sys.argv if argv is None else argv)[1:]
    names = [word for word in words if not word.startswith("-")]
    loader, target = unittest.TestLoader(), sys.modules[module]
    suite = loader.loadTestsFromNames(names, target) if names else loader.loadTestsFromModule(target)
    run(suite, 2 if "-v" in words else 0)
