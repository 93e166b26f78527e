"""What the functions make of their arguments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fnad.core.aval import aval_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError
from fnad.numpy.elementwise import cast
from fnad.typing import Array, ArrayLike


def array(x: ArrayLike) -> Array:
    return x if isinstance(x, Tracer) else np.asarray(x)


def floating(x: ArrayLike, name: str) -> Array:
    """An array of real floating-point numbers; integers become float64."""
    x = array(x)
    if x.dtype.kind == "f":
        return x
    if x.dtype.kind in "iub":
        return cast(x, np.dtype(np.float64))
    raise DTypeError(f"{name} takes real numbers", got={"input": aval_of(x)})


def steps(x: Any, name: str, least: int, rank: int) -> tuple[int, ...]:
    """One integer for each of the last axes, or one for all of them."""
    out = tuple(x) if isinstance(x, tuple | list) else (x,)
    if len(out) == 1:
        out = out * rank
    if len(out) != rank or any(not isinstance(n, int | np.integer) or n < least for n in out):
        rule = f"{name} is an integer of at least {least}" + (f", or one each for the last {rank} axes" if rank > 1 else "")
        raise ArgumentError(rule, got={name: x})
    return tuple(map(int, out))


def check_reduction(name: str, reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ArgumentError(f"{name}: reduction is 'none', 'mean' or 'sum'", got={"reduction": repr(reduction)})


def reduced(name: str, losses: Any, reduction: str, weight: ArrayLike | None = None) -> Array:
    """Losses with their weights, their sum, or their mean (by the sum of the weights)."""
    check_reduction(name, reduction)
    if weight is not None:
        losses = losses * array(weight)
    if reduction == "none":
        return losses
    if reduction == "sum":
        return np.sum(losses)
    return np.mean(losses) if weight is None else np.sum(losses) / np.sum(array(weight))


def two(name: str, input: ArrayLike, target: ArrayLike) -> tuple[Any, Any]:
    """Two arrays of real numbers, with a warning if their shapes differ."""
    x, y = floating(input, name), floating(target, name)
    if x.shape != y.shape:
        message = f"{name}: the shapes {x.shape} and {y.shape} differ and are broadcast, which is likely a mistake"
        warnings.warn(message, UserWarning, stacklevel=3)
    return x, y


def at_least_zero(x: Any) -> Any:
    """max(x, 0) with the slope 1 at 0, as PyTorch's clamp has it."""
    return np.where(np.greater_equal(x, 0), x, x.dtype.type(0))
