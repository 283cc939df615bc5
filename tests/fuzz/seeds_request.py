# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_request: heads of requests, and bodies in chunks behind a '#'.

    tests/fuzz/seeds_request.py FOLDER
"""

import sys
from pathlib import Path

LINES = [b"GET / HTTP/1.1", b"\r\nGET / HTTP/1.1", b"POST /a?b=c HTTP/1.0", b"OPTIONS * HTTP/1.1", b"GET * HTTP/1.1", b"GET http://x:1/a HTTP/1.1",
         b"GET x HTTP/1.1", b"GET /a#b HTTP/1.1", b"PRI * HTTP/2.0", b"GET / http/1.1", b"GET  / HTTP/1.1", b"\r\n\r\nGET / HTTP/1.1", b"GET /\0 HTTP/1.1"]
FIELDS = [b"", b"Host: x\r\n", b"A:b\r\nA: \t c d \t\r\n", b"A: \xc3\xb6\r\n", b"A : b\r\n", b"A: b\r\n c\r\n", b"A: b\n", b"A: b\0c\r\n", b"A: b\rc\r\n", b": b\r\n", b"A\r\n"]
BODIES = [b"3\r\nabc\r\n0\r\n\r\n", b"a;b=\"c d\"\r\n0123456789\r\n00;x\r\nA: b\r\nC:\r\n\r\n", b"0\r\n\r\n", b"3\nabc\r\n0\r\n\r\n", b"3 \r\n", b"g\r\n", b"1\r\nab\r\n",
          b"0000000000000001\r\n", b"1;\0\r\n", b"1;a\rb", b"0\r\nA\r\n", b"0\r\n: b\r\n", b"0\r\nA: b\n", b"0\r\nA: b\r\n c\r\n", b"2\r\na"]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    heads = [line + b"\r\n" + field + b"\r\n" for line in LINES for field in FIELDS]
    for i, seed in enumerate([*heads, *(b"#" + body for body in BODIES)]):
        (folder / f"{i:03d}").write_bytes(seed)


if __name__ == "__main__":
    main()
