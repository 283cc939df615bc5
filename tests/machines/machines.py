# SPDX-License-Identifier: Apache-2.0
"""Machines that tests pretend: processors by name (dispatch/processors.c), and the rows of the kernel table that they
run."""

import json
import re
import subprocess


def isas(*names):
    return {"scalar", *names}


AVX2 = isas("sse41", "avx2")
AVX512 = AVX2 | {"avx512"}
VNNI = AVX512 | {"avx512vnni"}
VBMI = VNNI | {"avx512vbmi"}
DOT = isas("neon", "neondot")
I8MM = DOT | {"neoni8mm"}

# The instruction sets that each can run, of any architecture: written down a second time here, so
# that the list of features is not compared with itself.
PROCESSORS = {
    "scalar": isas(),
    "nehalem": isas("sse41"),
    "sandy-bridge": isas("sse41"),
    "ivy-bridge": isas("sse41"),
    "tremont": isas("sse41"),
    "haswell": AVX2,
    "knights-landing": AVX2,
    "skylake-x": AVX512,
    "cascade-lake": VNNI,
    "ice-lake": VBMI,
    "alder-lake": AVX2 | {"avxvnni"},
    "sapphire-rapids": VBMI | {"avxvnni", "amx"},
    "granite-rapids": VBMI | {"avxvnni", "amx"},
    "zen1": AVX2,
    "zen2": AVX2,
    "zen3": AVX2,
    "zen4": VBMI,
    "zen5": VBMI | {"avxvnni"},
    "cortex-a53": isas("neon"),
    "cortex-a76": DOT,
    "neoverse-n1": DOT,
    "neoverse-v1": I8MM,
    "neoverse-v2": I8MM,
    "apple-m1": DOT,
    "apple-m2": I8MM,
}


def known(program):
    """Returns the names that the program itself lists."""
    said = subprocess.run(
        [program, "kernels"], env={"TERN_PROCESSOR": "?"}, capture_output=True, text=True
    ).stderr
    found = re.search(r"\(valid: ([^)]*)\)", said)
    return found[1].split(", ") if found else []


def rows(program, environment):
    """The rows that run, {name: instruction set}, in the table's order."""
    said = subprocess.run([program, "kernels", "--json"], env=environment, capture_output=True, check=True)
    return {row["name"]: row["isa"] for row in json.loads(said.stdout) if row["device"] == "cpu" and row["runnable"]}


def runnable(program, environment):
    """The instruction sets of rows that run, in the table's order."""
    return list(dict.fromkeys(rows(program, environment).values()))


def groups(program, environment):
    """{name: (its rows as in `rows`, the other names of which the same rows run)}, of the names that the program
    knows; the first of each group stands for it."""
    found = {}
    for name in known(program):
        of_it = rows(program, environment | {"TERN_PROCESSOR": name})
        found.setdefault(tuple(of_it), (name, of_it, []))[2].append(name)
    return {name: (of_it, names[1:]) for name, of_it, names in found.values()}


def own_sets(program, environment):
    """{name: the instruction sets that no group with fewer rows has}, for the first of each group."""
    found = groups(program, environment)
    smaller = {name: {isa for rows_of, _ in found.values() if rows_of.keys() < mine.keys() for isa in rows_of.values()}
               for name, (mine, _) in found.items()}  # fmt: skip
    return {name: [isa for isa in dict.fromkeys(mine.values()) if isa not in smaller[name]]
            for name, (mine, _) in found.items()}  # fmt: skip


def classes(here):
    """Returns the first processor for each set of instruction sets that is possible here."""
    first = {}
    for name, has in PROCESSORS.items():
        first.setdefault(frozenset(has & set(here)), name)
    return {name: has for has, name in first.items()}
