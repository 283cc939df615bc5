# SPDX-License-Identifier: Apache-2.0
"""64-bit ARM from this machine: builds for it, runs its kernel tests and whole models in qemu.

The build lies beside the program under test, in aarch64/. Kernel tests take fewer shapes than
`make aarch64` does. Without the cross compiler, qemu or the libraries of ARM the test is skipped.
"""

import os
import platform
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import common
import gguf_edit
import suite
import weights
from common import ROOT, comma, prompt, tern_text

PROGRAMS = ("aarch64-linux-gnu-gcc", "qemu-aarch64", "cmake", "ctest", "ninja")
LIBRARIES = ("pkgconfig/libpcre2-8.pc", "pkgconfig/cmocka.pc")
LIBRARIES += ("libcpuinfo.so.0",)
TESTS = ("select", "kernels_matmul", "kernels_rows", "kernels_attend", "kernels_sparse")
SETS_OF = {  # processors of qemu, and the instruction sets that must be chosen there
    "cortex-a53": {"neon"},
    "cortex-a76": {"neon", "neondot"},
    "max": {"neon", "neondot", "neoni8mm"},
}
SCHEDULES = 10  # random schedules of an engine, others each turn
EVERY = 48  # kernel tests take every n-th shape, from another one each turn
BLOCKS = (*weights.PLAIN, "q4_k", "q5_k", "q6_k")
PRESETS = ["bitnet-tiny-odd"] + [f"llama-tiny-{name}" for name in BLOCKS]


def missing():
    """Returns a text that names everything this machine lacks; it is empty when nothing is missing."""
    libraries = Path("/usr/lib/aarch64-linux-gnu")
    lacks = [name for name in PROGRAMS if shutil.which(name) is None]
    lacks += [name for name in LIBRARIES if not (libraries / name).exists()]
    return ", ".join(lacks)


def run(*command, **extra):
    """Runs a command that must succeed and returns its output."""
    words = [str(word) for word in command]
    result = subprocess.run(
        words,
        env=common.unfenced_environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode:
        raise AssertionError(f"{' '.join(words)}: status {result.returncode}\n{result.stdout}")
    return result.stdout


def build(folder):
    """Configures and builds the tests above and the program in `folder`."""
    toolchain = ROOT / "cmake" / "aarch64-linux-gnu.cmake"
    options = {"CMAKE_TOOLCHAIN_FILE": toolchain, "CMAKE_BUILD_TYPE": "Release"}
    options |= {"TERN_WERROR": "ON", "TERN_BENCH": "OFF", "TERN_EMULATED_EVERY": EVERY}
    defines = [f"-D{name}={value}" for name, value in options.items()]
    run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *defines)
    targets = [f"test_{name}" for name in (*TESTS, "engine_schedules")] + ["tern_program"]
    run("cmake", "--build", folder, "-j", os.cpu_count(), "--target", *targets)


@unittest.skipIf(platform.machine() == "aarch64", "this machine runs the tests itself")
@unittest.skipIf(missing(), f"missing: {missing()}; scripts/install-deps --aarch64 installs it")
class Aarch64(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(common.command()[0]).parent / "aarch64"
        build(cls.folder)

    def emulate(self, processor, *args):
        return run("qemu-aarch64", "-cpu", processor, self.folder / "tern", *args)

    def test_kernels(self):
        """Every NEON row against the reference, on the weakest processor that may run it."""
        names = rf"^({'|'.join(TESTS)})(_neon[a-z0-9]*)?$"
        jobs = ["-j", os.cpu_count(), "--output-on-failure"]
        text = run("ctest", "--test-dir", self.folder, "-R", names, *jobs, TERN_TEST_FILTER="_neon", TERN_TEST_FIRST=str(suite.turn()))
        passed = set(re.findall(r"Test +#\d+: (\w+) \.* +Passed", text))
        expected = set(TESTS) | {f"kernels_matmul_{name}" for name in ("neondot", "neoni8mm")}
        self.assertTrue(expected <= passed, text)

    def test_schedules(self):
        """Sequences that an engine computes together give the same tokens as each does alone."""
        program = self.folder / "tests" / "test_engine_schedules"
        one_core = ["taskset", "-c", min(os.sched_getaffinity(0))]  # emulated threads wait dearly
        words = [*one_core, "qemu-aarch64", "-cpu", "max", program]
        text = run(*words, TERN_TEST_SCHEDULES=str(SCHEDULES), TERN_TEST_FIRST=str(SCHEDULES * suite.turn()))
        self.assertRegex(text, rf"(?m)^{SCHEDULES} schedules: ")

    def check(self, model):
        """One answer on every processor, for batches (gemm) and token by token (gemv)."""
        ids = comma(prompt(21, gguf_edit.vocabulary(model)))
        options = ["logits", "-m", model, "--tokens", ids, "--all", "--sha256", "--threads", 1]
        expected = tern_text(*options).split()[0]
        for processor, split in ((p, s) for p in SETS_OF for s in (0, 1)):
            with self.subTest(model=model.name, processor=processor, split=split):
                words = self.emulate(processor, *options, "--split", split).split()
                self.assertEqual(words[0], expected)

    def test_small_model(self):
        self.check(common.small_model())

    def test_synthetic(self):
        with tempfile.TemporaryDirectory() as folder:
            for preset in suite.of_the_day(PRESETS, 2, suite.turn()):
                self.check(common.synth(preset, folder))

    def test_verify_determinism(self):
        """The program's own proof ends with the hash that x86-64 gets."""
        with tempfile.TemporaryDirectory() as folder:
            for preset in ("bitnet-tiny-odd", "qwen3-tiny"):
                command = ["verify-determinism", "-m", common.synth(preset, folder)]
                expected = tern_text(*command, "--isa", "scalar").splitlines()[-1].split()[2]
                lines = self.emulate("max", *command).splitlines()
                self.assertEqual(lines[-1].split()[2], expected)
                self.assertEqual(len({line.split()[0] for line in lines[:-1]}), 4, lines)

    def test_replay(self):
        """A receipt made here is the same run there, and the other way round."""
        model = common.small_model()
        options = ["run", "-m", model, "-p", "Once upon a time", "-n", 16, "--temp", 0.8]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "receipt.json"
            tern_text(*options, "--receipt", path)
            for processor in SETS_OF:
                text = self.emulate(processor, "verify", path, "--replay", "--threads", 1)
                self.assertIn("16 tokens and 2 digests of logits, the same bits", text)
            self.emulate("max", *options, "--receipt", path, "--force", "--threads", 1)
            self.assertIn("aarch64", path.read_text(encoding="utf-8"))
            self.assertIn("the same bits", tern_text("verify", path, "--replay"))

    def test_sets(self):
        """A processor runs the rows of its best instruction sets, and no others."""
        for processor, sets in SETS_OF.items():
            lines = self.emulate(processor, "kernels").splitlines()
            chosen = {line.split()[0] for line in lines if line.split()[1:3] == ["yes", "yes"]}
            rare = [f"_{layout}_" for layout in weights.DENSE_LAYOUTS[1:]]  # which plain C may have alone
            own = {name for name in chosen if not any(layout in name for layout in rare)} - {*weights.PLAIN_EMBEDDINGS}
            self.assertEqual({name.split("_")[-1] for name in own}, sets, processor)


if __name__ == "__main__":
    common.main()
