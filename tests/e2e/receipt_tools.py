# SPDX-License-Identifier: Apache-2.0
"""Receipts for tests: a digest computed without tern, and ways to change a document."""

import copy
import hashlib
import json
import re
import struct

import common
import weights

FREE = object()  # a change that no rule can notice


def canonical(value):
    """docs/receipts.md, "The digest"."""
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if value is None:
        return b"n"
    if isinstance(value, (int, float)):
        if isinstance(value, int) or (abs(value) <= 2.0**53 and value == int(value)):
            return b"i%d;" % int(value)
        return b"r%s;" % struct.pack(">d", value).hex().encode()
    if isinstance(value, str):
        text = value.encode()
        return b"s%d:%s" % (len(text), text)
    if isinstance(value, list):
        return b"[" + b"".join(map(canonical, value)) + b"]"
    members = sorted((k.encode(), v) for k, v in value.items())
    return b"{" + b"".join(b"%d:%s" % (len(k), k) + canonical(v) for k, v in members) + b"}"


def digest(receipt):
    content = {k: v for k, v in receipt.items() if k not in ("digest", "signature")}
    return hashlib.sha256(canonical(content)).hexdigest()


def seal(receipt):
    receipt["digest"] = {"algorithm": "sha256-canonical-json", "value": digest(receipt)}
    return receipt


def hash_ids(ids):
    return hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()


def hash_file(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def leaves(value, path=()):
    """Paths of everything that is neither an object nor a list with elements."""
    if isinstance(value, dict) and value:
        for key in value:
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value:
        for i, element in enumerate(value):
            yield from leaves(element, (*path, i))
    else:
        yield path


def members(value, path=()):
    """Paths of all members of objects, at any depth."""
    if isinstance(value, dict):
        for key in value:
            yield (*path, key)
            yield from members(value[key], (*path, key))
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield from members(element, (*path, i))


def get(receipt, path):
    for key in path:
        receipt = receipt[key]
    return receipt


def put(receipt, path, value):
    """A copy of the receipt with another value there."""
    changed = copy.deepcopy(receipt)
    get(changed, path[:-1])[path[-1]] = value
    return changed


def drop(receipt, path):
    changed = copy.deepcopy(receipt)
    del get(changed, path[:-1])[path[-1]]
    return changed


def other(value):
    """A value of the same type that says something else."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.5 + 0.25
    if isinstance(value, str):
        if len(value) in (64, 128) and set(value) <= set("0123456789abcdef"):
            return ("0" if value[0] != "0" else "1") + value[1:]
        return value + "x"
    if value is None:
        return 1
    return value + ["x"] if isinstance(value, list) else value | {"x": "x"}  # an empty one


# Fields whose values must have a form: other values that have it.
SOUND = {
    "timestamp": ["2020-02-29T00:00:00.5Z"],
    "backend": ["cuda"],
    "run.command": ["bench"],
    "run.isa": ["scalar", "sse41", "avx2"],
    "run.disabled": ["avx512"],
    "run.layout": [*weights.TERNARY_LAYOUTS, "mixed"],
    "run.choice": ["table", "tuned", "asked"],
    "run.kv": ["f32", "f16", "q8_0"],
    "run.affinity": ["auto", "compact", "none"],
    "run.numa": ["interleave", "node:0", "node:9", "nodes"],
    "run.nodes_online": ["0-1", "", "1,0"],
    "model_info.i2s_layout": ["a", "b", "c", "d"],
    "model_info.pre_tokenizer": ["default", "smollm", "gpt-2", "llama-bpe"],
    "model_info.pre_tokenizer_from": ["model", "asked"],
    "model_info.quantization_type": ["F16", "F32"],
    "machine.architecture": ["aarch64", "x86_64", "other"],
    "benchmark.peak_unit": ["f32", "int8 codes", "int8 signed"],
    "benchmark.peak_isa": ["scalar", "sse41", "avx2", "neon"],
    "output.stop": ["end", "length", "context", "stop", "interrupted"],
    "output.stop_tokens": [[1]],
    "output.stop_texts": [["x"]],
    "sampler.logit_bias": [[{"token": 1, "bias": 0.5}]],
}


def others(receipt, path):
    """Yields values that differ from the receipt's at a path: any values, and those that are as sound."""
    value = get(receipt, path)
    yield other(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        near = [value - 1] if isinstance(value, int) else [value * 0.999, value * 1.000001]
        yield from (v for v in near if v != value)
    if path[-1] in ("model_path", "path"):
        yield f"elsewhere/{value}"
    if isinstance(value, str) and value.startswith("tern_"):  # what other sets have for it
        stem = value.rpartition("_")[0]
        yield from (f"{stem}_{isa}" for isa in receipt["machine"].get("instruction_sets", []) if f"{stem}_{isa}" != value)
    yield from (v for v in SOUND.get(dotted(path), []) if v != value)


KEPT = ("digest", "signature")  # what is made anew


def forgeries(receipt, *parts):
    """{(path as the page lists it, number): the receipt with another value there}, of these parts or all."""
    found = {}
    for path in leaves(receipt):
        if path[0] not in KEPT and (not parts or path[0] in parts):
            for value in others(receipt, path):
                found[listed_as(path), len(found)] = seal(put(receipt, path, value))
    return found


def listed_as(path):
    """A path with [] for each place in a list, and * for the name of a test of accuracy."""
    steps = ["[]" if isinstance(step, int) else f".{step}" for step in path]
    if path[:2] == ("test_results", "accuracy_tests"):
        steps[2] = ".*"
    return "".join(steps).lstrip(".")


def unprotected(kind):
    """Returns the fields that only a signature protects, as docs/receipts.md lists them, for receipts of runs or of
    answers."""
    section = (common.ROOT / "docs" / "receipts.md").read_text().partition("## What only a signature")[2].partition("\n## ")[0]
    table = section.partition(f"### Of {kind}")[2].partition("\n### ")[0]
    rows = re.findall(r"(?m)^\| (`.*?) \|", table)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def dotted(path):
    return "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in path).lstrip(".")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def change(receipt, dotted, value):
    """A copy with another value at a path without lists, sealed."""
    return seal(put(receipt, tuple(dotted.split(".")), value))
