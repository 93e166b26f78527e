"""Losses with margins, and the distances and similarities that they compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, BoundsError, DTypeError, ShapeError
from fnad.nn.functional._arguments import array, at_least_zero, floating, reduced
from fnad.nn.functional.normalization import p_norm
from fnad.primitives.activation import softplus
from fnad.primitives.shape import stop
from fnad.typing import Array, ArrayLike

_EPSILON = 1e-12


def cosine_similarity(x1: ArrayLike, x2: ArrayLike, dim: int = 1, eps: float = 1e-8) -> Array:
    """The cosine of the angle between two vectors: their product over max(|x1|, eps) max(|x2|, eps).

    Args:
        x1: Real array.
        x2: Array that broadcasts with it.
        dim: The axis of the vectors.
        eps: Keeps vectors of zeros from dividing by 0.

    Returns:
        An array without that axis.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.cosine_similarity(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]])).round(4)
        array([0.7071])

    Reference: `torch.nn.functional.cosine_similarity`.
    """
    x, y = np.broadcast_arrays(floating(x1, "cosine_similarity"), floating(x2, "cosine_similarity"))
    return np.sum(_directed(x, dim, eps) * _directed(y, dim, eps), axis=dim)


def _directed(x: Any, dim: int, eps: float) -> Any:
    size = p_norm(x, 2, dim, keepdims=True)
    return x / (size + np.where(np.less(stop(size), eps), x.dtype.type(eps) - stop(size), x.dtype.type(0)))


def pairwise_distance(x1: ArrayLike, x2: ArrayLike, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Array:
    """The p-norm of x1 - x2 + eps over the last axis.

    Args:
        x1: (..., n)
        x2: Array that broadcasts with it.
        p: Which norm.
        eps: Added to each difference.
        keepdim: Whether the last axis stays, with size 1.

    Returns:
        An array without that axis.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.pairwise_distance(np.array([[3.0, 4.0]]), np.zeros((1, 2)), eps=0.0)
        array([5.])

    Reference: `torch.nn.functional.pairwise_distance`.
    """
    return p_norm(floating(x1, "pairwise_distance") - floating(x2, "pairwise_distance") + eps, p, -1, keepdims=keepdim)


def pdist(input: ArrayLike, p: float = 2.0) -> Array:
    """The p-norms of the differences of all pairs of rows: (n, m) -> (n (n - 1) / 2,).

    Args:
        input: One vector per row.
        p: Which norm.

    Returns:
        An array: of rows 0 and 1, 0 and 2, ..., 1 and 2, ...; equal rows get the gradient 0.

    Raises:
        ShapeError: the input does not have two axes.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.pdist(np.array([[0.0], [3.0], [7.0]]))
        array([3., 7., 4.])

    Reference: `torch.nn.functional.pdist`.
    """
    x = floating(input, "pdist")
    if len(shape_of(x)) != 2:
        raise ShapeError("pdist: the input is (n, m)", got={"input": aval_of(x)})
    first, second = np.triu_indices(shape_of(x)[0], 1)
    return p_norm(x[first] - x[second], p, -1)


def hinge_embedding_loss(input: ArrayLike, target: ArrayLike, margin: float = 1.0, reduction: str = "mean") -> Array:
    """x where the target is 1, max(margin - x, 0) where it is -1.

    Args:
        input: Real array, for example of distances.
        target: Array of 1 and -1.
        margin: How large x is to be where the target is -1.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the input's dtype.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.hinge_embedding_loss(np.array([0.5, 0.2]), np.array([1, -1]), reduction="none")
        array([0.5, 0.8])

    Reference: `torch.nn.functional.hinge_embedding_loss`.
    """
    x, y = floating(input, "hinge_embedding_loss"), array(target)
    zero = x.dtype.type(0)
    losses = np.where(np.not_equal(y, 1), at_least_zero(margin - x), zero) + np.where(np.not_equal(y, -1), x, zero)
    return reduced("hinge_embedding_loss", losses, reduction)


def margin_ranking_loss(input1: ArrayLike, input2: ArrayLike, target: ArrayLike, margin: float = 0.0, reduction: str = "mean") -> Array:
    """max(-y (x1 - x2) + margin, 0): whether x1 ranks above x2 (y = 1) or below (y = -1).

    Args:
        input1: Real array.
        input2: Array of the same shape.
        target: Array of 1 and -1.
        margin: By how much.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the input's dtype.

    Raises:
        ShapeError: the numbers of axes differ.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.margin_ranking_loss(np.array([2.0, 0.0]), np.array([1.0, 1.0]), np.array([1, 1]), reduction="none")
        array([0., 1.])

    Reference: `torch.nn.functional.margin_ranking_loss`.
    """
    x, y, t = floating(input1, "margin_ranking_loss"), floating(input2, "margin_ranking_loss"), array(target)
    if not len(shape_of(x)) == len(shape_of(y)) == len(shape_of(t)):
        got = {"input1": aval_of(x), "input2": aval_of(y), "target": aval_of(t)}
        raise ShapeError("margin_ranking_loss: inputs and target have the same number of axes", got=got)
    return reduced("margin_ranking_loss", at_least_zero(margin - _as(t, x) * (x - y)), reduction)


def _as(t: Any, x: Any) -> Any:
    return t if t.dtype == x.dtype else t.astype(x.dtype)


def soft_margin_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Array:
    """log(1 + exp(-y x)) for y = 1 or -1, without overflow.

    Args:
        input: Real array.
        target: Array of the same shape, of 1 and -1.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the input's dtype.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.soft_margin_loss(np.array([0.0, -1000.0]), np.array([1, 1]), reduction="none").round(4)
        array([6.931e-01, 1.000e+03])

    Reference: `torch.nn.functional.soft_margin_loss`.
    """
    x = floating(input, "soft_margin_loss")
    return reduced("soft_margin_loss", softplus(-_as(array(target), x) * x), reduction)


def multi_margin_loss(
    input: ArrayLike, target: ArrayLike, p: int = 1, margin: float = 1.0, weight: ArrayLike | None = None, reduction: str = "mean"
) -> Array:
    """The sum over the wrong classes j of max(margin - x[y] + x[j], 0)**p, times the weight of y, over the number of classes.

    Args:
        input: (n, c) or (c,), real.
        target: Integer labels in [0, c), (n,) or ().
        p: 1 or 2.
        margin: By how much the right class is to be larger.
        weight: (c,), a factor per class, or None.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the input's dtype.

    Raises:
        BoundsError: (an IndexError) a label lies outside [0, c).
        ShapeError, DTypeError, ArgumentError: arguments do not fit, or an option is outside its range.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.multi_margin_loss(np.array([0.1, 0.2, 0.4, 0.8]), np.array(3)).round(4)
        np.float64(0.325)

    Reference: `torch.nn.functional.multi_margin_loss`.
    """
    x, y = floating(input, "multi_margin_loss"), array(target)
    if p not in (1, 2) or len(shape_of(x)) not in (1, 2) or shape_of(y) not in (shape_of(x)[:-1], (1,) * (2 - len(shape_of(x)))):
        raise ShapeError(
            "multi_margin_loss: input (n, c), target (n,), p is 1 or 2", got={"input": aval_of(x), "target": aval_of(y), "p": p}
        )
    if y.dtype.kind not in "iu":
        raise DTypeError("multi_margin_loss: labels are integers", got={"target": aval_of(y)})
    labels: Any = np.reshape(y, shape_of(x)[:-1])
    classes = shape_of(x)[-1]
    if not isinstance(labels, Tracer) and np.any((labels < 0) | (labels >= classes)):
        raise BoundsError("a class label must lie in [0, number of classes)", got={"labels": labels, "number of classes": classes})
    right = np.equal(labels[..., None], np.arange(classes))
    own = np.sum(np.where(right, x, x.dtype.type(0)), axis=-1, keepdims=True)
    gap = margin - own + x
    wrong = np.where(np.greater(gap, 0) & ~right, gap, x.dtype.type(0))
    terms = wrong * wrong if p == 2 else wrong
    if weight is not None:
        terms = terms * np.sum(np.where(right, array(weight), x.dtype.type(0)), axis=-1, keepdims=True)
    return reduced("multi_margin_loss", np.sum(terms, axis=-1) / classes, reduction)


def multilabel_margin_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Array:
    """The sum over right classes i and wrong classes j of max(1 - x[i] + x[j], 0), over the number of classes.

    Args:
        input: (n, c) or (c,), real.
        target: Integers of the same shape: the right classes of an example, then -1; what follows does not count.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the input's dtype.

    Raises:
        ShapeError, DTypeError: the target has another shape, or is not of integers.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.multilabel_margin_loss(np.array([0.1, 0.2, 0.4, 0.8]), np.array([3, 0, -1, 1])).round(4)
        np.float64(0.85)

    Reference: `torch.nn.functional.multilabel_margin_loss`.
    """
    x, y = floating(input, "multilabel_margin_loss"), array(target)
    if shape_of(x) != shape_of(y) or len(shape_of(x)) not in (1, 2):
        raise ShapeError("multilabel_margin_loss: input and target are (n, c) or (c,)", got={"input": aval_of(x), "target": aval_of(y)})
    if y.dtype.kind not in "i":
        raise DTypeError("multilabel_margin_loss: labels are signed integers", got={"target": aval_of(y)})
    classes, zero = shape_of(x)[-1], x.dtype.type(0)
    counts = np.equal(np.cumsum(np.less(y, 0), axis=-1), 0)
    hits = np.equal(y[..., None], np.arange(classes)) & counts[..., None]  # (..., place in the target, class)
    right = np.any(hits, axis=-2)
    own = np.sum(np.where(hits, x[..., None, :], zero), axis=-1, keepdims=True)
    gap = 1 - own + x[..., None, :]
    wrong = np.where(np.greater(gap, 0) & counts[..., None] & ~right[..., None, :], gap, zero)
    return reduced("multilabel_margin_loss", np.sum(wrong, axis=(-2, -1)) / classes, reduction)


def multilabel_soft_margin_loss(input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, reduction: str = "mean") -> Array:
    """The mean over the classes of the binary cross-entropy of logits.

    Args:
        input: Logits, (..., c).
        target: Truth values as numbers, an array of the same shape.
        weight: (c,), a factor per class, or None.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the input's dtype.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.multilabel_soft_margin_loss(np.zeros((1, 2)), np.array([[1.0, 0.0]])).round(4)
        np.float64(0.6931)

    Reference: `torch.nn.functional.multilabel_soft_margin_loss`.
    """
    x = floating(input, "multilabel_soft_margin_loss")
    y = _as(array(target), x)
    terms = y * softplus(-x) + (1 - y) * softplus(x)
    terms = terms if weight is None else terms * array(weight)
    return reduced("multilabel_soft_margin_loss", np.mean(terms, axis=-1), reduction)


def cosine_embedding_loss(input1: ArrayLike, input2: ArrayLike, target: ArrayLike, margin: float = 0.0, reduction: str = "mean") -> Array:
    """1 - cos(x1, x2) where the target is 1, max(cos(x1, x2) - margin, 0) where it is -1.

    Args:
        input1: (n, m) or (m,), real.
        input2: Array of the same shape.
        target: 1 and -1, (n,) or ().
        margin: The largest cosine of different vectors.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the input's dtype.

    Raises:
        ShapeError: the arguments do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.cosine_embedding_loss(np.eye(2), np.ones((2, 2)), np.array([1, -1]), reduction="none").round(4)
        array([0.2929, 0.7071])

    Reference: `torch.nn.functional.cosine_embedding_loss`.
    """
    x, y, t = floating(input1, "cosine_embedding_loss"), floating(input2, "cosine_embedding_loss"), array(target)
    if shape_of(x) != shape_of(y) or shape_of(t) != shape_of(x)[:-1] or len(shape_of(x)) not in (1, 2):
        got = {"input1": aval_of(x), "input2": aval_of(y), "target": aval_of(t)}
        raise ShapeError("cosine_embedding_loss: inputs (n, m) and target (n,), or (m,) and ()", got=got)
    squares = (np.sum(x * x, axis=-1) + _EPSILON) * (np.sum(y * y, axis=-1) + _EPSILON)
    cosine = np.sum(x * y, axis=-1) / np.sqrt(squares)
    zero = x.dtype.type(0)
    losses = np.where(np.equal(t, 1), 1 - cosine, zero) + np.where(np.equal(t, -1), at_least_zero(cosine - margin), zero)
    return reduced("cosine_embedding_loss", losses, reduction)


def triplet_margin_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Array:
    """max(d(anchor, positive) - d(anchor, negative) + margin, 0) with `pairwise_distance` as d.

    Args:
        anchor: (n, m) or (m,), real.
        positive: What is to be near, of the same shape.
        negative: What is to be far, of the same shape.
        margin: By how much farther.
        p: Which norm.
        eps: Added to each difference.
        swap: Whether the distance of positive and negative counts where it is smaller than that of anchor and negative.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the inputs' common dtype.

    Raises:
        ArgumentError: the margin is not positive.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.triplet_margin_loss(np.zeros(2), np.array([0.0, 3.0]), np.array([0.0, 2.0])).round(4)
        np.float64(2.0)

    Reference: Balntas et al., Learning local feature descriptors with triplets, 2016; `torch.nn.functional.triplet_margin_loss`.
    """

    def distance(x: Any, y: Any) -> Any:
        return pairwise_distance(x, y, p, eps)

    return _triplets("triplet_margin_loss", anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: ArrayLike,
    positive: ArrayLike,
    negative: ArrayLike,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Array:
    """`triplet_margin_loss` with a distance of one's own; None for `pairwise_distance`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> far = lambda x, y: np.max(np.abs(x - y), axis=-1)
        >>> F.triplet_margin_with_distance_loss(np.zeros(2), np.ones(2), 3 * np.ones(2), distance_function=far, margin=2.5)
        np.float64(0.5)

    Reference: `torch.nn.functional.triplet_margin_with_distance_loss`.
    """
    name, distance = "triplet_margin_with_distance_loss", distance_function or pairwise_distance
    return _triplets(name, anchor, positive, negative, distance, margin, swap, reduction)


def _triplets(name: str, anchor: Any, positive: Any, negative: Any, distance: Any, margin: float, swap: bool, reduction: str) -> Array:
    if margin <= 0:
        raise ArgumentError(f"{name}: the margin is positive", got={"margin": margin})
    a, x, y = (floating(v, name) for v in (anchor, positive, negative))
    near, far = distance(a, x), distance(a, y)
    if swap:
        far = np.minimum(far, distance(x, y))
    return reduced(name, at_least_zero(near - far + margin), reduction)
