# SPDX-License-Identifier: Apache-2.0
"""I2_S files whose codes mean other weights than those of the published models: --i2s-map reads them, and a file that
is probably one of them is doubted, or refused with --strict."""

import itertools
import math
import random

import common
import gguf_edit
from common import comma, prompt, tern, tern_json, tern_text
from test_i2s_layouts import I2_S, codes_of

USUAL = (-1, 0, 1, None)
MAPS = {
    "usual": USUAL,
    "zero-first": (0, 1, -1, None),
    "signed": (0, 1, None, -1),
    "negated": (1, 0, -1, None),
    "0,1,-1": (0, 1, -1, None),
    "1,-1,0,x": (1, -1, 0, None),
    "x,-1,0,+1": (None, -1, 0, 1),
    "-1,0,1,0": (-1, 0, 1, 0),
}


def recode(data, codes):
    """Each two-bit code c becomes codes[c]."""
    table = bytes(
        sum(codes[byte >> shift & 3] << shift for shift in (0, 2, 4, 6)) for byte in range(256)
    )
    return data.translate(table)


class Maps(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.synth = common.synth("bitnet-tiny", cls.dir)
        cls.model = cls.with_zeros(0.42)
        cls.ids = comma(prompt(20, gguf_edit.vocabulary(cls.synth)))

    @classmethod
    def with_zeros(cls, share):
        """The model with weights of which that share is 0, as many -1 as +1 but for chance."""
        path = cls.dir / f"zeros-{share}.gguf"
        chances = [(1 - share) / 2, share, (1 - share) / 2]
        quads = list(itertools.product(range(3), repeat=4))
        all_bytes = [a << 6 | b << 4 | c << 2 | d for a, b, c, d in quads]
        weights = [math.prod(chances[code] for code in quad) for quad in quads]
        source = random.Random(3)
        file = gguf_edit.read(cls.synth)
        for t in file.tensors:
            if t.kind == I2_S:
                n = t.ne[0] * t.ne[1] // 4
                t.data = bytes(source.choices(all_bytes, weights, k=n)) + t.data[n:]
        path.write_bytes(file.to_bytes())
        return path

    def mapped(self, name, source=None):
        """The same weights, written with the codes of a map."""
        meaning = MAPS[name]
        codes = [meaning.index(w) for w in USUAL[:3]] + [0]
        file = gguf_edit.read(source or self.model)
        for t in file.tensors:
            if t.kind == I2_S:
                n = t.ne[0] * t.ne[1] // 4
                t.data = recode(t.data[:n], codes) + t.data[n:]
        path = self.dir / f"mapped-{name}.gguf"
        path.write_bytes(file.to_bytes())
        return path

    def logits(self, path, *options, env=None, says=""):
        result = tern("logits", "-m", path, "--tokens", self.ids, "--sha256", *options, env=env)
        message = result.stderr.decode()
        self.assertEqual(result.returncode, 0, message)
        if says:
            self.assertIn(says, message)
        else:
            self.assertEqual(message, "")
        return result.stdout.split()[0]

    def refused(self, path, *options, words, status=1):
        result = tern("logits", "-m", path, "--tokens", "1", *options)
        self.assert_one_line_error(result, contains=words, status=status)

    # ---- files in other maps ----

    def test_maps(self):
        expected = self.logits(self.model)
        for name in MAPS:
            path = self.mapped(name)
            with self.subTest(map=name):
                self.assertEqual(self.logits(path, "--i2s-map", name, "--strict"), expected)
                env = {"TERN_I2S_MAP": name}
                self.assertEqual(self.logits(path, "--threads", "3", env=env), expected)

    def test_without_the_map(self):
        """The file is doubted where the shares tell, and refused at a code 3; turned signs are not noticed."""
        expected = self.logits(self.model)
        looks = "looks like --i2s-map {} (or with the signs turned, {})"
        for name, first, second in (
            ("zero-first", "0,1,-1", "0,-1,1"),
            ("1,-1,0,x", "1,-1,0", "-1,1,0"),
        ):
            with self.subTest(map=name):
                path = self.mapped(name)
                doubt = looks.format(first, second)
                self.assertNotEqual(self.logits(path, says=doubt), expected)
                self.refused(path, "--strict", words=[path.name, "strict", doubt])
                self.assertIn(doubt, tern_json("inspect", path)["doubt"])
                self.refused_by_inspect(path, doubt)
                usual = ("--i2s-map", "-1,0,1")  # believed, and nothing is said
                self.assertNotEqual(self.logits(path, *usual, "--strict"), expected)
        for name in ("signed", "x,-1,0,+1"):
            self.refused(self.mapped(name), words=["blk.0.attn_q.weight", "code 3"])
        self.assertNotEqual(self.logits(self.mapped("negated"), "--strict"), expected)

    def refused_by_inspect(self, path, doubt):
        result = tern("inspect", path, "--strict")
        self.assertEqual(result.returncode, 1)
        self.assertIn(doubt, result.stdout.decode() + result.stderr.decode())

    def test_shares(self):
        """Between 31 % of zeros, as rounded normal weights have, and 60 % the right map is never doubted and the wrong
        one always is."""
        for share in (0.31, 0.36, 0.5, 0.6):
            with self.subTest(zeros=share):
                model = self.with_zeros(share)
                self.logits(model, "--strict")
                self.logits(self.mapped("zero-first", model), says="--i2s-map 0,1,-1")

    def test_another_map_and_order(self):
        """Both together: four codes in the order of the file, from the top."""
        file = gguf_edit.read(self.mapped("zero-first"))
        for t in file.tensors:
            if t.kind == I2_S:
                n, codes = t.ne[0] * t.ne[1], codes_of(t)
                quads = zip(codes[0::4], codes[1::4], codes[2::4], codes[3::4], strict=True)
                turned = bytes(a << 6 | b << 4 | c << 2 | d for a, b, c, d in quads)
                t.data = turned + t.data[n // 4 :]
        path = self.dir / "both.gguf"
        path.write_bytes(file.to_bytes())
        options = ("--i2s-map", "zero-first", "--i2s-layout", "d")
        self.assertEqual(self.logits(path, *options), self.logits(self.model))

    def test_quantize(self):
        """Written in the usual codes."""
        out = self.dir / "back.gguf"
        options = ("--type", "i2_s", "--i2s-map", "zero-first")
        tern_json("quantize", self.mapped("zero-first"), out, *options)
        before, after = gguf_edit.read(self.model).tensors, gguf_edit.read(out).tensors
        for a, b in zip(before, after, strict=True):
            n = a.ne[0] * a.ne[1] // 4 + 4 if a.kind == I2_S else len(a.data)
            self.assertEqual((a.name, a.data[:n]), (b.name, b.data[:n]))

    def test_receipt(self):
        path, receipt = self.mapped("zero-first"), self.dir / "receipt.json"
        options = ("--i2s-map", "zero-first", "-p", "hello", "-n", "3", "--receipt", receipt)
        tern_text("run", "-m", path, *options)
        self.assertIn("good", tern_text("verify", receipt, "--replay", "-m", path))

    def test_no_map(self):
        for text in ("", "0,1", "0,1,2", "0,0,1", "0,1,-1,x,x", "usual,", "x"):
            with self.subTest(text=text):
                self.refused(self.model, "--i2s-map", text, words=["is not a map"], status=2)
        for words in (("quantize", self.model, self.dir / "none.gguf", "--type", "i2_s"), ("inspect", self.model)):
            self.assert_one_line_error(tern(*words, "--i2s-map", "0,1"), contains=["is not a map"], status=2)

    # ---- files that are right ----

    def test_sound_models(self):
        for preset in common.quantized() + common.FLOATS:
            with self.subTest(preset=preset):
                for seed in (1, 2):
                    self.sound(common.synth(preset, self.dir, seed))
        self.sound(common.small_model())

    def sound(self, path):
        result = tern("logits", "-m", path, "--tokens", "1", "--sha256")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertNotIn("doubt", tern_json("inspect", path))


if __name__ == "__main__":
    common.main()
