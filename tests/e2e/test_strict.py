# SPDX-License-Identifier: Apache-2.0
"""--strict: nothing stands in for the thing that was asked for, and a stand-in is named before anything runs."""

import json
import resource
import subprocess
import tempfile
from pathlib import Path

import common
import gguf_edit
import weights
from common import tern, tern_text

KEYS = ["block_count", "embedding_length", "feed_forward_length", "attention.head_count"]
KEYS += ["attention.head_count_kv", "context_length", "attention.layer_norm_rms_epsilon"]
KEYS += ["rope.freq_base"]


class Strict(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.keep.name)
        cls.model = common.synth("bitnet-tiny", cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    def run_strictly(self, model, *options, **kwargs):
        return tern("run", "-m", model, "--tokens", "1,2", "-n", 2, "--strict", *options, **kwargs)

    def layouts_of(self, isa):
        """Layouts that have a kernel of the set, or of one that it contains."""
        within = weights.sets_within(isa)
        rows = json.loads(tern_text("kernels", "--json"))
        return {row["layout"] for row in rows if row["op"] == "gemv" and row["isa"] in within}

    def without(self, *keys, preset="bitnet-tiny"):
        """A copy of the model whose file lacks these keys."""
        file = gguf_edit.read(common.synth(preset, self.folder))
        for key in keys:
            del file[key]
        path = self.folder / "without.gguf"
        path.write_bytes(file.to_bytes())
        return path

    def test_sound(self):
        """The model runs on every instruction set, in every layout; the variable does the same."""
        for isa in common.runnable_isas():
            for layout in weights.TERNARY_LAYOUTS:
                result = self.run_strictly(self.model, "--isa", isa, "--layout", layout)
                if layout in self.layouts_of(isa):
                    self.assertEqual(result.returncode, 0, result.stderr)
                else:
                    self.assert_one_line_error(result, contains=[f"strict: no kernel of {isa} for gemv"])
        floats = common.synth("llama-tiny-f16", self.folder)
        run = ("run", "-m", floats, "--tokens", "1", "-n", 1)
        self.assertEqual(tern(*run).returncode, 0)
        for name in ("TERN_STRICT", "BITNET_STRICT_MODE"):
            result = tern(*run, env={name: "1"})
            self.assert_one_line_error(result, contains=["strict", "blk.0.attn_q.weight is f16"])

    def test_every_command(self):
        """Every command that runs a model runs it strictly, or says first that it would not."""
        floats = common.synth("llama-tiny-bf16", self.folder)
        text = self.folder / "text.txt"
        text.write_text("one two three four five six seven eight", encoding="utf-8")
        for words in (
            ["run", "--tokens", "1"],
            ["logits", "--tokens", "1"],
            ["bench", "-p", 4, "-n", 2],
            ["perplexity", "-f", text],
        ):
            result = tern(*words, "-m", floats, "--strict")
            self.assert_one_line_error(result, contains=["strict: tensor blk.0.attn_q.weight"])
        result = tern("inspect", floats, "--strict")
        self.assertEqual(result.returncode, 1)
        self.assertIn("strict: tensor blk.0.attn_q.weight", (result.stdout + result.stderr).decode())
        self.assertEqual(tern("inspect", floats).returncode, 0)

    def test_metadata(self):
        """A bitnet file that lacks a key gets the published model's value, but not strictly."""
        replaced = 0
        for key in KEYS:
            name = f"bitnet-b1.58.{key}"
            path = self.without(name)
            result = self.run_strictly(path)
            self.assertNotEqual(result.returncode, 0)
            if tern("run", "-m", path, "--tokens", "1,2", "-n", 2).returncode == 0:
                self.assert_one_line_error(result, contains=["strict: key", name])
                replaced += 1
        self.assertGreaterEqual(replaced, 3)  # the sizes of the small model are its own

    def test_pre_tokenizer(self):
        preset = "llama-tiny-q8_0"
        self.assertIn("tokenizer.ggml.pre", gguf_edit.read(common.synth(preset, self.folder)))
        path = self.without("tokenizer.ggml.pre", preset=preset)
        self.assertEqual(tern("run", "-m", path, "--tokens", 1, "-n", 1).returncode, 0)
        self.assert_one_line_error(
            self.run_strictly(path), contains=["strict", "names no pre-tokenizer, 'default'"]
        )
        self.assertEqual(self.run_strictly(path, "--pre", "gpt-2").returncode, 0)

    def test_longest_match(self):
        """A vocabulary with neither merges nor scores says too little about how to cut a text."""
        path = self.folder / "vocabulary.json"
        size = gguf_edit.vocabulary(self.model)
        path.write_text(json.dumps({f"t{i}": i for i in range(size)}), encoding="utf-8")
        options = ("--tokenizer", path)
        self.assertEqual(tern("run", "-m", self.model, "--tokens", 1, "-n", 1, *options).returncode, 0)
        result = self.run_strictly(self.model, *options)
        self.assert_one_line_error(result, contains=["strict", "neither merges nor scores"])

    def test_always_refused(self):
        """These are errors in any mode: an instruction set that is not here, unknown scaling of positions."""
        missing = "neon" if "sse41" in common.runnable_isas() else "avx512"
        for isa in (missing, "mmx"):
            self.assertEqual(self.run_strictly(self.model, "--isa", isa).returncode, 2)
            self.assertEqual(tern("run", "-m", self.model, "--tokens", 1, "--isa", isa).returncode, 2)
        file = gguf_edit.read(self.model)
        arch = file.text("general.architecture")
        file[f"{arch}.rope.scaling.type"] = gguf_edit.string("dynamic")
        file[f"{arch}.rope.scaling.factor"] = gguf_edit.f32(4.0)
        path = self.folder / "dynamic.gguf"
        path.write_bytes(file.to_bytes())
        for options in ((), ("--strict",)):
            result = tern("run", "-m", path, "--tokens", 1, *options)
            self.assert_one_line_error(result, contains=["rope scaling 'dynamic'"])

    def test_bytes_of_no_tensor(self):
        """Bytes between tensors and at the end are padding, or belong to somebody: strict mode refuses the latter."""
        for name in ("token_embd.weight", None):
            for more in (0, 32, 64, 245760):
                file = gguf_edit.read(self.model)
                tensor = file.tensor(name) if name else file.tensors[-1]
                tensor.data = bytes(tensor.data) + bytes(-len(tensor.data) % 32) + bytes(more)
                path = self.folder / "unclaimed.gguf"
                path.write_bytes(file.to_bytes())
                result = self.run_strictly(path)
                if more == 0:
                    self.assertEqual(result.returncode, 0, result.stderr)
                    continue
                self.assert_one_line_error(result, contains=["unclaimed.gguf: strict: ", f" bytes behind tensor {tensor.name} belong to none"])
                self.assertEqual(tern("run", "-m", path, "--tokens", "1,2", "-n", 2).returncode, 0)

    def test_own_choice(self):
        """Switching sets off is a choice, so nothing stands in for them."""
        sets = [name for name in common.runnable_isas() if name != "scalar"]
        for disabled in (sets, sets[-1:]):
            choice = ("--disable", ",".join(disabled)) if disabled else ()  # plain C alone has no set to switch off
            result = self.run_strictly(self.model, *choice)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_settings_of_other_programs(self):
        """They have no effect: a remark says so, or in strict mode an error where they ask for other arithmetic."""
        for option, value in (("--precision", "fp16"), ("-ngl", 9)):
            self.assertEqual(tern("run", "-m", self.model, "--tokens", 1, option, value).returncode, 0)
            result = self.run_strictly(self.model, option, value)
            self.assert_one_line_error(result, status=2, contains=["strict", "no effect"])
        for option, value in (("--precision", "auto"), ("--n-gpu-layers", 0), ("--device", "cpu")):
            self.assertEqual(self.run_strictly(self.model, option, value).returncode, 0)

    def test_threads(self):
        """Fewer threads than asked for are enough for other runs, but not for a strict one."""

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))

        command = common.command("run", "-m", self.model, "--tokens", "1", "-n", "1", "--threads")
        environment = common.clean_environment()

        def run(*words):
            return subprocess.run(
                [*command, *map(str, words)],
                env=environment,
                capture_output=True,
                preexec_fn=limit,
            )

        if run(1).returncode:
            self.skipTest("this build needs more address space")
        if run(1000).returncode:
            self.skipTest("a team this large is refused here")
        result = run(1000, "--strict")
        self.assert_one_line_error(result, contains=["strict: the system starts", "of 1000"])

    def test_receipt(self):
        """A receipt says that the run was strict, and that no weight became a float."""
        path = self.folder / "r.json"
        tern_text("run", "-m", self.model, "--tokens", "1,2", "-n", 2, "--strict", "--receipt", path)
        text = path.read_text(encoding="utf-8")
        self.assertIn('"strict": true', text)
        self.assertIn('"BITNET_STRICT_MODE": "1"', text)
        self.assertIn('"dequantized_rows": 0', text)
        self.assertEqual(tern("verify", path, "--replay", "--strict").returncode, 0)


if __name__ == "__main__":
    common.main()
