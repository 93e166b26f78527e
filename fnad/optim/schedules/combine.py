"""Schedules of the user's own functions, and schedules made of schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.control.while_loop import fori_loop
from fnad.errors import ArgumentError
from fnad.optim.base import is_traced
from fnad.optim.schedules.base import Schedule, schedule


def lambda_lr(lr: float, lr_lambda: Callable[[Any], Any]) -> Schedule:
    """`lr lr_lambda(t)`.

    Args:
        lr: What is multiplied.
        lr_lambda: A function of the step; of NumPy functions instead of `if`, where the step may be traced.

    Returns:
        step -> learning rate.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.lambda_lr(0.1, lambda t: 1 / (1 + t))
        >>> [float(schedule(t)) for t in range(2)]
        [0.1, 0.05]

    Reference: `torch.optim.lr_scheduler.LambdaLR` of PyTorch 2.13.
    """
    return schedule(_lambda, lr=lr, lr_lambda=lr_lambda)


def _lambda(t: Any, lr: Any, lr_lambda: Any) -> Any:
    return lr * lr_lambda(t)


def multiplicative_lr(lr: float, lr_lambda: Callable[[Any], Any]) -> Schedule:
    """`lr lr_lambda(1) ... lr_lambda(t)`. It costs `t` calls; `exponential_lr` does for a constant factor.

    Args:
        lr: The first learning rate.
        lr_lambda: By which factor it changes at a step.

    Returns:
        step -> learning rate.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.multiplicative_lr(0.1, lambda t: 1 / t)
        >>> [round(float(schedule(t)), 4) for t in range(4)]
        [0.1, 0.1, 0.05, 0.0167]

    Reference: `torch.optim.lr_scheduler.MultiplicativeLR` of PyTorch 2.13.
    """
    return schedule(_multiplicative, lr=lr, lr_lambda=lr_lambda)


def _multiplicative(t: Any, lr: Any, lr_lambda: Any) -> Any:
    if is_traced(t):
        return fori_loop(1, t + 1, lambda i, value: value * lr_lambda(i), np.float64(1.0) * lr)
    value = lr
    for i in range(1, int(t) + 1):
        value = value * lr_lambda(i)
    return value


def sequential_lr(schedules: Sequence[Callable[[Any], Any]], milestones: Sequence[int]) -> Schedule:
    """One schedule after the other; each begins with its own step 0 at its milestone.

    Args:
        schedules: step -> learning rate, in order.
        milestones: At which step the second begins, the third, ...

    Returns:
        step -> learning rate.

    Raises:
        ArgumentError: there is not one schedule more than milestones, or these do not rise.

    Example:
        >>> import fnad
        >>> S = fnad.optim.schedules
        >>> schedule = S.sequential_lr([S.linear_lr(0.1, 0.5, total_iters=2), S.exponential_lr(0.1, 0.5)], milestones=[2])
        >>> [round(float(schedule(t)), 4) for t in range(5)]
        [0.05, 0.075, 0.1, 0.05, 0.025]

    Reference: `torch.optim.lr_scheduler.SequentialLR` of PyTorch 2.13.
    """
    if len(milestones) != len(schedules) - 1:
        raise ArgumentError(
            "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points",
            got={"schedules": len(schedules), "milestones": len(milestones)},
        )
    if list(milestones) != sorted(milestones):
        raise ArgumentError("milestones rise", got={"milestones": list(milestones)})
    return schedule(_sequential, schedules=tuple(schedules), milestones=tuple(milestones))


def _sequential(t: Any, schedules: tuple[Any, ...], milestones: tuple[int, ...]) -> Any:
    if not is_traced(t):
        k = sum(t >= m for m in milestones)
        return schedules[k](t - (milestones[k - 1] if k else 0))
    value = schedules[0](t)
    for f, m in zip(schedules[1:], milestones, strict=True):
        value = np.where(t >= m, f(np.maximum(t - m, 0)), value)
    return value


def chained_scheduler(lr: float, factors: Sequence[Callable[[Any], Any]]) -> Schedule:
    """`lr` times all factors: schedules at the same time, each made with a learning rate of 1.

    Args:
        lr: What is multiplied.
        factors: step -> factor.

    Returns:
        step -> learning rate.

    Example:
        >>> import fnad
        >>> S = fnad.optim.schedules
        >>> schedule = S.chained_scheduler(0.1, [S.constant_lr(1.0, 0.5, total_iters=1), S.exponential_lr(1.0, 0.5)])
        >>> [round(float(schedule(t)), 4) for t in range(3)]
        [0.05, 0.05, 0.025]

    Reference: `torch.optim.lr_scheduler.ChainedScheduler` of PyTorch 2.13, for schedulers that multiply the learning rate.
    """
    return schedule(_chained, lr=lr, factors=tuple(factors))


def _chained(t: Any, lr: Any, factors: tuple[Any, ...]) -> Any:
    value = lr
    for f in factors:
        value = value * f(t)
    return value
