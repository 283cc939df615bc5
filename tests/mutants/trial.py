# SPDX-License-Identifier: Apache-2.0
"""Tries a drawn mutant: builds it, chooses the tests that may notice it, runs them until one does."""

import hashlib
import itertools
import json
import re
import time
from pathlib import Path

import coverage
import tree

NOTICED, SURVIVED, CAPPED, UNREACHED = "noticed", "SURVIVED", "CAPPED", "UNREACHED"
HANGS = "hangs"  # no end within a limit, nor within twice of it: noticed by ctest's limits, and reported apart
NO_BUILD, SAME_CODE = "does not compile", "the same code"
LIBRARIES = ("libtern.a", "libtern_tools.a", "libtern_serve.a", "libtern_authoring.a", "libtern_receipts.a",
             "libtern_reference.a", "libtern_json_tree.a", "tern")  # fmt: skip
CUDA_LIBRARY = "tests/cuda/libtern_cuda_emulator.a"  # where device/cuda is compiled without CUDA
# The compiler warns the author of such a mutant in these ways, so nobody would keep it by mistake.
TOLD = re.compile(r"\[-W(?:incompatible-pointer-types|int-conversion|discarded-qualifiers|"
                  r"implicit-function-declaration|stringop-overflow=|nonnull|format=|format-security)\]")  # fmt: skip
KERNEL_TESTS = ("kernels_sparse", "kernels_halves", "kernels_round", "kernels_activation", "kernels_hadamard",
                "exact_products", "quotient", "lookup256", "kernels_attend", "kernels_attend_evex",
                "kernels_matmul_evex", "kernels_matmul_some", "kernels_rows")  # fmt: skip
TILE_TESTS = ("tiles", "kernels_matmul_amx", "tile_rows")
MODEL_TESTS = ("codegen", "variants", "forward", "e2e_logits_hash_some", "small_model")
PYTHON_TESTS = ("codegen_refused", "codegen", "codegen_registers")
HEADER_TESTS = ("package_constants",)  # which execute no line of a header
ARM_TESTS = ("e2e_aarch64",)
FILTERS = 3  # changed rows that are tried first, each alone


class Trials:
    """Works in the tree `work`, whose source is the commit's; `known` is the map of tests."""

    def __init__(self, work, known, folder, seconds=240, worker=0):
        self.work, self.known, self.seconds = work, known, seconds
        self.here = set()  # kernels that run on this processor
        self.plain_file = Path(folder) / (f"plain-{worker}.json" if worker else "plain.json")  # tests of the unchanged source that have no place in the map
        self.plain = json.loads(self.plain_file.read_text()) if self.plain_file.exists() else {}

    def start(self):
        self._build_or_fail()
        self.objects = self._hashes()
        status, listed = tree.run([self.work.build / "tern", "kernels", "--json"], 60)
        self.here = {row["name"] for row in json.loads(listed) if row["runnable"]} if status == 0 else set()
        # Tests that the counting build fails may pass in the usual one.
        self.learn([(name, "") for name, entry in self.known.items() if entry["status"] not in (0, tree.SKIPPED)])

    def use(self, known):
        """The map may grow while mutants are tried."""
        self.known = {name: entry | self.plain.get(name, {}) for name, entry in known.items()}

    def _build_or_fail(self):
        status, output = self.work.compile([*LIBRARIES, CUDA_LIBRARY])
        if status != 0:
            raise tree.Failed(f"the unchanged source does not build:\n{output[-3000:]}")

    def _hashes(self):
        objects = self.work.build.glob("CMakeFiles/**/*.o"), self.work.build.glob("tests/cuda/**/device/**/*.o")
        return {path: hashlib.sha256(path.read_bytes()).digest() for path in itertools.chain(*objects)}

    def changed(self):
        """Objects that differ from those of the unchanged source."""
        now = self._hashes()
        return sorted(path for path, digest in now.items() if self.objects.get(path) != digest)

    def judge(self, mutant):
        """{outcome, detail, tests}"""
        path = self.work.source / mutant.file
        text = self.unchanged = path.read_text(encoding="utf-8")
        self.work.write(mutant.file, mutant.apply(text))
        try:
            device = [CUDA_LIBRARY] if mutant.file.startswith("device/") else []
            status, output = self.work.compile([*LIBRARIES, *device])
            if status != 0 or TOLD.search(output):
                return {"outcome": NO_BUILD, "detail": output[-400:]}
            changed = self.changed()
            elsewhere = "neon" in mutant.file or mutant.file.endswith(".py")
            if not changed and not elsewhere:
                return {"outcome": SAME_CODE}
            return self.run(mutant, changed)
        finally:
            self.work.write(mutant.file, text)
            self.remove_new()

    def remove_new(self):
        """Removes objects that only a mutant of the generator has: they would differ under every later mutant."""
        for path in self._hashes().keys() - self.objects.keys():
            path.unlink()

    def choose(self, mutant, changed):
        """[(test, filter)], the quickest first; and whether a test is known to reach the place."""
        if "neon" in mutant.file:
            return [(test, "") for test in ARM_TESTS], True
        rows = [path.name.removesuffix(".c.o") for path in changed if "gen/kernels" in str(path)]
        python = mutant.file.endswith(".py")
        plan = PYTHON_TESTS if python else coverage.tests_of(self.known, mutant.file, mutant.first, mutant.last)
        plan, reached = [(test, "") for test in plan], bool(plan or rows)
        if rows:
            return plan + self._for_rows(rows), True
        if not reached:
            if mutant.kind == "table":  # which no line of the map is about
                plan = [(test, "") for test in self._of_files(mutant.file, list(filter(None, map(self._source, changed))))]
            reached = bool(plan)
        if mutant.file.startswith("include/"):
            plan, reached = [(test, "") for test in HEADER_TESTS] + plan, True
        return plan, reached

    def _for_rows(self, rows):
        # Tests pass over rows that this processor cannot run.
        names = [row.removeprefix("tern_") for row in [*filter(self.here.__contains__, rows)] or rows]
        some = names if len(names) <= FILTERS else [names[0], names[len(names) // 2], names[-1]]
        plan = [(test, name) for name in some for test in KERNEL_TESTS if not test.endswith("evex")
                and test not in ("exact_products", "quotient", "lookup256")]  # fmt: skip
        if any("amx" in row for row in rows):
            plan += [(test, "") for test in TILE_TESTS]
        return plan + [(test, "") for test in (*KERNEL_TESTS, *MODEL_TESTS)]

    def _source(self, path):
        """The file of the source that an object is of."""
        name = re.sub(r"^.*\.dir/(__/)*", "", str(path)).removesuffix(".o")
        return name if (self.work.source / name).is_file() else None

    def _of_files(self, about, files):
        """Tests that execute something in one of the files, those first that seem to be about `about`."""
        found = [
            entry for entry in self.known.values()
            if entry["status"] == 0 and any(file in entry["lines"] for file in files)
        ]  # fmt: skip
        return [entry["test"] for entry in sorted(found, key=lambda entry: coverage.promise(entry, about))]

    def run(self, mutant, changed):
        plan, reached = self.choose(mutant, changed)
        tried, start = [], time.monotonic()
        for name, only in plan:
            if time.monotonic() - start > self.seconds:
                rest = len(plan) - len(tried)
                return {"outcome": CAPPED, "detail": f"{rest} tests not run", "tests": tried, "reached": reached}
            outcome, detail = self.notices(mutant, name, only)
            tried.append(name + (f" ({only})" if only else ""))
            if outcome:
                return {"outcome": outcome, "detail": f"{name}: {detail}", "tests": len(tried)}
        return {"outcome": SURVIVED if reached else UNREACHED, "detail": f"{len(changed)} objects differ",
                "tests": tried, "reached": reached}  # fmt: skip

    def notices(self, mutant, name, only):
        """(outcome, the function that fails or how the test ended); the outcome is None where the test passes, or
        does not pass without a change."""
        test = self.work.tests.get(name)
        limit = self._limit(name, only)
        if test is None or limit is None:
            return None, ""
        status, output = self.work.compile(self.work.targets([test]) or LIBRARIES)
        if status != 0:
            return NO_BUILD, output[-400:]
        verdict = self.work.test(test, [], only, limit, True)
        if verdict.status not in (0, tree.SKIPPED):  # a machine with other work to do fails no test twice
            verdict = self.work.test(test, [], only, limit if verdict.status is not None else 2 * limit, True)
        detail = verdict.noticed_by([]) if verdict.status != tree.SKIPPED else None
        if detail is None or not self._passes_unchanged(mutant, name, only):
            return None, ""
        return HANGS if verdict.status is None else NOTICED, detail

    def _passes_unchanged(self, mutant, name, only):
        """Tests that the map lacks must show it: the mutant is taken back as long as the test runs."""
        if self._known(name, only) is None:
            path = self.work.source / mutant.file
            changed = path.read_text(encoding="utf-8")
            self.work.write(mutant.file, self.unchanged)
            self.learn([(name, only)])
            self.work.write(mutant.file, changed)
        return self._limit(name, only) is not None

    def _known(self, name, only):
        """Returns the known result of the test without a change; None where it has not run so."""
        entry = self.known.get(name)
        return self.plain.get(f"{name} {only}".strip()) if entry is None or only else entry

    def _limit(self, name, only):
        """Seconds that the test may take; None where it does not pass without a change."""
        entry = self._known(name, only)
        if entry is None:
            return 900
        return 20 + 5 * entry["seconds"] if entry["status"] == 0 else None

    def learn(self, pairs):
        """Runs tests of the unchanged source that the map lacks."""
        for name, only in pairs:
            key = f"{name} {only}".strip()
            test = self.work.tests.get(name)
            if key in self.plain or test is None:
                continue
            self.work.compile(self.work.targets([test]) or LIBRARIES)
            verdict = self.work.test(test, [], only, coverage.LIMIT)
            self.plain[key] = {"status": verdict.status, "seconds": verdict.seconds}
            self.plain_file.write_text(json.dumps(self.plain, indent=1))
