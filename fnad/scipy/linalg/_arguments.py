"""Matrices and right-hand sides as `scipy.linalg` takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError, UnsupportedError
from fnad.numpy.indexing import as_array, known
from fnad.numpy.linalg import inexact, need_square


def checked(a: Any, check_finite: bool) -> Any:
    a = inexact(as_array(a))
    value = known(a)
    if check_finite and value is not None and not np.all(np.isfinite(value)):
        raise ValueError("array must not contain infs or NaNs")
    return a


def square(a: Any, check_finite: bool) -> Any:
    a = checked(a, check_finite)
    need_square(a)
    return a


def columns(b: Any, a: Any, check_finite: bool) -> tuple[Any, bool]:
    """A right-hand side as columns, and whether it was one vector."""
    b = checked(b, check_finite)
    vector = len(shape_of(b)) == 1
    if not shape_of(b) or shape_of(b)[0 if vector else -2] != shape_of(a)[-1]:
        raise ShapeError(
            "the right-hand side must have as many rows as the matrix", got={"matrix": aval_of(a), "right-hand side": aval_of(b)}
        )
    return (b[:, None] if vector else b), vector


def as_given(x: Any, vector: bool) -> Any:
    return x[..., 0] if vector else x


def orientation(trans: Any) -> tuple[bool, bool]:
    """Whether a system is one of the transposed matrix, and of the conjugate one."""
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ArgumentError("trans must be 0, 1 or 2 (or 'N', 'T', 'C')", got={"trans": repr(trans)})
    return trans not in (0, "N"), trans in (2, "C")


def transposed(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def adjoint(x: Any) -> Any:
    return np.conjugate(transposed(x)) if x.dtype.kind == "c" else transposed(x)


def real_square(a: Any, check_finite: bool, name: str) -> Any:
    a = square(a, check_finite)
    if a.dtype.kind == "c":
        raise UnsupportedError(f"scipy.linalg.{name} of a complex matrix has no rule", fix="use the real matrix [[re, -im], [im, re]]")
    return a
