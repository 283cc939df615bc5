# SPDX-License-Identifier: Apache-2.0
"""AC:5. A sound model of any format passes its own receipt, which says with which inputs its accuracy
was measured."""

import json

import common
import weights
from common import tern_text

TYPES = [*weights.PLAIN, "q4_k", "q5_k", "q6_k", "tq1_0", "tq2_0", "tl1", "f16"]
TOLERANCES = {"i2s": 1e-5, "f16": 1e-11}


class ReceiptFormats(common.FolderTest):
    def test_every_format(self):
        for kind in TYPES:
            with self.subTest(type=kind):
                tests = self.measured(kind)
                self.assertTrue(tests)
                for name, test in tests.items():
                    self.assertEqual(test["inputs"], "random sign, magnitude uniform in [0.5, 1)")
                    tolerance = TOLERANCES.get(name.removesuffix("_accuracy"), 1e-4)
                    self.assertEqual(test["tolerance"], tolerance, name)
                    self.assertLessEqual(test["mse"], tolerance, name)
                    # The rounding to int8 is visible here: floats would not measure anything.
                    if tolerance > 1e-11:
                        self.assertGreater(test["mse"], 1e-6, name)

    def measured(self, kind):
        """The accuracy tests of a receipt that was written and verified."""
        model, receipt = self.dir / f"{kind}.gguf", self.dir / f"{kind}.json"
        tiles = ("--tl-tiles", "32x32")
        tern_text("quantize", common.small_model(), model, "--type", kind, *tiles)
        options = ("-p", "One day", "-n", "2", "--receipt", receipt, *tiles)
        tern_text("run", "-m", model, *options)
        self.assertIn("good", tern_text("verify", receipt))
        return json.loads(receipt.read_text())["test_results"]["accuracy_tests"]


if __name__ == "__main__":
    common.main()
