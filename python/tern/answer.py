# SPDX-License-Identifier: Apache-2.0
"""What a model answers: pieces as they come, and the whole."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Sequence

from . import _program
from .errors import TernError


@dataclass(frozen=True)
class Logprob:
    """A token that could have followed, and the logarithm of its probability."""

    token: int
    logprob: float


@dataclass(frozen=True)
class Piece:
    """A token of an answer. `text` is what became certain with it: never a part of a character."""

    text: str
    token: int
    logprob: float | None = None
    likeliest: Sequence[Logprob] = ()


@dataclass(frozen=True)
class Figures:
    """Times of an answer, in seconds from when it was asked for, and what was not computed for it."""

    seconds: float
    first_token_seconds: float
    prompt_seconds: float
    queued_seconds: float
    prompt_tokens: int
    shared_tokens: int
    guessed_tokens: int
    right_guesses: int


@dataclass(frozen=True)
class Asked:
    """How an answer was asked for: what a receipt needs, and the form that it has."""

    model: str
    prompt: list[int]
    options: dict[str, Any] = field(default_factory=dict)
    form: Any = None


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    text: str
    tokens: list[int]
    end: str
    digest: str
    prompt_tokens: list[int]
    figures: Figures
    pieces: Sequence[Piece] = ()
    asked: Asked | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.text

    @property
    def value(self) -> Any:
        """What an answer in JSON says; with a model of pydantic, an object of it."""
        form = self.asked.form if self.asked else None
        return parse_value(self.text, form, self.end)

    def receipt(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Lets the program compute the answer again and write a receipt of it. Raises TernError where the program
        answers something else, or where `tern run` has no option for how this was asked for."""
        if self.asked is None:
            raise TernError("nobody knows any more how this answer was asked for")
        said = _program.run_json("run", *_flags(self.asked, len(self.tokens)), "--receipt", os.fspath(path))
        if said["tokens"] != self.tokens:
            raise TernError(f"the program answers {said['tokens']}, which is not {self.tokens}")
        with open(path, encoding="utf-8") as file:
            return dict(json.load(file))


_FLAGS = {
    "temperature": "--temp", "top_k": "--top-k", "top_p": "--top-p", "min_p": "--min-p", "seed": "--seed",
    "repetition_penalty": "--repeat-penalty", "presence_penalty": "--presence-penalty",
    "frequency_penalty": "--frequency-penalty", "repeat_last_n": "--repeat-last-n",
}  # fmt: skip


def _flags(asked: Asked, n: int) -> list[str]:
    """The options of `tern run` for what was asked."""
    strange = set(asked.options) - set(_FLAGS) - {"max_tokens", "draft", "stop", "ignore_end"}
    if strange or asked.form is not None:
        raise TernError(f"a receipt of an answer with {', '.join(sorted(strange)) or 'a form'} cannot be made from Python")
    flags = ["-m", asked.model, "--tokens", ",".join(map(str, asked.prompt)), "-n", str(asked.options.get("max_tokens") or n)]
    for name, flag in _FLAGS.items():
        if asked.options.get(name) is not None:
            flags += [flag, str(asked.options[name])]
    for stop in stops_of(asked.options.get("stop")):
        flags += ["--stop", stop]
    return flags + (["--ignore-eos"] if asked.options.get("ignore_end") else [])


def stops_of(stop: Any) -> list[str]:
    """Stop texts as a list."""
    if stop is None:
        return []
    if not isinstance(stop, (str, list, tuple)):
        raise TypeError(f"stop must be a str or a list of them, not {type(stop).__name__}")
    listed = [stop] if isinstance(stop, str) else list(stop)
    for text in listed:
        if not isinstance(text, str):
            raise TypeError(f"stop must be a str or a sequence of them, not of {type(text).__name__}")
    return listed


def parse_value(text: str, form: Any, end: str) -> Any:
    """Reads an answer as JSON. It has a value only where it is whole."""
    if end not in ("end", "stop"):
        raise TernError(f"the answer is not whole: its end is {end!r}")
    if hasattr(form, "model_validate_json"):
        return form.model_validate_json(text)
    try:
        return json.loads(text)
    except ValueError as error:
        raise TernError(f"the answer is not JSON: {error}") from None
