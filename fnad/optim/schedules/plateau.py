"""A learning rate that falls when a metric no longer improves: it needs a state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ArgumentError
from fnad.optim.base import number


class PlateauState(NamedTuple):
    """State of `reduce_lr_on_plateau`."""

    lr: Any
    """The learning rate: float64, shape ()."""
    best: Any
    """The best metric so far: float64, shape ()."""
    num_bad_epochs: Any
    """Updates since it was found, without those of a cooldown: int64, shape ()."""
    cooldown_counter: Any
    """Updates until bad ones count again: int64, shape ()."""
    last_epoch: Any
    """Updates so far: int64, shape ()."""


class PlateauScheduler(NamedTuple):
    """A pair of pure functions: `init(lr) -> state` and `update(metric, state) -> (lr, state)`."""

    init: Callable[[Any], PlateauState]
    update: Callable[[Any, PlateauState], tuple[Any, PlateauState]]


def reduce_lr_on_plateau(
    mode: str = "min",
    factor: float = 0.1,
    patience: int = 10,
    threshold: float = 1e-4,
    threshold_mode: str = "rel",
    cooldown: int = 0,
    min_lr: float = 0,
    eps: float = 1e-8,
) -> PlateauScheduler:
    """A learning rate that falls by a factor when a metric has not improved for more than `patience` updates.

    Args:
        mode: "min" or "max": which metric is better.
        factor: What the learning rate is multiplied by; less than 1.
        patience: How many bad updates are borne.
        threshold: By how much a metric must be better, relative to the best one or absolutely.
        threshold_mode: "rel" or "abs".
        cooldown: For how many updates after a reduction bad ones do not count.
        min_lr: The least learning rate.
        eps: A reduction by less is not made.

    Returns:
        `PlateauScheduler(init, update)`: `state = init(lr)`, `lr, state = update(metric, state)`. Both may be traced. Give the
        learning rate to an optimizer with `inject_hyperparams`.

    Raises:
        ArgumentError: an option is outside its range.

    Example:
        >>> import fnad
        >>> plateau = fnad.optim.schedules.reduce_lr_on_plateau(patience=0, factor=0.5)
        >>> state = plateau.init(0.1)
        >>> for metric in (3.0, 2.0, 2.5):
        ...     lr, state = plateau.update(metric, state)
        >>> float(lr), float(state.best)
        (0.05, 2.0)

    Reference: `torch.optim.lr_scheduler.ReduceLROnPlateau` of PyTorch 2.13.
    """
    if factor >= 1:
        raise ArgumentError("Factor should be < 1.0.", got={"factor": factor})
    if mode not in ("min", "max"):
        raise ArgumentError(f"mode {mode} is unknown!", fix='give "min" or "max"')
    if threshold_mode not in ("rel", "abs"):
        raise ArgumentError(f"threshold mode {threshold_mode} is unknown!", fix='give "rel" or "abs"')
    rule = _Plateau(mode == "max", factor, patience, threshold, threshold_mode == "rel", cooldown, min_lr, eps)
    return PlateauScheduler(rule.init, rule.update)


@dataclass(frozen=True)
class _Plateau:
    larger: bool
    factor: Any
    patience: int
    threshold: Any
    relative: bool
    cooldown: int
    min_lr: Any
    eps: Any

    def init(self, lr: Any) -> PlateauState:
        """The state before the first metric."""
        counts = (np.zeros((), np.int64) for _ in range(3))
        return PlateauState(number(lr, np.float64), np.array(-np.inf if self.larger else np.inf), *counts)

    def update(self, metric: Any, state: PlateauState) -> tuple[Any, PlateauState]:
        """The next learning rate, and the state after a metric."""
        lr, best, bad, cooling, epoch = state
        share, room = (self.threshold, 0) if self.relative else (0, self.threshold)
        better = metric > best * (1 + share) + room if self.larger else metric < best * (1 - share) - room
        best = np.where(better, metric, best)
        bad = np.where(better, 0, bad + 1)
        bad, cooling = np.where(cooling > 0, 0, bad), np.where(cooling > 0, cooling - 1, cooling)
        enough = bad > self.patience
        lower = np.maximum(lr * self.factor, self.min_lr)
        lr = np.where(enough & (lr - lower > self.eps), lower, lr)
        bad, cooling = np.where(enough, 0, bad), np.where(enough, self.cooldown, cooling)
        new = PlateauState(*(number(x, np.float64) for x in (lr, best)), *(number(x, np.int64) for x in (bad, cooling, epoch + 1)))
        return new.lr, new
