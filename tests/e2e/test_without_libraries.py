# SPDX-License-Identifier: Apache-2.0
"""A build without GnuTLS and libcurl: CMake says which parts are left out, and so does the program. The objects that
know of these libraries are compiled again without them and linked with the rest of the build."""

import json
import os
import re
import shlex
import shutil
import subprocess
import unittest
from pathlib import Path

import common

SWITCHES = re.compile(r"^-DTERN_HAVE_(GNUTLS|CURL)=1$")
LIBRARIES = re.compile(r"libgnutls|libcurl")
LOADED = re.compile(r'-DTERN_(?:GNUTLS|CURL)=\\*"*(lib[\w.+-]+)')
ASKING = [
    (["serve", "--port", "0", "--tls-cert", __file__, "--tls-key", __file__], "gnutls"),
    (["run", "--server", "http://127.0.0.1:9", "-p", "x"], "curl"),
    (["pull", "owner/name:model.gguf"], "curl"),
]
PKG_CONFIG = """#!/bin/sh
for word in "$@"; do
    case $word in libcurl* | gnutls*) exit 1 ;; esac
done
exec {real} "$@"
"""


class Without(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.build = Path(common.command()[0]).parent
        if not shutil.which("ninja") or not (cls.build / "build.ninja").exists():
            raise unittest.SkipTest("this build is not one of Ninja")

    def commands(self, target):
        result = subprocess.run(["ninja", "-C", self.build, "-t", "commands", target], check=True, capture_output=True, text=True)
        return result.stdout.splitlines()

    def compiled(self, source):
        """The object of a source, compiled without the libraries."""
        found = [c for c in json.loads((self.build / "compile_commands.json").read_text()) if c["file"].endswith(f"/{source}")]
        if not found:
            self.skipTest(f"{source} is not in this build")
        words = [word for word in shlex.split(found[0]["command"]) if not SWITCHES.match(word)]
        out = self.dir / (source.replace("/", "_") + ".o")
        words[words.index("-o") + 1] = out
        subprocess.run(words, cwd=self.build, check=True, capture_output=True)
        return out

    def linked(self, *sources):
        """The program with these objects in place of its own."""
        line = next(c for c in reversed(self.commands("tern_program")) if "-o tern " in c)
        words = shlex.split(line.removeprefix(": && ").partition(" && ")[0])  # what follows makes links
        words = [word for word in words if not LIBRARIES.search(word)]
        at = words.index("-o")
        program = self.dir / f"tern-{len(sources)}"
        words[at : at + 2] = ["-o", program, *[self.compiled(source) for source in sources]]
        subprocess.run(words, cwd=self.build, check=True, capture_output=True)
        return program

    def refused(self, program, *args):
        result = subprocess.run([program, *args], env=common.clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)
        self.assert_one_line_error(result)
        return result.stderr.decode()

    def test_the_program_says_what_is_missing(self):
        common.small_model()
        program = self.linked("serve/http/tls.c", "tools/remote/exchange.c")
        needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        self.assertNotRegex(needed, "libgnutls|libcurl")
        self.assertIn("made without gnutls", self.refused(program, "serve", "--tls-cert", __file__, "--tls-key", __file__))
        for command in ("run", "chat"):
            self.assertIn("made without libcurl", self.refused(program, command, "--server", "http://127.0.0.1:9"))
        result = subprocess.run([program, "run", "-p", "Hello", "-n", "2"], env=common.clean_environment(), capture_output=True, check=False)
        self.assertEqual((result.returncode, result.stdout.decode()), (0, common.tern_text("run", "-p", "Hello", "-n", 2)))

    def test_the_network_is_loaded_when_it_is_asked_for(self):
        """Other commands do not pay for its thirty libraries, and work where they are missing."""
        common.small_model()
        needed = subprocess.run(["ldd", *common.command()], capture_output=True, text=True, check=True).stdout
        self.assertNotRegex(needed, "libgnutls|libcurl")
        names = LOADED.findall((self.build / "compile_commands.json").read_text())
        if not names:
            self.skipTest("this build has none of them")
        for name in names:
            (self.dir / name).touch()
        broken = {**common.clean_environment(), "LD_LIBRARY_PATH": str(self.dir)}
        for args, name in ASKING:
            result = subprocess.run([*common.command(), *args], env=broken, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            self.assert_one_line_error(result)
            if "made without" not in result.stderr.decode():
                self.assertRegex(result.stderr.decode(), rf"lib{name}\S* cannot be loaded: .*file too short")
        result = subprocess.run([*common.command(), "--version"], env=broken, capture_output=True, check=False)
        self.assertEqual(result.returncode, 0)

    def test_cmake_says_what_is_left_out(self):
        real = shutil.which("pkg-config")
        if not real or not shutil.which("cmake"):
            self.skipTest("CMake or pkg-config is not installed")
        wrapper = self.dir / "pkg-config"
        wrapper.write_text(PKG_CONFIG.format(real=real))
        wrapper.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if name != "CMAKE_C_COMPILER_LAUNCHER"}
        result = subprocess.run(
            ["cmake", "-S", common.ROOT, "-B", self.dir / "build", "-G", "Ninja", f"-DPKG_CONFIG_EXECUTABLE={wrapper}",
             "-DTERN_CUDA=OFF", "-DTERN_TESTS=OFF", "-DTERN_BENCH=OFF"],
            env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("gnutls was not found: tern serve is built without TLS", result.stdout)
        self.assertIn("libcurl was not found: tern run and tern chat are built without --server", result.stdout)
        commands = (self.dir / "build" / "compile_commands.json").read_text()
        self.assertNotRegex(commands, r"TERN_HAVE_(GNUTLS|CURL)")


if __name__ == "__main__":
    common.main()
