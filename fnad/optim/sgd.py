"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fnad.core.aval import aval_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, TreeError
from fnad.kernels import update as kernels
from fnad.optim.base import KERNEL_DTYPES, Optimizer, as_array, cast, check_numbers, is_zero, own, update_leaves, zeros_like
from fnad.typing import Array, PyTree


class SGDState(NamedTuple):
    """State of `sgd`; both fields are pytrees like params."""

    step: PyTree
    """Updates so far of each leaf: int64, shape ()."""
    momentum_buffer: PyTree
    """The buffer `b` of each leaf: its shape and dtype, zeros before the first update (and while momentum is 0)."""


def sgd(
    lr: float | Callable[[Any], Any] = 1e-3,
    momentum: float = 0,
    dampening: float = 0,
    weight_decay: float = 0,
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
        momentum: Factor of the old buffer.
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

    Arrays of float32 and float64 are updated in one pass over memory. Everything may be traced, the hyperparameters
    too: `fnad.grad` differentiates through an update, with the same values.

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
    rule = _SGD(lr, momentum, 1 - dampening, weight_decay, nesterov, maximize)
    return Optimizer(rule.init, rule.update)


@dataclass(frozen=True, slots=True)
class _SGD:
    lr: Any
    momentum: Any
    keep: Any
    weight_decay: Any
    nesterov: bool
    maximize: bool

    def init(self, params: PyTree) -> SGDState:
        """The state before the first step: zeros."""
        return SGDState(*zeros_like(params))

    def update(self, grads: PyTree, state: SGDState, params: PyTree = None) -> tuple[PyTree, SGDState]:
        """The step to add to params, and the state after it."""
        if not isinstance(state, SGDState):
            raise TreeError("the state of sgd is an SGDState", got={"state": type(state).__name__}, fix="start with opt.init(params)")
        if params is None and not is_zero(self.weight_decay):
            raise ArgumentError("sgd with weight_decay reads the parameters", fix="call opt.update(grads, state, params)")
        return update_leaves(self.update_leaf, grads, state, params)

    def update_leaf(self, g: Array, p: Array, step: Any, buffer: Array) -> tuple[Array, Array, Array]:
        """Update, new step and new buffer of one leaf."""
        dtype = aval_of(p).dtype
        counting = isinstance(step, Tracer)  # the step itself is traced (vmap, recording)
        lr = self.lr(step if counting else np.int64(step)) if callable(self.lr) else self.lr
        numbers = [cast(x, dtype) for x in (lr, self.momentum, self.keep, self.weight_decay)]
        kernel = dtype in KERNEL_DTYPES and not counting and not any(isinstance(x, Tracer) for x in (g, p, buffer, *numbers))
        u, b = (self._in_one_pass if kernel else self._in_numpy)(g, p, buffer, step == 0, *numbers)
        return u, step + 1 if counting else np.array(step + 1, np.int64), b

    def _in_one_pass(
        self, g: Array, p: Array, buffer: Array, first: Any, lr: Any, momentum: Any, keep: Any, weight_decay: Any
    ) -> tuple[Array, Array]:
        shape, dtype = np.shape(g), lr.dtype
        g, p, old = (np.ascontiguousarray(x, dtype).reshape(-1) for x in (g, p, buffer))
        u = np.empty(g.size, dtype)
        if momentum == 0:
            kernels.sgd(g, p, lr, weight_decay, self.maximize, u)
            return u.reshape(shape), np.array(buffer)
        b = np.empty(g.size, dtype)
        kernels.sgd_momentum(g, p, old, lr, momentum, keep, weight_decay, self.nesterov, self.maximize, bool(first), u, b)
        return u.reshape(shape), b.reshape(shape)

    def _in_numpy(
        self, g: Array, p: Array, buffer: Array, first: Any, lr: Any, momentum: Any, keep: Any, weight_decay: Any
    ) -> tuple[Array, Array]:
        """The same arithmetic in the same order, for tracers and for other dtypes."""
        with np.errstate(all="ignore"):
            d = -g if self.maximize else g
            if not is_zero(weight_decay):
                d = d + weight_decay * p
            if is_zero(momentum):
                return as_array(-lr * d), own(buffer)
            b = np.where(first, d, momentum * buffer + keep * d)
            return as_array(-lr * (d + momentum * b if self.nesterov else b)), b
