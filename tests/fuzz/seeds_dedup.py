#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for fuzz_dedup into a folder: indexes of shared bytes, good and nearly good."""

import json
import sys
from pathlib import Path

BYTES = bytes(range(64)) + bytes([0x12, 0, 0, 0, 0, 0, 0, 0x80]) + bytes(56)  # 128 after the index


def default(number, **fields):
    return {"tensor_index": number, "nbytes": 64, "default_off": 0} | fields


def target(number, **fields):
    return {"tensor_index": number, "nbytes": 64} | fields


def masked(number, **fields):
    places = {"mask_off": 64, "mask_nbytes": 8, "exc_off": 0, "exc_nbytes": 3, "exc_popcount": 3}
    return target(number) | places | fields


def index(*groups, **fields):
    names = ("defaults", "masks", "exceptions", "base")
    files, totals = dict.fromkeys(names, "f"), {f"{name}_size": len(BYTES) for name in names}
    groups = [{"default": first, "targets": list(targets)} for first, *targets in groups]
    return {"magic": "DUDP", "version": 1, "groups": groups, "files": files, "totals": totals} | fields


def main(folder):
    base = {"file": "base", "nbytes": 64, "default_off": 1}
    half = {"tensor_index": 0, "nbytes": 32, "default_off": 3}
    sums = [{"tensor_index": 0, "name": "a", "nbytes": 64, "xxh64": "0123456789abcdef"}]
    seeds = [
        index((default(0), target(1))),
        index((default(0), masked(1))),
        index((base, target(0), masked(1))),
        index((half, half | {"tensor_off": 32}), (base, masked(1))),
        index((default(0), masked(1)), tensors=sums),
        index((default(0), masked(1)), (default(1), target(0))),
        index((default(0), masked(1, exc_popcount=4))),
        index((default(0), masked(1, mask_off=60))),
        index((default(0), target(1)), ({"tensor_index": 3, "nbytes": 16, "default_off": 0},)),
        index((default(0), target(1)), totals={}),
        index(version=2),
    ]
    for i, each in enumerate(seeds):
        (Path(folder) / f"seed-{i:02}").write_bytes(json.dumps(each).encode() + BYTES)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    main(sys.argv[1])
