# SPDX-License-Identifier: Apache-2.0
"""Each public header compiles by itself, twice in one file, as C11 and as C++17, without a warning."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"]


def compiles(compiler: str, language: list[str], include: list[Path], header: str) -> bool:
    command = [compiler, *language, *WARNINGS, *(f"-I{path}" for path in include), "-"]
    source = f"#include <tern/{header}>\n" * 2 + "int main(void) { return 0; }\n"
    done = subprocess.run(command, input=source, text=True, capture_output=True)
    print(f"{'ok' if done.returncode == 0 else 'FAILED'}: {' '.join(command)} < {header}")
    print(done.stderr, end="")
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", required=True)
    parser.add_argument("--cxx", help="a C++ compiler, if there is one")
    parser.add_argument("--include", type=Path, nargs="+", required=True)
    args = parser.parse_args()
    languages = [(args.cc, ["-std=c11", "-x", "c"])]
    if args.cxx:
        languages.append((args.cxx, ["-std=c++17", "-x", "c++"]))
    else:
        print("no C++ compiler: C only")
    headers = sorted(path.name for folder in args.include for path in (folder / "tern").glob("*.h"))
    results = [
        compiles(compiler, language, args.include, header)
        for compiler, language in languages
        for header in headers
    ]
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
