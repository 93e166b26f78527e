"""Functions that take weights: linear and bilinear maps, tables of vectors."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, shape_of
from fnad.core.tracer import Tracer
from fnad.errors import ArgumentError, BoundsError, DTypeError, ShapeError
from fnad.nn.functional._arguments import array
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


def embedding(input: ArrayLike, weight: ArrayLike, padding_idx: int | None = None) -> Array:
    """The rows of a table at given numbers: (...), (rows, n) -> (..., n).

    Args:
        input: Integers in [0, rows).
        weight: The table.
        padding_idx: A row that gets no gradient; a negative one counts from the end.

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

    Reference: `torch.nn.functional.embedding`, without `max_norm` (which changes the table), `scale_grad_by_freq` and `sparse`.
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
    if padding_idx is None:
        return out
    pad = operator.index(padding_idx)
    if not -rows <= pad < rows:
        raise ArgumentError("embedding: padding_idx is the number of a row", got={"padding_idx": pad, "rows": rows})
    return np.where(np.equal(x, pad % rows)[..., None], stop(out), out)


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
