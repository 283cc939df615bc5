# SPDX-License-Identifier: Apache-2.0
"""Counts the files that name one format and one layout: docs/adding-a-kernel.md says how many places another one
needs."""

import re
import unittest

from documents import ROOT
import suite

FOLDERS = (
    "authoring", "base", "bench", "cmake", "codegen", "device", "dispatch", "docs", "include", "kernels", "lab",
    "python", "receipts", "runtime", "serve", "tests", "threads", "tools",
)  # fmt: skip
# These files tell of the past or of measurements; none of them needs a line for a new format.
HISTORY = ("docs/receipts/", "docs/report/", "docs/adding-a-kernel.md", "docs/performance.md")
KINDS = {".c", ".h", ".cu", ".cuh", ".j2", ".py", ".toml", ".md", ".json", ".cmake", ".txt"}


class Places(unittest.TestCase):
    def files_that_name(self, word):
        named = re.compile(rf"(?<![a-z]){word}(?![0-9])", re.IGNORECASE)
        paths = [ROOT / "README.md", *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
        found = []
        for path in paths:
            name = path.relative_to(ROOT).as_posix()
            told = name.startswith(HISTORY) or name == "tests/docs/test_places.py"
            if not told and path.suffix in KINDS and named.search(path.read_text(encoding="utf-8", errors="replace")):
                found.append(name)
        return found

    def test_a_format(self):
        """Q5_1 has a layout of its own."""
        found = self.files_that_name("q5_1")
        self.assertIn("kernels/formats.toml", found)
        self.assertLessEqual(len(found), 10, found)

    def test_a_layout(self):
        """T5BR16 has a packer, verbs and kernels of its own."""
        found = self.files_that_name("t5br16")
        self.assertIn("kernels/formats.toml", found)
        self.assertLessEqual(len(found), 12, found)


if __name__ == "__main__":
    suite.main()
