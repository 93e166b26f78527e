"""Selection, rounding, comparison with tolerance, parts of complex numbers: NumPy functions of each element that are no ufuncs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import PYTHON_SCALARS, aval_of, result_dtype, shape_of
from fnad.core.dispatch import implements
from fnad.core.tracer import Tracer
from fnad.errors import InPlaceError, UnsupportedError
from fnad.primitives import arithmetic, elementary
from fnad.primitives import shape as shape_prims


def refuse_out(out: Any, name: str) -> None:
    """Raise if a function was asked to write its result into an array."""
    if out is not None:
        raise InPlaceError(f"{name} cannot write into out= while a traced value is involved", fix=f"use the value that {name} returns")


def as_operand(x: Any) -> Any:
    """An array-like as something with a shape and a dtype; Python scalars stay weak."""
    return x if isinstance(x, Tracer | np.ndarray | np.generic) or x.__class__ in PYTHON_SCALARS else np.asarray(x)


def plain(x: Any) -> Any:
    """The value of x cut off from differentiation: plain where it is known, a tracer under vmap and while recording."""
    return shape_prims.stop(x) if isinstance(x, Tracer) else as_operand(x)


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """An array-like or tracer in another dtype."""
    array: Any = x if isinstance(x, Tracer) else np.asarray(x)
    return np.astype(array, dtype)


def _kind(x: Any) -> str:
    return aval_of(x).dtype.kind


# -- selection ---------------------------------------------------------------------------------------------------------


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if (x is None) != (y is None):
        raise ValueError("either both or neither of x and y should be given")
    if x is None:
        condition = plain(condition)
        return np.nonzero(condition._concrete("np.where(condition)") if isinstance(condition, Tracer) else condition)
    return arithmetic.where(as_operand(condition), as_operand(x), as_operand(y))


@implements(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if len(condlist) == 0:
        raise ValueError("select with an empty condition list is not possible")
    for i, condition in enumerate(condlist):
        if _kind(condition) != "b":
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    choices = [as_operand(x) for x in (*choicelist, default)]
    dtype = np.result_type(*choices)  # of all at once: Python scalars give way to arrays that come later
    result, *others = (dtype.type(x) if x.__class__ in PYTHON_SCALARS else x for x in reversed(choices))
    for condition, choice in zip(reversed(condlist), others, strict=True):
        result = where(condition, choice, result)
    return result


@implements(np.clip)
def clip(
    a: Any, a_min: Any = np._NoValue, a_max: Any = np._NoValue, out: Any = None, *, min: Any = np._NoValue, max: Any = np._NoValue,
    **kwargs: Any,
) -> Any:  # fmt: skip
    refuse_out(out, "np.clip")
    if kwargs:
        raise UnsupportedError(f"np.clip on a traced value does not take {', '.join(kwargs)}", fix="leave it out")
    if a_min is np._NoValue and a_max is np._NoValue:
        low, high = (None if m is np._NoValue else m for m in (min, max))
    elif a_min is np._NoValue:
        raise TypeError("clip() missing 1 required positional argument: 'a_min'")
    elif a_max is np._NoValue:
        raise TypeError("clip() missing 1 required positional argument: 'a_max'")
    elif min is not np._NoValue or max is not np._NoValue:
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    else:
        low, high = a_min, a_max
    result, low, high = (None if x is None else as_operand(x) for x in (a, low, high))
    if _kind(result) in "iu":  # as NumPy: Python integers that no entry can pass are no bounds
        info = np.iinfo(aval_of(result).dtype)
        low = None if low.__class__ is int and low <= info.min else low
        high = None if high.__class__ is int and high >= info.max else high
    avals = [aval_of(x) for x in (result, low, high) if x is not None]
    dtype = result_dtype(*avals)  # of all three at once
    result, low, high = (x if x is None or aval_of(x).weak or aval_of(x).dtype == dtype else cast(x, dtype) for x in (result, low, high))
    if low is not None:
        result = arithmetic.maximum(result, low)
    return result if high is None else arithmetic.minimum(result, high)


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if not copy:
        raise InPlaceError("np.nan_to_num(copy=False) changes its argument in place", fix="leave copy out and use the returned value")
    if _kind(x) == "c":
        parts = (nan_to_num(part, True, nan, posinf, neginf) for part in (np.real(x), np.imag(x)))
        return next(parts) + 1j * next(parts)
    if _kind(x) != "f":
        return x
    info = np.finfo(aval_of(x).dtype)
    x = where(np.isnan(x), nan, x)
    x = where(isposinf(x), info.max if posinf is None else posinf, x)
    return where(isneginf(x), info.min if neginf is None else neginf, x)


@implements(np.copy)
def copy(a: Any, order: Any = "K", subok: bool = False) -> Any:
    return a  # traced values never change, so they need no copies


# -- arithmetic --------------------------------------------------------------------------------------------------------


@implements(np.divmod)
def divmod(x1: Any, x2: Any, /) -> tuple[Any, Any]:
    return arithmetic.floor_divide(x1, x2), arithmetic.remainder(x1, x2)


@implements(np.float_power)
def float_power(x1: Any, x2: Any, /) -> Any:
    wide = np.result_type(x1, x2, np.float64)
    return arithmetic.power(*(x if x.__class__ in PYTHON_SCALARS else cast(x, wide) for x in (x1, x2)))


@implements(np.sign)
def sign(x: Any, /) -> Any:
    if _kind(x) != "c":
        return elementary.sign(x)
    r = np.absolute(x)
    return x / where(r == 0, 1, r)


# -- rounding ----------------------------------------------------------------------------------------------------------


@implements(np.round, np.around)
def round(a: Any, decimals: int = 0, out: Any = None) -> Any:
    refuse_out(out, "np.round")
    return elementary.round(a, decimals=decimals.__index__())


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    refuse_out(out, "np.fix")
    return elementary.trunc(x)


# -- complex numbers ---------------------------------------------------------------------------------------------------


@implements(np.real)
def real(val: Any) -> Any:
    return elementary.real(val) if _kind(val) == "c" else val


@implements(np.imag)
def imag(val: Any) -> Any:
    return elementary.imag(val) if _kind(val) == "c" else np.zeros(shape_of(val), aval_of(val).dtype)


@implements(np.conjugate)
def conjugate(x: Any, /) -> Any:
    return elementary.conjugate(x) if _kind(x) == "c" else x


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    a = np.arctan2(imag(z), real(z))
    return a * (180 / np.pi) if deg else a


# -- questions, whose answers are constant -------------------------------------------------------------------------------


@implements(np.isposinf)
def isposinf(x: Any, out: Any = None) -> Any:
    refuse_out(out, "np.isposinf")
    return np.isinf(x) & np.logical_not(np.signbit(x))


@implements(np.isneginf)
def isneginf(x: Any, out: Any = None) -> Any:
    refuse_out(out, "np.isneginf")
    return np.isinf(x) & np.signbit(x)


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    return np.imag(x) != 0


@implements(np.isreal)
def isreal(x: Any) -> Any:
    return np.imag(x) == 0


@implements(np.isclose)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    a, b, rtol, atol = plain(a), plain(b), plain(rtol), plain(atol)
    if not any(isinstance(x, Tracer) for x in (a, b, rtol, atol)):
        return np.isclose(a, b, rtol, atol, equal_nan)
    near = np.less_equal(np.absolute(a - b), atol + rtol * np.absolute(b)) & np.isfinite(b)
    result = near | np.equal(a, b)
    return result | (np.isnan(a) & np.isnan(b)) if equal_nan else result


@implements(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return _verdict(np.all(isclose(a, b, rtol, atol, equal_nan)))


@implements(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    a, b = plain(a1), plain(a2)
    if shape_of(a) != shape_of(b):
        return False
    same = np.equal(a, b)
    if equal_nan and _kind(a) in "fc" and _kind(b) in "fc":
        same = same | (np.isnan(a) & np.isnan(b))
    return _verdict(np.all(same))


@implements(np.array_equiv)
def array_equiv(a1: Any, a2: Any) -> Any:
    a, b = plain(a1), plain(a2)
    try:
        np.broadcast_shapes(shape_of(a), shape_of(b))
    except ValueError:
        return False
    return _verdict(np.all(np.equal(a, b)))


def _verdict(x: Any) -> Any:
    return x if isinstance(x, Tracer) else bool(x)
