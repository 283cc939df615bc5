# SPDX-License-Identifier: Apache-2.0
"""tern convert of Gemma 3: windows, bases, norms and divisors of its folders, in all their forms."""

import unittest

import common
from convert_case import LLAMA3, YARN, ConvertTest

try:
    import numpy as np
    from hf_folder import Folder, Stored
except ImportError:
    np = None


@unittest.skipUnless(np, "needs numpy and gguf")
class ConvertGemma(ConvertTest):
    def test_gemma(self):
        """Folders of Gemma 3 have windows, bases and norms, a divisor of scores, and a head that is not mentioned."""
        listed = ["sliding_attention", "sliding_attention", "full_attention"]
        new = {
            "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5e4},
            "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
        }
        for name, config in {
            "as it is": {},
            "wide heads, scores divided by another root": {"head_dim": 32, "query_pre_attn_scalar": 5},
            "linear scaling, of layers that see all": {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
            "a head of its own": {"tie_word_embeddings": False},
            "floats": {"dtype": "F32"},
            "every sixth layer": {"num_hidden_layers": 7, "sliding_window_pattern": None},
            "a newer name": {"num_hidden_layers": 3, "_sliding_window_pattern": 3, "sliding_window_pattern": 2},
            "a list counts more": {"num_hidden_layers": 3, "layer_types": listed},
            "newer rope": {"rope_parameters": new, "rope_local_base_freq": None, "rope_theta": None},
        }.items():
            with self.subTest(name):
                model = Folder(self.dir / "gemma", "Gemma3ForCausalLM", **config)
                model.config = {key: v for key, v in model.config.items() if v is not None}
                self.agree(model)
        norm = "model.layers.0.pre_feedforward_layernorm.weight"
        del model.tensors[norm]
        self.refused(model, norm, "missing")

    def test_gemma_refused(self):
        """Windows, bases and divisors that a folder cannot have are refused, each by its name."""
        rope = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}
        yarn = rope | {"sliding_attention": YARN | {"rope_theta": 1e4}}
        types = ["sliding_attention", "full_attention"]
        for change, words in (
            ({"sliding_window": None}, ["sliding_window", "missing"]),
            ({"sliding_window": 0}, ["sliding_window"]),
            ({"sliding_window_pattern": 0}, ["sliding_window_pattern"]),
            ({"layer_types": types[::-1]}, ["layer_types", "every so many"]),
            ({"layer_types": types * 2}, ["layer_types", "one a layer"]),
            ({"layer_types": ["chunked_attention", "full_attention"]}, ["layer_types"]),
            ({"rope_theta": None}, ["rope_theta", "missing"]),
            ({"rope_local_base_freq": None}, ["rope_local_base_freq", "missing"]),
            ({"rope_local_base_freq": 0.5}, ["rope_local_base_freq", "below 1"]),
            ({"rope_parameters": yarn}, ["rope_type", "yarn", "windowed"]),
            ({"rope_scaling": LLAMA3}, ["rope_type", "llama3"]),
            ({"query_pre_attn_scalar": None}, ["query_pre_attn_scalar", "missing"]),
            ({"query_pre_attn_scalar": 0}, ["query_pre_attn_scalar", "above 0"]),
            ({"hidden_activation": "gelu"}, ["hidden_activation", "gelu"]),
            ({"use_bidirectional_attention": True}, ["use_bidirectional_attention", "true"]),
            ({"final_logit_softcapping": 30.0}, ["final_logit_softcapping"]),
            ({"architectures": ["Gemma3ForConditionalGeneration"]}, ["Gemma3ForConditionalGeneration", "gemma3"]),
        ):
            with self.subTest(change=change):
                model = Folder(self.dir / "bad", "Gemma3ForCausalLM")
                model.config |= change
                self.refused(model, *words)


if __name__ == "__main__":
    common.main()
