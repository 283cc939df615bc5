# SPDX-License-Identifier: Apache-2.0
"""--long-context: longrope's factors for the whole context, at every length, kept apart from the others."""

import common
from common import comma, tern, tern_json, tern_text

SHORT, LONG = 256, 512  # contexts of phi3-tiny


class LongContext(common.FolderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = common.synth("phi3-tiny", cls.dir)
        cls.ids = common.prompt(400, 300, 5)

    def hash(self, n, *options):
        return tern_text("logits", "-m", self.model, "--tokens", comma(self.ids[:n]), "--all", "--sha256", *options)

    def test_one_answer(self):
        """No split, set or context changes a bit; the factors are the same below and above the short context."""
        wanted = self.hash(400, "--long-context")
        for options in (["--split", "1"], ["--split", "255"], ["--split", "257"], ["--recompute"],
                        ["--isa", common.runnable_isas()[0], "--threads", "1"], ["-c", str(LONG)]):
            self.assertEqual(self.hash(400, "--long-context", *options), wanted, options)
        few = self.hash(40, "--long-context")
        self.assertEqual(self.hash(40, "--long-context", "-c", "64"), few)
        self.assertNotEqual(self.hash(40), few)
        rows = [tern_text("logits", "-m", self.model, "--tokens", comma(self.ids[:n]), "--all", "--long-context",
                          "--output", self.dir / f"{n}.f32", "--force") and (self.dir / f"{n}.f32").read_bytes()
                for n in (40, 400)]
        self.assertEqual(rows[0], rows[1][: len(rows[0])])

    def test_context(self):
        """The context is as long as the factors are for; a request for more is answered with a hint about the
        others."""
        for n, options, words in (
            (LONG, [], [f"exceeds the {SHORT}", f"({LONG} with its factors for a long context)"]),
            (LONG + 1, ["--long-context"], [f"exceeds the {LONG} that the model was trained for"]),
        ):
            result = tern("logits", "-m", self.model, "--tokens", "1", "-c", str(n), *options)
            self.assert_one_line_error(result, contains=words)
        self.assertNotIn(b"long context", result.stderr)
        other = common.synth("llama-tiny-q4_0", self.dir)
        result = tern("logits", "-m", other, "--tokens", "1", "--long-context")
        self.assert_one_line_error(result, contains=["no factors of its own for a longer context than 512"])

    def test_inspect(self):
        for options, words in (([], "longrope's short ones, for up to 256 positions"),
                               (["--long-context"], "longrope's long ones, for up to 512 positions")):
            self.assertIn(words, tern_text("inspect", self.model, *options))

    def test_sessions(self):
        """A session file belongs to the factors that it was computed with."""
        file = self.dir / "long.session"
        run = ("run", "-m", self.model, "--tokens", comma(self.ids[:100]), "-n", "4", "--prompt-cache", file)
        tern_text(*run, "--long-context")
        self.assertEqual(tern_json(*run, "--long-context")["reused_tokens"], 99)
        self.assert_one_line_error(tern(*run), contains=["long.session", "another model"])

    def test_receipt(self):
        """The receipt names the factors, and a replay uses them."""
        receipt = self.dir / "receipt.json"
        tern_text("run", "-m", self.model, "--tokens", comma(self.ids[:300]), "-n", "8", "--long-context", "--receipt",
                  receipt)
        self.assertIn('"long_context": true', receipt.read_text())
        tern_text("verify", receipt, "--replay", "-m", self.model)


if __name__ == "__main__":
    common.main()
