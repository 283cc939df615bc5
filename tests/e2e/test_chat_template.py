# SPDX-License-Identifier: Apache-2.0
"""tern chat-template: what a model sees of a conversation."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

import common
import gguf_edit
import tool_model
from common import tern, tern_json

USER = {"role": "user", "content": "What is 2+2?"}


class ChatTemplate(common.TernTest):
    def show(self, talk, *options, **kwargs):
        return tern("chat-template", "--messages", "-", *options, stdin=json.dumps(talk).encode(), **kwargs)

    def shown(self, talk, *options):
        result = self.show(talk, *options, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def with_template(self, folder, text):
        file = gguf_edit.read(common.small_model())
        file["tokenizer.chat_template"] = gguf_edit.string(text)
        path = Path(folder) / "templated.gguf"
        path.write_bytes(file.to_bytes())
        return path

    def test_text_ids_and_parts(self):
        text = self.show([USER]).stdout.decode()
        said = self.shown({"messages": [USER]})
        self.assertTrue(text.endswith("Q: What is 2+2? A:"))
        self.assertEqual((said["text"], said["chat_format"]), (text, "template"))
        self.assertEqual([p["from"] for p in said["parts"]], ["template", 0, "template"])
        self.assertEqual("".join(p["text"] for p in said["parts"]), text)
        self.assertEqual(self.show([USER], "--ids").stdout.decode().split(), [str(i) for i in said["tokens"]])
        run = tern_json("run", "--chat", "-p", USER["content"], "-n", 1)
        self.assertEqual(run["prompt_tokens"], len(said["tokens"]))

    def test_the_built_in_format_has_the_same_ids(self):
        talk = [USER, {"role": "assistant", "content": "4"}, {"role": "user", "content": " And </s> 3+3? "}]
        for model, name in ((common.small_model(), "qa"), ("llama-tiny-f16", "chatml"), ("bitnet-tiny", "bitnet")):
            with tempfile.TemporaryDirectory() as folder:
                path = model if name == "qa" else common.synth(model, folder)
                own, built = (self.shown(talk, "-m", path, "--chat-template", n) for n in ("auto", name))
                self.assertEqual((own["tokens"], own["text"]), (built["tokens"], built["text"]))
                self.assertEqual((own["chat_format"], built["chat_format"]), ("template", name))

    def test_control_tokens_made_of_roles(self):
        """'<|' + role + '|>' is a control token for a role that templates know, and for no other one."""
        template = "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}"
        for role, n in (("user", 1), ("robot", 0)):
            with tempfile.TemporaryDirectory() as folder:
                path, mark = Path(folder) / "roles.gguf", f"<|{role}|>"
                token, _ = tool_model.write(path, template, (mark, 3))
                said = self.shown([{"role": role, "content": mark}], "-m", path)
                self.assertEqual((said["text"].count(mark), said["tokens"].count(token)), (2, n), said)

    def test_tools_and_variables(self):
        template = "{{ tools | tojson }}{% for m in messages %}{{ m.role }}:{{ m.content or m.tool_calls[0].function.arguments.n }};{% endfor %}{{ more }}"
        call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"n": 5}'}}
        messages = [USER, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": "6", "tool_call_id": "a"}]
        with tempfile.TemporaryDirectory() as folder:
            model = self.with_template(folder, template)
            talk = {"messages": messages, "tools": [{"name": "f"}], "variables": {"more": "M"}, "add_generation_prompt": False}
            said = self.shown(talk, "-m", model)
            self.assertTrue(said["text"].endswith('[{"name": "f"}]user:What is 2+2?;assistant:5;tool:6;M'), said["text"])
            self.assertEqual(said["parts"][-1], {"from": "variables", "text": "M"})
        self.assert_one_line_error(self.show(talk, "--chat-template", "chatml"), contains=["chatml", "no place for tools"])

    def test_what_is_left_out_is_said(self):
        said = self.show([{"role": "system", "content": "Be kind."}, USER])
        self.assertEqual(said.returncode, 0)
        self.assertIn("message 0, of the role system", said.stderr.decode())
        self.assertEqual(self.show([USER]).stderr, b"")

    def test_refusals(self):
        for talk, part in (({}, "neither an array of messages"), ([], "neither an array of messages"), ([{"role": 3}], "role is not text"),
                           ([{"content": "x"}], "no role"), ([{"role": "user", "content": [1]}], "content is not text")):
            with self.subTest(talk=talk):
                self.assert_one_line_error(self.show(talk), contains=[part])
        self.assert_one_line_error(tern("chat-template", "--messages", "-", stdin=b"{"), contains=["line 1"])
        self.assert_one_line_error(tern("chat-template"), 2, ["--messages"])
        self.assert_one_line_error(self.show([USER], "--ids", "--json"), 2, ["--json"])
        self.assert_one_line_error(self.show({"messages": [USER], "tools": {}}), contains=["tools"])
        with tempfile.TemporaryDirectory() as folder:
            model = self.with_template(folder, "\n{{ raise_exception('no ' + messages[0].role) }}")
            self.assert_one_line_error(self.show([USER], "-m", model), contains=["the chat template refuses: no user"])
            model = self.with_template(folder, "\n{{ messages | tohtml }}")
            self.assert_one_line_error(self.show([USER], "-m", model), contains=["line 2", "'tohtml'", "--chat-template NAME"])


if __name__ == "__main__":
    common.main()
