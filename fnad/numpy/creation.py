"""New arrays shaped like others; ranges between traced ends. What does not depend on a traced value stays plain."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fnad.core.aval import PYTHON_SCALARS, aval_of, result_dtype, shape_of
from fnad.core.dispatch import implements, refuse
from fnad.core.tracer import Tracer
from fnad.errors import DTypeError, UnsupportedError
from fnad.numpy.indexing import as_array


def _like(a: Any, dtype: Any, shape: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    aval = aval_of(a)
    if shape is None:
        shape = aval.shape
    wanted = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    return wanted, aval.dtype if dtype is None else np.dtype(dtype)


@implements(np.zeros_like)
def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    return np.zeros(*_like(a, dtype, shape))


@implements(np.ones_like)
def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    return np.ones(*_like(a, dtype, shape))


@implements(np.empty_like)
def empty_like(prototype: Any, /, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    return np.empty(*_like(prototype, dtype, shape))


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Any:
    wanted, dtype = _like(a, dtype, shape)
    if not isinstance(fill_value, Tracer):
        return np.full(wanted, fill_value, dtype)
    fill: Any = fill_value
    if not np.can_cast(fill_value.dtype, dtype, "same_kind"):
        raise DTypeError(
            "np.full_like: a traced fill value must not lose its kind",
            got={"fill_value": fill_value.aval, "dtype": dtype},
            fix="pass dtype=, or np.broadcast_to(fill_value, shape)",
        )
    return np.broadcast_to(np.astype(fill, dtype), wanted)


@implements(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    parts = num - 1 if endpoint else num
    ends = [x if isinstance(x, PYTHON_SCALARS) else as_array(x) for x in (start, stop)]
    common = np.result_type(result_dtype(*map(aval_of, ends)), 1.0)
    start, stop = (np.asarray(x, common)[()] if isinstance(x, PYTHON_SCALARS) else x.astype(common) for x in ends)
    delta = stop - start
    shape = shape_of(delta)
    counter = np.reshape(np.arange(num, dtype=np.zeros((), delta.dtype).real.dtype), (num, *(1,) * len(shape)))
    step = delta / parts if parts > 0 else np.full(shape, np.nan)
    samples = start + (counter * step if parts > 0 else counter * delta)
    if endpoint and num > 1:
        samples = np.where(counter == parts, stop, samples)  # the last sample is the end itself, whatever rounding did
    samples = np.moveaxis(samples, 0, axis)
    if dtype is not None:
        if np.dtype(dtype).kind not in "fc":
            raise UnsupportedError("np.linspace between traced ends gives floating-point samples only", got={"dtype": dtype})
        samples = np.astype(samples, dtype)
    return (samples, step) if retstep else samples


@implements(np.logspace)
def logspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> Any:
    if np.ndim(base):
        raise UnsupportedError("np.logspace between traced ends takes a scalar base", fix="write base ** np.linspace(start, stop, num)")
    samples = np.power(base, np.linspace(start, stop, num=num, endpoint=endpoint, axis=axis))
    return samples if dtype is None else np.astype(samples, dtype)


refuse("write np.reshape(x, shape), or np.tile and slicing to repeat entries", np.resize)
