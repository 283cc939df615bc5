#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small JSON vocabularies as seeds of fuzz_tokenizer_json: seeds_tokenizer_json.py FOLDER."""

import base64
import json
import os
import sys

from seeds_charsmap import TABLES, table

PLAIN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
ALPHABET = [chr(c) for c in PLAIN] + [chr(0x100 + i) for i in range(68)]
MERGES = ["h e", "l l", "he ll", "hell o", "\u0120 w", "1 2"]
TAIL = "it's hello 123 <s> w<x> e\u0301 \u00e9\U0001f642\r\n x+y ".encode() + b"\xff\xe2\x96"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "use_regex": False}


def split(pattern, behavior, kind="Regex", invert=False):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


PRE = [
    [split(LLAMA3, "Isolated"), BYTES],
    [{"type": "Digits", "individual_digits": True}, {"type": "ByteLevel", "add_prefix_space": False}],
    [{"type": "Punctuation", "behavior": "Contiguous"}, BYTES, split("[0-9][0-9]", "MergedWithNext")],
    [split(" ", "MergedWithPrevious", "String"), {"type": "Digits"}, BYTES],
    [split(r"\w+|[^\w\s]+", "Removed", invert=True), BYTES],
    [{"type": "WhitespaceSplit"}, split("(a*)*b|x{,2}", "Contiguous"), BYTES],
]


def added(number, content, **flags):
    every = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    return {"id": number, "content": content} | every | flags


def document(vocab, merges, **parts):
    model = {"type": "BPE", "unk_token": None, "vocab": {t: i for i, t in enumerate(vocab)}, "merges": merges}
    model |= parts.pop("model", {})
    return {"version": "1.0", "normalizer": None, "post_processor": None, "model": model} | parts


def byte_level(pre):
    tokens = ALPHABET + [m.replace(" ", "") for m in MERGES]
    n = len(tokens)
    extra = [added(n, "<s>", special=True, lstrip=True), added(n + 1, "<x>", rstrip=True, normalized=True),
             added(tokens.index("w"), "w", single_word=True)]  # fmt: skip
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [n], "tokens": ["<s>"]}},
    }
    return document(
        tokens, [m.split() for m in MERGES] if len(pre) > 2 else MERGES, added_tokens=extra,
        normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]},
        pre_tokenizer={"type": "Sequence", "pretokenizers": pre}, post_processor=template,
        decoder={"type": "ByteLevel"}, model={"ignore_merges": len(pre) == 2},
    )  # fmt: skip


def llama2():
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581", "h", "e", "l", "o", "he", "ll", "hell", "\u2581he"]
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    shown = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    decoders = [shown, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    return document(
        tokens, ["h e", "l l", "he ll", "\u2581 he"],
        added_tokens=[added(i, tokens[i], special=True) for i in range(3)],
        normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, spaces]},
        decoder={"type": "Sequence", "decoders": decoders},
        model={"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True},
    )  # fmt: skip


def metaspace():
    tokens = ["<unk>", "\u2581", *"helow123", "he", "\u2581he"]
    mark = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}
    return document(
        tokens, ["h e", "\u2581 he"], added_tokens=[added(0, "<unk>", special=True)],
        normalizer={"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "NFKD"}]},
        pre_tokenizer=mark, decoder=mark, model={"unk_token": "<unk>", "fuse_unk": False},
    )  # fmt: skip


def unigram(entries):
    tokens = ["<unk>", "\u2581", *"helow123", "he", "\u2581he", "<0xC3>", "<0xA9>"]
    mark = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}
    model = {"type": "Unigram", "unk_id": 0, "byte_fallback": True, "vocab": [[t, -float(i)] for i, t in enumerate(tokens)]}
    charsmap = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table(entries)).decode()}
    steps = [{"type": "Nmt"}, charsmap, {"type": "Lowercase"}]
    return {"normalizer": {"type": "Sequence", "normalizers": steps}, "added_tokens": [added(0, "<unk>", special=True)],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, mark]},
            "decoder": mark, "model": model}  # fmt: skip


def words():
    tokens = ["[UNK]", "it", "'", "s", "hello", "##llo", "##1", "e", "+", "w", "##x", "<s>"]
    model = {"type": "WordPiece", "max_input_chars_per_word": 9, "vocab": {t: i for i, t in enumerate(tokens)}}
    return {"normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
            "added_tokens": [added(0, "[UNK]", special=True), added(11, "<s>", special=True)],
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}, "model": model}  # fmt: skip


def whole_documents():
    """Texts of tokenizer.json: each kind of model."""
    return [byte_level(pre) for pre in PRE] + [llama2(), metaspace(), words(), unigram(TABLES["few"])]


def encoded(document, ascii_only):
    return json.dumps(document, ensure_ascii=ascii_only, separators=(",", ":")).encode()


def main(folder):
    os.makedirs(folder, exist_ok=True)
    documents = whole_documents()
    documents.append({"<s>": 0, "</s>": 1, "<unk>": 2, "\u2581": 3, "\u2581hello": 4, "he": 5, "l": 6, "<0x0A>": 7})
    documents.append({"vocab": {t: i for i, t in enumerate(ALPHABET + ["hello"])}, "special_tokens": {}})
    documents.append({"vocab": {"a": 0, "b": 1, "<e>": 2}, "special_tokens": {"eos_token": "<e>", "unk_token": {"content": "b"}}})
    for i, x in enumerate(documents):
        with open(os.path.join(folder, f"{i:02}"), "wb") as f:
            f.write(encoded(x, i % 2 == 0) + TAIL)


if __name__ == "__main__":
    main(sys.argv[1])
