"""The programs of an optimizer: one updates all parameters of a group where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.optim import in_place
from fnad.optim.rule import KERNEL_SIZE

_MOST = 16
"""How many programs an optimizer keeps."""


class Programs:
    """Programs by what they depend on; for each group the one that was used last is tried first, and checks the arrays itself."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self._last: dict[int, tuple[Any, Any]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Programs:
        return Programs()

    def __reduce__(self) -> Any:
        return Programs, ()

    def run(self, group: Any, rule: Any, names: Any, fields: list[str], which: list[int], arrays: list[Any]) -> list[Any] | None:
        """The new arrays, in place where that is possible; None if there is no program (yet).

        Args:
            group: The group of parameters.
            rule: Its rule.
            names: The names of the numbers of a leaf.
            fields: The arrays of the state.
            which: For each leaf, the number of its numbers.
            arrays: The numbers, then gradient, parameter and state of each leaf in turn.
        """
        key = rule.body, names, fields, which
        last = self._last.get(id(group))
        if last is not None and last[0] == key:
            new: list[Any] | None = last[1].run(arrays)
            if new is not None:
                return new
        found = self._find(rule, names, len(fields), which, arrays)
        if found is None:
            return None
        self._last[id(group)] = key, found
        return found.run([_fit(a, k in found.given) for k, a in enumerate(arrays)])

    def _find(self, rule: Any, names: Any, fields: int, which: list[int], arrays: Sequence[Any]) -> Any:
        """A program for these arrays, compiled when it is asked for again, or at once if a leaf would be compiled anyway."""
        stride = 2 + fields
        ps = arrays[len(arrays) - len(which) * stride + 1 :: stride]
        there = tuple([start is not None for start in rule.arrays.values()])
        leaves = tuple([in_place.Leaf(p.shape, p.dtype, there, w) for p, w in zip(ps, which, strict=True)])
        key = rule.body, names, leaves
        if key not in self._known:
            while len(self._known) >= _MOST:
                self._known.pop(next(iter(self._known)))
            self._known[key] = _UNSEEN
            if not any(p.size >= KERNEL_SIZE for p in ps):
                return None
        if self._known[key] is _UNSEEN:
            self._known[key] = in_place.program(rule, names, leaves)
        return self._known[key]


_UNSEEN = object()


def _fit(a: Any, given: bool) -> Any:
    """An array as a program takes it; one that is written to must own its memory."""
    a = np.ascontiguousarray(a) if a.ndim else a
    return a.copy() if given and a.base is not None else a
