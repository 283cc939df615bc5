# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/speed-plots on the committed receipts."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECEIPTS = ROOT / "docs" / "receipts"
CONTEXTS = RECEIPTS / "bitnet-2b-avx2-contexts-f16.json"
BATCHES = RECEIPTS / "bitnet-2b-avx2-batches.json"


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
class SpeedPlots(unittest.TestCase):
    def draw(self, out, *receipts):
        command = [sys.executable, ROOT / "tools" / "speed-plots", out, *receipts]
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

    def test_refusals(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out.png"
            other = self.draw(out, f"a={ROOT / 'ci' / 'inference.json'}")
            self.assertEqual((other.returncode, out.exists()), (1, False))
            self.assertIn("no output of tern bench", other.stderr)
            self.assertEqual(self.draw(out, "a=missing.json").returncode, 1)
            self.assertEqual(self.draw(out, "missing").returncode, 2)


if __name__ == "__main__":
    unittest.main()
