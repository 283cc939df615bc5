# SPDX-License-Identifier: Apache-2.0
"""Decodes the tensors of a GGUF file, from the description of their bytes.

Every decoder takes the raw bytes of a tensor (uint8[n]) and returns float64[rows, cols]. The value
of every weight in these formats is exact in float64, so decoding adds no error. Ternary formats
return their integers and their scales separately, since the integers are what the product is made of.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Format(NamedTuple):
    name: str
    elements: int  # of a block, along the contiguous dimension
    bytes: int  # of a block


F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, BF16, TQ1_0, TQ2_0, I2_S = 0, 1, 2, 3, 6, 7, 8, 30, 34, 35, 36
Q4_K, Q5_K, Q6_K, IQ2_S = 12, 13, 14, 22
Q2_K, Q3_K, IQ4_NL, IQ4_XS = 10, 11, 20, 23
MXFP4, NVFP4 = 39, 40
IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S, IQ3_S, IQ1_M = 16, 17, 18, 19, 21, 29
Q1_0, Q2_0, PQ2_0, PTQ1_0, STQ1_0 = 41, 42, 142, 143, 43

FORMATS = {
    F32: Format("f32", 1, 4),
    F16: Format("f16", 1, 2),
    BF16: Format("bf16", 1, 2),
    Q4_0: Format("q4_0", 32, 18),
    Q4_1: Format("q4_1", 32, 20),
    Q5_0: Format("q5_0", 32, 22),
    Q5_1: Format("q5_1", 32, 24),
    Q8_0: Format("q8_0", 32, 34),
    IQ4_NL: Format("iq4_nl", 32, 18),
    MXFP4: Format("mxfp4", 32, 17),
    NVFP4: Format("nvfp4", 64, 36),
    TQ1_0: Format("tq1_0", 256, 54),
    TQ2_0: Format("tq2_0", 256, 66),
    IQ4_XS: Format("iq4_xs", 256, 136),
    Q2_K: Format("q2_k", 256, 84),
    Q3_K: Format("q3_k", 256, 110),
    Q4_K: Format("q4_k", 256, 144),
    Q5_K: Format("q5_k", 256, 176),
    Q6_K: Format("q6_k", 256, 210),
    IQ2_S: Format("iq2_s", 256, 82),
    IQ2_XXS: Format("iq2_xxs", 256, 66),
    IQ2_XS: Format("iq2_xs", 256, 74),
    IQ3_XXS: Format("iq3_xxs", 256, 98),
    IQ3_S: Format("iq3_s", 256, 110),
    IQ1_S: Format("iq1_s", 256, 50),
    IQ1_M: Format("iq1_m", 256, 56),
    Q1_0: Format("q1_0", 128, 18),
    Q2_0: Format("q2_0", 64, 18),
    PQ2_0: Format("pq2_0", 128, 34),
    PTQ1_0: Format("ptq1_0", 128, 28),
    STQ1_0: Format("stq1_0", 256, 42),
    I2_S: Format("i2_s", 4, 1),
}

# Formats whose products use activations quantized by blocks of 32 columns.
# TQ unless row_scales finds one a row.
BLOCK_FORMATS = (Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, IQ2_S, TQ1_0, TQ2_0)
BLOCK_FORMATS += (Q2_K, Q3_K, IQ4_NL, IQ4_XS, MXFP4, NVFP4)
BLOCK_FORMATS += (Q1_0, Q2_0, PQ2_0, PTQ1_0, STQ1_0)
BLOCK_FORMATS += (IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S, IQ3_S, IQ1_M)

I2_S_TRAILER = 32  # bytes behind the codes: the scale, then 28 bytes that mean nothing


def byte_size(kind, rows, cols):
    """Bytes of a rows x cols tensor in the file."""
    fmt = FORMATS[kind]
    if rows * cols % fmt.elements or (kind != I2_S and cols % fmt.elements):
        raise ValueError(f"{rows}x{cols} does not suit {fmt.name}")
    trailer = I2_S_TRAILER if kind == I2_S else 0
    return rows * cols // fmt.elements * fmt.bytes + trailer


def _half(raw):
    """Pairs of bytes as IEEE half precision, widened."""
    return np.ascontiguousarray(raw).view("<f2").astype(np.float64)


def _floats(raw, rows, cols, dtype):
    return raw.view(dtype).astype(np.float64).reshape(rows, cols)


def _bf16(raw, rows, cols):
    """BF16 is the upper half of a binary32."""
    bits = raw.view("<u2").astype(np.uint32) << 16
    return bits.view(np.float32).astype(np.float64).reshape(rows, cols)


def _nibbles(packed):
    """uint8[blocks, n] -> codes[blocks, 2n]: low nibbles first, then high nibbles."""
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float64)


def _q4_0(raw, rows, cols):
    blocks = raw.reshape(-1, 18)
    return ((_nibbles(blocks[:, 2:]) - 8) * _half(blocks[:, :2])).reshape(rows, cols)


def _q4_1(raw, rows, cols):
    blocks = raw.reshape(-1, 20)
    d, m = _half(blocks[:, :2]), _half(blocks[:, 2:4])
    return (_nibbles(blocks[:, 4:]) * d + m).reshape(rows, cols)


def _q5_0(raw, rows, cols):
    """Decodes as Q4_0, with one more bit for each column behind the scale, column 0 in bit 0."""
    blocks = raw.reshape(-1, 22)
    high = np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little").astype(np.float64)
    codes = _nibbles(blocks[:, 6:]) + 16 * high
    return ((codes - 16) * _half(blocks[:, :2])).reshape(rows, cols)


def _q5_1(raw, rows, cols):
    """Decodes as Q4_1, with fifth bits behind the minimum, as in Q5_0."""
    blocks = raw.reshape(-1, 24)
    high = np.unpackbits(blocks[:, 4:8], axis=1, bitorder="little").astype(np.float64)
    codes = _nibbles(blocks[:, 8:]) + 16 * high
    return (codes * _half(blocks[:, :2]) + _half(blocks[:, 2:4])).reshape(rows, cols)


_IQ4_LEVELS = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float64)


def _iq4_nl(raw, rows, cols):
    blocks = raw.reshape(-1, 18)
    levels = _IQ4_LEVELS[_nibbles(blocks[:, 2:]).astype(int)]
    return (levels * _half(blocks[:, :2])).reshape(rows, cols)


def _e2m1(nibbles):
    """A sign, two bits of exponent and one of fraction; exponent 0 has no leading one."""
    codes = nibbles.astype(int)
    exponent, fraction = codes >> 1 & 3, codes & 1
    magnitude = np.where(exponent == 0, fraction / 2, (1 + fraction / 2) * 2.0 ** (exponent - 1))
    return np.where(codes & 8, -magnitude, magnitude)


def _mxfp4(raw, rows, cols):
    blocks = raw.reshape(-1, 17)
    return (_e2m1(_nibbles(blocks[:, 1:])) * 2.0 ** (blocks[:, :1].astype(int) - 127)).reshape(rows, cols)


def _e4m3(byte):
    """Four bits of exponent, three of fraction. The sign counts for nothing, the NaN without one for 0."""
    codes = byte.astype(int)
    exponent, fraction = codes >> 3 & 15, codes & 7
    values = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0 ** (exponent - 7))
    return np.where(codes == 0x7F, 0.0, values)


def _nvfp4(raw, rows, cols):
    blocks = raw.reshape(-1, 36)
    runs = blocks[:, 4:].reshape(-1, 8)
    values = _e2m1(_nibbles(runs)).reshape(-1, 4, 16)
    return (values * _e4m3(blocks[:, :4])[:, :, None]).reshape(rows, cols)


def _q8_0(raw, rows, cols):
    blocks = raw.reshape(-1, 34)
    codes = np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(np.float64)
    return (codes * _half(blocks[:, :2])).reshape(rows, cols)


def _six_bits(packed):
    """uint8[blocks, 12] -> scales[blocks, 8], minima[blocks, 8].

    The first four of each are the low six bits of bytes 0-3 and 4-7; the last four have their low
    four bits in the halves of bytes 8-11 and their upper two above the first four.
    """
    low, mid, last = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([low & 63, (last & 15) | (low >> 6 << 4)], axis=1)
    minima = np.concatenate([mid & 63, (last >> 4) | (mid >> 6 << 4)], axis=1)
    return scales.astype(np.float64), minima.astype(np.float64)


def _sub_blocks(packed):
    """uint8[blocks, 128] -> codes[blocks, 8, 32]: 32 bytes hold a sub-block and the next."""
    pairs = packed.reshape(-1, 4, 1, 32)
    return np.concatenate([pairs & 15, pairs >> 4], axis=2).reshape(-1, 8, 32).astype(np.float64)


def _with_minima(blocks, codes, rows, cols):
    """value = d * scale * code - dmin * minimum, for each sub-block of 32."""
    d, dmin = _half(blocks[:, :2]), _half(blocks[:, 2:4])
    scales, minima = _six_bits(blocks[:, 4:16])
    values = (d * scales)[:, :, None] * codes - (dmin * minima)[:, :, None]
    return values.reshape(rows, cols)


def _q4_k(raw, rows, cols):
    blocks = raw.reshape(-1, 144)
    return _with_minima(blocks, _sub_blocks(blocks[:, 16:]), rows, cols)


def _q5_k(raw, rows, cols):
    """Bit s of byte l of the 32 bytes behind the scales belongs to column l of sub-block s."""
    blocks = raw.reshape(-1, 176)
    high = np.unpackbits(blocks[:, 16:48, None], axis=2, bitorder="little").transpose(0, 2, 1)
    codes = _sub_blocks(blocks[:, 48:]) + 16 * high.astype(np.float64)
    return _with_minima(blocks, codes, rows, cols)


def _q6_k(raw, rows, cols):
    """Two halves of 128 columns: 64 bytes of nibbles, 32 bytes of 2-bit fields, 8 scales each."""
    blocks = raw.reshape(-1, 210)
    nibbles = blocks[:, :128].reshape(-1, 2, 1, 64)
    low = np.concatenate([nibbles & 15, nibbles >> 4], axis=2).reshape(-1, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8).reshape(1, 1, 4, 1)
    high = (blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shifts) & 3
    codes = (low + 16 * high.astype(np.float64) - 32).reshape(-1, 16, 16)
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8).astype(np.float64)
    return (codes * (scales * _half(blocks[:, 208:]))[:, :, None]).reshape(rows, cols)


def _twos(packed):
    """uint8[blocks, 64] -> codes[blocks, 16, 16]: four sub-blocks of 32 columns share 32 bytes."""
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8).reshape(1, 1, 4, 1)
    return ((packed.reshape(-1, 2, 1, 32) >> shifts) & 3).reshape(-1, 16, 16).astype(np.float64)


def _q2_k(raw, rows, cols):
    """A byte for each 16 columns, scale low and minimum high, codes, then d and dmin."""
    blocks = raw.reshape(-1, 84)
    d, dmin = _half(blocks[:, 80:82]), _half(blocks[:, 82:])
    scales, minima = d * (blocks[:, :16] & 15), dmin * (blocks[:, :16] >> 4)
    return (scales[:, :, None] * _twos(blocks[:, 16:80]) - minima[:, :, None]).reshape(rows, cols)


def _q3_k(raw, rows, cols):
    """Third bits, as Q5_K has its fifth, two bits, 12 bytes of scales, d."""
    blocks = raw.reshape(-1, 110)
    third = np.unpackbits(blocks[:, :32, None], axis=2, bitorder="little").transpose(0, 2, 1)
    codes = _twos(blocks[:, 32:96]) + 4.0 * third.reshape(-1, 16, 16) - 4
    low = np.concatenate([blocks[:, 96:104] & 15, blocks[:, 96:104] >> 4], axis=1)
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8).reshape(1, 4, 1)
    upper = ((blocks[:, 104:108].reshape(-1, 1, 4) >> shifts) & 3).reshape(-1, 16)
    scales = (low + 16.0 * upper - 32) * _half(blocks[:, 108:])
    return (codes * scales[:, :, None]).reshape(rows, cols)


def _iq4_xs(raw, rows, cols):
    """Sub-blocks as blocks of IQ4_NL, each with six bits less 32: two of a 16-bit field, four of a nibble."""
    blocks = raw.reshape(-1, 136)
    fields = blocks[:, 2].astype(int) + 256 * blocks[:, 3].astype(int)
    upper = fields[:, None] >> np.arange(0, 16, 2) & 3
    low = np.stack([blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4], axis=2).reshape(-1, 8)
    scales = (low + 16.0 * upper - 32) * _half(blocks[:, :2])
    levels = _IQ4_LEVELS[_nibbles(blocks[:, 8:].reshape(-1, 16)).astype(int)].reshape(-1, 8, 32)
    return (levels * scales[:, :, None]).reshape(rows, cols)


def _grid(name, levels, digits):
    """The levels[entries, digits] of a grid. Entries follow from nothing, so they are read where the library has
    them: numbers whose digits, the lowest first, say which of the levels a weight has."""
    text = (Path(__file__).resolve().parents[2] / "kernels" / "grids_table.c").read_text(encoding="utf-8")
    count, body = re.search(rf"tern_grid_{name}\[(\d+)\] = \{{(.*?)\}}", text, re.DOTALL).groups()
    entries = np.array(re.findall(r"\d+", body), dtype=int)
    assert len(entries) == int(count) and entries[-1] < len(levels) ** digits
    return np.array(levels)[entries[:, np.newaxis] // len(levels) ** np.arange(digits) % len(levels)]


TWO_BITS, THREE_BITS = (8, 25, 43), (4, 12, 20, 28, 36, 44, 52, 62)


def _words(data, kind):
    return np.ascontiguousarray(data).view(kind).astype(np.int64)


def _fields(data, shifts, mask):
    """Bit fields of each number of data[blocks, n], one after the other: int[blocks, n * len(shifts)]."""
    return ((data[:, :, np.newaxis].astype(np.int64) >> np.array(shifts)) & mask).reshape(len(data), -1)


def _signs(bits):
    """-1 or 1 for each of eight weights of bits[blocks, n]: int[blocks, 8n]."""
    return 1 - 2 * _fields(bits, range(8), 1)


def _eighth(seven):
    """Returns the signs of seven weights with that of the eighth: an even number is negative."""
    parity = np.zeros_like(seven)
    for i in range(7):
        parity ^= seven >> i & 1
    return seven | parity << 7


def _scaled(levels, nibbles, scale, rows, cols):
    """levels[blocks, 256] times odd factors of equal runs of weights, times scale[blocks, 1]."""
    factors = np.repeat(2 * nibbles + 1, 256 // nibbles.shape[1], axis=1)
    return (levels * factors * scale).reshape(rows, cols)


def _iq2_s(raw, rows, cols):
    """32 runs of 8: entry of the grid (8 + 2 bits), 8 signs; a nibble of scale for two runs."""
    blocks = raw.reshape(-1, 82)
    low, signs, high, nibbles = np.split(blocks[:, 2:], [32, 64, 72], axis=1)
    entries = low + 256 * _fields(high, (0, 2, 4, 6), 3)
    levels = _grid("iq2_s", TWO_BITS, 8)[entries].reshape(-1, 256) * _signs(signs)
    return _scaled(levels, _fields(nibbles, (0, 4), 15), _half(blocks[:, :2]) / 8, rows, cols)


def _iq2_xxs(raw, rows, cols):
    """Every 32 weights have four entries, then 4 x 7 bits of signs and a nibble of scale."""
    blocks = raw.reshape(-1, 66)
    entries = blocks[:, 2:].reshape(-1, 8, 8)[:, :, :4].reshape(-1, 32)
    words = _words(blocks[:, 2:], "<u4")[:, 1::2]
    signs = _signs(_eighth(_fields(words, (0, 7, 14, 21), 127)))
    levels = _grid("iq2_xxs", TWO_BITS, 8)[entries].reshape(-1, 256) * signs
    return _scaled(levels, words >> 28, _half(blocks[:, :2]) / 8, rows, cols)


def _iq2_xs(raw, rows, cols):
    """A word for 8 weights: an entry (9 bits), 7 signs; a nibble of scale for two of them."""
    blocks = raw.reshape(-1, 74)
    words = _words(blocks[:, 2:66], "<u2")
    levels = _grid("iq2_xs", TWO_BITS, 8)[words & 511].reshape(-1, 256) * _signs(_eighth(words >> 9))
    return _scaled(levels, _fields(blocks[:, 66:], (0, 4), 15), _half(blocks[:, :2]) / 8, rows, cols)


def _iq3_xxs(raw, rows, cols):
    """64 runs of 4, then signs and scales as in IQ2_XXS."""
    blocks = raw.reshape(-1, 98)
    words = _words(blocks[:, 66:], "<u4")
    signs = _signs(_eighth(_fields(words, (0, 7, 14, 21), 127)))
    levels = _grid("iq3_xxs", THREE_BITS, 4)[blocks[:, 2:66]].reshape(-1, 256) * signs
    return _scaled(levels, words >> 28, _half(blocks[:, :2]) / 4, rows, cols)


def _iq3_s(raw, rows, cols):
    """64 runs of 4: entry (8 bits + 1), signs; a nibble of scale for 32 weights."""
    blocks = raw.reshape(-1, 110)
    low, high, signs, nibbles = np.split(blocks[:, 2:], [64, 72, 104], axis=1)
    entries = low + 256 * _fields(high, range(8), 1)
    levels = _grid("iq3_s", range(1, 16, 2), 4)[entries].reshape(-1, 256) * _signs(signs)
    return _scaled(levels, _fields(nibbles, (0, 4), 15), _half(blocks[:, :2]), rows, cols)


def _iq1_s(raw, rows, cols):
    """32 runs of 8: entry (8 bits + 3); for 32 weights a factor and whether they are moved down by an eighth."""
    blocks = raw.reshape(-1, 50)
    words = _words(blocks[:, 34:], "<u2")
    entries = blocks[:, 2:34] + 256 * _fields(words, (0, 3, 6, 9), 7)
    moved = np.repeat(1 - 2 * (words >> 15), 32, axis=1)
    levels = 8 * _grid("iq1", (-1, 0, 1), 8)[entries].reshape(-1, 256) + moved
    return _scaled(levels, words >> 12 & 7, _half(blocks[:, :2]) / 8, rows, cols)


def _iq1_m(raw, rows, cols):
    """The same with a factor for 16 weights, a direction for 8, and the scale in the words of the factors."""
    blocks = raw.reshape(-1, 56)
    words = _words(blocks[:, 48:], "<u2")
    high = _fields(blocks[:, 32:48], (0, 4), 15)
    moved = np.repeat(1 - 2 * (high >> 3), 8, axis=1)
    levels = 8 * _grid("iq1", (-1, 0, 1), 8)[blocks[:, :32] + 256 * (high & 7)].reshape(-1, 256) + moved
    half = ((words >> 12) << np.array([0, 4, 8, 12])).sum(axis=1, keepdims=True).astype("<u2")
    scale = half.view(np.float16).astype(np.float64)
    return _scaled(levels, _fields(words, (0, 3, 6, 9), 7), scale / 8, rows, cols)


def _q1_0(raw, rows, cols):
    """A bit a weight, column 0 in bit 0 of the first byte: 1 for +d, 0 for -d."""
    blocks = raw.reshape(-1, 18)
    bits = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").astype(np.float64)
    return ((2 * bits - 1) * _half(blocks[:, :2])).reshape(rows, cols)


def _q2_0(size):
    """Four codes a byte, the first in the lowest bits; `size` bytes a block."""

    def decode_blocks(raw, rows, cols):
        blocks = raw.reshape(-1, size)
        shifts = np.array([0, 2, 4, 6], dtype=np.uint8)
        codes = (blocks[:, 2:, np.newaxis] >> shifts & 3).reshape(len(blocks), -1)
        return ((codes.astype(np.float64) - 1) * _half(blocks[:, :2])).reshape(rows, cols)

    return decode_blocks


def _digits(packed, count):
    """uint8[blocks, n] -> codes[blocks, count * n]: digit i of all bytes, then digit i + 1."""
    powers = 3 ** np.arange(count).reshape(1, count, 1)
    fractions = packed[:, np.newaxis, :].astype(int) * powers % 256
    return (fractions * 3 // 256).reshape(len(packed), -1)


def _ptq1_0(raw, rows, cols):
    """16 bytes of five digits, 8 bytes of five, 2 of four; the scale is last."""
    blocks = raw.reshape(-1, 28)
    parts = [_digits(blocks[:, :16], 5), _digits(blocks[:, 16:24], 5), _digits(blocks[:, 24:26], 4)]
    codes = np.concatenate(parts, axis=1).astype(np.float64)
    return ((codes - 1) * _half(blocks[:, 26:])).reshape(rows, cols)


# Two bits a lane, weight + 1, the first lane in the lowest; the second half has the signs turned.
_QUADS = bytes.fromhex("a9892909a68626069a921a126a624a42012181a1042484a41018909840486068")


def _stq1_0(raw, rows, cols):
    """Four weights, 16 columns apart, by a nibble and a sign; the scale is last."""
    blocks = raw.reshape(-1, 42)
    slots = np.stack([blocks[:, :32] & 15, blocks[:, :32] >> 4], axis=2).reshape(-1, 64)
    signs = np.unpackbits(blocks[:, 32:40], axis=1, bitorder="little")
    quads = np.frombuffer(_QUADS, dtype=np.uint8)[slots + 16 * signs].reshape(-1, 4, 1, 16)
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8).reshape(4, 1)
    codes = (quads >> shifts & 3).reshape(-1, 256).astype(np.float64)
    return ((codes - 1) * _half(blocks[:, 40:])).reshape(rows, cols)


def ternary(raw, rows, cols):
    """I2_S -> (int8[rows, cols] in -1..1, scale).

    The codes are one flat stream in units of 128 elements and 32 bytes: byte p of a unit holds the
    elements p, p+32, p+64, p+96, the first in its two highest bits. Code = weight + 1.
    """
    n = rows * cols
    if n % 128:
        raise ValueError(f"i2_s needs a multiple of 128 elements, not {n}")
    packed = raw[: n // 4].reshape(-1, 1, 32)
    shifts = np.array([6, 4, 2, 0], dtype=np.uint8).reshape(1, 4, 1)
    codes = (packed >> shifts) & 3  # [unit, quarter, p]: flattening gives the elements in order
    if (codes == 3).any():
        raise ValueError("i2_s code 3 has no value")
    scale = float(raw[n // 4 : n // 4 + 4].view("<f4")[0])
    return codes.astype(np.int8).reshape(rows, cols) - 1, scale


def _tq1_0_codes(blocks):
    """uint8[blocks, 54] -> codes[blocks, 256]: digits of base-3 fractions, the first in front."""
    parts = [_digits(blocks[:, :32], 5), _digits(blocks[:, 32:48], 5), _digits(blocks[:, 48:52], 4)]
    return np.concatenate(parts, axis=1)


def _tq2_0_codes(blocks):
    """uint8[blocks, 66] -> codes[blocks, 256]: two halves of four planes of 32, lowest bits first."""
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8).reshape(1, 1, 4, 1)
    return ((blocks[:, :64].reshape(-1, 2, 1, 32) >> shifts) & 3).reshape(-1, 256)


def tq(kind, raw, rows, cols):
    """TQ1_0, TQ2_0 -> (int8[rows, cols] in -1..1, the scales[rows, cols / 256] of the blocks)."""
    blocks = raw.reshape(-1, FORMATS[kind].bytes)
    codes = _tq1_0_codes(blocks) if kind == TQ1_0 else _tq2_0_codes(blocks)
    return codes.astype(np.int8).reshape(rows, cols) - 1, _half(blocks[:, -2:]).reshape(rows, -1)


def row_scales(kind, raw, rows, cols):
    """(weights, scale or scales[rows]) of a ternary matrix with one scale a row; None for others."""
    if kind == I2_S:
        return ternary(raw, rows, cols)
    if kind not in (TQ1_0, TQ2_0):
        return None
    weights, scales = tq(kind, raw, rows, cols)
    matters = (weights != 0).reshape(rows, -1, 256).any(axis=2)
    low = np.where(matters, scales, np.inf).min(axis=1)
    high = np.where(matters, scales, -np.inf).max(axis=1)
    if (high > low).any():
        return None
    return weights, np.where(matters.any(axis=1), low, 0)


def _tq(kind):
    def decode_blocks(raw, rows, cols):
        weights, scales = tq(kind, raw, rows, cols)
        return weights * np.repeat(scales, 256, axis=1)

    return decode_blocks


def _i2_s(raw, rows, cols):
    weights, scale = ternary(raw, rows, cols)
    return weights * scale


_DECODERS = {
    F32: lambda raw, rows, cols: _floats(raw, rows, cols, "<f4"),
    F16: lambda raw, rows, cols: _floats(raw, rows, cols, "<f2"),
    BF16: _bf16,
    Q4_0: _q4_0,
    Q4_1: _q4_1,
    Q5_0: _q5_0,
    Q5_1: _q5_1,
    Q8_0: _q8_0,
    IQ4_NL: _iq4_nl,
    MXFP4: _mxfp4,
    NVFP4: _nvfp4,
    IQ4_XS: _iq4_xs,
    Q2_K: _q2_k,
    Q3_K: _q3_k,
    TQ1_0: _tq(TQ1_0),
    TQ2_0: _tq(TQ2_0),
    Q4_K: _q4_k,
    Q5_K: _q5_k,
    Q6_K: _q6_k,
    IQ2_S: _iq2_s,
    IQ2_XXS: _iq2_xxs,
    IQ2_XS: _iq2_xs,
    IQ3_XXS: _iq3_xxs,
    IQ3_S: _iq3_s,
    IQ1_S: _iq1_s,
    IQ1_M: _iq1_m,
    Q1_0: _q1_0,
    Q2_0: _q2_0(18),
    PQ2_0: _q2_0(34),
    PTQ1_0: _ptq1_0,
    STQ1_0: _stq1_0,
    I2_S: _i2_s,
}


def decode(kind, raw, rows, cols):
    """The values of a tensor: float64[rows, cols]."""
    return _DECODERS[kind](raw, rows, cols)
