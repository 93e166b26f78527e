"""Training without a schedule: `schedule_free_sgd`, `schedule_free_adamw`. Gradients are taken between an average and the iterate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ArgumentError
from fnad.optim.base import Number, Optimizer, check_betas, check_numbers
from fnad.optim.rule import Rule, optimizer
from fnad.typing import Array, PyTree


class ScheduleFreeState(NamedTuple):
    """State of `schedule_free_sgd` and `schedule_free_adamw`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    z: PyTree
    """The iterate that gradients move: the shape and dtype of each leaf, its value before the first update."""
    exp_avg_sq: PyTree
    """The running mean of squares, of `schedule_free_adamw`: likewise, zeros before the first update; else None."""
    weight_sum: PyTree
    """The sum of the weights of the average: float64, shape ()."""
    lr_max: PyTree
    """The largest learning rate so far: float64, shape ()."""
    beta1: PyTree
    """Where between the iterate (0) and the average (1) the parameters lie: float64, shape ()."""


def schedule_free_sgd(
    lr: Number = 1.0,
    momentum: Number = 0.9,
    weight_decay: Number = 0,
    warmup_steps: int = 0,
    r: Number = 0.0,
    weight_lr_power: Number = 2.0,
    maximize: bool = False,
) -> Optimizer:
    r"""Schedule-free SGD: as good as the best schedule, without knowing when training ends.

    The parameters are `y`, where gradients are taken; `averaged_params(state, params)` gives `x`, the average, which is what to
    evaluate and keep. With `b` = momentum, `t` = the leaf's step, counted from 1,

        lr     = lr min(1, t / warmup_steps)
        w      = t**r (largest lr so far)**weight_lr_power,    c = w / (sum of all w)
        d      = (-g if maximize else g) + weight_decay y
        z      = z - lr d
        x      = (1 - c) x + c z
        new y  = b x + (1 - b) z,    update = new y - y

    Args:
        lr: Learning rate, greater than that of `sgd` with a schedule; or a function of the leaf's step.
        momentum: How near to the average gradients are taken; in (0, 1).
        weight_decay: L2 penalty, taken at y.
        warmup_steps: How long the learning rate rises linearly.
        r: Power of the step in the weights of the average.
        weight_lr_power: Power of the learning rate in them.
        maximize: Climb instead of descend.

    Returns:
        `Optimizer(init, update)` with the state `ScheduleFreeState(step, z, exp_avg_sq, weight_sum, lr_max, beta1)`, see `adam`.
        `update` needs params.

    Raises:
        ArgumentError: a hyperparameter is outside its range.
        TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.schedule_free_sgd(lr=0.4)
        >>> params = np.array([1.0, -2.0])
        >>> state = opt.init(params)
        >>> for _ in range(50):
        ...     updates, state = opt.update(fnad.grad(lambda p: np.sum(p**2))(params), state, params)
        ...     params = fnad.optim.apply_updates(params, updates)
        >>> bool(np.abs(fnad.optim.averaged_params(state, params)).max() < 0.05)
        True

    Reference: Defazio et al., The road less scheduled, NeurIPS 2024.
    """
    return _schedule_free("schedule_free_sgd", lr, (momentum,), 0.0, weight_decay, warmup_steps, r, weight_lr_power, maximize)


def schedule_free_adamw(
    lr: Number = 2.5e-3,
    betas: tuple[Number, Number] = (0.9, 0.999),
    eps: Number = 1e-8,
    weight_decay: Number = 0,
    warmup_steps: int = 0,
    r: Number = 0.0,
    weight_lr_power: Number = 2.0,
    maximize: bool = False,
) -> Optimizer:
    r"""Schedule-free AdamW: as `schedule_free_sgd`, with the gradient divided by the root of its mean square.

        v      = b2 v + (1 - b2) g g                               (v = exp_avg_sq)
        d      = g / (sqrt(v / (1 - b2**t)) + eps) + weight_decay y

    Args:
        lr: See `schedule_free_sgd`.
        betas: How near to the average gradients are taken, in (0, 1); and how much of the mean square stays, in [0, 1).
        eps: Added to the root after the bias correction.
        weight_decay: Decay in units of lr, taken at y.
        warmup_steps: See `schedule_free_sgd`.
        r: See `schedule_free_sgd`.
        weight_lr_power: See `schedule_free_sgd`.
        maximize: See `adamw`.

    Returns:
        See `schedule_free_sgd`.

    Raises:
        ArgumentError, TreeError, ShapeError, DTypeError: see `schedule_free_sgd`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.schedule_free_adamw(lr=0.1)
        >>> p = np.array([1.0, -2.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)[0].round(4)  # the first average is the first iterate
        array([-0.1,  0.1])

    Reference: Defazio et al., The road less scheduled, NeurIPS 2024.
    """
    return _schedule_free("schedule_free_adamw", lr, betas, eps, weight_decay, warmup_steps, r, weight_lr_power, maximize)


def _schedule_free(
    name: str, lr: Any, betas: Any, eps: Any, weight_decay: Any, warmup_steps: int, r: Any, power: Any, maximize: bool
) -> Optimizer:
    check_numbers({"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay, "warmup_steps value": warmup_steps})
    check_numbers({"r value": r, "weight_lr_power value": power})
    check_betas(betas)
    if bool(np.any(betas[0] == 0)):
        raise ArgumentError(f"{name} needs a momentum: without it, parameters do not tell their average", got={"momentum": 0})
    options = {"lr": lr, "beta": betas[0], "eps": eps, "weight_decay": weight_decay, "warmup_steps": warmup_steps, "r": r, "power": power}
    adaptive = len(betas) > 1
    return optimizer(
        Rule(
            name, ScheduleFreeState, _formula, _numbers, {**options, **({"beta2": betas[1]} if adaptive else {})},
            arrays={"z": "params", "exp_avg_sq": 0 if adaptive else None},
            scalars={"weight_sum": 0.0, "lr_max": 0.0, "beta1": 0.0 if callable(betas[0]) else betas[0]},
            maximize=maximize, decay="own", reads_params=True,
        )
    )  # fmt: skip


def _numbers(t: Any, o: Any) -> Mapping[str, Any]:
    lr = o.lr * np.minimum(1, t / o.warmup_steps) if o.warmup_steps else o.lr
    largest = np.maximum(lr, o.lr_max)
    weight = np.power(t * 1.0, o.r) * largest**o.power
    total = o.weight_sum + weight
    c = np.where(total > 0, weight / np.where(total > 0, total, 1), 0)
    numbers = {"lr": lr, "c": c, "ahead": lr * (1 - o.beta * (1 - c)), "decay": o.weight_decay, "eps": o.eps}
    moment = {"beta2": o.beta2, "share2": 1 - o.beta2, "correction": 1 - np.power(o.beta2, t)} if hasattr(o, "beta2") else {}
    return {**numbers, **moment, "weight_sum": total, "lr_max": largest, "beta1": o.beta}


def _formula(n: Any, g: Array, y: Array, z: Array, v: Array | None) -> tuple[Array | None, ...]:
    if v is not None:
        v = v * n.beta2 + n.share2 * g * g
        g = g / (np.sqrt(v / n.correction) + n.eps)
    d = g + n.decay * y
    return n.c * (z - y) - n.ahead * d, z - n.lr * d, v
