"""Joining and splitting in more ways, entries put elsewhere, shapes changed in place."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core.tracer import Tracer
from fnad.errors import UnsupportedError
from fnad.nn.functional._arguments import array
from fnad.numpy.at import at
from fnad.numpy.metadata import normalise_axis
from fnad.torch._call import cast, in_place, lift, run
from fnad.torch._indexing import scatter
from fnad.torch._shapes import cat, hstack, narrow, split, squeeze, transpose, unsqueeze, vstack
from fnad.torch._tensor import Tensor, make, method


def _each(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(*tensors: Any) -> Any:
        parts = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors
        out = tuple(lift(function)(x) for x in parts)
        return out[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else out

    call.__name__ = function.__name__
    call.__doc__ = f"`numpy.{function.__name__}`."
    return call


atleast_2d, atleast_3d = _each(np.atleast_2d), _each(np.atleast_3d)
fliplr, flipud = method("fliplr")(lift(np.fliplr, "fliplr")), method("flipud")(lift(np.flipud, "flipud"))
rot90 = lift(np.rot90, "rot90")
row_stack = vstack


def dstack(tensors: Any) -> Any:
    """One behind the other, along the third axis."""
    return lift(np.dstack, "dstack")(list(tensors))


def column_stack(tensors: Any) -> Any:
    """Vectors as columns, and matrices, side by side."""
    return hstack([x.reshape(-1, 1) if x._data.ndim < 2 else x for x in tensors])


def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal of one that is 0 elsewhere."""
    parts = [x.reshape(1, -1) if x._data.ndim < 2 else x for x in tensors]
    width = sum(x._data.shape[1] for x in parts)
    rows, left = [], 0
    for x in parts:
        n, m = x._data.shape
        rows.append(cat([x.new_zeros(n, left), x, x.new_zeros(n, width - left - m)], 1))
        left += m
    return cat(rows, 0)


@method()
def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Parts of an axis: so many that differ in size by 1 at most, or between given places."""
    n = input._data.shape[dim]
    given = indices_or_sections.tolist() if isinstance(indices_or_sections, Tensor) else indices_or_sections
    if isinstance(given, int):
        sizes = [n // given + (k < n % given) for k in range(given)]
        return split(input, sizes, dim)
    ends = [0, *(min(max(i if i >= 0 else i + n, 0), n) for i in given), n]
    return tuple(narrow(input, dim, a, max(b - a, 0)) for a, b in itertools.pairwise(ends))


def _split_along(name: str, axis: int) -> Callable[[Any, Any], Any]:
    def call(input: Any, indices_or_sections: Any) -> Any:
        dim = 0 if name == "hsplit" and input._data.ndim == 1 else axis
        n = input._data.shape[dim]
        if isinstance(indices_or_sections, int) and n % indices_or_sections:
            raise RuntimeError(f"torch.{name}: the size {n} of dimension {dim} is not divisible by the split_size {indices_or_sections}")
        return tensor_split(input, indices_or_sections, dim)

    call.__name__, call.__doc__ = name, f"Parts along axis {axis}."
    return method(name)(call)


hsplit, vsplit, dsplit = (_split_along(n, a) for n, a in (("hsplit", 1), ("vsplit", 0), ("dsplit", 2)))
split_with_sizes = method("split_with_sizes")(split)


@method()
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The last axis as diagonals of matrices."""
    n = input._data.shape[-1] + abs(offset)
    where = np.arange(input._data.shape[-1])
    out = input.new_zeros(*input._data.shape[:-1], n, n)
    out[..., make(where + max(-offset, 0)), make(where + max(offset, 0))] = input
    return out.movedim((-2, -1), (dim1, dim2))


@method()
def diagflat(input: Any, offset: int = 0) -> Any:
    """All entries as the diagonal of a matrix."""
    return diag_embed(input.reshape(-1), offset)


@method()
def unfold(self: Any, dimension: int, size: int, step: int) -> Any:
    """All slices of an axis of a size, in steps, as a last axis."""
    axis = normalise_axis(dimension, max(self._data.ndim, 1))
    n = self._data.shape[axis]
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {dimension} is {n} but size is {size}")
    starts = np.arange(0, n - size + 1, step)
    where = starts[:, None] + np.arange(size)
    return self[(slice(None),) * axis + (make(where),)].movedim(axis + 1, -1)


def _changed_copy(x: Any, key: Any, src: Any) -> Any:
    out = x.clone()
    out[key] = src
    return out


@method()
def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """A copy with other entries at a place of an axis."""
    return _changed_copy(input, (slice(None),) * normalise_axis(dim, input._data.ndim) + (index,), src)


@method()
def slice_scatter(input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """A copy with other entries in a range of an axis."""
    return _changed_copy(input, (slice(None),) * normalise_axis(dim, input._data.ndim) + (slice(start, end, step),), src)


@method()
def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A copy with another diagonal."""
    out = input.clone()
    out.diagonal(offset, dim1, dim2).copy_(src)
    return out


@method()
def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """The entries of `source`, in order, where the mask is true."""
    where = np.broadcast_to(mask._data, input._data.shape)
    count = int(where.sum())
    if count > source._data.size:
        raise RuntimeError(f"masked_scatter: expected at least {count} entries of the source, but got {source._data.size}")
    return _changed_copy(input, make(where.copy()), source.reshape(-1)[:count])


@method()
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Other values at positions; added, if `accumulate`."""
    key = tuple(i._data if isinstance(i, Tensor) else slice(None) if i is None else i for i in indices)
    given = cast(values, input._data.dtype)
    return run(lambda x, v: at(x)[key].add(v) if accumulate else at(x)[key].set(v), (input, given), {}, "index_put")


@method()
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """Entries of `src` put where `index` says: their sum, prod, mean, amax or amin, with the entry that is there if `include_self`."""
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}.")
    if reduce == "sum" and include_self:
        return scatter(input, dim, index, src, reduce="add")
    axis = normalise_axis(dim, max(input._data.ndim, 1))
    grids = np.meshgrid(*map(np.arange, index._data.shape), indexing="ij", sparse=True)
    key = tuple(index._data if k == axis else g for k, g in enumerate(grids))
    part = src[tuple(slice(n) for n in index._data.shape)]
    counts = np.zeros(input._data.shape, input._data.dtype)
    np.add.at(counts, key, 1)
    start = {"sum": 0, "mean": 0, "prod": 1, "amax": _least(input, np.less), "amin": _least(input, np.greater)}[reduce]

    def call(x: Any, v: Any) -> Any:
        base = x if include_self else np.where(counts > 0, array(x).dtype.type(start), x)
        place = at(base)[key]
        if reduce in ("sum", "mean"):
            total = place.add(v)
            return total if reduce == "sum" else total / np.maximum(counts + include_self, 1)
        return place.multiply(v) if reduce == "prod" else place.max(v) if reduce == "amax" else place.min(v)

    return run(call, (input, part), {}, "scatter_reduce")


def _least(x: Any, order: Any) -> Any:
    """What every entry of a dtype is larger (or smaller) than."""
    dtype = x._data.dtype
    low = order(0, 1)
    if dtype.kind == "f":
        return -np.inf if low else np.inf
    return np.iinfo(dtype).min if low else np.iinfo(dtype).max


for _f in (masked_scatter, index_put, scatter_reduce):
    in_place(_f, f"{_f.__name__}_")


@method()
def fill_diagonal_(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    """A number on the diagonal, in place."""
    if wrap:
        raise UnsupportedError("fnad.torch: fill_diagonal_ does not go on below", got={"wrap": wrap})
    self.diagonal().fill_(fill_value)
    return self


def _reshaping(name: str, function: Callable[..., Any]) -> None:
    """The method that changes the shape of a tensor itself."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._req or self._view is not None or isinstance(self._data, Tracer):
            raise UnsupportedError(
                f"fnad.torch: {name}_ of a tensor that is recorded, or a view", fix=f"write x = x.{name}(...) instead of x.{name}_(...)"
            )
        self._data = function(make(self._data), *args, **kwargs)._data
        return self

    call.__name__, call.__doc__ = f"{name}_", f"`{name}`, of the tensor itself, which must not be recorded."
    method(f"{name}_")(call)


for _name, _function in (("squeeze", squeeze), ("unsqueeze", unsqueeze), ("transpose", transpose), ("swapaxes", transpose)):
    _reshaping(_name, _function)
_reshaping("t", lambda x: x.t())


@method()
def sum_to_size(self: Any, *size: Any) -> Any:
    """Sums over axes, until the shape is another one that broadcasts to it."""
    wanted = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    lead = self._data.ndim - len(wanted)
    out = self.sum(tuple(range(lead))) if lead else self
    axes = tuple(i for i, n in enumerate(wanted) if n == 1 and out._data.shape[i] != 1)
    return out.sum(axes, keepdim=True) if axes else out


swapdims = transpose
__all__ = [
    "atleast_2d", "atleast_3d", "block_diag", "column_stack", "diag_embed", "diagflat", "diagonal_scatter", "dsplit", "dstack", "fliplr",
    "flipud", "hsplit", "index_put", "masked_scatter", "rot90", "row_stack", "scatter_reduce", "select_scatter", "slice_scatter",
    "split_with_sizes", "swapdims", "tensor_split", "vsplit",
]  # fmt: skip
