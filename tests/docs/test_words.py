# SPDX-License-Identifier: Apache-2.0
"""Plain English: comments have a subject, and no message says "is no X"."""

import re
import unittest
from pathlib import Path

from documents import ROOT
import suite

PRODUCT = ("base", "threads", "device", "dispatch", "kernels", "include/tern", "runtime", "authoring", "serve", "receipts",
           "tools", "bench", "examples", "python")  # fmt: skip
SOURCES = ("*.c", "*.h", "*.cc", "*.cu", "*.cuh")
BEGINNING = re.compile(r"/\*\s*(?:\*\s)?\s*((?:Of|What|Whether|Into|Where|As|With|Who)\b[^\n]*)")
TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')
NEGATED = re.compile(r"(?<!there )\b(?:is|are) (?:no (?!longer\b|more\b|other\b|such\b|less\b|need\b)|none\b)")


def beginnings(text: str) -> list[str]:
    """Returns comments that begin with a word in place of a subject."""
    return BEGINNING.findall(text)


def negations(text: str) -> list[str]:
    """Returns the texts of a source that say "is no X" or "is none"."""
    return [found for found in TEXT.findall(text) if NEGATED.search(found)]


def sources(rooms):
    for room in rooms:
        for pattern in SOURCES:
            yield from sorted((ROOT / room).rglob(pattern))


class Words(unittest.TestCase):
    def found(self, rooms, search):
        paths: list[Path] = list(sources(rooms))
        self.assertGreater(len(paths), 100)
        return [f"{path.relative_to(ROOT)}: {words}" for path in paths for words in search(path.read_text(encoding="utf-8"))]

    def test_comments_have_a_subject(self):
        self.assertEqual(self.found((*PRODUCT, "tests"), beginnings), [])

    def test_messages_are_plain(self):
        self.assertEqual(self.found(PRODUCT, negations), [])

    def test_what_is_found(self):
        self.assertEqual(beginnings("/* Of a row. */\n/*\n * Whether x.\n */\n/* Offsets of what is read, as bytes. */"), ["Of a row. */", "Whether x."])
        self.assertEqual(negations('fail("%s is no list", "there is no key", "is no longer there", "is not one");'), ['"%s is no list"'])


if __name__ == "__main__":
    suite.main()
