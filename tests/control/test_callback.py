"""fnad.pure_callback, fnad.debug.callback and fnad.debug.print."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from fnad.testing import assert_trees_close

from .programs import each_form

X = np.arange(3.0)
FORMS = {"eager": lambda f: f, "jit": fnad.jit, "twice": lambda f: fnad.jit(fnad.jit(f))}
forms = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def noting(f):
    """A function, and what it noted so far."""
    seen = []
    return (
        lambda *args: f(lambda *values: fnad.debug.callback(lambda *v: seen.append(tuple(np.copy(x).tolist() for x in v)), *values), *args)
    ), seen


def straight(note, x):
    note(x)
    note()
    y = np.sum(x * x)
    note(y, 7)
    note()
    return y


@forms
def test_every_call_notes_everything_in_order(form):
    f, seen = noting(straight)
    g = form(f)
    for k in (0.0, 1.0):
        x = X + k
        assert g(x) == np.sum(x * x)
        assert seen == [(x.tolist(),), (), (float(np.sum(x * x)), 7), ()]
        seen.clear()


TRANSFORMS = {
    "grad": (lambda f: fnad.grad(f), X, 2 * X),
    "value_and_grad": (lambda f: fnad.value_and_grad(f), X, (np.float64(5.0), 2 * X)),
    "jvp": (lambda f: lambda x: fnad.jvp(f, (x,), (x,)), X, (np.float64(5.0), np.float64(10.0))),
    "hessian": (lambda f: fnad.jacfwd(fnad.grad(f)), X, 2 * np.eye(3)),
}


@forms
@pytest.mark.parametrize(("transform", "x", "want"), TRANSFORMS.values(), ids=TRANSFORMS)
def test_derivatives_note_the_forward_pass_once(form, transform, x, want):
    f, seen = noting(straight)
    for g in (form(transform(f)), transform(form(f))):
        assert_trees_close(g(x), want)
        assert [v for v in seen if v] == [(X.tolist(),), (5.0, 7)]
        seen.clear()


@forms
def test_one_example_at_a_time(form):
    f, seen = noting(straight)
    x = np.stack([X, X + 1])
    assert_trees_close(form(fnad.vmap(f))(x), np.sum(x * x, axis=1))
    assert seen[:2] == [(X.tolist(),), ((X + 1).tolist(),)]
    assert seen[-3:-1] == [(5.0, 7), (14.0, 7)]


def scanned(note, x):
    return fnad.scan(lambda c, t: (note(t, c) or c * t, None), x, np.arange(1.0, 4.0))[0]


def repeated(note, x):
    return fnad.while_loop(lambda c: c < 10.0, lambda c: note(c) or c * 2.0, x)


def chosen(note, x):
    return fnad.cond(x > 0, lambda x: note(1.0, x) or x * x, lambda x: note(2.0, x) or -x, x)


def unused(note, x):
    scanned(note, x)
    return x


@forms
@pytest.mark.parametrize(
    ("f", "want"),
    [
        (scanned, [(1.0, 2.0), (2.0, 2.0), (3.0, 4.0)]),
        (repeated, [(2.0,), (4.0,), (8.0,)]),
        (chosen, [(1.0, 2.0)]),
        (unused, [(1.0, 2.0), (2.0, 2.0), (3.0, 4.0)]),
    ],
)
def test_loops_and_branches(form, f, want):
    for transform in (lambda f: f, fnad.jacfwd, *(() if f is repeated else (fnad.grad,))):
        g, seen = noting(f)
        form(transform(g))(np.float64(2.0))
        assert seen == want


def test_a_function_that_does_nothing_else(capsys):
    f = fnad.jit(lambda x: fnad.debug.print("{} {n:d}", x, n=3))
    assert f(1.5) is None
    assert f(2.5) is None
    assert capsys.readouterr().out == "1.5 3\n2.5 3\n"


def test_arguments_that_are_no_arrays(capsys):
    fnad.jit(lambda x: fnad.debug.print("{}: {d[a]}", "name", d={"a": x}))(np.ones(2))
    assert capsys.readouterr().out == "name: [1. 1.]\n"


def test_values_stay_though_the_memory_of_the_program_is_used_again():
    seen = []
    f = fnad.jit(lambda x: fnad.debug.callback(seen.append, x + 1.0) or np.sum(x))
    for k in range(3):
        f(np.full(4, float(k)))
    assert [v.tolist() for v in seen] == [[k + 1.0] * 4 for k in range(3)]


@forms
def test_what_it_raises_is_raised(form):
    def stop(x):
        raise RuntimeError(f"value {x}")

    with pytest.raises(RuntimeError, match=r"value 2\.0"):
        form(lambda x: fnad.debug.callback(stop, 2.0 * x) or x)(1.0)


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="format string"):
        fnad.debug.print(X)
    with pytest.raises(ArgumentError, match="function"):
        fnad.debug.callback("print", X)
    with pytest.raises(ArgumentError, match="vmap_method"):
        fnad.pure_callback(np.sum, np.float64(0), X, vmap_method="all")
    with pytest.raises(ArgumentError, match="shape and a dtype"):
        fnad.pure_callback(np.sum, 0.0, X)


# -- pure_callback -------------------------------------------------------------------------------------------------------


def reversed_sum(x):
    return fnad.pure_callback(lambda v: {"r": v[::-1].copy(), "s": np.float64(math.fsum(v))}, {"r": x, "s": np.float64(0)}, x)


@each_form
def test_results_are_those_of_the_function(form):
    f = form(lambda x: reversed_sum(np.sin(x))["r"] * 2.0 + reversed_sum(x)["s"])
    assert_trees_close(f(X), np.sin(X)[::-1] * 2.0 + 3.0)


@each_form
@pytest.mark.parametrize("method", ["sequential", "broadcast_all", "expand_dims"])
def test_batches(form, method):
    shapes = []

    def product(a, b):
        shapes.append((a.shape, b.shape))
        return np.sum(a * b, axis=-1)

    f = lambda a: fnad.pure_callback(product, np.float64(0), a, X, vmap_method=method)
    a = np.arange(6.0).reshape(2, 3)
    assert_trees_close(form(fnad.vmap(f))(a), a @ X)
    want = {"sequential": [((3,), (3,))] * 2, "broadcast_all": [((2, 3), (2, 3))], "expand_dims": [((2, 3), (1, 3))]}
    assert shapes[: len(want[method])] == want[method]  # a test of the printers may have called it again


@each_form
def test_with_a_derivative_of_its_own(form):
    @fnad.custom_vjp
    def erf(x):
        return fnad.pure_callback(lambda v: np.float64(math.erf(v)), np.float64(0), x)

    erf.defvjp(lambda x: (erf(x), x), lambda x, g: (g * 2 / np.sqrt(np.pi) * np.exp(-x * x),))
    assert_trees_close(form(fnad.grad(erf))(0.5), np.float64(2 / np.sqrt(np.pi) * np.exp(-0.25)))


@forms
def test_what_it_cannot_do(form):
    f = lambda x: np.sum(reversed_sum(x)["r"])
    for derivative in (fnad.grad, fnad.jacfwd):
        with pytest.raises(UnsupportedError, match="custom_vjp"):
            form(derivative(f))(X)
    with pytest.raises(UnsupportedError, match="vmap_method"):
        form(fnad.vmap(f))(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"returned: float64\[2\]"):
        form(lambda x: fnad.pure_callback(lambda v: v[:2], x, x))(X)
    with pytest.raises(DTypeError, match=r"returned: float32"):
        form(lambda x: fnad.pure_callback(lambda v: v.astype(np.float32), x, x))(X)


def test_in_loops():
    f = fnad.jit(lambda x: fnad.scan(lambda c, _: (reversed_sum(c)["r"] + 1.0, None), x, None, length=3)[0])
    assert_trees_close(f(X), np.array([5.0, 4.0, 3.0]))
