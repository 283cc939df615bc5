# SPDX-License-Identifier: Apache-2.0
"""Forms of calls are taken from chat templates of many kinds: what a template writes of random calls is read back, in
any split, and the grammar of the answer allows it."""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import suite  # noqa: E402

TOOL = MODEL = ""
HEAD = """{% if tools %}Helpers: {{ tools | tojson }}
{% endif %}{% for m in messages %}{% if m.role == 'assistant' %}<<A>>{{ m.content or '' }}"""
TAIL = """<<E>>
{% elif m.role == 'tool' %}<<R>>{{ m.content }}<<E>>
{% else %}<<U>>{{ m.content }}<<E>>
{% endif %}{% endfor %}{% if add_generation_prompt %}<<A>>{% endif %}"""
CALLS = "{% for c in m.tool_calls or [] %}"
PAIRS = "{% for k, v in c.function.arguments | items %}"
VALUE = "{{ v if v is string else v | tojson }}"
NAME, JSON = "{{ c.function.name }}", "{{ c.function.arguments | tojson }}"


def sections(open_words, one, separator, close_words):
    last = "{{ '' if loop.last else " + json.dumps(separator) + " }}"
    return "{% if m.tool_calls %}" + open_words + CALLS + one + last + "{% endfor %}" + close_words + "{% endif %}"


# Each in words of its own, after a kind that models have.
TEMPLATES = {
    "object in a tag": CALLS + '<do>{"tool": "' + NAME + '", "with": ' + JSON + "}</do>{% endfor %}",
    "list in a tag": sections("<<do>>[", '{"tool": "' + NAME + '", "with": ' + JSON + "}", ", ", "]<</do>>"),
    "name as a key": sections("<|do|>[", '{"' + NAME + '": ' + JSON + "}", ", ", "]<|done|>"),
    "code block": sections("<|dos|>", "<|do|>function<|of|>" + NAME + "\n```json\n" + JSON + "\n```<|/do|>", "\n", "<|/dos|>"),
    "list that one sign ends": sections("<<do>>[", '{"tool": "' + NAME + '", "with": ' + JSON + "}", ", ", "]"),
    "ids": sections("<|dos|>", "<|do|>{{ c.id }}<|name|>" + NAME + "<|with|>" + JSON + "<|/do|>", "", "<|/dos|>"),
    "numbers": sections("<|DO|>[", '\n  {"number": "{{ loop.index0 }}", "tool": "' + NAME + '", "with": ' + JSON + "}", ",", "\n]<|/DO|>"),
    "name in the id": sections("<|dos|>", "<|do|>{{ c.id }}<|with|>" + JSON + "<|/do|>", "", "<|/dos|>"),
    "one alone": "{% if m.tool_calls %}{% set c = m.tool_calls[0] %} to=" + NAME + "<|with|>" + JSON + "{% endif %}",
    "parameters": CALLS + "<do>\n<tool=" + NAME + ">\n" + PAIRS + "<with={{ k }}>\n" + VALUE + "\n</with>\n{% endfor %}</tool>\n</do>{% endfor %}",
    "keys and values": CALLS + "<do>" + NAME + "\n" + PAIRS + "<k>{{ k }}</k>\n<v>" + VALUE + "</v>\n{% endfor %}</do>\n{% endfor %}",
    "attributes": sections("<dos>\n", '<do name="' + NAME + '">\n' + PAIRS + '<with name="{{ k }}" text="{{ \'yes\' if v is string else \'no\' }}">'
                           + VALUE + "</with>\n{% endfor %}</do>", "\n", "\n</dos>"),
    "values between marks": CALLS + "<do>call:" + NAME + "{{ '{' }}" + PAIRS + "{{ k }}:<esc>" + VALUE + "<esc>{{ ',' if not loop.last }}{% endfor %}}</do>{% endfor %}",
    "as in Python": sections("<|do|>[", NAME + "(" + PAIRS + "{{ k }}={{ v | tojson if v is string else v }}{{ ', ' if not loop.last }}{% endfor %})", ", ", "]<|/do|>"),
    "names without quotes": CALLS + "<|do>call:" + NAME + "{{ '{' }}" + PAIRS + "{{ k }}:{{ '<|\"|>' + v + '<|\"|>' if v is string else v | tojson }}{{ ',' if not loop.last }}"
                            "{% endfor %}}<do|>{% endfor %}",
    "thoughts before": "<think>\n\n</think>\n\n" + CALLS + '<do>{"tool": "' + NAME + '", "with": ' + JSON + "}</do>{% endfor %}",
    "tools are not told": CALLS + '<do>{"tool": "' + NAME + '", "with": ' + JSON + "}</do>{% endfor %}",
    "calls are not written": "",
    "no tools": "",
}
RAW = {"parameters", "keys and values", "attributes", "values between marks", "names without quotes"}
TYPES = {"city": "string", "n": "integer", "x": "number", "sure": "boolean", "list": "array", "deep": "object"}
OPTIONAL = {"note": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "kind": {"enum": ["a", "b c"]}}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Does it.", "parameters": {
        "type": "object", "properties": {k: {"type": t} for k, t in TYPES.items()} | OPTIONAL, "required": ["city"], "additionalProperties": False}}}
    for name in ("get.it", "put-it_2")
]
TEXTS = ("", "Oslo", 'say "yes"', "it's", "two\nlines\n", "</tool_call>", "</do>", "</with>x", "{\"a\": 1}", "[1]", "7", "true", "null", "ü 日本 🙂", "a, b=c:d",
         "\\n \\u0041 \\", "<", "<|", "  spaced  ", "tab\t", "x" * 300, "<tool_call>")


def value(r, kind, depth=0):
    if kind == "string":
        return r.choice(TEXTS) + r.choice(("", "", r.choice(TEXTS)))
    if kind == "integer":
        return r.choice((0, -1, 71, 10**30, -(2**70)))
    if kind == "number":
        return r.choice((0.5, -2.25, 3, 1e-7))
    if kind == "boolean":
        return r.random() < 0.5
    if depth > 2:
        return None
    inner = [value(r, r.choice(list(TYPES.values())), depth + 1) for _ in range(r.randint(0, 3))]
    return inner if kind == "array" else {r.choice("abc") + str(i): v for i, v in enumerate(inner)}


def arguments(r):
    found = {k: value(r, t) for k, t in TYPES.items() if k == "city" or r.random() < 0.6}
    return found | ({"kind": "b c"} if r.random() < 0.3 else {})


class CallForms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.process = subprocess.Popen([TOOL, MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.process.wait)
        cls.addClassCleanup(cls.process.stdin.close)
        cls.addClassCleanup(cls.process.stdout.close)
        cls.paths = {}
        for i, (name, calls) in enumerate(TEMPLATES.items()):
            head = HEAD.replace("Helpers: {{ tools | tojson }}", "") if name in ("tools are not told", "no tools") else HEAD
            cls.paths[name] = Path(folder.name) / f"{i}.jinja"
            cls.paths[name].write_text(head + calls + TAIL)
        cls.paths["channels"] = ROOT / "tests/templates/channels.jinja"

    def ask(self, name, **job):
        line = {"template": str(self.paths[name]), "tools": TOOLS, **job}
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ids(self, name, calls):
        return [f"functions.{c}:{i}" if name == "name in the id" else f"call{i:05d}" for i, c in enumerate(calls)]

    def write(self, name, calls, **job):
        ids = self.ids(name, [c for c, _ in calls])
        listed = [{"id": i, "type": "function", "function": {"name": c, "arguments": a}} for i, (c, a) in zip(ids, calls)]
        return self.ask(name, calls=listed, **job)

    def test_each_template_has_a_form_of_its_own(self):
        for name in TEMPLATES:
            form = self.ask(name)["form"]
            with self.subTest(name=name):
                self.assertEqual(form["unwritten"], name in ("calls are not written", "no tools"))
                self.assertEqual(form["untold"], name in ("tools are not told", "calls are not written", "no tools"))
                self.assertEqual(form["single"], name == "one alone")
                self.assertEqual(form["ids"], {"name in the id": 2}.get(name, 0))
                self.assertEqual(form["writing"], 2 if name in RAW - {"names without quotes"} else 1 if name in ("as in Python", "names without quotes") else 0)

    def test_tags_are_not_cut(self):
        """Words of a form begin and end where tags do, so that no other text begins like one."""
        for name, part, words in (("parameters", "middle", ">"), ("parameters", "text_close", "\n</with>"), ("attributes", "section_open", "<dos>"),
                                  ("attributes", "close", "\n</do>"), ("list in a tag", "section_open", "<<do>>["), ("numbers", "section_close", "]<|/DO|>")):
            with self.subTest(name=name, part=part):
                self.assertEqual(self.ask(name)["form"][part], words)

    def test_what_was_written_is_read(self):
        """Random calls, hard values: all come back, in the same order, whatever the split."""
        r = random.Random(7)
        for name in TEMPLATES:
            if name in ("calls are not written", "no tools"):
                continue
            for _ in range(12):
                n = 1 if name == "one alone" else r.randint(1, 3)
                calls = [(r.choice(TOOLS)["function"]["name"], arguments(r)) for _ in range(n)]
                if name in RAW:  # texts stand as they are: they cannot have the words that end them
                    ends = ("</with", "</v>", "<esc>", '<|"|>')
                    calls = [(c, {k: v for k, v in a.items() if not any(e in json.dumps(v) for e in ends)}) for c, a in calls]
                got = self.write(name, calls, split=r.randint(1, 9))
                with self.subTest(name=name, calls=calls, written=got.get("written")):
                    self.assertEqual([c["name"] for c in got["calls"]], [c for c, _ in calls])
                    self.assertEqual([json.loads(c["arguments"]) for c in got["calls"]], [a for _, a in calls])
                    self.assertTrue(all(c["ended"] for c in got["calls"]))

    def test_the_grammar_allows_what_was_written(self):
        """Nested values of these two kinds are written as JSON by answers, and in another way by templates."""
        r = random.Random(8)
        for name in set(TEMPLATES) - {"calls are not written", "no tools", "as in Python", "names without quotes", "values between marks"}:
            for k in range(3):
                n = 1 if name == "one alone" else 1 + k % 2
                calls = [("get.it", {"city": r.choice(("Oslo", "a \"b\" ü", "<x>\n")), "n": k, "sure": k % 3 == 0, "list": [1, "b"], "kind": "b c"}) for _ in range(n)]
                got = self.write(name, calls, split=100)
                with self.subTest(name=name, written=got["written"]):
                    self.assertTrue(got["begins"])

    def test_the_grammar_refuses_what_the_schema_does(self):
        for name in ("object in a tag", "parameters", "keys and values", "attributes", "code block"):
            for wrong in ({"n": 1}, {"city": "x", "n": "seven"}, {"city": "x", "kind": "c"}, {"city": "x", "other": 1}, {"city": "x", "sure": 3}):
                with self.subTest(name=name, wrong=wrong):
                    self.assertFalse(self.write(name, [("get.it", wrong)], split=9)["whole"])

    def test_the_forms_of_python_and_of_marks(self):
        for name, text, wanted in (
            ("as in Python", "<|do|>[get.it(city=\"a, b\", n=7, sure=True), put-it_2(city=\"\")]<|/do|>", [{"city": "a, b", "n": 7, "sure": True}, {"city": ""}]),
            ("names without quotes", '<|do>call:get.it{city:<|"|>say "x" {y}<|"|>,n:7,list:[1,<|"|>b<|"|>]}<do|>', [{"city": 'say "x" {y}', "n": 7, "list": [1, "b"]}]),
            ("values between marks", "<do>call:get.it{city:<esc>7<esc>,n:<esc>7<esc>}</do>", [{"city": "7", "n": 7}]),
        ):
            for split in (1, 2, 50):
                got = self.ask(name, text=text, split=split)
                with self.subTest(name=name, split=split):
                    self.assertEqual([json.loads(c["arguments"]) for c in got["calls"]], wanted)
                    if "[1," not in text:
                        self.assertTrue(got["whole"], got)

    def test_messages_in_channels(self):
        """A call is a message to a function: in the template's order, in the models' own, and after other messages."""
        form = self.ask("channels")["form"]
        self.assertEqual([form[k] for k in ("single", "untold", "unwritten", "writing")], [True, False, False, 0])
        r = random.Random(9)
        for _ in range(12):
            name, given = r.choice(TOOLS)["function"]["name"], arguments(r)
            got = self.write("channels", [(name, given)], split=r.randint(1, 9))
            self.assertEqual([(c["name"], json.loads(c["arguments"]), c["ended"]) for c in got["calls"]], [(name, given, True)], got)
        thought, call = "<|channel|>analysis<|message|>to=functions.<|end|><|start|>assistant", '{"city": "Oslo"}<|call|>'
        for head in ("<|channel|>commentary to=functions.get.it <|constrain|>json<|message|>", " to=functions.get.it<|channel|>commentary json<|message|>"):
            for split in (1, 5, 200):
                got = self.ask("channels", text=thought + head + call, split=split)
                self.assertEqual([(c["name"], c["arguments"], c["ended"]) for c in got["calls"]], [("get.it", '{"city": "Oslo"}', True)], got)
                self.assertEqual(got["text"], "")
        for text, allowed in (('to=functions.get.it <|constrain|>json<|message|>{"city": "Oslo"}', True), ("to=functions.other", False),
                              ('to=functions.get.it <|constrain|>json<|message|>{"n": 1}', False)):
            self.assertEqual(self.ask("channels", text=text)["whole"], allowed, text)

    def test_escapes_of_python(self):
        """They mean what they mean in Python; a text whose digits are none is told as far as it came."""
        for written, text in ((r"\x41\x7e\xe9", "A~é"), (r"\u00e9\u65e5", "é日"), (r"\U0001F642\U0010FFFF\U00010000", "🙂\U0010ffff\U00010000"),
                              (r"\n\r\t\b\f\a\v\0", "\n\r\t\b\f\a\v\0"), (r"\'\"\\\/", "'\"\\/"), (r"\q\é", r"\q\é"), ("a\\\nb", "ab")):  # fmt: skip
            for quote in "'\"":
                got = self.ask("as in Python", text=f"<|do|>[get.it(city={quote}{written}{quote})]<|/do|>", split=3)
                with self.subTest(written=written, quote=quote):
                    self.assertEqual([json.loads(c["arguments"]) for c in got["calls"]], [{"city": text}])
        for written in (r"\xg1", r"\x4", r"\u00e", r"\U0001F64"):
            got = self.ask("as in Python", text=f'<|do|>[get.it(city="{written}")]<|/do|>', split=3)
            self.assertEqual([c["arguments"] for c in got["calls"]], ['{"city": "'], written)

    def test_texts_stay_texts(self):
        """What a schema calls a text is one, even if it looks like a number; what may be null may be null."""
        for name in RAW - {"names without quotes"}:
            for text in ("7", "true", "null", '"x"', "[1]", "{}", "None"):
                got = self.write(name, [("get.it", {"city": text})], split=3)
                self.assertEqual(json.loads(got["calls"][0]["arguments"]), {"city": text}, (name, got["written"]))
        got = self.write("parameters", [("get.it", {"city": "x", "note": None})], split=3)
        self.assertEqual(json.loads(got["calls"][0]["arguments"]), {"city": "x", "note": None})

    def test_cut_and_wrong(self):
        """A call that does not end is told as far as it came; something else is text."""
        for name, text, calls, said in (
            ("parameters", "Hm. <do>\n<tool=get.it>\n<with=city>\nOs", [("get.it", '{"city": "Os', False)], "Hm."),
            ("parameters", "<do> it <x>", [], "<do> it <x>"),
            ("keys and values", "<do>get.it\n</do>", [("get.it", "{}", True)], ""),
            ("code block", "So.<|dos|><|do|>function<|of|>get.it\n```json\n{\"city\": \"x\"}\n```<|/do|><|/dos|> Done", [("get.it", '{"city": "x"}', True)], "So. Done"),
            ("list in a tag", '<<do>>[{"tool": "get.it", "with": {}}, {"to', [("get.it", "{}", True)], ""),
        ):
            for split in (1, 3, 100):
                got = self.ask(name, text=text, split=split)
                with self.subTest(name=name, text=text, split=split):
                    self.assertEqual([(c["name"], c["arguments"], c["ended"]) for c in got["calls"]], calls)
                    self.assertEqual(got["text"].strip(), said)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--model", required=True)
    options, rest = parser.parse_known_args()
    TOOL, MODEL = options.tool, options.model
    sys.argv[1:] = rest
    suite.main()
