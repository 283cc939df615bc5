# SPDX-License-Identifier: Apache-2.0
"""Section [blocks] of the kernel table: what a layout of block formats has for 32 columns of 16 rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from checks import SpecError, check_keys, check_type


@dataclass(frozen=True)
class Blocks:
    """One layout's line. `codes` and `scales` name templates in the folders of these names."""

    codes: str
    scales: str
    header: int
    shared: int
    per: int
    excess: int


def load_line(where: str, entry: dict, template_dir: Path) -> Blocks:
    kinds = {f.name: {"str": str, "int": int}[f.type] for f in fields(Blocks)}
    check_keys(where, entry, set(kinds))
    for key, kind in kinds.items():
        check_type(where, entry, key, kind)
        if kind is str and not (template_dir / key / f"{entry[key]}.c.j2").is_file():
            raise SpecError(f"{where}: template '{key}/{entry[key]}.c.j2' does not exist")
        if kind is int and entry[key] < (key == "per"):
            raise SpecError(f"{where}: key '{key}' must be at least {int(key == 'per')}")
    return Blocks(**entry)


def load_blocks(entries: dict, layouts: set[str], template_dir: Path) -> dict[str, Blocks]:
    """A line for each layout that matrix products of block formats read."""
    for name in entries:
        if name not in layouts:
            raise SpecError(f"blocks.{name}: not in TERN_LAYOUT_LIST of include/tern/kernels.h")
    return {n: load_line(f"blocks.{n}", e, template_dir) for n, e in entries.items()}
