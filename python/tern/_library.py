# SPDX-License-Identifier: Apache-2.0
"""The library: how it is found and called, and who owns what it gives."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any, Callable

from . import errors
from ._native import ffi as ffi

FOLDER = Path(__file__).parent / "_lib"
lib: Any = ffi.dlopen(str(FOLDER / "libtern.so"))

# Children of a fork count one more: what was opened before has no threads there.
_forks = 0


def _note_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_note_fork)


def forks() -> int:
    """How many forks lie between the first process and this one."""
    return _forks


# ---- statuses -----------------------------------------------------------------------------------
_NAMES = {getattr(lib, name): name[len("TERN_") :] for name in dir(lib) if name.startswith(("TERN_ERR_", "TERN_OK"))}
_FILES = {
    "ERR_IO", "ERR_CHANGED", "ERR_TRUNCATED", "ERR_MAGIC", "ERR_VERSION", "ERR_ENDIAN", "ERR_COUNT", "ERR_STRING",
    "ERR_KEY_DUPLICATE", "ERR_KEY_TYPE", "ERR_KEY_MISSING", "ERR_KEY_RANGE", "ERR_ALIGNMENT", "ERR_PARTS", "ERR_ARCH",
    "ERR_CONFIG", "ERR_NO_KV_HEADS", "ERR_HEADS", "ERR_NO_SIZE", "ERR_TILES", "ERR_SESSION", "ERR_SESSION_MODEL",
    "ERR_EXISTS", "ERR_TOKENIZER_MISSING", "ERR_TOKENIZER_MODEL", "ERR_TOKENIZER_PRE", "ERR_TOKENIZER_DATA",
}  # fmt: skip
_MEMORY = {"ERR_NOMEM", "ERR_CACHE_MEMORY", "ERR_SCRATCH_MEMORY", "ERR_ARENA"}
_REQUEST = {
    "ERR_ARG", "ERR_NAME", "ERR_JSON", "ERR_CHAT", "ERR_TEMPLATE", "ERR_GRAMMAR", "ERR_TOKEN_RANGE", "ERR_CONTEXT",
    "ERR_EMPTY", "ERR_FULL", "ERR_POSITION",
}  # fmt: skip


def error_of(status: int, message: str, param: str = "") -> errors.TernError:
    """The exception for a status of the library."""
    name = _NAMES.get(status, str(status))
    if name in _MEMORY:
        return errors.NoMemoryError(message, name)
    if name in _REQUEST:
        return errors.RequestError(message, name, param)
    file = name in _FILES or name.startswith("ERR_TENSOR")
    return errors.ModelError(message, name) if file else errors.TernError(message, name)


def text_of(status: int, err: Any) -> str:
    """The message of an error; the code's own text where the function gave none."""
    return string(err.message) or string(lib.tern_status_str(status))


def failure(status: int, err: Any, param: str = "") -> errors.TernError:
    """The exception for a status and the tern_error that came with it."""
    return error_of(status, text_of(status, err), param)


def call(function: Callable[..., int], *args: Any) -> None:
    """Calls a function whose last argument is a tern_error. Raises what it refuses with."""
    err = ffi.new("tern_error *")
    status = function(*args, err)
    if status:
        raise failure(status, err)


def string(text: Any) -> str:
    """A C text as a str; "" for NULL."""
    if text == ffi.NULL:
        return ""
    return ffi.string(text).decode("utf-8", "replace")  # type: ignore[no-any-return]


def name_bytes(text: Any, what: str) -> bytes:
    """A text for C, without the NUL at which C would cut it."""
    if isinstance(text, os.PathLike):
        text = os.fspath(text)
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"{what} must be a str, not {type(text).__name__}")
    data = os.fsencode(text) if isinstance(text, str) else text
    if b"\0" in data:
        raise ValueError(f"{what} holds a NUL character")
    return data


def integer(value: Any, what: str, least: int, most: int) -> int:
    """An int within bounds. bool and float are refused: they are mistakes."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be an int, not {type(value).__name__}")
    number = int(value.__index__())
    if not least <= number <= most:
        raise ValueError(f"{what} is {number}, and must be from {least} to {most}")
    return number


def number(value: Any, what: str) -> float:
    """A finite number."""
    if isinstance(value, bool) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"{what} must be a number, not {type(value).__name__}")
    result = float(value)
    if result != result or result in (float("inf"), float("-inf")):
        raise ValueError(f"{what} is {result}, and must be finite")
    return result


# ---- owners -------------------------------------------------------------------------------------
class Handle:
    """Owns a pointer of the library and keeps alive what it needs. Freed by close(), or when nobody has it any more."""

    def __init__(self, pointer: Any, free: Callable[[Any], None], what: str, *needs: Any) -> None:
        self._pointer = pointer
        self._forks = _forks
        self._what = what
        self._needs = needs
        self._end = weakref.finalize(self, _free, pointer, free, _forks, needs)
        self._end.atexit = False  # a thread may still use it; the system takes the memory back

    def get(self) -> Any:
        """The pointer. Raises where it must not be used."""
        if self._forks != _forks:
            raise errors.ForkError(f"the {self._what} was opened before this process was forked; open it here")
        if not self._end.alive:
            raise errors.ClosedError(f"the {self._what} is closed")
        return self._pointer

    @property
    def alive(self) -> bool:
        """True if it was not closed."""
        return self._end.alive

    def close(self) -> None:
        """Frees it, once."""
        self._end()
        self._needs = ()


def _free(pointer: Any, free: Callable[[Any], None], forked: int, needs: Any) -> None:
    """`needs` is only kept until here. A forked child leaves its parent's objects alone."""
    del needs
    if forked == _forks:
        free(pointer)


def freer(function: Callable[[Any], None], kind: str) -> Callable[[Any], None]:
    """A function of one pointer, for one of the library that takes a pointer to the pointer."""

    def free(pointer: Any) -> None:
        function(ffi.new(f"{kind} **", pointer))

    return free


def find_enum(prefix: str, count: int, name_of: Callable[[int], Any], text: Any, what: str) -> int:
    """The number of a name such as "q4_0", by what the library calls each of them."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, not {type(text).__name__}")
    names = [string(name_of(i)) for i in range(count)]
    if text not in names:
        raise errors.RequestError(f"{what} {text!r}: the library has {', '.join(names)}", "ERR_NAME", what)
    return names.index(text)


def find_format(name: Any, what: str = "format") -> int:
    """The tern_format of a name."""
    return find_enum("FORMAT", lib.TERN_FORMAT_COUNT, lambda i: lib.tern_format_describe(i).name, name, what)


def find_cache_format(name: Any) -> int:
    """The tern_format of keys and values."""
    if name not in ("f16", "f32", "q8_0"):
        raise errors.RequestError(f"kv {name!r}: a cache is f16, f32 or q8_0", "ERR_NAME", "kv")
    return find_format(name, "kv")


def format_name(number: int) -> str:
    """The name of a tern_format; "" for none."""
    return "" if number >= lib.TERN_FORMAT_COUNT else string(lib.tern_format_describe(number).name)


def tokens_in(tokens: Any, what: str = "tokens") -> Any:
    """Ids as int32_t[]. Takes whatever yields integers."""
    if isinstance(tokens, (str, bytes, dict)) or not hasattr(tokens, "__iter__") or getattr(tokens, "ndim", 1) != 1:
        raise TypeError(f"{what} must be a sequence of ints, not {type(tokens).__name__}")
    listed = tokens.tolist() if hasattr(tokens, "tolist") else list(tokens)
    return ffi.new("int32_t[]", [integer(i, f"an id of {what}", -(2**31), 2**31 - 1) for i in listed])
