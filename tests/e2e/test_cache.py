# SPDX-License-Identifier: Apache-2.0
"""Packed weights on disk, as a user meets them: the second start maps them, the answer is the same;
options, folders that cannot be used, damage, a full disk, and standard error with --verbose."""

import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path

import gguf_edit
from common import TernTest, clean_environment, command, main, small_model, synth, tern_text


class Cache(TernTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_model(self, *args, env=None, **kwargs):
        environment = clean_environment(HOME=str(self.folder), **{"TERN_PRETRANSPOSE": "large"} | (env or {}))
        question = ["-p", "Q: What is 17+25? A:", "-n", 8, "--json", "-v"]
        argv = command("run", "-m", small_model(), *question, *args)
        result = subprocess.run(argv, env=environment, capture_output=True, **kwargs)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return json.loads(result.stdout), result.stderr.decode()

    def images(self, folder=None):
        return sorted((folder or self.folder / "cache").glob("image-*"))

    def all(self, *args, **kwargs):
        wanted = ["--cache-dir", self.folder / "cache", "--pretranspose", "all"]
        return self.run_model(*wanted, *args, **kwargs)

    def test_second_start(self):
        plain, said = self.run_model("--no-cache")
        self.assertIn(", packed\n", said)
        first, said = self.all()
        self.assertEqual(first["weights"], "packed")
        second, said = self.all("--strict")
        self.assertEqual(second["weights"], "mapped")
        self.assertIn("mapped from the cache\n", said)
        self.assertGreater(second["load_seconds"], 0)
        for key in ("tokens", "text", "stop", "kernels"):
            self.assertEqual(first[key], plain[key])
            self.assertEqual(second[key], plain[key])
        self.assertEqual(os.stat(self.folder / "cache").st_mode & 0o777, 0o700)

    def test_factors_of_keys(self):
        """Two files with the same tensors, but other numbers in their keys, do not share an image."""
        seen, file = [], gguf_edit.read(synth("minicpm-tiny", self.folder))
        wanted = ["--cache-dir", self.folder / "cache", "--pretranspose", "all", "--tokens", "1,2,3", "--sha256"]
        for value in (1.5, 2.5):
            path = self.folder / f"by-{value}.gguf"
            file["minicpm.logit_scale"] = gguf_edit.f32(value)
            path.write_bytes(file.to_bytes())
            kept = tern_text("logits", "-m", path, *wanted)
            self.assertEqual(kept, tern_text("logits", "-m", path, "--no-cache", *wanted[-3:]))
            seen.append(kept)
        self.assertNotEqual(*seen)
        self.assertEqual(len(self.images()), 2)

    def test_default_folder(self):
        self.run_model()  # a small model: nothing is kept
        self.assertFalse((self.folder / ".cache").exists())
        self.run_model("--pretranspose", "all")
        self.assertTrue(self.images(self.folder / ".cache" / "tern"))
        xdg = self.folder / "xdg"
        self.run_model("--pretranspose", "all", env={"XDG_CACHE_HOME": str(xdg)})
        self.assertTrue(self.images(xdg / "tern"))
        answer, _ = self.run_model(env={"XDG_CACHE_HOME": str(xdg), "TERN_PRETRANSPOSE": "all"})
        self.assertEqual(answer["weights"], "mapped")

    def test_not_wanted(self):
        self.all()
        for args in (["--no-cache"], ["--pretranspose", "none"], ["--pretranspose", "large"]):
            answer, _ = self.all(*args)
            self.assertEqual(answer["weights"], "packed", args)

    def test_damage(self):
        plain, _ = self.all()
        (image,) = self.images()
        whole = image.read_bytes()
        for at in (0, 1 << 21, len(whole) // 2 + (1 << 20), len(whole) - 1):
            image.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
            answer, said = self.all()
            self.assertEqual(answer["weights"], "packed")
            self.assertIn("cache not used: image-", said)
            self.assertEqual(answer["tokens"], plain["tokens"])
            self.assertEqual(self.all()[0]["weights"], "mapped")
        self.assertEqual(image.read_bytes(), whole)

    def test_unusable_folders(self):
        plain, _ = self.run_model("--no-cache")
        file = self.folder / "file"
        file.write_bytes(b"")
        for folder in (file, file / "below", "/proc/tern", "/dev/null"):
            answer, said = self.run_model("--pretranspose", "all", "--strict", "--cache-dir", folder)
            self.assertEqual(answer["tokens"], plain["tokens"])
            self.assertIn("cache not used: ", said)

    def test_full_disk(self):
        """A limit on the length of files stands for a disk that fills up in the middle."""

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, 1 << 21))

        plain, _ = self.run_model("--no-cache")
        answer, _ = self.all(preexec_fn=limit)
        self.assertEqual(answer["tokens"], plain["tokens"])
        self.assertEqual(self.images(), [])

    def test_limit(self):
        self.all("--cache-limit", "2")  # an image has a header of 2 MiB
        self.assertEqual(self.images(), [])
        self.all("--cache-limit", "5")
        self.all("--cache-limit", "5", "--layout", "t5r16")
        self.assertEqual(len(self.images()), 1)


if __name__ == "__main__":
    main()
