# SPDX-License-Identifier: Apache-2.0
"""tern run --json-schema and --grammar: answers have the form, alone and beside others the same."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import common
import json_schema

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
GRAMMAR = 'root ::= word ("-" word){2,4} "."\nword ::= [a-z]{2,7}\n'
PROMPTS = ["A person:", "Once upon a time", "The first", "1, 2, 3"]


class Structured(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        cls.schema, cls.grammar, cls.prompts = folder / "schema.json", folder / "words.gbnf", folder / "prompts"
        tags = {**PERSON["properties"]["tags"], "maxItems": 3}  # json_schema.py does not know it
        schema = {**PERSON, "properties": {**PERSON["properties"], "tags": tags}}
        cls.schema.write_text(json.dumps(schema), encoding="utf-8")
        cls.grammar.write_text(GRAMMAR, encoding="utf-8")
        cls.prompts.write_text("".join(f"{p}\n" for p in PROMPTS), encoding="utf-8")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_lines(self, *args):
        result = common.tern("run", "-m", common.SMALL_MODEL, "--json", "--temperature", 1.5, "-n", 200, *args)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return [json.loads(line) for line in result.stdout.decode().splitlines()][:-1]

    def test_every_answer_has_the_form(self):
        for line in self.run_lines("--json-schema", self.schema, "--prompts-file", self.prompts):
            value = json.loads(line["text"])
            self.assertEqual(list(json_schema.problems(value, PERSON)), [])
            self.assertLessEqual(len(value["tags"]), 3)
            self.assertEqual((line["whole"], line["stop"]), (True, "end"))
        for line in self.run_lines("--grammar", self.grammar, "--prompts-file", self.prompts):
            self.assertRegex(line["text"], re.compile(r"\A[a-z]{2,7}(-[a-z]{2,7}){2,4}\.\Z"))

    def test_alone_and_beside_others(self):
        together = self.run_lines("--json-schema", self.schema, "--prompts-file", self.prompts)
        for prompt, other in zip(PROMPTS, together):
            alone, = self.run_lines("--json-schema", self.schema, "-p", prompt, "--threads", 1)
            self.assertEqual((alone["tokens"], alone["digest"]), (other["tokens"], other["digest"]))

    def test_greedy_equals_all_logits(self):
        """The certified head proves its choice among the allowed tokens: the same as with all logits."""
        args = ("--json-schema", self.schema, "--prompts-file", self.prompts, "--temperature", 0)
        self.assertEqual([a["tokens"] for a in self.run_lines(*args)],
                         [a["tokens"] for a in self.run_lines(*args, "--exact-head")])

    def test_an_answer_that_is_cut_off(self):
        result = common.tern("run", "-m", common.SMALL_MODEL, "--json-schema", self.schema, "-p", "A", "-n", 3)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"prompt 1: the answer ended (length) before its text was whole", result.stderr)

    def test_refusals(self):
        wrong = Path(self.folder.name) / "wrong.json"
        wrong.write_text('{"properties": {"a": {"multipleOf": 2}}}', encoding="utf-8")
        for args, status, message in (
                (["--json-schema", wrong], 1, 'at "/properties/a": multipleOf: this keyword is not supported'),
                (["--grammar", wrong], 1, "line 1: a rule begins with NAME ::="),
                (["--json-schema", self.folder.name + "/none"], 1, "none"),
                (["--json-schema", self.schema, "--grammar", self.grammar], 2, "not together with"),
                (["--json-schema", self.schema, "--ignore-eos"], 2, "not together with"),
                (["--json-schema", self.schema, "--receipt", "x"], 2, "--receipt is of one answer without a form")):
            with self.subTest(args=args):
                result = common.tern("run", "-m", common.SMALL_MODEL, "-p", "A", *args)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertIn(message, result.stderr.decode())
                self.assertEqual(len(result.stderr.decode().splitlines()), 1)


if __name__ == "__main__":
    common.main()
