# SPDX-License-Identifier: Apache-2.0
"""tern convert of encoders: a folder's vectors are those of the formula that its class stands for."""

import json
import math
import shutil
import unittest
import unittest.mock

import common
import gguf_edit
from common import tern, tern_text
from serving import Server
from test_convert_tokenizers import pieces, words

try:
    import numpy as np
    from hf_folder import Folder, Stored, safetensors_bytes
except ImportError:
    np = None

WIDTH, INNER, HEADS, LAYERS, VOCABULARY, POSITIONS = 64, 96, 4, 2, 97, 80
LENGTHS = (1, 2, 7, 33, 78)
TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
NORMALIZE = {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
MODES = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "last": "pooling_mode_lasttoken",
         "max": "pooling_mode_max_tokens"}


class Encoder:
    """A folder with random weights, and the vectors that its class computes, in float64."""

    def __init__(self, kind="BertModel", dtype="F32", seed=1, **config):
        self.config = {
            "architectures": [kind], "hidden_size": WIDTH, "intermediate_size": INNER, "num_attention_heads": HEADS,
            "num_hidden_layers": LAYERS, "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS,
            "type_vocab_size": 2 if kind == "BertModel" else 1, "layer_norm_eps": 1e-5, "hidden_act": "gelu",
            "position_embedding_type": "absolute", "pad_token_id": 0 if kind == "BertModel" else 1,
            "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, **config,
        }
        self.first = self.config["pad_token_id"] + 1 if kind == "XLMRobertaModel" else 0
        self.random, self.dtype, self.tensors, self.files = np.random.default_rng(seed), dtype, {}, {}
        for name, rows in (("word", VOCABULARY), ("position", POSITIONS), ("token_type", self.config["type_vocab_size"])):
            self.add(f"embeddings.{name}_embeddings.weight", rows, WIDTH)
        self.add_norm("embeddings.LayerNorm")
        for n in range(LAYERS):
            at = f"encoder.layer.{n}."
            for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
                self.add_linear(at + name, WIDTH, WIDTH)
            self.add_linear(at + "intermediate.dense", INNER, WIDTH)
            self.add_linear(at + "output.dense", WIDTH, INNER)
            self.add_norm(at + "attention.output.LayerNorm")
            self.add_norm(at + "output.LayerNorm")
        self.add_linear("pooler.dense", WIDTH, WIDTH)
        self.tensors["embeddings.position_ids"] = Stored(np.arange(POSITIONS)[None], "I64")

    def add(self, name, *shape, sd=0.5, mean=0.0):
        self.tensors[name] = Stored(mean + sd * self.random.standard_normal(shape), self.dtype)

    def add_linear(self, name, rows, columns):
        self.add(name + ".weight", rows, columns, sd=1.5 / columns**0.5)
        self.add(name + ".bias", rows, sd=0.2)

    def add_norm(self, name):
        self.add(name + ".weight", WIDTH, sd=0.2, mean=1.0)
        self.add(name + ".bias", WIDTH, sd=0.2)

    def pooled(self, *modes, modules=(TRANSFORMER, POOLING, NORMALIZE)):
        """Writes the files that say how vectors are made; modules None: without a list of modules."""
        self.files["1_Pooling/config.json"] = {MODES[m]: m in modes for m in MODES}
        if modules is not None:
            self.files["modules.json"] = list(modules)
        return self

    def write(self, path):
        shutil.rmtree(path, ignore_errors=True)
        (path / "1_Pooling").mkdir(parents=True)
        for name, content in {**self.files, "config.json": self.config}.items():
            (path / name).write_text(json.dumps(content))
        (path / "model.safetensors").write_bytes(safetensors_bytes(self.tensors))
        return path

    # ---- the formula ----

    def get(self, name):
        return self.tensors[name].values()

    def hidden(self, ids, kinds=0):
        position = self.get("embeddings.position_embeddings.weight")[self.first :][: len(ids)]
        x = self.get("embeddings.word_embeddings.weight")[ids] + position
        x = self.norm("embeddings.LayerNorm", x + self.get("embeddings.token_type_embeddings.weight")[kinds + np.zeros(len(ids), int)])
        for n in range(LAYERS):
            at = f"encoder.layer.{n}."
            q, k, v = (self.linear(f"{at}attention.self.{w}", x).reshape(len(x), HEADS, -1) for w in ("query", "key", "value"))
            scores = np.exp(np.einsum("ihd,jhd->hij", q, k) / math.sqrt(WIDTH / HEADS))
            heads = np.einsum("hij,jhd->ihd", scores / scores.sum(axis=2, keepdims=True), v)
            x = self.norm(at + "attention.output.LayerNorm", x + self.linear(at + "attention.output.dense", heads.reshape(x.shape)))
            inner = self.linear(at + "intermediate.dense", x)
            if self.config["hidden_act"] == "gelu_new":
                inner = inner * (1 + np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3))) / 2
            else:
                inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
            x = self.norm(at + "output.LayerNorm", x + self.linear(at + "output.dense", inner))
        return x

    def linear(self, name, x):
        return x @ self.get(name + ".weight").T + self.get(name + ".bias")

    def norm(self, name, x):
        x = x - x.mean(axis=1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + self.config["layer_norm_eps"])
        return x * self.get(name + ".weight") + self.get(name + ".bias")


class Ranker(Encoder):
    """An encoder with a head that scores pairs: BERT's pooler and a row, or XLM-RoBERTa's own dense part and a row."""

    def __init__(self, kind="BertModel", **config):
        super().__init__(kind, **{"hidden_act": "gelu_new", **config})
        self.xlmr = kind == "XLMRobertaModel"
        self.config |= {"architectures": [kind.replace("Model", "ForSequenceClassification")], "id2label": {"0": "LABEL_0"}}
        self.dense, self.row = ("classifier.dense", "classifier.out_proj") if self.xlmr else ("pooler.dense", "classifier")
        if self.xlmr:
            del self.tensors["pooler.dense.weight"], self.tensors["pooler.dense.bias"]
            self.add_linear(self.dense, WIDTH, WIDTH)
        self.add_linear(self.row, 1, WIDTH)

    def write(self, path):
        inner = "roberta." if self.xlmr else "bert."
        bare, self.tensors = self.tensors, {(name if name.startswith("classifier") else inner + name): t for name, t in self.tensors.items()}
        super().write(path)
        self.tensors = bare
        return path

    def score(self, first, second):
        kinds = [0] * len(first) + [int(not self.xlmr)] * len(second)
        x = np.tanh(self.linear(self.dense, self.hidden(first + second, np.array(kinds))[:1]))
        return float(self.linear(self.row, x)[0, 0])


@unittest.skipUnless(np, "needs numpy and gguf")
class ConvertEncoder(common.FolderTest):
    def convert(self, model, *options):
        self.out = self.dir / "out.gguf"
        result = tern("convert", model.write(self.dir / "folder"), self.out, "--force", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([line for line in result.stderr.splitlines() if b" tokenizer.json" not in line], [])
        return gguf_edit.read(self.out)

    def agree(self, model, pooling, pool, bound=0.9999):
        texts = [common.prompt(n, VOCABULARY, 3 + n) for n in LENGTHS]
        lines = "\n".join(json.dumps({"tokens": ids}) for ids in texts).encode()
        result = tern("embed", "-m", self.out, *pooling, stdin=lines)
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (0, len(pooling) // 2), result.stderr)
        for ids, line in zip(texts, result.stdout.splitlines()):
            x, y = pool(model.hidden(ids)), np.array(json.loads(line)["embedding"])
            self.assertGreater(float(x @ y) / np.linalg.norm(x), bound, (pooling, len(ids)))

    def test_bert(self):
        for dtype in ("F32", "F16", "BF16"):
            model = Encoder(dtype=dtype).pooled("mean")
            file = self.convert(model)
            self.assertEqual(file.text("general.architecture"), "bert")
            self.agree(model, (), lambda h: h.mean(axis=0))
            self.agree(model, ("--pooling", "last"), lambda h: h[-1])
        self.convert(model, "--type", "q8_0")
        self.agree(model, (), lambda h: h.mean(axis=0), bound=0.999)

    def test_xlm_roberta(self):
        """The first rows of positions are those of padding; the text begins behind them."""
        for padding in (1, 0, 4):
            model = Encoder("XLMRobertaModel", pad_token_id=padding, max_position_embeddings=POSITIONS).pooled("cls")
            file = self.convert(model)
            self.assertEqual(file.number("bert.context_length"), POSITIONS - padding - 1)
            texts = [n for n in LENGTHS if n <= POSITIONS - padding - 1]
            with unittest.mock.patch(f"{__name__}.LENGTHS", texts):
                self.agree(model, (), lambda h: h[0])
                self.agree(model, ("--pooling", "last"), lambda h: h[-1])

    def test_pooling(self):
        """modules.json names the folder; without it the usual folder counts; without both the key is left out."""
        for mode, number in (("mean", 1), ("cls", 2), ("last", 3)):
            self.assertEqual(self.convert(Encoder().pooled(mode)).number("bert.pooling_type"), number)
            self.assertEqual(self.convert(Encoder().pooled(mode, modules=None)).number("bert.pooling_type"), number)
        for model in (Encoder(), Encoder().pooled("cls", modules=[TRANSFORMER])):
            self.assertNotIn("bert.pooling_type", self.convert(model))

    def test_pooling_of_others(self):
        """A model that continues texts may make vectors, too."""
        folder = Folder(self.dir / "qwen", "Qwen3ForCausalLM").write()
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling/config.json").write_text(json.dumps({MODES["last"]: True}))
        tern_text("convert", folder, self.dir / "qwen.gguf")
        self.assertEqual(gguf_edit.read(self.dir / "qwen.gguf").number("qwen3.pooling_type"), 3)

    def test_models_without_a_head(self):
        """Qwen3Model and its like: no head, names without "model.", and the pooling as sentence-transformers 6 writes it."""
        for name, mode, number in (("Qwen3", "lasttoken", 3), ("Qwen2", "cls", 2), ("Llama", "mean", 1)):
            with self.subTest(name=name):
                whole = Folder(self.dir / "whole", f"{name}ForCausalLM", tie_word_embeddings=True)
                tern_text("convert", whole.write(), self.dir / "whole.gguf", "--force")
                base = Folder(self.dir / "base", f"{name}Model", tie_word_embeddings=False)
                base.tensors = {tensor.removeprefix("model."): values for tensor, values in whole.tensors.items()}
                folder = base.write()
                (folder / "1_Pooling").mkdir()
                (folder / "1_Pooling/config.json").write_text(json.dumps({"embedding_dimension": 64, "pooling_mode": mode}))
                (folder / "modules.json").write_text(json.dumps([TRANSFORMER, POOLING, NORMALIZE]))
                tern_text("convert", folder, self.dir / "base.gguf", "--force")
                kinds = [gguf_edit.read(self.dir / f"{which}.gguf") for which in ("whole", "base")]
                architecture = name.lower()
                self.assertEqual(kinds[1].number(f"{architecture}.pooling_type"), number)
                said = [tern_text("logits", "-m", self.dir / f"{which}.gguf", "--tokens", "5,17,90", "--all", "--sha256")
                        for which in ("whole", "base")]
                self.assertEqual(*said)
                shutil.rmtree(folder)

    def test_texts(self):
        """The folder's tokenizer is used, with the tokens that stand around a text."""
        for kind, document in (("BertModel", words()), ("XLMRobertaModel", pieces())):
            model = Encoder(kind).pooled("mean")
            model.files["tokenizer.json"] = document
            self.convert(model)
            ids = [tern_text("tokenize", *of, "-p", "unable a.", "--add-special").split()
                   for of in (("-m", self.out), ("--tokenizer", self.dir / "folder/tokenizer.json"))]
            self.assertEqual(*ids)
            found = json.loads(tern_text("embed", self.out, "unable a."))["embedding"]
            x = model.hidden([int(i) for i in ids[0]]).mean(axis=0)
            self.assertGreater(float(x @ np.array(found)) / np.linalg.norm(x), 0.9999)

    def test_heads(self):
        """Scores of a query with documents; <s> a </s></s> b </s> of XLM-RoBERTa, [CLS] a [SEP] b [SEP] of BERT."""
        documents = ["unable a.", "a", "able able", ""]
        for kind, document in (("BertModel", words()), ("XLMRobertaModel", pieces())):
            model = Ranker(kind, type_vocab_size=2)  # of which XLM-RoBERTa's tokenizer uses one
            model.files["tokenizer.json"] = document
            file = self.convert(model)
            self.assertEqual(file.number("bert.pooling_type"), 4)
            ids = {text: [int(i) for i in tern_text("tokenize", "-m", self.out, "-p", text, "--add-special").split()] for text in [*documents, "a."]}
            query = ids["a."] + [ids["a."][-1]] * model.xlmr
            wanted = np.array([model.score(query, ids[text][1:]) for text in documents])
            with Server("-m", self.out, "--kv", "f32") as server:
                reply = server.post("/rerank", query="a.", documents=documents).json()
            seen = np.array([r["relevance_score"] for r in sorted(reply["results"], key=lambda r: r["index"])])
            self.assertLess(np.abs(seen - wanted).max(), 1e-3 * wanted.std(), kind)

    def test_heads_in_other_types(self):
        """The head stays in floats, whatever the matrices become."""
        file = self.convert(Ranker(), "--type", "q8_0")
        self.assertEqual([file.tensor(name).kind for name in ("cls.weight", "cls.output.weight")], [0, 0])

    def test_refused_heads(self):
        for name in ("pooler.dense.weight", "pooler.dense.bias", "classifier.weight", "classifier.bias"):
            model = Ranker()
            del model.tensors[name]
            self.refused(model, name, "missing")
        model = Ranker()
        model.add_linear("classifier", 2, WIDTH)
        self.refused(model, "classifier.weight", "2 x 64, must be 1 x 64")
        model = Ranker("XLMRobertaModel")
        model.add_linear("classifier.dense", WIDTH, 32)
        self.refused(model, "classifier.dense.weight", "64 x 32, must be 64 x 64")

    def refused(self, model, *contains):
        result = tern("convert", model.write(self.dir / "folder"), self.dir / "hostile.gguf")
        self.assert_one_line_error(result, 1, contains)
        self.assertFalse((self.dir / "hostile.gguf").exists())

    def test_refused_configurations(self):
        for config, *words in (
            ({"position_embedding_type": "relative_key"}, "position_embedding_type", "relative_key"),
            ({"is_decoder": True}, "is_decoder"),
            ({"add_cross_attention": True}, "add_cross_attention"),
            ({"hidden_act": "relu"}, "hidden_act", "relu"),
            ({"type_vocab_size": 0}, "type_vocab_size"),
            ({"type_vocab_size": 3}, "token_type_embeddings", "3 x 64"),
            ({"layer_norm_eps": "small"}, "layer_norm_eps", "not a number"),
            ({"num_attention_heads": 5}, "head_dim"),
            ({"max_position_embeddings": 81}, "position_embeddings", "81 x 64"),
            ({"num_hidden_layers": 3}, "encoder.layer.2.attention.self.query.weight", "missing"),
        ):
            model = Encoder()
            model.config |= config
            with self.subTest(config=config):
                self.refused(model, *words)
        for padding in (-1, POSITIONS - 1, 2**40, "one"):
            model = Encoder("XLMRobertaModel")
            model.config["pad_token_id"] = padding
            self.refused(model, "pad_token_id")
        self.refused(Encoder(architectures=["RobertaModel"]), "RobertaModel", "llama, ", ", bert")

    def test_refused_tensors(self):
        for name in ("embeddings.token_type_embeddings.weight", "embeddings.LayerNorm.bias", "encoder.layer.0.attention.self.key.weight",
                     "encoder.layer.1.output.dense.bias", "encoder.layer.1.attention.output.LayerNorm.weight"):
            model = Encoder()
            del model.tensors[name]
            self.refused(model, name, "missing")
        model = Encoder()
        model.add("encoder.layer.0.attention.self.distance_embedding.weight", 99, 16)
        self.refused(model, "distance_embedding", "no place")
        model = Encoder()
        model.add("encoder.layer.1.intermediate.dense.weight", WIDTH, INNER)
        self.refused(model, "intermediate.dense.weight", f"{INNER} x {WIDTH}")

    def test_refused_poolings(self):
        self.refused(Encoder().pooled("max"), "1_Pooling/config.json", "pooling_mode_max_tokens")
        self.refused(Encoder().pooled("mean", "cls"), "pooling_mode_cls_token", "beside another")
        self.refused(Encoder().pooled(), "pooling_mode_lasttoken")
        for mode in ("max", ["mean", "cls"], 5, "weightedmean"):
            model = Encoder().pooled("mean")
            model.files["1_Pooling/config.json"] = {"pooling_mode": mode}
            self.refused(model, "1_Pooling/config.json", '"pooling_mode"', "mean, cls and lasttoken")
        dense = POOLING | {"type": "sentence_transformers.models.Dense", "path": "3_Dense"}
        self.refused(Encoder().pooled("mean", modules=[TRANSFORMER, POOLING, dense]), "models.Dense", "not supported")
        self.refused(Encoder().pooled("mean", modules=[TRANSFORMER, POOLING, POOLING]), "one Pooling")
        for path in ("../1_Pooling", "", "1_Pooling/x", ".", 5):
            self.refused(Encoder().pooled("mean", modules=[POOLING | {"path": path}]), "modules.json", "path")
        for modules in ({"type": "x"}, [5], ["models.Pooling"], [{}]):
            model = Encoder()
            model.files["modules.json"] = modules
            self.refused(model, "modules.json")


if __name__ == "__main__":
    common.main()
