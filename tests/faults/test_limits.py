#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Full disks and small limits: memory, descriptors, stack, size of files, threads, /proc.

Whatever the limit, the program gives the right answer, or one line and status 1. Below the limits with which the
dynamic linker can start the program (status 127, or a death before main) nothing can be asked of it.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import common
import suite
from common import OLD, Case

TEXT = "Q: What is 17+25? A:"
ANSWER = b" 42\n"
MIB = 1 << 20
FAULTS = None  # set by main


def limited(*pairs):
    def apply():
        for what, value in pairs:
            resource.setrlimit(what, (value, value))

    return apply


def tern(*arguments, limits=None, env=None, cwd=None, stdout=subprocess.PIPE):
    environment = env
    if env is None:
        environment = common.bare_environment()
    return subprocess.run(
        [FAULTS.tern, *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        preexec_fn=limits,
        env=environment,
        cwd=cwd,
    )


class Limits(unittest.TestCase):
    def assert_sound(self, result):
        """True when it answered, False when it said why not."""
        complaint = result.stderr.decode()
        if result.returncode == 0:
            self.assertEqual(result.stdout, ANSWER)
            return True
        self.assertEqual(result.returncode, 1, complaint)
        self.assertTrue(common.one_line(complaint), complaint)
        return False

    def starts(self, limits):
        """True if the dynamic linker can start the program at all."""
        return tern("--version", limits=limits).returncode == 0

    def run_under(self, *limits):
        return self.assert_sound(tern("run", "-p", TEXT, limits=limited(*limits)))

    def test_memory(self):
        answered, tried = [], 0
        sizes = [*range(256 << 10, 16 * MIB, 512 << 10), *range(16 * MIB, 160 * MIB, 3 * MIB)]
        for size in sizes:
            with self.subTest(size=size):
                if self.starts(limited((resource.RLIMIT_AS, size))):
                    tried += 1
                    answered.append(self.run_under((resource.RLIMIT_AS, size)))
        self.assertGreater(tried, 30)
        self.assertFalse(answered[0])  # it was small enough to matter
        self.assertTrue(answered[-1])  # and large enough in the end
        print(f"memory: {tried} limits, {answered.count(False)} refused, {answered.count(True)} answered")

    def test_data(self):
        for size in (1 << 10, 64 << 10, MIB, 4 * MIB, 64 * MIB):
            if self.starts(limited((resource.RLIMIT_DATA, size))):
                with self.subTest(size=size):
                    self.run_under((resource.RLIMIT_DATA, size))

    def test_stack(self):
        """128 KiB are enough for prompts of many tokens on every instruction set; less is refused."""
        prompt = ("run", "-p", TEXT * 8, "-n", "2")
        expected = tern(*prompt).stdout
        rows = json.loads(tern("kernels", "--json").stdout)
        isas = {row["isa"] for row in rows if row["device"] == "cpu" and row["runnable"]}
        self.assertGreater(len(isas), 1)
        for size in (128 << 10, 256 << 10, MIB):
            for isa in sorted(isas):
                with self.subTest(size=size, isa=isa):
                    result = tern(*prompt, "--isa", isa, limits=limited((resource.RLIMIT_STACK, size)))
                    self.assertEqual((result.returncode, result.stdout), (0, expected), result.stderr)
        refused = tern("run", "-p", TEXT, limits=limited((resource.RLIMIT_STACK, 127 << 10)))
        self.assertEqual(refused.returncode, 1)
        self.assertEqual(refused.stderr.count(b"\n"), 1)
        self.assertIn(b"127 KiB", refused.stderr)

    def test_descriptors(self):
        answers = [self.run_under((resource.RLIMIT_NOFILE, n)) for n in range(4, 16) if
                   self.starts(limited((resource.RLIMIT_NOFILE, n)))]
        self.assertTrue(answers[-1])
        os.set_inheritable(0, True)
        case = Case("run", ["run", "-p", TEXT])
        for first in range(1, 12):  # the first opens work, the others do not
            outcome = FAULTS.run(case, limits=limited((resource.RLIMIT_NOFILE, 3 + first)))
            self.assertIn(outcome.status, (0, 1, 127))

    def test_threads(self):
        """No threads at all: one is enough, and it is said."""
        case = Case("run", ["run", "-p", TEXT, "--threads", "3"])
        good = FAULTS.run(case)
        places = [p for p in good.report.places.values() if p.what == "pthread_create"]
        self.assertGreater(len(places), 1)
        for place in places:
            outcome = FAULTS.run(case, at=f"{place.first}")
            self.assertEqual((outcome.status, outcome.stdout), (0, ANSWER), outcome.stderr)
        last = max(places, key=lambda p: p.first)
        outcome = FAULTS.run(case, at=last.first)
        self.assertIn("threads could be started", outcome.stderr)

    def test_without_proc_and_sys(self):
        case = Case("run", ["run", "-p", TEXT, "--json"])
        usual = FAULTS.run(case).stdout.split(b'"isa":"')[1].split(b'"')[0]
        for folder in ("/proc", "/sys", "/dev"):
            with self.subTest(folder=folder):
                outcome = FAULTS.run(case, hide=folder)
                self.assertEqual(outcome.status, 0, outcome.stderr)
                self.assertEqual(common.own_lines(outcome.stderr), [])
                self.assertIn(usual, outcome.stdout)  # not a weaker instruction set

    def test_empty_sys(self):
        """hwloc prints a complaint where /sys is empty, unless it is told not to."""
        script = 'mount -t tmpfs none /sys && exec "$@"'
        command = ["unshare", "-rm", "sh", "-c", script, "sh"]
        if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode:
            self.skipTest("a process may not mount over its own /sys here")
        result = subprocess.run([*command, FAULTS.tern, "run", "-p", TEXT], capture_output=True)
        self.assertEqual((result.returncode, common.own_lines(result.stderr.decode())), (0, []))

    def test_no_environment(self):
        self.assertTrue(self.assert_sound(tern("run", "-p", TEXT, env={})))

    def test_closed_streams(self):
        for fd in (0, 1, 2):
            with self.subTest(fd=fd):
                result = subprocess.run(
                    ["sh", "-c", f'exec {fd}>&-; exec "$0" run -p "{TEXT}"', FAULTS.tern],
                    capture_output=True,
                )
                self.assertEqual(result.returncode, 1 if fd == 1 else 0, result.stderr)

    def test_closed_input_is_no_file(self):
        """The first file that is opened does not become standard input, nor is it read as the question."""
        for command in ("chat", "run", "tokenize", "run -f -", "run --prompts-file -"):
            with self.subTest(command=command):
                line = f'exec <&-; exec "$0" {command}'
                result = subprocess.run(
                    ["sh", "-c", line, FAULTS.tern], capture_output=True
                )
                self.assertEqual((result.returncode, result.stdout), (1, b""))
                self.assertTrue(common.one_line(result.stderr.decode()), result.stderr)
                self.assertIn(b"standard input: Bad file descriptor", result.stderr)

    def test_closed_output_is_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            line = 'exec >&- 2>&-; exec "$0" synth --preset llama-tiny-q4_0 "$1"'
            result = subprocess.run(["sh", "-c", line, FAULTS.tern, out])
            self.assertEqual(result.returncode, 0)
            self.assertEqual(out.read_bytes()[:4], b"GGUF")


class Disks(unittest.TestCase):
    WRITERS = (
        ["synth", "--force", "--preset", "llama-tiny-q4_0"],
        ["logits", "-p", TEXT, "--force", "--all", "--output"],
    )

    def written(self, arguments, limits=None):
        """Returns the result, and the files in the folder afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            out.write_bytes(OLD)
            result = tern(*arguments, out, limits=limits)
            return result, {p.name: p.read_bytes() for p in Path(folder).iterdir()}

    def test_size_limit(self):
        """RLIMIT_FSIZE, as quotas: the write fails, and the signal does not end the program."""
        def limits(size):
            def apply():
                signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

            return apply

        for arguments in self.WRITERS:
            for size in (0, 1, 100, 4096, 10000):
                with self.subTest(command=arguments[0], size=size):
                    result, files = self.written(arguments, limits(size))
                    self.assertEqual(result.returncode, 1)
                    self.assertTrue(common.one_line(result.stderr.decode()), result.stderr)
                    self.assertIn(b"out", result.stderr)
                    self.assertIn(b"ulimit -f", result.stderr)
                    self.assertEqual(files, {"out": OLD})

    def test_full_output(self):
        full = Path("/dev/full")
        if not full.exists():
            self.skipTest("no /dev/full here")
        commands = (
            ["run", "-p", TEXT],
            ["run", "-p", TEXT, "--json"],
            ["inspect", common.SMALL_MODEL],
            ["kernels"],
            ["logits", "-p", TEXT],
            ["synth", "--list"],
            ["help"],
            ["help", "run"],
            ["--version"],
        )
        for command in commands:
            with self.subTest(command=command), full.open("w") as out:
                result = tern(*command, stdout=out)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertTrue(common.one_line(result.stderr.decode()), result.stderr)

    def test_devices_are_not_replaced(self):
        for arguments in self.WRITERS:
            result = tern(*arguments, "/dev/null")
            self.assertEqual(result.returncode, 1)
            self.assertIn(b"not a regular file", result.stderr)
            self.assertTrue(Path("/dev/null").is_char_device())

    def test_folder_is_missing_or_read_only(self):
        for arguments in self.WRITERS:
            for target in ("/nonexistent/out", "/proc/out"):
                with self.subTest(command=arguments[0], target=target):
                    result = tern(*arguments, target)
                    self.assertEqual(result.returncode, 1)
                    self.assertTrue(common.one_line(result.stderr.decode()), result.stderr)


if __name__ == "__main__":
    FAULTS, arguments = common.from_arguments()
    suite.main(arguments)
