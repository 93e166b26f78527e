"""Writes `fnad/kernels/_coefficients.py`: `python tests/tools/coefficients.py > fnad/kernels/_coefficients.py`.

Every polynomial stands here with the function it stands for, its interval, and the weight of its error: what is made
small is the error of the final result in units of its last place.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Iterator

import mpmath as mp
import numpy as np
from minimax import fit, fit_ratio

HEAD = '''"""Coefficients of the polynomials in this package, lowest power first, as `tests/tools/coefficients.py` computes them.

Behind each: the binary logarithm of the largest weighted error of the rounded coefficients.
"""

# fmt: off
'''
TYPES = {"f64": np.float64, "f32": np.float32}
WIDE = "f32 "  # for float32 results that are computed in float64
Table = tuple[str, str, list[float], float]
LN2 = mp.log(2)


def series(f: Callable[[mp.mpf], mp.mpf], at_zero: float) -> Callable[[mp.mpf], mp.mpf]:
    """f with its limit at 0, where its formula cancels too far."""
    return lambda x: f(x) if abs(x) > mp.mpf(10) ** -20 else mp.mpf(at_zero)


def exponential(r: mp.mpf) -> mp.mpf:
    """(exp(r) - 1 - r) / r**2."""
    return (mp.expm1(r) - r) / r**2


def logarithm(z: mp.mpf) -> mp.mpf:
    """With s = sqrt(z): (2 atanh(s) - 2 s) / s**3."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) - 2 * s) / s**3


def tangent(z: mp.mpf) -> mp.mpf:
    """With s = sqrt(z): (tanh(s) - s) / s**3."""
    s = mp.sqrt(z)
    return (mp.tanh(s) / s - 1) / z


def sine(z: mp.mpf) -> mp.mpf:
    """With r = sqrt(z): (sin(r) - r) / r**3."""
    r = mp.sqrt(z)
    return (mp.sin(r) / r - 1) / z


def cosine(z: mp.mpf) -> mp.mpf:
    """With r = sqrt(z): (cos(r) - 1 + z / 2) / z**2."""
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def hyperbolic_sine(z: mp.mpf) -> mp.mpf:
    """With x = sqrt(z): (sinh(x) - x) / x**3."""
    x = mp.sqrt(z)
    return (mp.sinh(x) / x - 1) / z


def arcsine(z: mp.mpf) -> mp.mpf:
    """With x = sqrt(z): (asin(x) - x) / x**3."""
    x = mp.sqrt(z)
    return (mp.asin(x) / x - 1) / z


def arctangent(z: mp.mpf) -> mp.mpf:
    """With t = sqrt(z): (atan(t) - t) / t**3."""
    t = mp.sqrt(z)
    return (mp.atan(t) / t - 1) / z


def erf_ratio(z: mp.mpf) -> mp.mpf:
    """With x = sqrt(z): erf(x) / x - 1."""
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


def tail(scale: mp.mpf, factor: mp.mpf, low: float, high: float, count: int, tries: int) -> tuple[float, list[float], float]:
    """K and a polynomial in t = (x - K) / (x + K) for factor exp(s**2) erfc(s) (x + K), s = scale x, on [0, high].

    K is chosen near `low` so that the constant term, which stands for the function at t = 0, is almost a float64.
    """

    def function(x: mp.mpf, k: mp.mpf) -> mp.mpf:
        return factor * mp.exp((scale * x) ** 2) * mp.erfc(scale * x) * (x + k)

    def distance(k: float) -> float:
        value = function(mp.mpf(k), mp.mpf(k))
        return float(abs(value - mp.mpf(float(value))) / value)

    found = []
    for k in sorted((low + i / 256 for i in range(64)), key=distance)[:tries]:
        of_t = lambda t, k=mp.mpf(k): function(k * (1 + t) / (1 - t), k)
        found.append((k, *fit(of_t, range(count), -1, float((high - k) / (high + k)), lambda t, f=of_t: 1 / f(t))))
    return min(found, key=lambda f: f[2])


def inverse_erf(w: mp.mpf) -> mp.mpf:
    """erfinv(x) / x for w = -log(1 - x**2)."""
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def parts(value: mp.mpf, dtype: str, count: int) -> list[float]:
    """The number as a sum of floats, each the rest rounded."""
    out = []
    for _ in range(count):
        out.append(float(TYPES[dtype](float(value))))
        value -= mp.mpf(out[-1])
    return out


def short(value: mp.mpf, dtype: str) -> list[float]:
    """The number as a sum of two floats, the product of the first one and an exponent being exact."""
    scale = mp.mpf(2) ** (40 if dtype == "f64" else 15)
    first = mp.nint(value * scale) / scale
    return [float(first), float(TYPES[dtype](float(value - first)))]


def pieces(value: mp.mpf, bits: int, count: int) -> list[float]:
    """A positive number below 1 as a sum of numbers of so many bits each, the last one a full float64."""
    out = []
    for k in range(1, count + 1):
        scale = mp.mpf(2) ** (bits * k)
        out.append(float(mp.floor(value * scale) / scale) if k < count else float(value))
        value -= mp.mpf(out[-1])
    return out


def windows(value: mp.mpf) -> list[float]:
    """For j = 0, 1, ...: the 48 bits of 2**(16 j - 1075) times the number from 2**1 down to 2**-46, without multiples of 4."""
    return [float(mp.floor(value * mp.mpf(2) ** (16 * j - 1075 + 46)) % 2**48 * mp.mpf(2) ** -46) for j in range(137)]


def constants() -> Iterator[Table]:
    """Numbers split into parts, worked out with more digits than any of them needs."""
    with mp.workprec(2400):
        log2, log10 = mp.log(2), mp.log(10)
        found = [
            ("HALF_PI_SHORT", "f32", parts(mp.pi / 2, "f32", 2)),
            ("HALF_PI", "f64", parts(mp.pi / 2, "f64", 3)),
            ("TWO_OVER_PI", "f64", windows(2 / mp.pi)),
            ("TWO_OVER_PI_SHORT", "f64", pieces(2 / mp.pi, 29, 6)),
            ("TWO_THIRDS", "f64", parts(mp.mpf(2) / 3, "f64", 2)),
        ]
        for dtype in TYPES:
            for name, value in (("LOG2_E", 1 / log2), ("LOG10_E", 1 / log10), ("LN2", log2), ("LN10", log10)):
                found.append((name, dtype, parts(value, dtype, 2)))
            found += [("LN2_SHORT", dtype, short(log2, dtype)), ("LOG10_2_SHORT", dtype, short(log2 / log10, dtype))]
    for row in found:
        yield *row, mp.mpf(0)


def exponentials() -> Iterator[Table]:
    half = LN2 / 2 * mp.mpf("1.0001")
    for dtype, count in (("f64", 10), ("f32", 5)):
        yield "EXP", dtype, *fit(series(exponential, 0.5), range(count), -half, half, lambda r: r * r, TYPES[dtype], {0: 0.5})
    for dtype, count in (("f64", 11), ("f32", 6)):
        weight = lambda r: r * r / mp.expm1(r)
        yield "EXPM1", dtype, *fit(series(exponential, 0.5), range(count), -half, half, weight, TYPES[dtype], {0: 0.5})
    for dtype, over, under in (("f64", 3, 4), ("f32", 2, 2)):
        above, below, error = fit_ratio(series(tangent, -1 / 3), over, under, 0, 0.55**2, lambda z: z, TYPES[dtype])
        yield "TANH_OVER", dtype, above, error
        yield "TANH_UNDER", dtype, below, error
    for dtype, count in (("f64", 8), ("f32", 4)):
        yield "SINH", dtype, *fit(series(hyperbolic_sine, 1 / 6), range(count), 0, 1, lambda z: z, TYPES[dtype])


def logarithms() -> Iterator[Table]:
    limit = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.0001")
    for dtype, count in (("f64", 7), ("f32", 3)):
        yield "LOG", dtype, *fit(series(logarithm, 2 / 3), range(count), 0, limit, lambda z: z / 2, TYPES[dtype])
    rest = series(lambda z: (logarithm(z) - mp.mpf(2) / 3) / z, 0.4)
    for dtype, count in (("f64", 7), (WIDE, 3)):
        yield "LOG_REST", dtype, *fit(rest, range(count), 0, limit, lambda z: z * z / 2)
    ends = mp.sqrt(mp.mpf(1) / 2) * mp.mpf("0.9999"), mp.sqrt(2) * mp.mpf("1.0001")
    for dtype, count in (("f64", 6), ("f32", 4)):
        yield "CBRT", dtype, *fit(mp.cbrt, range(count), *ends, lambda x: 1 / mp.cbrt(x), TYPES[dtype])


def trigonometric() -> Iterator[Table]:
    quarter = (mp.pi / 4 * mp.mpf("1.0001")) ** 2
    for dtype, count in (("f64", 6), ("f32", 3)):
        yield "SIN", dtype, *fit(series(sine, -1 / 6), range(count), 0, quarter, lambda z: z, TYPES[dtype])
    for dtype, count in (("f64", 6), ("f32", 3)):
        yield "COS", dtype, *fit(series(cosine, 1 / 24), range(count), 0, quarter, lambda z: z * z, TYPES[dtype])
    for dtype, count in (("f64", 12), ("f32", 5)):
        yield "ARCSIN", dtype, *fit(series(arcsine, 1 / 6), range(count), 0, 0.25, lambda z: z, TYPES[dtype])
    eighth = (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.0001")
    for dtype, count in (("f64", 12), (WIDE, 5)):
        yield "ARCTAN", dtype, *fit(series(arctangent, -1 / 3), range(count), 0, eighth, lambda z: z)


def error_functions() -> Iterator[Table]:
    root, one = mp.sqrt(mp.mpf(1) / 2), mp.mpf(1)
    for dtype, count in (("f64", 12), ("f32", 7)):
        yield "ERF_NEAR", dtype, *fit(erf_ratio, range(count), 1e-30, 1, lambda z: 1 / (1 + erf_ratio(z)), TYPES[dtype])
    for dtype, count, end in (("f64", 18, 5.95), ("f32", 8, 3.95)):
        weight = lambda x: mp.erfc(x) / mp.erf(x)
        yield "ERF_FAR", dtype, *fit(lambda x: mp.log(mp.erfc(x)), range(count), 1, end, weight, TYPES[dtype])
    yield "ERFC_NEAR", "f64", *fit(lambda z: 1 + erf_ratio(z), range(10), 1e-30, 0.37, mp.sqrt)
    yield "NDTR_NEAR", "f64", *fit(lambda z: (1 + erf_ratio(z / 2)) * root / 2, range(10), 1e-30, 0.73, mp.sqrt)
    for name, scale, factor, low, ends in (("ERFC", one, one, 3.0, (27.3, 10.2)), ("NDTR", root, one / 2, 4.2, (38.7, 14.5))):
        for dtype, count, end, tries in (("f64", 23, ends[0], 6), (WIDE, 10, ends[1], 1)):
            k, values, error = tail(scale, factor, low, end, count, tries)
            yield name + "_K", dtype, [k], mp.mpf(0)
            yield name, dtype, values, error
    far = lambda s: inverse_erf(s * s)
    for dtype, counts, end in (("f64", (9, 9), 6.1), (WIDE, (11, 11), 4.1)):
        yield "ERFINV_NEAR", dtype, *fit(inverse_erf, range(counts[0]), 1e-9, 5, lambda w: 1 / inverse_erf(w))
        yield "ERFINV_FAR", dtype, *fit(far, range(counts[1]), float(mp.sqrt(5)), end, lambda s: 1 / far(s))


def main() -> None:
    print(HEAD)
    found: dict[str, list[str]] = {}
    rows = itertools.chain(constants(), exponentials(), logarithms(), trigonometric(), error_functions())
    for name, dtype, values, error in rows:
        lines = found.setdefault(name, [])
        lines.append(f'    "{dtype.strip()}": (' + (f"  # {float(mp.log(error, 2)):.1f}" if error else ""))
        numbers = [f"{TYPES.get(dtype, np.float64)(v)!s}," for v in values]
        lines += textwrap.wrap(" ".join(numbers), 132, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False)
        lines.append("    ),")
    for name, lines in found.items():
        print("\n".join([f"{name} = {{", *lines, "}"]))


if __name__ == "__main__":
    main()
