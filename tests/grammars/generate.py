# SPDX-License-Identifier: Apache-2.0
"""Random schemas of the part of JSON Schema that docs/structured-output.md states."""

import random
import string

NAMES = ["id", "name", "n", "na", "value", "key", "é", "a b", "type", "items"]
WORDS = ["", "a", "ab", "abc", "red", "green", "blue", "x-1", "true", "1", "日本", "a b"]
PATTERNS = ["^[a-z]+$", "^[A-Z]{2,4}$", "^(foo|bar)+$", "^\\d{3}-\\d{4}$", "^[^x]*$", "^a.c$", "^(ab|a)(bc)?$", "^[0-9a-f]{8}$",
            "^x?y*z+$", "^(?:[a-c]{1,3},)*[d-f]$"]
FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "email", "hostname"]


class Generator:
    """formats, fractions: also strings of a format, and bounds of numbers that have several right readings."""

    def __init__(self, seed, formats=True, fractions=True):
        self.random = random.Random(seed)
        self.formats = formats
        self.fractions = fractions
        self.definitions = 0

    def bounds(self, low, high, *names):
        """Two of the names with low <= high, or one, or none."""
        a, b = sorted(self.random.randint(low, high) for _ in names)
        return {name: x for name, x in zip(names, (a, b)) if self.random.random() < 0.6}

    def string(self):
        kind = self.random.random()
        if kind < 0.25:
            return {"type": "string", "pattern": self.random.choice(PATTERNS)}
        if kind < 0.35 and self.formats:
            return {"type": "string", "format": self.random.choice(FORMATS)}
        if kind < 0.7:
            return {"type": "string", **self.bounds(0, self.random.choice([3, 12, 300]), "minLength", "maxLength")}
        return {"type": "string"}

    def number(self):
        kind = self.random.choice(["integer", "integer", "number"])
        high = self.random.choice([9, 150, 100000])
        if not self.fractions:
            low, most = sorted(self.random.randint(-high, high) for _ in range(2))
            return {"type": kind} if kind == "number" else {"type": kind, "minimum": low, "maximum": most}
        return {"type": kind, **self.bounds(-high, high, "minimum", "maximum")}

    def listed(self):
        values = self.random.sample([*WORDS, 0, 1, -5, 12, 123, 2.5, True, False, None], self.random.randint(1, 5))
        return {"enum": values} if self.random.random() < 0.8 else {"const": values[0]}

    def object(self, depth):
        names = self.random.sample(NAMES, self.random.randint(0, 4))
        schema = {"type": "object", "properties": {name: self.schema(depth - 1) for name in names}}
        required = [name for name in names if self.random.random() < 0.5]
        if required:
            schema["required"] = required
        further = self.random.random()
        if further < 0.7 or not names:
            schema["additionalProperties"] = False
        elif further < 0.85:
            schema["additionalProperties"] = self.schema(0)
        return schema

    def array(self, depth):
        schema = {"type": "array", "items": self.schema(depth - 1), **self.bounds(0, 5, "minItems", "maxItems")}
        if self.random.random() < 0.2:
            schema["prefixItems"] = [self.schema(depth - 1) for _ in range(self.random.randint(1, 3))]
        return schema

    def choice(self, depth):
        return {"anyOf": [self.schema(depth - 1) for _ in range(self.random.randint(2, 3))]}

    def schema(self, depth):
        if depth > 0 and self.random.random() < 0.6:
            return self.random.choice([self.object, self.object, self.array, self.choice])(depth)
        if self.definitions and self.random.random() < 0.15:
            return {"$ref": f"#/$defs/d{self.random.randrange(self.definitions)}"}
        leaf = self.random.random()
        if leaf < 0.35:
            return self.string()
        if leaf < 0.6:
            return self.number()
        if leaf < 0.8:
            return self.listed()
        return {"type": self.random.choice(["boolean", "null", ["integer", "null"], ["string", "boolean"]])}

    def definition(self, i):
        """Refers to earlier ones, and sometimes to itself, with a way out."""
        schema = self.schema(1)
        if schema.get("type") == "object" and self.random.random() < 0.5:
            schema["properties"]["next"] = {"anyOf": [{"$ref": f"#/$defs/d{i}"}, {"type": "null"}]}
        self.definitions = i + 1
        return schema

    def whole(self):
        self.definitions = 0
        definitions = {f"d{i}": self.definition(i) for i in range(self.random.choice([0, 0, 2]))}
        schema = self.schema(3)
        return {**schema, "$defs": definitions} if definitions else schema


def pieces(seed=1, n=1500):
    """Bytes of tokens such as vocabularies have."""
    chance = random.Random(seed)
    marks = ['"', '":', '","', '{"', '"}', "}}", "]}", "],[", '":"', '":{', '":[', "[[", "[]", "{}", "null", "true", "false",
             "00", "10", "123", "2024", "-0", "-1", ".5", "e+", "\n  ", "  ", " a", " the", "\\n", '\\"', "é", "日", "日本", "本\"",
             "😀", "é\"", "a\"}"]
    words = {m.encode() for m in marks} | {name.encode() for name in NAMES} | {w.encode() for w in WORDS}
    words |= {"日".encode()[:2], "日".encode()[1:] + b"a", "😀".encode()[:3], b"a" + "é".encode()[:1]}
    while len(words) < n:
        letters = string.ascii_letters + string.digits * 3 + '"",,-.:{}[]_ '
        words.add("".join(chance.choice(letters) for _ in range(chance.randint(2, 8))).encode())
        words.add("".join(chance.choice("abcdefxyz") for _ in range(chance.randint(2, 4))).encode())
    return [w for w in words if w]
