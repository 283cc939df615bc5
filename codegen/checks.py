# SPDX-License-Identifier: Apache-2.0
"""Checks that every part of the kernel table uses."""

from __future__ import annotations

from pathlib import Path


class SpecError(Exception):
    """The table is wrong; the text says which entry and why."""


def check_keys(where: str, entry: dict, required: set[str], optional: set[str] = frozenset()):
    """Refuses unknown and missing keys of one table entry."""
    if not isinstance(entry, dict):
        raise SpecError(f"{where}: expected a table")
    for key in entry:
        if key not in required | optional:
            raise SpecError(f"{where}: unknown key '{key}'")
    for key in sorted(required - entry.keys()):
        raise SpecError(f"{where}: key '{key}' is missing")


def check_type(where: str, entry: dict, key: str, kind: type) -> None:
    if key not in entry:
        return
    is_bool = isinstance(entry[key], bool)  # which is an int to Python
    if not isinstance(entry[key], kind) or is_bool != (kind is bool):
        raise SpecError(f"{where}: key '{key}' must be of type {kind.__name__}")


def as_list(where: str, key: str, value) -> list[str]:
    """A string, or a non-empty list of distinct strings."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not items or not all(isinstance(i, str) for i in items):
        raise SpecError(f"{where}: key '{key}' must be a name or a list of names")
    for item in items:
        if items.count(item) > 1:
            raise SpecError(f"{where}: '{item}' is there twice in key '{key}'")
    return items


def check_template(where: str, name: str, template_dir: Path) -> None:
    if not (template_dir / f"{name}.c.j2").is_file():
        raise SpecError(f"{where}: template '{name}.c.j2' does not exist")
