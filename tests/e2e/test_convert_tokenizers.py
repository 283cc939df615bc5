# SPDX-License-Identifier: Apache-2.0
"""Unigram and WordPiece go through tern convert: the GGUF file gives the ids of the tokenizer.json."""

import base64
import json
import sys
import tempfile
from pathlib import Path

import common
import gguf_edit
import suite
from common import tern, tern_text

suite.need("numpy", "gguf")

from hf_folder import Folder  # noqa: E402

sys.path.insert(0, str(common.ROOT / "tests" / "fuzz"))
from seeds_charsmap import table  # noqa: E402

MARK = "\u2581"
FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##able", "a", ".", "\u4e2d", "\u00e4", "##x", "U", "##e"]
PIECES = ["<s>", "</s>", "<unk>", MARK, "u", "n", "able", f"{MARK}un", "fi", "a", "\u00e4", "ab", "."]
TEXTS = ["unable a.", "  UN \u00c4a \u4e2d\u4e2d. ", "\ufb01able  unx", "[SEP] unx", "a\tb" * 9, "n" * 101, "e\u0301"]


def added(tokens, special):
    return [{"id": tokens.index(t), "content": t, "special": True, **FLAGS} for t in special]


def around(first, last):
    ids = {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in (first, last)}
    special = [{"SpecialToken": {"id": t, "type_id": 0}} for t, _ in (first, last)]
    sequence = {"Sequence": {"id": "A", "type_id": 0}}
    return {"type": "TemplateProcessing", "single": [special[0], sequence, special[1]], "special_tokens": ids}


def words(model=None, **rules):
    """A tokenizer.json as BERT's is."""
    return {
        "added_tokens": added(WORDS, WORDS[:4]),
        "normalizer": {"type": "BertNormalizer"} | rules,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": around(("[CLS]", 2), ("[SEP]", 3)),
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "vocab": {t: i for i, t in enumerate(WORDS)}} | (model or {}),
    }


def pieces(steps=None, **parts):
    """A tokenizer.json as XLM-R's is."""
    mark = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always"}
    spaces = {c.encode(): b" " for c in "\t\n\r\u00a0\u3000"}
    charsmap = table({"\ufb01".encode(): b"fi", b"U": b"u", b"N": b"n"} | spaces)
    precompiled = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
    vocab = [[t, -1.0 - i / 3 if i > 2 else 0.0] for i, t in enumerate(PIECES)]
    return {
        "added_tokens": added(PIECES, PIECES[:3]),
        "normalizer": {"type": "Sequence", "normalizers": [precompiled]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps or [{"type": "WhitespaceSplit"}, mark]},
        "post_processor": around(("<s>", 0), ("</s>", 1)),
        "decoder": mark,
        "model": {"type": "Unigram", "unk_id": 2, "vocab": vocab},
    } | parts


def gemma():
    """A tokenizer.json as Gemma's is: merges of text, spaces marked and not added, bytes for the rest."""
    tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<turn>"] + [f"<0x{b:02X}>" for b in range(256)]
    tokens += ["\n", f"{MARK}{MARK}", MARK, "u", "n", "a", "b", "l", "e", ".", "un", "ab", "le", "able", f"{MARK}a", "unable"]
    merges = [["u", "n"], ["a", "b"], ["l", "e"], ["ab", "le"], [MARK, "a"], ["un", "able"], [MARK, MARK]]
    kept = [{"id": tokens.index(t), "content": t, "special": False, **FLAGS} for t in ("\n", MARK * 2)]
    pieces = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    bos = {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}}
    single = [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    model = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "merges": merges}
    split = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    return {
        "added_tokens": added(tokens, tokens[:5]) + kept,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": MARK},
        "pre_tokenizer": split,
        "post_processor": {"type": "TemplateProcessing", "single": single, "special_tokens": bos},
        "decoder": {"type": "Sequence", "decoders": pieces},
        "model": model | {"vocab": {t: i for i, t in enumerate(tokens)}},
    }


class ConvertTokenizers(common.TernTest):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.dir = Path(temporary.name)

    def convert(self, document):
        size = max(16, len(document["model"]["vocab"]))
        folder = Folder(self.dir / "model", vocab_size=size).write()
        self.json, self.out = folder / "tokenizer.json", self.dir / "out.gguf"
        self.json.write_text(json.dumps(document))
        return tern("convert", folder, self.out, "--force")

    def same_ids(self, document, texts=TEXTS):
        result = self.convert(document)
        self.assertEqual(result.returncode, 0, result.stderr)
        holds = "tokenizer.huggingface.json" in gguf_edit.read(self.out)
        self.assertEqual(b"holds tokenizer.json" in result.stderr, holds)
        for text in texts:
            for options in ((), ("--add-special",), ("--special",)):
                of = [("--tokenizer", self.json), ("-m", self.out)]
                ids = [tern_text("tokenize", *where, "-p", text, *options) for where in of]
                self.assertEqual(*ids, text)
        return gguf_edit.read(self.out)

    def test_words(self):
        file = self.same_ids(words())
        self.assertEqual(file.text("tokenizer.ggml.model"), "bert")
        self.assertEqual(file.number("tokenizer.ggml.cls_token_id"), 2)
        self.assertEqual(file.number("tokenizer.ggml.seperator_token_id"), 3)
        self.assertIn(f"{MARK}un".encode(), file["tokenizer.ggml.tokens"][1])
        self.assertNotIn(b"##", file["tokenizer.ggml.tokens"][1])

    def test_rules_of_words(self):
        for rules in ({"lowercase": False}, {"strip_accents": False}, {"lowercase": False, "strip_accents": True},
                      {"clean_text": False}, {"handle_chinese_chars": False}):  # fmt: skip
            with self.subTest(rules=rules):
                self.same_ids(words(**rules), [TEXTS[1], "a\x01 a"])
        self.same_ids(words({"max_input_chars_per_word": 5}), TEXTS[:1])

    def test_unigram(self):
        file = self.same_ids(pieces())
        self.assertEqual(file.text("tokenizer.ggml.model"), "t5")
        self.assertIn("tokenizer.ggml.precompiled_charsmap", file)
        self.assertEqual(file.number("tokenizer.ggml.unknown_token_id"), 2)
        self.same_ids(pieces([{"type": "Metaspace", "replacement": MARK, "prepend_scheme": "never"}]), TEXTS[:1])

    def test_gemma(self):
        texts = ["unable a.", "  un able\n\nable<turn>", "\u4e2d a    \u00e9", " ", "<bos>unableable"]
        file = self.same_ids(gemma(), [*TEXTS, *texts])
        self.assertEqual(file.text("tokenizer.ggml.model"), "llama")
        self.assertEqual(file.number("tokenizer.ggml.bos_token_id"), 2)
        self.assertEqual(file["tokenizer.ggml.add_space_prefix"][1], b"\0")
        seen = tern_text("tokenize", "-m", self.out, "-p", "unable a", "--add-special").split()
        vocabulary = gemma()["model"]["vocab"]
        self.assertEqual([int(t) for t in seen], [vocabulary[t] for t in ("<bos>", "unable", f"{MARK}a")])

    def test_rules_without_keys(self):
        """The file then holds the tokenizer.json alone, and says so to programs that do not read it."""
        spaces = words() | {"pre_tokenizer": {"type": "Whitespace"}}
        rest = pieces([{"type": "Whitespace"}]), pieces(normalizer={"type": "Lowercase"}), pieces(normalizer=None)
        for document in (spaces, *rest):
            file = self.same_ids(document, TEXTS[:2])
            self.assertEqual(file.text("tokenizer.ggml.model"), "huggingface")
            self.assertNotIn("tokenizer.ggml.scores", file)
        twins = {"[UNK]": 0, "a": 1, f"##{MARK}a": 2}
        document = words() | {"added_tokens": [], "post_processor": None}
        document["model"]["vocab"] = twins
        self.assert_one_line_error(self.convert(document), contains=["U+2581"])


if __name__ == "__main__":
    common.main()
