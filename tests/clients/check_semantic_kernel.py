# SPDX-License-Identifier: Apache-2.0
"""semantic-kernel: chats, streams, an answer in a form, functions that the kernel calls, vectors, an agent."""

import asyncio

import pydantic
from openai import AsyncOpenAI
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings, OpenAITextEmbedding
from semantic_kernel.contents import ChatHistory, FunctionCallContent
from semantic_kernel.functions import KernelArguments, kernel_function

from check import equal, options


class Answer(pydantic.BaseModel):
    sure: bool


class Weather:
    asked = 0

    @kernel_function(description="The weather of a city.")
    def weather(self, city: str) -> str:
        self.asked += 1
        return "Rain."


def question():
    said = ChatHistory(system_message="Be brief.")
    said.add_user_message("What is 2+2?")
    return said


def settings(**fields):
    return OpenAIChatPromptExecutionSettings(temperature=0, max_tokens=100, **fields)


async def chats(client):
    service = OpenAIChatCompletion(ai_model_id="tern-small", async_client=client)
    whole = await service.get_chat_message_content(question(), settings())
    parts = [part async for part in service.get_streaming_chat_message_content(question(), settings())]
    equal("".join(str(part) for part in parts), str(whole), "a stream")
    shaped = await service.get_chat_message_content(question(), settings(response_format=Answer))
    Answer.model_validate_json(str(shaped))
    agent = ChatCompletionAgent(service=service, name="one", instructions="Be brief.", arguments=KernelArguments(settings()))
    equal(str(await agent.get_response(messages="What is 2+2?")), str(whole), "an agent's answer")
    vectors = OpenAITextEmbedding(ai_model_id="tern-small", async_client=client)
    texts = [f"A text of number {n}." for n in range(8)]
    equal((await vectors.generate_embeddings(texts))[7].tolist(), (await vectors.generate_embeddings(texts[7:]))[0].tolist(), "a vector among others")


async def calls(client):
    """The kernel calls the function until its rounds are used up, then the model has to answer; streamed too."""
    service = OpenAIChatCompletion(ai_model_id="tools", async_client=client)
    kernel, plugin = Kernel(), Weather()
    kernel.add_plugin(plugin, "sky")
    only = settings(function_choice_behavior=FunctionChoiceBehavior.Required(auto_invoke=False))
    reply = await service.get_chat_message_content(question(), only, kernel=kernel)
    assert [item.name for item in reply.items if isinstance(item, FunctionCallContent)][0] == "sky-weather", reply.items
    auto = settings(function_choice_behavior=FunctionChoiceBehavior.Required(auto_invoke=True))
    for streamed in (False, True):
        before = plugin.asked
        if streamed:
            assert [part async for part in service.get_streaming_chat_message_content(question(), auto, kernel=kernel)]
        else:
            await service.get_chat_message_content(question(), auto, kernel=kernel)
        assert plugin.asked > before, "the function was not called"


async def main():
    given = options()
    async with AsyncOpenAI(base_url=given.address, api_key="none") as client:
        await chats(client)
    with given.server_with_tools() as address:
        async with AsyncOpenAI(base_url=address + "/v1", api_key="none") as client:
            await calls(client)


asyncio.run(main())
