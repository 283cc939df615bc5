"""Writes and reads GGUF version 3: metadata, tensor table, aligned data.

It knows only the types that tern-small needs: F32, F16 and I2_S tensors.  Shapes are in NumPy
order ([out, in]); the file stores them reversed.
"""
import hashlib
import struct

import numpy as np

ALIGN = 32
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
FORMATS = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}
TYPE_F32, TYPE_F16, TYPE_I2_S = 0, 1, 36
UNIT = 128  # I2_S codes per 32 bytes


def pack_i2s(codes, scale):
    """I2_S bytes of `codes` [out, in] in {-1, 0, 1}: n/4 code bytes, f32 scale, 28 zeros.

    Byte p of a 128-code unit holds elements p, p+32, p+64, p+96, the first in
    the top two bits; the stored code is the value plus one.
    """
    assert codes.shape[1] % UNIT == 0
    q = (codes.astype(np.int64) + 1).astype(np.uint8).reshape(-1, 4, 32)
    packed = q[:, 0] << 6 | q[:, 1] << 4 | q[:, 2] << 2 | q[:, 3]
    return packed.tobytes() + struct.pack("<f", scale) + bytes(28)


def unpack_i2s(raw, shape):
    """The inverse: (codes [out, in] as float32, scale)."""
    n = shape[0] * shape[1]
    b = np.frombuffer(raw, np.uint8, n // 4).reshape(-1, 1, 32)
    q = b >> np.array([6, 4, 2, 0], np.uint8)[None, :, None] & 3
    assert q.max() <= 2, "code 3 is not a weight"
    scale = np.frombuffer(raw, "<f4", 1, n // 4)[0]
    return (q.astype(np.float32) - 1).reshape(shape), scale


def check_packing():
    """Packs a known 4 x 256 matrix and compares the bytes with their known hash."""
    state, values = 12345, []
    for _ in range(4 * 256):
        state = (state * 1103515245 + 12345) % 2 ** 31
        values.append((state >> 16) % 3 - 1)
    codes = np.array(values, np.float32).reshape(4, 256)
    raw = pack_i2s(codes, 0.75)
    assert len(raw) == 256 + 32
    assert hashlib.sha256(raw[:256]).hexdigest()[:16] == "1b145e38bb894280"
    back, scale = unpack_i2s(raw, (4, 256))
    assert scale == 0.75 and (back == codes).all()


def string_bytes(text):
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def value_bytes(kind, value):
    """One metadata value without its type; an array kind is (ARRAY, element kind)."""
    if kind == STRING:
        return string_bytes(value)
    if isinstance(kind, tuple):
        head = struct.pack("<IQ", kind[1], len(value))
        return head + b"".join(value_bytes(kind[1], v) for v in value)
    return struct.pack(FORMATS[kind], value)


def padding(size):
    """Zero bytes from `size` to the next multiple of the alignment."""
    return bytes(-size % ALIGN)


def write(path, metadata, tensors):
    """metadata: list of (key, kind, value); tensors: list of (name, shape, type, bytes)."""
    out = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
    for key, kind, value in metadata:
        first = kind[0] if isinstance(kind, tuple) else kind
        out += string_bytes(key) + struct.pack("<I", first) + value_bytes(kind, value)
    offset = 0
    for name, shape, dtype, raw in tensors:
        dims = tuple(reversed(shape))
        out += string_bytes(name) + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
        out += struct.pack("<IQ", dtype, offset)
        offset += len(raw) + len(padding(len(raw)))
    out += padding(len(out))
    for _, _, _, raw in tensors:
        out += raw + padding(len(raw))
    with open(path, "wb") as f:
        f.write(out)
    return len(out)


class Reader:
    """Walks over the bytes of a file."""

    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, form):
        value = struct.unpack_from(form, self.raw, self.at)
        self.at += struct.calcsize(form)
        return value if len(value) > 1 else value[0]

    def string(self):
        n = self.take("<Q")
        self.at += n
        return self.raw[self.at - n:self.at].decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, count = self.take("<IQ")
            return [self.value(element) for _ in range(count)]
        return self.take(FORMATS[kind])


def read(path):
    """(metadata dict, tensors dict): matrices of I2_S as (codes, scale), others as arrays."""
    with open(path, "rb") as f:
        r = Reader(f.read())
    magic, version, n_tensors, n_meta = r.take("<4sIQQ")
    assert magic == b"GGUF" and version == 3
    meta = {}
    for _ in range(n_meta):
        key = r.string()
        meta[key] = r.value(r.take("<I"))
    infos = []
    for _ in range(n_tensors):
        name, rank = r.string(), r.take("<I")
        shape = tuple(reversed([r.take("<Q") for _ in range(rank)]))
        infos.append((name, shape, *r.take("<IQ")))
    base = r.at + len(padding(r.at))
    return meta, {i[0]: tensor(r.raw[base + i[3]:], i[1], i[2]) for i in infos}


def tensor(raw, shape, dtype):
    """One tensor from the bytes that begin at its offset."""
    if dtype == TYPE_I2_S:
        return unpack_i2s(raw, shape)
    form = {TYPE_F32: "<f4", TYPE_F16: "<f2"}[dtype]
    return np.frombuffer(raw, form, int(np.prod(shape))).reshape(shape).astype(np.float32)
