# SPDX-License-Identifier: Apache-2.0
"""lab/perf-receipts: the recipes behind docs/performance.md; what the bench targets of the Makefile run."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import suite  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TERN = ""


def run(*words, **variables):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TERN_") and k not in ("RUNS", "PROMPTS")}
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd=ROOT,
                          env=kept | variables)


class Recipes(unittest.TestCase):
    def test_list(self):
        """Every recipe that requirements name is there."""
        listed = run(ROOT / "lab" / "perf-receipts", "--tern", TERN, "--list").stdout
        for words in ("-p 16 ", "--touch-bytes 64000000 --verify-touch", "--strict", "--exact-head", "--stages",
                      "--batch-sizes 2,4,8,16", "--sequences 1,2,4,8,16,32", "--arriving 4000", "--kv q8_0"):
            self.assertIn(words, listed)

    def test_documents(self):
        """A recipe writes a document that passes; a recipe that fails leaves the old document in place."""
        with tempfile.TemporaryDirectory() as folder:
            model, out = Path(folder) / "bitnet-2b.gguf", Path(folder) / "set"
            environment = {"TERN_CACHE": str(Path(folder) / "cache")}
            self.assertEqual(run(TERN, "synth", "--preset", "bitnet-tiny", model).returncode, 0)
            command = [ROOT / "lab" / "perf-receipts", "--tern", TERN, "--bitnet", model, "--models", folder,
                       "--out", out, "--only", "short-prompt"]
            done = run(*command, **environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("[1/1] bitnet-2b-short-prompt", done.stderr)
            path = out / "bitnet-2b-short-prompt.json"
            self.assertRegex(path.read_text(), r"\A[^\n]+\n\Z")
            document = json.loads(path.read_text())
            self.assertEqual(document["benchmark"]["prompt_tokens"], 16)
            self.assertEqual(document["benchmark"]["repeat"], 5)
            model.write_bytes(b"no model")
            self.assertEqual(run(*command, **environment).returncode, 1)
            self.assertEqual(json.loads(path.read_text()), document)


@unittest.skipUnless(shutil.which("make"), "no make")
class Makefile(unittest.TestCase):
    def commands(self, *words, **variables):
        return run("make", "-n", *words, **variables).stdout

    def test_bench(self):
        """RUNS and PROMPTS belong to a model; without them kernels are measured."""
        self.assertIn("bench/bench_kernels\n", self.commands("bench"))
        prompts = "benchmarks/prompts_10.txt"
        for made in (self.commands("bench", RUNS="7", PROMPTS=prompts),
                     self.commands("bench", "RUNS=7", f"PROMPTS={prompts}")):
            self.assertIn("--repeat 7 --strict", made)
            self.assertIn(f"--prompts-file '{prompts}' --rounds 7 --parallel 1", made)
            self.assertNotIn("bench/bench_kernels\n", made)
        self.assertIn("--repeat 4", self.commands("bench", RUNS="4"))

    def test_bench_refuses(self):
        """A missing file, or rounds that are not a number, are reported with the name before anything is built."""
        for name, value in (("PROMPTS", "no such file.txt"), ("RUNS", "many"), ("RUNS", "0")):
            for words, variables in (((), {name: value}), ((f"{name}={value}",), {})):
                with self.subTest(name=name, value=value, words=words):
                    result = run("make", "bench", *words, **variables)
                    self.assertNotEqual(result.returncode, 0)
                    self.assertEqual(result.stdout, "")
                    first = result.stderr.splitlines()[0]
                    self.assertIn(f"{name}: ", first)
                    self.assertIn(value, first)
        self.assertIn("--prompts-file 'Makefile'", self.commands("bench", PROMPTS="Makefile"))

    def test_prompts(self):
        lines = (ROOT / "benchmarks" / "prompts_10.txt").read_text().splitlines()
        self.assertEqual((len(lines), len(set(lines)), "" in lines), (10, 10, False))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tern", required=True)
    args, rest = parser.parse_known_args()
    TERN = str(Path(args.tern).resolve())
    suite.main([sys.argv[0], *rest])
