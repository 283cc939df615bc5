# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/compare-engines with made-up engines: order, pairs, intervals, refusals, the file."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(BENCH))
import sealing  # noqa: E402
import stats  # noqa: E402
import turns  # noqa: E402
import suite  # noqa: E402

# This program prints the next speed of a list, as tern bench does or as another engine might, and notes its turn.
ENGINE = """
import json, sys
folder, name, form, *speeds = sys.argv[1:]
with open(f"{folder}/log", "a+") as log:
    log.seek(0)
    n = log.read().count(name)
    log.write(name)
speed = float(speeds[n % len(speeds)])
if form == "json":
    print(json.dumps({"generated_tokens": 8, "prompt_tokens": 0, "prefill_tps": 0, "decode_tps": speed}))
else:
    print("Once upon a time", file=sys.stderr)
    print(f"first: 1.0 tokens per second\\nall: {speed} tokens per second")
"""
OTHER = r"decode_tps=([0-9.]+) tokens per second"


class Pairs(unittest.TestCase):
    def test_by_hand(self) -> None:
        """Logs of the ratios 0, 1, 2: mean 1, variance of the mean 1/3, two degrees of freedom."""
        e = stats.compare_pairs([1.0, 5.0, 9.0], [1.0, 5.0 * math.e, 9.0 * math.e**2])
        self.assertAlmostEqual(e.log, 1.0)
        self.assertAlmostEqual(e.variance, 1 / 3)
        self.assertEqual(e.freedom, 2)
        self.assertAlmostEqual(e.low, math.exp(1 - 4.302653 * math.sqrt(1 / 3)), places=5)

    def test_what_both_share_drops_out(self) -> None:
        a = [10.0, 20.0, 5.0, 17.0]
        e = stats.compare_pairs(a, [1.5 * x for x in a])
        self.assertAlmostEqual(e.ratio, 1.5)
        self.assertAlmostEqual(e.high, 1.5)
        self.assertGreater(stats.compare(a, [1.5 * x for x in a]).high, 2.0)  # unpaired: no idea


class Reading(unittest.TestCase):
    def test_last_object(self) -> None:
        text = '{"a": 1}\nwords\n{"a": 2}\n{broken\n[3]\n'
        self.assertEqual(turns.last_object(text), {"a": 2})
        self.assertEqual(turns.last_object("words"), {})


class Program(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="tern-engines-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        (self.folder / "engine.py").write_text(ENGINE, encoding="utf-8")

    def engine(self, name: str, form: str, *speeds: float) -> str:
        words = [sys.executable, self.folder / "engine.py", self.folder, name, form, *speeds]
        return shlex.join(map(str, words))

    def compare(self, *arguments: object) -> subprocess.CompletedProcess:
        command = [sys.executable, str(BENCH / "compare-engines"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_two_builds(self) -> None:
        out = self.folder / "out.json"
        a = self.engine("a", "json", 99, 10, 20, 10)  # the first one is the warm-up
        b = self.engine("b", "json", 1, 12, 24, 12)
        result = self.compare("--a", a, "--b", b, "--runs", 3, "--out", out, "--a-name", "old",
                              "--a-version", f"{sys.executable} --version")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("1.200  [1.200, 1.200]", result.stdout)
        self.assertEqual((self.folder / "log").read_text(), "baab" + "baab")
        self.assertRegex(out.read_text(), r"\A[^\n]+\n\Z")  # as tern writes documents
        found = json.loads(out.read_text())
        self.assertEqual(found["a"]["runs"], {"decode_tps": [10, 20, 10]})
        self.assertEqual(found["b"]["medians"], {"decode_tps": 12})
        self.assertEqual(shlex.split(found["b"]["command"])[2:], [self.folder.name, *shlex.split(b)[3:]])
        self.assertEqual(found["a"]["name"], "old")
        self.assertIn("Python 3", found["a"]["version"])
        self.assertAlmostEqual(found["ratios"]["decode_tps"]["ratio"], 1.2)
        self.assertAlmostEqual(found["ratios"]["decode_tps"]["median"], 1.2)
        self.assertGreater(found["machine"]["cores"], 0)
        self.assertNotIn(str(self.folder), out.read_text())
        self.assertEqual(found, sealing.seal(found))
        self.assertEqual(found["a"]["program_sha256"], sealing.file_sha256(Path(sys.executable)))
        self.assertEqual([p.name for p in self.folder.glob(".*")], [])  # nothing left behind

    def test_another_engine(self) -> None:
        result = self.compare("--a", self.engine("a", "text", 10), "--a-figure", OTHER, "--a-answer",
                              "Once upon", "--b", self.engine("b", "json", 16), "--runs", 2)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"decode_tps +10\.00 +16\.00 +1\.600 ")

    def test_fail_below(self) -> None:
        a, b = self.engine("a", "json", 10, 10.1), self.engine("b", "json", 12, 12.2)
        both = ("--a", a, "--b", b, "--runs", 4)
        self.assertEqual(self.compare(*both, "--fail-below", 1.1).returncode, 0)
        result = self.compare(*both, "--fail-below", 1.6)
        self.assertEqual(result.returncode, 1)
        self.assertIn("decode_tps: B is 1.2", result.stderr)

    def test_noise_is_no_failure(self) -> None:
        a, b = self.engine("a", "json", 10, 14, 9), self.engine("b", "json", 9, 10, 14)
        result = self.compare("--a", a, "--b", b, "--runs", 3, "--warm-up", 0, "--fail-below", 1.1)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_no_answer(self) -> None:
        good = self.engine("b", "json", 10)
        silent = shlex.join([sys.executable, "-c", "pass"])
        wrong = shlex.join([sys.executable, "-c", "import sys; sys.exit('out of luck')"])
        slow = shlex.join([sys.executable, "-c", "import time; time.sleep(30)"])
        nothing = shlex.join([sys.executable, "-c", 'print(\'{"generated_tokens": 0}\')'])
        cases = [
            (["--a", silent], "printed no JSON"),
            (["--a", nothing], "evaluated a token"),
            (["--a", wrong], "status 1: out of luck"),
            (["--a", "/no/such/engine"], "No such file"),
            (["--a", slow, "--timeout", 0.5], "took more than 0.5 s"),
            (["--a", self.engine("a", "text", 10), "--a-figure", "decode_tps=(x)"], "no decode_tps"),
            (["--a", self.engine("a", "text", 0), "--a-figure", OTHER], "decode_tps is 0"),
            (["--a", self.engine("a", "text", 10), "--a-figure", OTHER, "--a-answer", "42"],
             "gave no answer"),
            (["--a", self.engine("a", "text", 9), "--a-figure", OTHER.replace("decode", "other")],
             "no figure in common"),
        ]
        out = self.folder / "out.json"
        for arguments, message in cases:
            result = self.compare(*arguments, "--a-name", "left", "--b", good, "--runs", 2, "--out", out)
            self.assertEqual(result.returncode, 1, message)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertFalse(out.exists())

    def test_wrong_use(self) -> None:
        good = self.engine("b", "json", 10)
        for extra in (["--runs", 1], ["--runs", "x"], ["--a-figure", "(.*)"], ["--a-figure", "x=a"],
                      ["--a-answer", "("], ["--warm-up", -1]):
            self.assertEqual(self.compare("--a", good, "--b", good, *extra).returncode, 2, extra)
        self.assertEqual(self.compare("--a", good).returncode, 2)


if __name__ == "__main__":
    suite.main()
