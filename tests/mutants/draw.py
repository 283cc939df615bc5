#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws small changes of the product by a seed, tries them one by one, and says which no test notices.

    tests/mutants/draw.py --seed 1 --count 100            draws, builds, runs the tests that reach each; resumes
    tests/mutants/draw.py --seed 1 --count 100 --list     shows the changes only
    tests/mutants/draw.py --seed 1 --report               the share that was noticed, and what was not
    tests/mutants/draw.py --map                           makes the map from lines to tests, which the rest needs

Works in build/mutants/drawn, a checkout of one commit (--commit, HEAD when it is made first), and leaves your files
alone. Mutants that do not compile, and those of which the compiler makes the same code, are drawn again. Mutants whose
change cannot be observed stand in equal.toml with the reason, and do not count.

Exit status: 0 at least --share percent were noticed; 1 fewer, or something failed; 2 wrong usage.
"""

import argparse
import collections
import fcntl
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import coverage
import drawing
import tree
import trial

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EQUAL = "equal"
AGAIN = (trial.NO_BUILD, trial.SAME_CODE)
NOTICED = (trial.NOTICED, trial.HANGS)


class Journal:
    """One line of JSON a trial; the last one of a mutant counts."""

    def __init__(self, path, seed):
        self.path, self.seed, self.entries = path, seed, {}
        self.read()

    def read(self):
        """Another worker may have added lines."""
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                if entry["seed"] == self.seed:
                    self.entries[entry["number"]] = entry
        return self.entries

    def add(self, entry):
        self.entries[entry["number"]] = entry
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def counted(self):
        return [entry for _, entry in sorted(self.entries.items()) if entry["outcome"] not in AGAIN]


class Lock:
    """One worker tries a mutant at a time. The lock goes with this object, or with the process."""

    def __init__(self, folder, seed, number):
        (folder / "locks").mkdir(exist_ok=True)
        self.file = open(folder / "locks" / f"{seed}-{number}", "w", encoding="utf-8")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.taken = True
        except BlockingIOError:
            self.taken = False


def equals(path=HERE / "equal.toml"):
    """{(file, the text there, the text in its place): reason}"""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equal", []) if path.exists() else []
    return {(entry["file"], *map(squeeze, (entry["find"], entry["change"]))): entry["reason"] for entry in entries}


def squeeze(text):
    return " ".join(text.split())


def sides(diff):
    """Returns the text that a diff removes and the text that it adds."""
    lines = diff.splitlines()
    return tuple(squeeze(" ".join(line[1:] for line in lines if line.startswith(sign))) for sign in "-+")


def outcome_of(entry, equal):
    same = (entry["file"], *sides(entry["diff"])) in equal
    return EQUAL if same and entry["outcome"] not in NOTICED else entry["outcome"]


def checkout(options):
    """The commit in a work tree of its own."""
    folder = options.work / (f"drawn-{options.worker}" if options.worker else "drawn")
    if not folder.exists():
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--detach", folder, options.commit], check=True)
        # A change must not become another commit, because the program would contain its name.
        names = subprocess.run(["git", "-C", folder, "ls-files", "-z"], check=True, capture_output=True).stdout
        assume = ["git", "-C", folder, "update-index", "--assume-unchanged", "-z", "--stdin"]
        subprocess.run(assume, input=names, check=True)
    return folder


def make_map(options, folder):
    costs = {}
    for line in options.costs.read_text().splitlines() if options.costs else []:
        words = line.split()
        if len(words) == 3:
            costs[words[0]] = float(words[2])
    cover = coverage.Coverage(folder, options.work / "cover", options.cmake)
    cover.work.jobs = options.jobs
    cover.make(options.without, costs)


def try_all(options, folder, source, journal, count):
    work = tree.Tree(folder, folder, options.cmake, options.jobs)
    work.open()
    cover = coverage.Coverage(folder, options.work / "cover", options.cmake)
    trials = trial.Trials(work, cover.known(), options.work, options.seconds, options.worker)
    trials.start()
    commit = tree.run(["git", "-C", folder, "rev-parse", "--short=12", "HEAD"], 60)[1].strip()
    for number, mutant in enumerate(drawing.draw(source, options.seed)):
        journal.read()
        if len([entry for entry in journal.counted() if entry["number"] < number]) >= count:
            return
        old = journal.entries.get(number)
        if old and any(old[key] != value for key, value in mutant.words().items()):
            raise tree.Failed(f"{journal.path} has other mutants of seed {options.seed}: another commit, or another draw")
        if old and not (options.again and old["outcome"] in options.again):
            continue
        lock = Lock(options.work, options.seed, number)
        if not lock.taken or journal.read().get(number) != old:
            continue
        diff = mutant.diff(source.texts[Path(mutant.file)])
        trials.use(cover.known())
        result = trials.judge(mutant)
        journal.add({"seed": options.seed, "number": number, "commit": commit, **mutant.words(), "diff": diff, **result})
        print(f"{number} {mutant.file} {mutant.function} {mutant.operator}: {result['outcome']}"
              f" {result.get('detail', '')[:100]!r}", flush=True)  # fmt: skip
        options.notes and options.notes.write_text(report(journal))


def report(journal):
    equal = equals()
    rooms, rest = collections.defaultdict(collections.Counter), []
    for entry in journal.counted():
        outcome = outcome_of(entry, equal)
        rooms[entry["room"]][outcome] += 1
        if outcome not in (*NOTICED, EQUAL):
            rest.append(entry)
    lines = ["| room | noticed | by a hang | of | equal |", "|---|---|---|---|---|"]
    for room, counts in [*sorted(rooms.items()), ("all", sum(rooms.values(), collections.Counter()))]:
        noticed, tried = sum(counts[outcome] for outcome in NOTICED), counts.total() - counts[EQUAL]
        lines.append(f"| {room} | {noticed} | {counts[trial.HANGS]} | {tried} | {counts[EQUAL]} |")
    again = collections.Counter(entry["outcome"] for entry in journal.entries.values())
    lines += ["", "Drawn again: " + ", ".join(f"{again[outcome]} ({outcome})" for outcome in AGAIN)]
    for entry in rest:
        lines += ["", f"{entry['number']} {entry['file']} {entry['function']}, {entry['operator']}: "
                      f"{entry['outcome']} ({entry.get('detail', '')[:80]})", "```", entry["diff"], "```"]  # fmt: skip
    return "\n".join(lines) + "\n"


def share(journal):
    outcomes = [outcome_of(entry, equals()) for entry in journal.counted()]
    tried = [outcome for outcome in outcomes if outcome != EQUAL]
    return 100 * sum(outcome in NOTICED for outcome in tried) / len(tried) if tried else 0


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--seed", default="1", help="any text")
    add("--count", type=int, default=100, metavar="N", help="mutants that compile and change the code")
    add("--list", action="store_true", help="show them, as drawn, and end")
    add("--report", action="store_true", help="show what is known, and end")
    add("--map", action="store_true", help="run each test once, alone, and keep what it reaches")
    add("--without", nargs="+", default=[], metavar="TEST", help="tests that the map leaves out")
    add("--costs", type=Path, metavar="FILE", help="CTestCostData.txt, so that the map begins with the quick ones")
    add("--again", nargs="+", metavar="OUTCOME", help="try those again that ended so, such as SURVIVED")
    add("--seconds", type=int, default=240, metavar="N", help="tests of one mutant begin within N seconds")
    add("--worker", type=int, default=0, metavar="N", help="one of several at once, in a tree of its own: 0, 1, ...")
    add("--share", type=float, default=95, metavar="PERCENT", help="that must be noticed")
    add("--commit", default="HEAD", help="what is changed, when the work tree is made first")
    add("--jobs", type=int, default=2, metavar="N", help="compilers at once")
    add("--work", type=Path, default=ROOT / "build" / "mutants", help="the folder of all this")
    add("--notes", type=Path, metavar="FILE", help="the report is written there as it grows")
    add("--cmake", nargs=1, action="extend", default=[], metavar="-DX=Y", help="for cmake, repeatable")
    return parser.parse_args(argv)


def main(argv=None):
    options = parse(argv)
    options.work.mkdir(parents=True, exist_ok=True)
    journal = Journal(options.work / "drawn.jsonl", options.seed)
    try:
        if options.report:
            print(report(journal), end="")
            return 0 if share(journal) >= options.share else 1
        folder = checkout(options)
        if options.map:
            make_map(options, folder)
            return 0
        source = drawing.Source(folder, tree.tracked(folder))
        if options.list:
            for number, mutant in zip(range(options.count), drawing.draw(source, options.seed)):
                print(f"{number} {mutant.file} {mutant.function}, {mutant.operator}")
                print(mutant.diff(source.texts[Path(mutant.file)]))
            return 0
        try_all(options, folder, source, journal, options.count)
        print(report(journal), end="")
        return 0 if share(journal) >= options.share else 1
    except (tree.Failed, subprocess.CalledProcessError) as error:
        print(f"draw: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
