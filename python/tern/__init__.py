# SPDX-License-Identifier: Apache-2.0
"""tern: ternary and low-bit language models on the machine you have (docs/python.md)."""

from __future__ import annotations

from ._arrays import digest
from ._library import lib as _lib
from ._library import string as _string
from .answer import Answer, Figures, Logprob, Piece
from .chat import EventStream, Reply
from .engine import Engine, Stream
from .errors import BusyError, ClosedError, ForkError, ModelError, NoMemoryError, RequestError, TernError
from .measure import bench, verify
from .model import Model, Session
from .request import Options
from .tokenizer import Tokenizer
from . import _program, kernels

__version__: str = _string(_lib.tern_version())

__all__ = [
    "Answer", "BusyError", "ClosedError", "Engine", "EventStream", "Figures", "ForkError", "Logprob", "Model", "ModelError",
    "NoMemoryError", "Options", "Piece", "Reply", "RequestError", "Session", "Stream", "TernError", "Tokenizer", "bench", "digest", "kernels",
    "verify", "__version__",
]  # fmt: skip
