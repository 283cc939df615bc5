# SPDX-License-Identifier: Apache-2.0
"""The anthropic package."""

import anthropic

from check import equal, known, options


def main():
    address = options().address.removesuffix("/v1")
    known("anthropic", address)
    asked = dict(model="m", max_tokens=40, extra_body={"temperature": 0, "seed": 1}, system="Be brief.", messages=[{"role": "user", "content": "What is 2+2?"}])
    with anthropic.Anthropic(base_url=address, api_key="none") as client:
        whole = client.messages.create(**asked)
        equal((whole.role, whole.type), ("assistant", "message"), "kind")
        assert whole.content[0].text and whole.usage.output_tokens > 0, whole
        with client.messages.stream(**asked) as stream:
            equal("".join(stream.text_stream), whole.content[0].text, "text of a stream")
            equal(stream.get_final_message().stop_reason, whole.stop_reason, "reason")
        try:
            client.messages.create(**(asked | {"max_tokens": -5}))
        except anthropic.BadRequestError as error:
            equal(error.body["type"], "error", "error")
        else:
            raise AssertionError("-5 tokens were accepted")


main()
