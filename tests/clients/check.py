# SPDX-License-Identifier: Apache-2.0
"""The checks of clients share this: the options that run.py gives them, and a server whose model has tools."""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import tool_model
import typed_fields


class Given(argparse.Namespace):
    @contextlib.contextmanager
    def server_with_tools(self, *more, context=2048):
        """The address of a server of the model `tools`, without /v1; more options, and a context for long prompts."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tools.gguf"
            tool_model.write(path, tool_model.TAGGED, context=context)
            with subprocess.Popen([self.tern, "serve", "-m", path, "--port", "0", *more], stdout=subprocess.PIPE, text=True) as process:
                try:
                    yield process.stdout.readline().split(" at ")[1].strip().removesuffix("/v1")
                finally:
                    process.terminate()


def options():
    parser = argparse.ArgumentParser()
    for name in ("--address", "--tern", "--model"):
        parser.add_argument(name, required=True)
    parser.add_argument("--seconds", type=int, default=600)
    return parser.parse_args(namespace=Given())


def equal(is_, should, what):
    if is_ != should:
        raise AssertionError(f"{what}: {is_!r} is not {should!r}")


def known(package, address):
    """Every field that the package can send is known to the server at an address without /v1."""
    with urllib.request.urlopen(address + "/openapi.json") as reply:
        equal(typed_fields.unknown(json.load(reply), (package,)), [], "fields that the server does not know")
