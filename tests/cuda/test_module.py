# SPDX-License-Identifier: Apache-2.0
"""Checks libtern-cuda.so as far as that is possible without a device: it loads, it has code for the promised
machines, and its float arithmetic is neither fused nor flushed nor approximated.

    test_module.py MODULE "75 80 90" -- NVCC FLAGS... SOURCE
"""

from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import suite  # noqa: E402

FATBIN_MAGIC = 0xBA55ED50
PTX, ELF = 1, 2  # kinds of entries

MODULE = Path(sys.argv[1])
ARCHS = [int(arch) for arch in sys.argv[2].split()]
COMMAND = sys.argv[4:]

# Rows without division and square root, whose exact code has fused steps of its own: in these there
# must be no fused instruction at all, not even in machine code.
UNDIVIDED = re.compile(
    r"tern_(gem[mv]_(?!i2_s|t5r16)|rope_|gate_relu2|add_|embed_|store_).*cuda"  # rows, not formats
)


def fat_entries(data: bytes) -> list[tuple[int, int]]:
    """(kind, compute capability) of everything in the module's fat binaries."""
    found = []
    at = data.find(struct.pack("<I", FATBIN_MAGIC))
    while at >= 0:
        _, version, header, size = struct.unpack_from("<IHHQ", data, at)
        assert version == 1
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, head, payload = struct.unpack_from("<HHIQ", data, entry)
            found.append((kind, struct.unpack_from("<I", data, entry + 28)[0]))
            entry += head + payload
        at = data.find(struct.pack("<I", FATBIN_MAGIC), end)
    return found


def cuobjdump() -> str | None:
    return shutil.which("cuobjdump") or shutil.which("cuobjdump", path="/usr/local/cuda/bin")


class Module(unittest.TestCase):
    def test_loads_without_a_driver(self) -> None:
        library = ctypes.CDLL(str(MODULE), mode=2)  # RTLD_NOW: every symbol is found
        self.assertTrue(ctypes.c_char_p.in_dll(library, "tern_cuda_module").value)

    def test_machines(self) -> None:
        entries = fat_entries(MODULE.read_bytes())
        self.assertEqual(sorted(arch for kind, arch in entries if kind == ELF), sorted(ARCHS))
        self.assertEqual([arch for kind, arch in entries if kind == PTX], [max(ARCHS)])

    def test_nothing_else_is_exported(self) -> None:
        text = subprocess.run(
            ["nm", "-D", "--defined-only", str(MODULE)], capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual([line.split()[-1] for line in text.splitlines()], ["tern_cuda_module"])


class Ptx(unittest.TestCase):
    """The code before ptxas. ptxas never fuses instructions that name their rounding."""

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory(prefix="tern-ptx-") as folder:
            out = Path(folder) / "rows.ptx"
            newest = f"-arch=compute_{max(ARCHS)}"
            subprocess.run([*COMMAND, newest, "-ptx", "-o", str(out)], check=True)
            cls.text = out.read_text(encoding="ascii")
        cls.code = re.findall(r"^\s+(?:@!?%p\d+ )?([a-z][\w.]*)\s", cls.text, re.M)

    def test_there_are_kernels(self) -> None:
        entries = re.findall(r"^\.visible \.entry tern_\w+_cuda\(", self.text, re.M)
        self.assertGreaterEqual(len(entries), 30)

    def test_every_rounding_is_named(self) -> None:
        pattern = re.compile(r"(add|sub|mul|div|sqrt|mad|fma)\..*f(16|32|64)")
        floats = [i for i in self.code if pattern.match(i)]
        self.assertGreater(len(floats), 500)
        allowed = {f"{name}.rn.f32" for name in ("add", "sub", "mul", "div", "sqrt")}
        self.assertLessEqual(set(floats), allowed | {f"{name}.rn.f64" for name in ("add", "mul", "div")})

    def test_nothing_is_fused_flushed_or_approximated(self) -> None:
        for instruction in set(self.code):
            inexact = r"^(fma|mad)\..*f\d\d|ftz|approx|^ex2|^rcp|^rsqrt|^tanh"
            self.assertNotRegex(instruction, inexact)

    def test_maximum_keeps_the_second_operand(self) -> None:
        """`a > b ? a : b` is b when either is NaN; max.f32 is that only for b that is not a NaN."""
        for line in re.findall(r"^\s+((?:max|min)\.\w*f32 .*;)$", self.text, re.M):
            self.assertRegex(line, r", 0f(?!7f[89a-f]|ff[89a-f])[0-9a-fA-F]{8};$")


class Sass(unittest.TestCase):
    """Machine code, where cuobjdump is installed."""

    def test_no_fused_instructions(self) -> None:
        tool = cuobjdump()
        if tool is None:
            self.skipTest("cuobjdump was not found")
        text = subprocess.run(
            [tool, "-sass", str(MODULE)], capture_output=True, text=True, check=True
        ).stdout
        functions = re.split(r"Function : ", text)[1:]
        checked = 0
        for function in functions:
            name = function.split(None, 1)[0]
            if UNDIVIDED.fullmatch(name):
                self.assertNotRegex(function, r"\b([FHD]FMA|F(ADD|MUL)\.FTZ)\b", name)
                for line in re.findall(r"\bHFMA2.*", function):  # ptxas loads constants with it
                    self.assertRegex(line, r"^HFMA2(\.MMA)? U?R\d+, -RZ, RZ, ", name)
                checked += 1
        self.assertGreaterEqual(checked, 20 * len(ARCHS))


if __name__ == "__main__":
    suite.main(sys.argv[:1])
