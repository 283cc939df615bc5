# SPDX-License-Identifier: Apache-2.0
"""Code that the tests of the Python package share: finding the package, the program and a model."""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "e2e")]

import suite  # noqa: E402

SMALL = ROOT / "models" / "tern-small.gguf"


def begin():
    """Reads --package FOLDER, without which the installed package is meant, and imports tern."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--package")
    options, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    suite.need("cffi", "numpy")
    if options.package:
        sys.path.insert(0, options.package)
    import tern

    return tern


def run(tern, *args):
    """What the program of the package prints."""
    return tern._program.run(*map(str, args), quiet=True)


def open_small(tern, **options):
    """The small model of the tree, with kernels that do not depend on timings."""
    return tern.Model(SMALL, cache=None, tune=False, **options)
