# SPDX-License-Identifier: Apache-2.0
"""Hugging Face transformers on PyTorch, on the processor, in float32.

llama and qwen: transformers reads the GGUF file, expands it to float32 and makes its tokenizer of it;
activations stay floats. bitnet-b1.58: transformers has the model but does not read such files, so
their matrices are read by the oracle's decoder (tests/oracle) and put into BitNetForCausalLM, whose
linear layers quantize activations to int8 as the model wants.
"""

import os

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # its quantizers are otherwise compiled on every start
os.environ["TQDM_DISABLE"] = "1"  # no progress bars

import numpy as np
import torch
import transformers
from container import Container
from tensors import row_scales
from transformers.integrations.bitnet import AutoBitLinear

from gguf_tokenizer import byte_level_bpe

NORM_PAIRING = ("llama",)  # files of these turn pairs (2i, 2i + 1), transformers (i, i + half)


class Engine:
    name = "transformers"
    version = f"{transformers.__version__} (torch {torch.__version__})"

    def __init__(self, path, threads):
        torch.set_num_threads(threads)
        self.file = Container(path)
        self.architecture = self.file.get("general.architecture")
        if self.architecture == "bitnet-b1.58":
            self.settings = (
                "BitNetForCausalLM, float32, ternary weights with their scale, activations int8 a token"
            )
            self.model = bitnet(self.file)
            self.tokenize = byte_level_bpe(self.file)
        else:
            self.settings = "weights expanded to float32, activations float32"
            self.path = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
            config = transformers.AutoConfig.from_pretrained(**self.path)
            head_dim = config.hidden_size // config.num_attention_heads  # which it takes for granted
            key = f"{self.architecture}.attention.key_length"
            config.head_dim = self.file.get(key, head_dim)
            self.model = transformers.AutoModelForCausalLM.from_pretrained(
                config=config, dtype=torch.float32, attn_implementation="eager", **self.path
            )
            self.tokenize = self._tokenize
        self.model.eval()

    def _tokenize(self, text):
        return transformers.AutoTokenizer.from_pretrained(**self.path)(text)["input_ids"]

    @torch.inference_mode()
    def _forward(self, ids, past):
        result = self.model(torch.tensor([ids]), past_key_values=past, use_cache=True)
        self.past = result.past_key_values
        return result.logits[0].numpy()

    def start(self, ids):
        return self._forward(ids, None)

    def step(self, token):
        return self._forward([token], self.past)[-1]

    def cache(self):
        keys = np.stack([layer.keys[0].numpy() for layer in self.past.layers])
        values = np.stack([layer.values[0].numpy() for layer in self.past.layers])
        if self.architecture in NORM_PAIRING:
            halves = np.split(keys, 2, axis=-1)
            keys = np.stack(halves, axis=-1).reshape(keys.shape)
        return keys, values


# ---- bitnet-b1.58 ------------------------------------------------------------------------------------

VECTORS = {
    "attn_norm": "input_layernorm",
    "attn_sub_norm": "self_attn.attn_sub_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_sub_norm": "mlp.ffn_sub_norm",
}
MATRICES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def bitnet_config(file):
    def get(key):
        return file.get(f"bitnet-b1.58.{key}")

    return transformers.BitNetConfig(
        vocab_size=file.tensor("token_embd.weight").rows,
        hidden_size=get("embedding_length"),
        intermediate_size=get("feed_forward_length"),
        num_hidden_layers=get("block_count"),
        num_attention_heads=get("attention.head_count"),
        num_key_value_heads=get("attention.head_count_kv"),
        max_position_embeddings=get("context_length"),
        rms_norm_eps=float(get("attention.layer_norm_rms_epsilon")),
        rope_parameters={"rope_type": "default", "rope_theta": float(get("rope.freq_base"))},
        hidden_act="relu2",
        tie_word_embeddings=True,
        attn_implementation="eager",
    )


def ternary(tensor):
    """(-1, 0, 1 as float32[rows, cols], the scale of the matrix)."""
    weights, scales = row_scales(tensor.kind, tensor.raw, tensor.rows, tensor.cols)
    if np.ptp(scales) != 0:
        raise ValueError(f"{tensor.name}: rows have different scales")
    return np.asarray(weights, dtype=np.float32), float(np.max(scales))


def replace_linear(parent, name, tensor):
    weights, scale = ternary(tensor)
    linear = AutoBitLinear(tensor.cols, tensor.rows, bias=False, dtype=torch.float32)
    linear.weight.data = torch.from_numpy(weights)
    linear.weight_scale.data = torch.tensor([scale], dtype=torch.float32)
    setattr(parent, name, linear)


def bitnet(file):
    model = transformers.BitNetForCausalLM(bitnet_config(file)).to(torch.float32)

    def floats(name):
        return torch.from_numpy(file.tensor(f"{name}.weight").values().astype(np.float32))

    model.model.embed_tokens.weight.data = floats("token_embd")
    model.model.norm.weight.data = floats("output_norm")[0]
    model.tie_weights()
    for i, layer in enumerate(model.model.layers):
        for ours, theirs in VECTORS.items():
            layer.get_submodule(theirs).weight.data = floats(f"blk.{i}.{ours}")[0]
        for ours, theirs in MATRICES.items():
            parent, name = theirs.rsplit(".", 1)
            replace_linear(layer.get_submodule(parent), name, file.tensor(f"blk.{i}.{ours}.weight"))
    if file.unread:
        raise ValueError(f"unknown tensors: {sorted(file.unread)[:5]}")
    return model
