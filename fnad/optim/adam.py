"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, TreeError
from fnad.kernels import update as kernels
from fnad.optim.base import KERNEL_DTYPES, Optimizer, as_array, cast, check_numbers, is_zero, update_leaves, zeros_like
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
    lr: float | Callable[[Any], Any] = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0,
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
        lr: Learning rate; or a function of the leaf's step (an int64 scalar, counted from 0) that returns it.
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

    Arrays of float32 and float64 are updated in one pass over memory. Everything may be traced, the hyperparameters
    too: `fnad.grad` differentiates through an update, with the same values.

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
    return _optimizer(lr, betas, eps, weight_decay, amsgrad, maximize, False)


def adamw(
    lr: float | Callable[[Any], Any] = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
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
    return _optimizer(lr, betas, eps, weight_decay, amsgrad, maximize, True)


def _optimizer(lr: Any, betas: Any, eps: Any, weight_decay: Any, amsgrad: bool, maximize: bool, decoupled: bool) -> Optimizer:
    names = {f"beta parameter at index {i}": b for i, b in enumerate(betas)}
    check_numbers({"learning rate": lr, "epsilon value": eps, "weight_decay value": weight_decay, **names})
    for name, b in names.items():
        if not isinstance(b, Tracer) and b >= 1:
            raise ArgumentError(f"Invalid {name}: {b}", fix="it must be less than 1")
    beta1, beta2 = betas
    rule = _Adam(lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled)
    return Optimizer(rule.init, rule.update)


@dataclass(frozen=True, slots=True)
class _Adam:
    lr: Any
    beta1: Any
    beta2: Any
    eps: Any
    weight_decay: Any
    amsgrad: bool
    maximize: bool
    decoupled: bool

    def init(self, params: PyTree) -> AdamState:
        """The state before the first step: zeros."""
        steps, zeros = zeros_like(params)
        return AdamState(steps, zeros, tree.map(np.copy, zeros), tree.map(np.copy, zeros) if self.amsgrad else None)

    def update(self, grads: PyTree, state: AdamState, params: PyTree = None) -> tuple[PyTree, AdamState]:
        """The step to add to params, and the state after it."""
        if not isinstance(state, AdamState):
            raise TreeError("the state of adam is an AdamState", got={"state": type(state).__name__}, fix="start with opt.init(params)")
        if (state.max_exp_avg_sq is None) == self.amsgrad:
            raise TreeError(
                "max_exp_avg_sq belongs to amsgrad",
                got={"amsgrad": self.amsgrad, "state.max_exp_avg_sq": "None" if state.max_exp_avg_sq is None else "a tree"},
                fix="start with opt.init(params)",
            )
        if params is None and not is_zero(self.weight_decay):
            raise ArgumentError("adam with weight_decay reads the parameters", fix="call opt.update(grads, state, params)")
        return update_leaves(self.update_leaf, grads, state, params)

    def update_leaf(self, g: Array, p: Array, step: Any, avg: Array, avg_sq: Array, top: Array | None = None) -> tuple[Array, ...]:
        """Update, new step and new running means of one leaf."""
        dtype = aval_of(p).dtype
        counting = isinstance(step, Tracer)  # the step itself is traced (vmap, recording)
        numbers = self.numbers(step if counting else np.int64(step), dtype)
        arrays = (g, p, avg, avg_sq) if top is None else (g, p, avg, avg_sq, top)
        kernel = dtype in KERNEL_DTYPES and not counting and not any(isinstance(x, Tracer) for x in (*arrays, *numbers))
        u, *new = (self._in_one_pass if kernel else self._in_numpy)(*numbers, *arrays)
        return u, step + 1 if counting else np.array(step + 1, np.int64), *new

    def numbers(self, step: Any, dtype: np.dtype[Any]) -> list[Any]:
        """What is the same for all entries of a leaf: see the kernel."""
        lr = self.lr(step) if callable(self.lr) else self.lr
        with np.errstate(all="ignore"):
            step_size = lr / (1 - np.power(self.beta1, step + 1))
            root = np.sqrt(1 - np.power(self.beta2, step + 1))
        decay = lr * self.weight_decay if self.decoupled else self.weight_decay
        share = cast(1 - self.beta1, dtype)
        others = [cast(x, dtype) for x in (self.beta2, 1 - self.beta2, self.eps, decay)]
        return [cast(step_size, dtype), cast(root, dtype), share, 1 - share, *others]

    @property
    def near(self) -> bool:
        """Which of its two forms the running mean takes, so that it hits either end exactly, as in PyTorch."""
        return isinstance(self.beta1, Tracer) or bool(1 - self.beta1 < 0.5)

    def _in_one_pass(self, *operands: Any) -> list[Array]:
        numbers, arrays = operands[:8], operands[8:]
        shape, dtype = np.shape(arrays[0]), numbers[0].dtype
        flat = [np.ascontiguousarray(x, dtype).reshape(-1) for x in arrays]
        out = [np.empty(flat[0].size, dtype) for _ in flat[1:]]  # an update, and the new running means
        top, new_top = (flat[4], out[3]) if self.amsgrad else (flat[3], out[2])
        kernels.adam(*flat[:4], top, *numbers, self.decoupled, self.maximize, self.amsgrad, self.near, *out[:3], new_top)
        return [x.reshape(shape) for x in out]

    def _in_numpy(
        self, step_size: Any, root: Any, share: Any, keep: Any, beta2: Any, share2: Any, eps: Any, decay: Any,
        g: Array, p: Array, avg: Array, avg_sq: Array, top: Array | None = None,
    ) -> list[Array]:  # fmt: skip
        """The same arithmetic in the same order, for tracers and for other dtypes."""
        with np.errstate(all="ignore"):
            d = -g if self.maximize else g
            if not self.decoupled and not is_zero(self.weight_decay):
                d = d + decay * p
            m = avg + share * (d - avg) if self.near else d - (d - avg) * keep
            v = avg_sq * beta2 + share2 * d * d
            largest = v if top is None else np.maximum(top, v)
            u = -step_size * m / (np.sqrt(largest) / root + eps)
            if self.decoupled and not is_zero(self.weight_decay):
                u = u - decay * p
        return [as_array(x) for x in ((u, m, v) if top is None else (u, m, v, largest))]
