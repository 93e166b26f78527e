"""einsum: diagonals, sums over lone indices, and pairwise contractions that are matrix products.

The subscripts and shapes are turned into a plan once (and cached); the plan then runs on the operands.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Collection, Sequence
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from fnad.core.aval import Aval, result_dtype
from fnad.core.dispatch import implements
from fnad.core.tracer import Tracer
from fnad.errors import ShapeError
from fnad.numpy.algebra import operand, reshaped, transposed
from fnad.numpy.reductions import refuse_out
from fnad.primitives import linalg as prims
from fnad.primitives import reduction
from fnad.typing import Shape

Index = str | int
"""A letter, or the position of an axis that an ellipsis stands for."""
Labels = tuple[Index, ...]
Term = tuple[str | EllipsisType, ...]
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@implements(np.einsum)
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """`np.einsum` with all its forms of subscripts; more than two operands are contracted in the order of `np.einsum_path`.

    Args:
        operands: Subscripts and arrays, or arrays and sublists of ints in turn.
        out: Must be None.
        optimize: As in NumPy; only the order of contractions depends on it (False is taken as True).
        kwargs: `dtype` and `casting` as in NumPy; `order` is accepted and does not matter.

    Raises:
        ShapeError: subscripts and operands do not fit.
        ValueError: the subscripts are malformed.

    Example:
        >>> import numpy as np, fnad
        >>> fnad.grad(lambda a: np.einsum("ij,ij->", a, a))(np.ones((2, 2)))
        array([[2., 2.],
               [2., 2.]])
    """
    refuse_out(out, "np.einsum")
    unknown = set(kwargs) - {"dtype", "casting", "order"}
    if unknown:
        raise TypeError(f"einsum() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    inputs, output, arrays = _read(operands)
    arrays = [operand(x) for x in arrays]
    plan = _plan(inputs, output, tuple(x.shape for x in arrays), _frozen(optimize))
    return plan.run(_common(arrays, kwargs.get("dtype"), kwargs.get("casting", "safe")))


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: Any = False) -> Any:
    """The order of contractions: a question about shapes, answered by NumPy on stand-ins."""
    plain: list[Any] = [_stand_in(x.shape) if isinstance(x, Tracer) else x for x in operands]
    return np.einsum_path(*plain, optimize=optimize, einsum_call=einsum_call)


def _common(arrays: list[Any], dtype: Any, casting: Any) -> list[Any]:
    """The operands in the dtype in which NumPy computes."""
    wanted = result_dtype(*[Aval((), x.dtype) for x in arrays]) if dtype is None else np.dtype(dtype)
    for i, x in enumerate(arrays):
        if x.dtype != wanted and not np.can_cast(x.dtype, wanted, casting):
            raise TypeError(f"einsum: operand {i} cannot be cast from {x.dtype} to {wanted} according to the rule {casting!r}")
    return [x if x.dtype == wanted else np.astype(x, wanted) for x in arrays]


def _stand_in(shape: Shape) -> Any:
    return np.broadcast_to(np.zeros(()), shape)


def _frozen(x: Any) -> Any:
    return tuple(map(_frozen, x)) if isinstance(x, list | tuple) else x


# -- subscripts ----------------------------------------------------------------------------------------------------


def _read(operands: tuple[Any, ...]) -> tuple[tuple[Term, ...], Term | None, list[Any]]:
    """Subscripts per operand, those of the output (None: implicit), and the operands."""
    if not operands:
        raise ValueError("einsum: give subscripts and at least one operand, or at least one operand and its subscripts")
    if isinstance(operands[0], str):
        inputs, output = _parse(operands[0])
        return inputs, output, list(operands[1:])
    n = len(operands) // 2
    given = tuple(_sublist(s) for s in operands[1 : 2 * n : 2])
    return given, _sublist(operands[-1]) if len(operands) % 2 else None, list(operands[0 : 2 * n : 2])


@functools.lru_cache(maxsize=512)
def _parse(subscripts: str) -> tuple[tuple[Term, ...], Term | None]:
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    return tuple(_letters(t) for t in left.split(",")), _letters(right) if arrow else None


def _letters(term: str) -> Term:
    head, dots, tail = term.partition("...")
    for c in head + tail:
        if c not in _LETTERS:
            rule = "a '.' that is not part of a single ellipsis ('...')" if c == "." else f"{c!r} where only letters may stand"
            raise ValueError(f"einsum: the subscripts {term!r} contain {rule}")
    return (*head, ..., *tail) if dots else tuple(head)


def _sublist(sublist: Any) -> Term:
    term: list[str | EllipsisType] = []
    for s in sublist:
        if s is not Ellipsis and not 0 <= operator.index(s) < len(_LETTERS):
            raise ValueError("einsum: each subscript must be an int in the range [0, 52) or an ellipsis")
        term.append(... if s is Ellipsis else _LETTERS[s])
    if term.count(...) > 1:
        raise ValueError("einsum: only one ellipsis may stand in a list of subscripts")
    return tuple(term)


def _resolve(inputs: tuple[Term, ...], output: Term | None, shapes: tuple[Shape, ...]) -> tuple[list[Labels], Labels]:
    """One index per axis: ellipses replaced by numbered axes, which line up from the right."""
    if len(inputs) != len(shapes):
        raise ShapeError("einsum: subscripts for each operand", got={"terms in the subscripts": len(inputs), "operands": len(shapes)})
    spare = []
    for i, (term, shape) in enumerate(zip(inputs, shapes, strict=True)):
        n = len(shape) - len(term) + (... in term)
        if n < 0 or (n > 0 and ... not in term):
            raise ShapeError(
                "einsum: one subscript for each axis of an operand",
                got={f"operand {i} has shape": shape, "subscripts": _show(term)},
                fix="write '...' for axes without a subscript",
            )
        spare.append(n)
    width = max((n for n, term in zip(spare, inputs, strict=True) if ... in term), default=0)
    terms = [_expand(term, width - n, width) for term, n in zip(inputs, spare, strict=True)]
    letters = [x for term in inputs for x in term if isinstance(x, str)]
    if output is None:
        return terms, (*range(width), *sorted(x for x in set(letters) if letters.count(x) == 1))
    if ... not in output and width:
        raise ShapeError("einsum: the output must have '...' where operands have axes without subscripts", got={"output": _show(output)})
    for x in output:
        if output.count(x) > 1 or (isinstance(x, str) and x not in letters):
            raise ValueError(
                f"einsum: each subscript of the output must stand in an operand, and only once in the output: {_show(output)!r}"
            )
    return terms, _expand(output, 0, width)


def _expand(term: Term, start: int, stop: int) -> Labels:
    return tuple(y for x in term for y in ((x,) if isinstance(x, str) else range(start, stop)))


def _show(term: Term) -> str:
    return "".join(x if isinstance(x, str) else "..." for x in term)


def _sizes(terms: list[Labels], shapes: tuple[Shape, ...]) -> dict[Index, int]:
    """The size of each index. Size 1 broadcasts between operands, not between axes of one."""
    sizes: dict[Index, int] = {}
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        own: dict[Index, int] = {}
        for x, n in zip(term, shape, strict=True):
            if own.setdefault(x, n) != n or (n != 1 and sizes.get(x, 1) not in (1, n)):
                raise ShapeError(
                    "einsum: an index must have the same size wherever it stands",
                    got={"index": x if isinstance(x, str) else "an axis of '...'", f"size in operand {i}": n, "and": sizes.get(x, own[x])},
                )
            sizes[x] = n if n != 1 else sizes.get(x, 1)
    return sizes


# -- the plan ------------------------------------------------------------------------------------------------------


class Prepare(NamedTuple):
    """Of one operand: diagonals of pairs of axes, axes of size 1 dropped, then sums."""

    diagonals: tuple[tuple[int, int], ...]
    shape: Shape
    summed: tuple[int, ...]

    def run(self, x: Any) -> Any:
        for axis1, axis2 in self.diagonals:
            x = np.diagonal(x, 0, axis1, axis2)
        return _sum(reshaped(x, self.shape), self.summed)


class Pair(NamedTuple):
    """The operands at positions `i < j` are replaced by their product, at the end of the list."""

    i: int
    j: int
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    layouts: tuple[Shape, Shape]
    shape: Shape
    matrices: bool

    def run(self, arrays: list[Any]) -> None:
        right, left = arrays.pop(self.j), arrays.pop(self.i)
        left, right = (
            reshaped(transposed(x, order), layout) for x, order, layout in zip((left, right), self.orders, self.layouts, strict=True)
        )
        arrays.append(reshaped((prims.matmul if self.matrices else np.multiply)(left, right), self.shape))


class Plan(NamedTuple):
    first: tuple[Prepare, ...]
    pairs: tuple[Pair, ...]
    last: tuple[int, ...]

    def run(self, arrays: Sequence[Any]) -> Any:
        work = [step.run(x) for step, x in zip(self.first, arrays, strict=True)]
        for pair in self.pairs:
            pair.run(work)
        return transposed(work[0], self.last)


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    if not axes:
        return x
    total = reduction.sum(x, axis=axes)
    return total if total.dtype == x.dtype else np.astype(total, x.dtype)  # einsum does not widen small integers


@functools.lru_cache(maxsize=512)
def _plan(inputs: tuple[Term, ...], output: Term | None, shapes: tuple[Shape, ...], optimize: Any) -> Plan:
    terms, result = _resolve(inputs, output, shapes)
    sizes = _sizes(terms, shapes)
    kept = [_without_ones(term, shape, sizes, result) for term, shape in zip(terms, shapes, strict=True)]
    first, work = [], []
    for i, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        others = {x for j, other in enumerate(kept) if j != i for x in other}
        step, labels = _prepare(term, shape, kept[i], others.union(result))
        first.append(step)
        work.append(labels)
    pairs = []
    for positions in _order(work, sizes, result, optimize):
        chosen = sorted(positions)
        while len(chosen) > 1:
            i, j = chosen[0], chosen[1]
            b, a = work.pop(j), work.pop(i)
            pair, labels = _pair(i, j, a, b, {x for other in work for x in other}.union(result), sizes)
            pairs.append(pair)
            work.append(labels)
            chosen = [*(c - 2 for c in chosen[2:]), len(work) - 1]
    return Plan(tuple(first), tuple(pairs), tuple(work[0].index(x) for x in result))


def _without_ones(term: Labels, shape: Shape, sizes: dict[Index, int], result: Labels) -> Labels:
    """The indices that stay: an axis of size 1 goes where it broadcasts, or is summed over."""
    return tuple(dict.fromkeys(x for x, n in zip(term, shape, strict=True) if n != 1 or (sizes[x] == 1 and x in result)))


def _prepare(term: Labels, shape: Shape, kept: Labels, needed: Collection[Index]) -> tuple[Prepare, Labels]:
    labels, dims = list(term), list(shape)
    diagonals = []
    for x in dict.fromkeys(term):
        while labels.count(x) > 1:
            axis1 = labels.index(x)
            axis2 = labels.index(x, axis1 + 1)
            diagonals.append((axis1, axis2))
            n = dims[axis1]
            for axis in (axis2, axis1):
                del labels[axis], dims[axis]
            labels.append(x)
            dims.append(n)
    stay = [(x, n) for x, n in zip(labels, dims, strict=True) if x in kept]
    summed = tuple(i for i, (x, _) in enumerate(stay) if x not in needed)
    return Prepare(tuple(diagonals), tuple(n for _, n in stay), summed), tuple(x for x, _ in stay if x in needed)


def _pair(i: int, j: int, a: Labels, b: Labels, needed: Collection[Index], sizes: dict[Index, int]) -> tuple[Pair, Labels]:
    """The product of operands with indices `a` and `b`, of which `needed` must survive. No index is lone: those were summed before."""
    shape = functools.partial(_shape, sizes)
    larger, smaller = (a, b) if math.prod(shape(a)) >= math.prod(shape(b)) else (b, a)
    batch = tuple(x for x in larger if x in smaller and x in needed)
    summed = tuple(x for x in larger if x in smaller and x not in needed)  # in the order that may spare the larger one a copy
    rows = tuple(x for x in a if x not in b)
    columns = tuple(x for x in b if x not in a)
    matrices = bool(summed or (rows and columns))
    if matrices:
        n, k, m = math.prod(shape(rows)), math.prod(shape(summed)), math.prod(shape(columns))
        layouts = ((*shape(batch), n, k), (*shape(batch), k, m))
    else:
        layouts = (shape((*batch, *rows)) + (1,) * len(columns), shape((*batch, *columns)) + (1,) * len(rows))
    orders = (tuple(map(a.index, (*batch, *rows, *summed))), tuple(map(b.index, (*batch, *summed, *columns))))
    labels = (*batch, *rows, *columns)
    return Pair(i, j, orders, layouts, shape(labels), matrices), labels


def _shape(sizes: dict[Index, int], labels: Sequence[Index]) -> Shape:
    return tuple(sizes[x] for x in labels)


def _order(terms: list[Labels], sizes: dict[Index, int], result: Labels, optimize: Any) -> list[tuple[int, ...]]:
    """Which operands to contract, step by step; each result goes to the end of the list."""
    n = len(terms)
    if n < 3:
        return [tuple(range(n))]
    names = dict(zip(dict.fromkeys(x for term in terms for x in term), _LETTERS, strict=False))
    if len(names) < len({x for term in terms for x in term}):
        return [tuple(range(n))]
    spelled = ["".join(names[x] for x in term) for term in (*terms, result)]
    arrays = [_stand_in(_shape(sizes, term)) for term in terms]
    given = "greedy" if isinstance(optimize, bool) or optimize is None else list(optimize) if isinstance(optimize, tuple) else optimize
    path = np.einsum_path(f"{','.join(spelled[:-1])}->{spelled[-1]}", *arrays, optimize=given)[0]
    return [tuple(step) for step in path[1:]]
