# SPDX-License-Identifier: Apache-2.0
"""Documents of figures: written by real measurements, held to their rules by lab/verify-figures; the documents
behind the repository's claims; JSON Schemas of every kind."""

import concurrent.futures
import contextlib
import importlib.util
import json
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import common
import json_schema
import receipt_tools as tools
from common import ROOT, tern, tern_json, tern_text
from serving import Server

sys.path.insert(0, str(ROOT / "lab"))
import documents  # noqa: E402
import figure_rules  # noqa: E402

RECEIPTS = ("receipt", "answer")  # that tern verify checks
KINDS = (*RECEIPTS, *documents.KINDS)

# A name of a benchmark, longer than a line of a table, and one with a dot.
LONG, DOTTED = "tern_gemv_iq2_s_16x1_avx512vnni/memory/6912x2560/real_time/threads:2", "tern_x/1.5"


def measured(path, figures, **context):
    """Returns the document that `bench_kernels --json` would write for {name: times in microseconds}."""
    told = {"date": "2026-11-22T18:00:00+01:00", "executable": "/some/where/bench_kernels", "num_cpus": 2,
            "load_avg": [0.5, 1, 1], "processor": "Any", "architecture": "x86_64", "os": "Linux 6.1",
            "tern_version": "0.1.0", "tern_commit": "abc", "program_sha256": "0" * 64}
    runs = [{"run_name": name, "run_type": "iteration", "cpu_time": t, "real_time": t, "time_unit": "us",
             "label": "op=gemv isa=avx2 threads=1"} for name, times in figures.items() for t in times]
    path.write_text(json.dumps({"context": told | context, "benchmarks": runs}), encoding="utf-8")
    return path


def verify_figures(*words):
    return subprocess.run([sys.executable, ROOT / "lab" / "verify-figures", *map(str, words)], capture_output=True,
                          text=True)  # fmt: skip


def findings(document, path):
    """Returns every rule that a document breaks, one a line; path: the place where the document may be written."""
    if documents.is_of_figures(document):
        return "\n".join(figure_rules.check(document)[1])
    path.write_text(json.dumps(document), encoding="utf-8")
    result = tern("verify", path)
    path.unlink()
    assert (result.returncode == 0) == (not result.stderr), result
    return result.stderr.decode()


def schema(kind):
    return tools.load(ROOT / "docs" / "schemas" / f"{kind}.schema.json")


def validate(document, kind):
    """Returns the schema's complaints; another validator checks too, where it is installed."""
    found = list(json_schema.problems(document, schema(kind)))
    if importlib.util.find_spec("jsonschema"):
        import jsonschema

        theirs = list(jsonschema.Draft202012Validator(schema(kind)).iter_errors(document))
        assert bool(theirs) == bool(found), (theirs, found)
    return found


def every(n, mapping):
    """Each n-th of many changes: enough where all are found in the same way."""
    return dict(list(mapping.items())[::n])


class Documents(common.TernTest):
    """A benchmark with every sweep, comparisons and an answer, made here, once for all tests."""

    keep = None

    @classmethod
    def setUpClass(cls):
        if Documents.keep is None:
            Documents.make()

    @staticmethod
    def make():
        cls = Documents
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.keep.name)
        cls.model = common.synth("bitnet-tiny", cls.folder)
        cls.documents = {"receipt": tools.load(ROOT / "ci" / "inference.json")}
        cls.benchmark_path = cls.folder / "benchmark.json"
        bench = ["bench", "-m", cls.model, "-p", 20, "-n", 6, "--repeat", 3, "--threads", 1]
        sweeps = ["--depths", "0,16", "--thread-counts", "1,2", "--batch-sizes", "2", "--stages",
                  "--sequences", "1,3", "--arriving", 10]
        more = ["--sparsity", "--fetch-ahead", 64, "--touch-bytes", 4096, "--record", cls.benchmark_path]
        cls.printed = tern_json(*bench, *sweeps, *more)
        cls.documents["benchmark"] = tools.load(cls.benchmark_path)
        perplexity, text = cls.folder / "perplexity.json", cls.folder / "text.txt"
        text.write_text("Some text that a model of random weights does not predict. " * 9)
        tern_text("perplexity", "-m", cls.model, "-f", text, "--ctx", 64, "--stride", 24, "--threads", 1,
                  "--record", perplexity)
        cls.documents["perplexity"] = tools.load(perplexity)
        cls.comparison_path = cls.folder / "comparison.json"
        side = [str(w) for w in common.command("bench", "-m", cls.model, "-p", 8, "-n", 4, "--repeat", 1)]
        command = [sys.executable, ROOT / "bench" / "compare-engines", "--runs", "3"]
        command += ["--model", cls.model, "--out", cls.comparison_path]
        for letter, threads in (("a", "1"), ("b", "2")):
            command += [f"--{letter}", shlex.join([*side, "--json", "--threads", threads])]
        done = subprocess.run([str(w) for w in command], capture_output=True, text=True,
                              env=common.clean_environment())
        if done.returncode:
            raise AssertionError(done.stderr)
        cls.documents["comparison"] = tools.load(cls.comparison_path)
        cls.independent_path = cls.folder / "independent.json"
        a = measured(cls.folder / "a.json", {LONG: [10.1, 11.3, 9.7], DOTTED: [4.1, 4.2, 4.3, 4.5]})
        b = measured(cls.folder / "b.json", {LONG: [8.2, 8.9, 8.4, 8.3], DOTTED: [5.1, 5.3]},
                     load_avg=[2.5, 1, 1], date="2026-11-22T17:30:00+00:00")
        command = [sys.executable, ROOT / "bench" / "compare", a, b, "--out", cls.independent_path]
        done = subprocess.run([str(w) for w in command], capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(done.stderr)
        cls.documents["independent"] = tools.load(cls.independent_path)
        with contextlib.suppress(unittest.SkipTest), Server("-m", cls.model, "--threads", 1) as server:
            asked = {"prompt": "a b", "max_tokens": 5, "stop": ["x", "yz"], "logit_bias": {"3": 0.5}, "receipt": True}
            cls.documents["answer"] = server.post("/v1/completions", **asked).json()["tern"]["receipt"]

    def kinds(self):
        """Returns the kinds that have documents here: without a server, answers have none."""
        return [kind for kind in KINDS if kind in self.documents]

    def refused(self, changed):
        """Says which of {name: document} are refused."""

        def one(item):
            return findings(item[1], self.folder / f"{id(item)}.json") and item[0]

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return {name for name in pool.map(one, changed.items()) if name}

    def assert_refused(self, document, text):
        self.assertIn(text, findings(tools.seal(document), self.folder / "refused.json"))


class Writing(Documents):
    def test_benchmark(self):
        """--record writes the same figures that --json prints, with model, machine and commit beside them."""
        d = self.documents["benchmark"]
        for key, value in d["benchmark"].items():
            self.assertEqual(value, self.printed[key], key)
        self.assertEqual(d["kernels"], self.printed["kernels"])
        self.assertEqual((d["$schema"], d["compute_path"]), ("urn:tern:benchmark:1.0.0", "real"))
        self.assertEqual(d["model_info"]["model_path"], self.model.name)
        self.assertTrue(d["versions"]["commit"])
        self.assertEqual(d["origin"], {"kind": "measured", "note": "", "not_recorded": []})
        self.assertNotIn(str(self.folder), json.dumps(d))
        done = verify_figures(self.benchmark_path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("medians of 3 rounds", done.stdout)

    def test_comparison(self):
        d = self.documents["comparison"]
        self.assertEqual(d["a"]["compute_path"], "real")
        self.assertEqual(d["models"][0]["path"], self.model.name)
        self.assertNotIn(str(self.folder), json.dumps(d))
        self.assertIn("b / a", verify_figures(self.comparison_path).stdout)

    def test_independent(self):
        """bench/compare writes the comparison of two results: all figures in nanoseconds, names as they are."""
        d = self.documents["independent"]
        self.assertEqual((d["method"], d["timestamp"]), ("independent", "2026-11-22T17:00:00Z"))
        self.assertEqual(d["machine"]["load_average"], 2.5)
        self.assertEqual((d["a"]["command"], d["a"]["isa"], d["a"]["threads"]), ("bench_kernels", "avx2", 1))
        self.assertEqual(d["a"]["patterns"], {LONG: "real_time", DOTTED: "cpu_time"})
        for got, us in zip(d["b"]["runs"][DOTTED], (5.1, 5.3)):
            self.assertAlmostEqual(got, 1e3 * us)
        self.assertIn(f"{LONG} b / a 0.81", verify_figures(self.independent_path).stdout)

    def test_perplexity(self):
        """The figures are those of --json; what contradicts the windows is refused, even with a new digest."""
        d = self.documents["perplexity"]
        p = d["perplexity"]
        printed = tern_json("perplexity", "-m", self.model, "-f", self.folder / "text.txt", "--ctx", 64,
                            "--stride", 24, "--isa", "scalar")
        for key in ("windows", "ctx", "stride", "scored_tokens", "text_tokens", "text_sha256", "nll", "low", "high"):
            self.assertEqual(p[key], printed[key], key)
        self.assertEqual((p["value"], p["text"]), (printed["perplexity"], "text.txt"))
        self.assertEqual(len(p["window_nll"]), p["windows"])
        for key, value, text in (
                ("value", p["value"] + 1e-4, "e^nll"), ("nll", p["nll"] + 1e-4, "the mean of"),
                ("low", p["high"], "1.96"), ("high", p["low"], "1.96"), ("error", 2 * p["error"], "value * nll_error"),
                ("windows", p["windows"] - 1, "as many means"), ("scored_tokens", 1, "scored tokens of"),
                ("window_nll", p["window_nll"][1:], "as many means"), ("stride", 65, "must be 1 to 64"),
                ("text_tokens", 80, "are not in 80 tokens"), ("rss_mib", 0, "more than 0")):
            self.assert_refused(tools.put(d, ("perplexity", key), value), text)

    def test_not_by_tern_verify(self):
        """tern verify says in one line what checks these documents, whatever is asked."""
        for path in (self.benchmark_path, self.comparison_path, self.folder / "perplexity.json"):
            for options in ([], ["--replay"]):
                self.assert_one_line_error(tern("verify", path, *options), contains=["lab/verify-figures FILE"])
        told = json.loads(tern("verify", self.benchmark_path, "--json").stdout)
        self.assertEqual((told["kind"], told["valid"]), (None, False))

    def test_signed(self):
        """A document that tern signs is good by that key and by no other."""
        mine, other, path = (self.folder / name for name in ("mine", "other", "signed.json"))
        if tern("keygen", mine).returncode or tern("keygen", other).returncode:
            self.skipTest("built without libsodium")
        tern_text("bench", "-m", self.model, "-p", 1, "-n", 1, "--repeat", 1, "--record", path, "--sign-key", mine)
        self.assertIn("good, by the key in", verify_figures(path, "--public-key", f"{mine}.pub").stdout)
        done = verify_figures(path, "--public-key", f"{other}.pub")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("is not the key in", done.stderr)

    def test_cannot_be_written(self):
        bench = ["bench", "-m", self.model, "-p", 1, "-n", 1, "--repeat", 1]
        result = tern(*bench, "--record", self.folder / "no" / "b.json")
        self.assertEqual((result.returncode, result.stdout), (1, b""))


class Rules(Documents):
    def test_every_value(self):
        """The digest notices everything that is changed or left out."""
        for kind in {*self.kinds(), "independent"} - {"receipt"}:
            d = self.documents[kind]
            changed = {}
            for path in tools.leaves(d):
                changed[f"set {tools.dotted(path)}"] = tools.put(d, path, tools.other(tools.get(d, path)))
            for path in tools.members(d):
                if path != ("$schema",):
                    changed[f"drop {tools.dotted(path)}"] = tools.drop(d, path)
            changed = every(7, changed)
            self.assertEqual(self.refused(changed), set(changed))

    def unnoticed(self, kind):
        """Returns the fields that can be changed with a new digest."""
        d = self.documents[kind]
        changed = {}
        for path in tools.leaves(d):
            if path[0] != "digest":
                for i, value in enumerate(tools.others(d, path)):
                    changed[tools.dotted(path), i] = tools.seal(tools.put(d, path, value))
        passed = set(changed) - self.refused(changed)
        return {re.sub(r"\[\d+\]", "[]", path) for path, _ in passed}

    def test_figures_follow_from_samples(self):
        """Digests are made anew here: a median, spread, ratio or sum that its samples do not have still fails."""
        passed = self.unnoticed("benchmark")
        figures = {name for name in passed if re.match(r"benchmark\.(?!.*rounds)", name)}
        measured = r"peak_isa|peak_unit|rss_mib|threads|depth|prompt_tokens|generated_tokens|tokens|bytes|gweights"
        loose = rf"benchmark\.(.*\.)?({measured}|zero_groups\.\d+|fetch\.\w+|touch\.\w+)$|.*\.stages\[\]\.stage$"
        self.assertEqual({name for name in figures if not re.match(loose, name)}, set())
        for kind in ("comparison", "independent"):
            passed = self.unnoticed(kind)
            self.assertEqual({name for name in passed if name.startswith(("ratios", "level", "method"))}, set())
            self.assertEqual({name for name in passed if "medians" in name or "spread" in name}, set())
            self.assertFalse({name for name in passed if ".runs." in name})

    def test_by_name(self):
        d = self.documents["benchmark"]
        cases = {
            "decode_tps": "the median of its rounds",
            "decode_spread_percent": "(largest - smallest) / median",
            "bandwidth_gbs": "bytes of a token * decode_tps",
            "coverage": "model_info.file_bytes",
            "decode_gweights": "weights * decode_tps",
            "operations_per_byte": "2 * weights / bytes_per_token",
            "kv_bytes": "cache_bytes of a position",
            "first_token_with_load_ms": "load_ms and the first",
            "read_low_gbs": "the smallest of its rounds",
        }
        for key, text in cases.items():
            value = tools.other(d["benchmark"][key])
            self.assert_refused(tools.put(d, ("benchmark", key), value), text)
        samples = d["benchmark"]["rounds"]["decode_tps"]
        short = tools.put(d, ("benchmark", "rounds", "decode_tps"), samples[1:])
        self.assert_refused(short, "benchmark.rounds.decode_tps: 2 values, must be 3")
        batch = ("benchmark", "batches", 1, "pick_ratio")
        self.assert_refused(tools.put(d, batch, 9), "over those of one token")
        sequences = ("benchmark", "sequences", 1)
        for key, text in (("tps", "the median of its rounds"), ("each_tps", "tps / n"),
                          ("bytes_per_token", "bytes_per_token / n")):
            path = (*sequences, key)
            self.assert_refused(tools.put(d, path, tools.other(tools.get(d, path))), text)
        samples = tools.get(d, (*sequences, "rounds", "tps"))
        self.assert_refused(tools.put(d, (*sequences, "rounds", "tps"), samples[1:]), "2 values, must be 3")
        self.assert_refused(tools.put(d, (*sequences, "n"), 0), "is not at least 1")
        self.assert_refused(tools.put(d, ("benchmark", "arrivals", 1, "n"), 2), "n of benchmark.sequences")
        whole = ("benchmark", "stages", "decode", "rounds", "whole_ms", 0)
        self.assert_refused(tools.put(d, whole, 2 * tools.get(d, whole)), "its parts make")
        self.assert_refused(tools.put(d, ("kernels",), ["tern_mock_avx2"]), "is a mock")
        for name in ("tern_gemm_q4_1_3x7_abacus", "tern_knead_q4_1_scalar", "gemm_q4_1_scalar"):
            self.assert_refused(tools.put(d, ("kernels",), [name]), "is not a kernel of tern")
        c = self.documents["comparison"]
        mocked = tools.put(c, ("a", "kernels"), ["tern_mock"])
        self.assert_refused(mocked, "a: names a mock")
        self.assert_refused(tools.put(c, ("a", "compute_path"), "other"), 'must be "real"')
        for key, text in (("low", "Student"), ("high", "Student"), ("ratio", "geometric mean")):
            path = ("ratios", "decode_tps", key)
            self.assert_refused(tools.put(c, path, tools.other(tools.get(c, path))), text)

    def test_same_rules_for_receipts(self):
        """tern verify names the same wrong figures of a benchmark in a receipt as lab/figure_rules.py."""
        path = self.folder / "bench.json"
        tern_text("bench", "-m", self.model, "-p", 8, "-n", 4, "--repeat", 2, "--threads", 1, "--receipt", path)
        receipt = tools.load(path)
        numbers = [key for key, value in receipt["benchmark"].items() if type(value) in (int, float)]
        self.assertGreater(len(numbers), 30)
        for field in numbers:
            changed = tools.put(receipt, ("benchmark", field), tools.other(receipt["benchmark"][field]))
            place = documents.Place(changed, "", [])
            figure_rules.benchmark(place)
            lines = findings(tools.seal(changed), self.folder / "changed.json").splitlines()
            named = [set(re.findall(r"\bbenchmark\.([\w.]+): ", "\n".join(some))) for some in (place.found, lines)]
            self.assertEqual(named[0], named[1] - {"generated_tokens"}, field)  # which a receipt says twice

    def test_independent_by_name(self):
        """Every figure of every name is held to its runs: of a long name and of one with a dot too."""
        d = self.documents["independent"]
        ratios = {"low": "Welch", "high": "Welch", "ratio": "geometric mean", "median": "median of b"}
        for name in (LONG, DOTTED):
            cases = {("ratios", name, key): text for key, text in ratios.items()}
            cases |= {(s, "medians", name): "the median of its runs" for s in "ab"}
            cases |= {(s, "spread_percent", name): "(largest - smallest)" for s in "ab"}
            for path, text in cases.items():
                forged = tools.put(d, path, tools.other(tools.get(d, path)))
                self.assert_refused(forged, text)
                self.assert_refused(forged, name)
            renamed = tools.drop(d, ("a", "medians", name))
            renamed["a"]["medians"]["other"] = d["a"]["medians"][name]
            self.assert_refused(renamed, f"a.medians.{name}: is missing")
            few = tools.put(d, ("b", "runs", name), d["b"]["runs"][name][:1])
            self.assert_refused(few, "two or more runs of each side")
        self.assert_refused(tools.put(d, ("method",), "pairs"), "as many runs of both sides")
        c = self.documents["comparison"]
        self.assert_refused(tools.put(c, ("method",), "independent"), "Welch's interval")

    def test_what_was_not_recorded(self):
        """A field may be null where the document says so, and only in imported documents."""
        d = self.documents["benchmark"]
        lacking = tools.put(d, ("machine",), None)
        self.assert_refused(lacking, "machine: is null")
        lacking["origin"] = {"kind": "imported", "note": "of old", "not_recorded": ["machine"]}
        self.assertEqual(self.refused({"imported": tools.seal(lacking)}), set())
        self.assert_refused(tools.put(lacking, ("origin", "kind"), "measured"), "origin.kind")
        self.assert_refused(tools.put(lacking, ("origin", "note"), ""), "origin.note")
        more = tools.put(lacking, ("origin", "not_recorded"), ["machine", "run.kv"])
        self.assert_refused(more, '"run.kv" is not a field that is null')
        never = tools.put(lacking, ("digest",), None)
        never["origin"]["not_recorded"].append("digest")
        self.assertIn("digest: must be object", findings(never, None))

    def test_another_schema(self):
        d = self.documents["benchmark"]
        self.assert_refused(tools.put(d, ("$schema",), "urn:tern:other:1.0.0"), "does not know")
        self.assert_refused(tools.put(d, ("schema_version",), "1.0.1"), "schema_version: is not 1.0.0")


class Committed(common.TernTest):
    """The documents behind the claims of docs/."""

    def test_all_are_good(self):
        paths = sorted((ROOT / "docs" / "receipts").rglob("*.json"))
        self.assertGreater(len(paths), 15)
        done = verify_figures(*paths)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count(": good\n"), len(paths))
        self.assertEqual(tern("verify", ROOT / "ci" / "inference.json").returncode, 0)

    def test_no_folders(self):
        """They name files, not the folders where these lay."""
        for path in (ROOT / "docs" / "receipts").rglob("*.json"):
            self.assertNotRegex(path.read_text(), r'["\s=](/\w+){2,}', path.name)


class Schemas(Documents):
    def test_up_to_date(self):
        for kind in RECEIPTS:
            name = f"{kind}.schema.json"
            self.assertEqual((ROOT / "docs" / "schemas" / name).read_text(), tern_text("help", name),
                             f"run: build/tern help {name} > docs/schemas/{name}")

    def test_good_documents(self):
        for kind in self.kinds():
            self.assertEqual(schema(kind)["$id"], self.documents[kind]["$schema"])
            self.assertEqual(validate(self.documents[kind], kind), [])
        self.assertEqual(validate(self.documents["independent"], "comparison"), [])
        for path in (ROOT / "docs" / "receipts").rglob("*.json"):
            document = tools.load(path)
            kind = document["$schema"].split(":")[2]
            self.assertEqual(validate(document, kind), [], path.name)

    def test_bad_documents(self):
        """A field that has another type, is missing or is unknown breaks the schema, and the document is refused."""
        for kind in self.kinds():
            d = self.documents[kind]
            changed = {"more": d | {"remarks": ""}}
            for path in tools.leaves(d):
                wrong = 7 if isinstance(tools.get(d, path), (str, list, dict)) else "seven"
                changed[f"set {tools.dotted(path)}"] = tools.put(d, path, wrong)
            for path in tools.members(d):
                changed[f"drop {tools.dotted(path)}"] = tools.drop(d, path)
            bad = {name for name, document in changed.items() if next(
                json_schema.problems(document, schema(kind)), None)}
            kept = {name for name in changed if name not in bad}
            self.assertTrue(all(name.startswith("drop ") for name in kept), kept)
            bad = every(9, {name: changed[name] for name in sorted(bad)})
            self.assertEqual(set(bad) - self.refused(bad), set())


if __name__ == "__main__":
    common.main()
