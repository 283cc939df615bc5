# SPDX-License-Identifier: Apache-2.0
"""tern imatrix: sums of squares by their definition, both forms of the file; what quantizing makes of them."""

import struct
import sys
import unittest

import common
import gguf_edit
from common import tern, tern_json, tern_text
from iebin_folder import Iebin

try:
    import numpy as np
except ImportError:
    np = None
try:
    import gguf
except ImportError:
    gguf = None

sys.path.insert(0, str(common.ROOT / "tests" / "oracle"))
TEXT = "The weights of a model are not alike: some columns hardly ever see a number above one.\n" * 5
MATRIX = "blk.0.attn_q.weight"
# Types of grids: names, numbers, and the largest share of the weights' energy that is lost.
GRIDS = (("iq1_s", 19, 0.4), ("iq1_m", 29, 0.35), ("iq2_xxs", 16, 0.2), ("iq2_xs", 17, 0.16), ("iq2_s", 22, 0.12),
         ("iq3_xxs", 18, 0.07), ("iq3_s", 21, 0.04))  # fmt: skip
SEARCHED = ("q4_0", "q5_0", "q4_k", "q5_k", "q6_k")


def floats(path, name):
    t = gguf_edit.read(path).tensor(name)
    return np.frombuffer(t.data, "<f4", int(np.prod(t.ne))).reshape(t.ne[::-1])


def read_old(path):
    """{name: sums / number of chunks}, chunks, name of the text."""
    data, at, found = path.read_bytes(), 4, {}

    def number():
        nonlocal at
        at += 4
        return struct.unpack_from("<i", data, at - 4)[0]

    for _ in range(struct.unpack_from("<i", data)[0]):
        size = number()
        name = data[at : at + size].decode()
        at += size
        calls, n = number(), number()
        found[name] = np.frombuffer(data, "<f4", n, at) / calls
        at += 4 * n
    chunks, size = number(), number()
    assert at + size == len(data)
    return found, chunks, data[at:].decode()


def measure(model, text, out, *options):
    return tern_text("imatrix", "-m", model, "-f", text, "--ctx", "64", "-o", out, "--force", *options)


def unlike(path):
    """A random model's columns are alike; the columns of this file differ as much as those of a trained one."""
    file = gguf_edit.read(path)
    for t in file.tensors:
        if t.name.endswith("_norm.weight") and t.name.startswith("blk."):
            gain = np.exp(1.5 * np.sin(np.arange(t.ne[0]) * 7.1)).astype("<f4")
            t.data = (np.frombuffer(t.data, "<f4") * gain).tobytes()
    path.write_bytes(file.to_bytes())


@unittest.skipUnless(np, "needs numpy")
class Imatrix(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model, cls.text = cls.dir / "floats.gguf", cls.dir / "text.txt"
        tern_text("quantize", common.synth("llama-tiny-q6_k", cls.dir), cls.model, "--type", "f32")
        unlike(cls.model)
        cls.text.write_text(TEXT)
        cls.matrix = cls.dir / "imatrix.gguf"
        cls.measure(cls.matrix)

    @classmethod
    def measure(cls, out, *options):
        return measure(cls.model, cls.text, out, *options)

    def squares(self, name):
        return floats(self.matrix, name + ".in_sum2")[:]

    def test_sums(self):
        """The first matrices read the norm of the embedding, whose squares are added up here."""
        ids = tern_json("tokenize", "-m", self.model, "-f", self.text)["tokens"]
        ids = np.array(ids[: len(ids) // 64 * 64])
        x = floats(self.model, "token_embd.weight")[ids].astype(np.float64)
        x *= floats(self.model, "blk.0.attn_norm.weight") / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5)
        for name in (MATRIX, "blk.0.attn_k.weight", "blk.0.attn_v.weight"):
            np.testing.assert_allclose(self.squares(name), (x * x).sum(axis=0), rtol=1e-4)
            self.assertEqual(floats(self.matrix, name + ".counts")[0], len(ids))
        file = gguf_edit.read(self.matrix)
        self.assertEqual(len(file.tensors), 2 * 7 * 2)
        self.assertEqual(dict((k, v) for k, _, v in file.keys)["imatrix.chunk_count"],
                         struct.pack("<I", len(ids) // 64))

    def test_one_file_everywhere(self):
        expected, out = self.matrix.read_bytes(), self.dir / "again.gguf"
        for isa in common.runnable_isas()[:2]:
            self.measure(out, "--isa", isa, "--threads", "1")
            self.assertEqual(out.read_bytes(), expected, isa)
        for options in (["--threads", "3"], ["--batch", "7"]):
            self.measure(out, *options)
            self.assertEqual(out.read_bytes(), expected, options)

    def test_quantized_model(self):
        """Products over integers read rounded inputs; their squares are nearly the same."""
        out, other = self.dir / "q8.gguf", self.dir / "q8-imatrix.gguf"
        tern_text("quantize", self.model, out, "--type", "q8_0", "--force")
        tern_text("imatrix", out, self.text, "--ctx", "64", "-o", other, "--force")
        for name in (MATRIX, "blk.1.ffn_down.weight"):
            np.testing.assert_allclose(floats(other, name + ".in_sum2").sum(), self.squares(name).sum(), rtol=0.05)

    def test_older_form(self):
        out = self.dir / "imatrix.dat"
        self.assertIn("14 matrices", self.measure(out))
        means, chunks, text = read_old(out)
        self.assertEqual((len(means), text), (14, "text.txt"))
        for name, mean in means.items():
            np.testing.assert_allclose(mean * chunks * 64, self.squares(name), rtol=1e-6)
        self.assertEqual(self.quantize("q4_k", self.dir / "a", out), self.quantize("q4_k", self.dir / "b", self.matrix))

    def quantize(self, kind, out, matrix=None, *options):
        extra = ["--imatrix", matrix] if matrix else []
        tern_text("quantize", self.model, out, "--type", kind, "--force", *extra, *options)
        return (out if out.is_file() else out / "model.ie.bin").read_bytes()

    def error(self, path, name):
        back = self.dir / "back.gguf"
        tern_text("quantize", path, back, "--type", "f32", "--force")
        off = floats(back, name) - floats(self.model, name)
        return float((off.astype(np.float64) ** 2 * self.squares(name)).sum())

    def test_less_error_where_it_counts(self):
        for kind, options in [*((k, []) for k in SEARCHED), *(
                ("int4", ["--to", "iebin", "--int4-group", group, *zeros])
                for group, zeros in (("32", []), ("row", []), ("64", ["--int4-zero-points"])))]:
            with self.subTest(kind, options=options):
                paths = self.dir / f"{kind}-plain{len(options)}", self.dir / f"{kind}-weighed{len(options)}"
                self.quantize(kind, paths[0], None, *options)
                made = self.quantize(kind, paths[1], self.matrix, *options)
                self.assertEqual(made, self.quantize(kind, paths[1], self.matrix, "--threads", "1", *options))
                self.assertLess(self.error(paths[1], MATRIX), 0.97 * self.error(paths[0], MATRIX))

    def test_grids(self):
        refused = tern("quantize", self.model, self.dir / "none.gguf", "--type", "iq2_s", "--pure")
        self.assert_one_line_error(refused, contains=["blk.0.attn_q.weight", "iq2_s needs", "--imatrix"])
        self.assertFalse((self.dir / "none.gguf").exists())
        for kind, number, most in GRIDS:
            with self.subTest(kind):
                self.check_grid(kind, number, most)

    def check_grid(self, kind, number, most):
        out = self.dir / f"{kind}.gguf"
        self.quantize(kind, out, self.matrix, "--pure")
        self.assertEqual(gguf_edit.read(out).tensor(MATRIX).kind, number)
        self.assertIn("+-", tern_text("perplexity", "-m", out, "-f", self.text, "--ctx", "64"))
        energy = float((floats(self.model, MATRIX).astype(np.float64) ** 2 * self.squares(MATRIX)).sum())
        self.assertLess(self.error(out, MATRIX), most * energy)
        if gguf:
            t = next(t for t in gguf.GGUFReader(out).tensors if t.name == MATRIX)
            theirs = gguf.quants.dequantize(t.data, t.tensor_type)
            np.testing.assert_array_equal(theirs, floats(self.dir / "back.gguf", MATRIX))

    def edited(self, edit):
        file = gguf_edit.read(self.matrix)
        edit(file)
        path = self.dir / "edited.gguf"
        path.write_bytes(file.to_bytes())
        return path

    def refuse(self, matrix, *contains, kind="q4_k"):
        out = self.dir / "never.gguf"
        self.assert_one_line_error(tern("quantize", self.model, out, "--type", kind, "--imatrix", matrix),
                                   contains=contains)
        self.assertFalse(out.exists())

    def test_what_does_not_fit_is_refused(self):
        def drop(ending):
            return lambda f: f.tensors.remove(f.tensor(MATRIX + ending))

        def narrow(f):
            t = f.tensor(MATRIX + ".in_sum2")
            t.ne, t.data = [128], t.data[:512]

        def negative(f):
            t = f.tensor(MATRIX + ".in_sum2")
            t.data = struct.pack("<f", -1) + t.data[4:]

        self.refuse(self.edited(drop(".in_sum2")), MATRIX, "says nothing of it")
        self.refuse(self.edited(drop(".counts")), MATRIX, "sums and no counts")
        self.refuse(self.edited(narrow), MATRIX, "256 columns", "says 128")
        self.refuse(self.edited(negative), MATRIX, "column 0")
        self.refuse(self.model, "none of importance")
        self.refuse(self.text, "neither GGUF nor a list")
        self.refuse(self.matrix, "--imatrix has no use", kind="q8_0")
        cut = self.dir / "cut.gguf"
        cut.write_bytes(self.matrix.read_bytes()[:-4000])
        self.refuse(cut, "cut.gguf")

    def test_usage(self):
        self.assert_one_line_error(tern("imatrix", "-m", self.model, "-f", self.text), 2, ["-o FILE"])
        kept = tern("imatrix", "-m", self.model, "-f", self.text, "-o", self.matrix)
        self.assert_one_line_error(kept, 2, ["imatrix.gguf"])
        short = tern("imatrix", "-m", self.model, "-f", self.text, "-o", self.dir / "x", "--ctx", "512")
        self.assert_one_line_error(short, contains=["less than one window of 512"])
        self.assertFalse((self.dir / "x").exists())
        found = tern_json("imatrix", "-m", self.model, "-f", self.text, "-o", self.dir / "y", "--ctx", "64",
                          "--windows", "2")
        self.assertEqual((found["windows"], found["ctx"], found["matrices"]), (2, 64, 14))

    def test_folder(self):
        """Importance in an IEBIN folder: the same rows as from the model's file."""
        folder = self.dir / "folder"
        self.quantize("int4", folder, self.matrix, "--to", "iebin", "--int4-group", "64")
        self.assertEqual(Iebin(folder).tensor(MATRIX)["dtype"], "int4")


@unittest.skipUnless(np and gguf, "needs numpy and gguf")
class Experts(common.FolderTest):
    """Sums of each expert, from the rows that reach it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model, cls.text = cls.dir / "experts.gguf", cls.dir / "text.txt"
        tern_text("quantize", common.synth("qwen3moe-tiny", cls.dir), cls.model, "--type", "f32")
        unlike(cls.model)
        file, rng = gguf_edit.read(cls.model), np.random.default_rng(7)
        for t in file.tensors:  # no values that a block of q4_0 has exactly
            if "_exps." in t.name:
                t.data = (np.frombuffer(t.data, "<f4") * rng.uniform(0.8, 1.2, len(t.data) // 4)).astype("<f4").tobytes()
        cls.model.write_bytes(file.to_bytes())
        cls.text.write_text(TEXT)
        cls.matrix = cls.dir / "imatrix.gguf"
        cls.measured = measure(cls.model, cls.text, cls.matrix)

    def by_the_oracle(self):
        """{name: sums[expert][column], counts[expert]}"""
        from container import Container
        from forward import Model, matmul

        ids = tern_json("tokenize", "-m", self.model, "-f", self.text)["tokens"]
        found = {}

        class Watched(Model):
            def _expert(self, layer, e, f):
                gate, up = (self.file.tensor(f"blk.{layer}.ffn_{x}_exps.weight").matrix(e) for x in ("gate", "up"))
                t = self._activation()(matmul(gate, f, "auto")) * matmul(up, f, "auto")
                for name, x in (("gate", f), ("up", f), ("down", t)):
                    sums, counts = found.setdefault(f"blk.{layer}.ffn_{name}_exps.weight",
                                                    (np.zeros((6, x.shape[1])), np.zeros(6)))
                    sums[e] += (x * x).sum(axis=0)
                    counts[e] += len(x)
                return super()._expert(layer, e, f)

        for at in range(0, len(ids) // 64 * 64, 64):
            Watched(Container(self.model)).hidden(ids[at : at + 64])
        return found, len(ids) // 64 * 64

    def test_sums(self):
        found, n = self.by_the_oracle()
        self.assertEqual(len(found), 2 * 3)
        for name, (sums, counts) in found.items():
            seen = gguf_edit.read(self.matrix)
            self.assertEqual(list(seen.tensor(name + ".in_sum2").ne), [sums.shape[1], 6])
            self.assertEqual(list(seen.tensor(name + ".counts").ne), [1, 6])  # as llama.cpp has them
            np.testing.assert_array_equal(floats(self.matrix, name + ".counts")[:, 0], counts)
            np.testing.assert_allclose(floats(self.matrix, name + ".in_sum2"), sums, rtol=1e-3)
            self.assertEqual(counts.sum(), 2 * n)
            self.assertGreater(len(set(counts)), 1)
        self.assertEqual(floats(self.matrix, "blk.0.ffn_gate_inp.weight.counts")[0], n)
        self.assertIn("16 matrices", self.measured)

    def test_one_file_everywhere(self):
        expected, out = self.matrix.read_bytes(), self.dir / "again.gguf"
        for options in (["--isa", common.runnable_isas()[0], "--threads", "1"], ["--threads", "3"], ["--batch", "7"],
                        ["--batch", "1"]):
            measure(self.model, self.text, out, *options)
            self.assertEqual(out.read_bytes(), expected, options)

    def quantized(self, matrix, name, kind="q4_0"):
        """The bytes of each expert."""
        out = self.dir / "quantized.gguf"
        tern_text("quantize", self.model, out, "--type", kind, "--force", "--imatrix", matrix)
        data = gguf_edit.read(out).tensor(name).data
        cols, rows = gguf_edit.read(out).tensor(name).ne[:2]
        size = rows * cols // 32 * 18
        return [data[i * size : (i + 1) * size] for i in range(6)]

    def edited(self, name, sums, counts):
        """The file with other sums and counts of one tensor."""
        file = gguf_edit.read(self.matrix)
        for ending, values in ((".in_sum2", sums), (".counts", counts)):
            t = file.tensor(name + ending)
            t.ne, t.data = list(values.shape[::-1]), values.astype("<f4").tobytes()
        path = self.dir / "edited.gguf"
        path.write_bytes(file.to_bytes())
        return path

    def test_each_follows_its_own(self):
        """Experts as if each was alone: their rows are those that a file with their sums alone gives."""
        for name in ("blk.0.ffn_up_exps.weight", "blk.1.ffn_down_exps.weight"):
            sums, counts = floats(self.matrix, name + ".in_sum2"), floats(self.matrix, name + ".counts")
            made = self.quantized(self.matrix, name)
            for e in range(6):
                alone = self.quantized(self.edited(name, sums[e], counts[e]), name)
                self.assertEqual(made[e], alone[e])
                self.assertTrue(all(made[i] != alone[i] for i in range(6) if i != e))
            mixed = self.quantized(self.edited(name, sums.sum(axis=0), counts.sum(axis=0)), name)
            self.assertNotEqual(made, mixed)

    def test_experts_without_rows(self):
        """An expert that no token reached follows the sums of all."""
        name = "blk.0.ffn_gate_exps.weight"
        sums = np.round(floats(self.matrix, name + ".in_sum2"))  # whose sum is exact
        counts = floats(self.matrix, name + ".counts").copy()
        sums[2], counts[2] = 0, 0
        made = self.quantized(self.edited(name, sums, counts), name)
        alike = self.quantized(self.edited(name, sums.sum(axis=0), counts.sum(axis=0)), name)
        self.assertEqual(made[2], alike[2])
        self.assertNotEqual(made[1], alike[1])
        short = tern_json("imatrix", self.model, self.text, "--ctx", "4", "--windows", "1", "-o", self.dir / "short.gguf")
        file = self.dir / "short.gguf"
        unseen = sum(int((floats(file, f"blk.{i}.ffn_up_exps.weight.counts") == 0).sum()) for i in range(2))
        self.assertGreater(unseen, 0)
        self.assertEqual(short["unseen"], 3 * unseen)
        words = tern_text("imatrix", self.model, self.text, "--ctx", "4", "--windows", "1", "-o", file, "--force")
        self.assertIn(f"{3 * unseen} of experts that no token reached", words)
        self.assertNotIn("no token reached", self.measured)

    def test_older_form(self):
        out, name = self.dir / "imatrix.dat", "blk.1.ffn_up_exps.weight"
        measure(self.model, self.text, out)
        means, chunks, _ = read_old(out)
        sums, counts = floats(self.matrix, name + ".in_sum2"), floats(self.matrix, name + ".counts")
        np.testing.assert_allclose(means[name].reshape(6, -1), sums / counts, rtol=1e-6)
        self.assertEqual(self.quantized(out, name), self.quantized(self.matrix, name))

    def test_refused(self):
        name, out = "blk.0.ffn_up_exps.weight", self.dir / "never.gguf"
        sums, counts = floats(self.matrix, name + ".in_sum2"), floats(self.matrix, name + ".counts")
        for other, words in (
            ((sums[:4], counts[:4]), ["6 x 96 columns", "says 4 x 96"]),
            ((sums[:, :64], counts), ["6 x 96 columns", "says 6 x 64"]),
            ((sums, counts[:4]), ["4 counts for 6 x 96 sums"]),
            ((sums, counts * 0), ["the sum of 0 rows"]),
            ((sums, counts - 1e6), ["sums 0 are of -"]),
            ((sums, counts * np.nan), ["sums 0 are of"]),
        ):
            refused = tern("quantize", self.model, out, "--type", "q4_0", "--imatrix", self.edited(name, *other))
            self.assert_one_line_error(refused, contains=[name, *words])
            self.assertFalse(out.exists())


if __name__ == "__main__":
    common.main()
