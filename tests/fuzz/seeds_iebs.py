#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for fuzz_iebs into a folder: matrices of sparse blocks with values of every kind."""

import struct
import sys
from pathlib import Path

BYTES = {0: 32, 1: 16, 2: 2}  # bits of a value, by its kind


def seed(kind, rows, cols, h, w, places, fill=0, sizes=False):
    """`places`: the columns of blocks in each block row. With `sizes` the newest version, which tells them."""
    blocks = [column for row in places for column in row]
    start = [sum(map(len, places[:i])) for i in range(len(places) + 1)]
    scale = 0x3F000000 if kind == 2 else 0
    version = 3 if sizes else 2 if kind else 1
    values = bytes([fill]) * (len(blocks) * h * w * BYTES[kind] // 8)
    data = struct.pack("<9I", 0x53424549, version, rows, cols, h, w, len(blocks), kind, scale)
    told = (len(places), 4 * len(start), 4 * len(blocks), len(values))
    data += struct.pack("<I3Q", *told) if sizes else bytes(8)
    data += struct.pack(f"<{len(start) + len(blocks)}I", *start, *blocks)
    if kind:
        data += bytes(-len(data) % 64)
    return data + values


def main(folder):
    seeds = [
        seed(0, 4, 4, 2, 2, [[1], [0]]),
        seed(0, 3, 70, 4, 4, [[0, 3, 17]]),
        seed(0, 9, 9, 16, 64, [[]]),
        seed(1, 5, 5, 3, 2, [[0, 2], [1]], 0x20),
        seed(2, 20, 40, 4, 8, [[0, 1], [], [4], [0], [2, 3]], 0x55),
        seed(2, 20, 70, 16, 64, [[0, 1], [1]], 0x64),
        seed(2, 32, 128, 32, 128, [[0]], 0x99),
        seed(0, 3, 70, 4, 4, [[0, 3, 17]], sizes=True),
        seed(1, 5, 5, 3, 2, [[0, 2], [1]], 0x20, sizes=True),
        seed(2, 20, 40, 4, 8, [[0, 1], [], [4], [0], [2, 3]], 0x55, sizes=True),
    ]
    for i, each in enumerate(seeds):
        (Path(folder) / f"seed-{i:02}").write_bytes(each)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    main(sys.argv[1])
