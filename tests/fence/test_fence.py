# SPDX-License-Identifier: Apache-2.0
"""Mistakes with memory end a program on the tests' allocator, each in its way.

    python3 tests/fence/test_fence.py PROGRAM LIBRARY
"""

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import suite  # noqa: E402

PROGRAM, LIBRARY = sys.argv[1:3]


def run(*words, **extra):
    """Returns the status and what the program says."""
    environment = {**os.environ, "LD_PRELOAD": LIBRARY, **extra}
    result = subprocess.run([PROGRAM, *words], env=environment, capture_output=True, text=True)
    return result.returncode, result.stderr


class FenceTest(unittest.TestCase):
    def test_what_is_right_passes(self):
        self.assertEqual((run(), run("grow"), run("", "100")), ((0, ""),) * 3)

    def test_a_byte_too_far_or_too_late(self):
        for word in "read", "write", "after":
            self.assertEqual(run(word), (-signal.SIGSEGV, ""), word)

    def test_bytes_that_alignment_leaves(self):
        self.assertEqual(run("write", "100"), (-signal.SIGABRT, "fence: a byte behind a block was written\n"))

    def test_a_block_freed_twice(self):
        status, said = run("twice")
        self.assertEqual(status, -signal.SIGABRT)
        self.assertIn("freed where no block in use starts", said)

    def test_memory_that_was_not_set(self):
        self.assertEqual(run("unset")[0], 65)

    def test_what_is_left_fails_a_program_that_was_content(self):
        status, said = run("leave")
        self.assertEqual(status, 86)
        self.assertRegex(said, r"^fence: 24 bytes were not freed, allocated before 0x[0-9a-f]+\n"
                               r"fence: blocks that are left: 1; addr2line -fe \S+ names places\n$")  # fmt: skip
        self.assertEqual(run("fail"), (3, ""))

    def test_without_the_fence_nobody_tells(self):
        self.assertEqual((run("leave", LD_PRELOAD=""), run("write", LD_PRELOAD="")), ((0, ""), (0, "")))


if __name__ == "__main__":
    sys.argv[1:3] = []
    suite.main()
