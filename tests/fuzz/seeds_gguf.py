#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""First inputs of fuzz_gguf: tests/fuzz/seeds_gguf.py FOLDER

Files of one ternary tensor each, in the types and sizes that are told apart by their bytes; and adapters.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import gguf_edit

ROWS, COLS = 64, 256
I2_S, TL1, TL2 = 36, 38, 39
SCALE = bytes.fromhex("0000003f").ljust(32, b"\0")
ZERO_PAIRS = b"\x44"  # index 4 twice


def main(folder):
    n = ROWS * COLS
    triples = bytes(ROWS * 192 // 6) + bytes(ROWS * 192 // 24)  # 0 0 0, no signs
    tl2 = (triples + ZERO_PAIRS * (ROWS * 64 // 4)).ljust(64 * ROWS, b"\0") + SCALE
    tensors = {
        "i2_s": (I2_S, b"\x55" * (n // 4) + SCALE),
        "tl1": (TL1, ZERO_PAIRS * (n // 4) + SCALE),
        "tl2": (TL2, tl2),
        "mxfp4": (TL2, bytes(n // 32 * 17)),
        "iq1_bn": (134, (b"\0\x38" + b"\x80" * (COLS // 64 * 13)) * ROWS),
        "iq2_bn": (135, (b"\0\0\0\x3f" + b"\x55" * (COLS // 4)) * ROWS),
        "iq2_bn_r4": (335, (b"\0\0\0\x3f" * 4 + b"\x55" * COLS) * (ROWS // 4)),
    }
    for name, (kind, data) in tensors.items():
        tensor = gguf_edit.Tensor("t", [COLS, ROWS], kind, data)
        keys = [["general.architecture", *gguf_edit.string("bitnet")]]
        (folder / f"seed-{name}.gguf").write_bytes(gguf_edit.Gguf(keys, [tensor]).to_bytes())

    for kind, size in ((0, 4), (1, 2), (30, 2)):
        keys = [["general.architecture", *gguf_edit.string("llama")], ["general.type", *gguf_edit.string("adapter")],
                ["adapter.type", *gguf_edit.string("lora")], ["adapter.lora.alpha", *gguf_edit.f32(4.0)]]  # fmt: skip
        halves = [("blk.0.attn_q.weight", 8, 8), ("blk.0.attn_k.weight", 8, 4), ("blk.0.ffn_down.weight", 4, 8)]
        pairs = [gguf_edit.Tensor(f"{name}.lora_{half}", ne, kind, bytes(ne[0] * ne[1] * size))
                 for name, cols, rows in halves for half, ne in (("a", [cols, 2]), ("b", [2, rows]))]  # fmt: skip
        (folder / f"seed-adapter-{kind}.gguf").write_bytes(gguf_edit.Gguf(keys, pairs).to_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
