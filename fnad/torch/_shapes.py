"""Shape, order of axes, joining and splitting."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.tracer import Tracer
from fnad.numpy import joining, padding, shaping
from fnad.numpy.at import at
from fnad.numpy.metadata import normalise_axis
from fnad.primitives import shape as prims
from fnad.torch import _dtypes
from fnad.torch._call import cast, in_place, lift, prim, run, view
from fnad.torch._dtypes import as_numpy, common
from fnad.torch._mode import STATE
from fnad.torch._tensor import Size, make, method
from fnad.torch._views import View


def sizes_of(shape: Sequence[Any]) -> tuple[int, ...]:
    """Sizes given one by one, or as one sequence."""
    if len(shape) == 1 and not isinstance(shape[0], int | np.integer) and not hasattr(shape[0], "_data"):
        shape = shape[0]
    return tuple(map(operator.index, shape))


def _filled(shape: tuple[int, ...], size: int, have: Any) -> tuple[int, ...]:
    if -1 in shape:
        rest = -math.prod(shape)
        if shape.count(-1) > 1:
            raise RuntimeError("only one dimension can be inferred")
        if rest == 0 or size % rest:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
        return tuple(size // rest if n == -1 else n for n in shape)
    if math.prod(shape) != size:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return shape


def _reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    """A view under another shape; what is changed in it goes back under the old one."""
    return view(x, prims.reshape, {"shape": shape}, lambda base, v: prim(prims.reshape, v, shape=base._data.shape))


def _reordered(x: Any, axes: tuple[int, ...]) -> Any:
    """A view with its axes in another order; what is changed in it goes back in the old one."""
    back = tuple(int(a) for a in np.argsort(axes))
    return view(x, prims.transpose, {"axes": axes}, lambda base, v: prim(prims.transpose, v, axes=back))


def reshape(input: Any, *shape: Any) -> Any:
    """The entries under another shape; one size may be -1."""
    data = input._data
    return _reshaped(input, _filled(sizes_of(shape), data.size, data.shape))


method("reshape")(reshape)


@method("view")
def _view(self: Any, *shape: Any) -> Any:
    """As `reshape`, always on the same memory."""
    if len(shape) == 1 and isinstance(shape[0], _dtypes.dtype):
        return make(self._data.view(as_numpy(shape[0])), self._counter)
    out = reshape(self, *shape)
    if out._view is None and isinstance(self._data, np.ndarray) and self._data.size and not np.may_share_memory(out._data, self._data):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
            "subspaces). Use .reshape(...) instead."
        )
    return out


@method()
def view_as(self: Any, other: Any) -> Any:
    return self.view(other._data.shape)


@method()
def reshape_as(self: Any, other: Any) -> Any:
    return reshape(self, other._data.shape)


@method()
def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Axes from `start_dim` to `end_dim` as one."""
    shape = input._data.shape
    if not shape:
        return reshape(input, 1)
    first, last = normalise_axis(start_dim, len(shape)), normalise_axis(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last:
        return input
    return reshape(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


@method()
def unflatten(input: Any, dim: int, sizes: Any) -> Any:
    """One axis as several."""
    shape = input._data.shape
    axis = normalise_axis(dim, len(shape))
    return reshape(input, (*shape[:axis], *_filled(tuple(sizes), shape[axis], None), *shape[axis + 1 :]))


@method()
def ravel(input: Any) -> Any:
    """All axes as one."""
    return reshape(input, -1)


@method()
def squeeze(input: Any, dim: Any = None) -> Any:
    """Without axes of size 1: all of them, or those named (if their size is 1)."""
    shape = input._data.shape
    dims = (
        range(len(shape)) if dim is None else [normalise_axis(d, max(len(shape), 1)) for d in (dim if isinstance(dim, tuple) else (dim,))]
    )
    return _reshaped(input, tuple(n for i, n in enumerate(shape) if not (i in dims and n == 1)))


@method()
def unsqueeze(input: Any, dim: int) -> Any:
    """With a new axis of size 1."""
    shape = input._data.shape
    axis = normalise_axis(dim, len(shape) + 1)
    return _reshaped(input, (*shape[:axis], 1, *shape[axis:]))


@method()
def permute(input: Any, *dims: Any) -> Any:
    """The axes in another order."""
    n = input._data.ndim
    axes = tuple(normalise_axis(d, n) for d in sizes_of(dims))
    if sorted(axes) != list(range(n)):
        raise RuntimeError(f"permute: the axes of the tensor, each once, are expected; got {dims}")
    return _reordered(input, axes)


@method("transpose", "swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Two axes exchanged."""
    axes = list(range(input._data.ndim))
    if not axes:
        return input
    i, j = normalise_axis(dim0, len(axes)), normalise_axis(dim1, len(axes))
    axes[i], axes[j] = axes[j], axes[i]
    return _reordered(input, tuple(axes))


@method()
def t(input: Any) -> Any:
    """The transpose of a matrix; a vector stays."""
    if input._data.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._data.ndim}D")
    return transpose(input, 0, 1) if input._data.ndim == 2 else input


method("T")(property(lambda self: _reordered(self, tuple(reversed(range(self._data.ndim))))))
method("mT")(property(lambda self: transpose(self, -2, -1)))


@method("movedim", "moveaxis")
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Axes at other places."""
    n = input._data.ndim
    src = [normalise_axis(d, n) for d in (source if isinstance(source, tuple | list) else (source,))]
    dst = [normalise_axis(d, n) for d in (destination if isinstance(destination, tuple | list) else (destination,))]
    axes = [a for a in range(n) if a not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        axes.insert(d, s)
    return permute(input, *axes)


@method()
def expand(input: Any, *sizes: Any) -> Any:
    """Axes of size 1 repeated without copying, and new ones in front; -1 leaves a size."""
    shape, wanted = input._data.shape, sizes_of(sizes)
    lead = len(wanted) - len(shape)
    full = tuple(shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(wanted))
    try:
        return view(input, prims.broadcast_to, {"shape": full})
    except ValueError:
        raise RuntimeError(
            f"The expanded size of the tensor {list(wanted)} must match the existing size {list(shape)} where that is not 1"
        ) from None


@method()
def expand_as(self: Any, other: Any) -> Any:
    return expand(self, other._data.shape)


@method()
def broadcast_to(input: Any, size: Any) -> Any:
    """See `expand`."""
    return expand(input, size)


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """The tensors, expanded to their common shape."""
    shape = np.broadcast_shapes(*[x._data.shape for x in tensors])
    return tuple(expand(x, shape) for x in tensors)


def broadcast_shapes(*shapes: Any) -> Size:
    """The common shape."""
    return Size(np.broadcast_shapes(*shapes))


_tile = lift(shaping.tile)


@method()
def repeat(self: Any, *sizes: Any) -> Any:
    """The tensor, side by side with itself along each axis."""
    wanted = sizes_of(sizes)
    if len(wanted) < self._data.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return _tile(self, wanted)


@method()
def tile(input: Any, *dims: Any) -> Any:
    """As `repeat`; axes that are not named come in front."""
    return _tile(input, sizes_of(dims))


@method()
def repeat_interleave(input: Any, repeats: Any, dim: Any = None) -> Any:
    """Each entry (along an axis) several times."""
    return lift(shaping.repeat)(input, repeats if isinstance(repeats, int) else repeats._data, dim)


_roll, _flip = lift(shaping.roll), lift(shaping.flip)


@method()
def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Entries moved along axes; those that leave come in at the other end."""
    return _roll(input, shifts, dims)


@method()
def flip(input: Any, *dims: Any) -> Any:
    """Axes the other way round."""
    return _flip(input, sizes_of(dims))


method("rot90")(lift(shaping.rot90))
_stack, _concatenate = lift(joining.stack), lift(joining.concatenate)


def _alike(tensors: Any) -> list[Any]:
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("expected a non-empty list of Tensors")
    dtype = common([x._data for x in tensors], [])
    return [cast(x, dtype) for x in tensors]


def cat(tensors: Any, dim: int = 0) -> Any:
    """The tensors one after the other along an axis."""
    parts = _alike(tensors)
    if any(x._data.ndim == 0 for x in parts):
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    ndim = max(x._data.ndim for x in parts)
    parts = [x for x in parts if x._data.shape != (0,) or ndim == 1]
    axis = normalise_axis(dim, ndim)
    try:
        return prim(prims.concatenate, *parts, axis=axis)
    except ValueError as e:
        raise RuntimeError(f"Sizes of tensors must match except in dimension {axis}: {[tuple(x._data.shape) for x in parts]}") from e


def stack(tensors: Any, dim: int = 0) -> Any:
    """The tensors side by side along a new axis."""
    parts = _alike(tensors)
    if any(x._data.shape != parts[0]._data.shape for x in parts):
        raise RuntimeError(f"stack expects each tensor to be equal size, but got {[list(x._data.shape) for x in parts]}")
    return prim(prims.stack, *parts, axis=normalise_axis(dim, parts[0]._data.ndim + 1))


def hstack(tensors: Any) -> Any:
    """Side by side."""
    return lift(joining.hstack)(_alike(tensors))


def vstack(tensors: Any) -> Any:
    """One above the other."""
    return lift(joining.vstack)(_alike(tensors))


@method()
def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """A range of an axis."""
    axis = normalise_axis(dim, input._data.ndim)
    return input[(slice(None),) * axis + (slice(start, start + length),)]


@method()
def select(input: Any, dim: int, index: int) -> Any:
    """One place of an axis, which goes."""
    axis = normalise_axis(dim, input._data.ndim)
    return input[(slice(None),) * axis + (index,)]


@method()
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """The places of an axis, one by one."""
    axis = normalise_axis(dim, input._data.ndim)
    return tuple(select(input, axis, i) for i in range(input._data.shape[axis]))


@method()
def split(input: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Parts of an axis, of one size (the last may be smaller) or of given sizes."""
    axis = normalise_axis(dim, input._data.ndim)
    n = input._data.shape[axis]
    if isinstance(split_size_or_sections, int):
        k = split_size_or_sections
        sizes = [min(k, n - i) for i in range(0, n, k)] or [0]
    else:
        sizes = list(split_size_or_sections)
        if sum(sizes) != n:
            raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {n}, but got split_sizes={sizes}")
    starts = np.cumsum([0, *sizes])[:-1].tolist()
    return tuple(narrow(input, axis, s, k) for s, k in zip(starts, sizes, strict=True))


@method()
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """At most so many parts of an axis, all of one size but the last."""
    return split(input, max(1, -(-input._data.shape[dim] // chunks)), dim)


@method()
def contiguous(self: Any, **_: Any) -> Any:
    """The tensor with its entries in order in memory; itself, if they are."""
    return self if self._data.flags.c_contiguous else clone(self)


@method()
def clone(input: Any, **_: Any) -> Any:
    """A copy, recorded."""
    out = prim(prims.reshape, input, shape=input._data.shape)
    out._data = input._data.copy()
    return out


tril, triu = lift(padding.tril), lift(padding.triu)
diag = lift(padding.diag)


@method()
def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of two axes, as a last axis: a view."""
    n = input._data.ndim
    first, second = normalise_axis(dim1, n), normalise_axis(dim2, n)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = input._data.shape[first], input._data.shape[second]
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    number = np.arange(count)
    rest = [a for a in range(n) if a not in (first, second)]
    key = (*(slice(None),) * len(rest), number - min(offset, 0), number + max(offset, 0))

    def put(base: Any, v: Any) -> Any:
        turned = permute(base, *rest, first, second)
        filled = run(lambda x, values: at(x)[key].set(values), (turned, v), {}, "diagonal")
        return permute(filled, *(int(a) for a in np.argsort([*rest, first, second])))

    def take(base: Any) -> Any:
        return diagonal_(base, offset, first, second)

    out = take(input)
    if isinstance(out._data, Tracer):
        input._viewed = out._viewed = True
        return out
    out._data, out._counter = np.diagonal(input._data, offset, first, second), input._counter
    out._data.flags.writeable = input._data.flags.writeable
    out._view = View(input, take, put, STATE.recording)
    return out


diagonal_ = lift(padding.diagonal)
for _name, _function in (("tril", tril), ("triu", triu), ("diag", diag)):
    method(_name)(_function)
in_place(tril, "tril_")
in_place(triu, "triu_")


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Any, ...]:
    """Vectors as the axes of a grid."""
    parts = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors
    return tuple(lift(joining.meshgrid)(*parts, indexing=indexing))


def atleast_1d(input: Any) -> Any:
    return reshape(input, 1) if input._data.ndim == 0 else input
