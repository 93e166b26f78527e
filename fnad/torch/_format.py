"""How tensors are printed: as PyTorch prints them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.core.tracer import Tracer
from fnad.torch import _dtypes
from fnad.torch._tensor import method

_DIGITS, _THRESHOLD, _EDGE, _WIDTH = 4, 1000, 3, 80


def _formatter(a: Any) -> Any:
    """The format of one number, with the width of the widest."""
    if a.dtype.kind == "b":
        texts = ["True" if x else "False" for x in a.ravel()]
        width = max(map(len, texts), default=0)
        return lambda x: ("True" if x else "False").rjust(width)
    if a.dtype.kind in "iu":
        width = max((len(str(x)) for x in a.ravel()), default=0)
        return lambda x: str(x).rjust(width)
    if a.dtype.kind == "c":
        return lambda x: f"{x.real:.{_DIGITS}f}{x.imag:+.{_DIGITS}f}j"
    style = _style(a[np.isfinite(a) & (a != 0)].astype(np.float64))

    def one(x: Any) -> str:
        return format(x, style) + ("." if style == ".0f" and math.isfinite(x) else "")

    width = max((len(one(x)) for x in a.ravel() if math.isfinite(x)), default=0)
    return lambda x: one(x).rjust(width)


def _style(finite: Any) -> str:
    """How numbers are written: whole, with digits behind the point, or with an exponent."""
    if finite.size == 0:
        return ".0f"
    size = np.abs(finite)
    large, small = size.max(), size.min()
    whole = bool(np.all(finite == np.ceil(finite)))
    if large / small > 1000 or large > 1e8 or (not whole and small < 1e-4):
        return f".{_DIGITS}e"
    return ".0f" if whole else f".{_DIGITS}f"


def _ends(n: int, short: bool) -> list[int | None]:
    return list(range(n)) if not short or n <= 2 * _EDGE else [*range(_EDGE), None, *range(n - _EDGE, n)]


def _nested(a: Any, one: Any, indent: int, short: bool) -> str:
    if a.ndim == 0:
        return one(a[()])
    if a.ndim == 1:
        items = [" ..." if i is None else one(a[i]) for i in _ends(len(a), short)]
        per_line = max(1, (_WIDTH - indent) // (max(map(len, items), default=1) + 2))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = ["..." if i is None else _nested(a[i], one, indent + 1, short) for i in _ends(len(a), short)]
    return "[" + ("," + "\n" * (a.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _shown(a: Any, short: bool) -> Any:
    """The entries that will be printed."""
    if not short:
        return a
    for axis, n in enumerate(a.shape):
        if n > 2 * _EDGE:
            a = np.take(a, [*range(_EDGE), *range(n - _EDGE, n)], axis)
    return a


@method("__repr__", "__str__")
def show(self: Any) -> str:
    a = self._data
    if isinstance(a, Tracer):
        return f"tensor({a!r})"
    prefix = "tensor("
    short = a.size > _THRESHOLD
    if a.size == 0:
        text = "[]" if a.shape == (0,) else f"[], size={a.shape}"
    else:
        text = _nested(a, _formatter(_shown(a, short)), len(prefix), short)
    parts = [text]
    if a.dtype not in (_dtypes.DEFAULT.floating, np.int64, np.bool_):
        parts.append(f"dtype={self.dtype!r}")
    if self._node is not None:
        parts.append(f"grad_fn=<{self._node.name()}>")
    elif self._req:
        parts.append("requires_grad=True")
    return prefix + ", ".join(parts) + ")"
