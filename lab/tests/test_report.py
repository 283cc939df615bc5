# SPDX-License-Identifier: Apache-2.0
"""Tests of lab/report on a small result: the structure of the page, its files, and the parts that are left out.

The page is tested everywhere; the plots where matplotlib is installed.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import tomllib
import unittest
from html.parser import HTMLParser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import suite  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "bench")]
import known_numbers  # noqa: E402
import report_page  # noqa: E402
import results  # noqa: E402

HAVE_PLOTS = importlib.util.find_spec("matplotlib") is not None


def runs(row: str, level: str, label: str, macs: float, count: int = 2) -> list[dict]:
    name = f"{row}/{level}/64x64"
    run = {"name": name, "run_name": name, "run_type": "iteration", "real_time": 2.0,
           "cpu_time": 1.5, "time_unit": "us", "label": f"{label} shape=64x64 level={level}",
           "bytes": 2e9, "read_roof": 2e10, "read_percent": 10.0}
    if macs:
        run |= {"macs": macs, "weights": macs, "peak_roof": 4e10, "peak_percent": macs / 4e8}
    return [run | {"cpu_time": 1.5 + i} for i in range(count)]


def fixture() -> dict:
    """Two instruction sets and a format that no table has, and a benchmark that failed."""
    def label(op: str, fmt: str, isa: str) -> str:
        return f"op={op} format={fmt} isa={isa} tokens=1 threads=1 unit=int8 codes"

    benchmarks = runs("tern_gemv_zz9_wide", "cache", label("gemv", "zz9", "wide"), 3e10)
    benchmarks += runs("tern_gemv_zz9_wide", "memory", label("gemv", "zz9", "wide"), 1e10)
    benchmarks += runs("tern_gemv_zz9_slow", "cache", label("gemv", "zz9", "slow"), 1e9)
    benchmarks += runs("tern_gemm_i2_s_wide", "cache", label("gemm", "i2_s", "wide"), 3.5e10)
    benchmarks += runs("tern_add_wide", "l1", label("add", "none", "wide"), 0)
    failed = {"name": "tern_bad", "run_name": "tern_bad", "error_occurred": True,
              "error_message": "differs from the <reference>"}
    context = {"processor": "Fast & <Loud>", "isas": "slow wide", "date": "2026-01-02",
               "read memory": "20.00", "peak wide int8 codes": "40.00", "load_avg": [0.5, 1, 2]}
    return {"context": context, "benchmarks": [*benchmarks, failed]}


class Page(HTMLParser):
    """Collects the parts of a page that tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.broken: list[str] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.broken.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.tags if name == tag]


class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="tern-report-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.json = self.folder / "in.json"
        self.json.write_text(json.dumps(fixture()), encoding="utf-8")

    def check_page(self, text: str) -> Page:
        page = Page(text)
        self.assertEqual((page.broken, page.open), ([], []))
        ids = [a["id"] for _, a in page.tags if "id" in a]
        self.assertEqual(len(ids), len(set(ids)))
        for tag, attributes in page.tags:
            for key in ("src", "href", "xlink:href"):
                if key in attributes:
                    self.assertTrue(attributes[key].startswith("#"), (tag, attributes))
        for word in ("@import", "url(http", "<script"):
            self.assertNotIn(word, text)
        return page


class PageTests(InFolder):
    def test_page_without_plots(self) -> None:
        page = self.check_page(report_page.page(results.load(str(self.json)), []))
        text = " ".join(page.text)
        self.assertIn("Fast & <Loud>", text)  # escaped in the file, so it is text here
        self.assertIn("differs from the <reference>", text)
        self.assertEqual(len(page.all("tr")), 1 + 5 + 2)  # head, benchmarks, limits
        self.assertEqual(text.count("Rooflines"), 0)

    def test_shares_are_bars(self) -> None:
        text = report_page.page(results.load(str(self.json)), [])
        self.assertIn('style="--share:75%">75 %<', text)  # 3e10 of 4e10
        self.assertEqual(text.count("--share:10%"), 5)


class KnownNumbersTests(unittest.TestCase):
    """Rows M153 to M157, from counters."""

    @staticmethod
    def found(*kernels: tuple[str, str, str, float, float]) -> results.Results:
        found: dict[str, results.Benchmark] = {}
        for weights, isa, level, macs, percent in kernels:
            name = f"tern_gemv_{weights}_16x1_{isa}/{level}/64x64"
            label = (f"op=gemv format=i2_s isa={isa} shape=64x64 tokens=1 level={level} threads=1 "
                     "unit=int8 codes")  # fmt: skip
            run = {"run_name": name, "cpu_time": 1.0, "time_unit": "us", "label": label,
                   "macs": macs, "bytes": macs / 4, "read_percent": percent, "peak_percent": 60.0, "read_roof": 2.5e9}
            results.add_run("x", run, found)
        return results.Results("x", {}, found, {})

    def verdict(self, row: str, found: results.Results) -> known_numbers.Verdict:
        verdicts = known_numbers.verdicts(known_numbers.lines(found))
        self.assertEqual([v.row for v in verdicts], ["M153", "M154", "M155", "M156", "M157"])
        return next(v for v in verdicts if v.row == row)

    def test_met(self) -> None:
        found = self.found(("tl2r16", "scalar", "cache", 1e9, 1), ("tl2r16", "avx2", "cache", 8e9, 9),
                           ("tl2r16", "avx2", "memory", 8e9, 85))  # fmt: skip
        v = self.verdict("M157", found)
        self.assertTrue(v.met)
        self.assertIn("8 times scalar, 85 % of the bandwidth", v.text)
        line = known_numbers.line(found, "tl2r16", "avx2")
        self.assertEqual((line.intensity, line.speed, line.bandwidth, line.peak), (8, 8, 85, 60))

    def test_not_met(self) -> None:
        slow = self.found(("tl2r16", "scalar", "cache", 1e9, 1), ("tl2r16", "avx2", "cache", 7.9e9, 9),
                          ("tl2r16", "avx2", "memory", 8e9, 85))  # fmt: skip
        far = self.found(("tl2r16", "scalar", "cache", 1e9, 1), ("tl2r16", "avx2", "cache", 8e9, 9),
                         ("tl2r16", "avx2", "memory", 8e9, 84))  # fmt: skip
        self.assertFalse(self.verdict("M157", slow).met)
        self.assertFalse(self.verdict("M157", far).met)
        self.assertIn("80 % of that bandwidth: its instructions", self.verdict("M157", far).text)

    def test_not_measured(self) -> None:
        found = self.found(("i2_s", "avx2", "cache", 4e9, 9))
        for row in ("M153", "M155", "M156", "M157"):
            self.assertFalse(self.verdict(row, found).met)
        self.assertIn("not measured", self.verdict("M156", found).text)
        self.assertIn("8 operations for each byte", self.verdict("M154", found).text)
        self.assertFalse(self.verdict("M154", found).met)


class ProgramTests(InFolder):
    def report(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, str(ROOT / "lab" / "report"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    @unittest.skipUnless(HAVE_PLOTS, "needs matplotlib")
    def test_report(self) -> None:
        out = self.folder / "out"
        result = self.report(str(out), str(self.json))
        self.assertEqual((result.returncode, result.stderr), (1, ""))  # one benchmark failed
        page = self.check_page((out / "report.html").read_text(encoding="utf-8"))
        pictures = sorted(p.stem for p in out.glob("*.png"))
        self.assertEqual(pictures, ["bars-gemm-from-cache", "bars-gemv-from-cache",
                                    "bars-gemv-from-memory-64x64", "roofline-slow",
                                    "roofline-wide"])
        for picture in out.glob("*.png"):
            self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        drawn = page.all("svg")
        self.assertEqual(len(drawn), len(pictures))
        for svg in drawn:
            self.assertEqual(svg["role"], "img")
            self.assertGreater(len(svg["aria-label"]), 30)
            self.assertIn("viewbox", svg)
        text = " ".join(page.text)
        for word in ("zz9", "Roofline of wide", "memory, 20 GB/s", "int8 codes, 40 G/s"):
            self.assertIn(word, text)

    @unittest.skipUnless(HAVE_PLOTS, "needs matplotlib")
    def test_pictures_explain_themselves(self) -> None:
        """Each plot has title and machine, explains filled and open points, and shows formats in families and by
        name."""
        import report_plots

        plots = {plot.name: plot.svg for plot in report_plots.draw_all(results.load(str(self.json)))}
        for name, svg in plots.items():
            self.assertIn("Fast &amp; &lt;Loud&gt;", svg, name)
            self.assertIn("Roofline of" if name.startswith("roofline") else "from ", svg)
        for text in ("filled: from the caches", "open: from memory", "ternary", "other", ">i2_s<", ">zz9<"):
            self.assertIn(text, plots["roofline-wide"])
        table = tomllib.loads((ROOT / "kernels" / "formats.toml").read_text(encoding="utf-8"))
        formats = [name for name, format in table["format"].items() if "layout" in format]
        self.assertIn("iq2_s", formats)
        self.assertEqual([f for f in formats if report_plots.family_of(f) == "other"], [])
        self.assertLessEqual(len(report_plots.FAMILIES) + 1, len(report_plots.COLOURS))

    def test_spread_out(self) -> None:
        if not HAVE_PLOTS:
            self.skipTest("needs matplotlib")
        import report_plots

        placed = report_plots.spread_out([0.0, 0.01, 0.02, 1.0], 0.1)
        self.assertTrue(all(b - a > 0.0999 for a, b in zip(placed, placed[1:])))
        self.assertEqual(report_plots.spread_out([], 0.1), [])

    @unittest.skipUnless(HAVE_PLOTS, "needs matplotlib")
    def test_same_input_same_files(self) -> None:
        for name in ("a", "b"):
            self.report(str(self.folder / name), str(self.json))
        for path in (self.folder / "a").iterdir():
            other = self.folder / "b" / path.name
            self.assertEqual(path.read_bytes(), other.read_bytes(), path.name)

    def test_some_of_a_result(self) -> None:
        """--filter takes benchmarks of a result, with all repetitions; the file says of how many, and has one line."""
        whole, source = results.load(str(self.json)), self.json
        for name, count in (("zz9_wide/|bad", 2), ("zz9_wide/memory", 1)):
            out = self.folder / f"kept-{count}"
            self.report(str(out), str(source), "--filter", name)  # fails without matplotlib, after it
            source = out / "bench.json"
            self.assertRegex(source.read_text(encoding="utf-8"), r"\A[^\n]+\n\Z")
            kept = results.load(str(source))
            self.assertEqual(len(kept.benchmarks), count)
            self.assertEqual({name: whole.benchmarks[name] for name in kept.benchmarks}, kept.benchmarks)
            self.assertEqual((kept.context["measured"], kept.context["kept"]), (6, name))
            self.assertEqual(kept.failed, whole.failed if "bad" in name else {})
        before = source.read_bytes()
        result = self.report(str(source.parent), str(source), "--filter", "none")
        self.assertEqual(result.returncode, 1)
        self.assertIn("would replace the whole result by a part of it", result.stderr)
        self.assertEqual(source.read_bytes(), before)

    def test_complaints(self) -> None:
        empty = self.folder / "empty.json"
        empty.write_text('{"benchmarks": []}', encoding="utf-8")
        cases = {
            (str(empty),): "holds no benchmark",
            (str(self.folder / "none.json"),): "No such file",
            ("--program", str(self.folder / "none")): "does not exist: build it",
        }
        for arguments, message in cases.items():
            result = self.report(str(self.folder / "out"), *arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    suite.folder_of_caches("MPLCONFIGDIR")  # matplotlib finds fonts once
    suite.main()
