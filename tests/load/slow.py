#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slow.py --tern PROGRAM: slowhttptest (Debian has it) holds 300 connections of `tern serve` with slow headers, slow bodies and
slow reading in turn; the server must serve others meanwhile and afterwards. It takes two minutes and is run by hand.
`e2e_serve_faults` has the parts that matter.
"""

import argparse
import re
import shutil
import subprocess
import sys
import urllib.request

PLACES = {
    "slow headers": (["-H", "-i", "5"], "/v1/models"),
    "slow bodies": (["-B", "-i", "5", "-s", "100000", "-t", "POST", "-f", "application/json"], "/v1/completions"),
    "slow reading": (["-X", "-w", "1", "-y", "2", "-n", "5", "-z", "1"], "/openapi.json"),
}
SECONDS = 40


def check(address, name):
    """True if the server was there for others all the time."""
    options, path = PLACES[name]
    command = ["slowhttptest", "-c", "300", "-r", "100", "-l", str(SECONDS), "-p", "5", "-u", address + path, *options]
    out = subprocess.run(command, capture_output=True, text=True, timeout=10 * SECONDS).stdout
    answers = re.findall(r"service available:\D*?(YES|NO)", re.sub(r"\x1b\[[0-9;]*m", "", out))
    with urllib.request.urlopen(address + "/health", timeout=20) as reply:
        served = reply.status == 200
    good = served and bool(answers) and "NO" not in answers
    print(f"{name}: available {answers.count('YES')} of {len(answers)} times{'' if served else ', and not afterwards'}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tern", required=True)
    options = parser.parse_args()
    if not shutil.which("slowhttptest"):
        sys.exit("slow.py: slowhttptest is not installed (Debian: slowhttptest)")
    command = [options.tern, "serve", "--port", "0", "--idle-timeout", "10", "--request-timeout", "10"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split(" at ")[1].strip().removesuffix("/v1")
        failed = [name for name in PLACES if not check(address, name)]
    finally:
        server.terminate()
        status = server.wait(60)
    print(f"failed: {', '.join(failed)}" if failed else "passed", f"the server ended with {status}", sep="; ")
    return 1 if failed or status else 0


if __name__ == "__main__":
    sys.exit(main())
