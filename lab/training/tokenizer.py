"""Byte-level BPE with the pre-tokenizer that GGUF calls "smollm".

Digits are cut out one by one first, then the GPT-2 pattern splits the rest;
merges never cross a piece.  Ids: 0 begin of text, 1 end of text, 2..257 the
256 bytes (in the order of the byte alphabet below), then one id per merge.
"""
from collections import Counter
import json
import re

BOS, EOS = 0, 1
SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>"]
DIGITS = re.compile(r"\d|\D+")
# The GPT-2 pattern; [^\W\d_] is Python's spelling of "a letter".
PIECES = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def byte_alphabet():
    """The 256 printable characters that stand for the bytes 0..255 in token texts."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {b: chr(b) for b in plain}
    rest = [b for b in range(256) if b not in table]
    table.update({b: chr(256 + i) for i, b in enumerate(rest)})
    return [table[b] for b in range(256)]


BYTE_CHARS = byte_alphabet()
CHAR_BYTES = {c: b for b, c in enumerate(BYTE_CHARS)}


def split(text):
    """`text` as the list of pieces that are merged separately."""
    return [p for run in DIGITS.findall(text) for p in PIECES.findall(run)]


def to_chars(piece):
    """A piece as a list of byte-alphabet characters."""
    return [BYTE_CHARS[b] for b in piece.encode("utf-8")]


def apply_merge(symbols, left, right):
    """`symbols` with each adjacent (left, right) joined, from the left."""
    out, i = [], 0
    while i < len(symbols):
        if symbols[i] == left and i + 1 < len(symbols) and symbols[i + 1] == right:
            out.append(left + right)
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def train_merges(texts, count):
    """The `count` most frequent merges over `texts`; ties go to the smaller pair."""
    words = Counter(p for text in texts for p in split(text))
    state = [(to_chars(p), n) for p, n in words.items()]
    merges = []
    while len(merges) < count:
        pairs = Counter()
        for symbols, n in state:
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += n
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        state = [(apply_merge(s, *best), n) for s, n in state]
    return merges


class Tokenizer:
    """Encodes and decodes with a fixed list of merges."""

    def __init__(self, merges):
        self.merges = [tuple(m) for m in merges]
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.tokens = SPECIALS + BYTE_CHARS + [a + b for a, b in self.merges]
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.cache = {}

    def __len__(self):
        return len(self.tokens)

    def piece_ids(self, piece):
        """Ids of one piece: merge the pair of lowest rank until none is left."""
        if piece not in self.cache:
            symbols = to_chars(piece)
            while len(symbols) > 1:
                pair = min(zip(symbols, symbols[1:]), key=lambda p: self.rank.get(p, 1 << 30))
                if pair not in self.rank:
                    break
                symbols = apply_merge(symbols, *pair)
            self.cache[piece] = [self.ids[s] for s in symbols]
        return self.cache[piece]

    def encode(self, text):
        """Ids of `text`, without any special token."""
        return [i for piece in split(text) for i in self.piece_ids(piece)]

    def decode(self, ids):
        """Text of `ids`; the two special tokens give nothing."""
        chars = "".join(self.tokens[i] for i in ids if i >= len(SPECIALS))
        return bytes(CHAR_BYTES[c] for c in chars).decode("utf-8", "replace")

    def save(self, path):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(self.merges, f, ensure_ascii=False)

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as f:
            return cls(json.load(f))
