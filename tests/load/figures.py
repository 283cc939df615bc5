#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""figures.py --model FILE [--other NAME=COMMAND]... [--clients 1,8,16]: tokens a second of tern serve and of other
servers with OpenAI's interface, on a quiet machine; docs/serving.md#under-load.

Servers are measured in turn, in another order in every second round, and each alone: they are started and ended for
it. COMMAND has {port}, {threads} and {model} where these belong; PORT alone in its place means a server that runs.
--engine measures the cost of HTTP: tern bench with as many sequences, beside the server with as many clients. Both do
the same work: passes with a token of each. So prompts have one token, nothing is guessed, and kernels are the table's.
--served N prints only the server's side of that, for bench/compare-engines; with one --other, tern_load's line of that
server, be it tern's or not, with N clients. So both sides of a pair are asked in the same way."""

import argparse
import json
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "build"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def is_ready(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


class Server:
    """A server that runs while it is measured."""

    def __init__(self, command, o):
        self.port = int(command) if command.isdecimal() else free_port()
        self.process = None
        if not command.isdecimal():
            words = [word.format(port=self.port, threads=o.threads, model=o.model) for word in shlex.split(command)]
            self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not is_ready(self.port):
            if self.process and self.process.poll() is not None:
                sys.exit(f"{command}: ended with {self.process.returncode} before it was ready")
            time.sleep(0.2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


def read(command):
    """Returns the fields of a program's line of JSON."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def load(o, port, clients, *options):
    """Returns tern_load's report about clients that ask for equal streams."""
    return read([o.load, "--port", port, "--clients", clients, "--recipes", max(clients, 8), "--tokens", o.tokens, "--seconds", o.seconds, *options])


def figures_of(report):
    return report["tokens_per_second"], report["first_text_seconds"]["p99"]


def loaded(o, command, clients, how):
    with Server(command, o) as server:
        return load(o, server.port, clients, how)


def serving(o, command, clients, how):
    return figures_of(loaded(o, command, clients, how))


def warm_up(port, o):
    """Asks for an answer of one client, so that everything the first answer brings into memory is there."""
    body = json.dumps({"prompt": [9], "max_tokens": o.tokens, "ignore_eos": True, "temperature": 0}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600):
        pass


def served(o, command, clients):
    """The server with the work of tern bench."""
    with Server(f"{command} --no-draft --no-tune", o) as server:
        warm_up(server.port, o)
        return load(o, server.port, clients, "--unchecked", "--prompt", 1)


def engine(o, clients):
    """Returns tokens a second of the engine alone, without anything that is waited for."""
    report = read([o.tern, "bench", "-m", o.model, "--threads", o.threads, "--no-tune", "-p", 0, "--depth", 1, "-n", o.tokens, "--repeat", 2,
                   "--sequences", clients, "--json"])
    [of] = [s for s in report["sequences"] if s["n"] == clients]
    return of["tps"], 0.0


def measure(o, contenders):
    """Figures by number of clients and by name."""
    figures = {}
    for clients in o.clients:
        for round_ in range(o.rounds):
            for name, take in contenders if round_ % 2 == 0 else contenders[::-1]:
                tokens, first = take(clients)
                figures.setdefault(clients, {}).setdefault(name, []).append((tokens, first))
                print(f"round {round_ + 1}: {name}, {clients} clients: {tokens:.1f} tokens/s, first text p99 {first:.3f} s", file=sys.stderr)
    return figures


def table(figures, names):
    print("| clients | " + " | ".join(f"{n}, tokens/s (first text p99)" for n in names) + " | " + " | ".join(f"{names[0]} / {n}" for n in names[1:]) + " |")
    print("|---" * (2 * len(names)) + "|")
    for clients, by in figures.items():
        means = [f"{statistics.median(t for t, _ in by[n]):.1f} ({statistics.median(f for _, f in by[n]):.3f} s)" for n in names]
        pairs = [[a / b for (a, _), (b, _) in zip(by[names[0]], by[n])] for n in names[1:]]
        ratios = [f"{statistics.median(p):.3f} ({min(p):.3f} to {max(p):.3f})" for p in pairs]
        print(f"| {clients} | " + " | ".join(means + ratios) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--other", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--engine", action="store_true", help="beside tern bench, in place of other servers")
    parser.add_argument("--clients", default="1,8,16", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tern", default=BUILD / "tern")
    parser.add_argument("--load", default=BUILD / "tests" / "load" / "tern_load")
    parser.add_argument("--served", type=int, metavar="CLIENTS", help="tern_load's line of the server alone")
    o = parser.parse_args()
    ours = f"{o.tern} serve -m {{model}} --port {{port}} --threads {{threads}} --parallel {o.served or max(o.clients)}"
    others = [given.partition("=")[::2] for given in o.other]
    if o.served:
        if len(others) > 1:
            parser.error("--served measures one server")
        print(json.dumps(loaded(o, others[0][1], o.served, "--other") if others else served(o, ours, o.served)))
        return
    ourselves = (lambda n: figures_of(served(o, ours, n))) if o.engine else (lambda n: serving(o, ours, n, "--even"))
    contenders = [("tern serve", ourselves)]
    if o.engine:
        contenders.append(("tern bench", lambda clients: engine(o, clients)))
    for name, command in others:
        contenders.append((name, lambda clients, command=command: serving(o, command, clients, "--other")))
    table(measure(o, contenders), [name for name, _ in contenders])


if __name__ == "__main__":
    main()
