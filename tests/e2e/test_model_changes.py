# SPDX-License-Identifier: Apache-2.0
"""A model's file that is written to under a server or a run: what was computed meanwhile is not an answer."""

import http.client
import json
import os

import common
import receipt_tools
import serving
from common import tern
from serving import LONG, SLOW, Server
WRITTEN = "model.gguf: was written to while it was in use"


class Changes(common.FolderTest):
    def setUp(self):
        self.model = self.dir / "model.gguf"
        self.model.unlink(missing_ok=True)
        self.model.write_bytes(common.small_model().read_bytes())

    def overwrite(self):
        """Some weights become others, in place."""
        with open(self.model, "r+b") as file:
            file.seek(-4096, os.SEEK_END)
            file.write(os.urandom(4096))

    def assert_unhealthy(self, server):
        """The server is unhealthy for as long as the file is changed; then it soon ends by itself."""
        for path in ("/health", "/ready"):
            try:
                reply = server.get(path)
            except (OSError, http.client.HTTPException):
                continue
            self.assertEqual(reply.status, 503)
            self.assertEqual(reply.json()["error"]["code"], "model_changed")

    def test_of_a_server(self):
        """No answer ends as if nothing had happened; the server gives the reason, and ends with status 1."""
        with Server("-m", self.model, *SLOW) as server:
            connection = server.connect()
            body = json.dumps({"prompt": "Once upon a time", **LONG})
            connection.request("POST", "/v1/completions", body, serving.JSON)
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            response.readline()  # it is under way
            self.overwrite()
            self.assert_unhealthy(server)
            try:
                rest = response.read().decode()
            except (OSError, http.client.HTTPException):
                rest = ""  # the server ended first
            self.assertNotIn('"finish_reason":"length"', rest)
            self.assertNotIn('"finish_reason":"stop"', rest)
            connection.close()
            self.assertEqual(server.process.wait(), 1)
            self.assertIn(WRITTEN, server.log())

    def test_of_a_server_between_answers(self):
        """Every reply before the server ends is an error that names the file, without its folder."""
        with Server("-m", self.model) as server:
            self.assertEqual(server.complete("Once", max_tokens=2).status, 200)
            self.overwrite()
            try:
                reply = server.complete("Once", max_tokens=2, receipt=True)
            except (OSError, http.client.HTTPException):
                return  # it ended before it was asked
            self.assertIn(reply.status, (500, 503))
            if reply.status == 500:
                error = reply.json()["error"]
                self.assertEqual(error["code"], "model_changed")
                self.assertIn(WRITTEN, error["message"])
                self.assertNotIn(str(self.dir), error["message"])

    def test_replaced_by_its_name(self):
        """A new file under the same name does no harm: the old file stays mapped, and a receipt has the digest of the
        weights that computed."""
        with Server("-m", self.model) as server:
            before = server.complete("Once", max_tokens=4, temperature=0).json()["tern"]["digest"]
            other = self.dir / "other.gguf"
            other.write_bytes(b"another file")
            other.rename(self.model)
            reply = server.complete("Once", max_tokens=4, temperature=0, receipt=True).json()["tern"]
            self.assertEqual(reply["digest"], before)
            self.assertEqual(reply["receipt"]["model_info"]["sha256"], receipt_tools.hash_file(common.small_model()))
            self.assertEqual(server.get("/health").status, 200)

    def test_receipts_of_runs(self):
        """A receipt has the digest of the mapped file, as long as the mapped file is unchanged."""
        path = self.dir / "receipt.json"
        result = tern("run", "-m", self.model, "-p", "Once", "-n", 4, "--receipt", path, "--force")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(receipt_tools.load(path)["model_info"]["sha256"], receipt_tools.hash_file(self.model))


if __name__ == "__main__":
    common.main()
