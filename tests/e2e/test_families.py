# SPDX-License-Identifier: Apache-2.0
"""What single families of models have in their files: values that make no sense are refused in one line."""

import math
import tempfile
import unittest
from pathlib import Path

import common
from common import tern

try:
    import gguf_edit
    from gguf_edit import f32, u32
except ImportError:
    gguf_edit = None


@unittest.skipUnless(gguf_edit, "needs gguf")
class Families(common.TernTest):
    def setUp(self):
        self.keep = tempfile.TemporaryDirectory()
        self.folder = Path(self.keep.name)

    def tearDown(self):
        self.keep.cleanup()

    def fresh(self, preset):
        return gguf_edit.read(common.synth(preset, self.folder))

    def refused(self, file, *words):
        path = self.folder / "edited.gguf"
        path.write_bytes(file.to_bytes())
        self.assert_one_line_error(tern("logits", "-m", path, "--tokens", "1,2,3"), contains=["edited.gguf", *words])

    def test_keys_of_families(self):
        """Keys that one family has: hostile values, and the key in other families, are refused by their name."""
        nan, cap = f32(math.nan), f32(101.0)
        for preset, name, value, words in (
            ("exaone4-tiny", "attention.sliding_window", u32(0), "is 0"),
            ("exaone4-tiny", "attention.sliding_window_pattern", u32(0), "is 0"),
            ("cohere2-tiny", "logit_scale", nan, "is nan"),
            ("cohere2-tiny", "logit_scale", f32(0.0), "is 0"),
            ("cohere2-tiny", "attention.layer_norm_epsilon", nan, "is nan"),
            ("cohere2-tiny", "attention.sliding_window", u32(0), "is 0"),
            ("llama-tiny-q8_0", "logit_scale", f32(0.5), "a factor of logits"),
            ("gemma2-tiny", "attn_logit_softcapping", nan, "is nan"),
            ("gemma2-tiny", "attn_logit_softcapping", f32(-1.0), "is -1"),
            ("gemma2-tiny", "final_logit_softcapping", f32(math.inf), "is inf"),
            ("gemma2-tiny", "attention.sliding_window", u32(0), "is 0"),
            ("gemma3-tiny", "final_logit_softcapping", f32(30.0), "a soft bound of logits"),
            ("llama-tiny-q8_0", "attn_logit_softcapping", f32(50.0), "a soft bound of attention"),
            ("qwen2moe-tiny", "expert_shared_feed_forward_length", u32(0), "is 0"),
            ("qwen2moe-tiny", "expert_shared_count", u32(2), "several experts"),
            ("qwen3moe-tiny", "expert_shared_count", u32(1), "experts"),
            ("glm4-tiny", "rope.dimension_count", u32(34), "34"),
            ("mistral3-tiny", "attention.temperature_scale", nan, "is nan"),
            ("mistral3-tiny", "attention.temperature_scale", f32(-0.1), "is -0.1"),
            ("mistral3-tiny", "attention.temperature_scale", cap, "is 101"),
            ("mistral3-tiny", "rope.scaling.yarn_log_multiplier", nan, "is nan"),
            ("mistral3-tiny", "rope.scaling.original_context_length", u32(0), "is 0"),
            ("mistral3-tiny", "attention.temperature_length", u32(9), "a temperature of attention"),
            ("llama-tiny-q8_0", "attention.temperature_scale", f32(0.1), "a temperature of attention"),
            ("llama-tiny-q8_0", "rope.scaling.yarn_log_multiplier", f32(1.0), "another attention factor"),
        ):
            file = self.fresh(preset)
            key = f"{file.text('general.architecture')}.{name}"
            file[key] = value
            with self.subTest(key=key, value=value):
                self.refused(file, key if name != "rope.dimension_count" else "rope dimension count", words)
        file = self.fresh("mistral3-tiny")
        file["mistral3.rope.dimension_count"] = u32(8)
        self.refused(file, "mistral3.attention.temperature_scale", "only 8 of 32 dimensions")


if __name__ == "__main__":
    common.main()
