#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes an IEBIN folder of a Hugging Face model's folder: `tern convert --to iebin` under a known name.

scripts/hf_to_iebin.py --hf-dir FOLDER --out-dir FOLDER [--q4-map q4_manifest.json] [-- OPTIONS OF tern convert]
"""

import argparse

import known_names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hf-dir", required=True, help="config.json, weights, tokenizer.json")
    parser.add_argument("--out-dir", required=True, help="becomes model.ie.json, model.ie.bin and model.ie.gguf")
    parser.add_argument("--q4-map", help="which matrices become int4, and how: q4_manifest.json")
    given = known_names.arguments(parser, "convert")
    words = ["convert", given.hf_dir, given.out_dir, "--to", "iebin"]
    words += ["--q4-map", given.q4_map] if given.q4_map else []
    known_names.run(given, *words)


if __name__ == "__main__":
    main()
