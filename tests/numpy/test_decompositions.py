"""np.linalg on general matrices: singular values, QR, eigenvalues, least squares, ranks, tensor equations."""

from __future__ import annotations

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, DTypeError, UnsupportedError

from .agree import same

RNG = np.random.default_rng(7)
TALL = RNG.normal(size=(4, 3))
SQUARE = RNG.normal(size=(3, 3)) + np.diag([4.0, 0.0, -3.0])
T = np.matrix_transpose

CASES = {
    "svd values": lambda m: np.linalg.svd(m, compute_uv=False),
    "svdvals wide": lambda m: np.linalg.svdvals(T(m)) ** 2,
    "svd": lambda m: np.abs(np.linalg.svd(m, full_matrices=False).U) * np.linalg.svd(m, full_matrices=False)[1],
    "svd wide": lambda m: np.abs(np.linalg.svd(T(m), False).Vh),
    "svd again": lambda m: (lambda u, s, vt: (u * s**2) @ vt)(*np.linalg.svd(m, full_matrices=False)),
    "svd symmetric": lambda m: np.linalg.svd(T(m) @ m, hermitian=True, compute_uv=False),
    "svd symmetric vectors": lambda m: (lambda u, s, vt: (u * s**2) @ vt)(*np.linalg.svd(m[:3] + T(m[:3]), hermitian=True)),
    "qr": lambda m: np.linalg.qr(m).Q * 2.0,
    "qr r": lambda m: np.linalg.qr(m, mode="r") * np.linalg.qr(m).R,
    "qr complete": lambda m: np.linalg.qr(m[:3], mode="complete").Q,
    "qr wide": lambda m: np.linalg.qr(T(m)).R,
    "pinv": np.linalg.pinv,
    "pinv wide": lambda m: np.linalg.pinv(T(m), rtol=None),
    "lstsq": lambda m: np.linalg.lstsq(m, m[:, 0] ** 2)[0],
    "lstsq residuals": lambda m: np.linalg.lstsq(m[:, :2], m**2, rcond=1e-9)[1],
    "lstsq wide": lambda m: np.linalg.lstsq(T(m), T(m) ** 2)[0],
    "norms": lambda m: np.linalg.norm(m, 2) + np.linalg.norm(m, -2) * np.linalg.norm(m, "nuc", keepdims=True),
    "cond": lambda m: np.linalg.cond(m) + np.linalg.cond(m[:3], 1) + np.linalg.cond(m[:3], "fro") * np.linalg.cond(m, -2),
    "tensorsolve": lambda m: np.linalg.tensorsolve(np.reshape(T(m) @ m + np.eye(3), (3, 1, 3)), np.reshape(m[0], (3, 1)), axes=(0,)),
    "tensorinv": lambda m: np.linalg.tensorinv(np.reshape(T(m) @ m + np.eye(3), (3, 1, 3)), ind=1),
    "eigvals": lambda m: np.abs(np.linalg.eigvals(m[:3] + np.diag([5.0, 0.0, -5.0]))),
}


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name):
    # mapped ones are tried in the audit: minus a matrix of rank 3 times 0.5 and 1 is singular there
    if name in ("svd symmetric", "svd symmetric vectors", "eigvals"):
        with_eigh = name != "eigvals"
        np.testing.assert_allclose(fnad.vjp(CASES[name], TALL)[0], CASES[name](TALL), rtol=1e-10, atol=1e-12)
        fnad.testing.check_grads(CASES[name], (TALL,), 2 if with_eigh else 1)
    else:
        rounds(CASES[name], TALL)


def rounds(f, x):
    np.testing.assert_allclose(fnad.vjp(f, x)[0], f(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fnad.jit(f)(x), f(x), rtol=1e-9, atol=1e-12)
    fnad.testing.check_grads(f, (x,), 2)
    fnad.testing.check_vmap(f, (np.stack([x, 1.1 * x]),))
    single = x.astype(np.float32)
    assert fnad.vjp(f, single)[0].dtype == f(single).dtype
    assert fnad.grad(lambda x: np.sum(f(x)))(single).dtype == np.float32


# -- singular values -----------------------------------------------------------------------------------------------


def test_equal_and_zero_singular_values_have_finite_gradients():
    """The nuclear and the spectral norm, and singular values, at matrices where formulas for the vectors divide by 0."""
    rank_one = np.outer([1.0, 2.0, 2.0], [3.0, 4.0])
    for x in (np.eye(3), np.zeros((3, 2)), rank_one, 2.0 * np.eye(2)[:, [1, 0]]):
        for f in (lambda x: np.sum(np.linalg.svdvals(x)), lambda x: np.sum(np.linalg.svdvals(x) ** 2), lambda x: np.linalg.norm(x, 2)):
            assert np.all(np.isfinite(fnad.grad(f)(x)))
        np.testing.assert_allclose(fnad.grad(lambda x: np.sum(np.linalg.svdvals(x) ** 2))(x), 2 * x, atol=1e-12)
    np.testing.assert_allclose(fnad.grad(lambda x: np.linalg.norm(x, "nuc"))(np.eye(3)), np.eye(3), atol=1e-14)
    np.testing.assert_allclose(fnad.grad(lambda x: np.linalg.norm(x, 2))(rank_one), rank_one / np.linalg.norm(rank_one), atol=1e-14)
    u = lambda x: np.sum(np.linalg.svd(x, full_matrices=False)[0] ** 3)
    assert np.all(np.isfinite(fnad.grad(u)(rank_one)))


def test_reconstruction_has_the_identity_as_derivative():
    for shape in ((4, 3), (3, 4), (3, 3)):
        x, t = RNG.normal(size=shape), RNG.normal(size=shape)

        def again(x):
            u, s, vt = np.linalg.svd(x, full_matrices=False)
            return (u * s) @ vt

        np.testing.assert_allclose(fnad.jvp(again, (x,), (t,))[1], t, atol=1e-12)
        np.testing.assert_allclose(fnad.vjp(again, x)[1](t)[0], t, atol=1e-12)
        np.testing.assert_allclose(fnad.jvp(lambda x: np.matmul(*np.linalg.qr(x)), (x,), (t,))[1], t, atol=1e-12)


def test_refusals():
    for f in (
        lambda x: np.linalg.svd(x),
        lambda x: np.linalg.qr(x, mode="complete"),
        lambda x: np.linalg.qr(x, mode="raw"),
    ):
        with pytest.raises(UnsupportedError):
            fnad.vjp(f, TALL)
    for f in (np.linalg.svdvals, np.linalg.qr, np.linalg.pinv):
        with pytest.raises(DTypeError, match="complex"):
            fnad.vjp(f, TALL + 1j)
        with pytest.raises(np.linalg.LinAlgError):
            fnad.vjp(f, TALL[0])
    for f in (lambda x: np.linalg.qr(x, "best"), lambda x: np.linalg.pinv(x, 1e-3, rtol=1e-3), lambda x: np.linalg.tensorinv(x, 0)):
        with pytest.raises(ValueError):
            fnad.vjp(f, TALL)
    with pytest.raises(ArgumentError):
        fnad.vjp(lambda x: np.linalg.pinv(x, x[0, 0]), TALL)
    for f in (lambda x: np.linalg.lstsq(x, x[:2]), lambda x: np.linalg.lstsq(x[None], x), lambda x: np.linalg.cond(x[:, :0])):
        with pytest.raises(np.linalg.LinAlgError):
            fnad.vjp(f, TALL)


# -- least squares and ranks ---------------------------------------------------------------------------------------


def test_lstsq_gives_what_numpy_gives():
    for a, b in ((TALL, TALL[:, 0]), (TALL.T, TALL.T), (np.ones((4, 2)), TALL), (TALL, TALL[:, :0])):
        x, residuals, rank, s = fnad.vjp(lambda a, b=b: np.linalg.lstsq(a, b), a)[0]
        want = np.linalg.lstsq(a, b)
        for got, w in zip((x, residuals, rank, s), want, strict=True):
            assert np.shape(got) == np.shape(w)
            assert got.dtype == np.asarray(w).dtype
            np.testing.assert_allclose(got, w, atol=1e-12)


def test_least_squares_with_many_rows_needs_no_large_square():
    a, b = RNG.normal(size=(20_000, 3)), RNG.normal(size=20_000)
    slope = fnad.grad(lambda a: np.sum(np.linalg.lstsq(a, b)[0]))(a)  # a square of the rows would take 3 GB
    assert slope.shape == a.shape


def test_pinv_at_lower_rank():
    """The formula holds along directions that keep the rank."""
    left, right = RNG.normal(size=(4, 2)), RNG.normal(size=(2, 3))
    fnad.testing.check_grads(lambda a, b: np.linalg.pinv(a @ b, rcond=1e-10), (left, right), 1)
    same(fnad.vjp(np.linalg.pinv, np.zeros((0, 3)))[0], np.zeros((3, 0)))


def test_ranks_are_plain_integers():
    ranks = lambda x: [np.linalg.matrix_rank(x), np.linalg.matrix_rank(x[0]), np.linalg.matrix_rank(x, 9.0)]
    seen = []
    fnad.grad(lambda x: np.sum(x) + 0 * len(seen.extend(ranks(x)) or "1"))(TALL)
    same(seen, ranks(TALL))
    stack = np.stack([TALL, TALL * [1.0, 0.0, 1.0]])
    assert fnad.jit(np.linalg.matrix_rank)(stack).tolist() == [3, 2]
    assert fnad.vmap(np.linalg.matrix_rank)(stack).tolist() == [3, 2]


# -- eigenvalues ---------------------------------------------------------------------------------------------------


def test_eigenvalues_of_general_matrices():
    for x in (SQUARE, np.array([[1.0, -2.0], [1.0, 1.0]]), SQUARE + 1j * RNG.normal(size=(3, 3))):
        got, want = fnad.vjp(np.linalg.eig, x)[0], np.linalg.eig(x)
        same(got.eigenvalues, want.eigenvalues)
        same(got.eigenvectors, want.eigenvectors)
        t = RNG.normal(size=x.shape)
        (w, v), (tw, tv) = fnad.jvp(lambda x: tuple(np.linalg.eig(x)), (x,), (t.astype(x.dtype),))
        np.testing.assert_allclose(t @ v + x @ tv, v * tw + tv * w, atol=1e-10)  # the derivative of x v = v w
        np.testing.assert_allclose(np.sum(np.real(np.conj(v) * tv), axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(np.sum(tw), np.trace(t), atol=1e-12)
    powers = lambda x: np.sum(np.real(np.linalg.eigvals(x) ** 3))
    np.testing.assert_allclose(fnad.grad(powers)(SQUARE), 3 * (SQUARE @ SQUARE).T, atol=1e-9)
    np.testing.assert_allclose(fnad.jit(fnad.grad(powers))(SQUARE), 3 * (SQUARE @ SQUARE).T, atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError):
        fnad.vjp(np.linalg.eig, TALL)
