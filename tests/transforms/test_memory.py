"""Results own their memory: they share none with arguments, closed-over arrays or each other, and can be written into."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.testing import assert_trees_close
from fnad.testing.strategies import arrays, programs, pytrees

CLOSED = np.linspace(1.0, 2.0, 6).reshape(2, 3)


def check(result, *given):
    """The conditions on what a transform returns, given everything that went in."""
    outs = [x for x in fnad.tree.leaves(result) if isinstance(x, np.ndarray)]
    inputs = [x for x in fnad.tree.leaves((given, CLOSED)) if isinstance(x, np.ndarray)]
    for out in outs:
        assert out.flags.c_contiguous
        assert out.flags.writeable
        for x in inputs:
            assert not np.shares_memory(out, x)
    for a, b in itertools.combinations(outs, 2):
        assert not np.shares_memory(a, b)


# Functions of an array of shape (2, 3) that return a pytree, chosen for what they might hand through.
FUNCTIONS = {
    "identity": lambda x: x,
    "twice the same": lambda x: (x, x),
    "view": lambda x: {"t": x.T, "r": np.reshape(x, -1), "row": x[0], "flip": x[::-1]},
    "value and view": lambda x: (x, x.T, x[:, :2]),
    "constant": lambda x: np.ones((2, 3)),
    "closed over": lambda x: CLOSED,
    "closed over and traced": lambda x: (CLOSED, x * CLOSED, CLOSED.T),
    "broadcast": lambda x: np.broadcast_to(x, (2, 2, 3)),
    "broadcast scalar": lambda x: np.broadcast_to(np.sum(x), (3, 2)),
    "sum": lambda x: np.sum(x),
    "sum of product": lambda x: np.sum(x * CLOSED),
    "sum over an axis": lambda x: x.sum(0),
    "addition": lambda x: x + 1.0,
    "sum of halves": lambda x: x[:1] + x[1:],
    "joined": lambda x: np.concatenate([x, x]),
    "stacked": lambda x: np.stack([x, CLOSED]),
    "transposed product": lambda x: (x @ CLOSED.T).T,
    "stop_gradient": lambda x: (fnad.stop_gradient(x), x),
    "where": lambda x: np.where(CLOSED > 1.5, x, CLOSED),
    "scalars": lambda x: [x[0, 0], 2.0, np.float64(3.0)],
    "updated": lambda x: fnad.at(x)[0].set(0.0),
}


@pytest.fixture
def x():
    return np.arange(6.0).reshape(2, 3)


def cotangents(outs):
    return fnad.tree.map(lambda o: np.asarray(np.ones(np.shape(o))), outs)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jvp(name, x):
    check(fnad.jvp(FUNCTIONS[name], (x,), (t := np.ones((2, 3)),)), x, t)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vjp(name, x):
    value, pullback = fnad.vjp(FUNCTIONS[name], x)
    ct = cotangents(value)
    first, second = pullback(ct), pullback(ct)
    check((value, first, second), x, ct)
    for out in fnad.tree.leaves((first, value)):
        if isinstance(out, np.ndarray):
            out[...] = 7.0
    assert_trees_close(pullback(ct), second, atol=0, rtol=0)
    assert_trees_close(x, np.arange(6.0).reshape(2, 3), atol=0, rtol=0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_grad(name, x):
    f = lambda x: (sum(np.sum(o) for o in fnad.tree.leaves(FUNCTIONS[name](x))), FUNCTIONS[name](x))
    check(fnad.grad(f, has_aux=True)(x), x)
    check(fnad.value_and_grad(f, has_aux=True)(x), x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap(name, x):
    f = FUNCTIONS[name]
    batch = np.stack([x, x + 1])
    check(fnad.vmap(f)(batch), batch)
    check(fnad.vmap(f, out_axes=-1 if name not in ("sum", "scalars") else 0)(batch), batch)
    check(fnad.vmap(f, in_axes=2)(np.moveaxis(batch, 0, 2)), batch)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians(name, x):
    f = FUNCTIONS[name]
    check(fnad.jacrev(f)(x), x)
    check(fnad.jacfwd(f)(x), x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_linearize(name, x):
    value, push = fnad.linearize(FUNCTIONS[name], x)
    t = np.ones((2, 3))
    check((value, push(t), push(t)), x, t)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_checkpoint_and_custom_rules(name, x):
    f = FUNCTIONS[name]
    value, pullback = fnad.vjp(fnad.checkpoint(f), x)
    ct = cotangents(value)
    check((value, pullback(ct)), x, ct)


def test_pullback_of_a_product_does_not_hand_out_the_factor(x):
    y = np.ones((2, 3))
    gx, gy = fnad.grad(lambda x, y: np.sum(x * y), argnums=(0, 1))(x, y)
    check((gx, gy), x, y)
    gx[...] = 5.0
    assert_trees_close(y, np.ones((2, 3)))


def test_gradients_of_equal_arguments_are_separate(x):
    check(fnad.grad(lambda a, b: np.sum(a + b), argnums=(0, 1))(x, x), x)
    check(fnad.grad(lambda p: np.sum(p["a"] + p["b"]) + np.sum(p["a"]))({"a": x, "b": x}), x)


def test_gradient_that_is_the_cotangent(x):
    ct = np.ones((2, 3))
    check(fnad.vjp(lambda a, b: a + b, x, x)[1](ct), x, ct)
    check(fnad.vjp(lambda a: a, x)[1](ct), x, ct)
    check(fnad.vjp(lambda a: a.T, x)[1](np.ones((3, 2))), x)


def test_zero_gradients_are_separate():
    grads = fnad.grad(lambda p: np.sum(p["used"]))({"used": np.ones(3), "a": np.ones(4), "b": np.ones(4)})
    check(grads)
    grads["a"][...] = 1.0
    assert_trees_close(grads["b"], np.zeros(4))


def test_aux_of_any_kind_is_handed_through(x):
    token = object()
    _, aux = fnad.grad(lambda x: (np.sum(x), {"x": x, "closed": CLOSED, "name": "n", "token": token, "none": None}), has_aux=True)(x)
    check(aux, x)
    assert aux["token"] is token
    assert aux["name"] == "n"
    assert_trees_close(aux["x"], x)


def test_results_are_plain_arrays_and_scalars(x):
    for result in (
        fnad.grad(lambda x: np.sum(x * x))(x),
        fnad.vmap(lambda r: r * 2)(x),
        fnad.jvp(lambda x: x * 2, (x,), (x,)),
        fnad.jacrev(lambda x: x[0])(x),
    ):
        assert all(type(leaf) is np.ndarray for leaf in fnad.tree.leaves(result))
    value, gradient = fnad.value_and_grad(lambda s: s * s)(3.0)
    assert type(value) is np.float64
    assert type(gradient) is np.float64
    assert type(fnad.grad(lambda s: np.sum(s * s))(np.float32(3.0))) is np.float32
    assert type(fnad.grad(lambda s: np.sum(s * s))(np.array(3.0))) is np.float64


@given(programs(max_steps=6), st.integers(0, 100), st.data())
def test_random_programs(program, seed, data):
    """Values, gradients, tangents and batches of random programs on arrays of any layout; arguments stay as they were."""
    args = [data.draw(arrays(shape=shape, layouts=True)) for shape in program.inputs]
    before = [a.copy() for a in args]
    value, pullback = fnad.vjp(program, *args)
    ct = cotangents(value)
    grads = pullback(ct)
    check((value, grads, pullback(ct)), args, ct)
    check(fnad.jvp(program, tuple(args), tuple(before)), args, before)
    check(fnad.value_and_grad(program.scalar, argnums=tuple(range(len(args))))(*args), args)
    batches = [np.stack([a, a]) for a in args]
    check(fnad.vmap(program)(*batches), batches)
    assert_trees_close(args, before, atol=0, rtol=0)


@given(pytrees(arrays(shape=(2, 3), layouts=True), max_leaves=4))
def test_identity_over_random_pytrees(tree):
    check(fnad.vjp(lambda t: t, tree)[0], tree)
    check(fnad.vjp(lambda t: t, tree)[1](tree), tree)
    check(fnad.jvp(lambda t: (t, t), (tree,), (tree,)), tree)
    check(fnad.grad(lambda t: sum(np.sum(x) for x in fnad.tree.leaves(t)))(tree), tree)
    check(fnad.vmap(lambda t: t)(tree), tree)


def test_frozen_arguments_are_accepted(x):
    x.flags.writeable = False
    check(fnad.value_and_grad(lambda x: np.sum(x * x))(x), x)
    check(fnad.vmap(lambda r: r)(x), x)
    check(fnad.jvp(lambda x: x, (x,), (x,)), x)
