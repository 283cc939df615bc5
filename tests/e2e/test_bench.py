# SPDX-License-Identifier: Apache-2.0
"""tern bench: figures that follow from others, sweeps, work-touch, zeros, wrong use."""

import re
import unittest

import common
from common import synth, tern, tern_json, tern_text

QUICK = ["-p", 24, "-n", 4, "--repeat", 2, "--threads", 1]


class Bench(common.FolderTest):
    def setUp(self):
        self.model = synth("bitnet-tiny", self.dir)

    def bench(self, *args, **kwargs):
        return tern_json("bench", "-m", self.model, *QUICK, *args, **kwargs)

    def assert_near(self, a, b):
        self.assertAlmostEqual(a, b, delta=1e-9 * (abs(a) + abs(b)))

    def test_figures_agree(self):
        r = self.bench()
        bytes_read = r["bytes_per_token"] + r["cache_bytes"]
        parts = ("attention_bytes", "feed_forward_bytes", "head_bytes")
        self.assertEqual(r["bytes_per_token"], sum(r[k] for k in parts))
        self.assert_near(r["mb_per_token"], 1e-6 * bytes_read)
        self.assert_near(r["bytes_touched"], 4 * bytes_read)
        self.assert_near(r["coverage"], bytes_read / self.model.stat().st_size)
        self.assert_near(r["bandwidth_gbs"], 1e-9 * bytes_read * r["decode_tps"])
        self.assert_near(r["bandwidth_fraction"], r["bandwidth_gbs"] / r["read_gbs"])
        self.assertLessEqual(r["read_low_gbs"], r["read_gbs"])
        self.assertLessEqual(r["read_gbs"], r["read_high_gbs"])
        self.assertGreater(r["load_ms"], 0)
        self.assertGreater(r["first_token_with_load_ms"], r["load_ms"])
        lengths = {name: len(v) for name, v in r["rounds"].items()}
        self.assertIn(lengths.pop("joules_per_token"), (0, 2))  # not every machine counts them
        self.assertEqual(set(lengths.values()), {2})
        self.assertNotIn("stages", r)

    def test_experts_by_hand(self):
        """A token reads the router and 2 of 6 experts, 4.5 bits a weight; sequences together up to all six."""
        self.model = synth("qwen3moe-tiny", self.dir)
        r = self.bench("--stages", "--sequences", "1,2,4")
        layers, one = 2, 3 * 96 * 64 * 18 // 32
        experts = r["feed_forward_bytes"] - layers * 2 * one
        self.assertEqual(experts, layers * 6 * 96 * 4)  # the routers
        for s, taken in zip(r["sequences"], (2, 4, 6), strict=True):
            weights = r["bytes_per_token"] + layers * (taken - 2) * one
            self.assert_near(s["bytes_per_token"], weights / s["n"] + r["cache_bytes"])

    def test_bytes_by_hand(self):
        """2 bits a weight, a head scanned in int8, an f16 cache; four tokens behind 24 see 26.5 positions in the mean."""
        g = tern_json("inspect", self.model)["geometry"]
        r = self.bench()
        n, ff, v, layers = g["n_embd"], g["n_ff"], g["n_vocab"], g["n_layer"]
        kv, q = g["n_head_kv"] * g["head_dim"], g["n_head"] * g["head_dim"]
        self.assertEqual(r["attention_bytes"], layers * (2 * n * q + 2 * n * kv) // 4)
        self.assertEqual(r["feed_forward_bytes"], layers * 3 * n * ff // 4)
        self.assertGreaterEqual(r["head_bytes"], n * v)  # int8 and a few bytes a row
        self.assertLessEqual(r["head_bytes"], (n + 16) * v)
        self.assertGreaterEqual(r["head_rows"], 1)
        self.assertEqual(r["cache_bytes"], int(2 * 2 * layers * kv * 26.5))
        blocks = layers * (2 * n * q + 2 * n * kv + 3 * n * ff)
        self.assert_near(r["decode_gweights"], 1e-9 * r["decode_tps"] * (blocks + n * v))
        self.assert_near(r["prefill_gweights"], 1e-9 * r["prefill_tps"] * (blocks + n * v / 24))
        self.assert_near(r["operations_per_byte"], 2 * (blocks + n * v) / (blocks // 4 + r["head_bytes"]))
        text = tern_text("bench", "-m", self.model, *QUICK)
        self.assertIn(f"{r['operations_per_byte']:.1f} operations a byte of weights", text)

    def test_peak(self):
        r = self.bench("--isa", "scalar")
        self.assertEqual((r["peak_isa"], r["peak_unit"]), ("scalar", "int8 codes"))
        self.assert_near(r["decode_peak_fraction"], r["decode_gweights"] / r["peak_gmacs"])
        self.assertLess(r["decode_peak_fraction"], 1.1)

    def test_sweeps(self):
        r = self.bench("--depths", "0,8,64", "--thread-counts", "1,2", "--batch-sizes", "2,5")
        self.assertEqual([p["depth"] for p in r["depths"]], [0, 8, 64])
        cache = [p["cache_bytes"] for p in r["depths"]]
        self.assertEqual(cache, sorted(cache))
        for point in r["depths"]:
            self.assertGreater(point["decode_tps"], 0)
            self.assertEqual(point["prompt_tokens"], 0)
        self.assertEqual([p["threads"] for p in r["thread_counts"]], [1, 2])
        for point in r["thread_counts"]:
            self.assertGreater(point["prefill_tps"], 0)
            self.assertEqual(len(point["rounds"]["decode_tps"]), 2)
        self.assertEqual([p["tokens"] for p in r["batches"]], [1, 2, 5])  # one in front
        self.assertEqual((r["batches"][0]["all_ratio"], r["batches"][0]["pick_ratio"]), (1.0, 1.0))
        for batch in r["batches"]:
            self.assertGreater(batch["all_ms"], 0)
            self.assertGreater(batch["pick_ms"], 0)
        self.assertEqual(r["threads"], 1)

    def test_sequences(self):
        """Weights are read once for all sequences, the cache once for each; a prompt that arrives is waited for."""
        r = self.bench("--sequences", "1,3,8", "--arriving", 40, "--gap-ms", 5)
        self.assertEqual([s["n"] for s in r["sequences"]], [1, 3, 8])
        for s in r["sequences"]:
            self.assert_near(s["bytes_per_token"], r["bytes_per_token"] / s["n"] + r["cache_bytes"])
            self.assert_near(s["each_tps"], s["tps"] / s["n"])
            self.assertEqual({len(samples) for samples in s["rounds"].values()}, {2})
            for tps, p50, p95 in zip(*(s["rounds"][k] for k in ("tps", "p50_ms", "p95_ms"))):
                self.assertGreater(p50, 0)
                self.assertLessEqual(p50, p95)
                mean = 1e3 * s["n"] / tps  # of four times, and the largest is p95
                self.assertLessEqual(mean, p95 * (1 + 1e-9))
                self.assertGreaterEqual(mean * (1 + 1e-9), (2 * p50 + p95) / 4)
        self.assertEqual([(a["n"], a["prompt_tokens"], a["gap_ms"]) for a in r["arrivals"]],
                         [(1, 40, 5), (3, 40, 5), (8, 40, 5)])
        for a in r["arrivals"]:
            self.assertEqual({len(samples) for samples in a["rounds"].values()}, {2})
            for when in ("before", "during"):
                self.assertGreater(a[f"{when}_p50_ms"], 0)
                self.assertLessEqual(a[f"{when}_p50_ms"], a[f"{when}_p95_ms"])
            for first, p95 in zip(a["rounds"]["first_token_ms"], a["rounds"]["during_p95_ms"]):
                self.assertGreaterEqual(first * (1 + 1e-9), p95)  # the sum of all times until then
        self.assertNotIn("arrivals", self.bench("--sequences", "2"))

    def test_sequences_need_memory_for_all(self):
        """Memory is planned so that each sequence may fill the context, whatever one of them needs."""
        r = self.bench("--sequences", "5", "--ctx", 512, "-p", 256, "--depth", 470, "--repeat", 1)
        self.assertGreater(r["sequences"][0]["tps"], 0)
        r = tern("bench", "-m", self.model, "-p", 505, "-n", 4, "--repeat", 1, "--sequences", "2", "--arriving", 511,
                 "--threads", 1)
        self.assert_one_line_error(r, 1, ["contexts of 512", "arrived"])

    def test_touch(self):
        touched = self.bench("--touch-bytes", 100000, "--touch-stride", 64, "--verify-touch")["touch"]
        self.assertEqual(touched["bytes_per_token"], 100032)  # whole strides
        self.assertEqual(touched["tokens"], 8)  # 2 rounds of 4
        self.assertTrue(touched["complete"])
        self.assertFalse(touched["non_temporal"])
        self.assertGreater(touched["ms_per_token"], 0)
        hinted = self.bench("--touch-bytes", 1000, "--touch-nt", "on")["touch"]
        self.assertTrue(hinted["non_temporal"])
        self.assertEqual((hinted["non_temporal_percent"], hinted["ahead"]), (100, 4096))
        env = {"IE_NT_RATIO": "25", "IE_PREFETCH_DISTANCE": "512", "IE_NT_LOADS": "on"}
        older = self.bench("--touch-bytes", 1000, env=env)["touch"]
        self.assertEqual((older["non_temporal_percent"], older["ahead"]), (25, 512))
        own = self.bench("-n", 1, "--touch-bytes", 1000, "--touch-ahead", 64, "--touch-nt-ratio", 75, env=env)["touch"]
        self.assertEqual((own["non_temporal_percent"], own["ahead"]), (75, 64))
        self.assertTrue(older["complete"])
        self.assertNotIn("touch", self.bench())

    def test_touch_by_the_older_names(self):
        env = {"IE_BYTES_PER_TOKEN": "4096", "IE_STRIDE_BYTES": "128", "IE_VERIFY_TOUCH": "1"}
        touched = self.bench(env=env)["touch"]
        self.assertEqual((touched["bytes_per_token"], touched["stride"]), (4096, 128))

    def fetched(self, *args, env=None):
        """Runs without decoding, because its bandwidth takes seconds to measure."""
        return self.bench("-n", 0, "--repeat", 1, *args, env=env).get("fetch")

    def test_fetch_ahead(self):
        """Flags and older names set the fetching ahead, results report it, and the logits stay the same."""
        self.assertIsNone(self.fetched())
        self.assertEqual(self.fetched("--fetch-ahead", 4096),
                         {"ahead": 4096, "non_temporal": False, "non_temporal_percent": 0})
        self.assertEqual(self.fetched("--fetch-ahead", 64, "--fetch-nt", "on", "--fetch-nt-ratio", 25),
                         {"ahead": 64, "non_temporal": True, "non_temporal_percent": 25})
        self.assertEqual(self.fetched("--fetch-ahead", 4096, "--fetch-nt", "auto"),  # any cache holds the model
                         {"ahead": 4096, "non_temporal": False, "non_temporal_percent": 0})
        env = {"IE_PREFETCH_DISTANCE": "512", "IE_NT_LOADS": "on", "IE_NT_RATIO": "50"}
        self.assertEqual(self.fetched(env=env), {"ahead": 512, "non_temporal": True, "non_temporal_percent": 50})
        self.assertEqual(self.fetched("--fetch-ahead", 8, "--fetch-nt", "off", env=env),
                         {"ahead": 8, "non_temporal": False, "non_temporal_percent": 0})
        said = tern("run", "-m", self.model, "-p", "a", "-n", 1, "-v", env=env).stderr.decode()
        self.assertIn("fetched ahead: 512 bytes of each matrix for each thread, not to be kept in caches", said)
        hashes = {tern_text("logits", "-m", self.model, "-p", "Once upon", "--all", "--sha256", "--threads", threads, *more)
                  for threads in (1, 3) for more in ([], ["--fetch-ahead", 100, "--fetch-nt", "on"],
                                                     ["--fetch-ahead", 1 << 20])}
        self.assertEqual(len(hashes), 1)
        for flags, message in ((["--fetch-ahead", (1 << 20) + 1], "--fetch-ahead"), (["--fetch-nt", "maybe"], "--fetch-nt"),
                               (["--fetch-nt-ratio", 101], "--fetch-nt-ratio")):
            self.assert_one_line_error(tern("logits", "-m", self.model, "-p", "a", *flags), 2, [message])

    def test_touch_is_in_the_window(self):
        """All decoding together takes at least as long as the reading in it: no tolerance."""
        r = self.bench("--touch-bytes", 64000000, "--touch-stride", 8)
        tokens = r["generated_tokens"]
        decoding = sum(tokens / speed for speed in r["rounds"]["decode_tps"])
        self.assertEqual(r["touch"]["tokens"], tokens * len(r["rounds"]["decode_tps"]))
        self.assertGreater(decoding, 1e-3 * r["touch"]["ms_per_token"] * r["touch"]["tokens"])

    def assert_stages_add_up(self, kind):
        """In every round the work and wait of all stages, and the time outside of them, add up to the whole."""
        for i, whole in enumerate(kind["rounds"]["whole_ms"]):
            parts = [s["rounds"][k][i] for s in kind["stages"] for k in ("work_ms", "wait_ms")]
            outside = kind["rounds"]["outside_ms"][i]
            self.assertGreater(whole, 0)
            self.assertGreaterEqual(outside, 0)
            self.assertGreaterEqual(min(parts), 0)
            self.assert_near(sum(parts) + outside, whole)
        for stage in kind["stages"]:
            self.assert_near(stage["work_fraction"], stage["work_ms"] / kind["whole_ms"])
            self.assert_near(stage["wait_fraction"], stage["wait_ms"] / kind["whole_ms"])
            if stage["work_ms"]:
                self.assert_near(stage["gbs"], 1e-6 * stage["bytes"] / stage["work_ms"])

    def test_stages(self):
        r = self.bench("--stages", "--threads", 2)
        self.assertEqual(set(r["stages"]), {"prefill", "decode"})
        for name, tokens, depth in (("prefill", 24, 0), ("decode", 4, 24)):
            kind = r["stages"][name]
            self.assertEqual((kind["tokens"], kind["depth"], kind["threads"]), (tokens, depth, 2))
            self.assertEqual(len(kind["rounds"]["whole_ms"]), 2)
            self.assert_stages_add_up(kind)

    def test_bytes_of_stages(self):
        """The stages of a decoded token read as many bytes as the token reads, and the exact rows."""
        r = self.bench("--stages")
        g = tern_json("inspect", self.model)["geometry"]
        stages = {s["stage"]: s for s in r["stages"]["decode"]["stages"]}
        self.assert_near(stages["qkv"]["bytes"] + stages["out"]["bytes"], r["attention_bytes"])
        self.assert_near(stages["gate_up"]["bytes"] + stages["down"]["bytes"], r["feed_forward_bytes"])
        self.assert_near(stages["attention"]["bytes"], r["cache_bytes"])
        self.assert_near(stages["scan"]["bytes"], r["head_bytes"])
        self.assert_near(stages["rows"]["bytes"], 2 * r["head_rows"] * g["n_embd"])  # f16
        self.assertEqual((stages["head"]["bytes"], stages["head"]["work_ms"]), (0, 0))
        for name in ("embed", "norm", "rope", "attended", "activation", "alone"):
            self.assertGreater(stages[name]["work_ms"], 0, name)
            self.assertEqual(stages[name]["bytes"], 0, name)
        # a prompt of 24 in one pass reads the weights once, and 16 and 24 positions; in the last layer only its
        # last token is computed beyond keys and values
        prompt = {s["stage"]: s for s in r["stages"]["prefill"]["stages"]}
        layers = g["n_layer"]
        self.assert_near(prompt["down"]["bytes"], stages["down"]["bytes"] / 24)
        self.assert_near(prompt["attention"]["bytes"], r["cache_bytes"] / 26.5 * (40 * (layers - 1) + 24) / layers / 24)
        down = (layers - 1 + 1 / 24) * g["n_embd"] * g["n_ff"]
        self.assert_near(prompt["down"]["gweights"], 1e-6 * down / prompt["down"]["work_ms"])
        self.assertEqual(prompt["scan"]["work_ms"] + prompt["rows"]["work_ms"] + prompt["head"]["work_ms"], 0)

    def test_stages_of_a_whole_head(self):
        r = self.bench("--stages", "--exact-head", "-p", 0)
        self.assertEqual(set(r["stages"]), {"decode"})
        stages = {s["stage"]: s for s in r["stages"]["decode"]["stages"]}
        self.assert_near(stages["head"]["bytes"], r["head_bytes"])
        self.assertGreater(stages["head"]["work_ms"], 0)
        self.assertEqual((stages["scan"]["work_ms"], stages["scan"]["bytes"], stages["rows"]["bytes"]), (0, 0, 0))

    def test_zeros(self):
        found = self.bench("--sparsity")["sparsity"]
        everything = found["all"]
        self.assertEqual(len(found["layers"]), 2)
        width = tern_json("inspect", self.model)["geometry"]["n_ff"]
        self.assertEqual(everything["values"], 2 * width * (24 + 4))
        self.assertEqual(everything["zeros"], sum(layer["zeros"] for layer in found["layers"]))
        # relu gives zero for every gate below it: for random weights, half of them
        self.assertGreater(everything["zeros"] / everything["values"], 0.45)
        groups = everything["zero_groups"]
        self.assertGreater(groups["4"], groups["16"])
        again = self.bench("--sparsity", "--threads", 2, "--isa", "scalar")["sparsity"]
        self.assertEqual(found, again)

    def test_zeros_where_there_are_few(self):
        """silu is never exactly zero; in blocks of 32 few codes are."""
        model = synth("llama-tiny-q4_0", self.dir)
        found = tern_json("bench", "-m", model, *QUICK, "--sparsity")["sparsity"]["all"]
        self.assertGreater(found["values"], 0)
        self.assertLess(found["zeros"] / found["values"], 0.3)

    def test_text(self):
        text = tern_text("bench", "-m", self.model, *QUICK, "--depths", "0,8", "--thread-counts", "1",
                         "--batch-sizes", "1,2", "--sequences", "1,2", "--arriving", 20, "--stages", "--sparsity", "--touch-bytes", 4096)
        for word in ("machine", "load", "prefill", "decode", "bytes", "bandwidth", "arithmetic",
                     "energy", "touched", "memory", "decode by depth", "by threads", "passes of", "sequences together", "ms between tokens",
                     "where the time of a decoded token goes", "gate_up", "outside", "whole",
                     "zeros among"):
            self.assertIn(f"\n{word}" if word != "machine" else word, text)
        self.assertNotIn("\nhead  ", text.partition("where the time")[2])  # it is scanned

    def test_markdown(self):
        lines = tern_text("bench", "-m", self.model, *QUICK, "--markdown").splitlines()
        self.assertEqual(len(lines), 3)
        self.assertEqual({line.count("|") for line in lines}, {11})

    def test_markdown_figures(self):
        """Bytes, coverage and bandwidth are those of --json, as far as they do not depend on time, and
        follow from each other as far as they do."""
        model = common.small_model()
        r = tern_json("bench", "-m", model, *QUICK)
        row = tern_text("bench", "-m", model, *QUICK, "--markdown").splitlines()[2]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        number = [[float(x) for x in re.findall(r"[\d.]+", cell)] for cell in cells]
        self.assertEqual(cells[1], "1")
        self.assertEqual(cells[5], f"{r['mb_per_token']:.0f}")
        self.assertEqual(cells[6], f"{100 * r['coverage']:.0f} %")
        decode_tps, (gbs, memory), share = number[3][0], number[7], number[8][0]
        self.assertAlmostEqual(gbs, 1e-3 * r["mb_per_token"] * decode_tps, delta=0.06 + 0.01 * gbs)
        self.assertGreater(gbs, 0)
        self.assertAlmostEqual(share, 100 * gbs / memory, delta=0.5 + 100 * 0.06 / memory + 0.02 * share)
        p50, p95 = number[4]
        self.assertLessEqual(p50, p95)
        self.assertGreater(4 * 100 * (p95 + 0.05), 4e3 / decode_tps)
        self.assertLessEqual(p50, 4e3 / decode_tps * 1.5 + 0.1)

    def test_tokens_of_a_text(self):
        model = common.small_model()
        text = self.dir / "text.txt"
        text.write_text("Once upon a time")
        r = tern_json("bench", "-m", model, *QUICK, "-f", text, "--sparsity")
        self.assertEqual(r["prompt_tokens"], 24)
        other = tern_json("bench", "-m", model, *QUICK, "--sparsity")
        self.assertNotEqual(r["sparsity"]["all"]["zeros"], other["sparsity"]["all"]["zeros"])

    def test_parts_alone(self):
        only_prefill = self.bench("-n", 0)
        self.assertEqual((only_prefill["decode_tps"], only_prefill["cache_bytes"]), (0, 0))
        self.assertGreater(only_prefill["prefill_tps"], 0)
        only_decode = self.bench("-p", 0)
        self.assertEqual(only_decode["prefill_tps"], 0)
        self.assertGreater(only_decode["decode_tps"], 0)

    def test_wrong_use(self):
        cases = [
            (["--depths", "1,x"], ["--depths", "'1,x'"]),
            (["--depths", "99999"], ["100003", "--ctx"]),
            (["--batch-sizes", "0"], ["--batch-sizes"]),
            (["--batch-sizes", "4096"], ["4120", "--ctx"]),
            (["--thread-counts", "0"], ["--thread-counts"]),
            (["--sequences", "1,x"], ["--sequences", "'1,x'"]),
            (["--sequences", "0"], ["--sequences", "1024"]),
            (["--sequences", "2", "-n", "0"], ["--sequences", "-n 0"]),
            (["--arriving", "5"], ["--arriving", "--sequences"]),
            (["--sequences", "2", "--arriving", "512"], ["513", "--ctx"]),
            (["--touch-bytes", "64", "--touch-stride", "12"], ["--touch-stride", "12"]),
        ]
        for arguments, words in cases:
            result = tern("bench", "-m", self.model, *QUICK, *arguments)
            self.assert_one_line_error(result, 2, words)
        missing = self.dir / "none.txt"
        result = tern("bench", "-m", common.small_model(), *QUICK, "-f", missing)
        self.assert_one_line_error(result, 1, [str(missing)])


if __name__ == "__main__":
    common.main()
