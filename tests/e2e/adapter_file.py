# SPDX-License-Identifier: Apache-2.0
"""Makes adapters with random numbers for small models, and says what a model with them computes."""

import sys

import common
import gguf_edit
import numpy as np

sys.path.insert(0, str(common.ROOT / "tests" / "oracle"))
import forward  # noqa: E402

KINDS = {0: np.float32, 1: np.float16}  # types of GGUF files: f32, f16
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


class Adapter:
    """Thin matrices for those of a model's file: A[rank, columns], B[rows, rank]."""

    def __init__(self, model, rank=4, alpha=8.0, seed=1, matrices=MATRICES, kind=0, size=0.05):
        self.model = gguf_edit.read(model)
        self.alpha, self.kind = alpha, kind
        random = np.random.default_rng(seed)
        self.pairs = {}
        for t in self.model.tensors:
            if t.name.startswith("blk.") and t.name.split(".")[2] in matrices and t.name.endswith(".weight"):
                columns, rows = t.ne
                a, b = (size * random.standard_normal(s) for s in ((rank, columns), (rows, rank)))
                self.pairs[t.name] = a.astype(KINDS[kind]), b.astype(KINDS[kind])

    def head_dim(self):
        """Numbers of a head of the model."""
        name = self.model.text("general.architecture")
        return self.model.number(f"{name}.embedding_length") // self.model.number(f"{name}.attention.head_count")

    def file(self):
        """The adapter as gguf_edit has it."""
        out = gguf_edit.Gguf([], [])
        out["general.type"] = gguf_edit.string("adapter")
        out["general.architecture"] = gguf_edit.string(self.model.text("general.architecture"))
        out["adapter.type"] = gguf_edit.string("lora")
        if self.alpha:
            out["adapter.lora.alpha"] = gguf_edit.f32(self.alpha)
        for name, pair in self.pairs.items():
            for half, x in zip("ab", pair):
                out.tensors.append(gguf_edit.Tensor(f"{name}.lora_{half}", [*x.shape[::-1]], self.kind, x.tobytes()))
        return out

    def write(self, path):
        path.write_bytes(self.file().to_bytes())
        return path

    def product(self, name, x, scale):
        """What it adds to the product of the matrix with rows x, in double precision."""
        if name not in self.pairs:
            return 0.0
        a, b = (m.astype(np.float64) for m in self.pairs[name])
        return scale * (self.alpha / len(a) if self.alpha else 1.0) * (x @ a.T) @ b.T


class Model(forward.Model):
    """The oracle's model with (adapter, scale) pairs in use."""

    def __init__(self, container, adapters=(), **settings):
        super().__init__(container, **settings)
        self.adapters = adapters

    def project(self, layer, name, x):
        y = super().project(layer, name, x)
        return y + sum(a.product(f"blk.{layer}.{name}.weight", x, scale) for a, scale in self.adapters)
