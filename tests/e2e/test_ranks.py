# SPDX-License-Identifier: Apache-2.0
"""Ranks: several processes that compute one model give the bits of one process; a lost rank ends all, with a line."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import common
import serving
from common import comma, tern, tern_json, tern_text

# Heads that do not divide, norms of all heads, windows, sinks, experts, turned rows, biases, fewer groups of rows than
# ranks.
MODELS = ["bitnet-tiny-odd", "llama-tiny-q4_k", "llama-tiny-f16", "qwen2-tiny", "qwen3-tiny", "phi3-tiny", "olmo2-tiny",
          "mistral-tiny", "gemma3-tiny", "maple-tiny", "bonsai2-tiny", "bitnet-embedding-tiny", "gpt-oss-tiny"]
TOKENS = comma(common.prompt(40, 250, 3))
LOCAL = ("--threads", "1", "--ranks-limit", "120")


def mpirun():
    path = shutil.which("mpirun")
    module = os.path.join(os.path.dirname(common.command()[0]), "libtern-mpi.so")
    if path is None or not os.path.exists(module):
        raise unittest.SkipTest("mpirun is not installed, or this build has no module for it")
    return [path, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]


class Ranks(common.FolderTest):
    def hash(self, model, *options):
        return tern_text("logits", "-m", model, "--tokens", TOKENS, "--all", "--sha256", *LOCAL, *options)

    def test_one_answer(self):
        for i, name in enumerate(MODELS):
            model = common.synth(name, self.dir)
            n = (2, 3, 4, 7)[i % 4]
            self.assertEqual(self.hash(model, "--ranks", n), self.hash(model), (name, n))

    def test_experts(self):
        """Experts are divided whole: also where some ranks have none, and choices stand in several exchanges."""
        for name in ("qwen3moe-tiny", "olmoe-tiny"):
            model = common.synth(name, self.dir)
            hashes = [self.hash(model, "--ranks", n, "--threads", 1 + n % 2) for n in (2, 3, 4, 7)]
            self.assertEqual(hashes, [self.hash(model)] * 4, name)

    def test_settings(self):
        """No number of ranks or threads, no split of the prompt and no head without an image changes a bit."""
        model = common.synth("llama-tiny-f16", self.dir)
        wanted = self.hash(model)
        for options in (["--ranks", "2"], ["--ranks", "7"], ["--ranks", "3", "--threads", "2"],
                        ["--ranks", "2", "--split", "7"], ["--ranks", "2", "--exact-head"]):
            self.assertEqual(self.hash(model, *options), wanted, options)

    def test_answers(self):
        """Greedy and drawn tokens, with bounds of the head and with all of it; guesses; several answers at once."""
        model = common.small_model()
        run = ("run", "-m", model, "-p", "Once upon a time", "-n", "12", *LOCAL)
        for options in ([], ["--temp", "0.9", "--seed", "4", "--top-k", "30"], ["--temp", "1.2", "--seed", "5"],
                        ["--no-draft"]):
            self.assertEqual(tern_text(*run, *options, "--ranks", "3"), tern_text(*run, *options), options)
        file = self.dir / "prompts"
        file.write_text("One day\nThe bear\n")
        several = ("run", "-m", model, "--prompts-file", file, "-n", "8", "--seed", "1", *LOCAL)
        self.assertEqual(tern_text(*several, "--ranks", "2"), tern_text(*several))

    def test_sessions(self):
        """A session that some ranks saved is the one that one process saves, and either continues the other's."""
        model = common.small_model()
        run = ("run", "-m", model, "--tokens", TOKENS, "-n", "6", "--temp", "0", *LOCAL)
        one, three = self.dir / "one.session", self.dir / "three.session"
        text = tern_text(*run, "--prompt-cache", one)
        self.assertEqual(tern_text(*run, "--prompt-cache", three, "--ranks", "3"), text)
        self.assertEqual(one.read_bytes(), three.read_bytes())
        for file, options in ((one, ["--ranks", "2"]), (three, [])):
            again = tern_json(*run, "--prompt-cache", file, "--prompt-cache-ro", *options)
            self.assertEqual((again["text"], again["reused_tokens"]), (text.rstrip("\n"), 39), options)

    def test_refused(self):
        model = common.small_model()
        for options, status, words in (
                (["--ranks", "99"], 2, '--ranks: 99 is neither "mpi" nor a number from 1 to 64'),
                (["--ranks", "2", "--replicate"], 1, "ranks cannot use copies of hot weights")):
            self.assert_one_line_error(tern("run", "-m", model, "-p", "x", *options), status, [words])
        result = tern("run", "-m", self.dir / "none.gguf", "-p", "x", "--ranks", "3")
        self.assert_one_line_error(result, contains=["none.gguf: No such file"])

    def test_lost(self):
        """A rank that is killed or stopped while passes run ends the job with one line that names it."""
        for sent, limit, words in ((signal.SIGKILL, 60, "rank 2 was ended by signal 9"),
                                   (signal.SIGSTOP, 1, "rank 2 does not answer; seconds waited: 1")):
            with subprocess.Popen(
                common.command("perplexity", "-m", common.small_model(), "-f", self.text(), "--ranks", "3",
                               "--threads", "1", "--ranks-limit", limit), env=common.clean_environment(),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
                os.kill(self.last_child(job.pid), sent)
                _, line = job.communicate(timeout=60)
            self.assertEqual(job.returncode, 1)
            self.assertRegex(line.decode(), f"^tern: ([^ ]*text: )?{words}\n$")  # or while it begins

    def test_lost_at_random(self):
        """Ranks killed or stopped at any moment, of any number but 0: the job ends with the line of that rank alone."""
        numbers = random.Random(7)
        line = "tern: ([^ ]*text: )?rank [12] (was ended by signal 9|does not answer; seconds waited: 1)\n"
        for _ in range(10):
            job = subprocess.Popen(
                common.command("perplexity", "-m", common.small_model(), "-f", self.text(), "--ranks", "3",
                               "--threads", "1", "--ranks-limit", "1"), env=common.clean_environment(),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.last_child(job.pid)
            time.sleep(numbers.uniform(0, 0.4))
            children = Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text(encoding="ascii").split()
            os.kill(int(numbers.choice(children)), numbers.choice((signal.SIGKILL, signal.SIGSTOP)))
            answer, said = job.communicate(timeout=120)
            self.assertEqual((job.returncode, answer), (1, b""))
            self.assertRegex(said.decode(), f"^{line}$")

    def text(self):
        file = self.dir / "text"
        file.write_text("There once was a bear in the wood. " * 4000)
        return file

    def test_served(self):
        """A server answers as one process does; without one of its ranks it says 503, and that it is not ready."""
        options = ("-m", common.small_model(), *LOCAL)
        with serving.Server(*options, "--ranks", "3") as server:
            answer = server.complete("Once upon a time", max_tokens=8, temperature=0).json()["choices"][0]["text"]
            text = tern_text("run", *options, "-p", "Once upon a time", "-n", "8", "--temp", "0")
            self.assertEqual(answer, text.rstrip("\n"))
            os.kill(self.last_child(server.process.pid), signal.SIGKILL)
            self.assertEqual(server.complete("Once upon a time", max_tokens=8).status, 503)
            self.assertEqual([server.get(path).status for path in ("/health", "/ready")], [503, 503])

    @staticmethod
    def last_child(pid):
        """The second copy of a process, once it works for it."""
        for _ in range(2000):
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                children = [int(child) for child in file.read().split()]
            if len(children) == 2 and Path(f"/proc/{children[1]}/stat").read_text().split()[13] != "0":
                return children[1]
            time.sleep(0.005)
        raise AssertionError("no ranks were started")


class Mpi(common.FolderTest):
    def run_mpi(self, n, *args):
        return subprocess.run([*mpirun(), "-n", str(n), *common.command(*args)], env=common.clean_environment(),
                              capture_output=True, timeout=120)

    def test_one_answer(self):
        model = common.small_model()
        for args in (["logits", "-m", model, "--tokens", TOKENS, "--all", "--sha256"],
                     ["run", "-m", model, "-p", "Once upon a time", "-n", "8", "--seed", "2", "--temp", "0.8"]):
            result = self.run_mpi(3, *args, *LOCAL)
            self.assertEqual((result.returncode, result.stdout.decode()), (0, tern_text(*args, *LOCAL)))

    def test_bench(self):
        result = self.run_mpi(2, "bench", "-m", common.small_model(), "-p", "8", "-n", "4", "--json", *LOCAL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["generated_tokens"], 4)

    def test_other_model(self):
        """Ranks that opened different models refuse to begin."""
        models = [common.synth("bitnet-tiny", self.dir, seed) for seed in (1, 2)]
        parts = [["-n", "1", *common.command("run", "-m", model, "--tokens", "1,2", "-n", "2")] for model in models]
        result = subprocess.run([*mpirun(), *parts[0], ":", *parts[1]], env=common.clean_environment(),
                                capture_output=True, timeout=120)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(b"tern: rank 1 has another model than rank 0", result.stderr)


if __name__ == "__main__":
    common.main()
