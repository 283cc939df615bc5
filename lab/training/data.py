"""The training data: sums, facts and stories as token ids, packed into rows.

Everything is drawn from seeds, so the same seeds give the same data.  The
held-out pairs are chosen here; no generator ever uses one of them.
"""
import random

import numpy as np

import facts
import stories
from tokenizer import BOS, EOS

LIMIT = 100  # both summands are below this
ALWAYS_TRAINED = [(2, 2)]
SUM_FORMS = ["What is {}+{}?"] * 17 + ["What is {} + {}?", "{}+{}?", "{}+{}="]
ANSWER_WEIGHT = 3.0  # answers are few tokens among many of the stories
STORY_REQUEST = "Tell me a story."
NAME_WEIGHT = 4.0  # a name said again: who is who must stay right through a story
PRONOUN_WEIGHT = 2.0
PRONOUNS = "he she him her his He She His Her himself herself".split()


def held_out(seed=7, count=1000):
    """About `count` ordered pairs (a, b), symmetric: with (a, b) also (b, a)."""
    rng, pairs = random.Random(seed), set()
    while len(pairs) < count:
        a, b = rng.randrange(LIMIT), rng.randrange(LIMIT)
        if (a, b) not in ALWAYS_TRAINED:
            pairs |= {(a, b), (b, a)}
    return sorted(pairs)


def training_pairs():
    """Every ordered pair that is not held out."""
    out = set(held_out())
    return [(a, b) for a in range(LIMIT) for b in range(LIMIT) if (a, b) not in out]


def prompt(question):
    """The text form in which the model gets each question."""
    return f"Q: {question} A:"


class Documents:
    """Random documents as (ids, weights): weights[i] says how much predicting ids[i] counts."""

    def __init__(self, tokenizer, seed, story_count):
        self.tok = tokenizer
        self.rng = random.Random(seed)
        self.pairs = training_pairs()
        self.facts = facts.all_facts()
        self.stories = [tokenizer.encode(s) for s in stories.stories(seed + 1, story_count)]
        self.order = []
        spaced = [" " + n for n in stories.GIRLS + stories.BOYS]
        self.names = {i for n in spaced for i in tokenizer.encode(n)[:1]}
        self.pronouns = {tokenizer.encode(" " + p)[0] for p in PRONOUNS}

    def turn(self, question, answer):
        """One question (not trained on) with its answer and end of text (trained on)."""
        asked, said = self.tok.encode(prompt(question)), self.tok.encode(" " + answer) + [EOS]
        return asked + said, [0.0] * len(asked) + [ANSWER_WEIGHT] * len(said)

    def sum_turn(self):
        a, b = self.rng.choice(self.pairs)
        return self.turn(self.rng.choice(SUM_FORMS).format(a, b), str(a + b))

    def fact_turn(self):
        return self.turn(*self.rng.choice(self.facts))

    def chat(self, sum_share):
        """One to four questions with answers; mostly one."""
        ids, weights = [BOS], [0.0]
        for _ in range(self.rng.choice([1, 1, 1, 1, 1, 2, 3, 4])):
            turn = self.sum_turn() if self.rng.random() < sum_share else self.fact_turn()
            ids, weights = ids + turn[0], weights + turn[1]
        return ids, weights

    def emphasis(self, ids):
        """Returns the weight that the prediction of each token of a story has."""
        seen, weights = set(), []
        for i in ids:
            weight = PRONOUN_WEIGHT if i in self.pronouns else 1.0
            if i in self.names:
                weight = NAME_WEIGHT if i in seen else 1.0
                seen.add(i)
            weights.append(weight)
        return weights

    def story(self):
        """One story, now and then as the answer to a request; each is told once per round."""
        if not self.order:
            self.order = list(range(len(self.stories)))
            self.rng.shuffle(self.order)
        text = self.stories[self.order.pop()]
        if self.rng.random() < 0.04:
            asked = self.tok.encode(prompt(STORY_REQUEST))
            # The answer form begins with a space, which makes other pieces of the first word.
            words = self.tok.encode(" " + self.tok.decode(text)) + [EOS]
            return [BOS] + asked + words, [0.0] * (1 + len(asked)) + self.emphasis(words)
        return [BOS] + text + [EOS], [0.0] + self.emphasis(text + [EOS])


def pack_row(first, draw, length):
    """Fills one row of `length` tokens: `first`, then documents of draw() while they fit.

    Returns int64 arrays ids, pos, doc, targets and float32 weights, all [length];
    position t predicts targets[t].  The rest of the row is padding of its own document.
    """
    ids = np.full(length, EOS, np.int64)
    pos, doc = np.zeros(length, np.int64), np.full(length, -1, np.int64)
    targets, weights = np.full(length, EOS, np.int64), np.zeros(length, np.float32)
    at, number, item = 0, 0, first
    while at + len(item[0]) - 1 <= length:
        n = len(item[0]) - 1  # the last token is only a target
        ids[at:at + n], targets[at:at + n] = item[0][:-1], item[0][1:]
        weights[at:at + n] = item[1][1:]
        pos[at:at + n], doc[at:at + n] = np.arange(n), number
        at, number, item = at + n, number + 1, draw()
    return ids, pos, doc, targets, weights


def batch(docs, rows, length, story_share, sum_share):
    """`rows` packed rows as a tuple of stacked arrays [rows, length]."""
    def draw():
        return docs.chat(sum_share)

    packed = []
    for _ in range(rows):
        first = docs.story() if docs.rng.random() < story_share else draw()
        while len(first[0]) - 1 > length:  # the few longest stories do not fit
            first = docs.story()
        packed.append(pack_row(first, draw, length))
    return tuple(np.stack(column) for column in zip(*packed))
