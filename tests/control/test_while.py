"""while_loop and fori_loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError, TreeError, UnsupportedError
from fnad.testing import assert_trees_close, check_grads, check_vmap

from .programs import FORMS, Loops, each_form, equations, recorded


def collatz(lib, n):
    """Number of steps to 1."""
    step = lambda c: (np.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1)
    return lib.while_loop(lambda c: c[0] != 1, step, (n, 0))[1]


def newton(lib, a, max_steps=None):
    return lib.while_loop(lambda x: abs(x * x - a) > 1e-10, lambda x: (x + a / x) / 2.0, a, max_steps=max_steps)


@given(st.integers(1, 100), st.sampled_from(sorted(FORMS)))
def test_while_is_the_loop(n, form):
    assert FORMS[form](lambda n: collatz(fnad, n))(np.int64(n)) == collatz(Loops, n)


@given(st.floats(0.1, 50.0), st.one_of(st.none(), st.integers(0, 12)), st.sampled_from(sorted(FORMS)))
def test_float_carry(a, max_steps, form):
    f = lambda a: newton(fnad, a, max_steps)
    assert_trees_close(FORMS[form](f)(a), np.float64(newton(Loops, a, max_steps)))


@each_form
def test_no_steps(form):
    assert form(lambda x: fnad.while_loop(lambda c: c < 0, lambda c: c * 2.0, x))(3.0) == 3.0
    assert form(lambda x: fnad.while_loop(lambda c: c > 0, lambda c: c * 2.0, x, max_steps=0))(3.0) == 3.0
    assert form(lambda x: fnad.fori_loop(5, 2, lambda i, c: c * 2.0, x))(3.0) == 3.0
    assert form(lambda x, n: fnad.fori_loop(5, n, lambda i, c: c * 2.0, x))(3.0, np.int64(2)) == 3.0


@each_form
def test_forward_mode(form):
    f = form(lambda a: newton(fnad, a))
    value, tangent = fnad.jvp(f, (9.0,), (1.0,))
    assert_trees_close((value, tangent), (np.float64(3.0), np.float64(1 / 6)))
    check_grads(f, (5.0,), modes=["fwd"])
    assert_trees_close(fnad.jacfwd(f)(9.0), np.float64(1 / 6))


@each_form
def test_bounded_loops_have_both_modes(form):
    f = form(lambda a: newton(fnad, a, 20))
    check_grads(f, (5.0,))
    assert_trees_close(fnad.grad(f)(9.0), np.float64(1 / 6))


@each_form
def test_reverse_mode_needs_a_bound(form):
    f = form(lambda a: newton(fnad, a))
    with pytest.raises(UnsupportedError, match="max_steps") as e:
        fnad.grad(f)(9.0)
    assert "while_loop" in str(e.value)
    with pytest.raises(UnsupportedError, match="max_steps"):
        fnad.jit(fnad.grad(lambda a: newton(fnad, a)))(9.0)


@each_form
def test_reverse_mode_beside_a_loop(form):
    """What the loss does not depend on by way of the loop may be computed in it."""

    def loss(x):
        y = fnad.while_loop(lambda c: c < 10.0, lambda c: c * 2.0, x)
        n = fnad.while_loop(lambda c: c[0] < x, lambda c: (c[0] + 1.0, c[1] + 1), (0.0, 0))[1]
        return x**2 * n + fnad.stop_gradient(y)

    assert fnad.grad(form(loss))(3.0) == 18.0


@each_form
def test_batched_predicate(form):
    n = np.arange(1, 12)
    f = form(lambda n: collatz(fnad, n))
    assert_trees_close(fnad.vmap(f)(n), np.array([collatz(Loops, k) for k in n]))
    assert_trees_close(form(fnad.vmap(lambda n: collatz(fnad, n)))(n), np.array([collatz(Loops, k) for k in n]))


@each_form
def test_batched_carry_under_one_predicate(form):
    f = lambda x: fnad.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]
    assert_trees_close(fnad.vmap(form(f))(np.array([1.0, 2.0])), np.array([1.0, 16.0]))


@each_form
def test_values_that_never_change_stay_unbatched(form):
    table = np.arange(5.0)
    f = lambda x: fnad.while_loop(lambda c: c[0] < x, lambda c: (c[0] + c[1][1], c[1]), (0.0, table))
    assert_trees_close(fnad.vmap(form(f))(np.array([1.5, 3.5])), (np.array([2.0, 4.0]), np.stack([table, table])))


@each_form
def test_examples_that_are_done_do_not_disturb(form):
    """Their further steps divide by zero; neither values nor derivatives may show it."""
    f = form(lambda x: fnad.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1.0, c[1] + 1.0 / c[0] + x), (x, 0.0))[1])
    g = form(lambda x: fnad.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1.0, c[1] + 1.0 / c[0] + x), (x, 0.0), max_steps=5)[1])
    x = np.array([1.0, 2.0, 4.0])
    with np.errstate(all="ignore"):
        for h in (f, g):
            assert_trees_close(fnad.vmap(h)(x), np.array([h(v) for v in x]))
            want = np.array([fnad.jvp(h, (v,), (1.0,))[1] for v in x])
            assert np.all(np.isfinite(want))
            assert_trees_close(fnad.jvp(fnad.vmap(h), (x,), (np.ones(3),))[1], want)
        assert_trees_close(fnad.grad(lambda x: np.sum(fnad.vmap(g)(x)))(x), np.array([fnad.grad(g)(v) for v in x]))
        assert_trees_close(fnad.vmap(fnad.grad(g))(x), np.array([fnad.grad(g)(v) for v in x]))


@each_form
def test_vmap_of_bounds(form):
    f = form(lambda n, x: fnad.fori_loop(0, n, lambda i, v: v * x + i, 1.0))
    check_vmap(f, (np.array([0, 3, 5]), np.array([2.0, 0.5, 1.5])), (0, 0))


def test_fori_loop_with_traced_bounds():
    f = lambda lo, hi, x: fnad.fori_loop(lo, hi, lambda i, v: v * x + i, 1.0)
    assert [e.primitive.name for e in equations(f, np.int64(0), np.int64(3), 2.0)] == ["while_loop"]
    assert [e.primitive.name for e in equations(lambda x: f(0, 3, x), 2.0)] == ["scan"]
    for form in FORMS.values():
        assert form(f)(np.int64(1), np.int64(4), 2.0) == Loops.fori_loop(1, 4, lambda i, v: v * 2.0 + i, 1.0)
    with pytest.raises(UnsupportedError, match="bounds that are Python ints"):
        fnad.jit(lambda n, x: fnad.grad(lambda x: f(0, n, x))(x))(np.int64(3), 2.0)
    static = fnad.jit(lambda n, x: fnad.grad(lambda x: f(0, n, x))(x), static_argnums=0)
    assert static(3, 2.0) == fnad.grad(lambda x: Loops.fori_loop(0, 3, lambda i, v: v * x + i, 1.0))(2.0)


@each_form
def test_python_scalars_give_way(form):
    x = np.ones(2, np.float32)
    c, n = form(lambda x: fnad.while_loop(lambda c: c[1] < 3, lambda c: (c[0] + x[0], c[1] + 1), (0, 0)))(x)
    assert np.asarray(c).dtype == np.float32
    assert np.asarray(n).dtype == np.int64
    assert (c, n) == (3.0, 3)


def test_bodies_may_look_at_values():
    def body(c):
        return c * 2.0 if c < 4.0 else c + 3.0

    f = lambda x: fnad.while_loop(lambda c: c < 20.0, body, x, max_steps=50)
    assert f(1.0) == Loops.while_loop(lambda c: c < 20.0, body, 1.0)
    assert fnad.grad(f)(1.0) == 4.0
    with pytest.raises(ConcretizationError):
        fnad.jit(f)(1.0)


def test_bodies_may_write_into_the_carry():
    def body(c):
        c += 1.0
        return c

    x = np.zeros(2)
    assert_trees_close(fnad.while_loop(lambda c: c[0] < 3.0, body, x), np.full(2, 3.0))
    assert_trees_close(x, np.zeros(2))


@each_form
@pytest.mark.parametrize(
    ("cond", "body", "init", "error", "match"),
    [
        (lambda c: c > 0, lambda c: c.astype(np.float32), np.float64(1), DTypeError, "value: float64"),
        (lambda c: c[0] > 0, lambda c: c[:1], np.ones(2), ShapeError, "value: float64"),
        (lambda c: c["a"] > 0, lambda c: c["a"], {"a": 1.0}, TreeError, "value"),
        (lambda c: c, lambda c: c, np.ones(2), ShapeError, "one bool"),
        (lambda c: c, lambda c: c, 1.0, DTypeError, "one bool"),
        (lambda c: c > 0, None, 1.0, ArgumentError, "the body must be a function"),
        (True, lambda c: c, 1.0, ArgumentError, "the condition must be a function"),
        (lambda c: True, lambda c: c, "a", DTypeError, "numeric"),
    ],
)
def test_wrong_arguments(form, cond, body, init, error, match):
    if isinstance(init, str):
        with pytest.raises(error, match=match):
            form(lambda: fnad.while_loop(cond, body, init))()
        return
    for max_steps in (None, 3):
        with pytest.raises(error, match=match):
            form(lambda x: fnad.while_loop(cond, body, x, max_steps=max_steps))(init)  # noqa: B023


def test_wrong_bounds():
    with pytest.raises(DTypeError, match="bounds must be integers"):
        fnad.fori_loop(0, 2.5, lambda i, v: v, 1.0)
    with pytest.raises(DTypeError, match="bounds must be integers"):
        fnad.fori_loop(np.arange(2), 3, lambda i, v: v, 1.0)
    with pytest.raises(ArgumentError, match="must be a function"):
        fnad.fori_loop(0, 2, 1.0, 1.0)
    for steps in (-1, 2.5, "3"):
        with pytest.raises(ArgumentError, match="max_steps"):
            fnad.while_loop(lambda c: c > 0, lambda c: c, 1.0, max_steps=steps)


def test_paths_of_fori_loop_are_those_of_the_value():
    for form in (lambda f: f, recorded):
        with pytest.raises(ShapeError, match=r"value\['w'\]: float64\[2\] going in"):
            form(lambda w: fnad.fori_loop(0, 3, lambda i, v: {"w": np.ones(3)}, {"w": w}))(np.ones(2))
