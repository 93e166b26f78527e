"""np.linalg's solutions and decompositions on traced values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import UnsupportedError
from fnad.testing import check_grads, check_vmap
from fnad.testing.strategies import arrays


def regular(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape) + 3.0 * np.eye(shape[-1])


def positive(*shape, seed=0):
    m = regular(*shape, seed=seed)
    return m @ np.swapaxes(m, -1, -2)


def symmetric(m):
    return 0.5 * (m + np.swapaxes(m, -1, -2))


def gram(m):
    return m @ np.swapaxes(m, -1, -2) + np.eye(m.shape[-1])


def traced(f, *args):
    return fnad.vjp(f, *args)[0]


def agree(f, *args):
    got, want = traced(f, *args), f(*args)
    assert type(got) is type(want)
    for g, w in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
        assert (np.shape(g), g.dtype, type(g)) == (np.shape(w), w.dtype, type(w))
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        np.linalg.inv,
        np.linalg.det,
        lambda m: np.linalg.slogdet(m)[1],
        lambda m: np.linalg.slogdet(m).logabsdet,
        lambda m: np.linalg.solve(m, np.ones(3)),
        lambda m: np.linalg.solve(np.eye(3) * 2.0, m),
        lambda m: np.linalg.solve(m, m @ m),
        lambda m: np.linalg.cholesky(gram(m)),
        lambda m: np.linalg.cholesky(gram(m), upper=True),
        lambda m: np.linalg.eigvalsh(symmetric(m)),
        lambda m: np.linalg.eigvalsh(symmetric(m), UPLO="U"),
        lambda m: np.abs(np.linalg.eigh(symmetric(m)).eigenvectors),
        lambda m: np.abs(np.linalg.eigh(symmetric(m), UPLO="u")[1]),
        lambda m: np.linalg.matrix_power(m, -3),
        lambda m: np.linalg.matrix_power(m, -1),
    ],
)
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3)])
def test_derivatives_and_batches(f, shape):
    m = regular(*shape) + np.diag([0.0, 2.0, 5.0])
    agree(f, m)
    check_grads(f, (m,))
    many = np.stack([m, m + 0.1, m - 0.1])
    check_vmap(f, (many,))
    check_vmap(fnad.grad(lambda x: np.sum(np.sin(f(x)))), (many,))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 2), (2,)),
        ((2, 2), (2, 3)),
        ((3, 2, 2), (2,)),
        ((3, 2, 2), (2, 1)),
        ((2, 2), (3, 2, 1)),
        ((3, 1, 2, 2), (4, 2, 3)),
        ((0, 0), (0,)),
    ],
)
def test_solve(a, b):
    a, b = regular(*a), np.random.default_rng(1).normal(size=b)
    agree(np.linalg.solve, a, b)
    check_grads(np.linalg.solve, (a, b))
    check_vmap(np.linalg.solve, (a, np.stack([b, b + 1.0])), in_axes=(None, 0))
    check_vmap(np.linalg.solve, (np.stack([a, a + 0.1]), b), in_axes=(0, None))
    check_vmap(fnad.grad(lambda x, y: np.sum(np.linalg.solve(x, y) ** 2)), (np.stack([a, a + 0.1]), np.stack([b, b + 1.0])))


def test_many_right_hand_sides_share_one_factorisation():
    text = str(fnad.make_graph(lambda b: fnad.vmap(lambda v: np.linalg.solve(np.eye(3), v))(b))(np.ones((5, 3))))
    assert "float64[3,5] = solve" in text


@pytest.mark.parametrize(
    "f",
    [
        np.linalg.inv,
        np.linalg.det,
        np.linalg.slogdet,
        np.linalg.eigh,
        np.linalg.eigvalsh,
        lambda m: np.linalg.solve(m, m),
        np.linalg.cholesky,
    ],
)
def test_dtypes(f):
    m = positive(3, 3).astype(np.float32)
    for value, plain in zip(*((x if isinstance(x, tuple) else (x,)) for x in (traced(f, m), f(m))), strict=True):
        assert value.dtype == plain.dtype == np.float32
    last = lambda m: f(m)[-1] if isinstance(f(m), tuple) else f(m)
    assert fnad.grad(lambda m: np.sum(last(m)))(m).dtype == np.float32
    got = fnad.eval_shape(f, positive(2, 2).astype(np.int64))
    want = f(positive(2, 2).astype(np.int64))
    for g, w in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, want)), strict=True):
        assert (g.shape, g.dtype) == (np.shape(w), w.dtype)


@pytest.mark.parametrize("f", [np.linalg.inv, np.linalg.det, lambda m: np.linalg.solve(m, m @ m)])
def test_complex(f):
    rng = np.random.default_rng(0)
    m = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
    agree(f, m)
    check_grads(f, (m,))
    check_grads(lambda m: np.abs(f(m)), (m,), order=1)


@pytest.mark.parametrize("f", [np.linalg.slogdet, np.linalg.cholesky, np.linalg.eigh, np.linalg.eigvalsh])
def test_complex_that_has_no_rule(f):
    with pytest.raises(UnsupportedError, match="complex"):
        traced(f, np.eye(2) + 0j)


@pytest.mark.parametrize(
    "f", [np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.eigh, lambda m: np.linalg.solve(m, m)]
)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 3), ()])
def test_errors_as_in_numpy(f, shape):
    m = np.ones(shape)
    with pytest.raises(np.linalg.LinAlgError):
        f(m)
    with pytest.raises(np.linalg.LinAlgError):
        traced(f, m)


def test_other_errors_as_in_numpy():
    for f in (np.linalg.inv, np.linalg.cholesky):
        with pytest.raises(np.linalg.LinAlgError):
            traced(f, -np.ones((2, 2)))
    with pytest.raises(ValueError):
        traced(lambda m: np.linalg.eigh(m, UPLO="X"), np.eye(2))
    for b in (np.ones(3), np.ones((3, 1)), np.float64(1.0)):
        with pytest.raises(ValueError):
            np.linalg.solve(np.eye(2), b)
        for ask in (traced, fnad.eval_shape):
            with pytest.raises(ValueError):
                ask(lambda m, b=b: np.linalg.solve(m, b), np.eye(2))


# -- determinants --------------------------------------------------------------------------------------------------


def test_det_of_one_zero():
    assert fnad.grad(np.linalg.det)(np.array([[0.0]])) == np.array([[1.0]])


def test_det_of_two_by_two_to_any_order_where_regular():
    written_out = lambda m: m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    for m in (np.array([[1.0, 2.0], [2.0, 4.0]]), np.zeros((2, 2)), regular(2, 2)):
        np.testing.assert_allclose(fnad.grad(np.linalg.det)(m), fnad.grad(written_out)(m), atol=1e-14)
        for hessian in (fnad.hessian, lambda f: fnad.jacrev(fnad.jacrev(f)), lambda f: fnad.jacfwd(fnad.jacfwd(f))):
            np.testing.assert_allclose(hessian(np.linalg.det)(m), fnad.hessian(written_out)(m), atol=1e-14)
    np.testing.assert_allclose(fnad.jacfwd(fnad.hessian(np.linalg.det))(regular(2, 2)), np.zeros((2,) * 6), atol=1e-13)
    check_grads(np.linalg.det, (regular(3, 3),), order=3)


@given(arrays(shape=(4, 4)), st.integers(0, 3))
def test_det_of_any_rank_to_second_order(m, rank):
    u, s, v = np.linalg.svd(m)
    s[rank:] = 0.0
    check_grads(np.linalg.det, ((u * s) @ v,))


def test_third_derivative_of_det_is_refused_near_singular_matrices():
    for m in (np.ones((3, 3)), np.diag([1.0, 1.0, 1e-9])):
        with pytest.raises(np.linalg.LinAlgError):
            fnad.jacrev(fnad.hessian(np.linalg.det))(m)


def test_log_determinant():
    for m in (regular(3, 3), -np.eye(3), np.array([[0.0, 1.0], [1.0, 0.0]])):
        sign, log = traced(np.linalg.slogdet, m)
        assert (sign, log) == np.linalg.slogdet(m)
        np.testing.assert_allclose(fnad.grad(lambda m: np.linalg.slogdet(m).logabsdet)(m), np.linalg.inv(m).T, rtol=1e-12)
        np.testing.assert_array_equal(fnad.grad(lambda m: np.linalg.slogdet(m)[0])(m), 0 * m)
    with pytest.raises(np.linalg.LinAlgError):
        fnad.grad(lambda m: np.linalg.slogdet(m)[1])(np.ones((2, 2)))


# -- symmetric matrices --------------------------------------------------------------------------------------------


def test_log_determinant_by_cholesky():
    a = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    f = lambda a: np.sum(np.log(np.diag(np.linalg.cholesky(a))))
    np.testing.assert_allclose(fnad.grad(f)(a), 0.5 * np.linalg.inv(a), rtol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        np.linalg.cholesky,
        lambda a: np.linalg.cholesky(a, upper=True),
        np.linalg.eigvalsh,
        lambda a: np.linalg.eigvalsh(a, "U"),
        lambda a: np.linalg.eigh(a)[1] ** 2,
    ],
)
def test_gradients_are_symmetric_and_directions_are_taken_for_it(f):
    a = positive(3, 3) + np.diag([0.0, 2.0, 5.0])
    g = fnad.grad(lambda a: np.sum(f(a) * np.arange(1.0, 4.0)))(a)
    np.testing.assert_allclose(g, g.T, rtol=1e-13)
    t = regular(3, 3, seed=1)
    np.testing.assert_allclose(fnad.jvp(f, (a,), (t,))[1], fnad.jvp(f, (a,), (symmetric(t),))[1], rtol=1e-12, atol=1e-14)


def test_one_triangle_is_read():
    a = positive(3, 3)
    lower, upper = np.tril(a), np.triu(a)
    for f, half in (
        (np.linalg.cholesky, lower),
        (lambda a: np.linalg.cholesky(a, upper=True), upper),
        (lambda a: np.linalg.eigvalsh(a, "L"), lower),
        (lambda a: np.linalg.eigvalsh(a, "U"), upper),
    ):
        np.testing.assert_allclose(traced(f, half), f(a), rtol=1e-12)


def test_equal_eigenvalues():
    np.testing.assert_allclose(fnad.grad(lambda a: np.sum(np.linalg.eigvalsh(a)))(np.eye(3)), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(fnad.grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2))(2.0 * np.eye(3)), 4.0 * np.eye(3), atol=1e-12)
    g = fnad.grad(lambda a: np.sum(np.linalg.eigh(a)[1] ** 3))(np.diag([1.0, 1.0, 4.0]))
    assert np.all(np.isfinite(g))
    assert g[0, 1] == 0
    second = fnad.hessian(lambda a: np.sum(np.linalg.eigvalsh(a)))(np.eye(2))
    np.testing.assert_allclose(second, np.zeros((2, 2, 2, 2)), atol=1e-12)


def test_both_results_of_eigh_are_pulled_back():
    a = symmetric(regular(3, 3)) + np.diag([0.0, 2.0, 5.0])
    w, v = np.linalg.eigh(a)
    # a itself, put together from its parts: the derivative is the identity (on symmetric directions)
    f = lambda a: (lambda w, v: (v * w) @ v.T)(*np.linalg.eigh(a))
    t = symmetric(regular(3, 3, seed=1))
    np.testing.assert_allclose(fnad.jvp(f, (a,), (t,))[1], t, atol=1e-12)
    np.testing.assert_allclose(fnad.vjp(f, a)[1](t)[0], t, atol=1e-12)
    check_grads(lambda m: f(symmetric(m)), (a,))
    result = traced(np.linalg.eigh, a)
    np.testing.assert_allclose(result.eigenvalues, w, rtol=1e-12)
    np.testing.assert_allclose(result.eigenvectors, v, rtol=1e-12)


def test_empty_matrices():
    for f in (np.linalg.inv, np.linalg.cholesky, np.linalg.eigvalsh):
        assert fnad.grad(lambda m, f=f: np.sum(f(m)))(np.zeros((0, 0))).shape == (0, 0)
    assert fnad.grad(np.linalg.det)(np.zeros((0, 0))).shape == (0, 0)
    assert traced(np.linalg.det, np.zeros((0, 0))) == 1.0
