"""Stochastic gradient descent: with momentum (`sgd`), with averaging (`asgd`), and by the signs of gradients alone (`rprop`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ArgumentError
from fnad.optim.base import Number, Optimizer, check_numbers, is_traced, is_zero
from fnad.optim.rule import Rule, optimizer
from fnad.typing import Array, PyTree


class SGDState(NamedTuple):
    """State of `sgd`; both fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    momentum_buffer: PyTree
    """The buffer `b` of each leaf: its shape and dtype, zeros before the first update (and while momentum is 0)."""


def sgd(
    lr: Number = 1e-3,
    momentum: Number = 0,
    dampening: Number = 0,
    weight_decay: Number = 0,
    nesterov: bool = False,
    maximize: bool = False,
) -> Optimizer:
    r"""Stochastic gradient descent, with momentum if wanted, exactly as `torch.optim.SGD`.

    With `g` = gradient, `p` = parameter, `b` = momentum_buffer, `mu` = momentum, `tau` = dampening, `lambda` =
    weight_decay, `t` = the leaf's step, counted from 0, each leaf is updated by

        d    = (-g if maximize else g) + lambda p
        b    = d                          if t == 0
               mu b + (1 - tau) d         otherwise
        d    = d + mu b if nesterov else b                         (b is left out while mu == 0)
        update = -lr d,  new p = p + update

    Args:
        lr: Learning rate; or a function of the leaf's step (an int64 scalar) that returns it.
        momentum: Factor of the old buffer; it and the following may be such functions too.
        dampening: How much of the gradient is kept out of the buffer, but for the first one.
        weight_decay: L2 penalty; it enters before the momentum.
        nesterov: Look ahead along the buffer; needs momentum > 0 and dampening == 0.
        maximize: Climb instead of descend.

    Returns:
        `Optimizer(init, update)` with the state `SGDState(step, momentum_buffer)`. `update(grads, state, params)` takes
        gradients of the dtypes of params, and changes none of its arguments. Its results share no memory with them.
        Hyperparameters are cast to the dtype of each leaf. `params` may be left out where weight_decay is 0.

    Raises:
        ArgumentError: a hyperparameter is negative, or nesterov is not possible.
        TreeError, ShapeError, DTypeError: (by update) a gradient does not fit its parameter; the message names the leaf.

    Large arrays of float32 and float64 are updated in one pass over memory. Everything may be traced, the hyperparameters
    too: `fnad.grad` differentiates through an update.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.sgd(lr=0.1, momentum=0.9)
        >>> params = {"w": np.array([1.0, -2.0])}
        >>> state = opt.init(params)
        >>> for _ in range(2):
        ...     grads = fnad.grad(lambda p: np.sum(p["w"] ** 2))(params)
        ...     updates, state = opt.update(grads, state, params)
        ...     params = fnad.optim.apply_updates(params, updates)
        >>> params, state.step
        ({'w': array([ 0.46, -0.92])}, {'w': array(2)})

    Reference: `torch.optim.SGD` of PyTorch 2.13; Sutskever et al., On the importance of initialization and momentum in
    deep learning, ICML 2013 (PyTorch multiplies the whole buffer by lr).
    """
    given = {"learning rate": lr, "momentum value": momentum, "dampening value": dampening, "weight_decay value": weight_decay}
    check_numbers(given, signed=("dampening value",))
    if nesterov and (is_zero(momentum) or not is_zero(dampening)):
        raise ArgumentError("Nesterov momentum requires a momentum and zero dampening", got={"momentum": momentum, "dampening": dampening})
    options = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
    flags = {"has_momentum": not is_zero(momentum), "nesterov": nesterov}
    return optimizer(Rule("sgd", SGDState, _sgd, _sgd_numbers, options, arrays={"momentum_buffer": 0}, flags=flags, maximize=maximize))


def _sgd_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    return {"lr": o.lr, "momentum": o.momentum, "keep": 1 - o.dampening, "first": t == 1}


def _sgd(n: Any, g: Array, p: Array, b: Array) -> tuple[Array, ...]:
    if not n.has_momentum:
        return (-n.lr * g,)
    b = np.where(n.first > 0, g, n.momentum * b + n.keep * g)
    return -n.lr * (g + n.momentum * b if n.nesterov else b), b


class ASGDState(NamedTuple):
    """State of `asgd`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    ax: PyTree
    """The average of each leaf's parameters: its shape and dtype, zeros before the first update."""
    eta: PyTree
    """The step length of the next update: float64, shape ()."""
    mu: PyTree
    """How much of the next parameters enters their average: float64, shape ()."""


def asgd(
    lr: Number = 1e-2, lambd: Number = 1e-4, alpha: Number = 0.75, t0: Number = 1e6, weight_decay: Number = 0, maximize: bool = False
) -> Optimizer:
    r"""Averaged stochastic gradient descent, exactly as `torch.optim.ASGD`.

    With `ax` = the average of parameters, `t` = the leaf's step, counted from 1, `eta = lr` and `mu = 1` at first,

        d      = (-g if maximize else g) + weight_decay p
        update = -lambd eta p - eta d,     new p = p + update
        ax     = ax + mu (new p - ax)
        eta    = lr / (1 + lambd lr t)**alpha,   mu = 1 / max(1, t - t0)        (for the next update)

    Args:
        lr: Learning rate; or a function of the leaf's step, counted from 0. A new rate acts one update later, through `eta`.
        lambd: Decay of the parameters, and of `eta`.
        alpha: Power of the decay of `eta`.
        t0: From which step on parameters are averaged; before, `ax` is the parameters.
        weight_decay: L2 penalty.
        maximize: Climb instead of descend.

    Returns:
        `Optimizer(init, update)` with the state `ASGDState(step, ax, eta, mu)`, see `sgd`. `averaged_params(state, params)` gives `ax`.

    Raises:
        ArgumentError, TreeError, ShapeError, DTypeError: see `sgd`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.asgd(lr=0.5, lambd=0.1)
        >>> p = np.array([1.0])
        >>> updates, state = opt.update(np.array([1.0]), opt.init(p), p)
        >>> updates, state.ax
        (array([-0.55]), array([0.45]))

    Reference: Polyak & Juditsky, Acceleration of stochastic approximation by averaging, SIAM J. Control Optim. 1992;
    `torch.optim.ASGD` of PyTorch 2.13.
    """
    powers = {"lambd": lambd, "alpha": alpha, "t0": t0}
    check_numbers({"learning rate": lr, "weight_decay value": weight_decay, **powers}, signed=tuple(powers))
    options = {"lr": lr, **powers, "weight_decay": weight_decay}
    start = {"eta": lr(np.int64(0)) if callable(lr) else lr, "mu": 1.0}
    return optimizer(Rule("asgd", ASGDState, _asgd, _asgd_numbers, options, {"ax": 0}, start, maximize=maximize, reads_params=True))


def _asgd_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    eta = o.lr / (1 + o.lambd * o.lr * t) ** o.alpha
    return {"old_eta": o.eta, "decay": o.lambd * o.eta, "old_mu": o.mu, "eta": eta, "mu": 1 / np.maximum(1, t - o.t0)}


def _asgd(n: Any, g: Array, p: Array, ax: Array) -> tuple[Array, ...]:
    u = -n.decay * p - n.old_eta * g
    moved = p + u
    return u, np.where(n.old_mu == 1, moved, ax + (moved - ax) * n.old_mu)


class RpropState(NamedTuple):
    """State of `rprop`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    prev: PyTree
    """The last gradient of each leaf, 0 where its sign had turned: its shape and dtype, zeros before the first update."""
    step_size: PyTree
    """How far each entry moves: its shape and dtype, lr before the first update."""


def rprop(
    lr: Number = 1e-2, etas: tuple[Number, Number] = (0.5, 1.2), step_sizes: tuple[Number, Number] = (1e-6, 50), maximize: bool = False
) -> Optimizer:
    r"""Resilient backpropagation, exactly as `torch.optim.Rprop`: each entry has a step length, and reads only the sign of its gradient.

    With `s` = step_size, which begins as lr, `prev` = the last gradient, `(down, up)` = etas, for each entry,

        d      = -g if maximize else g
        s      = s up    if d prev > 0        kept within step_sizes
                 s down  if d prev < 0        and then d = 0
        update = -sign(d) s,    prev = d

    Args:
        lr: The first step length; a function of the step is asked for step 0 only.
        etas: Factors of the step length where the sign of the gradient has turned and where it has not; `0 < down < 1 < up`.
        step_sizes: The least and the greatest step length.
        maximize: Climb instead of descend.

    Returns:
        `Optimizer(init, update)` with the state `RpropState(step, prev, step_size)`, see `sgd`.

    Raises:
        ArgumentError: a hyperparameter is outside its range.
        TreeError, ShapeError, DTypeError: see `sgd`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.rprop(lr=0.5)
        >>> p = np.array([1.0, -3.0])
        >>> opt.update(np.array([0.1, -7.0]), opt.init(p), p)[0]
        array([-0.5,  0.5])

    Reference: Riedmiller & Braun, A direct adaptive method for faster backpropagation learning, ICNN 1993; `torch.optim.Rprop`
    of PyTorch 2.13.
    """
    down: Any = etas[0]
    up: Any = etas[1]
    given = {"etas[0]": down, "etas[1]": up, "step_sizes[0]": step_sizes[0], "step_sizes[1]": step_sizes[1]}
    check_numbers({"learning rate": lr, **given})
    if not any(is_traced(x) or callable(x) for x in etas) and not 0 < down < 1 < up:
        raise ArgumentError(f"Invalid eta values: {down}, {up}", fix="give 0 < etas[0] < 1 < etas[1]")
    options = {"down": down, "up": up, "least": step_sizes[0], "greatest": step_sizes[1]}
    start = lr(np.int64(0)) if callable(lr) else lr
    return optimizer(Rule("rprop", RpropState, _rprop, _rprop_numbers, options, {"prev": 0, "step_size": start}, maximize=maximize))


def _rprop_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    return vars(o)


def _rprop(n: Any, g: Array, p: Array, prev: Array, s: Array) -> tuple[Array, ...]:
    agree = g * prev
    s = s * np.where(agree > 0, n.up, np.where(agree < 0, n.down, 1))
    s = np.minimum(np.maximum(s, n.least), n.greatest)
    g = np.where(agree < 0, 0, g)
    return -np.sign(g) * s, g, s
