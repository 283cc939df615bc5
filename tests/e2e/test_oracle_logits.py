# SPDX-License-Identifier: Apache-2.0
"""tern's logits against the oracle's (docs/oracle.md): float32 in C, float64 in NumPy."""

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

import common
import suite
import gguf_edit
from common import comma, prompt, tern_text

ORACLE = common.ROOT / "tests" / "oracle" / "oracle.py"
PRECISIONS = ("int8", "fp8", "fp8-e5m2", "fp16", "bf16", "fp32")
# One of every architecture that stores something else: no norms, biases, norms of heads.
KV_PRESETS = ["bitnet-tiny", "llama-tiny-f32", "qwen2-tiny", "qwen3-tiny"]


class Agreement(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, model, length, *options, kv="f16", activations="auto", more=()):
        ids = comma(prompt(length, gguf_edit.vocabulary(model)))
        logits = Path(self.folder.name) / "logits.f32"
        asked = ("--kv", kv, "--act-prec", activations, *more)
        tern_text("logits", "-m", model, "--tokens", ids, "--all", *asked, "--force", "--output", logits)
        result = subprocess.run(
            [
                sys.executable,
                ORACLE,
                model,
                "--tokens",
                ids,
                "--compare",
                logits,
                "--kv",
                kv,
                "--activations",
                activations,
                *more,
                *options,
            ],
            capture_output=True,
            text=True,
        )
        figures = (result.stdout + result.stderr).splitlines()
        print(f"{model.name} x {length}, kv {kv}, {activations}: {figures[-1]}", flush=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def check_presets(self, presets, *options):
        for preset, length, kv in itertools.product(presets, (1, 80), ("f16", "f32")):
            with self.subTest(preset=preset, length=length, kv=kv):
                self.check(common.synth(preset, self.folder.name), length, *options, kv=kv)

    def test_floats(self):
        """Only keys and values are rounded to few bits: the logits agree as well as float32 allows."""
        self.check_presets(common.FLOATS, "--cosine", "0.99999999", "--noise", "4")

    def test_quantized(self):
        self.check_presets(suite.of_the_day(common.quantized(), 3, suite.turn()), "--noise", "4")

    def test_factors(self):
        """Of whole matrices, of each expert, of the head, before biases; decoded weights have them as well."""
        model = common.synth("gpt-oss-tiny-nvfp4", self.folder.name)
        self.check(model, 20, "--noise", "4")
        self.check(model, 20, "--cosine", "0.99999999", "--noise", "4", kv="f32", activations="fp32")

    def test_activation_precisions(self):
        """Activations in floats, which are not rounded, agree as floats do; all others agree within the effect of
        rounding."""
        presets = ("llama-tiny-f32", "llama-tiny-q4_1", "llama-tiny-q4_k")
        for preset, activations in itertools.product(presets, PRECISIONS):
            exact = ("--cosine", "0.99999999") if activations == "fp32" else ()
            with self.subTest(preset=preset, activations=activations):
                model = common.synth(preset, self.folder.name)
                self.check(model, 40, *exact, "--noise", "4", kv="f32", activations=activations)

    def test_q8_0_cache(self):
        """Codes flip where float32 and float64 round apart: less agreement than with halves."""
        for preset in ("bitnet-tiny", "bitnet-tiny-odd", "llama-tiny-f32"):
            with self.subTest(preset=preset):
                model = common.synth(preset, self.folder.name)
                self.check(model, 80, "--cosine", "0.9999", "--noise", "4", kv="q8_0")

    def edited(self, name, edit, preset="bitnet-tiny"):
        """A tiny model under another name, or with another setting."""
        file = gguf_edit.read(common.synth(preset, self.folder.name))
        edit(file)
        path = Path(self.folder.name) / f"{name}.gguf"
        path.write_bytes(file.to_bytes())
        return path

    def test_architectures(self):
        """bitnet (SiLU) and bitnet-25 (squared ReLU) run the tiny model's weights as well."""
        for name in ("bitnet", "bitnet-25"):
            with self.subTest(architecture=name):
                self.check(
                    self.edited(name, lambda f, a=name: rename_architecture(f, a)),
                    20,
                    "--noise",
                    "3",
                )

    def test_keys_and_values(self):
        """Compares every layer's cache itself, its shape and its numbers, and not only the logits."""
        cases = [(common.synth(p, self.folder.name), "f16") for p in KV_PRESETS]
        cases += [(common.SMALL_MODEL, kv) for kv in ("f16", "f32", "q8_0")]
        for model, kv in cases:
            with self.subTest(model=model.name, kv=kv):
                ids = comma(prompt(40, gguf_edit.vocabulary(model)))
                dump = Path(self.folder.name) / "cache.f32"
                arguments = ("-m", model, "--tokens", ids, "--kv", kv, "--split", 7)
                tern_text("logits", *arguments, "--dump-kv", dump, "--force", "--sha256")
                options = ("--kv", kv, "--compare-kv", dump, "--cosine", "0.9999")
                command = [sys.executable, ORACLE, model, "--tokens", ids, *options]
                result = subprocess.run(command, capture_output=True, text=True)
                print(f"{model.name}, kv {kv}: {(result.stdout + result.stderr).strip()}", flush=True)
                self.assertEqual(result.returncode, 0)

    def test_rope_settings(self):
        """A base, a linear scaling and an epsilon that differ from the usual ones."""
        prefix = "bitnet-b1.58"

        def edit(file):
            file[f"{prefix}.rope.freq_base"] = gguf_edit.f32(777.0)
            file[f"{prefix}.rope.scaling.type"] = gguf_edit.string("linear")
            file[f"{prefix}.rope.scaling.factor"] = gguf_edit.f32(4.0)
            file[f"{prefix}.attention.layer_norm_rms_epsilon"] = gguf_edit.f32(0.125)

        self.check(self.edited("rope", edit), 40, "--noise", "4")

    def test_windows(self):
        """Gemma 3 with other windows, periods, bases and a linear scaling, which windowed layers have not."""
        for window, period, base in ((1, 3, 10000.0), (70, 2, 500.0), (30, 6, 10000.0)):

            def edit(file):
                file["gemma3.attention.sliding_window"] = gguf_edit.u32(window)
                file["gemma3.attention.sliding_window_pattern"] = gguf_edit.u32(period)
                file["gemma3.rope.freq_base_swa"] = gguf_edit.f32(base)
                file["gemma3.rope.scaling.type"] = gguf_edit.string("linear")
                file["gemma3.rope.scaling.factor"] = gguf_edit.f32(8.0)

            self.check(self.edited(f"window{window}", edit, "gemma3-tiny"), 140, "--noise", "4")

    def test_long_context(self):
        """Longrope's long factors, for texts below and above the context of the short ones."""
        model = common.synth("phi3-tiny", self.folder.name)
        for length in (40, 300):
            self.check(model, length, "--noise", "4", more=("--long-context",))

    def test_experts(self):
        """Weights that are not normed, or scaled; one expert, or all; gates that are cut; other windows."""
        cases = (
            ("qwen3moe", {"expert_weights_norm": (gguf_edit.BOOL, b"\0"), "expert_used_count": gguf_edit.u32(1)}),
            ("qwen3moe", {"expert_weights_scale": gguf_edit.f32(2.5), "expert_used_count": gguf_edit.u32(6)}),
            ("olmoe", {"expert_weights_norm": (gguf_edit.BOOL, b"\1"), "expert_weights_scale": gguf_edit.f32(0.0)}),
            ("maple", {"swiglu_clamp_exp": gguf_edit.f32(0.5), "rope.freq_base_swa": gguf_edit.f32(500.0)}),
            ("gpt-oss", {"swiglu_clamp_exp": gguf_edit.f32(0.3), "expert_used_count": gguf_edit.u32(5)}),
            ("gpt-oss", {"attention.sliding_window": gguf_edit.u32(1), "rope.scaling.factor": gguf_edit.f32(4.0)}),
            ("maple", {"attention.sliding_window_pattern": gguf_edit.u32(2), "rope.scaling.factor": gguf_edit.f32(4.0)}),
        )
        for i, (arch, keys) in enumerate(cases):

            def edit(file):
                for key, value in keys.items():
                    file[f"{arch}.{key}"] = value

            with self.subTest(architecture=arch, keys=list(keys)):
                self.check(self.edited(f"experts{i}", edit, f"{arch}-tiny"), 30, "--noise", "4")

    def test_alike_families(self):
        """Graphs that another one has too, with their own name and, where they differ, their own names of tensors."""

        def seed(file):
            rename_architecture(file, "seed_oss")
            for t in file.tensors:
                t.name = t.name.replace("ffn_norm", "post_attention_norm")

        def without_windows(file):
            del file["exaone4.attention.sliding_window"], file["exaone4.attention.sliding_window_pattern"]

        for name, edit, preset, exact in (
            ("seed", seed, "qwen2-tiny", ()),
            ("ernie", lambda file: rename_architecture(file, "ernie4_5"), "llama-tiny-f32", ("--cosine", "0.99999999")),
            ("exaone", without_windows, "exaone4-tiny", ()),
        ):
            with self.subTest(name=name):
                self.check(self.edited(name, edit, preset), 40, *exact, "--noise", "4", kv="f32")

    def test_yarn(self):
        """All pairs stretched, some, few; with a factor of attention besides; both pairings."""
        for preset, prefix, original, gain in (
            ("qwen3-tiny", "qwen3", 128, None),
            ("qwen3-tiny", "qwen3", 4096, 0.5),
            ("llama-tiny-f32", "llama", 16, None),
        ):

            def edit(file):
                file[f"{prefix}.rope.scaling.type"] = gguf_edit.string("yarn")
                file[f"{prefix}.rope.scaling.factor"] = gguf_edit.f32(4.0)
                file[f"{prefix}.rope.scaling.original_context_length"] = gguf_edit.u32(original)
                if gain is not None:
                    file[f"{prefix}.rope.scaling.attn_factor"] = gguf_edit.f32(gain)

            self.check(self.edited(f"yarn{original}", edit, preset), 100, "--noise", "4")

    def test_activation_of_the_file(self):
        """A file may name its activation, even where its architecture has another."""
        for preset, prefix, name in (
            ("bitnet-tiny", "bitnet-b1.58", "silu"),
            ("llama-tiny-q4_0", "llama", "relu2"),
        ):
            key = f"{prefix}.hidden_activation"
            edit = lambda f, key=key, name=name: f.__setitem__(key, gguf_edit.string(name))
            self.check(self.edited(name, edit, preset), 40, "--noise", "4")

    def test_attention_scale(self):
        key = "bitnet-b1.58.attention.scale"
        edit = lambda f: f.__setitem__(key, gguf_edit.f32(0.5))
        self.check(self.edited("scale", edit), 40, "--noise", "4")

    def test_rope_of_a_part(self):
        """Whole models that turn only some dimensions of a head, in both pairings; it matters which."""
        for preset, prefix in (("bitnet-tiny", "bitnet-b1.58"), ("llama-tiny-f32", "llama")):
            for size in (10, 4):

                def edit(file):
                    key = f"{prefix}.rope.dimension_count"
                    self.assertGreater(file.number(key), size)
                    file[key] = gguf_edit.u32(size)

                self.check(self.edited(f"part{size}", edit, preset), 40, "--noise", "4")

    def test_as_many_key_value_heads_as_heads(self):
        """Groups of one: keys and values are projected by matrices as large as those of the queries."""

        def edit(file):
            file["bitnet-b1.58.attention.head_count_kv"] = gguf_edit.u32(4)
            for n, (to, like) in itertools.product(range(2), (("k", "q"), ("v", "output"))):
                matrix, other = (file.tensor(f"blk.{n}.attn_{x}.weight") for x in (to, like))
                matrix.ne, matrix.data = list(other.ne), other.data

        model = self.edited("groups-of-one", edit)
        answer = common.tern_json("inspect", model)["geometry"]
        self.assertEqual((answer["n_head"], answer["n_head_kv"]), (4, 4))
        for length, kv in itertools.product((1, 80), ("f16", "f32")):
            with self.subTest(length=length, kv=kv):
                self.check(model, length, "--noise", "4", kv=kv)

    def test_sizes_of_2b(self):
        """A bitnet file that tells nothing but its layers has the sizes of BitNet b1.58 2B4T."""
        told = self.edited("told", lambda file: resize_to_2b(file, told=True))
        silent = self.edited("silent", lambda file: resize_to_2b(file, told=False))
        left = [key for key, _, _ in gguf_edit.read(silent).keys if key.startswith("bitnet-")]
        self.assertEqual(left, ["bitnet-b1.58.block_count"])
        geometry = common.tern_json("inspect", silent)["geometry"]
        self.assertEqual(geometry, common.tern_json("inspect", told)["geometry"])
        self.assertEqual(geometry["n_ctx_train"], 4096)
        ids = comma(prompt(30, 515))
        one, two = (tern_text("logits", "-m", m, "--tokens", ids, "--sha256") for m in (told, silent))
        self.assertEqual(one, two)
        self.check(told, 6, "--noise", "4")

    def test_small_model(self):
        self.check(common.small_model(), 48, "--noise", "4")

    def test_smollm2(self):
        self.check(common.smollm2(), 16, "--noise", "2")


def resize_to_2b(file, told):
    """One layer of the geometry of BitNet b1.58 2B4T with random weights, the same in every call."""
    prefix, random = "bitnet-b1.58", np.random.default_rng(5)
    file.keys = [entry for entry in file.keys if not entry[0].startswith("bitnet-")]
    file[f"{prefix}.block_count"] = gguf_edit.u32(1)
    if told:
        sizes = {"embedding_length": 2560, "feed_forward_length": 6912, "context_length": 4096}
        sizes |= {"attention.head_count": 20, "attention.head_count_kv": 5}
        for key, value in sizes.items():
            file[f"{prefix}.{key}"] = gguf_edit.u32(value)
        file[f"{prefix}.attention.layer_norm_rms_epsilon"] = gguf_edit.f32(1e-5)
        file[f"{prefix}.rope.freq_base"] = gguf_edit.f32(500000.0)
    file.tensors = [t for t in file.tensors if not t.name.startswith("blk.1.")]
    for t in file.tensors:
        t.ne = [{256: 2560, 640: 6912, 128: 640}.get(n, n) for n in t.ne]
        count = int(np.prod(t.ne))
        if len(t.ne) == 1:
            t.data = random.uniform(0.5, 1.5, count).astype("<f4").tobytes()
        elif t.name == "token_embd.weight":
            t.data = random.normal(0, 1, count).astype("<f2").tobytes()
        else:
            codes = random.integers(0, 3, (4, count // 4), dtype=np.uint8)
            scale = np.array([0.03] + [0] * 7, "<f4")
            t.data = (codes[0] << 6 | codes[1] << 4 | codes[2] << 2 | codes[3]).tobytes() + scale.tobytes()


def rename_architecture(file, name):
    old = file.text("general.architecture")
    file["general.architecture"] = gguf_edit.string(name)
    for entry in file.keys:
        if entry[0].startswith(f"{old}."):
            entry[0] = name + entry[0][len(old) :]


if __name__ == "__main__":
    try:
        import gguf  # noqa: F401
        import numpy as np
    except ImportError as missing:
        suite.skip(f"{missing} (pip install -r tests/oracle/requirements.txt)")
    common.main()
