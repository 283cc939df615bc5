# SPDX-License-Identifier: Apache-2.0
"""dspy: programs that predict, reason, and call a tool; answers in types, by its adapters of texts and of JSON."""

from typing import Literal

import dspy
import pydantic

from check import options


class Answer(pydantic.BaseModel):
    sure: bool
    words: list[Literal["yes", "no"]] = pydantic.Field(max_length=2)


class Judge(dspy.Signature):
    """Judges a sentence."""

    sentence: str = dspy.InputField()
    mood: Literal["glad", "sad"] = dspy.OutputField()
    sure: bool = dspy.OutputField()


class Ask(dspy.Signature):
    """Answers a question."""

    question: str = dspy.InputField()
    answer: Answer = dspy.OutputField()


class Plan(dspy.Signature):
    """Calls tools that are needed."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


def weather(city: Literal["Oslo", "Paris"]) -> str:
    """The weather of a city."""
    return f"Rain in {city}."


def main():
    """litellm knows by their names which models answer in forms, so the model has such a name here."""
    with options().server_with_tools("--any-model", context=8192) as address:
        asked = dict(model="openai/gpt-4o-mini", api_base=address + "/v1", api_key="none", temperature=0, max_tokens=300, cache=False)
        for kind in ("chat", "responses"):
            model = dspy.LM(**asked, model_type=kind)
            assert model("What is 2+2?") and model(messages=[{"role": "user", "content": "What is 2+2?"}]), kind
            dspy.configure(lm=model, adapter=dspy.JSONAdapter())
            judged = dspy.Predict(Judge)(sentence="What a day!")
            assert judged.mood in ("glad", "sad") and judged.sure in (True, False), judged
            assert isinstance(dspy.Predict(Ask)(question="What is 2+2?").answer, Answer)
        dspy.configure(lm=dspy.LM(**asked), adapter=dspy.ChatAdapter())  # falls back to JSON, as the small model has to
        assert dspy.Predict(Judge)(sentence="What a day!").mood in ("glad", "sad")
        dspy.configure(adapter=dspy.JSONAdapter(use_native_function_calling=True))
        found = dspy.Predict(Plan)(question="Is it raining?", tools=[dspy.Tool(weather)]).calls
        assert found is None or all(call.name == "weather" for call in found.tool_calls), found


main()
