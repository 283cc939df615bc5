# SPDX-License-Identifier: Apache-2.0
"""guidance by OpenAI's interface: texts, answers in a form, calls of functions. Its patterns, choices and grammars it
refuses by itself for this interface, whatever the server."""

import pydantic
from guidance import assistant, gen, system, user
from guidance import json as form
from guidance.models import OpenAI

from check import equal, options


class Answer(pydantic.BaseModel):
    sure: bool


def weather(city: str):
    """The weather of a city."""
    return f"Rain in {city}."


def asked(model):
    with system():
        model += "Be brief."
    with user():
        model += "What is 2+2?"
    return model


def main():
    given = options()
    begun = asked(OpenAI("tern-small", api_key="none", base_url=given.address, echo=False))
    with assistant():
        once, again = (begun + gen("answer", max_tokens=40) for _ in range(2))
        shaped = begun + form("answer", schema=Answer, max_tokens=60)
        free = begun + form("answer", max_tokens=40)  # the small model writes on until the limit
    assert once["answer"] and again["answer"], (once, again)
    Answer.model_validate_json(shaped["answer"])
    assert free["answer"].lstrip().startswith("{"), free["answer"]
    with given.server_with_tools() as address:
        begun = asked(OpenAI("tools", api_key="none", base_url=address + "/v1", echo=False))
        with assistant():
            begun += gen(tools=[weather], tool_choice="required")
        assert "<tool=weather>" in str(begun) and "Rain in" in str(begun), str(begun)
        with assistant():
            begun += gen("answer", max_tokens=10)
        equal("answer" in begun, True, "an answer after the result")


main()
