"""The PyTorch model of tern-small: BitNet b1.58 with quantization-aware training.

The forward pass is the graph of GGUF architecture "bitnet-b1.58".  Every
linear layer of the blocks sees ternary weights (absmean, one scale per
matrix) and int8 activations (absmax, one scale per token); gradients pass
straight through both roundings to the float master weights.
"""
from dataclasses import dataclass, asdict
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    """Sizes of the model; each checkpoint stores its `asdict`."""
    vocab: int = 1024
    embd: int = 256
    layers: int = 4
    heads: int = 8
    kv_heads: int = 4
    ff: int = 512
    context: int = 512
    rope_base: float = 10000.0
    eps: float = 1e-5

    @property
    def head_dim(self):
        return self.embd // self.heads

    def to_dict(self):
        return asdict(self)


def quantize_weight(w):
    """Ternary image of `w` [out, in] times its scale, with a straight-through gradient."""
    scale = w.abs().mean().clamp(min=1e-5)
    q = (w / scale).round().clamp(-1, 1) * scale
    return w + (q - w).detach()


def ternary_codes(w):
    """`w` [out, in] as (codes in {-1,0,1} of the same shape, scale): what export writes."""
    scale = w.abs().mean().clamp(min=1e-5)
    return (w / scale).round().clamp(-1, 1), scale


def quantize_activation(x):
    """int8 image of each token's vector x [..., n], divided by its scale again.

    s = 127 / max(1e-5, max|x|); torch.round is round-half-to-even, as the
    integer engine does it.
    """
    s = 127.0 / x.detach().abs().amax(-1, keepdim=True).clamp(min=1e-5)
    q = (x.detach() * s).round() / s
    return x + (q - x).detach()


def rms_norm(x, gain, eps):
    """x [..., n] scaled to unit root mean square, times gain [n]."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


def rope_tables(cfg, length):
    """cos and sin [length, head_dim / 2] for the NEOX pairing (i, i + head_dim / 2)."""
    half = cfg.head_dim // 2
    freq = cfg.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * freq
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    """RoPE on x [batch, heads, time, head_dim]; cos, sin broadcast to [..., head_dim / 2]."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Block(nn.Module):
    """One transformer layer; weights are kept in the shape [out, in]."""

    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        d, kv, ff = cfg.embd, cfg.kv_heads * cfg.head_dim, cfg.ff
        self.attn_norm = nn.Parameter(torch.ones(d))
        self.attn_sub_norm = nn.Parameter(torch.ones(d))
        self.ffn_norm = nn.Parameter(torch.ones(d))
        self.ffn_sub_norm = nn.Parameter(torch.ones(ff))
        shrink = 1.0 / math.sqrt(2 * cfg.layers)  # keeps the residual stream near unit size
        self.attn_q = self._matrix(d, d)
        self.attn_k = self._matrix(kv, d)
        self.attn_v = self._matrix(kv, d)
        self.attn_output = self._matrix(d, d, shrink)
        self.ffn_gate = self._matrix(ff, d)
        self.ffn_up = self._matrix(ff, d)
        self.ffn_down = self._matrix(d, ff, shrink)

    @staticmethod
    def _matrix(rows, cols, factor=1.0):
        return nn.Parameter(torch.randn(rows, cols) * (factor / math.sqrt(cols)))

    def attention(self, x, cos, sin, mask):
        """x [batch, time, embd] -> same; mask [batch, 1, time, time] (True: may look)."""
        cfg, (b, t, d) = self.cfg, x.shape
        kv = cfg.kv_heads * cfg.head_dim
        a = quantize_activation(rms_norm(x, self.attn_norm, cfg.eps))
        w = torch.cat([quantize_weight(m) for m in (self.attn_q, self.attn_k, self.attn_v)])
        q, k, v = F.linear(a, w).split((d, kv, kv), dim=-1)
        q = rotate(q.view(b, t, cfg.heads, -1).transpose(1, 2), cos, sin)
        k = rotate(k.view(b, t, cfg.kv_heads, -1).transpose(1, 2), cos, sin)
        v = v.view(b, t, cfg.kv_heads, -1).transpose(1, 2)
        group = cfg.heads // cfg.kv_heads  # query head i reads kv head i / group
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        o = o.transpose(1, 2).reshape(b, t, d)
        o = quantize_activation(rms_norm(o, self.attn_sub_norm, cfg.eps))
        return F.linear(o, quantize_weight(self.attn_output))

    def feed_forward(self, x):
        """x [batch, time, embd] -> same: down(norm(relu(gate)^2 * up))."""
        cfg = self.cfg
        f = quantize_activation(rms_norm(x, self.ffn_norm, cfg.eps))
        w = torch.cat((quantize_weight(self.ffn_gate), quantize_weight(self.ffn_up)))
        gate, up = F.linear(f, w).chunk(2, dim=-1)
        t = F.relu(gate).square() * up
        t = quantize_activation(rms_norm(t, self.ffn_sub_norm, cfg.eps))
        return F.linear(t, quantize_weight(self.ffn_down))

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(x, cos, sin, mask)
        return x + self.feed_forward(x)


class Model(nn.Module):
    """Token ids [batch, time] -> logits [batch, time, vocab]; the head is the embedding."""

    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.token_embd = nn.Parameter(torch.randn(cfg.vocab, cfg.embd) * 0.06)
        self.output_norm = nn.Parameter(torch.ones(cfg.embd))
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        cos, sin = rope_tables(cfg, cfg.context)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def hidden(self, ids, pos, mask):
        """Normed last states [batch, time, embd]; pos [batch, time] restarts at each document."""
        cos, sin = self.cos[pos][:, None], self.sin[pos][:, None]
        x = F.embedding(ids, self.token_embd)
        for block in self.blocks:
            x = block(x, cos, sin, mask)
        return rms_norm(x, self.output_norm, self.cfg.eps)

    def loss(self, ids, pos, doc, targets, weights):
        """Weighted mean cross-entropy; all arguments [batch, time].

        `doc` numbers the document of each token: tokens see only their own
        document, so a packed row trains the same as separate documents.
        """
        t = ids.shape[1]
        causal = torch.ones(t, t, dtype=torch.bool).tril()
        mask = (doc[:, :, None] == doc[:, None, :]) & causal
        h = self.hidden(ids, pos, mask[:, None])
        keep = weights.reshape(-1).nonzero().squeeze(1)  # skip the head where nothing is asked
        logits = F.linear(h.reshape(-1, h.shape[-1])[keep], self.token_embd)
        losses = F.cross_entropy(logits, targets.reshape(-1)[keep], reduction="none")
        w = weights.reshape(-1)[keep]
        return (losses * w).sum() / w.sum()

    @torch.no_grad()
    def next_logits(self, ids):
        """Logits [batch, vocab] after the last token of ids [batch, time] (no padding)."""
        b, t = ids.shape
        pos = torch.arange(t).expand(b, t)
        mask = torch.ones(t, t, dtype=torch.bool).tril().expand(b, 1, t, t)
        return F.linear(self.hidden(ids, pos, mask)[:, -1], self.token_embd)
