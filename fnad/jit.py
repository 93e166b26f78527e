"""jit: a function as native programs, one per structure of its arguments."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import threading
import types
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from fnad import tree
from fnad.core.aval import PYTHON_SCALARS, Aval, aval_of
from fnad.core.graph import Graph, Literal, evaluate, flat_function, record
from fnad.core.primitive import Joint, Primitive
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError
from fnad.transforms._opaque import batch_flat
from fnad.transforms.jvp import push_forward
from fnad.transforms.vjp import pull_back
from fnad.typing import Function


class Compiled(Primitive):
    """A recorded function as a primitive: evaluated by its program, differentiated and batched as a graph."""

    multiple = True

    def __init__(self, graph: Graph, function: Any, donated: frozenset[int] = frozenset()) -> None:
        super().__init__("jit", register=False)
        self.graph, self.function, self._donated = graph, function, donated
        self._executable: Any = None
        self._derived: dict[Any, Any] = {}
        self._lock = threading.Lock()

    @property
    def executable(self) -> Any:
        with self._lock:
            if self._executable is None:
                self._executable = compile_graph(self.graph, self._donated)
            return self._executable

    def impl(self, *leaves: Any) -> tuple[Any, ...]:
        return tuple(self.executable.convert(leaves))

    def infer(self, *avals: Aval) -> tuple[Aval, ...]:
        return tuple(aval_of(v.value) if isinstance(v, Literal) else v.aval for v in self.graph.outputs)

    def flat(self, *leaves: Any) -> list[Any]:
        return evaluate(self.graph, leaves)

    def forward(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Joint]:
        outs = self(*args)
        args = list(args)
        return outs, Joint(lambda g: self._pull(args, g))

    def _pull(self, args: list[Any], g: Sequence[Any]) -> list[Any]:
        n = len(args)
        active = [v.aval.dtype.kind in "fc" for v in self.graph.inputs]

        def pull(*leaves: Any) -> list[Any]:
            return pull_back(self.flat, list(leaves[:n]), active, leaves[n:], self.function)

        return self._derive("pullback", pull, [*args, *g])

    def push(self, args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        n = len(args)
        has = tuple(t is not None for t in tangents)

        def push(*leaves: Any) -> list[Any]:
            given = iter(leaves[n:])
            outs, dots = push_forward(self.flat, list(leaves[:n]), [next(given) if h else None for h in has], self.function)
            return [*outs, *dots]

        results = self._derive(("push", has), push, [*args, *(t for t in tangents if t is not None)])
        half = len(results) // 2
        return tuple(results[:half]), results[half:]

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.push(args, tangents, params)[1]

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> tuple[Any, ...]:
        return tuple(self._derive(("batch", tuple(batched)), batch_flat(self.flat, batched), list(args)))

    def _derive(self, key: Any, flat: Any, leaves: list[Any]) -> list[Any]:
        """A function of leaves made from this one, compiled in its turn; results that are None stay None."""
        avals = [aval_of(x) for x in leaves]
        full = key, tuple(avals)
        if full not in self._derived:
            present: list[bool] = []

            def some(*xs: Any) -> list[Any]:
                outs = flat(*xs)
                present[:] = [o is not None for o in outs]
                return [o for o in outs if o is not None]

            self._derived[full] = Compiled(record(some, avals, self.function), self.function), present
        compiled, present = self._derived[full]
        found = iter(compiled(*leaves))
        return [next(found) if p else None for p in present]


def compile_graph(graph: Graph, donated: frozenset[int]) -> Any:
    """The program of a graph. The compiler is imported when it is first needed: `import fnad` does not wait for it."""
    pipeline = importlib.import_module("fnad.compiler.pipeline")
    return pipeline.Executable(pipeline.simplify(graph), donated)


class Entry:
    """What one structure of arguments was compiled to."""

    __slots__ = ("avals", "compiled", "flatten", "out_spec", "outs", "run", "single", "unflatten")

    def __init__(self, compiled: Compiled, avals: tuple[Aval, ...], out_spec: tree.Spec) -> None:
        self.compiled, self.avals, self.out_spec = compiled, avals, out_spec
        self.outs = compiled.infer(*avals)
        self.unflatten = tree.unflattener(out_spec)
        self.single = out_spec.is_leaf()
        self.flatten: Any = None  # None where each argument is a leaf
        self.run: Any = None


_RECENT = 4

_disabled: ContextVar[bool] = ContextVar("jit is disabled", default=False)


@contextlib.contextmanager
def disable_jit() -> Iterator[None]:
    """Run compiled functions eagerly in a `with` block: for print, for a debugger, for control flow on values.

    It holds for the thread or task of the block. What is compiled stays compiled and is used again afterwards.

    Example:
        >>> import numpy as np, fnad
        >>> f = fnad.jit(lambda x: x if x > 0 else -x)
        >>> with fnad.disable_jit():
        ...     print(f(-2.0))
        2.0
    """
    token = _disabled.set(True)
    try:
        yield
    finally:
        _disabled.reset(token)


class Jitted:
    """A function compiled on its first call with each structure of arguments."""

    def __init__(self, f: Function, static_argnums: tuple[int, ...], static_argnames: tuple[str, ...], donate: tuple[int, ...]) -> None:
        functools.update_wrapper(self, f)
        self._f, self._static, self._names, self._donate = f, static_argnums, static_argnames, donate
        self._entries: dict[Any, Entry] = {}
        self._recent: tuple[Entry, ...] = ()  # what to try first, without a look at the arguments

    @property
    def function(self) -> Function:
        """The function that was compiled."""
        return self._f

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _disabled.get():
            return self._f(*args, **kwargs)
        if not kwargs:
            for entry in self._recent:
                leaves: Any = args
                if entry.flatten is not None:
                    try:
                        leaves = entry.flatten(args)
                    except (ValueError, KeyError):  # another structure
                        continue
                outs = entry.run(leaves)
                if outs is not None:
                    return outs[0] if entry.single else entry.unflatten(outs)
        return self._general(args, kwargs)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call, static, dynamic = self.split(args, kwargs)
        leaves, spec = tree.flatten(dynamic)
        avals = tuple([leaf_aval(x, spec, i) for i, x in enumerate(leaves)])
        key = static, _types(static), spec, avals
        try:
            entry = self._entries.get(key)
        except TypeError:
            raise ArgumentError("jit: static arguments must be hashable", got={"static": static}) from None
        if entry is None:
            flat, out_spec = flat_function(call, spec)
            graph = record(flat, avals, self._f)
            closed = [x for _, x in graph.constants if isinstance(x, Tracer)]
            entry = Entry(Compiled(graph, self._f, self._given(args)), avals, out_spec[0])
            if closed:
                return self._closed(graph, leaves, entry)
            if len(args) != len(leaves) or any(a is not x for a, x in zip(args, leaves, strict=True)):
                entry.flatten = tree.flattener(tree.structure(args))
            entry.run = entry.compiled.executable.run
            self._entries[key] = entry  # complete by now: another thread may take it at once
        if not (static or kwargs or any(isinstance(x, Tracer) for x in leaves)):
            self._recent = (entry, *(e for e in self._recent if e is not entry))[:_RECENT]
        outs = entry.compiled(*leaves)
        return tree.unflatten(entry.out_spec, outs)

    def _given(self, args: tuple[Any, ...]) -> frozenset[int]:
        """Positions of the leaves of donated arguments among all leaves."""
        out: list[int] = []
        start = 0
        static, wanted = _positions(self._static, len(args)), _positions(self._donate, len(args))
        for k, argument in enumerate(args):
            if k in static:
                continue
            count = len(tree.leaves(argument))
            if k in wanted:
                out += range(start, start + count)
            start += count
        return frozenset(out)

    def _closed(self, graph: Graph, leaves: list[Any], entry: Entry) -> Any:
        """A function that closes over tracers of an outer transform: they become further arguments."""
        traced = [(v, x) for v, x in graph.constants if isinstance(x, Tracer)]
        plain = tuple((v, x) for v, x in graph.constants if not isinstance(x, Tracer))
        open_graph = Graph((*graph.inputs, *(v for v, _ in traced)), plain, graph.equations, graph.outputs)
        outs = Compiled(open_graph, self._f)(*leaves, *(x for _, x in traced))
        return tree.unflatten(entry.out_spec, outs)

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
        """The function of the dynamic arguments, the static ones as a key, the dynamic ones."""
        if not self._static and not self._names:
            return self._f, (), (args, kwargs)
        at = {n: args[n] for n in _positions(self._static, len(args))}
        named = {k: kwargs[k] for k in self._names if k in kwargs}
        dynamic = tuple(a for i, a in enumerate(args) if i not in at)
        rest = {k: v for k, v in kwargs.items() if k not in named}

        def call(*given: Any, **more: Any) -> Any:
            moving = iter(given)
            return self._f(*[at[i] if i in at else next(moving) for i in range(len(args))], **more, **named)

        return call, (tuple(at.items()), tuple(named.items())), (dynamic, rest)


def _positions(numbers: Sequence[int], count: int) -> list[int]:
    """Which of `count` positional arguments the numbers name, negative ones from the end."""
    return [n % count for n in numbers if -count <= n < count]


def _types(x: Any) -> Any:
    """What tells static values apart that are equal, also inside tuples: 2, 2.0 and True; 0.0 and -0.0."""
    if x.__class__ is tuple:
        return tuple(map(_types, x))
    return (x.__class__, repr(x)) if isinstance(x, float | complex) else x.__class__


def leaf_aval(x: Any, spec: tree.Spec, i: int) -> Aval:
    if isinstance(x, np.ndarray | np.generic | Tracer) or x.__class__ in PYTHON_SCALARS:
        aval = aval_of(x)
        if aval.dtype.kind in "biufc":
            return aval
    raise DTypeError(
        "jit takes numeric arrays and scalars",
        got={f"argument{tree.paths(spec)[i]}": f"{type(x).__name__}"},
        fix="name what is no array in static_argnums or static_argnames",
    )


def jit(f: Function, static_argnums: Any = (), static_argnames: Any = (), donate_argnums: Any = ()) -> Any:
    """Compile a function of arrays to native code.

    The function is recorded once for each structure of its arguments (pytree, shapes, dtypes, static values), simplified,
    fused into loops and compiled; from then on a call runs native code only. Another batch size is recorded again, which
    takes milliseconds, and finds the compiled code. Compiled code is kept on disk for later processes.

    Args:
        f: A function of pytrees of arrays and scalars that returns a pytree of them, written with NumPy. While it is recorded
            its values are not known: Python control flow on them raises, printing shows tracers, random numbers of NumPy
            are drawn once. Closed-over arrays are passed by reference: later changes of their contents are seen, except by
            what `f` computes from them alone, which NumPy does while recording.
        static_argnums: Positions of arguments that are not arrays (hashable); each value is compiled for itself.
        static_argnames: The same by name.
        donate_argnums: Positions of arguments whose memory may be used for results: their contents are undefined after
            the call.

    Returns:
        The compiled function. It nests with every transform: under `grad`, `jvp`, `vmap` it is differentiated or
        batched as a whole, and the result is compiled too; inside another compiled function it becomes part of that.

    Raises:
        ConcretizationError: the function needs the value of an array.
        DTypeError: an argument is no numeric array.
        ArgumentError: a static argument is not hashable.

    Example:
        >>> import numpy as np, fnad
        >>> step = fnad.jit(lambda w, x: w - 0.1 * fnad.grad(lambda w: np.sum((x @ w) ** 2))(w))
        >>> step(np.array([1.0, 2.0]), np.eye(2))
        array([0.8, 1.6])
    """
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    donate = (donate_argnums,) if isinstance(donate_argnums, int) else tuple(donate_argnums)
    if names or numbers:
        parameters = list(inspect.signature(f).parameters)
        numbers += tuple(parameters.index(n) for n in names if n in parameters and parameters.index(n) not in numbers)
        names += tuple(parameters[n] for n in numbers if -len(parameters) <= n < len(parameters) and parameters[n] not in names)
    return Jitted(f, numbers, names, donate)
