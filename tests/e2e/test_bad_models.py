# SPDX-License-Identifier: Apache-2.0
"""Files that are not the model they claim to be: one line, status 1, nothing on standard output.

Each case changes one thing in a correct model with random weights.
"""

import math
import struct
import tempfile
from pathlib import Path

import common
import gguf_edit
from common import tern
from gguf_edit import f32, i32s, string, strings, u32, u64

HUGE = 2**63
F32, Q8_0, Q8_K, I2_S = 0, 8, 15, 36


class BadModels(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.bytes = common.synth("bitnet-tiny", cls.folder.name).read_bytes()
        cls.file = gguf_edit.parse(cls.bytes)
        cls.arch = cls.file.text("general.architecture")
        cls.path = Path(cls.folder.name) / "bad.gguf"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def fresh(self):
        return gguf_edit.parse(self.bytes)

    def logits(self, data):
        self.path.write_bytes(data)
        return tern("logits", "-m", self.path, "--tokens", "1,2,3", "--sha256")

    def run_text(self, data):
        self.path.write_bytes(data)
        return tern("run", "-m", self.path, "-p", "hello", "-n", 1)

    def refused(self, data, *words, use=None):
        """words: what the message must name besides the file."""
        result = (use or self.logits)(data)
        self.assert_one_line_error(result, contains=["bad.gguf", *words])

    def edited(self, edit, *words, use=None, alignment=None):
        file = self.fresh()
        edit(file)
        self.refused(file.to_bytes(alignment), *words, use=use)

    # ---- the base ----

    def test_unchanged(self):
        """The editor gives the file back byte for byte, and tern accepts it."""
        self.assertEqual(self.fresh().to_bytes(), self.bytes)
        for use in (self.logits, self.run_text):
            result = use(self.bytes)
            self.assertEqual(result.returncode, 0, result.stderr)

    # ---- the container ----

    def test_truncated(self):
        cuts = {0, 1, len(self.bytes) // 2, len(self.bytes) - 64}
        for at in self.file.boundaries:
            cuts |= {at - 1, at, at + 1}
        for cut in sorted(cuts):
            with self.subTest(bytes=cut, of=len(self.bytes)):
                self.refused(self.bytes[:cut])

    def test_header(self):
        def header(magic=b"GGUF", version=3, tensors=1, keys=1):
            return struct.pack("<4sIQQ", magic, version, tensors, keys) + self.bytes[24:]

        for data in (
            header(magic=b"GGML"),
            header(magic=b"FUGG"),
            header(version=0),
            header(version=1),
            header(version=4),
            header(version=0x03000000),
            header(tensors=HUGE),
            header(keys=HUGE),
            header(tensors=2**40),
            header(keys=2**32),
            header(tensors=0, keys=0),
            b"\0" * 4096,
            b"not a model at all\n" * 100,
        ):
            with self.subTest(header=data[:24]):
                self.refused(data)

    def test_counts(self):
        for difference in (-1, 1):
            with self.subTest(difference=difference):
                file = self.fresh()
                file.n_tensors = len(file.tensors) + difference
                self.refused(file.to_bytes())
                file = self.fresh()
                file.n_keys = len(file.keys) + difference
                self.refused(file.to_bytes())

    def test_key_name_length(self):
        for length in (HUGE, 2**64 - 1, 2**40, len(self.bytes)):
            with self.subTest(length=length):
                self.refused(self.bytes[:24] + struct.pack("<Q", length) + self.bytes[32:])

    def test_arrays(self):
        def array(element, count, data=b""):
            return gguf_edit.ARRAY, struct.pack("<IQ", element, count) + data

        for value in (
            array(gguf_edit.U32, HUGE),
            array(gguf_edit.U32, 2**62),
            array(gguf_edit.STRING, 2**61),
            array(gguf_edit.STRING, 1, struct.pack("<Q", 2**64 - 1)),
            array(gguf_edit.ARRAY, 1, struct.pack("<IQ", 4, 0)),
            array(13, 1, b"\0"),
            (13, b"\0"),
            (2**32 - 1, b""),
            (gguf_edit.BOOL, b"\2"),
        ):
            with self.subTest(value=value):
                self.edited(lambda f, v=value: f.__setitem__("general.extra", v), "general.extra")

    def test_duplicate_key(self):
        name = f"{self.arch}.block_count"
        self.edited(lambda f: f.keys.append([name, *u32(2)]), name)

    def test_alignment(self):
        for value in (0, 3, 2**31, 2**32 - 1):
            with self.subTest(alignment=value):
                self.edited(
                    lambda f, v=value: f.__setitem__("general.alignment", u32(v)),
                    "alignment",
                    alignment=32,
                )
        self.edited(
            lambda f: f.__setitem__("general.alignment", string("32")), "alignment", alignment=32
        )

    # ---- the configuration ----

    def set_key(self, key, value, *words):
        key = key.replace("ARCH", self.arch)
        self.edited(lambda f: f.__setitem__(key, value), *words)

    def test_architecture(self):
        for name in ("oak", "", "llama2", "x" * 300):
            with self.subTest(name=name):
                known = ("llama, ", "qwen2, ", "qwen3, ", "bitnet-b1.58, ", "bitnet-25, ", "bitnet)")
                self.set_key("general.architecture", string(name), *known)

    def test_geometry_of_2b(self):
        """Keys that a bitnet file lacks have the values of BitNet b1.58 2B4T: they are shown where they fit this file,
        and named where they do not."""
        file = self.fresh()
        for key in ("context_length", "rope.freq_base", "attention.layer_norm_rms_epsilon"):
            del file[f"{self.arch}.{key}"]
        path = Path(self.folder.name) / "silent.gguf"
        path.write_bytes(file.to_bytes())
        self.assertEqual(common.tern_json("inspect", path)["geometry"]["n_ctx_train"], 4096)
        for key, value in (("rope.freq_base", 500000.0), ("attention.layer_norm_rms_epsilon", 1e-5)):
            file[f"{self.arch}.{key}"] = gguf_edit.f32(value)
        file[f"{self.arch}.context_length"] = gguf_edit.u32(4096)
        named = path.with_name("named.gguf")
        named.write_bytes(file.to_bytes())
        arguments = ("--tokens", "1,2,3,4,5,6,7,8", "--sha256")
        answers = {common.tern_text("logits", "-m", p, *arguments) for p in (path, named)}
        self.assertEqual(len(answers), 1)
        self.edited(lambda f: f.__delitem__(f"{self.arch}.embedding_length"), "2560")
        self.edited(lambda f: f.__delitem__(f"{self.arch}.feed_forward_length"), "6912")
        self.edited(lambda f: f.__delitem__(f"{self.arch}.block_count"), "blk.2.")

    def test_missing_keys(self):
        """llama has no values to fall back to; those of bitnet do not fit this file."""
        llama = common.synth("llama-tiny-q8_0", self.folder.name).read_bytes()
        for key in (
            "general.architecture",
            "llama.block_count",
            "llama.embedding_length",
            "llama.feed_forward_length",
            "llama.context_length",
            "llama.attention.head_count",
            "llama.attention.layer_norm_rms_epsilon",
        ):
            with self.subTest(key=key):
                file = gguf_edit.parse(llama)
                del file[key]
                self.refused(file.to_bytes(), key)
        for key in ("block_count", "embedding_length", "feed_forward_length"):
            with self.subTest(key=key):
                self.edited(lambda f, k=key: f.__delitem__(f"{self.arch}.{k}"))

    def test_unused_tensors(self):
        """A tensor of a block that has no place in the graph means that the file has another graph."""
        llama = common.synth("llama-tiny-q8_0", self.folder.name).read_bytes()
        for name in (
            "attn_sub_norm.weight",
            "ffn_sub_norm.weight",
            "attn_q_norm.weight",
            "attn_output.bias",
            "ffn_gate_inp.weight",
            "attn_post_norm.weight",
        ):
            with self.subTest(name=name):
                file = gguf_edit.parse(llama)
                vector = gguf_edit.Tensor(f"blk.0.{name}", [96], F32, bytes(4 * 96))
                file.tensors.append(vector)
                self.refused(file.to_bytes(), vector.name)

    def test_wrong_types(self):
        for key, value in {
            "general.architecture": u32(1),
            "ARCH.block_count": string("2"),
            "ARCH.embedding_length": f32(64.0),
            "ARCH.attention.head_count": strings(["4"]),
            "ARCH.attention.layer_norm_rms_epsilon": string("small"),
            "ARCH.rope.freq_base": strings(["1"]),
        }.items():
            with self.subTest(key=key):
                self.set_key(key, value, key.replace("ARCH", self.arch))

    def test_absurd_numbers(self):
        numbers = {
            "block_count": [0, 1000000, 2**32 - 1],
            "embedding_length": [0, 1, 2**31, 2**32 - 1],
            "feed_forward_length": [0, 1, 2**32 - 1],
            "attention.head_count": [0, 7, 2**31, 2**32 - 1],
            "attention.head_count_kv": [0, 3, 5, 2**32 - 1],
            "attention.key_length": [0, 1, 2**31],
            "rope.dimension_count": [1, 7, 2**31],
            "context_length": [0],
        }
        for key, values in numbers.items():
            for value in values:
                with self.subTest(key=key, value=value):
                    self.set_key(f"ARCH.{key}", u32(value))
        self.set_key("ARCH.block_count", u64(HUGE), "block_count")

    def test_absurd_floats(self):
        for key, values in {
            "attention.layer_norm_rms_epsilon": [-1.0, math.nan, math.inf],
            "rope.freq_base": [0.0, -1.0, math.nan, math.inf],
        }.items():
            for value in values:
                with self.subTest(key=key, value=value):
                    self.set_key(f"ARCH.{key}", f32(value), key)

    # ---- the tensors ----

    def test_missing_tensors(self):
        for name in sorted({t.name for t in self.file.tensors if not t.name.startswith("blk.1.")}):
            with self.subTest(name=name):
                self.edited(lambda f, n=name: f.remove(n), name)

    def tensor(self, name, *words, **changes):
        def edit(file):
            for attribute, value in changes.items():
                setattr(file.tensor(name), attribute, value)

        self.edited(edit, *words)

    def test_types(self):
        query = "blk.0.attn_q.weight"
        for kind in (Q8_K, 4, 99, 2**32 - 1):
            with self.subTest(kind=kind):
                self.tensor(query, query, kind=kind)
        for kind in (I2_S, Q8_0, Q8_K):
            with self.subTest(norm=kind):
                self.tensor("blk.0.attn_norm.weight", "blk.0.attn_norm.weight", kind=kind)

    def test_shapes(self):
        query = "blk.0.attn_q.weight"
        cols, rows = self.file.tensor(query).ne
        for ne in (
            [],
            [0, rows],
            [cols, 0],
            [cols],
            [cols * rows],
            [rows // 2, cols * 2],
            [cols, rows, 2],
            [cols, rows, 1, 1, 1],
            [2**32, 2**32],
            [HUGE, 2],
            [2**64 - 1, 2**64 - 1],
            [cols, rows + 128],
        ):
            with self.subTest(ne=ne):
                self.tensor(query, ne=ne)
        norm = "blk.0.ffn_sub_norm.weight"
        self.tensor(norm, norm, ne=[self.file.tensor(norm).ne[0] - 32])

    def test_offsets(self):
        query = "blk.0.attn_q.weight"
        for offset in (1, 31, len(self.bytes) // 32 * 32 + 32, 2**64 - 32, HUGE, 0):
            with self.subTest(offset=offset):
                self.tensor(query, offset=offset)

    def test_duplicate_tensor(self):
        name = "blk.0.attn_norm.weight"
        self.edited(lambda f: setattr(f.tensor("blk.1.attn_norm.weight"), "name", name), name)

    def test_scales(self):
        """The one scale of a ternary tensor must be a positive finite number."""
        query = self.file.tensor("blk.0.attn_q.weight")
        self.assertEqual(query.kind, I2_S)
        at = query.ne[0] * query.ne[1] // 4
        for scale in (math.nan, math.inf, -math.inf, -1.0):
            with self.subTest(scale=scale):
                data = query.data[:at] + struct.pack("<f", scale) + query.data[at + 4 :]
                self.tensor(query.name, query.name, data=data)

    def test_block_scales(self):
        """The scale of every block must be finite too, whatever runs the model: else the answers are nonsense."""
        file = gguf_edit.read(common.synth("llama-tiny-q4_1", self.folder.name))
        for name in ("blk.1.attn_k.weight", "output.weight", "token_embd.weight"):
            tensor = file.tensor(name)
            sound = tensor.data
            for value in (math.nan, math.inf, -math.inf):
                at = (tensor.ne[0] * tensor.ne[1] // 32 - 1) * (34 if tensor.kind == Q8_0 else 20)
                tensor.data = sound[:at] + struct.pack("<e", value) + sound[at + 2 :]
                row = f"row {tensor.ne[1] - 1}, block {tensor.ne[0] // 32 - 1}"
                with self.subTest(name=name, value=value):
                    for use in (self.logits, self.run_text):
                        self.refused(file.to_bytes(), name, row, str(value), use=use)
            tensor.data = sound

    def test_code_3(self):
        query = self.file.tensor("blk.1.ffn_up.weight")
        for at in (0, 77, query.ne[0] * query.ne[1] // 4 - 1):
            for byte in (0xC0, 0x03, 0xFF):
                with self.subTest(at=at, byte=byte):
                    data = query.data[:at] + bytes([byte]) + query.data[at + 1 :]
                    self.tensor(query.name, query.name, data=data)

    def test_trailer_is_not_read(self):
        """The 28 bytes behind the scale mean nothing: NaN patterns there change no bit."""
        query = self.file.tensor("blk.0.attn_q.weight")
        at = query.ne[0] * query.ne[1] // 4 + 4
        file = self.fresh()
        file.tensor(query.name).data = query.data[:at] + b"\xff" * 28 + query.data[at + 28 :]
        self.assertEqual(self.logits(file.to_bytes()).stdout, self.logits(self.bytes).stdout)

    def test_not_a_number(self):
        """Weights that are not numbers are found at the latest in the logits."""
        norm = self.file.tensor("output_norm.weight")
        self.assertEqual(norm.kind, F32)
        file = self.fresh()
        file.tensor(norm.name).data = struct.pack("<f", math.nan) + norm.data[4:]
        self.assert_one_line_error(self.logits(file.to_bytes()))

    # ---- the tokenizer ----

    def tokenizer(self, key, value, *words):
        key = f"tokenizer.ggml.{key}"
        self.edited(lambda f: f.__setitem__(key, value), *words, use=self.run_text)

    def test_no_tokenizer(self):
        """Text cannot be run without one; token ids can."""
        file = self.fresh()
        file.keys = [entry for entry in file.keys if not entry[0].startswith("tokenizer.")]
        self.refused(file.to_bytes(), "tokenizer", use=self.run_text)
        expected = self.logits(self.bytes).stdout
        self.assertEqual(self.logits(file.to_bytes()).stdout, expected)

    def test_tokenizer_keys(self):
        for key in ("model", "tokens"):
            with self.subTest(key=key):
                name = f"tokenizer.ggml.{key}"
                self.edited(lambda f, n=name: f.__delitem__(n), key, use=self.run_text)
        self.tokenizer("model", string("wordpiece"), "wordpiece")
        self.tokenizer("pre", string("nonsense"), "nonsense")
        self.tokenizer("model", u32(1), "tokenizer.ggml.model")

    def test_tokenizer_arrays(self):
        count = self.file.tensor("token_embd.weight").ne[1]
        self.tokenizer("tokens", i32s([1] * count), "tokenizer.ggml.tokens")
        self.tokenizer("tokens", strings([]))
        self.tokenizer("tokens", strings([f"t{i}" for i in range(count + 1)]))
        self.tokenizer("token_type", i32s([1] * (count - 1)), "token_type")
        self.tokenizer("token_type", strings(["x"] * count), "token_type")
        self.tokenizer("merges", strings(["onlyone"]), "merge")
        self.tokenizer("eos_token_id", u32(count), "eos_token_id")
        self.tokenizer("bos_token_id", u32(2**31), "bos_token_id")  # 2^32 - 1 says: none

    # ---- anything ----

    def test_any_byte(self):
        """A byte of the metadata changed at random: refused in one line, or run. Never a crash."""
        end = max(at for at in self.file.boundaries[: -len(self.file.tensors)])
        state, refused = 99, 0
        for _ in range(300):
            state = state * 48271 % 2147483647
            at, flip = state % end, 1 + state // end % 255
            data = bytearray(self.bytes)
            data[at] ^= flip
            result = self.logits(bytes(data))
            with self.subTest(at=at, flip=flip):
                self.assertIn(result.returncode, (0, 1), result.stderr)
                if result.returncode:
                    self.assert_one_line_error(result)
                    refused += 1
        print(f"{refused} of 300 changed files were refused")


if __name__ == "__main__":
    common.main()
