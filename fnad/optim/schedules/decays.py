"""Schedules that go one way: steps, powers, lines, cosines, with and without warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.errors import ArgumentError
from fnad.optim.schedules.base import Schedule, anneal, check_positive, check_strategy, schedule


def step_lr(lr: float, step_size: int, gamma: float = 0.1) -> Schedule:
    """`lr gamma**(t // step_size)`.

    Args:
        lr: The first learning rate.
        step_size: After how many steps it falls.
        gamma: By which factor.

    Returns:
        step -> learning rate.

    Raises:
        ArgumentError: step_size is no positive integer.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.step_lr(0.1, 2, gamma=0.5)
        >>> [float(schedule(t)) for t in range(5)]
        [0.1, 0.1, 0.05, 0.05, 0.025]

    Reference: `torch.optim.lr_scheduler.StepLR` of PyTorch 2.13.
    """
    check_positive(step_size=step_size)
    return schedule(_step, lr=lr, step_size=step_size, gamma=gamma)


def _step(t: Any, lr: Any, step_size: int, gamma: Any) -> Any:
    return lr * np.power(gamma, t // step_size)


def multi_step_lr(lr: float, milestones: Sequence[int], gamma: float = 0.1) -> Schedule:
    """`lr gamma**(number of milestones that are at most t)`; a milestone that is there twice counts twice.

    Args:
        lr: The first learning rate.
        milestones: At which steps it falls.
        gamma: By which factor.

    Returns:
        step -> learning rate.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.multi_step_lr(0.1, [1, 3], gamma=0.5)
        >>> [float(schedule(t)) for t in range(4)]
        [0.1, 0.05, 0.05, 0.025]

    Reference: `torch.optim.lr_scheduler.MultiStepLR` of PyTorch 2.13.
    """
    return schedule(_multi_step, lr=lr, milestones=tuple(milestones), gamma=gamma)


def _multi_step(t: Any, lr: Any, milestones: tuple[int, ...], gamma: Any) -> Any:
    return lr * np.power(gamma, np.sum(t >= np.array(milestones, np.int64)))


def constant_lr(lr: float, factor: float = 1.0 / 3, total_iters: int = 5) -> Schedule:
    """`lr factor` for `total_iters` steps, then `lr`.

    Args:
        lr: The learning rate in the end.
        factor: What it is multiplied by at first; in [0, 1].
        total_iters: For how many steps.

    Returns:
        step -> learning rate.

    Raises:
        ArgumentError: factor is not in [0, 1].

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.constant_lr(0.1, factor=0.5, total_iters=2)
        >>> [float(schedule(t)) for t in range(4)]
        [0.05, 0.05, 0.1, 0.1]

    Reference: `torch.optim.lr_scheduler.ConstantLR` of PyTorch 2.13.
    """
    if not 0 <= factor <= 1:
        raise ArgumentError("Constant multiplicative factor expected to be between 0 and 1.", got={"factor": factor})
    return schedule(_constant, lr=lr, factor=factor, total_iters=total_iters)


def _constant(t: Any, lr: Any, factor: Any, total_iters: int) -> Any:
    return lr * np.where(t < total_iters, factor, 1.0)


def linear_lr(lr: float, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5) -> Schedule:
    """`lr` times what goes on a straight line from `start_factor` to `end_factor` in `total_iters` steps, and stays there.

    Args:
        lr: What is multiplied.
        start_factor: In (0, 1].
        end_factor: In [0, 1].
        total_iters: For how many steps.

    Returns:
        step -> learning rate.

    Raises:
        ArgumentError: a factor is outside its range.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.linear_lr(0.1, start_factor=0.5, total_iters=2)
        >>> [round(float(schedule(t)), 4) for t in range(4)]
        [0.05, 0.075, 0.1, 0.1]

    Reference: `torch.optim.lr_scheduler.LinearLR` of PyTorch 2.13.
    """
    if not 0 < start_factor <= 1:
        raise ArgumentError(
            "Starting multiplicative factor expected to be greater than 0 and less or equal to 1.", got={"start_factor": start_factor}
        )
    if not 0 <= end_factor <= 1:
        raise ArgumentError("Ending multiplicative factor expected to be between 0 and 1.", got={"end_factor": end_factor})
    check_positive(total_iters=total_iters)
    return schedule(_linear, lr=lr, start_factor=start_factor, end_factor=end_factor, total_iters=total_iters)


def _linear(t: Any, lr: Any, start_factor: Any, end_factor: Any, total_iters: int) -> Any:
    return lr * (start_factor + (end_factor - start_factor) * np.minimum(t, total_iters) / total_iters)


def exponential_lr(lr: float, gamma: float) -> Schedule:
    """`lr gamma**t`.

    Args:
        lr: The first learning rate.
        gamma: By which factor it falls at each step.

    Returns:
        step -> learning rate.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.exponential_lr(0.1, 0.5)
        >>> [float(schedule(t)) for t in range(3)]
        [0.1, 0.05, 0.025]

    Reference: `torch.optim.lr_scheduler.ExponentialLR` of PyTorch 2.13.
    """
    return schedule(_exponential, lr=lr, gamma=gamma)


def _exponential(t: Any, lr: Any, gamma: Any) -> Any:
    return lr * np.power(gamma, t)


def polynomial_lr(lr: float, total_iters: int = 5, power: float = 1.0) -> Schedule:
    """`lr (1 - t / total_iters)**power`, and 0 from `total_iters` on.

    Args:
        lr: The first learning rate.
        total_iters: When it is 0.
        power: 1 for a straight line.

    Returns:
        step -> learning rate.

    Raises:
        ArgumentError: total_iters is no positive integer.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.polynomial_lr(0.1, total_iters=2)
        >>> [float(schedule(t)) for t in range(4)]
        [0.1, 0.05, 0.0, 0.0]

    Reference: `torch.optim.lr_scheduler.PolynomialLR` of PyTorch 2.13.
    """
    check_positive(total_iters=total_iters)
    return schedule(_polynomial, lr=lr, total_iters=total_iters, power=power)


def _polynomial(t: Any, lr: Any, total_iters: int, power: Any) -> Any:
    return lr * np.power(1 - np.minimum(t, total_iters) / total_iters, power)


def cosine_annealing_lr(lr: float, T_max: int, eta_min: float = 0.0) -> Schedule:
    """`eta_min + (lr - eta_min) (1 + cos(pi t / T_max)) / 2`: down in `T_max` steps, and up again in as many.

    Args:
        lr: The first learning rate.
        T_max: After how many steps it is least.
        eta_min: The least learning rate.

    Returns:
        step -> learning rate.

    Raises:
        ArgumentError: T_max is no positive integer.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.cosine_annealing_lr(0.1, T_max=2)
        >>> [round(float(schedule(t)), 4) for t in range(4)]
        [0.1, 0.05, 0.0, 0.05]

    Reference: Loshchilov & Hutter, SGDR, ICLR 2017; `torch.optim.lr_scheduler.CosineAnnealingLR` of PyTorch 2.13.
    """
    check_positive(T_max=T_max)
    return schedule(_cosine, lr=lr, T_max=T_max, eta_min=eta_min)


def _cosine(t: Any, lr: Any, T_max: int, eta_min: Any) -> Any:
    return eta_min + (lr - eta_min) * (1 + np.cos(np.pi * t / T_max)) / 2


def swa_lr(lr: float, swa_lr: float, anneal_epochs: int = 10, anneal_strategy: str = "cos") -> Schedule:
    """From `lr` to `swa_lr` in `anneal_epochs` steps, where it stays: for the end of a training whose parameters are averaged.

    Args:
        lr: The first learning rate.
        swa_lr: The learning rate in the end.
        anneal_epochs: The number of steps between; 0 for none.
        anneal_strategy: "cos" or "linear".

    Returns:
        step -> learning rate.

    Raises:
        ArgumentError: anneal_epochs is negative, or the strategy is another.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.swa_lr(0.1, 0.5, anneal_epochs=2, anneal_strategy="linear")
        >>> [round(float(schedule(t)), 4) for t in range(4)]
        [0.1, 0.3, 0.5, 0.5]

    Reference: `torch.optim.swa_utils.SWALR` of PyTorch 2.13.
    """
    check_strategy(anneal_strategy)
    if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
        raise ArgumentError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
    return schedule(_swa, lr=lr, swa_lr=swa_lr, anneal_epochs=anneal_epochs, anneal_strategy=anneal_strategy)


def _swa(t: Any, lr: Any, swa_lr: Any, anneal_epochs: int, anneal_strategy: str) -> Any:
    share = anneal(anneal_strategy, np.minimum(t / anneal_epochs, 1)) if anneal_epochs else 1.0
    return swa_lr * share + lr * (1 - share)


def warmup_cosine(lr: float, warmup_steps: int, total_steps: int, end_lr: float = 0.0, start_lr: float = 0.0) -> Schedule:
    """From `start_lr` to `lr` on a straight line in `warmup_steps` steps, then to `end_lr` along half a cosine, where it stays.

    Args:
        lr: The greatest learning rate.
        warmup_steps: The length of the rise; may be 0.
        total_steps: When `end_lr` is reached.
        end_lr: The learning rate in the end.
        start_lr: The learning rate at step 0.

    Returns:
        step -> learning rate.

    Raises:
        ArgumentError: total_steps is not greater than warmup_steps.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.warmup_cosine(0.1, warmup_steps=2, total_steps=6)
        >>> [round(float(schedule(t)), 4) for t in range(8)]
        [0.0, 0.05, 0.1, 0.0854, 0.05, 0.0146, 0.0, 0.0]

    Reference: `optax.warmup_cosine_decay_schedule`.
    """
    if not 0 <= warmup_steps < total_steps:
        raise ArgumentError("the warm-up is shorter than the whole", got={"warmup_steps": warmup_steps, "total_steps": total_steps})
    return warmup_stable_decay(lr, warmup_steps, 0, total_steps - warmup_steps, end_lr, start_lr, "cos")


def warmup_stable_decay(
    lr: float, warmup_steps: int, stable_steps: int, decay_steps: int, end_lr: float = 0.0, start_lr: float = 0.0, decay: str = "linear"
) -> Schedule:
    """From `start_lr` to `lr` on a straight line, there for `stable_steps` steps, then to `end_lr`, where it stays.

    Args:
        lr: The greatest learning rate.
        warmup_steps: The length of the rise; may be 0.
        stable_steps: For how many steps it stays.
        decay_steps: The length of the fall.
        end_lr: The learning rate in the end.
        start_lr: The learning rate at step 0.
        decay: "linear", "cos", or "sqrt" for `1 - sqrt(share)`.

    Returns:
        step -> learning rate.

    Raises:
        ArgumentError: a length is negative, or decay is another.

    Example:
        >>> import fnad
        >>> schedule = fnad.optim.schedules.warmup_stable_decay(0.1, 2, 2, 2)
        >>> [round(float(schedule(t)), 4) for t in range(7)]
        [0.0, 0.05, 0.1, 0.1, 0.1, 0.05, 0.0]

    Reference: Hu et al., MiniCPM, arXiv:2404.06395; Hägele et al., Scaling laws and compute-optimal training beyond fixed training
    durations, NeurIPS 2024 ("sqrt").
    """
    check_strategy(decay, ("linear", "cos", "sqrt"))
    lengths = {"warmup_steps": warmup_steps, "stable_steps": stable_steps, "decay_steps": decay_steps}
    if min(lengths.values()) < 0:
        raise ArgumentError("lengths are not negative", got=lengths)
    return schedule(_warmup_stable_decay, lr=lr, **lengths, end_lr=end_lr, start_lr=start_lr, decay=decay)


def _warmup_stable_decay(
    t: Any, lr: Any, warmup_steps: int, stable_steps: int, decay_steps: int, end_lr: Any, start_lr: Any, decay: str
) -> Any:
    rise = np.minimum(t / warmup_steps, 1) if warmup_steps else 1.0
    begin = warmup_steps + stable_steps
    share = np.minimum(np.maximum((t - begin) / decay_steps, 0), 1) if decay_steps else np.where(t >= begin, 1.0, 0.0)
    fallen = np.sqrt(share) if decay == "sqrt" else anneal(decay, share)
    return np.where(t < warmup_steps, start_lr + (lr - start_lr) * rise, lr + (end_lr - lr) * fallen)
