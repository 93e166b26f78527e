"""Schedules that go up and down: `cyclic_lr`, `one_cycle_lr`, warm restarts. The first two have a momentum that goes the other way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.errors import ArgumentError
from fnad.optim.schedules.base import Schedule, anneal, check_positive, check_strategy, schedule


def cosine_annealing_warm_restarts(lr: float, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> Schedule:
    """Down along half a cosine, again and again: in `T_0` steps first, and each time `T_mult` times as many.

    Args:
        lr: The learning rate after each restart.
        T_0: The length of the first cycle.
        T_mult: By which factor cycles grow.
        eta_min: The learning rate before a restart.

    Returns:
        step -> learning rate.

    Raises:
        ArgumentError: T_0 or T_mult is no positive integer.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.cosine_annealing_warm_restarts(0.1, T_0=2, T_mult=2)
        >>> [round(float(schedule(t)), 4) for t in range(7)]
        [0.1, 0.05, 0.1, 0.0854, 0.05, 0.0146, 0.1]

    Reference: Loshchilov & Hutter, SGDR, ICLR 2017; `torch.optim.lr_scheduler.CosineAnnealingWarmRestarts` of PyTorch 2.13.
    """
    check_positive(T_0=T_0, T_mult=T_mult)
    return schedule(_restarts, lr=lr, T_0=T_0, T_mult=T_mult, eta_min=eta_min)


def _restarts(t: Any, lr: Any, T_0: int, T_mult: int, eta_min: Any) -> Any:
    if T_mult == 1:
        share = (t % T_0) / T_0
    else:
        begins = [T_0]
        while begins[-1] < 2**53:
            begins.append(begins[-1] * T_mult + T_0)
        cycle = np.sum(t >= np.array(begins, np.int64))  # exactly, where a logarithm may fall short of a restart
        growth = np.power(float(T_mult), cycle)
        share = (t - T_0 * (growth - 1) / (T_mult - 1)) / (T_0 * growth)
    return eta_min + (lr - eta_min) * (1 + np.cos(np.pi * share)) / 2


def cyclic_lr(
    base_lr: float,
    max_lr: float,
    step_size_up: int = 2000,
    step_size_down: int | None = None,
    mode: str = "triangular",
    gamma: float = 1.0,
    scale_fn: Callable[[Any], Any] | None = None,
    scale_mode: str = "cycle",
) -> Schedule:
    """Up from `base_lr` to `max_lr` and down again, on straight lines, again and again.

    Args:
        base_lr: The least learning rate.
        max_lr: The greatest.
        step_size_up: The length of a rise.
        step_size_down: The length of a fall; like a rise if not given.
        mode: "triangular": cycles of the same height; "triangular2": half as high each time; "exp_range": `gamma**t` times as high.
        gamma: Of "exp_range".
        scale_fn: What takes the place of the mode: a function of the cycle, counted from 1, or of the step.
        scale_mode: Of what scale_fn is a function: "cycle" or "iterations".

    Returns:
        step -> learning rate. `cyclic_momentum` goes the other way.

    Raises:
        ArgumentError: a mode is none of these, or a length is no positive integer.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.cyclic_lr(0.1, 0.5, step_size_up=2)
        >>> [round(float(schedule(t)), 4) for t in range(6)]
        [0.1, 0.3, 0.5, 0.3, 0.1, 0.3]

    Reference: Smith, Cyclical learning rates for training neural networks, WACV 2017; `torch.optim.lr_scheduler.CyclicLR` of
    PyTorch 2.13.
    """
    return _cycle(base_lr, max_lr, step_size_up, step_size_down, mode, gamma, scale_fn, scale_mode)


def cyclic_momentum(
    base_momentum: float = 0.8,
    max_momentum: float = 0.9,
    step_size_up: int = 2000,
    step_size_down: int | None = None,
    mode: str = "triangular",
    gamma: float = 1.0,
    scale_fn: Callable[[Any], Any] | None = None,
    scale_mode: str = "cycle",
) -> Schedule:
    """The momentum that goes with `cyclic_lr`: down from `max_momentum` while the learning rate rises.

    Args:
        base_momentum: The least momentum.
        max_momentum: The greatest.
        step_size_up: See `cyclic_lr`, as the following.
        step_size_down: See `cyclic_lr`.
        mode: See `cyclic_lr`.
        gamma: See `cyclic_lr`.
        scale_fn: See `cyclic_lr`.
        scale_mode: See `cyclic_lr`.

    Returns:
        step -> momentum, to be given in the place of `momentum` of `sgd` or of the first of `betas`.

    Raises:
        ArgumentError: see `cyclic_lr`.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.cyclic_momentum(step_size_up=2)
        >>> [round(float(schedule(t)), 4) for t in range(4)]
        [0.9, 0.85, 0.8, 0.85]

    Reference: `cycle_momentum` of `torch.optim.lr_scheduler.CyclicLR` of PyTorch 2.13.
    """
    return _cycle(max_momentum, base_momentum, step_size_up, step_size_down, mode, gamma, scale_fn, scale_mode)


def _cycle(start: Any, top: Any, up: int, down: int | None, mode: str, gamma: Any, scale_fn: Any, scale_mode: str) -> Schedule:
    if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
        raise ArgumentError("mode is invalid and scale_fn is None", got={"mode": repr(mode)})
    if scale_mode not in ("cycle", "iterations"):
        raise ArgumentError("scale_mode is 'cycle' or 'iterations'", got={"scale_mode": repr(scale_mode)})
    down = up if down is None else down
    check_positive(step_size_up=up, step_size_down=down)
    return schedule(_cyclic, start=start, top=top, up=up, down=down, mode=mode, gamma=gamma, scale_fn=scale_fn, scale_mode=scale_mode)


def _cyclic(t: Any, start: Any, top: Any, up: int, down: int, mode: str, gamma: Any, scale_fn: Any, scale_mode: str) -> Any:
    total, ratio = float(up + down), up / float(up + down)
    cycle = np.floor(1 + t / total)
    x = 1.0 + t / total - cycle
    height = np.where(x <= ratio, x / ratio, (x - 1) / (ratio - 1))
    if scale_fn is not None:
        scale = scale_fn(cycle if scale_mode == "cycle" else t)
    elif mode == "triangular2":
        scale = np.power(2.0, 1 - cycle)
    else:
        scale = np.power(gamma, t) if mode == "exp_range" else 1.0
    return start + (top - start) * height * scale


def one_cycle_lr(
    max_lr: float,
    total_steps: int,
    pct_start: float = 0.3,
    anneal_strategy: str = "cos",
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
    three_phase: bool = False,
) -> Schedule:
    """Up from `max_lr / div_factor` to `max_lr`, then down to far below where it began.

    Args:
        max_lr: The greatest learning rate.
        total_steps: The length of the whole; later steps keep the last learning rate.
        pct_start: Which part of it is the rise.
        anneal_strategy: "cos" or "linear".
        div_factor: `max_lr` divided by the first learning rate.
        final_div_factor: The first learning rate divided by the last one.
        three_phase: Whether it falls to the first learning rate in as many steps as it rose, and to the last one after that.

    Returns:
        step -> learning rate. `one_cycle_momentum` goes the other way.

    Raises:
        ArgumentError: total_steps is no positive integer, pct_start is not in [0, 1], or the strategy is another.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.one_cycle_lr(0.5, total_steps=6, pct_start=0.5, anneal_strategy="linear")
        >>> [round(float(schedule(t)), 4) for t in range(6)]
        [0.02, 0.26, 0.5, 0.3333, 0.1667, 0.0]

    Reference: Smith & Topin, Super-convergence, 2018; `torch.optim.lr_scheduler.OneCycleLR` of PyTorch 2.13.
    """
    first = max_lr / div_factor
    lowest = first / final_div_factor
    return _one_cycle((first, max_lr, first, lowest) if three_phase else (first, max_lr, lowest), total_steps, pct_start, anneal_strategy)


def one_cycle_momentum(
    total_steps: int,
    pct_start: float = 0.3,
    anneal_strategy: str = "cos",
    base_momentum: float = 0.85,
    max_momentum: float = 0.95,
    three_phase: bool = False,
) -> Schedule:
    """The momentum that goes with `one_cycle_lr`: down from `max_momentum` while the learning rate rises, then up again.

    Args:
        total_steps: See `one_cycle_lr`, as the following.
        pct_start: See `one_cycle_lr`.
        anneal_strategy: See `one_cycle_lr`.
        base_momentum: The least momentum.
        max_momentum: The greatest.
        three_phase: See `one_cycle_lr`.

    Returns:
        step -> momentum, to be given in the place of `momentum` of `sgd` or of the first of `betas`.

    Raises:
        ArgumentError: see `one_cycle_lr`.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.one_cycle_momentum(total_steps=6, pct_start=0.5, anneal_strategy="linear")
        >>> [round(float(schedule(t)), 4) for t in range(6)]
        [0.95, 0.9, 0.85, 0.8833, 0.9167, 0.95]

    Reference: `cycle_momentum` of `torch.optim.lr_scheduler.OneCycleLR` of PyTorch 2.13.
    """
    values = (max_momentum, base_momentum, max_momentum, *([max_momentum] if three_phase else []))
    return _one_cycle(values, total_steps, pct_start, anneal_strategy)


def _one_cycle(values: tuple[Any, ...], total_steps: int, pct_start: float, strategy: str) -> Schedule:
    check_positive(total_steps=total_steps)
    check_strategy(strategy)
    if not 0 <= pct_start <= 1:
        raise ArgumentError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
    rise = float(pct_start * total_steps) - 1
    ends = (rise, *([2 * rise] if len(values) == 4 else []), float(total_steps - 1))
    return schedule(_phases, values=values, ends=ends, anneal_strategy=strategy)


def _phases(t: Any, values: tuple[Any, ...], ends: tuple[float, ...], anneal_strategy: str) -> Any:
    """From one value to the next; each phase lasts until its end."""
    now = np.minimum(t, ends[-1])
    begins = (0.0, *ends[:-1])
    found = [
        start + (stop - start) * anneal(anneal_strategy, (now - begin) / (end - begin) if end != begin else 1.0)
        for start, stop, begin, end in zip(values[:-1], values[1:], begins, ends, strict=True)
    ]
    value = found[-1]
    for earlier, end in zip(reversed(found[:-1]), reversed(ends[:-1]), strict=True):
        value = np.where(now <= end, earlier, value)
    return value
