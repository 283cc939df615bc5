# SPDX-License-Identifier: Apache-2.0
"""Tests of folders that tern convert reads share these checks: logits beside the oracle's, and refusals."""

import common
from common import comma, tern, tern_json, tern_text

try:
    import numpy as np
except ImportError:
    np = None

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
TOKENS = [5, 17, 90, 2, 2, 33, 71, 8, 60, 41, 12, 96, 3, 55]


class ConvertTest(common.FolderTest):
    def convert(self, model, *options, files=1):
        out = self.dir / "out.gguf"
        said = tern_json("convert", model.write(files), out, *options, "--force")
        return out, {t["name"]: t for t in said["tensors"]}

    def logits(self, path, vocabulary=97):
        out = self.dir / "logits.f32"
        options = ("--all", "--kv", "f32", "--output", out, "--force")
        tern_text("logits", "-m", path, "--tokens", comma(TOKENS), *options)
        return np.fromfile(out, "<f4").reshape(-1, vocabulary).astype(np.float64)

    def agree(self, model, *options, bound=1e-5, files=1):
        """bound: of the largest difference, in deviations of the logits."""
        out, said = self.convert(model, *options, files=files)
        expected, seen = model.logits(TOKENS), self.logits(out)
        error = np.abs(seen - expected).max() / expected.std()
        print(f"{model.kind} {model.weights} {options}: {error:.1e}", flush=True)
        self.assertLess(error, bound)
        return out, said

    def fails(self, model, *words):
        before = sorted(self.dir.iterdir())
        result = tern("convert", model.path, self.dir / "x.gguf")
        self.assert_one_line_error(result, contains=words)
        self.assertEqual(sorted(self.dir.iterdir()), before)

    def refused(self, model, *words):
        model.write()
        self.fails(model, *words)
