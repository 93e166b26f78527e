"""Reverse mode: a tape in creation order, walked backwards.

The function runs on tracers that know their values. Each operation on them appends one entry to the tape: where the
cotangent of its output goes, and through which pullbacks. Pullbacks are plain NumPy, so when the values are tracers of
an outer transform the backward pass is itself traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad import tree
from fnad._config import CHANGED, option
from fnad.core.aval import aval_of
from fnad.core.cotangent import Scattered
from fnad.core.finite import Origin, watched
from fnad.core.graph import by_reference, is_recording
from fnad.core.keep import Keeper
from fnad.core.primitive import Joint, Primitive
from fnad.core.tracer import Trace, Tracer, ValueTracer, check_alive, closes_over_traced
from fnad.errors import DTypeError, ShapeError
from fnad.transforms._call import (
    OBJECT,
    Transformed,
    check_differentiable,
    check_like,
    flatten_results,
    leaf_paths,
    objects_met,
    own,
    own_array,
    select,
    split_aux,
)
from fnad.typing import Function, PyTree


class VJPTracer(ValueTracer):
    __slots__ = ("index",)

    def __init__(self, trace: VJPTrace, value: Any, index: int) -> None:
        self._trace, self.value, self.index = trace, value, index


class VJPTrace(Trace):
    """The tape. Slot i belongs to the i-th traced value: its entry, and its dtype."""

    __slots__ = ("dtypes", "entries", "keeper", "origins")

    def __init__(self, name: str, function: Any) -> None:
        super().__init__(name, function)
        self.entries: list[Any] = []
        self.dtypes: list[Any] = []
        self.keeper = Keeper()
        self.origins: dict[int, Origin] | None = {} if is_recording() or option("debug_nans") else None

    def slot(self, value: Any, entry: Any) -> VJPTracer:
        try:
            dtype = value.dtype
        except AttributeError:  # a Python scalar
            dtype = aval_of(value).dtype
        if dtype is OBJECT:
            raise objects_met()
        self.entries.append(entry)
        self.dtypes.append(dtype)
        return VJPTracer(self, value, len(self.entries) - 1)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not self.alive:
            raise self.leaked()
        values = [a.value if a.__class__ is VJPTracer and a._trace is self else a for a in args]
        if primitive.constant:
            return primitive(*values, **params)
        values = by_reference(values, self.level)
        reads = primitive.reads
        for k, a in enumerate(values):
            if a.__class__ is np.ndarray and a is args[k] and (reads is None or k in reads):
                values[k] = self.keeper.keep(a)
        more = ([a.__class__ is VJPTracer and a._trace is self for a in args],) if primitive.selective else ()
        if CHANGED.get():
            out, pulls = watched(primitive, params, values, lambda: primitive.forward(values, params, *more))
        else:
            out, pulls = primitive.forward(values, params, *more)
        if self.origins is not None:
            self.origins[len(self.entries)] = Origin(primitive, values)
        if isinstance(pulls, Joint):
            wanted = tuple((k, a.index) for k, a in enumerate(args) if a.__class__ is VJPTracer and a._trace is self)
            entry: Any = (wanted, pulls.pull)
        else:
            entry = [
                (a.index, pull)
                for a, pull in zip(args, pulls, strict=True)
                if pull is not None and a.__class__ is VJPTracer and a._trace is self
            ]
            if not entry:
                return out
        if primitive.multiple:
            self.check_foreign(out, primitive)
            return self.several(out, entry, primitive.selective)
        return self.slot(out, entry)

    def several(self, outs: tuple[Any, ...], entry: Any, sparse: bool = False) -> tuple[Any, ...]:
        """Slots for the outputs of one operation: the first one's entry gathers the cotangents of all."""
        first = len(self.entries)
        avals = [aval_of(o) for o in outs]
        return tuple(self.slot(o, Several(first, avals, entry, sparse) if i == 0 else None) for i, o in enumerate(outs))

    def backward(self, seeds: Sequence[tuple[int, Any]], inputs: int, keep: bool) -> list[Any]:
        """Cotangents of the first `inputs` slots, given those of some outputs. Without `keep` the tape is consumed."""
        self.keeper.check()
        entries = self.entries
        cotangents: list[Any] = [None] * len(entries)
        buffers: set[int] = set()  # slots whose cotangent is an array that only we hold
        with np.errstate(all="ignore"):
            for i, g in seeds:
                self.accumulate(cotangents, i, g, buffers)
            for i in range(len(entries) - 1, inputs - 1, -1):
                entry = entries[i] if keep else entries.pop()
                if entry is None:  # a later output of an operation: its cotangent waits for the first one's entry
                    continue
                if entry.__class__ is Several:
                    g = entry.gather(cotangents)
                    entry = entry.entry
                else:
                    g = cotangents[i]
                    if g.__class__ is Scattered:
                        g = g.dense()
                cotangents[i] = None
                if g is None:
                    continue
                if self.origins is not None:
                    entry = self.noted(i, entry)
                if entry.__class__ is tuple:
                    wanted, pull = entry
                    answers = pull(g)
                    for k, j in wanted:
                        if answers[k] is not None:
                            self.accumulate(cotangents, j, answers[k], buffers)
                else:
                    for j, pull in entry:
                        self.accumulate(cotangents, j, pull(g), buffers)
        found = [c.dense() if c.__class__ is Scattered else c for c in cotangents[:inputs]]
        for c in found:
            if c.__class__ is VJPTracer and c._trace is self:  # a pullback of the user's closed over a traced value
                raise closes_over_traced("a bwd rule", self)
        return found

    def noted(self, i: int, entry: Any) -> Any:
        """An entry whose pullbacks run on behalf of the operation's place."""
        origin = None if self.origins is None else self.origins.get(i)
        if origin is None:
            return entry
        if entry.__class__ is tuple:
            return entry[0], origin.noted(entry[1])
        return [(j, origin.noted(pull)) for j, pull in entry]

    def accumulate(self, cotangents: list[Any], i: int, g: Any, buffers: set[int]) -> None:
        dtype = self.dtypes[i]
        try:
            if g.dtype is not dtype and g.dtype != dtype:
                g = conform(g, dtype)
        except AttributeError:  # a Python scalar
            if g.__class__ is complex and dtype.kind != "c":
                g = g.real
        have = cotangents[i]
        if have is None:
            cotangents[i] = g
        elif g.__class__ is Scattered:
            if i not in buffers:
                if have.__class__ is not Scattered and isinstance(have, Tracer):
                    cotangents[i] = have + g.dense()
                    return
                buffers.add(i)
                cotangents[i] = have.dense() if have.__class__ is Scattered else np.array(have, order="C")
            g.add_into(cotangents[i])
        else:
            buffers.discard(i)
            cotangents[i] = (have.dense() if have.__class__ is Scattered else have) + g


class Several:
    """The entry of an operation with several outputs. Those without a cotangent get zeros, or None if `sparse`."""

    __slots__ = ("avals", "entry", "first", "sparse")

    def __init__(self, first: int, avals: list[Any], entry: Any, sparse: bool) -> None:
        self.first, self.avals, self.entry, self.sparse = first, avals, entry, sparse

    def gather(self, cotangents: list[Any]) -> Any:
        mine = slice(self.first, self.first + len(self.avals))
        got = cotangents[mine]
        cotangents[mine] = [None] * len(got)
        if all(g is None for g in got):
            return None
        return tuple(
            (None if self.sparse else np.zeros(a.shape, a.dtype)) if g is None else g.dense() if g.__class__ is Scattered else g
            for g, a in zip(got, self.avals, strict=True)
        )


def conform(g: Any, dtype: np.dtype[Any]) -> Any:
    """A cotangent in the dtype of the value it belongs to."""
    if g.__class__ is Scattered:
        g = g.dense()
    if g.dtype.kind == "c" and dtype.kind != "c":
        g = np.real(g)
    return g.astype(dtype)


def _trace_leaves(trace: VJPTrace, leaves: list[Any], spec: tree.Spec, numbers: Sequence[int]) -> list[VJPTracer]:
    """Slots for the leaves of the differentiated arguments; `numbers` are the positions of those arguments."""

    def path(i: int) -> str:
        return leaf_paths(spec, [f"argument {n}" for n in numbers])[i]

    tracers = []
    for i, leaf in enumerate(leaves):
        value = check_differentiable(leaf, path, i, trace.name)
        tracers.append(trace.slot(trace.keeper.keep(value) if value.__class__ is np.ndarray else value, None))
    return tracers


def _untrace(x: Any, trace: Trace) -> Any:
    return x.value if x.__class__ is VJPTracer and x._trace is trace else x


def _gradient(function: Function, options: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    argnums, has_aux, want_value, name = options
    numbers = select(argnums, args, name)
    picked = tuple(args[n] for n in numbers)
    leaves, spec = tree.flatten(picked)
    trace = VJPTrace(name, function)
    try:
        tracers = _trace_leaves(trace, leaves, spec, numbers)
        call = list(args)
        for n, value in zip(numbers, tree.unflatten(spec, tracers), strict=True):
            call[n] = value
        out, aux = split_aux(function(*call, **kwargs), has_aux, name)
        aux = tree.map(lambda x: _untrace(x, trace), aux)
        value, seed = _scalar_seed(out, trace, name)
        grads = trace.backward(seed, len(leaves), keep=False)
    finally:
        trace.close()
    del out, call, tracers, seed
    for i, leaf in enumerate(leaves):
        grads[i] = like_leaf(grads[i], leaf)
    result = tree.unflatten(spec, own(grads))
    if not isinstance(argnums, tuple | list):
        result = result[0]
    aux = tree.map(own_array, aux)
    if not want_value:
        return (result, aux) if has_aux else result
    value = own([value])[0]
    return ((value, aux) if has_aux else value), result


def like_leaf(g: Any, leaf: Any) -> Any:
    """A cotangent as the caller sees it: zeros where none arrived, in the leaf's dtype."""
    if g is None:
        a = aval_of(leaf)
        return np.zeros(a.shape, a.dtype)
    if isinstance(g, Tracer | np.ndarray):
        return g
    dtype = aval_of(leaf).dtype
    return dtype.type(g if dtype.kind == "c" else np.real(g))


def _scalar_seed(out: Any, trace: VJPTrace, name: str) -> tuple[Any, list[tuple[int, Any]]]:
    """Check that a loss is a real scalar; its plain value, and the seed of the backward pass."""
    mine = out.__class__ is VJPTracer and out._trace is trace
    if not mine and not isinstance(out, np.ndarray | np.generic | float | int | complex | Tracer):
        fix = "return one scalar; for extra outputs use has_aux=True" if isinstance(out, tuple | list | dict) else "return the loss"
        raise DTypeError(f"{name}: the function must return a scalar", got={"result": type(out).__name__}, fix=fix)
    aval = aval_of(out)
    if aval.shape != ():
        raise ShapeError(
            f"{name}: the function must return a scalar, of shape ()",
            got={"shape": aval.shape, "dtype": aval.dtype},
            fix="reduce it with np.sum or np.mean (or take [0]); fnad.jacrev gives all derivatives, fnad.vjp a weighted sum",
        )
    if aval.dtype.kind != "f":
        raise DTypeError(
            f"{name}: the function must return a real floating-point number",
            got={"dtype": aval.dtype},
            fix="return np.real(z) or np.abs(z) of a complex result; an integer result has no derivative",
        )
    if not mine:
        check_alive(out)
        return out, []
    return out.value, [(out.index, aval.dtype.type(1))]


def pull_back(flat: Callable[..., list[Any]], leaves: list[Any], active: list[bool], g: Sequence[Any], function: Any) -> list[Any]:
    """Cotangents of the leaves of a function of flat leaves, given those of its outputs; None for the inactive."""
    trace = VJPTrace("vjp", function)
    try:
        outs = flat(*[trace.slot(x, None) if a else x for x, a in zip(leaves, active, strict=True)])
        seeds = [(o.index, c) for o, c in zip(outs, g, strict=True) if o.__class__ is VJPTracer and o._trace is trace]
        found = iter(trace.backward(seeds, sum(active), keep=False))
    finally:
        trace.close()
    return [next(found) if a else None for a in active]


def grad(f: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """The gradient of a function that returns a real scalar.

    Args:
        f: A function of pytrees of arrays that returns a scalar, of shape ().
        argnums: Position of the argument to differentiate, or a tuple of positions. May be negative.
        has_aux: Whether `f` returns `(loss, aux)`; the result is then `(gradient, aux)`.

    Returns:
        A function of the same arguments. It returns a pytree like the differentiated argument (a tuple of them if
        `argnums` is a tuple); each leaf has the shape and dtype of what it is the gradient of. Keyword arguments are
        passed on and not differentiated.

    Raises:
        ShapeError: the result of `f` is not a scalar.
        DTypeError: a leaf to differentiate, or the result, is not floating point.
        ArgumentError: `argnums` names no positional argument.

    Complex leaves: as in JAX, the gradient of a real function is df/dx - i df/dy.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.grad(lambda p, x: np.sum(np.tanh(x * p["w"])))({"w": 0.5}, np.array([0.0, 1.0]))
        {'w': np.float64(0.7864477329659276)}
    """
    return Transformed(_gradient, f, (argnums, has_aux, False, "grad"))


def value_and_grad(f: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """The value of a scalar function together with its gradient, for the price of one forward and one backward pass.

    Args:
        f: See `grad`.
        argnums: See `grad`.
        has_aux: Whether `f` returns `(loss, aux)`; the result is then `((loss, aux), gradient)`.

    Returns:
        A function of the same arguments that returns `(value, gradient)`.

    Raises:
        ShapeError, DTypeError, ArgumentError: as `grad`.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.value_and_grad(lambda x: x**3)(2.0)
        (np.float64(8.0), np.float64(12.0))
    """
    return Transformed(_gradient, f, (argnums, has_aux, True, "value_and_grad"))


class Pullback:
    """The pullback of `fnad.vjp`: cotangents of the output to a tuple of cotangents, one per primal argument."""

    def __init__(self, trace: VJPTrace, leaves: list[Any], spec: tree.Spec, outs: list[Any], out_spec: tree.Spec) -> None:
        self._trace, self._leaves, self._spec, self._out_spec = trace, leaves, spec, out_spec
        self._avals = [aval_of(o) for o in outs]
        self._slots = [o.index if o.__class__ is VJPTracer and o._trace is trace else None for o in outs]

    def __call__(self, cotangents: PyTree) -> tuple[PyTree, ...]:
        given = tree.flatten_as(self._out_spec, cotangents, "the cotangent", "the function's output")
        seeds = []
        for g, aval, slot, path in zip(given, self._avals, self._slots, tree.paths(self._out_spec), strict=True):
            g = check_like(g, aval, "cotangent", path, "the output")
            if slot is not None:
                seeds.append((slot, g))
        grads = self._trace.backward(seeds, len(self._leaves), keep=True)
        for i, leaf in enumerate(self._leaves):
            grads[i] = like_leaf(grads[i], leaf)
        del given, seeds
        return tuple(tree.unflatten(self._spec, own(grads)))


def vjp(f: Function, *primals: PyTree, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function and its pullback (vector-Jacobian product).

    Args:
        f: A function of pytrees of arrays that returns a pytree of arrays.
        primals: Its arguments; all of them are differentiated.
        has_aux: Whether `f` returns `(output, aux)`.

    Returns:
        `(output, pullback)`, or `(output, pullback, aux)`. `pullback(cotangents)` takes a pytree like the output and
        returns a tuple with one pytree per primal. It may be called any number of times.

    Raises:
        DTypeError: a leaf of the primals is not floating point.
        TreeError, ShapeError: (by the pullback) the cotangents do not fit the output.
        InPlaceError: (by the pullback) a large primal array was changed in place in the meantime.

    Example:
        >>> import numpy as np, fnad
        >>> y, pullback = fnad.vjp(lambda x: x**2, np.array([1.0, 2.0]))
        >>> pullback(np.array([1.0, 10.0]))
        (array([ 2., 40.]),)
    """
    leaves, spec = tree.flatten(primals)
    trace = VJPTrace("vjp", f)
    try:
        tracers = _trace_leaves(trace, leaves, spec, range(len(primals)))
        out, aux = split_aux(f(*tree.unflatten(spec, tracers)), has_aux, "vjp")
        aux = tree.map(lambda x: own_array(_untrace(x, trace)), aux)
        outs, out_spec = flatten_results(out, "vjp")
    finally:
        trace.close()
    pullback = Pullback(trace, leaves, spec, outs, out_spec)
    values = [_untrace(o, trace) for o in outs]
    del outs, out
    value = tree.unflatten(out_spec, own(values))
    return (value, pullback, aux) if has_aux else (value, pullback)
