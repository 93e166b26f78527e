"""Adam and its relatives: `adam`, `adamw`, `adamax`, `nadam`, `radam`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fnad.optim.base import Number, Optimizer, check_betas, check_numbers, is_traced
from fnad.optim.rule import Rule, optimizer
from fnad.typing import Array, PyTree


class AdamState(NamedTuple):
    """State of `adam` and `adamw`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    exp_avg: PyTree
    """The running mean `m` of each leaf's gradients: its shape and dtype, zeros before the first update."""
    exp_avg_sq: PyTree
    """The running mean `v` of their squares, likewise."""
    max_exp_avg_sq: PyTree = None
    """The largest `v` so far, likewise; None without amsgrad."""


def adam(
    lr: Number = 1e-3,
    betas: tuple[Number, Number] = (0.9, 0.999),
    eps: Number = 1e-8,
    weight_decay: Number = 0,
    amsgrad: bool = False,
    maximize: bool = False,
) -> Optimizer:
    r"""Adam, exactly as `torch.optim.Adam`.

    With `g` = gradient, `p` = parameter, `m` = exp_avg, `v` = exp_avg_sq, `b1, b2` = betas, `lambda` = weight_decay, `t` =
    the leaf's step, counted from 1, each leaf is updated by

        d = (-g if maximize else g) + lambda p
        m = m + (1 - b1) (d - m)
        v = b2 v + (1 - b2) d d
        w = max(w, v) if amsgrad else v                            (w = max_exp_avg_sq)
        update = -lr / (1 - b1**t) m / (sqrt(w) / sqrt(1 - b2**t) + eps),  new p = p + update

    Args:
        lr: Learning rate; or a function of the leaf's step (an int64 scalar, counted from 0) that returns it. So may be
            every other number.
        betas: How much of the running means stays at each step; each in [0, 1).
        eps: Added to the root after the bias correction.
        weight_decay: L2 penalty; it enters before the running means.
        amsgrad: Whether the root is taken of the largest `v` so far.
        maximize: Climb instead of descend.

    Returns:
        `Optimizer(init, update)` with the state `AdamState(step, exp_avg, exp_avg_sq, max_exp_avg_sq)`.
        `update(grads, state, params)` takes gradients of the dtypes of params, and changes none of its arguments. Its results
        share no memory with them. Factors that are the same for all entries are computed once, in float64, and rounded to the
        dtype of the leaf. `params` may be left out where weight_decay is 0.

    Raises:
        ArgumentError: a hyperparameter is outside its range.
        TreeError, ShapeError, DTypeError: (by update) a gradient does not fit its parameter; the message names the leaf.

    Large arrays of float32 and float64 are updated in one pass over memory. Everything may be traced, the hyperparameters
    too: `fnad.grad` differentiates through an update.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.adam(lr=0.1)
        >>> params = {"w": np.array([1.0, -2.0])}
        >>> state = opt.init(params)
        >>> for _ in range(2):
        ...     grads = fnad.grad(lambda p: np.sum(p["w"] ** 2))(params)
        ...     updates, state = opt.update(grads, state, params)
        ...     params = fnad.optim.apply_updates(params, updates)
        >>> params["w"].round(4), state.step
        (array([ 0.8004, -1.8002]), {'w': array(2)})

    Reference: Kingma & Ba, Adam: a method for stochastic optimization, ICLR 2015; Reddi et al., On the convergence of Adam and
    beyond, ICLR 2018 (amsgrad); `torch.optim.Adam` of PyTorch 2.13, also for where eps stands.
    """
    return _adam("adam", "l2", lr, betas, eps, weight_decay, amsgrad, maximize)


def adamw(
    lr: Number = 1e-3,
    betas: tuple[Number, Number] = (0.9, 0.999),
    eps: Number = 1e-8,
    weight_decay: Number = 1e-2,
    amsgrad: bool = False,
    maximize: bool = False,
) -> Optimizer:
    r"""Adam with decoupled weight decay, as `torch.optim.AdamW`: the running means see the gradient alone.

        update = -lr lambda p - lr / (1 - b1**t) m / (sqrt(w) / sqrt(1 - b2**t) + eps)

    Args:
        lr: See `adam`.
        betas: See `adam`.
        eps: See `adam`.
        weight_decay: How much of the parameter is taken away, in units of lr.
        amsgrad: See `adam`.
        maximize: See `adam`; the decay keeps its sign.

    Returns:
        See `adam`.

    Raises:
        ArgumentError, TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.adamw(lr=0.1, weight_decay=0.5)
        >>> params = np.array([1.0, -2.0])
        >>> updates, state = opt.update(np.zeros(2), opt.init(params), params)
        >>> updates
        array([-0.05,  0.1 ])

    Reference: Loshchilov & Hutter, Decoupled weight decay regularization, ICLR 2019; `torch.optim.AdamW` of PyTorch 2.13.
    """
    return _adam("adamw", "decoupled", lr, betas, eps, weight_decay, amsgrad, maximize)


def _adam(name: str, decay: str, lr: Any, betas: Any, eps: Any, weight_decay: Any, amsgrad: bool, maximize: bool) -> Optimizer:
    options = family_options(lr, betas, eps, weight_decay)
    arrays = {"exp_avg": 0, "exp_avg_sq": 0, "max_exp_avg_sq": 0 if amsgrad else None}
    flags = {"near": is_near(betas[0]), "amsgrad": amsgrad}
    return optimizer(Rule(name, AdamState, _adam_formula, _adam_numbers, options, arrays, flags=flags, maximize=maximize, decay=decay))


def family_options(lr: Any, betas: Any, eps: Any, weight_decay: Any, **more: Any) -> dict[str, Any]:
    """The hyperparameters of the whole family, checked in PyTorch's order."""
    check_numbers({"learning rate": lr, "epsilon value": eps})
    named = check_betas(betas)
    check_numbers({"weight_decay value": weight_decay, **{f"{name} value": x for name, x in more.items()}})
    return {"lr": lr, **named, "eps": eps, "weight_decay": weight_decay, **more}


def _adam_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    root = np.sqrt(1 - np.power(o.beta2, t))
    return {"step_size": o.lr / (1 - np.power(o.beta1, t)), "root": root, **means(o), "eps": o.eps}


def _adam_formula(n: Any, g: Array, p: Array, m: Array, v: Array, top: Array | None) -> tuple[Array | None, ...]:
    m, v = lerp(m, g, n.share, n.near), v * n.beta2 + n.share2 * g * g
    top = None if top is None else np.maximum(top, v)
    return -n.step_size * m / (np.sqrt(v if top is None else top) / n.root + n.eps), m, v, top


def means(o: Any) -> dict[str, Any]:
    """What the two running means take of the new value, and what the second keeps of the old one."""
    return {"share": 1 - o.beta1, "beta2": o.beta2, "share2": 1 - o.beta2}


def lerp(x: Array, y: Array, share: Any, near: bool) -> Array:
    """The way from `x` to `y`, `share` of it: in two forms, so that it hits the nearer end exactly, as in PyTorch."""
    return x + share * (y - x) if near else y - (y - x) * (1 - share)


def is_near(beta: Any) -> bool:
    """Whether a running mean that keeps `beta` of itself stays nearer to itself than to the new value, as far as can be known."""
    return is_traced(beta) or callable(beta) or bool(1 - beta < 0.5)


class AdamaxState(NamedTuple):
    """State of `adamax`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    exp_avg: PyTree
    """The running mean of each leaf's gradients: its shape and dtype, zeros before the first update."""
    exp_inf: PyTree
    """The largest gradient so far, decaying: likewise."""


def adamax(
    lr: Number = 2e-3, betas: tuple[Number, Number] = (0.9, 0.999), eps: Number = 1e-8, weight_decay: Number = 0, maximize: bool = False
) -> Optimizer:
    r"""Adam with the largest gradient in place of the root of the mean square, exactly as `torch.optim.Adamax`.

    With `m` = exp_avg, `u` = exp_inf, `b1, b2` = betas, `t` = the leaf's step, counted from 1,

        d      = (-g if maximize else g) + weight_decay p
        m      = m + (1 - b1) (d - m)
        u      = max(b2 u, |d| + eps)
        update = -lr / (1 - b1**t) m / u

    Args:
        lr: See `adam`.
        betas: See `adam`.
        eps: Added to the size of the gradient.
        weight_decay: See `adam`.
        maximize: See `adam`.

    Returns:
        `Optimizer(init, update)` with the state `AdamaxState(step, exp_avg, exp_inf)`, see `adam`.

    Raises:
        ArgumentError, TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.adamax(lr=0.1)
        >>> p = np.array([1.0, -2.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)[0].round(4)
        array([-0.1,  0.1])

    Reference: Kingma & Ba, Adam, ICLR 2015, section 7.1; `torch.optim.Adamax` of PyTorch 2.13.
    """
    arrays, flags = {"exp_avg": 0, "exp_inf": 0}, {"near": is_near(betas[0])}
    options = family_options(lr, betas, eps, weight_decay)
    return optimizer(Rule("adamax", AdamaxState, _adamax, _adamax_numbers, options, arrays, flags=flags, maximize=maximize))


def _adamax_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    return {"step_size": o.lr / (1 - np.power(o.beta1, t)), **means(o), "eps": o.eps}


def _adamax(n: Any, g: Array, p: Array, m: Array, u: Array) -> tuple[Array, ...]:
    m, u = lerp(m, g, n.share, n.near), np.maximum(u * n.beta2, np.abs(g) + n.eps)
    return -n.step_size * m / u, m, u


class NAdamState(NamedTuple):
    """State of `nadam`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    exp_avg: PyTree
    """The running mean of each leaf's gradients: its shape and dtype, zeros before the first update."""
    exp_avg_sq: PyTree
    """The running mean of their squares, likewise."""
    mu_product: PyTree
    """The product of the momenta so far: float64, shape (), 1 before the first update."""


def nadam(
    lr: Number = 2e-3,
    betas: tuple[Number, Number] = (0.9, 0.999),
    eps: Number = 1e-8,
    weight_decay: Number = 0,
    momentum_decay: Number = 4e-3,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
) -> Optimizer:
    r"""Adam with Nesterov momentum, exactly as `torch.optim.NAdam`.

    With `m` = exp_avg, `v` = exp_avg_sq, `b1, b2` = betas, `psi` = momentum_decay, `t` = the leaf's step, counted from 1,

        d      = (-g if maximize else g) + weight_decay p          (d has no decay if it is decoupled)
        mu(t)  = b1 (1 - 0.96**(t psi) / 2),    M = mu(1) ... mu(t) = mu_product
        m      = m + (1 - b1) (d - m)
        v      = b2 v + (1 - b2) d d
        s      = sqrt(v / (1 - b2**t)) + eps
        update = -lr (1 - mu(t)) / (1 - M) d / s  -  lr mu(t + 1) / (1 - M mu(t + 1)) m / s

    and `- lr weight_decay p` if the decay is decoupled.

    Args:
        lr: See `adam`.
        betas: See `adam`.
        eps: See `adam`.
        weight_decay: See `adam`.
        momentum_decay: How fast the momentum rises to b1.
        decoupled_weight_decay: Whether the decay enters the update, as in `adamw`, instead of the gradient.
        maximize: See `adam`.

    Returns:
        `Optimizer(init, update)` with the state `NAdamState(step, exp_avg, exp_avg_sq, mu_product)`, see `adam`.

    Raises:
        ArgumentError, TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.nadam(lr=0.1)
        >>> p = np.array([1.0, -2.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)[0].round(4)
        array([-0.1056,  0.1056])

    Reference: Dozat, Incorporating Nesterov momentum into Adam, ICLR workshop 2016; `torch.optim.NAdam` of PyTorch 2.13.
    """
    options = family_options(lr, betas, eps, weight_decay, momentum_decay=momentum_decay)
    arrays, flags, decay = {"exp_avg": 0, "exp_avg_sq": 0}, {"near": is_near(betas[0])}, "decoupled" if decoupled_weight_decay else "l2"
    return optimizer(Rule("nadam", NAdamState, _nadam, _nadam_numbers, options, arrays, {"mu_product": 1.0}, flags, maximize, decay))


def _nadam_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    mu, mu_next = (o.beta1 * (1 - 0.5 * np.power(0.96, s * o.momentum_decay)) for s in (t, t + 1))
    product = o.mu_product * mu
    of_gradient, of_mean = o.lr * (1 - mu) / (1 - product), o.lr * mu_next / (1 - product * mu_next)
    numbers = {"of_gradient": of_gradient, "of_mean": of_mean, "correction": 1 - np.power(o.beta2, t)}
    return {**numbers, "mu_product": product, **means(o), "eps": o.eps}


def _nadam(n: Any, g: Array, p: Array, m: Array, v: Array) -> tuple[Array, ...]:
    m, v = lerp(m, g, n.share, n.near), v * n.beta2 + n.share2 * g * g
    root = np.sqrt(v / n.correction) + n.eps
    return -n.of_gradient * g / root - n.of_mean * m / root, m, v


class RAdamState(NamedTuple):
    """State of `radam`; the fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    exp_avg: PyTree
    """The running mean of each leaf's gradients: its shape and dtype, zeros before the first update."""
    exp_avg_sq: PyTree
    """The running mean of their squares, likewise."""


def radam(
    lr: Number = 1e-3,
    betas: tuple[Number, Number] = (0.9, 0.999),
    eps: Number = 1e-8,
    weight_decay: Number = 0,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
) -> Optimizer:
    r"""Rectified Adam, exactly as `torch.optim.RAdam`: without the root while its variance is too large to be of use.

    With `m` = exp_avg, `v` = exp_avg_sq, `b1, b2` = betas, `t` = the leaf's step, counted from 1,

        d        = (-g if maximize else g) + weight_decay p        (d has no decay if it is decoupled)
        m        = m + (1 - b1) (d - m)
        v        = b2 v + (1 - b2) d d
        rho_inf  = 2 / (1 - b2) - 1,    rho = rho_inf - 2 t b2**t / (1 - b2**t)
        r        = sqrt((rho - 4) (rho - 2) rho_inf / ((rho_inf - 4) (rho_inf - 2) rho))
        update   = -lr m / (1 - b1**t) * (r sqrt(1 - b2**t) / (sqrt(v) + eps) if rho > 5 else 1)

    and `- lr weight_decay p` if the decay is decoupled.

    Args:
        lr: See `adam`.
        betas: See `adam`.
        eps: See `adam`; here it is added before the bias correction.
        weight_decay: See `adam`.
        decoupled_weight_decay: Whether the decay enters the update, as in `adamw`, instead of the gradient.
        maximize: See `adam`.

    Returns:
        `Optimizer(init, update)` with the state `RAdamState(step, exp_avg, exp_avg_sq)`, see `adam`.

    Raises:
        ArgumentError, TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.radam(lr=0.1)
        >>> p = np.array([1.0, -2.0])
        >>> opt.update(np.array([3.0, -0.5]), opt.init(p), p)[0].round(4)  # the first steps are those of momentum
        array([-0.3 ,  0.05])

    Reference: Liu et al., On the variance of the adaptive learning rate and beyond, ICLR 2020; `torch.optim.RAdam` of PyTorch 2.13.
    """
    options = family_options(lr, betas, eps, weight_decay)
    arrays, flags, decay = {"exp_avg": 0, "exp_avg_sq": 0}, {"near": is_near(betas[0])}, "decoupled" if decoupled_weight_decay else "l2"
    return optimizer(Rule("radam", RAdamState, _radam, _radam_numbers, options, arrays, flags=flags, maximize=maximize, decay=decay))


def _radam_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    power = np.power(o.beta2, t)
    longest = 2 / (1 - o.beta2) - 1
    rho = longest - 2 * t * power / (1 - power)
    rectified = rho > 5
    safe = np.where(rectified, rho, 6.0)  # no root of a negative number, also not in derivatives
    r = np.sqrt((safe - 4) * (safe - 2) * longest / ((longest - 4) * (longest - 2) * safe))
    step_size = o.lr / (1 - np.power(o.beta1, t))
    return {"step_size": step_size, "rectified": rectified, "factor": r * np.sqrt(1 - power), **means(o), "eps": o.eps}


def _radam(n: Any, g: Array, p: Array, m: Array, v: Array) -> tuple[Array, ...]:
    m, v = lerp(m, g, n.share, n.near), v * n.beta2 + n.share2 * g * g
    return -n.step_size * m * np.where(n.rectified > 0, n.factor / (np.sqrt(v) + n.eps), 1), m, v
