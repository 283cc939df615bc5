#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of files of every length that a folder takes, and paths up to the longest that exist: they
are read and written, or refused in one line that says why."""

import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import common
from common import tern, tern_json, tern_text

PATH_MAX, NAME_MAX = 4096, 255
WORK = ("-n", 1, "--threads", 1)
IDS = ("--tokens", "1,2,3")


def long_folder(base, length):
    """A folder whose absolute path has so many bytes; made step by step, no step too long."""
    path = os.path.abspath(base)
    here = os.getcwd()
    os.chdir(path)
    try:
        while length - len(path) > 0:
            left = length - len(path) - 1
            part = "d" * (left if left <= 200 else 199 if left - 200 < 2 else 200)
            os.mkdir(part) if not os.path.isdir(part) else None
            os.chdir(part)
            path += "/" + part
    finally:
        os.chdir(here)
    assert len(path) == length, (len(path), length)
    return path


class Names(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.pathconf(cls.dir, "PC_NAME_MAX") != NAME_MAX or os.pathconf(cls.dir, "PC_PATH_MAX") != PATH_MAX:
            raise unittest.SkipTest("the file system of temporary files takes other names")
        cls.model = common.synth("bitnet-tiny", cls.dir)
        cls.logits = tern_text("logits", "-m", cls.model, *IDS, "--sha256").split()[0]

    def named(self, length):
        path = self.dir / ("m" * length)
        if not path.exists():
            os.link(self.model, path)
        return path

    def test_models(self):
        """Every length: inspected, and every eighth run, with its name in JSON."""
        for length in range(1, NAME_MAX + 1):
            with self.subTest(length=length):
                path = self.named(length)
                if length % 8 and length < 240:
                    tern_text("inspect", path)
                    continue
                self.assertEqual(tern_json("inspect", path)["model"], str(path))
                said = tern_json("run", "-m", path, *IDS, *WORK)
                self.assertEqual(said["model"], str(path))

    def test_written(self):
        """Every file that is written may have a name as long as its folder takes."""
        folder = self.dir / "written"
        folder.mkdir()
        for length in (1, 2, 200, *range(232, NAME_MAX + 1)):
            with self.subTest(length=length):
                out = folder / ("o" * length)
                tern_text("logits", "-m", self.model, *IDS, "--output", out)
                self.assertGreater(out.stat().st_size, 0)
                out.unlink()
                if length in (1, 240, NAME_MAX):
                    tern_text("run", "-m", self.model, *IDS, *WORK, "--receipt", out)
                    tern_text("verify", out)
                    out.unlink()
                    tern_text("synth", "--preset", "bitnet-tiny", out, "--seed", 1)
                    self.assertEqual(out.read_bytes(), self.model.read_bytes())
                    out.unlink()
                self.assertEqual(list(folder.iterdir()), [])
        too_long = folder / ("o" * (NAME_MAX + 1))
        result = tern("logits", "-m", self.model, *IDS, "--output", too_long)
        self.assert_one_line_error(result, contains=["File name too long"])

    def test_characters(self):
        """A name of characters of several bytes, of every remainder, is cut between them."""
        folder = self.dir / "characters"
        folder.mkdir()
        for character in ("é", "€", "🙂"):
            for shift in range(4):
                room = NAME_MAX - shift
                name = "a" * shift + character * (room // len(character.encode()))
                with self.subTest(name=name):
                    tern_text("logits", "-m", self.model, *IDS, "--output", folder / name)
                    self.assertEqual([path.name for path in folder.iterdir()], [name])
                    (folder / name).unlink()

    def test_paths(self):
        """Up to the longest path that the system takes; a longer one is refused with its reason."""
        for length in (1000, 4000, 4090, 4094, 4095):
            folder = long_folder(self.dir, length - 8)
            path = f"{folder}/m.gguf1"
            with self.subTest(length=length):
                here = os.open(folder, os.O_RDONLY)
                try:
                    os.link(self.model, "m.gguf1", dst_dir_fd=here)
                finally:
                    os.close(here)
                self.assertEqual(len(path), length)
                said = tern_text("logits", "-m", path, *IDS, "--sha256")
                self.assertEqual(said.split()[0], self.logits)
                self.assertEqual(tern_json("run", "-m", path, *IDS, *WORK)["model"], path)
                self.assertEqual(tern_json("inspect", path)["model"], path)
        for path in (f"{folder}/m.gguf12", "/" + "x/" * PATH_MAX):
            result = tern("logits", "-m", path, *IDS)
            self.assert_one_line_error(result, contains=["File name too long"])
        result = tern("logits", "-m", f"{folder}/n.gguf1", *IDS)
        self.assert_one_line_error(result, contains=["No such file or directory"])

    def test_written_far_down(self):
        """Where a path leaves no room for a temporary name, the file is refused and nothing stays behind."""
        for length in (4000, 4040, 4060, 4080, 4095):
            folder = long_folder(self.dir, length - 3)
            with self.subTest(length=length):
                result = tern("logits", "-m", self.model, *IDS, "--output", f"{folder}/ou")
                if result.returncode:
                    self.assert_one_line_error(result, contains=["File name too long"])
                    self.assertGreater(length, 4040)
                here = os.open(folder, os.O_RDONLY)
                try:
                    left = [name for name in os.listdir(here) if not name.startswith("d")]
                finally:
                    os.close(here)
                self.assertEqual(left, [] if result.returncode else ["ou"])


if __name__ == "__main__":
    common.main()
