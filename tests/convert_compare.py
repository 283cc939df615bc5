#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares converted models with Hugging Face transformers, which wrote the folders.

    convert_compare.py --tern build/tern

Makes small models with random weights of each class that `tern convert` reads, has transformers save them
(in one file and in several), converts them, and compares the logits of both. Ternary ones are compared
with transformers' own quantized layers. Needs torch and transformers. Exit status 1 when anything differs
by more than 1e-4 standard deviations of the logits. Delta nets are compared with transformers in
float64: its float32 sums them by chunks, which alone is that far from the numbers.
"""

import argparse
import contextlib
import datetime
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "bench")]
import sealing  # noqa: E402

TOKENS = [5, 17, 90, 2, 2, 33, 71, 8, 60, 41, 12, 96, 3, 55]
BOUND = 1e-4
SHAPE = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 97,
    "max_position_embeddings": 512,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
GRANITE = {
    "embedding_multiplier": 12.0,
    "residual_multiplier": 0.22,
    "logits_scaling": 8.0,
    "attention_multiplier": 0.11,
}
MOE = {"num_experts": 8, "num_experts_per_tok": 3, "norm_topk_prob": True}
BITNET = {"quant_method": "bitnet"}
AUTO = BITNET | {"linear_class": "autobitlinear"}
GEMMA = {
    "num_hidden_layers": 7,
    "sliding_window": 5,
    "head_dim": 64,
    "query_pre_attn_scalar": 40,
    "attn_implementation": "eager",
}
LAYERS_OF_FOUR = {"num_hidden_layers": 5, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
WINDOWS_OF_FOUR = {"num_hidden_layers": 5, "sliding_window": 5, "attn_implementation": "eager"}
EXAONE = {"layer_types": ["full_attention"] * 3, "attn_implementation": "eager"}
GLM = {"pad_token_id": 0, "eos_token_id": 2}
QUARTER = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}
ALPHA = {"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 1000.0, "factor": 1.0}
WARM = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 4,
        "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.3}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 128}
DELTA_TYPES = ["linear_attention", "linear_attention", "full_attention"]
DELTAS = {"head_dim": 32, "layer_types": DELTA_TYPES, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 24,
          "linear_value_head_dim": 24, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
          "attn_implementation": "eager", "rope_parameters": {"rope_type": "default", "rope_theta": 1e6,
          "partial_rotary_factor": 0.25, "mrope_section": [2, 1, 1], "mrope_interleaved": True}}  # fmt: skip
SHARED = {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 96, "shared_expert_intermediate_size": 64}
LINEAR_OF_KIND = {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}
CONFIGS = {"Gemma3": "Gemma3Text", "Qwen3_5": "Qwen3_5Text", "Qwen3_5Moe": "Qwen3_5MoeText"}  # whose names are not those of their models
# name: (class, configuration, quantization_config, the effect of weight_scale)
CASES = {
    "llama": ("Llama", {"tie_word_embeddings": False}, None, None),
    "llama, tied": ("Llama", {"tie_word_embeddings": True}, None, None),
    "llama, heads of 256 as Falcon 3": ("Llama", {"head_dim": 256}, None, None),
    "llama, llama3 rope": ("Llama", {"rope_parameters": LLAMA3}, None, None),
    "llama, linear rope": ("Llama", {"rope_parameters": LINEAR}, None, None),
    "llama, packed as Falcon 1.58 bit": ("Llama", {"head_dim": 64}, BITNET, "divides"),
    "qwen2": ("Qwen2", {"tie_word_embeddings": False}, None, None),
    "qwen2, tied": ("Qwen2", {"tie_word_embeddings": True}, None, None),
    "qwen3": ("Qwen3", {"head_dim": 64}, None, None),
    "mistral, windows": ("Mistral", {"sliding_window": 5, "attn_implementation": "eager"}, None, None),
    "phi3": ("Phi3", {"sliding_window": 6, "pad_token_id": 0, "attn_implementation": "eager"}, None, None),
    "olmo2": ("Olmo2", {"pad_token_id": 0}, None, None),
    "qwen35": ("Qwen3_5", DELTAS, None, None),
    "qwen35moe": ("Qwen3_5Moe", DELTAS | SHARED, None, None),
    "qwen3next": ("Qwen3Next", DELTAS | SHARED | {"norm_topk_prob": True, "rope_parameters": QUARTER}, None, None),
    "qwen3moe": ("Qwen3Moe", MOE | {"head_dim": 64, "moe_intermediate_size": 96}, None, None),
    "qwen3moe, plain weights": ("Qwen3Moe", MOE | {"moe_intermediate_size": 96, "norm_topk_prob": False}, None, None),
    "qwen2moe": (
        "Qwen2Moe",
        MOE | {"moe_intermediate_size": 96, "shared_expert_intermediate_size": 160, "norm_topk_prob": False},
        None,
        None,
    ),
    "olmoe": ("Olmoe", MOE | {"norm_topk_prob": False, "pad_token_id": 0}, None, None),
    "olmoe, normed weights": ("Olmoe", MOE | {"pad_token_id": 0}, None, None),
    "granite": ("Granite", GRANITE, None, None),
    "gemma2": ("Gemma2", GEMMA | {"attn_logit_softcapping": 20.0, "final_logit_softcapping": 15.0}, None, None),
    "gemma2, no soft bounds": (
        "Gemma2",
        GEMMA | {"attn_logit_softcapping": None, "final_logit_softcapping": None, "query_pre_attn_scalar": 4000},
        None,
        None,
    ),
    "gemma3": ("Gemma3", GEMMA, None, None),
    "gemma3, linear rope": ("Gemma3", GEMMA | LINEAR_OF_KIND, None, None),
    "smollm3": ("SmolLM3", LAYERS_OF_FOUR, None, None),
    "smollm3, yarn": ("SmolLM3", LAYERS_OF_FOUR | {"rope_parameters": YARN}, None, None),
    "seed_oss": ("SeedOss", {"head_dim": 48}, None, None),
    "ernie4_5": ("Ernie4_5", {"head_dim": 48}, None, None),
    "glm4": ("Glm4", GLM | {"head_dim": 64}, None, None),
    "glm4, a quarter of a head": ("Glm4", GLM | {"head_dim": 32, "rope_parameters": QUARTER}, None, None),
    "hunyuan": ("HunYuanDenseV1", {"head_dim": 64}, None, None),
    "hunyuan, alpha": ("HunYuanDenseV1", {"head_dim": 64, "rope_parameters": ALPHA}, None, None),
    "ministral3": ("Ministral3", {"head_dim": 48, "rope_parameters": WARM}, None, None),
    "cohere2": ("Cohere2", WINDOWS_OF_FOUR | {"pad_token_id": 0, "eos_token_id": 2, "logit_scale": 0.25}, None, None),
    "exaone4, windows": ("Exaone4", WINDOWS_OF_FOUR, None, None),
    "exaone4, no windows": ("Exaone4", EXAONE | {"sliding_window": None, "rope_parameters": LLAMA3}, None, None),
    "bitnet, masters": (
        "BitNet",
        {"tie_word_embeddings": True},
        AUTO | {"quantization_mode": "online"},
        None,
    ),
    "bitnet, packed": (
        "BitNet",
        {"tie_word_embeddings": True},
        AUTO | {"quantization_mode": "offline"},
        "multiplies",
    ),
}


def save(folder, kind, config, several):
    """A model of distinctive random weights."""
    torch.manual_seed(3)
    made = getattr(transformers, f"{CONFIGS.get(kind, kind)}Config")(**SHAPE | config)
    model = getattr(transformers, f"{kind}ForCausalLM")(made).float()
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn_like(p)
            p.copy_(noise if name.endswith(("A_log", "dt_bias")) else noise * 0.3 + ("norm" in name))
    model.save_pretrained(folder, max_shard_size="200KB" if several else "5GB")


def pack(path, meaning):
    """Matrices of blocks become two bits a weight, with their scale beside."""
    from transformers.integrations.bitnet import pack_weights  # which older ones do not have

    out = {}
    for name, w in load_file(path).items():
        if not name.endswith("_proj.weight"):
            out[name] = w
            continue
        scale = w.abs().mean().clamp_(min=1e-5)
        out[name] = pack_weights((w / scale).round().clamp(-1, 1))
        out[f"{name}_scale"] = (scale if meaning == "multiplies" else 1 / scale).reshape(1)
    save_file(out, path, metadata={"format": "pt"})


class Wide:
    """The module torch whose float32 is float64, for code that names the type of what it computes."""

    float32 = float = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


@contextlib.contextmanager
def wide(model):
    """Within it the model computes in float64 throughout."""
    module = sys.modules[type(model).__module__]
    kept = module.torch, torch.Tensor.float
    module.torch, torch.Tensor.float = Wide(), torch.Tensor.double
    try:
        yield model.double()
    finally:
        module.torch, torch.Tensor.float = kept


def reference(folder):
    """The logits of transformers."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.config._experts_implementation = "eager"  # others have no float64
    deltas = "linear_attention" in (getattr(model.config, "layer_types", None) or [])
    with wide(model) if deltas else contextlib.nullcontext(model) as used, torch.no_grad():
        logits = used(torch.tensor([TOKENS])).logits[0]
    assert logits.dtype == (torch.float64 if deltas else torch.float32)
    return logits.double().numpy()


def compare(tern, folder):
    """The largest difference of a logit, in standard deviations."""
    expected = reference(folder)
    gguf, logits = folder / "model.gguf", folder / "logits.f32"
    subprocess.run([tern, "convert", folder, gguf], check=True, capture_output=True)
    ids = ",".join(map(str, TOKENS))
    options = ["--tokens", ids, "--all", "--kv", "f32", "--output", logits]
    subprocess.run([tern, "logits", "-m", gguf, *options], check=True, capture_output=True)
    seen = np.fromfile(logits, "<f4").reshape(expected.shape)
    return np.abs(seen - expected).max() / expected.std()


def record(cases):
    """Returns the document of the comparison that a page shows."""
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.partition("+")[0]}
    command = shlex.join(["tests/convert_compare.py", "--tern", "build/tern", "--out", "docs/report/convert.json"])
    return {"command": command, "date": datetime.date.today().isoformat(), **versions,
            "positions": len(TOKENS), "bound": BOUND, "cases": cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tern", required=True)
    parser.add_argument("--only", default="", help="only cases whose names begin with this")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the differences, for docs/report")
    arguments = parser.parse_args()
    tern = arguments.tern
    chosen = {name: case for name, case in CASES.items() if name.startswith(arguments.only)}
    if not chosen:
        parser.error(f"no case begins with '{arguments.only}': nothing to compare")
    transformers.logging.set_verbosity_error()
    failed, cases = False, {}
    for name, (kind, config, quantization, meaning) in chosen.items():
        for several in (False, True) if quantization is None else (False,):
            with tempfile.TemporaryDirectory() as at:
                folder = Path(at)
                save(folder, kind, config, several)
                if meaning is not None:
                    pack(folder / "model.safetensors", meaning)
                if quantization is not None:
                    path = folder / "config.json"
                    text = json.loads(path.read_text()) | {"quantization_config": quantization}
                    path.write_text(json.dumps(text))
                difference = compare(tern, folder)
                files = len(list(folder.glob("*.safetensors")))
                print(f"{name}, {files} file(s): {difference:.1e}", flush=True)
                failed |= not difference <= BOUND
                cases[name] = {"difference": max(float(difference), cases.get(name, {}).get("difference", 0.0))}
    if arguments.out:
        arguments.out.write_text(sealing.one_line(record(cases)))
    sys.exit(failed)


if __name__ == "__main__":
    main()
