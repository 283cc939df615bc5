# SPDX-License-Identifier: Apache-2.0
"""Sections [isa] and [group] of the kernel table: instruction sets, weakest first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from checks import SpecError, as_list, check_keys, check_type

ARCHES = ("any", "x86_64", "aarch64", "cuda")
NAME = re.compile(r"[a-z][a-z0-9_]*\Z")


@dataclass(frozen=True)
class Isa:
    """One instruction set: the features that its code needs and the flags that compile its files. The sets that it
    extends are merged in: `needs` and `cflags` are those of the whole chain."""

    name: str
    arch: str
    needs: tuple[str, ...]
    cflags: tuple[str, ...]
    lanes: int
    chains: int
    registers: int
    strength: int  # place in the table, 0 the weakest
    proof: tuple[str, ...] = ()  # verbs that show, when executed, that the processor has the set
    like: tuple[str, ...] = ()  # sets whose kernels `kernels` names: the first that has one
    kernels: tuple[str, ...] = ()  # "op" or "op format": kernels that this set compiles as well

    @property
    def is_cuda(self) -> bool:
        """Kernels are CUDA C++ from templates of their own, in a module of their own."""
        return self.arch == "cuda"


# Verbs that can be executed and compared with plain C: each has a template in kernels/proof/.
PROOFS = Path(__file__).resolve().parent.parent / "kernels" / "proof"
PROVABLE = tuple(sorted(path.name.split(".")[0] for path in PROOFS.glob("*.c.j2")))

# Keys of an entry: what is taken from the set that it extends, and lists.
INHERITED = {"arch": str, "lanes": int, "chains": int, "registers": int}
LISTS = ("needs", "cflags", "proof", "kernels")


def load_isa(name: str, entry: dict, features: set[str], known: dict[str, Isa]) -> Isa:
    """One set; those that it may extend are `known`, since they stand before it."""
    where = f"isa.{name}"
    if not NAME.match(name):
        raise SpecError(f"{where}: not a valid name")
    if not isinstance(entry, dict):
        raise SpecError(f"{where}: expected a table")
    parent = load_parent(where, entry, known)
    check_entry(where, entry, parent)
    facts = {key: entry[key] if key in entry else getattr(parent, key) for key in INHERITED}
    check_facts(where, facts)
    check_lists(where, entry, features)
    like = load_like(where, entry, parent, known)
    own = {key: tuple(entry.get(key, ())) for key in LISTS}
    for key in ("needs", "cflags"):
        own[key] = (getattr(parent, key) if parent else ()) + own[key]
    return Isa(name=name, strength=len(known), like=like, **facts, **own)


def check_entry(where: str, entry: dict, parent: Isa | None) -> None:
    """Keys and their types; CUDA is proven by its driver."""
    optional = {"extends", "like", "kernels"} | (set(INHERITED) if parent else set())
    if entry.get("arch") == "cuda":
        optional.add("proof")
    kinds = INHERITED | {"extends": str, "like": str} | {key: list for key in LISTS}
    check_keys(where, entry, set(kinds) - optional, optional)
    for key, kind in kinds.items():
        check_type(where, entry, key, kind)
    if "proof" in entry and not entry["proof"]:
        raise SpecError(f"{where}: key 'proof' must name what shows that a processor has the set")


def check_lists(where: str, entry: dict, features: set[str]) -> None:
    for need in entry["needs"]:
        if need not in features:
            raise SpecError(f"{where}: feature '{need}' is not in dispatch/cpu.h")
    for verb in entry.get("proof", ()):
        if verb not in PROVABLE:
            raise SpecError(f"{where}: no proof executes '{verb}' (one of {', '.join(PROVABLE)})")


def load_like(where: str, entry: dict, parent: Isa | None, known: dict[str, Isa]) -> tuple[str, ...]:
    """Says where the kernels of key 'kernels' come from: key 'like', or the sets that this one extends."""
    if "like" in entry:
        if entry["like"] not in known:
            raise SpecError(f"{where}: '{entry['like']}' of key 'like' must come before it")
        return (entry["like"],)
    if "kernels" in entry and parent is None:
        raise SpecError(f"{where}: key 'kernels' needs 'extends' or 'like'")
    return (parent.name, *parent.like) if parent else ()


def load_parent(where: str, entry: dict, known: dict[str, Isa]) -> Isa | None:
    """The set that an entry extends."""
    if "extends" not in entry:
        return None
    check_type(where, entry, "extends", str)
    if entry["extends"] not in known:
        name = entry["extends"]
        raise SpecError(f"{where}: '{name}', which it extends, must come before it")
    return known[entry["extends"]]


def check_facts(where: str, facts: dict) -> None:
    if facts["arch"] not in ARCHES:
        raise SpecError(f"{where}: unknown arch '{facts['arch']}' (one of {', '.join(ARCHES)})")
    if facts["lanes"] not in (1, 4, 8, 16):
        raise SpecError(f"{where}: lanes must be 1, 4, 8 or 16, not {facts['lanes']}")
    for key in ("chains", "registers"):
        if facts[key] < 1:
            raise SpecError(f"{where}: {key} must be at least 1")


def load_isas(entries: dict, features: set[str]) -> dict[str, Isa]:
    """All sets, weakest first: a set comes after those whose features it has, and has more."""
    isas: dict[str, Isa] = {}
    for name, entry in entries.items():
        isas[name] = load_isa(name, entry, features, isas)
    for weak in isas.values():
        for strong in isas.values():
            if weak is strong or strong.is_cuda or weak.is_cuda:
                continue
            if set(weak.needs) == set(strong.needs) and weak.strength < strong.strength:
                raise SpecError(f"isa.{strong.name}: needs nothing that isa.{weak.name} does not")
            if set(weak.needs) < set(strong.needs) and weak.strength > strong.strength:
                raise SpecError(
                    f"isa.{strong.name}: must come after isa.{weak.name}, whose features it has"
                )
    return isas


def load_groups(entries: dict, isas: dict[str, Isa]) -> dict[str, list[str]]:
    """Section [group]: a name for sets that many entries list."""
    for name, members in entries.items():
        where = f"group.{name}"
        if name in isas:
            raise SpecError(f"{where}: an instruction set has that name")
        for isa in as_list(where, name, members):
            if isa not in isas:
                raise SpecError(f"{where}: unknown isa '{isa}'")
    return {name: as_list(f"group.{name}", name, members) for name, members in entries.items()}
