"""Functions of each element that fewer scripts use: special functions, angles, parts, integers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad import _scipy
from fnad.nn.functional._arguments import array
from fnad.scipy import special as fnad_special
from fnad.torch import _dtypes
from fnad.torch._call import cast, in_place, lift, tensor_of
from fnad.torch._dtypes import default_complex
from fnad.torch._operators import logaddexp, logit, mul, nan_to_num, operands, sign, trunc
from fnad.torch._operators import pow as power
from fnad.torch._tensor import Tensor, make, method

LN2 = 0.6931471805599453


def _floating(x: Any) -> Any:
    x = tensor_of(x)
    return x if x._data.dtype.kind in "fc" else cast(x, _dtypes.DEFAULT.floating)


def _of_scipy(ufunc: str) -> Callable[[Any], Any]:
    """A ufunc of `scipy.special`, which SciPy's import waits for."""

    def call(x: Any) -> Any:
        return getattr(_scipy.special(), ufunc)(x)

    call.__name__ = ufunc
    return call


def _unary(function: Callable[[Any], Any], *names: str, floating: bool = True) -> Callable[[Any], Any]:
    """The function of tensors, as method and in place too."""
    lifted = lift(function, names[0])

    def call(input: Any) -> Any:
        return lifted(_floating(input) if floating else tensor_of(input))

    call.__name__ = names[0]
    call.__doc__ = f"`torch.{names[0]}` of each element."
    method(*names)(call)
    in_place(call, *[f"{name}_" for name in names])
    return call


erf, erfc = _unary(_of_scipy("erf"), "erf"), _unary(_of_scipy("erfc"), "erfc")
erfinv = _unary(_of_scipy("erfinv"), "erfinv")
lgamma, digamma = _unary(_of_scipy("gammaln"), "lgamma"), _unary(_of_scipy("psi"), "digamma")
i0 = _unary(np.i0, "i0")
sinc = _unary(np.sinc, "sinc")
deg2rad, rad2deg = _unary(np.deg2rad, "deg2rad"), _unary(np.rad2deg, "rad2deg")
positive = _unary(np.positive, "positive", floating=False)
frac = _unary(lambda x: x - np.trunc(x), "frac")
angle = method("angle")(lift(np.angle, "angle"))
conj = method("conj", "conj_physical", "resolve_conj")(lift(np.conjugate, "conj"))
sgn, fix = sign, trunc
method("sgn")(sign)
method("fix")(trunc)


def real(input: Any) -> Any:
    """The real parts; a real tensor itself."""
    return input if input._data.dtype.kind != "c" else _real(input)


def imag(input: Any) -> Any:
    """The imaginary parts."""
    if input._data.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _imag(input)


_real, _imag = lift(np.real, "real"), lift(np.imag, "imag")
method("real")(property(real))
method("imag")(property(imag))


def complex(real: Any, imag: Any) -> Any:
    """real + 1j * imag."""
    a, b = operands(real, imag)
    return cast(a, default_complex() if a._data.dtype.itemsize <= 4 else np.dtype(np.complex128)) + mul(b, 1j)


def polar(abs: Any, angle: Any) -> Any:
    """The complex numbers of given absolute values and angles."""
    return complex(abs * angle.cos(), abs * angle.sin())


def view_as_real(input: Any) -> Any:
    """Real and imaginary parts as a last axis."""
    return lift(lambda z: np.stack([np.real(z), np.imag(z)], axis=-1), "view_as_real")(input)


def view_as_complex(input: Any) -> Any:
    """The last axis, of size 2, as real and imaginary parts."""
    return complex(input[..., 0], input[..., 1])


def _known(function: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
    """A function whose result has no derivative."""

    def call(input: Any) -> Any:
        return make(np.asarray(function(input._data)))

    call.__name__, call.__doc__ = name, f"`torch.{name}` of each element."
    return method(name)(call)


isposinf, isneginf, isreal = _known(np.isposinf, "isposinf"), _known(np.isneginf, "isneginf"), _known(np.isreal, "isreal")


def _binary(function: Callable[[Any, Any], Any], name: str, floating: bool = True, changing: bool = True) -> Callable[[Any, Any], Any]:
    lifted = lift(function, name)

    def call(input: Any, other: Any) -> Any:
        a, b = operands(tensor_of(input) if not isinstance(other, Tensor) else input, other)
        if floating:
            a, b = (_floating(x) if isinstance(x, Tensor) else x for x in (a, b))
        return lifted(a, b)

    call.__name__, call.__doc__ = name, f"`torch.{name}` of each pair of elements."
    method(name)(call)
    if changing:
        in_place(call, f"{name}_")
    return call


def _xlogy(x: Any, y: Any) -> Any:
    return _scipy.special().xlogy(x, y)


xlogy = _binary(_xlogy, "xlogy")
heaviside = _binary(np.heaviside, "heaviside", floating=False)
gcd, lcm = _binary(np.gcd, "gcd", floating=False), _binary(np.lcm, "lcm", floating=False)
nextafter = _binary(np.nextafter, "nextafter")
ldexp = _binary(lambda x, n: x * np.exp2(array(n)), "ldexp")
inner = method("inner")(lift(np.inner, "inner"))


def float_power(input: Any, exponent: Any) -> Any:
    """input ** exponent, in float64."""
    return power(*(x.double() if isinstance(x, Tensor) and x._data.dtype.kind != "c" else x for x in (input, exponent)))


def logaddexp2(input: Any, other: Any) -> Any:
    """log2(2**input + 2**other)."""
    return mul(logaddexp(mul(input, LN2), mul(other, LN2)), 1 / LN2)


def polygamma(n: int, input: Any) -> Any:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(input)
    return lift(functools.partial(fnad_special.polygamma, n), "polygamma")(_floating(input))


method("float_power")(float_power)
method("logaddexp2")(logaddexp2)
method("polygamma")(lambda self, n: polygamma(n, self))
for _name in ("bitwise_left_shift", "bitwise_right_shift"):
    _symbol = "<<" if "left" in _name else ">>"
    method(_name)(lambda self, other, _s=_symbol: self << other if _s == "<<" else self >> other)
in_place(nan_to_num, "nan_to_num_")
in_place(logit, "logit_")

__all__ = [
    "angle", "complex", "conj", "deg2rad", "digamma", "erf", "erfc", "erfinv", "fix", "float_power", "frac", "gcd", "heaviside", "i0",
    "imag", "inner", "isneginf", "isposinf", "isreal", "lcm", "ldexp", "lgamma", "logaddexp2", "nextafter", "polar", "polygamma",
    "positive", "rad2deg", "real", "sgn", "sinc", "view_as_complex", "view_as_real", "xlogy",
]  # fmt: skip
