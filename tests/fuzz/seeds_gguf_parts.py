#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for fuzz_gguf_parts into a folder: parts of split models, one behind the other."""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import gguf_edit
from gguf_edit import Gguf, Tensor, string, u32

U16 = 2


def part(number, count, tensors, total, **keys):
    file = Gguf([], [Tensor(name, [8], 0, bytes(32)) for name in tensors])
    file["split.no"] = U16, struct.pack("<H", number)
    file["split.count"] = U16, struct.pack("<H", count)
    file["split.tensors.count"] = gguf_edit.I32, struct.pack("<i", total)
    for key, value in keys.items():
        file[key.replace("_", ".")] = value
    return file.to_bytes()


def main(folder):
    first = part(0, 2, ["a", "b"], 3, general_architecture=string("llama"))
    seeds = [
        first + part(1, 2, ["c"], 3),
        first + part(1, 2, ["b"], 3),
        first + part(1, 2, ["c"], 3, general_architecture=string("qwen2")),
        part(0, 3, [], 2) + part(1, 3, ["x"], 2) + part(2, 3, ["y"], 2),
        part(1, 2, ["c"], 3) + first,
        part(0, 2, ["a"], 2, general_alignment=u32(32)) + part(1, 2, ["b"], 2),
    ]
    for i, seed in enumerate(seeds):
        (Path(folder) / f"seed-{i:02}").write_bytes(seed)


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    main(sys.argv[1])
