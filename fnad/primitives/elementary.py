"""Functions of each element of one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad.primitives._families import Elementwise, Unary

_LN2, _LN10 = 0.6931471805599453, 2.302585092994046
_DEGREE = 0.017453292519943295


def _abs_slope(x: Any) -> Any:
    if x.dtype.kind == "c" if hasattr(x, "dtype") else isinstance(x, complex):
        r = np.absolute(x)
        zero = r == 0
        return np.conjugate(np.where(zero, 0, x)) / np.where(zero, 1.0, r)
    return np.sign(x)


exp = Unary("exp", np.exp, slope_from_out=lambda y: y, kinds="fc", special=(0.0, 1000.0, -1000.0))
exp2 = Unary("exp2", np.exp2, slope_from_out=lambda y: y * _LN2, special=(0.0,))
expm1 = Unary("expm1", np.expm1, slope_from_out=lambda y: y + 1, special=(0.0, 1e-12))
log = Unary("log", np.log, lambda x: 1 / x, kinds="fc", domain=(0.2, 4.0))
log2 = Unary("log2", np.log2, lambda x: 1 / (x * _LN2), domain=(0.2, 4.0))
log10 = Unary("log10", np.log10, lambda x: 1 / (x * _LN10), domain=(0.2, 4.0))
log1p = Unary("log1p", np.log1p, lambda x: 1 / (1 + x), domain=(-0.8, 3.0), special=(0.0, 1e-12))
sqrt = Unary("sqrt", np.sqrt, slope_from_out=lambda y: 0.5 / y, kinds="fc", domain=(0.2, 4.0))
cbrt = Unary("cbrt", np.cbrt, slope_from_out=lambda y: 1 / (3 * y * y), domain=(0.2, 4.0))
square = Unary("square", np.square, lambda x: 2 * x, kinds="fc", special=(0.0,))
reciprocal = Unary("reciprocal", np.reciprocal, slope_from_out=lambda y: -y * y, kinds="fc", domain=(0.5, 3.0))
sin = Unary("sin", np.sin, np.cos, kinds="fc", special=(0.0,))
cos = Unary("cos", np.cos, lambda x: -np.sin(x), kinds="fc", special=(0.0,))
tan = Unary("tan", np.tan, slope_from_out=lambda y: 1 + y * y, kinds="fc", domain=(-1.2, 1.2))
arcsin = Unary("arcsin", np.arcsin, lambda x: 1 / np.sqrt((1 - x) * (1 + x)), domain=(-0.9, 0.9))
arccos = Unary("arccos", np.arccos, lambda x: -1 / np.sqrt((1 - x) * (1 + x)), domain=(-0.9, 0.9))
arctan = Unary("arctan", np.arctan, lambda x: 1 / (1 + x * x), special=(0.0, 1e8))
sinh = Unary("sinh", np.sinh, np.cosh, kinds="fc", special=(0.0,))
cosh = Unary("cosh", np.cosh, np.sinh, kinds="fc", special=(0.0,))
tanh = Unary("tanh", np.tanh, slope_from_out=lambda y: 1 - y * y, kinds="fc", special=(0.0, 30.0, -30.0))
arcsinh = Unary("arcsinh", np.arcsinh, lambda x: 1 / np.hypot(x, 1.0), special=(0.0,))
arccosh = Unary("arccosh", np.arccosh, lambda x: 1 / np.sqrt((x - 1) * (x + 1)), domain=(1.2, 4.0))
arctanh = Unary("arctanh", np.arctanh, lambda x: 1 / ((1 - x) * (1 + x)), domain=(-0.9, 0.9))
degrees = Unary("degrees", np.degrees, lambda: 1 / _DEGREE, numpy=(np.degrees, np.rad2deg))
radians = Unary("radians", np.radians, lambda: _DEGREE, numpy=(np.radians, np.deg2rad))
absolute = Unary("absolute", np.absolute, _abs_slope, kinds="fc", numpy=(np.absolute, np.fabs), special=(0.0,))
sign = Unary("sign", np.sign)
