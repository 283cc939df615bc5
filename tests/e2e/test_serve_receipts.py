# SPDX-License-Identifier: Apache-2.0
"""Receipts of a server's answers: others run them again, on other kernels, and find changes."""

import concurrent.futures
import copy
import json
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

import common
import json_schema
import receipt_tools
from common import suite, tern, tern_text
from serving import Server
from test_serve import QUESTION, SAMPLED, Served
from test_serve_forms import USER, events_of

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "answer.schema.json"
SAMPLE = {k: v for k, v in SAMPLED.items() if k != "max_tokens"} | {"receipt": True}


class Receipts(Served):
    def verify(self, receipt, *options, **environment):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "receipt.json"
            path.write_text(json.dumps(receipt))
            return tern("verify", path, *options, env=environment)

    def assert_good(self, receipt, *options, **environment):
        result = self.verify(receipt, "--replay", *options, **environment)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        self.assertIn(b"digest of hidden states, the same bits", result.stdout)

    def assert_refused(self, receipt, *texts):
        result = self.verify(receipt_tools.seal(receipt), "--replay")
        self.assertEqual(result.returncode, 1, result.stdout.decode())
        for text in texts:
            self.assertIn(text, result.stderr.decode())

    def test_on_other_kernels(self):
        body = self.server.complete("Once upon", max_tokens=24, **SAMPLE).json()
        receipt = body["tern"]["receipt"]
        self.assertEqual(body["tern"]["digest"], [receipt["output"]["hidden_sha256"]])
        self.assertEqual(body["system_fingerprint"], receipt["system_fingerprint"])
        self.assertEqual(self.server.complete("Once upon", **SAMPLED).json()["tern"]["digest"], body["tern"]["digest"])
        self.assertEqual(list(json_schema.problems(receipt, json.loads(SCHEMA.read_text()))), [])
        self.assert_good(receipt, "--threads", 1, "--batch", 2)
        for processor in ("nehalem", "haswell", "scalar"):
            self.assert_good(receipt, TERN_PROCESSOR=processor)

    def test_in_every_form(self):
        fields = {"max_tokens": 9, **SAMPLE}
        talk = {"messages": USER, **fields}
        for path, asked in (("/v1/chat/completions", talk), ("/v1/messages", talk), ("/completion", {"prompt": "Once", **fields}),
                            ("/v1/responses", {"input": QUESTION, "max_output_tokens": 9, **SAMPLE})):
            with self.subTest(path=path):
                whole = self.server.post(path, **asked).json()["tern"]["receipt"]
                reply = self.server.post(path, **asked, stream=True)
                documents = [d for _, d in events_of(reply)] if path != "/v1/chat/completions" else reply.events()
                found = [t["receipt"] for t in (d.get("tern") or d.get("response", {}).get("tern") for d in documents) if t]
                self.assertEqual(len(found), 1)
                self.assertEqual(found[0]["output"], whole["output"])
                self.assert_good(found[0])

    def test_in_a_form(self):
        """The source of the grammar is recorded, and a replay masks by it."""
        schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
        wide = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        for fields, kind in (({"response_format": wide}, "schema"), ({"response_format": {"type": "json_object"}}, "schema"),
                             ({"grammar": 'root ::= [a-c]{3} "." [x-z]*'}, "grammar")):
            with self.subTest(kind=kind, fields=fields):
                receipt = self.server.post("/v1/chat/completions", messages=USER, max_tokens=24, temperature=1.2, seed=7, receipt=True, **fields).json()["tern"]["receipt"]
                self.assertEqual(receipt["form"]["kind"], kind)
                self.assertEqual(list(json_schema.problems(receipt, json.loads(SCHEMA.read_text()))), [])
                self.assert_good(receipt, TERN_PROCESSOR="nehalem")
                free = {key: value for key, value in receipt.items() if key != "form"}
                self.assert_refused(copy.deepcopy(free), "output.ids")
                for change, found in (("text", "form.text"), ("kind", "form.")):
                    broken = copy.deepcopy(receipt)
                    broken["form"][change] = "calls" if change == "kind" else "\x01"
                    self.assert_refused(broken, found)

    def test_how_answers_end(self):
        free = self.server.complete("Once upon", max_tokens=24).json()["choices"][0]["text"]
        for fields, end in (({"prompt": "Q: What is 2+2? A:"}, "end"), ({"prompt": "Once upon", "max_tokens": 3}, "length"),
                            ({"prompt": "Once upon", "stop": ["never", free[10:13]]}, "stop"),
                            ({"prompt": "Luna the panda " * 20, "max_tokens": -1, "ignore_eos": True}, None)):
            receipt = self.server.post("/v1/completions", **fields, receipt=True).json()["tern"]["receipt"]
            self.assertIn(receipt["output"]["stop"], (end,) if end else ("length", "context"))
            self.assert_good(receipt)

    def test_the_blank_before_an_answer(self):
        """Stop texts are searched without this blank, and a receipt says so: a replay stops at the same place."""
        for path, dropped in (("/v1/chat/completions", True), ("/completion", False)):
            asked = {"messages": USER} if dropped else {"prompt": "Q: What is 2+2? A:"}
            receipt = self.server.post(path, **asked, max_tokens=9, stop=[" 4"], receipt=True).json()["tern"]["receipt"]
            self.assertEqual(receipt["output"]["drop_space"], dropped)
            self.assertEqual(receipt["output"]["stop"], "end" if dropped else "stop")
            self.assert_good(receipt)

    def test_nothing_of_this_machine_but_names(self):
        text = json.dumps(self.server.complete("Once", max_tokens=2, receipt=True).json()["tern"]["receipt"])
        self.assertNotRegex(text, r'["\s=](/\w+){2,}')
        self.assertIn('"tern-small.gguf"', text)

    def test_what_was_changed_is_found(self):
        receipt = self.server.complete("Once upon", max_tokens=8, **SAMPLE).json()["tern"]["receipt"]
        broken = copy.deepcopy(receipt)
        broken["output"]["stop"] = "end"
        self.assertEqual(self.verify(broken).returncode, 1)  # the digest is another one
        for path, value, found in (
            ("output.hidden_sha256", "0" * 64, "output.hidden_sha256"),
            ("output.text_sha256", "0" * 64, "output.text_sha256"),
            ("model_info.sha256", "0" * 64, "model_info.sha256"),
            ("prompt.tokens", 2, "prompt.tokens"),
            ("output.ids_sha256", "0" * 64, "output.ids_sha256"),
            ("test_results.determinism_tests.identical_sequences", False, "identical_sequences"),
            ("test_results.accuracy_tests.i2s_accuracy.mse", 1e-9, "mse"),
        ):
            with self.subTest(path=path):
                self.assert_refused(receipt_tools.change(copy.deepcopy(receipt), path, value), found)
        other = copy.deepcopy(receipt)
        other["output"]["ids"][3] += 1
        other["output"]["ids_sha256"] = receipt_tools.hash_ids(other["output"]["ids"])
        self.assert_refused(other, "output.ids[3]: recorded")

    def test_list_is_complete(self):
        """Each field is derived, found by a replay, or on the page's list of fields that only a signature protects."""
        ask = lambda **fields: self.server.post("/v1/completions", receipt=True, **fields).json()["tern"]["receipt"]  # noqa: E731
        digits = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": digits}}
        whole = ask(prompt="Once upon", max_tokens=6, temperature=0.8, seed=5)
        asked = [(whole, ()), (ask(prompt="Q: What is 2+2? A:", max_tokens=9, stop=["zebra"]), ("output",)),
                 (ask(prompt="Once", max_tokens=24, response_format=form), ("output",))]
        self.assertEqual([receipt["output"]["stop"] for receipt, _ in asked], ["length", "end", "end"])
        passed = set()
        for receipt, parts in asked:
            changed = receipt_tools.forgeries(receipt, *parts)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                results = pool.map(lambda document: self.verify(document, "--replay", "--threads", 1), changed.values())
            passed |= {path for (path, _), result in zip(changed, results) if result.returncode == 0}
        listed = receipt_tools.unprotected("answers")
        if whole["machine"]["instruction_sets"] == ["scalar"]:
            listed = listed - {"test_results.accuracy_tests.*.gemv", "test_results.accuracy_tests.*.gemm"} | {"machine.architecture"}
        self.assertEqual(passed, listed)

    def test_of_one_answer(self):
        for fields in ({"n": 2}, {"prompt": ["a", "b"]}, {"echo": True, "max_tokens": 0}, {"receipt": 1}):
            self.refused(self.server.post("/v1/completions", **{"prompt": "a", "receipt": True} | fields), 400, "receipt")
        self.assertNotIn("receipt", self.server.complete("a", max_tokens=1, receipt=False).json()["tern"])

    def test_repetitions_are_counted(self):
        before = self.server.metrics()["tern_replays_total"]
        self.server.complete("Once", max_tokens=2, receipt=True)
        metrics = self.server.metrics()
        self.assertEqual(metrics["tern_replays_total"], before + 1)
        self.assertEqual(metrics["tern_replay_mismatch_total"], 0)

    def test_the_schema_is_up_to_date(self):
        self.assertEqual(SCHEMA.read_text(), tern_text("help", SCHEMA.name),
                         f"run: build/tern help {SCHEMA.name} > docs/schemas/{SCHEMA.name}")


LEAST = 19  # of priorities


def niceness(pid):
    """The niceness of each thread of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found.append(int((task / "stat").read_text().rpartition(")")[2].split()[16]))
        except FileNotFoundError:
            pass  # it has ended
    return found


class Preparation(common.FolderTest):
    SIZE = 512 << 20  # takes more than a second to hash

    @staticmethod
    def two_kinds(server):
        """Niceness of all threads, when they differ."""
        seen = niceness(server.process.pid)
        return seen if len(set(seen)) > 1 else None

    @unittest.skipUnless(sys.platform == "linux" and os.nice(0) < LEAST, "needs Linux, and a lower priority than that of the tests")
    def test_hashing_gives_way(self):
        """The thread that hashes the file is nicer than those that compute and reply; a receipt waits for it."""
        padded = self.dir / "padded.gguf"
        padded.write_bytes(common.small_model().read_bytes())
        os.truncate(padded, self.SIZE)
        with Server("-m", padded) as server:
            seen = suite.until(lambda: self.two_kinds(server))  # the thread may begin after the first reply
            self.assertEqual(max(seen), min(min(seen) + 10, LEAST))
            reply = server.complete("Once", max_tokens=2, receipt=True).json()
            self.assertEqual(reply["tern"]["receipt"]["model_info"]["file_bytes"], self.SIZE)


class SelfAudit(Served):
    options = ("--threads", 2, "--self-audit")

    def test_matrices_are_in_memory_once(self):
        shared = int(re.search(r"each, (\d+) bytes of matrices serve to repeat them, too", self.server.greeting[1])[1])
        self.assertGreater(shared, 0)

    def test_answers_are_repeated_when_there_is_time(self):
        for fields in ({"prompt": "Once upon", "temperature": 1.2}, {"prompt": "Q: What is 2+2? A:"},
                       {"prompt": "Once upon", "stop": "time", "n": 2}, {"prompt": "Once", "max_tokens": -1, "ignore_eos": True}):
            before = self.server.metrics()["tern_replays_total"]
            self.assertEqual(self.server.post("/v1/completions", **{"max_tokens": 16} | fields).status, 200)
            self.server.wait_for(lambda m, n=before: m["tern_replays_total"] == n + 1)
        self.assertEqual(self.server.metrics()["tern_replay_mismatch_total"], 0)
        self.server.complete("Once", max_tokens=0, echo=True)
        self.assertEqual(self.server.chat(QUESTION).status, 200)


if __name__ == "__main__":
    common.main()
