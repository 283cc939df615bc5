# SPDX-License-Identifier: Apache-2.0
"""tern serve: the same answers in the forms of other interfaces: llama.cpp's completions, Anthropic's
messages, OpenAI's responses."""

import json

import common
from common import tern_text
from serving import JSON, LONG, SLOW, Server
from test_serve import QUESTION, SAMPLED, SAMPLED_RUN, Served

USER = [{"role": "user", "content": QUESTION}]


def events_of(reply):
    """Names and documents of a stream of server-sent events."""
    blocks = reply.body.decode().split("\n\n")
    assert blocks.pop() == "", reply.body[-200:]
    events = []
    for block in blocks:
        if not block.startswith(":"):
            lines = block.split("\n")
            assert [line.split(": ")[0] for line in lines] in (["data"], ["event", "data"]), block
            events.append((lines[0][7:] if len(lines) == 2 else None, json.loads(lines[-1][6:])))
    return events


class Native(Served):
    def complete(self, prompt, **fields):
        return self.server.post("/completion", prompt=prompt, **fields)

    def test_a_completion(self):
        body = self.complete("Once upon", n_predict=24, **{k: v for k, v in SAMPLED.items() if k != "max_tokens"}).json()
        self.assertEqual(body["content"] + "\n", tern_text("run", "-p", "Once upon", *SAMPLED_RUN))
        self.assertEqual((body["stop"], body["stop_type"], body["tokens_predicted"]), (True, "limit", 24))
        self.assertEqual((body["model"], body["prompt"], body["index"]), ("tern-small", "Once upon", 0))
        self.assertEqual((body["truncated"], body["has_new_line"]), (False, "\n" in body["content"]))
        settings = body["generation_settings"]
        self.assertEqual((settings["n_predict"], settings["seed"], settings["ignore_eos"]), (24, 9, True))
        self.assertAlmostEqual(settings["temperature"], 1.2, places=6)
        timings = body["timings"]
        self.assertEqual(timings["prompt_n"] + timings["cache_n"], body["tokens_evaluated"])
        self.assertEqual(timings["predicted_n"], 24)
        self.assertGreater(timings["predicted_ms"], 0)
        self.assertAlmostEqual(timings["predicted_per_second"] * timings["predicted_ms"], 23e3, delta=50)
        self.assertAlmostEqual(timings["predicted_per_token_ms"] * 23, timings["predicted_ms"], delta=0.05)

    def test_the_pace_of_a_single_token(self):
        """M849: the pass of the prompt gives the first token, which takes no time beside it."""
        timings = self.complete("Once upon", n_predict=1).json()["timings"]
        self.assertEqual((timings["predicted_n"], timings["predicted_per_second"], timings["predicted_per_token_ms"]), (1, 0, 0))

    def test_a_stream_says_the_same(self):
        fields = SAMPLED | {"return_tokens": True}
        whole = self.complete("Once upon", **fields).json()
        *pieces, last = [document for _, document in events_of(self.complete("Once upon", stream=True, **fields))]
        self.assertEqual("".join(p["content"] for p in pieces), whole["content"])
        self.assertEqual(sum([p["tokens"] for p in pieces], []), whole["tokens"])
        self.assertEqual({p["stop"] for p in pieces}, {False})
        self.assertEqual([p["tokens_predicted"] for p in pieces][-1], 24)
        self.assertEqual((last["content"], last["stop"], last["stop_type"]), ("", True, "limit"))
        self.assertEqual(last["tern"]["digest"], whole["tern"]["digest"])
        self.assertEqual(self.server.post("/detokenize", tokens=whole["tokens"]).json()["content"].strip(), whole["content"].strip())

    def test_members_that_are_asked_for(self):
        """M846"""
        whole = self.complete("Once upon", **SAMPLED).json()
        paths = ["content", "generation_settings/n_predict", "prompt", "tern/no such", "no such", "", "content/x"]
        some = self.complete("Once upon", response_fields=paths, **SAMPLED).json()
        self.assertEqual(some, {"content": whole["content"], "generation_settings/n_predict": 24, "prompt": "Once upon"})
        events = [document for _, document in events_of(self.complete("Once upon", stream=True, response_fields=["stop_type", "stop"], **SAMPLED))]
        self.assertEqual("".join(e["content"] for e in events[:-1]), whole["content"])
        self.assertEqual(events[-1], {"stop_type": "limit", "stop": True})
        several = self.complete(["a", "b\0"], n_predict=1, response_fields=["prompt", "index"]).json()
        self.assertEqual(several, [{"prompt": "a", "index": 0}, {"prompt": "b\0", "index": 1}])
        self.assertIn("timings", self.complete("Once upon", n_predict=1, response_fields=[]).json())
        for wrong in ("content", [3], ["a"] * 65, {"a": 1}):
            self.refused(self.complete("x", response_fields=wrong), 400, "response_fields")

    def test_an_answer_that_fills_the_context(self):
        """M847"""
        ids = [5] * (self.server.get("/props").json()["default_generation_settings"]["n_ctx"] - 3)
        body = self.complete(ids, n_predict=-1, ignore_eos=True).json()
        self.assertEqual((body["truncated"], body["stop_type"]), (True, "limit"))

    def test_why_it_stopped(self):
        free = self.complete("Once upon", n_predict=24).json()["content"]
        body = self.complete("Once upon", n_predict=24, stop=["no such text", free[10:13]]).json()
        self.assertEqual((body["stop_type"], body["stopping_word"]), ("word", free[10:13]))
        self.assertEqual(body["content"], free[: free.index(free[10:13])])
        body = self.complete("Q: What is 2+2? A:", n_predict=-1).json()
        self.assertEqual((body["stop_type"], body["stopping_word"]), ("eos", ""))

    def test_mixed_prompts(self):
        ids = self.server.post("/tokenize", content="Once upon", add_special=True).json()["tokens"]
        tail = self.server.post("/tokenize", content=" a time").json()["tokens"]
        by_ids = self.complete(ids + tail, n_predict=5).json()
        mixed = self.complete(ids + [" a time"], n_predict=5).json()
        self.assertEqual(mixed["tern"]["digest"], by_ids["tern"]["digest"])
        several = self.complete(["Once upon", ids + [" a time"], ids], n_predict=5).json()
        self.assertEqual([r["index"] for r in several], [0, 1, 2])
        self.assertEqual(several[1]["tern"]["digest"], by_ids["tern"]["digest"])
        self.assertEqual(several[0]["content"], several[2]["content"])
        self.assertEqual(len(self.complete("Once upon", n_predict=2, n_cmpl=3).json()), 3)

    def test_probabilities(self):
        body = self.complete("Once upon", n_predict=5, n_probs=3).json()
        chosen = body["completion_probabilities"]
        self.assertEqual("".join(p["token"] for p in chosen), body["content"])
        self.assertEqual({len(p["top_logprobs"]) for p in chosen}, {3})
        self.assertNotIn("completion_probabilities", self.complete("Once upon", n_predict=2, n_probs=0).json())

    def test_biases_as_pairs(self):
        first = self.complete("Once upon", n_predict=1, return_tokens=True).json()["tokens"][0]
        for bias in ([[first, False]], [[first, -100]], {str(first): False}):
            body = self.complete("Once upon", n_predict=1, return_tokens=True, logit_bias=bias).json()
            self.assertNotEqual(body["tokens"], [first])
        for bias in ([[first]], [["a"]], [["a", "b"]], [[None, 1]], [[-1, 1]], [[10**9, 1]], [[first, True]], [1], 3):
            self.refused(self.complete("x", logit_bias=bias), 400, "logit_bias")

    def test_biases_of_texts(self):
        ids = self.server.post("/tokenize", content="a time").json()["tokens"]
        self.assertGreater(len(ids), 1)
        should = sorted((i, -3) for i in [5, *ids])
        for bias in ([["a time", -3], [5, -3]], {"a time": -3, "5": -3}):
            told = self.complete("Once", n_predict=1, logit_bias=bias).json()["generation_settings"]["logit_bias"]
            self.assertEqual(sorted((b["token"], b["bias"]) for b in told), should)
        self.refused(self.server.complete("x", logit_bias={"a time": 1}), 400, "logit_bias")
        for many in ({f"{n}": 1 for n in range(1000)} | {"b " * 4000: 1}, [["b " * 5000, 1]]):
            self.refused(self.complete("x", logit_bias=many), 400, "logit_bias")

    def test_prompts_in_objects(self):
        plain = self.complete(["Once", "upon"], n_predict=3, temperature=0).json()
        for prompt in ([{"prompt_string": "Once"}, "upon"], ["Once", {"prompt_string": "upon", "multimodal_data": []}]):
            self.assertEqual([b["content"] for b in self.complete(prompt, n_predict=3, temperature=0).json()], [b["content"] for b in plain])
        self.assertEqual(self.complete({"prompt_string": "Once"}, n_predict=3, temperature=0).json()["content"], plain[0]["content"])
        for prompt in ({}, {"prompt_string": 3}, {"prompt_string": "x", "multimodal_data": ["x"]}, {"prompt_string": "x", "multimodal_data": "x"}):
            self.refused(self.complete(prompt), 400, "prompt")
        one = {"max_tokens": 3, "temperature": 0}
        texts = [self.server.complete(p, **one).json()["choices"][0]["text"] for p in ("Once", {"prompt_string": "Once"}, {"content": [{"type": "text", "text": "Once"}]})]
        self.assertEqual(texts, texts[:1] * 3)

    def test_prompts_that_are_not_shared(self):
        prompt = "Luna the panda " * 30
        cached = [self.complete(prompt, n_predict=1, cache_prompt=c).json()["tokens_cached"] for c in (False, False, True, True)]
        self.assertEqual(cached[:3], [0, 0, 0])
        self.assertGreater(cached[3], 0)

    def test_no_token_at_all(self):
        prompt = "The cat and the hat " * 30
        body = self.complete(prompt, n_predict=0).json()
        self.assertEqual((body["content"], body["tokens_predicted"], body["stop_type"]), ("", 0, "limit"))
        self.assertEqual(body["generation_settings"]["n_predict"], 0)
        self.assertGreater(self.complete(prompt, n_predict=1).json()["tokens_cached"], 0)
        self.refused(self.complete(prompt, n_predict=0, n_cmpl=2), 400, "n_cmpl")

    def test_what_is_known_and_not_done(self):
        for name, value in {"mirostat": 2, "typical_p": 0.5, "samplers": ["top_k"], "grammar": "root ::= x",
                            "lora": [{"id": 0}], "dry_multiplier": 0.5, "n_predict": -2}.items():
            self.refused(self.complete("x", **{name: value}), 400, name)
        body = self.complete("x", n_predict=1, mirostat=0, typical_p=1.0, samplers=[], n_keep=3).json()
        self.assertEqual(body["tern"]["ignored"], ["n_keep"])

    def test_slots(self):
        with Server("--parallel", 3) as server:
            idle = server.get("/slots").json()
            self.assertEqual([(s["id"], s["is_processing"], s["n_ctx"]) for s in idle], [(i, False, 512) for i in range(3)])
            connection = server.connect()
            self.addCleanup(connection.close)
            body = {"prompt": "Luna the panda", "n_cmpl": 3, "n_predict": -1, "ignore_eos": True, "stream": True}
            connection.request("POST", "/completion", json.dumps(body), JSON)
            connection.getresponse().readline()
            server.wait_for(lambda m: m["tern_answers_running"] == 3)
            busy = [s for s in server.get("/slots").json() if s["is_processing"]]
            self.assertTrue(busy)
            self.assertGreater(busy[0]["next_token"]["n_decoded"], 0)
            self.assertTrue(busy[0]["params"]["ignore_eos"])
            self.assertNotIn("panda", json.dumps(busy))
            self.assertEqual(server.get("/slots?fail_on_no_slot=1").status, 503)

    def test_props(self):
        props = self.server.get("/props").json()
        self.assertEqual(props["default_generation_settings"]["n_ctx"], 512)
        self.assertEqual((props["model_path"], props["model_alias"]), ("tern-small.gguf", "tern-small"))
        ids = self.server.post("/tokenize", content="x", add_special=True, with_pieces=True).json()["tokens"]
        self.assertEqual(props["bos_token"], ids[0]["piece"])


class Messages(Served):
    def message(self, messages=USER, headers=None, **fields):
        return self.server.post("/v1/messages", headers, messages=messages, **{"max_tokens": 50} | fields)

    def refused(self, reply, status, param=None):
        body = reply.json()
        self.assertEqual((reply.status, body["type"], body["error"]["param"]), (status, "error", param), body)
        return body["error"]

    def test_a_message_is_answered(self):
        body = self.message().json()
        self.assertRegex(body["id"], "^msg_[0-9a-f]{24}$")
        self.assertEqual((body["type"], body["role"], body["model"]), ("message", "assistant", "tern-small"))
        self.assertEqual(body["content"], [{"type": "text", "text": "4"}])
        self.assertEqual((body["stop_reason"], body["stop_sequence"]), ("end_turn", None))
        chat = self.server.chat(QUESTION, max_tokens=50).json()
        self.assertEqual(body["tern"]["digest"], chat["tern"]["digest"])
        usage = body["usage"]
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], chat["usage"]["prompt_tokens"])
        self.assertEqual(usage["output_tokens"], chat["usage"]["completion_tokens"])

    def test_why_it_stopped(self):
        story = [{"role": "user", "content": "Tell me a story."}]
        free = self.message(story, max_tokens=24).json()
        self.assertEqual(free["stop_reason"], "max_tokens")
        text = free["content"][0]["text"]
        body = self.message(story, max_tokens=24, stop_sequences=["nowhere", text[8:11]]).json()
        self.assertEqual((body["stop_reason"], body["stop_sequence"]), ("stop_sequence", text[8:11]))
        self.assertEqual(body["content"][0]["text"], text[: text.index(text[8:11])])

    def test_events_of_a_stream(self):
        fields = {"max_tokens": 12, "temperature": 1.2, "seed": 9}
        whole = self.message(**fields).json()
        events = events_of(self.message(stream=True, **fields))
        names = [name for name, _ in events]
        pieces = names.count("content_block_delta")
        self.assertEqual(names, ["message_start", "content_block_start", "ping"] + pieces * ["content_block_delta"]
                         + ["content_block_stop", "message_delta", "message_stop"])
        self.assertTrue(all(document["type"] == name for name, document in events))
        start = events[0][1]["message"]
        self.assertEqual((start["content"], start["stop_reason"], start["role"]), ([], None, "assistant"))
        text = "".join(d["delta"]["text"] for n, d in events if n == "content_block_delta")
        self.assertEqual(text, whole["content"][0]["text"])
        end = events[-2][1]
        self.assertEqual(end["delta"], {k: whole[k] for k in ("stop_reason", "stop_sequence")})
        self.assertEqual(end["usage"]["output_tokens"], whole["usage"]["output_tokens"])
        self.assertEqual(end["tern"]["digest"], whole["tern"]["digest"])

    def test_what_the_system_says(self):
        told = [{"role": "system", "content": "Be\nbrief."}] + USER
        parts = [{"type": "text", "text": "Be", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "brief."}]
        with Server("--chat-template", "llama2") as server:  # the small model's own has no place for it
            def digest(path, **fields):
                return server.post(path, max_tokens=5, **fields).json()["tern"]["digest"]

            same = digest("/v1/chat/completions", messages=told)
            for system in ("Be\nbrief.", parts):
                self.assertEqual(digest("/v1/messages", messages=USER, system=system), same)
            self.assertNotEqual(digest("/v1/messages", messages=USER), same)

    def test_tokens_are_counted(self):
        count = self.server.post("/v1/messages/count_tokens", messages=USER).json()
        body = self.message().json()["usage"]
        self.assertEqual(count, {"input_tokens": body["input_tokens"] + body["cache_read_input_tokens"]})
        long = [{"role": "user", "content": "a b " * 600}]
        self.assertGreater(self.server.post("/v1/messages/count_tokens", messages=long).json()["input_tokens"], 512)
        chat = self.server.post("/v1/chat/completions/input_tokens", messages=USER).json()
        self.assertEqual(chat, count)

    def test_what_was_in_the_cache_is_counted_apart(self):
        said = [{"role": "user", "content": "Luna has a hat. " * 20}]
        first, again = (self.message(said, max_tokens=2).json()["usage"] for _ in range(2))
        self.assertEqual(first["cache_read_input_tokens"], 0)
        self.assertGreater(again["cache_read_input_tokens"], 0)
        self.assertEqual(again["input_tokens"] + again["cache_read_input_tokens"], first["input_tokens"])

    def test_errors_have_their_form(self):
        error = self.refused(self.message(model="gpt"), 404, "model")
        self.assertEqual(error["type"], "not_found_error")
        for fields, param in (({"messages": []}, "messages"), ({"tools": [{"name": "f"}]}, "tools"),
                              ({"thinking": {"type": "much"}}, "thinking"),
                              ({"system": 3}, "system"), ({"stop_sequences": [""]}, "stop_sequences"),
                              ({"messages": [{"role": "tool", "content": "x"}]}, "messages"),
                              ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages")):
            with self.subTest(fields=fields):
                self.assertEqual(self.refused(self.message(**fields), 400, param)["type"], "invalid_request_error")
        self.assertEqual(self.message(thinking={"type": "disabled"}, tool_choice={"type": "none"}, tools=[]).status, 200)
        self.assertEqual(self.message(metadata={"user_id": "x"}).json()["tern"]["ignored"], ["metadata"])
        error = self.refused(self.message([{"role": "user", "content": "a b " * 600}]), 400)
        self.assertEqual(error["n_ctx"], 512)
        with Server(env={"TERN_API_KEY": "one"}) as server:
            reply = server.post("/v1/messages", messages=USER)
            self.assertEqual((reply.status, reply.json()["error"]["type"]), (401, "authentication_error"))
            reply = server.post("/v1/messages", {"x-api-key": "one", "anthropic-version": "2023-06-01"}, messages=USER)
            self.assertEqual(reply.status, 200)


class Responses(Served):
    def respond(self, given=QUESTION, **fields):
        return self.server.post("/v1/responses", input=given, **fields)

    def test_a_response(self):
        body = self.respond(metadata={"a": "b"}).json()
        self.assertRegex(body["id"], "^resp_[0-9a-f]{24}$")
        self.assertEqual((body["object"], body["status"], body["error"]), ("response", "completed", None))
        (item,) = body["output"]
        self.assertEqual((item["type"], item["role"], item["status"]), ("message", "assistant", "completed"))
        self.assertEqual(item["content"], [{"type": "output_text", "text": "4", "annotations": [], "logprobs": []}])
        self.assertEqual((body["metadata"], body["store"]), ({"a": "b"}, False))
        chat = self.server.chat(QUESTION).json()
        self.assertEqual(body["tern"]["digest"], chat["tern"]["digest"])
        self.assertEqual(body["usage"]["input_tokens"], chat["usage"]["prompt_tokens"])
        self.assertEqual(body["usage"]["total_tokens"], chat["usage"]["total_tokens"])
        cut = self.respond("Tell me a story.", max_output_tokens=3).json()
        self.assertEqual((cut["status"], cut["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))

    def test_inputs_that_say_the_same(self):
        told = [{"role": "system", "content": "Be brief."}] + USER
        parts = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
        with Server("--chat-template", "llama2") as server:  # the small model's own has no place for it
            same = server.post("/v1/chat/completions", messages=told, max_tokens=5).json()["tern"]["digest"]
            for given in (QUESTION, USER, parts):
                fields = {"input": given, "instructions": "Be brief."}
                body = server.post("/v1/responses", max_output_tokens=5, **fields).json()
                self.assertEqual((body["tern"]["digest"], body["instructions"]), (same, "Be brief."))
            count = server.post("/v1/responses/input_tokens", **fields).json()
            self.assertEqual(count, {"object": "response.input_tokens", "input_tokens": body["usage"]["input_tokens"]})
            plain = server.post("/v1/responses", input=QUESTION, max_output_tokens=5).json()["tern"]["digest"]
            self.assertNotEqual(plain, same)

    def test_events_of_a_stream(self):
        fields = {"max_output_tokens": 12, "temperature": 1.2, "seed": 9}
        whole = self.respond(**fields).json()
        events = events_of(self.respond(stream=True, **fields))
        names = [name for name, _ in events]
        pieces = names.count("response.output_text.delta")
        self.assertEqual(names, ["response.created", "response.in_progress", "response.output_item.added",
                                 "response.content_part.added"] + pieces * ["response.output_text.delta"]
                         + ["response.output_text.done", "response.content_part.done", "response.output_item.done",
                            "response.completed" if whole["status"] == "completed" else "response.incomplete"])
        self.assertTrue(all(document["type"] == name for name, document in events))
        self.assertEqual([document["sequence_number"] for _, document in events], list(range(len(events))))
        text = whole["output"][0]["content"][0]["text"]
        self.assertEqual("".join(d["delta"] for n, d in events if n.endswith("text.delta")), text)
        self.assertEqual(events[-4][1]["text"], text)
        last = events[-1][1]["response"]
        self.assertEqual(last["output"][0]["content"], whole["output"][0]["content"])
        self.assertEqual(last["tern"]["digest"], whole["tern"]["digest"])
        self.assertEqual(events[0][1]["response"]["status"], "in_progress")
        ids = {d["item_id"] for _, d in events if "item_id" in d}
        self.assertEqual(ids, {last["output"][0]["id"]})

    def test_logprobs(self):
        fields = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
        logs = self.respond(**fields).json()["output"][0]["content"][0]["logprobs"]
        chat = self.server.chat(QUESTION, logprobs=True, top_logprobs=2).json()
        self.assertEqual(logs, chat["choices"][0]["logprobs"]["content"])
        events = events_of(self.respond(stream=True, **fields))
        pieces = [d["logprobs"] for n, d in events if n.endswith("text.delta")]
        self.assertEqual(sum(pieces, []), logs)
        self.assertTrue(all(pieces))

    def test_what_is_known_and_not_done(self):
        for name, value in {"previous_response_id": "resp_1", "conversation": "conv_1", "background": True,
                            "truncation": "middle", "tools": [{"type": "function"}], "reasoning": {"effort": 3},
                            "include": ["file_search_call.results"], "text": {"format": {"type": "grammar"}},
                            "top_logprobs": 2}.items():
            self.refused(self.respond(**{name: value}), 400, name)
        for given in ([], [{"type": "function_call_output", "output": "x"}], [{"role": "tool", "content": "x"}], 3,
                      [{"role": "user", "content": [{"type": "input_image"}]}]):
            self.refused(self.respond(given), 400, "input")
        self.refused(self.server.post("/v1/responses"), 400, "input")
        body = self.respond(store=False, truncation="auto", text={"format": {"type": "text"}}, user="me", reasoning={}).json()
        self.assertEqual((body["tern"]["ignored"], body["truncation"]), (["store", "user"], "auto"))
        body = self.respond(store=True).json()  # what is asked is only to keep it
        self.assertEqual((body["tern"]["ignored"], body["store"]), (["store"], False))


class Others(Served):
    def test_embeddings_are_not_made(self):
        reply = self.server.post("/v1/embeddings", input="x")
        self.assertEqual(self.refused(reply, 501)["type"], "not_supported_error")
        self.assertEqual(reply.headers["x-should-retry"], "false")

    def test_a_stream_that_fails_says_so_in_its_form(self):
        long = {k: v for k, v in LONG.items() if k != "max_tokens"}
        for path, fields in (("/v1/messages", {"messages": USER, "max_tokens": -1}),
                             ("/v1/responses", {"input": QUESTION, "max_output_tokens": -1}),
                             ("/completion", {"prompt": "Once upon", "n_predict": -1})):
            with Server("--drain", 0, *SLOW) as server:
                connection = server.connect()
                self.addCleanup(connection.close)
                connection.request("POST", path, json.dumps(fields | long), JSON)
                response = connection.getresponse()
                begun = response.readline()
                server.signal()
                lines = (begun + response.read()).decode().strip().split("\n\n")[-1].split("\n")
                self.assertEqual(lines[:-1], [] if path == "/completion" else ["event: error"])
                self.assertIn("ending", json.loads(lines[-1][6:])["error"]["message"])


if __name__ == "__main__":
    common.main()
