# SPDX-License-Identifier: Apache-2.0
"""INT4 in IEBIN folders: codes and scales to the bit, every form of the same weights, the manifest, the plan."""

import json
import subprocess
import sys
import unittest

import common
import gguf_edit
from common import tern, tern_json, tern_text
from iebin_folder import DATA, Iebin

try:
    import numpy as np
    from hf_folder import Folder
except ImportError:
    np = None

TOKENS = "5,17,30,2,2,33,71"
MATRIX = "blk.1.ffn_up.weight"
SCRIPT = common.ROOT / "scripts" / "hf_to_iebin.py"
GROUPS = ("32", "64", "128", "row")


def logits_hash(path, *options):
    return tern_text("logits", "-m", path, "--tokens", TOKENS, "--all", "--sha256", *options)


def split(entry, raw):
    """Nibbles [rows, cols/2], scales [rows, groups] and zero points, or None, of a tensor."""
    rows, cols = entry["shape"]
    group = cols if entry["group"] == "row" else entry["group"]
    groups = -(-cols // group)
    affine = entry["scheme"] == "affine"
    data = np.frombuffer(raw, np.uint8).reshape(rows, cols // 2 + groups * (3 if affine else 2))
    scales = data[:, cols // 2 :][:, : 2 * groups].copy().view("<f2")
    zeros = data[:, cols // 2 + 2 * groups :] if affine else None
    return data[:, : cols // 2], scales, zeros


def join(nibbles, scales, zeros):
    parts = [nibbles, np.ascontiguousarray(scales.astype("<f2")).view(np.uint8)]
    return np.concatenate(parts + ([zeros] if zeros is not None else []), axis=1).astype(np.uint8).tobytes()


def expand(per_group, group, cols):
    return np.repeat(per_group, group, axis=1)[:, :cols]


def codes_of(nibbles):
    return np.stack([nibbles & 15, nibbles >> 4], axis=2).reshape(len(nibbles), -1)


def pack(codes):
    return (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)


def encode(x, group, affine):
    """Codes, scales and zero points by their definition, in the program's order of operations."""
    rows, cols = x.shape
    groups = -(-cols // group)
    scales, zeros = np.zeros((rows, groups), np.float16), np.full((rows, groups), 8, np.uint8)
    codes, one = np.zeros((rows, cols), np.uint8), np.float32(1)
    for r in range(rows):
        for g in range(groups):
            part = x[r, g * group : (g + 1) * group].astype(np.float32)
            least, most = min(np.float32(0), part.min()), max(np.float32(0), part.max())
            farthest = part[np.argmax(np.abs(part))]
            d = np.float16((most - least) / np.float32(15) if affine else farthest / np.float32(-8))
            inverse = one / np.float32(d) if d else np.float32(0)
            if affine:
                zeros[r, g] = np.uint8(np.clip(np.float32(0.5) - least * inverse, 0, 15))
            scaled = part * inverse + np.float32(zeros[r, g]) + np.float32(0.5)
            codes[r, g * group : (g + 1) * group] = np.clip(scaled, 0, 15).astype(np.uint8)
            scales[r, g] = d
    return codes, scales, zeros if affine else None


@unittest.skipUnless(np, "needs numpy")
class Int4(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        shape = {"hidden_size": 192, "intermediate_size": 320, "num_attention_heads": 6, "num_key_value_heads": 3}
        cls.hf = Folder(cls.dir / "hf", "Qwen2ForCausalLM", dtype="F32", **shape).write()
        cls.floats = cls.dir / "floats.gguf"
        tern_text("convert", cls.hf, cls.floats)
        tensor = gguf_edit.read(cls.floats).tensor(MATRIX)
        cls.weights = np.frombuffer(tensor.data, "<f4").reshape(-1, 192)

    def quantize(self, group="64", *options, name="int4"):
        out = self.dir / name
        tern_text("quantize", self.floats, out, "--to", "iebin", "--type", "int4", "--int4-group", group, "--force", *options)
        return Iebin(out)

    def values(self, folder):
        """The matrix as floats, by way of the program."""
        out = self.dir / "back.gguf"
        tern_text("quantize", folder, out, "--type", "f32", "--force")
        return np.frombuffer(gguf_edit.read(out).tensor(MATRIX).data, "<f4").reshape(self.weights.shape)

    def test_codes(self):
        for group in GROUPS:
            for affine in (False, True):
                with self.subTest(group=group, affine=affine):
                    made = self.quantize(group, *(["--int4-zero-points"] if affine else []))
                    entry = made.tensor(MATRIX)
                    columns = 192 if group == "row" else int(group)
                    self.assertEqual(entry["dtype"], "int4")
                    nibbles, scales, zeros = split(entry, made.bytes_of(entry))
                    codes, d, points = encode(self.weights, columns, affine)
                    np.testing.assert_array_equal(scales, d)
                    np.testing.assert_array_equal(codes_of(nibbles), codes)
                    if affine:
                        np.testing.assert_array_equal(zeros, points)
                    middle = expand(points, columns, 192).astype(np.float32) if affine else np.float32(8)
                    wanted = (codes.astype(np.float32) - middle) * expand(d, columns, 192).astype(np.float32)
                    np.testing.assert_array_equal(self.values(made.folder), wanted)

    def test_groups_of_32_are_q4_0(self):
        """The rule is the same, except for the rounding of the scale: errors differ by 2 % at most."""
        other = self.dir / "q4_0.gguf"
        tern_text("quantize", self.floats, other, "--type", "q4_0", "--force")
        errors = [np.square(self.values(m) - self.weights).sum() for m in (other, self.quantize("32").folder)]
        self.assertLess(abs(errors[1] / errors[0] - 1), 0.02)

    def test_smaller_groups_lose_less(self):
        errors = [float(np.square(self.values(self.quantize(g).folder) - self.weights).sum()) for g in GROUPS]
        self.assertEqual(errors, sorted(errors))

    def rewrite(self, made, entry, raw, **fields):
        """The tensor in another form, in a file of its own."""
        (made.folder / "other.bin").write_bytes(raw)
        made.list["tensors"] = [
            {**t, "file": "other.bin", "file_data_offset": 0, "nbytes": len(raw), **fields} if t["name"] == entry["name"] else t
            for t in made.list["tensors"]
        ]
        made.write()

    def test_every_form_of_the_same_weights(self):
        """One hash, on every instruction set."""
        made = self.quantize("64")
        expected = logits_hash(made.folder)
        entry = made.tensor(MATRIX)
        nibbles, scales, _ = split(entry, made.bytes_of(entry))
        codes = codes_of(nibbles)
        forms = {
            "two's complement": (join(pack(codes ^ 8), scales, None), {"nibble": "twos_complement"}),
            "high first": (join(nibbles >> 4 | nibbles << 4, scales, None), {"nibble_order": "high_first"}),
            "repeated scales": (join(nibbles, np.repeat(scales, 2, axis=1), None), {"group": 32}),
            "zero points of 8": (
                join(nibbles, scales, np.full(scales.shape, 8, np.uint8)),
                {"scheme": "affine", "nibble": "unsigned", "zero_point": "u8"},
            ),
        }
        for name, (raw, fields) in forms.items():
            with self.subTest(name):
                self.rewrite(made, entry, raw, **fields)
                self.assertEqual(logits_hash(made.folder), expected)
                again = self.dir / "again"
                tern_text("convert", made.folder, again, "--to", "iebin", "--force")
                self.assertEqual(logits_hash(again), expected)
                made.list["tensors"] = [entry if t["name"] == MATRIX else t for t in made.list["tensors"]]
        for isa in common.runnable_isas():
            self.assertEqual(logits_hash(made.folder, "--isa", isa), expected, isa)

    def test_what_the_schema_leaves_open_is_refused(self):
        made = self.quantize()
        first = made.list["tensors"]
        entry = made.tensor(MATRIX)
        for field in ("scheme", "nibble", "nibble_order", "group", "scale_dtype", "zero_point", "scales"):
            for value in (None, "other", 7):
                with self.subTest(field=field, value=value):
                    changed = {k: v for k, v in (entry | {field: value}).items() if v is not None}
                    made.list["tensors"] = [changed if t is entry else t for t in first]
                    made.write()
                    result = tern("inspect", made.folder)
                    self.assert_one_line_error(result, contains=(MATRIX, f"'{field}'"))
        made.list["tensors"] = [t | {"zero_point": "u8"} if t is entry else t for t in first]
        made.write()
        self.assert_one_line_error(tern("inspect", made.folder), contains=(MATRIX, "affine"))
        made.list["tensors"] = [t | {"group": 32} if t is entry else t for t in first]
        made.write()
        self.assert_one_line_error(tern("inspect", made.folder), contains=(MATRIX, "'nbytes'"))

    def test_scale_that_is_no_number(self):
        made = self.quantize("row")
        entry = made.tensor(MATRIX)
        nibbles, scales, _ = split(entry, made.bytes_of(entry))
        scales[17, 0] = np.nan
        self.rewrite(made, entry, join(nibbles, scales, None))
        result = tern("logits", "-m", made.folder, "--tokens", "1", "--sha256")
        self.assert_one_line_error(result, contains=(MATRIX, "row 17, group 0", "finite"))

    def test_values_that_do_not_fit(self):
        folder = Folder(self.dir / "huge", "Qwen2ForCausalLM", dtype="F32", hidden_size=64)
        folder.tensors["model.layers.0.mlp.up_proj.weight"].array[3, 5] = 1e7
        result = tern("convert", folder.write(), self.dir / "no", "--to", "iebin", "--type", "int4")
        self.assert_one_line_error(result, contains=("blk.0.ffn_up.weight", "row 3", "int4"))
        self.assertFalse((self.dir / "no").exists())

    # ---- the manifest ----

    def manifest(self, entries):
        path = self.dir / "q4_manifest.json"
        path.write_text(entries if isinstance(entries, str) else json.dumps(entries))
        return path

    def test_manifest(self):
        """Names of Hugging Face and of GGUF, one for all blocks and exceptions; others stay as they are."""
        rule = {
            "model.layers.*.mlp.up_proj.weight": {"per": "group", "group": 64, "symmetric": True},
            "blk.1.ffn_up.weight": {"per": "row", "symmetric": False, "bits": 4},
            "model.layers.0.self_attn.q_proj.weight": {"group": 32, "symmetric": True, "zp": 0, "pack": "nibble_lohi"},
        }
        path, out = self.manifest(rule), self.dir / "mapped"
        command = [sys.executable, SCRIPT, "--hf-dir", self.hf, "--out-dir", out, "--q4-map", path, "--tern", common.command()[0]]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        kinds = {t["name"]: (t["dtype"], t.get("group"), t.get("scheme")) for t in Iebin(out).list["tensors"]}
        self.assertEqual(kinds.pop("blk.0.ffn_up.weight"), ("int4", 64, "symmetric"))
        self.assertEqual(kinds.pop("blk.1.ffn_up.weight"), ("int4", "row", "affine"))
        self.assertEqual(kinds.pop("blk.0.attn_q.weight"), ("int4", 32, "symmetric"))
        self.assertEqual({kind[0] for kind in kinds.values()}, {"f32"})
        by_gguf = self.dir / "by-gguf"
        tern_text("quantize", self.floats, by_gguf, "--to", "iebin", "--q4-map", path)
        self.assertEqual(logits_hash(by_gguf), logits_hash(out))

    def test_a_program_that_is_not_there(self):
        command = [sys.executable, SCRIPT, "--hf-dir", self.dir, "--out-dir", self.dir / "out", "--tern", self.dir / "none"]
        self.assert_one_line_error(subprocess.run(command, capture_output=True), 1, ["none: No such file or directory"])

    def test_wrong_manifests(self):
        good = {"per": "row", "symmetric": True}
        for words, entries in (
            (("must be a JSON object",), []),
            (("'blk.0.ffn_up.weight'", "settings"), {"blk.0.ffn_up.weight": 4}),
            (('"per"',), {"blk.0.ffn_up.weight": {"symmetric": True}}),
            (('"per"',), {"blk.0.ffn_up.weight": {"per": "tensor", "symmetric": True}}),
            (('"per"',), {"blk.0.ffn_up.weight": {"group": 48, "symmetric": True}}),
            (('"symmetric"',), {"blk.0.ffn_up.weight": {"per": "row"}}),
            (('"bits"',), {"blk.0.ffn_up.weight": good | {"bits": 3}}),
            (('"scale_dtype"',), {"blk.0.ffn_up.weight": good | {"scale_dtype": "bf16"}}),
            (("zero point",), {"blk.0.ffn_up.weight": good | {"zp": 8}}),
            (("not a matrix", "blk.7.ffn_up.weight"), {"blk.7.ffn_up.weight": good}),
            (("stays in floats", "token_embd.weight"), {"token_embd.weight": good}),
            (("stays in floats", "blk.0.attn_norm.weight"), {"blk.*.attn_norm.weight": good}),
            (("q4_manifest.json",), "{"),
        ):
            with self.subTest(words):
                path = self.manifest(entries)
                result = tern("quantize", self.floats, self.dir / "no", "--to", "iebin", "--q4-map", path)
                self.assert_one_line_error(result, contains=words)
                self.assertFalse((self.dir / "no").exists())
        result = tern("quantize", self.floats, self.dir / "no.gguf", "--type", "int4")
        self.assert_one_line_error(result, status=2, contains=("--to iebin",))

    # ---- the plan ----

    def test_plan(self):
        """The plan names exactly the tensors that are then written; planning itself writes nothing."""
        before = set(self.dir.iterdir())
        options = ("--type", "int4", "--int4-group", "64")
        plan = tern_json("quantize", self.floats, "--plan", *options)
        self.assertEqual(set(self.dir.iterdir()), before)
        made = self.quantize("64")
        self.assertEqual({t["name"]: t["bytes"] for t in plan["tensors"]}, {t["name"]: t["nbytes"] for t in made.list["tensors"]})
        entry = next(t for t in plan["tensors"] if t["name"] == MATRIX)
        self.assertEqual((entry["from"], entry["to"], entry["bytes_before"]), ("f32", "int4, groups of 64", 320 * 192 * 4))
        self.assertIn("% saved", tern_text("quantize", self.floats, "--plan", *options))
        self.assertEqual(tern("quantize", self.floats, *options, "--to", "iebin").returncode, 2)
        # A plan is made although a file stands where OUT would be, and the file stays what it was.
        kept = self.dir / "kept.gguf"
        kept.write_bytes(b"kept")
        self.assertEqual(tern_json("quantize", self.floats, kept, "--plan", *options), plan)
        self.assertEqual(kept.read_bytes(), b"kept")


if __name__ == "__main__":
    common.main()
