# SPDX-License-Identifier: Apache-2.0
"""Tests of codegen/diff, in a repository of their own: the generator, what it reads, and a small table."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from common import FIXTURE, ROOT
import suite

READ = ("codegen", "kernels", "bench", "include", "dispatch", "tests")  # what the generator reads lies there
NOT_COPIED = shutil.ignore_patterns("__pycache__", "golden", "e2e", "fuzz", "mutants")
TEMPLATE = "kernels/softmax.c.j2"
LINE = "/* One line more. */\n"


class Diff(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        if shutil.which("git") is None:
            raise unittest.SkipTest("needs git")
        folder = tempfile.TemporaryDirectory(prefix="tern-codegen-")
        cls.addClassCleanup(folder.cleanup)
        cls.tree = Path(folder.name) / "tree"
        for name in READ:
            shutil.copytree(ROOT / name, cls.tree / name, ignore=NOT_COPIED)
        shutil.copy(FIXTURE, cls.tree / "kernels" / "kernels.toml")
        cls.git("init", "--quiet")
        cls.commit("before")

    @classmethod
    def git(cls, *arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        command = ["git", "-C", cls.tree, *who, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    @classmethod
    def commit(cls, name: str) -> None:
        cls.git("add", "--all")
        cls.git("commit", "--quiet", "--message", name)
        cls.git("tag", name)

    def diff(self, *arguments: str) -> tuple[int, str, str]:
        command = [sys.executable, self.tree / "codegen" / "diff", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def edit(self, name: str, change) -> None:
        """Changes a file until the test ends."""
        path = self.tree / name
        before = path.read_text(encoding="utf-8")
        self.addCleanup(path.write_text, before, encoding="utf-8")
        path.write_text(change(before), encoding="utf-8")

    def test_nothing_changed(self) -> None:
        self.assertEqual(self.diff("before"), (0, "", ""))
        self.assertEqual(self.diff("before", "HEAD"), (0, "", ""))

    def test_a_template_of_the_working_tree(self) -> None:
        """Every kernel of the template and no other file; the tree stays as it is."""
        self.edit(TEMPLATE, lambda text: text + LINE)
        status, shown, complaint = self.diff("before")
        self.assertEqual((status, complaint), (1, ""))
        files = re.findall(r"^\+\+\+ b/kernels/(\w+)\.c$", shown, re.M)
        self.assertIn("tern_softmax_avx2", files)
        self.assertEqual([name for name in files if not name.startswith("tern_softmax_")], [])
        self.assertEqual(shown.count(f"\n+{LINE}"), len(files))
        self.assertEqual(re.findall(r"^-(?!-- a/).*", shown, re.M), [])
        self.assertEqual(self.git("status", "--porcelain"), f" M {TEMPLATE}\n")

    def test_two_revisions(self) -> None:
        """Each by its own generator, whatever the working tree has."""
        self.addCleanup(self.git, "reset", "--quiet", "--hard", "before")
        self.edit("codegen/gen.py", lambda text: text.replace("Do not edit.", "Change nothing here.", 1))
        self.commit("after")
        self.edit(TEMPLATE, lambda text: text + LINE)
        status, shown, _ = self.diff("before", "after")
        self.assertEqual(status, 1)
        self.assertNotIn(LINE, shown)
        changed = set(re.findall(r"^[-+] \* and template .*(Do not edit|Change nothing here)\.", shown, re.M))
        self.assertEqual(changed, {"Do not edit", "Change nothing here"})
        status, names, _ = self.diff("after", "before", "--stat")
        self.assertEqual(status, 1)
        self.assertRegex(names, r"tern_softmax_avx2\.c +\| +2 \+-\n")

    def test_trouble(self) -> None:
        self.edit("kernels/kernels.toml", lambda text: text.replace('op = "softmax"', 'op = "softmin"'))
        for arguments, complaint in {
            ("none",): r"codegen/diff: none: .*none\n",
            ("before", "none"): r"codegen/diff: none: .*none\n",
            ("before",): r"codegen/diff: the working tree: codegen: kernel \d+ \(softmin\): unknown op 'softmin'\n",
            (): r"usage: codegen/diff .*\n.*REV\n",
        }.items():
            status, shown, said = self.diff(*arguments)
            self.assertEqual((status, shown), (2, ""), arguments)
            self.assertRegex(said, rf"\A{complaint}\Z")


if __name__ == "__main__":
    suite.main()
