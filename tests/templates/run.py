#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chat templates of a folder (FOLDER/**/*.jinja) against Jinja2, with random conversations.

Prints a table of names, SHA-256 and results; fails when a template differs. Published templates
are not part of this repository: `make test-templates FOLDER=...` is run by hand.
"""

import argparse
import hashlib
import sys
from pathlib import Path

import oracle


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--conversations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    env, bad, total = oracle.environment(), 0, 0
    program = oracle.Tool(args.tool)
    print("| template | SHA-256 | conversations rendered, the rest refused by both |\n|---|---|---|")
    for path in sorted(args.folder.rglob("*.jinja")):
        source = path.read_bytes()
        sha = hashlib.sha256(source).hexdigest()
        difference, rendered = oracle.compare(env, program, source.decode(), args.conversations, args.seed)
        total += 1
        bad += difference is not None
        name = path.relative_to(args.folder).as_posix().removesuffix(".jinja")
        print(f"| {name} | `{sha}` | {rendered} of {args.conversations} |" if difference is None else f"| {name} | `{sha}` | DIFFERS |")
        if difference is not None:
            print(difference, file=sys.stderr)
        sys.stdout.flush()
    print(f"\n{total} templates, {bad} differ", file=sys.stderr)
    return 1 if bad or total == 0 else program.close()


if __name__ == "__main__":
    sys.exit(main())
