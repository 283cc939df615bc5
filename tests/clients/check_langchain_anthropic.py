# SPDX-License-Identifier: Apache-2.0
"""LangChain's client of Anthropic's interface: chats, streams, an answer in a form both ways, calls and results."""

import pydantic
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from check import equal, options


class Answer(pydantic.BaseModel):
    """An answer."""

    sure: bool


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"Rain in {city}."


def text_of(message):
    return message.content if isinstance(message.content, str) else "".join(part.get("text", "") for part in message.content)


def main():
    given = options()
    host = given.address.removesuffix("/v1")
    model = ChatAnthropic(base_url=host, api_key="none", model_name="tern-small", max_tokens=40, temperature=0)
    questions = [[SystemMessage("Be brief."), HumanMessage(f"What is {n}+{n}?")] for n in range(4)]
    alone = [model.invoke(question) for question in questions]
    assert all(text_of(reply) and reply.usage_metadata["output_tokens"] > 0 for reply in alone), alone
    equal("".join(text_of(part) for part in model.stream(questions[2])), text_of(alone[2]), "a stream")
    equal([text_of(reply) for reply in model.batch(questions)], [text_of(reply) for reply in alone], "many at once")
    equal(model.get_num_tokens_from_messages(questions[0]), alone[0].usage_metadata["input_tokens"], "tokens of a prompt")
    with given.server_with_tools() as address:
        larger = ChatAnthropic(base_url=address, api_key="none", model_name="tools", max_tokens=200, temperature=0)
        for method in ("function_calling", "json_schema"):
            assert isinstance(larger.with_structured_output(Answer, method=method).invoke("What is 2+2?"), Answer), method
        bound = larger.bind_tools([weather], tool_choice="weather")
        question = [HumanMessage("Is it raining in Oslo?")]
        called = bound.invoke(question)
        equal([call["name"] for call in called.tool_calls], ["weather"], "calls")
        whole = None
        for part in bound.stream(question):
            whole = part if whole is None else whole + part
        equal([(call["name"], call["args"]) for call in whole.tool_calls], [(c["name"], c["args"]) for c in called.tool_calls], "calls of a stream")
        results = [ToolMessage(weather.invoke(c["args"]), tool_call_id=c["id"]) for c in called.tool_calls]
        larger.bind_tools([weather]).invoke([*question, called, *results])


main()
