"""linearize: the derivative of a function at a point, recorded once, as a linear function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of
from fnad.core.graph import Graph, evaluate, record
from fnad.core.keep import Keeper
from fnad.transforms._call import check_differentiable, check_like, flatten_results, leaf_paths, own, own_array, split_aux
from fnad.transforms.jvp import push_forward, zeros_like
from fnad.typing import Function, PyTree


def linear_part(
    flat: Any, leaves: list[Any], active: list[bool], function: Any, count: Callable[[], int], keeper: Keeper
) -> tuple[list[Any], Graph, list[bool]]:
    """The outputs of a function of flat leaves and the graph from the tangents of its active leaves to those of its outputs.

    The function runs once, on known values, so Python control flow works; only what happens to tangents is recorded.
    The last list says which of the first `count()` outputs have a tangent; the graph answers for these.
    """
    outs: list[Any] = []
    has: list[bool] = []

    def tangents(*ts: Any) -> list[Any]:
        given = iter(ts)
        values, dots = push_forward(flat, leaves, [next(given) if a else None for a in active], function)
        outs[:] = values
        dots = dots[: count()]
        has[:] = [t is not None for t in dots]
        return [t for t in dots if t is not None]

    graph = record(tangents, [aval_of(x) for x, a in zip(leaves, active, strict=True) if a], function, keeper)
    return outs, graph, has


class Linearized:
    """The linear function of `fnad.linearize`: tangents of the primals to the tangent of the output."""

    def __init__(
        self, graph: Graph, has: list[bool], avals: list[Any], spec: tree.Spec, zeros: list[Any], out_spec: tree.Spec, keeper: Keeper
    ) -> None:
        self.graph, self._has, self._avals, self._spec, self._zeros, self._out_spec = graph, has, avals, spec, zeros, out_spec
        self._keeper = keeper

    def __call__(self, *tangents: PyTree) -> PyTree:
        given = tree.flatten_as(self._spec, tangents, "the tangents", "the primals")
        paths = tree.paths(self._spec)
        given = [check_like(t, a, "tangent", p, "the primal") for t, a, p in zip(given, self._avals, paths, strict=True)]
        self._keeper.check()
        with np.errstate(all="ignore"):
            answers = iter(evaluate(self.graph, given))
        results = [next(answers) if has else zeros_like(z) for has, z in zip(self._has, self._zeros, strict=True)]
        del answers, given
        return tree.unflatten(self._out_spec, own(results))


def linearize(f: Function, *primals: PyTree, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function at a point, and its derivative there as a linear function that can be applied many times.

    Args:
        f: A function of pytrees of arrays that returns a pytree of arrays.
        primals: The point: its arguments.
        has_aux: Whether `f` returns `(output, aux)`.

    Returns:
        `(output, f_jvp)`, or `(output, f_jvp, aux)`. `f_jvp(*tangents)` is what `jvp(f, primals, tangents)[1]` would be, without
        running `f` again.

    Raises:
        DTypeError: a leaf of the primals is not floating point.
        TreeError, ShapeError: (by `f_jvp`) the tangents do not fit the primals.

    Example:
        >>> import numpy as np, fnad
        >>> y, f_jvp = fnad.linearize(np.square, np.array([1.0, 3.0]))
        >>> f_jvp(np.array([1.0, 1.0]))
        array([2., 6.])
    """
    leaves, spec = tree.flatten(primals)
    names = [f"argument {n}" for n in range(len(primals))]
    leaves = [check_differentiable(x, lambda i: leaf_paths(spec, names)[i], i, "linearize") for i, x in enumerate(leaves)]
    out_spec: list[tree.Spec] = []

    def flat(*xs: Any) -> list[Any]:
        out, aux = split_aux(f(*tree.unflatten(spec, xs)), has_aux, "linearize")
        outs, found = flatten_results(out, "linearize")
        extras, aux_spec = tree.flatten(aux)
        out_spec[:] = [found, aux_spec]
        return outs + extras

    keeper = Keeper()
    leaves = [keeper.keep(x) if x.__class__ is np.ndarray else x for x in leaves]
    outs, graph, has = linear_part(flat, leaves, [True] * len(leaves), f, lambda: out_spec[0].num_leaves, keeper)
    n = out_spec[0].num_leaves
    aux = tree.unflatten(out_spec[1], map(own_array, outs[n:]))
    del outs[n:]
    linear = Linearized(graph, has, [aval_of(x) for x in leaves], spec, [aval_of(o) for o in outs], out_spec[0], keeper)
    value = tree.unflatten(out_spec[0], own(outs))
    return (value, linear, aux) if has_aux else (value, linear)
