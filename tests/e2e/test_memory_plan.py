# SPDX-License-Identifier: Apache-2.0
"""The memory that tern inspect plans, for models of real geometry whose weights are holes in a file."""

import tempfile
from pathlib import Path

import common
import gguf_edit
from common import tern_json, tern_text
from gguf_edit import u32

MIB = 1 << 20
F32, F16, Q4_0, Q8_0, I2_S = 0, 1, 2, 8, 36

# layers, width, ffn, heads, key/value heads, head dimension, vocabulary, context
BITNET_2B = (30, 2560, 6912, 20, 5, 128, 128256, 4096)
GEMMA_270M = (18, 640, 2048, 4, 1, 256, 262144, 32768)  # Gemma 3 270M: every sixth layer sees all, others 512
QWEN_500M = (24, 896, 4864, 14, 2, 64, 151936, 32768)  # Qwen 2.5 0.5B


def size(kind, elements):
    """Bytes of a tensor in the file."""
    block = {I2_S: (4, 1), F16: (1, 2), Q4_0: (32, 18), Q8_0: (32, 34), F32: (1, 4)}[kind]
    trailer = 32 if kind == I2_S else 0
    return elements // block[0] * block[1] + trailer


def head_dim(file, arch):
    key = f"{arch}.attention.key_length"
    if key in file:
        return file.number(key)
    return file.number(f"{arch}.embedding_length") // file.number(f"{arch}.attention.head_count")


def stretched(template, path, geometry, **more):
    """A tiny model's metadata and tensors in another geometry. The file has a size and no weights but for the
    number that each tensor begins with: no two are equal, so each takes memory."""
    layers, width, ffn, heads, kv_heads, dim, vocabulary, context = geometry
    file = gguf_edit.read(template)
    arch = file.text("general.architecture")
    old_dim = head_dim(file, arch)
    old = {
        file.number(f"{arch}.attention.head_count") * old_dim: heads * dim,
        file.number(f"{arch}.embedding_length"): width,
        file.number(f"{arch}.feed_forward_length"): ffn,
        file.number(f"{arch}.attention.head_count_kv") * old_dim: kv_heads * dim,
        file.tensor("token_embd.weight").ne[1]: vocabulary,
    }
    numbers = {
        "block_count": layers,
        "embedding_length": width,
        "feed_forward_length": ffn,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": dim,
        "attention.value_length": dim,
        "rope.dimension_count": dim,
        "vocab_size": vocabulary,
        "context_length": context,
    }
    for name, number in {**numbers, **more}.items():
        if f"{arch}.{name}" in file:
            file[f"{arch}.{name}"] = u32(number)
    for name in [key for key, _, _ in file.keys if key.startswith("tokenizer.")]:
        del file[name]
    block = [t for t in file.tensors if t.name.startswith("blk.0.")]
    rest = [t for t in file.tensors if not t.name.startswith("blk.")]
    tensors, offset = [], 0
    for layer in range(layers):
        for t in block:
            tensors.append((t.name.replace("blk.0.", f"blk.{layer}."), t))
    tensors += [(t.name, t) for t in rest]
    file.tensors = []
    for name, t in tensors:
        ne = [old[n] for n in t.ne]
        elements = ne[0] * (ne[1] if len(ne) > 1 else 1)
        file.tensors.append(gguf_edit.Tensor(name, ne, t.kind, b"", offset))
        offset += -(-size(t.kind, elements) // 32) * 32
    head = file.to_bytes()
    with open(path, "wb") as out:
        out.write(head)
        out.truncate(len(head) + offset)
        for number, tensor in enumerate(file.tensors):
            out.seek(len(head) + tensor.offset)
            out.write(number.to_bytes(2, "little"))
    return path


class MemoryPlan(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        bitnet, qwen = (common.synth(p, folder) for p in ("bitnet-tiny", "qwen2-tiny"))
        cls.bitnet = stretched(bitnet, folder / "2b.gguf", BITNET_2B)
        cls.qwen = stretched(qwen, folder / "500m.gguf", QWEN_500M)
        windows = {"attention.sliding_window": 512, "attention.sliding_window_pattern": 6}
        cls.gemma = stretched(common.synth("gemma3-tiny", folder), folder / "270m.gguf", GEMMA_270M, **windows)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def plan(self, model, *options):
        return tern_json("inspect", model, *options)["memory"]

    def test_2b(self):
        """The plan stays within 1 GB, for every position that the model was trained for and every format."""
        for kv, row in (("f16", 256), ("f32", 512), ("q8_0", 136), ("int8", 136)):
            with self.subTest(kv=kv):
                plan = self.plan(self.bitnet, "--kv", kv)
                self.assertEqual(plan["n_ctx"], 4096)
                self.assertEqual(plan["kv_cache"], 2 * 30 * 5 * 4096 * row)
                self.assertEqual(plan["kv"], "q8_0" if kv == "int8" else kv)
                self.assertLessEqual(plan["kv_cache"], 10**9)
        self.assertEqual(self.plan(self.bitnet)["kv_cache"], 300 * MIB)

    def test_500m(self):
        """The plan stays within 512 MB: with 4096 positions in every format, with all 32768 in f16."""
        for kv, row in (("f16", 128), ("f32", 256), ("q8_0", 68)):
            self.assertEqual(self.plan(self.qwen, "--kv", kv)["kv_cache"], 2 * 24 * 2 * 4096 * row)
            self.assertLessEqual(self.plan(self.qwen, "--kv", kv)["kv_cache"], 512 * 10**6)
        full = self.plan(self.qwen, "-c", 32768)
        self.assertEqual(full["n_ctx"], 32768)
        self.assertEqual(full["kv_cache"], 384 * MIB)
        self.assertLessEqual(full["kv_cache"], 512 * 10**6)

    def test_windows(self):
        """Layers with a window keep the positions that it sees beside a pass of 128 tokens, and two pages more."""
        for context in (32768, 4096):
            plan = self.plan(self.gemma, "-c", context)
            self.assertEqual(plan["kv_cache"], 2 * (3 * context + 15 * 768) * 256 * 2)
            self.assertEqual(plan["needed"], sum(plan[part] for part in ("in_place", "packed", "kv_cache", "scratch")))
        self.assertEqual(self.plan(self.gemma, "-c", 640)["kv_cache"], 2 * 18 * 640 * 256 * 2)
        text = tern_text("inspect", self.gemma, "-c", 32768)
        self.assertIn("107.2 MiB  key/value cache in f16", text)
        self.assertIn("2 x (3 layers x 32768 positions + 15 with a window x 768) x 1 heads x 256 x 2 bytes", text)

    def test_states(self):
        """Delta nets have no keys and values; their states take the same memory in any context."""
        model = common.synth("qwen35-tiny", Path(self.folder.name))
        states = 2 * 4 * (3 * (2 * 2 + 4) * 40 + 4 * 40 * 40)  # layers, bytes, rows of channels, matrices
        for context in (64, 512):
            plan = self.plan(model, "-c", context)
            self.assertEqual(plan["kv_cache"], 2 * context * 2 * 32 * 2)
            self.assertLessEqual(states, plan["states"])
            self.assertLess(plan["states"], states + 256)  # where lines begin
        self.assertIn("states of 2 gated delta nets", tern_text("inspect", model))
        found = tern_json("plan", "-m", model, "--ctx", 100, "--bus", "40", "--tops", "3", "--json")["model"]
        self.assertEqual(found["cache_bytes_per_position"], 2 * 2 * 32 * 2)
        self.assertEqual(found["state_bytes"], plan["states"])

    def test_sums(self):
        """The parts follow from the geometry, and they add up."""
        plan = self.plan(self.bitnet)
        layers, width, ffn, heads, kv_heads, dim, vocabulary, _ = BITNET_2B
        matrices = layers * (2 * width * heads * dim + 2 * width * kv_heads * dim + 3 * width * ffn)
        vectors = layers * (2 * width + heads * dim + ffn) + width
        image = vocabulary * (width + 3 * 4)  # the head in int8, three floats a row
        self.assertGreaterEqual(plan["packed"], matrices // 4 + image)
        self.assertLess(plan["packed"], 1.02 * matrices / 4 + image + 4 * vectors)
        self.assertEqual(plan["in_place"], 2 * width * vocabulary)
        parts = ("in_place", "packed", "kv_cache", "scratch")
        self.assertEqual(plan["needed"], sum(plan[part] for part in parts))
        self.assertEqual(plan["file"], self.bitnet.stat().st_size)
        self.assertGreater(plan["available"], 0)
        self.assertEqual(plan["fits"], plan["needed"] <= plan["available"])

    def test_list(self):
        """The list says what each tensor becomes, and memory is planned by the same list."""
        shown = tern_json("inspect", self.bitnet)
        weights, plan = shown["weights"], shown["memory"]
        self.assertEqual(sum(t["bytes"] for t in weights), plan["packed"])
        self.assertEqual(sum(t["file_bytes"] for t in weights), plan["in_place"])
        self.assertEqual([t["offset"] for t in weights], sorted(t["offset"] for t in weights))
        self.assertEqual(len(weights), 1 + 1 + sum(t["tensors"] for t in shown["tensors"]))  # a head, an image
        self.assertEqual({t["place"] for t in weights if t["what"] == "matrix"}, {"memory", "equal"})
        self.assertEqual({t["layout"] for t in weights if t["what"] == "image"}, {"int8r16"})
        text = tern_text("inspect", self.bitnet, "--no-tune")
        self.assertRegex(text, r"\n +210 matrix +i2_s +memory +t2r16 +\d+\.\d MiB +tern_gemv_\w+, tern_gemm_\w+\n")

    def test_text(self):
        text = tern_text("inspect", self.bitnet, "--ctx", 2048)
        self.assertIn("2 x 30 layers x 5 heads x 2048 positions x 128 x 2 bytes", text)
        self.assertIn("150.0 MiB  key/value cache in f16", text)
        text = tern_text("inspect", self.bitnet, "--kv", "q8_0")
        self.assertIn("159.4 MiB  key/value cache in q8_0", text)
        self.assertIn("4096 positions x 4 blocks of 34 bytes", text)
        self.assertIn("available here and now", text)
        self.assertNotIn("warning", text)

    def test_too_large(self):
        """A model that does not fit is reported before anything is allocated."""
        path = Path(self.folder.name) / "large.gguf"
        template = common.synth("bitnet-tiny", self.folder.name)
        geometry = (10, 4096, 16384, 32, 32, 128, 128256, 1 << 20)
        stretched(template, path, geometry)
        options = ("--ctx", 1 << 20, "--kv", "f32")
        self.assertFalse(self.plan(path, *options)["fits"])
        text = tern_text("inspect", path, *options)
        self.assertRegex(text, r"\nwarning +[0-9.]+ MiB  are missing")


if __name__ == "__main__":
    common.main()
