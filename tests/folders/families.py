# SPDX-License-Identifier: Apache-2.0
"""Small models with random weights of every family that tern converts, as transformers makes and saves them."""

import os

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # before torch: BitNet's layers would be compiled

import numpy as np
import safetensors.numpy
import torch
import transformers
import transformers.utils.quantization_config
from transformers.integrations import bitnet

SHAPE = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 10000.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32, "rope_theta": 500000.0}  # fmt: skip
WARM = YARN | {"original_max_position_embeddings": 8, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}
MOE = {"num_experts": 6, "num_experts_per_tok": 2}
OSS = {"head_dim": 32, "intermediate_size": 96, "num_hidden_layers": 4, "sliding_window": 9, "num_local_experts": 6,
       "num_experts_per_tok": 2, "rope": YARN | {"factor": 4.0, "truncate": False, "rope_theta": 150000.0}}  # fmt: skip
GRANITE = {"embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 8.0, "attention_multiplier": 0.1}
GEMMA = {"head_dim": 16, "sliding_window": 9, "query_pre_attn_scalar": 16, "sliding_window_pattern": 2,
         "layer_types": ["sliding_attention", "full_attention"]}  # fmt: skip
WIDE = {"hidden_size": 128, "intermediate_size": 256}  # rows of a multiple of 128, as i2_s needs them
BERT = {"num_key_value_heads": None, "type_vocab_size": 2}
ONLINE = {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "online"}
NORMED = ONLINE | {"use_rms_norm": True, "rms_norm_eps": 1e-6}

# name: class of the model without its ending, tokenizer, settings, changes of the folder
FAMILIES = {
    "llama": ("Llama", "llama3", {"tie_word_embeddings": True}, {}),
    "llama 3 scaling": ("Llama", "llama3", {"rope": LLAMA3, "sharded": True}, {}),
    "llama 2, legacy": ("Llama", "legacy", {}, {}),
    "llama 2, first": ("Llama", "first", {}, {}),
    "llama, own class of tokenizer": ("Llama", "own", {}, {}),
    "mistral": ("Mistral", "always", {"sliding_window": 9, "head_dim": 16}, {}),
    "mistral, nfkc": ("Mistral", "nfkc", {"sliding_window": None}, {}),
    "qwen2": ("Qwen2", "qwen", {}, {}),
    "qwen2, unnamed rules": ("Qwen2", "unnamed", {"tie_word_embeddings": True}, {}),
    "qwen3": ("Qwen3", "qwen", {"head_dim": 32}, {}),
    "qwen3, yarn": ("Qwen3", "qwen", {"head_dim": 32, "rope": YARN}, {}),
    "qwen3, yarn by hand": ("Qwen3", "qwen", {"head_dim": 32}, {"rope_scaling": YARN}),
    "qwen3, head of its own": ("Qwen3", "qwen", {"head_dim": 32}, {"tie_word_embeddings": True}),
    "qwen3, norms before matrices": ("Qwen3", "qwen", {"head_dim": 32, "bitnet": NORMED} | WIDE, {}),
    "phi3": ("Phi3", "phi3", {"pad_token_id": 0}, {}),
    "olmo2": ("Olmo2", "word", {}, {}),
    "olmoe": ("Olmoe", "gpt2", MOE, {}),
    "qwen2moe": ("Qwen2Moe", "qwen", MOE | {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 48}, {}),
    "qwen3moe": ("Qwen3Moe", "qwen", MOE | {"head_dim": 16, "moe_intermediate_size": 32, "norm_topk_prob": True}, {}),
    "gpt-oss": ("GptOss", "gpt2", OSS, {}),
    "gpt-oss, blocks": ("GptOss", "gpt2", OSS | {"blocks": True}, {"quantization_config": {"quant_method": "mxfp4"}}),
    "granite": ("Granite", "digits", GRANITE, {}),
    "gemma2": ("Gemma2", "gemma", GEMMA, {}),
    "gemma3": ("Gemma3", "gemma", GEMMA, {}),
    "smollm3": ("SmolLM3", "llama3", {"num_hidden_layers": 5, "pad_token_id": 0}, {}),
    "seed_oss": ("SeedOss", "gpt2", {"head_dim": 24}, {}),
    "ernie4_5": ("Ernie4_5", "legacy", {"head_dim": 24}, {}),
    "glm4": ("Glm4", "gpt2", {"head_dim": 24}, {}),
    "hunyuan": ("HunYuanDenseV1", "gpt2", {"head_dim": 24}, {}),
    "ministral3": ("Ministral3", "gpt2", {"head_dim": 24, "rope": WARM}, {}),
    "cohere2": ("Cohere2", "gpt2", {"num_hidden_layers": 5, "sliding_window": 9, "pad_token_id": 0}, {}),
    "exaone4": ("Exaone4", "gpt2", {"num_hidden_layers": 5, "sliding_window": 9}, {}),
    "exaone4, no windows": ("Exaone4", "gpt2", {"sliding_window": None, "layer_types": ["full_attention"] * 2}, {}),
    "bitnet": ("BitNet", "llama3", {"bitnet": ONLINE, "tie_word_embeddings": True} | WIDE, {}),
    "falcon-e": ("Llama", "digits", {"bitnet": ONLINE} | WIDE, {}),
    "bert": ("Bert", "words", BERT, {}),
    "xlm-r": ("XLMRoberta", "unigram", BERT, {}),
}
TEXT_CONFIGS = {"Gemma3": "Gemma3TextConfig"}
TERNARY = getattr(transformers.utils.quantization_config, "BitNetQuantConfig", None)
ENCODERS = ("Bert", "XLMRoberta")


def config_of(name, size, specials):
    """Returns a configuration of the family, or None where this version of transformers has no such class."""
    kind, _, settings, _ = FAMILIES[name]
    settings = SHAPE | {"vocab_size": size} | specials | settings
    rope = settings.pop("rope", None)
    for key in ("sharded", "bitnet", "blocks"):
        settings.pop(key, None)
    cls = getattr(transformers, TEXT_CONFIGS.get(kind, kind + "Config"), None)
    if cls is None or class_of(name) is None or ("bitnet" in FAMILIES[name][2] and TERNARY is None):
        return None
    if rope is not None and int(transformers.__version__.split(".")[0]) >= 5:
        settings["rope_parameters"] = rope
    elif rope is not None:
        settings["rope_scaling"] = {k: v for k, v in rope.items() if k != "rope_theta"}
        settings["rope_theta"] = rope["rope_theta"]
    return cls(**{k: v for k, v in settings.items() if v is not None or k == "sliding_window"})


def class_of(name):
    kind = FAMILIES[name][0]
    return getattr(transformers, kind + ("Model" if kind in ENCODERS else "ForCausalLM"), None)


def read(name, path):
    """The model as transformers reads it from a folder."""
    return class_of(name).from_pretrained(path, torch_dtype=torch.float32).eval()


def blocks_of(floats):
    """MXFP4 of [experts, inputs, results]: blocks of the inputs, with two codes a byte, and their scales."""
    parts = np.ascontiguousarray(floats.swapaxes(1, 2)).reshape(floats.shape[0], floats.shape[2], -1, 32)
    exponents = np.floor(np.log2(np.abs(parts).max(-1))) - 2
    steps = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    distance = np.abs(np.abs(parts / np.exp2(exponents)[..., None])[..., None] - steps)
    codes = (distance.argmin(-1) + 8 * (parts < 0)).astype(np.uint8)
    return codes[..., 0::2] | codes[..., 1::2] << 4, (exponents + 127).astype(np.uint8)


def store_blocks(path):
    """Turns the experts of a saved folder of gpt-oss into blocks."""
    stored = {}
    for name, tensor in safetensors.numpy.load_file(path / "model.safetensors").items():
        if name.endswith(("gate_up_proj", "down_proj")):
            stored[f"{name}_blocks"], stored[f"{name}_scales"] = blocks_of(tensor)
        else:
            stored[name] = tensor
    safetensors.numpy.save_file(stored, path / "model.safetensors", {"format": "pt"})


def with_ternary(model, settings):
    """Returns the same model with BitNet's layers, which round weights and activations when the model runs."""
    asked = TERNARY(**{k: v for k, v in settings.items() if k != "quant_method"})
    weights = model.state_dict()
    model = bitnet.replace_with_bitnet_linear(model, modules_to_not_convert=["lm_head"], quantization_config=asked)
    for at, module in list(model.named_modules()):
        if type(module).__name__ == "AutoBitLinear":
            module.to_empty(device="cpu")
            module.weight.data = weights[at + ".weight"].clone()
            if module.rms_norm is not None:
                width = module.rms_norm.weight.shape
                module.rms_norm.weight.data = torch.rand(width) + 0.5
    return model


def make(name, config):
    """The model in floats, with weights that are the same in every run."""
    torch.manual_seed(1)
    model = class_of(name)(config).eval().float()
    with torch.no_grad():
        for key, value in model.named_parameters():
            if value.dim() == 1:  # norms of ones and biases of zeros would hide mistakes
                value.copy_(torch.rand(value.shape) * 0.4 + (0.8 if "norm" in key.lower() and "bias" not in key else -0.2))
    settings = FAMILIES[name][2]
    if "bitnet" in settings:
        model = with_ternary(model, settings["bitnet"])
    return model
