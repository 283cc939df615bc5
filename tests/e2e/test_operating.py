# SPDX-License-Identifier: Apache-2.0
"""The recipes of docs/operating.md start the programs that they name."""

import configparser
import json
import re
import shlex
import shutil
import subprocess

import common
from serving import Server
from test_serve import QUESTION

PAGE = (common.ROOT / "docs" / "operating.md").read_text()
PROGRAM = "/usr/local/bin/tern"
BASE_PACKAGES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.S | re.M)


class Recipes(common.FolderTest):
    def start(self, words, key=None):
        """The command of a recipe, its paths in this test's folder and its port a free one."""
        self.assertEqual(words[:2], [PROGRAM, "serve"])
        options = words[2:]
        for name, target in (("-m", common.small_model()), ("--log-file", self.dir / "log"), ("--api-key-file", key)):
            if name in options:
                options[options.index(name) + 1] = target
        del options[options.index("--port") : options.index("--port") + 2]
        return Server(*options)

    def unit(self):
        text = blocks("ini")[0]
        unit = configparser.ConfigParser(strict=False, interpolation=None)
        unit.optionxform = str
        unit.read_string(text)
        return text, unit["Service"]

    def test_the_unit_starts_a_server(self):
        _, service = self.unit()
        keys = self.dir / "keys"
        keys.write_text("alice SECRET\n")
        with self.start(shlex.split(service["ExecStart"]), keys) as server:
            self.assertIn("a key is needed", server.greeting[1])
            self.assertEqual(server.get("/props", Authorization="Bearer SECRET").status, 200)
        lines = (self.dir / "log").read_text().splitlines()
        self.assertEqual(json.loads(lines[0])["key"], "alice")
        self.assertEqual(service["ExecReload"], "/bin/kill -HUP $MAINPID")
        drain = int(re.search(r"--drain SECONDS .*?\[(\d+)\]", " ".join(common.tern_text("help", "serve").split()))[1])
        self.assertGreater(int(service["TimeoutStopSec"]), drain)

    def test_systemd_takes_the_unit(self):
        analyze = shutil.which("systemd-analyze")
        if not analyze:
            self.skipTest("systemd-analyze is not installed")
        text, _ = self.unit()
        path = self.dir / "tern.service"
        path.write_text(text.replace(PROGRAM, common.command()[0]).replace("man:tern(1)", "https://example.org"))
        result = subprocess.run([analyze, "verify", path], capture_output=True, text=True, check=False)
        about_it = [line for line in result.stderr.splitlines() if "tern" in line]
        self.assertEqual(about_it, [], result.stderr)

    def test_the_container_starts_a_server(self):
        recipe = blocks("dockerfile")[0].replace("\\\n", "")
        words = json.loads(re.search(r"^ENTRYPOINT (.*)$", recipe, re.M)[1])
        with self.start([*words, "-m", "/models/model.gguf"]) as server:
            self.assertEqual(server.host, "0.0.0.0")
            server.host = "127.0.0.1"
            self.assertEqual(server.chat(QUESTION).json()["choices"][0]["message"]["content"], "4")
        for target in re.findall(r"\bmake (\w+)", recipe):
            subprocess.run(["make", "-n", target], cwd=common.ROOT, check=True, capture_output=True)

    def test_the_container_has_the_libraries(self):
        """Each library that the program needs belongs to a package that the recipe installs."""
        if not (shutil.which("readelf") and shutil.which("dpkg-query")) or 'VERSION_ID="12"' not in open("/etc/os-release").read():
            self.skipTest("not on Debian 12")
        needed = subprocess.run(["readelf", "-d", common.command()[0]], check=True, capture_output=True, text=True).stdout
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", needed)) - BASE_PACKAGES
        listed = set(re.findall(r"\blib[a-z0-9-]+\b", blocks("dockerfile")[0].split("debian:12-slim")[1]))
        for library in needed:
            owners = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True, check=False).stdout
            owners = {line.split(":")[0] for line in owners.splitlines()}
            if owners:  # else it is not a package's: a sanitizer, or built by hand
                self.assertTrue(owners & listed, f"{library} of {owners}")

    def test_prometheus_takes_the_rules(self):
        promtool = shutil.which("promtool")
        if not promtool:
            self.skipTest("promtool is not installed (Debian: prometheus)")
        config, rules = blocks("yaml")
        for name, text, check in (("config.yml", config, ["config", "--syntax-only"]), ("rules.yml", rules, ["rules"])):
            (self.dir / name).write_text(text)
            result = subprocess.run([promtool, "check", *check, self.dir / name], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_alarms_are_about_what_is_there(self):
        with Server() as server:
            server.chat(QUESTION)
            served = {name.split("{")[0] for name in server.metrics()}
        named = set(re.findall(r"\btern_[a-z_0-9]+", PAGE))
        self.assertEqual(named - served, set())


if __name__ == "__main__":
    common.main()
