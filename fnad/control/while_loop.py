"""while_loop and fori_loop."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from fnad import tree
from fnad.control import _bodies as bodies
from fnad.control import _lanes as lanes
from fnad.control._bodies import Batched, Flags, close, derived, tidy
from fnad.control._staging import Carry, arrays, check_function, concrete, fits, lift, own_leaves
from fnad.control.cond import cond
from fnad.control.scan import run_loop
from fnad.core.aval import Aval, aval_of
from fnad.core.graph import Graph, Var, evaluate, is_recording, record
from fnad.core.lowering import While as Repetition
from fnad.core.primitive import Joint, Primitive
from fnad.core.tracer import Tracer
from fnad.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    NonFiniteError,
    ShapeError,
    UnsupportedError,
    describe_function,
    user_line,
)
from fnad.transforms._opaque import batch_size
from fnad.transforms.vmap import Same, spread
from fnad.typing import PyTree


class WhileLoop(Primitive):
    """`(*cond_consts, *body_consts, *carry) -> carry`: the body applied while the condition holds.

    Params:
        cond: Graph from `cond_consts` and the carry to a bool.
        body: Graph from `body_consts` and the carry to the next carry.
        cond_consts: Number of values that the condition closes over.
        body_consts: Number of values that the body closes over.
    """

    multiple = True
    selective = True

    def __init__(self) -> None:
        super().__init__("while_loop", register=False)

    def infer(self, *avals: Aval, body: Graph, body_consts: int, **_: Any) -> tuple[Aval, ...]:
        return tuple(v.aval for v in body.inputs[body_consts:])

    def impl(self, *args: Any, cond: Graph, body: Graph, cond_consts: int, body_consts: int) -> tuple[Any, ...]:
        n = cond_consts + body_consts
        tests, outer, state = args[:cond_consts], args[cond_consts:n], list(args[n:])
        weak = [k for k, v in enumerate(body.inputs[body_consts:]) if v.aval.weak]
        for step in itertools.count():
            for k in weak:
                state[k] = state[k].item() if isinstance(state[k], np.ndarray | np.generic) else state[k]
            try:
                if not evaluate(cond, [*tests, *state])[0]:
                    break
                state = evaluate(body, [*outer, *state])
            except NonFiniteError as error:
                raise error.inside(f"step {step} of while_loop") from None
        return tuple(state)

    def lower(self, *avals: Aval, cond: Graph, body: Graph, cond_consts: int, body_consts: int) -> Repetition:
        return Repetition(cond, body, cond_consts, body_consts, len(body.outputs))

    def prune(
        self, used: Flags, *, cond: Graph, body: Graph, cond_consts: int, body_consts: int
    ) -> tuple[dict[str, Any], list[int], list[int]]:
        """Params for the used outputs alone, and the positions of the arguments and outputs that are left."""
        n, m = cond_consts, body_consts
        read = bodies.needs(cond, (True,))
        ins, outs = bodies.carried(body, m, len(used), tuple(a or b for a, b in zip(used, read[n:], strict=True)))
        tests = [k for k in range(n) if read[k]]
        test = derived(cond, ("prune", n, used, body), lambda: bodies.restrict(cond, [*tests, *(n + k for k in outs)], [0]))
        step = derived(body, ("prune", m, used, cond), lambda: bodies.restrict(body, ins, outs))
        params = {"cond": test, "body": step, "cond_consts": len(tests), "body_consts": sum(k < m for k in ins)}
        return params, [*tests, *(n + k for k in ins)], outs

    def forward(self, args: Sequence[Any], params: dict[str, Any], active: Sequence[bool] | None = None) -> tuple[Any, Joint]:
        body, n, m = params["body"], params["cond_consts"], params["body_consts"]
        flags = [f and (active is None or active[n + k]) for k, f in enumerate(bodies.floating(body))]
        for _ in body.outputs:
            flags[m:] = [a or b for a, b in zip(flags[m:], bodies.reached(body, flags), strict=True)]
        live, line = flags[m:], user_line()

        def pull(g: Sequence[Any]) -> list[None]:
            if any(a and c is not None for a, c in zip(live, g, strict=True)):
                raise no_reverse(line)
            return [None] * len(args)

        return self(*args, **params), Joint(pull)

    def push(self, args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        cond, body, n, m = params["cond"], params["body"], params["cond_consts"], params["body_consts"]
        flags = [t is not None and f for t, f in zip(tangents[n:], bodies.floating(body), strict=True)]
        while True:
            key = tuple(flags)
            graph, consts, found = derived(body, ("push", m, key), lambda: _pushed(body, m, key))  # noqa: B023
            if found == key[m:]:
                break
            flags[m:] = found
        dots = [bodies.zeros_like(v.aval) if t is None else t for v, t in zip(body.inputs, tangents[n:], strict=True)]
        dots = [d if f else None for d, f in zip(dots, flags, strict=True)]
        extra = [d for d in dots[m:] if d is not None]
        outer = [*consts, *args[n : n + m], *(d for d in dots[:m] if d is not None)]
        test = Graph((*cond.inputs, *(Var(aval_of(d), -1) for d in extra)), (), cond.equations, cond.outputs)
        outs = self(*args[:n], *outer, *args[n + m :], *extra, cond=test, body=graph, cond_consts=n, body_consts=len(outer))
        count = len(body.outputs)
        answers = iter(outs[count:])
        values = self(*args, **params) if bodies.known_before(args, tangents) else outs[:count]
        return values, [next(answers) if f else None for f in found]

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.push(args, tangents, params)[1]

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, cond: Graph, body: Graph, cond_consts: int, body_consts: int) -> Any:
        n, m, size = cond_consts, body_consts, batch_size(args, batched)
        tests, outer, flags = tuple(batched[:n]), tuple(batched[n : n + m]), list(batched[n + m :])
        while True:
            state = tuple(flags)
            decided: Batched = derived(cond, ("batch", n, tests, state, size), lambda: _any_batched(cond, (*tests, *state), size))  # noqa: B023
            each = bool(decided.flags) and decided.flags[0]
            make = _masked if each else _plain
            key = ("batch", cond, m, each, tests, outer, state, size)
            step: Batched = derived(body, key, lambda: make(cond, body, n, m, (*tests, *outer, *state), size))  # noqa: B023
            if step.flags == state:
                break
            flags = list(step.flags)
        carry = [spread(x, size) if f and not b else x for x, b, f in zip(args[n + m :], batched[n + m :], flags, strict=True)]
        inner = [*step.consts, *(args[:n] if each else ()), *args[n : n + m]]
        params = {"cond": decided.graph, "body": step.graph, "cond_consts": n + len(decided.consts), "body_consts": len(inner)}
        with np.errstate(all="ignore"):  # examples that are done run on
            outs = self(*decided.consts, *args[:n], *inner, *carry, **params)
        return tuple(o if f else Same(o) for o, f in zip(outs, flags, strict=True))


def _pushed(body: Graph, m: int, flags: tuple[bool, ...]) -> tuple[Graph, tuple[Any, ...], tuple[bool, ...]]:
    """The body with tangents; inputs: constants, their tangents, carry, its tangents."""
    graph, found = bodies.pushed(body, flags, flags[m:])
    count, some = len(body.inputs), sum(flags[:m])
    dots = graph.inputs[count:]
    inputs = (*graph.inputs[:m], *dots[:some], *graph.inputs[m:count], *dots[some:])
    return *tidy(Graph(inputs, graph.constants, graph.equations, graph.outputs)), found


def _any_batched(cond: Graph, flags: tuple[bool, ...], size: int) -> Batched:
    """The condition for a batch: whether it holds for any example. The flag says whether it differs among them."""
    if not any(flags):
        return Batched(cond, (), (False,))
    each = bodies.batched_body(cond, flags, size)
    if not each.flags[0]:
        return each
    whole = record(lambda *xs: [np.any(evaluate(each.graph, xs)[0])], [v.aval for v in each.graph.inputs], cond)
    graph, consts = close(whole)
    return Batched(graph, (*consts, *each.consts), each.flags)


def _plain(cond: Graph, body: Graph, n: int, m: int, flags: tuple[bool, ...], size: int) -> Batched:
    """The body for a batch whose examples all take the same number of steps."""
    if not any(flags[n:]):
        return Batched(body, (), flags[n + m :])
    return bodies.batched_body(body, flags[n:], size, flags[n + m :])


def _masked(cond: Graph, body: Graph, n: int, m: int, flags: tuple[bool, ...], size: int) -> Batched:
    """The body for a batch: examples for which the condition no longer holds keep what they have."""
    tests, rest, state = flags[:n], flags[n:], flags[n + m :]
    found: list[bool] = []

    def step(*xs: Any) -> list[Any]:
        (mine,), _ = lanes.outputs(cond, [*xs[:n], *xs[n + m :]], (*tests, *state))
        given = list(xs[n:]) if lanes.harmless(body) else lanes.lend(mine, xs[n:], rest)
        new, varies = lanes.outputs(body, given, rest)
        found[:] = [f or a is not old for a, old, f in zip(new, xs[n + m :], state, strict=True)]
        full = [a if b else spread(a, size) for a, b in zip(new, varies, strict=True)]
        before = [old if f else spread(old, size) for old, f in zip(xs[n + m :], state, strict=True)]
        masked = [lanes.where(mine, a, b) for a, b in zip(full, before, strict=True)]
        return [a if f else b for a, b, f in zip(masked, new, found, strict=True)]

    avals = [*(v.aval for v in cond.inputs[:n]), *(v.aval for v in body.inputs)]
    graph = record(step, [Aval((size, *a.shape), a.dtype) if b else a for a, b in zip(avals, flags, strict=True)], body)
    return Batched(*close(graph), tuple(found))


def no_reverse(line: str) -> UnsupportedError:
    return UnsupportedError(
        "reverse mode cannot go through a while_loop, or a fori_loop with traced bounds: the number of steps to save is not known",
        got={"loop": line},
        fix="give while_loop max_steps=, or fori_loop bounds that are Python ints; forward mode (jvp, jacfwd) works as it is",
    )


loop = WhileLoop()


class OneWay(Primitive):
    """The results of a while_loop that ran as a Python loop: reverse mode ends here, as it does when the loop is recorded."""

    multiple = True
    selective = True

    def infer(self, *avals: Aval) -> tuple[Aval, ...]:
        return avals

    def impl(self, *args: Any) -> tuple[Any, ...]:
        return args

    def forward(self, args: Sequence[Any], params: dict[str, Any], active: Sequence[bool] | None = None) -> tuple[Any, Joint]:
        line = user_line()

        def pull(g: Sequence[Any]) -> NoReturn:
            raise no_reverse(line)

        return self(*args), Joint(pull)

    def push(self, args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        return self(*args), list(tangents)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return list(tangents)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> tuple[Any, ...]:
        size = batch_size(args, batched)
        return self(*(x if b else spread(x, size) for x, b in zip(args, batched, strict=True)))


one_way = OneWay("while_loop_end", register=False)


# -- what users call -----------------------------------------------------------------------------------------------------


class While:
    """One call of while_loop."""

    def __init__(
        self, cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init: PyTree, max_steps: int | None, *names: str
    ) -> None:
        name = names[0]
        check_function(cond_fun, name, "the condition")
        check_function(body_fun, name, "the body")
        self.cond_fun, self.body_fun, self.max_steps = cond_fun, body_fun, max_steps
        self.init, spec = arrays(init, name, "init")
        self.names, self.carry = names, Carry(name, spec, *names[1:])

    def test(self, leaves: Sequence[Any]) -> Any:
        p = self.cond_fun(tree.unflatten(self.carry.spec, leaves))
        aval = aval_of(p)
        if aval.shape != () or aval.dtype.kind != "b":
            error = ShapeError if aval.shape else DTypeError
            raise error(
                f"{self.names[0]}: the condition must return one bool",
                got={"result": aval, "condition": describe_function(self.cond_fun)},
                fix="compare: x > 0; reduce with np.any or np.all",
            )
        return p

    def step(self, leaves: Sequence[Any], number: int = 0) -> list[Any]:
        try:
            out = self.body_fun(tree.unflatten(self.carry.spec, leaves))
        except NonFiniteError as error:
            raise error.inside(f"step {number} of {self.names[0]}") from None
        return self.carry.leaves(out, self.body_fun)

    def result(self, leaves: Sequence[Any]) -> Any:
        return tree.unflatten(self.carry.spec, leaves)

    def staged(self) -> Any:
        if self.max_steps is not None:
            return self.bounded()
        avals = [aval_of(x) for x in self.init]

        def flat(*leaves: Any) -> list[Any]:
            outs = self.step(leaves)
            found[:] = self.carry.settled(avals, outs, self.body_fun)
            return [lift(x, a) for x, a in zip(outs, found, strict=True)]

        while True:
            found: list[Aval] = []
            graph = record(flat, avals, self.body_fun)
            if found == avals:
                break
            avals = found
        body = close(graph)
        test = close(record(lambda *leaves: [self.test(leaves)], avals, self.cond_fun))
        init = [lift(x, a) for x, a in zip(self.init, avals, strict=True)]
        params = {"cond": test.graph, "body": body.graph, "cond_consts": len(test.consts), "body_consts": len(body.consts)}
        return self.result(loop(*test.consts, *body.consts, *init, **params))

    def bounded(self) -> Any:
        """As a scan in which steps do nothing once the condition does not hold."""

        def stay(carry: Any) -> Any:
            return carry

        def go(carry: Any) -> Any:
            leaves = tree.leaves(carry)
            outs = self.step(leaves)
            avals = self.carry.settled([aval_of(x) for x in leaves], outs, self.body_fun)
            return self.result([lift(x, a) for x, a in zip(outs, avals, strict=True)])

        def step(carry: Any, _: Any) -> tuple[Any, None]:
            return cond(self.test(tree.leaves(carry)), go, stay, carry), None

        return run_loop(step, self.result(self.init), None, self.max_steps, names=self.names, staged=True)[0]

    def eager(self) -> Any:
        """As a Python loop, until a condition has no single value."""
        avals = [aval_of(x) for x in self.init]
        state, steps = self.init, 0
        while steps != self.max_steps:
            p = concrete(self.test(state))
            if isinstance(p, Tracer):
                self.init, self.max_steps = state, None if self.max_steps is None else self.max_steps - steps
                return self.staged()
            if not p:
                break
            while True:
                outs = self.step(state if steps else own_leaves(state), steps)
                settled = avals if all(map(fits, outs, avals)) else self.carry.settled(avals, outs, self.body_fun)
                if settled == avals or steps:
                    break
                avals, state = settled, [lift(x, a) for x, a in zip(state, settled, strict=True)]
            state = outs if settled is avals else [lift(x, a) for x, a in zip(outs, settled, strict=True)]
            avals, steps = settled, steps + 1
        state = state if steps else own_leaves(state)
        if self.max_steps is None:
            traced = [k for k, x in enumerate(state) if isinstance(x, Tracer)]
            for k, x in zip(traced, one_way(*(state[k] for k in traced)), strict=True):
                state[k] = x
        return self.result(state)


def run_while(loop: While) -> Any:
    if not is_recording():
        return loop.eager()
    try:
        return loop.staged()
    except ConcretizationError:
        if any(map(bodies.is_abstract, loop.init)):
            raise
        return loop.eager()


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: PyTree, *, max_steps: int | None = None) -> PyTree:
    """A loop that goes on while a condition holds.

    It computes what this does, and under `jit` it is compiled:

        while cond_fun(value):
            value = body_fun(value)
        return value

    Args:
        cond_fun: `value -> bool`.
        body_fun: `value -> value`; it must keep structure, shapes and dtypes.
        init_val: The first value: a pytree of arrays.
        max_steps: The loop ends after so many steps even if the condition still holds. With a bound, reverse mode can go
            through it (what a recorded loop keeps is then as much as for this many steps).

    Returns:
        The last value. Under `vmap` the loop goes on until it is done for all examples; each keeps its own last value.
        Semantics as `jax.lax.while_loop`.

    Raises:
        TreeError, ShapeError, DTypeError: the value changes its structure, a shape or a dtype; the condition is not one bool.
        UnsupportedError: (by `grad`, `vjp`) reverse mode without `max_steps`.

    Example:
        >>> import numpy as np, fnad
        >>> newton = lambda a: fnad.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a, max_steps=20)
        >>> fnad.value_and_grad(newton)(9.0)
        (np.float64(3.0), np.float64(0.16666666666666669))
    """
    if max_steps is not None:
        try:
            max_steps = operator.index(max_steps)
        except TypeError:
            max_steps = -1
        if max_steps < 0:
            raise ArgumentError("while_loop: max_steps must be a number of steps", got={"max_steps": max_steps})
    return run_while(While(cond_fun, body_fun, init_val, max_steps, "while_loop", "value"))


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: PyTree, *, unroll: int | bool = 1) -> PyTree:
    """A loop over integers.

    It computes what this does, and under `jit` it is compiled:

        for i in range(lower, upper):
            value = body_fun(i, value)
        return value

    Args:
        lower: The first integer.
        upper: The first integer that is too large. Where a bound is traced (an argument of a function under `jit`), the loop
            is a `while_loop`, through which reverse mode cannot go.
        body_fun: `(i, value) -> value`; it must keep structure, shapes and dtypes.
        init_val: The first value: a pytree of arrays.
        unroll: As of `scan`.

    Returns:
        The last value. Semantics as `jax.lax.fori_loop`.

    Raises:
        DTypeError: a bound is not an integer.
        TreeError, ShapeError, DTypeError: the value changes its structure, a shape or a dtype.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.grad(lambda x: fnad.fori_loop(0, 3, lambda i, y: y * x + i, 1.0))(2.0)
        np.float64(13.0)
    """
    check_function(body_fun, "fori_loop", "the body")
    for what, bound in (("lower", lower), ("upper", upper)):
        aval = aval_of(bound)
        if aval.shape != () or aval.dtype.kind not in "iu":
            raise DTypeError("fori_loop: bounds must be integers", got={what: aval}, fix="round it and convert it, int(n) or n.astype(int)")
    names = ("fori_loop", "value", "[1]")
    first, last = concrete(lower), concrete(upper)
    if isinstance(first, Tracer) or isinstance(last, Tracer):

        def go_on(c: Any) -> Any:
            return c[0] < upper

        def step(c: Any) -> Any:
            return c[0] + 1, body_fun(c[0], c[1])

        return run_while(While(go_on, step, (lower, init_val), None, *names))[1]
    first, last = operator.index(first), operator.index(last)
    body = lambda c, _: ((c[0] + 1, body_fun(c[0], c[1])), None)  # noqa: E731
    return run_loop(body, (first, init_val), None, max(last - first, 0), unroll=unroll, names=names)[0][1]
