"""Nodes of a program that differ only in which buffers and numbers they use: one function can serve all of them.

The layers of a network and the leaves of an optimizer's state make many; the time to compile does not grow with them.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from fnad.kernels.codegen.text import describe_node

# Names of buffers, sizes, loop variables and literals; dtypes, which look alike, stand behind a colon.
_NAME = re.compile(r"(?<![:.\w])([bsil])(\d+)(?=_\d+\b|\b)")
_WORTH = 200  # characters of text from which a node is worth a function


class Pattern(NamedTuple):
    """A node without names, and the names in the order in which it uses them."""

    key: str
    roots: list[Any]
    """Buffers whose addresses it is given; registers that only it uses are its own."""
    numbers: list[str]
    """Names of sizes and literals."""


def patterns(program: Any) -> dict[int, Pattern]:
    """What nodes (by position) have a twin, and their patterns."""
    found = {k: _pattern(program, node, k) for k, node in enumerate(program.nodes)}
    count: dict[str, int] = {}
    for p in found.values():
        count[p.key] = count.get(p.key, 0) + 1
    return {k: p for k, p in found.items() if count[p.key] > 1 and len(p.key) > _WORTH}


def _pattern(program: Any, node: Any, position: int) -> Pattern:
    by_name = {r.name: r for r in program.roots}
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
    own = {r for r in used if r.is_register and _only(program, r, position)}
    kinds = " ".join(f"{r.code}{'=' * r.is_register}{'!' * (r in own)}{'t' * (r.kind == 'temp')}" for r in used)
    return Pattern(f"{kinds}\n{text}", [r for r in used if r not in own], [n for n in names if n[0] in "sl"])


def _only(program: Any, root: Any, position: int) -> bool:
    return all(k == position or root not in both for k, both in enumerate(program.touched))
