# SPDX-License-Identifier: Apache-2.0
"""The envelopes can fail: when one activation gets another sign, every product above its limit is
named with its row, its shape, its measured error and its limit, and they are counted."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import suite  # noqa: E402

COMMAND = sys.argv[1:]
LINE = re.compile(
    r"tern-envelopes: (tern_ge[mv]+_\w+), (\d+) x (\d+), (\w+) activations: mean squared error of the "
    r"(product|total) (\S+) is above (\S+)"
)


class Notice(unittest.TestCase):
    def test_messages(self):
        result = subprocess.run([*COMMAND, "--flip"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1, result.stderr)
        lines = result.stderr.splitlines()
        self.assertGreater(len(lines), 10)
        rows, shapes = set(), set()
        for line in lines:
            found = LINE.fullmatch(line)
            self.assertIsNotNone(found, line)
            rows.add(found[1])
            shapes.add((int(found[2]), int(found[3])))
            self.assertGreater(float(found[6]), float(found[7]), line)
        measured, above = re.search(r"(\d+) measured, (\d+) above their limit", result.stdout).groups()
        self.assertEqual(int(above), len(lines))
        for part in ("i2_s", "t5r16"):
            self.assertTrue(any(part in row for row in rows), part)
        # every measured row is in the table with the same figures
        table = re.findall(r"^(tern_\S+) +(\d+) x (\d+) +\d+ +(\w+) +(\S+) +(\S+)$", result.stdout, re.M)
        self.assertEqual(len(table), int(measured))
        figures = {entry[:4]: entry[4:] for entry in table}
        for line in lines:
            found = LINE.fullmatch(line)
            entry = figures[found[1], found[2], found[3], found[4]]
            shown = float(entry[0] if found[5] == "product" else entry[1])
            self.assertAlmostEqual(float(found[6]) / shown, 1, delta=0.01, msg=line)
        self.assertLessEqual({(128, 256), (256, 512)}, {(int(e[1]), int(e[2])) for e in table})

    def test_without(self):
        result = subprocess.run(COMMAND, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_wrong_usage(self):
        self.assertEqual(subprocess.run([*COMMAND, "--flop"], capture_output=True).returncode, 2)


if __name__ == "__main__":
    suite.main(sys.argv[:1])
