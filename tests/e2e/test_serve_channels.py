# SPDX-License-Identifier: Apache-2.0
"""tern serve: models that answer with messages in channels, as gpt-oss does. Thinking, text and calls are told apart, and
conversations with them are written back in the template's form."""

import json
import tempfile
from pathlib import Path

import common
import tool_model
from serving import Server
from test_serve import QUESTION, Served
from test_serve_thinking import streamed_parts

MARKS = [f"<|{name}|>" for name in ("start", "channel", "message", "end", "constrain", "call", "return")]
PROMPT = "{{- '<|start|>assistant' if add_generation_prompt -}}"
TEMPLATE = (common.ROOT / "tests/templates/channels.jinja").read_text()
USER = [{"role": "user", "content": QUESTION}]
SCHEMA = {"type": "object", "properties": {"sure": {"type": "boolean"}, "n": {"enum": [1, 22]}}, "required": ["sure", "n"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("look-up", "add_2")]


class Channels(Served):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = Path(folder.name) / "channels.gguf"
        opened = PROMPT.replace("assistant'", "assistant' + ('<|channel|>analysis<|message|>' if open else '')")
        assert PROMPT in TEMPLATE
        tool_model.write(path, TEMPLATE.replace(PROMPT, opened), *((mark, 3) for mark in MARKS))
        cls.server = Server("-m", path, *cls.options)
        cls.addClassCleanup(cls.server.stop)
        cls.ids = {mark: cls.server.post("/tokenize", content=mark, parse_special=True).json()["tokens"][0] for mark in MARKS}

    def ask(self, path="/v1/chat/completions", **fields):
        reply = self.server.post(path, **{"max_tokens": 40, "temperature": 1.2, "messages": USER} | fields)
        self.assertEqual(reply.status, 200, reply.body)
        return reply

    def written(self, messages, **fields):
        return self.server.post("/apply-template", messages=messages, **fields).json()["prompt"]

    def test_thinking_is_told_apart(self):
        """Random tokens, with the mark that ends a message among them: the same tokens in one text, apart, and in streams."""
        ended = 0
        never = {str(self.ids[mark]): -100 for mark in MARKS if mark != "<|end|>"}
        for bias in (-100, 9.5, 10, 11, 12, 100):
            asked = {"seed": 3, "ignore_eos": True, "logit_bias": never | {str(self.ids["<|end|>"]): bias}, "chat_template_kwargs": {"open": True}}
            mixed = self.ask(**asked, reasoning_format="none").json()["choices"][0]["message"]
            told = self.ask(**asked).json()["choices"][0]["message"]
            thought, *texts = mixed["content"].split("<|end|>")
            texts = [text for text in texts if text]
            self.assertEqual((told.get("reasoning_content", ""), told["content"]), (thought, "\n\n".join(texts)))
            deltas = [event["choices"][0]["delta"] for event in self.ask(**asked, stream=True).events() if event["choices"]]
            self.assertEqual("".join(d.get("reasoning_content") or "" for d in deltas), thought)
            self.assertEqual("".join(d.get("content") or "" for d in deltas), told["content"])
            ended += bool(thought and texts)
        self.assertGreater(ended, 0)

    def test_calls(self):
        """A call that is asked for: its header is the model's own, and <|call|> ends the answer."""
        for choice in ("required", {"type": "function", "function": {"name": "add_2"}}):
            asked = {"tools": TOOLS, "tool_choice": choice, "seed": 5, "max_tokens": 200, "logit_bias": {str(self.ids["<|call|>"]): 100}}
            body = self.ask(**asked).json()["choices"][0]
            self.assertEqual(body["finish_reason"], "tool_calls", body)
            (call,) = body["message"]["tool_calls"]
            self.assertIn(call["function"]["name"], ("look-up", "add_2")[choice != "required" :])
            self.assertEqual(set(json.loads(call["function"]["arguments"])), {"sure", "n"})
            events = [event for event in self.ask(**asked, stream=True).events() if event["choices"]]
            streamed = [c["function"] for event in events for c in event["choices"][0]["delta"].get("tool_calls", [])]
            self.assertEqual("".join(f.get("arguments", "") for f in streamed), call["function"]["arguments"])

    def test_conversations_are_written_back(self):
        """What the model thought before a call stays until the answer is there; results go to the function's caller."""
        call = {"id": "c1", "type": "function", "function": {"name": "add_2", "arguments": '{"sure": true, "n": 1}'}}
        talk = [*USER, {"role": "assistant", "content": None, "reasoning_content": "Let me see.", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "3 <|end|>"}]  # fmt: skip
        prompt = self.written(talk, tools=TOOLS, reasoning_effort="high")
        self.assertIn("\nReasoning: high\n", prompt)
        self.assertIn("type add_2 = (_: {\nsure: boolean,\n", prompt)
        self.assertTrue(prompt.endswith(
            "<|start|>assistant<|channel|>analysis<|message|>Let me see.<|end|>"
            '<|start|>assistant to=functions.add_2<|channel|>commentary json<|message|>{"sure": true, "n": 1}<|call|>'
            '<|start|>functions.add_2 to=assistant<|channel|>commentary<|message|>"3 <|end|>"<|end|><|start|>assistant'
        ), prompt)  # fmt: skip
        answered = self.written([*talk, {"role": "assistant", "content": "Three."}, USER[0]], tools=TOOLS)
        self.assertNotIn("Let me see.", answered)
        self.assertIn("<|start|>assistant<|channel|>final<|message|>Three.<|end|>", answered)

    def test_ends(self):
        """<|return|> and <|call|> end an answer, <|end|> does not."""
        for mark, reason in (("<|return|>", "stop"), ("<|call|>", "stop"), ("<|end|>", "length")):
            body = self.ask(logit_bias={str(self.ids[mark]): 100}, temperature=0, max_tokens=5).json()
            self.assertEqual((body["choices"][0]["finish_reason"], body["usage"]["completion_tokens"]), (reason, 5 if reason == "length" else 0), mark)

    def test_messages(self):
        asked = {"seed": 3, "chat_template_kwargs": {"open": True}, "thinking": {"type": "enabled", "budget_tokens": 9}}
        whole = self.ask("/v1/messages", **asked).json()["content"]
        for part in whole:
            part.pop("signature", None)
        self.assertEqual(streamed_parts(self.ask("/v1/messages", **asked, stream=True)), whole)
        self.assertEqual(whole[0]["type"], "thinking")
        inputs = [{"name": tool["function"]["name"], "input_schema": SCHEMA} for tool in TOOLS]
        whole = self.ask("/v1/messages", tools=inputs, tool_choice={"type": "any"}, max_tokens=200).json()["content"]
        self.assertEqual(([part["type"] for part in whole], set(whole[0]["input"])), (["tool_use"], {"sure", "n"}))


if __name__ == "__main__":
    common.main()
