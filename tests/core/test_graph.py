"""Recorded graphs: what is recorded, how it prints, what evaluates, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import fnad
from fnad.core.aval import Aval
from fnad.core.graph import evaluate
from fnad.errors import ConcretizationError, DTypeError, ShapeError
from fnad.testing import assert_trees_close

X = np.ones(3)


def test_print():
    w = np.ones((3, 2), np.float32)
    graph = fnad.make_graph(lambda x, y: (np.tanh(x) @ w * 2.0 + y, np.sum(x, axis=0), 7))(X, 0.5)
    assert str(graph) == "\n".join(
        [
            "inputs    a:float64[3] b:float64[]~",
            "constants c:float32[3,2]",
            "  d:float64[3] = tanh a",
            "  e:float64[2] = matmul d c",
            "  f:float64[2] = multiply e 2.0",
            "  g:float64[2] = add f b",
            "  h:float64[] = sum axis=(0,) a",
            "outputs   g h 7",
        ]
    )
    assert repr(graph) == str(graph)


def test_names_go_on_after_z():
    def f(x):
        for _ in range(30):
            x = np.sin(x)
        return x

    text = str(fnad.make_graph(f)(X))
    assert "  aa:float64[3] = sin z" in text
    assert "outputs   ae" in text


def test_equations_know_the_users_line():
    def f(x):
        return np.tanh(x)  # the line

    (equation,) = fnad.make_graph(f)(X).equations
    assert "test_graph.py" in equation.line
    assert "# the line" in equation.line


def test_constants_are_taken_once_and_by_reference():
    w = np.arange(3.0)
    graph = fnad.make_graph(lambda x: x * w + w)(X)
    assert len(graph.constants) == 1
    assert graph.constants[0][1] is w


def test_scalars_are_literals():
    graph = fnad.make_graph(lambda x: x * 2.0 + np.float64(3.0))(X)
    assert not graph.constants
    assert "multiply a 2.0" in str(graph)


def test_nothing_is_computed():
    def f(x):
        return np.sum(np.exp(x) / 0.0)

    graph = fnad.make_graph(f)(Aval((10**9, 10**9), np.dtype(float)))
    assert graph.outputs[0].aval == Aval((), np.dtype(float))


def test_evaluate():
    def f(x, p):
        return {"a": np.tanh(x) * p["w"], "b": p["w"][0]}

    args = (X, {"w": np.arange(3.0)})
    graph = fnad.make_graph(f)(*args)
    flat = fnad.tree.leaves(args)
    assert_trees_close(evaluate(graph, flat), fnad.tree.leaves(f(*args)))
    with pytest.raises(ShapeError, match="one argument per input"):
        evaluate(graph, flat[:1])


def test_evaluation_is_differentiated_and_batched():
    graph = fnad.make_graph(lambda x: np.sum(np.tanh(x) ** 2))(X)
    run = lambda x: evaluate(graph, [x])[0]
    assert_trees_close(fnad.grad(run)(X), fnad.grad(lambda x: np.sum(np.tanh(x) ** 2))(X))
    assert_trees_close(fnad.vmap(run)(np.stack([X, 2 * X])), np.array([run(X), run(2 * X)]))
    assert str(fnad.make_graph(run)(X)) == str(graph)


def test_outputs_that_are_inputs_or_constants():
    w = np.arange(2.0)
    graph = fnad.make_graph(lambda x: (x, w, x, 1.0))(X)
    assert_trees_close(evaluate(graph, [X]), [X, w, X, 1.0])


def test_keyword_arguments_and_weak_scalars():
    graph = fnad.make_graph(lambda x, *, rate: x * rate)(X.astype(np.float32), rate=0.1)
    assert graph.outputs[0].aval.dtype == np.float32
    assert "rate" not in str(graph)


def test_values_of_an_outer_transform_are_constants():
    def f(x):
        graph = fnad.make_graph(lambda y: y * x)(X)
        return np.sum(evaluate(graph, [X])[0])

    assert_trees_close(fnad.grad(f)(X), X)


def test_recording_inside_recording():
    outer = fnad.make_graph(lambda x: evaluate(fnad.make_graph(lambda y: np.sin(y) * x)(x), [x])[0])(X)
    assert [e.primitive.name for e in outer.equations] == ["sin", "multiply"]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x if x[0] > 0 else -x,
        lambda x: x[: int(np.argmax(x))],
        lambda x: [1, 2][np.argmax(x)] * x,
        lambda x: x[x > 0],
        lambda x: np.nonzero(x)[0],
    ],
)
def test_values_are_not_known(f):
    for call in (lambda: fnad.make_graph(f)(X), lambda: fnad.eval_shape(f, X)):
        with pytest.raises(ConcretizationError) as caught:
            call()
        assert "np.where" in str(caught.value)
        assert "test_graph.py" in str(caught.value)


def test_eval_shape():
    out = fnad.eval_shape(lambda p: {"y": p["w"] @ p["x"], "n": (1, 2.0)}, {"w": Aval((2, 3), np.dtype("f4")), "x": np.ones(3, "f4")})
    assert (out["y"].shape, out["y"].dtype) == ((2,), np.float32)
    assert out["n"][0].dtype == np.int64
    with pytest.raises(ValueError, match=r"matmul|columns"):
        fnad.eval_shape(np.matmul, np.ones((2, 3)), np.ones((2, 3)))


@pytest.mark.parametrize("result", [np.array(["a"]), np.array([None, 1]), "text", np.array(0, "M8[s]")])
def test_only_numbers_are_recorded(result):
    with pytest.raises(DTypeError, match="numbers"):
        fnad.make_graph(lambda x: result)(X)


def test_values_that_are_no_arrays_are_passed_on():
    assert fnad.eval_shape(lambda x, mode: x[:2] if mode == "two" else x, np.ones(3), "two").shape == (2,)
    assert "tanh" in str(fnad.make_graph(lambda x, f: f(x))(np.ones(3), np.tanh))
