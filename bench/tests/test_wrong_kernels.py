# SPDX-License-Identifier: Apache-2.0
"""Benchmarks check the answers of the kernels that they measure: each benchmark runs as it is, and again linked with
kernels that are wrong."""

import argparse
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import suite  # noqa: E402

WRONG = ["tern_gemv_bsr_f16_1x1_scalar", "tern_gemv_bsr_f32_1x1_scalar", "tern_gemv_bsr_t2_16x1_scalar",
         "tern_rmsnorm_scalar"]
SHARES = [0, 10, 25, 40, 50, 60, 70, 75, 80, 85, 90, 95, 100]
KINDS = ["f32", "f16", "i2_s"]
programs = argparse.Namespace()


def run(program, *options, **environment):
    return subprocess.run([program, *options], capture_output=True, text=True, check=False, env=os.environ | environment)


class SparseBlocks(unittest.TestCase):
    def lines(self, output):
        """(kind, set, share): largest difference, of the table."""
        found = {}
        for line in output.splitlines():
            words = line.split()
            if words and words[0] in KINDS and "slower" not in words:
                self.assertEqual(len(words), 9, line)
                found[words[0], words[1], int(words[2])] = float(words[8])
        return found

    def test_right_kernels(self):
        result = run(programs.sparse, "--check")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        found = self.lines(result.stdout)
        sets = {isa for _, isa, _ in found}
        self.assertIn("scalar", sets)
        self.assertEqual(set(found.values()), {0.0})
        for kind in KINDS:
            self.assertEqual(sorted(share for k, isa, share in found if (k, isa) == (kind, "scalar")), SHARES)
            self.assertRegex(result.stdout, rf"{kind} +scalar +no slower up to \d+ %")

    def test_wrong_kernels(self):
        """The error stands only in the lines of those kernels, and the program fails."""
        result = run(programs.wrong_sparse, "--check")
        self.assertEqual(result.returncode, 1)
        self.assertIn("results differ", result.stderr)
        for (kind, isa, share), difference in self.lines(result.stdout).items():
            self.assertEqual(difference, 0.5 if isa == "scalar" else 0.0, (kind, isa, share))

    def test_documents(self):
        for program, error in ((programs.sparse, 0.0), (programs.wrong_sparse, 0.5)):
            result = run(program, "--json", "--type", "f16", "64", "320")
            self.assertEqual(result.returncode, 1 if error else 0)
            document = json.loads(result.stdout)
            self.assertEqual((document["rows"], document["cols"], document["block"]), (64, 320, [16, 64]))
            self.assertEqual({p["type"] for p in document["products"]}, {"f16"})
            for product in document["products"]:
                self.assertEqual(product["largest_difference"], error if product["isa"] == "scalar" else 0.0)
                self.assertGreater(product["sparse_gbs"], 0)
            self.assertEqual({x["isa"] for x in document["limits"]}, {p["isa"] for p in document["products"]})

    def test_usage(self):
        for options in (["--type", "q8_0"], ["--check", "1"], ["7", "9"], ["0", "128"]):
            self.assertEqual(run(programs.sparse, *options).returncode, 2, options)


class Others(unittest.TestCase):
    def test_all_kernels(self):
        right, wrong = run(programs.kernels, "--check"), run(programs.wrong_kernels, "--check")
        self.assertEqual((right.returncode, right.stderr), (0, ""))
        self.assertRegex(right.stdout, r"^[1-9]\d* kernels checked, \d+ cannot run here, 0 wrong\n$")
        self.assertEqual(wrong.returncode, 1)
        self.assertEqual(sorted(re.findall(r"^(\w+): differs", wrong.stderr, re.M)), WRONG)
        self.assertIn(f", {len(WRONG)} wrong\n", wrong.stdout)

    def test_operations_of_a_device(self):
        options, scalar = ("--device", "cpu", "--check"), {"TERN_ISA": "scalar"}
        right, wrong = run(programs.device, *options, **scalar), run(programs.wrong_device, *options, **scalar)
        self.assertEqual(right.returncode, 0, right.stdout)
        self.assertNotIn("differs", right.stdout)
        self.assertEqual(wrong.returncode, 1)
        self.assertRegex(wrong.stdout, r"(?m)^rmsnorm\S* +differs from the reference$")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("sparse", "wrong-sparse", "kernels", "wrong-kernels", "device", "wrong-device"):
        parser.add_argument(f"--{name}", required=True)
    programs, rest = parser.parse_known_args()
    suite.main([sys.argv[0], *rest])
