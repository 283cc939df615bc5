# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_reference: python3 tests/fuzz/seeds_reference.py FOLDER

Each shows one part of the format (docs/validation.md), and one has them all.
"""

import json
import sys
from pathlib import Path

HEAD = {
    "tern_reference": 1,
    "engine": {"name": "e", "version": "1", "settings": "s"},
    "date": "d",
    "model": {"file": "m.gguf", "sha256": "ab"},
}
PARTS = {
    "tokens": {"greedy": [3]},
    "text": {"name": "n", "text": "hi", "special": True},
    "greedy": {"greedy": [3, 4], "margins": [0.5, 1]},
    "logits": {"logits": "l.f32", "first": 1},
    "some": {"some": [{"position": p, "ids": [7, 8], "logits": [-1.5, 2]} for p in (0, 2)]},
    "cache": {"keys": "k.f32", "values": "v.f32"},
}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    whole = {key: value for part in PARTS.values() for key, value in part.items()}
    for name, part in (PARTS | {"whole": whole}).items():
        reference = HEAD | {"cases": [{"tokens": [1, 2]} | part]}
        (folder / f"{name}.json").write_text(json.dumps(reference))


if __name__ == "__main__":
    main()
