# SPDX-License-Identifier: Apache-2.0
"""tern convert: a folder's model computes in GGUF what it computes where it comes from."""

import json
import unittest
from pathlib import Path

import common
import gguf_edit
from common import tern, tern_text
from convert_case import LLAMA3, YARN, ConvertTest

try:
    import hf_folder
    import numpy as np
    from hf_folder import Folder, Stored, safetensors_bytes
except ImportError:
    np = None

NEAR, FAR = "sliding_attention", "full_attention"
WINDOWS = {"num_hidden_layers": 4, "sliding_window": 5}
COHERE = WINDOWS | {"logit_scale": 0.25, "layer_norm_eps": 1e-5, "tie_word_embeddings": True}
ALPHA = {"rope_type": "dynamic", "alpha": 1000.0, "factor": 1.0}
WARM = YARN | {"original_max_position_embeddings": 4, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.3}
PACKED = {"quant_method": "bitnet"}
MULTIPLIES = PACKED | {"linear_class": "autobitlinear", "quantization_mode": "offline"}
ONLINE = PACKED | {"linear_class": "autobitlinear", "quantization_mode": "online"}


@unittest.skipUnless(np, "needs numpy and gguf")
class Convert(ConvertTest):
    # ---- architectures ----

    def test_llama(self):
        for name, config in {
            "own head": {},
            "tied": {"tie_word_embeddings": True},
            "wide heads, as Falcon 3": {"head_dim": 32, "tie_word_embeddings": False},
            "one key/value head a head": {"num_key_value_heads": 4},
            "biases": {"attention_bias": True},
            "llama3 scaling": {"rope_scaling": LLAMA3},
            "linear scaling": {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
            "yarn": {"rope_scaling": YARN},
            "another base": {"rope_theta": 500000.0},
        }.items():
            with self.subTest(name):
                self.agree(Folder(self.dir / "llama", **config))

    def test_new_rope_key(self):
        model = Folder(
            self.dir / "llama", rope_parameters={"rope_theta": 5e5, "rope_type": "default"}
        )
        del model.config["rope_theta"]
        self.agree(model)

    def test_qwen(self):
        for kind in ("Qwen2ForCausalLM", "Qwen3ForCausalLM"):
            for tied in (True, False):
                with self.subTest(kind=kind, tied=tied):
                    config = {"head_dim": 32} if kind == "Qwen3ForCausalLM" else {}
                    self.agree(Folder(self.dir / "qwen", kind, tie_word_embeddings=tied, **config))

    def test_more_families(self):
        """Windows, joined matrices, norms of all heads, factors: each class is converted with its own parts."""
        for kind, config in (
            ("MistralForCausalLM", {"sliding_window": 5}),
            ("MistralForCausalLM", {"sliding_window": None}),
            ("MistralForCausalLM", {"sliding_window": 512}),
            ("Phi3ForCausalLM", {"sliding_window": 7, "num_key_value_heads": 1}),
            ("Olmo2ForCausalLM", {"tie_word_embeddings": True}),
            ("Olmo2ForCausalLM", {"rope_scaling": YARN}),
            ("MiniCPMForCausalLM", {"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 16}),
            ("SmolLM3ForCausalLM", {"num_hidden_layers": 5, "no_rope_layers": [1, 1, 1, 0, 1]}),
            ("SmolLM3ForCausalLM", {"num_hidden_layers": 4, "rope_scaling": YARN}),
            ("SeedOssForCausalLM", {"head_dim": 24}),
            ("Ernie4_5ForCausalLM", {"head_dim": 24, "tie_word_embeddings": True}),
            ("Glm4ForCausalLM", {"head_dim": 24}),
            ("Glm4ForCausalLM", {"head_dim": 16, "partial_rotary_factor": 0.25}),
            ("HunYuanDenseV1ForCausalLM", {"head_dim": 24}),
            ("HunYuanDenseV1ForCausalLM", {"head_dim": 24, "rope_scaling": ALPHA}),
            ("Ministral3ForCausalLM", {"head_dim": 24, "rope_scaling": WARM}),
            ("Cohere2ForCausalLM", COHERE | {"layer_types": [NEAR, NEAR, FAR, NEAR]}),
            ("Gemma2ForCausalLM", {"layer_types": [NEAR, FAR]}),
            ("Gemma2ForCausalLM", {"attn_logit_softcapping": None, "final_logit_softcapping": None}),
            ("Exaone4ForCausalLM", WINDOWS | {"layer_types": [NEAR, NEAR, FAR, NEAR]}),
            ("Exaone4ForCausalLM", WINDOWS | {"sliding_window_pattern": "LLG"}),
            ("Exaone4ForCausalLM", {"sliding_window": None, "sliding_window_pattern": None}),
            (
                "GraniteForCausalLM",
                {
                    "embedding_multiplier": 12.0,
                    "residual_multiplier": 0.22,
                    "logits_scaling": 8.0,
                    "attention_multiplier": 0.1,
                },
            ),
        ):
            with self.subTest(kind=kind, config=config):
                self.agree(Folder(self.dir / "family", kind, **config))

    def test_factors_are_whole(self):
        """A factor that is missing or impossible is refused by its name, and so are factors elsewhere."""
        minicpm = {"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 16}
        for kind, config, words in (
            ("MiniCPMForCausalLM", {}, ["embedding_multiplier", "missing"]),
            ("MiniCPMForCausalLM", minicpm | {"dim_model_base": 0}, ["above 0"]),
            ("MiniCPMForCausalLM", {"scale_emb": 12, "scale_depth": 1.4}, ["dim_model_base", "missing"]),
            ("GraniteForCausalLM", {"embedding_multiplier": 2.0}, ["residual_multiplier", "missing"]),
            ("LlamaForCausalLM", {"scale_emb": 12}, ["scale_emb", "is 12"]),
            ("Qwen3ForCausalLM", {"residual_multiplier": 0.5}, ["residual_multiplier", "0.5"]),
            ("MistralForCausalLM", {"sliding_window": 0}, ["sliding_window"]),
            ("SmolLM3ForCausalLM", {"no_rope_layers": [1, 0]}, ["no_rope_layers", "fourth layer"]),
            ("SmolLM3ForCausalLM", {"no_rope_layers": [1]}, ["no_rope_layers", "fourth layer"]),
            ("SmolLM3ForCausalLM", {"no_rope_layers": "all"}, ["no_rope_layers", "fourth layer"]),
            ("SmolLM3ForCausalLM", {"no_rope_layer_interval": 3}, ["no_rope_layer_interval", "is not 4"]),
            ("LlamaForCausalLM", {"no_rope_layer_interval": 4}, ["no_rope_layer_interval"]),
            ("Glm4ForCausalLM", {"partial_rotary_factor": 1.5}, ["partial_rotary_factor", "even number"]),
            ("Glm4ForCausalLM", {"partial_rotary_factor": 0.3}, ["partial_rotary_factor", "even number"]),
            ("Qwen3ForCausalLM", {"partial_rotary_factor": 0.5}, ["partial_rotary_factor", "other than 1"]),
            ("HunYuanDenseV1ForCausalLM", {"rope_scaling": {"rope_type": "dynamic"}}, ["alpha", "missing"]),
            ("HunYuanDenseV1ForCausalLM", {"rope_scaling": ALPHA | {"alpha": 0}}, ["alpha", "from 1 to"]),
            ("LlamaForCausalLM", {"rope_scaling": ALPHA}, ["rope_type", "dynamic"]),
            ("Ministral3ForCausalLM", {"rope_scaling": WARM | {"mscale": 0.5}}, ["mscale_all_dim", "both 1"]),
            ("Qwen3ForCausalLM", {"rope_scaling": WARM}, ["mscale", "not supported"]),
            ("Cohere2ForCausalLM", {k: v for k, v in COHERE.items() if k != "logit_scale"}, ["logit_scale", "missing"]),
            ("LlamaForCausalLM", {"logit_scale": 0.25}, ["logit_scale", "0.25"]),
            ("Gemma2ForCausalLM", {"attn_logit_softcapping": -1.0}, ["attn_logit_softcapping", "from 0 to"]),
            ("Gemma2ForCausalLM", {"final_logit_softcapping": "no"}, ["final_logit_softcapping"]),
            ("Gemma3ForCausalLM", {"final_logit_softcapping": 30.0}, ["final_logit_softcapping", "30"]),
            ("Exaone4ForCausalLM", {"sliding_window": 0}, ["sliding_window", "from 1"]),
            ("Exaone4ForCausalLM", WINDOWS | {"sliding_window_pattern": "LGL"}, ["'LGL'", "one G after"]),
            ("Exaone4ForCausalLM", WINDOWS | {"sliding_window_pattern": ""}, ["one G after"]),
            ("Exaone4ForCausalLM", WINDOWS | {"sliding_window_pattern": 0}, ["sliding_window_pattern", "from 1"]),
            ("Exaone4ForCausalLM", {"layer_types": [FAR, NEAR]}, ["layer_types"]),
            ("Qwen3ForCausalLM", {"hadamard_config": "hadamard.json"}, ["hadamard_config"]),
        ):
            with self.subTest(kind=kind, config=config):
                folder = Folder(self.dir / "hostile", kind, **config).write()
                result = common.tern("convert", folder, self.dir / "hostile.gguf")
                self.assert_one_line_error(result, contains=["config.json", *words])
                self.assertFalse((self.dir / "hostile.gguf").exists())

    def test_types_of_floats(self):
        for dtype, name in (("BF16", "bf16"), ("F16", "f16"), ("F32", "f32")):
            model = Folder(self.dir / "floats", dtype=dtype)
            _, said = self.agree(model)
            self.assertEqual({t["outcome"] for t in said.values()} - {"copied"}, {"lossless"})
            self.assertEqual(said["blk.0.ffn_up.weight"]["to"], name)
            self.assertEqual(said["blk.0.attn_norm.weight"]["to"], "f32")

    def test_order_of_rows(self):
        """q and k, as the picture of the format has it: rows 0 1 2 3 become 0 2 1 3 for d = 4."""
        model = Folder(
            self.dir / "rows", hidden_size=8, num_attention_heads=2, num_key_value_heads=1
        )
        name = "model.layers.1.self_attn.{}_proj.weight"
        for letter, rows in (("q", 8), ("k", 4), ("v", 4)):
            model.tensors[name.format(letter)] = Stored(np.arange(rows)[:, None] + np.zeros((1, 8)))
        out, _ = self.convert(model, "--type", "f32")
        file = gguf_edit.read(out)
        for letter, rows in (("q", [0, 2, 1, 3, 4, 6, 5, 7]), ("k", [0, 2, 1, 3]), ("v", range(4))):
            seen = np.frombuffer(file.tensor(f"blk.1.attn_{letter}.weight").data, "<f4").reshape(
                -1, 8
            )
            self.assertEqual(seen[: len(rows), 0].tolist(), list(rows))

    # ---- ternary ----

    def test_modules_that_stay(self):
        """Matrices of modules_to_not_convert stay floats, by whole names, beginnings and ends; the head has to be there."""
        shape = {"hidden_size": 128, "intermediate_size": 256, "rope_theta": 500000.0}
        listed = ["lm_head", "model.layers.1", "mlp.down_proj", "model.layers.0.self_attn.k"]
        model = Folder(self.dir / "kept", "BitNetForCausalLM", weights="master", quantization_config=ONLINE | {"modules_to_not_convert": listed}, **shape)
        kept = [n for n in model.codes if n.startswith("model.layers.1.") or "down_proj" in n]
        for name in kept:
            del model.codes[name]
        _, said = self.agree(model, bound=1e-2)
        self.assertEqual({said[n]["to"] for n in ("blk.0.ffn_up.weight", "blk.0.attn_k.weight")}, {"i2_s"})
        self.assertEqual({said[n]["to"] for n in ("blk.0.ffn_down.weight", "blk.1.ffn_up.weight", "blk.1.attn_q.weight")}, {"bf16"})
        for wrong, word in (([], "lm_head"), (["model.layers.1"], "lm_head"), (["lm_head", "model.*"], "'model.*'"), (["lm_head", "*.down_proj"], "'*.down_proj'"), (["lm_head", 3], "plain name")):
            model.config["quantization_config"] = ONLINE | {"modules_to_not_convert": wrong}
            self.refused(model, "modules_to_not_convert", word)

    def test_bitnet_packed_and_master(self):
        """Both forms of 2B4T are converted; the packed one multiplies by its scale."""
        shape = {"hidden_size": 128, "intermediate_size": 256, "rope_theta": 500000.0}
        packed = Folder(
            self.dir / "packed",
            "BitNetForCausalLM",
            weights="packed",
            quantization_config=MULTIPLIES,
            **shape,
        )
        master = Folder(
            self.dir / "master",
            "BitNetForCausalLM",
            weights="master",
            quantization_config=ONLINE,
            **shape,
        )
        for model, origin in ((packed, "packed ternary"), (master, "ternarized floats")):
            _, said = self.agree(model, bound=1e-2)
            t = said["blk.0.ffn_up.weight"]
            self.assertEqual((t["from"], t["to"], t["outcome"]), (origin, "i2_s", "lossless"))
            self.check_codes(model)
        old = Folder(self.dir / "old", "BitnetForCausalLM", weights="master", **shape)
        for name in list(old.tensors):
            older = name.replace("attn_sub_norm", "inner_attn_ln").replace(
                "ffn_sub_norm", "ffn_layernorm"
            )
            old.tensors[older] = old.tensors.pop(name)
        out, _ = self.convert(old)
        self.assertEqual(gguf_edit.read(out).text("general.architecture"), "bitnet")

    def check_codes(self, model):
        """Every weight and every scale is right; q and k follow the heads' order."""
        file = gguf_edit.read(self.dir / "out.gguf")
        permuted = file.text("general.architecture") == "llama"
        for gguf_name, hf_name in hf_folder.LAYER.items():
            hf_name = f"model.layers.0.{hf_name}"
            if hf_name not in model.codes:
                continue
            codes, scale = model.codes[hf_name]
            if permuted and gguf_name[:6] in ("attn_q", "attn_k"):
                heads = codes.reshape(-1, 2, model.head_dim() // 2, codes.shape[1])
                codes = heads.swapaxes(1, 2).reshape(codes.shape)
            expected = bytes(hf_folder.i2_s_tensor("", codes, scale).raw)
            seen = file.tensor(f"blk.0.{gguf_name}")
            self.assertEqual((seen.kind, seen.data[: len(expected)]), (36, expected), gguf_name)

    def test_falcon_packed(self):
        """Falcon 3 1.58 bit and Falcon-E: llama, packed, divided by their scale, q and k reordered."""
        for tied in (False, True):
            model = Folder(
                self.dir / "falcon",
                weights="packed",
                quantization_config=PACKED,
                hidden_size=128,
                intermediate_size=256,
                head_dim=64,
                num_attention_heads=3,
                num_key_value_heads=1,
                tie_word_embeddings=tied,
            )
            self.agree(model, bound=1e-2)
            self.check_codes(model)
        self.agree(model, "--type", "i2_s", "--embedding-type", "f16", bound=1e-2)

    def test_packed_bytes(self):
        """The bytes that docs/formats.md shows, from a file to the rows that tern writes."""
        rows = np.array(
            [[-1, 0, 0, -1], [0, 0, 0, 1], [0, -1, 0, 0], [1, -1, -1, 0]]
            + [[0, 1, -1, -1], [0, 0, 1, 1], [1, 0, 0, 0], [-1, 0, 1, -1]]
        )
        self.assertEqual(hf_folder.pack(rows).tobytes().hex(" ", -4), "94614544 1951a126")
        model = Folder(
            self.dir / "packed",
            weights="packed",
            quantization_config=PACKED,
            hidden_size=4,
            intermediate_size=8,
            num_attention_heads=1,
            num_key_value_heads=1,
        )
        at = "model.layers.0.mlp.up_proj.weight"
        model.tensors[at] = Stored(
            np.frombuffer(bytes.fromhex("94614544 1951a126"), np.uint8).reshape(2, 4), "U8"
        )
        model.tensors[at + "_scale"] = Stored(np.array([0.5]))
        out, _ = self.convert(model, "--type", "f32")
        seen = np.frombuffer(gguf_edit.read(out).tensor("blk.0.ffn_up.weight").data, "<f4")
        self.assertEqual(seen[:32].reshape(8, 4).tolist(), (rows * 2.0).tolist())

    def test_scale_needs_its_meaning(self):
        model = Folder(
            self.dir / "packed",
            "BitNetForCausalLM",
            weights="packed",
            quantization_config=MULTIPLIES,
            hidden_size=128,
            intermediate_size=256,
        )
        del model.config["quantization_config"]
        self.refused(model, "weight_scale", "multiplies or divides")

    def test_ternarize(self):
        model = Folder(
            self.dir / "masters", weights="master", hidden_size=256, intermediate_size=512
        )
        result = tern("convert", model.write(), self.dir / "x.gguf", "--type", "i2_s")
        self.assert_one_line_error(result, contains=["blk.0.attn_q.weight", "bf16", "--force-ternary"])
        _, said = self.agree(model, "--ternarize", bound=1e-2)
        self.assertEqual(said["blk.1.attn_k.weight"]["outcome"], "lossless")
        _, said = self.convert(model, "--ternarize", "--type", "tq2_0")
        self.assertLess(said["blk.1.attn_k.weight"]["error"], 2**-11)

    # ---- files ----

    def test_several_files(self):
        model = Folder(self.dir / "parts")
        one = self.convert(model)[0].read_bytes()
        self.assertEqual(self.agree(model, files=3)[0].read_bytes(), one)
        (model.path / "model-00002-of-00003.safetensors").unlink()
        result = tern("convert", model.path, self.dir / "x.gguf")
        self.assert_one_line_error(result, contains=["model-00002-of-00003.safetensors"])

    def test_index(self):
        model = Folder(self.dir / "parts")
        path = model.write(2) / "model.safetensors.index.json"
        right = json.loads(path.read_text())
        name = "model.norm.weight"
        for wrong, words in (
            ({"weight_map": right["weight_map"] | {name: "../x.safetensors"}}, ["../x"]),
            (
                {"weight_map": right["weight_map"] | {name: "model-00001-of-00002.safetensors"}},
                [name],
            ),
            (
                {"weight_map": right["weight_map"] | {"other": "model-00001-of-00002.safetensors"}},
                ["other"],
            ),
            ({"weight_map": right["weight_map"] | {name: 7}}, ["weight_map"]),
            ({"weights": {}}, ["weight_map"]),
            ([], ["weight_map"]),
        ):
            with self.subTest(words=words):
                path.write_text(json.dumps(wrong))
                self.fails(model, *words)
        second = model.path / "model-00002-of-00002.safetensors"
        both = {name: model.tensors[name] for name in model.tensors}
        second.write_bytes(safetensors_bytes(both))
        path.write_text(json.dumps(right))
        self.fails(model, "is also in", "00001-of-00002")

    def test_refused_configurations(self):
        for change, words in (
            ({"architectures": ["GPT2LMHeadModel"]}, ["GPT2LMHeadModel", "llama, qwen2, qwen3"]),
            ({"architectures": None}, ["architectures", "missing"]),
            ({"hidden_size": "64"}, ["hidden_size", "integer"]),
            ({"hidden_size": None}, ["hidden_size", "missing"]),
            ({"num_hidden_layers": -1}, ["num_hidden_layers"]),
            ({"num_hidden_layers": 3}, ["model.layers.2.input_layernorm.weight", "missing"]),
            ({"num_hidden_layers": 1}, ["model.layers.1", "no place"]),
            ({"num_key_value_heads": 3}, ["num_key_value_heads"]),
            ({"vocab_size": 98}, ["embed_tokens", "97 x 64", "98 x 64"]),
            ({"rms_norm_eps": None}, ["rms_norm_eps"]),
            ({"hidden_act": "gelu"}, ["hidden_act", "gelu"]),
            ({"rope_scaling": {"rope_type": "dynamic", "factor": 4.0}}, ["dynamic", "yarn"]),
            ({"rope_scaling": YARN | {"factor": 0.5}}, ["rope_scaling", "impossible"]),
            ({"rope_scaling": YARN | {"mscale": 1.0}}, ["mscale", "yarn"]),
            ({"rope_scaling": LLAMA3 | {"factor": 0}}, ["rope_scaling", "impossible"]),
            ({"rope_scaling": {"rope_type": "linear"}}, ["factor", "missing"]),
            ({"partial_rotary_factor": 0.5}, ["partial_rotary_factor"]),
            ({"rope_parameters": {"partial_rotary_factor": 0.5}}, ["partial_rotary_factor"]),
            ({"use_sliding_window": True}, ["use_sliding_window"]),
            ({"sliding_window": 2}, ["sliding_window", "is 2"]),
            ({"sliding_window": 511, "use_sliding_window": None}, ["sliding_window", "511"]),
            ({"layer_types": ["full_attention", "sliding_attention"]}, ["layer_types"]),
            ({"num_local_experts": 8}, ["num_local_experts", "8"]),
            ({"is_causal": False}, ["is_causal", "false"]),
            ({"rope_interleaved": True}, ["rope_interleaved", "true"]),
            ({"logits_scaling": 0.5}, ["logits_scaling"]),
            ({"attention_multiplier": 0.5}, ["attention_multiplier"]),
            ({"final_logit_softcapping": 30.0}, ["final_logit_softcapping"]),
            ({"attention_chunk_size": 64}, ["attention_chunk_size"]),
            ({"rope_scaling": LLAMA3 | {"attention_factor": 1.5}}, ["attention_factor"]),
            ({"quantization_config": {"quant_method": "gptq"}}, ["quantization_config", "quantized by gptq", "GGUF"]),
            ({"quantization_config": PACKED}, ["q_proj", "BF16", "packed"]),
            ({"head_dim": 17}, ["head_dim", "odd"]),
            ({"tie_word_embeddings": False}, ["lm_head.weight", "missing"]),
        ):
            with self.subTest(change=change):
                model = Folder(self.dir / "bad", tie_word_embeddings=True)
                model.config |= change
                self.refused(model, *words)

    def test_neutral_configurations(self):
        """Published files have keys that say nothing new, or that a part is absent: they give the same model,
        silently."""
        model = Folder(self.dir / "neutral", tie_word_embeddings=True)
        expected = self.convert(model)[0].read_bytes()
        for change in (
            {"sliding_window": None, "use_sliding_window": False, "max_window_layers": 2},
            {"sliding_window": 4, "use_sliding_window": False},
            {"sliding_window": 512},
            {"layer_types": ["full_attention", "full_attention"], "is_causal": True},
            {"num_local_experts": 0, "logits_scaling": 1.0, "clip_qkv": None},
            {"_name_or_path": "x", "torch_dtype": "bfloat16", "pretraining_tp": 1},
            {"rope_interleaved": False, "is_llama_config": True, "use_cache": True},
        ):
            with self.subTest(change=change):
                model.config |= change
                (self.dir / "out.gguf").unlink(missing_ok=True)
                result = tern("convert", model.write(), self.dir / "out.gguf")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertNotIn(b"not known", result.stderr)
                self.assertEqual((self.dir / "out.gguf").read_bytes(), expected)
                for key in change:
                    del model.config[key]

    def test_unknown_configuration(self):
        """Keys that tern has not heard of are named in one line."""
        model = Folder(self.dir / "unknown", tie_word_embeddings=True)
        model.config |= {"vortex": 3, "evil\u001b[2J": [1, {"a": 2}], "x" * 500: 1}
        result = tern("convert", model.write(), self.dir / "unknown.gguf")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count(b"not known"), 1)
        self.assertIn(b"config.json: not known, and left out: vortex, evil?[2J", result.stderr)

    def test_refused_tensors(self):
        model = Folder(self.dir / "bad")
        bias = "model.layers.0.self_attn.o_proj.bias"
        model.tensors[bias] = Stored(np.ones(64))
        self.refused(model, bias, "no place", "llama")
        del model.tensors[bias]
        model.tensors["model.norm.weight"] = Stored(np.zeros(64), "I64")
        self.refused(model, "model.norm.weight", "I64")
        model.tensors["model.norm.weight"] = Stored(np.full(64, np.nan))
        self.refused(model, "output_norm.weight", "not finite")

    def test_left_out(self):
        """Tables that repeat the configuration are left out, and so are integers that nobody needs, with a warning."""
        model = Folder(self.dir / "more", tie_word_embeddings=True)
        expected = self.convert(model)[0].read_bytes()
        model.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = Stored(np.ones(8))
        model.tensors["lm_head.weight"] = model.tensors["model.embed_tokens.weight"]
        model.tensors["model.position_ids"] = Stored(np.arange(4), "I64")
        result = tern("convert", model.write(), self.dir / "out.gguf", "--force")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"model.position_ids (I64) has no place", result.stderr)
        self.assertEqual((self.dir / "out.gguf").read_bytes(), expected)

    def test_a_head_of_its_own(self):
        """BitNet's graph has no head of its own: it is dropped where it equals the embedding, whatever the folder says
        about tying."""
        shape = {"hidden_size": 128, "intermediate_size": 256, "weights": "master"}
        model = Folder(self.dir / "own", "BitNetForCausalLM", tie_word_embeddings=False, **shape)
        self.refused(model, "lm_head.weight", "not the embedding", "bitnet-b1.58")
        model.tensors["lm_head.weight"] = model.tensors["model.embed_tokens.weight"]
        same = self.agree(model)[0].read_bytes()
        model.config["tie_word_embeddings"] = True
        self.assertEqual(self.agree(model)[0].read_bytes(), same)
        model.tensors["lm_head.weight"] = Stored(np.zeros((97, 128)))
        self.refused(model, "lm_head.weight", "not the embedding", "bitnet-b1.58")

    def test_packed_codes(self):
        model = Folder(
            self.dir / "packed",
            weights="packed",
            quantization_config=PACKED,
            hidden_size=128,
            intermediate_size=256,
        )
        name = "model.layers.1.mlp.up_proj.weight"
        model.tensors[name].array[3, 5] |= 0x30
        self.refused(model, name, "code 3", f"byte {3 * 128 + 5}")
        model.tensors[name].array[3, 5] = 0
        model.tensors[name + "_scale"] = Stored(np.zeros(1))
        self.refused(model, name + "_scale", "is 0")
        del model.tensors[name + "_scale"]
        self.refused(model, name + "_scale", "missing")

    def test_broken_files(self):
        model = Folder(self.dir / "bad")
        path = model.write() / "model.safetensors"
        data = path.read_bytes()
        for size in (0, 7, 8, 100, len(data) - 1):
            path.write_bytes(data[:size])
            self.fails(model, "model.safetensors")
        path.unlink()
        self.fails(model, "model.safetensors", "No such file")
        for text in ("", "{", "[]", "{}", "\0"):
            (model.path / "config.json").write_text(text)
            self.fails(model, "config.json")

    # ---- tokenizers ----

    MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("\u0120", "w"), ("1", "2")]
    ADDED = {"<|end|>": True, "<|user|>": True, "<tool>": False}
    TEXT = "hello world 1234 <|user|> hello<tool>\u00e9 it's\n"

    def tokenizer(self, config=None, vocab_size=270, **kwargs):
        """A folder with a byte-level tokenizer, converted; standard error of that."""
        model = Folder(self.dir / "words", vocab_size=vocab_size)
        folder, out = model.write(), self.dir / "out.gguf"
        made = hf_folder.byte_tokenizer(self.MERGES, self.ADDED, **kwargs)
        (folder / "tokenizer.json").write_text(json.dumps(made))
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"eos_token": "<|end|>", "chat_template": "{{ 'x' }}"} | (config or {}))
        )
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [262, 263]}))
        return folder, out, tern("convert", folder, out, "--force")

    def test_byte_level_tokenizer(self):
        folder, out, result = self.tokenizer()
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        for options in ((), ("--special",), ("--add-special",)):
            ids = [
                tern_text("tokenize", *where, "-p", self.TEXT, *options)
                for where in (("--tokenizer", folder / "tokenizer.json"), ("-m", out))
            ]
            self.assertEqual(*ids)
        self.assertIn("259", ids[0].split())  # hello
        file = gguf_edit.read(out)
        self.assertEqual(file.text("tokenizer.ggml.model"), "gpt2")
        self.assertEqual(file.text("tokenizer.ggml.pre"), "gpt-2")
        self.assertEqual(file.text("tokenizer.chat_template"), "{{ 'x' }}")
        self.assertEqual(file.number("tokenizer.ggml.eos_token_id"), 262)
        self.assertEqual(file.number("tokenizer.ggml.eot_token_id"), 263)
        types = np.frombuffer(file["tokenizer.ggml.token_type"][1][12:], "<i4")
        self.assertEqual(types[260:].tolist(), [1, 1, 3, 3, 4, 5, 5, 5, 5, 5])
        self.assertIn(b"[PAD269]", file["tokenizer.ggml.tokens"][1])
        self.assertIn(b"hell o", file["tokenizer.ggml.merges"][1])

    def test_what_gguf_cannot_say(self):
        """No key can express the composing of characters: tokenizer.json lies in the file, and decides."""
        folder, out, result = self.tokenizer(normalizer={"type": "NFC"})
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"holds tokenizer.json", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        held = gguf_edit.read(out).text("tokenizer.huggingface.json")
        self.assertEqual(json.loads(held), json.loads((folder / "tokenizer.json").read_text()))
        self.assertNotIn("\n", held)
        ids = [tern_text("tokenize", "-m", out, "-p", text) for text in ("e\u0301", "\u00e9")]
        self.assertEqual(*ids)
        out.unlink()
        _, out, result = self.tokenizer(vocab_size=264)
        self.assert_one_line_error(result, contains=["tokenizer.json", "265 tokens", "264"])
        self.assertFalse(out.exists())

    def test_tokens_without_embedding(self):
        """Control tokens beyond the embedding are left out, unless a text ends or begins with them."""
        self.ADDED = {"<|end|>": True, "<tool>": False, "<picture>": True}
        folder, out, result = self.tokenizer(vocab_size=264)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"control tokens that the model has no embedding for", result.stderr)
        self.assertNotIn(b"<picture>", gguf_edit.read(out)["tokenizer.ggml.tokens"][1])
        at = ("--tokenizer", folder / "tokenizer.json"), ("-m", out)
        ids = [tern_text("tokenize", *where, "-p", "hello <tool> 12", "--special") for where in at]
        self.assertEqual(*ids)
        out.unlink()
        for config, size in (({"eos_token": "<picture>"}, 264), ({}, 263)):
            _, out, result = self.tokenizer(config, vocab_size=size)
            self.assert_one_line_error(result, contains=["tokenizer.json", "265 tokens", str(size)])
            self.assertFalse(out.exists())

    def test_no_tokenizer(self):
        result = tern("convert", Folder(self.dir / "mute").write(), self.dir / "out.gguf", "--force")
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"no tokenizer.json", result.stderr)

    def test_metadata(self):
        out, _ = self.convert(Folder(self.dir / "llama", head_dim=32, rope_theta=1e6))
        file = gguf_edit.read(out)
        for key, value in {
            "block_count": 2,
            "embedding_length": 64,
            "feed_forward_length": 96,
            "attention.head_count": 4,
            "attention.head_count_kv": 2,
            "attention.key_length": 32,
            "attention.value_length": 32,
            "rope.dimension_count": 32,
            "rope.freq_base": 1e6,
            "context_length": 512,
            "vocab_size": 97,
        }.items():
            self.assertEqual(file.number(f"llama.{key}"), value, key)
        self.assertEqual(file.number("general.file_type"), 32)
        self.assertEqual(file.text("general.name"), "llama")

    def test_recommended_sampling(self):
        """The settings that generation_config.json recommends go into the metadata; wrong ones are left out."""
        model = Folder(self.dir / "sampled")
        beside = self.dir / "sampled" / "generation_config.json"
        out = self.dir / "sampled.gguf"
        model.write()
        beside.write_text('{"temperature": 0.5, "top_k": 20, "top_p": 0.75, "repetition_penalty": 1.25}')
        tern_text("convert", model.path, out, "--json")
        file = gguf_edit.read(out)
        for key, value in {"temp": 0.5, "top_k": 20, "top_p": 0.75, "penalty_repeat": 1.25}.items():
            self.assertEqual(file.number(f"general.sampling.{key}"), value)
        self.assertNotIn("general.sampling.min_p", file)
        beside.write_text('{"temperature": -1, "top_k": 20}')
        result = tern("convert", model.path, self.dir / "unsampled.gguf", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("temperature is -1", result.stderr.decode())
        self.assertNotIn("general.sampling.top_k", gguf_edit.read(self.dir / "unsampled.gguf"))


if __name__ == "__main__":
    common.main()
