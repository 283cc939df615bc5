#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Carries out the recipes of the documents on a copy of the tree, builds it and tests it.

A recipe is a block of code below a line that says where it goes, to readers and to this test:
    **`FILE`**, a new file:
    **`FILE`**, before the line `LINE`:        the first one that begins like that
    **`FILE`**, in place of the line `LINE`:   likewise

    tests/docs/test_recipes.py --generator-python PYTHON
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import documents
import suite

ROOT = documents.ROOT
PAGES = [ROOT / "docs" / name for name in ("first-change.md", "adding-a-kernel.md", "adding-an-architecture.md")]
RECIPE = re.compile(
    r"\*\*`(\S+)`\*\*, (?:a new file|(before|in place of) the line `([^\n]+)`):\n```\w+\n(.*?)```\n", re.S
)
NOT_COPIED = shutil.ignore_patterns("build", "build-*", ".git", ".venv", "out", "gen", "__pycache__")
TESTS = (
    "block features formats gguf guard kernels_activation kernels_halves kernels_matmul kernels_rows"
    " no_staging pack reference_forward select synth weight_check"
).split()
# With less optimisation the compiler knows fewer values, and these two warnings are wrong more often.
FAST = "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG -Wno-maybe-uninitialized -Wno-format-truncation"
EVERY = {"TERN_TEST_EVERY": "12"}  # of the shapes of matrix products
MORE = """
[[kernel]]
op = "gemv"
format = ["i2_s"]
isa = ["sse41"]
tile = { rows = 8, tokens = 1 }
"""
PROMPT = "1,2,3,5,8,13,21,34,55,89"
python = "python3"


def apply(recipe: re.Match, tree: Path) -> None:
    """Writes one recipe into the tree."""
    name, how, line, text = recipe.groups()
    path = tree / name
    if how is None:
        assert not path.exists(), f"{name} is not new"
        path.write_text(text, encoding="utf-8")
        return
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    places = [n for n, one in enumerate(lines) if one.startswith(line)]
    assert places, f"{name} has no line that begins with {line!r}"
    lines[places[0] : places[0] + (how == "in place of")] = [text]
    path.write_text("".join(lines), encoding="utf-8")


def recipes_below(page: Path, anchor: str) -> list[str]:
    """The files of the recipes of a heading and of the headings below it."""
    text = page.read_text(encoding="utf-8")
    files: list[str] = []
    depth = None
    for section in documents.sections(text):
        level = len(section.text) - len(section.text.lstrip("#"))
        if depth is not None and 0 < level <= depth:
            break
        if documents.anchors(f"## {section.title}\n") >= {anchor}:
            depth = level
        if depth is not None:
            files += [recipe[1] for recipe in RECIPE.finditer(section.text)]
    return files


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory(prefix="tern-recipes-")
        cls.addClassCleanup(folder.cleanup)
        cls.tree = Path(folder.name) / "tern"
        shutil.copytree(ROOT, cls.tree, ignore=NOT_COPIED, symlinks=True)
        for page in PAGES:
            for recipe in RECIPE.finditer(page.read_text(encoding="utf-8")):
                apply(recipe, cls.tree)
        cls.run_in_tree(
            ["cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-DTERN_PYTHON={python}"]
            + ["-DTERN_SHARED=OFF", "-DTERN_CUDA=OFF", "-DTERN_WERROR=ON", FAST]
        )
        cls.targets = ["tern_program", *(f"test_{name}" for name in TESTS)]
        if "bench_kernels" in cls.run_in_tree(["ninja", "-C", "build", "-t", "targets", "all"]):
            cls.targets.append("bench_kernels")
        cls.compile()

    @classmethod
    def compile(cls) -> str:
        return cls.run_in_tree(["cmake", "--build", "build", "--target", *cls.targets])

    @classmethod
    def run_in_tree(cls, command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=cls.tree, env=os.environ | EVERY, capture_output=True, text=True, check=False
        )
        end = "\n".join((done.stdout + done.stderr).splitlines()[-60:])
        cls().assertEqual(done.returncode, 0, f"{' '.join(command)}:\n{end}")
        return done.stdout

    def kernels(self) -> dict[str, dict]:
        rows = json.loads(self.run_in_tree(["build/tern", "kernels", "--json"]))
        return {row["name"]: row for row in rows}

    def test_an_instruction_set_is_three_places(self) -> None:
        page = PAGES[1]
        for anchor, header in (
            ("an-instruction-set-is-one-entry-and-one-file-of-verbs", "avx.h"),
            ("a-set-that-changes-a-verb", "avx512fp16.h"),
        ):
            self.assertEqual(
                recipes_below(page, anchor),
                ["dispatch/cpu.h", "kernels/kernels.toml", f"kernels/isa/{header}"],
            )

    def test_places_are_counted(self) -> None:
        """The table of first-change.md says how many places and files each change touches."""
        text = PAGES[0].read_text(encoding="utf-8")
        rows = re.findall(r"^\| \[.+?\]\(([\w.-]*)#([\w-]+)\).* \| (\d+) \| (\d+) \|$", text, re.M)
        self.assertEqual(len(rows), 5)
        for file, anchor, places, files in rows:
            with self.subTest(anchor):
                found = recipes_below(PAGES[0].parent / (file or PAGES[0].name), anchor)
                self.assertEqual((len(found), len(set(found))), (int(places), int(files)))

    def test_one_row_more_rebuilds_few_objects(self) -> None:
        with open(self.tree / "kernels" / "kernels.toml", "a", encoding="utf-8") as table:
            table.write(MORE)
        built = [line for line in self.compile().splitlines() if " Building C" in line]
        self.assertTrue(any("tern_gemv_i2_s_8x1_sse41.c" in line for line in built), built)
        self.assertLessEqual(len(built), 10, "\n".join(built))

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
        self.assertTrue(rows["tern_gate_relu_scalar"]["runnable"])

    def test_kernels_equal_the_reference(self) -> None:
        for name in TESTS:
            with self.subTest(name):
                self.run_in_tree([f"build/tests/test_{name}"])

    def test_benchmarks_answer(self) -> None:
        if not (self.tree / "build" / "bench" / "bench_kernels").exists():
            self.skipTest("Google Benchmark is not installed")
        self.run_in_tree(["build/bench/bench_kernels", "--check"])

    def test_a_model_of_the_new_format_agrees_with_the_oracle(self) -> None:
        self.compare_with_the_oracle("llama-tiny-nf4")

    def test_an_architecture_is_three_places(self) -> None:
        self.assertEqual(
            recipes_below(PAGES[2], "adding-an-architecture"),
            ["runtime/files/arch/arch.c", "authoring/synth_models.c", "tests/oracle/forward.py"],
        )

    def test_a_model_of_the_new_architecture_agrees_with_the_oracle(self) -> None:
        self.compare_with_the_oracle("oak-tiny")

    def compare_with_the_oracle(self, preset: str) -> None:
        model = [f"{preset}.gguf", "--tokens", PROMPT]
        self.run_in_tree(["build/tern", "synth", "--preset", preset, model[0]])
        logits = f"{preset}.f32"
        self.run_in_tree(["build/tern", "logits", "-m", *model, "--all", "--output", logits])
        oracle = [sys.executable, "tests/oracle/oracle.py", *model, "--compare", logits]
        try:
            import numpy  # noqa: F401
        except ImportError:
            self.skipTest("numpy is not installed")
        self.run_in_tree([*oracle, "--noise", "4"])

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
        suite.skip("the recipes are sets of x86-64")
    suite.main([sys.argv[0], *rest])
