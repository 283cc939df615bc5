# SPDX-License-Identifier: Apache-2.0
"""Vocabularies to compare tokenizers on: the file that tern is given, and the reference beside it.

A reference is Hugging Face's `tokenizers` or Google's `sentencepiece`. Where a package carries a
vocabulary in a form of its own (tiktoken's ranks, SentencePiece's model), a file for tern is made
of it here.
"""

import base64
import json
import lzma
from pathlib import Path
from typing import NamedTuple

import gguf
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
CONTRACTION = "'s|'t|'re|'ve|'m|'ll|'d"
LLAMA3 = (
    r"(?i:" + CONTRACTION + r")|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Llama 4 distinguishes upper and lower case.
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
LLAMA4 = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]*[{LOWER}]+(?i:{CONTRACTION})?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]+[{LOWER}]*(?i:{CONTRACTION})?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2 = CONTRACTION + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# Patterns of the pre-tokenizers that GGUF files name, in order.
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


class Case(NamedTuple):
    name: str
    path: str  # what tern opens
    encode: object  # texts -> lists of ids; special tokens in the texts are recognised
    decode: object  # ids -> text, special tokens included; None where the reference cannot
    specials: list  # special tokens to mix into the texts
    unfit: frozenset  # characters of the byte alphabet that the vocabulary lacks


def byte_alphabet():
    """The characters that stand for the bytes 0..255 in a byte-level vocabulary."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in plain]
    return [chr(b) if b in plain else chr(256 + rest.index(b)) for b in range(256)]


ALPHABET = byte_alphabet()


class Metadata(gguf.GGUFReader):
    """Leaves out the tensors: the package does not know all their types."""

    def _build_tensors(self, start_offs, fields):
        pass


def reference_case(name, path, reference, specials, unfit=()):
    return Case(
        name,
        str(path),
        lambda texts: [e.ids for e in reference.encode_batch(texts, add_special_tokens=False)],
        lambda ids: reference.decode(ids, skip_special_tokens=False),
        specials,
        frozenset(unfit),
    )


# ---- tokenizer.json ---------------------------------------------------------------------------


def json_case(name, path):
    reference = Tokenizer.from_file(str(path))
    reference.no_padding()
    reference.no_truncation()
    specials = [t.content for t in reference.get_added_tokens_decoder().values()]
    return reference_case(name, path, reference, specials)


def unpacked(path, folder):
    """Returns a plain file of one that may be compressed."""
    path = Path(path)
    if path.suffix != ".xz":
        return path
    out = Path(folder) / path.stem
    out.write_bytes(lzma.decompress(path.read_bytes()))
    return out


def gguf_document(path):
    """A GGUF file's byte-level vocabulary as a plain tokenizer.json, without special tokens."""
    fields = Metadata(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    vocabulary = {t: i for i, t in enumerate(tokens)}
    model = {"type": "BPE", "vocab": vocabulary, "merges": fields["tokenizer.ggml.merges"].contents()}
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": level,
            "post_processor": None, "decoder": level, "model": model}  # fmt: skip


# ---- GGUF files with byte-level vocabularies ----------------------------------------------------


def set_pre(reference, pre):
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in PATTERNS[pre]]
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    reference.pre_tokenizer = pre_tokenizers.Sequence(steps)
    reference.decoder = decoders.ByteLevel()
    reference.normalizer = None
    reference.model.ignore_merges = pre == "llama-bpe"


def gguf_case(name, path):
    """A GGUF file as it is. The reference is built from its tokens and merges."""
    fields = Metadata(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = [int(t) for t in fields["tokenizer.ggml.token_type"].contents()]
    merges = fields["tokenizer.ggml.merges"].contents()
    ids = {t: i for i, t in enumerate(tokens)}
    reference = Tokenizer(models.BPE(ids, [tuple(m.split(" ", 1)) for m in merges]))
    specials = [t for t, k in zip(tokens, types) if k in (CONTROL, UNKNOWN)]
    reference.add_special_tokens([AddedToken(t, normalized=False) for t in specials])
    set_pre(reference, fields["tokenizer.ggml.pre"].contents())
    return reference_case(name, path, reference, specials, set(ALPHABET) - set(tokens))


def gguf_of_json(name, path, pre, folder):
    """A tokenizer.json's vocabulary in a GGUF file, with a pre-tokenizer of that name."""
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    ids, types = dict(data["model"]["vocab"]), {}
    for added in data["added_tokens"]:
        ids[added["content"]] = added["id"]
        types[added["id"]] = CONTROL if added["special"] else USER_DEFINED
    tokens = [f"[PAD{i}]" for i in range(max(ids.values()) + 1)]
    kinds = [UNUSED] * len(tokens)
    for token, number in ids.items():
        tokens[number], kinds[number] = token, types.get(number, NORMAL)
    out = Path(folder) / f"{name}-{pre}.gguf"
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]])
    finish(writer)
    reference = Tokenizer.from_file(str(path))
    set_pre(reference, pre)
    specials = [t.content for t in reference.get_added_tokens_decoder().values()]
    return reference_case(f"{name} as GGUF, {pre}", out, reference, specials)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


# ---- tiktoken's ranks, as Llama 3 comes with ------------------------------------------------------


def parts_below(ranks, token, limit):
    """Returns the token cut into the parts that joins of a lower rank than its own make."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while True:
        pairs = [(ranks.get(a + b, limit), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
        rank, at = min(pairs, default=(limit, 0))
        if rank >= limit:
            return parts
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def tiktoken_case(name, path, pattern, folder):
    lines = Path(path).read_bytes().split(b"\n")
    ranks = {base64.b64decode(t): int(r) for t, r in (line.split() for line in lines if line)}
    shown = {token: "".join(ALPHABET[b] for b in token) for token in ranks}
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = parts_below(ranks, token, rank) if len(token) > 1 else []
        if len(parts) == 2:
            merges.append([shown[parts[0]], shown[parts[1]]])
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    texts = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    document = {
        "version": "1.0",
        "added_tokens": [{"id": len(ranks) + i, "content": t, **flags, "special": True} for i, t in enumerate(texts)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "post_processor": None,
        "decoder": level,
        "model": {"type": "BPE", "ignore_merges": True, "vocab": {shown[t]: r for t, r in ranks.items()}, "merges": merges},
    }
    out = Path(folder) / f"{name}.json"
    out.write_text(json.dumps(document))
    return json_case(name, out)


# ---- SentencePiece models -------------------------------------------------------------------------


def piece_type(processor, i):
    if processor.is_unknown(i):
        return UNKNOWN
    if processor.is_control(i):
        return CONTROL
    if processor.is_byte(i):
        return BYTE
    return UNUSED if processor.is_unused(i) else NORMAL


def sentencepiece_case(name, path, folder):
    """The model in a GGUF file, beside sentencepiece itself: text that is in no control token."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    every = range(processor.get_piece_size())
    out = Path(folder) / f"{name}.gguf"
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([processor.id_to_piece(i) for i in every])
    writer.add_token_scores([processor.get_score(i) for i in every])
    writer.add_token_types([piece_type(processor, i) for i in every])
    finish(writer)
    encode = lambda texts: processor.encode(texts)  # noqa: E731
    return Case(name, str(out), encode, processor.decode, [], frozenset())


def sentencepiece_json_case(name, path, folder):
    """The model as a tokenizer.json of Llama 2's kind, beside Hugging Face's tokenizers."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    pieces = {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}
    merges = []
    for piece, i in pieces.items():
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in pieces and right in pieces and piece_type(processor, i) == NORMAL:
                merges.append((processor.get_score(i), len(left), len(right), left, right))
    merges.sort(key=lambda m: m[:3], reverse=True)
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    special = [t for t, i in pieces.items() if piece_type(processor, i) in (UNKNOWN, CONTROL)]
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    shown = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    document = {
        "version": "1.0",
        "added_tokens": [{"id": pieces[t], "content": t, **flags, "special": True} for t in special],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, spaces]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [shown, {"type": "ByteFallback"}, {"type": "Fuse"}, strip]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
                  "vocab": pieces, "merges": [list(m[3:]) for m in merges]},
    }  # fmt: skip
    out = Path(folder) / f"{name}.json"
    out.write_text(json.dumps(document))
    return json_case(name, out)
