"""Transforms of transforms. Wrappers that leave a function as it is, and operators that differentiate it, in any order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.core.graph import evaluate
from fnad.testing import assert_trees_close, check_grads, check_vmap

RNG = np.random.default_rng(3)
A = RNG.standard_normal((3, 3))
X = RNG.standard_normal(3)


def f(x):
    """R^3 -> R^3, with all derivatives nonzero."""
    return np.tanh(A @ x) * x[::-1] + np.exp(-(x**2)) * np.sum(x)


def custom_jvp(g):
    wrapped = fnad.custom_jvp(g)
    wrapped.defjvp(lambda primals, tangents: fnad.jvp(g, primals, tangents))
    return wrapped


def custom_vjp(g):
    wrapped = fnad.custom_vjp(g)
    wrapped.defvjp(lambda x: (g(x), x), lambda x, ct: fnad.vjp(g, x)[1](ct))
    return wrapped


def row_of_vmap(g):
    return lambda x: fnad.vmap(g)(np.stack([x, 2.0 * x, x - 1.0]))[0]


def last_axis_of_vmap(g):
    return lambda x: fnad.vmap(g, in_axes=1, out_axes=-1)(np.stack([x - 1.0, x], axis=1))[..., 1]


def unmapped(g):
    return lambda x: fnad.vmap(lambda y, s: g(y) * s, in_axes=(None, 0))(x, np.ones(2))[1]


SAME = {
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
    "checkpoint": fnad.checkpoint,
    "vmap row": row_of_vmap,
    "vmap column": last_axis_of_vmap,
    "vmap unmapped": unmapped,
    "jvp value": lambda g: lambda x: fnad.jvp(g, (x,), (x,))[0],
    "vjp value": lambda g: lambda x: fnad.vjp(g, x)[0],
    "linearize value": lambda g: lambda x: fnad.linearize(g, x)[0],
    "recorded": lambda g: lambda x: evaluate(fnad.make_graph(g)(x), [x])[0],
}


def by_vmapped_pullback(g):
    def jacobian(x):
        y, pullback = fnad.vjp(g, x)
        rows = fnad.vmap(lambda ct: pullback(ct)[0])(np.reshape(np.eye(y.size), (y.size, *y.shape)))
        return np.reshape(rows, (*y.shape, 3))

    return jacobian


def by_vmapped_push(g):
    return lambda x: np.moveaxis(fnad.vmap(lambda t: fnad.jvp(g, (x,), (t,))[1])(np.eye(3)), 0, -1)


def by_linearize(g):
    def jacobian(x):
        _, push = fnad.linearize(g, x)
        return np.stack([push(e) for e in np.eye(3)], axis=-1)

    return jacobian


def by_rows(g):
    def jacobian(x):
        y = g(x)
        rows = [fnad.grad(lambda z, i=i: np.ravel(g(z))[i])(x) for i in range(y.size)]
        return np.reshape(np.stack(rows), (*y.shape, 3))

    return jacobian


DERIVATIVE = {
    "jacrev": fnad.jacrev,
    "jacfwd": fnad.jacfwd,
    "vmapped pullback": by_vmapped_pullback,
    "vmapped push": by_vmapped_push,
    "linearize": by_linearize,
    "rows of grad": by_rows,
}
ALL = {**SAME, **DERIVATIVE}


def reference(order):
    """Derivatives by central differences of the one below; checked against each other in the first test."""
    g = f
    for _ in range(order):
        g = fnad.jacrev(g)
    return g(X)


REFERENCE = [reference(n) for n in range(4)]


def test_reference_is_right():
    h = 1e-6
    for order in range(3):
        g = f
        for _ in range(order):
            g = fnad.jacfwd(g)
        differences = np.stack([(g(X + h * e) - g(X - h * e)) / (2 * h) for e in np.eye(3)], axis=-1)
        np.testing.assert_allclose(REFERENCE[order + 1], differences, rtol=1e-6, atol=1e-6)


def apply(names):
    """The operators applied to f, the first one innermost; the result at X against the derivative of the right order."""
    g = f
    for name in names:
        g = ALL[name](g)
    order = sum(name in DERIVATIVE for name in names)
    assert_trees_close(np.asarray(g(X)), REFERENCE[order], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("names", list(itertools.product(ALL, repeat=2)), ids=" then ".join)
def test_every_pair(names):
    apply(names)


@pytest.mark.parametrize("names", [(a, s, b) for a in DERIVATIVE for s in SAME for b in ("jacrev", "jacfwd")], ids=" then ".join)
def test_wrapper_between_two_derivatives(names):
    apply(names)


@settings(max_examples=120)
@given(st.lists(st.sampled_from(sorted(ALL)), min_size=3, max_size=5))
def test_longer_compositions(names):
    if sum(name in DERIVATIVE for name in names) <= 3:
        apply(names)


def test_all_wrappers_at_once():
    apply([*SAME, "jacrev", *reversed(SAME), "jacfwd"])


# -- what people write ------------------------------------------------------------------------------------------------

PARAMS = {"w": RNG.standard_normal((3, 2)), "b": RNG.standard_normal(2), "scale": 0.5}
XS, YS = RNG.standard_normal((5, 3)), RNG.standard_normal((5, 2))


def loss(params, x, y):
    return np.sum((np.tanh(x @ params["w"] + params["b"]) * params["scale"] - y) ** 2)


def test_per_example_gradients():
    check_vmap(fnad.grad(loss), (PARAMS, XS, YS), in_axes=(None, 0, 0))
    rows = fnad.vmap(fnad.grad(loss), in_axes=(None, 0, 0))(PARAMS, XS, YS)
    total = fnad.grad(lambda p: np.sum(fnad.vmap(loss, in_axes=(None, 0, 0))(p, XS, YS)))(PARAMS)
    assert_trees_close(fnad.tree.map(lambda g: np.sum(g, axis=0), rows), total)


def test_ensembles_of_parameters():
    stacked = fnad.tree.map(lambda p: np.stack([np.asarray(p) * (1 + i) for i in range(4)]), PARAMS)
    check_vmap(lambda p: fnad.value_and_grad(lambda q: np.sum(fnad.vmap(loss, in_axes=(None, 0, 0))(q, XS, YS)))(p), (stacked,))


def test_derivatives_of_a_mapped_loss():
    check_grads(lambda p: np.sum(fnad.vmap(loss, in_axes=(None, 0, 0))(p, XS, YS)), (PARAMS,))


def test_gradient_of_a_gradient_norm():
    penalty = lambda p: sum(np.sum(g * g) for g in fnad.tree.leaves(fnad.grad(loss)(p, XS[0], YS[0])))
    check_grads(penalty, (PARAMS,), order=1)


def test_training_through_an_optimisation_step():
    """The gradient by the learning rate of the loss after one step: a gradient of a gradient."""

    def after(rate):
        grads = fnad.grad(loss)(PARAMS, XS[0], YS[0])
        return loss(fnad.tree.map(lambda p, g: p - rate * g, PARAMS, grads), XS[0], YS[0])

    check_grads(after, (0.1,))


def test_hessian_vector_products():
    params = fnad.tree.map(np.asarray, PARAMS)
    direction = fnad.tree.map(np.cos, params)
    scalar = lambda p: loss(p, XS[0], YS[0])
    forward_over_reverse = fnad.hvp(scalar, (params,), (direction,))
    forward_over_reverse = forward_over_reverse[0] if isinstance(forward_over_reverse, tuple) else forward_over_reverse
    reverse_over_reverse = fnad.grad(
        lambda p: sum(np.sum(a * b) for a, b in zip(fnad.tree.leaves(fnad.grad(scalar)(p)), fnad.tree.leaves(direction), strict=True))
    )(params)
    assert_trees_close(forward_over_reverse, reverse_over_reverse)


def test_diagonal_of_a_hessian_by_vmap():
    g = lambda x: np.sum(np.sin(x) * x**2)
    diagonal = fnad.vmap(lambda e: np.sum(fnad.jvp(fnad.grad(g), (X,), (e,))[1] * e))(np.eye(3))
    assert_trees_close(diagonal, np.diag(fnad.hessian(g)(X)).copy())


def test_pullback_made_outside_used_inside():
    """A pullback of a finished forward pass is linear: it batches and differentiates."""
    y, pullback = fnad.vjp(f, X)
    batch = fnad.vmap(lambda ct: pullback(ct)[0])(np.eye(3))
    assert_trees_close(batch, fnad.jacrev(f)(X))
    assert_trees_close(fnad.jacrev(lambda ct: pullback(ct)[0])(y), fnad.jacrev(f)(X).T.copy())
    assert_trees_close(fnad.jvp(lambda ct: pullback(ct)[0], (y,), (y,))[1], pullback(y)[0])


def test_nested_vmap_with_gradients_between():
    points = RNG.standard_normal((2, 4))
    weights = RNG.standard_normal((5, 3))
    g = lambda s, w: np.sum(np.sin(s * w))
    got = fnad.vmap(lambda row: fnad.vmap(lambda w: fnad.vmap(fnad.grad(g), in_axes=(0, None))(row, w))(weights))(points)
    want = np.array([[[np.sum(w * np.cos(s * w)) for s in row] for w in weights] for row in points])
    assert_trees_close(got, want)


def test_stop_gradient_in_nested_transforms():
    g = lambda x: np.sum(x * fnad.stop_gradient(np.sin(x)))
    assert_trees_close(fnad.grad(g)(X), np.sin(X))
    assert_trees_close(fnad.grad(lambda x: np.sum(fnad.grad(g)(x)))(X), np.zeros(3))
    assert_trees_close(fnad.vmap(fnad.grad(g))(np.stack([X, X])), np.stack([np.sin(X)] * 2))


def test_python_control_flow_inside_nested_gradients():
    def g(x):
        return x**3 if x > 0 else -(x**2)

    assert fnad.grad(fnad.grad(g))(2.0) == pytest.approx(12.0)
    assert fnad.grad(fnad.grad(g))(-2.0) == pytest.approx(-2.0)
    assert fnad.jvp(fnad.grad(g), (2.0,), (1.0,))[1] == pytest.approx(12.0)


def test_aux_through_nested_transforms():
    def g(x):
        y = np.tanh(x)
        return np.sum(y * y), {"y": y, "n": 3}

    rows = np.stack([X, 2 * X])
    grads, aux = fnad.vmap(fnad.grad(lambda x: (lambda v, a: (v, a["y"]))(*g(x)), has_aux=True))(rows)
    assert_trees_close(aux, np.tanh(rows))
    assert_trees_close(grads, 2 * np.tanh(rows) * (1 - np.tanh(rows) ** 2))
    second = fnad.jvp(lambda x: fnad.grad(g, has_aux=True)(x)[1]["y"], (X,), (np.ones(3),))[1]
    assert_trees_close(second, 1 - np.tanh(X) ** 2)


def test_float32_through_compositions():
    x = X.astype(np.float32)
    g = lambda x: np.sum(np.tanh(x * 0.5) ** 2)
    for result in (
        fnad.hessian(g)(x),
        fnad.jacfwd(fnad.grad(g))(x),
        fnad.vmap(fnad.grad(g))(np.stack([x, x])),
        fnad.hvp(g, (x,), (x,)),
        fnad.grad(lambda y: np.sum(fnad.vmap(fnad.grad(g))(np.stack([y, 2 * y]))))(x),
    ):
        for leaf in fnad.tree.leaves(result):
            assert leaf.dtype == np.float32


def test_integers_and_indices_inside():
    table, index = RNG.standard_normal((6, 2)), np.array([[0, 3], [5, 3]])
    g = lambda t, i: np.sum(np.tanh(fnad.at(t)[i].get()) ** 2)
    check_vmap(fnad.grad(g), (table, index), in_axes=(None, 0))
    check_grads(lambda t: np.sum(fnad.vmap(g, in_axes=(None, 0))(t, index)), (table,))


def test_complex_compositions():
    g = lambda z: np.sum(np.abs(np.exp(z) * z) ** 2)
    z = RNG.standard_normal(2) + 1j * RNG.standard_normal(2)
    check_grads(g, (z,))
    check_vmap(fnad.grad(g), (np.stack([z, 2 * z]),))
