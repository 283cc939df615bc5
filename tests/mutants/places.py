# SPDX-License-Identifier: Apache-2.0
"""Finds the place of a mutant: the definition of a name, in C, Python or a template, and an expression in it.

A place is found by names and text, never by lines, so that it survives when code moves.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = {".c", ".h", ".cc", ".j2", ".py", ".toml", ".cmake", ".txt", ""}


class NoPlace(Exception):
    """The description fits no place, or several."""


@dataclass
class Site:
    path: Path
    around: str  # the text of the definition, which is the whole file where no name is given
    before: str
    found: str
    after: str

    def text(self, replacement=None):
        """The whole file, as it is or with something else in that place."""
        return self.before + (self.found if replacement is None else replacement) + self.after


def is_python(path, text):
    return path.suffix == ".py" or text.startswith("#!/usr/bin/env python3")


def python_spans(text, name):
    """Spans of functions, classes and assignments of that name."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        names = [getattr(node, "name", None)] if hasattr(node, "body") else []
        if isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if name in names:
            yield starts[node.lineno - 1], starts[node.end_lineno]


_C_TOKEN = re.compile(
    r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | [(){};]""", re.S | re.X
)


def c_end(text, start):
    """Behind the body that begins after `start`; None for a declaration without one."""
    braces = parentheses = 0
    for token in _C_TOKEN.finditer(text, start):
        kind = token[0]
        parentheses += (kind == "(") - (kind == ")")
        braces += (kind == "{") - (kind == "}")
        if kind == ";" and braces == 0 and parentheses == 0:
            return None
        if kind == "}" and braces == 0:
            return token.end()
    return None


def c_spans(text, name):
    """Spans of functions, tables, enumerations and macros of that name, which begin in the first column."""
    escaped = re.escape(name)
    for found in re.finditer(rf"^[A-Za-z][^\n;{{}}#]*\b{escaped}\b *(?:\(|\[|=|{{)", text, re.M):
        end = c_end(text, found.start())
        if end is not None:
            yield found.start(), end
    for found in re.finditer(rf"^#define {escaped}\b(?:[^\n]*\\\n)*[^\n]*", text, re.M):
        yield found.span()


def template_spans(text, name):
    macro = rf"^{{%-? *macro {re.escape(name)}\(.*?^{{%-? *endmacro"
    for found in re.finditer(macro, text, re.M | re.S):
        yield found.span()


def spans(path, text, name):
    if not name:
        return [(0, len(text))]
    if is_python(path, text):
        return list(python_spans(text, name))
    found = list(template_spans(text, name)) if path.suffix == ".j2" else []
    return found or list(c_spans(text, name))


def pattern_of(expression):
    """Matches the expression however it is spaced and broken into lines."""
    tokens = re.findall(r"\w+|[^\w\s]", expression)
    parts = [re.escape(tokens[0])]
    for left, right in zip(tokens, tokens[1:]):
        parts.append(r"\s+" if left[-1].isidentifier() and right[0].isidentifier() else r"\s*")
        parts.append(re.escape(right))
    begin = r"(?<!\w)" if re.match(r"\w", tokens[0]) else ""
    end = r"(?!\w)" if re.match(r"\w", tokens[-1]) else ""
    return re.compile(begin + "".join(parts) + end)


def find(root, files, folder, name, expression):
    """Returns the only place of the expression in the definitions of `name` below `folder`, which may be a
    file; `files` are paths relative to `root`. Without a name a file must be given."""
    pattern = pattern_of(expression)
    sites, definitions = [], 0
    for file in files:
        inside = str(file) == folder or str(file).startswith(folder.rstrip("/") + "/")
        if (folder and not inside) or file.suffix not in SUFFIXES:
            continue
        text = (root / file).read_text(encoding="utf-8", errors="surrogateescape")
        if name not in text:
            continue
        for start, end in spans(file, text, name):
            definitions += 1
            for hit in pattern.finditer(text, start, end):
                sites.append(
                    Site(file, text[start:end], text[: hit.start()], hit[0], text[hit.end() :])
                )
    where = f"{name or folder}{' in ' + folder if name and folder else ''}"
    if definitions == 0:
        raise NoPlace(f"there is no {where}")
    if len(sites) != 1:
        raise NoPlace(f"{where}: the expression occurs {len(sites)} times")
    return sites[0]
