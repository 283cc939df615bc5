# SPDX-License-Identifier: Apache-2.0
"""Maps lines to the tests that execute them; the map is made once for a commit. A build of its own counts the executed
lines of files written by hand (cover-cc); each test runs alone in it, the quickest first, and its lines are kept at
once, so a run that was stopped goes on where it ended. Generated kernels are not counted: every test of kernels runs
all of them.
"""

import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import tree

HERE = Path(__file__).resolve().parent
LIMIT = 1800
UNKNOWN = 10  # seconds of a test that --costs does not know, because it may be new or long


class Coverage:
    """The map in `folder`; `source` is the tree at the commit, with the counting build in build-cover."""

    def __init__(self, source, folder, options=()):
        self.source, self.folder, self.raw = Path(source), Path(folder), Path(folder).parent / "raw"
        self.file = self.folder / "coverage.jsonl"
        self.work = tree.Tree(self.source, self.source, [*options, *self._options()], build="build-cover",
                              launcher=HERE / "cover-cc", environment={"COVER_RAW": str(self.raw)})  # fmt: skip

    def _options(self):
        command = ["clang", "--print-file-name", "libclang_rt.profile-x86_64.a"]
        folder = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True, check=True)
        runtime = Path(folder.stdout.strip()) / "lib" / "linux" / command[-1]
        # Behind the objects: the first of two weak definitions counts, and theirs say where counts are kept.
        return ["-DTERN_SHARED=OFF", "-DTERN_BENCH=OFF", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",  # for ccache
                "-DCMAKE_EXE_LINKER_FLAGS=-u__llvm_profile_runtime",
                f"-DCMAKE_C_STANDARD_LIBRARIES={runtime}", f"-DCMAKE_CXX_STANDARD_LIBRARIES={runtime}"]  # fmt: skip

    def known(self):
        """{test: what is kept of it}"""
        if not self.file.exists():
            return {}
        entries = map(json.loads, self.file.read_text(encoding="utf-8").splitlines())
        return {entry["test"]: entry for entry in entries}

    def make(self, leave_out=(), costs=None, progress=print):
        """Runs every test that is not kept yet."""
        for folder in (self.raw, self.folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.work.open()
        output = self.work.ninja(["all"])
        if output is not None:
            raise tree.Failed(f"the counting build failed:\n{output[-3000:]}")
        self.work.open()  # commands of programs that were not built before
        known, costs = self.known(), costs or {}
        waiting = [name for name in self.work.tests if name not in known and name not in leave_out]
        for name in sorted(waiting, key=lambda name: costs.get(name, UNKNOWN)):
            entry = self._one(self.work.tests[name])
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
            progress(f"{name}: {entry['status']}, {entry['seconds']:.1f} s, {len(entry['lines'])} files", flush=True)

    def _one(self, test):
        shutil.rmtree(self.raw)
        self.raw.mkdir()
        verdict = self.work.test(test, [], "", LIMIT)
        return {"test": test.name, "status": verdict.status, "seconds": round(verdict.seconds, 2),
                "lines": self._lines(test)}  # fmt: skip

    def _lines(self, test):
        """{file: lines that were executed}, as [first, last] pairs."""
        counts = list(self.raw.glob("*.profraw"))
        merged = self.folder / "merged.profdata"
        if not counts or self._run(["llvm-profdata", "merge", "-sparse", *counts, "-o", merged]) is None:
            return {}
        text = self._run(["llvm-cov", "export", "-format=lcov", f"-instr-profile={merged}", *self._programs(test)])
        return lines_of(text or "", self.source)

    def _programs(self, test):
        """Returns the programs that the test runs, as far as one can tell."""
        build, found = self.work.build, [self.work.build / "tern"]
        for part in [*test.command, *test.environment.values()]:
            path = Path(part)
            if path.is_relative_to(build) and path.is_file() and path not in found:
                found.append(path)
        return [found[0], *(f"-object={path}" for path in found[1:])]

    @staticmethod
    def _run(command):
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        return result.stdout if result.returncode == 0 else None


def lines_of(text, source):
    """Executed lines, of the lcov format."""
    found, file = defaultdict(set), None
    for line in text.splitlines():
        kind, _, rest = line.partition(":")
        if kind == "SF":
            path = Path(os.path.normpath(rest))  # ccache writes paths as they are from the build
            file = str(path.relative_to(source)) if path.is_relative_to(source) else None
        elif kind == "DA" and file:
            number, count = rest.split(",")[:2]
            if int(count) > 0:
                found[file].add(int(number))
    return {file: ranges(numbers) for file, numbers in sorted(found.items())}


def ranges(numbers):
    pairs = []
    for number in sorted(numbers):
        if pairs and pairs[-1][1] == number - 1:
            pairs[-1][1] = number
        else:
            pairs.append([number, number])
    return pairs


def words_of(name):
    return set(re.findall(r"[a-z0-9]{3,}", str(name).lower())) - {"test", "tern", "runtime", "tools"}


def promise(entry, file):
    """Returns the seconds that the test takes; it counts as shorter where its name shares words with the file's."""
    return entry["seconds"] / (1 + 4 * len(words_of(entry["test"].replace("_", " ")) & words_of(file.replace("_", " "))))


def tests_of(known, file, first, last):
    """Tests that execute one of these lines, the most promising first."""

    def reaches(entry):
        return any(a <= last and b >= first for a, b in entry["lines"].get(file, ()))

    found = [entry for entry in known.values() if entry["status"] == 0 and reaches(entry)]
    return [entry["test"] for entry in sorted(found, key=lambda entry: promise(entry, file))]
