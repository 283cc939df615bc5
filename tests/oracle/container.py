# SPDX-License-Identifier: Apache-2.0
"""A GGUF file as the oracle sees it: metadata by key, tensors as raw bytes.

The container is read by the `gguf` package. Its knowledge of tensor types is not used: it does not
know I2_S, and the oracle decodes tensors itself.
"""

from typing import NamedTuple

import numpy as np
from gguf import GGUFReader

import tensors


class Tensor(NamedTuple):
    name: str
    kind: int  # type id of the file
    rows: int  # 1 for a vector
    cols: int  # the contiguous dimension
    raw: np.ndarray  # uint8, all bytes of the tensor
    count: int = 1  # matrices of as many rows each, one after the other

    def values(self):
        """float64[rows, cols]."""
        return tensors.decode(self.kind, self.raw, self.rows, self.cols)

    def some_rows(self, index):
        """float64[len(index), cols]; only these rows are decoded where rows are separate bytes."""
        if self.kind == tensors.I2_S:
            return self.values()[index]
        raw = self.raw.reshape(self.rows, -1)[index]
        return tensors.decode(self.kind, raw.reshape(-1), len(index), self.cols)

    def matrix(self, i):
        """One of several matrices."""
        raw = self.raw.reshape(self.count, -1)[i]
        return Tensor(self.name, self.kind, self.rows // self.count, self.cols, raw)


class _RawReader(GGUFReader):
    """Stops where the package would interpret the tensors, and keeps their descriptions."""

    def _build_tensors(self, start_offs, fields):
        self.data_start = start_offs
        self.descriptions = fields


class Container:
    def __init__(self, path):
        self._reader = _RawReader(path)
        self._tensors = dict(map(self._tensor, self._reader.descriptions))
        self.unread = set(self._tensors)

    def _tensor(self, field):
        _, name, _, dims, kind, offset = field.parts
        name = bytes(name).decode()
        kind = int(kind[0])
        if kind not in tensors.FORMATS:
            raise ValueError(f"{name}: the oracle cannot decode type {kind}")
        if not 1 <= len(dims) <= 3:
            raise ValueError(f"{name}: {len(dims)} dimensions")
        cols, rows, count = (*map(int, dims), 1, 1)[:3]
        rows *= count
        start = int(self._reader.data_start + offset[0])
        size = tensors.byte_size(kind, rows, cols)
        raw = np.asarray(self._reader.data[start : start + size])
        if len(raw) != size:
            raise ValueError(f"{name}: the file ends before its data does")
        return name, Tensor(name, kind, rows, cols, raw, count)

    def get(self, key, default=None):
        """Value of a metadata key; without a default it must exist."""
        field = self._reader.get_field(key)
        if field is not None:
            return field.contents()
        if default is None:
            raise KeyError(f"{key} is missing")
        return default

    def has(self, name):
        return name in self._tensors

    def tensor(self, name):
        self.unread.discard(name)
        return self._tensors[name]

    def vector(self, name):
        return self.tensor(name).values()[0]
