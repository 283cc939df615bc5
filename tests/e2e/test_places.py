# SPDX-License-Identifier: Apache-2.0
"""Tests of --affinity and --numa: plans for other machines, messages about this one, and one answer everywhere."""

import os
import re
import tempfile
from pathlib import Path

import common
from common import tern, tern_json, tern_text

TWO_SOCKETS = {"HWLOC_SYNTHETIC": "pack:2 [numa] core:8 pu:2"}
HYBRID = {"HWLOC_XMLFILE": str(common.ROOT / "tests" / "topologies" / "hybrid.xml")}
# Processors that are not here, but that hwloc is told to take for this machine's.
ABSENT = {"HWLOC_SYNTHETIC": "pack:2 [numa] core:2 pu:1(indexes=2001,2002,2003,2004)", "HWLOC_THISSYSTEM": "1"}
SMALL = str(common.SMALL_MODEL)
PROMPT = ["-p", "Once upon a time", "--threads", "3"]


def has_hwloc():
    return tern("inspect", SMALL, "--affinity", "compact").returncode == 0


def inspect(*options, env=None):
    return tern_json("inspect", SMALL, *options, env=env)


def two_kinds(path, fast, slow):
    """Writes a description of this machine's processors `fast` and `slow` as cores of two kinds."""
    both = 1 << fast | 1 << slow

    def place(mask):
        return f'cpuset="{mask:#x}" complete_cpuset="{mask:#x}" nodeset="0x1" complete_nodeset="0x1"'

    def core(number, processor):
        return (
            f'<object type="Core" os_index="{number}" {place(1 << processor)} gp_index="{10 + number}">'
            f'<object type="PU" os_index="{processor}" {place(1 << processor)} gp_index="{20 + number}"/></object>'
        )

    def kind(efficiency, processor, clock):
        return (
            f'<cpukind cpuset="{1 << processor:#x}" forced_efficiency="{efficiency}">'
            f'<info name="FrequencyMaxMHz" value="{clock}"/></cpukind>'
        )

    allowed = f'allowed_cpuset="{both:#x}" allowed_nodeset="0x1"'
    path.write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">\n'
        f'<object type="Machine" os_index="0" {place(both)} {allowed} gp_index="1">'
        f'<object type="Package" os_index="0" {place(both)} gp_index="2">'
        f'<object type="NUMANode" os_index="0" {place(both)} gp_index="3" local_memory="1073741824"/>'
        f"{core(0, fast)}{core(1, slow)}</object></object>"
        f"{kind(0, slow, 1000)}{kind(1, fast, 10000)}</topology>"
    )
    return {"HWLOC_XMLFILE": str(path), "HWLOC_THISSYSTEM": "1"}


class Plans(common.TernTest):
    def setUp(self):
        common.small_model()
        if not has_hwloc():
            self.skipTest("built without hwloc")

    def test_scatter(self):
        machine = inspect("--affinity", "scatter", env=TWO_SOCKETS)["machine"]
        self.assertEqual((machine["sockets"], machine["nodes"]), (2, 2))
        self.assertEqual((machine["cores"], machine["processors"]), (16, 32))
        threads = machine["threads"]
        self.assertEqual([t["processors"] for t in threads], [f"{i}-{i + 1}" for i in range(0, 32, 2)])
        self.assertEqual([t["node"] for t in threads], [0] * 8 + [1] * 8)

    def test_auto(self):
        threads = inspect(env=TWO_SOCKETS)["machine"]["threads"]
        self.assertEqual([t["processors"] for t in threads], ["0-15"] * 8 + ["16-31"] * 8)
        threads = inspect("--numa", "node:1", env=TWO_SOCKETS)["machine"]["threads"]
        self.assertEqual({t["processors"] for t in threads}, {"16-31"})

    def test_hybrid(self):
        threads = inspect(env=HYBRID)["machine"]["threads"]
        self.assertEqual([t["processors"] for t in threads], ["0-3"] * 2 + ["4-7"] * 4)
        self.assertEqual([t["share"] for t in threads], [1024] * 2 + [491] * 4)

    def test_measured_speeds(self):
        """Cores announce that one is ten times as fast; they are alike, which tern finds out and keeps."""
        processors = sorted(os.sched_getaffinity(0))[:2]
        if len(processors) < 2:
            self.skipTest("needs two processors")

        def share(*options):
            return [t["share"] for t in inspect(*options, env=env)["machine"]["threads"]]

        with tempfile.TemporaryDirectory() as folder:
            env = two_kinds(Path(folder) / "kinds.xml", *processors) | {"TERN_NO_TUNE": "0"}
            cache = ["--cache-dir", str(Path(folder) / "cache")]
            announced = share(*cache)
            if len(announced) < 2 or announced[1] != 102:
                self.skipTest("two threads are too many here, or hwloc takes the description otherwise")
            answer = tern_text("logits", "--sha256", *PROMPT, "--no-tune", env=env)
            self.assertEqual(tern_text("logits", "--sha256", *PROMPT, *cache, env=env), answer)
            measured = share(*cache)
            self.assertEqual(max(measured), 1024)
            self.assertGreater(min(measured), 2 * 102)
            self.assertEqual(share(*cache), measured)
            self.assertEqual(share(*cache, "--no-tune"), announced)
            self.assertEqual(tern_text("logits", "--sha256", *PROMPT, *cache, env=env), answer)

    def test_one_answer(self):
        """Shares, places and other machines do not change a bit; nor do threads that cannot be bound."""
        hashes = {tern_text("logits", "--all", "--sha256", *PROMPT)}
        for env in ({}, TWO_SOCKETS, HYBRID, ABSENT):
            for affinity in ("auto", "none", "compact", "scatter"):
                for numa in ("none", "strict") if env else ("none", "interleave", "strict"):
                    options = ["--affinity", affinity, "--numa", numa]
                    result = tern("logits", "--all", "--sha256", *PROMPT, *options, env=env)
                    if numa == "strict" and (affinity == "none" or env is ABSENT):
                        self.assert_one_line_error(result, contains=["strict"])
                    else:
                        self.assertEqual(result.returncode, 0, result.stderr)
                        hashes.add(result.stdout.decode())
        self.assertEqual(len(hashes), 1)

    def test_refused_by_the_system(self):
        options = ["logits", "--sha256", *PROMPT, "--affinity", "compact"]
        result = tern(*options, env=ABSENT)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr.decode(), r"^tern: the system does not bind .*\(Invalid argument\).*\n$")
        self.assert_one_line_error(tern(*options, "--strict", env=ABSENT), contains=["strict", "Invalid argument"])

    def test_no_such_node(self):
        for env, nodes in (({}, None), (TWO_SOCKETS, "2 nodes: 0, 1")):
            for command in (["run", *PROMPT], ["inspect", SMALL]):
                result = tern(*command, "--numa", "node:77", env=env)
                self.assert_one_line_error(result, status=2, contains=["node:77", nodes or "this machine has"])

    def test_replicas_change_no_bit(self):
        plain = tern_text("logits", "--all", "--sha256", *PROMPT)
        for env in ({}, TWO_SOCKETS, HYBRID):
            for options in ([], ["--exact-head"], ["--replicate-limit", "1"], ["--affinity", "none"]):
                result = tern("logits", "--all", "--sha256", *PROMPT, "--replicate", *options, env=env)
                self.assertEqual((result.stdout.decode(), result.stderr), (plain, b""))

    def test_replicas_planned(self):
        def plan(*options, env=TWO_SOCKETS):
            memory = inspect(*options, env=env)["memory"]
            return {key: memory[key] for key in memory if key != "available"}

        none = plan()
        self.assertEqual((none["replicas"], none["replicas_bytes"]), (0, 0))
        both = plan("--replicate")
        self.assertEqual(both["replicas"], 2)
        # Every float of the file once a node: vectors as f32, the embedding, which is the head.
        self.assertGreaterEqual(both["replicas_bytes"], 2 * both["in_place"])
        self.assertLess(both["replicas_bytes"], 2 * both["in_place"] + 65536)
        self.assertEqual(both["needed"], none["needed"] + both["replicas_bytes"])
        self.assertEqual(plan("--replicate", "--numa", "node:1")["replicas"], 1)
        older = {"IE_HOT_REPLICATE": "1", "IE_HOT_REPL_LIMIT_MB": "1"}
        self.assertEqual(plan(env=TWO_SOCKETS | older), both)
        for options, env, why in (
            ([], {}, "one NUMA node"),
            ([], HYBRID, "one NUMA node"),
            (["--affinity", "none"], TWO_SOCKETS, "not bound"),
        ):
            text = tern_text("inspect", SMALL, "--replicate", *options, env=env)
            self.assertRegex(text, rf"0\.0 MiB  copies of hot weights: none, .*{why}")
            self.assertEqual(plan("--replicate", *options, env=env)["replicas"], 0)
        self.assertNotIn("copies", tern_text("inspect", SMALL, env=TWO_SOCKETS))

    def test_replicas_refused_by_the_system(self):
        options = ["logits", "--all", "--sha256", *PROMPT, "--replicate"]
        result = tern(*options, env=ABSENT)
        self.assertEqual(result.stdout.decode(), tern_text(*options))
        self.assertRegex(result.stderr.decode(), r"^tern: the system does not bind .*\n$")
        self.assert_one_line_error(tern(*options, "--strict", env=ABSENT), contains=["strict"])


class Options(common.TernTest):
    def setUp(self):
        common.small_model()

    def test_policies(self):
        for text in ("", "nodes", "node:", "node:x", "node:-1", "node:1x", "node:99999999999", "Strict"):
            with self.subTest(text=text):
                self.assert_one_line_error(tern("run", *PROMPT, "--numa", text), status=2, contains=["--numa"])
        result = tern("run", *PROMPT, "--affinity", "sometimes")
        self.assertEqual(result.returncode, 2)

    def test_without_hwloc(self):
        if has_hwloc():
            self.skipTest("built with hwloc")
        for options in (["--affinity", "compact"], ["--affinity", "scatter"], ["--numa", "interleave"]):
            with self.subTest(options=options):
                self.assert_one_line_error(tern("run", *PROMPT, *options), contains=["without hwloc"])

    def test_older_variables(self):
        for env, affinity in (
            ({}, "auto"),
            ({"AFFINITY": "none"}, "none"),
            ({"IE_TP_USE_AFFINITY": "1"}, "auto"),
            ({"IE_TP_USE_AFFINITY": "0"}, "none"),
            ({"IE_TP_USE_AFFINITY": "0", "TERN_AFFINITY": "auto"}, "auto"),
        ):
            with self.subTest(env=env):
                self.assertEqual(inspect(env=env)["affinity"], affinity)

    def test_reports(self):
        online = Path("/sys/devices/system/node/online")
        nodes = online.read_text().strip() if online.exists() else ""
        reports = [
            inspect(),
            tern_json("run", *PROMPT, "-n", "1", "--affinity", "none"),
            tern_json("bench", "-p", "2", "-n", "1", "--repeat", "1", "--affinity", "none"),
        ]
        for report, affinity in zip(reports, ("auto", "none", "none")):
            self.assertEqual(report["nodes_online"], nodes)
            self.assertEqual(report["numa"], "none")
            self.assertEqual(report["affinity"], affinity)
        self.assertRegex(tern_text("inspect", SMALL), re.compile(r"^machine +\d+ sockets, ", re.M))

    def test_receipt(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "receipt.json"
            tern_text("run", *PROMPT, "-n", "4", "--affinity", "none", "--receipt", path)
            self.assertIn('"affinity": "none"', path.read_text())
            tern_text("verify", path, "--replay")


if __name__ == "__main__":
    common.main()
