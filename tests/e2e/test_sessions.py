# SPDX-License-Identifier: Apache-2.0
"""tern run --prompt-cache: positions of a session file are not computed again, and the answer stays the same."""

import itertools
import tempfile
from pathlib import Path

import common
from common import SMALL_MODEL, comma, tern, tern_json

PROMPT = "Once upon a time there was a girl who found"


class Sessions(common.TernTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.file = self.folder / "story.session"

    def run_small(self, *options):
        return tern_json("run", "-m", SMALL_MODEL, "--ignore-eos", *options)

    def refused(self, *options, contains, status=1):
        result = tern("run", "-m", SMALL_MODEL, "-p", PROMPT, "-n", 3, *options)
        self.assert_one_line_error(result, status=status, contains=contains)

    def test_goes_on(self):
        """A second run continues the first, on other instruction sets and threads."""
        elsewhere = ("--isa", "scalar", "--threads", 3)
        for kv, where in itertools.product(("f16", "f32", "int8"), ((), elsewhere)):
            with self.subTest(kv=kv, where=where):
                self.file.unlink(missing_ok=True)
                start = comma(range(10, 30))
                cached = ("--kv", kv, "--prompt-cache", self.file)
                first = self.run_small("--tokens", start, "-n", 6, *cached)
                self.assertEqual(first["prompt_tokens"], 20)
                self.assertEqual(first["reused_tokens"], 0)
                longer = f"{start},{comma(first['tokens'])},7,8"
                plain = self.run_small("--tokens", longer, "-n", 5, "--kv", kv)
                second = self.run_small("--tokens", longer, "-n", 5, *cached, *where)
                self.assertEqual(second["prompt_tokens"], 28)
                self.assertEqual(second["reused_tokens"], 26)
                self.assertEqual(second["tokens"], plain["tokens"])
                self.assertEqual(second["text"], plain["text"])

    def test_same_and_other_prompts(self):
        cached = ("--prompt-cache", self.file)
        plain = self.run_small("-p", PROMPT, "-n", 8)
        for reused in (0, plain["prompt_tokens"] - 1, plain["prompt_tokens"] - 1):
            answer = self.run_small("-p", PROMPT, "-n", 8, *cached)
            self.assertEqual(answer["reused_tokens"], reused)
            self.assertEqual(answer["tokens"], plain["tokens"])
        other = "Once upon a time there was a dog"
        plain = self.run_small("-p", other, "-n", 8)
        answer = self.run_small("-p", other, "-n", 8, *cached, "--prompt-cache-ro")
        self.assertEqual(answer["tokens"], plain["tokens"])
        self.assertGreater(answer["reused_tokens"], 3)
        again = self.run_small("-p", PROMPT, "-n", 8, *cached, "--prompt-cache-ro")
        self.assertEqual(again["reused_tokens"], again["prompt_tokens"] - 1)

    def test_sampling_looks_back(self):
        """Penalties count the tokens that came from the file, but the random numbers begin anew."""
        sampling = ("--temp", 0.9, "--seed", 5, "--repeat-penalty", 1.6, "--frequency-penalty", 0.5)
        arguments = ("-p", f"{PROMPT} {PROMPT}", "-n", 24, *sampling)
        plain = self.run_small(*arguments)
        for _ in range(2):
            answer = self.run_small(*arguments, "--prompt-cache", self.file)
            self.assertEqual(answer["tokens"], plain["tokens"])
        self.assertEqual(answer["reused_tokens"], plain["prompt_tokens"] - 1)

    def test_read_only(self):
        self.refused("--prompt-cache-ro", contains=["--prompt-cache-ro needs"], status=2)
        missing = ("--prompt-cache", self.file, "--prompt-cache-ro")
        self.refused(*missing, contains=[self.file.name, "No such file"])
        self.run_small("-p", PROMPT, "-n", 2, "--prompt-cache", self.file)
        before = self.file.read_bytes()
        self.run_small("-p", "Something else", "-n", 9, *missing)
        self.assertEqual(self.file.read_bytes(), before)

    def test_refusals(self):
        """One line says what is wrong; the file is left alone."""
        cached = ("--prompt-cache", self.file)
        self.run_small("-p", PROMPT, "-n", 2, *cached)
        sound = self.file.read_bytes()
        self.refused(*cached, "--kv", "f32", contains=["values as f16, this session as f32"])
        self.refused(*cached, "-c", 5, contains=["11 tokens, the context 5 positions"])
        self.refused(*cached, "-c", 11, contains=["the context has 11"])
        self.refused(*cached, "--rounds", 2, contains=["for one answer"], status=2)
        self.refused(*cached, "--receipt", self.folder / "r", contains=["--receipt"], status=2)
        changes = {
            "not a session file": SMALL_MODEL.read_bytes()[:5000],
            "ends after": sound[:-1],
            "goes on after its end": sound + b"x",
            "is damaged": sound[:-100] + bytes([sound[-100] ^ 4]) + sound[-99:],
            "version 9": sound[:8] + b"\x09" + sound[9:],
        }
        for words, content in changes.items():
            self.file.write_bytes(content)
            self.refused(*cached, contains=[self.file.name, words])
            self.assertEqual(self.file.read_bytes(), content)
        other = common.synth("bitnet-tiny", self.folder)
        self.file.write_bytes(sound)
        result = tern("run", "-m", other, "--tokens", "1,2", "-n", 1, *cached)
        self.assert_one_line_error(result, status=1, contains=["another model"])

    def test_nowhere_to_write(self):
        """The answer is given, then the failure is told."""
        path = self.folder / "missing" / "file"
        result = tern("run", "-m", SMALL_MODEL, "-p", PROMPT, "-n", 3, "--prompt-cache", path)
        self.assertEqual(result.returncode, 1)
        self.assertGreater(len(result.stdout), 1)
        self.assertIn(str(path).encode(), result.stderr)
        self.assertEqual(result.stderr.count(b"\n"), 1)

    def test_full_context(self):
        """The answer ends where the context does, and the file can still be continued."""
        arguments = ("run", "-m", SMALL_MODEL, "-p", PROMPT, "-c", 24, "--ignore-eos")
        result = tern(*arguments, "--prompt-cache", self.file)
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"the context of 24 positions is full", result.stderr)
        answer = tern_json(*arguments, "--prompt-cache", self.file)
        self.assertEqual(answer["stop"], "context")
        self.assertEqual(answer["prompt_tokens"] + answer["generated_tokens"], 24)


if __name__ == "__main__":
    common.main()
