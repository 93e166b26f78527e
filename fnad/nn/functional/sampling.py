"""Images read at places of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError
from fnad.nn.functional._arguments import array, floating
from fnad.nn.functional.images import cubic_weights
from fnad.primitives.shape import stop
from fnad.typing import Array, ArrayLike


def affine_grid(theta: ArrayLike, size: Sequence[int], align_corners: bool = False) -> Array:
    """The places that affine maps send a regular grid to, for `grid_sample`.

    (n, 2, 3) -> (n, h, w, 2) for size (n, c, h, w); (n, 3, 4) -> (n, d, h, w, 3) for size (n, c, d, h, w)

    Args:
        theta: A matrix per example: it maps (x, y, 1) or (x, y, z, 1) of the output to the place in the input.
        size: The shape of the output.
        align_corners: Whether -1 and 1 are the centres of the first and last entries, rather than their outer edges.

    Returns:
        An array of the dtype of `theta` (float64 for integers).

    Raises:
        ShapeError: theta and size do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.affine_grid(np.eye(2, 3)[None], (1, 1, 1, 2))
        array([[[[-0.5,  0. ],
                 [ 0.5,  0. ]]]])

    Reference: Jaderberg et al., Spatial Transformer Networks, 2015; `torch.nn.functional.affine_grid`.
    """
    t = floating(theta, "affine_grid")
    sizes = tuple(size)[2:]
    rank = len(sizes)
    if rank not in (2, 3) or shape_of(t) != (size[0], rank, rank + 1) or min(sizes) < 1:
        raise ShapeError(
            "affine_grid: theta (n, 2, 3) and size (n, c, h, w), or theta (n, 3, 4) and size (n, c, d, h, w)",
            got={"theta": aval_of(t), "size": tuple(size)},
        )
    ticks = [_ticks(n, align_corners) for n in sizes]
    places = [*np.meshgrid(*ticks, indexing="ij")[::-1], np.ones(sizes)]
    rows = np.stack(places, -1).reshape(math.prod(sizes), rank + 1).astype(t.dtype)
    return np.reshape(np.matmul(rows, np.swapaxes(t, 1, 2)), (size[0], *sizes, rank))


def _ticks(n: int, align_corners: bool) -> Any:
    if n == 1:
        return np.zeros(1)
    return np.linspace(-1, 1, n) * (1 if align_corners else (n - 1) / n)


def grid_sample(
    input: ArrayLike, grid: ArrayLike, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Array:
    """Images read at given places, between their entries.

    (n, c, h, w), (n, oh, ow, 2) -> (n, c, oh, ow); (n, c, d, h, w), (n, od, oh, ow, 3) -> (n, c, od, oh, ow)

    Args:
        input: Images or volumes.
        grid: Places (x, y) or (x, y, z); -1 is the beginning of an axis and 1 its end.
        mode: "bilinear" (of volumes: along all three axes), "nearest", or, of images, "bicubic".
        padding_mode: What lies outside: "zeros", "border" (the nearest entry) or "reflection".
        align_corners: Whether -1 and 1 are the centres of the first and last entries, rather than their outer edges.

    Returns:
        An array of the input's dtype. It is differentiable by input and grid, by the latter with "nearest" as 0.

    Raises:
        ShapeError: the arguments do not fit.
        ArgumentError: an unknown mode.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> x = np.array([[[[0.0, 1.0], [2.0, 3.0]]]])
        >>> F.grid_sample(x, np.array([[[[0.0, 0.0], [-0.5, 0.5]]]]))
        array([[[[1.5, 2. ]]]])

    Reference: Jaderberg et al., Spatial Transformer Networks, 2015; `torch.nn.functional.grid_sample`.
    """
    x, g = floating(input, "grid_sample"), array(grid)
    n, c, *sizes = shape_of(x) if len(shape_of(x)) in (4, 5) else (0, 0)
    rank = len(sizes)
    if not sizes or len(shape_of(g)) != rank + 2 or shape_of(g)[0] != n or shape_of(g)[-1] != rank or min(sizes) < 1:
        raise ShapeError(
            "grid_sample: input (n, c, h, w) and grid (n, oh, ow, 2), or input (n, c, d, h, w) and grid (n, od, oh, ow, 3)",
            got={"input": aval_of(x), "grid": aval_of(g)},
        )
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and rank == 3):
        raise ArgumentError("grid_sample: mode is 'bilinear', 'nearest', or (of images) 'bicubic'", got={"mode": repr(mode)})
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError("grid_sample: padding_mode is 'zeros', 'border' or 'reflection'", got={"padding_mode": repr(padding_mode)})
    wanted = shape_of(g)[1:-1]
    points = np.reshape(g, (n, math.prod(wanted), rank))
    places = [_unscaled(points[..., rank - 1 - k], size, align_corners) for k, size in enumerate(sizes)]

    def inward(at: Any, size: int) -> Any:
        return _inward(at, size, padding_mode, align_corners)

    if mode != "bicubic":
        places = [inward(at, size) for at, size in zip(places, sizes, strict=True)]
    out = _weighted(x, [_TAPS[mode](at) for at in places], inward if mode == "bicubic" else None)
    return np.reshape(out, (n, c, *wanted))


def _unscaled(at: Any, size: int, align_corners: bool) -> Any:
    """From [-1, 1] to numbers of entries."""
    return (at + 1) * ((size - 1) / 2) if align_corners else ((at + 1) * size - 1) / 2


def _inward(at: Any, size: int, mode: str, align_corners: bool) -> Any:
    """Places outside moved to where their entry is taken from; where that is an end, the slope is 0."""
    if mode == "zeros":
        return at
    if mode == "reflection":
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            return at * 0
        gap = at - low
        gap = np.where(np.less(gap, 0), -gap, gap)
        turns = np.floor(stop(gap) / span)
        rest = gap - turns * span
        at = np.where(np.equal(turns % 2, 0), rest, span - rest) + low
    last = at.dtype.type(size - 1)
    return np.where(np.greater(at, 0), np.where(np.less(at, last), at, last), at.dtype.type(0))


Taps = list[tuple[Any, Any]]
"""Entries along an axis and their weights: numbers of entries, as floats, and how much each counts."""


def _nearest(at: Any) -> Taps:
    return [(np.round(stop(at)), np.where(np.zeros((), bool), at, at.dtype.type(1)))]  # the slope by the place is 0


def _linear(at: Any) -> Taps:
    low = np.floor(stop(at))
    t = at - low
    return [(low, 1 - t), (low + 1, t)]


def _cubic(at: Any) -> Taps:
    low = np.floor(stop(at))
    return [(low + k - 1, w) for k, w in enumerate(cubic_weights(at - low))]


_TAPS: dict[str, Callable[[Any], Taps]] = {"nearest": _nearest, "bilinear": _linear, "bicubic": _cubic}


def _weighted(x: Any, taps: list[Taps], inward: Any) -> Any:
    """The sum over all combinations of taps of (n, c, *sizes) entries, as (n, c, points)."""
    n, c, *sizes = shape_of(x)
    flat = np.reshape(x, (n, c, math.prod(sizes)))
    total: Any = 0
    for corner in product(*taps):
        place: Any = 0
        inside: Any = True
        share: Any = None
        for (number, weight), size in zip(corner, sizes, strict=True):
            where = number if inward is None else inward(number, size)
            inside = np.logical_and(inside, np.logical_and(np.greater_equal(where, 0), np.less_equal(where, size - 1)))
            place = place * size + np.clip(where, 0, size - 1)
            share = weight if share is None else share * weight
        inside = np.logical_and(inside, np.isfinite(place))
        index = np.where(inside, place, 0).astype(np.int64)
        values = np.take_along_axis(flat, np.broadcast_to(index[:, None], (n, c, shape_of(index)[-1])), 2)
        total = total + np.where(inside[:, None], values * share[:, None], x.dtype.type(0))
    return total
