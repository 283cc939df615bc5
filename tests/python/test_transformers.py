# SPDX-License-Identifier: Apache-2.0
"""tern.transformers gives the ids that tern gives: rows of a batch, padding, ends, numbers drawn, tensors."""

import unittest

import package
import suite

tern = package.begin()

import numpy as np  # noqa: E402  (after package.begin, which says where it is missing)
from tern.transformers import GenerativeModel  # noqa: E402

QUESTIONS = ("Q: What is 17+25? A:", "Once upon a time")


class Generate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = package.open_small(tern)
        cls.own = GenerativeModel(cls.model)
        cls.ids = [cls.model.tokenizer.encode(question) for question in QUESTIONS]

    def padded(self):
        width = max(map(len, self.ids))
        rows, mask = np.zeros((2, width), np.int64), np.zeros((2, width), np.int64)
        for row, on, ids in zip(rows, mask, self.ids):
            row[width - len(ids) :], on[width - len(ids) :] = ids, 1
        return rows, mask

    def test_a_batch_has_the_answers_of_each(self):
        rows, mask = self.padded()
        out = self.own.generate(rows, attention_mask=mask, max_new_tokens=8)
        eos = self.model.tokenizer.eos
        for row, ids in zip(out, self.ids):
            wanted = self.model.generate(ids, max_tokens=8)
            whole = wanted.tokens + [eos] * (8 - len(wanted.tokens))  # an end, and padding, which is the same token
            self.assertEqual(row[rows.shape[1] :].tolist(), whole)
        np.testing.assert_array_equal(out[:, : rows.shape[1]], rows)

    def test_lists_and_lengths(self):
        out = self.own.generate(self.ids[1:], max_length=len(self.ids[1]) + 3)
        self.assertEqual(out, [self.ids[1] + self.model.generate(self.ids[1], max_tokens=3).tokens])
        end = self.model.generate(self.ids[1], max_tokens=3).tokens[1]
        self.assertEqual(self.own.generate(self.ids[1:], max_new_tokens=3, eos_token_id=end), [out[0][:-1]])

    def test_drawn_numbers(self):
        one = self.own.generate(self.ids[1:], max_new_tokens=12, do_sample=True, temperature=0.9, seed=3, num_return_sequences=2)
        alone = self.model.generate(self.ids[1], max_tokens=12, temperature=0.9, top_k=50, seed=3, ignore_end=True)
        self.assertEqual(one[0][len(self.ids[1]) :], alone.tokens)
        self.assertNotEqual(one[0], one[1])

    def test_refusals(self):
        for options, error in (({"num_beams": 4}, ValueError), ({"logits_processor": []}, TypeError), ({"max_length": 1}, ValueError)):
            with self.assertRaises(error):
                self.own.generate(self.ids[1:], **options)
        with self.assertRaises(ValueError):
            self.own.generate(np.array([[3, 0]]), attention_mask=np.array([[1, 0]]), max_new_tokens=2)


class WithTorch(unittest.TestCase):
    """Beside transformers itself."""

    def test_tensors_and_streamers(self):
        try:
            import torch
            import transformers
        except ImportError:
            self.skipTest("needs torch and transformers")

        class Kept(transformers.generation.streamers.BaseStreamer):
            def __init__(self):
                self.ids, self.ended = [], False

            def put(self, value):
                self.ids += value.reshape(-1).tolist()

            def end(self):
                self.ended = True

        model = package.open_small(tern)
        prompt = torch.tensor([model.tokenizer.encode(QUESTIONS[1])])
        config = transformers.GenerationConfig(max_new_tokens=6, do_sample=False)
        kept = Kept()
        out = GenerativeModel(model).generate(input_ids=prompt, generation_config=config, streamer=kept)
        self.assertEqual((out.dtype, out.shape), (torch.int64, (1, prompt.shape[1] + 6)))
        self.assertEqual((kept.ids, kept.ended), (out[0].tolist(), True))
        self.assertEqual(out[0, prompt.shape[1] :].tolist(), model.generate(QUESTIONS[1], max_tokens=6).tokens)


if __name__ == "__main__":
    suite.main()
