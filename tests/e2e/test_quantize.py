# SPDX-License-Identifier: Apache-2.0
"""Tests of tern quantize: another reader reads the same values from the file, and the messages about it are true."""

import struct
import sys
import unittest
from pathlib import Path

import common
import gguf_edit
import weights
from common import tern, tern_json, tern_text

try:
    import gguf
    import numpy as np

    sys.path.insert(0, str(common.ROOT / "tests" / "oracle"))
    import tensors
    from container import Container
except ImportError:
    gguf = None

F32, Q8_0, TQ1_0, TQ2_0, I2_S = 0, 8, 34, 35, 36
TYPES = [*weights.PLAIN, *"f32 f16 bf16 nvfp4 q6_k q5_k q4_k tq2_0 tq1_0".split()]
FILE_TYPE = {"f32": 0, "q4_k": 15, "i2_s": 40, "tq1_0": 36, "tq2_0": 37, "q8_0": 7}
TQ2_BYTES = 66


def matrices(file):
    return [t for t in file.tensors if len(t.ne) == 2 and t.name != "token_embd.weight"]


class Quantize(common.FolderTest):
    def path(self, name):
        return self.dir / f"{name}.gguf"

    def quantize(self, source, kind, *options):
        """Returns the new file and, by tensor, what tern says about it."""
        out = self.dir / f"{source.stem}.{kind}{''.join(map(str, options))}.gguf"
        said = tern_json("quantize", source, out, "--type", kind, *options, "--force")
        return out, {t["name"]: t for t in said["tensors"]}

    def hash(self, model):
        return tern_text("logits", "-m", model, "--tokens", "5,17,300,2", "--all", "--sha256")

    def ternary(self, scale):
        """A model whose matrices are exactly ternary, in tq2_0, with one scale (bytes of an f16)."""
        file = gguf_edit.read(common.synth("bitnet-tiny-tq2_0", self.dir))
        for t in matrices(file):
            data = bytearray(t.data)
            size = t.ne[0] * t.ne[1] // 256 * TQ2_BYTES
            for at in range(TQ2_BYTES - 2, size, TQ2_BYTES):
                data[at : at + 2] = scale
            t.data = bytes(data)
        path = self.path(f"ternary-{scale.hex()}")
        path.write_bytes(file.to_bytes())
        return path

    # ---- ternary ----

    def test_ternary_round(self):
        """tq2_0 -> i2_s -> tq1_0 -> f16 -> i2_s -> tq2_0: no value, no logit, no byte changes."""
        first = self.ternary(struct.pack("<e", 0.043))
        expected, at = self.hash(first), first
        for kind in ("i2_s", "tq1_0", "f16", "i2_s", "tq2_0"):
            at, said = self.quantize(at, kind, "--embedding-type", "tq1_0")
            self.assertNotIn("lossy", {t["outcome"] for t in said.values()}, kind)
            self.assertEqual(gguf_edit.read(at).number("general.file_type"), FILE_TYPE.get(kind, 1))
            if kind != "f16":  # whose products do not round activations
                self.assertEqual(self.hash(at), expected, kind)
        for a, b in zip(gguf_edit.read(first).tensors, gguf_edit.read(at).tensors, strict=True):
            self.assertEqual((a.name, a.kind, a.ne), (b.name, b.kind, b.ne))
            self.assertEqual(a.data.rstrip(b"\0"), b.data.rstrip(b"\0"), a.name)

    def test_scale_is_rounded(self):
        """A scale that f16 cannot hold is reported as lossy, by at most half a step."""
        one, _ = self.quantize(self.ternary(struct.pack("<e", 0.043)), "i2_s")
        file = gguf_edit.read(one)
        for t in matrices(file):
            n = t.ne[0] * t.ne[1] // 4
            t.data = t.data[:n] + struct.pack("<f", 0.0430001) + t.data[n + 4 :]
        one.write_bytes(file.to_bytes())
        _, said = self.quantize(one, "tq2_0")
        changed = [said[t.name] for t in matrices(file)]
        self.assertEqual({t["outcome"] for t in changed}, {"lossy"})
        half = (
            float(np.float16(0.0430001))
            if gguf
            else struct.unpack("<e", struct.pack("<e", 0.0430001))[0]
        )
        for t in changed:
            self.assertAlmostEqual(t["error"], abs(half - 0.0430001) / 0.0430001, delta=1e-6)
        self.assertIn("lossy", tern_text("quantize", one, self.path("x"), "--type", "tq2_0"))

    def test_mixtures(self):
        """Each matrix of a mixture has the format that llama.cpp's rules give it; 2 layers, 4 queries a key."""
        source = common.synth("llama-tiny-q6_k", self.dir)
        for kind, file_type, most, first, last in (
            ("q2_k", 10, "q2_k", {"attn_v": "q3_k", "ffn_down": "q3_k", "attn_output": "q3_k"}, None),
            ("q3_k_s", 11, "q3_k", {}, None),
            ("q3_k_m", 12, "q3_k", {"attn_v": "q5_k", "ffn_down": "q4_k", "attn_output": "q4_k"}, None),
            ("q3_k_l", 13, "q3_k", {"attn_v": "q5_k", "ffn_down": "q5_k", "attn_output": "q5_k"}, None),
            ("q4_k_s", 14, "q4_k", {"attn_v": "q5_k"}, None),
            ("q4_k_m", 15, "q4_k", {}, {"attn_v": "q6_k", "ffn_down": "q6_k"}),
            ("q5_k_s", 16, "q5_k", {}, None),
            ("q5_k_m", 17, "q5_k", {}, {"attn_v": "q6_k", "ffn_down": "q6_k"}),
            ("iq4_xs", 30, "iq4_xs", {}, None),
        ):
            with self.subTest(type=kind):
                out, said = self.quantize(source, kind)
                for name, tensor in said.items():
                    matrix = name.removesuffix(".weight").split(".")[-1]
                    rules = last if last is not None and name.startswith("blk.1.") else first
                    wanted = "q6_k" if matrix == "output" else rules.get(matrix, most)
                    self.assertEqual(tensor["to"], "f32" if "norm" in matrix else wanted, name)
                self.assertEqual(gguf_edit.read(out).number("general.file_type"), file_type)
                self.assertEqual(len(self.hash(out).split()), 1)

    def test_not_ternary(self):
        source = common.synth("llama-tiny-q6_k", self.dir)
        for kind in ("i2_s", "tq1_0", "tq2_0"):
            with self.subTest(type=kind):
                out = self.path(f"forced-{kind}")
                before = sorted(self.dir.iterdir())
                result = tern("quantize", source, out, "--type", kind)
                self.assert_one_line_error(
                    result, contains=["blk.0.attn_q.weight", kind, "--force-ternary"]
                )
                self.assertEqual(sorted(self.dir.iterdir()), before)
                text = tern_text("quantize", source, out, "--type", kind, "--force-ternary")
                self.assertRegex(text, rf"lossy +\d+ tensors q6_k to {kind}: relative error 0\.\d+")
                self.assertEqual(len(self.hash(out).split()), 1)

    def test_groups(self):
        """Bonsai's formats: ternary ones change into each other and keep the logits, Q1_0 keeps its own."""
        common.synth("bonsai-tiny-pq2_0", self.dir)
        source = self.dir / "bonsai-tiny-pq2_0-1.gguf"
        expected = self.hash(source)
        at = source
        for kind in ("ptq1_0", "q2_0", "f16", "pq2_0"):
            at, said = self.quantize(at, kind, "--embedding-type", "q2_0")
            self.assertNotIn("lossy", {t["outcome"] for t in said.values()}, kind)
            if kind != "f16":  # whose products do not round activations
                self.assertEqual(self.hash(at), expected, kind)
        result = tern("quantize", source, self.path("binary"), "--type", "q1_0")
        self.assert_one_line_error(result, contains=["binary", "each 128 columns", "--force-ternary"])
        binary = common.synth("bonsai-tiny-q1_0", self.dir)
        floats, _ = self.quantize(binary, "f32", "--embedding-type", "f32")
        again, said = self.quantize(floats, "q1_0", "--embedding-type", "q1_0")
        self.assertNotIn("lossy", {t["outcome"] for t in said.values()})
        self.assertEqual(self.hash(again), self.hash(binary))

    def test_quads(self):
        """STQ1_0 comes back from floats; weights without one zero in four are refused."""
        sherry = common.synth("sherry-tiny", self.dir)
        floats, _ = self.quantize(sherry, "f32", "--embedding-type", "f32")
        again, said = self.quantize(floats, "stq1_0", "--embedding-type", "stq1_0")
        self.assertEqual({t["to"] for t in said.values()} - {"f32"}, {"stq1_0"})
        self.assertNotIn("lossy", {t["outcome"] for t in said.values()})
        self.assertEqual(self.hash(again), self.hash(sherry))
        ternary, said = self.quantize(sherry, "tq2_0", "--embedding-type", "tq2_0")
        self.assertNotIn("lossy", {t["outcome"] for t in said.values()})
        back, said = self.quantize(ternary, "stq1_0", "--embedding-type", "stq1_0")
        self.assertNotIn("lossy", {t["outcome"] for t in said.values()})
        trilm = common.synth("trilm-tiny", self.dir)
        result = tern("quantize", trilm, self.path("dense"), "--type", "stq1_0")
        self.assert_one_line_error(result, contains=["one zero in four", "--force-ternary"])
        forced, said = self.quantize(trilm, "stq1_0", "--force-ternary")
        errors = [t["error"] for t in said.values() if t["to"] == "stq1_0"]
        self.assertTrue(all(0.2 < e < 0.8 for e in errors), errors)

    def test_orders_of_i2_s(self):
        """Codes one after the other, as some writers leave them, get the usual order."""
        usual, _ = self.quantize(self.ternary(struct.pack("<e", 0.043)), "i2_s")
        file = gguf_edit.read(usual)
        for t in matrices(file):
            n = t.ne[0] * t.ne[1]
            codes = [
                t.data[32 * (e // 128) + e % 32] >> (6 - 2 * (e % 128 // 32)) & 3 for e in range(n)
            ]
            turned = bytes(
                codes[i] << 6 | codes[i + 1] << 4 | codes[i + 2] << 2 | codes[i + 3]
                for i in range(0, n, 4)
            )
            t.data = turned + t.data[n // 4 :]
        path = self.path("sequential")
        path.write_bytes(file.to_bytes())
        out, said = self.quantize(path, "i2_s", "--i2s-layout", "d")
        self.assertEqual({t["outcome"] for t in said.values()}, {"copied"})
        self.assertEqual(out.read_bytes(), usual.read_bytes())

    # ---- every format ----

    @unittest.skipUnless(gguf, "needs numpy and gguf")
    def test_another_reader(self):
        """Python's gguf dequantizes the file to the same values as tern, bit for bit."""
        base, _ = self.quantize(
            common.synth("llama-tiny-q6_k", self.dir), "f32", "--embedding-type", "f32"
        )
        original = {t.name: t.data for t in gguf.GGUFReader(base).tensors}
        for kind in TYPES:
            with self.subTest(type=kind):
                options = ("--embedding-type", kind, "--output-type", kind, "--force-ternary")
                out, said = self.quantize(base, kind, *options)
                back, lossless = self.quantize(out, "f32")
                self.assertNotIn("lossy", {t["outcome"] for t in lossless.values()})
                read_back = {t.name: t.data for t in gguf.GGUFReader(back).tensors}
                for t in gguf.GGUFReader(out).tensors:
                    self.assertEqual(t.tensor_type.name.lower(), said[t.name]["to"])
                    self.assertEqual(said[t.name]["to"], kind if len(t.shape) == 2 else "f32")
                    seen = gguf.quants.dequantize(t.data, t.tensor_type)
                    np.testing.assert_array_equal(seen, read_back[t.name], t.name)
                    self.check_error(said[t.name], original[t.name], seen)

    def check_error(self, said, x, y):
        x, y = (np.asarray(a, dtype=np.float64).ravel() for a in (x, y))
        error = np.sqrt(((x - y) ** 2).sum() / (x**2).sum())
        self.assertAlmostEqual(said["error"], error, delta=1e-9 + 1e-6 * error)
        self.assertEqual(said["outcome"] == "lossy", bool((x != y).any()), said)

    @unittest.skipUnless(gguf, "needs numpy and gguf")
    def test_from_every_format(self):
        """Values are those that the oracle's decoders find, also of I2_S and IQ2_S."""
        for preset in common.quantized() + common.FLOATS:
            with self.subTest(preset=preset):
                source = common.synth(preset, self.dir)
                out, said = self.quantize(source, "f32", "--embedding-type", "f32")
                self.assertNotIn("lossy", {t["outcome"] for t in said.values()})
                a, b = Container(source), Container(out)
                for name in said:
                    x, y = a.tensor(name), b.tensor(name)
                    self.assertEqual(y.kind, F32)
                    np.testing.assert_array_equal(
                        x.values().astype(np.float32), y.values().astype(np.float32), name
                    )

    def test_stand_ins(self):
        """Blocks of these formats do not fit the columns (96, 160; 88, 150)."""
        for preset, kind, matrix, embedding in (
            ("llama-tiny-q8_0", "q4_k", "q5_0", "q8_0"),
            ("llama-tiny-q8_0", "q6_k", "q8_0", "q8_0"),
            ("llama-tiny-f32", "q4_0", "f16", "f16"),
            ("llama-tiny-f32", "bf16", "bf16", "bf16"),
        ):
            with self.subTest(preset=preset, type=kind):
                out, said = self.quantize(common.synth(preset, self.dir), kind)
                self.assertEqual(said["blk.0.ffn_down.weight"]["to"], matrix)
                self.assertEqual(said["token_embd.weight"]["to"], embedding)
                self.assertEqual(said["output_norm.weight"]["to"], "f32")
                self.hash(out)
        result = tern(
            "quantize", common.synth("bitnet-tiny", self.dir), self.path("none"), "--type", "tq2_0"
        )
        self.assert_one_line_error(
            result, contains=["blk.0.ffn_down.weight", "640", "tq2_0", "256"]
        )

    def test_embedding_and_output(self):
        source = common.synth("llama-tiny-q5_k", self.dir)
        for options, embedding, output in (
            ((), "q4_k", "q5_k"),  # quantized already: as they are
            (("--embedding-type", "q8_0"), "q8_0", "q5_k"),
            (("--output-type", "f16"), "q4_k", "f16"),
        ):
            _, said = self.quantize(source, "q4_0", *options)
            self.assertEqual(said["token_embd.weight"]["to"], embedding)
            self.assertEqual(said["output.weight"]["to"], output)
            self.assertEqual(said["blk.0.attn_q.weight"]["to"], "q4_0")
        floats, _ = self.quantize(source, "f16", "--embedding-type", "f16")
        _, said = self.quantize(floats, "q4_0")
        self.assertEqual(said["token_embd.weight"]["to"], "q8_0")

    # ---- the file ----

    def test_biases_of_experts(self):
        """Biases of all experts lie in one tensor of two dimensions, and stay as they are all the same."""
        source = common.synth("gpt-oss-tiny", self.dir)
        out, said = self.quantize(source, "q4_0")
        before, after = gguf_edit.read(source), gguf_edit.read(out)
        for name in ("ffn_gate_exps.bias", "ffn_up_exps.bias", "ffn_down_exps.bias"):
            name = f"blk.3.{name}"
            self.assertEqual((said[name]["to"], said[name]["outcome"]), ("f32", "copied"))
            self.assertEqual(after.tensor(name).data, before.tensor(name).data)
        self.assertEqual(said["blk.3.ffn_gate_exps.weight"]["to"], "q4_0")
        self.assertEqual(len(self.hash(out).strip()), 64)

    def test_metadata(self):
        source = common.synth("bitnet-tiny-tq2_0", self.dir)
        out, _ = self.quantize(source, "q4_k")
        a, b = gguf_edit.read(source), gguf_edit.read(out)
        changed = {"general.file_type"}
        for key, kind, value in a.keys:
            if key not in changed:
                self.assertEqual(b[key], (kind, value), key)
        self.assertEqual({k for k, _, _ in a.keys}, {k for k, _, _ in b.keys})
        self.assertEqual(b.number("general.file_type"), FILE_TYPE["q4_k"])
        self.assertEqual([t.name for t in a.tensors], [t.name for t in b.tensors])

    def test_threads(self):
        source = common.synth("llama-tiny-q6_k", self.dir)
        files = [self.quantize(source, "q4_k", "--threads", n)[0].read_bytes() for n in (1, 3)]
        self.assertEqual(*files)

    def test_bad_sources(self):
        file = gguf_edit.read(common.synth("llama-tiny-f32", self.dir))
        t = file.tensor("blk.1.ffn_up.weight")
        t.data = t.data[: 88 * 4 * 3] + struct.pack("<f", float("nan")) + t.data[88 * 4 * 3 + 4 :]
        bad = self.path("nan")
        bad.write_bytes(file.to_bytes())
        before = sorted(self.dir.iterdir())
        result = tern("quantize", bad, self.path("x"), "--type", "f16")
        self.assert_one_line_error(result, contains=["blk.1.ffn_up.weight", "row 3", "f16"])
        t.kind, t.ne, t.data = 15, [256, 16], bytes(16 * 292)  # q8_k
        bad.write_bytes(file.to_bytes())
        result = tern("quantize", bad, self.path("x"), "--type", "f16")
        self.assert_one_line_error(result, contains=["blk.1.ffn_up.weight", "q8_k"])
        result = tern("quantize", self.dir, self.path("x"), "--type", "f16")
        self.assert_one_line_error(result, contains=["directory"])
        result = tern(
            "quantize", common.synth("llama-tiny-f32", self.dir), self.dir, "--type", "f16"
        )
        self.assert_one_line_error(result, contains=[str(self.dir)])
        self.assertEqual(sorted(self.dir.iterdir()), before)

    def test_usage(self):
        source = common.synth("llama-tiny-f32", self.dir)
        for arguments in (
            (source, self.path("x")),
            (source, "--type", "f16"),
            (source, self.path("x"), "--type", "q3_k"),
            (source, self.path("x"), "--type", "q8_0", "--embedding-type", "i2_s"),
        ):
            self.assert_one_line_error(tern("quantize", *arguments), status=2)


if __name__ == "__main__":
    common.main()
