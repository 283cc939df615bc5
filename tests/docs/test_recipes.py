#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Carries out the recipes of docs/adding-a-kernel.md on a copy of the tree, builds it and tests it.

A recipe is a block of code behind a comment that says where it goes:
    <!-- recipe: FILE -->                 a new file
    <!-- recipe: FILE before "LINE" -->   in front of the first line that begins like that

    tests/docs/test_recipes.py --generator-python PYTHON
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding-a-kernel.md"
RECIPE = re.compile(r'<!-- recipe: (\S+)(?: before "([^"]+)")? -->\n```\w+\n(.*?)```\n', re.S)
NOT_COPIED = shutil.ignore_patterns("build*", ".git", ".venv", "out", "gen", "__pycache__")
TESTS = ["features", "guard", "kernels_halves", "kernels_matmul", "kernels_rows", "select"]
python = "python3"


def apply(recipe: re.Match, tree: Path) -> str:
    """Writes one recipe into the tree; returns the file's name."""
    name, before, text = recipe.groups()
    path = tree / name
    if before is None:
        assert not path.exists(), f"{name} is not new"
        path.write_text(text, encoding="utf-8")
        return name
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    places = [n for n, line in enumerate(lines) if line.startswith(before)]
    assert places, f"{name} has no line that begins with {before!r}"
    lines.insert(places[0], text)
    path.write_text("".join(lines), encoding="utf-8")
    return name


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory(prefix="tern-recipes-")
        cls.addClassCleanup(folder.cleanup)
        cls.tree = Path(folder.name) / "tern"
        shutil.copytree(ROOT, cls.tree, ignore=NOT_COPIED, symlinks=True)
        cls.build = cls.tree / "build"
        recipes = list(RECIPE.finditer(PAGE.read_text(encoding="utf-8")))
        cls.touched = [apply(recipe, cls.tree) for recipe in recipes]
        cls.run_in_tree(
            ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-DTERN_PYTHON={python}"]
            + ["-DTERN_BENCH=OFF", "-DTERN_SHARED=OFF", "-DTERN_CUDA=OFF", "-DTERN_WERROR=ON"]
        )
        targets = ["tern_program", *(f"test_{name}" for name in TESTS)]
        cls.run_in_tree(["cmake", "--build", "build", "--target", *targets])

    @classmethod
    def run_in_tree(cls, command: list[str]) -> str:
        done = subprocess.run(command, cwd=cls.tree, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            end = "\n".join((done.stdout + done.stderr).splitlines()[-60:])
            raise AssertionError(f"{' '.join(command)}: status {done.returncode}\n{end}")
        return done.stdout

    def kernels(self) -> dict[str, dict]:
        rows = json.loads(self.run_in_tree(["build/tern", "kernels", "--json"]))
        return {row["name"]: row for row in rows}

    def test_an_instruction_set_is_three_places(self) -> None:
        self.assertEqual(
            self.touched,
            ["kernels/kernels.toml"]  # a tile is one
            + ["dispatch/cpu.h", "kernels/kernels.toml", "kernels/isa/avx.h"]
            + ["dispatch/cpu.h", "kernels/kernels.toml", "kernels/isa/avx512fp16.h"],
        )

    def test_the_rows_are_there(self) -> None:
        rows = self.kernels()
        names = list(rows)
        for name in ("rmsnorm", "add", "gate_silu", "gate_relu2"):
            place = names.index(f"tern_{name}_avx")
            self.assertEqual(names[place - 1], f"tern_{name}_avx2")
            self.assertEqual(names[place + 1], f"tern_{name}_sse41")
        for name in ("tern_gemv_f16_2x1_avx512fp16", "tern_gemm_f16_2x4_avx512fp16"):
            self.assertEqual(names[names.index(name) + 1], name.removesuffix("fp16"))
        tile = names.index("tern_gemv_i2_s_8x1_avx2")
        self.assertEqual(names[tile + 1], "tern_gemv_i2_s_16x1_avx2")

    def test_kernels_equal_the_reference(self) -> None:
        for name in TESTS:
            with self.subTest(name):
                self.run_in_tree([f"build/tests/test_{name}"])

    def test_the_generator(self) -> None:
        self.run_in_tree([python, "codegen/tests/test_codegen.py", "LiveText"])
        self.run_in_tree([python, "codegen/tests/test_refused.py"])

    def test_one_answer(self) -> None:
        runnable = [row["isa"] for row in self.kernels().values() if row["runnable"]]
        command = ["build/tern", "logits", "-p", "Once upon a time", "--sha256", "--isa"]
        hashes = {isa: self.run_in_tree([*command, isa]) for isa in dict.fromkeys(runnable)}
        self.assertEqual(len(set(hashes.values())), 1, hashes)
        if "sse41" in hashes and "avx2" in hashes:
            self.assertIn("avx", hashes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--generator-python", default=python)
    arguments, rest = parser.parse_known_args()
    python = arguments.generator_python
    if subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip() != "x86_64":
        print("skipped: the recipes are sets of x86-64")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])
