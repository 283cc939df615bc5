# SPDX-License-Identifier: Apache-2.0
"""Mixtures: the type of every matrix of models of several shapes is the one that llama.cpp gives to it. What it gives was asked
of llama.cpp itself (tests/mixtures/ask_llama_cpp.py of llama-cpp-python 0.3.36) and stands in tests/mixtures/facts.json."""

import functools
import json
import re
import struct
from dataclasses import dataclass

import common
import gguf_edit
from common import tern, tern_json, tern_text

F16 = 1
SUPER = 256
# Each mixture: its number in files.
MIXTURES = {
    "q2_k": 10, "q2_k_s": 21, "q3_k_s": 11, "q3_k_m": 12, "q3_k_l": 13, "q4_k_s": 14, "q4_k_m": 15, "q5_k_s": 16,
    "q5_k_m": 17, "iq2_xxs": 19, "iq2_xs": 20, "iq3_xs": 22, "iq3_xxs": 23, "iq1_s": 24, "iq3_s": 26, "iq3_m": 27,
    "iq2_s": 28, "iq2_m": 29, "iq4_xs": 30, "iq1_m": 31,
}  # fmt: skip
NEED = ("iq1_m", "iq1_s", "iq2_m", "iq2_s", "iq2_xs", "iq2_xxs", "q2_k_s", "iq3_xs", "iq3_s", "iq3_m")


@dataclass
class Model:
    layers: int
    queries: int  # that share a key
    experts: int = 0
    tied: bool = True
    cols: int = 256
    joined: bool = False  # queries, keys and values are one matrix
    kinds: tuple = tuple(MIXTURES)  # that differ for this model

    def tensors(self):
        """{name: shape} of its matrices, with few rows."""
        rows, inner = 8, 6 * SUPER
        found = {"token_embd.weight": (self.cols, 16)}
        if not self.tied:
            found["output.weight"] = (self.cols, 16)
        for i in range(self.layers):
            shapes = {"attn_q": (self.cols, rows * self.queries), "attn_k": (self.cols, rows), "attn_v": (self.cols, rows)}
            if self.joined:
                shared = self.cols // self.queries
                shapes = {"attn_qkv": (self.cols, self.cols + 2 * shared)}
            shapes["attn_output"] = (self.cols, rows)
            for matrix in ("ffn_gate", "ffn_up", "ffn_down"):
                shape = (inner if matrix == "ffn_down" else self.cols, rows)
                shapes[matrix + ("_exps" if self.experts else "")] = (*shape, self.experts) if self.experts else shape
            found |= {f"blk.{i}.{matrix}.weight": shape for matrix, shape in shapes.items()}
        return found

    def write(self, path):
        keys = [["general.architecture", *gguf_edit.string("llama")]]
        data = {shape: bytes(2 * size(shape)) for shape in self.tensors().values()}
        tensors = [gguf_edit.Tensor(name, list(shape), F16, data[shape]) for name, shape in self.tensors().items()]
        path.write_bytes(gguf_edit.Gguf(keys, tensors).to_bytes())


MODELS = {
    "gqa": Model(24, 4), "few-layers": Model(5, 2, tied=False), "eight": Model(16, 4, experts=8, tied=False),
    "large": Model(80, 8, tied=False, kinds=("q2_k", "q3_k_s", "q4_k_m", "iq2_m", "iq3_s")),
    "four": Model(9, 1, experts=4, kinds=("q2_k", "iq1_s", "iq2_m")), "narrow": Model(30, 3, cols=576),
    "joined": Model(8, 4, joined=True, kinds=("q3_k_m", "iq2_xs", "iq3_m")),
    "wide": Model(18, 4, cols=1152, kinds=("q2_k", "q3_k_l", "q4_k_m", "q5_k_m", "iq3_xs", "iq4_xs")),
}  # fmt: skip


def size(shape):
    product = 1
    for n in shape:
        product *= n
    return product


@functools.cache
def facts():
    return json.loads((common.ROOT / "tests/mixtures/facts.json").read_text())


def found(shape, kind, known):
    """What the table says of a mixture; with importance nothing where that changes nothing."""
    table = facts()[shape]
    return table.get(f"{kind}, known", table[kind]) if known else table[kind]


def wanted(shape, kind, known):
    """{name: type} of the model's matrices."""
    types, rows = {}, found(shape, kind, known)
    left = {matrix: [kind for kind, n in (x.split(" ") for x in row.split(", ")) for _ in range(int(n))] for matrix, row in rows.items()
            if matrix != "most"}  # fmt: skip
    for name in MODELS[shape].tensors():
        of = left.get(re.sub(r"blk\.\d+\.", "", name).removesuffix(".weight"))
        types[name] = rows["most"] if of is None else of.pop(0)
    return types


class Mixtures(common.FolderTest):
    def write_importance(self, path, model):
        """A file of llama.cpp's older form: all columns alike."""
        blocks = {name: shape for name, shape in model.tensors().items() if name.startswith("blk.")}
        with path.open("wb") as f:
            f.write(struct.pack("<i", len(blocks)))
            for name, shape in blocks.items():
                n = shape[0] * (shape[2] if len(shape) > 2 else 1)
                f.write(struct.pack(f"<i{len(name)}sii{n}f", len(name), name.encode(), 1, n, *[1.0] * n))
            f.write(struct.pack("<ii1s", 1, 1, b"t"))

    def check(self, kind, path, shape, importance):
        command = ("quantize", path, "--type", kind, "--plan")
        if found(shape, kind, importance is not None) == "refused":
            self.assert_one_line_error(tern(*command), contains=["tensor blk.", "--imatrix"])
            return
        options = () if importance is None else ("--imatrix", importance)
        said = {t["name"]: t["to"] for t in tern_json(*command, *options)["tensors"]}
        self.assertEqual(said, wanted(shape, kind, importance is not None))

    def test_types(self):
        for shape, model in MODELS.items():
            path, importance = self.dir / f"{shape}.gguf", self.dir / f"{shape}.dat"
            model.write(path)
            self.write_importance(importance, model)
            for kind in model.kinds:
                for known in (False, True) if kind in ("iq3_xxs", "iq4_xs") else (kind in NEED,):
                    with self.subTest(shape=shape, kind=kind, known=known):
                        self.check(kind, path, shape, importance if known else None)

    def test_without_importance(self):
        """Mixtures that need importance are refused, unless no matrix has the type that needs it."""
        for shape in ("few-layers", "narrow"):
            path = self.dir / f"{shape}-alone.gguf"
            MODELS[shape].write(path)
            for kind in NEED:
                with self.subTest(shape=shape, kind=kind):
                    self.check(kind, path, shape, None)

    def test_pure(self):
        """Some names are also those of a format: --pure makes every matrix that format."""
        model = MODELS["few-layers"]
        path, importance = self.dir / "pure.gguf", self.dir / "pure.dat"
        model.write(path)
        self.write_importance(importance, model)
        for kind in ("q2_k", "iq2_s", "iq3_s", "iq4_xs"):
            said = tern_json("quantize", path, "--type", kind, "--pure", "--imatrix", importance, "--plan")
            blocks = {t["to"] for t in said["tensors"] if t["name"].startswith("blk.")}
            self.assertEqual(blocks, {kind})
        refused = tern("quantize", path, "--type", "q4_k_m", "--pure", "--plan")
        self.assert_one_line_error(refused, contains=["q4_k_m is a mixture", "--pure"], status=2)

    def test_numbers(self):
        """The file says which mixture it is; a head and embeddings in grids need no importance."""
        source = common.synth("llama-tiny-q6_k", self.dir)
        importance, text = self.dir / "i.gguf", self.dir / "t.txt"
        text.write_text("The weights of a model are not alike.\n" * 8)
        tern_text("imatrix", "-m", source, "-f", text, "--ctx", "64", "-o", importance)
        for kind in ("iq2_m", "q2_k_s"):
            out = self.dir / f"{kind}.gguf"
            tern_json("quantize", source, out, "--type", kind, "--imatrix", importance)
            self.assertEqual(gguf_edit.read(out).number("general.file_type"), MIXTURES[kind])
            self.assertEqual(len(tern_text("logits", "-m", out, "--tokens", "5,17", "--sha256").split()), 1)


if __name__ == "__main__":
    common.main()
