# SPDX-License-Identifier: Apache-2.0
"""tern serve: requests in the shapes that coding agents send. Each answer has the digest that a plain chat of the same
conversation has."""

import common
import tool_model
from test_serve_tools import TOOLS, ToolTest

WARM = {"temperature": 1.3, "seed": 3}
MARK = {"cache_control": {"type": "ephemeral"}}
# A template that tells what the assistant thought.
THINKS = tool_model.TAGGED.replace("A: {{ m.content or '' }}", "A: {% if m.reasoning_content %}({{ m.reasoning_content }}) {% endif %}{{ m.content or '' }}")
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo", "days": 1}'}}
CHAT = [
    {"role": "system", "content": "You are a coding agent.\nBe brief."},
    {"role": "user", "content": "Look at the weather."},
    {"role": "assistant", "content": "I look.", "reasoning_content": "Oslo is meant.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "Rain."},
    {"role": "user", "content": "And now?"},
]


class Agents(ToolTest):
    template = THINKS

    def plain(self, messages=CHAT, tools=TOOLS, **fields):
        reply = self.server.post("/v1/chat/completions", messages=messages, tools=tools, tool_choice="none" if tools is None else "auto", max_tokens=12, **WARM | fields)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()["tern"]["digest"]

    def answer(self, path, **fields):
        reply = self.server.post(path, **fields)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()

    def test_messages_of_an_agent(self):
        """Parts with marks for the cache, thinking of earlier turns, a result after a text, tools of the server."""
        tools = [{"name": t["function"]["name"], "description": t["function"]["description"], "input_schema": t["function"]["parameters"]} for t in TOOLS]
        fields = {
            "system": [{"type": "text", "text": "You are a coding agent."}, {"type": "text", "text": "Be brief.", **MARK}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look at the weather.", **MARK}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Oslo is meant.", "signature": "x"}, {"type": "redacted_thinking", "data": "y"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Oslo", "days": 1}}]},
                {"role": "user", "content": [{"type": "text", "text": "And now?"}, {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "Rain."}], **MARK}]},
            ],
            "tools": [*tools[:1], {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}, tools[1] | MARK],
            "thinking": {"type": "enabled", "budget_tokens": 1024}, "metadata": {"user_id": "u"}, "max_tokens": 12,
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        }
        body = self.answer("/v1/messages?beta=true", **fields, **WARM)
        self.assertEqual(body["tern"]["digest"], self.plain())
        self.assertEqual(sorted(body["tern"]["ignored"]),
                         ["context_management", "metadata", "thinking", "thinking.budget_tokens", "tools.web_search_20250305"])

    def test_a_system_message_in_between(self):
        said = [{"role": "user", "content": "Hello."}, {"role": "system", "content": "The file has changed."}, {"role": "user", "content": "Go on."}]
        body = self.answer("/v1/messages", messages=said, max_tokens=12, **WARM)
        self.assertEqual(body["tern"]["digest"], self.plain(said, None))

    def test_a_picture_is_refused_in_one_line(self):
        source = {"type": "base64", "media_type": "image/png", "data": "aaaa"}
        for parts in ([{"type": "image", "source": source}], [{"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "image", "source": source}]}]):
            said = [{"role": "user", "content": "x"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "f", "input": {}}]}] if parts[0]["type"] != "image" else []
            reply = self.server.post("/v1/messages", messages=said + [{"role": "user", "content": parts}], max_tokens=1)
            self.assertEqual(reply.status, 400)
            message = reply.json()["error"]["message"]
            self.assertIn("does not support images", message)
            self.assertNotIn("\n", message)

    def test_items_of_an_agent(self):
        """Reasoning, calls, their outputs, items of other tools, and fields that agents always send."""
        flat = [{"type": "function", "strict": False, **t["function"]} for t in TOOLS]
        given = [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look at the weather."}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Oslo is meant."}], "encrypted_content": "x"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": CALL["function"]["arguments"]},
            {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "Rain."}]},
            {"role": "user", "content": "And now?"},
        ]
        fields = {
            "instructions": CHAT[0]["content"], "input": given, "tools": [flat[0], {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}}, {"type": "web_search"}, flat[1]],
            "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"effort": "medium", "summary": "auto"}, "store": False,
            "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k", "text": {"verbosity": "low"}, "truncation": "auto", "max_output_tokens": 12,
        }
        body = self.answer("/v1/responses", **fields, **WARM)
        self.assertEqual(body["tern"]["digest"], self.plain())
        self.assertEqual(sorted(body["tern"]["ignored"]),
                         ["input.web_search_call", "prompt_cache_key", "reasoning.effort", "store", "text.verbosity", "tools.custom", "tools.web_search"])
        thought = given[1] | {"content": [{"type": "reasoning_text", "text": "Oslo is meant."}], "summary": []}
        body = self.answer("/v1/responses", **fields | {"input": [given[0], thought, *given[3:]]}, **WARM)
        self.assertEqual(body["tern"]["digest"], self.plain())

    def test_calls_without_a_schema(self):
        given = [{"role": "user", "content": "Change it."}, {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": "*** a"},
                 {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"}]
        said = [given[0], {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "apply_patch", "arguments": "*** a"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "done"}]
        body = self.answer("/v1/responses", input=given, max_output_tokens=12, **WARM)
        self.assertEqual(body["tern"]["digest"], self.plain(said, None))

    def test_items_that_are_refused(self):
        for item, words in (({"type": "item_reference", "id": "rs_1"}, "nothing is kept"), ({"type": "shell_call", "call_id": "c"}, "reasoning are supported")):
            reply = self.server.post("/v1/responses", input=[{"role": "user", "content": "x"}, item])
            self.assertIn(words, self.refused(reply, 400, "input")["message"])

    def test_chats_of_agents(self):
        """Parts with marks, names, thoughts under each of their names, and what else is sent with them."""
        parts = [CHAT[0], {"role": "user", "content": [{"type": "text", "text": "Look at the weather.", **MARK}]}, CHAT[2],
                 CHAT[3] | {"name": "weather", "content": [{"type": "text", "text": "Rain.", **MARK}]}, CHAT[4]]
        for name in ("reasoning_content", "reasoning", "thinking"):
            asked = CHAT[2] | {"reasoning_content": None, name: "Oslo is meant.", "refusal": None, "audio": None, "function_call": None}
            digest = self.plain([*parts[:2], asked, *parts[3:]], stream_options=None, user="me", store=True, parallel_tool_calls=True, metadata={"a": "b"}, stop=None)
            self.assertEqual(digest, self.plain(), name)
        without = [*CHAT[:2], CHAT[2] | {"reasoning_content": None}, *CHAT[3:]]
        self.assertNotEqual(self.plain(without), self.plain())


class Turns(ToolTest):
    def test_a_turn_costs_its_new_part(self):
        """What the turns before had is found again; the digest is that of the whole conversation alone."""
        said, seen = [{"role": "system", "content": "You know this story. " * 40}], 0
        for turn in range(4):
            said.append({"role": "user", "content": f"Question {turn}: what is next?"})
            asked = {"messages": list(said), "max_tokens": 12, "temperature": 0, "ignore_eos": True}
            body = self.server.post("/v1/chat/completions", **asked).json()
            usage = body["usage"]
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            if turn > 0:  # pages of the cache have 64 tokens
                self.assertLess(usage["prompt_tokens"] - cached, 64 + usage["prompt_tokens"] - seen, usage)
                self.assertGreaterEqual(cached, seen // 64 * 64, usage)
            alone = self.server.post("/v1/chat/completions", cache_prompt=False, **asked).json()
            self.assertEqual(alone["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
            self.assertEqual(alone["tern"]["digest"], body["tern"]["digest"])
            seen = usage["prompt_tokens"]
            said.append({"role": "assistant", "content": body["choices"][0]["message"]["content"]})


if __name__ == "__main__":
    common.main()
