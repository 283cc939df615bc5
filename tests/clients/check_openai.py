# SPDX-License-Identifier: Apache-2.0
"""The openai package as its users have it, 1.x and 3.x."""

import asyncio

import openai

from check import equal, options

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
            raise AssertionError(f"{wrong} was taken")
    equal([model.id for model in client.models.list()], ["tern-small"], "models")


async def together(address):
    """Many at once are what each is alone; a stream that is left does no harm."""
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
    address = options().address
    with openai.OpenAI(base_url=address, api_key="none") as client:
        for part in (chats, logprobs, completions, errors):
            part(client)
    asyncio.run(together(address))


main()
