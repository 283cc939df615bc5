# SPDX-License-Identifier: Apache-2.0
"""The tokenizer of a GGUF file for engines without one: BPE of bytes or pieces by the `tokenizers` package."""

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = QWEN2.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
SPLITS = {  # by tokenizer.ggml.pre: what is cut off before bytes, and whether the rule of GPT-2 comes after that
    "smollm": ([pre_tokenizers.Digits(individual_digits=True)], True),
    "command-r": ([pre_tokenizers.Digits(individual_digits=True)], True),
    "gpt-2": ([], True),
    "qwen2": ([pre_tokenizers.Split(Regex(QWEN2), "isolated")], False),
    "llama-bpe": ([pre_tokenizers.Split(Regex(LLAMA3), "isolated")], False),
}


def model_of(file, ids):
    merges = [tuple(pair.split(" ", 1)) for pair in file.get("tokenizer.ggml.merges")]
    if file.get("tokenizer.ggml.model") == "gemma4":  # pieces, with bytes for text that has no piece
        tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
        return tokenizer
    pre = file.get("tokenizer.ggml.pre")
    if pre not in SPLITS:
        raise ValueError(f"pre-tokenizer {pre} is not known here")
    whole = pre == "llama-bpe"  # a piece that is a token is taken without merges
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges, ignore_merges=whole))
    before, by_rule = SPLITS[pre]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=by_rule)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, byte_level])
    return tokenizer


def tokenizer_of(file):
    """The package's tokenizer, which adds no token to a text."""
    if file.get("tokenizer.ggml.model") not in ("gpt2", "gemma4"):
        raise ValueError(f"tokenizer {file.get('tokenizer.ggml.model')} is not known here")
    ids = {token: i for i, token in enumerate(file.get("tokenizer.ggml.tokens"))}
    tokenizer = model_of(file, ids)
    kinds = file.get("tokenizer.ggml.token_type")
    control = [token for token, i in ids.items() if kinds[i] == 3]
    tokenizer.add_special_tokens(control)
    return tokenizer


def byte_level_bpe(file):
    """A function from text to ids, with the beginning-of-text token where the file asks for it."""
    tokenizer = tokenizer_of(file)
    lead = [file.get("tokenizer.ggml.bos_token_id")] if adds_bos(file) else []
    return lambda text: lead + tokenizer.encode(text).ids


def adds_bos(file):
    try:
        return bool(file.get("tokenizer.ggml.add_bos_token"))
    except KeyError:
        return False
