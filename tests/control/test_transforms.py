"""Every transform of every program: eagerly, recorded, and under jit, against the same program as a Python loop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fnad
from fnad.control._bodies import trim
from fnad.core.aval import aval_of
from fnad.core.graph import Graph, evaluate
from fnad.testing import assert_trees_close, check_grads, check_vmap

from .programs import FORMS, PROGRAMS, RNG, Program, each_form, recorded

each_program = pytest.mark.parametrize("name", PROGRAMS)


def loss(f):
    """A real scalar on which every floating-point result has an influence of its own."""

    def total(*args):
        out = 0.0
        for k, y in enumerate(fnad.tree.leaves(f(*args)), 1):
            aval = aval_of(y)
            if aval.dtype.kind in "fc":
                out = out + np.sum(np.sin(k + np.real(y)) * np.cos(np.arange(aval.size).reshape(aval.shape)) + np.imag(y) * k)
        return out

    return total


@each_program
@each_form
def test_value(name, form):
    p = PROGRAMS[name]
    assert_trees_close(form(p.function)(*p.args), p.plain(*p.args))


@each_program
@each_form
def test_gradient(name, form):
    p = PROGRAMS[name]
    if not p.reverse:
        pytest.skip("forward mode only")
    every = tuple(range(len(p.args)))
    want = fnad.grad(loss(p.plain), every)(*p.args)
    f = form(p.function)
    assert_trees_close(fnad.grad(loss(f), every)(*p.args), want)
    for n in every:  # cotangents of one argument alone
        assert_trees_close(fnad.grad(loss(f), n)(*p.args), want[n])


@each_program
def test_gradient_is_recorded(name):
    p = PROGRAMS[name]
    if not p.reverse:
        pytest.skip("forward mode only")
    every = tuple(range(len(p.args)))
    want = fnad.value_and_grad(loss(p.plain), every)(*p.args)
    gradient = fnad.value_and_grad(loss(p.function), every)
    assert_trees_close(recorded(gradient)(*p.args), want)
    assert_trees_close(fnad.jit(gradient)(*p.args), want)


@each_program
@each_form
def test_derivatives_of_both_modes_to_second_order(name, form):
    p = PROGRAMS[name]
    nested_twice = name.startswith(("segments", "binomial"))
    modes = ("fwd", "rev") if p.reverse else ("fwd",)
    check_grads(form(p.function), p.args, order=1 if nested_twice and form is fnad.jit else 2, modes=modes)


@each_program
def test_forward_mode_is_recorded(name):
    p = PROGRAMS[name]
    tangents = fnad.tree.map(lambda x: x * 0.3 + 0.1, p.args)
    push = lambda *args: fnad.jvp(p.function, args, tangents)
    want = fnad.jvp(p.plain, p.args, tangents)
    assert_trees_close(recorded(push)(*p.args), want)
    assert_trees_close(fnad.jit(push)(*p.args), want)


def batches(p: Program):
    """The arguments as batches of three, each subset of them."""
    n = len(p.args)
    for k in range(1, n + 1):
        for chosen in itertools.combinations(range(n), k):
            stacks = [fnad.tree.map(lambda x: np.stack([x, x * 0.9, x * 1.1]), a) if i in chosen else a for i, a in enumerate(p.args)]
            yield tuple(stacks), tuple(0 if i in chosen else None for i in range(n))


@each_program
@each_form
def test_vmap(name, form):
    p = PROGRAMS[name]
    f = form(p.function)
    for stacks, axes in list(batches(p))[-1 if form is fnad.jit else 0 :]:
        check_vmap(f, stacks, axes)


@each_program
def test_vmap_is_recorded(name):
    p = PROGRAMS[name]
    stacks, axes = list(batches(p))[-1]
    rows = [p.plain(*[fnad.tree.map(lambda x: x[i], s) for s in stacks]) for i in range(3)]  # noqa: B023
    want = fnad.tree.map(lambda *r: np.stack(r), *rows)
    f = fnad.vmap(p.function, axes)
    with np.errstate(all="ignore"):  # a recording runs all branches on all examples
        assert_trees_close(recorded(f)(*stacks), want)
        assert_trees_close(fnad.jit(f)(*stacks), want)


@each_program
@each_form
def test_per_example_gradients(name, form):
    """vmap(grad) and grad(vmap)."""
    p = PROGRAMS[name]
    if not p.reverse:
        pytest.skip("forward mode only")
    f = form(p.function)
    stacks, axes = next(batches(p))
    every = tuple(range(len(p.args)))
    rows = [
        fnad.grad(loss(p.plain), every)(*[a if x is None else fnad.tree.map(lambda y: y[i], a) for a, x in zip(stacks, axes, strict=True)])  # noqa: B023
        for i in range(3)
    ]
    want = fnad.tree.map(lambda *r: np.stack(r), *rows)
    assert_trees_close(fnad.vmap(fnad.grad(loss(f), every), axes)(*stacks), want)
    summed = fnad.grad(lambda *args: np.sum(fnad.vmap(loss(f), axes)(*args)), every)(*stacks)
    assert_trees_close(
        summed, tuple(w if x == 0 else fnad.tree.map(lambda y: np.sum(y, axis=0), w) for w, x in zip(want, axes, strict=True))
    )


@each_program
def test_empty_batch(name):
    p = PROGRAMS[name]
    empty = fnad.tree.map(lambda x: np.zeros((0, *x.shape), x.dtype), p.args)
    want = fnad.eval_shape(p.function, *p.args)
    got = fnad.vmap(recorded(p.function))(*empty)
    for g, w in zip(fnad.tree.leaves(got), fnad.tree.leaves(want), strict=True):
        assert g.shape == (0, *w.shape)


@each_program
@each_form
def test_single_precision(name, form):
    p = PROGRAMS[name]
    narrow = fnad.tree.map(lambda x: x.astype(np.complex64 if x.dtype.kind == "c" else np.float32), p.args)
    want = p.plain(*narrow)
    if any(aval_of(x).dtype == np.float64 for x in fnad.tree.leaves(want)):
        pytest.skip("makes float64 values of its own")
    f = form(p.function)
    assert_trees_close(f(*narrow), want)
    if p.reverse:
        every = tuple(range(len(p.args)))
        got = fnad.grad(loss(f), every)(*narrow)
        assert all(g.dtype == x.dtype for g, x in zip(fnad.tree.leaves(got), fnad.tree.leaves(narrow), strict=True))
        assert_trees_close(got, fnad.grad(loss(p.plain), every)(*narrow), atol=1e-4, rtol=1e-4)


@each_program
def test_linearize(name):
    p = PROGRAMS[name]
    tangents = fnad.tree.map(lambda x: x * 0.3 + 0.1, p.args)
    value, push = fnad.linearize(p.function, *p.args)
    want = fnad.jvp(p.plain, p.args, tangents)
    assert_trees_close((value, push(*tangents)), want)


def some_of(graph, outputs):
    return trim(Graph(graph.inputs, graph.constants, graph.equations, tuple(graph.outputs[k] for k in outputs)))


@each_program
def test_what_is_not_needed_is_not_computed(name):
    """Loops and branches lose the outputs that nothing reads; the others stay what they are."""
    p = PROGRAMS[name]
    functions = [p.function]
    if p.reverse:
        functions.append(lambda *args: fnad.vjp(p.function, *args)[1](fnad.tree.map(lambda x: x * 0 + 1, p.function(*args))))
    for f in functions:
        graph, leaves = fnad.make_graph(f)(*p.args), fnad.tree.leaves(p.args)
        want = evaluate(graph, leaves)
        for outputs in [(k,) for k in range(len(want))] + [tuple(range(1, len(want))), tuple(range(0, len(want), 2))]:
            assert_trees_close(evaluate(some_of(graph, outputs), leaves), [want[k] for k in outputs])


def test_what_is_not_needed_vanishes():
    def f(x, y):
        a, b = fnad.scan(lambda c, _: ((np.sin(c[0]), c[1] * y), (np.cos(c[1]), c[0])), (x, y), None, length=3)
        return *a, *b

    graph = fnad.make_graph(f)(1.0, 2.0)
    for k, (names, sizes) in enumerate([(["sin"], (0, 1)), (["multiply"], (1, 1)), (["cos", "multiply"], (1, 1)), (["sin"], (0, 1))]):
        (e,) = some_of(graph, (k,)).equations
        assert sorted(i.primitive.name for i in e.params["body"].equations) == names
        assert (e.params["consts"], e.params["carry"]) == sizes

    loop = lambda x, y: fnad.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x, c[2] * y), (0, x, y))
    (e,) = some_of(fnad.make_graph(loop)(1.0, 2.0), (1,)).equations
    assert (len(e.outputs), e.params["cond_consts"], e.params["body_consts"]) == (2, 0, 1)

    choice = lambda p, x, y: fnad.cond(p > 0, lambda: (x, np.sin(y)), lambda: (np.cos(x), y))
    e = some_of(fnad.make_graph(choice)(1.0, 2.0, 3.0), (0,)).equations[-1]
    assert (len(e.inputs), len(e.outputs)) == (2, 1)
    assert [len(b.equations) for b in e.params["branches"]] == [1, 0]


def test_hessian_of_a_recurrent_network():
    p = PROGRAMS["recurrent"]
    want = fnad.hessian(loss(p.plain))(*p.args)
    for form in FORMS.values():
        f = form(p.function)
        assert_trees_close(fnad.hessian(loss(f))(*p.args), want)
        assert_trees_close(fnad.jacfwd(fnad.jacrev(loss(f)))(*p.args), want)
        assert_trees_close(fnad.jacrev(fnad.jacrev(loss(f)))(*p.args), want)


def test_third_order():
    f = lambda x: fnad.fori_loop(0, 3, lambda i, y: np.sin(y * x), x)
    plain = lambda x: np.sin(np.sin(np.sin(x * x) * x) * x)
    third = lambda f: fnad.grad(fnad.grad(fnad.grad(f)))
    assert_trees_close(third(f)(0.8), third(plain)(0.8))
    assert_trees_close(fnad.jit(third(f))(0.8), third(plain)(0.8))
    assert_trees_close(third(fnad.jit(f))(0.8), third(plain)(0.8))


def test_random_directions_agree_between_modes():
    """<u, J t> == <J' u, t>, recorded."""
    p = PROGRAMS["trees"]
    f = recorded(p.function)
    tangents = fnad.tree.map(lambda x: RNG.standard_normal(x.shape)[()], p.args)
    out, dots = fnad.jvp(f, p.args, tangents)
    ct = fnad.tree.map(
        lambda x: np.cos(np.arange(float(x.size))).reshape(x.shape)[()] if x.dtype.kind == "f" else np.zeros(x.shape, x.dtype)[()], out
    )
    _, pull = fnad.vjp(f, *p.args)
    left = sum(np.sum(u * t) for u, t in zip(fnad.tree.leaves(ct), fnad.tree.leaves(dots), strict=True))
    right = sum(np.sum(u * t) for u, t in zip(fnad.tree.leaves(pull(ct)), fnad.tree.leaves(tangents), strict=True))
    assert_trees_close(left, right)
