#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Formats of strings against jsonschema's checkers, on texts drawn at random.

Texts are made from the examples of the standards, with a few characters taken away, doubled, changed or inserted, and
from a few characters that have a meaning. An exact format allows a text exactly if it conforms; the other formats allow
only texts that conform.

    check_formats.py --tool build/tests/grammar_tool [--texts 4000] [--seed 1]
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

import jsonschema

import checkers
import tool

URIS = ["ftp://ftp.is.co.za/rfc/rfc1808.txt", "http://www.ietf.org/rfc/rfc2396.txt", "ldap://[2001:db8::7]/c=GB?objectClass?one",
        "mailto:John.Doe@example.com", "news:comp.infosystems.www.servers.unix", "tel:+1-816-555-1212", "telnet://192.0.2.16:80/",
        "urn:oasis:names:specification:docbook:dtd:xml:4.1.2", "foo://example.com:8042/over/there?name=ferret#nose",
        "http://a/b/c/d;p?q", "file:///etc/hosts", "a://[v1.fe80::a+en1]/", "x:", "x:/", "x:y//z", "a://u:p@h:/%7e"]
REFERENCES = ["", "g", "./g", "g/", "/g", "//g", "?y", "g?y", "#s", "g;x=1/y", "../../g", "a%20b", "./a:b", "//[::1]:8/x"]
IPV6 = ["::", "::1", "1::", "2001:db8::7", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::4:5:6:7:8", "ffff::1.2.3.4",
        "1:2:3:4:5:6:1.2.3.4", "::1:2:3:4:5:255.255.255.255", "abcd:EF01:2345:6789::"]
# name: (whether it is exact, texts that conform, characters that mean something)
FORMATS = {
    "uri": (True, URIS, ":/?#[]@!%aF0.-~ é"),
    "uri-reference": (True, URIS + REFERENCES, ":/?#[]@!%aF0.-~ é"),
    "iri": (True, [*URIS, "http://ré.x/日?\ue000#ü"], ":/?#[]@%aF0é\ue000\U000e1000\u200e\ufdd0\U0001fffe"),
    "iri-reference": (True, [*URIS, *REFERENCES, "é:", "日/é"], ":/?#[]@%aF0é\ue000\U000e1000\ufdd0\U0001fffe"),
    "ipv6": (True, IPV6, ":0fg.1%"),
    "ipv4": (True, ["0.0.0.0", "255.249.199.99", "1.2.3.4"], "0125.9-"),
    "json-pointer": (True, ["", "/", "/a/b", "/a~0b~1", "//é"], "/~01a2é\""),
    "relative-json-pointer": (True, ["0", "1/a", "12#", "0/~0", "100/"], "/~01a2#-+"),
    "duration": (False, ["P1D", "P1Y2M3DT4H5M6S", "PT1M", "P2W", "PT36H", "P1M"], "PTWYMDHS01,."),
    "uuid": (False, ["123e4567-e89b-12d3-a456-426614174000"], "0aFg-"),
    "date": (True, ["2024-02-29", "1999-12-31", "2000-01-30"], "0123459-"),
    "time": (False, ["23:59:59Z", "00:00:00.5+01:30", "12:00:00-00:00"], "0123456Z.+-:"),
    "date-time": (False, ["2024-02-29T23:59:59Z", "2000-01-01T00:00:00.25-23:59"], "0123456TZ.+-:"),
    "hostname": (False, ["a", "a.b-c.D0", "x.y.z.a.b.c.d", ".".join(["a" * 63] * 3 + ["b" * 61]), ".".join(["a1" * 15] * 8)], "a0.-_Z"),
    "email": (False, ["a.b+c@d-e.org", "x@y.z"], "a0.-_@+"),
}


class Check:
    def __init__(self, arguments, folder):
        path = Path(folder) / "tokenizer.json"
        tool.write_vocabulary(path, [])
        self.tern = tool.Tool(arguments.tool, path)
        self.chance = random.Random(arguments.seed)
        self.checker = checkers.checker_of(jsonschema.Draft202012Validator)
        self.counts = Counter()
        self.differences = []

    def draw(self, texts, marks):
        if self.chance.random() < 0.3:
            return "".join(self.chance.choice(marks) for _ in range(self.chance.randint(0, 9)))
        text = self.chance.choice(texts)
        for _ in range(self.chance.choice([0, 1, 1, 1, 2, 3])):
            at, end = self.chance.randint(0, len(text)), self.chance.choice([0, 0, 1, 1, 2])
            new = self.chance.choice(["", text[at:at + end] * 2, self.chance.choice(marks), self.chance.choice(marks) * 2])
            text = text[:at] + new + text[at + end:]
        return text

    def check(self, name, n):
        exact, texts, marks = FORMATS[name]
        if name not in self.checker.checkers:
            raise SystemExit(f"jsonschema has no checker of {name} here")
        why = self.tern.compile("schema", json.dumps({"type": "string", "format": name}))
        if why:
            raise SystemExit(f"{name}: {why}")
        for text in {self.draw(texts, marks) for _ in range(n)} | set(texts):
            allowed = self.tern.reads(json.dumps(text, ensure_ascii=False).encode())[1]
            conforms = self.checker.conforms(text, name)
            self.counts[name, "allowed" if allowed else "conforming, not allowed" if conforms else "neither"] += 1
            if (allowed and not conforms) or (conforms and not allowed and (exact or text in texts)):
                self.differences.append((name, text, allowed))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--texts", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check = Check(arguments, folder)
        for name in FORMATS:
            check.check(name, arguments.texts)
        check.tern.close()
    for name, text, allowed in check.differences[:30]:
        print(f"{name}: {text!r} {'allowed' if allowed else 'not allowed'}")
    for (name, what), n in check.counts.items():
        print(f"{n:8} {name}: {what}")
    print(f"{len(check.differences)} differences")
    return 1 if check.differences or not check.counts else 0


if __name__ == "__main__":
    sys.exit(main())
