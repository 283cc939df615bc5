#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Masks against llguidance's, and texts against jsonschema, on generated schemas.

Both compile each schema without white space. A text is written token by token, each drawn from those that are
allowed, and after each the masks are compared, bit by bit. Where the two differ on purpose the comparison leaves
that out: texts and tokens with a backslash (tern writes listed values, patterns and names in one way, and never a lone
surrogate). Where only one way is left, llguidance allows only the token that its tokenizer would take: then tern's
tokens must include it, and all must agree with the bytes that llguidance says must follow. llguidance leaves out some
texts of numbers between bounds (-0 at times, zeros at the end of a fraction); every fourth schema has such numbers, and
is not compared. Every text that ends is read, and validated.

    check_llguidance.py --tool build/tests/grammar_tool [--schemas 2000] [--seed 1]
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import jsonschema
import llguidance

import checkers
import generate
import tool

MOST_TOKENS = 60
OPTIONS = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":", "coerce_one_of": True}


def bits(mask):
    """Numbers of the bits that are set."""
    return [i for i, bit in enumerate(bin(mask)[:1:-1]) if bit == "1"]


class Check:
    options = OPTIONS

    def __init__(self, arguments, folder):
        path = Path(folder) / "tokenizer.json"
        self.tokens = tool.write_vocabulary(path, generate.pieces())
        self.end = len(self.tokens)
        self.tern = tool.Tool(arguments.tool, path)
        self.oracle = llguidance.LLTokenizer(path.read_text(encoding="utf-8"), eos_token=self.end)
        self.chance = random.Random(arguments.seed)
        self.backslash = self.those(lambda token: b"\\" in token)
        self.marks = self.those(lambda token: token[:1] in b'"{}[],:0123456789')
        self.counts = Counter()
        self.differences = []

    def those(self, what):
        """A mask of the tokens that `what` is true for."""
        return sum(1 << i for i, token in enumerate(self.tokens) if what(token))

    def matcher(self, schema):
        """llguidance's state; None where it does not have the schema."""
        grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=self.options)
        matcher = llguidance.LLMatcher(self.oracle, grammar)
        return None if matcher.is_error() else matcher

    def draw(self, mask):
        """One of the allowed tokens; the end where it is one, sometimes, and short ones rather than long ones."""
        if mask >> self.end & 1 and self.chance.random() < 0.5:
            return self.end
        ids = bits(mask & ~(1 << self.end))
        if not ids:
            return self.end
        marks = bits(mask & self.marks)
        return self.chance.choice(marks if marks and self.chance.random() < 0.5 else ids)

    def agrees(self, token, forced):
        piece = self.tokens[token] if token < self.end else b""
        return piece != b"" and (piece.startswith(forced) or forced.startswith(piece))

    def compare(self, schema, ids, ours, theirs, forced):
        if forced:
            theirs |= sum(1 << i for i in bits(ours) if self.agrees(i, forced))
            self.counts["of these with one way only"] += 1
        other = (ours ^ theirs) & ~self.backslash & ((1 << self.end + 1) - 1)
        self.counts["masks compared"] += 1
        if other:
            names = [*self.tokens, b"</s>"]
            wrong = [(names[i].decode(errors="replace"), "tern" if ours >> i & 1 else "llguidance")
                     for i in range(self.end + 1) if other >> i & 1]
            self.differences.append((schema, b"".join(self.tokens[i] for i in ids).decode(errors="replace"), wrong[:8]))
        return not other

    def write(self, schema, matcher):
        """One text; False when the masks differ."""
        ids = []
        for _ in range(MOST_TOKENS):
            mask, _ = self.tern.mask(ids)
            if matcher:
                theirs = int.from_bytes(matcher.compute_bitmask(), "little")
                if not self.compare(schema, ids, mask, theirs, matcher.compute_ff_bytes()):
                    return False
            token = self.draw(mask)
            if token == self.end:
                self.validate(schema, b"".join(self.tokens[i] for i in ids))
                break
            if b"\\" in self.tokens[token]:
                matcher = None
            if matcher and not matcher.consume_token(token):
                self.differences.append((schema, ids, "llguidance takes no token that it allowed"))
                return False
            ids.append(token)
        return True

    def validate(self, schema, text):
        value = json.loads(text.decode("utf-8"))
        validator = jsonschema.Draft202012Validator
        validator(schema, format_checker=checkers.checker_of(validator)).validate(value)
        self.counts["texts validated"] += 1

    def schema(self, schema, compared):
        self.counts["schemas"] += 1
        why = self.tern.compile("schema", json.dumps(schema))
        matcher = self.matcher(schema) if compared else None
        if why:
            self.counts[f"refused: {why.split(': ')[-1][:60]}"] += 1
            if "no text" in why and matcher:
                self.counts["no text for tern, some for llguidance"] += 1
            return
        self.counts["compared" if matcher else "not compared"] += 1
        for _ in range(3):
            if not self.write(schema, matcher and self.matcher(schema)):
                return


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--schemas", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check = Check(arguments, folder)
        for i in range(arguments.schemas):
            free = i % 4 == 0
            generator = generate.Generator(arguments.seed * 1000003 + i, formats=free, fractions=free)
            check.schema(generator.whole(), not free)
        check.tern.close()
    for name, n in sorted(check.counts.items()):
        print(f"{n:8} {name}")
    for schema, text, wrong in check.differences[:10]:
        print(f"DIFFERENT after {text!r}: {wrong}\n    {json.dumps(schema, ensure_ascii=False)}")
    print(f"{len(check.differences)} schemas with other masks")
    return 1 if check.differences or check.counts["masks compared"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
