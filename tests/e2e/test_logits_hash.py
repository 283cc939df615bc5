# SPDX-License-Identifier: Apache-2.0
"""One answer: the same bits from every instruction set, thread count, split and batch."""

import hashlib
import itertools
import os
import tempfile
from pathlib import Path

import common
import gguf_edit
import suite
import weights
from common import comma, prompt, tern_text

LENGTHS = [1, 2, 5, 17, 63, 64, 65, 130]
THOROUGH = {"bitnet-tiny", "llama-tiny-q4_0", "llama-tiny-f16"}  # a third of the others each day: every third length; TERN_TEST_PRESETS=some: none
THREADS = [1, 2, 3]
SPLITS = [0, 1, 3, 64]  # 0: the whole prompt at once
BATCHES = [1, 7, 64, 128]


def logits_hash(model, ids, *options):
    words = tern_text("logits", "-m", model, "--tokens", comma(ids), "--all", "--sha256", *options)
    digest = words.split()[0]
    assert len(digest) == 64 and int(digest, 16) >= 0, words
    return digest


def variants(isas, threads, splits, turn):
    """Options for the combinations. To keep the number of runs down, two neighbouring turns share
    the splits between them, and batch sizes follow each other."""
    batches = itertools.cycle(BATCHES)
    for isa, t, split in itertools.product(isas, threads, splits[turn % 2 :: 2]):
        batch = next(batches)
        yield ["--isa", isa, "--threads", t, "--split", split, "--batch", batch]


class OneAnswer(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.isas = common.runnable_isas()
        print("instruction sets:", " ".join(cls.isas))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, model, lengths=LENGTHS, threads=THREADS, splits=SPLITS):
        vocabulary = gguf_edit.vocabulary(model)
        seen = set()
        runs = 0
        for turn, length in enumerate(lengths):
            ids = prompt(length, vocabulary)
            expected = logits_hash(model, ids)
            seen.add(expected)
            for options in variants(self.isas, threads, splits, turn):
                runs += 1
                with self.subTest(model=model.name, length=length, options=options):
                    self.assertEqual(logits_hash(model, ids, *options), expected)
        self.assertEqual(len(seen), len(lengths), "different prompts gave the same logits")
        print(f"{model.name}: {len(lengths)} prompts, {runs} runs, {len(seen)} hashes")

    def test_synthetic(self):
        some = os.environ.get("TERN_TEST_PRESETS") == "some"
        for preset in sorted(THOROUGH) if some else sorted(THOROUGH | {*suite.of_the_day(common.quantized() + common.FLOATS, 3, suite.turn())}):
            lengths = LENGTHS if preset in THOROUGH else LENGTHS[::3]
            self.check(common.synth(preset, self.folder.name), lengths)

    def test_small_model(self):
        self.check(common.small_model(), lengths=[1, 17, 65])

    def test_smollm2(self):
        self.check(common.smollm2(), lengths=[5, 20], threads=[1, 2], splits=[0, 7])

    def test_layouts(self):
        """Every packed layout of ternary matrices gives the same logits, and is really used."""
        for preset in ("bitnet-tiny", "bitnet-tiny-odd", "bitnet-tiny-tq1_0"):
            model = common.synth(preset, self.folder.name)
            ids = prompt(70, gguf_edit.vocabulary(model))
            expected = logits_hash(model, ids)
            for layout, isa in itertools.product(weights.TERNARY_LAYOUTS, self.isas):
                options = ["--layout", layout, "--isa", isa]
                with self.subTest(model=model.name, options=options):
                    self.assertEqual(logits_hash(model, ids, *options), expected)
        for layout in weights.DENSE_LAYOUTS:
            ran = common.tern_json("run", "-m", model, "-p", "a", "-n", 1, "--layout", layout)["kernels"]
            self.assertTrue([name for name in ran if name.startswith(f"tern_gemv_{layout}_")], ran)
            self.assertFalse([name for name in ran if name.startswith("tern_gemv_i2_s_")], ran)

    def test_unknown_layout(self):
        model = common.synth("bitnet-tiny", self.folder.name)
        result = common.tern("logits", "-m", model, "--tokens", "1", "--layout", "t3r16")
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"one of: auto {' '.join(weights.TERNARY_LAYOUTS)}, not", result.stderr.decode())

    def test_f32_cache(self):
        """The other cache format also has one answer, and it differs."""
        model = common.synth("bitnet-tiny", self.folder.name)
        ids = prompt(70, gguf_edit.vocabulary(model))
        expected = logits_hash(model, ids, "--kv", "f32")
        self.assertNotEqual(expected, logits_hash(model, ids, "--kv", "f16"))
        self.assertNotEqual(expected, logits_hash(model, ids, "--kv", "q8_0"))
        for options in variants(self.isas, [1, 2], SPLITS, 1):
            with self.subTest(options=options):
                self.assertEqual(logits_hash(model, ids, "--kv", "f32", *options), expected)


class Output(common.TernTest):
    """Tests which logits the hash covers, and which of them longer prompts share with shorter ones."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = common.synth("bitnet-tiny", cls.folder.name)
        cls.vocabulary = gguf_edit.vocabulary(cls.model)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def logits(self, ids, *options):
        path = Path(self.folder.name) / "logits.f32"
        tern_text("logits", "-m", self.model, "--tokens", comma(ids), "--output", path, "--force", *options)
        return path.read_bytes()

    def test_hash_is_of_the_output(self):
        ids = prompt(9, self.vocabulary)
        data = self.logits(ids, "--all")
        self.assertEqual(len(data), 9 * self.vocabulary * 4)
        self.assertEqual(hashlib.sha256(data).hexdigest(), logits_hash(self.model, ids))

    def test_prefix(self):
        """Logits of a position do not depend on later tokens."""
        ids = prompt(130, self.vocabulary)
        whole = self.logits(ids, "--all")
        for length in (1, 3, 64, 100):
            part = self.logits(ids[:length], "--all")
            self.assertEqual(part, whole[: len(part)], f"first {length} positions")

    def test_last(self):
        """Without --all only the last position is computed, to the same bits."""
        ids = prompt(20, self.vocabulary)
        self.assertEqual(self.logits(ids), self.logits(ids, "--all")[-self.vocabulary * 4 :])

    def test_nothing_left_behind(self):
        self.logits(prompt(2, self.vocabulary))
        names = {p.name for p in Path(self.folder.name).iterdir()}
        self.assertEqual(names, {"logits.f32", self.model.name})


if __name__ == "__main__":
    common.main()
