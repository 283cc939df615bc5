# SPDX-License-Identifier: Apache-2.0
"""tern convert of folders with gated delta nets: each tensor in the order and form that files have."""

import unittest

import common
import gguf_edit
from common import tern_text
from convert_case import ConvertTest

try:
    import numpy as np
    from hf_folder import Stored, safetensors_bytes
except ImportError:
    np = None

import json

WIDTH, FF, HEADS, KV, DIM, VOCAB = 64, 96, 4, 2, 32, 97
KEYS, STATES, SIDE, TAPS = 2, 6, 16, 4  # heads of q and k, states, their sides, positions of the convolution
INNER, CHANNELS = STATES * SIDE, (2 * KEYS + STATES) * SIDE
CONFIG = {
    "architectures": ["Qwen3_5ForCausalLM"], "hidden_size": WIDTH, "intermediate_size": FF, "num_hidden_layers": 4,
    "num_attention_heads": HEADS, "num_key_value_heads": KV, "head_dim": DIM, "vocab_size": VOCAB,
    "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "hidden_act": "silu", "tie_word_embeddings": False,
    "attn_output_gate": True, "mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1,
    "layer_types": ["linear_attention", "full_attention"] * 2, "linear_conv_kernel_dim": TAPS,
    "linear_key_head_dim": SIDE, "linear_value_head_dim": SIDE, "linear_num_key_heads": KEYS,
    "linear_num_value_heads": STATES,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.25,
                        "mrope_section": [2, 1, 1], "mrope_interleaved": True},
}  # fmt: skip
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": FF,
           "shared_expert_intermediate_size": FF}  # fmt: skip
FEED = {"mlp.gate_proj": (FF, WIDTH), "mlp.up_proj": (FF, WIDTH), "mlp.down_proj": (WIDTH, FF)}
ATTENTION = {
    "self_attn.q_proj": (2 * HEADS * DIM, WIDTH), "self_attn.k_proj": (KV * DIM, WIDTH),
    "self_attn.v_proj": (KV * DIM, WIDTH), "self_attn.o_proj": (WIDTH, HEADS * DIM),
    "self_attn.q_norm": (DIM,), "self_attn.k_norm": (DIM,),
}  # fmt: skip
NET = {
    "linear_attn.in_proj_qkv": (CHANNELS, WIDTH), "linear_attn.in_proj_z": (INNER, WIDTH),
    "linear_attn.in_proj_a": (STATES, WIDTH), "linear_attn.in_proj_b": (STATES, WIDTH),
    "linear_attn.conv1d": (CHANNELS, 1, TAPS), "linear_attn.norm": (SIDE,), "linear_attn.out_proj": (WIDTH, INNER),
}  # fmt: skip
NORMS = {"input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,)}
FILE = {
    "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "ssm_norm": "linear_attn.norm",
}  # fmt: skip


def turns(x, side, axis=0):
    """Heads of a group beside each other become heads of all groups in turn."""
    x = np.moveaxis(x, axis, 0)
    grouped = x.reshape(KEYS, STATES // KEYS, side, *x.shape[1:])
    return np.moveaxis(grouped.swapaxes(0, 1).reshape(x.shape), 0, axis)


def expected(t, layer):
    """The tensors of a layer as a file must have them."""
    at = f"model.layers.{layer}."
    get = {name[len(at) :].removesuffix(".weight"): v.values() for name, v in t.items() if name.startswith(at)}
    want = {f"{file}.weight": get[hf] for file, hf in FILE.items() if hf in get}
    want["attn_norm.weight"] = 1 + get["input_layernorm"]
    want["post_attention_norm.weight"] = 1 + get["post_attention_layernorm"]
    if layer % 2 == 1:
        return want | {f"attn_{x}_norm.weight": 1 + get[f"self_attn.{x}_norm"] for x in "qk"}
    net = {name.removeprefix("linear_attn."): v for name, v in get.items()}
    first = 2 * KEYS * SIDE
    for file, hf in (("attn_qkv.weight", "in_proj_qkv"), ("ssm_conv1d.weight", "conv1d")):
        x = net[hf].reshape(CHANNELS, -1)
        want[file] = np.concatenate([x[:first], turns(x[first:], SIDE)])
    want["attn_gate.weight"] = turns(net["in_proj_z"], SIDE)
    want["ssm_alpha.weight"], want["ssm_beta.weight"] = turns(net["in_proj_a"], 1), turns(net["in_proj_b"], 1)
    want["ssm_a"], want["ssm_dt.bias"] = -np.exp(turns(net["A_log"], 1)), turns(net["dt_bias"], 1)
    want["ssm_out.weight"] = turns(net["out_proj"], SIDE, axis=1)
    return want


@unittest.skipUnless(np, "needs numpy and gguf")
class ConvertDeltas(ConvertTest):
    def made(self, **config):
        random = np.random.default_rng(7)
        tensors = {}

        def add(name, shape):
            tensors[name] = Stored(0.2 * random.standard_normal(shape), "F32")

        add("model.embed_tokens.weight", (VOCAB, WIDTH))
        add("lm_head.weight", (VOCAB, WIDTH))
        add("model.norm.weight", (WIDTH,))
        add("mtp.fc.weight", (WIDTH, 2 * WIDTH))
        for layer in range(4):
            at = f"model.layers.{layer}."
            for name, shape in (NORMS | FEED | (ATTENTION if layer % 2 else NET)).items():
                add(f"{at}{name}.weight", shape)
            if layer % 2 == 0:
                add(at + "linear_attn.A_log", (STATES,))
                add(at + "linear_attn.dt_bias", (STATES,))
        path = self.dir / "folder"
        path.mkdir(exist_ok=True)
        (path / "config.json").write_text(json.dumps({k: v for k, v in (CONFIG | config).items() if v is not None}))
        (path / "model.safetensors").write_bytes(safetensors_bytes(tensors))
        return path, tensors

    def test_tensors(self):
        """Heads of values change their order, norms get their 1, rates their exponential, taps their shape."""
        path, tensors = self.made()
        out = self.dir / "out.gguf"
        tern_text("convert", path, out)
        file = gguf_edit.read(out)
        seen = {}
        for t in file.tensors:  # the last of which may be followed by padding
            seen[t.name] = np.frombuffer(t.data, "<f4")[: np.prod(t.ne)].reshape(t.ne[::-1])
        for layer in range(4):
            for name, want in expected(tensors, layer).items():
                with self.subTest(layer=layer, tensor=name):
                    got = seen.pop(f"blk.{layer}.{name}")
                    self.assertEqual(got.shape, want.shape)
                    self.assertLess(np.abs(got - want).max(), 1e-7)
        self.assertEqual(sorted(seen), ["output.weight", "output_norm.weight", "token_embd.weight"])
        small = self.dir / "small.gguf"  # taps stay floats in any format
        tern_text("convert", path, small, "--type", "q8_0")
        kinds = {t.name: t.kind for t in gguf_edit.read(small).tensors}
        self.assertEqual((kinds["blk.0.ssm_conv1d.weight"], kinds["blk.0.ssm_out.weight"]), (0, 8))

    def changed(self, tensors, **config):
        """The tensors of the file that a folder of such tensors becomes."""
        path = self.dir / "folder"
        path.mkdir(exist_ok=True)
        (path / "config.json").write_text(json.dumps(CONFIG | EXPERTS | config))
        (path / "model.safetensors").write_bytes(safetensors_bytes(tensors))
        tern_text("convert", path, self.dir / "changed.gguf", "--force")
        file = gguf_edit.read(self.dir / "changed.gguf")
        return {t.name: np.frombuffer(t.data, "<f4")[: np.prod(t.ne)].reshape(t.ne[::-1]) for t in file.tensors}

    def with_experts(self):
        """Tensors whose layers have experts in one tensor, and the gate and both halves of each layer's."""
        _, tensors = self.made()
        tensors = {name: t for name, t in tensors.items() if ".mlp." not in name}
        random = np.random.default_rng(8)
        shapes = {"gate.weight": (6, WIDTH), "experts.gate_up_proj": (6, 2 * FF, WIDTH),
                  "experts.down_proj": (6, WIDTH, FF), "shared_expert_gate.weight": (1, WIDTH)}  # fmt: skip
        shapes |= {f"shared_expert.{x.removeprefix('mlp.')}.weight": shape for x, shape in FEED.items()}
        for layer in range(4):
            for name, shape in shapes.items():
                tensors[f"model.layers.{layer}.mlp.{name}"] = Stored(0.2 * random.standard_normal(shape), "F32")
        return tensors

    def test_experts(self):
        """Experts of a layer in one tensor become three: gates, what they multiply, and what takes both."""
        tensors = self.with_experts()
        seen = self.changed(tensors, architectures=["Qwen3_5MoeForCausalLM"])
        for layer in range(4):
            stack = tensors[f"model.layers.{layer}.mlp.experts.gate_up_proj"].values()
            down = tensors[f"model.layers.{layer}.mlp.experts.down_proj"].values()
            for name, want in (("gate", stack[:, :FF]), ("up", stack[:, FF:]), ("down", down)):
                np.testing.assert_array_equal(seen[f"blk.{layer}.ffn_{name}_exps.weight"], want, name)
        for name, shape, words in (
            ("experts.gate_up_proj", (6, FF, WIDTH), ["gate_up_proj", "6 x 192 x 64"]),
            ("experts.down_proj", (5, WIDTH, FF), ["down_proj", "6 x 64 x 96"]),
        ):
            other = tensors | {f"model.layers.0.mlp.{name}": Stored(np.zeros(shape), "F32")}
            (self.dir / "folder" / "model.safetensors").write_bytes(safetensors_bytes(other))
            result = common.tern("convert", self.dir / "folder", self.dir / "x.gguf")
            self.assert_one_line_error(result, contains=words)

    def test_grouped(self):
        """Of Qwen3-Next one matrix holds q, k, v and gates by heads: it becomes two, and the order of heads stays."""
        tensors, nets = self.with_experts(), {}
        random = np.random.default_rng(9)
        each = STATES // KEYS
        for layer in (0, 2):
            at = f"model.layers.{layer}.linear_attn."
            for name in ("in_proj_qkv", "in_proj_z", "in_proj_a", "in_proj_b"):
                del tensors[f"{at}{name}.weight"]
            heads = random.standard_normal((KEYS, 2 * SIDE + 2 * each * SIDE, WIDTH))  # q, k, v, gates of each
            rates = random.standard_normal((2 * STATES, WIDTH))
            tensors[at + "in_proj_qkvz.weight"] = Stored(heads.reshape(-1, WIDTH), "F32")
            tensors[at + "in_proj_ba.weight"] = Stored(rates, "F32")
            nets[layer] = heads.astype(np.float32), rates.astype(np.float32)
        seen = self.changed(tensors, architectures=["Qwen3NextForCausalLM"])
        for layer, (heads, rates) in nets.items():
            q, k, v, z = np.split(heads, [SIDE, 2 * SIDE, (2 + each) * SIDE], axis=1)
            mixed = np.concatenate([x.reshape(-1, WIDTH) for x in (q, k, v)])
            at = f"model.layers.{layer}.linear_attn."
            for name, want in (
                ("attn_qkv.weight", mixed),
                ("attn_gate.weight", z.reshape(-1, WIDTH)),
                ("ssm_ba.weight", rates),
                ("ssm_out.weight", tensors[at + "out_proj.weight"].values()),
                ("ssm_dt.bias", tensors[at + "dt_bias"].values()),
            ):
                np.testing.assert_array_equal(seen[f"blk.{layer}.{name}"], want, name)

    def test_refused(self):
        """Sizes that do not fit, and layers in another order, are refused by their key."""
        for change, words in (
            ({"linear_value_head_dim": 32}, ["linear_value_head_dim"]),
            ({"linear_num_value_heads": 5}, ["linear_num_value_heads", "multiple"]),
            ({"linear_conv_kernel_dim": None}, ["linear_conv_kernel_dim", "missing"]),
            ({"layer_types": ["full_attention", "linear_attention"] * 2}, ["layer_types", "linear_attention"]),
            ({"layer_types": ["linear_attention"] * 4}, ["layer_types", "no full_attention"]),
            ({"layer_types": None, "full_attention_interval": 4}, ["layers.1."]),
            ({"attn_output_gate": False}, ["attn_output_gate", "false"]),
            ({"linear_conv_kernel_dim": 3}, ["conv1d", "x 1 x 3"]),
        ):
            with self.subTest(change=change):
                path, _ = self.made(**change)
                result = common.tern("convert", path, self.dir / "x.gguf")
                self.assert_one_line_error(result, contains=words)


if __name__ == "__main__":
    common.main()
