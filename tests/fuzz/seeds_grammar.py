# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_grammar: schemas and grammars, each with bytes that choose a text. seeds_grammar.py FOLDER

They have every keyword, alone and beside others, every part of the notation, and texts that are refused: they reach
nearly all places that a long run reaches.
"""

import json
import sys
from pathlib import Path

OBJECT = {"type": "object", "properties": {"a": {"const": "x"}, "b": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
FORMATS = "date time date-time duration uuid email hostname ipv4 ipv6 uri uri-reference iri iri-reference json-pointer relative-json-pointer nothing".split()
NUMBERS = (-9223372036854775807, 0, 1, -1, 5, 10, 123, -123, 999, 1000, 0.5, -0.5, 2.5, 1e3, 9007199254740993, 4611686018427387904, "x")
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
PATTERNS = r"""
^(ab?|[^x-z\d]{2,3})*$
a.c|\w+$
^a$|^b|c$|d
^[a-z]+$
^[a-z]{2,5}$
^[^a-z]{2,}$
^a$
^a{3}$
^(?:a|b)(c|)$
^[\w\s\d\W\S\D]?$
^[\b\t\n\r\f\v\0\-\]\\]*$
^\t\n\r\f\v\0\x41\u00e9\ud83d\ude42\.\/\-$
^[\x00-\x1f\x7f"\\]+?$
^[é-ü]*?$
^a{0}$
^a{1}?b{2,}?c{1,2}?$
^.*$
.*$
^.*
^$

|
()
(a
a)
a**
*
+
?
{2}
a{
a{,2}
a{2
a{2,1}
a{x}
a{99999999}
(?=a)
(?<a>b)
[a
[a-
[b-a]
[a-\d]
[\
[]
[^]
[^\W]
\
\b
\1
\c
\xg
\x4
\u12
\ud800
\ud800\u0041
\ud800x
\udc00
a^b
a$b
(^a)
(a$)
\ue000
\ud800\x41
\ud800\ue000
\q
\Q
\é
\{\}
[^b-a]
a{1,99999999}
((((((((((((((((((((((((((((((((((a))))))))))))))))))))))))))))))))))
""".strip("\n").split("\n")

SCHEMAS = [
    {}, {"type": "object"}, {"type": "array"}, {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}, {"type": "x"}, {"type": []}, {"type": ["string", "null"]}, {"type": ["integer", 1]}, {"type": None}, {"type": {}},
    {"enum": [1, "x", None, [2.5, {}], {"a": [], "b": {"c": True}}, False]}, {"enum": []}, {"enum": 1}, {"enum": {}}, {"const": None}, {"const": {"k": [1, "\"\\\b\f\n\r\t\x01\x7f\u00e9"]}}, {"const": 1, "enum": [1.0, 2]}, {"const": 1, "enum": [1, 2]}, {"const": "a", "enum": ["b"]},
    {"enum": [1, 2], "type": "string"}, {"enum": ["a"], "minLength": 1}, {"enum": [1e5, 100000.0], "allOf": [{"enum": [100000]}]}, {"enum": [[1], [1, 2]], "allOf": [{"enum": [[1]]}]}, {"enum": [{"a": 1}], "allOf": [{"enum": [{"a": 1.0}]}]}, {"enum": [0], "allOf": [{"enum": [-0]}]},
    {"allOf": [{"enum": [i, 1]} for i in range(10)]}, {"enum": list(range(600))}, {"enum": [-0.0, 0, 10**30, 10**70, -(10**70)]}, {"const": 10**70, "enum": [10**70 + 1, 10**70]},
    {"$defs": {"a/~b": {"const": 1}}, "$ref": "#/$defs/a~1~0b"}, {"$defs": {"a": {}}, "$ref": "#/$defs/%61"}, {"$ref": "#/%4"}, {"$ref": "#/%"}, {"$ref": "#/%gg"}, {"$ref": "#/%4g"}, {"$ref": "#/~"}, {"$ref": "#/~2"}, {"$ref": "#"}, {"$ref": "#a"}, {"$ref": "a"}, {"$ref": ""}, {"$ref": 1}, {"$ref": "#/" + "a" * 300},
    {"$ref": "#/allOf/0", "allOf": [{"type": "null"}]}, {"$ref": "#/anyOf/1", "anyOf": [{"type": "null"}, {"type": "string"}]}, {"$ref": "#/allOf/9", "allOf": [{}]}, {"$ref": "#/allOf/x", "allOf": [{}]}, {"$ref": "#/allOf/", "allOf": [{}]}, {"$ref": "#/allOf/0x", "allOf": [{}]}, {"$ref": "#/$defs/a/b", "$defs": {"a": 1}}, {"$ref": "#/$defs/a", "$defs": {"a": 1}}, {"$ref": "#/$defs/a", "$defs": {"a": True}}, {"$ref": "#/$defs/a", "$defs": {"a": False}}, {"$ref": "#/$defs/b", "$defs": {"a": {}}},
    {"$defs": {"n": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/n"}}]}}, "$ref": "#/$defs/n"}, {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}, {"allOf": [{"$ref": "#"}]}, {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    {"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}, {"required": ["a"], "properties": {"a": {"$ref": "#"}}, "type": "object"}, {"oneOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "string"}}}, {"oneOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "$defs": {"a": {"$ref": "#/$defs/a"}}}, {"oneOf": [{"$ref": "#/x"}, {"type": "null"}]},
    {"allOf": [{"properties": {"a": {"minimum": 1}}}, {"type": "object", "additionalProperties": {"type": "number"}}]}, {"allOf": []}, {"allOf": {}}, {"allOf": [1]}, {"allOf": [True, {"type": "null"}]}, {"allOf": [False]}, {"allOf": [{"type": "null"}, {"type": "string"}]}, {"allOf": [{"title": str(i)} for i in range(130)]},
    {"anyOf": []}, {"anyOf": 1}, {"anyOf": [1]}, {"anyOf": [{"minimum": 3}, {"maximum": -3}], "type": "integer"}, {"anyOf": [True, False]}, {"anyOf": [{"anyOf": [{"const": 1}, {"const": 2}]}, {"type": "null"}], "allOf": [{"anyOf": [{"const": 1}, {}]}]}, {"oneOf": []}, {"oneOf": {}}, {"oneOf": [{"type": "string"}, False]}, {"oneOf": [True, False]}, {"oneOf": [{}, {}]},
    {"oneOf": [{"type": "string", "format": "date"}, {"type": "boolean"}, {"const": {"k": 1}}]}, {"oneOf": [{"const": 1}, {"enum": [2, 3]}, {"enum": ["a"]}]}, {"oneOf": [{"const": 1}, {"const": 1.0}]}, {"oneOf": [{"type": "integer"}, {"type": "number"}]}, {"oneOf": [{"type": ["string", "null"]}, {"type": "boolean"}, {"type": ["array", "object"]}]}, {"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "enum": ["b", "c"]}]},
    {"oneOf": [OBJECT, {**OBJECT, "properties": {"a": {"enum": ["y", "z"]}}}]}, {"oneOf": [OBJECT, {**OBJECT, "properties": {"a": {"const": "x"}}}]}, {"oneOf": [OBJECT, {**OBJECT, "required": ["b"]}]}, {"oneOf": [OBJECT, {**OBJECT, "required": [["a"]]}]}, {"oneOf": [OBJECT, {**OBJECT, "properties": 1}]}, {"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]}, {"oneOf": [{"type": "string"}, {"enum": ["a", 1]}]}, {"oneOf": [{"properties": {"a": {"$ref": "#/$defs/k"}}, "required": ["a"], "type": "object"}, {"properties": {"a": {"const": 2}}, "required": ["a"], "type": "object"}], "$defs": {"k": {"const": 1}}},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False}, {"oneOf": [{"type": "array", "minItems": 1}, {"type": "array", "maxItems": 3}]}, {"oneOf": [{"enum": 1}, {"enum": [1]}]}, {"oneOf": [{"enum": {}}, {"const": 2}]}, {"oneOf": [{"type": "string", "not": {"const": "a"}}, {"const": "a"}]},
    {"not": {}}, {"not": True}, {"not": False}, {"not": 1}, {"not": {"type": "string"}}, {"not": {"type": ["string", "number"]}}, {"not": {"type": "integer"}}, {"not": {"type": "integer"}, "type": ["string", "integer"]}, {"not": {"type": ["integer", "number", "null"]}}, {"not": {"const": None}}, {"not": {"const": True}}, {"not": {"enum": [True, False]}}, {"not": {"const": "ab"}, "type": "string"}, {"not": {"enum": ["a", "ab", "abc", "b", "\u00e9", ""]}, "type": "string"}, {"not": {"const": 1}}, {"not": {"const": 1}, "type": "string"}, {"not": {"const": [1]}}, {"not": {"const": {}}, "type": ["string", "null"]}, {"not": {"enum": 1}}, {"not": {"enum": [1]}, "enum": [1, 2, "a"]},
    {"not": {"const": "a"}, "type": "string", "pattern": "a"}, {"not": {"const": "a"}, "type": "string", "format": "date"}, {"not": {"const": "a"}, "type": "string", "minLength": 1}, {"not": {"const": "a"}, "enum": ["a", "b"]}, {"not": {"minimum": 1}}, {"not": {"title": "x"}}, {"not": {"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg": 1}}, {"not": {"not": {"type": "string"}}}, {"not": {"allOf": [{"type": "string"}, {"const": None}]}}, {"not": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, {"not": {"allOf": 1}}, {"not": {"anyOf": 1}}, {"not": {"oneOf": [{}]}}, {"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "array"}}}, {"not": {"$ref": "#/x"}}, {"not": {"$ref": "#"}},
    {"not": {"required": ["a"]}, "type": "object"}, {"not": {"required": ["a", "b"]}}, {"not": {"required": [1]}}, {"not": {"required": 1}}, {"not": {"properties": {"a": {"const": 1}}}, "type": "object"}, {"not": {"properties": {"a": True, "b": {}}}}, {"not": {"properties": 1}}, {"not": {"properties": {"a": {"const": "x"}}, "required": ["a"]}, "type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {}}, "additionalProperties": False}, {"not": {"required": ["a"]}, "enum": [{"a": 1}, 2]}, {"not": {"items": {}}}, {"not": {"type": "object"}, "anyOf": [{"type": "object"}, {"type": "null"}]},
    {"if": {"properties": {"a": {"const": "x"}}, "required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}, "type": "object"}, {"if": {"type": "string"}, "then": {"maxLength": 2}}, {"if": {"type": "string"}, "else": False}, {"if": {"type": "string"}}, {"if": {"minimum": 1}, "then": {}}, {"if": True, "then": {"const": 1}, "else": {"const": 2}}, {"if": False, "then": {"const": 1}, "else": {"const": 2}}, {"if": 1, "then": {}}, {"if": {"const": 1}, "then": 1}, {"if": {"enum": ["a", "b"]}, "then": {"const": "a"}, "else": {"type": "null"}, "type": ["string", "null"]},
    {"dependentRequired": {"a": ["b"]}, "type": "object"}, {"dependentRequired": {"a": [1]}}, {"dependentRequired": {"a": "b"}}, {"dependentRequired": 1}, {"dependentSchemas": {"a": {"required": ["c"]}}, "type": "object"}, {"dependentSchemas": {"a": False}, "properties": {"a": {}, "b": {}}, "type": "object", "additionalProperties": False}, {"dependentSchemas": []}, {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}, "type": "object"}, {"dependencies": {"a": 1}}, {"dependencies": "a"}, {"dependentRequired": {"a": []}}, {"dependentRequired": {"a": ["b"], "b": ["a"]}, "type": "object", "additionalProperties": {"type": "null"}},
    OBJECT, {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}, "b": {"enum": [1, "x", None, [2.5]]}}, "required": ["b"]}, {"properties": 1}, {"properties": {}}, {"properties": {"a": 1}}, {"properties": {"a": False}, "type": "object", "additionalProperties": False}, {"properties": {"a": False}, "required": ["a"], "type": "object"}, {"required": 1}, {"required": [1]}, {"required": ["x", "y", "x"], "type": "object"}, {"required": []}, {"required": ["\"\\\n\u00e9"], "type": "object"}, {"type": "object", "properties": {"\"a\\": {}, "ab": {}, "abc": {}, "b": {}, "\u00e9": {}, "": {}}},
    {"type": "object", "additionalProperties": False}, {"type": "object", "additionalProperties": False, "required": ["a"]}, {"type": "object", "additionalProperties": {"type": "null"}}, {"type": "object", "additionalProperties": 1}, {"type": "object", "minProperties": 1}, {"type": "object", "minProperties": 2}, {"type": "object", "minProperties": 1, "required": ["a", "b"]}, {"type": "object", "minProperties": 2, "required": ["a", "b"]}, {"minProperties": -1}, {"minProperties": "a"}, {"type": "object", "properties": {"a" * 1100: {}}}, {"type": "object", "properties": {f"p{i}": {} for i in range(70)}}, {"properties": {"a": {"items": [{}, {"multipleOf": 2}]}}}, {"properties": {"a/b" * 80: {"multipleOf": 2}}}, {"items": {"anyOf": [{}, {"type": "x"}]}},
    {"type": "object", "patternProperties": {"^a": {"type": "null"}}, "additionalProperties": False}, {"type": "object", "patternProperties": {"": {"type": "null"}}}, {"type": "object", "patternProperties": {".*": {"type": "null"}}, "properties": {"a": {}}}, {"type": "object", "patternProperties": {"^a": {}, "b": {}}, "additionalProperties": False}, {"type": "object", "patternProperties": {"^a": {}}}, {"patternProperties": 1}, {"type": "object", "patternProperties": {"(": {}}, "additionalProperties": False}, {"type": "object", "patternProperties": {"^a": {}}, "additionalProperties": False, "properties": {"b": {}}}, {"type": "object", "patternProperties": {}}, {"type": "object", "patternProperties": {"^a": {}}, "additionalProperties": False, "allOf": [{"patternProperties": {"^a": {}}, "additionalProperties": False}]}, {"type": "object", "patternProperties": {"^a": {}}, "additionalProperties": False, "required": ["a"]},
    {"type": "array", "items": {"type": "integer", "minimum": -3, "maximum": 120}, "minItems": 1, "maxItems": 3}, {"type": "array", "items": False}, {"type": "array", "items": False, "minItems": 1}, {"type": "array", "maxItems": 0}, {"type": "array", "maxItems": 1, "minItems": 2}, {"type": "array", "maxItems": 1}, {"type": "array", "minItems": 3}, {"minItems": -1}, {"minItems": 1.5}, {"minItems": 99999999}, {"maxItems": 99999999}, {"maxItems": "a"}, {"maxItems": -1}, {"items": 1}, {"items": [1]}, {"prefixItems": [{"const": 1}], "items": False, "type": "array"}, {"type": "array", "prefixItems": [{"const": 1}, {}, {"const": 3}], "minItems": 2, "maxItems": 3}, {"type": "array", "prefixItems": [{}, {}], "maxItems": 1}, {"type": "array", "prefixItems": [{}, {}], "minItems": 4, "maxItems": 5}, {"prefixItems": 1}, {"type": "array", "items": [{"const": 1}, {"const": 2}], "additionalItems": False}, {"type": "array", "items": [{}], "additionalItems": {"type": "null"}}, {"type": "array", "prefixItems": [{}] * 20},
    {"allOf": [{"type": "array", "prefixItems": [{"const": 1}]}, {"items": {"type": "integer"}, "minItems": 1}]}, {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, 3]}}, {"type": "array", "uniqueItems": True, "items": {"enum": [1, 1, "a"]}, "minItems": 1, "maxItems": 2}, {"type": "array", "uniqueItems": True, "items": {"enum": [1, 1.0]}}, {"type": "array", "uniqueItems": True, "items": {"enum": list(range(11))}}, {"type": "array", "uniqueItems": True, "items": {"enum": [1]}, "minItems": 2}, {"type": "array", "uniqueItems": True}, {"type": "array", "uniqueItems": True, "maxItems": 1}, {"type": "array", "uniqueItems": True, "prefixItems": [{}]}, {"type": "array", "uniqueItems": True, "items": False}, {"type": "array", "uniqueItems": True, "items": {"anyOf": [{"const": 1}, {"const": 2}]}}, {"type": "array", "uniqueItems": True, "items": {"enum": [1, "a"], "type": "string"}}, {"uniqueItems": 1}, {"uniqueItems": False}, {"type": "array", "uniqueItems": True, "items": {"const": 1, "enum": [1.0, 2]}},
    {"type": "string", "minLength": 2, "maxLength": 5}, {"type": "string", "minLength": 3, "maxLength": 2}, {"minLength": "a"}, {"maxLength": -1}, {"type": "string", "maxLength": 0}, {"pattern": 1}, {"format": 1}, {"format": "x"}, {"type": "string", "pattern": "a", "format": "date"}, {"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}]}, {"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "a"}]}, {"type": "string", "allOf": [{"format": "date"}, {"format": "time"}]}, {"type": "string", "allOf": [{"format": "date"}, {"format": "date"}]}, {"type": "string", "pattern": "^[a-z]{2,5}$", "minLength": 3, "maxLength": 4}, {"type": "string", "pattern": "^[a-z]*$", "minLength": 3}, {"type": "string", "pattern": "^[a-z]*$", "maxLength": 3}, {"type": "string", "pattern": "^[a-z]+$", "maxLength": 0}, {"type": "string", "pattern": "^ab$", "maxLength": 4}, {"type": "string", "pattern": "^(a)$", "maxLength": 4}, {"type": "string", "pattern": "^[a-z]{2,5}$", "maxLength": 9}, {"type": "string", "format": "date", "minLength": 10, "maxLength": 10}, {"type": "string", "format": "date", "minLength": 11}, {"type": "string", "format": "uri", "maxLength": 9}, {"type": "string", "format": "nothing"},
    {"type": "string", "pattern": "[" + "ac" * 600 + "]"}, {"type": "string", "pattern": "[" + "".join(chr(i) for i in range(200, 3000, 2)) + "]"}, {"type": "string", "pattern": "a" * 9000}, {"type": "string", "allOf": [{"maxLength": 3}, {"maxLength": 5}]}, {"type": "string", "allOf": [{"maxLength": 5}, {"maxLength": 3}]}, {"enum": [1.5], "allOf": [{"enum": [2.5]}]}, {"enum": [[[1, 2]]], "allOf": [{"enum": [[[], 1, 2]]}]}, {"enum": [[1]], "allOf": [{"enum": [["a"]]}]}, {"enum": [2, {"a": 1}], "not": {"required": ["a"]}},
    {"oneOf": [{"type": ["integer", "string"]}, {"type": ["integer", "string", "null"]}]}, {"oneOf": [{"type": ["integer", "number"]}, {"type": "number"}]}, {"oneOf": [{"$ref": "#/$defs/a"}, {"type": ["string", "null"]}], "$defs": {"a": {"type": "string", "title": "t"}}}, {"oneOf": [{"allOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}]}, {"oneOf": [{"allOf": 1}, {"anyOf": [{"minLength": 1}, {}]}]}, {"oneOf": [{"allOf": [True, False]}, {"properties": 1}]}, {"oneOf": [{"properties": {"a": True}}, {"properties": {"a": {"minimum": 1}}}]}, {"oneOf": [{"not": {"type": "string"}}, {"$ref": "#/x"}]}, {"oneOf": [{}, json.loads('{"allOf": [' * 18 + "{}" + "]}" * 18)]},
    {"oneOf": [{"type": "object", "properties": {"a": {"const": 1}, "bb": {"const": 1}}, "required": ["bb", "a"]}, {"type": "object", "properties": {"a": {"const": 2}, "bb": True}, "required": 1}]}, {"oneOf": [{"type": "object", "properties": {"a": True}, "required": ["a"]}, {"type": "object", "properties": {"a": {"const": 2}}}]}, {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object"}]}, {"oneOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["b", "a"]}, {"type": "object", "properties": {"a": {"const": 2}}, "required": ["cc", 1, "a"]}]}, {"$ref": "#/title/x", "title": "t"},
    {"allOf": [{"anyOf": [{"title": str(i)}, {"title": str(-i)}, {"title": "t"}]} for i in range(1, 12)]}, {"type": "object", "properties": {"a": {"type": "array", "items": {"$ref": "#/properties/b"}}, "b": {"anyOf": [{"$ref": "#"}, {"type": "string"}]}}}, {"type": "array", "items": {f"x-{i}": 1 for i in range(300)}}, {"anyOf": [{"type": "string", "format": name} for name in FORMATS[:-1]]}, {"anyOf": [{"const": "ab" * i} for i in range(200)]}, {"type": "object", "properties": {f"p{i}": {"type": "string", "format": "iri"} for i in range(20)}},
    {"type": "array", "uniqueItems": True, "items": {"enum": list(range(10))}, "minItems": 2}, {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, 3, "a", "b"], "not": {"const": "a"}, "type": ["integer", "string"]}},
    {"multipleOf": 2}, {"x-own": 1}, {"x-": 1}, {"title": "t", "$comment": "c", "$schema": "s", "description": 1, "default": {}, "examples": [], "deprecated": True, "readOnly": True, "writeOnly": False, "contentMediaType": "a", "$id": "i"}, {"items": {"$id": "i"}}, {"id": 1}, {"aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg": 1}, {"type": "string", "type": "null"}, {"minimum": None}, {"properties": None},
]

NAME = "\u00e9\u00a0\u0085\u0800\ud7ff\U0001f642\U0010ffff\x7f"
RARE = [
    {NAME: 1}, {"a" + "\u00e9" * 40: 1}, {"\u65e5" * 40: 1}, {"a" + "\u65e5" * 40: 1}, {"properties": {"n" * 70: {"properties": {"m" * 70: {"properties": {"o" * 70: {"items": [{"prefixItems": [{"type": "x"}]}]}}}}}}}, {"properties": {"n" * 70: {"properties": {"m" * 70: {"properties": {"o" * 70: {"items": {"type": "x"}}}}}}}}, {"properties": {"\u65e5" * 25: {"type": "x"}}},
    {"minimum": 9223372036854775808}, {"maximum": -9223372036854775808}, {"type": "string", "pattern": "^a", "allOf": [{"pattern": "^a"}]}, {"type": "string", "pattern": "^a", "allOf": [{"pattern": "^b"}]}, {"type": "string", "pattern": "^a", "allOf": [{"pattern": "^ab"}]}, {"type": "string", "format": "date", "allOf": [{"format": "date"}, {"format": "time"}]},
    {"not": {"allOf": [{"const": [1, 2]}, {"const": [1, [2]]}]}}, {"enum": [{"a": 1}], "not": {"required": ["a"]}}, {"enum": [{"a": 1}, 2], "not": {"required": ["a"]}, "type": ["object", "integer"]}, {"enum": [{"a": 1}], "dependentRequired": {"a": ["b"]}}, {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "allOf": [{"properties": {"a": {"const": 1}}}, {"additionalProperties": {"type": "null"}}]},
    {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False, "allOf": [{"required": ["xa"]}]}, {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, 3, 4]}, "maxItems": 2}, {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, 3, 4]}, "minItems": 3, "maxItems": 3}, {"type": "string", "not": {"enum": ["a", "a", "ab", ""]}, "allOf": [{"not": {"const": "a"}}]},
    {"type": "string", "not": {"enum": ["\u00e9", "\u00e9a", "\U0001f642", "\x01", "\U0010ffff"]}}, {"type": "object", "properties": {"": {}, "a": {}, "ab": {}, "\U0010ffff": {}}, "additionalProperties": {"type": "null"}}, *({"$ref": f"#/%{c}0"} for c in ":G/@`gFaAf09"), *({"$ref": f"#/%0{c}"} for c in ":G/@`gFaAf09"), *({"type": "string", "pattern": f"\\x{c}0\\u00{c}0"} for c in ":G/@`gFaAf09"),
]

GRAMMARS = [
    'root ::= "a" ("b" | x){1,3} # c\nx ::= [^a-c\\x41\\u00e9]+ | .?\n', 'root ::= "(" root ")" | "[" root* "]" | ""', 'root ::= (a\n | b)+\na ::= "x"{2,}\nb ::= [0-9-] "\\n"', 'root ::= "a"{1000,5000}', 'root ::= "a"{0,16777216}', 'root ::= "a"{16777217}', 'root ::= "a"{99999999999}', 'root ::= "a"{3,2}', 'root ::= "a"{', 'root ::= "a"{x}', 'root ::= "a"{1', 'root ::= "a"{1,', 'root ::= "a"{,3}', 'root ::= "a"{2,}', 'root ::= "a" {2}', 'root ::= "a"{ 1 , 2 }',
    'root ::= "\\n\\r\\t\\\\\\"\\[\\]\\x41\\u00e9\\U0001f642é🙂"', 'root ::= "\\q"', 'root ::= "\\x4"', 'root ::= "\\u12g4"', 'root ::= "\\ud800"', 'root ::= "\\U00110000"', 'root ::= "\\', 'root ::= "a', 'root ::= "\udcff"', "root ::= [a-z0-9_-]", "root ::= [^a-z]", "root ::= []", "root ::= [^]", "root ::= [a-]", "root ::= [-a]", "root ::= [b-a]", "root ::= [\\]\\[\\-]", "root ::= [\\U00000000-\\U0010ffff]", "root ::= [\\U00110000]", "root ::= [\\ud800-\\udfff]", "root ::= [a", "root ::= [a-", "root ::= [\\u0080-\\u07ff\\u0800-\\uffff\\U00010000-\\U0010ffff]", "root ::= [\u00e9-\u00ff\u0400-\u04ff\u3042]+", "root ::= [" + "".join(f"\\u{i:04x}" for i in range(0, 600, 3)) + "]", "root ::= [^\\x00-\\U0010ffff]",
    "root ::= .", "root ::= .*", "root ::= a\na ::= b\nb ::= \"c\"", "root ::= thing", 'item ::= "a"', 'root ::= "a"\nroot ::= "b"', 'root ::= ("a"', 'root ::= "a")', 'root ::= "a" root', 'root ::= root "a" | "b"', 'root ::= a\na ::= "" b "x"\nb ::= [0-9]* a', 'root ::= <think>', "root ::= ", "root ::=", "root :: = x", "root", ":", "", "# only\n", "\n\r\n \t", 'root ::= "a" | ', 'root ::= | "a"', 'root ::= "a"\n  | "b"\r\n  | "c"\n\nx ::= ""', 'root ::= "a" # c\n     "b"', 'root ::= ("a" # c\n "b"\n)', 'root ::= x-1\nx-1 ::= "a"', 'root ::= a.b', 'root ::= "a" ; x', "root ::= " + "a" * 140, "A1 ::= root\nroot ::= \"z\"",
    'root ::= ("a"?){2,100}', 'root ::= ("a"?){0,64}', 'root ::= ("a"?)*', 'root ::= ("a"?)+', 'root ::= ("a"*){3,}', 'root ::= (("a"?){0,64}){0,64}', 'root ::= ((("a"?){0,64}){0,64}){0,64}', 'root ::= (("" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "" "a"?){0,64}){0,64}', 'root ::= ("a" | "b"? | ""){2}', 'root ::= "" ""', 'root ::= (""){5}', 'root ::= x?\nx ::= x "a"', 'root ::= "a" x | "b"\nx ::= "c" x', 'root ::= (x | "a")*\nx ::= "c" x', 'root ::= x{0,3} "a"\nx ::= "c" x', 'root ::= x{1,3} "a"\nx ::= "c" x', 'root ::= ([a-z]{2,4}){1,3}', "root ::= [ -~]{0,40}", 'root ::= ["a-z ]{3}', "root ::= [\\x20-\\x21\\x23-\\x5b\\x5d-\\x7e\\u0080-\\U0010ffff]*",
    "root ::= " + "(" * 64 + '"a"' + ")" * 64, "root ::= " + "(" * 65 + '"a"', "root ::= " + " ".join(f"r{i}" for i in range(140)), "\n".join(f"r{i} ::= r{i + 1}" for i in range(100)) + '\nr100 ::= "a"\nroot ::= r0', 'root ::= ' + ' | '.join(f'"{i}"' for i in range(300)), 'root ::= "' + "ab" * 3000 + '"', "root ::= " + " ".join(f"r{i}" for i in range(20)) + "\n" + "\n".join(f'r{i} ::= "a" | "a" r{i}' for i in range(20)), 'root ::= "a" root root | "a"', 'root ::= ("a" | "a" "a" | "a" "a" "a")*', 'root ::= "(" root ")" | "(" root "]" | ""', 'root ::= a{1,50}\na ::= [a-b]{1,50}', 'root ::= ("a" | b){3,9} b\nb ::= ("a" | "ab"){2,5}', "root ::= [a-z]* [a-y]* [a-x]* [a-w]* [a-v]*",
    'root ::= "a" # c', "root ::= !<x>", "root x", "root ::= " + "a" * 120, "a" * 120 + " ::= " + "a" * 120 + "\nroot ::= " + "a" * 120, "root ::= [^b-a]",
    "\n".join(f'r{i} ::= r{i + 1} "x"' for i in range(100)) + '\nr100 ::= "a" r0 "y" | "a"\nroot ::= r0', "root ::= " + '"a"? ' * 240, "root ::= " + '"a"? ' * 500, "root ::= (" + '"a"? ' * 100 + ")*", "root ::= " + " | ".join(f'"a" "{i}" a{i % 50}' for i in range(600)) + "\n" + "\n".join(f'a{i} ::= "b"' for i in range(50)), "root ::= " + " | ".join(f'"{chr(i)}" r{i}' for i in range(97, 123)) + "\n" + "\n".join(f'r{i} ::= root "{i}" | ""' for i in range(97, 123)), "\n".join(f"r{i} ::= r{i + 1}" for i in range(120)) + '\nr120 ::= ' + '"a" ' * 900 + "\nroot ::= r0", 'root ::= "a" root root root | ""', 'root ::= ("a" root)* | "a"{0,9}', "root ::= x x\nx ::= " + '("a" | "ab" | "abc" | x "b"){0,9}', 'root ::= "a"{2,200} "a"{2,200} "a"{2,200} "b"',
    "root ::= " + "[^a]" * 900, "root ::= " + "[^\\u0100-\\u0200]" * 200, 'root ::= (x x x x x x x x){9}\nx ::= y y y y y y y y\ny ::= ("a" | ""){9}',
]

HEX_ENDS = ":G/@`gFaAf09"  # hexadecimal digits, and characters that are not
GRAMMARS += [f'root ::= "\\x{c}0\\x0{c}"' for c in HEX_ENDS]

# Limits are met at many places: of expressions, their parts and nodes, of rules, states, frames and places of a state.
LETTERS = [chr(c) for c in range(35, 127) if chr(c) not in '[]\\^-']
LONG = [
    'root ::= "a"' + "+" * 300, "root ::= " + "|".join(['"a"'] * 7500), "root ::= " + '""' * 8193, "root ::= " + "|".join(['""' * 8000] * 3), "root ::= (" + '""' * 5000 + '"a"?){0,64}', 'root ::= (("' + "a" * 300 + '"?){0,64})*', "root ::= (" + '("a"? "b"?){0,64}' * 150 + ")*",
    "root ::= " + " | ".join(f'"{c}" root "{c}"' for c in LETTERS) + ' | "a"', "root ::= (" + "|".join(f'"{c}" {"".join(f"[{LETTERS[k]}-~]" for k in (i, -i, i // 2))}' for i, c in enumerate(LETTERS)) + ")*", "root ::= (" + "|".join(f"[#-{LETTERS[i]}][{LETTERS[-i]}-~][#-{LETTERS[i]}][{LETTERS[-i]}-~]" for i in range(1, len(LETTERS))) + ")*",
    "root ::= (" + "|".join("".join(f"[{LETTERS[k]}-{LETTERS[k + 40]}]" for k in (i % 40, 3 * i % 40, 7 * i % 40, 11 * i % 40)) for i in range(400)) + ")*", "root ::= " + " | ".join('"' + "a" * 20 + f'{i}"' for i in range(60)), 'root ::= "' + "<tool_call>" * 20 + '"', "root ::= " + "|".join(f"{'(' * 12}\"{'a' * 9}{i}\"{'){2,3}' * 12}" for i in range(85)), "root ::= " + "|".join(f"{'(' * 12}\"{'a' * 9}{i}\"{'){2,3}' * 12}" for i in range(100)),
    "root ::= " + "|".join(f"{'(' * 12}\"{'a' * 9}{i}\"{'){2,3}' * 12}" for i in range(200)), "root ::= " + " | ".join(f'r "{i}"' for i in range(200)) + "\nr ::= (" + "|".join(['""'] * 200) + ') y\ny ::= "x"', 'root ::= "a" (' + " | ".join(f'r "{i}"' for i in range(200)) + ")\nr ::= (" + "|".join(['""'] * 200) + ') y\ny ::= "x"', "root ::= " + "(" * 60 + '"a"' + "){2,3}" * 60,
    "\n".join(f'r{i} ::= r{i + 1} "1"' for i in range(125)) + '\nr125 ::= "x"+\nroot ::= r0', "root ::= " + "|".join(f'[a-{c}]' for c in "bcdefghijklmnopqrstuvwxyz") * 1, "root ::= [" + "".join(f"\\u{2 * k + 256:04x}" for k in range(140)) + "]", "root ::= [^" + "".join(f"\\u{2 * k + 256:04x}" for k in range(127)) + "]*",
]


def crowded():
    """Schemas with n properties of objects in objects: rules, parts and steps end at many places."""
    names = [f"p{i}" for i in range(64)]
    for n in range(1, 62):
        plain = {chr(97 + i): {"type": "object", "properties": {f"{k}": {} for k in range(60 if i < 8 else n)}, "additionalProperties": False} for i in range(9)}
        yield {"type": "object", "properties": plain, "additionalProperties": False}
    full = {"type": "object", "properties": {name: {"type": "integer"} for name in names[:60]}}
    for n in (*range(1, 64), 600):
        last = {"type": "object", "properties": {f"q{i}": {"const": i} for i in range(n)}, "required": ["q0"]}
        yield {"type": "object", "properties": {**{name: full for name in names[:4]}, "r": {"type": "object", "properties": {name: {"type": "string", "minLength": i} for i, name in enumerate(names)}}, **{f"s{i}": {"const": i} for i in range(50)}, "l": last}}
        yield {"allOf": [{"anyOf": [{"title": str(i)}, {"title": "t", "minimum": i}, {"maximum": i}]} for i in range(min(n, 9))], "type": "object", "properties": {"l": last}, "oneOf": [{"required": [f"q{i}"]} for i in range(min(n, 12))]}


CHOICES = (b"", b"\x00{\"abx1],", b"\x00[12" + bytes(range(97, 120)), b"\x00\"ab\x83\xc3\xa9", b"\x00(((((((((((((((((((((((((", b"\x00aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"\x00" + b"\xff" * 30, b"\x00" + bytes(range(0, 256, 9)))
BROKEN = (b'{"minimum":1E2}', b'{"minimum":1e-2}', b'{"minimum":1e+2}', b'{"const":"\\ud800abcdefgh"}', b'{"const":"\\ud800\\nabcdef"}', b'{"const":"\\ud800\\ue000"}', b"{", b"{}x", b'{"a":}', b'{"a" 1}', b'{"a":1,}', b'{"a":tru}', b'{"a":01}', b'{"a":1.}', b'{"a":-}', b'{"a":1e}', b'{"a":"\\x"}', b'{"a":"\\ud800"}', b'{"a":"\xff"}', b'{"a":"\n"}', b"{" + b'"a":{' * 600, b'{"const":"\xed\xa0\x80"}', b'{"const": 1e400}', b'{"minimum": 1e400}', b'{"minimum": 1' + b"0" * 70 + b"}", b'{"minimum": 0.' + b"0" * 70 + b"}", b'{"maximum": 9e14, "type": "number"}', b'{"type":"string","type":"null"}', b'{"not":{"type":"string","type":"null"}}', b'{"not":{"properties":{"a":{"const":1},"a":{"const":2}}}}', b'{"enum":[0],"allOf":[{"enum":[-0]}]}', b'{"enum":[1.0],"allOf":[{"enum":[1.00]}]}', b'{"enum":[' + b"1" * 70 + b'.0],"allOf":[{"enum":[1.0]}]}', b'{"enum":[1.0],"allOf":[{"enum":[' + b"1" * 70 + b".0]}]}", b'{"const":"\\u0000"}', b'{"enum":["\\u0000a"]}', b'{"const":{"a":1,"a":2}}')
TAGGED = [{}, OBJECT, {"type": "x"}, {"type": "string", "pattern": "^a+b$"}, False]


def schemas():
    yield from SCHEMAS
    yield from RARE
    for pattern in PATTERNS:
        yield {"type": "string", "pattern": pattern}
    for name in FORMATS:
        yield {"type": "string", "format": name}
        yield {"type": "string", "format": name, "maxLength": 300, "minLength": 1}
    for word in BOUNDS:
        for number in NUMBERS:
            for kind in ("integer", "number", ["integer", "string"]):
                yield {"type": kind, word: number}
    for low in BOUNDS[::2]:
        for high in BOUNDS[1::2]:
            for a, b in ((0, 0), (1, 1), (-5, 5), (5, -5), (-5, -5), (-20, -3), (12, 345), (99, 101), (0, 1), (-1, 0), (7, 8), (-123, -121)):
                for kind in ("integer", "number"):
                    yield {"type": kind, low: a, high: b}
    for a, b in ((3, 2), (2, 3), (3, 3)):
        for words in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"), ("minimum", "minimum")):
            yield {"type": "number", "allOf": [{words[0]: a}, {words[1]: b}]}
            yield {"type": "number", "allOf": [{words[1]: a}, {words[0]: b}]}


def texts():
    for schema in schemas():
        yield json.dumps(schema).encode()
    for schema in crowded():
        yield json.dumps(schema).encode()
    for grammar in [*GRAMMARS, *LONG]:
        yield grammar.encode("utf-8", "surrogateescape")
    yield from BROKEN
    for form in range(128):
        yield b"<" + bytes([form]) + json.dumps(TAGGED[form % len(TAGGED)]).encode() + (b"\x1e" + json.dumps(TAGGED[form % 4 - 1]).encode() if form % 3 else b"")


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(texts()):
        for k in range(len(CHOICES)) if text.decode(errors="replace") in LONG else (0, 1 + i % 3, 4 + i % 4):
            (folder / f"{i:04d}-{k}").write_bytes(text + CHOICES[k])


if __name__ == "__main__":
    main(sys.argv[1])
