"""Runs an exported GGUF file with NumPy alone and reports what it can do.

python evaluate.py ../../models/tern-small.gguf

The ternary products are exact: int8 activations times codes in {-1, 0, 1} are
whole numbers below 2^24, so float32 sums of them have no rounding in any order.
"""
import argparse
import os
import re

import numpy as np

import gguf_file as g
import stories
from tokenizer import BOS, EOS, Tokenizer

F = np.float32


def rms_norm(x, gain, eps):
    """x [..., n] -> same: squares summed in double, two float32 roundings after."""
    mean = (np.square(x).sum(-1, dtype=np.float64, keepdims=True) / x.shape[-1]).astype(F)
    return x * (F(1) / np.sqrt(mean + F(eps))) * gain


def quantize(x):
    """x [..., n] -> (whole numbers -128..127 as float32, multiplier s [..., 1])."""
    top = np.maximum(np.abs(x).max(-1, keepdims=True).astype(np.float64), 1e-5)
    s = (127.0 / top).astype(F)
    return np.clip(np.rint(x * s), -128, 127), s


def product(quantized, matrix):
    """quantized (q [..., in], s), matrix (codes [out, in], scale) -> [..., out]."""
    (q, s), (codes, scale) = quantized, matrix
    return (q @ codes.T) / s * scale


def rope_tables(base, dims, length):
    """cos, sin [length, dims / 2]; the angles come by repeated float32 multiplication."""
    step = F(base ** (-2.0 / dims))
    angle = np.empty((length, dims // 2), F)
    angle[:, 0] = np.arange(length)
    for i in range(1, dims // 2):
        angle[:, i] = angle[:, i - 1] * step
    return np.cos(angle), np.sin(angle)


def rotate(x, cos, sin):
    """NEOX rotation of x [batch, time, heads, dims]."""
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate((a * cos - b * sin, a * sin + b * cos), axis=-1)


def to_half(x):
    """x rounded to float16, as the caches and the head hold it."""
    return x.astype(np.float16).astype(F)


class Network:
    """The forward pass over the tensors of one file."""

    def __init__(self, path):
        self.meta, self.t = g.read(path)
        self.arch = self.meta["general.architecture"]
        self.heads = self.key("attention.head_count")
        self.kv_heads = self.key("attention.head_count_kv")
        self.eps = self.key("attention.layer_norm_rms_epsilon")
        dims = self.key("rope.dimension_count")
        self.cos, self.sin = rope_tables(self.key("rope.freq_base"), dims, self.key("context_length"))

    def key(self, name):
        return self.meta[f"{self.arch}.{name}"]

    def tokenizer(self):
        return Tokenizer([m.split(" ") for m in self.meta["tokenizer.ggml.merges"]])

    def logits(self, ids):
        """ids [batch, time] -> logits [batch, vocab] after the last token."""
        x = self.t["token_embd.weight"][ids]
        for i in range(self.key("block_count")):
            x = x + self.attention(x, f"blk.{i}.")
            x = x + self.feed_forward(x, f"blk.{i}.")
        h = rms_norm(x[:, -1], self.t["output_norm.weight"], self.eps)
        return to_half(h) @ self.t["token_embd.weight"].T

    def attention(self, x, p):
        """x [batch, time, embd] -> same, for the layer with name prefix p."""
        t = self.t
        b, n, d = x.shape
        a = quantize(rms_norm(x, t[p + "attn_norm.weight"], self.eps))
        cos, sin = self.cos[:n, None], self.sin[:n, None]
        q = rotate(product(a, t[p + "attn_q.weight"]).reshape(b, n, self.heads, -1), cos, sin)
        k = rotate(product(a, t[p + "attn_k.weight"]).reshape(b, n, self.kv_heads, -1), cos, sin)
        v = product(a, t[p + "attn_v.weight"]).reshape(b, n, self.kv_heads, -1)
        group = self.heads // self.kv_heads
        k, v = (np.repeat(to_half(m), group, axis=2) for m in (k, v))
        o = self.mix(q, k, v).reshape(b, n, d)
        o = quantize(rms_norm(o, t[p + "attn_sub_norm.weight"], self.eps))
        return product(o, t[p + "attn_output.weight"])

    @staticmethod
    def mix(q, k, v):
        """Causal attention; all [batch, time, heads, dims]."""
        n, dims = q.shape[1], q.shape[3]
        scores = np.einsum("bihd,bjhd->bhij", q, k, optimize=True) / np.sqrt(F(dims))
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, F(-np.inf))
        w = np.exp(scores - scores.max(-1, keepdims=True))
        w /= w.sum(-1, keepdims=True)
        return np.einsum("bhij,bjhd->bihd", w, v, optimize=True)

    def feed_forward(self, x, p):
        """x [batch, time, embd] -> same."""
        t = self.t
        f = quantize(rms_norm(x, t[p + "ffn_norm.weight"], self.eps))
        gate, up = product(f, t[p + "ffn_gate.weight"]), product(f, t[p + "ffn_up.weight"])
        h = np.square(np.maximum(gate, F(0))) * up
        h = quantize(rms_norm(h, t[p + "ffn_sub_norm.weight"], self.eps))
        return product(h, t[p + "ffn_down.weight"])


def generate(net, rows, limit, temperature=0.0, rng=None):
    """Continues rows [batch][time] (all of one length) until each has ended; new ids only."""
    ids, start = np.array(rows), len(rows[0])
    done = np.zeros(len(rows), bool)
    while not done.all() and ids.shape[1] < start + limit:
        logits = net.logits(ids)
        if temperature > 0:
            logits = logits / F(temperature) + rng.gumbel(size=logits.shape)
        best = np.where(done, EOS, logits.argmax(-1))
        done |= best == EOS
        ids = np.concatenate((ids, best[:, None]), axis=1)
    return ids[:, start:], done


def answers(net, tok, questions, limit=16):
    """Greedy answers as texts; None for an answer that did not end by itself."""
    out, by_length = [None] * len(questions), {}
    for i, q in enumerate(questions):
        row = [BOS] + tok.encode(f"Q: {q} A:")
        by_length.setdefault(len(row), []).append((i, row))
    for items in by_length.values():
        for at in range(0, len(items), 250):
            part = items[at:at + 250]
            new, done = generate(net, [row for _, row in part], limit)
            for (i, _), ids, ended in zip(part, new.tolist(), done):
                out[i] = tok.decode(ids) if ended else None
    return out


def report(title, questions, wanted, got, show=10):
    """Prints how many are right and a few that are wrong; returns the share."""
    wrong = [(q, w, a) for q, w, a in zip(questions, wanted, got) if a != " " + w]
    right = len(questions) - len(wrong)
    print(f"{title}: {right}/{len(questions)} right ({100 * right / len(questions):.2f} %)")
    for q, w, a in wrong[:show]:
        print(f"  {q} -> {a!r}, should be {w!r}")
    return right / len(questions)


def check_sums(net, tok, title, pairs):
    questions = [f"What is {a}+{b}?" for a, b in pairs]
    return report(title, questions, [str(a + b) for a, b in pairs], answers(net, tok, questions))


def tell_stories(net, tok, openings, temperature=0.0, seed=1):
    """Prints one story for each opening."""
    for i, text in enumerate(openings):
        row = [BOS] + tok.encode(text)
        new, done = generate(net, [row], 300, temperature, np.random.default_rng(seed + i))
        print(f"[{new.shape[1]} tokens, {'ended' if done[0] else 'cut'}, temperature {temperature}] "
              f"{text}{tok.decode(new[0].tolist())}\n")


def story_faults(text, words):
    """Returns the mistakes of a story that a program can see: odd words, too many people."""
    names = set(re.findall(r"[A-Z][a-z]+", text)) & set(stories.GIRLS + stories.BOYS)
    odd = set(re.findall(r"[A-Za-z]+", text.lower())) - words
    return [f"unknown word {w}" for w in sorted(odd)] + (["more than two names"] if len(names) > 2 else [])


def check_stories(net, tok, count=12, temperature=0.8):
    """Samples `count` stories and prints in how many of them no fault is found."""
    words = set()
    for text in stories.stories(5, 3000):
        words |= set(re.findall(r"[A-Za-z]+", text.lower()))
    row = [BOS] + tok.encode("Once upon a time")
    new, done = generate(net, [row] * count, 280, temperature, np.random.default_rng(3))
    texts = [tok.decode(r) for r in new.tolist()]
    faults = [story_faults(t, words) for t in texts]
    good = sum(bool(d) and not f for d, f in zip(done, faults))
    lengths = [r.index(EOS) if EOS in r else len(r) for r in new.tolist()]
    print(f"sampled stories: {len(set(texts))} different, {min(lengths)} to {max(lengths)} tokens, "
          f"{good}/{count} end by themselves, with known words and at most two names")
    print("  faults: " + "; ".join(f for fs in faults for f in fs[:2]))


OPENINGS = ["Once upon a time", "One day", "Long ago", "Deep in the forest", "The little fox",
            "Q: Tell me a story. A:"]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("--all", action="store_true", help="also try all 10000 sums")
    args = p.parse_args()
    net = Network(args.model)
    tok = net.tokenizer()
    assert tok.tokens == net.meta["tokenizer.ggml.tokens"]
    base = os.path.splitext(args.model)[0]
    with open(base + ".heldout.txt", encoding="utf-8") as f:
        held = [tuple(map(int, line.split())) for line in f]
    with open(base + ".facts.txt", encoding="utf-8") as f:
        facts = [line.rstrip("\n").split("\t") for line in f]
    share = check_sums(net, tok, "held-out sums", held)
    questions, wanted = zip(*facts)
    known = report("facts", questions, wanted, answers(net, tok, questions))
    if args.all:
        check_sums(net, tok, "all sums", [(a, b) for a in range(100) for b in range(100)])
    tell_stories(net, tok, OPENINGS)
    tell_stories(net, tok, OPENINGS[:3], temperature=0.8)
    check_stories(net, tok)
    raise SystemExit(0 if share >= 0.99 and known == 1.0 else 1)


if __name__ == "__main__":
    main()
