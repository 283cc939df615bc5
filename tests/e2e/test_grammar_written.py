# SPDX-License-Identifier: Apache-2.0
"""Schemas of the kinds that pydantic 2 writes for its types, zod 4 for its own, and servers of tools by hand: all are
taken, what is not enforced is told, and texts that are drawn from the masks are valid."""

import json
import os
import random
import sys
import tempfile
import unittest
from pathlib import Path

import common

sys.path.insert(0, str(Path(__file__).parent.parent / "grammars"))
import tool  # noqa: E402

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
CAT = {"title": "Cat", "type": "object", "required": ["kind"],
       "properties": {"kind": {"const": "cat", "title": "Kind", "type": "string"}, "lives": {"default": 9, "type": "integer"}}}
DOG = {"title": "Dog", "type": "object", "required": ["kind", "name"],
       "properties": {"kind": {"const": "dog", "type": "string"}, "name": TEXT}}
PETS = {"$defs": {"Cat": CAT, "Dog": DOG}, "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}
MAPPED = {"discriminator": {"propertyName": "kind", "mapping": {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}}}
NODE = {"$defs": {"Node": {"type": "object", "required": ["value"],
                           "properties": {"value": WHOLE, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}},
        "$ref": "#/$defs/Node"}
LARGEST = 9007199254740991
PLAIN = {
    # pydantic 2
    "bytes": {"format": "binary", "type": "string"},
    "secret": {"format": "password", "type": "string", "writeOnly": True},
    "path": {"format": "path", "type": "string"},
    "uuid": {"format": "uuid4", "type": "string"},
    "network": {"format": "ipv4network", "type": "string"},
    "base64": {"format": "base64url", "type": "string"},
    "json": {"contentMediaType": "application/json", "contentSchema": {}, "type": "string"},
    "url": {"format": "uri", "maxLength": 2083, "minLength": 1, "type": "string"},
    "decimal": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": "^[0-9]{1,3}(\\.[0-9]{1,2})?$"}]},
    "at most a half": {"type": "number", "maximum": 0.5},
    "between": {"type": "number", "exclusiveMinimum": 0.5, "exclusiveMaximum": 1.5},
    "tenths": {"type": "number", "multipleOf": 0.1},
    "fives": {"type": "integer", "minimum": 1, "maximum": 100, "multipleOf": 5},
    "names of a literal": {"type": "object", "additionalProperties": WHOLE, "propertyNames": {"enum": ["a", "b"]}},
    "names of a pattern": {"type": "object", "patternProperties": {"^[a-z]+$": WHOLE}, "additionalProperties": False},
    "set of a literal": {"type": "array", "uniqueItems": True, "items": {"enum": ["a", "b", "c"], "type": "string"}},
    "set of truth values": {"type": "array", "uniqueItems": True, "items": {"type": "boolean"}},
    "set of many": {"type": "array", "uniqueItems": True, "items": {"enum": [f"v{i}" for i in range(14)]}},
    "tuple": {"type": "array", "prefixItems": [WHOLE, TEXT], "minItems": 2, "maxItems": 2},
    "told apart": {**PETS, **MAPPED},
    "list of them": {"$defs": PETS["$defs"], "type": "array", "maxItems": 2, "items": {"oneOf": PETS["oneOf"], **MAPPED}},
    "optional": {"anyOf": [{"$ref": "#/$defs/Cat"}, {"type": "null"}], "$defs": {"Cat": CAT}, "default": None},
    "recursive": NODE,
    "some members": {"type": "object", "maxProperties": 3, "minProperties": 1, "properties": {c: WHOLE for c in "abcde"}},
    "name with lengths": {"type": "string", "pattern": "^[a-z][a-z0-9_-]*$", "maxLength": 20},
    # zod 4
    "zod date": {"type": "string", "format": "date", "pattern": "^\\d{4}-(0[1-9]|1[0-2])-\\d{2}$"},
    "zod texts": {"type": "string", "minLength": 4, "maxLength": 9, "allOf": [{"pattern": "^[a-zA-Z0-9_ ]+$"}, {"pattern": "[A-Z]"}, {"pattern": "\\d"}, {"pattern": "^\\S*$"}]},
    "zod int": {"type": "integer", "minimum": -LARGEST, "maximum": LARGEST},
    "zod record": {"type": "object", "propertyNames": TEXT, "additionalProperties": {"type": "number"}},
    "zod any": {"$schema": "https://json-schema.org/draft/2020-12/schema"},
    "zod never": {"anyOf": [{"not": {}}, {"type": "null"}]},
    "zod nullable": {"anyOf": [TEXT, {"type": "null"}]},
    "zod tuple with rest": {"type": "array", "prefixItems": [WHOLE], "items": TEXT},
    "zod and": {"allOf": [{"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
                          {"type": "object", "properties": {"b": WHOLE}, "required": ["b"]}]},
    "zod lower case": {"type": "string", "pattern": "^[^A-Z]*$", "format": "lowercase"},
    "zod code": {"type": "string", "format": "ulid", "pattern": "^[0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26}$"},
    "zod base64": {"type": "string", "format": "base64", "contentEncoding": "base64", "pattern": "^([0-9a-zA-Z+/]{4})*$"},
    "zod strict": {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
    "zod loose": {"type": "object", "properties": {"a": TEXT}, "additionalProperties": {}},
    "zod tree": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": False,
                 "properties": {"name": TEXT, "under": {"type": "array", "maxItems": 1, "items": {"$ref": "#"}}}, "required": ["name", "under"]},
    "zod told apart": {"oneOf": [{"type": "object", "properties": {"kind": {"type": "string", "const": kind}, kind: WHOLE},
                                  "required": ["kind", kind], "additionalProperties": False} for kind in ("a", "b")]},
    "zod record of names": {"type": "object", "propertyNames": {"type": "string", "enum": ["a", "b"]}, "additionalProperties": WHOLE, "required": ["a", "b"]},
    "zod read only": {"type": "object", "properties": {"a": {"readOnly": True, "default": 1, **WHOLE}}, "required": ["a"], "additionalProperties": False},
    # servers of the Model Context Protocol
    "mcp fetch": {"title": "Fetch", "description": "What to fetch.", "type": "object", "required": ["url"], "properties": {
        "url": {"description": "URL", "format": "uri", "minLength": 1, "title": "Url", "type": "string"},
        "max_length": {"default": 5000, "exclusiveMaximum": 1000000, "exclusiveMinimum": 0, "title": "Max Length", "type": "integer"},
        "raw": {"default": False, "title": "Raw", "type": "boolean"}}},
    "mcp git": {"type": "object", "required": ["repo_path", "files"], "properties": {
        "repo_path": {**TEXT, "format": "path"}, "files": {"items": TEXT, "type": "array", "minItems": 1, "maxItems": 2},
        "since": {"anyOf": [TEXT, {"type": "null"}], "default": None, "description": "A time."}}},
    # by hand
    "one of two": {"oneOf": [{"type": "object", "properties": {n: TEXT}, "required": [n], "additionalProperties": False} for n in "ab"]},
    "one of two, open": {"type": "object", "properties": {"a": TEXT, "b": WHOLE}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "no parameters": {"type": "object", "properties": {}},
    "nullable": {"type": "object", "properties": {"a": {**TEXT, "nullable": True}}, "strict": True},
    "anchor": {"$defs": {"x": {"$anchor": "here", "type": "boolean"}}, "$ref": "#here"},
    "depends": {"type": "object", "properties": {"a": WHOLE, "b": WHOLE}, "dependentRequired": {"a": ["b"]}},
    "if": {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": TEXT}, "if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}},
    "contains": {"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 2}},
    "draft 4": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "id": "http://x/y#"},
    "x-": {"type": "object", "properties": {"a": WHOLE}, "patternProperties": {"^x-": TEXT}},
    "old name": {"type": "object", "properties": {"a": {"$ref": "#/definitions/A"}}, "definitions": {"A": {"enum": ["x"], "enumNames": ["X"]}}},
}
NOTED = {
    "set": ({"type": "array", "uniqueItems": True, "items": WHOLE}, "uniqueItems"),
    "regex": ({"type": "string", "format": "regex"}, "format"),
    "zod email": ({"type": "string", "format": "email", "pattern": "^(?!\\.)[a-z]+@x$"}, "pattern"),
    "elsewhere": ({"$ref": "https://example.com/x.json"}, "$ref"),
    "overlap": ({"oneOf": [WHOLE, {"type": "number"}]}, "oneOf"),
}
PIECES = [b'{"', b'":', b'",', b'"}', b"},", b"[]", b"{}", b'"a":', b'"b":', b'"kind":', b"true", b"null", b"12", b"0.5", b"abc"]
TEXTS, MOST_TOKENS, HURRY = 3, 120, 40


class Written(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.json"
            cls.tokens = tool.write_vocabulary(path, PIECES)
            cls.tool = tool.Tool(os.environ["TERN_TEST_GRAMMAR_TOOL"], path)
            cls.tool.ask("notes")  # the vocabulary has been read
        cls.addClassCleanup(cls.tool.close)
        cls.ends = {i for i, token in enumerate(cls.tokens) if token[:1] in (b'"', b"}", b"]")}
        cls.plain = {i for i, token in enumerate(cls.tokens) if all(32 <= b < 127 for b in token)}

    def draw(self, chance):
        """A text, drawn token by token; None: it was too long."""
        ids = []
        for n in range(MOST_TOKENS):
            mask, whole = self.tool.mask(ids)
            if whole and chance.random() < 0.7:
                return b"".join(self.tokens[i] for i in ids)
            free = [i for i in self.plain if mask >> i & 1]
            ending = [i for i in free if i in self.ends]
            if not free:
                return b"".join(self.tokens[i] for i in ids) if whole else None
            ids.append(chance.choice(sorted(ending) if ending and chance.random() < (0.9 if n > HURRY else 0.4) else sorted(free)))
        return None

    def valid(self, schema, text):
        return self.tool.ask(f"valid {json.dumps(schema).encode().hex()} {text.hex()}")

    def test_what_is_enforced(self):
        chance, drawn = random.Random(7), 0
        for name, schema in PLAIN.items():
            with self.subTest(name=name):
                self.assertEqual(self.tool.compile("closed", json.dumps(schema)), "")
                self.assertEqual(self.tool.ask("notes"), "")
                for text in filter(None, (self.draw(chance) for _ in range(TEXTS))):
                    self.assertEqual(self.valid(schema, text), "yes", text)
                    drawn += 1
        self.assertGreater(drawn, 2 * len(PLAIN))

    def test_what_is_told(self):
        for name, (schema, keyword) in NOTED.items():
            with self.subTest(name=name):
                self.assertEqual(self.tool.compile("closed", json.dumps(schema)), "")
                self.assertIn(f'at "": {keyword}: ', self.tool.ask("notes"))


if __name__ == "__main__":
    common.main()
