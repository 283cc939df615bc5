# SPDX-License-Identifier: Apache-2.0
"""tern serve: calls of tools, in the forms of three interfaces, and conversations with them."""

import json
import tempfile
from pathlib import Path

import common
import json_schema
import receipt_tools
import tool_model
from serving import Server, together
from test_serve import Served
from test_serve_forms import events_of

WEATHER = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
SUM = {
    "type": "object",
    "properties": {"numbers": {"type": "array", "items": {"$ref": "#/$defs/digit"}, "minItems": 1, "maxItems": 3}},
    "required": ["numbers"],
    "additionalProperties": False,
    "$defs": {"digit": {"enum": [1, 2, 3]}},
}
SCHEMAS = {"weather": WEATHER, "sum-up": SUM}
DIGITS = {"numbers": {"type": "array", "items": {"enum": [1, 2, 3]}}}
CHECKS = {"weather": WEATHER, "sum-up": {k: v for k, v in SUM.items() if k != "$defs"} | {"properties": DIGITS}}
TOOLS = [{"type": "function", "function": {"name": n, "description": f"About {n}.", "parameters": s}} for n, s in SCHEMAS.items()]
FLAT = [{"type": "function", "name": n, "parameters": s, "strict": True} for n, s in SCHEMAS.items()]
INPUTS = [{"name": n, "description": f"About {n}.", "input_schema": s} for n, s in SCHEMAS.items()]
USER = [{"role": "user", "content": "What is 2+2?"}]
WARM = {"temperature": 1.5, "seed": 5}


def call(id="c1", name="weather", arguments='{"city": "Oslo", "days": 1}'):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def said(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(id="c1", content="Rain."):
    return {"role": "tool", "tool_call_id": id, "content": content}


class ToolTest(Served):
    template = tool_model.TAGGED
    token = (tool_model.TOKEN, 4)
    call_id = "call_[0-9a-f]{28}"

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = Path(folder.name) / "tools.gguf"
        cls.model, (cls.begin, cls.end) = path, tool_model.write(path, cls.template, cls.token)
        cls.server = Server("-m", path, *cls.options)
        cls.addClassCleanup(cls.server.stop)

    def biased(self, begin=30, end=20):
        """Returns the biases of the token that begins a call and of the one that ends a text."""
        return {"logit_bias": {str(self.begin): begin, str(self.end): end}}

    def chat(self, messages=USER, **fields):
        return self.server.post("/v1/chat/completions", **{"messages": messages, "tools": TOOLS, "max_tokens": 200} | fields)

    def choice(self, **fields):
        reply = self.chat(**fields)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()["choices"][0]

    def check_call(self, name, arguments):
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
        self.assertEqual(list(json_schema.problems(value, CHECKS[name])), [], arguments)

    def replay(self, receipt):
        """Returns the exit status of a replay, after the receipt is sealed again."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "receipt.json"
            path.write_text(json.dumps(receipt_tools.seal(receipt)))
            return common.tern("verify", path, "--replay", "-m", self.model).returncode

    def check(self, choice, names=None):
        """Checks a choice that ended with calls of these tools, and returns the calls."""
        calls = choice["message"]["tool_calls"]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        for one in calls:
            self.assertEqual(one["type"], "function")
            self.assertRegex(one["id"], f"^{self.call_id}$")
            self.check_call(one["function"]["name"], one["function"]["arguments"])
        self.assertEqual(len({one["id"] for one in calls}), len(calls))
        if names is not None:
            self.assertEqual([one["function"]["name"] for one in calls], names)
        return calls


def joined(events):
    """Content, calls and reasons of a stream, by choice."""
    found = {}
    for event in events:
        for choice in event["choices"]:
            one = found.setdefault(choice["index"], {"content": None, "calls": [], "reason": None})
            delta = choice["delta"]
            if delta.get("content"):
                one["content"] = (one["content"] or "") + delta["content"]
            for piece in delta.get("tool_calls", []):
                if "id" in piece:
                    assert piece["index"] == len(one["calls"]), piece
                    one["calls"].append({"id": piece["id"], "type": piece["type"], "function": dict(piece["function"])})
                else:
                    one["calls"][piece["index"]]["function"]["arguments"] += piece["function"]["arguments"]
            one["reason"] = choice["finish_reason"] or one["reason"]
    return found


def shape(calls):
    return [one["function"] for one in calls]


class Calls(ToolTest):
    def test_required(self):
        for seed in range(3):
            choice = self.choice(tool_choice="required", parallel_tool_calls=False, temperature=1.5, seed=seed)
            self.assertEqual(len(self.check(choice)), 1)
            self.assertEqual(choice["message"]["content"], None)

    def test_one_that_is_named(self):
        for name in SCHEMAS:
            choice = {"type": "function", "function": {"name": name}}
            for fields in ({}, {"parallel_tool_calls": True}, self.biased(0, -100)):
                found = self.choice(**{"tool_choice": choice, "max_tokens": 400, **WARM} | fields)
                self.check(found, [name]) if "logit_bias" not in fields else self.assertEqual(len(found["message"]["tool_calls"]), 1)

    def test_auto(self):
        text = self.choice(logit_bias={str(self.begin): -100})
        self.assertNotIn("tool_calls", text["message"])
        self.assertIn(text["finish_reason"], ("stop", "length"))
        self.check(self.choice(parallel_tool_calls=False, **self.biased()))

    def test_several_at_once(self):
        """The end is never picked, so that calls follow each other up to the limit."""
        choice = self.choice(tool_choice="required", max_tokens=600, **self.biased(0, -100))
        self.assertEqual(choice["finish_reason"], "length")
        *whole, _ = choice["message"]["tool_calls"]
        self.assertGreater(len(whole), 1)
        for one in whole:
            self.check_call(one["function"]["name"], one["function"]["arguments"])
        self.assertEqual(len({one["id"] for one in choice["message"]["tool_calls"]}), len(whole) + 1)

    def test_none(self):
        for fields in ({"tool_choice": "none"}, {"tools": []}, {"tools": None}):
            with_none = self.choice(**fields, **self.biased(), stop=["."])
            self.assertNotIn("tool_calls", with_none["message"])
        told, untold = (self.chat(tool_choice=c, max_tokens=1).json()["usage"]["prompt_tokens"] for c in ("auto", "none"))
        self.assertGreater(told, untold)

    def test_a_stream_says_the_same(self):
        for fields in ({"tool_choice": "required"}, {"tool_choice": "required", "n": 3}, self.biased(), self.biased(0, -100) | {"tool_choice": "required"},
                       self.biased() | {"parallel_tool_calls": False, "n": 2, "logprobs": True}):
            with self.subTest(fields=fields):
                whole = self.chat(**fields, **WARM).json()
                events = self.chat(**fields, **WARM, stream=True).events()
                found = joined(events)
                for choice in whole["choices"]:
                    one, message = found[choice["index"]], choice["message"]
                    self.assertEqual(shape(one["calls"]), shape(message.get("tool_calls", [])))
                    self.assertEqual((one["content"], one["reason"]), (message["content"] or None, choice["finish_reason"]))
                self.assertEqual(events[-1]["tern"]["digest"], whole["tern"]["digest"])

    def test_a_receipt(self):
        """It records how calls are written: without that, or with another tool, the answer differs."""
        body = self.chat(tool_choice="required", max_tokens=400, receipt=True, **WARM).json()
        receipt = body["tern"]["receipt"]
        self.assertEqual([t["begin"].count(name) for t, name in zip(receipt["form"]["calls"]["tags"], SCHEMAS)], [1, 1])
        self.assertEqual(receipt["form"]["calls"]["required"], True)
        for change, status in ((None, 0), ("required", 1), ("schema", 1)):
            broken = json.loads(json.dumps(receipt))
            if change == "required":
                del broken["form"]
            if change == "schema":
                broken["form"]["calls"]["tags"] = [t | {"schema": '{"type": "object", "maxProperties": 0}'} for t in broken["form"]["calls"]["tags"]]
            self.assertEqual(self.replay(broken), status)

    def test_cut_in_a_call(self):
        choice = self.choice(tool_choice="required", max_tokens=16)
        self.assertEqual(choice["finish_reason"], "length")

    def test_cut_before_a_call(self):
        """Nothing was said yet: the item that there is nevertheless is not complete."""
        body = self.server.post("/v1/responses", input="What is 2+2?", tools=FLAT, tool_choice="required", max_output_tokens=1).json()
        (item,) = body["output"]
        self.assertEqual((body["status"], item["type"], item["status"]), ("incomplete", "message", "incomplete"))
        self.assertEqual(item["content"][0]["text"], "")

    def test_under_load(self):
        def ask(seed):
            body = self.chat(tool_choice="required", parallel_tool_calls=False, temperature=1.5, seed=seed).json()
            return body["tern"]["digest"], shape(body["choices"][0]["message"]["tool_calls"])

        calls = [lambda s=s: ask(s) for s in range(10)]
        alone = [one() for one in calls]
        self.assertEqual(together(calls), alone)

    def test_the_loop(self):
        """Does a client's work: asks, calls, sends the result, and gets an answer."""
        first = self.choice(tool_choice="required", parallel_tool_calls=False)["message"]
        (one,) = first["tool_calls"]
        talk = USER + [first, result(one["id"], "It rains.")]
        prompt = self.server.post("/apply-template", messages=talk, tools=TOOLS).json()["prompt"]
        name, arguments = one["function"]["name"], json.dumps(json.loads(one["function"]["arguments"]))
        self.assertIn(f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>', prompt)
        self.assertIn(f"Result of {name}: It rains.\nA:", prompt)
        self.assertIn('"description": "About weather."', prompt)
        self.assertEqual(self.chat(talk, max_tokens=5).status, 200)
        self.assertEqual(self.chat(talk, max_tokens=5, tools=None).status, 200)

    def test_a_tool_without_parameters(self):
        tools = [{"type": "function", "function": {"name": "now"}}]
        (one,) = self.choice(tools=tools, tool_choice="required", parallel_tool_calls=False)["message"]["tool_calls"]
        self.assertEqual(json.loads(one["function"]["arguments"]), {})

    def test_parts_of_responses(self):
        fields = {"input": "What is 2+2?", "tools": FLAT, "tool_choice": "required", "max_output_tokens": 200, **WARM}
        whole = self.server.post("/v1/responses", **fields).json()
        for item in whole["output"]:
            self.assertEqual((item["type"], item["status"]), ("function_call", "completed"))
            self.check_call(item["name"], item["arguments"])
        self.assertEqual((whole["tools"], whole["tool_choice"], whole["status"]), (FLAT, "required", "completed"))
        events = events_of(self.server.post("/v1/responses", **fields, stream=True))
        self.assertEqual([d["sequence_number"] for _, d in events], list(range(len(events))))
        for i, item in enumerate(whole["output"]):
            mine = [(n, d) for n, d in events if d.get("output_index") == i]
            self.assertEqual(mine[0][0], "response.output_item.added")
            deltas = "".join(d["delta"] for n, d in mine if n == "response.function_call_arguments.delta")
            self.assertEqual(deltas, item["arguments"])
            self.assertEqual([n for n, _ in mine[-2:]], ["response.function_call_arguments.done", "response.output_item.done"])
            self.assertEqual(mine[-1][1]["item"]["arguments"], item["arguments"])
        self.assertEqual(events[-1][0], "response.completed")
        ids = [item["call_id"] for item in whole["output"]]
        talk = [{"role": "user", "content": "What is 2+2?"}, *whole["output"],
                *({"type": "function_call_output", "call_id": id, "output": "4"} for id in ids)]
        self.assertEqual(self.server.post("/v1/responses", input=talk, tools=FLAT, max_output_tokens=4).status, 200)

    def test_parts_of_messages(self):
        fields = {"messages": USER, "tools": INPUTS, "max_tokens": 200, **WARM,
                  "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}
        whole = self.server.post("/v1/messages", **fields).json()
        (part,) = whole["content"]
        self.assertEqual((part["type"], whole["stop_reason"], part["id"][:6]), ("tool_use", "tool_use", "toolu_"))
        self.check_call(part["name"], part["input"])
        events = events_of(self.server.post("/v1/messages", **fields, stream=True))
        names = [name for name, _ in events if name != "content_block_delta"]
        self.assertEqual(names, ["message_start", "ping", "content_block_start", "content_block_stop", "message_delta", "message_stop"])
        pieces = "".join(d["delta"]["partial_json"] for n, d in events if n == "content_block_delta")
        self.assertEqual(json.loads(pieces), part["input"])
        self.assertEqual(events[-2][1]["delta"]["stop_reason"], "tool_use")
        talk = USER + [{"role": "assistant", "content": whole["content"]},
                       {"role": "user", "content": [{"type": "tool_result", "tool_use_id": part["id"], "content": "4"},
                                                    {"type": "text", "text": "So?"}]}]
        count = self.server.post("/v1/messages/count_tokens", messages=talk, tools=INPUTS)
        self.assertGreater(count.json()["input_tokens"], whole["usage"]["input_tokens"])
        self.assertEqual(self.server.post("/v1/messages", messages=talk, tools=INPUTS, max_tokens=4).status, 200)

    def test_what_is_refused(self):
        twice = [TOOLS[0], TOOLS[0]]
        other, listed = ([{"type": "function", "function": {"name": "f", "parameters": {"type": kind}}}] for kind in ("array", ["object"]))
        unknown = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "strin"}}}}}]
        for fields, param, word in (
            ({"tools": [{"type": "web_search"}]}, "tools", "tools[0].type"),
            ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools", "tools[0].function.name"),
            ({"tools": [{"type": "function", "function": {"name": "f", "parameters": 3}}]}, "tools", "parameters"),
            ({"tools": [{"type": "function", "function": {"name": "f", "strict": 3}}]}, "tools", "strict"),
            ({"tools": twice}, "tools", "weather"), ({"tools": {}}, "tools", "array"), ({"tools": other}, "tools", "object"), ({"tools": listed}, "tools", 'type must be "object"'),
            ({"tools": unknown}, "tools", "/properties/a"),
            ({"tool_choice": "some"}, "tool_choice", "required"),
            ({"tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice", "'g'"),
            ({"tool_choice": "required", "tools": []}, "tool_choice", "no tools"),
            ({"parallel_tool_calls": 3}, "parallel_tool_calls", "true or false"),
            ({"ignore_eos": True}, "ignore_eos", "tools"),
            ({"grammar": 'root ::= "a"'}, "grammar", "tools"),
        ):
            with self.subTest(fields=fields):
                self.assertIn(word, self.refused(self.chat(**fields), 400, param)["message"])
        for fields, param in (({"tools": [{"name": "f"}]}, "tools"), ({"tool_choice": "auto"}, "tool_choice"),
                              ({"tools": [{"type": "bash_20250124", "name": "bash"}], "tool_choice": {"type": "any"}}, "tool_choice")):
            error = self.server.post("/v1/messages", **{"messages": USER, "tools": INPUTS} | fields).json()["error"]
            self.assertEqual(error["param"], param)


class Histories(ToolTest):
    def test_good_ones(self):
        for talk in (
            [said(call()), result()],
            [said(call(), call("c2", "sum-up", '{"numbers": [1]}'), content="Both:"), result("c2", "1"), result("c1")],
            [said(call()), result(content=[{"type": "text", "text": "a"}]), said(call("c1")), result("c1"), {"role": "user", "content": "x"}],
        ):
            reply = self.chat(USER + talk, max_tokens=2)
            self.assertEqual(reply.status, 200, reply.body)

    def test_bad_ones(self):
        for talk, word in (
            ([result()], "c1"),
            ([said(call()), result("c2")], "c2"),
            ([said(call()), result(), result()], "two answers"),
            ([said(call())], "no answer"),
            ([said(call()), *USER], "no answer"),
            ([said(call(), call()), result()], "two calls"),
            ([said(call(arguments=3)), result()], "arguments"),
            ([said(call(arguments=None)), result()], "arguments"),
            ([said(call(name="")), result()], "name"),
            ([said({"id": "c1", "type": "function"}), result()], "name"),
            ([said(call(id=None)), result()], "id"),
            ([said(call() | {"type": "custom"}), result()], "type"),
            ([{"role": "user", "content": "x", "tool_calls": [call()]}, result()], "tool_calls"),
            ([{"role": "assistant", "content": None}], "content"),
            ([said(call()), {"role": "tool", "content": "x"}], "tool_call_id"),
            ([said(call()), result(content=3)], "content"),
            ([{"role": "assistant", "content": "x", "tool_calls": 3}], "tool_calls"),
            ([{"role": "", "content": "x"}], "role"),
        ):
            with self.subTest(talk=talk):
                self.assertIn(word, self.refused(self.chat(USER + talk), 400, "messages")["message"])

    def test_bad_ones_of_other_interfaces(self):
        use = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}}
        back = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
        for talk in ([{"role": "user", "content": [back]}],
                     [{"role": "assistant", "content": [use]}],
                     [{"role": "assistant", "content": [use]}, {"role": "user", "content": [back, back]}],
                     [{"role": "assistant", "content": [use | {"input": "x"}]}, {"role": "user", "content": [back]}],
                     [{"role": "assistant", "content": [use]}, {"role": "user", "content": "x"}]):
            error = self.server.post("/v1/messages", messages=USER + talk, tools=INPUTS).json()["error"]
            self.assertEqual((error["type"], error["param"]), ("invalid_request_error", "messages"), talk)
        asked = {"type": "function_call", "call_id": "f1", "name": "weather", "arguments": "{}"}
        told = {"type": "function_call_output", "call_id": "f1", "output": "x"}
        for talk in ([told], [asked], [asked, told, told], [asked | {"arguments": 3}, told], [asked | {"name": 3}, told]):
            self.refused(self.server.post("/v1/responses", input=USER + talk, tools=FLAT), 400, "input")


    def test_arguments_are_taken_as_they_are(self):
        """Arguments of any text, as tern itself may have answered them; the template sees what is no object as a text."""
        large = '{"n": 123456789012345678901234567890, "x": 1e400}'
        for arguments, shown in ((large, large), ("", "{}"), ('{"city": "Os', '"{\\"city\\": \\"Os"'), ("[1]", '"[1]"'), ({"a": 1}, '{"a": 1}')):
            talk = USER + [said(call(arguments=arguments)), result()]
            with self.subTest(arguments=arguments):
                prompt = self.server.post("/apply-template", messages=talk, tools=TOOLS).json()["prompt"]
                self.assertIn(f'"arguments": {shown.replace("1e400", "Infinity")}}}\n</tool_call>', prompt)
                self.assertEqual(self.chat(talk, max_tokens=2).status, 200)
        use = {"type": "tool_use", "id": "t1", "name": "weather", "input": json.loads(large.replace("1e400", "2"))}
        talk = USER + [{"role": "assistant", "content": [use]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}]
        self.assertEqual(self.server.post("/v1/messages", messages=talk, tools=INPUTS, max_tokens=2).status, 200)
        item = {"type": "function_call", "call_id": "f1", "name": "weather", "arguments": large[:-3]}
        talk = [*USER, item, {"type": "function_call_output", "call_id": "f1", "output": "x"}]
        self.assertEqual(self.server.post("/v1/responses", input=talk, tools=FLAT, max_output_tokens=2).status, 200)


class Items(ToolTest):
    """A template that goes through the arguments: a text among them must not end in an error."""

    template = tool_model.TAGGED.replace('<tool_call>\n', "{% for k in c.function.arguments.items() %}{% endfor %}<tool_call>\n")

    def test_a_text_becomes_an_object(self):
        talk = USER + [said(call(arguments='{"city": "Os')), result()]
        prompt = self.server.post("/apply-template", messages=talk, tools=TOOLS).json()["prompt"]
        self.assertIn('"arguments": {"text": "{\\"city\\": \\"Os"}}', prompt)


class Bare(ToolTest):
    template = tool_model.BARE

    def test_calls(self):
        for seed in range(3):
            choice = self.choice(tool_choice="required", temperature=1.5, seed=seed)
            self.assertEqual(len(self.check(choice)), 1)
        text = self.choice(max_tokens=10)
        self.assertNotIn("tool_calls", text["message"])
        first = self.choice(tool_choice="required")["message"]
        talk = USER + [first, result(first["tool_calls"][0]["id"])]
        self.assertIn('"parameters": {', self.server.post("/apply-template", messages=talk).json()["prompt"])


class Listed(ToolTest):
    """Mistral's: all calls in one list after a mark, which is a control token."""

    template = tool_model.LISTED
    token = ("[TOOL_CALLS]", 3)
    call_id = "[0-9a-f]{9}"
    written = '[TOOL_CALLS][{{"name": "{name}", "arguments": {arguments}, "id": "{id}"}}]'

    def test_required_and_streamed(self):
        for seed in range(3):
            fields = {"tool_choice": "required", "temperature": 1.5, "seed": seed, "max_tokens": 400}
            choice = self.choice(**fields)
            self.check(choice)
            found = joined(self.chat(**fields, stream=True).events())[0]
            self.assertEqual((shape(found["calls"]), found["content"]), (shape(choice["message"]["tool_calls"]), None))

    def test_auto(self):
        """The control token begins a call, even where free text may stand; in free text it does not."""
        self.check(self.choice(parallel_tool_calls=False, max_tokens=400, **self.biased()))
        text = self.choice(logit_bias={str(self.begin): -100})
        self.assertNotIn("tool_calls", text["message"])

    def test_several_at_once(self):
        """Lists of different numbers of calls."""
        numbers = set()
        for seed in range(8):
            reply = self.choice(tool_choice="required", temperature=1.9, seed=seed, max_tokens=600)
            if reply["finish_reason"] == "tool_calls":
                numbers.add(len(self.check(reply)))
        self.assertGreater(len(numbers), 1)

    def test_the_loop(self):
        first = self.choice(tool_choice="required", parallel_tool_calls=False, max_tokens=400)["message"]
        (one,) = first["tool_calls"]
        talk = USER + [first, result(one["id"], "It rains.")]
        prompt = self.server.post("/apply-template", messages=talk, tools=TOOLS).json()["prompt"]
        name, arguments = one["function"]["name"], json.dumps(json.loads(one["function"]["arguments"]))
        self.assertIn(self.written.format(name=name, arguments=arguments, id=one["id"]), prompt)
        self.assertEqual(self.chat(talk, max_tokens=5).status, 200)
        self.refused(self.chat(USER + [first, result("123456789")], max_tokens=5), 400, "messages")

    def test_a_receipt(self):
        receipt = self.chat(tool_choice="required", max_tokens=400, receipt=True, **WARM).json()["tern"]["receipt"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "receipt.json"
            path.write_text(json.dumps(receipt))
            result = common.tern("verify", path, "--replay", "-m", self.model)
        self.assertEqual(result.returncode, 0, result.stderr.decode())


class Following(Listed):
    """Calls that follow each other."""

    template = tool_model.TAGGED
    token = (tool_model.TOKEN, 4)
    call_id = ToolTest.call_id
    written = '<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}'

    def test_several_at_once(self):
        """The end is never picked, so that calls follow each other up to the limit."""
        choice = self.choice(tool_choice="required", max_tokens=600, **self.biased(0, -100))
        *whole, _ = choice["message"]["tool_calls"]
        self.assertGreater(len(whole), 1)
        for one in whole:
            self.check_call(one["function"]["name"], one["function"]["arguments"])


class Named(Following):
    """Mistral's later form."""

    template = tool_model.NAMED
    token, call_id = Listed.token, Listed.call_id
    written = "[TOOL_CALLS]{name}[ARGS]{arguments}"


class Strict(ToolTest):
    """A template that wants a text with every call, which clients do not send."""

    template = tool_model.STRICT

    def test_calls_without_words(self):
        choice = self.choice(tool_choice="required", parallel_tool_calls=False)
        self.assertEqual(len(self.check(choice)), 1)
        talk = USER + [said(call()), result()]
        self.assertIn('A: <tool_call>\n{"name": "weather"', self.server.post("/apply-template", messages=talk).json()["prompt"])
        self.assertEqual(self.chat(talk, max_tokens=2).status, 200)


class Parameters(Following):
    """Arguments between tags of their own, after a control token."""

    template = tool_model.PARAMETERS
    token = ("<tool_call>", 3)
    call_id = ToolTest.call_id
    written = "<tool_call>\n<function={name}>\n"

    def test_texts_stay_texts(self):
        """What the schema says is a text is one, even if it looks like something else."""
        kinds = {"type": "object", "properties": {"s": {"enum": ["7", "true"]}, "t": {"enum": ["x y"]}, "n": {"enum": [7]}}, "required": ["s", "t", "n"]}
        tools = [{"type": "function", "function": {"name": "f", "parameters": kinds}}]
        (one,) = self.choice(tools=tools, tool_choice="required", parallel_tool_calls=False)["message"]["tool_calls"]
        found = json.loads(one["function"]["arguments"])
        self.assertIn(found, [{"s": s, "t": "x y", "n": 7} for s in ("7", "true")])


class Section(Listed):
    """Calls with their ids in a section of their own."""

    template = tool_model.SECTION
    token = ("<tool_calls>", 4)
    call_id = ToolTest.call_id
    written = "<tool_calls><call id={id}>{name}={arguments}</call></tool_calls>"
    test_several_at_once = None  # the model writes one


class Without(Served):
    """The small model's own template does not have tools: the model is told in the server's words."""

    def test_calls(self):
        short = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}}]
        chats = [{"type": "function", "function": {k: v for k, v in short[0].items() if k != "type"}}]
        reply = self.server.post("/v1/responses", input="x", tools=short, tool_choice="required", parallel_tool_calls=False, max_output_tokens=200)
        self.assertIn(json.loads(reply.json()["output"][0]["arguments"]), ({"a": 1}, {"a": 2}))
        reply = self.server.post("/v1/chat/completions", messages=USER, tools=chats, tool_choice="required", parallel_tool_calls=False, max_tokens=200)
        (one,) = reply.json()["choices"][0]["message"]["tool_calls"]
        self.assertIn(json.loads(one["function"]["arguments"]), ({"a": 1}, {"a": 2}))
        tool = [{"name": "f", "input_schema": short[0]["parameters"]}]
        reply = self.server.post("/v1/messages", messages=USER, tools=tool, tool_choice={"type": "tool", "name": "f"}, max_tokens=200)
        self.assertIn(reply.json()["content"][0]["input"], ({"a": 1}, {"a": 2}))


class Told(ToolTest):
    """A template without tools, and with a place for the system's message."""

    template = tool_model.SPOKEN

    def read(self, messages, **fields):
        return self.server.post("/apply-template", messages=messages, **fields).json()["prompt"]

    def test_what_the_model_reads(self):
        talk = [{"role": "system", "content": "Be kind."}, *USER, said(call(), content="I look."), result(), {"role": "user", "content": "So?"}]
        prompt = self.read(talk, tools=TOOLS)
        for words in ("<system>Be kind.\n\nYou can call these functions:\n", '"name":"weather"',
                      'I look.\n<tool_call>\n{"name": "weather", "arguments": {"city":"Oslo","days":1}}\n</tool_call>',
                      "<user><tool_response>\nRain.\n</tool_response>\nSo?\n<assistant>"):
            self.assertIn(words, prompt)
        self.assertNotIn("You can call", self.read(talk))
        self.assertIn("<user><tool_response>", self.read(talk))
        self.assertIn("<system>You can call these functions", self.read(USER, tools=TOOLS))
        self.assertEqual(self.read(USER), self.read(USER, tools=TOOLS, tool_choice="none"))


class Plain(Told):
    """A template that wants no message but the user's and the assistant's."""

    template = tool_model.PLAIN

    def test_what_the_model_reads(self):
        prompt = self.read(USER + [said(call()), result()], tools=TOOLS)
        self.assertIn("<user>You can call these functions:\n", prompt)
        self.assertIn("just answer.\n\nWhat is 2+2?\n<assistant><tool_call>", prompt)
        self.check(self.choice(tool_choice="required", parallel_tool_calls=False))


class Silent(ToolTest):
    """A template that tells of tools and writes no calls: it gets them as texts."""

    template = tool_model.SILENT

    def test_calls_are_texts(self):
        prompt = self.server.post("/apply-template", messages=USER + [said(call()), result()], tools=TOOLS).json()["prompt"]
        self.assertIn('A: <tool_call>\n{"name": "weather"', prompt)
        self.assertIn("Q: <tool_response>\nRain.", prompt)


class Unseen(ToolTest):
    template = "{% for m in messages if m.role != 'system' %}Q: {{ m.content }}\n{% endfor %}A:"

    def test_a_message_that_the_template_leaves_out_is_told(self):
        system = [{"role": "system", "content": "Be brief."}]
        asked = {
            "/v1/chat/completions": {"messages": system + USER},
            "/v1/messages": {"system": "Be brief.", "messages": USER},
            "/v1/responses": {"instructions": "Be brief.", "input": "x"},
        }
        for path, fields in asked.items():
            limit = {"max_output_tokens" if path == "/v1/responses" else "max_tokens": 2}
            with self.subTest(path=path):
                self.assertEqual(self.server.post(path, **fields, **limit).json()["tern"]["unseen"], "system")
        self.assertNotIn("unseen", self.server.post("/v1/chat/completions", messages=USER, max_tokens=2).json()["tern"])


class Unknown(ToolTest):
    template = tool_model.OTHER

    def test_the_form_is_taken_from_the_template(self):
        self.check(self.choice(tool_choice="required", parallel_tool_calls=False))
        prompt = self.server.post("/apply-template", messages=USER + [said(call()), result()], tools=TOOLS).json()["prompt"]
        self.assertIn('[CALL]weather({"city": "Oslo", "days": 1})', prompt)


class Audited(ToolTest):
    options = ("--threads", 2, "--self-audit")

    def test_calls_are_repeated(self):
        for fields in ({"tool_choice": "required"}, self.biased(), {"n": 2, "tool_choice": "required"}):
            before = self.server.metrics()["tern_replays_total"]
            self.assertEqual(self.chat(**fields, **WARM).status, 200)
            self.server.wait_for(lambda m, n=before: m["tern_replays_total"] == n + 1)
        self.assertEqual(self.server.metrics()["tern_replay_mismatch_total"], 0)


if __name__ == "__main__":
    common.main()
