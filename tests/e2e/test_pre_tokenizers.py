# SPDX-License-Identifier: Apache-2.0
"""tern cuts texts where Hugging Face's `tokenizers` does, by every pre-tokenizer that GGUF files name, with the same version of
Unicode, whichever PCRE2 is installed."""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import common
import suite

suite.need("tokenizers")
sys.path.insert(0, str(common.ROOT / "tests" / "tokenizers"))

from cuts import RULES  # noqa: E402
from texts import Texts, repaired  # noqa: E402
from tokenizers import Regex, pre_tokenizers  # noqa: E402

THOROUGH = ("deepseek-v3", "gpt-4o", "tekken", "qwen2")
TEXTS, FEW = int(os.environ.get("TERN_TEST_TEXTS", "500")), 100
AROUND = ["a{}b 1{}{}\n", "{}\u4e00{}'S .{}\u0301"]  # where each character is tried


class PreTokenizers(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.tool = Path(common.command()[0]).parent / "tests" / "cut_tool"
        cls.make = lambda _, patterns: pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), "isolated") for p in patterns])

    def cut(self, name, texts):
        """Bytes of the pieces of each text."""
        lines = "".join(text.encode().hex() + "\n" for text in texts)
        done = subprocess.run([self.tool, name], input=lines, capture_output=True, text=True, check=True)
        return [[int(n) for n in line.split()] for line in done.stdout.splitlines()]

    def compare(self, name, patterns, texts):
        reference = self.make(patterns)
        wrong = []
        for text, got in zip(texts, self.cut(name, texts), strict=True):
            expected = [len(piece.encode()) for piece, _ in reference.pre_tokenize_str(text)]
            if got != expected:
                wrong.append((text, got, expected))
        self.assertEqual(wrong[:3], [], f"{name}: {len(wrong)} of {len(texts)}")

    @staticmethod
    def random_texts(seed, count):
        """Texts of scripts, code and spaces, with characters from everywhere, also such that no version of Unicode has."""
        rng, out = random.Random(seed), []
        for data in Texts(seed).make(count):
            letters = list(repaired(data))
            for _ in range(rng.randrange(4)):
                code = rng.choice([rng.randrange(0x110000), rng.randrange(0x3000), rng.randrange(0x1E000, 0x1FB00)])
                if not 0xD800 <= code < 0xE000:
                    letters.insert(rng.randrange(len(letters) + 1), chr(code))
            out.append("".join(letters))
        return out

    def test_names(self):
        """Every name, and no other rule under another name of the same row."""
        for names, patterns in RULES.items():
            for i, name in enumerate(names.split()):
                with self.subTest(name=name):
                    self.compare(name, patterns, self.random_texts(23 + i, FEW))

    def test_many_texts(self):
        for names, patterns in RULES.items():
            name = names.split()[0]
            if name in THOROUGH:
                with self.subTest(name=name):
                    self.compare(name, patterns, self.random_texts(7, TEXTS))

    def test_every_character(self):
        """Each character between letters, numbers, signs, Han and marks; of long ranges that are alike one in 64, unless many texts
        are asked for."""
        step = 1 if TEXTS >= 6000 else 64
        alike = [*range(0x3400, 0xA000), *range(0xAC00, 0xD7A4), *range(0x17000, 0x18D00), *range(0x20000, 0x110000)]
        left_out = {c for c in alike if c % step and not 0xE0000 <= c < 0xE0200} | set(range(0xD800, 0xE000))
        every = [chr(c) for c in range(0x110000) if c not in left_out]
        texts = ["".join(form.replace("{}", c) for c in every[i : i + 256]) for form in AROUND for i in range(0, len(every), 256)]
        for names, patterns in RULES.items():
            name = names.split()[0]
            if name in THOROUGH:
                with self.subTest(name=name):
                    self.compare(name, patterns, texts)

    def test_convert_names_them(self):
        """A tokenizer.json with one of these rules is written with the rule's name, even where the rule drops text that
        it does not match."""
        import vocabularies
        from variants import byte_level, split

        document = vocabularies.gguf_document(common.small_model())
        with tempfile.TemporaryDirectory() as folder:
            for names, patterns in RULES.items():
                name, whole = names.split()[0], name_of_whole(names)
                for behavior, invert in (("Isolated", False), ("Removed", True))[: 2 if name in THOROUGH[1:] else 1]:
                    with self.subTest(name=name, behavior=behavior):
                        steps = [*(split(p, behavior, invert) for p in patterns), byte_level()]
                        document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
                        document["model"]["ignore_merges"] = whole
                        path = Path(folder) / "tokenizer.json"
                        path.write_text(json.dumps(document))
                        said = subprocess.run([self.tool, "--name", path], capture_output=True, text=True, check=True)
                        self.assertEqual(said.stdout, f"{name}\n")


def name_of_whole(names):
    """True if a rule takes pieces that are tokens whole."""
    return names.split()[0] in ("llama-bpe", "youtu", "tekken", "minicpm5")


if __name__ == "__main__":
    common.main()
