#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Properties of characters as the patterns of tokenizers mean them, found by asking Hugging Face's `tokenizers`.

    properties.py > runtime/text/tokenizer/unicode_tables.c

Names of scripts come from the package `regex`. VERSION is the version of Unicode that tokenizers 0.23.3 has.
"""

import regex._regex_core as names_of
from tokenizers import Regex, pre_tokenizers

VERSION = "16.0"
END = 0x110000
TEXT = "".join(chr(c) for c in range(END) if not 0xD800 <= c < 0xE000)
CATEGORIES = ["Cn", "Cc", "Cf", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "No", "Pc", "Pd", "Pe",
              "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"]
GROUPS = {"C": "C", "L": "L", "M": "M", "N": "N", "P": "P", "S": "S", "Z": "Z", "LC": ("Ll", "Lt", "Lu")}
WORDS = {"Letter": "L", "Mark": "M", "Number": "N", "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Other": "C",
         "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Decimal_Number": "Nd"}
FLAGS = {  # and the categories that they mostly are: the tables have the exceptions
    "White_Space": ("Z",), "Word": ("L", "M", "Nd", "Nl", "Pc"), "Alphabetic": ("L", "Nl", "Mc", "Mn"), "Uppercase": ("Lu",),
    "Lowercase": ("Ll",), "Ideographic": (), "Emoji": (), "Emoji_Presentation": (), "Emoji_Modifier": (),
    "Emoji_Modifier_Base": (), "Emoji_Component": (), "Extended_Pictographic": ()}
ASKED = {"White_Space": r"\s", "Word": r"\w"}  # as patterns write them


def code_at(place):
    return place if place < 0xD800 else place + 0x800


def members(pattern):
    """Ranges (first, last + 1) of the characters that a pattern matches."""
    splitter = pre_tokenizers.Split(Regex(f"(?:{pattern})+"), "removed")
    places, at = [], 0
    for _, (start, end) in splitter.pre_tokenize_str(TEXT):
        places.append((at, start))
        at = end
    places.append((at, len(TEXT)))
    return [(code_at(a), code_at(b - 1) + 1) for a, b in places if b > a]


def known(name):
    try:
        pre_tokenizers.Split(Regex(f"\\p{{{name}}}"), "removed")
    except Exception:  # the package lacks a class of its own for it
        return False
    return True


def scripts():
    """{usual name: short name} of all scripts that have characters, Unknown first."""
    found = {}
    for name, number in names_of.PROPERTIES["SCRIPT"][1].items():
        found.setdefault(number, []).append(name)
    found = {max(n, key=len): min(n, key=len) for n in found.values() if known(max(n, key=len))}
    return {"UNKNOWN": found.pop("UNKNOWN"), **dict(sorted(found.items()))}


def number(n):
    out = []
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return [*out, n]


def runs(value_of):
    """(length, value) as bytes for the whole range of codes, from a list of (first, end, value); 0 elsewhere."""
    out, at = [], 0
    for first, end, value in [*sorted(value_of), (END, END, 0)]:
        if first > at:
            out.append((first - at, 0))
        if end > first:
            out.append((end - first, value))
        at = end
    joined = []
    for length, value in out:
        if joined and joined[-1][1] == value:
            joined[-1][0] += length
        else:
            joined.append([length, value])
    return [b for length, value in joined for b in (*number(length), value)]


def cases():
    """Returns, for each character whose case does not matter where another stands, its distance from the one before,
    and to the first of its kind."""
    cased = sorted({c for name in ("Lu", "Ll", "Lt", "Mn", "Nl", "So") for a, b in members(f"\\p{{{name}}}")
                    for c in range(a, b) if len({chr(c).lower(), chr(c).upper(), chr(c).casefold(), chr(c).title()}) > 1
                    or name in ("Lu", "Ll", "Lt")})
    text = "\n".join(map(chr, cased))
    out, before = [], 0
    for c in cased:
        found = pre_tokenizers.Split(Regex(f"(?i:{chr(c)})"), "removed", invert=True).pre_tokenize_str(text)
        first = min(ord(piece) for piece, _ in found if len(piece) == 1)
        if first != c:
            out += number(c - before) + number(c - first)
            before = c
    return out


def differing(name, base):
    """Ranges of a property, without those of categories, and of those that it lacks."""
    changes = {}
    for ranges in (members(ASKED.get(name, f"\\p{{{name}}}")), *(members(f"\\p{{{c}}}") for c in base)):
        for ends in ranges:
            for end in ends:
                changes[end] = not changes.get(end, False)
    ends = sorted(end for end, odd in changes.items() if odd)
    return [(a, b, 1) for a, b in zip(ends[::2], ends[1::2], strict=True)]


def filled(cells, margin):
    lines, line = [], margin
    for cell in cells:
        if len(line) + len(cell) + 1 > 100:
            lines.append(line)
            line = margin
        line += f"{cell},"
    return [*lines, line]


def table(name, numbers):
    return "\n".join(["", f"const uint8_t {name}[] = {{", *filled(map(str, numbers), "    "), "};"])


def folded(name):
    return name.replace("_", "").replace(" ", "").lower()


def row(names, kind, value):
    return f'{{"{" ".join(dict.fromkeys(map(folded, names)))}",{kind},{value}}}'


def mask(names):
    return hex(sum(1 << i for i, c in enumerate(CATEGORIES) if names and c.startswith(names)))


def names(all_scripts):
    groups = GROUPS | {c: c for c in CATEGORIES} | {word: GROUPS.get(c, c) for word, c in WORDS.items()}
    rows = [row([name], "CATEGORIES", mask(members_of)) for name, members_of in groups.items()]
    rows += [row(["Any"], "CATEGORIES", hex(2 ** len(CATEGORIES) - 1)), row(["Assigned"], "CATEGORIES", hex(2 ** len(CATEGORIES) - 2))]
    for i, (name, short) in enumerate(all_scripts.items()):
        rows.append(row([n for n in (name, short) if known(n)], "SCRIPT", i))
    rows += [row([name], "FLAG", i) for i, name in enumerate(FLAGS)]
    return "\n".join(["", "const tern_property_name tern_unicode_names[] = {", *filled([*rows, row([""], "FLAG", 0)], "    "), "};"])


def main():
    all_scripts = scripts()
    print('/* SPDX-License-Identifier: Apache-2.0 */\n/* Generated by tests/tokenizers/properties.py; do not edit. */')
    print(f'/* clang-format off */\n#include "runtime/text/tokenizer/unicode_tables.h"\n\n#define CATEGORIES TERN_PROPERTY_CATEGORIES\n#define SCRIPT TERN_PROPERTY_SCRIPT'
          f'\n#define FLAG TERN_PROPERTY_FLAG\n\nconst char tern_unicode_version[] = "{VERSION}";')
    print(table("tern_unicode_categories", runs([(a, b, i) for i, c in enumerate(CATEGORIES) if i > 0 and c != "Cs"
                                                 for a, b in members(f"\\p{{{c}}}")] + [(0xD800, 0xE000, CATEGORIES.index("Cs"))])))
    print(table("tern_unicode_scripts", runs([(a, b, i) for i, c in enumerate(all_scripts) if i > 0 for a, b in members(f"\\p{{{c}}}")])))
    for name, base in FLAGS.items():
        print(table(f"flag_{folded(name)}", runs(differing(name, base))).replace("const", "static const"))
    print("\nconst tern_property_flag tern_unicode_flags[] = {")
    print("\n".join(filled([f"{{{mask(base)},flag_{folded(name)}}}" for name, base in FLAGS.items()], "    ")) + "\n};")
    print(table("tern_unicode_cases", cases() + [0]))
    print(names(all_scripts))


if __name__ == "__main__":
    main()
