# SPDX-License-Identifier: Apache-2.0
"""tern score: the probabilities of given continuations, which are those that tern logits has, to the last bit everywhere."""

import math
import struct

import common
from common import tern, tern_json, tern_text

PROMPT = "The capital of France is"
OPTIONS = (" Paris", " Rome", " Paris, and the sky is blue", ".")
QUICK = ("--no-cache", "--no-tune")


def given(*options):
    return [word for option in options for word in ("--option", option)]


class Score(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = common.small_model()
        cls.scored = tern_json("score", cls.model, PROMPT, *given(*OPTIONS), *QUICK)

    def logprob(self, ids):
        """Natural logarithms of the probabilities of ids[1:], from the logits of all positions."""
        path = self.dir / "logits.f32"
        tern_text("logits", "-m", self.model, "--tokens", common.comma(ids), "--all", "--output", path, "--force", *QUICK)
        size = path.stat().st_size // len(ids) // 4
        rows = list(struct.iter_unpack(f"<{size}f", path.read_bytes()))
        top = [max(row) for row in rows]
        return [row[i] - t - math.log(sum(math.exp(x - t) for x in row)) for row, t, i in zip(rows, top, ids[1:], strict=False)]

    def test_they_are_those_of_the_logits(self):
        for option, entry in zip(OPTIONS, self.scored["options"], strict=True):
            ids = tern_json("tokenize", "-m", self.model, PROMPT + option, "--add-special")["tokens"]
            ids = [token["id"] if isinstance(token, dict) else token for token in ids]
            mine = [token["token"] for token in entry["tokens"]]
            self.assertEqual(ids[self.scored["prompt_tokens"]:], mine)
            for expected, token in zip(self.logprob(ids)[-len(mine):], entry["tokens"], strict=True):
                self.assertAlmostEqual(expected, token["logprob"], delta=1e-5)

    def test_sums(self):
        options = self.scored["options"]
        for option, entry in zip(OPTIONS, options, strict=True):
            total = 0.0
            for token in entry["tokens"]:
                total += token["logprob"]
            self.assertEqual((entry["option"], entry["logprob"]), (option, total))
            self.assertEqual(entry["logprob_per_token"], total / len(entry["tokens"]))
            self.assertEqual(entry["logprob_per_byte"], total / len(option.encode()))
        self.assertAlmostEqual(sum(entry["share"] for entry in options), 1.0, places=12)
        self.assertEqual(self.scored["best"], max(range(4), key=lambda i: options[i]["logprob"]))
        self.assertEqual(self.scored["best_per_token"], max(range(4), key=lambda i: options[i]["logprob_per_token"]))
        self.assertEqual(self.scored["best"], 0)

    def test_every_instruction_set_and_order(self):
        for isa in common.runnable_isas():
            with self.subTest(isa=isa):
                self.assertEqual(tern_json("score", self.model, PROMPT, *given(*OPTIONS), *QUICK, "--isa", isa), self.scored)
        back = tern_json("score", self.model, PROMPT, *given(*OPTIONS[::-1]), *QUICK, "--threads", 1)
        strip = lambda entry: {name: value for name, value in entry.items() if name != "share"}  # noqa: E731
        self.assertEqual([strip(entry) for entry in back["options"][::-1]], [strip(entry) for entry in self.scored["options"]])

    def test_options_of_a_file(self):
        """More than are computed at once, with either end of line."""
        path = self.dir / "options.txt"
        path.write_bytes(b"\r\n".join(option.encode() for option in OPTIONS * 10) + b"\n\n")
        scored = tern_json("score", self.model, PROMPT, "--options-file", path, *QUICK)
        self.assertEqual(len(scored["options"]), 40)
        for i, entry in enumerate(scored["options"]):
            self.assertEqual(entry["tokens"], self.scored["options"][i % 4]["tokens"])

    def test_text(self):
        lines = tern_text("score", self.model, PROMPT, *given(" Paris", " Rome"), *QUICK).splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[1], r"^ +-\d+\.\d{6} +-\d+\.\d{6} +\d+\.\d{3}% +\d+   Paris  \(most probable\)  \(most probable a token\)$")

    def test_refusals(self):
        long = self.dir / "long"
        with open(long, "wb") as file:
            file.truncate((64 << 20) + 1)
        for words, status, said in (
            (("-p", "x"), 2, "no options: --option TEXT"),
            (("-p", "x", "--option", ""), 1, "option 1 has no token of its own"),
            (("-p", "x", "--options-file", self.dir / "none"), 1, "none: No such file"),
            (("-p", "x", "--options-file", long), 1, "long: longer than 67108864 bytes"),
        ):
            self.assert_one_line_error(tern("score", "-m", self.model, *words), status, [said])


if __name__ == "__main__":
    common.main()
