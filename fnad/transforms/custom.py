"""Functions with derivatives stated by the user."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of, shape_of
from fnad.core.graph import Graph, evaluate, record
from fnad.core.keep import Keeper, unchanged
from fnad.core.primitive import Joint
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ShapeError, describe_function
from fnad.transforms._call import flatten_results
from fnad.transforms._opaque import Flat, Opaque, batch_flat, batch_size, split_static
from fnad.transforms.jvp import zeros_like
from fnad.transforms.vjp import pull_back
from fnad.transforms.vmap import BatchTrace, BatchTracer, spread
from fnad.typing import Function


class CustomVJP(Opaque):
    """`flat_fwd(*leaves) -> (outs, residuals)` and `flat_bwd(residuals, gs) -> one cotangent or None per leaf`."""

    def __init__(self, name: str, flat: Flat, function: Any, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        super().__init__(name, flat, function)
        self.fwd, self.bwd = fwd, bwd

    def forward(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Joint]:
        with unchanged(args, self.function):
            outs, residuals = self.fwd(*args)
        keeper = Keeper()
        residuals = tree.map(lambda x: keeper.keep(x) if x.__class__ is np.ndarray else x, residuals)

        def pull(g: Sequence[Any]) -> Any:
            keeper.check()
            with unchanged((*g, *tree.leaves(residuals)), self.function):
                return self.bwd(residuals, g)

        return tuple(outs), Joint(pull)

    def over_batch(self, batched: Sequence[bool]) -> Opaque:
        def fwd(*leaves: Any) -> tuple[list[Any], Any]:
            size = batch_size(leaves, batched)
            trace = BatchTrace(self.function, size)
            try:
                outs, residuals = self.fwd(*[BatchTracer(trace, x) if b else x for x, b in zip(leaves, batched, strict=True)])
            finally:
                trace.close()
            saved, spec = tree.flatten(residuals)
            mine = [r.__class__ is BatchTracer and r._trace is trace for r in saved]
            values = [r.value if m else r for r, m in zip(saved, mine, strict=True)]
            lifted = [o.value if o.__class__ is BatchTracer and o._trace is trace else spread(o, size) for o in outs]
            return lifted, (size, values, mine, spec)

        def bwd(residuals: Any, g: Sequence[Any]) -> list[Any]:
            size, values, mine, spec = residuals
            trace = BatchTrace(self.function, size)
            try:
                saved = tree.unflatten(spec, [BatchTracer(trace, v) if m else v for v, m in zip(values, mine, strict=True)])
                answers = self.bwd(saved, tuple(BatchTracer(trace, c) for c in g))
            finally:
                trace.close()
            return [None if c is None else _fold(c, b, trace, size) for c, b in zip(answers, batched, strict=True)]

        return CustomVJP(self.name, batch_flat(self.flat, batched), self.function, fwd, bwd)


def _fold(c: Any, batched: bool, trace: BatchTrace, size: int) -> Any:
    """A batched cotangent as that of one argument: kept per example if it was batched, otherwise summed."""
    mine = c.__class__ is BatchTracer and c._trace is trace
    value = c.value if mine else spread(c, size)
    return value if batched else np.add.reduce(value, axis=0)


class CustomJVP(Opaque):
    """`flat_jvp(leaves, tangents) -> (outs, tangents)`; reverse mode transposes it."""

    def __init__(self, name: str, flat: Flat, function: Any, rule: Callable[..., Any], checked: set[Any]) -> None:
        super().__init__(name, flat, function)
        self.rule, self.checked = rule, checked  # the shapes and dtypes for which the rule was seen to be linear

    def push(self, args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        tangents = [zeros_like(a) if t is None else t for a, t in zip(args, tangents, strict=True)]
        with unchanged((*args, *tangents), self.function):
            outs, dots = self.rule(list(args), tangents)
        return tuple(outs), dots

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.push(args, tangents, params)[1]

    def forward(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Joint]:
        avals = [aval_of(a) for a in args]
        active = [a.dtype.kind in "fc" for a in avals]
        outs: list[Any] = []

        def tangent_program(*ts: Any) -> list[Any]:
            given = iter(ts)
            values, dots = self.rule(list(args), [next(given) if on else zeros_like(a) for a, on in zip(avals, active, strict=True)])
            outs[:] = values
            return dots

        with unchanged(args, self.function):
            keeper = Keeper()
            graph = record(tangent_program, [a for a, on in zip(avals, active, strict=True) if on], self.function, keeper)
        if tuple(avals) not in self.checked:
            _check_linear(graph, self.function)
            self.checked.add(tuple(avals))

        def pull(g: Sequence[Any]) -> list[Any]:
            keeper.check()
            zeros = [zeros_like(a) for a, on in zip(avals, active, strict=True) if on]
            found = iter(pull_back(lambda *ts: evaluate(graph, ts), zeros, [True] * len(zeros), g, self.function))
            return [next(found) if on else None for on in active]

        return tuple(outs), Joint(pull)

    def over_batch(self, batched: Sequence[bool]) -> Opaque:
        def rule(leaves: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
            n = len(leaves)
            size = batch_size(leaves, batched)
            dots = [t if b else spread(t, size) for t, b in zip(tangents, batched, strict=True)]

            def both(*xs: Any) -> list[Any]:
                outs, out_dots = self.rule(list(xs[:n]), list(xs[n:]))
                return [*outs, *out_dots]

            results = batch_flat(both, [*batched, *[True] * n])(*leaves, *dots)
            return results[: len(results) // 2], results[len(results) // 2 :]

        return CustomJVP(self.name, batch_flat(self.flat, batched), self.function, rule, set())


def _check_linear(graph: Graph, function: Any) -> None:
    """A rule's tangent must be linear in the tangents: reverse mode transposes it. One direction is tried, long and short."""
    if any(isinstance(x, Tracer) for _, x in graph.constants):
        return  # the values are an outer transform's
    rng = np.random.default_rng(0)
    t = [rng.normal(size=v.aval.shape).astype(v.aval.dtype) for v in graph.inputs]
    tiny = max((np.finfo(v.aval.dtype).eps for v in graph.inputs), default=0.0)
    scale = 8.0 if tiny > 1e-6 else 1024.0
    with np.errstate(all="ignore"):
        short, long, back = (evaluate(graph, [x * s for x in t]) for s in (1 / scale, scale, -1.0))
    for a, b, c in zip(short, long, back, strict=True):
        a, b, c = a * scale, b / scale, -c
        wrong = (np.abs(b - a) > 1e-2 * (np.abs(a) + np.abs(b))) | (np.abs(c - a) > 1e-2 * (np.abs(a) + np.abs(c)))
        if np.any(wrong & np.isfinite(a) & np.isfinite(b)):
            raise ArgumentError(
                "custom_jvp: the tangent that the rule returns must be linear in the tangents it receives",
                got={"function": describe_function(function)},
                fix="to change gradients on their way back (clipping, say), use fnad.custom_vjp",
            )


class _Custom:
    """A function together with rules that are given later."""

    kind = ""

    def __init__(self, f: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        if not callable(f):
            raise ArgumentError(f"{self.kind} takes a function", got={"argument": repr(f)})
        functools.update_wrapper(self, f)
        self.f = f
        self.name = getattr(f, "__name__", type(f).__name__)
        self.nondiff_argnums = tuple(nondiff_argnums)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """All arguments by position, defaults filled in: the differentiable ones, and the others."""
        if kwargs:
            bound = inspect.signature(self.f).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise ArgumentError(f"{self.kind}: all parameters must be positional", got={"keyword-only": ", ".join(bound.kwargs)})
            args = bound.args
        static = {n % len(args) for n in self.nondiff_argnums}
        return [a for i, a in enumerate(args) if i not in static], [a for i, a in enumerate(args) if i in static]

    def _merge(self, args: Sequence[Any], static: Sequence[Any]) -> list[Any]:
        total = len(args) + len(static)
        out = list(args)
        for n, value in zip(sorted(n % total for n in self.nondiff_argnums), static, strict=True):
            out.insert(n, value)
        return out

    def _no_rule(self, define: str) -> ArgumentError:
        return ArgumentError(
            f"{self.kind} function {describe_function(self.f)} has no derivative yet", fix=f"call {self.name}.{define} before using it"
        )


def _flattened(name: str, call: Callable[..., Any], rebuild: Callable[[Sequence[Any]], Any], out_spec: list[tree.Spec]) -> Flat:
    def flat(*values: Any) -> list[Any]:
        outs, found = flatten_results(call(rebuild(values)), name)
        out_spec[:] = [found]
        return outs

    return flat


class custom_vjp(_Custom):
    """A function whose reverse-mode derivative you state yourself.

    Args:
        f: A function of pytrees of arrays.
        nondiff_argnums: Positions of arguments that are not differentiated and may be anything; they are passed to
            `fwd` in their place and to `bwd` first.

    `defvjp(fwd, bwd)` gives the rules: `fwd(*args) -> (output, residuals)` and `bwd(residuals, cotangent) -> tuple` with one
    cotangent (a pytree like it; None for zero) per differentiable argument. Rules are plain NumPy; they are differentiated
    again for higher orders. Forward mode transposes `bwd`. Semantics as `jax.custom_vjp`.

    Raises:
        ArgumentError: the function is used before `defvjp`, or `bwd` returns the wrong number of cotangents.
        TreeError, ShapeError: a cotangent does not fit its argument.
        ClosureError: `f`, `fwd` or `bwd` closes over a traced value.

    Example:
        >>> import numpy as np, fnad
        >>> @fnad.custom_vjp
        ... def clip_gradient(x):
        ...     return x
        >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (np.clip(g, -1.0, 1.0),))
        >>> fnad.grad(lambda x: 5.0 * clip_gradient(x))(2.0)
        np.float64(1.0)
    """

    kind = "custom_vjp"
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise self._no_rule("defvjp(fwd, bwd)")
        diff, static = self._positional(args, kwargs)
        leaves, rebuild = split_static(diff)
        if not any(isinstance(x, Tracer) for x in leaves):
            return self.f(*self._merge(diff, static))
        spec = tree.structure(diff)
        out_spec: list[tree.Spec] = []
        user_fwd, user_bwd = self.fwd, self.bwd

        def fwd(*values: Any) -> tuple[list[Any], Any]:
            pair = user_fwd(*self._merge(rebuild(values), static))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ArgumentError("custom_vjp: fwd must return (output, residuals)", got={"result": type(pair).__name__})
            outs, found = flatten_results(pair[0], self.kind)
            out_spec[:] = [found]
            return outs, pair[1]

        def bwd(residuals: Any, g: Sequence[Any]) -> list[Any]:
            answer = user_bwd(*static, residuals, tree.unflatten(out_spec[0], g))
            return _check_cotangents(answer, diff, spec, leaves_shapes)

        leaves_shapes = [aval_of(x) for x in leaves]
        flat = _flattened(self.kind, lambda d: self.f(*self._merge(d, static)), rebuild, out_spec)
        outs = CustomVJP(f"custom_vjp[{self.name}]", flat, self.f, fwd, bwd)(*leaves)
        return tree.unflatten(out_spec[0], outs)


def _check_cotangents(answer: Any, diff: list[Any], spec: tree.Spec, avals: list[Any]) -> list[Any]:
    """The cotangents a user's bwd returned, one per array leaf of the arguments, checked."""
    if not isinstance(answer, tuple | list) or len(answer) != len(diff):
        raise ArgumentError(
            "custom_vjp: bwd must return a tuple with one cotangent per differentiable argument",
            got={"arguments": len(diff), "returned": len(answer) if isinstance(answer, tuple | list) else type(answer).__name__},
            fix="return (g,) for one argument; None stands for zero",
        )
    out: list[Any] = []
    k = 0
    for n, (g, argument) in enumerate(zip(answer, diff, strict=True)):
        like, arg_spec = tree.flatten(argument)
        if g is None:
            given: list[Any] = [None] * len(like)
        else:
            given = tree.flatten_as(arg_spec, g, f"the cotangent of argument {n} that bwd returned", "the argument")
        for c, leaf, path in zip(given, like, tree.paths(arg_spec), strict=True):
            if not (isinstance(leaf, Tracer | np.ndarray | np.generic | float | int | complex)):
                continue
            if c is not None and shape_of(c) != shape_of(leaf):
                raise ShapeError(
                    "custom_vjp: a cotangent must have the shape of its argument",
                    got={f"argument {n}{path}": aval_of(leaf), "cotangent": aval_of(c)},
                )
            out.append(c if avals[k].dtype.kind in "fc" else None)
            k += 1
    return out


class custom_jvp(_Custom):
    """A function whose forward-mode derivative you state yourself; reverse mode transposes it.

    Args:
        f: A function of pytrees of arrays.
        nondiff_argnums: Positions of arguments that are not differentiated; they are passed to the rule first.

    `defjvp(rule)` gives the derivative: `rule(primals, tangents) -> (output, output_tangent)`, linear in the tangents,
    which are tuples like the differentiable arguments. Usable as a decorator. Semantics as `jax.custom_jvp`.

    Raises:
        ArgumentError: the function is used before `defjvp`.
        TreeError: the tangent differs in structure from the output.
        ClosureError: `f` or the rule closes over a traced value.

    Example:
        >>> import numpy as np, fnad
        >>> @fnad.custom_jvp
        ... def softplus(x):
        ...     return np.logaddexp(x, 0.0)
        >>> @softplus.defjvp
        ... def _(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return softplus(x), t / (1.0 + np.exp(-x))
        >>> fnad.grad(softplus)(0.0)
        np.float64(0.5)
    """

    kind = "custom_jvp"
    rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        self.rule = rule
        self._checked: set[Any] = set()
        return rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        user_rule = self.rule
        if user_rule is None:
            raise self._no_rule("defjvp(rule)")
        diff, static = self._positional(args, kwargs)
        leaves, rebuild = split_static(diff)
        if not any(isinstance(x, Tracer) for x in leaves):
            return self.f(*self._merge(diff, static))
        out_spec: list[tree.Spec] = []

        def rule(primals: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
            pair = user_rule(*static, tuple(rebuild(primals)), tuple(rebuild(tangents)))
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ArgumentError("custom_jvp: the rule must return (output, tangent)", got={"result": type(pair).__name__})
            outs, found = flatten_results(pair[0], self.kind)
            out_spec[:] = [found]
            dots = tree.flatten_as(found, pair[1], "the tangent that the rule returned", "the output")
            for o, t, path in zip(outs, dots, tree.paths(found), strict=True):
                if shape_of(o) != shape_of(t):
                    raise ShapeError(
                        "custom_jvp: a tangent must have the shape of its output", got={f"output{path}": aval_of(o), "tangent": aval_of(t)}
                    )
            return outs, dots

        flat = _flattened(self.kind, lambda d: self.f(*self._merge(d, static)), rebuild, out_spec)
        outs = CustomJVP(f"custom_jvp[{self.name}]", flat, self.f, rule, self._checked)(*leaves)
        return tree.unflatten(out_spec[0], outs)
