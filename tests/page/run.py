#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py --tern PROGRAM [TEST [NAME...]]: the page of tern serve in a browser; see README.md."""

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tern" / "page"


def python():
    """Returns the Python of an environment with the packages that requirements.txt pins; it is made if it is
    missing."""
    wanted = (HERE / "requirements.txt").read_text()
    program, stamp = PLACE / "bin" / "python3", PLACE / "requirements.txt"
    if not program.exists() or not stamp.exists() or stamp.read_text() != wanted:
        venv.create(PLACE, with_pip=True, clear=True)
        subprocess.run([program, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted.split()], check=True)
        stamp.write_text(wanted)
    return program


def main():
    tests = sorted(path.stem for path in HERE.glob("test_*.py"))
    parser = argparse.ArgumentParser()
    parser.add_argument("--tern", required=True)
    parser.add_argument("test", nargs="?", choices=tests)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    environment = os.environ | {"PYTHONPATH": str(HERE.parent / "e2e")}
    failed = []
    for test in [options.test] if options.test else tests:
        command = [python(), HERE / f"{test}.py", "--tern", Path(options.tern).resolve(), *options.names]
        if subprocess.run(command, env=environment).returncode:
            failed.append(test)
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
