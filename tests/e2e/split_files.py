# SPDX-License-Identifier: Apache-2.0
"""A GGUF file cut into the parts of a split model."""

import struct

import gguf_edit

U16 = 2


def u16(value):
    return U16, struct.pack("<H", value)


def i32(value):
    return gguf_edit.I32, struct.pack("<i", value)


def part_name(i, n, stem="model"):
    return f"{stem}-{i + 1:05}-of-{n:05}.gguf"


def cut(whole, n, empty_first=False):
    """n parts, as programs that split models write them: all metadata in the first."""
    total = len(whole.tensors)
    first = 1 if empty_first else 0
    bounds = [0] * first + [total * i // (n - first) for i in range(n - first + 1)]
    parts = []
    for i in range(n):
        keys = [list(entry) for entry in whole.keys] if i == 0 else []
        part = gguf_edit.Gguf(keys, whole.tensors[bounds[i] : bounds[i + 1]])
        part["split.no"] = u16(i)
        part["split.count"] = u16(n)
        part["split.tensors.count"] = i32(total)
        parts.append(part)
    return parts
