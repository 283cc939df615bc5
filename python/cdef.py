# SPDX-License-Identifier: Apache-2.0
"""Writes the module tern._native: the public headers as cffi knows them.

    cdef.py --out _native.py --include DIR... -- COMPILER...

The headers go through the compiler's preprocessor. What is left of them is C that cffi reads as it is, so no
declaration is written twice. The module is Python alone (cffi's ABI mode): one file for every version of Python.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import cffi

HEADERS = ("tern/tern.h", "tern/engine.h", "tern/grammar.h", "tern/inspect.h", "tern/tune.h", "python/native/talk.h")
STANDARD = {"stdbool.h": "#define bool _Bool\n#define true 1\n#define false 0\n", "stddef.h": "", "stdint.h": ""}

FREE = "void free(void *pointer);"  # of the C library that the library allocates with


def preprocessed(compiler, folders):
    """The declarations of the headers, without those of the C library, which cffi knows."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in STANDARD.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        source = Path(folder, "all.c")
        source.write_text("".join(f'#include "{name}"\n' for name in HEADERS), encoding="utf-8")
        includes = [f"-I{path}" for path in (folder, *folders)]
        command = [*compiler, "-E", "-P", "-nostdinc", "-D__attribute__(x)=", *includes, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"cdef.py: {' '.join(command)}: {done.stderr}")
    return re.sub(r"^\s*#.*$|\b_Pragma\s*\([^)]*\)", "", done.stdout, flags=re.M)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("compiler", nargs="+")
    options = parser.parse_args()
    ffi = cffi.FFI()
    ffi.set_source("tern._native", None)
    ffi.cdef(preprocessed(options.compiler, options.include) + FREE)
    ffi.emit_python_code(options.out)


main()
