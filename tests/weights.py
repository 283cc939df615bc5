# SPDX-License-Identifier: Apache-2.0
"""Reads the lists of kernels/formats.toml, for tests that go through all formats or layouts."""

import tomllib
from pathlib import Path

KERNELS = Path(__file__).parent.parent / "kernels"
TABLE = tomllib.loads((KERNELS / "formats.toml").read_text(encoding="utf-8"))
SETS = tomllib.loads((KERNELS / "kernels.toml").read_text(encoding="utf-8"))["isa"]

# Formats in blocks of 32 that the table describes in full, and that floats can become.
PLAIN = [name for name, entry in TABLE["format"].items() if entry.get("plain")]

# A ternary matrix can be packed in these layouts; the first is the usual one.
TERNARY_LAYOUTS = [
    name for name, entry in TABLE["layout"].items() if entry["input"] == "token" and "sparse" not in entry
]
DENSE_LAYOUTS = [name for name in TERNARY_LAYOUTS if TABLE["layout"][name].get("dense")]

# Kernels of rows of embeddings that plain C has alone: a row of grids is looked up, not computed.
PLAIN_EMBEDDINGS = [
    f"tern_embed_{name}_scalar" for name, entry in TABLE["format"].items() if entry.get("embed") == "embed_grid"
]


def sets_within(isa):
    """Returns an instruction set and those that it contains."""
    parent = SETS[isa].get("extends")
    return {isa} | (sets_within(parent) if parent else set())
