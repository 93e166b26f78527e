"""fnad.scipy.linalg: values as SciPy's, derivatives in both modes, vmap, jit, structures and errors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg as theirs

import fnad
import fnad.scipy.linalg as ours
from fnad.errors import ArgumentError, ShapeError, UnsupportedError

RNG = np.random.default_rng(8)
A = RNG.normal(size=(3, 3)) + 3.0 * np.eye(3)
SPD = A @ A.T
B = RNG.normal(size=(3, 2))
V = RNG.normal(size=3)

CASES = {
    "solve_triangular": lambda m, a: m.solve_triangular(a, V),
    "solve_triangular lower": lambda m, a: m.solve_triangular(a, B, lower=True),
    "solve_triangular transposed": lambda m, a: m.solve_triangular(a, B, trans=1) + m.solve_triangular(a, B, "C", True),
    "solve_triangular unit": lambda m, a: m.solve_triangular(a, V, unit_diagonal=True, lower=True),
    "cholesky": lambda m, a: m.cholesky(a @ a.T) * m.cholesky(a @ a.T, lower=True).T,
    "cho": lambda m, a: m.cho_solve(m.cho_factor(a @ a.T), V) + m.cho_solve(m.cho_factor(a @ a.T, lower=True), V),
    "cho given": lambda m, a: m.cho_solve((a, False), B) + m.cho_solve((a, True), B),
    "lu_factor": lambda m, a: m.lu_factor(a[::-1])[0],
    "lu_solve": lambda m, a: m.lu_solve(m.lu_factor(a[::-1]), V) + m.lu_solve(m.lu_factor(a), V, trans=1),
    "lu_solve columns": lambda m, a: m.lu_solve(m.lu_factor(a[[1, 2, 0]]), B, 2),
    "lu": lambda m, a: m.lu(a[::-1])[1] @ m.lu(a[::-1])[2] ** 2,
    "lu permuted": lambda m, a: m.lu(a[[1, 2, 0]], permute_l=True)[0],
    "solve": lambda m, a: m.solve(a, V) + m.solve(a, V, transposed=True),
    "solve pos": lambda m, a: m.solve(a @ a.T, B, assume_a="pos") + m.solve(a @ a.T, B, assume_a="pos", lower=True),
    "solve sym": lambda m, a: m.solve(a + a.T, V, assume_a="sym") + m.solve(a + a.T, V, assume_a="her", lower=True),
    "solve triangles": lambda m, a: m.solve(a, V, assume_a="upper triangular") + m.solve(a, V, assume_a="lower triangular"),
    "solve triangle transposed": lambda m, a: m.solve(a, V, assume_a="upper triangular", transposed=True),
    "solve diagonal": lambda m, a: m.solve(a, B, assume_a="diagonal"),
    "solve tridiagonal": lambda m, a: m.solve(a, V, assume_a="tridiagonal"),
    "solve banded": lambda m, a: m.solve(a, V, assume_a="banded"),
    "inv": lambda m, a: m.inv(a) + m.inv(a @ a.T, assume_a="pos"),
    "det": lambda m, a: m.det(a),
    "svdvals": lambda m, a: m.svdvals(a[:2]),
    "eigh": lambda m, a: np.abs(m.eigh(a + a.T, lower=False)[1]) * m.eigh(a + a.T, eigvals_only=True),
    "expm": lambda m, a: m.expm(0.3 * a),
    "block_diag": lambda m, a: m.block_diag(a, a[0], a[1, 1]),
    "toeplitz": lambda m, a: m.toeplitz(a[0]) * m.toeplitz(a[1], a[2]),
}


@pytest.mark.parametrize("name", CASES)
def test_as_scipy(name):
    def f(a):
        return CASES[name](ours, a)

    want = np.asarray(CASES[name](theirs, A))
    for got in (f(A), fnad.vjp(f, A)[0]):
        assert np.asarray(got).dtype == want.dtype
        assert np.shape(got) == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    fnad.testing.check_grads(f, (A,), 2)
    fnad.testing.check_vmap(f, (np.stack([A, 1.1 * A]),))
    single = A.astype(np.float32)
    assert fnad.vjp(f, single)[0].dtype == np.float32 or name in SOLVED_BY_A_WIDER_B
    assert fnad.grad(lambda a: np.sum(f(a)))(single).dtype == np.float32


SOLVED_BY_A_WIDER_B = [n for n in CASES if n.startswith(("solve", "cho", "lu_solve"))]


def test_compiled():
    """Values of all at once, and the gradient of some."""
    every = [lambda a, f=f: f(ours, a) for f in CASES.values()]
    some = [every[list(CASES).index(name)] for name in ("solve_triangular lower", "cho", "lu_solve", "expm")]
    loss = fnad.grad(lambda a: sum(np.sum(np.sin(f(a))) for f in some))
    got, slope = fnad.jit(lambda a: ([f(a) for f in every], loss(a)))(A)
    for g, f in zip(got, every, strict=True):
        np.testing.assert_allclose(g, f(A), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(slope, loss(A), rtol=1e-9)


def test_only_one_triangle_is_read():
    """Garbage in the other one changes nothing, and the gradient of a symmetric matrix is symmetric."""
    upper = np.triu(SPD) + np.tril(np.full((3, 3), 7.0), -1)
    for solve in (
        lambda a: ours.solve(a, V, assume_a="sym"),
        lambda a: ours.solve(a, V, assume_a="pos"),
        lambda a: ours.cho_solve(ours.cho_factor(a), V),
        lambda a: ours.eigh(a, lower=False, eigvals_only=True),
    ):
        np.testing.assert_allclose(solve(upper), solve(SPD), rtol=1e-10)
        np.testing.assert_allclose(solve(upper.T) if solve is None else solve(SPD), solve(SPD))
        slope = fnad.grad(lambda a, f=solve: np.sum(f(a) ** 2))(SPD)
        np.testing.assert_allclose(slope, slope.T, rtol=1e-10)
        direction = RNG.normal(size=(3, 3))
        direction += direction.T
        moved = fnad.jvp(solve, (SPD,), (direction,))[1]
        np.testing.assert_allclose(2 * np.sum(moved * solve(SPD)), np.sum(slope * direction), rtol=1e-9)
    hermitian = SPD + 1j * (A - A.T)
    low = np.tril(hermitian) + np.triu(np.full((3, 3), 3.0 - 2.0j), 1)
    np.testing.assert_allclose(ours.solve(low, V, assume_a="her", lower=True), theirs.solve(low, V, assume_a="her", lower=True), rtol=1e-10)
    assert not np.any(np.triu(fnad.grad(lambda a: np.sum(ours.solve_triangular(a, V, lower=True)))(A), 1))


def test_stacks():
    many = np.stack([A, 2 * A, A[::-1]])
    right = RNG.normal(size=(3, 3, 2))
    pairs = [(m, r) for m, r in zip(many, right, strict=True)]
    for f in (ours.solve, ours.solve_triangular, lambda a, b: ours.lu_solve(ours.lu_factor(a), b)):
        np.testing.assert_allclose(f(many, right), np.stack([f(m, r) for m, r in pairs]), rtol=1e-10)
        np.testing.assert_allclose(f(many, B), np.stack([f(m, B) for m in many]), rtol=1e-10)
        np.testing.assert_allclose(f(A, right), np.stack([f(A, r) for r in right]), rtol=1e-10)
    p, left, right = ours.lu(many)
    np.testing.assert_allclose(p @ left @ right, many, atol=1e-12)
    indices, left, right = ours.lu(A[::-1], p_indices=True)
    np.testing.assert_allclose(left[indices] @ right, A[::-1], atol=1e-12)
    np.testing.assert_array_equal(indices, theirs.lu(A[::-1], p_indices=True)[0])


def test_exponential_of_large_and_special_matrices():
    generator = np.array([[0.0, -1.0], [1.0, 0.0]])
    np.testing.assert_allclose(fnad.grad(lambda t: ours.expm(t * generator)[0, 1])(20.0), -np.cos(20.0), rtol=1e-11)
    _, slope = fnad.jvp(ours.expm, (50.0 * A,), (np.eye(3),))
    np.testing.assert_allclose(slope, theirs.expm(50.0 * A), rtol=1e-9)
    np.testing.assert_allclose(fnad.jvp(ours.expm, (A,), (B @ B.T,))[1], theirs.expm_frechet(A, B @ B.T, compute_expm=False), rtol=1e-10)
    third = fnad.grad(fnad.grad(fnad.grad(lambda t: np.sum(ours.expm(t * A)))))(0.1)
    np.testing.assert_allclose(third, np.sum(A @ A @ A @ theirs.expm(0.1 * A)), rtol=1e-9)


def test_mistakes():
    with pytest.raises(ShapeError):
        ours.solve(A, np.ones(2))
    with pytest.raises(ShapeError):
        ours.toeplitz(A)
    with pytest.raises(ShapeError):
        ours.block_diag(A[None])
    with pytest.raises(ArgumentError):
        ours.solve(A, V, assume_a="round")
    with pytest.raises(ArgumentError):
        ours.solve_triangular(A, V, trans="X")
    with pytest.raises(ValueError, match="infs or NaNs"):
        ours.solve(A * np.nan, V)
    assert np.all(np.isnan(ours.cho_solve((A * np.nan, True), V, check_finite=False)))
    with pytest.raises(np.linalg.LinAlgError):
        ours.solve_triangular(np.zeros((2, 2)), np.ones(2))
    with pytest.raises(np.linalg.LinAlgError):
        ours.expm(np.ones((2, 3)))
    with pytest.raises(UnsupportedError):
        ours.eigh(SPD, SPD)
    with pytest.raises(UnsupportedError):
        ours.cholesky(SPD + 0j)
    with pytest.raises(NotImplementedError):
        ours.solve(A + 0j, V, transposed=True)
    with pytest.warns(theirs.LinAlgWarning):
        ours.lu_factor(np.ones((2, 2)))
    with pytest.raises(AttributeError):
        ours.no_such_function  # noqa: B018
    np.testing.assert_array_equal(ours.hadamard(2), theirs.hadamard(2))  # what is not ours is SciPy's
    np.testing.assert_array_equal(ours.block_diag(), theirs.block_diag())
    assert ours.solve(np.zeros((0, 0)), np.zeros((0, 2))).shape == (0, 2)
    np.testing.assert_allclose(ours.solve([[2, 0], [0, 4]], [1, 2]), [0.5, 0.5])
