"""cond and switch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import ArgumentError, DTypeError, ShapeError, TreeError
from fnad.testing import assert_trees_close, check_grads

from .programs import FORMS, each_form, equations

X = np.array([0.5, -1.5, 2.0])


@given(st.floats(-2.0, 2.0), st.sampled_from(sorted(FORMS)))
def test_cond_is_the_branch(x, form):
    f = lambda x: fnad.cond(x > 0, lambda x, y: (x * y, y), lambda x, y: (x - y, y * 2.0), x, 3.0)
    want = (x * 3.0, 3.0) if x > 0 else (x - 3.0, 6.0)
    assert_trees_close(fnad.tree.map(np.float64, FORMS[form](f)(x)), fnad.tree.map(np.float64, want))


@given(st.integers(-3, 6), st.sampled_from(sorted(FORMS)))
def test_switch_is_the_branch(k, form):
    branches = [lambda x: x * 1.0, lambda x: x**2, lambda x: np.full(3, 7.0)]
    f = FORMS[form](lambda k, x: fnad.switch(k, branches, x))
    want = branches[min(max(k, 0), 2)]
    assert_trees_close(f(np.int64(k), X), want(X))
    assert_trees_close(fnad.jacrev(f, 1)(np.int64(k), X), fnad.jacrev(want)(X))


@each_form
@pytest.mark.parametrize("pred", [0, 1, 2.5, 0.0, True, np.False_, np.float32(1), np.array(0)])
def test_kinds_of_predicate(form, pred):
    f = form(lambda p: fnad.cond(p, lambda: 1.0, lambda: 2.0))
    assert f(pred) == (1.0 if pred else 2.0)


@each_form
def test_predicate_that_is_differentiated(form):
    f = form(lambda x: fnad.cond(x, np.sin, np.cos, x))
    assert fnad.grad(f)(2.0) == np.cos(2.0)
    assert fnad.grad(f)(0.0) == 0.0


def test_only_the_chosen_branch_runs():
    ran = []
    yes, no = lambda x: ran.append("yes") or x, lambda x: ran.append("no") or x
    fnad.cond(True, yes, no, 1.0)
    fnad.grad(lambda x: fnad.cond(x > 0, yes, no, x))(1.0)
    fnad.switch(1, [no, yes], 1.0)
    assert ran == ["yes", "yes", "yes"]


def test_branches_run_in_the_program_only_when_chosen():
    """Also what they compute of values they close over."""

    def f(x, m):
        return fnad.cond(x > 0, lambda: np.linalg.cholesky(m)[0, 0], lambda: x)

    singular = np.zeros((2, 2))
    assert [e.primitive.name for e in equations(f, 1.0, singular)] == ["greater", "cond"]
    for g in (lambda *a: fnad.jit(f)(*a), f):
        assert g(-1.0, singular) == -1.0
        assert g(1.0, 4.0 * np.eye(2)) == 2.0
        assert_trees_close(fnad.grad(g, (0, 1))(-1.0, singular), (np.float64(1.0), singular))
    h = fnad.jit(fnad.grad(f, (0, 1)))
    assert_trees_close(h(-1.0, singular), (np.float64(1.0), singular))
    assert_trees_close(h(1.0, 4.0 * np.eye(2))[1], np.array([[0.25, 0.0], [0.0, 0.0]]))


def test_branches_may_look_at_values_that_are_known():
    f = lambda x, w: fnad.vmap(lambda x: fnad.cond(x > 0, lambda: x * (w if w > 1 else 1.0), lambda: x))(x)
    assert_trees_close(fnad.jacfwd(f, 1)(X, 2.0), np.array([0.5, 0.0, 2.0]))


@each_form
def test_closures(form):
    def f(x, w):
        c = np.array([1.0, 2.0])
        return fnad.cond(x > 0, lambda x: w @ (c * x), lambda x: np.sum(w) * c, x)

    for x in (0.5, -0.5):
        check_grads(form(f), (x, np.arange(4.0).reshape(2, 2)))


@each_form
def test_branches_that_depend_on_different_values(form):
    """Each cotangent goes to the branch's own closure; the others get zero."""
    f = form(lambda p, a, b, c: fnad.cond(p > 0, lambda: np.sum(a * c), lambda: np.sum(b) * c[0]))
    a, b, c = X, 2.0 * X, X + 1.0
    assert_trees_close(fnad.grad(f, (1, 2, 3))(1.0, a, b, c), (c, np.zeros(3), a))
    assert_trees_close(fnad.grad(f, (1, 2, 3))(-1.0, a, b, c), (np.zeros(3), np.full(3, c[0]), np.array([np.sum(b), 0.0, 0.0])))
    assert_trees_close(fnad.jvp(f, (-1.0, a, b, c), (0.0, a, b, np.zeros(3)))[1], np.sum(b) * c[0])


@each_form
def test_constant_branches(form):
    f = form(lambda x: fnad.cond(x > 0, lambda: 1.0, lambda: 2.0) + x)
    assert fnad.grad(f)(1.0) == 1.0


@each_form
def test_batched_predicate(form):
    f = form(lambda x: fnad.cond(x > 0, np.sqrt, lambda x: x * x, x))
    x = np.array([4.0, -3.0, 0.25, 0.0])
    with np.errstate(all="ignore"):
        assert_trees_close(fnad.vmap(f)(x), np.array([2.0, 9.0, 0.5, 0.0]))
        assert_trees_close(fnad.vmap(fnad.grad(f))(x), np.array([0.25, -6.0, 1.0, 0.0]))
        assert_trees_close(fnad.grad(lambda x: np.sum(fnad.vmap(f)(x)))(x), np.array([0.25, -6.0, 1.0, 0.0]))
        assert_trees_close(fnad.jvp(fnad.vmap(f), (x,), (np.ones(4),))[1], np.array([0.25, -6.0, 1.0, 0.0]))
        assert_trees_close(fnad.vmap(fnad.grad(fnad.grad(f)))(x), np.array([-1 / 32, 2.0, -2.0, 2.0]))


def test_batched_predicate_warns_of_nothing():
    fnad.vmap(lambda x: fnad.cond(x > 0, np.log, lambda x: 1.0 / (x - 2.0), x))(np.array([2.0, -3.0]))


@each_form
def test_batched_operands_under_one_predicate(form):
    f = form(lambda p, x, y: fnad.cond(p > 0, lambda x: (x, y), lambda x: (np.sum(y) * np.ones(()), np.sum(x) * y), x))
    x, y = np.array([1.0, 2.0]), np.arange(3.0)
    for p in (1.0, -1.0):
        got = fnad.vmap(f, (None, 0, None))(p, x, y)
        want = [f(p, v, y) for v in x]
        assert_trees_close(got, tuple(np.stack(column) for column in zip(*want, strict=True)))


@each_form
def test_batched_index(form):
    k = np.array([0, 2, 1, 9, -4])
    f = form(lambda k, x: fnad.switch(k, [np.sin, np.cos, np.tanh], x))
    got = fnad.vmap(f)(k, np.linspace(0, 1, 5))
    assert_trees_close(got, np.array([f(i, x) for i, x in zip(k, np.linspace(0, 1, 5), strict=True)]))


@each_form
def test_python_scalars_give_way(form):
    f = lambda p, x: fnad.cond(p > 0, lambda x: (x, 0), lambda x: (0.0, 1.5), x)
    for p in (1.0, -1.0):
        a, b = fnad.jit(f)(p, np.float32(2)) if form is fnad.jit else form(f)(p, np.float32(2))
        if form is not FORMS["eager"]:
            assert (np.asarray(a).dtype, np.asarray(b).dtype) == (np.float32, np.float64)
        assert (a, b) == ((2.0, 0) if p > 0 else (0.0, 1.5))


@pytest.mark.parametrize(
    ("yes", "no", "error", "match"),
    [
        (lambda x: x, lambda x: (x, x), TreeError, "same pytree structure"),
        (lambda x: x, lambda x: x[0], ShapeError, "same shapes"),
        (lambda x: {"a": x}, lambda x: {"a": x.astype(np.float32)}, DTypeError, r"result\['a'\]"),
        (lambda x: x, lambda x: "a", DTypeError, "numeric"),
    ],
)
def test_results_that_differ(yes, no, error, match):
    with pytest.raises(error, match=match) as e:
        fnad.jit(lambda x: fnad.cond(x[0] > 0, yes, no, x))(X)
    assert "branch" in str(e.value)


@each_form
def test_wrong_arguments(form):
    with pytest.raises(ShapeError, match="scalar"):
        form(lambda x: fnad.cond(x > 0, np.sin, np.cos, x))(X)
    with pytest.raises(ArgumentError, match="true_fun must be a function"):
        form(lambda x: fnad.cond(x > 0, 1.0, np.cos, x))(1.0)
    with pytest.raises(ArgumentError, match="false_fun must be a function"):
        form(lambda x: fnad.cond(x > 0, np.sin, None, x))(1.0)
    with pytest.raises(DTypeError, match="integer"):
        form(lambda x: fnad.switch(x, [np.sin, np.cos], x))(1.0)
    with pytest.raises(ShapeError, match="scalar"):
        form(lambda x: fnad.switch(x, [np.sin, np.cos], 1.0))(np.arange(2))
    with pytest.raises(ArgumentError, match="at least one"):
        form(lambda x: fnad.switch(x, [], x))(1)
    assert form(lambda k, x: fnad.switch(k, [np.sin], x))(np.int64(5), 0.0) == 0.0
