"""Helpers that the generated derivative code calls; each runs under numba and without."""

from __future__ import annotations

from typing import Any

import numpy as np

from fnad._numba import kernel

F = np.ndarray[Any, Any]


@kernel
def grow(tape: F, size: int) -> F:
    """The tape with room for `size` numbers at least; pages that are not touched cost nothing."""
    new = np.empty(max(size, 4 * tape.size), tape.dtype)
    new[: tape.size] = tape
    return new


@kernel
def accumulate(target: F, amount: F) -> None:
    """`target += amount`."""
    for index in np.ndindex(target.shape):
        target[index] += amount[index]


@kernel
def restore(target: F, contents: F) -> None:
    """`target[...] = contents`."""
    for index in np.ndindex(target.shape):
        target[index] = contents[index]


@kernel
def hand_on(target: F, source: F) -> None:
    """Move `source` to `target`, unless they are one array."""
    if target.size and target.ctypes.data != source.ctypes.data:
        for index in np.ndindex(target.shape):
            target[index] += source[index]
            source[index] = 0.0


@kernel
def dot_left_11(target: F, ct: float, y: F) -> None:
    """x += ct * y, for the scalar x @ y."""
    for i in range(target.size):
        target[i] += ct * y[i]


@kernel
def dot_right_11(target: F, ct: float, x: F) -> None:
    """y += ct * x, for the scalar x @ y."""
    for i in range(target.size):
        target[i] += ct * x[i]


@kernel
def dot_left_21(target: F, ct: F, y: F) -> None:
    """A += outer(ct, y), for A @ y."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] += ct[i] * y[j]


@kernel
def dot_right_21(target: F, ct: F, a: F) -> None:
    """y += A.T @ ct, for A @ y."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            target[j] += ct[i] * a[i, j]


@kernel
def dot_left_12(target: F, ct: F, a: F) -> None:
    """x += A @ ct, for x @ A."""
    for i in range(a.shape[0]):
        s = target[i]
        for j in range(a.shape[1]):
            s += a[i, j] * ct[j]
        target[i] = s


@kernel
def dot_right_12(target: F, ct: F, x: F) -> None:
    """A += outer(x, ct), for x @ A."""
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            target[i, j] += x[i] * ct[j]


@kernel
def dot_left_22(target: F, ct: F, b: F) -> None:
    """A += ct @ B.T, for A @ B."""
    target += np.ascontiguousarray(ct) @ np.ascontiguousarray(b.T)


@kernel
def dot_right_22(target: F, ct: F, a: F) -> None:
    """B += A.T @ ct, for A @ B."""
    target += np.ascontiguousarray(a.T) @ np.ascontiguousarray(ct)


@kernel
def polygamma(n: int, x: float) -> float:
    """The derivatives of log gamma: n = 0 is digamma. Recurrence upwards, then the asymptotic series; reflection for x <= 0 and n = 0."""
    if x <= 0.0:
        if x == np.floor(x):
            return np.nan
        if n == 0:
            return polygamma_positive(0, 1.0 - x) - np.pi / np.tan(np.pi * x)
        if n == 1:
            return -polygamma_positive(1, 1.0 - x) + (np.pi / np.sin(np.pi * x)) ** 2
        total, factor = 0.0, 1.0
        for k in range(1, n + 1):
            factor *= -k
        while x <= 0.0:
            total -= factor / x ** (n + 1)
            x += 1.0
        return polygamma_positive(n, x) + total
    return polygamma_positive(n, x)


@kernel
def polygamma_positive(n: int, x: float) -> float:
    """`polygamma` for x > 0: psi(n, x) = psi(n, x + 1) - (-1)^n n! / x^(n+1), and Stirling's series from 15 + n on."""
    factorial = 1.0
    for k in range(2, n + 1):
        factorial *= k
    sign = -1.0 if n % 2 == 0 else 1.0
    total = 0.0
    while x < 15.0 + n:
        total += sign * factorial / x ** (n + 1)
        x += 1.0
    bernoulli = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
    if n == 0:
        total += np.log(x) - 0.5 / x
    else:
        total += sign * (factorial / n / x**n + 0.5 * factorial / x ** (n + 1))
    rising = 1.0  # (2k + n - 1)! / (2k)!
    for k in range(1, n + 2):
        rising *= k
    rising /= 2.0
    for k in range(1, 8):
        total += sign * bernoulli[k - 1] * rising / x ** (2 * k + n)
        rising *= (2 * k + n) * (2 * k + n + 1) / ((2 * k + 1) * (2 * k + 2))
    return total


HELPERS = {
    k.py_func.__name__: k
    for k in (
        grow,
        accumulate,
        restore,
        hand_on,
        dot_left_11,
        dot_right_11,
        dot_left_21,
        dot_right_21,
        dot_left_12,
        dot_right_12,
        dot_left_22,
        dot_right_22,
        polygamma,
    )
}
