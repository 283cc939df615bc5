# SPDX-License-Identifier: Apache-2.0
"""tern serve in the form of Ollama: the same answers, with the same digests, as in the other forms."""

import datetime
import json
import tempfile
from pathlib import Path

import common
import json_schema
import tool_model
from serving import JSON, LONG, SLOW, Server
from test_serve import QUESTION, SAMPLED, Served
from test_serve_embeddings import by_command
from test_serve_tools import CHECKS, TOOLS

USER = [{"role": "user", "content": QUESTION}]
OPTIONS = {"temperature": 1.2, "seed": 9, "num_predict": 24}
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def lines(reply):
    """The documents of a stream, of which the last one alone is done."""
    assert reply.headers["content-type"] == "application/x-ndjson", reply.headers
    assert reply.body.endswith(b"}\n"), reply.body[-50:]
    documents = [json.loads(line) for line in reply.body.decode().splitlines()]
    assert [d["done"] for d in documents] == [False] * (len(documents) - 1) + [True], documents
    return documents


def said(documents):
    return "".join(d["message"]["content"] if "message" in d else d["response"] for d in documents)


class OllamaTest(Served):
    def refused(self, reply, status, param=None):
        body = reply.json()
        self.assertEqual((reply.status, body["param"]), (status, param), body)
        self.assertEqual(set(body), {"error", "param", "code"})
        return body["error"]

    def ask(self, path, **fields):
        """The reply of a request that is no stream."""
        reply = self.server.post(path, stream=False, **fields)
        self.assertEqual((reply.status, reply.headers["content-type"]), (200, "application/json"), reply.body)
        return reply.json()

    def talk(self, **fields):
        return self.ask("/api/chat", **{"model": "tern-small", "messages": USER} | fields)

    def generate(self, prompt=QUESTION, **fields):
        return self.ask("/api/generate", model="tern-small", prompt=prompt, **fields)


class Answers(OllamaTest):
    def test_a_chat(self):
        body = self.talk()
        self.assertEqual((body["model"], body["message"]), ("tern-small", {"role": "assistant", "content": "4"}))
        self.assertEqual((body["done"], body["done_reason"]), (True, "stop"))
        self.assertEqual((body["prompt_eval_count"], body["eval_count"]), (12, 2))
        for name in DURATIONS:
            self.assertIs(type(body[name]), int)
        self.assertLessEqual(body["prompt_eval_duration"] + body["eval_duration"], body["total_duration"])
        made = datetime.datetime.fromisoformat(body["created_at"])
        self.assertLess(abs(made - datetime.datetime.now(datetime.timezone.utc)), datetime.timedelta(hours=1))

    def test_digests_are_those_of_the_other_forms(self):
        other = self.server.chat(QUESTION, **SAMPLED | {"ignore_eos": False}).json()
        for body in (self.talk(options=OPTIONS), self.generate(options=OPTIONS)):
            self.assertEqual(body["tern"]["digest"], other["tern"]["digest"])
            self.assertEqual(body["message"]["content"] if "message" in body else body["response"], other["choices"][0]["message"]["content"])
        other = self.server.complete("Once upon", **SAMPLED | {"ignore_eos": False}).json()
        body = self.generate("Once upon", raw=True, options=OPTIONS)
        self.assertEqual((body["tern"]["digest"], body["response"]), (other["tern"]["digest"], other["choices"][0]["text"]))

    def test_a_stream_says_the_same(self):
        for path, fields in (("/api/chat", {"messages": USER}), ("/api/generate", {"prompt": "Tell me a story."}),
                             ("/api/generate", {"prompt": "Once upon", "raw": True})):
            for more in ({}, {"logprobs": True, "top_logprobs": 2}):
                with self.subTest(path=path, more=more):
                    fields = fields | more | {"options": OPTIONS}
                    whole = self.ask(path, **fields)
                    documents = lines(self.server.post(path, **fields))
                    self.assertEqual(said(documents), said([whole]))
                    self.assertGreater(len(documents), 1)
                    last = documents[-1]
                    for name in ("done_reason", "eval_count", "prompt_eval_count"):
                        self.assertEqual(last[name], whole[name])
                    self.assertEqual(last["tern"]["digest"], whole["tern"]["digest"])
                    self.assertEqual(last.get("context"), whole.get("context"))
                    self.assertEqual([t for d in documents for t in d.get("logprobs", [])], whole.get("logprobs", []))
                    self.assertEqual("logprobs" in whole, bool(more))

    def test_options(self):
        effective = self.talk(options={"temperature": 0.5, "top_k": 7, "top_p": 0.5, "min_p": 0.25, "seed": 3, "repeat_penalty": 1.5,
                                       "repeat_last_n": -1, "presence_penalty": 1, "frequency_penalty": 2, "num_predict": -1})["tern"]["effective"]
        self.assertEqual(effective, {"temperature": 0.5, "top_k": 7, "top_p": 0.5, "min_p": 0.25, "seed": 3, "repetition_penalty": 1.5, "repeat_last_n": 512,
                                     "presence_penalty": 1, "frequency_penalty": 2, "max_tokens": -1, "ignore_eos": False, "n": 1})
        body = self.talk(options={"num_predict": 1})
        self.assertEqual((body["done_reason"], body["eval_count"]), ("length", 1))
        self.assertEqual(self.generate("Once upon", raw=True, options={"stop": [" time", ""], "temperature": 0})["response"], " a")

    def test_what_changes_nothing_is_listed(self):
        ignored = self.talk(keep_alive="5m", unknown=1, options={"num_ctx": 8192, "num_gpu": 1, "other": 2, "mirostat": 0})["tern"]["ignored"]
        self.assertEqual(sorted(ignored), ["keep_alive", "options.num_ctx", "options.num_gpu", "options.other", "unknown"])

    def test_what_is_refused(self):
        for path, param, fields in (
            ("/api/chat", "images", {"messages": [USER[0] | {"images": ["aGVsbG8="]}]}),
            ("/api/generate", "images", {"prompt": "a", "images": ["aGVsbG8="]}),
            ("/api/generate", "template", {"prompt": "a", "template": "{{ .Prompt }}"}),
            ("/api/generate", "system", {"prompt": "a", "system": 3}),
            ("/api/generate", "context", {"prompt": "a", "context": "b"}),
            ("/api/generate", "context", {"prompt": "a", "context": [99999]}),
            ("/api/chat", "format", {"messages": USER, "format": "xml"}),
            ("/api/chat", "format", {"messages": USER, "format": {"type": 3}}),
            ("/api/chat", "think", {"messages": USER, "think": True}),
            ("/api/chat", "messages", {"messages": "Hello"}),
            ("/api/chat", "messages", {"messages": [3]}),
            ("/api/chat", "options", {"messages": USER, "options": 3}),
            ("/api/chat", "options.num_predict", {"messages": USER, "options": {"num_predict": "a"}}),
            ("/api/chat", "options.temperature", {"messages": USER, "options": {"temperature": -1}}),
            ("/api/chat", "options.mirostat", {"messages": USER, "options": {"mirostat": 2}}),
            ("/api/chat", "options.typical_p", {"messages": USER, "options": {"typical_p": 0.5}}),
        ):
            with self.subTest(path=path, fields=fields):
                self.refused(self.server.post(path, **fields), 400, param)
        self.refused(self.server.post("/api/embed", input="a"), 501)
        self.refused(self.server.post("/api/chat", model="other", messages=USER), 404, "model")
        for name in ("create", "copy", "push"):
            self.assertIn(f"/api/{name}", self.refused(self.server.post(f"/api/{name}", model="a"), 501))

    def test_models_are_neither_fetched_nor_removed(self):
        """A model that is served has been fetched: clients ask for that before they use it."""
        reply = self.server.post("/api/pull", model="tern-small:latest")
        self.assertEqual([json.loads(line)["status"] for line in reply.body.splitlines()], ["pulling manifest", "success"])
        self.assertEqual(self.ask("/api/pull", name="tern-small"), {"status": "success"})
        self.assertIn("tern pull", self.refused(self.server.post("/api/pull", model="llama3.2"), 501, "model"))
        self.refused(self.server.post("/api/pull"), 400, "model")
        self.refused(self.server.ask("DELETE", "/api/delete", {"model": "tern-small"}), 501)

    def test_a_refusal_keeps_the_limit_of_the_field(self):
        self.assertEqual(self.refused(self.server.post("/api/chat", messages=USER, options={"top_p": 2}), 400, "options.top_p"),
                         "options.top_p must be a number from 0 to 1")

    def test_system_and_context(self):
        parts = [{"role": "system", "content": "Be brief."}, *USER]
        self.assertEqual(self.generate(system="Be brief.")["tern"]["digest"], self.talk(messages=parts)["tern"]["digest"])
        first = self.generate()
        self.assertEqual(len(first["context"]), first["prompt_eval_count"] + first["eval_count"] + 1)  # the end
        second = self.generate("What is 17+25?", context=first["context"])
        talk = self.talk(messages=[*USER, {"role": "assistant", "content": "4"}, {"role": "user", "content": "What is 17+25?"}])
        self.assertEqual((second["tern"]["digest"], second["prompt_eval_count"]), (talk["tern"]["digest"], talk["prompt_eval_count"]))

    def test_nothing_is_asked(self):
        for path, fields in (("/api/chat", {"messages": []}), ("/api/generate", {}), ("/api/generate", {"prompt": "", "keep_alive": 0})):
            body = self.server.post(path, model="tern-small", **fields).json()
            self.assertEqual((body["done"], body["done_reason"]), (True, "load"))
        self.refused(self.server.post("/api/generate", model="other"), 404, "model")

    def test_forms(self):
        for form in (SCHEMA, "json"):
            content = self.talk(format=form, options={"num_predict": 200, "temperature": 1, "seed": 2, "stop": ["}"]})["message"]["content"]
            self.assertTrue(content.startswith("{"), content)
        body = self.talk(format=SCHEMA, options={"num_predict": 200})
        self.assertEqual(list(json_schema.problems(json.loads(body["message"]["content"]), SCHEMA)), [])
        self.assertEqual(self.talk(format="")["message"]["content"], "4")

    def test_as_curl_sends_it(self):
        """curl -d says that the body is a form, unless it is told otherwise. Pages of other origins get nothing by that."""
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        self.assertEqual(said(lines(self.server.post("/api/chat", form, messages=USER))), "4")
        self.assertEqual(self.server.post("/api/chat", form | {"Origin": "http://evil.example"}, messages=USER).status, 403)
        self.assertEqual(self.server.post("/v1/chat/completions", form, messages=USER).status, 415)

    def test_the_model_is_described(self):
        (listed,) = self.server.get("/api/tags").json()["models"]
        self.assertEqual((listed["name"], listed["details"]["quantization_level"]), ("tern-small:latest", "i2_s"))
        self.assertRegex(listed["digest"], "^0{48}[0-9a-f]{16}$")
        self.assertNotEqual(int(listed["digest"], 16), 0)
        self.assertEqual(listed["size"], common.small_model().stat().st_size)
        (loaded,) = self.server.get("/api/ps").json()["models"]
        self.assertEqual((loaded["digest"], loaded["context_length"]), (listed["digest"], 512))
        datetime.datetime.fromisoformat(loaded["expires_at"])
        shown = self.server.post("/api/show", model=listed["name"]).json()
        self.assertEqual(shown["capabilities"], ["completion"])
        self.assertEqual(shown["model_info"]["bitnet-b1.58.context_length"], 512)
        self.assertIn("Q: ", shown["template"])
        self.assertEqual(self.talk(model=listed["name"])["model"], listed["name"])
        self.refused(self.server.post("/api/show", model="tern-small:other"), 404, "model")
        self.assertRegex(self.server.get("/api/version").json()["version"], r"^\d+\.\d+\.\d+$")


class AsOpenWebui(OllamaTest):
    """The requests that Open WebUI makes, and what it reads of the replies."""

    options = (*Served.options, "--pooling", "mean")
    headers = {"X-OpenWebUI-User-Name": "a%20b", "X-OpenWebUI-User-Role": "admin"}

    def test_models(self):
        self.assertEqual(len([int(n) for n in self.server.get("/api/version").json()["version"].split(".")]), 3)
        (model,) = self.server.get("/api/tags", **self.headers).json()["models"]
        ends = {m["name"]: m["expires_at"] for m in self.server.get("/api/ps", **self.headers).json()["models"]}
        self.assertGreater(int(datetime.datetime.fromisoformat(ends[model["name"]]).timestamp()), 2**31)
        self.assertEqual(self.server.post("/api/show", self.headers, model=model["model"]).status, 200)
        unloaded = self.server.post("/api/generate", self.headers, model=model["model"], prompt="", keep_alive=0)
        self.assertEqual(unloaded.json()["done"], True)

    def test_a_conversation(self):
        fields = {"model": "tern-small:latest", "messages": USER, "options": {"num_ctx": 2048, "temperature": 0.0}, "stream": True, "keep_alive": "5m"}
        *parts, last = lines(self.server.post("/api/chat", self.headers, **fields))
        self.assertEqual(said([*parts, last]), "4")
        figures = [last[name] for name in ("eval_count", "prompt_eval_count", *DURATIONS)]
        self.assertTrue(all(isinstance(n, int) for n in figures), figures)
        vectors = self.server.post("/api/embed", self.headers, model="tern-small:latest", input=["a", "b"], truncate=True).json()
        self.assertEqual([len(v) for v in vectors["embeddings"]], [256, 256])


class Silent(common.TernTest):
    def test_nothing_stands_between_documents(self):
        """Streams of events get comments while they wait, which documents of JSON would not survive."""
        with Server("--parallel", 1, "--ping", 0.01, *SLOW) as server:
            first, documents, events = (server.connect() for _ in range(3))
            for connection, path, fields in ((first, "/v1/completions", {"n": 64} | LONG), (documents, "/api/generate", {"options": {"num_predict": 2}}),
                                             (events, "/v1/completions", LONG)):
                self.addCleanup(connection.close)
                connection.request("POST", path, json.dumps({"prompt": "Once upon"} | fields), JSON)
                if connection is first:
                    server.wait_for(lambda m: m["tern_answers_running"] == 1)
                elif connection is documents:
                    waiting = documents.getresponse()  # its head comes while it waits
            self.assertEqual(events.getresponse().readline(), b": ping\n")  # all silent streams were looked at
            first.close()
            events.close()
            self.assertEqual([json.loads(line)["done"] for line in waiting.read().splitlines()][-1], True)


class Vectors(OllamaTest):
    options = (*Served.options, "--pooling", "mean")

    def test_vectors(self):
        one, two = by_command("Once upon a time", "a")
        body = self.server.post("/api/embed", model="tern-small", input=["Once upon a time", "a"]).json()
        self.assertEqual((body["embeddings"], body["prompt_eval_count"]), ([one["embedding"], two["embedding"]], one["tokens"] + two["tokens"]))
        self.assertEqual(body["tern"]["digest"], [one["digest"], two["digest"]])
        older = self.server.post("/api/embeddings", model="tern-small", prompt="a").json()["embedding"]
        length = sum(x * x for x in older) ** 0.5
        self.assertGreater(abs(length - 1), 0.01)
        for x, y in zip(older, two["embedding"]):
            self.assertAlmostEqual(x / length, y, 5)
        self.refused(self.server.post("/api/embed", input="a", dimensions=5), 400, "dimensions")
        self.refused(self.server.post("/api/embed", input=3), 400, "input")
        self.assertEqual(self.server.post("/api/embed", input=[]).json()["embeddings"], [])
        self.assertEqual(self.server.post("/api/show", model="tern-small").json()["capabilities"], ["completion", "embedding"])

    def test_long_texts_are_cut(self):
        text = "Once upon a time " * 1000
        body = self.server.post("/api/embed", input=text).json()
        self.assertEqual(body["prompt_eval_count"], 512)
        self.refused(self.server.post("/api/embed", input=text, truncate=False), 400)


class OtherTemplate(OllamaTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = Path(folder.name) / "tools.gguf"
        tool_model.write(path, cls.template)
        cls.server = Server("-m", path, "--alias", "tern-small", *cls.options)
        cls.addClassCleanup(cls.server.stop)


class Thinking(OtherTemplate):
    template = "{% for m in messages %}Q: {{ m.content }} {% endfor %}{% if enable_thinking %}Hm. {% endif %}A:"

    def test_think(self):
        options = {"num_predict": 3, "temperature": 0}
        for think in (True, False):
            other = self.server.chat(QUESTION, max_tokens=3, temperature=0, chat_template_kwargs={"enable_thinking": think})
            wanted = other.json()["tern"]["digest"]
            self.assertEqual(self.talk(think=think, options=options)["tern"]["digest"], wanted)
            self.assertEqual(self.generate(think="low" if think else False, options=options)["tern"]["digest"], wanted)
        self.refused(self.server.post("/api/chat", messages=USER, think=3), 400, "think")
        self.assertEqual(self.server.post("/api/show", model="tern-small").json()["capabilities"], ["completion", "thinking"])


class Tools(OtherTemplate):
    template = tool_model.TAGGED

    def test_calls(self):
        fields = {"messages": USER, "tools": TOOLS, "tool_choice": "required", "options": {"temperature": 1.5, "seed": 5, "num_predict": 600}}
        whole = self.ask("/api/chat", **fields)
        documents = lines(self.server.post("/api/chat", **fields))
        calls = whole["message"]["tool_calls"]
        self.assertGreater(len(calls), 0)
        for i, call in enumerate(calls):
            function = call["function"]
            self.assertEqual(function["index"], i)
            self.assertEqual(list(json_schema.problems(function["arguments"], CHECKS[function["name"]])), [])
        streamed = [call["function"] for d in documents for call in d["message"].get("tool_calls", [])]
        self.assertEqual(streamed, [call["function"] for call in calls])
        self.assertEqual(documents[-1]["tern"]["digest"], whole["tern"]["digest"])
        self.assertIn("tools", self.server.post("/api/show", model="tern-small").json()["capabilities"])

    def test_histories(self):
        """Calls and answers without ids mean the same as those with ids in OpenAI's form."""
        arguments = {"city": "Oslo", "days": 1}
        functions = [{"name": "weather", "arguments": arguments}, {"name": "sum-up", "arguments": {"numbers": [1]}}]
        ids = [{"id": f"c{i}", "type": "function", "function": f | {"arguments": json.dumps(f["arguments"])}} for i, f in enumerate(functions)]
        other = [*USER, {"role": "assistant", "content": "", "tool_calls": ids}, {"role": "tool", "tool_call_id": "c1", "content": "1"},
                 {"role": "tool", "tool_call_id": "c0", "content": "Rain."}]
        wanted = self.server.post("/v1/chat/completions", messages=other, tools=TOOLS, max_tokens=3, temperature=0).json()["tern"]["digest"]
        for answers in ([{"tool_name": "sum-up", "content": "1"}, {"content": "Rain."}], [{"name": "sum-up", "content": "1"}, {"tool_name": "weather", "content": "Rain."}]):
            messages = [*USER, {"role": "assistant", "tool_calls": [{"function": f} for f in functions]}, *({"role": "Tool"} | a for a in answers)]
            self.assertEqual(self.talk(messages=messages, tools=TOOLS, options={"num_predict": 3, "temperature": 0})["tern"]["digest"], wanted)


if __name__ == "__main__":
    common.main()
