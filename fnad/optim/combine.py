"""Optimizers made of others: one after the other (`chain`), by leaf (`masked`, `partition`); and what stands before one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of
from fnad.errors import ArgumentError, TreeError
from fnad.optim.base import Optimizer, as_array, cast, check_numbers, check_optimizers, is_none, own
from fnad.optim.wrapper import Wrapper, map_given
from fnad.typing import Array, PyTree

# -- one after the other --------------------------------------------------------------------------------------------


def chain(*optimizers: Optimizer) -> Optimizer:
    """Optimizers one after the other: the updates of one are the gradients of the next.

    Put what changes gradients first (`clip_by_global_norm`, `add_decayed_weights`), the optimizer last.

    Args:
        *optimizers: `Optimizer`s.

    Returns:
        `Optimizer(init, update)`, whose state is the tuple of their states.

    Raises:
        TreeError: (by update) the state is not the tuple of as many states.

    Example:
        >>> import numpy as np, fnad
        >>> opt = fnad.optim.chain(fnad.optim.clip_by_global_norm(1.0), fnad.optim.sgd(lr=0.1))
        >>> p = np.array([0.0, 0.0])
        >>> opt.update(np.array([3.0, 4.0]), opt.init(p), p)[0].round(4)
        array([-0.06, -0.08])

    Reference: the combinator of optax (DeepMind, 2020).
    """
    check_optimizers("chain", *optimizers)
    return _Chain(optimizers).pair()


@dataclass(frozen=True)
class _Chain(Wrapper):
    parts: tuple[Optimizer, ...]

    def init(self, params: PyTree) -> Any:
        return tuple(part.init(params) for part in self.parts)

    def update(self, grads: PyTree, state: Any, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        if not isinstance(state, tuple) or len(state) != len(self.parts):
            raise TreeError(
                "the state of a chain is the tuple of the states of its parts",
                got={"parts": len(self.parts), "state": type(state).__name__},
            )
        new = []
        for part, old in zip(self.parts, state, strict=True):
            grads, after = part.update(grads, old, params, **extra)
            new.append(after)
        return grads, tuple(new)


# -- by leaf ---------------------------------------------------------------------------------------------------------


def masked(optimizer: Optimizer, mask: PyTree | Callable[[PyTree], PyTree]) -> Optimizer:
    """An optimizer for some leaves; the gradients of the others pass unchanged, so it is a part of a `chain`.

    Args:
        optimizer: What to do with the leaves where the mask is True.
        mask: A pytree of bools like params, or a function of params that returns one.

    Returns:
        `Optimizer(init, update)`; its state is that of `optimizer`, with None for the other leaves.

    Raises:
        TreeError: the mask has another structure than params.

    Example:
        >>> import numpy as np, fnad
        >>> params = {"w": np.ones(2), "b": np.ones(1)}
        >>> decay = fnad.optim.masked(fnad.optim.add_decayed_weights(0.1), {"w": True, "b": False})
        >>> opt = fnad.optim.chain(decay, fnad.optim.sgd(lr=1.0))
        >>> opt.update({"w": np.zeros(2), "b": np.zeros(1)}, opt.init(params), params)[0]
        {'w': array([-0.1, -0.1]), 'b': array([-0.])}

    Reference: the combinator of optax (DeepMind, 2020).
    """
    check_optimizers("masked", optimizer)
    return _Masked(optimizer, mask).pair()


@dataclass(frozen=True)
class _Masked(Wrapper):
    inner: Optimizer
    mask: Any

    def init(self, params: PyTree) -> Any:
        return self.inner.init(self._only(params, params))

    def update(self, grads: PyTree, state: Any, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        like = grads if params is None else params
        found, state = self.inner.update(self._only(grads, like), state, None if params is None else self._only(params, like), **extra)
        leaves, spec = tree.flatten(grads, is_none)
        new = tree.flatten_as(spec, found, "updates", "grads", is_none)
        return tree.unflatten(spec, [n if m else own(g) for g, n, m in zip(leaves, new, self._marks(like, spec), strict=True)]), state

    def _marks(self, like: PyTree, spec: tree.Spec) -> list[Any]:
        return tree.flatten_as(spec, self.mask(like) if callable(self.mask) else self.mask, "mask", "params", is_none)

    def _only(self, given: PyTree, like: PyTree) -> PyTree:
        leaves, spec = tree.flatten(given, is_none)
        return tree.unflatten(spec, [x if m else None for x, m in zip(leaves, self._marks(like, spec), strict=True)])


def partition(optimizers: Mapping[Hashable, Optimizer], labels: PyTree | Callable[[PyTree], PyTree]) -> Optimizer:
    """Each leaf has the optimizer that its label names: PyTorch's parameter groups, as data.

    Args:
        optimizers: label -> `Optimizer`.
        labels: A pytree of labels like params, or a function of params that returns one. A label at an inner node is that of all
            leaves below it.

    Returns:
        `Optimizer(init, update)`; its state is a dict label -> state, in which leaves of other labels are None.

    Raises:
        TreeError: labels have another structure than params.
        ArgumentError: a label has no optimizer.

    Example:
        >>> import numpy as np, fnad
        >>> params = {"w": np.ones(2), "b": np.ones(1)}
        >>> groups = {"decay": fnad.optim.adamw(lr=0.1, weight_decay=0.5), "plain": fnad.optim.sgd(lr=0.1)}
        >>> opt = fnad.optim.partition(groups, {"w": "decay", "b": "plain"})
        >>> opt.update({"w": np.zeros(2), "b": np.ones(1)}, opt.init(params), params)[0]
        {'w': array([-0.05, -0.05]), 'b': array([-0.1])}

    Reference: `param_groups` of PyTorch; the combinator of optax (DeepMind, 2020).
    """
    check_optimizers("partition", *optimizers.values())
    return _Partition(dict(optimizers), labels).pair()


def set_to_zero() -> Optimizer:
    """Updates of zero: for parameters that stay as they are (frozen), in `partition`.

    Returns:
        `Optimizer(init, update)` without a state. Where a gradient is nan, the update is 0 nevertheless.

    Example:
        >>> import numpy as np, fnad
        >>> params = {"base": {"w": np.ones(2), "b": np.ones(1)}, "head": np.ones(2)}
        >>> groups = {"frozen": fnad.optim.set_to_zero(), "trained": fnad.optim.sgd(lr=0.1)}
        >>> opt = fnad.optim.partition(groups, {"base": "frozen", "head": "trained"})
        >>> fnad.optim.apply_updates(params, opt.update(params, opt.init(params), params)[0])
        {'base': {'w': array([1., 1.]), 'b': array([1.])}, 'head': array([0.9, 0.9])}

    Reference: `set_to_zero` of optax (DeepMind, 2020); `requires_grad_(False)` of PyTorch.
    """
    return _Zero().pair()


@dataclass(frozen=True)
class _Zero(Wrapper):
    def init(self, params: PyTree) -> Any:
        return ()

    def update(self, grads: PyTree, state: Any, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        return map_given(lambda g: np.zeros(aval_of(g).shape, aval_of(g).dtype), grads), state


@dataclass(frozen=True)
class _Partition(Wrapper):
    parts: dict[Hashable, Optimizer]
    labels: Any

    def init(self, params: PyTree) -> Any:
        leaves, spec = tree.flatten(params, is_none)
        names = self._names(params, spec)
        return {label: part.init(_where(label, names, leaves, spec)) for label, part in self.parts.items()}

    def update(self, grads: PyTree, state: Any, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        like, what = (grads, "grads") if params is None else (params, "params")
        leaves, spec = tree.flatten(like, is_none)
        names = self._names(like, spec)
        given = tree.flatten_as(spec, grads, "grads", what, is_none)
        updates, new = [None] * len(leaves), {}
        for label, part in self.parts.items():
            members = None if params is None else _where(label, names, leaves, spec)
            found, new[label] = part.update(_where(label, names, given, spec), state[label], members, **extra)
            for i, u in enumerate(tree.flatten_as(spec, found, "updates", "grads", is_none)):
                if names[i] == label:
                    updates[i] = u
        return tree.unflatten(spec, updates), new

    def _names(self, like: PyTree, spec: tree.Spec) -> list[Any]:
        found = tree.spread_prefix(self.labels(like) if callable(self.labels) else self.labels, like, spec, "labels", "params", is_none)
        for name, path in zip(found, tree.paths(spec), strict=True):
            if name is not None and name not in self.parts:
                raise ArgumentError("every label has an optimizer", got={f"labels{path}": repr(name), "optimizers": list(self.parts)})
        return found


def _where(label: Any, names: list[Any], leaves: list[Any], spec: tree.Spec) -> PyTree:
    """The tree with None in place of the leaves of other labels."""
    return tree.unflatten(spec, [x if name == label else None for x, name in zip(leaves, names, strict=True)])


# -- before an optimizer ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stateless(Wrapper):
    f: Callable[..., PyTree]
    options: tuple[Any, ...]

    def init(self, params: PyTree) -> Any:
        return ()

    def update(self, grads: PyTree, state: Any, params: PyTree = None, **extra: Any) -> tuple[PyTree, Any]:
        return self.f(grads, params, *self.options), state


def global_norm(gradients: PyTree, norm_type: float = 2.0) -> Array:
    """The norm of all entries of a pytree, as of one vector; leaves that are None do not count.

    Args:
        gradients: A pytree of arrays.
        norm_type: Which norm: 2, another p, or `np.inf`.

    Returns:
        A scalar of the dtype of the leaves; 0.0 if there are none.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.optim.global_norm({"w": np.array([3.0]), "b": np.array([[4.0]])})
        np.float64(5.0)

    Reference: `torch.nn.utils.get_total_norm` of PyTorch 2.13.
    """
    leaves = [np.abs(x) for x in tree.leaves(gradients) if aval_of(x).size]
    if not leaves:
        return np.float64(0.0)
    if norm_type == np.inf:
        return np.max(np.stack([np.max(x) for x in leaves]))
    if norm_type == 2:
        return np.sqrt(sum(np.sum(x * x) for x in leaves))
    return sum(np.sum(x**norm_type) for x in leaves) ** (1.0 / norm_type)


def clip_by_global_norm(max_norm: float, norm_type: float = 2.0) -> Optimizer:
    """Shortens gradients whose common norm is greater than `max_norm`, all by the same factor.

    The factor is `min(1, max_norm / (norm + 1e-6))`. It stands before an optimizer, in a `chain`.

    Args:
        max_norm: The greatest norm.
        norm_type: Which norm: 2, another p, or `np.inf`.

    Returns:
        `Optimizer(init, update)` without state.

    Raises:
        ArgumentError: max_norm is negative.

    Example:
        >>> import numpy as np, fnad
        >>> clip = fnad.optim.clip_by_global_norm(1.0)
        >>> clip.update({"w": np.array([3.0]), "b": np.array([4.0])}, ())[0]["b"].round(4)
        array([0.8])

    Reference: Pascanu et al., On the difficulty of training recurrent neural networks, ICML 2013;
    `torch.nn.utils.clip_grad_norm_` of PyTorch 2.13.
    """
    check_numbers({"max_norm value": max_norm})
    return _Stateless(_clip_norm, (max_norm, norm_type)).pair()


def _clip_norm(grads: PyTree, params: PyTree, max_norm: Any, norm_type: float) -> PyTree:
    factor = np.minimum(1, max_norm / (global_norm(grads, norm_type) + 1e-6))
    return map_given(lambda g: as_array(g * cast(factor, aval_of(g).dtype)), grads)


def clip_by_value(clip_value: float) -> Optimizer:
    """Keeps every entry of the gradients within `[-clip_value, clip_value]`. It stands before an optimizer, in a `chain`.

    Args:
        clip_value: The bound.

    Returns:
        `Optimizer(init, update)` without state.

    Raises:
        ArgumentError: clip_value is negative.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.optim.clip_by_value(1.0).update(np.array([3.0, -0.5]), ())[0]
        array([ 1. , -0.5])

    Reference: `torch.nn.utils.clip_grad_value_` of PyTorch 2.13.
    """
    check_numbers({"clip_value value": clip_value})
    return _Stateless(_clip_value, (clip_value,)).pair()


def _clip_value(grads: PyTree, params: PyTree, bound: Any) -> PyTree:
    def clip(g: Array) -> Array:
        b = cast(bound, aval_of(g).dtype)
        return as_array(np.minimum(np.maximum(g, -b), b))

    return map_given(clip, grads)


def add_decayed_weights(weight_decay: float) -> Optimizer:
    """Adds `weight_decay * params` to the gradients. Before an optimizer, in a `chain`, it is L2 regularisation.

    With `masked` it decays some leaves only. For a decay that momentum and scaling do not see, use the optimizer's own (`adamw`).

    Args:
        weight_decay: The factor.

    Returns:
        `Optimizer(init, update)` without state; `update` needs params.

    Raises:
        ArgumentError: weight_decay is negative; (by update) params are missing.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.optim.add_decayed_weights(0.1).update(np.array([1.0]), (), np.array([2.0]))[0]
        array([1.2])

    Reference: `weight_decay` of `torch.optim.SGD`; the transformation of optax (DeepMind, 2020).
    """
    check_numbers({"weight_decay value": weight_decay})
    return _Stateless(_decay, (weight_decay,)).pair()


def _decay(grads: PyTree, params: PyTree, weight_decay: Any) -> PyTree:
    if params is None:
        raise ArgumentError("add_decayed_weights reads the parameters", fix="call opt.update(grads, state, params)")
    return map_given(lambda g, p: as_array(g + cast(weight_decay, aval_of(g).dtype) * p), grads, params, names=("params",))
