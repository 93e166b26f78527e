"""What calls of NumPy's, math's and Python's own functions become."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from fnad.errors import DTypeError
from fnad.loops import arrays, operators
from fnad.loops.arrays import Lazy, arrayish, lazy, materialise
from fnad.loops.builder import Builder, const, dtype_of, is_scalar, is_tuple
from fnad.loops.indexing import dtype_of_any
from fnad.loops.ir import Array, Const, Operand, Scalar, Value
from fnad.loops.source import Static

Handler = Callable[..., Any]
HANDLERS: dict[Any, Handler] = {}
"""A function of NumPy, math or Python -> `handler(builder, *args, **keywords)`."""
METHODS: dict[str, Handler] = {}
"""The methods of arrays that differ from a function of `HANDLERS`, or have none."""

NAMES = {
    "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "sinh": "sinh", "cosh": "cosh",
    "tanh": "tanh", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "exp": "exp", "exp2": "exp2", "expm1": "expm1",
    "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "sqrt": "sqrt", "cbrt": "cbrt", "fabs": "fabs", "sign": "sign",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint", "hypot": "hypot", "arctan2": "atan2", "copysign": "copysign",
    "fmod": "fmod", "maximum": "maximum", "minimum": "minimum", "fmax": "fmax", "fmin": "fmin", "logaddexp": "logaddexp",
    "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite", "degrees": "degrees", "rad2deg": "degrees", "radians": "radians",
    "deg2rad": "radians", "sinc": "sinc", "heaviside": "heaviside", "real": "real", "imag": "imag", "conj": "conj",
    "conjugate": "conj", "abs": "abs", "absolute": "abs",
}  # fmt: skip
MATH = {
    "asin": "asin", "acos": "acos", "atan": "atan", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "atan2": "atan2",
    "erf": "erf", "erfc": "erfc", "gamma": "gamma", "lgamma": "lgamma",
}  # fmt: skip


def handles(*functions: Any) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(functions, handler))
        return handler

    return register


def _function(name: str) -> Handler:
    return lambda b, *args: operators.function(b, name, *args)


def _binary(kind: str) -> Handler:
    return lambda b, x, y: operators.binary(b, kind, x, y)


HANDLERS.update({getattr(np, name): _function(kind) for name, kind in NAMES.items()})
HANDLERS.update({getattr(math, name): _function(kind) for name, kind in {**NAMES, **MATH}.items() if hasattr(math, name)})
HANDLERS[abs] = _function("abs")
for _names, _kind in (
    ("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "div"), ("true_divide", "div"), ("floor_divide", "floordiv"),
    ("mod", "mod"), ("remainder", "mod"), ("power", "pow"), ("float_power", "pow"), ("less", "lt"), ("less_equal", "le"),
    ("greater", "gt"), ("greater_equal", "ge"), ("equal", "eq"), ("not_equal", "ne"), ("bitwise_and", "bitand"),
    ("bitwise_or", "bitor"), ("bitwise_xor", "bitxor"), ("left_shift", "shl"), ("right_shift", "shr"),
):  # fmt: skip
    HANDLERS[getattr(np, _names)] = _binary(_kind)
for _names, _kind in (
    ("add", "add"),
    ("sub", "sub"),
    ("mul", "mul"),
    ("truediv", "div"),
    ("floordiv", "floordiv"),
    ("mod", "mod"),
    ("pow", "pow"),
):
    HANDLERS[getattr(operator, _names)] = _binary(_kind)
HANDLERS[math.pow] = lambda b, x, y: operators.binary(b, "pow", operators.convert(b, x, np.float64), y)
HANDLERS[np.negative] = HANDLERS[operator.neg] = operators.negative
HANDLERS[np.positive] = lambda b, x: x
HANDLERS[np.square] = lambda b, x: operators.binary(b, "mul", x, x)
HANDLERS[np.reciprocal] = lambda b, x: operators.binary(b, "div", const(1), x)
HANDLERS[np.invert] = operators.invert
HANDLERS[np.logical_not] = operators.logical_not
HANDLERS[np.logical_and] = lambda b, x, y: operators.logical(b, "and", x, y)
HANDLERS[np.logical_or] = lambda b, x, y: operators.logical(b, "or", x, y)
HANDLERS[np.logical_xor] = lambda b, x, y: operators.binary(b, "ne", operators.convert(b, x, bool), operators.convert(b, y, bool))


@handles(np.where)
def _where(b: Builder, condition: Any, x: Any, y: Any) -> Any:
    return operators.where(b, condition, x, y)


@handles(np.clip)
def _clip(b: Builder, x: Any, low: Any, high: Any) -> Any:
    low_given, high_given = (not isinstance(v, Static) for v in (low, high))
    x = operators.function(b, "maximum", x, low) if low_given else x
    return operators.function(b, "minimum", x, high) if high_given else x


def _extreme(kind: str) -> Handler:
    def handler(b: Builder, *args: Any) -> Any:
        values = list(args[0]) if len(args) == 1 and is_tuple(args[0]) else list(args)
        if len(values) == 1 and arrayish(values[0]):
            return _running(kind)(b, values[0])
        operators.check_numbers(b, *values)
        if any(arrayish(v) for v in values):
            b.fail("max and min compare numbers", fix="np.maximum or np.minimum for arrays")
        best = values[0]
        for value in values[1:]:
            best = operators.pick(b, kind, best, value)
        return best

    return handler


def _running(kind: str) -> Handler:
    def handler(b: Builder, x: Any, axis: Any = None) -> Any:
        best, _ = _winner(b, x, kind, axis, "value")
        return best

    return handler


def _winner(b: Builder, x: Any, kind: str, axis: Any, what: str) -> tuple[Any, Any]:
    """The largest or smallest element, or its index: the first of equal ones, kept by a running comparison."""
    x = lazy(b, materialise(b, x))
    if axis_of(b, x, axis) is not None:
        b.fail("max, min, argmax and argmin along an axis", fix="loop over the rows")
    b.when(
        b.scalar("eq", _count(b, x.sizes), const(0)),
        lambda: b.emit("raise", (), text="ValueError: the largest or smallest element of an empty array"),
    )
    first = x.element([const(0)] * len(x.sizes))

    def step(at: Sequence[Operand], carried: list[Operand]) -> list[Operand]:
        value = x.element(at)
        better = b.scalar(kind, value, carried[0])
        if x.dtype.kind == "f":
            better = b.scalar("or", better, b.scalar("and", b.scalar("ne", value, value), b.scalar("eq", carried[0], carried[0])))
        kept = b.scalar("select", better, value, carried[0], dtype=x.dtype)
        if what == "value":
            return [kept]
        number = at[0]
        for index, size in zip(at[1:], x.sizes[1:], strict=True):
            number = b.scalar("add", b.scalar("mul", number, size, dtype=np.int64), index, dtype=np.int64)
        return [kept, b.scalar("select", better, number, carried[1], dtype=np.int64)]

    found = arrays.reduce(b, x, step, [first] if what == "value" else [first, const(0)])
    return found[0], found[-1]


HANDLERS[max] = _extreme("gt")
HANDLERS[min] = _extreme("lt")
HANDLERS[np.max] = HANDLERS[np.amax] = _running("gt")
HANDLERS[np.min] = HANDLERS[np.amin] = _running("lt")
HANDLERS[np.argmax] = lambda b, x, axis=None: _winner(b, x, "gt", axis, "index")[1]
HANDLERS[np.argmin] = lambda b, x, axis=None: _winner(b, x, "lt", axis, "index")[1]


def axis_of(b: Builder, x: Lazy, axis: Any) -> int | None:
    """A static axis, counted from the front; None for all of them."""
    if axis is None or (isinstance(axis, Static) and axis.object is None):
        return None
    if not isinstance(axis, Const):
        b.fail("An axis must be known when the function is compiled", fix="write a literal number")
    number = int(axis.value)
    rank = len(x.sizes)
    if not -rank <= number < rank:
        b.fail(f"Axis {number} of an array of rank {rank}")
    return number % rank if rank > 1 else None


def _count(b: Builder, sizes: Sequence[Operand]) -> Operand:
    count: Operand = const(1)
    for size in sizes:
        count = b.scalar("mul", count, size, dtype=np.int64)
    return count


def _accumulate(b: Builder, kind: str, x: Any, axis: Any, start: Any, dtype: Any) -> Any:
    x = lazy(b, x)

    def step(at: Sequence[Operand], carried: list[Operand]) -> list[Operand]:
        return [b.scalar(kind, carried[0], b.cast(x.element(at), dtype), dtype=dtype)]

    which = axis_of(b, x, axis)
    found = arrays.reduce(b, x, step, [const(start, dtype)], which)
    return found[0] if which is None else materialise(b, found)


def _sum_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.int64) if dtype.kind in "bi" else dtype


@handles(np.sum, sum)
def _sum(b: Builder, x: Any, axis: Any = None) -> Any:
    if is_tuple(x):
        total: Any = const(0)
        for value in x:
            total = operators.binary(b, "add", total, value)
        return total
    return _accumulate(b, "add", x, axis, 0, _sum_dtype(dtype_of_any(x)))


@handles(np.prod)
def _prod(b: Builder, x: Any, axis: Any = None) -> Any:
    return _accumulate(b, "mul", x, axis, 1, _sum_dtype(dtype_of_any(x)))


@handles(np.mean)
def _mean(b: Builder, x: Any, axis: Any = None) -> Any:
    x = lazy(b, x)
    which = axis_of(b, x, axis)
    count = _count(b, x.sizes) if which is None else x.sizes[which]
    dtype = operators.floating(x.dtype)
    total = _accumulate(b, "add", x, axis, 0, dtype)
    return operators.binary(b, "div", total, b.cast(count, dtype))


@handles(np.var)
def _var(b: Builder, x: Any) -> Any:
    x = lazy(b, materialise(b, x))
    centred = operators.binary(b, "sub", x, _mean(b, x))
    return _mean(b, operators.binary(b, "mul", centred, centred))


@handles(np.std)
def _std(b: Builder, x: Any) -> Any:
    return operators.function(b, "sqrt", _var(b, x))


def _all_or_any(kind: str, start: bool) -> Handler:
    def handler(b: Builder, x: Any) -> Any:
        x = lazy(b, x)

        def step(at: Sequence[Operand], carried: list[Operand]) -> list[Operand]:
            return [b.scalar(kind, carried[0], b.truth(x.element(at)))]

        return arrays.reduce(b, x, step, [const(start)])[0]

    return handler


HANDLERS[np.all] = _all_or_any("and", True)
HANDLERS[np.any] = _all_or_any("or", False)


# sizes and allocation


@handles(len)
def _len(b: Builder, x: Any) -> Any:
    if is_tuple(x):
        return const(len(x))
    if not arrayish(x):
        b.fail("len() is for arrays and tuples", kind=DTypeError)
    return lazy(b, x).sizes[0]


def sizes_of(b: Builder, shape: Any) -> list[Operand]:
    """A shape argument as sizes."""
    sizes = list(shape) if is_tuple(shape) else [shape]
    for size in sizes:
        if not is_scalar(size) or dtype_of(size).kind not in "iu":
            b.fail("A shape must be an integer or a tuple of integers", kind=DTypeError)
    return [b.cast(size, np.int64) for size in sizes]


def dtype_from(b: Builder, given: Any, default: Any) -> np.dtype[Any]:
    """A dtype argument."""
    if given is None or (isinstance(given, Static) and given.object is None):
        return np.dtype(default)
    if isinstance(given, Static):
        with suppress(TypeError):
            return np.dtype(getattr(given.object, "name", given.object))
    b.fail("A dtype must be one of NumPy's", got={"dtype": given}, kind=DTypeError)


def _creation(fill: Any) -> Handler:
    return lambda b, shape, dtype=None: b.alloc(sizes_of(b, shape), dtype_from(b, dtype, np.float64), fill)


def _creation_like(fill: Any) -> Handler:
    def handler(b: Builder, x: Any, dtype: Any = None) -> Any:
        x = lazy(b, x)
        return b.alloc(x.sizes, dtype_from(b, dtype, x.dtype), fill)

    return handler


for _names, _fill in (("empty", None), ("zeros", 0), ("ones", 1)):
    HANDLERS[getattr(np, _names)] = _creation(_fill)
    HANDLERS[getattr(np, _names + "_like")] = _creation_like(_fill)


@handles(np.full)
def _full(b: Builder, shape: Any, fill: Any, dtype: Any = None) -> Any:
    return _filled(b, sizes_of(b, shape), fill, dtype_from(b, dtype, dtype_of(fill)))


@handles(np.full_like)
def _full_like(b: Builder, x: Any, fill: Any, dtype: Any = None) -> Any:
    x = lazy(b, x)
    return _filled(b, x.sizes, fill, dtype_from(b, dtype, x.dtype))


def _filled(b: Builder, sizes: list[Operand], fill: Any, dtype: np.dtype[Any]) -> Value:
    if isinstance(fill, Const):
        return b.alloc(sizes, dtype, b.cast(fill, dtype).value)  # type: ignore[union-attr]
    out = b.alloc(sizes, dtype)
    arrays.store_into(b, out, fill)
    return out


@handles(np.array)
def _array(b: Builder, x: Any, dtype: Any = None) -> Any:
    if arrayish(x):
        x = operators.convert(b, x, dtype_from(b, dtype, dtype_of_any(x)))
        return materialise(b, x)
    leaves: list[tuple[tuple[int, ...], Any]] = []
    shape = _nested(b, x, (), leaves)
    joint = np.result_type(*[dtype_of(v) for _, v in leaves]) if leaves else np.float64
    out = b.alloc([const(n) for n in shape], dtype_from(b, dtype, joint))
    for at, value in leaves:
        b.store(out, [const(i) for i in at], value)
    return out


def _nested(b: Builder, x: Any, at: tuple[int, ...], leaves: list[tuple[tuple[int, ...], Any]]) -> tuple[int, ...]:
    if not is_tuple(x):
        operators.check_numbers(b, x)
        if arrayish(x):
            b.fail("np.array of arrays", fix="allocate the result and assign its rows")
        leaves.append((at, x))
        return ()
    shapes = {_nested(b, item, (*at, k), leaves) for k, item in enumerate(x)}
    if len(shapes) > 1:
        b.fail("The rows of np.array differ in length")
    return (len(x), *(shapes.pop() if shapes else ()))


@handles(np.asarray, np.ascontiguousarray)
def _asarray(b: Builder, x: Any, dtype: Any = None) -> Any:
    if arrayish(x) and dtype_from(b, dtype, dtype_of_any(x)) == dtype_of_any(x):
        return x
    return _array(b, x, dtype)


@handles(np.copy)
def _copy(b: Builder, x: Any) -> Any:
    return materialise(b, x) if isinstance(x, Lazy) else b.copy(x)


@handles(np.arange)
def _arange(b: Builder, start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    if stop is None:
        start, stop = const(0), start
    step = const(1) if step is None else step
    joint = operators.common(*[dtype_of(v) for v in (start, stop, step)])
    span = operators.binary(b, "sub", stop, start)
    if joint.kind == "f":
        count = b.cast(operators.function(b, "ceil", operators.binary(b, "div", span, step)), np.int64)
    else:
        count = operators.negative(b, operators.binary(b, "floordiv", operators.negative(b, span), step))
    count = operators.pick(b, "gt", const(0), count)

    def element(at: Sequence[Operand]) -> Operand:
        return b.cast(operators.binary(b, "add", start, operators.binary(b, "mul", at[0], step)), dtype_from(b, dtype, joint))

    return Lazy(dtype_from(b, dtype, joint), [count], element, [])


@handles(np.linspace)
def _linspace(b: Builder, start: Any, stop: Any, num: Any = None) -> Any:
    count: Operand = const(50) if num is None else b.cast(num, np.int64)
    start, stop = (operators.convert(b, v, np.float64) for v in (start, stop))
    gaps = b.cast(operators.pick(b, "gt", const(1), operators.binary(b, "sub", count, const(1))), np.float64)
    step = operators.binary(b, "div", operators.binary(b, "sub", stop, start), gaps)

    def element(at: Sequence[Operand]) -> Operand:
        last = b.scalar("and", b.scalar("eq", at[0], b.scalar("sub", count, const(1), dtype=np.int64)), b.scalar("gt", count, const(1)))
        inner = operators.binary(b, "add", start, operators.binary(b, "mul", b.cast(at[0], np.float64), step))
        return b.scalar("select", last, stop, inner, dtype=np.float64)

    return Lazy(np.dtype(np.float64), [count], element, [])


@handles(np.eye, np.identity)
def _eye(b: Builder, n: Any, m: Any = None, dtype: Any = None) -> Any:
    kept = dtype_from(b, dtype, np.float64)
    sizes = sizes_of(b, (n, n if m is None else m))
    return Lazy(kept, sizes, lambda at: b.cast(b.scalar("eq", at[0], at[1]), kept), [])


# products and copies of several arrays


@handles(np.dot, operator.matmul)
def dot(b: Builder, x: Any, y: Any) -> Any:
    """`x @ y` of arrays of rank 1 or 2."""
    if is_scalar(x) or is_scalar(y):
        return operators.binary(b, "mul", x, y)
    dtype = operators.common(dtype_of_any(x), dtype_of_any(y))
    x, y = (materialise(b, v if dtype_of_any(v) == dtype else operators.convert(b, v, dtype)) for v in (x, y))
    ranks = x.type.ndim, y.type.ndim
    if not set(ranks) <= {1, 2}:
        b.fail(f"Products of arrays of ranks {ranks[0]} and {ranks[1]}", fix="loop over the leading axes")
    rank = sum(ranks) - 2
    if not rank:
        return b.emit("dot", (x, y), Scalar(dtype))
    out = b.emit("dot", (x, y), Array(dtype, rank))
    b.roots[out] = b._new_root()
    b.shapes[out] = [*b.shape(x)[:-1], *(b.shape(y)[1:] if ranks[1] == 2 else ())]
    return out


@handles(np.vdot)
def _vdot(b: Builder, x: Any, y: Any) -> Any:
    return dot(b, operators.function(b, "conj", x) if dtype_of_any(x).kind == "c" else x, y)


@handles(np.outer)
def _outer(b: Builder, x: Any, y: Any) -> Any:
    x, y = (lazy(b, materialise(b, v)) for v in (x, y))
    dtype = operators.common(x.dtype, y.dtype)
    leaves = [(leaf, False) for part in (x, y) for leaf, _ in part.leaves]

    def element(at: Sequence[Operand]) -> Operand:
        return b.cast(operators.binary(b, "mul", x.element(at[:1]), y.element(at[1:])), dtype)

    return Lazy(dtype, [x.sizes[0], y.sizes[0]], element, leaves)


@handles(np.linalg.norm)
def _norm(b: Builder, x: Any) -> Any:
    x = lazy(b, materialise(b, operators.convert(b, x, operators.floating(dtype_of_any(x)))))
    return operators.function(b, "sqrt", _sum(b, operators.binary(b, "mul", x, x)))


# conversions


def _conversion(dtype: Any) -> Handler:
    return lambda b, x=None: const(0, dtype) if x is None else operators.convert(b, x, dtype)


for _kind, _dtype in ((int, np.int64), (float, np.float64), (bool, np.bool_), (complex, np.complex128)):
    HANDLERS[_kind] = _conversion(_dtype)
for _dtype in (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float32, np.float64,
    np.complex64, np.complex128,
):  # fmt: skip
    HANDLERS[_dtype] = _conversion(_dtype)


@handles(round)
def _round(b: Builder, x: Any) -> Any:
    return b.cast(operators.function(b, "rint", x), np.int64)


def _rounding(name: str) -> Handler:
    return lambda b, x: operators.convert(b, operators.function(b, name, x), np.int64)


for _name in ("floor", "ceil", "trunc"):
    HANDLERS[getattr(math, _name)] = _rounding(_name)


@handles(divmod)
def _divmod(b: Builder, x: Any, y: Any) -> Any:
    return operators.binary(b, "floordiv", x, y), operators.binary(b, "mod", x, y)


# methods


def _reshape(b: Builder, x: Any, *shape: Any) -> Any:
    x = materialise(b, x)
    sizes = sizes_of(b, shape[0] if len(shape) == 1 else tuple(shape))
    unknown = [k for k, s in enumerate(sizes) if isinstance(s, Const) and s.value == -1]
    if unknown:
        others = [s for k, s in enumerate(sizes) if k != unknown[0]]
        sizes[unknown[0]] = b.scalar("floordiv", _count(b, b.shape(x)), _count(b, others), dtype=np.int64)
    return b.reshape(x, sizes)


def _fill_method(b: Builder, x: Value, value: Any) -> Any:
    arrays.store_into(b, x, value)
    return Static(None)


METHODS.update(
    reshape=_reshape,
    ravel=lambda b, x: _reshape(b, x, const(-1)),
    flatten=lambda b, x: _reshape(b, _copy(b, x), const(-1)),
    copy=_copy,
    fill=_fill_method,
    astype=lambda b, x, dtype: materialise(b, _copy_as(b, x, dtype_from(b, dtype, np.float64))),
    transpose=lambda b, x: b.transpose(materialise(b, x), tuple(range(lazy(b, x).type.ndim))[::-1]),
    dot=dot,
    conj=HANDLERS[np.conj],
    conjugate=HANDLERS[np.conj],
    **{name: HANDLERS[getattr(np, name)] for name in ["sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "all", "any"]},
)
HANDLERS[np.reshape] = lambda b, x, shape: _reshape(b, x, shape)
HANDLERS[np.ravel] = METHODS["ravel"]
HANDLERS[np.transpose] = METHODS["transpose"]


def _copy_as(b: Builder, x: Any, dtype: np.dtype[Any]) -> Any:
    return b.copy(x) if isinstance(x, Value) and dtype_of(x) == dtype else operators.convert(b, x, dtype)


@handles(builtins.print)
def _print(b: Builder, *args: Any, **keywords: Any) -> Any:
    return Static(None)
