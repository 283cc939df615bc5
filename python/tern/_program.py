# SPDX-License-Identifier: Apache-2.0
"""The program `tern`, which comes with the package: as a command, and for what it alone knows."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from ._library import FOLDER
from .errors import ModelError, TernError


def path() -> str:
    """Where the program is: beside the library, or on the PATH."""
    import shutil

    beside = FOLDER / "tern"
    found = str(beside) if beside.exists() else shutil.which("tern")
    if not found:
        raise TernError(f"the program tern was not found: neither {beside} nor on the PATH")
    return found


def main() -> None:
    """The command `tern`."""
    program = path()
    os.execv(program, [program, *sys.argv[1:]])


def run(*args: str, quiet: bool = False) -> str:
    """What the program prints. Raises with what it says on standard error, which people see as well unless `quiet`:
    a download shows its progress there."""
    import subprocess  # no sooner, as in path(): both take time that most programs do not need

    done = subprocess.run([path(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE if quiet else None,
                          stdin=subprocess.DEVNULL, text=True, check=False)  # fmt: skip
    if done.returncode:
        said = (done.stderr or "").strip() or "it said why on standard error"
        raise TernError(f"tern {args[0]} failed: {said}")
    return done.stdout


def run_json(*args: str) -> Any:
    """The document that the program prints with --json."""
    return json.loads(run(*args, "--json", quiet=True))


def find_model(source: Any) -> str:
    """The path of a model: a path as it is; OWNER/NAME of the Hub, or a short name, is fetched unless it is here."""
    if isinstance(source, bytes):
        source = os.fsdecode(source)
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"a model must be a path or a name, not {type(source).__name__}")
    text = os.fspath(source)
    if os.path.exists(text) or isinstance(source, os.PathLike) or looks_like_a_path(text):
        return text
    if "\0" in text:
        raise ValueError("the name of a model holds a NUL character")
    try:
        return str(run_json("inspect", "-m", text)["path"])
    except (TernError, KeyError, ValueError):
        pass
    try:
        return run("pull", "--", text, quiet=not sys.stderr.isatty()).splitlines()[-1]
    except (TernError, IndexError) as error:
        raise ModelError(f"{text}: {error}", "ERR_IO") from None


def looks_like_a_path(text: str) -> bool:
    """True for what cannot be meant as a name."""
    return text == "" or text.startswith((".", "/", "~")) or Path(text).suffix in (".gguf", ".json")
