# SPDX-License-Identifier: Apache-2.0
"""Models whose matrices are IQ1_BN, IQ2_BN or IQ2_BN_R4, ternary rows with scales: the logits of the same weights in
I2_S and TQ2_0, the floats of an own decoder; wrong files are refused in one line."""

import struct
import unittest

import common
import gguf_edit
from common import comma, prompt, tern, tern_json, tern_text
from test_i2s_layouts import I2_S

try:
    import numpy as np
except ImportError:
    np = None

IQ1_BN, IQ2_BN, IQ2_BN_R4, TQ2_0 = 134, 135, 335, 35
KINDS = {"iq1_bn": IQ1_BN, "iq2_bn": IQ2_BN, "iq2_bn_r4": IQ2_BN_R4}
BLOCK = 64
MATRIX = "blk.0.attn_k.weight"


def code_matrix(t):
    """Codes 0, 1, 2 and scales of the rows of an I2_S or TQ2_0 tensor."""
    cols, rows = t.ne[:2]
    if t.kind == I2_S:
        units = np.frombuffer(t.data, np.uint8, rows * cols // 4).reshape(-1, 1, 32)
        codes = units >> np.array([6, 4, 2, 0], np.uint8)[None, :, None] & 3
        return codes.reshape(rows, cols), np.full(rows, struct.unpack_from("<f", t.data, rows * cols // 4)[0], "<f4")
    blocks = np.frombuffer(t.data, np.uint8, rows * cols // 256 * 66).reshape(-1, 66)
    codes = blocks[:, :64].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[None, None, :, None] & 3
    return codes.reshape(rows, cols), blocks[:: cols // 256, 64:].copy().view("<f2").astype("<f4").ravel()


def fives(digits):
    """The byte of up to five digits, the lowest first."""
    number = (digits.astype(int) * 3 ** np.arange(digits.shape[-1])).sum(axis=-1)
    return ((256 * number + 242) // 243).astype(np.uint8)


def encoded(kind, codes, scales):
    """The bytes of a tensor."""
    rows, cols = codes.shape
    runs = codes.reshape(rows, cols // BLOCK, 4, 16)
    if kind == "iq1_bn":
        most = fives(runs[..., :15].reshape(rows, -1, 4, 3, 5)).reshape(rows, -1, 12)
        blocks = np.concatenate([most, fives(runs[..., 15])[..., None]], axis=-1)
        return b"".join(s.astype("<f2").tobytes() + b.tobytes() for s, b in zip(scales, blocks, strict=True))
    shifts = np.array([0, 2, 4, 6], np.uint8)
    if kind == "iq2_bn":
        blocks = np.bitwise_or.reduce(runs << shifts[:, None], axis=2)
        return b"".join(s.tobytes() + b.tobytes() for s, b in zip(scales, blocks, strict=True))
    fours = np.bitwise_or.reduce(codes.reshape(rows, -1, 4, 4, 4) << shifts[:, None], axis=3)
    fours = fours.reshape(rows // 4, 4, -1, 4, 4).transpose(0, 2, 3, 1, 4)  # of four rows: block, run, row, byte
    return b"".join(s.tobytes() + b.tobytes() for s, b in zip(scales.reshape(-1, 4), fours, strict=True))


def floats_of_iq1_bn(row, cols):
    """A row as ik_llama.cpp decodes it, a byte at a time."""
    found, scale = [], np.frombuffer(row, "<f2", 1).astype("<f4")[0]
    for at in range(2, len(row), 13):
        block = row[at : at + 13]
        for run in range(4):
            bytes_of_run = [(block[3 * run + i // 5], i % 5) for i in range(15)] + [(block[12], run)]
            for byte, digit in bytes_of_run:
                v = byte * (81, 27, 9, 3, 1)[digit] & 255
                found.append(((v + (v >> 1)) >> 7) - 1)
    assert len(found) == cols
    return np.array(found, "<f4") * scale


@unittest.skipUnless(np, "needs numpy")
class BnFiles(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = common.synth("bitnet-tiny", cls.dir)
        cls.rows = cls.scaled(common.synth("bitnet-tiny-tq2_0", cls.dir))
        cls.path = cls.dir / "changed.gguf"

    @classmethod
    def scaled(cls, path):
        """A model in TQ2_0 each row of whose matrices has a scale of its own, some 0."""
        file, random = gguf_edit.read(path), np.random.default_rng(5)
        for t in (t for t in file.tensors if t.kind == TQ2_0 and t.name.startswith("blk.")):
            blocks = np.frombuffer(t.data, np.uint8)[: t.ne[0] * t.ne[1] // 256 * 66].reshape(t.ne[1], -1, 66).copy()
            scales = random.uniform(0.01, 0.05, t.ne[1]) * (random.random(t.ne[1]) > 0.1)
            blocks[:, :, 64:] = scales.astype("<f2").view(np.uint8).reshape(-1, 1, 2)
            t.data = blocks.tobytes()
        path = cls.dir / "rows.gguf"
        path.write_bytes(file.to_bytes())
        return path

    def changed(self, model, kind, edit=None):
        """The model with the matrices of its blocks in that type."""
        file = gguf_edit.read(model)
        for t in file.tensors:
            if t.kind in (I2_S, TQ2_0) and t.name.startswith("blk."):
                codes, scales = code_matrix(t)
                t.data, t.kind = encoded(kind, codes, scales), KINDS[kind]
        if edit:
            edit(file.tensor(MATRIX))
        self.path.write_bytes(file.to_bytes())
        return self.path

    def logits(self, path, *options):
        ids = prompt(9, gguf_edit.vocabulary(self.model))
        return tern_text("logits", "-m", path, "--tokens", comma(ids), "--sha256", *options).split()[0]

    def floats(self, path, *options):
        out = self.dir / "floats.gguf"
        tern_text("quantize", path, out, "--type", "f32", "--force", *options)
        return gguf_edit.read(out).tensor(MATRIX).data

    def refused(self, kind, edit, words):
        result = tern("logits", "-m", self.changed(self.model, kind, edit), "--tokens", "1")
        self.assert_one_line_error(result, contains=[MATRIX, *words])

    def test_the_same_logits(self):
        """One scale for all rows, and one for each."""
        for model in (self.model, self.rows):
            expected = self.logits(model)
            for kind in KINDS:
                with self.subTest(model=model.name, kind=kind):
                    path = self.changed(model, kind)
                    if model == self.model and kind == "iq1_bn":  # whose scales are halves
                        self.assertEqual(self.logits(path), self.logits(self.changed(model, kind), "--isa", "scalar"))
                        continue
                    self.assertEqual(self.logits(path), expected)
                    self.assertEqual(self.logits(path, "--isa", "scalar", "--layout", "t5r16"), expected)

    def test_receipt(self):
        """The accuracy that a receipt tells is that of rows with their own scales."""
        path, receipt = self.changed(self.rows, "iq2_bn"), self.dir / "receipt.json"
        options = ("-p", "Hello", "-n", "4", "--ctx", "64", "--no-cache", "--force")
        tern_text("run", "-m", path, *options, "--receipt", receipt)
        self.assertIn("i2s", receipt.read_text())

    def test_floats(self):
        path = self.changed(self.rows, "iq1_bn")
        t = gguf_edit.read(path).tensor(MATRIX)
        size = 2 + t.ne[0] // BLOCK * 13
        rows = [t.data[at : at + size] for at in range(0, t.ne[1] * size, size)]
        own = np.concatenate([floats_of_iq1_bn(row, t.ne[0]) for row in rows])
        expected = self.floats(self.rows)
        np.testing.assert_array_equal(np.frombuffer(expected, "<f4", own.size), own)
        for kind in KINDS:
            got = np.frombuffer(self.floats(self.changed(self.rows, kind)), "<f4", own.size)
            np.testing.assert_array_equal(got, own, kind)

    def test_quantize(self):
        """Rows keep their scales in TQ2_0; I2_S has one for all, and says so."""
        out = self.dir / "out.gguf"
        path = self.changed(self.rows, "iq1_bn")
        said = tern_json("quantize", path, out, "--type", "tq2_0", "--force")
        self.assertEqual({t["outcome"] for t in said["tensors"] if t["from"] == "iq1_bn"}, {"lossless"})
        self.assertEqual(self.logits(out), self.logits(self.rows))
        result = tern("quantize", path, out, "--type", "i2_s", "--force")
        self.assert_one_line_error(result, contains=["iq1_bn", "one scale for all", "--force-ternary"])
        path = self.changed(self.model, "iq2_bn")
        said = tern_json("quantize", path, out, "--type", "i2_s", "--force")
        self.assertEqual({t["outcome"] for t in said["tensors"] if t["from"] == "iq2_bn"}, {"lossless"})
        self.assertEqual(gguf_edit.read(out).tensor(MATRIX).data, gguf_edit.read(self.model).tensor(MATRIX).data)

    def test_written(self):
        """The bytes of an own encoder; rows keep their scales; other weights are refused."""
        out = self.dir / "written.gguf"
        for kind, number, file_type in (("iq1_bn", IQ1_BN, 136), ("iq2_bn", IQ2_BN, 137)):
            with self.subTest(kind=kind):
                said = tern_json("quantize", self.rows, out, "--type", kind, "--force")
                self.assertEqual({t["outcome"] for t in said["tensors"] if t["to"] == kind}, {"lossless"})
                written, own = gguf_edit.read(out), gguf_edit.read(self.changed(self.rows, kind)).tensor(MATRIX)
                t = written.tensor(MATRIX)
                size = len(own.data) // own.ne[1] if kind == "iq2_bn" else 2 + own.ne[0] // BLOCK * 13
                rows = [range(at, at + size) for at in range(0, own.ne[1] * size, size)]
                scaled = [r for r in rows if any(own.data[r.start : r.start + 2])]  # codes of others do not count
                self.assertGreater(len(scaled), len(rows) // 2)
                for r in scaled:
                    self.assertEqual(t.data[r.start : r.stop], own.data[r.start : r.stop])
                self.assertEqual((t.kind, written.number("general.file_type")), (number, file_type))
                self.assertEqual(self.logits(out), self.logits(self.rows))
        source = common.synth("llama-tiny-q6_k", self.dir)
        result = tern("quantize", source, out, "--type", "iq2_bn", "--force")
        self.assert_one_line_error(result, contains=["one scale for each row", "--force-ternary"])

    def test_refused(self):
        def put(at, value):
            def edit(t):
                t.data = t.data[:at] + value + t.data[at + len(value) :]
            return edit

        def narrow(t):
            t.ne = [32, t.ne[0] * t.ne[1] // 32]

        size = 4 + 256 // BLOCK * 16
        self.refused("iq2_bn", put(5 * size + 4, b"\xff"), ["code 3 at row 5, column 0"])
        self.refused("iq2_bn", put(3 * size, struct.pack("<f", float("nan"))), ["row 3 has scale nan"])
        self.refused("iq1_bn", put(0, struct.pack("<e", -1)), ["row 0 has scale -1"])
        self.refused("iq1_bn", narrow, ["32 columns", "type 134 (iq1_bn)"])


if __name__ == "__main__":
    common.main()
