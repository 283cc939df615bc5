# SPDX-License-Identifier: Apache-2.0
"""A real model answers a real question."""

import signal
import subprocess

import common
from common import tern_json, tern_text

QUESTION = "What is the capital of France?"


class Smollm2(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.model = common.smollm2()

    def test_answer(self):
        text = tern_text("run", "-m", self.model, "--chat", "-p", QUESTION, "-n", 48)
        print(f"answer: {text.strip()}")
        self.assertIn("Paris", text)

    def test_continuation(self):
        """The tokens that the oracle, in float64, continues with."""
        answer = tern_json("run", "-m", self.model, "-p", "The capital of France is", "-n", 4)
        self.assertEqual(answer["prompt_tokens"], 5)
        self.assertEqual(answer["tokens"], [7042, 30, 198, 198])
        self.assertEqual(answer["text"], " Paris.\n\n")

    def test_prompt_ids(self):
        """The tokens that the tokenizers library gives for the same text."""
        by_text = tern_text(
            "logits", "-m", self.model, "-p", "The capital of France is", "--sha256"
        )
        by_ids = tern_text(
            "logits", "-m", self.model, "--tokens", "504,3575,282,4649,314", "--sha256"
        )
        self.assertEqual(by_text, by_ids)

    def test_interrupt(self):
        """Ctrl-C ends a generation cleanly, with what has been said so far."""
        arguments = ("run", "-m", self.model, "-p", "Once upon a time", "-n", 4000, "--ignore-eos")
        with subprocess.Popen(
            common.command(*arguments),
            env=common.clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            process.stdout.read(1)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    common.main()
