# SPDX-License-Identifier: Apache-2.0
"""Renders the kernel table: one C (or CUDA C++) file per kernel, X-macro lists per operation, a CMake list.

    python3 codegen/gen.py --out build/gen

Output depends only on the table and the templates; a file is written only when it changes, so an
unchanged table rebuilds nothing. Files that no kernel produces any more are removed.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import jinja2

sys.path.insert(0, str(Path(__file__).resolve().parent))
import facts  # noqa: E402
import spec as table  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
BANNER = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from {origin} of kernels/kernels.toml
 * and template kernels/{template}.{suffix}.j2. Do not edit.
 */

{head}

"""
ORIGIN = "Generated from kernels/kernels.toml"  # in every list; kernels have BANNER
COLUMNS = 100
NOTHING = "\0"  # in place of an expression that is empty: a line of nothing else is left out
# A kernel multiplies in the way of the first of these verbs that its code calls (bench/probe.h).
UNITS = {"tiles": "tile_multiply(", "codes": "vp_mac(", "signed": "vi_mac_ss(", "float": "vf_mul("}


def environment() -> jinja2.Environment:
    """Templates are C with line statements; anything undefined is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([ROOT / "kernels", ROOT / "bench"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        line_statement_prefix="%%",
        line_comment_prefix="##",
        finalize=lambda value: str(value).removesuffix("\n") or NOTHING,
    )


def token_tiles(tokens: int) -> list[int]:
    """Tile sizes that together cover any token count: 8 -> [8, 4, 2, 1], 12 -> [12, 8, 4, 2, 1]."""
    return [tokens] + [size for size in (8, 4, 2, 1) if size < tokens]


def render_kernel(env: jinja2.Environment, kernel: table.Kernel, weights: table.weights.Formats) -> str:
    layout, fmt = weights.layouts[kernel.layout], weights.formats.get(kernel.format)
    text = env.get_template(f"{kernel.template}.{kernel.suffix}.j2").render(
        kernel=kernel,
        row=kernel,  # its older name
        op=kernel.op.name,
        format=kernel.format,
        file=fmt,
        packed=weights.layouts[fmt.layout] if fmt else None,  # the format's own layout
        layout=layout,  # the kernel's
        blocks=layout if layout.codes else None,
        isa=kernel.isa,
        lanes=kernel.isa.lanes,
        vectors=16 // kernel.isa.lanes,  # vectors that hold the sixteen virtual lanes
        token_tiles=token_tiles(kernel.tokens) if kernel.op.tiled else [],
    )
    head = f'#include "tern/kernels.h"\n\n{prototype(kernel)}'
    if kernel.isa.is_cuda:  # all kernels are compiled together
        head = '#include "kernels/cuda/rows.cuh"\n#include "kernels/isa/cuda.cuh"'
        text = f"namespace code_of_{kernel.name} {{\n{text}}} // namespace code_of_{kernel.name}\n"
    banner = BANNER.format(
        origin=f"kernel {kernel.name}", template=kernel.template, suffix=kernel.suffix, head=head
    )
    return tidy(banner + text)


def prototype(kernel: table.Kernel) -> str:
    """A kernel's file declares that kernel alone, so that one more compiles no other file again."""
    return "\n".join(f"{kind} {name};" for name, kind in kernel.functions.items())


def render_proof(env: jinja2.Environment, isa: table.Isa) -> str:
    text = env.get_template("proof.c.j2").render(isa=isa, lanes=isa.lanes)
    head = f'#include "tern/kernels.h"\n\n{proof_prototype(isa)}'
    banner = BANNER.format(origin=f"isa.{isa.name}", template="proof", suffix="c", head=head)
    return tidy(banner + text)


def proof_prototype(isa: table.Isa) -> str:
    return f"bool tern_proof_{isa.name}(void);"


def wrap(line: str, indent: int = 0) -> list[str]:
    """Breaks a line of code that is too long after its last comma, "=" or "|" that fits."""
    if len(line) <= COLUMNS:
        return [line]
    indent = indent or len(line) - len(line.lstrip()) + 4
    cut = line.rfind(", ", indent, COLUMNS - 1) + 1
    for sign in (" = ", " | "):
        cut = max(cut, line.rfind(sign, indent, COLUMNS - 2) + 2)
    if cut <= indent:
        return [line]
    return [line[:cut].rstrip()] + wrap(" " * indent + line[cut:].lstrip(), indent)


def wrapped(line: str) -> str:
    return "\n".join(wrap(line))


def tidy(text: str) -> str:
    """No line over 100 columns, at most one blank line in a row, one newline at the end."""
    lines: list[str] = []
    for line in text.splitlines():
        if NOTHING in line:
            line = line.replace(NOTHING, "")
            if not line.strip():
                continue
        line = line.rstrip()
        opens = line and line[0] not in "}#" and not line[0].isspace()
        if opens and lines and lines[-1] in ("}", "};") or line == "enum {":
            lines.append("")
        if line or (lines and lines[-1]):
            lines += wrap(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"
    return text.replace("{\n\n", "{\n").replace("\n\n}", "\n}")


def have(isa: table.Isa) -> str:
    return f"TERN_HAVE_{isa.name.upper()}"


def op_list(spec: table.Spec, op: table.Op) -> str:
    """TERN_TABLE_KERNEL(op, format, layout, isa, needs, rows, tokens, name, function) per kernel.

    Kernels of several functions are TERN_<OP>_KERNEL, with all of them.
    """
    macro = f"TERN_{op.name.upper()}_KERNEL" if op.parts else "TERN_TABLE_KERNEL"
    out = [f"/* {ORIGIN}: kernels of {op.name} in order of preference. */\n"]
    for kernel in (r for r in spec.kernels if r.op is op):
        needs = needs_text(kernel.isa)
        head = f"{macro}({op.name.upper()}, {(kernel.format or 'none').upper()}, {kernel.layout.upper()}"
        args = f"{kernel.isa.name}, ({needs}), {kernel.rows}, {kernel.tokens}, {kernel.name}"
        there = ", ".join(kernel.functions)
        missing = ", ".join(["NULL"] * max(1, len(op.parts)))
        out += [f"#if {have(kernel.isa)}", wrapped(f"{head}, {args}, {there})")]
        out += ["#else", wrapped(f"{head}, {args}, {missing})"), "#endif"]
    return "\n".join(out) + "\n"


def declarations(spec: table.Spec) -> str:
    """Prototypes of every kernel that the build compiles."""
    out = [f"/* {ORIGIN}. */", '#include "tern/kernels.h"', ""]
    for isa in spec.processor_isas():
        out.append(f"#if {have(isa)}")
        for kernel in (r for r in spec.kernels if r.isa is isa):
            out.append(prototype(kernel))
        out += [proof_prototype(isa), "#endif"]
    return "\n".join(out) + "\n"


def layouts_on_devices(spec: table.Spec) -> set[str]:
    """Layouts that a product of a device reads."""
    return {kernel.layout for kernel in spec.kernels if kernel.isa.is_cuda and kernel.op.tiled}


def unit_of(text: str) -> str:
    return next((unit for unit, verb in UNITS.items() if verb in text), "none")


def needs_text(isa: table.Isa) -> str:
    return " | ".join(f"TERN_CPU_MASK({n})" for n in isa.needs) or "0"


def render_probe(env: jinja2.Environment, isa: table.Isa, units: list[str]) -> str:
    """bench/probe.c.j2 for an instruction set whose kernels use `units`."""
    head = "/* SPDX-License-Identifier: Apache-2.0 */\n"
    head += f"/* {ORIGIN} and bench/probe.c.j2. Do not edit. */\n\n"
    probe = env.get_template("probe.c.j2")
    return tidy(head + probe.render(isa=isa, lanes=isa.lanes, units=units, needs=needs_text(isa)))


def probes(env: jinja2.Environment, spec: table.Spec, units: dict[str, str]) -> dict[str, str]:
    """Writes the sources that bench/ needs: a probe of each instruction set, their list, and each kernel's unit."""
    files = {}
    listed = [f"/* {ORIGIN}, weakest first. */"]
    for isa in spec.processor_isas():
        used = {units[kernel.name] for kernel in spec.kernels if kernel.isa is isa}
        files[f"probes/tern_probe_{isa.name}.c"] = render_probe(
            env, isa, [unit for unit in UNITS if unit in used]
        )
        listed += [f"#if {have(isa)}", f"TERN_PROBE({isa.name})", "#endif"]
    files["probes.inc"] = "\n".join(listed) + "\n"
    lines = [f"TERN_KERNEL_UNIT({name}, {unit.upper()})" for name, unit in units.items()]
    files["units.inc"] = "\n".join([f"/* {ORIGIN}. */", *lines]) + "\n"
    return files


def test_list(spec: table.Spec) -> str:
    """TERN_OP_TEST(op, test) per operation that has kernels."""
    lines = [f'TERN_OP_TEST({op.name.upper()}, "{op.test}")' for op in spec.ops.values()]
    return "\n".join([f"/* {ORIGIN}. */", *lines]) + "\n"


def isa_list(spec: table.Spec) -> str:
    """TERN_ISA(name, arch, needs, built, proof) per instruction set of processors, weakest first."""
    out = [f"/* {ORIGIN}. */"]
    for isa in spec.processor_isas():
        head = f"TERN_ISA({isa.name}, {isa.arch}, ({needs_text(isa)})"
        out += [f"#if {have(isa)}", wrapped(f"{head}, true, tern_proof_{isa.name})")]
        out += ["#else", wrapped(f"{head}, false, NULL)"), "#endif"]
    return "\n".join(out) + "\n"


def cmake_list(spec: table.Spec) -> str:
    """Sources and flags per instruction set, for cmake/Codegen.cmake."""
    names = "".join(f"\n    {name}" for name in spec.isas)
    out = [f"# {ORIGIN}.", f"set(TERN_ISAS{names})"]
    for isa in spec.isas.values():
        files = "".join(f"\n    {r.file}" for r in spec.kernels if r.isa is isa)
        if not isa.is_cuda:
            files += f"\n    kernels/proof_{isa.name}.c"
        out.append(f"set(TERN_ISA_{isa.name}_ARCH {isa.arch})")
        flags = "".join(f"\n    {flag}" for flag in isa.cflags)
        out.append(f"set(TERN_ISA_{isa.name}_FLAGS{flags})")
        out.append(f"set(TERN_ISA_{isa.name}_SOURCES{files})")
    return "\n".join(out) + "\n"


def cuda_kernels(spec: table.Spec) -> str:
    """Every CUDA kernel in one file, which nvcc compiles faster than one by one, and their list."""
    kernels = [kernel for kernel in spec.kernels if kernel.isa.is_cuda]
    out = [f"/* {ORIGIN}. */", ""]
    out += [f'#include "gen/{kernel.file}"' for kernel in kernels]
    out += ["", "extern const tern_cuda_kernel tern_cuda_kernels[] = {"]
    for kernel in kernels:
        facts = f"TERN_OP_{kernel.op.name.upper()}, TERN_FORMAT_{(kernel.format or 'none').upper()}"
        place = f"TERN_LAYOUT_{kernel.layout.upper()}, {kernel.rows}, {kernel.tokens}"
        out += [f'    {{"{kernel.name}",', f"     {facts},", f"     {place},"]
        out += [f"     (const void *)code_of_{kernel.name}::{kernel.name}}},"]
    out += ["};", "", f"extern const size_t tern_cuda_kernel_count = {len(kernels)};"]
    return "\n".join(out) + "\n"


def outputs(spec: table.Spec) -> dict[str, str]:
    """Relative path -> text of everything that is generated."""
    env = environment()
    code = {kernel.name: render_kernel(env, kernel, spec.weights) for kernel in spec.kernels}
    files = {kernel.file: code[kernel.name] for kernel in spec.kernels}
    processor = {r.name: unit_of(code[r.name]) for r in spec.kernels if not r.isa.is_cuda}
    files |= probes(env, spec, processor)
    files |= {f"kernels/proof_{i.name}.c": render_proof(env, i) for i in spec.processor_isas()}
    if any(isa.is_cuda for isa in spec.isas.values()):
        files["cuda/kernels.cu"] = cuda_kernels(spec)
    files |= {f"{op.name}.inc": op_list(spec, op) for op in spec.ops.values()}
    files["table.inc"] = f"/* {ORIGIN}. */\n"
    files["table.inc"] += "".join(f'#include "gen/{op}.inc"\n' for op in spec.ops)
    files["ops.inc"] = test_list(spec)
    files["isas.inc"] = isa_list(spec)
    files |= facts.outputs(spec.weights, layouts_on_devices(spec), wrapped)
    files["kernels.h"] = declarations(spec)
    files["sources.cmake"] = cmake_list(spec)
    return files


def is_ours(path: Path) -> bool:
    """Says whether this program wrote a file. It removes nothing else, wherever --out points."""
    with path.open("rb") as file:
        head = file.read(256).decode("utf-8", "replace")
    of_kernel = "Generated from" in head and "of kernels/kernels.toml" in head
    return of_kernel or ORIGIN in head or facts.ORIGIN in head


def write(out: Path, files: dict[str, str]) -> None:
    for path in sorted([*out.glob("*"), *out.glob("*/*.c"), *out.glob("*/*.cu")]):
        if path.is_file() and path.relative_to(out).as_posix() not in files and is_ours(path):
            path.unlink()
    for name, text in files.items():
        path = out / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Generates kernels from kernels/kernels.toml.")
    parser.add_argument("--out", type=Path, required=True, help="folder for the generated files")
    parser.add_argument("--table", type=Path, help="another table than kernels/kernels.toml")
    parser.add_argument("--formats", type=Path, help="another table than kernels/formats.toml")
    args = parser.parse_args()
    try:
        write(args.out, outputs(table.load(ROOT, args.table, args.formats)))
    except (table.SpecError, jinja2.TemplateError) as error:
        print(f"codegen: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
