# SPDX-License-Identifier: Apache-2.0
"""Machines that tests pretend: processors by name (dispatch/processors.c), and what rows of the
kernel table they run."""

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
    """The names that the program itself lists."""
    said = subprocess.run(
        [program, "kernels"], env={"TERN_PROCESSOR": "?"}, capture_output=True, text=True
    ).stderr
    found = re.search(r"\(valid: ([^)]*)\)", said)
    return found[1].split(", ") if found else []


def runnable(program, environment):
    """The instruction sets of rows that run, in the table's order."""
    said = subprocess.run([program, "kernels", "--json"], env=environment, capture_output=True, check=True)
    rows = [row for row in json.loads(said.stdout) if row["device"] == "cpu" and row["runnable"]]
    return list(dict.fromkeys(row["isa"] for row in rows))


def classes(here):
    """For each set of instruction sets that is possible here, the first processor that has it."""
    first = {}
    for name, has in PROCESSORS.items():
        first.setdefault(frozenset(has & set(here)), name)
    return {name: has for has, name in first.items()}
