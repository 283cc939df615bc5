#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the source in small ways, one at a time, and says which test noticed.

    tests/mutants/mutants.py                      all of the lists (tests/mutants/*.list)
    tests/mutants/mutants.py --only ID --row M257 some
    tests/mutants/mutants.py --sample 10 --seed 7 ten, the same ten for the same seed
    tests/mutants/mutants.py --check              only whether each fits its place and its row

Works on a copy below build/mutants, with a build of its own, and leaves your files alone. A mutant
names a definition, an expression that occurs once in it, the text to put there, and the row of
docs/requirements.md that it breaks; only tests and functions that this row names count.

Results are kept in build/mutants/journal.jsonl: a mutant that was noticed is not tried again until
it, the definition that it changes, or the file of a test of it changes (--fresh tries all again).

Exit status: 0 all were noticed; 1 one was not, or fits no place, or does not compile, or has no test
that runs here; 2 wrong usage.
"""

import argparse
import hashlib
import json
import os
import queue
import random
import sys
import threading
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import listing
import places
import tree

ROOT = Path(__file__).resolve().parents[2]
NOTICED, SURVIVED = "noticed", "SURVIVED"
NO_PLACE, NO_BUILD, NO_TEST = "NO PLACE", "DOES NOT COMPILE", "NO TEST"


class Journal:
    """One line of JSON a result; only mutants that were noticed are remembered."""

    def __init__(self, path, fresh):
        self.path, self.known = path, {}
        if path.exists() and not fresh:
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self.known[entry["key"]] = entry

    def noticed(self, key):
        entry = self.known.get(key)
        return entry if entry and entry["outcome"] == NOTICED else None

    def add(self, entry):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


class Baseline:
    """Runs of the unchanged source: a test that fails or is skipped there cannot notice anything."""

    def __init__(self, work):
        self.work, self.runs = work, {}

    def problem(self, name, words, filter):
        return self._run(name, words, filter)[0]

    def limit(self, name, words, filter):
        return 60 + 10 * self._run(name, words, filter)[1]

    def _run(self, name, words, filter):
        key = (name, tuple(words), filter)
        if key not in self.runs:
            test = self.work.tests[name]
            output = self.work.make([test])
            if output is not None:
                raise tree.Failed(f"the unchanged source does not build:\n{output[-3000:]}")
            verdict = self.work.test(test, words, filter, tree.BUILD_SECONDS)
            problem = None
            if verdict.status == tree.SKIPPED:
                problem = f"{name} is skipped here"
            elif verdict.status != 0:
                problem = f"{name} fails without any change: {verdict.output[-1500:]}"
            self.runs[key] = problem, verdict.seconds
        return self.runs[key]


def key_of(mutant, site, tests, work):
    """Returns a hash of everything that a result depends on, as far as it is considered."""
    digest = hashlib.sha256(json.dumps([asdict(mutant), site.around, tests]).encode())
    for name in tests:
        source = work.tests[name].source(work)
        digest.update(source.read_bytes() if source else b"")
    return digest.hexdigest()


def judge(mutant, site, tests, work, baseline):
    """Returns (outcome, the test that noticed or the fault)."""
    only = mutant.filter
    problems = {name: baseline.problem(name, words, only) for name, words in tests.items()}
    running = {name: words for name, words in tests.items() if problems[name] is None}
    if not running:
        return NO_TEST, "; ".join(filter(None, problems.values()))
    work.write(site.path, site.text(mutant.change))
    try:
        output = work.make([work.tests[name] for name in running])
        if output is not None:
            return NO_BUILD, output[-1500:]
        for name, words in running.items():
            limit = baseline.limit(name, words, only)
            verdict = work.test(work.tests[name], words, only, limit)
            noticed = verdict.noticed_by(words)
            if noticed:
                return NOTICED, f"{name}: {noticed}"
            if verdict.status != 0:
                problems[name] = f"{name} failed elsewhere: {', '.join(verdict.failed)}"
        return SURVIVED, "; ".join(filter(None, problems.values()))
    finally:
        work.write(site.path, site.text())


class Run:
    def __init__(self, options, mutants):
        self.options, self.journal = options, Journal(options.journal, options.fresh)
        self.shown = listing.rows((options.root / options.requirements).read_text(encoding="utf-8"))
        self.waiting, self.results = queue.Queue(), {}
        self.total, self.lock, self.error = len(mutants), threading.Lock(), None
        for mutant in mutants:
            self.waiting.put(mutant)

    def worker(self, number):
        try:
            options = self.options
            work = tree.Tree(options.root, options.work / str(number), options.cmake, options.ninja)
            work.open()
            baseline = Baseline(work)
            while self.error is None:
                mutant = self.waiting.get_nowait()
                self.report(mutant, self.one(mutant, work, baseline))
        except queue.Empty:
            pass
        except (tree.Failed, OSError) as error:
            self.error = error

    def one(self, mutant, work, baseline):
        try:
            tests = listing.tests_of(mutant, self.shown, work.tests)
            site = places.find(
                work.source, work.files, mutant.folder, mutant.function, mutant.find
            )
        except (places.NoPlace, listing.BadList) as error:
            return NO_PLACE, str(error), False
        key = key_of(mutant, site, tests, work)
        known = self.journal.noticed(key)
        if known:
            return NOTICED, known["detail"], True
        outcome, detail = judge(mutant, site, tests, work, baseline)
        with self.lock:
            self.journal.add(
                {"key": key, "id": mutant.id, "row": mutant.row, "outcome": outcome, "detail": detail}
            )
        return outcome, detail, False

    def report(self, mutant, result):
        outcome, detail, old = result
        with self.lock:
            self.results[mutant.id] = (mutant, outcome, detail)
            words = f"{outcome} by {detail}" if outcome == NOTICED else f"{outcome}: {detail}"
            count = f"[{len(self.results):3}/{self.total}]"
            print(f"{count} {mutant.id} ({mutant.row}): {words}{' (before)' if old else ''}", flush=True)

    def all(self):
        threads = [
            threading.Thread(target=self.worker, args=[number], daemon=True)
            for number in range(self.options.jobs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.error:
            raise self.error
        return self.results


def summary(results):
    counts = Counter(outcome for _, outcome, _ in results.values())
    bad = [entry for entry in results.values() if entry[1] != NOTICED]
    if bad:
        print("\nnot noticed:")
    for mutant, outcome, _ in sorted(bad, key=lambda entry: entry[0].id):
        print(f"  {mutant.id} ({mutant.row}): {outcome}")
    words = ", ".join(f"{count} {outcome.lower()}" for outcome, count in sorted(counts.items()))
    print(f"\n{len(results)} mutants: {words or 'none'}")
    return 1 if bad or not results else 0


def check(mutants, options):
    """Checks that each is where it says it is, without building anything."""
    files, bad = tree.tracked(options.root), 0
    shown = listing.rows((options.root / options.requirements).read_text(encoding="utf-8"))
    everything = {name for tests in shown.values() for name in tests}
    for mutant in mutants:
        try:
            listing.tests_of(mutant, shown, everything)
            places.find(options.root, files, mutant.folder, mutant.function, mutant.find)
        except (places.NoPlace, listing.BadList) as error:
            print(f"{mutant.id} ({mutant.row}): {error}")
            bad += 1
    print(f"{len(mutants)} mutants, {bad} without a place")
    return 1 if bad else 0


def choose(mutants, options):
    if options.only:
        missing = sorted(set(options.only) - {mutant.id for mutant in mutants})
        if missing:
            raise listing.BadList(f"there is no mutant {', '.join(missing)}")
        mutants = [mutant for mutant in mutants if mutant.id in options.only]
    if options.row:
        mutants = [mutant for mutant in mutants if mutant.row in options.row]
    if options.by:
        named = {mutant: set(listing.parts(mutant.by)) if mutant.by else set() for mutant in mutants}
        mutants = [mutant for mutant in mutants if named[mutant] and named[mutant] <= set(options.by)]
    if options.sample is not None:
        chosen = sorted(mutants, key=lambda mutant: mutant.id)
        mutants = random.Random(options.seed).sample(chosen, min(options.sample, len(chosen)))
    return mutants


def parse(argv):
    cores = os.cpu_count() or 1
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", metavar="ID", help="only these mutants")
    add("--row", nargs="+", metavar="M1", help="only mutants of these rows")
    add("--by", nargs="+", metavar="TEST", help="only mutants whose `by` names nothing but these tests")
    add("--sample", type=int, metavar="N", help="N of them, chosen by --seed")
    add("--seed", default="0", help="any text")
    add("--list", action="store_true", help="say which mutants these are, and end")
    add("--check", action="store_true", help="only say which fit no place")
    add("-j", "--jobs", type=int, default=1, metavar="N", help="N copies of the tree at once")
    add("--ninja", type=int, default=cores, metavar="N", help="compilers at once, in each copy")
    add("--work", type=Path, help="the folder of the copies (build/mutants)")
    add("--journal", type=Path, help="the file of results (journal.jsonl in that folder)")
    add("--fresh", action="store_true", help="take nothing from the journal")
    add("--cmake", nargs=1, action="extend", default=[], metavar="-DX=Y", help="for cmake, repeatable")
    add("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    add("--requirements", default="docs/requirements.md", help=argparse.SUPPRESS)
    add("files", nargs="*", type=Path, help="lists, in place of those beside this file")
    options = parser.parse_args(argv)
    options.root = options.root.resolve()
    options.work = options.work or options.root / "build" / "mutants"
    options.journal = options.journal or options.work / "journal.jsonl"
    options.files = options.files or sorted(Path(__file__).resolve().parent.glob("*.list"))
    return options


def main(argv=None):
    options = parse(argv)
    try:
        mutants = choose(listing.read(options.files), options)
        if options.list:
            print("\n".join(f"{mutant.id} ({mutant.row})" for mutant in mutants))
            return 0
        if options.check:
            return check(mutants, options)
        return summary(Run(options, mutants).all())
    except (listing.BadList, tree.Failed) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2 if isinstance(error, listing.BadList) else 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
