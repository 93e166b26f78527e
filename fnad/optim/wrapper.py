"""What optimizers around other optimizers share: counters, choices, trees in which a gradient may be None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of
from fnad.errors import ArgumentError
from fnad.optim.base import Optimizer, is_none, is_traced, number
from fnad.typing import PyTree


class Wrapper:
    """What has `init` and `update`."""

    def pair(self) -> Optimizer:
        return Optimizer(self.init, self.update)

    def init(self, params: PyTree) -> Any:
        """The state before the first step."""
        raise NotImplementedError

    def update(self, grads: PyTree, state: Any, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        """The step to add to params, and the state after it."""
        raise NotImplementedError


def map_given(f: Callable[..., Any], grads: PyTree, *rest: PyTree, names: tuple[str, ...] = ()) -> PyTree:
    """`f` of every gradient that is not None, with the leaves of further trees of the same structure."""
    leaves, spec = tree.flatten(grads, is_none)
    others = [tree.flatten_as(spec, t, name, "grads", is_none) for t, name in zip(rest, names, strict=True)]
    return tree.unflatten(spec, [None if row[0] is None else f(*row) for row in zip(leaves, *others, strict=True)])


def either(flag: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """One of two pytrees; both are computed where the flag is traced."""
    if not is_traced(flag):
        return yes() if flag else no()
    return tree.map(lambda a, b: np.where(flag, a, b), yes(), no())


def counter() -> Any:
    return np.zeros((), np.int64)


def after(count: Any) -> Any:
    """A counter's next value."""
    return number(count + 1, np.int64)


def still(params: PyTree) -> PyTree:
    """Updates that change nothing."""
    return tree.map(lambda p: np.zeros(aval_of(p).shape, aval_of(p).dtype), params)


def copied(params: PyTree) -> PyTree:
    return tree.map(lambda p: p if is_traced(p) else np.array(p), params)


def need(params: PyTree, name: str) -> None:
    if params is None:
        raise ArgumentError(f"{name} reads the parameters", fix="call opt.update(grads, state, params)")
