# SPDX-License-Identifier: Apache-2.0
"""openai-agents: agents by chats and by responses, streams, a form."""

import asyncio

import pydantic
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

from check import equal, options


class Answer(pydantic.BaseModel):
    sure: bool


async def ask(model):
    settings = ModelSettings(temperature=0, max_tokens=60)
    agent = Agent(name="one", instructions="Be brief.", model=model, model_settings=settings)
    whole = await Runner.run(agent, "What is 2+2?")
    stream = Runner.run_streamed(agent, "What is 2+2?")
    pieces = [event.data.delta async for event in stream.stream_events() if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"]
    equal("".join(pieces), whole.final_output, "a stream")
    shaped = Agent(name="two", model=model, model_settings=settings, output_type=Answer)
    assert isinstance((await Runner.run(shaped, "What is 2+2?")).final_output, Answer)


async def main():
    set_tracing_disabled(True)
    async with AsyncOpenAI(base_url=options().address, api_key="none") as client:
        for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
            await ask(kind(model="tern-small", openai_client=client))


asyncio.run(main())
