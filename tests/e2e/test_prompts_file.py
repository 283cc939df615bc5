# SPDX-License-Identifier: Apache-2.0
"""Many prompts in one run, and rounds of them."""

import json
import re
import signal
import subprocess
import tempfile
import time
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

    def lines(self, *options):
        """Returns the objects of the answers, and that of the run."""
        lines = [json.loads(line) for line in tern_text(*self.options, *options, "--json").splitlines()]
        return lines[:-1], lines[-1]

    def check_alone(self, answers):
        for answer in answers:
            alone = self.alone[answer["prompt"] - 1]
            for key in ("text", "tokens", "prompt_tokens", "generated_tokens", "stop"):
                self.assertEqual(answer[key], alone[key])

    def test_json(self):
        """There is a line for each answer, in order, then one for the run; each answer is that of the prompt alone."""
        for parallel in (0, 1, 3):
            more = ("--no-draft",) if parallel == 1 else ()  # passes are counted
            answers, run = self.lines("--prompts-file", self.file, "--rounds", 2, "--parallel", parallel, *more)
            self.assertEqual([a["prompt"] for a in answers], [1, 1, 2, 2, 3, 3, 4, 4])
            self.assertEqual([a["round"] for a in answers], [1, 2] * 4)
            self.check_alone(answers)
            self.assertEqual((run["answers"], run["failed"], run["parallel"]), (8, 0, parallel or 8))
            for key in ("prompt_tokens", "generated_tokens", "shared_tokens"):
                self.assertEqual(run[key], sum(a[key] for a in answers))
            self.assertLess(0.5 * run["true_tps"], run["generated_tokens"] / run["seconds"])
            for key in ("isa", "threads", "kernels", "seed", "rss_mib", "model"):
                self.assertIn(key, run)
            if parallel == 1:
                ends = sum(a["stop"] == "end" for a in answers)
                self.assertEqual(run["passes"], run["generated_tokens"] + ends)

    def test_summary(self):
        """Only the run's line is printed; it adds up the lines of the answers."""
        many = ("--prompts-file", self.file, "--rounds", 2, "--no-draft")
        answers, run = self.lines(*many)
        self.assertEqual(self.lines(*many, "--summary")[0], [])
        summary = self.lines(*many, "--summary")[1]
        self.assertEqual(set(summary), set(run))
        for key in ("kv_hits", "kv_misses", "generated_tokens", "prompt_tokens"):
            self.assertEqual((run[key], summary[key]), (sum(a[key] for a in answers),) * 2)
        least, most = min(a["p50_ms"] for a in answers), max(a["p95_ms"] for a in answers)
        self.assertLessEqual(least, run["p50_ms"])
        self.assertLessEqual(run["p50_ms"], run["p95_ms"])
        self.assertLessEqual(run["p50_ms"], most)
        alone = tern_json(*self.options, "-p", PROMPTS[0], "--summary")
        self.assertEqual(alone["tokens"], self.alone[0]["tokens"])
        text = tern_text(*self.options, *many)
        self.assertEqual(tern_text(*self.options, *many, "--summary"), text)

    def test_cache_counters(self):
        """An answer computes each position once, except a last token that nothing follows; rounds do not find each
        other's positions."""
        answers, _ = self.lines("--prompts-file", self.file, "--rounds", 2, "--no-draft")
        for answer in answers:
            prompt, generated = answer["prompt_tokens"], answer["generated_tokens"]
            self.assertEqual(answer["shared_tokens"], 0)
            last = prompt + generated - (answer["stop"] == "length")
            self.assertEqual(answer["kv_misses"], last)
            self.assertEqual(answer["kv_hits"], sum(range(prompt, last)))

    def test_prompts_that_begin_alike(self):
        """The common beginning is computed once within a round; each answer is that of the prompt alone."""
        begin = " ".join(f"word {i}" for i in range(30))
        prompts = [f"{begin} and {end}" for end in ("this", "that", "more")]
        file = Path(self.folder.name) / "alike.txt"
        file.write_text("\n".join(prompts))
        options = ("--prompts-file", file, "--parallel", 1, "--rounds", 2)
        answers, run = self.lines(*options)
        shared = {(a["prompt"], a["round"]): a["shared_tokens"] for a in answers}
        self.assertEqual(shared[1, 1], 0)
        self.assertEqual(shared[1, 2], 0)
        self.assertGreaterEqual(shared[2, 1], 64)
        self.assertEqual(run["shared_tokens"], 4 * shared[2, 1])
        for answer in answers:
            alone = tern_json(*self.options, "-p", prompts[answer["prompt"] - 1])
            self.assertEqual((answer["text"], answer["tokens"]), (alone["text"], alone["tokens"]))
        digests = {(a["prompt"], a["digest"]) for a in answers}
        self.assertEqual(len(digests), 3)
        small, _ = self.lines(*options, "--kv-memory", 1, "--batch", 7, "--threads", 1, "--isa", "scalar")
        self.assertEqual({(a["prompt"], a["digest"]) for a in small}, digests)

    def test_ends(self):
        """Limits, stops and a full context end an answer as they end it alone; so does a limit of 0."""
        two = Path(self.folder.name) / "two.txt"
        two.write_text("\n".join(LINES[:2]))
        for options in (
            ("-n", 0),
            ("-n", 1),
            ("--ctx", 16, "-n", 100),
            ("--stop", "."),
            ("--chat", "--stop", " "),
            ("--chat", "--stop", "2", "--stop-token", 13),
            ("--ignore-eos", "-n", 40, "--logit-bias", "13=5", "--repeat-penalty", 1.3),
        ):
            with self.subTest(options=options):
                answers, _ = self.lines("--prompts-file", two, *options)
                self.assertEqual(len(answers), 2)
                for answer in answers:
                    alone = tern_json(*self.options, "-p", PROMPTS[answer["prompt"] - 1], *options)
                    for key in ("text", "tokens", "stop"):
                        self.assertEqual(answer[key], alone[key])

    def test_text(self):
        said = tern_text(*self.options, "--prompts-file", self.file)
        self.assertEqual(said, "".join(alone["text"] + "\n" for alone in self.alone))
        echoed = tern_text(*self.options, "--prompts-file", self.file, "--echo", "--parallel", 2)
        texts = [prompt + alone["text"] + "\n" for prompt, alone in zip(PROMPTS, self.alone)]
        self.assertEqual(echoed, "".join(texts))

    def test_first_tokens_one_by_one(self):
        """The time that an answer waited for earlier ones is not counted: their times, one after the other, fit in the
        run."""
        options = ("--prompts-file", self.file, "--rounds", 4, "--parallel", 1)
        answers, run = self.lines(*options)
        self.assertLess(sum(a["first_token_ms"] for a in answers), 1e3 * run["seconds"])
        start = time.monotonic()
        told = tern(*self.options, *options, "--verbose").stderr.decode()
        first = re.findall(r"^answer \d+: .* first after ([\d.]+) ms ", told, re.M)
        self.assertEqual(len(first), len(answers))
        self.assertLess(sum(map(float, first)), 1e3 * (time.monotonic() - start))

    def test_without_a_tokenizer(self):
        """Prompts are ids in place of text."""
        synthetic = Path(self.folder.name) / "synthetic.gguf"
        tern_text("synth", synthetic, "--preset", "llama-tiny-f16")
        options = ("run", "-m", synthetic, "--tokens", "1,2,3", "-n", 5)
        once = tern_text(*options)
        self.assertEqual(tern_text(*options, "--rounds", 2), once * 2)

    def test_standard_input_and_chat(self):
        options = ("run", "-m", self.model, "-n", 8, "--chat")
        piped = tern_text(*options, "--prompts-file", "-", stdin=b"What is 2+2?\nWhat is 3+3?\n")
        self.assertEqual(piped, "4\n6\n")

    def test_rounds_of_one_prompt(self):
        answers, _ = self.lines("-p", PROMPTS[3], "--rounds", 3)
        self.assertEqual([a["tokens"] for a in answers], [self.alone[3]["tokens"]] * 3)
        single = tern_json(*self.options, "-p", PROMPTS[3], "--rounds", 1)
        self.assertEqual(single["tokens"], self.alone[3]["tokens"])
        self.assertNotIn("answers", single)

    def test_one_that_cannot_be_answered(self):
        """The others are answered; the exit status reports the failure."""
        long = Path(self.folder.name) / "long.txt"
        long.write_text("\n".join([PROMPTS[0], "word " * 5000, PROMPTS[1]]))
        result = tern(*self.options, "--prompts-file", long, "--json")
        self.assertEqual(result.returncode, 1)
        results = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertIn("context", results[1]["error"])
        self.assertEqual((results[3]["answers"], results[3]["failed"]), (3, 1))
        self.assertEqual([results[0]["text"], results[2]["text"]], [a["text"] for a in self.alone[:2]])
        plain = tern(*self.options, "--prompts-file", long)
        self.assertEqual(plain.returncode, 1)
        self.assertIn(b"prompt 2: ", plain.stderr)
        self.assertEqual(len(plain.stdout.splitlines()), 2)

    def test_interrupt(self):
        """Finished answers are still printed, and so is the run's line."""
        options = (*self.options, "--prompts-file", self.file, "--rounds", 100000, "--json")
        with subprocess.Popen(
            common.command(*options),
            env=common.clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            begun = [process.stdout.readline() for _ in range(3)]
            process.send_signal(signal.SIGINT)
            lines = [json.loads(line) for line in (*begun, *process.stdout)]  # communicate() would skip what is buffered
            stderr = process.stderr.read()
        self.assertEqual(process.returncode, 130, stderr)
        self.assertEqual(lines[-1]["answers"], len(lines) - 1)

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
