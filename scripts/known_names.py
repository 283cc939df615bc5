# SPDX-License-Identifier: Apache-2.0
"""Code that the scripts share which call tern under a name from elsewhere (docs/names.md)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

BUILT = Path(__file__).resolve().parents[1] / "build" / "tern"


def arguments(parser, command):
    """Returns the arguments that were given; `options` are the words after --."""
    parser.add_argument("--tern", help="the program; default: the built one, else the one on PATH")
    parser.epilog = f"Words after -- are options of tern {command}."
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:end])
    given.options = words[end + 1 :]
    return given


def run(given, *words):
    """Ends with the exit status of tern, given these words and the options that follow them."""
    name = Path(sys.argv[0]).stem
    program = given.tern or (str(BUILT) if os.access(BUILT, os.X_OK) else shutil.which("tern"))
    if program is None:
        sys.exit(f"{name}: there is no program tern: build it with `make`, or name it with --tern")
    try:
        sys.exit(subprocess.run([program, *words, *given.options]).returncode)
    except OSError as error:
        sys.exit(f"{name}: {program}: {error.strerror}")
