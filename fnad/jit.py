"""jit: a function as native programs, one per structure of its arguments."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad import _fork, tree
from fnad._config import CHANGED, option, scoped
from fnad.core.arguments import Arguments, Options, as_tuple, types_of
from fnad.core.aval import PYTHON_SCALARS, Aval, aval_of
from fnad.core.graph import Graph, Literal, array_leaves, evaluate, flat_function, make_graph, record, without_effects
from fnad.core.primitive import Joint, Primitive
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, describe_place
from fnad.transforms._opaque import batch_flat
from fnad.transforms.jvp import push_forward
from fnad.transforms.vjp import pull_back
from fnad.typing import Function

_compiling = _fork.lock(0)


class Compiled(Primitive):
    """A recorded function as a primitive: evaluated by its program, differentiated and batched as a graph."""

    multiple = True

    def __init__(self, graph: Graph, function: Any, donated: frozenset[int] = frozenset()) -> None:
        super().__init__("jit", register=False)
        self.graph, self.function, self._donated = graph, function, donated
        self._executable: Any = None
        self._derived: dict[Any, Any] = {}

    @property
    def executable(self) -> Any:
        if self._executable is None:
            _fork.prepare()
            with _compiling, scoped(debug_nans=False):  # constants are folded
                if self._executable is None:
                    self._executable = compile_graph(self.graph, self._donated)
        return self._executable

    def impl(self, *leaves: Any) -> tuple[Any, ...]:
        if CHANGED.get() and option("debug_nans"):  # the results are looked at, not the program; arguments may be needed again
            leaves = tuple(np.array(x) if k in self._donated else x for k, x in enumerate(leaves))
            with scoped(debug_nans=False):
                return tuple(self.executable.convert(leaves))
        return tuple(self.executable.convert(leaves))

    def holds_graph(self, params: dict[str, Any]) -> bool:
        return True

    def examine(self, *leaves: Any) -> None:
        evaluate(self.graph, leaves)

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
        computation = without_effects(self.graph)

        def pull(*leaves: Any) -> list[Any]:
            return pull_back(lambda *xs: evaluate(computation, xs), list(leaves[:n]), active, leaves[n:], self.function)

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
    return pipeline.Executable(pipeline.simplify(graph), donated, graph)


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


def disable_jit() -> contextlib.AbstractContextManager[None]:
    """Run compiled functions eagerly in a `with` block: for print, for a debugger, for control flow on values.

    It holds for the thread or task of the block. What is compiled stays compiled and is used again afterwards.

    Example:
        >>> import numpy as np, fnad
        >>> f = fnad.jit(lambda x: x if x > 0 else -x)
        >>> with fnad.disable_jit():
        ...     print(f(-2.0))
        2.0
    """
    return scoped(disable_jit=True)


class Jitted:
    """A function compiled on its first call with each structure of arguments."""

    def __init__(self, f: Function, options: Options) -> None:
        functools.update_wrapper(self, f)
        self._f, self._options, self._arguments = f, options, Arguments(f, options)
        self._entries: dict[Any, Entry] = {}
        self._recent: tuple[Entry, ...] = ()  # what to try first, without a look at the arguments

    @property
    def function(self) -> Function:
        """The function that was compiled."""
        return self._f

    @property
    def arguments(self) -> Arguments:
        """How it takes its arguments."""
        return self._arguments

    def __repr__(self) -> str:
        count = len(self._entries)
        return f"<fnad.jit of {describe_place(self._f)}{self._options}, {count} program{'' if count == 1 else 's'}>"

    def __reduce__(self) -> Any:
        """A function that is found under its name is pickled as that name, any other with the function inside it.

        cloudpickle (so joblib, dask, ray) sends what belongs to a script or notebook by value, for it is not found elsewhere.
        """
        module = getattr(self, "__module__", "")
        found: Any = sys.modules.get(module)
        name = getattr(self, "__qualname__", "<unnamed>")
        for part in name.split("."):
            found = getattr(found, part, None)
        by_value = module == "__main__" and "cloudpickle" in sys._getframe(1).f_globals.get("__name__", "")
        return name if found is self and not by_value else (_empty, (), (self._f, self._options))

    def __setstate__(self, state: tuple[Function, Options]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if CHANGED.get():
            if option("disable_jit"):
                return self._f(*args, **kwargs)
            if option("debug_nans"):
                return self._general(*self._arguments.bind(args, kwargs))
        if kwargs:
            args, kwargs = self._arguments.bind(args, kwargs)
        if not kwargs:
            for entry in self._recent:
                leaves: Any = args
                if entry.flatten is not None:
                    try:
                        leaves = entry.flatten(args)
                    except ValueError:  # another structure
                        continue
                outs = entry.run(leaves)
                if outs is not None:
                    return outs[0] if entry.single else entry.unflatten(outs)
        return self._general(args, kwargs)

    def _general(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call, static, dynamic = self._arguments.split(args, kwargs)
        leaves, spec = tree.flatten(dynamic)
        avals = tuple([leaf_aval(x) or self._arguments.refuse(x, spec, i, args) for i, x in enumerate(leaves)])
        key = static, types_of(static), spec, tree.identity(spec), avals
        try:
            entry = self._entries.get(key)
        except TypeError:
            raise self._arguments.unhashable(static) from None
        if entry is None:
            graph, out_spec = self._record(call, static, spec, avals, args)
            closed = [x for _, x in graph.constants if isinstance(x, Tracer)]
            entry = Entry(Compiled(graph, self._f, self._arguments.donated(args, kwargs)), avals, out_spec)
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

    def _record(
        self, call: Function, static: Any, spec: tree.Spec, avals: tuple[Aval, ...], args: tuple[Any, ...]
    ) -> tuple[Graph, tree.Spec]:
        """The graph of a call and the structure of its result; what it does beside computing a result is watched."""
        watch = importlib.import_module("fnad.core.watch")  # which recording alone needs

        def watched(*given: Any, **more: Any) -> Any:
            before = tree.leaves((given, more))
            result = call(*given, **more)
            watch.check_arguments((given, more), before, spec, result, self._arguments.labels(args), self._f)
            return result

        seen = watch.Watch(self._f, static)
        flat, out_spec = flat_function(watched, spec)
        graph = record(flat, avals, self._f)
        seen.report()
        return graph, out_spec[0]

    def _closed(self, graph: Graph, leaves: list[Any], entry: Entry) -> Any:
        """A function that closes over tracers of an outer transform: they become further arguments."""
        traced = [(v, x) for v, x in graph.constants if isinstance(x, Tracer)]
        plain = tuple((v, x) for v, x in graph.constants if not isinstance(x, Tracer))
        open_graph = Graph((*graph.inputs, *(v for v, _ in traced)), plain, graph.equations, graph.outputs)
        outs = Compiled(open_graph, self._f)(*leaves, *(x for _, x in traced))
        return tree.unflatten(entry.out_spec, outs)


def _empty() -> Jitted:
    """What is filled when it is unpickled: until then it is known, so that a function may refer to itself."""
    return Jitted.__new__(Jitted)


def recorded(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Graph, list[Any]]:
    """The graph of a call of a function, compiled or not, and its arguments; static ones become part of the graph."""
    if isinstance(f, Jitted):
        f, _, (args, kwargs) = f.arguments.split(*f.arguments.bind(args, kwargs))
    return make_graph(f)(*args, **kwargs), array_leaves(tree.leaves((args, kwargs)))


def leaf_aval(x: Any) -> Aval | None:
    """The abstract value of an argument's leaf; None if a program cannot take it."""
    if isinstance(x, np.generic | Tracer) or x.__class__ in (np.ndarray, np.memmap) or x.__class__ in PYTHON_SCALARS:
        aval = aval_of(x)
        return aval if aval.dtype.kind in "biufc" else None
    return None


def jit(
    f: Function | None = None, static_argnums: Any = (), static_argnames: Any = (), donate_argnums: Any = (), donate_argnames: Any = ()
) -> Any:
    """Compile a function of arrays to native code: `fnad.jit(f)`, `@fnad.jit`, `@fnad.jit(static_argnames="n")`.

    The function is recorded once for each structure of its arguments (pytree, shapes, dtypes, static values), simplified,
    fused into loops and compiled; from then on a call runs native code only. Another batch size is recorded again, which
    takes milliseconds, and finds the compiled code. Compiled code is kept on disk for later processes.

    Args:
        f: A function of pytrees of arrays and scalars that returns a pytree of them, written with NumPy. While it is recorded
            its values are not known: Python control flow on them raises, printing shows tracers, random numbers of NumPy
            are drawn once. Closed-over arrays are passed by reference: later changes of their contents are seen, except by
            what `f` computes from them alone, which NumPy does while recording. Without it, a decorator that takes it.
        static_argnums: Positions of arguments that are not arrays (hashable); each value is compiled for itself.
        static_argnames: The same by name. An argument named either way is static by position and by keyword.
        donate_argnums: Positions of arguments whose memory may be used for results: their contents are undefined after
            the call.
        donate_argnames: The same by name.

    Returns:
        The compiled function. It nests with every transform: under `grad`, `jvp`, `vmap` it is differentiated or
        batched as a whole, and the result is compiled too; inside another compiled function it becomes part of that.

    Raises:
        ConcretizationError: the function needs the value of an array.
        DTypeError: an argument is no numeric array.
        ArgumentError: a static argument is not hashable, or an option names no argument.
        InPlaceError: the function puts a value into an argument's dict or list, and does not return it.

    Warns:
        RecordingWarning: while it was recorded, the function changed an argument's container or a variable around it, or drew
            random numbers.

    Example:
        >>> import numpy as np, fnad
        >>> step = fnad.jit(lambda w, x: w - 0.1 * fnad.grad(lambda w: np.sum((x @ w) ** 2))(w))
        >>> step(np.array([1.0, 2.0]), np.eye(2))
        array([0.8, 1.6])
    """
    options = Options(*map(as_tuple, (static_argnums, static_argnames, donate_argnums, donate_argnames)))
    if f is None:
        return functools.partial(jit, **options._asdict())
    if not callable(f):
        raise ArgumentError("jit takes a function", got={"f": repr(f)}, fix="name the options: @fnad.jit(static_argnums=1)")
    return Jitted(f, options)
