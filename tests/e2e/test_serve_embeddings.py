# SPDX-License-Identifier: Apache-2.0
"""tern serve makes vectors: those of tern embed, in the forms of OpenAI and llama.cpp, beside all else."""

import base64
import json
import struct

import common
import gguf_edit
from common import tern_text
from serving import Server, together
from test_serve import QUESTION, Served

TEXTS = ["Once upon a time", "Q: What is 2+2? A:", "a"]


def setUpModule():
    common.small_model()


def floats(text):
    data = base64.b64decode(text, validate=True)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def rounded(vector):
    """Returns values as floats: the shortest decimals give the same ones."""
    return list(struct.unpack(f"<{len(vector)}f", struct.pack(f"<{len(vector)}f", *vector)))


def by_command(*texts, model=None):
    out = tern_text("embed", "-m", model or common.small_model(), "--pooling", "mean", *texts)
    return [json.loads(line) for line in out.splitlines()]


class Vectors(Served):
    options = ("--threads", 2, "--pooling", "mean")

    def embed(self, given, **fields):
        return self.server.post("/v1/embeddings", input=given, model="tern-small", **fields)

    def test_forms_of_input(self):
        wanted = by_command(*TEXTS)
        body = self.embed(TEXTS).json()
        self.assertEqual((body["object"], body["model"]), ("list", "tern-small"))
        self.assertEqual([d["object"] for d in body["data"]], ["embedding"] * 3)
        self.assertEqual([d["index"] for d in body["data"]], [0, 1, 2])
        self.assertEqual([d["embedding"] for d in body["data"]], [w["embedding"] for w in wanted])
        tokens = sum(w["tokens"] for w in wanted)
        self.assertEqual(body["usage"], {"prompt_tokens": tokens, "total_tokens": tokens})
        self.assertEqual(body["tern"]["digest"], [w["digest"] for w in wanted])
        self.assertEqual(body["tern"]["effective"], {"pooling": "mean", "dimensions": 256})
        one = self.embed(TEXTS[0])
        self.assertEqual(one.json()["data"][0]["embedding"], wanted[0]["embedding"])
        self.assertEqual(one.headers["x-tern-digest"], wanted[0]["digest"])
        ids = [self.server.post("/tokenize", content=text, add_special=True).json()["tokens"] for text in TEXTS]
        self.assertEqual(self.embed(ids).json()["data"], body["data"])
        self.assertEqual(self.embed(ids[1]).json()["data"][0]["embedding"], wanted[1]["embedding"])

    def test_documents_in_order(self):
        query, *documents = (w["embedding"] for w in by_command("Once upon a time", "a", "Once upon a", *TEXTS))
        given = ["a", "Once upon a", *TEXTS]
        scores = [sum(x * y for x, y in zip(query, d)) for d in documents]
        order = sorted(range(len(given)), key=lambda i: -scores[i])
        for path in ("/v1/rerank", "/rerank", "/v2/rerank", "/v1/reranking"):
            body = self.server.post(path, query="Once upon a time", documents=given).json()
            self.assertEqual([r["index"] for r in body["results"]][:2], order[:2])
        self.assertEqual(order[0], 2)  # the query itself
        for result in body["results"]:
            self.assertAlmostEqual(result["relevance_score"], scores[result["index"]], 5)
            self.assertNotIn("document", result)
        self.assertEqual(len(body["tern"]["digest"]), 1 + len(given))
        best = self.server.post("/rerank", query="Once upon a time", documents=[{"text": d} for d in given], top_n=1, return_documents=True)
        self.assertEqual([(r["index"], r["document"]) for r in best.json()["results"]], [(2, {"text": TEXTS[0]})])
        plain = self.server.post("/rerank", query="Once upon a time", texts=given, return_text=True).json()
        self.assertEqual([(r["index"], r["text"]) for r in plain], [(r["index"], given[r["index"]]) for r in body["results"]])

    def test_documents_that_are_none(self):
        for param, fields in (("query", {"documents": ["a"]}), ("documents", {"query": "a"}), ("documents", {"query": "a", "documents": []}),
                              ("documents", {"query": "a", "documents": [3]}), ("texts", {"query": "a", "texts": "b"}),
                              ("top_n", {"query": "a", "documents": ["b"], "top_n": 0})):
            self.refused(self.server.post("/rerank", **fields), 400, param)
        self.refused(self.server.post("/rerank", model="other", query="a", documents=["b"]), 404, "model")

    def test_base64(self):
        plain = self.embed(TEXTS, encoding_format="float").json()["data"]
        packed = self.embed(TEXTS, encoding_format="base64").json()["data"]
        self.assertEqual([floats(d["embedding"]) for d in packed], [rounded(d["embedding"]) for d in plain])

    def test_llama_cpp(self):
        wanted = [w["embedding"] for w in by_command(*TEXTS)]
        reply = self.server.post("/embedding", content=TEXTS, embd_normalize=2)
        self.assertEqual(reply.json(), [{"index": i, "embedding": [x]} for i, x in enumerate(wanted)])
        self.assertEqual(self.server.post("/embedding", content=TEXTS[0]).json()[0]["embedding"], wanted[:1])
        self.refused(self.server.post("/embedding", content="a", embd_normalize=0), 400, "embd_normalize")
        for path in ("/embedding", "/embeddings", "/v1/embeddings"):
            self.assertEqual(self.server.post(path, content=TEXTS).json(), reply.json())
        self.assertEqual(self.server.post("/embedding", input=TEXTS).json(), reply.json())
        self.assertEqual(self.server.post("/embeddings", input="a", content="b").json()["data"][0]["embedding"], wanted[2])

    def ids_of(self, content, special=False):
        return self.server.post("/tokenize", content=content, add_special=special).json()["tokens"]

    def vectors(self, given):
        return [d["embedding"] for d in self.embed(given).json()["data"]]

    def test_mixtures(self):
        """Texts between token ids are one text; the first of all gets the token that begins texts."""
        self.assertEqual(self.ids_of([5, "upon", 7]), [5, *self.ids_of("upon"), 7])
        for mixed in (["Once", 7, 8], [5, "upon", 7], [5, 6, "Once", "upon"]):
            apart = [[part] if isinstance(part, int) else self.ids_of(part, special=i == 0) for i, part in enumerate(mixed)]
            one = sum(apart, [])
            self.assertEqual(self.ids_of(mixed, special=True), one)
            for given, wanted in ((mixed, [one]), ([mixed, "a"], [one, "a"]), (["a", [5, 6], mixed], ["a", [5, 6], one])):
                self.assertEqual(self.vectors(given), self.vectors(wanted))

    def test_texts_in_objects(self):
        parts = {"content": [{"type": "text", "text": "Once "}, {"type": "text", "text": "upon a time"}]}
        wanted = self.vectors(TEXTS)
        self.assertEqual(self.vectors(parts), wanted[:1])
        self.assertEqual(self.vectors([parts, {"prompt_string": TEXTS[1]}, TEXTS[2]]), wanted)
        for given in ({"content": "a"}, {"content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
                      {"content": [{"type": "text"}]}, {"content": [{"type": "image", "text": "a"}]}, {"content": [{"text": "a"}]}, {"content": ["a"]}, {"prompt_string": 3}):
            self.refused(self.embed(given), 400, "input")

    def test_refused(self):
        for given in ([], [[]], 3, None, {"a": 1}, [1, "a", None], [1, [2]], [1 << 40], ["a", []], ["x"] * 2049):
            self.refused(self.embed(given), 400, "input")
        self.refused(self.embed("a", encoding_format="hex"), 400, "encoding_format")
        for n in (0, 128, 255, 257, 1.5, "a"):
            self.refused(self.embed("a", dimensions=n), 400, "dimensions")
        self.assertEqual(len(self.embed("a", dimensions=256).json()["data"][0]["embedding"]), 256)
        long = self.refused(self.embed(["a", "a b " * 600]), 400, None)
        self.assertEqual(long["type"], "exceed_context_size_error")
        self.assertEqual(self.server.post("/v1/embeddings", input="a", model="other").status, 404)
        self.assertEqual(self.embed("a", user="me", stream=True).json()["tern"]["ignored"], ["user", "stream"])

    def test_more_texts_than_the_queue_holds(self):
        """Others get their answers beside them, and each text gets its own vector."""
        texts = [f"Text number {i}." for i in range(700)]
        with Server("--threads", 2, "--pooling", "mean", "--queue", 40) as server:
            replies = together([lambda: server.post("/v1/embeddings", input=texts),
                                lambda: server.post("/v1/embeddings", input=texts[::-1]),
                                lambda: server.chat(QUESTION)])
            self.assertEqual([r.status for r in replies], [200] * 3)
            one, other = ([d["embedding"] for d in r.json()["data"]] for r in replies[:2])
            self.assertEqual(one, other[::-1])
            self.assertEqual(one[123], by_command(texts[123])[0]["embedding"])
            self.assertEqual(replies[2].json()["choices"][0]["message"]["content"], "4")
            server.wait_for(lambda m: m["tern_answers_running"] + m["tern_answers_waiting"] == 0)

    def test_who_leaves_is_not_answered(self):
        connection = self.server.connect()
        body = json.dumps({"input": [f"{i} " * 60 for i in range(600)]})
        connection.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})
        self.server.wait_for(lambda m: m["tern_answers_running"] > 0)
        connection.close()
        self.server.wait_for(lambda m: m["tern_answers_running"] + m["tern_answers_waiting"] == 0)
        self.assertLess(self.server.metrics()['tern_answers_total{end="length"}'], 600)
        self.assertEqual(self.embed("a").status, 200)


class WhatTheFileSays(common.FolderTest):
    def test_pooling_and_dimensions(self):
        path = self.dir / "model.gguf"
        file = gguf_edit.read(common.small_model())
        arch = file.text("general.architecture")
        file[f"{arch}.pooling_type"] = gguf_edit.u32(1)
        file[f"{arch}.is_matryoshka"] = (gguf_edit.BOOL, b"\1")
        path.write_bytes(file.to_bytes())
        (wanted,) = by_command("--dimensions", "32", TEXTS[0], model=path)
        with Server("-m", path) as server:
            body = server.post("/v1/embeddings", input=TEXTS[0], dimensions=32).json()
            self.assertEqual(body["data"][0]["embedding"], wanted["embedding"])
            self.assertEqual(body["tern"]["effective"]["dimensions"], 32)


if __name__ == "__main__":
    common.main()
