"""Optimizers that see a leaf as a matrix: `adafactor`, `muon`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fnad.errors import ArgumentError, ShapeError
from fnad.optim.adam import lerp
from fnad.optim.base import Number, Optimizer, check_numbers
from fnad.optim.rule import Rule, optimizer
from fnad.typing import Array, PyTree, Shape


class AdafactorState(NamedTuple):
    """State of `adafactor`; the fields are pytrees like params, with None for what a leaf does not have."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    row_var: PyTree
    """Of leaves with two axes or more, `(..., n, m)`: the running mean of squares along the last axis, (..., n, 1), in their dtype."""
    col_var: PyTree
    """Of the same leaves, along the axis before: (..., 1, m)."""
    variance: PyTree
    """Of other leaves the running mean of squares: their shape and dtype."""


def adafactor(
    lr: Number = 1e-2,
    beta2_decay: Number = -0.8,
    eps: tuple[Number | None, Number] = (None, 1e-3),
    d: Number = 1.0,
    weight_decay: Number = 0.0,
    maximize: bool = False,
) -> Optimizer:
    r"""Adafactor: the second moment of a matrix is kept as its row and column means. Exactly as `torch.optim.Adafactor`.

    With `r, c` = row_var, col_var, `v` = variance, `t` = the leaf's step, counted from 1, `h = -g if maximize else g`, `rms(x)` =
    the root of the mean square of a leaf,

        k      = t**beta2_decay
        r, c   = r + k (mean of h h along the last axis - r),  c + k (mean of h h along the axis before - c)
        v      = r c / max(mean of r, eps[0]),         for fewer than two axes v = v + k (h h - v)
        u      = h / sqrt(max(v, eps[0]**2))
        update = -max(eps[1], rms(p)) min(lr, 1 / sqrt(t)) / max(1, rms(u) / d) u - lr weight_decay p

    Args:
        lr: Greatest relative step; or a function of the leaf's step, counted from 0, that returns it. So may be every other number.
        beta2_decay: Power by which the running mean learns; not positive.
        eps: The least root of a mean square (None is the machine precision of the leaf), and the least scale of a leaf.
        d: From which size on updates are shortened; at least 1.
        weight_decay: As of `adamw`.
        maximize: Climb instead of descend; the decay keeps its sign.

    Returns:
        `Optimizer(init, update)` with the state `AdafactorState(step, row_var, col_var, variance)`, see `adam`. `update` needs params.

    Raises:
        ArgumentError: a hyperparameter is outside its range.
        TreeError, ShapeError, DTypeError: see `adam`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.adafactor(lr=0.1)
        >>> p = np.ones((2, 3))
        >>> updates, state = opt.update(np.ones((2, 3)), opt.init(p), p)
        >>> updates[0], state.row_var.shape, state.variance
        (array([-0.1, -0.1, -0.1]), (2, 1), None)

    Reference: Shazeer & Stern, Adafactor: adaptive learning rates with sublinear memory cost, ICML 2018; `torch.optim.Adafactor`
    of PyTorch 2.13.
    """
    eps1 = 0.0 if eps[0] is None else eps[0]
    given = {"learning rate": lr, "eps[0] value": eps1, "eps[1] value": eps[1], "weight_decay value": weight_decay}
    check_numbers({**given, "d value": d, "beta2_decay value": beta2_decay}, signed=("beta2_decay value",))
    if not callable(d) and bool(np.any(d < 1)):
        raise ArgumentError(f"Clipping threshold d should be >= 1 but is: {d}")
    if not callable(beta2_decay) and bool(np.any(beta2_decay > 0)):
        raise ArgumentError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
    options = {"lr": lr, "beta2_decay": beta2_decay, "eps1": eps1, "eps2": eps[1], "d": d, "weight_decay": weight_decay}
    arrays, flags = dict.fromkeys(_FACTORS, 0), {"precise": eps[0] is None}
    rule = Rule("adafactor", AdafactorState, _adafactor, _adafactor_numbers, options, arrays, {}, flags, maximize, "decoupled")
    return optimizer(rule.whole_leaves(_FACTORS))


def _of_rows(shape: Shape) -> Shape | None:
    return (*shape[:-1], 1) if len(shape) > 1 else None


def _of_columns(shape: Shape) -> Shape | None:
    return (*shape[:-2], 1, shape[-1]) if len(shape) > 1 else None


def _of_entries(shape: Shape) -> Shape | None:
    return shape if len(shape) < 2 else None


_FACTORS: Any = {"row_var": _of_rows, "col_var": _of_columns, "variance": _of_entries}


def _adafactor_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    share, step = np.power(t * 1.0, o.beta2_decay), np.minimum(o.lr, 1 / np.sqrt(t))
    return {"share": share, "lr": step, "eps1": o.eps1, "eps2": o.eps2, "d": o.d}


def _adafactor(n: Any, g: Array, p: Array, r: Array | None, c: Array | None, v: Array | None) -> tuple[Array | None, ...]:
    if not g.size:
        return g, r, c, v
    least = np.finfo(g.dtype).eps if n.precise else n.eps1
    scale = np.maximum(n.eps2, np.sqrt(np.mean(p * p))) * n.lr
    if r is not None and c is not None:
        r, c = (lerp(x, np.mean(g * g, axis=axis, keepdims=True), n.share, True) for x, axis in ((r, -1), (c, -2)))
        estimate = r * c / np.maximum(np.mean(r, axis=-2, keepdims=True), least)
    else:
        v = estimate = lerp(v, g * g, n.share, True)
    u = g / np.sqrt(np.maximum(estimate, least * least))
    shorten = np.maximum(1, np.sqrt(np.mean(u * u)) / n.d)
    return -scale / shorten * u, r, c, v


class MuonState(NamedTuple):
    """State of `muon`; both fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    momentum_buffer: PyTree
    """The running mean of each leaf's gradients: its shape and dtype, zeros before the first update."""


def muon(
    lr: Number = 1e-3,
    weight_decay: Number = 0.1,
    momentum: Number = 0.95,
    nesterov: bool = True,
    ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
    eps: Number = 1e-7,
    ns_steps: int = 5,
    adjust_lr_fn: str | None = None,
) -> Optimizer:
    r"""Muon: momentum, made orthogonal. For the weight matrices of hidden layers; as `torch.optim.Muon`, in the dtype of the leaf.

    With `b` = momentum_buffer, `mu` = momentum, `n x m` the shape of the leaf,

        b      = b + (1 - mu) (g - b)
        x      = g + mu (b - g) if nesterov else b,  x = x / max(|x|, eps)
        x      = a1 x + (a2 x x' + a3 (x x')**2) x             ns_steps times, with a = ns_coefficients
        update = -lr ratio x - lr weight_decay p

    where `ratio` is `sqrt(max(1, n / m))`, or `0.2 sqrt(max(n, m))` for "match_rms_adamw".

    Args:
        lr: Learning rate; or a function of the leaf's step, counted from 0, that returns it. So may be every other number but
            ns_coefficients.
        weight_decay: As of `adamw`.
        momentum: How much of the running mean stays.
        nesterov: Look ahead along the momentum.
        ns_coefficients: Of the Newton-Schulz iteration, which brings singular values near 1.
        eps: Least norm.
        ns_steps: How often to iterate; less than 100.
        adjust_lr_fn: "original" (or None) or "match_rms_adamw".

    Returns:
        `Optimizer(init, update)` with the state `MuonState(step, momentum_buffer)`, see `adam`. Give it the matrices and another
        optimizer the rest, with `partition`.

    Raises:
        ArgumentError: a hyperparameter is outside its range.
        ShapeError: a parameter is no matrix.
        TreeError, ShapeError, DTypeError: see `adam`.

    PyTorch iterates in bfloat16; here the iteration has the precision of the leaf.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.muon(lr=0.1, weight_decay=0, ns_steps=10)
        >>> p = np.zeros((2, 2))
        >>> opt.update(np.array([[3.0, 0.0], [0.0, 0.1]]), opt.init(p), p)[0].round(1)
        array([[-0.1, -0. ],
               [-0. , -0.1]])

    Reference: Jordan et al., Muon: an optimizer for hidden layers in neural networks, 2024; Liu et al., Muon is scalable for LLM
    training, arXiv:2502.16982; `torch.optim.Muon` of PyTorch 2.13.
    """
    check_numbers({"learning rate": lr, "momentum value": momentum, "weight_decay value": weight_decay, "epsilon value": eps})
    if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
        raise ArgumentError(f"Adjust learning rate function {adjust_lr_fn} is not supported", fix='give "original" or "match_rms_adamw"')
    if not 0 <= ns_steps < 100:
        raise ArgumentError(f"Invalid ns_steps value: {ns_steps}", fix="it must be less than 100")
    if len(ns_coefficients) != 3:
        raise ArgumentError("ns_coefficients are three numbers", got={"ns_coefficients": ns_coefficients})
    options = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "eps": eps, **dict(zip("abc", ns_coefficients, strict=True))}
    flags = {"nesterov": nesterov, "ns_steps": ns_steps, "as_adamw": adjust_lr_fn == "match_rms_adamw"}
    rule = Rule("muon", MuonState, _muon, _muon_numbers, options, {"momentum_buffer": 0}, {}, flags, False, "decoupled")
    return optimizer(replace(rule.whole_leaves(), accepts=_check_matrix))


def _check_matrix(shape: Shape) -> None:
    if len(shape) != 2:
        raise ShapeError(
            "Muon only supports 2D parameters", got={"shape": shape}, fix="give other leaves to another optimizer, with partition"
        )


def _muon_numbers(t: Any, o: Any) -> Mapping[str, Any]:
    return {**{name: getattr(o, name) for name in ("lr", "momentum", "eps", "a", "b", "c")}, "share": 1 - o.momentum}


def _muon(n: Any, g: Array, p: Array, b: Array) -> tuple[Array, ...]:
    b = lerp(b, g, n.share, True)
    x = lerp(g, b, n.momentum, False) if n.nesterov else b
    rows, columns = g.shape
    x = x.T if rows > columns else x
    x = x / np.maximum(np.sqrt(np.sum(x * x)), n.eps)
    for _ in range(n.ns_steps):
        gram = x @ x.T
        x = n.a * x + (n.b * gram + n.c * (gram @ gram)) @ x
    ratio = 0.2 * max(rows, columns) ** 0.5 if n.as_adamw else max(1, rows / max(columns, 1)) ** 0.5
    return -n.lr * ratio * (x.T if rows > columns else x), b
