# SPDX-License-Identifier: Apache-2.0
"""tern serve: what a model thinks is told apart from its answer, whole and in streams."""

import json
import tempfile
from pathlib import Path

import common
import tool_model
from serving import Server
from test_serve import QUESTION, Served
from test_serve_forms import events_of

USER = [{"role": "user", "content": QUESTION}]
# Thinking ends with a mark, of which the small model is given a token.
TEMPLATE = """{% for m in messages %}{{ m.role }}: {{ m.content }}{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}A:{% if open or enable_thinking %}<think>
{% endif %}{% endif %}{# </think> #}"""


SEEDS, MOST = (8, 9, 2, 6), 40  # thinking ends with the mark, with the text, at the limit, and at once


def asked(seed):
    return {"temperature": 1000, "seed": seed}


def streamed_parts(reply):
    """The parts of a message, joined from its events."""
    parts, names = [], {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
    for name, event in events_of(reply):
        if name == "content_block_start":
            parts.append(event["content_block"])
        elif name == "content_block_delta":
            kind = names[event["delta"]["type"]]
            parts[event["index"]][kind] += event["delta"][kind]
    assert all(part.pop("signature", "x") for part in parts), parts
    return parts


class Thinking(Served):
    mark, template, kind = "</think>", TEMPLATE, 4

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = Path(folder.name) / "thinks.gguf"
        cls.token, cls.end = tool_model.write(path, cls.template, (cls.mark, cls.kind))
        cls.server = Server("-m", path, *cls.options)
        cls.addClassCleanup(cls.server.stop)

    def asked(self, bias=0, **fields):
        return {"messages": USER, "max_tokens": 40, "temperature": 1.2, "seed": 3, "ignore_eos": True,
                "logit_bias": {str(self.token): bias}, "chat_template_kwargs": {"open": True}} | fields

    def message(self, **fields):
        reply = self.server.post("/v1/chat/completions", **self.asked(**fields))
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()["choices"][0]["message"], reply.json()["tern"]["digest"]

    def test_it_is_told_apart(self):
        """The same tokens, with the thinking in the text and apart."""
        ended = 0
        for bias in (-100, 9.5, 10, 11, 12, 100):
            mixed, digest = self.message(bias=bias, reasoning_format="none")
            told, same = self.message(bias=bias)
            self.assertEqual(same, digest)
            self.assertNotIn("reasoning_content", mixed)
            thought, mark, rest = mixed["content"].partition(self.mark)
            self.assertEqual((told.get("reasoning_content", ""), told["content"]), (thought.strip(), rest.lstrip()))
            ended += bool(mark and thought.strip())
        self.assertGreater(ended, 0)

    def test_a_stream_says_the_same(self):
        for bias in (-100, 10, 11, 100):
            whole, digest = self.message(bias=bias)
            events = self.server.post("/v1/chat/completions", **self.asked(bias=bias, stream=True)).events()
            deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
            self.assertEqual("".join(d.get("reasoning_content") or "" for d in deltas), whole.get("reasoning_content", ""))
            self.assertEqual("".join(d.get("content") or "" for d in deltas), whole["content"])
            self.assertEqual(events[-1]["tern"]["digest"], digest)

    def test_tokens_are_counted(self):
        ended = 0
        for bias in (-100, 10, 11, 100):
            body = self.server.post("/v1/chat/completions", **self.asked(bias=bias, logprobs=True)).json()
            ids = [token["id"] for token in body["choices"][0]["logprobs"]["content"]]
            wanted = ids.index(self.token) + 1 if self.token in ids else len(ids)
            self.assertEqual(body["usage"]["completion_tokens_details"], {"reasoning_tokens": wanted})
            ended += wanted < len(ids)
        self.assertGreater(ended, 0)
        body = self.server.post("/v1/chat/completions", **self.asked(bias=-100, chat_template_kwargs={})).json()
        self.assertEqual(body["usage"]["completion_tokens_details"], {"reasoning_tokens": 0})

    def test_an_answer_that_does_not_think(self):
        told, _ = self.message(bias=-100, chat_template_kwargs={})
        self.assertNotIn("reasoning_content", told)
        self.assertTrue(told["content"])
        form, _ = self.message(bias=-100, ignore_eos=False, response_format={"type": "json_object"})
        self.assertTrue(form["content"].startswith("{"), form)

    def test_an_answer_that_goes_on(self):
        begun = USER + [{"role": "assistant", "content": "<think>\nOnce upon a time"}]
        told, _ = self.message(bias=-100, messages=begun, continue_final_message=True)
        self.assertEqual((told["content"], bool(told["reasoning_content"])), ("", True))
        begun[-1] = {"role": "assistant", "content": "<think>\nOnce</think>\n\nIt"}
        told, _ = self.message(bias=-100, messages=begun, continue_final_message=True)
        self.assertNotIn("reasoning_content", told)


class Opens(Thinking):
    """The model itself begins to think."""

    mark = "<think>"

    def test_it_is_told_apart(self):
        told, _ = self.message(bias=100, max_tokens=3, chat_template_kwargs={})
        self.assertEqual((told["reasoning_content"], told["content"]), ("<think>" * 2, ""))

    test_a_stream_says_the_same = test_an_answer_that_does_not_think = test_an_answer_that_goes_on = None
    test_tokens_are_counted = None


class Controls(Thinking):
    """The marks are control tokens."""

    mark, template, kind = "[/THINK]", TEMPLATE.replace("<think>", "[THINK]").replace("</think>", "[/THINK]"), 3

    test_an_answer_that_goes_on = None


class Forms(Served):
    """The other forms say the same as chats. They have no biases: any token is as likely as any other, and seeds decide
    whether the thinking ends."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = Path(folder.name) / "thinks.gguf"
        cls.token, cls.end = tool_model.write(path, TEMPLATE, ("</think>", 4))
        cls.server = Server("-m", path, *cls.options)
        cls.addClassCleanup(cls.server.stop)

    def plain(self, seed, **fields):
        """What a chat says: thinking, text, digest, and how many tokens were thinking."""
        body = self.server.post("/v1/chat/completions", messages=USER, max_tokens=MOST, **asked(seed), **{"enable_thinking": True} | fields).json()
        message = body["choices"][0]["message"]
        return message.get("reasoning_content", ""), message["content"], body["tern"]["digest"], body["usage"]["completion_tokens_details"]["reasoning_tokens"]

    def test_messages(self):
        for seed in SEEDS:
            thought, text, digest, _ = self.plain(seed)
            parts = [{"type": "thinking", "thinking": thought}] * bool(thought) + [{"type": "text", "text": text}] * bool(text or not thought)
            fields = {"messages": USER, "max_tokens": MOST, "thinking": {"type": "enabled", "budget_tokens": 9}} | asked(seed)
            whole = self.server.post("/v1/messages", **fields).json()
            self.assertEqual(whole["tern"]["digest"], digest)
            self.assertEqual([part.pop("signature") for part in whole["content"] if part["type"] == "thinking"], [whole["id"]] * bool(thought))
            self.assertEqual(whole["content"], parts)
            self.assertEqual(streamed_parts(self.server.post("/v1/messages", **fields, stream=True)), parts)

    def test_messages_that_do_not_ask(self):
        """The template opens the thinking all the same: then it is left out."""
        for seed in SEEDS:
            _, text, digest, _ = self.plain(seed)
            fields = {"messages": USER, "max_tokens": MOST, "chat_template_kwargs": {"open": True}} | asked(seed)
            whole = self.server.post("/v1/messages", **fields).json()
            self.assertEqual((whole["content"], whole["tern"]["digest"]), ([{"type": "text", "text": text}], digest))
            self.assertEqual(streamed_parts(self.server.post("/v1/messages", **fields, stream=True)), whole["content"])

    def test_responses(self):
        for seed in SEEDS:
            thought, text, digest, n = self.plain(seed)
            fields = {"input": USER, "max_output_tokens": MOST, "enable_thinking": True} | asked(seed)
            whole = self.server.post("/v1/responses", **fields).json()
            self.assertEqual((whole["tern"]["digest"], whole["usage"]["output_tokens_details"]), (digest, {"reasoning_tokens": n}))
            said = [(item["type"], "".join(part["text"] for part in item["content"])) for item in whole["output"]]
            self.assertEqual(said, [("reasoning", thought)] * bool(thought) + [("message", text)] * bool(text or not thought))
            events = events_of(self.server.post("/v1/responses", **fields, stream=True))
            for kind, words in (("response.reasoning_text.delta", thought), ("response.output_text.delta", text)):
                self.assertEqual("".join(event["delta"] for name, event in events if name == kind), words)
            done = [event["item"] for name, event in events if name == "response.output_item.done"]
            last = events[-1][1]["response"]["output"]
            self.assertEqual([item["content"] for item in last], [item["content"] for item in whole["output"]])
            self.assertEqual([item["content"] for item in done], [item["content"] for item in last])
            self.assertEqual([event["output_index"] for name, event in events if name == "response.content_part.added"], list(range(len(last))))

    def test_logprobs_of_responses(self):
        fields = {"input": USER, "max_output_tokens": MOST, "enable_thinking": True, "include": ["message.output_text.logprobs"]} | asked(SEEDS[0])
        body = self.server.post("/v1/responses", **fields).json()
        logs = body["output"][-1]["content"][0]["logprobs"]
        self.assertEqual((len(body["output"]), len(logs)), (2, body["usage"]["output_tokens"]))
        events = events_of(self.server.post("/v1/responses", **fields, stream=True))
        self.assertEqual(sum((event["logprobs"] for name, event in events if name == "response.output_text.delta"), []), logs)

    def test_ollama(self):
        for seed in SEEDS:
            thought, text, digest, _ = self.plain(seed)
            fields = {"think": True, "options": {"num_predict": MOST} | asked(seed)}
            for path, given in (("chat", {"messages": USER}), ("generate", {"prompt": QUESTION})):
                whole = self.server.post(f"/api/{path}", **given, **fields, stream=False).json()
                said = whole["message"] if path == "chat" else {"content": whole["response"], "thinking": whole.get("thinking", "")}
                self.assertEqual((said.get("thinking", ""), said["content"], whole["tern"]["digest"]), (thought, text, digest))
                lines = [json.loads(line) for line in self.server.post(f"/api/{path}", **given, **fields).body.splitlines()]
                said = [line.get("message") or line | {"content": line["response"]} for line in lines]
                for name in ("thinking", "content"):
                    self.assertEqual("".join(one.get(name, "") for one in said), thought if name == "thinking" else text)
        self.assertEqual(self.server.post("/api/show", model="thinks").json()["capabilities"][-1], "thinking")


if __name__ == "__main__":
    common.main()
