"""Recorded computations: a flat list of equations on variables, in the order they happened."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from fnad import tree
from fnad._config import CHANGED, option, scoped
from fnad.core.aval import PYTHON_SCALARS, Aval, aval_of
from fnad.core.finite import FINITE, level, made, worst
from fnad.core.keep import BY_REFERENCE, Keeper, Referred
from fnad.core.place import Place, at, here
from fnad.core.primitive import Primitive
from fnad.core.tracer import CAPTURING, Trace, Tracer, check_alive, later
from fnad.errors import ConcretizationError, DTypeError, ShapeError, user_line


class Var:
    """A value of the graph: an input, a constant, or an equation's output."""

    __slots__ = ("aval", "number")

    def __init__(self, aval: Aval, number: int) -> None:
        self.aval, self.number = aval, number


@dataclass(frozen=True, slots=True)
class Literal:
    """A scalar written into an equation."""

    value: Any


@dataclass(frozen=True, slots=True)
class Equation:
    """`outputs = primitive(*inputs, **params)`, and the user's line that asked for it."""

    primitive: Primitive
    inputs: tuple[Var | Literal, ...]
    params: dict[str, Any]
    outputs: tuple[Var, ...]
    where: Place | None

    @property
    def line(self) -> str:
        return str(self.where or "unknown")

    @property
    def has_effect(self) -> bool:
        """Whether it does something besides computing, itself or in a graph that it holds: then it is no dead code."""
        if self.primitive.effect:
            return True
        parts = itertools.chain.from_iterable(p if isinstance(p, tuple) else (p,) for p in self.params.values())
        return any(e.has_effect for p in parts if isinstance(p, Graph) for e in p.equations)


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A recorded function of `inputs`; `constants` are the arrays it closed over, by reference. `print` shows it.

    Graphs compare by identity, so that they can be parameters (the bodies of loops); `derived` is for what transforms have
    made of one, by a key of theirs.
    """

    inputs: tuple[Var, ...]
    constants: tuple[tuple[Var, Any], ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Var | Literal, ...]
    derived: dict[Any, Any] = field(default_factory=dict, init=False)

    __fnad_leaf__ = True

    def __str__(self) -> str:
        return "\n".join(self._lines(dict(zip(self._variables(), _names(), strict=False))))

    __repr__ = __str__

    def _lines(self, names: dict[Var, str]) -> Iterator[str]:
        """Its text: inputs, constants, equations, outputs."""

        def show(v: Var | Literal) -> str:
            return repr(v.value) if isinstance(v, Literal) else names[v]

        def typed(v: Var) -> str:
            return f"{names[v]}:{v.aval}"

        yield f"inputs    {' '.join(map(typed, self.inputs))}"
        if self.constants:
            yield f"constants {' '.join(typed(v) for v, _ in self.constants)}"
        for e in self.equations:
            inner = {k: v for k, v in sorted(e.params.items()) if _is_graphs(v)}
            params = "".join(f" {k}={v}" for k, v in sorted(e.params.items()) if k not in inner)
            text = f"  {' '.join(map(typed, e.outputs))} = {e.primitive.name}{params} {' '.join(map(show, e.inputs))}"
            for k, v in inner.items():
                for title, graph in [(k, v)] if isinstance(v, Graph) else [(f"{k}[{i}]", g) for i, g in enumerate(v)]:
                    text += f"\n    {title}:\n{textwrap.indent(str(graph), '      ')}"
            yield text
        yield f"outputs   {' '.join(map(show, self.outputs))}"

    def _variables(self) -> Iterator[Var]:
        yield from self.inputs
        yield from (v for v, _ in self.constants)
        for e in self.equations:
            yield from e.outputs


def compare(before: Graph, after: Graph) -> str:
    """Two graphs on common variables as one text, under common names: "-" marks what is gone, "+" what is new."""
    names = dict(zip(before._variables(), _names(), strict=False))
    fresh = (name for name in _names() if name not in names.values())
    names.update((v, next(fresh)) for v in after._variables() if v not in names)
    old, new = (list(g._lines(names)) for g in (before, after))
    rows = []
    for how, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        rows += [textwrap.indent(text, "  ") for text in old[i:j]] if how == "equal" else [textwrap.indent(text, "- ") for text in old[i:j]]
        rows += [] if how == "equal" else [textwrap.indent(text, "+ ") for text in new[k:m]]
    return "\n".join(rows)


def _is_graphs(v: Any) -> bool:
    return isinstance(v, Graph) or (isinstance(v, tuple) and bool(v) and all(isinstance(g, Graph) for g in v))


def _names() -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for n in itertools.count(1):
        yield from map("".join, itertools.product(letters, repeat=n))


class RecordTracer(Tracer):
    """A value of which only shape and dtype are known."""

    __slots__ = ("_aval", "variable")

    def __init__(self, trace: RecordTrace, var: Var) -> None:
        self._trace, self.variable, self._aval = trace, var, var.aval

    @property
    def aval(self) -> Aval:
        return self._aval

    def _concrete(self, wanted: str) -> NoReturn:
        raise ConcretizationError(
            f"{wanted} needs a value, but while a function is recorded only shapes and dtypes are known",
            got={"value": repr(self), "at": user_line()},
            fix=later("advice").needed(wanted, self._plain, flag=self._aval.weak and self._aval.dtype.kind == "b"),
        )


class RecordTrace(Trace):
    """Collects equations instead of computing."""

    __slots__ = ("constants", "equations", "keeper", "numbers", "outer", "referred")
    knows_values = False

    def __init__(self, function: Any, keeper: Keeper | None = None) -> None:
        super().__init__("recording", function)
        self.keeper = keeper
        self.outer = BY_REFERENCE.get()
        self.referred = Referred()
        self.equations: list[Equation] = []
        self.constants: dict[int, tuple[Var, Any]] = {}  # by identity; the value is held, so that ids stay unique
        self.numbers = itertools.count()

    def new(self, aval: Aval) -> RecordTracer:
        return RecordTracer(self, Var(aval, next(self.numbers)))

    def operand(self, x: Any) -> Var | Literal:
        """A value as an equation names it: one of its own, a scalar, or a constant of the graph."""
        check_alive(x)
        if isinstance(x, RecordTracer) and x._trace is self:
            return x.variable
        if x.__class__ in PYTHON_SCALARS or isinstance(x, np.generic):
            return Literal(x)
        if not isinstance(x, Tracer | np.ndarray):
            x = np.asarray(x)
        if x.dtype.kind not in "biufc":
            raise DTypeError(
                "a recorded function works on arrays of numbers",
                got={"dtype": x.dtype, "at": user_line()},
                fix="np.stack([a, b]) makes an array of traced values",
            )
        if isinstance(x, np.ndarray) and self.keeper is not None:
            x = self.keeper.keep(x)
        if isinstance(x, np.ndarray) and x.ndim and not any(x.strides):
            freeze(x)
        if id(x) in self.constants and self.referred.changed(x):
            self.constants[-next(self.numbers)] = self.constants.pop(id(x))[0], self.referred.before(x)
        if id(x) not in self.constants:
            self.constants[id(x)] = Var(aval_of(x), next(self.numbers)), x
            if isinstance(x, np.ndarray) and self.keeper is None:
                self.referred.meet(x)
        return self.constants[id(x)][0]

    def settle(self) -> None:
        """Constants that changed since they were used become what they were."""
        for key, (var, x) in self.constants.items():
            if self.referred.changed(x):
                self.constants[key] = var, self.referred.before(x)

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not self.alive:
            raise self.leaked()
        inner = getattr(primitive, "graph", None)
        if inner is not None:  # a compiled function: its equations join those around it
            return tuple(evaluate(inner, args))
        try:
            answer = primitive.infer(*map(aval_of, args), **params)
        except (ShapeError, DTypeError) as error:
            raise error.located() from None
        outs = [self.new(a) for a in (answer if primitive.multiple else (answer,))]
        if outs and outs[0].dtype.kind in "iu" and isinstance(getattr(primitive, "function", None), np.ufunc):
            for a in args:
                if a.__class__ is int:
                    outs[0].dtype.type(a)  # raises if it is out of bounds, as NumPy does
        self.equations.append(Equation(primitive, tuple(map(self.operand, args)), params, tuple(o.variable for o in outs), here()))
        return tuple(outs) if primitive.multiple else outs[0]


_recording: ContextVar[RecordTrace | None] = ContextVar("recording", default=None)


def is_recording() -> bool:
    """Whether a function is being recorded: loops then become one equation. It decides the form of a result, not its value."""
    return _recording.get() is not None


def current_recording() -> RecordTrace | None:
    """What records at the moment, if anything does: for operations that have no traced operand and belong to the program all the same."""
    return _recording.get()


def freeze(x: np.ndarray[Any, Any]) -> None:
    """Mark an array that repeats one number as constant if nobody else holds that number's memory."""
    if isinstance(x.base, np.ndarray) and sys.getrefcount(x.base) <= 2:  # x itself and this call
        x.base.flags.writeable = False


def by_reference(values: list[Any], level: int) -> list[Any]:
    """The operands of a transform's operation, with plain arrays as constants of the graph that it is recorded in, if it is.

    What a transform computes from them alone is then recorded as well: it follows later changes of their contents. A recording
    that began inside of the transform (the body of a loop) ends before it, and is none of its business.
    """
    trace = BY_REFERENCE.get()
    while trace is not None and trace.level > level:
        trace = trace.outer
    if trace is None or not any(isinstance(v, Tracer) for v in values):
        return values
    return [RecordTracer(trace, trace.operand(v)) if v.__class__ is np.ndarray and not v.dtype.hasobject else v for v in values]


def record(
    f: Callable[..., Sequence[Any]], avals: Sequence[Aval], function: Any = None, keeper: Keeper | None = None, *, capture: bool = False
) -> Graph:
    """Run `f` on tracers of the given shapes and dtypes; the graph of what it did. `f` returns a flat sequence.

    With a keeper, arrays that become constants are guarded against being overwritten later; without one, the graph sees
    their contents at each evaluation.

    With `capture` the graph also holds what `f` does with traced values it closes over. Otherwise that is left to their own
    transforms, as if it had been done before: good for the body of a loop, wrong for a branch that may not be taken.
    """
    trace = RecordTrace(function or f, keeper)
    before = _recording.set(trace)
    referring = BY_REFERENCE.set(trace if keeper is None else BY_REFERENCE.get())
    captured = CAPTURING.set(trace) if capture else None
    try:
        inputs = [trace.new(a) for a in avals]
        outputs = tuple(trace.operand(_returned(o)) for o in f(*inputs))
        trace.settle()
    except TypeError as error:
        better = later("advice").of_foreign(error)
        if better is None:
            raise
        raise better from error
    finally:
        if captured is not None:
            CAPTURING.reset(captured)
        BY_REFERENCE.reset(referring)
        _recording.reset(before)
        trace.close()
    return Graph(tuple(i.variable for i in inputs), tuple(trace.constants.values()), tuple(trace.equations), outputs)


def without_effects(graph: Graph) -> Graph:
    """The same computation and nothing else: what computes values again does not print them again."""
    if not any(e.has_effect for e in graph.equations):
        return graph

    def pure(x: Any) -> Any:
        return without_effects(x) if isinstance(x, Graph) else tuple(map(pure, x)) if isinstance(x, tuple) else x

    kept = (e for e in graph.equations if not e.primitive.effect)
    equations = [dataclasses.replace(e, params={k: pure(v) for k, v in e.params.items()}) if e.has_effect else e for e in kept]
    return Graph(graph.inputs, graph.constants, tuple(equations), graph.outputs)


def _returned(x: Any) -> Any:
    """A result, which must be an array of numbers or a number."""
    if isinstance(x, Tracer | np.ndarray | np.generic | int | float | complex):
        return x
    raise DTypeError(
        "a recorded function returns arrays of numbers",
        got={"result": f"{type(x).__name__}: {x!r:.60}"},
        fix="leave out what is no array: it does not depend on the values of the arguments, so it is known without a call",
    )


def evaluate(graph: Graph, args: Sequence[Any]) -> list[Any]:
    """The outputs of a graph for plain arrays or tracers as inputs."""
    if len(args) != len(graph.inputs):
        raise ShapeError("evaluate: one argument per input of the graph", got={"inputs": len(graph.inputs), "arguments": len(args)})
    if CHANGED.get() and option("debug_nans") and not any(isinstance(x, Tracer) for x in args):
        return _examined(graph, args)
    values = _evaluated(graph, args)
    return [_read(values, v) for v in graph.outputs]


def _read(values: dict[Var, Any], v: Var | Literal) -> Any:
    return v.value if isinstance(v, Literal) else values[v]


def _evaluated(graph: Graph, args: Sequence[Any]) -> dict[Var, Any]:
    """The values of all variables."""
    values: dict[Var, Any] = dict(zip(graph.inputs, args, strict=True))
    values.update(graph.constants)
    recorded = is_recording()
    for e in graph.equations:
        inputs = [_read(values, v) for v in e.inputs]
        if recorded:
            with at(e.where):
                out = e.primitive(*inputs, **e.params)
        else:
            out = e.primitive(*inputs, **e.params)
        values.update(zip(e.outputs, out if e.primitive.multiple else (out,), strict=True))
    return values


def _examined(graph: Graph, args: Sequence[Any]) -> list[Any]:
    """The outputs; if one is not finite, the first operation is named from which that comes."""
    with scoped(debug_nans=False), np.errstate(all="ignore"):
        values = _evaluated(graph, args)
    outs = [_read(values, v) for v in graph.outputs]
    if worst(outs) <= worst([*args, *(x for _, x in graph.constants)]):
        return outs
    levels = {v: level(x) for v, x in values.items()}
    bad = {v for v in graph.outputs if isinstance(v, Var) and levels[v] > FINITE}
    first: Equation | None = None
    for e in reversed(graph.equations):
        if not bad.isdisjoint(e.outputs):
            reached = [v for v in e.inputs if isinstance(v, Var) and levels[v] > FINITE]
            bad.update(reached)
            given = max((levels[v] for v in reached), default=worst([v.value for v in e.inputs if isinstance(v, Literal)]))
            if max(levels[v] for v in e.outputs) > given:
                first = e
    if first is not None:
        inputs = [_read(values, v) for v in first.inputs]
        with at(first.where), np.errstate(all="ignore"):
            first.primitive.examine(*inputs, **first.params)
        name, of = first.primitive.name, first.where.backward_of if first.where else ""
        raise made(f"{name}, in the backward pass of {of}," if of else name, inputs, [values[v] for v in first.outputs], first.where)
    return outs


def evaluate_until(
    graph: Graph, args: Sequence[Any], kinds: tuple[type[Exception], ...]
) -> tuple[list[Any], tuple[Equation, Exception] | None]:
    """The outputs of a graph; or the first equation that raises an error of some kinds, and the error."""
    values: dict[Any, Any] = dict(zip(graph.inputs, args, strict=True))
    values.update(graph.constants)
    for e in graph.equations:
        try:
            with np.errstate(all="ignore"):
                args = [v.value if isinstance(v, Literal) else values[v] for v in e.inputs]
                out = e.primitive(*args, **e.params)
                if out.__class__ is int and isinstance(getattr(e.primitive, "function", None), np.ufunc):
                    exact = int(e.primitive.function(*(np.array(x, object) for x in args)))  # type: ignore[attr-defined]
                    if exact != out:
                        raise OverflowError(f"Python integer {exact} does not fit 64 bits")
        except kinds as error:
            return [], (e, error)
        values.update(zip(e.outputs, out if e.primitive.multiple else (out,), strict=True))
    return [v.value if isinstance(v, Literal) else values[v] for v in graph.outputs], None


def flat_function(f: Callable[..., Any], spec: tree.Spec) -> tuple[Callable[..., list[Any]], list[tree.Spec]]:
    """`f` as a function of the leaves of its (args, kwargs); the structure of its result is put into the returned list."""
    out_spec: list[tree.Spec] = []

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = tree.unflatten(spec, leaves)
        outs, found = tree.flatten(f(*args, **kwargs))
        out_spec[:] = [found]
        return outs

    return flat, out_spec


def make_graph(f: Callable[..., Any]) -> Callable[..., Graph]:
    """Record what a function does, without computing it.

    Args:
        f: A function of pytrees of arrays.

    Returns:
        A function of the same arguments (arrays, or anything with `shape` and `dtype`) that returns the `Graph`;
        printing it shows one line per primitive.

    Raises:
        ConcretizationError: `f` needs the value of an array (Python `if`, `int()`, boolean masks).

    Example:
        >>> import numpy as np, fnad
        >>> print(fnad.make_graph(lambda x: np.sum(np.tanh(x) * 2.0))(np.ones(3)))
        inputs    a:float64[3]
          b:float64[3] = tanh a
          c:float64[3] = multiply b 2.0
          d:float64[] = sum axis=(0,) c
        outputs   d
    """

    return lambda *args, **kwargs: _record_call(f, args, kwargs)[0]


def _record_call(f: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Graph, list[tree.Spec]]:
    """The graph of one call, as a function of its arrays; what is no array is passed on as it is."""
    leaves, spec = tree.flatten((args, kwargs))
    arrays = [i for i, x in enumerate(leaves) if _is_array(x)]
    flat, out_spec = flat_function(f, spec)

    def of_arrays(*values: Any) -> list[Any]:
        full = list(leaves)
        for i, v in zip(arrays, values, strict=True):
            full[i] = v
        return flat(*full)

    return record(of_arrays, [_aval_like(leaves[i]) for i in arrays], f), out_spec


def array_leaves(leaves: Sequence[Any]) -> list[Any]:
    """Those of the leaves of a call which become inputs of its graph."""
    return [x for x in leaves if _is_array(x)]


def _is_array(x: Any) -> bool:
    return x.__class__ in PYTHON_SCALARS or (hasattr(x, "shape") and hasattr(x, "dtype"))


def eval_shape(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes a function would return, without computing anything.

    Args:
        f: A function of pytrees of arrays.
        args: Its arguments: arrays, or anything with `shape` and `dtype`; other values are passed on as they are.
        kwargs: Its keyword arguments.

    Returns:
        The result's pytree with an object that has `.shape` and `.dtype` for each leaf.

    Raises:
        ConcretizationError: as `make_graph`.

    Example:
        >>> import numpy as np, fnad
        >>> print(fnad.eval_shape(np.matmul, np.ones((2, 3)), np.ones((3, 4))))
        float64[2,4]
    """
    graph, out_spec = _record_call(f, args, kwargs)
    return tree.unflatten(out_spec[0], [aval_of(v.value) if isinstance(v, Literal) else v.aval for v in graph.outputs])


def _aval_like(x: Any) -> Aval:
    if isinstance(x, Tracer | np.ndarray | np.generic) or x.__class__ in PYTHON_SCALARS:
        return aval_of(x)
    return x if isinstance(x, Aval) else Aval(tuple(x.shape), np.dtype(x.dtype))
