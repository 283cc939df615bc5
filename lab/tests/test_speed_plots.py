# SPDX-License-Identifier: Apache-2.0
"""Tests of lab/speed-plots on the committed receipts."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import suite  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RECEIPTS = ROOT / "docs" / "receipts" / "amd-epyc-zen3-avx2"
CONTEXTS = RECEIPTS / "bitnet-2b-contexts-f16.json"
BATCHES = RECEIPTS / "bitnet-2b-batches.json"


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
class SpeedPlots(unittest.TestCase):
    def draw(self, out, *receipts):
        command = [sys.executable, ROOT / "lab" / "speed-plots", out, *receipts]
        return subprocess.run(command, capture_output=True, text=True)

    def test_picture(self):
        """Sweeps of several receipts make one picture; one more changes it."""
        with tempfile.TemporaryDirectory() as folder:
            one, two = Path(folder) / "one.png", Path(folder) / "two.png"
            for out, receipts in ((one, f"{CONTEXTS}"), (two, f"{CONTEXTS},{BATCHES}")):
                done = self.draw(out, f"a={receipts}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(out.read_bytes()[:4], b"\x89PNG")
            self.assertNotEqual(one.read_bytes(), two.read_bytes())

    def test_stages(self):
        """A receipt with stages adds a row of pictures, also behind one without."""
        spec = importlib.util.spec_from_loader(
            "speed_plots", importlib.machinery.SourceFileLoader("speed_plots", str(ROOT / "lab" / "speed-plots")))
        plots = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(plots)
        work = {"qkv": 2.0, "rope": 0.05, "down": 5.0, "scan": 0.0}
        kind = {"stages": [{"stage": name, "work_ms": ms} for name, ms in work.items()],
                "wait_ms": 0.92, "outside_ms": 0.03, "whole_ms": 8.0}
        runs = {"old": {}, "new": {"stages": {"decode": kind}}}
        self.assertEqual(plots.stage_bars(runs, "prefill"), {})
        title, machine = plots.title_of({"a": plots.load(BATCHES)})
        self.assertEqual(title, "What a token costs: bitnet-2b.gguf")
        self.assertEqual(machine, "measured on amd-epyc-zen3-avx2")  # imported: the folder says it
        bars = plots.stage_bars(runs, "decode")["new"]
        self.assertEqual(list(bars), ["qkv", "down", "waits", "all other"])
        self.assertAlmostEqual(sum(bars.values()), kind["whole_ms"])
        self.assertAlmostEqual(bars["all other"], 0.08)
        with tempfile.TemporaryDirectory() as folder:
            staged = Path(folder) / "staged.json"
            document = json.loads(BATCHES.read_text())
            document["benchmark"]["stages"] = {"decode": kind}
            staged.write_text(json.dumps(document))
            heights = []
            for out, receipts in (("two.png", f"{CONTEXTS},{BATCHES}"), ("three.png", f"{CONTEXTS},{staged}")):
                done = self.draw(Path(folder) / out, f"a={receipts}")
                self.assertEqual(done.returncode, 0, done.stderr)
                heights.append(int.from_bytes((Path(folder) / out).read_bytes()[20:24], "big"))
            self.assertEqual(2 * heights[1], 3 * heights[0])

    def test_refusals(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.png"
            other = self.draw(out, f"a={ROOT / 'ci' / 'inference.json'}")
            self.assertEqual((other.returncode, out.exists()), (1, False))
            self.assertIn("neither a document of tern bench", other.stderr)
            self.assertEqual(self.draw(out, "a=missing.json").returncode, 1)
            self.assertEqual(self.draw(out, "missing").returncode, 2)


if __name__ == "__main__":
    suite.folder_of_caches("MPLCONFIGDIR")  # matplotlib finds fonts once
    suite.main()
