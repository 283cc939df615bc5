# SPDX-License-Identifier: Apache-2.0
"""make mutants on a small tree of its own: mutants that are noticed, that are not, and that fit no place."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(HERE))

import listing  # noqa: E402
import places  # noqa: E402
import tree  # noqa: E402
import suite  # noqa: E402

CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(fake LANGUAGES C)
enable_testing()
add_executable(test_sum add.c test_sum.c)
add_executable(test_other test_other.c)
add_test(NAME sum COMMAND test_sum)
add_test(NAME other COMMAND test_other)
add_test(NAME script COMMAND python3 test_script.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME skipped COMMAND python3 -c "exit(77)")
add_test(NAME broken COMMAND python3 -c "exit(1)")
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
"""
ADD = """
int add(int a, int b);
int unused(int a);

int add(int a,
        int b) {
    /* a + b; } */
    return a + b;
}

int unused(int a) {
    return a * 2;
}
"""
SUM = """
#include <stdio.h>
int add(int a, int b);
int main(void) {
    const int first = add(1, 2) != 3, second = add(0, 5) != 5;
    if (first) { puts("[  FAILED  ] test_first"); }
    if (second) { puts("[  FAILED  ] test_second"); }
    return first + second;
}
"""
OTHER = "int main(void) { return 0; }\n"
SCRIPT = """
import unittest
import helper

class Words(unittest.TestCase):
    def test_upper(self):
        self.assertEqual(helper.upper("a"), "A")

    def test_twice(self):
        self.assertEqual(helper.twice("a"), "aa")

unittest.main()
"""
HELPER = """
def upper(text):
    return text.upper()

def twice(text):
    return text + text
"""
ROWS = """
| row | what | where | shown by |
|---|---|---|---|
| M1 | sums | `add.c` | sum: test_first, test_second |
| M2, M3 | sums with nothing \\| in them | `add.c` | sum: test_second |
| M4 | nothing | `add.c` | other |
| M5 | words | `helper.py` | script: test_upper; sum (in parts) |
| M6 | nothing that runs here | `add.c` | skipped; broken |
| M7 | as before | `add.c` | as M1 |
"""
LIST = "# one\n{id} | {row} | {function} | {by}\n- {find}\n+ {change}\n"


class Runner(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (shutil.which("ninja") and shutil.which("git")):
            raise unittest.SkipTest("ninja or git is not installed")
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = Path(cls.folder.name) / "root"
        files = {"CMakeLists.txt": CMAKE, "add.c": ADD, "test_sum.c": SUM, "test_other.c": OTHER,
                 "test_script.py": SCRIPT, "helper.py": HELPER, "rows.md": ROWS,
                 ".gitignore": "/build/\n"}  # fmt: skip
        for name, text in files.items():
            (cls.root / name).parent.mkdir(exist_ok=True)
            (cls.root / name).write_text(text)
        subprocess.run(["git", "init", "-q", cls.root], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def mutants(self, *options, **mutant):
        given = {"id": "one", "function": "add", "row": "M1", "by": ""} | mutant
        file = Path(self.folder.name) / "one.list"
        file.write_text(LIST.format(**given))
        command = [sys.executable, HERE / "mutants.py", "--root", self.root, "--requirements",
                   "rows.md", *options, file]  # fmt: skip
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.assertEqual((self.root / "add.c").read_text(), ADD)
        copy = self.root / "build" / "mutants" / "0" / "add.c"
        if copy.exists():
            self.assertEqual(copy.read_text(), ADD)
        return result.returncode, result.stdout + result.stderr

    def check(self, status, text, **mutant):
        result = self.mutants(**mutant)
        self.assertEqual(result[0], status, result[1])
        self.assertRegex(result[1], text)

    def test_noticed(self):
        self.check(0, r"one \(M1\): noticed by sum: test_first", find="return a+b", change="return a - b")
        self.check(0, r"noticed by sum: test_first", find="return a + b; }", change="return b + b; }", row="M7")
        self.check(0, r"noticed by script: .*test_upper", function="upper", find="text.upper()",
                   change="text", row="M5", by="script")  # fmt: skip

    def test_remembered(self):
        change = {"find": "return a+b", "change": "return a * b"}
        self.check(0, r"noticed by sum: test_first\n", **change)
        self.check(0, r"noticed by sum: test_first \(before\)", **change)
        status, text = self.mutants("--fresh", **change)
        self.assertEqual(status, 0, text)
        self.assertNotIn("before", text)

    def test_survived(self):
        self.check(1, "SURVIVED", function="unused", find="a * 2", change="a * 3")
        self.check(1, "SURVIVED", find="return a+b", change="return a - b", row="M4")
        # only functions that the row names count: here test_first notices, and M3 does not name it
        self.check(1, "SURVIVED: sum failed elsewhere: test_first", find="return a+b",
                   change="return b == 2 ? 4 : a + b", row="M3")  # fmt: skip
        self.check(1, "SURVIVED", function="twice", find="text + text", change="text", row="M5")

    def test_no_place(self):
        self.check(1, "NO PLACE: there is no subtract", function="subtract", find="a", change="b")
        self.check(1, "NO PLACE: add: the expression occurs 0 times", find="a - b", change="b")
        self.check(1, "NO PLACE: add: the expression occurs 2 times", find="a + b", change="b")
        self.check(1, "NO PLACE: M4 does not name the test sum", find="return a + b",
                   change="return 1", row="M4", by="sum")  # fmt: skip
        self.check(1, "NO PLACE: M3 does not name sum: test_first", find="return a + b",
                   change="return 1", row="M3", by="sum: test_first")  # fmt: skip
        self.check(1, "NO PLACE: there is no row M9", find="return a + b", change="1", row="M9")

    def test_does_not_compile(self):
        self.check(1, "DOES NOT COMPILE: .*", find="return a + b", change="return c")

    def test_no_test(self):
        self.check(1, "NO TEST: skipped is skipped here; broken fails without any change",
                   find="return a + b", change="return 1", row="M6")  # fmt: skip

    def test_wrong_usage(self):
        self.assertEqual(self.mutants("--only", "two", find="a", change="b")[0], 2)

    def test_sample(self):
        """The same seed gives the same mutants."""
        mutants = [sys.executable, HERE / "mutants.py", "--list", "--sample", "10", "--seed"]
        lists = [subprocess.run([*mutants, seed], capture_output=True, check=True).stdout
                 for seed in ("a", "a", "b")]  # fmt: skip
        self.assertEqual(len(lists[0].splitlines()), 10)
        self.assertEqual(lists[0], lists[1])
        self.assertNotEqual(lists[0], lists[2])


class Parts(unittest.TestCase):
    def test_spans(self):
        text = (
            "static const int table[] = {\n    1, 2,\n};\n#define TWICE(x) \\\n    ((x) + \\\n     (x))\n"
            "int f(int table);\nint f(int table) { return '}' + table; }\n"
        )
        found = {name: [text[a:b] for a, b in places.c_spans(text, name)] for name in ("table", "f", "TWICE")}
        self.assertEqual(found["table"], [text[: text.index(";\n#")]])
        self.assertEqual(found["f"], ["int f(int table) { return '}' + table; }"])
        self.assertEqual(found["TWICE"], ["#define TWICE(x) \\\n    ((x) + \\\n     (x))"])

    def test_template(self):
        text = "{% macro one(x) %}\na\n{% endmacro %}\n{% macro two(x) %}\na\n{% endmacro %}\n"
        spans = places.spans(Path("x.c.j2"), text, "two")
        self.assertEqual([text[a:b].count("a\n") for a, b in spans], [1])
        self.assertTrue(text[spans[0][0] :].startswith("{% macro two"))

    def test_python(self):
        text = "def f():\n    return 1\n\nSIZE = 4\n\n\nclass A:\n    def g(self):\n        return 2\n"
        found = {name: [text[a:b] for a, b in places.python_spans(text, name)] for name in ("f", "SIZE", "g")}
        self.assertEqual(found["f"], ["def f():\n    return 1\n"])
        self.assertEqual(found["SIZE"], ["SIZE = 4\n"])
        self.assertEqual(found["g"], ["    def g(self):\n        return 2\n"])

    def test_rows(self):
        shown = listing.rows(ROWS)
        self.assertEqual(shown["M2"], {"sum": ["test_second"]})
        self.assertEqual(shown["M5"], {"script": ["test_upper"], "sum": []})
        self.assertEqual(shown["M7"]["sum"], ["test_first", "test_second"])

    def test_failed_functions(self):
        cmocka = "[  FAILED  ] f32 shapes\n[==========] 2\n[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] f32 shapes\n"
        self.assertEqual(tree.failed_functions(cmocka), ["f32 shapes"])
        python = "FAIL: test_x (__main__.Words.test_x)\nERROR: setUpClass (__main__.Words)\n"
        self.assertEqual(tree.failed_functions(python), ["__main__.Words.test_x", "__main__.Words"])
        self.assertTrue(tree.matches("f32 shapes", ["f32"]))
        self.assertFalse(tree.matches("bf32 shapes", ["f32"]))

    def test_broken_lists(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name) / "broken.list"
        for text in ("a | M1\n- x\n+ y\n", "a | M1 | f\n- x\n", "a | M1 | f\n+ x\n- y\n", "a | M1 |  | t\n- x\n+ y\n",
                     "a | M1 | f\n- x\n+ y\na | M2 | g\n- x\n+ y\n"):
            path.write_text(text)
            self.assertRaises(listing.BadList, listing.read, [path])

    def test_list(self):
        """Every mutant of the list is well written, and none is there twice."""
        self.assertGreater(len(listing.read(sorted(HERE.glob("*.list")))), 0)


if __name__ == "__main__":
    suite.main()
