# SPDX-License-Identifier: Apache-2.0
"""tern convert of models with experts: a folder has them one by one, a file one tensor for all of a layer."""

import subprocess
import sys
import unittest

import common
import gguf_edit
from common import comma, tern, tern_text
from convert_case import TOKENS, ConvertTest

try:
    import numpy as np
    from hf_folder import OUTER, Folder, Stored
except ImportError:
    np = None

PACKED = {"quant_method": "bitnet"}
GPT_OSS = {
    "hidden_size": 96,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 307,
    "max_position_embeddings": 512,
    "num_local_experts": 5,
    "num_experts_per_tok": 2,
    "experts_per_token": 2,
    "initial_context_length": 64,
    "sliding_window": 6,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "rms_norm_eps": 1e-5,
    "swiglu_limit": 7.0,
    "hidden_act": "silu",
    "attention_bias": True,
    "tie_word_embeddings": False,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 150000.0,
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 64,
    },
}
OSS_LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "attn_sinks.weight": "self_attn.sinks",
    "ffn_gate_inp.weight": "mlp.router.weight",
    "ffn_gate_inp.bias": "mlp.router.bias",
    **{
        f"attn_{ours}.{kind}": f"self_attn.{theirs}_proj.{kind}"
        for ours, theirs in (("q", "q"), ("k", "k"), ("v", "v"), ("output", "o"))
        for kind in ("weight", "bias")
    },
}


def mxfp4_bytes(path, name):
    """Blocks as folders have them: [experts, rows, blocks, 17], the scale first, then pairs of codes."""
    t = gguf_edit.read(path).tensor(name)
    cols, rows, n = t.ne[:3]
    raw = np.frombuffer(t.data, np.uint8, count=n * rows * cols // 32 * 17).reshape(n, rows, cols // 32, 17)
    codes = np.concatenate([raw[..., 1:] & 15, raw[..., 1:] >> 4], -1)  # of columns in order
    return np.concatenate([raw[..., :1], codes[..., 0::2] | codes[..., 1::2] << 4], -1)

PEAK = """
import resource, subprocess, sys
subprocess.check_call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@unittest.skipUnless(np, "needs numpy and gguf")
class ConvertExperts(ConvertTest):
    def test_experts(self):
        """Experts that a folder has one by one are one tensor; the router's weights are normed where it says so."""
        for kind, config in (
            ("Qwen3MoeForCausalLM", {"head_dim": 32, "moe_intermediate_size": 48}),
            ("Qwen3MoeForCausalLM", {"moe_intermediate_size": 32, "norm_topk_prob": False}),
            ("Qwen3MoeForCausalLM", {"decoder_sparse_step": 1, "mlp_only_layers": [], "num_experts_per_tok": 6}),
            ("Qwen2MoeForCausalLM", {"moe_intermediate_size": 32, "norm_topk_prob": False}),
            ("Qwen2MoeForCausalLM", {"shared_expert_intermediate_size": 32}),
            ("OlmoeForCausalLM", {"norm_topk_prob": False, "clip_qkv": None}),
            ("OlmoeForCausalLM", {"tie_word_embeddings": True, "num_experts": 1, "num_experts_per_tok": 1}),
        ):
            with self.subTest(kind=kind, config=config):
                self.agree(Folder(self.dir / "experts", kind, **config), files=3)
        model = Folder(self.dir / "experts", "OlmoeForCausalLM")
        del model.config["norm_topk_prob"]  # which then is false
        model.config["num_local_experts"] = model.config["num_experts"]  # newer folders' name
        out, said = self.agree(model)
        names = [f"model.layers.1.mlp.experts.{e}.up_proj.weight" for e in range(6)]
        expected = b"".join(model.tensors[name].array.tobytes() for name in names)
        seen = gguf_edit.read(out).tensor("blk.1.ffn_up_exps.weight")
        self.assertEqual((list(seen.ne)[:3], seen.data[: len(expected)]), ([64, 96, 6], expected))
        self.assertEqual(said["blk.1.ffn_up_exps.weight"]["outcome"], "lossless")

    def test_formats_of_experts(self):
        """Experts get the format that was asked for, as other matrices do; the router stays in its floats."""
        model = Folder(self.dir / "experts", "Qwen3MoeForCausalLM", moe_intermediate_size=96)
        plain, again = self.dir / "plain.gguf", self.dir / "again.gguf"
        self.agree(model)[0].rename(plain)
        for kind in ("q8_0", "q4_0"):
            out, said = self.convert(model, "--type", kind)
            self.assertEqual(said["blk.0.ffn_down_exps.weight"]["to"], kind)
            self.assertEqual(said["blk.0.ffn_gate_inp.weight"]["to"], "bf16")
            tern_text("quantize", plain, again, "--type", kind, "--force")
            tensors = [{t.name: t.data for t in gguf_edit.read(path).tensors} for path in (out, again)]
            self.assertEqual(*tensors)

    def test_memory_of_experts(self):
        """Experts leave memory one by one: the peak is far below the tensor that they make."""
        shape = {"hidden_size": 512, "intermediate_size": 512, "num_hidden_layers": 1, "num_experts": 64}
        model = Folder(self.dir / "large", "OlmoeForCausalLM", dtype="F16", **shape)
        out = self.dir / "large.gguf"
        # a process of its own: what a parent has in memory would count
        said = subprocess.check_output(
            [sys.executable, "-S", "-c", PEAK, *map(str, common.command("convert", model.write(), out, "--threads", "1"))]
        )
        peak = 1024 * int(said.split()[-1])
        print(f"peak {peak / 2**20:.0f} MiB, {out.stat().st_size / 2**20:.0f} MiB written", flush=True)
        self.assertLess(peak, 48 << 20)

    def test_refused_experts(self):
        one = "model.layers.1.mlp.experts.3.up_proj.weight"
        other = {"num_experts": 7, "num_experts_per_tok": 2}
        for kind, change, words in (
            ("Qwen3MoeForCausalLM", other, ["model.layers.0.mlp.gate.weight", "6 x 64", "7 x 64"]),
            ("Qwen2MoeForCausalLM", {"shared_expert_intermediate_size": None}, ["shared_expert_intermediate_size"]),
            ("Qwen3MoeForCausalLM", {"shared_expert_intermediate_size": 64}, ["shared_expert_intermediate_size", "is 64"]),
            ("Qwen3MoeForCausalLM", {"num_experts": 5}, ["mlp.gate.weight", "5 x 64"]),
            ("Qwen3MoeForCausalLM", {"num_experts": 1025}, ["num_experts", "is 1025, 1024 are the limit"]),
            ("Qwen3MoeForCausalLM", {"num_local_experts": 1025}, ["num_local_experts", "is 1025"]),
            ("Qwen2MoeForCausalLM", {"shared_expert_intermediate_size": 0}, ["shared_expert_inter", "from 1"]),
            ("Qwen3MoeForCausalLM", {"num_experts": 0}, ["num_experts", "from 1"]),
            ("Qwen3MoeForCausalLM", {"num_experts": None}, ["num_experts"]),
            ("Qwen3MoeForCausalLM", {"num_experts_per_tok": 7}, ["num_experts_per_tok", "is 7 of 6"]),
            ("Qwen3MoeForCausalLM", {"norm_topk_prob": 1}, ["norm_topk_prob", "neither"]),
            ("Qwen3MoeForCausalLM", {"decoder_sparse_step": 2}, ["decoder_sparse_step", "is 2"]),
            ("Qwen3MoeForCausalLM", {"mlp_only_layers": [0]}, ["mlp_only_layers"]),
            ("Qwen3MoeForCausalLM", {"moe_intermediate_size": 64}, ["experts.0.gate_proj", "96 x 64", "64 x 64"]),
            ("OlmoeForCausalLM", {"clip_qkv": 8.0}, ["clip_qkv", "is 8"]),
            ("OlmoeForCausalLM", {"quantization_config": PACKED}, ["quantization_config", "experts"]),
            ("LlamaForCausalLM", {"num_experts": 8}, ["num_experts", "is 8"]),
        ):
            with self.subTest(kind=kind, change=change):
                model = Folder(self.dir / "bad", kind)
                model.config |= change
                self.refused(model, *words)
        for change, words in (
            (None, ["is missing"]),
            (Stored(np.zeros((96, 63))), ["96 x 63", "96 x 64"]),
            (Stored(np.zeros((64, 96))), ["64 x 96"]),
            (Stored(np.zeros((96, 64)), "F32"), ["F32", "one type"]),
            (Stored(np.zeros((96, 64)), "I64"), ["I64", "floats"]),
            (Stored(np.full((96, 64), np.nan)), None),
        ):
            with self.subTest(words=words):
                model = Folder(self.dir / "bad", "Qwen3MoeForCausalLM")
                del model.tensors[one]
                if change is not None:
                    model.tensors[one] = change
                self.refused(model, *([one, *words] if words else ["blk.1.ffn_up_exps.weight", "not finite"]))
        model = Folder(self.dir / "bad", "OlmoeForCausalLM")
        model.tensors["model.layers.0.mlp.experts.6.up_proj.weight"] = Stored(np.zeros((96, 64)))
        self.refused(model, "experts.6.up_proj", "no place", "olmoe")
        result = tern("convert", model.path, self.dir / "x.gguf", "--ternarize")
        self.assert_one_line_error(result, contains=["--ternarize", "experts"])

    def gpt_oss(self, blocks):
        """A folder with the weights of the synthetic gpt-oss as floats, and the file of floats; experts may be MXFP4."""
        source, floats = common.synth("gpt-oss-tiny", self.dir), self.dir / "floats.gguf"
        tern_text("quantize", source, floats, *"--type f32 --embedding-type f32 --output-type f32 --force".split())
        file, model = gguf_edit.read(floats), Folder(self.dir / "oss", "OlmoeForCausalLM")
        model.config, model.tensors = dict(GPT_OSS), {}
        model.config["architectures"] = ["GptOssForCausalLM"]

        def values(name):
            t = file.tensor(name)
            return np.frombuffer(t.data, "<f4", count=int(np.prod(t.ne))).reshape([n for n in t.ne if n > 1][::-1])

        def both(of, axis):  # gates and what they multiply in turns
            gate, up = of("gate"), of("up")
            return np.stack([gate, up], axis + 1).reshape(*gate.shape[:axis], -1, *gate.shape[axis + 1 :])

        for ours, theirs in OUTER.items():
            model.tensors[theirs] = Stored(values(ours), "F32")
        for n in range(4):
            at, experts = f"model.layers.{n}.", f"model.layers.{n}.mlp.experts."
            for ours, theirs in OSS_LAYER.items():
                model.tensors[at + theirs] = Stored(values(f"blk.{n}.{ours}"), "F32")
            for stem, of in (
                ("gate_up", lambda what, kind, axis: both(lambda w: what(f"blk.{n}.ffn_{w}_exps.{kind}"), axis)),
                ("down", lambda what, kind, axis: what(f"blk.{n}.ffn_down_exps.{kind}")),
            ):
                model.tensors[f"{experts}{stem}_proj_bias"] = Stored(of(values, "bias", 1), "F32")
                if not blocks:
                    model.tensors[f"{experts}{stem}_proj"] = Stored(of(values, "weight", 1).swapaxes(1, 2), "F32")
                    continue
                stored = of(lambda name: mxfp4_bytes(source, name), "weight", 1)
                model.tensors[f"{experts}{stem}_proj_blocks"] = Stored(stored[..., 1:], "U8")
                model.tensors[f"{experts}{stem}_proj_scales"] = Stored(stored[..., 0], "U8")
        if blocks:
            model.config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
        return model, source, floats

    def hash(self, path, *options):
        return tern_text("logits", "-m", path, "--tokens", comma(TOKENS), "--all", "--sha256", *options).strip()

    def test_experts_in_one_tensor(self):
        """gpt-oss: a folder of a file's weights, gates in turns with the others, makes a file with the same logits."""
        model, _, floats = self.gpt_oss(blocks=False)
        self.assertEqual(self.hash(self.convert(model)[0]), self.hash(floats))
        out, said = self.convert(model, "--type", "q8_0")
        self.assertEqual((said["blk.1.ffn_up_exps.weight"]["to"], said["blk.1.ffn_up_exps.bias"]["to"]), ("q8_0", "f32"))
        self.assertEqual(len(self.hash(out)), 64)

    def test_blocks_of_experts(self):
        """Blocks of MXFP4 keep every code and scale; as floats they are the values that the file's blocks stand for."""
        model, source, floats = self.gpt_oss(blocks=True)
        out, said = self.convert(model)
        for name in (f"blk.{n}.ffn_{w}_exps.weight" for n in range(4) for w in ("gate", "up", "down")):
            self.assertEqual(gguf_edit.read(out).tensor(name).data, gguf_edit.read(source).tensor(name).data, name)
            self.assertEqual((said[name]["to"], said[name]["outcome"]), ("mxfp4", "lossless"))
        self.assertEqual(self.hash(self.convert(model, "--type", "f32")[0]), self.hash(floats))

    def test_int4_of_experts(self):
        """INT4 of all experts lies in one tensor: products with floats are those with the same weights as floats."""
        for preset, options in (("gpt-oss-tiny", ["row", "--int4-zero-points"]), ("qwen3moe-tiny", ["64"])):
            with self.subTest(preset=preset):
                folder, floats = self.dir / preset, self.dir / f"{preset}.gguf"
                tern_text("convert", common.synth(preset, self.dir), folder, *"--to iebin --type int4 --int4-group".split(), *options)
                tern_text("quantize", folder, floats, *"--type f32 --embedding-type f32 --output-type f32".split())
                made = self.hash(folder, "--act-prec", "fp32")
                self.assertEqual(made, self.hash(floats, "--act-prec", "fp32"))
                codes = self.hash(folder)
                self.assertNotEqual(codes, made)
                self.assertEqual(self.hash(folder, "--isa", "scalar", "--threads", "2"), codes)

    def test_refused_gpt_oss(self):
        model, _, _ = self.gpt_oss(blocks=True)
        first, plain = "model.layers.0.mlp.experts.", dict(model.config)
        rope = plain["rope_parameters"]
        for change, words in (
            ({"swiglu_limit": 6.0}, ["swiglu_limit", "not 7"]),
            ({"swiglu_alpha": 1.5}, ["swiglu_alpha", "not 1.702"]),
            ({"hidden_act": "gelu"}, ["hidden_act", "gelu"]),
            ({"rope_parameters": rope | {"truncate": True}}, ["truncate", "not false"]),
            ({"rope_parameters": {k: v for k, v in rope.items() if k != "truncate"}}, ["truncate"]),
            ({"layer_types": ["full_attention", "sliding_attention"] * 2}, ["layer_types"]),
            ({"sliding_window": None}, ["sliding_window"]),
            ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, ["gptq"]),
            ({"num_local_experts": 4, "num_experts_per_tok": 2}, ["router.weight", "4 x 96"]),
        ):
            with self.subTest(change=change):
                model.config = plain | change
                self.refused(model, *words)
        model.config = plain
        for name, change, words in (
            ("gate_up_proj_bias", None, ["is missing"]),
            ("down_proj_bias", Stored(np.zeros((5, 95)), "F32"), ["is not 5 x 96"]),
            ("down_proj_blocks", Stored(np.zeros((5, 96, 2, 15)), "U8"), ["is not 5 x 96 x 2 x 16"]),
            ("down_proj_blocks", Stored(np.zeros((5, 96, 2, 16)), "F32"), ["F32", "U8"]),
            ("gate_up_proj_scales", None, ["is missing"]),
            ("gate_up_proj_scales", Stored(np.full((5, 128, 3), 255), "U8"), ["scale 255", "byte 0"]),
        ):
            with self.subTest(name=name, words=words):
                kept = model.tensors.pop(first + name)
                if change is not None:
                    model.tensors[first + name] = change
                self.refused(model, first + name, *words)
                model.tensors[first + name] = kept

    def test_many_experts_that_are_not_there(self):
        """A count that the files cannot fill takes only the memory that the files stand for."""
        model = Folder(self.dir / "bad", "OlmoeForCausalLM", num_experts=1, num_experts_per_tok=1)
        model.config["num_experts"] = 1024
        for n in range(2):
            model.tensors[f"model.layers.{n}.mlp.gate.weight"] = Stored(np.zeros((1024, 64)))
        self.refused(model, "fewer tensors than experts")


if __name__ == "__main__":
    common.main()
