#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks llama.cpp which type it gives to each matrix of the models of tests/e2e/test_mixtures.py: ask_llama_cpp.py > facts.json

Dry runs of `llama_model_quantize`, with and without importance; it needs PyPI's llama-cpp-python. The table says for each model
and mixture, without importance and with it ("known", where that changes something), the type of most matrices and, for each other kind of matrix, its types by
layers: "q5_k 2, q4_k 22" are two layers and 22. "refused" is a mixture that llama.cpp does not make without importance."""

import ctypes
import json
import re
import sys
import tempfile
from collections import Counter
from itertools import groupby
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "e2e"), str(Path(__file__).resolve().parents[1])]

import gguf_edit  # noqa: E402
import test_mixtures  # noqa: E402
from llama_cpp import llama_cpp as api  # noqa: E402

LINE = re.compile(r"\]\s+(\S+)\s+- \[.*?type =\s*\S+, size =\s*[\d.]+ MiB ->\s*[\d.]+ MiB \((\S+)\)")
said = []


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
def hear(_level, text, _user):
    said.append(text.decode(errors="replace"))


def write(model, path):
    """Writes the model of the test with the keys that llama.cpp wants besides."""
    model.write(path)
    file = gguf_edit.read(path)
    numbers = {"block_count": model.layers, "context_length": 512, "embedding_length": model.cols, "feed_forward_length": 1536,
               "attention.head_count": model.queries, "attention.head_count_kv": 1, "expert_count": model.experts,
               "expert_used_count": min(2, model.experts)}  # fmt: skip
    for name, value in numbers.items():
        file[f"llama.{name}"] = gguf_edit.u32(value)
    file["llama.attention.layer_norm_rms_epsilon"] = gguf_edit.f32(1e-5)
    path.write_bytes(file.to_bytes())


def importance(model):
    """All columns alike, for each matrix of a block. The second value keeps the memory."""
    blocks = {name: shape for name, shape in model.tensors().items() if name.startswith("blk.")}
    entries, held = (api.llama_model_imatrix_data * (len(blocks) + 1))(), []
    for entry, (name, shape) in zip(entries, blocks.items()):
        n = shape[0] * (shape[2] if len(shape) > 2 else 1)
        held.append((ctypes.c_float * n)(*[1.0] * n))
        entry.name, entry.data, entry.size = name.encode(), ctypes.cast(held[-1], ctypes.POINTER(ctypes.c_float)), n
    return entries, held


def ask(model, path, number, known):
    """{name: type}, and whether llama.cpp would refuse it."""
    parameters = api.llama_model_quantize_default_params()
    parameters.ftype, parameters.nthread, parameters.dry_run = number, 1, True
    entries, held = importance(model)
    if known:
        parameters.imatrix = ctypes.cast(entries, ctypes.POINTER(api.llama_model_imatrix_data))
    said.clear()
    if api.llama_model_quantize(str(path).encode(), b"none", ctypes.byref(parameters)) != 0:
        raise RuntimeError("".join(said)[-1000:])
    del held
    text = "".join(said)
    return {name: kind.lower() for name, kind in LINE.findall(text)}, "will require an imatrix" in text


def shortened(types):
    """The type of most matrices, and the others by kinds of matrices."""
    kinds = {}
    for name, kind in types.items():
        kinds.setdefault(re.sub(r"blk\.\d+\.", "", name).removesuffix(".weight"), []).append(kind)
    most = Counter(types.values()).most_common(1)[0][0]
    rows = {name: ", ".join(f"{kind} {len([*same])}" for kind, same in groupby(found)) for name, found in kinds.items()}
    return {"most": most} | {name: row for name, row in rows.items() if row != f"{most} {len(kinds[name])}"}


def facts_of(model, path):
    write(model, path)
    found = {}
    for mixture in model.kinds:
        alone, known = (ask(model, path, test_mixtures.MIXTURES[mixture], known) for known in (False, True))
        found[mixture] = "refused" if alone[1] else shortened(alone[0])
        if known != alone:
            found[f"{mixture}, known"] = shortened(known[0])
    return found


def main():
    api.llama_log_set(hear, None)
    with tempfile.TemporaryDirectory() as folder:
        facts = {name: facts_of(model, Path(folder) / "model.gguf") for name, model in test_mixtures.MODELS.items()}
    lines = [f'"{name}": {{\n' + ",\n".join(f'"{mixture}": {json.dumps(found)}' for mixture, found in table.items()) + "}"
             for name, table in facts.items()]  # fmt: skip
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
