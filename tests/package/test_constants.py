#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Constants of the public headers keep their values: programs that were compiled with them have the numbers in them.

    tests/package/test_constants.py --cc CC --include FOLDER...            compares with tests/golden/constants.txt
    tests/package/test_constants.py --cc CC --include FOLDER... --write    takes today's as they are

A new constant is added by --write. A changed one is a new interface, which CHANGELOG.md has to say. Formats and
layouts are left out: kernels/formats.toml, of which they are made, is their list."""

import argparse
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import suite  # noqa: E402

LIST = suite.ROOT / "tests" / "golden" / "constants.txt"
MADE = ("TERN_FORMAT_", "TERN_LAYOUT_")
ENUMERATION = re.compile(r"\benum\b[\s\w]*\{([^{}]*)\}")


def names(headers, command):
    """Enumerators of the headers, as the compiler sees them."""
    text = "".join(f"#include <tern/{header}>\n" for header in headers)
    seen = subprocess.run([*command, "-E", "-"], input=text, text=True, capture_output=True, check=True).stdout
    ours, file = [], ""
    for line in seen.splitlines():
        if mark := re.match(r'# \d+ "([^"]*)"', line):
            file = mark[1]
        elif "/tern/" in file:
            ours.append(line)
    bodies = ENUMERATION.findall("\n".join(ours))
    found = [part.split("=")[0].strip() for body in bodies for part in body.split(",") if part.strip()]
    return [name for name in found if not name.startswith(MADE)]


def constants(options):
    """{name: value}"""
    headers = sorted({path.name for folder in options.include for path in (folder / "tern").glob("*.h")})
    command = [options.cc, "-std=c11", "-x", "c", *(f"-I{folder}" for folder in options.include)]
    found = names(headers, command)
    lines = [f"#include <tern/{header}>" for header in headers] + ["#include <stdio.h>", "int main(void) {"]
    lines += [f'    printf("{name} %lld\\n", (long long){name});' for name in found] + ["}"]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "constants")
        subprocess.run([*command, "-", "-o", program], input="\n".join(lines), text=True, check=True)
        said = subprocess.run([program], text=True, capture_output=True, check=True).stdout
    return {name: int(value) for name, value in map(str.split, said.splitlines())}


class Constants(unittest.TestCase):
    options = None

    def test_constants(self):
        listed = dict(line.split() for line in LIST.read_text(encoding="utf-8").splitlines())
        found = {name: str(value) for name, value in constants(self.options).items()}
        self.assertGreater(len(listed), 100)
        same = {name: found.get(name) for name in listed if not name.endswith("_COUNT")}
        self.assertEqual(same, {name: listed[name] for name in same})
        self.assertEqual(set(found), set(listed), "a constant has no line in tests/golden/constants.txt: --write adds it")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--include", type=Path, nargs="+", required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write:
        LIST.write_text("".join(f"{name} {value}\n" for name, value in constants(options).items()), encoding="utf-8")
        return
    Constants.options = options
    suite.main(["constants"])


if __name__ == "__main__":
    main()
