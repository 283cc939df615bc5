# SPDX-License-Identifier: Apache-2.0
"""The receipt of continuous integration: of the model that ships, written here, replayed here, and
the one in the repository."""

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import common
import receipt_tools as tools
import weights
from common import ROOT, runnable_isas, tern_text

COMMITTED = ROOT / "ci" / "inference.json"
GATE = ROOT / "scripts" / "receipt-gate"
# `make receipt` does the same.
RUN = ["run", "-m", "models/tern-small.gguf", "-p", "Once upon a time", "-n", 64, "--temp", 0.7]
RUN += ["--top-p", 0.95, "--seed", 42, "--deterministic", "--strict", "--ignore-eos"]


def in_root(*args):
    """A run from the root of the source, where the receipt's model path leads somewhere."""
    command = [str(word) for word in common.command(*args)]
    return subprocess.run(
        command, cwd=ROOT, env=common.clean_environment(), capture_output=True, text=True
    )


class Inference(common.TernTest):
    @classmethod
    def setUpClass(cls):
        common.small_model()
        folder = Path(common.command()[0]).parent / "ci"
        folder.mkdir(exist_ok=True)
        cls.path = folder / "inference.json"
        result = in_root(*RUN, "--receipt", cls.path, "--force")
        if result.returncode:
            raise AssertionError(result.stderr)

    def assert_replays(self, path, *options):
        result = in_root("verify", path, "--replay", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("the same bits", result.stdout)

    def test_written_and_replayed(self):
        for isa in runnable_isas():
            self.assert_replays(self.path, "--isa", isa)
        for layout in weights.TERNARY_LAYOUTS[1:]:
            self.assert_replays(self.path, "--layout", layout, "--threads", 3, "--batch", 3)

    def test_says_what_must_be_said(self):
        receipt = tools.load(self.path)
        self.assertEqual(receipt["compute_path"], "real")
        self.assertEqual(receipt["test_results"]["failed"], 0)
        self.assertTrue(receipt["deterministic"])
        self.assertTrue(receipt["run"]["strict"])
        self.assertFalse([name for name in receipt["kernels"] if "mock" in name.lower()])

    def test_end_of_text(self):
        """A run that the model ended by itself."""
        path = self.path.with_name("ended.json")
        words = ["-p", "Q: What is 2+2? A:", "--receipt", path, "--force"]
        self.assertEqual(in_root(*RUN[:3], *words).returncode, 0)
        self.assertEqual(tools.load(path)["output"]["stop"], "end")
        self.assert_replays(path)

    def test_committed(self):
        """The receipt in the repository: of the same run, and still true."""
        self.assert_replays(COMMITTED)
        self.assert_replays(COMMITTED, "--isa", "scalar", "--threads", 1)
        ours, theirs = tools.load(self.path), tools.load(COMMITTED)
        for part in ("prompt", "output", "sampler"):
            self.assertEqual(ours[part], theirs[part], "make receipt renews ci/inference.json")

    def gate(self, receipt):
        command = [str(GATE), str(receipt), common.command()[0]]
        return subprocess.run(
            command, cwd=ROOT, env=common.clean_environment(), capture_output=True, text=True
        )

    @unittest.skipUnless(shutil.which("sh"), "no shell")
    def test_gate(self):
        self.assertEqual(self.gate(self.path).returncode, 0)
        good = tools.load(self.path)
        changes = {
            "MOCK_COUNT": tools.seal(tools.put(good, ("kernels",), ["i2s_Mock_gemv"])),
            "compute_path": tools.seal(tools.put(good, ("compute_path",), "simulated")),
            "output.ids[3]": None,
        }
        ids = list(good["output"]["ids"])
        ids[3] = ids[3] + 1
        changed = tools.put(good, ("output", "ids"), ids)
        changed["output"]["ids_sha256"] = tools.hash_ids(ids)
        changes["output.ids[3]"] = tools.seal(changed)
        with tempfile.TemporaryDirectory() as folder:
            for text, receipt in changes.items():
                path = Path(folder) / "r.json"
                path.write_text(json.dumps(receipt, indent=2), encoding="utf-8")
                result = self.gate(path)
                self.assertEqual(result.returncode, 1, text)
                self.assertIn(text, result.stderr)

    def test_run_is_what_the_makefile_does(self):
        line = next(l for l in (ROOT / "Makefile").read_text().splitlines() if "--receipt ci/" in l)
        words = line.replace("\\", " ").split("--receipt")[0]
        for word in RUN:
            self.assertIn(str(word), words)


if __name__ == "__main__":
    common.main()
