"""Ufuncs of `scipy.special` for distributions and statistics, and some hypergeometric and elliptic functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.core.aval import aval_of, promotion_operand
from fnad.primitives._families import Elementwise, Unary
from fnad.primitives._of_scipy import log_power, no_slope, weak

_DEGREE = math.pi / 180
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_ROOT_HALF = math.sqrt(0.5)


def declare(sp: Any) -> None:
    """Declare the primitives, from the module `scipy.special`."""
    for part in (_incomplete, _distributions, _losses, _combinatorial, _hypergeometric, _elliptic, _trigonometric):
        part(sp)


def _negative(slope: Callable[..., Any]) -> Callable[..., Any]:
    """The slope of a complement; its operands keep their names."""

    @functools.wraps(slope)
    def negative(*operands: Any) -> Any:
        return -slope(*operands)

    return negative


def _incomplete(sp: Any) -> None:
    """Incomplete gamma and beta functions, and their inverses, whose slopes are those at the result, inverted."""

    def gamma_density(x: Any, y: Any, sign: int = 1) -> Any:
        return np.exp(sign * (log_power(y, x - 1) - y - weak(sp.gammaln, x)))

    def beta_density(x: Any, y: Any, z: Any, sign: int = 1) -> Any:
        return np.exp(sign * (log_power(z, x - 1) + log_power(1 - z, y - 1) - weak(sp.betaln, x, y)))

    def of_gamma(name: str, slope: Any, domain: tuple[float, float]) -> None:
        Elementwise(name, getattr(sp, name), no_slope(name, "a"), slope, domain=domain)

    def of_beta(name: str, slope: Any, domain: tuple[float, float]) -> None:
        Elementwise(name, getattr(sp, name), no_slope(name, "a"), no_slope(name, "b"), slope, domain=domain)

    of_gamma("gammainc", lambda x, y: gamma_density(x, y), (0.5, 3.0))
    of_gamma("gammaincc", lambda x, y: -gamma_density(x, y), (0.5, 3.0))
    of_gamma("gammaincinv", lambda x, out: gamma_density(x, out, -1), (0.2, 0.9))
    of_gamma("gammainccinv", lambda x, out: -gamma_density(x, out, -1), (0.2, 0.9))
    of_beta("betainc", lambda x, y, z: beta_density(x, y, z), (0.1, 0.9))
    of_beta("betaincc", lambda x, y, z: -beta_density(x, y, z), (0.1, 0.9))
    of_beta("betaincinv", lambda x, y, out: beta_density(x, y, out, -1), (0.2, 0.8))
    of_beta("betainccinv", lambda x, y, out: -beta_density(x, y, out, -1), (0.2, 0.8))


def _distributions(sp: Any) -> None:
    def chi_square(x: Any, y: Any) -> Any:
        return 0.5 * np.exp(log_power(0.5 * y, 0.5 * x - 1) - 0.5 * y - weak(sp.gammaln, 0.5 * x))

    def student(x: Any, y: Any, sign: int = 1) -> Any:
        half = 0.5 * x
        log = weak(sp.gammaln, half + 0.5) - weak(sp.gammaln, half) - (half + 0.5) * np.log1p(y * y / x) - 0.5 * weak(np.log, math.pi * x)
        return np.exp(sign * log)

    def fisher(x: Any, y: Any, z: Any) -> Any:
        half, other = 0.5 * x, 0.5 * y
        odds = z * (x / y)
        return np.exp(half * weak(np.log, x / y) + log_power(z, half - 1) - (half + other) * np.log1p(odds) - weak(sp.betaln, half, other))

    def gamma(x: Any, y: Any, z: Any) -> Any:
        return np.exp(log_power(x * z, y - 1) - x * z - weak(sp.gammaln, y))

    Elementwise("chdtr", sp.chdtr, no_slope("chdtr", "v"), lambda x, y: chi_square(x, y), domain=(0.5, 3.0))
    Elementwise("chdtrc", sp.chdtrc, no_slope("chdtrc", "v"), lambda x, y: -chi_square(x, y), domain=(0.5, 3.0))
    Elementwise(
        "stdtr", sp.stdtr, no_slope("stdtr", "df"), lambda x, y: student(x, y), domain=(0.5, 3.0), special=((3.0, 0.0), (2.0, -5.0))
    )
    Elementwise("stdtrit", sp.stdtrit, no_slope("stdtrit", "df"), lambda x, out: student(x, out, -1), domain=(0.2, 0.9))
    fixed = no_slope("fdtr", "dfn"), no_slope("fdtr", "dfd")
    Elementwise("fdtr", sp.fdtr, *fixed, lambda x, y, z: fisher(x, y, z), domain=(0.5, 3.0))
    Elementwise("fdtrc", sp.fdtrc, *fixed, lambda x, y, z: -fisher(x, y, z), domain=(0.5, 3.0))
    by_rate, by_value = (lambda x, y, z: z * gamma(x, y, z)), (lambda x, y, z: x * gamma(x, y, z))
    Elementwise("gdtr", sp.gdtr, by_rate, no_slope("gdtr", "b"), by_value, domain=(0.5, 3.0))
    Elementwise("gdtrc", sp.gdtrc, _negative(by_rate), no_slope("gdtrc", "b"), _negative(by_value), domain=(0.5, 3.0))
    by_mean = lambda x, y: -np.exp(np.floor(x) * np.log(y) - y - weak(sp.gammaln, np.floor(x) + 1))  # noqa: E731
    Elementwise("pdtr", sp.pdtr, None, by_mean, domain=(0.5, 3.0))
    Elementwise("pdtrc", sp.pdtrc, None, _negative(by_mean), domain=(0.5, 3.0))
    Elementwise(
        "owens_t",
        sp.owens_t,
        lambda x, y: -np.exp(-0.5 * x * x) * weak(sp.erf, _ROOT_HALF * x * y) / (2 * _ROOT_TWO_PI),
        lambda x, y: np.exp(-0.5 * x * x * (1 + y * y)) / (2 * math.pi * (1 + y * y)),
    )
    Elementwise("ndtri_exp", sp.ndtri_exp, lambda x, out: _ROOT_TWO_PI * np.exp(x + 0.5 * out * out), domain=(-3.0, -0.2), special=(-50.0,))


def _losses(sp: Any) -> None:
    Elementwise(
        "huber", sp.huber, lambda x, y: np.maximum(np.abs(y) - x, 0), lambda x, y: np.minimum(np.maximum(y, -x), x),
        domain=(0.5, 3.0), special=((1.0, -2.0), (1.0, 0.0), (2.0, 1.0)),
    )  # fmt: skip

    def root(x: Any, y: Any) -> Any:
        ratio = y / x
        return np.sqrt(1 + ratio * ratio)

    Elementwise(
        "pseudo_huber", sp.pseudo_huber, lambda x, y: 2 * x * (root(x, y) - 1) - y * y / (x * root(x, y)), lambda x, y: y / root(x, y),
        domain=(0.5, 3.0), special=((1.0, -2.0), (1.0, 0.0)),
    )  # fmt: skip


def _combinatorial(sp: Any) -> None:
    def psi(x: Any) -> Any:
        return weak(sp.digamma, x)

    Elementwise(
        "binom", sp.binom, lambda x, y, out: out * (psi(x + 1) - psi(x - y + 1)), lambda x, y, out: out * (psi(x - y + 1) - psi(y + 1)),
        domain=(1.1, 1.9), special=((5.0, 2.0), (10.5, 3.0)),
    )  # fmt: skip
    Elementwise(
        "poch", sp.poch, lambda x, y, out: out * (psi(x + y) - psi(x)), lambda x, y, out: out * psi(x + y),
        domain=(0.5, 3.0), special=((5.0, 2.0),),
    )  # fmt: skip
    Unary("loggamma", sp.loggamma, lambda x: psi(x), domain=(0.5, 4.0), special=(1.0, 100.0))


def _hypergeometric(sp: Any) -> None:
    """exprel and the transforms of Box and Cox are integrals of exponentials, which are confluent hypergeometric functions."""
    Elementwise(
        "hyp1f1", sp.hyp1f1, no_slope("hyp1f1", "a"), no_slope("hyp1f1", "b"), lambda x, y, z: (x / y) * weak(sp.hyp1f1, x + 1, y + 1, z),
        domain=(0.5, 3.0),
    )  # fmt: skip
    Elementwise("hyp0f1", sp.hyp0f1, no_slope("hyp0f1", "v"), lambda x, y: weak(sp.hyp0f1, x + 1, y) / x, domain=(0.5, 3.0))

    def first_moment(t: Any) -> Any:
        """The integral of u exp(t u) over u from 0 to 1."""
        return 0.5 * weak(sp.hyp1f1, 2.0, 3.0, t)

    Unary("exprel", sp.exprel, lambda x: first_moment(x), special=(0.0, 1e-9, -20.0, 20.0))
    Elementwise(
        "boxcox", sp.boxcox, lambda x, y: x ** (y - 1), lambda x, y: np.square(np.log(x)) * first_moment(y * np.log(x)),
        domain=(0.3, 3.0), special=((2.0, 0.0), (1.0, 0.5)),
    )  # fmt: skip
    Elementwise(
        "boxcox1p", sp.boxcox1p, lambda x, y: (1 + x) ** (y - 1), lambda x, y: np.square(np.log1p(x)) * first_moment(y * np.log1p(x)),
        domain=(-0.5, 2.0), special=((2.0, 0.0), (0.0, 0.5)),
    )  # fmt: skip
    Elementwise("inv_boxcox", sp.inv_boxcox, lambda y, out: out ** (1 - y), no_slope("inv_boxcox", "lmbda"), domain=(0.3, 3.0))
    Elementwise("inv_boxcox1p", sp.inv_boxcox1p, lambda y, out: (1 + out) ** (1 - y), no_slope("inv_boxcox1p", "lmbda"), domain=(0.3, 3.0))
    Unary("exp1", sp.exp1, lambda x: -np.exp(-x) / x, domain=(0.2, 5.0))
    Unary("expi", sp.expi, lambda x: np.exp(x) / x, domain=(0.2, 4.0), special=(-1.0,))
    Elementwise("powm1", sp.powm1, lambda x, y: y * x ** (y - 1), lambda x, y: np.exp(y * np.log(x)) * np.log(x), domain=(0.3, 3.0))


def _elliptic(sp: Any) -> None:
    """Complete elliptic integrals. Their derivatives are hypergeometric functions, which have no 0 / 0 at 0."""

    def family(name: str, a: float) -> Elementwise:
        def derivative(n: Any, m: Any) -> Any:
            dtype = sp.boxcox.resolve_dtypes((*[promotion_operand(aval_of(v)) for v in (n, m)], None))[-1]  # as any ufunc of two numbers
            scale = 0.5 * math.pi * sp.poch(a, n) * sp.poch(0.5, n) / sp.gamma(np.add(n, 1.0))
            return (scale * sp.hyp2f1(a + n, 0.5 + n, 1.0 + n, np.asarray(m, np.float64))).astype(dtype)[()]

        found: Elementwise = Elementwise(
            f"{name}_derivative", sp.boxcox, no_slope(name, "n"), lambda x, y: found(x + 1, y), numpy=(), impl=derivative, domain=(0.1, 0.8)
        )
        return found

    k, e = family("ellipk", 0.5), family("ellipe", -0.5)
    Unary("ellipk", sp.ellipk, lambda x: k(1.0, x), domain=(-0.8, 0.8), special=(0.0, -5.0, 0.99))
    Unary("ellipe", sp.ellipe, lambda x: e(1.0, x), domain=(-0.8, 0.8), special=(0.0, -5.0, 0.99))


def _trigonometric(sp: Any) -> None:
    Unary("cosm1", sp.cosm1, lambda x: -np.sin(x), special=(0.0,))
    Unary("sindg", sp.sindg, lambda x: _DEGREE * weak(sp.cosdg, x), special=(0.0, 90.0, 720.0))
    Unary("cosdg", sp.cosdg, lambda x: -_DEGREE * weak(sp.sindg, x), special=(0.0, 90.0, 720.0))
    Unary("tandg", sp.tandg, slope_from_out=lambda y: _DEGREE * (1 + y * y), special=(0.0, 45.0))
    Elementwise("k0e", sp.k0e, lambda x, out: out - weak(sp.k1e, x), domain=(0.5, 4.0))
    Elementwise("k1e", sp.k1e, lambda x, out: out - weak(sp.k0e, x) - out / x, domain=(0.5, 4.0))
    by_x = lambda x, y, out: out - 0.5 * (weak(sp.kve, x - 1, y) + weak(sp.kve, x + 1, y))  # noqa: E731
    Elementwise("kve", sp.kve, no_slope("kve", "v"), by_x, domain=(0.5, 3.0))
