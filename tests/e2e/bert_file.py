# SPDX-License-Identifier: Apache-2.0
"""Files of small encoders (architecture bert) with random weights, in floats or Q8_0."""

import random
import struct

import gguf_edit

WIDTH, INNER, HEADS, LAYERS, VOCABULARY, POSITIONS, EPSILON = 64, 160, 4, 3, 211, 150, 1e-12
F32, F16, Q8_0 = 0, 1, 8


def packed(values, kind):
    """Returns numbers as a tensor of that type holds them."""
    if kind == F32:
        return struct.pack(f"<{len(values)}f", *values)
    if kind == F16:
        return struct.pack(f"<{len(values)}e", *values)
    blocks = []
    for at in range(0, len(values), 32):
        block = values[at : at + 32]
        (d,) = struct.unpack("<e", struct.pack("<e", max(map(abs, block)) / 127))
        blocks.append(struct.pack("<e32b", d, *(max(-127, min(127, round(x / d))) for x in block)))
    return b"".join(blocks)


def shapes():
    """Names of all tensors, with rows (0 for a vector) and columns."""
    yield "token_embd.weight", VOCABULARY, WIDTH
    yield "token_types.weight", 2, WIDTH
    yield "position_embd.weight", POSITIONS, WIDTH
    yield from norm("token_embd_norm")
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        for name, rows, columns in (("attn_q", WIDTH, WIDTH), ("attn_k", WIDTH, WIDTH), ("attn_v", WIDTH, WIDTH),
                                    ("attn_output", WIDTH, WIDTH), ("ffn_up", INNER, WIDTH), ("ffn_down", WIDTH, INNER)):
            yield f"{at}{name}.weight", rows, columns
            yield f"{at}{name}.bias", 0, rows
        yield from norm(at + "attn_output_norm")
        yield from norm(at + "layer_output_norm")


def norm(name):
    yield name + ".weight", 0, WIDTH
    yield name + ".bias", 0, WIDTH


def weights(seed):
    """Returns random numbers by the names of tensors; LayerNorm keeps them in bounds."""
    source = random.Random(seed)
    found = {}
    for name, rows, columns in shapes():
        gain = name.endswith("norm.weight")
        deviation = 0.2 if rows == 0 else 0.5 if "embd" in name or "types" in name else 1.5 / columns**0.5
        found[name] = [gain + source.gauss(0, deviation) for _ in range(max(rows, 1) * columns)]
    return found


def build(kind=F16, seed=1, small=F32):
    """A file of it as gguf_edit has it, without a tokenizer."""
    numbers = weights(seed)
    file = gguf_edit.Gguf([], [])
    file["general.architecture"] = gguf_edit.string("bert")
    for key, value in (("block_count", LAYERS), ("embedding_length", WIDTH), ("feed_forward_length", INNER),
                       ("attention.head_count", HEADS), ("context_length", POSITIONS), ("pooling_type", 1)):
        file[f"bert.{key}"] = gguf_edit.u32(value)
    file["bert.attention.layer_norm_epsilon"] = gguf_edit.f32(EPSILON)
    file["bert.attention.causal"] = (gguf_edit.BOOL, b"\0")
    for name, rows, columns in shapes():
        matrix = rows > 0 and name.startswith(("blk.", "token_embd."))
        used = kind if matrix else small
        file.tensors.append(gguf_edit.Tensor(name, [columns, rows] if rows else [columns], used, packed(numbers[name], used)))
    return file


def add_head(file, dense=True, seed=9, kind=F32):
    """The head of a cross-encoder, as llama.cpp names its tensors."""
    source = random.Random(seed)
    del file["bert.pooling_type"]
    for name, rows, columns in (("cls.weight", WIDTH, WIDTH), ("cls.bias", 0, WIDTH), ("cls.output.weight", 0, WIDTH), ("cls.output.bias", 0, 1)):
        if dense or "output" in name:
            used = kind if rows else F32
            values = [source.gauss(0, 0.2) for _ in range(max(rows, 1) * columns)]
            file.tensors.append(gguf_edit.Tensor(name, [columns, rows] if rows else [columns], used, packed(values, used)))
    return file


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = ["once", "upon", "a", "time", "tale", "tell"]
PARTS = ["##s", "##ing"]


def add_words(file):
    """A tokenizer of a few words, as files of such models have it."""
    tokens = SPECIAL + ["\u2581" + word for word in WORDS] + [part[2:] for part in PARTS]
    tokens += [f"[unused{i}]" for i in range(VOCABULARY - len(tokens))]
    kinds = [3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL))
    file["tokenizer.ggml.model"] = gguf_edit.string("bert")
    file["tokenizer.ggml.tokens"] = gguf_edit.strings(tokens)
    file["tokenizer.ggml.token_type"] = gguf_edit.i32s(kinds)
    for name, token in (("padding", 0), ("unknown", 1), ("bos", 2), ("eos", 3)):
        file[f"tokenizer.ggml.{name}_token_id"] = gguf_edit.u32(token)
    return file


def write(path, words=False, **options):
    file = build(**options)
    path.write_bytes((add_words(file) if words else file).to_bytes())
    return path
