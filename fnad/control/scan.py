"""scan, map, associative_scan: loops with a known number of steps."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad import tree
from fnad.control import _scan
from fnad.control._bodies import Body, close, is_abstract
from fnad.control._staging import Carry, arrays, check_function, fits, lift, own_leaves, take_leaves
from fnad.core.aval import Aval, aval_of, result_dtype, shape_of
from fnad.core.graph import Graph, is_recording, record
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ConcretizationError, NonFiniteError, ShapeError, describe_function
from fnad.primitives.shape import cast
from fnad.typing import PyTree

SEGMENTS = 10
"""Of a loop with checkpoint="binomial", at each level."""


class Loop:
    """One call of scan: the body as a function of flat leaves, and what is known of carry and results."""

    def __init__(self, f: Callable[..., Any], init: PyTree, xs: PyTree, length: Any, reverse: bool, name: str, *names: str) -> None:
        check_function(f, name, "the body")
        self.f, self.name, self.reverse = f, name, bool(reverse)
        self.init, spec = arrays(init, name, "init")
        self.xs, self.x_spec = arrays(xs, name, "xs")
        self.carry = Carry(name, spec, *names)
        self.length = _length(self.xs, self.x_spec, length, name)
        self.y_spec: tree.Spec = spec

    def step(self, *leaves: Any) -> tuple[list[Any], list[Any]]:
        """The leaves of the next carry and of the results of one step."""
        n = len(self.init)
        out = self.f(tree.unflatten(self.carry.spec, leaves[:n]), tree.unflatten(self.x_spec, leaves[n:]))
        if not isinstance(out, tuple | list) or len(out) != 2:
            raise ArgumentError(
                f"{self.name}: the body must return a pair (carry, y)",
                got={"result": type(out).__name__, "body": describe_function(self.f)},
                fix="return carry, None if there is nothing to stack",
            )
        carry = self.carry.leaves(out[0], self.f)
        ys, self.y_spec = arrays(out[1], self.name, "what the body returns for each step")
        return carry, ys

    def step_number(self, number: int, *leaves: Any) -> tuple[list[Any], list[Any]]:
        try:
            return self.step(*leaves)
        except NonFiniteError as error:
            raise error.inside(f"step {number} of {self.name}") from None

    def results(self, carry: Sequence[Any], ys: Sequence[Any]) -> tuple[Any, Any]:
        return tree.unflatten(self.carry.spec, carry), tree.unflatten(self.y_spec, ys)

    # -- as one equation ---------------------------------------------------------------------------------------------

    def stage(self) -> tuple[Body, list[Any]]:
        """The body, recorded, and the initial carry in the types that it settles to."""
        avals = [aval_of(x) for x in self.init]
        slices = [Aval(shape_of(x)[1:], aval_of(x).dtype) for x in self.xs]

        def flat(*leaves: Any) -> list[Any]:
            carry, ys = self.step(*leaves)
            found[:] = self.carry.settled(avals, carry, self.f)
            return [*(lift(x, a) for x, a in zip(carry, found, strict=True)), *ys]

        while True:
            found: list[Aval] = []
            graph = record(flat, [*avals, *slices], self.f)
            if found == avals:
                return close(graph), [lift(x, a) for x, a in zip(self.init, avals, strict=True)]
            avals = found

    def staged(self, unroll: int, checkpoint: Any) -> tuple[Any, Any]:
        body, init = self.stage()
        n, m = len(body.consts), len(init)
        run = Run(body.graph, n, m, self.reverse, unroll)
        outs = run(self.length, _segment(self.length, checkpoint), *body.consts, *init, *self.xs)
        return self.results(outs[:m], outs[m:])

    # -- as a Python loop --------------------------------------------------------------------------------------------

    def eager(self) -> tuple[Any, Any]:
        order = range(self.length)[::-1] if self.reverse else range(self.length)
        avals = [aval_of(x) for x in self.init]
        while True:
            start = [lift(x, a) for x, a in zip(own_leaves(self.init), avals, strict=True)]
            carry, ys = self.step_number(order[0], *start, *take_leaves(self.xs, order[0]))
            settled = self.carry.settled(avals, carry, self.f)
            if settled == avals:
                break
            avals = settled
        rows = [Rows(y) for y in ys]
        first = self.y_spec
        for i in order[1:]:
            carry, avals = self.fitting(carry, avals)
            carry, ys = self.step_number(i, *carry, *take_leaves(self.xs, i))
            if self.y_spec != first:
                tree.flatten_as(first, tree.unflatten(self.y_spec, ys), "the result of a step", "that of the first step")
            for row, y in zip(rows, ys, strict=True):
                row.add(y, self.name)
        return self.results(self.fitting(carry, avals)[0], [row.stacked(self.reverse) for row in rows])

    def fitting(self, carry: list[Any], avals: list[Aval]) -> tuple[list[Any], list[Aval]]:
        """A carry of the settled types, and these; arrays that stand at two places of it are two arrays."""
        seen: set[int] = set()
        for k, x in enumerate(carry):
            if x.__class__ is np.ndarray:
                if id(x) in seen:
                    carry[k] = x = x.copy()
                seen.add(id(x))
            if not fits(x, avals[k]):  # a Python scalar may also give way in a later step, if the first ones left it alone
                avals = self.carry.settled(avals, carry, self.f)
                carry = [lift(y, a) for y, a in zip(carry, avals, strict=True)]
        return carry, avals


class Rows:
    """The results of all steps at one leaf. Python scalars among them give way to the dtype of the others."""

    def __init__(self, first: Any) -> None:
        self.shape, self.aval = shape_of(first), aval_of(first)
        self.rows: list[Any] = []
        self.traced = self.mixed = False
        self.add(first, "")

    def add(self, y: Any, name: str) -> None:
        if y.__class__ is np.ndarray:
            y = y.copy()
        if not fits(y, self.aval):
            aval = aval_of(y)
            if aval.shape != self.shape:
                raise ShapeError(f"{name}: each step must return results of one shape", got={"first": self.shape, "later": aval.shape})
            self.mixed = True
            self.aval = Aval(self.shape, result_dtype(self.aval, aval), self.aval.weak and aval.weak)
        self.traced = self.traced or isinstance(y, Tracer)
        self.rows.append(y)

    def stacked(self, reverse: bool) -> Any:
        rows = self.rows[::-1] if reverse else self.rows
        if self.mixed:
            rows = [cast(y, dtype=self.aval.dtype) for y in rows]
        return np.stack(rows) if self.traced or self.shape else np.array(rows)


class Run:
    """A closed body as a scan, if wished in segments that keep their first carry only."""

    def __init__(self, body: Graph, consts: int, carry: int, reverse: bool, unroll: int) -> None:
        self.body, self.consts, self.carry, self.reverse, self.unroll = body, consts, carry, reverse, unroll

    def whole(self, length: int, args: Sequence[Any], body: Graph | None = None, checkpoint: bool = False) -> tuple[Any, ...]:
        params = {"consts": self.consts, "carry": self.carry, "reverse": self.reverse, "unroll": self.unroll, "checkpoint": checkpoint}
        return _scan.scan(*args, body=body or self.body, length=length, **params)

    def __call__(self, length: int, segment: Callable[[int], int], *args: Any) -> tuple[Any, ...]:
        """Outputs for a loop of `length` steps. `segment` says how long the segments of a loop are (0: it has none)."""
        size = segment(length)
        if not 0 < size < length:
            return self.whole(length, args)
        n, m = self.consts, self.carry
        count = length // size
        outer, init, xs = args[:n], args[n : n + m], args[n + m :]
        head, tail = [x[: count * size] for x in xs], [x[count * size :] for x in xs]
        segments = [np.reshape(x, (count, size, *shape_of(x)[1:])) for x in head]
        avals = [*(aval_of(x) for x in (*outer, *init)), *(Aval(shape_of(x)[1:], aval_of(x).dtype) for x in segments)]
        body = close(record(lambda *parts: self(size, segment, *parts), avals)).graph

        def many(carry: Sequence[Any]) -> tuple[Any, ...]:
            outs = self.whole(count, (*outer, *carry, *segments), body, checkpoint=True)
            return (*outs[:m], *(np.reshape(y, (count * size, *shape_of(y)[2:])) for y in outs[m:]))

        def rest(carry: Sequence[Any]) -> tuple[Any, ...]:
            return self(length - count * size, segment, *outer, *carry, *tail)

        if count * size == length:
            return many(init)
        first = rest(init) if self.reverse else many(init)
        last = many(first[:m]) if self.reverse else rest(first[:m])
        pairs = zip(last[m:], first[m:], strict=True) if self.reverse else zip(first[m:], last[m:], strict=True)
        return (*last[:m], *(np.concatenate(pair) for pair in pairs))


def _segment(length: int, checkpoint: Any) -> Callable[[int], int]:
    """How long the segments of a loop of a given length are; 0 for those that are not divided."""
    if checkpoint is None:
        return lambda n: 0
    if checkpoint == "binomial":
        return lambda n: -(-n // SEGMENTS) if n > SEGMENTS else 0
    try:
        size = operator.index(checkpoint)
    except TypeError:
        size = 0
    if size < 1 or isinstance(checkpoint, bool):
        got = {"checkpoint": repr(checkpoint)}
        raise ArgumentError('scan: checkpoint must be None, "binomial" or a number of steps', got=got, fix='checkpoint="binomial"')
    return lambda n: size if n == length else 0


def _length(xs: list[Any], spec: tree.Spec, length: Any, name: str) -> int:
    """The number of steps."""
    sizes = {}
    for path, x in zip(tree.paths(spec), xs, strict=True):
        shape = shape_of(x)
        if not shape:
            raise ShapeError(
                f"{name}: each array of xs is cut into steps along its first axis",
                got={f"xs{path}": aval_of(x)},
                fix="repeat it with np.broadcast_to(x, (length,)), or let the body close over it",
            )
        sizes[f"xs{path}"] = shape[0]
    if length is not None:
        try:
            sizes["length"] = operator.index(length)
        except TypeError:
            raise ArgumentError(f"{name}: length must be an int", got={"length": repr(length)}) from None
    if not sizes:
        got = {"xs": None, "length": None}
        raise ArgumentError(f"{name}: the number of steps is not known", got=got, fix="give length=, or arrays as xs")
    if len(set(sizes.values())) > 1:
        raise ShapeError(f"{name}: all arrays of xs must have first axes of one size, that of length", got=sizes)
    found = next(iter(sizes.values()))
    if found < 0:
        raise ArgumentError(f"{name}: length must not be negative", got={"length": found})
    return found


def run_loop(
    f: Callable[..., Any],
    init: PyTree,
    xs: PyTree,
    length: Any,
    reverse: bool = False,
    unroll: int | bool = 1,
    checkpoint: Any = None,
    names: tuple[str, ...] = ("scan",),
    staged: bool = False,
) -> tuple[Any, Any]:
    """`scan`, recorded in any case if `staged`. `names`: the function it is used for, the carry, what is cut off paths."""
    name = names[0]
    loop = Loop(f, init, xs, length, reverse, *names)
    steps = max(loop.length, 1) if unroll is True else unroll or 1
    if not isinstance(steps, int | np.integer) or steps < 1:
        raise ArgumentError(f"{name}: unroll must be a positive number of steps, or a bool", got={"unroll": unroll})
    if loop.length and checkpoint is None and not (staged or is_recording()):
        return loop.eager()
    try:
        return loop.staged(int(steps), checkpoint)
    except ConcretizationError:
        if checkpoint is not None or not loop.length or any(is_abstract(x) for x in (*loop.init, *loop.xs)):
            raise
        return loop.eager()  # all values are known: the body may look at them


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    checkpoint: int | str | None = None,
) -> tuple[Any, Any]:
    """A loop that carries a value from step to step, and stacks what each step returns.

    It computes what this does, and more: under `jit` the loop is compiled once, whatever its length.

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)

    Args:
        f: The body, `(carry, x) -> (carry, y)`. It must return the carry in the structure, shapes and dtypes that it came in;
            Python scalars in `init` take the dtype that the body makes of them.
        init: The first carry: a pytree of arrays.
        xs: A pytree of arrays whose first axes have one size, the number of steps; the body gets a slice of each. None if
            there is nothing to loop over.
        length: The number of steps; needed where `xs` is None.
        reverse: Whether to go from the last slice to the first; `ys[i]` still belongs to `xs[i]`.
        unroll: Steps per iteration of the compiled loop; True for all of them. It changes no result.
        checkpoint: None keeps for the backward pass what is cheaper to store than to compute again. A number divides the loop
            into segments of so many steps: kept is the carry at the beginning of each, the rest is computed a second time
            (with about the square root of the number of steps, so much memory is needed). "binomial" does so again within
            the segments: memory grows with the logarithm of the number of steps, time by a forward pass per level.

    Returns:
        `(carry, ys)`: the last carry, and a pytree like `y` with a new first axis. Semantics as `jax.lax.scan`.

    Without `jit` the body runs as it is, step by step, and may use Python control flow on values (not with `checkpoint`).
    The first step may run twice, to find the types.

    Raises:
        ArgumentError: the number of steps is not known, or `f` does not return a pair.
        TreeError, ShapeError, DTypeError: the carry changes its structure, a shape or a dtype; first axes differ.
        ConcretizationError: (recorded) the body needs a value.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
        (np.float64(6.0), array([0., 2., 9.]))

    References: A. Griewank and A. Walther, Evaluating Derivatives, 2008, chapter 12 (checkpointing).
    """
    return run_loop(f, init, xs, length, reverse, unroll, checkpoint)


def map(f: Callable[[Any], Any], xs: PyTree) -> Any:
    """Apply a function to each slice of arrays along their first axis, one after the other.

    Unlike `vmap` it needs no more memory than one call, and `f` may use `cond` without computing both branches.

    Args:
        f: A function of one pytree of arrays.
        xs: A pytree of arrays whose first axes have one size.

    Returns:
        The results, stacked along a new first axis. Semantics as `jax.lax.map`.

    Raises:
        ShapeError: the first axes differ in size.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.map(np.sum, np.arange(6.0).reshape(3, 2))
        array([1., 5., 9.])
    """
    check_function(f, "map", "the first argument")
    return run_loop(lambda _, x: (None, f(x)), None, xs, None, names=("map",))[1]


def associative_scan(fn: Callable[[Any, Any], Any], elems: PyTree, reverse: bool = False, axis: int = 0) -> PyTree:
    """All partial results of an associative operation, in a number of array operations that grows with the logarithm of their number.

    Args:
        fn: `(a, b) -> c` on pytrees like `elems`, for many elements at once: it receives slices of `elems` of equal sizes along
            `axis`. It must be associative: `fn(a, fn(b, c)) == fn(fn(a, b), c)`, up to rounding.
        elems: A pytree of arrays with equal sizes along `axis`.
        reverse: Whether to begin with the last element.
        axis: The axis along which the elements lie.

    Returns:
        A pytree like `elems`: at position i the combination of elements 0 to i. Semantics as `jax.lax.associative_scan`.

    Raises:
        ShapeError: the sizes along `axis` differ, or `fn` changes a shape.
        TreeError: `fn` returns another structure.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.associative_scan(np.maximum, np.array([1.0, 3.0, 2.0, 5.0]))
        array([1., 3., 3., 5.])

    References: G. Blelloch, Prefix sums and their applications, 1990.
    """
    check_function(fn, "associative_scan", "the first argument")
    leaves, spec = arrays(elems, "associative_scan", "elems")
    sizes = {}
    for path, x in zip(tree.paths(spec), leaves, strict=True):
        shape = shape_of(x)
        if not -len(shape) <= axis < len(shape):
            raise ShapeError("associative_scan: each array must have the axis", got={f"elems{path}": aval_of(x), "axis": axis})
        sizes[f"elems{path}"] = shape[axis]
    if len(set(sizes.values())) > 1:
        raise ShapeError("associative_scan: all arrays must have the same size along the axis", got=sizes)
    if not leaves:
        return elems
    moved = [np.moveaxis(x, axis, 0) for x in leaves]

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        pair = [tree.unflatten(spec, [np.moveaxis(x, 0, axis) for x in side]) for side in (a, b)]
        outs = tree.flatten_as(spec, fn(*pair), "the result of the function", "its arguments")
        for path, x, o in zip(tree.paths(spec), tree.leaves(pair[0]), outs, strict=True):
            if shape_of(o) != shape_of(x):
                got = {f"argument{path}": aval_of(x), "result": aval_of(o)}
                raise ShapeError("associative_scan: the function must keep shapes", got=got)
        return [np.moveaxis(o, axis, 0) for o in outs]

    if reverse:
        moved = [x[::-1] for x in moved]
    outs = _prefixes(combine, moved)
    if reverse:
        outs = [o[::-1] for o in outs]
    return tree.unflatten(spec, [np.moveaxis(o, 0, axis) for o in outs])


def _prefixes(combine: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any]) -> list[Any]:
    """Prefix results along axis 0: those of neighbouring pairs give every second one; one more operation gives the others."""
    n = shape_of(xs[0])[0]
    if n < 2:
        return xs
    odd = _prefixes(combine, combine([x[: n - 1 : 2] for x in xs], [x[1::2] for x in xs]))
    if n == 2:
        even = [x[:1] for x in xs]
    else:
        between = combine([o[: (n - 1) // 2] for o in odd], [x[2::2] for x in xs])
        even = [np.concatenate([x[:1], e]) for x, e in zip(xs, between, strict=True)]
    out = []
    for e, o in zip(even, odd, strict=True):
        half = n // 2
        pairs = np.reshape(np.stack([e[:half], o], axis=1), (2 * half, *shape_of(o)[1:]))
        out.append(np.concatenate([pairs, e[half:]]) if n % 2 else pairs)
    return out
