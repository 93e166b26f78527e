"""Random compositions of NumPy functions, over random pytrees: all ways of running them agree."""

from __future__ import annotations

import traceback

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

import fnad
from fnad.core.graph import evaluate
from fnad.testing import assert_trees_close, check_grads, check_vmap
from fnad.testing.programs import Program, random_program
from fnad.testing.strategies import programs

SEEDS = st.integers(0, 1000)


@st.composite
def nested(draw, leaves):
    """The leaves, in order, at the ends of a random pytree."""
    if len(leaves) == 1:
        return draw(st.sampled_from([leaves[0], [leaves[0]], {"only": leaves[0]}, (None, leaves[0])]))
    cut = draw(st.integers(1, len(leaves) - 1))
    first, second = draw(nested(leaves[:cut])), draw(nested(leaves[cut:]))
    return draw(st.sampled_from([(first, second), [first, None, second], {"a": first, "b": second}]))


def of_tree(program):
    """The program as a function of one pytree."""
    return lambda tree: program(*fnad.tree.leaves(tree))


def plain_dtypes(tree):
    return [np.asarray(x).dtype for x in fnad.tree.leaves(tree)]


@given(programs(), SEEDS)
def test_value_while_traced_equals_plain_numpy(program, seed):
    args = program.draw_args(seed=seed)
    want = program(*args)
    assert_trees_close(fnad.vjp(program, *args)[0], want)
    assert_trees_close(fnad.jvp(program, tuple(args), tuple(args))[0], want)
    loss, _ = fnad.value_and_grad(program.scalar)(*args)
    assert_trees_close(loss, np.float64(program.scalar(*args)))


@settings(max_examples=40)
@given(programs(smooth=True), st.data())
def test_derivatives_of_smooth_programs_to_second_order(program, data):
    """Both modes against central differences and against each other, and their derivatives likewise."""
    tree = data.draw(nested(program.draw_args()))
    check_grads(of_tree(program), (tree,), order=2, atol=1e-5, rtol=1e-5)


@given(programs(smooth=False), st.data())
def test_derivatives_of_programs_with_kinks(program, data):
    tree = data.draw(nested(program.draw_args(seed=data.draw(SEEDS))))
    check_grads(of_tree(program), (tree,), order=1, atol=1e-5, rtol=1e-5)


@given(programs(smooth=True, max_steps=4))
def test_derivatives_of_complex_programs(program):
    args = program.draw_args(np.complex128)
    with np.errstate(all="ignore"):
        try:
            value = program(*args)
        except (TypeError, np.exceptions.ComplexWarning):  # NumPy has no such function of complex numbers
            reject()
    assume(all(np.all(np.abs(v) < 1e3) for v in value.values()))
    check_grads(program, tuple(args), order=1, atol=1e-5, rtol=1e-5)
    check_vmap(program, tuple(np.stack([a, 0.5 * a]) for a in args))


@given(programs(), st.data())
def test_gradient_is_a_pytree_like_the_parameters(program, data):
    tree = data.draw(nested(program.draw_args()))
    grads = fnad.grad(lambda t: program.scalar(*fnad.tree.leaves(t)))(tree)
    assert fnad.tree.structure(grads) == fnad.tree.structure(tree)
    assert [np.shape(g) for g in fnad.tree.leaves(grads)] == [np.shape(x) for x in fnad.tree.leaves(tree)]
    flat = fnad.grad(program.scalar, argnums=tuple(range(len(program.inputs))))(*fnad.tree.leaves(tree))
    assert_trees_close(fnad.tree.leaves(grads), list(flat), atol=0, rtol=0)


@given(programs(), st.data())
def test_vmap_equals_a_loop(program, data):
    """Some arguments mapped, along any axis; the value and the gradient."""
    args = program.draw_args()
    mapped = [data.draw(st.booleans()) for _ in args]
    mapped[data.draw(st.integers(0, len(args) - 1))] = True
    axes = tuple(data.draw(st.integers(-np.ndim(a) - 1, np.ndim(a))) if m else None for a, m in zip(args, mapped, strict=True))
    batches = [a if axis is None else np.stack([a, 0.5 * a, a - 0.1], axis=axis) for a, axis in zip(args, axes, strict=True)]
    out_axis = data.draw(st.sampled_from([0, -1]))
    check_vmap(program, tuple(batches), axes, out_axis)
    check_vmap(fnad.grad(program.scalar), tuple(batches), axes)


@settings(max_examples=30)
@given(programs(), st.data())
def test_transforms_commute_with_vmap(program, data):
    """The gradient of a mapped function, summed, is the mapped gradient."""
    args = program.draw_args()
    batches = [np.stack([a, 0.5 * a]) for a in args]
    inside = fnad.vmap(fnad.grad(program.scalar))(*batches)
    outside = fnad.grad(lambda *xs: np.sum(fnad.vmap(program.scalar)(*xs)))(*batches)
    assert_trees_close(inside, outside)


@given(programs(), st.data())
def test_recorded_program_equals_eager_one(program, data):
    tree = data.draw(nested(program.draw_args()))
    want = program(*fnad.tree.leaves(tree))
    graph = fnad.make_graph(of_tree(program))(tree)
    assert str(graph).startswith("inputs")
    assert_trees_close(evaluate(graph, fnad.tree.leaves(tree)), fnad.tree.leaves(want))
    shapes = fnad.eval_shape(of_tree(program), tree)
    assert fnad.tree.map(lambda a: (a.shape, a.dtype), shapes) == fnad.tree.map(lambda x: (np.shape(x), np.asarray(x).dtype), want)


@settings(max_examples=30)
@given(programs())
def test_recorded_gradient_equals_eager_one(program):
    args = program.draw_args()
    gradient = fnad.grad(program.scalar, argnums=tuple(range(len(args))))
    graph = fnad.make_graph(gradient)(*args)
    assert_trees_close(evaluate(graph, args), list(gradient(*args)))


@settings(max_examples=20)
@given(programs(max_steps=5))
def test_gradient_of_a_recorded_program(program):
    args = program.draw_args()
    graph = fnad.make_graph(program.scalar)(*args)
    got = fnad.grad(lambda *xs: evaluate(graph, xs)[0], argnums=tuple(range(len(args))))(*args)
    assert_trees_close(got, fnad.grad(program.scalar, argnums=tuple(range(len(args))))(*args))


@given(programs(), SEEDS)
def test_float32_stays_float32(program, seed):
    """Values have the dtype that plain NumPy gives, gradients that of their arguments; and they are about right."""
    args = program.draw_args(np.float32, seed)
    want = program(*args)
    value, pullback = fnad.vjp(program, *args)
    tangent = fnad.jvp(program, tuple(args), tuple(args))[1]
    assert plain_dtypes(value) == plain_dtypes(want) == plain_dtypes(tangent)
    grads = pullback(value)
    assert plain_dtypes(grads) == [np.dtype(np.float32)] * len(args)
    wide = [a.astype(np.float64) for a in args]
    exact = fnad.grad(program.scalar, argnums=tuple(range(len(args))))(*wide)
    single = fnad.grad(program.scalar, argnums=tuple(range(len(args))))(*args)
    size = max(1.0, *(float(np.max(np.abs(g), initial=0.0)) for g in exact))
    for a, b in zip(single, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-3 * size)


@given(programs(), st.data())
def test_dtypes_are_those_of_numpy(program, data):
    """Arguments of several precisions: values, tangents and recordings promote as plain NumPy does; gradients do not."""
    dtypes = [data.draw(st.sampled_from(["f2", "f4", "f8"])) for _ in program.inputs]
    args = [program.draw_args(d)[i][()] for i, d in enumerate(dtypes)]
    with np.errstate(all="ignore"):
        try:
            want = plain_dtypes(program(*args))
        except TypeError:  # half precision has no linear algebra
            reject()
        value, pullback = fnad.vjp(program, *args)
        assert plain_dtypes(value) == want
        assert plain_dtypes(pullback(value)) == [np.dtype(d) for d in dtypes]
        assert plain_dtypes(fnad.jvp(program, tuple(args), tuple(args))) == want * 2
        assert plain_dtypes(fnad.vmap(program)(*[np.stack([a, a]) for a in args])) == want
        assert [a.dtype for a in fnad.tree.leaves(fnad.eval_shape(program, *args))] == want
        assert plain_dtypes(evaluate(fnad.make_graph(program)(*args), args)) == want


@settings(max_examples=20)
@given(programs(smooth=True, max_steps=5))
def test_hessian_vector_products_agree(program):
    """Forward over reverse, reverse over forward and reverse over reverse."""
    args = tuple(program.draw_args())
    directions = tuple(np.cos(3.0 * a) for a in args)
    numbers = tuple(range(len(args)))
    gradient = fnad.grad(program.scalar, argnums=numbers)
    forward_over_reverse = fnad.jvp(gradient, args, directions)[1]
    reverse_over_forward = fnad.grad(lambda *xs: fnad.jvp(program.scalar, xs, directions)[1], argnums=numbers)(*args)

    def product(*xs):
        return sum(np.sum(g * d) for g, d in zip(gradient(*xs), directions, strict=True))

    reverse_over_reverse = fnad.grad(product, argnums=numbers)(*args)
    size = max(1.0, *(float(np.max(np.abs(g), initial=0.0)) for g in forward_over_reverse))
    assert_trees_close(reverse_over_forward, forward_over_reverse, atol=1e-9 * size)
    assert_trees_close(reverse_over_reverse, forward_over_reverse, atol=1e-9 * size)


def test_programs_print_as_source():
    source = 'def program(x0):\n    v0 = np.sin(x0)\n    return {"r0": v0}'
    program = Program(source, ((2,),), smooth=True)
    assert source in repr(program)
    assert program.scalar(np.full(2, 0.5)) == pytest.approx(2 * np.sin(0.5))


def test_a_program_with_fewer_steps_is_the_beginning_of_one_with_more():
    for seed in range(20):
        short, long = random_program(seed, 3, True), random_program(seed, 6, True)
        assert short.inputs == long.inputs
        assert long.source.startswith(short.source[: short.source.rindex("    return")])


def test_error_in_a_program_shows_its_line():
    program = Program('def program(x0):\n    v0 = np.trim_zeros(x0)\n    return {"r0": v0}', ((2,),), smooth=True)
    with pytest.raises(fnad.errors.UnsupportedError) as caught:
        fnad.grad(program.scalar)(np.ones(2))
    assert "v0 = np.trim_zeros(x0)" in "".join(traceback.format_exception(caught.value))
