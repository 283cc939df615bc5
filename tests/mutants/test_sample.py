# SPDX-License-Identifier: Apache-2.0
"""Ten mutants of the list, others with each commit, are noticed; and every one of it has a place.

    python3 tests/mutants/test_sample.py --build build

Only mutants whose tests take seconds, and scalar rows only, so that the copy is quickly built. All of
them: make mutants.
"""

import argparse
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import suite  # noqa: E402

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
QUICK = (
    "formats", "generate", "gguf", "gguf_hostile", "i2s_detect", "import_i2s", "import_lookup", "metrics",
    "pack_worked", "penalties", "places", "quantize_weights", "refusals", "rope", "sampler", "session", "team",
    "text_stream", "tokenizer",
)  # fmt: skip
OPTIONS = ["--cmake=-DTERN_SCALAR_ONLY=ON", "--cmake=-DTERN_SHARED=OFF", "--cmake=-DTERN_CUDA=OFF"]

_options = argparse.Namespace(build=None)


def commit():
    command = ["git", "-C", ROOT, "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def mutants(*arguments):
    command = [sys.executable, HERE / "mutants.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


class Sample(unittest.TestCase):
    def test_places(self):
        result = mutants("--check")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_ten(self):
        work = Path(_options.build, "mutants-sample")
        chosen = ["--sample", "10", "--seed", commit(), "--by", *QUICK]
        result = mutants(*chosen, "--work", work, "--fresh", *OPTIONS)
        print(result.stdout)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("10 mutants: 10 noticed", result.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    _, rest = parser.parse_known_args(namespace=_options)
    if not (ROOT / ".git").exists() or not shutil.which("ninja") or not shutil.which("git"):
        suite.skip("no checkout, or no git or ninja")
    suite.main([sys.argv[0], *rest])
