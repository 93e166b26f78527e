"""Step lengths from the history of each entry's gradients: `adagrad`, `adadelta`, `rmsprop`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ArgumentError
from fnad.optim.adam import is_near, lerp
from fnad.optim.base import Number, Optimizer, check_numbers, is_zero
from fnad.optim.rule import Rule, optimizer
from fnad.typing import Array, PyTree


class AdagradState(NamedTuple):
    """State of `adagrad`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    sum: PyTree
    """The sum of the squares of each leaf's gradients: its shape and dtype."""


def adagrad(
    lr: Number = 1e-2,
    lr_decay: Number = 0,
    weight_decay: Number = 0,
    initial_accumulator_value: float = 0,
    eps: Number = 1e-10,
    maximize: bool = False,
) -> Optimizer:
    r"""Adagrad, exactly as `torch.optim.Adagrad`.

    With `s` = sum, which begins as initial_accumulator_value, `t` = the leaf's step, counted from 1,

        d      = (-g if maximize else g) + weight_decay p
        s      = s + d d
        update = -lr / (1 + (t - 1) lr_decay) d / (sqrt(s) + eps)

    Args:
        lr: Learning rate; or a function of the leaf's step, counted from 0, that returns it. So may be every other number but
            initial_accumulator_value.
        lr_decay: How fast the learning rate falls.
        weight_decay: L2 penalty.
        initial_accumulator_value: What the sum begins with.
        eps: Added to the root.
        maximize: Climb instead of descend.

    Returns:
        `Optimizer(init, update)` with the state `AdagradState(step, sum)`, see `adam`.

    Raises:
        ArgumentError: a hyperparameter is negative.
        TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.adagrad(lr=0.1)
        >>> p = np.array([1.0, -2.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)
        (array([-0.1,  0.1]), AdagradState(step=array(1), sum=array([9.  , 0.25])))

    Reference: Duchi, Hazan & Singer, Adaptive subgradient methods, JMLR 2011; `torch.optim.Adagrad` of PyTorch 2.13.
    """
    options = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps}
    given = {"learning rate": lr, "lr_decay value": lr_decay, "weight_decay value": weight_decay}
    check_numbers({**given, "initial_accumulator_value value": initial_accumulator_value, "epsilon value": eps})
    arrays = {"sum": initial_accumulator_value}
    return optimizer(Rule("adagrad", AdagradState, _adagrad, _adagrad_numbers, options, arrays, maximize=maximize))


def _adagrad_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    return {"lr": o.lr / (1 + (t - 1) * o.lr_decay), "eps": o.eps}


def _adagrad(n: Any, g: Array, p: Array, total: Array) -> tuple[Array, ...]:
    total = total + g * g
    return -n.lr * g / (np.sqrt(total) + n.eps), total


class AdadeltaState(NamedTuple):
    """State of `adadelta`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    square_avg: PyTree
    """The running mean of the squares of each leaf's gradients: its shape and dtype, zeros before the first update."""
    acc_delta: PyTree
    """The running mean of the squares of its updates (before lr), likewise."""


def adadelta(lr: Number = 1.0, rho: Number = 0.9, eps: Number = 1e-6, weight_decay: Number = 0, maximize: bool = False) -> Optimizer:
    r"""Adadelta, exactly as `torch.optim.Adadelta`.

    With `v` = square_avg, `a` = acc_delta,

        d      = (-g if maximize else g) + weight_decay p
        v      = rho v + (1 - rho) d d
        u      = sqrt(a + eps) / sqrt(v + eps) d
        a      = rho a + (1 - rho) u u
        update = -lr u

    Args:
        lr: Learning rate; or a function of the leaf's step, counted from 0, that returns it. So may be every other number.
        rho: How much of the running means stays; in [0, 1].
        eps: Added under both roots.
        weight_decay: L2 penalty.
        maximize: Climb instead of descend.

    Returns:
        `Optimizer(init, update)` with the state `AdadeltaState(step, square_avg, acc_delta)`, see `adam`.

    Raises:
        ArgumentError: a hyperparameter is outside its range.
        TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.adadelta(eps=0.01)
        >>> p = np.array([1.0, -2.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)[0].round(4)
        array([-0.3145,  0.2673])

    Reference: Zeiler, Adadelta: an adaptive learning rate method, arXiv:1212.5701; `torch.optim.Adadelta` of PyTorch 2.13.
    """
    options = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}
    check_numbers({"learning rate": lr, "rho value": rho, "epsilon value": eps, "weight_decay value": weight_decay})
    check_at_most_one("rho", rho)
    arrays = {"square_avg": 0, "acc_delta": 0}
    return optimizer(Rule("adadelta", AdadeltaState, _adadelta, _adadelta_numbers, options, arrays, maximize=maximize))


def _adadelta_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    return {"lr": o.lr, "rho": o.rho, "share": 1 - o.rho, "eps": o.eps}


def _adadelta(n: Any, g: Array, p: Array, v: Array, a: Array) -> tuple[Array, ...]:
    v = v * n.rho + n.share * g * g
    u = np.sqrt(a + n.eps) / np.sqrt(v + n.eps) * g
    return -n.lr * u, v, a * n.rho + n.share * u * u


class RMSpropState(NamedTuple):
    """State of `rmsprop`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    square_avg: PyTree
    """The running mean of the squares of each leaf's gradients: its shape and dtype, zeros before the first update."""
    momentum_buffer: PyTree = None
    """The momentum of each leaf, likewise; None without momentum."""
    grad_avg: PyTree = None
    """The running mean of each leaf's gradients, likewise; None unless centered."""


def rmsprop(
    lr: Number = 1e-2,
    alpha: Number = 0.99,
    eps: Number = 1e-8,
    weight_decay: Number = 0,
    momentum: Number = 0,
    centered: bool = False,
    maximize: bool = False,
) -> Optimizer:
    r"""RMSprop, exactly as `torch.optim.RMSprop`.

    With `v` = square_avg, `m` = grad_avg, `b` = momentum_buffer,

        d      = (-g if maximize else g) + weight_decay p
        v      = alpha v + (1 - alpha) d d
        m      = m + (1 - alpha) (d - m)                                     (if centered)
        s      = (sqrt(v - m m) if centered else sqrt(v)) + eps
        b      = momentum b + d / s                                          (with momentum)
        update = -lr b, or without momentum -lr d / s

    Args:
        lr: Learning rate; or a function of the leaf's step, counted from 0, that returns it. So may be every other number.
        alpha: How much of the running means stays.
        eps: Added to the root.
        weight_decay: L2 penalty.
        momentum: Factor of the old buffer.
        centered: Whether the variance of the gradients takes the place of their mean square.
        maximize: Climb instead of descend.

    Returns:
        `Optimizer(init, update)` with the state `RMSpropState(step, square_avg, momentum_buffer, grad_avg)`, see `adam`.

    Raises:
        ArgumentError: a hyperparameter is negative.
        TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.rmsprop(lr=0.1)
        >>> p = np.array([1.0, -2.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)[0].round(4)
        array([-1.,  1.])

    Reference: Hinton, Neural networks for machine learning, lecture 6e, 2012; Graves, Generating sequences with recurrent neural
    networks, arXiv:1308.0850 (centered); `torch.optim.RMSprop` of PyTorch 2.13, also for where eps stands.
    """
    options = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
    given = {"learning rate": lr, "epsilon value": eps, "momentum value": momentum}
    check_numbers({**given, "weight_decay value": weight_decay, "alpha value": alpha})
    arrays = {"square_avg": 0, "momentum_buffer": None if is_zero(momentum) else 0, "grad_avg": 0 if centered else None}
    flags = {"near": is_near(alpha), "momentum": not is_zero(momentum), "centered": centered}
    return optimizer(Rule("rmsprop", RMSpropState, _rmsprop, _rmsprop_numbers, options, arrays, flags=flags, maximize=maximize))


def _rmsprop_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    return {"lr": o.lr, "alpha": o.alpha, "share": 1 - o.alpha, "eps": o.eps, "factor": o.momentum}


def _rmsprop(n: Any, g: Array, p: Array, v: Array, b: Array | None, m: Array | None) -> tuple[Array | None, ...]:
    v = v * n.alpha + n.share * g * g
    m = None if m is None else lerp(m, g, n.share, n.near)
    step = g / (np.sqrt(v if m is None else v - m * m) + n.eps)
    b = None if b is None else n.factor * b + step
    return -n.lr * (step if b is None else b), v, b, m


def check_at_most_one(name: str, x: Any) -> None:
    """Factors of running means that may be 1."""
    if not callable(x) and bool(np.any(x > 1)):
        raise ArgumentError(f"Invalid {name} value: {x}", fix="it must not be greater than 1")
