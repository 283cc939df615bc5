# SPDX-License-Identifier: Apache-2.0
"""The release tarball: it has the same bytes twice, and it builds without Python.

Python is hidden: a PATH of links to everything but python*, with traps of that name that leave a
mark, and CMake forbidden to find one. The kernel library is built, its scalar rows (all of them take
minutes: --all), and the example runs with it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TRAP = '#!/bin/sh\necho "$0 $*" >> {mark}\nexit 1\n'


def run(command: list, **options) -> str:
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def make(args: argparse.Namespace, out: Path) -> str:
    """Writes the tarball; returns its hash."""
    run([sys.executable, args.source / "scripts" / "make-dist", "--version", args.version, "--gen",
         args.gen, "--out", out])  # fmt: skip
    return hashlib.sha256(out.read_bytes()).hexdigest()


def path_without_python(folder: Path, mark: Path) -> str:
    """A folder of links to all programs of PATH that are not Python, and traps in its place."""
    folder.mkdir()
    for directory in map(Path, os.environ["PATH"].split(":")):
        for program in directory.iterdir() if directory.is_dir() else []:
            link = folder / program.name
            if not program.name.startswith("python") and not link.exists():
                link.symlink_to(program)
    for name in ("python", "python3"):
        trap = folder / name
        trap.write_text(TRAP.format(mark=mark), encoding="utf-8")
        trap.chmod(0o755)
    return str(folder)


def build(args: argparse.Namespace, tree: Path, env: dict[str, str]) -> str:
    """Builds libtern-kernels and the example from the unpacked tarball; returns the example's output."""
    build_dir, program = tree / "build", tree / "gemv"
    run([args.cmake, "-S", tree, "-B", build_dir, f"-DCMAKE_C_COMPILER={args.cc}",
         "-DCMAKE_DISABLE_FIND_PACKAGE_Python3=ON", "-DTERN_TESTS=OFF", "-DTERN_BENCH=OFF",
         f"-DTERN_SCALAR_ONLY={'OFF' if args.all else 'ON'}"], env=env)  # fmt: skip
    if "python" in (build_dir / "CMakeCache.txt").read_text(encoding="utf-8").lower().replace(
        "find_package_python3", ""
    ):
        raise SystemExit("the configured tree names a Python")
    run([args.cmake, "--build", build_dir, "--target", "tern_kernels", "-j2"], env=env)
    run([args.cc, "-std=c11", f"-I{tree / 'include'}", f"-I{tree / 'gen' / 'include'}", tree / "examples" / "gemv.c",
         build_dir / "libtern-kernels.a", "-lcpuinfo", "-lm", "-pthread", "-o", program],
        env=env)  # fmt: skip
    return run([program])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--cc", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--gen", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--all", action="store_true", help="build every instruction set")
    args = parser.parse_args()
    if not (args.source / ".git").exists():
        print("not a git checkout: skipped")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tarball, mark = folder / "one.tar.gz", folder / "mark"
        first, second = make(args, tarball), make(args, folder / "two.tar.gz")
        print(f"{tarball.stat().st_size} bytes, sha256 {first}")
        if first != second:
            raise SystemExit(f"the tarball is not reproducible: {first}, then {second}")
        with tarfile.open(tarball) as tar:
            tar.extractall(folder)
        tree = folder / f"tern-{args.version}"
        env = {**os.environ, "PATH": path_without_python(folder / "bin", mark)}
        text = build(args, tree, env)
        print(text, end="")
        if mark.exists():
            raise SystemExit(f"Python was called:\n{mark.read_text(encoding='utf-8')}")
        if not text.startswith("tern_gemv_i2_s_"):
            raise SystemExit("the example printed something else")
    return 0


if __name__ == "__main__":
    sys.exit(main())
