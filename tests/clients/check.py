# SPDX-License-Identifier: Apache-2.0
"""The checks of clients share this: the options that run.py gives them."""

import argparse
import json
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import typed_fields


def options():
    parser = argparse.ArgumentParser()
    for name in ("--address", "--tern", "--model"):
        parser.add_argument(name, required=True)
    parser.add_argument("--seconds", type=int, default=600)
    return parser.parse_args()


def equal(is_, should, what):
    if is_ != should:
        raise AssertionError(f"{what}: {is_!r} is not {should!r}")


def known(package, address):
    """Every field that the package can send is known to the server at an address without /v1."""
    with urllib.request.urlopen(address + "/openapi.json") as reply:
        equal(typed_fields.unknown(json.load(reply), (package,)), [], "fields that the server does not know")
