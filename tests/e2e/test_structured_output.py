# SPDX-License-Identifier: Apache-2.0
"""tern run --json-schema and --grammar: answers have the form, alone and beside others the same."""

import copy
import json
import re
import tempfile
import unittest
from pathlib import Path

import common
import json_schema
import receipt_tools

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
SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "receipt.schema.json"
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
        """Returns the lines of several answers; the last line is the run's."""
        result = common.tern("run", "-m", common.SMALL_MODEL, "--json", "--temperature", 1.5, "-n", 200, *args)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        *answers, run = map(json.loads, result.stdout.decode().splitlines())
        self.assertEqual(run["answers"], len(answers))
        return answers

    def run_line(self, *args):
        """One answer, which is one line."""
        return common.tern_json("run", "-m", common.SMALL_MODEL, "--temperature", 1.5, "-n", 200, *args)

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
            alone = self.run_line("--json-schema", self.schema, "-p", prompt, "--threads", 1)
            self.assertEqual((alone["tokens"], alone["digest"]), (other["tokens"], other["digest"]))

    def test_greedy_equals_all_logits(self):
        """The certified head proves its choice among the allowed tokens: the same as with all logits."""
        args = ("--json-schema", self.schema, "--prompts-file", self.prompts, "--temperature", 0)
        self.assertEqual([a["tokens"] for a in self.run_lines(*args)],
                         [a["tokens"] for a in self.run_lines(*args, "--exact-head")])

    def test_an_answer_that_is_cut_off(self):
        result = common.tern("run", "-m", common.SMALL_MODEL, "--json-schema", self.schema, "-p", "A", "-n", 3)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"the answer ended (length) before its text was whole", result.stderr)

    def test_refusals(self):
        wrong = Path(self.folder.name) / "wrong.json"
        wrong.write_text('{"properties": {"a": {"type": "strin"}}}', encoding="utf-8")
        for args, status, message in (
                (["--json-schema", wrong], 1, 'at "/properties/a": type: a type that does not exist'),
                (["--grammar", wrong], 1, "line 1: a rule begins with NAME ::="),
                (["--json-schema", self.folder.name + "/none"], 1, "none"),
                (["--json-schema", self.schema, "--grammar", self.grammar], 2, "not together with"),
                (["--json-schema", self.schema, "--ignore-eos"], 2, "not together with"),
                (["--json-schema", self.schema, "--receipt", "x", "--rounds", 2], 2, "--receipt is of one answer: not with")):
            with self.subTest(args=args):
                result = common.tern("run", "-m", common.SMALL_MODEL, "-p", "A", *args)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertIn(message, result.stderr.decode())
                self.assertEqual(len(result.stderr.decode().splitlines()), 1)

    def test_what_a_mask_cannot_enforce(self):
        """It is told before the answer, and checked after it."""
        path = Path(self.folder.name) / "different.json"
        item = {"type": "integer", "minimum": 0, "maximum": 1}
        for least, status, words in ((3, 1, 'the value at "" does not satisfy uniqueItems at ""'), (0, 0, "")):
            most = 4 if least else 0
            schema = {"type": "array", "items": item, "uniqueItems": True, "minItems": least, "maxItems": max(most, 2)}
            path.write_text(json.dumps(schema if least else {**schema, "items": {"type": "string", "maxLength": 9}}), encoding="utf-8")
            result = common.tern("run", "-m", common.SMALL_MODEL, "-p", "A", "-n", 99, "--json-schema", path)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertIn('at "": uniqueItems: of values that are not listed', result.stderr.decode())
            self.assertIn(words, result.stderr.decode())

    def test_open_objects(self):
        """Objects have the properties that the schema names, unless --open-objects is given."""
        path = Path(self.folder.name) / "open.json"
        schema = {"type": "object", "properties": {"a": {"type": "null"}}}
        path.write_text(json.dumps(schema), encoding="utf-8")
        args = ("--json-schema", path, "-p", "A", "--seed", 3)
        self.assertIn(json.loads(self.run_line(*args)["text"]), ({}, {"a": None}))
        with_others = common.tern("run", "-m", common.SMALL_MODEL, "--temperature", 1.5, "-n", 40, *args, "--open-objects")
        self.assertRegex(with_others.stdout, rb'^\{\s*"(?!a")')
        receipt, _ = self.receipt_of("--json-schema", path, "-n", 40, "--open-objects", status=with_others.returncode)
        self.assertNotIn("closed", receipt["form"])
        self.assertEqual(self.verify(receipt, "--replay").returncode, 0)

    def test_one_line(self):
        """An answer in a form is one line, with the keys of any answer and `whole`."""
        free = common.tern_json("run", "-m", common.SMALL_MODEL, "-p", "A person:", "-n", 3)
        for option, file in (("--json-schema", self.schema), ("--grammar", self.grammar)):
            line = self.run_line(option, file, "-p", "A person:")
            self.assertEqual(set(line), {*free, "whole"})
            self.assertTrue(line["whole"])
            cut = common.tern("run", "-m", common.SMALL_MODEL, "-p", "A", "-n", 1, option, file, "--json")
            self.assertEqual((cut.returncode, json.loads(cut.stdout)["whole"]), (1, False))

    def test_prompt_cache(self):
        """The part of the prompt that a session file has is not computed again, even in a form."""
        args = ("--grammar", self.grammar, "-p", "A person, who", "--prompt-cache", Path(self.folder.name) / "session")
        first, again = self.run_line(*args), self.run_line(*args)
        self.assertEqual((first["tokens"], first["digest"]), (again["tokens"], again["digest"]))
        self.assertEqual((first["reused_tokens"], again["reused_tokens"]), (0, again["prompt_tokens"] - 1))
        self.assertEqual(again["kv_misses"], 1 + len(again["tokens"]))

    # ---- receipts

    def receipt_of(self, *args, status=0):
        path = Path(self.folder.name) / "receipt.json"
        result = common.tern("run", "-m", common.SMALL_MODEL, "-p", "A person:", "--temperature", 1.5, "--seed", 5, *args,
                             "--receipt", path, "--force")
        self.assertEqual(result.returncode, status, result.stderr.decode())
        receipt = json.loads(path.read_text(encoding="utf-8"))
        path.unlink()
        return receipt, result.stdout.decode()

    def verify(self, receipt, *args):
        path = Path(self.folder.name) / "verified.json"
        path.write_text(json.dumps(receipt), encoding="utf-8")
        return common.tern("verify", path, "--model-dir", Path(common.SMALL_MODEL).parent, *args)

    def test_receipt(self):
        """The receipt has the form as it was given, and a replay masks by that form, on other kernels too."""
        for option, file, kind in (("--json-schema", self.schema, "schema"), ("--grammar", self.grammar, "grammar")):
            with self.subTest(kind=kind):
                receipt, text = self.receipt_of(option, file, "-n", 200)
                closed = {"closed": True} if kind == "schema" else {}
                self.assertEqual(receipt["form"], {"kind": kind, "text": file.read_text(encoding="utf-8"), **closed})
                self.assertEqual(list(json_schema.problems(receipt, json.loads(SCHEMA.read_text()))), [])
                line = self.run_line(option, file, "-p", "A person:", "--seed", 5)
                self.assertEqual(line["tokens"], receipt["output"]["ids"])
                self.assertEqual(line["text"] + "\n", text)
                for args in ((), ("--replay",), ("--replay", "--isa", "scalar", "--threads", 1)):
                    self.assertEqual(self.verify(receipt, *args).returncode, 0)

    def test_receipt_of_another_form(self):
        receipt, _ = self.receipt_of("--json-schema", self.schema, "-n", 200)
        other = copy.deepcopy(receipt)
        other["form"]["text"] = other["form"]["text"].replace('"age"', '"size"')
        unsealed = self.verify(other)
        self.assertEqual(unsealed.returncode, 1)
        self.assertIn(b"digest", unsealed.stderr)
        for change, found in ((other, b"output.ids["), ({k: v for k, v in receipt.items() if k != "form"}, b"output.ids["),
                              ({**receipt, "form": {"kind": "grammar", "text": "root"}}, b"form.text")):
            result = self.verify(receipt_tools.seal(copy.deepcopy(change)), "--replay")
            self.assertEqual(result.returncode, 1)
            self.assertIn(found, result.stderr)

    def test_receipt_of_an_answer_that_is_cut_off(self):
        receipt, _ = self.receipt_of("--json-schema", self.schema, "-n", 3, status=1)
        self.assertEqual((receipt["output"]["stop"], receipt["output"]["max_tokens"]), ("length", 3))
        self.assertEqual(self.verify(receipt, "--replay").returncode, 0)

    def test_older_receipt(self):
        """Answers in a form once had receipts of the kind that a server's answers have; they stay good."""
        receipt = json.loads((Path(__file__).parent / "older_form_receipt.json").read_text(encoding="utf-8"))
        self.assertEqual(receipt["$schema"], "urn:tern:answer:1.0.0")
        self.assertEqual(self.verify(receipt, "--replay").returncode, 0)
        receipt["output"]["ids"][0] += 1
        self.assertEqual(self.verify(receipt).returncode, 1)

    def test_receipt_with_stops(self):
        """Stop tokens, and no token at all, are part of a receipt in a form as of any other."""
        receipt, _ = self.receipt_of("--grammar", self.grammar, "-n", 200)
        stop = receipt["output"]["ids"][2]
        first = receipt["output"]["ids"].index(stop)
        stopped, _ = self.receipt_of("--grammar", self.grammar, "-n", 200, "--stop-token", stop, status=1)
        self.assertEqual((stopped["output"]["stop"], stopped["output"]["ids"]), ("stop", receipt["output"]["ids"][:first]))
        empty, _ = self.receipt_of("--grammar", self.grammar, "-n", 0, status=1)
        for one in (stopped, empty):
            self.assertEqual(self.verify(one, "--replay").returncode, 0)

    def test_signed_receipt(self):
        key = Path(self.folder.name) / "key"
        self.assertEqual(common.tern("keygen", key).returncode, 0)
        receipt, _ = self.receipt_of("--grammar", self.grammar, "--sign-key", key)
        self.assertEqual(self.verify(receipt, "--public-key", f"{key}.pub").returncode, 0)
        receipt["form"]["text"] += "# more"
        self.assertEqual(self.verify(receipt_tools.seal(receipt), "--public-key", f"{key}.pub").returncode, 1)


if __name__ == "__main__":
    common.main()
