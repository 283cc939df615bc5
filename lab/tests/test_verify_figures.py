# SPDX-License-Identifier: Apache-2.0
"""lab/verify-figures: signatures, files that are not documents, and parts of rules that no measured document breaks.
The rules themselves: tests/e2e/test_documents.py."""

import hashlib
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tests")]

import documents  # noqa: E402
import ed25519  # noqa: E402
import figure_rules  # noqa: E402
import sealing  # noqa: E402
import suite  # noqa: E402

COMPARISON = ROOT / "docs" / "receipts" / "amd-epyc-zen3-avx2" / "comparison-before.json"
# RFC 8032, section 7.1: key, message, signature.
KNOWN = (
    ("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24"
     "655141438e7a100b"),
    ("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb"
     "00d291612bb0c00"),
)  # fmt: skip


def packed(point):
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def sign(document, secret=12345):
    """Signs with a key that is not secret: the scalar itself."""
    message = f"tern receipt 1.0.0\n{document['digest']['value']}".encode()
    key, r = packed(ed25519.times(secret, ed25519.BASE)), packed(ed25519.times(777, ed25519.BASE))
    k = int.from_bytes(hashlib.sha512(r + key + message).digest(), "little")
    value = r + ((777 + k * secret) % ed25519.ORDER).to_bytes(32, "little")
    return document | {"signature": {"algorithm": "ed25519", "public_key": key.hex(), "value": value.hex()}}


class Signatures(unittest.TestCase):
    def test_known(self):
        for key, message, signature in KNOWN:
            key, message, signature = map(bytes.fromhex, (key, message, signature))
            self.assertTrue(ed25519.verifies(key, message, signature))
            self.assertFalse(ed25519.verifies(key, message + b"x", signature))
        s = int.from_bytes(signature[32:], "little") + ed25519.ORDER  # the same number otherwise written
        self.assertFalse(ed25519.verifies(key, message, signature[:32] + s.to_bytes(32, "little")))
        for wrong in (b"", key[:31], b"\x02" + bytes(31)):
            with self.assertRaises(ValueError):
                ed25519.verifies(wrong, message, signature)

    def test_documents(self):
        plain = json.loads(COMPARISON.read_text(encoding="utf-8"))
        signed = sign(plain)
        key = signed["signature"]["public_key"]
        self.assertEqual(figure_rules.check(signed, key, "key"), ("comparison", []))
        self.assertIn("is missing, must be by", figure_rules.check(plain, key, "key")[1][0])
        self.assertIn("is not the key in other", figure_rules.check(signed, "0" * 64, "other")[1][0])
        newer = sealing.seal(signed | {"timestamp": "2020-01-01T00:00:00Z"}) | {"signature": signed["signature"]}
        self.assertIn("is not a signature of this content", figure_rules.check(newer)[1][0])


class Parts(unittest.TestCase):
    def test_nodes(self):
        good = {"": set(), "0": {0}, "0-1,3": {0, 1, 3}, "0,2": {0, 2}}
        for text, nodes in good.items():
            self.assertEqual(documents.read_nodes(text), nodes)
        for text in ("1,0", "0-", "0,", "x", "2-1", "0-1,2", "0 1", "0,0", "4294967296"):
            self.assertIsNone(documents.read_nodes(text), text)

    def test_layouts(self):
        kernels = [kernel for kernel in documents.table()[1].values() if kernel.layout == "t5r16"][:1]
        for layout, finding in (("t5r16", None), ("mixed", None), (None, None), ("t2r16", "multiplies in t5r16"),
                                ("t9r16", "is not a layout of ternary matrices")):  # fmt: skip
            doc = documents.Place({"run": {"layout": layout}}, "", [])
            documents.check_layout(doc, kernels)
            self.assertEqual(len(doc.found), finding is not None, layout)
            self.assertIn(finding or "", " ".join(doc.found))

    def test_times(self):
        for time, good in (("2026-11-22T17:00:00Z", True), ("2024-02-29T00:00:00.5Z", True), ("2025-02-29T00:00:00Z", False),
                           ("2026-11-22T17:00:00+01:00", False), ("2026-11-22", False), ("2026-11-22T24:30:00Z", False)):  # fmt: skip
            doc = documents.Place({"timestamp": time}, "", [])
            documents.check_header(doc)
            self.assertEqual(not doc.found, good, time)


class Command(unittest.TestCase):
    def run_on(self, *words):
        return subprocess.run([sys.executable, ROOT / "lab" / "verify-figures", *words], capture_output=True, text=True)

    def test_no_documents(self):
        cases = {b"": "Expecting value", b"[]": "is not a JSON object", b'{"a": NaN}': "NaN is not a number",
                 b'{"a": 1, "a": 2}': "an object has the same name twice", b"{}": '$schema: is ""',
                 b'{"$schema": "urn:tern:receipt:1.0.0"}': "is not one of", b"\xff": "can't decode"}  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.json"
            for content, text in cases.items():
                path.write_bytes(content)
                done = self.run_on(path, COMPARISON)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
                self.assertIn(f"{path}: ", done.stderr)
                self.assertIn(text, done.stderr)
                self.assertIn(f"{COMPARISON}: good", done.stdout)
            done = self.run_on(COMPARISON, "--public-key", path)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("not a key of the kind", done.stderr)
        self.assertEqual(self.run_on().returncode, 2)

    def test_json(self):
        done = self.run_on(COMPARISON, "--json")
        told = {"receipt": str(COMPARISON), "kind": "comparison", "valid": True, "violations": [], "signed": False}
        self.assertEqual(json.loads(done.stdout), told)


if __name__ == "__main__":
    suite.main()
