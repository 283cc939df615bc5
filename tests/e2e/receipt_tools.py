# SPDX-License-Identifier: Apache-2.0
"""Receipts for tests: an own reading of the canonical digest, and ways to change a document."""

import copy
import hashlib
import json
import struct

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
    return value + ["x"]  # an empty list


def dotted(path):
    return "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in path).lstrip(".")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
