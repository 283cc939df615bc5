# SPDX-License-Identifier: Apache-2.0
"""Writes the results of a program that counted as a document of docs/report/counts, which lab/page_counts.py shows in a
page."""

from __future__ import annotations

import datetime
import json
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """Returns the commit of the source that counted, with a mark when files differ from it."""
    said = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12"],
                          capture_output=True, text=True)  # fmt: skip
    return said.stdout.strip() or "unknown"


def command() -> str:
    """Returns the command as it was typed, from the root of the tree."""
    words = [Path(sys.argv[0]).resolve().relative_to(ROOT).as_posix(), *sys.argv[1:]]
    return shlex.join(words)


def write(path: str | Path, what: str, **found: object) -> None:
    """`found` is columns and rows of a table, or figures by name."""
    document = {"what": what, "command": command(), "date": f"{datetime.date.today()}", "commit": commit(), **found}
    Path(path).write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
