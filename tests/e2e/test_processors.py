# SPDX-License-Identifier: Apache-2.0
"""Weaker processors than this one, under QEMU: their choices of kernels, and whether the answers are right.

Anything that such a processor lacks is an illegal instruction, in the rows as in the rest of the
program. QEMU 7.2 reads and writes all eight lanes of a masked AVX load and store, so that the tests
with guard pages fail under it wherever AVX2 has a tail; there bench_kernels --check, which has
tails but no guard pages, stands for them.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import common
import weights
from common import comma, prompt

QEMU = shutil.which("qemu-x86_64")
ROWS = re.compile(r"^(\d+) of \d+ kernels run on this machine$", re.M)


def build_folder():
    return Path(common.command()[0]).parent


def compile_commands():
    path = build_folder() / "compile_commands.json"
    if not path.exists():
        raise unittest.SkipTest("the build folder has no compile_commands.json")
    return json.loads(path.read_text())


class Emulated:
    """One processor; `isa` is the set of every row that must be chosen on it."""

    cpu = isa = None

    @classmethod
    def setUpClass(cls):
        if platform.machine() != "x86_64":
            raise unittest.SkipTest("this is not an x86-64 machine")
        if QEMU is None:
            raise unittest.SkipTest("qemu-x86_64 is not installed: apt-get install qemu-user")
        if any("-fsanitize" in entry["command"] for entry in compile_commands()):
            raise unittest.SkipTest("sanitizers do not run under QEMU")

    def emulate(self, program, *args, **env):
        result = subprocess.run(
            [QEMU, "-cpu", self.cpu, program, *map(str, args)],
            env=common.clean_environment(**env),
            capture_output=True,
        )
        said = (result.stdout + result.stderr).decode(errors="replace")
        self.assertEqual(result.returncode, 0, f"{self.cpu}: {program} {args}: {said[-2000:]}")
        return result.stdout.decode()

    def kernel_test(self, name, every):
        """A test of the rows of this set, with every n-th shape."""
        program = build_folder() / "tests" / f"test_kernels_{name}"
        if not program.exists():
            self.skipTest(f"{program.name} is not built")
        filters = {"TERN_TEST_FILTER": f"_{self.isa}", "TERN_TEST_EVERY": str(every)}
        rows = ROWS.search(self.emulate(program, **filters))
        self.assertGreater(int(rows[1]), 0)

    def test_chosen(self):
        rows = json.loads(self.emulate(common.command()[0], "kernels", "--json"))
        # Layouts that few sets have kernels for, besides plain C: this one is not among them.
        own = {row["layout"] for row in rows if row["isa"] == self.isa and row["runnable"]}
        others = {row["layout"] for row in rows} - own
        tables = [row for row in rows if row["layout"] in others or row["name"] in weights.PLAIN_EMBEDDINGS]
        self.assertEqual({row["isa"] for row in rows if row["chosen"] and row not in tables}, {self.isa})
        self.assertEqual({row["isa"] for row in tables if row["chosen"]}, {"scalar"})

    def test_every_row(self):
        program = build_folder() / "bench" / "bench_kernels"
        if not program.exists():
            self.skipTest("the benchmarks are not built")
        said = self.emulate(program, "--check")
        self.assertRegex(said, r"^[1-9]\d* kernels checked, .*, 0 wrong$")

    def test_halves(self):
        self.kernel_test("halves", 1)

    def test_logits(self):
        """The small model's logits are those of the machine itself, without --isa."""
        model = common.small_model()
        for ids in (prompt(1, 256), prompt(33, 256)):
            args = ["logits", "-m", model, "--tokens", comma(ids), "--all", "--sha256"]
            for more in (["--threads", 1], ["--threads", 2, "--kv", "f16", "--split", 5]):
                there = self.emulate(*common.command(*args, *more))
                self.assertEqual(there, common.tern_text(*args, *more))
                self.assertRegex(there, r"^[0-9a-f]{64}\b")


class Nehalem(Emulated, common.TernTest):
    """This processor has SSE4.2 but not AVX. Guard pages work: there are no masked loads."""

    cpu, isa = "Nehalem", "sse41"

    def test_matmul(self):
        self.kernel_test("matmul", 97)

    def test_rows(self):
        self.kernel_test("rows", 11)

    def test_activation(self):
        self.kernel_test("activation", 11)

    def test_attend(self):
        self.kernel_test("attend", 17)

    def test_sparse(self):
        self.kernel_test("sparse", 5)


class Haswell(Emulated, common.TernTest):
    """AVX2 and F16C, no AVX-512."""

    cpu, isa = "Haswell", "avx2"


class Build(common.TernTest):
    def test_flags(self):
        """Only rows, their headers, proofs, probes and tests of verbs are compiled for more than the base architecture."""
        allowed = re.compile(r"/gen/(kernels|probes)/(tern|proof)_\w+\.c$|/tests/isa/\w+\.c$|/tern_kernel_objects_\w+\.dir/cmake_pch\.h\.c$")
        seen = 0
        for entry in compile_commands():
            flags = re.findall(r"\s(-m(?!axpage)\S+)", entry["command"])
            if allowed.search(entry["file"]):
                seen += bool(flags)
            else:
                self.assertEqual(flags, [], entry["file"])
        if platform.machine() == "x86_64" and "sse41" in common.runnable_isas():
            self.assertGreater(seen, 0, "no kernel is compiled with flags of its own")


if __name__ == "__main__":
    os.environ.pop("TERN_ISA", None)
    os.environ.pop("TERN_PROCESSOR", None)  # QEMU is the processor
    common.main()
