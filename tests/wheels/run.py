#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries wheels of the Python package: `make test-wheels`.

    run.py --tern PROGRAM [--python PYTHON]... WHEEL...

Each wheel of this machine's processor is installed for each Python that is here, into an environment of its own, away
from the source tree. It must have the kernels that PROGRAM, built from the tree, has. Its program and its module must
give the digest that PROGRAM gives for the small model, on every instruction set that runs here. A wheel of another
platform is named and left out.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = Path(__file__).resolve().parents[2] / "models" / "tern-small.gguf"
VERSIONS = [f"python3.{minor}" for minor in range(10, 15)]
TOKENS = "1,17,42,99"
ASK = f"""
import json, sys, tern
options = dict(isa=sys.argv[2]) if sys.argv[2] else dict()
model = tern.Model(sys.argv[1], cache=None, tune=False, **options)
text = model.generate("Q: What is 17+25? A:", max_tokens=8).text
print(json.dumps([tern.digest(model.logits([{TOKENS}], all=True)), text]))
"""


def said(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"tests/wheels: {' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


def digest(program, isa):
    """What a program prints of the small model's logits, on an instruction set."""
    isa = ["--isa", isa] if isa else []
    return said(program, "logits", "-m", MODEL, "--tokens", TOKENS, "--all", "--sha256", *isa).split()[0]


def kernels(program):
    """Names of the kernels that a program was built with: those that run here, and those that this processor lacks."""
    rows = [line.split(maxsplit=3) for line in said(program, "kernels").split("\n\n")[0].splitlines()[1:]]
    return {row[0] for row in rows if not (row[3:] and row[3].startswith("not built"))}


def sets(program):
    """The instruction sets of kernels that run here."""
    rows = json.loads(said(program, "kernels", "--json"))
    return sorted({row["isa"] for row in rows if row["runnable"] and row["device"] == "cpu"})


def runs_here(wheel):
    return wheel.stem.endswith(f"_{platform.machine()}") and "-manylinux_" in wheel.name


def pythons(asked):
    """Programs of Python that start, of those that were asked for or of all versions that tern supports."""
    for name in asked or VERSIONS:
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            yield Path(path)
        elif asked:
            sys.exit(f"tests/wheels: {name} does not start")


def try_wheel(wheel, python, expected, folder):
    """Installs a wheel and compares what it says with what the program of the tree said: its kernels, the digest."""
    names, text = expected
    home = folder / f"{wheel.stem}-{python.name}"
    said(python, "-m", "venv", home)
    said(home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    program = home / "bin" / "tern"
    differ = sorted(kernels(program) ^ names)
    assert not differ, f"{wheel.name}: {len(differ)} kernels are not those of the tree: {', '.join(differ[:5])}"
    tried = ["", *sets(program)]
    for isa in tried:
        assert digest(program, isa) == text, f"{wheel.name}: the program's digest on '{isa}'"
        answer = said(home / "bin" / "python", "-c", ASK, MODEL, isa, cwd=folder)
        assert answer == f'["{text}", " 42"]\n', f"{wheel.name}, {python}: {answer}"
    version = said(home / "bin" / "python", "--version").split()[1]
    print(f"{wheel.name}: Python {version}: {len(names)} kernels, {text[:16]}... on {' '.join(tried[1:])}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tern", type=Path, required=True)
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("wheels", type=Path, nargs="+")
    args = parser.parse_args()
    expected, tried = (kernels(args.tern), digest(args.tern, "")), 0
    os.environ.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory(prefix="tern-wheels-") as folder:
        for wheel in args.wheels:
            if not runs_here(wheel):
                print(f"{wheel.name}: is not for this machine, not tried")
                continue
            for python in pythons(args.python):
                try_wheel(wheel.resolve(), python, expected, Path(folder))
                tried += 1
    print(f"{tried} installations, one digest")
    return 0 if tried else 1


if __name__ == "__main__":
    sys.exit(main())
