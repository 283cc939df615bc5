#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Varies what a machine decides: processors weaker than this one, cpuinfo that cannot start, 1 to 8
cores, caches from none to 1 GiB. The answer is the same everywhere, and so is everything that must not differ."""

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import common
import machines
from common import comma, prompt, tern, tern_json, tern_text

MODELS = ("bitnet-tiny", "llama-tiny-q4_k")
RUN = ("-n", 8, "--ignore-eos", "--seed", 5, "--temp", "0.7")
CORES = (1, 2, 3, 8)
CACHES = (0, 32 << 10, 1 << 20, 1 << 30)
MEASURED = ("tps", "_ms", "seconds", "gbs", "fraction", "rss")
shim = None


def pretend(**variables):
    """The environment of another machine: cpuinfo, cores, cache."""
    names = {f"PRETEND_{name.upper()}": str(value) for name, value in variables.items()}
    return {"LD_PRELOAD": str(shim), **names}


def steady(said):
    """Returns the part of an answer that is the same in every run, whatever a machine may choose."""
    chosen = ("isa", "choice", "kernels", "threads", "weights", "bytes_per_token", "affinity")
    return {k: v for k, v in said.items() if k not in chosen and not any(word in k for word in MEASURED)}


class Machine(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.models = [common.small_model(), *(common.synth(name, cls.dir) for name in MODELS)]
        cls.here = set(common.runnable_isas())
        cls.hashes = [cls.hash_of(model) for model in cls.models]
        cls.answers = [cls.answer(model) for model in cls.models]
        cls.receipt = cls.dir / "here.json"
        tern_text("run", "-m", cls.models[1], "--tokens", "1,2,3", *RUN, "--receipt", cls.receipt)

    @staticmethod
    def hash_of(model, env=None, *options):
        ids = comma(prompt(33, 256))
        return tern_text("logits", "-m", model, "--tokens", ids, "--all", "--sha256", *options, env=env).split()[0]

    @staticmethod
    def answer(model, env=None, *options):
        return tern_json("run", "-m", model, "--tokens", "1,2,3", *RUN, *options, env=env)

    def assert_rows_of(self, names, isas):
        self.assertEqual({name.rsplit("_", 1)[1] for name in names} - isas, set())

    def sample(self, env, isas):
        """Runs a little of everything on that machine."""
        kernels = json.loads(tern_text("kernels", "--json", env=env))
        self.assertEqual({row["isa"] for row in kernels if row["runnable"] and row["device"] == "cpu"}, isas)
        for model, wanted, answer in zip(self.models, self.hashes, self.answers):
            self.assertEqual(self.hash_of(model, env), wanted)
            said = self.answer(model, env)
            self.assertEqual(steady(said), steady(answer))
            self.assert_rows_of(said["kernels"], isas)
            self.assertTrue(tern_json("inspect", model, env=env)["runs_here"])
        self.tuned(env, isas)
        self.receipts(env)

    def tuned(self, env, isas):
        """The first run measures after its answer, the second finds the results."""
        cache = self.dir / "cache" / "-".join(f"{k}={v}" for k, v in env.items()).replace("/", "_")[-200:]
        measured = {"TERN_NO_TUNE": "0"} | env
        for choice in ("table", "tuned"):
            said = self.answer(self.models[1], measured, "--cache", cache)
            self.assertEqual(said["choice"], choice)
            self.assert_rows_of(said["kernels"], isas)
            self.assertEqual(said["tokens"], self.answers[1]["tokens"])
        self.assertEqual(len(list(cache.glob("tuning-*"))), 1)

    def receipts(self, env):
        """Receipts of one machine hold on the other."""
        there = self.dir / "there.json"
        tern_text("verify", self.receipt, "--replay", env=env)
        tern_text("run", "-m", self.models[1], "--tokens", "1,2,3", *RUN, "--receipt", there, env=env)
        tern_text("verify", there, "--replay", env=env)
        tern_text("verify", there, "--replay")
        there.unlink()


class Processors(Machine):
    def test_names(self):
        """The program's list is the one that is expected here."""
        self.assertEqual(machines.known(common.command()[0]), list(machines.PROCESSORS))

    def test_groups(self):
        """`make masks`: every name is in one group, with the names of the same kernels; each instruction set belongs to
        some group."""
        plain = common.clean_environment()
        plain.pop("TERN_PROCESSOR", None)
        groups = machines.groups(common.command()[0], plain)
        names = [name for first, (_, others) in groups.items() for name in (first, *others)]
        self.assertEqual(sorted(names), sorted(machines.PROCESSORS))
        for first, (rows, others) in groups.items():
            for name in (first, *others):
                self.assertEqual(set(rows.values()), machines.PROCESSORS[name] & self.here, name)
        own = machines.own_sets(common.command()[0], plain)
        wanted = set().union(*machines.PROCESSORS.values()) & self.here
        self.assertEqual({isa for sets in own.values() for isa in sets}, wanted)

    def test_every_processor(self):
        """Kernels that run, and the bits of two models' logits, under each name."""
        for name, has in machines.PROCESSORS.items():
            with self.subTest(processor=name):
                env = {"TERN_PROCESSOR": name}
                rows = json.loads(tern_text("kernels", "--json", env=env))
                runs = {row["isa"] for row in rows if row["runnable"] and row["device"] == "cpu"}
                self.assertEqual(runs, has & self.here)
                for model, wanted in zip(self.models[1:], self.hashes[1:]):
                    self.assertEqual(self.hash_of(model, env), wanted)

    def test_samples(self):
        """Runs more, where the processors of a name run other rows than those before."""
        for name, has in machines.classes(self.here).items():
            with self.subTest(processor=name):
                self.sample({"TERN_PROCESSOR": name}, set(has))

    def test_tune(self):
        cache = self.dir / "haswell"
        env = {"TERN_PROCESSOR": "haswell", "TERN_NO_TUNE": "0"}
        isas = machines.PROCESSORS["haswell"] & self.here
        said = tern_json("tune", "-m", self.models[1], "--threads", 1, "--cache", cache, env=env)
        for choice in said["choices"]:
            self.assert_rows_of([row["kernel"] for row in choice["candidates"]], isas)

    def test_unknown(self):
        for command in (["kernels"], ["run", "-n", 1], ["inspect", self.models[1]], ["tune"]):
            result = tern(*command, env={"TERN_PROCESSOR": "haswel"})
            self.assert_one_line_error(result, status=2, contains=["TERN_PROCESSOR", "'haswel'", "haswell"])

    def test_forced_set(self):
        """--isa asks for an instruction set that the pretended processor has."""
        for name in ("haswell", "nehalem"):
            for isa in self.here - machines.PROCESSORS[name]:
                result = tern("run", "-n", 1, "--isa", isa, env={"TERN_PROCESSOR": name})
                self.assert_one_line_error(result, status=2, contains=[isa, "valid: scalar"])


class Rest(Machine):
    def test_without_cpuinfo(self):
        """The same features, kernels and answers; the processor says its name itself."""
        env = pretend(cpuinfo=0)
        self.assertEqual(tern_text("kernels", "--json", env=env), tern_text("kernels", "--json"))
        self.assertRegex(tern_text("kernels", env=env), "this processor: \\S+ ")
        self.sample(env, self.here)
        self.assertEqual(self.answer(self.models[0], env)["kernels"], self.answers[0]["kernels"])

    def test_cores(self):
        for cores in CORES:
            with self.subTest(cores=cores):
                env = pretend(cores=cores) | {"HWLOC_SYNTHETIC": f"pack:1 core:{cores} pu:1"}
                self.sample(env, self.here)
                machine = tern_json("inspect", self.models[1], env=env)["machine"]
                if machine["processors"] != cores:  # without hwloc it is not told more than there are
                    self.assertIn(cores, (3, 8))
                for where in (env, pretend(cores=cores)):
                    for threads in (1, 3, 8):
                        said = self.hash_of(self.models[1], where, "--threads", threads)
                        self.assertEqual(said, self.hashes[1])

    def test_caches(self):
        for cache in CACHES:
            with self.subTest(cache=cache):
                self.sample(pretend(cache=cache), self.here)

    def test_together(self):
        """A small old machine in a container that hides everything."""
        env = pretend(cpuinfo=0, cores=1, cache=0) | {"TERN_PROCESSOR": "nehalem"}
        self.sample(env, self.here & machines.PROCESSORS["nehalem"])


if __name__ == "__main__":
    os.environ.pop("TERN_PROCESSOR", None)  # the tests name their own
    at = sys.argv.index("--shim")
    shim = Path(sys.argv[at + 1]).resolve()
    del sys.argv[at : at + 2]
    common.main()
