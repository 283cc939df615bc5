#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signals, and files that change under the program, at every place where it asks for something.

The shim raises a signal, shortens the model or changes its time of writing at each recorded place
in turn, so each step of loading, generating and writing is met, always at the same spot.
"""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import common
import suite
from common import OLD, Case

TEXT = "Q: What is 17+25? A:"
RUN = Case("run", ["run", "-m", "MODEL", "-p", TEXT, "--threads", "2"])
LOGITS = Case("logits", ["logits", "-m", "MODEL", "-p", TEXT, "--threads", "1", "--output", "OUT", "--force"])
SYNTH = Case("synth", ["synth", "--preset", "llama-tiny-q4_0", "OUT", "--force"])
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
OTHERS = [
    signal.Signals[name]
    for name in "SIGQUIT SIGPIPE SIGXCPU SIGUSR1 SIGUSR2 SIGALRM SIGVTALRM SIGPROF SIGPOLL SIGABRT SIGSEGV SIGBUS "
    "SIGILL SIGFPE SIGTRAP SIGRTMIN SIGRTMAX".split()
]
SHORTER = "it became shorter while it was in use"
FAULTS = None  # set by main


def first_events(case):
    good = FAULTS.run(case)
    if good.status == 77:
        suite.skip("system calls cannot be trapped here")
    assert good.status == 0, good.stderr
    return good, sorted({p.first for p in good.report.places.values()})


def largest_file(process, folder):
    """Returns the size of the largest file that a process writes in a folder, with or without a name."""
    sizes = [0]
    for link in Path(f"/proc/{process}/fd").iterdir():
        try:
            if os.readlink(link).startswith(folder):
                sizes.append(link.stat().st_size)
        except OSError:  # closed meanwhile
            continue
    return max(sizes)


class Signals(unittest.TestCase):
    def sweep(self, case, number):
        """No file but the old or the whole new one; dead by the signal, or ended in order."""
        good, events = first_events(case)
        by_signal = ordered = late = 0
        outcomes = common.sweep(events, lambda at: FAULTS.run(case, at=at, act=f"signal={int(number)}"))
        for at, outcome in zip(events, outcomes):
            with self.subTest(case=case.name, signal=number.name, event=at):
                self.assertEqual(outcome.litter, [])
                if outcome.status == 0:  # it came when everything was done
                    self.assertEqual((outcome.stdout, outcome.file), (good.stdout, good.file))
                    late += 1
                    continue
                self.assertIn(outcome.status, (-number, 128 + number))
                self.assertTrue(good.stdout.rstrip(b"\n").startswith(outcome.stdout.rstrip(b"\n")))
                if case.writes():
                    self.assertIn(outcome.file, (OLD, good.file))
                by_signal += outcome.status < 0
                ordered += outcome.status > 0
        self.assertLessEqual(late, 1)
        return by_signal, ordered

    def test_every_place(self):
        for number in ENDING:
            by_signal, ordered = self.sweep(RUN, number)
            self.assertGreater(by_signal, 50)  # while loading
            self.assertGreater(ordered, 0)  # while generating
        for case in (LOGITS, SYNTH):
            by_signal, ordered = self.sweep(case, signal.SIGTERM)
            self.assertEqual(ordered, 0)

    def test_reader_gone(self):
        by_signal, ordered = self.sweep(LOGITS, signal.SIGPIPE)
        self.assertEqual(ordered, 0)

    def end_long_write(self, number, nameless):
        """A big file is being written: nothing of it remains, the old one does."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            out.write_bytes(OLD)
            environment = dict(os.environ)
            if not nameless:  # without /proc a file has to have a name before it is whole
                environment |= {"LD_PRELOAD": str(FAULTS.shim), "TERN_FAULTS_HIDE": "/proc"}
                environment |= {"TERN_FAULTS_KINDS": "system", "TERN_FAULTS_LOG": "/dev/null"}
            command = [FAULTS.tern, "synth", "--preset", "smollm2-135m", out, "--force"]
            with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment) as process:
                while largest_file(process.pid, folder) < 4 << 20:
                    self.assertIsNone(process.poll())
                    time.sleep(0.002)
                self.assertEqual(len(os.listdir(folder)), 1 if nameless else 2)
                process.send_signal(number)
                self.assertEqual(process.wait(), -number)
            self.assertEqual(os.listdir(folder), ["out"])
            self.assertEqual(out.read_bytes(), OLD)

    def test_long_write(self):
        for number in (*ENDING, *OTHERS):
            for nameless in (True, False):
                with self.subTest(signal=number.name, nameless=nameless):
                    self.end_long_write(number, nameless)

    def test_killed(self):
        self.end_long_write(signal.SIGKILL, nameless=True)

    def test_second_signal_ends_at_once(self):
        """Two signals while it stands still: the first is noted, the second one kills."""
        command = [FAULTS.tern, "run", "-p", TEXT, "-n", "400", "--ignore-eos", "--threads", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.read(1)  # it generates
            for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
                process.send_signal(number)
            process.stdout.read()
            self.assertIn(process.wait(), (-signal.SIGINT, -signal.SIGTERM))

    def test_ignored_stays_ignored(self):
        command = [FAULTS.tern, "run", "-p", TEXT, "-n", "400", "--ignore-eos", "--threads", "1"]
        ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
        with subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=ignore) as process:
            process.stdout.read(1)
            process.send_signal(signal.SIGHUP)
            process.stdout.read()
            self.assertEqual(process.wait(), 0)


class Changes(unittest.TestCase):
    def assert_told(self, outcome):
        self.assertEqual(outcome.status, 1, outcome.stderr)
        self.assertTrue(common.one_line(outcome.stderr), outcome.stderr)
        self.assertIn("model.gguf", outcome.stderr)
        self.assertEqual(outcome.litter, [])

    def change(self, case, act):
        good, events = first_events(case)
        told = []
        for outcome in common.sweep(events, lambda at: FAULTS.run(case, at=at, act=act)):
            if outcome.status == 0:  # before it was opened in full, or behind the last look
                self.assertEqual((outcome.stdout, outcome.file), (good.stdout, good.file))
                continue
            with self.subTest(case=case.name, act=act):
                self.assert_told(outcome)
                self.assertIn(outcome.file, (None, OLD))
            told.append(outcome.stderr)
        return told

    def test_shorter(self):
        for case in (RUN, LOGITS):
            told = self.change(case, "truncate=MODEL")
            self.assertGreater(sum(SHORTER in line for line in told), 20, told)

    def test_same_length(self):
        for case in (RUN, LOGITS):
            told = self.change(case, "touch=MODEL")
            self.assertGreater(sum("was written to while" in line for line in told), 50, told)

    def test_shorter_while_generating(self):
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model.gguf"
            model.write_bytes(common.SMALL_MODEL.read_bytes())
            command = [FAULTS.tern, "run", "-m", model, "-p", TEXT, "-n", "400", "--ignore-eos"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                process.stdout.read(1)
                process.send_signal(signal.SIGSTOP)
                os.truncate(model, 4096)
                process.send_signal(signal.SIGCONT)
                process.stdout.read()
                complaint = process.stderr.read().decode()
                self.assertEqual(process.wait(), 1, complaint)
            self.assertTrue(common.one_line(complaint), complaint)
            self.assertIn("model.gguf", complaint)

FAULT_SIGNALS = [signal.SIGBUS, signal.SIGSEGV, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS]


def block_all():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def blocked(process):
    """The signals that each thread of a process blocks, by the thread's id."""
    found = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            mask = int(re.search(r"^SigBlk:\s*(\S+)", (task / "status").read_text(), re.M)[1], 16)
        except OSError:  # it has ended meanwhile
            continue
        found[task.name] = {n for n in range(1, 65) if mask >> (n - 1) & 1}
    return found


def faults_blocked(process):
    """Threads that block a fault whenever one looks: the C library blocks all where a thread begins or ends."""
    wrong = None
    for _ in range(500):
        now = {thread for thread, signals in blocked(process).items() if signals & set(FAULT_SIGNALS)}
        wrong = now if wrong is None else wrong & now
        if not wrong:
            break
        time.sleep(0.01)
    return wrong


class Serving(unittest.TestCase):
    """A server at a socket of the file system, with a model of its own."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model, self.socket = Path(self.folder.name) / "model.gguf", Path(self.folder.name) / "socket"
        self.model.write_bytes(common.SMALL_MODEL.read_bytes())

    def serve(self, *options, **kwargs):
        command = [FAULTS.tern, "serve", "-m", self.model, "--unix", self.socket, "--isa", "scalar", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        if not process.stdout.readline():
            self.fail(process.stderr.read().decode())
        return process

    def ask(self, **fields):
        """A connection on which a request was sent."""
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.connect(str(self.socket))
        body = json.dumps(fields).encode()
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return client

    def test_faults_are_blocked_in_no_thread(self):
        """Threads of the libraries do not block them either, not even when the program is started with all signals
        blocked."""
        for options in ((), ("--self-audit", "--access-log", "--threads", "3")):
            server = self.serve(*options, preexec_fn=block_all)
            self.ask(prompt=TEXT, max_tokens=1).recv(1)
            self.assertGreater(len(blocked(server.pid)), 4)
            self.assertEqual(faults_blocked(server.pid), set())
            server.kill()
            server.wait()

    def test_model_shorter_under_a_server(self):
        server = self.serve()
        client = self.ask(prompt=TEXT, max_tokens=-1, ignore_eos=True, stream=True)
        while b"data:" not in client.recv(4096):  # it generates
            pass
        server.send_signal(signal.SIGSTOP)
        os.truncate(self.model, 4096)
        server.send_signal(signal.SIGCONT)
        complaint = server.communicate()[1].decode()
        self.assertEqual(server.returncode, 1, complaint)
        # The thread that reads the file meets the fault; the one that looks after it may have seen the change just before.
        size = common.SMALL_MODEL.stat().st_size
        said = {f"tern: {self.model}: cannot be read any more: {SHORTER}, or its disk failed",
                f"tern: {self.model}: was changed while it was in use: {size} bytes became 4096"}
        lines = complaint.splitlines()
        self.assertLessEqual(set(lines), said, complaint)
        self.assertTrue(0 < len(lines) == len(set(lines)), complaint)
        self.assertEqual(os.listdir(self.folder.name), ["model.gguf"])

    def test_no_socket_is_left(self):
        for number in (signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV, signal.SIGQUIT):
            server = self.serve()
            server.send_signal(number)
            server.communicate()
            with self.subTest(signal=number.name):
                self.assertFalse(self.socket.exists())


if __name__ == "__main__":
    FAULTS, arguments = common.from_arguments()
    suite.main(arguments)
