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
from model_file import metadata, tensors
from tokenizer import Tokenizer

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ 'Q: ' + message['content'] + ' A:' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + message['content'] + eos_token }}{% endif %}"
    "{% endfor %}"
)
NORMS = ["attn_norm", "attn_sub_norm", "ffn_norm", "ffn_sub_norm"]


def keys(cfg, tok):
    return metadata("bitnet-b1.58", "tern-small", "A small model for tests: sums, facts and stories.", 40, cfg, tok,
                    CHAT_TEMPLATE)


def ternary_tensor(name, _, weights):
    """A table entry of type I2_S, quantized as the training does it."""
    codes, scale = ternary_codes(weights)
    return name, tuple(weights.shape), g.TYPE_I2_S, g.pack_i2s(codes.numpy(), scale.item())


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
    size = g.write(path, keys(cfg, tok), tensors(cfg, saved["state"], NORMS, ternary_tensor))
    write_lists(args.models)
    print(f"{path}: {size} bytes")


if __name__ == "__main__":
    main()
