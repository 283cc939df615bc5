#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A command that writes replaces a file only with --force, and never a file that it reads."""

import os
import subprocess
import sys
import unittest

import common
import gguf_edit
from common import FolderTest, synth, tern, tern_text
from split_files import cut, part_name

OLD = b"what stood here before\n"
PROMPT = ("-p", "Once upon a time", "--threads", "1")


def hf_folder(folder):
    """A model's folder; skips where it cannot be made."""
    made = folder / "hf"
    if not made.exists():
        script = common.ROOT / "tests" / "e2e" / "hf_folder.py"
        subprocess.run([sys.executable, script, made], capture_output=True)
    if not made.exists():
        raise unittest.SkipTest("a folder of Hugging Face files needs numpy and gguf")
    return made


class Replacing(FolderTest):
    def writers(self):
        """Command lines in front of the file that each writes, with a model of their own."""
        model = synth("llama-tiny-q8_0", self.dir)
        return [
            ("synth", "--preset", "llama-tiny-q4_0"),
            ("quantize", model, "--type", "q4_0"),
            ("logits", "-m", model, "--tokens", "1,2,3", "--output"),
            ("logits", "-m", model, "--tokens", "1,2,3", "--dump-kv"),
            ("run", "-m", common.small_model(), *PROMPT, "-n", "2", "--receipt"),
        ]

    def test_without_force(self):
        for writer in self.writers():
            with self.subTest(command=writer[0]):
                out = self.dir / "there"
                out.write_bytes(OLD)
                self.assert_one_line_error(tern(*writer, out), 2, ["there: exists already", "--force"])
                self.assertEqual(out.read_bytes(), OLD)
                result = tern(*writer, out, "--force")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertNotEqual(out.read_bytes(), OLD)
                out.unlink()
                self.assertEqual(tern(*writer, out).returncode, 0)
                self.assertEqual(sorted(self.dir.glob("there*")), [out])

    def test_a_link_is_a_name_too(self):
        link = self.dir / "dangling"
        link.symlink_to(self.dir / "nothing")
        for writer in self.writers():
            self.assert_one_line_error(tern(*writer, link), 2, ["exists already"])
        self.assertTrue(link.is_symlink())

    def test_refused_before_the_work(self):
        """A model that does not exist is not looked for when the answer could not be written."""
        out = self.dir / "taken"
        out.write_bytes(OLD)
        for option in ("--output", "--dump-kv"):
            result = tern("logits", "-m", "none.gguf", *PROMPT, option, out)
            self.assert_one_line_error(result, 2, ["exists already"])
        result = tern("bench", "-m", "none.gguf", "--receipt", out)
        self.assert_one_line_error(result, 2, ["exists already"])

    def test_convert(self):
        source, out = hf_folder(self.dir), self.dir / "converted.gguf"
        out.write_bytes(OLD)
        self.assert_one_line_error(tern("convert", source, out), 2, ["exists already", "--force"])
        self.assertEqual(out.read_bytes(), OLD)
        tern_text("convert", source, out, "--force")
        self.assertEqual(out.read_bytes()[:4], b"GGUF")
        for name in os.listdir(source):
            before = (source / name).read_bytes()
            result = tern("convert", source, source / name, "--force")
            self.assert_one_line_error(result, 2, ["is read by this command"])
            self.assertEqual((source / name).read_bytes(), before)

    def test_keys(self):
        key = self.dir / "key"
        tern_text("keygen", key)
        before = key.read_bytes()
        self.assert_one_line_error(tern("keygen", key), 2, ["never replaced"])
        self.assert_one_line_error(tern("keygen", key, "--force"), 2, ["--force"])
        other = self.dir / "other"
        other.with_suffix(".pub").write_bytes(OLD)
        result = tern("keygen", other)
        self.assert_one_line_error(result, 2, ["other.pub: exists already"])
        self.assertFalse(other.exists())
        self.assertEqual(key.read_bytes(), before)
        self.assertEqual(key.stat().st_mode & 0o777, 0o600)

    def test_chat(self):
        saved = self.dir / "talk.json"
        saved.write_bytes(OLD)
        talk = ("chat", "-n", "2", "--threads", "1")
        result = tern(*talk, stdin=f"Hi\n/save {saved}\n".encode())
        self.assertIn(b"talk.json: exists already; /save! replaces it", result.stderr)
        self.assertEqual((result.returncode, saved.read_bytes()), (1, OLD))
        self.assertEqual(tern(*talk, stdin=f"Hi\n/save! {saved}\n".encode()).returncode, 0)
        self.assertIn(b"tern_chat", saved.read_bytes())
        saved.unlink()  # its keys and values are still there
        result = tern(*talk, stdin=f"Hi\n/save {saved}\n".encode())
        self.assertIn(b"talk.json.session: exists already", result.stderr)
        self.assertFalse(saved.exists())

    def test_names_in_chat(self):
        talk = ("chat", "-n", "2", "--threads", "1")
        lines = f"Hi\n/save ~/a talk.json\n/save '{self.dir}/quoted'\n/load \"{self.dir}/quoted\"\n"
        result = tern(*talk, stdin=lines.encode(), env={"HOME": str(self.dir)})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue((self.dir / "a talk.json").exists())
        self.assertTrue((self.dir / "quoted").exists())


class Words(FolderTest):
    """An option that has no effect, or could have none, is refused before any work."""

    def test_empty_names(self):
        model = common.small_model()
        for arguments in (
            ("run", *PROMPT, "--receipt", ""),
            ("run", "-f", ""),
            ("run", "-m", "", *PROMPT),
            ("logits", *PROMPT, "--output", ""),
            ("logits", *PROMPT, "--dump-kv", ""),
            ("quantize", model, "", "--type", "q8_0"),
            ("quantize", "", "x", "--type", "q8_0"),
            ("verify", ""),
            ("keygen", ""),
        ):
            with self.subTest(arguments=arguments):
                self.assert_one_line_error(tern(*arguments), 2, ["the name of the file is empty"])

    def test_keys_without_a_receipt(self):
        key = self.dir / "key"
        tern_text("keygen", key)
        for command in ("run", "bench"):
            result = tern(command, *(PROMPT if command == "run" else ()), "--sign-key", key)
            self.assert_one_line_error(result, 2, ["--sign-key", "--receipt"])
        env = {"TERN_SIGN_KEY": str(key)}  # for every run that has a receipt
        self.assertEqual(tern("run", *PROMPT, "-n", 1, env=env).returncode, 0)

    def test_a_model_that_does_not_run(self):
        """It is written, for other programs, and a line says so."""
        file = gguf_edit.read(synth("llama-tiny-q8_0", self.dir, seed=5))
        file["general.architecture"] = gguf_edit.string("other")
        (self.dir / "other.gguf").write_bytes(file.to_bytes())
        result = tern("quantize", self.dir / "other.gguf", self.dir / "o4.gguf", "--type", "q4_0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count(b"\n"), 1)
        self.assertIn(b"but tern does not run it", result.stderr)

    def test_no_key(self):
        text = self.dir / "text"
        text.write_text("no key")
        result = tern("run", *PROMPT, "--receipt", self.dir / "r", "--sign-key", text)
        self.assert_one_line_error(result, 1, ["text: no key"])

    def test_stop_tokens(self):
        self.assert_one_line_error(
            tern("run", *PROMPT, "--stop-token", 99999), 2, ["--stop-token 99999", "ends at 1023"]
        )
        self.assertEqual(tern("run", *PROMPT, "-n", 1, "--stop-token", 1023).returncode, 0)

    def test_flash_attention(self):
        """The flag is not read as -f a."""
        for words in (("-fa", "on"), ("--flash-attn", "auto")):
            result = tern("run", *PROMPT, "-n", 1, *words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(b"has no effect", result.stderr)
        self.assert_one_line_error(tern("run", *PROMPT, "-fa", "yes"), 2, ["-fa", "on off auto"])


class Reading(FolderTest):
    """Input is never output: not under another name, not through a link, and not in part."""

    def assert_kept(self, *arguments, of):
        before = of.read_bytes()
        self.assert_one_line_error(tern(*arguments, "--force"), 2, ["never replaces what it reads"])
        self.assertEqual(of.read_bytes(), before)

    def test_quantize(self):
        model = synth("llama-tiny-q8_0", self.dir, seed=2)
        hard, soft = self.dir / "hard.gguf", self.dir / "soft.gguf"
        os.link(model, hard)
        soft.symlink_to(model)
        around = self.dir / ".." / self.dir.name / model.name
        for a in (model, hard, soft, around):
            for b in (model, hard, soft, around):
                self.assert_kept("quantize", a, b, "--type", "q4_0", of=model)
        self.assertTrue(soft.is_symlink())

    def test_models_by_name(self):
        """-m NAME and --model-dir name a file that only loading finds."""
        model = synth("llama-tiny-q8_0", self.dir, seed=3)
        folder = ("--model-dir", self.dir, "--tokens", "1,2")
        self.assert_kept("logits", "-m", model.stem, *folder, "--output", model, of=model)

    def test_texts_and_tokenizers(self):
        text, model = self.dir / "text.txt", common.small_model()
        text.write_text("Once upon a time")
        self.assert_kept("logits", "-m", model, "-f", text, "--output", text, of=text)
        self.assert_kept("run", "-m", model, "-f", text, "--receipt", text, of=text)
        result = tern("logits", "-m", model, "-f", text, "--output", "x", "--dump-kv", "x")
        self.assert_one_line_error(result, 2, ["x: is named twice"])

    def test_parts(self):
        """Parts of a split model that the command line does not name."""
        whole = synth("llama-tiny-q8_0", self.dir, seed=4)
        parts = [self.dir / part_name(i, 2) for i in range(2)]
        for path, part in zip(parts, cut(gguf_edit.read(whole), 2)):
            path.write_bytes(part.to_bytes())
        before = parts[1].read_bytes()
        result = tern("quantize", parts[0], parts[1], "--type", "q4_0", "--force")
        self.assert_one_line_error(result, 2, ["is being read, and not replaced"])
        self.assertEqual(parts[1].read_bytes(), before)

    def test_a_saved_conversation_is_not_the_model(self):
        copy = self.dir / "small.gguf"
        copy.write_bytes(common.small_model().read_bytes())
        line = f"Hi\n/save! {copy}\n".encode()
        result = tern("chat", "-m", copy, "-n", "2", stdin=line)
        self.assertIn(b"is being read, and not replaced", result.stderr)
        self.assertEqual(copy.read_bytes(), common.small_model().read_bytes())


if __name__ == "__main__":
    common.main()
