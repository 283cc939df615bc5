#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All values of a small set against jsonschema, on schemas drawn at random.

Schemas are made of keywords that say what must not hold: not, oneOf, if, dependentRequired, uniqueItems, and the
keywords that they apply to. A supported schema allows a text exactly if its value is valid; it allows an object in at
least one order of its members, and an invalid one in no order.

    check_values.py --tool build/tests/grammar_tool [--schemas 2000] [--seed 1]
"""

import argparse
import itertools
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import jsonschema

import tool

SCALARS = [None, True, False, 0, 1, 2.5, "", "a", "b", "ab"]
NAMES = ["a", "b", "c"]
LISTS = [[], ["a"], ["a", "b"], ["b", "a", "ab"], ["a", "a"], ["a", "b", "a"], [0, 1], [1, 1], [None, True]]
OTHER_TEXTS = ["1.0", "-0", "0e1", "2.50", '"\\u0061"', '"\\n"', "[1,1.0]"]
MOST = 400  # values of a schema


def objects(chance):
    for n in range(4):
        for names in itertools.combinations(NAMES, n):
            for _ in range(1 + 4 * n):
                yield {name: chance.choice(SCALARS + [{"a": 1}, {"b": "a"}, ["a"]]) for name in names}


class Draw:
    """Schemas of a few levels."""

    def __init__(self, chance):
        self.chance = chance

    def names(self, least=1):
        return self.chance.sample(NAMES, self.chance.randint(least, 2))

    def types(self):
        one = self.chance.choice(["null", "boolean", "object", "object", "array", "string", "integer", "number"])
        return one if self.chance.random() < 0.7 else sorted({one, "string", "number"})

    def plain(self):
        kind = self.chance.randrange(7)
        if kind == 0:
            return {"type": self.types()}
        if kind == 1:
            return {"const": self.chance.choice(SCALARS)}
        if kind == 2:
            return {"enum": self.chance.sample(SCALARS, self.chance.randint(1, 4))}
        if kind == 3:
            return {"required": self.names()}
        if kind == 4:
            return {"type": "string", "enum": self.chance.sample(["a", "b", "ab", ""], 2)}
        if kind == 5:
            items = {"enum": self.chance.sample(SCALARS, self.chance.randint(1, 4))}
            more = self.chance.choice([{}, {"minItems": 1}, {"maxItems": 2}, {"minItems": 2, "maxItems": 3}])
            return {"type": "array", "items": items, "uniqueItems": self.chance.random() < 0.8} | more
        return {"properties": {name: self.plain() for name in self.names()}} | (
            {"required": self.names()} if self.chance.random() < 0.5 else {})

    def schema(self, depth):
        if depth == 0 or self.chance.random() < 0.15:
            return self.chance.choice([True, False]) if self.chance.random() < 0.05 else self.plain()
        down = lambda: self.schema(depth - 1)  # noqa: E731
        kind = self.chance.randrange(9)
        made = {
            0: lambda: {"not": down()},
            1: lambda: {"oneOf": [down() for _ in range(self.chance.randint(2, 3))]},
            2: lambda: {"if": down(), "then": down(), "else": down()},
            3: lambda: {"if": down(), self.chance.choice(["then", "else"]): down()},
            4: lambda: {"dependentRequired": {name: self.names() for name in self.names()}},
            5: lambda: {"dependencies": {self.chance.choice(NAMES): down(), "c": self.names()}},
            6: lambda: {"anyOf": [down(), down()]},
            7: lambda: {"allOf": [down(), down()]},
            8: lambda: {"properties": {name: down() for name in self.names()}, "required": self.names()},
        }[kind]()
        if self.chance.random() < 0.5:
            made |= {key: value for key, value in self.plain().items() if key not in made}
        if self.chance.random() < 0.2:
            made["additionalProperties"] = False
        return made


def orders(value):
    """All texts of a value, by the order of its members."""
    if isinstance(value, dict):
        for members in itertools.permutations(value.items()):
            for texts in itertools.product(*(list(orders(v)) for _, v in members)):
                yield "{" + ",".join(f"{json.dumps(k)}:{t}" for (k, _), t in zip(members, texts)) + "}"
    elif isinstance(value, list):
        for texts in itertools.product(*(list(orders(v)) for v in value)):
            yield "[" + ",".join(texts) + "]"
    else:
        yield json.dumps(value)


class Check:
    def __init__(self, arguments, folder):
        path = Path(folder) / "tokenizer.json"
        tool.write_vocabulary(path, [])
        self.tern = tool.Tool(arguments.tool, path)
        self.chance = random.Random(arguments.seed)
        self.counts = Counter()
        self.differences = []

    def allows(self, text):
        return self.tern.reads(text.encode())[1]

    def check(self, schema):
        draft = jsonschema.Draft7Validator if "dependencies" in json.dumps(schema) and \
            "dependentRequired" not in json.dumps(schema) else jsonschema.Draft202012Validator
        if "dependencies" in json.dumps(schema) and draft is jsonschema.Draft202012Validator:
            return
        valid = draft(schema).is_valid
        why = self.tern.compile("schema", json.dumps(schema))
        none = "no text can satisfy" in why
        self.counts["supported" if not why else "of no text" if none else "refused: " + why.split(": ", 2)[-1]] += 1
        if why and not none:
            return
        values = SCALARS + LISTS + list(objects(self.chance))
        for value in values[:MOST]:
            texts = list(orders(value))
            allowed = [] if none else [text for text in texts if self.allows(text)]
            self.counts["valid" if valid(value) else "wrong"] += 1
            if bool(allowed) != valid(value):
                self.differences.append((schema, value, allowed))
        for text in OTHER_TEXTS:
            if not none and self.allows(text) and not valid(json.loads(text)):
                self.differences.append((schema, text, text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--schemas", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check = Check(arguments, folder)
        draw = Draw(check.chance)
        for _ in range(arguments.schemas):
            check.check(draw.schema(3))
        check.tern.close()
    for schema, value, allowed in check.differences[:10]:
        print(json.dumps(schema), json.dumps(value), "allowed" if allowed else "not allowed")
    for name, count in check.counts.most_common():
        print(f"{count:8} {name}")
    print(f"{len(check.differences)} differences")
    return 1 if check.differences or check.counts["supported"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
