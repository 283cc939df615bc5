# SPDX-License-Identifier: Apache-2.0
"""tern serve: figures for Prometheus, their form, and the dashboard that shows them."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import common
from serving import Server

DASHBOARD = common.ROOT / "docs" / "grafana-dashboard.json"
SAMPLE = re.compile(r'([a-z_][a-z0-9_]*)(\{[a-z]+="[^"\\\n]*"(?:,[a-z]+="[^"\\\n]*")*\})? (\S+)')
SERIES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
HISTOGRAMS = ["time_to_first_token", "inter_token_latency", "request_queue_time", "request_prefill_time",
              "request_decode_time", "e2e_request_latency"]


def parse(page):
    """Families of a page, name -> (type, {series: value}); a page with a wrong form is an error."""
    families, lines = {}, page.splitlines()
    assert page.endswith("\n")
    while lines:
        word, kind, name, text = lines.pop(0).split(" ", 3)
        assert (word, kind) == ("#", "HELP") and text, name
        word, kind, again, kind_of = lines.pop(0).split(" ")
        assert (word, kind, again) == ("#", "TYPE", name), name
        assert name not in families, f"{name} twice"
        values = {}
        while lines and not lines[0].startswith("#"):
            found = SAMPLE.fullmatch(lines.pop(0))
            assert found and found[1] in {name + end for end in SERIES[kind_of]}, (name, found)
            assert (found[1], found[2]) not in values, found[0]
            values[found[1], found[2]] = float(found[3])
        families[name] = (kind_of, values)
    return families


class Metrics(common.TernTest):
    @classmethod
    def setUpClass(cls):
        common.small_model()
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.replies = [cls.server.complete("Once upon a time " * 20, max_tokens=n, ignore_eos=True).json() for n in (1, 5, 9)]
        cls.server.get("/nothing")
        cls.page = cls.server.get("/metrics").body.decode()
        cls.families = parse(cls.page)

    def value(self, name, labels=None):
        return self.families[name][1][name, labels]

    def test_names_and_units(self):
        for name, (kind, values) in self.families.items():
            with self.subTest(name=name):
                self.assertTrue(name.startswith(("tern_", "process_")))
                self.assertEqual(name.endswith("_total"), kind == "counter")
                self.assertNotRegex(name, r"milli|micro|percent|_ms$|_mib$|_kb$|counter|gauge|histogram")
                self.assertTrue(values)
                self.assertGreaterEqual(min(values.values()), 0)

    def test_histograms(self):
        for name in (f"tern_{h}_seconds" for h in HISTOGRAMS):
            with self.subTest(name=name):
                kind, values = self.families[name]
                self.assertEqual(kind, "histogram")
                buckets = [(labels, value) for (series, labels), value in values.items() if series.endswith("_bucket")]
                bounds = [float(labels[5:-2]) for labels, _ in buckets]
                self.assertEqual(bounds, sorted(set(bounds)))
                self.assertEqual(bounds[-1], float("inf"))
                counts = [value for _, value in buckets]
                self.assertEqual(counts, sorted(counts))
                self.assertEqual(counts[-1], values[f"{name}_count", None])
                total = values[f"{name}_sum", None]
                least = sum((n - m) * b for (n, m, b) in zip(counts[1:], counts, bounds))
                self.assertGreaterEqual(total, least)

    def test_they_count_what_happened(self):
        usage = [reply["usage"] for reply in self.replies]
        generated = sum(u["completion_tokens"] for u in usage)
        cached = sum(u["prompt_tokens_details"]["cached_tokens"] for u in usage)
        self.assertEqual(generated, 15)
        self.assertGreater(cached, 0)
        self.assertEqual(self.value("tern_requests_total"), 3)
        self.assertEqual(self.value("tern_generated_tokens_total"), generated)
        self.assertEqual(self.value("tern_prompt_tokens_total"), sum(u["prompt_tokens"] for u in usage))
        self.assertEqual(self.value("tern_prefix_cache_hits_total"), cached)
        self.assertEqual(self.value("tern_answers_total", '{end="length"}'), 3)
        self.assertEqual(self.value("tern_http_replies_total", '{code="200"}'), 3)
        self.assertEqual(self.value("tern_http_replies_total", '{code="404"}'), 1)
        counts = {h: self.families[f"tern_{h}_seconds"][1][f"tern_{h}_seconds_count", None] for h in HISTOGRAMS}
        self.assertEqual(counts, dict.fromkeys(HISTOGRAMS, 3) | {"inter_token_latency": generated - 3})

    def test_times_add_up(self):
        def total(name):
            return self.families[f"tern_{name}_seconds"][1][f"tern_{name}_seconds_sum", None]

        parts = sum(total(f"request_{part}_time") for part in ("queue", "prefill", "decode"))
        self.assertAlmostEqual(parts, total("e2e_request_latency"), delta=1e-6)
        self.assertLessEqual(total("time_to_first_token") + total("inter_token_latency"), parts)
        self.assertGreater(self.value("process_resident_memory_bytes"), 1 << 20)

    def test_memory_and_time_are_those_of_the_process(self):
        """Memory and time are in bytes and seconds, and agree with the system's own figures for the process a moment
        later."""
        pid = self.server.process.pid
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        for series, key in (("process_resident_memory_bytes", "VmRSS"), ("tern_peak_resident_bytes", "VmHWM")):
            ratio = self.value(series) / (1024 * int(status[key].split()[0]))
            self.assertTrue(0.5 < ratio < 2, f"{series} is {ratio} times {key}")
        self.assertGreaterEqual(self.value("tern_peak_resident_bytes"), self.value("process_resident_memory_bytes"))
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = os.sysconf("SC_CLK_TCK")
        used = (int(stat[11]) + int(stat[12]) + 2) / ticks  # either is rounded down
        self.assertTrue(0 < self.value("process_cpu_seconds_total") <= used)
        began = time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - int(stat[19]) / ticks)
        self.assertAlmostEqual(self.value("process_start_time_seconds"), began, delta=60)

    def test_pages_of_windows(self):
        self.assertEqual(self.value("tern_cache_window_pages"), 0)
        with tempfile.TemporaryDirectory() as folder:
            model = common.synth("gemma3-tiny", folder)
            with Server("-m", model, "--ctx", 512, "--batch", 16, "--parallel", 2) as server:
                server.complete([7] * 300, max_tokens=9, ignore_eos=True)
                figures = server.metrics()
        # 4 contexts of 8 pages; two answers see 2 pages each, and there is one for every 8 others
        self.assertEqual(figures["tern_cache_pages"], 32)
        self.assertEqual(figures["tern_cache_window_pages"], 2 * 2 + 32 // 8)
        self.assertEqual(figures["tern_cache_window_pages_used"], 0)
        self.assertEqual(figures["tern_cache_pages_kept"], 4)
        self.assertEqual(figures["tern_cache_window_pages_kept"], 4)

    def test_memory_for_keys_and_values(self):
        """--kv-memory is in MiB, and as many pages as fit are there; without it four contexts fit."""
        with tempfile.TemporaryDirectory() as folder:
            model = common.synth("qwen2-tiny", folder)
            context = common.tern_json("inspect", model, "--ctx", 512)["memory"]["kv_cache"]
            for options, pages in (("--kv-memory", 2), (2 << 20) // (context // 8)), ((), 4 * 8):
                with Server("-m", model, "--ctx", 512, *options) as server:
                    self.assertEqual(server.metrics()["tern_cache_pages"], pages, options)

    def test_promtool_has_nothing_to_say(self):
        promtool = shutil.which("promtool")
        if not promtool:
            self.skipTest("promtool is not installed (Debian: prometheus)")
        result = subprocess.run([promtool, "check", "metrics"], input=self.page.encode(), capture_output=True, check=False)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b"", b""))

    def test_the_dashboard_shows_what_is_there(self):
        board = json.loads(DASHBOARD.read_text())
        served = {series for _, values in self.families.values() for series, _ in values}
        shown = set()
        for target in (target for panel in board["panels"] for target in panel["targets"]):
            shown |= set(re.findall(r"\b(?:tern|process)_[a-z0-9_]+", target["expr"]))
        shown |= set(re.findall(r"\btern_[a-z0-9_]+", board["templating"]["list"][1]["query"]))
        self.assertEqual(shown - served, set())
        self.assertEqual({f"tern_{h}_seconds_bucket" for h in HISTOGRAMS} - shown, set())
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))


if __name__ == "__main__":
    common.main()
