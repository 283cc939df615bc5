# SPDX-License-Identifier: Apache-2.0
"""tern verify-determinism: every set and layout is run, and the hash depends on nothing else."""

import re
import tempfile

import common
import weights
from common import tern, tern_text

LAYOUTS = weights.TERNARY_LAYOUTS


def verify(*options):
    """Returns (hash, the lines in front of it)."""
    *lines, last = tern_text("verify-determinism", *options).splitlines()
    found = re.fullmatch(r"one answer +([0-9a-f]{64})  \((\d+) runs of (\d+) tokens\)", last)
    assert found, last
    return found[1], lines


class Verify(common.TernTest):
    def test_small_model(self):
        _, lines = verify()
        ran = {tuple(line.split()[:2]) for line in lines}
        self.assertEqual(ran, {(i, layout) for i in common.runnable_isas() for layout in LAYOUTS})
        self.assertEqual(len(lines), len(ran))

    def test_hash_is_of_the_model(self):
        with tempfile.TemporaryDirectory() as folder:
            hashes = set()
            for preset in ("bitnet-tiny-odd", "qwen2-tiny", "qwen3-tiny"):
                model = common.synth(preset, folder)
                digest, lines = verify("-m", model)
                self.assertEqual(digest, verify("-m", model, "--isa", "scalar")[0])
                self.assertNotEqual(digest, verify("-m", model, "--isa", "scalar", "--kv", "q8_0")[0])
                hashes.add(digest)
                each = len(LAYOUTS) if preset.startswith("bitnet") else 1
                self.assertEqual(len(lines), each * len(common.runnable_isas()))
            self.assertEqual(len(hashes), 3)

    def test_how_tokens_are_fed(self):
        """The sessions fed tokens in other ways: other threads, calls and batches, and another sequence beside them."""
        with tempfile.TemporaryDirectory() as folder:
            model = common.synth("bitnet-tiny-odd", folder)
            said = tern("verify-determinism", "-m", model, "--isa", "scalar", "--verbose").stderr.decode()
        row = r"(?m)^  (\d+) threads, (\d+) passes, (\d+) tokens a call, batches of (\d+)(?:, beside (\d+) tokens of another sequence)?$"
        ways = [tuple(int(n or 0) for n in found) for found in re.findall(row, said)]
        self.assertEqual(len(ways), 8 * len(LAYOUTS), said)
        self.assertEqual(ways, ways[:8] * len(LAYOUTS))
        first = ways[:8]
        self.assertEqual({way[0] for way in first}, {1, 2, 3})
        self.assertEqual({way[3] for way in first}, {48, 5, 2})
        for _, passes, call, batch, beside in first:
            whole, rest = divmod(48, call)
            self.assertEqual(passes, whole * -(-call // batch) + -(-rest // batch))
            self.assertIn(beside, (0, 48))
        self.assertEqual({way[2] for way in first}, {48, 7, 5, 1})
        self.assertEqual(sum(way[4] > 0 for way in first), 2)

    def test_schedules(self):
        """Numbers begin with the seed, and the same sequences run each time."""
        with tempfile.TemporaryDirectory() as folder:
            model = common.synth("qwen3-tiny", folder)
            options = ("verify-determinism", "-m", model, "--schedules")
            two = tern_text(*options, 2, "--seed", 5)
            self.assertRegex(two, r"^2 of 2 schedules: the same  \(\d+ sequences, \d+ tokens, ")
            single = [tern_text(*options, 1, "--seed", seed, "--verbose") for seed in (5, 6)]
            tokens = [int(re.search(r"(\d+) tokens, ", said)[1]) for said in (two, *single)]
            self.assertEqual(tokens[0], tokens[1] + tokens[2])
            self.assertNotEqual(tokens[1], tokens[2])
            self.assert_one_line_error(tern(*options, 0), 2, ["--schedules"])

    def test_bad_model(self):
        result = tern("verify-determinism", "-m", "/nowhere/model.gguf")
        self.assert_one_line_error(result, contains=["/nowhere/model.gguf"])


if __name__ == "__main__":
    common.main()
