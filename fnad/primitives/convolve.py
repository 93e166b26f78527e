"""The convolution of two sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, result_dtype, shape_of
from fnad.errors import ShapeError
from fnad.primitives._families import Bilinear, Pullback, align, unbroadcast
from fnad.primitives.windows import unfold


class Convolve(Bilinear):
    """All sums of products that overlap ("full"), or those that overlap in all of v ("valid"), along the last axis.

    (..., n), (..., m) -> (..., n + m - 1) or, for n >= m, (..., n - m + 1); leading axes broadcast.
    """

    def infer(self, a: Aval, v: Aval, *, mode: str) -> Aval:
        n, m = a.shape[-1], v.shape[-1]
        if not n or not m or (mode == "valid" and n < m):
            raise ShapeError("convolve: sequences must not be empty, and the first not the shorter one", got={"a": a, "v": v})
        size = n + m - 1 if mode == "full" else n - m + 1
        return Aval((*np.broadcast_shapes(a.shape[:-1], v.shape[:-1]), size), result_dtype(a, v))

    def impl(self, a: Any, v: Any, *, mode: Any) -> Any:
        if a.ndim == v.ndim == 1:
            return np.convolve(a, v, mode)
        out = self.infer(aval_of(a), aval_of(v), mode=mode)
        total = np.zeros(out.shape, out.dtype)
        n, m = a.shape[-1], v.shape[-1]
        if mode == "valid":
            for k in range(m):
                total += a[..., m - 1 - k : n - k] * v[..., k : k + 1]
            return total
        if n < m:
            a, v, n, m = v, a, m, n
        for k in range(m):
            total[..., k : k + n] += a * v[..., k : k + 1]
        return total

    def compose(self, a: Any, v: Any, *, mode: str) -> Any | None:
        """A product with the matrix of windows, which compiled code never stores."""
        if len(shape_of(a)) != 1 or len(shape_of(v)) != 1 or result_dtype(aval_of(a), aval_of(v)).kind != "f":
            return None
        if mode == "full":
            a, v = (a, v) if shape_of(a) >= shape_of(v) else (v, a)
            a = np.pad(a, shape_of(v)[0] - 1)
        m = shape_of(v)[0]
        windows = unfold(a[None], kernel=(1, m), stride=(1, 1), dilation=(1, 1))  # (1, m, 1, count)
        return np.matmul(v[::-1], np.reshape(windows, (m, shape_of(windows)[-1])))

    def vjp(self, out: Any, a: Any, v: Any, *, mode: str) -> Sequence[Pullback]:
        shape_a, shape_v = shape_of(a), shape_of(v)
        if mode == "valid":
            return (
                lambda g: unbroadcast(self(g, v[..., ::-1], mode="full"), shape_a),
                lambda g: unbroadcast(self(a, g[..., ::-1], mode="valid")[..., ::-1], shape_v),
            )
        return (
            lambda g: unbroadcast(self(g, v[..., ::-1], mode="valid"), shape_a),
            lambda g: unbroadcast(self(g, a[..., ::-1], mode="valid"), shape_v),
        )

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, mode: str) -> Any:
        return self(*align(args, batched), mode=mode)


convolve = Convolve("convolve")
