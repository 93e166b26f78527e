"""Quantiles, medians, covariances, counts: as NumPy, in both modes, under vmap and jit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import ConcretizationError, UnsupportedError

from .agree import agrees, same

RNG = np.random.default_rng(5)
M = RNG.normal(size=(3, 4))
V = RNG.normal(size=7)
W = RNG.uniform(0.5, 2.0, size=7)
HOLES = np.where(RNG.random((3, 5)) < 0.3, np.nan, RNG.normal(size=(3, 5)))
HOLES[1] = np.nan
HOLES[1, 2] = 0.5


def near(got, want):
    """The same type, and the same numbers but for rounding: compiled code contracts products and sums."""
    assert type(got) is type(want)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=8 * np.finfo(want.dtype).eps if want.dtype.kind == "f" else 0, atol=1e-14)


METHODS = (
    "linear", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased", "midpoint",
    "averaged_inverted_cdf", "inverted_cdf", "closest_observation", "lower", "higher", "nearest",
)  # fmt: skip
LEVELS = np.array([0.0, 0.1, 0.25, 0.3, 0.5, 0.77, 1.0])

CASES = {
    "quantile": lambda m: np.quantile(m, 0.3),
    "quantile axis": lambda m: np.quantile(m, [0.1, 0.9], axis=0),
    "quantile keepdims": lambda m: np.quantile(m, 0.6, axis=(1,), keepdims=True),
    "quantile levels of two axes": lambda m: np.quantile(m, [[0.1, 0.4, 1.0], [0.5, 0.9, 0.0]], axis=1, keepdims=True),
    "percentile": lambda m: np.percentile(m, [5, 50, 95], axis=-1),
    "median": np.median,
    "median axis": lambda m: np.median(m, axis=(0, 1), keepdims=True) + np.median(m, axis=0),
    "nanmedian": lambda m: np.nanmedian(m, axis=1),
    "nanquantile": lambda m: np.nanquantile(m, [0.2, 0.8], axis=0),
    "cov": np.cov,
    "cov columns": lambda m: np.cov(m, rowvar=False, bias=True),
    "cov of two": lambda m: np.cov(m[0], m[1], ddof=0),
    "cov weights": lambda m: np.cov(m, fweights=[1, 2, 1, 3], aweights=[0.5, 1.0, 2.0, 0.1]),
    "cov of one": lambda m: np.cov(m[0]),
    "corrcoef": lambda m: np.corrcoef(m[:2]) * 0.5,
    "corrcoef of two": lambda m: np.corrcoef(m[0], m[2])[0, 1],
    "nancumsum": lambda m: np.nancumsum(m, axis=1) + np.nancumprod(m, 0) + np.nancumsum(m)[0],
    "bincount": lambda m: np.bincount([2, 0, 2, 5], weights=m[0], minlength=4),
}


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name):
    agrees(CASES[name], M, rounds="cov" in name or "corr" in name or name == "median axis")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_methods(method, dtype):
    for n in (1, 2, 7, 8):
        x = (10 * RNG.normal(size=(2, n))).astype(dtype)
        for q in (LEVELS, 0.3, 1, np.float64(0.7)):
            f = lambda x, q=q: np.quantile(x, q, axis=1, method=method)
            if dtype != np.int64:
                same(fnad.vjp(f, x)[0], f(x))
            if q is LEVELS or dtype == np.int64:
                near(fnad.jit(f)(x), f(x))
    fnad.testing.check_grads(lambda x: np.quantile(x, LEVELS, method=method), (V,))


@given(st.integers(1, 6), st.floats(0, 1), st.sampled_from(METHODS))
def test_quantiles_without_nan(n, q, method):
    rng = np.random.default_rng(n)
    x = np.where(rng.random((4, n)) < 0.4, np.nan, rng.normal(size=(4, n)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = np.nanquantile(x, q, axis=1, method=method)
        out, pull = fnad.vjp(lambda x: np.nanquantile(x, q, axis=1, method=method), x)
    np.testing.assert_allclose(out, want, rtol=1e-14)
    g = pull(np.ones(4))[0]
    np.testing.assert_allclose(np.sum(np.where(np.isnan(x), 0, g), axis=1), np.where(np.isnan(want), 0, 1), atol=1e-14)


def test_holes():
    for f in (
        lambda x: np.nanmedian(x, axis=1),
        lambda x: np.nanpercentile(x, [20, 60], axis=1),
        lambda x: np.nanquantile(x, 0.4, keepdims=True),
        lambda x: np.nancumsum(x, axis=0),
        lambda x: np.quantile(x, [0.2, 0.9], axis=1),
        lambda x: np.median(x, axis=1),
    ):
        np.testing.assert_allclose(fnad.vjp(f, HOLES)[0], f(HOLES), rtol=1e-14)
        np.testing.assert_allclose(fnad.jit(f)(HOLES), f(HOLES), rtol=1e-14)
    seen = []
    fnad.grad(lambda x: np.sum(x) + 0 * len(seen.extend([np.nanargmax(x), np.nanargmin(x, axis=1), np.isin(x, [0.5])]) or "1"))(HOLES)
    same(seen, [np.nanargmax(HOLES), np.nanargmin(HOLES, axis=1), np.isin(HOLES, [0.5])])


def test_empty_and_all_nan():
    with pytest.raises(IndexError):
        fnad.vjp(lambda x: np.quantile(x, 0.5), np.zeros(0))
    for f, x in (
        (lambda x: np.nanquantile(x, 0.5), np.zeros(0)),
        (lambda x: np.nanmedian(x, axis=1), np.full((2, 3), np.nan)),
        (lambda x: np.nanquantile(x, [0.5, 1.0], axis=0), np.full((2, 3), np.nan)),
        (lambda x: np.median(x), np.zeros(0)),
    ):
        with pytest.warns(RuntimeWarning):
            want = f(x)
        with pytest.warns(RuntimeWarning):
            same(fnad.vjp(f, x)[0], want)
    with pytest.raises(ValueError, match="All-NaN"):
        fnad.vjp(lambda x: np.nanargmax(x) * x[0], np.full(3, np.nan))


def test_derivative_by_the_level():
    """The slope of a linear quantile is (n - 1) times the step between neighbours."""
    x = np.array([0.0, 1.0, 4.0, 9.0])
    assert fnad.grad(lambda q: np.quantile(x, q))(0.5) == 3 * 3.0
    same(fnad.grad(lambda q: np.sum(np.percentile(x, q)))(np.array([10.0, 90.0])), np.array([0.03, 0.15]))
    fnad.testing.check_grads(lambda x, q: np.quantile(x, q), (V, np.array([0.15, 0.4, 0.72])))
    same(fnad.jit(fnad.grad(lambda q: np.quantile(x, q)))(0.5), np.float64(9.0))


def test_ties():
    x = np.array([1.0, 2.0, 2.0, 3.0])
    same(fnad.grad(np.median)(x), np.array([0.0, 0.5, 0.5, 0.0]))
    same(fnad.grad(lambda x: np.quantile(x, 0.5))(x), np.array([0.0, 0.5, 0.5, 0.0]))


def test_float32_stays():
    x = V.astype(np.float32)
    for f in (lambda x: np.quantile(x, 0.3), lambda x: np.percentile(x, 30), lambda x: np.nanquantile(x, 0.3), np.median, np.nanmedian):
        near(fnad.jit(f)(x), f(x))
        assert fnad.grad(f)(x).dtype == np.float32


def test_weights_of_cov_are_differentiated():
    fnad.testing.check_grads(lambda w: np.cov(RNG.normal(size=(2, 7)) * 0 + np.stack([V, V**2]), aweights=w), (W,))
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"):
        fnad.vjp(np.cov, np.ones((2, 1)))
    for bad in (lambda w: np.cov(V, aweights=-w), lambda w: np.cov(V, fweights=w), lambda w: np.cov(V, aweights=w[:2])):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            fnad.vjp(bad, W)


def test_refusals():
    with pytest.raises(UnsupportedError, match="stop_gradient"):
        fnad.vjp(lambda x: np.histogram(x)[0], V)
    with pytest.raises(UnsupportedError, match="weights"):
        fnad.vjp(lambda x: np.quantile(x, 0.5, weights=W, method="inverted_cdf"), V)
    with pytest.raises(ConcretizationError, match="bincount"):
        fnad.jit(np.bincount)(np.array([1, 2]))
    for bad in (lambda x: np.quantile(x, 1.5), lambda x: np.percentile(x, -1), lambda x: np.quantile(x, 0.5, method="best")):
        with pytest.raises(ValueError):
            fnad.vjp(bad, V)
    with pytest.raises(TypeError):
        fnad.vjp(lambda x: np.quantile(x + 1j, 0.5), V)
