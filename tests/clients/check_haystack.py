# SPDX-License-Identifier: Apache-2.0
"""haystack-ai: its generators of both interfaces of OpenAI, embedders, an answer in a form, an agent with a tool."""

from typing import Annotated, Literal

import pydantic
from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.builders import ChatPromptBuilder
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage, Document
from haystack.tools import tool
from haystack.utils import Secret

from check import equal, options

QUESTION = [ChatMessage.from_system("Be brief."), ChatMessage.from_user("What is 2+2?")]
KEY = Secret.from_token("none")


class Answer(pydantic.BaseModel):
    sure: bool


@tool
def weather(city: Annotated[Literal["Oslo", "Paris"], "the city"]) -> str:
    """The weather of a city."""
    return "Rain."


def generators(address):
    for kind, limit in ((OpenAIChatGenerator, "max_completion_tokens"), (OpenAIResponsesChatGenerator, "max_output_tokens")):
        asked = dict(api_key=KEY, model="tern-small", api_base_url=address)
        given = {limit: 60, "temperature": 0}
        whole = kind(**asked, generation_kwargs=given).run(QUESTION)["replies"][0]
        assert whole.text and whole.meta["usage"], whole
        parts = []
        streamed = kind(**asked, generation_kwargs=given, streaming_callback=lambda part: parts.append(part.content or "")).run(QUESTION)["replies"][0]
        equal((streamed.text, "".join(parts)), (whole.text, whole.text), "a stream")
        name = "response_format" if kind is OpenAIChatGenerator else "text_format"
        shaped = kind(**asked, generation_kwargs=given | {name: Answer}).run(QUESTION)["replies"][0]
        Answer.model_validate_json(shaped.text)


def vectors(address):
    asked = dict(api_key=KEY, model="tern-small", api_base_url=address)
    texts = [f"A text of number {n}." for n in range(40)]
    made = OpenAIDocumentEmbedder(**asked, progress_bar=False).run([Document(content=text) for text in texts])["documents"]
    equal(made[7].embedding, OpenAITextEmbedder(**asked).run(texts[7])["embedding"], "a vector among others")


def pipeline(address):
    parts = Pipeline()
    parts.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user("What is {{n}}+{{n}}?")], required_variables=["n"]))
    parts.add_component("model", OpenAIChatGenerator(api_key=KEY, model="tern-small", api_base_url=address, generation_kwargs={"max_completion_tokens": 20, "temperature": 0}))
    parts.connect("prompt", "model")
    assert parts.run({"n": 2})["model"]["replies"][0].text


def agents(address):
    """An agent that has to call its tool: the loop of calls and results ends at the number of its steps."""
    for kind in (OpenAIChatGenerator, OpenAIResponsesChatGenerator):
        model = kind(api_key=KEY, model="tools", api_base_url=address + "/v1", generation_kwargs={"temperature": 0, "tool_choice": "required"})
        said = Agent(chat_generator=model, tools=[weather], max_agent_steps=2).run([ChatMessage.from_user("Is it raining in Oslo?")])["messages"]
        calls, results = [m for m in said if m.tool_calls], [m for m in said if m.tool_call_results]
        assert calls and results and all(c.tool_name == "weather" for m in calls for c in m.tool_calls), said
        equal({r.result for m in results for r in m.tool_call_results}, {"Rain."}, "results")


def main():
    given = options()
    for part in (generators, vectors, pipeline):
        part(given.address)
    with given.server_with_tools() as address:
        agents(address)


main()
