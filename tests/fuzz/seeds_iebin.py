#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for fuzz_iebin into a folder: lists of tensors in every form, good and nearly good."""

import json
import struct
import sys
from pathlib import Path

import seeds_iebs

TYPES = {"f32": 4, "BF16": 2, "f16": 2, "u8": 1, "i8": 1, "mx9": 1}
ZEROS = "257b09a147b82a19"  # XXH64 of 64 bytes of zeros
KEYS = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + struct.pack("<Q1sIB", 1, b"a", 7, 1)


def entry(name, dtype, shape, offset, **fields):
    return {"name": name, "dtype": dtype, "shape": shape, "file_data_offset": offset} | fields


def int4(name, shape, offset, group, affine=False, **fields):
    made = {"scheme": "affine", "nibble": "unsigned", "zero_point": "u8"} if affine else {}
    usual = {"scheme": "symmetric", "nibble": "biased", "zero_point": "none", "nibble_order": "low_first"}
    rest = {"scale_dtype": "f16", "scales": "after_each_row", "group": group}
    return entry(name, "int4", shape, offset, **(usual | rest | made | fields))


def model(*tensors):
    """A GGUF file of f32 tensors of zeros: (name, columns, rows)."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), 0)
    for i, (name, cols, rows) in enumerate(tensors):
        head += struct.pack(f"<Q{len(name)}sIQQIQ", len(name), name.encode(), 2, cols, rows, 0, 64 * i)
    return head + bytes(-len(head) % 32 + 64 * len(tensors))


def beside(entries, tensors, file=seeds_iebs.seed(0, 4, 4, 2, 2, [[1], [0]])):
    """Sparse layers beside a model: the blocks, which are the files of all entries, and the model."""
    return seed(listed(entries), file + model(*tensors))


def sparse(name, shape, **fields):
    return entry(name, "iebs", shape, 0, nbytes=96, replaces_xxh64=ZEROS) | fields


def listed(tensors, **fields):
    return {"version": 2, "tensors": tensors} | fields


def seed(root, data=bytes(256)):
    return json.dumps(root).encode() + b"\0" + data


def main(folder):
    seeds = [seed(listed([])), seed([]), seed(listed([], keys="k.gguf"), KEYS)]
    many = []
    for dtype, size in TYPES.items():
        n = 6 * size
        seeds.append(seed(listed([entry("model.norm.weight", dtype, [2, 3], 0, nbytes=n)])))
        many.append(entry(dtype, dtype, [2, 3], 24 * len(many), file="a.bin", nbytes=n))
    seeds.append(seed(listed(many)))
    seeds.append(seed(listed([entry("a", "q8_0", [1, 32], 0), entry("b", "I2_S", [2, 64], 64)], bin="b.bin")))
    seeds.append(seed(listed([entry("a", "u8", [4], 0, file="a"), entry("b", "u8", [4], 3, file="a")])))
    seeds.append(seed(listed([entry("a", "u8", [4], 0, file="a", shard="a", shard_data_offset=0)])))
    seeds.append(seed(listed([entry("a", "u8", [2**32, 2**32], 0)], weights={"bin": "w"})))
    seeds.append(seed(listed([{"name": "a", "dtype": "U8", "shape": [], "offset": 0}], version=1, iebin={"weights_bin": "w"})))
    seeds.append(seed(listed([entry("a", "tl1", [256, 128], 0), entry("b", "tl2", [256, 96], 0)])))
    for group in (32, 64, 128, "row"):
        seeds.append(seed(listed([int4("a", [2, 96], 0, group), int4("b", [1, 64], 128, group, True)])))
    seeds.append(seed(listed([int4("a", [2, 32], 0, 32, nibble="twos_complement", nibble_order="high_first", nbytes=36)])))
    one = ("a", 4, 4)
    seeds.append(beside([sparse("a", [4, 4])], [one]))
    seeds.append(beside([sparse("a", [4, 4])], [one, ("b", 4, 4)]))
    seeds.append(beside([sparse("b", [4, 4])], [one]))
    seeds.append(beside([sparse("a", [4, 4])], [("a", 8, 2)]))
    seeds.append(beside([sparse("a", [4, 4], replaces_xxh64="0" * 16)], [one]))
    seeds.append(beside([sparse("a", [4, 4], replaces_xxh64=7)], [one]))
    seeds.append(beside([sparse("a", [2, 8])], [one]))
    seeds.append(beside([sparse("a", [4, 4]), entry("b", "f32", [4], 64)], [one, ("b", 4, 1)]))
    for i, each in enumerate(seeds):
        (Path(folder) / f"seed-{i:02}").write_bytes(each)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    main(sys.argv[1])
