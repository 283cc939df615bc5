# SPDX-License-Identifier: Apache-2.0
"""Many answers at once: one thread steps the engine of the library, and any number may ask."""

from __future__ import annotations

import queue
import threading
import weakref
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Iterator, Mapping, TypeVar

from . import _library, errors
from ._library import Handle, call, ffi, find_cache_format, freer, integer, lib, string
from .answer import Answer, Asked, Figures, Logprob, Piece
from .request import Options, Request, check_names

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .model import Model

CANCELLED = "cancelled"


# ---- who takes events ---------------------------------------------------------------------------
class Taker:
    """Takes the events of a request, in the thread that steps. `finish` runs after the last one, without the lock."""

    def __init__(self, request: Any) -> None:
        self.request = request  # what the engine points to lives as long as this
        self.error: BaseException | None = None

    def takes(self, event: Any) -> bool:
        """take(), and what goes wrong in it belongs to the request alone: later events are dropped."""
        try:
            if self.error is None:
                return self.take(event)
        except Exception as error:
            self.error = error
        return bool(event.kind == lib.TERN_EVENT_END)

    def take(self, event: Any) -> bool:
        """True: it was the last one."""
        raise NotImplementedError

    def finish(self) -> None:
        """Tells who waits."""
        raise NotImplementedError

    def fail(self, error: BaseException) -> None:
        """Tells who waits that nothing more will come."""
        self.error = error
        self.finish()


def set_future(future: Future[Any], result: Any = None, error: BaseException | None = None) -> None:
    """Ends a future, unless its owner has cancelled it."""
    if not future.set_running_or_notify_cancel():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


class TextTaker(Taker):
    """Collects an answer; `show` sees each piece."""

    def __init__(self, request: Request, asked: Asked, show: Any = None, logprobs: bool = False) -> None:
        super().__init__(request)
        self.future: Future[Answer] = Future()
        self.asked = asked
        self.show = show
        self.logprobs = logprobs
        self.text: list[bytes] = []
        self.tokens: list[int] = []
        self.pieces: list[Piece] = []
        self.result: Answer | None = None

    def take(self, event: Any) -> bool:
        text = bytes(ffi.buffer(event.text, event.size)) if event.size else b""
        if text:
            self.text.append(text)
        if event.kind == lib.TERN_EVENT_TOKEN:
            self.tokens.append(event.token)
            if self.show is not None or self.logprobs:
                self._tell(event, text)
            return False
        self._end(event, text)
        return True

    def _tell(self, event: Any, text: bytes) -> None:
        likeliest = [Logprob(e.token, e.logprob) for e in event.likeliest[0 : event.n_likeliest]] if event.n_likeliest else ()
        piece = Piece(text.decode("utf-8", "replace"), event.token, event.logprob if self.logprobs else None, likeliest)
        if self.logprobs:
            self.pieces.append(piece)
        if self.show is not None:
            self.show(piece)

    def _end(self, event: Any, text: bytes) -> None:
        if event.end == lib.TERN_END_ERROR:
            why = event.error
            state = self.request.state
            if state is not None and (said := lib.tern_grammar_state_error(state.get())) != ffi.NULL:
                why = said
            self.error = _library.failure(why.status, why)
            return
        if text and self.show is not None:  # what was held back
            self.show(Piece(text.decode("utf-8", "replace"), -1))
        whole = b"".join(self.text).decode("utf-8", "replace")
        figures = figures_of(event.figures)
        self.result = Answer(whole, self.tokens, string(lib.tern_end_name(event.end)), string(event.digest),
                             self.asked.prompt, figures, self.pieces, self.asked)  # fmt: skip

    def finish(self) -> None:
        set_future(self.future, self.result, self.error)
        if self.show is not None:
            self.show(None)


class VectorTaker(Taker):
    """Takes the vector of a text."""

    def __init__(self, request: Any, n_embd: int, keep: int) -> None:
        super().__init__(request)
        self.future: Future[bytes] = Future()
        self.n_embd, self.keep = n_embd, keep
        self.vector = b""

    def take(self, event: Any) -> bool:
        if event.kind != lib.TERN_EVENT_END:
            return False
        if event.end == lib.TERN_END_ERROR:
            self.error = _library.failure(event.error.status, event.error)
        elif event.pooled == ffi.NULL:
            self.error = errors.TernError("the text was cancelled")
        else:
            out = ffi.new("float[]", self.keep)
            lib.tern_embedding_normalize(event.pooled, self.keep, out)
            self.vector = bytes(ffi.buffer(out))
        return True

    def finish(self) -> None:
        set_future(self.future, self.vector, self.error)


def figures_of(f: Any) -> Figures:
    """The figures of an answer that ended."""
    return Figures(f.seconds, f.first_token_seconds, f.prompt_seconds, f.queued_seconds, f.n_prompt, f.n_shared, f.n_guessed,
                   f.n_guessed_right)  # fmt: skip


# ---- the thread that steps ----------------------------------------------------------------------
class Core:
    """An engine of the library and its thread. It knows nothing of who uses it, so that it ends with them."""

    def __init__(self, model: Handle, draft: Handle | None, params: Any) -> None:
        """draft: a model that guesses, or None."""
        out = ffi.new("tern_engine **")
        params.draft_model = draft.get() if draft is not None else ffi.NULL
        call(lib.tern_engine_new, model.get(), params, out)
        self.handle = Handle(out[0], freer(lib.tern_engine_free, "tern_engine"), "engine", model, draft)
        self.wanted = threading.Condition(threading.Lock())
        self.takers: dict[int, Taker] = {}
        self.stopping = False
        self.thread: threading.Thread | None = None

    def submit(self, ask: Any) -> list[int]:
        """Calls `ask` with the engine, which gives (ids, taker) of what it submitted. Nothing of it is missed: the events
        wait for the lock."""
        pointer = self.handle.get()  # before the lock, which a fork may have left locked
        with self.wanted:
            if self.stopping:
                raise errors.ClosedError("the engine is closed")
            ids, taker = ask(pointer)
            for number in ids:
                self.takers[number] = taker
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="tern engine", daemon=True)
                self.thread.start()
            self.wanted.notify()
            return list(ids)

    def submit_one(self, request: Any, taker: Taker) -> list[int]:
        """Submits a tern_request."""

        def ask(engine: Any) -> Any:
            number = ffi.new("uint64_t *")
            call(lib.tern_engine_submit, engine, request, number)
            return [number[0]], taker

        return self.submit(ask)

    def cancel(self, ids: list[int]) -> None:
        """Ends requests before the next pass."""
        if self.handle._forks != _library.forks():
            return
        with self.wanted:
            if self.handle.alive and not self.stopping:
                for number in ids:
                    lib.tern_engine_cancel(self.handle.get(), number)

    def _run(self) -> None:
        """Steps while there is something to do."""
        pointer = self.handle.get()
        events, n, err = ffi.new("const tern_event **"), ffi.new("size_t *"), ffi.new("tern_error *")
        while True:
            with self.wanted:
                while not self.takers and not self.stopping:
                    self.wanted.wait()
                if self.stopping:
                    return
            status = lib.tern_engine_step(pointer, events, n, err)
            if status:
                self._fail_all(_library.failure(status, err))
            elif n[0]:
                self._hand_over(events[0], n[0])

    def _hand_over(self, events: Any, n: int) -> None:
        over: list[Taker] = []
        with self.wanted:
            for i in range(n):
                taker = self.takers.get(events[i].request)
                if taker is not None and taker.takes(events + i):
                    over.append(taker)
                    self.takers = {k: t for k, t in self.takers.items() if t is not taker}
        for taker in over:
            taker.finish()

    def _fail_all(self, error: BaseException) -> None:
        with self.wanted:
            takers, self.takers = list(dict.fromkeys(self.takers.values())), {}
        for taker in takers:
            taker.fail(error)

    def stop(self) -> None:
        """Ends the thread, tells who waits, and frees the engine."""
        if self.handle._forks != _library.forks() or not self.handle.alive:
            return
        with self.wanted:
            self.stopping = True
            self.wanted.notify_all()
            thread = self.thread
        if thread is threading.current_thread():  # the garbage collector ran in it
            threading.Thread(target=self._stop_later, args=(thread,), name="tern end", daemon=True).start()
            return
        if thread is not None:
            thread.join()
        self._end()

    def _stop_later(self, thread: threading.Thread) -> None:
        thread.join()
        self._end()

    def _end(self) -> None:
        self._fail_all(errors.ClosedError("the engine was closed before the answer was whole"))
        self.handle.close()


def stop_core(core: Core) -> None:
    """For a finalizer, which must not know its object."""
    core.stop()


# ---- what people use ----------------------------------------------------------------------------
T = TypeVar("T")


class Follower(Iterator[T]):
    """What a taker puts into a queue, as it comes, until None. Closing it ends the answer."""

    def __init__(self, core: Core, items: queue.SimpleQueue[T | None], ids: list[int], future: Future[Any]) -> None:
        self._core, self._items, self._ids, self._future = core, items, ids, future
        self._over = False
        weakref.finalize(self, core_cancel, core, ids)

    def __next__(self) -> T:
        if self._over:
            raise StopIteration
        try:
            item = self._items.get()
        except BaseException:
            self.close()
            raise
        if item is None:
            self._over = True
            if not self._future.cancelled():
                self._future.result()  # raises what went wrong
            raise StopIteration
        return item

    def close(self) -> None:
        """Ends the answer."""
        self._over = True
        self._core.cancel(self._ids)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Stream(Follower[Piece]):
    """The pieces of an answer, as they come. Afterwards `answer` is the whole. Closing it ends the answer."""

    @property
    def answer(self) -> Answer:
        """The whole answer. Waits for it, and leaves out what was not taken yet."""
        return self._future.result()  # type: ignore[no-any-return]


def core_cancel(core: Core, ids: list[int]) -> None:
    """For a finalizer, which must not know its object."""
    if core.takers.keys() & set(ids):
        core.cancel(ids)


class Engine:
    """Answers many requests at once; each gets the tokens and the digest that it gets alone. Any thread may ask."""

    def __init__(self, model: Model, *, context: int = 0, parallel: int = 16, memory: int = 0, batch: int = 0, threads: int = 0,
                 kv: str = "f16", queued: int = 4096) -> None:  # fmt: skip
        """context: positions of each answer, 0: what the model was trained for, at most 4096. memory: bytes of the cache, 0:
        as many as one answer may need. queued: how many may wait."""
        params = ffi.new("tern_engine_params *")
        params[0] = lib.tern_engine_params_default()
        params.n_ctx = integer(context, "context", 0, 2**32 - 1)
        params.n_sequences = integer(parallel, "parallel", 1, 2**32 - 1)
        params.pool_bytes = integer(memory, "memory", 0, 2**63)
        params.n_batch = integer(batch, "batch", 0, 2**32 - 1)
        params.n_queue = integer(queued, "queued", 1, 2**32 - 1)
        params.threads = integer(threads, "threads", 0, 2**32 - 1)
        params.kv = find_cache_format(kv)
        self._model: Callable[[], Model | None] = lambda: model
        self._kv = params.kv
        self._core = Core(model._handle, model._draft, params)
        self._talk: Any = None
        self._talk_lock = threading.Lock()
        self._end = weakref.finalize(self, stop_core, self._core)

    @property
    def model(self) -> Model:
        """The model. Its own engine does not keep it alive, so that it goes at once when nobody has it any more."""
        model = self._model()
        if model is None:
            raise errors.ClosedError("the model of this engine is gone")
        return model

    # ---- asking -----------------------------------------------------------------------------
    def _ask(self, prompt: Any, options: Mapping[str, Any], show: Any = None) -> tuple[list[int], TextTaker]:
        check_names(options)
        model = self.model
        tokens = model._tokens_of(prompt)
        request = Request(tokens, options, model._grammars())
        form = next((options[n] for n in ("schema", "grammar", "pattern") if options.get(n) is not None), None)
        kept = {name: value for name, value in options.items() if value is not None and name not in ("schema", "grammar", "pattern")}
        asked = Asked(model.path, tokens, kept, form)
        taker = TextTaker(request, asked, show, options.get("logprobs") is not None)
        return self._core.submit_one(request.c, taker), taker

    def submit(self, prompt: Any, **options: Unpack[Options]) -> Future[Answer]:
        """A future of an answer. Cancelling it ends the answer."""
        ids, taker = self._ask(prompt, options)
        core = self._core

        def ended(future: Future[Answer]) -> None:
            if future.cancelled():
                core.cancel(ids)

        taker.future.add_done_callback(ended)
        return taker.future

    def generate(self, prompt: Any, **options: Unpack[Options]) -> Answer:
        """The answer, when all of it is there."""
        ids, taker = self._ask(prompt, options)
        try:
            return taker.future.result()
        except BaseException:
            self._core.cancel(ids)
            raise

    def stream(self, prompt: Any, **options: Unpack[Options]) -> Stream:
        """The answer as it comes."""
        pieces: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        ids, taker = self._ask(prompt, options, pieces.put)
        return Stream(self._core, pieces, ids, taker.future)

    async def agenerate(self, prompt: Any, **options: Unpack[Options]) -> Answer:
        """The answer, awaited. Cancelling the task ends it."""
        import asyncio  # no sooner: it takes longer than the rest of the package

        return await asyncio.wrap_future(self.submit(prompt, **options))

    async def astream(self, prompt: Any, **options: Unpack[Options]) -> AsyncIterator[Piece]:
        """The answer as it comes, for `async for`."""
        import asyncio

        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[Piece | None] = asyncio.Queue()

        def show(piece: Piece | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

        ids, taker = self._ask(prompt, options, show)
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            taker.future.result()
        finally:
            core_cancel(self._core, ids)

    # ---- the engine ---------------------------------------------------------------------------
    @property
    def context(self) -> int:
        """Positions of each answer, its prompt included."""
        return int(lib.tern_engine_now(self._core.handle.get()).n_ctx)

    def state(self) -> dict[str, int]:
        """What it does, and has done."""
        now = lib.tern_engine_now(self._core.handle.get())
        return {name: int(getattr(now, name)) for name in
                ("waiting", "running", "passes", "tokens", "shared_tokens", "set_aside", "pages", "free_pages", "threads")}  # fmt: skip

    def close(self) -> None:
        """Ends all answers and gives the memory back."""
        if self._talk is not None:
            talk, self._talk = self._talk, None
            self._end()
            talk.close()
        self._end()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


