# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package. The text of each is the library's own, which names the thing and the number."""

from __future__ import annotations


class TernError(Exception):
    """The library refuses something. `status` is the name of its code, such as "ERR_CONTEXT" (docs/errors.md); it is ""
    where the package refuses it."""

    def __init__(self, message: str, status: str = "") -> None:
        super().__init__(message)
        self.status = status

    def __str__(self) -> str:  # OSError has a form of its own
        return str(self.args[0])


class RequestError(TernError, ValueError):
    """A request is wrong. `param` names the field that is to blame, or is ""."""

    def __init__(self, message: str, status: str = "", param: str = "") -> None:
        super().__init__(message, status)
        self.param = param


class ModelError(TernError, OSError):
    """A model, or another file, cannot be read."""


class NoMemoryError(TernError, MemoryError):
    """There is not enough memory."""


class ClosedError(TernError):
    """It was closed before."""


class BusyError(TernError):
    """Two threads use what belongs to one at a time."""


class ForkError(TernError):
    """It belongs to the process that this one was forked from."""
