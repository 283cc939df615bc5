#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes an IEBIN folder of a Hugging Face model's folder: `tern convert --to iebin` under a known name.

scripts/hf_to_iebin.py --hf-dir FOLDER --out-dir FOLDER [--q4-map q4_manifest.json] [-- OPTIONS OF tern convert]
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
    parser.add_argument("--hf-dir", required=True, help="config.json, weights, tokenizer.json")
    parser.add_argument("--out-dir", required=True, help="becomes model.ie.json, model.ie.bin and model.ie.gguf")
    parser.add_argument("--q4-map", help="which matrices become int4, and how: q4_manifest.json")
    parser.add_argument("--tern", help="the program; without it the built one, or that of the path")
    parser.add_argument("options", nargs="*", help="of tern convert")
    given = parser.parse_args()
    program = given.tern or (str(BUILT) if os.access(BUILT, os.X_OK) else shutil.which("tern"))
    if program is None:
        sys.exit("hf_to_iebin: there is no program tern: build it with `make`, or name it with --tern")
    command = [program, "convert", given.hf_dir, given.out_dir, "--to", "iebin"]
    command += ["--q4-map", given.q4_map] if given.q4_map else []
    try:
        sys.exit(subprocess.run(command + given.options).returncode)
    except OSError as error:
        sys.exit(f"hf_to_iebin: {program}: {error.strerror}")


if __name__ == "__main__":
    main()
