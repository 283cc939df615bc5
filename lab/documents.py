# SPDX-License-Identifier: Apache-2.0
"""Holds the rules for all documents of measurements, whatever they measured: fields, origin, model, machine, kernels,
digest and signature (docs/receipts.md). figure_rules.py has the rules of each kind. Findings are lines that name the
field."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from datetime import datetime
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("bench", "codegen")]
sys.path.append(str(ROOT / "tests" / "e2e"))

import ed25519  # noqa: E402
import json_schema  # noqa: E402
import sealing  # noqa: E402
import spec  # noqa: E402

KINDS = ("benchmark", "comparison", "perplexity")
FAMILIES = {"i2s_gemv", "tl1_matmul", "tl2_matmul", "rope_apply", "attention_real"}
NEVER_LACKING = {"$schema", "schema_version", "origin", "digest", "signature"}
SIZES = ("file_bytes", "layers", "experts", "shared_experts", "delta_layers", "delta_matrices", "hidden_size", "ffn_size", "num_attention_heads",
         "num_key_value_heads", "head_dim", "vocab_size", "context_length", "parameters", "weight_bytes")  # fmt: skip


class Place:
    """An object inside of a document, the name that findings call it by, and the findings."""

    def __init__(self, value, shown: str, found: list[str]):
        self.value, self.shown, self.found = value, shown, found

    def find(self, text: str) -> None:
        self.found.append(f"{self.shown}{text}")

    def at(self, path: str):
        """The member that a path such as "model_info.sha256" leads to, or None."""
        value = self.value
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def number(self, path: str) -> float:
        value = self.at(path)
        return value if isinstance(value, (int, float)) else 0

    def text(self, path: str) -> str:
        value = self.at(path)
        return value if isinstance(value, str) else ""

    def inner(self, path: str) -> Place:
        return Place(self.at(path), f"{self.shown}{path}.", self.found)

    def each(self, path: str) -> list[Place]:
        shown = f"{self.shown}{path}"
        return [Place(one, f"{shown}[{i}].", self.found) for i, one in enumerate(self.at(path) or [])]

    def near(self, path: str, expected: float, why: str) -> None:
        """Adds a finding unless the number follows from others; nothing where it was not recorded."""
        self.near_value(self.at(path), path, expected, why)

    def near_value(self, value, name: str, expected: float, why: str) -> None:
        if value is not None and not abs(value - expected) <= 1e-9 * (abs(value) + abs(expected)) + 1e-12:
            self.find(f"{name}: is {value:.9g}, must be {expected:.9g}: {why}")

    def equal(self, path: str, expected: int, why: str) -> None:
        """Adds a finding unless a count is exactly this: nothing rounds counts."""
        value = self.at(path)
        if value is not None and value != expected:
            self.find(f"{path}: is {value}, must be {expected}: {why}")

    def positive(self, path: str) -> None:
        if not self.number(path) > 0:
            self.find(f"{path}: is {self.number(path):g}, must be more than 0")


@cache
def schema(kind: str) -> dict:
    return json.loads((ROOT / "docs" / "schemas" / f"{kind}.schema.json").read_text(encoding="utf-8"))


@cache
def table() -> tuple[spec.Spec, dict[str, spec.Kernel]]:
    """The kernel table, and its kernels by name."""
    loaded = spec.load(ROOT)
    return loaded, {kernel.name: kernel for kernel in loaded.kernels}


def is_of_figures(document: dict) -> bool:
    return any(document.get("$schema") == schema(kind)["$id"] for kind in KINDS)


# ---- fields ----


def nulls(value, path: str = ""):
    """Yields the paths of all nulls, as schemas name fields: a.b[].c."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from nulls(member, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for element in value:
            yield from nulls(element, f"{path}[]")


def check_fields(doc: Place, kind: str) -> bool:
    """Says whether all fields are there and have their types; only those that the document lists are null."""
    before = len(doc.found)
    doc.found += (line.removeprefix("$.") for line in json_schema.problems(doc.value, schema(kind)))
    if len(doc.found) > before:
        return False
    listed, met = doc.at("origin.not_recorded"), set()
    for path in nulls(doc.value):
        met.add(path)
        if path not in listed or path.split(".")[0] in NEVER_LACKING:
            doc.find(f"{path}: is null, which origin.not_recorded does not allow")
    for i, path in enumerate(listed):
        if path not in met or path in listed[:i]:
            doc.find(f'origin.not_recorded[{i}]: "{path}" is not a field that is null')
    return len(doc.found) == before


# ---- parts that all have ----


def check_header(doc: Place) -> None:
    time = doc.at("timestamp")
    if time is not None:
        try:
            datetime.fromisoformat(time)
            sound = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", time)
        except ValueError:
            sound = None
        if not sound:
            doc.find(f'timestamp: is "{time}", must be a time of RFC 3339 in UTC')
    if doc.at("compute_path") not in (None, "real"):
        doc.find(f'compute_path: is "{doc.at("compute_path")}", must be "real"')


def check_origin(doc: Place) -> None:
    """A measured document lacks nothing; an imported one says what it lacks and where it came from."""
    kind, lacking = doc.text("origin.kind"), len(doc.at("origin.not_recorded"))
    if kind == "imported" and not doc.text("origin.note"):
        doc.find("origin.note: must say where imported figures come from")
    if (kind == "imported") != (lacking > 0):
        doc.find(f'origin.kind: is "{kind}", but {lacking} fields were not recorded')


def check_files(doc: Place) -> None:
    """Sizes add up, and the model's digest is made of its files'."""
    files = doc.at("model_info.files")
    if files is None:
        return
    doc.equal("model_info.file_bytes", sum(file["bytes"] for file in files), "model_info.files have as many")
    all_ = hashlib.sha256("".join(file["sha256"] for file in files).encode()).hexdigest()
    if doc.at("model_info.sha256") != (files[0]["sha256"] if len(files) == 1 else all_):
        doc.find("model_info.sha256: is not that of model_info.files")


def check_model(doc: Place) -> None:
    for name in SIZES:
        if doc.at(f"model_info.{name}") is not None:
            doc.positive(f"model_info.{name}")
    check_files(doc)
    heads, shared = doc.number("model_info.num_attention_heads"), doc.number("model_info.num_key_value_heads")
    if shared > 0 and heads % shared:
        doc.find(f"model_info.num_key_value_heads: {shared} do not divide {heads} heads")
    formats, type_ = doc.at("model_info.weight_formats"), doc.text("model_info.quantization_type")
    if formats is not None and type_.lower() not in map(str.lower, formats):
        doc.find(f'model_info.quantization_type: "{type_}" is not one of model_info.weight_formats')
    if doc.number("run.dequantized_rows"):
        doc.find("run.dequantized_rows: rows of weights were expanded to floats while generating")


def read_nodes(text: str) -> set[int] | None:
    """Numbers of nodes in ascending order as the system lists them, "0-1,3"; None for another text."""
    nodes, least = set(), 0
    for part in text.split(",") if text else []:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if first < least or last < first or last > 2**32 - 1 or last - first > 1 << 20:
            return None
        nodes.update(range(first, last + 1))
        least = last + 1 + (match[2] is not None)  # what follows at once would be part of this range
    return nodes


def check_nodes(doc: Place) -> None:
    numa, online = doc.at("run.numa"), doc.at("run.nodes_online")
    match = re.fullmatch(r"none|interleave|strict|node:(\d+)", numa or "none")
    if not match or int(match[1] or 0) > 2**32 - 1:
        doc.find(f'run.numa: is "{numa}", must be none, interleave, node:X or strict')
    elif online is not None:
        nodes = read_nodes(online)
        if nodes is None:
            doc.find(f'run.nodes_online: "{online}" is not a list of nodes such as 0-1,3')
        elif match[1] and nodes and int(match[1]) not in nodes:
            doc.find(f'run.numa: is "{numa}", run.nodes_online is "{online}"')


def check_machine(doc: Place) -> None:
    sets = doc.at("machine.instruction_sets")
    known = table()[0].isas
    for i, name in enumerate(sets):
        if name not in known or known[name].is_cuda:
            doc.find(f'machine.instruction_sets[{i}]: tern knows no "{name}"')
        elif known[name].arch not in ("any", doc.at("machine.architecture")):
            doc.find(f'machine.architecture: "{doc.at("machine.architecture")}" does not have "{name}"')
        if name in sets[:i]:
            doc.find(f'machine.instruction_sets[{i}]: "{name}" is there twice')
    if not sets or doc.at("run.isa") != sets[-1]:
        doc.find(f'run.isa: "{doc.text("run.isa")}" is not the last of machine.instruction_sets')


# ---- kernels ----


def may_be_gone(name: str, sets) -> bool:
    """True if a kernel of an earlier table may have had the name: one of an operation, for a set that the machine
    has. Measurements are not repeated, so a kernel that is gone does not matter to them."""
    isa = name.rpartition("_")[2]
    has_set = isa in sets if sets is not None else isa in table()[0].isas
    return has_set and any(name.startswith(f"tern_{op}_") for op in table()[0].ops)


def kernel_problem(doc: Place, name: str) -> str | None:
    """Says what is wrong with one name: it must be one of tern's, not a mock, and belong to an instruction set that the
    machine has."""
    kernel, sets, backend = table()[1].get(name), doc.at("machine.instruction_sets"), doc.text("backend")
    if "mock" in name.lower():
        return f'"{name}" is a mock'
    if kernel is None:
        return None if name in FAMILIES or may_be_gone(name, sets) else f'"{name}" is not a kernel of tern'
    if kernel.isa.is_cuda:
        return None if backend == kernel.isa.name else f'"{name}" needs {kernel.isa.name}, but backend is "{backend}"'
    if sets is not None and kernel.isa.name not in sets:
        return f'"{name}" needs {kernel.isa.name}, which machine.instruction_sets lacks'
    return None


def check_layout(doc: Place, kernels: list[spec.Kernel]) -> None:
    """Ternary products ran on kernels of the layout that the weights have."""
    layout = doc.at("run.layout")
    ternary = {name for name, one in table()[0].weights.layouts.items() if one.is_ternary}
    if layout not in (None, "mixed", *ternary):
        doc.find(f'run.layout: "{layout}" is not a layout of ternary matrices')
    for kernel in kernels if layout in ternary else []:
        if kernel.layout in ternary and kernel.layout != layout:
            doc.find(f'run.layout: is {layout}, but "{kernel.name}" multiplies in {kernel.layout}')


def check_kernels(doc: Place) -> None:
    names = doc.at("kernels") or []
    if not 1 <= len(names) <= len(table()[1]) + len(FAMILIES):
        doc.find(f"kernels: {len(names)} names")
    for i, name in enumerate(names):
        problem = kernel_problem(doc, name)
        if problem:
            doc.find(f"kernels[{i}]: {problem}")
        if name in names[:i]:
            doc.find(f'kernels[{i}]: "{name}" is there twice')
    kernels = [table()[1][name] for name in names if name in table()[1]]
    check_layout(doc, kernels)
    if doc.at("machine.instruction_sets") is not None:
        check_machine(doc)
    own = [kernel.name for kernel in kernels if not kernel.isa.is_cuda]
    if doc.text("backend") != "cpu" and own:
        doc.find(f'backend: is "{doc.text("backend")}", but "{own[0]}" is a kernel of the processor')


# ---- digest and signature ----


def check_digest(doc: Place) -> None:
    said, right = doc.at("digest.value"), sealing.seal(doc.value)["digest"]["value"]
    if said != right:
        doc.find(f"digest.value: is {str(said)[:16]}..., but the content has {right[:16]}...: it was changed")


def read_public_key(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    match = re.fullmatch(r"tern-ed25519-public-key ([0-9a-f]{64})\s*", text)
    if not match:
        raise ValueError(f"{path}: not a key of the kind tern-ed25519-public-key")
    return match[1]


def check_signature(doc: Place, key: str | None, name: str = "") -> None:
    """key: 64 digits of the key that must have signed it, from the file `name`."""
    signature = doc.at("signature")
    if signature is None:
        if key:
            doc.find(f"signature: is missing, must be by the key in {name}")
        return
    digest = sealing.seal(doc.value)["digest"]["value"]
    message = f"tern receipt {sealing.VERSION}\n{digest}".encode()
    try:
        good = ed25519.verifies(bytes.fromhex(signature["public_key"]), message, bytes.fromhex(signature["value"]))
    except (KeyError, TypeError, ValueError):
        good = False
    if not good:
        doc.find("signature.value: is not a signature of this content by signature.public_key")
    elif key and signature["public_key"] != key:
        doc.find(f"signature.public_key: is not the key in {name}")


def parse(data: bytes):
    """Returns the document. Raises ValueError for anything but a JSON object, for a number that JSON does not know, and
    for a name that occurs twice."""

    def unique(pairs):
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ValueError("an object has the same name twice")
        return members

    def no_number(text):
        raise ValueError(f"{text} is not a number")

    document = json.loads(data, object_pairs_hook=unique, parse_constant=no_number)
    if not isinstance(document, dict):
        raise ValueError("is not a JSON object")
    return document


