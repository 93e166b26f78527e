"""Averages of parameters, which are what to evaluate: `ema`, `swa`, `lookahead`, and where states carry them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of
from fnad.errors import ArgumentError
from fnad.optim.base import Optimizer, apply_updates, as_array, cast, check_numbers, check_optimizers, check_state, own
from fnad.optim.schedule_free import ScheduleFreeState
from fnad.optim.sgd import ASGDState
from fnad.optim.wrapper import Wrapper, after, copied, counter, either, map_given, need
from fnad.typing import Array, PyTree


class AveragedState(NamedTuple):
    """State of `ema` and `swa`."""

    step: Any
    """Updates so far: int64, shape ()."""
    n_averaged: Any
    """How many parameters are in the average: int64, shape ()."""
    average: PyTree
    """The average: a pytree like params; the first parameters before it begins."""
    inner: Any
    """The state of the optimizer."""


def ema(optimizer: Optimizer, decay: float | Callable[[Any], Any] = 0.999) -> Optimizer:
    r"""Keeps an exponential moving average of the parameters; the training itself does not change.

        average = new params at first, then decay average + (1 - decay) new params

    Args:
        optimizer: What makes the steps.
        decay: How much of the average stays; or a function of the step, counted from 0.

    Returns:
        `Optimizer(init, update)` with the state `AveragedState(step, n_averaged, average, inner)`; `averaged_params(state, params)` gives
        the average. `update` needs params.

    Raises:
        ArgumentError: decay is not in [0, 1]; (by update) params are missing.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.ema(fnad.optim.sgd(lr=1.0), decay=0.5)
        >>> params = np.array([0.0])
        >>> state = opt.init(params)
        >>> for _ in range(2):
        ...     updates, state = opt.update(np.array([-1.0]), state, params)
        ...     params = fnad.optim.apply_updates(params, updates)
        >>> params, fnad.optim.averaged_params(state, params)
        (array([2.]), array([1.5]))

    Reference: `torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`, of PyTorch 2.13.
    """
    if not callable(decay):
        check_numbers({"decay value": decay})
        if bool(np.any(decay > 1)):
            raise ArgumentError(f"Invalid decay value: {decay}", fix="it must lie in [0, 1]")
    check_optimizers("ema", optimizer)
    return _Averaged(optimizer, decay, 0, 1).pair()


def swa(optimizer: Optimizer, start: int = 0, every: int = 1) -> Optimizer:
    r"""Keeps the plain average of the parameters after every `every`-th step, after the first `start` steps.

        average = average + (new params - average) / (n_averaged + 1)

    Args:
        optimizer: What makes the steps; late in training with a learning rate that stays high (`schedules.swa_lr`).
        start: How many steps are left out.
        every: The distance of the parameters that are averaged.

    Returns:
        See `ema`.

    Raises:
        ArgumentError: start is negative, or every is not positive; (by update) params are missing.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.swa(fnad.optim.sgd(lr=1.0), start=1)
        >>> params = np.array([0.0])
        >>> state = opt.init(params)
        >>> for _ in range(3):
        ...     updates, state = opt.update(np.array([-1.0]), state, params)
        ...     params = fnad.optim.apply_updates(params, updates)
        >>> params, fnad.optim.averaged_params(state, params)
        (array([3.]), array([2.5]))

    Reference: Izmailov et al., Averaging weights leads to wider optima and better generalization, UAI 2018;
    `torch.optim.swa_utils.AveragedModel` of PyTorch 2.13.
    """
    if start < 0 or every < 1:
        raise ArgumentError("swa begins at a step and averages at a distance", got={"start": start, "every": every})
    check_optimizers("swa", optimizer)
    return _Averaged(optimizer, None, start, every).pair()


@dataclass(frozen=True)
class _Averaged(Wrapper):
    inner: Optimizer
    decay: Any
    start: int
    every: int

    def init(self, params: PyTree) -> AveragedState:
        return AveragedState(counter(), counter(), copied(params), self.inner.init(params))

    def update(self, grads: PyTree, state: AveragedState, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        need(params, "an average of parameters")
        check_state("swa" if self.decay is None else "ema", state, AveragedState)
        updates, inner = self.inner.update(grads, state.inner, params, **extra)
        step, n = after(state.step), state.n_averaged
        decay = self.decay(state.step) if callable(self.decay) else self.decay
        share = 1 / (n + 1) if decay is None else np.where(n == 0, 1.0, 1 - decay)

        def mean(old: Array, p: Array) -> Array:
            moved = old + cast(share, aval_of(old).dtype) * (p - old)
            return as_array(np.where(n == 0, p, moved))

        def count() -> Any:
            return after(n), tree.map(mean, state.average, apply_updates(params, updates))

        def keep() -> Any:
            return own(as_array(n)), tree.map(own, state.average)

        due = (step > self.start) & ((step - self.start) % self.every == 0)
        n, average = either(due, count, keep)
        return updates, AveragedState(step, n, average, inner)


class LookaheadState(NamedTuple):
    """State of `lookahead`."""

    step: Any
    """Updates so far: int64, shape ()."""
    slow: PyTree
    """The slow parameters: a pytree like params."""
    inner: Any
    """The state of the optimizer."""


def lookahead(optimizer: Optimizer, sync_period: int = 6, slow_step_size: float = 0.5) -> Optimizer:
    r"""Every `sync_period` steps the parameters go back to a point between where they are and where they were.

        slow   = slow + slow_step_size (new params - slow),    new params = slow

    Args:
        optimizer: What makes the steps between.
        sync_period: How many steps to look ahead.
        slow_step_size: How far to follow; in [0, 1].

    Returns:
        `Optimizer(init, update)` with the state `LookaheadState(step, slow, inner)`; `averaged_params(state, params)` gives the slow
        parameters. `update` needs params.

    Raises:
        ArgumentError: an option is outside its range; (by update) params are missing.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.lookahead(fnad.optim.sgd(lr=1.0), sync_period=2)
        >>> params = np.array([0.0])
        >>> state = opt.init(params)
        >>> for _ in range(2):
        ...     updates, state = opt.update(np.array([-1.0]), state, params)
        ...     params = fnad.optim.apply_updates(params, updates)
        ...     print(params)
        [1.]
        [1.]

    Reference: Zhang et al., Lookahead optimizer: k steps forward, 1 step back, NeurIPS 2019.
    """
    if sync_period < 1 or not 0 <= slow_step_size <= 1:
        raise ArgumentError(
            "lookahead goes some steps ahead and back by a share", got={"sync_period": sync_period, "slow_step_size": slow_step_size}
        )
    check_optimizers("lookahead", optimizer)
    return _Lookahead(optimizer, sync_period, slow_step_size).pair()


@dataclass(frozen=True)
class _Lookahead(Wrapper):
    inner: Optimizer
    period: int
    share: float

    def init(self, params: PyTree) -> LookaheadState:
        return LookaheadState(counter(), copied(params), self.inner.init(params))

    def update(self, grads: PyTree, state: LookaheadState, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        need(params, "lookahead")
        check_state("lookahead", state, LookaheadState)
        updates, inner = self.inner.update(grads, state.inner, params, **extra)
        step = after(state.step)

        def synchronise() -> Any:
            new = apply_updates(params, updates)
            slow = tree.map(lambda s, p: as_array(s + cast(self.share, aval_of(s).dtype) * (p - s)), state.slow, new)
            moves = map_given(lambda u, s, p: as_array(s - p), updates, slow, params, names=("state.slow", "params"))
            return moves, slow

        moves, slow = either(step % self.period == 0, synchronise, lambda: (updates, tree.map(own, state.slow)))
        return moves, LookaheadState(step, slow, inner)


def averaged_params(state: Any, params: PyTree) -> PyTree:
    """The parameters to evaluate and to keep, where they are not those that are trained.

    Args:
        state: The state of `ema`, `swa`, `lookahead`, `asgd` or a schedule-free optimizer, or one that contains such a state.
        params: The parameters after the update that gave the state.

    Returns:
        A pytree like params.

    Raises:
        ArgumentError: there is no average in the state.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.schedule_free_sgd(lr=0.1)
        >>> params = np.array([1.0])
        >>> fnad.optim.averaged_params(opt.init(params), params)
        array([1.])

    Reference: `AveragedModel.module` of `torch.optim.swa_utils`; `optax.contrib.schedule_free_eval_params`.
    """
    found = _find(state)
    if isinstance(found, AveragedState):
        return tree.map(own, found.average)
    if isinstance(found, LookaheadState):
        return tree.map(own, found.slow)
    if isinstance(found, ASGDState):
        return tree.map(own, found.ax)
    if isinstance(found, ScheduleFreeState):
        return tree.map(_average, params, found.z, found.beta1)
    raise ArgumentError("this state carries no average", got={"state": type(state).__name__}, fix="use the params themselves")


def _average(y: Array, z: Array, beta: Any) -> Array:
    b = cast(beta, aval_of(y).dtype)
    return as_array((y - (1 - b) * z) / b)


def _find(state: Any) -> Any:
    """The outermost state with an average."""
    if isinstance(state, AveragedState | LookaheadState | ASGDState | ScheduleFreeState):
        return state
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, tuple | list) else ()
    return next((found for found in map(_find, parts) if found is not None), None)
