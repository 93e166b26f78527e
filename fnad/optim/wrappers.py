"""What may be put around an optimizer: accumulation of gradients, caution, hyperparameters in the state, sharpness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of
from fnad.errors import ArgumentError
from fnad.optim.base import (
    Optimizer,
    apply_updates,
    as_array,
    cast,
    check_numbers,
    check_optimizers,
    check_state,
    is_none,
    is_traced,
    is_zero,
    number,
    own,
)
from fnad.optim.combine import global_norm
from fnad.optim.wrapper import Wrapper, after, counter, either, map_given, need, still
from fnad.typing import Array, PyTree

# -- accumulation ----------------------------------------------------------------------------------------------------


class AccumulateState(NamedTuple):
    """State of `accumulate`."""

    mini_step: Any
    """Gradients since the last step: int64, shape ()."""
    weight: Any
    """The sum of their weights: float64, shape ()."""
    acc_grads: PyTree
    """Their weighted sum: a pytree like params."""
    inner: Any
    """The state of the optimizer."""


def accumulate(optimizer: Optimizer, every: int) -> Optimizer:
    r"""Gradient accumulation: every `every`-th call makes one step, with the mean of the gradients since the last one.

    So a batch that does not fit into memory is given in parts. `update(grads, state, params, weight=n)` gives a part the weight
    `n`; with the number of examples of each part (if the loss is a mean over them), any split of a batch makes the step that the
    whole batch makes:

        g = sum of n_i g_i / sum of n_i

    Args:
        optimizer: What makes the steps.
        every: How many gradients make one.

    Returns:
        `Optimizer(init, update)` with the state `AccumulateState(mini_step, weight, acc_grads, inner)`. The updates of the calls
        between are zeros. A leaf whose gradient is None in the last call is skipped.

    Raises:
        ArgumentError: every is no positive integer; (by update) params are missing, or an argument has another name.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.accumulate(fnad.optim.sgd(lr=1.0), every=2)
        >>> p = np.array([0.0])
        >>> state = opt.init(p)
        >>> for g, n in ((np.array([1.0]), 3), (np.array([5.0]), 1)):
        ...     updates, state = opt.update(g, state, p, weight=n)
        ...     print(updates)
        [0.]
        [-2.]

    Reference: several calls of `backward` before `step` in PyTorch; `optax.MultiSteps` (DeepMind, 2021), with equal weights.
    """
    if not isinstance(every, int) or every < 1:
        raise ArgumentError(f"Invalid every value: {every}", fix="it is a positive integer")
    check_optimizers("accumulate", optimizer)
    return _Accumulate(optimizer, every).pair()


@dataclass(frozen=True)
class _Accumulate(Wrapper):
    inner: Optimizer
    every: int

    def init(self, params: PyTree) -> AccumulateState:
        return AccumulateState(counter(), np.zeros(()), still(params), self.inner.init(params))

    def update(self, grads: PyTree, state: AccumulateState, params: PyTree = None, weight: Any = 1.0, **extra: Any) -> tuple[PyTree, Any]:
        need(params, "accumulate")
        check_state("accumulate", state, AccumulateState)
        if not extra.keys() <= {"closure", "grad_fn"}:  # a weight that is misspelt would count as 1
            raise ArgumentError("accumulate takes a weight, and what optimizers ask for by name", got={"names": sorted(extra)})
        total = as_array(state.weight + np.float64(1.0) * weight)
        added = map_given(lambda g, a: as_array(a + cast(weight, aval_of(g).dtype) * g), grads, state.acc_grads, names=("state.acc_grads",))
        leaves, spec = tree.flatten(added, is_none)
        kept = tree.flatten_as(spec, state.acc_grads, "state.acc_grads", "grads", is_none)
        sums = tree.unflatten(spec, [own(k) if a is None else a for a, k in zip(leaves, kept, strict=True)])

        def step() -> Any:
            mean = map_given(lambda a: as_array(a / cast(total, aval_of(a).dtype)), added)
            updates, inner = self.inner.update(mean, state.inner, params, **extra)
            return updates, AccumulateState(counter(), np.zeros(()), still(params), inner)

        def wait() -> Any:
            updates = map_given(lambda g: np.zeros(aval_of(g).shape, aval_of(g).dtype), grads)
            return updates, AccumulateState(after(state.mini_step), total, sums, tree.map(own, state.inner))

        return either(state.mini_step + 1 >= self.every, step, wait)


# -- caution ---------------------------------------------------------------------------------------------------------


class SkipNotFiniteState(NamedTuple):
    """State of `skip_not_finite`."""

    notfinite_count: Any
    """Steps skipped since the last one that was made: int64, shape ()."""
    total_notfinite: Any
    """Steps skipped so far: int64, shape ()."""
    inner: Any
    """The state of the optimizer."""


def skip_not_finite(optimizer: Optimizer) -> Optimizer:
    """Makes no step where a gradient has an entry that is nan or infinite: updates are zeros, and the state stays.

    Args:
        optimizer: What makes the steps.

    Returns:
        `Optimizer(init, update)` with the state `SkipNotFiniteState(notfinite_count, total_notfinite, inner)`.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.skip_not_finite(fnad.optim.sgd(lr=0.1))
        >>> p = np.array([1.0, 2.0])
        >>> updates, state = opt.update(np.array([1.0, np.nan]), opt.init(p), p)
        >>> updates, state.total_notfinite
        (array([0., 0.]), array(1))

    Reference: `optax.apply_if_finite` (DeepMind, 2020), which gives up after some time; the skipped steps of `torch.amp.GradScaler`.
    """
    check_optimizers("skip_not_finite", optimizer)
    return _SkipNotFinite(optimizer).pair()


@dataclass(frozen=True)
class _SkipNotFinite(Wrapper):
    inner: Optimizer

    def init(self, params: PyTree) -> SkipNotFiniteState:
        return SkipNotFiniteState(counter(), counter(), self.inner.init(params))

    def update(self, grads: PyTree, state: SkipNotFiniteState, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        check_state("skip_not_finite", state, SkipNotFiniteState)
        fine: Any = True
        for g in tree.leaves(grads):
            fine = fine & np.all(np.isfinite(g))

        def step() -> Any:
            updates, inner = self.inner.update(grads, state.inner, params, **extra)
            return updates, SkipNotFiniteState(counter(), own(as_array(state.total_notfinite)), inner)

        def skip() -> Any:
            updates = map_given(lambda g: np.zeros(aval_of(g).shape, aval_of(g).dtype), grads)
            return updates, SkipNotFiniteState(after(state.notfinite_count), after(state.total_notfinite), tree.map(own, state.inner))

        return either(fine, step, skip)


# -- hyperparameters in the state ------------------------------------------------------------------------------------


class InjectState(NamedTuple):
    """State of `inject_hyperparams`."""

    step: Any
    """Updates so far: int64, shape ()."""
    hyperparams: dict[str, Any]
    """name -> float64 array of shape (), or a tuple of them: what the next update takes, unless it is a schedule."""
    inner: Any
    """The state of the optimizer."""


def inject_hyperparams(factory: Callable[..., Optimizer], static_args: tuple[str, ...] = ()) -> Callable[..., Optimizer]:
    """Puts the numbers that an optimizer is made with into its state, where they can be read and replaced.

    A compiled step then takes another learning rate without being compiled anew.

    Args:
        factory: A function that returns an `Optimizer`, such as `fnad.optim.adam`.
        static_args: Names of numbers that are not to be put there (counts, such as `ns_steps`).

    Returns:
        A function of keyword arguments as `factory` takes them, which returns `Optimizer(init, update)` with the state
        `InjectState(step, hyperparams, inner)`. Schedules are evaluated at each step, and their value is written there. A number that is 0
        switches a part of an optimizer off; it is not put there.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.inject_hyperparams(fnad.optim.sgd)(lr=0.1, momentum=0.9)
        >>> params = np.array([1.0])
        >>> state = opt.init(params)
        >>> state.hyperparams["lr"] = np.array(0.5)
        >>> opt.update(np.array([1.0]), state, params)[0]
        array([-0.5])

    Reference: the wrapper of optax (DeepMind, 2020); `param_groups[0]["lr"] = ...` in PyTorch.
    """

    def make(**given: Any) -> Optimizer:
        return _Inject(factory, given, static_args).pair()

    return make


@dataclass(frozen=True)
class _Inject(Wrapper):
    factory: Callable[..., Optimizer]
    given: dict[str, Any]
    static: tuple[str, ...]

    def init(self, params: PyTree) -> InjectState:
        found = self._at(counter(), {})
        return InjectState(counter(), found, self._make(found).init(params))

    def update(self, grads: PyTree, state: InjectState, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        check_state("inject_hyperparams", state, InjectState)
        found = self._at(state.step, state.hyperparams)
        updates, inner = self._make(found).update(grads, state.inner, params, **extra)
        return updates, InjectState(after(state.step), tree.map(own, found), inner)

    def _moving(self) -> dict[str, Any]:
        return {name: x for name, x in self.given.items() if name not in self.static and _is_number(x)}

    def _at(self, step: Any, old: dict[str, Any]) -> dict[str, Any]:
        """The numbers of one step: those of schedules, and the old ones of the others."""

        def value(x: Any, before: Any) -> Any:
            if isinstance(x, tuple):
                return tuple(value(a, b) for a, b in zip(x, (None,) * len(x) if before is None else before, strict=True))
            return number(x(step) if callable(x) else x if before is None else before)

        return {name: value(x, old.get(name)) for name, x in self._moving().items()}

    def _make(self, found: dict[str, Any]) -> Optimizer:
        return self.factory(**{**self.given, **found})


def _is_number(x: Any) -> bool:
    if isinstance(x, tuple):
        return len(x) > 0 and all(map(_is_number, x))
    if callable(x) or is_traced(x):
        return True
    return not isinstance(x, bool | str) and x is not None and np.ndim(x) == 0 and not is_zero(x)


# -- sharpness -------------------------------------------------------------------------------------------------------


def sam(optimizer: Optimizer, rho: float = 0.05, adaptive: bool = False) -> Optimizer:
    r"""Sharpness-aware minimisation: the gradient is taken where the loss nearby is worst.

    `update(grads, state, params, grad_fn=f)` with `f(params) -> grads` computes

        e       = rho g / |g|,        adaptive: rho p p g / |p g|        (|.| over all leaves)
        updates = optimizer.update(f(params + e), state, params)

    Args:
        optimizer: What makes the step.
        rho: How far away "nearby" is.
        adaptive: Whether distances are in proportion to the parameters.

    Returns:
        `Optimizer(init, update)`; its state is that of `optimizer`.

    Raises:
        ArgumentError: rho is negative; (by update) params or grad_fn are missing.

    Example:
        >>> import numpy as np, fnad
        >>> gradient = fnad.grad(lambda p: np.sum(p**2))
        >>> opt = fnad.optim.sam(fnad.optim.sgd(lr=0.1), rho=0.5)
        >>> p = np.array([1.0, 0.0])
        >>> opt.update(gradient(p), opt.init(p), p, grad_fn=gradient)[0].round(4)
        array([-0.3, -0. ])

    Reference: Foret et al., Sharpness-aware minimization for efficiently improving generalization, ICLR 2021; Kwon et al., ASAM, ICML
    2021 (adaptive).
    """
    check_numbers({"rho value": rho})
    check_optimizers("sam", optimizer)
    return _SAM(optimizer, rho, adaptive).pair()


@dataclass(frozen=True)
class _SAM(Wrapper):
    inner: Optimizer
    rho: Any
    adaptive: bool

    def init(self, params: PyTree) -> Any:
        return self.inner.init(params)

    def update(self, grads: PyTree, state: Any, params: PyTree = None, grad_fn: Any = None, **extra: Any) -> tuple[PyTree, Any]:
        need(params, "sam")
        if grad_fn is None:
            raise ArgumentError("sam takes a second gradient", fix="call opt.update(grads, state, params, grad_fn=fnad.grad(loss))")
        scaled = map_given(lambda g, p: g * p, grads, params, names=("params",)) if self.adaptive else grads
        norm = global_norm(scaled)
        factor = self.rho / np.where(norm > 0, norm, 1)

        def move(g: Array, p: Array) -> Array:
            return cast(factor, aval_of(g).dtype) * g * (p * p if self.adaptive else 1)

        worst = apply_updates(params, map_given(move, grads, params, names=("params",)))
        return self.inner.update(grad_fn(worst), state, params, **extra)
