# SPDX-License-Identifier: Apache-2.0
"""Vocabularies for tests of masks, and the program grammar_tool that computes them."""

import json
import subprocess
from pathlib import Path


def byte_alphabet():
    """Returns the character that stands for each byte in byte-level vocabularies."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in kept]
    return {**{b: chr(b) for b in kept}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def write_vocabulary(path: Path, pieces: list[bytes]) -> list[bytes]:
    """A tokenizer.json: all bytes, then the pieces, then the token that ends a text. Returns the tokens."""
    letters = byte_alphabet()
    tokens = [bytes([b]) for b in range(256)] + sorted({p for p in pieces if len(p) > 1})
    vocab = {"".join(letters[b] for b in token): i for i, token in enumerate(tokens)}
    end = {"id": len(tokens), "content": "</s>", "special": True, "single_word": False, "lstrip": False,
           "rstrip": False, "normalized": False}
    path.write_text(json.dumps({
        "version": "1.0", "added_tokens": [end], "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": {"type": "BPE", "vocab": {**vocab, "</s>": len(tokens)}, "merges": []}}), encoding="utf-8")
    (path.parent / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}), encoding="utf-8")
    return tokens


class Tool:
    """grammar_tool with a vocabulary."""

    def __init__(self, program, vocabulary: Path):
        self.process = subprocess.Popen([program, str(vocabulary)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.microseconds = []

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def ask(self, line: str) -> str:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def compile(self, kind: str, text: str) -> str:
        """"" or why it was refused."""
        answer = self.ask(f"{kind} {text.encode().hex()}")
        return "" if answer == "ok" else answer.removeprefix("no ")

    def reads(self, text: bytes) -> tuple[bool, bool]:
        """Says whether the text begins a text of the form, and whether it is whole; the vocabulary is that of bytes."""
        try:
            return True, self.mask(text)[1]
        except ValueError as error:
            if "does not follow" not in str(error):
                raise
            return False, False

    def mask(self, ids) -> tuple[int, bool]:
        """Allowed tokens as bits of a number, and whether the text is whole."""
        answer = self.ask("mask " + " ".join(map(str, ids)))
        if answer.startswith("no "):
            raise ValueError(answer)
        bits, whole, microseconds = answer.split()
        self.microseconds.append(float(microseconds))
        return int.from_bytes(bytes.fromhex(bits), "little"), whole == "1"
