"""How a compiled function takes its arguments: which are static or donated, by position or by name."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fnad import tree
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError, describe_function
from fnad.typing import Function


class Options(NamedTuple):
    """What `jit` was told about the arguments."""

    static_argnums: tuple[int, ...]
    static_argnames: tuple[str, ...]
    donate_argnums: tuple[int, ...]
    donate_argnames: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(f", {name}={value}" for name, value in self._asdict().items() if value)


class Arguments:
    """The arguments of one compiled function."""

    def __init__(self, f: Function, options: Options) -> None:
        self.f, self.options = f, options
        self._parameters = _parameters(f)
        self._static, self._names, self._donated, self._donated_names = _check_options(options, self._parameters, f)
        self._movable = _movable(f, self._parameters)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call with keywords in their positions, as far as these are filled: how a call is written makes no difference."""
        n, given = len(args), []
        while n < len(self._movable) and self._movable[n] in kwargs:
            given.append(self._movable[n])
            n += 1
        if not given:
            return args, kwargs
        return (*args, *(kwargs[k] for k in given)), {k: v for k, v in kwargs.items() if k not in given}

    def donated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> frozenset[int]:
        """Positions of the leaves of donated arguments among all leaves."""
        out: list[int] = []
        start = 0
        static, wanted = _positions(self._static, len(args)), _positions(self._donated, len(args))
        dynamic = [(k in wanted, x) for k, x in enumerate(args) if k not in static]
        dynamic += [(k in self._donated_names, kwargs[k]) for k in sorted(kwargs) if k not in self._names]
        for donated, x in dynamic:
            count = len(tree.leaves(x))
            if donated:
                out += range(start, start + count)
            start += count
        return frozenset(out)

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
        """The function of the dynamic arguments, the static ones as a key (the same by position and by name), the dynamic ones."""
        if not self._static and not self._names:
            return self.f, (), (args, kwargs)
        at = {n: args[n] for n in _positions(self._static, len(args))}
        named = {k: kwargs[k] for k in self._names if k in kwargs}
        dynamic = tuple(a for i, a in enumerate(args) if i not in at)
        rest = {k: v for k, v in kwargs.items() if k not in named}

        def call(*given: Any, **more: Any) -> Any:
            moving = iter(given)
            return self.f(*[at[i] if i in at else next(moving) for i in range(len(args))], **more, **named)

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

    def labels(self, args: tuple[Any, ...]) -> list[str]:
        """The names of the positional arguments that are not static."""
        static = _positions(self._static, len(args))
        return [self._label(i) for i in range(len(args)) if i not in static]

    def refuse(self, x: Any, spec: tree.Spec, i: int, args: tuple[Any, ...]) -> NoReturn:
        """Raise for a leaf that is no array, by name and with what fits its place."""
        path = tree.argument_paths(spec, self.labels(args))[i]
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
        got = {f"argument {path}": name, "function": describe_function(self.f)}
        raise DTypeError("jit takes numeric arrays and scalars", got=got, fix=fix)

    def unhashable(self, static: Any) -> ArgumentError:
        found = {f"argument {label}": f"{type(v).__name__}: {v!r:.60}" for label, v in static if not _hashable(v)}
        return ArgumentError(
            "jit: static arguments must be hashable, since each value has a program of its own",
            got={**found, "function": describe_function(self.f)},
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


Named = tuple[tuple[int, ...], tuple[str, ...]]


def _check_options(options: Options, parameters: list[inspect.Parameter], f: Function) -> tuple[*Named, *Named]:
    """Static arguments by position and by name, and donated ones; each of them by both where it has both."""
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
    for name in ("static_argnames", "donate_argnames"):
        for n in getattr(options, name):
            if not isinstance(n, str) or (known and n not in by_name and inspect.Parameter.VAR_KEYWORD not in kinds):
                raise _bad_option(name, n, f, by_name, "names of its arguments")
    fixed = known and not open_ended  # then a negative position is that of one parameter, however many arguments a call has

    def both(numbers: Sequence[int], names: Sequence[str]) -> Named:
        found = [n % count if fixed else n for n in numbers]
        found += [ordered.index(n) for n in names if n in ordered and ordered.index(n) not in found]
        more = [ordered[n] for n in found if 0 <= n < count and ordered[n] in by_name and ordered[n] not in names]
        return tuple(found), (*names, *more)

    static, static_names = both(options.static_argnums, options.static_argnames)
    donated, donated_names = both(options.donate_argnums, options.donate_argnames)
    wanted = "arguments that are not static: these are no arrays"
    for n in set(static) & set(donated):
        raise _bad_option("donate_argnums", n, f, ordered, wanted)
    for name in set(static_names) & set(donated_names):
        raise _bad_option("donate_argnames", name, f, by_name, wanted)
    return static, static_names, donated, donated_names


def _bad_option(option: str, value: Any, f: Function, arguments: list[str], wanted: str) -> ArgumentError:
    return ArgumentError(
        f"jit: {option} must give {wanted}",
        got={option: repr(value), "function": describe_function(f), "its arguments": ", ".join(arguments) or "none"},
    )


def _movable(f: Function, parameters: Sequence[inspect.Parameter]) -> list[str]:
    """The names of the parameters that may be given by position or by name; of a wrapper, whose signature may be another's, none."""
    if hasattr(f, "__wrapped__") or hasattr(f, "__signature__"):
        return []
    ordered = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [p.name if p.kind is p.POSITIONAL_OR_KEYWORD else "" for p in ordered]


def _positions(numbers: Sequence[int], count: int) -> list[int]:
    """Which of `count` positional arguments the numbers name, negative ones from the end."""
    return [n % count for n in numbers if -count <= n < count]


def types_of(x: Any) -> Any:
    """What tells static values apart that are equal, also inside tuples: 2, 2.0 and True; 0.0 and -0.0."""
    if x.__class__ is tuple:
        return tuple(map(types_of, x))
    return (x.__class__, repr(x)) if isinstance(x, float | complex) else x.__class__


def as_tuple(x: Any) -> tuple[Any, ...]:
    given = (x,) if isinstance(x, str) or hasattr(x, "__index__") else x
    return tuple(operator.index(n) if hasattr(n, "__index__") else n for n in given)
