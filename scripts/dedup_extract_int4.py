#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the blocks that tensors of a model share: it is `tern dedup --out-prefix` under a known name.

scripts/dedup_extract_int4.py --model-dir FOLDER --tensor-map tensor_map.json --groups groups.indices.json \
--out-prefix dedup_out/model
"""

import argparse
import sys
from pathlib import Path

import known_names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model-dir", required=True, help="an IEBIN folder, or a model's file")
    parser.add_argument("--tensor-map", help="names of the numbers in --groups: tensor_map.json")
    parser.add_argument("--groups", default="auto", help="groups.indices.json, or auto, which finds them")
    parser.add_argument("--out-prefix", required=True, help="becomes PREFIX.defaults.bin, .masks.bin, ...")
    given = known_names.arguments(parser, "dedup")
    try:
        Path(given.out_prefix).resolve().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"dedup_extract_int4: {error.filename}: {error.strerror}")
    words = ["dedup", given.model_dir, "--out-prefix", given.out_prefix, "--groups", given.groups]
    words += ["--tensor-map", given.tensor_map] if given.tensor_map else []
    known_names.run(given, *words)


if __name__ == "__main__":
    main()
