# SPDX-License-Identifier: Apache-2.0
"""Makes small Hugging Face folders with random weights, and says what such a model computes.

The oracle's forward pass runs on the folder's own tensors in the order in which they lie there,
with halves of heads turned against each other, as the library that such folders are made for does.
"""

import json
import struct
import sys
from pathlib import Path

import common
import numpy as np

sys.path.insert(0, str(common.ROOT / "tests" / "oracle"))
import forward
import tensors
from container import Tensor

F32, I2_S = 0, 36
DTYPES = {"F32": np.float32, "F16": np.float16, "U8": np.uint8, "F8_E4M3": np.uint8, "I64": np.int64}

LAYER = {
    "attn_norm.weight": "input_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_q.bias": "self_attn.q_proj.bias",
    "attn_k.bias": "self_attn.k_proj.bias",
    "attn_v.bias": "self_attn.v_proj.bias",
    "attn_output.bias": "self_attn.o_proj.bias",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "attn_sub_norm.weight": "self_attn.attn_sub_norm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
    "ffn_sub_norm.weight": "mlp.ffn_sub_norm.weight",
    "attn_qkv.weight": "self_attn.qkv_proj.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
    "ffn_gate_inp.weight": "mlp.gate.weight",
    "ffn_gate_inp.bias": "mlp.router.bias",
    "ffn_gate_inp_shexp.weight": "mlp.shared_expert_gate.weight",
    "ffn_gate_shexp.weight": "mlp.shared_expert.gate_proj.weight",
    "ffn_up_shexp.weight": "mlp.shared_expert.up_proj.weight",
    "ffn_down_shexp.weight": "mlp.shared_expert.down_proj.weight",
}
OUTER = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
OTHER_NAMES = {
    "Glm4ForCausalLM": {
        "post_attention_norm.weight": "post_self_attn_layernorm.weight",
        "post_ffw_norm.weight": "post_mlp_layernorm.weight",
    },
    "HunYuanDenseV1ForCausalLM": {
        "attn_q_norm.weight": "self_attn.query_layernorm.weight",
        "attn_k_norm.weight": "self_attn.key_layernorm.weight",
    },
}
GEMMA = {
    "hidden_activation": "gelu_pytorch_tanh",
    "query_pre_attn_scalar": 16,
    "rope_local_base_freq": 100.0,
    "sliding_window": 5,
    "sliding_window_pattern": 2,
}
CAPS = {"attn_logit_softcapping": 3.0, "final_logit_softcapping": 2.0}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": True}  # of folders that have some
MATRICES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
NEIGHBOURS = ("Ernie4_5ForCausalLM", "Glm4ForCausalLM", "Cohere2ForCausalLM")  # whose heads lie as they do in files
ARCHITECTURES = {
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "MistralForCausalLM": "llama",
    "Phi3ForCausalLM": "phi3",
    "Olmo2ForCausalLM": "olmo2",
    "Qwen2MoeForCausalLM": "qwen2moe",
    "Qwen3MoeForCausalLM": "qwen3moe",
    "OlmoeForCausalLM": "olmoe",
    "MiniCPMForCausalLM": "minicpm",
    "GraniteForCausalLM": "granite",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3",
    "SmolLM3ForCausalLM": "smollm3",
    "SeedOssForCausalLM": "seed_oss",
    "Ernie4_5ForCausalLM": "ernie4_5",
    "Exaone4ForCausalLM": "exaone4",
    "Glm4ForCausalLM": "glm4",
    "Cohere2ForCausalLM": "cohere2",
    "HunYuanDenseV1ForCausalLM": "hunyuan-dense",
    "Ministral3ForCausalLM": "mistral3",
    "BitNetForCausalLM": "bitnet-b1.58",
    "BitnetForCausalLM": "bitnet",
}


# ---- files --------------------------------------------------------------------------------------


def to_bf16(x):
    """The upper halves of floats, rounded to nearest even."""
    bits = np.asarray(x, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Stored:
    """An array as a file holds it."""

    def __init__(self, array, dtype="BF16"):
        array = np.asarray(array)
        self.dtype, self.shape = dtype, list(array.shape)
        self.array = to_bf16(array) if dtype == "BF16" else array.astype(DTYPES[dtype])

    def values(self):
        exact = from_bf16(self.array) if self.dtype == "BF16" else self.array
        return exact.astype(np.float64)


def safetensors_bytes(stored, header=None, data=None):
    """Returns the bytes of a file of {name: Stored}; header and data replace the right ones."""
    entries, blob = {"__metadata__": {"format": "pt"}}, b""
    for name, t in stored.items():
        raw = t.array.tobytes()
        entries[name] = {
            "dtype": t.dtype,
            "shape": t.shape,
            "data_offsets": [len(blob), len(blob) + len(raw)],
        }
        blob += raw
    text = json.dumps(entries).encode() if header is None else header
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + (blob if data is None else data)


def pack(codes):
    """Weights -1, 0, 1 as packed ternary: rows a quarter of the matrix apart share a byte."""
    quarters = (codes + 1).astype(np.uint8).reshape(4, -1, codes.shape[1])
    return sum(q << 2 * i for i, q in enumerate(quarters)).astype(np.uint8)


def ternary(w):
    """Returns float weights as BitNet rounds them: codes, and the scale that they stand for."""
    scale = np.float32(1) / np.float32(max(np.abs(w.astype(np.float64)).mean(), 1e-5))
    return np.clip(np.rint(w.astype(np.float32) * scale), -1, 1).astype(int), 1 / scale


# ---- a tokenizer ---------------------------------------------------------------------------------


def byte_alphabet():
    """The characters that stand for bytes in byte-level vocabularies, by byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


def byte_tokenizer(merges, added, normalizer=None):
    """A tokenizer.json in the manner of GPT-2; added: {text: special}."""
    tokens = byte_alphabet() + [left + right for left, right in merges]
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": len(tokens) + i, "content": text, "special": special}
            | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
            for i, (text, special) in enumerate(added.items())
        ],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "decoder": {"type": "ByteLevel"},
        "model": {
            "type": "BPE",
            "vocab": {text: i for i, text in enumerate(tokens)},
            "merges": [" ".join(pair) for pair in merges],
        },
    }


# ---- a model ------------------------------------------------------------------------------------


class Folder:
    """Tensors by name and a config.json; `weights` is plain, master or packed."""

    def __init__(
        self, path, kind="LlamaForCausalLM", seed=1, weights="plain", dtype="BF16", **config
    ):
        self.path, self.weights, self.dtype = Path(path), weights, dtype
        self.kind = kind
        self.random = np.random.default_rng(seed)
        bitnet = kind.lower().startswith("bitnet")
        self.gemma = kind.startswith("Gemma")
        self.config = {
            "architectures": [kind],
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": 97,
            "max_position_embeddings": 512,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "hidden_act": "relu2" if kind == "BitNetForCausalLM" else "silu",
            "tie_word_embeddings": bitnet,
            **(GEMMA if self.gemma else {}),
            **(CAPS if kind == "Gemma2ForCausalLM" else {}),
            **(EXPERTS if "moe" in kind.lower() else {}),
            **({"shared_expert_intermediate_size": 64} if kind == "Qwen2MoeForCausalLM" else {}),
            **config,
        }
        if kind == "Gemma2ForCausalLM":
            del self.config["rope_local_base_freq"]
        if self.gemma:  # as published folders are
            del self.config["hidden_act"]
            if "tie_word_embeddings" not in config:
                del self.config["tie_word_embeddings"]
        self.bitnet = bitnet
        self.tensors = {}
        self.codes = {}  # of ternary matrices: (-1, 0, 1; scale)
        self._fill()

    def number(self, key):
        return self.config[key]

    def head_dim(self):
        return self.config.get("head_dim") or self.number("hidden_size") // self.number(
            "num_attention_heads"
        )

    def _normal(self, *shape, sd=None):
        return self.random.standard_normal(shape) * (sd or 1.5 / np.sqrt(shape[-1]))

    def _matrix(self, name, rows, cols):
        w = self._normal(rows, cols)
        if self.weights == "packed":
            codes, scale = ternary(w)
            scale = from_bf16(to_bf16(np.array([scale])))  # as it is stored
            if self.config["quantization_config"].get("linear_class") == "autobitlinear":
                self.tensors[name + "_scale"] = Stored(scale)
            else:
                stored = Stored(1 / scale)
                self.tensors[name + "_scale"] = stored
                scale = 1 / stored.values()
            self.codes[name] = codes, np.float32(scale[0])
            self.tensors[name] = Stored(pack(codes), "U8")
            return
        self.tensors[name] = Stored(w, self.dtype)
        if self.weights == "master":
            self.codes[name] = ternary(self.tensors[name].values())

    def _norm(self, name, n):
        self.tensors[name] = Stored((not self.gemma) + 0.2 * self.random.standard_normal(n), self.dtype)

    def _layer(self, n):
        at = f"model.layers.{n}."
        width, ff, dim = (
            self.number("hidden_size"),
            self.number("intermediate_size"),
            self.head_dim(),
        )
        q, kv = self.number("num_attention_heads") * dim, self.number("num_key_value_heads") * dim
        first = "post_feedforward" if self.kind in ("Olmo2ForCausalLM", "Exaone4ForCausalLM") else "input"
        self._norm(f"{at}{first}_layernorm.weight", width)
        if self.kind.startswith("Olmo"):
            self._norm(at + "self_attn.q_norm.weight", q)
            self._norm(at + "self_attn.k_norm.weight", kv)
        if self.gemma:
            self._norm(at + "pre_feedforward_layernorm.weight", width)
            self._norm(at + "post_feedforward_layernorm.weight", width)
        if self.kind != "Cohere2ForCausalLM":
            self._norm(at + "post_attention_layernorm.weight", width)
        joined = self.kind in ("Phi3ForCausalLM", "Glm4ForCausalLM")
        if self.kind == "Glm4ForCausalLM":
            self._norm(at + "post_self_attn_layernorm.weight", width)
            self._norm(at + "post_mlp_layernorm.weight", width)
        attention = [("q", q, width), ("k", kv, width), ("v", kv, width)]
        for name, rows, cols in [*([("qkv", q + 2 * kv, width)] if self.kind == "Phi3ForCausalLM" else attention), ("o", width, q)]:
            self._matrix(f"{at}self_attn.{name}_proj.weight", rows, cols)
            biased = self.kind.startswith("Qwen2") or self.kind in ("SeedOssForCausalLM", "Glm4ForCausalLM") or self.config.get("attention_bias")
            if name != "o" and biased:
                bias = 0.5 * self.random.standard_normal(rows)
                self.tensors[f"{at}self_attn.{name}_proj.bias"] = Stored(bias, self.dtype)
        if self.kind.startswith(("Qwen3", "Exaone4", "Gemma3")):
            self._norm(at + "self_attn.q_norm.weight", dim)
            self._norm(at + "self_attn.k_norm.weight", dim)
        if self.kind.startswith("HunYuan"):
            self._norm(at + "self_attn.query_layernorm.weight", dim)
            self._norm(at + "self_attn.key_layernorm.weight", dim)
        if self.bitnet:
            self._norm(at + "self_attn.attn_sub_norm.weight", q)
            self._norm(at + "mlp.ffn_sub_norm.weight", ff)
        if "num_experts" in self.config:
            self._experts(at + "mlp.", width)
            return
        feed_forward = [("gate_up", 2 * ff, width)] if joined else [("gate", ff, width), ("up", ff, width)]
        for name, rows, cols in [*feed_forward, ("down", width, ff)]:
            self._matrix(f"{at}mlp.{name}_proj.weight", rows, cols)

    def _experts(self, at, width):
        ff = self.config.get("moe_intermediate_size") or self.number("intermediate_size")
        self._matrix(at + "gate.weight", self.number("num_experts"), width)
        for e in range(self.number("num_experts")):
            for name, rows, cols in [("gate", ff, width), ("up", ff, width), ("down", width, ff)]:
                self._matrix(f"{at}experts.{e}.{name}_proj.weight", rows, cols)
        if self.kind == "Qwen2MoeForCausalLM":
            ff = self.number("shared_expert_intermediate_size")
            self._matrix(at + "shared_expert_gate.weight", 1, width)
            for name, rows, cols in [("gate", ff, width), ("up", ff, width), ("down", width, ff)]:
                self._matrix(f"{at}shared_expert.{name}_proj.weight", rows, cols)

    def _fill(self):
        vocab, width = self.number("vocab_size"), self.number("hidden_size")
        self.tensors["model.embed_tokens.weight"] = Stored(
            self._normal(vocab, width, sd=0.5), self.dtype
        )
        for n in range(self.number("num_hidden_layers")):
            self._layer(n)
        self._norm("model.norm.weight", width)
        if not self.config.get("tie_word_embeddings", self.gemma):
            self.tensors["lm_head.weight"] = Stored(self._normal(vocab, width, sd=0.3), self.dtype)

    def write(self, files=1):
        """Writes the folder; with several files also an index."""
        self.path.mkdir(exist_ok=True)
        for old in self.path.iterdir():
            old.unlink()
        (self.path / "config.json").write_text(json.dumps(self.config))
        names, index = list(self.tensors), {}
        for i in range(files):
            name = (
                f"model-{i + 1:05}-of-{files:05}.safetensors" if files > 1 else "model.safetensors"
            )
            part = names[len(names) * i // files : len(names) * (i + 1) // files]
            (self.path / name).write_bytes(safetensors_bytes({n: self.tensors[n] for n in part}))
            index |= dict.fromkeys(part, name)
        if files > 1:
            text = json.dumps({"metadata": {"total_size": 1}, "weight_map": index})
            (self.path / "model.safetensors.index.json").write_text(text)
        return self.path

    # ---- what it computes ----

    def logits(self, tokens, kv="f32"):
        architecture = ARCHITECTURES[self.kind]
        name = "folder"
        known = forward.ARCHITECTURES[architecture]
        forward.ARCHITECTURES[name] = known if self.kind in NEIGHBOURS else known._replace(pairing="neox")
        try:
            return forward.Model(_Reader(self, name)).logits(tokens, kv)
        finally:
            del forward.ARCHITECTURES[name]


class _Reader:
    """A folder in the place of a GGUF file: the oracle's names, the folder's tensors."""

    def __init__(self, folder, name):
        self.folder, self.unread = folder, set()
        config = folder.config
        self.keys = {
            "general.architecture": name,
            f"{name}.block_count": config["num_hidden_layers"],
            f"{name}.attention.head_count": config["num_attention_heads"],
            f"{name}.attention.head_count_kv": config["num_key_value_heads"],
            f"{name}.embedding_length": config["hidden_size"],
            f"{name}.attention.key_length": folder.head_dim(),
            f"{name}.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
            f"{name}.rope.freq_base": self._rope("full_attention")["rope_theta"],
        }
        if folder.kind == "Glm4ForCausalLM":
            part = config.get("partial_rotary_factor", 0.5)
            self.keys[f"{name}.rope.dimension_count"] = int(part * folder.head_dim())
        if folder.kind == "Cohere2ForCausalLM":
            self.keys[f"{name}.attention.layer_norm_epsilon"] = config["layer_norm_eps"]
            self.keys[f"{name}.logit_scale"] = config["logit_scale"]
        if folder.kind in ("Exaone4ForCausalLM", "Cohere2ForCausalLM"):
            self.keys[f"{name}.attention.sliding_window_pattern"] = 3
        if folder.kind in ("MistralForCausalLM", "Phi3ForCausalLM", "Exaone4ForCausalLM", "Cohere2ForCausalLM"):
            self.keys[f"{name}.attention.sliding_window"] = config.get("sliding_window") or 0
        if "num_experts" in config:
            self.keys[f"{name}.expert_count"] = config["num_experts"]
            self.keys[f"{name}.expert_used_count"] = config["num_experts_per_tok"]
            self.keys[f"{name}.expert_weights_norm"] = config.get("norm_topk_prob", False)
        if folder.kind == "GraniteForCausalLM":
            self.keys |= {
                f"{name}.embedding_scale": config["embedding_multiplier"],
                f"{name}.residual_scale": config["residual_multiplier"],
                f"{name}.logit_scale": config["logits_scaling"],
                f"{name}.attention.scale": config["attention_multiplier"],
            }
        if folder.kind == "MiniCPMForCausalLM":
            self.keys |= {
                f"{name}.embedding_scale": config["scale_emb"],
                f"{name}.residual_scale": config["scale_depth"] / config["num_hidden_layers"] ** 0.5,
                f"{name}.logit_scale": config["hidden_size"] / config["dim_model_base"],
            }
        if folder.gemma:
            near = config.get("rope_parameters", {}).get("sliding_attention", {})
            types = config.get("layer_types", ["full_attention"])
            period = config.get("_sliding_window_pattern", config.get("sliding_window_pattern", 6))
            self.keys |= {
                f"{name}.attention.sliding_window": config["sliding_window"],
                f"{name}.attention.sliding_window_pattern": len(types) if len(types) > 1 else period,
                f"{name}.attention.scale": config["query_pre_attn_scalar"] ** -0.5,
                f"{name}.rope.freq_base_swa": near.get("rope_theta", config.get("rope_local_base_freq")),
            }
        if folder.kind == "Gemma2ForCausalLM":
            del self.keys[f"{name}.rope.freq_base_swa"]
            self.keys |= {f"{name}.{key}": config[key] or 0.0 for key in CAPS}
        self.scaling = self._rope("full_attention") if "rope_parameters" in config else config.get("rope_scaling") or {}
        self._scale(name, config)

    def _scale(self, name, config):
        if self.scaling.get("rope_type") == "dynamic":
            d = self.folder.head_dim()
            self.keys[f"{name}.rope.freq_base"] *= self.scaling["alpha"] ** (d / (d - 2))
        if self.scaling.get("rope_type") == "linear":
            self.keys[f"{name}.rope.scaling.factor"] = self.scaling["factor"]
        if self.scaling.get("rope_type") == "yarn":
            self.keys[f"{name}.rope.scaling.yarn_log_multiplier"] = self.scaling.get("mscale", 0.0)
            self.keys[f"{name}.attention.temperature_scale"] = self.scaling.get("llama_4_scaling_beta", 0.0)
            self.keys[f"{name}.rope.scaling.type"] = "yarn"
            self.keys[f"{name}.rope.scaling.factor"] = self.scaling["factor"]
            original = self.scaling["original_max_position_embeddings"]
            self.keys[f"{name}.rope.scaling.original_context_length"] = original
            self.keys[f"{name}.context_length"] = config["max_position_embeddings"]

    def _rope(self, kind):
        """Returns the settings with the base and the scaling of such layers; newer folders keep them by kind."""
        rope = self.folder.config.get("rope_parameters", self.folder.config)
        return rope.get(kind, rope)

    def get(self, key, default=None):
        return self.keys.get(key, default)

    def _name(self, name):
        if name.startswith("rope_"):
            return name
        if name in OUTER:
            return OUTER[name]
        _, layer, rest = name.split(".", 2)
        if self.folder.kind in OTHER_NAMES and rest in OTHER_NAMES[self.folder.kind]:
            return f"model.layers.{layer}.{OTHER_NAMES[self.folder.kind][rest]}"
        if rest == "ffn_norm.weight" and self.folder.gemma:
            return f"model.layers.{layer}.pre_feedforward_layernorm.weight"
        joined = f"model.layers.{layer}.mlp.gate_up_proj.weight"
        if rest == "ffn_up.weight" and joined in self.folder.tensors:
            return joined
        return f"model.layers.{layer}.{LAYER[rest]}"

    def has(self, name):
        if name == "rope_freqs.weight":
            return self.scaling.get("rope_type") == "llama3"
        if name.endswith(("_norm_in.weight", "_exps.bias", ".scale")):  # no folder's names of them are known
            return False
        return self._name(name) in self.folder.tensors

    def vector(self, name):
        if name == "rope_freqs.weight":
            return self._divisors()
        return self.folder.tensors[self._name(name)].values() + self.folder.gemma

    def _divisors(self):
        """Llama 3's scaling, by wavelengths."""
        s, dim = self.scaling, self.folder.head_dim()
        base = self.folder.config["rope_theta"]
        context = s["original_max_position_embeddings"]
        out = []
        for i in range(dim // 2):
            length = 2 * np.pi * base ** (2 * i / dim)
            if length < context / s["high_freq_factor"]:
                out.append(1.0)
            elif length > context / s["low_freq_factor"]:
                out.append(s["factor"])
            else:
                smooth = (context / length - s["low_freq_factor"]) / (
                    s["high_freq_factor"] - s["low_freq_factor"]
                )
                out.append(1 / ((1 - smooth) / s["factor"] + smooth))
        return np.array(out)

    def _experts(self, name):
        _, layer, rest = name.split(".", 2)
        which = f"{rest.split('_')[1]}_proj.weight"
        one = [
            self.folder.tensors[f"model.layers.{layer}.mlp.experts.{e}.{which}"].values().astype("<f4")
            for e in range(self.folder.number("num_experts"))
        ]
        rows, cols = one[0].shape
        raw = np.concatenate(one).view(np.uint8).reshape(-1)
        return Tensor(name, F32, rows * len(one), cols, raw, len(one))

    def tensor(self, name):
        if "_exps" in name:
            return self._experts(name)
        hf = self._name(name)
        if hf in self.folder.codes:
            return i2_s_tensor(name, *self.folder.codes[hf])
        values = self.folder.tensors[hf].values().astype("<f4")
        rows, cols = values.shape
        return Tensor(name, F32, rows, cols, values.view(np.uint8).reshape(-1))


def i2_s_tensor(name, codes, scale):
    rows, cols = codes.shape
    units = (codes + 1).astype(np.uint8).reshape(-1, 4, 32)
    packed = units[:, 0] << 6 | units[:, 1] << 4 | units[:, 2] << 2 | units[:, 3]
    trailer = np.frombuffer(struct.pack("<f", scale) + bytes(28), np.uint8)
    return Tensor(name, I2_S, rows, cols, np.concatenate([packed.reshape(-1), trailer]))


assert tensors.I2_S == I2_S


def write_example(path):
    """A ternary model with a tokenizer, for tests that only need some folder."""
    folder = Folder(path, "BitNetForCausalLM", weights="packed", vocab_size=270, quantization_config={"quant_method": "bitnet"}).write()
    made = byte_tokenizer([("h", "e"), ("l", "l"), ("he", "ll")], {"<|end|>": True, "<|user|>": True})
    (folder / "tokenizer.json").write_text(json.dumps(made))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>"}))


if __name__ == "__main__":
    write_example(sys.argv[1])
