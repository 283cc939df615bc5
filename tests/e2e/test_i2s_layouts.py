# SPDX-License-Identifier: Apache-2.0
"""Files whose I2_S tensors are not those of the published models: other orders of the same codes,
which --i2s-layout reads, and other things of the same name, which are refused."""

import struct
import tempfile
from pathlib import Path

import common
import gguf_edit
from common import comma, prompt, tern, tern_text

I2_S = 36


def codes_of(tensor):
    """One byte for each code, in the order of the matrix: units of 128 codes in 32 bytes."""
    n = tensor.ne[0] * tensor.ne[1]
    out = bytearray(n)
    for e in range(n):
        byte = tensor.data[e // 128 * 32 + e % 32]
        out[e] = byte >> (6 - 2 * (e % 128 // 32)) & 3
    return out


def in_order(order, codes, cols):
    """The codes as a writer of that order stores them, four in a byte, the first in the top bits."""
    if order == "c":
        groups = range(0, len(codes), 4 * cols)
        runs = ([codes[g + r * cols + k] for r in range(4)] for g in groups for k in range(cols))
    else:
        step = {"a": 32, "b": 16, "d": 1}[order]
        units = range(0, len(codes), 4 * step)
        runs = ([codes[u + r * step + p] for r in range(4)] for u in units for p in range(step))
    return bytes(a << 6 | b << 4 | c << 2 | d for a, b, c, d in runs)


class Layouts(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = common.synth("bitnet-tiny", cls.folder.name)
        cls.file = gguf_edit.read(cls.model)
        cls.codes = {t.name: codes_of(t) for t in cls.file.tensors if t.kind == I2_S}
        cls.path = Path(cls.folder.name) / "other.gguf"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def write(self, order):
        file = gguf_edit.read(self.model)
        for t in file.tensors:
            if t.kind == I2_S:
                codes = in_order(order, self.codes[t.name], t.ne[0])
                t.data = codes + t.data[len(codes) :]
        self.path.write_bytes(file.to_bytes())

    def logits(self, path, *options):
        ids = prompt(20, gguf_edit.vocabulary(self.model))
        return tern_text("logits", "-m", path, "--tokens", comma(ids), "--sha256", *options).split()[0]

    def test_orders(self):
        expected = self.logits(self.model)
        self.write("a")
        self.assertEqual(self.path.read_bytes(), self.model.read_bytes())
        for order in "abcd":
            with self.subTest(order=order):
                self.write(order)
                self.assertEqual(self.logits(self.path, "--i2s-layout", order), expected)
                if order != "a":
                    self.assertNotEqual(self.logits(self.path), expected)

    def refused(self, change, *words):
        """`change` gives a tensor other bytes; the message names the file, the tensor and the find."""
        file = gguf_edit.read(self.model)
        tensor = file.tensor("blk.0.attn_q.weight")
        tensor.data = change(tensor.ne[0] * tensor.ne[1])
        self.path.write_bytes(file.to_bytes())
        for command in (["logits", "--tokens", "1", "-m"], ["inspect"]):
            result = tern(*command, self.path)
            named = ["other.gguf", "blk.0.attn_q.weight", "i2_s", *words]
            self.assert_one_line_error(result, contains=named)

    def test_other_kinds(self):
        scale = struct.pack("<e", 0.5)
        self.refused(lambda n: bytes(n // 4), "codes without a scale")
        self.refused(lambda n: (bytes(8) + scale) * (n // 32), "blocks of 32 weights")
        self.refused(lambda n: (scale + bytes(64)) * (n // 256), "blocks of 256 weights")
        self.refused(lambda n: bytes(n // 4 + 96), "no known kind", "anew")

    def test_unknown_order(self):
        result = tern("logits", "-m", self.model, "--tokens", "1", "--i2s-layout", "e")
        self.assertEqual(result.returncode, 2)
        self.assertIn("a b c d", result.stderr.decode())


if __name__ == "__main__":
    common.main()
