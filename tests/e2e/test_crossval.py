# SPDX-License-Identifier: Apache-2.0
"""tern crossval: against stored answers of other engines, and its figures against NumPy's."""

import json
import struct
import sys
import tempfile
import unittest.mock
from pathlib import Path

import common
import suite
import gguf_edit
from common import comma, prompt, tern, tern_text

GOLDEN = common.ROOT / "tests" / "golden"


def crossval(model, reference, *options):
    """(exit status, the JSON line)."""
    result = tern("crossval", "-m", model, "--reference", reference, "--json", *options)
    lines = result.stdout.decode().splitlines()
    if len(lines) != 1:
        raise AssertionError(result.stderr.decode() or f"{len(lines)} lines")
    return result.returncode, json.loads(lines[0])


class Golden(common.TernTest):
    """tern's answers equal the recorded answers of other engines (docs/validation.md)."""

    def check(self, model, name, cosine, steps, equal):
        status, found = crossval(model, GOLDEN / f"{name}.json")
        print(
            f"{name}: mean cosine {found['cosine_mean']:.7f}, least {found['cosine_min']:.7f}, "
            f"{found['greedy_equal']} of {found['greedy_steps']} tokens, "
            f"{found['near_ties']} of {found['differences']} differences are near-ties",
            flush=True,
        )
        self.assertEqual(status, 0)
        self.assertTrue(found["passed"])
        self.assertGreaterEqual(found["cosine_min"], cosine)
        self.assertEqual(found["greedy_steps"], steps)
        self.assertGreaterEqual(found["greedy_equal"], equal)
        self.assertTrue(all(case["text_equal"] in (None, True) for case in found["cases"]))

    def test_small_model_transformers(self):
        self.check(common.small_model(), "tern-small-transformers", 0.999, 192, 192)

    def test_small_model_transformers_f32(self):
        """With keys and values in float32, as transformers has them, the difference is only float32's rounding."""
        reference = GOLDEN / "tern-small-transformers.json"
        _, found = crossval(common.small_model(), reference, "--kv", "f32", "--tolerance", "1")
        self.assertLess(found["max_abs"], 1e-3)
        self.assertLess(found["scaled_mse"], 1e-5)

    def test_architectures(self):
        """llama, qwen2 and qwen3 as transformers computes them, on models with random weights."""
        with tempfile.TemporaryDirectory() as folder:
            for preset, cosine in (("llama-tiny-f32", 0.9999), ("qwen2-tiny", 0.998), ("qwen3-tiny", 0.998)):
                with self.subTest(preset=preset):
                    model = common.synth(preset, folder)
                    self.check(model, f"{preset}-transformers", cosine, 24, 23)

    def test_smollm2_transformers(self):
        self.check(common.smollm2(), "smollm2-transformers", 0.995, 240, 228)

    def test_smollm2_llama_cpp(self):
        self.check(common.smollm2(), "smollm2-llama-cpp", 0.995, 240, 228)

    def test_smollm2_differs_by_rounded_activations_alone(self):
        """The oracle, which agrees with tern, agrees with transformers once its activations stay
        floats: nothing but their int8 codes lies between the two."""
        golden = json.loads((GOLDEN / "smollm2-transformers.json").read_text())
        case = golden["cases"][0]
        rows = [row for row in case["some"] if row["position"] <= 20]
        tokens = (case["tokens"] + case["greedy"])[: rows[-1]["position"] + 1]
        with unittest.mock.patch("forward.quantize_blocks", lambda x: x):
            logits = forward.Model(Container(common.smollm2())).logits(tokens, "f32")
        differences = [np.abs(logits[r["position"], r["ids"]] - r["logits"]).max() for r in rows]
        print(f"oracle without rounding, transformers: {max(differences):.2g} at most", flush=True)
        self.assertGreaterEqual(len(rows), 3)
        self.assertLess(max(differences), 1e-3)

    def test_provenance(self):
        files = sorted(GOLDEN.glob("*.json"))
        self.assertGreaterEqual(len(files), 3)
        self.assertLess(sum(f.stat().st_size for f in files), 200_000)
        for file in files:
            head = json.loads(file.read_text())
            self.assertRegex(head["model"]["sha256"], "^[0-9a-f]{64}$", file)
            self.assertRegex(head["date"], r"^20\d\d-\d\d-\d\d$", file)
            self.assertTrue(head["engine"]["version"] and head["engine"]["settings"], file)


class Figures(common.TernTest):
    """References made of tern's own logits, changed by known amounts."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        cls.model = common.synth("bitnet-tiny", cls.folder.name)
        cls.vocabulary = gguf_edit.vocabulary(cls.model)
        cls.tokens = prompt(40, cls.vocabulary)
        logits = cls.path / "tern.f32"
        tern_text("logits", "-m", cls.model, "--tokens", comma(cls.tokens), "--all", "-o", logits)
        cls.ours = np.fromfile(logits, "<f4").reshape(len(cls.tokens), -1)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def write(self, case, logits=None, **head):
        """A reference of one case; the path of its JSON."""
        case = {"name": "one", "tokens": self.tokens} | case
        if logits is not None:
            case["logits"] = "logits.f32"
            np.asarray(logits).astype("<f4").tofile(self.path / "logits.f32")
        path = self.path / "reference.json"
        path.write_text(json.dumps({"tern_reference": 1, "cases": [case]} | head))
        return path

    def refused(self, reference, *contains, model=None):
        result = tern("crossval", "-m", model or self.model, "--reference", reference)
        self.assert_one_line_error(result, contains=contains)

    def test_equal(self):
        status, found = crossval(self.model, self.write({}, self.ours), "--tolerance", 0.99999999)
        self.assertEqual(status, 0)
        self.assertEqual(found["positions"], 40)
        self.assertEqual((found["max_abs"], found["scaled_mse"], found["top1"]), (0, 0, 1))
        self.assertAlmostEqual(found["cosine_min"], 1, delta=1e-12)
        self.assertAlmostEqual(found["kl_max"], 0, delta=1e-12)

    def test_what_is_said_of_the_reference(self):
        for head, said in (({}, "other 7"), ({"settings": "f32"}, "other 7: f32"), ({"settings": "f32", "date": "2025-01-02"}, "other 7: f32, 2025-01-02")):
            engine = {"name": "other", "version": "7"} | {k: v for k, v in head.items() if k == "settings"}
            path = self.write({}, self.ours, engine=engine, **{k: v for k, v in head.items() if k == "date"})
            self.assertIn(f"reference  {said}\n", tern_text("crossval", "-m", self.model, "--reference", path))

    def test_figures(self):
        """Every figure of a reference with known errors, by NumPy in float64."""
        noise = np.random.default_rng(1).normal(size=self.ours.shape).astype("<f4")
        theirs = self.ours + noise * self.ours.std() / 20
        status, found = crossval(self.model, self.write({}, theirs), "--threads", 1)
        r, o = theirs.astype(float), self.ours.astype(float)
        cosine = (r * o).sum(1) / np.linalg.norm(r, axis=1) / np.linalg.norm(o, axis=1)
        log_r, log_o = (x - np.log(np.exp(x).sum(1, keepdims=True)) for x in (r, o))
        kl = (np.exp(log_r) * (log_r - log_o)).sum(1)
        expected = {
            "cosine_min": cosine.min(),
            "cosine_mean": cosine.mean(),
            "max_abs": np.abs(r - o).max(),
            "rms": np.sqrt(((r - o) ** 2).mean()),
            "scaled_mse": ((r - o) ** 2).sum() / ((r - r.mean(1, keepdims=True)) ** 2).sum(),
            "top1": (r.argmax(1) == o.argmax(1)).mean(),
            "kl_mean": kl.mean(),
            "kl_max": kl.max(),
        }
        for name, value in expected.items():
            self.assertAlmostEqual(found[name] / value, 1, delta=1e-9, msg=name)
        self.assertEqual(status, 0 if cosine.mean() >= 0.99 and cosine.min() >= 0.9 else 1)

    def test_some_logits(self):
        ids = [5, 1, 17]
        rows = [{"position": p, "ids": ids, "logits": self.ours[p, ids].tolist()} for p in (0, 39)]
        status, found = crossval(self.model, self.write({"some": rows}), "--tolerance", 0.999999)
        self.assertEqual((status, found["positions"], found["max_abs"]), (0, 2, 0))
        self.assertIsNone(found["kl_mean"])
        rows[1]["logits"][2] += 10
        status, found = crossval(self.model, self.write({"some": rows}))
        self.assertEqual(status, 1)
        self.assertAlmostEqual(found["max_abs"], 10, delta=1e-4)

    def test_wrong_model(self):
        """The logits of another model of the same shape fail, however many they are."""
        other = common.synth("bitnet-tiny", self.folder.name, seed=2)
        status, found = crossval(other, self.write({}, self.ours))
        self.assertEqual((status, found["passed"]), (1, False))
        self.assertLess(found["cosine_mean"], 0.5)

    def greedy(self, change=None, margins=None, noise=0.0):
        """Eight tokens of the prompt are taken for its continuation, which tern would not choose,
        unless they are replaced by the best ones."""
        best = self.ours.argmax(1).tolist()
        tokens, greedy = self.tokens[:39], [best[38]]
        if change is not None:
            greedy = [change]
        case = {"tokens": tokens, "greedy": greedy} | ({"margins": [margins]} if margins else {})
        logits = self.ours[:39] + noise * np.random.default_rng(2).normal(size=self.ours[:39].shape)
        return crossval(self.model, self.write(case, logits))

    def test_greedy(self):
        status, found = self.greedy()
        self.assertEqual((status, found["greedy_equal"], found["greedy_steps"]), (0, 1, 1))
        second = int(np.argsort(self.ours[38])[-2])
        status, found = self.greedy(change=second)  # logits are equal: nothing explains it
        self.assertEqual((status, found["greedy_equal"], found["near_ties"]), (1, 0, 0))
        difference = found["cases"][0]["differences"][0]
        self.assertEqual((difference["reference"], difference["step"]), (second, 0))
        gap = float(np.sort(self.ours[38])[-1] - self.ours[38][second])
        self.assertAlmostEqual(difference["tern_margin"], gap, delta=1e-6)

    def test_near_tie(self):
        """A margin below three standard deviations of the differences explains another token."""
        second = int(np.argsort(self.ours[38])[-2])
        noise = 0.01
        for margin, tie in ((0.03, 1), (0.06, 0)):  # 3 sqrt(2) 0.01 = 0.042
            status, found = self.greedy(change=second, margins=margin, noise=noise)
            self.assertEqual((status, found["near_ties"]), (1 - tie, tie))
            self.assertAlmostEqual(found["cases"][0]["tie_margin"], 0.0424, delta=1e-3)

    def test_refusals(self):
        short = np.concatenate([self.ours.reshape(-1), np.zeros(3)])
        self.refused(self.write({}, short), "logits.f32", "rows of")
        self.refused(self.write({"first": 30}, self.ours), "40 rows from position 30", "40 positions")
        broken = self.ours.copy()
        broken[3, 5] = np.nan
        self.refused(self.write({}, broken), "number 5 of row 3")
        large = self.write({"tokens": [self.vocabulary], "greedy": [1]})
        self.refused(large, f"id {self.vocabulary}", f"has {self.vocabulary}")
        row = {"position": 40, "ids": [1], "logits": [0]}
        self.refused(self.write({"some": [row]}), "position 40 of 40")
        self.refused(self.write({"logits": "missing.f32"}), "missing.f32")
        self.refused(self.write({"tokens": [1] * 100_000, "greedy": [1]}), "context")
        self.refused(self.path / "nothing.json", "nothing.json")
        self.refused(self.write({"greedy": [1]}, model={"sha256": "0" * 64, "file": "x"}), "SHA-256", "not 000")
        self.refused(self.write({"greedy": [1]}, tern_reference=7), "tern_reference is 7")
        np.zeros(7, "<f4").tofile(self.path / "k.f32")
        self.refused(self.write({"keys": "k.f32", "values": "k.f32"}), "k.f32", "rows of")
        result = tern("crossval", "-m", self.model)
        self.assert_one_line_error(result, status=2, contains=["--reference"])

    def test_nothing_compared(self):
        """Keys with a slip of the pen are named with file and case, and a case without any comparison fails."""
        for key in ("greedi", "logit", "margin"):
            self.refused(self.write({key: [1]}), "reference.json: one: ", f"'{key}' is not a key")
        self.refused(self.write({}), "reference.json: one: nothing to compare")
        self.refused(self.write({"greedy": [], "some": []}), "nothing to compare")
        self.refused(self.write({}, self.ours, cases_=[]), "'cases_' is not a key")

    def test_prompt(self):
        """-p takes the case of that text, whose tokens must be tern's."""
        model = common.small_model()
        golden = GOLDEN / "tern-small-transformers.json"
        _, found = crossval(model, golden, "-p", "Once upon a time")
        self.assertEqual([case["name"] for case in found["cases"]], ["story"])
        missing = tern("crossval", "-m", model, "--reference", golden, "-p", "Never asked")
        self.assert_one_line_error(missing, contains=["Never asked"])
        for change in (lambda text: text + "!", lambda text: text.replace("17", "18")):
            reference = json.loads(golden.read_text())
            reference["cases"][0]["text"] = change(reference["cases"][0]["text"])
            changed = self.path / "changed.json"
            changed.write_text(json.dumps(reference))
            status, found = crossval(model, changed)
            self.assertEqual((status, found["cases"][0]["text_equal"]), (1, False))


class Ask(common.FolderTest):
    """Without a reference an installed engine is asked. Here a script stands in for its Python, and gives the answers
    of the real one."""

    def setUp(self):
        self.home = self.dir / self.id().rpartition(".")[2]
        self.home.mkdir()

    def install(self, body):
        place = self.home / "reference" / "transformers"
        (place / "bin").mkdir(parents=True)
        requirements = common.ROOT / "lab" / "reference" / "requirements-transformers.txt"
        (place / "installed.txt").write_text(requirements.read_text())
        python = place / "bin" / "python"
        python.write_text(f"#!/bin/sh\n{body}\n")
        python.chmod(0o755)

    def ask(self, *options, prompt="Once upon a time"):
        env = {"TERN_CACHE": str(self.home), "TMPDIR": str(self.home)}
        return tern("crossval", "-m", common.small_model(), "-p", prompt, *options, env=env)

    def left(self):
        return sorted(p.name for p in self.home.iterdir() if p.name.startswith("tern-crossval"))

    def test_nobody(self):
        result = self.ask()
        self.assert_one_line_error(result, 2, ["no other engine is installed", "--reference FILE"])
        self.assertEqual(self.left(), [])

    def test_installed(self):
        golden = GOLDEN / "tern-small-transformers.json"
        arguments = self.home / "arguments"
        self.install(f'printf "%s\\n" "$@" > {arguments}\nfor file; do :; done\ncp {golden} "$file"')
        result = self.ask("--json")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        found = json.loads(result.stdout)
        self.assertEqual([case["name"] for case in found["cases"]], ["story"])
        self.assertTrue(found["passed"])
        said = arguments.read_text().splitlines()
        self.assertEqual(said[1:5], [str(common.small_model()), "--installed", "-p", "Once upon a time"])
        self.assertEqual(self.left(), [])

    def test_failure(self):
        self.install("echo broken >&2; exit 1")
        result = self.ask()
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"could not ask another engine", result.stderr)
        self.assertEqual(self.left(), [])


class Dump(common.FolderTest):
    def test_raw_floats(self):
        """The reference has logits as a program in C would fwrite them, and one line of JSON by hand: the shipped I2_S
        model agrees with the oracle within the 1e-5 that is asked beside a reference implementation."""
        model, tokens = common.small_model(), prompt(24, 1024)
        logits = forward.Model(Container(model)).logits(tokens, "f32")
        with open(self.dir / "dump.f32", "wb") as file:
            for row in logits:
                file.write(struct.pack(f"<{len(row)}f", *row))
        line = '{"tern_reference": 1, "cases": [{"tokens": [%s], "logits": "dump.f32"}]}'
        path = self.dir / "reference.json"
        path.write_text(line % comma(tokens))
        status, found = crossval(model, path, "--kv", "f32")
        print(f"scaled MSE {found['scaled_mse']:.3g}, cosine {found['cosine_min']:.9f}", flush=True)
        self.assertEqual((status, found["positions"], found["top1"]), (0, 24, 1))
        self.assertLess(found["scaled_mse"], 1e-5)
        self.assertGreater(found["cosine_min"], 0.99)


class Oracle(common.FolderTest):
    """The oracle as the engine, through the writer that other engines use: logits, tokens, K and V."""

    def ask(self, model, ids):
        engine = reference.load_engine("oracle", model, 1)
        case = reference.ask_one(engine, "oracle", ids, 4)
        reference.write_folder(self.dir / "o", reference.head(engine, model, "today"), [case])
        return case

    def check(self, model, ids, cosine):
        case = self.ask(model, ids)
        status, found = crossval(model, self.dir / "o" / "reference.json")
        self.assertEqual(status, 0, found)
        self.assertGreater(found["cosine_min"], cosine)
        self.assertGreater(found["kv_cosine_min"], cosine)
        layers, heads, positions, width = case.cache[0].shape
        one = found["cases"][0]
        self.assertEqual(one["kv_shape"], [layers, heads, positions, width])
        self.assertEqual(len(one["kv_layers"]), layers)
        self.assertEqual(positions, len(ids))
        print(f"{model.name}: K and V {one['kv_shape']}, least cosine {found['kv_cosine_min']:.7f}")

    def test_keys_and_values(self):
        for preset in ("llama-tiny-f32", "bitnet-tiny", "bitnet-tiny-odd"):
            with self.subTest(preset=preset):
                model = common.synth(preset, self.dir)
                self.check(model, prompt(30, gguf_edit.vocabulary(model)), 0.9999)

    def test_small_model(self):
        self.check(common.small_model(), prompt(20, 1024), 0.999)

    def test_changed_cache(self):
        """One head's values of one layer turned round: the right layer is named."""
        model = common.synth("bitnet-tiny", self.dir)
        case = self.ask(model, prompt(30, gguf_edit.vocabulary(model)))
        values = case.cache[1].copy()
        values[1, 0] *= -1
        values.astype("<f4").tofile(self.dir / "o" / "0-values.f32")
        status, found = crossval(model, self.dir / "o" / "reference.json")
        least = [layer["value_cosine_min"] for layer in found["cases"][0]["kv_layers"]]
        self.assertEqual(status, 1)
        self.assertEqual([x < 0 for x in least], [i == 1 for i in range(len(least))])


if __name__ == "__main__":
    try:
        import gguf  # noqa: F401
        import numpy as np
    except ImportError as missing:
        suite.skip(f"{missing} (pip install -r tests/oracle/requirements.txt)")
    sys.path[:0] = [str(common.ROOT / "lab" / "reference"), str(common.ROOT / "tests" / "oracle")]
    import forward
    import reference
    from container import Container

    common.main()
