# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/compare: the statistics against known answers, files, exit statuses."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BENCH = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(BENCH))
import results  # noqa: E402
import stats  # noqa: E402
import suite  # noqa: E402


class Statistics(unittest.TestCase):
    def test_quantiles_of_tables(self) -> None:
        """Values of every printed table of Student's distribution."""
        known = {1: 12.7062, 2: 4.3027, 4: 2.7764, 10: 2.2281, 30: 2.0423, 1000: 1.9623}
        for freedom, t in known.items():
            self.assertAlmostEqual(stats.t_quantile(0.975, freedom), t, places=4)
        self.assertAlmostEqual(stats.t_quantile(0.95, 5), 2.0150, places=4)

    def test_quantile_of_one_degree_is_a_tangent(self) -> None:
        for p in (0.6, 0.75, 0.99):
            exact = math.tan(math.pi * (p - 0.5))
            self.assertAlmostEqual(stats.t_quantile(p, 1), exact, places=8)

    def test_incomplete_beta(self) -> None:
        self.assertAlmostEqual(stats.incomplete_beta(1, 1, 0.3), 0.3, places=12)
        self.assertAlmostEqual(stats.incomplete_beta(2, 3, 0.5), 0.6875, places=12)  # 11 / 16
        self.assertAlmostEqual(stats.incomplete_beta(0.5, 0.5, 0.5), 0.5, places=12)

    def test_welch_by_hand(self) -> None:
        """Logs 0, 1, 2 and 1, 3: variances of the means 1/3 and 1, freedom (4/3)^2 / (19/18)."""
        e = stats.compare([math.e**x for x in (0, 1, 2)], [math.e**x for x in (1, 3)])
        self.assertAlmostEqual(e.log, 1.0)
        self.assertAlmostEqual(e.variance, 4 / 3)
        self.assertAlmostEqual(e.freedom, (16 / 9) / (1 / 18 + 1))
        half = stats.t_quantile(0.975, e.freedom) * math.sqrt(4 / 3)
        self.assertAlmostEqual(e.low, math.exp(1 - half))
        self.assertAlmostEqual(e.high, math.exp(1 + half))

    def test_swapping_inverts(self) -> None:
        a, b = [1.0, 1.1, 1.3], [2.0, 2.5, 2.2, 2.1]
        there, back = stats.compare(a, b), stats.compare(b, a)
        self.assertAlmostEqual(there.ratio * back.ratio, 1.0)
        self.assertAlmostEqual(there.low * back.high, 1.0)

    def test_geometric_mean(self) -> None:
        e = stats.geometric_mean([stats.compare([1.0, 1.0], [4.0, 4.0]),
                                  stats.compare([1.0, 1.0], [1.0, 1.0])])
        self.assertAlmostEqual(e.ratio, 2.0)
        self.assertEqual((e.low, e.high), (e.ratio, e.ratio))

    def test_interval_covers_as_often_as_it_says(self) -> None:
        """600 pairs of samples of the same distribution: 1 is left out in about 5 % of them."""
        source = random.Random(1)
        missed = 0
        for _ in range(600):
            a = [source.lognormvariate(0, 0.1) for _ in range(5)]
            b = [source.lognormvariate(0, 0.3) for _ in range(7)]
            e = stats.compare(a, b)
            missed += not e.low <= 1.0 <= e.high
        self.assertTrue(0.03 <= missed / 600 <= 0.07, missed)


class Labels(unittest.TestCase):
    def test_values_may_have_blanks(self) -> None:
        label = results.parse_label("op=gemv unit=int8 codes isa=avx2")
        self.assertEqual(label, {"op": "gemv", "unit": "int8 codes", "isa": "avx2"})

    def test_nothing(self) -> None:
        self.assertEqual(results.parse_label(""), {})


def run_of(name: str, cpu: float, real: float = 99.0) -> dict:
    return {"name": name, "run_name": name, "run_type": "iteration", "cpu_time": cpu,
            "real_time": real, "time_unit": "us"}


class Program(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="tern-compare-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def write(self, file: str, runs: list[dict]) -> str:
        path = self.folder / file
        path.write_text(json.dumps({"context": {}, "benchmarks": runs}), encoding="utf-8")
        return str(path)

    def compare(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, str(BENCH / "compare"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def pair(self, factor: float, name: str = "k") -> tuple[str, str]:
        a = [run_of(name, 10 * (1 + 0.001 * i)) for i in range(5)]
        b = [run_of(name, 10 * factor * (1 + 0.001 * i)) for i in range(5)]
        return self.write("a.json", a), self.write("b.json", b)

    def test_slower_fails_above_the_threshold_only(self) -> None:
        a, b = self.pair(1.08)
        self.assertEqual(self.compare(a, b).returncode, 0)
        self.assertEqual(self.compare(a, b, "--fail-above", "10%").returncode, 0)
        result = self.compare(a, b, "--fail-above", "5%")
        self.assertEqual(result.returncode, 1)
        self.assertIn("k takes 1.080 times as long", result.stderr)
        self.assertIn("slower", result.stdout)

    def test_what_failed_in_b_fails(self) -> None:
        """A benchmark without an answer did not become slower, but it is not as good as before either."""
        a, b = self.pair(1.0)
        data = json.loads(Path(b).read_text(encoding="utf-8"))
        data["benchmarks"].append({"name": "n", "run_name": "n", "error_occurred": True, "error_message": "wrong"})
        Path(b).write_text(json.dumps(data), encoding="utf-8")
        self.assertEqual(self.compare(a, b).returncode, 0)
        result = self.compare(a, b, "--fail-above", "5%")
        self.assertEqual(result.returncode, 1)
        self.assertIn("n failed: wrong", result.stderr)

    def test_faster_never_fails(self) -> None:
        result = self.compare(*self.pair(0.5), "--fail-above", "0")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("faster", result.stdout)

    def test_noise_is_no_regression(self) -> None:
        a = self.write("a.json", [run_of("k", t) for t in (10, 14, 9)])
        b = self.write("b.json", [run_of("k", t) for t in (12, 16, 9)])
        result = self.compare(a, b, "--fail-above", "5%")
        self.assertEqual(result.returncode, 0)
        self.assertNotIn("slower", result.stdout)

    def test_the_wall_counts_where_the_name_says_so(self) -> None:
        name = "k/real_time/threads:2"
        a = self.write("a.json", [run_of(name, 5, real) for real in (10, 10.1)])
        b = self.write("b.json", [run_of(name, 5, real) for real in (20, 20.2)])
        self.assertIn(" 2.000 ", self.compare(a, b).stdout)

    def test_aggregates_are_no_repetitions(self) -> None:
        a, b = self.pair(1.0)
        mean = run_of("k", 1e6) | {"run_type": "aggregate", "aggregate_name": "mean"}
        data = json.loads(Path(b).read_text(encoding="utf-8"))
        data["benchmarks"].append(mean)
        Path(b).write_text(json.dumps(data), encoding="utf-8")
        self.assertIn(" 1.000 ", self.compare(a, b).stdout)

    def told(self, file: str, **context: object) -> str:
        """Makes two runs of k with everything that a comparison document needs to know."""
        told = {"date": "2026-11-22T18:00:00+00:00", "executable": "bench_kernels", "num_cpus": 2,
                "load_avg": [0.5], "processor": "Any", "architecture": "x86_64", "os": "Linux 6.1",
                "tern_version": "0.1.0", "tern_commit": "abc", "program_sha256": "0" * 64}
        path = self.write(file, [run_of("k", 1), run_of("k", 2)])
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        Path(path).write_text(json.dumps(data | {"context": told | context}), encoding="utf-8")
        return path

    def test_document(self) -> None:
        """tests/e2e/test_documents.py holds the document to lab/verify-figures; this test shows where it is refused."""
        out = self.folder / "out.json"
        a, b = self.told("a.json"), self.told("b.json")
        self.assertEqual(self.compare(a, b, "--out", str(out)).returncode, 0)
        document = json.loads(out.read_text(encoding="utf-8"))
        self.assertEqual((document["method"], document["a"]["name"]), ("independent", "a.json"))
        result = self.compare(a, b, "--out", str(out))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("exists (--force replaces it)", result.stderr)
        self.assertEqual(self.compare(a, b, "--out", str(out), "--force").returncode, 0)
        cases = {
            self.told("old.json", program_sha256=None): "lacks program_sha256",
            self.told("other.json", processor="Other"): "is about one machine",
            self.told("time.json", date="yesterday"): "'date'",
        }
        for other, message in cases.items():
            none = self.folder / "none.json"
            result = self.compare(a, other, "--out", str(none))
            self.assertEqual(result.returncode, 2, other)
            self.assertIn(message, result.stderr)
            self.assertFalse(none.exists())
        self.assertEqual(self.compare(a, b, "--out", str(self.folder / "no" / "d")).returncode, 1)

    def test_complaints(self) -> None:
        once = self.write("once.json", [run_of("k", 1)])
        twice = self.write("twice.json", [run_of("k", 1), run_of("k", 2)])
        other = self.write("other.json", [run_of("m", 1), run_of("m", 2)])
        empty = self.write("empty.json", [])
        broken = self.folder / "broken.json"
        broken.write_text("{", encoding="utf-8")
        cases = {
            (once, twice): "k was run 1 time",
            (twice, other): "no benchmark in common",
            (twice, empty): "no benchmark in common",
            (twice, str(broken)): "not JSON",
            (twice, str(self.folder / "none.json")): "No such file",
            (self.write("zero.json", [run_of("k", 0)] * 2), twice): "cpu_time is 0",
        }
        for files, message in cases.items():
            result = self.compare(*files)
            self.assertEqual(result.returncode, 2, files)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)
        self.assertEqual(self.compare(twice, twice, "--fail-above", "much").returncode, 2)


if __name__ == "__main__":
    suite.main()
