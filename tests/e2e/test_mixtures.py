# SPDX-License-Identifier: Apache-2.0
"""Mixtures: the type of every matrix of models of several shapes, by llama.cpp's rules, written down here once more."""

import struct
from dataclasses import dataclass

import common
import gguf_edit
from common import tern, tern_json, tern_text

F16 = 1
SUPER = 256
# Each mixture: its number in files, the type of most matrices.
MIXTURES = {
    "q2_k": (10, "q2_k"), "q2_k_s": (21, "q2_k"), "q3_k_s": (11, "q3_k"), "q3_k_m": (12, "q3_k"),
    "q3_k_l": (13, "q3_k"), "q4_k_s": (14, "q4_k"), "q4_k_m": (15, "q4_k"), "q5_k_s": (16, "q5_k"),
    "q5_k_m": (17, "q5_k"), "iq2_xxs": (19, "iq2_xxs"), "iq2_xs": (20, "iq2_xs"), "iq3_xs": (22, "iq3_s"),
    "iq3_xxs": (23, "iq3_xxs"), "iq1_s": (24, "iq1_s"), "iq3_s": (26, "iq3_s"), "iq3_m": (27, "iq3_s"),
    "iq2_s": (28, "iq2_xs"), "iq2_m": (29, "iq2_s"), "iq4_xs": (30, "iq4_xs"), "iq1_m": (31, "iq1_m"),
}  # fmt: skip
TWO_BITS = {"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq2_m"}
SMALLER = {"iq4_xs": "iq4_nl", "q2_k": "q4_0", "q3_k": "q4_0", "q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0"}
NEED = (*sorted(TWO_BITS), "q2_k_s", "iq3_xs", "iq3_s", "iq3_m")
WEIGHED = {"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs"}


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
}  # fmt: skip


def size(shape):
    product = 1
    for n in shape:
        product *= n
    return product


def more_bits(layer, layers):
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def of_two_bits(kind, matrix, layer, model):
    """Types of less than three bits have rules of their own."""
    finer = "iq3_s" if kind in ("iq2_s", "iq2_m") else "q2_k"
    if matrix in ("attn_v", "attn_qkv"):
        return "q4_k" if model.queries >= 4 or model.experts >= 4 else finer
    if matrix == "attn_k" and model.experts == 8:
        return "q4_k"
    if matrix.startswith("ffn_down") and layer < model.layers // 8:
        return finer
    if matrix == "attn_output" and model.experts == 8:
        return "q5_k"
    if matrix == "attn_output":
        return {"iq1_s": "iq2_xxs", "iq1_m": "iq2_xxs", "iq2_s": "iq3_s", "iq2_m": "iq3_s"}.get(kind)
    return None


def of_values(kind, layer, model, known):
    many, found = model.queries >= 4, None
    if kind == "q2_k":
        found = "q4_k" if many else "q3_k"
    elif kind == "iq3_xxs":
        found = "q4_k" if many else "iq3_xxs" if known else "iq3_s"
    elif kind in ("q2_k_s", "iq3_xs", "iq3_s") and many or kind == "iq3_m":
        found = "q4_k"
    elif kind == "q3_k_m":
        found = "q5_k" if layer < 2 else "q4_k"
    elif kind == "q3_k_l" or kind == "iq4_xs" and many or kind == "q4_k_s" and layer < 4:
        found = "q5_k"
    elif kind in ("q4_k_m", "q5_k_m") and more_bits(layer, model.layers):
        found = "q6_k"
    if model.layers == 80 and model.queries > 1 and (found or MIXTURES[kind][1]) in ("q3_k", "q4_k"):
        found = "q5_k"
    return "q8_0" if model.experts == 8 else found


def of_down(kind, layer, model, known):
    eighth, more = layer < model.layers // 8, more_bits(layer, model.layers)
    match kind:
        case "q2_k":
            return "q3_k"
        case "q2_k_s":
            return "q4_k" if eighth else None
        case "iq3_xxs":
            return None if known else "q4_k" if eighth else "q3_k"
        case "q3_k_m":
            return "q5_k" if layer < model.layers // 16 else "q4_k"
        case "iq3_m":
            return "q4_k" if eighth or (model.experts == 8 and more) else None
        case "q3_k_l":
            return "q5_k"
        case "q4_k_m" | "q5_k_m":
            return "q6_k" if more else None
        case "iq4_xs":
            return "q5_k" if eighth and not known else None
        case "q4_k_s":
            return "q5_k" if eighth else None
    return None


def of_heads(kind, model):
    if model.experts == 8:
        return None if kind in ("q2_k_s", "q3_k_l", "q5_k_s", "q5_k_m") else "q5_k"
    return {"q2_k": "q3_k", "iq3_xxs": "iq3_s", "q3_k_m": "q4_k", "q3_k_l": "q5_k", "iq3_m": "q4_k"}.get(kind)


def of_block(kind, matrix, layer, model, known):
    if kind in TWO_BITS:
        return of_two_bits(kind, matrix, layer, model)
    if matrix in ("attn_v", "attn_qkv"):
        return of_values(kind, layer, model, known)
    if matrix == "attn_k" and model.experts == 8:
        return "q8_0"
    if matrix in ("attn_k", "attn_q"):
        return {"iq3_xs": "iq3_xxs", "iq3_xxs": "iq2_s"}.get(kind)
    if matrix.startswith("ffn_down"):
        return of_down(kind, layer, model, known)
    if matrix == "attn_output":
        return of_heads(kind, model)
    middle = model.layers // 8 <= layer < 7 * model.layers // 8
    return "iq3_xxs" if kind == "iq3_xs" and middle else None


def wanted(kind, name, model, known):
    """The type of a matrix, before and after its columns are looked at."""
    cols, most = model.tensors()[name][0], MIXTURES[kind][1]
    if name == "output.weight" or (model.tied and name == "token_embd.weight"):
        low = kind in TWO_BITS or kind == "iq3_xxs"
        found = "q8_0" if cols % SUPER else "q5_k" if low else "q6_k"
    elif name == "token_embd.weight":
        finer = {"iq2_s": "iq3_s", "iq2_m": "iq3_s", "iq3_xxs": "iq3_s"}
        found = finer.get(kind, "q2_k" if kind in TWO_BITS else most)
    else:
        _, layer, matrix, _ = name.split(".")
        found = of_block(kind, matrix, int(layer), model, known) or most
    return SMALLER.get(found, "iq4_nl") if cols % SUPER and found != "q8_0" else found


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

    def needs(self, kind, model):
        """True if llama.cpp refuses the mixture without importance."""
        found = [wanted(kind, name, model, False) for name in model.tensors() if name.startswith("blk.")]
        return any(f in WEIGHED or (kind == "q2_k_s" and f == "q2_k") for f in found)

    def check(self, kind, path, model, importance):
        command = ("quantize", path, "--type", kind, "--plan")
        if importance is None and self.needs(kind, model):
            self.assert_one_line_error(tern(*command), contains=["tensor blk.", "--imatrix"])
            return
        options = () if importance is None else ("--imatrix", importance)
        said = {t["name"]: t["to"] for t in tern_json(*command, *options)["tensors"]}
        known = importance is not None
        self.assertEqual(said, {name: wanted(kind, name, model, known) for name in model.tensors()})

    def test_types(self):
        for shape, model in MODELS.items():
            path, importance = self.dir / f"{shape}.gguf", self.dir / f"{shape}.dat"
            model.write(path)
            self.write_importance(importance, model)
            for kind in model.kinds:
                for known in (False, True) if kind in ("iq3_xxs", "iq4_xs") else (kind in NEED,):
                    with self.subTest(shape=shape, kind=kind, known=known):
                        self.check(kind, path, model, importance if known else None)

    def test_without_importance(self):
        """Mixtures that need importance are refused, unless no matrix has the type that needs it."""
        for shape in ("few-layers", "narrow"):
            path = self.dir / f"{shape}-alone.gguf"
            MODELS[shape].write(path)
            for kind in NEED:
                with self.subTest(shape=shape, kind=kind):
                    self.check(kind, path, MODELS[shape], None)

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
            self.assertEqual(gguf_edit.read(out).number("general.file_type"), MIXTURES[kind][0])
            self.assertEqual(len(tern_text("logits", "-m", out, "--tokens", "5,17", "--sha256").split()), 1)


if __name__ == "__main__":
    common.main()
