"""cond and switch: one of several functions, chosen by a value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad import tree
from fnad.control import _bodies as bodies
from fnad.control import _lanes as lanes
from fnad.control._bodies import Batched, Body, Flags, close, derived, output_avals, tidy, unify
from fnad.control._staging import arrays, check_function, concrete, join, lift
from fnad.core.aval import Aval, aval_of
from fnad.core.graph import Graph, evaluate, is_recording, record, without_effects
from fnad.core.lowering import Branch
from fnad.core.primitive import Joint, Primitive
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError, TreeError, describe_function
from fnad.transforms._opaque import batch_size
from fnad.transforms.vmap import Same
from fnad.typing import PyTree


class Cond(Primitive):
    """`(index, *operands) -> outputs` of the branch at `index`, which is an integer in range, or a bool for two branches.

    Params:
        branches: Graphs without constants, with equal inputs (the operands) and equal types of outputs.
    """

    multiple = True
    selective = True

    def __init__(self) -> None:
        super().__init__("cond", register=False)

    def infer(self, index: Aval, *avals: Aval, branches: tuple[Graph, ...]) -> tuple[Aval, ...]:
        return tuple(output_avals(branches[0]))

    def impl(self, index: Any, *operands: Any, branches: tuple[Graph, ...]) -> tuple[Any, ...]:
        return tuple(evaluate(branches[int(index)], operands))

    def lower(self, *avals: Aval, branches: tuple[Graph, ...]) -> Branch:
        return Branch(branches)

    def prune(self, used: Flags, *, branches: tuple[Graph, ...]) -> tuple[dict[str, Any], list[int], list[int]]:
        """Params for the used outputs alone, and the positions of the arguments and outputs that are left."""
        outs = [k for k, f in enumerate(used) if f]
        read = [k for k, flags in enumerate(zip(*(bodies.needs(b, used) for b in branches), strict=True)) if any(flags)]
        graphs = derived(branches[0], ("prune", branches[1:], used), lambda: tuple(bodies.restrict(b, read, outs) for b in branches))
        return {"branches": graphs}, [0, *(k + 1 for k in read)], outs

    def forward(self, args: Sequence[Any], params: dict[str, Any], active: Sequence[bool] | None = None) -> tuple[Any, Joint]:
        branches, (index, *operands) = params["branches"], args
        wanted = tuple(f and (active is None or active[k + 1]) for k, f in enumerate(bodies.floating(branches[0])))
        outs = self(*args, **params)
        live = [any(flags) for flags in zip(*(bodies.reached(b, wanted) for b in branches), strict=True)]
        if not any(live):
            return outs, Joint(lambda g: [None] * len(args))
        used = _backward(branches, wanted, tuple(live))[2]
        kept = {k: operands[k] for k in used}

        def pull(g: Sequence[Any]) -> list[Any]:
            out: list[Any] = [None] * len(args)
            given = tuple(a and c is not None for a, c in zip(live, g, strict=True))
            if any(given):
                graphs, consts, read, found = _backward(branches, wanted, given)
                answers = iter(
                    self(index, *consts, *(kept[k] for k in read), *(c for c, f in zip(g, given, strict=True) if f), branches=graphs)
                )
                out[1:] = [next(answers) if f else None for f in found]
            return out

        return outs, Joint(pull)

    def push(self, args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        branches = params["branches"]
        flags = tuple(t is not None and f for t, f in zip(tangents[1:], bodies.floating(branches[0]), strict=True))
        graphs, consts, found = derived(branches[0], ("push", branches[1:], flags), lambda: _pushed(branches, flags))
        outs = self(args[0], *consts, *args[1:], *(t for t, f in zip(tangents[1:], flags, strict=True) if f), branches=graphs)
        count = len(found)
        dots = iter(outs[count:])
        values = self(*args, **params) if bodies.known_before(args, tangents) else outs[:count]
        return values, [next(dots) if f else None for f in found]

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.push(args, tangents, params)[1]

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, branches: tuple[Graph, ...]) -> tuple[Any, ...]:
        size = batch_size(args, batched)
        if batched[0] and not all(map(lanes.harmless, branches)):
            return tuple(self._apart(args, tuple(batched[1:]), branches, size))
        if batched[0]:
            avals = [Aval((), aval_of(args[0]).dtype), *(v.aval for v in branches[0].inputs)]
            key = ("select", branches[1:], avals[0], tuple(batched), size)
            body: Batched = derived(branches[0], key, lambda: bodies.batched_function(_selection(branches), avals, tuple(batched), size))
            with np.errstate(all="ignore"):  # examples also run through the branches that are not theirs
                outs = evaluate(body.graph, [*body.consts, *args])
        else:
            flags = tuple(batched[1:])
            graphs, consts, found = derived(branches[0], ("batch", branches[1:], flags, size), lambda: _batched(branches, flags, size))
            body = Batched(graphs[0], consts, found)
            outs = list(self(args[0], *consts, *args[1:], branches=graphs))
        return tuple(o if f else Same(o) for o, f in zip(outs, body.flags, strict=True))

    def _apart(self, args: Sequence[Any], batched: Flags, branches: tuple[Graph, ...], size: int) -> list[Any]:
        """The outputs for an index per example; a branch that may do harm runs only if an example needs it, and for such examples only."""
        index, *operands = args
        found: list[Any] = []
        for k, b in enumerate(branches):
            mine = np.equal(index, k)
            if lanes.harmless(b):
                with np.errstate(all="ignore"):
                    outs = lanes.for_all(b, operands, batched, size)
            else:
                graphs, consts = derived(b, ("for some", batched, size), lambda: lanes.for_some(b, batched, size))  # noqa: B023
                outs = self(np.any(mine), *consts, mine, *operands, branches=graphs)
            found = [lanes.where(mine, a, c) for a, c in zip(outs, found or outs, strict=True)]
        return found


def _selection(branches: tuple[Graph, ...]) -> Callable[..., list[Any]]:
    """All branches on the same operands, and the results of the chosen one."""

    def select(index: Any, *operands: Any) -> list[Any]:
        found, *others = (evaluate(b, operands) for b in branches)
        for k, outs in enumerate(others, 1):
            mine = index if aval_of(index).dtype.kind == "b" else index == k
            found = [b if a is b else np.where(mine, b, a) for a, b in zip(found, outs, strict=True)]
        return found

    return select


def _batched(branches: tuple[Graph, ...], flags: Flags, size: int) -> tuple[tuple[Graph, ...], tuple[Any, ...], Flags]:
    found = tuple(map(any, zip(*(bodies.batched_body(b, flags, size).flags for b in branches), strict=True)))
    each = [bodies.batched_body(b, flags, size, found) for b in branches]
    return *unify([Body(b.graph, b.consts) for b in each]), found


def _pushed(branches: tuple[Graph, ...], flags: Flags) -> tuple[tuple[Graph, ...], tuple[Any, ...], Flags]:
    none = (False,) * len(branches[0].outputs)
    found = tuple(map(any, zip(*(bodies.pushed(b, flags, none).found for b in branches), strict=True)))
    return *unify([tidy(bodies.pushed(b, flags, found).graph) for b in branches]), found


def _backward(branches: tuple[Graph, ...], wanted: Flags, given: Flags) -> tuple[tuple[Graph, ...], tuple[Any, ...], list[int], Flags]:
    """Graphs from operands and cotangents to cotangents; their constants; which operands they read; which get a cotangent."""
    return derived(branches[0], ("pull", branches[1:], wanted, given), lambda: _pulled(branches, wanted, given))


def _pulled(branches: tuple[Graph, ...], wanted: Flags, given: Flags) -> tuple[tuple[Graph, ...], tuple[Any, ...], list[int], Flags]:
    count, none = len(wanted), (False,) * len(wanted)
    branches = tuple(map(without_effects, branches))
    found = tuple(map(any, zip(*(bodies.pulled(b, wanted, given, none, none).found for b in branches), strict=True)))
    graphs = []
    for b in branches:
        raw = bodies.pulled(b, wanted, given, none, found).graph
        graphs.append(Graph(raw.inputs, raw.constants, raw.equations, raw.outputs[len(b.outputs) :]))
    every = [bodies.needs(g, (True,) * len(g.outputs)) for g in graphs]
    read = [k for k in range(count) if any(flags[k] for flags in every)]
    tidied = [tidy(Graph((*(g.inputs[k] for k in read), *g.inputs[count:]), g.constants, g.equations, g.outputs)) for g in graphs]
    return *unify(tidied), read, found


select = Cond()


# -- what users call -----------------------------------------------------------------------------------------------------


def _chosen(index: Any, functions: Sequence[Callable[..., Any]], operands: tuple[Any, ...], name: str) -> Any:
    """Record all branches, and choose among them when the value is known."""
    leaves, spec = arrays(operands, name, "the operands")
    avals = [aval_of(x) for x in leaves]
    found: list[Body] = []
    specs: list[tree.Spec] = []
    for f in functions:

        def flat(*xs: Any, f: Callable[..., Any] = f) -> list[Any]:
            outs, out_spec = arrays(f(*tree.unflatten(spec, xs)), name, "the result of a branch")
            specs.append(out_spec)
            return outs

        found.append(close(_recorded(flat, avals, f)))
    graphs, consts = unify(_agreeing(found, specs, functions, name))
    outs = select(index, *consts, *leaves, branches=graphs)
    return tree.unflatten(specs[0], outs)


def _recorded(flat: Callable[..., list[Any]], avals: Sequence[Aval], f: Callable[..., Any]) -> Graph:
    """The graph of a branch with all that it computes, of what it closes over too; but a branch may look at values that are known."""
    try:
        return record(flat, avals, f, capture=True)
    except ConcretizationError:
        if is_recording():
            raise
        return record(flat, avals, f)


def _agreeing(found: list[Body], specs: list[tree.Spec], functions: Sequence[Any], name: str) -> list[Body]:
    """Bodies with results of equal types; Python scalars among the results give way."""
    shown = [f"branch {k}, {describe_function(f)}" for k, f in enumerate(functions)]
    rule = f"{name}: all branches must return"
    for k, s in enumerate(specs):
        if s != specs[0]:
            path, first, other = tree.first_difference(specs[0], s)
            raise TreeError(f"{rule} the same pytree structure", got={f"{shown[0]} at {path or 'the root'}": first, shown[k]: other})
    columns = [output_avals(b.graph) for b in found]
    joined: list[Aval] = columns[0]
    for k, column in enumerate(columns):
        for i, (a, b) in enumerate(zip(joined, column, strict=True)):
            both = join(a, b)
            if both is None:
                path = tree.paths(specs[0])[i]
                got = {f"result{path} of {shown[0]}": a, f"result{path} of {shown[k]}": b}
                if a.shape != b.shape:
                    raise ShapeError(f"{rule} results of the same shapes", got=got, fix="np.broadcast_to or np.reshape one of them")
                raise DTypeError(f"{rule} results of the same dtypes", got=got, fix=f"cast one of them, .astype(np.{a.dtype})")
            joined = [*joined[:i], both, *joined[i + 1 :]]
    out = []
    for (graph, consts), column in zip(found, columns, strict=True):
        if column != joined:
            lifted = lambda *xs: [lift(o, a) for o, a in zip(evaluate(graph, xs), joined, strict=True)]  # noqa: B023, E731
            graph = record(lifted, [v.aval for v in graph.inputs])
        out.append(Body(graph, consts))
    return out


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: PyTree) -> Any:
    """One of two functions, chosen by a value that need not be known when the program is recorded.

    Where `pred` has a value, this is `true_fun(*operands) if pred else false_fun(*operands)`. Where it is recorded, both
    functions become part of the program and one of them runs. Under `vmap` with a `pred` per example both run on all examples,
    and the results are selected; gradients of the branch not taken are zero.

    Args:
        pred: A scalar; zero and False choose `false_fun`.
        true_fun: A function of the operands.
        false_fun: The same, with results of the same structure, shapes and dtypes.
        operands: Pytrees of arrays. The functions may also close over values.

    Returns:
        The result of the chosen function. Semantics as `jax.lax.cond`.

    Raises:
        ShapeError: `pred` is not a scalar.
        TreeError, ShapeError, DTypeError: (recorded) the results of the functions differ.

    Example:
        >>> import numpy as np, fnad
        >>> f = lambda x: fnad.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)
        >>> fnad.vmap(fnad.grad(f))(np.array([4.0, -1.0]))
        array([0.25, 0.  ])
    """
    check_function(true_fun, "cond", "true_fun")
    check_function(false_fun, "cond", "false_fun")
    aval = aval_of(pred)
    if aval.shape != ():
        raise ShapeError("cond: pred must be a scalar", got={"pred": aval}, fix="reduce it with np.all or np.any, or select with np.where")
    known = concrete(pred)
    if not isinstance(known, Tracer):
        return true_fun(*operands) if known else false_fun(*operands)
    return _chosen(pred if aval.dtype.kind == "b" else pred != 0, (false_fun, true_fun), operands, "cond")


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: PyTree) -> Any:
    """One of several functions, chosen by an integer; like `cond`.

    Args:
        index: An integer scalar; values outside the range of `branches` count as the nearest one inside.
        branches: Functions of the operands, with results of the same structure, shapes and dtypes.
        operands: Pytrees of arrays.

    Returns:
        The result of the chosen function. Semantics as `jax.lax.switch`.

    Raises:
        ArgumentError: there are no branches.
        ShapeError, DTypeError: `index` is not an integer scalar.
        TreeError, ShapeError, DTypeError: (recorded) the results of the functions differ.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.switch(1, [np.sin, np.cos, np.tanh], 0.0)
        np.float64(1.0)
    """
    given: Any = branches
    if not isinstance(given, Sequence):
        got = {"branches": getattr(given, "__name__", type(given).__name__)}
        raise ArgumentError("switch: the branches are a list of functions", got=got, fix="fnad.switch(index, [f, g], *operands)")
    branches = tuple(branches)
    if not branches:
        raise ArgumentError("switch: at least one branch is needed", got={"branches": 0})
    for k, f in enumerate(branches):
        check_function(f, "switch", f"branch {k}")
    aval = aval_of(index)
    if aval.shape != ():
        raise ShapeError("switch: index must be a scalar", got={"index": aval})
    if aval.dtype.kind not in "iu":
        raise DTypeError("switch: index must be an integer", got={"index": aval}, fix="use cond for a bool, or .astype(int)")
    known = concrete(index)
    if not isinstance(known, Tracer):
        return branches[min(max(operator.index(known), 0), len(branches) - 1)](*operands)
    if len(branches) == 1:
        return branches[0](*operands)
    return _chosen(np.clip(index, 0, len(branches) - 1), branches, operands, "switch")
