# SPDX-License-Identifier: Apache-2.0
"""Folders of adapters as PEFT saves them, converted by tern: logits beside PEFT's own, and what is refused."""

import json

import families
import numpy as np
import peft
import safetensors.torch
import torch

ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
PHI = ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]
# family, modules, type of the numbers, settings of PEFT
ADAPTERS = {
    "plain": ("llama", ["q_proj", "v_proj"], torch.float32, {"r": 8, "lora_alpha": 16}),
    "all": ("llama", ALL, torch.float16, {"r": 5, "lora_alpha": 7}),
    "bf16": ("qwen3", ALL, torch.bfloat16, {"r": 16, "lora_alpha": 32}),
    "rooted": ("qwen2", ALL, torch.float32, {"r": 8, "lora_alpha": 16, "use_rslora": True}),
    "patterns": ("llama", ALL, torch.float32, {"r": 8, "lora_alpha": 16, "rank_pattern": {"q_proj": 3, "layers.1.mlp.up_proj": 20},
                                               "alpha_pattern": {"v_proj": 40, "layers.0.self_attn.k_proj": 2}}),  # fmt: skip
    "joined": ("phi3", PHI, torch.float32, {"r": 8, "lora_alpha": 16}),
    "windows": ("gemma3", ALL, torch.float32, {"r": 4, "lora_alpha": 8}),
}
REFUSED = {
    "use_dora": True,
    "bias": "all",
    "modules_to_save": ["lm_head"],
    "fan_in_fan_out": True,
    "init_lora_weights": "pissa",
    "peft_type": "IA3",
    "lora_alpha": 0,
    "alpha_pattern": {"q_proj|v_proj": 3},
}
BOUND = 1e-4  # of the deviation of logits


def make(model, name):
    """A PEFT model with random numbers in both halves."""
    _, modules, kind, settings = ADAPTERS[name]
    made = peft.get_peft_model(model, peft.LoraConfig(target_modules=modules, **settings)).eval()
    torch.manual_seed(2)
    with torch.no_grad():
        for key, value in made.named_parameters():
            if "lora_" in key:
                value.copy_((torch.randn(value.shape) * 0.1).to(kind).float())
    return made, kind


def convert(where, name, run, tern):
    """Saves a family's model with an adapter and converts both; returns their files and PEFT's logits of ids."""
    family = ADAPTERS[name][0]
    base, folder = where / f"base-{name}", where / f"adapter-{name}"
    model = families.make(family, families.config_of(family, 300, {"bos_token_id": 1, "eos_token_id": 2}))
    model.save_pretrained(base)
    made, kind = make(model, name)
    made.save_pretrained(folder)
    stored = folder / "adapter_model.safetensors"
    halves = {key: value.to(kind) for key, value in safetensors.torch.load_file(stored).items()}
    safetensors.torch.save_file(halves, stored, {"format": "pt"})
    files = where / f"{name}.gguf", where / f"{name}-lora.gguf"
    run(tern, "convert", base, files[0])
    run(tern, "convert", "--base", base, folder, files[1])
    ids = [(7 * i * i + 3 * i) % 300 for i in range(40)]
    with torch.no_grad():
        logits = made(torch.tensor([ids])).logits[0].float().numpy()
    return files, folder, ids, logits


def difference(where, files, ids, expected, run, tern):
    out = where / "logits.f32"
    lora = [x for file in files[1:] for x in ("--lora", file)]
    run(tern, "logits", "-m", files[0], "--tokens", ",".join(map(str, ids)), "--all", "--kv", "f32", "--force", "-o", out, *lora)
    got = np.fromfile(out, "<f4").reshape(expected.shape)
    return np.abs(got - expected).max() / expected.std()


def refusals(folder, base, where, run, tern):
    """Names of settings that were taken though they change what an adapter does."""
    path = folder / "adapter_config.json"
    whole = path.read_text()
    for key, value in REFUSED.items():
        path.write_text(json.dumps(json.loads(whole) | {key: value}))
        try:
            run(tern, "convert", "--base", base, folder, where / "refused.gguf")
        except RuntimeError as error:
            if key in str(error):
                continue
        yield f"adapters: {key} {value} is not refused by name"
    path.write_text(whole)


def check(where, run, arguments):
    complaints = []
    for name in ADAPTERS:
        files, folder, ids, expected = convert(where, name, run, arguments.tern)
        found = difference(where, files, ids, expected, run, arguments.tern)
        without = difference(where, files[:1], ids, expected, run, arguments.tern)
        print(f"adapters, {name}: {found:.1e} of a deviation, {without:.1e} without", flush=True)
        if not (found < BOUND and without > 0.1):
            complaints.append(f"adapters, {name}: {found} of a deviation, {without} without")
    complaints += refusals(folder, where / f"base-{name}", where, run, arguments.tern)
    return complaints
