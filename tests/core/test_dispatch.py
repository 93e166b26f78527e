"""The dispatch table and primitives: registering, missing rules, messages."""

from __future__ import annotations

import numpy as np
import pytest

import fnad
from fnad.core import dispatch
from fnad.core.primitive import REGISTRY, Primitive
from fnad.errors import MissingRuleError, UnsupportedError
from fnad.testing import assert_trees_close, check_grads

X = np.array([1.0, 2.0, 4.0])


@pytest.fixture
def table(monkeypatch):
    """Whatever a test registers is forgotten after it."""
    fnad.numpy.load_all()  # what is registered on first use is not to be forgotten
    monkeypatch.setattr(dispatch, "ROWS", dispatch.Rows(dispatch.ROWS))
    monkeypatch.setattr(dispatch, "UFUNC_METHODS", dict(dispatch.UFUNC_METHODS))


def test_register_a_function(table):
    @fnad.implements(np.trim_zeros)
    def trim_zeros(p, **options):
        return p * 2.0

    assert_trees_close(fnad.grad(lambda x: np.sum(np.trim_zeros(x)))(X), np.full(3, 2.0))
    assert trim_zeros(X)[0] == 2.0
    assert np.trim_zeros(X)[0] == 1.0  # plain arrays do not pass through the table


def test_register_a_ufunc_method(table):
    @dispatch.implements_method(np.multiply, "outer")
    def outer(a, b):
        return a[:, None] * b

    check_grads(lambda x: np.multiply.outer(x, x), (X,))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: np.trim_zeros(x), "np.trim_zeros"),
        (lambda x: np.poly(x), "np.poly"),
        (lambda x: np.apply_along_axis(np.sum, 0, x), "np.apply_along_axis"),
        (lambda x: np.nextafter(x, 1.0), "np.nextafter"),
        (lambda x: np.multiply.outer(x, x), "np.multiply.outer"),
        (lambda x: np.add.reduceat(x, [0, 1]), "np.add.reduceat"),
        (lambda x: np.subtract.reduce(x), "np.subtract.reduce"),
    ],
)
def test_missing_function_is_named(call, name):
    with pytest.raises(UnsupportedError) as caught:
        fnad.grad(lambda x: np.sum(call(x)))(X)
    assert name in str(caught.value)
    assert "implements" in str(caught.value)


def test_nearest_names_are_offered():
    with pytest.raises(UnsupportedError, match=r"polyder|polyadd"):
        fnad.grad(lambda x: np.sum(np.polydiv(x, x)[0]))(X)


def test_missing_rules_name_primitive_rule_and_file():
    class Half(Primitive):
        def impl(self, x):
            return x / 2

    half = Half("half", register=False)
    assert half(X)[0] == 0.5
    for rule, call in {
        "vjp": lambda: fnad.grad(lambda x: np.sum(half(x)))(X),
        "batch": lambda: fnad.vmap(half)(X),
        "infer": lambda: fnad.make_graph(half)(X),
    }.items():
        with pytest.raises(MissingRuleError, match=f"half has no {rule} rule") as caught:
            call()
        assert "test_dispatch.py" in str(caught.value)
        assert f"Half.{rule}" in str(caught.value)
    assert repr(half) == "<primitive half>"


def test_a_missing_forward_rule_is_made_of_the_pullback():
    class Triple(Primitive):
        def impl(self, x):
            return x * 3

        def vjp(self, out, x):
            return (lambda g: g * 3,)

    triple = Triple("triple", register=False)
    assert_trees_close(fnad.jvp(triple, (X,), (X,)), (3 * X, 3 * X))


def test_names_are_unique():
    with pytest.raises(ValueError, match="declared twice"):
        Primitive("tanh")
    assert REGISTRY["tanh"].name == "tanh"


def test_provider_is_asked_once_for_an_unknown_callable(table, monkeypatch):
    asked = []

    def provider(function):
        asked.append(function)
        if function is np.trim_zeros:
            dispatch.ROWS[np.trim_zeros] = lambda x: x * 5.0

    monkeypatch.setattr(dispatch, "PROVIDERS", [*dispatch.PROVIDERS, provider])
    for _ in range(2):
        assert_trees_close(fnad.grad(lambda x: np.sum(np.trim_zeros(x)))(X), np.full(3, 5.0))
    assert asked == [np.trim_zeros]
