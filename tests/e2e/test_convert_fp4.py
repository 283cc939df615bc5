# SPDX-License-Identifier: Apache-2.0
"""tern convert: folders in NVFP4, as modelopt and compressed-tensors make them. Codes and scales stay as they are, the
number of a whole matrix becomes its factor, and logits are those of the weights that they stand for."""

import unittest

import common
import gguf_edit
from common import comma, tern_text
from convert_case import TOKENS, ConvertTest

try:
    import hf_folder
    import numpy as np
    import tensors
    from hf_folder import MATRICES, Folder, Stored
except ImportError:
    np = None

NVFP4 = 40
LEVELS = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
MODELOPT = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}
PACKED = {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "ignore": ["lm_head"]}
SIZES = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 16}


def e4m3(codes):
    """The numbers that scales stand for, bit 7 left out."""
    exponent, fraction = codes >> 3 & 15, codes & 7
    return np.where(exponent > 0, (1 + fraction / 8) * 2.0 ** (exponent - 7.0), fraction / 8 * 2.0**-6)


class Fp4(Folder if np else object):
    """A folder whose matrices have random codes and scales; as floats until `quantize` is called."""

    def __init__(self, path, settings, kind="LlamaForCausalLM", also=(), **config):
        super().__init__(path, kind, dtype="F32", quantization_config=settings, **SIZES, **config)
        self.parts = {}  # by the matrix's name: codes [rows, columns], scales, the factor, that of its inputs
        for name in [n for n in self.tensors if n.split(".")[-2] in (*MATRICES, *also)]:
            rows, cols = self.tensors[name].shape
            codes = self.random.integers(0, 16, (rows, cols), dtype=np.uint8)
            scales = self.random.integers(0x30, 0x48, (rows, cols // 16), dtype=np.uint8)
            scales[0, :2] = 0, 5  # nothing, and a small one
            factor, inputs = np.float32(self.random.uniform(0.02, 0.05)), np.float32(self.random.uniform(0.5, 2.0))
            self.parts[name] = codes, scales, factor, inputs
            w = self.values(name) * np.float64(self.factor_of(name))
            self.tensors[name] = Stored(w, "F32")

    def packed(self):
        return self.config["quantization_config"]["quant_method"] != "modelopt"

    def factor_of(self, name):
        factor = self.parts[name][2]
        return np.float32(1) / (np.float32(1) / factor) if self.packed() else factor

    def values(self, name):
        codes, scales, *_ = self.parts[name]
        return np.array(LEVELS + [-x for x in LEVELS])[codes] * np.repeat(e4m3(scales), 16, axis=1)

    def quantize(self):
        for name, (codes, scales, factor, inputs) in self.parts.items():
            stem = name.removesuffix("weight")
            del self.tensors[name]
            pairs, beside = Stored(codes[:, ::2] | codes[:, 1::2] << 4, "U8"), Stored(scales, "F8_E4M3")
            self.tensors[stem + "weight_scale"] = beside
            if self.packed():
                numbers = {"weight_global_scale": 1 / factor, "input_global_scale": 1 / inputs}
                self.tensors[stem + "weight_packed"] = pairs
            else:
                numbers = {"weight_scale_2": factor, "input_scale": inputs}
                self.tensors[name] = pairs
            for end, value in numbers.items():
                self.tensors[stem + end] = Stored(np.reshape(np.float32(value), [1] if self.packed() else []), "F32")


@unittest.skipUnless(np, "needs numpy and gguf")
class ConvertFp4(ConvertTest):
    def check_matrix(self, file, name, expected, factors):
        """Values without the factor, bit for bit; their factors beside."""
        matrix = next(t for t in file.tensors if t.name == name)
        self.assertEqual(matrix.kind, NVFP4, name)
        raw = np.frombuffer(matrix.data, np.uint8)[: expected.size // 64 * 36]
        values = tensors.decode(tensors.NVFP4, raw, *expected.shape)
        np.testing.assert_array_equal(values, expected, name)
        beside = next(t for t in file.tensors if t.name == name.replace(".weight", ".scale"))
        np.testing.assert_array_equal(np.frombuffer(beside.data, np.float32)[: len(factors)], factors)
        self.assertEqual(beside.ne, [len(factors)])

    def agree(self, model, bound=1e-5):
        expected = model.logits(TOKENS)
        model.quantize()
        path, said = self.convert(model)
        out = self.dir / "logits.f32"
        options = ("--all", "--kv", "f32", "--act-prec", "fp32", "--output", out, "--force")
        tern_text("logits", "-m", path, "--tokens", comma(TOKENS), *options)
        seen = np.fromfile(out, "<f4").reshape(expected.shape).astype(np.float64)
        error = np.abs(seen - expected).max() / expected.std()
        print(f"{model.kind} {model.config['quantization_config']['quant_method']}: {error:.1e}", flush=True)
        self.assertLess(error, bound)
        self.assertTrue(all(t["outcome"] in ("copied", "lossless") for t in said.values()), said)
        return gguf_edit.read(path)

    def test_both_forms(self):
        """A class whose heads lie as in files, with a head in NVFP4, too; and numbers of a cache in few bits."""
        for settings in (MODELOPT, PACKED):
            model = Fp4(self.dir / "model", settings, "Qwen3ForCausalLM", also=("lm_head",))
            for end in ("k_proj.k_scale", "v_proj.v_scale"):
                model.tensors[f"model.layers.1.self_attn.{end}"] = Stored(np.float32(0.5), "F32")
            file = self.agree(model)
            for hf, name in (("mlp.down_proj", "ffn_down"), ("self_attn.q_proj", "attn_q")):
                hf = f"model.layers.1.{hf}.weight"
                self.check_matrix(file, f"blk.1.{name}.weight", model.values(hf), [model.factor_of(hf)])
            self.check_matrix(file, "output.weight", model.values("lm_head.weight"), [model.factor_of("lm_head.weight")])
            beside = next(t for t in file.tensors if t.name == "blk.1.ffn_down.input_scale")
            inputs = model.parts["model.layers.1.mlp.down_proj.weight"][3]
            np.testing.assert_allclose(np.frombuffer(beside.data, np.float32)[:1], [inputs], rtol=1e-6)

    def test_turned_heads(self):
        """Rows of queries and keys change their order with their scales."""
        for settings in (MODELOPT, PACKED):
            self.agree(Fp4(self.dir / "model", settings))

    def test_joined(self):
        self.agree(Fp4(self.dir / "model", MODELOPT, "Phi3ForCausalLM", also=("qkv_proj", "gate_up_proj")))

    def test_experts(self):
        """Each has a factor of its own."""
        for settings in (MODELOPT, PACKED):
            model = Fp4(self.dir / "model", settings, "Qwen3MoeForCausalLM", moe_intermediate_size=64)
            names = [f"model.layers.0.mlp.experts.{e}.up_proj.weight" for e in range(6)]
            values = np.concatenate([model.values(n) for n in names])
            model.quantize()
            file = gguf_edit.read(self.convert(model)[0])
            self.check_matrix(file, "blk.0.ffn_up_exps.weight", values, [model.factor_of(n) for n in names])

    def test_other_types(self):
        """Of the values without the factor, which stays beside them."""
        model = Fp4(self.dir / "model", MODELOPT, "Qwen3ForCausalLM")
        model.quantize()
        file = gguf_edit.read(self.convert(model, "--type", "f16")[0])
        hf = "model.layers.0.mlp.up_proj.weight"
        matrix = next(t for t in file.tensors if t.name == "blk.0.ffn_up.weight")
        np.testing.assert_array_equal(np.frombuffer(matrix.data, np.float16), model.values(hf).ravel().astype(np.float16))
        self.assertIn("blk.0.ffn_up.scale", [t.name for t in file.tensors])

    def test_refused(self):
        at = "model.layers.1.mlp.up_proj."
        wrong = np.full((128, 4), 0x38, np.uint8)
        wrong[3, 2] = 0x7F
        for change, *words in (
            ({"weight_scale_2": None}, "up_proj.weight"),
            ({"weight_scale": None}, "no scales"),
            ({"weight_scale": Stored(wrong, "F8_E4M3")}, "0x7f in byte 14", "not a number"),
            ({"weight_scale": Stored(wrong[:, :3], "F8_E4M3")}, "128 x 3", "128 x 4"),
            ({"weight_scale": Stored(wrong, "U8")}, "U8", "F8_E4M3"),
            ({"weight_scale_2": Stored(np.float32(0), "F32")}, "weight_scale_2 is 0"),
            ({"weight_scale_2": Stored(np.ones(2), "F32")}, "one F32"),
            ({"pre_quant_scale": Stored(np.ones(64), "F32")}, "pre_quant_scale", "no place"),
        ):
            with self.subTest(words=words):
                model = Fp4(self.dir / "model", MODELOPT)
                model.quantize()
                for end, tensor in change.items():
                    model.tensors.pop(at + end, None)
                    if tensor is not None:
                        model.tensors[at + end] = tensor
                self.refused(model, *words)
        model = Fp4(self.dir / "model", MODELOPT, num_attention_heads=2)
        model.quantize()
        self.refused(model, "32 columns cannot be cut into blocks of 64")


if __name__ == "__main__":
    common.main()
