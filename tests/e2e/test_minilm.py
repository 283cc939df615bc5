# SPDX-License-Identifier: Apache-2.0
"""A real encoder, all-MiniLM-L6-v2: its vectors beside those of sentence-transformers (lab/reference/embed.py)."""

import json
import math
import unittest

import common
import suite
from common import tern_text

GOLDEN = common.ROOT / "tests" / "golden" / "vectors" / "minilm.json"


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / math.hypot(*a) / math.hypot(*b)


class Minilm(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = suite.fetched_models() / "all-MiniLM-L6-v2"
        if not (folder / "model.safetensors").exists():
            raise unittest.SkipTest("all-MiniLM-L6-v2 is not at hand: run scripts/get-model minilm")
        cls.model = cls.dir / "minilm.gguf"
        tern_text("convert", folder, cls.model)
        cls.cases = json.loads(GOLDEN.read_text())["texts"]

    def embed(self, model, *options):
        texts = "\n".join(json.dumps({"prompt": case["text"]}) for case in self.cases).encode()
        return tern_text("embed", "-m", model, *options, stdin=texts)

    def found(self, model, *options):
        return [json.loads(line) for line in self.embed(model, *options).splitlines()]

    def least(self, model):
        """Returns the least cosine; the number of tokens is the same as there."""
        found = self.found(model)
        self.assertEqual([one["tokens"] for one in found], [case["tokens"] for case in self.cases])
        return min(cosine(one["embedding"], case["vector"]) for one, case in zip(found, self.cases))

    def test_beside_its_library(self):
        least = self.least(self.model)
        print(f"least cosine {least:.7f}")
        self.assertGreaterEqual(least, 0.9999)

    def test_fewer_bits(self):
        for kind, bound in (("f16", 0.9999), ("q8_0", 0.999)):
            out = self.dir / f"{kind}.gguf"
            tern_text("quantize", self.model, out, "--type", kind)
            least = self.least(out)
            print(f"{kind}: least cosine {least:.7f}")
            self.assertGreaterEqual(least, bound)

    def test_one_answer(self):
        """The same line of JSON on the first and the last instruction set, for other threads, alone and in company."""
        isas = common.runnable_isas()
        wanted = self.embed(self.model)
        for options in (["--isa", isas[0], "--threads", "1"], ["--isa", isas[-1], "--threads", "3"]):
            self.assertEqual(self.embed(self.model, *options), wanted, options)
        alone = tern_text("embed", "-m", self.model, "-p", self.cases[1]["text"])
        self.assertEqual(json.loads(alone)["embedding"], json.loads(wanted.splitlines()[1])["embedding"])

    def test_meaning(self):
        """Texts of similar meaning are nearer than others."""
        cat, kitten, bank = (one["embedding"] for one in self.found(self.model)[1:4])
        self.assertGreater(cosine(cat, kitten), 0.5)
        self.assertLess(cosine(cat, bank), 0.2)


if __name__ == "__main__":
    common.main()
