"""Turns a checkpoint into a GGUF file: python export.py run ../../models

Writes tern-small.gguf and, beside it, the lists of held-out pairs and of facts.
"""
import argparse
import os

import torch

import data
import facts
import gguf_file as g
from model import Config, ternary_codes
from tokenizer import BOS, EOS, SPECIALS, Tokenizer

ARCH = "bitnet-b1.58"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ 'Q: ' + message['content'] + ' A:' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + message['content'] + eos_token }}{% endif %}"
    "{% endfor %}"
)
MATRICES = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
NORMS = ["attn_norm", "attn_sub_norm", "ffn_norm", "ffn_sub_norm"]


def metadata(cfg, tok):
    """All keys of the file as (key, kind, value)."""
    strings = (g.ARRAY, g.STRING)
    control, normal = 3, 1
    types = [control] * len(SPECIALS) + [normal] * (len(tok) - len(SPECIALS))
    return [
        ("general.architecture", g.STRING, ARCH),
        ("general.name", g.STRING, "tern-small"),
        ("general.description", g.STRING, "A small model for tests: sums, facts and stories."),
        ("general.file_type", g.U32, 40),
        ("general.quantization_version", g.U32, 2),
        (ARCH + ".vocab_size", g.U32, cfg.vocab),
        (ARCH + ".context_length", g.U32, cfg.context),
        (ARCH + ".embedding_length", g.U32, cfg.embd),
        (ARCH + ".block_count", g.U32, cfg.layers),
        (ARCH + ".feed_forward_length", g.U32, cfg.ff),
        (ARCH + ".attention.head_count", g.U32, cfg.heads),
        (ARCH + ".attention.head_count_kv", g.U32, cfg.kv_heads),
        (ARCH + ".attention.layer_norm_rms_epsilon", g.F32, cfg.eps),
        (ARCH + ".rope.dimension_count", g.U32, cfg.head_dim),
        (ARCH + ".rope.freq_base", g.F32, cfg.rope_base),
        ("tokenizer.ggml.model", g.STRING, "gpt2"),
        ("tokenizer.ggml.pre", g.STRING, "smollm"),
        ("tokenizer.ggml.tokens", strings, tok.tokens),
        ("tokenizer.ggml.scores", (g.ARRAY, g.F32), [0.0] * len(tok)),
        ("tokenizer.ggml.token_type", (g.ARRAY, g.I32), types),
        ("tokenizer.ggml.merges", strings, [f"{a} {b}" for a, b in tok.merges]),
        ("tokenizer.ggml.bos_token_id", g.U32, BOS),
        ("tokenizer.ggml.eos_token_id", g.U32, EOS),
        ("tokenizer.ggml.padding_token_id", g.U32, EOS),
        ("tokenizer.ggml.add_bos_token", g.BOOL, True),
        ("tokenizer.ggml.add_eos_token", g.BOOL, False),
        ("tokenizer.ggml.add_space_prefix", g.BOOL, False),
        ("tokenizer.chat_template", g.STRING, CHAT_TEMPLATE),
    ]


def float_tensor(name, values, dtype):
    """A table entry of F32 or F16 values."""
    form = {g.TYPE_F32: "<f4", g.TYPE_F16: "<f2"}[dtype]
    return name, tuple(values.shape), dtype, values.numpy().astype(form).tobytes()


def ternary_tensor(name, weights):
    """A table entry of type I2_S, quantized as the training does it."""
    codes, scale = ternary_codes(weights)
    return name, tuple(weights.shape), g.TYPE_I2_S, g.pack_i2s(codes.numpy(), scale.item())


def tensors(cfg, state):
    """All table entries; the head is the embedding, so there is no output.weight."""
    out = [float_tensor("token_embd.weight", state["token_embd"], g.TYPE_F16)]
    for i in range(cfg.layers):
        for name in NORMS:
            values = state[f"blocks.{i}.{name}"]
            out.append(float_tensor(f"blk.{i}.{name}.weight", values, g.TYPE_F32))
        for name in MATRICES:
            out.append(ternary_tensor(f"blk.{i}.{name}.weight", state[f"blocks.{i}.{name}"]))
    out.append(float_tensor("output_norm.weight", state["output_norm"], g.TYPE_F32))
    return out


def write_lists(folder):
    """The two text files that tests read."""
    with open(os.path.join(folder, "tern-small.heldout.txt"), "w", encoding="utf-8") as f:
        f.writelines(f"{a} {b}\n" for a, b in data.held_out())
    with open(os.path.join(folder, "tern-small.facts.txt"), "w", encoding="utf-8") as f:
        f.writelines(f"{q}\t{a}\n" for q, a in facts.all_facts())


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("run", help="the directory that train.py wrote")
    p.add_argument("models", help="the directory to write to")
    args = p.parse_args()
    g.check_packing()
    saved = torch.load(os.path.join(args.run, "ckpt.pt"), weights_only=True)
    cfg = Config(**saved["config"])
    tok = Tokenizer.load(os.path.join(args.run, "tokenizer.json"))
    path = os.path.join(args.models, "tern-small.gguf")
    size = g.write(path, metadata(cfg, tok), tensors(cfg, saved["state"]))
    write_lists(args.models)
    print(f"{path}: {size} bytes")


if __name__ == "__main__":
    main()
