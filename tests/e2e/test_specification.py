# SPDX-License-Identifier: Apache-2.0
"""Command lines, variables, files and keys of the specification, used as it writes them.

tests/spec/specification.toml is the list. Its lines run in a folder with the files of the source tree after `make`:
scripts, models, pages, and build/ with the program that is tested. So `make` has nothing to build: a `cmake` in front
of the real one only writes down its arguments.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import tomllib
import unittest
from pathlib import Path

import common
import gguf_edit
from common import ROOT, tern_text
from iebin_folder import Iebin

LIST = tomllib.loads((ROOT / "tests" / "spec" / "specification.toml").read_text())
COPIED = ("scripts", "tools", "Makefile", "ci")  # they look for build/ where they lie
LINKED = ("models", "benchmarks", "docs", "tests", ".github")
KINDS = {"<number>": (int, float), "<text>": str}
NOT = 'not() { ! "$@"; }\n'  # a plain `!` does not end a script, whatever its command returns
ASK = """
import http.client, sys, time
while True:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
        connection.request("POST", "/v1/chat/completions", sys.argv[2], {"Content-Type": "application/json"})
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
print(connection.getresponse().read().decode())
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def field(document, path):
    for name in path.split("."):
        document = document[name]
    return document


def table_rows(text):
    """First and second cells of the tables of a page."""
    for line in text.split("\n"):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if line.startswith("|") and len(cells) >= 2 and not set(cells[0]) <= set("- "):
            yield cells[0], cells[1]


def in_code(text):
    return re.findall(r"`([^`]+)`", text)


class Specification(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.build = Path(common.command()[0]).parent
        cls.copy_tree()
        cls.write_models()
        cls.has_hf = cls.write_hf_folder()

    @classmethod
    def copy_tree(cls):
        for name in COPIED:
            target = cls.dir / name
            target.parent.mkdir(exist_ok=True)
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, target)
        for name in LINKED:
            (cls.dir / name).symlink_to(ROOT / name)
        (cls.dir / "build").mkdir()
        for name in ("tern", "inference-engine", "bench"):
            (cls.dir / "build" / name).symlink_to(cls.build / name)
        before = cls.dir / "in-front"
        before.mkdir()
        (before / "cmake").write_text(f'#!/bin/sh\necho "cmake $*" >> {shlex.quote(str(cls.dir / "cmake.log"))}\n')
        (before / "cmake").chmod(0o755)

    @classmethod
    def write_models(cls):
        model = gguf_edit.read(common.small_model())
        model["general.alignment"] = gguf_edit.u32(256)
        (cls.dir / "aligned.gguf").write_bytes(model.to_bytes())
        tern_text("quantize", common.small_model(), cls.dir / "blocks.gguf", "--type", "q4_0")
        shutil.copy(ROOT / "tests" / "golden" / "tern-small-transformers.json", cls.dir / "reference.json")
        tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", "\u2581Hello"]
        (cls.dir / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
        blocks = [0, 0, 1, 2, 0, 0, 3, 4, 5, 0, 0, 0, 0, 6, 0, 0]
        (cls.dir / "dense.bin").write_bytes(struct.pack("<16f", *blocks))
        (cls.dir / "ask.py").write_text(ASK)

    @classmethod
    def write_hf_folder(cls):
        """Writes a float model with a tokenizer, and the lists of its matrices that become int4 and of those that are
        alike."""
        try:
            from hf_folder import Folder, byte_tokenizer
        except ImportError:
            return False
        hf = Path(Folder(cls.dir / "hf", "Qwen2ForCausalLM", dtype="F32", vocab_size=270).write())
        made = byte_tokenizer([("h", "e"), ("l", "l"), ("he", "ll")], {"<|end|>": True, "<|user|>": True})
        (hf / "tokenizer.json").write_text(json.dumps(made))
        (hf / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|end|>"}))
        matrices = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
        rule = {"per": "group", "group": 32, "symmetric": True}
        (cls.dir / "q4_manifest.json").write_text(json.dumps({f"model.layers.*.{m}.weight": rule for m in matrices}))
        first = cls.dir / "first"
        tern_text("convert", hf, first, "--to", "iebin", "--q4-map", cls.dir / "q4_manifest.json")
        tensors = [{"index": i, "name": t["name"], "nbytes": t["nbytes"]} for i, t in enumerate(Iebin(first).list["tensors"])]
        ups = [t["index"] for t in tensors if "ffn_up" in t["name"]]
        (cls.dir / "tensor_map.json").write_text(json.dumps({"tensors": tensors}))
        groups = [{"default_index": ups[0], "targets": ups[1:]}]
        (cls.dir / "groups.indices.json").write_text(json.dumps(groups))
        return True

    # ---- entries ----

    def environment(self):
        inherited = ("RUNS", "PROMPTS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MODEL", "BUILD")
        kept = {k: v for k, v in common.clean_environment().items() if k not in inherited}
        path = f"{self.dir / 'in-front'}:{self.dir / 'build'}:{kept['PATH']}"
        return kept | {"PATH": path, "PORT": str(free_port())}

    def run_lines(self, lines):
        """Runs them in a process group of its own, so that processes which the lines leave behind end with them."""
        process = subprocess.Popen(["sh", "-euc", NOT + lines], cwd=self.dir, env=self.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate()
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return process.returncode, out.decode(), err.decode()

    def check_fields(self, document, fields):
        for path, want in fields.items():
            found = field(document, path)
            if isinstance(want, list):
                self.assertLessEqual(set(want), set(found), path)
            elif isinstance(want, str) and want in KINDS:
                self.assertIsInstance(found, KINDS[want], path)
                self.assertNotIsInstance(found, bool, path)
            else:
                self.assertEqual((type(found), found), (type(want), want), path)

    def check_run(self, entry):
        status, out, err = self.run_lines(entry["sh"])
        said = f"{entry['title']}:\n{out[-3000:]}\n{err[-3000:]}"
        self.assertEqual(status, entry.get("status", 0), said)
        self.assertRegex(out, re.compile(entry.get("out", ""), re.M), said)
        self.assertRegex(err, re.compile(entry.get("err", ""), re.M), said)
        if "lines" in entry:
            self.assertEqual(len(out.splitlines()), entry["lines"], said)
        if "json" in entry:
            self.check_fields(json.loads(out.splitlines()[-1]), entry["json"])
        for name in entry.get("files", []):
            self.assertTrue((self.dir / name).exists(), f"{name} is not there: {said}")

    def check_runs(self, needs):
        """Lines run in their order: later ones use the files of earlier ones."""
        entries = [entry for entry in LIST["run"] if entry.get("needs") == needs]
        self.assertTrue(entries)
        for entry in entries:
            with self.subTest(entry["title"]):
                self.check_run(entry)

    def test_all(self):
        """Runs everything that needs nothing else, and keeps the receipt that it wrote."""
        self.check_runs(None)
        for entry in LIST["keys"]:
            with self.subTest(keys=entry["rows"]):
                self.check_fields(json.loads((self.dir / entry["file"]).read_text()), entry["fields"])

    def test_memory_systems(self):
        """The four folders: a Hugging Face model, an IEBIN folder, shared bytes, and links to them."""
        if not self.has_hf:
            self.skipTest("needs numpy")
        self.check_runs("hf")

    def test_sparse_benchmark(self):
        if not (self.dir / "build" / "bench" / "microbench_gemv_block_sparse").exists():
            self.skipTest("the benchmarks are not built")
        self.check_runs("bench")

    def test_every_run_belongs_to_a_test(self):
        self.assertEqual({entry.get("needs") for entry in LIST["run"]}, {None, "hf", "bench"})

    @unittest.skipUnless(shutil.which("cc"), "no cc")
    def test_headers(self):
        for entry in LIST["header"]:
            with self.subTest(entry["names"]):
                includes = "".join(f"#include <{name}>\n" for name in entry["headers"])
                code = f"{includes}int used(void);\nint used(void) {{\n{entry['use']}}}\n"
                for name in entry["names"]:
                    self.assertRegex(entry["use"], rf"\b{name}\b")
                command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c"]
                command += ["-I", ROOT / "include", "-I", self.build / "gen" / "include", "-"]
                result = subprocess.run(command, input=code, capture_output=True, text=True)
                self.assertEqual(result.returncode, 0, result.stderr)

    # ---- names that are others ----

    def problems_of_place(self, text, headers, kernels):
        """Yields the names in the other cell of a line that do not exist."""
        for word in in_code(text):
            bare = word.partition("(")[0]
            if re.fullmatch(r"(tern|ie)_\w+", bare) and not re.search(rf"\b{bare}\b", headers) and bare not in kernels:
                yield word
            elif re.fullmatch(r"tern_\w+\*", word) and not any(name.startswith(word[:-1]) for name in kernels):
                yield word
            elif re.fullmatch(r"TERN_\w+", word) and not re.search(rf"\b(TERN_)?{word.removeprefix('TERN_')}\b", headers):
                yield word
            elif re.fullmatch(r"(tests|tools|scripts|lab|authoring|ci)/[\w./-]*\w", word) and not (ROOT / word).exists():
                yield word
        for tests, file in re.findall(r"((?:`test_\w+`(?: and )?)+) in `([^`]+)`", text):
            yield from (t for t in in_code(tests) if not re.search(rf"\b{t}\b", (ROOT / file).read_text()))

    def test_names_that_are_others(self):
        """Each name has its line in docs/names.md, and the names in that line exist."""
        lines = list(table_rows((ROOT / "docs" / "names.md").read_text()))
        headers = "\n".join(path.read_text() for path in (ROOT / "include").rglob("*.h")) + tern_text("help", "environment")
        kernels = {row["name"] for row in json.loads(tern_text("kernels", "--json"))}
        words = {re.sub(r"^ci/", "", word) for first, _ in lines for word in in_code(first)}
        known = words | {word.partition("(")[0] for word in words}
        for entry in LIST["elsewhere"]:
            for name in entry["names"]:
                with self.subTest(name):
                    self.assertTrue(name in known, "no line in docs/names.md")
        for first, cell in lines:
            self.assertEqual([], list(self.problems_of_place(cell, headers, kernels)), first)

    # ---- the list ----

    def test_every_name_is_in_an_entry(self):
        """A name of a row stands in an entry of that row, in its lines or in its output."""
        entries = [entry for kind in ("run", "header", "keys", "elsewhere") for entry in LIST[kind]]
        shown = {}
        for entry in entries:
            words = [*entry.get("shows", []), *entry.get("names", []), *entry.get("fields", {})]
            for row in entry["rows"]:
                names, text = shown.setdefault(row, (set(), []))
                names.update(words)
                text.append(entry.get("sh", ""))
        left = [f"{row}: {name}" for row, names in LIST["names"].items() for name in names
                if name not in shown.get(row, (set(), []))[0] and not any(name in text for text in shown.get(row, ((), []))[1])]
        self.assertEqual(left, [])

    def test_rows_are_requirements(self):
        page = (ROOT / "docs" / "requirements.md").read_text()
        rows = {one for line in page.split("\n") if line.startswith("| M") for one in re.findall(r"M\d+", line.split("|")[1])}
        entries = [entry for kind in ("run", "header", "keys", "elsewhere") for entry in LIST[kind]]
        named = set(LIST["names"]) | {row for entry in entries for row in entry["rows"]}
        self.assertEqual(named - rows, set())


if __name__ == "__main__":
    common.main()
