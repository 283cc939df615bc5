# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_grammar: schemas and grammars, each with bytes that choose a text. seeds_grammar.py FOLDER"""

import json
import sys
from pathlib import Path

SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}, "b": {"enum": [1, "x", None, [2.5]]}}, "required": ["b"]},
    {"type": "array", "items": {"type": "integer", "minimum": -3, "maximum": 120}, "minItems": 1, "maxItems": 3},
    {"type": "string", "pattern": "^(ab?|[^x-z\\d]{2,3})*$"}, {"pattern": "a.c|\\w+$", "type": "string"},
    {"$defs": {"n": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/n"}}]}}, "$ref": "#/$defs/n"},
    {"allOf": [{"properties": {"a": {"minimum": 1}}}, {"type": "object", "additionalProperties": {"type": "number"}}]},
    {"oneOf": [{"type": "string", "format": "date"}, {"type": "boolean"}, {"const": {"k": 1}}]},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 10}, {"type": ["string", "null"], "format": "email"}, {},
    {"prefixItems": [{"const": 1}], "items": False, "type": "array"},
]
GRAMMARS = [
    'root ::= "a" ("b" | x){1,3} # c\nx ::= [^a-c\\x41\\u00e9]+ | .?\n', 'root ::= "(" root ")" | "[" root* "]" | ""',
    'root ::= (a\n | b)+\na ::= "x"{2,}\nb ::= [0-9-] "\\n"', 'root ::= "a"{1000,5000}',
]


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for i, text in enumerate([*map(json.dumps, SCHEMAS), *GRAMMARS]):
        for k, choices in enumerate((b"", b'{"abx1],', b"[12" + bytes(range(97, 120)))):
            (folder / f"{i}_{k}").write_bytes(text.encode() + b"\0" + choices)


if __name__ == "__main__":
    main(sys.argv[1])
