# SPDX-License-Identifier: Apache-2.0
"""tern serve: models with tokens for it fill in what is missing between two texts."""

import tempfile
from pathlib import Path

import common
import json_schema
import tool_model
from serving import Server
from test_serve import Served

MARKS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")


class Fills(Served):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        path = Path(folder.name) / "fills.gguf"
        tool_model.write(path, tool_model.PLAIN, *((mark, 3) for mark in MARKS))
        cls.server = Server("-m", path, *cls.options)
        cls.addClassCleanup(cls.server.stop)

    def digest(self, path="/v1/completions", **fields):
        reply = self.server.post(path, max_tokens=4, temperature=0, **fields)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()["tern"]["digest"]

    def test_the_prompt_has_a_gap(self):
        before, after, middle = MARKS
        wanted = self.digest(prompt=f"{before}Once{after}there was{middle}")
        self.assertEqual(self.digest(prompt="Once", suffix="there was"), wanted)
        self.assertEqual(self.digest("/completion", prompt="Once", suffix="there was"), wanted)
        self.assertNotEqual(self.digest(prompt="Once", suffix="there"), wanted)
        self.assertEqual(self.digest(prompt="Once", suffix=""), self.digest(prompt="Once"))
        body = self.server.post("/api/generate", prompt="Once", suffix="there was", stream=False, options={"num_predict": 4, "temperature": 0}).json()
        self.assertEqual(body["tern"]["digest"], wanted)
        echoed = self.server.post("/v1/completions", prompt="Once", suffix="there was", max_tokens=4, temperature=0, echo=True).json()
        self.assertTrue(echoed["choices"][0]["text"].startswith("Once"))

    def test_infill(self):
        before, after, middle = MARKS
        given = {"input_prefix": "Once", "input_suffix": "there was"}
        self.assertEqual(self.digest("/infill", **given), self.digest(prompt="Once", suffix="there was"))
        self.assertEqual(self.digest("/infill", **given, prompt=" upon"), self.digest("/completion", prompt=" upon", **given))
        self.assertEqual(self.digest("/infill", input_prefix="Once", input_suffix=""), self.digest(prompt=f"{before}Once{after}{middle}"))
        document = self.server.get("/openapi.json").json()
        described = document["paths"]["/infill"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
        reply = self.server.post("/infill", max_tokens=4, **given).json()
        self.assertEqual(list(json_schema.problems(reply, described, document=document)), [])
        extra = [{"text": "The hat", "filename": "a.txt"}]
        ids = [self.server.post("/tokenize", content=text, parse_special=True).json()["tokens"]
               for text in ("\n\n--- a.txt ---\n\n", "The hat", f"{before}", "Once", f"{after}", "there was", f"{middle}")]
        begin = self.server.post("/tokenize", content="", add_special=True).json()["tokens"]
        wanted = self.digest("/completion", prompt=begin + sum(ids, []))
        self.assertEqual(self.digest("/infill", **given, input_extra=extra), wanted)
        for name, fields in (("input_prefix", {"input_suffix": "a"}), ("input_suffix", {"input_prefix": "a"}), ("input_extra", {**given, "input_extra": [3]})):
            self.refused(self.server.post("/infill", **fields), 400, name)

    def test_what_cannot_be_filled_in(self):
        for fields in ({"prompt": [1, 2]}, {"prompt": "a", "echo": True, "logprobs": 1}, {"prompt": "a", "suffix": 3}):
            self.refused(self.server.post("/v1/completions", **{"suffix": "b", "max_tokens": 1} | fields), 400, "suffix")


class Others(Served):
    def test_models_without_the_tokens(self):
        error = self.refused(self.server.complete("a", suffix="b"), 400, "suffix")
        self.assertIn("no tokens", error["message"])
        self.refused(self.server.post("/infill", input_prefix="a", input_suffix="b"), 400, "input_suffix")


if __name__ == "__main__":
    common.main()
