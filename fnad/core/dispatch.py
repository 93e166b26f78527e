"""The table from NumPy callables to what fnad does when a tracer is among the arguments."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core.aval import PYTHON_SCALARS, aval_of, promotion_operand
from fnad.errors import InPlaceError, UnsupportedError


class Rows(dict[Any, Callable[..., Any]]):
    """NumPy callable -> implementation; a missing one is asked of the providers, then reported."""

    def __missing__(self, function: Any) -> Callable[..., Any]:
        for provider in PROVIDERS:
            provider(function)
        found = self.get(function)
        if found is None:
            raise unsupported(function)
        return found


ROWS = Rows()
UFUNC_METHODS: dict[tuple[np.ufunc, str], Callable[..., Any]] = {}
REFUSED: dict[Any, str] = {}
PROVIDERS: list[Callable[[Any], None]] = []
"""Called with an unknown callable; may add rows (used for optional libraries such as scipy.special)."""


def implements(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: use the decorated function whenever a tracer reaches one of the NumPy `functions`.

    Args:
        functions: NumPy functions or ufuncs (or those of a library that follows NumPy's protocols).

    Returns:
        A decorator that registers its function and returns it unchanged. The function receives the arguments as
        the user wrote them and may use any NumPy function that fnad supports.

    Example:
        >>> import numpy as np, fnad
        >>> @fnad.implements(np.polymul)
        ... def polymul(a1, a2):
        ...     return np.convolve(a1, a2)
        >>> fnad.grad(lambda a: np.sum(np.polymul(a, [1.0, 2.0])))(np.array([1.0, 2.0, 3.0]))
        array([3., 3., 3.])
    """

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        for f in functions:
            ROWS[f] = rule
        return rule

    return register


def implements_method(ufunc: np.ufunc, *methods: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator like `implements`, for a method of a ufunc such as `np.add.reduce`."""

    def register(rule: Callable[..., Any]) -> Callable[..., Any]:
        for method in methods:
            UFUNC_METHODS[ufunc, method] = rule
        return rule

    return register


def refuse(advice: str, *functions: Any) -> None:
    """List functions that can never be traced, with what to write instead."""
    for f in functions:
        REFUSED[f] = advice


_NEUTRAL = {"casting": "same_kind", "order": "K", "subok": True, "where": True}


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc call with keywords, or a ufunc method, on tracers."""
    out = kwargs.pop("out", None)
    if out is not None and any(o is not None for o in out if isinstance(out, tuple)):
        raise InPlaceError(
            f"np.{ufunc.__name__} cannot write into out= while a traced value is involved",
            got={"call": f"np.{ufunc.__name__}(..., out=...), which is also what `a += x` on a plain array does"},
            fix="write a = a + x (a new array) instead of an in-place update",
        )
    if method != "__call__":
        if (ufunc, method) not in UFUNC_METHODS:
            raise unsupported_method(ufunc, method)
        return UFUNC_METHODS[ufunc, method](*inputs, **kwargs)
    rule = ROWS[ufunc]
    dtype = kwargs.pop("dtype", None)
    unknown = [k for k, v in kwargs.items() if not (k in _NEUTRAL and isinstance(v, str | bool) and v == _NEUTRAL[k])]
    if unknown:
        raise UnsupportedError(
            f"np.{ufunc.__name__} on a traced value does not take {', '.join(unknown)}",
            fix="select with np.where(mask, a, b) instead of where=" if "where" in unknown else "leave it out",
        )
    return rule(*inputs if dtype is None else _cast_inputs(ufunc, inputs, np.dtype(dtype)))


def _cast_inputs(ufunc: np.ufunc, inputs: tuple[Any, ...], dtype: np.dtype[Any]) -> list[Any]:
    """The inputs in the dtypes of the loop whose outputs have the given dtype; NumPy's TypeError if there is none, or no such cast."""
    inputs = tuple(x if hasattr(x, "dtype") or x.__class__ in PYTHON_SCALARS else np.asarray(x) for x in inputs)
    given = [promotion_operand(aval_of(x)) for x in inputs]
    wanted = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout), signature=(*[None] * ufunc.nin, *[dtype] * ufunc.nout))
    return [x.astype(d) if hasattr(x, "dtype") else np.asarray(x, d)[()] for x, d in zip(inputs, wanted, strict=False)]


def name_of(function: Any) -> str:
    """`np.linalg.norm`, as a user would write it."""
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__name__", str(function))
    if isinstance(function, np.ufunc):
        module = "numpy" if getattr(np, name, None) is function else "scipy.special"
    module = {"numpy": "np"}.get(module, module.replace("numpy.", "np.", 1))
    return f"{module}.{name}" if module else name


def unsupported(function: Any) -> UnsupportedError:
    if isinstance(function, np.ufunc) and not set("".join(function.types)) - set("O->"):
        function = np.frompyfunc  # which makes ufuncs of Python objects only
    name = name_of(function)
    if function in REFUSED:
        return UnsupportedError(f"{name} cannot be traced", fix=REFUSED[function])
    near = difflib.get_close_matches(name.split(".")[-1], sorted({name_of(f).split(".")[-1] for f in ROWS}), 3, 0.5)
    return UnsupportedError(
        f"{name} has no rule for traced values",
        got={"nearest supported": ", ".join(near) or "none of a similar name"},
        fix=f"compose it from supported functions, or register one with @fnad.implements({name})",
    )


def unsupported_method(ufunc: np.ufunc, method: str) -> UnsupportedError:
    name = f"np.{ufunc.__name__}.{method}"
    if method == "at":
        return UnsupportedError(f"{name} changes its argument in place", fix="use fnad.at(x)[idx].add(v), which returns a new array")
    known = ", ".join(sorted(f"np.{u.__name__}.{m}" for u, m in UFUNC_METHODS))
    return UnsupportedError(
        f"{name} has no rule for traced values",
        got={"supported ufunc methods": known},
        fix="write it with np.sum, np.cumsum, broadcasting, or register one with fnad.implements",
    )
