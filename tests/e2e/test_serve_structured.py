# SPDX-License-Identifier: Apache-2.0
"""tern serve: answers in a form that the request asks for, JSON of a schema or texts of a grammar."""

import json

import common
import json_schema
from serving import together
from test_serve import Served, streamed, text_of
from test_serve_forms import events_of

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Paris", "Rome", "Oslo", "Zürich"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 30},
        "sunny": {"type": "boolean"},
    },
    "required": ["city", "days", "sunny"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "trip", "strict": True, "schema": SCHEMA}}
WARM = {"temperature": 1.5, "seed": 3}
GRAMMAR = 'root ::= ("yes" | "no") ", " [a-c]{2,4} "."'
USER = [{"role": "user", "content": "Where do we go?"}]


class Structured(Served):
    def check(self, text):
        self.assertEqual(list(json_schema.problems(json.loads(text), SCHEMA)), [], text)

    def chat(self, **fields):
        return self.server.post("/v1/chat/completions", **{"messages": USER, "response_format": FORMAT} | fields)

    def test_in_every_interface(self):
        text = {"format": {"type": "json_schema", "name": "trip", "schema": SCHEMA}}
        asked = {
            "/v1/chat/completions": ({"messages": USER, "response_format": FORMAT}, lambda b: text_of(b["choices"][0])),
            "/v1/completions": ({"prompt": "A trip:", "response_format": FORMAT}, lambda b: text_of(b["choices"][0])),
            "/completion": ({"prompt": "A trip:", "json_schema": SCHEMA}, lambda b: b["content"]),
            "/v1/responses": ({"input": "Where do we go?", "text": text}, lambda b: b["output"][0]["content"][0]["text"]),
            "/v1/messages": ({"messages": USER, "output_format": {"type": "json_schema", "schema": SCHEMA}},
                             lambda b: b["content"][0]["text"]),
        }
        for path, (fields, found) in asked.items():
            for more in ({}, WARM, WARM | {"seed": 4}):
                with self.subTest(path=path, more=more):
                    reply = self.server.post(path, **fields | more)
                    self.assertEqual(reply.status, 200, reply.body)
                    self.check(found(reply.json()))
                    self.assertEqual(reply.json()["tern"]["ignored"], [])
        echoed = self.server.post("/v1/responses", input="Where?", text=text).json()["text"]
        self.assertEqual(echoed, text)

    def test_it_ends_when_it_is_whole(self):
        body = self.chat(max_tokens=-1, **WARM).json()
        self.assertEqual(body["choices"][0]["finish_reason"], "stop")
        cut = self.chat(max_tokens=3).json()["choices"][0]
        self.assertEqual(cut["finish_reason"], "length")
        self.assertTrue(text_of(cut).startswith("{"))

    def test_a_stream_says_the_same(self):
        whole = self.chat(**WARM).json()
        texts, reasons, digest = streamed(self.chat(stream=True, **WARM).events())
        self.assertEqual((texts[0], reasons[0]), (text_of(whole["choices"][0]), "stop"))
        self.assertEqual(digest, whole["tern"]["digest"])

    def test_choices_are_what_they_are_alone(self):
        together_ = self.chat(n=4, **WARM).json()
        texts = [text_of(c) for c in together_["choices"]]
        self.assertGreater(len(set(texts)), 1)
        for i, text in enumerate(texts):
            self.check(text)
            alone = self.chat(temperature=1.5, seed=3 + i).json()
            self.assertEqual(text_of(alone["choices"][0]), text)
            self.assertEqual(alone["tern"]["digest"], together_["tern"]["digest"][i : i + 1])

    def test_under_load(self):
        def ask(seed):
            return self.chat(temperature=1.5, seed=seed).json()["tern"]["digest"]

        def free(seed):
            return self.chat(response_format=None, temperature=1.5, seed=seed, max_tokens=20).json()["tern"]["digest"]

        calls = [lambda s=s, f=f: f(s) for s in range(6) for f in (ask, free)]
        alone = [call() for call in calls]
        self.assertEqual(together(calls), alone)

    def test_texts_of_a_grammar(self):
        for path, fields in (("/completion", {"prompt": "So?"}), ("/v1/completions", {"prompt": "So?"}),
                             ("/v1/chat/completions", {"messages": USER})):
            for seed in range(4):
                body = self.server.post(path, **fields, grammar=GRAMMAR, temperature=1.5, seed=seed).json()
                text = body["content"] if path == "/completion" else text_of(body["choices"][0])
                self.assertRegex(text, r"^(yes|no), [abc]{2,4}\.$")

    def test_any_object(self):
        for fields in ({"response_format": {"type": "json_object"}}, {"json_schema": {"type": "object"}, "response_format": None}):
            text = text_of(self.chat(max_tokens=12, **fields).json()["choices"][0])
            self.assertTrue(text.startswith("{"), text)
        own = {"type": "json_object", "schema": SCHEMA}
        self.check(text_of(self.chat(response_format=own).json()["choices"][0]))
        self.check(self.server.post("/completion", prompt="x", response_format=own).json()["content"])

    def test_log_probabilities_are_those_without_the_form(self):
        body = self.chat(logprobs=True, top_logprobs=2).json()
        logs = body["choices"][0]["logprobs"]["content"]
        self.assertEqual("".join(entry["token"] for entry in logs), text_of(body["choices"][0]))
        self.assertTrue(all(entry["logprob"] <= 0 for entry in logs))
        free = self.chat(response_format=None, logprobs=True, top_logprobs=2, max_tokens=1).json()
        self.assertEqual(logs[0]["top_logprobs"], free["choices"][0]["logprobs"]["content"][0]["top_logprobs"])
        self.assertNotIn(logs[0]["token"], [entry["token"] for entry in logs[0]["top_logprobs"]])

    def test_several_prompts(self):
        body = self.server.post("/v1/completions", prompt=["One", "Two"], n=2, response_format=FORMAT, **WARM).json()
        texts = [text_of(choice) for choice in body["choices"]]
        self.assertEqual(len(texts), 4)
        for text in texts:
            self.check(text)
        self.assertEqual(body["tern"]["digest"][2],
                         self.server.post("/v1/completions", prompt="Two", response_format=FORMAT, **WARM).json()["tern"]["digest"][0])

    def test_what_is_refused(self):
        def schema(keywords):
            return {"type": "json_schema", "json_schema": {"name": "x", "schema": keywords}}

        for fields, param, words in (
            ({"response_format": schema({"type": "object", "properties": {"a": {"type": "strin"}}})}, "response_format",
             ("response_format.json_schema.schema", "/properties/a", "type that does not exist")),
            ({"response_format": {"type": "json_schema"}}, "response_format", ("schema",)),
            ({"response_format": {"type": "json_schema", "json_schema": {"schema": 3}}}, "response_format", ("schema",)),
            ({"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "strict": 3}}}, "response_format", ("strict",)),
            ({"response_format": {"type": "xml"}}, "response_format", ("json_schema",)),
            ({"response_format": FORMAT, "grammar": GRAMMAR}, "grammar", ("response_format",)),
            ({"response_format": None, "grammar": "root ::= other"}, "grammar", ("other",)),
            ({"response_format": None, "grammar": 3}, "grammar", ()),
            ({"response_format": None, "json_schema": 3}, "json_schema", ()),
            ({"ignore_eos": True}, "ignore_eos", ("response_format",)),
        ):
            with self.subTest(fields=fields):
                message = self.refused(self.chat(**fields), 400, param)["message"]
                for word in words:
                    self.assertIn(word, message)
        self.refused(self.server.post("/v1/responses", input="x", text={"format": {"type": "json_schema", "schema": {"minItems": -1}}}), 400, "text")
        reply = self.server.post("/v1/messages", messages=USER, output_format={"type": "text"}).json()
        self.assertEqual(reply["error"]["param"], "output_format")
        self.assertEqual(self.chat(response_format={"type": "text"}, grammar="", max_tokens=2).status, 200)

    def test_keywords_that_say_nothing(self):
        """Unknown keywords and formats are notes for readers, as JSON Schema 2020-12 says."""
        city = SCHEMA["properties"]["city"] | {"markdownDescription": "x", "nullable": True, "format": "city"}
        schema = SCHEMA | {"properties": SCHEMA["properties"] | {"city": city}, "discriminator": {}, "strict": True}
        form = {"type": "json_schema", "json_schema": {"name": "trip", "strict": True, "schema": schema}}
        reply = self.chat(response_format=form, **WARM).json()
        self.check(text_of(reply["choices"][0]))
        self.assertEqual(reply["tern"].keys() & {"schema_notes", "schema_failed"}, set())

    def test_what_a_mask_cannot_enforce(self):
        """It is told in every reply, and checked when the answer is whole."""
        digit = {"type": "integer", "minimum": 0, "maximum": 1}
        schema = {"type": "object", "properties": {"a": {"type": "array", "items": digit, "uniqueItems": True, "minItems": 3, "maxItems": 3}},
                  "required": ["a"]}
        form = {"type": "json_schema", "json_schema": {"schema": schema}}
        body = self.chat(response_format=form, n=2, **WARM).json()
        note = 'response_format.json_schema.schema: at "/properties/a": uniqueItems: of values that are not listed this is not enforced'
        self.assertEqual(body["tern"]["schema_notes"], [note])
        why = 'the value at "/a" does not satisfy uniqueItems at "/properties/a"'
        self.assertEqual(body["tern"]["schema_failed"], [f"choice {i}: {why}" for i in range(2)])
        last = [e for e in self.chat(response_format=form, stream=True, **WARM).events() if "tern" in e][-1]
        self.assertEqual((last["tern"]["schema_notes"], last["tern"]["schema_failed"]), ([note], [f"choice 0: {why}"]))
        cut = self.chat(response_format=form, max_tokens=3).json()["tern"]
        self.assertEqual(cut.keys() & {"schema_notes", "schema_failed"}, {"schema_notes"})
        schema["properties"]["a"]["maxItems"] = schema["properties"]["a"]["minItems"] = 1
        self.assertNotIn("schema_notes", self.chat(response_format=form, **WARM).json()["tern"])

    def test_objects_are_closed(self):
        form = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {"a": {"type": "null"}}}}}
        for seed in range(4):
            text = text_of(self.chat(response_format=form, temperature=2, seed=seed).json()["choices"][0])
            self.assertIn(json.loads(text), ({}, {"a": None}))

    def test_events_of_messages_and_responses(self):
        fields = {"messages": USER, "output_format": {"type": "json_schema", "schema": SCHEMA}}
        events = events_of(self.server.post("/v1/messages", **fields, stream=True))
        self.check("".join(d["delta"]["text"] for n, d in events if n == "content_block_delta"))
        text = {"format": {"type": "json_schema", "name": "trip", "schema": SCHEMA}}
        events = events_of(self.server.post("/v1/responses", input="Where?", text=text, stream=True))
        self.check("".join(d["delta"] for n, d in events if n == "response.output_text.delta"))


class Open(Served):
    options = ("--open-objects",)

    def test_objects_are_open(self):
        schema = {"type": "object", "properties": {"a": {"type": "null"}}, "minProperties": 1}
        texts = [self.server.post("/completion", prompt="x", json_schema=schema, n_predict=30, temperature=2, seed=s).json()["content"]
                 for s in range(4)]
        self.assertTrue(any(not text.lstrip("{ \n").startswith('"a"') for text in texts), texts)


class Audited(Served):
    options = ("--threads", 2, "--self-audit")

    def test_answers_in_a_form_are_repeated(self):
        for fields in ({"json_schema": SCHEMA, "temperature": 1.5}, {"grammar": GRAMMAR, "n_cmpl": 2}, {"n_predict": 5}):
            before = self.server.metrics()["tern_replays_total"]
            self.assertEqual(self.server.post("/completion", prompt="Once", **fields).status, 200)
            self.server.wait_for(lambda m, n=before: m["tern_replays_total"] == n + 1)
        self.assertEqual(self.server.metrics()["tern_replay_mismatch_total"], 0)


if __name__ == "__main__":
    common.main()
