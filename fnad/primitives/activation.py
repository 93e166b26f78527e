"""Nonlinearities and normalisation of neural networks that are not made of NumPy functions alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad import _scipy
from fnad.core.aval import Aval, aval_of, promotion_operand, result_dtype, shape_of, weak_aval
from fnad.core.lowering import Scalar
from fnad.primitives._families import Elementwise, Primitive, Pullback, Unary, has_nan
from fnad.primitives.elementary import logistic

_ROOT_TWO_PI = math.sqrt(2 * math.pi)


class Relu(Elementwise):
    """max(x, 0) with the slope 0 at 0. What is cut off gets no cotangent, be it infinite."""

    def lower(self, x: Aval) -> Scalar | None:  # type: ignore[override]
        return Scalar("relu", (x.dtype,)) if x.dtype.kind in "fiu" else None

    def vjp(self, out: Any, x: Any) -> Sequence[Pullback]:
        return (lambda g: _cut(g, out),)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return None if tangents[0] is None else _cut(tangents[0], out)


def _cut(t: Any, out: Any) -> Any:
    """0 where `out` is not positive, `t` elsewhere."""
    if t.__class__ is out.__class__ is np.ndarray:
        cut = t * ~np.less_equal(out, 0)  # a tenth of the time that np.where takes
        if not has_nan(cut):
            return cut
    return np.where(np.less_equal(out, 0), 0, t)


class NormalCdf(Unary):
    """The normal distribution function."""

    def infer(self, x: Aval) -> Aval:  # type: ignore[override]
        dtype = x.dtype if x.dtype.kind == "f" else np.true_divide.resolve_dtypes((promotion_operand(x),) * 2 + (None,))[-1]
        return weak_aval(dtype) if x.weak else Aval(x.shape, dtype)

    def lower(self, x: Aval) -> Scalar:  # type: ignore[override]
        return Scalar("ndtr", (self.infer(x).dtype,))


def _normal_cdf(x: Any) -> Any:
    out = _scipy.special().ndtr(x)
    dtype = aval_of(x).dtype
    return out.astype(dtype, copy=False) if dtype.kind == "f" else out


class Standardize(Primitive):
    """(x - mean) / sqrt(variance + eps) over axes, and 1 / sqrt(variance + eps) with those axes kept."""

    multiple = True
    selective = True
    reads = frozenset()

    def infer(self, x: Aval, *, axis: tuple[int, ...], eps: float) -> tuple[Aval, Aval]:
        return x, Aval(tuple(1 if i in axis else n for i, n in enumerate(x.shape)), x.dtype)

    def impl(self, x: Any, *, axis: tuple[int, ...], eps: float) -> tuple[Any, Any]:
        if x.dtype.itemsize == 2:
            wide = self.impl(x.astype(np.float32), axis=axis, eps=eps)
            return wide[0].astype(x.dtype), wide[1].astype(x.dtype)
        with np.errstate(all="ignore"):
            return self.compose(x, axis=axis, eps=eps)

    def compose(self, x: Any, *, axis: tuple[int, ...], eps: float) -> tuple[Any, Any]:
        centred = x - _mean(x, axis)
        scale = np.reciprocal(np.sqrt(_mean(centred * centred, axis) + eps))
        return centred * scale, scale

    def forward(self, args: Sequence[Any], params: dict[str, Any], wanted: Any = None) -> tuple[Any, Sequence[Pullback]]:
        out = self(*args, **params)
        return out, self.vjp(out, *args, **params)

    def vjp(self, out: Any, x: Any, *, axis: tuple[int, ...], eps: float) -> Sequence[Pullback]:
        y, scale = out

        def pull(g: Any) -> Any:
            gy, gscale = g
            total = None if gy is None else scale * (gy - _mean(gy, axis) - y * _mean(gy * y, axis))
            if gscale is None:
                return total
            part = y * (gscale * scale * scale / -_count(shape_of(y), axis))
            return part if total is None else total + part

        return (pull,)

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, axis: tuple[int, ...], eps: float) -> Any:
        y, scale = out
        t = tangents[0]
        if t is None:
            return None
        along = _mean(t * y, axis)
        return scale * (t - _mean(t, axis) - y * along), -scale * scale * along

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: tuple[int, ...], eps: float) -> Any:
        return self(args[0], axis=tuple(a + 1 for a in axis), eps=eps)


def _count(shape: tuple[int, ...], axis: tuple[int, ...]) -> int:
    return math.prod(shape[a] for a in axis)


def _mean(x: Any, axis: tuple[int, ...]) -> Any:
    """The mean over axes, which are kept; in the dtype of x."""
    return np.add.reduce(x, axis=axis, keepdims=True) / _count(shape_of(x), axis)


def _softplus(x: Any) -> Any:
    if not isinstance(x, np.ndarray) or x.ndim == 0 or x.dtype.kind != "f":
        return np.maximum(x, 0) + np.log1p(np.exp(-np.absolute(x)))
    out = np.absolute(x)  # the same in one array and a half: fresh memory costs more than the arithmetic
    np.negative(out, out=out)
    np.exp(out, out=out)
    np.log1p(out, out=out)
    return np.add(out, np.maximum(x, 0), out=out)


relu = Relu("relu", lambda x: np.maximum(x, 0), lambda out: np.greater(out, 0), numpy=())
normal_cdf = NormalCdf("normal_cdf", _normal_cdf, lambda x: np.exp(-0.5 * x * x) / _ROOT_TWO_PI, numpy=(), special=(0.0, 8.0))
softplus = Unary("softplus", _softplus, lambda x: logistic(x), numpy=(), special=(0.0, 40.0, -40.0))
"""log(1 + exp(x)) without overflow, accurate where it is tiny."""
standardize = Standardize("standardize")


class BinaryCrossEntropy(Elementwise):
    """-(y log(x) + (1 - y) log(1 - x)), where logarithms below -100 count as -100, with the slopes that PyTorch gives it."""

    def compose(self, x: Any, y: Any) -> Any:
        dtype = result_dtype(aval_of(x), aval_of(y)).type
        high, low = np.maximum(np.log(x), dtype(-100)), np.maximum(np.log1p(-x), dtype(-100))
        return (y - 1) * low - y * high


def _binary_cross_entropy(x: Any, y: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.multiply(y - 1, np.maximum(np.log1p(-x), -100)) - np.multiply(y, np.maximum(np.log(x), -100))


binary_cross_entropy = BinaryCrossEntropy(
    "binary_cross_entropy",
    _binary_cross_entropy,
    lambda x, y: (x - y) / np.maximum(x * (1 - x), 1e-12),
    lambda x: np.log1p(-x) - np.log(x),
    numpy=(),
    domain=(0.1, 0.9),
)
