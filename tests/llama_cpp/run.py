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


def read_reasons(path):
    """Returns file/test -> reason. Lines that are indented name tests, the line before them says why they fail."""
    reasons, why = {}, None
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            why = line
        elif line.strip() in reasons:
            raise ValueError(f"{path}: {line.strip()} has two reasons")
        else:
            reasons[line.strip()] = why
    return reasons


def reason_of(test, reasons):
    """The name under which a test has a reason: its own, or that of all its cases; None: it has none."""
    return next((name for name in (test, test.split("[")[0] + "[*]") if name in reasons), None)


def check(found, reasons, names):
    """What is wrong with the results of the files `names`: file/test -> passed, failed or skipped."""
    wrong = []
    used = set()
    for test, how in found.items():
        name = reason_of(test, reasons)
        used.add(name)
        if how == "failed" and name is None:
            wrong.append(f"{test} fails and has no reason")
        if how == "passed" and name is not None:
            wrong.append(f"{test} passes and has a reason: {reasons[name]}")
    wrong += [f"{name} has a reason and is not there" for name in reasons if name not in used and name.split("/")[0] in names]
    return wrong


def cases(o, name, any_words):
    """Tests of a file, file/test -> passed, failed or skipped."""
    given = {"LLAMA_SERVER_BIN_PATH": str(HERE / "llama-server"), "LLAMA_SERVER_TERN": str(o.tern.resolve()),
             "LLAMA_SERVER_MODEL": str(o.model), "LLAMA_SERVER_CONTEXT": str(o.context), "PORT": str(o.port), "PYTHONPATH": str(HERE)}
    if any_words:
        given["ANY_WORDS"] = "1"
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [sys.executable, "-m", "pytest", "-p", "plugin", "-q", "--tb=line", "-m", "not slow", "--timeout", str(o.timeout), f"--junitxml={report.name}",
                   f"unit/test_{name}.py"]
        with open(o.log, "a") if o.log else open(os.devnull, "w") as log:
            subprocess.run(command, cwd=o.folder, env=os.environ | given, stdout=log, stderr=log)
        tree = xml.etree.ElementTree.parse(report.name)
    found = {}
    for case in tree.iter("testcase"):
        kinds = {child.tag for child in case}
        how = "skipped" if "skipped" in kinds else "failed" if kinds & {"failure", "error"} else "passed"
        test = f"{name}/{case.get('name')}"
        found[test] = "failed" if found.get(test) == "failed" else how  # a test whose end fails is there twice
    return found


def count(found):
    return f"{sum(how == 'passed' for how in found.values())} of {sum(how != 'skipped' for how in found.values())}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tern", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="tools/server/tests of llama.cpp")
    parser.add_argument("--model", type=Path, default=HERE.parents[1] / "models" / "tern-small.gguf")
    parser.add_argument("--context", type=int, default=512, help="largest context of the model, in positions")
    parser.add_argument("--port", type=int, default=18616)
    parser.add_argument("--timeout", type=int, default=60, help="of each test, in seconds")
    parser.add_argument("--log", help="append the output of pytest to this file")
    parser.add_argument("--any-words", action="store_true", help="not the run in which words must be those of llama.cpp's model")
    parser.add_argument("names", nargs="*", metavar="NAME")
    o = parser.parse_args()
    if not (o.folder / "unit").is_dir():
        parser.error(f"{o.folder}: no unit/ in it")
    names = o.names or sorted(path.stem.removeprefix("test_") for path in (o.folder / "unit").glob("test_*.py"))
    print("| tests | unchanged | with any words |\n|---|---|---|")
    found = {}
    for name in names:
        unchanged = {} if o.any_words else cases(o, name, False)
        relaxed = cases(o, name, True)
        print(f"| `test_{name}` | {count(unchanged) if unchanged else '-'} | {count(relaxed)} |", flush=True)
        found |= relaxed
    wrong = check(found, read_reasons(HERE / "reasons.txt"), names)
    print("", *wrong, sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
