# SPDX-License-Identifier: Apache-2.0
"""Signed receipts: key files, good signatures, and the reasons for which each is refused."""

import stat
import tempfile
import unittest
from pathlib import Path

import common
import receipt_tools as tools
from common import tern, tern_text
from receipt_case import WithReceipt


def has_signatures():
    with tempfile.TemporaryDirectory() as folder:
        return tern("keygen", Path(folder) / "key").returncode == 0


class Signing(WithReceipt):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not has_signatures():
            raise unittest.SkipTest("built without libsodium")
        for name in ("mine", "other"):
            tern_text("keygen", cls.folder / name)
        cls.mine, cls.public = cls.folder / "mine", cls.folder / "mine.pub"
        cls.signed_path = cls.folder / "signed.json"
        cls.make(cls.signed_path, "--sign-key", cls.mine)
        cls.signed = tools.load(cls.signed_path)

    def test_keys(self):
        """Secret keys are their owner's; nothing is overwritten, not even half a pair."""
        self.assertEqual(stat.S_IMODE(self.mine.stat().st_mode), 0o600)
        content = self.mine.read_text(), self.public.read_text()
        self.assertRegex(content[0], r"^tern-ed25519-secret-key [0-9a-f]{64}\n$")
        self.assertRegex(content[1], r"^tern-ed25519-public-key [0-9a-f]{64}\n$")
        self.assert_one_line_error(tern("keygen", self.mine), 2, contains=["mine"])
        lone = self.folder / "lone"
        lone.with_suffix(".pub").write_text("x", encoding="utf-8")
        self.assert_one_line_error(tern("keygen", lone), 2, contains=["lone.pub"])
        self.assertFalse(lone.exists())
        self.assertEqual(content, (self.mine.read_text(), self.public.read_text()))

    def test_good(self):
        text = tern_text("verify", self.signed_path, "--public-key", self.public)
        self.assertIn("good, by the key in", text)
        self.assertEqual(tern("verify", self.signed_path).returncode, 0)

    def test_refused(self):
        key = ("--public-key", self.public)
        self.assert_refused(self.receipt, "signature: is missing", options=key)
        wrong = ("--public-key", self.folder / "other.pub")
        self.assert_refused(self.signed, "is not the key in", options=wrong)
        for field in ("value", "public_key"):
            value = tools.other(self.signed["signature"][field])
            changed = tools.put(self.signed, ("signature", field), value)
            for options in ((), key):
                self.assert_refused(changed, "is not a signature of this content", options=options)

    def test_sealed_anew(self):
        """A signature notices the changes that the rules do not."""
        changed = tools.change(self.signed, "timestamp", "2020-01-01T00:00:00Z")
        self.assert_refused(changed, "is not a signature of this content")
        unsigned = tools.drop(changed, ("signature",))
        self.assertEqual(self.verify(unsigned)[0], 0)
        self.assert_refused(unsigned, "signature: is missing", options=("--public-key", self.public))

    def test_bad_key_files(self):
        bad = self.folder / "bad"
        for text in ("", "tern-ed25519-public-key 12\n", self.mine.read_text()):
            bad.write_text(text, encoding="utf-8")
            result = tern("verify", self.signed_path, "--public-key", bad)
            self.assert_one_line_error(result, contains=["bad: no key"])
        out = self.folder / "unwritten.json"
        run = ["run", "-m", self.model, "--tokens", "1", "-n", 1, "--receipt", out]
        self.assertEqual(tern(*run, "--sign-key", self.public).returncode, 1)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    common.main()
