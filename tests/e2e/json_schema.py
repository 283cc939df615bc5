# SPDX-License-Identifier: Apache-2.0
"""The part of JSON Schema 2020-12 that tern's schemas use, for machines without a validator. Where the
document that holds a schema is given, references into it are followed, and objects must not have members that
are not described."""

import math
import re

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
_KNOWN = {"$schema", "$id", "title", "description", "type", "properties", "required", "additionalProperties", "items",
          "enum", "const", "pattern", "minimum", "maximum", "minLength", "maxLength", "anyOf", "$ref"}


def _is(value, name):
    if name in ("number", "integer"):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and math.isfinite(value) and (name == "number" or value == int(value))
    return isinstance(value, _TYPES[name])


def _limits(value, schema, at):
    if "const" in schema and value != schema["const"]:
        yield f"{at}: is not {schema['const']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: is not one of {schema['enum']}"
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf):
            yield f"{at}: has {len(value)} characters"
        if not re.search(schema.get("pattern", ""), value):
            yield f"{at}: does not match {schema['pattern']}"
    elif _is(value, "number"):
        if value < schema.get("minimum", -math.inf):
            yield f"{at}: is below {schema['minimum']}"
        if value > schema.get("maximum", math.inf):
            yield f"{at}: is above {schema['maximum']}"


def _referred(schema, document):
    """Returns the schema that a reference stands for."""
    for name in schema["$ref"].removeprefix("#/").split("/"):
        document = document[name]
    return document


def _members(value, schema, at, document):
    for name in schema.get("required", []):
        if name not in value:
            yield f"{at}.{name}: is missing"
    for name, member in value.items():
        others = schema.get("additionalProperties", document is None or "properties" not in schema)
        inner = schema.get("properties", {}).get(name, others)
        if inner is False:
            yield f"{at}.{name}: is not known"
        elif inner is not True:
            yield from problems(member, inner, f"{at}.{name}", document)


def problems(value, schema, at="$", document=None):
    """One line for everything about a value that the schema forbids."""
    unknown = set(schema) - _KNOWN
    assert not unknown, f"{at}: the schema uses {unknown}"
    if "$ref" in schema:
        yield from problems(value, _referred(schema, document), at, document)
        return
    if "anyOf" in schema:
        found = [list(problems(value, one, at, document)) for one in schema["anyOf"]]
        yield from min(found, key=len)
        return
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, name) for name in types):
        yield f"{at}: must be {' or '.join(types)}"
        return
    yield from _limits(value, schema, at)
    if isinstance(value, dict):
        yield from _members(value, schema, at, document)
    elif isinstance(value, list) and "items" in schema:
        for i, element in enumerate(value):
            yield from problems(element, schema["items"], f"{at}[{i}]", document)
