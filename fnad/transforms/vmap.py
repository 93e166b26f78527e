"""vmap: run a function over a batch. Every batch axis is axis 0 inside; it is moved there at the border."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fnad import tree
from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.primitive import Primitive
from fnad.core.tracer import UNMAPPED, Trace, Tracer, later
from fnad.errors import ArgumentError, ConcretizationError, ShapeError, user_line
from fnad.transforms._call import Transformed, flatten_results, own
from fnad.typing import Function, PyTree


class BatchTracer(Tracer):
    """One example of a batch: its shape lacks the batch axis, its value holds all examples."""

    __slots__ = ("value",)
    _why_not = "under vmap it stands for one value per example"
    _plain = UNMAPPED

    def __init__(self, trace: BatchTrace, value: Any) -> None:
        self._trace, self.value = trace, value

    @property
    def aval(self) -> Aval:
        a = aval_of(self.value)
        return Aval(a.shape[1:], a.dtype)

    def _concrete(self, wanted: str) -> NoReturn:
        raise ConcretizationError(
            f"{wanted} needs one value, but under vmap there is one per example",
            got={"value": repr(self), "at": user_line()},
            fix=later("advice").needed(wanted, self._plain),
        )


class Same(NamedTuple):
    """Among the outputs of a batch rule: one that has no batch axis, for it is the same for all examples."""

    value: Any


class BatchTrace(Trace):
    __slots__ = ("size",)
    knows_values = False

    def __init__(self, function: Any, size: int) -> None:
        super().__init__("vmap", function)
        self.size = size

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not self.alive:
            raise self.leaked()
        batched = [a.__class__ is BatchTracer and a._trace is self for a in args]
        values = [a.value if b else a for a, b in zip(args, batched, strict=True)]
        out = primitive.batch(values, batched, **params)
        if primitive.multiple:
            self.check_foreign(out, primitive)
            return tuple(o.value if o.__class__ is Same else BatchTracer(self, o) for o in out)
        return BatchTracer(self, out)


def _vmapped(f: Function, options: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    in_axes, out_axes, axis_size = options
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ArgumentError(
            "vmap: in_axes must have one entry per positional argument", got={"in_axes": in_axes, "positional arguments": len(args)}
        )
    leaves, spec = tree.flatten((args, kwargs))
    axes = [0] * len(leaves)
    arg_spec = tree.structure(args)
    axes[: arg_spec.num_leaves] = tree.flatten_prefix(in_axes, arg_spec, "in_axes")
    size = _batch_size(leaves, axes, axis_size, tree.paths(spec))
    trace = BatchTrace(f, size)
    try:
        tracers = [
            leaf if axis is None else BatchTracer(trace, np.moveaxis(as_array(leaf), axis, 0))
            for leaf, axis in zip(leaves, axes, strict=True)
        ]
        call_args, call_kwargs = tree.unflatten(spec, tracers)
        out = f(*call_args, **call_kwargs)
        outs, out_spec = flatten_results(out, "vmap")
        out_axis = tree.flatten_prefix(out_axes, out_spec, "out_axes")
        results = [_collect(o, axis, trace, size, out_spec, i) for i, (o, axis) in enumerate(zip(outs, out_axis, strict=True))]
    finally:
        trace.close()
    del outs, out, tracers, call_args, call_kwargs
    return tree.unflatten(out_spec, own(results))


def _batch_size(leaves: list[Any], axes: list[Any], axis_size: int | None, paths: list[str]) -> int:
    sizes: dict[str, int] = {}
    for leaf, axis, path in zip(leaves, axes, paths, strict=True):
        if axis is None:
            continue
        shape = shape_of(leaf)
        name = f"argument {path[4:]}".replace("]", "", 1) if path.startswith("[0][") else f"keyword {path[3:]}"
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(
                "vmap: a mapped argument must have the axis that in_axes names",
                got={f"{name} has shape": shape, "in_axes there": axis},
                fix="use None in in_axes for arguments that are not mapped",
            )
        sizes[name] = shape[axis]
    if axis_size is not None:
        sizes["axis_size"] = axis_size
    if not sizes:
        raise ArgumentError("vmap: at least one argument must be mapped", fix="give in_axes an entry that is not None, or axis_size=")
    if len(set(sizes.values())) > 1:
        raise ShapeError(
            "vmap: all mapped axes must have the same size",
            got=dict(sizes.items()),
            fix="use None in in_axes for what is not mapped; bind a keyword that is not mapped with functools.partial",
        )
    return next(iter(sizes.values()))


def _collect(o: Any, axis: int | None, trace: BatchTrace, size: int, spec: tree.Spec, i: int) -> Any:
    mine = o.__class__ is BatchTracer and o._trace is trace
    if axis is None:
        if mine:
            raise ArgumentError(
                "vmap: an output that depends on a mapped argument needs an axis", got={f"out_axes at output{tree.paths(spec)[i]}": None}
            )
        return o
    value = o.value if mine else spread(o, size)
    return value if axis == 0 else np.moveaxis(value, 0, axis)


def run_batched(f: Callable[..., list[Any]], args: Sequence[Any], batched: Sequence[bool]) -> tuple[list[Any], list[bool]]:
    """A function of flat leaves on arguments whose batch axis is axis 0; its flat outputs, and which of them are batched."""
    size = next(shape_of(a)[0] for a, b in zip(args, batched, strict=True) if b)
    trace = BatchTrace(f, size)
    try:
        outs = f(*[BatchTracer(trace, a) if b else a for a, b in zip(args, batched, strict=True)])
        mine = [o.__class__ is BatchTracer and o._trace is trace for o in outs]
    finally:
        trace.close()
    return [o.value if m else o for o, m in zip(outs, mine, strict=True)], mine


def spread(x: Any, size: int) -> Any:
    """The same value for every example of a batch."""
    return np.broadcast_to(as_array(x), (size, *shape_of(x)))


def as_array(x: Any) -> Any:
    return x if isinstance(x, Tracer) else np.asarray(x)


def vmap(f: Function, in_axes: PyTree = 0, out_axes: PyTree = 0, axis_size: int | None = None) -> Function:
    """Map a function over an axis of its arguments, as one batched computation.

    Args:
        f: A function of pytrees of arrays.
        in_axes: The axis to map over: an int or None (not mapped) for all arguments, or a tuple with one entry per
            positional argument, each an int, None, or a pytree that is a prefix of that argument. Keyword arguments are
            mapped over axis 0.
        out_axes: Where the batch axis goes in the outputs; a prefix pytree of the output.
        axis_size: The batch size, needed only when nothing is mapped.

    Returns:
        A function of the same arguments, each mapped one with the batch axis; outputs have it at `out_axes`.

    Raises:
        ShapeError: the mapped axes differ in size, or an argument lacks the axis.
        ArgumentError: nothing is mapped, or in_axes does not match the arguments.
        ConcretizationError: (inside) Python control flow on a batched value.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.vmap(np.dot, in_axes=(0, None))(np.arange(6.0).reshape(3, 2), np.array([1.0, 10.0]))
        array([10., 32., 54.])
    """
    return Transformed(_vmapped, f, (in_axes, out_axes, axis_size))
