# SPDX-License-Identifier: Apache-2.0
"""smolagents: its model of OpenAI's interface, whole and streamed."""

from smolagents import ChatMessage, MessageRole, OpenAIModel

from check import equal, options


def main():
    model = OpenAIModel(model_id="tern-small", api_base=options().address, api_key="none", temperature=0, max_tokens=20)
    question = [ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": "What is 2+2?"}])]
    whole = model.generate(question)
    equal(whole.content, "4", "an answer")
    assert whole.token_usage.output_tokens > 0, whole
    equal("".join(part.content or "" for part in model.generate_stream(question)), "4", "a stream")
    equal(model.generate(question, stop_sequences=["4"]).content, "", "an answer that is stopped")


main()
