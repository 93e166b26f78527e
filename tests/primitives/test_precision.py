"""Slopes in the precision of the result, in tails, and where an untaken branch is not finite."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp

import fnad
import fnad.scipy.special as special
from fnad.core.primitive import REGISTRY
from fnad.primitives._families import Elementwise
from fnad.primitives.special import load_all
from fnad.testing import check_grads

load_all()
inf, nan = np.inf, np.nan
SMALL = [np.uint8, np.int8, np.uint16, np.int32, np.uint64, np.bool_]
ORDERS = {"polygamma", "jv", "yv", "iv", "ive", "kv", "gammainc", "gammaincc"}
"""The first operand has no derivative."""
TWO = sorted(n for n, p in REGISTRY.items() if isinstance(p, Elementwise) and len(p.slopes) == 2 and not p.constant)


# -- operands of other dtypes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("dtype", [*SMALL, np.float16, np.float32])
@pytest.mark.parametrize("scalar", [True, False])
def test_the_dtype_of_a_constant_operand_does_not_change_a_slope(name, dtype, scalar):
    """The other operand as it is, and in float64."""
    p = REGISTRY[name]
    for value in (0, 1, 2):
        constant = dtype(value) if scalar else np.array([value], dtype)
        wide = constant.astype(np.float64)
        for position in (0, 1):
            slope = p.slopes[position]
            if slope is None or (name in ORDERS and position == 0):
                continue

            def f(t, c, position=position):
                return np.sum(p(t, c) if position == 0 else p(c, t))

            t = np.array([0.75, 1.5])
            with np.errstate(all="ignore"):
                try:
                    expected = fnad.grad(f)(t, wide)
                    found, pushed = fnad.grad(f)(t, constant), fnad.jvp(lambda t: f(t, constant), (t,), (np.ones(2),))[1]  # noqa: B023
                except TypeError:
                    continue  # NumPy has no such loop
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            if np.all(np.isfinite(expected)):
                np.testing.assert_allclose(pushed, np.sum(expected), rtol=1e-13)


def test_small_integers():
    assert fnad.grad(lambda t: t ** np.uint8(0))(np.float64(1e10)) == 0.0
    np.testing.assert_allclose(fnad.grad(lambda t: np.sum(np.array([3], np.uint8) ** t))(np.array([2.0])), [9 * np.log(3)], rtol=1e-15)
    np.testing.assert_allclose(fnad.grad(lambda t: sp.jv(np.uint8(0), t))(1.5), -sp.j1(1.5), rtol=1e-14)
    np.testing.assert_allclose(fnad.vmap(fnad.grad(lambda t, n: t**n), (None, 0))(2.0, np.array([0, 3], np.uint8)), [0.0, 12.0])
    np.testing.assert_allclose(fnad.grad(fnad.grad(lambda t: t ** np.uint8(1)))(3.0), 0.0, atol=1e-15)


def test_many_ties_in_half_precision():
    """More than a float16 can count."""
    for f in (np.max, np.min, np.nanmax):
        g = fnad.grad(f)(np.zeros(70000, np.float16))
        assert g.dtype == np.float16
        np.testing.assert_allclose(g, np.float16(1 / 70000))


# -- tails -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.0, 1e-8, 0.3, -1.0, 5.0, 20.0, -20.0, 300.0, -354.0])
def test_tanh(x):
    with mp.workdps(40):
        exact = [float(mp.sech(x) ** 2), float(-2 * mp.tanh(x) * mp.sech(x) ** 2)]
        exact.append(float(mp.sech(x) ** 2 * (4 * mp.tanh(x) ** 2 - 2 * mp.sech(x) ** 2)))
    f = np.tanh
    for wanted in exact:
        f = fnad.grad(f)
        np.testing.assert_allclose(f(x), wanted, rtol=1e-13, atol=0)
    assert fnad.grad(np.tanh)(1e4) == 0.0
    assert fnad.grad(np.tanh)(-inf) == 0.0


def test_tanh_of_complex_numbers():
    z = np.array([1 + 2j, -3 + 1j, 1j, -30.0 + 1j])
    np.testing.assert_allclose(fnad.vjp(np.tanh, z)[1](np.ones(4, complex))[0], 1 / np.cosh(z) ** 2, rtol=1e-13)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_softmax_where_one_entry_is_nearly_all(axis):
    x = np.array([[40.0, 0.0, -3.0], [80.0, 41.0, 38.0]])
    axes = (0, 1) if axis is None else axis

    def exact(c, log):
        """The pullback of c in 60 digits."""
        with mp.workdps(60):
            e = np.vectorize(mp.exp, otypes=[object])(x)
            p = e / e.sum(axis=axes, keepdims=True)
            g = np.vectorize(mp.mpf, otypes=[object])(c)
            r = g - p * g.sum(axis=axes, keepdims=True) if log else p * (g - (p * g).sum(axis=axes, keepdims=True))
            return r.astype(float)

    for log, f in ((False, special.softmax), (True, special.log_softmax)):
        for i in np.ndindex(2, 3):
            c = np.zeros((2, 3))
            c[i] = 2.0
            found = fnad.vjp(lambda x, f=f: f(x, axis=axis), x)[1](c)[0]
            np.testing.assert_allclose(found, exact(c, log), rtol=1e-12)
            jacobian = fnad.jacfwd(lambda x, f=f: f(x, axis=axis))(x)
            np.testing.assert_allclose(2.0 * jacobian[i], found, rtol=1e-12)


def test_softmax_of_ties_and_of_nothing():
    for f in (special.softmax, special.log_softmax):
        check_grads(lambda x, f=f: f(x, axis=-1), (np.zeros((2, 3)),))
        check_grads(lambda x, f=f: f(x, axis=(0, 2)), (np.array([[[0.0, 1.0], [1.0, 0.5]]]),))
        assert fnad.vjp(lambda x, f=f: f(x, axis=1), np.zeros((2, 0)))[1](np.zeros((2, 0)))[0].shape == (2, 0)


@pytest.mark.parametrize("x", [1e8, -1e8, 1e3, 12.0, 10.1, 9.9, -9.9, 3.0, 0.1])
def test_dawson(x):
    with mp.workdps(120):
        z = mp.mpf(x)
        exact = 1 - z * mp.sqrt(mp.pi) * mp.exp(-z * z) * mp.erfi(z) if abs(x) < 100 else -1 / (2 * z**2) - 3 / (4 * z**4) - 15 / (8 * z**6)
    np.testing.assert_allclose(fnad.grad(sp.dawsn)(x), float(exact), rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("x", "y"), [(1e15, 2.5), (0.5, 0.7), (3.0, 1e-15), (19.0, 1e3), (20.5, 0.1), (1e6, 1.0), (1e-3, 1e10), (1e9, 1e9)]
)
def test_beta(x, y):
    with mp.workdps(60):
        exact = [float(mp.digamma(a) - mp.digamma(mp.mpf(x) + mp.mpf(y))) for a in (x, y)]
    np.testing.assert_allclose(fnad.grad(sp.betaln, argnums=(0, 1))(x, y), exact, rtol=1e-13, atol=0)
    np.testing.assert_allclose(
        fnad.grad(lambda x: sp.beta(x, 0.5))(np.float32(2.0)), sp.beta(2, 0.5) * (sp.psi(2) - sp.psi(2.5)), rtol=1e-6
    )


@pytest.mark.parametrize("x", [0.0, -1.0, -2.0, -5.0, -2.5, 0.3, 0.5, 3.0])
def test_reciprocal_gamma(x):
    with mp.workdps(40):
        exact = [float(mp.diff(mp.rgamma, x, n)) for n in (1, 2)]
    np.testing.assert_allclose(fnad.grad(sp.rgamma)(x), exact[0], rtol=1e-13)
    np.testing.assert_allclose(fnad.grad(fnad.grad(sp.rgamma))(x), exact[1], rtol=1e-12, atol=1e-13)


# -- branches not taken ------------------------------------------------------------------------------------------------

BAD = np.array([[inf, 1.0, nan], [1.0, 2.0, -inf], [nan, 1.0, 3.0]])
PRODUCTS = {
    "matrix @ matrix": (lambda a, b: a @ b, (2, 3), (3, 3)),
    "stack @ matrix": (lambda a, b: a @ b, (2, 2, 3), (3, 3)),
    "matrix @ stack": (lambda a, b: a @ b, (2, 3), (2, 3, 3)),
    "vector @ matrix": (lambda a, b: a @ b, (3,), (3, 3)),
    "matrix @ vector": (lambda a, b: a @ b, (3, 3), (3,)),
    "vector @ vector": (lambda a, b: a @ b, (3,), (3,)),
    "dot": (np.dot, (2, 3), (3, 3)),
    "inner": (np.inner, (2, 3), (3, 3)),
    "outer": (np.outer, (3,), (3,)),
    "tensordot": (lambda a, b: np.tensordot(a, b, 1), (2, 3), (3, 3)),
    "einsum": (lambda a, b: np.einsum("ij,jk->ik", a, b), (2, 3), (3, 3)),
    "einsum of stacks": (lambda a, b: np.einsum("bij,bjk->bik", a, b), (2, 2, 3), (2, 3, 3)),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("complex_", [False, True])
def test_products_with_what_is_not_finite(name, side, complex_):
    """Outputs that are not used get the cotangent 0: the gradient is that of the outputs that are, computed one by one."""
    f, *shapes = PRODUCTS[name]
    rng = np.random.default_rng(0)
    x = rng.normal(size=shapes[side])
    other = np.resize(BAD, shapes[1 - side]) + (0j if complex_ else 0)
    with np.errstate(all="ignore"):
        g = lambda x: f(x, other) if side == 0 else f(other, x)
        out, pull = fnad.vjp(g, x)
        np.testing.assert_array_equal(pull(np.zeros_like(out))[0], np.zeros_like(x))
        t = np.zeros_like(x)
        pushed = fnad.jvp(g, (x,), (t,))[1]
        np.testing.assert_array_equal(pushed, np.zeros_like(out))
        if not complex_ and np.ndim(out):
            c = np.zeros_like(out)
            c[..., 0] = 1.0
            expected = np.zeros_like(x)  # by linearity in the other operand: entry by entry, those without influence left out
            for k in np.ndindex(other.shape):
                unit = np.zeros(other.shape)
                unit[k] = 1.0
                part = fnad.vjp(lambda x: f(x, unit) if side == 0 else f(unit, x), x)[1](c)[0]  # noqa: B023
                expected += np.where(part == 0, 0, part * other[k])
            np.testing.assert_array_equal(pull(c)[0], expected)


def test_a_branch_not_taken():
    masked = lambda f: lambda x: np.where(x[0] > 0, f(x), 0.0)
    x = np.array([-1.0, 1.0])
    with np.errstate(all="ignore"):
        for f in (
            lambda x: x @ np.array([inf, 1.0]),
            lambda x: np.linalg.det(np.diag(x) * inf),
            lambda x: np.linalg.slogdet(np.diag(x) * inf)[1],
            lambda x: np.linalg.slogdet(np.diag(x) * 0)[1],
        ):
            np.testing.assert_array_equal(fnad.grad(masked(f))(x), [0.0, 0.0])
        each = fnad.grad(lambda x: np.sum(np.where(x > 0, np.array([[inf, inf], [1.0, 2.0]]) @ x, 0.0)))(x)
    np.testing.assert_array_equal(each, [1.0, 2.0])


def test_an_infinite_factor_that_counts_is_seen():
    with np.errstate(all="ignore"):
        found = fnad.vjp(lambda x: x @ np.array([[inf, 1.0], [2.0, 3.0]]), np.ones((1, 2)))[1](np.array([[1.0, 0.0]]))[0]
    np.testing.assert_array_equal(found, [[inf, 2.0]])
    with np.errstate(all="ignore"):
        found = fnad.vjp(lambda x: x @ np.zeros((2, 2)), np.ones((1, 2)))[1](np.array([[inf, 0.0]]))[0]
    assert np.all(np.isnan(found))  # an infinite cotangent is no branch not taken
