# SPDX-License-Identifier: Apache-2.0
"""instructor: answers as objects of pydantic, by OpenAI's client."""

import instructor
import openai
import pydantic

from check import options


class Answer(pydantic.BaseModel, extra="forbid"):
    sure: bool
    words: list[bool] = pydantic.Field(max_length=2)


def main():
    address = options().address
    question = [{"role": "user", "content": "What is 2+2?"}]
    client = instructor.from_openai(openai.OpenAI(base_url=address, api_key="none"), mode=instructor.Mode.JSON_SCHEMA)
    reply = client.chat.completions.create(model="m", messages=question, response_model=Answer, temperature=0, max_tokens=300, max_retries=0)
    assert isinstance(reply, Answer), reply
    *_, last = client.chat.completions.create_partial(model="m", messages=question, response_model=Answer, temperature=0, max_tokens=300)
    assert last.sure == reply.sure, last


main()
