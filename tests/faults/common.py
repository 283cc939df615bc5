# SPDX-License-Identifier: Apache-2.0
"""Runs the program under the shim (tests/faults/shim.h) and judges what it did.

A case is a command line, whether it writes a file, and how its output is compared. It is first run
undisturbed; that run gives the places where the program asks the system for something, and the program's answer when
nothing fails.
"""

import argparse
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import suite  # noqa: E402

SMALL_MODEL = ROOT / "models" / "tern-small.gguf"
OLD = b"what stood here before\n"
ALLOC, SYSTEM = 0, 1
# Keys of measured values, and of those that belong to the moment.
TIMED = re.compile(r"tps|_ms|seconds|gbs|rss|fraction|spread|percent|watt|joule|time|available|nodes_online", re.I)


@dataclass
class Place:
    hash: str
    kind: int
    first: int
    last: int
    count: int
    hit: int
    what: str
    frames: list


@dataclass
class Report:
    places: dict = field(default_factory=dict)  # by hash
    live: dict = field(default_factory=dict)  # blocks never given back, by hash of the place
    open: int = 0

    @classmethod
    def read(cls, path):
        report, names = cls(), {}
        if not path.exists():
            return None
        for line in path.read_text().splitlines():
            word, *rest = line.split(" ")
            if word == "place":
                number, mark, kind, first, last, count, hit, what, *frames = rest
                numbers = map(int, (kind, first, last, count, hit))
                report.places[mark] = Place(mark, *numbers, what, frames)
                names[number] = mark
            elif word == "live":
                mark = names[rest[0]]
                report.live[mark] = report.live.get(mark, 0) + 1
            elif word == "open":
                report.open += 1
        return report


@dataclass
class Outcome:
    status: int
    stdout: bytes
    stderr: str
    file: bytes  # None: the command writes none
    beside: bool  # the second file is there
    litter: list  # files that should not be there
    report: Report


@dataclass
class Case:
    name: str
    arguments: list  # OUT, MODEL and names of inputs stand for paths; OUT in stdin too
    stdin: bytes = b""
    compare: str = "bytes"  # "json": without measured values; "none"
    compare_file: str = "bytes"  # "none": it holds times
    status: int = 0  # of an undisturbed run
    program: Path = None  # else the tern program
    slow: bool = False  # only places that no case before had
    old: bool = True  # the file that is written was there before
    momentary: bool = False  # some of its text belongs to the moment
    keeps: bool = False  # it loads libraries, whose loader keeps messages until the end
    goes_on: bool = False  # other answers follow the one that failed
    complaints: int = 1  # lines at most, where one thing after the other fails
    terminal: bool = False  # stdin is typed there, standard error holds prompts and remarks too
    beside: str = ""  # a second file, out and this
    history: str = "history"  # another file that may be there, or a pattern of such
    pair: bool = False  # both files are there, or none
    whole: re.Pattern = None  # of a file that differs from run to run, when it is complete
    kinds: str = "alloc,system"  # of calls that fail
    spares: tuple = ()  # libraries whose own calls are not made to fail
    races: bool = False  # its threads meet in another order each time, and so do its stacks
    environment: dict = field(default_factory=dict)

    def writes(self):
        return "OUT" in self.arguments or b"OUT" in self.stdin


# Files of /proc and /sys that describe the machine; without them less is said.
MOMENTARY = (b"available here and now", b"nodes (online")


def bare_environment():
    pretended = {"TERN_PROCESSOR": os.environ.get("TERN_PROCESSOR", "")}
    return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERN_NO_TUNE": "1"} | pretended


def comparable(case, stdout):
    if case.compare == "json" and stdout:
        return strip(json.loads(stdout))
    if case.compare == "bytes":
        return [line for line in stdout.splitlines(True) if not any(word in line for word in MOMENTARY)]
    return b""


def same_output(case, outcome, good):
    got, wanted = outcome.stdout, good.stdout
    if "threads could be started" in outcome.stderr:
        got, wanted = (re.sub(rb'"threads":[0-9]+', b'"threads":0', text) for text in (got, wanted))
    try:
        return comparable(case, got) == comparable(case, wanted)
    except ValueError:
        return False


def strip(value):
    """Returns the document without its measured values; their keys stay."""
    if isinstance(value, dict):
        return {k: "measured" if TIMED.search(k) else strip(v) for k, v in value.items()}
    return [strip(v) for v in value] if isinstance(value, list) else value


def written(out):
    """The bytes of a file, or the names and bytes of all files in a folder; None: it is not there."""
    if out.is_dir():
        return b"".join(p.name.encode() + b":" + p.read_bytes() for p in sorted(out.iterdir()))
    return out.read_bytes() if out.exists() else None


class Faults:
    INPUTS = {"TINY": "tiny.gguf", "HF": "hf", "RECEIPT": "receipt.json", "PROMPTS": "prompts.txt", "IEBIN": "iebin"}
    INPUTS |= {"CERTIFICATE": "it.crt", "KEY": "it.key"}
    INPUTS |= {"INT4": "int4", "Q4MAP": "q4.json", "WINDOWS": "windows.gguf"}
    INPUTS |= {"TERNARY": "ternary.gguf", "FULL": "full", "SPARSE": "sparse", "BESIDE": "beside.gguf", "FLOATS": "floats.bin"}
    INPUTS |= {"SHARED": "shared"}

    def __init__(self, tern, shim, scratch=Path()):
        self.tern, self.shim = Path(tern), Path(shim)
        self.runs = 0
        self.inputs = {word: scratch / name for word, name in self.INPUTS.items()}

    def tern_does(self, *arguments):
        """Undisturbed, to make an input."""
        subprocess.run([self.tern, *arguments], check=True, stdout=subprocess.DEVNULL)

    def run(self, case, at=None, act=None, hide=None, limits=None, model=SMALL_MODEL):
        """One run in a folder of its own; `act` may contain MODEL, a copy of the model there."""
        self.runs += 1
        with tempfile.TemporaryDirectory(prefix="tern-faults-") as folder:
            folder = Path(folder)
            out, copy, log = folder / "out", folder / "model.gguf", folder.with_suffix(".log")
            beside = folder / ("out" + case.beside)
            if case.writes() and case.old:
                out.write_bytes(OLD)
            if "MODEL" in case.arguments:
                copy.write_bytes(model.read_bytes())
            paths = {"OUT": out, "MODEL": copy, **self.inputs}
            arguments = [str(paths.get(a, a)) for a in case.arguments]
            environment = bare_environment()
            environment |= {name: value.replace("FOLDER", str(folder)) for name, value in case.environment.items()}
            environment["LD_PRELOAD"] = str(self.shim)
            environment["TERN_FAULTS_KINDS"] = case.kinds
            environment["TERN_FAULTS_LOG"] = str(log)
            for name, value in (("AT", at), ("ACT", act), ("HIDE", hide)):
                if value:
                    environment[f"TERN_FAULTS_{name}"] = str(value).replace("MODEL", str(copy))
            with Input(case.stdin.replace(b"OUT", os.fsencode(out)), case.terminal) as given:
                result = subprocess.run(
                    [case.program or self.tern, *arguments],
                    **given,
                    capture_output=True,
                    env=environment,
                    preexec_fn=limits,
                )
            status, stdout, stderr = result.returncode, result.stdout, result.stderr
            report = Report.read(log)
            log.unlink(missing_ok=True)
            file = written(out)
            known = (out, copy, beside)
            others = (p for p in folder.rglob("*") if p.is_file() and p not in known and p.parent != out)
            litter = sorted(str(p.relative_to(folder)) for p in others)
            litter = [name for name in litter if not fnmatch.fnmatch(name, case.history)]
            second = beside.exists()
        text = stderr.decode(errors="replace").replace(str(folder), "FOLDER")
        stdout = stdout.replace(str(folder).encode(), b"FOLDER")
        return Outcome(status, stdout, text, file, second, litter, report)


class Input:
    """Arguments of subprocess.run for the program's input: from a pipe, or typed beforehand."""

    def __init__(self, text, terminal):
        self.text, self.terminal = text, terminal

    def __enter__(self):
        if not self.terminal:
            return {"input": self.text}
        self.ends = os.openpty()
        os.write(self.ends[0], self.text)
        return {"stdin": self.ends[1]}

    def __exit__(self, *_):
        for end in self.ends if self.terminal else ():
            os.close(end)


class Symbols:
    """Names of functions from the symbol tables of the program and of libraries."""

    def __init__(self, program):
        lines = subprocess.run(["nm", "-n", program], capture_output=True, text=True).stdout
        self.table = []
        for line in lines.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "tTwW":
                self.table.append((int(words[0], 16), words[2]))

    def name(self, frame):
        module, offset = frame.rsplit("+", 1)
        if module:
            return module.split(".")[0]
        at, best = int(offset, 16), "?"
        for start, name in self.table:
            if start >= at:
                break
            best = name
        return best

    def stack(self, place):
        names = [self.name(frame) for frame in place.frames]
        return f"{place.what} < " + " < ".join(n for i, n in enumerate(names) if n != "libc" or i == 0)


def asked_by(place, *libraries):
    outside_libc = [f for f in place.frames if not f.startswith(("libc.so", "ld-linux"))]
    return bool(outside_libc) and outside_libc[0].startswith(libraries)


def theirs(place):
    """
    Says whether a library itself made the call, which tern cannot mend. cpuinfo: where it finds no memory or no
    file it prints a line of its own and keeps what it had, and it crashes where a file of /sys can
    be opened once and not a second time. The line editor takes memory for granted: without memory it crashes, or ends
    the program with a line of its own.
    """
    return asked_by(place, "libcpuinfo") or edits(place)


def edits(place):
    return asked_by(place, "libedit", "libtinfo", "libbsd")


def kept_by_libraries(place):
    """
    Says whether libraries keep the memory: buffers of streams and the time zone (three functions of the C library
    deep), stacks of ended threads, the pages that PCRE2 keeps mapped for the code of the next pattern, and the settings
    that OpenSSL, which libcurl starts by itself, had read when it found no more memory. The loader and the libraries
    that it starts keep some memory as well.
    """
    if asked_by(place, "libcrypto"):
        return True
    depth = next((i for i, f in enumerate(place.frames) if not f.startswith("libc.so")), 0)
    if place.what == "mmap" and place.frames[0].startswith("libpcre2"):
        return True
    return depth >= 3 or any(f.startswith("ld-linux") for f in place.frames)


def own_lines(text):
    theirs = (" in cpuinfo: ", "Error in GnuTLS initialization")
    return [line for line in text.splitlines() if not any(words in line for words in theirs)]


def spoken(text):
    """Returns the lines that stand alone on a terminal, without prompts and remarks."""
    return "".join(line + "\n" for line in text.splitlines() if line.startswith("tern: "))


def complaints(text, most):
    """True if these are lines of the program, from one to so many."""
    lines = own_lines(text)
    return 1 <= len(lines) <= most and all(line.startswith("tern: ") for line in lines) and text.endswith("\n")


def one_line(text):
    return complaints(text, 1)


def judge_file(case, outcome, good):
    """Says what is wrong with the file that the command writes, if anything."""
    if outcome.litter:
        return f"left behind: {outcome.litter}"
    if not case.writes():
        return None
    if outcome.status == case.status:
        same = outcome.file == good.file or (case.compare_file == "none" and outcome.file is not None)
        same = same and outcome.beside == good.beside
        return None if same else "the written files are not the right ones"
    before = OLD if case.old else None
    new = case.whole.fullmatch(outcome.file or b"") if case.whole else outcome.file == good.file
    if not new and outcome.file != before:
        return "the old file is gone, or the new one is half-written"
    if case.beside and outcome.beside != bool(new) and (case.pair or not new):
        return f"{case.beside} and the other file do not belong together"
    return None


def judge(case, outcome, good, place, persistent):
    """Returns the reason why a run in which a call failed is not acceptable; None when it is."""
    if case.terminal:
        outcome.stderr = spoken(outcome.stderr)
    if outcome.status == -signal.SIGSEGV and theirs(place) and place.kind == SYSTEM:
        return None
    ends = outcome.status in (-signal.SIGSEGV, -signal.SIGABRT, 1)
    if ends and (edits(place) or (case.terminal and persistent and place.kind == ALLOC)):
        return None
    if outcome.status == 127 and "memory for thread-local data" in outcome.stderr:
        return None  # the C library ends it: a thread first meets a library loaded late, and no memory is left
    if outcome.status < 0:
        return f"died: {signal.Signals(-outcome.status).name}"
    wrong = judge_file(case, outcome, good)
    if wrong:
        return wrong
    places = outcome.report.places
    kept = [h for h in outcome.report.live if theirs(places[h]) or kept_by_libraries(places[h])]
    kept += [h for h in outcome.report.live if asked_by(places[h], *case.spares)]
    new = [h for h in outcome.report.live if h not in good.report.live and h not in kept]
    if new and not case.keeps:
        return "not given back: " + ", ".join(new)
    if outcome.report.open > good.report.open and not edits(place):
        return "a file is still open"
    if outcome.status == case.status:
        if not same_output(case, outcome, good):
            return f"status {case.status} with another output"
        if outcome.stderr == "" and place.what == "write":
            return None
        if case.terminal:  # who types is told, and goes on
            return None
        tolerated = own_lines(outcome.stderr) == own_lines(good.stderr) or one_line(outcome.stderr)
        return None if tolerated else "status 0 with several lines of complaints"
    if outcome.status != 1:
        return f"status {outcome.status}"
    wrong = not good.stdout.startswith(outcome.stdout)
    if case.compare == "bytes" and not case.momentary and not case.goes_on and wrong:
        return "the output is not a beginning of the right one"
    if case.compare == "json" and outcome.stdout and place.what != "write":
        return "half a line of JSON"
    silent = outcome.stderr == "" and (place.what == "write" or (persistent and place.kind == SYSTEM))
    return None if complaints(outcome.stderr, case.complaints) or silent else f"not 1 to {case.complaints} lines of complaint"


def sweep(items, work, jobs=2):
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(work, items))


def from_arguments():
    """The program and the shim of the command line, and the arguments that are left for unittest."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tern", required=True)
    parser.add_argument("--shim", required=True)
    options, rest = parser.parse_known_args()
    if not SMALL_MODEL.exists():
        suite.skip("the small model is not in this source tree")
    return Faults(options.tern, options.shim), [sys.argv[0], *rest]
