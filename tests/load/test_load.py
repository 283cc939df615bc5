#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Load on tern serve: clients that ask, leave, stall and talk nonsense at once, and each gets the same answer as alone.
It runs for TERN_TEST_SECONDS (5), longer where the machine is so slow that too little happens."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import common
from serving import Server

SECONDS = int(os.environ.get("TERN_TEST_SECONDS", "5"))
GROWTH_MIB = 64  # of a server under load: buffers of the clients that are there at once
GROWS = """
import sys, time
kept = []
print("ready", flush=True)
while True:
    kept.append(b"x" * 2**20)
    time.sleep(0.01)
"""
program = None


def load(server, *options, pid=None):
    """Returns tern_load's report of a run, and its exit status."""
    place = ["--unix", server.unix] if server.unix else ["--port", server.port]
    command = [program, *place, "--pid", pid or server.process.pid, *options]
    result = subprocess.run(list(map(str, command)), capture_output=True)
    return json.loads(result.stdout or "null"), result


class Load(common.FolderTest):
    def setUp(self):
        common.small_model()

    def enough(self, enough, server, seconds, *options, pid=None):
        """Runs for as long as this machine needs until the awaited event has happened."""
        while True:
            report, result = load(server, "--seconds", seconds, *options, pid=pid)
            if result.returncode and pid is None or enough(report):
                return report, result
            seconds *= 2

    def check(self, server, enough, seconds, *options):
        report, result = self.enough(enough, server, seconds, *options)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        self.assertEqual((report["failures"], report["pages_used"]), (0, 0), report)
        self.assertLess(report["resident_mib_at_end"] - report["resident_mib_at_start"], GROWTH_MIB, report)
        print(json.dumps(report))

    def test_clients_of_all_kinds(self):
        """A socket in the file system holds little, so the text for slow readers piles up in the server."""
        with Server("--parallel", 16, unix=str(self.dir / "socket")) as server:
            self.check(server, lambda r: min(r["behaviours"].values(), default=0) > 0 and r["whole"] > 48 and r["cut"] > 0,
                       SECONDS, "--clients", 48, "--recipes", 24)
            self.assertEqual(server.stop(), 0)

    def test_memory_that_grows(self):
        """The growing memory is that of another process, which tern_load takes for the server."""
        with Server() as server, subprocess.Popen([sys.executable, "-c", GROWS], stdout=subprocess.PIPE) as other:
            try:
                other.stdout.readline()
                report, result = self.enough(lambda r: r["resident_mib_last_quarter"] > r["resident_mib_second_quarter"] + 4, server,
                                             2, "--clients", 2, "--recipes", 2, "--tokens", 4, "--even", pid=other.pid)
            finally:
                other.kill()
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"memory grew", result.stderr)
        self.assertEqual((report["failures"], report["pages_used"]), (1, 0))
        self.assertGreaterEqual(report["resident_mib_most"], report["resident_mib_last_quarter"])

    def test_nothing_compared(self):
        with Server() as server:
            report, result = load(server, "--clients", 1, "--seconds", 0, "--recipes", 1, "--tokens", 2)
        self.assertEqual((result.returncode, report["compared"] + report["compared_cut"]), (1, 0))
        self.assertIn(b"no answer was compared", result.stderr)

    def test_little_memory_and_a_short_queue(self):
        """Answers wait for pages of others, and requests that find no place are told so."""
        options = ("--parallel", 8, "--queue", 12, "--kv-memory", 2)
        with Server(*options) as server:
            self.check(server, lambda r: r["queue_full"] > 0, max(2, SECONDS // 3), "--clients", 32, "--recipes", 12)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", required=True, metavar="PROGRAM")
    ours, rest = parser.parse_known_args()
    program = Path(ours.load).resolve()
    sys.argv[1:] = rest
    common.main()
