"""What everyone does first, in a few seconds: if this fails, nothing else is worth a look."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import fnad

X = np.array([[0.5, -1.0], [2.0, 0.3], [-0.7, 1.1]])
Y = np.array([1.0, -0.5, 0.2])


class Params(NamedTuple):
    w: np.ndarray
    b: float


def loss(params, x, y):
    h = np.tanh(x @ params["hidden"].w + params["hidden"].b)
    return np.mean((h @ params["out"] - y) ** 2)


PARAMS = {"hidden": Params(np.linspace(-1.0, 1.0, 8).reshape(2, 4), 0.1), "out": np.array([1.0, -1.0, 0.5, 0.3])}


def test_gradient_of_a_network():
    fnad.testing.check_grads(lambda p: loss(p, X, Y), (PARAMS,))
    value, grads = fnad.value_and_grad(loss)(PARAMS, X, Y)
    assert value == pytest.approx(loss(PARAMS, X, Y))
    assert isinstance(grads["hidden"], Params)
    assert grads["hidden"].w.shape == (2, 4)


def test_training_lowers_the_loss():
    params, first = PARAMS, loss(PARAMS, X, Y)
    for _ in range(200):
        params = fnad.tree.map(lambda p, g: p - 0.1 * g, params, fnad.grad(loss)(params, X, Y))
    assert loss(params, X, Y) < 0.01 * first


def test_training_with_the_optimizer():
    opt = fnad.optim.sgd(lr=0.1, momentum=0.9)
    params = fnad.tree.map(np.asarray, PARAMS)
    state, first = opt.init(params), loss(PARAMS, X, Y)
    for _ in range(100):
        updates, state = opt.update(fnad.grad(loss)(params, X, Y), state, params)
        params = fnad.optim.apply_updates(params, updates)
    assert loss(params, X, Y) < 0.05 * first


def test_every_transform_once():
    f = lambda x: np.sin(x) * np.sum(x)
    x = np.array([0.3, 0.7])
    jacobian = np.diag(np.cos(x) * np.sum(x)) + np.sin(x)[:, None]
    np.testing.assert_allclose(fnad.jacfwd(f)(x), jacobian)
    np.testing.assert_allclose(fnad.jacrev(f)(x), jacobian)
    np.testing.assert_allclose(fnad.vjp(f, x)[1](np.ones(2))[0], jacobian.sum(0))
    np.testing.assert_allclose(fnad.jvp(f, (x,), (np.ones(2),))[1], jacobian.sum(1))
    np.testing.assert_allclose(fnad.linearize(f, x)[1](np.ones(2)), jacobian.sum(1))
    np.testing.assert_allclose(fnad.vmap(f)(np.stack([x, 2 * x]))[1], f(2 * x))
    np.testing.assert_allclose(fnad.hessian(lambda x: np.sum(x**3))(x), np.diag(6 * x))
    np.testing.assert_allclose(fnad.hvp(lambda x: np.sum(x**3), (x,), (x,)), 6 * x * x)
    np.testing.assert_allclose(fnad.grad(lambda x: np.sum(fnad.checkpoint(f)(x)))(x), jacobian.sum(0))
    np.testing.assert_allclose(fnad.grad(lambda x: np.sum(x * fnad.stop_gradient(x)))(x), x)
    assert "sin" in str(fnad.make_graph(f)(x))
    assert fnad.eval_shape(f, x).shape == (2,)


def test_per_example_gradients():
    rows = fnad.vmap(fnad.grad(loss), in_axes=(None, 0, 0))(PARAMS, X, Y)
    assert rows["out"].shape == (3, 4)
    np.testing.assert_allclose(np.mean(rows["out"], axis=0), fnad.grad(loss)(PARAMS, X, Y)["out"])


def test_mistakes_get_answers():
    with pytest.raises(fnad.errors.ShapeError, match="jacrev"):
        fnad.grad(np.tanh)(np.ones(3))
    with pytest.raises(fnad.errors.DTypeError, match=r"\['n'\]"):
        fnad.grad(lambda p: p["w"])({"w": 1.0, "n": 3})
    with pytest.raises(fnad.errors.TracerConversionError, match="stop_gradient"):
        fnad.grad(lambda x: float(x))(1.0)
