# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_tuning: python3 tests/fuzz/seeds_tuning.py FOLDER

Lists of choices as they stand in a file (docs/tuning.md): good ones, for the rows that every
machine has, and ones with something missing.
"""

import json
import sys
from pathlib import Path

CHOICES = {
    "q8_0": ("tern_gemv_q8_0_4x1_scalar", "tern_gemm_q8_0_4x2_scalar"),
    "i2_s": ("tern_gemv_i2_s_4x1_scalar", "tern_gemm_i2_s_4x2_scalar"),
    "f16": ("tern_gemv_f16_1x1_scalar", "tern_gemm_f16_1x1_scalar"),
}


def choice(name, gemv, gemm):
    shape = {"format": name, "rows": 64, "cols": 96, "threads": 2, "stream": 4096}
    return shape | {"gemv": gemv, "gemm": gemm}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    good = [choice(name, *rows) for name, rows in CHOICES.items()]
    seeds = {"good": good, "none": [], "object": {}, "twice": good + good}
    for key in good[0]:
        seeds[f"no-{key}"] = [{k: v for k, v in good[0].items() if k != key}]
    for name, value in seeds.items():
        (folder / f"{name}.json").write_text(json.dumps(value))


if __name__ == "__main__":
    main()
