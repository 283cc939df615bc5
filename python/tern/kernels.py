# SPDX-License-Identifier: Apache-2.0
"""Rows of the kernel table, called on arrays of numpy. Arrays that are contiguous and of the right type are not copied.

Kernels check nothing, so the functions here do: shapes, types, and whether this machine can run the row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import errors
from ._arrays import aligned, floats, pointer
from ._library import call, ffi, find_enum, find_format, format_name, integer, lib, name_bytes, number, string

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = ["FileMatrix", "Matrix", "Row", "add", "bias", "dequantize", "find", "gate", "layernorm", "matmul", "pack", "quantize",
           "rmsnorm", "rope", "rows", "select", "softmax", "unpack"]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A kernel of the table."""

    name: str
    op: str
    format: str
    isa: str
    layout: str
    runnable: bool
    _c: Any = field(repr=False, compare=False)


@dataclass(frozen=True)
class FileMatrix:
    """A matrix of weights as files have it: `data` is bytes of `format`."""

    data: Array
    format: str
    rows: int
    cols: int


@dataclass(frozen=True)
class Matrix:
    """A matrix of weights in the layout of kernels."""

    data: Array
    format: str
    layout: str
    rows: int
    cols: int
    scale: float
    row_scale: Array | None = None


# ---- the table ----------------------------------------------------------------------------------
def mask_of(isa: str | None = None) -> int:
    """The features that may be used: of this machine, or those of one instruction set."""
    out = ffi.new("uint64_t *")
    call(lib.tern_cpu_mask, ffi.NULL if isa is None else name_bytes(isa, "isa"), ffi.NULL, out)
    return int(out[0])


def _row(c: Any, mask: int) -> Row:
    layout = string(lib.tern_layout_name(c.layout)) if c.layout < lib.TERN_LAYOUT_COUNT else ""
    runnable = c.needs & ~mask == 0 and c.fn.any != ffi.NULL
    return Row(string(c.name), string(lib.tern_op_name(c.op)), format_name(c.format), string(c.isa), layout, runnable, c)


def rows() -> list[Row]:
    """All kernels, in the order of preference within an operation and format."""
    count = ffi.new("size_t *")
    table = lib.tern_kernel_rows(count)
    mask = mask_of()
    return [_row(table + i, mask) for i in range(count[0])]


def find(name: str) -> Row:
    """The kernel of that name."""
    c = lib.tern_kernel_find(name_bytes(name, "name"))
    if c == ffi.NULL:
        raise errors.RequestError(f"there is no kernel {name!r}", "ERR_KERNEL", "name")
    return _row(c, mask_of())


def select(op: str, format: str = "", *, isa: str | None = None, layout: str | None = None) -> Row:
    """The preferred kernel of this machine, or of an instruction set, for an operation and a format."""
    mask = mask_of(isa)
    kind = find_enum("OP", lib.TERN_OP_COUNT, lib.tern_op_name, op, "op")
    number = find_format(format) if format else lib.TERN_FORMAT_NONE
    if layout is None:
        c = lib.tern_kernel_select(mask, kind, number)
    else:
        c = lib.tern_kernel_select_layout(mask, kind, number, _layout(layout))
    if c == ffi.NULL:
        raise errors.TernError(f"there is no kernel for {op} over {format or 'no format'}", "ERR_KERNEL")
    return _row(c, mask)


def _layout(name: str) -> int:
    return find_enum("LAYOUT", lib.TERN_LAYOUT_COUNT, lib.tern_layout_name, name, "layout")


def _runnable(row: Row | str | None, op: str, format: str, isa: str | None, layout: str | None = None) -> Any:
    """The C row that is meant, which fits the operation and this machine."""
    if row is None:
        return select(op, format, isa=isa, layout=layout)._c
    if isinstance(row, str):
        row = find(row)
    if not isinstance(row, Row):
        raise TypeError(f"kernel must be a Row or its name, not {type(row).__name__}")
    if not row.runnable:
        raise errors.TernError(f"{row.name} cannot run on this machine", "ERR_ISA")
    products = ("gemv", "gemm")
    if row.op != op and not (row.op in products and op in products):
        raise errors.RequestError(f"{row.name} is a kernel for {row.op}, not for {op}", "ERR_ARG", "kernel")
    if layout is not None and row.layout != layout:
        raise errors.RequestError(f"{row.name} reads the layout {row.layout}, the matrix has {layout}", "ERR_ARG", "kernel")
    return row._c


# ---- weights ------------------------------------------------------------------------------------
def _matrix_shape(x: Array, what: str) -> tuple[int, int]:
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"{what} must have two dimensions, neither of them 0, not the shape {x.shape}")
    return int(x.shape[0]), int(x.shape[1])


def file_bytes(format: str, n_rows: int, cols: int) -> int:
    """Bytes of a matrix as files have it."""
    size = ffi.new("uint64_t *")
    status = lib.tern_format_bytes(find_format(format), integer(n_rows, "rows", 0, 2**63), integer(cols, "cols", 0, 2**63), size)
    if status:
        raise errors.RequestError(f"{format} has no matrix of {n_rows} x {cols}: {string(lib.tern_status_str(status))}")
    return int(size[0])


def quantize(weights: Any, format: str) -> FileMatrix:
    """Weights [rows, cols] in a format of files, as `tern quantize` rounds them."""
    array = floats(weights, "weights")
    n_rows, cols = _matrix_shape(array, "weights")
    data = aligned((file_bytes(format, n_rows, cols),), "uint8")
    call(lib.tern_quantize_weights, find_format(format), pointer(array, "const float"), n_rows, cols, pointer(data, "void"), ffi.NULL)
    return FileMatrix(data, format, n_rows, cols)


def _check_file(matrix: Any) -> Any:
    import numpy as np

    if not isinstance(matrix, FileMatrix):
        raise TypeError(f"it must be a FileMatrix, not {type(matrix).__name__}")
    data = matrix.data
    wanted = file_bytes(matrix.format, matrix.rows, matrix.cols)
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or not data.flags.c_contiguous or data.nbytes < wanted:
        raise ValueError(f"its data must be {wanted} contiguous bytes of uint8")
    return data


def dequantize(matrix: FileMatrix) -> Array:
    """The weights as floats."""
    data = _check_file(matrix)
    out = aligned((matrix.rows, matrix.cols), "float32")
    kind = find_format(matrix.format)
    scale = lib.tern_format_scale(kind, pointer(data, "const void"), matrix.rows, matrix.cols)
    for row in range(matrix.rows):
        lib.tern_dequantize_row(kind, pointer(data, "const void"), matrix.cols, row, scale, pointer(out[row], "float"))
    return out


def pack(matrix: FileMatrix, layout: str | None = None) -> Matrix:
    """A matrix in the layout that products read: the format's preferred one, or another that holds it."""
    data = _check_file(matrix)
    kind = find_format(matrix.format)
    row_scale = aligned((matrix.rows,), "float32")
    by_row = lib.tern_ternary_row_scales(kind, pointer(data, "const void"), matrix.rows, matrix.cols, pointer(row_scale, "float"))
    chosen = _own_layout(kind, by_row) if layout is None else _layout(layout)
    if chosen >= lib.TERN_LAYOUT_COUNT or not lib.tern_layout_holds(chosen, kind):
        raise errors.RequestError(f"{layout or 'no layout'} does not hold {matrix.format}", "ERR_ARG", "layout")
    name = string(lib.tern_layout_name(chosen))
    scale = lib.tern_format_scale(kind, pointer(data, "const void"), matrix.rows, matrix.cols)
    size = lib.tern_packed_bytes(chosen, matrix.rows, matrix.cols)
    if size == 0:  # used in place
        return Matrix(data, matrix.format, name, matrix.rows, matrix.cols, scale)
    takes_token = lib.tern_layout_input(chosen) == lib.TERN_INPUT_TOKEN
    if takes_token and not by_row:
        raise errors.RequestError(f"{name} has no place for the scales of this {matrix.format} matrix", "ERR_TENSOR_DATA", "layout")
    out = aligned((size,), "uint8")
    call(lib.tern_pack_rows, kind, pointer(data, "const void"), matrix.rows, matrix.cols, chosen, 0, matrix.rows, pointer(out, "void"))
    own = row_scale if takes_token and matrix.format != "i2_s" else None
    return Matrix(out, matrix.format, name, matrix.rows, matrix.cols, scale, own)


def _own_layout(kind: int, by_row: bool) -> int:
    """The format's preferred layout; of ternary weights whose scales vary within a row, one that has place for them."""
    preferred = int(lib.tern_format_layout(kind))
    layouts = [preferred, *range(lib.TERN_LAYOUT_COUNT)]
    if preferred >= lib.TERN_LAYOUT_COUNT or by_row or lib.tern_layout_input(preferred) != lib.TERN_INPUT_TOKEN:
        return preferred
    return next((i for i in layouts if lib.tern_layout_holds(i, kind) and lib.tern_layout_input(i) == lib.TERN_INPUT_BLOCK), preferred)


def _c_matrix(matrix: Any) -> Any:
    import numpy as np

    if not isinstance(matrix, Matrix):
        raise TypeError(f"the matrix must be a Matrix (pack makes one), not {type(matrix).__name__}")
    kind, layout = find_format(matrix.format), _layout(matrix.layout)
    wanted = lib.tern_packed_bytes(layout, matrix.rows, matrix.cols) or file_bytes(matrix.format, matrix.rows, matrix.cols)
    data = matrix.data
    if not isinstance(data, np.ndarray) or not data.flags.c_contiguous or data.nbytes < wanted or data.ctypes.data % lib.TERN_ALIGN:
        raise ValueError(f"the matrix's data must be {wanted} contiguous bytes at a multiple of {lib.TERN_ALIGN}")
    out = ffi.new("tern_matrix *")
    out.format, out.layout, out.rows, out.cols, out.scale = kind, layout, matrix.rows, matrix.cols, matrix.scale
    if matrix.row_scale is not None:
        out.row_scale = pointer(floats(matrix.row_scale, "row_scale", write=True), "const float")
    out.data = pointer(data, "const void")
    return out


def unpack(matrix: Matrix) -> FileMatrix:
    """The matrix as files have it."""
    c = _c_matrix(matrix)
    out = aligned((file_bytes(matrix.format, matrix.rows, matrix.cols),), "uint8")
    out[:] = 0
    call(lib.tern_unpack, c, pointer(out, "void"))
    return FileMatrix(out, matrix.format, matrix.rows, matrix.cols)


# ---- products -----------------------------------------------------------------------------------
def _activations(x: Array, form: int, isa: str | None) -> tuple[Any, list[Any]]:
    """x [tokens, cols] in the form that a layout reads, and what must live as long as it."""
    tokens, cols = x.shape
    out = ffi.new("tern_activations *")
    out.cols = cols
    if form == lib.TERN_INPUT_FLOAT:
        out.x, out.x_stride = pointer(x, "const float"), cols
        return out, [x]
    stride = -(-cols // lib.TERN_Q_PAD) * lib.TERN_Q_PAD
    q = aligned((tokens, stride), "int8")
    out.q, out.q_stride = pointer(q, "const int8_t"), stride
    if form == lib.TERN_INPUT_TOKEN:
        s, total = aligned((tokens,), "float32"), aligned((tokens,), "int32")
        quantize_token = select("quantize_token", isa=isa)._c.fn.quantize_token
        for t in range(tokens):
            quantize_token(pointer(x[t], "const float"), cols, pointer(q[t], "int8_t"), pointer(s[t:], "float"), pointer(total[t:], "int32_t"))
        out.s, out.sum = pointer(s, "const float"), pointer(total, "const int32_t")
        return out, [q, s, total]
    blocks = -(-cols // lib.TERN_BLOCK)
    d, sums = aligned((tokens, blocks), "float32"), aligned((tokens, blocks), "int32")
    quantize_block = select("quantize_block", isa=isa)._c.fn.quantize_block
    for t in range(tokens):
        quantize_block(pointer(x[t], "const float"), cols, pointer(q[t], "int8_t"), pointer(d[t], "float"), pointer(sums[t], "int32_t"))
    out.d, out.block_sum, out.d_stride = pointer(d, "const float"), pointer(sums, "const int32_t"), blocks
    return out, [q, d, sums]


def matmul(matrix: Matrix, x: Any, *, isa: str | None = None, kernel: Row | str | None = None, out: Array | None = None) -> Array:
    """matrix times x: [cols] gives [rows], [tokens, cols] gives [tokens, rows]. Activations are rounded as the layout wants
    it. kernel: this row and no other."""
    c = _c_matrix(matrix)
    array = floats(x, "x")
    two = array.reshape(1, -1) if array.ndim == 1 else array
    tokens, cols = _matrix_shape(two, "x")
    if cols != matrix.cols:
        raise ValueError(f"x has {cols} columns, the matrix {matrix.cols}")
    op = "gemv" if tokens == 1 else "gemm"
    row = _runnable(kernel, op, matrix.format, isa, matrix.layout)
    if out is None:
        out = aligned((tokens, matrix.rows) if array.ndim == 2 else (matrix.rows,), "float32")
    floats(out, "out", write=True)
    if out.size != tokens * matrix.rows:
        raise ValueError(f"out must have {tokens * matrix.rows} numbers, not {out.size}")
    activations, keep = _activations(two, lib.tern_layout_input(c.layout), isa)
    tile = ffi.new("tern_tile *", (0, tokens, 0, matrix.rows))
    row.fn.matmul(c, activations, tile, pointer(out, "float"), matrix.rows)
    del keep
    return out


# ---- rows of floats -----------------------------------------------------------------------------
def _vector(x: Any, what: str, n: int | None = None) -> Array:
    array = floats(x, what)
    if array.ndim != 1 or array.size == 0 or (n is not None and array.size != n):
        raise ValueError(f"{what} must have one dimension{'' if n is None else f' of {n}'}, not the shape {array.shape}")
    return array


def rmsnorm(x: Any, g: Any, *, eps: float = 1e-5, isa: str | None = None, kernel: Row | str | None = None) -> Array:
    """(x / sqrt(mean(x^2) + eps)) * g."""
    x = _vector(x, "x")
    g = _vector(g, "g", x.size)
    row = _runnable(kernel, "rmsnorm", "", isa)
    out = aligned(x.shape, "float32")
    row.fn.rmsnorm(pointer(x, "const float"), pointer(g, "const float"), x.size, number(eps, "eps"), pointer(out, "float"))
    return out


def layernorm(x: Any, g: Any, b: Any = None, *, eps: float = 1e-5, isa: str | None = None, kernel: Row | str | None = None) -> Array:
    """((x - mean) / sqrt(variance + eps)) * g + b."""
    x = _vector(x, "x")
    g = _vector(g, "g", x.size)
    b = None if b is None else _vector(b, "b", x.size)
    row = _runnable(kernel, "layernorm", "", isa)
    out = aligned(x.shape, "float32")
    shift = ffi.NULL if b is None else pointer(b, "const float")
    row.fn.layernorm(pointer(x, "const float"), pointer(g, "const float"), shift, x.size, number(eps, "eps"), pointer(out, "float"))
    return out


def softmax(x: Any, *, isa: str | None = None, kernel: Row | str | None = None) -> Array:
    """exp(x - max) / sum, of a copy."""
    out = _copy(_vector(x, "x"))
    _runnable(kernel, "softmax", "", isa).fn.softmax(pointer(out, "float"), out.size)
    return out


def _join(function: Any, x: Array, y: Array) -> Array:
    """What a function makes of two vectors of one length."""
    out = aligned(x.shape, "float32")
    function(pointer(x, "const float"), pointer(y, "const float"), x.size, pointer(out, "float"))
    return out


def gate(g: Any, u: Any, activation: str = "silu", *, isa: str | None = None, kernel: Row | str | None = None) -> Array:
    """act(g) * u; silu, relu2, gelu or quick."""
    g = _vector(g, "g")
    return _join(_runnable(kernel, f"gate_{activation}", "", isa).fn.gate, g, _vector(u, "u", g.size))


def bias(x: Any, b: Any, activation: str, *, isa: str | None = None, kernel: Row | str | None = None) -> Array:
    """act(x + b); relu, relu2, silu, gelu or tanh."""
    x = _vector(x, "x")
    return _join(_runnable(kernel, f"bias_{activation}", "", isa).fn.bias, x, _vector(b, "b", x.size))


def add(x: Any, y: Any, *, isa: str | None = None, kernel: Row | str | None = None) -> Array:
    """x + y."""
    out = _copy(_vector(x, "x"))
    y = _vector(y, "y", out.size)
    _runnable(kernel, "add", "", isa).fn.add(pointer(out, "float"), pointer(y, "const float"), out.size)
    return out


def rope(x: Any, cosines: Any, sines: Any, *, pairs: str = "neox", isa: str | None = None, kernel: Row | str | None = None) -> Array:
    """x [2 half] turned by angles [half]; pairs "neox" (i, i + half) or "norm" (2i, 2i + 1)."""
    out = _copy(_vector(x, "x"))
    if out.size % 2:
        raise ValueError(f"x must have an even number of elements, not {out.size}")
    half = out.size // 2
    c, s = _vector(cosines, "cosines", half), _vector(sines, "sines", half)
    row = _runnable(kernel, f"rope_{pairs}", "", isa)
    row.fn.rope(pointer(out, "float"), pointer(c, "const float"), pointer(s, "const float"), half)
    return out


def _copy(x: Array) -> Array:
    out = aligned(x.shape, "float32")
    out[:] = x
    return out
