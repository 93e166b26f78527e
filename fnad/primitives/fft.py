"""Discrete Fourier transforms along one axis. Those of several axes, of other lengths and Hermitian ones are made of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.core.aval import Aval, aval_of, shape_of
from fnad.primitives._families import Linear, Pullback

MIRRORED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The norm with which the transform in the other direction divides by the same."""


def _transformed(function: Any, x: Aval) -> np.dtype[Any]:
    return function(np.zeros(1, x.dtype)).dtype


class Fft(Linear):
    """The transform of complex or real numbers, y[k] = sum_j x[j] exp(-2 pi i j k / n), or with +; its matrix is symmetric.

    Args:
        name: The primitive's name.
        function: `np.fft.fft` or `np.fft.ifft`, which says what `norm` divides by.
    """

    reads = frozenset()

    def __init__(self, name: str, function: Any) -> None:
        super().__init__(name)
        self.function = function

    def infer(self, x: Aval, *, axis: int, norm: str) -> Aval:
        return Aval(x.shape, _transformed(self.function, x))

    def impl(self, x: Any, *, axis: int, norm: str) -> Any:
        return self.function(x, axis=axis, norm=norm)

    def vjp(self, out: Any, x: Any, *, axis: int, norm: str) -> Sequence[Pullback]:
        return (lambda g: self(g, axis=axis, norm=norm),)  # of a real x the tape keeps the real part

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int, norm: str) -> Any:
        return self(args[0], axis=axis + 1, norm=norm)


class Rfft(Linear):
    """The transform of n real numbers: its first n // 2 + 1 entries, of which the others are the conjugates."""

    reads = frozenset()

    def infer(self, x: Aval, *, axis: int, norm: str) -> Aval:
        n = x.shape[axis] // 2 + 1
        return Aval((*x.shape[:axis], n, *x.shape[axis + 1 :]), _transformed(np.fft.rfft, x))

    def impl(self, x: Any, *, axis: int, norm: Any) -> Any:
        return np.fft.rfft(x, axis=axis, norm=norm)

    def vjp(self, out: Any, x: Any, *, axis: int, norm: str) -> Sequence[Pullback]:
        n = shape_of(x)[axis]
        return (lambda g: irfft(_counted(np.conjugate(g), n, axis, 0.5), axis=axis, n=n, norm=MIRRORED[norm]),)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int, norm: str) -> Any:
        return self(args[0], axis=axis + 1, norm=norm)


class Irfft(Linear):
    """The inverse of `Rfft`: n // 2 + 1 complex numbers to n real ones.

    The imaginary part of the first, and for even n that of the last, counts as 0.
    """

    reads = frozenset()

    def infer(self, x: Aval, *, axis: int, n: int, norm: str) -> Aval:
        return Aval((*x.shape[:axis], n, *x.shape[axis + 1 :]), _transformed(np.fft.fft, x).type(0).real.dtype)

    def impl(self, x: Any, *, axis: int, n: int, norm: Any) -> Any:
        return np.fft.irfft(x, n, axis=axis, norm=norm)

    def vjp(self, out: Any, x: Any, *, axis: int, n: int, norm: str) -> Sequence[Pullback]:
        return (lambda g: _counted(np.conjugate(rfft(g, axis=axis, norm=MIRRORED[norm])), n, axis, 2.0),)

    def batch(self, args: Sequence[Any], batched: Sequence[bool], *, axis: int, n: int, norm: str) -> Any:
        return self(args[0], axis=axis + 1, n=n, norm=norm)


def _counted(x: Any, n: int, axis: int, times: float) -> Any:
    """A half spectrum, multiplied where an entry stands for its conjugate too."""
    counts = np.full(n // 2 + 1, times, np.zeros((), aval_of(x).dtype).real.dtype)
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1
    return x * np.reshape(counts, (-1, *(1,) * (len(shape_of(x)) - axis - 1)))


fft = Fft("fft", np.fft.fft)
ifft = Fft("ifft", np.fft.ifft)
rfft = Rfft("rfft")
irfft = Irfft("irfft")
