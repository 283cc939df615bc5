# SPDX-License-Identifier: Apache-2.0
"""The ollama package: what its quick start shows, answers in a form, tools, vectors, descriptions."""

import asyncio
import os
import tempfile
from pathlib import Path

import pydantic
from ollama import AsyncClient, Client, ResponseError

from check import equal, options  # which finds the next one
from hub_server import Hub

QUESTION = [{"role": "user", "content": "What is 2+2?"}]


class Sum(pydantic.BaseModel, extra="forbid"):
    sure: bool
    words: list[bool] = pydantic.Field(max_length=2)


def chats(client):
    whole = client.chat("tern-small", messages=QUESTION, options={"temperature": 0, "seed": 1})
    equal((whole.message.role, whole["message"]["content"], whole.done_reason), ("assistant", "4", "stop"), "a chat")
    assert whole.eval_count > 0 and whole.total_duration > 0, whole
    stream = list(client.chat("tern-small", messages=QUESTION, stream=True, options={"temperature": 0}))
    equal("".join(part.message.content for part in stream), whole.message.content, "text of a stream")
    equal([part.done for part in stream][-1], True, "the end of a stream")
    text = client.generate("tern-small", "What is 2+2?", options={"temperature": 0})
    equal(text.response, "4", "generate")
    assert client.generate("tern-small", "And 3+3?", context=text.context, keep_alive=0).done
    pieces = client.generate("tern-small", "Once upon", raw=True, stream=True, options={"num_predict": 5})
    equal(sum(not part.done for part in pieces) > 0, True, "pieces of a stream")
    equal(client.generate("tern-small", "").done_reason, "load", "loading")


def forms(client):
    reply = client.chat("tern-small", messages=QUESTION, format=Sum.model_json_schema(), options={"num_predict": 300, "temperature": 0})
    Sum.model_validate_json(reply.message.content)


def errors(client):
    for call, status in ((lambda: client.chat("no-such-model:7b", messages=QUESTION), None), (lambda: client.show("no-such-model"), None),
                         (lambda: client.copy("tern-small", "b"), 501), (lambda: client.delete("tern-small"), 501), (lambda: client.pull("llama9"), 501),
                         (lambda: client.chat("tern-small", messages=[QUESTION[0] | {"images": [b"abc"]}]), 400)):
        try:
            call()
        except ResponseError as error:
            assert error.error and status in (None, error.status_code), (error, status)
        else:
            assert status is None  # the server takes any name


def descriptions(client):
    (model,) = client.list().models
    equal(model.model, "tern-small:latest", "the list")
    equal(client.ps().models[0].digest, model.digest, "what is loaded")
    shown = client.show(model.model)
    equal("completion" in shown.capabilities and shown.modelinfo["bitnet-b1.58.context_length"], 512, "what show says")
    equal([part.status for part in client.pull(model.model, stream=True)][-1], "success", "what is there need not come")
    equal(client.pull(model.model).status, "success", "the same in one piece")


def vectors(client):
    two = client.embed("tern-small", ["Once upon a time", "Luna"]).embeddings
    equal(client.embed("tern-small", "Luna").embeddings[0], two[1], "a vector among others")
    equal(len(client.embeddings("tern-small", "Luna").embedding), len(two[0]), "the older form")


async def at_once(host):
    client = AsyncClient(host)
    alone = await client.chat("tern-small", messages=QUESTION)
    many = await asyncio.gather(*(client.chat("tern-small", messages=QUESTION) for _ in range(8)))
    equal([reply.message.content for reply in many], [alone.message.content] * 8, "texts of many at once")
    parts = [part.message.content async for part in await client.chat("tern-small", messages=QUESTION, stream=True)]
    equal("".join(parts), alone.message.content, "an asynchronous stream")


def with_tools(client):
    """The loop of the package's page about tools, with functions of Python."""

    def add(a: int, b: int) -> int:
        """Adds two numbers.

        Args:
            a: one number
            b: another one

        Returns:
            int: their sum
        """
        return a + b

    reply = client.chat("tools", messages=QUESTION, tools=[add], options={"num_predict": 60, "temperature": 0})
    call = {"function": {"name": "add", "arguments": {"a": 1, "b": 2}}}
    messages = [*QUESTION, {"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "content": str(add(1, 2)), "tool_name": "add"}]
    assert client.chat("tools", messages=messages, tools=[add], options={"num_predict": 5}).done
    assert reply.done and all(c.function.name == "add" and set(c.function.arguments) == {"a", "b"} for c in reply.message.tool_calls or [])


def pulls(given):
    """A model is fetched from a Hub of this machine, with progress, used and removed."""
    hub = Hub({"someone/tiny": {"tiny-q8_0.gguf": Path(given.model).read_bytes()}})
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HF_ENDPOINT": hub.url, "HOME": home, "HF_HUB_OFFLINE": "", "no_proxy": "*"}
        with given.server_with_tools("--pull-path", f"{home}/pulled") as address:
            client = Client(address)
            parts = list(client.pull("someone/tiny", stream=True))
            equal((parts[0].status, parts[-1].status), ("pulling manifest", "success"), "steps of a pull")
            equal([part.completed for part in parts if part.total][-1], Path(given.model).stat().st_size, "what has come")
            equal(client.chat("someone/tiny", messages=QUESTION, options={"temperature": 0}).message.content, "4", "its answer")
            equal(client.delete("someone/tiny").status, "success", "a model is removed")
            equal([model.model for model in client.list().models], ["tools:latest"], "what is left")
            try:
                client.pull("someone/other")
            except ResponseError as error:
                equal(error.status_code, 400, "a model that is not there")
            else:
                raise AssertionError("a model that is not there has come")
    hub.stop()


def main():
    given = options()
    host = given.address.removesuffix("/v1")
    client = Client(host)
    for check in (chats, forms, errors, descriptions, vectors):
        check(client)
    asyncio.run(at_once(host))
    with given.server_with_tools() as address:
        with_tools(Client(address))
    pulls(given)


main()
