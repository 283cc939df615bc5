#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A text from a file or a model cannot steer the reader's terminal; a pipe gets the bytes."""

import json
import unittest

import common
import gguf_edit
from common import FolderTest, tern, tern_text
from terminal import Terminal

EVIL = "a\x1b]0;owned\x07\x9b31m\u202eb\u2066\x7f"
ESCAPE = chr(256 + 0x1B)  # how byte-level vocabularies write that byte


def steering(text):
    return sorted({c for c in text if c in "\x1b\x07\x7f\x9b\u202e\u2066"})


class Visible(FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        file = gguf_edit.read(common.small_model())
        cls.escape = file.texts("tokenizer.ggml.tokens").index(ESCAPE)
        cls.newline = file.texts("tokenizer.ggml.tokens").index(chr(256 + 10))
        file["general.name"] = gguf_edit.string(EVIL)
        cls.model = cls.dir / "evil.gguf"
        cls.model.write_bytes(file.to_bytes())
        cls.speaks = ("run", "-m", cls.model, "-p", "x", "-n", 3, "--logit-bias", f"{cls.escape}=900")
        cls.tokens = ("tokenize", "-m", cls.model, "--ids", "-p", f"{cls.escape} {cls.newline}")

    def on_terminal(self, *arguments):
        with Terminal(*arguments) as t:
            status = t.end()
            return status, t.text

    def test_terminal(self):
        for command in (
            ("inspect", self.model),
            self.speaks,
            (*self.speaks, "--verbose"),
            self.tokens,
            (*self.tokens, "--json"),
            ("tokenize", "-m", self.model, "--pieces", "-p", "a\x1b[31mb"),
            ("logits", "-m", self.model, "--tokens", f"1,{self.escape}"),
            ("kernels", "-m", self.model),
            ("inspect", self.dir / EVIL),
            ("run", "-m", self.model, "-p", "x", "--logit-bias", f"{EVIL}=1"),
            ("synth", "--preset", EVIL, self.dir / "x"),
        ):
            with self.subTest(command=command):
                status, text = self.on_terminal(*command)
                self.assertEqual(steering(text), [], text)
                self.assertTrue(text.strip())
                self.assertIn(status, (0, 1, 2))

    def test_lines_stay(self):
        _, text = self.on_terminal(*self.tokens)
        self.assertEqual(text.replace("\r\n", "\n"), "?\n")

    def test_pipe(self):
        """Generated text is exact; lines for people are not."""
        self.assertEqual(tern_text(*self.speaks), "\x1b\x1b\x1b\n")
        self.assertEqual(tern(*self.tokens).stdout, b"\x1b\n")
        self.assertEqual(steering(tern_text("inspect", self.model)), [])
        found = json.loads(tern_text("inspect", self.model, "--json"))
        self.assertEqual(found["metadata"]["general.name"], EVIL)

    def test_complaints(self):
        result = tern("inspect", self.dir / EVIL)
        self.assertEqual(steering(result.stderr.decode()), [])
        self.assertRegex(result.stderr.decode(), r"a\?\]0;owned\?+31m\?b\?\?: ")


if __name__ == "__main__":
    common.main()
