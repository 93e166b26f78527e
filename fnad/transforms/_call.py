"""What all transforms share: the transformed function as an object, and checks of arguments and results."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad import tree
from fnad.core.aval import aval_of
from fnad.core.tracer import Tracer, check_alive
from fnad.errors import ArgumentError, DTypeError, ShapeError, describe_function, user_line


class Transformed:
    """A function made by a transform. It pickles if the inner function does, and binds as a method."""

    def __init__(self, call: Callable[..., Any], function: Callable[..., Any], options: tuple[Any, ...]) -> None:
        if not callable(function):
            raise ArgumentError(
                "a transform takes a function", got={"argument": repr(function)}, fix="pass the function itself, not its result"
            )
        functools.update_wrapper(self, function, updated=())  # what else the function has is of the function, not of this one
        self._call, self._function, self._options = call, function, options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._function, self._options, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @property
    def made_by(self) -> tuple[Any, ...]:
        """Of a derivative: the transform's name, the function, `argnums` and `has_aux`."""
        return self._options[-1], self._function, self._options[0], self._options[1]

    def __repr__(self) -> str:
        return f"<fnad.{self._call.__name__.strip('_')} of {describe_function(self._function)}>"


def select(argnums: int | tuple[int, ...], args: tuple[Any, ...], transform: str) -> list[int]:
    """The positions named by `argnums`, non-negative and in order."""
    wanted = tuple(argnums) if isinstance(argnums, tuple | list) else (argnums,)
    out = []
    for n in wanted:
        if not isinstance(n, int | np.integer) or isinstance(n, bool):
            raise ArgumentError(f"{transform}: argnums must be an int or a tuple of ints", got={"argnums": repr(argnums)})
        if not -len(args) <= n < len(args):
            raise ArgumentError(
                f"{transform}: argnums must name a positional argument",
                got={"argnums": argnums, "positional arguments": len(args)},
                fix="pass the argument by position; keyword arguments are not differentiated",
            )
        out.append(int(n) % len(args))
    if len(set(out)) != len(out):
        raise ArgumentError(f"{transform}: argnums must not repeat", got={"argnums": argnums})
    return out


def check_differentiable(leaf: Any, path: Callable[[int], str], i: int, transform: str) -> Any:
    """Leaf `i` as something to differentiate (array, NumPy scalar, Python float, outer tracer), or an error with its path."""
    if isinstance(leaf, float | complex) or (isinstance(leaf, Tracer) and leaf.dtype.kind in "fc"):
        return leaf
    dtype = getattr(leaf, "dtype", None)
    if isinstance(leaf, np.ndarray) and type(leaf) not in (np.ndarray, np.memmap):
        kind, fix = type(leaf).__name__, "pass np.asarray(x): subclasses of ndarray have arithmetic of their own"
    elif isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "fc":
        return np.asarray(leaf) if isinstance(leaf, np.memmap) else leaf
    elif dtype is not None and not isinstance(leaf, np.ndarray | np.generic | Tracer):
        kind, fix = f"{type(leaf).__module__}.{type(leaf).__qualname__}", "pass an array: x.to_numpy() (pandas) or np.asarray(x)"
    elif dtype is not None or isinstance(leaf, int | bool):
        kind = str(dtype) if dtype is not None else f"Python {type(leaf).__name__}"
        fix = "convert it with .astype(float) (or write 1.0 for 1), or pass it as another argument that is not differentiated"
    else:
        kind, fix = type(leaf).__name__, "keep it out of the differentiated arguments, or mark the dataclass field static"
    raise DTypeError(f"{transform} differentiates floating-point leaves only", got={f"leaf at {path(i)}": kind}, fix=fix)


OBJECT = np.dtype(object)


def objects_met() -> DTypeError:
    """The error where an array of Python objects meets a traced value: it may hold traced values itself."""
    fix = "np.stack([a, b]) makes an array of traced values"
    return DTypeError("a traced value works with arrays of numbers only", got={"dtype": OBJECT, "at": user_line()}, fix=fix)


def flatten_results(out: Any, transform: str) -> tuple[list[Any], tree.Spec]:
    """The leaves of what a function returned, which must be numbers or arrays of numbers.

    An array of Python objects could hold traced values, which no transform would find: their derivatives would be lost.
    """
    leaves, spec = tree.flatten(out)
    for i, x in enumerate(leaves):
        check_alive(x)
        if isinstance(x, Tracer | float | int | complex) or (isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biufc"):
            continue
        found = f"array of dtype {x.dtype}" if isinstance(x, np.ndarray) else type(x).__name__
        fix = "np.stack([a, b]) makes an array of traced values" if found.endswith("object") else "return other values with has_aux=True"
        raise DTypeError(f"{transform}: the function must return arrays of numbers", got={f"output{tree.paths(spec)[i]}": found}, fix=fix)
    return leaves, spec


def own(results: list[Any]) -> list[Any]:
    """Results of a transform as the caller receives them: NumPy scalars for 0-d, otherwise arrays that share no memory.

    An array that owns its memory and is referenced by nothing but the list itself can be handed out as it is.
    """
    for i in range(len(results)):
        if isinstance(results[i], Tracer | np.generic):
            continue
        if results[i].__class__ is not np.ndarray:
            results[i] = np.asarray(results[i])
        if results[i].ndim == 0:
            results[i] = results[i][()]
            continue
        flags = results[i].flags
        if not (flags.owndata and flags.c_contiguous and flags.writeable and _count_at(results, i) <= _FRESH_AT):
            results[i] = np.array(results[i], order="C")
    return results


def _count_at(results: list[Any], i: int) -> int:
    return sys.getrefcount(results[i])


_FRESH_AT = _count_at([np.zeros(1)], 0)


def own_array(x: Any) -> Any:
    """One leaf of an auxiliary result, which may be anything: arrays are copied, so that they share no memory."""
    check_alive(x)
    return np.array(x, order="C") if isinstance(x, np.ndarray) and x.dtype != object else x


def split_aux(out: Any, has_aux: bool, transform: str) -> tuple[Any, Any]:
    """What a function returned, as (output, aux)."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise ShapeError(f"{transform}(has_aux=True): the function must return a pair (output, aux)", got={"result": type(out).__name__})
    return out


def check_like(g: Any, aval: Any, what: str, path: str, of: str) -> Any:
    """A cotangent or tangent that fits a value: same shape, dtype converted where no information is lost."""
    g = g if isinstance(g, Tracer | np.ndarray | np.generic | float | int | complex) else np.asarray(g)
    found = aval_of(g)
    if found.shape != aval.shape:
        raise ShapeError(f"the {what} must have the shape of {of}", got={f"{what}{path}": found, f"{of}{path}": aval})
    if found.dtype != aval.dtype:
        if not np.can_cast(found.dtype, aval.dtype, "same_kind"):
            raise DTypeError(f"the {what} must have the dtype of {of}", got={f"{what}{path}": found, f"{of}{path}": aval})
        g = g.astype(aval.dtype) if isinstance(g, Tracer) else np.asarray(g).astype(aval.dtype)[()]
    return g


def leaf_paths(spec: tree.Spec, names: Sequence[str]) -> list[str]:
    """Key paths of the leaves of a tuple of arguments, each beginning with the argument's name."""
    out = []
    for path in tree.paths(spec):
        head, _, rest = path[1:].partition("]")
        out.append(f"{names[int(head)]}{rest}")
    return out
