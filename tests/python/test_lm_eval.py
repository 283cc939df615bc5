# SPDX-License-Identifier: Apache-2.0
"""tern.lm_eval: likelihoods are those of the model's logits, answers those of tern.Model, and lm-eval finds it by name."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import package
import suite

tern = package.begin()
suite.need("lm_eval")

import numpy as np  # noqa: E402
from lm_eval.api.instance import Instance  # noqa: E402
from tern.lm_eval import TernLM  # noqa: E402

TEXT = "Once upon a time Luna the panda saw a small red house at the sea."
LONG = " ".join(f"{n} and {n} is {2 * n}." for n in range(1, 30))


def instances(kind, *arguments):
    return [Instance(request_type=kind, doc={}, arguments=each, idx=i) for i, each in enumerate(arguments)]


class Likelihoods(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = package.open_small(tern)
        cls.lm = TernLM(cls.model)

    def wanted(self, context, continuation):
        """ln p and whether it is the likeliest, of ids."""
        rows = self.model.logits([*context, *continuation], all=True).astype(float)[len(context) - 1 : -1]
        top = rows.max(1)
        sums = top + np.log(np.exp(rows - top[:, None]).sum(1))
        return (rows[range(len(continuation)), continuation] - sums).sum(), bool((rows.argmax(1) == continuation).all())

    def test_choices(self):
        pairs = [("Q: What is 2+2?\nA:", f" {n}") for n in (4, 5, "a red house")] + [("", TEXT), ("Once upon", " a time")]
        got = self.lm.loglikelihood(instances("loglikelihood", *pairs), disable_tqdm=True)
        for (context, continuation), (score, likeliest) in zip(pairs, got):
            whole = self.lm.tok_encode(context + continuation)
            first = self.lm.tok_encode(context) or [self.lm.prefix_token_id]
            rest = whole[len(first) :] if context else whole
            score_wanted, likeliest_wanted = self.wanted(first, rest)
            self.assertAlmostEqual(score, score_wanted, places=9)
            self.assertEqual(likeliest, likeliest_wanted)
        greedy = self.model.generate(self.lm.tok_encode("Once upon a"), max_tokens=3).tokens
        self.assertTrue(self.lm._score(self.lm.tok_encode("Once upon a"), greedy)[1])

    def test_texts(self):
        short = TernLM(self.model, max_length=24)
        (got,) = short.loglikelihood_rolling(instances("loglikelihood_rolling", (LONG,)), disable_tqdm=True)
        ids = short.tok_encode(LONG)
        wanted, at = 0.0, 0
        for at in range(0, len(ids), 24):  # windows: 24 ids, of which the last one has as many before it as it can
            part = ids[at : at + 24]
            before = [short.prefix_token_id] if at == 0 else ids[max(0, at + len(part) - 25) : at]
            wanted += self.wanted(before, part)[0]
        self.assertAlmostEqual(got, wanted, places=9)

    def test_answers(self):
        asked = (("Q: What is 17+25? A:", {"until": ["\n"], "max_gen_toks": 8}), ("Once upon a time", {"until": [" the"], "max_gen_toks": 24}))
        got = self.lm.generate_until(instances("generate_until", *asked), disable_tqdm=True)
        wanted = [self.model.generate(self.lm.tok_encode(text), max_tokens=how["max_gen_toks"], stop=how["until"]).text for text, how in asked]
        self.assertEqual(got, wanted)
        with self.assertRaises(ValueError):
            self.lm.generate_until(instances("generate_until", ("Hi", {"num_beams": 2})))


class Command(unittest.TestCase):
    def test_lm_eval_finds_it_by_name(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "docs.jsonl").write_text("".join(json.dumps({"q": f"What is {a}+2?", "choices": [str(a + 2), "no"]}) + "\n" for a in (2, 3)))
            (folder / "own.yaml").write_text(
                f"task: own\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {folder}/docs.jsonl}}}}\ntest_split: test\n"
                'output_type: multiple_choice\ndoc_to_text: "Q: {{q}}\\nA:"\ndoc_to_choice: choices\ndoc_to_target: 0\n'
                "metric_list: [{metric: acc}]\n"
            )
            environment = {**os.environ, "HF_HOME": name, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
            done = subprocess.run(
                [sys.executable, "-m", "tern.lm_eval", "run", "--model", "tern", "--model_args", f"pretrained={package.SMALL},cache=",
                 "--tasks", "own", "--include_path", folder, "--output_path", folder / "out"],
                capture_output=True, text=True, env=environment, check=False)  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            (result,) = (folder / "out").rglob("results_*.json")
            self.assertIn("acc,none", json.loads(result.read_text())["results"]["own"])


if __name__ == "__main__":
    suite.main()
