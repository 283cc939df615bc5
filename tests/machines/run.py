#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the whole suite once on each machine that this one can pretend to be (`make masks`).

    tests/machines/run.py --build build [--only NAME] [--list] [-- CTEST ARGUMENT...]

A machine is a processor (TERN_PROCESSOR), one for each set of kernels that can run here, or this
one without cpuinfo, or with one core. What a machine's run said is kept in BUILD/masks/NAME.log and
what came of it in BUILD/masks/NAME.json; a machine that was green with the same program, tests and
arguments is not run again, so the command goes on where it was stopped. Fails unless all are
green.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import machines

FAILED = re.compile(r"^\s*\d+ - (\S+) \((?!Not Run|Disabled|Skipped)", re.M)
SUMMARY = re.compile(r"^(\d+)% tests passed, (\d+) tests failed out of (\d+)$", re.M)


def pretended(build):
    """Name, environment, and what stands before the command."""
    program = build / "tern"
    shim = build / "tests" / "machines" / "libtern_machine.so"
    plain = {k: v for k, v in os.environ.items() if k != "TERN_PROCESSOR"}
    for name in machines.classes(machines.runnable(program, plain)):
        yield name, plain | {"TERN_PROCESSOR": name}, []
    yield "no-cpuinfo", plain | {"LD_PRELOAD": str(shim), "PRETEND_CPUINFO": "0"}, []
    first = str(min(os.sched_getaffinity(0)))
    yield "one-core", plain, ["taskset", "-c", first]


def stamp(build, arguments):
    """What must be the same for an older result to count: every program and test, and what ctest is told."""
    digest = hashlib.sha256(repr(arguments).encode())
    tests = Path(__file__).resolve().parents[1]
    programs = [build / "tern", *sorted((build / "tests").glob("test_*")), *sorted(tests.rglob("*.py"))]
    for path in programs:
        if path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def run(build, name, environment, before, arguments):
    """Runs ctest; what came of it."""
    log = build / "masks" / f"{name}.log"
    start = time.monotonic()
    with log.open("w") as out:
        command = [*before, "ctest", "--test-dir", str(build), *arguments]
        status = subprocess.run(command, env=environment, stdout=out, stderr=subprocess.STDOUT).returncode
    said = log.read_text(errors="replace")
    found = SUMMARY.findall(said)
    return {
        "status": status,
        "tests": int(found[-1][2]) if found else 0,
        "failed": FAILED.findall(said),
        "seconds": round(time.monotonic() - start),
    }


def row(name, result, note=""):
    good = result["status"] == 0 and result["tests"] > 0
    words = "green" if good else "FAILED: " + (", ".join(result["failed"]) or f"ctest {result['status']}")
    print(f"{name:<18}{result['tests']:>6}{result['seconds']:>9}  {words}{note}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--only", action="append", help="this machine alone; may be repeated")
    parser.add_argument("--list", action="store_true", help="name the machines, run nothing")
    parser.add_argument("ctest", nargs="*", help="arguments of ctest, behind --")
    options = parser.parse_args()
    build = options.build.resolve()
    (build / "masks").mkdir(exist_ok=True)
    mark = stamp(build, options.ctest)
    good = True
    print(f"{'MACHINE':<18}{'TESTS':>6}{'SECONDS':>9}  RESULT")
    for name, environment, before in pretended(build):
        kept = build / "masks" / f"{name}.json"
        if options.list or (options.only and name not in options.only):
            print(name) if options.list else None
            continue
        old = json.loads(kept.read_text()) if kept.exists() else {}
        if old.get("stamp") == mark and old["status"] == 0:
            row(name, old, " (before)")
            continue
        result = run(build, name, environment, before, options.ctest)
        kept.write_text(json.dumps(result | {"stamp": mark}))
        good &= row(name, result)
    if not good:
        print(f"what failed said why in {build / 'masks'}/MACHINE.log")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
