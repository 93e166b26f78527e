"""scipy.special: ufuncs on traced values as they stand, and the functions of fnad.scipy.special for plain and traced ones."""

from __future__ import annotations

import subprocess
import sys
import threading

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp
from hypothesis import given
from hypothesis import strategies as st

import fnad
import fnad.scipy.special as special
from fnad.core.primitive import REGISTRY
from fnad.errors import DTypeError, FnadError, UnsupportedError
from fnad.primitives.special import load_all
from fnad.testing import check_grads, check_primitive, check_vmap
from fnad.testing.strategies import arrays

from ..primitives.test_every_primitive import refuses

inf, nan = np.inf, np.nan
load_all()


# -- importing ---------------------------------------------------------------------------------------------------------

LAZY = """
import sys
import fnad
import fnad.scipy.special
assert fnad.scipy.special.softmax([0.0, 0.0]).tolist() == [0.5, 0.5]
assert "scipy" not in sys.modules
try:
    import numpy as np
    fnad.grad(lambda x: np.ldexp(x, 2))(1.0)
except TypeError:
    pass
assert "scipy" not in sys.modules
import scipy.special as sp
assert fnad.grad(sp.expit)(0.0) == 0.25
assert fnad.scipy.special.expit is sp.expit
from fnad.scipy.special import erf
assert erf is sp.erf
"""


def test_scipy_is_imported_by_need_only():
    subprocess.run([sys.executable, "-c", LAZY], check=True)


def test_declaring_twice_or_from_many_threads():
    code = "\n".join(
        [
            "import threading, fnad, scipy.special as sp",
            "out = []",
            "ts = [threading.Thread(target=lambda: out.append(fnad.grad(sp.expit)(0.0))) for _ in range(8)]",
            "[t.start() for t in ts]; [t.join() for t in ts]",
            "assert out == [0.25] * 8, out",
            "from fnad.primitives.special import load_all; load_all(); load_all()",
        ]
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert threading.active_count() >= 1


def test_unknown_names():
    with pytest.raises(AttributeError):
        special.no_such_function  # noqa: B018
    with pytest.raises(AttributeError):
        special._hidden  # noqa: B018
    with pytest.raises(UnsupportedError, match="wofz"):
        fnad.grad(lambda x: np.abs(sp.wofz(x)))(1.0)


# -- every ufunc's rules -----------------------------------------------------------------------------------------------

UFUNCS = sorted(
    n for n, p in REGISTRY.items() if getattr(p, "function", None) is getattr(sp, n, None) and isinstance(getattr(sp, n, None), np.ufunc)
)
FIXED = {n: where for n in UFUNCS if (where := [i for i, slope in enumerate(REGISTRY[n].slopes) if refuses(slope)])}
"""At which positions there is no derivative. All else is audited with the registry."""


@pytest.mark.parametrize("name", FIXED)
def test_rules_with_integer_parameters(name):
    p = REGISTRY[name]
    rng = np.random.default_rng(0)
    args = [rng.uniform(*p.domain, size=(2, 3)) for _ in p.slopes]
    for order, i in enumerate(FIXED[name]):
        args[i] = 2 + order
    check_primitive(p, tuple(args))


@pytest.mark.parametrize("name", UFUNCS)
def test_values_and_dtypes_are_those_of_scipy(name):
    f = getattr(sp, name)
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        args = [rng.uniform(*REGISTRY[name].domain, size=3).astype(dtype) for _ in range(f.nin)]
        out, _ = fnad.vjp(lambda x, f=f, a=args: f(*a[:-1], x), args[-1])
        np.testing.assert_array_equal(out, f(*args))
        assert out.dtype == f(*args).dtype
        assert fnad.eval_shape(f, *args).dtype == out.dtype


def test_ufuncs_that_numpy_has_too():
    x = np.array([0.3, -0.4])
    for theirs, ours in ((sp.expm1, np.exp), (sp.log1p, lambda x: 1 / (1 + x)), (sp.exp2, lambda x: np.log(2) * 2**x)):
        np.testing.assert_allclose(fnad.grad(lambda x, f=theirs: np.sum(f(x)))(x), ours(x), rtol=1e-15)
    np.testing.assert_allclose(fnad.grad(sp.cbrt)(8.0), 1 / 12)


PI, ROOT = mp.pi, mp.sqrt
SLOPES = [
    (sp.expit, lambda x: mp.exp(-x) / (1 + mp.exp(-x)) ** 2, [-700, -125, -2, 0, 2, 40, 125, 700]),
    (sp.log_expit, lambda x: 1 / (1 + mp.exp(x)), [-700, -2, 0, 3, 40, 700]),
    (sp.logit, lambda x: 1 / (x * (1 - x)), [1e-300, 1e-10, 0.3, 1 - 1e-12]),
    (sp.exp10, lambda x: mp.log(10) * mp.mpf(10) ** x, [-300, 0, 2.5, 300]),
    (sp.erf, lambda x: 2 / ROOT(PI) * mp.exp(-x * x), [-5, 0, 1, 5, 20]),
    (sp.erfc, lambda x: -2 / ROOT(PI) * mp.exp(-x * x), [-5, 0, 1, 5, 20]),
    (sp.erfcx, lambda x: 2 * x * mp.exp(x * x) * mp.erfc(x) - 2 / ROOT(PI), [-3, 0, 1, 5, 10.1, 30]),
    (sp.erfi, lambda x: 2 / ROOT(PI) * mp.exp(x * x), [-5, 0, 1, 5]),
    (sp.erfinv, lambda x: ROOT(PI) / 2 * mp.exp(mp.erfinv(x) ** 2), [-0.99, 0, 0.5, 0.999]),
    (sp.ndtr, lambda x: mp.exp(-x * x / 2) / ROOT(2 * PI), [-20, -3, 0, 2, 20]),
    (sp.log_ndtr, lambda x: ROOT(2 / PI) * mp.exp(-x * x / 2) / mp.erfc(-x / ROOT(2)), [-1000, -30, -5, 0, 5, 30]),
    (sp.ndtri, lambda p: ROOT(2 * PI) * mp.exp(mp.erfinv(2 * p - 1) ** 2), [1e-3, 0.2, 0.5, 0.999]),
    (sp.gammaln, mp.digamma, [1e-10, 0.5, 1, 2, 5, 1e5, 1e10, -0.5]),
    (sp.digamma, lambda x: mp.psi(1, x), [1e-5, 0.5, 1, 5, 1e5, -0.5]),
    (sp.gamma, lambda x: mp.gamma(x) * mp.digamma(x), [0.1, 1, 5, 100, -0.5]),
    (sp.entr, lambda x: -mp.log(x) - 1, [1e-300, 0.2, 3]),
    (lambda x: sp.xlogy(2.0, x), lambda x: 2 / x, [1e-300, 1, 1e300]),
    (lambda x: sp.xlogy(x, 3.0), lambda x: mp.log(3), [0, 1, 1e300]),
    (lambda x: sp.xlog1py(2.0, x), lambda x: 2 / (1 + x), [-1 + 1e-12, 0, 1e-20]),
    (lambda x: sp.betaln(x, 2.0), lambda x: mp.digamma(x) - mp.digamma(x + 2), [0.1, 1, 10]),
    (sp.j0, lambda x: -mp.besselj(1, x), [0, 1, 10]),
    (sp.j1, lambda x: (mp.besselj(0, x) - mp.besselj(2, x)) / 2, [0, 1e-8, 1, 10]),
    (sp.i0, lambda x: mp.besseli(1, x), [0, 1, 10]),
    (sp.i1, lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2, [0, 1, 10]),
    (sp.i0e, lambda x: (mp.besseli(1, x) - mp.besseli(0, x)) * mp.exp(-x), [1e-5, 1, 10]),
    (sp.i1e, lambda x: ((mp.besseli(0, x) + mp.besseli(2, x)) / 2 - mp.besseli(1, x)) * mp.exp(-x), [1e-5, 1, 10]),
    (sp.k0, lambda x: -mp.besselk(1, x), [0.1, 1, 10]),
    (lambda x: sp.gammainc(2.0, x), lambda x: x * mp.exp(-x), [1e-5, 1, 20]),
    (lambda x: sp.betainc(2.0, 3.0, x), lambda x: 12 * x * (1 - x) ** 2, [1e-5, 0.3, 0.9]),
    (lambda x: special.polygamma(1, x), lambda x: mp.psi(2, x), [1e-3, 1, 50]),
]


@pytest.mark.parametrize(("f", "want", "points"), SLOPES, ids=lambda f: getattr(f, "__name__", None))
def test_slopes_keep_their_relative_accuracy(f, want, points):
    with mp.workdps(60):
        for x in map(float, points):
            exact = float(mp.re(want(mp.mpf(x))))
            np.testing.assert_allclose(fnad.grad(f)(x), exact, rtol=2e-13, err_msg=f"at {x}")
            np.testing.assert_allclose(fnad.jvp(f, (x,), (1.0,))[1], exact, rtol=2e-13, err_msg=f"forward mode at {x}")


@pytest.mark.parametrize("x", [-1e6, -30.0, 0.0, 30.0])
def test_second_derivative_of_log_ndtr_in_the_tails(x):
    def exact(x):
        s = ROOT(2 / PI) * mp.exp(-x * x / 2) / mp.erfc(-x / ROOT(2))
        return -s * (x + s)

    with mp.workdps(60):
        if x > -1e5:
            np.testing.assert_allclose(fnad.grad(fnad.grad(sp.log_ndtr))(x), float(exact(mp.mpf(x))), rtol=1e-11)
        else:
            np.testing.assert_allclose(fnad.grad(fnad.grad(sp.log_ndtr))(x), -1.0, rtol=1e-10)


# -- conventions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "args", "want"),
    [
        (sp.expit, (-1000.0,), (0.0,)),
        (sp.expit, (1000.0,), (0.0,)),
        (sp.xlogy, (0.0, 0.0), (-inf, 0.0)),
        (sp.xlogy, (0.0, 2.0), (np.log(2.0), 0.0)),
        (sp.xlogy, (2.0, 0.0), (-inf, inf)),
        (sp.xlog1py, (0.0, -1.0), (-inf, 0.0)),
        (sp.xlog1py, (0.0, 1.0), (np.log(2.0), 0.0)),
        (sp.entr, (0.0,), (inf,)),
        (sp.rel_entr, (0.0, 0.0), (nan, 0.0)),
        (sp.rel_entr, (0.0, 2.0), (-inf, 0.0)),
        (sp.rel_entr, (2.0, 2.0), (1.0, -1.0)),
        (sp.kl_div, (2.0, 2.0), (0.0, 0.0)),
        (sp.i0e, (0.0,), (0.0,)),
        (sp.i1e, (0.0,), (0.5,)),
        (sp.j1, (0.0,), (0.5,)),
    ],
)
@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_special_points(f, args, want, kind):
    args = tuple(map(kind, args))
    for n, exact in enumerate(want):
        with np.errstate(all="ignore"):
            got = fnad.grad(f, n)(*args)
        np.testing.assert_allclose(got, exact, rtol=1e-6)
        assert got.dtype == (np.float32 if kind is np.float32 else np.float64)


def test_mixed_derivatives_at_zero():
    np.testing.assert_allclose(fnad.grad(lambda x: fnad.grad(sp.xlogy, 1)(x, 4.0))(0.0), 0.25)
    np.testing.assert_allclose(fnad.grad(lambda y: fnad.grad(sp.xlogy)(0.0, y))(4.0), 0.25)
    np.testing.assert_allclose(fnad.grad(lambda x: fnad.grad(sp.xlog1py, 1)(x, 3.0))(0.0), 0.25)


def test_likelihoods():
    k, n, p = 33.0, 100.0, 0.25
    got = fnad.grad(lambda p: sp.xlogy(k, p) + sp.xlogy(n - k, 1 - p))(p)
    np.testing.assert_allclose(got, k / p - (n - k) / (1 - p))
    hard = np.array([0.0, 1.0])
    loss = lambda x: -np.sum(sp.xlogy(hard, sp.expit(x)) + sp.xlog1py(1 - hard, -sp.expit(x)))
    np.testing.assert_allclose(fnad.grad(loss)(np.array([0.3, -0.2])), sp.expit([0.3, -0.2]) - hard)


@pytest.mark.parametrize("name", FIXED)
def test_derivatives_without_a_rule_are_refused(name):
    f = getattr(sp, name)
    args = (1.5, 2.5, 0.5) if f.nin == 3 else (1.5, 0.5)
    for i in FIXED[name]:
        one = lambda v, i=i: f(*args[:i], v, *args[i + 1 :])
        for call in (lambda one=one, i=i: fnad.grad(one)(args[i]), lambda one=one, i=i: fnad.jvp(one, (args[i],), (1.0,))):
            with pytest.raises(UnsupportedError, match="no derivative"):
                call()
    assert np.isfinite(fnad.grad(lambda x: f(*map(fnad.stop_gradient, (x, *args[1:-1])), args[-1]) + x)(args[0]))


# -- logsumexp, softmax, log_softmax -----------------------------------------------------------------------------------

X = np.random.default_rng(0).normal(size=(2, 3, 4))
AXES = [None, 0, -1, (0, 2), (-1, 1), (0, 1, 2)]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("shift", [0.0, 1000.0, -1000.0])
def test_logsumexp(axis, shift):
    x = X + shift
    for keepdims in (False, True):
        want = sp.logsumexp(x, axis=axis, keepdims=keepdims)
        got = special.logsumexp(x, axis=axis, keepdims=keepdims)
        np.testing.assert_allclose(got, want, rtol=1e-14)
        assert type(got) is type(want)
        traced = fnad.vjp(lambda x, k=keepdims: special.logsumexp(x, axis=axis, keepdims=k), x)[0]
        np.testing.assert_array_equal(traced, got)
    got = fnad.grad(lambda x: np.sum(special.logsumexp(x, axis=axis)))(x)
    np.testing.assert_allclose(got, sp.softmax(x, axis=axis), rtol=1e-12)
    if shift == 0.0:
        check_grads(lambda x: special.logsumexp(x, axis=axis), (x,), order=2)
        check_vmap(lambda x: special.logsumexp(x, axis=axis if axis is None else -1), (x,))


@pytest.mark.parametrize("axis", AXES)
def test_softmax(axis):
    for ours, theirs in ((special.softmax, sp.softmax), (special.log_softmax, sp.log_softmax)):
        for x in (X, X + 1000, X * 300, X.astype(np.float32), np.arange(24).reshape(2, 3, 4)):
            got, want = ours(x, axis=axis), theirs(x, axis=axis)
            np.testing.assert_allclose(got, want, rtol=1e-5 if x.dtype == np.float32 else 1e-12, atol=1e-300)
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
        check_grads(lambda x, f=ours: f(x, axis=axis), (X,), order=2)
        check_vmap(lambda x, f=ours: f(x, axis=axis if axis is None else -1), (X,))
        np.testing.assert_array_equal(fnad.vjp(lambda x, f=ours: f(x, axis=axis), X)[0], ours(X, axis=axis))


def test_tails_of_softmax():
    x = np.array([0.0, -200.0, -700.0])
    slope = fnad.grad(lambda x: special.softmax(x)[1])(x)
    np.testing.assert_allclose(slope[1:], [np.exp(-200), -np.exp(-900)], rtol=1e-13)
    np.testing.assert_allclose(fnad.grad(special.logsumexp)(x), [1.0, np.exp(-200), np.exp(-700)], rtol=1e-13)
    slope = fnad.grad(lambda x: special.log_softmax(x)[0])(x)
    np.testing.assert_allclose(slope[1:], [-np.exp(-200), -np.exp(-700)], rtol=1e-13)


def test_minus_infinity():
    low = np.full(2, -inf)
    for x, p in ((low, [0, 0]), (np.array([-inf, 1.0]), [0, 1])):
        np.testing.assert_array_equal(special.logsumexp(x), sp.logsumexp(x))
        np.testing.assert_array_equal(fnad.grad(special.logsumexp)(x), p)
        np.testing.assert_array_equal(fnad.hessian(special.logsumexp)(x), np.zeros((2, 2)))
        np.testing.assert_array_equal(fnad.jvp(special.logsumexp, (x,), (np.ones(2),))[1], np.sum(p))
    assert fnad.grad(lambda x: special.logsumexp(np.stack([-inf + 0.0 * x, -inf + x])))(1.0) == 0.0
    masked = np.array([-inf, 0.0, 0.0])
    np.testing.assert_array_equal(fnad.grad(lambda x: special.softmax(x)[1])(masked), [0, 0.25, -0.25])
    np.testing.assert_array_equal(fnad.grad(lambda x: special.log_softmax(x)[1])(masked), [0, 0.5, -0.5])
    np.testing.assert_array_equal(fnad.grad(special.logsumexp)(np.array([[-inf, -inf], [0.0, 0.0]])), [[0, 0], [0.5, 0.5]])


def test_infinity_and_nothing():
    assert special.logsumexp([inf, 1.0]) == inf
    assert np.isnan(special.logsumexp([nan, 1.0]))
    assert special.logsumexp([]) == -inf
    np.testing.assert_array_equal(special.logsumexp(np.zeros((0, 3)), axis=0), np.full(3, -inf))
    np.testing.assert_array_equal(fnad.vjp(lambda x: special.logsumexp(x, axis=0), np.zeros((0, 3)))[0], np.full(3, -inf))
    assert fnad.grad(lambda x: np.sum(special.softmax(x, axis=0)))(np.zeros((0, 3))).shape == (0, 3)
    assert special.softmax(2.0) == 1.0
    assert fnad.grad(special.logsumexp)(2.0) == 1.0
    assert fnad.grad(special.softmax)(2.0) == 0.0
    assert fnad.vjp(special.logsumexp, np.float32(2))[0].dtype == np.float32


NO_WEIGHT = np.zeros(3)
WEIGHTS = [np.array([1.0, 2.0, 0.5]), np.array([1.0, -2.0, 0.0]), np.array([-1.0, -1.0, -1.0])]


@pytest.mark.parametrize("b", WEIGHTS)
@pytest.mark.parametrize("return_sign", [False, True])
def test_weights(b, return_sign):
    for a in (
        np.array([0.1, -0.4, 1.0]),
        np.array([1000.0, 999.0, 1001.0]),
        X[0, :, :3],
        np.array([-inf, 0.0, 1.0]),
        np.array([0.0, 1.0, inf]),
    ):
        for axis, keepdims in ((None, False), (-1, True)):
            want = sp.logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)
            with np.errstate(all="ignore"):
                got = special.logsumexp(a, axis=axis, b=b, keepdims=keepdims, return_sign=return_sign)
                traced = fnad.vjp(lambda a, x=axis, k=keepdims: special.logsumexp(a, axis=x, b=b, keepdims=k, return_sign=return_sign), a)[
                    0
                ]
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-12)
            np.testing.assert_array_equal(np.asarray(traced), np.asarray(got))


def test_gradients_with_weights():
    a = np.array([0.1, -0.4, 1.0])
    for b in WEIGHTS:
        check_grads(lambda a, b: special.logsumexp(a, b=b, return_sign=True)[0], (a, b + 0.1), order=2)
        got = fnad.grad(lambda a, b=b: special.logsumexp(a + 2000.0, b=b, return_sign=True)[0])(a)
        np.testing.assert_allclose(got, b * np.exp(a) / np.sum(b * np.exp(a)), rtol=1e-11)
    assert special.logsumexp(a, b=NO_WEIGHT) == -inf
    np.testing.assert_array_equal(fnad.grad(lambda a: special.logsumexp(a, b=NO_WEIGHT))(a), np.zeros(3))
    np.testing.assert_allclose(fnad.grad(lambda a: special.logsumexp(a, b=[1, 0, 1]))(np.array([0.0, inf, 0.0])), [0.5, 0, 0.5])
    check_vmap(lambda a, b: special.logsumexp(a, b=b), (X[0], np.exp(X[1])))


def test_sign_alone():
    for a in ([0.0, 1.0], [-inf, -inf], [nan, 1.0], [inf, 1.0]):
        for got, want in zip(special.logsumexp(a, return_sign=True), sp.logsumexp(a, return_sign=True), strict=True):
            np.testing.assert_array_equal(got, want)
        value, sign = fnad.vjp(lambda a: special.logsumexp(a, return_sign=True), np.array(a))[0]
        np.testing.assert_array_equal([value, sign], sp.logsumexp(a, return_sign=True))
    check_vmap(lambda a: special.logsumexp(a, return_sign=True), (X[0],))


@given(arrays(shape=st.tuples(st.integers(1, 3), st.integers(1, 4)), low=-50, high=50), st.sampled_from([0, 1, None]))
def test_softmax_is_the_slope_of_logsumexp(x, axis):
    np.testing.assert_allclose(
        fnad.grad(lambda x: np.sum(special.logsumexp(x, axis=axis)))(x), special.softmax(x, axis=axis), rtol=1e-13, atol=1e-300
    )
    np.testing.assert_allclose(np.exp(special.log_softmax(x, axis=axis)), special.softmax(x, axis=axis), rtol=1e-12, atol=1e-300)


def test_single_precision_stays_single():
    x = X[0].astype(np.float32)
    for f in (
        special.softmax,
        special.log_softmax,
        special.logsumexp,
        lambda x: special.logsumexp(x, b=2.0),
        lambda x: special.polygamma(1, x * x),
    ):
        graph = str(fnad.make_graph(fnad.grad(lambda x, f=f: np.sum(f(x))))(x))
        assert "float64[3,4]" not in graph, graph


def test_mistakes():
    for f in (special.softmax, special.log_softmax, special.logsumexp):
        with pytest.raises(DTypeError):
            f(np.ones(2) * 1j)
        with pytest.raises(np.exceptions.AxisError):
            f(np.ones(2), axis=1)
        with pytest.raises(np.exceptions.AxisError):
            fnad.grad(lambda x, f=f: np.sum(f(x, axis=1)))(np.ones(2))
    for f in (sp.logsumexp, sp.softmax, lambda x: sp.polygamma(1, x)):
        with pytest.raises((FnadError, TypeError, ValueError)):
            fnad.grad(lambda x, f=f: np.sum(f(x)))(np.ones(2))


# -- polygamma ---------------------------------------------------------------------------------------------------------


def test_polygamma():
    x = np.array([0.3, 1.0, 7.5])
    for n in (0, 1, 2, np.array([0, 1, 2]), np.array([[0], [3]])):
        np.testing.assert_allclose(special.polygamma(n, x), sp.polygamma(n, x), rtol=1e-15)
        np.testing.assert_allclose(fnad.vjp(lambda x, n=n: special.polygamma(n, x), x)[0], sp.polygamma(n, x), rtol=1e-15)
        check_grads(lambda x, n=n: special.polygamma(n, x), (x,), order=2)
    check_vmap(special.polygamma, (np.arange(3), x))
    assert special.polygamma(1, x.astype(np.float32)).dtype == np.float32
    assert special.polygamma(1, 2) == sp.polygamma(1, 2)
    with pytest.raises(UnsupportedError, match="with respect to n"):
        fnad.grad(special.polygamma)(1.0, 2.0)
    np.testing.assert_allclose(fnad.grad(fnad.grad(fnad.grad(sp.gammaln)))(2.5), sp.polygamma(2, 2.5), rtol=1e-14)


def test_multigammaln():
    a = np.array([[2.0, 3.5], [1.6, 10.0]])
    for d in (1, 2, 3):
        np.testing.assert_allclose(fnad.vjp(lambda a, d=d: special.multigammaln(a, d), a)[0], sp.multigammaln(a, d), rtol=1e-14)
        check_grads(lambda a, d=d: special.multigammaln(a, d), (a,))
    assert fnad.grad(lambda a: special.multigammaln(a, 2))(np.float32(3.0)).dtype == np.float32
    for bad in (
        lambda: special.multigammaln(a, 0),
        lambda: special.multigammaln(a, 1.5),
        lambda: special.multigammaln(0.5, 3),
        lambda: special.multigammaln(a, 8),
    ):
        with pytest.raises(ValueError):
            bad()


def test_tails_and_limits_of_slopes():
    """Where formulas for slopes cancel or divide 0 by 0, against the limits."""
    np.testing.assert_allclose(fnad.grad(sp.exprel)(0.0), 0.5, rtol=1e-15)
    np.testing.assert_allclose(fnad.grad(sp.exprel)(1e-12), 0.5, rtol=1e-11)
    np.testing.assert_allclose(fnad.grad(sp.boxcox, 1)(2.0, 0.0), 0.5 * np.log(2.0) ** 2, rtol=1e-14)
    np.testing.assert_allclose(fnad.grad(sp.ellipk)(0.0), np.pi / 8, rtol=1e-14)
    np.testing.assert_allclose(fnad.grad(sp.ellipe)(0.0), -np.pi / 8, rtol=1e-14)
    np.testing.assert_allclose(fnad.grad(fnad.grad(sp.ellipk))(0.0), 9 * np.pi / 64, rtol=1e-14)
    np.testing.assert_allclose(fnad.grad(sp.gammaincinv, 1)(2.0, sp.gammainc(2.0, 1.5)), 1 / (1.5 * np.exp(-1.5)), rtol=1e-12)
    np.testing.assert_allclose(fnad.grad(sp.stdtr, 1)(1.0, 0.5), 1 / (np.pi * 1.25), rtol=1e-14)  # Cauchy's density
    with pytest.raises(UnsupportedError, match="df"):
        fnad.grad(sp.stdtr)(1.0, 0.5)
