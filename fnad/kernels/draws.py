"""Random numbers of distributions that need a loop for each of them, and how gamma draws move with their parameter.

Keys are (rows, 2), arguments and results (rows, n). Entry i of a row uses the blocks of Philox4x64-10 with the counters
(0, i, 0, 3), (1, i, 0, 3), ... of the row's key until one of them is accepted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fnad._numba import kernel
from fnad.kernels._philox import MULTIPLIERS, ROUNDS, STEPS

_M0, _M1 = np.uint64(MULTIPLIERS[0]), np.uint64(MULTIPLIERS[1])
_W0, _W1 = np.uint64(STEPS[0]), np.uint64(STEPS[1])
_HALF, _MASK, _CUT = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint64(12)
_PURPOSE = np.uint64(3)


@kernel
def _high(a: Any, b: Any) -> Any:
    a_low, a_high, b_low, b_high = a & _MASK, a >> _HALF, b & _MASK, b >> _HALF
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    return a_high * b_high + (middle >> _HALF) + ((a_low * b_high + (middle & _MASK)) >> _HALF)


@kernel
def _block(k0: Any, k1: Any, attempt: int, entry: int) -> Any:
    """The four words of a counter, each as a number in (0, 1)."""
    c0, c1, c2, c3 = np.uint64(attempt), np.uint64(entry), np.uint64(0), _PURPOSE
    for _ in range(ROUNDS):
        c0, c1, c2, c3 = _high(_M1, c2) ^ c1 ^ k0, _M1 * c2, _high(_M0, c0) ^ c3 ^ k1, _M0 * c0
        k0, k1 = k0 + _W0, k1 + _W1
    scale = 2.0**-52
    u0, u1 = (np.float64(c0 >> _CUT) + 0.5) * scale, (np.float64(c1 >> _CUT) + 0.5) * scale
    return u0, u1, (np.float64(c2 >> _CUT) + 0.5) * scale, (np.float64(c3 >> _CUT) + 0.5) * scale


@kernel
def gamma(keys: Any, a: Any, log: bool, out: Any) -> None:
    """Of the gamma distribution with shape a and scale 1, or their logarithms.

    Marsaglia & Tsang, A Simple Method for Generating Gamma Variables, 2000; below a = 1 from a + 1 with their note 6.
    """
    for row in range(a.shape[0]):
        for i in range(a.shape[1]):
            shape = a[row, i]
            if not 0 < shape < np.inf:
                value = shape if shape >= 0 else np.nan
                out[row, i] = math.log(value) if log and value > 0 else -np.inf if log and value == 0 else value
                continue
            d = shape + (2.0 / 3.0 if shape < 1 else -1.0 / 3.0)
            c = 1 / math.sqrt(9 * d)
            attempt = 0
            while True:
                u0, u1, u2, u3 = _block(keys[row, 0], keys[row, 1], attempt, i)
                attempt += 1
                x = math.sqrt(-2 * math.log(u0)) * math.cos(2 * math.pi * u1)
                v = 1 + c * x
                if v > 0:
                    v = v * v * v
                    if math.log(u2) < 0.5 * x * x + d * (1 - v + math.log(v)):
                        break
            power = math.log(u3) / shape if shape < 1 else 0.0
            out[row, i] = math.log(d) + math.log(v) + power if log else d * v * math.exp(power)


@kernel
def _series(a: float, x: float, log_x: float, psi: float) -> float:
    """dlog(x)/da for small x: F(x) = x**a exp(-x) / gamma(a + 1) * sum of x**n / ((a + 1) ... (a + n))."""
    term, total, by_a, harmonic, n = 1.0, 1.0, 0.0, 0.0, 0
    while term > 1e-17 * total:
        n += 1
        term *= x / (a + n)
        harmonic += 1 / (a + n)
        total += term
        by_a -= term * harmonic
    return -((log_x - psi - 1 / a) * total + by_a) / a


@kernel
def _integral(a: float, x: float, log_x: float, psi: float, nodes: Any, weights: Any) -> float:
    """dlog(x)/da as an integral over s = |log(t / x)|, from the lighter tail's side of x, where the integrand decays."""
    below = x <= a
    sign = -1.0 if below else 1.0
    end = 1e-8
    while sign * a * end - x * math.expm1(sign * end) > -45:
        end *= 1.5
    total = 0.0
    for k in range(nodes.shape[0]):
        s = end * nodes[k]
        total += weights[k] * sign * (log_x + sign * s - psi) * math.exp(sign * a * s - x * math.expm1(sign * s))
    return total * end


@kernel
def gamma_slope(a: Any, x: Any, psi: Any, log: bool, nodes: Any, weights: Any, out: Any) -> None:
    """dx/da of gamma draws x at a fixed quantile; with `log`, of their logarithms, which x then holds. psi is digamma(a).

    Nodes and weights are those of Gauss and Legendre on [0, 1]. Implicit reparameterisation: Figurnov, Mohamed & Mnih, 2018.
    """
    for i in range(a.shape[0]):
        log_x = x[i] if log else (math.log(x[i]) if x[i] > 0 else -np.inf)
        value = math.exp(log_x)
        if not (0 < a[i] < np.inf) or log_x == -np.inf:
            out[i] = 0.0 if a[i] > 0 and log_x == -np.inf else np.nan
            continue
        slope = _series(a[i], value, log_x, psi[i]) if value <= 1.5 else _integral(a[i], value, log_x, psi[i], nodes, weights)
        out[i] = slope if log else slope * value


@kernel
def poisson(keys: Any, rate: Any, out: Any) -> None:
    """Of the Poisson distribution; -1 where the rate is negative or nan.

    Up to a rate of 10 by multiplying uniform numbers (Knuth), above by the transformed rejection PTRS of Hoermann, The
    transformed rejection method for generating Poisson random variables, 1993.
    """
    for row in range(rate.shape[0]):
        k0, k1 = keys[row, 0], keys[row, 1]
        for i in range(rate.shape[1]):
            lam = rate[row, i]
            if not 0 <= lam < np.inf:
                out[row, i] = -1
            elif lam < 10:
                out[row, i] = _small_poisson(k0, k1, lam, i)
            else:
                out[row, i] = _large_poisson(k0, k1, lam, i)


@kernel
def _small_poisson(k0: Any, k1: Any, lam: float, entry: int) -> int:
    limit, product, count, attempt = math.exp(-lam), 1.0, -1, 0
    while True:
        for u in _block(k0, k1, attempt, entry):
            count += 1
            product *= u
            if product <= limit:
                return count
        attempt += 1


@kernel
def _large_poisson(k0: Any, k1: Any, lam: float, entry: int) -> int:
    b = 0.931 + 2.53 * math.sqrt(lam)
    a = -0.059 + 0.02483 * b
    limit = 0.9277 - 3.6224 / (b - 2)
    scale = math.log(1.1239 + 1.1328 / (b - 3.4))
    attempt = 0
    while True:
        u, v, _, _ = _block(k0, k1, attempt, entry)
        attempt += 1
        u -= 0.5
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + lam + 0.43)
        if us >= 0.07 and v <= limit:
            return int(k)
        if k >= 0 and (us >= 0.013 or v <= us):
            bound = k * math.log(lam) - lam - math.lgamma(k + 1)
            if math.log(v) + scale - math.log(a / (us * us) + b) <= bound:
                return int(k)


@kernel
def binomial(keys: Any, count: Any, chance: Any, out: Any) -> None:
    """How many of `count` trials succeed; -1 where count is negative or the chance is not in [0, 1].

    Where few successes (or failures) are expected by adding up the gaps between them, otherwise by the transformed rejection
    BTRS of Hoermann, The generation of binomial random variates, 1993.
    """
    for row in range(count.shape[0]):
        k0, k1 = keys[row, 0], keys[row, 1]
        for i in range(count.shape[1]):
            n, p = math.floor(count[row, i]), chance[row, i]
            if not (n >= 0 and 0 <= p <= 1):
                out[row, i] = -1
                continue
            q = min(p, 1 - p)
            k = 0
            if n > 0 and q > 0:
                k = _small_binomial(k0, k1, n, q, i) if n * q < 10 else _large_binomial(k0, k1, n, q, i)
            out[row, i] = k if p <= 0.5 else int(n) - k


@kernel
def _small_binomial(k0: Any, k1: Any, n: float, p: float, entry: int) -> int:
    passed, found, attempt, rate = 0.0, 0, 0, math.log1p(-p)
    while True:
        for u in _block(k0, k1, attempt, entry):
            passed += math.ceil(math.log(u) / rate)
            if passed > n:
                return found
            found += 1
        attempt += 1


@kernel
def _large_binomial(k0: Any, k1: Any, n: float, p: float, entry: int) -> int:
    spread = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    limit = 0.92 - 4.2 / b
    scale = (2.83 + 5.1 / b) * spread
    odds, mode = math.log(p / (1 - p)), math.floor((n + 1) * p)
    top = math.lgamma(mode + 1) + math.lgamma(n - mode + 1)
    attempt = 0
    while True:
        u, v, _, _ = _block(k0, k1, attempt, entry)
        attempt += 1
        u -= 0.5
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + n * p + 0.5)
        if us >= 0.07 and v <= limit:
            return int(k)
        if 0 <= k <= n:
            bound = top - math.lgamma(k + 1) - math.lgamma(n - k + 1) + (k - mode) * odds
            if math.log(v * scale / (a / (us * us) + b)) <= bound:
                return int(k)
