"""Softmax cross-entropy with integer labels: one loss per row, through the kernels of `fnad/kernels/softmax.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, shape_of
from fnad.errors import BoundsError, DTypeError, ShapeError
from fnad.kernels import softmax as kernels
from fnad.primitives._families import Primitive, Pullback, expand, guarded
from fnad.primitives.shape import stop

_FORWARD = {"float32": kernels.forward_float32, "float64": kernels.forward_float64}
_BACKWARD = {"float32": kernels.backward_float32, "float64": kernels.backward_float64}


class SoftmaxCrossEntropy(Primitive):
    """log(sum(exp(x), 1)) - x[i, y[i]] for every row i.

    x (n, c) float, y (n,) integer in [0, c) -> (n,)

    No forward rule: the pullback is a primitive of its own, linear in the cotangent, and is transposed.
    """

    def infer(self, logits: Aval, labels: Aval) -> Aval:
        _check(self.name, logits, labels)
        return Aval(logits.shape[:1], logits.dtype)

    def impl(self, logits: Any, labels: Any) -> Any:
        dtype, x, y = logits.dtype, _ready(logits), np.ascontiguousarray(labels, np.int64)
        losses = np.empty(x.shape[0], x.dtype)
        bad = _FORWARD[x.dtype.name](x, y, np.empty(x.shape[1], x.dtype), losses)
        _check_label(bad, y, x.shape[1])
        return losses.astype(dtype, copy=False)

    def vjp(self, out: Any, logits: Any, labels: Any) -> Sequence[Pullback | None]:
        return (lambda g: softmax_cross_entropy_pullback(g, logits, labels), None)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        n, (logits, labels) = _rows(args, batched, (2, 1))
        return np.reshape(self(logits, labels), (n, -1))


class SoftmaxCrossEntropyPullback(Primitive):
    """g[i] * (softmax(x[i]) - onehot(y[i])) for every row i; 0 where g is 0.

    g (n,) float, x (n, c) float, y (n,) integer in [0, c) -> (n, c)
    """

    def infer(self, g: Aval, logits: Aval, labels: Aval) -> Aval:
        _check(self.name, logits, labels)
        return Aval(logits.shape, logits.dtype)

    def impl(self, g: Any, logits: Any, labels: Any) -> Any:
        dtype, x, y = logits.dtype, _ready(logits), np.ascontiguousarray(labels, np.int64)
        out = np.empty(x.shape, x.dtype)
        bad = _BACKWARD[x.dtype.name](np.ascontiguousarray(g, x.dtype), x, y, out)
        _check_label(bad, y, x.shape[1])
        return out.astype(dtype, copy=False)

    def vjp(self, out: Any, g: Any, logits: Any, labels: Any) -> Sequence[Pullback | None]:
        return (
            lambda c: np.sum(guarded(c, _softmax(logits, labels)[1]), axis=1),
            lambda c: guarded(c, expand(g, (1,))) if False else _hessian_product(c, g, logits, labels),
            None,
        )

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        n, (g, logits, labels) = _rows(args, batched, (1, 2, 1))
        out = self(g, logits, labels)
        return np.reshape(out, (n, -1, shape_of(out)[1]))
