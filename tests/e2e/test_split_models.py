# SPDX-License-Identifier: Apache-2.0
"""Models in several files: any part opens the whole, bit for bit; parts that do not belong are refused."""

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import common
import gguf_edit
from common import suite, tern, tern_json, tern_text
from split_files import cut, i32, part_name, u16


I2_S = 36


class SplitModels(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.whole = common.synth("bitnet-tiny", cls.folder.name)
        cls.file = gguf_edit.read(cls.whole)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.dir = Path(self.folder.name) / "parts"
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir()

    def write(self, parts):
        for i, part in enumerate(parts):
            (self.dir / part_name(i, len(parts))).write_bytes(part.to_bytes())
        return [self.dir / part_name(i, len(parts)) for i in range(len(parts))]

    def hash(self, path):
        return tern_text("logits", "-m", path, "--tokens", "5,17,300,2", "--all", "--sha256")

    def refused(self, path, *words):
        for command in (("logits", "--tokens", "1", "-m"), ("inspect",)):
            result = tern(*command, path)
            self.assert_one_line_error(result, contains=words)

    def test_one_answer(self):
        expected = self.hash(self.whole)
        for n, empty_first in ((2, False), (3, False), (3, True), (len(self.file.tensors), False)):
            with self.subTest(parts=n, empty_first=empty_first):
                paths = self.write(cut(self.file, n, empty_first))
                for path in {paths[0], paths[1], paths[-1]}:
                    self.assertEqual(self.hash(path), expected)

    def test_inspect(self):
        paths = self.write(cut(self.file, 3, empty_first=True))
        seen = tern_json("inspect", paths[2])
        self.assertEqual([p["file"] for p in seen["parts"]], list(map(str, paths)))
        self.assertEqual([p["bytes"] for p in seen["parts"]], [p.stat().st_size for p in paths])
        self.assertEqual(seen["parts"][0]["tensors"], 0)
        self.assertEqual(sum(p["tensors"] for p in seen["parts"]), len(self.file.tensors))
        self.assertEqual(seen["file_bytes"], sum(p.stat().st_size for p in paths))
        self.assertTrue(seen["runs_here"])
        self.assertIn(f"{paths[1]}: ", tern_text("inspect", paths[0]))

    def test_merged_files(self):
        """Programs that merge parts leave a count of 0 or 1."""
        for count in (0, 1):
            part = cut(self.file, 2)[0]
            part.tensors = self.file.tensors
            part["split.count"] = u16(count)
            path = self.dir / "merged.gguf"
            path.write_bytes(part.to_bytes())
            self.assertEqual(self.hash(path), self.hash(self.whole))

    def test_missing_part(self):
        for missing in range(3):
            paths = self.write(cut(self.file, 3))
            paths[missing].unlink()
            self.refused(paths[(missing + 1) % 3], paths[missing].name, f"part {missing + 1} of 3")

    def test_names(self):
        paths = self.write(cut(self.file, 2))
        for name in ("other.gguf", "model-00001-of-00003.gguf", "model-00002-of-00002.gguf"):
            with self.subTest(name=name):
                target = self.dir / "renamed" / name
                target.parent.mkdir(exist_ok=True)
                shutil.copy(paths[0], target)
                self.refused(target, name, "part 1 of 2", "-00001-of-00002.gguf")

    def test_wrong_order(self):
        paths = self.write(cut(self.file, 3))
        first, second = (p.read_bytes() for p in paths[1:])
        paths[1].write_bytes(second)
        paths[2].write_bytes(first)
        self.refused(paths[0], paths[1].name, "part 3 of 3", "part 2 of 3")

    def edited(self, number, edit, *words, n=3):
        parts = cut(self.file, n)
        edit(parts[number])
        self.refused(self.write(parts)[0], *words)

    def test_counts(self):
        name = part_name(1, 3)
        self.edited(1, lambda p: p.__setitem__("split.count", u16(4)), name, "part 2 of 4")
        self.edited(1, lambda p: p.__setitem__("split.count", u16(1)), name, "whole model")
        self.edited(1, lambda p: p.__delitem__("split.count"), name, "whole model")
        self.edited(1, lambda p: p.__delitem__("split.no"), name, "split.no", "missing")
        self.edited(1, lambda p: p.__setitem__("split.no", u16(3)), name, "split.no", "3 parts")
        self.edited(0, lambda p: p.__setitem__("split.no", u16(7)), "00001", "split.no", "7")
        self.edited(0, lambda p: p.__setitem__("split.count", gguf_edit.u32(2**32 - 1)), "65535")
        self.edited(0, lambda p: p.__setitem__("split.count", gguf_edit.string("3")), "split.count")

    def test_tensor_count(self):
        total = len(self.file.tensors)
        for wrong in (total - 1, total + 1):
            parts = cut(self.file, 3)
            for part in parts:
                part["split.tensors.count"] = i32(wrong)
            self.refused(self.write(parts)[0], "split.tensors.count", str(wrong), str(total))

    def test_tensors(self):
        first = self.file.tensors[0]

        def swap(part):
            part.tensors[0] = first

        self.edited(2, swap, part_name(2, 3), part_name(0, 3), first.name)
        self.edited(1, lambda p: p.tensors.pop(), "split.tensors.count")

        parts = cut(self.file, 4)  # the two that hold it are named, and neither is the first or the last
        parts[1].tensors[0] = parts[2].tensors[0]
        paths = self.write(parts)
        self.refused(paths[0], f"{paths[2]}: tensor '{parts[2].tensors[0].name}' is also in {paths[1]}")

        parts = cut(self.file, 3)
        for part in parts:
            part["split.tensors.count"] = i32(len(self.file.tensors) - 1)
        lost = parts[1].tensors.pop().name
        result = tern("logits", "--tokens", "1", "-m", self.write(parts)[0])
        self.assert_one_line_error(result, contains=[lost, "missing"])

    def test_another_model(self):
        name = part_name(1, 3)
        key = "general.architecture"
        self.edited(1, lambda p: p.__setitem__(key, gguf_edit.string("llama")), name, key)
        self.edited(2, lambda p: p.__setitem__("bitnet-b1.58.logit_scale", gguf_edit.f32(2.0)), "logit_scale")
        for own in [k for k, _, _ in self.file.keys if k.startswith("bitnet-b1.58.")]:
            parts = cut(self.file, 3)
            parts[2][own] = gguf_edit.string("other")
            self.assert_one_line_error(tern("inspect", self.write(parts)[0]), contains=[part_name(2, 3), own])
        same = cut(self.file, 3)
        same[1][key] = gguf_edit.string(self.file.text(key))  # agrees: fine
        self.assertEqual(self.hash(self.write(same)[0]), self.hash(self.whole))

    def changed(self, paths, number):
        """The same part with one weight changed."""
        part = gguf_edit.read(paths[number])
        matrix = max(part.tensors, key=lambda t: t.ne[0] * t.ne[1] if t.kind == I2_S else 0)
        data = bytearray(matrix.data)
        at = matrix.ne[0] * matrix.ne[1] // 4 * 2 // 5  # no place where samples are taken
        data[at] = data[at] & 0xFC | (0 if data[at] & 3 else 1)
        matrix.data = bytes(data)
        paths[number].write_bytes(part.to_bytes())


    def test_receipts_hold_the_hash_of_each_part(self):
        for number in range(3):
            paths, receipt = self.write(cut(self.file, 3)), self.dir / "receipt.json"
            tern_text("run", "-m", paths[1], "--tokens", "5,17,300,2", "-n", "2", "--receipt", receipt)
            model = json.loads(receipt.read_text())["model_info"]
            hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
            self.assertEqual(model["files"], [{"path": path.name, "bytes": path.stat().st_size, "sha256": h}
                                              for path, h in zip(paths, hashes)])
            self.assertEqual(model["sha256"], hashlib.sha256("".join(hashes).encode()).hexdigest())
            tern_text("verify", receipt, "--replay")
            self.changed(paths, number)
            self.assert_one_line_error(tern("verify", receipt, "--replay"), contains=["another model"])
            receipt.unlink()

    def load_until_remembered(self, n, load):
        """A file that has just been written is not remembered yet."""

        def remembered():
            load()
            return len(list((self.dir / "cache").glob("source-*"))) == n

        suite.until(remembered)

    def test_packed_weights_belong_to_every_part(self):
        """The cache remembers files that nobody has touched for a while; this must hold for every part of the model."""
        copies = []
        for number in range(3):
            copies.append([Path(shutil.copy(path, self.dir / f"of{number}-{path.name}")) for path in self.write(cut(self.file, 3))])
        for number, paths in enumerate(copies):
            cache = ("--cache-dir", self.dir / "cache", "--pretranspose", "all")
            options = ("logits", "-m", paths[0], "--tokens", "5,17,300,2", "--all", "--sha256")
            first = tern_text(*options, *cache)
            self.load_until_remembered(number + 1, lambda o=options, f=first: self.assertEqual(tern_text(*o, *cache), f))
            self.changed(paths, number)
            other = tern_text(*options, "--no-cache")
            self.assertNotEqual(other, first)
            self.assertEqual(tern_text(*options, *cache), other, f"part {number + 1}")

    def test_sessions_belong_to_every_part(self):
        """A session belongs to the whole model, however the model is cut."""
        for number in range(3):
            paths, session = self.write(cut(self.file, 3)), self.dir / "kept.session"
            options = ("--tokens", "5,17,300,2", "-n", "2", "--prompt-cache", session)
            tern_text("run", "-m", self.whole, *options)
            self.assertEqual(tern_json("run", "-m", paths[0], *options)["reused_tokens"], 3)
            self.changed(paths, number)
            result = tern("run", "-m", paths[0], *options)
            self.assert_one_line_error(result, contains=["kept.session", "another model"])
            session.unlink()

    def test_broken_part(self):
        paths = self.write(cut(self.file, 3))
        data = paths[1].read_bytes()
        for size in (0, 20, len(data) // 2):
            with self.subTest(bytes=size):
                paths[1].write_bytes(data[:size])
                self.refused(paths[0], paths[1].name, "part 2 of 3")


if __name__ == "__main__":
    common.main()
