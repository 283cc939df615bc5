# SPDX-License-Identifier: Apache-2.0
"""The tokenizer of a GGUF file for engines without one: byte-level BPE by the `tokenizers` package."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

SPLITS = {  # by tokenizer.ggml.pre: what is cut off before the rule of GPT-2
    "smollm": [pre_tokenizers.Digits(individual_digits=True)],
    "gpt-2": [],
}


def tokenizer_of(file):
    """The package's tokenizer, which adds no token to a text."""
    if file.get("tokenizer.ggml.model") != "gpt2":
        raise ValueError(f"tokenizer {file.get('tokenizer.ggml.model')} is not known here")
    pre = file.get("tokenizer.ggml.pre")
    if pre not in SPLITS:
        raise ValueError(f"pre-tokenizer {pre} is not known here")
    ids = {token: i for i, token in enumerate(file.get("tokenizer.ggml.tokens"))}
    merges = [tuple(pair.split(" ", 1)) for pair in file.get("tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*SPLITS[pre], byte_level])
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
