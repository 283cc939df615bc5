# SPDX-License-Identifier: Apache-2.0
"""Sparse layers beside a GGUF file: one hash with nothing dropped, found by themselves, refused where they do not fit."""

import json
import shutil
import struct
import tempfile
from pathlib import Path

import common
import gguf_edit
from common import tern, tern_json, tern_text
from iebin_folder import DATA, KEYS, LIST, Iebin
from split_files import cut, part_name

TOKENS = "5,17,30,2,2,33,71"
MATRIX = "blk.1.ffn_down.weight"


def logits_hash(path, *options):
    return tern_text("logits", "-m", path, "--tokens", TOKENS, "--all", "--sha256", *options)


class Sidecar(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.floats = common.synth("llama-tiny-f32", cls.made.name)

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.model = self.dir / "model.gguf"
        shutil.copy(self.floats, self.model)
        self.sidecar = self.dir / "model.sparse"

    def write(self, *options, model=None):
        """Sparse layers in the place that belongs to the model."""
        tern_text("convert", model or self.model, "--to", "sidecar", "--force", *options)
        return Iebin(self.sidecar)

    def refuse(self, *args, status=1, contains=()):
        self.assert_one_line_error(tern(*args), status, contains)

    def refuse_model(self, *words, model=None):
        """Every way to open it; without the sidecar it is a model as before."""
        model = model or self.model
        self.refuse("logits", "-m", model, "--tokens", TOKENS, contains=words)
        self.refuse("inspect", model, contains=words)
        self.assertEqual(logits_hash(model, "--no-sidecar"), logits_hash(self.floats))

    # ---- found ----

    def test_one_hash(self):
        for preset, sides in (("bitnet-tiny", ("16,64", "8,8")), ("llama-tiny-f16", ("5,7",)), ("llama-tiny-f32", ("1,33",))):
            source = common.synth(preset, self.made.name)
            shutil.copy(source, self.model)
            for block in sides:
                with self.subTest(preset, block=block):
                    made = self.write("--sparse", "all", "--block", block)
                    self.assertEqual(sorted(p.name for p in self.sidecar.iterdir()), [DATA, LIST])
                    self.assertTrue(all(t["dtype"] == "iebs" for t in made.list["tensors"]))
                    found = tern_json("inspect", self.model)
                    self.assertEqual(found["sidecar"], {"file": str(self.sidecar / LIST), "tensors": len(made.list["tensors"])})
                    self.assertIn("iebs", {t["type"] for t in found["tensors"]})
                    self.assertEqual([Path(p["file"]).name for p in found["parts"]], ["model.gguf", LIST, DATA])
                    self.assertEqual(logits_hash(self.model), logits_hash(source))
                    self.assertEqual(logits_hash(self.model, "--isa", "scalar", "--threads", "1"), logits_hash(source))

    def test_left_alone(self):
        """Dropped blocks change the answer, so the answer shows which of the two files was read."""
        dense = logits_hash(self.floats)
        options = ("--sparse", "ffn_down", "--block", "8,8", "--keep", "40")
        self.write(*options)
        folder = self.dir / "folder"
        tern_text("convert", self.floats, folder, "--to", "iebin", *options)
        self.assertEqual(logits_hash(self.model), logits_hash(folder))
        self.assertNotEqual(logits_hash(self.model), dense)
        self.assertEqual(logits_hash(self.model, "--no-sidecar"), dense)
        self.assertIsNone(tern_json("inspect", self.model, "--no-sidecar")["sidecar"])
        told = tern("run", "-m", self.model, "--tokens", "1", "-n", "1", "--verbose")
        self.assertIn(f"sparse layers: 2, from {self.sidecar / LIST}\n", told.stderr.decode())
        # A command that rewrites the file reads the file.
        tern_text("quantize", self.model, self.dir / "again.gguf", "--type", "f32")
        self.assertEqual(logits_hash(self.dir / "again.gguf"), dense)
        shutil.rmtree(self.sidecar)
        self.assertEqual(logits_hash(self.model), dense)

    def test_cache(self):
        """Packed weights in the cache belong either to the model with its sparse layers or to the model without
        them."""
        shutil.copy(common.synth("bitnet-tiny", self.made.name), self.model)
        dense = logits_hash(self.model)
        self.write("--sparse", "ffn_down", "--block", "16,16", "--keep", "30")
        lossy = logits_hash(self.model)
        self.assertNotEqual(dense, lossy)
        for first in ((), ("--no-sidecar",)):
            second = () if first else ("--no-sidecar",)
            cache = ("--pretranspose", "all", "--cache-dir", self.dir / f"cache-{len(first)}")
            for use in (first, second, first, second):
                self.assertEqual(logits_hash(self.model, *cache, *use), dense if use else lossy)

    def test_parts(self):
        """Any part of a split model finds them."""
        parts = cut(gguf_edit.read(self.floats), 3)
        paths = [self.dir / part_name(i, 3) for i in range(3)]
        for path, part in zip(paths, parts):
            path.write_bytes(part.to_bytes())
        self.write("--sparse", MATRIX, model=paths[1])
        for path in paths:
            self.assertEqual(logits_hash(path), logits_hash(self.floats))
            found = tern_json("inspect", path)
            self.assertEqual(found["sidecar"]["tensors"], 1)
            self.assertEqual(sum(p["tensors"] for p in found["parts"]), len(gguf_edit.read(self.floats).tensors))

    def test_receipt(self):
        self.write("--sparse", "ffn_down", "--keep", "50")
        receipt = self.dir / "receipt.json"
        tern_text("run", "-m", self.model, "--tokens", TOKENS, "-n", "4", "--greedy", "--receipt", receipt)
        named = [Path(f["path"]).name for f in json.loads(receipt.read_text())["model_info"]["files"]]
        self.assertEqual(named, ["model.gguf", LIST, DATA])
        tern_text("verify", receipt, "--replay", "-m", self.model)
        result = tern("verify", receipt, "--replay", "-m", self.model, "--no-sidecar")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"another model", result.stdout + result.stderr)

    def test_changed_while_open(self):
        """A receipt answers for these files too."""
        self.write("--sparse", MATRIX)
        data = self.sidecar / DATA
        result = tern("verify-determinism", self.model)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        data.write_bytes(data.read_bytes()[:-64])
        self.refuse_model(MATRIX, DATA)

    # ---- refused ----

    def test_another_model(self):
        other = common.synth("llama-tiny-f32", self.made.name, seed=2)
        made = self.write("--sparse", MATRIX)
        shutil.copy(other, self.model)
        self.refuse("logits", "-m", self.model, "--tokens", TOKENS, contains=[str(self.sidecar), MATRIX, "other weights", str(self.model)])
        self.assertEqual(logits_hash(self.model, "--no-sidecar"), logits_hash(other))
        shutil.copy(self.floats, self.model)
        self.assertEqual(logits_hash(self.model), logits_hash(self.floats))
        self.assertRegex(made.tensor(MATRIX)["replaces_xxh64"], "^[0-9a-f]{16}$")

    def test_no_list(self):
        self.sidecar.write_bytes(b"")
        self.refuse_model(str(self.sidecar), "folder", str(self.model))
        self.sidecar.unlink()
        self.sidecar.mkdir()
        self.refuse_model(str(self.sidecar), LIST, str(self.model))
        self.sidecar.rmdir()
        self.sidecar.symlink_to(self.sidecar)
        self.refuse_model(str(self.sidecar))

    def test_a_model_of_its_own(self):
        tern_text("convert", self.floats, self.sidecar, "--to", "iebin", "--sparse", MATRIX)
        self.assertTrue((self.sidecar / KEYS).exists())
        self.refuse_model(str(self.sidecar), "keys")

    def test_wrong_entries(self):
        made = self.write("--sparse", "ffn_down")
        good = (self.sidecar / LIST).read_text()
        rows, cols = made.tensor(MATRIX)["shape"]
        for changed, words in (
            ({"name": "blk.7.ffn_down.weight"}, ["blk.7.ffn_down.weight", "model.gguf"]),
            ({"name": "blk.0.ffn_up.weight"}, ["blk.0.ffn_up.weight"]),
            ({"name": "blk.0.ffn_down.weight"}, ["blk.0.ffn_down.weight", "twice"]),
            ({"shape": [cols, rows]}, [MATRIX, "shape"]),
            ({"dtype": "f32", "shape": [1]}, [MATRIX]),
            ({"replaces_xxh64": None}, [MATRIX, "replaces_xxh64"]),
            ({"replaces_xxh64": "0" * 15 + "1"}, [MATRIX, "other weights"]),
            ({"file": "../model.gguf"}, ["../model.gguf"]),
            ({"file_data_offset": 1 << 40}, [MATRIX]),
        ):
            with self.subTest(changed=changed):
                made = Iebin(self.sidecar)
                made.tensor(MATRIX).update(changed)
                made.write()
                self.refuse_model(*words)
                made.write(good)
        with self.subTest("no field"):
            made = Iebin(self.sidecar)
            del made.tensor(MATRIX)["replaces_xxh64"]
            made.write()
            self.refuse_model(MATRIX, "replaces_xxh64")
        for text in ("", "[]", "{", '{"tensors": 7}', '{"tensors": []}'):
            with self.subTest(text=text):
                made.write(text)
                self.refuse_model(str(self.sidecar / LIST))

    def test_wrong_blocks(self):
        entry = self.write("--sparse", MATRIX, "--block", "16,64").tensor(MATRIX)
        data = self.sidecar / DATA
        good, at = data.read_bytes(), entry["file_data_offset"]
        for place, value in {0: 1, 8: 7, 24: 1, 44: 1, 48: 2**31}.items():
            with self.subTest(place=place):
                wrong = bytearray(good)
                struct.pack_into("<I", wrong, at + place, value)
                data.write_bytes(wrong)
                self.refuse_model(MATRIX)
        wrong = bytearray(good)
        struct.pack_into("<I", wrong, at + entry["nbytes"] - 4, 0x7F800000)  # seen when it is loaded
        data.write_bytes(wrong)
        self.refuse("logits", "-m", self.model, "--tokens", TOKENS, contains=[MATRIX])

    # ---- written ----

    def test_where_it_is_written(self):
        elsewhere = self.dir / "elsewhere"
        told = tern_json("quantize", self.model, elsewhere, "--to", "sidecar", "--sparse", MATRIX)
        self.assertEqual([t["name"] for t in told["tensors"]], [MATRIX])
        self.assertFalse(self.sidecar.exists())
        told = tern_json("convert", self.model, "--to", "sidecar", "--sparse", MATRIX)
        self.assertEqual(told["output"], str(self.sidecar))
        self.assertEqual((self.sidecar / DATA).read_bytes(), (elsewhere / DATA).read_bytes())
        self.refuse("convert", self.model, "--to", "sidecar", "--sparse", "all", status=2, contains=[str(self.sidecar), "--force"])
        self.refuse("run", "-m", self.sidecar, "-p", "x", contains=[LIST, "GGUF"])
        self.write("--sparse", "attn_v")
        self.assertEqual(len(Iebin(self.sidecar).list["tensors"]), 2)

    def test_plan(self):
        told = tern_json("convert", self.model, "--to", "sidecar", "--sparse", MATRIX, "--plan")
        self.assertEqual([t["name"] for t in told["tensors"]], [MATRIX])
        self.assertFalse(self.sidecar.exists())
        self.write("--sparse", "attn_v")  # which a plan does not want to replace
        self.assertEqual(tern_json("convert", self.model, "--to", "sidecar", "--sparse", MATRIX, "--plan"), told)

    def test_what_is_not_written(self):
        to = ("convert", self.model, "--to", "sidecar")
        self.refuse(*to, status=2, contains=["--sparse"])
        self.refuse(*to, "--sparse", "all", "--type", "f16", status=2, contains=["--type"])
        self.refuse(*to, "--sparse", "all", "--embedding-type", "f16", status=2, contains=["--embedding-type"])
        self.refuse(*to, "--sparse", "auto", contains=["smaller as blocks"])
        self.assertFalse(self.sidecar.exists())
        folder = self.dir / "folder"
        tern_text("convert", self.model, folder, "--to", "iebin")
        self.refuse("convert", folder, self.dir / "out", "--to", "sidecar", "--sparse", "all", contains=["GGUF"])
        self.sidecar.write_bytes(b"")
        self.refuse(*to, "--sparse", "all", status=2, contains=[str(self.sidecar), "--to sidecar writes a folder"])


if __name__ == "__main__":
    common.main()
