"""The softmax kernels against extended precision, compiled and as plain Python."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fnad.kernels import softmax as k

KERNELS = {
    np.float32: (k.exp_float32, k.forward_float32, k.backward_float32),
    np.float64: (k.exp_float64, k.forward_float64, k.backward_float64),
}
LOWEST = {np.float32: -87.0, np.float64: -708.0}
both = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def run(dtype, x, y, g, decorated=True):
    _, forward, backward = KERNELS[dtype]
    if not decorated:
        forward, backward = forward.py_func, backward.py_func
    x, y, g = np.array(x, dtype), np.array(y, np.int64), np.array(g, dtype)
    losses, slopes = np.full(len(x), 7, dtype), np.full(x.shape, 7, dtype)
    with np.errstate(all="ignore"):
        assert forward(x, y, np.empty(x.shape[1], dtype), losses) == -1
        assert backward(g, x, y, slopes) == -1
    return losses, slopes


def exact(x, y, g):
    """Loss and slopes by 100-digit arithmetic."""
    with mpmath.workdps(100):
        exps = [[mpmath.exp(mpmath.mpf(float(v))) for v in row] for row in x]
        losses = [mpmath.log(mpmath.fsum(v / e[j] for v in e)) for e, j in zip(exps, y, strict=True)]  # of one class: exactly 0
        slopes = [[float(g[i]) * (e / mpmath.fsum(row) - (j == y[i])) for j, e in enumerate(row)] for i, row in enumerate(exps)]
        return np.array([float(v) for v in losses]), np.array([[float(v) for v in row] for row in slopes]).reshape(x.shape)


@both
def test_exponential_within_two_units_in_the_last_place(dtype):
    exp = KERNELS[dtype][0]
    rng = np.random.default_rng(0)
    z = np.concatenate([-rng.uniform(0, -LOWEST[dtype], 1500), -rng.exponential(1, 500), -(10.0 ** rng.uniform(-20, 0, 200))]).astype(dtype)
    for v in z:
        want = mpmath.exp(mpmath.mpf(float(v)))
        assert abs(mpmath.mpf(float(exp(v))) - want) <= 2 * float(np.spacing(dtype(want)))


@both
@pytest.mark.parametrize("decorated", [True, False])
def test_exponential_at_special_points(dtype, decorated):
    exp = KERNELS[dtype][0] if decorated else KERNELS[dtype][0].py_func
    z = dtype([0.0, -0.0, -np.inf, np.nan, -1e9, 2 * LOWEST[dtype]])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal([exp(v) for v in z], [1, 1, 0, np.nan, 0, 0])
        assert exp(dtype(LOWEST[dtype])) > 0
        assert exp(dtype(-1)) == pytest.approx(np.exp(-1.0), rel=float(2 * np.finfo(dtype).eps))


entries = st.floats(-50, 50, width=32)


@st.composite
def problems(draw):
    n, c = draw(st.integers(0, 4)), draw(st.integers(1, 11))
    rows = st.lists(entries, min_size=c, max_size=c)
    x = draw(st.lists(rows, min_size=n, max_size=n))
    y = draw(st.lists(st.integers(0, c - 1), min_size=n, max_size=n))
    g = draw(st.lists(st.floats(-2, 2, width=32), min_size=n, max_size=n))
    return np.array(x, np.float64).reshape(n, c), y, g


@both
@given(problems())
def test_loss_and_slopes_keep_their_relative_accuracy(dtype, problem):
    x, y, g = problem
    tolerance = 8 * np.finfo(dtype).eps * (1 + np.abs(x).max(initial=0))  # a rounded difference of logits enters an exponential
    losses, slopes = run(dtype, x, y, g)
    want_losses, want_slopes = exact(x, y, np.array(g, dtype))
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(losses, want_losses, tolerance, tiny)
    np.testing.assert_allclose(slopes, want_slopes, tolerance, 4 * tiny)


@both
@given(problems())
def test_undecorated_is_the_same(dtype, problem):
    for compiled, plain in zip(run(dtype, *problem), run(dtype, *problem, decorated=False), strict=True):
        np.testing.assert_allclose(compiled, plain, 4 * np.finfo(dtype).eps, np.finfo(dtype).tiny)


@both
@pytest.mark.parametrize("n", [*range(1, 10), 63])
def test_rows_of_every_length(dtype, n):
    x = np.random.default_rng(n).integers(-50, 50, n).astype(dtype)
    for kernel, want in ((k.row_max, x.max()), (k.row_sum, x.sum())):
        assert kernel(x) == kernel.py_func(x) == want


@both
def test_special_rows(dtype):
    x = [[0, -np.inf], [-np.inf, 0], [np.inf, 0], [np.nan, 0], [-np.inf, -np.inf], [5, 5]]
    losses, slopes = run(dtype, x, [0] * 6, [1] * 6)
    np.testing.assert_allclose(losses, [0, np.inf, np.nan, np.nan, np.nan, np.log(2)], 1e-6)
    np.testing.assert_array_equal(slopes, [[0, 0], [-1, 1], [np.nan] * 2, [np.nan] * 2, [np.nan] * 2, [-0.5, 0.5]])
    np.testing.assert_array_equal(run(dtype, x, [0] * 6, [0] * 6)[1], np.zeros((6, 2)))


@both
@pytest.mark.parametrize("label", [-1, 3, 2**40])
@pytest.mark.parametrize("decorated", [True, False])
def test_a_bad_label_is_reported_and_nothing_is_read_outside(dtype, label, decorated):
    _, forward, backward = (f if decorated else f.py_func for f in KERNELS[dtype])
    x, y = np.zeros((4, 3), dtype), np.array([0, 2, label, 1])
    assert forward(x, y, np.empty(3, dtype), np.empty(4, dtype)) == 2
    assert backward(np.ones(4, dtype), x, y, np.empty((4, 3), dtype)) == 2
    assert forward(np.zeros((2, 0), dtype), y[:2], np.empty(0, dtype), np.empty(2, dtype)) == 0
