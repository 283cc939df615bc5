# SPDX-License-Identifier: Apache-2.0
"""Encoders: each token sees all others, a text is computed in one pass, and no text is continued."""

import json
import math
import sys
from pathlib import Path

import bert_file
import common
import gguf_edit
from common import tern, tern_text
from serving import Server

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))

KINDS = {"f32": bert_file.F32, "f16": bert_file.F16, "q8_0": bert_file.Q8_0}
LENGTHS = (1, 2, 3, 17, 64, 65, 150)


def lines(texts):
    return "\n".join(json.dumps({"tokens": ids}) for ids in texts).encode()


def vectors(text):
    return [json.loads(line)["embedding"] for line in text.splitlines()]


class Bert(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.models = {name: bert_file.write(cls.dir / f"{name}.gguf", kind=kind) for name, kind in KINDS.items()}
        cls.texts = [common.prompt(n, bert_file.VOCABULARY, 3 + n) for n in LENGTHS]

    def embed(self, model, texts, *options):
        return tern_text("embed", "-m", model, *options, stdin=lines(texts))

    def test_beside_the_oracle(self):
        """Hidden states of an implementation that shares no code, pooled here."""
        try:
            import numpy as np
            from bert import Bert as Oracle
            from container import Container
        except ImportError as error:
            self.skipTest(str(error))
        for name, model in self.models.items():
            hidden = [Oracle(Container(model)).hidden(ids) for ids in self.texts]
            for pooling, pool in (("mean", lambda h: h.mean(axis=0)), ("cls", lambda h: h[0]), ("last", lambda h: h[-1])):
                found = vectors(self.embed(model, self.texts, "--pooling", pooling))
                for h, y in zip(hidden, found):
                    x = pool(h) / np.linalg.norm(pool(h))
                    self.assertGreater(float(np.dot(x, y)), 0.9999 if name == "q8_0" else 0.999999, (name, pooling, len(h)))

    def test_one_answer(self):
        """A text gets the same vector beside any other texts, on every instruction set, for any number of threads and
        rows of a pass."""
        for name, model in self.models.items():
            for pooling in ("mean", "last"):
                alone = [self.embed(model, [ids], "--pooling", pooling, "--threads", 1) for ids in self.texts]
                wanted = self.embed(model, self.texts, "--pooling", pooling)
                self.assertEqual(vectors(wanted), [vectors(a)[0] for a in alone])
                for isa in common.runnable_isas()[:: 1 if pooling == "mean" else 4]:
                    again = self.embed(model, self.texts, "--pooling", pooling, "--isa", isa, "--threads", 3, "--batch", 150)
                    self.assertEqual(again, wanted, (name, isa))

    def test_beginnings_are_not_shared(self):
        """The contents of a page depend on the whole text: a longer text with the same beginning is another one."""
        longer = self.texts[-1]
        texts = [longer[:n] for n in (70, 128, 130, 150)] + [longer]
        for pooling in ("mean", "last"):
            alone = [vectors(self.embed(self.models["f16"], [ids], "--pooling", pooling))[0] for ids in texts]
            self.assertEqual(vectors(self.embed(self.models["f16"], texts, "--pooling", pooling)), alone)

    def test_pooling_of_the_file(self):
        result = tern("embed", "-m", self.models["f32"], stdin=lines(self.texts[:1]))
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        file = bert_file.build()
        del file["bert.pooling_type"]
        path = self.dir / "silent.gguf"
        path.write_bytes(file.to_bytes())
        result = tern("embed", "-m", path, stdin=lines(self.texts[:1]))
        self.assertIn(b"the mean of all states is taken", result.stderr)

    def test_no_text_is_continued(self):
        model = self.models["f16"]
        for command in (("run", "--tokens", "1,2"), ("logits", "--tokens", "1,2"), ("bench", "-p", 4, "-n", 1)):
            self.assert_one_line_error(tern(*command, "-m", model), 1, ["bert", "tern embed"])
        many = tern("run", "-m", model, "--prompts-file", "-", stdin=lines(self.texts[:2]))
        self.assertEqual(many.returncode, 1)
        self.assertIn(b"continues none", many.stderr)

    def test_texts(self):
        """[CLS] text [SEP], from the command line and over HTTP; a chat is refused."""
        model = bert_file.write(self.dir / "words.gguf", words=True)
        ids = [2, 4, 5, 6, 7, 11, 3]
        self.assertEqual(tern_text("tokenize", "-m", model, "-p", "Once upon a timeing", "--add-special").split(), list(map(str, ids)))
        wanted = vectors(self.embed(model, [ids]))
        self.assertEqual(vectors(tern_text("embed", model, "Once upon a timeing")), wanted)
        with Server("-m", model) as server:
            body = server.post("/v1/embeddings", input="Once upon a timeing").json()
            self.assertEqual([d["embedding"] for d in body["data"]], wanted)
            self.assertEqual(body["usage"]["prompt_tokens"], len(ids))
            for path, fields in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
                                 ("/v1/completions", {"prompt": "a"}), ("/completion", {"prompt": "a"})):
                self.assertEqual(server.post(path, **fields).status, 501, path)

    def scored(self, file, query, documents, *options, **fields):
        path = self.dir / "head.gguf"
        path.write_bytes(bert_file.add_words(file).to_bytes())
        with Server("-m", path, "--kv", "f32", *options) as server:
            return server.post("/v1/rerank", query=query, documents=documents, **fields)

    def test_pairs_beside_the_oracle(self):
        """The head's number of [CLS] query [SEP] document [SEP], whose second text is of kind 1; without the dense part, too."""
        try:
            import numpy as np
            from bert import Bert as Oracle
            from container import Container
        except ImportError as error:
            self.skipTest(str(error))
        texts = {"a time": [6, 7], "Once upon a timeing": [4, 5, 6, 7, 11], "tell": [9], "": []}
        for dense in (True, False):
            for kind in (bert_file.F32, bert_file.Q8_0):
                file = bert_file.add_head(bert_file.build(kind=bert_file.F32), dense, kind=kind)
                reply = self.scored(file, "a tale", list(texts)).json()
                oracle, wanted = Oracle(Container(self.dir / "head.gguf")), {}
                for i, ids in enumerate(texts.values()):
                    first, second = [2, 6, 8, 3], [*ids, 3]
                    wanted[i] = oracle.score(first + second, [0] * len(first) + [1] * len(second), "f32")
                seen = {r["index"]: r["relevance_score"] for r in reply["results"]}
                self.assertEqual([r["index"] for r in reply["results"]], sorted(seen, key=lambda i: -seen[i]))
                for i in wanted:
                    self.assertLess(abs(seen[i] - wanted[i]), 1e-4 * np.std(list(wanted.values())), (dense, kind, i))
                self.assertEqual(reply["usage"]["prompt_tokens"], sum(5 + len(ids) for ids in texts.values()))
                self.assertEqual(reply["tern"]["effective"], {"pooling": "rank", "dimensions": 1})

    def test_pairs_have_one_answer(self):
        documents = ["a time", "tell a tale", "once", "time" * 20, "upon"]
        wanted = None
        for isa in common.runnable_isas():
            reply = self.scored(bert_file.add_head(bert_file.build(), kind=bert_file.F16), "a tale", documents, "--isa", isa, "--threads", 1 if wanted is None else 3).json()
            wanted = wanted or (reply["results"], reply["tern"]["digest"])
            self.assertEqual((reply["results"], reply["tern"]["digest"]), wanted, isa)

    def test_forms_of_pairs(self):
        """Jina's form and that of text-embeddings-inference, which sends 1 / (1 + e^-x) unless raw scores are asked for."""
        path = self.dir / "forms.gguf"
        path.write_bytes(bert_file.add_words(bert_file.add_head(bert_file.build())).to_bytes())
        documents = ["a time", "tell"]
        with Server("-m", path) as server:
            body = server.post("/rerank", query="a tale", documents=documents, return_documents=True).json()
            raw, logistic = (server.post("/rerank", query="a tale", texts=documents, return_text=True, **f).json() for f in ({"raw_scores": True}, {}))
            for result, bare, odds in zip(body["results"], raw, logistic):
                self.assertEqual(bare, {"index": result["index"], "score": result["relevance_score"], "text": result["document"]["text"]})
                self.assertEqual(result["document"]["text"], documents[result["index"]])
                self.assertAlmostEqual(odds["score"], 1 / (1 + math.exp(-bare["score"])), 6)
            self.assertEqual(len(server.post("/rerank", query="a", documents=documents, top_n=1).json()["results"]), 1)
            for name in ("/v1/embeddings", "/embeddings"):
                refused = server.post(name, input="a")
                self.assertEqual(refused.status, 400)
                self.assertIn("/v1/rerank", refused.json()["error"]["message"])
            long = server.post("/rerank", query="a " * 80, documents=["tell " * 80])
            self.assertEqual((long.status, long.json()["error"]["type"]), (400, "exceed_context_size_error"))
        self.assert_one_line_error(tern("embed", "-m", path, "a"), 1, ["scores pairs", "/v1/rerank"])
        with Server("-m", path, "--pooling", "mean") as server:  # vectors as of any encoder, and documents by their cosine
            self.assertEqual(len(server.post("/v1/embeddings", input="a").json()["data"][0]["embedding"]), bert_file.WIDTH)
            best = server.post("/rerank", query="a", documents=["a"]).json()["results"][0]
            self.assertAlmostEqual(best["relevance_score"], 1.0, 5)
        self.assertIn("rank", tern_text("inspect", path))

    def test_hostile_heads(self):
        def changed(change, *contains):
            file = bert_file.add_head(bert_file.build())
            change(file)
            path = self.dir / "hostile.gguf"
            path.write_bytes(file.to_bytes())
            self.assert_one_line_error(tern("serve", "-m", path, "--port", 0), 1, contains)

        def wide(name, *ne):
            return lambda f: (f.remove(name), f.tensors.append(gguf_edit.Tensor(name, list(ne), 0, bytes(4 * math.prod(ne)))))

        changed(lambda f: f.remove("cls.bias"), "cls.bias", "missing")
        changed(lambda f: f.remove("cls.output.bias"), "cls.output.bias", "missing")
        changed(lambda f: f.remove("cls.output.weight"), "cls.weight")
        changed(wide("cls.weight", 64, 1), "cls.weight", "64 x 64")
        changed(wide("cls.output.weight", 64, 2), "cls.output.weight", "64 x 2")
        changed(wide("cls.output.weight", 32), "cls.output.weight", "32 x 1")
        changed(wide("cls.output.bias", 2), "cls.output.bias", "2 x 1")
        changed(lambda f: f.__setitem__("bert.classifier.output_labels", gguf_edit.strings(["no", "yes"])), "output_labels", "2 labels")
        changed(lambda f: f.tensor("cls.output.weight").__setattr__("data", b"\0\0\xc0\x7f" * 64), "cls.output.weight")
        changed(lambda f: f.tensor("cls.weight").__setattr__("data", b"\0\0\x80\x7f" * 64 * 64), "cls.weight")
        plain = lambda f: [f.remove(n) for n in ("cls.weight", "cls.bias", "cls.output.weight", "cls.output.bias")]
        changed(lambda f: (plain(f), f.__setitem__("bert.pooling_type", gguf_edit.u32(4))), "4 (rank)", "cls.output.weight is missing")

    def test_inspect(self):
        text = tern_text("inspect", self.models["q8_0"])
        for part in ("both ways", "LayerNorm of the sums", "learned, 150", "mean"):
            self.assertIn(part, text)
        matrices = json.loads(tern_text("inspect", self.models["q8_0"], "--json"))
        self.assertEqual(matrices["architecture"], "bert")
        tern_text("kernels", self.models["q8_0"])

    def test_refused(self):
        model = self.models["f16"]
        long = [[5] * 151]
        self.assert_one_line_error(tern("embed", "-m", model, stdin=lines(long)), 1, ["151 tokens", "150 positions"])
        self.assert_one_line_error(tern("embed", "-m", model, "--ctx", 300, stdin=lines([[5] * 200])), 1, ["200", "150"])

        def changed(change, *contains):
            file = bert_file.build()
            change(file)
            path = self.dir / "changed.gguf"
            path.write_bytes(file.to_bytes())
            self.assert_one_line_error(tern("embed", "-m", path, stdin=lines(self.texts[:1])), 1, contains)

        def without(name):
            return lambda file: file.remove(name)

        for name in ("position_embd.weight", "token_types.weight", "token_embd_norm.bias", "blk.1.attn_output_norm.weight",
                     "blk.2.ffn_up.weight", "blk.0.layer_output_norm.bias"):
            changed(without(name), name)
        changed(lambda f: f.__setitem__("bert.context_length", gguf_edit.u32(151)), "position_embd.weight")
        changed(lambda f: f.__setitem__("bert.attention.causal", (gguf_edit.BOOL, b"\1")), "bert.attention.causal")
        changed(lambda f: f.__delitem__("bert.attention.layer_norm_epsilon"), "layer_norm_epsilon")
        changed(lambda f: f.tensors.append(gguf_edit.Tensor("blk.0.ffn_gate.weight", [64, 160], 0, bytes(4 * 64 * 160))), "ffn_gate")
        changed(lambda f: f.tensors.append(gguf_edit.Tensor("cls.weight", [64, 64], 0, bytes(4 * 64 * 64))), "cls.weight")
        changed(lambda f: f.tensor("position_embd.weight").__setattr__("data", b"\0\0\xc0\x7f" * 64 * 150), "position_embd.weight")


if __name__ == "__main__":
    common.main()
