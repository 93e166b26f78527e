"""Loop functions as primitives: `loop` is a program on flat leaves, `loop_adjoint` its gradients.

An adjoint is never transformed. With J the Jacobian of the program at x, an adjoint is g = J^T c, and

    the derivative of g along (xd, cd) is  J^T cd + the gradient of <c, J xd> by x,
    its pullback of w is                   J w for c, and the gradient of <c, J w> by x,

and J xd is what the tangent program computes, whose adjoint is a program like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, shape_of
from fnad.core.lowering import Native
from fnad.core.primitive import Joint, Primitive
from fnad.loops import ir
from fnad.loops.program import Level, Mode, Program
from fnad.loops.shapes import result_shapes
from fnad.primitives._families import guarded

Known = tuple[Any, ...]
Levels = tuple[Level, ...]


class Loop(Primitive):
    """A program on flat leaves; `known` are the numbers among them which decide sizes, `levels` the batch axes it is mapped over."""

    multiple = True
    selective = True

    def impl(self, *args: Any, program: Program, known: Known, levels: Levels = ()) -> tuple[Any, ...]:
        return _run(program, None, args, levels)

    def infer(self, *avals: Aval, program: Program, known: Known, levels: Levels = ()) -> tuple[Aval, ...]:
        return _infer(program, None, avals, known, levels)

    def forward(self, args: Sequence[Any], params: dict[str, Any], active: Sequence[bool] = ()) -> tuple[Any, Joint]:
        program: Program = params["program"]
        wanted = _floats(program, active or [True] * len(args))
        if len(program.results) == 1 and program.floats and isinstance(program.results[0], ir.Scalar) and any(wanted):
            return self._with_gradient(args, params, wanted)
        out = self(*args, **params)
        return out, Joint(lambda gs: _pull(args, gs, out, params, wanted))

    def _with_gradient(self, args: Sequence[Any], params: dict[str, Any], wanted: Level) -> tuple[Any, Joint]:
        """One number as result: its gradient does not depend on the cotangent but for a factor, so one run gives both."""
        program, levels = params["program"], params.get("levels", ())
        sizes = _batch_sizes(args, levels)
        one = np.ones(sizes, program.results[0].dtype) if sizes else program.results[0].dtype.type(1)
        value, *grads = _adjoint(program, Mode(wanted, True), args, (one,), params["known"], levels)

        def pull(gs: Sequence[Any]) -> list[Any]:
            g = gs[0]
            found = iter(grads)
            return [
                None if not w else _shrink(guarded(_spread(g, x), x), _mapped(levels, k))
                for k, w in enumerate(wanted)
                for x in ([next(found)] if w else [None])
            ]

        def _spread(g: Any, x: Any) -> Any:
            return np.reshape(g, (*sizes, *[1] * (len(shape_of(x)) - len(sizes)))) if shape_of(x) != shape_of(g) else g

        return (value,), Joint(pull)

    def push(self, args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        program: Program = params["program"]
        active = _floats(program, [t is not None for t in tangents])
        if not any(active) or not program.floats:
            return self(*args, **params), None
        outs, moved = _pushed(args, [t if a else None for t, a in zip(tangents, active, strict=True)], params)
        return outs, moved

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.push(args, tangents, params)[1]

    def vjp(self, out: Any, *args: Any, **params: Any) -> Joint:
        return Joint(lambda gs: _pull(args, gs, out, params, _floats(params["program"], [True] * len(args))))

    def batch(self, args: Sequence[Any], batched: Level, *, program: Program, known: Known, levels: Levels = ()) -> tuple[Any, ...]:
        return tuple(self(*args, program=program, known=known, levels=(tuple(batched), *levels)))

    def lower(self, *avals: Aval, program: Program, known: Known, levels: Levels = ()) -> Native:
        return Native(lambda: program.address(None, levels))


class LoopAdjoint(Primitive):
    """The gradients of a program by its `wanted` arguments; operands are its arguments and a cotangent per float result.

    With `value` the program's results come first.
    """

    multiple = True
    selective = True

    def impl(self, *args: Any, program: Program, mode: Mode, known: Known, levels: Levels = ()) -> tuple[Any, ...]:
        return _run(program, mode, args, levels)

    def infer(self, *avals: Aval, program: Program, mode: Mode, known: Known, levels: Levels = ()) -> tuple[Aval, ...]:
        return _infer(program, mode, avals, known, levels)

    def forward(self, args: Sequence[Any], params: dict[str, Any], active: Sequence[bool] = ()) -> tuple[Any, Joint]:
        out = self(*args, **params)
        return out, Joint(lambda gs: _pull_adjoint(args, gs, out, params, active or [True] * len(args)))

    def vjp(self, out: Any, *args: Any, **params: Any) -> Joint:
        return Joint(lambda gs: _pull_adjoint(args, gs, out, params, [True] * len(args)))

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        program: Program = params["program"]
        mode: Mode = params["mode"]
        known, levels = params["known"], params.get("levels", ())
        n = len(program.operands)
        xs, cs, xds, cds = args[:n], args[n:], list(tangents[:n]), tangents[n:]
        total: list[Any] = [None] * sum(mode.wanted)
        if any(t is not None for t in cds):
            full = [_zeros(c) if t is None else t for c, t in zip(cs, cds, strict=True)]
            total = list(_adjoint(program, Mode(mode.wanted, False), xs, full, known, _of(levels, n), _after(levels, n)))
        active = _floats(program, [t is not None for t in xds])
        moved: list[Any] = [None] * len(program.results)
        if any(active):
            xds = [_like(t, x) if a else None for t, x, a in zip(xds, xs, active, strict=True)]
            if mode.value:
                moved = list(_pushed(xs, xds, {"program": program, "known": known, "levels": _of(levels, n)})[1])
            tangent, operands, along = _with_tangents(program, xs, xds, _of(levels, n), everywhere=False)
            more = _of_tangent(tangent, operands, along, mode.wanted, [None] * len(program.results), cs, known, _after(levels, n))
            total = [b if a is None else a + b for a, b in zip(total, more, strict=True)]
        return (*moved, *total) if mode.value else tuple(total)

    def batch(
        self, args: Sequence[Any], batched: Level, *, program: Program, mode: Mode, known: Known, levels: Levels = ()
    ) -> tuple[Any, ...]:
        return tuple(self(*args, program=program, mode=mode, known=known, levels=(tuple(batched), *levels)))

    def lower(self, *avals: Aval, program: Program, mode: Mode, known: Known, levels: Levels = ()) -> Native:
        return Native(lambda: program.address(mode, levels))


loop = Loop("loop")
loop_adjoint = LoopAdjoint("loop_adjoint")


# -- derivatives ---------------------------------------------------------------------------------------------------------


def _adjoint(
    program: Program, mode: Mode, xs: Sequence[Any], cs: Sequence[Any], known: Known, levels: Levels, of_cs: Levels | None = None
) -> tuple[Any, ...]:
    """The adjoint on arguments and cotangents; unless `of_cs` says which batch axes those have, they have all."""
    every = tuple((*level, *(of_cs[i] if of_cs else [True] * len(cs))) for i, level in enumerate(levels))
    return tuple(loop_adjoint(*xs, *cs, program=program, mode=mode, known=known, levels=every))


def _of(levels: Levels, count: int) -> Levels:
    return tuple(level[:count] for level in levels)


def _after(levels: Levels, count: int) -> Levels:
    return tuple(level[count:] for level in levels)


def _pull(args: Sequence[Any], gs: Sequence[Any], outs: Sequence[Any], params: dict[str, Any], wanted: Level) -> list[Any]:
    """Cotangents of a program's arguments from those of its results, None where there are none."""
    program, levels = params["program"], params.get("levels", ())
    kept = tuple(k in program.floats and g is not None for k, g in enumerate(gs))
    if not any(kept) or not any(wanted):
        return [None] * len(args)
    part = program.keeping(kept)
    cs = [_like(g, o) for g, o, k in zip(gs, outs, kept, strict=True) if k]
    grads = iter(_adjoint(part, Mode(wanted, False), args, cs, params["known"], levels))
    return [_shrink(next(grads), _mapped(levels, k)) if w else None for k, w in enumerate(wanted)]


def _pull_adjoint(args: Sequence[Any], gs: Sequence[Any], outs: Sequence[Any], params: dict[str, Any], active: Sequence[bool]) -> list[Any]:
    """Cotangents of an adjoint's operands: `gs` are those of the value's results, if it has them, and of the gradients."""
    program: Program = params["program"]
    mode: Mode = params["mode"]
    known, levels = params["known"], params.get("levels", ())
    n = len(program.operands)
    xs, cs = args[:n], args[n:]
    count = len(program.results) if mode.value else 0
    vs, found = gs[:count], iter(gs[count:])
    ws = [next(found) if w else None for w in mode.wanted]
    wanted = _floats(program, list(active[:n]))
    answers: list[Any] = [None] * len(args)
    if any(w is not None for w in ws):
        at = _of(levels, n)
        tangent, operands, along = _with_tangents(program, xs, ws, at, everywhere=True)
        if any(active[n:]):
            moved = loop(*operands, program=tangent, known=(*known, *[None] * (len(operands) - n)), levels=along)[len(program.results) :]
            answers[n:] = [_shrink(m, _mapped(levels, n + j)) if active[n + j] else None for j, m in enumerate(moved)]
        if any(wanted):
            values = [None] * len(program.results) if not count else [v if k in program.floats else None for k, v in enumerate(vs)]
            grads = iter(_of_tangent(tangent, operands, along, wanted, values, cs, known, _after(levels, n)))
            answers[:n] = [_shrink(next(grads), _mapped(levels, k)) if w else None for k, w in enumerate(wanted)]
    elif any(v is not None for v in vs):
        answers[:n] = _pull(xs, vs, outs, {"program": program, "known": known, "levels": _of(levels, n)}, wanted)
    return answers


def _with_tangents(
    program: Program, xs: Sequence[Any], tangents: Sequence[Any], levels: Levels, everywhere: bool
) -> tuple[Program, list[Any], Levels]:
    """The tangent program for those arguments that have a tangent, its operands, and their batch axes.

    `everywhere` says that tangents have all batch axes, otherwise each has those of its argument.
    """
    active = tuple(t is not None for t in tangents)
    given = [k for k, a in enumerate(active) if a]
    more = tuple((*level, *(everywhere or level[k] for k in given)) for level in levels)
    return program.tangent(active), [*xs, *(tangents[k] for k in given)], more


def _pushed(args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The results of a program and their tangents, None for results that are no floats."""
    program: Program = params["program"]
    along = [None if t is None else _like(t, x) for t, x in zip(tangents, args, strict=True)]
    tangent, operands, levels = _with_tangents(program, args, along, params.get("levels", ()), everywhere=False)
    known = (*params["known"], *[None] * (len(operands) - len(args)))
    outs = loop(*operands, program=tangent, known=known, levels=levels)
    count = len(program.results)
    moved: list[Any] = [None] * count
    for k, m in zip(program.floats, outs[count:], strict=True):
        moved[k] = m
    return tuple(outs[:count]), tuple(moved)


def _of_tangent(
    tangent: Program,
    operands: Sequence[Any],
    levels: Levels,
    wanted: Level,
    values: Sequence[Any],
    cs: Sequence[Any],
    known: Known,
    of_cs: Levels,
) -> tuple[Any, ...]:
    """Gradients by the first arguments of <values, results> + <cs, tangents of the results>; None among the values is zero.

    The values have all batch axes.
    """
    part = tangent.keeping((*(v is not None for v in values), *[True] * len(cs)))
    extra = len(operands) - len(wanted)
    mode = Mode((*wanted, *[False] * extra), False)
    given = [v for v in values if v is not None]
    axes = tuple((*[True] * len(given), *level) for level in of_cs)
    return _adjoint(part, mode, operands, [*given, *cs], (*known, *[None] * extra), levels, axes)


# -- shapes and batch axes -----------------------------------------------------------------------------------------------


def _floats(program: Program, active: Sequence[bool]) -> Level:
    """Those of the arguments that have a derivative."""
    return tuple(bool(a) and t.dtype.kind in "fc" for a, t in zip(active, program.operands, strict=True))


def _mapped(levels: Levels, k: int) -> Level:
    """Which batch axes operand `k` has."""
    return tuple(level[k] for level in levels)


def _shrink(g: Any, mapped: Level) -> Any:
    """A gradient with all batch axes, for an argument that has some of them only."""
    axes = tuple(i for i, m in enumerate(mapped) if not m)
    return np.sum(g, axis=axes) if axes else g


def _like(g: Any, x: Any) -> Any:
    return g if shape_of(g) == shape_of(x) else np.broadcast_to(g, shape_of(x))


def _zeros(x: Any) -> Any:
    return np.zeros(shape_of(x), aval_of(x).dtype)


def _batch_sizes(args: Sequence[Any], levels: Levels) -> tuple[int, ...]:
    """The sizes of the batch axes, the outermost first."""
    taken = [0] * len(args)
    sizes = []
    for level in levels:
        sizes.append(next(shape_of(x)[n] for x, n, m in zip(args, taken, level, strict=True) if m))
        taken = [n + m for n, m in zip(taken, level, strict=True)]
    return tuple(sizes)


def _infer(program: Program, mode: Mode | None, avals: Sequence[Any], known: Known, levels: Levels) -> tuple[Aval, ...]:
    sizes = _batch_sizes(avals, levels)
    shapes = [a.shape[sum(_mapped(levels, k)) :] for k, a in enumerate(map(aval_of, avals))]
    n = len(program.operands)
    mapped = [any(_mapped(levels, k)) for k in range(n)]
    found = (
        ()
        if mode is not None and not mode.value
        else result_shapes(program.fn, shapes[:n], [None if m else v for v, m in zip(known, mapped, strict=True)])
    )
    if mode is not None:
        found = (*found, *(s for s, w in zip(shapes, mode.wanted, strict=False) if w))
    return tuple(Aval((*sizes, *s), t.dtype) for s, t in zip(found, program.types(mode)[1], strict=True))


# -- evaluation ----------------------------------------------------------------------------------------------------------


def _run(program: Program, mode: Mode | None, args: Sequence[Any], levels: Levels) -> tuple[Any, ...]:
    """The results for plain arguments."""
    if levels and 0 in _batch_sizes(args, levels):
        return tuple(np.empty(a.shape, a.dtype) for a in _infer(program, mode, args, _numbers(args), levels))
    takes, gives = program.types(mode)
    as_given = mode is None and not levels and program.is_users
    operands = [_operand(x, t, sum(_mapped(levels, k)), as_given) for k, (x, t) in enumerate(zip(args, takes, strict=True))]
    try:
        outs = program.compiled(mode, levels)(*operands)
    except Exception as error:
        if not type(error).__module__.startswith("numba"):
            _raise_as_user(program, operands, levels)
        raise
    if levels:
        return tuple(outs)
    return tuple(t.dtype.type(o) if isinstance(t, ir.Scalar) else o for o, t in zip(outs, gives, strict=True))


def _numbers(args: Sequence[Any]) -> Known:
    return tuple(int(x) if x.__class__ in (int, bool) or isinstance(x, np.integer | np.bool_) else None for x in args)


def _raise_as_user(program: Program, operands: Sequence[Any], levels: Levels) -> None:
    """Run the user's function where generated code has raised: its error is the one to see."""
    origin = program.origin
    if origin is not program or not program.is_users:
        n = len(origin.operands)
        origin.compiled(None, tuple(level for level in _of(levels, n) if any(level)))(*operands[:n])


def _operand(x: Any, type: ir.Type, axes: int, as_given: bool) -> Any:
    """An argument as compiled code takes it: a number of the dtype, or an array; all but the user's own are C-contiguous."""
    if isinstance(type, ir.Scalar) and not axes:
        if x.__class__ in (float, int, bool) or (isinstance(x, np.generic) and x.dtype == type.dtype):
            return x
        return x[()] if isinstance(x, np.ndarray) and x.dtype == type.dtype else type.dtype.type(x)
    if as_given:
        return x
    flags = x.flags if x.__class__ is np.ndarray else None
    if flags is not None and flags.c_contiguous and flags.writeable and flags.aligned and x.dtype == type.dtype:
        return x
    return np.array(x, type.dtype, order="C")
