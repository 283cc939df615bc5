# SPDX-License-Identifier: Apache-2.0
"""Checks the openai package as its users have it, 1.x and 3.x."""

import array
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

import openai
import pydantic

from check import equal, known, options

import tool_model

QUESTION = [{"role": "user", "content": "What is 2+2?"}]


def chats(client):
    whole = client.chat.completions.create(model="m", messages=QUESTION, temperature=0, seed=1)
    equal(whole.choices[0].finish_reason, "stop", "reason")
    assert whole.system_fingerprint.startswith("b") and whole.usage.total_tokens > 0, whole
    stream = client.chat.completions.create(model="m", messages=QUESTION, temperature=0, seed=1, stream=True,
                                            stream_options={"include_usage": True})
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    equal(text, whole.choices[0].message.content, "text of a stream")
    equal(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens, "tokens of a stream")
    equal(chunks[0].choices[0].delta.role, "assistant", "role")


def vectors(client):
    texts = ["Once upon a time", "Luna", "What is 2+2?"]
    plain = client.embeddings.create(model="m", input=texts, encoding_format="float")
    packed = client.embeddings.create(model="m", input=texts)
    equal([len(d.embedding) for d in plain.data], [len(plain.data[0].embedding)] * 3, "numbers of vectors")
    for a, b in zip(plain.data, packed.data):
        equal(array.array("f", a.embedding), array.array("f", b.embedding), "bits of a vector in figures and in base64")
    one = client.embeddings.create(model="m", input=texts[1], encoding_format="float")
    equal(one.data[0].embedding, plain.data[1].embedding, "a vector alone")
    assert plain.usage.prompt_tokens == plain.usage.total_tokens > 0, plain.usage


def logprobs(client):
    reply = client.chat.completions.create(model="m", messages=QUESTION, temperature=0, logprobs=True, top_logprobs=3)
    tokens = reply.choices[0].logprobs.content
    assert tokens and all(token.logprob <= 0 and len(token.top_logprobs) == 3 for token in tokens)
    reply = client.completions.create(model="m", prompt=["Once upon", "Luna"], max_tokens=5, n=2, logprobs=2, temperature=1, seed=4)
    equal([choice.index for choice in reply.choices], [0, 1, 2, 3], "choices")
    assert all(len(choice.logprobs.token_logprobs) == 5 for choice in reply.choices)


def completions(client):
    asked = dict(model="m", prompt="Once upon", max_tokens=12, temperature=0)
    whole = client.completions.create(**asked)
    equal(whole.choices[0].finish_reason, "length", "reason")
    pieces = client.completions.create(stream=True, **asked)
    equal("".join(chunk.choices[0].text for chunk in pieces), whole.choices[0].text, "text of a stream")
    stopped = client.completions.create(stop=[" time"], **asked)
    assert " time" not in stopped.choices[0].text


def errors(client):
    for wrong, kind in ((dict(temperature=-1), openai.BadRequestError), (dict(max_tokens=0), openai.BadRequestError),
                        (dict(prompt="a b " * 2000), openai.BadRequestError)):
        try:
            client.completions.create(**({"model": "m", "prompt": "a"} | wrong))
        except kind as error:
            assert error.body["message"], error
        else:
            raise AssertionError(f"{wrong} was accepted")
    equal([model.id for model in client.models.list()], ["tern-small"], "models")


class Trip(pydantic.BaseModel):
    """The class that an answer is parsed into."""

    city: Literal["Paris", "Oslo"]
    nights: Literal[1, 2, 3]
    sunny: bool


def structured(client):
    for temperature in (0, 1.5):
        reply = client.chat.completions.parse(model="m", messages=QUESTION, response_format=Trip, temperature=temperature, seed=3)
        assert isinstance(reply.choices[0].message.parsed, Trip), reply
    reply = client.responses.parse(model="m", input="Where?", text_format=Trip)
    assert isinstance(reply.output_parsed, Trip), reply


TOOLS = [{"type": "function", "function": {"name": name, "description": f"About {name}.", "strict": True, "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "Oslo"]}}, "required": ["city"], "additionalProperties": False}}}
    for name in ("weather", "hotels")]


def streamed_calls(client, **asked):
    """Calls of a stream, put together as users of the package do it."""
    calls, reason = {}, None
    for chunk in client.chat.completions.create(**asked, stream=True):
        for piece in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
            call = calls.setdefault(piece.index, {"id": piece.id, "name": piece.function.name, "arguments": ""})
            call["arguments"] += piece.function.arguments or ""
        reason = chunk.choices[0].finish_reason or reason if chunk.choices else reason
    return [calls[i] for i in sorted(calls)], reason


def tool_loop(client):
    """Asks, calls, answers the calls, asks on: whole and streamed."""
    messages = list(QUESTION)
    for seed in range(4):
        asked = dict(model="m", messages=messages, tools=TOOLS, tool_choice="required", temperature=1.5, seed=seed, max_tokens=150)
        reply = client.chat.completions.create(**asked).choices[0]
        calls, reason = streamed_calls(client, **asked)
        equal((reason, [(c["name"], c["arguments"]) for c in calls]),
              (reply.finish_reason, [(c.function.name, c.function.arguments) for c in reply.message.tool_calls]), "calls of a stream")
        if reason != "tool_calls":
            continue
        for call in reply.message.tool_calls:
            assert json.loads(call.function.arguments)["city"] in ("Paris", "Oslo"), call
        results = [{"role": "tool", "tool_call_id": c.id, "content": "Rain."} for c in reply.message.tool_calls]
        messages = [*QUESTION, reply.message, *results]
    try:
        client.chat.completions.create(model="m", messages=[*QUESTION, {"role": "tool", "tool_call_id": "x", "content": "y"}])
    except openai.BadRequestError as error:
        equal(error.param, "messages", "field")
    else:
        raise AssertionError("a result without a call was accepted")


def with_tools(tern):
    """The same package at a server whose model has tools."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tools.gguf"
        tool_model.write(path, tool_model.TAGGED)
        server = subprocess.Popen([tern, "serve", "-m", path, "--port", "0", "--any-model"], stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().split(" at ")[1].strip()
            with openai.OpenAI(base_url=address, api_key="none") as client:
                tool_loop(client)
        finally:
            server.terminate()
            server.wait(30)


async def together(address):
    """Many requests at once get the answers that each gets alone; a stream whose client leaves does no harm."""
    async with openai.AsyncOpenAI(base_url=address, api_key="none") as client:
        async def ask(seed):
            reply = await client.chat.completions.create(model="m", messages=QUESTION, temperature=1, seed=seed, max_tokens=30)
            return reply.choices[0].message.content

        alone = [await ask(seed) for seed in range(12)]
        stream = await client.completions.create(model="m", prompt="Once", max_tokens=-1, stream=True, extra_body={"ignore_eos": True})
        async for _ in stream:
            await stream.close()
            break
        equal(list(await asyncio.gather(*[ask(seed) for seed in range(12)])), alone, "texts of many at once")


def main():
    given = options()
    address = given.address
    known("openai", address.removesuffix("/v1"))
    with openai.OpenAI(base_url=address, api_key="none") as client:
        for part in (chats, logprobs, vectors, completions, errors, structured):
            part(client)
    asyncio.run(together(address))
    with_tools(given.tern)


main()
