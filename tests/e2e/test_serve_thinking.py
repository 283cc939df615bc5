# SPDX-License-Identifier: Apache-2.0
"""tern serve: what a model thinks is told apart from its answer, whole and in streams."""

import tempfile
from pathlib import Path

import common
import tool_model
from serving import Server
from test_serve import QUESTION, Served

USER = [{"role": "user", "content": QUESTION}]
# Thinking ends with a mark, of which the small model is given a token.
TEMPLATE = """{% for m in messages %}{{ m.role }}: {{ m.content }}{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}A:{% if open %}<think>
{% endif %}{% endif %}{# </think> #}"""


class Thinking(Served):
    mark = "</think>"

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = Path(folder.name) / "thinks.gguf"
        cls.token, cls.end = tool_model.write(path, TEMPLATE, (cls.mark, 4))
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


if __name__ == "__main__":
    common.main()
