"""Reductions and scans: values, types, axes and errors as NumPy's; derivatives in both modes, at ties and zeros too."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import InPlaceError, UnsupportedError
from fnad.testing import check_grads, check_vmap
from fnad.testing.strategies import arrays

inf, nan = np.inf, np.nan
RNG = np.random.default_rng(0)
X = RNG.permutation(24).reshape(2, 3, 4) * 0.2 - 2.1  # no ties, no zeros
MASK = np.ones((2, 3, 4), bool)  # something is left along every axis
MASK[0, 0, 1] = MASK[0, 2, :2] = MASK[1, 1, 2:] = MASK[1, 0, 0] = False
AXES = [None, 0, -1, 1, (0, 2), (-1, 0), (0, 1, 2), ()]


def same(got, want):
    """Equal in value, shape, dtype."""
    np.testing.assert_allclose(got, want, rtol=2e-6 if np.asarray(want).dtype.itemsize < 8 else 1e-14, atol=1e-15)
    assert np.shape(got) == np.shape(want)
    assert np.asarray(got).dtype == np.asarray(want).dtype


def agrees(f, x, order=2):
    """Value and recording as NumPy's; derivatives against differences; vmap against a loop."""
    want = f(x)
    same(fnad.vjp(f, x)[0], want)
    recorded = fnad.eval_shape(f, x)
    assert (recorded.shape, recorded.dtype) == (np.shape(want), np.asarray(want).dtype)
    if np.asarray(want).dtype.kind == "f" and order:
        check_grads(f, (x,), order=order)
    check_vmap(f, (np.stack([x, x[::-1]]) if np.ndim(x) else np.stack([x, 2 * x]),))


def refused_alike(call):
    """NumPy and fnad raise errors of the same type."""
    with pytest.raises(Exception) as theirs:
        call(X)
    with pytest.raises(theirs.type):
        fnad.vjp(call, X)
    with pytest.raises(theirs.type):
        fnad.eval_shape(call, X)


SMOOTH = [np.sum, np.prod, np.mean, np.var, np.std, np.max, np.min, np.amax, np.amin, np.ptp, np.median, np.average]
NAN = [np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd, np.nanmax, np.nanmin]
CONSTANT = [np.any, np.all, np.count_nonzero]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("f", SMOOTH + NAN + CONSTANT)
def test_axes(f, axis, keepdims):
    if f is np.median and axis == ():
        pytest.skip("NumPy's median has no meaning over no axes")
    order = 2 if axis in (-1, (0, 2), None) and f not in (np.std, np.nanstd) and keepdims else 1
    order = 1 if axis == () else order
    if axis == () and f in (np.std, np.nanstd, np.var, np.nanvar):
        return
    agrees(lambda x: f(x, axis=axis, keepdims=keepdims), X, order)


@pytest.mark.parametrize("f", [np.argmax, np.argmin])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_positions(f, axis, keepdims):
    agrees(lambda x: f(x, axis=axis, keepdims=keepdims), X)
    ties = np.round(X / 2)
    agrees(lambda x: f(x, axis=axis, keepdims=keepdims), ties)
    agrees(lambda x: f(x, axis=axis, keepdims=keepdims), np.where(MASK, X, nan))


def test_positions_are_plain_under_grad():
    def f(x):
        i, j = np.argmax(x), x.argmin()
        assert isinstance(i, np.integer)
        assert isinstance(j, np.integer)
        return x[i] * 2 + x[j] * 3

    np.testing.assert_array_equal(fnad.grad(f)(np.array([1.0, 5.0, -2.0])), [0, 2, 3])


METHODS = ["sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin", "cumsum", "cumprod", "ptp"]


@pytest.mark.parametrize("name", [m for m in METHODS if m != "ptp"])
def test_methods(name):
    agrees(lambda x: getattr(x, name)(), X, 1)
    agrees(lambda x: getattr(x, name)(1), X, 1)
    agrees(lambda x: getattr(x, name)(axis=-1), X, 1)


WITH_WHERE = [np.sum, np.prod, np.mean, np.var, np.std, np.any, np.all, np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd]


@pytest.mark.parametrize("f", WITH_WHERE)
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_where(f, axis):
    for mask in (MASK, MASK[0], MASK[:1], np.array(True)):
        agrees(lambda x, m=mask: f(x, axis=axis, where=m), X, 1)
    g = lambda x: np.sum(f(x, axis=axis, where=MASK) * 1.0)
    assert np.all(fnad.grad(g)(X)[~MASK] == 0)
    check_vmap(lambda x, m: f(x, where=m), (X, MASK))


@pytest.mark.parametrize("f", [np.max, np.min, np.nanmax, np.nanmin])
@pytest.mark.parametrize("initial", [-5.0, 0.11, 5.0])
def test_extremes_with_where_and_initial(f, initial):
    for axis in (None, 1, (0, 2)):
        agrees(lambda x, a=axis: f(x, axis=a, where=MASK, initial=initial), X, 1)
        agrees(lambda x, a=axis: f(x, axis=a, initial=initial, keepdims=True), X, 1)
    refused_alike(lambda x: f(x, where=MASK))


def test_initial():
    for f in (np.sum, np.prod, np.nansum, np.nanprod):
        for initial in (0, 1, 0.0, 1.0, 2, 2.5, np.float64(2.5), np.float32(3), np.array(2.5)):
            agrees(lambda x, f=f, i=initial: f(x, axis=0, initial=i), X, 1)
            agrees(lambda x, f=f, i=initial: f(x, axis=0, initial=i), X.astype(np.float32), 0)
        refused_alike(lambda x, f=f: f(x, initial=np.ones(2)))
    check_grads(lambda x, i: np.sum(x, axis=0, initial=i) * np.prod(x, initial=i) + np.max(x, initial=i), (X[0], 5.3), order=2)


DTYPES = [np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int32, np.int64, np.uint8, np.bool_]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("f", SMOOTH + CONSTANT + [np.argmax, np.cumsum, np.cumprod, np.nanmean, np.nansum, np.nanmax, np.nanvar])
def test_dtypes(f, dtype):
    x = (np.abs(X[0]) * (0.5 if f in (np.prod, np.cumprod) else 3)).astype(dtype)
    if f is np.ptp and dtype is np.bool_:
        pytest.skip("NumPy subtracts no booleans")
    want = f(x)
    got = fnad.eval_shape(f, x)
    assert got.dtype == np.asarray(want).dtype
    check_vmap(f, (np.stack([x, x]),), rtol=1e-2 if dtype is np.float16 else None)
    if x.dtype.kind == "f":
        out, pull = fnad.vjp(f, x)
        assert np.asarray(out).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(out, want, rtol=1e-2 if dtype is np.float16 else 1e-5)
        if np.asarray(out).dtype.kind == "f":
            assert pull(out)[0].dtype == dtype


@pytest.mark.parametrize("f", [np.sum, np.prod, np.mean, np.var, np.std, np.cumsum, np.cumprod, np.nansum, np.nanmean])
def test_dtype_argument(f):
    for given_as, wanted in itertools.product((np.float32, np.float64, np.int32), (np.float64, np.float32, "f8", np.complex128)):
        x = (X[0] * 3).astype(given_as)
        want = f(x, dtype=wanted)
        got = fnad.eval_shape(lambda x, w=wanted: f(x, dtype=w), x)
        assert (got.shape, got.dtype) == (np.shape(want), want.dtype)
        if x.dtype.kind == "f":
            np.testing.assert_allclose(fnad.vjp(lambda x, w=wanted: f(x, dtype=w), x)[0], want, rtol=1e-6)
            assert fnad.grad(lambda x, w=wanted: np.real(np.sum(f(x, dtype=w))))(x).dtype == given_as


@pytest.mark.parametrize("f", [np.sum, np.prod, np.mean, np.var, np.max, np.cumsum, np.cumprod, np.median, np.average])
def test_gradients_of_single_precision_are_computed_in_single_precision(f):
    graph = str(fnad.make_graph(fnad.grad(lambda x: np.sum(f(x, axis=1))))(X[0].astype(np.float32)))
    assert "float64[3,4]" not in graph, graph


@pytest.mark.parametrize("f", [np.sum, np.mean, np.var, np.prod])
def test_complex(f):
    z = X[0] + 1j * X[1]
    check_grads(lambda z: np.abs(f(z, axis=0)) ** 2, (z,), order=1)
    check_grads(lambda x: np.abs(f(x * np.exp(0.4j) + 0.2j)), (X[0],), order=2)
    same(fnad.vjp(lambda x: f(x + 1j * X[1]), X[0])[0], f(z))


# -- 0-d and empty -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", SMOOTH + NAN + CONSTANT + [np.argmax, np.argmin, np.cumsum, np.cumprod])
def test_scalars(f):
    for x in (np.array(1.5), np.float64(1.5), 1.5):
        got = fnad.vjp(f, x)[0]
        same(got, f(x))
    agrees(f, np.array(1.5), 0)
    if f not in (np.median, np.average, np.mean, np.var, np.std):
        agrees(lambda x: f(x, axis=0), np.array(1.5), 0)
        agrees(lambda x: f(x, axis=-1), np.array(1.5), 0)
    slope = fnad.grad(lambda x: np.sum(f(x)) * 1.0)(1.5)
    constant = f in (np.var, np.std, np.ptp, np.nanvar, np.nanstd, *CONSTANT, np.argmax, np.argmin)
    assert slope == (0.0 if constant else 1.0)


@pytest.mark.parametrize("f", [np.sum, np.prod, np.any, np.all, np.count_nonzero, np.nansum, np.nanprod, np.cumsum, np.cumprod])
def test_empty(f):
    for shape, axis in itertools.product([(0,), (0, 3), (3, 0), (0, 0)], [None, 0, -1]):
        x = np.zeros(shape)
        agrees(lambda x, a=axis: f(x, axis=a), x, 0)
        assert fnad.grad(lambda x, a=axis: np.sum(f(x, axis=a)) * 1.0)(x).shape == shape


@pytest.mark.parametrize("f", [np.mean, np.var, np.std, np.median, np.nanmean, np.nanvar])
def test_empty_means_are_nan_and_warn(f):
    x = np.zeros((0, 3))
    for axis in (0, None):
        with pytest.warns(RuntimeWarning):
            want = f(x, axis=axis)
        with pytest.warns(RuntimeWarning):
            got = fnad.vjp(lambda x, a=axis: f(x, axis=a), x)[0]
        same(got, want)
    agrees(lambda x: f(x, axis=1), x, 0)


@pytest.mark.parametrize("f", [np.max, np.min, np.argmax, np.argmin, np.ptp, np.nanmax])
def test_extremes_of_nothing(f):
    for shape, axis in (((0, 3), 0), ((0,), None), ((0, 0), 0), ((2, 0), 1)):
        refused_alike(lambda x, s=shape, a=axis: f(np.reshape(x[:0, :0, :0], s) if 0 in s else x, axis=a))
    agrees(lambda x: f(x, axis=1), np.zeros((0, 3)), 0)


def test_extremes_of_nothing_with_initial():
    for f in (np.max, np.min):
        agrees(lambda x, f=f: f(x, axis=0, initial=2.0), np.zeros((0, 3)), 0)
    np.testing.assert_array_equal(fnad.grad(lambda i: np.sum(np.max(i * np.zeros((0, 3)), axis=0, initial=i)))(2.0), 3.0)


# -- refused as by NumPy -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [np.sum, np.prod, np.max, np.mean, np.var, np.any, np.median, np.average, np.cumsum, np.argmax])
def test_bad_axes(f):
    for axis in (3, -4, (0, 3), (0, 0), (0, -3), "x"):
        if isinstance(axis, tuple) and f in (np.cumsum, np.argmax):
            continue
        refused_alike(lambda x, a=axis: f(x, axis=a))
    if f is not np.average:
        refused_alike(lambda x: f(np.sum(x), axis=1))


def test_bad_arguments():
    refused_alike(lambda x: np.sum(x, where=np.ones((2, 3, 4))))
    refused_alike(lambda x: np.sum(x, where=np.ones((5, 2, 3, 4), bool)))
    refused_alike(lambda x: np.sum(x[:1], where=np.ones((2, 3, 4), bool)))
    refused_alike(lambda x: np.var(x, ddof=1, correction=1))
    refused_alike(lambda x: np.cumulative_sum(x))
    refused_alike(lambda x: np.add.accumulate(np.sum(x)))
    refused_alike(lambda x: np.average(x, weights=[1.0, 2.0]))
    refused_alike(lambda x: np.average(x, axis=1, weights=[1.0, 2.0]))
    with pytest.raises(ZeroDivisionError):
        fnad.vjp(lambda x: np.average(x, axis=0, weights=[1.0, -1.0]), X)


@pytest.mark.parametrize("f", SMOOTH[:-1] + NAN + [np.any, np.all, np.argmax, np.argmin, np.cumsum, np.cumprod])
def test_output_arrays_are_refused(f):
    with pytest.raises(InPlaceError):
        fnad.vjp(lambda x: f(x, out=np.zeros(())), X)


# -- ties, zeros, nan --------------------------------------------------------------------------------------------------


def test_ties_share_evenly():
    np.testing.assert_array_equal(fnad.grad(np.max)(np.array([1.0, 3.0, 3.0])), [0, 0.5, 0.5])
    np.testing.assert_array_equal(fnad.grad(np.min)(np.array([[2.0, 2.0], [2.0, 2.0]])), np.full((2, 2), 0.25))
    x = np.array([[1.0, 2.0, 0.0], [4.0, 4.0, 4.0]])
    got = fnad.grad(lambda x: np.sum(np.max(x, axis=1) * np.array([1.0, 6.0])))(x)
    np.testing.assert_array_equal(got, [[0, 1, 0], [2, 2, 2]])
    np.testing.assert_array_equal(fnad.jvp(lambda x: np.max(x, axis=1), (x,), (np.array([[5.0, 7, 9], [3, 4, 5]]),))[1], [7, 4])
    np.testing.assert_array_equal(fnad.grad(lambda x: np.max(x, initial=3.0))(np.array([1.0, 3.0])), [0, 0.5])
    np.testing.assert_array_equal(fnad.grad(np.ptp)(np.array([1.0, 1.0])), [0, 0])
    single = fnad.grad(lambda x: np.sum(np.max(x, axis=1)))(np.array([[1, 5], [7, 7]], np.float32))
    np.testing.assert_array_equal(single, np.array([[0, 1], [0.5, 0.5]]))
    assert single.dtype == np.float32


@given(arrays(shape=st.tuples(st.integers(1, 4), st.integers(1, 5))), st.sampled_from([np.max, np.min, np.nanmax, np.nanmin]))
def test_shares_of_ties_sum_to_the_cotangent(x, f):
    x = np.round(x)
    pull = fnad.vjp(lambda x: f(x, axis=1), x)[1]
    g = np.arange(1.0, len(x) + 1)
    np.testing.assert_allclose(np.sum(pull(g)[0], axis=1), g, rtol=1e-15)


def test_nan_in_extremes():
    x = np.array([1.0, nan, 3.0, nan])
    np.testing.assert_array_equal(fnad.vjp(np.max, x)[0], nan)
    np.testing.assert_array_equal(fnad.grad(np.max)(x), [0, 0.5, 0, 0.5])
    np.testing.assert_array_equal(fnad.grad(np.nanmax)(x), [0, 0, 1, 0])
    np.testing.assert_array_equal(fnad.grad(np.nanmin)(np.array([inf, nan, inf])), [0.5, 0, 0.5])
    np.testing.assert_array_equal(fnad.grad(np.nanmax)(np.array([-inf, nan])), [1, 0])


def test_all_nan_warns():
    x = np.array([[nan, nan], [1.0, nan]])
    for f in (np.nanmax, np.nanmin, np.nanmean):
        with pytest.warns(RuntimeWarning, match="All-NaN|Mean of empty"):
            got = fnad.vjp(lambda x, f=f: f(x, axis=1), x)[0]
        np.testing.assert_array_equal(got, [nan, 1])
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        same(fnad.vjp(lambda x: np.nanvar(x, axis=1, ddof=1), x)[0], [nan, nan])
    with pytest.warns(RuntimeWarning):
        np.testing.assert_array_equal(fnad.vjp(lambda x: np.nanvar(x, ddof=3), np.array([1.0, nan, 2.0]))[0], nan)


@pytest.mark.parametrize("f", NAN)
def test_nan_is_left_out(f):
    x = np.where(MASK, X, nan)
    for axis in (None, 0, (0, 2)):
        same(fnad.vjp(lambda x, a=axis: f(x, axis=a), x)[0], f(x, axis=axis))
        got = fnad.grad(lambda x, a=axis: np.sum(f(x, axis=a)))(x)
        assert np.all(got[~MASK] == 0)

        def kept(v, a=axis, f=f):
            return np.sum(f(np.where(MASK, v, nan), axis=a))

        check_grads(kept, (X,), order=2)


@pytest.mark.parametrize("zeros", [(), (0,), (1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("f", [np.prod, np.cumprod, np.multiply.reduce, np.multiply.accumulate, np.cumulative_prod])
def test_products_at_zeros(f, zeros):
    x = np.array([0.7, -1.3, 2.0, 0.4])
    x[list(zeros)] = 0.0
    check_grads(f, (x,), order=3 if f in (np.prod, np.cumprod) and len(zeros) == 2 else 2)
    check_vmap(fnad.jacrev(f), (np.stack([x, x + 1]),))


def test_product_with_two_zeros():
    np.testing.assert_array_equal(fnad.grad(np.prod)(np.array([0.0, 0.0, 3.0])), [0, 0, 0])
    hess = fnad.hessian(np.prod)(np.array([0.0, 0.0, 3.0]))
    np.testing.assert_array_equal(hess, [[0, 3, 0], [3, 0, 0], [0, 0, 0]])


@given(st.integers(0, 20), st.booleans(), st.data())
def test_running_products_of_any_length(n, reverse, data):
    x = data.draw(arrays(shape=(2, n)))
    x = np.where(np.abs(x) < 0.5, 0.0, x)
    f = lambda x: np.flip(np.cumprod(np.flip(x, -1), axis=-1), -1) if reverse else np.cumprod(x, axis=-1)
    pull = fnad.vjp(f, x)[1]
    g = np.ones_like(x)
    exact = np.zeros_like(x)
    for i, j in itertools.product(range(n), range(n)):
        ks = range(j, n) if not reverse else range(j + 1)
        if i == 0:
            exact[:, j] = sum(np.prod(np.delete(x[:, : k + 1], j, 1) if not reverse else np.delete(x[:, k:], j - k, 1), axis=1) for k in ks)
    np.testing.assert_allclose(pull(g)[0], exact, rtol=1e-12, atol=1e-12)


def test_unused_products_that_overflow_have_gradient_zero():
    x = np.array([1e200, 1e200, 1e200, 2.0])
    with np.errstate(over="ignore"):
        for f in (np.prod, lambda x: np.cumprod(x)[-1]):
            np.testing.assert_array_equal(fnad.grad(lambda x, f=f: np.where(x[0] < 0, f(x), 0.0))(x), np.zeros(4))


# -- moments -----------------------------------------------------------------------------------------------------------


def test_std_of_a_constant():
    for x in (np.ones(2), np.full((2, 3), 7.0), np.array(3.0)):
        np.testing.assert_array_equal(fnad.grad(np.std)(x), np.zeros(x.shape))
        np.testing.assert_array_equal(fnad.grad(lambda x: np.std(x) ** 2 + np.var(x))(x), np.zeros(x.shape))
    mixed = np.array([[1.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(fnad.grad(lambda x: np.sum(np.std(x, axis=1)))(mixed), [[0, 0], [-0.5, 0.5]])


@pytest.mark.parametrize("kwargs", [{"ddof": 1}, {"ddof": 0.5}, {"correction": 1}, {"ddof": 1, "axis": 1}, {"ddof": 1, "where": MASK}])
@pytest.mark.parametrize("f", [np.var, np.std, np.nanvar, np.nanstd])
def test_degrees_of_freedom(f, kwargs):
    agrees(lambda x: f(x, **kwargs), X)


def test_given_mean():
    def f(x):
        m = np.mean(x, axis=1, keepdims=True)
        return np.var(x, axis=1, mean=m) + np.std(x, axis=1, mean=m)

    agrees(f, X)
    np.testing.assert_allclose(fnad.grad(lambda x: np.var(x, mean=np.float64(0)))(X), 2 * X / X.size)


def test_too_few_degrees_of_freedom():
    x = np.ones((1, 3))
    for f in (np.var, np.std):
        with pytest.warns(RuntimeWarning, match="Degrees of freedom"), np.errstate(invalid="ignore"):
            same(fnad.vjp(lambda x, f=f: f(x, axis=0, ddof=1), x)[0], [nan] * 3)


def test_masked_variance():
    x, mask = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True])
    got = fnad.grad(lambda x: np.var(x, where=mask))(x)
    np.testing.assert_allclose(got, np.where(mask, 2 * (x - x[mask].mean()) / 3, 0))


def test_average():
    w = RNG.random((2, 3, 4)) + 0.5
    for kwargs in (
        {"weights": w}, {"weights": w, "axis": 1}, {"weights": w[0, 0], "axis": 2}, {"weights": w[0], "axis": (1, 2)},
        {"weights": w[0].T, "axis": (2, 1), "keepdims": True}, {"weights": [1, 2, 3], "axis": 1}, {"axis": (0, 1)},
    ):  # fmt: skip
        agrees(lambda x, k=kwargs: np.average(x, **k), X)
        mid, scale = fnad.vjp(lambda x, k=kwargs: np.average(x, returned=True, **k), X)[0]
        want = np.average(X, returned=True, **kwargs)
        same(mid, want[0])
        same(scale, want[1])
    check_grads(lambda x, w: np.average(x, axis=1, weights=w), (X, w), order=2)
    check_grads(lambda w: np.average(X, axis=1, weights=np.exp(w)), (w[0, :, 0],), order=2)
    check_vmap(lambda x, w: np.average(x, weights=w), (X, w))
    same(fnad.eval_shape(lambda i: np.average(i, weights=i), np.arange(3)).dtype.type(0), np.float64(0))


def test_median():
    np.testing.assert_array_equal(fnad.grad(np.median)(np.array([4.0, 1.0, 3.0, 2.0])), [0, 0, 0.5, 0.5])
    np.testing.assert_array_equal(fnad.grad(np.median)(np.array([4.0, 1.0, 3.0])), [0, 0, 1])
    with_nan = np.array([[1.0, nan, 2.0], [1.0, 3.0, 2.0]])
    np.testing.assert_array_equal(fnad.vjp(lambda x: np.median(x, axis=1), with_nan)[0], [nan, 2])
    for axis in (None, 0, 1, (0, 2), (-1, 1)):
        agrees(lambda x, a=axis: np.median(x, axis=a), X)
    np.testing.assert_array_equal(fnad.vjp(np.median, np.array([-inf, inf, inf]))[0], inf)


# -- scans -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [np.cumsum, np.cumprod, np.cumulative_sum, np.cumulative_prod])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_scans(f, axis):
    x = X[0, 0] if axis is None and "cumulative" in f.__name__ else X
    axis = axis if x.ndim > 1 or axis is None else 0
    agrees(lambda x: f(x, axis=axis), x, 2 if axis == 1 else 1)


def test_scans_with_a_first_value():
    for f in (np.cumulative_sum, np.cumulative_prod):
        agrees(lambda x, f=f: f(x, axis=1, include_initial=True), X, 1)
        agrees(lambda x, f=f: f(x, include_initial=True, dtype=np.float32), X[0, 0], 0)
        agrees(lambda x, f=f: f(x), np.array(1.5), 0)


# -- methods of ufuncs -------------------------------------------------------------------------------------------------

UFUNCS = [np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logaddexp, np.logical_and, np.logical_or]


@pytest.mark.parametrize("u", UFUNCS)
def test_reduce(u):
    agrees(u.reduce, X, 1)  # over axis 0, not over all
    for kwargs in ({"axis": None}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}, {"axis": -1}, {"axis": ()}):
        agrees(lambda x, k=kwargs: u.reduce(x, **k), X, 1)
    agrees(u.reduce, np.array(1.5), 0)
    if u in (np.add, np.multiply, np.logaddexp):
        agrees(lambda x: u.reduce(x, axis=1, where=MASK), X)
        agrees(lambda x: u.reduce(x, axis=1, initial=0.7), X)
        agrees(u.reduce, np.zeros((0, 3)), 0)
        assert fnad.eval_shape(lambda x: u.reduce(x, dtype=np.float32), X).dtype == np.float32
    if u in (np.maximum, np.minimum, np.fmax, np.fmin):
        agrees(lambda x: u.reduce(x, axis=1, where=MASK, initial=0.77), X, 1)
        refused_alike(lambda x: u.reduce(x, where=MASK))
    if u in (np.logical_and, np.logical_or):
        agrees(lambda x: u.reduce(x > 0, axis=1, where=MASK), X)
    with pytest.raises(InPlaceError):
        fnad.vjp(lambda x: u.reduce(x, out=np.zeros((3, 4))), X)


@pytest.mark.parametrize("u", [np.add, np.multiply])
def test_accumulate(u):
    agrees(u.accumulate, X, 1)
    agrees(lambda x: u.accumulate(x, axis=-1), X, 1)
    agrees(lambda x: u.accumulate(x, 1, np.float32), X, 0)
    with pytest.raises(UnsupportedError, match="reduceat"):
        fnad.vjp(lambda x: u.reduceat(x, [0, 1]), X)


@pytest.mark.parametrize("shift", [0.0, 1000.0, -1000.0])
def test_logaddexp_reduce(shift):
    x = X[0, 0]
    p = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    np.testing.assert_allclose(fnad.grad(np.logaddexp.reduce)(x + shift), p, rtol=1e-12)
    hess = fnad.hessian(np.logaddexp.reduce)(x + shift)
    np.testing.assert_allclose(hess, np.diag(p) - np.outer(p, p), rtol=1e-12, atol=1e-15)


def test_logaddexp_reduce_of_minus_infinity():
    low = np.full(3, -inf)
    np.testing.assert_array_equal(fnad.grad(np.logaddexp.reduce)(low), np.zeros(3))
    np.testing.assert_array_equal(fnad.hessian(np.logaddexp.reduce)(low), np.zeros((3, 3)))
    np.testing.assert_array_equal(fnad.grad(np.logaddexp.reduce)(np.array([-inf, 2.0])), [0, 1])
    assert fnad.grad(lambda i: np.logaddexp.reduce(low + 0 * i, initial=i))(1.0) == 1.0


# -- random combinations of arguments ----------------------------------------------------------------------------------


@given(
    st.sampled_from([np.sum, np.prod, np.mean, np.var, np.max, np.min, np.any, np.all]),
    arrays(shape=st.lists(st.integers(1, 3), max_size=3).map(tuple), layouts=True),
    st.data(),
)
def test_random_arguments(f, x, data):
    kwargs = {}
    if data.draw(st.booleans()):
        axes = data.draw(st.sets(st.integers(0, x.ndim - 1))) if x.ndim else set()
        kwargs["axis"] = tuple(a - x.ndim * data.draw(st.integers(0, 1)) for a in axes)
    if data.draw(st.booleans()):
        kwargs["keepdims"] = data.draw(st.booleans())
    if data.draw(st.booleans()):
        kwargs["where"] = np.asarray(np.random.default_rng(data.draw(st.integers(0, 9))).random(x.shape) > 0.3)
        if f in (np.max, np.min):
            kwargs["initial"] = 0.123
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = f(x, **kwargs)
        got, pull = fnad.vjp(lambda x: f(x, **kwargs), x)
        same(got, want)
        if np.asarray(want).dtype.kind == "f":
            assert pull(want)[0].shape == x.shape
            if np.all(np.isfinite(want)):
                check_grads(lambda x: f(x, **kwargs), (x,), order=1)


def test_mean_of_a_large_axis_is_exact_in_count():
    x = np.ones(1 << 12, np.float16)
    assert math.isclose(float(fnad.vjp(np.mean, x)[0]), 1.0)
    assert fnad.grad(np.mean)(x).dtype == np.float16
