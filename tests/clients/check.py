# SPDX-License-Identifier: Apache-2.0
"""The checks of clients share this: the options that run.py gives them."""

import argparse


def options():
    parser = argparse.ArgumentParser()
    for name in ("--address", "--tern", "--model"):
        parser.add_argument(name, required=True)
    parser.add_argument("--seconds", type=int, default=600)
    return parser.parse_args()


def equal(is_, should, what):
    if is_ != should:
        raise AssertionError(f"{what}: {is_!r} is not {should!r}")
