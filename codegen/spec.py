# SPDX-License-Identifier: Apache-2.0
"""Loads and checks the kernel table (kernels/kernels.toml).

Every complaint is a SpecError that names the entry of the table and what is wrong with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python before 3.11
    import tomli as tomllib

import formats as weights
from checks import SpecError, as_list, check_keys, check_type, check_template
from isas import Isa, load_groups, load_isas


@dataclass(frozen=True)
class Op:
    """One operation; templates maps a format (or None) to the template's name."""

    name: str
    templates: dict[str | None, str]
    tiled: bool
    test: str  # compares the kernels with the reference: tests/*/test_<name>.c
    type: str  # of its function: tern_<type>_fn
    parts: tuple[str, ...] = ()  # of several functions: <kernel>_<part>, tern_<type>_<part>_fn
    devices: bool = False  # no processor has kernels of it
    of_weights: bool = False  # its formats are those of kernels/formats.toml


TILES = {"rows": (1, 2, 4, 8, 16, 32, 64), "tokens": (1, 2, 4, 8, 12, 16, 32)}
PREFETCH = 4096  # bytes ahead, unless an entry says otherwise


@dataclass(frozen=True)
class Kernel:
    """One kernel: a C file and a line of its operation's X-macro list."""

    op: Op
    format: str | None
    layout: str
    isa: Isa
    rows: int = 0
    tokens: int = 0
    other_layout: bool = False  # not the layout that kernels/formats.toml gives the format
    own_template: str | None = None  # instead of the operation's
    prefetch: int = PREFETCH  # bytes of weights ahead that a product asks the memory for
    ahead_of: Isa | None = None  # a stronger set whose kernels come after this one

    @property
    def strength(self) -> tuple[int, int]:
        """Kernels of an operation and operand are preferred in falling order of this."""
        if self.isa.is_cuda:
            return (-1, 0)  # it is never compared with kernels of a processor
        return (self.ahead_of.strength, 1) if self.ahead_of else (self.isa.strength, 0)

    @property
    def operand(self) -> str | None:
        """Returns the name that the kernel goes by: the format, or a layout that is not the format's own. A packed layout
        serves all formats that it holds, the file's own rows serve one format."""
        if not self.other_layout:
            return self.format
        return f"{self.format}_rows" if self.layout == "rows" else self.layout

    @property
    def name(self) -> str:
        """tern_<op>[_<format or layout>][_<rows>x<tokens>]_<isa>."""
        parts = ["tern", self.op.name]
        parts += [self.operand] if self.operand else []
        parts += [f"{self.rows}x{self.tokens}"] if self.op.tiled else []
        return "_".join(parts + [self.isa.name])

    @property
    def functions(self) -> dict[str, str]:
        """The functions of a kernel and their types."""
        if not self.op.parts or self.isa.is_cuda:
            return {self.name: f"tern_{self.op.type}_fn"}
        return {f"{self.name}_{p}": f"tern_{self.op.type}_{p}_fn" for p in self.op.parts}

    @property
    def template(self) -> str:
        """Returns the path below kernels/, without the ending that tells the language."""
        named = self.op.templates
        name = self.own_template or named[self.operand if self.operand in named else None]
        return f"cuda/{name}" if self.isa.is_cuda else name

    @property
    def suffix(self) -> str:
        return "cu" if self.isa.is_cuda else "c"

    @property
    def file(self) -> str:
        """Path of the generated file below the output folder."""
        return f"{'cuda' if self.isa.is_cuda else 'kernels'}/{self.name}.{self.suffix}"


@dataclass
class Spec:
    isas: dict[str, Isa] = field(default_factory=dict)
    ops: dict[str, Op] = field(default_factory=dict)
    weights: weights.Formats = field(default_factory=weights.Formats)
    groups: dict[str, list[str]] = field(default_factory=dict)  # of section [group]
    kernels: list[Kernel] = field(default_factory=list)

    def processor_isas(self) -> list[Isa]:
        """All but CUDA, weakest first."""
        return [isa for isa in self.isas.values() if not isa.is_cuda]


def templates_of(where: str, by: object, found: weights.Formats) -> dict[str | None, str]:
    """Returns the templates that key 'template_by' stands for; kernels/formats.toml names them."""
    layouts, formats = found.layouts, found.formats
    if by == "layout":
        own = {fmt.name: layouts[fmt.layout].products for fmt in formats.values()}
        return own | {x.name: x.products for x in layouts.values() if x.products and x.name not in own}
    if by == "format":
        return {fmt.name: fmt.embed for fmt in formats.values() if fmt.embed}
    raise SpecError(f"{where}: key 'template_by' must be layout or format, not {by!r}")


def load_op(
    name: str, entry: dict, known_ops: set[str], template_dir: Path, found: weights.Formats
) -> Op:
    where = f"op.{name}"
    named = "template_by" if "template_by" in entry else "template"
    check_keys(where, entry, {named, "test"}, {"tiled", "type", "parts", "devices"})
    for key, kind in {"tiled": bool, "test": str, "type": str, "devices": bool}.items():
        check_type(where, entry, key, kind)
    if name not in known_ops:
        raise SpecError(f"{where}: operation is not in TERN_OP_LIST of include/tern/kernels.h")
    if named == "template_by":
        template = templates_of(where, entry[named], found)
    else:
        template = entry["template"]
    if not isinstance(template, (str, dict)):
        raise SpecError(f"{where}: key 'template' must be a name, or a table of names by format")
    templates = {None: template} if isinstance(template, str) else dict(template)
    devices = entry.get("devices", False)
    for file in () if devices else templates.values():
        check_template(where, file, template_dir)
    check_test(where, name, entry["test"], template_dir.parent / "tests")
    tiled = entry.get("tiled", False)
    parts = tuple(as_list(where, "parts", entry["parts"])) if "parts" in entry else ()
    by_table = named == "template_by"
    return Op(name, templates, tiled, entry["test"], entry.get("type", name), parts, devices, by_table)


def check_test(where: str, op: str, name: str, folder: Path) -> None:
    """A test that does not name the operation cannot prove its kernels."""
    path = next(folder.glob(f"*/test_{name}.c"), None)
    if path is None:
        raise SpecError(f"{where}: test 'test_{name}.c' does not exist")
    if not re.search(rf"\bTERN_OP_{op.upper()}\b", path.read_text(encoding="utf-8")):
        raise SpecError(f"{where}: test '{path.name}' does not name TERN_OP_{op.upper()}")


def load_kernels(index: int, entry: dict, spec: Spec, template_dir: Path) -> list[Kernel]:
    """Expands one [[kernel]] entry, formats outermost, instruction sets in their order."""
    if not isinstance(entry, dict):
        raise SpecError(f"kernel {index}: expected a table")
    where = f"kernel {index} ({entry.get('op', '?')})"
    optional = {"format", "layout", "tile", "template", "prefetch", "ahead_of"}
    check_keys(where, entry, {"op", "isa"}, optional)
    for key in ("op", "template", "ahead_of"):
        check_type(where, entry, key, str)
    op = spec.ops.get(entry["op"])
    if op is None:
        raise SpecError(f"{where}: unknown op '{entry['op']}'")
    formats = list_formats(where, entry, op, spec) if "format" in entry else [None]
    isas = list_isas(where, entry, spec)
    ahead_of = load_ahead_of(where, entry, spec)
    rows, tokens = load_tile(where, entry, op)
    prefetch = load_prefetch(where, entry, op)
    other = load_layout(where, entry, op, spec)
    template = entry.get("template")
    if template is not None:
        check_template(where, template, template_dir)
    found = []
    for fmt in formats:
        if None not in op.templates and not template and (other or fmt) not in op.templates:
            raise SpecError(f"{where}: op '{op.name}' has no template for '{other or fmt}'")
        for isa in isas:
            own = spec.weights.formats[fmt].layout if op.tiled else None
            layout = own or ("rows" if fmt else "none")
            is_other = other is not None and other != layout
            place = other if is_other else layout
            facts = (rows, tokens, is_other, template, prefetch, ahead_of)
            found.append(Kernel(op, fmt, place, spec.isas[isa], *facts))
    for kernel in found:
        check_tile(kernel)
        check_cuda_template(kernel, template_dir)
    return found


def list_formats(where: str, entry: dict, op: Op, spec: Spec) -> list[str]:
    """Key 'format', in operations on weights each with the formats that are like it."""
    known = spec.weights.formats
    formats: list[str] = []
    for name in as_list(where, "format", entry["format"]):
        if name not in known:
            raise SpecError(f"{where}: unknown format '{name}'")
        formats += [name, *(fmt.name for fmt in known.values() if op.of_weights and fmt.like == name)]
    return as_list(where, "format", formats)


def list_isas(where: str, entry: dict, spec: Spec) -> list[str]:
    """Key 'isa', with groups replaced by their members."""
    isas: list[str] = []
    for name in as_list(where, "isa", entry["isa"]):
        if name not in spec.isas and name not in spec.groups:
            raise SpecError(f"{where}: unknown isa '{name}'")
        isas += spec.groups.get(name, [name])
    return as_list(where, "isa", isas)


def load_ahead_of(where: str, entry: dict, spec: Spec) -> Isa | None:
    """Key 'ahead_of': a measured exception from the order of strength."""
    name = entry.get("ahead_of")
    if name is not None and name not in spec.isas:
        raise SpecError(f"{where}: unknown isa '{name}' in key 'ahead_of'")
    return spec.isas[name] if name else None


def load_layout(where: str, entry: dict, op: Op, spec: Spec) -> str | None:
    """Key 'layout' of a product: another layout than the format's own."""
    if "layout" not in entry:
        return None
    check_type(where, entry, "layout", str)
    if not op.tiled:
        raise SpecError(f"{where}: op '{op.name}' takes no layout")
    if entry["layout"] not in spec.weights.layouts:
        raise SpecError(f"{where}: unknown layout '{entry['layout']}'")
    return entry["layout"]


def load_tile(where: str, entry: dict, op: Op) -> tuple[int, int]:
    if not op.tiled:
        if "tile" in entry:
            raise SpecError(f"{where}: op '{op.name}' takes no tile")
        return 0, 0
    if "tile" not in entry:
        raise SpecError(f"{where}: key 'tile' is missing")
    check_keys(f"{where} tile", entry["tile"], {"rows", "tokens"})
    for key, allowed in TILES.items():
        value = entry["tile"][key]
        if type(value) is not int or value not in allowed:
            sizes = f"{', '.join(map(str, allowed[:-1]))} or {allowed[-1]}"
            raise SpecError(f"{where}: tile {key} must be {sizes}, not {value!r}")
    return entry["tile"]["rows"], entry["tile"]["tokens"]


def load_prefetch(where: str, entry: dict, op: Op) -> int:
    """Key 'prefetch' of a product: a number of whole cache lines, in bytes."""
    if "prefetch" not in entry:
        return PREFETCH
    if not op.tiled:
        raise SpecError(f"{where}: op '{op.name}' takes no prefetch")
    value = entry["prefetch"]
    if type(value) is not int or not 64 <= value <= 65536 or value % 64:
        raise SpecError(f"{where}: prefetch must be a multiple of 64 up to 65536, not {value!r}")
    return value


def check_tile(kernel: Kernel) -> None:
    """Interleaved layouts put rows in lanes: a tile must fill whole vectors."""
    in_lanes = kernel.layout != "rows" and not kernel.layout.startswith("bsr_f")  # there columns are
    if kernel.op.tiled and in_lanes and kernel.rows % kernel.isa.lanes:
        raise SpecError(f"{kernel.name}: {kernel.rows} rows do not fill vectors of {kernel.isa.lanes} lanes")


def check_cuda_template(kernel: Kernel, template_dir: Path) -> None:
    """An operation has a template for CUDA only where there is a kernel for it."""
    if kernel.isa.is_cuda and not (template_dir / f"{kernel.template}.cu.j2").is_file():
        raise SpecError(f"{kernel.name}: template '{kernel.template}.cu.j2' does not exist")


def check_kernels(kernels: list[Kernel], reference: set[str]) -> None:
    """Names are unique, each op and format has a scalar kernel, each format a reference."""
    seen = set()
    for kernel in kernels:
        if kernel.name in seen:
            raise SpecError(f"{kernel.name}: is in the table twice")
        seen.add(kernel.name)
        if kernel.format and kernel.format not in reference:
            complaint = f"format '{kernel.format}' has no reference in kernels/reference_matmul.c"
            raise SpecError(f"{kernel.name}: {complaint}")
    scalar = {(kernel.op.name, kernel.operand) for kernel in kernels if kernel.isa.name == "scalar"}
    for kernel in kernels:
        if kernel.op.devices and not kernel.isa.is_cuda:
            raise SpecError(f"{kernel.name}: op '{kernel.op.name}' is for devices only")
        if not kernel.op.devices and (kernel.op.name, kernel.operand) not in scalar:
            raise SpecError(f"{kernel.name}: has no scalar sibling")


def kernels_like(spec: Spec) -> list[Kernel]:
    """Kernels that sets name themselves, in key 'kernels': those of the set they are like, again."""
    found: list[Kernel] = []
    for isa in spec.isas.values():
        for wanted in isa.kernels:
            found += [
                replace(kernel, isa=isa, ahead_of=None)
                for kernel in kernels_named(spec.kernels + found, isa, wanted)
            ]
    for kernel in found:
        check_tile(kernel)
    return found


def kernels_named(kernels: list[Kernel], isa: Isa, wanted: str) -> list[Kernel]:
    """Kernels "op" or "op operand" of the first set that `isa` is like and that has any."""
    op, _, operand = wanted.partition(" ")
    for name in isa.like:
        found = [
            kernel
            for kernel in kernels
            if kernel.isa.name == name and kernel.op.name == op and operand in ("", kernel.operand)
        ]
        if found:
            return found
    raise SpecError(f"isa.{isa.name}: {' and '.join(isa.like)} has no kernel '{wanted}'")


def in_order(spec: Spec) -> list[Kernel]:
    """Kernels by operation, then by operand, then strongest set first, then as the table has them."""
    ops = list(spec.ops)
    operands = list(dict.fromkeys(kernel.operand for kernel in spec.kernels))
    return sorted(
        spec.kernels,
        key=lambda kernel: (
            ops.index(kernel.op.name), operands.index(kernel.operand), [-x for x in kernel.strength]
        ),
    )


def check_order(kernels: list[Kernel]) -> None:
    """Every kernel is the first choice of some processor, or shares its set with one that is."""
    for place, kernel in enumerate(kernels):
        for later in kernels[place + 1 :]:
            if (later.op, later.operand) != (kernel.op, kernel.operand) or later.isa.is_cuda:
                break
            if set(kernel.isa.needs) < set(later.isa.needs):
                raise SpecError(
                    f"{kernel.name}: would hide {later.name}, whose set is stronger and could"
                    " never be chosen"
                )
        if kernel.ahead_of and kernel.ahead_of.strength <= kernel.isa.strength:
            name = kernel.ahead_of.name
            raise SpecError(f"{kernel.name}: key 'ahead_of' names {name}, no stronger set")


def names_of_list(text: str, macro: str) -> list[str]:
    """First arguments (lower case) of the X(...) entries of an X-macro list in a C header."""
    body = re.search(rf"#define {macro}\(X\)((?:.*\\\n)*.*\n)", text)
    if body is None:
        raise SpecError(f"{macro} was not found")
    return [name.lower() for name in re.findall(r"X\((\w+)", body.group(1))]


def load(root: Path, table: Path | None = None, formats: Path | None = None) -> Spec:
    """Reads the tables of a source tree; tests replace kernels/kernels.toml and formats.toml."""
    path = table or root / "kernels" / "kernels.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path.name}: {error}") from None
    header = (root / "include" / "tern" / "kernels.h").read_text(encoding="utf-8")
    cpu = (root / "dispatch" / "cpu.h").read_text(encoding="utf-8")
    features = {name.upper() for name in names_of_list(cpu, "TERN_CPU_LIST")}
    check_keys(path.name, data, {"isa", "op", "kernel"}, {"group"})
    for section in ("isa", "op", "group"):
        check_type(path.name, data, section, dict)
    spec = Spec()
    spec.isas = load_isas(data["isa"], features)
    spec.groups = load_groups(data.get("group", {}), spec.isas)
    spec.weights = weights.load(root, formats)
    ops = set(names_of_list(header, "TERN_OP_LIST"))
    spec.ops = {n: load_op(n, e, ops, root / "kernels", spec.weights) for n, e in data["op"].items()}
    for index, entry in enumerate(data["kernel"], start=1):
        spec.kernels += load_kernels(index, entry, spec, root / "kernels")
    spec.kernels += kernels_like(spec)
    spec.kernels = in_order(spec)
    check_order(spec.kernels)
    check_kernels(spec.kernels, formats_with_reference(root, spec.weights))
    return spec


def formats_with_reference(root: Path, found: weights.Formats) -> set[str]:
    """Plain formats, those with levels, and those that kernels/reference_matmul.c names as TERN_FORMAT_X."""
    text = (root / "kernels" / "reference_matmul.c").read_text(encoding="utf-8")
    named = {name.lower() for name in re.findall(r"TERN_FORMAT_(\w+)", text)}
    return named | {fmt.name for fmt in found.formats.values() if fmt.plain or fmt.levels}
