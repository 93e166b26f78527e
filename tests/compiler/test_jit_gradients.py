"""Gradients that go wrong easily, eagerly and compiled, against values known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as special

import fnad
import fnad.scipy.special as fspecial

A34 = np.arange(12.0).reshape(3, 4) / 10
MASK = np.array([True, True, False, True])
SPD = np.array([[3.0, 0.5, 0.1], [0.5, 2.0, 0.3], [0.1, 0.3, 1.5]])
W42 = np.arange(8.0).reshape(4, 2) - 3
BATCH = np.arange(30.0).reshape(2, 1, 3, 5) / 20, np.arange(40.0).reshape(4, 5, 2) / 30 - 0.5
THETA = np.linspace(0.0, 2.0, 7)


def sigmoid(x):
    return np.exp(-np.logaddexp(0.0, -x))


def filter_gain(x):
    """The gain of a filter with one complex pole, on a grid of frequencies."""
    z = np.exp(1j * THETA)
    h = (z + 0.5) / (z - np.exp(1j * x - 0.2))
    return np.sum(np.real(h) ** 2 + np.imag(h) ** 2)


def filter_gain_slope(x):
    z, pole = np.exp(1j * THETA), np.exp(1j * x - 0.2)
    h = (z + 0.5) / (z - pole)
    return np.sum(2 * np.real(np.conj(h) * h / (z - pole) * 1j * pole))


def einsum_weights(a, b):
    return np.sum(np.einsum("...ij,...jk->...ik", a, b) * np.arange(12.0).reshape(2, 3, 2))


def stable_xlogx(x):
    return np.sum(np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0))


def variance_slope(x):
    kept = x[MASK]
    return np.where(MASK, 2 * (x - kept.mean()) / kept.size, 0.0)


def tree_loss(p):
    (a, b), d = p
    return np.sum(a * b * b) + d["s"] * np.sum(np.exp(d["z"]))


X4 = np.array([0.5, -1.0, 2.0, 3.0])
A234, B42 = np.arange(24.0).reshape(2, 3, 4) / 10, np.arange(8.0).reshape(4, 2) / 10
TA, TB = np.arange(24.0).reshape(2, 3, 4) / 10, np.arange(18.0).reshape(3, 3, 2) / 10
TREE = ((np.array([1.0, 2.0]), np.array([-1.0, 3.0])), {"s": np.array(2.0), "z": np.array([0.0, 1.0])})
L = np.array([-np.inf, 1.0, 2.0])

# name: (function, arguments, argnums, gradient)
GRADIENTS = {
    # sums over broadcast axes, contractions
    "einsum of a length 1": (
        lambda x, y: np.einsum("i,i->", x, y),
        (np.array([1.0, 4.0, 2.0]), np.array([5.0])),
        (0, 1),
        (np.full(3, 5.0), np.array([7.0])),
    ),
    "einsum of batch axes one operand lacks": (
        einsum_weights,
        (A234, B42),
        (0, 1),
        (np.arange(12.0).reshape(2, 3, 2) @ B42.T, np.einsum("nij,nik->jk", A234, np.arange(12.0).reshape(2, 3, 2))),
    ),
    "tensordot over named axes": (
        lambda a, b: np.sum(np.tensordot(a, b, axes=([1], [0])) ** 2),
        (TA, TB),
        (0, 1),
        (
            np.moveaxis(np.tensordot(2 * np.tensordot(TA, TB, axes=([1], [0])), TB, axes=([2, 3], [1, 2])), 2, 1),
            np.tensordot(TA, 2 * np.tensordot(TA, TB, axes=([1], [0])), axes=([0, 2], [0, 1])),
        ),
    ),
    "matmul of broadcast batches": (
        lambda a, b: np.sum((a @ b) ** 2),
        BATCH,
        (0, 1),
        (
            np.sum(2 * (BATCH[0] @ BATCH[1]) @ np.swapaxes(BATCH[1], -1, -2), axis=1, keepdims=True),
            np.sum(np.swapaxes(BATCH[0], -1, -2) @ (2 * (BATCH[0] @ BATCH[1])), axis=0),
        ),
    ),
    "a scalar times an array": (
        lambda s, x: np.sum((s * x) ** 3),
        (np.array(2.0), np.array([1.0, -1.0, 2.0])),
        (0, 1),
        (12.0 * 8, 24.0 * np.array([1.0, 1.0, 4.0])),
    ),
    # reductions
    "sum where": (lambda x: np.sum(x**3, where=MASK, initial=1.0), (X4,), 0, np.where(MASK, 3 * X4**2, 0.0)),
    "var where": (lambda x: np.var(x, where=MASK), (X4,), 0, variance_slope(X4)),
    "prod with one zero": (lambda x: np.prod(x), (np.array([2.0, 0.0, 3.0]),), 0, np.array([0.0, 6.0, 0.0])),
    "prod with two zeros": (lambda x: np.prod(x), (np.array([0.0, 5.0, 0.0]),), 0, np.zeros(3)),
    "max with a tie": (lambda x: np.max(x), (np.array([2.0, 2.0, 1.0, 2.0]),), 0, np.array([1.0, 1.0, 0.0, 1.0]) / 3),
    "max along an axis with ties": (
        lambda x: np.sum(np.max(x, axis=0) * np.array([2.0, 4.0])),
        (np.array([[1.0, 3.0], [1.0, 0.0]]),),
        0,
        np.array([[1.0, 4.0], [1.0, 0.0]]),
    ),
    "max in float32": (
        lambda x: np.sum(np.max(x, axis=1)),
        (np.array([[1.0, 1.0], [7.0, 2.0]], np.float32),),
        0,
        np.array([[0.5, 0.5], [1.0, 0.0]], np.float32),
    ),
    "std of a constant": (lambda x: np.std(x), (np.full(3, 2.0),), 0, np.zeros(3)),
    # linear algebra
    "det of a zero": (lambda a: np.linalg.det(a), (np.zeros((1, 1)),), 0, np.ones((1, 1))),
    "log det through cholesky": (lambda a: 2 * np.sum(np.log(np.diag(np.linalg.cholesky(a)))), (SPD,), 0, np.linalg.inv(SPD)),
    "sum of equal eigenvalues": (lambda a: np.sum(np.linalg.eigvalsh(a)), (2 * np.eye(3),), 0, np.eye(3)),
    "norm of zero": (lambda x: np.linalg.norm(x), (np.zeros(4),), 0, np.zeros(4)),
    "a function of the norm of zero": (lambda x: np.exp(-(np.linalg.norm(x) ** 2)), (np.zeros((3, 1)),), 0, np.zeros((3, 1))),
    # tails, limits, branches
    "complex inside": (filter_gain, (0.7,), 0, filter_gain_slope(0.7)),
    "arctan2 of small": (lambda y, x: np.arctan2(y, x), (1e-12, 2e-12), (0, 1), (2e-12 / 5e-24, -1e-12 / 5e-24)),
    "arctan2 whose squares underflow": (lambda y, x: np.arctan2(y, x), (1e-200, 1e-200), (0, 1), (5e199, -5e199)),
    "softplus": (
        lambda x: np.sum(np.logaddexp(x, np.zeros(4)) * np.arange(4.0)),
        (np.array([-900.0, -30.0, 1.0, 900.0]),),
        0,
        np.array([0.0, 1.0, 2.0, 3.0]) * sigmoid(np.array([-900.0, -30.0, 1.0, 900.0])),
    ),
    "expit": (
        lambda x: np.sum(special.expit(x)),
        (np.array([-900.0, -90.0, 0.5, 900.0]),),
        0,
        np.array([0.0, np.exp(-90.0), sigmoid(0.5) * sigmoid(-0.5), 0.0]),
    ),
    "logit of expit": (
        lambda x: np.sum(special.logit(special.expit(x)) ** 2),
        (np.array([-1.0, 0.5, 3.0]),),
        0,
        2 * np.array([-1.0, 0.5, 3.0]),
    ),
    "xlogy": (lambda p: special.xlogy(20.0, p) + special.xlogy(30.0, 1 - p), (0.3,), 0, 20 / 0.3 - 30 / 0.7),
    "powers of both signs": (
        lambda x: np.sum(np.where(x < 0, np.abs(x) ** 2.5, 3 * np.abs(x) ** 0.5)),
        (np.array([-4.0, 1.0, 9.0]),),
        0,
        np.array([-2.5 * 8, 1.5, 0.5]),
    ),
    "where over a root": (lambda x: np.where(x >= 0, 2 * x, np.sqrt(-x)), (np.array(1.0),), 0, 2.0),
    "x times its root at 0": (lambda x: x * x**0.5, (np.array(0.0),), 0, 0.0),
    "logsumexp of -inf": (lambda x: fspecial.logsumexp(np.stack([-np.inf + x, -np.inf - x])), (np.array(2.0),), 0, 0.0),
    "logsumexp next to -inf": (lambda x: fspecial.logsumexp(x), (L,), 0, np.array([0.0, sigmoid(-1.0), sigmoid(1.0)])),
    "logaddexp of -inf": (lambda x, y: np.logaddexp(x, y), (np.array(-np.inf), np.array(1.0)), (0, 1), (0.0, 1.0)),
    "x log x at 0": (stable_xlogx, (np.array([0.0, 2.0, 3.0]),), 0, np.array([0.0, 1 + np.log(2.0), 1 + np.log(3.0)])),
    "a root under a maximum": (lambda v: np.maximum(np.sqrt(v[0] ** 2 + v[1] ** 2), 1e-9), (np.zeros(2),), 0, np.zeros(2)),
    # pytrees, arguments, indices
    "None among the leaves": (
        lambda p: p["w"] ** 3 + 2 * p["b"][1],
        ({"w": np.array(2.0), "b": [None, np.array(1.0)], "n": None},),
        0,
        {"w": 12.0, "b": [None, 2.0], "n": None},
    ),
    "nested containers": (
        tree_loss,
        (TREE,),
        0,
        ((np.array([1.0, 9.0]), np.array([-2.0, 12.0])), {"s": 1 + np.e, "z": np.array([2.0, 2 * np.e])}),
    ),
    "a leaf that is not used": (
        lambda p: np.sum(p["u"] * 3),
        ({"u": np.ones(2), "v": np.ones((1, 2))},),
        0,
        {"u": np.full(2, 3.0), "v": np.zeros((1, 2))},
    ),
    "several arguments, from the end": (lambda x, y, z: x * y**2 + z * y, (2.0, 3.0, 4.0), (0, -1), (9.0, 3.0)),
    "repeated indices": (lambda x, i: np.sum(x[i] ** 2), (X4, np.array([3, 0, 3])), 0, np.array([1.0, 0.0, 0.0, 12.0])),
    "an empty slice": (lambda x: np.sum(x[1:1]) + np.sum(x[1:]) * 2, (X4,), 0, np.array([0.0, 2.0, 2.0, 2.0])),
}


def close(got, want):
    assert fnad.tree.structure(got) == fnad.tree.structure(want)
    for g, w in zip(fnad.tree.leaves(got), fnad.tree.leaves(want), strict=True):
        assert np.shape(g) == np.shape(w)
        assert np.asarray(g).dtype == np.asarray(w).dtype
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-12)


WAYS = {
    "eager": lambda f, argnums: fnad.grad(f, argnums),
    "jit of grad": lambda f, argnums: fnad.jit(fnad.grad(f, argnums)),
    "grad of jit": lambda f, argnums: fnad.grad(fnad.jit(f), argnums),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", GRADIENTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, of the branches that are not taken
def test_gradient(case, way):
    f, args, argnums, want = GRADIENTS[case]
    close(WAYS[way](f, argnums)(*args), want)


@pytest.mark.parametrize("wrap", [lambda f: f, fnad.jit], ids=["eager", "jit"])
class TestOtherTransforms:
    def test_vjp_with_one_cotangent(self, wrap):
        f = lambda x, g: fnad.vjp(lambda x: x - np.mean(x), x)[1](g)[0]
        close(wrap(f)(X4, np.array([0.0, 1.0, 0.0, 0.0])), np.array([-0.25, 0.75, -0.25, -0.25]))

    def test_jacobian_of_a_linear_map(self, wrap):
        close(wrap(fnad.jacrev(lambda x: np.dot(A34, x)))(X4), A34)
        close(wrap(fnad.jacfwd(lambda x: np.dot(A34, x)))(X4), A34)
        close(wrap(fnad.jacrev(lambda x: A34.dot(np.ones(4)) * x))(X4[:3]), np.diag(A34.sum(1)))

    @pytest.mark.parametrize(
        ("f", "at", "order", "want"),
        [(lambda x: np.exp(-(x**2)), 0.0, 4, 12.0), (lambda x: np.exp(-x * x), 0.0, 4, 12.0), (lambda x: x**3, 0.0, 3, 6.0),
         (lambda x: x**3, 0.0, 2, 0.0), (lambda x: x**2.0, 0.0, 3, 0.0), (lambda x: np.sin(x), 1.0, 4, np.sin(1.0))],
    )  # fmt: skip
    def test_higher_derivatives(self, wrap, f, at, order, want):
        for _ in range(order):
            f = fnad.grad(f)
        close(wrap(f)(np.array(at)), want)

    def test_per_example_gradients_of_an_index(self, wrap):
        w, rows = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2])
        per_example = fnad.vmap(fnad.grad(lambda w, i: w[i] ** 3), (None, 0))
        close(wrap(per_example)(w, rows), np.array([[0.0, 0, 27], [3, 0, 0], [0, 0, 27]]))

    def test_hessian(self, wrap):
        hessian = wrap(fnad.hessian(lambda x: np.sum(x[:-1] * x[1:] ** 2)))(np.array([1.0, 2.0, 3.0]))
        close(hessian, np.array([[0.0, 4, 0], [4, 2, 6], [0, 6, 4]]))
