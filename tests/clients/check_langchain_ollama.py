# SPDX-License-Identifier: Apache-2.0
"""LangChain's client of Ollama's interface: its quick start, answers in a form, tools, vectors."""

import pydantic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM

from check import equal, options


class Answer(pydantic.BaseModel, extra="forbid"):
    """An answer."""

    sure: bool
    words: list[bool] = pydantic.Field(max_length=2)


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"Rain in {city}."


def main():
    given = options()
    host = given.address.removesuffix("/v1")
    model = ChatOllama(base_url=host, model="tern-small", temperature=0, num_predict=40, num_ctx=512, validate_model_on_init=True)
    questions = [[("system", "Be brief."), ("human", f"What is {n}+{n}?")] for n in range(8)]
    alone = [model.invoke(question) for question in questions]
    assert all(reply.content and reply.usage_metadata["output_tokens"] > 0 and reply.response_metadata["done"] for reply in alone)
    for question, reply in zip(questions, alone):
        equal("".join(chunk.content for chunk in model.stream(question)), reply.content, "text of a stream")
    equal([reply.content for reply in model.batch(questions)], [reply.content for reply in alone], "texts of many at once")
    long = ChatOllama(base_url=host, model="tern-small", temperature=0, num_predict=300)
    assert isinstance(long.with_structured_output(Answer, method="json_schema").invoke("What is 2+2?"), Answer)
    text = OllamaLLM(base_url=host, model="tern-small", temperature=0, num_predict=12)
    equal("".join(text.stream("Once upon")), text.invoke("Once upon"), "text of a completion")
    maker = OllamaEmbeddings(base_url=host, model="tern-small")
    texts = [f"A text of number {n}." for n in range(40)]
    equal(maker.embed_documents(texts)[7], maker.embed_query(texts[7]), "a vector among others")
    with given.server_with_tools() as address:
        bound = ChatOllama(base_url=address, model="tools", temperature=0, num_predict=60).bind_tools([weather])
        call = {"name": "weather", "args": {"city": "Oslo"}, "id": "c1", "type": "tool_call"}
        reply = bound.invoke([HumanMessage("What is 2+2?"), AIMessage("", tool_calls=[call]), ToolMessage(weather.invoke(call["args"]), tool_call_id="c1")])
        assert all(c["name"] == "weather" for c in reply.tool_calls), reply


main()
