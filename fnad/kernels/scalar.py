"""Mathematical functions as scalar expressions, each written once: the compiler and the printers take them from here.

Every function takes and returns expressions of float32 or float64 (arithmetic ones of integers too), without branches, so
that LLVM computes several elements at once. Results are at most two units in the last place away from the exact ones, over
the whole range of the arguments; infinities, nan and signed zeros come out as from NumPy. What only huge arguments of sin,
cos, tan, remainder, fmod and floor_divide need is marked as rare: a loop may leave it out (`codegen.graph.split_rare`).
"""

from __future__ import annotations

from fnad.kernels._arithmetic import absolute as absolute
from fnad.kernels._arithmetic import degrees as degrees
from fnad.kernels._arithmetic import floor_divide as floor_divide
from fnad.kernels._arithmetic import fmax as fmax
from fnad.kernels._arithmetic import fmin as fmin
from fnad.kernels._arithmetic import fmod as fmod
from fnad.kernels._arithmetic import heaviside as heaviside
from fnad.kernels._arithmetic import isfinite as isfinite
from fnad.kernels._arithmetic import isinf as isinf
from fnad.kernels._arithmetic import maximum as maximum
from fnad.kernels._arithmetic import minimum as minimum
from fnad.kernels._arithmetic import radians as radians
from fnad.kernels._arithmetic import reciprocal as reciprocal
from fnad.kernels._arithmetic import remainder as remainder
from fnad.kernels._arithmetic import sign as sign
from fnad.kernels._arithmetic import signbit as signbit
from fnad.kernels._error_function import erf as erf
from fnad.kernels._error_function import erfc as erfc
from fnad.kernels._error_function import erfinv as erfinv
from fnad.kernels._error_function import gelu as gelu
from fnad.kernels._error_function import ndtr as ndtr
from fnad.kernels._exponential import exp as exp
from fnad.kernels._exponential import exp2 as exp2
from fnad.kernels._exponential import exp10 as exp10
from fnad.kernels._exponential import expm1 as expm1
from fnad.kernels._exponential import logistic2 as logistic2
from fnad.kernels._exponential import sigmoid as sigmoid
from fnad.kernels._exponential import tanh as tanh
from fnad.kernels._hyperbolic import arccosh as arccosh
from fnad.kernels._hyperbolic import arcsinh as arcsinh
from fnad.kernels._hyperbolic import arctanh as arctanh
from fnad.kernels._hyperbolic import cosh as cosh
from fnad.kernels._hyperbolic import sinh as sinh
from fnad.kernels._inverse import arccos as arccos
from fnad.kernels._inverse import arcsin as arcsin
from fnad.kernels._inverse import arctan as arctan
from fnad.kernels._inverse import arctan2 as arctan2
from fnad.kernels._logarithm import log as log
from fnad.kernels._logarithm import log1p as log1p
from fnad.kernels._logarithm import log2 as log2
from fnad.kernels._logarithm import log10 as log10
from fnad.kernels._logarithm import log_sigmoid as log_sigmoid
from fnad.kernels._logarithm import logaddexp as logaddexp
from fnad.kernels._logarithm import logaddexp2 as logaddexp2
from fnad.kernels._logarithm import logit as logit
from fnad.kernels._logarithm import softplus as softplus
from fnad.kernels._philox import high_product as high_product
from fnad.kernels._philox import philox_0 as philox_0
from fnad.kernels._philox import philox_1 as philox_1
from fnad.kernels._philox import philox_2 as philox_2
from fnad.kernels._philox import philox_3 as philox_3
from fnad.kernels._power import cbrt as cbrt
from fnad.kernels._power import hypot as hypot
from fnad.kernels._power import power as power
from fnad.kernels._power import power_of as power_of
from fnad.kernels._special import entr as entr
from fnad.kernels._special import gamma as gamma
from fnad.kernels._special import gammaln as gammaln
from fnad.kernels._special import relu as relu
from fnad.kernels._special import xlog1py as xlog1py
from fnad.kernels._special import xlogy as xlogy
from fnad.kernels._trigonometric import cos as cos
from fnad.kernels._trigonometric import sin as sin
from fnad.kernels._trigonometric import sinc as sinc
from fnad.kernels._trigonometric import tan as tan

# Other names of the same functions, by which primitives ask for them
logistic = expit = sigmoid
log_expit = log_sigmoid
normal_cdf = ndtr
