# SPDX-License-Identifier: Apache-2.0
"""Masks against the definition: a token may follow if some text of the form begins with the tokens so far and this one.

The schemas and grammars here have finitely many texts, which are listed in Python; so every mask after every
beginning of every text can be compared, token by token.
"""

import itertools
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

import common

sys.path.insert(0, str(Path(__file__).parent.parent / "grammars"))
import tool  # noqa: E402

MOST_TEXTS = 300  # of a schema; more are not listed
PIECES = [b'{"', b'":', b'",', b'"}', b"}]", b"[[", b"],[", b"ab", b"aba", b"bb", b'a"', b'b","', b"10", b"1,", b"12",
          b"0]", b"true", b"ru", b"nul", b"l}", b"null,", "é".encode(), "éa".encode(), "é".encode()[1:] + b"b",
          b'{"a":', b'{"b"', b'"a":1', b"}}", b'\\"', b'\\"a', b"\n ", b" "]


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def words(letters, least, most):
    return ["".join(w) for n in range(least, most + 1) for w in itertools.product(letters, repeat=n)]


def objects(members, further=()):
    """Members: (name, texts of the value, required), in their order."""
    choices = [[f"{quoted(name)}:{text}" for text in texts] + ([] if required else [None])
               for name, texts, required in members]
    return ["{" + ",".join(m for m in (*chosen, *more) if m is not None) + "}"
            for chosen in itertools.product(*choices) for more in (further or [()])]


def arrays(texts, least, most):
    return ["[" + ",".join(a) + "]" for n in range(least, most + 1) for a in itertools.product(texts, repeat=n)]


def string(pattern, **more):
    return {"type": "string", "pattern": f"^{pattern}$", **more}


AB = string("[ab]{1,2}")
AB_TEXTS = [quoted(w) for w in words("ab", 1, 2)]
SCHEMAS = [
    ({"enum": ["a", "ab", "aba", "", 1, 10, 12, True, None]}, ['"a"', '"ab"', '"aba"', '""', "1", "10", "12", "true", "null"]),
    (AB, AB_TEXTS),
    (string("[abé]*", minLength=1, maxLength=3), [quoted(w) for w in words("abé", 1, 3)]),
    (string("(ab|a)(ba)?b?"), [quoted(x + y + z) for x in ("ab", "a") for y in ("", "ba") for z in ("", "b")]),
    (string('a?"b'), ['"a\\"b"', '"\\"b"']),
    ({"type": "integer", "minimum": -2, "maximum": 12}, ["-0", *[str(i) for i in range(-2, 13)]]),
    ({"type": "integer", "exclusiveMinimum": 95, "exclusiveMaximum": 213}, [str(i) for i in range(96, 213)]),
    ({"type": ["boolean", "null"]}, ["true", "false", "null"]),
    ({"type": "array", "items": AB, "minItems": 1, "maxItems": 2}, arrays(AB_TEXTS, 1, 2)),
    ({"type": "array", "items": {"enum": [1, 12]}, "maxItems": 4}, arrays(["1", "12"], 0, 4)),
    ({"type": "array", "prefixItems": [{"const": 1}, AB], "items": False},
     ["[]", "[1]", *[f"[1,{t}]" for t in AB_TEXTS]]),
    ({"type": "array", "prefixItems": [{"const": 1}], "items": {"type": "null"}, "minItems": 2, "maxItems": 3},
     ["[1,null]", "[1,null,null]"]),
    ({"type": "object", "properties": {"a": {"enum": [1, 12]}, "b": AB, "ab": {"type": "null"}}, "required": ["b"],
      "additionalProperties": False},
     objects([("a", ["1", "12"], False), ("b", AB_TEXTS, True), ("ab", ["null"], False)])),
    ({"type": "object", "properties": {"a": {"const": 1}, "ab": {"const": 2}, "b": {"const": 3}},
      "additionalProperties": False},
     objects([("a", ["1"], False), ("ab", ["2"], False), ("b", ["3"], False)])),
    ({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2}}, "minProperties": 1,
      "additionalProperties": False},
     [t for t in objects([("a", ["1"], False), ("b", ["2"], False)]) if t != "{}"]),
    ({"anyOf": [AB, {"type": "array", "items": AB, "maxItems": 1}, string("ab{0,2}")]},
     [*AB_TEXTS, *arrays(AB_TEXTS, 0, 1), '"a"', '"ab"', '"abb"']),
    ({"type": "integer", "anyOf": [{"minimum": 9, "maximum": 11}, {"minimum": -1, "maximum": 0}]},
     ["9", "10", "11", "-1", "-0", "0"]),
    ({"allOf": [{"type": "object", "properties": {"a": {"type": "integer", "maximum": 3}}, "required": ["a"]},
                {"properties": {"a": {"minimum": 1}, "b": {"const": "a"}}, "additionalProperties": False}]},
     objects([("a", ["1", "2", "3"], True), ("b", ['"a"'], False)])),
    ({"oneOf": [{"type": "object", "properties": {"a": {"const": "a"}, "b": {"const": 1}}, "required": ["a", "b"],
                 "additionalProperties": False},
                {"type": "object", "properties": {"a": {"const": "b"}}, "required": ["a"], "additionalProperties": False}]},
     ['{"a":"a","b":1}', '{"a":"b"}']),
    ({"$defs": {"x": {"anyOf": [{"$ref": "#/$defs/y"}, {"const": 1}]}, "y": {"enum": ["ab", [1]]}}, "type": "array",
      "items": {"$ref": "#/$defs/x"}, "minItems": 2, "maxItems": 2}, arrays(['"ab"', "[1]", "1"], 2, 2)),
    ({"type": "object", "properties": {"a": {"type": "object", "properties": {"a": False, "b": {"const": None}},
                                             "additionalProperties": False}}, "required": ["a"],
      "additionalProperties": False}, ['{"a":{}}', '{"a":{"b":null}}']),
]
GBNF = [
    ('root ::= "a" ("b" | "ba"){1,3} | [^\\x00-ac-\\U0010FFFF]{2}', ["a" + "".join(p) for n in (1, 2, 3)
     for p in itertools.product(("b", "ba"), repeat=n)] + ["bb"]),
    ('root ::= x x?\nx ::= "é" | "éa" | ("10" | "12")', [a + b for a in ("é", "éa", "10", "12")
     for b in ("", "é", "éa", "10", "12")]),
    ('root ::= (("a"? "b"?){0,2} "1")', [x + y + "1" for x in ("", "a", "b", "ab") for y in ("", "a", "b", "ab")]),
]


def grammar_tool():
    program = Path(os.environ.get("TERN_TEST_GRAMMAR_TOOL") or Path(common.command()[0]).parent / "tests" / "grammar_tool")
    if not program.exists():
        raise unittest.SkipTest(f"{program} was not built")
    return str(program)


class Masks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = grammar_tool()
        cls.folder = tempfile.TemporaryDirectory()
        path = Path(cls.folder.name) / "tokenizer.json"
        cls.tokens = tool.write_vocabulary(path, PIECES)
        cls.tool = tool.Tool(program, path)

    @classmethod
    def tearDownClass(cls):
        cls.tool.close()
        cls.folder.cleanup()

    def check(self, kind, text, texts):
        self.assertEqual(self.tool.compile(kind, text), "", text)
        self.assertLessEqual(len(texts), MOST_TEXTS)
        texts = {t.encode() for t in texts}
        beginnings = {t[:i] for t in texts for i in range(len(t) + 1)}
        for beginning in sorted(beginnings):
            wanted = sum(1 << i for i, token in enumerate(self.tokens) if beginning + token in beginnings)
            wanted |= (beginning in texts) << len(self.tokens)
            mask, whole = self.tool.mask(list(beginning))
            self.assertEqual(whole, beginning in texts, (text, beginning))
            wrong = [(self.tokens + [b"</s>"])[i] for i in range(len(self.tokens) + 1) if (mask ^ wanted) >> i & 1]
            self.assertEqual((mask, wrong), (wanted, []), (text, beginning))

    def test_schemas(self):
        for schema, texts in SCHEMAS:
            with self.subTest(schema=schema):
                self.check("schema", json.dumps(schema), texts)

    def test_grammars(self):
        for text, texts in GBNF:
            with self.subTest(gbnf=text):
                self.check("gbnf", text, texts)

    def test_tokens_or_bytes(self):
        """A text that was written with longer tokens has the masks of the same bytes."""
        schema, texts = SCHEMAS[12]
        self.assertEqual(self.tool.compile("schema", json.dumps(schema)), "")
        long = {token: i for i, token in enumerate(self.tokens)}
        for text in sorted(texts):
            ids, at, data = [], 0, text.encode()
            while at < len(data):
                size = max(n for n in range(1, 6) if data[at:at + n] in long and at + n <= len(data))
                ids.append(long[data[at:at + size]])
                at += size
                self.assertEqual(self.tool.mask(ids), self.tool.mask(list(data[:at])), data[:at])


class ManyTokens(unittest.TestCase):
    """A vocabulary has tokens that are beginnings of others, and many are allowed without a look at each: the mask
    agrees with reading each token."""

    MIDDLES = ["", " ", "é", "A", "7", "-", ",", '"', "\\", "日", "\n"]
    CASES = [  # kind, text, beginnings
        ("schema", {"type": "string", "maxLength": 6}, ['"', '"a', '"ab', '"abc', '"abcd', '"éa日a', '"abcabc', '"\\\\a']),
        ("schema", {"type": "string", "pattern": "^[a-c ]{2,7}x?$"}, ['"', '"a', '"ab ', '"abcab']),
        ("schema", {"type": "string", "pattern": "^[^a-]*$"}, ['"', '"b']),
        ("schema", {"type": "string", "pattern": "^[aby ]{2,20}$"}, ['"', '"ab']),
        ("gbnf", "root ::= [a-z]{1,20} [A-Z ,.]* [a-z]*", ["", "ab", "abcabcabcabcab", "abcabcabcabcabcabc", "a,"]),
        ("schema", {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "string", "pattern": "^[a-z]*$"}]}, ['"', '"ab', '"abcd']),
        ("gbnf", 'root ::= [a-zA-Z ,.]{1,5} "\\n" [0-9a-z]* "-" .{0,4}', ["", "ab", "abca", "a\n", "a\nabc7", "a\n-", "a\n-b"]),
    ]

    def test_against_reading(self):
        program = grammar_tool()
        words_of_letters = words("abc", 1, 4)
        pieces = {w + middle + rest for w in words_of_letters[:39] for middle in self.MIDDLES for rest in ["", "a", "bc"]}
        pieces = {p.encode() for p in pieces | set(words_of_letters)} | {b"ab" + "日".encode()[:2], "é".encode()[1:] + b"a"}
        pieces |= {b"y" + w.encode() for w in words_of_letters[:39]}  # nothing but letters
        pieces |= {b"z" + w.encode() + "é".encode()[1:] for w in words_of_letters[:39]}  # of no text
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.json"
            tokens = tool.write_vocabulary(path, pieces)
            masks = tool.Tool(program, path)
            for kind, text, beginnings in self.CASES:
                self.assertEqual(masks.compile(kind, text if kind == "gbnf" else json.dumps(text)), "")
                for beginning in beginnings:
                    ids = list(beginning.encode())
                    mask = masks.mask(ids)[0]
                    wrong = [token for i, token in enumerate(tokens) if (mask >> i & 1) != self.reads(masks, [*ids, i])]
                    self.assertEqual(wrong, [], (text, beginning))
            masks.close()

    def reads(self, masks, ids):
        try:
            masks.mask(ids)
        except ValueError as error:
            self.assertIn("does not follow", str(error))
            return False
        return True


if __name__ == "__main__":
    common.main()
