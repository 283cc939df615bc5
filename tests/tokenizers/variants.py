# SPDX-License-Identifier: Apache-2.0
"""Varies the fields of a tokenizer.json one at a time: documents to compare tern and the reference on."""

BEHAVIORS = ["Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"]
CASED = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
POSSESSIVE = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
    r"|\s+(?!\S)|\s+"
)
ASCII_SETS = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_level(prefix=False, regex=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def byte_steps():
    """(name, pre-tokenizer steps before bytes become characters)."""
    for behavior in BEHAVIORS:
        for invert in (False, True):
            yield f"Split {behavior}, invert {invert}", [split(r"\s+|[\p{P}]", behavior, invert)]
        yield f"Split of text, {behavior}", [split("e", behavior, kind="String")]
        yield f"Punctuation {behavior}", [{"type": "Punctuation", "behavior": behavior}]
    for individual in (False, True):
        yield f"Digits {individual}", [{"type": "Digits", "individual_digits": individual}]
    yield "Whitespace", [{"type": "Whitespace"}]
    yield "WhitespaceSplit", [{"type": "WhitespaceSplit"}]
    yield "CharDelimiterSplit", [{"type": "CharDelimiterSplit", "delimiter": "e"}]
    patterns = [r"(?=\p{Lu})|x*", r"(?<=\d)(?=\D)|(?<!\w)'", r"\w+|[^\w\s]+", r"^.*$", r"(?i:[a-k]+|ß|ſt|å)"]
    patterns += [CASED, POSSESSIVE, ASCII_SETS, r"[一-龥぀-ゟ゠-ヿ]+", r"\d{,3}|\D\S"]
    yield from ((f"pattern {p[:20]}", [split(p)]) for p in patterns)


def pre_tokenizers():
    for name, steps in byte_steps():
        yield name, {"type": "Sequence", "pretokenizers": [*steps, byte_level()]}
    yield "ByteLevel with a space", byte_level(True, True)
    digits = {"type": "Digits", "individual_digits": False}
    punctuation = {"type": "Punctuation", "behavior": "Contiguous"}
    falcon = [punctuation, byte_level(regex=True), digits, split("[0-9][0-9][0-9]")]
    yield "steps behind ByteLevel", {"type": "Sequence", "pretokenizers": falcon}


def normalizers():
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        yield form, {"type": form}
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    yield "Strip", {"type": "Sequence", "normalizers": [strip, {"type": "NFC"}]}
    yield "Replace of a pattern", {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}


def with_added(document):
    """Added tokens with each flag; those of the vocabulary keep their ids."""
    vocabulary = document["model"]["vocab"]
    number = max([*vocabulary.values(), *(t["id"] for t in document["added_tokens"])])
    tokens = list(document["added_tokens"])
    for content, *flags in (
        ["<l>", "lstrip"], ["<r>", "rstrip"], ["<b>", "lstrip", "rstrip", "special"], ["fox", "single_word"],
        ["lazy dog", "normalized"], ["<n>", "normalized", "lstrip", "rstrip"], ["the lazy"], ["  "],
        ["12", "single_word", "normalized"],
    ):  # fmt: skip
        every = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
        number += content not in vocabulary
        at = vocabulary.get(content, number)
        tokens.append({"id": at, "content": content, **every, **dict.fromkeys(flags, True)})
    return document | {"added_tokens": tokens}


def of_bytes(document):
    """(name, document): variants of one with a byte-level vocabulary."""
    for name, pre in pre_tokenizers():
        yield name, document | {"pre_tokenizer": pre}
    for name, normalizer in normalizers():
        yield name, document | {"normalizer": normalizer}
    yield "added tokens, bytes", with_added(document)


def of_text(document):
    """The same of one with byte fallback, in the style of Llama 2."""
    for scheme in ("always", "first", "never"):
        for cut in (True, False):
            mark = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": cut}
            yield f"Metaspace {scheme}, split {cut}", document | {"normalizer": None, "pre_tokenizer": mark}
    for name, change in (
        ("unknown, not fused", {"fuse_unk": False, "byte_fallback": False}),
        ("unknown, fused", {"fuse_unk": True, "byte_fallback": False}),
        ("unknown, left out", {"unk_token": None, "byte_fallback": False}),
    ):
        yield name, document | {"model": document["model"] | change}
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    before = split(" ", "MergedWithPrevious", kind="String")
    yield "no prefix", document | {"normalizer": spaces, "pre_tokenizer": before}
    yield "added tokens, text", with_added(document)
