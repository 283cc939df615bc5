# SPDX-License-Identifier: Apache-2.0
"""Measuring and checking, by the program."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _program
from ._library import integer

if TYPE_CHECKING:
    from .model import Model


def bench(model: Model | str | os.PathLike[str], *, prompt: int = 512, tokens: int = 64, repeat: int = 3,
          threads: int = 0) -> dict[str, Any]:  # fmt: skip
    """What `tern bench` measures of a model: medians of so many rounds."""
    path = _program.find_model(getattr(model, "path", model))
    flags = ["-m", path]
    for flag, value in (("-p", prompt), ("-n", tokens), ("-r", repeat), ("--threads", threads)):
        flags += [flag, str(integer(value, flag, 0, 2**31))]
    return dict(_program.run_json("bench", *flags))


def verify(receipt: str | os.PathLike[str], *, replay: bool = False, model: str | os.PathLike[str] | None = None) -> None:
    """Checks a receipt; with `replay` the run is made again. Raises TernError with what is wrong."""
    flags = (["--replay"] if replay else []) + (["-m", os.fspath(model)] if model is not None else [])
    _program.run("verify", *flags, os.fspath(receipt), quiet=True)
