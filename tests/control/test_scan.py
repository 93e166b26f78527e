"""scan, map and associative_scan: values, types, laws, errors, memory."""

from __future__ import annotations

import functools
import gc
import itertools
import threading
import tracemalloc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.control._reverse import Backward
from fnad.core.graph import Literal, evaluate, is_recording
from fnad.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError, TreeError
from fnad.testing import assert_trees_close, check_grads

from .programs import FORMS, Loops, each_form, equations, recorded

RNG = np.random.default_rng(5)


# -- laws ----------------------------------------------------------------------------------------------------------------

BODIES = {
    "affine": lambda c, x: (0.5 * c + x, c * x),
    "swap": lambda c, x: (x, c),
    "constant": lambda c, x: (np.ones_like(c), 2.0 * x),
    "same": lambda c, x: (c, None),
    "several": lambda c, x: (np.tanh(c - x), {"c": c, "sum": (np.sum(x), 1.0)}),
}


@given(
    st.sampled_from(sorted(BODIES)), st.integers(0, 6), st.booleans(), st.sampled_from([(), (2,), (2, 3)]), st.sampled_from(sorted(FORMS))
)
def test_scan_is_the_loop(body, length, reverse, shape, form):
    init, xs = RNG.standard_normal(shape)[()], RNG.standard_normal((length, *shape))
    f = lambda init, xs: fnad.scan(BODIES[body], init, xs, reverse=reverse)
    got = FORMS[form](f)(init, xs)
    if length:
        assert_trees_close(got, Loops.scan(BODIES[body], init, xs, reverse=reverse))
    else:
        assert_trees_close(got[0], init)
        one = Loops.scan(BODIES[body], init, np.zeros((1, *shape)))[1]
        assert_trees_close(got[1], fnad.tree.map(lambda y: y[:0], one))
    g = fnad.grad(lambda init, xs: sum(np.sum(np.cos(y)) for y in fnad.tree.leaves(FORMS[form](f)(init, xs))), (0, 1))(init, xs)
    if length:
        plain = lambda init, xs: sum(np.sum(np.cos(y)) for y in fnad.tree.leaves(Loops.scan(BODIES[body], init, xs, reverse=reverse)))
        assert_trees_close(g, fnad.grad(plain, (0, 1))(init, xs))


@given(st.integers(1, 7), st.sampled_from(sorted(FORMS)))
def test_reverse_is_flipping(length, form):
    init, xs = RNG.standard_normal(2), RNG.standard_normal((length, 2))
    c, ys = FORMS[form](lambda i, x: fnad.scan(BODIES["affine"], i, x, reverse=True))(init, xs)
    want_c, want_ys = fnad.scan(BODIES["affine"], init, xs[::-1])
    assert_trees_close((c, ys), (want_c, want_ys[::-1]), atol=0, rtol=0)


@given(st.integers(1, 7), st.one_of(st.integers(1, 9), st.booleans()), st.sampled_from(sorted(FORMS)))
def test_unroll_changes_nothing(length, unroll, form):
    init, xs = RNG.standard_normal(2), RNG.standard_normal((length, 2))
    f = lambda i, x: fnad.scan(BODIES["affine"], i, x, unroll=unroll)
    assert_trees_close(FORMS[form](f)(init, xs), fnad.scan(BODIES["affine"], init, xs), atol=0, rtol=0)


@given(st.integers(1, 40), st.one_of(st.integers(1, 12), st.just("binomial")), st.booleans())
def test_checkpoint_changes_nothing(length, checkpoint, reverse):
    w, init, xs = RNG.standard_normal((2, 2)), RNG.standard_normal(2), RNG.standard_normal((length, 2))

    def f(w, init, xs, checkpoint=None):
        c, ys = fnad.scan(lambda c, x: (np.tanh(w @ c + x), c * x), init, xs, reverse=reverse, checkpoint=checkpoint)
        return np.sum(c) + np.sum(np.cos(ys))

    g = functools.partial(f, checkpoint=checkpoint)
    assert_trees_close(g(w, init, xs), f(w, init, xs))
    assert_trees_close(fnad.grad(g, (0, 1, 2))(w, init, xs), fnad.grad(f, (0, 1, 2))(w, init, xs))


@given(st.integers(1, 5), st.integers(1, 5))
def test_scans_compose(n, m):
    """A scan over n + m steps is one over n and one over m."""
    init, xs = RNG.standard_normal(2), RNG.standard_normal((n + m, 2))
    c, first = fnad.scan(BODIES["affine"], init, xs[:n])
    c, last = fnad.scan(BODIES["affine"], c, xs[n:])
    assert_trees_close(fnad.scan(BODIES["affine"], init, xs), (c, np.concatenate([first, last])), atol=0, rtol=0)


# -- map and associative_scan ----------------------------------------------------------------------------------------------


@each_form
def test_map(form):
    xs = {"a": RNG.standard_normal((4, 2)), "b": np.arange(4)}
    got = form(lambda xs: fnad.map(lambda x: (x["a"] * x["b"], np.sum(x["a"])), xs))(xs)
    assert_trees_close(got, (xs["a"] * xs["b"][:, None], np.sum(xs["a"], axis=1)))


def matrices(n):
    return RNG.standard_normal((n, 2, 2))


def compose(a, b):
    """Affine functions, first a, then b."""
    return {"w": b["w"] @ a["w"], "b": (b["w"] @ a["b"][..., None])[..., 0] + b["b"]}


ASSOCIATIVE = {
    "add": (np.add, lambda n: RNG.standard_normal((n, 3))),
    "multiply": (np.multiply, RNG.standard_normal),
    "maximum": (np.maximum, RNG.standard_normal),
    "matmul": (lambda a, b: a @ b, matrices),
    "affine": (compose, lambda n: {"w": matrices(n), "b": RNG.standard_normal((n, 2))}),
    "integers": (np.add, np.arange),
    "bools": (np.logical_or, lambda n: np.arange(n) == 3),
    "float32": (np.add, lambda n: np.ones(n, np.float32)),
}


def sequential(fn, elems, reverse):
    n = len(fnad.tree.leaves(elems)[0])
    order = range(n)[::-1] if reverse else range(n)
    rows = {order[0]: fnad.tree.map(lambda x: x[order[0]], elems)}
    for last, i in itertools.pairwise(order):
        rows[i] = fn(rows[last], fnad.tree.map(lambda x: x[i], elems))  # noqa: B023
    return fnad.tree.map(lambda *r: np.stack(r), *(rows[i] for i in range(n)))


@settings(max_examples=25)
@given(st.sampled_from(sorted(ASSOCIATIVE)), st.integers(1, 20), st.booleans(), st.sampled_from(sorted(FORMS)))
def test_associative_scan_is_sequential(name, n, reverse, form):
    fn, draw = ASSOCIATIVE[name]
    elems = draw(n)
    got = FORMS[form](lambda e: fnad.associative_scan(fn, e, reverse=reverse))(elems)
    assert_trees_close(got, sequential(fn, elems, reverse), atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_associative_scan_along_an_axis(axis):
    x = RNG.standard_normal((3, 5, 4))
    assert_trees_close(fnad.associative_scan(np.add, x, axis=axis), np.cumsum(x, axis))
    assert_trees_close(fnad.vmap(lambda r: fnad.associative_scan(np.add, r, axis=axis))(np.stack([x, 2 * x]))[1], 2 * np.cumsum(x, axis))
    check_grads(lambda x: np.sin(fnad.associative_scan(np.multiply, x, axis=axis)), (x,), order=1)


def test_associative_scan_of_nothing():
    assert_trees_close(fnad.associative_scan(np.add, np.zeros((0, 2))), np.zeros((0, 2)))
    assert fnad.associative_scan(np.add, ()) == ()


def test_associative_scan_calls_grow_with_the_logarithm():
    calls = []
    fnad.associative_scan(lambda a, b: calls.append(1) or a + b, np.ones(1024))
    assert len(calls) <= 20


def test_errors_of_associative_scan():
    with pytest.raises(ShapeError, match="same size along the axis"):
        fnad.associative_scan(lambda a, b: a, (np.ones(2), np.ones(3)))
    with pytest.raises(ShapeError, match="must have the axis"):
        fnad.associative_scan(np.add, np.ones(2), axis=1)
    with pytest.raises(ShapeError, match="keep shapes"):
        fnad.associative_scan(lambda a, b: np.sum(a + b), np.ones((4, 2)))
    with pytest.raises(TreeError):
        fnad.associative_scan(lambda a, b: (a, b), np.ones(4))
    with pytest.raises(ArgumentError, match="must be a function"):
        fnad.associative_scan(np.ones(3), np.ones(3))


# -- types of the carry --------------------------------------------------------------------------------------------------

X32, X64, XI = np.ones(3, np.float32), np.ones(3), np.arange(3)
add = lambda c, x: (c + x, c)


@each_form
@pytest.mark.parametrize(
    ("body", "init", "xs", "carry", "ys"),
    [
        (add, 0.0, X32, np.float32, np.float32),
        (add, 0, X32, np.float32, np.float32),
        (add, 0, XI, np.int64, np.int64),
        (add, 0, X64, np.float64, np.float64),
        (add, True, X64 > 0, np.bool_, np.bool_),
        (add, 0, 1j * X64, np.complex128, np.complex128),
        (add, np.float32(0), X32, np.float32, np.float32),
        (lambda c, x: (c + 0.5, x), 0, X32, np.float64, np.float32),
        (lambda c, x: (c + 1, c), 0, X32, np.int64, np.int64),
        (lambda c, x: (0.0, c), np.float32(1), X32, np.float32, np.float32),
        (lambda c, x: (c * 2.0, 0.5), 1.0, X32, np.float64, np.float64),
        (lambda c, x: ((c[1], c[0]), c[0]), (0.0, np.float32(1)), X32, np.float32, np.float32),
    ],
)
def test_python_scalars_give_way(form, body, init, xs, carry, ys):
    c, y = form(lambda xs: fnad.scan(body, init, xs))(xs)
    assert all(np.asarray(leaf).dtype == carry for leaf in fnad.tree.leaves(c))
    assert y.dtype == ys
    assert y.shape == (3,)


@each_form
def test_first_results_have_the_dtype_of_the_others(form):
    _, ys = form(lambda xs: fnad.scan(lambda c, x: (c + x, c / 3.0), 1.0, xs))(X32)
    assert ys[0] == np.float32(1) / np.float32(3)


@each_form
def test_fori_counter_is_a_python_scalar(form):
    assert form(lambda x: fnad.fori_loop(0, 3, lambda i, v: v * i + 0.5, x))(X32).dtype == np.float32


@each_form
def test_plain_types_come_out(form):
    c, ys = form(lambda x: fnad.scan(lambda c, x: (c + x, x), np.float64(0), x))(X64)
    assert type(c) is np.float64
    assert type(ys) is np.ndarray


def mismatches(form):
    return lambda f, init, xs: form(lambda init, xs: fnad.scan(f, init, xs))(init, xs)


@each_form
def test_mismatch_of_dtype(form):
    with pytest.raises(DTypeError) as e:
        mismatches(form)(lambda c, x: ({"w": c["w"] * x, "n": c["n"]}, None), {"w": np.ones(2, np.float32), "n": np.int64(0)}, X64)
    assert "carry['w']: float32[2] going in, float64[2] coming out" in str(e.value)
    assert "init.astype(np.float64)" in str(e.value)
    with pytest.raises(DTypeError, match="int64"):
        mismatches(form)(add, XI[0], X64)


@each_form
def test_mismatch_of_shape(form):
    with pytest.raises(ShapeError) as e:
        mismatches(form)(lambda c, x: ((c[0], np.concatenate([c[1], c[1]])), None), (0.0, np.ones(2)), X64)
    assert "carry[1]: float64[2] going in, float64[4] coming out" in str(e.value)
    with pytest.raises(ShapeError, match=r"np.zeros\(\(3,\), np.float64\)"):
        mismatches(form)(lambda c, x: (c + np.ones(3), None), 0.0, X64)


@each_form
def test_mismatch_of_structure(form):
    with pytest.raises(TreeError, match="carry") as e:
        mismatches(form)(lambda c, x: ({"a": c["a"]}, None), {"a": 0.0, "b": 1.0}, X64)
    assert "entries ['a'], ['b']" in str(e.value)


@each_form
def test_what_is_no_pair(form):
    with pytest.raises(ArgumentError, match="pair"):
        mismatches(form)(lambda c, x: c, 0.0, X64)
    with pytest.raises(DTypeError, match="numeric"):
        mismatches(form)(lambda c, x: (c, "text"), 0.0, X64)


def test_mismatch_in_a_later_step():
    with pytest.raises(DTypeError, match=r"float64\[2\] going in, float32\[2\] coming out"):
        fnad.scan(lambda c, x: (c if x < 2 else c.astype(np.float32), None), np.ones(2), np.arange(4))
    with pytest.raises(ShapeError, match="one shape"):
        fnad.scan(lambda c, x: (c, np.ones(int(x))), 0.0, np.arange(4))
    with pytest.raises(TreeError):
        fnad.scan(lambda c, x: (c, x if x < 2 else (x, x)), 0.0, np.arange(4))


@each_form
@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda s: s(add, 0.0, None), ArgumentError, "number of steps"),
        (lambda s: s(add, 0.0, (np.ones(3), np.ones(4))), ShapeError, "one size"),
        (lambda s: s(add, 0.0, np.ones(3), 4), ShapeError, "one size"),
        (lambda s: s(add, 0.0, 1.0), ShapeError, "first axis"),
        (lambda s: s(add, 0.0, None, -1), ArgumentError, "negative"),
        (lambda s: s(add, 0.0, None, 2.5), ArgumentError, "int"),
        (lambda s: s(0.0, add, np.ones(3)), ArgumentError, "must be a function"),
        (lambda s: s(add, "0", np.ones(3)), DTypeError, "numeric"),
        (lambda s: s(add, 0.0, np.array(["a"])), DTypeError, "numeric"),
        (lambda s: s(add, 0.0, np.ones(3), unroll=0.5), ArgumentError, "unroll"),
        (lambda s: s(add, 0.0, np.ones(3), unroll=-1), ArgumentError, "unroll"),
        (lambda s: s(add, 0.0, np.ones(3), checkpoint=0), ArgumentError, "checkpoint"),
        (lambda s: s(add, 0.0, np.ones(3), checkpoint="all"), ArgumentError, "checkpoint"),
    ],
)
def test_wrong_arguments(form, call, error, match):
    with pytest.raises(error, match=match):
        form(lambda: call(fnad.scan))()


# -- eagerly ---------------------------------------------------------------------------------------------------------------


def test_bodies_may_look_at_values():
    def body(c, x):
        if x > 1.0:
            c = c * 2.0
        while c > 10.0:
            c = c - 10.0
        return c + x, float(fnad.stop_gradient(c))

    xs = np.array([1.0, 2.0, 3.0])
    f = lambda w: fnad.scan(body, w, xs)
    assert_trees_close(f(4.0), Loops.scan(body, 4.0, xs))
    assert fnad.grad(lambda w: f(w)[0])(4.0) == fnad.grad(lambda w: Loops.scan(body, w, xs)[0])(4.0)
    with pytest.raises(ConcretizationError, match=r"test_scan\.py"):
        fnad.jit(f)(4.0)


def test_known_values_are_looped_over_even_while_recording():
    body = lambda c, x: (c + x if x > 1.0 else c, None)
    f = lambda y: y * fnad.scan(body, 0.0, np.array([1.0, 2.0, 3.0]))[0]
    assert fnad.jit(f)(2.0) == 10.0


def test_bodies_may_write_into_what_they_get():
    """Neither the caller's arrays nor results already returned change."""

    def body(c, x):
        c += x
        x *= 2.0
        return c, c

    init, xs = np.zeros(2), np.ones((3, 2))
    want = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    for f in (lambda i, x: fnad.scan(body, i, x), fnad.jit(lambda i, x: fnad.scan(body, i, x))):
        c, ys = f(init, xs)
        assert_trees_close((c, ys), (want[-1], want))
    assert_trees_close((init, xs), (np.zeros(2), np.ones((3, 2))))


def test_two_places_of_a_carry_are_two_arrays():
    def body(c, x):
        a, b = c
        a += x
        return (b, b), a - b

    _, ys = fnad.scan(body, (np.zeros(1), np.zeros(1)), np.ones(3))
    assert_trees_close(ys, np.ones((3, 1)))


def test_results_are_not_the_arguments():
    x = np.ones(3)
    c, _ = fnad.scan(lambda c, _: (c, None), x, None, length=2)
    assert not np.shares_memory(c, x)


# -- as an equation ----------------------------------------------------------------------------------------------------------


def test_one_equation_whatever_the_length():
    f = lambda w, x: fnad.scan(lambda c, x: (np.tanh(w @ c) + x, None), np.zeros(2), x)[0]
    w = np.ones((2, 2))
    for g in (f, fnad.grad(lambda w, x: np.sum(f(w, x)))):
        short, long = (equations(g, w, np.ones((n, 2))) for n in (2, 1000))
        assert [e.primitive.name for e in short] == [e.primitive.name for e in long]
        assert sum(e.primitive.name == "scan" for e in short) == (1 if g is f else 2)


def test_traced_values_that_only_the_body_knows_make_one_equation():
    w = np.ones((2, 2))
    names = [e.primitive.name for e in equations(lambda w: fnad.fori_loop(0, 50, lambda i, v: w @ v, np.ones(2)), w)]
    assert names == ["scan"]
    names = [
        e.primitive.name
        for e in equations(lambda t: fnad.jvp(lambda w: fnad.fori_loop(0, 50, lambda i, v: w @ v, np.ones(2)), (w,), (t,))[1], w)
    ]
    assert names == ["scan"]


def test_the_backward_pass_computes_only_what_is_asked():
    def f(w, xs):
        return np.sum(fnad.scan(lambda c, x: (np.tanh(w @ c + x), np.exp(c)), np.zeros(2), xs)[0])

    _, back = [e for e in equations(fnad.grad(f), np.ones((2, 2)), np.ones((5, 2))) if e.primitive.name == "scan"]
    assert len(back.outputs) == 2  # the cotangents of the carry and of the matrix product
    assert not any(e.primitive.name == "exp" for e in back.params["body"].equations)
    steps = [v for v in back.inputs if not isinstance(v, Literal) and v.aval.shape == (5, 2)]
    assert len(steps) == 2  # xs and the product; no zeros for the results that nothing reads


def test_matrix_products_are_not_computed_again():
    def f(w, xs, checkpoint=None):
        return np.sum(fnad.scan(lambda c, x: (np.tanh(w @ c + x), None), np.zeros(2), xs, checkpoint=checkpoint)[0])

    count = lambda graph: sum("matmul" in e.primitive.name for e in graph.equations)
    forward, back = [e.params["body"] for e in equations(fnad.grad(f), np.ones((2, 2)), np.ones((5, 2))) if e.primitive.name == "scan"]
    assert count(forward) == 1
    assert count(back) == 1  # the cotangent of the carry; that of w is one product for all steps, behind the loop


@pytest.mark.parametrize("shape", [(3,), (1, 3), (5, 3), (2, 5, 3), (0, 3)])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_products_are_summed_behind_the_loop(shape, length):
    """Weights that are used twice, as they are and turned, together with a term that is no product."""
    w, v = RNG.standard_normal((3, 3)), RNG.standard_normal((3, 3))
    xs = RNG.standard_normal((length, *shape))

    def f(lib, w, v, xs):
        def body(h, x):
            y = np.tanh(h @ w + x @ v) @ w
            return np.sin(y @ w.T) + 0.1 * x, np.sum(w) * np.sum(y @ v)

        h, ys = lib.scan(body, np.ones(shape), xs)
        return np.sum(h * np.cos(h)) + np.sum(ys)

    got = fnad.grad(recorded(lambda *args: f(fnad, *args)), (0, 1, 2))(w, v, xs)
    want = fnad.grad(lambda *args: f(Loops if length else fnad, *args), (0, 1, 2))(w, v, xs)
    assert_trees_close(got, want)


def test_a_way_back_that_needs_more_falls_back_on_the_full_one(monkeypatch):
    counter = itertools.count()
    monkeypatch.setattr(Backward, "reads", lambda self: {next(counter)})
    f = recorded(lambda x: fnad.scan(lambda c, y: ((np.sin(c[0]) * y, c[1] * c[0]), c[1] + y), (x, x), x * np.ones(3)))
    plain = lambda x: Loops.scan(lambda c, y: ((np.sin(c[0]) * y, c[1] * c[0]), c[1] + y), (x, x), x * np.ones(3))
    for pick in (lambda out: out[0][0], lambda out: out[0][1], lambda out: np.sum(out[1])):
        got, want = (fnad.grad(lambda x, g=g, pick=pick: pick(g(x)))(0.7) for g in (f, plain))
        assert_trees_close(got, want)


def test_printing_shows_bodies():
    text = str(fnad.make_graph(lambda x: fnad.cond(x > 0, lambda: fnad.fori_loop(0, 3, lambda i, c: c * x, 1.0), lambda: 2.0 * x))(1.0))
    assert text == PRINTED


PRINTED = """\
inputs    a:float64[]~
  b:bool[] = greater a 0
  c:float64[]~ = cond b a
    branches[0]:
      inputs    a:float64[]~
        b:float64[]~ = multiply 2.0 a
      outputs   b
    branches[1]:
      inputs    a:float64[]~
        b:int64[]~ c:float64[]~ = scan carry=2 checkpoint=False consts=1 length=3 reverse=False unroll=1 a 0 1.0
          body:
            inputs    a:float64[]~ b:int64[]~ c:float64[]~
              d:int64[]~ = add b 1
              e:float64[]~ = multiply c a
            outputs   d e
      outputs   c
outputs   c"""


def test_closed_over_arrays_are_taken_by_reference():
    table = np.array([1.0, 2.0])
    f = fnad.jit(lambda x: fnad.fori_loop(0, 2, lambda i, v: v * table, x))
    assert_trees_close(f(np.ones(2)), np.array([1.0, 4.0]))
    table[0] = 3.0
    assert_trees_close(f(np.ones(2)), np.array([9.0, 4.0]))


def test_an_error_leaves_no_recording_behind():
    def body(c, x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fnad.make_graph(lambda x: fnad.scan(body, 0.0, x))(np.ones(2))
    assert not is_recording()


def test_derived_bodies_die_with_the_function():
    f = lambda x: np.sum(fnad.scan(lambda c, x: (np.sin(c) + x, c), 0.0, x)[1])
    graph = fnad.make_graph(f)(np.ones(3))
    body = graph.equations[0].params["body"]
    fnad.grad(functools.partial(first_output, graph))(np.ones(3))
    assert body.derived
    marker = Marker()
    body.derived["marker"] = marker
    alive = weakref.ref(marker)
    del graph, body, marker
    gc.collect()
    assert alive() is None


def first_output(graph, x):
    return evaluate(graph, [x])[0]


class Marker:
    """Something that can be referred to weakly."""


def test_threads_do_not_meet():
    w = RNG.standard_normal((2, 2))
    f = lambda w, n: np.sum(fnad.fori_loop(0, n, lambda i, v: np.tanh(w @ v), np.ones(2)))
    want = [fnad.grad(f)(w, n) for n in range(1, 9)]
    got = [None] * 8

    def work(k):
        for _ in range(5):
            got[k] = fnad.jit(fnad.grad(f), static_argnums=1)(w, k + 1) if k % 2 else fnad.grad(f)(w, k + 1)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert_trees_close(got, want)


# -- memory --------------------------------------------------------------------------------------------------------------------


def peak(f, *args):
    f(*args)
    tracemalloc.start()
    f(*args)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_checkpoint_saves_memory():
    """In units of one carry, for 400 steps: all of them, about twice the square root, a multiple of the logarithm."""
    n, size = 400, 4000
    x = RNG.standard_normal(size)

    def measure(checkpoint):
        f = lambda x: np.sum(fnad.scan(lambda c, _: (np.sin(c) * x, None), x, None, length=n, checkpoint=checkpoint)[0])
        graph = fnad.make_graph(fnad.grad(f))(x)
        return peak(lambda x: evaluate(graph, [x]), x) / (8 * size)

    everything, segments, logarithmic = measure(None), measure(20), measure("binomial")
    assert everything > n
    assert segments < 70
    assert logarithmic < 60


def test_logarithmic_memory():
    """A hundred times as many steps need little more than twice as much."""
    size = 2000
    x = RNG.uniform(-1.0, 1.0, size)

    def measure(n):
        f = lambda x: np.sum(fnad.scan(lambda c, _: (np.sin(c) * x, None), x, None, length=n, checkpoint="binomial")[0])
        graph = fnad.make_graph(fnad.grad(f))(x)
        return peak(lambda x: evaluate(graph, [x]), x) / (8 * size)

    assert measure(2000) < 2.5 * measure(20)
