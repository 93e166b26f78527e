"""Connectionist temporal classification: a loss over all ways in which a sequence of labels can be stretched over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.control.scan import scan
from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import DTypeError, ShapeError
from fnad.nn.functional._arguments import array, check_reduction, floating
from fnad.primitives.indexing import gather
from fnad.primitives.shape import stop
from fnad.typing import Array, ArrayLike

_NEVER = -1e30  # the logarithm of 0, but with slopes


def ctc_loss(
    log_probs: ArrayLike,
    targets: ArrayLike,
    input_lengths: ArrayLike,
    target_lengths: ArrayLike,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
    *,
    after_softmax: bool = False,
) -> Array:
    """-log of the probability of all alignments of labels and time steps: labels in order, repeated or with blanks between.

    Args:
        log_probs: (t, n, c) or (t, c): logarithms of the probabilities of the classes at each time.
        targets: Labels, (n, s) or (s,); or those of all examples one after the other, if the lengths are known.
        input_lengths: How many times of each example count, (n,) or ().
        target_lengths: How many labels of each example count, (n,) or ().
        blank: The class of the blank.
        reduction: "none", "sum", or "mean": each loss over the number of its labels, then the mean.
        zero_infinity: Whether a loss for which there are too few times counts as 0, with gradient 0, in place of infinity.
        after_softmax: Whether the gradient is that by the logits in front of a `log_softmax`, as PyTorch gives it for `log_probs`.

    Returns:
        The loss in the dtype of `log_probs`.

    Raises:
        ShapeError, DTypeError, ArgumentError: arguments do not fit, or an option is outside its range.

    Differences from PyTorch: the gradient is that by `log_probs` themselves, unless `after_softmax` asks for PyTorch's. Behind a
    `log_softmax` both give the same.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> uniform = np.full((3, 1, 2), np.log(0.5))
        >>> np.exp(-F.ctc_loss(uniform, np.array([[1]]), np.array([3]), np.array([1])))  # 6 of 8 ways
        np.float64(0.75)

    Reference: Graves et al., Connectionist Temporal Classification, 2006; `torch.nn.functional.ctc_loss`.
    """
    check_reduction("ctc_loss", reduction)
    x, y, times, lengths = floating(log_probs, "ctc_loss"), *map(array, (targets, input_lengths, target_lengths))
    single = len(shape_of(x)) == 2
    if single:
        x, times, lengths = np.reshape(x, (shape_of(x)[0], 1, shape_of(x)[1])), np.reshape(times, (1,)), np.reshape(lengths, (1,))
        y = np.reshape(y, (1, -1))
    if any(v.dtype.kind not in "iu" for v in (y, times, lengths)):
        raise DTypeError("ctc_loss: labels and lengths are integers", got={"targets": aval_of(y), "input_lengths": aval_of(times)})
    n = shape_of(x)[1]
    y = _rows(y, lengths, n)
    if shape_of(times) != (n,) or shape_of(lengths) != (n,) or shape_of(y)[0] != n:
        raise ShapeError(
            "ctc_loss: log_probs (t, n, c), targets (n, s), lengths (n,)",
            got={"log_probs": aval_of(x), "targets": aval_of(y), "input_lengths": aval_of(times), "target_lengths": aval_of(lengths)},
        )
    losses = -_log_likelihood(x, y, times, lengths, blank)
    if after_softmax:  # nothing is added but exp(x) to the slope, which log_softmax takes away again
        seen = np.less(np.arange(shape_of(x)[0])[:, None], times)
        mass = np.sum(np.where(seen[..., None], np.exp(x), x.dtype.type(0)), axis=(0, 2))
        losses = losses + (mass - stop(mass))
    hopeless = np.greater(losses, -0.5 * _NEVER)
    losses = np.where(hopeless, x.dtype.type(0 if zero_infinity else np.inf), losses)
    if reduction == "none":
        return losses[0] if single else losses
    if reduction == "sum":
        return np.sum(losses)
    return np.mean(losses / np.maximum(lengths, 1).astype(x.dtype))


def _rows(y: Any, lengths: Any, n: int) -> Any:
    """Labels as (n, s), also where those of all examples are given one after the other."""
    if len(shape_of(y)) != 1:
        return y
    if isinstance(y, Tracer) or isinstance(lengths, Tracer):
        raise ShapeError("ctc_loss: targets are (n, s) where labels or lengths are traced", got={"targets": aval_of(y)})
    rows = np.zeros((n, int(lengths.max(initial=0))), y.dtype)
    for k, part in enumerate(np.split(y, np.cumsum(lengths)[:-1])):
        rows[k, : len(part)] = part[: rows.shape[1]]
    return rows


def _log_likelihood(x: Any, y: Any, times: Any, lengths: Any, blank: int) -> Any:
    """By the forward algorithm: state 2 k of an example is the blank before label k, state 2 k + 1 that label."""
    steps, n, _ = shape_of(x)
    states = 2 * shape_of(y)[1] + 1
    number = np.arange(states)
    blanks = np.full((n, shape_of(y)[1], 1), blank, y.dtype)
    labels = np.concatenate(
        [
            blanks[:, :1, 0] if states > 1 else np.full((n, 1), blank, y.dtype),
            np.reshape(np.concatenate([y[..., None], blanks], axis=2), (n, states - 1)),
        ],
        axis=1,
    )
    never = x.dtype.type(_NEVER)
    before = np.concatenate([np.full((n, 2), -1, y.dtype), labels[:, :-2]], axis=1)[:, :states]
    leap = np.not_equal(labels, blank) & np.not_equal(labels, before) & (number >= 2)
    rows = np.broadcast_to(np.arange(n)[:, None], (n, states))
    emitted = gather(x, rows, labels, axis=1)  # (t, n, states)
    start = np.where(number < 2, emitted[0], never)

    def step(alpha: Any, now: Any) -> tuple[Any, None]:
        found, t = now
        gap = np.full((n, 1), never, x.dtype)
        one = np.concatenate([gap, alpha[:, :-1]], axis=1)
        two = np.concatenate([gap, gap, alpha[:, :-2]], axis=1)[:, :states]
        moved = np.logaddexp(np.logaddexp(alpha, one), np.where(leap, two, never)) + found
        return np.where((t < times)[:, None], np.maximum(moved, never), alpha), None

    alpha, _ = scan(step, start, (emitted[1:], np.arange(1, steps)))
    last = np.where(np.equal(number, 2 * lengths[:, None]), alpha, never)
    before_last = np.where(np.equal(number, 2 * lengths[:, None] - 1), alpha, never)
    return np.logaddexp(np.max(last, axis=1), np.max(before_last, axis=1))
