#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py --tern PROGRAM --folder TESTS [NAME...]: llama.cpp's tests of its server, with tern serve; see README.md."""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ["basic", "completion", "chat_completion", "tokenize", "embedding", "compat_oai_responses", "compat_anthropic", "security"]


def cases(o, name, any_words):
    """Tests of a file, name -> passed, failed or skipped."""
    given = {"LLAMA_SERVER_BIN_PATH": str(HERE / "llama-server"), "LLAMA_SERVER_TERN": str(o.tern.resolve()),
             "LLAMA_SERVER_MODEL": str(o.model), "LLAMA_SERVER_CONTEXT": str(o.context), "PORT": str(o.port), "PYTHONPATH": str(HERE)}
    if any_words:
        given["ANY_WORDS"] = "1"
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [sys.executable, "-m", "pytest", "-p", "plugin", "-q", "--tb=line", f"--junitxml={report.name}", f"unit/test_{name}.py"]
        with open(o.log, "a") if o.log else open(os.devnull, "w") as log:
            subprocess.run(command, cwd=o.folder, env=os.environ | given, stdout=log, stderr=log)
        tree = xml.etree.ElementTree.parse(report.name)
    found = {}
    for case in tree.iter("testcase"):
        kinds = {child.tag for child in case}
        found[case.get("name")] = "skipped" if "skipped" in kinds else "failed" if kinds & {"failure", "error"} else "passed"
    return found


def count(found):
    return f"{sum(how == 'passed' for how in found.values())} of {len(found)}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tern", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="tools/server/tests of llama.cpp")
    parser.add_argument("--model", type=Path, default=HERE.parents[1] / "models" / "tern-small.gguf")
    parser.add_argument("--context", type=int, default=512, help="largest context of the model, in positions")
    parser.add_argument("--port", type=int, default=18616)
    parser.add_argument("--log", help="append the output of pytest to this file")
    parser.add_argument("names", nargs="*", metavar="NAME")
    o = parser.parse_args()
    if not (o.folder / "unit").is_dir():
        parser.error(f"{o.folder}: no unit/ in it")
    print("| tests | unchanged | with any words |\n|---|---|---|")
    failed = []
    for name in o.names or NAMES:
        unchanged, relaxed = cases(o, name, False), cases(o, name, True)
        print(f"| `test_{name}` | {count(unchanged)} | {count(relaxed)} |", flush=True)
        failed += [f"{name}: {test}" for test, how in relaxed.items() if how != "passed"]
    print("\nNot passed with any words:", *failed, sep="\n  ")


if __name__ == "__main__":
    main()
