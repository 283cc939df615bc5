# SPDX-License-Identifier: Apache-2.0
"""Checks the symbols that the libraries show to a linker. Static: every global symbol begins with tern_, those of
tern/ie_engine.h with ie_engine_. Shared: exactly the functions that the public headers declare. Both checks are shown
to fail on libraries with one symbol too many and one too few.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = ("status.h", "processor.h", "attend.h", "import.h", "sparse.h", "kernels.h", "device.h")
ALL = (*KERNELS, "topology.h", "team.h", "tokenizer.h", "end.h", "adapter.h", "tern.h", "embed.h", "engine.h",
       "ie_engine.h",
       "grammar.h", "gguf.h", "inspect.h", "tune.h", "sparse_file.h",
       "ranks.h")  # fmt: skip


def declared(header: Path) -> set[str]:
    """Functions that a header declares: statements with a NAME( outside of types and macros."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
    text = re.sub(r"^[ \t]*#(.*\\\n)*.*$", "", text, flags=re.M)
    while "{" in text:  # innermost braces first
        text = re.sub(r"\{[^{}]*\}", " ", text)
    found = set()
    for statement in text.split(";"):
        name = re.search(r"\b((?:tern|ie_engine)_\w+)\s*\(", statement)
        if name and not re.search(r"\btypedef\b", statement):
            found.add(name[1])
    return found


NM = "nm"  # --nm replaces it: a cross build has its own


def symbols(library: Path, *flags: str) -> set[str]:
    """Names of the global symbols that a library defines."""
    command = [NM, "--defined-only", "--extern-only", "--format=posix", *flags, str(library)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in text.splitlines() if len(line.split()) > 1}


def check_static(library: Path) -> list[str]:
    names = symbols(library)
    strays = [n for n in sorted(names) if not n.startswith(("tern_", "ie_engine_"))]
    return [f"{library.name}: global symbol {n} does not begin with tern_" for n in strays]


def check_shared(library: Path, headers: list[Path]) -> list[str]:
    wanted = set().union(*map(declared, headers))
    names = {n.split("@")[0] for n in symbols(library, "--dynamic")}
    errors = [f"{library.name}: exports {n}, which no header declares" for n in names - wanted]
    errors += [f"{library.name}: does not export {n}, a public function" for n in wanted - names]
    return sorted(errors)


def prove(cc: str, headers: list[Path]) -> list[str]:
    """The checks find a stray symbol, and a missing one."""
    wanted = sorted(set().union(*map(declared, headers)))
    with tempfile.TemporaryDirectory() as folder:
        source, static, shared = (Path(folder) / name for name in ("a.c", "a.o", "a.so"))
        bodies = [f"void {name}(void) {{}}\n" for name in wanted[1:]]
        source.write_text("void stray(void) {}\n" + "".join(bodies))
        subprocess.run([cc, "-c", "-fPIC", source, "-o", static], check=True)
        subprocess.run([cc, "-shared", static, "-o", shared], check=True)
        found = " ".join(check_static(static) + check_shared(shared, headers))
    expected = ("stray does not begin", "exports stray", f"does not export {wanted[0]}")
    return [f"the check does not notice: {text}" for text in expected if text not in found]


def main() -> int:
    global NM
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--nm", default=NM)
    parser.add_argument("--include", type=Path, required=True)
    parser.add_argument("--kernels", type=Path, nargs="+", required=True)
    parser.add_argument("--tern", type=Path, nargs="+", required=True)
    args = parser.parse_args()
    NM = args.nm
    errors = []
    for names, libraries in ((KERNELS, args.kernels), (ALL, args.tern)):
        headers = [args.include / name for name in names]
        for library in libraries:
            is_static = library.suffix == ".a"
            errors += check_static(library) if is_static else check_shared(library, headers)
            print(f"{library.name}: {len(symbols(library, *([] if is_static else ['-D'])))} symbols")
    errors += prove(args.cc, [args.include / name for name in ALL])
    print("\n".join(errors))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
