# SPDX-License-Identifier: Apache-2.0
"""Draws mutants by a seed: a room of the product, a definition in it, an operator, a place."""

import difflib
import random
from dataclasses import asdict, dataclass
from pathlib import Path

import operators
import tokens

# Files of these folders are drawn together; a file belongs to the longest folder that fits. Templates and verbs are
# rooms of their own, because the code that runs is generated from them.
ROOMS = ("base", "kernels", "kernels/isa", "dispatch", "device", "runtime/files/arch", "runtime/engine/cache", "runtime/text/chat",
         "runtime/engine/draft", "runtime/engine", "runtime/engine/forward", "runtime/files/gguf", "runtime/text/grammar", "runtime/model",
         "runtime/engine/sample", "runtime/engine/session", "runtime/text/template", "threads", "runtime/text/tokenizer",
         "runtime/model/tune", "authoring", "receipts", "serve", "tools", "include", "codegen")  # fmt: skip
SUFFIXES = {".c", ".h", ".j2"}
LEFT_OUT = ("kernels/cuda/", "codegen/tests/")
TEMPLATES = "kernels (templates)"
EASY = {"early_return": 0.5}  # fits every function and is the easiest to notice


@dataclass(frozen=True)
class Drawn:
    room: str
    file: str
    function: str
    operator: str
    kind: str  # of the definition
    start: int
    end: int
    change: str
    first: int  # the first and the last line that are changed, of the file as it was
    last: int

    def apply(self, text):
        return text[: self.start] + self.change + text[self.end :]

    def diff(self, text):
        """Changed lines alone."""
        lines = difflib.unified_diff(text.splitlines(), self.apply(text).splitlines(), n=0, lineterm="")
        return "\n".join(line for line in lines if not line.startswith(("---", "+++")))

    def words(self):
        return asdict(self)


def room_of(file):
    """The room of a tracked file; None where nothing is drawn."""
    name = str(file)
    if name.startswith(LEFT_OUT):
        return None
    if file.suffix == ".py":
        return "codegen" if name.startswith("codegen/") else None
    if file.suffix not in SUFFIXES:
        return None
    fitting = [room for room in ROOMS if name.startswith(room + "/")]
    room = max(fitting, key=len, default=None)
    return TEMPLATES if room == "kernels" and file.suffix == ".j2" else room


class Source:
    """The rooms of a tree: their files, definitions and weights."""

    def __init__(self, root, files):
        self.root, self.texts, self.rooms = Path(root), {}, {}
        lines = {}
        for file in files:
            room = room_of(Path(file))
            if room:
                text = (self.root / file).read_text(encoding="utf-8")
                self.texts[Path(file)] = text
                found = tokens.definitions(Path(file), text)
                self.rooms.setdefault(room, []).extend((Path(file), definition) for definition in found)
                lines[room] = lines.get(room, 0) + text.count("\n")
        self.names = sorted(room for room in self.rooms if self.rooms[room])
        self.weights = [lines[room] ** 0.5 for room in self.names]
        self.after = tokens.enumerations(self.texts.values())

    def place(self, file, definition):
        text = self.texts[file]
        return operators.Place(text, definition, tokens.of(file, text, definition), self.after)


def edits(place):
    """{operator: its edits} where it has any."""
    found = {}
    for operator in operators.all_operators():
        if place.python and operator.__name__ == "arithmetic":
            continue  # sets and paths: what is not a number
        changes = sorted(set(operator(place)))
        if changes:
            found[operator.__name__] = changes
    return found


def draw(source, seed):
    """Yields mutants without end, none twice; the same seed and tree give the same ones."""
    chance, seen = random.Random(str(seed)), set()
    while True:
        room = chance.choices(source.names, source.weights)[0]
        file, definition = chance.choice(source.rooms[room])
        found = edits(source.place(file, definition))
        if not found:
            continue
        names = list(found)
        operator = chance.choices(names, [EASY.get(name, 1) for name in names])[0]
        start, end, change = chance.choice(found[operator])
        if (file, start, end, change) in seen:
            continue
        seen.add((file, start, end, change))
        text = source.texts[file]
        yield Drawn(room, str(file), definition.name, operator, definition.kind, start, end, change,
                    text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1)  # fmt: skip
