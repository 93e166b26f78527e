"""Where long loops look for signals: so Ctrl-C ends a program that would go on for ever, or for minutes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from fnad.compiler.program import Branch, Gemm, Host, Loop, Nest, Node, Numbers, Store, While

_PAUSE = 10_000_000  # nanoseconds of work between two looks, as `_work` estimates it
_LONG = 5 * _PAUSE  # a loop of so many steps looks for itself; the steps of others count for the loop around them


def set_pauses(nodes: Sequence[Node], numbers: Numbers) -> None:
    """Tell loops whose steps follow each other after how many of them to look. Parts that run on several threads do not."""
    for node in nodes:
        if not isinstance(node, Nest) or (isinstance(node, Loop) and node.parts is not None):
            continue
        inner = [*itertools.chain(*node.bodies)]
        set_pauses(inner, numbers)
        step = _work(inner)
        if isinstance(node, While) or (isinstance(node, Loop) and node.sequential and node.extent * step > _LONG):
            node.pause = numbers.size(max(2, _PAUSE // step))


def _work(nodes: Iterable[Any]) -> int:
    """Nanoseconds that nodes take, to within an order of magnitude; of a loop without a known end, one step."""
    total = 1
    for node in nodes:
        if isinstance(node, Store):
            total += 1 + len(node.loads)
        elif isinstance(node, Branch):
            total += max(map(_work, node.bodies))
        elif isinstance(node, Nest):
            total += _work(itertools.chain(*node.bodies)) * (node.extent if isinstance(node, Loop) else 1)
        elif isinstance(node, Gemm):
            total += node.batch * node.m * node.n * node.k // 8
        elif isinstance(node, Host):
            total += 10_000
    return total
