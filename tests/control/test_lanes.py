"""Batches whose examples go different ways: what an example does not need neither raises nor spoils its gradient."""

from __future__ import annotations

import numpy as np
import pytest

import fnad
from fnad.errors import BoundsError
from fnad.testing import assert_trees_close

from .programs import each_form

TABLE = np.arange(1.0, 6.0)
SPD = np.array([[2.0, 0.5], [0.5, 1.0]])


def entry(c):
    i, x = c
    return i + 1, x + fnad.at(TABLE)[i].get() * x


def bounded(n, x):
    return fnad.while_loop(lambda c: c[0] < n, entry, (0, x), max_steps=9)[1]


def unbounded(n, x):
    return fnad.while_loop(lambda c: c[0] < n, entry, (0, x))[1]


def nested(n, x):
    """The outer loop is long for some examples, the inner one for others."""
    return fnad.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, bounded(c[0] + 1, c[1])), (0, x), max_steps=6)[1]


def branch(n, x):
    return fnad.cond(n < 5, lambda: x * fnad.at(TABLE)[n].get(), lambda: 2.0 * x)


def table_of_its_own(n, x):
    return fnad.cond(n < 5, lambda i, t: fnad.at(t)[i].get(), lambda i, t: t[0], n, x * TABLE)


def choice(n, x):
    branches = [lambda x: x, lambda x: fnad.at(TABLE)[n - 1].get() * x, lambda x: fnad.at(TABLE)[5 - n].set(x)[0]]
    return fnad.switch(n // 3, branches, x)


def factor(n, x):
    """The matrix of examples with n > 2 is not positive."""
    return fnad.cond(n <= 2, lambda a: np.sum(np.linalg.cholesky(a)), lambda a: np.sum(a), (3.0 - n) * x * SPD)


def solution(n, x):
    return fnad.cond(n != 3, lambda a: np.linalg.solve(a, np.ones(2))[0] * x, lambda a: a[0, 0] * x, (3.0 - n) * SPD)


def root(n, x):
    return fnad.cond(n < 3, lambda y: np.sqrt(y) + np.log(y) + y / (y + x), lambda y: -y, x * (3.0 - n))


def without_end(n, x):
    """For n of 3 and more the loop would not end."""
    last = lambda step: fnad.while_loop(lambda c: c[0] < 3.0, lambda c: (c[0] + step, c[1] * 2.0), (0.0, x))[1]
    return fnad.cond(n < 3, last, lambda s: s + x, 3.0 - n)


LANES = [bounded, unbounded, nested, branch, table_of_its_own, choice, factor, solution, root, without_end]
N, X = np.array([2, 5, 3, 0]), np.array([1.0, 2.0, 0.5, 1.5])
apart = pytest.mark.parametrize("f", LANES, ids=lambda f: f.__name__)


@apart
@each_form
def test_batch_is_a_loop_over_examples(f, form):
    want = np.array([f(k, x) for k, x in zip(N, X, strict=True)])
    with np.errstate(all="ignore"):  # a recorded graph is evaluated as it stands: other branches may make nan on the way
        assert_trees_close(form(fnad.vmap(f))(N, X), want)


@pytest.mark.parametrize("f", [bounded, choice, factor], ids=lambda f: f.__name__)
@each_form
def test_batches_of_batches(f, form):
    want = np.array([[f(k, x) for k in N] for x in X])
    with np.errstate(all="ignore"):
        assert_trees_close(form(fnad.vmap(fnad.vmap(f, (0, None)), (None, 0)))(N, X), want)


@apart
@each_form
def test_derivatives_are_those_of_the_examples(f, form):
    modes = [fnad.jacfwd] if f in (unbounded, without_end) else [fnad.jacfwd, fnad.grad]
    for derivative in modes:
        want = np.array([derivative(f, 1)(k, x) for k, x in zip(N, X, strict=True)])
        assert np.all(np.isfinite(want))
        with np.errstate(all="ignore"):
            assert_trees_close(form(fnad.vmap(derivative(f, 1)))(N, X), want)
        whole = fnad.jacfwd if derivative is fnad.jacfwd else fnad.jacrev
        with np.errstate(all="ignore"):
            assert_trees_close(form(whole(lambda x: fnad.vmap(f)(N, x)))(X), np.diag(want))


@each_form
def test_an_example_that_needs_what_is_out_of_bounds_raises(form):
    for f in (bounded, unbounded, lambda n, x: fnad.cond(n < 8, lambda: fnad.at(TABLE)[n].get() * x, lambda: x)):
        with pytest.raises((BoundsError, IndexError)):
            form(fnad.vmap(f))(np.array([7, 9, 1]), X[:3])


@each_form
def test_what_is_the_same_for_all_examples_stays_one_value(form):
    """So a condition that does not depend on the example is still a branch, and may be looked at in eager mode."""

    def step(c, _):
        return (c[0] + 1, fnad.cond(c[0] < 5, lambda x: x * fnad.at(TABLE)[c[0]].get(), lambda x: x, c[1])), None

    f = lambda x: fnad.scan(step, (0, x), None, length=8)[0][1]
    assert_trees_close(form(fnad.vmap(f))(X), X * 120.0)
    assert_trees_close(form(fnad.jacfwd(f))(X), np.eye(4) * 120.0)
    graph = fnad.make_graph(fnad.jacfwd(f))(X)
    assert "cond" in str(graph)


@apart
def test_an_empty_batch(f):
    for form in (lambda f: f, fnad.jit):
        assert form(fnad.vmap(fnad.jacfwd(f, 1)))(np.zeros(0, int), np.zeros(0)).shape == (0,)
