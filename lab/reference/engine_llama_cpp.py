# SPDX-License-Identifier: Apache-2.0
"""Asks llama.cpp through llama-cpp-python, on the processor."""

import importlib.metadata

import llama_cpp
import numpy as np
from container import Container

CONTEXT = 1024


class Engine:
    name = "llama.cpp"
    version = f"llama-cpp-python {importlib.metadata.version('llama-cpp-python')}"
    settings = "quantized weights as in the file, activations int8, cache f32"

    def __init__(self, path, threads):
        self.architecture = Container(path).get("general.architecture")
        self.llama = llama_cpp.Llama(
            model_path=str(path),
            n_ctx=CONTEXT,
            n_threads=threads,
            n_gpu_layers=0,
            logits_all=True,
            type_k=llama_cpp.GGML_TYPE_F32,
            type_v=llama_cpp.GGML_TYPE_F32,
            verbose=False,
        )

    def tokenize(self, text):
        return self.llama.tokenize(text.encode(), add_bos=True, special=True)

    def start(self, ids):
        self.llama.reset()
        return self._eval(ids)

    def step(self, token):
        return self._eval([token])[-1]

    def _eval(self, ids):
        first = self.llama.n_tokens
        self.llama.eval(ids)
        return np.array(self.llama.scores[first : first + len(ids)], dtype=np.float32)

    def cache(self):
        return None
