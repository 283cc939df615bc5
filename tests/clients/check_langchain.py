# SPDX-License-Identifier: Apache-2.0
"""LangChain's client of OpenAI's interface."""

from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

from check import equal, options


def main():
    address = options().address
    model = ChatOpenAI(base_url=address, api_key="none", model="m", temperature=0, max_tokens=40, seed=1)
    questions = [[("system", "Be brief."), ("human", f"What is {n}+{n}?")] for n in range(8)]
    alone = [model.invoke(question) for question in questions]
    assert all(reply.content and reply.usage_metadata["output_tokens"] > 0 for reply in alone)
    for question, reply in zip(questions, alone):
        equal("".join(chunk.content for chunk in model.stream(question)), reply.content, "text of a stream")
    equal([reply.content for reply in model.batch(questions)], [reply.content for reply in alone], "texts of many at once")
    text = OpenAI(base_url=address, api_key="none", model="m", temperature=0, max_tokens=12)
    maker = OpenAIEmbeddings(base_url=address, api_key="none", model="m", check_embedding_ctx_length=False)
    texts = [f"A text of number {n}." for n in range(40)]
    equal(maker.embed_documents(texts)[7], maker.embed_query(texts[7]), "a vector among others")
    equal("".join(text.stream("Once upon")), text.invoke("Once upon"), "text of a completion")


main()
