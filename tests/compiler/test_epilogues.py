"""Loops that follow a matrix product become part of it: which do, and that the numbers stay the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad

DTYPES = [np.float32, np.float64]
SIZES = st.sampled_from([0, 1, 2, 5, 8, 33, 200, 260])
FOLLOWERS = {
    "row bias": lambda z, row, column, full: np.maximum(z + row, 0),
    "column": lambda z, row, column, full: z * column,
    "scalar": lambda z, row, column, full: 0.5 * z + 2,
    "matrix": lambda z, row, column, full: full - z * full,
    "slope, and sums over rows": lambda z, row, column, full: (lambda d: (d, d.sum(0)))(np.where(full > 0, z, 0)),
    "sum of all": lambda z, row, column, full: np.sum(z - full),
    "maximum over columns": lambda z, row, column, full: (z + row).max(0, initial=-9),
    "two results": lambda z, row, column, full: (z + row, z - row, z),
    "compared": lambda z, row, column, full: z > column,
    "an index": lambda z, row, column, full: z + np.take(full[0] if len(full) else row, np.arange(z.shape[1])),
}


def operands(rng, m, k, n, dtype, stack=()):
    shapes = ((*stack, m, k), (*stack, k, n), (n,), (m, 1), (*stack, m, n))
    return [rng.integers(-3, 4, shape).astype(dtype) for shape in shapes]


def followed(name):
    return lambda a, b, row, column, full: FOLLOWERS[name](a @ b, row, column, full)


def groups(f, *args):
    return [(g.kind, g.what) for g in fnad.explain(f)(*args).groups]


def check(f, args):
    """Sums of small integers are exact in any order."""
    got, want = fnad.jit(f)(*args), f(*args)
    for x, y in zip(fnad.tree.leaves(got), fnad.tree.leaves(want), strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(x, y)


@settings(max_examples=15)
@given(SIZES, SIZES, SIZES, st.sampled_from(DTYPES), st.integers(0, 9))
@pytest.mark.parametrize("name", FOLLOWERS)
def test_same_numbers(name, m, k, n, dtype, seed):
    check(followed(name), operands(np.random.default_rng(seed), m, k, n, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FOLLOWERS)
def test_same_numbers_in_parts(name, dtype):
    """Large enough to be cut among threads, by rows and by columns."""
    for m, k, n in ((700, 200, 100), (100, 200, 700)):
        check(followed(name), operands(np.random.default_rng(0), m, k, n, dtype))


@pytest.mark.parametrize("stack", [(5,), (2, 3), (1,), (0,)])
@pytest.mark.parametrize("name", ["row bias", "matrix", "two results", "sum of all"])
def test_stacks(name, stack):
    for size in (8, 160):
        check(followed(name), operands(np.random.default_rng(0), size, size, size, np.float64, stack))


def test_what_becomes_part_of_a_product():
    args = operands(np.random.default_rng(0), 50, 40, 30, np.float64)
    assert groups(followed("row bias"), *args) == [("product", "matmul, add, maximum")]
    assert groups(followed("two results"), *args) == [("product", "matmul, add, subtract")]
    assert ("product", "matmul, greater, where, sum") in groups(followed("slope, and sums over rows"), *args)


def test_a_step_through_a_layer_has_two_products_with_their_slopes_and_no_loops_over_matrices():
    def loss(w, x, v):
        return np.sum(np.maximum(x @ w, 0) @ v)

    w, x, v = np.ones((40, 30)), np.ones((50, 40)), np.ones((30, 20))
    kinds = [kind for kind, what in groups(fnad.grad(loss), w, x, v) if what != "fill"]
    assert kinds.count("product") == len(kinds)


def test_loops_that_need_whole_rows_or_much_time_stay_behind_the_product():
    args = operands(np.random.default_rng(0), 50, 40, 30, np.float64)[:2]
    assert groups(lambda a, b: np.tanh(a @ b), *args) == [("product", "matmul"), ("loop", "tanh")]
    (first, *_) = groups(lambda a, b: np.cumsum(a @ b, 1), *args)
    assert first == ("product", "matmul")


def test_a_loop_that_writes_over_an_operand_stays_behind_the_product():
    def f(a, b):
        return a @ b + a

    a, b = (np.random.default_rng(0).integers(-3, 4, (300, 300)).astype(float) for _ in range(2))
    want = f(a, b)
    np.testing.assert_array_equal(fnad.jit(f, donate_argnums=0)(a.copy(), b), want)
    np.testing.assert_array_equal(fnad.jit(f, donate_argnums=1)(a, b.copy()), want)
    np.testing.assert_array_equal(fnad.jit(lambda a, b, c: a @ b + c, donate_argnums=2)(a, b, a.copy()), want)


def test_something_between_the_product_and_its_loop():
    def f(a, b, c):
        z = a @ b
        s = np.sum(c)
        return np.maximum(z, s), s

    check(f, [*operands(np.random.default_rng(0), 30, 20, 10, np.float64)[:2], np.arange(-5.0, 4.0)])


@pytest.mark.parametrize("size", [6, 300])
def test_zeros_that_win_against_nan_do_so_before_the_loop(size):
    """The pullback of a product: a cotangent of zeros that meets an infinite weight stays zero, and the slope is applied to that."""

    def f(x, w, v):
        return np.sum(np.where(x > 0, (np.maximum(x, 0) @ w) * v, 0))

    x, w, v = np.ones((size, size)), np.ones((size, size)), np.ones((size, size))
    x[:, 0], v[:, 1], w[2, 1] = -1, 0, np.inf
    x[1] = -1
    with np.errstate(all="ignore"):
        got, want = fnad.jit(fnad.grad(f))(x, w, v), fnad.grad(f)(x, w, v)
    assert np.isfinite(want).all()
    np.testing.assert_array_equal(got, want)


def test_an_index_out_of_bounds_in_a_loop_of_a_product():
    f = fnad.jit(lambda a, b, i: a @ b + np.take(b[0], i))
    with pytest.raises(IndexError, match="out of bounds"):
        f(np.ones((300, 300)), np.ones((300, 300)), np.full(300, 300))


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_that_win_against_nan_in_products_of_a_loop(dtype):
    """Operands and results lie at a place that the iteration says."""

    def f(ws, x):
        def step(h, w):
            h = np.maximum(h @ w, 0)
            return h, h

        return np.sum(np.where(x[0, 0] > 5, 0, fnad.scan(step, x, ws)[1][:, 1:]))

    rng = np.random.default_rng(0)
    ws, x = rng.integers(-2, 3, (3, 20, 20)).astype(dtype), rng.integers(1, 4, (6, 20)).astype(dtype)
    ws[1, 3, 4] = np.inf
    x[0] = -1
    with np.errstate(all="ignore"):
        got, want = (g(f, argnums=(0, 1))(ws, x) for g in (lambda *a, **k: fnad.jit(fnad.grad(*a, **k)), fnad.grad))
    for a, b in zip(got, want, strict=True):
        assert a.dtype == dtype
        np.testing.assert_array_equal(a, b)
    assert np.isfinite(want[0]).any()


def test_a_recurrent_layer_of_several_units_has_a_compiled_gradient():
    layer = fnad.nn.layers.lstm(3, 16)
    params, x = layer.init(fnad.random.key(0)), np.random.default_rng(0).normal(size=(5, 4, 3))
    gradient = fnad.grad(lambda p: np.sum(layer.apply(p, x)[0] ** 2))
    fnad.testing.assert_trees_close(fnad.jit(gradient)(params), gradient(params), rtol=1e-10, atol=1e-12)


def test_zeros_that_win_against_nan_inside_of_a_loop():
    """The operands of the product are parts of arrays, one for each step."""

    def f(xs, w):
        def step(h, x):
            h = np.maximum(h + np.where(x > 0, np.maximum(x, 0) @ w, 0), 0)
            return h, h

        h, hs = fnad.scan(step, np.zeros((32, 32)), xs)
        return np.sum(h) + np.sum(hs * np.arange(4.0)[:, None, None])

    rng = np.random.default_rng(0)
    xs, w = rng.normal(size=(4, 32, 32)), rng.normal(size=(32, 32))
    for x in (xs, np.where(np.arange(32) == 3, np.inf, xs)):
        with np.errstate(all="ignore"):
            got, want = fnad.jit(fnad.grad(f, (0, 1)))(x, w), fnad.grad(f, (0, 1))(x, w)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
