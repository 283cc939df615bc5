# SPDX-License-Identifier: Apache-2.0
"""tern embed: texts become vectors, and the same vectors whatever runs beside them."""

import json
import math
import re
import struct
import sys
from pathlib import Path

import common
import gguf_edit
from common import tern, tern_text

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "oracle"))

TEXTS = ["Once upon a time", "Q: What is 2+2? A:", "a", "The end.", "Once upon a time there was a text"]


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def vectors(text):
    return [row["embedding"] for row in rows(text)]


def read_npy(path):
    """The array of a file of NumPy, as lists of floats."""
    data = path.read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack("<H", data[8:10])
    assert (10 + length) % 64 == 0
    header = data[10 : 10 + length].decode()
    n, width = map(int, re.fullmatch(r"\{'descr': '<f4', 'fortran_order': False, 'shape': \((\d+), (\d+)\), \} *\n", header).groups())
    numbers = struct.unpack(f"<{n * width}f", data[10 + length :])
    return [list(numbers[i * width : (i + 1) * width]) for i in range(n)]


def as_floats(vector):
    return list(struct.unpack(f"<{len(vector)}f", struct.pack(f"<{len(vector)}f", *vector)))


class Embed(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = common.small_model()
        cls.lines = "\n".join(TEXTS).encode()

    def says(self, suffix, value):
        """Makes a copy of the small model whose file has a key about its vectors."""
        path = self.dir / f"{suffix.replace('.', '-')}.gguf"
        file = gguf_edit.read(self.model)
        file[f"{file.text('general.architecture')}.{suffix}"] = value
        path.write_bytes(file.to_bytes())
        return path

    def test_each_is_what_it_is_alone(self):
        """A text gets the same vector beside any other texts, on every instruction set, for any number of threads and
        rows of a pass."""
        for pooling in ("mean", "cls", "last"):
            options = ("embed", "-m", self.model, "--pooling", pooling)
            alone = [tern_text(*options, "-p", text, "--threads", 1) for text in TEXTS]
            together = tern_text(*options, *(x for text in TEXTS for x in ("-p", text)))
            self.assertEqual(vectors(together), [vectors(a)[0] for a in alone])
            self.assertEqual([r["digest"] for r in rows(together)], [rows(a)[0]["digest"] for a in alone])
            self.assertEqual([r["index"] for r in rows(together)], list(range(len(TEXTS))))
            for isa in common.runnable_isas()[:: 1 if pooling == "mean" else 3]:
                self.assertEqual(tern_text(*options, "--isa", isa, "--threads", 2, "--batch", 17, stdin=self.lines), together, isa)

    def test_of_length_one(self):
        for vector in vectors(tern_text("embed", "-m", self.model, "--pooling", "mean", *TEXTS)):
            self.assertAlmostEqual(math.fsum(x * x for x in vector), 1.0, places=6)

    def test_beside_the_oracle(self):
        """The hidden states of an implementation that shares no code, pooled here."""
        try:
            from container import Container
            from forward import Model
            import numpy as np
        except ImportError as error:
            self.skipTest(str(error))
        path = common.synth("qwen3-tiny", self.dir)
        ids = common.prompt(40, 300)
        hidden = Model(Container(path)).hidden(ids)
        wanted = {"mean": hidden.mean(axis=0), "cls": hidden[0], "last": hidden[-1]}
        for pooling, x in wanted.items():
            (y,) = vectors(tern_text("embed", "-m", path, "--pooling", pooling, stdin=json.dumps({"tokens": ids}).encode()))
            self.assertGreater(float(np.dot(x, y) / np.linalg.norm(x)), 0.9999, pooling)

    def test_inputs(self):
        file = self.dir / "texts"
        file.write_text(json.dumps({"prompt": TEXTS[0]}) + "\n\n" + "\n".join(TEXTS[1:]) + "\n")
        options = ("embed", "-m", self.model, "--pooling", "mean")
        wanted = tern_text(*options, *TEXTS)
        self.assertEqual(tern_text(*options, "--prompts-file", file), wanted)
        self.assertEqual(tern_text(*options, "--prompts-file", "-", stdin=file.read_bytes()), wanted)
        self.assertEqual(tern_text(*options, stdin=file.read_bytes()), wanted)
        self.assertEqual(tern_text("embedding", self.model, "-p", TEXTS[0], "--pooling", "mean", *TEXTS[1:]), wanted)
        ids = tern_text("tokenize", "-m", self.model, "-p", TEXTS[0], "--add-special").split()
        by_ids = tern_text(*options, stdin=json.dumps({"tokens": list(map(int, ids))}).encode())
        self.assertEqual(vectors(by_ids), vectors(wanted)[:1])

    def test_many(self):
        texts = [f"Text number {i}" for i in range(150)]
        out = tern_text("embed", "-m", self.model, "--pooling", "mean", stdin="\n".join(texts).encode())
        self.assertEqual([r["index"] for r in rows(out)], list(range(150)))
        (one,) = vectors(tern_text("embed", "-m", self.model, "--pooling", "mean", texts[99]))
        self.assertEqual(vectors(out)[99], one)

    def test_files(self):
        out, lines = self.dir / "vectors.npy", self.dir / "vectors.jsonl"
        options = ("embed", "-m", self.model, "--pooling", "mean", *TEXTS)
        wanted = tern_text(*options)
        self.assertEqual(tern_text(*options, "-o", out), "")
        self.assertEqual(read_npy(out), [as_floats(v) for v in vectors(wanted)])
        tern_text(*options, "-o", lines)
        self.assertEqual(lines.read_text(), wanted)
        self.assert_one_line_error(tern(*options, "-o", lines), 2, [str(lines), "--force"])
        tern_text(*options, "-o", lines, "--force")
        self.assert_one_line_error(tern(*options, "-o", self.model, "--force"), 2)

    def test_what_the_file_says(self):
        mean = self.says("pooling_type", gguf_edit.u32(1))
        plain = tern("embed", "-m", mean, TEXTS[0])
        self.assertEqual(plain.stderr, b"")
        self.assertEqual(plain.stdout.decode(), tern_text("embed", "-m", self.model, "--pooling", "mean", TEXTS[0]))
        other = tern("embed", "-m", mean, "--pooling", "last", TEXTS[0])
        self.assertEqual(other.stdout.decode(), tern_text("embed", "-m", self.model, "--pooling", "last", TEXTS[0]))
        self.assertIn(b"its pooling is 'mean', --pooling last makes other vectors", other.stderr)
        self.assertIn("pooling", tern_text("inspect", mean))
        guess = tern("embed", "-m", self.model, TEXTS[0])
        self.assertEqual(guess.stdout, other.stdout)
        self.assertIn(b"the last token's state is taken", guess.stderr)
        self.assert_one_line_error(tern("embed", "-m", self.model, "--strict", TEXTS[0]), 1, ["--pooling"])
        rank = self.says("pooling_type", gguf_edit.u32(4))
        self.assert_one_line_error(tern("embed", "-m", rank, TEXTS[0]), 1, [".pooling_type is 4"])

    def test_shorter_vectors(self):
        options = ("--pooling", "mean", TEXTS[0], "--dimensions")
        self.assert_one_line_error(tern("embed", "-m", self.model, *options, 64), 2, ["--dimensions 64", "256"])
        (whole,) = vectors(tern_text("embed", "-m", self.model, *options, 0))
        for suffix, value in (("is_matryoshka", (gguf_edit.BOOL, b"\1")), ("matryoshka_dimensions", gguf_edit.i32s([128, 64]))):
            path = self.says(suffix, value)
            (short,) = vectors(tern_text("embed", "-m", path, *options, 64))
            length = math.sqrt(math.fsum(x * x for x in whole[:64]))
            self.assertEqual(len(short), 64)
            for x, y in zip(whole, short):
                self.assertAlmostEqual(x / length, y, places=6)
            self.assert_one_line_error(tern("embed", "-m", path, *options, 300), 2, ["--dimensions 300"])
        self.assert_one_line_error(tern("embed", "-m", path, *options, 65), 2, ["--dimensions 65"])

    def test_a_text_in_the_place_of_the_model(self):
        """Texts on standard input are read after the model is open, so the message is about the missing model."""
        self.assert_one_line_error(tern("embed", "Hello there"), contains=["Hello there: No such file", "needs -p"])

    def test_refused(self):
        options = ("embed", "-m", self.model, "--pooling", "mean")
        long = "word " * 600
        self.assert_one_line_error(tern(*options, "a", long), 1, ["text 2 has", "the context 512 positions"])
        self.assert_one_line_error(tern(*options, "--ctx", 8, "word " * 20), 1, ["--ctx makes more room"])
        self.assert_one_line_error(tern(*options, stdin=b""), 1)
        self.assert_one_line_error(tern(*options, stdin=b'{"tokens": [1, -2]}'), 1, ["line 1", "element 1"])
        self.assert_one_line_error(tern(*options, stdin=b'{"tokens": []}'), 1, ["text 1 has no tokens"])
        self.assert_one_line_error(tern(*options, stdin=b'{"tokens": [99999]}'), 1, ["99999"])
        self.assert_one_line_error(tern(*options, "a", "--prompts-file", "x"), 2)
        self.assert_one_line_error(tern("embed", "-m", self.model, "--pooling", "max", "a"), 2, ["mean cls last"])


if __name__ == "__main__":
    common.main()
