# SPDX-License-Identifier: Apache-2.0
"""Names, options and variables of other programs: each has its effect, or a message about it."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import common
import gguf_edit
from common import tern, tern_text

# These commands take the small model when none is named; each stands with the other arguments that it needs.
FALLS_BACK = {
    "run": ["-p", "abc", "-n", 1],
    "chat": [],
    "serve": ["--port", 0],
    "logits": ["-p", "abc"],
    "score": ["-p", "abc", "--option", "d"],
    "embed": ["-p", "abc", "--pooling", "mean"],
    "bench": ["-p", 2, "-n", 1, "--repeat", 1],
    "perplexity": ["-f", "FILE"],
    "imatrix": ["-f", "FILE", "-o", "OUT"],
    "crossval": ["--reference", common.ROOT / "tests" / "golden" / "tern-small-transformers.json"],
    "tokenize": ["-p", "abc"],
    "chat-template": ["--messages", "MESSAGES"],
    "plan": ["--bus", 10],
    "tune": [],
    "verify-determinism": [],
}


class Names(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = common.small_model()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def file(self, name, data):
        path = Path(self.folder.name) / name
        path.write_bytes(data)
        return path

    def test_require_model(self):
        """With --require-model every command refuses to run without -m; with -m the option changes nothing."""
        text = self.file("text", b"one two three")
        messages = self.file("messages.json", b'[{"role": "user", "content": "Hi"}]')
        for command, rest in FALLS_BACK.items():
            words = [{"FILE": text, "OUT": text.with_suffix(".gguf"), "MESSAGES": messages}.get(word, word) for word in rest]
            for more, env in ((["--require-model"], {}), ([], {"IE_REQUIRE_MODEL": "1"})):
                with self.subTest(command=command, more=more):
                    result = tern(command, *words, *more, env=env)
                    self.assert_one_line_error(result, 2, ["no model", "TERN_MODEL"])
        named = ("logits", "-m", self.model, "-p", "abc", "--sha256")
        self.assertEqual(
            tern_text(*named), tern_text(*named, env={"IE_REQUIRE_MODEL": "1", "TERN_MODEL": "none"})
        )
        fallback = tern("logits", "-p", "abc", "--sha256", env={"IE_REQUIRE_MODEL": "0"})
        self.assertEqual((fallback.returncode, fallback.stderr), (0, b""))

    def test_every_fallback_is_known(self):
        """A command that takes the small model has --require-model, and stands in the list above."""
        text = tern_text("help")
        commands = re.findall(r"^  ([a-z-]+) +", text, re.M)
        found = {c for c in commands if c not in ("help", "tern") and "--require-model" in tern_text("help", c)}
        self.assertEqual(found, set(FALLS_BACK))

    def test_soft_hints(self):
        """Scopes and devices that tern does not tell apart: one line that says so, the same answer."""
        run = ("run", "-m", self.model, "-p", "Q: What is 2+2? A:", "-n", 2)
        plain = tern(*run)
        cache = Path(self.folder.name) / "cache"
        for name in ("woh", "wxh"):
            with self.subTest(pretranspose=name):
                said = tern(*run, "--pretranspose", name, "--cache-dir", cache)
                self.assertEqual((said.returncode, said.stdout), (0, plain.stdout))
                self.assertEqual(len(said.stderr.splitlines()), 1)
                self.assertIn(f"--pretranspose {name}: all matrices".encode(), said.stderr)
        self.assertTrue(list(cache.rglob("*")), "nothing was kept")
        said = tern(*run, "-ngl", 99)
        self.assertEqual((said.returncode, said.stdout), (0, plain.stdout))
        self.assertEqual(said.stderr, b"tern: --n-gpu-layers has no effect: --device cuda takes all layers\n")
        result = tern(*run, "-ngl", 99, "--strict")
        self.assert_one_line_error(result, 2, ["strict: --n-gpu-layers would have no effect"])
        self.assertEqual(tern(*run, "--device", "cpu", "--strict").returncode, 0)
        self.assertEqual(tern(*run, "--device", "abacus").returncode, 2)

    def test_compat_check(self):
        """The answer comes as text and as JSON, under both names; it is 0 only for a model that runs here."""
        file = gguf_edit.read(self.model)
        architecture = file.text("general.architecture")
        del file[f"{architecture}.block_count"]
        file["general.architecture"] = gguf_edit.string("unheard-of")
        broken = self.file("broken.gguf", file.to_bytes())
        for command in ("inspect", "compat-check"):
            for model, status in ((self.model, 0), (broken, 1)):
                with self.subTest(command=command, model=model):
                    self.assertEqual(tern(command, model).returncode, status)
                    result = tern(command, model, "--json")
                    self.assertEqual(result.returncode, status)
                    answer = json.loads(result.stdout)
                    self.assertEqual(answer["runs_here"], status == 0)
                    self.assertEqual("unheard-of" in answer["why"], status == 1)

    def test_work_touch(self):
        """Variables that count for the bench also count for a run: within its window, in its one line."""
        env = {"IE_BYTES_PER_TOKEN": "64000000", "IE_STRIDE_BYTES": "8", "IE_VERIFY_TOUCH": "1"}
        run = ("run", "-m", self.model, "-p", "Once upon a time", "-n", 6, "--ignore-eos")
        plain, touched = common.tern_json(*run), common.tern_json(*run, env=env)
        self.assertNotIn("touch", plain)
        self.assertEqual(plain["text"], touched["text"])
        touch = touched["touch"]
        self.assertEqual((touch["bytes_per_token"], touch["stride"], touch["tokens"]), (64000000, 8, 6))
        self.assertTrue(touch["complete"])
        self.assertLess(6e-3 * touch["ms_per_token"], 6 / touched["decode_tps"])
        many = json.loads(tern_text(*run, "--json", "--rounds", 3, env=env).splitlines()[-1])["touch"]
        self.assertEqual(many["tokens"], 18)
        result = tern(*run, env=env | {"IE_STRIDE_BYTES": "12"})
        self.assert_one_line_error(result, 2, ["--touch-stride: 12"])

    def called(self, name, *args):
        """The program by another name, as a link to it has."""
        link = Path(self.folder.name) / name
        if not link.exists():
            link.symlink_to(common.command()[0])
        return subprocess.run([link, *map(str, args)], env=common.clean_environment(), capture_output=True)

    def test_inference_engine(self):
        """Options without a command are those of run, for one line of JSON; with a command they belong to that
        command."""
        run = ("-m", self.model, "-p", "Q: What is 2+2? A:", "--max-new", 4)
        expected = common.tern_json("run", *run)
        made = self.called("inference-engine", *run)
        self.assertEqual(json.loads(made.stdout)["tokens"], expected["tokens"])
        self.assertEqual(len(made.stdout.splitlines()), 1)
        many = json.loads(self.called("inference-engine", *run, "--rounds", 3).stdout)
        self.assertEqual((many["answers"], many["failed"]), (3, 0))
        self.assertEqual(self.called("inference-engine", *run, "--json=0").stdout.decode(), expected["text"] + "\n")
        self.assertEqual(self.called("inference-engine", "--version").stdout, tern("--version").stdout)
        self.assertEqual(self.called("inference-engine", "--help").stdout, tern("run", "--help").stdout)
        self.assertEqual(self.called("inference-engine", "inspect", self.model).returncode, 0)
        self.assert_one_line_error(self.called("inference-engine", "--max-newest", 3), 2, ["--max-newest"])
        self.assert_one_line_error(self.called("another-engine", *run), 2, ["options come after a command"])

    def test_inference_engine_on_cuda(self):
        """Its own name is --device cuda, unless another device is named."""
        run = ("-m", self.model, "-p", "abc", "-n", 2)
        asked, named = tern("run", *run, "--device", "cuda"), self.called("inference-engine.cuda", *run)
        self.assertEqual((named.returncode, named.stderr), (asked.returncode, asked.stderr))
        self.assertEqual(self.called("inference-engine.cuda", *run, "--device", "cpu").returncode, 0)

    def test_recompute(self):
        """Each position computed from nothing gives the same logits as with the cache."""
        for model, kv in ((self.model, "f16"), (common.synth("bitnet-tiny", self.folder.name), "q8_0")):
            options = ("logits", "-m", model, "--tokens", "1,5,9,2,7,3,8,4,6,11,10", "--kv", kv, "--sha256")
            with self.subTest(model=model.name):
                whole = tern_text(*options, "--all")
                self.assertEqual(whole, tern_text(*options, "--all", "--recompute"))
                last = tern_text(*options)
                self.assertNotEqual(whole, last)
                self.assertEqual(last, tern_text(*options, "--recompute"))


if __name__ == "__main__":
    common.main()
