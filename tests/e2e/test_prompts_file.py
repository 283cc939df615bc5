# SPDX-License-Identifier: Apache-2.0
"""Many prompts in one run, and rounds of them."""

import json
import signal
import subprocess
import tempfile
from pathlib import Path

import common
from common import tern, tern_json, tern_text

LINES = [
    "Q: What is 2+2? A:",
    json.dumps({"prompt": "Q: What is 17+25? A:", "id": 7}),
    "",
    json.dumps({"prompt": "Once upon a\ntime"}) + "\r",
    "Once upon a time",
]
PROMPTS = ["Q: What is 2+2? A:", "Q: What is 17+25? A:", "Once upon a\ntime", "Once upon a time"]


class PromptsFile(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.model = common.small_model()
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = Path(cls.folder.name) / "prompts.txt"
        cls.file.write_text("\n".join(LINES))
        options = ("-n", 12, "--temp", 0.8, "--seed", 5)
        cls.options = ("run", "-m", cls.model, *options)
        cls.alone = [tern_json(*cls.options, "-p", prompt) for prompt in PROMPTS]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_json(self):
        """One line; each answer is that of the prompt alone, in every round."""
        answer = tern_json(*self.options, "--prompts-file", self.file, "--rounds", 2)
        results = answer["results"]
        self.assertEqual([r["prompt"] for r in results], [1, 1, 2, 2, 3, 3, 4, 4])
        self.assertEqual([r["round"] for r in results], [1, 2] * 4)
        for result in results:
            alone = self.alone[result["prompt"] - 1]
            for key in ("text", "tokens", "prompt_tokens", "stop"):
                self.assertEqual(result[key], alone[key])
        for key in ("prompt_tokens", "generated_tokens"):
            self.assertEqual(answer[key], sum(r[key] for r in results))
        for key in ("true_tps", "isa", "threads", "kernels", "seed", "rss_mib", "model"):
            self.assertIn(key, answer)

    def test_cache_counters(self):
        """A round computes each position once, and every later pass finds those before it."""
        answer = tern_json(*self.options, "--prompts-file", self.file, "--rounds", 2)
        for result in answer["results"]:
            prompt, generated = result["prompt_tokens"], result["generated_tokens"]
            self.assertEqual(result["kv_misses"], prompt + generated)
            self.assertEqual(result["kv_hits"], sum(range(prompt, prompt + generated)))

    def test_text(self):
        said = tern_text(*self.options, "--prompts-file", self.file)
        self.assertEqual(said, "".join(alone["text"] + "\n" for alone in self.alone))

    def test_standard_input_and_chat(self):
        options = ("run", "-m", self.model, "-n", 8, "--chat")
        piped = tern_text(*options, "--prompts-file", "-", stdin=b"What is 2+2?\nWhat is 3+3?\n")
        self.assertEqual(piped, "4\n6\n")

    def test_rounds_of_one_prompt(self):
        answer = tern_json(*self.options, "-p", PROMPTS[3], "--rounds", 3)
        self.assertEqual([r["tokens"] for r in answer["results"]], [self.alone[3]["tokens"]] * 3)
        single = tern_json(*self.options, "-p", PROMPTS[3], "--rounds", 1)
        self.assertEqual(single["tokens"], self.alone[3]["tokens"])
        self.assertNotIn("results", single)

    def test_one_that_cannot_be_answered(self):
        """The others are; the exit status tells."""
        long = Path(self.folder.name) / "long.txt"
        long.write_text("\n".join([PROMPTS[0], "word " * 5000, PROMPTS[1]]))
        result = tern(*self.options, "--prompts-file", long, "--json")
        self.assertEqual(result.returncode, 1)
        results = json.loads(result.stdout)["results"]
        self.assertIn("context", results[1]["error"])
        self.assertEqual([results[0]["text"], results[2]["text"]], [a["text"] for a in self.alone[:2]])
        plain = tern(*self.options, "--prompts-file", long)
        self.assertEqual(plain.returncode, 1)
        self.assertIn(b"prompt 2: ", plain.stderr)
        self.assertEqual(len(plain.stdout.splitlines()), 2)

    def test_interrupt(self):
        """What is done is still printed as one line."""
        options = (*self.options, "--prompts-file", self.file, "--rounds", 100000, "--json")
        with subprocess.Popen(
            common.command(*options),
            env=common.clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, stderr)
        self.assertGreater(len(json.loads(stdout)["results"]), 1)

    def test_bad_files(self):
        bad = Path(self.folder.name) / "bad.txt"
        for text, hint in (
            ('a\n{"prompt": 3}', "line 2"),
            ('{"prompt": "a"', "line 1"),
            ('{"text": "a"}', 'no text "prompt"'),
            ('{"prompt": "a", "prompt": "b"}', "line 1"),
            ("{" * 100000, "line 1"),
            ("\n\n", "no prompts"),
            ("", "no prompts"),
        ):
            with self.subTest(text=text[:40]):
                bad.write_text(text)
                result = tern(*self.options, "--prompts-file", bad)
                self.assert_one_line_error(result, contains=[str(bad), hint])
        missing = tern(*self.options, "--prompts-file", "/nonexistent/x")
        self.assert_one_line_error(missing, contains=["/nonexistent/x"])
        self.assert_one_line_error(tern(*self.options, "--prompts-file", self.folder.name))
        both = tern(*self.options, "--prompts-file", self.file, "-p", "a")
        self.assert_one_line_error(both, 2, ["--prompts-file excludes"])


if __name__ == "__main__":
    common.main()
