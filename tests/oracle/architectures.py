# SPDX-License-Identifier: Apache-2.0
"""The architectures that the oracle knows, and their activations."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


def silu(g):
    return g / (1 + np.exp(-g))


def relu2(g):
    return np.maximum(g, 0) ** 2


def quick(g):
    return g / (1 + np.exp(-1.702 * g))


def gelu(g):
    return 0.5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3)))


class Architecture(NamedTuple):
    pairing: str  # of rope
    activation: Callable
    sub_norms: bool  # a norm in front of attn_output and of ffn_down
    tied: bool  # the head is the embedding, even if the file holds another
    biases: bool  # of the query, key and value projections, where the file has them
    head_norms: bool = False  # of each head of queries and keys, before rope
    turned_norms: bool = False  # of each head of queries and keys, after rope
    layer_norms: bool = False  # norms are LayerNorms without biases
    parallel: bool = False  # both halves of a block read the same norm
    capped: bool = False  # the file has soft bounds of scores and logits
    shared: bool = False  # one more expert that all positions take, by as much as a gate says
    times: bool = False  # the file has a factor of logits
    warmed: bool = False  # queries grow with their position, where the file says it
    post_norms: bool = False  # of the rows that attention and the feed-forward part add
    pre_norms: bool = True  # in front of attention and of the feed-forward part
    scaled: bool = False  # embeddings are multiplied by the root of their width
    period: int = 0  # all but every so many layers see a window only; 0: none does
    wide_norms: bool = False  # of all heads of queries, and of keys, as one vector
    factors: bool = False  # the file has factors of embeddings, of the rows that blocks add, of logits
    window: bool = False  # the file may have a window that all layers see
    joined: bool = False  # q, k and v may be one matrix, gate and up another
    experts: bool = False  # each position takes some of many feed-forward parts
    normed: bool = False  # their weights are divided by their sum
    clamp: float = 0.0  # gates are at most this, their factors at most this in magnitude; 0: unbounded
    input_norms: bool = False  # matrices may have norms of the rows that they read
    still: bool = False  # layers that see everything turn nothing, the others by the file's base
    may_lack: bool = False  # without a window all layers are of one kind, and turn
    alike: bool = False  # but for the window all layers are of one kind
    sinks: bool = False  # of attention
    late_norm: bool = False  # the norm before the feed-forward part has the name of one after attention
    more: float = 0.0  # what the factor of the activation is raised by
    yarn_between: bool = False  # of Yarn
    deltas: int = 0  # all but every so many layers are gated delta nets
    gated: bool = False  # queries of a head have as many gates beside them
    grouped: bool = False  # states that share a head stand beside each other, their decays and changes in one matrix


ARCHITECTURES = {
    "llama": Architecture("norm", silu, sub_norms=False, tied=False, biases=True, window=True),
    "phi3": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, window=True, joined=True
    ),
    "olmo2": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, pre_norms=False, post_norms=True,
        wide_norms=True,
    ),
    "minicpm": Architecture(
        "norm", silu, sub_norms=False, tied=False, biases=False, factors=True
    ),
    "granite": Architecture(
        "norm", silu, sub_norms=False, tied=False, biases=False, factors=True
    ),
    "qwen2": Architecture("neox", silu, sub_norms=False, tied=False, biases=True),
    "qwen3": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, head_norms=True, input_norms=True
    ),
    "qwen35": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, head_norms=True, late_norm=True,
        deltas=4, gated=True,
    ),
    "qwen35moe": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, head_norms=True, late_norm=True,
        deltas=4, gated=True, experts=True, normed=True, shared=True,
    ),
    "qwen3next": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, head_norms=True, late_norm=True,
        deltas=4, gated=True, experts=True, normed=True, shared=True, grouped=True,
    ),
    "qwen2moe": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=True, experts=True, shared=True
    ),
    "qwen3moe": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, head_norms=True, experts=True,
        normed=True,
    ),
    "olmoe": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, wide_norms=True, experts=True
    ),
    "maple": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, head_norms=True, experts=True,
        normed=True, clamp=7.0, period=4, still=True,
    ),
    "smollm3": Architecture(
        "norm", silu, sub_norms=False, tied=False, biases=True, period=4, still=True
    ),
    "seed_oss": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=True, late_norm=True
    ),
    "ernie4_5": Architecture("norm", silu, sub_norms=False, tied=False, biases=True),
    "glm4": Architecture(
        "norm", silu, sub_norms=False, tied=False, biases=True, post_norms=True, joined=True
    ),
    "hunyuan-dense": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, turned_norms=True
    ),
    "mistral3": Architecture(
        "norm", silu, sub_norms=False, tied=False, biases=True, warmed=True
    ),
    "cohere2": Architecture(
        "norm", silu, sub_norms=False, tied=True, biases=False, period=4, still=True,
        layer_norms=True, parallel=True, times=True,
    ),
    "exaone4": Architecture(
        "neox", silu, sub_norms=False, tied=False, biases=False, head_norms=True, pre_norms=False,
        post_norms=True, period=4, still=True, may_lack=True,
    ),
    "gpt-oss": Architecture(
        "neox", quick, sub_norms=False, tied=False, biases=True, experts=True, normed=True,
        clamp=7.0, period=2, alike=True, sinks=True, late_norm=True, more=1.0, yarn_between=True,
    ),
    "gemma2": Architecture(
        "neox", gelu, sub_norms=False, tied=False, biases=False, post_norms=True, scaled=True,
        period=2, alike=True, capped=True,
    ),
    "gemma3": Architecture(
        "neox", gelu, sub_norms=False, tied=False, biases=False, head_norms=True, post_norms=True,
        scaled=True, period=6, input_norms=True,
    ),
    "bitnet": Architecture("neox", silu, sub_norms=True, tied=True, biases=False),
    "bitnet-25": Architecture("neox", relu2, sub_norms=True, tied=True, biases=False),
    "bitnet-b1.58": Architecture("neox", relu2, sub_norms=True, tied=True, biases=False),
}
