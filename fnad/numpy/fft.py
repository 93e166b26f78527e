"""np.fft: its functions spelled on the transforms along one axis, with NumPy's lengths, axes and norms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.core.aval import shape_of
from fnad.core.dispatch import implements
from fnad.errors import DTypeError
from fnad.numpy.algebra import operand
from fnad.numpy.elementwise import refuse_out
from fnad.numpy.metadata import normalise_axis
from fnad.primitives import fft as prims


def _norm(norm: Any) -> str:
    if norm is None:
        return "backward"
    if norm not in prims.MIRRORED:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    return str(norm)


def _length(n: Any, default: int) -> int:
    n = default if n is None else n.__index__()
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return int(n)


def _resized(x: Any, n: int, axis: int) -> Any:
    """`n` entries along an axis: cut off, or followed by zeros."""
    have = shape_of(x)[axis]
    if have == n:
        return x
    if have > n:
        return x[(*(slice(None),) * axis, slice(n))]
    return np.pad(x, [(0, n - have) if k == axis else (0, 0) for k in range(len(shape_of(x)))])


def _operand(a: Any, axis: Any, name: str, real: bool = False) -> tuple[Any, int]:
    a = operand(a)
    if real and a.dtype.kind == "c":
        raise DTypeError(f"np.fft.{name} takes real numbers", got={"dtype": a.dtype}, fix="write np.fft.fft, or take np.real(x) first")
    return a, normalise_axis(axis, len(shape_of(a)))


def _complex(primitive: Any, a: Any, n: Any, axis: Any, norm: Any, out: Any) -> Any:
    refuse_out(out, f"np.fft.{primitive.name}")
    a, axis = _operand(a, axis, primitive.name)
    return primitive(_resized(a, _length(n, shape_of(a)[axis]), axis), axis=axis, norm=_norm(norm))


# -- along one axis ------------------------------------------------------------------------------------------------


@implements(np.fft.fft)
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return _complex(prims.fft, a, n, axis, norm, out)


@implements(np.fft.ifft)
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return _complex(prims.ifft, a, n, axis, norm, out)


@implements(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    refuse_out(out, "np.fft.rfft")
    a, axis = _operand(a, axis, "rfft", real=True)
    return prims.rfft(_resized(a, _length(n, shape_of(a)[axis]), axis), axis=axis, norm=_norm(norm))


@implements(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """The imaginary part of the first entry, and for even n of the last, does not count: its derivative is 0."""
    refuse_out(out, "np.fft.irfft")
    a, axis = _operand(a, axis, "irfft")
    n = _length(n, 2 * (shape_of(a)[axis] - 1))
    a = _resized(a, n // 2 + 1, axis)
    return prims.irfft(a if a.dtype.kind == "c" else a + 0j, axis=axis, n=n, norm=_norm(norm))


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    refuse_out(out, "np.fft.hfft")
    a, axis = _operand(a, axis, "hfft")
    n = _length(n, 2 * (shape_of(a)[axis] - 1))
    return irfft(np.conjugate(a), n, axis, prims.MIRRORED[_norm(norm)])


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    refuse_out(out, "np.fft.ihfft")
    a, axis = _operand(a, axis, "ihfft", real=True)
    return np.conjugate(rfft(a, n, axis, prims.MIRRORED[_norm(norm)]))


# -- along several -------------------------------------------------------------------------------------------------


def _several(a: Any, s: Any, axes: Any, halved: bool = False) -> tuple[list[int], list[int]]:
    """Lengths and axes, one for one; -1 is the axis' own length. `halved`: of the last axis only half is given."""
    shape = shape_of(a)
    if axes is None:
        axes = range(len(shape)) if s is None else range(-len(s), 0)
    axes = [normalise_axis(axis, len(shape)) for axis in axes]
    if s is not None and len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if not axes and halved:
        raise ValueError("at least 1 axis must be transformed")
    sizes = [shape[axis] if n is None or n == -1 else n for axis, n in zip(axes, [None] * len(axes) if s is None else s, strict=True)]
    if halved and (s is None or s[-1] is None):
        sizes[-1] = 2 * (shape[axes[-1]] - 1)
    elif halved and s[-1] == -1:
        sizes[-1] = shape[axes[-1]]
    return sizes, axes


def _in_turn(transform: Callable[..., Any], a: Any, sizes: Sequence[int], axes: Sequence[int], norm: Any) -> Any:
    for n, axis in reversed(list(zip(sizes, axes, strict=True))):
        a = transform(a, n, axis, norm)
    return a


@implements(np.fft.fftn)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    refuse_out(out, "np.fft.fftn")
    a = operand(a)
    return _in_turn(fft, a, *_several(a, s, axes), norm)


@implements(np.fft.ifftn)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    refuse_out(out, "np.fft.ifftn")
    a = operand(a)
    return _in_turn(ifft, a, *_several(a, s, axes), norm)


@implements(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    refuse_out(out, "np.fft.rfftn")
    a = operand(a)
    sizes, axes = _several(a, s, axes)
    if not axes:
        raise ValueError("at least 1 axis must be transformed")
    return _in_turn(fft, rfft(a, sizes[-1], axes[-1], norm), sizes[:-1], axes[:-1], norm)


@implements(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    refuse_out(out, "np.fft.irfftn")
    a = operand(a)
    sizes, axes = _several(a, s, axes, halved=True)
    for n, axis in zip(sizes[:-1], axes[:-1], strict=True):
        a = ifft(a, n, axis, norm)
    return irfft(a, sizes[-1], axes[-1], norm)


@implements(np.fft.fft2)
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return fftn(a, s, axes, norm, out)


@implements(np.fft.ifft2)
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return ifftn(a, s, axes, norm, out)


@implements(np.fft.rfft2)
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return rfftn(a, s, axes, norm, out)


@implements(np.fft.irfft2)
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    return irfftn(a, s, axes, norm, out)


# -- order of frequencies ------------------------------------------------------------------------------------------


def _rolled(x: Any, axes: Any, back: bool) -> Any:
    x = operand(x)
    shape = shape_of(x)
    axes = tuple(range(len(shape))) if axes is None else (axes,) if isinstance(axes, int | np.integer) else tuple(axes)
    return np.roll(x, [-(shape[k] // 2) if back else shape[k] // 2 for k in axes], axes)


@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    return _rolled(x, axes, False)


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    return _rolled(x, axes, True)
