# SPDX-License-Identifier: Apache-2.0
"""Tests of the generator: what it writes, and what it leaves alone (test_refused.py: what it refuses).

    python3 codegen/tests/test_codegen.py            run the tests
    python3 codegen/tests/test_codegen.py --update   write the golden kernels again
"""

from __future__ import annotations

import difflib
import re
import shutil
import sys
import unittest
from dataclasses import replace
from pathlib import Path

from common import FIXTURE, ROOT, TABLE, InFolder
import gen
import isas
import spec as table
import suite

GOLDEN = Path(__file__).resolve().parent / "golden"

# These kernels show the most in few lines; codegen/diff shows what a change does to all others.
SHOWN = (
    "tern_rmsnorm_avx2",
    "tern_gate_silu_avx2",
    "tern_gemv_i2_s_16x1_avx2",
    "tern_gemv_i2_s_16x1_cuda",
    "tern_quantize_token_avx2",
    "tern_store_f16_avx2",
)


def golden_files() -> dict[str, str]:
    env = gen.environment()
    spec = table.load(ROOT)
    kernels = {kernel.name: kernel for kernel in spec.kernels}
    return {f"{name}.{kernels[name].suffix}": gen.render_kernel(env, kernels[name], spec.weights) for name in SHOWN}


def update_golden() -> None:
    files = golden_files()
    GOLDEN.mkdir(exist_ok=True)
    for stale in GOLDEN.glob("*.c*"):
        if stale.name not in files:
            stale.unlink()
    for name, text in files.items():
        (GOLDEN / name).write_text(text, encoding="utf-8")


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Relative path -> contents and time of the last change."""
    return {
        p.relative_to(folder).as_posix(): (p.read_bytes(), p.stat().st_mtime_ns)
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


class Output(InFolder):
    """Tests of the files that a run leaves in the folder."""

    def run_into(self, name: str) -> Path:
        out = self.folder / name
        result = self.generate("--out", str(out), "--table", str(FIXTURE))
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        return out

    def test_same_bytes_every_time(self) -> None:
        first = snapshot(self.run_into("a"))
        second = snapshot(self.run_into("b"))
        self.assertEqual(list(first), list(second))
        for name in first:
            self.assertEqual(first[name][0], second[name][0], name)

    def test_second_run_writes_nothing(self) -> None:
        out = self.run_into("a")
        before = snapshot(out)
        self.run_into("a")
        self.assertEqual(before, snapshot(out))

    def test_only_what_changed_is_written(self) -> None:
        out = self.run_into("a")
        before = snapshot(out)
        (out / "gemv.inc").write_text(f"/* {gen.ORIGIN} */\n", encoding="utf-8")
        (out / "kernels" / "tern_add_scalar.c").unlink()
        self.run_into("a")
        after = snapshot(out)
        changed = sorted(n for n in after if after[n] != before[n])
        self.assertEqual(changed, ["gemv.inc", "kernels/tern_add_scalar.c"])
        self.assertEqual(
            {n: c for n, (c, _) in before.items()}, {n: c for n, (c, _) in after.items()}
        )

    def test_stale_files_are_removed(self) -> None:
        out = self.run_into("a")
        shutil.copy(out / "kernels" / "tern_add_scalar.c", out / "kernels" / "tern_old_scalar.c")
        shutil.copy(out / "add.inc", out / "old.inc")
        self.run_into("a")
        self.assertFalse((out / "kernels" / "tern_old_scalar.c").exists())
        self.assertFalse((out / "old.inc").exists())

    def test_foreign_files_stay(self) -> None:
        out = self.folder / "a"
        foreign = [out / "notes.txt", out / "kernels" / "mine.c", out / "deep" / "er" / "x.inc"]
        for path in foreign:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("int x;\n", encoding="utf-8")
        self.run_into("a")
        for path in foreign:
            self.assertEqual(path.read_text(encoding="utf-8"), "int x;\n")

    def test_bad_table_writes_nothing(self) -> None:
        bad = self.folder / "bad.toml"
        bad.write_text(TABLE.replace('op = "softmax"', 'op = "softmin"'), encoding="utf-8")
        out = self.folder / "a"
        result = self.generate("--out", str(out), "--table", str(bad))
        self.assertEqual(result.returncode, 1)
        complaint = r"\Acodegen: kernel 5 \(softmin\): unknown op 'softmin'\n\Z"
        self.assertRegex(result.stderr, complaint)
        self.assertFalse(out.exists())


class Text(unittest.TestCase):
    """Tests of the text in the files."""

    source: Path | None = FIXTURE

    @classmethod
    def setUpClass(cls) -> None:
        cls.spec = table.load(ROOT, cls.source)
        cls.files = gen.outputs(cls.spec)

    def test_is_tidy(self) -> None:
        for name, text in self.files.items():
            self.assertTrue(text.endswith("\n") and not text.endswith("\n\n"), name)
            self.assertNotIn("\n\n\n", text, name)
            for number, line in enumerate(text.splitlines(), start=1):
                where = f"{name}:{number}"
                self.assertLessEqual(len(line), 100, where)
                self.assertEqual(line, line.rstrip(), where)
                self.assertNotIn("\t", line, where)
                self.assertNotRegex(line, r"\{\{|\{%|%\}|\}\}\}|^%%|^##", where)

    def test_kernels_name_their_origin(self) -> None:
        for kernel in self.spec.kernels:
            text = self.files[kernel.file]
            self.assertTrue(text.startswith("/* SPDX-License-Identifier: Apache-2.0 */\n"))
            self.assertIn(f"Generated from kernel {kernel.name} of kernels/kernels.toml", text)
            self.assertIn(f"template kernels/{kernel.template}.{kernel.suffix}.j2", text)
            suffix, head = ("cuh", r"TERN_KERNEL(?:_AHEAD)?\(\w+, ") if kernel.isa.is_cuda else ("h", "void ")
            self.assertIn(f'#include "kernels/isa/{kernel.isa.name}.{suffix}"', text)
            for name in kernel.functions:
                found = re.findall(rf"^{head}{name}\b", text, re.M)
                self.assertEqual(len(found), 1, name)

    def test_lists_have_every_kernel_once_in_order(self) -> None:
        includes = re.findall(r'^#include "gen/(\w+)\.inc"$', self.files["table.inc"], re.M)
        self.assertEqual(includes, list(self.spec.ops))
        for op in includes:
            text = re.sub(r"\n    ", " ", self.files[f"{op}.inc"])
            parts = self.spec.ops[op].parts
            macro = f"TERN_{op.upper()}_KERNEL" if parts else "TERN_TABLE_KERNEL"
            entry = re.compile(
                rf"^#if TERN_HAVE_(\w+)\n{macro}\((.*\), \d+, \d+), (\w+), (.*)\)\n"
                rf"#else\n{macro}\((.*\), \d+, \d+), (\w+), (.*)\)\n#endif\n",
                re.M,
            )
            found = entry.findall(text)
            kernels = {r.name: r for r in self.spec.kernels if r.op.name == op}
            self.assertEqual(len(re.findall(macro, text)), 2 * len(found), op)
            for have, facts, name, functions, other_facts, other_name, missing in found:
                self.assertEqual((facts, name), (other_facts, other_name))
                self.assertTrue(name.endswith("_" + have.lower()), name)
                if not kernels[name].isa.is_cuda:
                    self.assertEqual(functions, ", ".join(kernels[name].functions))
                self.assertEqual(missing, ", ".join(["NULL"] * max(1, len(parts))))
            self.assertEqual([name for _, _, name, *_ in found], list(kernels))

    def test_declared_and_compiled_once(self) -> None:
        declared = re.findall(r"^tern_\w+_fn (\w+);$", self.files["kernels.h"], re.M)
        sources = re.findall(r"^    kernels/(\w+)\.c", self.files["sources.cmake"], re.M)
        written = [n[len("kernels/") : -2] for n in self.files if n.startswith("kernels/")]
        ours = [r for r in self.spec.kernels if not r.isa.is_cuda]
        self.assertEqual(sorted(declared), sorted(name for r in ours for name in r.functions))
        proofs = [f"proof_{isa.name}" for isa in self.spec.processor_isas()]
        for names in (sources, written):
            self.assertEqual(sorted(names), sorted([r.name for r in ours] + proofs))

    def test_cuda_kernels_are_compiled_and_listed_once(self) -> None:
        kernels = sorted(r.name for r in self.spec.kernels if r.isa.is_cuda)
        self.assertTrue(kernels)
        sources = re.findall(r"^    cuda/(\w+)\.cu", self.files["sources.cmake"], re.M)
        text = self.files["cuda/kernels.cu"]
        included = re.findall(r'^#include "gen/cuda/(\w+)\.cu"$', text, re.M)
        named = re.findall(r'^    \{"(\w+)",$', text, re.M)
        functions = re.findall(r"\(const void \*\)code_of_(\w+)::(\w+)\}", text)
        written = [n[len("cuda/") : -3] for n in self.files if n.startswith("cuda/")]
        for names in (sources, included, named):
            self.assertEqual(sorted(names), kernels)
        self.assertEqual(sorted(functions), [(name, name) for name in kernels])
        self.assertEqual(sorted(written), sorted([*kernels, "kernels"]))
        self.assertIn(f"tern_cuda_kernel_count = {len(kernels)};", text)

    def test_instruction_sets(self) -> None:
        listed = re.findall(
            r"^#if TERN_HAVE_\w+\nTERN_ISA\((\w+), (\w+), .*, true, tern_proof_(\w+)\)\n"
            r"#else\nTERN_ISA\((\w+), (\w+), .*, false, NULL\)\n#endif$",
            self.files["isas.inc"].replace(",\n    ", ", ").replace("|\n    ", "| "),
            re.M,
        )
        names = [(isa.name, isa.arch) for isa in self.spec.processor_isas()]
        self.assertEqual(listed, [(name, arch, name, name, arch) for name, arch in names])
        self.assertEqual(listed[0][0], "scalar")
        for isa in self.spec.isas.values():
            found = re.search(
                rf"set\(TERN_ISA_{isa.name}_FLAGS(.*?)\)", self.files["sources.cmake"], re.S
            )
            self.assertEqual(tuple(found.group(1).split()), isa.cflags)


class LiveText(Text):
    """kernels/kernels.toml itself generates, and every kernel stands exactly once."""

    source = None


class Facts(unittest.TestCase):
    def test_facts_of_a_kernel(self) -> None:
        facts = (
            "TERN_TABLE_KERNEL(GEMV, I2_S, T2R16, avx512, (TERN_CPU_MASK(AVX2) | TERN_CPU_MASK(F16C) | "
            "TERN_CPU_MASK(AVX512F)), 16, 1, tern_gemv_i2_s_16x1_avx512, NULL)"
        )
        text = gen.outputs(table.load(ROOT, FIXTURE))["gemv.inc"]
        self.assertIn(facts, " ".join(text.split()))


class Inheritance(InFolder):
    """Tests of what a set inherits from the one that it extends, and of where its kernels stand."""

    def load(self, text: str = TABLE) -> table.Spec:
        path = self.folder / "table.toml"
        path.write_text(text, encoding="utf-8")
        return table.load(ROOT, path)

    def names(self, spec: table.Spec, op: str, operand: str | None) -> list[str]:
        kernels = [kernel for kernel in spec.kernels if kernel.op.name == op and kernel.operand == operand]
        return [kernel.isa.name for kernel in kernels]

    def test_facts(self) -> None:
        found = self.load().isas
        self.assertEqual(found["avxvnni"].needs, ("AVX2", "F16C", "AVXVNNI"))
        self.assertEqual(found["avxvnni"].cflags, ("-mavx2", "-mf16c", "-mavxvnni"))
        self.assertEqual((found["avxvnni"].lanes, found["avx512"].lanes), (8, 16))
        self.assertEqual((found["avx512"].arch, found["avx512"].chains), ("x86_64", 2))
        self.assertEqual(found["avx512"].proof, ("vp_mac", "vf_mul"))

    def test_kernels_of_a_set_that_names_them(self) -> None:
        spec = self.load()
        own = [kernel.name for kernel in spec.kernels if kernel.isa.name == "avxvnni"]
        self.assertEqual(own, ["tern_gemv_q4_1_16x1_avxvnni", "tern_softmax_avxvnni"])

    def test_kernels_like_those_of_another_set(self) -> None:
        wanted = 'like = "scalar"\nkernels = ["add", "attend f32"]'
        spec = self.load(TABLE.replace('kernels = ["gemv q4_1", "softmax"]', wanted))
        own = [kernel.name for kernel in spec.kernels if kernel.isa.name == "avxvnni"]
        self.assertEqual(own, ["tern_attend_f32_avxvnni", "tern_add_avxvnni"])

    def test_kernels_of_a_set_farther_up(self) -> None:
        more = (
            '[isa.gfni]\nextends = "avxvnni"\nneeds = ["GFNI"]\ncflags = []\n'
            'proof = ["vp_mac"]\nkernels = ["add", "softmax"]\n\n[isa.avx512]'
        )
        spec = self.load(TABLE.replace("[isa.avx512]", more))
        own = [kernel.name for kernel in spec.kernels if kernel.isa.name == "gfni"]
        self.assertEqual(own, ["tern_softmax_gfni", "tern_add_gfni"])

    def test_the_strongest_set_comes_first(self) -> None:
        spec = self.load()
        self.assertEqual(self.names(spec, "add", None), ["avx512", "avx2", "scalar"])
        self.assertEqual(
            self.names(spec, "softmax", None), ["avx512", "avxvnni", "avx2", "scalar", "cuda"]
        )
        moved = TABLE.replace('isa = ["avx512", "avx2"]', 'isa = ["avx2"]') + (
            '\n[[kernel]]\nop = "gemv"\nformat = ["i2_s", "q4_1"]\nisa = ["avx512"]\n'
            "tile = { rows = 16, tokens = 1 }\n"
        )
        self.assertEqual(self.names(self.load(moved), "gemv", "i2_s"), ["avx512", "avx2", "scalar"])

    def test_tiles_of_a_set_keep_the_order_of_the_table(self) -> None:
        entry = '[[kernel]]\nop = "gemv"\nformat = ["i2_s"]\nisa = ["avx2"]\n'
        entry += "tile = { rows = 8, tokens = 1 }\n\n"
        first = TABLE.replace("[[kernel]]", entry + "[[kernel]]", 1)
        kernels = [kernel for kernel in self.load(first).kernels if kernel.operand == "i2_s"]
        self.assertEqual(
            [f"{kernel.rows} {kernel.isa.name}" for kernel in kernels],
            ["16 avx512", "8 avx2", "16 avx2", "4 scalar"],
        )

    def test_a_measured_exception(self) -> None:
        ahead = TABLE + '\n[[kernel]]\nop = "add"\nisa = "avxvnni"\nahead_of = "avx512"\n'
        names = self.names(self.load(ahead), "add", None)
        self.assertEqual(names, ["avxvnni", "avx512", "avx2", "scalar"])

    def test_a_kernel_declares_itself_alone(self) -> None:
        files = gen.outputs(self.load())
        text = files["kernels/tern_gemv_i2_s_16x1_avx2.c"]
        declared = re.findall(r"^tern_\w+_fn (\w+);$", text, re.M)
        self.assertEqual(declared, ["tern_gemv_i2_s_16x1_avx2"])
        self.assertIn("tern_matmul_fn tern_gemv_i2_s_16x1_avx2;", text)
        self.assertNotIn('"gen/', text)

    def test_one_kernel_more_changes_no_other(self) -> None:
        before = gen.outputs(self.load())
        more = TABLE.replace('kernels = ["gemv q4_1", ', 'kernels = ["gemv q4_1", "gemv i2_s", ')
        after = gen.outputs(self.load(more))
        changed = sorted(name for name in after if after[name] != before.get(name))
        kernels = [name for name in changed if name.startswith("kernels/")]
        self.assertEqual(kernels, ["kernels/tern_gemv_i2_s_16x1_avxvnni.c"])

    def test_the_proof_executes_what_is_new(self) -> None:
        files = gen.outputs(self.load())
        for name, verbs in (("avxvnni", ["vp_mac"]), ("avx512", ["vp_mac", "vf_mul"])):
            text = files[f"kernels/proof_{name}.c"]
            works = re.findall(r"^static bool (\w+)_works\(void\)", text, re.M)
            self.assertEqual(works, verbs)
            self.assertIn(" && ".join(f"{verb}_works()" for verb in verbs), text)

    def test_every_verb_that_may_be_named_has_a_proof(self) -> None:
        env = gen.environment()
        for verb in isas.PROVABLE:
            isa = replace(self.load().isas["avx2"], proof=(verb,))
            self.assertIn(f"static bool {verb}_works(void)", gen.render_proof(env, isa))


class Helpers(unittest.TestCase):
    def test_lines_of_empty_expressions_are_left_out(self) -> None:
        text = '    {{ "" }}\nint a{{ "" }};\n    {{ "" }}{{ "" }}\n\n{{ "int b;\n" }}\n'
        rendered = gen.environment().from_string(text).render()
        self.assertEqual(gen.tidy(rendered), "int a;\n\nint b;\n")

    def test_token_tiles_cover_every_count(self) -> None:
        for tokens in (1, 2, 4, 8, 16):
            tiles = gen.token_tiles(tokens)
            self.assertEqual(tiles[0], tokens)
            self.assertEqual(tiles[-1], 1)
            for count in range(40):
                left = count
                for tile in tiles:
                    left %= tile
                self.assertEqual(left, 0)

    def test_wrap(self) -> None:
        line = "    call(" + ", ".join(f"argument{i}" for i in range(40)) + ");"
        parts = gen.wrap(line)
        self.assertTrue(all(len(p) <= 100 for p in parts))
        self.assertEqual("".join("".join(parts).split()), "".join(line.split()))
        self.assertEqual({len(p) - len(p.lstrip()) for p in parts[1:]}, {8})
        self.assertEqual(gen.wrap("x" * 100), ["x" * 100])
        self.assertEqual(gen.wrap("x" * 101), ["x" * 101])  # nowhere to break it


class Golden(unittest.TestCase):
    """The kernels as they were when somebody last read them."""

    def test_golden(self) -> None:
        files = golden_files()
        self.assertEqual({p.name for p in GOLDEN.glob("*.c*")}, set(files))
        for name, text in files.items():
            kept = (GOLDEN / name).read_text(encoding="utf-8")
            if kept != text:
                lines = difflib.unified_diff(
                    kept.splitlines(), text.splitlines(), "golden", "generated", lineterm=""
                )
                self.fail(f"{name} has changed; see --update\n" + "\n".join(list(lines)[:60]))


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update_golden()
    else:
        suite.main()
