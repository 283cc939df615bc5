# SPDX-License-Identifier: Apache-2.0
"""tern serve: the answers of each route, whole and as a stream, alone and under load."""

import array
import math
import tempfile
from pathlib import Path

import common
from common import tern_text
from serving import Server, together

QUESTION = "What is 2+2?"
SAMPLED = {"temperature": 1.2, "seed": 9, "max_tokens": 24, "ignore_eos": True}
SAMPLED_RUN = ("--temp", 1.2, "--seed", 9, "-n", 24, "--ignore-eos")


def text_of(choice):
    return choice["message"]["content"] if "message" in choice else choice["text"]


def streamed(events):
    """Texts of a stream by choice, why each ended, and the digests."""
    texts, reasons = {}, {}
    for event in events:
        for choice in event["choices"]:
            i = choice["index"]
            piece = choice["delta"].get("content") if "delta" in choice else choice["text"]
            texts[i] = texts.get(i, "") + (piece or "")
            if choice["finish_reason"]:
                reasons[i] = choice["finish_reason"]
    return texts, reasons, events[-1]["tern"]["digest"]


class Served(common.TernTest):
    options = ("--threads", 2)

    @classmethod
    def setUpClass(cls):
        common.small_model()
        cls.server = Server(*cls.options)
        cls.addClassCleanup(cls.server.stop)

    def refused(self, reply, status, param=None):
        error = reply.json()["error"]
        self.assertEqual((reply.status, error["param"]), (status, param), error)
        self.assertEqual(set(error) - {"n_prompt_tokens", "n_ctx"}, {"message", "type", "param", "code"})
        self.assertTrue(error["message"])
        return error


class Answers(Served):
    def test_a_chat_is_answered(self):
        reply = self.server.chat(QUESTION)
        body = reply.json()
        self.assertEqual(reply.headers["content-type"], "application/json")
        self.assertRegex(body["id"], r"^chatcmpl-[0-9a-f]{24}$")
        self.assertRegex(body["system_fingerprint"], r"^b[0-9a-f]{16}$")
        self.assertEqual((body["object"], body["model"]), ("chat.completion", "tern-small"))
        (choice,) = body["choices"]
        self.assertEqual(choice["message"], {"role": "assistant", "content": "4", "refusal": None})
        self.assertEqual((choice["finish_reason"], choice["logprobs"]), ("stop", None))
        usage = body["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertEqual([reply.headers["x-tern-digest"]], body["tern"]["digest"])

    def test_texts_are_those_of_the_command_line(self):
        for message in (QUESTION, "Tell me a story."):
            content = text_of(self.server.chat(message, **SAMPLED).json()["choices"][0])
            self.assertEqual(content + "\n", tern_text("run", "--chat", "-p", message, *SAMPLED_RUN))
        text = text_of(self.server.complete("Once upon", **SAMPLED).json()["choices"][0])
        self.assertEqual(text + "\n", tern_text("run", "-p", "Once upon", *SAMPLED_RUN))

    def test_without_v1(self):
        body = {"messages": [{"role": "user", "content": QUESTION}]}
        self.assertEqual(text_of(self.server.post("/chat/completions", **body).json()["choices"][0]), "4")

    def test_parts_and_developers(self):
        parts = [{"type": "text", "text": "What is"}, {"type": "text", "text": "2+2?"}]
        messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}]
        joined = self.server.post("/apply-template", messages=messages).json()["prompt"]
        self.assertIn("What is\n2+2?", joined)
        reply = self.server.post("/v1/chat/completions", messages=messages, max_tokens=4)
        self.assertEqual(reply.status, 200)

    def test_choices_and_prompts_are_what_each_is_alone(self):
        fields = SAMPLED | {"max_tokens": 12}
        prompts = ["Once upon", "The cat", "Once upon a time"]
        body = self.server.complete(prompts, n=2, **fields).json()
        self.assertEqual([c["index"] for c in body["choices"]], list(range(6)))
        digests = body["tern"]["digest"]
        for i, choice in enumerate(body["choices"]):
            alone = self.server.complete(prompts[i // 2], **fields | {"seed": 9 + i % 2}).json()
            self.assertEqual(text_of(alone["choices"][0]), choice["text"])
            self.assertEqual(alone["tern"]["digest"], [digests[i]])
        self.assertNotEqual(body["choices"][0]["text"], body["choices"][1]["text"])

    def test_a_stream_says_the_same(self):
        for ask in (
            lambda **f: self.server.chat("Tell me a story.", n=2, **SAMPLED, **f),
            lambda **f: self.server.complete(["Once upon", "The cat"], echo=True, **SAMPLED, **f),
        ):
            whole = ask().json()
            reply = ask(stream=True)
            self.assertEqual(reply.headers["content-type"], "text/event-stream")
            self.assertEqual(reply.headers["cache-control"], "no-cache")
            self.assertEqual(reply.headers["x-accel-buffering"], "no")
            texts, reasons, digests = streamed(reply.events())
            self.assertEqual(texts, {c["index"]: text_of(c) for c in whole["choices"]})
            self.assertEqual(reasons, {c["index"]: c["finish_reason"] for c in whole["choices"]})
            self.assertEqual(digests, whole["tern"]["digest"])

    def test_chunks_of_a_chat(self):
        events = self.server.chat(QUESTION, stream=True, stream_options={"include_usage": True}).events()
        first, *middle, last, usage = events
        self.assertEqual(first["choices"][0]["delta"], {"role": "assistant", "content": None})
        self.assertTrue(all("role" not in e["choices"][0]["delta"] for e in middle))
        self.assertEqual(last["choices"][0]["delta"], {})
        self.assertEqual(last["choices"][0]["finish_reason"], "stop")
        self.assertEqual((usage["choices"], usage["usage"]["prompt_tokens_details"]), ([], {"cached_tokens": 0}))
        self.assertEqual({e["id"] for e in events}, {first["id"]})
        self.assertTrue(all(e["object"] == "chat.completion.chunk" for e in events))
        self.assertTrue(all(e["usage"] is None for e in events[:-1]))

    def test_stops(self):
        free = text_of(self.server.complete("Once upon", max_tokens=24).json()["choices"][0])
        stop = free[10:13]
        for given in (stop, ["no such text", stop]):
            choice = self.server.complete("Once upon", max_tokens=24, stop=given).json()["choices"][0]
            self.assertEqual(choice["text"], free[: free.index(stop)])
            self.assertEqual(choice["finish_reason"], "stop")
        texts, _, _ = streamed(self.server.complete("Once upon", max_tokens=24, stop=stop, stream=True).events())
        self.assertEqual(texts[0], free[: free.index(stop)])
        self.assertEqual(self.server.complete("Once upon", max_tokens=3).json()["choices"][0]["finish_reason"], "length")

    def test_logprobs(self):
        chat = self.server.chat(QUESTION, logprobs=True, top_logprobs=3).json()["choices"][0]
        content = chat["logprobs"]["content"]
        self.assertEqual("".join(entry["token"] for entry in content), chat["message"]["content"])
        self.assertEqual(bytes(sum([entry["bytes"] for entry in content], [])).decode(), chat["message"]["content"])
        for entry in content:
            best = entry["top_logprobs"]
            self.assertEqual(len(best), 3)
            self.assertEqual(sorted(best, key=lambda e: -e["logprob"]), best)
            self.assertEqual((best[0]["token"], best[0]["logprob"]), (entry["token"], entry["logprob"]))
            self.assertEqual(bytes(entry["bytes"]).decode(), entry["token"])
            self.assertLessEqual(entry["logprob"], 0)
        events = self.server.chat(QUESTION, logprobs=True, top_logprobs=3, stream=True).events()
        parts = [e["choices"][0]["logprobs"] for e in events]
        self.assertEqual(sum([p["content"] for p in parts if p], []), content)
        logs = self.server.complete("Once upon", max_tokens=5, logprobs=2).json()["choices"][0]["logprobs"]
        self.assertEqual({len(part) for part in logs.values()}, {5})
        self.assertEqual(logs["text_offset"], [len("".join(logs["tokens"][:i])) for i in range(5)])

    def test_ids_and_echo(self):
        ids = self.server.post("/tokenize", content="Once upon", add_special=True).json()["tokens"]
        by_text = self.server.complete("Once upon", max_tokens=8, echo=True).json()
        by_ids = self.server.complete(ids, max_tokens=8).json()
        self.assertEqual(by_text["choices"][0]["text"], "Once upon" + by_ids["choices"][0]["text"])
        self.assertEqual(by_text["tern"]["digest"], by_ids["tern"]["digest"])
        twice = self.server.complete([ids, ids], max_tokens=8).json()
        self.assertEqual(twice["tern"]["digest"], 2 * by_ids["tern"]["digest"])

    def test_echo_with_logprobs(self):
        """A harness that scores texts reads this: how likely the model finds each token of each prompt."""
        ids = self.server.post("/tokenize", content="Once upon a time", add_special=True).json()["tokens"]
        fields = {"logprobs": 2, "max_tokens": 3}
        whole = self.server.complete([ids, ids[:3]], echo=True, n=2, **fields).json()["choices"]
        for i, choice in enumerate(whole):
            prompt = ids if i < 2 else ids[:3]
            n, logs = len(prompt), choice["logprobs"]
            self.assertEqual({len(part) for part in logs.values()}, {n + 3})
            self.assertEqual((logs["token_logprobs"][0], logs["top_logprobs"][0]), (None, None))
            self.assertTrue(all(p <= 0 for p in logs["token_logprobs"][1:]))
            self.assertEqual("".join(logs["tokens"]), choice["text"])
            self.assertEqual(logs["text_offset"], [len("".join(logs["tokens"][:k])) for k in range(n + 3)])
            answer = self.server.complete(prompt, **fields).json()["choices"][0]["logprobs"]
            for part in ("tokens", "token_logprobs", "top_logprobs"):
                self.assertEqual(logs[part][n:], answer[part])
            for k in range(1, n):  # a prompt's token has the logprob that it has as an answer
                best = self.server.complete(prompt[:k], logprobs=2, max_tokens=1).json()["choices"][0]["logprobs"]
                self.assertEqual(logs["top_logprobs"][k], best["top_logprobs"][0])
                if logs["tokens"][k] in logs["top_logprobs"][k]:
                    self.assertEqual(logs["token_logprobs"][k], logs["top_logprobs"][k][logs["tokens"][k]])
        only = self.server.complete(ids, echo=True, logprobs=2, max_tokens=0).json()
        self.assertEqual(only["usage"]["completion_tokens"], 0)
        logs = only["choices"][0]["logprobs"]
        self.assertEqual(logs["token_logprobs"], whole[0]["logprobs"]["token_logprobs"][: len(ids)])
        one = self.server.complete(ids[:1], echo=True, logprobs=2, max_tokens=1).json()["choices"][0]["logprobs"]
        self.assertEqual((one["token_logprobs"][0], len(one["tokens"])), (None, 2))
        text = self.server.complete("Once upon", echo=True, **fields).json()["choices"][0]
        self.assertEqual(text["logprobs"]["text_offset"][3], len("Once upon"))
        for prompt, most in ((ids, 3), (ids, 0), ("Once upon", 3)):
            fields = {"echo": True, "logprobs": 2, "max_tokens": most}
            choice = self.server.complete(prompt, **fields).json()["choices"][0]
            events = self.server.complete(prompt, stream=True, **fields).events()
            self.assertEqual("".join(e["choices"][0]["text"] for e in events), choice["text"])
            for part, values in choice["logprobs"].items():
                self.assertEqual(sum([e["choices"][0]["logprobs"][part] for e in events], []), values)

    def test_prompts_have_the_logprobs_of_the_command_line(self):
        ids = self.server.post("/tokenize", content="Once upon a time there was 2+2.", add_special=True).json()["tokens"]
        told = self.server.complete(ids, echo=True, logprobs=1, max_tokens=0).json()["choices"][0]["logprobs"]["token_logprobs"]
        with tempfile.NamedTemporaryFile() as file:
            common.tern_text("logits", "--tokens", ",".join(map(str, ids)), "-a", "--force", "-o", file.name)
            logits = array.array("f", Path(file.name).read_bytes())
        n = len(logits) // len(ids)
        for i in range(1, len(ids)):
            row = logits[n * (i - 1) : n * i]
            sum_ = max(row) + math.log(sum(math.exp(x - max(row)) for x in row))
            self.assertAlmostEqual(told[i], row[ids[i]] - sum_, delta=1e-5)

    def test_the_token_that_ends_a_text_has_a_logprob(self):
        """Harnesses drop one token after the prompt's: it must be there, too, where the model ends the text."""
        ids = self.server.post("/apply-template", messages=[{"role": "user", "content": QUESTION}]).json()["tokens"]
        ids += self.server.post("/tokenize", content=" 4").json()["tokens"]
        end = self.server.get("/tokenizer_info").json()["eos_token"]
        fields = {"logprobs": 2, "max_tokens": 1}
        on = self.server.complete(ids, ignore_eos=True, **fields).json()["choices"][0]["logprobs"]["top_logprobs"][0]
        for echo, n in ((True, len(ids)), (False, 0)):
            body = self.server.complete(ids, echo=echo, **fields).json()
            choice, logs = body["choices"][0], body["choices"][0]["logprobs"]
            self.assertEqual((choice["finish_reason"], body["usage"]["completion_tokens"]), ("stop", 0))
            self.assertEqual({len(part) for part in logs.values()}, {n + 1})
            self.assertEqual((logs["tokens"][-1], logs["top_logprobs"][-1]), (end, on))
            self.assertEqual(logs["token_logprobs"][-1], on[end])
            self.assertEqual(choice["text"], "".join(logs["tokens"][:-1]))
            self.assertEqual(logs["text_offset"][-1], len(choice["text"]))
            events = self.server.complete(ids, echo=echo, stream=True, **fields).events()
            for part, values in logs.items():
                self.assertEqual(sum([e["choices"][0]["logprobs"][part] for e in events], []), values)

    def test_biases_and_penalties_count(self):
        free = self.server.complete("Once upon", max_tokens=8).json()["choices"][0]["text"]
        ids = self.server.post("/tokenize", content=free).json()["tokens"]
        banned = self.server.complete("Once upon", max_tokens=8, logit_bias={str(ids[0]): -100})
        self.assertFalse(banned.json()["choices"][0]["text"].startswith(free[:2]))
        run = tern_text("run", "-p", "Once upon", "-n", 30, "--presence-penalty", 1.5, "--ignore-eos")
        same = self.server.complete("Once upon", max_tokens=30, presence_penalty=1.5, ignore_eos=True)
        self.assertEqual(same.json()["choices"][0]["text"] + "\n", run)

    def test_the_seed_that_was_drawn_comes_back(self):
        first = self.server.complete("Once upon", temperature=1.5, max_tokens=20).json()
        other = self.server.complete("Once upon", temperature=1.5, max_tokens=20).json()
        seed = first["tern"]["effective"]["seed"]
        self.assertNotEqual(seed, other["tern"]["effective"]["seed"])
        again = self.server.complete("Once upon", temperature=1.5, max_tokens=20, seed=seed).json()
        self.assertEqual(again["tern"]["digest"], first["tern"]["digest"])
        self.assertEqual(again["choices"], first["choices"])

    def test_sixteen_at_once_are_what_each_is_alone(self):
        prompts = ["Once upon a time", "The cat", "Q: What is 3+3? A:", "Luna the panda " * 9]
        fields = [{"prompt": prompts[i % 4], "max_tokens": 8 + 2 * i, "temperature": i % 3 * 0.6,
                   "seed": i, "ignore_eos": True, "stream": i % 2 == 1} for i in range(16)]

        def ask(f):
            reply = self.server.post("/v1/completions", **f)
            if f["stream"]:
                texts, _, digest = streamed(reply.events())
                return texts[0], digest
            return text_of(reply.json()["choices"][0]), reply.json()["tern"]["digest"]

        alone = [ask(f) for f in fields]
        for _ in range(2):
            self.assertEqual(together([lambda f=f: ask(f) for f in fields]), alone)


class Refusals(Served):
    def test_unknown_fields_are_listed(self):
        body = self.server.chat(QUESTION, user="me", unheard=2, store=None).json()
        self.assertEqual(body["tern"]["ignored"], ["user", "unheard"])

    def test_what_is_known_and_not_done(self):
        for name, value in {
            "tools": [{"type": "function"}],
            "tool_choice": "required",
            "functions": [{"name": "f"}],
            "function_call": {"name": "f"},
            "response_format": {"type": "regex"},
            "modalities": ["text", "audio"],
            "audio": {"voice": "a"},
            "suffix": "x",
        }.items():
            self.refused(self.server.chat(QUESTION, **{name: value}), 400, name)
        for name, value in {"tools": [], "tool_choice": "none", "response_format": {"type": "text"}}.items():
            self.assertEqual(self.server.chat(QUESTION, **{name: value}).status, 200, name)

    def test_values_that_are_wrong(self):
        for name, values in {
            "temperature": [-1, "1", [], True],
            "top_p": [1.5, "x"],
            "top_k": [1.5, -2],
            "n": [0, 129, "2"],
            "seed": [-2, 1.5, "a"],
            "stop": ["", ["a"] * 17, 3, [1]],
            "max_tokens": [0, -2, 1.5],
            "logit_bias": [{"x": 1}, {"-1": 1}, {"99999999": 1}, {"1": "a"}, []],
            "stream": [1, "true"],
            "stream_options": [1, {"include_usage": 1}],
            "top_logprobs": [21, -1, 3],
            "model": [1, []],
            "messages": ["x", [], [1], [{"role": "user"}], [{"role": "tool", "content": "x"}],
                         [{"role": "user", "content": [{"type": "image_url"}]}]],
        }.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    fields = {"messages": [{"role": "user", "content": "x"}], name: value}
                    self.refused(self.server.post("/v1/chat/completions", **fields), 400, name)
        self.refused(self.server.post("/v1/chat/completions"), 400, "messages")
        self.refused(self.server.post("/v1/completions"), 400, "prompt")
        for prompt in (5, [], [[]], [1, True], [-1], [10**9], {"a": 1}, [None]):
            with self.subTest(prompt=prompt):
                self.refused(self.server.complete(prompt), 400, "prompt")
        for value in (True, False, "1", -1):
            with self.subTest(n_probs=value):
                self.refused(self.server.post("/completion", prompt="x", n_probs=value, n_predict=1), 400, "n_probs")
        self.refused(self.server.complete("x", max_tokens=0), 400, "max_tokens")
        self.assertIn("from -1 to 100000000", self.refused(self.server.complete("x", max_tokens=1.5), 400, "max_tokens")["message"])
        self.refused(self.server.complete("x", echo=True, logprobs=1, stream=True, n=2), 400, "n")
        self.refused(self.server.complete("x", max_tokens=1, max_completion_tokens=2), 400, "max_tokens")

    def test_a_prompt_that_is_too_long(self):
        n = len(self.server.post("/tokenize", content="a b " * 600, add_special=True).json()["tokens"])
        error = self.refused(self.server.complete("a b " * 600), 400)
        self.assertEqual((error["type"], error["n_prompt_tokens"], error["n_ctx"]), ("exceed_context_size_error", n, 512))
        self.assertIn(str(n), error["message"])
        self.assertIn("512", error["message"])

    def test_another_model(self):
        error = self.refused(self.server.chat(QUESTION, model="gpt"), 404, "model")
        self.assertEqual(error["code"], "model_not_found")
        self.assertEqual(self.server.chat(QUESTION, model="tern-small").status, 200)
        self.assertEqual(self.server.get("/v1/models/gpt").status, 404)
        with Server("--alias", "mine") as server:
            self.assertEqual([server.chat(QUESTION, model=m).status for m in ("mine", "tern-small")], [200, 404])
            self.assertEqual(server.get("/v1/models").json()["data"][0]["id"], "mine")
        with Server("--any-model") as server:
            self.assertEqual(server.chat(QUESTION, model="gpt").json()["model"], "tern-small")

    def test_characters_that_texts_may_have(self):
        """U+0000 is a character of prompts, and named elsewhere; half of a surrogate pair becomes U+FFFD."""
        def asked(path, body):
            return self.server.ask("POST", path, body)

        ids = [asked("/tokenize", '{"content": "a%sb"}' % text).json()["tokens"] for text in ("", "\\u0000", "\\ud800", "\\ufffd", "\\udc00")]
        self.assertEqual(self.server.post("/detokenize", tokens=ids[1]).json()["content"].strip(), "a\0b")
        self.assertEqual((ids[2], ids[4]), (ids[3], ids[3]))
        self.assertNotIn(ids[1], (ids[0], ids[3]))
        wanted = self.server.post("/v1/completions", prompt=self.server.post("/tokenize", content="a\0b", add_special=True).json()["tokens"], max_tokens=2)
        for path in ("/v1/completions", "/completion"):
            body = asked(path, '{"prompt": "a\\u0000b", "max_tokens": 2, "echo": true}').json()
            self.assertEqual(body["tern"]["digest"], wanted.json()["tern"]["digest"])
            self.assertTrue((body["choices"][0]["text"] if "choices" in body else body["prompt"]).startswith("a\0b"))
        for path, name, body in (("/v1/completions", "stop", '{"prompt": "a", "stop": ["\\u0000"]}'),
                                 ("/v1/responses", "input", '{"input": "\\u0000"}'),
                                 ("/v1/chat/completions", "messages", '{"messages": [{"role": "user", "content": [{"type": "text", "text": "a\\u0000"}]}]}')):
            self.assertIn("U+0000", self.refused(asked(path, body), 400, name)["message"])
        halves = asked("/v1/chat/completions", '{"messages": [{"role": "user", "content": "\\ud800"}], "max_tokens": 1}').json()
        self.assertEqual(halves["tern"]["digest"], self.server.chat("\ufffd", max_tokens=1).json()["tern"]["digest"])

    def test_bodies_that_are_no_request(self):
        deep = "[" * 100 + "]" * 100
        for body in ("", "{", "[]", "3", '{"prompt": "a", "prompt": "b"}', '{"\\u0000": 1}',
                     f'{{"prompt": {deep}}}', '{"prompt": "\ud800"}'.encode("utf-8", "surrogatepass"),
                     '{"prompt": "a"} x'):
            with self.subTest(body=body[:40]):
                self.refused(self.server.ask("POST", "/v1/completions", body), 400)
        for name in ("seed", "temperature", "max_tokens"):
            body = '{"prompt": "a", "%s": 1e400}' % name
            self.refused(self.server.ask("POST", "/v1/completions", body), 400, name)
        many = self.server.ask("POST", "/v1/completions", '{"prompt": [' + "1," * (1 << 20) + "1]}")
        self.assertIn("values", self.refused(many, 400)["message"])
        self.assertEqual(self.server.chat(QUESTION).status, 200)


class Pages(Served):
    def test_what_it_says_of_itself(self):
        self.assertEqual(self.server.get("/health").json(), {"status": "ok"})
        self.assertEqual(self.server.get("/ready").json(), {"status": "ready"})
        (model,) = self.server.get("/v1/models").json()["data"]
        self.assertEqual((model["id"], model["object"], model["meta"]["n_ctx"]), ("tern-small", "model", 512))
        self.assertEqual(self.server.get("/v1/models/tern-small").json(), model)
        self.assertEqual((model["root"], model["max_model_len"]), ("tern-small", self.server.get("/props").json()["default_generation_settings"]["n_ctx"]))
        self.assertIn(b"/v1/chat/completions", self.server.get("/").body)
        props = self.server.get("/props").json()
        self.assertEqual(props["total_slots"], 16)
        self.assertEqual(props["system_fingerprint"], self.server.chat(QUESTION).json()["system_fingerprint"])

    def test_the_servers_own_limit_of_tokens(self):
        """--max-tokens, where a request says nothing; 0, or without it: until the context of 512 is full."""
        for given, told, tokens in (((), -1, 510), (("--max-tokens", 7), 7, 7), (("--max-tokens", 0), -1, 510)):
            with self.subTest(given=given), Server(*given) as server:
                reply = server.complete("Once", ignore_eos=True).json()
                self.assertEqual((reply["tern"]["effective"]["max_tokens"], reply["usage"]["completion_tokens"]), (told, tokens))

    def test_the_fingerprint_is_that_of_model_and_cache(self):
        one = self.server.get("/props").json()["system_fingerprint"]
        with Server("--isa", "scalar", "--threads", 1) as server:
            self.assertEqual(server.get("/props").json()["system_fingerprint"], one)
        with Server("--kv", "q8_0") as server:
            self.assertNotEqual(server.get("/props").json()["system_fingerprint"], one)

    def test_tokens_and_back(self):
        text = "Grüße, 2+2 👋"
        plain = self.server.post("/tokenize", content=text).json()
        pieces = self.server.post("/v1/tokenize", content=text, with_pieces=True).json()["tokens"]
        self.assertEqual([p["id"] for p in pieces], plain["tokens"])
        self.assertEqual(plain["count"], len(pieces))
        self.assertEqual(self.server.post("/detokenize", tokens=plain["tokens"]).json()["content"], text)
        self.refused(self.server.post("/tokenize", content=3), 400, "content")
        self.refused(self.server.post("/tokenize", prompt=3), 400, "prompt")
        self.refused(self.server.post("/tokenize"), 400, "content")
        self.refused(self.server.post("/detokenize", tokens=[1, 10**7]), 400, "tokens")

    def test_tokens_in_the_form_of_vllm(self):
        info = self.server.get("/tokenizer_info").json()
        self.assertEqual((info["model_max_length"], info["vocab_size"]), (512, 1024))
        for name in ("bos_token", "eos_token"):
            [token] = self.server.post("/tokenize", prompt=info[name], add_special_tokens=False).json()["tokens"]
            self.assertEqual(info[name], self.server.get("/props").json()[name])
            self.assertGreater(len(self.server.post("/tokenize", content=info[name]).json()["tokens"]), 1)
        plain, whole = (self.server.post("/tokenize", prompt="a b", **fields).json()["tokens"] for fields in ({"add_special_tokens": False}, {}))
        self.assertEqual(plain, self.server.post("/tokenize", content="a b").json()["tokens"])
        self.assertEqual(whole, self.server.post("/tokenize", content="a b", add_special=True).json()["tokens"])
        self.assertNotEqual(plain, whole)
        self.assertEqual(self.server.post("/detokenize", tokens=plain).json()["prompt"], "a b")

    def test_the_template_is_that_of_a_chat(self):
        messages = [{"role": "user", "content": QUESTION}]
        template = self.server.post("/apply-template", messages=messages).json()
        chat = self.server.chat(QUESTION).json()
        self.assertEqual(chat["usage"]["prompt_tokens"], len(template["tokens"]))
        self.assertEqual(self.server.complete(template["tokens"]).json()["tern"]["digest"], chat["tern"]["digest"])

    def test_metrics(self):
        before = self.server.metrics()
        usage = self.server.chat(QUESTION).json()["usage"]
        after = self.server.metrics()
        grown = {name: after[name] - before[name] for name in after}
        self.assertEqual(grown["tern_requests_total"], 1)
        self.assertEqual(grown['tern_answers_total{end="end"}'], 1)
        self.assertEqual(grown["tern_generated_tokens_total"], usage["completion_tokens"])
        self.assertEqual(grown["tern_time_to_first_token_seconds_count"], 1)
        self.assertEqual((after["tern_answers_running"], after["tern_answers_waiting"]), (0, 0))


if __name__ == "__main__":
    common.main()
