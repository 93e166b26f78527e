"""Primitives that hold a Python function: what custom rules and checkpoint have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad import tree
from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.graph import Literal, evaluate, record
from fnad.core.primitive import Primitive
from fnad.core.tracer import Tracer
from fnad.errors import ClosureError, ConcretizationError, describe_function, user_line
from fnad.transforms.vmap import run_batched, spread

Flat = Callable[..., list[Any]]


class Opaque(Primitive):
    """A function of flat leaves as a primitive of its own, made anew for each call."""

    multiple = True

    def __init__(self, name: str, flat: Flat, function: Any) -> None:
        super().__init__(name, register=False)
        self.flat, self.function = flat, function

    def impl(self, *leaves: Any) -> tuple[Any, ...]:
        return tuple(self.flat(*leaves))

    def infer(self, *avals: Aval) -> tuple[Aval, ...]:
        graph = record(self.flat, avals, self.function)
        if any(isinstance(x, Tracer) for _, x in graph.constants):
            raise ClosureError(
                f"a function under {self.name} closes over a traced value",
                got={"function": describe_function(self.function), "called at": user_line()},
                fix="pass that value as an argument of the function",
            )
        return tuple(aval_of(v.value) if isinstance(v, Literal) else v.aval for v in graph.outputs)

    def compose(self, *leaves: Any) -> tuple[Any, ...]:
        """What it is compiled to."""
        return tuple(self.flat(*leaves))

    def holds_graph(self, params: dict[str, Any]) -> bool:
        return True

    def examine(self, *leaves: Any) -> None:
        try:
            graph = record(self.flat, list(map(aval_of, leaves)), self.function)
        except ConcretizationError:  # it looks at values: there is no graph of it
            return
        evaluate(graph, leaves)

    def over_batch(self, batched: Sequence[bool]) -> Opaque:
        """The same for a batch: all outputs carry the batch axis."""
        raise NotImplementedError

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> tuple[Any, ...]:
        return tuple(self.over_batch(batched)(*args))


def batch_flat(f: Flat, batched: Sequence[bool]) -> Flat:
    """A flat function over a batch; every output gets the batch axis."""

    def over(*leaves: Any) -> list[Any]:
        outs, mine = run_batched(f, leaves, batched)
        size = batch_size(leaves, batched)
        return [o if m else spread(o, size) for o, m in zip(outs, mine, strict=True)]

    return over


def batch_size(leaves: Sequence[Any], batched: Sequence[bool]) -> int:
    return next(shape_of(x)[0] for x, b in zip(leaves, batched, strict=True) if b)


def is_array(x: Any) -> bool:
    return isinstance(x, Tracer | np.ndarray | np.generic | float | int | complex)


def split_static(args: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The array leaves of a pytree, and what rebuilds it around replacements of them."""
    leaves, spec = tree.flatten(args)
    dynamic = [i for i, x in enumerate(leaves) if is_array(x)]

    def rebuild(values: Sequence[Any]) -> Any:
        full = list(leaves)
        for i, v in zip(dynamic, values, strict=True):
            full[i] = v
        return tree.unflatten(spec, full)

    found = [leaves[i] for i in dynamic]
    for i in dynamic:
        leaves[i] = None
    return found, rebuild
