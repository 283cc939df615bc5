# SPDX-License-Identifier: Apache-2.0
"""Sparse layers: one hash with and without zeros, dropped blocks that are reported, files that are refused, dense
files."""

import json
import re
import struct
import unittest

import common
import gguf_edit
from common import tern, tern_json, tern_text
from iebin_folder import Iebin

try:
    import numpy as np
except ImportError:
    np = None

TOKENS = "5,17,30,2,2,33,71"
MATRIX = "blk.1.ffn_down.weight"
HEADER, OLDER_HEADER = 64, 44


def logits_hash(path, *options):
    return tern_text("logits", "-m", path, "--tokens", TOKENS, "--all", "--sha256", *options)


def blocks_of(raw):
    """Sides, start, column and f32 values of sparse blocks."""
    magic, version, rows, cols, h, w, n, kind, _, block_rows, *told = struct.unpack_from("<4s9I3Q", raw)
    assert (magic, version, kind, block_rows) == (b"IEBS", 3, 0, -(-rows // h))
    assert told == [4 * block_rows + 4, 4 * n, 4 * n * h * w]
    lists = np.frombuffer(raw, "<u4", block_rows + 1 + n, HEADER)
    values = np.frombuffer(raw, "<f4", n * h * w, HEADER + 4 * len(lists)).reshape(n, h, w)
    return (rows, cols, h, w), lists[: block_rows + 1], lists[block_rows + 1 :], values


def older(raw):
    """The same matrix as the first two versions have it: no sizes in the header."""
    words = list(struct.unpack_from("<16I", raw))
    kind, lists = words[7], 4 * (words[9] + 1 + words[6])
    padded = HEADER + lists if kind == 0 else -(-(HEADER + lists) // 64) * 64
    made = struct.pack("<11I", words[0], 2 if kind else 1, *words[2:9], 0, 0) + raw[HEADER : HEADER + lists]
    return made + bytes(-len(made) % 64 if kind else 0) + raw[padded:]


def cut(weights, h, w):
    """All blocks [block row, block column, h, w], with zeros past the edge."""
    rows, cols = weights.shape
    padded = np.zeros((-(-rows // h) * h, -(-cols // w) * w), weights.dtype)
    padded[:rows, :cols] = weights
    return padded.reshape(-(-rows // h), h, -(-cols // w), w).swapaxes(1, 2)


def join(blocks, rows, cols):
    i, j, h, w = blocks.shape
    return np.ascontiguousarray(blocks.swapaxes(1, 2).reshape(i * h, j * w)[:rows, :cols])


def half_of_blocks(weights, h, w, kept=2):
    """The weights with every other block 0."""
    blocks = cut(weights, h, w).copy()
    for i in range(len(blocks)):
        for j in range(len(blocks[0])):
            if (i + j) % kept == 0:
                blocks[i, j] = 0
    return join(blocks, *weights.shape)


@unittest.skipUnless(np, "needs numpy")
class Sparse(common.FolderTest):
    def setUp(self):
        self.floats = common.synth("llama-tiny-f32", str(self.dir))

    def convert(self, source, *options, name="sparse"):
        out = self.dir / name
        tern_text("convert", source, out, "--to", "iebin", "--force", *options)
        return Iebin(out)

    def weights(self, path, name=MATRIX):
        tensor = gguf_edit.read(path).tensor(name)
        return np.frombuffer(tensor.data, "<f4")[: tensor.ne[0] * tensor.ne[1]].reshape(tensor.ne[1], tensor.ne[0])

    def with_weights(self, weights, name="changed.gguf"):
        """The float model with another matrix."""
        model = gguf_edit.read(self.floats)
        model.tensor(MATRIX).data = weights.astype("<f4").tobytes()
        path = self.dir / name
        path.write_bytes(model.to_bytes())
        return path

    # ---- nothing dropped ----

    def test_one_hash(self):
        for preset, sides in (
            ("bitnet-tiny", ("16,64", "8,8", "4,4", "32,128")),
            ("llama-tiny-f16", ("16,64", "5,7")),
            ("llama-tiny-f32", ("16,64", "1,33")),
        ):
            source = common.synth(preset, str(self.dir))
            expected = logits_hash(source)
            for block in sides:
                with self.subTest(preset, block=block):
                    folder = self.convert(source, "--sparse", "all", "--block", block).folder
                    self.assertEqual(logits_hash(folder), expected)
                    self.assertEqual(logits_hash(folder, "--isa", "scalar"), expected)
                    back = self.dir / "back.gguf"
                    tern_text("convert", folder, back, "--force")
                    one, other = gguf_edit.read(source), gguf_edit.read(back)
                    for a, b in zip(one.tensors, other.tensors):
                        self.assertEqual(bytes(a.data), bytes(b.data)[: len(a.data)], a.name)

    def test_zeros_cost_nothing(self):
        source = self.with_weights(half_of_blocks(self.weights(self.floats), 8, 8))
        folder = self.convert(source, "--sparse", MATRIX, "--block", "8,8")
        entry = folder.tensor(MATRIX)
        rows, cols = entry["shape"]
        self.assertEqual(entry["dtype"], "iebs")
        self.assertLessEqual(entry["nbytes"], 0.6 * 4 * rows * cols)
        self.assertEqual(logits_hash(folder.folder), logits_hash(source))
        self.assertNotEqual(logits_hash(source), logits_hash(self.floats))

    def test_a_file_beside(self):
        """Blocks in a file of their own, as other programs may write them."""
        made = self.convert(self.floats, "--sparse", "ffn_down")
        entry = made.tensor(MATRIX)
        (made.folder / "down.iebs").write_bytes(made.bytes_of(entry))
        entry.update({"file": "down.iebs", "file_data_offset": 0})
        made.write()
        self.assertEqual(logits_hash(made.folder), logits_hash(self.floats))

    def test_older_versions(self):
        """Blocks as files have them that earlier programs wrote."""
        for source in (self.floats, common.synth("bitnet-tiny", str(self.dir))):
            made = self.convert(source, "--sparse", "ffn_down")
            expected = logits_hash(made.folder)
            for entry in made.list["tensors"]:
                if entry["dtype"] == "iebs":
                    raw = older(made.bytes_of(entry))
                    (made.folder / (entry["name"] + ".iebs")).write_bytes(raw)
                    entry.update({"file": entry["name"] + ".iebs", "file_data_offset": 0, "nbytes": len(raw)})
                    entry.pop("xxh64", None)
            made.write()
            self.assertEqual(logits_hash(made.folder), expected, source.name)

    # ---- something dropped ----

    def test_keep(self):
        weights = self.weights(self.floats)
        blocks = cut(weights, 8, 16)
        energy = np.square(blocks.astype(np.float64)).sum(axis=(2, 3))
        order = np.argsort(-energy.ravel(), kind="stable")
        most = int(0.4 * energy.size)
        mask = np.zeros(energy.size, bool)
        mask[order[:most]] = True
        kept = np.where(mask.reshape(energy.shape)[:, :, None, None], blocks, 0)
        out = self.dir / "kept"
        options = ("--to", "iebin", "--sparse", MATRIX, "--block", "8,16", "--keep", "40", "--force", "--json")
        report = next(t for t in tern_json("convert", self.floats, out, *options)["tensors"] if t["name"] == MATRIX)
        told = report["blocks"]
        self.assertEqual((told["stored"], told["places"]), (most, energy.size))
        self.assertEqual(told["dropped"], energy.size - most)
        self.assertAlmostEqual(told["energy_lost"], energy.ravel()[order[most:]].sum() / energy.sum(), 6)
        self.assertEqual(np.float32(told["largest_dropped"]), np.abs(blocks.reshape(-1, 8, 16)[~mask]).max())
        self.assertEqual(report["outcome"], "lossy")
        same = self.with_weights(join(kept, *weights.shape))
        self.assertEqual(logits_hash(out), logits_hash(same))

    def test_threshold(self):
        weights = self.weights(self.floats)
        blocks = cut(weights, 4, 4)
        largest = np.abs(blocks).max(axis=(2, 3))
        limit = float(np.sort(largest, axis=None)[largest.size // 2])
        made = self.convert(self.floats, "--sparse", MATRIX, "--block", "4,4", "--threshold", repr(limit))
        _, start, column, values = blocks_of(made.bytes_of(made.tensor(MATRIX)))
        stored = largest >= np.float32(limit)
        np.testing.assert_array_equal(column, np.nonzero(stored)[1])
        np.testing.assert_array_equal(np.diff(start), stored.sum(axis=1))
        np.testing.assert_array_equal(values, blocks[stored])

    def test_auto(self):
        """Matrices of which enough is zero, and no others."""
        source = self.with_weights(half_of_blocks(self.weights(self.floats), 8, 8))
        made = self.convert(source, "--sparse", "auto", "--block", "8,8")
        self.assertEqual([t["name"] for t in made.list["tensors"] if t["dtype"] == "iebs"], [MATRIX])
        self.assertEqual(logits_hash(made.folder), logits_hash(source))
        plan = tern_json("convert", source, "--sparse", "auto", "--block", "8,8", "--plan", "--json")
        told = {t["name"]: t["to"] for t in plan["tensors"]}[MATRIX]
        self.assertRegex(told, r"^sparse f32, \d+ of \d+ blocks$")

    def test_auto_by_the_table(self):
        """With ternary blocks, some instruction set gains up to 17 stored blocks of 20; above that, fewer bytes alone
        do not count."""
        source = common.synth("bitnet-tiny", str(self.dir))
        for keep, count in (("82", 14), ("92", 0)):
            with self.subTest(keep=keep):
                rule = ("--block", "32,32", "--keep", keep, "--plan", "--json")
                plans = [tern_json("convert", source, "--to", "iebin", "--sparse", layers, *rule) for layers in ("auto", "all")]
                chosen, forced = ([t for t in plan["tensors"] if t["to"].startswith("sparse")] for plan in plans)
                self.assertEqual((len(chosen), len(forced)), (count, 14))
                self.assertTrue(all(t["bytes"] < t["bytes_before"] for t in forced))

    def test_dense_where_that_is_faster(self):
        """Where all blocks are stored, most instruction sets read dense rows, which are made at load; where half of the
        blocks are stored, none of them does. The bits are the same, from the cache of packed weights too."""

        def kernels(path, isa):
            return tern_json("inspect", path, "--isa", isa)["kernels"]

        made_dense = 0
        for preset in ("bitnet-tiny", "llama-tiny-f32"):
            source = common.synth(preset, str(self.dir))
            folder = self.convert(source, "--sparse", "all", name=f"all-{preset}").folder
            cache = ("--cache-dir", self.dir / f"cache-{preset}", "--pretranspose", "all")
            for isa in common.runnable_isas() * 2:
                with self.subTest(preset, isa=isa):
                    made_dense += not any("_bsr_" in name for name in kernels(folder, isa))
                    self.assertEqual(logits_hash(folder, "--isa", isa, *cache), logits_hash(source))
        if "avx2" in common.runnable_isas():
            self.assertGreater(made_dense, 2)
        half = self.with_weights(half_of_blocks(self.weights(self.floats), 16, 16))
        folder = self.convert(half, "--sparse", MATRIX, "--block", "16,16").folder
        for isa in common.runnable_isas():
            with self.subTest("half", isa=isa):
                self.assertTrue(any("_bsr_" in name for name in kernels(folder, isa)))

    def test_limits_are_the_measured_ones(self):
        """The lower limit of each measured machine: no slower on any of them."""
        least, receipts = {}, sorted((common.ROOT / "docs" / "report").glob("sparse-blocks*.json"))
        self.assertGreaterEqual(len(receipts), 2)
        for receipt in map(json.loads, (path.read_text() for path in receipts)):
            for r in receipt["limits"]:
                key = (r["isa"], r["type"].upper())
                least[key] = min(r["no_slower_percent"], least.get(key, 100))
                faster = {p["stored_percent"]: p["times_as_fast"] for p in receipt["products"]
                          if (p["isa"], p["type"]) == (r["isa"], r["type"])}
                self.assertTrue(all(f >= 0.98 for percent, f in faster.items() if percent <= r["no_slower_percent"]))
            self.assertEqual({p["largest_difference"] for p in receipt["products"]}, {0})
        source = (common.ROOT / "dispatch" / "sparse_limit.c").read_text()
        listed = re.findall(r'\{"(\w+)", TERN_FORMAT_(\w+), (\d+)\}', source)
        self.assertEqual({(isa, form): int(percent) for isa, form, percent in listed}, least)

    def test_names_of_layers(self):
        def sparse(layers):
            listed = self.convert(self.floats, "--sparse", layers).list["tensors"]
            return {t["name"] for t in listed if t["dtype"] == "iebs"}

        self.assertEqual(sparse("ffn_down"), {"blk.0.ffn_down.weight", MATRIX})
        self.assertEqual(sparse("blk.0.ffn_up,attn_v"), {"blk.0.ffn_up.weight", "blk.0.attn_v.weight", "blk.1.attn_v.weight"})
        self.assertEqual(len(sparse("blk.1")), 7)
        self.assertEqual(len(sparse("all")), 14)

    # ---- refused ----

    def refuse(self, *args, status=1, contains=()):
        self.assert_one_line_error(tern(*args), status, contains)

    def test_refused_options(self):
        out = self.dir / "none"
        to = ("convert", self.floats, out, "--to", "iebin")
        self.refuse(*to, "--sparse", "ffn_left", contains=["ffn_left"])
        self.refuse(*to, "--sparse", "all", "--block", "16", status=2, contains=["--block", "16"])
        self.refuse(*to, "--sparse", "all", "--block", "0,4", status=2, contains=["0,4"])
        self.refuse("quantize", self.floats, out, "--sparse", "all", status=2, contains=["--to iebin"])
        self.refuse(*to, "--sparse", "ffn_down", "--type", "q8_0", contains=["ffn_down"])
        ternary = common.synth("bitnet-tiny", str(self.dir))
        self.refuse("convert", ternary, out, "--to", "iebin", "--sparse", "all", "--block", "6,6", contains=["6 x 6"])
        self.assertFalse(out.exists())

    def test_wrong_blocks(self):
        made = self.convert(self.floats, "--sparse", MATRIX, "--block", "16,64")
        entry = made.tensor(MATRIX)
        raw = made.bytes_of(entry)
        data = made.folder / entry["file"]
        good, at = data.read_bytes(), entry["file_data_offset"]
        words = {0: 1, 4: 2, 8: 7, 16: 0, 20: 63, 24: 1, 28: 1, 36: 1, 40: 1, 44: 1, 48: 2**31,
                 56: 4, 64: 1, 68: 2**31, len(raw) - 4: 0x7F800000}
        for place, value in words.items():
            with self.subTest(place=place):
                wrong = bytearray(good)
                struct.pack_into("<I", wrong, at + place, value)
                data.write_bytes(wrong)
                self.refuse("logits", "-m", made.folder, "--tokens", TOKENS, contains=[MATRIX])
        data.write_bytes(good)
        for fields in ({"shape": [1, 1]}, {"nbytes": entry["nbytes"] - 4}, {"nbytes": None}, {"file_data_offset": at + 4}):
            with self.subTest(fields=fields):
                kept = json.dumps(made.list)
                entry.update(fields)
                if entry["nbytes"] is None:
                    del entry["nbytes"]
                made.write()
                self.refuse("logits", "-m", made.folder, "--tokens", TOKENS, contains=[MATRIX])
                made.write(kept)
                made = Iebin(made.folder)
                entry = made.tensor(MATRIX)

    def test_wrong_values(self):
        """In few blocks, which stay as they are, and in many, of which a dense matrix is made."""
        for keep in ("30", "100"):
            made = self.convert(self.floats, "--sparse", MATRIX, "--block", "16,64", "--keep", keep, name=f"keep-{keep}")
            entry = made.tensor(MATRIX)
            data, end = made.folder / entry["file"], entry["file_data_offset"] + entry["nbytes"]
            with data.open("r+b") as file:
                file.seek(end - 4)
                file.write(struct.pack("<f", float("inf")))
            with self.subTest(keep=keep):
                self.refuse("logits", "-m", made.folder, "--tokens", TOKENS, contains=[MATRIX, "holds a value that is not finite"])

    def test_blocks_begin_at_multiples_of_64(self):
        """Blocks begin at multiples of 64 bytes in the file that the list names, and in a writer's own file too."""
        made = self.convert(self.floats, "--sparse", "ffn_down")
        for entry in made.list["tensors"]:
            self.assertEqual(entry["file_data_offset"] % 64, 0, entry["name"])
        entry = made.tensor(MATRIX)
        raw, moved = made.bytes_of(entry), made.folder / "moved.iebs"
        for before in (0, 32, 60, 64):
            moved.write_bytes(bytes(before) + raw)
            entry.update({"file": moved.name, "file_data_offset": before})
            made.write()
            if before % 64 == 0:
                self.assertEqual(logits_hash(made.folder), logits_hash(self.floats))
            else:
                self.refuse("logits", "-m", made.folder, "--tokens", TOKENS, contains=[MATRIX, "multiple of 64"])

    def test_blocks_of_another_shape(self):
        """Sound blocks, but of a matrix that is longer than the list says, and than the model needs."""
        made = self.convert(self.floats, "--sparse", MATRIX)
        entry = made.tensor(MATRIX)
        rows, cols = entry["shape"]
        dense, blocks = self.dir / "long.bin", made.folder / "long.iebs"
        for shape in ((rows + 16, cols), (rows, cols + 64)):
            with self.subTest(shape=shape):
                dense.write_bytes(np.ones(shape, np.float32).tobytes())
                tern_text("convert", dense, blocks, "--dense", common.comma(shape), "--force")
                entry.update({"file": blocks.name, "file_data_offset": 0, "nbytes": blocks.stat().st_size})
                made.write()
                self.refuse("logits", "-m", made.folder, "--tokens", TOKENS, contains=[MATRIX, "shape"])

    # ---- files of floats ----

    def test_dense_file(self):
        weights = half_of_blocks(np.arange(1, 21 * 34 + 1, dtype=np.float32).reshape(21, 34), 4, 4)
        dense, out = self.dir / "dense.bin", self.dir / "out.iebs"
        dense.write_bytes(weights.tobytes())
        told = tern_json("convert", dense, out, "--dense", "21,34", "--block", "4,4", "--force", "--json")
        shape, start, column, values = blocks_of(out.read_bytes())
        blocks = cut(weights, 4, 4)
        stored = np.abs(blocks).max(axis=(2, 3)) > 0
        self.assertEqual(shape, (21, 34, 4, 4))
        np.testing.assert_array_equal(column, np.nonzero(stored)[1])
        np.testing.assert_array_equal(values, blocks[stored])
        self.assertEqual((told["stored"], told["zero"], told["dropped"]), (int(stored.sum()), int((~stored).sum()), 0))
        self.refuse("convert", dense, out, "--dense", "21,34", status=2, contains=["out.iebs"])
        self.refuse("convert", dense, self.dir / "no.iebs", "--dense", "21,35", contains=["21 x 35"])
        self.refuse("convert", dense, self.dir / "no.iebs", "--dense", "21", status=2, contains=["--dense"])
        weights[3, 5] = np.inf
        dense.write_bytes(weights.tobytes())
        self.refuse("convert", dense, self.dir / "no.iebs", "--dense", "21,34", contains=["row 3, column 5"])
        self.assertFalse((self.dir / "no.iebs").exists())


if __name__ == "__main__":
    common.main()
