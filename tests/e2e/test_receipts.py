# SPDX-License-Identifier: Apache-2.0
"""Receipts are written by real runs, refused when anything in them is untrue, and replayed bit for bit."""

import json
import os
import re
import tempfile
from pathlib import Path

import common
import receipt_tools as tools
import weights
from common import comma, tern, tern_json, tern_text
from receipt_case import TOKENS, WithReceipt


class Writing(WithReceipt):
    def test_what_a_receipt_says(self):
        """AC:4, AC:9. The fields that validators of other projects look for, from a real run."""
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
        """Order, indentation and the way numbers are written are not part of the content."""
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

    def test_memory_is_that_of_the_run(self):
        """The receipt's figure is in MB, the run's own is in MiB; the receipt's own checks may have taken more memory
        later."""
        path = self.folder / "memory.json"
        run = tern_json("run", "-m", self.model, "--tokens", "1,2", "-n", 2, "--receipt", path)
        self.assertTrue(2 < run["rss_mib"] < 4000, run["rss_mib"])
        megabytes = tools.load(path)["performance_baseline"]["memory_usage_mb"]
        self.assertTrue(0.2 < megabytes / (1.048576 * run["rss_mib"]) < 2, (megabytes, run["rss_mib"]))

    def test_tokenizer_beside_the_model(self):
        """A tokenizer from another file belongs to the run."""
        path = self.folder / "beside.json"
        tokenizer = self.folder / "tokenizer.json"
        tokenizer.write_text(json.dumps({f"t{i}": i for i in range(256)}), encoding="utf-8")
        self.make(path, "--tokenizer", tokenizer)
        self.assertEqual(tern("verify", path, "--replay").returncode, 0)
        tokenizer.write_text(json.dumps({f"u{i}": i for i in range(256)}), encoding="utf-8")
        result = tern("verify", path, "--replay")
        self.assertEqual(result.returncode, 1)
        self.assertIn("model_info.tokenizer.sha256", result.stderr.decode())

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
        follow = ("bandwidth_gbs", "bandwidth_fraction", "generated_tokens", "mb_per_token",
                  "bytes_touched", "coverage", "prefill_peak_fraction", "decode_peak_fraction")
        found = {field: field for field in follow}
        found |= {"attention_bytes": "bytes_per_token", "cache_bytes": "bandwidth_gbs"}
        for field, named in found.items():
            changed = tools.put(r, ("benchmark", field), tools.other(r["benchmark"][field]))
            self.assert_refused(tools.seal(changed), f"benchmark.{named}")
        outside = tools.put(r, ("benchmark", "read_low_gbs"), 2 * r["benchmark"]["read_high_gbs"])
        self.assert_refused(tools.seal(outside), "benchmark.read_low_gbs")
        self.assert_refused(tools.seal(tools.drop(r, ("benchmark",))), "benchmark: is missing")


class OtherModels(common.TernTest):
    def test_formats(self):
        """Receipts of models in every format pass, and replay elsewhere."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "r.json"
            for preset in common.FLOATS + common.quantized():
                with self.subTest(preset):
                    model = common.synth(preset, folder)
                    run = ["run", "-m", model, "--tokens", "9,8,7", "-n", 4, "--receipt", path, "--force"]
                    tern_text(*run)
                    self.assertEqual(tern("verify", path, "--replay", "--isa", "scalar").returncode, 0)

    def test_delta_layers(self):
        """A receipt says how many layers keep states, and of an expert for all tokens: else it has too many products."""
        of_nets = ("qwen35-tiny", "delta_layers", 2), ("qwen3next-tiny", "delta_matrices", 4)
        for preset, field, n in (*of_nets, ("qwen2moe-tiny", "shared_experts", 1)):
            with self.subTest(preset), tempfile.TemporaryDirectory() as folder:
                self.more_products(common.synth(preset, folder), Path(folder) / "r.json", field, n)

    def more_products(self, model, path, field, number):
        tern_text("run", "-m", model, "--tokens", "9,8,7", "-n", 4, "--receipt", path)
        self.assertEqual(tern("verify", path, "--replay", "--isa", "scalar").returncode, 0)
        self.assertEqual((receipt := tools.load(path))["model_info"][field], number)
        for other in (0, number - 1, number + 1):
            path.write_text(json.dumps(tools.change(receipt, f"model_info.{field}", other)), encoding="utf-8")
            self.assertEqual(tern("verify", path).returncode, 1, other)


class Tampering(WithReceipt):
    def test_every_value(self):
        """The digest notices every change, and the line says so."""
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
            if path[-1] not in ("text_sha256", "choice", "affinity", "numa", "nodes_online",
                                "pre_tokenizer_from", "commit", "numerics", "inputs", "repetitions"):
                changed[f"drop {tools.dotted(path)}"] = tools.seal(tools.drop(r, path))
        changed["another field"] = tools.seal(r | {"remarks": ""})
        self.assertEqual(set(changed), self.refusals(changed))


class Unprotected(WithReceipt):
    """Documents are changed and get a new digest: the changes that rules and replay do not find are those that the page
    lists."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        small = ["-m", common.small_model()]
        text = [*small, "-p", "Once upon a time", "-n", 4, "--temp", 0.5]
        bench = ["bench", "-m", cls.model, "-p", 20, "-n", 6, "--repeat", 2]
        runs = {"text": ["run", *text], "chat": ["run", *text, "--chat"], "bench": bench,
                "ended": ["run", *small, "-p", "Q: What is 2+2? A:", "-n", 9]}
        cls.receipts = {"tokens": cls.receipt}
        for name, words in runs.items():
            path = cls.folder / f"{name}.json"
            tern_text(*words, "--receipt", path)
            cls.receipts[name] = tools.load(path)

    def unnoticed(self, changed, model):
        """Names of changes that pass."""
        return set(changed) - self.refusals(changed, "--replay", "--threads", 1, "-m", model)

    def test_list_is_complete(self):
        listed = tools.unprotected("runs")
        self.assertGreater(len(listed), 20)
        self.assertEqual(self.receipts["ended"]["output"]["stop"], "end")
        passed = set()
        for name, receipt in self.receipts.items():
            model = self.model if name in ("tokens", "bench") else common.small_model()
            parts = {"chat": ("run", "prompt"), "ended": ("output",)}.get(name, ())
            passed |= {path for path, _ in self.unnoticed(tools.forgeries(receipt, *parts), model)}
        if self.receipt["machine"]["instruction_sets"] == ["scalar"]:  # which every architecture has
            listed.add("machine.architecture")
            listed -= {"benchmark.peak_isa", "kernels[]", "test_results.accuracy_tests.*.gemv", "test_results.accuracy_tests.*.gemm"}
        self.assertEqual(passed, listed)

    def test_lists_and_optional_fields(self):
        """Names are unique in every list, and only the fields that the table calls optional may be left out."""
        r = self.receipts["text"]
        changed = {}
        for path in tools.members(r):
            value = tools.get(r, path)
            if path[0] in tools.KEPT:
                continue
            changed[f"drop {tools.dotted(path)}"] = tools.drop(r, path)
            if isinstance(value, list) and value:
                changed[f"twice {tools.dotted(path)}"] = tools.put(r, path, [*value, value[0]])
        optional = ("$schema", "model_info.pre_tokenizer_from", "run.choice", "run.affinity",
                    "run.numa", "run.nodes_online", "prompt.text_from_ids", "versions.commit",
                    "test_results.determinism_tests.repetitions",
                    *(f"test_results.accuracy_tests.{name}.inputs"
                      for name in r["test_results"]["accuracy_tests"]))
        passed = self.unnoticed({name: tools.seal(content) for name, content in changed.items()}, common.small_model())
        self.assertEqual(passed, {f"drop {name}" for name in optional})


class Rules(WithReceipt):
    """Each rule by name, on documents whose digest fits."""

    def assert_rule(self, path, value, *texts):
        self.assert_refused(tools.change(self.receipt, path, value), *(texts or (f"{path}:",)))

    def test_header(self):
        for version in ("1.0", "1.0.1", "2.0.0", ""):
            self.assert_rule("schema_version", version, 'schema_version: is "')
        self.assert_refused(tools.drop(self.receipt, ("schema_version",)), "this is not a receipt")
        for path in ("mock", "Real", "emulated"):
            self.assert_rule("compute_path", path, f'compute_path: is "{path}", must be "real"')
        for backend in ("cuda", "metal"):
            self.assert_rule("backend", backend)
        self.assert_rule("backend", "tpu", "one of: cpu cuda metal")
        for time in ("yesterday", "2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01",
                     "2026-01-01T00:00:00.25"):
            self.assert_rule("timestamp", time)
        self.assertEqual(self.verify(tools.change(self.receipt, "timestamp", "2028-02-29T23:59:60.25Z"))[0], 0)

    def test_kernels(self):
        kernels = self.receipt["kernels"]
        for name in ("i2s_mock_gemv", "MOCK", "tern_MoCk_avx2"):
            self.assert_rule("kernels", [*kernels, name], f'"{name}" is a mock')
        for name in ("tern_gemv_i2_s_16x1_sse9", "dequant_i2s", "fp32_matmul"):
            self.assert_rule("kernels", [*kernels, name], f'"{name}" is not a kernel of tern')
        self.assert_rule("kernels", [], "kernels: 0 names")
        self.assert_rule("kernels", [*kernels, kernels[0]], "is there twice")
        self.assert_rule("kernels", [*kernels, "tl1_matmul"], '"tl1_matmul" is there, but no row')
        self.assert_rule("kernels", [*kernels, "x" * 129], "text of 1 to 128 bytes")
        self.assert_rule("kernels", [*kernels, ""], "text of 1 to 128 bytes")
        foreign = "neon" if self.receipt["machine"]["architecture"] == "x86_64" else "avx2"
        name = f"tern_add_{foreign}"
        self.assert_rule("kernels", [*kernels, name], f"needs {foreign}")
        for family in ("i2s_gemv", "rope_apply", "attention_real"):
            rest = [k for k in kernels if k != family]
            self.assert_rule("kernels", rest, f'"{family}" is missing')
        for family, op in (("rope_apply", "_rope_"), ("attention_real", "_attend_")):
            rest = [k for k in kernels if k != family and op not in k]
            self.assert_rule("kernels", rest, f'"{family}" is missing, which every run needs')
        self.assert_rule("run.choice", "mixed", "run.choice:", "table tuned asked")
        mixed = tools.put(self.receipt, ("run", "layout"), "mixed")
        self.assert_refused(tools.seal(mixed), "of one layout of ternary weights", "mixes no layouts")
        mixed["run"]["choice"] = "tuned"
        mixed["kernels"] = [*kernels, "tern_gemv_t5r16_4x1_scalar"]
        self.assertEqual(self.verify(tools.seal(mixed))[0], 0)
        for op in ("embed", "rmsnorm", "store", "attend", "add", "gemv", "gemm", "gate"):
            rest = [k for k in kernels if f"_{op}_" not in k]
            self.assertLess(len(rest), len(kernels))
            self.assert_rule("kernels", rest, op)

    def test_machine(self):
        sets = self.receipt["machine"]["instruction_sets"]
        self.assert_rule("machine.instruction_sets", [*sets, "avx1024"], 'knows no "avx1024"')
        self.assert_rule("run.isa", "avx1024")
        other = "aarch64" if self.receipt["machine"]["architecture"] == "x86_64" else "x86_64"
        if len(sets) > 1:  # scalar code says nothing about the processor
            self.assert_rule("machine.architecture", other)

    def test_nodes(self):
        """Nodes are a list as the system prints it, and it includes the node that memory was asked from."""
        for numa in ("nodes", "node:", "node:x", "node:4294967296"):
            self.assert_rule("run.numa", numa, "run.numa: is")
        for online in ("1,0", "0-", "0,", "a", "3-1", "0,0"):
            self.assert_rule("run.nodes_online", online, "is not a list of nodes")
        r = tools.put(self.receipt, ("run", "nodes_online"), "0-1,4")
        for node, status in ((0, 0), (1, 0), (4, 0), (3, 1), (5, 1)):
            there = tools.change(r, "run.numa", f"node:{node}")
            self.assertEqual(self.verify(there)[0], status, node)

    def test_what_ran_on_what(self):
        """Each instruction set stands once, the last one is in use; rows have the layout; the text has no stop token;
        names are those of files."""
        sets = self.receipt["machine"]["instruction_sets"]
        self.assert_rule("machine.instruction_sets", [*sets, sets[0]], "is there twice")
        if len(sets) > 1:
            self.assert_rule("run.isa", sets[0], "is not the last of machine.instruction_sets")
        self.assert_rule("run.layout", "t5r16", "run.layout: is t5r16, but")
        self.assert_rule("output.stop_tokens", [self.receipt["output"]["ids"][3]], "is one of output.stop_tokens")
        self.assert_rule("run.chat", True, "run.chat: is true, but the prompt is tokens")

    def test_tests(self):
        r = self.receipt
        results = r["test_results"]
        self.assert_rule("test_results.failed", 1, "test_results.failed: is 1, must be 0")
        agreed = tools.put(r, ("test_results", "failed"), 1)
        agreed["test_results"]["passed"] -= 1
        agreed["test_results"]["tests"][0]["result"] = "failed"
        self.assert_refused(tools.seal(agreed), "test_results.failed: is 1, must be 0")
        tests = [dict(results["tests"][0], result="failed"), *results["tests"][1:]]
        self.assert_rule("test_results.tests", tests, "i2s_accuracy has not passed")
        self.assert_rule("test_results.tests", results["tests"][:-1], "has not passed")
        for name in results["accuracy_tests"]:
            path = f"test_results.accuracy_tests.{name}"
            self.assert_rule(f"{path}.mse", 0.1, f"{path}: mse 0.1 of at most")
            self.assert_rule(f"{path}.inputs", "others", f"{path}.inputs: must be")
            self.assert_rule(f"{path}.tolerance", 1, f"{path}.tolerance: is 1, must be")
            self.assert_rule(f"{path}.passed", False, "passed: false")
            self.assert_rule(f"{path}.gemv", "gemv_f32", "is not a kernel of tern")
            self.assert_refused(tools.seal(tools.drop(r, tuple(path.split(".")))), f"{name}: is missing")
        more = dict(results["accuracy_tests"], q4_1_accuracy=results["accuracy_tests"]["i2s_accuracy"])
        self.assert_rule("test_results.accuracy_tests", more, "the model has no such weights")
        at = "test_results.determinism_tests"
        self.assert_rule(f"{at}.identical_sequences", False)
        self.assert_rule(f"{at}.runs", 1)
        self.assert_rule(f"{at}.tokens_per_run", 0)
        self.assert_rule("test_results.kv_cache_tests.prefill_decode_parity", False)

    def test_contradictions(self):
        r = self.receipt
        speed = r["performance_baseline"]
        base = "performance_baseline"
        self.assert_rule(f"{base}.tokens_per_second", speed["tokens_per_second"] * 1.001)
        self.assert_rule(f"{base}.total_time_ms", speed["total_time_ms"] * 0.9)
        self.assert_rule(f"{base}.tokens_generated", TOKENS + 1)
        self.assert_rule(f"{base}.cache_efficiency.kv_cache_hit_rate", 1)
        self.assert_rule(f"{base}.cache_efficiency.tensor_cache_misses", 1)
        reused = speed["cache_efficiency"]["positions_reused"]
        self.assert_rule(f"{base}.cache_efficiency.positions_reused", reused + 1)
        self.assert_rule(f"{base}.p95_ms", 2 * speed["decode_time_ms"])
        self.assert_rule("environment.BITNET_SEED", "43")
        self.assert_rule("environment.COMPILER", "another compiler")
        self.assert_rule("run.dequantized_rows", 3)
        self.assert_rule("output.ids", r["output"]["ids"][:-1], "output.tokens")
        self.assert_rule("output.ids", [*r["output"]["ids"][:-1], 10**6], "the vocabulary has")
        self.assert_rule("prompt.ids", [], "prompt.tokens")
        self.assert_rule("output.logits", r["output"]["logits"][1:], "has 2 digests")
        self.assert_rule("output.stop", "end", "which output.ignore_end forbids")
        self.assert_rule("output.stop", "stop", "there was nothing to stop at")
        self.assert_rule("output.stop", "context", "run.context")
        self.assert_rule("output.max_tokens", 3)
        self.assert_rule("run.context", 10)
        self.assert_rule("sampler.seed", "43", "sampler.sha256")
        self.assert_rule("deterministic", True)
        self.assert_rule("environment.RAYON_NUM_THREADS", "64")
        self.assert_rule("cross_validation.cpp_reference_available", True, "cross_validation")
        self.assert_rule("model_info.num_key_value_heads", 3)
        self.assert_rule("model_info.quantization_type", "Q4_0")
        self.assert_rule("model_info.layers", 0)

    def test_no_receipts(self):
        """Files that are not receipts are refused, each in one line."""
        path = self.folder / "other.json"
        cases = {
            b"": "line",
            b"[]": "not a JSON object",
            b"{": "line 1",
            b'{"a":1,"a":2}': "occurs twice",
            b'{"tokens":[1]}': "this is not a receipt",
            b"\xff\xfe": "line 1",
            b"[" * 100000: "line 1",
        }
        for content, text in cases.items():
            path.write_bytes(content)
            self.assert_one_line_error(tern("verify", path), contains=[text, str(path)])
        self.assert_one_line_error(tern("verify", self.folder), contains=[str(self.folder)])
        self.assert_one_line_error(tern("verify", self.folder / "none"), contains=["none"])
        self.assertEqual(tern("verify").returncode, 2)

    def test_control_characters(self):
        """A text in a document cannot break a line."""
        bad = tools.change(self.receipt, "sampler.seed", "4\n2\x1b[31m")
        status, lines = self.verify(bad)
        self.assertEqual(status, 1)
        self.assertTrue(all("receipt" in line or ".json: " in line for line in lines), lines)
        self.assertTrue(any("4?2?[31m" in line for line in lines), lines)

    def test_json(self):
        answer = tern_json("verify", self.path)
        self.assertEqual((answer["valid"], answer["violations"]), (True, []))
        path = self.folder / "bad.json"
        bad = tools.change(tools.change(self.receipt, "compute_path", "mock"), "backend", "cuda")
        path.write_text(json.dumps(bad), encoding="utf-8")
        result = tern("verify", path, "--json")
        self.assertEqual(result.returncode, 1)
        answer = json.loads(result.stdout)
        self.assertFalse(answer["valid"])
        self.assertEqual(len(answer["violations"]), 2)


class Replay(WithReceipt):
    options = ("--temp", 0.9, "--top-k", 50, "--seed", 11, "--repeat-penalty", 1.15)

    def with_ids(self, at, token):
        """The document claims another token, with digests that fit."""
        ids = list(self.receipt["output"]["ids"])
        ids[at] = token
        changed = tools.put(self.receipt, ("output", "ids"), ids)
        changed["output"]["ids_sha256"] = tools.hash_ids(ids)
        return tools.seal(changed)

    def test_everywhere(self):
        """The replay agrees on every instruction set, layout, thread count and batch."""
        for isa in common.runnable_isas():
            for layout in weights.TERNARY_LAYOUTS:
                options = ["--isa", isa, "--layout", layout, "--threads", 1 + len(layout) % 3]
                text = tern_text("verify", self.path, "--replay", *options, "--batch", 2)
                self.assertIn(f"the same bits on {isa}, {layout}", text)

    def test_first_difference(self):
        for at in (0, 7, TOKENS - 1):
            token = self.receipt["output"]["ids"][at]
            other = (token + 1) % 256
            line = f"output.ids[{at}]: recorded {other}, this run picks {token}"
            self.assert_refused(self.with_ids(at, other), line, options=["--replay"])

    def test_logits(self):
        for i, after in enumerate((0, 16, TOKENS)):
            changed = tools.put(self.receipt, ("output", "logits", i, "sha256"), "0" * 64)
            line = f"the logits after {after} generated tokens"
            self.assert_refused(tools.seal(changed), line, options=["--replay"])

    def test_where_it_stopped(self):
        """The document claims an end or a stop that the model did not reach."""
        early = tools.put(self.receipt, ("output", "stop"), "end")
        early["output"]["ignore_end"] = False
        line = 'output.stop: recorded "end", this run ends by'
        self.assertEqual(self.verify(tools.seal(early))[0], 0)
        self.assert_refused(tools.seal(early), line, options=["--replay"])
        path = self.folder / "stopped.json"
        ninth = self.receipt["output"]["ids"][9]
        self.make(path, *self.options, "--stop-token", ninth)
        stopped = tools.load(path)
        self.assertEqual(stopped["output"]["stop"], "stop")
        self.assertEqual(self.verify(stopped, "--replay")[0], 0)
        stopped["output"]["stop_tokens"] = [255 - ninth]
        line = f"output.ids: {len(stopped['output']['ids'])} were recorded, this run picks {ninth} after them"
        self.assert_refused(tools.seal(stopped), line, options=["--replay"])

    def test_settings_matter(self):
        """Another seed or temperature would have picked other tokens."""
        for key, value in (("seed", "12"), ("temperature", 5), ("repetition_penalty", 3)):
            changed = tools.put(self.receipt, ("sampler", key), value)
            sampler = {k: v for k, v in changed["sampler"].items() if k != "sha256"}
            digest = tools.hashlib.sha256(tools.canonical(sampler)).hexdigest()
            changed["sampler"]["sha256"] = digest
            changed["environment"]["BITNET_SEED"] = changed["sampler"]["seed"]
            changed = tools.seal(changed)
            self.assertEqual(self.verify(changed)[0], 0)
            self.assert_refused(changed, "output.ids[", options=["--replay"])

    def test_another_arithmetic(self):
        """Receipts of another version of the numerics are refused by name; earlier ones do not say theirs."""
        now = self.receipt["versions"]["numerics"]
        other = tools.put(self.receipt, ("versions", "numerics"), now + 1)
        self.assertEqual(self.verify(tools.seal(other))[0], 0)
        line = f"versions.numerics: is {now + 1}, this tern computes by version {now} of its numerics"
        self.assert_refused(tools.seal(other), line, options=["--replay"])
        first = tools.seal(tools.drop(self.receipt, ("versions", "numerics")))
        self.assertEqual(self.verify(first)[0], 0)
        self.assert_refused(first, "versions.numerics: is not there, which means 1", options=["--replay"])

    def test_another_pre_tokenizer(self):
        now = self.receipt["model_info"]["pre_tokenizer"]
        other = tools.put(self.receipt, ("model_info", "pre_tokenizer"), "other")
        line = f'model_info.pre_tokenizer: is "other", the model\'s is "{now}"'
        self.assert_refused(tools.seal(other), line, options=["--replay"])

    def test_another_model(self):
        self.assert_refused(tools.change(self.receipt, "model_info.sha256", "0" * 64), "model_info.sha256")
        other = common.synth(self.preset, self.folder, seed=2)
        self.assert_refused(self.receipt, "is another model", options=["--replay", "-m", other])
        moved = self.folder / "moved.gguf"
        os.link(self.model, moved)
        away = tools.put(self.receipt, ("model_info", "model_path"), "gone.gguf")
        self.assert_refused(tools.seal(away), '"gone.gguf" is not one of model_info.files')
        away["model_info"]["files"][0]["path"] = "gone.gguf"
        away = tools.seal(away)
        self.assert_refused(away, "gone.gguf is neither beside it nor here", options=["--replay"])
        self.assertEqual(self.verify(away, "--replay", "-m", moved)[0], 0)

    def test_where_the_model_lies(self):
        """A receipt names files, not folders; its model is found beside it, in a folder, or as given."""
        self.assertNotIn(str(self.folder), json.dumps(self.receipt))
        self.assertEqual(self.receipt["model_info"]["model_path"], self.model.name)
        self.assertEqual(self.receipt["model_info"]["files"][0]["path"], self.model.name)
        self.assertEqual(tern("verify", self.path, "--replay").returncode, 0)
        with tempfile.TemporaryDirectory() as other:
            alone = Path(other) / "alone.json"
            alone.write_text(json.dumps(self.receipt), encoding="utf-8")
            self.assert_one_line_error(tern("verify", alone, "--replay"), contains=["neither beside"])
            given = tern("verify", alone, "--replay", "--model-dir", self.folder)
            self.assertEqual(given.returncode, 0, given.stderr)
            old = tools.put(self.receipt, ("model_info", "model_path"), str(self.model))
            old["model_info"]["files"][0]["path"] = str(self.model)  # as earlier versions did
            alone.write_text(json.dumps(tools.seal(old)), encoding="utf-8")
            self.assertEqual(tern("verify", alone).returncode, 0)
            self.assert_one_line_error(tern("verify", alone, "--replay"), contains=["neither beside"])
            os.link(self.model, Path(other) / self.model.name)
            self.assertEqual(tern("verify", alone, "--replay").returncode, 0)

    def test_what_a_receipt_cannot_open(self):
        """The author of a receipt cannot choose which files are opened: not a folder of his, not a pipe, not a
        device."""
        with tempfile.TemporaryDirectory() as other, tempfile.TemporaryDirectory() as third:
            alone, secret = Path(other) / "alone.json", Path(third) / "secret.json"
            secret.write_text(json.dumps({f"t{i}": i for i in range(256)}), encoding="utf-8")
            os.mkfifo(Path(other) / "pipe")
            places = (secret, f"../{third}/secret.json", self.model, "/dev/zero", "pipe", Path(other) / "pipe", "..", "/", "")
            for path in map(str, places):
                model = tools.put(self.receipt, ("model_info", "model_path"), path)
                model["model_info"]["files"][0]["path"] = path
                tokenizer = tools.put(self.receipt, ("model_info", "tokenizer"), {"path": path, "sha256": "0" * 64})
                for forged, options in ((model, ()), (tokenizer, ("-m", self.model))):
                    alone.write_text(json.dumps(tools.seal(forged)), encoding="utf-8")
                    with self.subTest(path=path, options=options):
                        result = tern("verify", alone, "--replay", *options)
                        self.assert_one_line_error(result)
                        if path == str(secret):
                            self.assertIn(b"neither beside" if forged is model else b"secret.json: No such", result.stderr)

    def test_kernels_of_the_replay(self):
        """Kernels are compared by their work: a receipt fails with one that did not run, and with one left out."""
        kernels = self.receipt["kernels"]
        rows = json.loads(tern_text("kernels", "--json"))
        names = {row["op"]: row["name"] for row in rows if row["isa"] in self.receipt["machine"]["instruction_sets"]}
        for op in ("softmax", "layernorm", "hadamard"):
            changed = tools.put(self.receipt, ("kernels",), [*kernels, names[op]])
            self.assert_refused(tools.seal(changed), f"is listed, this run runs no {op}", options=["--replay"])
        for family in ("_embed_", "_gate_"):
            left = [name for name in kernels if family not in name]
            self.assert_refused(tools.change(self.receipt, "kernels", left), "without which nothing runs")

    def test_how_it_was_repeated(self):
        at = "test_results.determinism_tests.repetitions"
        first, second = self.receipt["test_results"]["determinism_tests"]["repetitions"]
        self.assertNotEqual(first["threads"], second["threads"])
        self.assertNotEqual(min(first["batch"], 5), min(second["batch"], 5))
        for i, key, value in ((0, "threads", first["threads"] + 1), (1, "threads", first["threads"]), (1, "batch", first["batch"]),
                              (0, "batch", 1), (0, "same", False), (1, "same", False)):
            path = ("test_results", "determinism_tests", "repetitions", i, key)
            self.assert_refused(tools.seal(tools.put(self.receipt, path, value)), f"{at}[{i}].{key}")
        for list_of in ([], [first], [first, second, second]):
            self.assert_refused(tools.change(self.receipt, at, list_of), f"{at}: has {len(list_of)}")

    def test_broken_refused_first(self):
        """A receipt that breaks a rule is not run again."""
        bad = tools.change(self.receipt, "compute_path", "mock")
        self.assert_refused(bad, "compute_path", options=["--replay", "-m", "/nonexistent"])


if __name__ == "__main__":
    common.main()
