"""Questions about expressions, and expressions made from others. Nothing here recurses: graphs may be deep."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fnad.kernels.codegen.expr import Expr, node


def ordered(exprs: Iterable[Expr]) -> list[Expr]:
    """Every node the expressions are made of, once each, operands before what uses them."""
    seen: set[Expr] = set()
    out: list[Expr] = []
    stack = [(e, False) for e in reversed(list(exprs))]
    while stack:
        found, ready = stack.pop()
        if ready:
            out.append(found)
        elif found not in seen:
            seen.add(found)
            stack.append((found, True))
            stack.extend((arg, False) for arg in reversed(found.args) if arg not in seen)
    return out


def variables(exprs: Iterable[Expr]) -> list[Expr]:
    """The variables the expressions are made of."""
    return [e for e in ordered(exprs) if e.op == "var"]


def substitute(exprs: Sequence[Expr], new: Mapping[Expr, Expr]) -> list[Expr]:
    """The expressions with some nodes (variables, as a rule) replaced."""
    done: dict[Expr, Expr] = {}
    for old in ordered(exprs):
        done[old] = new[old] if old in new else rebuilt(old, [done[arg] for arg in old.args])
    return [done[e] for e in exprs]


def rebuilt(old: Expr, args: Sequence[Expr]) -> Expr:
    """The node with other operands of the same dtypes."""
    return old if all(a is b for a, b in zip(args, old.args, strict=True)) else node(old.op, tuple(args), old.dtype, old.attr)


def split_rare(exprs: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
    """The expressions without what is rarely needed, and conditions that must all be false for them to be right.

    A loop may compute the first, together with whether a condition held anywhere, and be run again with the whole
    expressions if one did.
    """
    done: dict[Expr, Expr] = {}
    conditions: dict[Expr, None] = {}
    for old in ordered(exprs):
        if old.op == "rare":
            done[old] = done[old.args[2]]
            conditions[done[old.args[0]]] = None
        else:
            done[old] = rebuilt(old, [done[arg] for arg in old.args])
    return [done[e] for e in exprs], list(conditions)


def table_name(table: Expr) -> str:
    """A name for the values of a table, the same for equal values."""
    return _name_of_values(table.dtype, table.attr)


@functools.lru_cache(maxsize=64)
def _name_of_values(dtype: str, values: tuple[Any, ...]) -> str:
    return "table_" + hashlib.sha256(repr((dtype, values)).encode()).hexdigest()[:12]
