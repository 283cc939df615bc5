# SPDX-License-Identifier: Apache-2.0
"""Adapters (docs/adapters.md): logits against the oracle's, one answer, and files that are refused."""

import json
import struct
from pathlib import Path

import common
import suite
from common import comma, prompt, tern, tern_text

suite.need("numpy", "gguf")

import adapter_file  # noqa: E402
import gguf_edit  # noqa: E402
import hf_folder  # noqa: E402
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

    def test_elsewhere(self):
        """Only the processor of one process adds adapters: another device is a wish at most, and ranks have none."""
        model, _, first = self.make("llama-tiny-f32")
        run = ("run", "-m", model, "--tokens", "1,2,3", "-n", 4, "--lora", first)
        self.assertEqual(tern_text(*run, "--device", "auto"), tern_text(*run))
        noted = tern(*run, "--device", "auto", "--verbose").stderr.decode()
        self.assertIn("device: the processor; adapters are computed on the processor only", noted)
        self.assert_one_line_error(tern(*run, "--device", "cuda"), 1, [model.name, "on the processor only"])
        self.assert_one_line_error(tern(*run, "--device", "auto", "--strict"), 1, ["strict", "on the processor only"])
        self.assert_one_line_error(tern(*run, "--ranks", 2), 1, ["ranks cannot use adapters"])

    def test_order(self):
        """Ids are places on the command line; their order decides how sums are rounded."""
        model, _, first = self.make("llama-tiny-f32")
        _, _, second = self.make("llama-tiny-f32", "two", rank=17, seed=2)
        ids = comma(prompt(30, gguf_edit.vocabulary(model)))
        tokens = ("logits", "-m", model, "--tokens", ids, "--all", "--sha256", "--lora")
        self.assertNotEqual(tern_text(*tokens, first, "--lora", second), tern_text(*tokens, second, "--lora", first))

    def test_merged(self):
        """A copy of the model with the adapters in its weights computes nearly the same."""
        merged = self.dir / "merged.gguf"
        types = {"llama-tiny-f32": (1e-4,), "llama-tiny-f16": (2e-2,), "llama-tiny-q8_0": (0.5,), "phi3-tiny": (0.5, "--type", "f32")}
        for preset, (bound, *more) in types.items():
            with self.subTest(preset=preset):
                model, _, first = self.make(preset)
                _, _, second = self.make(preset, "two", rank=17, kind=1, seed=2)
                uses = first, f"{second}=-0.5"
                said = tern_text("convert", model, merged, "--force", *more, *(x for use in uses for x in ("--merge-lora", use)))
                self.assertIn("lossless" if preset == "llama-tiny-f32" else "lossy", said)
                ids = prompt(40, gguf_edit.vocabulary(model))
                expected = self.logits(model, ids, *(x for use in uses for x in ("--lora", use)))
                worst = np.abs(self.logits(merged, ids) - expected).max() / expected.std()
                print(f"{preset}, merged: {worst:.1e} of a deviation", flush=True)
                self.assertLess(worst, bound)
                kinds = [[(t.name, t.kind) for t in gguf_edit.read(path).tensors] for path in (model, merged)]
                self.assertEqual(kinds[0] == kinds[1], not more)

    def test_factors_are_not_merged(self):
        """Weights beside a factor are not those that an adapter is added to."""
        model, _, file = self.make("llama-tiny-q8_0")
        scaled = gguf_edit.read(model)
        scaled.tensors.append(gguf_edit.Tensor("blk.1.ffn_up.scale", [1], 0, np.float32([2.0]).tobytes()))
        path = self.dir / "scaled.gguf"
        path.write_bytes(scaled.to_bytes())
        result = tern("convert", path, self.dir / "merged.gguf", "--merge-lora", file)
        self.assert_one_line_error(result, contains=["blk.1.ffn_up.scale", "factor", "--lora"])
        ids = prompt(10, gguf_edit.vocabulary(model))
        self.assertFalse((self.logits(path, ids, "--lora", file) == self.logits(path, ids)).all())

    def test_merging_refused(self):
        model, _, file = self.make("bitnet-tiny")
        out = self.dir / "refused.gguf"
        for source, options, words in (
            (model, ("--merge-lora", file), "not ternary"),
            (model, ("--merge-lora", model), "general.type"),
            (self.dir, ("--merge-lora", file), "config.json"),
        ):
            self.assert_one_line_error(tern("convert", source, out, *options), contains=[words])
            self.assertFalse(out.exists())

    def test_determinism(self):
        model, _, file = self.make("llama-tiny-q4_0")
        best = ("verify-determinism", "-m", model, "--isa", common.runnable_isas()[-1])
        answers = [tern_text(*best, *more).splitlines()[-1] for more in ((), ("--lora", file))]
        self.assertTrue(all(answer.startswith("one answer") for answer in answers))
        self.assertNotEqual(*answers)

    def test_sessions(self):
        """A session goes on with the adapters that it was computed with, and with no others."""
        model, _, file = self.make("llama-tiny-f16")
        kept = self.dir / "a.session"
        again = ("run", "-m", model, "-p", "hello", "-n", 4, "--prompt-cache", kept)
        tern_text(*again, "--lora", file)
        tern_text(*again, "--lora", file)
        for other in (("--lora", f"{file}=0.5"), ()):
            self.assert_one_line_error(tern(*again, *other), contains=["a.session", "adapters included"])

    def test_receipts(self):
        """A receipt names the adapters, and is checked with the same ones only."""
        model, _, first = self.make("llama-tiny-f16")
        _, _, second = self.make("llama-tiny-f16", "two", rank=17, kind=1, seed=2)
        receipt = self.dir / "receipt.json"
        unused = ("--lora", f"{second}=0")
        tern_text("run", "-m", model, "-p", "hello", "-n", 5, "--lora", f"{first}=0.7", *unused, "--receipt", receipt)
        (named,) = json.loads(receipt.read_text())["model_info"]["adapters"]
        self.assertEqual((named["path"], np.float32(named["scale"])), (first.name, np.float32(0.7)))
        again = ("verify", receipt, "--replay", "-m", model)
        tern_text(*again, "--lora", first)
        others = ((), "1 adapters"), (("--lora", second), named["sha256"][:16]), (("--lora", first, *unused), "1 adapters")
        for options, words in others:
            self.assert_one_line_error(tern(*again, *options), contains=[words])


class Folders(common.FolderTest):
    """Folders as PEFT saves them (tests/folders/adapters.py has PEFT's own)."""

    def setUp(self):
        self.out = self.dir / "out.gguf"

    def make(self, preset, kind="F32", **config):
        """A folder with the numbers of an adapter, and that adapter; rows of q and k in the folder's order."""
        self.model = common.synth(preset, self.dir)
        adapter = adapter_file.Adapter(self.model, rank=4, alpha=6.0, kind=0)
        dim = adapter.head_dim()
        turns = preset.startswith("llama")
        self.folder = self.dir / f"{preset}-peft"
        self.folder.mkdir(exist_ok=True)
        halves = {}
        for name, (a, b) in adapter.pairs.items():
            _, layer, matrix, _ = name.split(".")
            module = hf_folder.LAYER[f"{matrix}.weight"].removesuffix(".weight")
            if turns and matrix in ("attn_q", "attn_k"):  # neighbours of the file are halves of the folder's heads
                b = b.reshape(-1, dim // 2, 2, b.shape[1]).swapaxes(1, 2).reshape(b.shape)
            for half, x in (("A", a), ("B", b)):
                stored = f"base_model.model.model.layers.{layer}.{module}.lora_{half}.weight"
                halves[stored] = hf_folder.Stored(x, kind)
        self.halves = halves
        self.config = {"peft_type": "LORA", "r": 4, "lora_alpha": 6, "target_modules": ["q_proj"], "bias": "none",
                       "base_model_name_or_path": str(self.model)} | config  # fmt: skip
        self.save()
        return adapter

    def save(self):
        (self.folder / "adapter_config.json").write_text(json.dumps(self.config))
        (self.folder / "adapter_model.safetensors").write_bytes(hf_folder.safetensors_bytes(self.halves))

    def convert(self, *options):
        return tern("convert", self.folder, self.out, "--force", *options)

    def test_numbers(self):
        """The file holds the numbers that the adapter was made of, and gives its logits."""
        for preset in ("llama-tiny-f32", "qwen2-tiny"):
            adapter = self.make(preset)
            done = self.convert()
            self.assertEqual(done.returncode, 0, done.stderr)
            made = gguf_edit.read(self.out)
            for name, pair in adapter.pairs.items():
                for half, x in zip("ab", pair):
                    t = made.tensor(f"{name}.lora_{half}")
                    self.assertEqual((t.ne, t.data[: x.nbytes]), ([*x.shape[::-1]], x.tobytes()), t.name)
            self.assertEqual(made.number("adapter.lora.alpha"), 6.0)
            self.assertEqual(made.text("general.type"), "adapter")

    def test_scales(self):
        """alpha / sqrt(rank), and alphas of some modules, which multiply B."""
        adapter = self.make("llama-tiny-f32", use_rslora=True)
        self.assertEqual(self.convert().returncode, 0)
        self.assertEqual(gguf_edit.read(self.out).number("adapter.lora.alpha"), 12.0)
        self.make("llama-tiny-f32", alpha_pattern={"v_proj": 10, "layers.1.mlp.up_proj": 1})
        self.assertEqual(self.convert("--base", self.model).returncode, 0)
        made = gguf_edit.read(self.out)
        self.assertNotIn("adapter.lora.alpha", made)
        for name, scale in (("blk.0.attn_v", 2.5), ("blk.1.ffn_up", 0.25), ("blk.0.ffn_up", 1.5)):
            b = adapter.pairs[f"{name}.weight"][1].astype(np.float64) * scale
            self.assertEqual(made.tensor(f"{name}.weight.lora_b").data[: 4 * b.size], b.astype(np.float32).tobytes())

    def test_types(self):
        for kind, number in (("F16", 1), ("BF16", 30)):
            self.make("llama-tiny-f32", kind)
            self.assertEqual(self.convert().returncode, 0)
            self.assertEqual({t.kind for t in gguf_edit.read(self.out).tensors}, {number})
            tern_text("logits", "-m", self.model, "--tokens", "1,2,3", "--lora", self.out, "--sha256")

    def test_refused(self):
        """What changes an adapter and is not done, by name."""
        self.make("llama-tiny-f32")
        plain = self.config
        for key, value in (
            ("peft_type", "IA3"), ("use_dora", True), ("bias", "all"), ("modules_to_save", ["lm_head"]),
            ("fan_in_fan_out", True), ("init_lora_weights", "pissa_niter_4"), ("lora_alpha", None), ("lora_alpha", 0),
            ("alpha_pattern", {"q_proj|v_proj": 3}), ("alpha_pattern", {"q_proj": 0}), ("alpha_pattern", 3),
            ("layer_replication", [[0, 1]]), ("trainable_token_indices", [1]),
        ):  # fmt: skip
            with self.subTest(key=key):
                self.config = plain | {key: value}
                self.save()
                self.assert_one_line_error(self.convert(), contains=["adapter_config.json", key])
        self.config = plain | {"base_model_name_or_path": "meta/missing"}
        self.save()
        self.assert_one_line_error(self.convert(), contains=["meta/missing", "--base"])

    def test_refused_tensors(self):
        self.make("llama-tiny-f32")
        whole = self.halves
        first = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
        thin = hf_folder.Stored(np.zeros((3, 88)), "F32")
        for change, word in (
            ({f"{first}A.weight": None}, "no lora_A"),
            ({f"{first}B.weight": None}, "no lora_B"),
            ({f"{first}A.weight": thin}, "x rank"),
            ({f"{first}A.weight": hf_folder.Stored(np.zeros((4, 88)), "I64")}, "I64"),
            ({"base_model.model.lm_head.lora_A.weight": thin}, "lm_head"),
            ({"base_model.model.model.layers.2.self_attn.q_proj.lora_A.weight": thin}, "layers.2."),
            ({"base_model.model.model.norm.weight": thin}, "model.norm"),
        ):
            with self.subTest(word=word):
                self.halves = {key: value for key, value in (whole | change).items() if value is not None}
                self.save()
                self.assert_one_line_error(self.convert(), contains=[word])
        self.halves = {}
        self.save()
        self.assert_one_line_error(self.convert(), contains=["without matrices"])


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
        run = ("serve", "-m", self.model, "--lora", self.path, "--record-answers", self.dir / "records")
        self.assert_one_line_error(tern(*run), status=2, contains=["--record-answers"])
        more = [x for _ in range(65) for x in ("--lora", self.path)]
        result = tern("logits", "-m", self.model, "--tokens", "1", "--sha256", *more)
        self.assert_one_line_error(result, status=2, contains=["65 adapters, at most 64"])


if __name__ == "__main__":
    common.main()
