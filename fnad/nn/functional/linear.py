"""Functions that take weights: linear and bilinear maps, tables of vectors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, BoundsError, DTypeError, ShapeError
from fnad.nn.functional._arguments import array
from fnad.numpy.at import at
from fnad.primitives.indexing import gather
from fnad.primitives.shape import stop
from fnad.typing import Array, ArrayLike


def linear(input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Array:
    """x @ weight.T + bias.

    (..., n), (m, n), (m,) -> (..., m); a weight of shape (n,) gives (...).

    Args:
        input: Array whose last axis has the size n.
        weight: One row per output.
        bias: Added to the result, or None.

    Returns:
        An array of the operands' common dtype.

    Raises:
        ShapeError: the last axes of input and weight differ.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.linear(np.array([1.0, 2.0]), np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]]), np.ones(3))
        array([2., 4., 7.])

    Reference: `torch.nn.functional.linear`.
    """
    x, w = array(input), array(weight)
    if len(shape_of(w)) not in (1, 2) or not shape_of(x) or shape_of(x)[-1] != shape_of(w)[-1]:
        raise ShapeError("linear: input (..., n) and weight (m, n) or (n,)", got={"input": aval_of(x), "weight": aval_of(w)})
    out = np.matmul(x, w.T)
    return out if bias is None else out + array(bias)


def bilinear(input1: ArrayLike, input2: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Array:
    """sum over i, j of input1[i] weight[k, i, j] input2[j], plus bias[k].

    (..., n), (..., m), (o, n, m), (o,) -> (..., o)

    Args:
        input1: Array whose last axis has the size n.
        input2: Array whose last axis has the size m, with the other axes of `input1`.
        weight: One matrix per output.
        bias: Added to the result, or None.

    Returns:
        An array of the operands' common dtype.

    Raises:
        ShapeError: the axes do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.bilinear(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.eye(2)[None])
        array([11.])

    Reference: `torch.nn.functional.bilinear`.
    """
    x, y, w = array(input1), array(input2), array(weight)
    shapes = shape_of(x), shape_of(y), shape_of(w)
    if len(shapes[2]) != 3 or shapes[0][-1:] != shapes[2][1:2] or shapes[1][-1:] != shapes[2][2:] or shapes[0][:-1] != shapes[1][:-1]:
        raise ShapeError(
            "bilinear: input1 (..., n), input2 (..., m) and weight (o, n, m)",
            got={"input1": aval_of(x), "input2": aval_of(y), "weight": aval_of(w)},
        )
    outputs, n, m = shapes[2]
    half = np.reshape(np.matmul(x, np.reshape(np.swapaxes(w, 0, 1), (n, outputs * m))), (*shapes[0][:-1], outputs, m))
    out = np.matmul(half, y[..., None])[..., 0]
    return out if bias is None else out + array(bias)


def embedding(input: ArrayLike, weight: ArrayLike, padding_idx: int | None = None, *, scale_grad_by_freq: bool = False) -> Array:
    """The rows of a table at given numbers: (...), (rows, n) -> (..., n).

    Args:
        input: Integers in [0, rows).
        weight: The table.
        padding_idx: A row that gets no gradient; a negative one counts from the end.
        scale_grad_by_freq: Whether the gradient of a row is divided by how often its number occurs.

    Returns:
        An array of the table's dtype.

    Raises:
        BoundsError: (an IndexError) a number lies outside the table.
        DTypeError: the numbers are no integers.

    Example:
        >>> import numpy as np, fnad
        >>> from fnad.nn import functional as F
        >>> rows = np.array([2, 0, 2])
        >>> F.embedding(rows, np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        array([[5., 6.],
               [1., 2.],
               [5., 6.]])
        >>> fnad.grad(lambda w: np.sum(F.embedding(rows, w, padding_idx=0)))(np.zeros((3, 2)))
        array([[0., 0.],
               [0., 0.],
               [2., 2.]])

    Reference: `torch.nn.functional.embedding`, without `max_norm` (which changes the table) and `sparse`.
    """
    x, w = array(input), array(weight)
    if x.dtype.kind not in "iu":
        raise DTypeError("embedding: the numbers of rows are integers", got={"input": aval_of(x)})
    if len(shape_of(w)) != 2:
        raise ShapeError("embedding: the weight is a table (rows, n)", got={"weight": aval_of(w)})
    rows = shape_of(w)[0]
    if isinstance(x, Tracer):
        where = np.where(np.less(x, 0), rows, x)  # out of bounds, where a negative index would count from the end
    else:
        where = x
        bad = (x < 0) | (x >= rows)
        if bad.any():
            raise BoundsError("embedding: a number of a row lies in [0, rows)", got={"number": x[bad][0], "rows": rows})
    out = gather(w, where, axis=0)
    if scale_grad_by_freq:
        often = gather(at(np.zeros(rows, w.dtype))[where].add(w.dtype.type(1)), where, axis=0)
        out = stop(out) + (out - stop(out)) / often[..., None]
    if padding_idx is None:
        return out
    pad = operator.index(padding_idx)
    if not -rows <= pad < rows:
        raise ArgumentError("embedding: padding_idx is the number of a row", got={"padding_idx": pad, "rows": rows})
    return np.where(np.equal(x, pad % rows)[..., None], stop(out), out)


def embedding_bag(
    input: ArrayLike,
    weight: ArrayLike,
    offsets: ArrayLike | None = None,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    per_sample_weights: ArrayLike | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Array:
    """Sums, means or largest entries of rows of a table, over bags of numbers: (b, s), (rows, n) -> (b, n).

    Args:
        input: Integers in [0, rows): a bag per row, or, with `offsets`, all bags one after the other.
        weight: The table.
        offsets: Where each bag begins, (b,); plain numbers.
        scale_grad_by_freq: Whether the gradient of a row is divided by how often its number occurs.
        mode: "sum", "mean" or "max".
        per_sample_weights: What each row is multiplied by in the mode "sum", of the shape of `input`.
        include_last_offset: Whether the last offset is the end of the last bag.
        padding_idx: A number that counts for nothing.

    Returns:
        An array of the table's dtype; an empty bag gives 0.

    Raises:
        ShapeError, ArgumentError: the arguments do not fit.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> table = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> F.embedding_bag(np.array([0, 1, 2]), table, np.array([0, 2]), mode="sum")
        array([[4., 6.],
               [5., 6.]])

    Reference: `torch.nn.functional.embedding_bag`, without `max_norm` (which changes the table) and `sparse`.
    """
    x, w = array(input), array(weight)
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError("embedding_bag: mode is 'sum', 'mean' or 'max'", got={"mode": repr(mode)})
    if per_sample_weights is not None and mode != "sum":
        raise ArgumentError("embedding_bag: per_sample_weights are for the mode 'sum'", got={"mode": repr(mode)})
    if len(shape_of(x)) != (2 if offsets is None else 1):
        raise ShapeError("embedding_bag: input (b, s), or (s,) with offsets", got={"input": aval_of(x), "offsets": offsets})
    inside: Any = np.ones(shape_of(x), bool)
    factors = None if per_sample_weights is None else array(per_sample_weights)
    if factors is not None and shape_of(factors) != shape_of(x):
        raise ShapeError("embedding_bag: a weight per number", got={"input": aval_of(x), "per_sample_weights": aval_of(factors)})
    if offsets is not None:
        at_, inside = _bags(offsets, shape_of(x)[0], include_last_offset)
        x, factors = x[at_], None if factors is None else factors[at_]
    if padding_idx is not None:
        inside = inside & np.not_equal(x, operator.index(padding_idx) % shape_of(w)[0])
    vectors = embedding(x, w, padding_idx, scale_grad_by_freq=scale_grad_by_freq)
    if mode == "max":
        return _largest_rows(vectors, inside)
    total = np.sum(np.where(inside[..., None], vectors if factors is None else vectors * factors[..., None], w.dtype.type(0)), axis=1)
    return total if mode == "sum" else total / np.maximum(np.sum(inside, axis=1), 1).astype(w.dtype)[:, None]


def _bags(offsets: Any, count: int, with_end: bool) -> tuple[Any, Any]:
    """For each bag the positions of its numbers, filled up to the size of the largest one, and which of them are its own."""
    starts = np.asarray(offsets)
    ends = starts[1:] if with_end else np.append(starts[1:], count)
    starts = starts[:-1] if with_end else starts
    if starts.size and (starts[0] != 0 or (starts > ends).any() or ends[-1] > count):
        raise ArgumentError("embedding_bag: offsets begin with 0 and never fall", got={"offsets": offsets, "numbers": count})
    place = starts[:, None] + np.arange(max(int((ends - starts).max(initial=0)), 1 if count else 0))
    inside = place < ends[:, None]
    return np.where(inside, place, 0), inside


def _largest_rows(vectors: Any, inside: Any) -> Any:
    """The largest entries of each bag, of which the first gets the gradient."""
    if not shape_of(vectors)[1]:
        return np.zeros((shape_of(vectors)[0], shape_of(vectors)[2]), vectors.dtype)
    shown = np.where(inside[..., None], vectors, vectors.dtype.type(-np.inf))
    best = np.take_along_axis(shown, np.argmax(stop(shown), axis=1, keepdims=True), 1)[:, 0]
    return np.where(np.any(inside, axis=1)[:, None], best, vectors.dtype.type(0))


def one_hot(input: ArrayLike, num_classes: int = -1) -> Array:
    """1 at the place that each number names, 0 elsewhere: (...) -> (..., num_classes).

    Args:
        input: Integers in [0, num_classes).
        num_classes: How many places; -1 for one more than the largest number, which then must be known.

    Returns:
        An int64 array.

    Raises:
        BoundsError: (an IndexError) a number lies outside.
        DTypeError: the numbers are no integers.

    Example:
        >>> import numpy as np
        >>> from fnad.nn import functional as F
        >>> F.one_hot(np.array([0, 2]))
        array([[1, 0, 0],
               [0, 0, 1]])

    Reference: `torch.nn.functional.one_hot`.
    """
    x: Any = array(input)
    if x.dtype.kind not in "iu":
        raise DTypeError("one_hot: the numbers of classes are integers", got={"input": aval_of(x)})
    known = not isinstance(x, Tracer)
    if num_classes == -1:
        if not known or x.size == 0:
            raise ArgumentError("one_hot: num_classes must be given where the numbers are not known", got={"input": aval_of(x)})
        num_classes = int(x.max()) + 1
    if known and x.size and (x.min() < 0 or x.max() >= num_classes):
        got = {"smallest": x.min(), "largest": x.max(), "num_classes": num_classes}
        raise BoundsError("one_hot: a number lies in [0, num_classes)", got=got)
    return np.equal(x[..., None], np.arange(num_classes)).astype(np.int64)
