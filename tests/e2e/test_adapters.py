# SPDX-License-Identifier: Apache-2.0
"""Adapters (docs/adapters.md): logits against the oracle's, one answer, and files that are refused."""

import struct
from pathlib import Path

import common
import suite
from common import comma, prompt, tern, tern_text

suite.need("numpy", "gguf")

import adapter_file  # noqa: E402
import gguf_edit  # noqa: E402
import numpy as np  # noqa: E402
from container import Container  # noqa: E402

# Norms of heads, joined matrices, a norm after each half, ternary weights, blocks.
PRESETS = ["llama-tiny-f32", "llama-tiny-f16", "bitnet-tiny", "olmo2-tiny", "phi3-tiny", "qwen3-tiny"]
BOUNDS = {"llama-tiny-f32": 1e-4, "llama-tiny-f16": 1e-4, "bitnet-tiny": 1e-4}  # others round activations
JOINED = ("attn_qkv", "attn_output", "ffn_up", "ffn_down")


class Adapters(common.FolderTest):
    def make(self, preset, name="one", **settings):
        model = common.synth(preset, self.dir)
        matrices = JOINED if preset == "phi3-tiny" else adapter_file.MATRICES
        adapter = adapter_file.Adapter(model, **{"matrices": matrices} | settings)
        return model, adapter, adapter.write(self.dir / f"{preset}-{name}.gguf")

    def logits(self, model, ids, *options):
        out = self.dir / "logits.f32"
        tern_text("logits", "-m", model, "--tokens", comma(ids), "--all", "--kv", "f32", "--force", "-o", out, *options)
        return np.fromfile(out, dtype="<f4").astype(np.float64).reshape(len(ids), -1)

    def test_oracle(self):
        """Two adapters, of different ranks, types and scales."""
        for preset in PRESETS:
            with self.subTest(preset=preset):
                model, one, first = self.make(preset)
                _, two, second = self.make(preset, "two", rank=17, alpha=0, kind=1, seed=2)
                ids = prompt(70, gguf_edit.vocabulary(model))
                oracle = adapter_file.Model(Container(model), [(one, 1.0), (two, 0.5)])
                expected = oracle.logits(ids, "f32")
                actual = self.logits(model, ids, "--lora", first, "--lora", f"{second}=0.5")
                worst = np.abs(actual - expected).max() / expected.std()
                plain = np.abs(self.logits(model, ids) - expected).max() / expected.std()
                print(f"{preset}: {worst:.1e} of a deviation, without adapters {plain:.1e}", flush=True)
                self.assertLess(worst, BOUNDS.get(preset, 0.3))
                self.assertGreater(plain, 1.0)

    def test_one_answer(self):
        """One hash over instruction sets, threads, and splits of the prompt; adapters of scale 0 add nothing."""
        for preset in ("llama-tiny-q4_k", "bitnet-tiny"):
            model, _, first = self.make(preset)
            _, _, second = self.make(preset, "two", rank=17, kind=1, seed=2)
            ids = comma(prompt(70, gguf_edit.vocabulary(model)))

            def sha(*options):
                return tern_text("logits", "-m", model, "--tokens", ids, "--all", "--sha256", *options)

            both = ("--lora", first, "--lora", f"{second}=-0.25")
            answers = {sha(*both, "--threads", n, "--split", s) for n, s in ((1, 0), (3, 1), (2, 7))}
            answers |= {sha(*both, "--isa", isa) for isa in common.runnable_isas()}
            self.assertEqual(len(answers), 1)
            self.assertEqual(sha("--lora", f"{first}=0", "--lora", f"{second}=0"), sha())
            self.assertEqual(sha("--lora", f"{first}=0", "--lora", f"{second}=0.5"), sha("--lora", f"{second}=0.5"))
            self.assertNotIn(sha(), answers)

    def test_order(self):
        """Ids are places on the command line; their order decides how sums are rounded."""
        model, _, first = self.make("llama-tiny-f32")
        _, _, second = self.make("llama-tiny-f32", "two", rank=17, seed=2)
        ids = comma(prompt(30, gguf_edit.vocabulary(model)))
        tokens = ("logits", "-m", model, "--tokens", ids, "--all", "--sha256", "--lora")
        self.assertNotEqual(tern_text(*tokens, first, "--lora", second), tern_text(*tokens, second, "--lora", first))

    def test_determinism(self):
        model, _, file = self.make("llama-tiny-q4_0")
        answer = tern_text("verify-determinism", "-m", model, "--lora", file)
        self.assertIn("one answer", answer)
        self.assertNotEqual(answer.splitlines()[-1], tern_text("verify-determinism", "-m", model).splitlines()[-1])

    def test_sessions(self):
        """A session goes on with the adapters that it was computed with, and with no others."""
        model, _, file = self.make("llama-tiny-f16")
        kept = self.dir / "a.session"
        again = ("run", "-m", model, "-p", "hello", "-n", 4, "--prompt-cache", kept)
        tern_text(*again, "--lora", file)
        tern_text(*again, "--lora", file)
        for other in (("--lora", f"{file}=0.5"), ()):
            self.assert_one_line_error(tern(*again, *other), contains=["a.session", "adapters included"])


class Refused(common.FolderTest):
    """Files that are refused in one line, which names them."""

    def setUp(self):
        self.model = common.synth("llama-tiny-f16", self.dir)
        self.file = adapter_file.Adapter(self.model).file()
        self.path = self.dir / "bad.gguf"

    def refused(self, *words, options=()):
        self.path.write_bytes(self.file.to_bytes())
        result = tern("logits", "-m", self.model, "--tokens", "1,2,3", "--sha256", "--lora", self.path, *options)
        self.assert_one_line_error(result, contains=["bad.gguf", *words])

    def test_metadata(self):
        for key, value, word in (
            ("general.type", gguf_edit.string("model"), "'model'"),
            ("adapter.type", gguf_edit.string("dora"), "'dora'"),
            ("general.architecture", gguf_edit.string("qwen2"), "'llama'"),
            ("adapter.lora.alpha", gguf_edit.f32(float("nan")), "not finite"),
            ("adapter.lora.alpha", gguf_edit.string("8"), "string"),
            ("adapter.alora.invocation_tokens", gguf_edit.i32s([1]), "not supported"),
        ):
            with self.subTest(key=key, word=word):
                self.setUp()
                self.file[key] = value
                self.refused(key, word)
        for key in ("general.type", "adapter.type", "general.architecture"):
            self.setUp()
            del self.file[key]
            self.refused(key)

    def test_tensors(self):
        name = "blk.0.attn_q.weight"
        changes = {
            "rank 0": lambda a, b: (a.ne.__setitem__(1, 0), setattr(a, "data", b"")),
            "other columns": lambda a, b: (a.ne.__setitem__(0, 86), setattr(a, "data", a.data[: 86 * 4 * 4])),
            "other rows": lambda a, b: (b.ne.__setitem__(1, 86), setattr(b, "data", b.data[: 86 * 4 * 4])),
            "other rank": lambda a, b: (b.ne.__setitem__(0, 3), setattr(b, "data", b.data[: 88 * 3 * 4])),
            "type": lambda a, b: (a.ne.__setitem__(0, 32), setattr(a, "kind", 8), setattr(a, "data", bytes(34 * 4))),
            "nan": lambda a, b: setattr(a, "data", struct.pack("<f", float("nan")) + a.data[4:]),
            "infinity": lambda a, b: setattr(b, "data", b.data[:-4] + struct.pack("<f", float("inf"))),
        }
        for what, change in changes.items():
            with self.subTest(what=what):
                self.setUp()
                change(self.file.tensor(f"{name}.lora_a"), self.file.tensor(f"{name}.lora_b"))
                self.refused("attn_q.weight")

    def test_places(self):
        for name, other in (
            ("blk.0.attn_q.weight.lora_a", "blk.9.attn_q.weight.lora_a"),
            ("blk.0.attn_q.weight.lora_a", "token_embd.weight.lora_a"),
            ("blk.0.attn_q.weight.lora_b", "output.weight.lora_b"),
            ("blk.0.attn_q.weight.lora_b", "blk.0.attn_norm.weight"),
        ):
            with self.subTest(other=other):
                self.setUp()
                self.file.tensor(name).name = other
                self.refused("attn_q.weight", "is missing")
        self.setUp()
        self.file.tensors = self.file.tensors[2:] + [gguf_edit.Tensor("blk.0.attn_norm.weight", [88], 0, bytes(352))]
        self.refused("blk.0.attn_norm.weight", "no matrix")
        self.setUp()
        self.file.tensors = []
        self.refused("without tensors")

    def test_values(self):
        """Numbers that are too large are refused before, or end the pass that they overflow in."""
        self.file["adapter.lora.alpha"] = gguf_edit.f32(3e38)
        self.refused("too large", options=("--lora", f"{self.path}=9"))
        result = tern("logits", "-m", self.model, "--tokens", "1,2,3", "--sha256", "--lora", self.path)
        self.assert_one_line_error(result, contains=["overflow"])

    def test_files(self):
        for path, word in ((self.model, "general.type"), (self.dir, "folder"), (Path("/nowhere"), "No such file")):
            result = tern("logits", "-m", self.model, "--tokens", "1", "--sha256", "--lora", path)
            self.assert_one_line_error(result, contains=[str(path), word])
        run = ("run", "-m", self.model, "-p", "a", "-n", 1, "--lora", self.path, "--receipt", self.dir / "r.json")
        self.assert_one_line_error(tern(*run), status=2, contains=["receipts"])
        more = [x for _ in range(65) for x in ("--lora", self.path)]
        result = tern("logits", "-m", self.model, "--tokens", "1", "--sha256", *more)
        self.assert_one_line_error(result, status=2, contains=["65 adapters, at most 64"])


if __name__ == "__main__":
    common.main()
