# SPDX-License-Identifier: Apache-2.0
"""scripts/install-deps beside a system of the test's own: the packages that it installs, and the users who may;
scripts/get-model where pip is not installed."""

import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import common

SCRIPT = common.ROOT / "scripts" / "install-deps"
TESTS_ALONE = "python3-venv libcmocka-dev libbenchmark-dev"
PROGRAMS = {
    "dpkg-query": 'for last; do :; done\nfor one in $LACKING; do [ "$last" = "$one" ] && exit 1; done\necho "install ok installed"',
    "id": 'echo "$USER_ID"',
    "apt-get": 'echo "$@" >>"$DONE"',
}


class InstallDeps(common.FolderTest):
    def setUp(self):
        self.bin = self.dir / self._testMethodName
        self.bin.mkdir()
        self.done = self.bin / "done"
        self.done.write_text("")
        for name, body in PROGRAMS.items():
            (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
            (self.bin / name).chmod(0o755)
        for name in ("dirname", "grep", "sed", "env"):
            os.symlink(shutil.which(name), self.bin / name)

    def run_script(self, *options, lacking="", user=1000):
        env = {"PATH": str(self.bin), "LACKING": lacking, "USER_ID": str(user), "DONE": str(self.done)}
        result = subprocess.run(["/bin/sh", SCRIPT, *options], env=env, capture_output=True, text=True)
        return result.returncode, result.stderr, self.done.read_text()

    def test_nothing_is_missing(self):
        for options in ((), ("--user",)):
            self.assertEqual(self.run_script(*options), (0, "", ""))

    def test_a_users_build_needs_nothing_of_the_tests(self):
        self.assertEqual(self.run_script("--user", lacking=TESTS_ALONE), (0, "", ""))
        status, errors, done = self.run_script(lacking=TESTS_ALONE)
        self.assertEqual((status, done), (1, ""))
        self.assertIn(f"by hand:  {TESTS_ALONE}", errors)

    def test_without_root_a_build_goes_without_parts(self):
        status, errors, done = self.run_script("--user", lacking="libgnutls28-dev cmake-format")
        self.assertEqual((status, errors, done), (0, "install-deps: the build goes without libgnutls28-dev\n", ""))
        status, errors, _ = self.run_script("--user", lacking="cmake libgnutls28-dev")
        self.assertEqual(status, 1)
        self.assertIn("by hand:  cmake\n", errors)

    def test_root_installs(self):
        status, _, done = self.run_script("--user", lacking=f"cmake libgnutls28-dev {TESTS_ALONE}", user=0)
        self.assertEqual(status, 0)
        self.assertTrue(done.endswith("--no-install-recommends cmake libgnutls28-dev\n"), done)
        _, _, done = self.run_script(lacking="cmake libcmocka-dev", user=0)
        self.assertTrue(done.endswith("--no-install-recommends cmake libcmocka-dev\n"), done)

    def test_python_packages_have_hashes(self):
        for name in ("tests/oracle/requirements", "lab/report-requirements"):
            pinned = (common.ROOT / f"{name}.txt").read_text().replace("\\\n", " ").splitlines()
            pinned = [line for line in pinned if not line.startswith("#")]
            for line in pinned:
                self.assertRegex(line, r"^[a-z0-9-]+==\S+( ; [^#]+?)? +--hash=sha256:[0-9a-f]{64}( |$)")
            wanted = re.findall(r"^([a-z0-9-]+==[^;\s]+)", (common.ROOT / f"{name}.in").read_text(), re.M)
            self.assertGreater(len(wanted), 0)
            for package in wanted:
                self.assertTrue(any(line.startswith(f"{package} ") for line in pinned), f"{name}.txt lacks {package}")
        self.assertIn("--require-hashes -r", SCRIPT.read_text())


class GetModel(unittest.TestCase):
    """Tests of scripts/get-model on a system without pip."""

    def setUp(self):
        loader = importlib.machinery.SourceFileLoader("get_model", str(common.ROOT / "scripts" / "get-model"))
        self.script = importlib.util.module_from_spec(importlib.util.spec_from_loader("get_model", loader))
        sys.dont_write_bytecode = True
        loader.exec_module(self.script)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.run = folder.name, subprocess.run

    def without_pip(self, command, **options):
        if command[-1] == "--version":
            raise FileNotFoundError(command[0])
        return self.run(command, **options)

    def test_a_pip_of_its_own(self):
        with mock.patch.object(self.script.subprocess, "run", self.without_pip):
            command = self.script.pip_command(self.folder)
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn(self.folder, said)

    def test_neither(self):
        refuses = mock.Mock(side_effect=subprocess.CalledProcessError(1, "ensurepip"))
        with mock.patch.object(self.script.subprocess, "run", self.without_pip), mock.patch("venv.create", refuses):
            with self.assertRaisesRegex(self.script.Failure, "python3-pip, or python3-venv"):
                self.script.pip_command(self.folder)

    def test_recommended_sampling(self):
        """The makers' sampling lies beside a model, also one that was fetched before, and a user's file stays."""
        model = Path(self.folder) / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
        model.parent.mkdir()
        shutil.copy(common.small_model(), model)
        known = self.script.MODELS["smollm2"]._replace(size=model.stat().st_size)
        called = mock.patch.multiple(self.script.sys, argv=["get-model", "smollm2"])
        with mock.patch.dict(self.script.os.environ, TERN_CACHE=self.folder), called:
            with mock.patch.dict(self.script.MODELS, smollm2=known):
                self.assertEqual(self.script.main(), 0)
                settings = common.tern("chat", model, stdin=b"/settings\n").stderr.decode()
                self.assertRegex(settings, r"temperature +0\.2 +generation_config\.json\n")
                self.assertRegex(settings, r"top-p +0\.9 +generation_config\.json\n")
                beside = model.with_name("SmolLM2-135M-Instruct.Q4_1.generation_config.json")
                beside.write_text('{"temperature": 0.5}')
                self.assertEqual(self.script.main(), 0)
                self.assertEqual(beside.read_text(), '{"temperature": 0.5}')


if __name__ == "__main__":
    common.main()
