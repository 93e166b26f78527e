"""Indexing, assignment to entries, selection by masks and by positions."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError
from fnad.numpy import indexing
from fnad.numpy.at import at
from fnad.numpy.metadata import normalise_axis
from fnad.primitives.arithmetic import where as where_primitive
from fnad.torch import _views
from fnad.torch._call import cast, in_place, prim, rebind, replace, run, tensor_of, writable
from fnad.torch._dtypes import common
from fnad.torch._mode import STATE
from fnad.torch._tensor import Tensor, make, method
from fnad.torch._views import View


def _plain(i: Any) -> Any:
    """One item of an index as NumPy takes it."""
    if isinstance(i, Tensor):
        data = i._data
        if data.dtype == np.uint8:
            return data.astype(bool)
        if data.dtype.kind not in "iub":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return operator.index(data.item()) if data.ndim == 0 and data.dtype.kind != "b" else data
    if isinstance(i, slice):
        parts = [x if x is None or isinstance(x, int) else operator.index(x) for x in (i.start, i.stop, i.step)]
        if parts[2] is not None and parts[2] <= 0:
            raise ValueError("step must be greater than zero")
        return slice(*parts)
    if isinstance(i, list):
        return np.asarray([_plain(x) for x in i]) if i else np.zeros(0, np.int64)
    return i


def _key(index: Any) -> tuple[Any, bool]:
    """An index as NumPy takes it, and whether its result is a view."""
    if index.__class__ is int:
        return index, True
    items = tuple(map(_plain, index)) if isinstance(index, tuple) else (_plain(index),)
    basic = all(i is None or i is Ellipsis or i.__class__ in (int, slice) or isinstance(i, np.integer) for i in items)
    return items[0] if len(items) == 1 else items, basic


def _take(x: Any, key: Any) -> Any:
    return indexing.getitem(x, key) if not isinstance(x, np.ndarray) else x[key]


def _put(x: Any, key: Any, value: Any) -> Any:
    return at(x)[key].set(value)


def _error(x: Any, e: IndexError, index: Any) -> IndexError:
    shape = list(x._data.shape)
    return IndexError(f"{e}: index {index!r} of a tensor of shape {shape}")


@method("__getitem__")
def getitem(self: Any, index: Any) -> Any:
    key, basic = _key(index)
    if self._view is not None:
        _views.refresh(self)
    data = self._data
    try:
        if not basic or not isinstance(data, np.ndarray):
            out = run(_take, (self, key), {}, "index")
            self._viewed = out._viewed = self._viewed or basic
            return out
        items = key if key.__class__ is tuple else (key,)
        entries = data[items if Ellipsis in items else (*items, Ellipsis)]  # with it, also one entry is an array on the memory
    except IndexError as e:
        raise _error(self, e, index) from None
    out = run(_take, (self, key), {}, "index") if self._req and STATE.recording else make(entries)
    out._data, out._counter = entries, self._counter
    out._view = View(self, lambda base: run(_take, (base, key), {}), lambda base, v: run(_put, (base, key, v), {}), STATE.recording)
    return out


@method("__setitem__")
def setitem(self: Any, index: Any, value: Any) -> None:
    key, _ = _key(index)
    tracked = writable(self)
    if isinstance(value, Tensor) and value._view is not None:
        _views.refresh(value)
    if isinstance(self._data, Tracer) or (isinstance(value, Tensor) and isinstance(value._data, Tracer)):
        given = cast(value, self._data.dtype) if isinstance(value, Tensor) else np.asarray(value, self._data.dtype)
        rebind(self, run(_put, (self, key, given), {}, "index_put"))
        return
    if tracked and (self._req or (isinstance(value, Tensor) and value._req)):
        given = cast(value, self._data.dtype) if isinstance(value, Tensor) else np.asarray(value, self._data.dtype)
        if isinstance(given, Tensor) and given._counter is self._counter:
            given = given.clone()
        replace(self, run(_put, (self, key, given), {}, "index_put"))
        return
    new = value._data if isinstance(value, Tensor) else value
    try:
        self._data[key] = new
    except IndexError as e:
        raise _error(self, e, index) from None
    except ValueError as e:
        raise RuntimeError(f"shape mismatch: {e}") from None
    self._counter[0] += 1


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Entries of `input` where the condition holds, of `other` elsewhere; with the condition alone, where it holds."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    dtype = common([x._data for x in (input, other) if isinstance(x, Tensor)], [x for x in (input, other) if not isinstance(x, Tensor)])
    a, b = (cast(x, dtype) if isinstance(x, Tensor) else np.asarray(x, dtype) for x in (input, other))
    return prim(where_primitive, condition, a, b)


method("where")(lambda self, condition, other: where(condition, self, other))


@method()
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """The positions of entries that are not 0: (n, axes), or one vector per axis."""
    found = np.nonzero(np.atleast_1d(input._data))
    return tuple(map(make, found)) if as_tuple else make(np.stack(found, 1))


argwhere = nonzero


@method()
def masked_select(input: Any, mask: Any) -> Any:
    """The entries where the mask is true, as a vector."""
    shape = np.broadcast_shapes(input._data.shape, mask._data.shape)
    return input.expand(shape)[mask.expand(shape)]


@method()
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """`value` where the mask is true."""
    if mask._data.dtype.kind != "b":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    given = cast(value, input._data.dtype) if isinstance(value, Tensor) else np.asarray(value, input._data.dtype)
    return prim(where_primitive, mask, given, input)


in_place(masked_fill, "masked_fill_")


def _axis(x: Any, dim: int) -> int:
    return normalise_axis(dim, max(x._data.ndim, 1))


def _grid(x: Any, axis: int, index: Any) -> tuple[Any, ...]:
    """The positions that `index` means along an axis, in all axes."""
    grids = np.meshgrid(*map(np.arange, index.shape), indexing="ij", sparse=True)
    return tuple(index if k == axis else grid for k, grid in enumerate(grids))


@method()
def gather(input: Any, dim: int, index: Any) -> Any:
    """`out[i, j] = input[index[i, j], j]` for dim 0, and so on."""
    where_ = index._data
    if where_.ndim != input._data.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    return run(_take, (input, _grid(input, _axis(input, dim), where_)), {}, "gather")


@method()
def take_along_dim(input: Any, indices: Any, dim: int) -> Any:
    """See `gather`; shapes broadcast."""
    return run(indexing.take_along_axis, (input, indices._data, dim), {}, "gather")


@method()
def index_select(input: Any, dim: int, index: Any) -> Any:
    """The places of an axis that a vector names."""
    return run(_take, (input, (slice(None),) * _axis(input, dim) + (index._data,)), {}, "index_select")


def _values(src: Any, x: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(src, Tensor):
        return cast(src, x._data.dtype)[tuple(slice(n) for n in shape)]
    return np.full(shape, src, x._data.dtype)


def _put_at(x: Any, key: Any, value: Any, reduce: str) -> Any:
    place = at(x)[key]
    return place.add(value) if reduce == "add" else place.multiply(value) if reduce == "multiply" else place.set(value)


@method()
def scatter(input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: str = "") -> Any:
    """`out[index[i, j], j] = src[i, j]` for dim 0, and so on."""
    if reduce not in ("", "add", "multiply"):
        raise ArgumentError("scatter: reduce is 'add' or 'multiply'", got={"reduce": reduce})
    values = _values(value if src is None else src, input, index._data.shape)
    return run(_put_at, (input, _grid(input, _axis(input, dim), index._data), values, reduce), {}, "scatter")


@method()
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """`out[index[i, j], j] += src[i, j]` for dim 0, and so on."""
    return scatter(input, dim, index, src, reduce="add")


@method()
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    """`out[index[i]] += alpha * source[i]` along an axis."""
    key = (slice(None),) * _axis(input, dim) + (index._data,)
    return run(_put_at, (input, key, source if alpha == 1 else source * alpha, "add"), {}, "index_add")


@method()
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """`out[index[i]] = source[i]` along an axis."""
    return run(_put_at, (input, (slice(None),) * _axis(input, dim) + (index._data,), source, ""), {}, "index_copy")


@method()
def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """`out[index[i]] = value` along an axis."""
    key = (slice(None),) * _axis(input, dim) + (index._data,)
    return run(_put_at, (input, key, np.asarray(value, input._data.dtype), ""), {}, "index_fill")


for _f in (scatter, scatter_add, index_add, index_copy, index_fill):
    in_place(_f, f"{_f.__name__}_")


@method()
def take(input: Any, index: Any) -> Any:
    """Entries at positions of the flat tensor."""
    return input.reshape(-1)[index]


def _copied(x: Any, src: Any) -> Any:
    out = tensor_of(src)
    return (
        cast(out, x._data.dtype).expand(x._data.shape)
        if out._req
        else make(np.broadcast_to(out._data.astype(x._data.dtype), x._data.shape))
    )


def _copied_from(x: Any, src: Any, non_blocking: bool = False) -> Any:
    return _copied(x, src)


def _filled(x: Any, value: Any) -> Any:
    return _copied(x, value)


def _zeroed(x: Any) -> Any:
    return make(np.zeros(x._data.shape, x._data.dtype))


in_place(_copied_from, "copy_")
in_place(_filled, "fill_")
in_place(_zeroed, "zero_")
