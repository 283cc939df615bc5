# SPDX-License-Identifier: Apache-2.0
"""Models and sessions."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from . import _arrays, _program, errors
from ._library import Handle, call, ffi, find_cache_format, format_name, freer, integer, lib, name_bytes, string, tokens_in
from .answer import Answer
from .chat import EventStream, Reply, Talk
from .engine import Engine, Stream, VectorTaker
from .request import Grammars, Options
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    import numpy as np

_TEXTS = ("isa", "disable", "layout", "i2s_map", "tl_tiles", "pre_tokenizer", "tokenizer", "chat_format", "device", "activations")
_SWITCHES = ("tune", "strict", "exact_head", "long_context", "no_sidecar", "replicate")


def default_cache() -> str:
    """The folder in which the program keeps packed weights and measurements; "" where there is none."""
    path = ffi.new("char[4096]")
    return string(path) if lib.tern_cache_default(path, len(path)) else ""


class Model:
    """A model. Any number of threads may use it; what they ask for at the same time is computed together."""

    def __init__(self, source: str | os.PathLike[str], *, context: int = 0, parallel: int = 16, memory: int = 0, threads: int = 0,
                 kv: str = "f16", cache: str | os.PathLike[str] | None = "default", tune: bool = True,
                 draft_model: str | os.PathLike[str] | None = None, **options: Any) -> None:  # fmt: skip
        """source: a path, OWNER/NAME of the Hugging Face Hub, or a short name. context, parallel, memory, threads, kv:
        of the engine (Engine). cache: a folder, None for none. tune: use the kernels that measure best. Others are those
        of tern_model_params: isa, disable, layout, i2s_map, tl_tiles, pre_tokenizer, tokenizer, chat_format, device,
        activations, strict, exact_head, long_context, no_sidecar, replicate. lora: adapters for all answers, each a path
        or a pair of a path and a scale. draft_model: a smaller model with the same tokens, which guesses tokens for
        all answers; they stay the same."""
        find_cache_format(kv)
        self._engine_options: dict[str, Any] = {"context": context, "parallel": parallel, "memory": memory, "threads": threads, "kv": kv}
        keep: list[Any] = []
        params = _params({"tune": tune, "threads": threads, "cache": default_cache() if cache == "default" else cache, **options}, keep)
        self.path = _program.find_model(source)
        self._handle = _open(self.path, params)
        self._draft = self._open_draft(draft_model, params) if draft_model is not None else None
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._session: Session | None = None
        self._forms: Grammars | None = None

    def _open_draft(self, source: str | os.PathLike[str], params: Any) -> Handle:
        """The model that guesses, opened like this one, but without adapters."""
        params.adapters, params.n_adapters = ffi.NULL, 0
        draft = _open(_program.find_model(source), params)
        call(lib.tern_model_may_draft, draft.get(), self._handle.get())
        return draft

    # ---- text ---------------------------------------------------------------------------------
    @property
    def engine(self) -> Engine:
        """The engine that answers for the model; made when it is first asked."""
        self._handle.get()
        with self._lock:
            if self._engine is None:
                self._engine = Engine(self, **self._engine_options)
                self._engine._model = weakref.ref(self)
            return self._engine

    def generate(self, prompt: str | Sequence[int], **options: Unpack[Options]) -> Answer:
        """The answer to a prompt, which is a text or ids. The arguments are those of tern.Options (docs/python.md)."""
        return self.engine.generate(prompt, **options)

    def stream(self, prompt: str | Sequence[int], **options: Unpack[Options]) -> Stream:
        """The same as it comes."""
        return self.engine.stream(prompt, **options)

    def submit(self, prompt: str | Sequence[int], **options: Unpack[Options]) -> Future[Answer]:
        """A future of the same."""
        return self.engine.submit(prompt, **options)

    def chat(self, messages: Any, **fields: Any) -> Reply | EventStream:
        """A reply in a conversation. Fields are those of OpenAI's chats; also schema=, a dict or a class of pydantic. With
        stream=True an iterator of events."""
        return Talk.of(self.engine).chat(messages, fields)

    def complete(self, prompt: Any, **fields: Any) -> Reply | EventStream:
        """The same for OpenAI's completions."""
        return Talk.of(self.engine).complete(prompt, fields)

    # ---- tokens, logits, vectors ----------------------------------------------------------------
    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return Tokenizer._of_model(self._handle)

    def logits(self, tokens: str | Iterable[int], *, all: bool = False) -> np.ndarray[Any, Any]:
        """What may follow the last token, float32 [vocabulary]; with `all` what may follow each, [tokens, vocabulary]."""
        ids = self._tokens_of(tokens)
        with self._lock:
            self._handle.get()
            if self._session is None or self._session.context < len(ids):
                wanted = max(len(ids), 512)
                self._session = None  # first, so that one cache is enough
                self._session = self.session(context=min(wanted, max(len(ids), self.info["n_ctx_train"])))
                self._session.model = weakref.proxy(self)
            return self._session._eval_at(0, ids, all)

    def embed(self, texts: str | Sequence[str] | Sequence[Sequence[int]], *, pooling: str | None = None,
              dimensions: int = 0) -> np.ndarray[Any, Any]:  # fmt: skip
        """Vectors of texts, float32 [texts, dimensions], each of length 1; of one text [dimensions]. pooling: "mean",
        "cls" or "last", without it the model's own, else the last token's state."""
        import numpy as np

        width = self.info["n_embd"]
        keep = integer(dimensions, "dimensions", 0, width) or width
        if not lib.tern_model_shortens(self._handle.get(), keep):
            raise errors.RequestError(f"{keep} of {width} numbers are not a vector of this model", param="dimensions")
        kind = self._pooling(pooling)
        one = isinstance(texts, str)
        listed: list[Any] = [texts] if isinstance(texts, str) else list(texts)
        rows = [future.result() for future in [self._vector(text, kind, width, keep) for text in listed]]
        out = np.frombuffer(b"".join(rows), np.float32).reshape(len(listed), keep).copy()
        return out[0] if one else out

    def _pooling(self, name: str | None) -> int:
        out = ffi.new("tern_pooling *")
        if name is not None:
            if not lib.tern_pooling_find(name_bytes(name, "pooling"), out) or out[0] in (lib.TERN_POOLING_NONE, lib.TERN_POOLING_RANK):
                raise errors.RequestError(f"pooling {name!r}: there are mean, cls and last", param="pooling")
            return int(out[0])
        own = int(lib.tern_model_pooling(self._handle.get()))
        if own == lib.TERN_POOLING_RANK:
            raise errors.RequestError("the model scores pairs of texts; a pooling makes vectors: mean, cls and last", param="pooling")
        if own != lib.TERN_POOLING_NONE:
            return own
        return int(lib.TERN_POOLING_LAST if lib.tern_model_continues(self._handle.get()) else lib.TERN_POOLING_MEAN)

    def _vector(self, text: Any, pooling: int, width: int, keep: int) -> Future[bytes]:
        ids = tokens_in(self._tokens_of(text), "a text")
        request = ffi.new("tern_request *", {"tokens": ids, "n_tokens": len(ids), "prompt_only": True, "pooling": pooling})
        taker = VectorTaker((request, ids), width, keep)
        self.engine._core.submit_one(request, taker)
        return taker.future

    def session(self, *, context: int = 0, threads: int = 0, kv: str | None = None, batch: int = 0) -> Session:
        """A session of the model, which remembers what it has computed."""
        return Session(self, context=context, threads=threads or self._engine_options["threads"],
                       kv=kv or self._engine_options["kv"], batch=batch)  # fmt: skip

    def _tokens_of(self, prompt: Any) -> list[int]:
        self._handle.get()
        if isinstance(prompt, (str, bytes)):
            return self.tokenizer.encode(prompt)
        return list(tokens_in(prompt, "prompt"))

    def _grammars(self) -> Grammars:
        with self._lock:
            if self._forms is None:
                self._forms = Grammars(self.tokenizer, self.info["n_vocab"])
            return self._forms

    # ---- facts ----------------------------------------------------------------------------------
    @functools.cached_property
    def info(self) -> Mapping[str, Any]:
        """What the model is: architecture, sizes, bytes (tern_model_info)."""
        out = ffi.new("tern_model_info *")
        lib.tern_model_describe(self._handle.get(), out)
        found = {name: getattr(out, name) for name, _ in ffi.typeof("tern_model_info").fields}
        return {name: value if isinstance(value, int) else string(value) for name, value in found.items()}

    @property
    def isa(self) -> str:
        """The instruction set whose kernels it uses."""
        return string(lib.tern_model_isa(self._handle.get()))

    def kernels(self, kv: str = "f16") -> list[str]:
        """Names of the kernels in use."""
        rows = ffi.new("const tern_kernel_row *[256]")
        n = lib.tern_model_kernels(self._handle.get(), find_cache_format(kv), rows, len(rows))
        return [string(rows[i].name) for i in range(min(n, len(rows)))]

    @functools.cached_property
    def identity(self) -> int:
        """A number that two models share only if they compute the same."""
        return int(lib.tern_model_identity(self._handle.get()))

    def close(self) -> None:
        """Ends its answers and gives the memory back; sessions and engines of its own keep it until they are closed."""
        with self._lock:
            engine, self._engine = self._engine, None
            session, self._session = self._session, None
            self._forms = None
        if engine is not None:
            engine.close()
        if session is not None:
            session.close()
        self._handle.close()
        self._draft = None  # engines that guess with it keep it

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"tern.Model({self.path!r})"


def _open(path: str, params: Any) -> Handle:
    """A model of the library."""
    out = ffi.new("tern_model **")
    call(lib.tern_model_open, name_bytes(path, "source"), params, out)
    return Handle(out[0], freer(lib.tern_model_free, "tern_model"), "model")


def _params(options: Mapping[str, Any], keep: list[Any]) -> Any:
    """A tern_model_params."""
    params = ffi.new("tern_model_params *")
    params[0] = lib.tern_model_params_default()
    for name, value in options.items():
        if name in _TEXTS or name == "cache":
            if value:
                keep.append(ffi.new("char[]", name_bytes(value, name)))
                setattr(params, name, keep[-1])
        elif name in _SWITCHES:
            setattr(params, name, bool(value))
        elif name == "threads":
            params.threads = integer(value, name, 0, 2**32 - 1)
        elif name == "lora":
            _set_adapters(params, value, keep)
        else:
            raise TypeError(f"there is no argument {name!r}; there are {', '.join((*_TEXTS, *_SWITCHES))}")
    params.tune_later = params.tune
    return params


def _set_adapters(params: Any, adapters: Any, keep: list[Any]) -> None:
    """Adapters are paths, or pairs of a path and a scale."""
    pairs = [(x, 1.0) if isinstance(x, (str, os.PathLike)) else x for x in adapters]
    paths = [ffi.new("char[]", name_bytes(path, "lora")) for path, _ in pairs]
    files = ffi.new("tern_adapter_file[]", [{"path": path, "scale": float(scale)} for path, (_, scale) in zip(paths, pairs, strict=True)])
    keep += [*paths, files]
    params.adapters, params.n_adapters = files, len(pairs)


class Session:
    """A sequence of tokens and what was computed for it. It belongs to one thread at a time."""

    def __init__(self, model: Model, *, context: int = 0, threads: int = 0, kv: str = "f16", batch: int = 0) -> None:
        params = ffi.new("tern_session_params *")
        params[0] = lib.tern_session_params_default()
        params.n_ctx = integer(context, "context", 0, 2**32 - 1)
        params.n_batch = integer(batch, "batch", 0, 2**32 - 1)
        params.threads = integer(threads, "threads", 0, 2**32 - 1)
        params.kv = find_cache_format(kv)
        out = ffi.new("tern_session **")
        call(lib.tern_session_new, model._handle.get(), params, out)
        self.model = model
        self._n_vocab = model.info["n_vocab"]
        self._handle = Handle(out[0], freer(lib.tern_session_free, "tern_session"), "session", model._handle)
        self._busy = threading.Lock()

    def _run(self, function: Any, *args: Any) -> None:
        """Calls a function of the session, which no other thread may use meanwhile."""
        if not self._busy.acquire(blocking=False):
            raise errors.BusyError("another thread uses this session: make one for each")
        try:
            call(function, self._handle.get(), *args)
        finally:
            self._busy.release()

    def eval(self, tokens: str | Iterable[int], *, logits: str | None = None) -> np.ndarray[Any, Any] | None:
        """Appends tokens. logits: "last" or "all"; without it none are computed now."""
        if logits not in (None, "last", "all"):
            raise ValueError(f"logits must be None, 'last' or 'all', not {logits!r}")
        ids = self.model._tokens_of(tokens) if isinstance(tokens, str) else list(tokens_in(tokens))
        if logits is None:
            self._run(lib.tern_session_eval, ids, len(ids), lib.TERN_LOGITS_NONE, ffi.NULL)
            return None
        return self._eval_at(self.position, ids, logits == "all")

    def _eval_at(self, position: int, ids: list[int], all: bool) -> np.ndarray[Any, Any]:
        out = _arrays.aligned((len(ids) if all else 1, self._n_vocab), "float32")
        mode = lib.TERN_LOGITS_ALL if all else lib.TERN_LOGITS_LAST
        self._run(lib.tern_session_eval_at, position, ids, len(ids), mode, _arrays.pointer(out, "float"))
        return out if all else out[0]

    def logits(self) -> np.ndarray[Any, Any]:
        """What may follow the last token, float32 [vocabulary]."""
        out = ffi.new("const float **")
        array = _arrays.aligned((self._n_vocab,), "float32")
        self._run(lib.tern_session_last_logits, out)
        ffi.memmove(_arrays.pointer(array, "float"), out[0], array.nbytes)
        return array

    def rewind(self, position: int) -> None:
        """Forgets what stands from this position on."""
        self._run(lib.tern_session_rewind, integer(position, "position", 0, 2**32 - 1))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the session to a file (docs/sessions.md)."""
        self._run(lib.tern_session_save, name_bytes(path, "path"))

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Reads one back, in place of what the session holds."""
        self._run(lib.tern_session_restore, name_bytes(path, "path"))

    @property
    def position(self) -> int:
        """How many tokens it holds."""
        return int(lib.tern_session_position(self._handle.get()))

    @property
    def context(self) -> int:
        """How many it can hold."""
        return int(lib.tern_session_context(self._handle.get()))

    @property
    def tokens(self) -> list[int]:
        """Those that it holds."""
        return list(ffi.unpack(lib.tern_session_tokens(self._handle.get()), self.position)) if self.position else []

    @property
    def kv(self) -> str:
        """The format of its cache."""
        return format_name(lib.tern_session_cache(self._handle.get()))

    def close(self) -> None:
        """Gives the memory back."""
        if not self._busy.acquire(blocking=False):
            raise errors.BusyError("another thread uses this session")
        try:
            self._handle.close()
        finally:
            self._busy.release()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
