# SPDX-License-Identifier: Apache-2.0
"""tern tokenize; tokenizers from other files than the model's own."""

import json
import tempfile
from pathlib import Path

import common
import gguf_edit
from common import tern, tern_json, tern_text

TEXT = "Hello, world! 你好世界\n  def f(x):\r\n\tretürn x "


def tokenizer_json(model):
    """The byte-level vocabulary of a GGUF file as a tokenizer.json."""
    info = json.loads(tern_text("inspect", model, "--json"))
    assert info["tokenizer"]["pre"] == "smollm", info["tokenizer"]
    file = gguf_edit.parse(Path(model).read_bytes())
    tokens = file.texts("tokenizer.ggml.tokens")
    types = file.numbers("tokenizer.ggml.token_type")
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [{"id": i, "content": t, **flags, "special": True} for i, t in enumerate(tokens) if types[i] == 3]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    return {
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, level]},
        "decoder": level,
        "model": {
            "type": "BPE",
            "vocab": {t: i for i, t in enumerate(tokens)},
            "merges": file.texts("tokenizer.ggml.merges"),
        },
    }


class Tokenize(common.TernTest):
    def test_there_and_back(self):
        for ids_of in (["-p", TEXT], ["-p", TEXT, "--special", "--add-special"]):
            ids = tern_text("tokenize", *ids_of)
            back = tern("tokenize", "--ids", "--skip-special", stdin=ids.encode())
            self.assertEqual(back.stdout, TEXT.encode())

    def test_inputs(self):
        """-p, -f and a pipe mean the same bytes; every byte counts."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "text"
            path.write_bytes(b"one\ntwo\n")
            whole = tern_text("tokenize", "-p", "one\ntwo\n")
            self.assertEqual(tern_text("tokenize", "-f", path), whole)
            self.assertEqual(tern_text("tokenize", stdin=b"one\ntwo\n"), whole)
            lines = tern_text("tokenize", "--lines", "-f", path)
            self.assertEqual(lines, tern_text("tokenize", "-p", "one") + tern_text("tokenize", "-p", "two"))
            again = tern("tokenize", "--lines", "--ids", stdin=lines.encode())
            self.assertEqual(again.stdout, b"one\ntwo\n")

    def test_json(self):
        line = tern_json("tokenize", "-p", "Hello there")
        self.assertEqual("".join(line["pieces"]), "Hello there")
        self.assertEqual(line["text"], "Hello there")
        ids = " ".join(map(str, line["tokens"]))
        self.assertEqual(tern_text("tokenize", "-p", "Hello there"), ids + "\n")
        self.assertEqual(tern_json("tokenize", "--ids", "-p", json.dumps(line["tokens"]))["text"], "Hello there")

    def test_pieces(self):
        rows = [r.split("\t") for r in tern_text("tokenize", "--pieces", "-p", "a\n\\b\x01").splitlines()]
        self.assertEqual("".join(text for _, text in rows), "a\\n\\\\b\\x01")

    def test_refusals(self):
        for arguments, status, words in (
            (["--ids", "-p", "1,x"], 1, ["below", "'x'"]),
            (["--ids", "-p", "99999999"], 1, ["99999999"]),
            (["-p", "a", "-f", "b"], 2, ["exclude"]),
            (["-p", "a", "--tokenizer", "/nowhere.json"], 1, ["/nowhere.json"]),
            (["-p", "a", "-m", __file__], 1, [__file__, "neither a GGUF file nor JSON"]),
            (["-p", "a", "--pieces", "--json"], 2, ["--pieces"]),
            (["-p", "a", "--pre", "nonsense"], 1, ["nonsense"]),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(tern("tokenize", *arguments), status, words)


class OtherFiles(common.TernTest):
    """A tokenizer.json with the vocabulary of the small model gives the same tokens as the model's own."""

    @classmethod
    def setUpClass(cls):
        cls.model = common.small_model()
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.temporary.name)
        cls.json = cls.folder / "other.json"
        cls.json.write_text(json.dumps(tokenizer_json(cls.model)))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def bare_model(self):
        """The small model without a tokenizer, in a folder of its own."""
        file = gguf_edit.parse(self.model.read_bytes())
        for key in [k for k, _, _ in file.keys if k.startswith("tokenizer.") and not k.endswith("_id")]:
            del file[key]
        folder = self.folder / "bare"
        folder.mkdir(exist_ok=True)
        path = folder / "model.gguf"
        path.write_bytes(file.to_bytes())
        return path

    def test_same_tokens(self):
        for text in (TEXT, "Q: What is 17+25? A:"):
            own = tern_text("tokenize", "-p", text)
            self.assertEqual(tern_text("tokenize", "--tokenizer", self.json, "-p", text), own)

    def test_every_command(self):
        sums = [tern_text("logits", "-p", "Q: What is 2+2? A:", "--sha256", *more)
                for more in ([], ["--tokenizer", self.json])]  # fmt: skip
        self.assertEqual(*sums)
        line = tern_json("run", "--tokenizer", self.json, "-p", "Q: What is 2+2? A:", "-n", 4)
        self.assertEqual(line["text"].strip()[0], "4")
        info = tern_json("inspect", self.model, "--tokenizer", self.json)["tokenizer"]
        self.assertEqual((info["file"], info["kind"]), (str(self.json), "byte-level BPE"))

    def test_beside(self):
        path = self.bare_model()
        refused = tern("run", "-m", path, "-p", "Q: What is 2+2? A:", "-n", 4)
        self.assert_one_line_error(refused, contains=["no tokenizer", "--tokens"])
        beside = path.parent / "tokenizer.json"
        beside.write_bytes(self.json.read_bytes())
        result = tern("run", "-m", path, "-p", "Q: What is 2+2? A:", "-n", 4, "--verbose")
        self.assertEqual(result.stdout.decode().strip()[0], "4")
        self.assertIn(f"tokenizer: {beside}, byte-level BPE", result.stderr.decode())
        own = tern("run", "-p", "Q: What is 2+2? A:", "-n", 4, "--verbose")
        self.assertNotIn("tokenizer:", own.stderr.decode())
        self.assertEqual(tern_text("tokenize", "-m", path, "-p", TEXT), tern_text("tokenize", "-p", TEXT))

    def test_broken_beside(self):
        """Nobody asked for the bad tokenizer: ids still work, and text is refused with the reason."""
        path = self.bare_model()
        (path.parent / "tokenizer.json").write_text("{")
        tern_text("logits", "-m", path, "--tokens", "1,2", "--sha256")
        refused = tern("logits", "-m", path, "-p", "a", "--sha256")
        self.assert_one_line_error(refused, contains=["tokenizer.json", "line 1"])

    def test_too_large(self):
        document = json.loads(self.json.read_text())
        last = len(document["model"]["vocab"])
        document["model"]["vocab"]["one too many"] = last
        large = self.folder / "large.json"
        large.write_text(json.dumps(document))
        refused = tern("run", "--tokenizer", large, "-p", "a")
        self.assert_one_line_error(refused, contains=["large.json", str(last + 1), str(last)])


if __name__ == "__main__":
    common.main()
