# SPDX-License-Identifier: Apache-2.0
"""A thousand answers of each kind take no more memory than a hundred did."""

import gc
import unittest
from pathlib import Path

import package
import suite

tern = package.begin()

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def resident():
    """Bytes of memory that the process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Memory(unittest.TestCase):
    def grows(self, use, n=1000):
        for i in range(n // 5):
            use(i)
        before = resident()
        for i in range(n):
            use(i)
        return resident() - before

    def test_answers(self):
        model = package.open_small(tern)
        kinds = {
            "generate": lambda i: model.generate(f"Q: What is {i}+1? A:", max_tokens=8),
            "stream": lambda i: list(model.stream(f"Q: What is {i}+1? A:", max_tokens=8)),
            "left": lambda i: next(model.stream(f"Q: What is {i}+1? A:", ignore_end=True)),
            "chat": lambda i: model.chat(f"What is {i}+1?", max_tokens=8),
            "form": lambda i: model.generate(f"{i}: ", schema=SCHEMA, max_tokens=30),
            "logits": lambda i: model.logits([i % 1000, 5, 6]),
            "embed": lambda i: model.embed([str(i)], pooling="mean"),
            "tokens": lambda i: model.tokenizer.decode(model.tokenizer.encode("a word " * 100)),
        }
        for name, use in kinds.items():
            with self.subTest(kind=name):
                self.assertLess(self.grows(use), 2 << 20)

    def test_models_and_their_parts(self):
        def use(_):
            model = package.open_small(tern)
            model.generate("x", max_tokens=1)
            with model.session(context=64) as session:
                session.eval("x")
            tern.Engine(model, context=64).generate("x", max_tokens=1)

        self.assertLess(self.grows(use, 100), 8 << 20)


if __name__ == "__main__":
    suite.main()
