# SPDX-License-Identifier: Apache-2.0
"""tern's float64 oracle (tests/oracle), whose activations and cache are rounded as tern's are."""

import forward
import numpy as np
from container import Container


class Engine:
    name = "tern's oracle"
    version = "float64"
    settings = "activations rounded as in docs/numerics.md, cache f16"

    def __init__(self, path, threads):
        del threads  # NumPy decides
        file = Container(path)
        self.architecture = file.get("general.architecture")
        self.file = file
        self.model = forward.Model(file)

    def tokenize(self, text):
        from gguf_tokenizer import byte_level_bpe  # not needed where the ids are known

        return byte_level_bpe(self.file)(text)

    def start(self, ids):
        self.ids = list(ids)
        return self.model.logits(self.ids, "f16")

    def step(self, token):
        self.ids.append(token)
        return self.model.logits(self.ids, "f16")[-1]

    def cache(self):
        keys, values = zip(*self.model.cache)
        return tuple(np.stack(x).transpose(0, 2, 1, 3) for x in (keys, values))
