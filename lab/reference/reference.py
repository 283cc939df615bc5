# SPDX-License-Identifier: Apache-2.0
"""Asks an engine and writes what it answered, as docs/validation.md describes it.

An engine is a module of this folder with a class Engine:

    name, version, settings     texts
    tokenize(text) -> [id]      as the engine would for a prompt; control tokens are recognised
    start(ids) -> [n, vocab]    logits of a new sequence, float32
    step(id) -> [vocab]         logits behind one more token
    cache() -> (keys, values)   [layer, kv head, position, head dim], in the pairing of the file, of
                                what start and step were given; None where the engine hides them
"""

import hashlib
import importlib
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

# Plain text, a chat, code, a list, other scripts, a sum and a fact for the small model.
PROMPTS = {
    "llama": {
        "capital": "The capital of France is",
        "chat": "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n",
        "story": "Once upon a time",
        "code": "def fibonacci(n):\n    ",
        "scripts": "1, 2, 3: Übung macht den Meister. Привет, мир! 你好 🙂",
    },
    "bitnet-b1.58": {
        "sum": "Q: What is 17+25? A:",
        "fact": "Q: What is the capital of Japan? A:",
        "story": "Once upon a time",
        "town": "There was a cheerful girl who lived in a small town",
    },
}
GOLDEN_TOP, GOLDEN_SPREAD, GOLDEN_POSITIONS = 32, 32, 6


class Case(NamedTuple):
    name: str
    text: str | None  # None: tokens were given
    tokens: list
    greedy: list
    margins: list
    logits: np.ndarray  # float32[len(tokens) + len(greedy) - 1, vocabulary]
    cache: tuple | None  # of the tokens


def load_engine(name, model, threads):
    module = importlib.import_module(f"engine_{name.replace('-', '_')}")
    return module.Engine(model, threads)


def ask(engine, prompts, n_greedy, note):
    """A case for each prompt, a text or a list of ids; without any, for the usual ones."""
    named = {f"prompt {i}": p for i, p in enumerate(prompts, 1)}
    cases = []
    for name, text in (named or PROMPTS.get(engine.architecture, PROMPTS["llama"])).items():
        note(f"{engine.name}: {name}")
        cases.append(ask_one(engine, name, text, n_greedy))
    return cases


def ask_one(engine, name, prompt, n_greedy):
    text = prompt if isinstance(prompt, str) else None
    tokens = prompt if text is None else engine.tokenize(text)
    rows = list(engine.start(tokens))
    cache = engine.cache()
    greedy, margins = [], []
    for i in range(n_greedy):
        best = int(np.argmax(rows[-1]))  # the lowest id among equals
        greedy.append(best)
        margins.append(float(rows[-1][best] - np.partition(rows[-1], -2)[-2]))
        if i + 1 < n_greedy:
            rows.append(engine.step(best))
    logits = np.array(rows, dtype=np.float32)
    if not np.isfinite(logits).all():
        raise ValueError(f"{engine.name} gave logits of {name} that are not finite")
    return Case(name, text, tokens, greedy, margins, logits, cache)


# ---- files -----------------------------------------------------------------------------------------


def head(engine, model, date):
    with open(model, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "tern_reference": 1,
        "engine": {"name": engine.name, "version": engine.version, "settings": engine.settings},
        "date": date,
        "model": {"file": model.name, "sha256": digest},
    }


def describe(case):
    text = {} if case.text is None else {"text": case.text, "special": True}
    return {
        "name": case.name,
        **text,
        "tokens": case.tokens,
        "greedy": case.greedy,
        "margins": [float(f"{m:.4g}") for m in case.margins],
    }


def write_json(path, head, cases):
    """One line a value of a case, under a temporary name until it is complete."""
    lines = []
    for case in cases:
        values = ",\n   ".join(f"{json.dumps(k)}: {dump_value(v)}" for k, v in case.items())
        lines.append(f"  {{{values}}}")
    head = json.dumps(head, indent=1, ensure_ascii=False)[:-2]
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    temporary.write_text(f'{head},\n "cases": [\n' + ",\n".join(lines) + "\n ]\n}\n")
    os.replace(temporary, path)


def dump_value(value):
    if isinstance(value, list) and value and isinstance(value[0], dict):
        rows = ",\n    ".join(json.dumps(v, separators=(",", ":")) for v in value)
        return f"[\n    {rows}]"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_folder(folder, head, cases):
    folder.mkdir(parents=True, exist_ok=True)
    described = []
    for i, case in enumerate(cases):
        arrays = {"logits": case.logits}
        if case.cache is not None:
            arrays["keys"], arrays["values"] = case.cache
        entry = describe(case)
        for kind, array in arrays.items():
            entry[kind] = f"{i}-{kind}.f32"
            np.asarray(array).astype("<f4").tofile(folder / entry[kind])
        described.append(entry)
    write_json(folder / "reference.json", head, described)


def golden_row(position, logits):
    """The best logits, and some that are spread over the vocabulary: together they pin a position."""
    best = np.argsort(-logits, kind="stable")[:GOLDEN_TOP]
    spread = np.arange(GOLDEN_SPREAD) * len(logits) // GOLDEN_SPREAD
    ids = list(dict.fromkeys([*best.tolist(), *spread.tolist()]))
    return {
        "position": position,
        "ids": ids,
        "logits": [float(f"{x:.6g}") for x in logits[ids].tolist()],
    }


def write_golden(path, head, cases):
    described = []
    for case in cases:
        last = len(case.logits) - 1
        chosen = np.linspace(0, last, GOLDEN_POSITIONS).round().astype(int)
        rows = [golden_row(int(p), case.logits[p]) for p in dict.fromkeys(chosen.tolist())]
        described.append(describe(case) | {"some": rows})
    write_json(path, head, described)
