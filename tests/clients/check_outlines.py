# SPDX-License-Identifier: Apache-2.0
"""outlines, by OpenAI's interface and by vLLM's: answers in classes, choices, patterns, grammars, streams."""

import json
from typing import Literal

import openai
import outlines
import pydantic
from outlines.types import CFG, JsonSchema, Regex

from check import equal, options

ASKED = dict(temperature=0, max_tokens=60)
QUESTION = "What is 2+2?"


class Answer(pydantic.BaseModel):
    sure: bool
    words: list[bool] = pydantic.Field(max_length=2)


def by_openai(client):
    model = outlines.from_openai(client, "tern-small")
    whole = model(QUESTION, **ASKED)
    equal("".join(model.stream(QUESTION, **ASKED)), whole, "a stream")
    Answer.model_validate_json(model(QUESTION, Answer, **ASKED))
    text = "".join(model.stream(QUESTION, Answer, **ASKED))
    equal(text, model(QUESTION, Answer, **ASKED), "a stream in a form")
    assert model(QUESTION, dict, **ASKED).lstrip().startswith("{")  # the small model writes on until the limit
    equal(len(model(QUESTION, n=2, **ASKED)), 2, "answers")


def by_vllm(client):
    model = outlines.from_vllm(client, "tern-small")
    Answer.model_validate_json(model(QUESTION, Answer, **ASKED))
    json.loads(model(QUESTION, JsonSchema('{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'), **ASKED))
    assert model(QUESTION, Literal["yes", "no"], **ASKED) in ("yes", "no")
    assert int(model(QUESTION, int, **ASKED)) is not None
    assert len(model(QUESTION, Regex(r"[0-9]{3}-[a-z]"), **ASKED)) == 5
    assert model(QUESTION, CFG('root ::= "left" | "right"'), **ASKED) in ("left", "right")
    equal("".join(model.stream(QUESTION, Literal["yes", "no"], **ASKED)), model(QUESTION, Literal["yes", "no"], **ASKED), "a stream of a choice")
    writer = outlines.Generator(model, Answer)
    Answer.model_validate_json(writer(QUESTION, **ASKED))


def main():
    with openai.OpenAI(base_url=options().address, api_key="none") as client:
        by_openai(client)
        by_vllm(client)


main()
