# SPDX-License-Identifier: Apache-2.0
"""Takes a GGUF file apart and puts it together again, well or badly.

Everything is kept as it was unless a test changes it, so that exactly one thing is wrong with the
result.
"""

import struct
from dataclasses import dataclass, field

SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # type: bytes
U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10


def u32(value):
    return U32, struct.pack("<I", value)


def u64(value):
    return U64, struct.pack("<Q", value)


def f32(value):
    return F32, struct.pack("<f", value)


def packed_string(text):
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(data)) + data


def string(text):
    return STRING, packed_string(text)


def strings(texts):
    return ARRAY, struct.pack("<IQ", STRING, len(texts)) + b"".join(map(packed_string, texts))


def i32s(values):
    return ARRAY, struct.pack(f"<IQ{len(values)}i", I32, len(values), *values)


@dataclass
class Tensor:
    name: str
    ne: list  # ne[0] is the contiguous dimension
    kind: int
    data: bytes
    offset: int = None  # written instead of the right one


@dataclass
class Gguf:
    keys: list  # of [name, type, bytes]
    tensors: list
    magic: bytes = b"GGUF"
    version: int = 3
    n_keys: int = None  # written instead of the right counts
    n_tensors: int = None
    boundaries: list = field(default_factory=list)  # where the parts of the original file ended

    def __getitem__(self, name):
        return next((kind, value) for key, kind, value in self.keys if key == name)

    def __setitem__(self, name, typed):
        """Replaces a key's value, or adds the key at the end."""
        for entry in self.keys:
            if entry[0] == name:
                entry[1:] = typed
                return
        self.keys.append([name, *typed])

    def __delitem__(self, name):
        before = len(self.keys)
        self.keys = [entry for entry in self.keys if entry[0] != name]
        assert len(self.keys) < before, f"{name} was not there"

    def __contains__(self, name):
        return any(key == name for key, _, _ in self.keys)

    def tensor(self, name):
        return next(t for t in self.tensors if t.name == name)

    def remove(self, name):
        self.tensors.remove(self.tensor(name))

    def text(self, name):
        return self[name][1][8:].decode()

    def number(self, name):
        kind, value = self[name]
        return struct.unpack({U32: "<I", U64: "<Q", F32: "<f", I32: "<i"}[kind], value)[0]

    def texts(self, name):
        """An array of strings."""
        cursor = _Cursor(self[name][1])
        _, count = cursor.number("I"), cursor.number("Q")
        return [cursor.string().decode() for _ in range(count)]

    def numbers(self, name):
        """An array of 32-bit integers."""
        value = self[name][1]
        return list(struct.unpack(f"<{(len(value) - 12) // 4}i", value[12:]))

    def alignment(self):
        return self.number("general.alignment") if "general.alignment" in self else 32

    def to_bytes(self, alignment=None):
        align = alignment or self.alignment()
        n_keys = len(self.keys) if self.n_keys is None else self.n_keys
        n_tensors = len(self.tensors) if self.n_tensors is None else self.n_tensors
        out = bytearray(self.magic + struct.pack("<IQQ", self.version, n_tensors, n_keys))
        for name, kind, value in self.keys:
            out += packed_string(name) + struct.pack("<I", kind) + value
        data = bytearray()
        for t in self.tensors:
            offset = len(data) if t.offset is None else t.offset
            out += packed_string(t.name) + struct.pack(f"<I{len(t.ne)}Q", len(t.ne), *t.ne)
            out += struct.pack("<IQ", t.kind, offset)
            data += t.data + bytes(-len(t.data) % align)
        return bytes(out + bytes(-len(out) % align) + data)


class _Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        assert self.at + size <= len(self.data)
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize(code)))[0]

    def string(self):
        return self.take(self.number("Q"))

    def value(self, kind):
        """The bytes of a value."""
        start = self.at
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            element, count = self.number("I"), self.number("Q")
            for _ in range(count if element == STRING else 0):
                self.string()
            self.take(count * SCALARS[element] if element != STRING else 0)
        else:
            self.take(SCALARS[kind])
        return self.data[start : self.at]


def _read_tensors(cursor, count, boundaries):
    found = []
    for _ in range(count):
        name = cursor.string().decode()
        ne = [cursor.number("Q") for _ in range(cursor.number("I"))]
        found.append((Tensor(name, ne, cursor.number("I"), b""), cursor.number("Q")))
        boundaries.append(cursor.at)
    return found


def parse(data):
    """A Gguf of a correct file."""
    cursor = _Cursor(data)
    assert cursor.take(4) == b"GGUF"
    version, n_tensors, n_keys = cursor.number("I"), cursor.number("Q"), cursor.number("Q")
    file = Gguf([], [], version=version, boundaries=[4, 8, 16, 24])
    for _ in range(n_keys):
        name, kind = cursor.string().decode(), cursor.number("I")
        file.keys.append([name, kind, cursor.value(kind)])
        file.boundaries.append(cursor.at)
    placed = _read_tensors(cursor, n_tensors, file.boundaries)
    start = cursor.at + -cursor.at % file.alignment()
    offsets = sorted(offset for _, offset in placed) + [len(data) - start]
    for tensor, offset in placed:
        end = offsets[offsets.index(offset) + 1]
        tensor.data = data[start + offset : start + end]
        file.boundaries.append(start + offset)
        file.tensors.append(tensor)
    return file


def read(path):
    with open(path, "rb") as file:
        return parse(file.read())


def vocabulary(path):
    """Rows of the embedding, which is how many tokens the model knows."""
    return read(path).tensor("token_embd.weight").ne[1]
