# SPDX-License-Identifier: Apache-2.0
"""Text and tokens."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable, Mapping, Sequence

from ._library import Handle, call, ffi, freer, integer, lib, name_bytes, string, tokens_in


class Tokenizer:
    """A tokenizer: of a GGUF file, of a tokenizer.json, or of a model. Any number of threads may use it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        out = ffi.new("tern_tokenizer **")
        call(lib.tern_tokenizer_open, name_bytes(path, "path"), ffi.NULL, out)
        self._handle: Handle = Handle(out[0], freer(lib.tern_tokenizer_free, "tern_tokenizer"), "tokenizer")
        self._pointer: Any = out[0]

    @classmethod
    def _of_model(cls, model: Handle) -> Tokenizer:
        """That of a model, which owns it."""
        out = ffi.new("const tern_tokenizer **")
        call(lib.tern_model_tokenizer, model.get(), out)
        self = cls.__new__(cls)
        self._handle = model
        self._pointer = out[0]
        return self

    def _get(self) -> Any:
        self._handle.get()
        return self._pointer

    # ---- texts and ids --------------------------------------------------------------------------
    def encode(self, text: str | bytes, *, special: bool = True, parse: bool = False) -> list[int]:
        """The ids of a text. special: with the tokens that the model wants at its ends. parse: control tokens in the
        text are recognised, so it must be trusted."""
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"text must be a str or bytes, not {type(text).__name__}")
        data = text.encode("utf-8") if isinstance(text, str) else text
        flags = (lib.TERN_TOKENIZE_SPECIAL if special else 0) | (lib.TERN_TOKENIZE_PARSE if parse else 0)
        ids, n = ffi.new("int32_t **"), ffi.new("size_t *")
        call(lib.tern_tokenize_within, self._get(), data, len(data), flags, ffi.NULL, ids, n)
        return _take_ids(ids[0], n[0])

    def decode(self, tokens: Iterable[int], *, skip_special: bool = False) -> str:
        """The text of ids. What is not UTF-8 becomes U+FFFD."""
        return self.decode_bytes(tokens, skip_special=skip_special).decode("utf-8", "replace")

    def decode_bytes(self, tokens: Iterable[int], *, skip_special: bool = False) -> bytes:
        """The same as bytes."""
        ids = tokens_in(tokens)
        size = ffi.new("size_t *")
        call(lib.tern_detokenize, self._get(), ids, len(ids), skip_special, ffi.NULL, 0, size)
        if size[0] == 0:
            return b""
        text = ffi.new("char[]", size[0])
        call(lib.tern_detokenize, self._get(), ids, len(ids), skip_special, text, size[0], size)
        return bytes(ffi.buffer(text, size[0]))

    def token(self, number: int) -> bytes:
        """The bytes of one token; a control token gives its text."""
        size = ffi.new("size_t *")
        data = lib.tern_token_bytes(self._get(), integer(number, "number", 0, len(self) - 1), True, size)
        return bytes(ffi.buffer(data, size[0])) if size[0] else b""

    # ---- conversations --------------------------------------------------------------------------
    def apply_chat_template(self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Any] | None = None,
                            add_generation_prompt: bool = True, continue_final_message: bool = False,
                            tokenize: bool = True, **variables: Any) -> Any:
        """A conversation as the model sees it: ids, or with tokenize=False a text. Messages are those of OpenAI's
        interface; further arguments are variables of the template."""  # fmt: skip
        conversation, keep = _conversation(messages, tools, variables)
        conversation.no_answer = not add_generation_prompt and not continue_final_message
        conversation.continues = continue_final_message
        out = ffi.new("tern_rendering *")
        try:
            call(lib.tern_conversation_render, self._get(), conversation, out)
            if tokenize:
                return ffi.unpack(out.ids, out.n) if out.n else []
            return bytes(ffi.buffer(out.text, out.size)).decode("utf-8", "replace") if out.size else ""
        finally:
            lib.tern_rendering_free(out)
            del keep

    @property
    def chat_format(self) -> str:
        """ "template" where the file's own is used, else the name of the one that stands in, or "none"."""
        return string(lib.tern_chat_format(self._get()))

    # ---- facts ----------------------------------------------------------------------------------
    def __len__(self) -> int:
        return int(lib.tern_tokenizer_size(self._get()))

    @property
    def kind(self) -> str:
        """How it works: "byte-level BPE", "WordPiece", ..."""
        return string(lib.tern_tokenizer_kind(self._get()))

    @property
    def bos(self) -> int | None:
        """The token that begins a text."""
        return _id_or_none(lib.tern_token_bos(self._get()))

    @property
    def eos(self) -> int | None:
        """The token that ends a text."""
        return _id_or_none(lib.tern_token_eos(self._get()))

    def ends_text(self, number: int) -> bool:
        """True for each token that ends a text."""
        return bool(lib.tern_token_ends_text(self._get(), integer(number, "number", 0, len(self) - 1)))

    def close(self) -> None:
        """Gives its memory back. A model's tokenizer goes with the model."""
        if self._handle._what == "tokenizer":
            self._handle.close()


def _take_ids(ids: Any, n: int) -> list[int]:
    """Ids that the library allocated."""
    try:
        return list(ffi.unpack(ids, n)) if n else []
    finally:
        lib.free(ids)


def _id_or_none(number: int) -> int | None:
    return None if number < 0 else number


def _conversation(messages: Any, tools: Any, variables: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """A tern_conversation, and what must live as long as it."""
    if isinstance(messages, (str, bytes, Mapping)) or not hasattr(messages, "__iter__"):
        raise TypeError(f"messages must be a sequence of dicts, not {type(messages).__name__}")
    listed = list(messages)
    keep: list[Any] = []

    def text(value: Any, what: str) -> Any:
        if value is None:
            return ffi.NULL
        keep.append(ffi.new("char[]", name_bytes(value, what)))
        return keep[-1]

    array = ffi.new("tern_chat_message[]", len(listed))
    keep.append(array)
    for i, message in enumerate(listed):
        if not isinstance(message, Mapping):
            raise TypeError(f"messages[{i}] must be a dict, not {type(message).__name__}")
        calls = message.get("tool_calls")
        array[i].role = text(message.get("role", ""), f"messages[{i}].role")
        array[i].content = text(message.get("content"), f"messages[{i}].content")
        array[i].tool_calls = text(json.dumps(calls) if calls else None, "tool_calls")
        array[i].tool_call_id = text(message.get("tool_call_id"), f"messages[{i}].tool_call_id")
        array[i].name = text(message.get("name"), f"messages[{i}].name")
        array[i].reasoning = text(message.get("reasoning_content"), f"messages[{i}].reasoning_content")
    out = ffi.new("tern_conversation *")
    out.messages, out.n = array, len(listed)
    out.tools = text(json.dumps(list(tools)) if tools else None, "tools")
    out.variables = text(json.dumps(variables) if variables else None, "variables")
    return out, keep
