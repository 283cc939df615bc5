# SPDX-License-Identifier: Apache-2.0
"""Models whose weights were turned by a Hadamard transform: turned back exactly, or refused by name."""

import json
import struct
import tempfile
from pathlib import Path

import common
import suite
import gguf_edit
from common import tern, tern_text
from gguf_edit import i32s, string, strings, u32

suite.need("numpy")

import numpy as np  # noqa: E402

KEY = "prism.hadamard."
BLOCK = 128
F32 = 0
# Matrices of a block, and which signs they meet: those of 256 columns, or of 384.
INPUTS = {
    "attn_q": 0, "attn_k": 0, "attn_v": 0, "attn_output": 0, "ffn_gate": 0, "ffn_up": 0, "ffn_down": 1,
}


def sylvester(n):
    """Element (i, k) is 1 or -1 by the ones that i and k share."""
    ones = np.array([[bin(i & k).count("1") for k in range(n)] for i in range(n)])
    return (1 - 2 * (ones % 2)) / np.sqrt(n)


def i8s(values):
    return gguf_edit.ARRAY, struct.pack(f"<IQ{len(values)}b", 1, len(values), *values)


def turned(rows, signs):
    """Each row w as H(signs * w), in blocks of columns."""
    shape = rows.shape
    return ((rows * signs).reshape(shape[0], -1, BLOCK) @ sylvester(BLOCK)).reshape(shape)


class Hadamard(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.keep.name)
        cls.path = cls.folder / "edited.gguf"
        cls.model = common.synth("bonsai2-tiny", cls.folder)
        cls.expected = cls.hash(cls.model)

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    @staticmethod
    def hash(model):
        return tern_text("logits", "-m", model, "--tokens", "7,3,250", "--sha256").split()[0]

    def edited(self, changes):
        """The model with other keys; None takes a key away."""
        file = gguf_edit.read(self.model)
        for name, value in changes.items():
            if value is None:
                del file[KEY + name]
            else:
                file[KEY + name] = value
        self.path.write_bytes(file.to_bytes())
        return self.path

    # ---- what is read ----

    def test_incomplete_and_contradictory_keys(self):
        """Each is refused in a line that names it."""
        names = gguf_edit.read(self.model).texts(KEY + "weight_names")
        signs = gguf_edit.read(self.model).numbers(KEY + "sign_values")
        cases = [({k: None}, [KEY + k]) for k in (
            "version", "block_size", "transform", "axis", "sign_mode", "sign_widths", "sign_values",
            "weight_names")]
        cases += [
            ({"version": u32(2)}, [KEY + "version is 2"]),
            ({"block_size": u32(96)}, [KEY + "block_size is 96"]),
            ({"block_size": u32(8)}, [KEY + "block_size is 8"]),
            ({"block_size": u32(0)}, [KEY + "block_size is 0"]),
            ({"block_size": string("64")}, [KEY + "block_size"]),
            ({"block_size": u32(512)}, [KEY + "sign_widths: element 0", "512"]),
            ({"transform": string("hadamard")}, [KEY + "transform is 'hadamard'"]),
            ({"axis": string("output")}, [KEY + "axis is 'output'"]),
            ({"sign_mode": string("random")}, [KEY + "sign_mode is 'random'"]),
            ({"sign_mode": string("identity")}, ["sign_mode is identity", "there are signs"]),
            ({"sign_widths": u32(256)}, [KEY + "sign_widths is not an array"]),
            ({"sign_widths": i32s([256, 256])}, [KEY + "sign_widths has 256 twice"]),
            ({"sign_widths": i32s([256, -384])}, [KEY + "sign_widths: element 1"]),
            ({"sign_widths": i32s([])}, [KEY + "sign_widths has 0"]),
            ({"sign_widths": i32s([64] * 17)}, [KEY + "sign_widths has 17"]),
            ({"sign_widths": i32s([256]), "sign_values": i32s(signs[:256])}, ["ffn_down", "sign_widths lacks its 384"]),
            ({"sign_values": i32s(signs[:-1])}, [KEY + "sign_values has 639", "640"]),
            ({"sign_values": i32s([0, *signs[1:]])}, [KEY + "sign_values: element 0"]),
            ({"sign_values": i32s([*signs[:-1], 2])}, [KEY + "sign_values: element 639"]),
            ({"sign_values": strings(["1"] * 640)}, [KEY + "sign_values: element 0"]),
            ({"weight_names": i32s([1])}, [KEY + "weight_names"]),
            ({"weight_names": strings([*names, "blk.0.attn_norm.weight"])}, ["'blk.0.attn_norm.weight'"]),
            ({"weight_names": strings([*names, "blk.2.attn_q.weight"])}, ["'blk.2.attn_q.weight'"]),
            ({"weight_names": strings([*names, "blk.99999999999.attn_q.weight"])}, ["99999999999"]),
            ({"weight_names": strings([*names, "blk..attn_q.weight"])}, ["'blk..attn_q.weight'"]),
            ({"weight_names": strings([*names, ""])}, ["''"]),
            ({"weight_names": strings([*names, names[3]])}, [names[3], "twice"]),
            ({"weight_names": strings([*names, "token_embd.weight"])}, ["token_embd.weight", "not the head"]),
            ({"weight_names": strings([n for n in names if n != "blk.1.attn_k.weight"])}, ["not blk.1.attn_k.weight"]),
            ({"weight_names": strings([n for n in names if n != "blk.0.ffn_up.weight"])}, ["not blk.0.ffn_up.weight"]),
            ({"inverse_weight_names": strings(["output.weight"])}, ["'output.weight' is not the embedding"]),
            ({"inverse_weight_names": u32(1)}, [KEY + "inverse_weight_names"]),
            ({"rank": u32(1)}, [KEY + "rank", "does not know"]),
        ]
        for changes, words in cases:
            with self.subTest(changes=list(changes), words=words):
                result = tern("run", "-m", self.edited(changes), "-p", "a", "-n", "1")
                self.assert_one_line_error(result, contains=words)

    def test_keys_that_change_nothing(self):
        signs = gguf_edit.read(self.model).numbers(KEY + "sign_values")
        boolean = (gguf_edit.BOOL, b"\1")
        for changes in ({"gdn_v_grouped": boolean}, {"sign_values": i8s(signs)},
                        {"sign_widths": i32s([256, 384, 64]), "sign_values": i32s([*signs, *[1] * 64])}):
            with self.subTest(changes=list(changes)):
                self.assertEqual(self.hash(self.edited(changes)), self.expected)

    def test_every_key_counts(self):
        """Another sign, fewer matrices or another block size give other logits, and everything that is kept for the
        model takes them for another one."""
        file = gguf_edit.read(self.model)
        names, signs = file.texts(KEY + "weight_names"), file.numbers(KEY + "sign_values")
        seen = {self.expected}
        kept = self.folder / "session"
        tern_text("run", "-m", self.model, "-p", "abc", "-n", "1", "--prompt-cache", kept)
        for changes in (
            {"sign_values": i32s([-signs[0], *signs[1:]])},
            {"sign_values": i32s([*signs[:-1], -signs[-1]])},
            {"block_size": u32(128)},
            {"sign_mode": string("identity"), "sign_widths": None, "sign_values": None},
            {"weight_names": strings([n for n in names if n != "output.weight"])},
            {"weight_names": strings([n for n in names if n != "blk.1.ffn_down.weight"])},
            {"weight_names": strings([n for n in names if n != "blk.0.attn_output.weight"])},
            {"inverse_weight_names": strings([])},
        ):
            with self.subTest(changes=list(changes)):
                found = self.hash(self.edited(changes))
                self.assertNotIn(found, seen)
                seen.add(found)
                run = ("run", "-m", self.path, "-p", "abc", "-n", "1", "--prompt-cache-ro", "--prompt-cache", kept)
                self.assert_one_line_error(tern(*run), contains=["session", "model"])

    def test_delta_nets(self):
        """The last matrices of a block are turned as the first; heads in groups are refused."""
        file = gguf_edit.read(common.synth("qwen35-tiny", self.folder))
        self.path.write_bytes(file.to_bytes())
        plain = self.hash(self.path)
        keys = {"version": u32(1), "block_size": u32(32), "transform": string("normalized-sylvester-walsh-hadamard"),
                "axis": string("input-last-dimension"), "sign_mode": string("identity"),
                "weight_names": strings(["blk.0.ssm_out.weight"]), "gdn_v_grouped": (gguf_edit.BOOL, b"\0")}  # fmt: skip
        for name, value in keys.items():
            file[KEY + name] = value
        self.path.write_bytes(file.to_bytes())
        self.assertNotEqual(self.hash(self.path), plain)
        file[KEY + "gdn_v_grouped"] = (gguf_edit.BOOL, b"\1")
        self.path.write_bytes(file.to_bytes())
        result = tern("run", "-m", self.path, "-p", "a", "-n", "1")
        self.assert_one_line_error(result, contains=[KEY + "gdn_v_grouped", "groups"])

    def test_said(self):
        said = "blocks of 64, with signs, before 15 matrices, after the embedding (file)"
        self.assertIn(said, tern_text("inspect", self.model))
        run = tern("run", "-m", self.model, "-p", "a", "-n", "1", "-v")
        self.assertIn(said, run.stderr.decode())
        plain = common.synth("bonsai-tiny-ptq1_0", self.folder)
        self.assertNotIn("Hadamard", tern_text("inspect", plain))

    # ---- what it means ----

    def floats(self, tied):
        """A model of floats."""
        source = common.synth("bonsai-tiny-pq2_0" if tied else "bonsai-tiny-ptq1_0", self.folder)
        out = self.folder / f"floats-{tied}.gguf"
        tern_text("quantize", source, out, "--type", "f32", "--embedding-type", "f32", "--force")
        return gguf_edit.read(out)

    def fold(self, file, signs, tied):
        """Turns its weights so that turned rows give the results that the rows themselves gave before."""
        def fold_tensor(name, width):
            tensor = file.tensor(name)
            self.assertEqual(tensor.kind, F32)
            rows = np.frombuffer(tensor.data, "<f4").reshape(tensor.ne[1], tensor.ne[0])
            tensor.data = turned(rows.astype(np.float64), signs[width]).astype("<f4").tobytes()

        names = [f"blk.{layer}.{name}.weight" for layer in range(2) for name in INPUTS]
        for name in names:
            fold_tensor(name, INPUTS[name.split(".")[2]])
        fold_tensor("token_embd.weight", 0)
        if not tied:
            fold_tensor("output.weight", 0)
            names.append("output.weight")
        file[KEY + "version"] = u32(1)
        file[KEY + "block_size"] = u32(BLOCK)
        file[KEY + "transform"] = string("normalized-sylvester-walsh-hadamard")
        file[KEY + "axis"] = string("input-last-dimension")
        file[KEY + "weight_names"] = strings(names)
        file[KEY + "inverse_weight_names"] = strings(["token_embd.weight"])
        file[KEY + "sign_mode"] = string("identity")
        if np.any(signs[0] < 0):
            file[KEY + "sign_mode"] = string("explicit")
            file[KEY + "sign_widths"] = i32s([256, 384])
            file[KEY + "sign_values"] = i8s([int(s) for s in np.concatenate(signs)])

    def logits(self, path):
        out = self.folder / "logits.f32"
        tern_text("logits", "-m", path, "--tokens", common.comma(common.prompt(30, 300)), "--all", "--act-prec", "fp32",
                  "--kv", "f32", "--force", "--output", out)
        return np.fromfile(out, "<f4")

    def embedding(self, path):
        text = json.dumps({"tokens": common.prompt(30, 300)}).encode()
        return np.array(json.loads(tern_text("embed", "-m", path, "--pooling", "mean", "--act-prec", "fp32", stdin=text))["embedding"])

    def test_turned_weights_give_what_they_were(self):
        """The same model with its weights turned, and the keys that say so: logits and embeddings stay."""
        rng = np.random.default_rng(5)
        plain = self.folder / "plain.gguf"
        for tied in (False, True):
            for signs in ([np.ones(256), np.ones(384)], [rng.choice([-1.0, 1.0], n) for n in (256, 384)]):
                with self.subTest(tied=tied, explicit=bool(np.any(signs[0] < 0))):
                    file = self.floats(tied)
                    plain.write_bytes(file.to_bytes())
                    want = self.logits(plain)
                    self.fold(file, signs, tied)
                    self.path.write_bytes(file.to_bytes())
                    got = self.logits(self.path)
                    self.assertLess(np.abs(got - want).max(), 1e-4 * want.std())
                    self.assertGreater(np.dot(self.embedding(plain), self.embedding(self.path)), 0.999999)
                    for key in [k for k, _, _ in file.keys if k.startswith(KEY)]:
                        del file[key]
                    self.path.write_bytes(file.to_bytes())
                    self.assertGreater(np.abs(self.logits(self.path) - want).max(), want.std())

    # ---- kept by the tools ----

    def test_written_again(self):
        """Keys go along; what is turned stays so in other formats."""
        out = self.folder / "again.gguf"
        for kind, embedding in (("pq2_0", "ptq1_0"), ("q2_0", "pq2_0")):
            with self.subTest(kind=kind):
                tern_text("quantize", self.model, out, "--type", kind, "--embedding-type", embedding, "--force")
                before, after = gguf_edit.read(self.model), gguf_edit.read(out)
                self.assertEqual([k for k in before.keys if k[0].startswith(KEY)], [k for k in after.keys if k[0].startswith(KEY)])
                self.assertEqual(self.hash(out), self.expected)


if __name__ == "__main__":
    common.main()
