#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what tensors of a model share: `tern dedup --out-prefix` under a known name.

tools/dedup_extract_int4.py --model-dir FOLDER --tensor-map tensor_map.json --groups groups.indices.json \
--out-prefix dedup_out/model
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

BUILT = Path(__file__).resolve().parents[1] / "build" / "tern"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model-dir", required=True, help="an IEBIN folder, or a model's file")
    parser.add_argument("--tensor-map", help="names of the numbers in --groups: tensor_map.json")
    parser.add_argument("--groups", default="auto", help="groups.indices.json, or auto, which finds them")
    parser.add_argument("--out-prefix", required=True, help="becomes PREFIX.defaults.bin, .masks.bin, ...")
    parser.add_argument("--tern", help="the program; without it the built one, or that of the path")
    parser.add_argument("options", nargs="*", help="of tern dedup")
    given = parser.parse_args()
    program = given.tern or (str(BUILT) if os.access(BUILT, os.X_OK) else shutil.which("tern"))
    if program is None:
        sys.exit("dedup_extract_int4: there is no program tern: build it with `make`, or name it with --tern")
    try:
        Path(given.out_prefix).resolve().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"dedup_extract_int4: {error.filename}: {error.strerror}")
    command = [program, "dedup", given.model_dir, "--out-prefix", given.out_prefix, "--groups", given.groups]
    command += ["--tensor-map", given.tensor_map] if given.tensor_map else []
    try:
        sys.exit(subprocess.run(command + given.options).returncode)
    except OSError as error:
        sys.exit(f"dedup_extract_int4: {program}: {error.strerror}")


if __name__ == "__main__":
    main()
