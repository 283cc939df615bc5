# SPDX-License-Identifier: Apache-2.0
"""tern serve: every field of a request is done, or cannot change the answer, or is refused by name; and what a chat
template gets of them."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import common
import json_schema
import tool_model
import typed_fields
from serving import Server
from test_serve import QUESTION, Served, text_of

USER = [{"role": "user", "content": QUESTION}]
WARM = {"temperature": 1.3, "seed": 4, "max_tokens": 16, "ignore_eos": True}
ROUTES = {
    "/chat/completions": {"messages": USER},
    "/completions": {"prompt": "Once upon"},
    "/responses": {"input": QUESTION},
    "/messages": {"messages": USER},
    "/completion": {"prompt": "Once upon"},
}
SCHEMA = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}

# A template that says what it got.
ECHO = """{%- for m in messages %}{{ m.role }}:{{ m.content }}{{ ';' if m.role == 'assistant' }}{{ '\\n' }}{% endfor %}
{% if documents %}{{ documents | length }} documents{{ '\\n' }}{% endif %}
{% if reasoning_effort is defined %}effort {{ reasoning_effort }}{{ '\\n' }}{% endif %}
{% if enable_thinking is defined %}thinking {{ 'on' if enable_thinking else 'is off' }}{{ '\\n' }}{% endif %}
{% if level is defined %}level {{ level }}{{ '\\n' }}{% endif %}
{% if add_generation_prompt %}assistant:{% endif %}"""


class Table(Served):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.document = cls.server.get("/openapi.json").json()

    def aside(self, route):
        """Fields of a route that are not done, by name."""
        return {name: field for name, field in typed_fields.described(self.document, route).items() if "description" in field}

    def ask(self, route, **fields):
        return self.server.post(route, **ROUTES[route] | {"seed": 1, "max_output_tokens" if route == "/responses" else "max_tokens": 3} | fields)

    def test_fields_of_clients_are_known(self):
        for package in ("openai", "anthropic"):
            found = typed_fields.unknown(self.document, (package,))
            if found is None:
                raise unittest.SkipTest(f"the package {package} is not installed")
            self.assertEqual(found, [])

    def test_a_field_is_harmless_or_refused(self):
        """A field that is not done is noted and changes nothing, or is refused with the reason."""
        asks = {"x": ["y"]}
        seen = {"harmless": 0, "refused": 0}
        for route in ROUTES:
            harmless = {}
            for name, field in self.aside(route).items():
                reply = self.ask(route, **{name: asks, "model": 3})
                error = reply.json()["error"]
                if error["param"] == "model":
                    harmless[name] = asks
                    continue
                self.assertEqual((reply.status, error["param"]), (400, name))
                self.assertEqual(error["message"], f"{name}: {field['description']}")
                seen["refused"] += 1
            told = self.ask(route, **harmless).json()["tern"]
            self.assertEqual((told["ignored"], told["digest"]), (list(harmless), self.ask(route).json()["tern"]["digest"]), route)
            seen["harmless"] += len(harmless)
        self.assertGreater(min(seen.values()), 60)

    def test_what_asks_for_nothing_is_taken(self):
        taken = {"stop_token_ids": [], "min_tokens": 0, "skip_special_tokens": True, "use_beam_search": False, "typical_p": 1,
                 "top_n_sigma": -1, "logits_processors": None, "mirostat": 0, "lora": [], "suffix": "", "audio": None}
        for name, value in taken.items():
            reply = self.server.chat(QUESTION, max_tokens=2, **{name: value})
            self.assertEqual((reply.status, reply.json()["tern"]["ignored"]), (200, []), name)
        for name, value in {"min_tokens": 1, "skip_special_tokens": False, "mirostat": 2, "top_n_sigma": 1}.items():
            self.refused(self.server.chat(QUESTION, **{name: value}), 400, name)
        for value in (0, 1, -1, True, []):  # vLLM tells the log-probabilities of the prompt for 0, too
            self.refused(self.server.chat(QUESTION, prompt_logprobs=value), 400, "prompt_logprobs")
        edits = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
        self.assertEqual(self.ask("/messages", context_management=edits).json()["tern"]["ignored"], ["context_management"])
        reply = self.ask("/messages", context_management={"edits": [{"type": "clear_tool_uses_20250919"}]})
        self.assertEqual((reply.status, reply.json()["error"]["param"]), (400, "context_management"))

    def test_best_of(self):
        asked = {"prompt": "Once upon", **WARM}
        both = self.server.post("/v1/completions", n=2, best_of=2, **asked).json()
        self.assertEqual(both["tern"]["digest"], self.server.post("/v1/completions", n=2, **asked).json()["tern"]["digest"])
        self.refused(self.server.post("/v1/completions", best_of=2, **asked), 400, "best_of")
        self.refused(self.server.post("/v1/completions", n=2, best_of=1, **asked), 400, "best_of")

    def test_null_is_left_out(self):
        for usage in (None, False):
            events = self.server.chat(QUESTION, stream=True, stream_options={"include_usage": usage}).events()
            self.assertNotIn("usage", events[-1])
        reply = self.ask("/messages", output_config={"format": None, "effort": None}, thinking=None)
        self.assertEqual((reply.status, reply.json()["tern"]["ignored"]), (200, []))


class OfOtherServers(Served):
    def test_usage_of_every_chunk(self):
        """continuous_usage_stats, as vLLM has it: each chunk tells how many tokens there are so far."""
        both = {"include_usage": True, "continuous_usage_stats": True}
        for route in ("/chat/completions", "/completions"):
            asked = ROUTES[route] | {"max_tokens": 5, "ignore_eos": True, "seed": 1, "stream": True, "n": 2}
            events = self.server.post(route, **asked, stream_options=both).events()
            counts = [event["usage"]["completion_tokens"] for event in events]
            self.assertEqual((counts, counts[-1]), (sorted(counts), 10))
            self.assertGreater(len(set(counts)), 4)
            whole = events[-1]["usage"]
            self.assertEqual({event["usage"]["prompt_tokens"] for event in events}, {whole["prompt_tokens"]})
            for event in events:
                self.assertEqual(event["usage"]["total_tokens"], event["usage"]["completion_tokens"] + whole["prompt_tokens"])
            for options in ({"include_usage": True, "continuous_usage_stats": False}, {"continuous_usage_stats": True}):
                others = self.server.post(route, **asked, stream_options=options).events()
                self.assertEqual({str(event.get("usage")) for event in others[:-1]}, {"None"})

    def test_the_text_that_ended_it(self):
        """The names of vLLM (stop_reason) and SGLang (matched_stop)."""
        asked = {"prompt": "Once upon", "temperature": 0, **WARM}
        free = self.server.post("/v1/completions", **asked).json()["choices"][0]
        self.assertNotIn("stop_reason", free)
        stop = free["text"][4:6]
        found = self.server.post("/v1/completions", **asked, stop=["no such text", stop]).json()["choices"][0]
        self.assertEqual((found["finish_reason"], found["stop_reason"], found["matched_stop"]), ("stop", stop, stop))
        events = self.server.post("/v1/completions", **asked, stop=stop, stream=True).events()
        self.assertEqual([event["choices"][0].get("stop_reason") for event in events], [None] * (len(events) - 1) + [stop])


    def test_the_token_that_ended_it(self):
        asked = {"prompt": "Once upon", **WARM}
        ids = self.server.post("/completion", return_tokens=True, n_predict=16, **(asked | {"max_tokens": 16})).json()["tokens"]
        free = self.server.post("/v1/completions", **asked).json()
        at = ids.index(ids[5])
        for more in ({}, {"n": 2}):
            found = self.server.post("/v1/completions", **asked, **more, stop_token_ids=[ids[5], 0]).json()
            choice = found["choices"][0]
            self.assertEqual((choice["finish_reason"], choice["stop_reason"], choice["matched_stop"]), ("stop", ids[5], ids[5]))
            self.assertTrue(free["choices"][0]["text"].startswith(choice["text"]))
            self.assertEqual(self.server.post("/detokenize", tokens=ids[:at]).json()["content"].strip(), choice["text"].strip())
        for wrong in ([-1], ["a"], 3, [10**9], [1] * 17):
            self.refused(self.server.post("/v1/completions", **asked, stop_token_ids=wrong), 400, "stop_token_ids")
        self.refused(self.server.post("/v1/completions", **asked, stop_token_ids=[1], receipt=True), 400, "stop_token_ids")


class Times(Served):
    def test_times_are_told_when_asked_for(self):
        """With timings_per_token the end of a reply tells times, in llama.cpp's form, whole and streamed."""
        for route in ("/chat/completions", "/completions"):
            asked = ROUTES[route] | {"max_tokens": 5, "ignore_eos": True, "seed": 1}
            plain = self.server.post(route, **asked).json()
            told = self.server.post(route, **asked, timings_per_token=True).json()
            self.assertNotIn("timings", plain)
            self.assertEqual((told["choices"], told["tern"]), (plain["choices"], plain["tern"]))
            self.assertEqual((told["timings"]["predicted_n"], told["timings"]["prompt_n"] + told["timings"]["cache_n"]), (5, plain["usage"]["prompt_tokens"]))
            for options in ({}, {"stream_options": {"include_usage": True}}):
                events = self.server.post(route, **asked, **options, stream=True, timings_per_token=True).events()
                self.assertEqual([i for i, event in enumerate(events) if "timings" in event], [len(events) - 1])
                self.assertEqual(events[-1]["timings"]["predicted_n"], 5)


class Forms(Served):
    """Fields of other servers that ask for a form."""

    def chat(self, **fields):
        return self.server.chat(QUESTION, max_tokens=40, temperature=1.4, **fields)

    def test_each_form(self):
        asked = {
            "json": [{"structured_outputs": {"json": SCHEMA}}, {"structured_outputs": {"json": json.dumps(SCHEMA)}}, {"guided_json": SCHEMA},
                     {"guided_json": json.dumps(SCHEMA)}, {"json_schema": json.dumps(SCHEMA)}],
            "object": [{"structured_outputs": {"json_object": True}}],
            "regex": [{"structured_outputs": {"regex": "[ab]{3}-\\d\\.\""}}, {"guided_regex": "^[ab]{3}-\\d\\.\"$"}, {"regex": "[ab]{3}-\\d\\.\""}],
            "choice": [{"structured_outputs": {"choice": ["no", 'a "b"\n\\']}}, {"guided_choice": ["no", 'a "b"\n\\']}],
            "grammar": [{"structured_outputs": {"grammar": 'root ::= "x" [yz]+ "."'}}, {"guided_grammar": 'root ::= "x" [yz]+ "."'},
                        {"ebnf": 'root ::= "x" [yz]+ "."'}],
        }
        checks = {"object": lambda text: text.startswith("{"), "json": lambda text: isinstance(json.loads(text), dict), "regex": lambda text: re.fullmatch('[ab]{3}-[0-9]\\."', text),
                  "choice": lambda text: text in ("no", 'a "b"\n\\'), "grammar": lambda text: re.fullmatch("x[yz]+\\.?", text)}
        for kind, forms in asked.items():
            for fields in forms:
                for seed in range(2):
                    with self.subTest(fields=fields, seed=seed):
                        reply = self.chat(seed=seed, **fields)
                        self.assertEqual(reply.status, 200, reply.body)
                        self.assertEqual(reply.json()["tern"]["ignored"], [])
                        self.assertTrue(checks[kind](text_of(reply.json()["choices"][0])), reply.body)
        text = text_of(self.chat(guided_json=SCHEMA).json()["choices"][0])
        self.assertEqual(list(json_schema.problems(json.loads(text), SCHEMA)), [])

    def test_forms_of_messages(self):
        for fields in ({"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}, {"output_format": {"type": "json_schema", "schema": SCHEMA}}):
            reply = self.server.post("/v1/messages", messages=USER, max_tokens=40, **fields).json()
            self.assertEqual(list(json_schema.problems(json.loads(reply["content"][0]["text"]), SCHEMA)), [])
        for config, word in (({"format": {"type": "text"}}, "output_config.format"), ({"effort": 3}, "output_config.effort"), (3, "output_config")):
            reply = self.server.post("/v1/messages", messages=USER, output_config=config)
            self.assertIn(word, self.refused_message(reply, "output_config"))

    def refused_message(self, reply, param):
        self.assertEqual((reply.status, reply.json()["error"]["param"]), (400, param))
        return reply.json()["error"]["message"]

    def test_an_empty_grammar_asks_for_nothing(self):
        """llama.cpp's clients send it always."""
        plain = text_of(self.chat(seed=1).json()["choices"][0])
        for fields in ({"grammar": ""}, {"regex": ""}):
            self.assertEqual(text_of(self.chat(seed=1, **fields).json()["choices"][0]), plain)

    def test_what_is_refused(self):
        for fields, param, words in (({"guided_regex": "(?=a)b"}, "guided_regex", "at byte"), ({"guided_regex": "(a"}, "guided_regex", "at byte 2"),
                                     ({"guided_choice": []}, "guided_choice", "1 to 1024"), ({"guided_choice": ["a", ""]}, "guided_choice", "not empty"),
                                     ({"guided_json": "{"}, None, "guided_json"), ({"structured_outputs": {"structural_tag": "{}"}}, "structured_outputs", "structural_tag"),
                                     ({"guided_json": SCHEMA, "guided_regex": "a"}, "guided_regex", "not together"), ({"regex": 3}, "regex", "a text"),
                                     ({"structured_outputs": {"choice": 3}}, "structured_outputs", "structured_outputs.choice"),
                                     ({"structured_outputs": {"grammar": ""}}, "structured_outputs", "structured_outputs.grammar is empty"),
                                     ({"structured_outputs": {"regex": ""}}, "structured_outputs", "structured_outputs.regex is empty"),
                                     ({"guided_grammar": ""}, "guided_grammar", "is empty"),
                                     ({"logit_bias": {"3": 1, "word": 2}}, "logit_bias", '"word" is not a token id')):
            with self.subTest(fields=fields):
                self.assertIn(words, self.refused(self.chat(**fields), 400, param)["message"])


class Template(Served):
    """What the template gets."""

    template = ECHO

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = Path(folder.name) / "echo.gguf"
        tool_model.write(path, cls.template)
        cls.server = Server("-m", path, *cls.options)
        cls.addClassCleanup(cls.server.stop)

    def prompt(self, **fields):
        reply = self.server.post("/apply-template", **{"messages": USER} | fields)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()["prompt"].removeprefix("<|begin_of_text|>")

    def test_variables(self):
        for fields, line in (({"chat_template_kwargs": {"level": 3}}, "level 3"), ({"chat_template_kwargs": {"enable_thinking": False}}, "thinking is off"),
                             ({"enable_thinking": True}, "thinking on"), ({"reasoning_effort": "high"}, "effort high"),
                             ({"reasoning_effort": "none"}, "effort none\nthinking is off"), ({"documents": [{"text": "a"}]}, "1 documents"),
                             ({"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": True}}, "effort none\nthinking on"),
                             ({"chat_template_kwargs": {"enable_thinking": True}, "enable_thinking": False}, "thinking on")):
            with self.subTest(fields=fields):
                self.assertEqual(self.prompt(**fields), f"user:{QUESTION}\n{line}\nassistant:")
                ignored = self.server.chat(QUESTION, max_tokens=1, **fields).json()["tern"]["ignored"]
                self.assertEqual(ignored, [])

    def test_roles_are_of_the_template(self):
        """A template gets messages of every role in chats; the roles of the other interfaces are fixed."""
        for role in ("critic", "function", "ipython"):
            said = [{"role": role, "content": "No."}, *USER]
            self.assertEqual(self.prompt(messages=said), f"{role}:No.\nuser:{QUESTION}\nassistant:")
            self.assertEqual(self.server.post("/v1/messages", messages=said, max_tokens=1).status, 400)
            self.refused(self.server.post("/v1/responses", input=said), 400, "input")
        for role in (None, "", 3):
            self.refused(self.server.post("/v1/chat/completions", messages=[{"role": role, "content": "No."}]), 400, "messages")

    def test_a_variable_changes_the_answer(self):
        asked = {"max_tokens": 8, "temperature": 0, "ignore_eos": True}
        plain, on = self.server.chat(QUESTION, **asked).json(), self.server.chat(QUESTION, enable_thinking=True, **asked).json()
        self.assertEqual(on["usage"]["prompt_tokens"], len(self.server.post("/apply-template", messages=USER, enable_thinking=True).json()["tokens"]))
        self.assertNotEqual(plain["tern"]["digest"], on["tern"]["digest"])

    def test_variables_without_effect_are_noted(self):
        kwargs = {"chat_template_kwargs": {"speed": 3, "level": 1}, "verbosity": "low"}
        self.assertEqual(self.server.chat(QUESTION, max_tokens=1, **kwargs).json()["tern"]["ignored"], ["chat_template_kwargs.speed", "verbosity"])
        for fields, param in (({"chat_template_kwargs": 3}, "chat_template_kwargs"), ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs"),
                              ({"enable_thinking": "no"}, "enable_thinking"), ({"reasoning_effort": 3}, "reasoning_effort")):
            self.refused(self.server.chat(QUESTION, **fields), 400, param)

    def tokens(self, path, **fields):
        reply = self.server.post(path, **fields)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()["input_tokens"]

    def test_thinking_of_messages_and_responses(self):
        """Messages think when they are asked to; responses as the effort says."""
        count = {name: len(self.server.post("/apply-template", messages=USER, **fields).json()["tokens"])
                 for name, fields in {"on": {"enable_thinking": True}, "off": {"enable_thinking": False}, "low": {"reasoning_effort": "low"}, "": {}}.items()}
        self.assertEqual(len(set(count.values())), 4, count)
        for fields, wanted in (({}, "off"), ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "on"), ({"thinking": {"type": "adaptive"}}, "on"),
                               ({"thinking": {"type": "disabled"}}, "off"), ({"chat_template_kwargs": {"enable_thinking": True}}, "on")):
            self.assertEqual(self.tokens("/v1/messages/count_tokens", messages=USER, **fields), count[wanted], fields)
        for reasoning, wanted in (({}, ""), ({"effort": "low", "summary": "auto"}, "low"), ({"effort": None}, "")):
            self.assertEqual(self.tokens("/v1/responses/input_tokens", input=QUESTION, reasoning=reasoning), count[wanted], reasoning)
        reply = self.server.post("/v1/messages", messages=USER, max_tokens=1, thinking={"type": "enabled", "budget_tokens": 2000})
        self.assertEqual(reply.json()["tern"]["ignored"], ["thinking.budget_tokens"])
        self.assertEqual(self.server.post("/v1/messages", messages=USER, thinking={"type": "much"}).status, 400)

    def test_how_the_prompt_ends(self):
        begun = USER + [{"role": "assistant", "content": "The answer is"}]
        self.assertEqual(self.prompt(messages=begun), f"user:{QUESTION}\nassistant:The answer is;\nassistant:")
        self.assertEqual(self.prompt(messages=begun, add_generation_prompt=False), f"user:{QUESTION}\nassistant:The answer is;\n")
        self.assertEqual(self.prompt(messages=begun, continue_final_message=True), f"user:{QUESTION}\nassistant:The answer is")
        empty = USER + [{"role": "assistant", "content": ""}]
        self.assertEqual(self.prompt(messages=empty, continue_final_message=True), f"user:{QUESTION}\nassistant:")

    def test_an_answer_goes_on(self):
        begun = USER + [{"role": "assistant", "content": "The answer is"}]
        said = self.server.post("/v1/chat/completions", messages=begun, continue_final_message=True, add_generation_prompt=False, **WARM).json()
        alone = self.server.complete(self.prompt(messages=begun, continue_final_message=True), **WARM).json()
        self.assertEqual((said["tern"]["digest"], text_of(said["choices"][0])), (alone["tern"]["digest"], text_of(alone["choices"][0])))
        self.assertTrue(text_of(said["choices"][0]).startswith(" "), said)  # the blank belongs to the answer
        asked = {"messages": begun, "chat_template_kwargs": {"enable_thinking": True}}
        message = self.server.post("/v1/messages", **asked, **WARM).json()
        chat = self.server.post("/v1/chat/completions", continue_final_message=True, **asked, **WARM).json()
        self.assertEqual(message["tern"]["digest"], chat["tern"]["digest"])
        self.assertEqual(message["content"][0]["text"], text_of(chat["choices"][0]))

    def test_an_answer_cannot_go_on(self):
        begun = USER + [{"role": "assistant", "content": "It"}]
        for fields, param in (({"messages": USER}, "messages"), ({"messages": begun, "add_generation_prompt": True}, "continue_final_message")):
            self.refused(self.server.post("/v1/chat/completions", continue_final_message=True, **fields), 400, param)


class Prompts(Served):
    """Control tokens in texts of completions."""

    def count(self, path, **fields):
        reply = self.server.post(path, max_tokens=1, **fields)
        self.assertEqual(reply.status, 200, reply.body)
        body = reply.json()
        return body["usage"]["prompt_tokens"] if "usage" in body else body["tokens_evaluated"]

    def test_control_tokens(self):
        end = self.server.get("/tokenizer_info").json()["eos_token"]
        text = f"Once{end}upon"
        parsed = len(self.server.post("/tokenize", content=text, parse_special=True, add_special=True).json()["tokens"])
        plain = len(self.server.post("/tokenize", content=text, add_special=True).json()["tokens"])
        bare = len(self.server.post("/tokenize", content=text, parse_special=True).json()["tokens"])
        self.assertLess(parsed, plain)
        for path in ("/v1/completions", "/completion"):
            self.assertEqual(self.count(path, prompt=text), parsed, path)
            self.assertEqual(self.count(path, prompt=text, parse_special=False), plain, path)
        self.assertEqual(self.count("/v1/completions", prompt=text, add_special_tokens=False), bare)

    def test_offsets_count_them(self):
        end = self.server.get("/tokenizer_info").json()["eos_token"]
        text = f"Once{end}upon"
        logs = self.server.complete(text, max_tokens=2, echo=True, logprobs=0, ignore_eos=True).json()["choices"][0]
        shown = [(token, at) for token, at in zip(logs["logprobs"]["tokens"], logs["logprobs"]["text_offset"]) if token]
        self.assertIn((end, len("Once")), shown)
        for token, at in shown[1:shown.index((end, len("Once"))) + 2]:
            self.assertTrue(logs["text"][at:].startswith(token), (token, at, logs["text"]))


if __name__ == "__main__":
    common.main()
