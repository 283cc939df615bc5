# SPDX-License-Identifier: Apache-2.0
"""tern perplexity against the same figure computed from tern's logits with NumPy."""

import re
import sys
import tempfile
from pathlib import Path

import common
import suite
from common import comma, tern, tern_json, tern_text

PIECES = re.compile(r"\d| ?[A-Za-z]+| ?[^\sA-Za-z\d]+|\s+(?!\S)|\s+")  # smollm's rule, for ASCII
OPENINGS = ("Once upon a time", "One day", "There was a", "Q: What is 17+25? A:")


def merge(piece, ranks):
    """The tokens of one piece of text: the best pair first, until none is left."""
    parts = list(piece.replace(" ", "\u0120").replace("\n", "\u010a"))
    while len(parts) > 1:
        pairs = [ranks.get((a, b), len(ranks)) for a, b in zip(parts, parts[1:])]
        best = min(pairs)
        if best == len(ranks):
            break
        i = pairs.index(best)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts


def tokenize(model, text):
    """Beginning of text, then byte-level BPE, as far as ASCII texts of letters and digits need it."""
    file = Container(model)
    tokens, merges = (file.get(f"tokenizer.ggml.{name}") for name in ("tokens", "merges"))
    ids = {token: i for i, token in enumerate(tokens)}
    ranks = {tuple(pair.split(" ")): i for i, pair in enumerate(merges)}
    return [0] + [ids[t] for piece in PIECES.findall(text) for t in merge(piece, ranks)]


class Perplexity(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.model = common.small_model()
        cls.folder = tempfile.TemporaryDirectory()
        cls.text = Path(cls.folder.name) / "stories.txt"
        stories = [
            tern_text("run", "-m", cls.model, "-p", opening, "-n", 120, "--echo", "--seed", seed)
            for seed in (1, 2)
            for opening in OPENINGS
        ]
        sums = (common.ROOT / "models" / "tern-small.heldout.txt").read_text()[:400]
        cls.text.write_text("\n".join(stories) + sums)
        cls.ids = tokenize(cls.model, cls.text.read_text())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def measure(self, *options):
        return tern_json("perplexity", "-m", self.model, "-f", self.text, *options)

    def logits(self, ids):
        path = Path(self.folder.name) / "logits.f32"
        tern_text("logits", "-m", self.model, "--tokens", comma(ids), "--all", "--output", path, "--force")
        return np.fromfile(path, "<f4").reshape(len(ids), -1).astype(np.float64)

    def expected(self, ctx, stride):
        """-ln p of every scored token, from whole windows."""
        scored = min(stride, ctx - 1 - ctx // 2)
        losses = []
        for start in range(0, len(self.ids) - ctx + 1, stride):
            window = [0, *self.ids[start + 1 : start + ctx]]
            x = self.logits(window)[:-1]
            x -= x.max(axis=1, keepdims=True)
            x -= np.log(np.exp(x).sum(axis=1, keepdims=True))
            losses.extend(-x[np.arange(ctx - 1), window[1:]][-scored:])
        return np.array(losses)

    def check(self, ctx, stride, *options):
        got = self.measure("--ctx", ctx, *options)
        want = self.expected(ctx, stride)
        self.assertEqual(got["text_tokens"], len(self.ids))
        self.assertEqual((got["ctx"], got["stride"]), (ctx, stride))
        self.assertEqual(got["scored_tokens"], len(want))
        self.assertEqual(got["windows"], (len(self.ids) - ctx) // stride + 1)
        error = want.std(ddof=1) / np.sqrt(len(want))
        self.assertAlmostEqual(got["nll"] / want.mean(), 1, delta=1e-12)
        self.assertAlmostEqual(got["nll_error"] / error, 1, delta=1e-9)
        self.assertAlmostEqual(got["perplexity"] / np.exp(want.mean()), 1, delta=1e-12)
        self.assertAlmostEqual(got["low"] / np.exp(want.mean() - 1.96 * error), 1, delta=1e-9)
        self.assertAlmostEqual(got["high"] / np.exp(want.mean() + 1.96 * error), 1, delta=1e-9)
        self.assertAlmostEqual(got["perplexity_error"] / got["perplexity"] / error, 1, delta=1e-9)

    def test_windows_side_by_side(self):
        self.check(128, 128)
        self.check(257, 257)

    def test_sliding_windows(self):
        self.check(128, 50, "--stride", 50)
        self.check(128, 100, "--stride", 100)

    def test_one_answer(self):
        """Batch, threads and instruction set do not change a bit of any figure."""
        figures = ("nll", "nll_error", "perplexity", "low", "high")
        first = self.measure("--ctx", 100)
        for options in (
            ("--batch", 1, "--threads", 1),
            ("--batch", 7, "--threads", 3),
            ("--isa", "scalar"),
        ):
            other = self.measure("--ctx", 100, *options)
            self.assertEqual([first[f] for f in figures], [other[f] for f in figures], options)

    def test_some_windows(self):
        got = self.measure("--ctx", 64, "--windows", 2)
        want = self.expected(64, 64)[: 2 * 31]
        self.assertEqual(got["windows"], 2)
        self.assertAlmostEqual(got["nll"] / want.mean(), 1, delta=1e-12)

    def test_text(self):
        """The figures for people are those of --json; standard input may be the text as well."""
        got = self.measure()
        text = tern_text("perplexity", "-m", self.model, "-f", "-", stdin=self.text.read_bytes())
        self.assertIn(f"perplexity {got['perplexity']:.4f} +- {got['perplexity_error']:.4f},", text)
        self.assertIn("windows of 512 tokens", text)  # without --ctx

    def test_progress(self):
        result = tern("perplexity", "-m", self.model, "-f", self.text, "--ctx", 64, "--verbose")
        told = result.stderr.decode().splitlines()  # --verbose describes the model, too
        lines = [line for line in told if line.startswith("window ")]
        self.assertEqual(len(lines), len(self.ids) // 64)
        self.assertTrue(lines[1].startswith(f"window 2 of {len(lines)}: perplexity "), lines[1])

    def test_refusals(self):
        run = ("perplexity", "-m", self.model)
        short = tern(*run, "-f", "-", stdin=b"Q: What is 2+2?")
        self.assert_one_line_error(short, contains=["standard input", "10 tokens", "512"])
        stretched = tern(*run, "-f", self.text, "--ctx", 513)
        self.assert_one_line_error(stretched, contains=["513", "512"])
        self.assert_one_line_error(tern(*run, "-f", "/nowhere"), contains=["/nowhere"])
        self.assert_one_line_error(tern(*run), status=2, contains=["-f FILE"])
        tiny = tern(*run, "-f", self.text, "--ctx", 3)
        self.assert_one_line_error(tiny, contains=["4", "3"])
        stride = tern(*run, "-f", self.text, "--ctx", 64, "--stride", 65)
        self.assert_one_line_error(stride, contains=["64", "65"])


if __name__ == "__main__":
    try:
        import numpy as np

        sys.path.insert(0, str(common.ROOT / "tests" / "oracle"))
        from container import Container
    except ImportError as missing:
        suite.skip(f"{missing} (pip install -r tests/oracle/requirements.txt)")
    common.main()
