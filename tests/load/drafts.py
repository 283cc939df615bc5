#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drafts.py --model FILE [--rounds N] [--kinds edits,free]: how much time guessed tokens save (docs/architecture.md#guesses),
on a quiet machine.

The texts in drafts/ are prompts of four kinds. Each is continued greedily by tern run with guesses and without, in
turns; the tokens must be equal. It prints the ratio of tokens a second: for each prompt the median of the rounds, for
each kind the geometric mean of its prompts."""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
KINDS = ("edits", "copies", "summaries", "free")


def prompts(kind):
    """Pairs of a name and a text; "# name" begins a prompt."""
    found = []
    for line in (HERE / "drafts" / f"{kind}.txt").read_text().splitlines():
        name = line.removeprefix("# ")
        if name != line and name.isalpha():
            found.append((name, []))
        else:
            found[-1][1].append(line)
    return [(name, "\n".join(lines).rstrip("\n")) for name, lines in found]


def run(o, text, drafts):
    command = [o.tern, "run", "-m", o.model, "-f", "-", "-n", str(o.tokens), "--json", "--threads", str(o.threads)]
    if not drafts:
        command.append("--no-draft")
    if o.ignore_eos:
        command.append("--ignore-eos")
    done = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def measure(o, text):
    """The ratio of speeds, the last answer with guesses, and how many tokens were compared."""
    ratios, tokens = [], 0
    for turn in range(o.rounds):
        order = (True, False) if turn % 2 == 0 else (False, True)
        answers = {drafts: run(o, text, drafts) for drafts in order}
        if answers[True]["tokens"] != answers[False]["tokens"]:
            sys.exit("the answers differ:\n%s\n%s" % (answers[True]["text"], answers[False]["text"]))
        tokens += len(answers[True]["tokens"])
        ratios.append(answers[True]["decode_tps"] / answers[False]["decode_tps"])
    return statistics.median(ratios), answers[True], tokens


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True)
    p.add_argument("--tern", default=str(HERE.parents[1] / "build" / "tern"))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--tokens", type=int, default=200)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--kinds", default=",".join(KINDS))
    p.add_argument("--ignore-eos", action="store_true")
    p.add_argument("--show", action="store_true", help="print the answers")
    o = p.parse_args()
    compared = 0
    for kind in o.kinds.split(","):
        ratios = []
        for name, text in prompts(kind):
            ratio, answer, tokens = measure(o, text)
            compared += tokens
            ratios.append(ratio)
            print(f"  {kind:10s} {name:12s} {ratio:5.2f}  {answer['generated_tokens']} tokens, "
                  f"{answer['drafted_tokens']} guessed, {answer['accepted_tokens']} right", flush=True)
            if o.show:
                print(answer["text"])
        print(f"{kind:10s} {statistics.geometric_mean(ratios):5.2f}", flush=True)
    print(f"{compared} tokens compared, all equal")


if __name__ == "__main__":
    main()
