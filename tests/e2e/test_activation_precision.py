# SPDX-License-Identifier: Apache-2.0
"""--activation-precision: one answer each, recorded, and kept apart; ternary models keep int8."""

import json
import tempfile
from pathlib import Path

import common
import weights
from common import SMALL_MODEL, comma, tern, tern_json, tern_text
from serving import Server

PRECISIONS = ("int8", "fp8", "fp8-e5m2", "fp16", "bf16", "fp32")
TOKENS = "5,17,30,2,2,33,71,8,9,10,11"
BLOCKS = (*weights.PLAIN, "q4_k", "q5_k", "q6_k")


def digest(model, precision, *options):
    asked = () if precision is None else ("--act-prec", precision)
    where = ("-m", model, "--tokens", TOKENS, "--all", "--sha256")
    return tern_text("logits", *where, *asked, *options)


class Precisions(common.TernTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.blocks = common.synth("llama-tiny-q4_k", cls.folder)
        cls.floats = common.synth("llama-tiny-f16", cls.folder)
        cls.ternary = common.synth("bitnet-tiny", cls.folder)

    def test_one_answer_each(self):
        """Each precision has one answer, whatever computes it, and the answers differ."""
        for model in (self.blocks, self.floats):
            seen = {precision: digest(model, precision) for precision in PRECISIONS}
            self.assertEqual(len(set(seen.values())), len(PRECISIONS))
            for isa in common.runnable_isas():
                for precision in PRECISIONS:
                    how = ("--isa", isa, "--threads", 3, "--batch", 3, "--split", 4)
                    self.assertEqual(digest(model, precision, *how), seen[precision], (precision, isa))

    def test_what_changes_nothing(self):
        """int8 with blocks, and fp32 with floats, give the answer without the option."""
        for model, same in ((self.blocks, "int8"), (self.floats, "fp32")):
            plain = digest(model, None)
            self.assertEqual(digest(model, "auto"), plain)
            self.assertEqual(digest(model, same), plain)
            self.assertNotIn("activations", tern_json("inspect", "-m", model, "--act-prec", same))

    def test_the_tuner_is_not_asked(self):
        """It measures products over packed weights, which differ from those over decoded ones."""
        where = ("-m", self.blocks, "--tokens", TOKENS, "--all", "--sha256", "--act-prec", "fp16")
        tuned = ("--cache-dir", self.folder / "cache")
        plain = digest(self.blocks, "fp16")
        self.assertEqual(tern_text("logits", *where, *tuned, env={"TERN_NO_TUNE": "0"}), plain)

    def test_decoded_weights(self):
        """Blocks that meet floats give the bits of a float model with the decoded weights."""
        source = common.synth("llama-tiny-f16", self.folder)
        for kind in BLOCKS:
            packed, wide = self.folder / f"{kind}.gguf", self.folder / f"{kind}-f32.gguf"
            tern_text("quantize", source, packed, "--type", kind)
            types = ("--type", "f32", "--embedding-type", "f32", "--output-type", "f32")
            tern_text("quantize", packed, wide, *types)
            for precision in ("fp8", "fp32"):
                self.assertEqual(digest(packed, precision), digest(wide, precision), (kind, precision))

    def test_int4(self):
        """An IEBIN folder with int4 matrices, in groups and affine, against its own floats."""
        for options in (("--int4-group", 32), ("--int4-group", "row", "--int4-zero-points")):
            packed = self.folder / f"int4-{options[1]}"
            wide = self.folder / f"int4-{options[1]}.gguf"
            tern_text("quantize", self.floats, packed, "--type", "int4", "--to", "iebin", *options)
            types = ("--type", "f32", "--embedding-type", "f32", "--output-type", "f32")
            tern_text("quantize", packed, wide, *types)
            for precision in ("bf16", "fp32"):
                self.assertEqual(digest(packed, precision), digest(wide, precision), options)

    def test_ternary_keeps_int8(self):
        plain = digest(self.ternary, None)
        for precision in PRECISIONS:
            where = ("-m", self.ternary, "--tokens", TOKENS, "--all", "--sha256")
            result = tern("logits", *where, "--act-prec", precision)
            self.assertEqual(result.stdout.decode(), plain)
            said = b"" if precision == "int8" else b"int8 activations, which are kept"
            self.assertEqual(result.stderr.count(b"\n"), 1 if said else 0)
            self.assertIn(said, result.stderr)
        strictly = tern("run", "-m", self.ternary, "--tokens", 1, "--strict", "--act-prec", "fp8")
        self.assert_one_line_error(strictly, contains=["strict", "int8 activations, which are kept"])

    def test_hints_of_the_environment(self):
        """They are followed where possible; else a line says so, and the answer stays the same, in strict mode too."""
        lookup = common.synth("llama-tiny-iq2_s", self.folder)
        for model, name, value, why in (
            (self.ternary, "IE_ACT_PREC", "fp8", "int8 activations, which are kept"),
            (self.ternary, "IE_PRECISION", "fp32", "int8 activations, which are kept"),
            (self.ternary, "TERN_ACTIVATION_PRECISION", "bf16", "int8 activations, which are kept"),
            (lookup, "IE_ACT_PREC", "fp16", "int8 activations only, not with fp16"),
            (self.ternary, "IE_PRECISION", "int4w", "the model's file decides"),
        ):
            for more in ((), ("--strict",)):
                with self.subTest(model=model.name, name=name, value=value, more=more):
                    run = ("run", "-m", model, "--tokens", TOKENS, "-n", 4, "--ignore-eos", *more)
                    plain, hinted = tern(*run), tern(*run, env={name: value})
                    self.assertEqual((plain.returncode, hinted.returncode), (0, 0), hinted.stderr)
                    self.assertEqual(hinted.stdout, plain.stdout)
                    self.assertEqual(len(hinted.stderr.splitlines()), 1, hinted.stderr)
                    self.assertIn(why, hinted.stderr.decode())
                    self.assertNotIn("activations", tern_json(*run, env={name: value}))
        for model, value in ((lookup, "fp16"), (self.ternary, "fp8")):
            flag = tern("run", "-m", model, "--tokens", 1, "--strict", "--act-prec", value)
            self.assert_one_line_error(flag, contains=["int8 activations"])

    def test_other_faults_are_told(self):
        """A hint does not hide another fault of a model."""
        for model, words in ((self.folder / "none.gguf", "No such file"), (self.floats, "strict")):
            result = tern("run", "-m", model, "--tokens", 1, "--strict", env={"IE_ACT_PREC": "int8"})
            self.assert_one_line_error(result, contains=[words])

    def test_float_path(self):
        """PRECISION=fp32, in each of its names, is the answer of --act-prec fp32; nothing else of its values is."""
        expected, plain = digest(self.blocks, "fp32"), digest(self.blocks, None)
        where = ("logits", "-m", self.blocks, "--tokens", TOKENS, "--all", "--sha256")
        self.assertEqual(tern_text(*where, "--precision", "fp32"), expected)
        for name in ("PRECISION", "IE_PRECISION", "TERN_PRECISION"):
            self.assertEqual(tern_text(*where, env={name: "fp32"}), expected)
            self.assertEqual(tern_text(*where, env={name: "int4w"}), plain)
        self.assertEqual(tern_text(*where, env={"IE_PRECISION": "fp32", "IE_ACT_PREC": "fp8"}), digest(self.blocks, "fp8"))
        run = ("run", "-m", self.blocks, "--tokens", TOKENS, "-n", 2, "--strict")
        self.assertEqual(tern_json(*run, env={"PRECISION": "fp32"})["activations"], "fp32")

    def test_refusals(self):
        model = common.synth("llama-tiny-iq2_s", self.folder)
        result = tern("run", "-m", model, "--tokens", 1, "--act-prec", "fp16")
        self.assert_one_line_error(result, contains=["iq2_s", "int8 activations only", "fp16"])
        self.assertEqual(digest(model, "int8"), digest(model, None))
        result = tern("run", "-m", model, "--tokens", 1, "--act-prec", "fp4")
        self.assert_one_line_error(result, status=2, contains=["wants one of", "fp8-e5m2"])

    def test_what_is_said(self):
        answer = tern("run", "-m", self.blocks, "--tokens", 1, "-n", 1, "-v", env={"IE_ACT_PREC": "bf16"})
        self.assertIn(b"activations: float, precision bf16", answer.stderr)
        said = tern_json("inspect", "-m", self.blocks, "--act-prec", "fp8")
        self.assertEqual((said["activations"], said["activation_forms"]), ("fp8", "float"))
        self.assertTrue(any(name.startswith("tern_round_fp8_") for name in said["kernels"]))
        self.assertEqual(tern_json("inspect", "-m", self.blocks)["activation_forms"], "int8 blocks")
        self.assertEqual(tern_json("inspect", "-m", self.ternary)["activation_forms"], "int8, float")
        self.assertIn("precision fp8", tern_text("inspect", "-m", self.blocks, "--act-prec", "fp8"))

    def test_other_commands(self):
        """Generation, perplexity and benchmarks compute with it; so does each instruction set."""
        text = self.folder / "text.txt"
        text.write_text("Once upon a time there was a girl who found a box in the garden. " * 4)
        figures = {
            tern_json("perplexity", "-m", self.blocks, "-f", text, "-c", 64, "--act-prec", precision)["perplexity"]
            for precision in ("auto", "fp8", "fp8-e5m2")
        }
        self.assertEqual(len(figures), 3)
        found = tern_json("bench", "-m", self.blocks, "--prompt-tokens", 4, "-n", 2, "--act-prec", "fp8")
        self.assertTrue(any(name.startswith("tern_round_fp8_") for name in found["kernels"]))
        determined = tern_text("verify-determinism", "-m", self.blocks, "--act-prec", "fp8")
        self.assertIn("one answer", determined)

    def test_sessions(self):
        """A session file goes on only with its own precision."""
        file = self.folder / "a.session"
        for precision in ("fp8", "fp8"):
            options = ("--tokens", TOKENS, "-n", 2, "--prompt-cache", file, "--act-prec", precision)
            answer = tern_json("run", "-m", self.blocks, "--ignore-eos", *options)
        self.assertEqual(answer["reused_tokens"], 10)
        words = ("run", "-m", self.blocks, "--tokens", TOKENS, "-n", 2, "--prompt-cache", file)
        self.assert_one_line_error(tern(*words), contains=["activations in fp8, this session in auto"])
        result = tern(*words, "--act-prec", "fp16")
        self.assert_one_line_error(result, contains=["activations in fp8, this session in fp16"])

    def test_receipts(self):
        """The precision is recorded, and a replay uses the recorded one; a changed one is found."""
        path, plain = self.folder / "fp8.json", self.folder / "plain.json"
        words = ("run", "-m", SMALL_MODEL, "--tokens", comma(range(10, 20)), "-n", 6, "--ignore-eos")
        tern_text(*words, "--receipt", plain)
        self.assertNotIn("activations", json.loads(plain.read_text())["run"])
        words = ("run", "-m", self.blocks, "--tokens", TOKENS, "-n", 6, "--ignore-eos")
        tern_text(*words, "--act-prec", "fp8", "--receipt", path)
        receipt = json.loads(path.read_text())
        self.assertEqual(receipt["run"]["activations"], "fp8")
        self.assertIn("the same bits", tern_text("verify", path, "--replay", "--isa", "scalar"))


class Serving(common.TernTest):
    def test_fingerprint(self):
        """Answers of one precision have a fingerprint of their own."""
        seen = set()
        with tempfile.TemporaryDirectory() as folder:
            model = common.synth("llama-tiny-q4_0", folder)
            for precision in ("auto", "int8", "fp8", "bf16"):
                with Server("-m", model, "--act-prec", precision) as server:
                    seen.add(server.get("/props").json()["system_fingerprint"])
        self.assertEqual(len(seen), 3)


if __name__ == "__main__":
    common.main()
