# SPDX-License-Identifier: Apache-2.0
"""Tests the ends of answers and the options that change tokens: stop strings and tokens, biases, penalties."""

import random

import common
from common import tern, tern_json, tern_text


class Ends(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.model = common.small_model()
        cls.story = tern_json("run", "-m", cls.model, "-p", "Once upon a time", "-n", 60)

    def run_story(self, *options, n=60):
        return tern_json("run", "-m", self.model, "-p", "Once upon a time", "-n", n, *options)

    def test_stop_strings(self):
        """Any piece of the text, however tokens cut it, ends it right before its first place."""
        text = self.story["text"]
        rng = random.Random(1)
        for _ in range(25):
            at = rng.randrange(len(text) - 6)
            stop = text[at : at + rng.randint(1, 6)]
            with self.subTest(stop=stop):
                answer = self.run_story("--stop", stop, "--stop", "\x01never")
                self.assertEqual(answer["text"], text[: text.index(stop)])
                self.assertEqual(answer["stop"], "stop")
                tokens = answer["tokens"]
                self.assertEqual(tokens, self.story["tokens"][: len(tokens)])

    def test_stop_is_not_printed(self):
        text = self.story["text"]
        stop = text[40:45]
        printed = tern_text("run", "-m", self.model, "-p", "Once upon a time", "--stop", stop)
        self.assertEqual(printed, text[: text.index(stop)] + "\n")

    def test_what_is_held_back_is_printed_at_the_end(self):
        """The beginning of a stop string at the very end belongs to the text."""
        text = self.story["text"]
        answer = self.run_story("--stop", text[-3:] + "\x01")
        self.assertEqual((answer["text"], answer["stop"]), (text, self.story["stop"]))

    def test_earliest_of_several(self):
        text = self.story["text"]
        answer = self.run_story("--stop", text[50:53], "--stop", text[20:24])
        self.assertEqual(answer["text"], text[: min(text.index(text[50:53]), text.index(text[20:24]))])

    def test_stop_tokens(self):
        tokens = self.story["tokens"]
        answer = self.run_story("--stop-token", 0, "--stop-token", tokens[10])
        self.assertEqual(answer["tokens"], tokens[: tokens.index(tokens[10])])
        self.assertEqual(answer["stop"], "stop")

    def test_bias(self):
        tokens = self.story["tokens"]
        banned = self.run_story("--logit-bias", f"{tokens[3]}=-1000")
        self.assertEqual(banned["tokens"][:3], tokens[:3])
        self.assertNotIn(tokens[3], banned["tokens"])
        wanted = self.run_story("--logit-bias", " the=1000", n=3)
        self.assertEqual(wanted["text"], " the the the")

    def test_penalties(self):
        """A window of everything and a large penalty: no token of prompt or answer comes again."""
        for option in ("--presence-penalty", "--frequency-penalty"):
            tokens = self.run_story(option, 100, "--repeat-last-n", 1000, "--ignore-eos")["tokens"]
            self.assertEqual(len(set(tokens)), 60)
        free = self.run_story("--presence-penalty", 100, "--repeat-last-n", 0)
        self.assertEqual(free["tokens"], self.story["tokens"])
        milder = self.run_story("--repeat-penalty", 1.5)
        self.assertNotEqual(milder["tokens"], self.story["tokens"])

    def test_same_everywhere(self):
        options = ("--temp", 0.9, "--min-p", 0.05, "--repeat-penalty", 1.1, "--seed", 3)
        options += ("--frequency-penalty", 0.3, "--logit-bias", " little=2", "--ignore-eos")
        answers = set()
        for isa in common.runnable_isas():
            for threads in (1, 3):
                said = self.run_story(*options, "--isa", isa, "--threads", threads)
                answers.add(tuple(said["tokens"]))
        self.assertEqual(len(answers), 1)

    def test_min_p_of_one_is_greedy(self):
        answer = self.run_story("--temp", 1.5, "--min-p", 1)
        self.assertEqual(answer["tokens"], self.story["tokens"])

    def test_wrong_use(self):
        for option, value, hint in (
            ("--logit-bias", "x", "TOKEN=X"),
            ("--logit-bias", "3=", "TOKEN=X"),
            ("--logit-bias", "3=nan", "TOKEN=X"),
            ("--logit-bias", "=3", "TOKEN=X"),
            ("--logit-bias", "99999999=1", "no token 99999999"),
            ("--logit-bias", "two tokens=1", "not one"),
            ("--stop", "", "not empty"),
            ("--stop-token", "-1", "integer"),
            ("--min-p", "2", "from 0 to 1"),
            ("--repeat-penalty", "0", "from 0.01"),
            ("--presence-penalty", "inf", "a number"),
        ):
            with self.subTest(option=option, value=value):
                result = tern("run", "-m", self.model, "-p", "a", option, value)
                self.assert_one_line_error(result, 2, [option, hint])

    def test_too_many(self):
        stops = [word for i in range(129) for word in ("--stop", f"s{i}")]
        result = tern("run", "-m", self.model, "-p", "a", *stops)
        self.assert_one_line_error(result, 2, ["more than 128"])

    def test_variable(self):
        text = self.story["text"]
        stopped = tern_json(
            "run", "-m", self.model, "-p", "Once upon a time", env={"TERN_STOP": text[30:34]}
        )
        self.assertEqual(stopped["text"], text[: text.index(text[30:34])])


if __name__ == "__main__":
    common.main()
