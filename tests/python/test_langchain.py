# SPDX-License-Identifier: Apache-2.0
"""tern.langchain: replies and their streams, calls of tools, forms, vectors, each as tern.Model gives it."""

import asyncio
import unittest

import package
import suite

tern = package.begin()
suite.need("langchain_core", "pydantic")

from langchain_core.messages import HumanMessage, SystemMessage  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from tern.langchain import ChatTern, TernEmbeddings  # noqa: E402

QUESTION = "What is 2+2?"


class weather(BaseModel):  # noqa: N801  (a tool has this name)
    """How the weather is in a city."""

    city: str


class Sum(BaseModel):
    sum: int


class Chats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = package.open_small(tern)
        cls.chat = ChatTern(model=cls.model, max_tokens=8, temperature=0)
        cls.long = ChatTern(model=cls.model, max_tokens=200, temperature=0)

    def test_replies(self):
        wanted = self.model.chat([{"role": "system", "content": "Be short."}, {"role": "user", "content": QUESTION}], max_tokens=8, temperature=0)
        said = self.chat.invoke([SystemMessage("Be short."), HumanMessage(QUESTION)])
        self.assertEqual(said.content, wanted.text)
        self.assertEqual(said.usage_metadata["output_tokens"], wanted["usage"]["completion_tokens"])
        streamed = list(self.chat.stream([SystemMessage("Be short."), HumanMessage(QUESTION)]))
        whole = streamed[0]
        for chunk in streamed[1:]:
            whole = whole + chunk
        self.assertEqual((whole.content, whole.usage_metadata), (said.content, said.usage_metadata))
        self.assertEqual(asyncio.run(self.chat.ainvoke(QUESTION)).content, self.chat.invoke(QUESTION).content)
        self.assertEqual([r.content for r in self.chat.batch([QUESTION, "Hi"])], [self.chat.invoke(q).content for q in (QUESTION, "Hi")])

    def test_stops(self):
        story = "Once upon a time"
        said = self.long.invoke(story).content
        self.assertGreater(len(said), 9)
        self.assertEqual(self.long.invoke(story, stop=[said[5:9]]).content, said[: said.index(said[5:9])])

    def test_tools(self):
        bound = self.long.bind_tools([weather], tool_choice="weather")
        (call,) = bound.invoke("How is the weather in Rome?").tool_calls
        self.assertEqual((call["name"], list(call["args"])), ("weather", ["city"]))
        whole = None
        for chunk in bound.stream("How is the weather in Rome?"):
            whole = chunk if whole is None else whole + chunk
        self.assertEqual([(c["name"], c["args"]) for c in whole.tool_calls], [(call["name"], call["args"])])

    def test_forms(self):
        self.assertIsInstance(self.long.with_structured_output(Sum).invoke("17+25?"), Sum)
        self.assertEqual(list(self.long.with_structured_output(Sum.model_json_schema()).invoke("17+25?")), ["sum"])
        raw = self.long.with_structured_output(Sum, include_raw=True).invoke("17+25?")
        self.assertEqual((raw["parsed"], raw["parsing_error"]), (Sum.model_validate_json(raw["raw"].content), None))
        self.assertIsInstance(self.long.with_structured_output(Sum, method="function_calling").invoke("17+25?"), Sum)

    def test_vectors(self):
        texts = ["a cat", "a kitten"]
        vectors = TernEmbeddings(self.model, pooling="mean")
        self.assertEqual(vectors.embed_documents(texts), self.model.embed(texts, pooling="mean").tolist())
        self.assertEqual(vectors.embed_query(texts[1]), self.model.embed(texts[1], pooling="mean").tolist())


if __name__ == "__main__":
    suite.main()
