# SPDX-License-Identifier: Apache-2.0
"""LangChain's client of OpenAI's interface: chats, streams, texts, vectors; answers in a form and calls of tools by chats
and by responses."""

from typing import Literal

import pydantic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

from check import equal, options


class Answer(pydantic.BaseModel):
    """An answer."""

    sure: bool


@tool
def weather(city: Literal["Oslo", "Paris"]) -> str:
    """The weather of a city."""
    return f"Rain in {city}."


def forms_and_calls(address, responses):
    model = ChatOpenAI(base_url=address + "/v1", api_key="none", model="tools", temperature=0, max_tokens=200, use_responses_api=responses)
    for method in ("json_schema", "function_calling"):
        assert isinstance(model.with_structured_output(Answer, method=method).invoke("What is 2+2?"), Answer), method
    question = [HumanMessage("Is it raining in Oslo?")]
    bound = model.bind_tools([weather], tool_choice="weather")
    called, streamed = bound.invoke(question), None
    for part in bound.stream(question):
        streamed = part if streamed is None else streamed + part
    calls = [(call["name"], call["args"]) for call in called.tool_calls]
    equal(([name for name, _ in calls], [(call["name"], call["args"]) for call in streamed.tool_calls]), (["weather"], calls), "calls")
    results = [ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]) for call in called.tool_calls]
    assert model.bind_tools([weather]).invoke([*question, called, *results]).usage_metadata["output_tokens"] > 0


def main():
    given = options()
    address = given.address
    model = ChatOpenAI(base_url=address, api_key="none", model="m", temperature=0, max_tokens=40, seed=1)
    questions = [[("system", "Be brief."), ("human", f"What is {n}+{n}?")] for n in range(8)]
    alone = [model.invoke(question) for question in questions]
    assert all(reply.content and reply.usage_metadata["output_tokens"] > 0 for reply in alone)
    for question, reply in zip(questions, alone):
        equal("".join(chunk.content for chunk in model.stream(question)), reply.content, "text of a stream")
    equal([reply.content for reply in model.batch(questions)], [reply.content for reply in alone], "texts of many at once")
    text = OpenAI(base_url=address, api_key="none", model="m", temperature=0, max_tokens=12)
    maker = OpenAIEmbeddings(base_url=address, api_key="none", model="m", check_embedding_ctx_length=False)
    texts = [f"A text of number {n}." for n in range(40)]
    equal(maker.embed_documents(texts)[7], maker.embed_query(texts[7]), "a vector among others")
    equal("".join(text.stream("Once upon")), text.invoke("Once upon"), "text of a completion")
    with given.server_with_tools() as larger:
        for responses in (False, True):
            forms_and_calls(larger, responses)


main()
