# SPDX-License-Identifier: Apache-2.0
"""Encoders (architecture bert) in float64: every position sees all others.

It rounds only what the contract rounds: activations in front of quantized weights, and keys and
values, which are stored as f16 (docs/numerics.md).
"""

import numpy as np

from forward import gelu, matmul, store


class Bert:
    def __init__(self, container):
        self.file = container
        self.layers, self.heads, self.width = (
            container.get(f"bert.{key}") for key in ("block_count", "attention.head_count", "embedding_length")
        )
        self.eps = float(container.get("bert.attention.layer_norm_epsilon"))

    def score(self, tokens, kinds, kv="f16"):
        """Returns what the head says of a pair of texts."""
        x = self.hidden(tokens, kv, kinds)[:1]
        if self.file.has("cls.weight"):
            x = np.tanh(x @ self.file.tensor("cls.weight").some_rows(np.arange(self.width)).T + self.file.vector("cls.bias"))
        return float(x[0] @ self.file.vector("cls.output.weight") + self.file.vector("cls.output.bias")[0])

    def hidden(self, tokens, kv="f16", kinds=0):
        """Returns float64[position, width] of a text; kinds of its tokens, which are 0 unless they are given."""
        rows = np.arange(len(tokens))
        h = self.file.tensor("token_embd.weight").some_rows(np.asarray(tokens))
        h = h + self.file.tensor("token_types.weight").some_rows(0 * rows + np.asarray(kinds))
        h = h + self.file.tensor("position_embd.weight").some_rows(rows)
        h = self._norm("token_embd_norm", h)
        for layer in range(self.layers):
            at = f"blk.{layer}."
            h = self._norm(at + "attn_output_norm", h + self._attention(at, h, kv))
            inner = gelu(self._project(at + "ffn_up", h))
            h = self._norm(at + "layer_output_norm", h + self._project(at + "ffn_down", inner))
        return h

    def _attention(self, at, h, kv):
        q, k, v = (self._project(f"{at}attn_{x}", h).reshape(len(h), self.heads, -1) for x in "qkv")
        k, v = store(k, kv), store(v, kv)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[2])
        e = np.exp(scores - scores.max(axis=2, keepdims=True))
        e /= e.sum(axis=2, keepdims=True)
        return self._project(at + "attn_output", np.einsum("hij,jhd->ihd", e, v).reshape(len(h), -1))

    def _project(self, name, x):
        return matmul(self.file.tensor(name + ".weight"), x) + self.file.vector(name + ".bias")

    def _norm(self, name, x):
        x = x - x.mean(axis=1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + self.eps)
        return x * self.file.vector(name + ".weight") + self.file.vector(name + ".bias")
