# SPDX-License-Identifier: Apache-2.0
"""Gated delta nets in float64, token by token (docs/numerics.md, Delta nets)."""

import numpy as np


def logistic(g):
    return 1 / (1 + np.exp(-g))


def unit(x):
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + 1e-6)


def convolve(x, taps):
    """y[position, channel]: sums over the last positions, by taps[channel, age] with the youngest last."""
    n = taps.shape[1]
    padded = np.pad(x, ((n - 1, 0), (0, 0)))
    return sum(padded[t : t + len(x)] * taps[:, t] for t in range(n))


def delta_rule(q, k, v, decay, beta):
    """Gated delta nets: q, k, v[position, head, dim], decay and beta[position, head]."""
    state = np.zeros((*q.shape[1:], v.shape[2]))
    o = np.zeros_like(v)
    for i in range(len(q)):
        state *= decay[i, :, None, None]
        change = beta[i, :, None] * (v[i] - np.einsum("hk,hkv->hv", k[i], state))
        state += np.einsum("hk,hv->hkv", k[i], change)
        o[i] = np.einsum("hk,hkv->hv", q[i], state)
    return o


def rates(model, layer, a, keys):
    """Returns alpha and beta of all states."""
    if not model.arch.grouped:
        return (model.project(layer, x, a) for x in ("ssm_alpha", "ssm_beta"))
    joined = model.project(layer, "ssm_ba", a).reshape(len(a), keys, 2, -1)
    return joined[:, :, 1].reshape(len(a), -1), joined[:, :, 0].reshape(len(a), -1)


def net(model, layer, a):
    """The result of a layer for normed rows a[position, width]."""
    keys, states = model.number("ssm.group_count"), model.number("ssm.time_step_rank")
    dim = model.number("ssm.state_size")
    mixed, z = (model.project(layer, x, a) for x in ("attn_qkv", "attn_gate"))
    alpha, beta = rates(model, layer, a, keys)
    rate, bias = (model.file.vector(f"blk.{layer}.{x}") for x in ("ssm_a", "ssm_dt.bias"))
    taps = model.file.tensor(f"blk.{layer}.ssm_conv1d.weight").some_rows(np.arange(mixed.shape[1]))
    c = convolve(mixed, taps)
    heads = (c * logistic(c)).reshape(len(a), -1, dim)
    q, k, v = np.split(heads, [keys, 2 * keys], axis=1)
    share = np.repeat(np.arange(keys), states // keys) if model.arch.grouped else np.arange(states) % keys
    q, k = unit(q)[:, share], unit(k)[:, share]
    decay = np.exp(rate * np.logaddexp(0, alpha + bias))
    o = delta_rule(q / np.sqrt(dim), k, v, decay, logistic(beta))
    o = model.norm(f"blk.{layer}.ssm_norm", o).reshape(len(a), -1) * z * logistic(z)
    return model.project(layer, "ssm_out", o)
