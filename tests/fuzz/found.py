#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the finds of a long run: tests/fuzz/found.py --build FOLDER fuzz_X ...

Inputs of the corpus that reach places that the seeds do not reach are added to tests/fuzz/found_X.txt, one a line.
Every later run begins with them. Long inputs are left out.
"""

import argparse
import ast
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MOST_BYTES = 1000
OF_REQUESTS = {"fuzz_serve", "fuzz_framing", "fuzz_request"}  # built in a folder of their own


def program_of(build, name):
    """A target in the folder of tests/fuzz/run.py."""
    return build / ("requests" if name in OF_REQUESTS else "") / "tests" / "fuzz" / name


def file_of(name):
    return HERE / f"found_{name.removeprefix('fuzz_')}.txt"


def read(name):
    """The inputs that were kept."""
    path = file_of(name)
    return [ast.literal_eval(line) for line in path.read_text(encoding="ascii").splitlines()] if path.exists() else []


def write_seeds(name, folder):
    """Fills a folder with the first inputs of a target; returns None, or the reason why its script wrote nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, found in enumerate(read(name)):
        (folder / f"found-{i:04d}").write_bytes(found)
    script = HERE / f"seeds_{name.removeprefix('fuzz_')}.py"
    if not script.exists():
        return None
    done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True)
    return (done.stderr.strip().splitlines() or ["no reason given"])[-1] if done.returncode else None


def keep(name, program, corpus):
    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder) / "seeds"
        write_seeds(name, seeds)
        before = {path.name for path in seeds.iterdir()}
        merge = [program, "-merge=1", "-use_counters=0", "-max_len=65536", seeds, corpus]
        subprocess.run(merge, check=True, capture_output=True)
        new = [path.read_bytes() for path in sorted(seeds.iterdir()) if path.name not in before]
    short = [found for found in new if len(found) <= MOST_BYTES]
    with file_of(name).open("a", encoding="ascii") as out:
        out.writelines(f"{found!r}\n" for found in sorted(short, key=lambda found: (len(found), found)))
    print(f"{name}: {len(short)} inputs more, {len(new) - len(short)} are too long")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True, help="folder of tests/fuzz/run.py")
    parser.add_argument("targets", nargs="+", help="fuzz_X")
    options = parser.parse_args()
    for name in options.targets:
        keep(name, program_of(options.build, name), options.build / "corpus" / name)


if __name__ == "__main__":
    main()
