# SPDX-License-Identifier: Apache-2.0
"""tern convert of models with experts: a folder has them one by one, a file one tensor for all of a layer."""

import subprocess
import sys
import unittest

import common
import gguf_edit
from common import tern, tern_text
from convert_case import ConvertTest

try:
    import numpy as np
    from hf_folder import Folder, Stored
except ImportError:
    np = None

PACKED = {"quant_method": "bitnet"}

PEAK = """
import resource, subprocess, sys
subprocess.check_call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@unittest.skipUnless(np, "needs numpy and gguf")
class ConvertExperts(ConvertTest):
    def test_experts(self):
        """Experts that a folder has one by one are one tensor; the router's weights are normed where it says so."""
        for kind, config in (
            ("Qwen3MoeForCausalLM", {"head_dim": 32, "moe_intermediate_size": 48}),
            ("Qwen3MoeForCausalLM", {"moe_intermediate_size": 32, "norm_topk_prob": False}),
            ("Qwen3MoeForCausalLM", {"decoder_sparse_step": 1, "mlp_only_layers": [], "num_experts_per_tok": 6}),
            ("OlmoeForCausalLM", {"norm_topk_prob": False, "clip_qkv": None}),
            ("OlmoeForCausalLM", {"tie_word_embeddings": True, "num_experts": 1, "num_experts_per_tok": 1}),
        ):
            with self.subTest(kind=kind, config=config):
                self.agree(Folder(self.dir / "experts", kind, **config), files=3)
        model = Folder(self.dir / "experts", "OlmoeForCausalLM")
        del model.config["norm_topk_prob"]  # which then is false
        model.config["num_local_experts"] = model.config["num_experts"]  # newer folders' name
        out, said = self.agree(model)
        names = [f"model.layers.1.mlp.experts.{e}.up_proj.weight" for e in range(6)]
        expected = b"".join(model.tensors[name].array.tobytes() for name in names)
        seen = gguf_edit.read(out).tensor("blk.1.ffn_up_exps.weight")
        self.assertEqual((list(seen.ne)[:3], seen.data[: len(expected)]), ([64, 96, 6], expected))
        self.assertEqual(said["blk.1.ffn_up_exps.weight"]["outcome"], "lossless")

    def test_formats_of_experts(self):
        """Experts get the format that was asked for, as other matrices do; the router stays in its floats."""
        model = Folder(self.dir / "experts", "Qwen3MoeForCausalLM", moe_intermediate_size=96)
        plain, again = self.dir / "plain.gguf", self.dir / "again.gguf"
        self.agree(model)[0].rename(plain)
        for kind in ("q8_0", "q4_0"):
            out, said = self.convert(model, "--type", kind)
            self.assertEqual(said["blk.0.ffn_down_exps.weight"]["to"], kind)
            self.assertEqual(said["blk.0.ffn_gate_inp.weight"]["to"], "bf16")
            tern_text("quantize", plain, again, "--type", kind, "--force")
            tensors = [{t.name: t.data for t in gguf_edit.read(path).tensors} for path in (out, again)]
            self.assertEqual(*tensors)

    def test_memory_of_experts(self):
        """Experts leave memory one by one: the peak is far below the tensor that they make."""
        shape = {"hidden_size": 512, "intermediate_size": 512, "num_hidden_layers": 1, "num_experts": 64}
        model = Folder(self.dir / "large", "OlmoeForCausalLM", dtype="F16", **shape)
        out = self.dir / "large.gguf"
        # a process of its own: what a parent has in memory would count
        said = subprocess.check_output(
            [sys.executable, "-S", "-c", PEAK, *map(str, common.command("convert", model.write(), out, "--threads", "1"))]
        )
        peak = 1024 * int(said.split()[-1])
        print(f"peak {peak / 2**20:.0f} MiB, {out.stat().st_size / 2**20:.0f} MiB written", flush=True)
        self.assertLess(peak, 48 << 20)

    def test_refused_experts(self):
        one = "model.layers.1.mlp.experts.3.up_proj.weight"
        other = {"num_experts": 7, "num_experts_per_tok": 2}
        for kind, change, words in (
            ("Qwen3MoeForCausalLM", other, ["model.layers.0.mlp.gate.weight", "6 x 64", "7 x 64"]),
            ("Qwen3MoeForCausalLM", {"num_experts": 5}, ["mlp.gate.weight", "5 x 64"]),
            ("Qwen3MoeForCausalLM", {"num_experts": 1025}, ["num_experts", "is 1025, 1024 are the limit"]),
            ("Qwen3MoeForCausalLM", {"num_local_experts": 1025}, ["num_local_experts", "is 1025"]),
            ("Qwen3MoeForCausalLM", {"num_experts": 0}, ["num_experts", "from 1"]),
            ("Qwen3MoeForCausalLM", {"num_experts": None}, ["num_experts"]),
            ("Qwen3MoeForCausalLM", {"num_experts_per_tok": 7}, ["num_experts_per_tok", "is 7 of 6"]),
            ("Qwen3MoeForCausalLM", {"norm_topk_prob": 1}, ["norm_topk_prob", "neither"]),
            ("Qwen3MoeForCausalLM", {"decoder_sparse_step": 2}, ["decoder_sparse_step", "is 2"]),
            ("Qwen3MoeForCausalLM", {"mlp_only_layers": [0]}, ["mlp_only_layers"]),
            ("Qwen3MoeForCausalLM", {"moe_intermediate_size": 64}, ["experts.0.gate_proj", "96 x 64", "64 x 64"]),
            ("OlmoeForCausalLM", {"clip_qkv": 8.0}, ["clip_qkv", "is 8"]),
            ("OlmoeForCausalLM", {"quantization_config": PACKED}, ["quantization_config", "experts"]),
            ("LlamaForCausalLM", {"num_experts": 8}, ["num_experts", "is 8"]),
        ):
            with self.subTest(kind=kind, change=change):
                model = Folder(self.dir / "bad", kind)
                model.config |= change
                self.refused(model, *words)
        for change, words in (
            (None, ["is missing"]),
            (Stored(np.zeros((96, 63))), ["96 x 63", "96 x 64"]),
            (Stored(np.zeros((64, 96))), ["64 x 96"]),
            (Stored(np.zeros((96, 64)), "F32"), ["F32", "one type"]),
            (Stored(np.zeros((96, 64)), "I64"), ["I64", "floats"]),
            (Stored(np.full((96, 64), np.nan)), None),
        ):
            with self.subTest(words=words):
                model = Folder(self.dir / "bad", "Qwen3MoeForCausalLM")
                del model.tensors[one]
                if change is not None:
                    model.tensors[one] = change
                self.refused(model, *([one, *words] if words else ["blk.1.ffn_up_exps.weight", "not finite"]))
        model = Folder(self.dir / "bad", "OlmoeForCausalLM")
        model.tensors["model.layers.0.mlp.experts.6.up_proj.weight"] = Stored(np.zeros((96, 64)))
        self.refused(model, "experts.6.up_proj", "no place", "olmoe")
        result = tern("convert", model.path, self.dir / "x.gguf", "--ternarize")
        self.assert_one_line_error(result, contains=["--ternarize", "experts"])

    def test_many_experts_that_are_not_there(self):
        """A count that the files cannot fill takes only the memory that the files stand for."""
        model = Folder(self.dir / "bad", "OlmoeForCausalLM", num_experts=1, num_experts_per_tok=1)
        model.config["num_experts"] = 1024
        for n in range(2):
            model.tensors[f"model.layers.{n}.mlp.gate.weight"] = Stored(np.zeros((1024, 64)))
        self.refused(model, "fewer tensors than experts")


if __name__ == "__main__":
    common.main()
