# SPDX-License-Identifier: Apache-2.0
"""The message about a file that does not open says what to do next; arguments without flags mean what they say."""

import gzip
import shutil
import subprocess
import unittest
import zipfile

import common
import gguf_edit
from common import ROOT, SMALL_MODEL, tern, tern_json, tern_text

PROMPT = "Q: What is 2+2? A:"


class Arguments(common.TernTest):
    @classmethod
    def setUpClass(cls):
        common.small_model()

    def test_model_and_prompt(self):
        for command in (["run", "-n", 4], ["logits", "--sha256"], ["tokenize"]):
            flags = tern_text(*command, "-m", SMALL_MODEL, "-p", PROMPT)
            for words in ((SMALL_MODEL, PROMPT), ("-m", SMALL_MODEL, PROMPT), ("-p", PROMPT, SMALL_MODEL)):
                with self.subTest(command=command, words=words):
                    self.assertEqual(tern_text(*command, *words), flags)

    def test_other_commands(self):
        text = ROOT / "models" / "tern-small.heldout.txt"
        for command, arguments, key in (
            (["perplexity", "--windows", 1], {"-m": SMALL_MODEL, "-f": text}, "perplexity"),
            (["kernels"], {"-m": SMALL_MODEL}, "operations"),
            (["inspect"], {"-m": SMALL_MODEL}, "kernels"),
        ):
            with self.subTest(command=command):
                flags = [word for pair in arguments.items() for word in pair]
                self.assertEqual(tern_json(*command, *arguments.values())[key],
                                 tern_json(*command, *flags)[key])
        self.assertEqual(tern("chat", SMALL_MODEL, stdin=b"What is 2+2?\n").stdout, b"4\n")

    def test_the_argument_wins_over_the_variable(self):
        env = {"TERN_MODEL": "/nonexistent/model.gguf"}
        self.assertEqual(tern_text("run", SMALL_MODEL, PROMPT, "-n", 4, env=env),
                         tern_text("run", "-p", PROMPT, "-n", 4))

    def test_a_file_of_the_folder_one_stands_in(self):
        """--model-dir comes first; a file that is missing there is the path itself."""
        env = {"TERN_MODEL_DIR": "/nonexistent"}
        result = subprocess.run(common.command("inspect", SMALL_MODEL.name), cwd=SMALL_MODEL.parent,
                                env=common.clean_environment(**env), capture_output=True)
        self.assertEqual(result.returncode, 0, result.stderr)


class Words(common.TernTest):
    def test_what_stands_where_a_command_should(self):
        for word, hint in (
            ("-m", "as in `tern run -m`"),
            ("--temp", "as in `tern run --temp`"),
            ("model.gguf", "as in `tern chat model.gguf`"),
            ("chatt", "did you mean 'chat'?"),
            ("nonsense", "see `tern help`"),
        ):
            self.assert_one_line_error(tern(word, "x"), 2, [hint])

    def test_what_is_missing(self):
        for command, *parts in (
            (["quantize"], "IN [OUT]", "tern quantize --help"),
            (["verify"], "RECEIPT", "tern verify --help"),
            (["inspect"], "after the command", "TERN_MODEL"),
            (["perplexity", "-m", SMALL_MODEL], "after the model", "-f FILE"),
        ):
            self.assert_one_line_error(tern(*command), 2, parts)


    def test_what_cannot_be_converted(self):
        self.assert_one_line_error(tern("convert", SMALL_MODEL, "out.gguf"), 1, ["is a file", "tern quantize"])
        self.assert_one_line_error(tern("convert", "/nonexistent", "out.gguf"), 1, ["/nonexistent: No such"])


    @unittest.skipUnless(shutil.which("make"), "no make")
    def test_names_of_the_makefile_that_others_use(self):
        """RUNS and PROMPTS count as given, in the environment too; lab_perf_receipts has the ones that are refused."""
        def plan(*words, **env):
            outer = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "RUNS", "PROMPTS")  # of `make test`
            clean = {k: v for k, v in common.clean_environment().items() if k not in outer} | env
            command = ["make", "-n", "bench", *words]
            done = subprocess.run(command, cwd=ROOT, env=clean, capture_output=True, text=True, check=True)
            return done.stdout

        self.assertNotIn("--repeat", plan())
        self.assertIn("--repeat 5 ", plan(RUNS="5"))
        self.assertIn("--repeat 5 ", plan("RUNS=5", RUNS="7"))
        for words, variables in (((), {"PROMPTS": "README.md"}), (("PROMPTS=README.md",), {})):
            planned = plan(*words, **variables)
            self.assertIn("--repeat 3 ", planned)
            self.assertIn("--prompts-file 'README.md' --rounds 3 ", planned)


class Hints(common.FolderTest):
    """Each message is one line with the file's name and the next step."""

    def hint(self, path, *contains, commands=("run", "inspect", "tokenize", "kernels", "tune")):
        for command in commands:
            more = ("-p", "x") if command in ("run", "tokenize") else ()
            with self.subTest(path=path, command=command):
                self.assert_one_line_error(tern(command, "-m", path, *more, env={"TERN_CACHE": str(self.dir)}), 1, contains)

    def file(self, name, content):
        path = self.dir / name
        path.write_bytes(content)
        return path

    def test_names_of_get_model(self):
        """Every model, not the vocabularies, that get-model lists."""
        listed = subprocess.run([ROOT / "scripts" / "get-model", "--list"], capture_output=True, text=True)
        names = [line.split()[0] for line in listed.stdout.splitlines() if "vocabulary" not in line]
        self.assertTrue(names)
        for name in names:
            self.hint(name, f"get-model {name}` fetches it")
        self.hint("SmolLM2-135M", "get-model smollm2")

    def test_a_prompt_in_the_models_place(self):
        for command in ("run", "logits", "tokenize"):
            self.assert_one_line_error(tern(command, "Once upon a time"), 1, ["prompt alone needs -p"])
        self.assertNotIn(b"prompt", tern("inspect", "Once upon a time").stderr)
        self.assertNotIn(b"prompt", tern("run", "nowhere.gguf").stderr)

    def test_a_forgotten_ending(self):
        self.file("forgotten.gguf", b"")
        self.hint(self.dir / "forgotten", "did you mean", "forgotten.gguf?")

    def test_folders(self):
        folder = self.dir / "hf"
        folder.mkdir()
        self.hint(folder, f"--model-dir {folder}")
        (folder / "config.json").write_text("{}")
        self.hint(folder, f"`tern convert {folder} model.gguf`")
        weights = folder / "model.safetensors"
        weights.write_bytes(b"\x08\0\0\0\0\0\0\0{}      " + bytes(99))
        self.hint(weights, f"`tern convert {folder} model.gguf`")

    def test_other_kinds_of_files(self):
        archive = self.dir / "zip.gguf"
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("model.gguf", "GGUF")
        self.hint(archive, "ZIP archive")
        self.hint(self.file("gz.gguf", gzip.compress(bytes(99))), "gzip")
        for page in (b"<!DOCTYPE html><html>", b"\n  <html><head>" + bytes(99), b"<HTML>"):
            self.hint(self.file("page.gguf", page), "web page")
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n"
        self.hint(self.file("lfs.gguf", pointer), "git lfs pull")
        self.hint(self.file("other.gguf", b"something else, of forty bytes or so....."), "tern convert")

    def test_cut_downloads(self):
        whole = common.small_model().read_bytes()
        for size in (0, 12, 100, 30000, len(whole) // 2, len(whole) - 1):
            self.hint(self.file("cut.gguf", whole[:size]), "get the file again")
        path = self.file("cut.gguf", whole[:-1])
        self.hint(path, f"{len(whole) - 1} of at least {len(whole)} bytes")

    def test_an_unknown_architecture(self):
        file = gguf_edit.read(common.small_model())
        file["general.architecture"] = gguf_edit.string("nonsense")
        path = self.file("unknown.gguf", file.to_bytes())
        self.hint(path, "'nonsense'", "llama", "get-model smollm2", commands=("run", "kernels", "tune"))

    def test_parts_that_are_missing(self):
        file = gguf_edit.read(common.small_model())
        for key, value in (("split.no", 0), ("split.count", 2), ("split.tensors.count", 46)):
            file[key] = gguf_edit.u32(value)
        path = self.file("split-00001-of-00002.gguf", file.to_bytes())
        self.hint(path, "split-00002-of-00002.gguf", "No such file", "belong in one folder")
        renamed = self.file("renamed.gguf", file.to_bytes())
        self.hint(renamed, "-00001-of-00002.gguf", "belong in one folder")

    def test_sound_files_have_none(self):
        self.assertEqual(tern("run", common.small_model(), "x", "-n", 1).stderr, b"")


if __name__ == "__main__":
    common.main()
