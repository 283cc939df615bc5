# SPDX-License-Identifier: Apache-2.0
"""tern serve --keep-responses: a response goes on from an earlier one by its id."""

import tempfile
from pathlib import Path

import common
import tool_model
from serving import Server
from test_serve import Served
from test_serve_forms import events_of


def start(test, *options, **more):
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    path = Path(folder.name) / "kept.gguf"
    tool_model.write(path, tool_model.SPOKEN)
    server = Server("-m", path, "--keep-responses", 2, *options, **more)
    test.addCleanup(server.stop)
    return server


class Kept(Served):
    def test_a_response_goes_on(self):
        server = start(self)

        def ask(given, **fields):
            return server.post("/v1/responses", input=given, max_output_tokens=5, temperature=0, **fields)

        first = ask("Once").json()
        self.assertTrue(first["store"])
        events = events_of(ask("upon", previous_response_id=first["id"], stream=True))
        second = events[-1][1]["response"]
        self.assertEqual(second["previous_response_id"], first["id"])
        said = [{"role": "user", "content": "Once"}, *first["output"], {"role": "user", "content": "upon"}]
        self.assertEqual(second["tern"]["digest"], ask(said, store=False).json()["tern"]["digest"])
        third = ask([{"role": "user", "content": "a time"}], previous_response_id=second["id"]).json()
        said += [*second["output"], {"role": "user", "content": "a time"}]
        self.assertEqual(third["tern"]["digest"], ask(said, store=False).json()["tern"]["digest"])
        for gone in (first["id"], "resp_0", 3):  # two are kept
            self.refused(ask("x", previous_response_id=gone), 400, "previous_response_id")
        self.assertEqual(ask("x", previous_response_id=third["id"]).status, 200)
        untold = ask("x", store=False).json()
        self.assertFalse(untold["store"])
        self.refused(ask("x", previous_response_id=untold["id"]), 400, "previous_response_id")

    def test_a_response_is_told_again(self):
        """A response that is kept is told as it was, whole and of a stream; it is given up by DELETE. It cannot be
        cancelled, since none is in the background."""
        server = start(self)
        asked = {"input": "Once", "max_output_tokens": 5, "temperature": 0}
        whole = server.post("/v1/responses", **asked, timings_per_token=True, return_progress=True).json()
        self.assertEqual((whole["timings"]["predicted_n"], whole["tern"]["ignored"]), (5, ["return_progress"]))
        streamed = events_of(server.post("/v1/responses", **asked, stream=True))[-1][1]["response"]
        self.assertNotIn("timings", streamed)
        for response in (whole, streamed):
            path = f"/v1/responses/{response['id']}"
            self.assertEqual(server.get(path).json(), response)
            self.refused(server.get(path + "?stream=true"), 400, "stream")
            self.assertIn("background", self.refused(server.ask("POST", path + "/cancel"), 400, "response_id")["message"])
            self.assertEqual(server.ask("DELETE", path).json(), {"id": response["id"], "object": "response", "deleted": True})
            for method, gone in (("GET", path), ("DELETE", path), ("POST", path + "/cancel")):
                self.refused(server.ask(method, gone), 404, "response_id")
        with Server("-m", common.small_model()) as other:
            self.assertIn("--keep-responses", self.refused(other.get("/v1/responses/resp_0"), 404, "response_id")["message"])

    def test_each_key_has_its_own(self):
        server = start(self, env={"TERN_API_KEY": "one,two"})

        def ask(key, **fields):
            return server.post("/v1/responses", {"authorization": f"Bearer {key}"}, input="x", max_output_tokens=1, **fields)

        mine = ask("one").json()["id"]
        self.refused(ask("two", previous_response_id=mine), 400, "previous_response_id")
        self.refused(server.get(f"/v1/responses/{mine}", Authorization="Bearer two"), 404, "response_id")
        self.assertEqual(server.get(f"/v1/responses/{mine}", Authorization="Bearer one").json()["id"], mine)
        self.assertEqual(ask("one", previous_response_id=mine).status, 200)


if __name__ == "__main__":
    common.main()
