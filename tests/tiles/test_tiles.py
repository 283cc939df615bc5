#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole models with AMX's rows, on a program that emulates tiles (emulator.h): the same logits as
everywhere; refused permission means AVX-512 and a list that says why."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e")]

import common
import weights
from common import comma, prompt, tern_text

SAPPHIRE = {"TERN_PROCESSOR": "sapphire-rapids"}
# The list has one of each layout that a row of tiles reads.
PRESETS = ("bitnet-tiny", *(f"llama-tiny-{f}" for f in (*weights.PLAIN, "q4_k", "iq2_s", "iq2_xxs", "iq3_s")))
tiles = None


def run(*arguments, **variables):
    """Returns the output of the emulating program."""
    command = [tiles, *map(str, arguments)]
    said = subprocess.run(command, env=common.clean_environment(**variables), capture_output=True, text=True, timeout=600)
    if said.returncode != 0:
        raise AssertionError(f"{command}: {said.stderr}")
    return said.stdout, said.stderr


def rows(**variables):
    return {row["name"]: row for row in json.loads(run("kernels", "--json", **variables)[0])}


def names_of_amx():
    """Returns the table's kernels of AMX; all of them are chosen where there are tiles, since each has a use of its
    own."""
    return [name for name, row in rows().items() if row["isa"] == "amx"]


class Models(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not any(row["runnable"] for row in rows(**SAPPHIRE).values() if row["isa"] == "amx"):
            raise unittest.SkipTest("this processor lacks AVX-512 VBMI")

    def logits(self, model):
        return ("logits", "-m", model, "--tokens", comma(prompt(37, 256)), "--all", "--sha256")

    def test_one_hash(self):
        for preset in PRESETS:
            model = common.synth(preset, self.dir)
            wanted = tern_text(*self.logits(model)).split()[0]
            for threads in (1, 3):
                found = run(*self.logits(model), "--threads", threads, **SAPPHIRE)[0].split()[0]
                self.assertEqual(found, wanted, f"{preset}, {threads} threads")

    def test_rows_are_chosen(self):
        found = rows(**SAPPHIRE)
        self.assertEqual([name for name in found if name in names_of_amx() and not found[name]["chosen"]], [])
        for other in ("zen5", "ice-lake"):
            found = rows(TERN_PROCESSOR=other).values()
            self.assertFalse([row["name"] for row in found if row["isa"] == "amx" and row["runnable"]])

    def test_refused(self):
        model = common.synth("bitnet-tiny", self.dir)
        said, errors = run("kernels", PRETEND_TILES="refused", **SAPPHIRE)
        lines = [line for line in said.splitlines() if "_amx " in line]
        self.assertEqual(len(lines), len(names_of_amx()))
        for line in lines:
            self.assertRegex(line, r" no +no +the system refuses AMXTILE \.\.\.$")
        self.assertEqual(errors, "")
        wanted = tern_text(*self.logits(model)).split()[0]
        said, errors = run(*self.logits(model), PRETEND_TILES="refused", **SAPPHIRE)
        self.assertEqual((said.split()[0], errors), (wanted, ""))


if __name__ == "__main__":
    tiles = Path(sys.argv[sys.argv.index("--tiles") + 1])
    at = sys.argv.index("--tiles")
    del sys.argv[at : at + 2]
    common.main()
