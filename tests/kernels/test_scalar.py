"""Mathematical functions against mpmath, over all floats and where it is hard; and that loops around them are vectorised."""

import math
import re

import mpmath
import numpy as np
import pytest
import scipy.special

from fnad.errors import DTypeError
from fnad.kernels import scalar
from fnad.kernels.codegen.expr import DTYPES, const, var
from fnad.kernels.codegen.graph import ordered, split_rare
from fnad.kernels.codegen.numpy_expr import evaluate

from .loops import Loop
from .test_expr import run_source

MP = mpmath.MPContext()
MP.prec = 130
ULPS = 2.0
DENSE = 400
FLOATS = ("f64", "f32")


def _logistic(x):
    return 1 / (1 + MP.exp(-x))


def _ndtr(x):
    return MP.erfc(-x / MP.sqrt(2)) / 2


def _ndtr_of_array(x):
    """SciPy's own is wrong by many units in the last place."""
    return np.array([float(_ndtr(MP.mpf(v))) if abs(v) < 1e6 else scipy.special.ndtr(v) for v in x])


def _softplus(x):
    return MP.log1p(MP.exp(-abs(x))) + max(x, 0)


def _logistic2(x):
    return np.where(x < 0, np.exp2(-np.abs(x)), 1) / (1 + np.exp2(-np.abs(x)))


def _inside(f, low, high):
    return lambda x: f(x) if low <= x <= high and MP.isfinite(x) else MP.nan


PI = math.pi
UNARY = {
    # the function, NumPy's or SciPy's one for special values, and intervals for float64 and float32
    "exp": (MP.exp, np.exp, [(-746, 710), (-1, 1), (-745.3, -708), (709, 710)], [(-104, 89), (-1, 1), (-104, -87)]),
    "exp2": (lambda x: MP.mpf(2) ** x, np.exp2, [(-1076, 1025), (-1, 1), (-1076, -1020)], [(-151, 129), (-1, 1), (-151, -125)]),
    "expm1": (MP.expm1, np.expm1, [(-40, 710), (-1, 1), (0.3, 0.5), (709, 710)], [(-18, 89), (-1, 1), (0.3, 0.5)]),
    "log": (_inside(MP.log, 0, MP.inf), np.log, [(0, 10), (0.5, 2), (0.999, 1.001)], [(0, 10), (0.5, 2), (0.99, 1.01)]),
    "log2": (_inside(lambda x: MP.log(x) / MP.log(2), 0, MP.inf), np.log2, [(0, 10), (0.5, 2)], [(0, 10), (0.5, 2)]),
    "log10": (_inside(lambda x: MP.log(x) / MP.log(10), 0, MP.inf), np.log10, [(0, 10), (0.5, 2)], [(0, 10), (0.5, 2)]),
    "log1p": (_inside(MP.log1p, -1, MP.inf), np.log1p, [(-1, 10), (-0.5, 0.5), (0.4, 0.45)], [(-1, 10), (-0.5, 0.5), (0.4, 0.45)]),
    "tanh": (MP.tanh, np.tanh, [(-20, 20), (-1, 1), (0.54, 0.57)], [(-10, 10), (-1, 1), (0.54, 0.57)]),
    "sigmoid": (_logistic, scipy.special.expit, [(-746, 40), (-6, 6)], [(-104, 20), (-6, 6)]),
    "softplus": (_softplus, lambda x: np.logaddexp(0, x), [(-746, 40), (-3, 3)], [(-104, 20), (-3, 3)]),
    "log_sigmoid": (lambda x: -_softplus(-x), lambda x: -np.logaddexp(0, -x), [(-40, 746), (-3, 3)], [(-20, 104), (-3, 3)]),
    "sin": (MP.sin, np.sin, [(-4, 4), (-1e6, 1e6), (-1e17, 1e17)], [(-4, 4), (-1e6, 1e6), (-1e17, 1e17)]),
    "cos": (MP.cos, np.cos, [(-4, 4), (-1e6, 1e6), (-1e17, 1e17)], [(-4, 4), (-1e6, 1e6), (-1e17, 1e17)]),
    "tan": (MP.tan, np.tan, [(-4, 4), (-1e6, 1e6), (-1e17, 1e17)], [(-4, 4), (-1e6, 1e6), (-1e17, 1e17)]),
    "arcsin": (_inside(MP.asin, -1, 1), np.arcsin, [(-1, 1), (0.5, 0.55), (0.99, 1)], [(-1, 1), (0.5, 0.55), (0.99, 1)]),
    "arccos": (_inside(MP.acos, -1, 1), np.arccos, [(-1, 1), (0.99, 1)], [(-1, 1), (0.99, 1)]),
    "arctan": (MP.atan, np.arctan, [(-3, 3), (0.41, 0.45), (-1e9, 1e9)], [(-3, 3), (0.41, 0.45), (-1e9, 1e9)]),
    "sinh": (MP.sinh, np.sinh, [(-711, 711), (-2, 2), (709.7, 710.5)], [(-90, 90), (-2, 2), (88.6, 89.5)]),
    "cosh": (MP.cosh, np.cosh, [(-711, 711), (-2, 2), (709.7, 710.5)], [(-90, 90), (-2, 2), (88.6, 89.5)]),
    "arcsinh": (MP.asinh, np.arcsinh, [(-2, 2), (-1e-3, 1e-3), (0, 1e17)], [(-2, 2), (-1e-3, 1e-3), (0, 1e9)]),
    "arccosh": (_inside(MP.acosh, 1, MP.inf), np.arccosh, [(1, 3), (1, 1.0001), (1, 1e17)], [(1, 3), (1, 1.001), (1, 1e9)]),
    "arctanh": (_inside(MP.atanh, -1, 1), np.arctanh, [(-1, 1), (-0.2, 0.2), (0.999, 1)], [(-1, 1), (-0.2, 0.2), (0.99, 1)]),
    "erf": (MP.erf, scipy.special.erf, [(-6.2, 6.2), (0.9, 1.3)], [(-4.2, 4.2), (0.9, 1.3)]),
    "erfc": (MP.erfc, scipy.special.erfc, [(-7, 27.5), (-1, 1), (0.4, 0.7), (26, 27.3)], [(-5, 10.2), (-1, 1), (9, 10.3)]),
    "ndtr": (_ndtr, _ndtr_of_array, [(-38.6, 9), (-2, 2), (-1.1, -0.8), (-38.6, -37)], [(-14.5, 6), (-2, 2), (-14.5, -13)]),
    "exp10": (lambda x: MP.mpf(10) ** x, lambda x: 10.0**x, [(-324, 309), (-1, 1)], [(-46, 39), (-1, 1), (38, 38.6)]),
    "logistic2": (lambda x: 1 / (1 + MP.mpf(2) ** -x), _logistic2, [(-1075, 60), (-6, 6)], [(-150, 30), (-6, 6)]),
    "logit": (_inside(lambda x: MP.log(x / (1 - x)), 0, 1), scipy.special.logit, [(0, 1), (0.4, 0.6), (0.999, 1)], [(0, 1), (0.4, 0.6)]),
    "erfinv": (
        _inside(MP.erfinv, -1, 1),
        lambda x: np.copysign(scipy.special.erfinv(x), x),
        [(-1, 1), (0.4, 0.6), (0.9999, 1)],
        [(-1, 1), (0.4, 0.6), (0.9999, 1)],
    ),
    "cbrt": (lambda x: MP.sign(x) * MP.cbrt(abs(x)), np.cbrt, [(-10, 10), (0.3, 3)], [(-10, 10), (0.3, 3)]),
}
BINARY = {
    "power": (lambda x, y: x**y if x > 0 else MP.nan, np.power),
    "hypot": (lambda x, y: MP.sqrt(x * x + y * y), np.hypot),
    "arctan2": (MP.atan2, np.arctan2),
    "logaddexp": (lambda x, y: max(x, y) + MP.log1p(MP.exp(-abs(x - y))), np.logaddexp),
    "logaddexp2": (lambda x, y: max(x, y) + MP.log1p(2 ** -abs(x - y)) / MP.log(2), np.logaddexp2),
}
EXACT = {
    "fmax": np.fmax, "fmin": np.fmin, "maximum": np.maximum, "minimum": np.minimum, "heaviside": np.heaviside,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "fmod": np.fmod,
}  # fmt: skip


def precise(f, *args):
    """f at float arguments; None where it has no finite value, or is too far beyond all floats to be worked out."""
    try:
        value = f(*[MP.mpf(float(a)) for a in args])
    except (ValueError, ZeroDivisionError, OverflowError, TypeError, MP.NoConvergence):
        return None
    return value if isinstance(value, MP.mpf) and MP.isfinite(value) else None


def ulps(got, exact, dtype):
    """The distance in units of the last place of the exact value; inf stands for the first number too large."""
    info = np.finfo(dtype)
    power = max(MP.frexp(exact)[1] - 1 if exact else info.minexp, info.minexp)
    power = min(power, info.maxexp - 1)
    value = MP.ldexp(math.copysign(1, got), info.maxexp) if math.isinf(got) else MP.mpf(float(got))
    if abs(exact) > MP.ldexp(1, info.maxexp):
        exact = MP.sign(exact) * MP.ldexp(1, info.maxexp)
    return float(abs(value - exact) / MP.ldexp(1, power - info.nmant))


def worst(f, got, dtype, *arrays):
    """The largest error and where it is; nan where f is defined counts as infinite."""
    found = (0.0, None)
    for i, value in enumerate(got):
        args = [a[i] for a in arrays]
        exact = precise(f, *args)
        if exact is None or not all(map(np.isfinite, args)):
            continue
        error = math.inf if math.isnan(value) else ulps(value, exact, dtype)
        found = max(found, (error, (*args, value)), key=lambda e: e[0])
    return found


def bit_patterns(n, dtype, rng):
    """Random floats of all exponents, subnormal ones too."""
    if dtype == "f64":
        return rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64)
    return rng.integers(0, 2**32, n, dtype=np.uint32).view(np.float32)


def specials(dtype):
    info = np.finfo(DTYPES[dtype])
    one = [0.0, 1.0, 0.5, 2.0, 3.0, 1.5, 1e-3, 10.0, 100.0, 1e4, math.inf, float(info.max), float(info.tiny)]
    values = np.array([*one, float(info.smallest_subnormal), float(info.eps)], DTYPES[dtype])
    payload = np.array([0xFFF923456789ABCD, 0x7FFFFFFFFFFFFFFF], np.uint64).view(np.float64)  # nan with bits that mean something
    return np.concatenate([values, -values, [math.nan], payload.astype(DTYPES[dtype])]).astype(DTYPES[dtype])


def agree(got, want):
    """Equal up to two units in the last place, zeros with their signs."""
    with np.errstate(all="ignore"):
        close = np.abs(got - want) <= 2 * np.spacing(np.abs(want))
    equal = (got == want) & (np.signbit(got) == np.signbit(want))
    return equal | (close & (want != 0)) | (np.isnan(got) & np.isnan(want))


@pytest.fixture(scope="module")
def loops():
    made = {}

    def loop(name, dtype, count=1):
        key = (name, dtype)
        if key not in made:
            made[key] = Loop(getattr(scalar, name), *[dtype] * count)
        return made[key]

    return loop


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_accuracy(name, dtype, loops):
    """At most two units in the last place: over all floats, and over the intervals where something happens."""
    f, _, *intervals = UNARY[name]
    rng = np.random.default_rng(5)
    parts = [bit_patterns(2 * DENSE, dtype, rng)]
    parts += [rng.uniform(low, high, DENSE).astype(DTYPES[dtype]) for low, high in intervals[FLOATS.index(dtype)]]
    x = np.concatenate(parts)
    error, where = worst(f, loops(name, dtype)(x), DTYPES[dtype], x)
    assert error <= ULPS, where


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_special_values(name, dtype, loops):
    """Signed zeros, infinities, nan, the ends of the range and of the domain, as NumPy and SciPy have them."""
    x = specials(dtype)
    with np.errstate(all="ignore"):
        want = UNARY[name][1](x.astype(np.float64)).astype(DTYPES[dtype])
    got = loops(name, dtype)(x)
    good = agree(got, want) | ((x != 0) & (got == 0) & (want == 0))
    assert np.all(good), list(zip(x[~good], got[~good], want[~good], strict=True))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_arguments_near_multiples_of_half_pi(name, dtype, loops):
    """Where the difference from the multiple is small, down to the worst float64 of all (Muller 2016, table 11.1)."""
    rng = np.random.default_rng(6)
    n = np.concatenate([np.arange(1, 200), rng.integers(1, 2**52, 300), 2 ** rng.integers(1, 62, 100)])
    x = np.array([float(MP.pi / 2 * int(k)) for k in n]).astype(DTYPES[dtype])
    x = np.concatenate([x, np.ldexp(x[-300:], 40)])
    if dtype == "f32":  # the product with 2 / pi is found in another way: many candidates, and the hardest of them
        many = bit_patterns(2_000_000, dtype, rng)
        many = many[np.abs(many) > 1e12].astype(np.float64)
        sine, cosine = np.abs(np.sin(many)), np.abs(np.cos(many))
        x = np.concatenate([x, *(many[np.argsort(small)[:50]] for small in (sine, cosine))]).astype(np.float32)
    if dtype == "f64":
        x = np.append(x, [6381956970095103.0 * 2.0**797, 5319372648326541.0 * 2.0**-1, 2.0**1023, 1e22])
    precision, MP.prec = MP.prec, 400
    try:
        error, where = worst(UNARY[name][0], loops(name, dtype)(x), DTYPES[dtype], x)
    finally:
        MP.prec = precision
    assert error <= ULPS, where


def pairs(name, dtype, rng):
    """Arguments of a function of two, some everyday ones and some extreme ones."""
    x, y = rng.normal(size=(2, DENSE)) * 3
    wide = 300 if dtype == "f64" else 35
    large = 10 ** rng.uniform(-wide, wide, (2, DENSE))
    if name == "power":
        small = rng.uniform(-1, 1, DENSE) * 10.0 ** rng.integers(-6, -1, DENSE)
        left = [np.abs(x), large[0], 1 + small, rng.uniform(0, 5, DENSE)]
        return np.concatenate(left), np.concatenate([y * 20, 300 / wide * y / 3, 5 / small, rng.integers(-40, 40, DENSE)])
    if name in ("logaddexp", "logaddexp2"):
        return np.abs(np.concatenate([x, x * 200])), np.abs(np.concatenate([y, y * 200]))
    return np.concatenate([x, large[0], x, large[0]]), np.concatenate([y, large[1], y * 1e3, large[0] * y])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_accuracy_of_two_arguments(name, dtype, loops):
    rng = np.random.default_rng(7)
    with np.errstate(over="ignore"):
        x, y = (a.astype(DTYPES[dtype]) for a in pairs(name, dtype, rng))
    error, where = worst(BINARY[name][0], loops(name, dtype, 2)(x, y), DTYPES[dtype], x, y)
    assert error <= ULPS, where


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY | EXACT)
def test_special_values_of_two_arguments(name, dtype, loops):
    """All pairs of special values, as NumPy has them."""
    function = EXACT.get(name) or BINARY[name][1]
    x, y = (a.ravel() for a in np.meshgrid(specials(dtype), specials(dtype)))
    with np.errstate(all="ignore"):
        want = function(x, y)
        if name in ("power", "hypot", "logaddexp", "logaddexp2"):  # NumPy's own float32 versions are less accurate
            want = function(x.astype(np.float64), y.astype(np.float64)).astype(DTYPES[dtype])
    got = loops(name, dtype, 2)(x, y)
    good = agree(got, want)
    if name in ("maximum", "minimum", "fmax", "fmin"):
        good |= (got == 0) & (want == 0)  # NumPy returns either zero
    if name in ("logaddexp", "logaddexp2"):  # the result may be the small difference of large numbers
        with np.errstate(all="ignore"):
            good |= np.abs(got - want) <= 2 * np.spacing(np.maximum(np.abs(x), np.abs(y)))
    assert np.all(good), list(zip(x[~good], y[~good], got[~good], want[~good], strict=True))[:10]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
def test_remainders_are_those_of_numpy(name, dtype, loops):
    """Exact, also where the quotient has more bits than the mantissa."""
    rng = np.random.default_rng(10)
    x, y = rng.normal(size=(2, 2000))
    x = np.concatenate([x * 20, np.rint(x * 30), x * 1e9, x * 10 ** rng.uniform(-30, 30, 2000)]).astype(DTYPES[dtype])
    y = np.concatenate([y, np.ceil(np.abs(y) * 4), y, y * 10 ** rng.uniform(-30, 30, 2000)]).astype(DTYPES[dtype])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y)
    np.testing.assert_array_equal(loops(name, dtype, 2)(x, y), want)
    (fast,), (condition,) = split_rare([getattr(scalar, name)(var("x0", dtype), var("x1", dtype))])
    got, rare = evaluate([fast, condition], {"x0": x, "x1": y})
    np.testing.assert_array_equal(got[~rare], want[~rare])


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_with_a_known_exponent(dtype):
    """Products, as accurate as the general power, overflowing and underflowing where the result does."""
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.normal(size=150), specials(dtype), 10.0 ** rng.uniform(-30, 30, 100)]).astype(DTYPES[dtype])
    for n in (-30, -5, -2, -1, 0, 1, 2, 3, 4, 5, 7, 16, 63, 64):
        got = Loop(lambda x, n=n: scalar.power(x, const(n, x.dtype)), dtype)(x)
        error, where = worst(lambda x, n=n: x**n, got, DTYPES[dtype], x)
        assert error <= ULPS, (n, where)
        with np.errstate(all="ignore"):
            want = np.power(specials(dtype), DTYPES[dtype].type(n))
        assert np.all(agree(got[150 : 150 + len(want)], want)), n
    half = Loop(lambda x: scalar.power(x, const(0.5, x.dtype)), dtype)(x)
    assert worst(lambda x: MP.sqrt(x) if x >= 0 else MP.nan, half, DTYPES[dtype], x)[0] <= ULPS


@pytest.mark.parametrize("dtype", ["i32", "u16", "i64"])
def test_integers(dtype):
    """Arithmetic functions of integers, as NumPy has them."""
    info = np.iinfo(DTYPES[dtype])
    base = np.array([0, 1, 2, 3, 7, 100, info.max, info.min, info.max - 1], DTYPES[dtype])
    x, y = (a.ravel() for a in np.meshgrid(base, base))
    for name in ("remainder", "fmod", "floor_divide", "maximum", "minimum"):
        with np.errstate(all="ignore"):
            want = getattr(np, name)(x, y)
        np.testing.assert_array_equal(Loop(getattr(scalar, name), dtype, dtype)(x, y), want)
    for name in ("absolute", "sign"):
        np.testing.assert_array_equal(Loop(getattr(scalar, name), dtype)(x), getattr(np, name)(x))
    n = np.arange(len(x), dtype=DTYPES[dtype]) % 40
    np.testing.assert_array_equal(Loop(scalar.power, dtype, dtype)(x, n), np.power(x, n))
    np.testing.assert_array_equal(Loop(lambda x: scalar.power(x, const(5, dtype)), dtype)(x), x**5)


def test_small_functions():
    x = specials("f64")
    for name in ("sign", "signbit", "isfinite", "isinf", "absolute", "reciprocal"):
        with np.errstate(all="ignore"):
            want = getattr(np, name)(x)
        np.testing.assert_array_equal(Loop(getattr(scalar, name), "f64")(x), want)
    y = np.linspace(-4, 4, 101)
    for name in ("degrees", "radians", "sinc"):
        np.testing.assert_allclose(Loop(getattr(scalar, name), "f64")(y), getattr(np, name)(y), rtol=4e-16, atol=1e-16)
    assert worst(lambda x: x * _ndtr(x), Loop(scalar.gelu, "f64")(y), np.float64, y)[0] <= ULPS
    with pytest.raises(DTypeError, match="take floats"):
        scalar.exp(var("i", "i64"))


def test_combinations():
    """Functions of scipy.special made of others."""
    x, y = (a.ravel() for a in np.meshgrid(specials("f64"), specials("f64")))
    with np.errstate(all="ignore"):
        for name in ("xlogy", "xlog1py"):
            np.testing.assert_allclose(Loop(getattr(scalar, name), "f64", "f64")(x, y), getattr(scipy.special, name)(x, y), rtol=1e-15)
        for name in ("entr", "gammaln", "gamma", "expit", "log_expit"):
            at = x[(np.abs(x) < 1e4) & ((np.abs(x) > 1e-300) | (x == 0))]  # SciPy's gammaln is inf for subnormal numbers
            np.testing.assert_allclose(Loop(getattr(scalar, name), "f64")(at), getattr(scipy.special, name)(at), rtol=1e-14)
    np.testing.assert_array_equal(Loop(scalar.relu, "f64")(x), np.maximum(x, 0))


def test_exact_powers_of_the_base():
    exponents = np.arange(-1074.0, 1024.0)
    np.testing.assert_array_equal(Loop(scalar.exp2, "f64")(exponents), 2.0**exponents)
    np.testing.assert_array_equal(Loop(scalar.log2, "f64")(2.0**exponents), exponents)
    tens = np.arange(-22.0, 23.0)
    np.testing.assert_array_equal(Loop(scalar.log10, "f64")(10.0**tens), tens)
    np.testing.assert_array_equal(Loop(scalar.cbrt, "f64")(np.arange(-99.0, 99.0) ** 3), np.arange(-99.0, 99.0))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_three_readings(name, dtype, loops):
    """NumPy, which does not fuse products and sums, is about as accurate; the printed Python computes what NumPy does."""
    rng = np.random.default_rng(9)
    count = 2 if name in BINARY else 1
    arguments = [var(f"x{i}", dtype) for i in range(count)]
    e = getattr(scalar, name)(*arguments)
    x = [np.abs(rng.normal(size=60)).astype(DTYPES[dtype]) for _ in range(count)]
    if name in ("arcsin", "arccos", "arctanh", "logit", "erfinv"):
        x = [a / (1 + a) for a in x]
    x[0] = x[0] + 1 if name == "arccosh" else x[0]
    want = evaluate([e], {f"x{i}": a for i, a in enumerate(x)})[0]
    got = loops(name, dtype, count)(*x)
    assert want.dtype == got.dtype
    assert np.all(np.abs(got - want) <= 2 * np.spacing(np.abs(want)))
    for i in range(0, 60, 12):
        assert run_source([e], {f"x{k}": a[i] for k, a in enumerate(x)})[0] == want[i]


@pytest.mark.parametrize("name", ["exp", "tanh", "sin"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_numba_computes_what_numpy_does(name, dtype):
    e = getattr(scalar, name)(var("x", dtype))
    for value in (0.3, -7.25, 1e17):
        x = DTYPES[dtype].type(value)
        got, want = run_source([e], {"x": x}, "@njit")[0], evaluate([e], {"x": x})[0]
        assert got == want or abs(got - want) <= np.spacing(np.abs(want))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*UNARY, "power", "hypot", "arctan2", "logaddexp"])
def test_loops_are_vectorised(name, dtype, loops):
    """Packed arithmetic in wide registers, no calls, and no branches but those of the loop."""
    loop = loops(name, dtype, 2 if name in BINARY else 1)
    body = loop.assembly[loop.assembly.index(f"{loop.name}:") :]
    if not re.search(r"\b[xyz]mm\d+", body):
        pytest.skip("a machine without the vector instructions looked for")
    assert len(re.findall(r"\bv?(?:fn?m(?:add|sub)\d*|mul|add|sub)p[sd]\b", body)) > 4
    assert re.search(r"%[yz]mm\d+" if "ymm" in body or "zmm" in body else r"%xmm\d+", body)
    assert not re.search(r"\bcall", body)


def test_the_parts_for_huge_arguments_can_be_left_out():
    """sin, cos and tan mark them as rare; one condition guards all of them, and the rest is right where it is false."""
    x = var("x0", "f64")
    whole = [scalar.sin(x), scalar.cos(x), scalar.tan(x)]
    fast, conditions = split_rare(whole)
    assert len(conditions) == 1
    assert len(ordered(fast)) < len(ordered(whole)) - 40
    at = np.array([0.0, -1.5, 1e5, 1e14, 2e15, math.inf, math.nan])
    got = evaluate([*fast, *conditions], {"x0": at})
    np.testing.assert_array_equal(got[3], np.abs(at) > 2.0**48)
    for f, e in zip(got, evaluate(whole, {"x0": at}), strict=False):
        np.testing.assert_array_equal(f[:4], e[:4])
