# SPDX-License-Identifier: Apache-2.0
"""No function has more than 60 lines and no file of code more than 600: CONTRIBUTING.md says so. Documents of
programs are one line each.

Functions are found by how the formatter leaves them: in C a head that begins in the first column,
ends with "{", and a "}" in the first column; in Python by the parser.
"""

import ast
import re
import shutil
import subprocess
import unittest

from documents import ROOT, is_source
import suite

FUNCTION_LINES, FILE_LINES = 60, 600
C_NAMES = (".c", ".h", ".cc", ".cu", ".cuh", ".j2")
DIRECTIVE = ("%%", "##", "{%", "{#")  # the generator's: they choose lines and do not belong to the C text
EXCEPT = {
    "codegen/tests/golden/": "written by the generator: unrolled templates",
}


def listed():
    """Lists the files that git tracks or would track; in a source package, which git does not know, all files that lie
    there."""
    if shutil.which("git"):
        git = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=False,
                             capture_output=True, text=True)
        if git.returncode == 0:
            return git.stdout.splitlines()
    return [str(p.relative_to(ROOT)) for p in sorted(ROOT.rglob("*")) if is_source(p)]


def sources():
    """Names of all files of code: by their ending, or by the program that their first line names."""
    for name in listed():
        path = ROOT / name
        if name.startswith(tuple(EXCEPT)) or not path.is_file() or path.is_symlink():
            continue
        if path.suffix in C_NAMES or path.suffix == ".py":
            yield name, path.suffix
        elif not path.suffix and (first := first_line(path)).startswith("#!"):
            yield name, ".py" if "python" in first else ".sh"


def first_line(path):
    with path.open("rb") as file:
        return file.readline(200).decode("utf-8", errors="replace")


def c_functions(text):
    """(name, first line, lines) of every function of a C file or of a template of one."""
    head, begin, directives = [], 0, 0
    opened = None
    macro = False
    for number, line in enumerate(text.splitlines(), 1):
        if opened:
            directives += line.startswith(DIRECTIVE)
            if line.startswith("}"):
                yield opened[0], opened[1], number - opened[1] + 1 - directives
                opened = None
            continue
        was_macro, macro = macro, line.endswith("\\") and (macro or line.startswith("#"))
        if was_macro or not line or line.startswith((*DIRECTIVE, "#", "/*", " *", "}", "//")):
            head = []
            continue
        begin = begin if head else number
        head.append(line)
        whole = " ".join(head)
        if line.endswith("{") and "(" in whole and " = " not in whole:
            opened, directives = (re.search(r"([^\s*]*)\s*\(", whole)[1], begin), 0
        if line.endswith((";", "{")):
            head = []


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def shell_functions(text):
    opened = None
    for number, line in enumerate(text.splitlines(), 1):
        if opened is None and (found := re.match(r"(\w+)\(\)\s*\{\s*$", line)):
            opened = (found[1], number)
        elif opened and line.startswith("}"):
            yield *opened, number - opened[1] + 1
            opened = None


def functions(text, kind):
    readers = {".py": python_functions, ".sh": shell_functions}
    return list(readers.get(kind, c_functions)(text))


def too_long(name, text, kind):
    """One line for the file and for each function that is too long."""
    lines = text.count("\n")
    if lines > FILE_LINES:
        yield f"{name}: {lines} lines, at most {FILE_LINES}"
    for function, begin, n in functions(text, kind):
        if n > FUNCTION_LINES:
            yield f"{name}:{begin}: {function} has {n} lines, at most {FUNCTION_LINES}"


class Sizes(unittest.TestCase):
    def test_stored_documents_are_one_line(self):
        """Documents that programs wrote are kept for programs: `python3 -m json.tool FILE` shows one field a line."""
        stored = [name for name in listed() if re.match(r"docs/(receipts|report)/.*\.json$", name)]
        self.assertGreater(len(stored), 100)
        found = {name: (ROOT / name).read_text(encoding="utf-8").count("\n") for name in stored}
        self.assertEqual({name: lines for name, lines in found.items() if lines != 1}, {},
                         "python3 -m json.tool --compact FILE FILE writes one line")

    def test_nothing_is_too_long(self):
        found = []
        for name, kind in sources():
            text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
            found += too_long(name, text, kind)
        self.assertEqual(found, [])

    def test_nothing_needs_the_training(self):
        """The README of the folder says so. Other files that name it list commands of pages, or hold a page's
        figures."""
        named = [name for name, _ in sources() if "lab/training" in (ROOT / name).read_text(encoding="utf-8", errors="replace")]
        self.assertEqual([name for name in named if not name.startswith(("lab/training/", "tests/docs/"))],
                         ["lab/precision-receipts"])  # in its example of how the model that it measures is made

    def test_functions_are_found(self):
        """All of a file that is known, and thousands in the tree."""
        text = (ROOT / "base" / "sha256.c").read_text(encoding="utf-8")
        names = [name for name, _, _ in functions(text, ".c")]
        self.assertLessEqual({"tern_sha256_start", "tern_sha256_add", "tern_sha256_finish"}, set(names))
        kinds = {".c": 0, ".py": 0, ".sh": 0, ".j2": 0}
        for name, kind in sources():
            if kind in kinds:
                kinds[kind] += len(functions((ROOT / name).read_text(encoding="utf-8"), kind))
        self.assertGreater(kinds[".c"], 3000)
        self.assertGreater(kinds[".py"], 1000)
        self.assertGreater(min(kinds.values()), 10)

    def test_long_ones_are_named(self):
        body = "    x++;\n" * 60
        c = f"#define A(x) \\\n    {{ \\\n    }}\nstatic const int t[] = {{\n    f(1),\n}};\nint\nlong_one(int a,\n         int b) {{\n{body}}}\n"
        self.assertEqual(list(too_long("a.c", c, ".c")), ["a.c:7: long_one has 64 lines, at most 60"])
        python = "def longer():\n" + "    x = 1\n" * 60
        self.assertEqual(list(too_long("a.py", python, ".py")), ["a.py:1: longer has 61 lines, at most 60"])
        shell = "run() {\n" + "  :\n" * 59 + "}\n"
        self.assertEqual(list(too_long("a", shell, ".sh")), ["a:1: run has 61 lines, at most 60"])
        self.assertEqual(list(too_long("a.h", "\n" * 601, ".h")), ["a.h: 601 lines, at most 600"])


if __name__ == "__main__":
    suite.main()
