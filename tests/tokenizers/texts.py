# SPDX-License-Identifier: Apache-2.0
"""Texts to compare tokenizers on: the same seed gives the same texts on every machine.

Characters come from ranges that are written down here, not from this Python's tables of Unicode, and were all assigned
by Unicode 10: tokenizers differ in the version that they follow.
"""

import random

# Letters and marks of twenty scripts.
SCRIPTS = {
    "Latin": [(0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x17F), (0x1E00, 0x1EFF)],
    "Greek": [(0x391, 0x3A1), (0x3A3, 0x3CE), (0x1F00, 0x1F15)],
    "Cyrillic": [(0x400, 0x481), (0x48A, 0x4FF)],
    "Armenian": [(0x531, 0x556), (0x561, 0x587)],
    "Hebrew": [(0x5D0, 0x5EA), (0x591, 0x5BD)],
    "Arabic": [(0x621, 0x64A), (0x64B, 0x655), (0x660, 0x669), (0x671, 0x6D3)],
    "Devanagari": [(0x900, 0x939), (0x93C, 0x94D), (0x966, 0x96F)],
    "Bengali": [(0x985, 0x98C), (0x993, 0x9A8), (0x9BE, 0x9C4), (0x9E6, 0x9EF)],
    "Gurmukhi": [(0xA05, 0xA0A), (0xA13, 0xA28), (0xA3E, 0xA42)],
    "Tamil": [(0xB85, 0xB8A), (0xBAE, 0xBB9), (0xBBE, 0xBC2)],
    "Telugu": [(0xC05, 0xC0C), (0xC12, 0xC28), (0xC3E, 0xC44)],
    "Sinhala": [(0xD85, 0xD96), (0xD9A, 0xDB1), (0xDCF, 0xDD4)],
    "Thai": [(0xE01, 0xE3A), (0xE40, 0xE4E), (0xE50, 0xE59)],
    "Tibetan": [(0xF40, 0xF47), (0xF49, 0xF6C), (0xF71, 0xF84)],
    "Georgian": [(0x10A0, 0x10C5), (0x10D0, 0x10F0)],
    "Ethiopic": [(0x1200, 0x1248), (0x1260, 0x1288)],
    "Khmer": [(0x1780, 0x17B3), (0x17B6, 0x17D1)],
    "Kana": [(0x3041, 0x3096), (0x3099, 0x309A), (0x30A1, 0x30FA)],
    "Hangul": [(0xAC00, 0xD7A3), (0x1100, 0x1112), (0x1161, 0x1175), (0x11A8, 0x11C2)],
    "Han": [(0x4E00, 0x9FA5), (0x3400, 0x4DB5), (0xF900, 0xFA6D), (0x20000, 0x20100)],
}

SENTENCES = """The quick brown fox jumps over the lazy dog.|It's what we've got: I'LL do it, DON'T you, y'all'd've?
Zürich, naïve, Straße, œuvre, ﬁn, Ǆ and ĳ.|Ελλάδα, όπως λέμε· ΣΊΣΥΦΟΣ.|Привет, мир! Ёлка — ёлка.
שָׁלוֹם עֲלֵיכֶם|السَّلامُ عليكم ٣٤٥|नमस्ते दुनिया १२३ क्षत्रिय|வணக்கம் உலகம்|สวัสดีชาวโลก ๑๒๓|ជំរាបសួរ|გამარჯობა|ሰላም ልዑል
你好世界,今天天气不错。|こんにちは世界 カタカナ ﾊﾝｶｸ|안녕하세요 세계|Xin chào thế giới, tiếng Việt đặc biệt
O'Neil can't won't 'tis 'TIS 'S 'ſ 'Re 'K rock'n'roll 's's's|1 12 123 1234 12345 1234567890 3.14e-10 0x1F ½ Ⅻ ² ₃ ①""".replace(
    "\n", "|"
).split("|")

CODE = [
    "def f(x, y=None):\n    return x ** 2 if y else -x\n",
    "for (int i = 0; i < n; ++i) {\n\tprintf(\"%d\\n\", a[i]);\n}\r\n",
    "<div class=\"x\">&nbsp;<!-- c --></div>\n",
    "SELECT * FROM t WHERE a<>'b' AND c>=1e-3; -- x\n",
    "{\"a\": [1, 2.5, null], \"\\u00e9\": true}",
    "https://example.org/a/b?q=1&r=%20#frag  user@host.org",
    "    if !ok { panic!(\"{:?}\", e) } // TODO\n\n\n",
    "\\begin{align} x_{i}^{2} &= \\frac{1}{2} \\end{align}",
    "$ git log --oneline | head -n 5 && echo \"${HOME}\"\n",
    "```c\n#include <stdio.h>\n```\n",
]

EMOJI = ["🙂", "👍🏽", "👩‍👩‍👧‍👦", "🇫🇷🇩🇪", "✅", "❤️", "1️⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🧑🏿‍🚀", "☺", "🀄", "\u200d", "\ufe0f"]

SPACES = [
    " ", "  ", "   ", "        ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\u00a0", "\u1680",
    "\u2000", "\u2003", "\u2009", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u0085", "\u180e", "\u200b",
    "\ufeff", "\x0b", "\x0c", "\x1c", "\x1f",
]  # fmt: skip

MARKS = [*range(0x300, 0x36F), *range(0x591, 0x5BD), *range(0x64B, 0x653), *range(0x1DC0, 0x1DC6), 0x3099, 0x309A,
         0x93C, 0x94D, 0x1161, 0x1175, 0x11A8, 0x11C2, 0xFE20, 0x20D0, 0x345, 0x338]  # fmt: skip
# These characters have a normal form of their own, or compose with the next one.
BASES = "aeiouAEIOUnNcCsSyYzZ\u00e5\u00f6\u00fc\u01b0\u0439\u0418\u0431\u03b1\u03c9\u212b\u2126\u212a\u0958\u09dc\u0fb2\u1100\u1112\uac00\ud788"
BASES += "\u304b\u306f\u30cf\uf900\ufa10\u2adc\ufb1d\u1e9b\u0344\u0387\u2000\u2329"


class Texts:
    """specials: texts of added tokens, mixed into some lines."""

    def __init__(self, seed, specials=()):
        self.rng = random.Random(seed)
        self.specials = list(specials)
        self.scripts = [[chr(c) for a, b in ranges for c in range(a, b + 1)] for ranges in SCRIPTS.values()]
        self.kinds = [self.script, self.script, self.script, self.sentences, self.code, self.emoji, self.spaces,
                      self.controls, self.marks, self.raw, self.raw, self.mixed, self.digits]  # fmt: skip
        if self.specials:
            self.kinds.append(self.special)

    def word(self, letters):
        return "".join(self.rng.choice(letters) for _ in range(self.rng.randint(1, 9)))

    def script(self):
        letters = self.rng.choice(self.scripts)
        parts = []
        for _ in range(self.rng.randint(1, 12)):
            parts.append(self.word(letters))
            parts.append(self.rng.choice([" ", " ", " ", ", ", ". ", "-", "'", "  ", "\n", ""]))
        return "".join(parts)

    def sentences(self):
        text = " ".join(self.rng.choice(SENTENCES) for _ in range(self.rng.randint(1, 3)))
        cut = self.rng.randrange(len(text))
        return text[cut:] + text[:cut] if self.rng.random() < 0.4 else text

    def code(self):
        return "".join(self.rng.choice(CODE) for _ in range(self.rng.randint(1, 3)))

    def emoji(self):
        return "".join(self.rng.choice([*EMOJI, " ", "ok", "!"]) for _ in range(self.rng.randint(1, 12)))

    def spaces(self):
        return "".join(self.rng.choice([*SPACES, "a", "1", ".", "'", "é"]) for _ in range(self.rng.randint(1, 20)))

    def controls(self):
        return "".join(chr(self.rng.choice([self.rng.randrange(0x20), self.rng.randrange(0x80), 0x7F,
                                            self.rng.randrange(0x80, 0xA0)]))
                       for _ in range(self.rng.randint(1, 20)))  # fmt: skip

    def marks(self):
        parts = []
        for _ in range(self.rng.randint(1, 6)):
            parts.append(self.rng.choice(BASES))
            parts += [chr(self.rng.choice(MARKS)) for _ in range(self.rng.randint(0, 4))]
        return "".join(parts)

    def digits(self):
        every = ["".join(self.rng.choice("0123456789") for _ in range(self.rng.randint(1, 12))), "٣٤٥", "१२३", "½²", ".", ",", " ", "x"]
        return "".join(self.rng.choice(every) for _ in range(self.rng.randint(1, 10)))

    def mixed(self):
        kinds = [self.script, self.sentences, self.emoji, self.spaces, self.marks, self.digits]
        return "".join(self.rng.choice(kinds)() for _ in range(self.rng.randint(2, 3)))

    def raw(self):
        """Random bytes, or a text with some of its bytes changed."""
        if self.rng.random() < 0.5:
            return self.rng.randbytes(self.rng.randint(0, 40))
        data = bytearray(self.sentences().encode())
        for _ in range(self.rng.randint(1, 5)):
            data[self.rng.randrange(len(data))] = self.rng.randrange(256)
        return bytes(data)

    def special(self):
        parts = []
        for _ in range(self.rng.randint(1, 4)):
            parts.append(self.rng.choice([self.sentences, self.spaces, self.digits, lambda: ""])())
            text = self.rng.choice(self.specials)
            cut = self.rng.randrange(1, len(text) + 1) if self.rng.random() < 0.15 else len(text)
            parts.append(text[:cut])
        return "".join(parts)

    def make(self, count):
        """Texts as bytes; some are not UTF-8."""
        made = (self.rng.choice(self.kinds)() for _ in range(count))
        return [x if isinstance(x, bytes) else x.encode() for x in made]


def repaired(data):
    """Bytes as text, with U+FFFD for each byte that is not part of a character."""
    out, at = [], 0
    while at < len(data):
        for size in (1, 2, 3, 4):
            try:
                out.append(data[at : at + size].decode())
                break
            except UnicodeDecodeError:
                pass
        else:
            out.append("\ufffd")
            size = 1
        at += size
    return "".join(out)
