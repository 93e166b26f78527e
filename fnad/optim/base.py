"""What all optimizers share: the pair of functions, trees in which a gradient may be None, and the last addition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError, ShapeError, TreeError
from fnad.typing import PyTree

KERNEL_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
"""What the kernels compute in; leaves of other dtypes are updated by the same formulas in NumPy."""


class Optimizer(NamedTuple):
    """A pair of pure functions; `init(params) -> state` and `update(grads, state, params) -> (updates, state)`.

    The new parameters are `apply_updates(params, updates)`. A gradient of None skips its leaf: the update is None, and
    the leaf's state stays as it is.
    """

    init: Callable[[PyTree], Any]
    update: Callable[..., tuple[PyTree, Any]]


def apply_updates(params: PyTree, updates: PyTree) -> PyTree:
    """The parameters after a step: `params + updates`, leaf by leaf.

    Args:
        params: A pytree of arrays.
        updates: A pytree of the same structure and shapes; None in place of a leaf leaves that leaf as it is.

    Returns:
        A pytree like `params`, in the dtypes of `params`, that shares no memory with the arguments.

    Raises:
        TreeError, ShapeError, DTypeError: the updates do not fit the parameters; the message names the leaf.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.optim.apply_updates({"w": np.array([1.0, 2.0]), "b": 0.0}, {"w": np.array([0.5, -0.5]), "b": None})
        {'w': array([1.5, 1.5]), 'b': 0.0}

    Reference: the convention of optax (DeepMind, 2020).
    """
    leaves, spec = tree.flatten(params, is_none)
    steps = tree.flatten_as(spec, updates, "updates", "params", is_none)
    return tree.unflatten(spec, [_moved(p, u, i, spec) for i, (p, u) in enumerate(zip(leaves, steps, strict=True))])


def _moved(p: Any, u: Any, i: int, spec: tree.Spec) -> Any:
    if u is None:
        return own(p)
    if p is None:
        raise missing_leaf("updates", "params", u, p, i, spec)
    if shape_of(u) != shape_of(p):
        path = tree.paths(spec)[i]
        raise ShapeError("an update must have the shape of its parameter", got={f"updates{path}": aval_of(u), f"params{path}": aval_of(p)})
    total, dtype = p + u, aval_of(p).dtype
    if total.dtype == dtype:
        return total
    if not np.can_cast(total.dtype, dtype, "same_kind"):
        path = tree.paths(spec)[i]
        raise DTypeError("an update must fit the dtype of its parameter", got={f"updates{path}": aval_of(u), f"params{path}": aval_of(p)})
    return total.astype(dtype)


def update_leaves(rule: Callable[..., tuple[Any, ...]], grads: PyTree, state: Any, params: PyTree | None) -> tuple[PyTree, Any]:
    """Run an optimizer's rule over the leaves.

    Args:
        rule: `rule(gradient, parameter, *state leaves) -> (update, *new state leaves)`.
        grads: A pytree like params; None in place of a leaf skips it.
        state: A NamedTuple of pytrees like params, of which the first is the step; None in place of a whole field that is not used.
        params: The parameters; None if the rule does not read them (it then gets the leaf of the second field).
    """
    like = f"state.{state._fields[1]}" if params is None else "params"
    leaves, spec = tree.flatten(state[1] if params is None else params, is_none)
    used = {field: entry for field, entry in zip(state._fields, state, strict=True) if entry is not None}
    named = {"grads": grads, **{f"state.{field}": entry for field, entry in used.items()}}
    columns = [tree.flatten_as(spec, entry, name, like, is_none) for name, entry in named.items()]
    results: list[list[Any]] = [[] for _ in columns]
    for i, (p, *entries) in enumerate(zip(leaves, *columns, strict=True)):
        g, *old = entries
        for name, x in zip(named, entries, strict=True):
            if (x is None) != (p is None) and (name != "grads" or p is None):
                raise missing_leaf(name, like, x, p, i, spec)
        if g is None:
            row: Any = (None, *map(own, old))
        else:
            for name, x in zip(named, entries, strict=True):
                if name != "state.step":
                    check_like(x, p, name, like, i, spec)
                elif shape_of(x) != ():
                    raise ShapeError("state.step counts with one number per leaf", got={f"state.step{tree.paths(spec)[i]}": aval_of(x)})
            row = rule(g, p, *old)
        for column, x in zip(results, row, strict=True):
            column.append(x)
    updates, *new = (tree.unflatten(spec, column) for column in results)
    return updates, state._replace(**dict(zip(used, new, strict=True)))


def zeros_like(params: PyTree) -> tuple[PyTree, PyTree]:
    """What a state begins with: a step of 0 for each leaf, and zeros of its shape and dtype."""
    leaves, spec = tree.flatten(params)
    avals = [aval_of(p) for p in leaves]
    for a, path in zip(avals, tree.paths(spec), strict=True):
        if a.dtype.kind not in "biufc":
            raise DTypeError("parameters are arrays of numbers", got={f"params{path}": a.dtype}, fix="keep other leaves out of params")
    steps = tree.unflatten(spec, [np.zeros((), np.int64) for _ in leaves])
    return steps, tree.unflatten(spec, [np.zeros(a.shape, a.dtype) for a in avals])


def is_none(x: Any) -> bool:
    """For `tree.flatten`: a None counts as a leaf, since it may stand for a leaf that is skipped."""
    return x is None


def missing_leaf(what: str, like: str, x: Any, p: Any, i: int, spec: tree.Spec) -> TreeError:
    path = tree.paths(spec)[i]
    return TreeError(
        f"{what} must have the same pytree structure as {like}",
        got={f"{name}{path}": "None" if y is None else "a leaf" for name, y in ((what, x), (like, p))},
    )


def own(x: Any) -> Any:
    """A copy, where the original could be changed in place."""
    return np.array(x) if isinstance(x, np.ndarray) else x


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """A hyperparameter in the dtype of the leaf it acts on."""
    if shape_of(x) != ():
        raise ShapeError("a hyperparameter is one number", got={"value": aval_of(x)}, fix="a schedule returns a scalar, of shape ()")
    return x.astype(dtype) if isinstance(x, Tracer) else dtype.type(x)


def is_zero(x: Any) -> bool:
    """Whether a hyperparameter is known to be 0; a traced one is not."""
    return not isinstance(x, Tracer) and bool(x == 0)


def as_array(x: Any) -> Any:
    """NumPy's scalars as arrays of shape (), as leaves are."""
    return np.asarray(x) if isinstance(x, np.generic) else x


def check_numbers(given: dict[str, Any], signed: tuple[str, ...] = ()) -> None:
    """Hyperparameters are single numbers that are not negative, but for some; functions of the step are not looked at."""
    for name, x in given.items():
        if callable(x):
            continue
        if shape_of(x) != ():
            raise ShapeError(f"Invalid {name}: it must be one number", got={"shape": shape_of(x)})
        if name not in signed and not isinstance(x, Tracer) and x < 0:
            raise ArgumentError(f"Invalid {name}: {x}", fix="it must not be negative")


def check_like(x: Any, p: Any, what: str, like: str, i: int, spec: tree.Spec) -> None:
    """A gradient or a state leaf has the shape and dtype of its parameter, which is real and floating point."""
    try:
        if x.dtype == p.dtype and x.shape == p.shape and p.dtype.kind == "f":
            return
    except AttributeError:  # Python scalars
        pass
    found, wanted = aval_of(x), aval_of(p)
    path = tree.paths(spec)[i]
    got = {f"{what}{path}": found, f"{like}{path}": wanted}
    if found.shape != wanted.shape:
        raise ShapeError(f"{what} must have the shapes of {like}", got=got)
    if wanted.dtype.kind == "c":
        raise DTypeError("parameters are real", got=got, fix="keep the real and the imaginary part as two leaves")
    if wanted.dtype.kind != "f":
        raise DTypeError("parameters are floating point", got=got, fix="give the gradient None for a leaf that is not optimized")
    if found.dtype != wanted.dtype:
        raise DTypeError(f"{what} must have the dtypes of {like}", got=got, fix=f"convert it with .astype(np.{wanted.dtype})")
