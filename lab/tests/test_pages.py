# SPDX-License-Identifier: Apache-2.0
"""Tests that lab/pages makes figures in pages which follow the receipts."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import suite  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "bench")]
import page_figures  # noqa: E402
import page_tables  # noqa: E402

SET = "amd-epyc-zen3-avx2"


PERFORMANCE = page_figures.DOCS / "performance.md"
PRECISION = page_figures.DOCS / "precision.md"


class Page(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="tern-page-")
        self.addCleanup(temporary.cleanup)
        self.receipts = Path(temporary.name) / "receipts"
        shutil.copytree(page_tables.RECEIPTS, self.receipts)

    def made(self) -> str:
        with mock.patch.object(page_tables, "RECEIPTS", self.receipts):
            return page_figures.marked(PERFORMANCE.read_text())

    def change(self, name: str, edit) -> None:
        path = self.receipts / SET / f"{name}.json"
        document = json.loads(path.read_text())
        edit(document)
        path.write_text(json.dumps(document))

    def check_perplexity(self, name, shown, refused):
        """A receipt's perplexity of 987.654 is shown as such; a receipt with another (part, key, value) is refused."""
        path = self.receipts / page_tables.PRECISION / f"{name}.json"
        document = json.loads(path.read_text())
        page = PRECISION.read_text()
        part, key, value = refused
        with mock.patch.object(page_tables, "RECEIPTS", self.receipts):
            document["perplexity"]["value"] = 987.654
            path.write_text(json.dumps(document))
            self.assertIn(shown, page_figures.marked(page))
            document[part][key] = value
            path.write_text(json.dumps(document))
            self.assertRaises(page_tables.PageError, page_figures.marked, page)

    def test_precision(self):
        """Another perplexity in a receipt changes the one on the page; another text is refused."""
        self.check_perplexity("smollm2-int4-64-perplexity", "| 987.654 |", ("perplexity", "text_sha256", "0" * 64))

    def test_activations(self):
        """Rounded activations have a table of their own, and documents measured with others are refused."""
        self.check_perplexity("smollm2-int4-32-act-fp8-perplexity", "| fp8, e4m3 | 987.654 |", ("run", "activations", "bf16"))

    def test_figures_come_from_the_receipts(self):
        """Another figure in a receipt changes the one on the page, in tables and in prose."""
        def slower(document):
            document["benchmark"]["depths"][3]["decode_tps"] = 12.34
            document["benchmark"]["decode_tps"] = 56.78

        self.change("bitnet-2b-contexts-f16", slower)
        self.change("comparison-bitnet.cpp-1thread", lambda d: d["ratios"]["decode_tps"].update(ratio=9.87))
        made = page_figures.MARK.sub("", self.made())
        for text in ("| 56.8 |", "4070: 12.3", "decoding runs at 12.3 tokens/s", "| 9.87 ["):
            self.assertIn(text, made)
            self.assertNotIn(text, page_figures.MARK.sub("", PERFORMANCE.read_text()))

    def test_one_depth(self):
        """A line of the table of models decodes after its prompt, where a document has that, and says how long the
        prompt was."""
        for machine in page_tables.sets():
            lines = [line.strip("| ").split(" | ") for line in page_tables.models_table(machine).splitlines()]
            place = lines[0].index("decoded after")
            self.assertEqual(len({line[place] for line in lines[2:]}), 1, machine)

    def test_interval_of_few_windows(self):
        """Student's: with two windows the factor is 12.706, not 1.96."""
        d, base = ({"perplexity": {"window_nll": values}} for values in ([1.0, 1.2], [1.0, 1.0]))
        self.assertEqual(page_tables.paired(d, base), f"{math.exp(0.1):.3f} [{math.exp(0.1 - 1.27062):.3f}, {math.exp(0.1 + 1.27062):.3f}]")

    def test_texts_that_stay(self):
        """The text of each perplexity is in the tree, so anybody with the model can measure it again."""
        digest = hashlib.sha256((ROOT / "lab" / "text" / "held-out.txt").read_bytes()).hexdigest()
        found = page_tables.documents(page_tables.PRECISION, "perplexity")
        self.assertGreater(len(found), 20)
        for name, document in found.items():
            self.assertEqual(document["perplexity"]["text_sha256"], digest, name)

    def test_machines_side_by_side(self):
        """A second folder becomes a section of its own, with the documents that it has."""
        other = self.receipts / "other-machine"
        other.mkdir()
        name = "bitnet-2b-2threads"
        document = json.loads((self.receipts / SET / f"{name}.json").read_text())
        document["machine"] = {"cpu": "Some Processor", "cores": 7, "os": "Linux 1", "instruction_sets": ["scalar"]}
        document["versions"] = {"tern": "9.9.9", "compiler": "cc", "commit": "abc"}
        document["origin"]["note"] = ""
        document["compute_path"] = "real"
        (other / f"{name}.json").write_text(json.dumps(document))
        section = self.made().partition("### On other-machine\n")[2].partition("\n### ")[0]
        for text in ("Some Processor, 7 cores", "compute path: real", "*Determinism*", "`tern_gemv_i2_s_16x1_avx2`",
                     "tern 9.9.9, commit abc", f"receipts/other-machine/{name}.json"):
            self.assertIn(text, section)
        self.assertNotIn("Beside other programs", section)

    def test_kernels_of_two_reports(self):
        """Each table has the rows of its own report: AVX2's alone, and those that AVX-512 selects."""
        for report, isas in (("amd-epyc-zen3-avx2", {"avx2"}), ("amd-epyc-zen5-avx512", {"avx512", "avx512vnni", "avx512vbmi"})):
            self.assertEqual({b.label.get("isa") for b in page_tables.kernel_rows(report)}, isas)
            found = page_tables.kernel("gemv", "i2_s", "cache", report=report)
            line = next(t for t in page_tables.kernels_table(report).splitlines() if t.startswith("| i2_s "))
            self.assertEqual(line.split(" | ")[1], f"{found.figure('macs') / 1e9:.0f}")
            self.assertIn(f"\n{line}\n", self.made())

    def test_tiles_beside_vectors(self):
        """Each line has both rows of a format, and the ratio of their speeds."""
        lines = page_tables.tiles_table().splitlines()[2:]
        self.assertGreaterEqual(len(lines), 12)
        for line in lines:
            weights, tiles, vectors, ratio = line.strip("| ").split(" | ")
            found = {b.label["isa"]: b.figure("macs") / 1e9 for b in page_tables.kernel_rows("intel-xeon-amx")
                     if (b.label.get("op"), b.weights) == ("gemm", weights)}
            other = next(speed for isa, speed in found.items() if isa != "amx")
            self.assertEqual((tiles, vectors, ratio),
                             (f"{found['amx']:,.0f}", f"{other:.0f}", f"{found['amx'] / other:.1f}"))
            self.assertIn(f"\n{line}\n", self.made())

    def test_what_is_not_there(self):
        with self.assertRaises(page_tables.PageError):
            page_figures.value('figure("none", "benchmark.decode_tps")')
        with self.assertRaises(page_tables.PageError):
            page_figures.value(f'figure("{SET}/bitnet-2b-2threads", "benchmark.none")')


if __name__ == "__main__":
    suite.main()
