# SPDX-License-Identifier: Apache-2.0
"""tern serve: tools, and a schema for the answer beside them."""

import json

import common
from test_serve_tools import WARM, ToolTest


class Beside(ToolTest):
    def test_a_form_beside_them(self):
        """The answer is either calls in the tools' form, or a text in the form of the answer."""
        schema = {"type": "object", "properties": {"sum": {"enum": [1, 2, 3]}}, "required": ["sum"]}
        form = {"response_format": {"type": "json_schema", "json_schema": {"name": "sum", "strict": True, "schema": schema}}}
        text = self.choice(**form, **WARM, **self.biased(-100, 0))
        self.assertIn(json.loads(text["message"]["content"]), [{"sum": n} for n in (1, 2, 3)])
        self.assertEqual((text["finish_reason"], "tool_calls" in text["message"]), ("stop", False))
        called = self.choice(**form, **WARM, **self.biased(100, 0), max_tokens=400, parallel_tool_calls=False)
        self.check(called)
        self.assertEqual(called["message"]["content"], None)
        self.check(self.choice(**form, **WARM, tool_choice="required", max_tokens=400, parallel_tool_calls=False, **self.biased(-100, 0)))
        alone = self.choice(**form, **WARM, tool_choice="none")
        self.assertIn("sum", json.loads(alone["message"]["content"]))
        reply = self.chat(**form, **WARM, **self.biased(-100, 0), receipt=True).json()
        self.assertEqual(json.loads(reply["tern"]["receipt"]["form"]["calls"]["schema"]), schema)
        self.assertEqual(self.replay(reply["tern"]["receipt"]), 0)
        reply["tern"]["receipt"]["form"]["calls"]["schema"] = '{"type": "object", "maxProperties": 0}'
        self.assertEqual(self.replay(reply["tern"]["receipt"]), 1)


if __name__ == "__main__":
    common.main()
