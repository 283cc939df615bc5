# SPDX-License-Identifier: Apache-2.0
"""A real model answers a real question."""

import signal
import subprocess

import common
from common import tern_json, tern_text

QUESTION = "What is the capital of France?"
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


class Smollm2(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.model = common.smollm2()

    def ask(self, question, *options):
        text = tern_text("run", "-m", self.model, "-p", question, "-n", 64, *options).strip()
        print(f"{question!r}: {text}")
        return text

    def test_answers(self):
        self.assertIn("scattering", self.ask("Why is the sky blue?", "--chat"))
        self.assertIn("Paris", self.ask("Name the capital of France.", "--chat"))
        self.assertIn("Berlin", self.ask("What is the capital of Germany?", "--chat"))

    def test_without_system_message(self):
        """This 4-bit model is nearly undecided how to begin. Other wordings, or keys that f16 has
        rounded, make it begin in French (in the float64 oracle too); with f32 keys, or without the
        template's own system message, it does not."""
        self.assertIn("Paris", self.ask(QUESTION, "--chat", "--kv", "f32"))
        turn = f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"
        self.assertIn("Paris", self.ask(turn, "--special"))

    def test_chat_format(self):
        """--chat gives the tokens that the file's template would."""
        parts = (("system", SYSTEM), ("user", QUESTION))
        prompt = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in parts)
        prompt += "<|im_start|>assistant\n"
        arguments = ("run", "-m", self.model, "-n", 4)
        by_hand = tern_json(*arguments, "--special", "-p", prompt)
        by_chat = tern_json(*arguments, "--chat", "-p", QUESTION)
        self.assertEqual(by_hand["prompt_tokens"], 37)
        for key in ("prompt_tokens", "tokens"):
            self.assertEqual(by_hand[key], by_chat[key])

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
        """Ctrl-C ends a generation cleanly and keeps the text so far."""
        arguments = ("run", "-m", self.model, "-p", "Once upon a time", "-n", 4000, "--ignore-eos")
        with subprocess.Popen(
            common.command(*arguments),
            env=common.clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            process.stdout.read(1)
            process.send_signal(signal.SIGINT)
            process.communicate()
            self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    common.main()
