#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every class of characters in runtime/text/tokenizer/unicode_tables.c, by each of its names, is what Hugging Face's
`tokenizers` means by the name: at the first and the last character of every run of its table, and beside them.
"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import suite  # noqa: E402

suite.need("tokenizers")
from tokenizers import Regex, pre_tokenizers  # noqa: E402

FILE = ROOT / "runtime" / "text" / "tokenizer" / "unicode_tables.c"
WRITTEN = {"whitespace": r"\s", "word": r"\w"}  # as patterns write them


class Tables:
    """What the file says, read without tern's own reader."""

    def __init__(self, text):
        self.text = text
        self.categories, self.scripts = self.runs("tern_unicode_categories"), self.runs("tern_unicode_scripts")
        listed = re.search(r"tern_unicode_flags\[\] = \{(.*?)\};", text, re.S).group(1)
        flags = re.findall(r"\{(0x[0-9a-f]+),(flag_\w+)\}", listed)
        self.flags = [(int(mask, 16), self.runs(name)) for mask, name in flags]
        listed = re.search(r"tern_unicode_names\[\] = \{(.*?)\};", text, re.S).group(1)
        rows = re.findall(r'\{"([^"]+)",(\w+),([^}]+)\}', listed)
        self.names = [(name, kind, int(value, 0)) for names, kind, value in rows for name in names.split()]

    def runs(self, name):
        """[(first code, value)], in order."""
        listed = re.search(rf"uint8_t {name}\[\] = \{{(.*?)\}};", self.text, re.S).group(1)
        numbers = iter(int(word) for word in listed.replace(",", " ").split())
        out, code = [], 0
        while code < 0x110000:
            length = shift = 0
            for byte in numbers:
                length |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            out.append((code, next(numbers)))
            code += length
        return out

    def runs_of(self, kind, value):
        return {"SCRIPT": self.scripts, "CATEGORIES": self.categories}.get(kind) or self.flags[value][1]


class Lookup:
    """The values of characters in ascending order, in one pass over the runs."""

    def __init__(self, runs, codes):
        self.of, at = {}, 0
        for code in codes:
            while at + 1 < len(runs) and runs[at + 1][0] <= code:
                at += 1
            self.of[code] = runs[at][1]


def sample(*tables):
    """Characters at both ends of every run, and beside them."""
    near = {code + by for runs in tables for code, _ in runs for by in (-2, -1, 0, 1)}
    return sorted(code for code in near if 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000)


def matched(pattern, codes):
    """Characters that the pattern matches, as tokenizers says."""
    text = "".join(map(chr, codes))
    pieces = pre_tokenizers.Split(Regex(pattern), "removed", invert=True).pre_tokenize_str(text)
    return {ord(c) for piece, _ in pieces for c in piece}


class Properties(unittest.TestCase):
    tables = Tables(FILE.read_text(encoding="utf-8"))

    def check(self, kind):
        names = [(name, value) for name, of, value in self.tables.names if of == kind]
        for name, value in names:
            runs = self.tables.runs_of(kind, value)
            codes = sample(runs, self.tables.categories) if kind == "FLAG" else sample(runs)
            own, category = Lookup(runs, codes).of, Lookup(self.tables.categories, codes).of
            if kind == "SCRIPT":
                said = {code for code in codes if own[code] == value}
            elif kind == "CATEGORIES":
                said = {code for code in codes if value >> own[code] & 1}
            else:
                mask = self.tables.flags[value][0]
                said = {code for code in codes if (mask >> category[code] & 1) != own[code]}
            with self.subTest(name=name):
                self.assertEqual(said, matched(WRITTEN.get(name, rf"\p{{{name}}}"), codes))
        return len(names)

    def test_scripts(self):
        self.assertGreater(self.check("SCRIPT"), 300)

    def test_categories(self):
        self.assertGreater(self.check("CATEGORIES"), 40)

    def test_flags(self):
        self.assertEqual(self.check("FLAG"), len(self.tables.flags))


if __name__ == "__main__":
    suite.main()
