"""`torch.fft`: the transforms of `numpy.fft`, of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fnad.errors import UnknownNameError
from fnad.torch import _dtypes
from fnad.torch._call import cast, lift
from fnad.torch._dtypes import as_numpy
from fnad.torch._tensor import make

_COMPLEX = {np.dtype(np.float32): np.dtype(np.complex64), np.dtype(np.complex64): np.dtype(np.complex64)}


def _transform(name: str, several: bool) -> Callable[..., Any]:
    function = lift(getattr(np.fft, name), name)

    def call(input: Any, n: Any = None, dim: Any = None, norm: str | None = None) -> Any:
        """Arguments: the tensor, new sizes (n or s), axes, and "forward", "backward" or "ortho"."""
        default = ((-2, -1) if name.endswith("2") else None) if several else -1
        x = input if input._data.dtype.kind in "fc" else cast(input, _dtypes.DEFAULT.floating)
        out = function(x, n, default if dim is None else dim, norm)
        narrow = x._data.dtype in _COMPLEX
        wanted = (np.dtype(np.float32) if out._data.dtype.kind == "f" else np.dtype(np.complex64)) if narrow else out._data.dtype
        return cast(out, wanted)

    def by_sizes(input: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
        return call(input, s, dim, norm)

    made = by_sizes if several else call
    made.__name__, made.__doc__ = name, f"`numpy.fft.{name}`. Reference: `torch.fft.{name}` of PyTorch 2.13."
    return made


fft, ifft, rfft, irfft, hfft, ihfft = (_transform(n, False) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fft2, ifft2, rfft2, irfft2 = (_transform(n, True) for n in ("fft2", "ifft2", "rfft2", "irfft2"))
fftn, ifftn, rfftn, irfftn = (_transform(n, True) for n in ("fftn", "ifftn", "rfftn", "irfftn"))


def fftshift(input: Any, dim: Any = None) -> Any:
    """The zero frequency in the middle."""
    return lift(np.fft.fftshift, "fftshift")(input, dim)


def ifftshift(input: Any, dim: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return lift(np.fft.ifftshift, "ifftshift")(input, dim)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, **_: Any) -> Any:
    """The frequencies of `fft`."""
    return make(np.fft.fftfreq(n, d).astype(_dtypes.DEFAULT.floating if dtype is None else as_numpy(dtype)))


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, **_: Any) -> Any:
    """The frequencies of `rfft`."""
    return make(np.fft.rfftfreq(n, d).astype(_dtypes.DEFAULT.floating if dtype is None else as_numpy(dtype)))


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnknownNameError(f"torch.fft.{name} does not exist in fnad.torch", fix="numpy.fft on x.detach().numpy()")
