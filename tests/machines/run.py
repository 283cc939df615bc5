#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests on every machine that this one can pretend to be (`make masks`, `make masks-all`).

    tests/machines/run.py --build build --short [--day N]
    tests/machines/run.py --build build [--only NAME] [--list] [-- CTEST ARGUMENT...]

--short: runs the tests of tests/machines/lists.py on every processor of dispatch/processors.c. Names that run the same
kernels are one group: its first runs the tests of its own kernels and whole models, the others run the tests that
choose kernels. Each day another machine runs half of all tests that could depend on a processor.

Without it: the whole suite once on each machine, a processor (TERN_PROCESSOR) for each group, or this one without
cpuinfo, or with one core. The output of a machine's run is kept in BUILD/masks/NAME.log and its result in
BUILD/masks/NAME.json; a machine that was green with the same program, tests and arguments is not run again, so the
command goes on where it was stopped. Fails unless all are green.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import lists
import machines

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import suite  # noqa: E402

FAILED = re.compile(r"^\s*\d+ - (\S+) \((?!Not Run|Disabled|Skipped)", re.M)
SUMMARY = re.compile(r"^(\d+)% tests passed, (\d+) tests failed out of (\d+)$", re.M)
PLAIN = {k: v for k, v in os.environ.items() if k != "TERN_PROCESSOR"}


@dataclass
class Machine:
    """A machine, and the settings that ctest gets there."""

    name: str
    variables: dict = field(default_factory=dict)
    before: list = field(default_factory=list)
    ctest: list = field(default_factory=list)


def pretended(build):
    """Yields every machine on which other kernels run, and two whose system differs."""
    for name in machines.groups(build / "tern", PLAIN):
        yield Machine(name, {"TERN_PROCESSOR": name})
    shim = build / "tests" / "machines" / "libtern_machine.so"
    yield Machine("no-cpuinfo", {"LD_PRELOAD": str(shim), "PRETEND_CPUINFO": "0"})
    yield Machine("one-core", {}, ["taskset", "-c", str(min(os.sched_getaffinity(0)))])


def short(build):
    """Every processor, with its part of the lists."""
    jobs = ["-j", str(os.cpu_count() or 1)]
    own = machines.own_sets(build / "tern", PLAIN)
    for name, (rows, others) in machines.groups(build / "tern", PLAIN).items():
        variables = {"TERN_PROCESSOR": name}
        yield Machine(name, variables, [], [*jobs, "-R", lists.pattern(*lists.CHOICE, *lists.MODELS)])
        for isa in own[name]:
            thinned = {"TERN_TEST_FILTER": f"_{isa}", "TERN_TEST_EVERY": str(lists.EVERY)}
            yield Machine(f"{name}: {isa}", variables | thinned, [], [*jobs, "-R", lists.pattern(*lists.KERNELS)])
        # A name of another architecture shares no feature with this one, and "scalar" has no features.
        for other in others if set(rows.values()) > {"scalar"} else []:
            yield Machine(other, {"TERN_PROCESSOR": other}, [], [*jobs, "-R", lists.pattern(*lists.CHOICE)])


def of_the_day(build, day):
    """The machine whose turn it is, with half of all that could depend on a processor, and the next time the other."""
    every = list(pretended(build))
    turn, place = divmod(day, len(every))
    machine = every[place]
    machine.variables["TERN_TEST_EVERY"] = str(lists.EVERY)
    more = lists.DAILY[turn % len(lists.DAILY)]
    machine.ctest = ["-j", str(os.cpu_count() or 1), "-R", lists.pattern(*lists.CHOICE, *lists.MODELS, *more)]
    machine.name += ", today"
    return machine


def stamp(build, arguments):
    """Returns a stamp of everything that must be the same for an older result to count: every program and test, and
    ctest's settings."""
    digest = hashlib.sha256(repr(arguments).encode())
    tests = Path(__file__).resolve().parents[1]
    programs = [build / "tern", *sorted((build / "tests").glob("test_*")), *sorted(tests.rglob("*.py"))]
    for path in programs:
        if path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def file_of(build, machine, kind):
    return build / "masks" / f"{re.sub(r'[^a-z0-9]+', '-', machine.name)}.{kind}"


def run(build, machine):
    """Runs ctest; returns the result."""
    log = file_of(build, machine, "log")
    start = time.monotonic()
    with log.open("w") as out:
        command = [*machine.before, "ctest", "--test-dir", str(build), "--output-on-failure", *machine.ctest]
        environment = PLAIN | machine.variables
        status = subprocess.run(command, env=environment, stdout=out, stderr=subprocess.STDOUT).returncode
    said = log.read_text(errors="replace")
    found = SUMMARY.findall(said)
    return {
        "status": status,
        "tests": int(found[-1][2]) if found else 0,
        "failed": FAILED.findall(said),
        "seconds": round(time.monotonic() - start),
    }


def row(machine, result, note=""):
    good = result["status"] == 0 and result["tests"] > 0
    words = "green" if good else "FAILED: " + (", ".join(result["failed"]) or f"ctest {result['status']}")
    print(f"{machine.name:<28}{result['tests']:>6}{result['seconds']:>9}  {words}{note}", flush=True)
    return good


def whole(build, machine, mark):
    """Runs one machine of the long run, or takes its known result."""
    kept = file_of(build, machine, "json")
    old = json.loads(kept.read_text()) if kept.exists() else {}
    if old.get("stamp") == mark and old["status"] == 0:
        return row(machine, old, " (before)")
    result = run(build, machine)
    kept.write_text(json.dumps(result | {"stamp": mark}))
    return row(machine, result)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--short", action="store_true", help="the short lists on every processor")
    parser.add_argument("--day", type=int, default=suite.day(), help="for another day's machine")
    parser.add_argument("--only", action="append", help="this machine alone; may be repeated")
    parser.add_argument("--list", action="store_true", help="name the machines, run nothing")
    parser.add_argument("ctest", nargs="*", help="arguments of ctest, behind --")
    options = parser.parse_args()
    build = options.build.resolve()
    (build / "masks").mkdir(exist_ok=True)
    every = [*short(build), of_the_day(build, options.day)] if options.short else list(pretended(build))
    chosen = [machine for machine in every if not options.only or machine.name in options.only]
    if options.list:
        print(*(machine.name for machine in every), sep="\n")
        return 0
    print(f"{'MACHINE':<28}{'TESTS':>6}{'SECONDS':>9}  RESULT")
    mark, good = stamp(build, options.ctest), True
    for machine in chosen:
        if options.short:
            good &= row(machine, run(build, machine))
        else:
            machine.ctest = options.ctest
            good &= whole(build, machine, mark)
    if not good:
        print(f"the reasons of failures are in {build / 'masks'}/MACHINE.log")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
