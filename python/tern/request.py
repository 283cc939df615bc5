# SPDX-License-Identifier: Apache-2.0
"""Requests for text: arguments of Python as a tern_request."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any, Mapping, Sequence, TypedDict

from ._library import Handle, call, ffi, freer, integer, lib, number, tokens_in
from .answer import stops_of
from .tokenizer import Tokenizer

MOST_SIZE = 2**62
_REALS = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")


class Options(TypedDict, total=False):
    """The arguments of generate beside the prompt (docs/python.md)."""

    max_tokens: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int | None
    repetition_penalty: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    repeat_last_n: int | None
    logit_bias: Mapping[int, float] | None
    stop: str | Sequence[str] | None
    stop_tokens: Sequence[int] | None
    ignore_end: bool
    schema: Any
    grammar: str | None
    pattern: str | None
    logprobs: int | None
    timeout: float | None
    draft: bool


def check_names(options: Mapping[str, Any]) -> None:
    """Raises for arguments that generate does not have."""
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"there is no argument {name!r}; there are {', '.join(Options.__annotations__)}")


def sampling_of(options: Mapping[str, Any], keep: list[Any]) -> Any:
    """A tern_sampler_params; the library checks the ranges."""
    out = ffi.new("tern_sampler_params *")
    out[0] = lib.tern_sampler_params_default()
    for name in _REALS:
        if options.get(name) is not None:
            setattr(out, name, number(options[name], name))
    for name, most in (("top_k", 2**32 - 1), ("seed", 2**64 - 1), ("repeat_last_n", 2**32 - 1)):
        if options.get(name) is not None:
            setattr(out, name, integer(options[name], name, 0, most))
    bias = options.get("logit_bias") or {}
    if not isinstance(bias, Mapping):
        raise TypeError(f"logit_bias must be a dict, not {type(bias).__name__}")
    array = ffi.new("tern_logit_bias[]", len(bias))
    for i, (token, value) in enumerate(bias.items()):
        array[i].token = integer(token, "a token of logit_bias", -(2**31), 2**31 - 1)
        array[i].bias = number(value, "a bias of logit_bias")
    out.bias, out.n_bias = array, len(bias)
    keep += [array, out]
    return out


def schema_text(schema: Any) -> str:
    """A JSON schema as text: of a dict, of a text, of a class of pydantic."""
    if hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()
    if isinstance(schema, str):
        return schema
    if not isinstance(schema, (Mapping, bool)):
        raise TypeError(f"schema must be a dict, a str or a model of pydantic, not {type(schema).__name__}")
    return json.dumps(schema)


class Grammars:
    """The compiled forms of a model's answers. The latest are kept, with the masks that they remember."""

    KEPT = 32

    def __init__(self, tokenizer: Tokenizer, n_vocab: int) -> None:
        self._tokenizer = tokenizer
        self._n_vocab = n_vocab
        self._lock = threading.Lock()
        self._tokens: Handle | None = None
        self._kept: OrderedDict[tuple[str, str], Handle] = OrderedDict()

    def find(self, kind: str, text: str) -> Handle:
        """The grammar of a schema, a pattern or GBNF."""
        with self._lock:
            if (kind, text) in self._kept:
                self._kept.move_to_end((kind, text))
                return self._kept[kind, text]
            grammar = self._compile(kind, text)
            self._kept[kind, text] = grammar
            if len(self._kept) > self.KEPT:
                self._kept.popitem(last=False)
            return grammar

    def _compile(self, kind: str, text: str) -> Handle:
        if self._tokens is None:
            out = ffi.new("tern_grammar_tokens **")
            call(lib.tern_grammar_tokens_new, self._tokenizer._get(), self._n_vocab, out)
            free = freer(lib.tern_grammar_tokens_free, "tern_grammar_tokens")
            self._tokens = Handle(out[0], free, "vocabulary", self._tokenizer._handle)
        data = text.encode("utf-8")
        out = ffi.new("tern_grammar **")
        if kind == "schema":
            params = ffi.new("tern_schema_params *", {"closed": True})
            call(lib.tern_grammar_from_schema, self._tokens.get(), data, len(data), b"schema", params, out)
        else:
            compile_it = lib.tern_grammar_from_gbnf if kind == "grammar" else lib.tern_grammar_from_pattern
            call(compile_it, self._tokens.get(), data, len(data), kind.encode(), out)
        return Handle(out[0], freer(lib.tern_grammar_free, "tern_grammar"), "grammar", self._tokens)


def form_of(options: Mapping[str, Any]) -> tuple[str, str] | None:
    """The kind of form that is asked for, and its text."""
    given = [name for name in ("schema", "grammar", "pattern") if options.get(name) is not None]
    if len(given) > 1:
        raise ValueError(f"{given[0]} and {given[1]} exclude each other")
    if not given:
        return None
    form = options[given[0]]
    if given[0] == "schema":
        return "schema", schema_text(form)
    if not isinstance(form, str):
        raise TypeError(f"{given[0]} must be a str, not {type(form).__name__}")
    return given[0], form


class Request:
    """A tern_request and what it points to. The state of its grammar lives as long as this."""

    def __init__(self, tokens: Any, options: Mapping[str, Any], grammars: Grammars | None) -> None:
        self.keep: list[Any] = []
        self.state: Handle | None = None
        ids = tokens_in(tokens, "prompt")
        self.n_prompt = len(ids)
        self.c = request = ffi.new("tern_request *")
        request.tokens, request.n_tokens = ids, len(ids)
        request.sampling = sampling_of(options, self.keep)
        request.within_context = True
        self._set_lengths(options)
        self._set_stops(options)
        logprobs = options.get("logprobs")
        if logprobs is not None:
            request.logprobs = True
            request.n_logprobs = integer(logprobs, "logprobs", 0, lib.TERN_MOST_LOGPROBS)
        draft = options.get("draft", True)
        request.draft = lib.TERN_DRAFT_WHERE_IT_PAYS if draft else lib.TERN_DRAFT_NEVER
        self.keep.append(ids)
        form = form_of(options)
        if form is not None and grammars is not None:
            self._set_form(grammars.find(*form))

    def _set_lengths(self, options: Mapping[str, Any]) -> None:
        request = self.c
        most = options.get("max_tokens")
        if most is not None:
            request.max_tokens = integer(most, "max_tokens", 0, MOST_SIZE)
            request.prompt_only = request.max_tokens == 0
        request.ignore_end = bool(options.get("ignore_end", False))
        if options.get("timeout") is not None:
            request.deadline_seconds = number(options["timeout"], "timeout")
            if request.deadline_seconds <= 0:
                raise ValueError("timeout must be more than 0")

    def _set_stops(self, options: Mapping[str, Any]) -> None:
        request = self.c
        texts = [ffi.new("char[]", text.encode("utf-8")) for text in stops_of(options.get("stop"))]
        array = ffi.new("char *[]", texts)
        request.stop_texts, request.n_stop_texts = ffi.cast("const char *const *", array), len(texts)
        given = options.get("stop_tokens")
        tokens = tokens_in([] if given is None else given, "stop_tokens")
        if len(tokens) and min(tokens) < 0:
            raise ValueError(f"stop_tokens holds {min(tokens)}, which is not a token")
        request.stop_tokens, request.n_stop_tokens = tokens, len(tokens)
        self.keep += [texts, array, tokens]

    def _set_form(self, grammar: Handle) -> None:
        out = ffi.new("tern_grammar_state **")
        call(lib.tern_grammar_state_new, grammar.get(), 1, out)
        self.state = Handle(out[0], freer(lib.tern_grammar_state_free, "tern_grammar_state"), "grammar", grammar)
        self.c.mask = lib.tern_grammar_mask
        self.c.user = out[0]
