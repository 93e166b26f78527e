"""Nodes of a program that differ only in which buffers and numbers they use: one function can serve all of them.

The layers of a network and the leaves of an optimizer's state make many; the time to compile does not grow with them.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from fnad.kernels.codegen.text import describe_node

# Names of buffers, sizes, loop variables and literals; dtypes, which look alike, stand behind a colon.
_NAME = re.compile(r"(?<![:.\w])([bsil])(\d+)(?=_\d+\b|\b)")
_WORTH = 1000  # characters of text, of all that look alike, which are worth a function
_BESIDES = {
    "Loop": 100,
    "While": 100,
    "Branch": 100,
    "Gemm": 700,
    "Lapack": 0,
    "Foreign": 0,
    "Store": 0,
}  # what a node becomes besides its text, in characters


class Pattern(NamedTuple):
    """A node without names, and the names in the order in which it uses them."""

    key: str
    roots: list[Any]
    """Buffers in memory; registers are its own."""
    numbers: list[str]
    """Names of sizes and literals."""


def patterns(program: Any) -> dict[int, Pattern]:
    """What nodes (by position) have a twin, and their patterns. What may end the whole program stays there."""
    registers: dict[Any, int] = {}  # how many nodes use each
    for used in program.touched:
        for r in used:
            if r.is_register:
                registers[r] = registers.get(r, 0) + 1
    by_name = {r.name: r for r in program.roots}
    found = {
        k: _pattern(program, node, by_name)
        for k, node in enumerate(program.nodes)
        if all(registers.get(r, 1) == 1 for r in program.touched[k])  # others have no place to be found at
    }
    alike: dict[str, list[int]] = {}
    for k, p in found.items():
        if "host " not in p.key and "signals" not in p.key:
            alike.setdefault(p.key, []).append(k)
    worth = {key: len(key) + _BESIDES[type(program.nodes[nodes[0]]).__name__] for key, nodes in alike.items()}
    many = {key for key, nodes in alike.items() if len(nodes) > 1 and len(nodes) * worth[key] > _WORTH}
    return {k: p for k, p in found.items() if p.key in many}


def _pattern(program: Any, node: Any, by_name: dict[str, Any]) -> Pattern:
    names: dict[str, str] = {}
    counts = dict.fromkeys("bsil", 0)

    def renamed(match: re.Match[str]) -> str:
        kind, name = match[1], match[0]
        if name not in names:
            names[name] = f"{kind}#{counts[kind]}"
            counts[kind] += 1
        return names[name]

    text = _NAME.sub(renamed, describe_node(program, node))
    used = [by_name[n] for n in names if n in by_name]
    kinds = " ".join(f"{r.code} {'register' if r.is_register else r.kind}" for r in used)
    own = [r for r in used if not (r.is_register or r.kind == "flag")]
    return Pattern(f"{kinds}\n{text}", own, [n for n in names if n[0] in "sl"])
