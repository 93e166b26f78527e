"""Softmax cross-entropy of rows with integer labels, forward and backward, each in one pass over the rows.

    loss[i] = log(sum_j exp(x[i, j])) - x[i, y[i]]
    d loss[i] / d x[i, j] = softmax(x[i])[j] - (j == y[i])

Every row is shifted by its largest entry. The entry of the label is kept out of the sum of exponentials, so that a
confident right answer loses no digits: the loss is log1p(rest) and the label's slope -rest / sum, where a difference
from 1 would round to 0.

The exponential is range reduction and Taylor's polynomial (Cody & Waite, Software Manual for the Elementary Functions,
1980, chapter 6): without branches, so that LLVM computes several entries at once, which it cannot do with libm's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad._numba import Kernel, kernel

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # high part: k * high is exact
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, which then stands in the low bits
_SMALLEST = -708.0  # below, the result is flushed to 0 (it would be subnormal)
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12 = (1 / math.factorial(n) for n in range(2, 13))

_f = np.float32
_LOG2_E_F, _LN2_HIGH_F, _LN2_LOW_F, _ROUND_F, _SMALLEST_F = _f(_LOG2_E), _f(0.693359375), _f(-2.12194440e-4), _f(12582912.0), _f(-87.0)
_ZERO_F, _ONE_F = _f(0), _f(1)
_D2, _D3, _D4, _D5, _D6, _D7 = (_f(1 / math.factorial(n)) for n in range(2, 8))
_MANTISSA_F = np.int32(23)


@kernel
def exp_float64(z: Any) -> Any:
    """exp(z) for z <= 0, to 2 units in the last place; nan stays nan."""
    w = z if z > _SMALLEST else _SMALLEST
    t = w * _LOG2_E + _ROUND
    k = t - _ROUND
    r = (w - k * _LN2_HIGH) - k * _LN2_LOW
    p = _C12
    p = p * r + _C11
    p = p * r + _C10
    p = p * r + _C9
    p = p * r + _C8
    p = p * r + _C7
    p = p * r + _C6
    p = p * r + _C5
    p = p * r + _C4
    p = p * r + _C3
    p = p * r + _C2
    p = p * r + 1.0
    p = p * r + 1.0
    bits = np.float64(p).view(np.int64) + (np.float64(t).view(np.int64) << 52)  # p * 2**k
    out = np.int64(bits).view(np.float64)
    return out if z >= _SMALLEST else (0.0 if z < _SMALLEST else z)


@kernel
def exp_float32(z: Any) -> Any:
    """exp(z) for z <= 0, to 2 units in the last place; nan stays nan."""
    w = z if z > _SMALLEST_F else _SMALLEST_F
    t = w * _LOG2_E_F + _ROUND_F
    k = t - _ROUND_F
    r = (w - k * _LN2_HIGH_F) - k * _LN2_LOW_F
    p = _D7
    p = p * r + _D6
    p = p * r + _D5
    p = p * r + _D4
    p = p * r + _D3
    p = p * r + _D2
    p = p * r + _ONE_F
    p = p * r + _ONE_F
    bits = np.float32(p).view(np.int32) + (np.float32(t).view(np.int32) << _MANTISSA_F)
    out = np.int32(bits).view(np.float32)
    return out if z >= _SMALLEST_F else (_ZERO_F if z < _SMALLEST_F else z)


# Four accumulators: one alone would wait for each addition to end before the next can begin.


@kernel
def row_max(x: Any) -> Any:
    """The largest entry of a vector that has at least one; entries that are nan may be passed over."""
    n = x.size
    a = b = c = d = x[0]
    for j in range(0, n - 3, 4):
        a = x[j] if x[j] > a else a
        b = x[j + 1] if x[j + 1] > b else b
        c = x[j + 2] if x[j + 2] > c else c
        d = x[j + 3] if x[j + 3] > d else d
    for j in range(n - n % 4, n):
        a = x[j] if x[j] > a else a
    return max(max(a, b), max(c, d))


@kernel
def row_sum(x: Any) -> Any:
    """The sum of a vector."""
    n = x.size
    a = b = c = d = x.dtype.type(0)
    for j in range(0, n - 3, 4):
        a += x[j]
        b += x[j + 1]
        c += x[j + 2]
        d += x[j + 3]
    for j in range(n - n % 4, n):
        a += x[j]
    return (a + b) + (c + d)


def _passes(exp: Callable[[Any], Any]) -> tuple[Kernel, Kernel]:
    """The two passes for one precision."""

    def forward(logits: Any, labels: Any, scratch: Any, losses: Any) -> Any:
        """logits (n, c), labels (n,) int64, scratch (c,) -> losses (n,). Returns the first row with a bad label, or -1."""
        n, c = logits.shape
        for i in range(n):
            x, y = logits[i], labels[i]
            if y < 0 or y >= c:
                return i
            largest = row_max(x)
            for j in range(c):
                scratch[j] = exp(x[j] - largest)
            at_label = scratch[y]
            scratch[y] = 0
            rest = row_sum(scratch)
            z = x[y] - largest
            losses[i] = math.log1p(rest) if z == 0 else math.log(rest + at_label) - z
        return -1

    def backward(g: Any, logits: Any, labels: Any, out: Any) -> Any:
        """g (n,), logits (n, c), labels (n,) int64 -> out (n, c): g[i] times the slope. Returns as the forward pass does.

        A row whose g is 0 gets zeros, whatever its logits are.
        """
        n, c = logits.shape
        for i in range(n):
            x, y, row = logits[i], labels[i], out[i]
            if y < 0 or y >= c:
                return i
            if g[i] == 0:
                row[:] = 0
                continue
            largest = row_max(x)
            for j in range(c):
                row[j] = exp(x[j] - largest)
            at_label = row[y]
            row[y] = 0
            rest = row_sum(row)
            scale = g[i] / (rest + at_label)
            for j in range(c):
                row[j] *= scale
            row[y] = -scale * rest
        return -1

    return kernel(forward), kernel(backward)


forward_float64, backward_float64 = _passes(exp_float64)
forward_float32, backward_float32 = _passes(exp_float32)
