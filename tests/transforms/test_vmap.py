"""vmap: axes, nesting, errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.errors import ArgumentError, ConcretizationError, ShapeError

rng = np.random.default_rng(0)


@settings(derandomize=True, deadline=None)
@given(st.integers(-3, 2), st.integers(-3, 2), st.integers(0, 4))
def test_any_axis_in_and_out(i, o, n):
    shape = [2, 3]
    shape.insert(i % 3, n)
    x = rng.normal(size=shape)
    got = fnad.vmap(lambda a: np.sin(a) * 2, in_axes=i, out_axes=o)(x)
    np.testing.assert_array_equal(got, np.moveaxis(np.sin(x) * 2, i, o))


def test_nested():
    a, b = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    outer = fnad.vmap(fnad.vmap(np.dot, (None, 0)), (0, None))(a, b)
    np.testing.assert_allclose(outer, a @ b.T, rtol=1e-12)
    both = fnad.vmap(lambda r: fnad.vmap(lambda s: r * s)(r))(a)
    np.testing.assert_allclose(both, a[:, :, None] * a[:, None, :])


def test_keyword_arguments_are_mapped_and_constants_spread():
    got = fnad.vmap(lambda x, k: (x + k, 1.0, np.ones(2)))(np.arange(3.0), k=np.arange(3.0))
    np.testing.assert_array_equal(got[0], [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(got[1], np.ones(3))
    assert got[2].shape == (3, 2)
    got[2][0] = 5  # writable, not a broadcast view
    assert got[2][1, 0] == 1


def test_axis_size_alone():
    np.testing.assert_array_equal(fnad.vmap(lambda x: x * 2, in_axes=None, axis_size=3)(1.5), [3.0, 3.0, 3.0])


def test_perturbation_levels_do_not_mix():
    f = lambda x: np.sum(fnad.vmap(lambda y: x * y)(np.arange(3.0)))
    assert fnad.grad(f)(2.0) == 3.0
    per_example = fnad.vmap(fnad.grad(lambda w, x: np.tanh(w @ x)), (None, 0))(np.ones(2), rng.normal(size=(4, 2)))
    assert per_example.shape == (4, 2)


def test_python_scalar_stays_weak():
    assert fnad.vmap(lambda x: x * 2.0)(np.ones(3, np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fnad.vmap(lambda x, y: x)(np.ones(2), np.ones(3)), ShapeError, "argument 1: 3"),
        (lambda: fnad.vmap(lambda x: x)(1.0), ShapeError, "argument 0 has shape"),
        (lambda: fnad.vmap(lambda x: x, in_axes=None)(1.0), ArgumentError, "axis_size"),
        (lambda: fnad.vmap(lambda x: x, in_axes=(0, 0))(np.ones(2)), ArgumentError, "in_axes"),
        (lambda: fnad.vmap(lambda x: x, out_axes=None)(np.ones(2)), ArgumentError, "out_axes"),
        (lambda: fnad.vmap(lambda x: x if x > 0 else -x)(np.ones(2)), ConcretizationError, "np.where"),
        (lambda: fnad.vmap(lambda x: [1, 2][x])(np.arange(2)), ConcretizationError, "index"),
        (lambda: fnad.vmap("no function"), ArgumentError, "function"),
    ],
)
def test_mistakes_are_named(call, error, words):
    with pytest.raises(error) as info:
        call()
    assert words in str(info.value)
