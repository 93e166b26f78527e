"""Pooling to a given size: one number per part of the last axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.errors import ArgumentError, ShapeError
from fnad.nn.functional._arguments import floating, steps
from fnad.nn.functional.pooling import Sizes, largest
from fnad.primitives.indexing import gather
from fnad.primitives.pool import lowest
from fnad.typing import Array, ArrayLike


def adaptive_avg_pool1d(input: ArrayLike, output_size: Sizes | None) -> Array:
    """Means over parts of the last axis: (..., w) -> (..., output_size). As `adaptive_avg_pool2d` with one axis.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.adaptive_avg_pool1d(np.arange(5.0), 2)
        array([1., 3.])

    Reference: `torch.nn.functional.adaptive_avg_pool1d`.
    """
    return _adaptive_mean("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: ArrayLike, output_size: Any) -> Array:
    """Means over as many parts of the last two axes as are asked for: (..., h, w) -> (..., *output_size).

    Part i of m of an axis of size n goes from floor(i n / m) to ceil((i + 1) n / m).

    Args:
        input: Real array of at least two axes.
        output_size: One number, or one each; None stands for the input's size.

    Returns:
        An array of the input's dtype (float64 for integers).

    Raises:
        ShapeError: the input has too few axes.
        ArgumentError: a size is not positive.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.adaptive_avg_pool2d(np.arange(12.0).reshape(3, 4), (1, 2))
        array([[4.5, 6.5]])

    Reference: `torch.nn.functional.adaptive_avg_pool2d`.
    """
    return _adaptive_mean("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input: ArrayLike, output_size: Any) -> Array:
    """Means over parts of the last three axes: (..., d, h, w) -> (..., *output_size). As `adaptive_avg_pool2d`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.adaptive_avg_pool3d(np.arange(8.0).reshape(2, 2, 2), 1)
        array([[[3.5]]])

    Reference: `torch.nn.functional.adaptive_avg_pool3d`.
    """
    return _adaptive_mean("adaptive_avg_pool3d", 3, input, output_size)


def adaptive_max_pool1d(input: ArrayLike, output_size: Sizes | None, return_indices: bool = False) -> Any:
    """The largest entries of parts of the last axis: (..., w) -> (..., output_size). As `adaptive_max_pool2d` with one axis.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.adaptive_max_pool1d(np.arange(5.0), 2)
        array([2., 4.])

    Reference: `torch.nn.functional.adaptive_max_pool1d`.
    """
    return _adaptive_max("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: ArrayLike, output_size: Any, return_indices: bool = False) -> Any:
    """The largest entries of as many parts of the last two axes as are asked for: (..., h, w) -> (..., *output_size).

    Args:
        input: Real array of at least two axes.
        output_size: One number, or one each; None stands for the input's size. Parts are those of `adaptive_avg_pool2d`.
        return_indices: Whether it is also told where they were: int64 positions in the flattened last axes of the input.

    Returns:
        An array of the input's dtype (float64 for integers); with `return_indices`, a pair of it and the positions. Of
        several largest entries the first one gets the gradient.

    Raises:
        ShapeError: the input has too few axes.
        ArgumentError: a size is not positive.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.adaptive_max_pool2d(np.arange(12.0).reshape(3, 4), (1, 2))
        array([[ 9., 11.]])

    Reference: `torch.nn.functional.adaptive_max_pool2d`.
    """
    return _adaptive_max("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(input: ArrayLike, output_size: Any, return_indices: bool = False) -> Any:
    """The largest entries of parts of the last three axes: (..., d, h, w) -> (..., *output_size). As `adaptive_max_pool2d`.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.adaptive_max_pool3d(np.arange(8.0).reshape(2, 2, 2), 1)
        array([[[7.]]])

    Reference: `torch.nn.functional.adaptive_max_pool3d`.
    """
    return _adaptive_max("adaptive_max_pool3d", 3, input, output_size, return_indices)


def _sizes(name: str, rank: int, x: Any, output_size: Any) -> tuple[int, ...]:
    """The sizes asked for."""
    if len(shape_of(x)) < rank:
        raise ShapeError(f"{name}: the input has an axis for each size", got={"input": aval_of(x), "axes": rank})
    given = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,) * rank
    last = shape_of(x)[-rank:]
    if len(given) != rank:
        raise ArgumentError(f"{name}: output_size is one number, or {rank}", got={"output_size": output_size})
    return steps(tuple(n if m is None else m for n, m in zip(last, given, strict=True)), "output_size", 1, rank)


def _adaptive_mean(name: str, rank: int, input: Any, output_size: Any) -> Array:
    x = floating(input, name)
    for axis, m in zip(range(-rank, 0), _sizes(name, rank, x, output_size), strict=True):
        if shape_of(x)[axis] != m:
            x = np.swapaxes(_mean_of_parts(np.swapaxes(x, axis, -1), m), axis, -1)
    return x


def _adaptive_max(name: str, rank: int, input: Any, output_size: Any, indices: bool) -> Any:
    x = floating(input, name)
    wanted, inner, place = _sizes(name, rank, x, output_size), 1, None
    for axis in range(-1, -rank - 1, -1):  # the last axis first: of the largest entries the first one wins
        n = shape_of(x)[axis]
        if n != wanted[axis] or indices:
            x, where = (np.swapaxes(a, axis, -1) for a in _largest_of_parts(np.swapaxes(x, axis, -1), wanted[axis]))
            place = where * inner + (0 if place is None else np.take_along_axis(place, where, axis))
        inner *= n
    return (x, place) if indices else x


def _parts(n: int, m: int) -> tuple[Any, Any]:
    """Where the m parts of an axis of size n begin and end."""
    number = np.arange(m)
    return number * n // m, -(-(number + 1) * n // m)


def _mean_of_parts(x: Any, m: int) -> Any:
    """(..., n) -> (..., m), as a product with the matrix that takes means."""
    n = shape_of(x)[-1]
    start, stop = _parts(n, m)
    inside = (np.arange(n)[:, None] >= start) & (np.arange(n)[:, None] < stop)
    return np.matmul(x, (inside / (stop - start)).astype(x.dtype))


def _largest_of_parts(x: Any, m: int) -> tuple[Any, Any]:
    """(..., n) -> (..., m) and where they were, as windows of the size of the largest part, filled up with -inf."""
    n = shape_of(x)[-1]
    start, stop = _parts(n, m)
    width = int(np.max(stop - start))
    where = start[:, None] + np.arange(width)
    padded = np.concatenate([x, np.full((*shape_of(x)[:-1], 1), lowest(x.dtype), x.dtype)], axis=-1)
    spread = gather(padded, np.where(where < stop[:, None], where, n).reshape(-1), axis=len(shape_of(x)) - 1)
    out, place = largest(spread, (width,), (width,), ((0, 0),), (1,), True)
    return out, place - np.arange(m) * width + start
