# SPDX-License-Identifier: Apache-2.0
"""Conversations and completions in the form of OpenAI's interface. The library reads them as `tern serve` does."""

from __future__ import annotations

import json
import queue
import warnings
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Mapping

from . import _library, errors
from ._library import Handle, call, ffi, freer, lib
from .answer import parse_value
from .engine import Follower, Taker, set_future

if TYPE_CHECKING:
    from .engine import Engine


class Reply(dict[str, Any]):
    """A reply of OpenAI's interface, a dict, with the usual members of its first choice as attributes."""

    form: Any = None

    @property
    def _choice(self) -> Mapping[str, Any]:
        return self["choices"][0]  # type: ignore[no-any-return]

    @property
    def text(self) -> str:
        """What it says."""
        choice = self._choice
        return str((choice["message"].get("content") if "message" in choice else choice["text"]) or "")

    @property
    def reasoning(self) -> str:
        """What the model thought before."""
        return str(self._choice.get("message", {}).get("reasoning_content") or "")

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """Calls of tools, in OpenAI's form."""
        return list(self._choice.get("message", {}).get("tool_calls") or [])

    @property
    def end(self) -> str:
        """Why it ends there: "stop", "length", "tool_calls"."""
        return str(self._choice["finish_reason"])

    @property
    def digest(self) -> str:
        """What its first choice was computed from, in one hash."""
        return str(self["tern"]["digest"][0])

    @property
    def value(self) -> Any:
        """What an answer in JSON says; with a class of pydantic, an object of it."""
        return parse_value(self.text, self.form, self.end)


class TalkTaker(Taker):
    """Takes the events of a request and what the dialect writes of them."""

    def __init__(self, answer: Handle, stream: queue.SimpleQueue[Any] | None) -> None:
        super().__init__(answer)
        self.answer = answer
        self.future: Future[Any] = Future()
        self.stream = stream
        self.text = b""
        self.lines = b""

    def read(self) -> None:
        """Takes what was written, and tells complete events."""
        size = ffi.new("size_t *")
        data = lib.tern_talk_text(self.answer.get(), size)
        self.text = bytes(ffi.buffer(data, size[0])) if size[0] else b""
        if self.stream is None:
            return
        self.lines += self.text
        *whole, self.lines = self.lines.split(b"\n\n")
        for event in whole:
            data = event.partition(b"data: ")[2]
            if data and data != b"[DONE]":
                self.stream.put(json.loads(data))

    def take(self, event: Any) -> bool:
        over = bool(lib.tern_talk_take(self.answer.get(), event))
        if over or self.stream is not None:
            self.read()
        return over

    def finish(self) -> None:
        if self.error is None and lib.tern_talk_status(self.answer.get()) not in (0, 200):
            self.error = refusal_of(json.loads(self.text))
        if self.error is None and self.stream is None:
            try:
                set_future(self.future, json.loads(self.text))
            except ValueError:
                set_future(self.future, error=errors.NoMemoryError("no memory for the reply"))
        else:
            set_future(self.future, error=self.error)
        if self.stream is not None:
            self.stream.put(None)
        self.answer.close()


def refusal_of(document: Mapping[str, Any]) -> errors.TernError:
    """The exception for an error of OpenAI's form."""
    error = document.get("error", {})
    return errors.RequestError(str(error.get("message", document)), "ERR_ARG", str(error.get("param") or ""))


class EventStream(Follower[dict[str, Any]]):
    """The events of a reply. Closing it ends the answer."""

    def __next__(self) -> dict[str, Any]:
        event = super().__next__()
        if "error" in event:
            self.close()
            raise refusal_of(event)
        return event


class Talk:
    """What requests for an engine are read with."""

    def __init__(self, engine: Engine) -> None:
        params = ffi.new("tern_talk_params *")
        name = ffi.new("char[]", engine.model.path.rpartition("/")[2].removesuffix(".gguf").encode("utf-8", "replace"))
        params.name = name
        params.sampling = lib.tern_sampler_params_default()
        params.draft = lib.TERN_DRAFT_WHERE_IT_PAYS
        params.kv = engine._kv
        out = ffi.new("tern_talk **")
        call(lib.tern_talk_open, engine.model._handle.get(), engine._core.handle.get(), params, out)
        self.core = engine._core
        self.handle = Handle(out[0], freer(lib.tern_talk_close, "tern_talk"), "engine", engine._core.handle)

    @classmethod
    def of(cls, engine: Engine) -> Talk:
        """That of an engine, made when it is first needed."""
        with engine._talk_lock:
            if engine._talk is None:
                engine._talk = cls(engine)
            return engine._talk  # type: ignore[no-any-return]

    def close(self) -> None:
        """After the engine has ended."""
        self.handle.close()

    # ---- the interfaces -----------------------------------------------------------------------
    def chat(self, messages: Any, fields: Mapping[str, Any]) -> Reply | EventStream:
        """A chat. A str is one message of the user."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        body = {"messages": messages, **fields}
        form = body.pop("schema", None)
        if form is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": plain_schema(form)}}
        if isinstance(body.get("tools"), (list, tuple)):
            body["tools"] = [plain_tool(tool) for tool in body["tools"]]
        return self._ask(lib.TERN_TALK_CHAT, body, form)

    def complete(self, prompt: Any, fields: Mapping[str, Any]) -> Reply | EventStream:
        """A completion."""
        return self._ask(lib.TERN_TALK_COMPLETION, {"prompt": prompt, **fields}, None)

    def _ask(self, kind: int, body: Mapping[str, Any], form: Any) -> Reply | EventStream:
        data = json.dumps({name: value for name, value in body.items() if value is not None}, allow_nan=False).encode()
        out, param = ffi.new("tern_talk_answer **"), ffi.new("char[]", lib.TERN_TALK_PARAM_BYTES)
        err = ffi.new("tern_error *")
        status = lib.tern_talk_ask(self.handle.get(), kind, data, len(data), out, param, err)
        if status:
            raise _library.failure(status, err, _library.string(param))
        answer = Handle(out[0], freer(lib.tern_talk_answer_free, "tern_talk_answer"), "answer", self.handle)
        ignored = _library.string(lib.tern_talk_ignored(out[0]))
        if ignored:
            warnings.warn(f"fields without effect: {ignored}", UserWarning, stacklevel=4)
        taker = TalkTaker(answer, queue.SimpleQueue() if body.get("stream") else None)
        ids = self.core.submit(lambda engine: self._submit(taker))
        if taker.error is not None:
            raise taker.error
        if taker.stream is not None:
            return EventStream(self.core, taker.stream, ids, taker.future)
        try:
            reply = Reply(taker.future.result())
        except BaseException:
            self.core.cancel(ids)
            raise
        reply.form = form
        return reply

    def _submit(self, taker: TalkTaker) -> tuple[list[int], TalkTaker]:
        """Parts that were submitted before an error still end, and their taker with them."""
        ids, n, err = ffi.new("const uint64_t **"), ffi.new("size_t *"), ffi.new("tern_error *")
        status = lib.tern_talk_submit(taker.answer.get(), ids, n, err)
        if status:
            taker.error = _library.failure(status, err)
        else:
            taker.read()
        return [ids[0][i] for i in range(n[0])], taker


def plain_schema(form: Any) -> Any:
    """A JSON schema as a dict."""
    if hasattr(form, "model_json_schema"):
        return form.model_json_schema()
    return json.loads(form) if isinstance(form, str) else form


def plain_tool(tool: Any) -> Any:
    """A tool in OpenAI's form; a class of pydantic becomes one of its name."""
    if not hasattr(tool, "model_json_schema"):
        return tool
    schema = tool.model_json_schema()
    function = {"name": tool.__name__, "parameters": schema}
    if schema.get("description"):
        function["description"] = schema["description"]
    return {"type": "function", "function": function}
