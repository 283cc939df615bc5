# SPDX-License-Identifier: Apache-2.0
"""Tokens and definitions of C, of templates of C, and of Python, as far as drawn mutants need them."""

import ast
import io
import re
import tokenize
from dataclasses import dataclass

import places

OPEN, CLOSE = "([{", ")]}"
_C = re.compile(
    r"""(?P<skip>/\*.*?\*/ | //[^\n]* | \{\#.*?\#\} | ^\#\#[^\n]*)
      | (?P<wall>^[ \t]*%%[^\n]* | ^[ \t]*\#(?:[^\n]*\\\n)*[^\n]* | \{\{.*?\}\} | \{%.*?%\}
                 | \b(?:assert|static_assert|_Static_assert|__asm__)\b[^;]*;)
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<char>'(?:\\.|[^'\\\n])*')
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<operator><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|[^\w\s])""",
    re.S | re.M | re.X,
)


@dataclass(frozen=True)
class Token:
    kind: str  # word, number, string, char, operator; wall: nothing is changed across it
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Definition:
    name: str
    kind: str  # function, table
    start: int
    body: int  # behind the brace that opens it
    end: int


def c_tokens(text, start=0, end=None):
    found = []
    for match in _C.finditer(text, start, len(text) if end is None else end):
        if match.lastgroup != "skip":
            found.append(Token(match.lastgroup, match[0], match.start(), match.end()))
    return found


def python_tokens(text, start=0, end=None):
    """Words, numbers, strings and operators; the same kinds as in C."""
    kinds = {tokenize.NAME: "word", tokenize.NUMBER: "number", tokenize.STRING: "string", tokenize.OP: "operator"}
    lines, found = [0], []
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        first, last = lines[token.start[0] - 1] + token.start[1], lines[token.end[0] - 1] + token.end[1]
        if token.type in kinds and start <= first and (end is None or last <= end):
            found.append(Token(kinds[token.type], token.string, first, last))
    return found


def c_definitions(text):
    """Functions, tables and enumerations, which begin in the first column."""
    head = r"^(?!(?:else|struct|union|typedef struct|typedef union|return)\b)[A-Za-z_][^\n;{}#=]*?"
    found, last = [], 0
    for match in re.finditer(rf"{head}(\b\w+)(?:\(|(?:\[[^\n;=]*\])+ *=|\s*=\s*{{)|^(?:typedef )?(enum)\b", text, re.M):
        end = places.c_end(text, match.start()) if match.start() >= last else None
        brace = text.find("{", match.start(), end) if end else -1
        if brace < 0:
            continue
        kind = "function" if match[0].endswith("(") else "table"
        found.append(Definition(match[1] or "enum", kind, match.start(), brace + 1, end))
        last = end
    return found


def template_definitions(text):
    """Those of C, and macros of the template."""
    found = c_definitions(text)
    for match in re.finditer(r"^%% macro (\w+)[^\n]*\n(.*?)^%%-? endmacro", text, re.M | re.S):
        if not any(one.start < match.end() and match.start() < one.end for one in found):
            found.append(Definition(match[1], "table", match.start(), match.start(2), match.end(2)))
    return found


def python_definitions(text):
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = starts[node.body[0].lineno - 1]
            found.append(Definition(node.name, "python", starts[node.lineno - 1], body, starts[node.end_lineno]))
    return found


def definitions(path, text):
    if path.suffix == ".py":
        return python_definitions(text)
    return template_definitions(text) if path.suffix == ".j2" else c_definitions(text)


def of(path, text, definition):
    """Tokens of the definition's body."""
    cut = python_tokens if path.suffix == ".py" else c_tokens
    return cut(text, definition.body, definition.end)


def closing(tokens, i):
    """Returns the place where the bracket that opens at i is closed; None where it stays open, or where a wall stands
    between."""
    depth = 0
    for j in range(i, len(tokens)):
        token = tokens[j]
        if token.kind == "wall":
            return None
        if token.kind == "operator":
            depth += (token.text in OPEN) - (token.text in CLOSE)
        if depth == 0:
            return j
    return None


def enumerations(texts):
    """{member: the next of its enumeration}, of members that are written in a file."""
    after = {}
    for text in texts:
        for match in re.finditer(r"\benum\b[^;{}()]*\{", text):
            end = text.find("}", match.end())
            words = c_tokens(text, match.end(), end)
            names = [
                token.text for i, token in enumerate(words)
                if token.kind == "word" and (i == 0 or words[i - 1].text == ",")
            ]  # fmt: skip
            if len(names) > 1:
                after.update(zip(names, names[1:] + names[:1]))
    return after
