"""Softmax cross-entropy with integer labels: one loss per row, through the kernels of `fnad/kernels/softmax.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, shape_of
from fnad.errors import BoundsError, DTypeError, ShapeError
from fnad.kernels import softmax as kernels
from fnad.primitives._families import Primitive, Pullback, expand, guarded
from fnad.primitives.indexing import gather, iota
from fnad.primitives.special import softmax

_FORWARD = {"float32": kernels.forward_float32, "float64": kernels.forward_float64}
_BACKWARD = {"float32": kernels.backward_float32, "float64": kernels.backward_float64}


class SoftmaxCrossEntropy(Primitive):
    """log(sum_j exp(x[i, j])) - x[i, y[i]] for every row i.

    x (n, c) float, y (n,) integer in [0, c) -> (n,)

    It has no forward rule: the pullback is a primitive of its own, linear in the cotangent, and is transposed.
    """

    def infer(self, logits: Aval, labels: Aval) -> Aval:
        _check(self.name, logits, labels)
        return Aval(logits.shape[:1], logits.dtype)

    def impl(self, logits: Any, labels: Any) -> Any:
        x, y = _ready(logits), np.ascontiguousarray(labels, np.int64)
        losses = np.empty(x.shape[0], x.dtype)
        bad = _FORWARD[x.dtype.name](x, y, np.empty(x.shape[1], x.dtype), losses)
        _check_label(bad, y, x.shape[1])
        return losses.astype(logits.dtype, copy=False)

    def compose(self, logits: Any, labels: Any) -> Any:
        _, _, at_label, rest, z = _parts(logits, labels)
        loss = np.where(z == 0, np.log1p(rest), np.log(rest + at_label) - z)
        return loss if loss.dtype == logits.dtype else loss.astype(logits.dtype)

    def vjp(self, out: Any, logits: Any, labels: Any) -> Sequence[Pullback | None]:
        return (lambda g: softmax_cross_entropy_pullback(g, logits, labels), None)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        shape, rows = _merge_batch(args, batched)
        return np.reshape(self(*rows), shape)


class SoftmaxCrossEntropyPullback(Primitive):
    """g[i] * (softmax(x[i]) - onehot(y[i])) for every row i; 0 where g is 0.

    g (n,) float, x (n, c) float, y (n,) integer in [0, c) -> (n, c)
    """

    def infer(self, g: Aval, logits: Aval, labels: Aval) -> Aval:
        _check(self.name, logits, labels)
        return Aval(logits.shape, logits.dtype)

    def impl(self, g: Any, logits: Any, labels: Any) -> Any:
        x, y = _ready(logits), np.ascontiguousarray(labels, np.int64)
        out = np.empty(x.shape, x.dtype)
        bad = _BACKWARD[x.dtype.name](np.ascontiguousarray(g, x.dtype), x, y, out)
        _check_label(bad, y, x.shape[1])
        return out.astype(logits.dtype, copy=False)

    def compose(self, g: Any, logits: Any, labels: Any) -> Any:
        hot, exps, at_label, rest, _ = _parts(logits, labels)
        scale = g / (rest + at_label)
        slope = np.where(hot, expand(-scale * rest, (1,)), exps * expand(scale, (1,)))
        slope = np.where(expand(g == 0, (1,)), 0, slope)
        return slope if slope.dtype == logits.dtype else slope.astype(logits.dtype)

    def vjp(self, out: Any, g: Any, logits: Any, labels: Any) -> Sequence[Pullback | None]:
        def to_cotangent(c: Any) -> Any:
            p = softmax(logits, axis=(1,))
            hot = expand(labels, (1,)) == np.arange(shape_of(logits)[1])
            rest = np.sum(np.where(hot, 0, p), axis=1, keepdims=True)  # 1 - p[label], with all its digits
            return np.sum(guarded(c, np.where(hot, -rest, p)), axis=1)

        def to_logits(c: Any) -> Any:
            p = softmax(logits, axis=(1,))
            part = guarded(c, p)
            return guarded(expand(g, (1,)), part - guarded(np.sum(part, axis=1, keepdims=True), p))

        return (to_cotangent, to_logits, None)

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        shape, rows = _merge_batch(args, batched)
        return np.reshape(self(*rows), (*shape, shape_of(rows[1])[1]))


def _parts(logits: Any, labels: Any) -> tuple[Any, Any, Any, Any, Any]:
    """What loss and slope are made of: where the labels are, exp(x - max), that at the labels, the sum of the others, and x - max there.

    A label that is out of range is out of bounds for the gather, which notices it.
    """
    x = logits.astype(np.float32) if logits.dtype.itemsize == 2 else logits
    n, classes = shape_of(x)
    y = labels.astype(np.int64)
    y = np.where(y < 0, classes, y)
    top = np.max(x, axis=1, keepdims=True)
    exps = np.exp(x - top)
    hot = expand(y, (1,)) == iota(x, axis=1, dtype=np.dtype(np.int64))
    z = gather(x, iota(y, axis=0, dtype=np.dtype(np.int64)), y, axis=0) - np.reshape(top, (n,))
    return hot, exps, np.exp(z), np.sum(np.where(hot, 0, exps), axis=1), z


def _merge_batch(args: Sequence[Any], batched: Sequence[bool]) -> tuple[tuple[int, int], list[Any]]:
    """Arguments with the batch axis merged into the rows, and the shape (batch, rows) that it had."""
    size = next(shape_of(a)[0] for a, b in zip(args, batched, strict=True) if b)
    full = [a if b else np.broadcast_to(a, (size, *shape_of(a))) for a, b in zip(args, batched, strict=True)]
    shape = (size, shape_of(full[0])[1])
    return shape, [np.reshape(a, (size * shape[1], *shape_of(a)[2:])) for a in full]


def _ready(logits: Any) -> Any:
    """What the kernels take: float16 is computed in float32, and rounded at the end."""
    return np.ascontiguousarray(logits, np.float32 if logits.dtype.itemsize == 2 else logits.dtype.newbyteorder("="))


def _check(name: str, logits: Aval, labels: Aval) -> None:
    if len(logits.shape) != 2 or labels.shape != logits.shape[:1]:
        raise ShapeError(f"{name}: logits (n, classes) and labels (n,)", got={"logits": logits, "labels": labels})
    if logits.dtype.kind != "f" or logits.dtype.itemsize > 8:
        raise DTypeError(f"{name}: logits are float16, float32 or float64", got={"logits": logits}, fix="convert them with .astype(float)")
    if labels.dtype.kind not in "iu":
        raise DTypeError(f"{name}: labels are integers", got={"labels": labels}, fix="convert them with .astype(np.int64)")


def _check_label(bad: int, labels: Any, classes: int) -> None:
    if bad >= 0:
        raise BoundsError(
            "a class label must lie in [0, number of classes)",
            got={"label": int(labels[bad]), "at row": bad, "number of classes": classes},
            fix="check the labels; rows to leave out are marked with ignore_index",
        )


softmax_cross_entropy = SoftmaxCrossEntropy("softmax_cross_entropy")
softmax_cross_entropy_pullback = SoftmaxCrossEntropyPullback("softmax_cross_entropy_pullback")
