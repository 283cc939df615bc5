# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python.md run, one after the other, and their comments say what they print."""

import contextlib
import io
import os
import re
import tempfile
import unittest

import package
import suite

package.begin()

PAGE = package.ROOT / "docs" / "python.md"


class Page(unittest.TestCase):
    def test_every_example_runs(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
        self.assertGreater(len(blocks), 10)
        known = {"path": package.SMALL, "__name__": "example"}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder) if hasattr(contextlib, "chdir") else moved(folder):
            for block in blocks:
                with self.subTest(block=block.partition("\n")[0]):
                    printed = io.StringIO()
                    with contextlib.redirect_stdout(printed):
                        exec(compile(block, str(PAGE), "exec"), known)  # noqa: S102
                    for said in re.findall(r'print\(.*\) +# "(.*)"$', block, re.M):
                        self.assertIn(said, printed.getvalue())
        self.assertEqual(known["answer"].text, " 42")


@contextlib.contextmanager
def moved(folder):
    """contextlib.chdir, which Python 3.10 lacks."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


if __name__ == "__main__":
    suite.main()
