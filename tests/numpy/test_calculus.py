"""Interpolation, integrals, differences, windows, convolution, polynomials, phases: as NumPy, in both modes, under vmap and jit."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import ArgumentError, UnsupportedError

from .agree import agrees, same

RNG = np.random.default_rng(6)
M = RNG.normal(size=(3, 5))
V = RNG.normal(size=6)
KNOTS = np.array([-1.0, -0.2, 0.3, 0.9, 2.0])

CASES = {
    "interp": lambda m: np.interp(m, KNOTS, [1.0, 3.0, -2.0, 0.5, 0.0]),
    "interp ends": lambda m: np.interp(3 * m, KNOTS, KNOTS**2, left=-7.0, right=9.0),
    "interp one": lambda m: np.interp(m, [0.1], [2.0]) + np.interp(m, m[0, :1], m[1, :1], right=1.0),
    "trapezoid": lambda m: np.trapezoid(m) + np.trapezoid(m, dx=0.3, axis=-1),
    "trapezoid x": lambda m: np.trapezoid(m, KNOTS) + np.trapezoid(m[0], m[1]),
    "trapezoid axis": lambda m: np.trapezoid(m, m**2, axis=0),
    "gradient": lambda m: np.gradient(m)[0] * np.gradient(m)[1],
    "gradient step": lambda m: np.gradient(m, 0.3, axis=1) + np.gradient(m, m[0, 0], axis=(0,)),
    "gradient steps": lambda m: np.gradient(m, 2.0, KNOTS, edge_order=2)[1] + np.gradient(m, axis=1, edge_order=2),
    "gradient equal steps": lambda m: np.gradient(m, np.arange(5), axis=1),
    "gradient coordinates": lambda m: np.gradient(m[0], np.cumsum(m[1] ** 2 + 0.1), edge_order=2),
    "gradient both": lambda m: np.stack(np.gradient(m, 0.5, 2.0, axis=(1, 0))),
    "windows": lambda m: np.lib.stride_tricks.sliding_window_view(m, (2, 3)) * 2.0,
    "windows axis": lambda m: np.lib.stride_tricks.sliding_window_view(m, 2, axis=0) ** 2,
    "windows axes": lambda m: np.lib.stride_tricks.sliding_window_view(m, (2, 2), axis=(1, 1)),
    "convolve": lambda m: np.convolve(m[0], m[1, :3]) * np.convolve(m[1, :2], m[2, ::-1], "full")[0],
    "convolve same": lambda m: np.convolve(m[0], m[1, :4], "same") + np.convolve(m[1, :3], m[0], "same"),
    "convolve valid": lambda m: np.convolve(m[0, :2], m[1], "valid"),
    "correlate": lambda m: np.correlate(m[0], m[1, :2]) * np.correlate(m[0, :2], m[1]),
    "correlate full": lambda m: np.correlate(m[0], m[1, :3], "full") + np.correlate(m[0, :3], m[1], "full"),
    "correlate same": lambda m: np.correlate(m[0], m[1, :4], "same") + np.correlate(m[0, :2], m[1], "same"),
    "vander": lambda m: np.vander(m[0]) + np.vander(m[1], increasing=True),
    "vander columns": lambda m: np.vander(m[0], 2) * np.vander(m[0], 1),
    "polyval": lambda m: np.polyval(m[0], m) + np.polyval([2.0, 0.0, 1.0], m[1]),
    "polynomials": lambda m: np.polyadd(m[0], m[1, :2]) - np.polysub(m[1, :3], m[2]),
    "polyder": lambda m: np.polyder(m[0]) * np.polyder(m[0], 2)[0],
    "unwrap": lambda m: np.unwrap(4 * m) + np.unwrap(4 * m, axis=0, discont=4.0, period=5.0),
    "modf": lambda m: np.modf(m)[0] * np.modf(m)[1],
    "piecewise": lambda m: np.piecewise(m, [m < 0, m > 0.5], [lambda x: x**2, 3.0, np.cos]),
    "piecewise one": lambda m: np.piecewise(m[0], m[0] > 0, [lambda x, k: k * x, -1.0], 2.0),
    "geomspace": lambda m: np.geomspace(1.0 + m[0] ** 2, 3.0, 5) + np.geomspace(2.0, 1.0, 5, endpoint=False)[:, None],
}


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name):
    rounds = name.split()[0] in ("gradient", "convolve", "correlate", "geomspace", "trapezoid", "vander", "interp", "unwrap", "piecewise")
    agrees(CASES[name], M, rounds=rounds, vmap=name != "piecewise", order=1 if name == "gradient coordinates" else 2)


def test_compiled():
    """Values of all at once, and the gradient of some."""
    names = ("interp ends", "trapezoid x", "gradient coordinates", "convolve same", "windows axis", "vander", "unwrap", "piecewise")
    loss = fnad.grad(lambda m: sum(np.sum(np.sin(CASES[name](m))) for name in names))
    got, slope = fnad.jit(lambda m: ([f(m) for f in CASES.values()], loss(m)))(M)
    for g, f in zip(got, CASES.values(), strict=True):
        np.testing.assert_allclose(g, f(M), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slope, loss(M), rtol=1e-10, atol=1e-10)


# -- interpolation -------------------------------------------------------------------------------------------------


def test_interp_differentiates_by_everything():
    x, xp, fp = np.array([-3.0, -0.5, 0.1, 0.9, 1.3, 4.0]), KNOTS, np.sin(KNOTS)
    fnad.testing.check_grads(np.interp, (np.array([-3.0, -0.5, 0.1, 1.3, 4.0]), xp, fp))
    fnad.testing.check_grads(lambda x, *ends: np.interp(x, xp, fp, *ends), (np.array([-3.0, 0.1, 4.0]), 2.0, 3.0))
    same(fnad.vjp(lambda x: np.interp(x, xp, fp), x)[0], np.interp(x, xp, fp))
    native = fnad.explain(fnad.grad(lambda x, xp, fp: np.sum(np.interp(x, xp, fp)), (0, 1, 2)))(x, xp, fp)
    assert not native.hosts
    same(fnad.grad(np.interp)(2.0, KNOTS, fp), (fp[-1] - fp[-2]) / (KNOTS[-1] - KNOTS[-2]))
    assert fnad.grad(np.interp)(np.float32(0.5), KNOTS, fp).dtype == np.float32
    complex_fp = fp + 1j * np.cos(KNOTS)
    same(fnad.jit(lambda x: np.interp(x, xp, complex_fp))(x), np.interp(x, xp, complex_fp))


def test_interp_periodic_and_odd_points():
    angles, values = np.array([350.0, 10.0, 120.0, -90.0]), np.array([1.0, 2.0, 4.0, 3.0])
    x = np.array([-500.0, 0.0, 5.0, 200.0, 359.0])
    same(fnad.vjp(lambda v: np.interp(x, angles, v, period=360), values)[0], np.interp(x, angles, values, period=360))
    fnad.testing.check_grads(lambda x, a, v: np.interp(x, a, v, period=-360), (x, angles, values))
    odd = np.array([np.nan, np.inf, -np.inf, 1.0, 2.0])
    for xp in ([0.0, 1.0, 2.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]):
        same(fnad.vjp(lambda v, xp=xp: np.interp(odd, xp, v), V[:3])[0], np.interp(odd, xp, V[:3]))
    for bad in (lambda v: np.interp(0.0, v, v[:2]), lambda v: np.interp(0.0, v[None], v), lambda v: np.interp(0.0, v[:0], v[:0])):
        with pytest.raises(ValueError):
            fnad.vjp(bad, V)
    with pytest.raises(ArgumentError):
        fnad.vjp(lambda p: np.interp(0.5 * p, KNOTS, KNOTS, period=p), 2.0)


# -- convolution ---------------------------------------------------------------------------------------------------


@given(
    st.integers(1, 6), st.integers(1, 6), st.sampled_from(["full", "same", "valid"]), st.sampled_from([np.float32, np.complex128, np.int64])
)
def test_convolutions_of_all_lengths(n, m, mode, dtype):
    rng = np.random.default_rng(10 * n + m)
    a, v = ((4 * rng.normal(size=k)).astype(dtype) + (1j * rng.normal(size=k) if dtype == np.complex128 else 0) for k in (n, m))
    for f in (np.convolve, np.correlate):
        out = fnad.vmap(lambda a, f=f: f(a, v, mode))(a[None])[0]
        want = f(a, v, mode)
        assert out.dtype == want.dtype
        np.testing.assert_allclose(out, want, rtol=1e-5)


def test_convolution_mistakes():
    for bad in (lambda v: np.convolve(v, v, "most"), lambda v: np.convolve(v[:0], v), lambda v: np.correlate(v[None], v)):
        with pytest.raises(ValueError):
            fnad.vjp(bad, V)


# -- the rest ------------------------------------------------------------------------------------------------------


def test_polyfit():
    x, y, w = np.linspace(-1.0, 2.0, 9), np.cos(np.linspace(0.0, 3.0, 9)), np.linspace(0.5, 1.5, 9)
    np.testing.assert_allclose(fnad.jit(lambda y: np.polyfit(x, y, 3))(y), np.polyfit(x, y, 3), rtol=1e-10)
    fnad.testing.check_grads(lambda x, y, w: np.polyfit(x, y, 2, w=w), (x, y, w))
    fnad.testing.check_grads(lambda y: np.polyfit(x, y, 1), (np.stack([y, y**2], axis=1),))
    for bad, kind in (
        (lambda y: np.polyfit(x, y, -1), ValueError),
        (lambda y: np.polyfit(x[:3], y, 1), TypeError),
        (lambda y: np.polyfit(x, y, 1, full=True), UnsupportedError),
    ):
        with pytest.raises(kind):
            fnad.vjp(bad, y)
    with pytest.warns(np.exceptions.RankWarning):
        fnad.vjp(lambda y: np.polyfit(np.ones(3), y, 1), y[:3])


def test_piecewise_gives_functions_what_numpy_gives_them():
    """With known conditions only the entries that were selected."""
    x = np.array([-1.0, 2.0, 4.0])
    f = lambda x: np.piecewise(x, [x > 0], [lambda v: v - np.mean(v), 0.0])
    same(fnad.vjp(f, x)[0], f(x))
    root = lambda x: np.sum(np.piecewise(x, [x > 0], [np.sqrt, 0.0]))
    same(fnad.jit(fnad.grad(root))(np.array([-1.0, 4.0])), np.array([0.0, 0.25]))
    same(fnad.vjp(lambda x: np.piecewise(x, [x < 1.0], [2.0, 3.0]), 0.5)[0], np.float64(2.0))
    same(fnad.vjp(lambda x: np.piecewise(x, x > 0, [1.0]), x)[0], np.piecewise(x, x > 0, [1.0]))
    with pytest.raises(ValueError):
        fnad.vjp(lambda x: np.piecewise(x, [x > 0], [1.0, 2.0, 3.0]), x)


def test_unwrap_of_integers_and_ties():
    for x, options in (
        (np.array([0, 3, 1, 5, 9]), {"period": 4}),
        (np.array([0, 3, 1, 5, 9]), {"period": 5}),
        (np.array([0.0, np.pi, 0.0, -np.pi]), {}),
    ):
        same(fnad.jit(lambda x, o=options: np.unwrap(x, **o))(x), np.unwrap(x, **options))
    with pytest.raises(ArgumentError):
        fnad.vjp(lambda p: np.unwrap(V * p, period=p), 2.0)


def test_bessel_function_of_numpy():
    np.testing.assert_allclose(fnad.vjp(np.i0, V)[0], np.i0(V), rtol=1e-14)
    fnad.testing.check_grads(np.i0, (V,))


def test_windows_and_gradients_mistakes():
    windows = np.lib.stride_tricks.sliding_window_view
    for bad in (lambda m: windows(m, 2), lambda m: windows(m, (4, 1)), lambda m: windows(m, -1, axis=0)):
        with pytest.raises(ValueError):
            fnad.vjp(bad, M)
    for bad, kind in (
        (lambda m: np.gradient(m, edge_order=3), ValueError),
        (lambda m: np.gradient(m[:1]), ValueError),
        (lambda m: np.gradient(m, 1.0, 2.0, 3.0), TypeError),
        (lambda m: np.gradient(m, KNOTS, KNOTS), ValueError),
        (lambda m: np.gradient(m, M, axis=0), ValueError),
    ):
        with pytest.raises(kind):
            fnad.vjp(bad, M)


def test_own_rows_win_over_those_that_are_loaded_later():
    code = (
        "import numpy as np, fnad\n"
        "@fnad.implements(np.polyval)\n"
        "def polyval(p, x):\n"
        "    return 7.0 * x\n"
        "fnad.grad(lambda x: np.trapezoid(x))(np.ones(3))\n"
        "assert fnad.grad(lambda x: np.polyval([1.0], x))(2.0) == 7.0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("interp", "gradient", "unwrap", "piecewise", "geomspace"):
            fnad.vjp(CASES[name], M)
