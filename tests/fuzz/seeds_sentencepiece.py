#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small models of SentencePiece as seeds of fuzz_sentencepiece: seeds_sentencepiece.py FOLDER."""

import struct
import sys
from pathlib import Path

from seeds_charsmap import TABLES, table

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE, WORD = 1, 2, 3
MARK = "\u2581"
BYTES = [(f"<0x{b:02X}>", 0.0, BYTE) for b in range(256)]
FIRST = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]


def varint(x):
    x &= (1 << 64) - 1
    out = bytearray()
    while x >= 0x80:
        out.append(x & 0x7F | 0x80)
        x >>= 7
    return bytes([*out, x])


def number(field, x):
    return varint(field << 3) + varint(x)


def data(field, x):
    x = x.encode() if isinstance(x, str) else x
    return varint(field << 3 | 2) + varint(len(x)) + x


def piece(text, score=0.0, kind=NORMAL):
    said = number(3, kind) if kind != NORMAL else b""
    return data(1, data(1, text) + varint(2 << 3 | 5) + struct.pack("<f", score) + said)


def model(pieces, kind=BPE, trainer=(), charsmap=b"", prefix=True, fewer=False, normalizer=(), more=b""):
    """The bytes of a tokenizer.model. trainer and normalizer: further {field: number}."""
    settings = {3: kind, 35: any(x[2:] == (BYTE,) for x in pieces), **dict(trainer)}
    rules = {3: prefix, 4: fewer, **dict(normalizer)}
    out = b"".join(piece(*x) for x in pieces)
    out += data(2, b"".join(number(k, int(v)) for k, v in settings.items()))
    out += data(3, data(1, "identity") + data(2, charsmap) + b"".join(number(k, int(v)) for k, v in rules.items()))
    return out + more


def merged(*texts):
    """Pieces that merge: those that come first have higher scores."""
    return [(x, -float(i)) for i, x in enumerate(texts)]


LETTERS = merged(MARK + "a", "ab", MARK + "ab", MARK, "a", "b", "c", "s", "<", ">", "/", MARK + MARK)
WORDS = [(MARK, -3.0), (MARK + "ab", -2.0), ("a", -4.0), ("b", -4.5), ("ab", -3.5), ("s", -6.0), ("c", -6.5), (MARK + "c", -5.0)]
MODELS = {
    "bpe": model(FIRST + BYTES + LETTERS),
    "own": model([*FIRST, ("<b>", 0.0, USER_DEFINED), *BYTES, *LETTERS]),
    "own_without_prefix": model([*FIRST, ("<b>", 0.0, USER_DEFINED), *LETTERS], prefix=False),
    "unigram": model(FIRST + WORDS, UNIGRAM, charsmap=table(TABLES["wide"]), fewer=True),
    "unigram_bytes": model(FIRST + BYTES + WORDS, UNIGRAM),
}


def main(folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, content in MODELS.items():
        (Path(folder) / name).write_bytes(content + data(4, "ab <b> c<s>"))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "ab", "", "\u00e9\r", "ab", "[UNK] ab \u00c9 [MASK]"]
    (Path(folder) / "words").write_text("\n".join(words), newline="")


if __name__ == "__main__":
    main(sys.argv[1])
