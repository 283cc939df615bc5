#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that tern asks of the system fails once, and from then on.

For each case the places where memory, threads, files and descriptors are asked for are recorded
(the whole stack of calls), then the program is run again for each of them with the first and the
last call from that place failing, and with every call from the first one on. Whatever fails: no
crash, no hang, no leak, no half-written file, one line of complaint, and status 1, or the right
answer. The test fails too when a chosen place was never made to fail. Each day has half of the
places, the next day the other half; --full has all of them.
"""

import argparse
import dataclasses
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common
import suite
from common import ALLOC, Case, Faults, Symbols

sys.path.append(str(common.ROOT / "tests" / "e2e"))
from other_server import OtherServer, delta, event  # noqa: E402

TEXT = "Q: What is 17+25? A:"
INNER = 6  # frames from the inside that tell places of slow cases apart
TRIES = 5
MANY = 1000  # calls from one place: the last one is like the first
TALK = b"What is 2+2?\n/regen\n/save! OUT\n/clear\n/load OUT\nAnd \\\n3+3?\n/exit\n"
REFERENCE = common.ROOT / "tests" / "golden" / "tern-small-transformers.json"
SAVED = re.compile(rb'\{\n "tern_chat": .*\n\}\n?', re.DOTALL)
RECEIPT = re.compile(rb'\{\n  "\$schema": .*\n\}\n?', re.DOTALL)
SESSION = re.compile(rb"TERNSES\n.*", re.DOTALL)  # renamed when it is complete, ends with its hash
LOG = re.compile(re.escape(common.OLD) + rb'(\{"time":"[^\n]*\}\n)*')
SECRET = re.compile(rb"tern-ed25519-secret-key [0-9a-f]{64}\n")
RECEIPT_TESTS = 9  # of the run, before its receipt is written: each says why it cannot be made
PROGRAMS = ("library", "engine", "server")
SERVED = {"slow": True, "kinds": "alloc", "races": True, "compare_file": "none", "whole": LOG}
NEEDS = {"HF": "numpy and gguf", "CERTIFICATE": "openssl"}  # what makes inputs
TLS = ("libgnutls", "libtasn1", "libgmp", "libhogweed", "libnettle", "libp11")  # without memory these crash, or end the program
SHOWN_KEY = "a-key"
SAID = [event(delta("Hel")), event(delta("lo")), event(delta(None, "stop")), event("[DONE]")]
NO_CUDA = {"TERN_CUDA_MODULE": "/nonexistent"}  # its libraries crash without memory


def cases(programs):
    run = ["run", "-p", TEXT, "--threads", "2"]
    return [
        Case("run", run),
        *tuned_cases(),
        Case("run-json", [*run, "--chat", "--json", "-t", "0.7", "--top-k", "5", "-n", "8"], compare="json"),
        Case("run-stdin", ["run", "-n", "4", "--threads", "1"], stdin=b"Once upon a time"),
        Case("inspect", ["inspect", str(common.SMALL_MODEL)], momentary=True),
        Case("inspect-json", ["inspect", str(common.SMALL_MODEL), "--json"], compare="json"),
        Case("logits", ["logits", "-p", TEXT, "--threads", "1", "--all", "--sha256", "--force", "--output", "OUT"]),
        Case("synth", ["synth", "--preset", "llama-tiny-q4_0", "OUT", "--force"]),
        Case("kernels-json", ["kernels", "--json"], compare="json", keeps=True, environment=NO_CUDA),
        # Without cpuinfo the processor has no name; without memory the reason for missing CUDA is another.
        Case("kernels", ["kernels"], compare="none", keeps=True, environment=NO_CUDA),
        Case("kernels-model", ["kernels", "-m", str(common.SMALL_MODEL)], slow=True),
        Case("usage", ["run", "--nonsense"], status=2),
        # Where the answer cannot be printed it ends there, and so does the saved part of it.
        Case("cache", [*run, "--prompt-cache", "OUT"], slow=True, old=False, whole=SESSION),
        Case("receipt", [*run, "--receipt", "OUT", "--force"], slow=True, compare_file="none", whole=RECEIPT, complaints=RECEIPT_TESTS),
        Case("quantize", ["quantize", "TINY", "OUT", "--type", "q8_0", "--force"], slow=True),
        Case("perplexity", ["perplexity", "-m", "TINY", "-f", __file__, "--windows", "1"], slow=True),
        Case("tokenize", ["tokenize", "-p", TEXT], slow=True),
        Case(
            "chat",
            ["chat", "-n", "8", "--threads", "1"],
            TALK,
            slow=True,
            goes_on=True,
            complaints=8,
            beside=".session",
            whole=SAVED,
        ),
        Case(
            "chat-terminal",
            ["chat", "-n", "8", "--threads", "1"],
            b"What is 2+2?\n" + 40 * b"/exit\n",  # where the first ones are lost
            compare="none",
            slow=True,
            terminal=True,
            goes_on=True,
            complaints=50,
            keeps=True,
            history="tern/history",
            environment={"XDG_STATE_HOME": "FOLDER", "TERM": "xterm"},
        ),
        Case("crossval", ["crossval", "--reference", str(REFERENCE), "-p", TEXT], slow=True),
        Case("convert", ["convert", "HF", "OUT", "--type", "q8_0", "--force"], slow=True),
        Case("convert-iebin", ["convert", "TINY", "OUT", "--to", "iebin"], slow=True, old=False),
        Case("convert-int4", ["convert", "TINY", "OUT", "--to", "iebin", "--q4-map", "Q4MAP"], slow=True, old=False),
        Case("logits-int4", ["logits", "-m", "INT4", "--tokens", "1,2", "--threads", "1", "--sha256"], slow=True),
        Case("plan", ["quantize", "TINY", "--plan", "--type", "int4"], slow=True),
        Case("logits-iebin", ["logits", "-m", "IEBIN", "--tokens", "1,2", "--threads", "1", "--sha256"], slow=True),
        *sparse_cases(),
        Case("keygen", ["keygen", "OUT"], old=False, beside=".pub", pair=True, compare_file="none", whole=SECRET),
        Case("prompts", ["run", "--prompts-file", "PROMPTS", "-n", "2", "--threads", "1"], slow=True, complaints=2),
        Case("verify-receipt", ["verify", "RECEIPT", "--replay"], compare="none", slow=True),
        Case("verify", ["verify-determinism", "-m", "TINY"], compare="none", slow=True),
        *asking_cases(),
        *program_cases(programs),
    ]


def tuned_cases():
    """Kernels are chosen by measuring: at the load, and when an answer is out."""
    return [
        # There is no folder, so each run measures, and may choose and check other kernels.
        Case("logits-tuned", ["logits", "-p", TEXT, "--threads", "2", "--sha256"], environment={"TERN_NO_TUNE": "0"}, slow=True, compare_file="none"),
        # The folder is empty, so each run measures when its answer is out.
        Case("run-tuned-later", ["run", "-p", TEXT, "-n", "4", "--threads", "1"], slow=True, compare_file="none", history="cache/tuning-*", environment={"TERN_NO_TUNE": "0", "TERN_CACHE_DIR": "FOLDER/cache"}),
    ]


def sparse_cases():
    """Blocks that are written, made dense at load, multiplied as they are, and found beside a file; shared bytes."""
    blocks = ["--sparse", "all", "--block", "32,32", "--keep", "60"]
    logits = ["--tokens", "1,2", "--threads", "1", "--sha256"]
    return [
        Case("convert-sparse", ["convert", "TERNARY", "OUT", "--to", "iebin", *blocks], slow=True, old=False),
        Case("convert-beside", ["convert", "TERNARY", "OUT", "--to", "sidecar", *blocks], slow=True, old=False),
        Case("convert-dense", ["convert", "FLOATS", "OUT", "--dense", "64,64", "--force"], slow=True),
        Case("logits-full", ["logits", "-m", "FULL", *logits], slow=True),
        Case("logits-sparse", ["logits", "-m", "SPARSE", *logits], slow=True),
        Case("logits-beside", ["logits", "-m", "BESIDE", *logits], slow=True),
        Case("dedup", ["dedup", "TERNARY", "OUT"], slow=True, old=False),
        Case("logits-shared", ["logits", "-m", "SHARED", *logits], slow=True),
    ]


def asking_cases():
    """Cases of clients that ask a server which is not disturbed itself."""
    ask = ["--server", "SERVER", "-n", "4"]
    shown = {"slow": True, "environment": {"TERN_API_KEY": SHOWN_KEY}}
    return [
        Case("remote", ["run", *ask, "--chat", "-p", TEXT], **shown),
        Case("remote-json", ["run", *ask, "-p", TEXT, "--json"], compare="json", **shown),
        Case("remote-chat", ["chat", *ask], b"Hi\nAnd now?\n", goes_on=True, complaints=3, **shown),
    ]


def asked_wrongly(other):
    """Whatever failed, a server is shown the key, and is asked for a model that it has."""
    shown = {headers.get("Authorization") for _, headers in other.seen} - {f"Bearer {SHOWN_KEY}"}
    models = {asked["model"] for asked in other.asked} - {"other-model"}
    return [f"a server was shown {key} as a key" for key in shown] + [f"a server was asked for {name}" for name in models]


def program_cases(programs):
    """Those that use the library, and the server's."""
    small = str(common.SMALL_MODEL)
    known = {
        "library": [Case("library", [small])],
        "engine": [
            Case("engine", [small, "OUT"], complaints=2, whole=SESSION),
            Case("engine-windows", ["WINDOWS", "OUT"], complaints=2, slow=True),
        ],
        "server": [
            Case("server", [small, "OUT"], **SERVED),
            Case("server-tls", [small, "OUT", "CERTIFICATE", "KEY", shutil.which("openssl") or "openssl"], spares=TLS, **SERVED),
        ],
    }
    return [dataclasses.replace(case, program=path) for name, path in programs.items() for case in known[name]]


def slow_cases():
    """Runs of seconds each, which measure the memory's speed."""
    bench = ["bench", "-p", "2", "-n", "1", "--repeat", "1", "--threads", "1", "--stages", "--json"]
    return [Case("bench", bench, compare="none", slow=True)]


class LeftOut(Exception):
    """A case of a part that this build lacks, for want of a library."""


class Sweep:
    def __init__(self, faults, case, symbols, seen, day=None):
        self.faults, self.case, self.symbols, self.seen, self.day = faults, case, symbols, seen, day
        self.good = faults.run(case)
        if self.good.status == 77:
            suite.skip("system calls cannot be trapped here")
        if "it was made without" in self.good.stderr:
            raise LeftOut(self.good.stderr.strip())
        if self.good.status != case.status or self.good.report is None:
            raise SystemExit(f"{case.name}: status {self.good.status} undisturbed: {self.good.stderr}")
        self.hit = set()
        self.problems = []
        self.leaks = [] if case.keeps else self.kept_undisturbed()

    def kept_undisturbed(self):
        places = [self.good.report.places[h] for h in self.good.report.live]
        ours = [p for p in places if not common.theirs(p) and not common.kept_by_libraries(p)]
        ours = [p for p in ours if not common.asked_by(p, *self.case.spares)]
        return [f"{self.case.name}: never given back, and nothing failed: {self.symbols.stack(p)}" for p in ours]

    def chosen(self):
        """All places of the day; of a slow case those that no case before it had, seen from inside."""
        places = [p for p in self.good.report.places.values() if not common.asked_by(p, *self.case.spares)]
        inner = {p.hash: (p.what, *p.frames[:INNER]) for p in places}
        if self.case.slow:
            places = [p for p in places if inner[p.hash] not in self.seen]
        self.seen.update(inner.values())
        return [p for p in places if self.day is None or (int(p.hash, 16) + self.day) % 2 == 0]

    def plans(self, places):
        for place in places:
            yield place, str(place.first)
            if self.case.slow:
                continue
            if place.last != place.first and place.count < MANY:
                yield place, str(place.last)
            yield place, f"{place.first}+"

    def one(self, plan):
        place, at = plan
        outcome = self.faults.run(self.case, at=at)
        if outcome.report is not None:
            hit = {h for h, p in outcome.report.places.items() if p.hit}
            self.hit |= hit
        elif common.theirs(place):
            self.hit.add(place.hash)  # it crashed there, which is known
        problem = common.judge(self.case, outcome, self.good, place, at.endswith("+"))
        stack = self.symbols.stack(place)
        # Where the system cannot make a file without a name, one with a temporary name is made.
        written = "< tern_out_file_write" in stack or "< tern_out_file_commit" in stack
        written = written and "< tern_tune_save" not in stack  # kept for a later start, which does without
        if not problem and written and outcome.status == self.case.status and place.kind == common.SYSTEM:
            problem = "a write that failed is taken for a success"
        if problem:
            for mark in outcome.report.places if outcome.report else ():
                problem = problem.replace(mark, self.symbols.stack(outcome.report.places[mark]))
            return f"{self.case.name}: event {at}, {self.symbols.stack(place)}: {problem}\n{outcome.stderr}"
        return None

    def catch(self, place):
        """
        Says whether a place that was missed can be accounted for. Measured figures come out shorter or longer from run
        to run, and with them the memory for their digits: then another event has the place's number, or no event has
        it. So the run is told the place itself, until a run comes by it; where figures are printed it may never come
        back.
        """
        for _ in range(TRIES):
            problem = self.one((place, f"place={place.hash}"))
            if place.hash in self.hit:
                self.problems += [problem] if problem else []
                return True
        return self.case.compare == "json" or self.case.compare_file == "none" or self.case.races

    def go(self):
        start = time.monotonic()
        chosen = list(self.chosen())
        plans = list(self.plans(chosen))
        self.problems = [p for p in common.sweep(plans, self.one) if p]
        places = self.good.report.places
        missed = [p for p in chosen if p.hash not in self.hit and not self.catch(p)]
        self.problems += self.leaks
        self.problems += [f"{self.case.name}: never failed: {self.symbols.stack(p)}" for p in missed]
        memory = [p for p in places.values() if p.kind == ALLOC]
        print(
            f"{self.case.name:<14}{len(memory):>10}{sum(p.count for p in memory):>10}"
            f"{len(places) - len(memory):>9}{len(chosen) - len(missed):>9}{len(plans):>7}"
            f"{time.monotonic() - start:>9.1f}{len(self.problems):>10}",
            flush=True,
        )
        return self.problems


def prepare(faults):
    """Makes the files that the cases read."""
    made = faults.inputs
    faults.tern_does("synth", "--preset", "llama-tiny-q4_0", made["TINY"])
    faults.tern_does("synth", "--preset", "gemma3-tiny", made["WINDOWS"])
    faults.tern_does("convert", made["TINY"], made["IEBIN"], "--to", "iebin")
    made["Q4MAP"].write_text('{"blk.*.ffn_up.weight": {"group": 32, "symmetric": false}}')
    faults.tern_does("convert", made["TINY"], made["INT4"], "--to", "iebin", "--q4-map", made["Q4MAP"])
    faults.tern_does("synth", "--preset", "bitnet-tiny", made["TERNARY"])
    made["BESIDE"].write_bytes(made["TERNARY"].read_bytes())
    for source, out, form, keep in (("TERNARY", "FULL", "iebin", "100"), ("TERNARY", "SPARSE", "iebin", "40")):
        faults.tern_does("convert", made[source], made[out], "--to", form, "--sparse", "all", "--block", "32,32", "--keep", keep)
    faults.tern_does("convert", made["BESIDE"], "--to", "sidecar", "--sparse", "all", "--block", "32,32", "--keep", "40")
    faults.tern_does("dedup", made["TERNARY"], made["SHARED"])
    made["FLOATS"].write_bytes(b"".join(struct.pack("<f", i % 7) for i in range(64 * 64)))
    faults.tern_does("run", "-p", TEXT, "-n", "4", "--receipt", made["RECEIPT"])
    writer = common.ROOT / "tests" / "e2e" / "hf_folder.py"
    subprocess.run([sys.executable, writer, made["HF"]], capture_output=True)
    made["PROMPTS"].write_text(f'{TEXT}\n{{"prompt": "Q: What is 2+2? A:"}}\n')
    make_certificate(made)


def make_certificate(made):
    """Where openssl is missing the case is left out."""
    openssl = shutil.which("openssl")
    request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost"]
    if openssl:
        files = ["-keyout", made["KEY"], "-out", made["CERTIFICATE"]]
        subprocess.run([openssl, *request, *files], check=True, capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tern", required=True)
    parser.add_argument("--shim", required=True)
    for name in PROGRAMS:
        parser.add_argument(f"--{name}", type=Path, help=f"the program of {name}.c")
    parser.add_argument("--sites", action="store_true", help="list the places of memory of `run`")
    parser.add_argument("--slow", action="store_true", help="bench as well: two minutes more")
    parser.add_argument("--full", action="store_true", help="every place of every case, in every way")
    parser.add_argument("--day", type=int, default=suite.turn(), help="whose half of the places fails")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    if not common.SMALL_MODEL.exists():
        suite.skip("the small model is not in this source tree")
    scratch = tempfile.TemporaryDirectory()
    faults = Faults(options.tern, options.shim, Path(scratch.name))
    prepare(faults)
    other = OtherServer(SAID)
    faults.inputs["SERVER"] = other.url
    problems, seen = [], set()
    print(f"{'CASE':<14}{'MEM.SITES':>10}{'MEM.CALLS':>10}{'SYSTEM':>9}{'FAILED':>9}{'RUNS':>7}{'SECONDS':>9}{'PROBLEMS':>10}")
    programs = {name: path for name in PROGRAMS if (path := getattr(options, name))}
    for case in cases(programs) + (slow_cases() if options.slow else []):
        if options.case and case.name not in options.case:
            continue
        lacking = [word for word in NEEDS if word in case.arguments and not faults.inputs[word].exists()]
        if lacking:
            print(f"{case.name}: left out, its input needs {NEEDS[lacking[0]]}")
            continue
        if options.full:
            case = dataclasses.replace(case, slow=False)
        try:
            day = None if options.full else options.day
            sweep = Sweep(faults, case, Symbols(case.program or options.tern), seen, day)
        except LeftOut as reason:
            print(f"{case.name}: left out: {reason}")
            continue
        problems += sweep.go()
        if options.sites:
            for place in sweep.good.report.places.values():
                print(f"  {place.count:>5} x {sweep.symbols.stack(place)}")
    problems += asked_wrongly(other)
    for problem in problems:
        print(problem)
    print(f"{faults.runs} runs, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
