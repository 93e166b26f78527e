"""Losses of class labels: one number per example, or for all of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, BoundsError, DTypeError, ShapeError
from fnad.nn.functional._arguments import array, check_reduction
from fnad.nn.functional.linear import linear
from fnad.numpy.at import at
from fnad.primitives.indexing import gather, iota
from fnad.primitives.softmax import softmax_cross_entropy
from fnad.primitives.special import log_softmax
from fnad.typing import Array, ArrayLike


def cross_entropy(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    r"""Cross-entropy between the softmax of logits and class labels or class probabilities.

    With `x` = input, `y` = target, `w` = weight (1 if None), `eps` = label_smoothing, and
    `logp[n, c] = x[n, c] - log(sum_k exp(x[n, k]))`, example `n` has the loss

        labels:        l[n] = -(1 - eps) w[y[n]] logp[n, y[n]] - eps / C sum_c w[c] logp[n, c]      (0 if y[n] == ignore_index)
        probabilities: l[n] = -sum_c w[c] ((1 - eps) y[n, c] + eps / C) logp[n, c]

    Args:
        input: Logits: (C,), (N, C) or (N, C, d1, ...), floating point.
        target: Integer labels in [0, C), of the input's shape without C; or probabilities of the input's shape.
        weight: (C,), a factor per class.
        ignore_index: Examples with this label count neither in the sum nor in the mean. Labels only.
        reduction: "none" (a loss per example), "sum", or "mean": the sum over the sum of `w[y[n]]` for labels (over the
            number of examples for probabilities).
        label_smoothing: How much of the target is spread evenly over the classes, in [0, 1].

    Returns:
        The loss in the input's dtype: of shape (), or for "none" of the input's shape without C.

    Raises:
        BoundsError: (an IndexError) a label lies outside [0, C); it names the label.
        ShapeError, DTypeError, ArgumentError: arguments do not fit, or an option is outside its range.

    Differences from PyTorch: a right answer of high confidence keeps its digits (`log1p` instead of a difference from
    1); an ignored example has gradient 0 even if its logits are not finite; the deprecated `size_average` and `reduce`
    do not exist.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad.nn import functional as F
        >>> logits, labels = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), np.array([0, 2])
        >>> print(F.cross_entropy(logits, labels, reduction="none").round(4))
        [0.2395 1.0986]
        >>> print(fnad.grad(F.cross_entropy)(logits, labels).round(4))
        [[-0.1065  0.0533  0.0533]
         [ 0.1667  0.1667 -0.3333]]

    Reference: `torch.nn.functional.cross_entropy` of PyTorch 2.13. Label smoothing: Szegedy et al., Rethinking the
    Inception Architecture for Computer Vision, 2016.
    """
    x, y = array(input), array(target)
    _check_options("cross_entropy", x, y, weight, ignore_index, reduction, label_smoothing)
    axis = min(x.ndim, 2) - 1
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    w = None if weight is None else _cast(array(weight), x.dtype)
    if y.shape == x.shape:
        rows, target_rows = _rows(x, axis), _rows(_cast(y, x.dtype), axis)
        losses, total = _of_probabilities(rows, target_rows, w, float(label_smoothing))
    else:
        losses, total = _of_labels(_rows(x, axis), np.reshape(y, (-1,)), w, ignore_index, float(label_smoothing))
    return _reduced(losses, total, shape, reduction)


def nll_loss(
    input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Array:
    """The negative log-likelihood of class labels, given logarithms of probabilities: `-w[y] * input[n, y]`.

    Args:
        input: Log-probabilities: (C,), (N, C) or (N, C, d1, ...), floating point.
        target: Integer labels in [0, C), of the input's shape without C.
        weight: (C,), a factor per class.
        ignore_index: Examples with this label count neither in the sum nor in the mean.
        reduction: "none" (a loss per example), "sum", or "mean": the sum over the sum of `w[y]`.

    Returns:
        The loss in the input's dtype: of shape (), or for "none" of the input's shape without C.

    Raises:
        BoundsError: (an IndexError) a label lies outside [0, C); it names the label.
        ShapeError, DTypeError, ArgumentError: arguments do not fit, or an option is outside its range.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.nll_loss(np.log(np.array([[0.5, 0.5], [0.25, 0.75]])), np.array([0, 1]), reduction="none").round(4)
        array([0.6931, 0.2877])

    Reference: `torch.nn.functional.nll_loss` of PyTorch 2.13, without the deprecated `size_average` and `reduce`.
    """
    x, y = array(input), array(target)
    _check_options("nll_loss", x, y, weight, ignore_index, reduction, 0.0)
    axis = min(x.ndim, 2) - 1
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    if y.shape != shape:
        raise ShapeError(
            "nll_loss: the target has the input's shape without the class axis", got={"input": aval_of(x), "target": aval_of(y)}
        )
    rows = _rows(x, axis)
    y, ignored = _find_ignored(np.reshape(y, (-1,)), ignore_index)
    classes: int = rows.shape[1]
    if isinstance(y, Tracer):
        y = np.where(np.less(y, 0), classes, y)  # out of bounds, where a negative index would count from the end
    else:
        bad = (y < 0) | (y >= classes)
        if bad.any():
            raise BoundsError("a class label must lie in [0, number of classes)", got={"label": y[bad][0], "number of classes": classes})
    losses = -gather(rows, iota(y, axis=0, dtype=np.dtype(np.intp)), y, axis=0)
    losses, share = _weighted(losses, y, None if weight is None else _cast(array(weight), x.dtype))
    return _reduced(*_counted(losses, share, ignored), shape, reduction)


def _of_labels(x: Array, y: Array, w: Array | None, ignore_index: int, smoothing: float) -> tuple[Array, Array | int]:
    """Loss per row for labels, and what their sum is divided by for the mean."""
    y, ignored = _find_ignored(y, ignore_index)
    losses, share = _weighted(softmax_cross_entropy(x, y), y, w)
    if smoothing:
        logp = log_softmax(x, axis=(1,))
        spread = -np.sum(logp if w is None else logp * w, axis=1)
        losses = (1 - smoothing) * losses + (smoothing / x.shape[1]) * spread
    return _counted(losses, share, ignored)


def _find_ignored(y: Array, ignore_index: int) -> tuple[Array, Array | None]:
    """The labels with 0 in place of those that are ignored, and where these are; None if it is known that there are none."""
    ignored: Any = y == ignore_index
    if not isinstance(y, Tracer) and not ignored.any():
        return y, None
    return np.where(ignored, 0, y), ignored


def _weighted(losses: Array, y: Array, w: Array | None) -> tuple[Array, Array | None]:
    """Losses times the weights of their labels, and these weights; None if all are 1."""
    if w is None:
        return losses, None
    share = at(w)[y].get()
    return losses * share, share


def _counted(losses: Array, share: Array | None, ignored: Array | None) -> tuple[Array, Array | int]:
    """Losses with 0 in place of those that are ignored, and the sum of the others' weights."""
    if ignored is not None:
        losses = np.where(ignored, 0, losses)
        share = np.where(ignored, 0, losses.dtype.type(1) if share is None else share)
    return losses, losses.shape[0] if share is None else np.sum(share)


def _reduced(losses: Array, total: Any, shape: tuple[int, ...], reduction: str) -> Array:
    if reduction == "none":
        return np.reshape(losses, shape)
    return np.sum(losses) / total if reduction == "mean" else np.sum(losses)


def _of_probabilities(x: Array, y: Array, w: Array | None, smoothing: float) -> tuple[Array, int]:
    """Loss per row for class probabilities, and the number of rows."""
    if smoothing:
        y = (1 - smoothing) * y + smoothing / x.shape[1]
    terms = y * log_softmax(x, axis=(1,))
    return -np.sum(terms if w is None else terms * w, axis=1), x.shape[0]


def _cast(x: Array, dtype: Any) -> Array:
    return x if x.dtype == dtype else x.astype(dtype)


def _rows(x: Array, axis: int) -> Array:
    """(..., classes, ...) -> (examples, classes)"""
    x = np.moveaxis(x, axis, -1)
    return np.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def _check_options(name: str, x: Array, y: Array, weight: Any, ignore_index: int, reduction: str, smoothing: float) -> None:
    check_reduction(name, reduction)
    if not 0 <= smoothing <= 1:
        raise ArgumentError(f"{name}: label_smoothing lies in [0, 1]", got={"label_smoothing": smoothing})
    if x.dtype.kind != "f" or x.dtype.itemsize > 8:
        raise DTypeError(
            f"{name}: the input is float16, float32 or float64", got={"input": aval_of(x)}, fix="convert it with .astype(float)"
        )
    axis = min(x.ndim, 2) - 1
    if x.ndim == 0 or y.shape not in (x.shape, (*x.shape[:axis], *x.shape[axis + 1 :])):
        raise ShapeError(
            f"{name}: the target has the input's shape without the class axis (labels), or the input's shape (probabilities)",
            got={"input": aval_of(x), "target": aval_of(y)},
            fix="the class axis of the input is axis 1, or axis 0 of a single example",
        )
    wanted, called = ("f", "probabilities are floating point") if y.shape == x.shape else ("iu", "labels are integers")
    if y.dtype.kind not in wanted:
        raise DTypeError(f"{name}: {called}", got={"target": aval_of(y), "input": aval_of(x)})
    if y.shape == x.shape and ignore_index >= 0:
        raise ArgumentError(f"{name}: ignore_index is for labels, not for probabilities", got={"ignore_index": ignore_index})
    if weight is not None and shape_of(weight) != (x.shape[axis],):
        raise ShapeError(f"{name}: weight has one entry per class", got={"weight": aval_of(weight), "classes": x.shape[axis]})


def linear_cross_entropy(
    input: ArrayLike,
    linear_weight: ArrayLike,
    target: ArrayLike,
    *,
    linear_bias: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Array:
    """`cross_entropy` of `linear(input, linear_weight, linear_bias)`.

    Args:
        input: (n, i) or (i,)
        linear_weight: (c, i), or (c, d1, ..., i) for several losses per example.
        target: Classes, (n,) or () or (n, d1, ...); or probabilities, (n, c, ...) or (c,).
        linear_bias: (c,) or (c, d1, ...), or None.
        weight: See `cross_entropy`, as the following.
        reduction: See `cross_entropy`.
        ignore_index: See `cross_entropy`; None for -100.
        label_smoothing: See `cross_entropy`.

    Returns:
        The loss, as `cross_entropy` gives it.

    Raises:
        ShapeError, ArgumentError: the arguments do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.linear_cross_entropy(np.ones((1, 2)), np.zeros((4, 2)), np.array([3])).round(4)
        np.float64(1.3863)

    Reference: `torch.nn.functional.linear_cross_entropy` of PyTorch 2.13.
    """
    x, w = array(input), array(linear_weight)
    classes, *inner = shape_of(w)[:-1]
    flat = np.reshape(w, (classes * math.prod(inner), shape_of(w)[-1]))
    logits = linear(x, flat, None if linear_bias is None else np.reshape(array(linear_bias), (-1,)))
    if inner:
        logits = np.reshape(logits, (*shape_of(x)[:-1], classes, *inner))
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing)
