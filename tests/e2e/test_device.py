# SPDX-License-Identifier: Apache-2.0
"""tern --device cuda: whole models on another device give the bits of the processor. The device is the
emulated one (tests/cuda); with TERN_TEST_DEVICE=required it is a real one."""

import json
import os
import struct
import sys
import unittest
from pathlib import Path

import common
import gguf_edit
import serving
import suite
import weights
from common import comma, prompt, synth, tern, tern_json, tern_text

sys.path.insert(0, str(common.ROOT / "lab"))
import figure_rules  # noqa: E402

REAL = os.environ.get("TERN_TEST_DEVICE") == "required"
RUNS = (
    "bitnet-tiny", "bitnet-tiny-odd", *(f"llama-tiny-{name}" for name in weights.PLAIN),
    "qwen2-tiny", "qwen3-tiny", "phi3-tiny", "olmo2-tiny", "minicpm-tiny", "mistral-tiny", "gemma3-tiny",
    "falcon3-tiny", "falcon-e-tiny", *common.FLOATS,
    "llama-tiny-q4_k", "llama-tiny-q2_k", "llama-tiny-q3_k", "llama-tiny-iq2_s", "llama-tiny-iq3_s", "llama-tiny-nvfp4",
)  # fmt: skip
REFUSED = {
    "bitnet-tiny-tq1_0": "cuda has no kernel for embed of tq2_0, which the embedding needs",
    "olmoe-tiny": "cuda does not run models with experts: leave --device out",
    "bonsai2-tiny": "cuda does not run models with Hadamard transforms: leave --device out",
}


def module():
    """The emulated module of this build; none for a real device."""
    path = Path(common.command()[0]).parent / "tests" / "cuda" / "libtern_cuda_emulated.so"
    return {} if REAL else {"TERN_CUDA_MODULE": str(path)}


def setUpModule():
    if not REAL and not Path(module()["TERN_CUDA_MODULE"]).exists():
        raise unittest.SkipTest("this build has no emulated module")


CUDA = ("--device", "cuda")


class Device(common.FolderTest):
    def model(self, preset):
        return synth(preset, self.dir)

    def logits(self, model, *options):
        tokens = comma(prompt(24, 200))
        return tern_text("logits", "-m", model, "--tokens", tokens, "--sha256", *options, env=module())

    def refused(self, *args, contains, status=1):
        self.assert_one_line_error(tern(*args, *CUDA, env=module()), status=status, contains=contains)

    def test_same_bits(self):
        """Compares logits of architectures and formats for which the device has kernels, half of them each day."""
        for preset in suite.of_the_day(RUNS):
            with self.subTest(preset=preset):
                model = self.model(preset)
                self.assertEqual(self.logits(model, *CUDA), self.logits(model))

    def test_settings(self):
        """Layouts, caches, batches, activations: each with its own bits, the same on both."""
        cases = (
            ("bitnet-tiny", ("--layout", "t5r16")),
            ("bitnet-tiny", ("--batch", 4)),
            ("bitnet-tiny", ("--kv", "f32")),
            ("llama-tiny-f16", ("--activation-precision", "bf16")),
            ("mistral-tiny", ("--batch", 7, "--kv", "f32")),
        )
        for preset, options in cases:
            with self.subTest(preset=preset, options=options):
                model = self.model(preset)
                self.assertEqual(self.logits(model, *CUDA, *options), self.logits(model, *options))

    def test_answers(self):
        """Tokens drawn and guessed ahead: passes of one row and of several, again and again."""
        model = common.small_model()
        for options in (("-n", 20), ("-n", 12, "--no-draft"), ("-n", 12, "--temp", 0.9, "--seed", 3)):
            with self.subTest(options=options):
                run = ("run", "-m", model, "-p", "Once upon a time", *options)
                plain = tern_json(*run)
                there = tern_json(*run, *CUDA, env=module())
                self.assertEqual(there["text"], plain["text"])
                self.assertTrue(all(name.endswith("_cuda") for name in there["kernels"]), there["kernels"])

    def test_together(self):
        """Sequences that share passes and pages."""
        file = self.dir / "prompts.txt"
        file.write_text("Once upon a time\nOnce upon a time there\nQ: What is 2+2? A:\n")
        run = ("run", "-m", common.small_model(), "--prompts-file", file, "-n", 6, "--json")
        answers = [
            [json.loads(line).get("text") for line in tern_text(*run, *device, env=module()).splitlines()]
            for device in ((), CUDA)
        ]
        self.assertEqual(*answers)

    def test_sessions(self):
        """A session that began on one goes on at the other."""
        run = ("run", "-m", common.small_model(), "--ignore-eos", "--tokens")
        start = comma(range(10, 80))  # more than a page
        for first, second in ((CUDA, ()), ((), CUDA), (CUDA, CUDA)):
            with self.subTest(first=first, second=second):
                file = self.dir / "story.session"
                file.unlink(missing_ok=True)
                begun = tern_json(*run, start, "-n", 3, "--prompt-cache", file, *first, env=module())
                longer = f"{start},{comma(begun['tokens'])},7"
                rest = tern_json(*run, longer, "-n", 4, "--prompt-cache", file, *second, env=module())
                self.assertGreater(rest["reused_tokens"], 70)
                self.assertEqual(rest["tokens"], tern_json(*run, longer, "-n", 4)["tokens"])

    def test_overflow(self):
        """The device notices numbers that grow too large, too, with the same message."""
        file = gguf_edit.read(self.model("llama-tiny-f32"))
        norm = file.tensor("blk.1.attn_norm.weight")
        norm.data = struct.pack("<f", 3e38) * (len(norm.data) // 4)
        loud = self.dir / "loud.gguf"
        loud.write_bytes(file.to_bytes())
        said = [tern("logits", "-m", loud, "--tokens", "1,2,3", *d, env=module()) for d in ((), CUDA)]
        self.assertEqual(said[0].returncode, 1)
        self.assertIn(b"overflow", said[0].stderr)
        self.assertEqual(said[1].stderr, said[0].stderr)
        prompts = self.dir / "loud.txt"
        prompts.write_text("a\nb\n")
        run = ("run", "-m", loud, "--prompts-file", prompts, "-n", 2, "--json")
        lines = [[json.loads(line) for line in tern(*run, *d, env=module()).stdout.splitlines()] for d in ((), CUDA)]
        for here, there in zip(*lines):  # of each sequence, and of all
            self.assertEqual(there.get("error"), here.get("error"))
            self.assertEqual(there.get("failed"), here.get("failed"))
        self.assertEqual(lines[1][-1]["failed"], 2)

    def test_refused(self):
        """The device lacks kernels for these: one line names the tensor or the step."""
        for preset, text in REFUSED.items():
            with self.subTest(preset=preset):
                self.refused("logits", "-m", self.model(preset), "--tokens", "1,2", contains=[text])
        model = self.model("bitnet-tiny")
        self.refused(
            "logits", "-m", model, "--tokens", 1, "--kv", "int8", contains=["no kernel for attend of q8_0", "a cache"]
        )
        self.refused("logits", "-m", model, "--tokens", 1, "--layout", "tl1r16", contains=["gemv of i2_s"])
        receipt = ("--receipt", self.dir / "receipt.json")
        self.refused("run", "-m", model, "--tokens", 1, "-n", 1, *receipt, status=2, contains=["--receipt"])
        self.assertFalse((self.dir / "receipt.json").exists())
        self.refused("bench", "-m", model, "-p", 2, "-n", 2, "--stages", status=2, contains=["--stages"])
        self.refused("bench", "-m", model, "-p", 2, "-n", 2, "-r", 1, "--sparsity", contains=["cannot be looked at"])

    def test_auto(self):
        """The device runs where it works for the model, else the processor; --verbose says which."""
        cases = (("bitnet-tiny", module(), "device: "), ("bitnet-tiny-tq1_0", module(), "no kernel for embed of tq2_0"))
        nowhere = {"TERN_CUDA_MODULE": str(self.dir / "none.so")}
        for preset, env, text in (*cases, ("bitnet-tiny", nowhere, "none.so")):
            with self.subTest(preset=preset, text=text):
                run = ("run", "-m", self.model(preset), "--tokens", "1,2,3", "-n", 3)
                result = tern(*run, "--device", "auto", "--verbose", env=env)
                self.assertEqual(result.stdout.decode(), tern_text(*run))
                self.assertIn(text, result.stderr.decode())
        self.assert_one_line_error(
            tern("logits", "-m", self.model("bitnet-tiny"), "--tokens", 1, *CUDA, env=nowhere), contains=["none.so"]
        )

    def test_bench_record(self):
        """Its kernels and its device stand in the document, which is checked."""
        file = self.dir / "bench.json"
        bench = ("bench", "-m", self.model("bitnet-tiny"), "-p", 4, "-n", 4, "-r", 1, "--record", file)
        text = tern_text(*bench, *CUDA, env=module())
        document = json.loads(file.read_text())
        self.assertEqual(document["backend"], "cuda")
        self.assertIn(document["run"]["device"], text)
        self.assertTrue(all(name.endswith("_cuda") for name in document["kernels"]), document["kernels"])
        self.assertEqual(document["benchmark"]["read_gbs"], 0)
        self.assertEqual(figure_rules.check(document)[1], [])
        wrong = (
            ("backend", "cpu", 'needs cuda, but backend is "cpu"'),
            ("kernels", ["tern_add_scalar"], 'backend: is "cuda", but "tern_add_scalar" is a kernel of the processor'),
        )
        for key, value, text in wrong:
            self.assertIn(text, "\n".join(figure_rules.check(document | {key: value})[1]))

    def test_determinism(self):
        """The command that compares everything treats the device as one more set."""
        file = gguf_edit.read(self.model("bitnet-tiny"))
        file["bitnet-b1.58.context_length"] = gguf_edit.u32(4)  # as many tokens are compared
        short = self.dir / "short.gguf"
        short.write_bytes(file.to_bytes())
        run = ("verify-determinism", "-m", short)
        lines = tern_text(*run, *CUDA, env=module()).splitlines()
        self.assertEqual([line.split()[:2] for line in lines[-3:-1]], [["cuda", "t2r16"], ["cuda", "t5r16"]])
        nowhere = {"TERN_CUDA_MODULE": str(self.dir / "none.so")}
        self.assertIn("one answer", tern_text(*run, "--device", "auto", env=nowhere))
        self.assertEqual(tern(*run, *CUDA, env=nowhere).returncode, 1)

    def test_untuned(self):
        """The tuner's choices are the processor's: a layout that is the fastest there may have no kernels here."""
        model, tuned = self.model("bitnet-tiny"), {"TERN_NO_TUNE": "0"}
        run = ("run", "-m", model, "--tokens", "1,2,3", "-n", 2, "--threads", 1, "--json", "--cache", self.dir / "cache")
        tern_text("tune", "-m", model, "--threads", 1, "--cache", self.dir / "cache", env=tuned)
        before = tern_json(*run, env=tuned)
        self.assertEqual(before["choice"], "tuned")
        there = tern_json(*run, *CUDA, env=module() | tuned)
        self.assertEqual(there["choice"], "table")
        self.assertEqual(there["tokens"], before["tokens"])

    def test_served(self):
        with serving.Server("-m", common.small_model(), *CUDA, env=module()) as server:
            reply = server.complete("Once upon a time", max_tokens=5, temperature=0)
            answer = reply.json()["choices"][0]["text"]
        run = ("run", "-m", common.small_model(), "-p", "Once upon a time", "-n", 5)
        self.assertEqual(answer, tern_json(*run)["text"])


if __name__ == "__main__":
    common.main()
