# SPDX-License-Identifier: Apache-2.0
"""Hand-computed checks of every piece of the oracle: python3 test_oracle.py"""

import hashlib
import math
import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import suite  # noqa: E402

try:
    import gguf
    import numpy as np
except ImportError as error:
    suite.skip(f"{error} (pip install -r tests/oracle/requirements.txt)")

import forward
import oracle
import tensors
from container import Container


def generator(seed, n):
    """The linear congruential generator of the published test vectors: its upper 15 bits."""
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) % 2**31
        yield seed >> 16


def short_hash(data):
    return hashlib.sha256(data).hexdigest()[:16]


def ternary_matrix():
    """4 x 256 weights in -1..1, of which 329, 344 and 351 are -1, 0 and +1."""
    weights = [u % 3 - 1 for u in generator(12345, 1024)]
    return np.array(weights, dtype=np.int8).reshape(4, 256)


def pack_i2_s(weights, scale):
    """Computes element by element, from the definition: the inverse of the oracle's decoding with arrays."""
    out = bytearray(weights.size // 4)
    for e, w in enumerate(weights.reshape(-1)):
        unit, place = divmod(e, 128)
        out[unit * 32 + place % 32] |= (int(w) + 1) << (6 - 2 * (place // 32))
    return bytes(out) + np.float32(scale).tobytes() + b"\xee" * 28


def raw(data):
    return np.frombuffer(bytes(data), dtype=np.uint8)


class Tensors(unittest.TestCase):
    def test_i2_s_byte(self):
        """Byte 0x92 at p holds +1, 0, -1, +1 at p, p+32, p+64, p+96."""
        data = bytearray(b"\x55" * 32 + np.float32(0.5).tobytes() + b"\xff" * 28)
        data[7] = 0x92
        weights, scale = tensors.ternary(raw(data), 1, 128)
        self.assertEqual(scale, 0.5)
        expected = np.zeros(128)
        expected[[7, 71, 103]] = [1, -1, 1]
        np.testing.assert_array_equal(weights[0], expected)

    def test_i2_s_matrix(self):
        w = ternary_matrix()
        packed = pack_i2_s(w, 0.75)
        self.assertEqual(short_hash(packed[:256]), "1b145e38bb894280")
        np.testing.assert_array_equal(tensors.decode(tensors.I2_S, raw(packed), 4, 256), w * 0.75)

    def test_i2_s_rejects(self):
        with self.assertRaises(ValueError):
            tensors.ternary(raw(b"\xc0" + b"\x55" * 63), 1, 128)
        with self.assertRaises(ValueError):
            tensors.ternary(raw(b"\x55" * 48), 1, 64)

    def check_blocks(self, kind, first, digest, scales):
        """Four blocks of random codes under fixed scales, one of them subnormal; `scales` are the
        places of a block's half-precision fields."""
        fmt = tensors.FORMATS[kind]
        data = bytearray(u & 255 for u in generator(12345, 4 * fmt.bytes))
        for block, bits in enumerate([0x3C00, 0x2E66, 0xB800, 0x0001]):
            for at in scales:
                start = block * fmt.bytes + at
                data[start : start + 2] = bits.to_bytes(2, "little")
        values = tensors.decode(kind, raw(data), 4, fmt.elements)
        self.assertEqual(values[0, :3].tolist(), first)
        self.assertEqual(short_hash((values + 0.0).astype("<f4").tobytes()), digest)

    def test_tq(self):
        self.check_blocks(tensors.TQ1_0, [1, -1, 0], "79d0e282b0a4fffd", [52])
        self.check_blocks(tensors.TQ2_0, [-1, -1, 0], "a4ec5d25bbb2db84", [64])

    def test_groups(self):
        self.check_blocks(tensors.Q1_0, [1, -1, 1], "10c19fcb3a381eb4", [0])
        self.check_blocks(tensors.Q2_0, [0, 0, 1], "91dab997936ba4a7", [0])
        self.check_blocks(tensors.PQ2_0, [0, 0, 1], "436c83e790fec557", [0])
        self.check_blocks(tensors.PTQ1_0, [1, -1, 0], "a0312a323192e463", [26])

    def test_quads(self):
        self.check_blocks(tensors.STQ1_0, [1, 1, 1], "40e9150c24a8d159", [40])

    def test_row_scales(self):
        block = b"\x56" + b"\x55" * 63
        mixed = raw(block + b"\x00\x3c" + block + b"\x00\x38")
        self.assertEqual(tensors.row_scales(tensors.TQ2_0, mixed, 2, 256)[1].tolist(), [1, 0.5])
        self.assertIsNone(tensors.row_scales(tensors.TQ2_0, mixed, 1, 512))
        zero = raw(block + b"\x00\x3c" + b"\x55" * 64 + b"\x00\x38")
        self.assertEqual(tensors.row_scales(tensors.TQ2_0, zero, 1, 512)[1].tolist(), [1])

    def test_q4_0(self):
        self.check_blocks(tensors.Q4_0, [-3, 2, 7], "57d300d4d5a74244", [0])

    def test_q4_1(self):
        self.check_blocks(tensors.Q4_1, [16, 14, 14], "8707e9dfd6ce1aae", [0, 2])

    def test_q5_0(self):
        self.check_blocks(tensors.Q5_0, [13, -6, 10], "1a93e284115ccee8", [0])

    def test_q8_0(self):
        self.check_blocks(tensors.Q8_0, [101, -86, 31], "79a0957593836c3e", [0])

    def test_q4_k(self):
        self.check_blocks(tensors.Q4_K, [253, 346, 377], "781a842aba8bceb4", [0, 2])

    def test_q5_k(self):
        self.check_blocks(tensors.Q5_K, [625, 129, 842], "00ab388e1b629349", [0, 2])

    def test_iq2_s(self):
        self.check_blocks(tensors.IQ2_S, [40.625, -69.875, 40.625], "9eddf1d055eab480", [0])

    def test_grids(self):
        self.check_blocks(tensors.IQ2_XXS, [-29, 29, -90.625], "20d878d2b210094b", [0])
        self.check_blocks(tensors.IQ2_XS, [-17, 17, -53.125], "f03d34b9ae9b3d7a", [0])
        self.check_blocks(tensors.IQ3_XXS, [15, 75, 15], "e1ada81fdd60cdec", [0])
        self.check_blocks(tensors.IQ3_S, [35, -7, -105], "6de62f4d5e116215", [0])
        self.check_blocks(tensors.IQ1_S, [-16.875, 13.125, 13.125], "59cefa136c0ecd7c", [0])

    def test_iq1_m(self):
        """Checks as check_blocks does, but a scale is four nibbles."""
        data = bytearray(u & 255 for u in generator(12345, 4 * 56))
        for block, bits in enumerate([0x3C00, 0x2E66, 0xB800, 0x0001]):
            for i in range(4):
                at = 56 * block + 49 + 2 * i
                data[at] = data[at] & 15 | (bits >> 4 * i & 15) << 4
        values = tensors.decode(tensors.IQ1_M, raw(data), 4, 256)
        self.assertEqual(values[0, :3].tolist(), [9.625, -1.375, -12.375])
        self.assertEqual(short_hash((values + 0.0).astype("<f4").tobytes()), "f8b853bda7bd19cc")

    def test_q6_k(self):
        self.check_blocks(tensors.Q6_K, [-3024, -432, -2268], "3f4e033b5e6ebe92", [208])

    def test_bf16(self):
        values = tensors.decode(tensors.BF16, raw(b"\x80\x3f\x49\xc0"), 1, 2)
        self.assertEqual(values.tolist(), [[1.0, -3.140625]])

    def test_sizes(self):
        self.assertEqual(tensors.byte_size(tensors.I2_S, 2560, 2560), 1638432)
        self.assertEqual(tensors.byte_size(tensors.Q4_1, 2, 64), 80)
        with self.assertRaises(ValueError):
            tensors.byte_size(tensors.Q8_0, 2, 48)


class Quantization(unittest.TestCase):
    def test_ties_to_even(self):
        q, s = forward.quantize_token(np.array([[0.5, -1, 0.25, 0.0078125]]))
        self.assertEqual((q.tolist(), s.item()), ([[64, -127, 32, 1]], 127))
        q, _ = forward.quantize_token(np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 62.5, 127]]))
        self.assertEqual(q.tolist(), [[0, 2, 2, 0, -2, 62, 127]])

    def test_small_rows(self):
        q, s = forward.quantize_token(np.array([[1e-7, 0], [0, 0]]))
        self.assertEqual(q.tolist(), [[1, 0], [0, 0]])
        self.assertEqual(s.tolist(), [[12700000], [12700000]])

    def test_product(self):
        """Integers and result bits of a published example, to float32's last place."""
        x = [(u & 255) - 128 for u in generator(54321, 256)]
        x = np.array([max(v, -127) for v in x], dtype=np.float32) * np.float32(0.013)
        q, s = forward.quantize_token(x.reshape(1, -1))
        self.assertEqual(np.float32(s.item()).tobytes().hex(), "9dd89942")
        self.assertEqual(q.sum(), -523)
        self.assertEqual(short_hash(q.astype(np.int8).tobytes()), "d5423ae2de0cc478")
        np.testing.assert_array_equal(q @ ternary_matrix().T, [[101, 247, 111, 1259]])
        w = _Matrix(tensors.I2_S, 4, 256, raw(pack_i2_s(ternary_matrix(), 0.75)))
        y = forward.matmul(w, x.reshape(1, -1))
        np.testing.assert_allclose(y, [[0.98475003, 2.40825, 1.0822501, 12.27525]], rtol=2e-7)

    def test_blocks(self):
        x = np.zeros((1, 64))
        x[0, :4] = [127, 0.5, 1.5, -2.5]
        np.testing.assert_array_equal(forward.quantize_blocks(x)[0, :4], [127, 0, 2, -2])
        np.testing.assert_array_equal(forward.quantize_blocks(x)[0, 32:], np.zeros(32))
        x[0, 32] = 1e-3  # the second block has a scale of its own
        np.testing.assert_allclose(forward.quantize_blocks(x)[0, 32], 1e-3, rtol=1e-6)

    def test_precisions(self):
        x = np.array([[448.0, 17.0, 19.0, 0.75 * 2**-9, 2.0**-10, -0.3]])
        y = forward.round_activations(x, "fp8")
        np.testing.assert_array_equal(y, [[448, 16, 20, 2**-9, 0, -0.3125]])
        y = forward.round_activations(2 * x + [[2, 0, 0, 0, 0, 0]], "fp8")  # beyond 2 * 448
        np.testing.assert_array_equal(y[0, :3], [896, 32, 40])
        y = forward.round_activations(x, "fp8-e5m2")
        np.testing.assert_array_equal(y, [[448, 16, 20, 0.75 * 2**-9, 2**-10, -0.3125]])
        y = forward.round_activations(np.array([[1 + 2**-8, 1 + 3 * 2**-8, 1e-41]]), "bf16")
        np.testing.assert_array_equal(y[0, :2], [1, 1 + 2**-6])
        y = forward.round_activations(np.array([[1 + 2**-11, 65519.0]]), "fp16")
        np.testing.assert_array_equal(y, [[1, 65504]])

    def test_cache(self):
        np.testing.assert_array_equal(
            forward.store(np.array([1 + 2**-11, 5e-8]), "f16"), [1, 2**-24]
        )
        self.assertEqual(forward.store(np.array([0.1]), "f32")[0], np.float32(0.1))


class _Matrix:
    """A weight matrix that is in no file."""

    def __init__(self, kind, rows, cols, data):
        self.kind, self.rows, self.cols, self.raw = kind, rows, cols, data


class Operations(unittest.TestCase):
    def test_rope(self):
        x = np.array([1.0, 2, 3, 4]).reshape(1, 1, 4)
        angles = forward.rope_angles([1], 4, 10000.0)
        np.testing.assert_allclose(
            forward.rope(x, angles, "norm")[0, 0],
            [-1.142640, 1.922076, 2.959851, 4.029800],
            atol=1e-6,
        )
        np.testing.assert_allclose(
            forward.rope(x, angles, "neox")[0, 0],
            [-1.984111, 1.959901, 2.462378, 4.019800],
            atol=1e-6,
        )

    def test_rope_partial(self):
        """Dimensions behind n_rot pass through; factors divide and scale multiplies the angle."""
        x = np.array([1.0, 0, 7, 8]).reshape(1, 1, 4)
        angles = forward.rope_angles([6], 2, 10000.0, np.array([3.0]), 0.5)
        np.testing.assert_allclose(
            forward.rope(x, angles, "norm")[0, 0], [math.cos(1), math.sin(1), 7, 8]
        )

    def test_activations(self):
        np.testing.assert_array_equal(forward.relu2(np.array([-1.0, 3])) * [5, 2], [0, 18])
        np.testing.assert_allclose(forward.silu(np.array([0.0, 1])), [0, 0.7310585786300049])

    def test_rmsnorm(self):
        y = forward.rmsnorm(np.array([[3.0, 4]]), np.array([1.0, 10]), 0.0)
        np.testing.assert_allclose(y, [[3 / math.sqrt(12.5), 40 / math.sqrt(12.5)]])

    def test_attention(self):
        """Two query heads share a key head; position 0 sees itself only."""
        q = np.array([[[9.0], [9]], [[0], [math.log(3)]]])
        k = np.array([[[0.0]], [[1]]])
        v = np.array([[[4.0]], [[8]]])
        np.testing.assert_allclose(forward.attention(q, k, v), [[4, 4], [6, 7]])

    def test_attention_over_halves(self):
        """Weights to 13 bits beside the largest of their 64 positions, queries too."""
        np.testing.assert_array_equal(
            forward.thirteen_bits(np.array([1 + 2**-13, 1 + 3 * 2**-13, -2 + 2**-14, 0.0])),
            [1, 1 + 2**-11, -2, 0],
        )
        scores = np.full((1, 1, 65), -np.inf)
        scores[0, 0, [0, 1, 64]] = 0, math.log(1 / 3), math.log(0.5 / 3)
        e = forward.weights_to_13_bits(scores)
        third = 5461 / 2**14  # 1/3 to 13 bits
        np.testing.assert_allclose(e[0, 0, [0, 1, 2, 64]], [1, third, 0, 0.5 / 3], rtol=1e-15)
        q = np.array([[[9.0]], [[1 + 2**-13]]])  # the second one rounds to 1
        k = np.array([[[0.0]], [[-7]]])
        v = np.array([[[0.0]], [[1]]])
        got = forward.attention(q, k, v, "f16", scale=1.0)
        weight = forward.thirteen_bits(math.exp(-7))
        np.testing.assert_allclose(got, [[0], [weight / (1 + weight)]], rtol=1e-12)

    def test_attention_over_codes(self):
        """Weights 1/2 and 1/2, times scales 1 and 2: 16,384 and 32,767 of 32,767, ties to even."""
        zero = np.zeros((2, 1, 1))
        v = np.array([[[127.0]], [[254.0]]])
        got = forward.attention(zero, zero, v, "q8_0")
        np.testing.assert_allclose(got, [[127], [127 * (16384 + 32767) / 32767]])


class WholeModel(unittest.TestCase):
    """One layer with weights simple enough to follow by hand."""

    WIDTH, VOCABULARY = 4, 3

    def write(self, path, arch, extra=()):
        w = gguf.GGUFWriter(path, arch)
        w.add_block_count(1)
        w.add_embedding_length(self.WIDTH)
        w.add_head_count(2)
        w.add_head_count_kv(1)
        w.add_layer_norm_rms_eps(1e-12)  # keeps the norm of a zero row zero
        embedding = np.eye(self.VOCABULARY, self.WIDTH, dtype=np.float32)
        shapes = {"attn_q": (4, 4), "attn_k": (2, 4), "attn_v": (2, 4), "attn_output": (4, 4)}
        shapes |= {"ffn_gate": (6, 4), "ffn_up": (6, 4), "ffn_down": (4, 6)}
        content = {f"blk.0.{k}.weight": np.zeros(s, dtype=np.float32) for k, s in shapes.items()}
        norms = {"attn_norm": 4, "ffn_norm": 4, "attn_sub_norm": 4, "ffn_sub_norm": 6}
        if arch == "llama":
            norms = {"attn_norm": 4, "ffn_norm": 4}
        content |= {f"blk.0.{k}.weight": np.ones(n, dtype=np.float32) for k, n in norms.items()}
        content |= {"token_embd.weight": embedding, "output_norm.weight": np.ones(4, np.float32)}
        for name, value in (content | dict(extra)).items():
            w.add_tensor(name, value)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()

    def logits(self, arch, extra=(), noise=None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.gguf")
            self.write(path, arch, extra)
            return forward.Model(Container(path), noise).logits([0, 2])

    def test_residual_alone(self):
        """Zero matrices: the logits are the normed embedding, 1 / sqrt(1/4) = 2."""
        np.testing.assert_allclose(self.logits("llama"), [[2, 0, 0], [0, 0, 2]])

    def test_noise(self):
        noisy = self.logits("llama", noise=np.random.default_rng(1))
        np.testing.assert_allclose(noisy, [[2, 0, 0], [0, 0, 2]], rtol=1e-5)
        self.assertFalse((noisy == self.logits("llama")).all())

    def test_feed_forward(self):
        """Gate and up see 2 in the token's dimension; down adds their product to dimension 1."""
        ones = np.zeros((6, 4), dtype=np.float32)
        ones[0, 0] = 1
        down = np.zeros((4, 6), dtype=np.float32)
        down[1, 0] = 1
        extra = {"ffn_gate": ones, "ffn_up": ones, "ffn_down": down}
        extra = {f"blk.0.{k}.weight": v for k, v in extra.items()}
        t = 2 / (1 + math.exp(-2)) * 2
        h = np.array([1, t, 0, 0])
        expected = (h / math.sqrt((h * h).mean()))[:3]
        np.testing.assert_allclose(self.logits("llama", extra)[0], expected)

    def test_attention_output(self):
        """Values are the normed embedding; both heads of the sub-norm are seen by attn_output."""
        value = np.eye(2, 4, dtype=np.float32)
        output = np.zeros((4, 4), dtype=np.float32)
        output[1, 2] = 1  # from the second head's first dimension
        gain = np.array([1, 1, 3, 1], dtype=np.float32)
        extra = {"attn_v": value, "attn_output": output, "attn_sub_norm": gain}
        extra = {f"blk.0.{k}.weight": v for k, v in extra.items()}
        o = 3 * 2 / math.sqrt(2)  # heads (2, 0) and (2, 0): mean square 2
        h = np.array([1, o, 0, 0])
        expected = (h / math.sqrt((h * h).mean()))[:3]
        np.testing.assert_allclose(self.logits("bitnet-b1.58", extra)[0], expected)

    def test_heads(self):
        """llama uses output.weight where there is one, bitnet never does."""
        other = {"output.weight": np.ones((3, 4), dtype=np.float32)}
        np.testing.assert_allclose(self.logits("llama", other)[0], [2, 2, 2])
        np.testing.assert_allclose(self.logits("bitnet", other)[0], [2, 0, 0])

    def test_unknown_tensor(self):
        for arch, name in (("llama", "blk.0.ffn_up.bias"), ("bitnet", "blk.0.attn_q.bias")):
            with self.assertRaisesRegex(ValueError, name):
                self.logits(arch, {name: np.ones(6, dtype=np.float32)})

    def test_bias(self):
        """A value that is all bias; attn_output moves it into dimension 1."""
        output = np.zeros((4, 4), dtype=np.float32)
        output[1, 2] = 1  # the second head's first dimension
        bias = np.array([0.5, 9], dtype=np.float32)
        extra = {"blk.0.attn_output.weight": output, "blk.0.attn_v.bias": bias}
        h = np.array([1, 0.5, 0, 0])
        expected = (h / math.sqrt((h * h).mean()))[:3]
        np.testing.assert_allclose(self.logits("llama", extra)[0], expected)

    def test_unknown_architecture(self):
        with self.assertRaisesRegex(ValueError, "gemma"):
            self.logits("gemma")


class Comparison(unittest.TestCase):
    def test_figures(self):
        a = np.array([[1.0, 0], [0, 2]])
        b = np.array([[1.0, 0], [2, 0]])
        result = oracle.figures(a, b)
        np.testing.assert_allclose(result["cosine"], [1, 0])
        self.assertEqual((result["max_abs"], result["top1"]), (2, 0.5))

    def test_size(self):
        with tempfile.NamedTemporaryFile() as file:
            np.zeros(5, dtype="<f4").tofile(file.name)
            with self.assertRaisesRegex(ValueError, "5 floats"):
                oracle.read_logits(file.name, (2, 3))


if __name__ == "__main__":
    suite.main()
