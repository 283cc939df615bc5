# SPDX-License-Identifier: Apache-2.0
"""pydantic-ai: agents that answer in words and in a form, whole and streamed."""

import asyncio

import pydantic
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from check import equal, options


class Answer(pydantic.BaseModel, extra="forbid"):
    sure: bool


async def streamed(agent):
    async with agent.run_stream("What is 2+2?") as reply:
        return [text async for text in reply.stream_text()][-1]


def main():
    model = OpenAIChatModel("tern-small", provider=OpenAIProvider(base_url=options().address, api_key="none"))
    agent = Agent(model, model_settings={"temperature": 0, "max_tokens": 60})
    equal(agent.run_sync("What is 2+2?").output, "4", "an answer")
    equal(asyncio.run(streamed(agent)), "4", "a stream")
    shaped = Agent(model, output_type=NativeOutput(Answer), model_settings={"temperature": 0, "max_tokens": 60})
    assert isinstance(shaped.run_sync("What is 2+2?").output, Answer)


main()
