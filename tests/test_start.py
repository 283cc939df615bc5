#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/start: no test sees what its caller has set for tern, however it is started."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import suite

START = suite.ROOT / "tests" / "start"
WATCH = suite.ROOT / "tests" / "watch"
HOSTILE = {
    "BITNET_GGUF": "/nonexistent.gguf",
    "BITNET_STRICT_MODE": "1",
    "DETERMINISTIC": "perhaps",
    "AFFINITY": "moon",
    "HF_ENDPOINT": "http://127.0.0.1:9/",
    "HF_TOKEN": "secret",
    "HOME": "/nonexistent/home",
    "HWLOC_XMLFILE": "/nonexistent.xml",
    "IE_DEDUP_STRICT": "1",
    "IE_PRECISION": "int3",
    "MAKEFLAGS": "-n",
    "NO_COLOR": "1",
    "PRECISION": "fp99",
    "PROMPTS": "/nonexistent.txt",
    "RAYON_NUM_THREADS": "none",
    "RUNS": "many",
    "TERN_CACHE": "/proc/nonexistent",
    "TERN_CUDA_MODULE": "/nonexistent.so",
    "TERN_ISA": "scalar",
    "TERN_MODEL": "/nonexistent.gguf",
    "TERN_SEED": "x",
    "TERN_THREADS": "1",
    "XDG_CACHE_HOME": "/proc/nonexistent",
    "XDG_CONFIG_HOME": "/proc/nonexistent",
    "XDG_STATE_HOME": "/proc/nonexistent",
}
# These tests read the most of it: folders of caches and chats, options and their variables, Python and C.
TRIED = ("cache_folder", "environment", "options", "e2e_cache", "e2e_names", "e2e_strict")

_options = argparse.Namespace(ctest="ctest", build=None)


def hostile():
    """Returns the environment of a caller who has not started a test yet."""
    return {k: v for k, v in os.environ.items() if k not in ("TERN_TEST_STARTED", "TERN_TEST_MODELS")} | HOSTILE


def environment_of(*words, **given):
    said = subprocess.run([START, *words, "env", "-0"], env=hostile() | given, capture_output=True, check=True).stdout
    return dict(line.split("=", 1) for line in os.fsdecode(said).split("\0") if line)


class Start(unittest.TestCase):
    def test_nothing_is_left(self):
        seen = environment_of()
        self.assertEqual({k: v for k, v in seen.items() if HOSTILE.get(k) == v}, {})
        self.assertEqual(seen["HOME"], "/dev/null")

    def test_what_is_meant_for_tests(self):
        seen = environment_of("TERN_ISA=avx2", TERN_PROCESSOR="haswell", TERN_TEST_EVERY="9", SOME="a\nTERN_X=1\n")
        kept = ("TERN_PROCESSOR", "TERN_TEST_EVERY", "TERN_ISA", "SOME")
        self.assertEqual([seen.get(name) for name in kept], ["haswell", "9", "avx2", "a\nTERN_X=1\n"])

    def test_folder_of_models(self):
        """Tests look for models in the folder where get-model puts them for this caller."""
        self.assertEqual(environment_of(TERN_CACHE="/c")["TERN_TEST_MODELS"], "/c/models")
        self.assertEqual(environment_of(TERN_CACHE="", XDG_CACHE_HOME="/x")["TERN_TEST_MODELS"], "/x/tern/models")
        seen = environment_of(TERN_CACHE="", XDG_CACHE_HOME="", HOME="/h")
        self.assertEqual(seen["TERN_TEST_MODELS"], "/h/.cache/tern/models")

    def test_status(self):
        for status in (0, 1, 77):
            self.assertEqual(subprocess.run([START, "sh", "-c", f"exit {status}"]).returncode, status)

    def test_by_hand(self):
        """A test in Python that is called without tests/start behaves as if started by it."""
        line = "import os, suite; print(*[k for k in os.environ if k in " + repr(tuple(HOSTILE)) + "])"
        said = subprocess.run([sys.executable, "-c", line], cwd=suite.ROOT / "tests", env=hostile(),
                              capture_output=True, text=True, check=True)  # fmt: skip
        self.assertEqual(said.stdout.split(), ["HOME"])


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        said = subprocess.run([_options.ctest, "--test-dir", _options.build, "--show-only=json-v1"],
                              capture_output=True, text=True, check=True)  # fmt: skip
        cls.tests = {test["name"]: test for test in json.loads(said.stdout)["tests"]}

    def test_everything_is_started_by_it(self):
        others = [name for name, test in self.tests.items() if test.get("command", [str(START)])[0] != str(START)]
        self.assertEqual(others, [])
        alone = [name for name, test in self.tests.items() if not self.is_watched(test.get("command"))]
        self.assertEqual(alone, [])
        for name, test in self.tests.items():
            names = {item["name"] for item in test["properties"]}
            self.assertNotIn("ENVIRONMENT", names, f"{name}: tests/start would take it away")

    @staticmethod
    def is_watched(command):
        """tests/watch is called, and of that only Python itself stands in front (and of a test that is not built nothing is known)."""
        return command is None or any(Path(word).resolve() == WATCH for word in command[1:8])

    def test_functions_are_named(self):
        """Tests in Python report their functions through tests/suite.py."""
        scripts = {word for test in self.tests.values() for word in test.get("command", []) if word.endswith(".py")}
        others = [name for name in sorted(scripts) if re.search(r"^ +unittest\.main\(", (suite.ROOT / name).read_text(), re.M)]
        self.assertEqual(others, [])
        self.assertGreater(len(scripts), 60)

    def test_hostile_caller(self):
        tried = [name for name in TRIED if name in self.tests]
        self.assertGreaterEqual(len(tried), 3)
        for name in tried:
            with self.subTest(test=name), tempfile.TemporaryFile() as out:
                status = subprocess.run(self.tests[name]["command"], cwd=_options.build, env=hostile(), stdout=out,
                                        stderr=subprocess.STDOUT).returncode  # fmt: skip
                out.seek(0)
                self.assertEqual(status, 0, out.read().decode(errors="replace")[-2000:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ctest", default="ctest")
    parser.add_argument("--build", required=True)
    _, rest = parser.parse_known_args(namespace=_options)
    suite.main([sys.argv[0], *rest])
