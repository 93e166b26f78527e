"""grad, value_and_grad, vjp, jvp: arguments, options, pytrees, dtypes and mistakes."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, DTypeError, ShapeError, TreeError
from fnad.testing import assert_trees_close

X = np.array([0.5, -1.0, 2.0])


def f(x, y, scale=1.0):
    return np.sum(x * x * y) * scale


def test_argnums():
    y = np.array([1.0, 2.0, 3.0])
    by_x, by_y = 2 * X * y, X * X
    assert_trees_close(fnad.grad(f)(X, y), by_x)
    assert_trees_close(fnad.grad(f, 1)(X, y), by_y)
    assert_trees_close(fnad.grad(f, -1)(X, y), by_y)
    assert_trees_close(fnad.grad(f, np.int64(1))(X, y), by_y)
    assert_trees_close(fnad.grad(f, (0, 1))(X, y), (by_x, by_y))
    assert_trees_close(fnad.grad(f, (1, 0))(X, y), (by_y, by_x))
    assert_trees_close(fnad.grad(f, (0,))(X, y), (by_x,))
    assert_trees_close(fnad.grad(f, [0, -1])(X, y), (by_x, by_y))
    assert_trees_close(fnad.value_and_grad(f, (0, 1))(X, y), (np.float64(np.sum(X * X * y)), (by_x, by_y)))


def test_keyword_arguments_are_passed_on():
    assert_trees_close(fnad.grad(f)(X, X, scale=2.0), 4 * X * X)
    assert_trees_close(fnad.value_and_grad(f)(X, y=X, scale=2.0)[1], 4 * X * X)


@pytest.mark.parametrize("argnums", [2, -3, (0, 0), (0, -2), "x", 1.0, (0, 1.5), True, None])
def test_bad_argnums(argnums):
    with pytest.raises(ArgumentError, match="argnums"):
        fnad.grad(f, argnums)(X, X)


def test_not_a_function():
    for transform in (fnad.grad, fnad.value_and_grad, fnad.vmap, fnad.jacrev, fnad.jacfwd, fnad.hessian, fnad.checkpoint):
        with pytest.raises(ArgumentError, match="takes a function"):
            transform(3.0)


def test_aux():
    g = fnad.grad(lambda x: (np.sum(x * x), {"twice": 2 * x, "name": "n", "none": None}), has_aux=True)
    grads, aux = g(X)
    assert_trees_close(grads, 2 * X)
    assert_trees_close(aux, {"twice": 2 * X, "name": "n", "none": None})
    assert type(aux["twice"]) is np.ndarray
    (value, _), _ = fnad.value_and_grad(lambda x: (np.sum(x * x), x), has_aux=True)(X)
    assert value == np.sum(X * X)
    out, pullback, aux = fnad.vjp(lambda x: (x * x, {"x": x}), X, has_aux=True)
    assert_trees_close((out, pullback(np.ones(3)), aux), (X * X, (2 * X,), {"x": X}))
    out, tangent, aux = fnad.jvp(lambda x: (x * x, {"x": x}), (X,), (np.ones(3),), has_aux=True)
    assert_trees_close((out, tangent, aux), (X * X, 2 * X, {"x": X}))


@pytest.mark.parametrize("result", [lambda x: np.sum(x), lambda x: (np.sum(x),), lambda x: [np.sum(x), x], lambda x: (np.sum(x), x, x)])
def test_aux_must_be_a_pair(result):
    for transform in (
        lambda: fnad.grad(result, has_aux=True)(X),
        lambda: fnad.vjp(result, X, has_aux=True),
        lambda: fnad.jvp(result, (X,), (X,), has_aux=True),
    ):
        with pytest.raises(ShapeError, match="pair"):
            transform()


class Pair(NamedTuple):
    a: np.ndarray
    b: object


@dataclasses.dataclass
class Layer:
    w: np.ndarray
    name: str = dataclasses.field(default="layer", metadata={"static": True})


@dataclasses.dataclass(frozen=True)
class Frozen:
    layer: Layer
    rest: tuple


def test_gradients_have_the_structure_of_what_they_belong_to():
    tree = {"p": Pair(X, [X, None, (X,)]), "l": Layer(X, "first"), "f": Frozen(Layer(X), (X, {})), "s": 2.0, "e": []}
    got = fnad.grad(lambda t: sum(np.sum(leaf * leaf) for leaf in fnad.tree.leaves(t)))(tree)
    assert fnad.tree.structure(got) == fnad.tree.structure(tree)
    assert got["l"].name == "first"
    assert isinstance(got["p"], Pair)
    assert isinstance(got["f"], Frozen)
    assert got["p"].b[1] is None
    assert_trees_close(got, fnad.tree.map(lambda x: np.asarray(2.0 * x)[()], tree))


def test_unused_leaves_get_zeros():
    got = fnad.grad(lambda t: np.sum(t["used"]))({"used": X, "array": np.ones((2, 2), np.float32), "scalar": 1.0})
    assert_trees_close(got, {"used": np.ones(3), "array": np.zeros((2, 2), np.float32), "scalar": np.float64(0.0)})


def test_constant_function():
    assert_trees_close(fnad.value_and_grad(lambda x: 3.0)(X), (np.float64(3.0), np.zeros(3)))
    assert_trees_close(fnad.grad(lambda x: np.float32(3.0))(X), np.zeros(3))
    assert_trees_close(fnad.jvp(lambda x: np.ones(2), (X,), (X,)), (np.ones(2), np.zeros(2)))
    assert_trees_close(fnad.vjp(lambda x: np.ones(2), X)[1](np.ones(2)), (np.zeros(3),))


def test_identity():
    assert fnad.grad(lambda x: x)(2.0) == 1.0
    assert_trees_close(fnad.vjp(lambda x: x, X)[1](X), (X,))


@pytest.mark.parametrize(
    ("leaf", "kind"),
    [
        (np.arange(3), "int64"),
        (np.ones(3, bool), "bool"),
        (3, "Python int"),
        (True, "Python bool"),
        (np.array(["a"]), "<U1"),
        (np.array([1.0, None], object), "object"),
        ("text", "str"),
        (object(), "object"),
    ],
)
def test_leaves_that_cannot_be_differentiated_are_named(leaf, kind):
    tree = {"ok": X, "bad": [X, leaf]}
    for transform in (
        lambda: fnad.grad(lambda t: np.sum(t["ok"]))(tree),
        lambda: fnad.vjp(lambda t: t["ok"], tree),
        lambda: fnad.jvp(lambda t: t["ok"], (tree,), (tree,)),
        lambda: fnad.linearize(lambda t: t["ok"], tree),
    ):
        with pytest.raises(DTypeError, match=r"argument 0\['bad'\]\[1\]") as caught:
            transform()
        assert kind in str(caught.value)


def test_second_argument_is_named_by_its_position():
    with pytest.raises(DTypeError, match=r"argument 1\['n'\]"):
        fnad.grad(lambda x, p: np.sum(x), argnums=(0, 1))(X, {"n": 3})


@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        (lambda x: x, ShapeError, ["(3,)", "jacrev", "vjp", "np.sum"]),
        (lambda x: x[:1], ShapeError, ["(1,)", "[0]"]),
        (lambda x: (np.sum(x), 1), DTypeError, ["tuple", "has_aux"]),
        (lambda x: {"loss": np.sum(x)}, DTypeError, ["dict", "has_aux"]),
        (lambda x: None, DTypeError, ["NoneType", "return the loss"]),
        (lambda x: "loss", DTypeError, ["str"]),
        (lambda x: np.argmax(x), DTypeError, ["int64"]),
        (lambda x: 3, DTypeError, ["int64"]),
        (lambda x: np.sum(x) > 0, DTypeError, ["bool"]),
        (lambda x: np.sum(x * 1j), DTypeError, ["complex128", "np.real"]),
    ],
)
def test_result_that_is_no_real_scalar(result, error, words):
    for transform in (fnad.grad, fnad.value_and_grad):
        with pytest.raises(error) as caught:
            transform(result)(X)
        assert all(word in str(caught.value) for word in words), str(caught.value)


def test_cotangents_must_fit():
    _, pullback = fnad.vjp(lambda x: {"a": x, "b": np.sum(x)}, X)
    with pytest.raises(TreeError, match="cotangent"):
        pullback({"a": X})
    with pytest.raises(TreeError, match="cotangent"):
        pullback([X, 1.0])
    with pytest.raises(ShapeError, match=r"\['a'\]"):
        pullback({"a": np.ones(4), "b": 1.0})
    with pytest.raises(DTypeError, match=r"\['a'\]"):
        pullback({"a": X * 1j, "b": 1.0})
    assert_trees_close(pullback({"a": np.array([1, 2, 3]), "b": 1}), (np.array([2.0, 3.0, 4.0]),))


def test_tangents_must_fit():
    g = lambda t: t["a"] * t["b"]
    primals = {"a": X, "b": 2.0}
    with pytest.raises(TreeError, match="tangents"):
        fnad.jvp(g, (primals,), ({"a": X},))
    with pytest.raises(TreeError, match="tuple"):
        fnad.jvp(g, primals, primals)
    with pytest.raises(ShapeError, match=r"\['a'\]"):
        fnad.jvp(g, (primals,), ({"a": np.ones(2), "b": 1.0},))
    with pytest.raises(DTypeError, match=r"\['a'\]"):
        fnad.jvp(g, (primals,), ({"a": X * 1j, "b": 1.0},))
    assert_trees_close(fnad.jvp(g, [primals], [{"a": np.array([1, 0, 0]), "b": 0}])[1], np.array([2.0, 0.0, 0.0]))


def test_pullback_is_called_any_number_of_times():
    _, pullback = fnad.vjp(lambda x: np.tanh(x) * x, X)
    first = pullback(np.ones(3))
    for _ in range(3):
        assert_trees_close(pullback(np.ones(3)), first, atol=0, rtol=0)
    assert_trees_close(pullback(2 * np.ones(3)), fnad.tree.map(lambda g: 2 * g, first))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128])
def test_dtypes_are_kept(dtype):
    x = np.array([0.5, 1.5], dtype)
    loss = lambda x: np.sum(np.real(x * np.conj(x)) * 0.5)
    value, g = fnad.value_and_grad(loss)(x)
    assert g.dtype == dtype
    assert value.dtype == np.zeros(1, dtype).real.dtype
    np.testing.assert_allclose(g, np.conj(x), rtol=1e-3)
    assert fnad.jvp(loss, (x,), (x,))[1].dtype == value.dtype


def test_big_endian_arrays():
    x = np.array([1.0, 2.0], ">f8")
    assert_trees_close(fnad.grad(lambda x: np.sum(x * x))(x), np.array([2.0, 4.0]), check_dtype=False)


def test_result_types():
    for x, kind in ((2.0, np.float64), (np.float64(2.0), np.float64), (np.array(2.0), np.float64), (np.float32(2.0), np.float32)):
        value, g = fnad.value_and_grad(lambda x: x * x)(x)
        assert type(g) is kind
        assert type(value) is kind
        assert g == 4.0


class Model:
    def __init__(self, w):
        self.w = w

    @fnad.grad
    def gradient(self, x):
        raise AssertionError("differentiates by self")

    def loss(self, x):
        return np.sum(self.w * x * x)

    by_x = fnad.grad(loss, argnums=1)


def test_methods_bind():
    model = Model(np.array([1.0, 2.0, 3.0]))
    assert_trees_close(fnad.grad(model.loss)(X), 2 * model.w * X)
    assert_trees_close(model.by_x(X), 2 * model.w * X)
    with pytest.raises(DTypeError, match="argument 0: Model"):
        model.gradient(X)


def test_transformed_functions_look_like_functions():
    def loss(x):
        """The loss."""
        return np.sum(x)

    g = fnad.grad(loss)
    assert g.__name__ == "loss"
    assert g.__doc__ == "The loss."
    assert g.__wrapped__ is loss
    assert "loss" in repr(g)
    assert_trees_close(fnad.grad(functools.partial(f, y=X))(X), 2 * X * X)
    assert "grad" in repr(fnad.grad(functools.partial(f, y=X)))


def test_equal_arguments_are_independent():
    assert_trees_close(fnad.grad(lambda a, b: np.sum(a * a * b), argnums=(0, 1))(X, X), (2 * X * X, X * X))


def test_an_argument_used_many_times():
    assert_trees_close(fnad.grad(lambda x: np.sum(x) + np.sum(x * x) + x[0] + np.max(x))(X), 1 + 2 * X + np.array([1.0, 0.0, 1.0]))


def test_closed_over_arrays_are_constants():
    w = np.array([1.0, 2.0, 3.0])
    assert_trees_close(fnad.grad(lambda x: np.sum(w * x + w))(X), w)


def test_empty_tree():
    assert fnad.grad(lambda t: 1.0)({}) == {}
    assert fnad.grad(lambda t, x: np.sum(x))(None, X) is None


def test_arguments_of_subclasses_are_refused():
    with pytest.raises(DTypeError, match="MaskedArray"):
        fnad.grad(lambda x: np.sum(x))(np.ma.masked_array(X, mask=[0, 1, 0]))
