# SPDX-License-Identifier: Apache-2.0
"""Seeds for fuzz_framing: headers that say where a body ends and who is asked, a line each.

    tests/fuzz/seeds_framing.py FOLDER
"""

import itertools
import sys
from pathlib import Path

FIELDS = ["Host:x", "Content-Length:12", "content-length:0x1", "Content-Length:999999999999999999", "Content-Length:1234567890123456789", "Content-Length:", "Transfer-Encoding:chunked",
          "transfer-encoding:gzip, chunked", "Content-Length :1", "!#$%&'*+-.^_`|~:", "x",
          "Host:localhost:8080", "Host:[::1]:80", "host:user@x", "Host:x:65536", "Host:[::1", "Origin:null"]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for i, fields in enumerate(itertools.product(FIELDS, repeat=2)):
        (folder / f"{i:03d}").write_text("\n".join(fields))


if __name__ == "__main__":
    main()
