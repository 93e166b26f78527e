"""`fnad.njit`: numba's decorator for loops, with derivatives."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from fnad import _fork, _numba
from fnad.core.aval import aval_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ClosureError, DTypeError, InPlaceError, describe_function, user_line
from fnad.loops import generated, ir
from fnad.loops.derived import SUPPORTED, Derivative
from fnad.loops.frontend import build
from fnad.loops.primitive import loop
from fnad.loops.program import Mode, Program

_PLAIN = frozenset({np.ndarray, float, int, bool, complex, str, type(None), np.float64, np.float32, np.int64, np.bool_})
_OPTIONS = frozenset(
    {"parallel", "fastmath", "cache", "inline", "boundscheck", "error_model", "nogil", "nopython", "looplift", "debug", "checkpoint"}
)
_lock = _fork.lock(5)


class LoopFunction:
    """A function that numba compiles, and whose derivatives are compiled as well. `py_func` is the plain Python function."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self._compiled: Any = None
        self._programs: dict[Any, Program] = {}
        self._cells = function.__closure__ or ()
        self._latest: tuple[Any, ...] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for a in (*args, *kwargs.values()) if kwargs else args:
            if a.__class__ not in _PLAIN:
                caller = _caller(a)
                if caller is Tracer:
                    return self._traced(args, kwargs)
                if caller is not None:
                    return caller(self._of_arrays, args, kwargs)
        if self._cells:
            self._check_closure()
        return (self._compiled or self.dispatcher)(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.py_func.__qualname__)  # by name, as functions are

    def __repr__(self) -> str:
        return f"<fnad.njit of {describe_function(self.py_func)}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)  # signatures, inspect_types, parallel_diagnostics, ...

    @property
    def dispatcher(self) -> Any:
        """The numba function that computes values."""
        with _lock:
            if self._compiled is None:
                self._compiled = _numba.compiled(self.py_func, {k: v for k, v in self.options.items() if k != "checkpoint"})
            return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """How numba sees it where another function calls it."""
        return _numba.type_of(self.dispatcher)

    def _of_arrays(self, *args: Any, **kwargs: Any) -> Any:
        """The function for those who know arrays only: arrays without axes stand for numbers, in and out."""
        out = self(*map(_number, args), **{k: _number(v) for k, v in kwargs.items()})
        return _each(out, lambda x: x if isinstance(x, Tracer | np.ndarray) else np.asarray(x)[()])

    # -- under a transform -----------------------------------------------------------------------------------------------

    def _traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check_closure()
        given = _positional(self.py_func, args, kwargs)
        leaves: list[Any] = []
        key = tuple(_type_of(a, leaves, name) for name, a in given)
        program = self._program(key)
        if program.fn.written:
            _check_overlap(program, leaves)
        known = tuple(int(x) if x.__class__ in (int, bool) or isinstance(x, np.integer | np.bool_) else None for x in leaves)
        outs = loop(*leaves, program=program, known=known)
        return _rebuild(program.fn.template, outs)

    def _program(self, key: tuple[Any, ...]) -> Program:
        program = self._programs.get(key)
        if program is None:
            with _lock:
                program = self._programs.setdefault(key, Program(lambda: self._build(key), self.options, self._primal(key)))
        return program

    def _build(self, key: tuple[Any, ...]) -> ir.Function:
        return build(self.py_func, key, re.sub(r"\W", "_", self.py_func.__name__).strip("_"))  # "<lambda>" is no name

    def _primal(self, key: tuple[Any, ...]) -> Callable[[ir.Function], tuple[str, dict[str, Any]]]:
        """What prints the call of this function on the flat leaves of its arguments."""

        def text(fn: ir.Function) -> tuple[str, dict[str, Any]]:
            names: dict[str, Any] = {"function": self.dispatcher}
            leaves = iter(f"x{k}" for k in range(len(fn.args)))
            call = ", ".join(_spelled(t, leaves, names) for t in key)
            lines = [f"def primal({', '.join(f'x{k}' for k in range(len(fn.args)))}):"]
            lines += [f"    x{k} = x{k}.copy()" for k, a in enumerate(fn.args) if a in fn.written]
            lines += [f"    out = function({call})", f"    return ({''.join(f'{path}, ' for path in _paths(fn.template, 'out'))})"]
            return "\n".join(lines) + "\n", names

        return text

    def _check_closure(self) -> None:
        for name, cell in zip(self.py_func.__code__.co_freevars, self._cells, strict=True):
            value = cell.cell_contents
            if isinstance(value, Tracer):
                raise ClosureError(
                    "a function under fnad.njit closes over a traced value",
                    got={"function": describe_function(self.py_func), "variable": name, "called at": user_line()},
                    fix="pass that value as an argument of the function",
                )

    # -- what is generated -----------------------------------------------------------------------------------------------

    def adjoint_source(self, *args: Any, argnums: int | Sequence[int] | None = None) -> str:
        """The Python source that computes gradients, for arguments like these; those of the last traced call if there are none."""
        program, positions = self._asked(args, argnums)
        return generated.with_imports(*program.text(Mode(positions, True)))

    def tangent_source(self, *args: Any, argnums: int | Sequence[int] | None = None) -> str:
        """The Python source that computes tangents, for arguments like these; those of the last traced call if there are none."""
        program, positions = self._asked(args, argnums)
        return generated.with_imports(*program.tangent(positions).text(None))

    def _asked(self, args: tuple[Any, ...], argnums: int | Sequence[int] | None) -> tuple[Program, tuple[bool, ...]]:
        """The program for arguments, and which of its leaves belong to the arguments that are differentiated."""
        leaves: list[Any] = []
        if args:
            key = tuple(_type_of(a, leaves, name) for name, a in _positional(self.py_func, args, {}))
        elif self._programs:
            key = next(reversed(self._programs))
        else:
            raise ArgumentError(
                "the generated source depends on the types of the arguments, and there was no call under a transform yet",
                got={"function": describe_function(self.py_func)},
                fix=f"pass arguments like those of a call: {self.py_func.__name__}.adjoint_source(x, y)",
            )
        chosen = range(len(key)) if argnums is None else [argnums] if isinstance(argnums, int) else [*argnums]
        positions = [n % len(key) for n in chosen]
        flags = [n in positions for n, t in enumerate(key) for _ in range(_count(t))]
        program = self._program(key)
        return program, tuple(f and t.dtype.kind in "fc" for f, t in zip(flags, program.operands, strict=True))


def _caller(a: Any) -> Any:
    """Who calls a loop function with this argument: `Tracer` for the transforms, `__fnad_call__` of a class that stands for arrays."""
    if isinstance(a, Tracer):
        return Tracer
    if isinstance(a, tuple | list):
        found = {x for x in map(_caller, a) if x is not None}
        return Tracer if Tracer in found else next(iter(found), None)
    return getattr(a.__class__, "__fnad_call__", None)


def _number(a: Any) -> Any:
    return _each(a, lambda x: x[()] if x.__class__ is np.ndarray and not x.ndim else x)


def _each(out: Any, f: Callable[[Any], Any]) -> Any:
    """A function of every item of nested tuples."""
    if not isinstance(out, tuple):
        return None if out is None else f(out)
    items = [_each(x, f) for x in out]
    return type(out)(*items) if hasattr(out, "_fields") else tuple(items)


def _positional(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """The arguments of a call in the order of the parameters, defaults included, with the parameters' names."""
    code = function.__code__
    if not kwargs and len(args) == code.co_argcount and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return [*zip(code.co_varnames, args, strict=False)]
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return [*zip(bound.arguments, bound.args, strict=False)]


def _type_of(a: Any, leaves: list[Any], name: str) -> Any:
    """The type of an argument as the front end wants it; its leaves are appended to `leaves`."""
    if isinstance(a, tuple):
        parts = [_type_of(x, leaves, f"{name}[{k}]") for k, x in enumerate(a)]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, Tracer | np.ndarray | np.generic | bool | int | float | complex):
        aval = aval_of(a)
        if aval.dtype.kind not in "biufcV":
            _refuse(a, name)
        leaves.append(a)
        return ir.Array(aval.dtype, len(aval.shape)) if aval.shape else ir.Scalar(aval.dtype)
    if not (a is None or isinstance(a, str) or callable(a)):
        _refuse(a, name)
    return a


def _refuse(a: Any, name: str) -> NoReturn:
    raise DTypeError(
        "a function under fnad.njit takes arrays, numbers, functions, and tuples of them",
        got={f"argument {name}": f"{type(a).__module__}.{type(a).__qualname__}", "at": user_line()},
        fix="pass an array or a tuple instead of a list or dict",
    )


def _count(t: Any) -> int:
    """The number of leaves of an argument's type."""
    if isinstance(t, ir.Scalar | ir.Array):
        return 1
    return sum(map(_count, t)) if isinstance(t, tuple) else 0


def _spelled(t: Any, leaves: Any, names: dict[str, Any]) -> str:
    """An argument of a call, put together from its leaves."""
    if isinstance(t, ir.Scalar | ir.Array):
        return str(next(leaves))
    if isinstance(t, tuple):
        parts = ", ".join(_spelled(x, leaves, names) for x in t)
        if hasattr(t, "_fields"):
            names[type(t).__name__] = type(t)
            return f"{type(t).__name__}({parts})"
        return f"({parts}{',' if len(t) == 1 else ''})"
    if t is None or isinstance(t, str):
        return repr(t)
    name = f"static{len(names)}"
    names[name] = t
    return name


def _paths(template: Any, path: str) -> list[str]:
    """Where the leaves of a result are, in the order of their numbers."""
    if template is None:
        return []
    if isinstance(template, tuple):
        return [p for k, t in enumerate(template) for p in _paths(t, f"{path}[{k}]")]
    return [path]


def _rebuild(template: Any, outs: Sequence[Any]) -> Any:
    """The user's structure around the leaves of a result."""
    if template is None:
        return None
    if isinstance(template, tuple):
        parts = [_rebuild(t, outs) for t in template]
        return type(template)(*parts) if hasattr(template, "_fields") else tuple(parts)
    return outs[template]


def _check_overlap(program: Program, leaves: Sequence[Any]) -> None:
    """Refuse arguments that share memory while the function writes into one of them."""
    for k, a in enumerate(program.fn.args):
        if a not in program.fn.written:
            continue
        for j, other in enumerate(leaves):
            if j != k and _overlap(leaves[k], other):
                raise InPlaceError(
                    "two arguments of a loop function overlap in memory, and the function writes into one of them",
                    got={"function": program.fn.name, "written": a.name, "overlaps": program.fn.args[j].name, "at": user_line()},
                    fix="copy one of them: f(u, u.copy())",
                )


def _overlap(a: Any, b: Any) -> bool:
    if a is b:
        return not np.isscalar(a)
    a, b = _contents(a), _contents(b)
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)


def _contents(a: Any) -> Any:
    while isinstance(a, Tracer):
        a = getattr(a, "value", None)
    return a


def _derivative(transformed: Any, options: dict[str, Any]) -> Derivative:
    """A transformed loop function as one that loops can call."""
    name, function, argnums, has_aux = transformed.made_by
    if name not in SUPPORTED or has_aux or not isinstance(function, LoopFunction):
        raise ArgumentError(
            "fnad.njit of a transformed function takes fnad.grad, value_and_grad or jacfwd of a function under fnad.njit, without has_aux",
            got={"function": repr(transformed)},
            fix="decorate the inner function with @fnad.njit: fnad.njit(fnad.grad(f))",
        )
    if options:
        raise ArgumentError(
            "fnad.njit of a derivative has no options", got={"options": ", ".join(sorted(options))}, fix="give them to the inner function"
        )
    return Derivative(transformed, function, name, argnums)


def njit(function: Any = None, /, **options: Any) -> Any:
    """Compile a function of numbers and arrays with numba, so that fnad differentiates its loops.

    Args:
        function: A function in the part of Python and NumPy that numba compiles: loops, branches, arrays that are written into.
            Also one or several numba signatures, as for `numba.njit`; or `fnad.grad(f)`, `fnad.value_and_grad(f)` or
            `fnad.jacfwd(f)` of a function under `fnad.njit` that returns a float: a derivative that loops can call.
        options: Those of `numba.njit` (`parallel`, `fastmath`, `cache`, `inline`, `boundscheck`, `error_model`, `nogil`),
            and `checkpoint`: True, or a number of snapshots, reverses a `for` loop of known length that stands alone in the
            function piece by piece. Memory then grows with the square root of the number of iterations (True), or holds that
            many snapshots and the tape of one piece, at the cost of one more run. While loops and loops with `break` keep
            their whole tape.

    Returns:
        A function of the same arguments. Called with plain ones it is what `numba.njit` makes of it, and may write into them.
        Under a transform (`fnad.grad`, `jvp`, `vmap`, `jit`, ...) it never changes its arguments: derivatives are by what
        they held before the call.

    Raises:
        ArgumentError: an option is not known; a transformed function of another kind.
        UnsupportedError: (when first differentiated) the function uses something that has no derivative rule.

    Example:
        >>> import numpy as np, fnad
        >>> @fnad.njit
        ... def total(x):
        ...     s = 0.0
        ...     for i in range(x.size):
        ...         s += x[i] ** 2
        ...     return s
        >>> fnad.grad(total)(np.array([1.0, 2.0]))
        array([2., 4.])

        Derivatives inside of loops, which are differentiated again with the loop (forward inside, `fnad.jacfwd`, does it as well):

        >>> slope = fnad.njit(fnad.grad(total))
        >>> @fnad.njit
        ... def descend(x, rate):
        ...     for _ in range(3):
        ...         x = x - rate * slope(x)
        ...     return total(x)
        >>> fnad.grad(descend, argnums=1)(np.array([1.0, 2.0]), 0.25).round(6)
        np.float64(-1.875)
    """
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise ArgumentError(
            "fnad.njit: unknown option", got={"options": ", ".join(unknown)}, fix=f"known are {', '.join(sorted(_OPTIONS))}"
        )
    checkpoint = options.get("checkpoint")
    if not (checkpoint is None or isinstance(checkpoint, bool) or (isinstance(checkpoint, int) and checkpoint > 0)):
        raise ArgumentError(
            "fnad.njit: checkpoint is True, False or a number of snapshots", got={"checkpoint": checkpoint}, fix="write checkpoint=True"
        )
    if function is None:
        return lambda f: njit(f, **options)
    if isinstance(function, types.FunctionType):
        return LoopFunction(function, options)
    if hasattr(function, "made_by"):
        return _derivative(function, options)
    if hasattr(function, "py_func"):
        return LoopFunction(function.py_func, options)
    return lambda f: LoopFunction(f, {**options, "signature": function})
