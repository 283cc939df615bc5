# SPDX-License-Identifier: Apache-2.0
"""The libraries' state outside of objects that can change is exactly the list in docs/architecture.md.

Read from the static libraries, which nothing else is linked into: symbols in sections that are
writable when the program runs. Data that the linker makes read-only (.data.rel.ro) is constant.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WRITABLE = re.compile(r"\.(bss|data|tbss|tdata)(\..*)?|\*COM\*|COMMON")
CONSTANT = re.compile(r"\.data\.rel\.ro(\..*)?")
ROW = re.compile(r"^\| `([\w./]+)` \| `(\w+)` \| .+ \|$", re.M)


def changeable(library: Path, nm: str) -> set[tuple[str, str]]:
    """(object file, variable): the number that compilers put behind a function's variables left out."""
    text = subprocess.run(
        [nm, "--format=sysv", str(library)], check=True, capture_output=True, text=True
    ).stdout
    found, member = set(), ""
    for line in text.splitlines():
        begin = re.match(r"Symbols from .*\[(.*)\]:$|Symbols from (.*):$", line)
        if begin:
            member = Path(begin[1] or begin[2]).name
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 7 and cells[3] in ("OBJECT", "TLS") and WRITABLE.fullmatch(cells[6]):
            if not CONSTANT.fullmatch(cells[6]):
                found.add((member.removesuffix(".o"), cells[0].split(".")[0]))
    return found


def listed(page: Path) -> set[tuple[str, str]]:
    section = page.read_text(encoding="utf-8").partition("**State outside of objects.**")[2]
    table = section.partition("\n|")[2].partition("\n\n")[0]
    return {(Path(file).name, name) for file, name in ROW.findall("|" + table)}


def prove(cc: str, nm: str) -> list[str]:
    """The check sees each kind of variable, and no constant."""
    source = (
        "int one; static int two = 2; static _Thread_local int three; const int four = 4;\n"
        "static const char *const five[] = {\"5\"};\n"
        "int f(int i) { static int six; six += i; two += i; three += i;\n"
        "               return one + two + three + four + *five[i] + six; }\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        code, made = Path(folder) / "a.c", Path(folder) / "a.c.o"
        code.write_text(source)
        subprocess.run([cc, "-c", "-fPIC", code, "-o", made], check=True)
        found = {name for _, name in changeable(made, nm)}
    wanted = {"one", "two", "three", "six"}
    return [] if found == wanted else [f"the check finds {sorted(found)}, not {sorted(wanted)}"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("libraries", type=Path, nargs="+")
    args = parser.parse_args()
    found = set().union(*(changeable(library, args.nm) for library in args.libraries))
    told = listed(args.page)
    errors = [f"{f}: {n} can change, and {args.page.name} does not say so" for f, n in found - told]
    errors += [f"{args.page.name}: {f} has no {n} that can change" for f, n in told - found]
    errors += prove(args.cc, args.nm)
    print(f"{len(found)} variables: {', '.join(sorted(f'{f}: {n}' for f, n in found))}")
    print("\n".join(sorted(errors)))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
