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
        with tempfile.TemporaryDirectory() as folder, moved(folder):
            for block in blocks:
                with self.subTest(block=block.partition("\n")[0]):
                    printed = io.StringIO()
                    with contextlib.redirect_stdout(printed):
                        exec(compile(block, str(PAGE), "exec"), known)  # noqa: S102
                    for said in re.findall(r'print\(.*\) +# "(.*)"$', block, re.M):
                        self.assertIn(said, printed.getvalue())
        self.assertEqual(known["answer"].text, " 42")

    def test_the_readme_runs(self):
        section = (package.ROOT / "README.md").read_text(encoding="utf-8").partition("\n## From Python\n")[2].partition("\n## ")[0]
        block = re.search(r"^```python\n(.*?)^```$", section, re.M | re.S)[1]
        printed = io.StringIO()
        with moved(package.ROOT), contextlib.redirect_stdout(printed):
            exec(compile(block, "README.md", "exec"), {})  # noqa: S102
        self.assertEqual(printed.getvalue().split(), ["42", "4"])


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
