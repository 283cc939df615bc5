# SPDX-License-Identifier: Apache-2.0
"""Logits of a GGUF model by an implementation that shares no code with tern (docs/oracle.md)."""

import argparse
import sys

import numpy as np

from container import Container
from forward import Model

COSINE = 0.9999  # below this, two implementations do not compute the same model
NOISE_FACTOR = 4  # float32 may differ by so many times the noise found in a few runs


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", metavar="MODEL", help="a GGUF file")
    parser.add_argument("--tokens", required=True, metavar="1,2,3", help="token ids")
    parser.add_argument("--kv", choices=["f16", "f32", "q8_0"], default="f16", help="key/value cache")
    parser.add_argument(
        "--activations",
        choices=["auto", "int8", "fp8", "fp8-e5m2", "fp16", "bf16", "fp32"],
        default="auto",
        help="precision of activations",
    )
    parser.add_argument("--long-context", action="store_true", help="longrope's long factors")
    parser.add_argument(
        "--output", metavar="F.f64", help="write float64 logits, position by position"
    )
    parser.add_argument(
        "--compare", metavar="F.f32", help="float32 logits of all positions to compare with"
    )
    parser.add_argument(
        "--compare-kv", metavar="F.f32", help="what tern logits --dump-kv wrote, to compare with"
    )
    parser.add_argument(
        "--cosine",
        type=float,
        default=COSINE,
        metavar="C",
        help="least cosine (default %(default)s)",
    )
    parser.add_argument(
        "--noise",
        type=int,
        default=0,
        metavar="N",
        help="accept less where N runs with float32-sized errors show that rounding alone does it",
    )
    args = parser.parse_args()
    try:
        args.tokens = [int(t) for t in args.tokens.split(",")]
    except ValueError:
        parser.error("--tokens takes integers separated by commas")
    if not args.output and not args.compare and not args.compare_kv:
        parser.error("one of --output, --compare and --compare-kv is needed")
    return args


def figures(expected, actual):
    """Agreement of two float64[position, vocabulary]."""
    norms = np.linalg.norm(expected, axis=1) * np.linalg.norm(actual, axis=1)
    return {
        "cosine": (expected * actual).sum(axis=1) / norms,
        "max_abs": np.abs(expected - actual).max(),
        "top1": (expected.argmax(axis=1) == actual.argmax(axis=1)).mean(),
    }


def read_logits(path, shape):
    actual = np.fromfile(path, dtype="<f4")
    if actual.size != shape[0] * shape[1]:
        raise ValueError(f"{path} holds {actual.size} floats, not {shape[0]} x {shape[1]}")
    return actual.astype(np.float64).reshape(shape)


def least_cosine(container, args, expected):
    """Returns the value of --cosine, or less where the model itself is so sensitive to rounding."""
    bound = args.cosine
    for seed in range(args.noise):
        noisy = Model(container, np.random.default_rng(seed), args.activations, args.long_context).logits(
            args.tokens, args.kv
        )
        deviation = 1 - figures(expected, noisy)["cosine"].min()
        bound = min(bound, 1 - NOISE_FACTOR * deviation)
    return bound


def compare(expected, path, bound):
    """Prints the figures; true when the two agree."""
    result = figures(expected, read_logits(path, expected.shape))
    for position, cosine in enumerate(result["cosine"]):
        print(f"position {position:4d}  cosine {cosine:.9f}")
    worst = result["cosine"].min()
    print(
        f"min cosine {worst:.9f} (at least {bound:.9f})  "
        f"max abs difference {result['max_abs']:.3g} of {np.abs(expected).max():.3g}  "
        f"top-1 agreement {result['top1']:.4f}"
    )
    return bool(worst >= bound)  # false for NaN


def compare_cache(model, path, least):
    """Prints the least cosine of any layer's keys or values; true when it is enough."""
    expected = np.stack([np.stack(layer) for layer in model.cache])  # layer, k/v, position, head, dim
    expected = expected.transpose(0, 1, 3, 2, 4)
    layers, _, heads, positions, dim = expected.shape
    actual = np.fromfile(path, dtype="<f4").astype(np.float64)
    if actual.size != expected.size:
        raise ValueError(f"{path} holds {actual.size} floats, not {expected.shape}")
    rows = (expected.reshape(layers * 2, -1), actual.reshape(layers * 2, -1))
    worst = figures(*rows)["cosine"]
    layer, value = divmod(int(worst.argmin()), 2)
    print(
        f"keys and values: {layers} layers x {heads} heads x {positions} positions x {dim}, "
        f"min cosine {worst.min():.9f} ({'values' if value else 'keys'} of layer {layer})"
    )
    return bool(worst.min() >= least)  # false for NaN


def main():
    args = parse_arguments()
    try:
        container = Container(args.model)
        model = Model(container, activations=args.activations, long_context=args.long_context)
        if not all(0 <= t < model.vocabulary for t in args.tokens):
            raise ValueError(f"token ids lie in 0..{model.vocabulary - 1}")
        logits = model.logits(args.tokens, args.kv)
        if args.output:
            logits.astype("<f8").tofile(args.output)
        if args.compare_kv and not compare_cache(model, args.compare_kv, args.cosine):
            return 1
        if not args.compare:
            return 0
        bound = least_cosine(container, args, logits)
        return 0 if compare(logits, args.compare, bound) else 1
    except (OSError, ValueError, KeyError) as error:
        print(f"oracle: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
