# SPDX-License-Identifier: Apache-2.0
"""Two commands in turns: what they print becomes figures (bench/compare-engines)."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from dataclasses import dataclass, field

# These are the names that tern bench --json gives the speeds; a speed of 0 was not measured.
TERN_FIGURES = ("prefill_tps", "decode_tps")


class TurnError(Exception):
    """A run gave no answer; the text names the side and the run, and says what is wrong."""


@dataclass
class Side:
    """A command, and how its output is read."""

    name: str
    command: str
    patterns: dict[str, re.Pattern] = field(default_factory=dict)  # figure -> where it stands
    answer: re.Pattern | None = None  # what the output must hold
    version: str = ""
    timeout: float = 600.0
    figures: dict[str, list[float]] = field(default_factory=dict)  # by run
    told: dict = field(default_factory=dict)  # the last JSON of tern bench


def last_object(text: str) -> dict:
    """The last line that is a JSON object; {} without one."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
    return {}


def read_patterns(side: Side, output: str) -> dict[str, float]:
    """The last match of each pattern."""
    found = {}
    for name, pattern in side.patterns.items():
        matches = list(pattern.finditer(output))
        if not matches:
            raise TurnError(f"no {name}: /{pattern.pattern}/ does not match its output")
        try:
            found[name] = float(matches[-1][1])
        except ValueError:
            raise TurnError(f"{name}: '{matches[-1][1]}' is not a number") from None
    return found


def read_figures(side: Side, output: str) -> dict[str, float]:
    if side.patterns:
        found = read_patterns(side, output)
    else:
        told = last_object(output)
        if not (told.get("generated_tokens") or told.get("prompt_tokens")):
            raise TurnError("printed no JSON of tern bench that evaluated a token")
        side.told = told
        found = {k: float(told[k]) for k in TERN_FIGURES if told.get(k)}
    wrong = [name for name, value in found.items() if not 0 < value < float("inf")]
    if wrong or not found:
        raise TurnError(f"{wrong[0]} is {found[wrong[0]]}" if wrong else "there is no figure")
    return found


def run(side: Side) -> dict[str, float]:
    """One run's figures; TurnError without an answer."""
    try:
        result = subprocess.run(shlex.split(side.command), stdin=subprocess.DEVNULL,
                                capture_output=True, timeout=side.timeout, check=False)
    except OSError as error:
        raise TurnError(f"{error.filename}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise TurnError(f"took more than {side.timeout:g} s") from None
    output = (result.stdout + b"\n" + result.stderr).decode(errors="replace")
    if result.returncode:
        last = (output.strip().splitlines() or [""])[-1]
        raise TurnError(f"status {result.returncode}: {last[:200]}")
    if side.answer and not side.answer.search(output):
        raise TurnError(f"gave no answer: /{side.answer.pattern}/ does not match its output")
    return read_figures(side, output)


def take_turns(a: Side, b: Side, runs: int, warm_up: int) -> None:
    """A B, B A, A B, ...: fills both sides' figures, those of the warm-up left out."""
    for turn in range(-warm_up, runs):
        for side in (a, b) if turn % 2 == 0 else (b, a):
            try:
                found = run(side)
            except TurnError as error:
                which = f"run {turn + 1}" if turn >= 0 else "warm-up"
                raise TurnError(f"{side.name}, {which}: {error}") from None
            if turn < 0:
                continue
            if turn > 0 and set(found) != set(side.figures):
                raise TurnError(f"{side.name}, run {turn + 1}: not the figures that earlier runs gave")
            for name, value in found.items():
                side.figures.setdefault(name, []).append(value)
