"""Tensors from numbers, arrays and sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad.errors import DTypeError
from fnad.torch import _dtypes
from fnad.torch._dtypes import as_numpy
from fnad.torch._shapes import sizes_of
from fnad.torch._tensor import Tensor, device, make, method


def finished(array: Any, requires_grad: bool) -> Any:
    t = make(array)
    if requires_grad:
        t.requires_grad = True
    return t


def _first(data: Any) -> Any:
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return data


def _array(data: Any, dtype: Any, copy: bool) -> Any:
    """An array of nested lists, of tensors, of arrays, or of one number; Python floats have the default dtype."""
    wanted = None if dtype is None else as_numpy(dtype)
    if isinstance(data, Tensor):
        return np.array(data._data, wanted, copy=True if copy else None)
    if isinstance(data, list | tuple):
        first = _first(data)
        if isinstance(first, Tensor):
            data = [x.tolist() if x._data.ndim else x._data[()] for x in data] if data and isinstance(data[0], Tensor) else _lists(data)
        try:
            a = np.array(data)
        except ValueError as e:
            raise ValueError(f"expected sequences of equal lengths: {e}") from None
        if wanted is None and not isinstance(first, np.generic | np.ndarray | Tensor):
            wanted = {"f": _dtypes.DEFAULT.floating, "c": _dtypes.default_complex()}.get(a.dtype.kind)
            wanted = _dtypes.DEFAULT.floating if a.size == 0 else wanted
        elif wanted is None and isinstance(first, Tensor):
            wanted = first._data.dtype
    elif isinstance(data, np.ndarray | np.generic):
        a = np.array(data, wanted, copy=True if copy else None)
    elif isinstance(data, bool | int | float | complex):
        return np.array(data, _dtypes.number_dtype(data) if wanted is None else wanted)
    elif hasattr(data, "__array__"):
        a = np.array(data)
    else:
        raise TypeError(f"new(): invalid data type {type(data).__name__!r}; a number, nested lists, an array or a tensor is expected")
    if a.dtype.kind not in "biufc":
        raise TypeError(f"can't convert np.ndarray of type {a.dtype}")
    return a if wanted is None or a.dtype == wanted else a.astype(wanted)


def _lists(data: Any) -> Any:
    return [_lists(x) for x in data] if isinstance(data, list | tuple) else data.tolist() if isinstance(data, Tensor) else data


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Any:
    """A tensor with a copy of some numbers.

    Args:
        data: A number, nested lists, an array or a tensor. Python floats give the default dtype (float32), arrays keep theirs.
        dtype: The dtype to have instead.
        device: The CPU.
        requires_grad: Whether operations on it are recorded.
        pin_memory: Has no meaning here.

    Returns:
        A leaf.

    Example:
        >>> import fnad.torch as torch
        >>> torch.tensor([[1, 2], [3, 4]]), torch.tensor([0.5]).dtype
        (tensor([[1, 2],
                [3, 4]]), torch.float32)

    Reference: `torch.tensor` of PyTorch 2.13.
    """
    _check_device(device)
    return finished(_array(data, dtype, True), requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """A tensor on the memory of `data` where that is possible; a tensor itself if it fits."""
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    return make(_array(data, dtype, False))


asarray = as_tensor


def from_numpy(array: Any) -> Any:
    """A tensor on the memory of an array: each sees what the other changes.

    Raises:
        DTypeError: (a TypeError) it is no array of numbers.
    """
    if not isinstance(array, np.ndarray):
        raise DTypeError(f"expected np.ndarray (got {type(array).__name__})")
    _dtypes.dtype_of(array.dtype)
    return make(array)


def from_dlpack(x: Any) -> Any:
    """A tensor on the memory of any object with DLPack's protocol."""
    return make(np.from_dlpack(x))


def _check_device(d: Any) -> None:
    if d is not None:
        device(d)


def _dtype(dtype: Any) -> np.dtype[Any]:
    return _dtypes.DEFAULT.floating if dtype is None else as_numpy(dtype)


def zeros(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """Zeros of given sizes."""
    _check_device(device)
    return finished(np.zeros(sizes_of(size), _dtype(dtype)), requires_grad)


def ones(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """Ones of given sizes."""
    _check_device(device)
    return finished(np.ones(sizes_of(size), _dtype(dtype)), requires_grad)


def empty(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """Memory of given sizes, with any contents."""
    _check_device(device)
    return finished(np.empty(sizes_of(size), _dtype(dtype)), requires_grad)


def full(size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """One number at all places."""
    _check_device(device)
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return finished(np.full(sizes_of((size,)), value, _dtypes.number_dtype(value) if dtype is None else as_numpy(dtype)), requires_grad)


def _like(input: Any, dtype: Any) -> tuple[Any, Any]:
    return input._data.shape, input._data.dtype if dtype is None else as_numpy(dtype)


def zeros_like(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """Zeros, shaped like a tensor."""
    return finished(np.zeros(*_like(input, dtype)), requires_grad)


def ones_like(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """Ones, shaped like a tensor."""
    return finished(np.ones(*_like(input, dtype)), requires_grad)


def empty_like(input: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """Memory, shaped like a tensor."""
    return finished(np.empty(*_like(input, dtype)), requires_grad)


def full_like(input: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **_: Any) -> Any:
    """One number, shaped like a tensor."""
    shape, d = _like(input, dtype)
    return finished(np.full(shape, fill_value, d), requires_grad)


method("new_zeros")(lambda self, *size, dtype=None, **o: zeros(*size, dtype=self.dtype if dtype is None else dtype, **o))
method("new_ones")(lambda self, *size, dtype=None, **o: ones(*size, dtype=self.dtype if dtype is None else dtype, **o))
method("new_empty")(lambda self, *size, dtype=None, **o: empty(*size, dtype=self.dtype if dtype is None else dtype, **o))
method("new_full")(lambda self, size, value, dtype=None, **o: full(size, value, dtype=self.dtype if dtype is None else dtype, **o))
method("new_tensor")(lambda self, data, dtype=None, **o: tensor(data, dtype=self.dtype if dtype is None else dtype, **o))


def arange(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Numbers from `start` up to, and without, `end`."""
    start, end = (0, start) if end is None else (start, end)
    start, end, step = (x.item() if isinstance(x, Tensor) else x for x in (start, end, step))
    if dtype is not None:
        wanted = as_numpy(dtype)
    elif all(isinstance(x, int) for x in (start, end, step)):
        wanted = np.dtype(np.int64)
    else:
        wanted = _dtypes.DEFAULT.floating
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.ceil((end - start) / step)
    return finished((start + np.arange(count) * step).astype(wanted), requires_grad)


def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """`steps` numbers at equal distances, both ends included."""
    return finished(np.linspace(start, end, steps).astype(_dtype(dtype)), requires_grad)


def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Powers of the base, whose exponents are at equal distances."""
    return finished(np.logspace(start, end, steps, base=base).astype(_dtype(dtype)), requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """The identity matrix."""
    return finished(np.eye(n, m, dtype=_dtype(dtype)), requires_grad)


def _legacy(name: str, d: Any) -> Any:
    def create(*data: Any) -> Any:
        if data and all(isinstance(n, int) for n in data):
            return empty(*data, dtype=d)
        return tensor(data[0] if data else [], dtype=d)

    create.__name__ = name
    create.__doc__ = f"A tensor of {d!r}: of numbers, or of sizes with any contents."
    return create


FloatTensor, DoubleTensor = _legacy("FloatTensor", _dtypes.float32), _legacy("DoubleTensor", _dtypes.float64)
LongTensor, IntTensor = _legacy("LongTensor", _dtypes.int64), _legacy("IntTensor", _dtypes.int32)
BoolTensor, ByteTensor = _legacy("BoolTensor", _dtypes.bool_), _legacy("ByteTensor", _dtypes.uint8)

for _name, _d in (
    ("float", _dtypes.float32), ("double", _dtypes.float64), ("half", _dtypes.float16), ("int", _dtypes.int32), ("long", _dtypes.int64),
    ("short", _dtypes.int16), ("bool", _dtypes.bool_), ("byte", _dtypes.uint8), ("char", _dtypes.int8),
):  # fmt: skip
    method(_name)(lambda self, _d=_d: self.to(_d))
method("cpu")(lambda self, *_: self)
method("type_as")(lambda self, other: self.to(other.dtype))


@method("cuda", "bfloat16", "to_sparse", "share_memory_", "pin_memory", "to_mkldnn")
def absent(self: Any, *_: Any, **__: Any) -> Any:
    raise DTypeError("fnad.torch: there is the CPU alone, and dense tensors of NumPy's dtypes", fix="leave the call out")
