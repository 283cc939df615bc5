# SPDX-License-Identifier: Apache-2.0
"""Tests of receipts share these: a run of a tiny model with its receipt, and the commands that verify documents."""

import concurrent.futures
import json
import tempfile
from pathlib import Path

import common
import receipt_tools as tools
from common import comma, prompt, tern, tern_text

TOKENS = 18  # generated: two digests at regular places and one behind the last token


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
        """Runs the model with a receipt; returns its output."""
        ids = comma(prompt(5, 256))
        run = ["run", "-m", cls.model, "--tokens", ids, "-n", TOKENS, "--ignore-eos"]
        return tern_text(*run, "--receipt", path, "--force", *options, **kwargs)

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
        """Says which of {name: document} are refused; several run at a time."""

        def one(item):
            return item[0], self.verify(item[1], *options, name=f"{abs(hash(item[0]))}.json")

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = dict(pool.map(one, documents.items()))
        for name, (status, lines) in results.items():
            self.assertIn(status, (0, 1), (name, lines))
        return {name for name, (status, _) in results.items() if status == 1}
