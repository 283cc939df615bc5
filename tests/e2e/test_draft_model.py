# SPDX-License-Identifier: Apache-2.0
"""A second model that guesses tokens: answers are the same with it, and a model with other tokens is refused."""

import json

import common
from common import tern, tern_json, tern_text
from serving import Server, together

PROMPTS = ["Q: What is 17+25? A:", "Once upon a time", "The dog and the cat"]
SETTINGS = [("--temp", 0), ("--temp", 0.9, "--top-p", 0.9, "--repeat-penalty", 1.2, "--seed", 5)]
KEYS = ("text", "tokens", "digest", "stop")


class DraftModel(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = common.small_model()
        cls.draft = cls.dir / "draft.gguf"
        tern_text("quantize", cls.model, cls.draft, "--type", "q4_0")

    def test_same_answers(self):
        """Greedy and sampled answers, of one prompt and of several at once."""
        file = self.dir / "prompts.txt"
        file.write_text("\n".join(PROMPTS))
        for settings in SETTINGS:
            options = ("run", "-m", self.model, "-n", 60, "--ignore-eos", *settings)
            alone = [tern_json(*options, "-p", prompt) for prompt in PROMPTS]
            for prompt, answer in zip(PROMPTS, alone[:2]):
                guessed = tern_json(*options, "-p", prompt, "--draft-model", self.draft)
                self.assertEqual([guessed[k] for k in KEYS], [answer[k] for k in KEYS])
            lines = tern_text(*options, "--prompts-file", file, "--draft-model", self.draft, "--json").splitlines()
            for line, answer in zip(lines, alone):
                guessed = json.loads(line)
                self.assertEqual([guessed[k] for k in KEYS[:2]], [answer[k] for k in KEYS[:2]])
            self.assertEqual(len(lines), len(PROMPTS) + 1)

    def test_chat(self):
        """Turns of a conversation."""
        options = ("chat", "-m", self.model, "-n", 30)
        said = b"What is 2+2?\nTell me a story.\nWhat is the capital of Japan?\n"
        plain, guessed = (tern(*options, *more, stdin=said) for more in ((), ("--draft-model", self.draft)))
        self.assertEqual(guessed.returncode, 0, guessed.stderr)
        self.assertEqual(guessed.stdout, plain.stdout)

    def test_bench(self):
        """It decodes with guesses, and says how many there were."""
        options = ("bench", "-m", self.model, "-p", 8, "-n", 8, "--repeat", 1, "--draft-model", self.draft)
        self.assertRegex(tern_text(*options), r"\ndrafted    \d+ tokens, \d+ right\n")
        self.assertIn(b"--draft-model: not with --json", tern(*options, "--json").stderr)

    def test_refused(self):
        """A model with other tokens is refused in one line that names both files."""
        strange = common.synth("llama-tiny-q8_0", self.dir)
        for command in ("run", "bench"):
            refused = tern(command, "-m", self.model, "--draft-model", strange)
            self.assertEqual((refused.returncode, refused.stdout), (2, b""))
            says = f"tern: {strange} cannot guess for {self.model}: it has 307 tokens, the other model 1024\n"
            self.assertEqual(refused.stderr.decode(), says)
        refused = tern("run", "--server", "http://127.0.0.1:9", "-p", "x", "--draft-model", strange)
        self.assertIn(b"--draft-model: not with --server", refused.stderr)
        self.assertEqual(tern("serve", "-m", self.model, "--draft-model", strange).returncode, 2)

    def test_serve(self):
        """Requests at once, with more of them than the second model follows."""
        asked = [(p, t) for p in PROMPTS for t in (0, 0.9)]
        digests, timings = [], []
        for more in (("--no-draft",), ("--draft-model", self.draft)):
            with Server("-m", self.model, "--parallel", 6, "--kv-memory", 2, *more) as server:

                def ask(prompt, temperature, server=server):
                    reply = server.post("/completion", prompt=prompt, n_predict=60, temperature=temperature, seed=3)
                    self.assertEqual(reply.status, 200, reply.body)
                    timings.append(reply.json()["timings"])
                    return reply.headers["x-tern-digest"], reply.json()["content"]

                digests.append(together([lambda a=a: ask(*a) for a in asked]))
        self.assertEqual(digests[1], digests[0])
        told = [(t.get("draft_n", 0), t.get("draft_n_accepted", 0)) for t in timings]  # M850
        self.assertEqual(set(told[: len(asked)]), {(0, 0)})
        self.assertTrue(any(guessed >= right > 0 for guessed, right in told[len(asked) :]), told)


if __name__ == "__main__":
    common.main()
