# SPDX-License-Identifier: Apache-2.0
"""Every command that the documents and the help texts show is executed.

The `sh` blocks of a document run in the order of the page, in a folder that looks like a build tree: links
to everything in the source tree, `build/tern`, `tern` on the path, and a `model.gguf`. Commands that
build, install, test or measure at length are run in a shorter form (SHORTER), as the table says.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import documents
import suite


# Entries are (name, pattern, what runs instead, why). Only these and the entries of ELSEWHERE are not executed;
# docs/README.md lists both, word for word. A test of their own or continuous integration runs them.
NOT_RUN = [
    ("make", r"(?<![\w./-])make(?= |$)", "make -n", "`make -n` shows that the target exists"),
    ("scripts/install-deps", r"^scripts/install-deps.*", ":", "`make test` calls it"),
    ("ctest", r"^(TERN_PROCESSOR=\S+ )?ctest\b", r"\1ctest_listed", "`ctest -N` shows that the tests exist"),
    ("cmake --build", r"^cmake --build\b.*", ":", "the build that is being tested"),
    ("cmake --preset", r"^cmake --preset (\S+).*", r"cmake --list-presets | grep -q '\"\1\"'",
     "the preset exists"),
    ("scripts/get-model", r"scripts/get-model smollm2", 'echo "$SMOLLM2"',
     "needs a network; a model that was fetched before stands in"),
]  # fmt: skip

# Entries are (pattern, what runs instead): the same program with less to do.
SHORTER = [(pattern, instead) for _, pattern, instead, _ in NOT_RUN] + [
    (r"^(tests/machines/run.py .*) -- .*", r"\1 --list"),
    (r"^(tests/machines/run.py .* --short --day \d+).*", r"\1 --list"),
    (r"^cmake --install build$", 'cmake --install "$BUILD" --prefix "$HOME/.local" > installed.txt'),
    (r"i2_s_8x1_avx2", "i2_s_16x1_avx2"),  # the row that a reader is shown how to add
    (r"--preset bitnet-2b\b", "--preset bitnet-tiny"),
    (r"--preset oak-tiny\b", "--preset llama-tiny-f16"),  # the one that a reader is shown how to add
    (r"-p 512 -n 64\b", "-p 64 -n 8"),
    (r"--depth 2048\b", "--depth 64"),
    (r"--repeat \d+", "--repeat 1"),
    (r"(tern tune.*) --threads \d+", r"\1 --threads 1"),
    (r"(bench_kernels\b.*?)(?: --benchmark_filter=\S+)", r"\1"),
    (r"(bench_kernels)\b", r"\1 --benchmark_filter=rmsnorm.*/cache --benchmark_min_time=0.001"),
    (r"--benchmark_repetitions=\d+", "--benchmark_repetitions=2"),
]

# Test machines cannot run these, or another test runs them whole. The key is the beginning of the command.
ELSEWHERE = {
    "tern verify-determinism": "e2e_verify_determinism",
    "tern convert": "e2e_convert: it makes such folders",
    "tern dedup": "e2e_dedup: it makes a base and what shares with it",
    "python lab/training/float_llama.py": "trains for an hour; needs PyTorch",
    "lab/precision-receipts": "needs the model that is trained; lab_pages checks what it wrote",
    "tern pull": "needs a network; e2e_pull has a Hub of its own",
    "build/tern pull": "needs a network; e2e_pull has a Hub of its own",
    "tern run -m microsoft/": "e2e_pull: needs what `tern pull` fetches",
    "tern rm": "e2e_pull: needs what `tern pull` fetches",
    "tern serve": "e2e_serve: it serves until it is ended",
    "tern run -m model.gguf --lora": "e2e_adapters: it makes adapters",
    "tern replay": "e2e_replay: it needs what a server recorded",
    "tern run --server": "e2e_remote: it needs a server",
    "mpirun": "e2e_ranks: Open MPI refuses to start as root, and one line needs several machines",
    "tern chat --server": "e2e_remote: it needs a server",
    ".venv/bin/python3 tests/e2e/": "a test of ctest",
    "pip install .": "builds everything again; `make test-python` does it",
    "PYTHONPATH=build/python": "a test of ctest",
    "python3 -m venv": "make test does it",
    "build/bench/bench_kernels --check": "bench_kernels_answers",
    "lab/crossval-reference": "installs other engines, gigabytes; e2e_crossval has what it wrote",
    "lab/report": "lab_report; needs matplotlib",
    "tests/mutants/mutants.py": "builds broken copies of the source; `make mutants` does it",
    "tests/mutants/draw.py": "the same; mutants_drawn draws some",
    "codegen/diff": "codegen_diff has a repository with revisions to compare",
    "build-fuzz/": "the test of the fuzz targets runs them",
}

# A page takes these for granted; its first commands make them.
REFERENCE = "cp tests/golden/tern-small-transformers.json reference.json"
SIGNED = (
    "tern keygen signing.key; "
    "tern run -m model.gguf -p Hello -n 16 --receipt receipt.json --sign-key signing.key"
)
BEFORE = {
    "docs/cli.md": f"{REFERENCE}; {SIGNED}",
    "tern help crossval": REFERENCE,
    "tern help verify": SIGNED,
}

PRELUDE = """
set -e
ctest_listed() { count=$(ctest -N --test-dir "$BUILD" $(echo "$@" | sed 's/--preset *[a-z-]*//') | sed -n 's/Total Tests: //p')
                 [ "$count" -gt 0 ] || { echo "ctest $*: no such tests"; return 1; }; }
"""

_options = argparse.Namespace()


def shorten(line):
    for begin in ELSEWHERE:
        if line.strip().startswith(begin):
            return ":"
    for pattern, replacement in SHORTER:
        line = re.sub(pattern, replacement, line)
    return line


def script(title, numbered):
    """A shell script of (number, line); the number of the line that fails is told."""
    lines = [part for number, line in numbered for part in (f"LINE={number}", shorten(line))]
    trap = f"trap 'echo \"{title}:$LINE: status $?\" >&2' ERR\n"
    begin = ["LINE=0", "set -E", trap, BEFORE.get(title, "")]
    return PRELUDE + "\n".join(begin + lines) + "\n"


def script_of(path, text):
    """The commands of a page; None without any."""
    lines = []
    for block in documents.blocks(text):
        for number, line in enumerate(block.text.split("\n"), block.line):
            if block.language == "sh":
                lines.append((number, line))
            elif block.language == "console" and line.startswith("$ "):
                lines.append((number, line[2:]))
    return script(documents.name(path), lines) if lines else None


def script_of_help(command):
    told = subprocess.run([_options.tern, "help", command], capture_output=True, text=True, check=True)
    examples = told.stdout.partition("\nexamples:\n")[2].partition("\n\n")[0]
    return script(f"tern help {command}", enumerate(examples.split("\n"), 1))


def commands_of_tern():
    told = subprocess.run([_options.tern, "help"], capture_output=True, text=True, check=True)
    listed = told.stdout.partition("commands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (?!help\b)([a-z][a-z-]+) ", listed, re.M)


def smollm2():
    """Returns the model that get-model has fetched, or the small model where there is none: nothing is downloaded
    here."""
    found = sorted(suite.fetched_models().glob("SmolLM2*.gguf"))
    return found[0] if found else documents.ROOT / "models" / "tern-small.gguf"


def furnish(folder):
    """The folder that a reader would be in, and the environment of the shell."""
    for entry in documents.ROOT.iterdir():
        if not entry.name.startswith((".", "build")) or entry.name == ".github":
            (folder / entry.name).symlink_to(entry)
    (folder / ".venv" / "bin").mkdir(parents=True)
    for python in ("python", "python3"):
        script = folder / ".venv" / "bin" / python
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        script.chmod(0o755)
    (folder / "build").symlink_to(_options.build)
    small = documents.ROOT / "models" / "tern-small.gguf"
    for name in ("model.gguf", "MODEL.gguf"):
        shutil.copy(small, folder / name)
    (folder / "prompt.txt").write_text("Once upon a time")
    (folder / "talk.json").write_text('[{"role": "user", "content": "Hi"}]')
    (folder / "text.txt").symlink_to(documents.ROOT / "models" / "tern-small.heldout.txt")
    vocabulary = {chr(c): c - 32 for c in range(32, 127)} | {"<s>": 95, "\n": 96}
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary))
    (folder / "bin").mkdir()
    (folder / "bin" / "tern").symlink_to(_options.tern)
    (folder / "home").mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TERN_", "BITNET_", "IE_"))}
    return kept | {
        "PATH": f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "BUILD": str(_options.build),
        "HOME": str(folder / "home"),
        "SMOLLM2": str(smollm2()),
        "LC_ALL": "C.UTF-8",
        "TERN_TEST_EVERY": "40",  # kernel tests take fewer shapes
        "XDG_STATE_HOME": str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "home"),
    }


def looks_like_command(line):
    if re.search(r"\[|\bCOMMAND\b|\.\.\.", line):
        return False  # a form, not a command
    return re.match(r"(\$ |build/tern |tern [a-z-]+ |make\b|ctest |tools/\w|cmake --)", line)


def command_lines():
    """Every line of the pages' and the help texts' commands."""
    for path in documents.paths():
        for block in documents.blocks(path.read_text()):
            for line in block.text.split("\n"):
                if block.language == "sh":
                    yield line
                elif block.language == "console" and line.startswith("$ "):
                    yield line[2:]
    for command in commands_of_tern():
        told = subprocess.run([_options.tern, "help", command], capture_output=True, text=True, check=True)
        yield from told.stdout.partition("\nexamples:\n")[2].partition("\n\n")[0].split("\n")


def not_executed(line):
    """Returns the names under which the list of docs/README.md has the line."""
    found = {name for name, pattern, _, _ in NOT_RUN if re.search(pattern, line)}
    return found | {begin for begin in ELSEWHERE if line.strip().startswith(begin)}


class Commands(unittest.TestCase):
    def run_script(self, text):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            environment = furnish(folder)
            result = subprocess.run(["bash", "-c", text], cwd=folder, env=environment,
                                    stdin=subprocess.DEVNULL, capture_output=True)
        output = (result.stdout + result.stderr).decode(errors="replace")
        self.assertEqual(0, result.returncode, output[-2000:])

    def test_list_of_what_is_not_executed(self):
        """The page lists the left-out commands with the reasons; no other line is left out, and every entry is used."""
        reasons = {name: why for name, _, _, why in NOT_RUN} | ELSEWHERE
        page = (documents.ROOT / "docs" / "README.md").read_text()
        section = page.partition("\n## Commands that are not executed\n")[2]
        listed = dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", section, re.M))
        self.assertEqual(reasons, listed)
        met = set()
        for line in command_lines():
            names = not_executed(line)
            met |= names
            if shorten(line).strip() == ":" or not shorten(line).strip():
                self.assertTrue(names or not line.strip(), line)
        self.assertEqual(set(reasons), met)

    def test_no_command_escapes(self):
        """A block that is not `sh` or `console` holds no commands."""
        problems = []
        for path in documents.paths():
            for block in documents.blocks(path.read_text()):
                for offset, line in enumerate(block.text.split("\n")):
                    if block.language not in ("sh", "console") and looks_like_command(line):
                        problems.append(f"{documents.name(path)}:{block.line + offset}: {line}")
        self.assertEqual([], problems)

    def test_inline_commands_have_their_options(self):
        """`tern run --flag` in the prose: the command and the flags exist."""
        problems, seen = [], {}
        for path in documents.paths():
            for line, code in documents.code_spans(path.read_text()):
                found = re.match(r"tern (?!help\b)([a-z][a-z-]*)\b(.*)", code)
                if found is None:
                    continue
                if found[1] not in seen:
                    told = subprocess.run([_options.tern, "help", found[1]], capture_output=True, text=True)
                    seen[found[1]] = None if told.returncode else told.stdout
                text = seen[found[1]]
                where = f"{documents.name(path)}:{line}: {code}"
                if text is None:
                    problems.append(f"{where}: no such command")
                    continue
                for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", found[2]):
                    if not re.search(rf"{flag}\b", text):
                        problems.append(f"{where}: no {flag}")
        self.assertEqual([], problems)


def add(title, text):
    method = "test_" + re.sub(r"\W+", "_", title).lower()
    setattr(Commands, method, lambda self: self.run_script(text))


def add_pages():
    """Half of the pages each day; the first that people read every day."""
    scripts = {documents.name(p): script_of(p, p.read_text()) for p in documents.paths() if "emulate" not in p.parts}
    pages = [name for name, text in scripts.items() if text is not None]
    for name in pages if _options.all else dict.fromkeys(["README.md", *suite.of_the_day(pages, 2, suite.turn())]):
        add(name, scripts[name])
    for command in commands_of_tern():
        add(f"help {command}", script_of_help(command))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tern", required=True, type=lambda value: str(Path(value).resolve()))
    parser.add_argument("--build", required=True, type=lambda value: Path(value).resolve())
    parser.add_argument("--all", action="store_true", help="every page, not only those of today")
    _, rest = parser.parse_known_args(namespace=_options)
    add_pages()
    suite.main([sys.argv[0], *rest])


if __name__ == "__main__":
    main()
