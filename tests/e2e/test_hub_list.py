# SPDX-License-Identifier: Apache-2.0
"""tern list and tern rm with models of the Hugging Face Hub that are here: their order, what is shown of each, which file a
name means, and what stays."""

import common
from common import tern, tern_json, tern_text

FIRST, LATER = "1" * 40, "2" * 40
MIB = 1 << 20
# {repository: {commit: {file: size}}}, in another order than tern list's
MODELS = {
    "b/two": {LATER: {"z.gguf": 3, "a.gguf": 2 * MIB}, FIRST: {"a.gguf": 2 * MIB}},
    "a/one": {FIRST: {"model.safetensors": 5, ".safetensors": 1, "config.json": 1, "m-00001-of-00002.gguf": 1, "m-00002-of-00002.gguf": 7}},
}
LISTED = [
    ("a/one", FIRST, "m-00001-of-00002.gguf", 1), ("a/one", FIRST, "model.safetensors", 5),
    ("b/two", FIRST, "a.gguf", 2 * MIB), ("b/two", LATER, "a.gguf", 2 * MIB), ("b/two", LATER, "z.gguf", 3),
]  # fmt: skip


class HubList(common.FolderTest):
    def setUp(self):
        self.hub = self.dir / self.id()
        self.env = {"HOME": str(self.dir), "HF_HUB_CACHE": str(self.hub), "HF_HOME": "", "HF_TOKEN": ""}
        for repository, commits in MODELS.items():
            folder = self.hub / ("models--" + repository.replace("/", "--"))
            (folder / "blobs").mkdir(parents=True)
            for commit, files in commits.items():
                snapshot = folder / "snapshots" / commit
                snapshot.mkdir(parents=True)
                for number, (name, size) in enumerate(files.items()):
                    blob = folder / "blobs" / f"{commit[0]}{number}{size}"
                    blob.write_bytes(bytes(size))
                    (snapshot / name).symlink_to(blob)

    def listed(self):
        models = tern_json("list", env=self.env)["models"]
        return [(m["repository"], m["commit"], m["file"], m["bytes"]) for m in models]

    def test_order(self):
        self.assertEqual(self.listed(), LISTED)

    def test_table(self):
        lines = [f"{size >> 20:7} MiB  {commit[:7]}  {repository}:{file}" for repository, commit, file, size in LISTED]
        self.assertEqual(tern_text("list", env=self.env).splitlines(), lines)
        empty = tern("list", env=self.env | {"HF_HUB_CACHE": str(self.dir / "nothing")})
        self.assertEqual((empty.returncode, empty.stdout), (0, b""))
        self.assertIn(b"no model of the Hub is here", empty.stderr)

    def test_rm(self):
        """A file goes from all snapshots, and its parts go with it; a name that means two files is refused."""
        for name, status, words in (("b/two:gguf", 2, ["b/two"]), ("none", 2, ["OWNER/NAME", "'none'"]), ("c/none", 1, ["c/none: no such model"]),
                                    ("b/two:none", 1, ["b/two:none: no such model"])):  # fmt: skip
            with self.subTest(name):
                self.assert_one_line_error(tern("rm", name, env=self.env), status, words)
        self.assertEqual(self.listed(), LISTED)
        self.assertEqual(tern_text("rm", "b/two:a.gguf", env=self.env), "b/two:a.gguf: 4 MiB freed\n")
        self.assertEqual(self.listed(), [*LISTED[:2], LISTED[4]])
        tern_text("rm", "a/one:m-00001-of-00002.gguf", env=self.env)
        self.assertEqual(self.listed(), [LISTED[1], LISTED[4]])
        left = self.hub / "models--a--one" / "snapshots" / FIRST
        self.assertEqual(sorted(file.name for file in left.iterdir()), [".safetensors", "config.json", "model.safetensors"])
        tern_text("rm", "a/one", env=self.env)
        self.assertEqual(self.listed(), LISTED[4:])
        self.assertFalse((self.hub / "models--a--one").exists())


if __name__ == "__main__":
    common.main()
