"""checkpoint: same numbers, less memory."""

import tracemalloc

import numpy as np
import pytest

import fnad
from fnad.errors import ClosureError

XS = np.array([0.3, -1.2, 2.0])


def block(p, x):
    return {"h": np.tanh(x * p["w"]) + np.sin(x), "kept": p["w"]}


def loss(wrap):
    f = wrap(block)
    return lambda p, x: np.sum(f(p, f(p, x)["h"])["h"] ** 2)


@pytest.mark.parametrize("order", [1, 2])
def test_same_derivatives(order):
    p = {"w": np.array([0.5, 1.5, -0.7])}
    plain, ours = loss(lambda f: f), loss(fnad.checkpoint)
    if order == 1:
        a, b = fnad.grad(plain, (0, 1))(p, XS), fnad.grad(ours, (0, 1))(p, XS)
    else:
        a, b = fnad.hessian(plain, 1)(p, XS), fnad.hessian(ours, 1)(p, XS)
    for u, v in zip(fnad.tree.leaves(a), fnad.tree.leaves(b), strict=True):
        np.testing.assert_allclose(u, v, rtol=1e-12)
    np.testing.assert_allclose(fnad.jvp(lambda x: ours(p, x), (XS,), (XS,)), fnad.jvp(lambda x: plain(p, x), (XS,), (XS,)))


def test_vmap_in_both_orders():
    f = fnad.checkpoint(lambda x, n: np.sin(x) * n)
    np.testing.assert_allclose(fnad.vmap(fnad.grad(f), (0, None))(XS, 2), 2 * np.cos(XS))
    np.testing.assert_allclose(fnad.grad(lambda x: np.sum(fnad.vmap(f, (0, None))(x, 2)))(XS), 2 * np.cos(XS))


def test_static_leaves_and_integers_pass_through():
    f = fnad.checkpoint(lambda x, i, how: x[i] * (2.0 if how == "double" else 1.0))
    np.testing.assert_array_equal(fnad.grad(f)(XS, 1, "double"), [0.0, 2.0, 0.0])
    np.testing.assert_array_equal(fnad.grad(f)(XS, np.array(2), how="single"), [0.0, 0.0, 1.0])


def test_peak_memory_of_a_deep_chain():
    def chain(x):
        for _ in range(40):
            x = np.sin(x) + 0.5 * x
        return x

    def peak(f):
        x = np.linspace(0, 1, 50_000)
        tracemalloc.start()
        fnad.grad(lambda x: np.sum(f(f(f(f(x))))))(x)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(fnad.checkpoint(chain)) < 0.5 * peak(chain)


def test_recomputes_once_per_pullback():
    calls = []

    def f(x):
        calls.append(1)
        return np.sin(x)

    fnad.grad(fnad.checkpoint(f))(1.0)
    assert len(calls) == 2


def test_closure_over_traced_value_is_an_error():
    with pytest.raises(ClosureError, match="pass that value as an argument"):
        fnad.grad(lambda x: fnad.checkpoint(lambda y: x * y)(x))(1.0)
