"""Tracers: what a function receives in place of its arrays while a transform runs it.

A tracer answers NumPy's protocols, so `np.tanh(x)`, `x @ w` and `x.sum()` come back to fnad. It never turns into a
plain number or array silently: that would drop a derivative.
"""

from __future__ import annotations

import importlib
import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fnad.core import dispatch
from fnad.core.aval import Aval, aval_of
from fnad.errors import ClosureError, InPlaceError, LeakedTracerError, TracerConversionError, calling_library, describe_function, user_line

if TYPE_CHECKING:
    from fnad.core.primitive import Primitive

STATIC = "an option or a size is named in static_argnames of fnad.jit, and is then a plain value"
UNMAPPED = "what is the same for all examples is given the axis None in in_axes, and is then a plain value"
_KNOWN = "fnad.stop_gradient(x) gives the plain value"
_SPELLINGS = (
    "np.sin(x) instead of math.sin(x), np.stack([a, b]) instead of np.array([a, b]), fnad.at(a)[i].set(x) instead of a[i] = x, "
    "fnad.at(plain)[t].get() instead of plain[t], np.dot(plain, t) instead of plain.dot(t)"
)
_SHOWN = 8  # largest array whose entries are printed
_levels = itertools.count(1)  # next() on it is atomic: traces of different threads never share a level


def later(module: str) -> Any:
    """A module of the core that is imported when something has gone wrong."""
    return importlib.import_module(f"fnad.core.{module}")


class Trace:
    """One run of one transform. Inner transforms start later, so they have the higher level and handle a call first."""

    __slots__ = ("alive", "function", "level", "name")
    knows_values = True
    """Whether `fnad.stop_gradient` gives plain values."""

    def __init__(self, name: str, function: Any) -> None:
        self.name = name
        self.level = next(_levels)
        self.alive = True
        self.function = function

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Apply a primitive to arguments of which at least one is a tracer of this trace."""
        raise NotImplementedError

    def close(self) -> None:
        self.alive = False

    def check_foreign(self, outs: Iterable[Any], primitive: Primitive) -> None:
        """Refuse results of a user's function that belong to this trace or one inside it: it closed over a traced value."""
        for o in outs:
            if isinstance(o, Tracer) and o._trace.level >= self.level:
                raise closes_over_traced(f"a function under {primitive.name}", o._trace, getattr(primitive, "function", None))

    def leaked(self) -> LeakedTracerError:
        return LeakedTracerError(
            f"a traced value is used after the {self.name} that made it has ended",
            got={"function": describe_function(self.function), "used at": user_line()},
            fix="return the value from the function"
            + (" (for extra outputs use has_aux=True), or store fnad.stop_gradient(x)" if self.knows_values else ""),
        )


CAPTURING: ContextVar[Trace | None] = ContextVar("capturing", default=None)
"""A recording that takes every operation on traced values, those of transforms outside it included."""


class Tracer:
    """Base of all tracers. Subclasses hold `_trace` and say what they know of their value."""

    __slots__ = ("__weakref__", "_trace")
    _why_not = "only its shape and dtype are known"
    _plain = STATIC
    """How to have a plain value instead, for messages."""
    __array_priority__ = 1000.0

    _trace: Any

    # -- what is known -------------------------------------------------------------------------------------------

    @property
    def aval(self) -> Aval:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)  # a protocol that a library asks for
        raise later("hints").missing_attribute(name)

    def _concrete(self, wanted: str) -> Any:
        """The plain value where it is known; otherwise an error which says why `wanted` cannot be had."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        return bool(self._concrete("bool()"))

    def __int__(self) -> int:
        if self.dtype.kind in "iub":
            return int(self._concrete("int()"))
        raise self._refuse("int()")

    def __index__(self) -> int:
        if self.dtype.kind in "iu":
            return operator.index(self._concrete("an index"))
        raise self._refuse("an index")

    def __repr__(self) -> str:
        return f"<{self._trace.name} tracer {self.aval}>"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec) if not spec else format(self._concrete("formatting"), spec)

    # -- never silently a plain value ----------------------------------------------------------------------------

    def _refuse(self, wanted: str, fix: str = "") -> TracerConversionError:
        if calling_library() == "scipy":
            fix = "fnad.scipy has some SciPy functions that are no ufuncs (special.logsumexp, softmax, ...); the others cannot be traced"
        else:
            fix = later("advice").for_conversion(wanted, self._plain) or fix or f"{_SPELLINGS}; {self._plain}"
            if self._plain == _KNOWN and self._plain not in fix:
                fix = f"{fix}; {self._plain}"
        return TracerConversionError(
            f"a traced value cannot become {wanted}: {self._why_not}", got={"value": repr(self), "at": user_line()}, fix=fix
        )

    def __float__(self) -> float:
        raise self._refuse("a Python float")

    def __complex__(self) -> complex:
        raise self._refuse("a Python complex")

    def __round__(self, ndigits: int | None = None) -> Any:
        if ndigits is None:
            raise self._refuse("a Python int (round())", "np.round(x)")
        return np.round(self, ndigits)

    def __trunc__(self) -> NoReturn:
        raise self._refuse("a Python int (math.trunc())", "np.trunc(x)")

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        if sys._getframe(1).f_code.co_qualname.startswith("vectorize."):
            raise dispatch.unsupported(np.vectorize)
        raise self._refuse("a plain ndarray")

    def item(self, *_args: Any) -> NoReturn:
        raise self._refuse("a Python number (.item())")

    def tolist(self) -> NoReturn:
        raise self._refuse("a list (.tolist())")

    def tobytes(self, *_args: Any) -> NoReturn:
        raise self._refuse("bytes (.tobytes())")

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise InPlaceError(
            "a traced value cannot be changed in place",
            got={"value": repr(self), "at": user_line()},
            fix="write x = fnad.at(x)[i].set(v), which returns a new array",
        )

    def __delitem__(self, index: Any) -> NoReturn:
        raise InPlaceError("entries of an array cannot be deleted", got={"value": repr(self)}, fix="select the others by indexing")

    def _in_place_method(self, name: str, fix: str) -> NoReturn:
        raise InPlaceError(f".{name}() changes an array in place, which a traced value does not allow", got={"at": user_line()}, fix=fix)

    def sort(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._in_place_method("sort", "write x = np.sort(x)")

    def partition(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._in_place_method("partition", "write x = np.sort(x)")

    def fill(self, *_args: Any) -> NoReturn:
        self._in_place_method("fill", "write x = np.full_like(x, value)")

    def put(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._in_place_method("put", "write x = fnad.at(x)[i].set(v)")

    def resize(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._in_place_method("resize", "write x = np.reshape(x, shape)")

    # -- NumPy's protocols ---------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            return dispatch.ROWS[ufunc](*inputs)
        return dispatch.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return dispatch.ROWS[func](*args, **kwargs)

    # -- indexing and iteration ----------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        return dispatch.ROWS[operator.getitem](self, index)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, x: Any) -> bool:
        return bool(np.any(self == x))

    # -- attributes and methods of ndarray -----------------------------------------------------------------------

    @property
    def T(self) -> Any:
        return np.transpose(self)

    @property
    def mT(self) -> Any:
        return np.matrix_transpose(self)

    @property
    def real(self) -> Any:
        return np.real(self)

    @property
    def imag(self) -> Any:
        return np.imag(self)

    @property
    def flat(self) -> Any:
        return np.ravel(self)

    def flatten(self, order: Any = "C") -> Any:
        return np.ravel(self, order=order)

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, **kwargs)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        return np.compress(condition, self, axis, out)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)

    def astype(self, dtype: Any, *_args: Any, **_kwargs: Any) -> Any:
        return dispatch.ROWS[np.astype](self, dtype)

    def clip(self, min: Any = None, max: Any = None, **kwargs: Any) -> Any:
        return np.clip(self, min, max, **kwargs)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> NoReturn:
        raise self._refuse("bytes (pickle)")

    def __hash__(self) -> int:
        raise TracerConversionError(
            "a traced value is unhashable: it cannot be a key of a dict or an element of a set",
            got={"value": repr(self), "at": user_line()},
            fix=f"use plain Python keys; {self._plain}",
        )


def closes_over_traced(what: str, trace: Trace, function: Any = None) -> ClosureError:
    return ClosureError(
        f"{what} closes over a value that {trace.name} traces",
        got={"function": describe_function(function or trace.function), "called at": user_line()},
        fix="pass that value as an argument of the function",
    )


def check_alive(x: Any) -> None:
    """Raise if a value that leaves a function is a tracer of a transform that has ended."""
    if isinstance(x, Tracer) and not x._trace.alive:
        raise x._trace.leaked()


def _ufunc_operator(ufunc: np.ufunc, reflected: bool) -> Callable[[Any, Any], Any]:
    def forward(self: Any, other: Any) -> Any:
        if getattr(other, "__array_ufunc__", ufunc) is None:
            return NotImplemented
        return dispatch.ROWS[ufunc](self, other)

    def backward(self: Any, other: Any) -> Any:
        return dispatch.ROWS[ufunc](other, self)

    return backward if reflected else forward


def _unary_operator(ufunc: np.ufunc) -> Callable[[Any], Any]:
    return lambda self: dispatch.ROWS[ufunc](self)


def _numpy_method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"`np.{name}` of this array."
    return method


# The operators of NumPy's own mixin but for the in-place ones: without them `t += x` rebinds the name.
_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "divmod": np.divmod, "pow": np.power, "matmul": np.matmul, "lshift": np.left_shift,
    "rshift": np.right_shift, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
_COMPARE = {"lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal}
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
_METHODS = """
    all any argmax argmin argpartition argsort choose conj conjugate copy cumprod cumsum diagonal dot max mean min nonzero prod ptp
    ravel repeat round searchsorted squeeze std sum swapaxes take trace var
""".split()  # noqa: SIM905 (as a list it fills a screen)

for _name, _ufunc in _BINARY.items():
    setattr(Tracer, f"__{_name}__", _ufunc_operator(_ufunc, False))
    setattr(Tracer, f"__r{_name}__", _ufunc_operator(_ufunc, True))
for _name, _ufunc in _COMPARE.items():
    setattr(Tracer, f"__{_name}__", _ufunc_operator(_ufunc, False))
for _name, _ufunc in _UNARY.items():
    setattr(Tracer, f"__{_name}__", _unary_operator(_ufunc))
for _name in _METHODS:
    setattr(Tracer, _name, _numpy_method(_name))


class ValueTracer(Tracer):
    """A tracer that knows its value (a plain array, or a tracer of an outer transform): those of grad, vjp and jvp."""

    __slots__ = ("value",)
    value: Any

    @property
    def _why_not(self) -> str:  # type: ignore[override]
        return "its derivative would be lost" if self._plain is _KNOWN else self.value._why_not

    @property
    def _plain(self) -> str:  # type: ignore[override]
        return self.value._plain if isinstance(self.value, Tracer) else _KNOWN

    @property
    def aval(self) -> Aval:
        return aval_of(self.value)

    @property
    def shape(self) -> tuple[int, ...]:
        try:
            return self.value.shape
        except AttributeError:  # a Python scalar
            return ()

    @property
    def dtype(self) -> np.dtype[Any]:
        try:
            return self.value.dtype
        except AttributeError:
            return aval_of(self.value).dtype

    def _concrete(self, wanted: str) -> Any:
        value = self.value
        return value._concrete(wanted) if isinstance(value, Tracer) else value

    def __repr__(self) -> str:
        shown = "" if self.size > _SHOWN else " ".join(repr(self.value).split())
        return f"<{self._trace.name} tracer {self.aval}{f' of {shown}' if shown else ''}>"
