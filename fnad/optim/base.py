"""What all optimizers share: the pair of functions, trees in which a gradient may be None, and the last addition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, DTypeError, ShapeError, TreeError
from fnad.typing import PyTree

Number: TypeAlias = float | Callable[[Any], Any]
"""A hyperparameter: a number, or a function of the leaf's step (an int64 scalar, counted from 0) that returns it: a schedule."""


class Optimizer(NamedTuple):
    """A pair of pure functions; `init(params) -> state` and `update(grads, state, params, **extra) -> (updates, state)`.

    The new parameters are `apply_updates(params, updates)`. A gradient of None skips its leaf: the update is None, and
    the leaf's state stays as it is. `extra` is what some optimizers ask for by name (`sam` a gradient function, `lbfgs` a
    closure, `accumulate` a weight); the others pass it on or leave it.
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
    if isinstance(p, np.ndarray):
        total = as_array(total)
    if total.dtype == dtype:
        return total
    if not np.can_cast(total.dtype, dtype, "same_kind"):
        path = tree.paths(spec)[i]
        raise DTypeError("an update must fit the dtype of its parameter", got={f"updates{path}": aval_of(u), f"params{path}": aval_of(p)})
    return total.astype(dtype)


def is_traced(x: Any) -> bool:
    """Whether a value belongs to a transform."""
    return isinstance(x, Tracer)


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
    if x.__class__ in (float, int, bool):
        return dtype.type(x)
    if shape_of(x) != ():
        raise ShapeError("a hyperparameter is one number", got={"value": aval_of(x)}, fix="a schedule returns a scalar, of shape ()")
    return x.astype(dtype) if isinstance(x, Tracer) else dtype.type(x)


def is_zero(x: Any) -> bool:
    """Whether a hyperparameter is known to be 0; a traced one is not."""
    return not isinstance(x, Tracer) and bool(x == 0)


def as_array(x: Any) -> Any:
    """NumPy's scalars as arrays of shape (), as leaves are."""
    return np.asarray(x) if isinstance(x, np.generic) else x


def number(x: Any, dtype: Any = np.float64) -> Any:
    """A number of a state: an array of its own, of shape ()."""
    return x.astype(dtype) if is_traced(x) else np.array(x, dtype)


def check_numbers(given: dict[str, Any], signed: tuple[str, ...] = ()) -> None:
    """Hyperparameters are single numbers that are not negative, but for some; functions of the step are not looked at."""
    for name, x in given.items():
        if callable(x):
            continue
        if aval_of(x).dtype.kind not in "biuf":
            fix = "leave out the quotes, or convert it with float()" if isinstance(x, str) else ""
            raise DTypeError(f"Invalid {name}: it must be a real number", got={"value": repr(x)}, fix=fix)
        if shape_of(x) != ():
            raise ShapeError(f"Invalid {name}: it must be one number", got={"shape": shape_of(x)})
        if name not in signed and not isinstance(x, Tracer) and x < 0:
            raise ArgumentError(f"Invalid {name}: {x}", fix="it must not be negative")


def check_state(name: str, state: Any, kind: type) -> None:
    """A state is what `init` of the same optimizer made."""
    if not isinstance(state, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        rule = f"the state of {name} is {article} {kind.__name__}"
        raise TreeError(rule, got={"state": type(state).__name__}, fix="start with opt.init(params)")


def check_optimizers(name: str, *given: Any) -> None:
    """What an optimizer goes around has `init` and `update`."""
    for x in given:
        if not (callable(getattr(x, "init", None)) and callable(getattr(x, "update", None))):
            fix = (
                f"{name}(a, b), not {name}([a, b])" if isinstance(x, list | tuple) else "an optimizer is made by a call such as sgd(lr=0.1)"
            )
            fix = "set_to_zero() leaves parameters as they are" if x is None else fix
            raise ArgumentError(f"{name} goes around optimizers", got={"instead": type(x).__name__}, fix=fix)


def check_betas(betas: tuple[Any, ...]) -> dict[str, Any]:
    """Factors of running means lie in [0, 1)."""
    if not isinstance(betas, tuple | list):
        raise ArgumentError("Invalid betas: they are a tuple of numbers", got={"betas": repr(betas)}, fix="betas=(0.9, 0.999)")
    given = {f"beta parameter at index {i}": b for i, b in enumerate(betas)}
    check_numbers(given)
    for name, b in given.items():
        if not callable(b) and not isinstance(b, Tracer) and b >= 1:
            raise ArgumentError(f"Invalid {name}: {b}", fix="it must be less than 1")
    return {f"beta{i + 1}": b for i, b in enumerate(betas)}


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
