#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Schemas of JSONSchemaBench: counts those that are supported, checks that their right instances are texts and the
wrong ones are not, and compares texts and masks as check_llguidance.py does.

The folder is `maskbench/data` of guidance-ai/jsonschemabench, which is not part of this repository. It disables some
keywords with `_` in front; they are left out here. An instance is written without white space, its members in the order
of the file and, if that is not text, in others, that of the schema first; where these are too many, once more beginning
with that of the file. Masks are not compared where a schema has formats, patterns or bounds, which the two read in ways
of their own, nor where properties of several places are those of one object: they come in another order.

    check_bench.py --tool build/tests/grammar_tool --folder FOLDER [--every N] [--texts 1] [--prefix NAME] [--record FILE]
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import jsonschema

import check_llguidance
import checkers

TAKEN_OUT = {"_format", "_uniqueItems", "_$id"}
MOST_TRIES = 3000  # values that are written to find an order of members
SHORT = 300  # characters of a wrong instance, of which all orders of members are tried
JOINING = {"anyOf", "oneOf", "$ref", "if", "dependencies", "dependentSchemas"}
OWN_WAYS = {"format", "pattern", "patternProperties", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}


def without(schema):
    if isinstance(schema, list):
        return [without(v) for v in schema]
    if not isinstance(schema, dict):
        return schema
    return {name: without(v) for name, v in schema.items() if name not in TAKEN_OUT}


def names_in(schema):
    """Keys of a schema, wherever they stand."""
    if isinstance(schema, dict):
        yield from schema
    for v in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else []:
        yield from names_in(v)


def joins(schema):
    """True if an object somewhere has properties of several places."""
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else []
    here = isinstance(schema, dict) and ("allOf" in schema or ("properties" in schema and JOINING & schema.keys()))
    return here or any(joins(v) for v in parts)


def reason(why):
    """Returns the reason of a refusal, without its place."""
    return re.sub(r'^schema: at "[^"]*": ', "", why)[:70]


class Bench(check_llguidance.Check):
    options = {**check_llguidance.OPTIONS, "coerce_one_of": False}

    def written(self, value, before, tries):
        """Yields texts of the value, each with the text before it, that begin a text of the schema: members in any
        order."""
        if tries[0] <= 0:
            return
        tries[0] -= 1
        if isinstance(value, dict) and value:
            yield from self.members(value, before + b"{", tries)
        elif isinstance(value, list) and value:
            yield from self.items(value, before + b"[", tries)
        else:
            text = before + json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
            if self.tern.reads(text)[0]:
                yield text

    def members(self, value, before, tries):
        for name in sorted(value, key=self.order):
            rest = {key: v for key, v in value.items() if key != name}
            start = before + json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass") + b":"
            if not self.tern.reads(start)[0]:
                continue
            for text in self.written(value[name], start, tries):
                if rest:
                    yield from self.members(rest, text + b",", tries)
                elif self.tern.reads(text + b"}")[0]:
                    yield text + b"}"

    def items(self, value, before, tries):
        for text in self.written(value[0], before, tries):
            if len(value) > 1:
                yield from self.items(value[1:], text + b",", tries)
            elif self.tern.reads(text + b"]")[0]:
                yield text + b"]"

    def allows(self, value, any_order):
        plain = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        return self.tern.reads(plain)[1] or (any_order and any(self.found(value, order) for order in self.orders))

    def found(self, value, order):
        """True if the value is a text in some order of its members, where `order` says which are tried first."""
        self.order = order
        return any(self.tern.reads(text)[1] for text in self.written(value, b"", [MOST_TRIES]))

    def validate(self, schema, text):
        value = json.loads(text.decode("utf-8"))
        validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            validator(schema, format_checker=checkers.checker_of(validator)).validate(value)
            self.counts["texts validated"] += 1
        except jsonschema.ValidationError as error:
            self.wrong.append((text.decode(), error.message[:200]))

    def instances(self, name, schema, tests):
        for test in tests:
            value, right = test["data"], test["valid"]
            allowed = self.allows(value, right or len(json.dumps(value)) < SHORT)
            kind = ("right" if right else "wrong") + (" instances that are texts" if allowed else " instances that are none")
            self.counts[kind] += 1
            if allowed != right:
                self.other.append((name, right, json.dumps(value)[:300]))

    def file(self, path):
        case = json.loads(path.read_text(encoding="utf-8"))
        schema, began = without(case["schema"]), time.monotonic()
        why = self.tern.compile("schema", json.dumps(schema))
        self.slowest = max(self.slowest, (time.monotonic() - began, path.name))
        self.counts["schemas"] += 1
        if why:
            self.refused[reason(why)] += 1
            return
        self.counts["supported"] += 1
        places = {name: i for i, name in enumerate(dict.fromkeys(names_in(schema)))}
        self.orders = [lambda name: places.get(name, len(places)), lambda name: 0]  # the schema's, then the file's
        self.instances(path.name, schema, case.get("tests", []))
        compared = not OWN_WAYS & set(names_in(schema)) and not joins(schema)
        matcher = self.matcher(schema) if compared else None
        self.counts["of these compared with llguidance"] += matcher is not None
        for _ in range(self.texts):
            if not self.write(schema, matcher and self.matcher(schema)):
                self.unequal.append(path.name)
                break


def show(check):
    for name, n in sorted(check.counts.items()):
        print(f"{n:8} {name}")
    for why, n in check.refused.most_common(25):
        print(f"{n:8} refused: {why}")
    for name, right, value in check.other[:40]:
        print(f"{name}: {'right, not a text' if right else 'wrong, a text'}: {value}")
    for text, message in check.wrong[:20]:
        print(f"a text that is not valid: {text[:200]}: {message}")
    for (schema, text, wrong), name in list(zip(check.differences, check.unequal))[:40]:
        print(f"{name}: other masks after {text!r}: {wrong}")
    print(f"slowest to compile: {check.slowest[1]}, {check.slowest[0]:.2f} s")
    print(f"{len(check.other)} instances judged in another way, {len(check.wrong)} texts not valid, {len(check.unequal)} schemas with other masks")


def record(check, path):
    """The figures of docs/structured-output.md, as a document of docs/report/counts."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))
    import counts

    c = check.counts
    right, wrong = (c[f"{kind} instances that are texts"] + c[f"{kind} instances that are none"] for kind in ("right", "wrong"))
    counts.write(path, "schemas of JSONSchemaBench, their instances, and masks beside those of llguidance", figures={
        "schemas": c["schemas"], "supported": c["supported"], "wrong_instances": wrong,
        "wrong_that_are_texts": c["wrong instances that are texts"], "right_instances": right,
        "right_in_some_order": c["right instances that are texts"], "drawn_texts": c["texts validated"],
        "drawn_that_are_wrong": len(check.wrong), "mask_schemas": c["of these compared with llguidance"],
        "masks": c["masks compared"], "other_masks": len(check.unequal)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th file")
    parser.add_argument("--start", type=int, default=0, help="from this one on")
    parser.add_argument("--texts", type=int, default=1)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", metavar="FILE", help="writes what was counted for docs/structured-output.md")
    arguments = parser.parse_args()
    paths = sorted(arguments.folder.glob(f"{arguments.prefix}*.json"))[arguments.start::arguments.every]
    with tempfile.TemporaryDirectory() as folder:
        check = Bench(arguments, folder)
        check.texts, check.slowest = arguments.texts, (0, "")
        check.refused, check.other, check.wrong, check.unequal = Counter(), [], [], []
        for path in paths:
            check.file(path)
        check.tern.close()
    show(check)
    if arguments.record:
        record(check, arguments.record)
    return 1 if check.wrong or check.unequal or check.other or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
