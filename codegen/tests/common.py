# SPDX-License-Identifier: Apache-2.0
"""The generator's tests share these: the table that they edit, and a folder of their own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "codegen"), str(ROOT / "tests")]

# The tests edit this table, so kernels/kernels.toml may change without them.
FIXTURE = Path(__file__).resolve().parent / "table.toml"
TABLE = FIXTURE.read_text(encoding="utf-8")


class InFolder(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="tern-codegen-")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def generate(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, str(ROOT / "codegen" / "gen.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)
