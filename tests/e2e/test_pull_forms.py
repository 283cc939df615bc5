# SPDX-License-Identifier: Apache-2.0
"""tern pull, convert and run beside a Hub with repositories in the forms that people publish: each runs, or one line
names the form and says what to do."""

import json
import sys
import tempfile
from pathlib import Path

import common
import gguf_edit
import suite
from common import tern, tern_json, tern_text
from hub_server import COMMIT, Hub

suite.need("numpy", "gguf")
sys.path.insert(0, str(common.ROOT / "tests" / "fuzz"))

import seeds_sentencepiece  # noqa: E402
import split_files  # noqa: E402

from hf_folder import Folder, byte_tokenizer  # noqa: E402
from test_convert_encoder import Encoder  # noqa: E402

TOKENIZER = byte_tokenizer([("h", "e")], {"<|end|>": True})
POOLING = "sentence_transformers.sentence_transformer.modules.pooling.Pooling"
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": POOLING},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.base.modules.normalize.Normalize"},
]
QUANTIZED = {
    "gptq (4 bits)": {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}},
    "awq (4 bits)": {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}},
    "bitsandbytes (4 bits)": {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}},
    "compressed-tensors": {"quantization_config": {"quant_method": "compressed-tensors", "ignore": ["lm_head"], "config_groups": {}}},
    "compressed-tensors (pack-quantized)": {
        "quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {}}},
    "modelopt (NVFP4_AWQ)": {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ", "exclude_modules": ["lm_head"]}},
    "fp8": {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3"}},
    "MLX (4 bits)": {"quantization": {"group_size": 64, "bits": 4}, "quantization_config": {"group_size": 64, "bits": 4}},
    "MLX (8 bits)": {"quantization": {"group_size": 64, "bits": 8}},
}


class PullForms(common.TernTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.gguf = Path(common.small_model()).read_bytes()
        self.hub = Hub({})
        self.addCleanup(self.hub.stop)
        self.env = {"HF_ENDPOINT": self.hub.url, "HF_HUB_CACHE": str(self.dir / "hub"), "HOME": folder.name, "HF_TOKEN": "",
                    "HF_HOME": "", "HF_TOKEN_PATH": str(self.dir / "token"), "HF_HUB_OFFLINE": "", "no_proxy": "*", "NO_PROXY": "*"}
        if "made without libcurl" in self.pull("a/b").stderr.decode():
            self.skipTest("built without libcurl")

    def pull(self, name):
        return tern("pull", name, env=self.env)

    def folder(self, kind="LlamaForCausalLM", files=1, **config):
        """The files of a folder as transformers writes it."""
        model = Folder(self.dir / "folder", kind, vocab_size=300, tie_word_embeddings=True, **config)
        if kind.endswith("Model"):
            model.tensors = {n.removeprefix("model."): t for n, t in model.tensors.items()}
        held = {path.name: path.read_bytes() for path in model.write(files).iterdir()}
        return held | {"tokenizer.json": json.dumps(TOKENIZER).encode(), "README.md": b"# a model"}

    def next_command(self, name):
        """Pulls the files of the repository; returns the words of the command that tern names at its end."""
        result = self.pull(name)
        self.assertEqual(result.returncode, 0, result.stderr)
        last = result.stderr.decode().splitlines()[-1]
        self.assertTrue(last.startswith("next: tern "), last)
        return last.removeprefix("next: tern ").split(), Path(result.stdout.decode().strip())

    def runs(self, name):
        words, path = self.next_command(name)
        self.assertEqual((words[0], words[-2:]), ("run", ["-p", "TEXT"]))
        return tern_text(*words[:-1], "Once upon", "-n", 4, env=self.env), path

    def converts(self, name):
        """Runs the commands that pull and run name; returns the model's path."""
        words, path = self.next_command(name)
        missing = tern("run", "-m", name, "-p", "x", env=self.env)
        self.assert_one_line_error(missing, 1, ["`tern " + " ".join(words) + "` makes a model"])
        result = tern(*words, cwd=self.dir, env=self.env)
        self.assertEqual(result.returncode, 0, result.stderr)
        out = self.dir / words[-1]
        self.assertEqual(gguf_edit.read(out).text("general.name"), name.split("/")[1])
        return out, path

    def says(self, name, *words):
        """The repository is refused in one line, before its weights are fetched."""
        self.assert_one_line_error(self.pull(name), 1, [name, *words])
        self.assertEqual(self.hub.stored, [])

    def test_safetensors_in_parts(self):
        self.hub.files["one/sharded"] = self.folder(files=3)
        out, path = self.converts("one/sharded")
        self.assertEqual(path.name, COMMIT)
        self.assertEqual(len(tern_json("run", "-m", out, "-p", "he", "-n", 3)["tokens"]), 3)

    def test_older_tokenizers(self):
        held = self.folder()
        del held["tokenizer.json"]
        self.hub.files["one/older"] = held | {"tokenizer.model": seeds_sentencepiece.MODELS["bpe"], "special_tokens_map.json": b"{}"}
        out, _ = self.converts("one/older")
        self.assertEqual(tern_text("tokenize", "-m", out, "-p", "a b").split(), ["259", "262", "264"])

    def test_encoders_with_older_tokenizers(self):
        """BERT's words and XLM-RoBERTa's model are fetched too."""
        for kind, model_type, held, expected in (
            ("BertModel", "bert", {"vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n"}, ["5", "6"]),
            ("XLMRobertaModel", "xlm-roberta", {"sentencepiece.bpe.model": seeds_sentencepiece.MODELS["unigram"]}, ["4", "6", "4", "7"]),
        ):  # fmt: skip
            with self.subTest(kind):
                path = Encoder(kind, model_type=model_type).write(self.dir / kind)
                self.hub.files[f"one/{kind}"] = held | {x.name: x.read_bytes() for x in path.iterdir() if x.is_file()}
                out, _ = self.converts(f"one/{kind}")
                self.assertEqual(tern_text("tokenize", "-m", out, "-p", "a b").split(), expected)

    def test_parts_of_gguf(self):
        parts = split_files.cut(gguf_edit.read(common.small_model()), 3)
        self.hub.files["one/parts"] = {split_files.part_name(i, 3): part.to_bytes() for i, part in enumerate(parts)}
        self.runs("one/parts")

    def test_consolidated_weights_are_not_fetched_twice(self):
        held = self.folder(files=2)
        self.hub.files["one/mistral"] = held | {"consolidated.safetensors": b"x" * 1000, "params.json": b"{}"}
        _, path = self.converts("one/mistral")
        self.assertFalse((path / "consolidated.safetensors").exists())

    def test_templates_of_their_own(self):
        jinja = {"chat_template.jinja": b"{{ messages[0].content }}", "chat_templates/tool_use.jinja": b"{{ tools }}",
                 "additional_chat_templates/rag.jinja": b"{{ documents }}", "chat_templates/old/x.jinja": b"", "notes/x.jinja": b""}
        self.hub.files["one/chat"] = self.folder() | jinja
        _, path = self.converts("one/chat")
        self.assertEqual((path / "chat_template.jinja").read_bytes(), jinja["chat_template.jinja"])
        self.assertTrue((path / "chat_templates" / "tool_use.jinja").exists())
        self.assertTrue((path / "additional_chat_templates" / "rag.jinja").exists())
        self.assertFalse((path / "chat_templates" / "old").exists())
        self.assertFalse((path / "notes").exists())

    def test_embedding_models(self):
        held = self.folder("Qwen3Model")
        held |= {"modules.json": json.dumps(MODULES).encode(), "1_Pooling/config.json": b'{"pooling_mode": "lasttoken"}',
                 "onnx/model.safetensors": b"other"}
        self.hub.files["one/vectors"] = held
        out, path = self.converts("one/vectors")
        self.assertFalse((path / "onnx").exists())
        said = json.loads(tern_text("embed", "-m", out, "-p", "hello"))
        self.assertEqual(len(said["embedding"]), 64)

    def test_several_quants(self):
        self.hub.files["one/quants"] = {"x-Q8_0.gguf": self.gguf, "x-Q4_K_M.gguf": self.gguf + b" ", "README.md": b""}
        result = self.pull("one/quants")
        self.assertEqual((result.returncode, b"which one" in result.stderr), (2, True))
        self.assertIn("x-Q8_0.gguf", str(self.runs("one/quants:Q8_0")[1]))

    def test_quants_in_folders(self):
        """Each quant has a folder, a large one in parts; what is beside it in other folders is not fetched."""
        parts = split_files.cut(gguf_edit.read(common.small_model()), 2)
        held = {f"Q8_0/{split_files.part_name(i, 2)}": part.to_bytes() for i, part in enumerate(parts)}
        self.hub.files["one/folders"] = held | {"Q4_K_M/x-Q4_K_M.gguf": self.gguf + b" ", "README.md": b""}
        _, path = self.runs("one/folders:Q8_0")
        self.assertEqual(path.parent.name, "Q8_0")
        self.assertFalse((path.parents[1] / "Q4_K_M").exists())

    def test_models_of_other_kinds(self):
        """A model of pictures and one for another program: each is named in one line."""
        self.hub.files["one/pictures"] = self.folder() | {"config.json": b'{"architectures": ["Qwen2_5_VLForConditionalGeneration"]}'}
        words, _ = self.next_command("one/pictures")
        self.assert_one_line_error(tern(*words, cwd=self.dir, env=self.env), 1, ["Qwen2_5_VLForConditionalGeneration"])
        self.hub.stored.clear()
        self.hub.files["one/onnx"] = {"config.json": b"{}", "onnx/model.onnx": b"x", "tokenizer.json": b"{}"}
        self.says("one/onnx", "neither *.gguf nor *.safetensors")

    def test_what_lies_beside_models_is_not_one(self):
        beside = {"mmproj-model-f16.gguf": b"GGUF", "x.imatrix.gguf": b"GGUF", "imatrix.dat": b"x", "x-mmproj.gguf": b"GGUF"}
        self.hub.files["one/vision"] = {"x-Q8_0.gguf": self.gguf} | beside
        self.assertEqual(self.runs("one/vision")[1].name, "x-Q8_0.gguf")
        self.hub.files["one/eyes"] = beside
        self.hub.stored.clear()
        self.says("one/eyes", "no model")

    def test_adapters(self):
        self.hub.files["one/lora"] = {"adapter_config.json": b'{"peft_type": "LORA"}', "adapter_model.safetensors": b"x" * 100,
                                      "tokenizer.json": b"{}"}
        self.says("one/lora", "adapter (LoRA)", "merge")
        file = gguf_edit.read(common.small_model())
        file["general.type"] = gguf_edit.string("adapter")
        self.hub.files["one/gguf-lora"] = {"x-lora-f16.gguf": file.to_bytes()}
        self.assert_one_line_error(self.pull("one/gguf-lora"), 1, ["one/gguf-lora", "adapter (LoRA)", "merge"])
        (self.dir / "adapter.gguf").write_bytes(file.to_bytes())
        self.assert_one_line_error(tern("run", "-m", self.dir / "adapter.gguf", "-p", "x"), 1, ["adapter.gguf", "adapter (LoRA)", "merge"])
        self.hub.files["one/merged"] = self.folder() | {"adapter_model.safetensors": b"x"}
        _, path = self.converts("one/merged")
        self.assertFalse((path / "adapter_model.safetensors").exists())

    def test_other_quantizations(self):
        """They are named before weights are fetched, by convert of a folder, too; BitNet's own is read."""
        for said, config in QUANTIZED.items():
            with self.subTest(said):
                self.hub.files["one/other"] = self.folder(**config)
                self.says("one/other", f"quantized by {said} ", "convert the model that was not quantized, or pull a GGUF file")
                path = self.dir / "folder"
                self.assert_one_line_error(tern("convert", path, self.dir / "x.gguf"), 1, ["config.json", f"quantized by {said} "])
        self.assertFalse(list((self.dir / "hub").rglob("*.safetensors")))

    def test_weights_of_pytorch(self):
        self.hub.files["one/old"] = {"config.json": b"{}", "pytorch_model.bin": b"PK"}
        self.says("one/old", "neither *.gguf nor *.safetensors")

    def test_gated(self):
        self.hub.files["one/gated"] = {"x.gguf": self.gguf}
        self.hub.token = "hf_secret"
        self.says("one/gated", "401", "HF_TOKEN")
        self.env["HF_TOKEN"] = "hf_secret"
        self.runs("one/gated")
        self.hub.files["one/terms"] = self.folder()
        self.hub.gated.add("one/terms")
        self.hub.stored.clear()
        self.says("one/terms", "403", "another token", "terms at", self.hub.url + "/one/terms")

    def test_addresses(self):
        self.hub.files["one/quants"] = {"x-Q8_0.gguf": self.gguf, "sub/x-Q4_0.gguf": self.gguf}
        expected, _ = self.runs("one/quants:x-Q8_0.gguf")
        for address in ("https://huggingface.co/one/quants/blob/main/x-Q8_0.gguf", "hf.co/one/quants:Q8_0",
                        "https://huggingface.co/one/quants/resolve/main/x-Q8_0.gguf?download=true",
                        f"huggingface.co/one/quants/tree/{COMMIT}:Q8_0", "https://hf.co/one/quants/tree/main/sub/"):
            with self.subTest(address=address):
                self.assertEqual(self.runs(address)[0], expected)
                self.assertEqual(tern_text("run", "-m", address, "-p", "Once upon", "-n", 4, env=self.env), expected)
        for address in ("https://huggingface.co/one", "https://huggingface.co/", "https://example.org/one/quants", "hf.co/one/x/commits/main",
                        "https://huggingface.co/one/quants/blob/main/../../x", "hf.co/one/x/tree/"):
            with self.subTest(address=address):
                self.assert_one_line_error(self.pull(address), 2, ["OWNER/NAME"])

    def test_nothing_was_fetched(self):
        self.assert_one_line_error(tern("convert", "one/none", self.dir / "x.gguf", env=self.env), 1, ["`tern pull one/none` fetches it"])


if __name__ == "__main__":
    common.main()
