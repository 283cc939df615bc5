# SPDX-License-Identifier: Apache-2.0
"""tern plan: its arithmetic beside examples worked by hand, files beside what tern inspect says of them."""

import importlib.machinery
import importlib.util
import json
import unittest

import common
from common import tern, tern_json, tern_text

# 8 threads that read 50 GB/s, of which 0.85 count; 40 us and 1.25 GB/s between machines.
MACHINE = ("--bus", "50", "--threads", "8", "--network", "40,1.25", "--reach", "0.85", "--tops", "3.2")


def plan(*args):
    found = tern_json("plan", *MACHINE, *args, "--json")
    return found, {way["way"]: way for way in found["ways"]}


class Arithmetic(unittest.TestCase):
    def check_times(self, way, **times):
        for name, milliseconds in times.items():
            self.assertAlmostEqual(way["seconds"][name] * 1e3, milliseconds, places=4, msg=name)
        self.assertAlmostEqual(way["seconds"]["all"] * 1e3, sum(times.values()), places=3)
        self.assertAlmostEqual(way["tokens_per_second"], 1e3 / sum(times.values()), places=3)

    def test_process(self):
        """30 layers x 69,468,160 ternary weights of 2 bits, a head of 128,256 x 2,560 codes; a cache of 512 positions
        x 30 layers x 2 x 5 heads x 128 halves."""
        found, ways = plan("--preset", "bitnet-2b", "--ctx", 512)
        self.assertEqual(found["model"]["reads"], {"qkv": 73728000, "out": 49152000, "gate_up": 265420800,
                                                   "down": 132710400, "head": 328335360, "cache": 39321600})
        self.assertEqual(list(ways), ["process"])
        self.assertEqual(ways["process"]["weights"], 849346560)
        # 888,668,160 bytes at 42.5 GB/s; 6 x 30 + 4 meetings of 2 us
        self.check_times(ways["process"], read=20.90984, products=0, meetings=0.368, latency=0, transfer=0)

    def test_ranks(self):
        """Four ranks: 2 of 5 key/value heads, and a fourth of all else."""
        _, ways = plan("--preset", "bitnet-2b", "--ctx", 512, "--nodes", 4)
        ranks = ways["ranks"]
        weights = 73728000 * 2 // 5 + (49152000 + 265420800 + 132710400 + 328335360) // 4
        self.assertEqual((ranks["weights"], ranks["cache"]), (weights, 39321600 * 2 // 5))
        # 4 exchanges a layer and 4 more; a layer has 2560 + 2560 + 6912 + 2560 floats, and there are two bounds a token
        floats = 30 * (2560 + 2560 + 6912 + 2560) + 2 * 128256
        self.assertEqual((ranks["gathers"], ranks["gather_bytes"]), (124, floats * 4 * 3 // 4))
        self.check_times(ranks, read=(weights + 15728640) / 42.5e6, products=0, meetings=0.368, latency=124 * 2 * 0.04,
                         transfer=floats * 3 / 1.25e6)
        self.assertEqual(ranks["copies"], 1)

    def test_replicas(self):
        """Six users of four copies: two in a pass of the fullest, which reads weights once and two caches."""
        _, ways = plan("--preset", "bitnet-2b", "--ctx", 512, "--nodes", 4, "--users", 6)
        replicas = ways["replicas"]
        self.assertEqual((replicas["copies"], replicas["sequences"], replicas["ranks"]), (4, 2, 1))
        self.check_times(replicas, read=(849346560 + 2 * 39321600) / 42.5e6, products=0, meetings=0.368, latency=0,
                         transfer=0)
        self.assertAlmostEqual(replicas["tokens_per_second_of_all"], 6 * replicas["tokens_per_second"])

    def test_products(self):
        """With 64 sequences products take longer than reading: 2 x 64 x 2,412,380,160 operations at 3.2 Tops."""
        _, ways = plan("--preset", "bitnet-2b", "--users", 64)
        read = 849346560 / 42.5e6
        self.check_times(ways["process"], read=read, products=128 * 2412380160 / 3.2e9 - read, meetings=0.368,
                         latency=0, transfer=0)

    def test_sockets(self):
        """Two sockets: one process has the memory of both, two ranks exchange over 3 us and 5 GB/s."""
        _, ways = plan("--preset", "8b", "--sockets", 2, "--nodes", 2)
        self.assertEqual(ways["process"]["seconds"]["read"], ways["process"]["weights"] / 85e9)
        self.assertEqual([ways[way]["ranks"] for way in ("process", "sockets", "ranks", "replicas")], [1, 2, 4, 2])
        self.assertAlmostEqual(ways["sockets"]["seconds"]["latency"], (4 * 36 + 4) * 3e-6)
        self.assertAlmostEqual(ways["ranks"]["seconds"]["latency"], (4 * 36 + 4) * 43e-6)
        self.assertEqual(ways["sockets"]["weights"] * 2, ways["process"]["weights"])

    def test_memory(self):
        """The context that fits what a machine has beside the weights; more than fits is said."""
        found, ways = plan("--preset", "bitnet-2b", "--node-memory", 2048)
        room = 2048 * 2**20 - found["model"]["weight_bytes"]
        self.assertEqual(ways["process"]["most_context"], room // (2560 * 30))
        self.assertFalse(plan("--preset", "100b", "--node-memory", 2048)[1]["process"]["fits"])
        text = tern_text("plan", *MACHINE, "--preset", "100b", "--node-memory", "2048")
        self.assertIn("it does NOT fit a machine", text)
        self.assertIn("no way fits", text)
        self.assertIn("no way fits", tern_text("plan", *MACHINE, "--preset", "100b", "--node-memory", 2048, "--nodes", 8))

    def test_advice(self):
        """A fast network makes ranks the fastest for one, whom copies do not help."""
        args = ("plan", *MACHINE[:4], "--preset", "70b", "--nodes", "4")
        self.assertIn("fastest answer to one: ranks on all machines", tern_text(*args, "--network", "8,12.5"))
        self.assertNotIn("to one: ranks", tern_text(*args, "--network", "9000,0.01"))


class Files(common.FolderTest):
    def test_files(self):
        """What a token reads, and the cache, are what tern inspect says; the head's floats stay beside its image."""
        for name in ("bitnet-tiny", "llama-tiny-q4_k", "maple-tiny"):
            model = common.synth(name, self.dir)
            found, _ = plan("-m", model, "--ctx", 100)
            facts = tern_json("inspect", model, "--ctx", 100, "--json")
            reads = found["model"]["reads"]
            self.assertEqual(sum(reads.values()) - reads["cache"], facts["bytes_per_token"], name)
            self.assertGreaterEqual(found["model"]["weight_bytes"], facts["bytes_per_token"], name)
        found, _ = plan("-m", model, "--ctx", 400)  # three of four layers have windows
        self.assertLess(found["model"]["reads"]["cache"], 400 * found["model"]["cache_bytes_per_position"])

    def test_tables(self):
        """Rows of the page's tables are what the program says today (lab/scaling writes them)."""
        loader = importlib.machinery.SourceFileLoader("scaling", str(common.ROOT / "lab" / "scaling"))
        scaling = importlib.util.module_from_spec(importlib.util.spec_from_loader("scaling", loader))
        loader.exec_module(scaling)
        stored = json.loads((common.ROOT / "docs" / "scaling.json").read_text(encoding="utf-8"))["tables"]
        for name, nodes in (("8b", 4), ("100b", 1)):
            self.assertIn(scaling.row(common.command()[0], name, nodes), stored[name])

    def test_refused(self):
        for args, words in ((["--network", "fast"], "--network: 'fast' is not microseconds and GB/s"),
                            (["--network", "40,0"], "--network: '40,0' is not"),
                            (["--preset", "9b"], "unknown geometry '9b'"), (["--nodes", "0"], "--nodes")):
            self.assert_one_line_error(tern("plan", *MACHINE, "--preset", "8b", *args), 2, [words])
        self.assertEqual([line.split()[0] for line in tern_text("plan", "--list").splitlines()],
                         ["bitnet-2b", "8b", "27b", "70b", "100b"])


if __name__ == "__main__":
    common.main()
