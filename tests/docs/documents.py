# SPDX-License-Identifier: Apache-2.0
"""The documents as data: their blocks, sections, links and commands.

Markdown as the documents use it: fenced blocks, `#` headings, inline code and links. A fenced block
in `sh` holds commands that a reader may paste; one in `console` holds commands behind "$ " and what
they print; everything else is not a command.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))


class Block(NamedTuple):
    line: int  # of its first line of text, from 1
    language: str
    text: str


class Section(NamedTuple):
    line: int
    title: str
    text: str  # without the sections below it


def paths():
    """Every document for readers, as paths."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    found = top + sorted(ROOT.glob("docs/*.md"))
    return found + [p for p in sorted(ROOT.glob("*/**/README.md")) if is_source(p) and p not in found]


def is_source(path):
    return not re.match(r"(build|out|\.)", path.relative_to(ROOT).parts[0])


def name(path):
    return str(path.relative_to(ROOT))


_FENCE = re.compile(r"^(```+)([^\n`]*)\n(.*?)^\1[ \t]*$", re.M | re.S)


def blocks(text):
    """The fenced blocks of a document."""
    return [
        Block(text.count("\n", 0, found.start(3)) + 1, found[2].strip(), found[3])
        for found in _FENCE.finditer(text)
    ]


def prose(text):
    """The document with its fenced blocks emptied, line numbers kept."""
    return _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)


def sections(text):
    """Splits at headings; the text before the first heading has no title."""
    lines = prose(text).split("\n")
    whole = text.split("\n")
    starts = [0] + [i for i, line in enumerate(lines) if re.match(r"#{1,6} ", line)]
    result = []
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        title = re.sub(r"^#+ ", "", lines[start]) if lines[start].startswith("#") else ""
        result.append(Section(start + 1, title, "\n".join(whole[start:end])))
    return result


def anchors(text):
    """Fragments that lead to the headings, made as GitHub makes them."""
    found = set()
    for section in sections(text):
        plain = re.sub(r"`|\*|\[([^]]*)\]\([^)]*\)", r"\1", section.title).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        while anchor in found:
            anchor += "-1"
        found.add(anchor)
    return found


def links(text):
    """(line, target) of the links of a document, images included."""
    plain = re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), prose(text))
    return [
        (plain.count("\n", 0, found.start()) + 1, found[1])
        for found in re.finditer(r"\]\(([^()\s]+)\)", plain)
    ]


def code_spans(text):
    """(line, content) of inline code."""
    plain = prose(text)
    return [
        (plain.count("\n", 0, found.start()) + 1, found[1])
        for found in re.finditer(r"`([^`\n]+)`", plain)
    ]


def split_row(line):
    """Cells of a row of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables(text):
    """(header cells, rows of cells) of each table."""
    lines = text.split("\n")
    for at, line in enumerate(lines[1:], 1):
        if re.fullmatch(r"\|[-:| ]+\|", line):
            rows = []
            for row in lines[at + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(split_row(row))
            yield split_row(lines[at - 1]), rows


def without_marks(text):
    """The text as a reader sees it, without the marks of figures that lab/pages makes."""
    return re.sub(r"<!-- (?:= .+?|\.) -->", "", text)
