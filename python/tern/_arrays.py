# SPDX-License-Identifier: Apache-2.0
"""Arrays of numpy as the library wants them. numpy is imported when the first array is needed: it takes longer than all
the rest."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, cast

from ._library import ffi, lib

if TYPE_CHECKING:
    import numpy as np


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """An array that begins at a multiple of 64 bytes, not initialized."""
    import numpy as np

    kind = np.dtype(dtype)
    size = kind.itemsize
    for n in shape:
        size *= n
    raw = np.empty(size + lib.TERN_ALIGN, np.uint8)
    at = -raw.ctypes.data % lib.TERN_ALIGN
    return cast("np.ndarray[Any, Any]", raw[at : at + size].view(kind).reshape(shape))


def floats(x: Any, what: str, *, write: bool = False) -> np.ndarray[Any, Any]:
    """x as contiguous float32, itself where it is. What is written to must be that."""
    import numpy as np

    if write and not (isinstance(x, np.ndarray) and x.dtype == np.float32 and x.flags.c_contiguous and x.flags.writeable):
        raise TypeError(f"{what} must be a contiguous, writable float32 array")
    array = np.ascontiguousarray(x)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what} must be an array of numbers, not of {array.dtype}")
    return cast("np.ndarray[Any, Any]", array.astype(np.float32, copy=False))


def pointer(array: np.ndarray[Any, Any], kind: str) -> Any:
    """The memory of an array, for C. The array must live as long as it is used."""
    return ffi.cast(f"{kind} *", array.ctypes.data)


def digest(array: Any) -> str:
    """SHA-256 of an array's float32 numbers in order, little-endian: what `tern logits --sha256` prints of logits."""
    import numpy as np

    return hashlib.sha256(np.ascontiguousarray(array, dtype="<f4").tobytes()).hexdigest()
