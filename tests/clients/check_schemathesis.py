# SPDX-License-Identifier: Apache-2.0
"""Requests that are made from the server's own description: no reply is a 5xx, except the 501 for embeddings, which a
model that makes text does not have."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from check import options


CONFIG = """
[[operations]]
include-name = "POST /embeddings"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 501]
"""


def main():
    o = options()
    address = o.address.removesuffix("/v1")
    program = Path(sys.executable).parent / "schemathesis"
    end, seed, runs = time.monotonic() + o.seconds, 1, 0
    while time.monotonic() < end:
        command = [program, "--config-file", "config.toml", "run", f"{address}/openapi.json", "--url", address, "--checks", "not_a_server_error", "--seed", str(seed),
                   "--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--request-timeout", "60", "--no-color"]
        with tempfile.TemporaryDirectory() as folder:  # it leaves a cache where it runs
            Path(folder, "config.toml").write_text(CONFIG)
            result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if result.returncode:
            sys.exit(result.stdout[-6000:] + result.stderr[-2000:])
        seed, runs = seed + 1, runs + 1
    print(f"{runs} runs without a 5xx")


main()
