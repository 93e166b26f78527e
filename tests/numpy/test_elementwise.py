"""Functions of each element: values and types as NumPy's, exact slopes at ordinary, special and extreme points."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import ConcretizationError, InPlaceError, UnsupportedError
from fnad.testing import check_grads, check_vmap
from fnad.testing.strategies import arrays, broadcastable

XS = np.array([-2.0, -0.5, 0.0, 0.5, 3.0])
inf, nan = np.inf, np.nan


def slope(f, *args, argnums=0):
    with np.errstate(all="ignore"):
        return fnad.grad(lambda *a: f(*a), argnums)(*map(float, args))


def traced(f, *args):
    """What `f` returns for traced arguments under reverse mode, as a plain value."""
    return fnad.vjp(f, *args)[0]


# -- slopes against closed forms with hundreds of digits -----------------------------------------------------------------------

BIG = [-1e150, -30.0, -1.0, 0.0, 1e-200, 1e-8, 0.3, 2.0, 1e150]
POSITIVE = [1e-300, 1e-8, 0.3, 1.0, 7.0, 1e300]
NEAR_ONE = [-1 + 1e-12, -0.5, 0.0, 1e-9, 0.9, 1 - 1e-12]

SLOPES = [
    (np.exp, mp.exp, [-700.0, -1.0, 0.0, 700.0]),
    (np.exp2, lambda x: mp.log(2) * mp.mpf(2) ** x, [-1000.0, 0.0, 1000.0]),
    (np.expm1, mp.exp, [-700.0, -40.0, -1e-12, 0.0, 5.0]),
    (np.log, lambda x: 1 / x, POSITIVE),
    (np.log2, lambda x: 1 / (x * mp.log(2)), POSITIVE),
    (np.log10, lambda x: 1 / (x * mp.log(10)), POSITIVE),
    (np.log1p, lambda x: 1 / (1 + x), [-1 + 1e-12, 0.0, 1e-12, 1e300]),
    (np.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), POSITIVE),
    (np.cbrt, lambda x: 1 / (3 * mp.cbrt(x) ** 2), POSITIVE),
    (np.square, lambda x: 2 * x, BIG),
    (np.reciprocal, lambda x: -1 / x**2, [-1e150, -2.0, 1e-150, 3.0]),
    (np.sin, mp.cos, [-100.0, 0.0, 1.0, 3.0]),
    (np.cos, lambda x: -mp.sin(x), [-100.0, 0.0, 1.0, 3.0]),
    (np.tan, lambda x: 1 + mp.tan(x) ** 2, [0.0, 1.0, 1.57, 3.0]),
    (np.arcsin, lambda x: 1 / mp.sqrt(1 - x * x), NEAR_ONE),
    (np.arccos, lambda x: -1 / mp.sqrt(1 - x * x), NEAR_ONE),
    (np.arctan, lambda x: 1 / (1 + x * x), BIG),
    (np.sinh, mp.cosh, [-700.0, 0.0, 1.0, 700.0]),
    (np.cosh, mp.sinh, [-700.0, 0.0, 1e-12, 700.0]),
    (np.tanh, lambda x: 1 - mp.tanh(x) ** 2, [-1.0, 0.0, 1e-9, 0.5]),
    (np.arcsinh, lambda x: 1 / mp.sqrt(1 + x * x), BIG),
    (np.arccosh, lambda x: 1 / mp.sqrt(x * x - 1), [1 + 1e-12, 2.0, 1e200]),
    (np.arctanh, lambda x: 1 / (1 - x * x), NEAR_ONE),
    (np.sinc, lambda x: (mp.cospi(x) - mp.sincpi(x)) / x if x else mp.mpf(0), [0.0, 1e-200, 1e-8, -0.1, 0.3, 0.33, 1.0, 2.4]),
    (np.deg2rad, lambda x: mp.pi / 180, XS),
    (np.rad2deg, lambda x: 180 / mp.pi, XS),
    (np.degrees, lambda x: 180 / mp.pi, XS),
    (np.radians, lambda x: mp.pi / 180, XS),
    (np.positive, lambda x: 1, XS),
    (np.negative, lambda x: -1, XS),
    (lambda x: np.logaddexp(x, 1.0), lambda x: 1 / (1 + mp.exp(1 - x)), [-700.0, -30.0, 1.0, 20.0, 800.0]),
    (lambda x: np.logaddexp(1.0, x), lambda x: 1 / (1 + mp.exp(1 - x)), [-700.0, -30.0, 1.0, 20.0, 800.0]),
    (lambda x: np.logaddexp2(x, 1.0), lambda x: 1 / (1 + mp.mpf(2) ** (1 - x)), [-1000.0, -30.0, 1.0, 20.0, 1200.0]),
    (lambda x: np.hypot(x, 2.0), lambda x: x / mp.sqrt(x * x + 4), BIG),
    (lambda x: np.arctan2(x, 2.0), lambda x: 2 / (x * x + 4), BIG),
    (lambda x: np.arctan2(2.0, x), lambda x: -2 / (x * x + 4), BIG),
    (lambda x: x**2.5, lambda x: mp.mpf(2.5) * x ** mp.mpf(1.5), [0.0, 1e-100, 2.0, 1e100]),
    (lambda x: 2.0**x, lambda x: mp.log(2) * mp.mpf(2) ** x, [-1000.0, 0.0, 1000.0]),
    (lambda x: x / 3.0, lambda x: mp.mpf(1) / 3, BIG),
    (lambda x: 3.0 / x, lambda x: -3 / x**2, [-1e150, -2.0, 1e-150, 3.0]),
]


@pytest.mark.parametrize(("f", "want", "points"), SLOPES, ids=lambda f: getattr(f, "__name__", None))
def test_slopes_to_full_relative_accuracy(f, want, points):
    with mp.workdps(700):
        for x in points:
            exact = float(want(mp.mpf(float(x))))
            np.testing.assert_allclose(slope(f, x), exact, rtol=2e-15, err_msg=f"at {x}")
            with np.errstate(all="ignore"):
                forward = fnad.jvp(f, (float(x),), (1.0,))[1]
            np.testing.assert_allclose(forward, exact, rtol=2e-15, err_msg=f"forward mode at {x}")


def test_second_derivative_of_sinc_about_zero():
    second = fnad.grad(fnad.grad(np.sinc))
    for x in (0.0, 1e-9, 0.2, 0.31, 0.32, 1.7):
        with mp.workdps(40):
            exact = float(mp.diff(mp.sincpi, x, 2))
        np.testing.assert_allclose(second(x), exact, rtol=1e-13)


# -- conventions at special points -------------------------------------------------------------------------------------

POINTS = [
    ("absolute", np.abs, (0.0,), (0.0,)),
    ("absolute of -0", np.abs, (-0.0,), (0.0,)),
    ("fabs", np.fabs, (-3.0,), (-1.0,)),
    ("fabs at 0", np.fabs, (0.0,), (0.0,)),
    ("maximum tie", np.maximum, (1.0, 1.0), (0.5, 0.5)),
    ("minimum tie", np.minimum, (1.0, 1.0), (0.5, 0.5)),
    ("tie of zeros", np.maximum, (0.0, -0.0), (0.5, 0.5)),
    ("tie of infinities", np.maximum, (inf, inf), (0.5, 0.5)),
    ("maximum takes nan", np.maximum, (nan, 1.0), (1.0, 0.0)),
    ("minimum takes nan", np.minimum, (1.0, nan), (0.0, 1.0)),
    ("two nans", np.maximum, (nan, nan), (0.5, 0.5)),
    ("fmax leaves nan", np.fmax, (nan, 1.0), (0.0, 1.0)),
    ("fmin leaves nan", np.fmin, (1.0, nan), (1.0, 0.0)),
    ("fmax of nans", np.fmax, (nan, nan), (0.5, 0.5)),
    ("fmax tie", np.fmax, (2.0, 2.0), (0.5, 0.5)),
    ("x**0", np.power, (0.0, 0.0), (0.0, 0.0)),
    ("0**y", np.power, (0.0, 2.0), (0.0, 0.0)),
    ("0**1", np.power, (0.0, 1.0), (1.0, 0.0)),
    ("negative base", np.power, (-2.0, 3.0), (12.0, nan)),
    ("0**-1", np.power, (0.0, -1.0), (-inf, -inf)),
    ("float_power", np.float_power, (2.0, 3.0), (12.0, 8 * math.log(2))),
    ("logaddexp(-inf, y)", np.logaddexp, (-inf, 2.0), (0.0, 1.0)),
    ("logaddexp(x, -inf)", np.logaddexp, (2.0, -inf), (1.0, 0.0)),
    ("logaddexp(-inf, -inf)", np.logaddexp, (-inf, -inf), (0.0, 0.0)),
    ("logaddexp(inf, inf)", np.logaddexp, (inf, inf), (0.5, 0.5)),
    ("logaddexp(inf, 1)", np.logaddexp, (inf, 1.0), (1.0, 0.0)),
    ("logaddexp tie", np.logaddexp, (3.0, 3.0), (0.5, 0.5)),
    ("logaddexp2(-inf, y)", np.logaddexp2, (-inf, 2.0), (0.0, 1.0)),
    ("hypot at the origin", np.hypot, (0.0, 0.0), (0.0, 0.0)),
    ("hypot, tiny", np.hypot, (3e-200, 4e-200), (0.6, 0.8)),
    ("arctan2 at the origin", np.arctan2, (0.0, 0.0), (0.0, 0.0)),
    ("arctan2, small", np.arctan2, (1e-10, 1e-10), (5e9, -5e9)),
    ("arctan2, tiny", np.arctan2, (1e-200, 1e-200), (5e199, -5e199)),
    ("arctan2, huge", np.arctan2, (1e200, 1e200), (5e-201, -5e-201)),
    ("copysign", np.copysign, (-2.0, 3.0), (-1.0, 0.0)),
    ("copysign of -0", np.copysign, (2.0, -0.0), (-1.0, 0.0)),
    ("copysign at 0", np.copysign, (0.0, -1.0), (0.0, 0.0)),
    ("heaviside at 0", np.heaviside, (0.0, 0.3), (0.0, 1.0)),
    ("heaviside elsewhere", np.heaviside, (1.0, 0.3), (0.0, 0.0)),
    ("remainder", np.remainder, (-1.3, 0.7), (1.0, 2.0)),
    ("fmod", np.fmod, (-1.3, 0.7), (1.0, 1.0)),
    ("mod of a multiple", np.mod, (6.0, 2.0), (1.0, -3.0)),
    ("division by 0", np.divide, (1.0, 0.0), (inf, -inf)),
    ("log at 0", np.log, (0.0,), (inf,)),
    ("sqrt at 0", np.sqrt, (0.0,), (inf,)),
    ("arccos at 1", np.arccos, (1.0,), (-inf,)),
    ("clip below", lambda x: np.clip(x, 0.0, 1.0), (-1.0,), (0.0,)),
    ("clip inside", lambda x: np.clip(x, 0.0, 1.0), (0.5,), (1.0,)),
    ("clip at the bound", lambda x: np.clip(x, 0.0, 1.0), (0.0,), (0.5,)),
    ("clip, bounds", lambda lo, hi: np.clip(2.0, lo, hi), (0.0, 1.0), (0.0, 1.0)),
    ("nan_to_num", np.nan_to_num, (nan,), (0.0,)),
    ("nan_to_num of inf", np.nan_to_num, (inf,), (0.0,)),
    ("nan_to_num of a number", np.nan_to_num, (3.0,), (1.0,)),
]


@pytest.mark.parametrize(("f", "args", "want"), [p[1:] for p in POINTS], ids=[p[0] for p in POINTS])
@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_special_points(f, args, want, kind):
    if kind is np.float32 and any(0 < abs(a) < 1e-38 or 1e38 < abs(a) < inf for a in args):
        pytest.skip("outside the range of float32")
    args = tuple(map(kind, args))
    tolerance = 1e-5 if kind is np.float32 else 1e-15
    for n, exact in enumerate(want):
        with np.errstate(all="ignore"):
            got = fnad.grad(f, n)(*args)
            direction = tuple(kind(k == n) for k in range(len(args)))
            forward = fnad.jvp(f, args, direction)[1]
        np.testing.assert_allclose(got, exact, rtol=tolerance)
        if math.isfinite(exact):
            np.testing.assert_allclose(forward, exact, rtol=tolerance)
        assert np.asarray(got).dtype == (np.float32 if kind is np.float32 else np.float64)


def test_fmod_where_the_rounded_quotient_is_an_integer():
    x, y = 0.5, 0.1  # x / y rounds to 5, but fmod finds a remainder of nearly y
    assert x / y == 5.0
    assert np.fmod(x, y) > 0.09
    assert slope(np.fmod, x, y, argnums=1) == -4.0


@pytest.mark.parametrize(
    ("f", "n", "x", "want"),
    [
        (lambda x: np.exp(-(x**2)), 4, 0.0, 12.0),
        (lambda x: np.exp(-x * x), 4, 0.0, 12.0),
        (lambda x: np.exp(-np.square(x)), 4, 0.0, 12.0),
        (lambda x: np.exp(-np.power(x, np.float64(2))), 4, 0.0, 12.0),
        (lambda x: x**3, 3, 0.0, 6.0),
        (lambda x: x ** np.array(3), 3, 0.0, 6.0),
        (lambda x: x**3, 4, 0.0, 0.0),
        (lambda x: x**1, 2, 0.0, 0.0),
        (lambda x: x**0, 1, 0.0, 0.0),
        (lambda x: (-x) ** 3, 3, 0.0, -6.0),
        (lambda x: x**2, 2, -2.0, 2.0),
        (lambda x: x * x**0.5, 1, 0.0, 0.0),
        (lambda x: np.logaddexp(x, 0.0), 2, 0.0, 0.25),
        (lambda x: np.logaddexp(x, 1.0), 2, 1.0, 0.25),
        (lambda x: np.logaddexp(x, 0.0), 2, -600.0, math.exp(-600)),
        (lambda x: np.logaddexp(x, 0.0), 2, 600.0, math.exp(-600)),
        (np.sinc, 4, 0.0, np.pi**4 / 5),
    ],
)
def test_higher_orders_at_special_points(f, n, x, want):
    h = f
    for _ in range(n):
        h = fnad.grad(h)
    np.testing.assert_allclose(h(x), want, rtol=1e-12)
    np.testing.assert_allclose(h(np.array(x)), want, rtol=1e-12)


def test_mixed_derivative_of_a_power_at_exponent_zero():
    mixed = fnad.grad(lambda y: fnad.grad(np.power)(2.0, y))
    np.testing.assert_allclose(mixed(0.0), 0.5)
    np.testing.assert_allclose(mixed(1.0), 1 + math.log(2))
    np.testing.assert_allclose(fnad.grad(lambda x: fnad.grad(np.power, 1)(x, 2.0))(3.0), 3 * (2 * math.log(3) + 1))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.where(x > 0, np.sqrt(x), 0.0),
        lambda x: np.where(x > 0, x**0.5, 0.0),
        lambda x: np.where(x > 0, np.log(x), 0.0),
        lambda x: np.where(x > 0, 1 / x, 0.0),
        lambda x: np.where(x > 0, np.arccosh(1 + x), 0.0),
        lambda x: np.where(x > 0, np.cbrt(x), 0.0),
    ],
)
def test_a_branch_not_taken_has_gradient_zero(f):
    for wrap in (float, np.array):
        with np.errstate(all="ignore"):
            assert fnad.grad(f)(wrap(0.0)) == 0.0
            assert fnad.grad(fnad.grad(f))(wrap(0.0)) == 0.0
            assert fnad.jvp(fnad.grad(f), (wrap(0.0),), (wrap(1.0),))[1] == 0.0


# -- every function against differences --------------------------------------------------------------------------------

SMOOTH_PAIRS = [
    np.add, np.subtract, np.multiply, np.divide, np.hypot, np.arctan2, np.logaddexp, np.logaddexp2, np.maximum, np.minimum, np.fmax,
    np.fmin, np.copysign, np.power, np.float_power, np.remainder, np.fmod,
]  # fmt: skip


@given(st.sampled_from(SMOOTH_PAIRS), broadcastable(2), st.data())
def test_pairs_broadcast(f, shapes, data):
    a, b = (data.draw(arrays(shape=s, low=low, high=low + 2)) for s, low in zip(shapes, (0.6, 0.65), strict=True))
    if f not in (np.remainder, np.fmod):
        check_grads(f, (a, b), order=2)
    da, db = fnad.grad(lambda a, b: np.sum(f(a, b)), (0, 1))(a, b)
    assert da.shape == a.shape
    assert db.shape == b.shape
    np.testing.assert_allclose(traced(f, a, b), f(a, b), rtol=4e-16)


@pytest.mark.parametrize("f", [np.remainder, np.fmod])
def test_remainders(f):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-4, 4, 20), rng.choice([-1, 1], 20) * rng.uniform(0.7, 1.3, 20)
    check_grads(f, (x, y), order=2, eps=1e-7)


def test_divmod():
    q, r = traced(lambda x: np.divmod(x, 0.7), XS)
    np.testing.assert_array_equal(q, XS // 0.7)
    np.testing.assert_array_equal(r, XS % 0.7)
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(divmod(x, 0.7)[1] + divmod(x, 0.7)[0]))(XS), np.ones(5))
    np.testing.assert_array_equal(fnad.grad(lambda y: divmod(2.0, y)[1])(0.7), -2.0)


# -- constant functions ------------------------------------------------------------------------------------------------

CONSTANT = [
    np.floor, np.ceil, np.trunc, np.rint, np.fix, np.round, np.sign, np.isnan, np.isinf, np.isfinite, np.signbit, np.isposinf,
    np.isneginf, np.logical_not, np.iscomplex, np.isreal, lambda x: np.round(x, 1), lambda x: np.around(x, decimals=-1),
    lambda x: x.round(2), lambda x: x // 0.3, lambda x: x > 0.5, lambda x: x <= 0.5, lambda x: x == 0.5, lambda x: x != 0.5,
    lambda x: np.logical_and(x > 0, x < 1), lambda x: (x > 0) | (x < -1), lambda x: np.logical_xor(x > 0, x < 1), lambda x: ~(x > 0),
    lambda x: np.isclose(x, 0.5), lambda x: np.isclose(x, x, equal_nan=True),
]  # fmt: skip


@pytest.mark.parametrize("f", CONSTANT)
def test_constant_functions(f):
    for x in (XS, np.array([nan, inf, -inf, 0.24, -0.26]), np.zeros((0, 2)), np.array(0.5), XS.astype(np.float32)):
        with np.errstate(invalid="ignore"):
            want, got = f(x), traced(f, x)
        np.testing.assert_array_equal(got, want)
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_array_equal(
            fnad.grad(lambda x: np.sum(x * 0 + f(x) * 1.0))(np.nan_to_num(x, posinf=9.0, neginf=-9.0)), np.zeros(x.shape)
        )
    check_vmap(f, (XS,))
    check_vmap(f, (XS.reshape(5, 1) * np.ones(2),))
    assert fnad.eval_shape(f, XS).dtype == np.asarray(f(XS)).dtype


def test_constants_are_plain_under_grad():
    seen = []

    def f(x):
        seen.append([x > 0, np.floor(x), np.isnan(x), np.allclose(x, x), np.array_equal(x, XS), np.sign(x)])
        return np.sum(x)

    fnad.grad(f)(XS)
    assert [type(v) for v in seen[0]] == [np.ndarray, np.ndarray, np.ndarray, bool, bool, np.ndarray]
    assert seen[0][3] is True
    assert seen[0][4] is True


def test_not_of_a_question_about_a_python_number():
    assert fnad.grad(lambda x: np.where(~np.isinf(x), x, 0.0))(2.0) == 1.0
    assert fnad.grad(lambda x: x if ~np.isinf(x) else 0.0 * x)(2.0) == 1.0
    assert fnad.grad(lambda x: np.where(~(x > 1.0), 0.0 * x, x))(2.0) == 1.0


INTEGER = [
    lambda i: i & 3, lambda i: i | 4, lambda i: i ^ 1, lambda i: ~i, lambda i: i << 2, lambda i: i >> 1, lambda i: i % 3, lambda i: i // 2,
    lambda i: -i, abs, lambda i: i**2, lambda i: 2**i, np.sign, lambda i: i * 1.5, lambda i: i / 2, np.square,
]  # fmt: skip


@pytest.mark.parametrize("f", INTEGER)
def test_integers_under_vmap_and_recording(f):
    i = np.arange(6)
    check_vmap(f, (i,))
    assert fnad.eval_shape(f, i).dtype == np.asarray(f(i)).dtype


def test_closeness():
    x = np.array([1.0, nan])
    for f in (
        lambda x: np.allclose(x, x), lambda x: np.allclose(x, x, equal_nan=True), lambda x: np.array_equal(x, x),
        lambda x: np.array_equal(x, x, equal_nan=True), lambda x: np.array_equal(x, x[:1]),
        lambda x: np.array_equiv(x[:1], np.ones((2, 1))),
        lambda x: np.array_equiv(x, np.ones(3)), lambda x: np.allclose(x[0], 1 + 1e-9, atol=0),
    ):  # fmt: skip
        got = []
        fnad.grad(lambda x, f=f, got=got: (got.append(f(x)), np.sum(x))[1])(x)
        assert got == [f(x)]
        assert type(got[0]) is bool
        np.testing.assert_array_equal(fnad.vmap(f)(np.stack([x, x])), [f(x), f(x)])


# -- selection ---------------------------------------------------------------------------------------------------------


def test_where():
    c = np.array([True, False, True])
    a, b = np.array([1.0, 2.0, 3.0]), np.array([[4.0], [5.0]])
    check_grads(lambda a, b: np.where(c, a, b), (a, b), order=2)
    check_vmap(lambda c, a: np.where(c, a, 0.0), (c, a))
    check_vmap(lambda c, a: np.where(c, a, a * 2), (c, a), (0, None))
    da, db = fnad.grad(lambda a, b: np.sum(np.where(c, a, b)), (0, 1))(a, b)
    np.testing.assert_array_equal(da, [2, 0, 2])
    np.testing.assert_array_equal(db, [[1], [1]])
    assert fnad.grad(lambda x: np.where(True, x, 1.0))(2.0) == 1.0
    with pytest.raises(ValueError, match="both or neither"):
        fnad.grad(lambda x: np.sum(np.where(c, x)))(a)


def test_where_with_a_condition_alone():
    got = fnad.grad(lambda x: np.sum(x[np.where(x > 1.5)] ** 2))(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(got, [0, 4, 6])
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(x) * len(np.where(x)[0]))(np.array([0.0, 1.0])), [1, 1])
    with pytest.raises(ConcretizationError):
        fnad.vmap(lambda x: np.where(x > 1)[0])(np.ones((2, 3)))


def test_where_dtypes():
    single = np.ones(3, np.float32)
    for f in (lambda x: np.where(x > 0, x, 0.0), lambda x: np.where(x > 0, x, 0), lambda x: np.where(x > 0, x, np.float64(0))):
        assert traced(f, single).dtype == f(single).dtype
        assert fnad.eval_shape(f, single).dtype == f(single).dtype
        assert fnad.grad(lambda x, f=f: np.sum(f(x)))(single).dtype == np.float32


def test_select():
    def f(x):
        return np.select([x < -1, x > 1], [x**2, np.abs(x)], default=0.3 * x)

    np.testing.assert_array_equal(traced(f, XS), f(XS))
    check_grads(f, (XS,), order=2)
    check_vmap(f, (XS,))
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(np.select([x > 0, x > 1], [x, 5 * x])))(XS), [0, 0, 0, 1, 1])
    with pytest.raises(ValueError, match="same length"):
        fnad.grad(lambda x: np.sum(np.select([x > 0], [x, x])))(XS)
    with pytest.raises(ValueError, match="empty"):
        fnad.grad(lambda x: np.sum(np.select([], []) + x))(XS) or fnad.grad(lambda x: np.select([], [], x))(1.0)
    with pytest.raises(TypeError, match="boolean"):
        fnad.grad(lambda x: np.sum(np.select([np.ones(5)], [x])))(XS)


def test_select_dtypes():
    x = XS.astype(np.float32)
    for f in (
        lambda x: np.select([x < 0, x > 1], [x, 2.0]),
        lambda x: np.select([x < 0, x > 1], [2, x], default=0.5),
        lambda x: np.select([x < 0, x > 1], [x, np.float64(2)]),
        lambda x: np.select([x < 0, x > 1], [x, 1j]),
    ):
        same = traced(f, x)
        np.testing.assert_array_equal(same, f(x))
        assert same.dtype == f(x).dtype


CLIPS = [
    lambda x: np.clip(x, -1, 1), lambda x: np.clip(x, None, 0.25), lambda x: np.clip(x, -0.25, None), lambda x: x.clip(-1, 1),
    lambda x: np.clip(x, min=-0.25), lambda x: np.clip(x, max=0.25), lambda x: np.clip(x, min=-1, max=1), lambda x: np.clip(x, 1.0, -1.0),
    lambda x: np.clip(x, np.full(5, -0.25), 1.0), lambda x: np.clip(x, None, None), lambda x: np.clip(x), lambda x: x.clip(min=0.25),
    lambda x: np.clip(a=x, a_min=-1, a_max=1), lambda x: np.clip(x, np.float64(-1), 1),
]  # fmt: skip


@pytest.mark.parametrize("f", CLIPS)
def test_clip(f):
    for x in (XS, XS.astype(np.float32), np.zeros(0)[:, None] * np.ones(5)):
        want, got = f(x), traced(f, x)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype
    check_grads(f, (XS,), order=2)


@pytest.mark.parametrize("kwargs", [{"a_min": 0.0}, {"a_max": 0.0}, {"a_min": 0.0, "a_max": 1.0, "min": 0.0}])
def test_clip_refuses_what_numpy_refuses(kwargs):
    for call in (lambda: np.clip(XS, **kwargs), lambda: fnad.grad(lambda x: np.sum(np.clip(x, **kwargs)))(XS)):
        with pytest.raises((TypeError, ValueError)):
            call()


def test_clip_refuses_ufunc_keywords():
    with pytest.raises(UnsupportedError, match="where"):
        fnad.grad(lambda x: np.sum(np.clip(x, 0, 1, where=XS > 0)))(XS)
    with pytest.raises(InPlaceError):
        fnad.grad(lambda x: np.sum(np.clip(x, 0, 1, out=np.zeros(5))))(XS)


def test_nan_to_num():
    x = np.array([nan, inf, -inf, 2.0])
    for f in (
        np.nan_to_num, lambda x: np.nan_to_num(x, nan=7.0, posinf=8.0, neginf=-8.0), lambda x: np.nan_to_num(x * (1 + 0j)),
    ):  # fmt: skip
        for a in (x, x.astype(np.float32)):
            with np.errstate(all="ignore"):
                got, want = traced(f, a), f(a)
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(np.nan_to_num(x) / 3))(x), [0, 0, 0, 1 / 3])
    np.testing.assert_array_equal(fnad.vmap(np.nan_to_num)(np.arange(3)), np.arange(3))
    with pytest.raises(InPlaceError):
        fnad.grad(lambda x: np.sum(np.nan_to_num(x, copy=False)))(x)


def test_copies_and_output_arrays():
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(np.copy(x) * x.copy()))(XS), 2 * XS)
    for f in (lambda x, o: np.round(x, 1, o), lambda x, o: np.fix(x, o), lambda x, o: np.isposinf(x, o), lambda x, o: np.add(x, 1, out=o)):
        with pytest.raises(InPlaceError):
            fnad.grad(lambda x, f=f: np.sum(f(x, np.zeros(5))))(XS)


# -- dtypes ------------------------------------------------------------------------------------------------------------

UNARY = [
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt, np.square, np.reciprocal, np.sin, np.cos, np.tan,
    np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh, np.degrees, np.radians, np.sinc,
    np.abs, np.fabs, np.negative, np.positive, np.conj, np.real, np.imag, np.angle,
]  # fmt: skip


@pytest.mark.parametrize("f", UNARY)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_unary_dtypes(f, dtype):
    x = np.array([0.25, 0.5], dtype)
    with np.errstate(all="ignore"):
        out, pull = fnad.vjp(f, x)
        assert out.dtype == f(x).dtype
        assert fnad.eval_shape(f, x).dtype == f(x).dtype
        assert pull(np.ones(2, out.dtype))[0].dtype == dtype
        assert fnad.jvp(f, (x,), (np.ones(2, dtype),))[1].dtype == out.dtype


PAIRS = [
    np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.minimum, np.fmax, np.fmin, np.hypot, np.arctan2, np.logaddexp,
    np.logaddexp2, np.copysign, np.heaviside, np.remainder, np.fmod, np.floor_divide, np.float_power, np.less, np.equal,
]  # fmt: skip
OTHERS = [2, 2.0, True, np.float32(2), np.float64(2), np.int64(2), np.ones(2, np.float32), np.ones(2, np.int32), np.ones(2)]


@pytest.mark.parametrize("f", PAIRS)
@pytest.mark.parametrize("other", OTHERS, ids=[f"{type(o).__name__}{getattr(o, 'dtype', '')}" for o in OTHERS])
def test_pair_dtypes(f, other):
    x = np.array([0.25, 0.5], np.float32)
    for g in (lambda x: f(x, other), lambda x: f(other, x)):
        want, got = g(x), traced(g, x)
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype
        assert fnad.eval_shape(g, x).dtype == want.dtype
        if want.dtype.kind == "f":
            assert fnad.grad(lambda x, g=g: np.sum(g(x)))(x).dtype == np.float32


@pytest.mark.parametrize("f", PAIRS[:17])
def test_gradients_of_single_precision_are_computed_in_single_precision(f):
    """No double-precision array appears anywhere in the recorded gradient."""
    x = np.array([0.25, 0.5], np.float32)
    for other in (2.0, np.float32(2), x):
        for g in (lambda x, o=other: np.sum(f(x, o)), lambda x, o=other: np.sum(f(o, x))):
            graph = str(fnad.make_graph(fnad.grad(g))(x))
            assert "float64[2]" not in graph, graph


@pytest.mark.parametrize("f", [f for f in UNARY if f is not np.angle])
def test_unary_gradients_of_single_precision(f):
    graph = str(fnad.make_graph(fnad.grad(lambda x: np.sum(f(x))))(np.array([0.25, 0.5], np.float32)))
    assert "float64[2]" not in graph, graph


# -- complex numbers ---------------------------------------------------------------------------------------------------

Z = np.array([0.3 + 0.4j, -1.2 + 0.7j, 0.5 - 2.0j])
HOLOMORPHIC = [
    np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.square, np.reciprocal, np.sin, np.cos, np.tan, np.arcsin,
    np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh, np.negative, lambda z: z**3, lambda z: z**0.5,
    lambda z: z ** (1 + 0.5j), lambda z: 2.0**z, lambda z: (-2.0) ** z, lambda z: 1j * z + 2, lambda z: 1 / z, lambda z: z * z / (1 + z),
]  # fmt: skip
OF_PARTS = [
    np.real, np.imag, np.conj, np.abs, np.angle, lambda z: np.angle(z, deg=True), np.sign, lambda z: z.real * z.imag,
    lambda z: np.where(z.real > 0, z, np.conj(z)), lambda z: np.nan_to_num(z) * np.conj(z), lambda z: z.conj() * 2, np.isfinite,
]  # fmt: skip


@pytest.mark.parametrize("f", HOLOMORPHIC + OF_PARTS)
def test_complex_slopes(f):
    """A real function of a complex argument: the gradient is df/da - i df/db, and forward mode is the directional derivative."""
    weights = np.array([0.7, -0.4, 1.1])

    def loss(z):
        w = f(z)
        return np.sum(weights * (np.real(w) + 0.5 * np.imag(w)))

    def step(direction):
        h = 1e-6
        return np.array([(loss(Z + h * direction * e) - loss(Z - h * direction * e)) / (2 * h) for e in np.eye(3)])

    got = fnad.grad(loss)(Z)
    np.testing.assert_allclose(got, step(1) - 1j * step(1j), rtol=1e-6, atol=1e-8)
    for direction in (1, 1j, 0.6 - 0.8j):
        t = fnad.jvp(loss, (Z,), (direction * np.ones(3),))[1]
        np.testing.assert_allclose(t, np.sum(step(direction)), rtol=1e-6, atol=1e-8)
    single = fnad.grad(loss)(Z.astype(np.complex64))
    assert single.dtype == np.complex64
    check_vmap(f, (Z,))


@pytest.mark.parametrize("f", HOLOMORPHIC + OF_PARTS)
def test_real_functions_through_complex_numbers(f):
    def g(x):
        return np.sum(np.abs(f(x * np.exp(0.3j) + 0.1j)) ** 2 + np.real(f(x + 0.2j)))

    check_grads(g, (np.array([0.4, 0.9]),), order=2)


def test_magnitude_at_zero():
    np.testing.assert_allclose(fnad.grad(lambda z: np.sum(np.abs(z)))(np.array([0j, 3 + 4j])), [0, 0.6 - 0.8j], rtol=1e-15)


def test_parts_of_real_arrays():
    for f in (np.real, np.conj, np.imag, lambda x: x.real, lambda x: x.imag, lambda x: x.conj(), np.angle):
        np.testing.assert_array_equal(traced(f, XS), f(XS))
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(np.real(x) * np.conj(x) + np.imag(x)))(XS), 2 * XS)


def test_filter_response():
    angles = np.linspace(0.0, 3.0, 10)

    def f(x):
        z = np.exp(1j * angles)
        p = np.exp(1j * x - 0.1)
        return np.mean(np.abs((z + 1.0) / ((z - p) * (z - np.conj(p)))))

    np.testing.assert_allclose(fnad.grad(f)(0.1), -107.22571311244289, rtol=1e-10)
