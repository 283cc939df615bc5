#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small GGUF vocabularies, and texts of tokenizer.json, as seeds of fuzz_tokenizer: seeds_tokenizer.py FOLDER.

Needs the package gguf.
"""
import os
import sys

import gguf

import seeds_tokenizer_json
from seeds_charsmap import TABLES, table

PRES = ["llama-bpe", "dbrx", "qwen2", "gpt-2", "smollm", "falcon", "falcon3", "default"]
TEMPLATES = [
    "<|im_start|>system\nBe kind<|im_end|><|im_start|>assistant",
    "<|start_header_id|><|end_header_id|>\n\n<|eot_id|>",
    "<|user|><|assistant|>eos_token",
    "{{ '<|user|>\n' + message['content'] + eos_token + '<|assistant|>' }}",
    "[INST] <<SYS>> [/INST]",
    "'Q: ' ' A:' eos_token",
    "BITNETAssistant: ",
]
SPECIALS = ["<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|user|>", "<s>"]
MERGES = ["h e", "l l", "he ll", "hell o", "\u0120 w", "1 2"]
TAIL = "it's hello 123 <s>\r\n \u00e9\U0001f642 x+y ".encode() + b"\xff\xe2\x96"


def byte_level_tokens():
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [chr(c) for c in plain] + [chr(0x100 + i) for i in range(68)] + [m.replace(" ", "") for m in MERGES]


def write(path, model, tokens, extra):
    w = gguf.GGUFWriter(path, "llama")
    w.add_tokenizer_model(model)
    w.add_token_list(tokens + SPECIALS)
    kinds = [6 if t.startswith("<0x") else 1 for t in tokens]
    w.add_token_types(kinds + [3, 3, 3, 4, 2])
    extra(w)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()
    with open(path, "ab") as f:
        f.write(TAIL)


def main(folder):
    os.makedirs(folder, exist_ok=True)
    for i, pre in enumerate(PRES):
        def bpe(w, i=i, pre=pre):
            w.add_tokenizer_pre(pre)
            w.add_token_merges(MERGES)
            w.add_chat_template(TEMPLATES[i % len(TEMPLATES)])
            w.add_add_bos_token(i % 2 == 0)
        write(os.path.join(folder, pre), "gpt2", byte_level_tokens(), bpe)
    tokens = ["<unk>", "\u2581", "\u2581h", "he", "llo", "\u2581\u2581", "l", "o", "1"]
    tokens += [f"<0x{b:02X}>" for b in range(256)]

    def spm(w):
        w.add_token_scores([-float(i) for i in range(len(tokens) + len(SPECIALS))])
        w.add_chat_template("[INST] <<SYS>> [/INST]")
    write(os.path.join(folder, "spm"), "llama", tokens, spm)

    for name, entries in TABLES.items():
        def unigram(w, entries=entries):
            w.add_token_scores([-float(i) for i in range(len(tokens) + len(SPECIALS))])
            w.add_uint32("tokenizer.ggml.unknown_token_id", 0)
            w.add_bool("tokenizer.ggml.add_space_prefix", True)
            w.add_bool("tokenizer.ggml.remove_extra_whitespaces", len(entries) > 2)
            w.add_array("tokenizer.ggml.precompiled_charsmap", table(entries))
        write(os.path.join(folder, f"unigram-{name}"), "t5", tokens, unigram)

    def words(w):
        w.add_uint32("tokenizer.ggml.unknown_token_id", 0)
        w.add_bool("tokenizer.ggml.normalizer.strip_accents", False)
    write(os.path.join(folder, "words"), "bert", [*tokens, "\u2581hello", "\u25811", "2", "3"], words)

    for i, document in enumerate(seeds_tokenizer_json.whole_documents()):
        with open(os.path.join(folder, f"whole-{i:02}"), "wb") as f:  # two bytes say which keys are beside it
            f.write(seeds_tokenizer_json.encoded(document, i % 2 == 0) + bytes([i % 8, i % 3]) + TAIL)


if __name__ == "__main__":
    main(sys.argv[1])
