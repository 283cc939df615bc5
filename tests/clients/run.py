#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py --tern PROGRAM [NAME...]: checks tern serve with clients that others wrote; see README.md."""

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKS = {"openai1": "openai", "openai3": "openai"}  # whose script has another name
PLACE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tern" / "clients"


def python_of(name):
    """Returns the Python of a client's environment; the environment is made if it is missing or differs from the
    pins."""
    wanted = (HERE / "requirements" / f"{name}.txt").read_text()
    folder, stamp = PLACE / name, PLACE / f"{name}.txt"
    python = folder / "bin" / "python3"
    if not python.exists() or not stamp.exists() or stamp.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted.split()], check=True)
        stamp.write_text(wanted)
    return python


def start(tern, model):
    """tern serve on a free port, and its address."""
    process = subprocess.Popen([tern, "serve", "-m", model, "--port", "0", "--any-model", "--pooling", "mean"], stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    if not line:
        sys.exit("tern serve did not start")
    return process, line.split(" at ")[1].strip()


def run(name, tern, model, seconds):
    python = python_of(name)
    process, address = start(tern, model)
    try:
        script = HERE / f"check_{CHECKS.get(name, name)}.py"
        command = [python, script, "--address", address, "--tern", tern, "--model", model, "--seconds", str(seconds)]
        failed = subprocess.run(command).returncode
        if process.poll() is not None:
            failed = f"the server ended: {process.returncode}"
    finally:
        process.terminate()
        process.wait(30)
    print(f"{name}: {'failed: ' + str(failed) if failed else 'passed'}", flush=True)
    return not failed


def main():
    names = sorted(path.stem for path in (HERE / "requirements").glob("*.txt"))
    parser = argparse.ArgumentParser()
    parser.add_argument("--tern", required=True)
    parser.add_argument("--model", default=HERE.parents[1] / "models" / "tern-small.gguf")
    parser.add_argument("--seconds", type=int, default=600, help="of schemathesis")
    parser.add_argument("names", nargs="*", choices=[*names, []], metavar="NAME")
    options = parser.parse_args()
    tern = str(Path(options.tern).resolve())
    results = [run(name, tern, str(options.model), options.seconds) for name in options.names or names]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
