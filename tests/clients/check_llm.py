# SPDX-License-Identifier: Apache-2.0
"""Simon Willison's llm with its plugin for Ollama: a prompt, a conversation, a stream, a schema."""

import json
import os
import tempfile

from check import equal, options

given = options()
os.environ["OLLAMA_HOST"] = given.address.removesuffix("/v1")
os.environ["LLM_USER_PATH"] = tempfile.mkdtemp()
import llm


def main():
    model = llm.get_model("ollama/tern-small:latest")
    reply = model.prompt("What is 2+2?", temperature=0)
    equal(reply.text(), "4", "a prompt")
    equal("".join(model.prompt("What is 2+2?", temperature=0, stream=True)), "4", "a stream")
    talk = model.conversation()
    assert talk.prompt("What is 2+2?").text() and talk.prompt("And 3+3?").text()
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"], "additionalProperties": False}
    equal(list(json.loads(model.prompt("What is 2+2?", schema=schema).text())), ["sure"], "an answer in a form")


main()
