# SPDX-License-Identifier: Apache-2.0
"""The transformer in float64, for the architectures of a table (architectures.py).

Only three things are rounded, because they belong to the model here and are not errors of computing it: activations
become int8 in front of quantized weights (or the precision that was asked for), keys and values are stored as f16, and
the numbers that multiply these have 13 bits. All rules are those of docs/numerics.md. Arrays are indexed [position,
...].
"""

import numpy as np

import delta
import tensors
from angles import Yarn, rope, rope_angles
from architectures import ARCHITECTURES, gelu, relu2, silu

ROWS_AT_ONCE = 8192  # of a matrix decoded to float64: bounds memory for wide output heads
NOISE = 2.0**-20  # relative: eight steps of float32, the loss of a sum of a few hundred terms


# ---- activations in front of quantized weights --------------------------------------------------


def quantize_token(x):
    """Uses one scale a row: returns (q, s) with x ~ q / s, in float32 steps as in the contract."""
    x = x.astype(np.float32)
    amax = np.maximum(1e-5, np.abs(x).max(axis=1, keepdims=True).astype(np.float64))
    s = (127.0 / amax).astype(np.float32)
    return np.clip(np.rint(x * s), -128, 127).astype(np.float64), s.astype(np.float64)


def quantize_blocks(x):
    """Uses one scale for 32 columns: returns the values q * d that the product sees."""
    padded = np.pad(x.astype(np.float32), ((0, 0), (0, -x.shape[1] % 32)))
    blocks = padded.reshape(len(x), -1, 32)
    amax = np.maximum(np.float32(1e-30), np.abs(blocks).max(axis=2, keepdims=True))
    q = np.clip(np.rint(blocks * (np.float32(127) / amax)), -127, 127)
    d = amax / np.float32(127)
    return (q.astype(np.float64) * d).reshape(len(x), -1)[:, : x.shape[1]]


def binary_values(fraction, bias, largest):
    """All values from 0 to the largest of a format of 8 bits, by its codes."""
    steps = 1 << fraction
    values = [c * 2.0 ** (1 - bias - fraction) for c in range(steps)]
    for code in range(steps, 128):
        values.append((steps + code % steps) * 2.0 ** (code // steps - bias - fraction))
    return np.array([v for v in values if v <= largest])


FP8_VALUES = {"fp8": binary_values(3, 7, 448.0), "fp8-e5m2": binary_values(2, 15, 57344.0)}


def nearest_values(x, values):
    """Returns the value nearest to each magnitude; where two are equally near, the one with the even code."""
    above = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
    low, high = values[above - 1], values[above]
    take_high = (x - low > high - x) | ((x - low == high - x) & (above % 2 == 0))
    return np.where(take_high, high, low)


def round_fp8(x, values):
    """Returns one power of two a row, the least that keeps every value within the largest one."""
    amax = np.maximum(2.0**-100, np.abs(x).max(axis=1, keepdims=True))
    scale = 2.0 ** np.ceil(np.log2(amax / values[-1]))
    return np.copysign(nearest_values(np.abs(x) / scale, values) * scale, x)


def round_bf16(x):
    _, exponent = np.frexp(x)
    step = np.ldexp(1.0, np.maximum(exponent - 8, -133))
    return np.rint(x / step) * step


def round_activations(x, precision):
    """Rows as products with weights that are floats, or become floats, read them."""
    if precision in FP8_VALUES:
        return round_fp8(x, FP8_VALUES[precision])
    if precision == "int8":
        return quantize_blocks(x)
    if precision == "fp16":
        return x.astype(np.float16).astype(np.float64)
    return round_bf16(x) if precision == "bf16" else x


def matmul(w, x, precision="auto"):
    """y[position, row] = sum over k of W[row, k] * x[position, k]."""
    rows = tensors.row_scales(w.kind, w.raw, w.rows, w.cols)
    if rows is not None:
        weights, scale = rows
        q, s = quantize_token(x)
        return _product(q, w.rows, lambda i: weights[i].astype(np.float64)) / s * scale
    if w.kind in tensors.BLOCK_FORMATS and precision in ("auto", "int8"):
        x = quantize_blocks(x)
    else:
        x = round_activations(x, precision)
    return _product(x, w.rows, lambda i: w.some_rows(i))


def _product(x, rows, decode_rows):
    parts = [np.arange(r, min(r + ROWS_AT_ONCE, rows)) for r in range(0, rows, ROWS_AT_ONCE)]
    return np.concatenate([x @ decode_rows(part).T for part in parts], axis=1)


# ---- the other operations -----------------------------------------------------------------------


def rmsnorm(x, gain, eps):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * gain


def hadamard(x, block):
    """The normalized Walsh-Hadamard transform of each block of columns, in Sylvester's order."""
    matrix = np.array([[1.0]])
    while len(matrix) < block:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return (x.reshape(len(x), -1, block) @ matrix / np.sqrt(block)).reshape(x.shape)


def attention(q, k, v, kv="f32", scale=0.0, window=0, sinks=None, cap=0.0):
    """Causal; q[position, head, dim], k and v[position, kv head, dim] -> [position, head * dim].

    scale: of the scores; 0: 1 / sqrt(dim). window: positions seen, the own included; 0: all before.
    sinks: a logit of each head that takes its share of the weights and gives no value. cap: a soft bound of scores.
    Over a q8_0 cache query heads and weights are 16-bit numbers, over f16 they have 13 bits.
    """
    n, heads, dim = q.shape
    group = heads // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    if kv == "q8_0":
        q = sixteen_bits(q)
    if kv == "f16":
        q = thirteen_bits(q)
    scores = np.einsum("ihd,jhd->hij", q, k) * (scale or 1 / np.sqrt(dim))
    scores = soften(scores, cap)
    scores[:, np.triu(np.ones((n, n), dtype=bool), 1)] = -np.inf
    if window:
        scores[:, np.tril(np.ones((n, n), dtype=bool), -window)] = -np.inf
    e = weights_to_13_bits(scores) if kv == "f16" else np.exp(scores - scores.max(axis=2, keepdims=True))
    total = e.sum(axis=2, keepdims=True)
    if sinks is not None:
        total += np.exp(sinks[:, None, None] - scores.max(axis=2, keepdims=True))
    e /= total
    if kv == "q8_0":
        return weighted_codes(e, v).reshape(n, -1)
    return np.einsum("hij,jhd->ihd", e, v).reshape(n, -1)


def soften(x, cap):
    return cap * np.tanh(x / cap) if cap else x


def thirteen_bits(x):
    """x to 13 significant bits."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(fraction, 13)), exponent - 13)


def weights_to_13_bits(scores):
    """The weights of scores[head, i, j], not yet divided by their sum, rounded beside the largest of each 64 j."""
    largest = scores.max(axis=2, keepdims=True)
    e = np.zeros_like(scores)
    for first in range(0, scores.shape[2], 64):
        chunk = scores[:, :, first : first + 64]
        m = chunk.max(axis=2, keepdims=True)
        m = np.where(np.isfinite(m), m, largest)  # nothing is seen: the weights are 0
        e[:, :, first : first + 64] = thirteen_bits(np.exp(chunk - m)) * np.exp(m - largest)
    return e


def sixteen_bits(x):
    """x in units of a 32767th of the largest magnitude along the last axis."""
    unit = np.maximum(np.abs(x).max(axis=-1, keepdims=True), 1e-30) / 32767
    return np.rint(x / unit) * unit


def weighted_codes(e, v):
    """Sums of e[head, i, j] * v[j, head, dim], for each block of 32 of dim and each 64 positions j.

    A weight times the scale of the value's block becomes a 16-bit number beside the others of its 64.
    """
    out = np.zeros((e.shape[1], e.shape[0], v.shape[-1]))
    for begin in range(0, v.shape[-1], 32):
        block = v[..., begin : begin + 32]
        for first in range(0, len(v), 64):
            chunk = block[first : first + 64]
            d = block_unit(chunk)[..., 0].T[:, None, :]
            weights = sixteen_bits(e[:, :, first : first + 64] * d)
            codes = np.divide(chunk, d[:, 0].T[..., None], out=np.zeros_like(chunk), where=chunk != 0)
            out[..., begin : begin + 32] += np.einsum("hij,jhd->ihd", weights, codes)
    return out


def store(x, kv):
    """Returns the values that the cache gives back; q8_0 cuts each head into blocks of 32, and the last one may be
    short."""
    if kv == "q8_0":
        blocks = np.split(x, range(32, x.shape[-1], 32), axis=-1)
        return np.concatenate([store_block(block) for block in blocks], axis=-1)
    return (
        x.astype(np.float32).astype({"f16": np.float16, "f32": np.float32}[kv]).astype(np.float64)
    )


def store_block(x):
    """One block of q8_0: a half d, and codes in units of it."""
    d = block_unit(x)
    units = np.divide(x, d, out=np.zeros_like(x), where=d > 0)
    return np.clip(np.rint(units), -127, 127) * d


def block_unit(x):
    """Returns d of a block, even of a stored one: its largest code is 127, or the block is 0."""
    return (np.abs(x).max(axis=-1, keepdims=True) / 127).astype(np.float16).astype(np.float64)


# ---- the model ----------------------------------------------------------------------------------


class Model:
    """With noise, a numpy Generator, every normed value is wrong by a few steps of float32.

    A computation in float32 makes errors of about that size, so the logits with noise show how far they alone can move
    the result: once a value falls on the other side of a rounding boundary, the activation's code differs by one, and
    later values differ by much more than float32's rounding.
    """

    def __init__(self, container, noise=None, activations="auto", long_context=False):
        self.file = container
        self.noise = noise
        self.activations = activations
        self.long_context = long_context  # longrope's factors for texts that are longer than usual
        self.name = container.get("general.architecture")
        if self.name not in ARCHITECTURES:
            raise ValueError(f"architecture {self.name} is not known to the oracle")
        self.arch = ARCHITECTURES[self.name]
        self.layers = self.number("block_count")
        self.heads = self.number("attention.head_count")
        self.kv_heads = self.number("attention.head_count_kv", self.heads)
        width = self.number("embedding_length")
        self.head_dim = self.number("attention.key_length", width // self.heads)
        self.eps = float(self._get(f"attention.layer_norm_{'' if self.arch.layer_norms else 'rms_'}epsilon"))
        self.n_rot = self.number("rope.dimension_count", self.head_dim)
        self.base = float(self._get("rope.freq_base", 10000.0))
        self.rope_scale, self.yarn = self._rope_scaling()
        self.period = self.arch.period and self.number("attention.sliding_window_pattern", self.arch.period)
        if (self.arch.input_norms or self.arch.may_lack) and not self._get("attention.sliding_window", 0):
            self.period = 0  # without a window all layers see everything
        self.rope_gain = self._get("rope.scaling.attn_factor", 1.0)
        less = self._get("rope.scaling.yarn_log_multiplier", 0.0)
        self.rope_gain *= self.yarn.gain() / self.yarn.gain(less) if self.yarn else 1.0
        self.factors = [self._factor(key) for key in ("embedding_scale", "residual_scale", "logit_scale")]
        self.deltas = self.arch.deltas and self.number("full_attention_interval", self.arch.deltas)
        self.vocabulary = container.tensor("token_embd.weight").rows

    def _turned(self, name, x):
        """Returns x as a matrix reads it, where the file says that its columns were turned."""
        if name not in self.file.get("prism.hadamard.weight_names", []):
            return x
        return hadamard(self._signs(x.shape[1]) * x, self.file.get("prism.hadamard.block_size"))

    def _signs(self, width):
        if self.file.get("prism.hadamard.sign_mode") == "identity":
            return 1.0
        widths = self.file.get("prism.hadamard.sign_widths")
        first = sum(widths[: widths.index(width)])
        return np.array(self.file.get("prism.hadamard.sign_values")[first : first + width], float)

    def _embedded(self, tokens):
        h = self.file.tensor("token_embd.weight").some_rows(np.asarray(tokens))
        if "token_embd.weight" in self.file.get("prism.hadamard.inverse_weight_names", []):
            h = hadamard(h, self.file.get("prism.hadamard.block_size")) * self._signs(h.shape[1])
        return h

    def _get(self, key, default=None):
        return self.file.get(f"{self.name}.{key}", default)

    def number(self, key, default=None):
        value = self._get(key, default)
        if not isinstance(value, int):
            raise ValueError(f"{self.name}.{key}: one integer for all layers expected")
        return value

    def _factor(self, key):
        return self._get(key) if self.arch.factors else 1.0

    def _rope_scaling(self):
        kind = self._get("rope.scaling.type", "linear")
        if kind == "longrope":
            return 1.0, None
        if kind not in ("none", "linear", "yarn"):
            raise ValueError(f"rope scaling {kind} is not known to the oracle")
        factor = self._get("rope.scaling.factor", self._get("rope.scale_linear", 1.0))
        if kind == "yarn":
            return 1.0, Yarn(
                factor,
                self.number("rope.scaling.original_context_length", self.number("context_length")),
                self._get("rope.scaling.yarn_beta_fast", 32.0),
                self._get("rope.scaling.yarn_beta_slow", 1.0),
                self.arch.yarn_between,
            )
        return (1.0 if kind == "none" or factor == 0 else 1.0 / factor), None

    def _activation(self):
        known = {"silu": silu, "swish": silu, "relu2": relu2, "relu_squared": relu2, "gelu_pytorch_tanh": gelu}
        name = self._get("hidden_activation", "")
        return known[name] if name else self.arch.activation

    def logits(self, tokens, kv="f16"):
        """float64[position, vocabulary] of a sequence that begins at position 0."""
        y = self._product(self._head().name, self.hidden(tokens, kv))
        if self.arch.capped:
            y = soften(y, self._get("final_logit_softcapping"))
        if self.file.unread:
            raise ValueError(f"unknown tensors: {sorted(self.file.unread)[:5]}")
        return y

    def hidden(self, tokens, kv="f16"):
        """float64[position, width] after the output norm."""
        window = self._get("attention.sliding_window", 0) if self.arch.window else 0
        angles = self._angles(len(tokens), self.base)
        everywhere = angles, self.rope_gain, window
        of_embedding, of_blocks, of_logits = self.factors
        near = self._near(len(tokens))
        if self.arch.alike or self.arch.still:
            angles = self._angles(len(tokens), float(self._get("rope.freq_base_swa", self.base)))
            near = angles, self.rope_gain, self.number("attention.sliding_window", 0)
        if self.arch.still and self.period:
            everywhere = 0 * angles, 1.0, window
        self.cache = []  # for each layer, the cache that attention reads: keys, values[position, kv head, dim]
        h = self._embedded(tokens)
        h = h * (np.sqrt(h.shape[1]) if self.arch.scaled else of_embedding)
        for layer in range(self.layers):
            windowed = self.period and (layer + 1) % self.period
            a = of_blocks * self._attention(layer, h, near if windowed else everywhere, kv)
            h = h + a + of_blocks * self._feed_forward(layer, h if self.arch.parallel else h + a)
        return self.norm("output_norm", h) / of_logits * (self._get("logit_scale") if self.arch.times else 1.0)

    def _angles(self, n, base):
        name = "rope_freqs.weight"  # what each pair's angle is divided by; optional
        if self.file.has("rope_factors_short.weight"):
            names = ["rope_factors_short.weight", "rope_factors_long.weight"]
            name = names[self.long_context]
            self.file.unread.discard(names[not self.long_context])
        factors = self.file.vector(name) if self.file.has(name) else 1.0
        return rope_angles(np.arange(n), self.n_rot, base, factors, self.rope_scale, self.yarn)

    def _near(self, n):
        """Windowed layers have their own angles, gain and window."""
        if not self.period:
            return None
        base = float(self._get("rope.freq_base_swa", 10000.0))
        return rope_angles(np.arange(n), self.n_rot, base), 1.0, self._get("attention.sliding_window", 0)

    def _attention(self, layer, h, where, kv):
        angles, gain, window = where
        a = self.norm(f"blk.{layer}.attn_norm", h) if self.arch.pre_norms else h
        if self.deltas and (layer + 1) % self.deltas:
            return delta.net(self, layer, a)
        q, k, v = self._queries_keys_values(layer, a)
        if self.arch.gated:
            q, gates = np.split(q.reshape(len(h), self.heads, -1), 2, axis=2)
        if self.arch.wide_norms:
            q, k = (self.norm(f"blk.{layer}.attn_{x}_norm", y) for x, y in (("q", q), ("k", k)))
        q, k, v = (x.reshape(len(h), -1, self.head_dim) for x in (q, k, v))
        if q.shape[1] != self.heads or k.shape[1] != self.kv_heads or v.shape != k.shape:
            raise ValueError(f"layer {layer}: head counts disagree with the projections")
        if self.arch.head_norms:
            q, k = (self.norm(f"blk.{layer}.attn_{x}_norm", y) for x, y in (("q", q), ("k", k)))
        q, k = (rope(x, angles, self.arch.pairing, gain) for x in (q, k))
        if self.arch.turned_norms:
            q, k = (self.norm(f"blk.{layer}.attn_{x}_norm", y) for x, y in (("q", q), ("k", k)))
        if self.arch.warmed:
            q = q * self._warmth(len(h))
        k, v = store(k, kv), store(v, kv)
        self.cache.append((k, v))
        sinks = self.file.vector(f"blk.{layer}.attn_sinks.weight") if self.arch.sinks else None
        cap = self._get("attn_logit_softcapping") if self.arch.capped else 0.0
        o = attention(q, k, v, kv, self._get("attention.scale", 0.0), window, sinks, cap)
        if self.arch.gated:
            o = o * delta.logistic(gates.reshape(len(h), -1))
        if self.arch.sub_norms:
            o = self.norm(f"blk.{layer}.attn_sub_norm", o)
        o = self.project(layer, "attn_output", o) + self._bias(layer, "attn_output")
        return self._result(layer, "post_attention_norm", o)

    def _warmth(self, n):
        """Returns [position, 1, 1]: the factor of queries."""
        step = self.number("rope.scaling.original_context_length", self.number("context_length"))
        steps = np.arange(n)[:, None, None] // step
        return 1 + self._get("attention.temperature_scale", 0.0) * np.log(1 + steps)

    def _queries_keys_values(self, layer, a):
        """Each [position, heads * dim]."""
        if self.arch.joined and self.file.has(f"blk.{layer}.attn_qkv.weight"):
            ends = np.cumsum([self.heads, self.kv_heads]) * self.head_dim
            return np.split(self.project(layer, "attn_qkv", a), ends, axis=1)
        return [self.project(layer, f"attn_{x}", a) + self._bias(layer, f"attn_{x}") for x in "qkv"]

    def _gate_and_up(self, layer, f):
        if self.arch.joined and not self.file.has(f"blk.{layer}.ffn_gate.weight"):
            return np.split(self.project(layer, "ffn_up", f), 2, axis=1)
        return self.project(layer, "ffn_gate", f), self.project(layer, "ffn_up", f)

    def _experts(self, layer, f):
        """The weighted sum of the experts that each position takes."""
        n, used = self.number("expert_count"), self.number("expert_used_count")
        scores = self.project(layer, "ffn_gate_inp", f) + self._bias(layer, "ffn_gate_inp")
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        taken = np.argsort(-p, axis=1, kind="stable")[:, :used]
        weights = np.zeros_like(p)
        np.put_along_axis(weights, taken, np.take_along_axis(p, taken, axis=1), axis=1)
        if self._get("expert_weights_norm", self.arch.normed):
            weights /= weights.sum(axis=1, keepdims=True)
        weights *= self._get("expert_weights_scale", 0.0) or 1.0
        y = np.zeros_like(f)
        for e in range(n):
            rows = np.flatnonzero(weights[:, e])
            if len(rows):
                y[rows] += weights[rows, e, None] * self._expert(layer, e, f[rows])
        return y + self._shared_expert(layer, f) if self.arch.shared else y

    def _shared_expert(self, layer, f):
        g, u = self.project(layer, "ffn_gate_shexp", f), self.project(layer, "ffn_up_shexp", f)
        share = delta.logistic(self.project(layer, "ffn_gate_inp_shexp", f))
        return share * self.project(layer, "ffn_down_shexp", self._activation()(g) * u)

    def _expert(self, layer, e, f):
        def product(name, x):
            name = f"blk.{layer}.ffn_{name}_exps"
            bias = self.file.tensor(f"{name}.bias").values()[e] if self.file.has(f"{name}.bias") else 0.0
            y = matmul(self.file.tensor(f"{name}.weight").matrix(e), x, self.activations)
            return y * self._factor_of(f"{name}.weight", e) + bias

        g, u = product("gate", f), product("up", f)
        bound = self._get("swiglu_clamp_exp", self.arch.clamp)
        if bound:
            g, u = np.minimum(g, bound), np.clip(u, -bound, bound)
        return product("down", self._activation()(g) * (u + self.arch.more))

    def _feed_forward(self, layer, h):
        norm = "post_attention_norm" if self.arch.late_norm else "attn_norm" if self.arch.parallel else "ffn_norm"
        f = self.norm(f"blk.{layer}.{norm}", h) if self.arch.pre_norms else h
        if self.arch.experts:
            return self._experts(layer, f)
        gate, up = self._gate_and_up(layer, f)
        t = self._activation()(gate) * up
        if self.arch.sub_norms:
            t = self.norm(f"blk.{layer}.ffn_sub_norm", t)
        return self._result(layer, "post_ffw_norm", self.project(layer, "ffn_down", t))

    def _result(self, layer, norm, x):
        return self.norm(f"blk.{layer}.{norm}", x) if self.arch.post_norms else x

    def project(self, layer, name, x):
        own = f"blk.{layer}.{name}_norm_in"  # of this matrix alone
        if self.arch.input_norms and self.file.has(own + ".weight"):
            x = self.norm(own, x)
        return self._product(f"blk.{layer}.{name}.weight", x)

    def _product(self, name, x):
        return matmul(self.file.tensor(name), self._turned(name, x), self.activations) * self._factor_of(name)

    def _factor_of(self, matrix, expert=0):
        """What products of a whole matrix are multiplied by; the factor of its inputs counts for nothing."""
        stem = matrix.removesuffix("weight")
        self.file.unread.discard(stem + "input_scale")
        return self.file.vector(stem + "scale")[expert] if self.file.has(stem + "scale") else 1.0

    def _bias(self, layer, name):
        name = f"blk.{layer}.{name}.bias"
        return self.file.vector(name) if self.arch.biases and self.file.has(name) else 0.0

    def norm(self, name, x):
        if self.arch.layer_norms:
            x = x - x.mean(axis=-1, keepdims=True)
        y = rmsnorm(x, self.file.vector(f"{name}.weight"), self.eps)
        return y * (1 + NOISE * self.noise.standard_normal(y.shape)) if self.noise else y

    def _head(self):
        own = self.file.has("output.weight")
        head = self.file.tensor("output.weight") if own else None
        return head if own and not self.arch.tied else self.file.tensor("token_embd.weight")
