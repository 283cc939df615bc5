#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of masks: made-up vocabulary of 128,256 tokens, texts of several schemas drawn at random.

    measure.py --tool build/tests/grammar_tool [--tokens 128256] [--texts 20]
"""

import argparse
import json
import random
import tempfile
from pathlib import Path

import tool

PERSON = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                                           "email": {"type": "string", "format": "email"}, "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}}},
          "required": ["name", "age", "email", "tags"], "additionalProperties": False}
NODE = {"$defs": {"node": {"type": "object", "properties": {"text": {"type": "string", "maxLength": 4000}, "children": {
    "type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["text", "children"], "additionalProperties": False}}, "$ref": "#/$defs/node"}
CASES = {
    "an object of strings, numbers, a list": ("spaced", json.dumps(PERSON)),
    "a tree, texts of 4,000 characters at most": ("spaced", json.dumps(NODE)),
    "any JSON": ("spaced", "{}"),
    "a pattern": ("schema", json.dumps({"type": "string", "pattern": "^([A-Z][a-z]+ )*[A-Z][a-z]+, [0-9]{4}$"})),
    "a grammar of lines of letters": ("gbnf", 'root ::= line+\nline ::= [a-zA-Z ,.]{1,80} "\\n"'),
    "a text of 20 characters at most": ("schema", json.dumps({"type": "string", "maxLength": 20})),
}


def vocabulary(n):
    chance = random.Random(5)
    syllables = ["".join(p) for p in (("b", "a"), ("t", "e"), ("r", "o"), ("in",), ("s", "t"), ("l", "y"), ("c", "o"), ("m",), ("u", "n"), ("é",), ("er",))]
    marks = ['"', '",', '":', '{"', '"}', "}}", "],", "[[", "\n", "\n  ", "  ", "\t", ", ", ": ", "\\n", '\\"', "//", "=>", "()", ");"]
    words = {m.encode() for m in marks}
    while len(words) < n:
        kind = chance.random()
        if kind < 0.7:
            word = chance.choice(["", " ", " "]) + "".join(chance.choice(syllables) for _ in range(chance.randint(1, 5)))
            words.add((word.title() if kind < 0.1 else word).encode())
        elif kind < 0.85:
            first = chance.choice([0x400, 0x4e00, 0x600, 0xac00])
            words.add("".join(chr(first + chance.randrange(60 if first < 0x700 else 5000)) for _ in range(chance.randint(1, 4))).encode())
        elif kind < 0.93:
            words.add((chance.choice(marks) + "".join(chance.choice(syllables) for _ in range(2)) + chance.choice(marks)).encode())
        elif kind < 0.96:
            words.add(str(chance.randrange(1000)).encode() if chance.random() < 0.5 else b" " * chance.randint(2, 80))
            words.add("".join(chance.choice(marks) for _ in range(4)).encode())
        else:
            words.add(chr(0x4e00 + chance.randrange(20000)).encode()[:chance.randint(2, 3)])
    return list(words)


def write(tern, tokens, chance, most):
    """A text; the end where it may be."""
    ids = []
    while len(ids) < most:
        mask, whole = tern.mask(ids)
        if whole:
            return
        data = mask.to_bytes(len(tokens) // 8 + 1, "little")
        start = chance.randrange(len(data))
        at = next((i % len(data) for i in range(start, start + len(data)) if data[i % len(data)]), 0)
        choice = [8 * at + b for b in range(8) if data[at] >> b & 1]
        marks = [b for b in b'"}]0,' if mask >> b & 1]
        ids.append(chance.choice(marks) if marks and chance.random() < 0.15 else chance.choice(choice))
        if ids[-1] == len(tokens):
            return


def show(name, times):
    times = sorted(times)
    at = [times[int(len(times) * share)] for share in (0.5, 0.9, 0.99)]
    print(f"{name:45} {len(times):6} masks, microseconds: median {at[0]:7.1f}, 90 % {at[1]:7.1f}, 99 % {at[2]:7.1f}, most {times[-1]:7.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--tokens", type=int, default=128256)
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--most", type=int, default=100)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        tokens = tool.write_vocabulary(path, vocabulary(arguments.tokens - 257))[:arguments.tokens]
        tern, everything = tool.Tool(arguments.tool, path), []
        for name, (kind, text) in CASES.items():
            why = tern.compile(kind, text)
            if why:
                raise SystemExit(f"{name}: {why}")
            tern.microseconds.clear()
            chance = random.Random(3)
            for _ in range(arguments.texts):
                write(tern, tokens, chance, arguments.most)
            show(name, tern.microseconds)
            everything += tern.microseconds
        show("all of them", everything)
        tern.close()


if __name__ == "__main__":
    main()
