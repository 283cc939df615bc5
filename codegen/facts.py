# SPDX-License-Identifier: Apache-2.0
"""Writes the parts of the table of formats and layouts that C reads: a public header, and facts as initializers."""

from __future__ import annotations

import textwrap

from formats import Format, Formats, Layout

ORIGIN = "Generated from kernels/formats.toml"
COLUMNS = 100


def macro(head: str, lines: list[str]) -> str:
    """A macro of several lines, with its backslashes in the last column."""
    rows = [head, *(f"    {line}" for line in lines)]
    return "\n".join([row.ljust(COLUMNS - 1) + "\\" for row in rows[:-1]] + [rows[-1]])


def text_macro(name: str, words: list[str]) -> str:
    lines = textwrap.wrap(" ".join(words), COLUMNS - 8)
    if len(lines) == 1 and len(name) + len(lines[0]) < COLUMNS - 12:
        return f'#define {name} "{lines[0]}"'
    return macro(f"#define {name}", [f'"{line}{"" if line is lines[-1] else " "}"' for line in lines])


def pictures(found: Formats) -> list[str]:
    """The layouts' bytes, as lines of a comment."""
    lines = []
    for layout in found.layouts.values():
        if layout.text:
            head = f" * {layout.name.upper():9}"
            text = " ".join(layout.text.split())
            lines += textwrap.wrap(text, COLUMNS, initial_indent=f"{head} ", subsequent_indent=" *" + " " * 11)
    return lines


def ternary_layouts(found: Formats) -> list[Layout]:
    return [layout for layout in found.layouts.values() if layout.is_ternary]


def row_formats(found: Formats) -> list[str]:
    """Returns the formats of rows from the largest to the smallest."""
    formats = [fmt for fmt in found.formats.values() if fmt.of_rows]
    return [fmt.name for fmt in sorted(formats, key=lambda fmt: -fmt.bytes / fmt.block)]


def public_header(found: Formats, on_devices: set[str]) -> str:
    """tern/formats.h."""
    ternary = ternary_layouts(found)
    formats = [
        f'X({f.name.upper()}, "{f.name}", '
        f"{'TERN_NO_GGUF_TYPE' if f.gguf is None else f.gguf}, {f.block}, {f.bytes})"
        for f in found.formats.values()
    ]
    layouts = [f'X({x.name.upper()}, "{x.name}", {x.input.upper()})' for x in found.layouts.values()]
    return "\n".join([
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "#ifndef TERN_FORMATS_H",
        "#define TERN_FORMATS_H",
        "",
        f"/* {ORIGIN}: formats and layouts of weights, for tern/kernels.h. */",
        "",
        "/* X(NAME, text, GGUF type id, elements per block, bytes per block). */",
        "#define TERN_NO_GGUF_TYPE UINT32_MAX",
        macro("#define TERN_FORMAT_LIST(X)", formats),
        "",
        "/*",
        " * X(NAME, text, the form of activations that its products read). The layouts:",
        " *",
        *pictures(found),
        " */",
        macro("#define TERN_LAYOUT_LIST(X)", layouts),
        "",
        "/*",
        " * X(NAME, text, what receipts call its kernels, what they call its products where they speak",
        " * of accuracy, whether devices have kernels for it): the layouts that a ternary matrix can be",
        " * packed in. Below, their names as one text.",
        " */",
        macro(
            "#define TERN_TERNARY_LAYOUT_LIST(X)",
            [
                f'X({x.name.upper()}, "{x.name}", "{x.family}", "{x.accuracy}", '
                f"{str(x.name in on_devices).lower()})"
                for x in ternary
            ],
        ),
        text_macro("TERN_TERNARY_LAYOUTS", [x.name for x in ternary]),
        "",
        "/* Names of the formats that floats can become and whose rows can be read one by one. */",
        text_macro("TERN_ROW_FORMATS", row_formats(found)),
        "",
        "#endif",
        "",
    ])  # fmt: skip


def initializer(fields: dict[str, object]) -> str:
    """Writes designated members; those that are 0 are left out."""
    return ", ".join(f".{name} = {value}" for name, value in fields.items() if value)


def enum(kind: str, name: str | None) -> str | None:
    return name and f"TERN_{kind}_{name.upper()}"


def levels_of(fmt: Format) -> str | None:
    """An array of C."""
    return fmt.levels and "(const int8_t[16]){" + ", ".join(map(str, fmt.levels)) + "}"


def format_facts(fmt: Format, layout: Layout) -> dict[str, object]:
    """Members of tern_format_facts, kernels/facts.h."""
    halves = fmt.halves
    none = enum("FORMAT", "none")
    bits = layout.bits
    plain = initializer({
        "bits": bits,
        "bias": 0 if fmt.levels else layout.excess,
        "power": "true" if fmt.power is not None else None,
        "minimum": "true" if layout.scales == "minimum" else None,
        "codes_at": fmt.bytes - (32 if bits == 8 else 16),
        "levels": levels_of(fmt),
    })  # fmt: skip
    return {
        "layout": enum("LAYOUT", fmt.layout),
        "file_type": fmt.file_type,
        "stand_in": enum("FORMAT", fmt.stand_in) or none,
        "ternary": "true" if fmt.ternary else None,
        "coarse": "true" if fmt.coarse else None,
        "halves": len(halves),
        "half_at": halves and "{" + ", ".join(map(str, halves.values())) + "}",
        "half_name": halves and "{" + ", ".join(f'"{name}"' for name in halves) + "}",
        "int8_from": fmt.int8[0],
        "int8_to": fmt.int8[1],
        "plain": fmt.plain and "{" + plain + ("," if plain.endswith("}") else "") + "}",
        "levels": not fmt.plain and levels_of(fmt),
        "unit": not fmt.plain and fmt.levels and f"{fmt.unit!r}f",
    }


def layout_facts(layout: Layout) -> dict[str, object]:
    """Members of tern_layout_facts, kernels/facts.h."""
    return {
        "packed": "true" if layout.is_packed else None,
        "dense": "true" if layout.dense else None,
        "sparse": enum("FORMAT", layout.sparse) or enum("FORMAT", "none"),
    }


def plain_shape(fmt: Format, layout: Layout) -> str:
    """A packer's block_shape, kernels/pack_block.c."""
    shape = f"{fmt.bytes}, {len(fmt.halves)}, {8 if layout.bits == 8 else 4}, {int(layout.bits == 5)}, {int(fmt.power is not None)}"
    return f"TERN_PLAIN({fmt.name.upper()}, {fmt.name}, {shape})"


def listed(lines: list[str]) -> str:
    return "\n".join([f"/* {ORIGIN}. */", *lines]) + "\n"


def outputs(found: Formats, on_devices: set[str], wrapped) -> dict[str, str]:
    """Relative path -> text of the lists; `wrapped` breaks lines that are too long."""
    formats = [
        wrapped(f"[TERN_FORMAT_{f.name.upper()}] = {{{initializer(format_facts(f, found.layouts[f.layout]))}}},")
        for f in found.formats.values()
    ]
    layouts = [
        wrapped(f"[TERN_LAYOUT_{x.name.upper()}] = {{{initializer(layout_facts(x))}}},")
        for x in found.layouts.values()
    ]
    packed = [f"TERN_PACKED({x.name})" for x in found.layouts.values() if x.is_packed]
    plain = [plain_shape(f, found.layouts[f.layout]) for f in found.formats.values() if f.plain and f.layout == f"{f.name}r16"]
    quantizers = [
        wrapped(f"[TERN_FORMAT_{f.name.upper()}] = {{{initializer(f.quantize)}}},")
        for f in found.formats.values()
        if f.quantize
    ]
    foreign = [f'{{{x.gguf}, {x.block}, {x.bytes}, {x.row}, "{x.name}"}},' for x in found.foreign]
    return {
        "include/tern/formats.h": public_header(found, on_devices),
        "formats.inc": listed(formats),
        "layouts.inc": listed(layouts),
        "foreign.inc": listed(foreign),
        "packers.inc": listed(packed),
        "plain.inc": listed(plain),
        "quantizers.inc": listed(quantizers),
    }
