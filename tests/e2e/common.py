# SPDX-License-Identifier: Apache-2.0
"""Code that the end-to-end tests share: running tern, finding models, and the exit status for ctest.

Each test is a program: python3 tests/e2e/test_X.py --tern build/tern [--model FILE]. It exits 77,
which ctest reports as skipped, when nothing of it could run, and says why.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import suite  # noqa: E402

SMALL_MODEL = ROOT / "models" / "tern-small.gguf"

_options = argparse.Namespace(tern=None, model=None)

FLOATS = ["llama-tiny-f16", "llama-tiny-bf16", "llama-tiny-f32"]


def clean_environment(**extra):
    """Returns the environment without tern's tuner, so that the kernels that run do not depend on timings. The
    variables that ctest gives to a test (tests/CMakeLists.txt) belong to the test, not to the program."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TERN_") or k == "TERN_PROCESSOR"}
    fence = os.environ.get("TERN_TEST_FENCE")  # tests/fence
    fenced = {"LD_PRELOAD": fence} if fence else {}
    return kept | {"TERN_NO_TUNE": "1", "TERN_PRETRANSPOSE": "none"} | fenced | extra


def unfenced_environment(**extra):
    """Returns the same without tests/fence, for programs of other processors or with a sanitizer."""
    return clean_environment(LD_PRELOAD="", **extra)


def command(*args):
    return [_options.tern, *map(str, args)]


def tern(*args, env=None, stdin=b"", cwd=None):
    """Runs the program; stdout and stderr of the result are bytes."""
    result = subprocess.run(
        command(*args),
        cwd=cwd,
        env=clean_environment(**(env or {})),
        input=stdin,
        capture_output=True,
    )
    check_says_why(result.stderr.decode(errors="replace"))
    return result


def check_says_why(said):
    """An error whose message was lost on its way is told as `no error`."""
    if "tern: no error" in said or '"no error"' in said:
        raise AssertionError(f"a message was lost: {said}")


def tern_text(*args, **kwargs):
    """Standard output of a run that must succeed."""
    result = tern(*args, **kwargs)
    if result.returncode:
        raise AssertionError(f"{args}: status {result.returncode}: {result.stderr.decode()}")
    return result.stdout.decode()


def tern_json(*args, **kwargs):
    lines = tern_text(*args, "--json", **kwargs).splitlines()
    if len(lines) != 1:
        raise AssertionError(f"{args}: {len(lines)} lines of JSON")
    return json.loads(lines[0])


def quantized():
    """Small synthetic models whose weights are not floats, one or more for each format and architecture."""
    names = [line.split()[0] for line in tern_text("synth", "--list").splitlines()]
    return [name for name in names if "-tiny" in name and name not in FLOATS]


def synth(preset, folder, seed=1):
    """A model with random weights; made once per folder."""
    path = Path(folder) / f"{preset}-{seed}.gguf"
    if not path.exists():
        tern_text("synth", "--preset", preset, path, "--seed", seed)
    return path


def runnable_isas():
    """Names of the instruction sets with rows that this processor can run, in the table's order."""
    rows = json.loads(tern_text("kernels", "--json"))
    ours = [row for row in rows if row["device"] == "cpu"]
    return list(dict.fromkeys(row["isa"] for row in ours if row["runnable"]))


def prompt(length, vocabulary, seed=7):
    """Token ids that differ from each other: a multiplicative sequence, the same everywhere."""
    state, ids = seed, []
    for _ in range(length):
        state = state * 48271 % 2147483647
        ids.append(state % vocabulary)
    return ids


def comma(ids):
    return ",".join(map(str, ids))


def small_model():
    if not SMALL_MODEL.exists():
        raise unittest.SkipTest(f"{SMALL_MODEL.name} is not in this source tree")
    return SMALL_MODEL


def smollm2():
    """Returns --model, else $TERN_TEST_SMOLLM2 (each must exist), else the model that get-model has cached."""
    named = _options.model or os.environ.get("TERN_TEST_SMOLLM2")
    if named:
        if not Path(named).exists():
            raise AssertionError(f"{named} does not exist")
        return Path(named)
    path = suite.fetched_models() / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not path.exists():
        raise unittest.SkipTest("SmolLM2 is not at hand: run scripts/get-model smollm2")
    return path


class TernTest(unittest.TestCase):
    def assert_one_line_error(self, result, status=1, contains=()):
        """A refusal: this status, nothing on stdout, one line on stderr that names these things."""
        message = result.stderr.decode()
        self.assertEqual(result.returncode, status, message)
        self.assertEqual(result.stdout, b"")
        self.assertEqual(len(message.splitlines()), 1, message)
        self.assertTrue(message.endswith("\n"), message)
        for text in contains:
            self.assertIn(text, message)


class FolderTest(TernTest):
    """All tests of the class share a folder of their own, `dir`."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.dir = Path(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()


def _parse(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--tern", required=True, metavar="PROGRAM")
    parser.add_argument("--model", metavar="FILE", help="the SmolLM2 file")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("names", nargs="*", metavar="CLASS.TEST", help="run only these")
    parser.parse_args(argv, namespace=_options)
    _options.tern = str(Path(_options.tern).resolve())


def main(module="__main__"):
    _parse(sys.argv[1:])
    if not os.access(_options.tern, os.X_OK):
        sys.exit(f"{_options.tern} is not a program")
    loader = unittest.TestLoader()
    names, target = _options.names, sys.modules[module]
    tests = loader.loadTestsFromNames(names, target) if names else loader.loadTestsFromModule(target)
    suite.run(tests, 2 if _options.verbose else 0)
