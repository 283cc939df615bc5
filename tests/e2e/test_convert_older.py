# SPDX-License-Identifier: Apache-2.0
"""tern convert of folders without a tokenizer.json: models of SentencePiece (tokenizer.model, sentencepiece.bpe.model), GPT-2's
pair of files (vocab.json, merges.txt), and BERT's words (vocab.txt). `make test-folders` compares larger ones with
sentencepiece and transformers."""

import json
import struct
import sys
import unittest

import common
import gguf_edit
from common import tern, tern_json, tern_text

sys.path.insert(0, str(common.ROOT / "tests" / "fuzz"))
import seeds_sentencepiece as spm  # noqa: E402
from seeds_charsmap import TABLES, table  # noqa: E402

try:
    import hf_folder
    from hf_folder import Folder
except ImportError:
    hf_folder = None

NAMES = {"merges": "merges.txt", "model": "tokenizer.model", "bpe_model": "sentencepiece.bpe.model", "words": "vocab.txt"}
WHOLE = "tokenizer.huggingface.json"
MODELS = dict(spm.MODELS, unigram=spm.model(spm.FIRST + spm.WORDS, spm.UNIGRAM, charsmap=table(TABLES["wide"]), fewer=True))
# What sentencepiece 0.2.3 makes of these texts.
TEXTS = ["ab", "a b", "  ab", "<s>a</s>", "ab<b>ab", "<b> b", "\u4e2d", "\uff21b", "a  b ", "<0x41>", "\u2581ab", "abab ab", "<unk>", " "]
IDS = {
    "bpe": [[261], [259, 262, 264], [270, 261], [262, 267, 266, 268, 263, 267, 269, 266, 268], [261, 267, 264, 268, 260],
            [262, 267, 264, 268, 262, 264], [262, 231, 187, 176], [262, 242, 191, 164, 264], [259, 270, 264, 262],
            [262, 267, 51, 123, 55, 52, 268], [262, 261], [261, 260, 261], [262, 267, 120, 113, 110, 268], [270]],
    "own": [[262], [260, 263, 265], [271, 262], [263, 268, 267, 269, 264, 268, 270, 267, 269], [262, 3, 261], [263, 3, 263, 265],
            [263, 232, 188, 177], [263, 243, 192, 165, 265], [260, 271, 265, 263], [263, 268, 52, 124, 56, 53, 269], [263, 262],
            [262, 261, 262], [263, 268, 121, 114, 111, 269], [271]],
    "own_without_prefix": [[5], [8, 7, 9], [7, 6], [12, 11, 13, 8, 12, 14, 11, 13], [5, 3, 5], [3, 7, 9], [0], [0, 9],
                           [8, 15, 9, 7], [12, 0, 13], [6], [5, 5, 6], [12, 0, 13], [7]],
    "unigram": [[4], [3, 5, 3, 6], [4], [3, 0, 8, 0, 5, 0, 8, 0], [4, 0, 6, 0, 7], [3, 0, 6, 0, 3, 6], [3, 0], [3, 0, 6],
                [3, 5, 3, 6], [3, 0], [3, 4], [4, 7, 4], [3, 0], []],
    "unigram_bytes": [[260], [259, 261, 259, 262], [259, 259, 260], [259, 63, 264, 65, 261, 63, 50, 264, 65], [260, 63, 262, 65, 263],
                      [259, 63, 262, 65, 259, 262], [259, 231, 187, 176], [259, 242, 191, 164, 262], [259, 261, 259, 259, 262, 259],
                      [259, 63, 51, 123, 55, 52, 65], [259, 260], [260, 263, 260], [259, 63, 120, 113, 110, 65], [259, 259]],
}  # fmt: skip

# XLM-RoBERTa's model, and what transformers 5.24 makes of these texts; the last list has the tokens at both ends of "ab".
ROBERTA_PIECES = [*spm.FIRST, ("a", -2.5), ("b", -2.6), (spm.MARK, -3.0), (spm.MARK + "ab", -1.0), ("ab", -1.5),
                  ("c", -4.0, spm.USER_DEFINED), ("<d>", 0.0, spm.CONTROL)]  # fmt: skip
ROBERTA_TEXTS = ["ab", "a b", "  ab  b", "<s>ab</s> ab", "acb", "ab <mask>ab", "\u4e2d \uff21b", "<pad><unk><d>", ""]
MASK = {"__type": "AddedToken", "content": "<mask>", "lstrip": True}
ROBERTA = [
    ({}, [[7], [6, 4, 6, 5], [7, 6, 5], [0, 7, 2, 7], [6, 4, 9, 6, 5], [7, 11, 7], [6, 3, 7], [1, 3, 10], []], [0, 7, 2]),
    ({"tokenizer_class": "XLMRobertaTokenizer", "add_prefix_space": False},
     [[8], [4, 5], [8, 5], [0, 8, 2, 8], [4, 9, 5], [8, 11, 8], [3, 8], [1, 3, 10], []], [0, 8, 2]),
    ({"mask_token": MASK, "bos_token": "<S>"},
     [[7], [6, 4, 6, 5], [7, 6, 5], [12, 7, 2, 7], [6, 4, 9, 6, 5], [7, 11, 7], [6, 3, 7], [1, 3, 10], []], [0, 7, 2]),
]  # fmt: skip
# BERT's words, among them one twice and an empty line, and what transformers 5.24 makes of these texts.
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "ab", "##c", "A", "e", "E\u0301", "\u4e2d", "##\u4e2d", "x", "", "x ", "!"]
WORD_TEXTS = ["ab abc", "AbC", "\u00c9 e\u0301", "\u4e2da a\u4e2d", "x!x", "[CLS]ab[SEP]", "[mask][MASK]", "zz a\u00adb"]
BERT = [
    ({}, [[7, 7, 8], [7, 8], [10, 10], [12, 5, 5, 12], [16, 17, 16], [2, 7, 3], [1, 1, 1, 4], [1, 7]], [2, 7, 3]),
    ({"tokenizer_class": "BertTokenizer", "do_lower_case": False},
     [[7, 7, 8], [1], [1, 1], [12, 5, 5, 12], [16, 17, 16], [2, 7, 3], [1, 1, 1, 4], [1, 7]], [2, 7, 3]),
    ({"strip_accents": False},
     [[7, 7, 8], [7, 8], [1, 1], [12, 5, 5, 12], [16, 17, 16], [2, 7, 3], [1, 1, 1, 4], [1, 7]], [2, 7, 3]),
    ({"tokenizer_class": "DistilBertTokenizerFast", "tokenize_chinese_chars": False},
     [[7, 7, 8], [7, 8], [10, 10], [1, 5, 13], [16, 17, 16], [2, 7, 3], [1, 1, 1, 4], [1, 7]], [2, 7, 3]),
    ({"do_lower_case": False, "strip_accents": True, "unk_token": "[MASK]", "cls_token": "x"},
     [[7, 7, 8], [4], [4, 10], [12, 5, 5, 12], [16, 17, 16], [4, 4, 4, 7, 3], [4, 4, 4, 4], [4, 7]], [16, 7, 3]),
]  # fmt: skip


def scores_of(file):
    values = file.numbers("tokenizer.ggml.scores")
    return list(struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}i", *values)))


def added(content, **flags):
    return {"content": content, "special": True, **flags}


@unittest.skipUnless(hf_folder, "needs numpy and gguf")
class ConvertOlder(common.FolderTest):
    def held(self, **files):
        """A folder with these files of its tokenizer; names have _ for the dot before json."""
        path = Folder(self.dir / "older", vocab_size=400).write()
        for name, content in files.items():
            name = NAMES.get(name, name + ".json")
            held = content if isinstance(content, str | bytes) else json.dumps(content)
            (path / name).write_bytes(held.encode() if isinstance(held, str) else held)
        return path

    def converted(self, **files):
        out = self.dir / "out.gguf"
        result = tern("convert", self.held(**files), out, "--force")
        self.assertEqual(result.returncode, 0, result.stderr)
        return out

    def refused(self, *words, **files):
        self.assert_one_line_error(tern("convert", self.held(**files), self.dir / "none.gguf"), contains=words)
        self.assertFalse((self.dir / "none.gguf").exists())

    def ids(self, out, texts, *options):
        said = tern_text("tokenize", "-m", out, "--lines", "--json", *options, stdin="".join(x + "\n" for x in texts).encode())
        return [json.loads(line)["tokens"] for line in said.splitlines()]

    # ---- SentencePiece ----

    def test_ids(self):
        """Texts become the tokens that sentencepiece makes of them; the usual keys suffice unless users defined pieces."""
        for name, expected in IDS.items():
            with self.subTest(name):
                out = self.converted(model=MODELS[name])
                self.assertEqual(self.ids(out, TEXTS), expected)
                file = gguf_edit.read(out)
                self.assertEqual(WHOLE in file, name.startswith("own"))
                self.assertEqual(file.text("tokenizer.ggml.model"), "t5" if "unigram" in name else "llama")

    def test_names_of_control_tokens_are_text(self):
        """Even where such a name is all that stands between pieces that users defined, which become tokens as wholes."""
        out = self.converted(model=MODELS["own"])
        self.assertEqual(self.ids(out, ["<b><s>", "<b><unk>"]), [[263, 3, 268, 267, 269], [263, 3, 268, 121, 114, 111, 269]])

    def test_keys(self):
        """Scores, types and ends are those of the model."""
        file = gguf_edit.read(self.converted(model=MODELS["bpe"]))
        self.assertEqual(scores_of(file)[259:], [-float(i) for i in range(12)] + [0.0] * (400 - 271))
        self.assertEqual([file.numbers("tokenizer.ggml.token_type")[i] for i in (0, 1, 2, 65, 259)], [2, 3, 3, 6, 1])
        self.assertEqual([file.number(f"tokenizer.ggml.{x}_token_id") for x in ("unknown", "bos", "eos")], [0, 1, 2])

    def test_text_after_control_tokens(self):
        """Each text between control tokens gets a space in front; without `legacy` only the first text does."""
        texts = ["<s>ab</s>ab", "ab<s>ab"]
        out = self.converted(model=MODELS["bpe"])
        self.assertEqual(self.ids(out, texts, "--special"), [[1, 261, 2, 261], [261, 1, 261]])
        out = self.converted(model=MODELS["bpe"], tokenizer_config={"legacy": False})
        self.assertIn(WHOLE, gguf_edit.read(out))
        self.assertEqual(self.ids(out, texts, "--special"), [[1, 260, 2, 260], [261, 1, 260]])
        out = self.converted(model=MODELS["bpe"], tokenizer_config={"add_prefix_space": False})
        self.assertEqual(self.ids(out, texts, "--special"), [[1, 260, 2, 260], [260, 1, 260]])

    def test_tokens_at_both_ends(self):
        for config, expected in (({}, [1, 261]), ({"add_bos_token": False}, [261]), ({"add_eos_token": True}, [1, 261, 2]),
                                 ({"tokenizer_class": "T5Tokenizer"}, [261, 2]), ({"bos_token": "</s>"}, [2, 261])):  # fmt: skip
            with self.subTest(config):
                out = self.converted(model=MODELS["bpe"], tokenizer_config=config)
                self.assertEqual(self.ids(out, ["ab"], "--add-special"), [expected])

    def test_added_tokens(self):
        """Tokens beside the model's: with flags, by their ids, in place of a piece, and the next ones after all."""
        decoder = {"271": added("<x>", rstrip=True), "269": added("<new>"), "275": {"content": "<plain>", "special": False}}
        files = {"added_tokens": {"<older>": 272}, "special_tokens_map": {"additional_special_tokens": ["<next>", "<older>"]}}
        out = self.converted(model=MODELS["bpe"], tokenizer_config={"added_tokens_decoder": decoder, "legacy": False}, **files)
        self.assertEqual(self.ids(out, ["ab<x>  ab", "<new>", "<older><next>", "<plain>"], "--special"), [[261, 271, 260], [269], [272, 276], [275]])
        self.assertEqual(self.ids(out, ["<plain>"]), [[275]])
        self.assertNotIn(269, self.ids(out, ["/ a/"])[0])

    def test_spaces_and_maps(self):
        """A BPE model with replacements and fewer spaces, for which no usual keys exist."""
        wide = spm.model(spm.FIRST + spm.BYTES + spm.LETTERS, charsmap=table({"\uff41".encode(): b"a", "\u3000".encode(): b" "}), fewer=True)
        out = self.converted(model=wide)
        self.assertIn(WHOLE, gguf_edit.read(out))
        self.assertEqual(self.ids(out, ["\uff41b", " \u3000ab  ab ", "  "]), [[261], [261, 261], []])

    def test_pieces_of_users(self):
        """The usual keys suffice, unless one of these pieces holds a space."""
        pieces = [*spm.FIRST, *spm.BYTES, *spm.LETTERS]
        for own in ("<b>", spm.MARK + "x", "x" + spm.MARK, "x" + spm.MARK + "y"):
            with self.subTest(own):
                out = self.converted(model=spm.model([*pieces, (own, 0.0, spm.USER_DEFINED)], prefix=False))
                self.assertEqual(WHOLE in gguf_edit.read(out), spm.MARK in own)
                self.assertEqual(self.ids(out, ["a" + own.replace(spm.MARK, " ") + "b"]), [[263, 271, 264]])

    def test_rows_of_equal_pieces(self):
        """They merge from left to right, by scores and by the merges that are made of these."""
        pieces = [*spm.FIRST, *spm.BYTES, *spm.merged("aa", "aaa", "a", spm.MARK)]
        out = self.converted(model=spm.model(pieces, prefix=False))
        other = self.converted(model=spm.model(pieces, prefix=False, fewer=True))
        for file in (out, other):
            self.assertEqual(self.ids(file, ["aaa", "aaaa", "aaaaa"]), [[260], [259, 259], [259, 260]])

    def test_broken_models(self):
        good = MODELS["own"]
        for cut in [1, 2, 3, 7, 8, 20, *range(40, len(good), 500)]:
            result = tern("convert", self.held(model=good[:cut]), self.dir / "cut.gguf", "--force")
            if result.returncode != 0:  # a whole piece may be missing
                self.assert_one_line_error(result, contains=["tokenizer.model"])
        for words, content in {
            ("not a model of SentencePiece", "save_pretrained"): b"{\"a\": 1}",
            ("piece 3", "UTF-8"): spm.model([*spm.FIRST, ("", 0.0)]),
            ("piece 1", "UTF-8"): spm.piece("<unk>", 0.0, spm.UNKNOWN) + spm.piece(b"\xff"),
            ("piece 3", "not finite"): spm.model([*spm.FIRST, ("a", float("nan"))]),
            ("piece 3", "unused"): spm.model([*spm.FIRST, ("a", 0.0, spm.UNUSED)]),
            ("piece 3", "type"): spm.model([*spm.FIRST, ("a", 0.0, 9)]),
            ("no unknown piece",): spm.model(spm.FIRST[1:]),
            ("two unknown pieces",): spm.model(spm.FIRST + spm.FIRST[:1]),
            ("pieces 3 and 4 are the same",): spm.model([*spm.FIRST, ("a", 0.0), ("a", 1.0)]),
            ("words or characters",): spm.model(spm.FIRST, spm.WORD),
            ("treat_whitespace_as_suffix",): spm.model(spm.FIRST, trainer={24: 1}),
            ("escape_whitespaces",): spm.model(spm.FIRST, normalizer={5: 0}),
            ("denormalizer",): spm.model(spm.FIRST, more=spm.data(5, spm.data(2, b"x"))),
            ("piece 3", "256 bytes"): spm.model([*spm.FIRST, ("a" * 300, 0.0)]),
            ("pieces that users defined",): spm.model([*spm.FIRST, *((f"<{i:0100}>", 0.0, spm.USER_DEFINED) for i in range(170))]),
        }.items():
            with self.subTest(words):
                self.refused("tokenizer.model", *words, model=content)
        self.refused("tokenizer_config.json", model=MODELS["bpe"], tokenizer_config="{")

    def test_files_that_are_not_read(self):
        folder = Folder(self.dir / "other").write()
        (folder / "spiece.model").write_text("x")
        self.assert_one_line_error(tern("convert", folder, self.dir / "other.gguf"), contains=["spiece.model", "tokenizer.json", "save_pretrained"])

    # ---- XLM-RoBERTa's model, BERT's words ----

    def of_type(self, kind):
        return Folder(self.dir / "any", vocab_size=400).config | {"model_type": kind}

    def check_encoder(self, kind, rows, texts, **files):
        for config, expected, around in rows:
            with self.subTest(config):
                out = self.converted(config=self.of_type(kind), tokenizer_config=config, **files)
                self.assertEqual(self.ids(out, texts, "--special"), expected)
                self.assertEqual(self.ids(out, ["ab"], "--special", "--add-special"), [around])

    def test_ids_of_roberta(self):
        """The first three pieces give way to four tokens, and a mask is behind all; pieces of users are cut out first."""
        model = spm.model(ROBERTA_PIECES, spm.UNIGRAM, charsmap=table({"\uff21".encode(): b"a"}))
        self.check_encoder("xlm-roberta", ROBERTA, ROBERTA_TEXTS, bpe_model=model)

    def test_ids_of_words(self):
        """A line is an id, whatever ends it; the last of equal lines counts."""
        for end in ("\n", "\r\n"):
            self.check_encoder("bert", BERT, WORD_TEXTS, words=end.join(WORDS) + end)
        self.check_encoder("distilbert", BERT[:1], WORD_TEXTS, words="\n".join(WORDS))

    def test_roles_outside_of_the_words(self):
        """They get the ids after all others, in transformers' order."""
        out = self.converted(config=self.of_type("bert"), words="a\n[UNK]\nb\n")
        self.assertEqual(self.ids(out, ["a[SEP][PAD][CLS][MASK]b"], "--special"), [[0, 3, 4, 5, 6, 2]])

    def test_refused_encoders(self):
        roberta, bert, llama = (self.of_type(x) for x in ("xlm-roberta", "bert", "llama"))
        unigram = spm.model(ROBERTA_PIECES, spm.UNIGRAM)
        self.refused("bpe.model", "'llama'", "save_pretrained", bpe_model=unigram, config=llama)
        self.refused("vocab.txt", "'llama'", "save_pretrained", words="a\n", config=llama)
        self.refused("bpe.model", "BPE", bpe_model=MODELS["bpe"], config=roberta)
        self.refused("bpe.model", "1 pieces", bpe_model=spm.model(spm.FIRST[:1], spm.UNIGRAM), config=roberta)
        self.refused("bpe.model", "tokens 1 and 4 are the same", bpe_model=spm.model([*spm.FIRST, ("<pad>", 0.0)], spm.UNIGRAM), config=roberta)
        self.refused("vocab.txt", "line 2 is not UTF-8", words=b"a\n\xff\n", config=bert)

    # ---- GPT-2's pair of files ----

    def pair(self, merges="#version: 0.2\na b\nab c\n", **files):
        tokens = [*hf_folder.byte_alphabet(), "ab", "abc", "<|endoftext|>"]
        return self.converted(vocab={t: i for i, t in enumerate(tokens)}, merges=merges, **files)

    def test_classes(self):
        """Texts are cut as the class does: Qwen 2's digits stand alone, GPT-2's do not; NFC is Qwen 2's alone."""
        end, texts = {"eos_token": "<|endoftext|>"}, ["abc ab", "cabc", "a\u0301", "abc<|endoftext|>ab"]
        a, c, space = (hf_folder.byte_alphabet().index(x) for x in ("a", "c", "\u0120"))
        for name, composed in (("GPT2Tokenizer", False), ("Qwen2TokenizerFast", True)):
            with self.subTest(name):
                out = self.pair(tokenizer_config={"tokenizer_class": name, **end})
                seen = self.ids(out, texts, "--special")
                self.assertEqual([seen[0], seen[1], seen[3]], [[257, space, 256], [c, 257], [257, 258, 256]])
                self.assertEqual(seen[2][0] == a, not composed)
                self.assertEqual(gguf_edit.read(out).text("tokenizer.ggml.pre"), "qwen2" if composed else "gpt-2")
                self.assertEqual(WHOLE in gguf_edit.read(out), composed)
                self.assertEqual(gguf_edit.read(out).number("tokenizer.ggml.eos_token_id"), 258)

    def test_without_a_class(self):
        """The model's type says the class; the token that ends a text has a usual name, and others may be added."""
        config = Folder(self.dir / "any", vocab_size=400).config | {"model_type": "olmo2"}
        out = self.pair(config=config, added_tokens={"<|x|>": 259}, merges="a b\r\nab c")
        self.assertEqual(self.ids(out, ["abc<|endoftext|><|x|>"], "--special"), [[257, 258, 259]])
        self.assertEqual(self.ids(out, ["<|x|>"]), [[259]])
        files = {"vocab": {"a": 0}, "merges": "", "config": config | {"model_type": "llama"}}
        self.refused("vocab.json", "'llama'", "save_pretrained", **files)
        self.refused("merges.txt", **{k: v for k, v in files.items() if k != "merges"} | {"config": config})
        self.refused("vocab.json", **files | {"config": config, "vocab": "[1]"})
        self.refused("merge 0", **files | {"config": config, "merges": "abc\n"})


if __name__ == "__main__":
    common.main()
