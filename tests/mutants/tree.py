# SPDX-License-Identifier: Apache-2.0
"""A copy of the source with a build of its own: files are changed there, built, tested, restored."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED = 77
BUILD_SECONDS = 1800
# Python compares whole seconds and sizes when it takes old byte code, so it must not leave any.
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1"}
FIRST = {"TERN_TEST_FIRST": "1"}  # a test in Python ends with the first function that fails


class Failed(Exception):
    """Something failed for a reason other than the mutant."""


def tracked(root):
    """Files of the source, those too that git does not know yet."""
    command = ["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    return [Path(name) for name in sorted(set(names)) if name and (Path(root) / name).is_file()]


def take_interrupts():
    """Background jobs of a shell ignore the signal, and so do the programs that they start; tests send it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(command, seconds, **options):
    """Status and output; the status is None where it took too long. Programs that it started do not stay."""
    process = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True, preexec_fn=take_interrupts, **options,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        status = None
    return status, output.decode(errors="replace")


@dataclass
class Test:
    name: str
    command: list
    environment: dict = field(default_factory=dict)
    folder: str = "."

    def script(self):
        """The Python file that it runs, if it is one."""
        return next((part for part in self.command if part.endswith(".py")), None)

    def source(self, tree):
        """The file that holds its functions, as far as names tell."""
        file = self.script() or next((tree.source / "tests").rglob(f"test_{self.name}.c"), "")
        return Path(self.folder, file) if Path(self.folder, file).is_file() else None


@dataclass
class Verdict:
    status: int | None  # None: it took too long
    failed: list  # names of the functions that failed
    seconds: float
    output: str

    def noticed_by(self, words):
        """Returns the test that noticed, or None: a failure of a named function, or an end without any name."""
        if self.status == 0:
            return None
        if self.status is None:
            return "took too long"
        if self.status < 0 or not self.failed:
            return f"ended with {self.status}"
        # A class that could not be set up, __main__.X, failed for the functions that were to run.
        ours = [
            name for name in self.failed
            if not words or matches(name, words) or re.fullmatch(r"__main__\.\w+", name)
        ]
        return ours[0] if ours else None


def matches(name, words):
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", name) for word in words)


def failed_functions(output):
    """Names of failed functions, from the output of cmocka or unittest."""
    names = re.findall(r"^\[  FAILED  \] (?!\d+ test)(.+?)(?:, listed below:)?$", output, re.M)
    names += re.findall(r"^(?:FAIL|ERROR): \w+ \((.+?)\)", output, re.M)
    return list(dict.fromkeys(name for name in names if not re.search(r"test\(s\)$", name)))


def functions_of(script, words):
    """Class.function, as unittest takes them, of the words that are names in this file; all of it
    (an empty list) where one is not."""
    found = []
    for node in ast.parse(Path(script).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            inner = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
            if node.name in words:
                found.append((node.name, node.name))
            found += [(name, f"{node.name}.{name}") for name in inner if name in words]
    return [path for _, path in found] if {name for name, _ in found} >= set(words) else []


class Tree:
    def __init__(self, root, work, options=(), jobs=1, build="build", launcher=None, environment=None):
        self.root, self.jobs = Path(root).resolve(), jobs
        self.source = Path(work).resolve()  # may be the root itself
        self.build = self.source / build  # as in a tree of its own, so that ccache knows its files
        self.options, self.launcher = list(options), launcher or shutil.which("ccache")
        self.environment = environment or {}

    def open(self):
        """Copies the files that differ, and configures. Returns {name: Test}."""
        self.files = tracked(self.root)
        if self.source != self.root:
            for file in self.files:
                self._copy(file)
            self._remove_others(set(self.files))
        command = ["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja",
                   "-DCMAKE_BUILD_TYPE=Release", *self.options]  # fmt: skip
        if self.launcher:
            command += [f"-DCMAKE_{language}_COMPILER_LAUNCHER={self.launcher}" for language in ("C", "CXX")]
        status, output = run(command, BUILD_SECONDS, env=self._environment())
        if status:
            raise Failed(f"the unchanged source cannot be configured:\n{output[-2000:]}")
        self.tests = self._tests()
        return self.tests

    def _environment(self, **extra):
        return {"CCACHE_BASEDIR": str(self.source), **os.environ, **ENVIRONMENT, **self.environment, **extra}

    def _copy(self, file):
        old, new = self.root / file, self.source / file
        if not new.is_file() or new.read_bytes() != old.read_bytes():
            new.parent.mkdir(parents=True, exist_ok=True)
            new.unlink(missing_ok=True)
            shutil.copy(old, new)

    def _remove_others(self, kept):
        for folder, folders, names in os.walk(self.source):
            folders[:] = [name for name in folders if Path(folder, name) != self.build]
            for name in names:
                if Path(folder, name).relative_to(self.source) not in kept:
                    Path(folder, name).unlink()

    def _tests(self):
        """Reads the tests from ctest, which leaves out the commands of programs that are not built yet; those are in
        its files."""
        commands = {}
        for file in self.build.rglob("CTestTestfile.cmake"):
            for line in file.read_text(encoding="utf-8").splitlines():
                found = re.match(r'add_test\((?:\[=*\[)?([\w.-]+)(?:\]=*\])?((?: "(?:\\.|[^"\\])*")+)', line)
                if found:
                    words = re.findall(r'"((?:\\.|[^"\\])*)"', found[2])
                    commands[found[1]] = [word.replace("\\", "") for word in words]
        status, output = run(["ctest", "--show-only=json-v1"], 60, cwd=self.build)
        if status:
            raise Failed(f"ctest: {output[-2000:]}")
        tests = {}
        for entry in json.loads(output)["tests"]:
            properties = {item["name"]: item["value"] for item in entry.get("properties", [])}
            variables = dict(item.split("=", 1) for item in properties.get("ENVIRONMENT", []))
            name = entry["name"]
            tests[name] = Test(name, commands.get(name, entry.get("command")), variables,
                               properties.get("WORKING_DIRECTORY", str(self.build)))  # fmt: skip
        return {name: test for name, test in tests.items() if test.command}

    def write(self, file, text):
        """Writes the file, always with a new time, because ninja compares only times."""
        path = self.source / file
        path.write_text(text, encoding="utf-8", errors="surrogateescape")

    def targets(self, tests):
        """Returns the parts of the build that the commands and variables of these tests name; all of it where they name
        the folder itself."""
        found = set()
        for test in tests:
            for part in [*test.command, *test.environment.values()]:
                path = Path(re.sub(r"^\w+=", "", part))  # tests/start is given variables too
                if path == self.build:
                    return ["all"]
                if path.is_relative_to(self.build) and (name := self._target(path)):
                    found.add(name)
        return sorted(found)

    def _target(self, path):
        """Returns what ninja knows a file or folder of the build by: a folder of generated files is built with the
        rest, and is not a target."""
        name = str(path.relative_to(self.build))
        if not path.is_dir():
            return name
        return f"{name}/all" if (path / "cmake_install.cmake").is_file() else None

    def make(self, tests):
        """Builds the programs that these need; returns None, or the compiler's message."""
        targets = self.targets(tests)
        return self.ninja(targets) if targets else None

    def ninja(self, targets):
        status, output = self.compile(targets)
        return None if status == 0 else output

    def compile(self, targets):
        """Returns status and output, with the compiler's warnings."""
        command = ["ninja", "-C", self.build, "-j", self.jobs, *targets]
        return run(command, BUILD_SECONDS, env=self._environment())

    def test(self, test, words, filter, seconds, first=False):
        """Runs a test, or those of its functions that are named, as far as it can choose; until one fails with `first`."""
        command, environment = list(test.command), self._environment(**test.environment, **(FIRST if first else {}))
        if words and test.script():
            command += functions_of(Path(test.folder, test.script()), words)
        elif len(words) == 1:
            environment["TERN_TEST_FUNCTION"] = f"*{words[0]}*"
        if filter:
            environment["TERN_TEST_FILTER"] = filter
        start = time.monotonic()
        status, output = run(command, seconds, cwd=test.folder, env=environment)
        return Verdict(status, failed_functions(output), time.monotonic() - start, output)
