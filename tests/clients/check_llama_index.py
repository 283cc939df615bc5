# SPDX-License-Identifier: Apache-2.0
"""LlamaIndex's client of Ollama's interface: texts, chats, streams, answers in a form."""

import pydantic
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.ollama import Ollama

from check import equal, options


class Answer(pydantic.BaseModel, extra="forbid"):
    """An answer."""

    sure: bool


def main():
    host = options().address.removesuffix("/v1")
    model = Ollama(model="tern-small", base_url=host, request_timeout=120.0, context_window=512, temperature=0)
    equal(model.complete("What is 2+2?").text, "4", "a text")
    equal([part.text for part in model.stream_complete("What is 2+2?")][-1], "4", "a stream of a text")
    messages = [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content="What is 2+2?")]
    said = model.chat(messages).message.content
    equal("".join(part.delta or "" for part in model.stream_chat(messages)), said, "a stream of a chat")
    assert isinstance(model.structured_predict(Answer, PromptTemplate("What is 2+2?")), Answer)


main()
