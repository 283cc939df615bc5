# SPDX-License-Identifier: Apache-2.0
"""Short names of models: the table, the user's file, and what pull, run, serve and list make of them."""

import json
import tempfile
from pathlib import Path

import common
from common import tern
from hub_server import Hub
from serving import Server

REPO = "someone/tiny-model"


class ShortNames(common.TernTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = Path(folder.name)
        self.config = self.home / ".config" / "tern"
        self.config.mkdir(parents=True)
        self.env = {"HOME": folder.name, "HF_HUB_CACHE": str(self.home / "hub"), "TERN_CACHE": str(self.home / "cache"),
                    "XDG_CONFIG_HOME": "", "HF_HOME": "", "HF_TOKEN": "", "HF_HUB_OFFLINE": "1"}

    def name(self, *lines):
        (self.config / "models").write_text("".join(f"{line}\n" for line in lines))

    def tern(self, *words, **env):
        result = tern(*words, env=self.env | env)
        return result.returncode, result.stdout.decode(), result.stderr.decode()

    def run_model(self, name, **env):
        return self.tern("run", name, "-p", "Once upon a time", "-n", 4, "--no-cache", **env)

    def listed(self, **env):
        status, out, _ = self.tern("list", "--names", "--json", **env)
        self.assertEqual(status, 0)
        return {entry["name"]: entry for entry in json.loads(out)["names"]}

    def test_what_is_not_here_is_not_fetched(self):
        for command in (("run", "qwen3-0.6b", "-p", "x"), ("run", "-m", "qwen3-0.6b", "-p", "x"), ("serve", "-m", "qwen3-0.6b")):
            status, out, errors = self.tern(*command)
            self.assertEqual((status, out), (1, ""))
            self.assertIn("`tern pull qwen3-0.6b` fetches it from the Hugging Face Hub", errors)

    def test_the_table(self):
        names = self.listed()
        for name in ("bitnet-2b", "smollm2", "gemma3-270m", "qwen3-0.6b"):
            self.assertRegex(names[name]["repository"], "^[A-Za-z0-9-]+/[A-Za-z0-9.-]+(:[A-Za-z0-9_-]+)?$")
            self.assertIsNone(names[name]["path"])

    def test_what_get_model_has_fetched(self):
        path = self.home / "cache" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
        path.parent.mkdir(parents=True)
        path.write_bytes(common.small_model().read_bytes())
        self.assertEqual(self.listed()["smollm2"]["path"], str(path))
        self.assertEqual(self.run_model("smollm2")[0], 0)

    def test_the_users_file(self):
        """It is used before the table, in $XDG_CONFIG_HOME too; a wrong line is named and harms no other."""
        model = self.home / "mine.gguf"
        model.write_bytes(common.small_model().read_bytes())
        self.name("# mine", f"mine = {model}  # a file", "qwen3-0.6b = ~/mine.gguf", "gone = ~/gone.gguf", "a line", "")
        for name in ("mine", "qwen3-0.6b"):
            status, out, errors = self.run_model(name)
            self.assertEqual(status, 0, errors)
            self.assertIn(f"{self.config}/models:5: it wants NAME = ", errors)
        self.assertIn("this name stands for", self.run_model("gone")[2])
        names = self.listed()
        self.assertEqual(names["mine"], {"name": "mine", "repository": None, "path": str(model)})
        self.assertEqual(names["qwen3-0.6b"]["path"], str(model))
        self.assertEqual(self.listed(XDG_CONFIG_HOME=str(self.home / ".config"))["mine"]["path"], str(model))
        self.assertNotIn("mine", self.listed(XDG_CONFIG_HOME=str(self.home)))

    def test_pull_and_serve(self):
        hub = Hub({REPO: {"tiny-q8_0.gguf": common.small_model().read_bytes(), "tiny-F16.gguf": b"other"}})
        self.addCleanup(hub.stop)
        online = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "", "no_proxy": "*", "NO_PROXY": "*"}
        self.name(f"tiny = {REPO}:q8_0")
        status, out, errors = self.tern("pull", "tiny", **online)
        if "made without libcurl" in errors:
            self.skipTest("built without libcurl")
        self.assertEqual(status, 0, errors)
        self.assertEqual(self.listed()["tiny"]["path"], out.strip())
        self.assertEqual(self.run_model("tiny")[0], 0)
        with Server("-m", "tiny", "--no-cache", env=self.env) as server:
            self.assertEqual(server.get("/v1/models").json()["data"][0]["id"], "tiny")


if __name__ == "__main__":
    common.main()
