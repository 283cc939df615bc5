# SPDX-License-Identifier: Apache-2.0
"""Models whose matrices are TL1 or TL2, the tiled files of table-lookup kernels: the logits of the
same weights in I2_S, whatever the tiles; impossible tiles are refused in one line."""

import json
import struct

import common
import gguf_edit
import weights
from common import comma, prompt, tern, tern_json, tern_text
from test_i2s_layouts import I2_S, codes_of

TL1, TL2 = 38, 39
TILES = {"tl1": "32x32x32", "tl2": "32x96"}
NAN = struct.pack("<f", float("nan"))
MATRIX = "blk.0.attn_k.weight"  # 128 x 256


def tl1_bytes(codes, rows, cols, tiles):
    """Packs element by element, by the address that docs/formats.md gives."""
    tall, wide, block = tiles
    by = 256 // block
    out = bytearray(rows * cols // 4)
    for row in range(rows):
        for p in range(cols // 2):
            at = row // tall * (cols // wide) + p // (wide // 2)
            at = at * (tall // block) + row % tall // block
            at = at * (wide // by) + p % (wide // 2) // (by // 2)
            at = at * (block // 16) + row % block // 16
            at = at * (by // 4) + p % (by // 2) // 2
            a, b = codes[row * cols + 2 * p : row * cols + 2 * p + 2]
            out[at * 16 + row % 16] |= (3 * a + b) << (0 if p % 2 else 4)
    return bytes(out)


def tl2_bytes(codes, rows, cols, tiles):
    """Returns the three sections, without the bytes between them and the scale."""
    tall, wide = tiles
    three = cols // wide * wide
    triples, pairs = bytearray(rows * three // 6), bytearray(rows * (cols - three) // 4)
    signs = [0] * (rows * three // 48)
    for row in range(rows):
        lane = [0, 2, 1, 3][row % 32 // 8] * 8 + row % 8
        tile, register, registers = row // tall, row % tall // 32, tall // 32
        for t in range(three // 3):
            a, b, c = codes[row * cols + 3 * t : row * cols + 3 * t + 3]
            value = 9 * a + 3 * b + c - 13
            at = (tile * (three // wide) + t // (wide // 3)) * registers + register
            inside = t % (wide // 3)
            byte = (at * (wide // 6) + inside // 2) * 32 + lane
            triples[byte] |= abs(value) << (0 if t % 2 else 4)
            word = (at * (wide // 24) + inside // 8) * 16 + row % 16
            signs[word] |= (value < 0) << (15 - (2 * (t % 8) + row % 32 // 16))
        for p in range((cols - three) // 2):
            a, b = codes[row * cols + three + 2 * p : row * cols + three + 2 * p + 2]
            at = (tile * ((cols - three) // 32) + p // 16) * registers + register
            pairs[(at * 8 + p % 16 // 2) * 32 + lane] |= (3 * a + b) << (0 if p % 2 else 4)
    return bytes(triples) + struct.pack(f"<{len(signs)}H", *signs) + bytes(pairs)


class TlFiles(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = common.synth("bitnet-tiny", cls.dir)
        cls.path = cls.dir / "changed.gguf"
        cls.files = {kind: cls.tiled(kind, tiles) for kind, tiles in TILES.items()}

    @classmethod
    def tiled(cls, kind, tiles, model=None):
        model = model or cls.model
        out = cls.dir / f"{model.stem}-{kind}-{tiles}.gguf"
        said = tern_json("quantize", model, out, "--type", kind, "--tl-tiles", tiles)
        outcomes = {t["outcome"] for t in said["tensors"] if t["to"] == kind}
        assert outcomes == {"lossless"}, outcomes
        return out

    def logits(self, path, *options):
        ids = prompt(20, gguf_edit.vocabulary(self.model))
        options = ("--tokens", comma(ids), "--sha256", *options)
        return tern_text("logits", "-m", path, *options).split()[0]

    def refused(self, path, *options, words, status=1):
        result = tern("logits", "-m", path, "--tokens", "1", *options)
        self.assert_one_line_error(result, contains=words, status=status)

    # ---- files that are right ----

    def test_the_same_logits_everywhere(self):
        expected = self.logits(self.model)
        for kind, path in self.files.items():
            for isa in common.runnable_isas():
                for threads in (1, 3):
                    with self.subTest(kind=kind, isa=isa, threads=threads):
                        options = ("--tl-tiles", TILES[kind], "--isa", isa, "--threads", threads)
                        self.assertEqual(self.logits(path, *options), expected)

    def test_layouts(self):
        expected = self.logits(self.model)
        for kind, path in self.files.items():
            for layout in weights.TERNARY_LAYOUTS:
                with self.subTest(kind=kind, layout=layout):
                    options = ("--tl-tiles", TILES[kind], "--layout", layout)
                    self.assertEqual(self.logits(path, *options), expected)

    def test_other_tiles(self):
        """Tiles of several sizes, and of some shapes only; blocks of 32 and of 64 rows."""
        expected = self.logits(self.model)
        shapes = "256x256=128x64x64,128x256=128x32x32,640x256=320x128x64,256x640=64x80x32"
        for kind, tiles in (("tl1", "64x64x64"), ("tl1", shapes), ("tl2", "128x96x32")):
            with self.subTest(kind=kind, tiles=tiles):
                path = self.tiled(kind, tiles)
                self.assertEqual(self.logits(path, "--tl-tiles", tiles), expected)

    def test_widths(self):
        """Matrices whose rows end inside a unit of I2_S."""
        odd = common.synth("bitnet-tiny-odd", self.dir)
        path = self.tiled("tl1", "32x32", odd)
        self.assertEqual(self.logits(path, "--tl-tiles", "32x32"), self.logits(odd))

    def test_bytes(self):
        """quantize writes these bytes exactly, and reads them back."""
        before = gguf_edit.read(self.model)
        codes, scale = codes_of(before.tensor(MATRIX)), before.tensor(MATRIX).data[8192:8196]
        for kind, number, made in (
            ("tl1", TL1, tl1_bytes(codes, 128, 256, (32, 32, 32))),
            ("tl2", TL2, tl2_bytes(codes, 128, 256, (32, 96))),
        ):
            with self.subTest(kind=kind):
                file = gguf_edit.read(self.files[kind])
                self.assertEqual(file.number("general.file_type"), number)
                tensor = file.tensor(MATRIX)
                self.assertEqual((tensor.kind, tensor.ne), (number, [256, 128]))
                self.assertEqual(tensor.data, made.ljust(8192, b"\0") + scale.ljust(32, b"\0"))
                back = self.dir / f"{kind}-back.gguf"
                options = ("--type", "i2_s", "--tl-tiles", TILES[kind])
                said = tern_json("quantize", self.files[kind], back, *options)["tensors"]
                ways = {(t["from"], t["to"], t["outcome"]) for t in said}
                self.assertIn((kind, "i2_s", "lossless"), ways)
                for a, b in zip(before.tensors, gguf_edit.read(back).tensors, strict=True):
                    self.assertEqual((a.name, a.kind, a.data), (b.name, b.kind, b.data))

    def test_inspect(self):
        for kind, path in self.files.items():
            with self.subTest(kind=kind):
                said = tern_json("inspect", path, "--tl-tiles", TILES[kind])
                self.assertTrue(said["runs_here"])
                matrices = [t for t in said["tensors"] if t["type"] == kind]
                self.assertEqual([(t["tensors"], t["supported"]) for t in matrices], [(14, True)])
                text = tern("inspect", path).stdout.decode()
                self.assertRegex(text, rf"(?m)^  {kind} +14 tensors")
                self.assertIn("--tl-tiles", text)  # why it does not run here

    def test_receipt(self):
        path, receipt = self.files["tl1"], self.dir / "receipt.json"
        options = ("--tl-tiles", TILES["tl1"], "-p", "hello", "-n", "3", "--receipt", receipt)
        tern_text("run", "-m", path, *options)
        self.assertIn("good", tern_text("verify", receipt, "--replay", "-m", path))

    # ---- tiles ----

    def test_unknown_tiles(self):
        for kind, path in self.files.items():
            with self.subTest(kind=kind):
                words = [path.name, "blk.0.attn_q.weight", kind.upper(), "256 x 256", "--tl-tiles"]
                self.refused(path, words=words)
                self.refused(path, "--tl-tiles", "128x128=32x96x32", words=words)
                out = self.dir / "no-tiles.gguf"
                result = tern("quantize", self.model, out, "--type", kind)
                self.assert_one_line_error(result, contains=words[1:])
                self.assertFalse(out.exists())

    def test_wrong_tiles(self):
        tl1, tl2 = self.files["tl1"], self.files["tl2"]
        shape = ["blk.0.attn_q.weight", "256 x 256", "cannot be cut"]
        for tiles in ("96x32x32", "32x24x32", "48x32x48", "32x32x1"):
            self.refused(tl1, "--tl-tiles", tiles, words=[tl1.name, *shape, "TL1"])
        for tiles in ("48x96", "32x100", "32x24", "32x2147483647"):
            self.refused(tl2, "--tl-tiles", tiles, words=[tl2.name, *shape, "TL2"])
        # The sections begin elsewhere: the bytes found there are not weights.
        self.refused(tl2, "--tl-tiles", "32x480", words=[tl2.name, "blk.0.attn_q.weight"])

    def test_no_tiles(self):
        for text in ("", "32", "x32", "32x", "32x32x", "0x32", "32x32x32x32", "1=32x32", "32x3a",
                     "-32x32", "32x32,", "=32x32", "99999999999x32", ",".join(["32x32"] * 33)):
            with self.subTest(text=text):
                options = ("--tl-tiles", text)
                self.refused(self.files["tl1"], *options, words=["til"], status=2)

    # ---- files that are wrong ----

    def changed(self, kind, change):
        file = gguf_edit.read(self.files.get(kind, self.model))
        change(file.tensor(MATRIX))
        self.path.write_bytes(file.to_bytes())
        return self.path

    def test_other_data(self):
        def put(at, byte):
            return lambda t: setattr(t, "data", t.data[:at] + byte + t.data[at + 1 :])

        cases = (
            ("tl1", put(5, b"\x49"), "row 5, column 2"),  # index 9 in the low nibble
            ("tl2", put(0, b"\xe0"), "row 0, column 0"),  # magnitude 14
            ("tl2", put(7168, b"\1"), "byte 7168, after the weights"),  # 56 bytes of each row
            ("tl1", lambda t: setattr(t, "data", t.data[:8192] + NAN.ljust(32)), "scale nan"),
            ("tl2", lambda t: setattr(t, "data", t.data[:8192] + NAN.ljust(32)), "scale nan"),
        )
        for kind, change, word in cases:
            with self.subTest(kind=kind, word=word):
                options = ("--tl-tiles", TILES[kind])
                self.refused(self.changed(kind, change), *options, words=[MATRIX, word])

    def test_signed_zero(self):
        """Writers never give the triple 0 0 0 a sign: a sign there comes from other tiles."""
        tensor = gguf_edit.read(self.files["tl2"]).tensor(MATRIX)
        at = next(i for i in range(32 * 128) if tensor.data[i] >> 4 == 0)  # block at // 32
        lane = at % 32
        row = [0, 2, 1, 3][lane // 8] * 8 + lane % 8
        block = at // 32 % 16
        word = 128 * 192 // 6 + 2 * ((at // 512 * 4 + block // 4) * 16 + row % 16)
        bit = 15 - (4 * (block % 4) + row // 16)

        def change(t):
            data = bytearray(t.data)
            data[word + bit // 8] |= 1 << bit % 8
            t.data = bytes(data)

        words = [MATRIX, "an index that no weights have"]
        self.refused(self.changed("tl2", change), "--tl-tiles", TILES["tl2"], words=words)

    def test_other_sizes(self):
        """Types 38 and 39 of other programs are never read as TL1 or TL2."""
        def as_type(kind, size):
            def change(t):
                t.kind, t.data = kind, bytes(size)
            return change

        n = 128 * 256
        for kind, size, name in (
            (TL1, n // 4, "tl1"),
            (TL1, n // 32 * 18, "tl1"),
            (TL2, n // 4, "tl2 or mxfp4"),
            (TL2, n // 4 + 64, "tl2 or mxfp4"),
        ):
            with self.subTest(kind=kind, size=size):
                path = self.changed("i2_s", as_type(kind, size))
                self.refused(path, "--tl-tiles", "32x96", words=[MATRIX, f"({name})", "no kernels"])
                types = {t["type"]: t["supported"] for t in refused_inspection(path)["tensors"]}
                self.assertIs(types[name], False)

    def test_mxfp4(self):
        """A matrix of type 39 with the bytes of MXFP4 runs, and is MXFP4 in a folder, too, beside one of TL2."""
        def change(t):
            t.kind, t.data = TL2, (b"\x78" + bytes(range(16))) * (128 * 256 // 32)

        path = self.changed("tl2", change)
        tiles = ("--tl-tiles", TILES["tl2"])
        types = {t["type"]: t["tensors"] for t in json.loads(tern("inspect", path, "--json").stdout)["tensors"]}
        self.assertEqual(types["mxfp4"], 1)
        self.assertIn("tl2", types)
        hashed = tern_text("logits", "-m", path, *tiles, "--tokens", "5,17", "--all", "--sha256")
        folder = self.dir / "both"
        tern_text("convert", path, folder, *tiles, "--to", "iebin")
        self.assertEqual(tern_text("logits", "-m", folder, *tiles, "--tokens", "5,17", "--all", "--sha256"), hashed)
        listed = {t["name"]: t["dtype"] for t in json.loads((folder / "model.ie.json").read_text())["tensors"]}
        self.assertEqual(listed[MATRIX], "mxfp4")

    def test_shapes(self):
        """Fewer columns than TL2 has cannot be cut at all."""
        out = self.dir / "too-narrow.gguf"
        narrow = common.synth("falcon-e-tiny", self.dir)
        result = tern("quantize", narrow, out, "--type", "tl2", "--tl-tiles", "32x96")
        self.assert_one_line_error(result, contains=["tensor blk.", "cannot be cut"])
        self.assertFalse(out.exists())


def refused_inspection(path):
    """Returns the message of inspect about a file that does not run."""
    result = tern("inspect", path, "--json")
    assert result.returncode == 1, result.stderr
    return json.loads(result.stdout)


if __name__ == "__main__":
    common.main()
