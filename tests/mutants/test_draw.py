# SPDX-License-Identifier: Apache-2.0
"""Mutants that are drawn: what each operator changes, the same ones for the same seed, the map, the report."""

import itertools
import json
import sys
import tempfile
import types
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import coverage  # noqa: E402
import draw  # noqa: E402
import drawing  # noqa: E402
import operators  # noqa: E402
import suite  # noqa: E402
import tokens  # noqa: E402
import tree  # noqa: E402
import trial  # noqa: E402

ROOT = HERE.parents[1]
SAMPLE = """
/* if (a < 1) "comment" */
#define LIMIT (1 + 2)
typedef enum kind { FIRST, SECOND, THIRD = 7 } kind;
static const int table[] = {4, 5};

static int sum(const char *name, int a, int b) {
    _Static_assert(sizeof(int) == 4, "an int");
    const int more = a + 1;
    if (a < b && !strcmp(name, "word"))
        take(a, b);
    if (kind_of(a) == SECOND)
        total -= 0x10;
    log_text("a sentence %d", a);
    return done == true ? more : b;
}
"""
PYTHON = """
def most(a, b=False):
    if a > 2 and not b:
        return "word"
    return a
"""


def changes(operator, name="sum", text=SAMPLE, path=Path("x.c")):
    """Returns the text in place of the lines that the operator changes, squeezed."""
    definition = next(one for one in tokens.definitions(path, text) if one.name == name)
    after = tokens.enumerations([text])
    place = operators.Place(text, definition, tokens.of(path, text, definition), after)
    found = set()
    for start, end, change in operator(place):
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        found.add(" ".join((text[first:start] + change + text[end:last]).split()))
    return found


class Operators(unittest.TestCase):
    def check(self, operator, *expected, **where):
        self.assertEqual(changes(operator, **where), set(expected))

    def test_constants(self):
        self.check(operators.off_by_one, "const int more = a + (1 + 1);", "const int more = a + (1 - 1);",
                   "total -= (0x10 + 1);", "total -= (0x10 - 1);")  # fmt: skip
        self.check(operators.times, "const int more = a + (1 * 2);", "const int more = a + (1 * 3);",
                   "total -= (0x10 * 2);", "total -= (0x10 * 3);")  # fmt: skip
        self.check(operators.times, "static const int table[] = {(4 * 2), 5};", "static const int table[] = {(4 * 3), 5};",
                   "static const int table[] = {4, (5 * 2)};", "static const int table[] = {4, (5 * 3)};",
                   name="table")  # fmt: skip

    def test_conditions(self):
        self.check(operators.comparison, 'if (a <= b && !strcmp(name, "word"))', "if (kind_of(a) != SECOND)",
                   "return done != true ? more : b;")  # fmt: skip
        self.check(operators.negated, 'if (!(a < b && !strcmp(name, "word")))', "if (!(kind_of(a) == SECOND))",
                   "return done == true ? (b) : (more);")  # fmt: skip
        self.check(operators.dropped_operand, "if (a < b)", 'if (!strcmp(name, "word"))')
        self.check(operators.removed_not, 'if (a < b && strcmp(name, "word"))')
        self.check(operators.opposite, "return done == false ? more : b;")

    def test_statements(self):
        self.check(operators.deleted, ";")
        place = [";" in line for line in changes(operators.deleted)]
        self.assertEqual(place, [True])
        self.check(operators.early_return, "static int sum(const char *name, int a, int b) { return (int){0};")
        self.check(operators.arithmetic, "const int more = a - 1;", "total += 0x10;")

    def test_values(self):
        self.check(operators.swapped, "take(b, a);", 'log_text(a, "a sentence %d");')  # fmt: skip
        self.check(operators.member, "if (kind_of(a) == THIRD)")
        self.check(operators.string, 'if (a < b && !strcmp(name, "wor"))')
        ignored = changes(operators.ignored)
        self.assertIn("take(0, b);", ignored)
        self.assertIn('if (a < b && !strcmp(0, "word"))', ignored)
        self.assertNotIn("static int sum(const char *0, int a, int b) {", ignored)

    def test_swapped_comparisons(self):
        """Two texts are equal in either order, but which one comes first, and how many bytes count, depends on the
        arguments' order."""
        text = "int f(void) {\n    return strcmp(a, b) == 0 || strncmp(a, b, n) != 0 || strcmp(a, b) < 0;\n}\n"
        self.check(operators.swapped, "return strcmp(a, b) == 0 || strncmp(a, n, b) != 0 || strcmp(a, b) < 0;",
                   "return strcmp(a, b) == 0 || strncmp(a, b, n) != 0 || strcmp(b, a) < 0;",
                   name="f", text=text)  # fmt: skip

    def test_python(self):
        where = {"name": "most", "text": PYTHON, "path": Path("x.py")}
        self.check(operators.negated, "if not (a > 2 and not b):", **where)
        self.check(operators.dropped_operand, "if a > 2:", "if not b:", **where)
        self.check(operators.removed_not, "if a > 2 and b:", **where)
        self.check(operators.string, 'return "wor"', **where)

    def test_templates(self):
        text = "%% if wide\nvoid f(int n) {\n    put({{ at }}, 4);\n%% endif\n    put(n, 5);\n}\n"
        where = {"name": "f", "text": text, "path": Path("x.c.j2")}
        self.check(operators.off_by_one, "put({{ at }}, (4 + 1));", "put({{ at }}, (4 - 1));", "put(n, (5 + 1));",
                   "put(n, (5 - 1));", **where)  # fmt: skip

    def test_operands(self):
        text = "bool f(int a) {\n    return g(a) != 0 || a == 1 ||\n           (b && c);\n}\n"
        where = {"name": "f", "text": text}
        self.check(operators.dropped_operand, "return a == 1 ||", "return g(a) != 0 ||", "return g(a) != 0 || a == 1 ;",
                   "(c);", "(b);", "return g(a) != 0 || (b && c);", **where)  # fmt: skip

    def test_lines_stay(self):
        """A removed statement of three lines leaves three empty lines."""
        text = "void f(void) {\n    call(a,\n         b,\n         c);\n    next();\n}\n"
        definition = tokens.c_definitions(text)[0]
        place = operators.Place(text, definition, tokens.of(Path("x.c"), text, definition), {})
        for start, end, change in operators.deleted(place):
            self.assertEqual((text[:start] + change + text[end:]).count("\n"), text.count("\n"))


class Drawing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not (ROOT / ".git").exists():
            raise unittest.SkipTest("no checkout")
        cls.source = drawing.Source(ROOT, tree.tracked(ROOT))

    def drawn(self, seed, count=100):
        return list(itertools.islice(drawing.draw(self.source, seed), count))

    def test_seeds(self):
        self.assertEqual(self.drawn("a"), self.drawn("a"))
        self.assertNotEqual(self.drawn("a"), self.drawn("b"))

    def test_every_room_and_operator(self):
        found = self.drawn("rooms", 1500)
        self.assertEqual({mutant.room for mutant in found}, {*drawing.ROOMS, drawing.TEMPLATES})
        self.assertEqual({mutant.operator for mutant in found}, {one.__name__ for one in operators.all_operators()})
        self.assertEqual(len({(mutant.file, mutant.start, mutant.end, mutant.change) for mutant in found}), 1500)

    def test_lines(self):
        """Lines do not move, so that the lines of the map are those of the mutant."""
        for mutant in self.drawn("lines", 1000):
            text = self.source.texts[Path(mutant.file)]
            self.assertNotEqual(mutant.apply(text), text)
            self.assertEqual(mutant.apply(text).count("\n"), text.count("\n"), mutant)


class Map(unittest.TestCase):
    def test_lines(self):
        text = "SF:/tree/build-cover/../a.c\nFN:1,f\nDA:1,3\nDA:2,1\nDA:3,0\nDA:5,9\nSF:/usr/b.h\nDA:1,1\n"
        self.assertEqual(coverage.lines_of(text, Path("/tree")), {"a.c": [[1, 2], [5, 5]]})

    def test_choice(self):
        known = {name: {"test": name, "status": status, "seconds": seconds, "lines": {"a.c": [lines]}}
                 for name, status, seconds, lines in (("slow", 0, 9, [1, 8]), ("fast", 0, 1, [4, 4]),
                                                      ("red", 1, 0, [4, 4]), ("other", 0, 0, [5, 8]))}  # fmt: skip
        self.assertEqual(coverage.tests_of(known, "a.c", 3, 4), ["fast", "slow"])
        self.assertEqual(coverage.tests_of(known, "b.c", 3, 4), [])


class Objects(unittest.TestCase):
    def test_new_ones_do_not_stay(self):
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder)
            work = types.SimpleNamespace(build=build)
            (build / "CMakeFiles").mkdir()
            old, new = build / "CMakeFiles" / "old.o", build / "CMakeFiles" / "new.o"
            old.write_bytes(b"1")
            trials = trial.Trials(work, {}, folder)
            trials.objects = trials._hashes()
            new.write_bytes(b"2")
            self.assertEqual(trials.changed(), [new])
            trials.remove_new()
            self.assertEqual(trials.changed(), [])
            self.assertTrue(old.exists())


class Rows(unittest.TestCase):
    def test_those_that_run_here(self):
        """Of many rows that changed, three are tried alone, of those that this processor runs."""
        trials = trial.Trials(types.SimpleNamespace(build=Path("/")), {}, "/none")
        rows = [f"tern_gemm_{name}" for name in ("a_avx512", "b_avx2", "c_avx2", "d_avx2", "e_avx2", "f_neon")]

        def tried():
            return {only for _, only in trials._for_rows(rows) if only}

        self.assertEqual(tried(), {"gemm_a_avx512", "gemm_d_avx2", "gemm_f_neon"})
        trials.here = set(rows[1:5])
        self.assertEqual(tried(), {"gemm_b_avx2", "gemm_d_avx2", "gemm_e_avx2"})


class Workers(unittest.TestCase):
    def test_one_tries_a_mutant(self):
        with tempfile.TemporaryDirectory() as folder:
            first = draw.Lock(Path(folder), "1", 7)
            self.assertTrue(first.taken)
            self.assertFalse(draw.Lock(Path(folder), "1", 7).taken)
            self.assertTrue(draw.Lock(Path(folder), "1", 8).taken)
            first.file.close()
            self.assertTrue(draw.Lock(Path(folder), "1", 7).taken)

    def test_lines_of_others_are_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, others = (draw.Journal(Path(folder, "drawn.jsonl"), "1") for _ in range(2))
            others.add({"seed": "1", "number": 4, "outcome": "noticed"})
            self.assertEqual(ours.entries, {})
            self.assertEqual(ours.read()[4]["outcome"], "noticed")

    def test_targets(self):
        """A folder of the build is a target where CMake has one for it; one of generated files has none."""
        with tempfile.TemporaryDirectory() as folder:
            work = tree.Tree(folder, folder)
            for name in ("python", "gen/include"):
                (work.build / name).mkdir(parents=True)
            (work.build / "python" / "cmake_install.cmake").touch()
            command = ["x", *(str(work.build / name) for name in ("python", "gen/include", "tern"))]
            self.assertEqual(work.targets([tree.Test("t", command)]), ["python/all", "tern"])


class Report(unittest.TestCase):
    def test_shares(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "drawn.jsonl")
            path.write_text("".join(
                json.dumps({"seed": seed, "number": number, "room": "base", "file": "a.c", "function": "f",
                            "operator": "times", "diff": f"-x{number}\n+y", "outcome": outcome}) + "\n"
                for seed, number, outcome in (("1", 0, "noticed"), ("1", 1, "SURVIVED"), ("1", 2, "the same code"),
                                              ("2", 1, "noticed"), ("1", 3, "SURVIVED"), ("1", 3, "hangs"))
            ))  # fmt: skip
            journal = draw.Journal(path, "1")
            self.assertAlmostEqual(draw.share(journal), 200 / 3)
            self.assertIn("| base | 2 | 1 | 3 | 0 |", draw.report(journal))
            self.assertIn("-x1\n+y", draw.report(journal))

    def test_equal(self):
        """An entry of the list fits its change however it is spaced, and has a reason."""
        entry = {"file": "a.c", "diff": "-  x = 1;\n+  x = 2;", "outcome": "SURVIVED"}
        self.assertEqual(draw.outcome_of(entry, {("a.c", "x = 1;", "x = 2;"): "why"}), draw.EQUAL)
        self.assertEqual(draw.outcome_of(entry, {("b.c", "x = 1;", "x = 2;"): "why"}), "SURVIVED")
        self.assertTrue(all(len(reason.split()) > 3 for reason in draw.equals().values()))


if __name__ == "__main__":
    suite.main()
