# SPDX-License-Identifier: Apache-2.0
"""A model is used whole or not at all: every request of a file is done, makes no difference, or is refused."""

import math
import struct
import tempfile
from pathlib import Path

import common
import gguf_edit
import suite
from common import tern, tern_json, tern_text
from gguf_edit import BOOL, f32, i32s, string, u32

suite.need("gguf")
import gguf  # noqa: E402

F32 = 0
PAGE = common.ROOT / "docs" / "strict.md"


def boolean(value):
    return BOOL, bytes([value])


def rows_of_the_page():
    """Yields (keys, values they run with) of the table of keys."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| key, after"))
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return
        names, kind = [cell.strip() for cell in line.split(" | ")[:2]]
        yield [name.strip("`| ") for name in names.split(", ")], kind


# The values that a key of each kind may have, and those that are refused; the context of the model is 64.
VALUES = {
    "anything": ([u32(3), f32(0.5), i32s([1, 2])], []),
    "0": ([u32(0), f32(0.0), boolean(0)], [u32(2), f32(0.25), f32(math.nan), string("0"), i32s([0])]),
    "0 or 1": ([f32(0.0), f32(1.0), u32(1)], [f32(0.5), u32(2), f32(-1.0)]),
    "false": ([boolean(0)], [boolean(1), string("false")]),
    "true": ([boolean(1)], [boolean(0)]),
    "0 or at least the context": ([u32(0), u32(64), u32(4096)], [u32(63), u32(1), string("64")]),
    "a known layout": ([string("reference"), string("Meta AI original pth")], [string("x"), u32(0)]),
    "never": ([], [u32(0), f32(1.0), i32s([0, 0])]),
}


class WholeModels(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.keep.name)
        cls.model = common.synth("llama-tiny-q8_0", cls.folder)
        cls.path = cls.folder / "edited.gguf"
        cls.expected = tern_text("logits", "-m", cls.model, "--tokens", "1,2,3", "--sha256")

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    def fresh(self, preset="llama-tiny-q8_0"):
        return gguf_edit.read(common.synth(preset, self.folder))

    def logits(self, file, *options):
        self.path.write_bytes(file.to_bytes())
        return tern("logits", "-m", self.path, "--tokens", "1,2,3", "--sha256", *options)

    def refused(self, file, *words):
        """The model is refused in both modes, in one line."""
        for options in ((), ("--strict",)):
            result = self.logits(file, *options)
            self.assert_one_line_error(result, contains=["edited.gguf", *words])

    def silent(self, file):
        """The logits are the same in strict mode, without a message."""
        result = self.logits(file, "--strict")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, b"")
        self.assertEqual(result.stdout.decode().split(), self.expected.split())

    # ---- keys ----

    def test_every_key(self):
        """Keys behave as docs/strict.md says: allowed values change nothing, others are refused."""
        seen = 0
        for names, kind in rows_of_the_page():
            if kind == "read and checked":
                continue
            for name in names:
                key = f"llama.{name}x" if name.endswith(".") else f"llama.{name}"
                fine, wrong = VALUES[kind]
                if name == "attention.sliding_window":
                    wrong = []  # llama may have windows: test_windows_of_all_layers
                file = self.fresh()
                file["llama.context_length"] = u32(64)
                for value in fine:
                    file[key] = value
                    with self.subTest(key=key, value=value):
                        self.silent(file)
                for value in wrong:
                    file[key] = value
                    with self.subTest(key=key, value=value):
                        result = self.logits(file)
                        self.assert_one_line_error(result, contains=["edited.gguf", key])
                        self.assertIn(b"is not supported", result.stderr)
                        seen += 1
        self.assertGreater(seen, 100)

    def test_read_keys(self):
        """These keys are read, and their values ask for another graph."""
        for changes, words in (
            ({"attention.value_length": u32(8)}, ["key length 24", "value length 8"]),
            ({"attention.head_count": i32s([4, 4])}, ["attention.head_count"]),
            ({"attention.head_count_kv": i32s([2, 2])}, ["attention.head_count_kv"]),
            ({"feed_forward_length": i32s([160, 160])}, ["feed_forward_length"]),
            (
                {"rope.scaling.type": string("dynamic"), "rope.scaling.factor": f32(2.0)},
                ["'dynamic'", "none, linear, yarn"],
            ),
            ({"rope.scaling.type": string("yarn"), "rope.scaling.factor": f32(0.5)}, ["0.5", "at least 1"]),
            (
                {
                    "rope.scaling.type": string("yarn"),
                    "rope.scaling.factor": f32(2.0),
                    "rope.scaling.yarn_beta_fast": f32(0.5),
                },
                ["yarn from 0.5 turns down to 1"],
            ),
            (
                {
                    "rope.scaling.type": string("yarn"),
                    "rope.scaling.factor": f32(2.0),
                    "rope.scaling.original_context_length": u32(0),
                },
                ["original_context_length is 0"],
            ),
            ({"rope.scaling.attn_factor": f32(math.nan)}, ["rope.scaling.attn_factor is nan"]),
            ({"hidden_activation": string("gelu")}, ["hidden_activation is 'gelu'", "relu2"]),
            ({"hidden_activation": u32(1)}, ["hidden_activation"]),
            ({"rope.scaling.type": string("longrope")}, ["longrope needs tensors", "factors_short"]),
        ):
            file = self.fresh()
            for name, value in changes.items():
                file[f"llama.{name}"] = value
            with self.subTest(changes=changes):
                self.refused(file, *words)

    def test_windows(self):
        """Tests the windowed layers that a file may describe, and those that it may not."""
        for changes, words in (
            ({"attention.sliding_window": u32(0)}, ["attention.sliding_window is 0"]),
            ({"attention.sliding_window": None}, ["attention.sliding_window", "missing"]),
            ({"attention.sliding_window": string("6")}, ["attention.sliding_window"]),
            ({"attention.sliding_window_pattern": u32(0)}, ["sliding_window_pattern is 0"]),
            ({"attention.sliding_window_pattern": u32(5000)}, ["sliding_window_pattern is 5000"]),
            ({"attention.key_length_swa": u32(16)}, ["key_length_swa is 16", "32"]),
            ({"rope.dimension_count_swa": u32(8)}, ["dimension_count_swa is 8"]),
            ({"rope.freq_base_swa": f32(math.nan)}, ["rope.freq_base_swa is nan"]),
            ({"final_logit_softcapping": f32(30.0)}, ["final_logit_softcapping is 30", "soft bound"]),
            ({"attention.chunk_size": u32(8)}, ["attention.chunk_size is 8"]),
        ):
            file = self.fresh("gemma3-tiny")
            for name, value in changes.items():
                if value is None:
                    del file[f"gemma3.{name}"]
                else:
                    file[f"gemma3.{name}"] = value
            with self.subTest(changes=changes):
                self.refused(file, *words)

    def test_windows_of_all_layers(self):
        """llama and phi3 may have them, other architectures are refused with one."""
        file = self.fresh("qwen3-tiny")
        for value in (u32(511), u32(1)):
            file["qwen3.attention.sliding_window"] = value
            self.refused(file, "qwen3.attention.sliding_window", "a window of attention is not supported")
        file = self.fresh()
        for value, words in ((string("64"), ["must be"]), (f32(2.5), ["must be"])):
            file["llama.attention.sliding_window"] = value
            self.refused(file, "llama.attention.sliding_window", *words)
        file["llama.attention.sliding_window"] = u32(2)
        narrow = self.logits(file, "--strict").stdout
        self.assertNotEqual(narrow.split(), self.expected.split())

    def test_a_window_one_short_of_the_context(self):
        """It hides the first position from the last one; a window as long as the context hides nothing."""
        file = self.fresh()
        context = 32
        file["llama.context_length"] = u32(context)

        def hashes(window):
            file["llama.attention.sliding_window"] = u32(window)
            self.path.write_bytes(file.to_bytes())
            ids = common.prompt(context, 100)
            return [tern_text("logits", "-m", self.path, "--tokens", common.comma(ids[:n]), "--all", "--sha256", "-c",
                              str(context)) for n in (context - 1, context)]

        less, full = hashes(0)
        self.assertEqual(hashes(context), [less, full])
        self.assertEqual(hashes(context + 1), [less, full])
        short = hashes(context - 1)
        self.assertEqual(short[0], less)
        self.assertNotEqual(short[1], full)

    def test_joined_matrices(self):
        """q, k and v in one tensor have other rows, a type without rows, or a separate piece beside them."""
        qkv, up = "blk.1.attn_qkv.weight", "blk.0.ffn_up.weight"

        def shorter(name):
            def edit(file):
                t = file.tensor(name)
                t.data = t.data[: len(t.data) // t.ne[1] * (t.ne[1] - 1)]
                t.ne[1] -= 1

            return edit

        def as_i2_s(file):
            t = file.tensor(qkv)
            t.kind, t.data = 36, bytes(t.ne[0] * t.ne[1] // 4 + 32)

        def beside(name, rows):
            tensor = gguf_edit.Tensor(name, [96, rows], F32, bytes(96 * rows * 4))
            return lambda file: file.tensors.append(tensor)

        for edit, words in (
            (shorter(qkv), [qkv, "rows, must have 256"]),
            (shorter(up), [up, "rows, must have 320"]),
            (as_i2_s, [qkv, "cannot be told apart"]),
            (beside("blk.1.attn_k.weight", 64), ["blk.1.attn_k.weight", "within another"]),
            (beside("blk.1.attn_q.weight", 128), ["blk.1.attn_q.weight", "within another"]),
            (lambda f: f.remove(qkv), ["blk.1.attn_q.weight is missing"]),
        ):
            file = self.fresh("phi3-tiny")
            edit(file)
            with self.subTest(words=words):
                self.refused(file, *words)

    def test_longrope(self):
        """The context of the short factors; both tensors, a gain, and no other scaling."""
        context = "phi3.rope.scaling.original_context_length"

        def scaled(file, kind):
            file["phi3.rope.scaling.type"] = string(kind)
            file["phi3.rope.scaling.factor"] = f32(2.0)

        def narrow(file):
            t = file.tensor("rope_factors_short.weight")
            t.ne[0], t.data = 8, t.data[:32]

        for edit, words in (
            (lambda f: f.remove("rope_factors_long.weight"), ["longrope needs tensors"]),
            (lambda f: f.remove("rope_factors_short.weight"), ["longrope needs tensors"]),
            (lambda f: f.__delitem__("phi3.rope.scaling.attn_factor"), ["attn_factor", "missing"]),
            (lambda f: f.__setitem__(context, u32(0)), [f"{context} is 0"]),
            (lambda f: f.__setitem__("phi3.rope.scale_linear", f32(2.0)), ["no other scaling"]),
            (lambda f: scaled(f, "linear"), ["no other scaling"]),
            (lambda f: scaled(f, "yarn"), ["no other scaling"]),
            (lambda f: f.tensors.append(gguf_edit.Tensor("rope_freqs.weight", [12], F32, struct.pack("<12f", *[1.0] * 12))),
             ["no other scaling"]),
            (lambda f: f.__setitem__(context, u32(511)) or f.__delitem__("phi3.rope.scaling.attn_factor"),
             ["attn_factor", "missing"]),
            (narrow, ["12 values"]),
        ):
            file = self.fresh("phi3-tiny")
            edit(file)
            with self.subTest(words=words):
                self.refused(file, *words)
        for original in (256, 511, 512, 513):  # of a context of 512
            file = self.fresh("phi3-tiny")
            file[context] = u32(original)
            self.path.write_bytes(file.to_bytes())
            self.assertIn(f"for up to {min(original, 512)} positions", tern_text("inspect", self.path))

    def test_input_norms(self):
        """A file has all norms before matrices, each of the width that its matrix reads, or it has none of them."""
        names = [f"attn_{x}" for x in ("q", "k", "v", "output")] + [f"ffn_{x}" for x in ("gate", "up", "down")]
        for preset in ("bitnet-embedding-tiny", "bitnet-embedding-gemma-tiny"):
            for name in (f"blk.1.{n}_norm_in.weight" for n in names):
                file = self.fresh(preset)
                file.remove(name)
                self.refused(file, f"tensor {name} is missing")
                file = self.fresh(preset)
                t = file.tensor(name)
                t.ne[0], t.data = t.ne[0] - 1, t.data[:-4]
                self.refused(file, name, f"{t.ne[0]} x 1")
        file, donor = self.fresh("qwen2-tiny"), "blk.0.attn_q_norm_in.weight"
        file.tensors.append(gguf_edit.Tensor(donor, [96], F32, bytes(96 * 4)))
        self.refused(file, donor)

    def test_factors(self):
        """All three must be there, and be numbers that something can be multiplied by."""
        for name in ("embedding_scale", "residual_scale", "logit_scale"):
            for value in (None, f32(0.0), f32(math.nan), f32(-1.0), string("1")):
                file = self.fresh("minicpm-tiny")
                if value is None:
                    del file[f"minicpm.{name}"]
                else:
                    file[f"minicpm.{name}"] = value
                with self.subTest(name=name, value=value):
                    self.refused(file, f"minicpm.{name}")

    def test_delta_layers(self):
        """Some layer must attend."""
        file = self.fresh("qwen35-tiny")
        file["qwen35.full_attention_interval"] = u32(4)
        self.refused(file, "full_attention_interval is 4", "none of 3 layers")

    def test_experts(self):
        """Counts, widths and kinds of experts that a file cannot have, and tensors that do not fit them."""
        for key, value, words in (
            ("expert_count", None, ["expert_count' is missing"]),
            ("expert_count", u32(0), ["is 0, must be 1 to 1024"]),
            ("expert_count", u32(1 << 31), ["is 2147483648, must be 1 to 1024"]),
            ("expert_count", u32(5), ["ffn_gate_inp.weight is 96 x 6, must be 96 x 5"]),
            ("expert_used_count", None, ["expert_used_count' is missing"]),
            ("expert_used_count", u32(0), ["is 0, must be 1 to 6"]),
            ("expert_used_count", u32(7), ["is 7, must be 1 to 6"]),
            ("expert_feed_forward_length", u32(0), ["is 0, must be 1 to 65535"]),
            ("expert_feed_forward_length", u32(32), ["96 x 64 x 6, must be 96 x 32 x 6"]),
            ("expert_feed_forward_length", None, ["qwen3moe.feed_forward_length' is missing"]),
            ("expert_weights_scale", f32(math.nan), ["expert_weights_scale"]),
            ("expert_weights_scale", f32(-1.0), ["expert_weights_scale"]),
            ("expert_weights_norm", u32(1), ["expert_weights_norm"]),
            ("expert_gating_func", u32(2), ["a router without softmax"]),
            ("expert_group_count", u32(2), ["groups of experts"]),
            ("leading_dense_block_count", u32(1), ["layers without experts"]),
            ("expert_shared_count", u32(1), ["experts is not supported"]),
            ("swiglu_clamp_exp", f32(7.0), ["clamping of activations"]),
        ):
            file = self.fresh("qwen3moe-tiny")
            if value is None:
                del file[f"qwen3moe.{key}"]
            else:
                file[f"qwen3moe.{key}"] = value
            with self.subTest(key=key, value=value):
                self.refused(file, *words)

    def test_expert_tensors(self):
        """Tensors of experts are missing, have another shape, or hold numbers that are not finite."""

        def broken(name, change, preset="olmoe-tiny"):
            file = self.fresh(preset)
            change(file.tensor(f"blk.1.{name}.weight"))
            return file

        def flat(t):
            t.ne[1:] = [t.ne[1] * t.ne[2]]

        def infinite(t):  # the last scale
            t.data = t.data[:-18] + b"\x00\x7c" + t.data[-16:]

        def i2_s(t):
            t.kind, t.data = 36, t.data[: 5 * 40 * 96 // 4 + 32]

        for name in ("ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"):
            file = self.fresh("olmoe-tiny")
            file.remove(f"blk.1.{name}.weight")
            self.refused(file, f"tensor blk.1.{name}.weight is missing")
        self.refused(broken("ffn_up_exps", flat), "96 x 200 x 1, must be 96 x 40 x 5")
        bad = broken("ffn_down_exps", infinite, "qwen3moe-tiny")
        self.refused(bad, "blk.1.ffn_down_exps.weight", "finite")
        self.refused(broken("ffn_gate_exps", i2_s), "blk.1.ffn_gate_exps.weight")
        file = self.fresh("qwen3moe-tiny")
        file.tensors.append(gguf_edit.Tensor("blk.0.ffn_gate_shexp.weight", [32], F32, bytes(128)))
        self.refused(file, "blk.0.ffn_gate_shexp.weight", "experts")
        file = self.fresh("qwen3moe-tiny")
        file.tensors.append(gguf_edit.Tensor("blk.0.ffn_gate.weight", [32], F32, bytes(128)))
        self.refused(file, "does not use tensor blk.0.ffn_gate.weight")

    def test_sinks_and_biases(self):
        """gpt-oss: sinks, and biases of the router and of experts, that are missing, of another size or not finite."""
        nan = struct.pack("<f", math.nan)
        for name, change, words in (
            ("attn_sinks.weight", None, ["tensor blk.1.attn_sinks.weight is missing"]),
            ("attn_sinks.weight", [5], ["blk.1.attn_sinks.weight is 5 x 1, must be 6 x 1"]),
            ("attn_sinks.weight", nan, ["blk.1.attn_sinks.weight", "not finite"]),
            ("post_attention_norm.weight", None, ["tensor blk.1.post_attention_norm.weight is missing"]),
            ("attn_output.bias", [95], ["blk.1.attn_output.bias is 95 x 1, must be 96 x 1"]),
            ("ffn_gate_inp.bias", [4], ["blk.1.ffn_gate_inp.bias is 4 x 1, must be 5 x 1"]),
            ("ffn_gate_inp.bias", nan, ["blk.1.ffn_gate_inp.bias", "not finite"]),
            ("ffn_gate_exps.bias", [64], ["blk.1.ffn_gate_exps.bias is 64 x 1, must be 64 x 5"]),
            ("ffn_up_exps.bias", [64, 4], ["blk.1.ffn_up_exps.bias is 64 x 4, must be 64 x 5"]),
            ("ffn_down_exps.bias", [480], ["blk.1.ffn_down_exps.bias is 480 x 1, must be 96 x 5"]),
            ("ffn_down_exps.bias", nan, ["blk.1.ffn_down_exps.bias", "not finite"]),
        ):
            file = self.fresh("gpt-oss-tiny")
            tensor = file.tensor(f"blk.1.{name}")
            if change is None:
                file.remove(tensor.name)
            elif isinstance(change, bytes):
                tensor.data = change + tensor.data[4:]
            else:
                tensor.ne, tensor.data = change, tensor.data[: 4 * math.prod(change)]
            with self.subTest(name=name, change=change):
                self.refused(file, *words)
        for preset, name in (("qwen3moe-tiny", "attn_sinks.weight"), ("olmoe-tiny", "ffn_gate_exps.bias"),
                             ("gpt-oss-tiny", "ffn_norm.weight"), ("gpt-oss-tiny", "ffn_up.bias")):
            file = self.fresh(preset)
            file.tensors.append(gguf_edit.Tensor(f"blk.0.{name}", [32], F32, bytes(128)))
            self.refused(file, f"blk.0.{name}")
        file = self.fresh("gpt-oss-tiny")
        del file["gpt-oss.attention.sliding_window"]
        self.refused(file, "gpt-oss.attention.sliding_window' is missing")

    def test_cut_gates(self):
        """Maple's gates are cut at one number for all layers, or not at all."""
        file = self.fresh("maple-tiny")
        before = self.logits(file).stdout

        def floats(*values):
            return gguf_edit.ARRAY, struct.pack(f"<IQ{len(values)}f", 6, len(values), *values)

        for value, same in ((f32(7.0), True), (floats(*[7.0] * 4), True), (floats(*[0.5] * 4), False)):
            file["maple.swiglu_clamp_exp"] = value
            self.assertEqual(self.logits(file).stdout == before, same)
        for value in (f32(-1.0), f32(math.nan), floats(7.0, 7.0), floats(7.0, 7.0, 7.0, 6.0), floats(math.nan)):
            file["maple.swiglu_clamp_exp"] = value
            self.refused(file, "maple.swiglu_clamp_exp")

    def test_every_architecture(self):
        """Each one that the `gguf` package knows runs, or is refused with what it needs; of these no part is told."""
        untold = """apertus arcee baichuan deci exaone glm-dsa internlm2 jais2 maincoder mimo2
            mistral4 openelm pangu-embedded plamo plamo3 plm qwen step35 xverse"""
        names = gguf.MODEL_ARCH_NAMES.values()
        found = {"it needs": set(), "": set()}
        for name in names:
            file = self.fresh()
            file["general.architecture"] = string(name)
            said = self.logits(file).stderr.decode()
            if f"'{name}' is not supported" in said:
                found["it needs" if "it needs" in said else ""].add(name)
        self.assertEqual(found[""], set(untold.split()))
        self.assertEqual(len(names) - sum(map(len, found.values())), 26)

    def test_other_graphs(self):
        """Parts that tern does not support are named: by the architecture, or by the tensors of a known one."""
        for name, words in (
            ("kimi-linear", ["delta attention"]),
            ("mamba2", ["state spaces"]),
            ("glm4moe", ["experts"]),
            ("clip", ["a vision tower"]),
            ("modern-bert", ["attention to later tokens"]),
            ("oak", ["llama, qwen2"]),
        ):
            file = self.fresh()
            file["general.architecture"] = string(name)
            with self.subTest(name=name):
                self.refused(file, f"'{name}' is not supported", *words)
        for name, words in (
            ("v.blk.0.attn_q.weight", ["a vision tower"]),
            ("mm.input_projection.weight", ["a vision tower"]),
            ("blk.0.ffn_gate_exps.weight", ["experts"]),
            ("blk.0.ssm_conv1d.weight", ["delta nets"]),
            ("blk.0.attn_qkv.weight", ["q, k and v in one"]),
        ):
            file = self.fresh()
            file.tensors.append(gguf_edit.Tensor(name, [32], F32, bytes(128)))
            with self.subTest(name=name):
                self.refused(file, name, *words)

    def test_attention_scale(self):
        """Twice the scale is twice the queries, to the bit; 0 and the usual one change nothing."""
        file = self.fresh("llama-tiny-f32")
        before = self.logits(file).stdout
        head_dim = file.number("llama.embedding_length") / file.number("llama.attention.head_count")
        usual = struct.unpack("<f", struct.pack("<f", 1 / math.sqrt(head_dim)))[0]
        for value in (0.0, usual):
            file["llama.attention.scale"] = f32(value)
            self.assertEqual(self.logits(file).stdout, before)
        file["llama.attention.scale"] = f32(2 * usual)
        scaled = self.logits(file).stdout
        self.assertNotEqual(scaled, before)
        del file["llama.attention.scale"]
        for block in range(file.number("llama.block_count")):
            query = file.tensor(f"blk.{block}.attn_q.weight")
            floats = struct.unpack(f"<{len(query.data) // 4}f", query.data)
            query.data = struct.pack(f"<{len(floats)}f", *(2 * x for x in floats))
        self.assertEqual(self.logits(file).stdout, scaled)
        for value in (-1.0, math.nan, math.inf, 1e7):
            file["llama.attention.scale"] = f32(value)
            self.refused(file, "llama.attention.scale")

    def test_published(self):
        """Keys of ordinary published files, of converters and of who quantized them."""
        file = self.fresh()
        for key, value in {
            "general.type": string("model"),
            "general.basename": string("tiny"),
            "general.license": string("mit"),
            "general.base_model.count": u32(1),
            "general.base_model.0.name": string("Tiny"),
            "general.sampling.temp": f32(0.5),
            "llama.tensor_data_layout": string("Meta AI original pth"),
            "llama.rope.scaling.type": string("linear"),
            "llama.rope.scaling.factor": f32(1.0),
            "llama.rope.scaling.original_context_length": u32(64),
            "quantize.imatrix.file": string("a.dat"),
            "mradermacher.quantize_version": string("2"),
            "tokenizer.ggml.padding_token_id": u32(1),
            "llamas.foo": u32(1),
        }.items():
            file[key] = value
        self.silent(file)

    def test_unknown(self):
        """Keys and tensors that nobody has heard of: one line with their names; refused strictly."""
        file = self.fresh()
        file["llama.vortex"] = u32(1)
        file["llama.evil\x1b[2J\n"] = u32(1)
        file.tensors.append(gguf_edit.Tensor("extra.weight", [32], F32, bytes(128)))
        result = self.logits(file)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stdout.decode().split(), self.expected.split())
        lines = result.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        for word in ("edited.gguf", "left out", "key llama.vortex, key llama.evil?[2J?, tensor extra."):
            self.assertIn(word, lines[0])
        result = self.logits(file, "--strict")
        self.assert_one_line_error(result, contains=["strict: unknown key llama.vortex and 2 more"])
        unused = tern_json("inspect", self.path)["unused"]
        self.assertEqual(unused[0], "key llama.vortex")
        self.assertEqual(unused[2], "tensor extra.weight")
        for i in range(20):
            file[f"llama.more{i}"] = u32(i)
        lines = self.logits(file).stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("and 17 more", lines[0])

    # ---- tensors ----

    def test_fewer_blocks(self):
        """Blocks that are not counted would not run."""
        for preset in ("llama-tiny-q8_0", "bitnet-tiny"):
            file = self.fresh(preset)
            arch = file.text("general.architecture")
            self.assertEqual(file.number(f"{arch}.block_count"), 2)
            file[f"{arch}.block_count"] = u32(1)
            self.refused(file, "blk.1.", "is of block 1", "block_count is 1")

    def test_fewer_blocks_in_parts(self):
        """The remaining blocks are named even where they lie in another file."""
        whole = self.fresh()
        whole["llama.block_count"] = u32(1)
        first = [t for t in whole.tensors if not t.name.startswith("blk.1.")]
        second = [t for t in whole.tensors if t.name.startswith("blk.1.")]
        for i, (keys, tensors) in enumerate(((whole.keys, first), ([], second))):
            part = gguf_edit.Gguf(list(keys), tensors)
            part["split.no"] = u32(i)
            part["split.count"] = u32(2)
            path = self.folder / f"edited-{i + 1:05}-of-00002.gguf"
            path.write_bytes(part.to_bytes())
        result = tern("logits", "-m", path, "--tokens", 1)
        self.assert_one_line_error(result, contains=["blk.1.", "block_count is 1"])

    def test_tensors(self):
        """Tensors that have no place in the graph are named."""
        for name in (
            "output.bias",
            "output_norm.bias",
            "token_embd.bias",
            "token_embd_norm.weight",
            "rope_factors_long.weight",
            "position_embd.weight",
            "cls.weight",
            "blk.attn_q.weight",
            "blk.x.attn_q.weight",
            "blk.00.attn_q.weight",
            "blk.4294967296.attn_q.weight",
            "blk.2.attn_norm.weight",
            "blk.0.attn_q.weight.extra",
            "blk.2.attn_rot_embd",
        ):
            file = self.fresh()
            file.tensors.append(gguf_edit.Tensor(name, [96], F32, bytes(4 * 96)))
            with self.subTest(name=name):
                self.refused(file, name)
        file = self.fresh()
        file.tensors.append(gguf_edit.Tensor("blk.1.attn_rot_embd", [96], F32, bytes(4 * 96)))
        self.silent(file)

    def test_head_of_bitnet(self):
        """The embedding is the head; a head of its own is left out, silently if it is the same."""
        file = self.fresh("bitnet-tiny")
        before = self.logits(file, "--strict")
        embedding = file.tensor("token_embd.weight")
        head = gguf_edit.Tensor("output.weight", embedding.ne, embedding.kind, embedding.data)
        file.tensors.append(head)
        result = self.logits(file, "--strict")
        self.assertEqual((result.stdout, result.stderr), (before.stdout, b""))
        head.data = head.data[:-2] + b"\0\0" if head.data[-2:] != b"\0\0" else head.data[2:] + b"\1\1"
        result = self.logits(file)
        self.assertEqual(result.stdout, before.stdout)
        self.assertIn(b"left out: tensor output.weight", result.stderr)
        self.assert_one_line_error(self.logits(file, "--strict"), contains=["tensor output.weight"])


if __name__ == "__main__":
    common.main()
