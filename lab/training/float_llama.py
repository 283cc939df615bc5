"""Trains a small Llama with float weights on the texts of this repository, and writes it as GGUF.

    python lab/training/float_llama.py out/models/float-llama.gguf

It learns from every page and source file but those in HELD_OUT, whose perplexity
lab/precision-receipts measures.  The number of steps is fixed, so that two machines train the same
model but for the rounding of their sums.  The weights are written as they are: matrices and the
embedding in F16, norms in F32, and the embedding is the output head.
"""
import argparse
import os
import pathlib
import random
import subprocess
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import gguf_file as g
from model import Config, rms_norm, rope_tables, rotate
from model_file import float_tensor, metadata, tensors
from tokenizer import BOS, EOS, Tokenizer, train_merges

ROOT = pathlib.Path(__file__).resolve().parents[2]
HELD_OUT = ["docs/tokenizers.md", "docs/robustness.md", "docs/sessions.md"]  # what lab/text/held-out.txt came from
PAGES = ["*.md"]
SOURCES = ["*.c", "*.h", "*.py"]
PAGE_ROUNDS = 4  # pages count so many times, because there are more sources than pages
WARMUP, REPORTED = 100, 20  # steps until the full rate, between lines that tell of the loss
LENGTH = 256  # tokens a row, and the context of the model
TURNED = ["attn_q", "attn_k"]  # their rows are in another order in the file
NORMS = ["attn_norm", "ffn_norm"]


def texts(patterns):
    """The files that git knows and that are not made by the generator, sorted by name."""
    names = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\n")
    kept = [n for n in names if n and "/golden/" not in n and n not in HELD_OUT]
    return [(ROOT / n).read_text(encoding="utf-8") for n in sorted(kept)]


class Block(nn.Module):
    """One layer as the architecture "llama" has it; weights are kept in the shape [out, in]."""

    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        d, kv, ff = cfg.embd, cfg.kv_heads * cfg.head_dim, cfg.ff
        shrink = (2 * cfg.layers) ** -0.5
        self.attn_norm, self.ffn_norm = nn.Parameter(torch.ones(d)), nn.Parameter(torch.ones(d))
        for name, rows, cols, factor in (
                ("attn_q", d, d, 1), ("attn_k", kv, d, 1), ("attn_v", kv, d, 1),
                ("attn_output", d, d, shrink), ("ffn_gate", ff, d, 1), ("ffn_up", ff, d, 1),
                ("ffn_down", d, ff, shrink)):
            setattr(self, name, nn.Parameter(torch.randn(rows, cols) * (factor * cols ** -0.5)))

    def forward(self, x, cos, sin):
        """x [batch, time, embd] -> same."""
        cfg, (b, t, d) = self.cfg, x.shape
        a = rms_norm(x, self.attn_norm, cfg.eps)
        q = rotate(F.linear(a, self.attn_q).view(b, t, cfg.heads, -1).transpose(1, 2), cos, sin)
        k = rotate(F.linear(a, self.attn_k).view(b, t, cfg.kv_heads, -1).transpose(1, 2), cos, sin)
        v = F.linear(a, self.attn_v).view(b, t, cfg.kv_heads, -1).transpose(1, 2)
        group = cfg.heads // cfg.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(o.transpose(1, 2).reshape(b, t, d), self.attn_output)
        f = rms_norm(x, self.ffn_norm, cfg.eps)
        gated = F.silu(F.linear(f, self.ffn_gate)) * F.linear(f, self.ffn_up)
        return x + F.linear(gated, self.ffn_down)


class Llama(nn.Module):
    """Token ids [batch, time] -> logits [batch, time, vocab]."""

    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.token_embd = nn.Parameter(torch.randn(cfg.vocab, cfg.embd) * 0.06)
        self.output_norm = nn.Parameter(torch.ones(cfg.embd))
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        cos, sin = rope_tables(cfg, LENGTH)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, ids):
        x = F.embedding(ids, self.token_embd)
        for block in self.blocks:
            x = block(x, self.cos[:ids.shape[1]], self.sin[:ids.shape[1]])
        return F.linear(rms_norm(x, self.output_norm, self.cfg.eps), self.token_embd)


def batch(stream, rng, rows):
    """Returns `rows` pieces of the stream, each after a begin-of-text token, and the token after each position."""
    starts = [rng.randrange(len(stream) - LENGTH) for _ in range(rows)]
    pieces = np.stack([stream[s:s + LENGTH] for s in starts])
    ids = np.concatenate([np.full((rows, 1), BOS), pieces[:, :-1]], axis=1)
    return torch.from_numpy(ids), torch.from_numpy(pieces)


def train(model, stream, steps, rows, peak, seed):
    """AdamW with warmup and a linear end; says how it goes."""
    rng, start, total = random.Random(seed), time.time(), 0.0
    learned = [w for w in model.parameters() if w.requires_grad]
    opt = torch.optim.AdamW(learned, lr=peak, betas=(0.9, 0.95), weight_decay=0.02)
    for step in range(steps):
        rate = peak * min(1.0, (step + 1) / WARMUP, (steps - step) / (0.6 * steps))
        for group in opt.param_groups:
            group["lr"] = rate
        ids, targets = batch(stream, rng, rows)
        loss = F.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        total += loss.item()
        if (step + 1) % REPORTED == 0:
            print(f"step {step + 1} of {steps}: loss {total / REPORTED:.4f}, rate {rate:.5f}, "
                  f"{(step + 1) * rows * LENGTH / (time.time() - start):.0f} tokens/s", flush=True)
            total = 0.0


def keys(cfg, tok, name):
    return metadata("llama", name, "A small Llama with float weights, for measurements.", 1, cfg, tok)


def interleaved(w, head_dim):
    """Rows of q or k in the order of GGUF's "llama": halves of a head become neighbours."""
    rows, cols = w.shape
    return w.reshape(rows // head_dim, 2, head_dim // 2, cols).transpose(1, 2).reshape(rows, cols)


def halved(w, head_dim):
    """The inverse of interleaved."""
    rows, cols = w.shape
    return w.reshape(rows // head_dim, head_dim // 2, 2, cols).transpose(1, 2).reshape(rows, cols)


def write(path, name, cfg, tok, state):
    """Writes the weights as they are, matrices in F16; returns the bytes of the file."""

    def matrix(file_name, kind, w):
        w = interleaved(w, cfg.head_dim) if kind in TURNED else w
        return float_tensor(file_name, w.contiguous(), g.TYPE_F16)

    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    return g.write(path, keys(cfg, tok, name), tensors(cfg, state, NORMS, matrix))


def read(path):
    """A file of write: (configuration, tokenizer, state)."""
    meta, arrays = g.read(path)
    tok = Tokenizer([tuple(m.split(" ")) for m in meta["tokenizer.ggml.merges"]])
    cfg = Config(vocab=len(tok), embd=meta["llama.embedding_length"], layers=meta["llama.block_count"],
                 heads=meta["llama.attention.head_count"], kv_heads=meta["llama.attention.head_count_kv"],
                 ff=meta["llama.feed_forward_length"], context=meta["llama.context_length"],
                 rope_base=meta["llama.rope.freq_base"], eps=meta["llama.attention.layer_norm_rms_epsilon"])
    state = {}
    for name, values in arrays.items():
        w = torch.from_numpy(values)
        key = name.removesuffix(".weight").replace("blk.", "blocks.")
        state[key] = halved(w, cfg.head_dim) if key.split(".")[-1] in TURNED else w
    return cfg, tok, state


def stream_of(tok, documents):
    """Token ids of documents one after the other, each with its end."""
    return np.array([i for text in documents for i in [*tok.encode(text), EOS]], np.int64)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("out", help="the GGUF file to write")
    p.add_argument("--steps", type=int, default=1500)
    p.add_argument("--rows", type=int, default=8)
    p.add_argument("--rate", type=float, default=2e-3)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    torch.manual_seed(args.seed)
    pages = texts(PAGES)
    tok = Tokenizer(train_merges(pages, 1024 - 258))
    stream = stream_of(tok, pages * PAGE_ROUNDS + texts(SOURCES))
    cfg = Config(vocab=len(tok), ff=768, context=LENGTH)
    model = Llama(cfg)
    print(f"{sum(w.numel() for w in model.parameters())} weights, {len(stream)} tokens", flush=True)
    train(model, stream, args.steps, args.rows, args.rate, args.seed)
    size = write(args.out, "float-llama", cfg, tok, model.state_dict())
    print(f"{args.out}: {size} bytes")


if __name__ == "__main__":
    main()
