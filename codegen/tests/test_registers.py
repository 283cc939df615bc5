# SPDX-License-Identifier: Apache-2.0
"""Sums of products stay in registers: what gcc and clang make of kernels that name each sum.

A kernel of sixteen or more vectors of sums is only as fast as its tile promises while none of them
goes through memory. The compilers decide that anew with each release and each change of a template.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import unittest
from dataclasses import dataclass
from pathlib import Path

from common import ROOT, InFolder
import facts
import gen
import spec as table
import suite

# Templates whose tiles are made for the registers that there are.
TEMPLATES = ("matmul_ternary_wide", "matmul_block_wide")
# Formats whose blocks need the most registers stand for the others.
FORMATS = ("i2_s", "q4_k", "q6_k", "int4")
FLAGS = ("-std=c11", "-O2", "-fPIC", "-ffp-contract=off", f"-I{ROOT}", f"-I{ROOT / 'include'}")
# One multiplication in seven may load a constant from the stack, because tables of codes are many.
MULTIPLICATIONS_FOR_ONE = 7

MULTIPLIES = re.compile(r"\bv?pdp\w+d\b|\bv?pmadd\w+\b")
VECTOR = re.compile(r"%[xyz]mm")
# Such an operand has no index, because a kernel's own arrays lie on the stack too. A frame reaches down from %rbp; an
# address above it belongs to a pointer.
STACK = re.compile(r"\(%rsp\)|-0x[0-9a-f]+\(%rbp\)")


@dataclass(frozen=True)
class Loop:
    function: str
    multiplications: int
    stack: int  # instructions that move a vector from or to the stack


def innermost(code: list[tuple[int, str]]) -> list[list[str]]:
    """Returns the instructions of each innermost loop of a function."""
    place = {address: i for i, (address, _) in enumerate(code)}
    spans = set()
    for i, (address, text) in enumerate(code):
        jump = re.match(r"j\w+\s+([0-9a-f]+)\b", text)
        if jump and int(jump[1], 16) <= address and int(jump[1], 16) in place:
            spans.add((place[int(jump[1], 16)], i))
    return [
        [text for _, text in code[a : b + 1]]
        for a, b in sorted(spans)
        if not any((c, d) != (a, b) and a <= c and d <= b for c, d in spans)
    ]


def loops(path: Path) -> list[Loop]:
    """The innermost loops of an object file that multiply."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(path)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = []
    for name, body in re.findall(r"^[0-9a-f]+ <(.*)>:\n((?:.+\n)*)", text, re.M):
        code = re.findall(r"^\s*([0-9a-f]+):\s+(.*)$", body, re.M)
        for lines in innermost([(int(address, 16), line) for address, line in code]):
            multiplications = sum(bool(MULTIPLIES.search(line)) for line in lines)
            stack = sum(bool(STACK.search(line) and VECTOR.search(line)) for line in lines)
            if multiplications:
                found.append(Loop(name, multiplications, stack))
    return found


def is_loose(loop: Loop) -> bool:
    return loop.stack * MULTIPLICATIONS_FOR_ONE > loop.multiplications


def compilers() -> list[str]:
    return [name for name in ("gcc", "clang") if shutil.which(name)]


@unittest.skipUnless(platform.machine() == "x86_64", "compiles for x86-64")
@unittest.skipUnless(shutil.which("objdump") and compilers(), "no objdump, or no compiler")
class Registers(InFolder):
    def compile(self, compiler: str, source: Path, flags: tuple[str, ...]) -> Path:
        made = source.with_suffix(f".{compiler}.o")
        subprocess.run([compiler, *FLAGS, f"-I{self.folder}", *flags, "-c", source, "-o", made], check=True)
        return made

    def kernels(self, spec: table.Spec) -> list[table.Kernel]:
        return [kernel for kernel in spec.kernels if kernel.template in TEMPLATES and kernel.format in FORMATS]

    def test_sums_stay_in_registers(self) -> None:
        env = gen.environment()
        spec = table.load(ROOT)
        kernels = self.kernels(spec)
        header = self.folder / "tern" / "formats.h"
        header.parent.mkdir()
        header.write_text(facts.public_header(spec.weights, set()), encoding="utf-8")
        self.assertEqual({kernel.template for kernel in kernels}, set(TEMPLATES))
        for kernel in kernels:
            source = self.folder / f"{kernel.name}.c"
            source.write_text(gen.render_kernel(env, kernel, spec.weights), encoding="utf-8")
            for compiler in compilers():
                found = loops(self.compile(compiler, source, kernel.isa.cflags))
                self.assertTrue(found, f"{kernel.name}, {compiler}: no loop multiplies")
                self.assertGreaterEqual(max(loop.multiplications for loop in found), 16)
                loose = [loop for loop in found if is_loose(loop)]
                self.assertFalse(loose, f"{kernel.name}, {compiler}: vectors on the stack")

    def test_spilled_sums_are_seen(self) -> None:
        """Forty sums in thirty-two registers."""
        sums = range(40)
        lines = ["#include <immintrin.h>", "void f(__m512i *s, const __m512i *x, long n) {"]
        lines += [f"__m512i s{i} = s[{i}];" for i in sums]
        lines += ["do {"]
        lines += [f"s{i} = _mm512_dpbusd_epi32(s{i}, x[0], x[{i + 1}]);" for i in sums]
        lines += ["x += 64; } while (--n > 0);"]
        lines += [f"s[{i}] = s{i};" for i in sums]
        source = self.folder / "spilled.c"
        source.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")
        for compiler in compilers():
            found = loops(self.compile(compiler, source, ("-mavx512vnni",)))
            self.assertEqual([loop.multiplications for loop in found], [40], compiler)
            self.assertTrue(is_loose(found[0]), compiler)


if __name__ == "__main__":
    suite.main()
