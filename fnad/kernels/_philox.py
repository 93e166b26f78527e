"""Philox4x64-10: four random words of 64 bits from a counter and a key, by ten rounds of multiplication.

    (c0, c1, c2, c3) -> (high(M1 c2) ^ c1 ^ k0, low(M1 c2), high(M0 c0) ^ c3 ^ k1, low(M0 c0)),  k0 += W0, k1 += W1

A word depends on its counter alone, so that any number of threads computes the same words. Salmon et al., Parallel Random
Numbers: As Easy as 1, 2, 3, 2011; the generator of `numpy.random.Philox`.
"""

from __future__ import annotations

from typing import Any

from fnad.kernels.codegen.expr import Expr, const, mulhi

MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
"""What is added to the key after each round: the golden ratio, and the square root of 3 less 1."""
ROUNDS = 10


def rounds(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any], high: Any, number: Any) -> tuple[Any, Any, Any, Any]:
    """The four words; `high` is the upper half of a product, `number` makes a constant."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for k in range(ROUNDS):
        if k:
            k0, k1 = k0 + number(STEPS[0]), k1 + number(STEPS[1])
        m0, m1 = number(MULTIPLIERS[0]), number(MULTIPLIERS[1])
        c0, c1, c2, c3 = high(m1, c2) ^ c1 ^ k0, m1 * c2, high(m0, c0) ^ c3 ^ k1, m0 * c0
    return c0, c1, c2, c3


def _words(k0: Expr, k1: Expr, low: Expr, purpose: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    zero = const(0, "u64")
    return rounds((low, zero, zero, purpose), (k0, k1), mulhi, lambda n: const(n, "u64"))


def philox_0(k0: Expr, k1: Expr, low: Expr, purpose: Expr) -> Expr:
    """The first word for a counter with `low` as its lowest and `purpose` as its highest word."""
    return _words(k0, k1, low, purpose)[0]


def philox_1(k0: Expr, k1: Expr, low: Expr, purpose: Expr) -> Expr:
    """The second word, as `philox_0`."""
    return _words(k0, k1, low, purpose)[1]


def philox_2(k0: Expr, k1: Expr, low: Expr, purpose: Expr) -> Expr:
    """The third word, as `philox_0`."""
    return _words(k0, k1, low, purpose)[2]


def philox_3(k0: Expr, k1: Expr, low: Expr, purpose: Expr) -> Expr:
    """The fourth word, as `philox_0`."""
    return _words(k0, k1, low, purpose)[3]


def high_product(x: Expr, y: Expr) -> Expr:
    """The upper half of the double-width product of unsigned integers."""
    return mulhi(x, y)
