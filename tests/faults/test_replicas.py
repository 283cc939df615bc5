#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies of hot weights (docs/threads.md) for which there is no memory.

On a machine of two nodes that hwloc is told to see, the map of a replica fails on the first node or
on the second. The answer is the same, with one line; strict modes refuse. Other memory for the copies may be missing
too, as for everything: one line and status 1, and nothing is kept.
"""

import sys
import unittest

import common
import suite
from common import Case, Symbols

RUN = ["run", "-p", "Q: What is 17+25? A:", "--threads", "2", "--replicate"]
MACHINE = {"HWLOC_SYNTHETIC": "pack:2 [numa] core:2 pu:1"}
LINE = "no memory for a replica of "
TRIES = 5
FAULTS = None  # set by main


class Replicas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.case = Case("replicas", RUN, environment=MACHINE)
        cls.good = FAULTS.run(cls.case)
        if cls.good.status != 0:
            raise AssertionError(cls.good.stderr)
        symbols = Symbols(FAULTS.tern)
        places = {h: symbols.stack(p) for h, p in cls.good.report.places.items() if p.kind == common.ALLOC}
        cls.copies = [h for h, stack in places.items() if "replica" in stack or "tern_hot_" in stack]
        cls.maps = [h for h in cls.copies if "mmap" in places[h] and "tern_arena_new" in places[h]]
        if not cls.maps:
            raise unittest.SkipTest("built without hwloc, or without the names of functions")

    def fail_at(self, at, mark, *options):
        """A run in which the call fails; its number may be another one now and then."""
        for _ in range(TRIES):
            outcome = FAULTS.run(Case("replicas", [*RUN, *options], environment=MACHINE), at=at)
            if mark in outcome.report.places and outcome.report.places[mark].hit > 0:
                return outcome
        self.fail(f"event {at} of {mark} was never met")

    def test_no_memory(self):
        nodes = set()
        for mark in self.maps:
            place = self.good.report.places[mark]
            for event in {place.first, place.last}:
                outcome = self.fail_at(event, mark)
                self.assertEqual((outcome.status, outcome.stdout), (0, self.good.stdout))
                self.assertRegex(outcome.stderr, rf"^tern: {LINE}[0-9]+ bytes on node [01]: .*the same answer\n$")
                nodes.add(outcome.stderr.split(" node ")[1][0])
        self.assertEqual(nodes, {"0", "1"})

    def test_strict(self):
        for options in (["--strict"], ["--numa", "strict"]):
            for mark in self.maps:
                outcome = self.fail_at(f"place={mark}", mark, *options)
                self.assertEqual(outcome.status, 1)
                self.assertTrue(common.one_line(outcome.stderr), outcome.stderr)
                self.assertIn(f"strict: {LINE}", outcome.stderr)

    def test_everything_fails_once(self):
        for mark in self.copies:
            outcome = self.fail_at(f"place={mark}", mark)
            place = self.good.report.places[mark]
            self.assertIsNone(common.judge(self.case, outcome, self.good, place, False))


if __name__ == "__main__":
    FAULTS, arguments = common.from_arguments()
    suite.main(arguments)
