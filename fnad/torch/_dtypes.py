"""dtypes under PyTorch's names, the default one, and PyTorch's rules of promotion."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.errors import DTypeError, UnsupportedError


class dtype:
    """The type of a tensor's entries: `torch.float32` and so on.

    Args:
        name: Its name in PyTorch.
        numpy: NumPy's dtype.
    """

    __slots__ = ("itemsize", "name", "numpy")

    def __init__(self, name: str, numpy: Any) -> None:
        self.name, self.numpy = name, np.dtype(numpy)
        self.itemsize = self.numpy.itemsize

    @property
    def is_floating_point(self) -> bool:
        return self.numpy.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.numpy.kind == "c"

    @property
    def is_signed(self) -> bool:
        return self.numpy.kind in "ifc"

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return dtype_of, (self.numpy.str,)


float16, float32, float64 = dtype("float16", np.float16), dtype("float32", np.float32), dtype("float64", np.float64)
int8, int16, int32, int64 = dtype("int8", np.int8), dtype("int16", np.int16), dtype("int32", np.int32), dtype("int64", np.int64)
uint8, uint16, uint32, uint64 = dtype("uint8", np.uint8), dtype("uint16", np.uint16), dtype("uint32", np.uint32), dtype("uint64", np.uint64)
bool_ = dtype("bool", np.bool_)
complex64, complex128 = dtype("complex64", np.complex64), dtype("complex128", np.complex128)

_ALL = (float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool_, complex64, complex128)
_OF_NUMPY = {d.numpy: d for d in _ALL}
_OF_PYTHON = {float: float64, int: int64, bool: bool_, complex: complex128}
LEGACY = {
    np.dtype(np.float16): "Half", np.dtype(np.float32): "Float", np.dtype(np.float64): "Double", np.dtype(np.int8): "Char",
    np.dtype(np.int16): "Short", np.dtype(np.int32): "Int", np.dtype(np.int64): "Long", np.dtype(np.uint8): "Byte",
    np.dtype(np.bool_): "Bool", np.dtype(np.complex64): "ComplexFloat", np.dtype(np.complex128): "ComplexDouble",
}  # fmt: skip
"""The names that PyTorch's error messages and tensor types use."""

_BOOL, _INT64 = np.dtype(np.bool_), np.dtype(np.int64)
_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_COMPLEX = {np.dtype(np.float16): np.dtype(np.complex64), np.dtype(np.float32): np.dtype(np.complex64)}


class _Default:
    floating = np.dtype(np.float32)


DEFAULT = _Default()


def dtype_of(numpy: Any) -> dtype:
    """PyTorch's name for a dtype of NumPy."""
    found = _OF_NUMPY.get(np.dtype(numpy).newbyteorder("="))
    if found is None:
        raise DTypeError(
            f"can't convert np.ndarray of type {np.dtype(numpy)}",
            got={"supported": ", ".join(d.name for d in _ALL)},
            fix="convert it with .astype first",
        )
    return found


def as_numpy(d: Any) -> np.dtype[Any]:
    """NumPy's dtype for one of PyTorch's, of NumPy's, or a Python type."""
    if d.__class__ is dtype:
        return d.numpy
    if d in _OF_PYTHON:
        return _OF_PYTHON[d].numpy
    return dtype_of(d).numpy


def set_default_dtype(d: Any) -> None:
    """Which dtype Python floats, and creation functions without `dtype`, give: float32 unless it is set.

    Args:
        d: A floating-point dtype.

    Raises:
        DTypeError: (a TypeError) `d` is not floating point.
    """
    found = as_numpy(d)
    if found.kind != "f":
        raise DTypeError("only floating-point types are supported as the default type", got={"dtype": dtype_of(found)})
    DEFAULT.floating = found


def get_default_dtype() -> dtype:
    """The dtype of Python floats: see `set_default_dtype`."""
    return dtype_of(DEFAULT.floating)


def default_complex() -> np.dtype[Any]:
    return _COMPLEX.get(DEFAULT.floating, np.dtype(np.complex128))


def number_dtype(x: Any) -> np.dtype[Any]:
    """The dtype a Python number stands for."""
    if isinstance(x, bool):
        return _BOOL
    if isinstance(x, int):
        return _INT64
    return DEFAULT.floating if isinstance(x, float) else default_complex()


def promote(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The common dtype of two; unlike NumPy's, integers never widen a float."""
    if a == b:
        return a
    if _RANK[a.kind] < _RANK[b.kind]:
        a, b = b, a
    if a.kind == "f":
        return np.promote_types(a, b) if b.kind == "f" else a
    if a.kind == "c":
        return np.promote_types(a, b) if b.kind in "cf" and b.itemsize > 2 else a
    return np.promote_types(a, b)


def _combine(high: np.dtype[Any] | None, low: np.dtype[Any] | None) -> np.dtype[Any] | None:
    if high is None or low is None:
        return low if high is None else high
    return high if _RANK[high.kind] >= _RANK[low.kind] else promote(high, low)


def common(arrays: list[Any], numbers: list[Any]) -> np.dtype[Any]:
    """The dtype of a result: tensors with axes decide, then those without, then Python numbers, within the highest kind there is.

    Args:
        arrays: The arrays (or tracers) of tensors.
        numbers: Python numbers.
    """
    groups: list[np.dtype[Any] | None] = [None, None, None]
    for x in arrays:
        k = 0 if x.ndim else 1
        d = x.dtype
        have = groups[k]
        groups[k] = d if have is None else promote(have, d)
    for n in numbers:
        d = number_dtype(n)
        have = groups[2]
        groups[2] = d if have is None else promote(have, d)
    found = _combine(groups[0], _combine(groups[1], groups[2]))
    assert found is not None
    return found


def absent_dtype(name: str) -> UnsupportedError:
    return UnsupportedError(f"torch.{name} does not exist in fnad: NumPy has no such dtype", fix="use torch.float32 or torch.float16")
