"""Grids: borders, other sizes, channels as places and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError, UnsupportedError
from fnad.nn.functional._arguments import array, floating
from fnad.nn.functional.adaptive import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from fnad.primitives.indexing import gather
from fnad.typing import Array, ArrayLike

_MODES = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_PADS = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(input: ArrayLike, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Array:
    """An array with borders around its last axes.

    Args:
        input: Array.
        pad: (before, after) of the last axis, then of the one before, and so on; negative widths cut off.
        mode: "constant", "reflect" (without the edge), "replicate" (the edge) or "circular".
        value: What the border is filled with in the mode "constant"; None for 0.

    Returns:
        An array of the input's dtype.

    Raises:
        ArgumentError: an unknown mode, an odd number of widths, or more than twice the number of axes.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.pad(np.array([1.0, 2.0, 3.0]), (2, -1), "replicate")
        array([1., 1., 1., 2.])

    Reference: `torch.nn.functional.pad`.
    """
    x = array(input)
    rank = len(shape_of(x))
    if mode not in _PADS or len(pad) % 2 or len(pad) > 2 * rank:
        got = {"mode": repr(mode), "pad": tuple(pad), "input": aval_of(x)}
        raise ArgumentError("pad: two widths for each of the last axes, and mode 'constant', 'reflect', 'replicate' or 'circular'", got=got)
    if value is not None and mode != "constant":
        raise ArgumentError("pad: a value is for the mode 'constant'", got={"mode": repr(mode), "value": value})
    pairs = [(0, 0)] * (rank - len(pad) // 2) + [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    if mode != "constant":  # widths are relative to the input, so what is cut off is cut off afterwards
        x = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in pairs], mode=_PADS[mode])  # type: ignore[call-overload]
    kept = tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(shape_of(x), pairs, strict=True))
    if any(a < 0 or b < 0 for a, b in pairs):
        x = x[kept]
    if mode == "constant" and any(a > 0 or b > 0 for a, b in pairs):
        x = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in pairs], constant_values=x.dtype.type(0 if value is None else value))
    return x


def pixel_shuffle(input: ArrayLike, upscale_factor: int) -> Array:
    """Channels as places: (..., c r r, h, w) -> (..., c, h r, w r).

    Args:
        input: Array of at least three axes.
        upscale_factor: r

    Returns:
        An array of the input's dtype.

    Raises:
        ShapeError: r * r does not divide the channels.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.pixel_shuffle(np.arange(4.0).reshape(4, 1, 1), 2)
        array([[[0., 1.],
                [2., 3.]]])

    Reference: Shi et al., Real-Time Single Image and Video Super-Resolution, 2016; `torch.nn.functional.pixel_shuffle`.
    """
    x, r = array(input), upscale_factor
    if len(shape_of(x)) < 3 or r < 1 or shape_of(x)[-3] % (r * r):
        raise ShapeError("pixel_shuffle: input (..., c r r, h, w)", got={"input": aval_of(x), "upscale_factor": r})
    *lead, c, h, w = shape_of(x)
    n = len(lead)
    parts = np.reshape(x, (*lead, c // (r * r), r, r, h, w))
    return np.reshape(np.transpose(parts, (*range(n + 1), n + 3, n + 1, n + 4, n + 2)), (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(input: ArrayLike, downscale_factor: int) -> Array:
    """Places as channels, the inverse of `pixel_shuffle`: (..., c, h r, w r) -> (..., c r r, h, w).

    Args:
        input: Array of at least three axes.
        downscale_factor: r

    Returns:
        An array of the input's dtype.

    Raises:
        ShapeError: r does not divide height and width.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.pixel_unshuffle(np.arange(4.0).reshape(1, 2, 2), 2).ravel()
        array([0., 1., 2., 3.])

    Reference: `torch.nn.functional.pixel_unshuffle`.
    """
    x, r = array(input), downscale_factor
    if len(shape_of(x)) < 3 or r < 1 or shape_of(x)[-1] % r or shape_of(x)[-2] % r:
        raise ShapeError("pixel_unshuffle: input (..., c, h r, w r)", got={"input": aval_of(x), "downscale_factor": r})
    *lead, c, h, w = shape_of(x)
    n = len(lead)
    parts = np.reshape(x, (*lead, c, h // r, r, w // r, r))
    return np.reshape(np.transpose(parts, (*range(n + 1), n + 2, n + 4, n + 1, n + 3)), (*lead, c * r * r, h // r, w // r))


def channel_shuffle(input: ArrayLike, groups: int) -> Array:
    """Channels of g groups mixed: those that come first in each group, then those that come second, and so on.

    Args:
        input: (n, c, ...)
        groups: g, which divides c.

    Returns:
        An array of the input's shape and dtype.

    Raises:
        ShapeError: the groups do not divide the channels.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.channel_shuffle(np.arange(4.0).reshape(1, 4, 1), 2).ravel()
        array([0., 2., 1., 3.])

    Reference: Zhang et al., ShuffleNet, 2018; `torch.nn.functional.channel_shuffle`.
    """
    x = array(input)
    if len(shape_of(x)) < 3 or groups < 1 or shape_of(x)[1] % groups:
        raise ShapeError("channel_shuffle: input (n, c, ...) where groups divides c", got={"input": aval_of(x), "groups": groups})
    n, c, *rest = shape_of(x)
    return np.reshape(np.swapaxes(np.reshape(x, (n, groups, c // groups, *rest)), 1, 2), (n, c, *rest))


def interpolate(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:
    """Grids in another size: (n, c, *size) -> (n, c, *new size), with one to three last axes.

    Args:
        input: Real array of three to five axes.
        size: The new sizes: one number, or one each; or None.
        scale_factor: By what the sizes are multiplied: one number, or one each; or None.
        mode: "nearest", "nearest-exact", "area" (means); "linear", "bilinear" or "trilinear" for one, two or three last axes; "bicubic"
            for two.
        align_corners: For the linear and cubic modes: whether the centres of the first and last entries stay in place, rather than
            their outer edges.
        recompute_scale_factor: Whether the scale is that of the sizes, after rounding.
        antialias: Not supported.

    Returns:
        An array of the input's dtype (float64 for integers).

    Raises:
        ShapeError, ArgumentError: arguments do not fit.
        UnsupportedError: `antialias`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.interpolate(np.array([[[0.0, 1.0]]]), scale_factor=2, mode="linear")
        array([[[0.  , 0.25, 0.75, 1.  ]]])

    Reference: `torch.nn.functional.interpolate`.
    """
    x = floating(input, "interpolate")
    rank = len(shape_of(x)) - 2
    if antialias:
        raise UnsupportedError("interpolate has no antialias", fix="blur with conv2d first, or use mode='area'")
    if not 1 <= rank <= 3 or _MODES.get(mode, rank) != rank or mode not in (*_MODES, "nearest", "nearest-exact", "area"):
        raise ArgumentError(
            "interpolate: input (n, c, *size), mode 'nearest', 'nearest-exact', 'area', or that for the number of last axes",
            got={"input": aval_of(x), "mode": repr(mode)},
        )
    if align_corners is not None and mode not in _MODES:
        raise ArgumentError("interpolate: align_corners is for the linear and cubic modes", got={"mode": repr(mode)})
    sizes, scales = _new_sizes(shape_of(x)[2:], size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[rank - 1](x, sizes)
    for axis, (new, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        if mode in _MODES:
            x = _resampled(x, axis, new, scale, bool(align_corners), 4 if mode == "bicubic" else 2)
        else:
            ratio = shape_of(x)[axis] / new if scale is None else 1 / scale
            where = np.floor((np.arange(new) + (0.5 if mode == "nearest-exact" else 0.0)) * ratio).astype(np.int64)
            x = gather(x, np.minimum(where, shape_of(x)[axis] - 1), axis=axis)
    return x


def _new_sizes(old: tuple[int, ...], size: Any, scale_factor: Any, recompute: bool | None) -> tuple[tuple[int, ...], list[float | None]]:
    """The new sizes, and the scales with which places are computed; None for those of the sizes."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError("interpolate: either size or scale_factor", got={"size": size, "scale_factor": scale_factor})
    given = size if scale_factor is None else scale_factor
    each = tuple(given) if isinstance(given, tuple | list) else (given,) * len(old)
    if len(each) != len(old):
        raise ArgumentError("interpolate: one size or scale for each of the last axes", got={"given": given, "axes": len(old)})
    if size is not None:
        new, scales = tuple(map(int, each)), [None] * len(old)
    else:
        new = tuple(math.floor(n * s) for n, s in zip(old, each, strict=True))
        scales = [None if recompute else s for s in each]
    if min(new) < 1:
        raise ArgumentError("interpolate: the new sizes are positive", got={"sizes": new})
    return new, list(scales)


def _resampled(x: Any, axis: int, new: int, scale: float | None, align_corners: bool, taps: int) -> Any:
    """Along one axis, from two neighbours linearly or from four by cubic polynomials."""
    old = shape_of(x)[axis]
    if align_corners:
        place = np.arange(new) * ((old - 1) / (new - 1) if new > 1 else 0.0)
    else:
        place = (np.arange(new) + 0.5) * (old / new if scale is None else 1 / scale) - 0.5
        place = place if taps == 4 else np.maximum(place, 0.0)
    low = np.floor(place).astype(np.int64)
    t = place - low
    weights = [1 - t, t] if taps == 2 else cubic_weights(t)
    first = 0 if taps == 2 else -1
    shape = (-1, *(1,) * (len(shape_of(x)) - axis - 1))
    total: Any = None
    for k, w in enumerate(weights):
        part = gather(x, np.clip(low + first + k, 0, old - 1), axis=axis) * w.reshape(shape).astype(x.dtype)
        total = part if total is None else total + part
    return total


def cubic_weights(t: Any, a: float = -0.75) -> list[Any]:
    """Weights of four neighbours: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981."""
    near = [((a + 2) * s - (a + 3)) * s * s + 1 for s in (t, 1 - t)]
    far = [((s - 5) * s + 8) * a * s - 4 * a for s in (1 + t, 2 - t)]
    return [far[0], near[0], near[1], far[1]]
