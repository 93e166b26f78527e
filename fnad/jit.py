"""jit: a function as native programs, one per structure of its arguments."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import operator
import sys
import types
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fnad import _fork, tree
from fnad._config import CHANGED, option, scoped
from fnad.core.aval import PYTHON_SCALARS, Aval, aval_of
from fnad.core.graph import Graph, Literal, array_leaves, evaluate, flat_function, make_graph, record
from fnad.core.primitive import Joint, Primitive
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError, describe_function, describe_place
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


class Options(NamedTuple):
    """What `jit` was told about the arguments."""

    static_argnums: tuple[int, ...]
    static_argnames: tuple[str, ...]
    donate_argnums: tuple[int, ...]

    def __str__(self) -> str:
        return "".join(f", {name}={value}" for name, value in self._asdict().items() if value)


class Jitted:
    """A function compiled on its first call with each structure of arguments."""

    def __init__(self, f: Function, options: Options) -> None:
        functools.update_wrapper(self, f)
        self._f, self._options = f, options
        self._parameters = _parameters(f)
        self._static, self._names, self._donate = _check_options(options, self._parameters, f)
        self._entries: dict[Any, Entry] = {}
        self._recent: tuple[Entry, ...] = ()  # what to try first, without a look at the arguments

    @property
    def function(self) -> Function:
        """The function that was compiled."""
        return self._f

    def __repr__(self) -> str:
        count = len(self._entries)
        return f"<fnad.jit of {describe_place(self._f)}{self._options}, {count} program{'' if count == 1 else 's'}>"

    def __reduce__(self) -> Any:
        """A function that is found under its name is pickled as that name, any other with the function inside it."""
        found: Any = sys.modules.get(getattr(self, "__module__", ""))
        name = getattr(self, "__qualname__", "<unnamed>")
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (jit, (self._f, *self._options))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if CHANGED.get():
            if option("disable_jit"):
                return self._f(*args, **kwargs)
            if option("debug_nans"):
                return self._general(args, kwargs)
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
        call, static, dynamic = self.split(args, kwargs)
        leaves, spec = tree.flatten(dynamic)
        avals = tuple([leaf_aval(x) or self._refuse(x, spec, i, args) for i, x in enumerate(leaves)])
        key = static, _types(static), spec, tree.identity(spec), avals
        try:
            entry = self._entries.get(key)
        except TypeError:
            raise self._unhashable(static) from None
        if entry is None:
            graph, out_spec = self._record(call, static, spec, avals, args)
            closed = [x for _, x in graph.constants if isinstance(x, Tracer)]
            entry = Entry(Compiled(graph, self._f, self._given(args)), avals, out_spec)
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
            watch.check_arguments((given, more), before, spec, result, self._labels(args), self._f)
            return result

        seen = watch.Watch(self._f, static)
        flat, out_spec = flat_function(watched, spec)
        graph = record(flat, avals, self._f)
        seen.report()
        return graph, out_spec[0]

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
        """The function of the dynamic arguments, the static ones as a key (the same by position and by name), the dynamic ones."""
        if not self._static and not self._names:
            return self._f, (), (args, kwargs)
        at = {n: args[n] for n in _positions(self._static, len(args))}
        named = {k: kwargs[k] for k in self._names if k in kwargs}
        dynamic = tuple(a for i, a in enumerate(args) if i not in at)
        rest = {k: v for k, v in kwargs.items() if k not in named}

        def call(*given: Any, **more: Any) -> Any:
            moving = iter(given)
            return self._f(*[at[i] if i in at else next(moving) for i in range(len(args))], **more, **named)

        key = [*((self._label(i), v) for i, v in at.items()), *named.items()]
        return call, tuple(sorted(key, key=lambda item: item[0])), (dynamic, rest)

    def _label(self, i: int) -> str:
        """The name of a positional argument."""
        parameters = [p for p in self._parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if i < len(parameters):
            p = parameters[i]
            return p.name if p.kind is p.POSITIONAL_OR_KEYWORD else f"{p.name} (argument {i})"
        rest = next((p.name for p in self._parameters if p.kind is p.VAR_POSITIONAL), "")
        return f"{rest}[{i - len(parameters)}]" if rest else f"argument {i}"

    def _labels(self, args: tuple[Any, ...]) -> list[str]:
        """The names of the positional arguments that are not static."""
        static = _positions(self._static, len(args))
        return [self._label(i) for i in range(len(args)) if i not in static]

    def _refuse(self, x: Any, spec: tree.Spec, i: int, args: tuple[Any, ...]) -> NoReturn:
        """Raise for a leaf that is no array, by name and with what fits its place."""
        path = tree.argument_paths(spec, self._labels(args))[i]
        name = type(x).__name__
        if path in ("self", "cls"):
            fix = (
                f"make {name} a pytree whose arrays are arguments of the program: a dataclass, or fnad.tree.register({name}, flatten, "
                f"unflatten); or fnad.jit(static_argnames={path!r}), which records once for each object and does not see later changes"
            )
        elif isinstance(x, np.ndarray) and type(x) not in (np.ndarray, np.memmap):
            fix = "pass np.asarray(x): subclasses of ndarray have arithmetic of their own"
        elif isinstance(x, np.ndarray | np.generic | Tracer):
            fix, name = "convert it to a dtype of numbers with .astype", f"{x.dtype} array"
        elif hasattr(x, "bit_generator"):
            fix = "draw the numbers before the call, and pass them in"
        elif path.isidentifier():
            fix = f"name it in static_argnames: fnad.jit(static_argnames={path!r})"
        else:
            fix = "give it an argument of its own named in static_argnames, or make it a static field of a dataclass"
        got = {f"argument {path}": name, "function": describe_function(self._f)}
        raise DTypeError("jit takes numeric arrays and scalars", got=got, fix=fix)

    def _unhashable(self, static: Any) -> ArgumentError:
        found = {f"argument {label}": f"{type(v).__name__}: {v!r:.60}" for label, v in static if not _hashable(v)}
        return ArgumentError(
            "jit: static arguments must be hashable, since each value has a program of its own",
            got={**found, "function": describe_function(self._f)},
            fix="pass a tuple, a frozenset or a frozen dataclass; arrays and pytrees of arrays are not static",
        )


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _parameters(f: Function) -> list[inspect.Parameter]:
    """The parameters of a function, as far as Python knows them."""
    try:
        return list(inspect.signature(f).parameters.values())
    except (ValueError, TypeError):  # a builtin
        return []


def _check_options(
    options: Options, parameters: list[inspect.Parameter], f: Function
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...]]:
    """Static arguments by position and by name, each of them by both where it has both; donated ones by position."""
    kinds = {p.kind for p in parameters}
    by_name = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    ordered = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    count = len(ordered)
    known = bool(parameters)
    open_ended = inspect.Parameter.VAR_POSITIONAL in kinds
    for name in ("static_argnums", "donate_argnums"):
        for n in getattr(options, name):
            if not isinstance(n, int) or (known and not open_ended and not -count <= n < count):
                raise _bad_option(name, n, f, ordered, "positions of its positional arguments")
    for n in options.static_argnames:
        if not isinstance(n, str) or (known and n not in by_name and inspect.Parameter.VAR_KEYWORD not in kinds):
            raise _bad_option("static_argnames", n, f, by_name, "names of its arguments")
    fixed = known and not open_ended  # then a negative position is that of one parameter, however many arguments a call has
    numbers, donated = ([n % count if fixed else n for n in given] for given in (options.static_argnums, options.donate_argnums))
    names = list(options.static_argnames)
    numbers += [ordered.index(n) for n in names if n in ordered and ordered.index(n) not in numbers]
    names += [ordered[n] for n in numbers if 0 <= n < count and ordered[n] in by_name and ordered[n] not in names]
    both = set(numbers) & set(donated)
    if both:
        raise _bad_option("donate_argnums", min(both), f, ordered, "arguments that are not static: these are no arrays")
    return tuple(numbers), tuple(names), tuple(donated)


def _bad_option(option: str, value: Any, f: Function, arguments: list[str], wanted: str) -> ArgumentError:
    return ArgumentError(
        f"jit: {option} must give {wanted}",
        got={option: repr(value), "function": describe_function(f), "its arguments": ", ".join(arguments) or "none"},
    )


def recorded(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Graph, list[Any]]:
    """The graph of a call of a function, compiled or not, and its arguments; static ones become part of the graph."""
    if isinstance(f, Jitted):
        f, _, (args, kwargs) = f.split(args, kwargs)
    return make_graph(f)(*args, **kwargs), array_leaves(tree.leaves((args, kwargs)))


def _positions(numbers: Sequence[int], count: int) -> list[int]:
    """Which of `count` positional arguments the numbers name, negative ones from the end."""
    return [n % count for n in numbers if -count <= n < count]


def _types(x: Any) -> Any:
    """What tells static values apart that are equal, also inside tuples: 2, 2.0 and True; 0.0 and -0.0."""
    if x.__class__ is tuple:
        return tuple(map(_types, x))
    return (x.__class__, repr(x)) if isinstance(x, float | complex) else x.__class__


def leaf_aval(x: Any) -> Aval | None:
    """The abstract value of an argument's leaf; None if a program cannot take it."""
    if isinstance(x, np.generic | Tracer) or x.__class__ in (np.ndarray, np.memmap) or x.__class__ in PYTHON_SCALARS:
        aval = aval_of(x)
        return aval if aval.dtype.kind in "biufc" else None
    return None


def jit(f: Function | None = None, static_argnums: Any = (), static_argnames: Any = (), donate_argnums: Any = ()) -> Any:
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
    options = Options(_tuple(static_argnums), _tuple(static_argnames), _tuple(donate_argnums))
    if f is None:
        return functools.partial(jit, **options._asdict())
    if not callable(f):
        raise ArgumentError("jit takes a function", got={"f": repr(f)}, fix="name the options: @fnad.jit(static_argnums=1)")
    return Jitted(f, options)


def _tuple(x: Any) -> tuple[Any, ...]:
    given = (x,) if isinstance(x, str) or hasattr(x, "__index__") else x
    return tuple(operator.index(n) if hasattr(n, "__index__") else n for n in given)
