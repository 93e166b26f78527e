"""Functions of `scipy.special` that are no ufuncs, for plain arrays and traced values alike.

The ufuncs need no replacement: `scipy.special.expit(x)` of a traced `x` is differentiated as it stands. They can be had from
here too (`fnad.scipy.special.expit` is SciPy's), so one import is enough.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad import _scipy
from fnad.core.aval import PYTHON_SCALARS, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import DTypeError
from fnad.numpy.elementwise import cast
from fnad.numpy.indexing import known
from fnad.numpy.metadata import normalise_axes
from fnad.primitives import shape as shape_prims
from fnad.primitives import special as prims
from fnad.primitives._families import expand

__all__ = ["log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax"]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return getattr(_scipy.special(), name)


def _floating(x: Any, name: str) -> Any:
    """x as an array of real floating-point numbers."""
    x = x if isinstance(x, Tracer | np.ndarray | np.generic) else np.asarray(x)[()]
    kind = x.dtype.kind
    if kind == "f":
        return x
    if kind in "iub":
        return cast(x, np.dtype(np.float64))
    raise DTypeError(f"{name} takes real numbers", got={"dtype": x.dtype}, fix="write it with np.exp and np.log for complex numbers")


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """The logarithm of a sum of exponentials, log(sum(b * exp(a))), without overflow: `scipy.special.logsumexp`.

    Args:
        a: Real array of any shape.
        axis: Axis, or tuple of axes, to sum over; None for all.
        b: Weights that broadcast with `a`; they may be negative or zero.
        keepdims: Whether the axes summed over stay, with size 1.
        return_sign: Whether to return `(log(abs(sum)), sign(sum))`. Without it the result is nan where the sum is negative.

    Returns:
        An array without the axes summed over, of the dtype of `a` (float64 for integers); or a pair of them. The slope by `a`
        is the softmax, and 0 where all entries are -inf.

    Raises:
        DTypeError: `a` is complex.
        numpy.exceptions.AxisError: `axis` is out of range.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad.scipy.special import logsumexp
        >>> fnad.value_and_grad(logsumexp)(np.array([1000.0, 1000.0]))
        (np.float64(1000.6931471805599), array([0.5, 0.5]))
    """
    a = _floating(a, "logsumexp")
    if b is not None:
        b = a.dtype.type(b) if b.__class__ in PYTHON_SCALARS else _floating(b, "logsumexp")
        return _weighted(a, b, axis, keepdims, return_sign)
    axes = normalise_axes(axis, len(shape_of(a)))
    out = prims.logsumexp(a, axis=axes)
    out = expand(out, axes) if keepdims else out
    return (out, _sign_of_positive(shape_prims.stop(out))) if return_sign else out


def _sign_of_positive(log: Any) -> Any:
    """The sign of the number whose logarithm this is."""
    one = log.dtype.type(1)
    return _scalar(np.where(np.isnan(log), log, np.where(log == -np.inf, 0 * one, one)))


def _scalar(x: Any) -> Any:
    """A plain 0-d array as a NumPy scalar."""
    return x if isinstance(x, Tracer) else x[()]


def _weighted(a: Any, b: Any, axis: Any, keepdims: bool, return_sign: bool) -> Any:
    a, b = np.broadcast_arrays(a, b)
    axes = normalise_axes(axis, len(shape_of(a)))
    a = np.where(b == 0, -np.inf, a)
    top = np.max(shape_prims.stop(a), axis=axes, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    total = np.sum(b * np.exp(a - top), axis=axes, keepdims=True)
    empty = total == 0
    size = np.absolute(total) if return_sign else total
    with np.errstate(invalid="ignore"):
        out = np.where(empty, -np.inf, np.log(np.where(empty, 1, size))) + top
    sign = np.sign(shape_prims.stop(total))
    if not keepdims:
        out, sign = np.squeeze(out, axes), np.squeeze(sign, axes)
    return (_scalar(out), _scalar(sign)) if return_sign else _scalar(out)


def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)), without overflow: `scipy.special.softmax`.

    Args:
        x: Real array of any shape.
        axis: Axis, or tuple of axes, along which the result sums to 1; None for all.

    Returns:
        An array of the shape and dtype of `x` (float64 for integers).

    Raises:
        DTypeError: `x` is complex.
        numpy.exceptions.AxisError: `axis` is out of range.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.special import softmax
        >>> softmax(np.array([0.0, np.log(3.0)]))
        array([0.25, 0.75])
    """
    x = _floating(x, "softmax")
    return prims.softmax(x, axis=normalise_axes(axis, len(shape_of(x))))


def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of the softmax, x - log(sum(exp(x))), without overflow: `scipy.special.log_softmax`.

    Args:
        x: Real array of any shape.
        axis: Axis, or tuple of axes, along which the softmax sums to 1; None for all.

    Returns:
        An array of the shape and dtype of `x` (float64 for integers).

    Raises:
        DTypeError: `x` is complex.
        numpy.exceptions.AxisError: `axis` is out of range.

    Example:
        >>> import numpy as np
        >>> from fnad.scipy.special import log_softmax
        >>> log_softmax(np.array([0.0, 1000.0]))
        array([-1000.,     0.])
    """
    x = _floating(x, "log_softmax")
    return prims.log_softmax(x, axis=normalise_axes(axis, len(shape_of(x))))


def polygamma(n: Any, x: Any) -> Any:
    """The n-th derivative of the digamma function: `scipy.special.polygamma`.

    Args:
        n: Non-negative integers: a scalar or an array.
        x: Real array that broadcasts with `n`.

    Returns:
        An array of the broadcast shape, of the dtype of `x` (float64 for integers).

    Raises:
        UnsupportedError: a derivative with respect to `n` is asked for.

    Example:
        >>> import fnad
        >>> from fnad.scipy.special import polygamma
        >>> fnad.grad(lambda x: polygamma(0, x))(1.0)
        np.float64(1.6449340668482266)
    """
    return prims.polygamma(n if n.__class__ in PYTHON_SCALARS or isinstance(n, Tracer) else np.asarray(n), _floating(x, "polygamma"))


def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the multivariate gamma function, as in the densities of Wishart distributions: `scipy.special.multigammaln`.

    Args:
        a: Real numbers above (d - 1) / 2: an array of any shape.
        d: The dimension, a positive integer.

    Returns:
        An array of the shape and dtype of `a` (float64 for integers).

    Raises:
        ValueError: `d` is no positive integer, or an entry of `a` is known to be too small.

    Example:
        >>> import fnad
        >>> from fnad.scipy.special import multigammaln
        >>> fnad.grad(lambda a: multigammaln(a, 1))(1.0)
        np.float64(-0.5772156649015329)
    """
    if isinstance(d, Tracer) or np.ndim(d) or d != int(d) or d < 1:
        raise ValueError("d should be a positive integer (dimension)")
    a = _floating(a, "multigammaln")
    value = known(a)
    if value is not None and np.any(value <= 0.5 * (d - 1)):
        raise ValueError(f"condition a ({value:f}) > 0.5 * (d-1) ({0.5 * (d - 1):f}) not met" if np.ndim(value) == 0 else "a is too small")
    total = 0.25 * d * (d - 1) * math.log(math.pi)
    for k in range(int(d)):
        total = total + _scipy.special().gammaln(a - 0.5 * k)
    return total
