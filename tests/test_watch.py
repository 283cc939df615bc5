#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/watch ends a hung test and lets a slow one go on, and its status is the command's."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import suite

WATCH = suite.ROOT / "tests" / "watch"
PATIENCE = 3  # seconds
# This works for a moment and stands still for three times as long, again and again for three patiences, as on a machine
# so slow or so busy that a test gets a quarter of a processor.
SLOW = f"""
import os, signal, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
worker = os.getpid()
if os.fork() == 0:
    for _ in range({3 * PATIENCE} * 5):
        time.sleep(0.05)
        os.kill(worker, signal.SIGSTOP)
        time.sleep(0.15)
        os.kill(worker, signal.SIGCONT)
    os.kill(worker, signal.SIGTERM)
    os._exit(0)
signal.signal(signal.SIGTERM, lambda *_: os._exit(5))
work(1e9)
"""
# Runs like a test that waits for a server: it asks again and again, in vain.
ASKS = "import sys; sys.path.insert(0, 'tests'); import suite; suite.until(lambda: False)"
LEFT = "import os, subprocess, sys; print(subprocess.Popen(['sleep', '1000'], stdout=2).pid)"


def watched(*command, patience=PATIENCE):
    return subprocess.run([WATCH, "--patience", str(patience), *command], cwd=suite.ROOT, capture_output=True, text=True)


def python(text, **options):
    return watched(sys.executable, "-c", text, **options)


def is_there(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Watch(unittest.TestCase):
    def test_what_hangs_is_ended(self):
        """All processes of a hung test end; the message names them, and the place where a test in Python was."""
        with tempfile.TemporaryDirectory() as folder:
            pipe = Path(folder) / "pipe"
            os.mkfifo(pipe)
            said = python(f"import sys, subprocess; sys.path.insert(0, 'tests'); import suite\n"
                          f"child = subprocess.Popen(['sleep', '1000'], start_new_session=True); print(child.pid, flush=True)\n"
                          f"def waits_for_a_writer(): open({str(pipe)!r})\n"
                          f"waits_for_a_writer()")  # fmt: skip
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertIn(f"nothing has worked for {PATIENCE} s", said.stderr)
        self.assertIn("sleep 1000", said.stderr)
        self.assertIn("in waits_for_a_writer", said.stderr)
        self.assertFalse(is_there(int(said.stdout)))

    def test_what_asks_for_nothing_is_ended(self):
        self.assertIn("nothing has worked", python(ASKS).stderr)

    def test_what_is_slow_is_not(self):
        said = python(SLOW)
        self.assertEqual((said.returncode, said.stderr), (5, ""))

    def test_status(self):
        for status in (0, 1, 77):
            self.assertEqual(watched("sh", "-c", f"exit {status}").returncode, status)
        self.assertEqual(watched("sh", "-c", "kill -SEGV $$").returncode, -signal.SIGSEGV)
        said = watched("/no/such/program")
        self.assertEqual((said.returncode, said.stderr), (127, "watch: /no/such/program: No such file or directory\n"))

    def test_what_is_left_behind_is_ended(self):
        said = python(LEFT)
        self.assertEqual(said.returncode, 0)
        self.assertIn("left behind", said.stderr)
        self.assertFalse(is_there(int(said.stdout)))

    def test_the_end_of_the_watcher_ends_the_test(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(number.name):
                process = subprocess.Popen([WATCH, "sh", "-c", "echo $$; exec sleep 1000"], stdout=subprocess.PIPE, text=True)
                test = int(process.stdout.readline())
                process.send_signal(number)
                self.assertEqual(process.wait(), -number)
                suite.until(lambda test=test: not is_there(test))
                process.stdout.close()

    def test_signals_are_as_they_were(self):
        """Python changes some signals for itself."""
        said = watched("sh", "-c", "yes | head -n 1; grep SigIgn /proc/self/status")
        self.assertEqual(said.stderr, "")
        ignored = int(said.stdout.split()[-1], 16)
        self.assertFalse(ignored >> (signal.SIGPIPE - 1) & 1)


if __name__ == "__main__":
    suite.main()
