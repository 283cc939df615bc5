#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scripts that compare tern with other programs fail when nothing was compared: no case of that name, no texts.

The other programs are not needed: empty packages stand in for them."""

import importlib.util
import sys
import unittest
from collections import Counter
from pathlib import Path
from unittest import mock

import suite

TESTS = Path(__file__).resolve().parent
PACKAGES = ["numpy", "torch", "transformers", "safetensors", "safetensors.torch", "jinja2", "jsonschema", "llguidance"]
OWN = ["oracle", "gguf_edit", "gguf_tokenizer", "checkers", "generate", "tool"]


class NothingToDo:
    """A checker that has checked nothing, whatever it is called for."""

    def __init__(self, *_):
        self.counts, self.differences, self.chance = Counter(), [], mock.Mock()

    def __getattr__(self, _):
        return mock.MagicMock()


class Scripts(unittest.TestCase):
    def script(self, name):
        """Loads the module; its imports are empty."""
        path = TESTS / name
        with mock.patch.dict(sys.modules, {module: mock.MagicMock() for module in PACKAGES + OWN}):
            spec = importlib.util.spec_from_file_location(path.stem, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        return module

    def status(self, module, *arguments, **replaced):
        with mock.patch.multiple(module, **replaced), mock.patch.object(sys, "argv", ["script", *arguments]):
            try:
                return module.main()
            except SystemExit as ended:
                return ended.code

    def test_converted_models(self):
        module = self.script("convert_compare.py")
        self.assertEqual(self.status(module, "--tern", "tern", "--only", "lama", compare=mock.Mock(return_value=0)), 2)

    def test_tokenizers(self):
        module = self.script("tokenizers/parity.py")
        self.assertEqual(self.status(module, "--tool", "tool", all_cases=lambda *_: iter(())), 1)
        one = mock.Mock(return_value=mock.Mock())
        for compared, status in ((0, 1), (1, 0)):
            replaced = {"all_cases": lambda *_: iter((one,)), "compare": mock.Mock(return_value=(compared, 0, 0, compared))}
            self.assertEqual(self.status(module, "--tool", "tool", "-n", "5", **replaced), status)

    def test_ids_of_conversations(self):
        module = self.script("templates/check_ids.py")
        empty = mock.Mock(return_value=mock.Mock(template=None))
        self.assertEqual(self.status(module, "--tern", "tern", "--model", "m", Vocabulary=empty), 1)

    def test_formats_and_masks(self):
        for name, none in (("formats", "--texts"), ("llguidance", "--schemas"), ("values", "--schemas")):
            with self.subTest(name):
                module = self.script(f"grammars/check_{name}.py")
                self.assertEqual(self.status(module, "--tool", "tool", none, "0", Check=NothingToDo), 1)


if __name__ == "__main__":
    suite.main()
