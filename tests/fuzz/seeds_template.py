#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""First inputs of fuzz_template: tests/fuzz/seeds_template.py FOLDER. They are the templates, statements and
expressions of tests/templates."""

import ast
import sys
from pathlib import Path


def constants(source):
    """Values of the constants of a module, without running it: it needs Jinja2."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign):
            try:
                yield statement.targets[0].id, ast.literal_eval(statement.value)
            except ValueError:
                continue


def main():
    folder = Path(sys.argv[1])
    path = Path(__file__).resolve().parents[1] / "templates" / "test_templates.py"
    found = dict(constants(path.read_text(encoding="utf-8")))
    seeds = [*found["STATEMENTS"], *found["TEMPLATES"].values()]
    seeds += ["{{ " + part + " }}" for line in found["EXPRESSIONS"].splitlines() for part in line.split(" | ")]
    for i, seed in enumerate(seeds):
        (folder / f"{i:04d}").write_bytes(seed.encode() + b"\0Hi <|im_end|>\n there\0" + b'[{"type": "function", "function": {"name": "f", "parameters": {"n": 1.5}}}]')


if __name__ == "__main__":
    main()
