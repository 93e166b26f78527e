"""The shapes of results are known before a function runs, or the error says that they cannot be."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

from fnad.errors import ConcretizationError
from fnad.loops.frontend import build
from fnad.loops.shapes import result_shapes
from tests.loops.functions import CASES
from tests.loops.machine import flatten, interpret, ir_type
from tests.loops.programs import loop_programs


def shapes_of(f, args, numbers=True):
    fn = build(f, [ir_type(a) for a in args])
    leaves = flatten(args)
    known = [int(x) if numbers and np.asarray(x).dtype.kind in "ib" and np.ndim(x) == 0 else None for x in leaves]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        actual = [np.shape(x) for x in flatten((interpret(fn, *copy.deepcopy(args)),))]
    return result_shapes(fn, [np.shape(x) for x in leaves], known), actual


@pytest.mark.parametrize("name", CASES)
def test_of_the_functions(name):
    f, args = CASES[name]
    try:
        found, actual = shapes_of(f, args)
    except ConcretizationError as error:
        assert "?" in str(error)  # noqa: PT017
    else:
        assert [*found] == actual


@settings(max_examples=60)
@given(loop_programs())
def test_of_random_programs(program):
    found, actual = shapes_of(program.function(), program.args)
    assert [*found] == actual


def grown(x, n):
    out = np.zeros(1)
    for _ in range(n):
        out = np.zeros(x.size + 2)
    return out


def doubled(x, n):
    k = 1
    while k < x.size:
        k *= 2
    return np.zeros((k, n))


def sliced(x, n):
    y = x[n:-1:2]
    return y, x.reshape(2, -1).T @ np.ones((2, n)), x[: len(y)]


def chosen(x, n):
    if n > 2:
        out = np.ones(n)
    else:
        out = np.ones(2 * n)
    if x.size < 2:
        raise ValueError("short")
    return out


X = np.arange(8.0)


@pytest.mark.parametrize(
    ("f", "n", "known"), [(grown, 3, True), (grown, 0, True), (sliced, 2, True), (chosen, 1, True), (chosen, 3, True), (grown, 3, False)]
)
def test_what_integers_decide(f, n, known):
    if known:
        found, actual = shapes_of(f, (X, n))
        assert [*found] == actual
    else:
        with pytest.raises(ConcretizationError, match=r"float64\[\?\]"):
            shapes_of(f, (X, n), numbers=False)


def test_what_values_decide():
    with pytest.raises(ConcretizationError, match=r"result 0: float64\[\?, 3\]"):
        shapes_of(doubled, (X, 3))
