# SPDX-License-Identifier: Apache-2.0
"""litellm, by OpenAI's interface and by Ollama's: chats, streams, texts, vectors, errors."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it looks for prices elsewhere otherwise
import litellm

from check import equal, options

QUESTION = [{"role": "user", "content": "What is 2+2?"}]


def chats(model, wanted, **place):
    """`wanted` is the answer; None: the client writes the conversation as a prompt of its own."""
    fields = dict(model=model, messages=QUESTION, temperature=0, max_tokens=40, **place)
    whole = litellm.completion(**fields)
    equal((whole.choices[0].message.content, whole.choices[0].finish_reason), (wanted or whole.choices[0].message.content, "stop"), model)
    assert whole.usage.prompt_tokens > 0 and whole.usage.completion_tokens > 0, whole
    text = "".join(part.choices[0].delta.content or "" for part in litellm.completion(**fields, stream=True))
    equal(text, whole.choices[0].message.content, f"a stream of {model}")


def main():
    address = options().address
    host = address.removesuffix("/v1")
    openai = {"api_base": address, "api_key": "none"}
    chats("openai/tern-small", "4", **openai)
    chats("ollama_chat/tern-small", "4", api_base=host)
    chats("ollama/tern-small", None, api_base=host)
    chats("anthropic/tern-small", "4", api_base=host, api_key="none")
    texts = ["Once upon a time", "Luna"]
    wanted = litellm.embedding(model="openai/tern-small", input=texts, encoding_format="float", **openai).data
    made = litellm.embedding(model="ollama/tern-small", input=texts, api_base=host).data
    equal([d["embedding"] for d in made], [d["embedding"] for d in wanted], "vectors")
    try:
        litellm.completion(model="ollama_chat/tern-small", messages=QUESTION, temperature=-1, api_base=host)
    except litellm.exceptions.APIError as error:
        assert "temperature" in str(error), error
    except litellm.exceptions.BadRequestError as error:
        assert "temperature" in str(error), error
    else:
        raise AssertionError("a wrong temperature is taken")


main()
