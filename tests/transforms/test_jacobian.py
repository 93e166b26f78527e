"""jacfwd, jacrev, hessian, hvp: shapes, trees, agreement of the modes."""

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, DTypeError, TreeError

rng = np.random.default_rng(0)


def model(p, x):
    return {"out": np.tanh(x @ p["w"]) * p["s"], "norm": np.sum(p["w"] ** 2, axis=0)}


PARAMS = {"w": rng.normal(size=(3, 2)), "s": np.float64(0.5)}
X = rng.normal(size=(4, 3))


def test_shapes_are_output_then_input():
    jac = fnad.jacrev(model)(PARAMS, X)
    assert jac["out"]["w"].shape == (4, 2, 3, 2)
    assert jac["out"]["s"].shape == (4, 2)
    assert jac["norm"]["w"].shape == (2, 3, 2)


@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1, 0), -1])
def test_forward_equals_reverse(argnums):
    forward, reverse = fnad.jacfwd(model, argnums)(PARAMS, X), fnad.jacrev(model, argnums)(PARAMS, X)
    for a, b in zip(fnad.tree.leaves(forward), fnad.tree.leaves(reverse), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    assert fnad.tree.structure(forward) == fnad.tree.structure(reverse)


def test_columns_are_jvps():
    f = lambda w: np.sin(w) @ w.T
    w = rng.normal(size=(2, 3))
    jac = fnad.jacrev(f)(w)
    for i in range(2):
        for j in range(3):
            e = np.zeros((2, 3))
            e[i, j] = 1
            np.testing.assert_allclose(jac[..., i, j], fnad.jvp(f, (w,), (e,))[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("transform", [fnad.jacfwd, fnad.jacrev])
def test_aux_and_control_flow_on_values(transform):
    def f(x):
        return (x * 2 if x[0] > 0 else x * 3), {"seen": x, "label": "kept"}

    jac, aux = transform(f, has_aux=True)(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(jac, 2 * np.eye(2))
    np.testing.assert_array_equal(aux["seen"], [1.0, 2.0])
    assert aux["label"] == "kept"


def test_empty_output_and_empty_input():
    assert fnad.jacrev(lambda x: x[:0])(np.ones(3)).shape == (0, 3)
    assert fnad.jacfwd(lambda x: x * 2)(np.ones((0,))).shape == (0, 0)


def test_hessian_of_a_tree():
    f = lambda p: np.sum(p["a"] ** 3) * p["b"]
    p = {"a": np.array([1.0, 2.0]), "b": np.array(3.0)}
    h = fnad.hessian(f)(p)
    np.testing.assert_allclose(h["a"]["a"], np.diag([18.0, 36.0]))
    np.testing.assert_allclose(h["a"]["b"], [3.0, 12.0])
    np.testing.assert_allclose(h["b"]["a"], [3.0, 12.0])
    assert h["b"]["b"] == 0.0


def test_hessian_is_symmetric_and_hvp_is_its_product():
    f = lambda x: np.sum(np.sin(x)[1:] * np.exp(x[:-1])) + np.prod(x)
    x, v = rng.normal(size=5), rng.normal(size=5)
    h = fnad.hessian(f)(x)
    np.testing.assert_allclose(h, h.T, atol=1e-12)
    np.testing.assert_allclose(fnad.hvp(f, (x,), (v,)), h @ v, rtol=1e-10)


def test_third_derivative():
    t = fnad.jacfwd(fnad.hessian(lambda x: np.sum(x**4)))(np.array([1.0, 2.0]))
    want = np.zeros((2, 2, 2))
    want[0, 0, 0], want[1, 1, 1] = 24.0, 48.0
    np.testing.assert_allclose(t, want)


def test_float32_stays():
    jac = fnad.jacrev(lambda x: np.tanh(x) * 2.0)(np.ones(3, np.float32))
    assert jac.dtype == np.float32
    assert fnad.hessian(lambda x: np.sum(x**3))(np.ones(3, np.float32)).dtype == np.float32


@pytest.mark.parametrize("transform", [fnad.jacfwd, fnad.jacrev])
def test_bad_input(transform):
    with pytest.raises(DTypeError, match="argument 0"):
        transform(lambda x: x * 2)(np.arange(3))
    with pytest.raises(ArgumentError, match="argnums"):
        transform(lambda x: x * 2, argnums=1)(np.ones(3))
    with pytest.raises(DTypeError, match="complex"):
        transform(lambda x: x * 2)(np.ones(3, complex))


def test_results_are_plain_writable_and_separate():
    jac = fnad.jacrev(lambda x, y: (x + y, x))(np.ones(2), np.ones(2))
    for leaf in fnad.tree.leaves(jac):
        assert type(leaf) is np.ndarray
        assert leaf.flags.writeable
        assert leaf.flags.c_contiguous


@pytest.mark.parametrize("transform", [fnad.jacfwd, fnad.jacrev])
def test_integer_output_is_an_error(transform):
    with pytest.raises(DTypeError, match="floating"):
        transform(lambda x: np.argmax(x))(np.ones(3))


def test_hvp_names_itself():
    with pytest.raises(TreeError, match=r"hvp: primals.*\n.*\n.*\(x,\)"):
        fnad.hvp(np.sum, np.ones(3), np.ones(3))
