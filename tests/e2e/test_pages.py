# SPDX-License-Identifier: Apache-2.0
"""Tests of the texts that are made from the tables: manual page, completion for shells, the page about the
environment."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import common
from common import ROOT, tern, tern_text
from test_cli_run import COMMANDS


def flags_of(command):
    """Long flags that the help of a command lists."""
    return set(re.findall(r"(?m)^ {2,6}(?:-\w, )?(--[\w-]+)", tern_text(command, "--help")))


def sections_of(text):
    """Heading of each list of options in a help text -> its long flags, in order."""
    found = re.split(r"(?m)^([a-z][a-z ]*):$", text)
    lists = {heading: re.findall(r"(?m)^ {2,6}(?:-\w, )?--([\w-]+)", body) for heading, body in zip(found[1::2], found[2::2])}
    return {heading: flags for heading, flags in lists.items() if heading != "examples"}


def run(*arguments, stdin=""):
    return subprocess.run(arguments, input=stdin, capture_output=True, text=True)


class Environment(common.TernTest):
    def test_page_is_up_to_date(self):
        page = (ROOT / "docs" / "environment.md").read_text()
        self.assertEqual(
            page,
            tern_text("help", "environment.md"),
            "run: build/tern help environment.md > docs/environment.md",
        )

    def test_every_variable_is_there(self):
        page = tern_text("help", "environment.md")
        listed = set(re.findall(r"\b(?:TERN|BITNET|IE|RAYON)_\w+", tern_text("help", "environment")))
        self.assertGreater(len(listed), 30)
        for name in listed:
            self.assertIn(f"`{name}`", page)


    def test_each_name_has_one_meaning(self):
        """No variable stands in two rows, and the criteria that are named are explained."""
        rows = [line.split(" | ") for line in tern_text("help", "environment.md").splitlines() if line[:3] == "| `"]
        names = [name for row in rows for cell in row[:2] for name in re.findall(r"`([A-Z]\w+)`", cell)
                 if not cell.startswith("without")]  # fmt: skip
        self.assertIn("IE_HOT_REPLICATE", names)
        self.assertIn("IE_DEDUP_STRICT", names)
        self.assertEqual(len(names), len(set(names)), sorted(n for n in set(names) if names.count(n) > 1))
        page = tern_text("help", "environment.md")
        named = set(re.findall(r"\bAC\d+", "".join(cell for row in rows for cell in row)))
        self.assertIn("AC3", named)
        for criterion in named:
            self.assertIn(f"\n- {criterion}: ", page)
            self.assertRegex(page, rf"\n- {criterion}: .*\(M\d+")

    def test_what_the_source_reads_is_known(self):
        """No variable that the library, a test or a tool reads is refused as unknown."""
        folders = ("base", "threads", "runtime", "authoring", "receipts", "dispatch", "device", "serve", "tools", "tests", "bench", "kernels")
        names = set()
        for path in (path for folder in folders for path in (ROOT / folder).rglob("*.[ch]")):
            names.update(re.findall(r'getenv\("(TERN_\w+)"\)', path.read_text()))
        for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
            names.update(re.findall(r'environ(?:\.get\(|\[)"(TERN_\w+)"', path.read_text()))
        self.assertGreater(len(names), 10)
        for name in names:
            with self.subTest(name=name):
                self.assertNotIn(b"unknown variable", tern("completion", "bash", env={name: "x"}).stderr)
        self.assertIn(b"unknown variable", tern("completion", "bash", env={"TERN_TMEP": "x"}).stderr)


class Help(common.TernTest):
    def test_many_options_are_grouped(self):
        for command in ("run", "chat", "serve", "bench"):
            with self.subTest(command=command):
                sections = sections_of(tern_text("help", command))
                flags = [flag for section in sections.values() for flag in section]
                self.assertEqual(next(iter(sections)), "most used")
                self.assertEqual(flags[0], "model")
                self.assertLessEqual(len(sections["most used"]), 10)
                self.assertLessEqual({"output", "speed and precision", "threads and memory"}, set(sections))
                self.assertEqual(len(flags), len(set(flags)))
                self.assertLess(max(map(len, sections.values())), 25)

    def test_few_options_are_one_list(self):
        self.assertEqual(list(sections_of(tern_text("help", "pull"))), ["options"])

    def test_pages_have_the_same_groups(self):
        man, environment = tern_text("help", "man"), tern_text("help", "environment.md")
        for heading in set(sections_of(tern_text("help", "serve"))) - {"most used"}:
            self.assertIn(f".SS {heading.capitalize()}\n", man)
            self.assertIn(f"### {heading.capitalize()}\n", environment)


class Manual(common.TernTest):
    def test_everything_is_there(self):
        page = tern_text("help", "man").replace("\\-", "-")
        for command in COMMANDS:
            self.assertIn(f".SS tern {command}", page)
            for flag in flags_of(command) - {"--help"}:
                self.assertIn(f"\\fB{flag}\\fR", page)

    def test_clean(self):
        page = tern_text("help", "man")
        for checker in (["mandoc", "-Tlint"], ["groff", "-mandoc", "-ww", "-Tutf8", "-z"]):
            if shutil.which(checker[0]):
                with self.subTest(checker=checker[0]):
                    result = run(*checker, stdin=page)
                    self.assertEqual((result.stdout, result.stderr), ("", ""))


class Completion(common.TernTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.files = {}
        for shell in ("bash", "zsh", "fish"):
            cls.files[shell] = Path(cls.folder.name) / f"tern.{shell}"
            cls.files[shell].write_text(tern_text("completion", shell))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def need(self, shell):
        if not shutil.which(shell):
            self.skipTest(f"no {shell}")

    def bash(self, *words):
        script = (
            f'source "{self.files["bash"]}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tern;'
            ' printf "%s\\n" "${COMPREPLY[@]}"'
        )
        result = run("bash", "-c", script, "bash", *words)
        self.assertEqual(result.stderr, "")
        return set(result.stdout.split())

    def test_bash(self):
        self.need("bash")
        self.assertLessEqual({*COMMANDS, "help"}, self.bash("tern", ""))
        self.assertEqual(self.bash("tern", "inse"), set())
        self.assertEqual(self.bash("tern", "insp"), {"inspect"})
        self.assertEqual(self.bash("tern", "help", "insp"), {"inspect"})
        for command in COMMANDS:
            self.assertLessEqual(flags_of(command), self.bash("tern", command, "-"))
        self.assertEqual(self.bash("tern", "run", "--layout", "tl"), {"tl1r16", "tl2r16"})
        self.assertEqual(self.bash("tern", "run", "--layout", "=", "tl1"), {"tl1r16"})
        self.assertEqual(self.bash("tern", "run", "--layout", "="), self.bash("tern", "run", "--layout", ""))
        self.assertEqual(self.bash("tern", "run", "--seed", ""), set())
        here = str(self.files["bash"])
        self.assertEqual(self.bash("tern", "run", "-m", here[:-2]), {here})
        self.assertEqual(self.bash("tern", "inspect", here[:-2]), {here})

    def fish(self, line):
        script = f"source {self.files['fish']}; complete -C '{line}'"
        result = run("fish", "--no-config", "-c", script)
        self.assertEqual(result.stderr, "")
        return {found.split("\t")[0] for found in result.stdout.splitlines()}

    def test_fish(self):
        self.need("fish")
        self.assertLessEqual(set(COMMANDS), self.fish("tern "))
        self.assertLessEqual(flags_of("run"), self.fish("tern run --"))
        self.assertEqual(self.fish("tern run --layout tl"), {"tl1r16", "tl2r16"})
        here = str(self.files["bash"])
        self.assertEqual(self.fish(f"tern run -m {here[:-2]}"), {here})

    def test_flags_of_fish(self):
        """Read without fish: each flag is said to be a long one, a letter, or a word after one dash."""
        dashes = {"l": "--", "s": "-", "o": "-"}
        for command in COMMANDS:
            found = set()
            for line in self.files["fish"].read_text().splitlines():
                if line.startswith(f"complete -c tern -n '__fish_seen_subcommand_from {command}' "):
                    for kind, word in re.findall(r" -([lso]) (\S+)", line.partition(" -d ")[0]):
                        self.assertEqual(len(word) == 1, kind == "s", line)
                        found.add(dashes[kind] + word)
            self.assertLessEqual(flags_of(command), found)

    def test_zsh(self):
        self.need("zsh")
        result = run("zsh", "-f", "-n", self.files["zsh"])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        script = self.files["zsh"].read_text()
        for command in COMMANDS:
            self.assertRegex(script, rf"(?m)^    {command}\)$")

    def test_unknown_shell(self):
        self.assert_one_line_error(tern("completion", "csh"), 2, ["bash zsh fish", "csh"])
        self.assert_one_line_error(tern("completion"), 2, ["SHELL"])


if __name__ == "__main__":
    common.main()
