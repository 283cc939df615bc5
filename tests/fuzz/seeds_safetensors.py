#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for fuzz_safetensors into a folder: small files of each kind, good and nearly good."""

import json
import struct
import sys
from pathlib import Path

TYPES = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,
    "U8": 1,
    "BOOL": 1,
    "F8_E4M3": 1,
    "F4": 1,
}


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def file(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def main(folder):
    seeds = [file({}), file({"__metadata__": {"format": "pt"}}), file(b"{}      ")]
    for dtype, size in TYPES.items():
        n = 6 * size
        seeds.append(file({"model.norm.weight": entry(dtype, [2, 3], 0, n)}, bytes(n)))
    many, at = {}, 0
    for i, (dtype, size) in enumerate(TYPES.items()):
        many[f"model.layers.{i}.mlp.up_proj.weight"] = entry(dtype, [i], at, at + i * size)
        at += i * size
    seeds.append(file(many, bytes(at)))
    seeds.append(file({"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 3, 7)}, bytes(7)))
    seeds.append(file({"a": entry("U8", [2**32, 2**32], 0, 0)}))
    for i, seed in enumerate(seeds):
        (Path(folder) / f"seed-{i:02}").write_bytes(seed)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    main(sys.argv[1])
