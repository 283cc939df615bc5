# SPDX-License-Identifier: Apache-2.0
"""Receipts: written by real runs, refused when anything in them is not so, replayed bit for bit."""

import concurrent.futures
import json
import os
import stat
import subprocess
import tempfile
from pathlib import Path

import common
import receipt_tools as tools
from common import comma, prompt, tern, tern_json, tern_text

TOKENS = 18  # generated: two digests at regular places and one behind the last token


def has_signatures():
    with tempfile.TemporaryDirectory() as folder:
        return tern("keygen", Path(folder) / "key").returncode == 0


class WithReceipt(common.TernTest):
    preset = "bitnet-tiny"
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.keep.name)
        cls.model = common.synth(cls.preset, cls.folder)
        cls.path = cls.folder / "receipt.json"
        cls.make(cls.path, *cls.options)
        cls.receipt = tools.load(cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    @classmethod
    def make(cls, path, *options, **kwargs):
        """A run of the model with a receipt; what it printed."""
        ids = comma(prompt(5, 256))
        run = ["run", "-m", cls.model, "--tokens", ids, "-n", TOKENS, "--ignore-eos"]
        return tern_text(*run, "--receipt", path, *options, **kwargs)

    def verify(self, receipt, *options, name=None):
        """Verifies a document: exit status and the lines on standard error."""
        path = self.folder / (name or f"{id(receipt)}.json")
        path.write_text(json.dumps(receipt), encoding="utf-8")
        result = tern("verify", path, *options)
        path.unlink()
        lines = result.stderr.decode().splitlines()
        if result.returncode:
            self.assertEqual(result.stdout, b"")
            self.assertTrue(lines)
        return result.returncode, lines

    def assert_refused(self, receipt, *texts, options=()):
        status, lines = self.verify(receipt, *options)
        self.assertEqual(status, 1)
        for text in texts:
            self.assertTrue(any(text in line for line in lines), f"{text!r} is not in {lines}")

    def refusals(self, documents, *options):
        """Which of {name: document} are refused, several at a time."""

        def one(item):
            return item[0], self.verify(item[1], *options, name=f"{abs(hash(item[0]))}.json")

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = dict(pool.map(one, documents.items()))
        for name, (status, lines) in results.items():
            self.assertIn(status, (0, 1), (name, lines))
        return {name for name, (status, _) in results.items() if status == 1}


class Writing(WithReceipt):
    def test_what_a_receipt_says(self):
        """AC:9. The fields that validators of other projects look for, from a real run."""
        r = self.receipt
        self.assertEqual(r["schema_version"], "1.0.0")
        self.assertEqual(r["compute_path"], "real")
        self.assertEqual(r["backend"], "cpu")
        self.assertRegex(r["timestamp"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        families = {"i2s_gemv", "rope_apply", "attention_real"}
        self.assertTrue(families <= set(r["kernels"]))
        self.assertFalse({"tl1_matmul", "tl2_matmul"} & set(r["kernels"]))
        rows = {row["name"] for row in json.loads(tern_text("kernels", "--json"))}
        self.assertTrue(set(r["kernels"]) - families <= rows)
        self.assertEqual(r["model_info"]["quantization_type"], "I2_S")
        self.assertEqual(r["output"]["tokens"], TOKENS)
        self.assertEqual([p["after"] for p in r["output"]["logits"]], [0, 16, TOKENS])
        results = r["test_results"]
        self.assertEqual(results["failed"], 0)
        self.assertEqual(results["total_tests"], len(results["tests"]))
        for name in ("i2s", "tl1", "tl2"):
            test = results["accuracy_tests"][f"{name}_accuracy"]
            self.assertLess(0, test["mse"])
            self.assertLessEqual(test["mse"], test["tolerance"])
        self.assertTrue(results["determinism_tests"]["identical_sequences"])
        self.assertGreaterEqual(results["determinism_tests"]["runs"], 2)
        self.assertTrue(results["kv_cache_tests"]["prefill_decode_parity"])
        self.assertFalse(r["cross_validation"]["cpp_reference_available"])

    def test_output_is_that_of_the_run(self):
        """The receipt's tokens and logits are those that other commands give."""
        ids = self.receipt["prompt"]["ids"]
        run = ["run", "-m", self.model, "--tokens", comma(ids), "-n", TOKENS, "--ignore-eos"]
        self.assertEqual(tern_json(*run)["tokens"], self.receipt["output"]["ids"])
        for point in self.receipt["output"]["logits"]:
            words = ids + self.receipt["output"]["ids"][: point["after"]]
            line = tern_text("logits", "-m", self.model, "--tokens", comma(words), "--sha256")
            self.assertEqual(line.split()[0], point["sha256"])

    def test_digest(self):
        """The digest by another program."""
        self.assertEqual(tools.digest(self.receipt), self.receipt["digest"]["value"])

    def test_written_otherwise(self):
        """Order, indentation and the way numbers are written are no part of the content."""
        text = json.dumps(self.receipt, sort_keys=True, separators=(",", ":"))
        path = self.folder / "compact.json"
        path.write_text(text.replace('"layers":', '"layers" : '), encoding="utf-8")
        self.assertEqual(tern("verify", path).returncode, 0)

    def test_only_what_ran(self):
        """A prompt of one token runs no kernel for several; other layouts have other families."""
        path = self.folder / "one.json"
        tern_text("run", "-m", self.model, "--tokens", 3, "-n", 2, "--receipt", path)
        kernels = tools.load(path)["kernels"]
        self.assertFalse([name for name in kernels if "gemm" in name])
        for layout, family in (("tl1r16", "tl1_matmul"), ("tl2r16", "tl2_matmul")):
            self.make(path, "--layout", layout)
            kernels = tools.load(path)["kernels"]
            self.assertIn(family, kernels)
            self.assertNotIn("i2s_gemv", kernels)
            self.assertEqual(tern("verify", path).returncode, 0)

    def test_settings_are_recorded(self):
        path = self.folder / "set.json"
        options = ["--temp", 0.8, "--top-k", 20, "--top-p", 0.9, "--seed", 2**64 - 1]
        options += ["--repeat-penalty", 1.1, "--logit-bias", "5=2.5", "--threads", 3]
        self.make(path, *options, "--kv", "q8_0", env={"BITNET_DETERMINISTIC": "1"})
        r = tools.load(path)
        self.assertEqual(r["sampler"]["seed"], str(2**64 - 1))
        self.assertEqual(r["sampler"]["logit_bias"], [{"token": 5, "bias": 2.5}])
        self.assertEqual(r["run"]["kv"], "q8_0")
        self.assertTrue(r["deterministic"])
        self.assertEqual(r["environment"]["BITNET_DETERMINISTIC"], "1")
        self.assertEqual(r["environment"]["RAYON_NUM_THREADS"], "3")
        text = tern_text("verify", path, "--replay", "--isa", "scalar")
        self.assertIn("the same bits on scalar", text)

    def test_cannot_be_written(self):
        """A receipt that cannot be saved is a failure, and leaves nothing."""
        before = set(self.folder.iterdir())
        ids = ["--tokens", "1,2", "-n", 2]
        for path in (self.folder / "no" / "r.json", self.folder):
            result = tern("run", "-m", self.model, *ids, "--receipt", path)
            self.assertEqual(result.returncode, 1)
            self.assertIn(str(path), result.stderr.decode())
        self.assertEqual(set(self.folder.iterdir()), before)

    def test_bench(self):
        path = self.folder / "bench.json"
        bench = ["bench", "-m", self.model, "-p", 20, "-n", 6, "--repeat", 2]
        figures = tern_json(*bench, "--receipt", path)
        r = tools.load(path)
        self.assertEqual(r["benchmark"]["decode_tps"], figures["decode_tps"])
        self.assertEqual(r["prompt"]["tokens"], 20)
        self.assertEqual(tern("verify", path, "--replay", "--layout", "t5r16").returncode, 0)
        for field in ("bandwidth_gbs", "bandwidth_fraction", "generated_tokens"):
            changed = tools.put(r, ("benchmark", field), tools.other(r["benchmark"][field]))
            self.assert_refused(tools.seal(changed), f"benchmark.{field}")
        self.assert_refused(tools.seal(tools.drop(r, ("benchmark",))), "benchmark: is missing")


class OtherModels(common.TernTest):
    def test_formats(self):
        """Receipts of models in every format pass, and replay elsewhere."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "r.json"
            for preset in common.FLOATS + common.QUANTIZED:
                with self.subTest(preset):
                    model = common.synth(preset, folder)
                    run = ["run", "-m", model, "--tokens", "9,8,7", "-n", 4, "--receipt", path]
                    tern_text(*run)
                    self.assertEqual(tern("verify", path, "--replay", "--isa", "scalar").returncode, 0)


class Tampering(WithReceipt):
    # What nothing in the receipt and no replay contradicts when the digest is made anew: only a
    # signature holds these.
    FREE = {
        "timestamp",
        "model_info.files[0].path",
        "machine.cores",
        "run.disabled",
        "run.chat",
        "run.batch",
        "output.ignore_end",
        "output.stop_tokens",
        "output.stop_texts",
        "model_hash_seconds",
        "test_results.seconds",
        "performance_baseline.logits_hash_ms",
        "performance_baseline.memory_usage_mb",
    }
    # Times that must fit to the others, and may by chance.
    TIMES = {f"performance_baseline.{name}_ms" for name in ("p50", "p95", "first_token_latency")}

    def test_every_value(self):
        """Whatever is changed, the digest notices, and the line says so."""
        r = self.receipt
        changed = {}
        for path in tools.leaves(r):
            changed[f"set {tools.dotted(path)}"] = tools.put(r, path, tools.other(tools.get(r, path)))
        for path in tools.members(r):
            changed[f"drop {tools.dotted(path)}"] = tools.drop(r, path)
        self.assertGreater(len(changed), 350)
        self.assertEqual(set(changed), self.refusals(changed))

    def test_types(self):
        """A field of another type is refused even with a digest that fits."""
        r = self.receipt
        changed = {}
        for path in tools.leaves(r):
            if path[0] in ("digest", "prompt") or path[:2] == ("output", "ids"):
                continue
            wrong = 7 if isinstance(tools.get(r, path), str) else "seven"
            changed[tools.dotted(path)] = tools.seal(tools.put(r, path, wrong))
        for path in (p for p in tools.members(r) if p[0] != "digest" and p != ("$schema",)):
            if path[-1] != "text_sha256":
                changed[f"drop {tools.dotted(path)}"] = tools.seal(tools.drop(r, path))
        changed["another field"] = tools.seal(r | {"remarks": ""})
        self.assertEqual(set(changed), self.refusals(changed))

    def test_sealed_anew(self):
        """With a digest that fits, rules and replay find every change but the ones above."""
        r = self.receipt
        changed = {}
        for path in tools.leaves(r):
            value = tools.get(r, path)
            change = "2020-02-29T00:00:00.5Z" if path == ("timestamp",) else tools.other(value)
            if path[-1] in ("stop_tokens", "stop_texts"):
                change = [1] if path[-1] == "stop_tokens" else ["x"]
            if path[0] != "digest":
                changed[tools.dotted(path)] = tools.seal(tools.put(r, path, change))
        refused = self.refusals(changed, "--replay", "--threads", 1)
        self.assertEqual(set(changed) - refused - self.TIMES, self.FREE)


if __name__ == "__main__":
    common.main()
