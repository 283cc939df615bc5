#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for fuzz_importance into a folder: small files of both forms, good and nearly good."""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import gguf_edit  # noqa: E402


def entry(name, sums, chunks=2):
    return struct.pack(f"<i{len(name)}sii{len(sums)}f", len(name), name.encode(), chunks, len(sums), *sums)


def old(entries, end=b""):
    return struct.pack("<i", len(entries)) + b"".join(entries) + end


def new(tensors, kind="imatrix"):
    file = gguf_edit.Gguf([], [])
    file["general.type"] = gguf_edit.string(kind)
    file["imatrix.datasets"] = gguf_edit.strings(["text.txt"])
    file["imatrix.chunk_count"] = gguf_edit.u32(2)
    for name, values, ne in tensors:
        file.tensors.append(gguf_edit.Tensor(name, ne, 0, struct.pack(f"<{len(values)}f", *values)))
    return file.to_bytes()


def main(folder):
    q, k = entry("blk.0.attn_q.weight", [1, 2, 3, 4]), entry("blk.0.attn_k.weight", [0, 0, 0])
    end = struct.pack("<ii3s", 7, 3, b"txt")
    pair = [("a.in_sum2", [1, 2, 3, 4], [4]), ("a.counts", [5], [1])]
    seeds = [
        old([q, k], end), old([q]), old([q, q]), old([q], end[:4]), old([]), old([entry("x", [-1.0])]),
        new(pair), new(pair[:1]), new(pair, "model"), new([]),
        new([("a.in_sum2", [1] * 8, [4, 2]), ("a.counts", [5, 6], [1, 2])]),
        new([("a.in_sum2", [1] * 4 + [0] * 4, [4, 2]), ("a.counts", [5, 0], [1, 2])]),
        new([("a.in_sum2", [0] * 8, [4, 2]), ("a.counts", [0, 0], [1, 2])]),
        new([("a.in_sum2", [float("inf")] * 4, [4]), ("a.counts", [0], [1])]),
    ]
    for i, seed in enumerate(seeds):
        (Path(folder) / f"seed-{i:02}").write_bytes(seed)


if __name__ == "__main__":
    main(sys.argv[1])
