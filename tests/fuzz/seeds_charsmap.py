#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small tables of replacements as seeds of fuzz_charsmap: seeds_charsmap.py FOLDER."""

import struct
import sys
from pathlib import Path

HAS_VALUE, VALUE = 1 << 8, 1 << 31


def table(entries):
    """A double-array trie of {bytes: bytes}: each node gets a block of its own."""
    units, texts, free = {}, bytearray(), 1

    def place(at, label, below):
        """Places a node, and the nodes below it: {rest of a key: value}."""
        nonlocal free
        block, children = free << 8, {}
        free += 1
        units[at] = (at ^ block) << 10 | label | (HAS_VALUE if b"" in below else 0)
        for key, value in below.items():
            if key:
                children.setdefault(key[0], {})[key[1:]] = value
            else:
                units[block] = VALUE | len(texts)
                texts.extend(value + b"\0")
        for byte, rest in children.items():
            place(block ^ byte, byte, rest)

    place(0, 0, entries)
    packed = b"".join(struct.pack("<I", units.get(i, 0)) for i in range(free << 8))
    return struct.pack("<I", len(packed)) + packed + bytes(texts)


TABLES = {
    "few": {b"e": b"x", "e\u0301".encode(): "\u00e9".encode(), b"xyz": b""},
    "wide": {"\uff21".encode(): b"A", "\u3000".encode(): b" ", "\ufb01".encode(): b"fi"},
    "deep": {b"a" * n: b"b" * n for n in (1, 3, 5)},
}


def main(folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, entries in TABLES.items():
        tail = b"".join(entries) + b"\0"  # texts that the table knows
        (Path(folder) / name).write_bytes(table(entries) + tail)


if __name__ == "__main__":
    main(sys.argv[1])
