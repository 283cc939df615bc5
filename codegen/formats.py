# SPDX-License-Identifier: Apache-2.0
"""Loads and checks the table of formats and layouts (kernels/formats.toml)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python before 3.11
    import tomli as tomllib

from checks import SpecError, check_keys, check_template, check_type

INPUTS = ("float", "token", "block")
NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
BLOCK = 32  # columns of a block of activations
GROUP = 16  # rows of a group


@dataclass(frozen=True)
class Layout:
    """The form in which a kernel wants a matrix in memory. Templates of kernels read the parameters of blocks."""

    name: str
    input: str
    text: str = ""
    products: str | None = None
    sparse: str | None = None
    family: str | None = None
    accuracy: str | None = None
    digit: str | None = None
    dense: bool = False
    codes: str | None = None
    scales: str | None = None
    header: int = 0
    shared: int = 0
    per: int = 1
    excess: int = 0

    @property
    def is_packed(self) -> bool:
        """Matrices are brought into it by a packer, kernels/pack.h."""
        return self.products is not None and self.sparse is None and self.name != "rows"

    @property
    def is_ternary(self) -> bool:
        """Says whether ternary matrices can be packed in it."""
        return self.input == "token" and self.is_packed

    @property
    def bits(self) -> int:
        """Bits of a code of plain blocks; 0 for other codes."""
        return {"nibbles": 4, "levels": 4, "raised": 4, "fives": 5, "bytes": 8}.get(self.codes, 0)


@dataclass(frozen=True)
class Format:
    """The form in which a file stores a matrix."""

    name: str
    block: int
    bytes: int
    layout: str
    gguf: int | None = None
    file_type: int = 0
    like: str | None = None
    embed: str | None = None
    quantize: dict[str, str] = field(default_factory=dict)
    ternary: bool = False
    coarse: bool = False
    stand_in: str | None = None
    halves: dict[str, int] = field(default_factory=dict)
    int8: tuple[int, int] = (0, 0)
    power: int | None = None
    plain: bool = False
    levels: tuple[int, ...] = ()
    unit: float = 1.0

    @property
    def of_rows(self) -> bool:
        """Floats can become it, and its rows can be read one by one: embeddings may have it."""
        return (bool(self.quantize) or self.plain) and self.embed is not None


@dataclass(frozen=True)
class Foreign:
    """A tensor type of GGUF files that is known but not read; block 0: its size does not follow from the shape."""

    name: str
    gguf: int
    block: int = 0
    bytes: int = 0
    row: int = 0


@dataclass
class Formats:
    layouts: dict[str, Layout] = field(default_factory=dict)
    formats: dict[str, Format] = field(default_factory=dict)
    foreign: list[Foreign] = field(default_factory=list)


# Keys of an entry and their types; those of the first line must be there.
LAYOUT_KEYS = {
    "input": str,
    "text": str, "products": str, "sparse": str, "family": str, "accuracy": str, "digit": str,
    "dense": bool, "codes": str, "scales": str, "header": int, "shared": int, "per": int, "excess": int,
}  # fmt: skip
FORMAT_KEYS = {
    "block": int, "bytes": int, "layout": str,
    "gguf": int, "file_type": int, "like": str, "embed": str, "quantize": dict, "ternary": bool, "coarse": bool,
    "stand_in": str, "halves": dict, "int8": list, "power": int, "plain": bool, "levels": list, "unit": float,
}  # fmt: skip
FORMAT_REQUIRED = {"block", "bytes", "layout"}
QUANTIZERS = {"block", "weighed", "matrix"}


def check_entry(where: str, name: str, entry: dict, keys: dict[str, type], required: set[str]) -> None:
    if not NAME.match(name):
        raise SpecError(f"{where}: not a valid name")
    check_keys(where, entry, required, set(keys) - required)
    for key, kind in keys.items():
        check_type(where, entry, key, kind)


def load_layout(name: str, entry: dict, template_dir: Path) -> Layout:
    where = f"layout.{name}"
    check_entry(where, name, entry, LAYOUT_KEYS, {"input"})
    layout = Layout(name=name, **{key: value for key, value in entry.items()})
    if layout.input not in INPUTS:
        raise SpecError(f"{where}: unknown input '{layout.input}' (one of {', '.join(INPUTS)})")
    if (layout.codes is None) != (layout.input != "block") or (layout.codes is None) != (layout.scales is None):
        raise SpecError(f"{where}: keys 'codes' and 'scales' belong to layouts of blocks, and they need both")
    for key in ("codes", "scales"):
        if getattr(layout, key):
            check_template(where, f"{key}/{getattr(layout, key)}", template_dir)
    for key, least in (("header", 0), ("shared", 0), ("per", 1), ("excess", 0)):
        if getattr(layout, key) < least:
            raise SpecError(f"{where}: key '{key}' must be at least {least}")
    if layout.products:
        check_template(where, layout.products, template_dir)
    for key in ("family", "accuracy"):
        if layout.is_ternary != (getattr(layout, key) is not None):
            raise SpecError(f"{where}: key '{key}' belongs to ternary layouts, and they need it")
    return layout


def load_format(name: str, entry: dict, layouts: dict[str, Layout], template_dir: Path) -> Format:
    where = f"format.{name}"
    check_entry(where, name, entry, FORMAT_KEYS, FORMAT_REQUIRED)
    if entry["layout"] not in layouts:
        raise SpecError(f"{where}: unknown layout '{entry['layout']}'")
    facts = dict(entry)
    check_keys(f"{where} quantize", facts.get("quantize", {}), set(), QUANTIZERS)
    facts["int8"] = load_int8(where, facts)
    facts["levels"] = tuple(facts.get("levels", ()))
    for half, at in facts.get("halves", {}).items():
        if type(at) is not int or not 0 <= at <= facts["bytes"] - 2:
            raise SpecError(f"{where}: '{half}' of key 'halves' does not lie in {facts['bytes']} bytes")
    if len(facts.get("halves", {})) > 2:
        raise SpecError(f"{where}: key 'halves' has more than two fields")
    if "embed" in facts:
        check_template(where, facts["embed"], template_dir)
    found = Format(name=name, **facts)
    if found.plain:
        check_plain(where, found, layouts[found.layout])
    check_levels(where, found, layouts[found.layout])
    return found


def load_int8(where: str, entry: dict) -> tuple[int, int]:
    span = entry.get("int8", [0, 0])
    ints = len(span) == 2 and all(type(i) is int for i in span)
    if not ints or not 0 <= span[0] <= span[1] <= entry["bytes"]:
        raise SpecError(f"{where}: key 'int8' must be [from, to] in {entry['bytes']} bytes")
    return span[0], span[1]


def check_plain(where: str, fmt: Format, layout: Layout) -> None:
    """Checks what the generic code of plain blocks takes for granted."""
    fields = len(fmt.halves)
    if layout.name != f"{fmt.name}r16" and not fmt.levels:
        raise SpecError(f"{where}: a plain format has a layout of its own, '{fmt.name}r16'")
    powers = int(fmt.power == 0)
    scales = {(1, 0): "half", (2, 0): "minimum", (0, 1): "power"}.get((fields, powers))
    if not layout.bits or layout.scales != scales or fmt.block != BLOCK:
        raise SpecError(
            f"{where}: plain blocks have 32 nibbles, fives or bytes, and the f16 fields or the power of their layout"
        )
    wanted = 2 * fields + powers + 4 * (layout.bits == 5) + (32 if layout.bits == 8 else 16)
    if fmt.bytes != wanted:
        raise SpecError(f"{where}: a plain block of this kind has {wanted} bytes, not {fmt.bytes}")
    if (layout.header, layout.shared, layout.per) != (GROUP * (2 * fields + powers), 0, 1):
        raise SpecError(f"{where}: layout '{layout.name}' has other fields before its codes")


def check_levels(where: str, fmt: Format, layout: Layout) -> None:
    """Formats whose codes stand for signed bytes have a layout for such codes."""
    bytes_of = all(type(level) is int and -128 <= level < 128 for level in fmt.levels)
    count = {"levels": 16, "raised": 16, "threes": 6, "digits": 6}.get(layout.codes)
    if fmt.levels and (not bytes_of or len(fmt.levels) != (count or 16)):
        raise SpecError(f"{where}: key 'levels' must be {'six' if count == 6 else 'sixteen'} signed bytes")
    if bool(fmt.levels) != (count is not None):
        raise SpecError(f"{where}: key 'levels' belongs to formats in layouts whose codes are levels, and they need it")


def load_foreign(name: str, entry: dict) -> Foreign:
    where = f"format.{name}"
    kinds = {"gguf": int, "block": int, "bytes": int, "row": int, "called": str}
    check_entry(where, name, entry, kinds, {"gguf"})
    if ("block" in entry) != ("bytes" in entry):
        raise SpecError(f"{where}: keys 'block' and 'bytes' belong together")
    return Foreign(entry.get("called", name), entry["gguf"], entry.get("block", 0), entry.get("bytes", 0), entry.get("row", 0))


def check_references(found: Formats) -> None:
    """Checks that everything that entries name is there, and that each number of a file stands for one format."""
    for layout in found.layouts.values():
        if layout.sparse is not None and layout.sparse not in found.formats:
            raise SpecError(f"layout.{layout.name}: unknown format '{layout.sparse}'")
    numbers: dict[int, str] = {}
    for fmt in found.formats.values():
        for key in ("like", "stand_in"):
            other = getattr(fmt, key)
            if other is not None and (other not in found.formats or other == fmt.name):
                raise SpecError(f"format.{fmt.name}: '{other}' of key '{key}' is not another format")
    for one in [*found.formats.values(), *found.foreign]:
        if one.gguf is not None and numbers.setdefault(one.gguf, one.name) != one.name:
            raise SpecError(f"{one.name}: gguf {one.gguf} is {numbers[one.gguf]}'s")


def load(root: Path, table: Path | None = None) -> Formats:
    """Reads the table of a source tree; `table` replaces kernels/formats.toml in tests."""
    path = table or root / "kernels" / "formats.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path.name}: {error}") from None
    check_keys(path.name, data, {"layout", "format"})
    for section in ("layout", "format"):
        check_type(path.name, data, section, dict)
    template_dir = root / "kernels"
    found = Formats()
    found.layouts = {n: load_layout(n, e, template_dir) for n, e in data["layout"].items()}
    for name, entry in data["format"].items():
        if isinstance(entry, dict) and "layout" in entry:
            found.formats[name] = load_format(name, entry, found.layouts, template_dir)
        else:
            found.foreign.append(load_foreign(name, entry))
    check_references(found)
    return found
