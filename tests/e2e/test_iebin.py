# SPDX-License-Identifier: Apache-2.0
"""IEBIN folders: the same model as in GGUF and in safetensors, bit for bit; what is wrong is refused."""

import json
import shutil
import unittest
from pathlib import Path

import common
import gguf_edit
import iebin_folder
from common import comma, tern, tern_json, tern_text
from iebin_folder import DATA, KEYS, LIST, Iebin

try:
    import numpy as np
    from hf_folder import Folder, Stored, byte_tokenizer
except ImportError:
    np = None

TOKENS = "5,17,30,2,2,33,71"


def logits_hash(path):
    return tern_text("logits", "-m", path, "--tokens", TOKENS, "--all", "--sha256")


class Iebins(common.FolderTest):
    def convert(self, source, name="iebin", *options):
        out = self.dir / name
        tern_text("convert", source, out, "--to", "iebin", "--force", *options)
        return out

    # ---- one model, several containers ----

    def test_of_gguf_and_back(self):
        for preset in ("bitnet-tiny", "llama-tiny-q4_0", "llama-tiny-f16"):
            with self.subTest(preset):
                source = common.synth(preset, str(self.dir))
                folder = self.convert(source)
                expected = logits_hash(source)
                self.assertEqual(logits_hash(folder), expected)
                self.assertEqual(logits_hash(folder / LIST), expected)
                for tensor in json.loads((folder / LIST).read_text())["tensors"]:
                    self.assertEqual(tensor["file_data_offset"] % 64, 0, tensor["name"])
                back = self.dir / "back.gguf"
                tern_text("convert", folder, back, "--force")
                self.assertEqual(logits_hash(back), expected)
                one, other = gguf_edit.read(source), gguf_edit.read(back)
                self.assertEqual([t.name for t in one.tensors], [t.name for t in other.tensors])
                for a, b in zip(one.tensors, other.tensors):
                    self.assertEqual(bytes(a.data), bytes(b.data)[: len(a.data)], a.name)

    def test_a_session_knows_the_model(self):
        """The hash of weights and keys is that of the GGUF file; so are tokenizer and answer."""
        saved, text = self.dir / "session", "Q: What is 17+25? A:"
        run = ("run", "-p", text, "-n", "6", "--prompt-cache", saved)
        first = tern_json(*run, "-m", common.SMALL_MODEL)
        again = tern_json(*run, "-m", self.convert(common.SMALL_MODEL), "--prompt-cache-ro")
        self.assertEqual(again["text"], first["text"])
        self.assertIn("42", again["text"])
        self.assertGreater(again["reused_tokens"], 0)

    @unittest.skipUnless(np, "needs numpy")
    def test_of_safetensors(self):
        model = Folder(self.dir / "hf", vocab_size=300)
        folder = model.write()
        made = byte_tokenizer([("h", "e"), ("l", "l")], {"<|end|>": True})
        (folder / "tokenizer.json").write_text(json.dumps(made))
        (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>"}))
        gguf = self.dir / "model.gguf"
        tern_text("convert", folder, gguf, "--force")
        expected = logits_hash(gguf)
        self.assertEqual(logits_hash(self.convert(folder)), expected)
        texts = {tern_text("tokenize", "-m", m, "-p", "hello") for m in (gguf, self.dir / "iebin")}
        self.assertEqual(len(texts), 1)

    @unittest.skipUnless(np, "needs numpy")
    def test_of_names_of_hugging_face(self):
        """The first form of the lists, as programs write it that copy safetensors: convert reads it."""
        for dtype in ("BF16", "F16", "F32"):
            model = Folder(self.dir / "hf", dtype=dtype)
            folder = model.write()
            gguf = self.dir / "model.gguf"
            tern_text("convert", folder, gguf, "--force")
            (folder / "model.safetensors").unlink()
            iebin_folder.write_names(folder, model.tensors)
            self.assertEqual(logits_hash(self.convert(folder)), logits_hash(gguf))
            result = tern("run", "-m", folder, "-p", "x")
            self.assert_one_line_error(result, contains=(LIST, "'keys'", "tern convert"))

    @unittest.skipUnless(np, "needs numpy")
    def test_packed_ternary(self):
        quantized = {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline"}
        shape = {"hidden_size": 128, "intermediate_size": 256}
        model = Folder(self.dir / "hf", "BitNetForCausalLM", weights="packed", quantization_config=quantized, **shape)
        folder = model.write()
        gguf = self.dir / "model.gguf"
        tern_text("convert", folder, gguf, "--force")
        (folder / "model.safetensors").unlink()
        iebin_folder.write_names(folder, model.tensors)
        self.assertEqual(logits_hash(self.convert(folder)), logits_hash(gguf))

    # ---- forms of the list ----

    def small(self):
        source = common.synth("bitnet-tiny", str(self.dir))
        return Iebin(self.convert(source)), logits_hash(source)

    def test_aliases_and_cases(self):
        made, expected = self.small()
        first = made.list["tensors"]

        def forms():
            yield "upper case", [t | {"dtype": t["dtype"].upper()} for t in first]
            renamed = {"file": "shard", "file_data_offset": "shard_data_offset"}
            yield "aliases", [{renamed.get(k, k): v for k, v in t.items()} for t in first]
            yield "both", [t | {"shard": t["file"], "shard_data_offset": t["file_data_offset"]} for t in first]
            short = [{k: v for k, v in t.items() if k != "nbytes"} for t in first]
            yield "without nbytes", short
            old = {"file_data_offset": "offset"}
            yield "first form", [{old.get(k, k): v for k, v in t.items() if k != "file"} for t in first]

        for name, tensors in forms():
            with self.subTest(name):
                made.list["tensors"] = tensors
                made.write()
                self.assertEqual(logits_hash(made.folder), expected)
        for top in ({"weights_bin": DATA}, {"bin": DATA}, {"weights": {"bin": DATA}}, {"iebin": {"weights_bin": DATA}}, {}):
            with self.subTest(top=top):
                made.list = {"version": 1, "keys": KEYS, "tensors": made.list["tensors"]} | top
                made.write()
                self.assertEqual(logits_hash(made.folder), expected)

    def test_several_files(self):
        made, expected = self.small()
        half = len(made.list["tensors"]) // 2
        blobs = {"a.bin": b"", "b.bin": b""}
        for i, t in enumerate(made.list["tensors"]):
            name = "a.bin" if i < half else "b.bin"
            raw = made.bytes_of(t)
            t |= {"file": name, "file_data_offset": len(blobs[name])}
            blobs[name] += raw
        for name, blob in blobs.items():
            (made.folder / name).write_bytes(blob)
        (made.folder / DATA).unlink()
        made.write()
        self.assertEqual(logits_hash(made.folder), expected)
        seen = tern_json("inspect", made.folder)
        self.assertEqual(seen["container"], "iebin")
        self.assertEqual(sum(p["tensors"] for p in seen["parts"]), len(made.list["tensors"]))

    def test_unknown_types(self):
        """Parts that the model does not need are reported and left out; parts that it needs are refused."""
        made, expected = self.small()
        first = made.list["tensors"]
        extra = {"name": "layers.0.extra_blocks", "dtype": "mx9", "shape": [3], "file": DATA}
        (made.folder / "extra.bin").write_bytes(bytes(64))
        made.list["tensors"] = first + [extra | {"file": "extra.bin", "file_data_offset": 7, "nbytes": 9}]
        made.list["tensors"] += [{"name": "u", "dtype": "U8", "shape": [2, 3], "file": "extra.bin", "file_data_offset": 20}]
        made.write()
        done = tern("logits", "-m", made.folder, "--tokens", TOKENS, "--all", "--sha256")
        self.assertEqual(done.stdout.decode(), expected)
        self.assertIn("extra_blocks", done.stderr.decode())
        made.list["tensors"] = [t | {"dtype": "mx9"} if "ffn_up" in t["name"] else t for t in first]
        made.write()
        result = tern("logits", "-m", made.folder, "--tokens", "1", "--sha256")
        self.assert_one_line_error(result, contains=("ffn_up.weight", "type unknown"))

    # ---- what is wrong ----

    def refused(self, made, *words, text=None):
        if text is not None:
            made.write(text)
        result = tern("inspect", made.folder)
        self.assert_one_line_error(result, contains=words)

    def test_wrong_fields(self):
        made, _ = self.small()
        first = made.list["tensors"]

        def changed(**fields):
            entry = {k: v for k, v in (first[0] | fields).items() if v is not None}
            return json.dumps(made.list | {"tensors": [entry, *first[1:]]})

        name = first[0]["name"]
        for words, text in (
            (("'name'",), changed(name=None)),
            (("'name'", "empty"), changed(name="")),
            (("'name'", "zero byte"), changed(name="a\0b")),
            (("occurs twice", first[1]["name"]), changed(name=first[1]["name"])),
            ((name, "'dtype'"), changed(dtype=None)),
            ((name, "'dtype' is missing"), changed(dtype=7)),
            ((name, "'shape'"), changed(shape=None)),
            ((name, "sizes"), changed(shape=[-1, 4])),
            ((name, "sizes"), changed(shape=[1.5, 4])),
            ((name, "2^62"), changed(shape=[2**40, 2**40])),
            ((name, "at most 4"), changed(shape=[1, 1, 1, 1, 1])),
            ((name, "'nbytes' is 5"), changed(nbytes=5)),
            ((name, "not a number of bytes"), changed(nbytes=-5)),
            ((name, "not an offset"), changed(file_data_offset=None)),
            ((name, "not an offset"), changed(file_data_offset="0")),
            ((name, "contradicts"), changed(shard_data_offset=64)),
            ((name, "contradicts"), changed(shard="x.bin")),
            ((name, "bytes at 9007199254740993"), changed(file_data_offset=2**53 + 1)),
            (("overlap", name), changed(file_data_offset=first[1]["file_data_offset"] - 1)),
            (("name of a file",), changed(file="../model.ie.bin")),
            (("name of a file",), changed(file="/etc/passwd")),
            (("name of a file",), changed(file="a/b")),
            (("name of a file",), changed(file=".hidden")),
            (("name of a file",), changed(file="")),
            (("name of a file",), changed(file=3)),
            (("other.bin", "No such file"), changed(file="other.bin")),
            (("'version'",), json.dumps(made.list | {"version": 3})),
            (("'version'",), json.dumps(made.list | {"version": "1"})),
            (("'schema'",), json.dumps(made.list | {"schema": 0})),
            (("'tensors'",), json.dumps(made.list | {"tensors": {}})),
            (("is not an object",), "[]"),
            (("is not an object", "tensor 0"), json.dumps(made.list | {"tensors": [3]})),
            ((LIST,), "{"),
            ((LIST,), changed(nbytes=None)[:-40]),
            ((LIST,), changed(file_data_offset=None).replace('"nbytes"', '"a": NaN, "nbytes"', 1)),
            (("empty",), ""),
        ):
            with self.subTest(words):
                self.refused(made, *words, text=text)

    def test_wrong_files(self):
        made, expected = self.small()
        data = (made.folder / DATA).read_bytes()
        (made.folder / DATA).write_bytes(data[:-1])
        self.refused(made, DATA, "bytes at")
        (made.folder / DATA).unlink()
        self.refused(made, DATA)
        (made.folder / DATA).write_bytes(data)
        keys = (made.folder / KEYS).read_bytes()
        (made.folder / KEYS).write_bytes(keys[: len(keys) // 2])
        self.refused(made, KEYS)
        shutil.copy(common.SMALL_MODEL, made.folder / KEYS)
        self.refused(made, KEYS, "only hold the keys")
        (made.folder / KEYS).write_bytes(keys)
        self.assertEqual(logits_hash(made.folder), expected)

    def test_numbers_that_are_none(self):
        made, _ = self.small()
        t = made.tensor("output_norm.weight")
        data = bytearray((made.folder / DATA).read_bytes())
        data[t["file_data_offset"] + 8 : t["file_data_offset"] + 12] = b"\0\0\xc0\x7f"
        (made.folder / DATA).write_bytes(data)
        result = tern("logits", "-m", made.folder, "--tokens", "1", "--sha256")
        self.assert_one_line_error(result, contains=("output_norm.weight", "not finite"))

    # ---- what is written ----

    def test_nothing_is_replaced(self):
        source = common.synth("bitnet-tiny", str(self.dir))
        folder = self.convert(source)
        before = {p.name: p.read_bytes() for p in folder.iterdir()}
        for missing in ((), (LIST,), (LIST, KEYS)):
            for name in missing:
                (folder / name).unlink(missing_ok=True)
            result = tern("convert", source, folder, "--to", "iebin")
            self.assertEqual(result.returncode, 2)
            self.assertIn("--force", result.stderr.decode())
        self.convert(source)
        self.assertEqual({p.name: p.read_bytes() for p in folder.iterdir()}, before)
        self.assertEqual(tern("convert", folder, folder, "--to", "iebin", "--force").returncode, 2)
        self.assertEqual({p.name: p.read_bytes() for p in folder.iterdir()}, before)

    def test_nothing_half_written_stays(self):
        result = tern("quantize", common.SMALL_MODEL, self.dir / "new", "--to", "iebin", "--type", "i2_s", "--output-type", "q4_k", "--embedding-type", "tq2_0")
        self.assertNotEqual(result.returncode, 0)
        self.assertFalse((self.dir / "new").exists())

    def test_other_formats(self):
        """quantize writes folders too, and reads them."""
        gguf, folder = self.dir / "q.gguf", self.dir / "q"
        tern_text("quantize", common.SMALL_MODEL, gguf, "--type", "q8_0")
        tern_text("quantize", self.convert(common.SMALL_MODEL), folder, "--type", "q8_0", "--to", "iebin")
        self.assertEqual(logits_hash(folder), logits_hash(gguf))
        entry = Iebin(folder).tensor("blk.0.ffn_up.weight")
        self.assertEqual((entry["dtype"], entry["file_data_offset"] % 64), ("q8_0", 0))


if __name__ == "__main__":
    common.main()
