# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of the kinds that model families have, trained here on the texts of tests/tokenizers."""

import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tokenizers"))
from texts import Texts

MARK = "\u2581"
SIZE = 900
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def corpus():
    texts = Texts(1)
    made = [texts.sentences() for _ in range(1200)] + [texts.code() for _ in range(400)]
    return made + [texts.script() for _ in range(400)]


def wrap(first, last=None):
    """A post-processor that puts tokens around a text."""
    ids = [x for x in (first, last) if x is not None]
    single = " ".join(x for x in (first and first[0], "$A", last and last[0]) if x)
    return processors.TemplateProcessing(single=single, special_tokens=ids)


def byte_level(pattern=None, specials=(), normalizer=None, first=None, digits=False):
    """Byte-level BPE; pattern None: GPT-2's own."""
    t = Tokenizer(models.BPE())
    steps = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    if pattern is not None:
        steps.append(pre_tokenizers.Split(Regex(pattern), "isolated"))
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None))
    t.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    t.normalizer = normalizer
    t.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=SIZE, initial_alphabet=alphabet, special_tokens=[], show_progress=False)
    t.train_from_iterator(corpus(), trainer)
    t.add_special_tokens([x if isinstance(x, AddedToken) else AddedToken(x, normalized=False) for x in specials])
    if first is not None:
        t.post_processor = wrap((first, t.token_to_id(first)))
    return t


def pieces_of_text():
    """Vocabulary and merges as SentencePiece-kind tokenizers have them: bytes are spelled, spaces marked."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=SIZE, special_tokens=[], show_progress=False))
    import json

    model = json.loads(t.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trained = [x for x, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
    vocabulary = {x: i for i, x in enumerate(dict.fromkeys(tokens + trained + [MARK]))}
    return vocabulary, [tuple(x) if isinstance(x, list) else tuple(x.split(" ")) for x in model["merges"]]


def text_level(scheme, specials=(), normalizer=None):
    """Makes a tokenizer of SentencePiece's kind. scheme "legacy" is that of Llama 2's tokenizer.json, the others are
    Metaspace's: "first", "always", "never"; "gemma" marks spaces and splits before them.
    """
    vocabulary, merges = pieces_of_text()
    t = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    replace = normalizers.Replace(" ", MARK)
    strip = []
    if scheme == "legacy":
        t.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), replace])
        strip = [decoders.Strip(" ", 1, 0)]
    elif scheme == "gemma":
        t.normalizer = replace
        t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    else:
        t.normalizer = normalizer
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
        strip = [] if scheme == "never" else [decoders.Strip(" ", 1, 0)]
    t.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    t.add_special_tokens([AddedToken(x, normalized=False) for x in ("<unk>", "<s>", "</s>")])
    t.add_special_tokens([x if isinstance(x, AddedToken) else AddedToken(x, normalized=False) for x in specials])
    t.post_processor = wrap(("<s>", 1))
    return t


def words():
    """BERT's."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=SIZE, special_tokens=names, show_progress=False))
    t.post_processor = wrap(("[CLS]", 2), ("[SEP]", 3))
    return t


def unigram():
    """Makes a tokenizer like XLM-R's: a mask that swallows the space before it, and normal forms for which GGUF has no
    key."""
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.decoder = decoders.Metaspace(prepend_scheme="always")
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    t.train_from_iterator(corpus(), trainers.UnigramTrainer(
        vocab_size=5 * SIZE, special_tokens=names, unk_token="<unk>", show_progress=False))  # fmt: skip
    t.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    t.post_processor = wrap(("<s>", 0), ("</s>", 2))
    return t


CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_a|>", "<tool_call>", "</tool_call>"]
LLAMA3_NAMES = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>", "<|end_header_id|>"]
PHI3 = [AddedToken(x, normalized=False, rstrip=True) for x in ("<|endoftext|>", "<|assistant|>", "<|user|>", "<|end|>")]

MAKERS = {
    "llama3": lambda: byte_level(LLAMA3, LLAMA3_NAMES, first="<|begin_of_text|>"),
    "qwen": lambda: byte_level(QWEN2, CHATML, normalizers.NFC()),
    "gpt2": lambda: byte_level(None, CHATML),
    "digits": lambda: byte_level(None, CHATML, digits=True),
    "unnamed": lambda: byte_level(O200K, CHATML),
    "word": lambda: byte_level(None, [*CHATML, AddedToken("<stop>", single_word=True, lstrip=True, normalized=False)]),
    "legacy": lambda: text_level("legacy"),
    "first": lambda: text_level("first", ["[INST]", "[/INST]"]),
    "always": lambda: text_level("always", ["[INST]", "[/INST]"]),
    "nfkc": lambda: text_level("always", normalizer=normalizers.NFKC()),
    "gemma": lambda: text_level("gemma", ["<start_of_turn>", "<end_of_turn>"]),
    "phi3": lambda: text_level("first", PHI3),
    "words": words,
    "unigram": unigram,
}
