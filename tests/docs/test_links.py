# SPDX-License-Identifier: Apache-2.0
"""Every link of the documents leads somewhere, and everything that the requirements name exists."""

import re
import unittest
from pathlib import Path

import documents
import suite

REQUIREMENTS = 382  # M1 to this one


def problems_of_links():
    for path in documents.paths():
        for line, target in documents.links(path.read_text()):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            there = (path.parent / file).resolve() if file else path
            if not there.exists():
                yield f"{documents.name(path)}:{line}: {target}: no such file"
            elif anchor and anchor not in documents.anchors(there.read_text()):
                yield f"{documents.name(path)}:{line}: {target}: no such heading"


def known_tests():
    """Returns patterns of the names that tests have on any machine: from the files and CMake's lists."""
    tests = documents.ROOT / "tests"
    patterns = [path.stem.removeprefix("test_") for path in tests.glob("*/test_*.c")]
    patterns += ["e2e_" + path.stem.removeprefix("test_") for path in tests.glob("e2e/test_*.py")]
    for path in [*tests.rglob("CMakeLists.txt"), documents.ROOT / "bench" / "CMakeLists.txt"]:
        text = path.read_text()
        names = re.findall(r"tern_(?:add_|python_)?test(?:_again)?\(([\w${}]+)", text)
        names += " ".join(re.findall(r"foreach\(\w+ IN ITEMS ([\w ]+)\)", text)).split()
        patterns += [re.sub(r"\$\{\w+\}", r"\\w+", name) for name in names if not name.startswith("$")]
    return patterns


def source_of(test):
    tests = documents.ROOT / "tests"
    places = (
        *tests.glob(f"*/test_{test}.c"),
        tests / "e2e" / f"test_{test.removeprefix('e2e_')}.py",
        tests / "docs" / f"test_{test.removeprefix('documents_')}.py",
        documents.ROOT / "bench" / "tests" / f"test_{test.removeprefix('bench_')}.py",
        documents.ROOT / "lab" / "tests" / f"test_{test.removeprefix('lab_')}.py",
        tests / "machines" / f"test_{test}.py",
        tests / "python" / f"test_{test.removeprefix('python_')}.py",
        tests / test / f"test_{test}.py",
        tests / test.removeprefix("serve_") / f"test_{test.removeprefix('serve_')}.py",
    )
    for path in places:
        if path.exists():
            return path.read_text()
    return None


def parts_of(shown):
    """The last cell of a row is split by semicolons: tests with their functions, commands, words."""
    return shown.split(";")


def is_a_test(part, patterns):
    found = re.match(r"\s*([a-z][a-z0-9_]*)", part)
    return found is not None and any(re.fullmatch(pattern, found[1]) for pattern in patterns)


def problems_of_shown(shown, patterns):
    for part in parts_of(shown):
        found = re.match(r"\s*([a-z][a-z0-9_]*)(\*?)(?:: *((?:test_\w+(?:, *)?)+))?", part)
        if found is None or not (found[3] or "_" in found[1]):
            continue
        if found[2]:
            if not any(pattern.startswith(found[1]) for pattern in patterns):
                yield f"there is no test {found[1]}*"
        elif not any(re.fullmatch(pattern, found[1]) for pattern in patterns):
            yield f"there is no test {found[1]}"
        source = source_of(found[1]) or ""
        for function in re.findall(r"test_\w+", found[3] or ""):
            if not re.search(rf"\b{function}\b", source):
                yield f"{found[1]} has no {function}"


def problems_of_place(where):
    """`path` or `path: name, name`; paths may have a `*`."""
    for code in re.findall(r"`([^`]+)`", where):
        found = re.fullmatch(r"((?:[\w.-]+/)+[\w.*-]*|[A-Z]\w+\.\w+)(?:: ([\w, ]+))?", code)
        if found is None:
            continue
        files = list(documents.ROOT.glob(found[1].rstrip("/")))
        if not files:
            yield f"there is no {found[1]}"
        for name in re.findall(r"\w+", found[2] or ""):
            if not any(re.search(rf"\b{name}\b", file.read_text()) for file in files):
                yield f"{found[1]} does not hold {name}"


def requirement_rows(text):
    """Rows are | M1, M2 | what | where | shown by |; gives their line and cells."""
    for number, line in enumerate(text.split("\n"), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if re.match(r"M\d", cells[0]):
            yield number, cells


def problems_of_row(cells, patterns):
    if re.fullmatch(r"M\d+(, M\d+)*", cells[0]) is None or len(cells) != 4:
        yield f"is not a row of four cells: {len(cells)}"
        return
    yield from problems_of_place(cells[2])
    yield from problems_of_shown(cells[3], patterns)
    if not cells[1].startswith("not yet") and not any(
        is_a_test(part, patterns) for part in parts_of(cells[3])
    ):
        yield "names no test, and does not begin with 'not yet'"


def problems_of_requirements(text, patterns):
    """Every requirement has one row; a row shows code that exists and a test that exists."""
    seen = {}
    for number, cells in requirement_rows(text):
        for problem in problems_of_row(cells, patterns):
            yield f"requirements.md:{number}: {cells[0]}: {problem}"
        for one in re.findall(r"M(\d+)", cells[0]):
            if int(one) in seen:
                yield f"requirements.md:{number}: M{one} is in line {seen[int(one)]} already"
            seen[int(one)] = number
    for missing in sorted(set(range(1, REQUIREMENTS + 1)) - set(seen)):
        yield f"requirements.md: M{missing} has no row"


def endless_loops(text):
    """Names of the functions with `for (;;)`, `for (...;; ...)`, `do` or `while (true)`."""
    function, found = "", []
    for line in text.split("\n"):
        begin = re.match(r"(?!static const|typedef|struct|enum)[A-Za-z][\w *]*?\b(\w+)\(", line)
        function = begin[1] if begin else function
        if re.search(r"\bfor \([^;]*;\s*;|\bdo \{|\bwhile \((true|1)\)", line):
            found.append(function)
    return found


class Links(unittest.TestCase):
    def test_links(self):
        self.assertEqual([], list(problems_of_links()))

    def test_acceptance_tags(self):
        """AC:1 to AC:10 can be found in the tests that show them."""
        found = set()
        for path in (documents.ROOT / "tests").rglob("*.[cp]*"):
            if path.suffix in (".c", ".py") and path.name != "test_links.py":
                for tag in re.findall(r"AC:(\d+)", path.read_text()):
                    found.add(int(tag))
        self.assertEqual(set(range(1, 11)), found)

    def test_requirements(self):
        self.assertGreater(len(known_tests()), 30)
        text = (documents.ROOT / "docs" / "requirements.md").read_text()
        self.assertEqual([], list(problems_of_requirements(text, known_tests())))

    def test_requirements_that_lie(self):
        """Rows that claim something untrue are found, whichever way they say it."""
        patterns = known_tests()
        for row, problem in (
            ("| M1 | done | `runtime/none.c` | gguf |", "there is no runtime/none.c"),
            ("| M1 | done | `base/arena.c: nobody` | gguf |", "does not hold nobody"),
            ("| M1 | done | `base/arena.c` | gguf: test_none |", "gguf has no test_none"),
            ("| M1, M2 | done | `base/arena.c` | no_such |", "there is no test no_such"),
            ("| M1, M2 | done | `base/arena.c` | `make` |", "names no test"),
            ("| M1+M2 | done | `base/arena.c` | gguf |", "is not a row of four cells"),
            ("| M1 | done | gguf |", "is not a row of four cells"),
            ("| M1 | not yet: nothing | | |\n| M1 | not yet | | |", "M1 is in line 1 already"),
            ("| M1 | not yet | | |", "M2 has no row"),
        ):
            found = list(problems_of_requirements(row, patterns))
            self.assertTrue(any(problem in one for one in found), (row, problem, found[:3]))

    def test_loops(self):
        """docs/bounds.md lists every loop of the library that has no condition, with its function."""
        found = set()
        for path in sorted(documents.ROOT.glob("*/**/*.[ch]")) + sorted(documents.ROOT.glob("kernels/**/*.j2")):
            name = str(path.relative_to(documents.ROOT))
            if name.split("/")[0] in ("kernels", "dispatch", "base", "threads", "runtime", "authoring", "device") and "reference" not in name:
                found |= {(name, function) for function in endless_loops(path.read_text())}
        page = (documents.ROOT / "docs" / "bounds.md").read_text()
        listed = set(re.findall(r"^\| `([\w./]+)` \| `(\w+)` \| .+ \|$", page, re.M))
        self.assertEqual(found, listed)
        self.assertEqual(endless_loops("int f(int i) {\n    do {\n    } while (i);\n}\n"), ["f"])
        self.assertEqual(endless_loops("void g(void) {\n    for (int i = 0;; i++)\n"), ["g"])
        self.assertEqual(endless_loops("void g(void) {\n    for (int i = 0; i < 2; i++)\n"), [])

    def test_workflow(self):
        """Continuous integration holds both receipts to the rules on every change, and keeps them."""
        path = documents.ROOT / ".github" / "workflows" / "inference-validation.yml"
        text = path.read_text()
        self.assertIn("on: [push, pull_request]", text)
        for receipt in ("build/ci/inference.json", "ci/inference.json"):
            self.assertIn(f"run: scripts/receipt-gate {receipt}", text)
        kept = text.partition("actions/upload-artifact")[2]
        for line in ("build/ci/*.json", "ci/*.json", "if: always()"):
            self.assertIn(f" {line}\n", kept)

    def test_status_codes(self):
        """docs/errors.md lists all codes of the header, in the header's words."""
        header = (documents.ROOT / "include" / "tern" / "status.h").read_text()
        known = re.findall(r'X\((\w+), (\d+), +"([^"]*)"\)', header)
        page = (documents.ROOT / "docs" / "errors.md").read_text()
        listed = re.findall(r"^\| (\d+) \| `TERN_(\w+)` \| (.*) \|$", page, re.M)
        self.assertGreater(len(known), 50)
        self.assertEqual(known, [(name, value, text) for value, name, text in listed])


PATH = re.compile(r"(?<![\w./*<>-])((?:[\w-]+/)*[\w-]+\.(?:c|h|j2|cuh|py|md|toml|cmake|sh|txt))\b(?![\w/(.])")
FOREIGN = {"asm/prctl.h", "asm/hwcap.h", "cmocka.h", "modeling_rope_utils.py", "utils/codegen_tl1.py", "codegen_tl2.py",
           "setup_env.py", "merges.txt", "vocab.txt"}  # of the system, and of other projects


def files_in_comments(text):
    """Names of files in the comments of a C source."""
    for comment in re.findall(r"/\*.*?\*/|//[^\n]*", text, flags=re.S):
        yield from PATH.findall(comment)


def files_in_page(text):
    """(line, path) of inline code that is a path with a folder; X stands for a name of the reader's own."""
    for line, code in documents.code_spans(text):
        yield from ((line, path) for path in PATH.findall(code) if "/" in path and "_X." not in path)


class Names(unittest.TestCase):
    """Files that pages and comments name are there."""

    def test_pages_name_files_that_exist(self):
        missing, found = [], 0
        for path in documents.paths():
            text = path.read_text()
            new = set(re.findall(r"\*\*`(\S+)`\*\*, a new file:", text))  # of recipes: tests/docs/test_recipes.py
            for line, name in files_in_page(text):
                found += name not in new
                places = (documents.ROOT, documents.ROOT / "include", path.parent)
                if name not in new and not re.match(r"(build|out|gen)/", name) and not any((place / name).exists() for place in places):
                    missing.append(f"{documents.name(path)}:{line}: {name}")
        others = ("CHANGELOG.md", "docs/names.md")  # the past, and names that others use
        self.assertEqual([], [m for m in missing if not m.startswith(others)])
        self.assertGreater(found, 500)

    def test_comments_name_files_that_exist(self):
        sources = [p for ending in ("c", "h", "j2") for p in documents.ROOT.rglob(f"*.{ending}") if documents.is_source(p)]
        names = {p.name for p in documents.ROOT.rglob("*") if documents.is_source(p)} | {Path(f).name for f in FOREIGN}
        missing = [f"{documents.name(p)}: {name}" for p in sources for name in files_in_comments(p.read_text())
                   if Path(name).name not in names]
        self.assertEqual([], missing)

    def test_what_is_a_name_of_a_file(self):
        self.assertEqual(list(files_in_comments("/* see base/span.h, f.c(x) */ int a; // words.h")), ["base/span.h", "words.h"])
        self.assertEqual(list(files_in_page("`base/span.h` and `span.h`, `tests/test_X.c`")), [(1, "base/span.h")])


if __name__ == "__main__":
    suite.main()
