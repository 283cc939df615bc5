# SPDX-License-Identifier: Apache-2.0
"""tern serve describes its interface: the routes that answer, the fields that it knows, the replies that it gives."""

import common
import json_schema
from serving import Server
from test_serve import QUESTION, Served

USER = [{"role": "user", "content": QUESTION}]

# Routes that this model refuses: it has no tokens for gaps (test_serve_fill.py has a model with them), and this server
# no folder for what places hold (test_serve_slots.py has one); it keeps no responses (test_serve_kept.py).
REFUSED = {"/infill": 400, "/slots/{name}": 400, "/responses/{name}": 404, "/responses/{name}/cancel": 404}

# A request for each route, and one with more in its reply.
REQUESTS = {
    "/slots/{name}": ({"filename": "a"},),
    "/lora-adapters": ([],),
    "/infill": ({"input_prefix": "Once", "input_suffix": "a time", "n_predict": 3},),
    "/chat/completions": ({"messages": USER}, {"messages": USER, "n": 2, "logprobs": True, "top_logprobs": 2}),
    "/completions": ({"prompt": "Once", "max_tokens": 3}, {"prompt": "Once", "max_tokens": 3, "logprobs": 2, "echo": True}),
    "/responses": ({"input": QUESTION}, {"input": USER, "max_output_tokens": 1, "include": ["message.output_text.logprobs"], "metadata": {"a": "b"}}),
    "/responses/{name}/cancel": (None,),
    "/messages": ({"messages": USER}, {"messages": USER, "max_tokens": 9, "stop_sequences": ["4"]}),
    "/completion": ({"prompt": "Once", "n_predict": 3}, {"prompt": ["Once", "The"], "n_predict": 3, "n_probs": 2, "logit_bias": {"5": 1}}),
    "/chat/completions/input_tokens": ({"messages": USER},),
    "/responses/input_tokens": ({"input": USER},),
    "/messages/count_tokens": ({"messages": USER},),
    "/tokenize": ({"content": "Once"}, {"content": "Once", "with_pieces": True}),
    "/detokenize": ({"tokens": [300]},),
    "/apply-template": ({"messages": USER},),
    "/embeddings": ({"input": "Once"}, {"input": [[300], [301]], "encoding_format": "base64"}),
    "/embedding": ({"content": "Once"},),
    "/rerank": ({"query": "Once", "documents": ["Once", {"text": "The"}], "return_documents": True}, {"query": "a", "texts": ["b"]}),
    "/reranking": ({"query": "Once", "documents": ["Once"], "top_n": 1},),
    "/api/chat": ({"messages": USER, "stream": False}, {"messages": USER, "stream": False, "logprobs": True, "top_logprobs": 2}, {"messages": []}),
    "/api/generate": ({"prompt": QUESTION, "stream": False}, {"prompt": "Once", "stream": False, "raw": True, "options": {"num_predict": 3}}),
    "/api/embed": ({"input": "Once"}, {"input": ["Once", "The"], "dimensions": 256}),
    "/api/embeddings": ({"prompt": "Once"},),
    "/api/pull": ({"model": "tern-small", "stream": False},),
    "/api/show": ({"model": "tern-small"}, {"name": "tern-small:latest"}),
}


class Described(Served):
    options = (*Served.options, "--pooling", "mean")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.document = cls.server.get("/openapi.json").json()

    def check(self, value, schema):
        self.assertEqual(list(json_schema.problems(value, schema, document=self.document)), [])

    def responses(self, path, method):
        return {status: {kind: c["schema"] for kind, c in r["content"].items()}
                for status, r in self.document["paths"][path][method]["responses"].items()}

    def test_every_route_answers_as_described(self):
        for path, method in ((path, method) for path, methods in self.document["paths"].items() for method in methods):
            for prefix in ("", "/v1") if path != "/" else ("",):
                for body in REQUESTS[path] if method == "post" else (None,):
                    with self.subTest(path=prefix + path, body=body):
                        reply = self.server.ask(method.upper(), prefix + path.replace("{name}", "tern-small"), body)
                        described = self.responses(path, method)
                        kind = reply.headers["content-type"].split(";")[0]
                        schema = described.get(str(reply.status), described["default"])[kind]
                        self.assertEqual(reply.status, REFUSED.get(path, 200))
                        self.check(reply.body.decode() if kind == "text/plain" else reply.json(), schema)
                        if body is not None:
                            self.check(body, self.document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"])
        self.assertEqual({p for p, methods in self.document["paths"].items() if "post" in methods}, set(REQUESTS))
        for line in self.server.get("/").body.decode().split("\n\n")[-1].splitlines():
            method, path, what = line.split(None, 2)
            described = self.document["paths"][path.replace("*", "{name}")][method.lower()]
            self.assertEqual(described["summary"], what)

    def test_errors_are_as_described(self):
        for path, methods in self.document["paths"].items():
            if "post" in methods:
                for body in ("{", '{"prompt": 3, "messages": 3, "input": 3}', "[3]"):
                    reply = self.server.ask("POST", path, body)
                    self.assertIn(reply.status, (400, 404, 501), path)
                    self.check(reply.json(), self.responses(path, "post")["default"]["application/json"])
        reply = self.server.complete("a b " * 600)
        self.check(reply.json(), self.responses("/completions", "post")["default"]["application/json"])

    def test_fields_are_those_that_are_known(self):
        for path in ("/chat/completions", "/completions", "/responses", "/messages", "/completion", "/embeddings", "/api/chat", "/api/generate", "/api/embed"):
            body = self.document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
            nothing = dict.fromkeys(body["properties"]) | REQUESTS[path][0]
            self.check(nothing, body)
            ignored = self.server.post(path, **nothing, max_tokenz=1).json()["tern"]["ignored"]
            self.assertEqual(ignored, ["max_tokenz"], path)

    def test_a_stream_is_described(self):
        for path in ("/chat/completions", "/completions", "/responses", "/messages", "/completion", "/api/chat", "/api/generate"):
            reply = self.server.post(path, **REQUESTS[path][0] | {"stream": True})
            self.assertIn(reply.headers["content-type"], self.responses(path, "post")["200"])

    def test_limits_are_those_that_count(self):
        body = self.document["paths"]["/completions"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        tried = 0
        for name, field in body["properties"].items():
            number = field.get("anyOf", [{}])[0]
            if "maximum" in number and number["maximum"] < 1e9 and name not in ("max_tokens", "max_completion_tokens", "n", "best_of"):
                fields = REQUESTS["/completions"][0]
                self.assertEqual(self.server.post("/completions", **fields | {name: number["maximum"]}).status, 200, name)
                self.refused(self.server.post("/completions", **fields | {name: number["maximum"] + 1}), 400, name)
                tried += 1
        self.assertGreater(tried, 5)

    def test_no_key_is_needed_to_read_it(self):
        with Server(env={"TERN_API_KEY": "one"}) as server:
            self.assertEqual(server.get("/openapi.json").json()["openapi"], "3.1.0")


if __name__ == "__main__":
    common.main()
