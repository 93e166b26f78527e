"""Best polynomials: the coefficients in `fnad/kernels/_coefficients.py` are computed with this.

`fit` finds the combination of powers whose weighted error has the smallest maximum over a fine grid, as a linear program
(Muller, Elementary Functions, 2016, chapter 3, states the problem). The program is solved in double precision for powers
that were made orthogonal in multiple precision, and again for what its solution leaves over, until nothing changes.
Coefficients are rounded to the working precision one by one, lowest power first, and the rest is fitted again after each
(in double precision, after the first few), so that later ones make up for the rounding of earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np
from scipy.optimize import linprog

mp.mp.prec = 160

Function = Callable[[mp.mpf], mp.mpf]


def fit(
    f: Function,
    powers: Sequence[int],
    low: float,
    high: float,
    weight: Function,
    dtype: type[np.floating] = np.float64,
    fixed: dict[int, float] | None = None,
) -> tuple[list[float], float]:
    """Rounded coefficients of `powers` with a small max |weight (f - p)| on [low, high], and that maximum.

    The coefficients in `fixed` are given.
    """
    grid = np.array(_chebyshev(mp.mpf(low), mp.mpf(high), max(80, 16 * len(powers))))
    weights = np.array([weight(x) for x in grid])
    known: dict[int, mp.mpf] = {p: mp.mpf(float(c)) for p, c in (fixed or {}).items()}
    free = [p for p in powers if p not in known]
    rest = weights * np.array([f(x) for x in grid])
    for p, c in known.items():
        rest = rest - weights * c * grid**p
    refits = 3 if dtype is np.float64 else len(free)
    coefficients: list[mp.mpf] = []
    while free:
        coefficients = best([weights * grid**p for p in free], rest) if refits > 0 else coefficients[1:]
        refits -= 1
        power, value = free.pop(0), mp.mpf(_rounded(coefficients[0], dtype))
        known[power] = value
        rest = rest - weights * value * grid**power
    return [float(known[p]) for p in powers], float(max(abs(rest)))


def fit_ratio(
    f: Function,
    over: int,
    under: int,
    low: float,
    high: float,
    weight: Function,
    dtype: type[np.floating] = np.float64,
) -> tuple[list[float], list[float], float]:
    """P with `over` coefficients, Q with `under` and Q(0) = 1, rounded, and the largest |weight (f - P / Q)|.

    Each step fits P - f (Q - 1) to f with the error divided by the Q of the step before (Loeb 1957). Q is then rounded and
    P fitted again to f Q.
    """
    grid = np.array(_chebyshev(mp.mpf(low), mp.mpf(high), max(80, 16 * (over + under))))
    weights, values = np.array([weight(x) for x in grid]), np.array([f(x) for x in grid])
    lower = np.array([mp.mpf(1)] * len(grid))
    for _ in range(8):
        now = weights / lower
        columns = [now * grid**p for p in range(over)] + [-now * values * grid**q for q in range(1, under)]
        found = best(columns, now * values)
        lower = sum((c * grid**q for q, c in enumerate(found[over:], 1)), np.array([mp.mpf(1)] * len(grid)))
    below = [1.0] + [_rounded(c, dtype) for c in found[over:]]
    lower = sum(mp.mpf(c) * grid**q for q, c in enumerate(below))
    above, rest, free = [], weights * values, list(range(over))
    coefficients: list[mp.mpf] = []
    while free:
        coefficients = best([weights * grid**p / lower for p in free], rest) if dtype is np.float32 or len(above) < 3 else coefficients[1:]
        above.append(_rounded(coefficients[0], dtype))
        rest = rest - weights * mp.mpf(above[-1]) * grid ** free.pop(0) / lower
    return above, below, float(max(abs(rest)))


def best(columns: Sequence[np.ndarray], values: np.ndarray) -> list[mp.mpf]:
    """Coefficients c with the smallest max |values - sum of c[k] columns[k]|; arrays of mpf."""
    basis: list[np.ndarray] = []
    recipe: list[list[mp.mpf]] = []  # basis[k] = sum of recipe[k][j] columns[j]
    for k, column in enumerate(columns):
        made = [mp.mpf(j == k) for j in range(k + 1)]
        for other, how in zip(basis, recipe, strict=True):
            share = other @ column
            column = column - share * other
            made = [m - share * (how[j] if j < len(how) else 0) for j, m in enumerate(made)]
        size = mp.sqrt(column @ column)
        basis.append(column / size)
        recipe.append([m / size for m in made])
    matrix = np.array(basis, dtype=np.float64).T
    shares = [mp.mpf(0)] * len(columns)
    for _ in range(3):
        scale = max(abs(values))
        step = scale * np.array([mp.mpf(c) for c in _chebyshev_solution(matrix, np.array(values / scale, dtype=np.float64))])
        values = values - sum(s * b for s, b in zip(step, basis, strict=True))
        shares = [a + b for a, b in zip(shares, step, strict=True)]
    return [mp.fsum(s * how[j] for s, how in zip(shares, recipe, strict=True) if j < len(how)) for j in range(len(columns))]


def _chebyshev_solution(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The c that minimises max |values - matrix c|, in double precision; the least squares c where the solver gives up."""
    start = np.linalg.lstsq(matrix, values, rcond=None)[0]
    values = values - matrix @ start
    scale = np.max(np.abs(values))
    if scale < 1e-14:
        return start
    count = matrix.shape[1]
    ones = np.ones((len(values), 1))
    above = np.block([[matrix, -ones], [-matrix, -ones]])
    goal = np.zeros(count + 1)
    goal[-1] = 1
    found = linprog(goal, above, np.concatenate([values, -values]) / scale, bounds=[(None, None)] * (count + 1), method="highs")
    return start + scale * found.x[:-1] if found.status == 0 else start


def _rounded(value: mp.mpf, dtype: type[np.floating]) -> float:
    if dtype is np.float64:
        return float(value)
    high = np.float32(float(value))
    near = [np.nextafter(high, np.float32(-np.inf)), high, np.nextafter(high, np.float32(np.inf))]
    return float(min(near, key=lambda c: abs(mp.mpf(float(c)) - value)))


def _chebyshev(low: mp.mpf, high: mp.mpf, count: int) -> list[mp.mpf]:
    """Points that lie denser at both ends, which are left out: the function may have no value there."""
    return [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / count) for k in range(count)]
