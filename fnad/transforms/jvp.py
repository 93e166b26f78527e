"""Forward mode: tracers that carry a value and a tangent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad import tree
from fnad._config import CHANGED
from fnad.core.aval import aval_of, shape_of
from fnad.core.finite import watch_tangents, watched
from fnad.core.graph import by_reference
from fnad.core.primitive import Joint, Primitive
from fnad.core.tracer import Trace, Tracer, ValueTracer
from fnad.errors import TreeError
from fnad.transforms._call import (
    OBJECT,
    check_differentiable,
    check_like,
    flatten_results,
    leaf_paths,
    objects_met,
    own,
    own_array,
    split_aux,
)
from fnad.transforms.vjp import VJPTrace, VJPTracer
from fnad.typing import Function, PyTree


class JVPTracer(ValueTracer):
    __slots__ = ("tangent",)

    def __init__(self, trace: JVPTrace, value: Any, tangent: Any) -> None:
        self._trace, self.value, self.tangent = trace, value, tangent


class JVPTrace(Trace):
    __slots__ = ()

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not self.alive:
            raise self.leaked()
        values, tangents = [], []
        for a in args:
            mine = a.__class__ is JVPTracer and a._trace is self
            values.append(a.value if mine else a)
            tangents.append(a.tangent if mine else None)
        if primitive.constant:
            return primitive(*values, **params)
        values = by_reference(values, self.level)
        if CHANGED.get():
            out, tangent = watched(primitive, params, values, lambda: _push(primitive, values, tangents, params))
            watch_tangents(primitive, values, tangents, (tangent or ()) if primitive.multiple else (tangent,))
        else:
            out, tangent = _push(primitive, values, tangents, params)
        if not primitive.multiple:
            return self.lift(out, tangent)
        self.check_foreign((*out, *(tangent or ())), primitive)
        return tuple(self.lift(o, t) for o, t in zip(out, tangent or [None] * len(out), strict=True))

    def lift(self, value: Any, tangent: Any) -> Any:
        if tangent is None:
            return value
        dtype = aval_of(value).dtype
        found = aval_of(tangent).dtype
        if dtype is OBJECT:
            raise objects_met()
        if found != dtype:
            if found.kind == "c" and dtype.kind != "c":
                tangent = np.real(tangent)
            tangent = tangent.astype(dtype) if isinstance(tangent, Tracer) else np.asarray(tangent).astype(dtype)[()]
        return JVPTracer(self, value, tangent)


def _push(primitive: Primitive, values: list[Any], tangents: list[Any], params: dict[str, Any]) -> tuple[Any, Any]:
    if primitive.has_rule("jvp"):
        return primitive.push(values, tangents, params)
    return _through_pullback(primitive, values, tangents, params)


def _through_pullback(primitive: Primitive, values: list[Any], tangents: list[Any], params: dict[str, Any]) -> tuple[Any, Any]:
    """Forward mode of a primitive that only states its pullback, which is linear in the cotangent: transpose it once more."""
    out, pulls = primitive.forward(values, params)
    outs = out if primitive.multiple else (out,)
    avals = [aval_of(o) for o in outs]
    trace = VJPTrace("jvp", primitive)
    try:
        zeros = [trace.slot(np.zeros(a.shape, a.dtype), None) for a in avals]
        g = tuple(zeros) if primitive.multiple else zeros[0]
        with np.errstate(all="ignore"):
            if isinstance(pulls, Joint):
                answers = pulls.pull(g)
            else:
                answers = [None if p is None or t is None else p(g) for p, t in zip(pulls, tangents, strict=True)]
        seeds = []
        for answer, t, value in zip(answers, tangents, values, strict=True):
            if t is None or answer is None:
                continue
            if hasattr(answer, "dense"):
                answer = answer.dense()
            if answer.__class__ is VJPTracer and answer._trace is trace:
                seeds.append((answer.index, np.broadcast_to(t, shape_of(value))))
        rows = trace.backward(seeds, len(outs), keep=False)
    finally:
        trace.close()
    return out, tuple(rows) if primitive.multiple else rows[0]


def push_forward(flat: Callable[..., list[Any]], leaves: list[Any], tangents: list[Any], function: Any) -> tuple[list[Any], list[Any]]:
    """The outputs of a function of flat leaves, and their tangents; None is zero, in and out."""
    trace = JVPTrace("jvp", function)
    try:
        outs = flat(*[x if t is None else JVPTracer(trace, x, t) for x, t in zip(leaves, tangents, strict=True)])
        mine = [o.__class__ is JVPTracer and o._trace is trace for o in outs]
    finally:
        trace.close()
    return [o.value if m else o for o, m in zip(outs, mine, strict=True)], [
        o.tangent if m else None for o, m in zip(outs, mine, strict=True)
    ]


def zeros_like(x: Any) -> Any:
    return np.zeros(shape_of(x), aval_of(x).dtype)


def jvp(f: Function, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...], has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function and its directional derivative (Jacobian-vector product).

    Args:
        f: A function of pytrees of arrays that returns a pytree of arrays.
        primals: A tuple (or list) of its arguments.
        tangents: The directions: a tuple of pytrees like the primals.
        has_aux: Whether `f` returns `(output, aux)`.

    Returns:
        `(output, output_tangent)`, or `(output, output_tangent, aux)`; the tangent has the output's structure, shapes, dtypes.

    Raises:
        TreeError, ShapeError, DTypeError: primals and tangents do not fit, or a primal leaf is not floating point.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.jvp(np.sin, (np.array([0.0, 1.0]),), (np.array([1.0, 0.0]),))
        (array([0.        , 0.84147098]), array([1., 0.]))
    """
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple | list):
            raise TreeError(f"jvp: {what} must be a tuple with one entry per argument", got={what: type(given).__name__}, fix="write (x,)")
    leaves, spec = tree.flatten(tuple(primals))
    directions = tree.flatten_as(spec, tuple(tangents), "the tangents", "the primals")
    names = [f"argument {n}" for n in range(len(primals))]
    for i in range(len(leaves)):
        leaves[i] = check_differentiable(leaves[i], lambda i: leaf_paths(spec, names)[i], i, "jvp")
        directions[i] = check_like(directions[i], aval_of(leaves[i]), "tangent", tree.paths(spec)[i], "the primal")
    specs: list[tree.Spec] = []

    def flat(*xs: Any) -> list[Any]:
        out, aux = split_aux(f(*tree.unflatten(spec, xs)), has_aux, "jvp")
        outs, out_spec = flatten_results(out, "jvp")
        aux_leaves, aux_spec = tree.flatten(aux)
        specs.extend((out_spec, aux_spec))
        return outs + aux_leaves

    outs, out_tangents = push_forward(flat, leaves, directions, f)
    out_spec, aux_spec = specs
    n = out_spec.num_leaves
    aux = tree.unflatten(aux_spec, map(own_array, outs[n:]))
    out_tangents = [zeros_like(o) if t is None else t for o, t in zip(outs[:n], out_tangents, strict=False)]
    results = outs[:n] + out_tangents
    del outs, out_tangents, leaves, directions
    results = own(results)
    value, tangent = tree.unflatten(out_spec, results[:n]), tree.unflatten(out_spec, results[n:])
    return (value, tangent, aux) if has_aux else (value, tangent)
