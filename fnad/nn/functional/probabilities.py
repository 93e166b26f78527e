"""Losses of probabilities: binary cross-entropy, and the divergence of Kullback and Leibler."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad import _scipy
from fnad.core.aval import aval_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, ShapeError
from fnad.nn.functional._arguments import array, check_reduction, floating, reduced
from fnad.primitives.activation import binary_cross_entropy as entropies
from fnad.primitives.activation import softplus
from fnad.typing import Array, ArrayLike


def binary_cross_entropy(input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, reduction: str = "mean") -> Array:
    """-(y log(x) + (1 - y) log(1 - x)) of probabilities x and y, where logarithms below -100 count as -100.

    Args:
        input: Probabilities, in [0, 1].
        target: Probabilities, an array of the same shape.
        weight: A factor for each loss, or None.
        reduction: "mean", "sum", or "none".

    Returns:
        The loss in the operands' common dtype. Its slope by x is (x - y) / max(x (1 - x), 1e-12).

    Raises:
        ShapeError: the shapes differ.
        ArgumentError: `reduction` is something else, or an input that is known is not in [0, 1].

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.binary_cross_entropy(np.array([0.5, 0.0]), np.array([1.0, 1.0]), reduction="none").round(4)
        array([  0.6931, 100.    ])

    Reference: `torch.nn.functional.binary_cross_entropy`. Where logits are at hand, `binary_cross_entropy_with_logits` is accurate.
    """
    x, y = _alike("binary_cross_entropy", input, target)
    if not isinstance(x, Tracer) and np.any((x < 0) | (x > 1)):
        raise ArgumentError("binary_cross_entropy: the input lies in [0, 1]", got={"smallest": np.min(x), "largest": np.max(x)})
    return _reduced("binary_cross_entropy", entropies(x, y), weight, reduction)


def binary_cross_entropy_with_logits(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    reduction: str = "mean",
    pos_weight: ArrayLike | None = None,
) -> Array:
    """Binary cross-entropy of the sigmoid of logits, without overflow: (1 - y) x + log(1 + exp(-x)).

    Args:
        input: Logits.
        target: Probabilities, an array of the same shape.
        weight: A factor for each loss, or None.
        reduction: "mean", "sum", or "none".
        pos_weight: A factor for y, which broadcasts to the target; or None.

    Returns:
        The loss in the operands' common dtype.

    Raises:
        ShapeError: the shapes differ.
        ArgumentError: `reduction` is something else.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.binary_cross_entropy_with_logits(np.array([0.0, -1000.0]), np.array([1.0, 1.0]), reduction="none").round(4)
        array([6.931e-01, 1.000e+03])

    Reference: `torch.nn.functional.binary_cross_entropy_with_logits`.
    """
    x, y = _alike("binary_cross_entropy_with_logits", input, target)
    tail = softplus(-x)
    if pos_weight is not None:
        tail = tail * (1 + (array(pos_weight) - 1) * y)
    return _reduced("binary_cross_entropy_with_logits", (1 - y) * x + tail, weight, reduction)


def kl_div(input: ArrayLike, target: ArrayLike, reduction: str = "mean", log_target: bool = False) -> Array:
    """y (log(y) - x), the terms of the divergence of the distribution y from the one whose logarithm is x.

    Args:
        input: Logarithms of probabilities.
        target: Probabilities, or their logarithms; an array that broadcasts with the input.
        reduction: "batchmean" (the sum over the size of the first axis, which is the divergence), "mean", "sum", or "none".
        log_target: Whether `target` holds logarithms.

    Returns:
        The loss in the operands' common dtype. Where y = 0 it is 0.

    Raises:
        ArgumentError: `reduction` is something else.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.kl_div(np.log(np.array([[0.5, 0.5]])), np.array([[1.0, 0.0]]), "batchmean").round(4)
        np.float64(0.6931)

    Reference: Kullback & Leibler, On Information and Sufficiency, 1951; `torch.nn.functional.kl_div`.
    """
    x, y = floating(input, "kl_div"), floating(target, "kl_div")
    if log_target:
        terms = np.exp(y) * (y - x)
    else:
        entropy = _scipy.special().xlogy(y, y)  # which has none in half precision
        terms = (entropy if entropy.dtype == y.dtype else entropy.astype(y.dtype)) - y * x
    if reduction == "batchmean":
        return np.sum(terms) / (x.shape[0] if x.shape else 1)
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError("kl_div: reduction is 'batchmean', 'none', 'mean' or 'sum'", got={"reduction": repr(reduction)})
    return reduced("kl_div", terms, reduction)


def _alike(name: str, input: Any, target: Any) -> tuple[Any, Any]:
    x, y = floating(input, name), floating(target, name)
    if x.shape != y.shape:
        raise ShapeError(f"{name}: input and target have the same shape", got={"input": aval_of(x), "target": aval_of(y)})
    return x, y


def _reduced(name: str, losses: Any, weight: Any, reduction: str) -> Array:
    """The mean is by the number of losses, whatever their weights."""
    check_reduction(name, reduction)
    return reduced(name, losses if weight is None else losses * array(weight), reduction)
