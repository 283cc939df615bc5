#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries wheels of the Python package, and its source archive: `make test-wheels`, `make test-sdist`.

    run.py --tern PROGRAM [--python PYTHON]... WHEEL-OR-ARCHIVE...

Each wheel of this machine's processor is installed for each Python that is here, into an environment of its own, away
from the source tree. It must have the kernels that PROGRAM, built from the tree, has. Its program and its module must
give the digest that PROGRAM gives for the small model, on every instruction set that runs here. A wheel for 64-bit ARM
does the same in qemu on processors of its own, with Debian's Python for ARM (scripts/install-deps --aarch64 has what
that needs). A wheel of another platform is named and left out. The source archive has what git tracks, and pip builds
from it, for one Python.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "tern-small.gguf"
VERSIONS = [f"python3.{minor}" for minor in range(10, 15)]
TOKENS = "1,17,42,99"
ASK = f"""
import json, sys, tern
options = dict(isa=sys.argv[2]) if sys.argv[2] else dict()
model = tern.Model(sys.argv[1], cache=None, tune=False, **options)
text = model.generate("Q: What is 17+25? A:", max_tokens=8).text
print(json.dumps([tern.digest(model.logits([{TOKENS}], all=True)), text]))
"""
# Instruction sets of 64-bit ARM that processors of qemu run, and what Debian 12 calls the parts of its Python.
ARM_SETS = {"cortex-a53": ["neon", "scalar"], "max": ["neon", "neondot", "neoni8mm", "scalar"]}
ARM_PYTHON = "3.11"
ARM_PACKAGES = [f"python{ARM_PYTHON}-minimal", f"libpython{ARM_PYTHON}-minimal", f"libpython{ARM_PYTHON}-stdlib",
                "zlib1g", "libexpat1", "libffi8", "libc6", "libgcc-s1", "libstdc++6"]  # fmt: skip


class Installed(NamedTuple):
    """The words of the commands by which an installed wheel is called, and what they need of the environment."""

    program: list
    python: list
    name: str
    env: dict


def said(*command, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"tests/wheels: {' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


def digest(program, isa):
    """What a program prints of the small model's logits, on an instruction set."""
    isa = ["--isa", isa] if isa else []
    return said(*program, "logits", "-m", MODEL, "--tokens", TOKENS, "--all", "--sha256", *isa).split()[0]


def rows(program):
    """The table of a program's kernels for processors."""
    return [row for row in json.loads(said(*program, "kernels", "--json")) if row["device"] == "cpu"]


def built(program):
    """Names of the kernels that a program was built with: those that run here, and those that this processor lacks."""
    lines = [line.split(maxsplit=3) for line in said(*program, "kernels").split("\n\n")[0].splitlines()[1:]]
    absent = {line[0] for line in lines if line[3:] and line[3].startswith("not built")}
    return {row["name"] for row in rows(program)} - absent


def sets(program):
    """The instruction sets of kernels that run here."""
    return sorted({row["isa"] for row in rows(program) if row["runnable"]})


def is_source(path):
    return path.name.endswith(".tar.gz")


def runs_here(wheel):
    return is_source(wheel) or (wheel.stem.endswith(f"_{platform.machine()}") and "-manylinux_" in wheel.name)


def runs_in_qemu(wheel):
    return wheel.stem.endswith("_aarch64") and "-manylinux_" in wheel.name and shutil.which("qemu-aarch64") is not None


def pythons(asked):
    """Programs of Python that start, of those that were asked for or of all versions that tern supports."""
    for name in asked or VERSIONS:
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
            yield Path(path)
        elif asked:
            sys.exit(f"tests/wheels: {name} does not start")


def check_source(archive):
    """A source archive has what git tracks, and what pip reads of the package, and nothing else of the tree."""
    with tarfile.open(archive) as tar:
        inside = {member.name.partition("/")[2] for member in tar if not member.isdir()}
    tracked = {name for name in said("git", "-C", ROOT, "ls-files", "-z").split("\0") if name}
    differ = sorted(inside ^ (tracked | {"PKG-INFO"}))
    assert not differ, f"{archive.name}: {len(differ)} files are not those of the tree: {', '.join(differ[:5])}"


def install(wheel, python, folder):
    """A wheel or a source archive in an environment of its own."""
    home = Path(tempfile.mkdtemp(dir=folder))  # Pythons of several versions may have one name
    said(python, "-m", "venv", home)
    said(home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    version = said(home / "bin" / "python", "--version").split()[1]
    return Installed([home / "bin" / "tern"], [home / "bin" / "python"], f"Python {version}", {})


def install_arm(wheel, folder):
    """A wheel beside a Python for ARM, once for each processor of qemu. Nothing of it becomes part of this system."""
    debs, system, home = folder / "debs", folder / "arm", folder / "site"
    debs.mkdir()
    said("apt-get", "-o", "APT::Sandbox::User=root", "download", *[f"{name}:arm64" for name in ARM_PACKAGES], cwd=debs)
    for deb in debs.iterdir():
        said("dpkg", "-x", deb, system)
    platforms = ["--platform", "manylinux_2_17_aarch64", "--platform", "manylinux2014_aarch64"]
    said(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", home, *platforms,
         "--python-version", ARM_PYTHON, "--only-binary=:all:", wheel)  # fmt: skip
    env = {"PYTHONHOME": str(system / "usr"), "PYTHONPATH": str(home)}
    for processor in ARM_SETS:
        words = ["qemu-aarch64", "-cpu", processor, "-L", system]
        yield Installed([*words, home / "tern" / "_lib" / "tern"],
                        [*words, system / "usr" / "bin" / f"python{ARM_PYTHON}"],
                        f"qemu's {processor}, Python {ARM_PYTHON}", env)  # fmt: skip


def compare(wheel, installed, names, text, wanted=None):
    """Compares what an installed wheel says with what the program of the tree said: its kernels, the digest."""
    differ = sorted(built(installed.program) ^ names)
    assert not differ, f"{wheel.name}: {len(differ)} kernels are not those of the tree: {', '.join(differ[:5])}"
    tried = sets(installed.program)
    assert tried == (wanted or tried), f"{wheel.name}, {installed.name}: {tried}"
    for isa in ["", *tried]:
        assert digest(installed.program, isa) == text, f"{wheel.name}: the program's digest on '{isa}'"
        answer = said(*installed.python, "-c", ASK, MODEL, isa, cwd="/", env=os.environ | installed.env)
        assert answer == f'["{text}", " 42"]\n', f"{wheel.name}, {installed.name}: {answer}"
    print(f"{wheel.name}: {installed.name}: {len(names)} kernels, {text[:16]}... on {' '.join(tried)}", flush=True)


def try_here(wheel, args, folder):
    """Tries a wheel, or a source archive, of this machine's processor. Returns how often."""
    found = list(pythons(args.python))
    if is_source(wheel):
        check_source(wheel)
        found = found[:1]
    for python in found:
        compare(wheel, install(wheel, python, folder), built([args.tern]), digest([args.tern], ""))
    return len(found)


def try_in_qemu(wheel, args, folder):
    """Tries a wheel for ARM, whose kernels the tree's program names too. Returns how often."""
    names = {row["name"] for row in rows([args.tern]) if row["isa"] in ARM_SETS["max"]}
    for installed, wanted in zip(install_arm(wheel, folder), ARM_SETS.values(), strict=True):
        compare(wheel, installed, names, digest([args.tern], ""), wanted)
    return len(ARM_SETS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tern", type=Path, required=True)
    parser.add_argument("--python", action="append", default=[])
    parser.add_argument("wheels", type=Path, nargs="+")
    args = parser.parse_args()
    args.tern, tried = args.tern.resolve(), 0
    os.environ.pop("PYTHONPATH", None)
    for wheel in args.wheels:
        with tempfile.TemporaryDirectory(prefix="tern-wheels-") as folder:
            if runs_here(wheel):
                tried += try_here(wheel.resolve(), args, Path(folder))
            elif runs_in_qemu(wheel):
                tried += try_in_qemu(wheel.resolve(), args, Path(folder))
            else:
                print(f"{wheel.name}: is not for this machine, not tried")
    print(f"{tried} installations, one digest")
    return 0 if tried else 1


if __name__ == "__main__":
    sys.exit(main())
