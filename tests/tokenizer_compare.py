#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares tern's tokenizer with Hugging Face's `tokenizers` on generated lines.

    tokenizer_compare.py --tool TOOL VOCABULARY:PRE[,PRE...] ...

TOOL is tests/tokenize_tool.c, compiled.  VOCABULARY is a tokenizer.json, plain or
.xz, or a GGUF file with a byte-level vocabulary; PRE names the pre-tokenizers to
try with it, or is `spm` for a Llama 2 vocabulary.  Needs the packages tokenizers,
gguf and numpy.  Exit status 1 when a single id differs.
"""
import argparse
import json
import lzma
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

CONTRACTION = "'s|'t|'re|'ve|'m|'ll|'d"
LLAMA3 = (
    r"(?i:" + CONTRACTION + r")|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2 = CONTRACTION + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PATTERNS = {
    "llama-bpe": [LLAMA3],
    "dbrx": [LLAMA3],
    "qwen2": [LLAMA3.replace("{1,3}", "")],
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "falcon3": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
}

WORDS = """the quick brown fox don't I'll WE'VE it's O'Neil can't 'tis y'all def return x+1
    for(int i=0;i<n;++i) printf("%d\\n",x); <html> </div> a_b_c CamelCase http://x.org/?q=1&r=%20
    naïve Zürich Straße Ελλάδα Привет мир שלום سلام नमस्ते ไทย 你好世界 日本語 한국어 ﬁn ½ Ⅻ ٣٤٥ १२३
    e\u0301 🙂 👩‍👩‍👧 🇫🇷 ✅ 1 12 123 1234 12345 1,234.56 0x1F 3.14e-10 $5.00 (USD) ... --- ```c``` ~~ ^^""".split()
SPACES = [" ", " ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\u00a0", "\u2003",
          "\u2028", "\u3000", "\u0085", "\u180e", "\u200b", "\x0b", "\x0c", "\x1c", "      "]


def assigned_characters():
    """One string per general category that this Python's Unicode knows."""
    groups = {}
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        if category not in ("Cn", "Cs", "Co"):
            groups.setdefault(category, []).append(chr(code))
    return list(groups.values())


class Lines:
    """Generated lines, as bytes; the same seed gives the same lines."""

    def __init__(self, seed, specials, broken):
        self.rng = random.Random(seed)
        self.groups = assigned_characters()
        self.specials = specials
        self.kinds = [self.words, self.words, self.characters, self.ascii, self.spaces]
        self.kinds += [self.with_specials] if specials else []
        self.kinds += [self.broken] if broken else []

    def words(self):
        rng = self.rng
        return "".join(rng.choice(WORDS) + rng.choice(SPACES + ["", ""]) for _ in range(rng.randint(1, 20)))

    def characters(self):
        rng = self.rng
        picked = "".join(rng.choice(rng.choice(self.groups)) for _ in range(rng.randint(1, 30)))
        return picked + self.words() if rng.random() < 0.3 else picked

    def ascii(self):
        rng = self.rng
        return "".join(chr(rng.randrange(128)) for _ in range(rng.randint(0, 40)))

    def spaces(self):
        rng = self.rng
        return "".join(rng.choice(SPACES + list("a1.'")) for _ in range(rng.randint(1, 15)))

    def with_specials(self):
        return "".join(self.rng.choice([self.words, self.spaces])() + self.rng.choice(self.specials)
                       for _ in range(self.rng.randint(1, 4)))

    def broken(self):
        data = bytearray(self.words().encode())
        for _ in range(self.rng.randint(1, 5)):
            data[self.rng.randrange(len(data))] = self.rng.randrange(256)
        return bytes(data)

    def make(self, count):
        lines = (self.rng.choice(self.kinds)() for _ in range(count))
        return [x if isinstance(x, bytes) else x.encode() for x in lines]


def replace_each_byte(data):
    """Bytes as text, with U+FFFD for each byte that is not part of a character."""
    out, at = [], 0
    while at < len(data):
        for size in (1, 2, 3, 4):
            try:
                out.append(data[at:at + size].decode())
                break
            except UnicodeDecodeError:
                pass
        else:
            out.append("\ufffd")
            size = 1
        at += size
    return "".join(out)


def byte_alphabet():
    """The characters that stand for the bytes 0..255 in a byte-level vocabulary."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in plain]
    return [chr(b) if b in plain else chr(256 + rest.index(b)) for b in range(256)]


ALPHABET = byte_alphabet()


class Vocabulary:
    """Token texts, types and merges, and the reference tokenizer that uses them."""

    def __init__(self, tokens, types, merges, reference):
        self.tokens, self.types, self.merges, self.reference = tokens, types, merges, reference
        self.known = set(tokens)

    @classmethod
    def from_json(cls, path):
        opener = lzma.open if path.endswith(".xz") else open
        with opener(path, "rt", encoding="utf-8") as f:
            text = f.read()
        data = json.loads(text)
        ids = dict(data["model"]["vocab"])
        types = {}
        for added in data["added_tokens"]:
            ids[added["content"]] = added["id"]
            types[added["id"]] = CONTROL if added["special"] else USER_DEFINED
        tokens = [f"[PAD{i}]" for i in range(max(ids.values()) + 1)]
        kinds = [UNUSED] * len(tokens)
        for token, number in ids.items():
            tokens[number], kinds[number] = token, types.get(number, NORMAL)
        merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
        return cls(tokens, kinds, merges, Tokenizer.from_str(text))

    @classmethod
    def from_gguf(cls, path):
        fields = gguf.GGUFReader(path).fields
        tokens = fields["tokenizer.ggml.tokens"].contents()
        types = [int(t) for t in fields["tokenizer.ggml.token_type"].contents()]
        merges = fields["tokenizer.ggml.merges"].contents()
        model = models.BPE({t: i for i, t in enumerate(tokens)}, [tuple(m.split(" ", 1)) for m in merges])
        reference = Tokenizer(model)
        reference.add_special_tokens([AddedToken(t, normalized=False) for t, k in zip(tokens, types)
                                      if k in (CONTROL, UNKNOWN)])
        return cls(tokens, types, merges, reference)

    def specials(self):
        return [t for t, k in zip(self.tokens, self.types) if k in (CONTROL, USER_DEFINED)]

    def lacks(self, text):
        """Whether the text has a byte without a token: engines drop it, but not at the same moment."""
        return any(ALPHABET[b] not in self.known for b in set(text.encode()))

    def set_pre(self, pre):
        """Makes the reference use the patterns of that name, whatever its file says."""
        steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in PATTERNS[pre]]
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
        self.reference.pre_tokenizer = pre_tokenizers.Sequence(steps)
        self.reference.normalizer = None
        self.reference.model.ignore_merges = pre == "llama-bpe"

    def write_gguf(self, path, pre):
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_tokenizer_model("llama" if pre == "spm" else "gpt2")
        writer.add_token_list(self.tokens)
        if pre == "spm":
            # Unknown, begin, end, 256 bytes, then the rest. The file has merges, not scores; a
            # token's score is below those of all tokens that an earlier merge makes.
            writer.add_token_types([UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * (len(self.tokens) - 259))
            ranks = {}
            for rank, merge in enumerate(self.merges):
                ranks.setdefault(merge.replace(" ", "", 1), rank)
            writer.add_token_scores([-float(ranks.get(t, 0)) for t in self.tokens])
        else:
            writer.add_tokenizer_pre(pre)
            writer.add_token_types(self.types)
            writer.add_token_merges(self.merges)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()


def run_tool(command, lines):
    """(ids, text given back) for each line."""
    text = "".join(line.hex() + "\n" for line in lines)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    out = []
    for row in done.stdout.splitlines():
        ids, _, back = row.partition("\t")
        out.append(([int(i) for i in ids.split()], bytes.fromhex(back)))
    return out


def compare(tool, vocabulary, pre, lines):
    """Lines whose ids differ, that do not come back as they were, that were skipped."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vocabulary.gguf")
        vocabulary.write_gguf(path, pre)
        results = run_tool([tool, path, "--parse"], lines)
    specials = [s for s in vocabulary.specials() + ["<unk>"] if pre == "spm"]
    texts = [replace_each_byte(line) for line in lines]
    wrong = unlike = skipped = 0
    for text, (ids, back) in zip(texts, results, strict=True):
        if pre != "spm" and vocabulary.lacks(text):
            skipped += 1
            continue
        expected = vocabulary.reference.encode(text, add_special_tokens=False).ids
        if ids != expected:
            wrong += 1
            if wrong <= 5:
                print(f"  {text!r}\n    tern      {ids}\n    reference {expected}")
        if back != text.encode() and not any(s in text for s in specials):
            unlike += 1
            if unlike <= 5:
                print(f"  {text!r} comes back as {back!r}")
    return wrong, unlike, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("-n", type=int, default=5000, help="lines for each pre-tokenizer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("cases", nargs="+", metavar="VOCABULARY:PRE[,PRE...]")
    args = parser.parse_args()
    failed = False
    for case in args.cases:
        path, _, names = case.rpartition(":")
        load = Vocabulary.from_gguf if path.endswith(".gguf") else Vocabulary.from_json
        vocabulary = load(path)
        for pre in names.split(","):
            if pre != "spm":
                vocabulary.set_pre(pre)
            lines = Lines(args.seed, vocabulary.specials(), broken=pre != "spm").make(args.n)
            wrong, unlike, skipped = compare(args.tool, vocabulary, pre, lines)
            failed |= wrong + unlike > 0
            print(f"{os.path.basename(path)} {pre}: {len(lines) - skipped} lines, {wrong} with other ids, "
                  f"{unlike} not given back ({skipped} skipped: bytes without a token)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
