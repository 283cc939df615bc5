#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of inputs: pipes that nobody writes to, devices without an end, folders, and the pipes of a shell."""

import json
import os
import re
import socket
import subprocess
import unittest

import common
from common import FolderTest, command, clean_environment, tern



class Inputs(FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = common.small_model()
        cls.pipe = cls.dir / "pipe"
        os.mkfifo(cls.pipe)
        cls.hf = cls.dir / "hf"
        cls.hf.mkdir()
        os.mkfifo(cls.hf / "config.json")
        cls.key = cls.dir / "key"
        tern("keygen", cls.key)
        cls.map = cls.dir / "map"
        tensors = [{"index": 0, "name": "output_norm.weight", "nbytes": 4}]
        cls.map.write_text(json.dumps({"tensors": tensors}))
        cls.text = cls.dir / "text"
        cls.text.write_text("a\n")
        cls.signed = cls.dir / "signed"
        tern("run", "-m", cls.model, "-p", "a", "-n", 1, "--receipt", cls.signed, "--sign-key", cls.key)

    def assert_refused(self, arguments, *words, status=1):
        result = subprocess.run(
            command(*arguments),
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        self.assert_one_line_error(result, status, words)

    def everything(self, path):
        """Command lines that read this file, one for each way in which files are read."""
        small = ("-m", self.model)
        return [
            ("inspect", path),
            ("run", "-m", path, "-p", "a"),
            ("run", *small, "-p", "a", "--tokenizer", path),
            ("run", *small, "-f", path),
            ("run", *small, "--prompts-file", path),
            ("run", *small, "-p", "a", "-n", 1, "--prompt-cache", path),
            ("run", *small, "-p", "a", "-n", 1, "--receipt", self.dir / "r", "--sign-key", path),
            ("run", *small, "-p", "a", "--draft-model", path),
            ("logits", *small, "-f", path),
            ("score", *small, "-p", "a", "--options-file", path),
            ("perplexity", *small, "-f", path),
            ("tokenize", *small, "-f", path),
            ("quantize", path, self.dir / "out", "--type", "f16"),
            ("verify", path),
            ("crossval", *small, "--reference", path),
            ("verify-determinism", "-m", path),
            ("verify", self.signed, "--public-key", path),
            ("run", *small, "-p", "a", "--json-schema", path),
            ("run", *small, "-p", "a", "--grammar", path),
            ("chat-template", *small, "--messages", path),
            ("imatrix", *small, "-f", path, "-o", self.dir / "out"),
            ("quantize", self.model, self.dir / "out", "--type", "q4_0", "--imatrix", path),
            ("quantize", self.model, self.dir / "out", "--to", "iebin", "--q4-map", path),
            ("dedup", self.model, self.dir / "out", "--base", path),
            ("dedup", self.model, self.dir / "out", "--groups", path, "--tensor-map", self.map),
            ("dedup", self.model, self.dir / "out", "--groups", self.text, "--tensor-map", path),
            *self.over_the_net(path),
        ]

    def over_the_net(self, path):
        """Servers have the same ways, and so do their clients where this build has them."""
        lines = [("serve", "-m", self.model, "--port", 0, "--api-key-file", path),
                 ("serve", "-m", self.model, "--port", 0, "--tls-cert", path, "--tls-key", self.text)]
        ask = ("run", "--server", "https://127.0.0.1:1", "-p", "a")
        if self.builds_without(*ask, word=b"libcurl") is False:
            lines += [(*ask, "--tls-ca", path), (*ask, "--api-key-file", path)]
        return lines

    @staticmethod
    def builds_without(*arguments, word):
        return b"made without " + word in tern(*arguments).stderr

    def test_no_option_is_left_out(self):
        """Every option of the table that names a file which is read; --tls-key has its test beside certificates."""
        used = {str(word) for line in self.everything("x") for word in line}
        used |= {"--tls-cert", "--tls-key", "--tls-ca", "--api-key-file", "--model", "--recorded-model", "--file"}
        table = "".join(path.read_text() for path in (common.ROOT / "tools/cli").glob("options_table*.c"))
        named = re.findall(r'\{"([a-z0-9-]+)",[^{}]*?OPTION_TEXT,[^{}.]*\.file = FILE_READ', table)
        self.assertGreater(len(named), 15)
        self.assertEqual({f"--{name}" for name in named} - used, set())

    def test_named_pipes(self):
        for arguments in self.everything(self.pipe):
            with self.subTest(arguments=arguments[:1]):
                self.assert_refused(arguments, "pipe")
        self.assert_refused(("convert", self.hf, self.dir / "out"), "config.json")

    def test_sockets_and_folders(self):
        name = self.dir / "socket"
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(name))
            for path in (name, self.dir):
                for arguments in self.everything(path):
                    if arguments[0] != "inspect" or path != self.dir:
                        with self.subTest(arguments=arguments[:1], path=path.name):
                            self.assert_refused(arguments, path.name)

    def test_no_end(self):
        """A device without an end is read up to the longest allowed text."""
        small = ("-m", self.model)
        for arguments in (
            ("run", *small, "--prompts-file", "/dev/zero"),
            ("run", *small, "-f", "/dev/zero"),
            ("tokenize", *small, "-f", "/dev/zero"),
            ("verify", "/dev/zero"),
        ):
            with self.subTest(arguments=arguments[-1]):
                self.assert_refused(arguments, "/dev/zero: longer than")
        with open("/dev/zero", "rb") as zero:
            result = subprocess.run(
                command("run", *small, "--prompts-file", "-"),
                stdin=zero,
                env=clean_environment(),
                capture_output=True,
            )
        self.assert_one_line_error(result, 1, ["standard input: longer than"])

    def test_pipes_of_a_shell(self):
        tokenize = " ".join(map(str, command("tokenize", "-m", self.model)))
        wanted = tern("tokenize", "-m", self.model, "-p", "Once upon a time").stdout
        for line in (
            f"{tokenize} -f <(sleep 0.2; printf 'Once upon a time')",
            f"printf 'Once upon a time' | {tokenize} -f -",
            f"printf 'Once upon a time' | {tokenize} -f /dev/stdin",
            f"(printf 'Once upon a time' > {self.pipe} &) ; {tokenize} -f - < {self.pipe}",
        ):
            with self.subTest(line=line):
                result = subprocess.run(
                    ["bash", "-c", line], env=clean_environment(), capture_output=True
                )
                self.assertEqual((result.stdout, result.stderr), (wanted, b""))


if __name__ == "__main__":
    common.main()
