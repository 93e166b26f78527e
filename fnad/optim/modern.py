"""Optimizers that PyTorch does not have, from their papers: `lion`, `adabelief`, `adan`, `lamb`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fnad.optim.adam import family_options, is_near, lerp, means
from fnad.optim.base import Number, Optimizer, check_betas, check_numbers
from fnad.optim.rule import Rule, optimizer
from fnad.typing import Array, PyTree


class LionState(NamedTuple):
    """State of `lion`; both fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    exp_avg: PyTree
    """The running mean of each leaf's gradients: its shape and dtype, zeros before the first update."""


def lion(lr: Number = 1e-4, betas: tuple[Number, Number] = (0.9, 0.99), weight_decay: Number = 0, maximize: bool = False) -> Optimizer:
    r"""Lion: every entry moves by lr, in the direction of a momentum.

    With `m` = exp_avg, `b1, b2` = betas, `d = -g if maximize else g`,

        update = -lr sign(b1 m + (1 - b1) d) - lr weight_decay p
        m      = b2 m + (1 - b2) d

    Args:
        lr: Learning rate; or a function of the leaf's step, counted from 0, that returns it. So may be every other number.
            Three to ten times smaller than that of `adamw`.
        betas: How much of the running mean enters the direction, and how much of it stays; each in [0, 1).
        weight_decay: As of `adamw`.
        maximize: Climb instead of descend; the decay keeps its sign.

    Returns:
        `Optimizer(init, update)` with the state `LionState(step, exp_avg)`, see `adam`.

    Raises:
        ArgumentError: a hyperparameter is outside its range.
        TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.lion(lr=0.1)
        >>> p = np.array([1.0, -2.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)[0]
        array([-0.1,  0.1])

    Reference: Chen et al., Symbolic discovery of optimization algorithms, NeurIPS 2023, algorithm 2.
    """
    check_numbers({"learning rate": lr, "weight_decay value": weight_decay})
    options = {"lr": lr, **check_betas(betas), "weight_decay": weight_decay}
    return optimizer(Rule("lion", LionState, _lion, _lion_numbers, options, {"exp_avg": 0}, maximize=maximize, decay="decoupled"))


def _lion_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    return {"lr": o.lr, "beta1": o.beta1, "share1": 1 - o.beta1, "beta2": o.beta2, "share2": 1 - o.beta2}


def _lion(n: Any, g: Array, p: Array, m: Array) -> tuple[Array, ...]:
    return -n.lr * np.sign(n.beta1 * m + n.share1 * g), n.beta2 * m + n.share2 * g


class AdaBeliefState(NamedTuple):
    """State of `adabelief`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    exp_avg: PyTree
    """The running mean of each leaf's gradients: its shape and dtype, zeros before the first update."""
    exp_avg_var: PyTree
    """The running mean of their squared distances from that mean, likewise."""


def adabelief(
    lr: Number = 1e-3, betas: tuple[Number, Number] = (0.9, 0.999), eps: Number = 1e-16, weight_decay: Number = 0, maximize: bool = False
) -> Optimizer:
    r"""AdaBelief: long steps where the gradient is what its running mean predicts.

    With `m` = exp_avg, `s` = exp_avg_var, `b1, b2` = betas, `t` = the leaf's step, counted from 1, `d = -g if maximize else g`,

        m      = m + (1 - b1) (d - m)
        s      = b2 s + (1 - b2) (d - m)**2 + eps
        update = -lr m / (1 - b1**t) / (sqrt(s / (1 - b2**t)) + eps) - lr weight_decay p

    Args:
        lr: See `adam`.
        betas: See `adam`.
        eps: Added to the variance and to its root.
        weight_decay: As of `adamw`.
        maximize: See `adamw`.

    Returns:
        `Optimizer(init, update)` with the state `AdaBeliefState(step, exp_avg, exp_avg_var)`, see `adam`.

    Raises:
        ArgumentError, TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.adabelief(lr=0.1)
        >>> p = np.array([1.0, -2.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)[0].round(4)
        array([-0.1111,  0.1111])

    Reference: Zhuang et al., AdaBelief optimizer: adapting stepsizes by the belief in observed gradients, NeurIPS 2020.
    """
    arrays, flags = {"exp_avg": 0, "exp_avg_var": 0}, {"near": is_near(betas[0])}
    options = family_options(lr, betas, eps, weight_decay)
    return optimizer(
        Rule("adabelief", AdaBeliefState, _adabelief, _corrected, options, arrays, flags=flags, maximize=maximize, decay="decoupled")
    )


def _corrected(t: Any, o: Any) -> Mapping[str, Any]:
    corrections = {"correction1": 1 - np.power(o.beta1, t), "correction2": 1 - np.power(o.beta2, t)}
    return {"lr": o.lr, **corrections, **means(o), "eps": o.eps, "decay": o.weight_decay}


def _adabelief(n: Any, g: Array, p: Array, m: Array, s: Array) -> tuple[Array, ...]:
    m = lerp(m, g, n.share, n.near)
    s = s * n.beta2 + n.share2 * (g - m) * (g - m) + n.eps
    return -n.lr * (m / n.correction1) / (np.sqrt(s / n.correction2) + n.eps), m, s


class AdanState(NamedTuple):
    """State of `adan`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    exp_avg: PyTree
    """The running mean of each leaf's gradients: its shape and dtype, zeros before the first update."""
    exp_avg_diff: PyTree
    """The running mean of their differences from one step to the next, likewise."""
    exp_avg_sq: PyTree
    """The running mean of the squares of the gradients that are expected one step ahead, likewise."""
    pre_grad: PyTree
    """The last gradient, likewise."""


def adan(
    lr: Number = 1e-3,
    betas: tuple[Number, Number, Number] = (0.98, 0.92, 0.99),
    eps: Number = 1e-8,
    weight_decay: Number = 0,
    maximize: bool = False,
) -> Optimizer:
    r"""Adan: adaptive Nesterov momentum, from the differences of gradients.

    With `m, w, v` = exp_avg, exp_avg_diff, exp_avg_sq, `b1, b2, b3` = betas (how much stays; the paper counts what is new), `t` =
    the leaf's step, counted from 1, `d = -g if maximize else g`, `e = d - pre_grad` (0 at first),

        m      = m + (1 - b1) (d - m)
        w      = w + (1 - b2) (e - w)
        v      = b3 v + (1 - b3) (d + b2 e)**2
        u      = -lr (m / (1 - b1**t) + b2 w / (1 - b2**t)) / (sqrt(v / (1 - b3**t)) + eps)
        new p  = (p + u) / (1 + lr weight_decay),    update = new p - p

    Args:
        lr: See `adam`.
        betas: How much of the three running means stays at each step; each in [0, 1).
        eps: Added to the root after the bias correction.
        weight_decay: Proximal: it divides the new parameters.
        maximize: See `adamw`.

    Returns:
        `Optimizer(init, update)` with the state `AdanState(step, exp_avg, exp_avg_diff, exp_avg_sq, pre_grad)`, see `adam`.

    Raises:
        ArgumentError, TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.adan(lr=0.1)
        >>> p = np.array([1.0, -2.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)[0].round(4)
        array([-0.1,  0.1])

    Reference: Xie et al., Adan: adaptive Nesterov momentum algorithm for faster optimizing deep models, IEEE TPAMI 2024,
    algorithm 1 (without restarts).
    """
    arrays = {"exp_avg": 0, "exp_avg_diff": 0, "exp_avg_sq": 0, "pre_grad": 0}
    options = family_options(lr, betas, eps, weight_decay)
    flags = {"near1": is_near(betas[0]), "near2": is_near(betas[1])}
    return optimizer(Rule("adan", AdanState, _adan, _adan_numbers, options, arrays, flags=flags, maximize=maximize, decay="own"))


def _adan_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    of_mean, of_diff = o.lr / (1 - np.power(o.beta1, t)), o.lr * o.beta2 / (1 - np.power(o.beta2, t))
    numbers = {"of_mean": of_mean, "of_diff": of_diff, "root": np.sqrt(1 - np.power(o.beta3, t)), "first": t == 1}
    shares = {"share1": 1 - o.beta1, "share2": 1 - o.beta2, "share3": 1 - o.beta3}
    return {**numbers, **shares, "beta2": o.beta2, "beta3": o.beta3, "eps": o.eps, "decay": o.lr * o.weight_decay}


def _adan(n: Any, g: Array, p: Array | None, m: Array, w: Array, v: Array, before: Array) -> tuple[Array, ...]:
    e = np.where(n.first > 0, 0, g - before)
    ahead = g + n.beta2 * e
    m, w, v = lerp(m, g, n.share1, n.near1), lerp(w, e, n.share2, n.near2), v * n.beta3 + n.share3 * ahead * ahead
    u = -(n.of_mean * m + n.of_diff * w) / (np.sqrt(v) / n.root + n.eps)
    return u if p is None else (u - n.decay * p) / (1 + n.decay), m, w, v, g


class LAMBState(NamedTuple):
    """State of `lamb`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    exp_avg: PyTree
    """The running mean of each leaf's gradients: its shape and dtype, zeros before the first update."""
    exp_avg_sq: PyTree
    """The running mean of their squares, likewise."""


def lamb(
    lr: Number = 1e-3, betas: tuple[Number, Number] = (0.9, 0.999), eps: Number = 1e-6, weight_decay: Number = 0, maximize: bool = False
) -> Optimizer:
    r"""LAMB: Adam whose step has, leaf by leaf, a length in proportion to the parameters. For large batches.

    With `m` = exp_avg, `v` = exp_avg_sq, `b1, b2` = betas, `t` = the leaf's step, counted from 1, `d = -g if maximize else g`,

        m      = m + (1 - b1) (d - m)
        v      = b2 v + (1 - b2) d d
        r      = m / (1 - b1**t) / (sqrt(v / (1 - b2**t)) + eps) + weight_decay p
        update = -lr |p| / |r| r              (|.| is the norm of the leaf; the ratio is 1 if one of them is 0)

    Args:
        lr: See `adam`.
        betas: See `adam`.
        eps: See `adam`.
        weight_decay: How much of the parameter enters the direction.
        maximize: See `adamw`.

    Returns:
        `Optimizer(init, update)` with the state `LAMBState(step, exp_avg, exp_avg_sq)`, see `adam`.

    Raises:
        ArgumentError, TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.lamb(lr=0.1)
        >>> p = np.array([3.0, -4.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)[0].round(4)
        array([-0.3536,  0.3536])

    Reference: You et al., Large batch optimization for deep learning: training BERT in 76 minutes, ICLR 2020.
    """
    arrays, flags = {"exp_avg": 0, "exp_avg_sq": 0}, {"near": is_near(betas[0])}
    options = family_options(lr, betas, eps, weight_decay)
    rule = Rule("lamb", LAMBState, _lamb, _corrected, options, arrays, flags=flags, maximize=maximize, decay="own")
    return optimizer(rule.whole_leaves())


def _lamb(n: Any, g: Array, p: Array, m: Array, v: Array) -> tuple[Array, ...]:
    m, v = lerp(m, g, n.share, n.near), v * n.beta2 + n.share2 * g * g
    r = m / n.correction1 / (np.sqrt(v / n.correction2) + n.eps) + n.decay * p
    size, step = np.sum(p * p), np.sum(r * r)
    usual = (size > 0) & (step > 0)
    ratio = np.sqrt(np.where(usual, size, 1) / np.where(usual, step, 1))
    return -n.lr * ratio * r, m, v
