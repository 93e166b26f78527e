"""What whole families of primitives share, so that a member states only its mathematics."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.core.aval import PYTHON_SCALARS, Aval, all_weak, aval_of, promotion_operand, result_dtype, shape_of, weak_aval
from fnad.core.lowering import Reduce, Scalar
from fnad.core.primitive import Joint, Primitive, Pullback
from fnad.errors import ShapeError
from fnad.typing import Shape

Slope = Callable[..., Any] | int | None


_ONE_THREAD = 8192


def has_nan(x: np.ndarray[Any, Any]) -> bool:
    """Whether an entry is nan (perhaps also if a complex one is infinite)."""
    flat = x.ravel("K")
    # A sum of squares is nan only if an entry is. BLAS is fastest, but waits for its threads where arrays are large.
    top = np.vdot(flat, flat) if flat.size < _ONE_THREAD else np.maximum.reduce(flat)
    return bool(top != top)


class Guarded(Primitive):
    """`g * slope`, where an exact zero in `g` wins over a slope that is not finite.

    This is the product of the chain rule: a branch that was not taken (`np.where`) sends a zero cotangent, and
    0 * inf must not become nan. Everywhere else it is plain multiplication, so pullbacks stay linear.

    Args:
        name: The primitive's name.
        either: Whether a zero `slope` wins over a `g` that is not finite as well: for the term of the forward mode in which
            `g` multiplies the tangent of the slope, so that each of them can be the zero of a branch not taken.
    """

    def __init__(self, name: str, either: bool = False) -> None:
        super().__init__(name)
        self.either = either

    def infer(self, g: Aval, slope: Aval) -> Aval:
        return Aval(broadcast_shapes(self.name, g, slope), result_dtype(g, slope), all_weak(g, slope))

    def impl(self, g: Any, slope: Any) -> Any:
        out = g * slope
        if out.__class__ is np.ndarray:
            if has_nan(out):
                return np.where(self.wins(g, slope), np.zeros((), out.dtype), out)
        elif out != out and self.wins(g, slope):
            return out.__class__(0)
        return out

    def lower(self, g: Aval, slope: Aval) -> Scalar | None:
        dtype = result_dtype(g, slope)
        return Scalar(self.name, (dtype, dtype))

    def wins(self, g: Any, slope: Any) -> Any:
        """Where a zero wins."""
        won = (g == 0) & ~np.isfinite(slope)
        return won | ((slope == 0) & ~np.isfinite(g)) if self.either else won

    def vjp(self, out: Any, g: Any, slope: Any) -> Sequence[Pullback]:
        shape_g, shape_s = shape_of(g), shape_of(slope)
        return (
            lambda c: unbroadcast(self(c, slope), shape_g),
            lambda c: unbroadcast(self(c, g), shape_s),
        )

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (g, slope), (tg, ts) = args, tangents
        return add_tangents(tg if tg is None else self(tg, slope), ts if ts is None else _guarded_both(ts, g), shape_of(out))

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(*align(args, batched))


guarded = Guarded("guarded_multiply")
_guarded_both = Guarded("guarded_multiply_both", either=True)


class Elementwise(Primitive):
    """A function of the elements of broadcast operands.

    Args:
        name: The primitive's name.
        function: The NumPy function that computes it; also its dispatch row.
        slopes: One per operand: the partial derivative as a function whose parameters are any of `x`, `y`, `z` (the
            operands) and `out`; or 1 or -1; or None (no derivative). It should read as little as it can: what it
            names is kept for the backward pass.
        numpy: Dispatch rows, if not `function`.
        impl: What computes it, if not `function`.
        domain: Where the audit draws each operand's samples.
        special: Points (tuples of operands) it must also get right.
    """

    def __init__(
        self,
        name: str,
        function: Any,
        *slopes: Slope,
        numpy: Any = None,
        impl: Callable[..., Any] | None = None,
        domain: tuple[float, float] = (-3.0, 3.0),
        special: tuple[Any, ...] = (),
        kinds: str = "f",
    ) -> None:
        super().__init__(name, numpy=function if numpy is None else numpy)
        self.function, self.slopes = function, slopes
        self.domain, self.special, self.kinds = domain, special, kinds
        self.constant = all(s is None for s in slopes)
        self.baked: tuple[int, ...] = (1,) if name == "power" else ()
        self._compute = impl or function
        self._reads = [_reads(s) if callable(s) else () for s in slopes]
        self.reads = frozenset(r for reads in self._reads for r in reads if r >= 0)

    def keeps(self, asked: Sequence[bool], count: int) -> tuple[tuple[int, ...], bool]:
        reads = {r for wanted, reads in zip(asked, self._reads, strict=True) if wanted for r in reads}
        return tuple(sorted(reads - {-1})), -1 in reads

    def infer(self, *avals: Aval) -> Aval:
        shape = broadcast_shapes(self.name, *avals)
        if isinstance(self.function, np.ufunc):
            wanted = self.function.resolve_dtypes((*map(promotion_operand, avals), None))
            dtype = wanted[-1]
        else:
            with np.errstate(all="ignore"):
                dtype = np.asarray(self._compute(*[np.ones((), a.dtype) if not a.weak else a.dtype.type(1).item() for a in avals])).dtype
        return weak_aval(dtype) if all_weak(*avals) and dtype.kind != "b" else Aval(shape, dtype)

    def impl(self, *args: Any) -> Any:
        return self._compute(*args)

    def lower(self, *avals: Aval) -> Scalar:
        if isinstance(self.function, np.ufunc):
            dtypes = self.function.resolve_dtypes((*map(promotion_operand, avals), None))[:-1]
            if dtypes[0].kind == "O":  # two Python integers are compared as objects
                dtypes = (result_dtype(*avals),) * len(avals)
            elif self.constant and dtypes[0].kind in "iu" and dtypes[0].itemsize < 8 and any(a.weak for a in avals):
                dtypes = (np.dtype(np.int64),) * len(avals)  # a Python number is compared as it is, also outside of the dtype's range
        else:
            result = self.infer(*avals).dtype
            dtypes = tuple(np.dtype(bool) if s is None and not self.constant else result for s in self.slopes)
        return Scalar(self.name, dtypes, self.baked)

    def vjp(self, out: Any, *args: Any) -> Sequence[Pullback | None]:
        dtype = getattr(out, "dtype", None)
        return [
            _pullback(slope, [out if r < 0 else args[r] for r in reads], shape_of(a), dtype)
            for slope, reads, a in zip(self.slopes, self._reads, args, strict=True)
        ]

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any]) -> Any:
        total, shape, dtype = None, shape_of(out), getattr(out, "dtype", None)
        for slope, reads, t in zip(self.slopes, self._reads, tangents, strict=True):
            if t is None or slope is None:
                continue
            if callable(slope):
                t = guarded(t, slope(*[_promoted(out if r < 0 else args[r], dtype) for r in reads]))
            elif slope == -1:
                t = -t
            total = add_tangents(total, t, shape)
        return total

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(*align(args, batched))


class Unary(Elementwise):
    """A function of each element of one array: state the slope by the input, or by the output so that the input can go.

    Args:
        slope: The derivative as a function of the input; None if it is zero or does not exist.
        slope_from_out: The derivative as a function of the output.
    """

    def __init__(
        self,
        name: str,
        function: Any,
        slope: Callable[[Any], Any] | int | None = None,
        *,
        slope_from_out: Callable[[Any], Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, function, slope if slope_from_out is None else lambda out: slope_from_out(out), **options)


class Linear(Primitive):
    """A function linear in its only differentiable argument, the first: forward mode is the function itself.

    Members state `infer`, `impl`, the transpose as `vjp`, and `batch`.
    """

    reads_output = False

    def keeps(self, asked: Sequence[bool], count: int) -> tuple[tuple[int, ...], bool]:
        return tuple(range(1, count) if self.reads is None else sorted(self.reads)), False

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return None if tangents[0] is None else self(tangents[0], *args[1:], **params)


class Bilinear(Primitive):
    """A function linear in each of two arguments: forward mode is the product rule.

    Members state `infer`, `impl`, the two transposes as `vjp`, and `batch`.
    """

    def keeps(self, asked: Sequence[bool], count: int) -> tuple[tuple[int, ...], bool]:
        return tuple(k for k in range(count) if asked[1 - k]), False

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (a, b), (ta, tb) = args, tangents
        return add_tangents(None if ta is None else self(ta, b, **params), None if tb is None else self(a, tb, **params), shape_of(out))


class Reduction(Primitive):
    """A function that removes the axes `axis` (a sorted tuple of non-negative ints) of one array.

    Members state the NumPy function, `result` (the dtype of the output) and `vjp`.

    Args:
        name: The primitive's name.
        function: `function(x, axis=...)` that computes it.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        super().__init__(name)
        self.function = function

    def result(self, x: Aval) -> np.dtype[Any]:
        return x.dtype

    def infer(self, x: Aval, *, axis: tuple[int, ...]) -> Aval:
        return weak_aval(self.result(x)) if x.weak else Aval(tuple(n for i, n in enumerate(x.shape) if i not in axis), self.result(x))

    def impl(self, x: Any, *, axis: tuple[int, ...]) -> Any:
        return self.function(x, axis=axis)

    combine: tuple[str, float] | None = None

    def lower(self, x: Aval, *, axis: tuple[int, ...]) -> Reduce | None:
        return None if self.combine is None else Reduce(*self.combine, axis)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: tuple[int, ...]) -> Any:
        return self(args[0], axis=tuple(a + 1 for a in axis))


def _reads(slope: Callable[..., Any]) -> tuple[int, ...]:
    """Which operands a slope names; -1 is the output."""
    if isinstance(slope, np.ufunc):
        return (0,)
    positions = {"x": 0, "y": 1, "z": 2, "out": -1}
    return tuple(positions[name] for name in inspect.signature(slope).parameters)


def _promoted(x: Any, dtype: np.dtype[Any] | None) -> Any:
    """An operand of a slope in the precision of the function's result: integers would wrap, narrow floats lose digits."""
    own = getattr(x, "dtype", None)
    if own is dtype or own is None or dtype is None or dtype.kind not in "fc" or aval_of(x).weak:
        return x
    if (own.kind == "c") != (dtype.kind == "c"):
        if own.kind == "c":
            return x
        dtype = np.zeros((), dtype).real.dtype
    return x if own == dtype else x.astype(dtype)


def _pullback(slope: Slope, operands: list[Any], shape: Shape, dtype: np.dtype[Any] | None) -> Pullback | None:
    if slope is None:
        return None
    if callable(slope):
        return lambda g: unbroadcast(guarded(g, slope(*[_promoted(x, dtype) for x in operands])), shape)
    if slope == 1:
        return lambda g: unbroadcast(g, shape)
    return lambda g: unbroadcast(-g, shape)


def unbroadcast(g: Any, shape: Shape) -> Any:
    """Sum a cotangent over the axes along which an operand of the given shape was broadcast."""
    found = shape_of(g)
    if found == shape:
        return g
    lead = len(found) - len(shape)
    axes = (*range(lead), *(lead + i for i, n in enumerate(shape) if n == 1 and found[lead + i] != 1))
    if axes:
        g = np.add.reduce(g, axis=axes)
    return g if shape_of(g) == shape else np.reshape(g, shape)


def add_tangents(a: Any, b: Any, shape: Shape) -> Any:
    """The sum of two tangents of an output of the given shape; None is zero."""
    if a is None and b is None:
        return None
    total = b if a is None else a if b is None else a + b
    return total if shape_of(total) == shape else np.broadcast_to(total, shape)


def align(args: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Pad ranks behind the batch axis, so that what is left broadcasts from the right."""
    rank = max(np.ndim(a) - b for a, b in zip(args, batched, strict=True))
    out = []
    for a, b in zip(args, batched, strict=True):
        if b and np.ndim(a) - 1 < rank:
            n, *rest = shape_of(a)
            a = np.reshape(a, (n, *(1,) * (rank - len(rest)), *rest))
        out.append(a)
    return out


def broadcast_shapes(name: str, *avals: Aval) -> Shape:
    try:
        return np.broadcast_shapes(*(a.shape for a in avals))
    except ValueError:
        raise ShapeError(
            f"{name}: operands must broadcast together",
            got={f"operand {i}": a for i, a in enumerate(avals)},
            fix="give the axes that should line up equal sizes, or size 1",
        ) from None


def expand(x: Any, axis: tuple[int, ...]) -> Any:
    """Put back axes of size 1 that a reduction over `axis` removed."""
    shape = list(shape_of(x))
    for a in axis:
        shape.insert(a, 1)
    return np.reshape(x, tuple(shape))


__all__ = [
    "PYTHON_SCALARS", "Bilinear", "Elementwise", "Guarded", "Joint", "Linear", "Primitive", "Pullback", "Reduction", "Unary",
    "add_tangents", "align", "broadcast_shapes", "expand", "guarded", "has_nan", "shape_of", "unbroadcast",
]  # fmt: skip
