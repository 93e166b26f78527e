"""Abstract values: what is known of an array without its entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fnad.typing import Shape

PYTHON_SCALARS = (bool, int, float, complex)
_WEAK_DTYPE = {bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128)}
_PYTHON_TYPE = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


@dataclass(frozen=True, slots=True)
class Aval:
    """Shape and dtype of a value.

    `weak` marks what came from Python scalars alone: it gives way to the other operand's precision, as in NumPy (NEP 50).
    """

    shape: Shape
    dtype: np.dtype[Any]
    weak: bool = False

    __fnad_leaf__: ClassVar[bool] = True  # a leaf of pytrees, though a dataclass

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        n = 1
        for s in self.shape:
            n *= s
        return n

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]" + ("~" if self.weak else "")


def aval_of(x: Any) -> Aval:
    """The abstract value of an array, scalar or tracer (or an abstract value itself)."""
    cls = x.__class__
    if cls is np.ndarray:
        return Aval(x.shape, x.dtype)
    if cls is Aval:
        return x
    weak = _WEAK_DTYPE.get(cls)
    if weak is not None:
        return Aval((), weak, True)
    own = getattr(x, "aval", None)
    if own is not None:
        return own
    if not isinstance(x, np.ndarray | np.generic):
        x = np.asarray(x)
    return Aval(x.shape, x.dtype)


def shape_of(x: Any) -> Shape:
    """The shape of an array, scalar or tracer; faster than `np.shape`."""
    try:
        return x.shape
    except AttributeError:
        return np.shape(x)


def promotion_operand(a: Aval) -> Any:
    """What stands for `a` in NumPy's promotion functions: a Python number type when weak, otherwise the dtype (of a bool always)."""
    return _PYTHON_TYPE[a.dtype.kind] if a.weak and a.dtype.kind != "b" else a.dtype


def result_dtype(*avals: Aval) -> np.dtype[Any]:
    """NumPy's result type (NEP 50) of operands."""
    return np.result_type(*[a.dtype.type(0).item() if a.weak else a.dtype for a in avals])


def weak_aval(dtype: np.dtype[Any]) -> Aval:
    """A Python scalar of a dtype's kind."""
    return Aval((), _WEAK_DTYPE[_PYTHON_TYPE[dtype.kind]], True)


def all_weak(*avals: Aval) -> bool:
    return all(a.weak for a in avals)
