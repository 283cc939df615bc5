# SPDX-License-Identifier: Apache-2.0
"""Tables that the generator refuses, each with the complaint that it must make."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from common import FIXTURE, ROOT, TABLE, InFolder
import spec as table
import suite

# Each entry has the text in the table that is replaced (at its first occurrence), its replacement, and the complaint.
REFUSED = {
    "no TOML": ("[isa.scalar]", "[isa.scalar", r"table\.toml: "),
    "unknown section": ("[isa.scalar]", "[isas.scalar]", r"unknown key 'isas'"),
    "unknown key of an isa": (
        "lanes = 1\n",
        "lanes = 1\nlane = 1\n",
        r"isa\.scalar: unknown key 'lane'",
    ),
    "missing key of an isa": ("lanes = 1\n", "", r"isa\.scalar: key 'lanes' is missing"),
    "wrong type of a key": (
        "lanes = 1\n",
        'lanes = "1"\n',
        r"isa\.scalar: key 'lanes' must be of type int",
    ),
    "boolean for a number": (
        "lanes = 1\n",
        "lanes = true\n",
        r"isa\.scalar: key 'lanes' must be of type int",
    ),
    "odd vector": ("lanes = 8\n", "lanes = 7\n", r"isa\.avx2: lanes must be 1, 4, 8 or 16, not 7"),
    "no chains": ("chains = 1\n", "chains = 0\n", r"isa\.scalar: chains must be at least 1"),
    "unknown arch": ('arch = "x86_64"', 'arch = "riscv"', r"isa\.avx2: unknown arch 'riscv'"),
    "unknown feature": (
        '"F16C"]',
        '"SSE9"]',
        r"isa\.avx2: feature 'SSE9' is not in dispatch/cpu\.h",
    ),
    "feature that is not text": (
        '"F16C"]',
        "5]",
        r"isa\.avx2: feature '5' is not in dispatch/cpu\.h",
    ),
    "bad isa name": ("[isa.avx2]", "[isa.AVX-2]", r"isa\.AVX-2: not a valid name"),
    "isa that is not a table": (
        "[isa.scalar]",
        "[isa]\nneon = 3\n[isa.scalar]",
        r"isa\.neon: expected a table",
    ),
    "unknown operation": (
        "[op.softmax]",
        "[op.softmin]",
        r"op\.softmin: operation is not in TERN_OP_LIST",
    ),
    "unknown key of an op": (
        'template = "softmax"',
        'template = "softmax"\nfast = 1',
        r"op\.softmax: unknown key 'fast'",
    ),
    "missing test": (
        'template = "softmax"\ntest = "kernels_rows"',
        'template = "softmax"\ntest = "kernels_none"',
        r"op\.softmax: test 'test_kernels_none\.c' does not exist",
    ),
    "test of something else": (
        'template = "softmax"\ntest = "kernels_rows"',
        'template = "softmax"\ntest = "kernels_matmul"',
        r"op\.softmax: test 'test_kernels_matmul\.c' does not name TERN_OP_SOFTMAX",
    ),
    "missing template key": (
        'template = "softmax"\n',
        "",
        r"op\.softmax: key 'template' is missing",
    ),
    "missing template": (
        'template = "softmax"',
        'template = "softmux"',
        r"op\.softmax: template 'softmux\.c\.j2' does not exist",
    ),
    "template that is not text": (
        'template = "softmax"',
        "template = 3",
        r"op\.softmax: key 'template'",
    ),
    "missing template of a format": (
        'bf16 = "matmul_float"',
        'bf16 = "nothing"',
        r"op\.gemv: template 'nothing\.c\.j2' does not exist",
    ),
    "no template for a format": (
        ', bf16 = "matmul_float"',
        "",
        r"kernel \d+ \(gemv\): op 'gemv' has no template for 'bf16'",
    ),
    "missing template of a kernel": (
        'format = "bf16"\nisa',
        'format = "bf16"\ntemplate = "nothing"\nisa',
        r"kernel \d+ \(gemv\): template 'nothing\.c\.j2' does not exist",
    ),
    "template of a kernel that is not text": (
        'format = "bf16"\nisa',
        'format = "bf16"\ntemplate = 3\nisa',
        r"kernel \d+ \(gemv\): key 'template' must be of type str",
    ),
    "unknown layout of a kernel": (
        'format = "bf16"\nisa',
        'format = "bf16"\nlayout = "diagonal"\nisa',
        r"kernel \d+ \(gemv\): unknown layout 'diagonal'",
    ),
    "no template for a layout": (
        'format = "bf16"\nisa',
        'format = "bf16"\nlayout = "q8_0r16"\nisa',
        r"kernel \d+ \(gemv\): op 'gemv' has no template for 'q8_0r16'",
    ),
    "layout of an operation on rows": (
        'op = "softmax"\n',
        'op = "softmax"\nlayout = "rows"\n',
        r"kernel \d+ \(softmax\): op 'softmax' takes no layout",
    ),
    "unknown key of a kernel": (
        'op = "add"\n',
        'op = "add"\ncolour = 1\n',
        r"kernel \d+ \(add\): unknown key 'colour'",
    ),
    "kernel without op": ('op = "add"\n', "", r"kernel \d+ \(\?\): key 'op' is missing"),
    "kernel without isa": (
        'op = "add"\nisa = ["every"]',
        'op = "add"',
        r"kernel \d+ \(add\): key 'isa' is missing",
    ),
    "kernel of an unknown op": (
        'op = "add"\n',
        'op = "sub"\n',
        r"kernel \d+ \(sub\): unknown op 'sub'",
    ),
    "kernel whose op is not text": (
        'op = "add"\n',
        'op = ["add"]\n',
        r"kernel \d+ .*: key 'op' must be of type str",
    ),
    "kernel of an unknown isa": (
        'op = "add"\nisa = ["every"',
        'op = "add"\nisa = ["avx1024"',
        r"kernel \d+ \(add\): unknown isa 'avx1024'",
    ),
    "kernel of an unknown format": (
        'format = ["f16", "f32"]',
        'format = ["f16", "f31"]',
        r"kernel \d+ \(attend\): unknown format 'f31'",
    ),
    "empty list": (
        'op = "add"\nisa = ["every"]',
        'op = "add"\nisa = []',
        r"kernel \d+ \(add\): key 'isa' must be a name or a list",
    ),
    "name twice in a list": (
        'op = "add"\nisa = ["every"',
        'op = "add"\nisa = ["every", "avx2"',
        r"kernel \d+ \(add\): 'avx2' is there twice in key 'isa'",
    ),
    "missing tile": (
        "tile = { rows = 16, tokens = 1 }\n",
        "",
        r"kernel 1 \(gemv\): key 'tile' is missing",
    ),
    "tile where none belongs": (
        'op = "add"\n',
        'op = "add"\ntile = { rows = 1, tokens = 1 }\n',
        r"kernel \d+ \(add\): op 'add' takes no tile",
    ),
    "odd tile": (
        "rows = 16, tokens = 1 }",
        "rows = 12, tokens = 1 }",
        r"kernel 1 \(gemv\): tile rows must be .*, not 12",
    ),
    "tile of a boolean": (
        "rows = 16, tokens = 1 }",
        "rows = 16, tokens = true }",
        r"kernel 1 \(gemv\): tile tokens must be .*, not True",
    ),
    "tile with an unknown key": (
        "rows = 16, tokens = 1 }",
        "rows = 16, token = 1 }",
        r"kernel 1 \(gemv\) tile: unknown key 'token'",
    ),
    "tile that is not a table": (
        "{ rows = 16, tokens = 1 }",
        "16",
        r"kernel 1 \(gemv\) tile: expected a table",
    ),
    "tile narrower than a vector": (
        "rows = 16, tokens = 1 }",
        "rows = 8, tokens = 1 }",
        r"tern_gemv_i2_s_8x1_avx512: 8 rows do not fill vectors of 16 lanes",
    ),
    "prefetch of half a line": (
        "tile = { rows = 16, tokens = 1 }\n",
        "tile = { rows = 16, tokens = 1 }\nprefetch = 1000\n",
        r"kernel 1 \(gemv\): prefetch must be a multiple of 64 up to 65536, not 1000",
    ),
    "prefetch where none belongs": (
        'op = "add"\n',
        'op = "add"\nprefetch = 1024\n',
        r"kernel \d+ \(add\): op 'add' takes no prefetch",
    ),
    "no template for CUDA": (
        'template = "softmax"\n',
        'template = "layernorm"\n',
        r"tern_softmax_cuda: template 'cuda/layernorm.cu.j2' does not exist",
    ),
    "duplicate kernel": (
        "[[kernel]]\n",
        '[[kernel]]\nop = "add"\nisa = "avx2"\n\n[[kernel]]\n',
        r"tern_add_avx2: is in the table twice",
    ),
    "set that extends nothing known": (
        'extends = "avx2"\nneeds = ["AVXVNNI"]',
        'extends = "avx3"\nneeds = ["AVXVNNI"]',
        r"isa\.avxvnni: 'avx3', which it extends, must come before it",
    ),
    "set that extends a later one": (
        'extends = "avx2"\nneeds = ["AVXVNNI"]',
        'extends = "avx512"\nneeds = ["AVXVNNI"]',
        r"isa\.avxvnni: 'avx512', which it extends, must come before it",
    ),
    "set with nothing new": (
        'needs = ["AVXVNNI"]',
        "needs = []",
        r"isa\.avxvnni: needs nothing that isa\.avx2 does not",
    ),
    "set before one that it contains": (
        "[isa.avx2]",
        '[isa.early]\narch = "x86_64"\nneeds = ["AVX2", "F16C", "FMA"]\ncflags = []\nlanes = 8\n'
        'registers = 16\nchains = 1\nproof = ["vf_mul"]\n\n[isa.avx2]',
        r"isa\.early: must come after isa\.avx2, whose features it has",
    ),
    "set without proof": (
        'proof = ["vp_mac"]\n',
        "proof = []\n",
        r"isa\.avxvnni: key 'proof' must name what shows",
    ),
    "proof that nobody wrote": (
        'proof = ["vp_mac"]\n',
        'proof = ["vp_fly"]\n',
        r"isa\.avxvnni: no proof executes 'vp_fly' \(one of tile_multiply, ",
    ),
    "kernels of a set that has none": (
        '"gemv q4_1", "softmax"',
        '"gemv bf16"',
        r"isa\.avxvnni: avx2 has no kernel 'gemv bf16'",
    ),
    "kernels like those of nothing": (
        'kernels = ["gemv q4_1", "softmax"]',
        'like = "sse2"\nkernels = ["gemv q4_1"]',
        r"isa\.avxvnni: 'sse2' of key 'like' must come before it",
    ),
    "kernels like nothing": (
        'proof = ["vf_mul"]\n',
        'proof = ["vf_mul"]\nkernels = ["add"]\n',
        r"isa\.scalar: key 'kernels' needs 'extends' or 'like'",
    ),
    "group of an unknown set": (
        'every = ["avx2", "avx512", "scalar"]',
        'every = ["avx2", "avx1024", "scalar"]',
        r"group\.every: unknown isa 'avx1024'",
    ),
    "group with the name of a set": (
        "every = [",
        'avx2 = ["scalar"]\nevery = [',
        r"group\.avx2: an instruction set has that name",
    ),
    "kernel ahead of one that contains its set": (
        'op = "softmax"\nisa = ["avx512", "avx2", "cuda", "scalar"]',
        'op = "softmax"\nisa = ["avx512", "cuda", "scalar"]\n\n'
        '[[kernel]]\nop = "softmax"\nisa = "avx2"\nahead_of = "avx512"',
        r"tern_softmax_avx2: would hide tern_softmax_avx512, whose set is stronger",
    ),
    "kernel ahead of an unknown set": (
        'op = "add"\n',
        'op = "add"\nahead_of = "avx1024"\n',
        r"kernel \d+ \(add\): unknown isa 'avx1024' in key 'ahead_of'",
    ),
    "kernel ahead of a weaker set": (
        'op = "softmax"\nisa = ["avx512", "avx2", "cuda", "scalar"]',
        'op = "softmax"\nahead_of = "scalar"\nisa = ["avx512", "avx2", "scalar"]',
        r"tern_softmax_avx512: key 'ahead_of' names scalar, no stronger set",
    ),
    "no registers": (
        "registers = 16\n",
        "registers = 0\n",
        r"isa\.scalar: registers must be at least 1",
    ),
    "no scalar sibling": (
        'op = "add"\nisa = ["every"]',
        'op = "add"\nisa = ["avx512", "avx2"]',
        r"tern_add_avx512: has no scalar sibling",
    ),
    "no scalar sibling of a format": (
        'format = ["f16", "f32"]\nisa = ["avx512", "avx2", "scalar"]',
        'format = "f16"\nisa = ["avx2"]',
        r"tern_attend_f16_avx2: has no scalar sibling",
    ),
}

# The same in kernels/formats.toml.
REFUSED_FORMATS = {
    "no TOML": ("[layout.none]", "[layout.none", r"formats\.toml: "),
    "unknown section": ("[layout.none]", "[layouts.none]", r"unknown key 'layouts'"),
    "name": ("[layout.none]", "[layout.No-ne]", r"layout\.No-ne: not a valid name"),
    "input": ('[layout.t2r16]\ninput = "token"', '[layout.t2r16]\ninput = "tokens"', r"layout\.t2r16: unknown input 'tokens'"),
    "template": ('"matmul_lookup"', '"matmul_look"', r"layout\.tl1r16: template 'matmul_look\.c\.j2'"),
    "no name in receipts": ('family = "i2s_gemv"\n', "", r"layout\.t2r16: key 'family' belongs to ternary layouts"),
    "codes without scales": ('scales = "half"\n', "", r"layout\.q4_0r16: keys 'codes' and 'scales'"),
    "unknown codes": ('codes = "nibbles"', 'codes = "nobbles"', r"layout\.q4_0r16: template 'codes/nobbles\.c\.j2'"),
    "blocks that share nothing": ("per = 8", "per = 0", r"layout\.iq2_sr16: key 'per' must be at least 1"),
    "layout": ('layout = "t2r16"', 'layout = "t2r15"', r"format\.i2_s: unknown layout 't2r15'"),
    "type": ("block = 32\n", 'block = "32"\n', r"format\.q4_0: key 'block' must be of type int"),
    "key": ("block = 32\n", "blocks = 32\n", r"format\.q4_0: unknown key 'blocks'"),
    "halves": ("halves = { scale = 0 }", "halves = { scale = 17 }", r"format\.q4_0: 'scale' of key 'halves'"),
    "int8": ("int8 = [2, 34]", "int8 = [2, 35]", r"format\.q8_0: key 'int8' must be \[from, to\] in 34 bytes"),
    "quantizer": ('block = "encode_f32"', 'blocks = "encode_f32"', r"format\.f32 quantize: unknown key 'blocks'"),
    "bytes of a plain block": ("bytes = 20", "bytes = 22", r"format\.q4_1: a plain block of this kind has 20 bytes"),
    "scales of a plain block": (
        "halves = { scale = 0, minimum = 2 }",
        "halves = { scale = 0 }",
        r"format\.q4_1: plain blocks",
    ),
    "header of a plain block": ("header = 64", "header = 32", r"format\.q4_1: layout 'q4_1r16' has other fields"),
    "levels": ("plain = true\n", "plain = true\nlevels = [1]\n", r"format\.q4_0: key 'levels' must be sixteen"),
    "another format": ('stand_in = "iq4_nl"', 'stand_in = "q4_2"', r"format\.iq2_s: 'q4_2' of key 'stand_in'"),
    "number of two formats": ("gguf = 3\n", "gguf = 2\n", r"q4_1: gguf 2 is q4_0's"),
    "number of a known type": ("gguf = 4\n", "gguf = 3\n", r"q4_2, retired: gguf 3 is q4_1's"),
    "bytes without a block": ("block = 32\nbytes = 36\n", "bytes = 36\n", r"format\.q8_1: keys 'block' and 'bytes'"),
}


class Refused(InFolder):
    def complaint(self, text: str, root: Path = ROOT) -> str:
        path = self.folder / "table.toml"
        path.write_text(text, encoding="utf-8")
        with self.assertRaises(table.SpecError) as caught:
            table.load(root, path)
        return str(caught.exception)

    def test_bad_tables(self) -> None:
        for name, (old, new, expected) in REFUSED.items():
            with self.subTest(name):
                self.assertIn(old, TABLE)
                self.assertRegex(self.complaint(TABLE.replace(old, new, 1)), expected)

    def test_the_table_itself_is_fine(self) -> None:
        names = [kernel.name for kernel in table.load(ROOT, FIXTURE).kernels]
        self.assertEqual(len(names), 22)
        self.assertEqual(names[:2], ["tern_gemv_i2_s_16x1_avx512", "tern_gemv_i2_s_16x1_avx2"])
        self.assertEqual(names[-1], "tern_add_scalar")

    def without(self, section: str) -> str:
        """The table without that section's entries."""
        return re.sub(rf"(?ms)^\[+{section}[.\]].*?(?=^\[|\Z)", "", TABLE)

    def test_missing_sections(self) -> None:
        for section in ("isa", "op", "kernel"):
            with self.subTest(section):
                complaint = self.complaint(self.without(section))
                self.assertRegex(complaint, f"key '{section}' is missing")

    def test_sections_of_another_type(self) -> None:
        for section in ("isa", "op"):
            with self.subTest(section):
                text = f"{section} = 3\n" + self.without(section)
                self.assertRegex(self.complaint(text), f"key '{section}' must be of type dict")
        for text in ("kernel = [3]\n", "kernel = { op = 3 }\n"):
            complaint = self.complaint(text + self.without("kernel"))
            self.assertRegex(complaint, "kernel 1: expected a table")

    def copy_of_tree(self) -> Path:
        """Everything that the generator reads, in a folder of its own."""
        root = self.folder / "tree"
        for name in (
            "include/tern/kernels.h", "dispatch/cpu.h", "kernels/reference_matmul.c", "kernels/formats.toml",
        ):  # fmt: skip
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        for template in (ROOT / "kernels").rglob("*.j2"):
            copy = root / template.relative_to(ROOT)
            copy.parent.mkdir(exist_ok=True)
            shutil.copy(template, copy)
        for folder in ("kernels", "device"):
            shutil.copytree(ROOT / "tests" / folder, root / "tests" / folder)
        return root

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def test_format_without_reference(self) -> None:
        root = self.copy_of_tree()
        self.edit(root / "kernels" / "reference_matmul.c", "TERN_FORMAT_BF16", "TERN_FORMAT_OTHER")
        self.assertRegex(
            self.complaint(TABLE, root), r"tern_gemv_bf16_\w+: format 'bf16' has no reference"
        )

    def test_bad_formats(self) -> None:
        text = (ROOT / "kernels" / "formats.toml").read_text(encoding="utf-8")
        for name, (old, new, expected) in REFUSED_FORMATS.items():
            with self.subTest(name):
                self.assertIn(old, text)
                path = self.folder / "formats.toml"
                path.write_text(text.replace(old, new, 1), encoding="utf-8")
                with self.assertRaises(table.SpecError) as caught:
                    table.load(ROOT, FIXTURE, path)
                self.assertRegex(str(caught.exception), expected)

    def test_missing_list(self) -> None:
        root = self.copy_of_tree()
        self.edit(root / "dispatch" / "cpu.h", "TERN_CPU_LIST", "TERN_CPU_LISTS")
        self.assertRegex(self.complaint(TABLE, root), r"TERN_CPU_LIST was not found")


class Command(unittest.TestCase):
    def test_without_a_folder(self) -> None:
        """A call that does not say where to write is told so."""
        result = subprocess.run([sys.executable, ROOT / "codegen" / "gen.py"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("required: --out", result.stderr)


if __name__ == "__main__":
    suite.main()
