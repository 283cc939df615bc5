# SPDX-License-Identifier: Apache-2.0
"""Kernels chosen by measurement: tern tune, the results that are kept, and one answer whatever was chosen."""

import json
import os
import tempfile
import unittest
from pathlib import Path

import common
import weights
from common import suite, tern, tern_json, tern_text
from serving import Server

TUNED = {"TERN_NO_TUNE": "0"}

WORD = 1 << 64
P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def xxh64(data):
    """The hash that ends a file of choices."""

    def turn(x, n):
        return (x << n | x >> (64 - n)) % WORD

    def mix(lane, word):
        return turn((lane + word * P2) % WORD, 31) * P1 % WORD

    def number(at, size):
        return int.from_bytes(data[at : at + size], "little")

    at, lanes = 0, [(P1 + P2) % WORD, P2, 0, WORD - P1]
    while len(data) - at >= 32:
        lanes = [mix(lane, number(at + 8 * i, 8)) for i, lane in enumerate(lanes)]
        at += 32
    h = P5
    if at > 0:
        h = sum(turn(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) % WORD
        for lane in lanes:
            h = ((h ^ mix(0, lane)) * P1 + P4) % WORD
    h = (h + len(data)) % WORD
    while len(data) - at >= 8:
        h = (turn(h ^ mix(0, number(at, 8)), 27) * P1 + P4) % WORD
        at += 8
    if len(data) - at >= 4:
        h = (turn(h ^ number(at, 4) * P1 % WORD, 23) * P2 + P3) % WORD
        at += 4
    for byte in data[at:]:
        h = turn(h ^ byte * P5 % WORD, 11) * P1 % WORD
    h = (h ^ h >> 33) * P2 % WORD
    h = (h ^ h >> 29) * P3 % WORD
    return h ^ h >> 32


class Tune(common.FolderTest):
    def setUp(self):
        super().setUp()
        self.mine = Path(tempfile.mkdtemp(dir=self.dir))
        self.cache = self.mine / "cache"
        self.model = common.synth("bitnet-tiny", self.dir)

    def run_model(self, *options, env=None):
        return tern_json(
            "run", "-m", self.model, "--tokens", "1,2,3", "-n", 2, "--threads", 2, *options,
            env=TUNED | (env or {}),
        )

    def kept(self):
        """The one file of the folder, and nothing beside it."""
        names = os.listdir(self.cache)
        self.assertEqual(len(names), 1, names)
        return self.cache / names[0]

    def test_tune(self):
        """All thread counts are measured and kept; runs find them and do not write again."""
        tuned = tern_json(
            "tune", "-m", self.model, "--threads", 2, "--cache", self.cache, env=TUNED
        )
        self.assertEqual({choice["threads"] for choice in tuned["choices"]}, {1, 2})
        for choice in tuned["choices"]:
            chosen = [c for c in choice["candidates"] if c["chosen"]]
            self.assertEqual([c["kernel"] for c in chosen], [choice["gemv"], choice["gemm"]])
            self.assertEqual({c["layout"] for c in chosen}, {choice["layout"]})
            for candidate in chosen:
                self.assertTrue(candidate["measured"])
                self.assertGreater(candidate["gweights_per_second"], 0)
        path = self.kept()
        before = path.read_bytes()
        result = self.run_model("--cache", self.cache)
        self.assertEqual(result["choice"], "tuned")
        self.assertEqual(path.read_bytes(), before)
        mine = [c for c in tuned["choices"] if c["threads"] == 2]
        ternary = {c["gemm"] for c in mine if c["format"] == "i2_s"}  # a head has gemm seldom
        for kernel in {c["gemv"] for c in mine} | ternary:
            self.assertIn(kernel, result["kernels"])

    def shown(self, *options, env=None):
        """Returns the part of tern kernels about the model: choices by format, rows and columns."""
        words = ("kernels", "-m", self.model, "--cache", self.cache, *options)
        said = tern_json(*words, env=TUNED | (env or {}))
        return {(k["format"], k["rows"], k["cols"]): k for k in said["matrices"]}

    def test_shown(self):
        """tern kernels -m says which kernels were measured for that number of threads, and which were not."""
        words = ("tune", "-m", self.model, "--threads", 2, "--cache", self.cache)
        tuned = {
            (c["format"], c["rows"], c["cols"]): c
            for c in tern_json(*words, env=TUNED)["choices"] if c["threads"] == 2
        }
        shown = self.shown("--threads", 2)
        self.assertEqual(shown.keys(), tuned.keys())
        for key, kind in shown.items():
            self.assertEqual(kind["choice"], "tuned")
            self.assertEqual((kind["gemv"], kind["layout"]), (tuned[key]["gemv"], tuned[key]["layout"]))
            if not kind["scan"]:
                self.assertEqual(kind["gemm"], tuned[key]["gemm"])
        table = self.shown("--threads", 2, "--no-tune")
        for key, kind in table.items():
            self.assertEqual(kind["choice"], "table")
            self.assertEqual(kind["gemv"], kind["table_gemv"])
            self.assertEqual(kind["table_gemv"], shown[key]["table_gemv"])
        self.assertEqual({kind["choice"] for kind in self.shown("--threads", 3).values()}, {"table"})
        asked = self.shown("--threads", 2, "--layout", "t5r16")
        for (form, _, _), kind in asked.items():
            self.assertEqual(kind["choice"], "asked" if form == "i2_s" else "tuned")

    def test_shown_text(self):
        words = ("kernels", "-m", self.model, "--cache", self.cache)
        hint = "has not been measured with 3 threads"
        self.assertIn(hint, tern_text(*words, "--threads", 3, env=TUNED))
        self.assertNotIn(hint, tern_text(*words, "--threads", 3, "--no-tune", env=TUNED))
        tern_text("tune", "-m", self.model, "--threads", 2, "--cache", self.cache)
        text = tern_text(*words, "--threads", 2, env=TUNED)
        self.assertRegex(text, r"\ni2_s \d+ x \d+, \w+: tuned\n  \d+ matrices: .*attn_q")
        self.assertNotIn("has not been measured", text)
        self.assertFalse(list(self.cache.glob("*.tmp*")))

    def test_text(self):
        text = tern_text("tune", "-m", self.model, "--threads", 1, "--cache", self.cache)
        self.assertIn("chosen", text)
        self.assertIn(f"kept in {self.cache}", text)
        self.assertIn("i2_s", text)

    def test_first_load(self):
        """A run measures missing entries after its answer, and keeps them for the next run."""
        self.assertEqual(self.run_model("--cache", self.cache)["choice"], "table")
        before = None
        for _ in range(20):  # on a busy machine the time for it is over before all is measured
            self.assertEqual(self.run_model("--cache", self.cache)["choice"], "tuned")
            kept = self.kept().read_bytes()
            if kept == before:
                break
            before = kept
        self.assertEqual(kept, before)
        self.assertEqual(self.run_model("--cache", self.cache)["choice"], "tuned")
        self.assertEqual(self.kept().read_bytes(), before)
        inspected = tern_json("inspect", self.model, "--cache", self.cache)
        self.assertEqual(inspected["choice"], "table")  # the tests' own variable
        self.assertIn(b"choice: table", tern("inspect", self.model).stdout)

    def test_bench_first(self):
        """A command that measures is tuned before it does."""
        words = ("logits", "-m", self.model, "--tokens", "1,2", "--sha256", "--cache", self.cache)
        tern_text(*words, env=TUNED)
        self.kept()

    def test_after_the_answer(self):
        """The text comes first; then, with -v, one line tells of the tuning, once."""
        words = ("run", "-p", "1+1=", "-n", 3, "--threads", 2, "-v", "--cache", self.cache)
        plain = tern("run", "-p", "1+1=", "-n", 3, "--threads", 2).stdout
        said = []
        for _ in range(20):
            result = tern(*words, env=TUNED)
            self.assertEqual((result.returncode, result.stdout), (0, plain))
            said.append(result.stderr.decode())
            if "tuned for the next start" not in said[-1]:
                break
        self.assertGreaterEqual(len(said), 2)
        self.assertNotIn("tuned for the next start", said[-1])
        lines = said[0].splitlines()
        self.assertRegex(lines[-1], r"^tuned for the next start: [1-9]\d* kinds of matrices measured")
        self.assertTrue([line for line in lines[:-1] if "first after" in line], lines)
        self.kept()
        quiet = tern(*[word for word in words if word != "-v"], "--no-tune", env=TUNED)
        self.assertNotIn(b"tuned for", quiet.stderr)

    def test_chat(self):
        """A chat tunes when the user asks nothing more."""
        words = ("chat", "--threads", 2, "-n", 4, "--cache", self.cache)
        self.assertEqual(tern(*words, env=TUNED, stdin=b"").returncode, 0)
        self.assertFalse(self.cache.exists() and os.listdir(self.cache))  # nothing was answered
        self.assertEqual(tern(*words, env=TUNED, stdin=b"1+1=\n").returncode, 0)
        self.kept()

    def test_serve(self):
        """A server tunes when it has answered and nobody asks."""
        with Server("--threads", 2, "--cache", self.cache, env=TUNED) as server:
            suite.until_asleep(server.process.pid)
            self.assertFalse(self.cache.exists() and os.listdir(self.cache))
            self.assertEqual(server.complete("1+1=", max_tokens=2).status, 200)
            suite.until(lambda: self.cache.exists() and os.listdir(self.cache))
            self.assertEqual(server.complete("1+1=", max_tokens=2).status, 200)
        self.kept()

    def keep_probe(self, **figures):
        """Writes the file of this machine without choices, with these figures of a probe."""
        path = self.kept()
        text = path.read_text(encoding="utf-8")
        kept = json.loads(text)
        stream = next(c["stream"] for c in kept["choices"] if c["format"] == "i2_s")
        begin, end = text.index('"choices":') + len('"choices":'), text.index(',"speeds"')
        probe = json.dumps({"threads": 2, "stream": stream} | figures)
        text = text[:begin] + "[]" + text[end:].replace('"layouts":[]', f'"layouts":[{probe}]')
        text = text[: text.index(',"check"')]
        path.write_text(f'{text},"check":"{xxh64(text.encode()):016x}"}}\n', encoding="utf-8")

    def layout(self, *words):
        return tern(*words, "-v", "--cache", self.cache, env=TUNED).stderr.decode()

    def test_layout_of_a_server(self):
        """Passes over many sequences count where there may be as many: in a server, or a file of prompts."""
        small = ("-m", common.small_model(), "--threads", 2)
        self.layout("run", *small, "-p", "1+1=", "-n", 1)
        dense = weights.DENSE_LAYOUTS[-1]
        self.keep_probe(dense=dense, ratio=800, noise=7, passes=[900, 1380])
        prompts = self.mine / "prompts.txt"
        prompts.write_text("1+1=\n2+2=\n", encoding="utf-8")
        run = ("run", *small, "-n", 1)
        many = (*run, "--prompts-file", prompts)
        kept = self.kept().read_bytes()
        for words, layout in (
            ((*many,), "t2r16; a pass of 16 tokens"),
            ((*many, "--parallel", 8), f"{dense}; memory bounds"),
            ((*run, "-p", "1+1="), f"{dense}; memory bounds"),
        ):
            self.kept().write_bytes(kept)
            self.assertIn(f"layout: {layout}", self.layout(*words))
        for options, gemv in (([], "tern_gemv_i2_s_"), (["--parallel", 8], f"tern_gemv_{dense}_")):
            self.kept().write_bytes(kept)
            with Server(*small, "--cache", self.cache, *options, env=TUNED) as server:
                answer = server.complete("1+1=", max_tokens=2, receipt=True)
                self.assertIn(gemv, answer.body.decode())

    def test_no_tune(self):
        for options, env in ((["--no-tune"], {}), (["--deterministic"], {}), ([], {"TERN_NO_TUNE": "1"})):
            result = self.run_model("--cache", self.cache, *options, env=env)
            self.assertEqual(result["choice"], "table", options)
            self.assertFalse(self.cache.exists())
        asked = self.run_model("--cache", self.cache, "--layout", "t5r16", "--no-tune")
        self.assertEqual(asked["choice"], "asked")
        self.assertTrue([k for k in asked["kernels"] if k.startswith("tern_gemv_t5r16_")], asked)

    def test_one_answer(self):
        """Tuned or not, for every instruction set and number of threads."""
        words = ("logits", "-m", self.model, "--tokens", "1,2,3,4,5", "--all", "--sha256")
        expected = tern_text(*words)
        for isa in common.runnable_isas():
            for threads in (1, 2, 3):
                options = ("--isa", isa, "--threads", threads, "--cache", self.cache)
                self.assertEqual(tern_text(*words, *options, env=TUNED), expected, options)

    def test_damaged(self):
        """Whatever the file holds, the model runs and the file is good again, for the next run."""
        self.run_model("--cache", self.cache)
        path = self.kept()
        good = path.read_bytes()
        for bad in (b"", b"\0", b"{}", good[:-1], good[:100] + b"x" + good[101:], good * 50000):
            path.write_bytes(bad)
            self.assertEqual(self.run_model("--cache", self.cache)["choice"], "table")
            self.assertTrue(self.kept().read_bytes().endswith(b'"}\n'))
            self.assertLess(len(self.kept().read_bytes()), 10000)

    def test_folder_is_a_file(self):
        """A run takes the table's kernels; tune says so before it measures."""
        self.cache.write_text("mine")
        self.assertEqual(self.run_model("--cache", self.cache)["choice"], "table")
        result = tern("tune", "-m", self.model, "--threads", 1, "--cache", self.cache)
        self.assert_one_line_error(result, contains=[str(self.cache)])
        self.assertEqual(self.cache.read_text(), "mine")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_folder_is_read_only(self):
        """tune says so before it measures."""
        self.cache.mkdir(mode=0o500)
        result = tern("tune", "-m", self.model, "--threads", 1, "--cache", self.cache)
        self.assert_one_line_error(result, contains=[str(self.cache), "Permission denied"])
        self.assertEqual(result.stdout, b"")

    def test_no_folder(self):
        """Without a home directory nothing is kept; a run ignores that, tune does not."""
        nowhere = {"HOME": "", "XDG_CACHE_HOME": ""}
        self.assertEqual(self.run_model(env=nowhere)["choice"], "table")
        result = tern("tune", "-m", self.model, "--threads", 1, env=nowhere)
        self.assert_one_line_error(result, contains=["no folder to keep the choices in"])
        home = {"HOME": str(self.mine), "XDG_CACHE_HOME": ""}
        self.run_model(env=home)
        self.assertEqual(len(os.listdir(self.mine / ".cache" / "tern")), 1)

    def test_receipt(self):
        """A receipt of a tuned run says so, and a machine with other choices replays it."""
        receipt = self.mine / "receipt.json"
        small = common.small_model()
        words = ("run", "-m", small, "-p", "1+1=", "-n", 3, "--cache", self.cache)
        tern_text(*words, env=TUNED)
        tern_text(*words, "--receipt", receipt, env=TUNED)
        self.assertIn('"choice": "tuned"', receipt.read_text(encoding="utf-8"))
        for options in ([], ["--layout", "t5r16"], ["--isa", "scalar"]):
            tern_text("verify", receipt, "--replay", *options)


if __name__ == "__main__":
    common.main()
