# SPDX-License-Identifier: Apache-2.0
"""Shared bytes: a model made of defaults, masks and exceptions is the same model, bit for bit."""

import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import common
import gguf_edit
from common import ROOT, tern, tern_json, tern_text
from iebin_folder import DATA, LIST, Iebin

INDEX, BASE = "model.dedup.json", "model.base.bin"
BLOBS = ("model.defaults.bin", "model.masks.bin", "model.exceptions.bin")
TOKENS = "5,17,30,2,2,33,71"
I2_S = 36


def logits_hash(path, *options, **kwargs):
    return tern_text("logits", "-m", path, "--tokens", TOKENS, "--all", "--sha256", *options, **kwargs)


def changed(tensor, every):
    """One byte in `every` differs, and all weights are still numbers."""
    data = bytearray(tensor.data)
    end = len(data) - 32 if tensor.kind == I2_S else len(data)  # the scale stays
    for i in range(0, end, every):
        data[i] = (0x55 if data[i] != 0x55 else 0x59) if tensor.kind == I2_S else data[i] ^ 1
    return bytes(data)


def rebuilt(folder, number, size):
    """Rebuilds a tensor from an index alone: nothing of tern is used."""
    index = json.loads((folder / INDEX).read_text())
    files = {kind: folder / name for kind, name in index["files"].items()}
    read = {kind: path.read_bytes() for kind, path in files.items()}
    out = bytearray(size)
    for group in index["groups"]:
        shared = group["default"]
        at, n = shared["default_off"], shared["nbytes"]
        default = read[shared.get("file", "defaults")][at : at + n]
        for t in ([shared] if "tensor_index" in shared else []) + group["targets"]:
            if t["tensor_index"] != number:
                continue
            raw = bytearray(default)
            mask = read["masks"][t["mask_off"] :] if "mask_off" in t else b""
            ones = [i for i in range(n if mask else 0) if mask[i // 8] >> i % 8 & 1]
            for k, i in enumerate(ones):
                raw[i] = read["exceptions"][t["exc_off"] + k]
            out[t.get("tensor_off", 0) : t.get("tensor_off", 0) + n] = raw
    return bytes(out)


class Dedups(common.FolderTest):
    def fine_tune(self, source, name="tuned.gguf"):
        """A model with other weights in its first block: some tensors differ a little, one wholly."""
        made = gguf_edit.read(source)
        for t in made.tensors:
            if "blk.0." in t.name and len(t.ne) > 1:
                t.data = changed(t, 1 if "attn_q" in t.name else 41)
        return self.written(made, name)

    def written(self, made, name):
        path = self.dir / name
        path.write_bytes(made.to_bytes())
        return path

    def dedup(self, source, name="folder", *options):
        out = self.dir / name
        shutil.rmtree(out, ignore_errors=True)
        tern_text("dedup", source, out, *options)
        return out

    # ---- one model ----

    def test_fine_tunes(self):
        for base in (common.synth("bitnet-tiny", self.dir), common.synth("llama-tiny-q4_0", self.dir),
                     common.synth("llama-tiny-f16", self.dir), common.small_model()):
            with self.subTest(base.name):
                tuned = self.fine_tune(base)
                folder = self.dedup(tuned, "folder", "--base", base)
                expected = logits_hash(tuned)
                self.assertNotEqual(logits_hash(base), expected)
                for options in ((), ("--dedup",), ("--dedup-strict",), ("--dedup-cache", "0"), ("--threads", "3")):
                    self.assertEqual(logits_hash(folder, *options), expected, options)
                self.assertEqual(logits_hash(folder, env={"IE_DEDUP": "1", "IE_DEDUP_STRICT": "1"}), expected)
                self.assertTrue((folder / BASE).is_symlink())
                original = gguf_edit.read(tuned).tensors
                listed = Iebin(folder).list["tensors"]
                self.assertEqual([t["name"] for t in listed], [t.name for t in original])
                shared = [i for i, t in enumerate(listed) if t.get("dedup")]
                self.assertGreater(len(shared), 5)
                for i in shared:
                    self.assertEqual(rebuilt(folder, i, listed[i]["nbytes"]), bytes(original[i].data)[: listed[i]["nbytes"]], listed[i])
                own = sum(p.stat().st_size for p in folder.iterdir() if p.name in (DATA, *BLOBS))
                self.assertLess(own, sum(len(t.data) for t in original) / 2)
                back = self.dir / "back.gguf"
                tern_text("convert", folder, back, "--force")
                for a, b in zip(original, gguf_edit.read(back).tensors):
                    self.assertEqual(bytes(a.data), bytes(b.data)[: len(a.data)], a.name)

    def test_equal_and_nearly_equal_tensors_of_one_model(self):
        made = gguf_edit.read(common.small_model())
        first = made.tensor("blk.0.ffn_up.weight")
        made.tensor("blk.1.ffn_up.weight").data = first.data
        made.tensor("blk.2.ffn_up.weight").data = changed(first, 97)
        source = self.written(made, "twins.gguf")
        plan = tern_json("dedup", source, "--plan")
        self.assertEqual(plan["equal_bytes"], len(first.data))
        self.assertGreater(plan["near_bytes"], 0)
        self.assertLess(plan["bytes_after"], plan["bytes_before"] - len(first.data))
        folder = self.dedup(source, "twins")
        self.assertFalse((folder / BASE).exists())
        self.assertEqual(logits_hash(folder), logits_hash(source))
        done = tern_json("dedup", source, folder, "--force")
        self.assertEqual({k: done[k] for k in plan}, plan)
        self.assertEqual(logits_hash(folder), logits_hash(source))

    def test_bytes_that_differ_must_pay(self):
        """A mask, the bytes that differ and 256 bytes of the index take at most three quarters of a block."""
        made = gguf_edit.read(common.small_model())
        norm = made.tensor("blk.0.attn_norm.weight")
        data, size = norm.data, len(norm.data)
        most = size // 4 * 3 - 256 - (size // 8 + 1)
        self.assertGreater(most, 0)
        for differing, near in ((most, size), (most + 1, 0)):
            norm.data = bytes(byte ^ 1 for byte in data[:differing]) + data[differing:]
            tuned = self.written(made, "paying.gguf")
            plan = tern_json("dedup", tuned, "--plan", "--base", common.small_model())
            self.assertEqual(plan["near_bytes"], near, differing)

    def test_a_session_knows_the_model(self):
        """The hash reads all weights after they were packed: none of them was given back to the system."""
        tuned = self.fine_tune(common.small_model())
        saved, run = self.dir / "session", ("run", "-p", "Q: What is 17+25? A:", "-n", "4", "--prompt-cache")
        first = tern_json(*run, self.dir / "session", "-m", tuned)
        folder = self.dedup(tuned, "folder", "--base", common.small_model())
        again = tern_json(*run, saved, "--prompt-cache-ro", "-m", folder)
        self.assertEqual(again["text"], first["text"])
        self.assertGreater(again["reused_tokens"], 0)

    def test_nothing_to_share(self):
        text = tern_text("dedup", common.small_model(), "--plan")
        self.assertIn("nothing is saved", text)
        folder = self.dedup(common.small_model())
        self.assertEqual(logits_hash(folder), logits_hash(common.small_model()))

    def test_where_it_lies(self):
        """The blocks lie in place, in memory or in a file, as the option says; the message says which."""
        tuned = self.fine_tune(common.small_model())
        folder = self.dedup(tuned, "folder", "--base", common.small_model())

        def places(*options, **kwargs):
            run = tern("logits", "-m", folder, "--tokens", "1", "--sha256", *options, **kwargs)
            words = run.stderr.decode().replace(",", "").replace(";", "").split()
            return {name: int(words[words.index(name) - at]) for name, at in (("place", 2), ("memory", 2), ("differ", 1))} | {
                "file": int(words[words.index("file") - 3])}

        usual = places("--dedup-debug")
        small = places(env={"IE_DEDUP_DEBUG": "1", "IE_DEDUP_CACHE_MB": "0"})
        self.assertEqual((usual["file"], small["memory"]), (0, 0))
        self.assertEqual(usual["memory"], small["file"])
        self.assertEqual(usual["place"], small["place"])
        self.assertGreater(min(usual["place"], usual["memory"], usual["differ"]), 0)
        missing = self.dir / "no-such-folder"
        result = tern("logits", "-m", folder, "--tokens", "1", "--sha256", "--dedup-cache", "0", env={"TMPDIR": str(missing)})
        self.assert_one_line_error(result, contains=("no-such-folder", "No such file"))

    # ---- known names ----

    def groups(self, *groups):
        """A whole folder, and files of groups of tensors by their names."""
        made = gguf_edit.read(common.small_model())
        first = made.tensor("blk.0.ffn_up.weight")
        made.tensor("blk.1.ffn_up.weight").data = changed(first, 97)
        source, folder = self.written(made, "grouped.gguf"), self.dir / "whole"
        shutil.rmtree(folder, ignore_errors=True)
        tern_text("convert", source, folder, "--to", "iebin")
        listed = Iebin(folder).list["tensors"]
        numbers = {t["name"]: 1000 - i for i, t in enumerate(listed)}  # those of the map, not of the list
        tensors = [{"index": numbers[t["name"]], "name": t["name"], "offset": t["file_data_offset"],
                    "nbytes": t["nbytes"]} for t in listed]
        (self.dir / "tensor_map.json").write_text(json.dumps({"weights_bin": DATA, "tensors": tensors}))
        lists = [{"default_index": numbers[g[0]], "targets": [numbers[t] for t in g[1:]]} for g in groups]
        (self.dir / "groups.indices.json").write_text(json.dumps(lists))
        return folder, logits_hash(source)

    def extract(self, folder, prefix, program=None):
        script = ROOT / "tools" / "dedup_extract_int4.py"
        return subprocess.run([sys.executable, script, "--model-dir", folder, "--tensor-map", self.dir / "tensor_map.json",
                               "--groups", self.dir / "groups.indices.json", "--out-prefix", prefix,
                               "--tern", program or common.command()[0]], env=common.clean_environment(), capture_output=True)

    UP = ("blk.0.ffn_up.weight", "blk.1.ffn_up.weight")

    def test_extraction_by_known_names(self):
        folder, expected = self.groups(self.UP)
        result = self.extract(folder, self.dir / "dedup_out" / "model")
        self.assertEqual(result.returncode, 0, result.stderr)
        made = sorted(p.name for p in (self.dir / "dedup_out").iterdir())
        self.assertEqual(made, sorted((INDEX, *BLOBS)))
        for name in made:
            (folder / name).symlink_to(self.dir / "dedup_out" / name)
        self.assertEqual(logits_hash(folder), expected)
        on = tern("logits", "-m", folder, "--tokens", TOKENS, "--all", "--sha256",
                  env={"IE_DEDUP": "1", "IE_DEDUP_POLICY": "lossless", "IE_DEDUP_DEBUG": "1"})
        self.assertEqual(on.stdout.decode(), expected)
        self.assertIn("shared bytes: 2 tensors", on.stderr.decode())
        self.assertNotEqual(self.extract(folder, folder / "model").returncode, 0)  # nothing is replaced
        shutil.rmtree(self.dir / "dedup_out")

    def test_three_links(self):
        """The index is found beside the files that the links lead to; a missing file is an error in strict mode."""
        folder, expected = self.groups(self.UP)
        out = self.dir / "elsewhere"
        self.assertEqual(self.extract(folder, out / "tiny").returncode, 0)
        for name in BLOBS:
            (folder / name).symlink_to(out / name.replace("model", "tiny"))
        strictly = ("logits", "-m", folder, "--tokens", TOKENS, "--all", "--sha256", "--dedup-strict", "--dedup-debug")
        for cwd, where in ((None, folder), (folder, ".")):
            made = tern(*("." if word is folder else word for word in strictly) if cwd else strictly, cwd=cwd)
            self.assertEqual(made.stdout.decode(), expected, made.stderr)
            self.assertIn("shared bytes: 2 tensors", made.stderr.decode())
        for name in BLOBS:
            target = (folder / name).resolve()
            (folder / name).unlink()
            self.assert_one_line_error(tern(*strictly), contains=(name, "No such file"))
            (folder / name).symlink_to(target)
        index = out / "tiny.dedup.json"
        text = index.read_text()
        index.write_text(text.replace('"DUDP"', '"X"'))
        self.assert_one_line_error(tern(*strictly), contains=("tiny.dedup.json", "'magic'"))
        index.unlink()
        self.assert_one_line_error(tern(*strictly), contains=(INDEX, "No such file"))
        shutil.rmtree(out)

    def test_extraction_that_cannot_begin(self):
        folder, _ = self.groups(self.UP)
        self.assert_one_line_error(self.extract(folder, folder / DATA / "out" / "model"), 1, ["out: Not a directory"])
        self.assert_one_line_error(self.extract(folder, self.dir / "out" / "model", self.dir / "none"), 1,
                                   ["none: No such file or directory"])

    def test_strict_and_lenient(self):
        """Where the folder has all bytes, a wrong index is reported, and refused in strict mode."""
        folder, expected = self.groups(self.UP)
        self.assertEqual(self.extract(folder, folder / "model").returncode, 0)

        def check(word):
            for name in ("--dedup", "--dedup-strict"):
                result = tern("logits", "-m", folder, "--tokens", TOKENS, "--all", "--sha256", name)
                if name == "--dedup-strict":
                    self.assert_one_line_error(result, contains=(word,))
                else:
                    self.assertEqual(result.stdout.decode(), expected)
                    self.assertIn(word, result.stderr.decode())
            self.assertEqual(logits_hash(folder, env={"IE_DEDUP": "0"}), expected)

        for name in BLOBS:
            whole = (folder / name).read_bytes()
            (folder / name).write_bytes(whole[:-1])
            check(name)
            damaged = bytearray(whole)
            damaged[len(whole) // 2] ^= 0xFF
            (folder / name).write_bytes(damaged)
            check(INDEX)
            (folder / name).unlink()
            check("No such file")
            (folder / name).write_bytes(whole)
        logits_hash(folder, "--dedup-strict")
        index = json.loads((folder / INDEX).read_text())
        (folder / INDEX).write_text(json.dumps({k: v for k, v in index.items() if k != "tensors"}))
        self.assertEqual(logits_hash(folder, "--dedup"), expected)  # as other writers make it
        result = tern("run", "-m", folder, "-p", "x", "--dedup-strict")
        self.assert_one_line_error(result, contains=("no checksum",))
        (folder / INDEX).unlink()
        check(INDEX)
        result = tern("run", "-m", common.small_model(), "-p", "x", "--dedup-strict")
        self.assert_one_line_error(result, contains=("not a folder",))

    def test_wrong_groups(self):
        up, down = self.UP, ("blk.0.ffn_down.weight", "blk.1.ffn_down.weight")
        for groups, words in (
            ((up, (up[1], up[0])), "in two places"),
            ((up, (up[0], down[0])), "in two places"),
            (((up[0], up[0]),), "in two places"),
            (((up[0], "output_norm.weight"),), "bytes"),
            (((up[0],),), "'targets'"),
        ):
            with self.subTest(words):
                folder, _ = self.groups(*groups)
                result = self.extract(folder, self.dir / "none")
                self.assertEqual((result.returncode, len(result.stderr.splitlines())), (1, 1), result.stderr)
                self.assertIn(words, result.stderr.decode())
                self.assertFalse(list(self.dir.glob("none*")))

    # ---- what is wrong ----

    def hostile(self):
        """Returns a folder, its index, and a function that changes the first group that has a mask, or the first that
        does not."""
        folder = self.dedup(self.fine_tune(common.small_model()), "hostile", "--base", common.small_model())
        first = json.loads((folder / INDEX).read_text())

        def change(masked=True, default=(), target=()):
            made = json.loads(json.dumps(first))
            group = next(g for g in made["groups"] if g["targets"] and ("mask_off" in g["targets"][0]) == masked)
            group["default"].update(default)
            group["targets"][0].update(target)
            return made

        return folder, first, change

    def refused(self, folder, index, *words):
        (folder / INDEX).write_text(index if isinstance(index, str) else json.dumps(index))
        for use in ((), ("--dedup-strict",)):
            self.assert_one_line_error(tern("inspect", folder, *use), contains=words)

    def test_hostile_indexes(self):
        folder, first, _ = self.hostile()
        tensors = first["tensors"]
        for words, index in (
            ("'magic'", first | {"magic": "X"}),
            ("'version'", first | {"version": 2}),
            ("'groups'", first | {"groups": {}}),
            ("not an object", first | {"groups": [3]}),
            ("'default'", first | {"groups": [{"targets": []}]}),
            ("'targets'", first | {"groups": [{"default": {}}]}),
            ("does not tell which", first | {"groups": first["groups"][1:]}),
            ("occurs twice", first | {"groups": first["groups"] + first["groups"][:1]}),
            ("'totals'", {k: v for k, v in first.items() if k != "totals"}),
            ("name of a file", first | {"files": first["files"] | {"masks": "../x"}}),
            ("was made for one of", first | {"totals": first["totals"] | {"masks_size": 1}}),
            ("'tensors'", first | {"tensors": 3}),
            ("is 'blk", first | {"tensors": [t | {"name": "x"} for t in tensors if "blk" in t["name"]]}),
            ("xxh64", first | {"tensors": [t | {"xxh64": "12"} for t in tensors]}),
            ("checksum", first | {"tensors": [t | {"xxh64": "0" * 16} for t in tensors]}),
            (INDEX, "{"),
        ):
            with self.subTest(words):
                self.refused(folder, index, words)

    def test_hostile_groups(self):
        folder, first, change = self.hostile()
        one = next(t for g in first["groups"] for t in g["targets"] if "mask_off" in t)
        equal = next(t for g in first["groups"] for t in g["targets"] if "mask_off" not in t)
        shorter = {"nbytes": equal["nbytes"] - 1}
        for words, index in (
            ("of the base", change(default={"default_off": 2**53})),
            ("in no group", change(False, default=shorter, target=shorter)),
            ("bytes in a group", change(default={"nbytes": one["nbytes"] - 1})),
            ("'nbytes'", change(target={"nbytes": -1})),
            ("which has", change(target={"nbytes": 2**60})),
            ("tensor 1000000 of", change(target={"tensor_index": 1000000})),
            ("bytes at 7 of tensor", change(target={"tensor_off": 7})),
            ("'mask_nbytes'", change(target={"mask_nbytes": 1})),
            ("of the masks", change(target={"mask_off": 2**40})),
            ("of the exceptions", change(target={"exc_off": 2**40})),
            ("bits", change(target={"exc_nbytes": one["exc_nbytes"] - 1})),
            ("bits", change(target={"exc_popcount": 0})),
        ):
            with self.subTest(words):
                self.refused(folder, index, words)
        inner = {"tensor_index": one["tensor_index"], "nbytes": one["nbytes"], "default_off": 0}
        (folder / BLOBS[0]).write_bytes(bytes(one["nbytes"]))
        cyclic = first | {"groups": first["groups"] + [{"default": inner, "targets": []}],
                          "totals": first["totals"] | {"defaults_size": one["nbytes"]}}
        self.refused(folder, cyclic, "defaults cannot depend")

    def test_wrong_bases(self):
        folder, _, _ = self.hostile()
        logits_hash(folder)
        (folder / BASE).unlink()
        (folder / BASE).write_bytes(bytes(b ^ 0x80 for b in common.small_model().read_bytes()))
        self.assert_one_line_error(tern("run", "-m", folder, "-p", "x"), contains=("checksum",))
        (folder / BASE).unlink()
        self.assert_one_line_error(tern("run", "-m", folder, "-p", "x"), contains=(BASE, "No such file"))
        (folder / INDEX).unlink()
        self.assert_one_line_error(tern("run", "-m", folder, "-p", "x"), contains=(INDEX, "No such file"))

    def test_switched_off(self):
        folder = self.dedup(self.fine_tune(common.small_model()), "off", "--base", common.small_model())
        result = tern("run", "-m", folder, "-p", "x", env={"IE_DEDUP": "0"})
        self.assert_one_line_error(result, contains=(LIST, "switched off"))

    # ---- what is written ----

    def test_usage(self):
        model = common.small_model()
        for words, args in (
            ("--out-prefix", (model,)),
            ("--out-prefix", (model, self.dir / "x", "--out-prefix", self.dir / "y")),
            ("--tensor-map", (model, self.dir / "x", "--groups", "g.json")),
            ("--base", (model, self.dir / "x", "--groups", "g.json", "--tensor-map", model, "--base", model)),
        ):
            self.assert_one_line_error(tern("dedup", *args), status=2, contains=(words,))
        folder = self.dedup(model, "there")
        before = {p.name: p.read_bytes() for p in folder.iterdir()}
        self.assertEqual(tern("dedup", model, folder).returncode, 2)
        (folder / LIST).unlink()
        self.assertNotEqual(tern("dedup", model, folder).returncode, 0)
        del before[LIST]
        self.assertEqual({p.name: p.read_bytes() for p in folder.iterdir()}, before)

    def test_nothing_half_written_stays(self):
        """The index has a name that is taken: no file of this run is left."""
        out = self.dir / "half"
        out.mkdir()
        (out / INDEX).write_text("mine")
        self.assertNotEqual(tern("dedup", common.small_model(), out).returncode, 0)
        self.assertEqual([p.name for p in out.iterdir()], [INDEX])
        self.assertEqual((out / INDEX).read_text(), "mine")


if __name__ == "__main__":
    common.main()
