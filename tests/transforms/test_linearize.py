"""linearize: the derivative at a point, applied many times without running the function again."""

import numpy as np
import pytest

import fnad
from fnad.errors import DTypeError, ShapeError, TreeError

rng = np.random.default_rng(1)


def test_equals_jvp_and_runs_once():
    calls = []

    def f(p):
        calls.append(1)
        y = np.tanh(p["a"] @ p["b"])
        if np.sum(y) > 0:  # control flow on values
            y = y * 2
        return {"y": y, "constant": np.ones(2), "n": 3.0}

    p = {"a": rng.normal(size=(2, 3)), "b": rng.normal(size=3)}
    y, linear = fnad.linearize(f, p)
    for _ in range(3):
        t = {"a": rng.normal(size=(2, 3)), "b": rng.normal(size=3)}
        got = linear(t)
        calls_before = len(calls)
        value, want = fnad.jvp(f, (p,), (t,))
        assert len(calls) == calls_before + 1
        np.testing.assert_allclose(got["y"], want["y"], rtol=1e-12)
        np.testing.assert_array_equal(got["constant"], np.zeros(2))
        np.testing.assert_array_equal(value["y"], y["y"])
    assert len(calls) == 4


def test_is_linear_and_transposable():
    f = lambda x: np.sin(x) * np.sum(x)
    x, u, v = rng.normal(size=(3, 4))
    _, linear = fnad.linearize(f, x)
    np.testing.assert_allclose(linear(2 * u + v), 2 * linear(u) + linear(v), rtol=1e-12)
    np.testing.assert_allclose(fnad.vjp(linear, u)[1](v)[0], fnad.vjp(f, x)[1](v)[0], rtol=1e-12)
    np.testing.assert_allclose(fnad.vmap(linear)(np.eye(4)).T, fnad.jacrev(f)(x), rtol=1e-12)


def test_later_changes_of_the_point_do_not_matter():
    x = np.array([1.0, 2.0])
    _, linear = fnad.linearize(np.square, x)
    x[:] = 100.0
    np.testing.assert_array_equal(linear(np.ones(2)), [2.0, 4.0])


def test_inside_grad():
    def f(x):
        _, linear = fnad.linearize(lambda y: y**3 * x, x)
        return linear(1.0)

    np.testing.assert_allclose(fnad.grad(f)(2.0), 9 * 4.0)  # d/dx of 3 x^2 * x


def test_mistakes_are_named():
    _, linear = fnad.linearize(np.square, np.ones(2))
    with pytest.raises(ShapeError, match="tangent"):
        linear(np.ones(3))
    with pytest.raises(TreeError, match="tangents"):
        linear({"a": np.ones(2)})
    with pytest.raises(DTypeError, match="argument 0"):
        fnad.linearize(np.square, np.arange(3))


def test_aux():
    y, linear, aux = fnad.linearize(lambda x: (x**2, {"x": x, "note": "kept"}), np.array([1.0, 3.0]), has_aux=True)
    np.testing.assert_array_equal(y, [1.0, 9.0])
    np.testing.assert_array_equal(linear(np.ones(2)), [2.0, 6.0])
    np.testing.assert_array_equal(aux["x"], [1.0, 3.0])
    assert aux["note"] == "kept"


def test_branches_not_taken_warn_of_nothing():
    _, linear = fnad.linearize(lambda d: np.where(d > 0, 1 / np.where(d > 0, d, 1.0), 0.0) + np.sqrt(d), np.array([4.0, 0.0]))
    assert linear(np.array([1.0, 0.0]))[1] == 0
