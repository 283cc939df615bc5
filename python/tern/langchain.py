# SPDX-License-Identifier: Apache-2.0
"""Chats and vectors for LangChain, computed by tern in this process (docs/python.md)."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Iterator, Sequence

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, convert_to_openai_messages
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.openai_tools import make_invalid_tool_call, parse_tool_call
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_json_schema, convert_to_openai_tool
from pydantic import ConfigDict, Field, PrivateAttr

from .model import Model

_FIELDS = ("temperature", "max_tokens", "top_p", "seed")


class ChatTern(BaseChatModel):
    """A chat model. Further fields of OpenAI's interface go into model_kwargs."""

    model_config = ConfigDict(protected_namespaces=(), arbitrary_types_allowed=True)

    model: Any
    """A tern.Model, or what tern.Model takes."""
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None
    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    _opened: Any = PrivateAttr(None)

    def model_post_init(self, context: Any, /) -> None:
        """Opens the model."""
        super().model_post_init(context)
        self._opened = self.model if isinstance(self.model, Model) else Model(self.model)

    @property
    def _llm_type(self) -> str:
        return "tern"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self._opened.path, **{name: getattr(self, name) for name in _FIELDS}, **self.model_kwargs}

    def _fields(self, stop: list[str] | None, more: dict[str, Any]) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in _FIELDS if getattr(self, name) is not None}
        fields = {**own, **self.model_kwargs, **more}
        fields.pop("ls_structured_output_format", None)  # for those who trace
        return {**fields, "stop": stop} if stop else fields

    def _generate(self, messages: list[BaseMessage], stop: list[str] | None = None,
                  run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any) -> ChatResult:  # fmt: skip
        del run_manager
        reply = self._opened.chat(convert_to_openai_messages(messages), **self._fields(stop, kwargs))
        generations = [ChatGeneration(message=_message(choice["message"], reply["usage"]),
                                      generation_info={"finish_reason": choice["finish_reason"]})
                       for choice in reply["choices"]]  # fmt: skip
        return ChatResult(generations=generations, llm_output={"model_name": reply["model"], "token_usage": reply["usage"]})

    def _stream(self, messages: list[BaseMessage], stop: list[str] | None = None,
                run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any) -> Iterator[ChatGenerationChunk]:  # fmt: skip
        fields = {"stream_options": {"include_usage": True}, **self._fields(stop, kwargs), "stream": True}
        with self._opened.chat(convert_to_openai_messages(messages), **fields) as events:
            for event in events:
                chunk = _chunk(event)
                if run_manager is not None:
                    run_manager.on_llm_new_token(str(chunk.message.content), chunk=chunk)
                yield chunk

    # ---- tools and forms ----------------------------------------------------------------------
    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any) -> Runnable[Any, Any]:
        """tool_choice: "auto", "none", "required" (or "any", or True), a name, or OpenAI's dict."""
        listed = [convert_to_openai_tool(tool) for tool in tools]
        if tool_choice is True or tool_choice == "any":
            tool_choice = "required"
        elif isinstance(tool_choice, str) and tool_choice in (tool["function"]["name"] for tool in listed):
            tool_choice = {"type": "function", "function": {"name": tool_choice}}
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        return self.bind(tools=listed, **chosen, **kwargs)

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, method: str = "json_schema",
                               **kwargs: Any) -> Runnable[Any, Any]:  # fmt: skip
        """Answers in a form: a class of pydantic gives its objects, any other schema dicts. method: "json_schema", by
        which the answer cannot but have the form, or "function_calling"."""
        if method == "function_calling":
            return super().with_structured_output(schema, include_raw=include_raw, **kwargs)
        if method != "json_schema":
            raise ValueError(f"method {method!r}: there are 'json_schema' and 'function_calling'")
        form = {"name": "answer", "schema": convert_to_json_schema(schema)}
        asked = self.bind(response_format={"type": "json_schema", "json_schema": form})
        is_class = isinstance(schema, type) and hasattr(schema, "model_validate")
        parser: Any = PydanticOutputParser(pydantic_object=schema) if is_class else JsonOutputParser()
        if not include_raw:
            return asked | parser
        parsed = RunnablePassthrough.assign(parsed=itemgetter("raw") | parser, parsing_error=lambda _: None)
        failed = RunnablePassthrough.assign(parsed=lambda _: None)
        return RunnableMap(raw=asked) | parsed.with_fallbacks([failed], exception_key="parsing_error")


class TernEmbeddings(Embeddings):
    """Vectors of texts, each of length 1."""

    def __init__(self, model: Any, *, pooling: str | None = None, dimensions: int = 0) -> None:
        """model: a tern.Model, or what tern.Model takes; the others as tern.Model.embed has them."""
        self.model = model if isinstance(model, Model) else Model(model)
        self.pooling, self.dimensions = pooling, dimensions

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One for each text."""
        vectors = self.model.embed(texts, pooling=self.pooling, dimensions=self.dimensions)
        return vectors.tolist()  # type: ignore[no-any-return]

    def embed_query(self, text: str) -> list[float]:
        """That of one text."""
        return self.embed_documents([text])[0]


def _usage(usage: dict[str, Any] | None) -> UsageMetadata | None:
    if not usage:
        return None
    return UsageMetadata(input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"],
                         total_tokens=usage["total_tokens"])  # fmt: skip


def _message(message: dict[str, Any], usage: dict[str, Any]) -> AIMessage:
    """A message of OpenAI's form; calls whose arguments an early end cut are invalid ones."""
    calls, invalid = [], []
    for call in message.get("tool_calls") or []:
        try:
            calls.append(parse_tool_call(call, return_id=True))
        except Exception as error:  # OutputParserException, which langchain_core may call otherwise one day
            invalid.append(make_invalid_tool_call(call, str(error)))
    thought = message.get("reasoning_content")
    return AIMessage(content=message.get("content") or "", tool_calls=calls, invalid_tool_calls=invalid,
                     additional_kwargs={"reasoning_content": thought} if thought else {},
                     usage_metadata=_usage(usage))  # fmt: skip


def _chunk(event: dict[str, Any]) -> ChatGenerationChunk:
    """An event of a stream. The last one has no choice, but the usage."""
    choice = (event.get("choices") or [{}])[0]
    delta = choice.get("delta") or {}
    calls = [tool_call_chunk(name=call.get("function", {}).get("name"), args=call.get("function", {}).get("arguments"),
                             id=call.get("id"), index=call.get("index"))
             for call in delta.get("tool_calls") or []]  # fmt: skip
    thought = delta.get("reasoning_content")
    message = AIMessageChunk(content=delta.get("content") or "", tool_call_chunks=calls, usage_metadata=_usage(event.get("usage")),
                             additional_kwargs={"reasoning_content": thought} if thought else {})  # fmt: skip
    ended = choice.get("finish_reason")
    return ChatGenerationChunk(message=message, generation_info={"finish_reason": ended} if ended else None)
