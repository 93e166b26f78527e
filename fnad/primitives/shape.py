"""Changing shape, layout, dtype; nothing is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, shape_of
from fnad.errors import ShapeError
from fnad.primitives._families import Linear, Primitive, Pullback, unbroadcast
from fnad.typing import Shape


class Reshape(Linear):
    """The entries in C order under another shape (all sizes given)."""

    def infer(self, x: Aval, *, shape: Shape) -> Aval:
        if Aval(shape, x.dtype).size != x.size:
            raise ShapeError("reshape: the number of entries must stay the same", got={"from": x, "to shape": shape})
        return Aval(shape, x.dtype, x.weak and not shape)

    def impl(self, x: Any, *, shape: Shape) -> Any:
        return np.reshape(x, shape)

    def vjp(self, out: Any, x: Any, *, shape: Shape) -> Sequence[Pullback]:
        before = shape_of(x)
        return (lambda g: np.reshape(g, before),)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, shape: Shape) -> Any:
        return self(args[0], shape=(shape_of(args[0])[0], *shape))


class Transpose(Linear):
    """Axes in the order `axes`."""

    def infer(self, x: Aval, *, axes: tuple[int, ...]) -> Aval:
        return Aval(tuple(x.shape[a] for a in axes), x.dtype, x.weak)

    def impl(self, x: Any, *, axes: tuple[int, ...]) -> Any:
        return np.transpose(x, axes)

    def vjp(self, out: Any, x: Any, *, axes: tuple[int, ...]) -> Sequence[Pullback]:
        return (lambda g: np.transpose(g, _inverse(axes)),)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axes: tuple[int, ...]) -> Any:
        return self(args[0], axes=(0, *(a + 1 for a in axes)))


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


class BroadcastTo(Linear):
    """Repeat along axes of size 1 and new leading axes."""

    def infer(self, x: Aval, *, shape: Shape) -> Aval:
        return Aval(shape, x.dtype, x.weak and not shape)

    def impl(self, x: Any, *, shape: Shape) -> Any:
        return np.broadcast_to(x, shape)

    def vjp(self, out: Any, x: Any, *, shape: Shape) -> Sequence[Pullback]:
        before = shape_of(x)
        return (lambda g: unbroadcast(g, before),)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, shape: Shape) -> Any:
        n, *rest = shape_of(args[0])
        x = np.reshape(args[0], (n, *(1,) * (len(shape) - len(rest)), *rest))
        return self(x, shape=(n, *shape))


class Cast(Linear):
    """The same values in another dtype. To an integer or boolean dtype there is no derivative; complex to real drops the imaginary part."""

    def infer(self, x: Aval, *, dtype: np.dtype[Any]) -> Aval:
        return Aval(x.shape, dtype)

    def impl(self, x: Any, *, dtype: np.dtype[Any]) -> Any:
        x = np.asarray(x)
        return (x.real if x.dtype.kind == "c" and dtype.kind != "c" else x).astype(dtype)[()]

    def vjp(self, out: Any, x: Any, *, dtype: np.dtype[Any]) -> Sequence[Pullback | None]:
        return (None if dtype.kind not in "fc" else lambda g: g,)  # the tape converts to the input's dtype

    def jvp(self, out: Any, args: Sequence[Any], tangents: Sequence[Any], *, dtype: np.dtype[Any]) -> Any:
        return None if dtype.kind not in "fc" or tangents[0] is None else self(tangents[0], dtype=dtype)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, dtype: np.dtype[Any]) -> Any:
        return self(args[0], dtype=dtype)


class StopGradient(Primitive):
    """The value, cut off from differentiation."""

    constant = True

    def infer(self, x: Aval) -> Aval:
        return x

    def impl(self, x: Any) -> Any:
        return x

    def batch(self, args: Sequence[Any], batched: Sequence[bool]) -> Any:
        return self(args[0])


reshape = Reshape("reshape")
transpose = Transpose("transpose")
broadcast_to = BroadcastTo("broadcast_to")
cast = Cast("cast")
stop = StopGradient("stop_gradient")
