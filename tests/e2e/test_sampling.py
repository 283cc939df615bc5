# SPDX-License-Identifier: Apache-2.0
"""Tests how a chat picks tokens and where its settings come from: flag, variable, generation_config.json, metadata,
default."""

import json
import os
import re

import common
import gguf_edit
from common import tern, tern_text

NAMES = ["temperature", "top-k", "top-p", "min-p", "repeat penalty", "presence penalty",
         "frequency penalty", "repeat-last-n"]  # fmt: skip
DEFAULTS = [0.7, 0, 0.95, 0, 1, 0, 0, 64]
QUESTION = "Once upon a time"


class Sampling(common.FolderTest):
    def setUp(self):
        self.model = self.dir / "model.gguf"
        self.config = self.dir / "generation_config.json"
        self.config.unlink(missing_ok=True)
        self.write_model({})

    def write_model(self, keys):
        file = gguf_edit.read(common.small_model())
        for name, typed in keys.items():
            file[f"general.sampling.{name}"] = typed
        self.model.write_bytes(file.to_bytes())

    def settings(self, *options, env=None, lines="/settings\n", noise=()):
        """{name: (value, source)} as /settings prints them."""
        result = tern("chat", self.model, *options, stdin=lines.encode(), env=env)
        said = result.stderr.decode().splitlines()
        for part in noise:
            self.assertIn(part, said.pop(0))
        self.assertEqual((result.returncode, result.stdout), (0, b""), said)
        rows = [re.fullmatch(r"  (\S.*?) +([\d.e+-]+) *(.*)", line).groups() for line in said]
        return {name: (float(value), source) for name, value, source in rows}

    def assert_defaults(self, settings):
        self.assertEqual(list(settings), [*NAMES, "seed"])
        for name, value in zip(NAMES, DEFAULTS):
            self.assertEqual(settings[name], (value, "default"), name)

    def test_default(self):
        settings = self.settings()
        self.assert_defaults(settings)
        self.assertEqual(settings["seed"], (42, ""))

    def test_order(self):
        """The nearer source wins, for each parameter alone."""
        self.write_model({"temp": gguf_edit.f32(0.25), "top_k": gguf_edit.u32(40),
                          "min_p": gguf_edit.f32(0.125), "penalty_repeat": gguf_edit.f32(1.5)})  # fmt: skip
        config = {"temperature": 0.5, "top_k": 30, "do_sample": True, "repetition_penalty": None}
        self.config.write_text(json.dumps(config))
        env = {"TERN_TOP_K": "20", "TERN_TOP_P": "0.75"}
        settings = self.settings("--temp", 1.5, "--top-p", 0.5, env=env)
        self.assertEqual(settings["temperature"], (1.5, "flag"))
        self.assertEqual(settings["top-k"], (20, "environment"))
        self.assertEqual(settings["top-p"], (0.5, "flag"))
        self.assertEqual(settings["min-p"], (0.125, "the model's metadata"))
        self.assertEqual(settings["repeat penalty"], (1.5, "the model's metadata"))
        self.assertEqual(self.settings()["temperature"], (0.5, "generation_config.json"))
        self.config.unlink()
        self.assertEqual(self.settings()["temperature"], (0.25, "the model's metadata"))

    def test_a_model_among_others(self):
        """A file with the model's own name speaks for it alone, in place of the folder's."""
        own = self.dir / "model.generation_config.json"
        other = self.dir / "model2.generation_config.json"
        self.config.write_text('{"temperature": 0.5, "top_k": 30}')
        other.write_text('{"temperature": 0.125}')
        self.addCleanup(other.unlink)
        self.assertEqual(self.settings()["temperature"], (0.5, "generation_config.json"))
        own.write_text('{"temperature": 0.25}')
        self.addCleanup(own.unlink)
        settings = self.settings()
        self.assertEqual(settings["temperature"], (0.25, "generation_config.json"))
        self.assertEqual(settings["top-k"], (0, "default"))

    def test_what_is_said_is_done(self):
        """A recommendation and flags with the same values give the same text."""
        self.config.write_text('{"temperature": 1.25, "top_k": 20, "repetition_penalty": 1.5}')
        words = ("chat", self.model, "--ignore-eos", "-n", 30)
        line = f"{QUESTION}\n".encode()
        recommended = tern(*words, stdin=line).stdout
        self.config.unlink()
        flags = ("--temp", 1.25, "--top-k", 20, "--repeat-penalty", 1.5, "--seed", 42)
        self.assertEqual(tern(*words, *flags, stdin=line).stdout, recommended)
        self.assertNotEqual(tern(*words, stdin=line).stdout, recommended)

    def test_greedy(self):
        run = tern_text("run", "--chat", self.model, QUESTION, "-n", 30)
        line = f"{QUESTION}\n".encode()
        for options in (("--greedy",), ("--temp", 0)):
            self.assertEqual(tern("chat", self.model, "-n", 30, *options, stdin=line).stdout.decode(), run)
        env = {"TERN_GREEDY": "1"}
        self.assertEqual(self.settings(env=env)["temperature"], (0, "environment"))
        self.assertEqual(self.settings("--temp", 0.5, env=env)["temperature"], (0.5, "flag"))
        for command in (["chat"], ["run", "-p", "x"]):
            result = tern(*command, "-m", self.model, "--greedy", "--temp", 0.5)
            self.assert_one_line_error(result, 2, ["--greedy"])

    def test_run_is_greedy_whatever_is_recommended(self):
        before = tern_text("run", "--chat", self.model, QUESTION, "-n", 30)
        self.config.write_text('{"temperature": 5.0}')
        self.assertEqual(tern_text("run", "--chat", self.model, QUESTION, "-n", 30), before)

    def test_no_sampling_recommended(self):
        self.config.write_text('{"do_sample": false, "temperature": 0.9, "top_p": 0.5}')
        settings = self.settings()
        for name, value in {"temperature": 0, "top-k": 0, "top-p": 1, "min-p": 0}.items():
            self.assertEqual(settings[name], (value, "generation_config.json"))

    def test_seed(self):
        words = ("chat", self.model, "--ignore-eos", "-n", 20)
        seven = tern(*words, "--seed", 7, stdin=f"{QUESTION}\n".encode()).stdout
        typed = tern(*words, stdin=f"/seed 7\n{QUESTION}\n".encode()).stdout
        other = tern(*words, stdin=f"{QUESTION}\n".encode()).stdout
        self.assertEqual(typed, seven)
        self.assertNotEqual(other, seven)
        self.assertEqual(self.settings(lines="/seed 18446744073709551615\n/settings\n")["seed"][0], 2.0**64)
        for wrong in ("x", "-1", "18446744073709551616", "1 2"):
            result = tern("chat", self.model, stdin=f"/seed {wrong}\n".encode())
            self.assert_one_line_error(result, 1, ["/seed wants", wrong])

    def check_left_out(self, *parts):
        """One line says so, and the chat goes on without it; --strict refuses."""
        self.assert_defaults(self.settings(noise=[" ".join(parts[:1])]))
        message = tern("chat", self.model, stdin=b"").stderr.decode()
        for part in (*parts, "not used"):
            self.assertIn(part, message)
        strict = tern("chat", "--strict", self.model, stdin=b"")
        self.assert_one_line_error(strict, 1, ["strict", *parts])

    def test_bad_files(self):
        for text, *parts in (
            ("", "empty"),
            ("{", "line 1"),
            ("[]", "not a JSON object"),
            ('{"temperature": NaN}', "line 1"),
            ('{"temperature": -1}', "temperature is -1", "from 0 to 1000"),
            ('{"temperature": 1e999}', "temperature is inf"),
            ('{"temperature": "hot"}', "temperature is not a number"),
            ('{"top_k": 2.5}', "top_k is 2.5", "an integer"),
            ('{"top_k": -1}', "top_k is -1"),
            ('{"top_p": 0}', "top_p is 0"),
            ('{"repetition_penalty": 0}', "repetition_penalty is 0"),
            ('{"min_p": 0.' + "1" * 100 + "}", "min_p is not a number"),
            (" " * 2_000_000 + "{}", "2000002 bytes"),
        ):
            with self.subTest(text=text[:60]):
                self.config.write_text(text)
                self.check_left_out(str(self.config), *parts)

    def test_files_that_are_none(self):
        """These files cannot be read, and then the chat does not start."""
        os.mkfifo(self.config)
        refused = tern("chat", self.model, stdin=b"")
        self.assert_one_line_error(refused, 1, [str(self.config), "not a regular file"])
        self.config.unlink()
        self.config.mkdir()
        refused = tern("chat", self.model, stdin=b"")
        self.assert_one_line_error(refused, 1, [str(self.config), "is a directory"])
        self.config.rmdir()

    def test_bad_metadata(self):
        for key, typed, shown in (
            ("temp", gguf_edit.f32(float("nan")), "nan"),
            ("temp", gguf_edit.f32(-1.0), "-1"),
            ("top_p", gguf_edit.f32(float("inf")), "inf"),
            ("top_k", gguf_edit.string("many"), "nan"),
            ("penalty_last_n", gguf_edit.u32(0xFFFFFFFF), "4.29497e+09"),
        ):
            with self.subTest(key=key, shown=shown):
                self.write_model({key: typed})
                self.check_left_out(str(self.model), f"general.sampling.{key} is {shown}")


if __name__ == "__main__":
    common.main()
