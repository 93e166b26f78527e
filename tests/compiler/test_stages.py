"""Loops over rows that run in stages, a few rows at a time: which do, and that the numbers stay the same."""

import numpy as np
import pytest

import fnad
from fnad.compiler.program import Loop
from fnad.kernels.codegen.stages import stages

SIZES = [0, 1, 2, 15, 16, 17, 40, 3000]
DTYPES = [np.float32, np.float64]


def logistic(w, x, y):
    z = x @ w
    return np.mean(np.logaddexp(0, z) - y * z) + np.sum(w * w)


def angles(w, x, y):
    """`sin` has a way of its own for large arguments."""
    z = x @ w
    return np.sum(np.sin(z) * y)


def rows(w, x, y):
    z = np.exp(-np.sum((x - w) ** 2, axis=1)) + y
    return z, z[:, None] * x


def picked(w, x, y):
    z = np.tanh(np.take(x, np.zeros(len(y), int), axis=1) + x @ w)
    return z * y, np.sum(z)


FUNCTIONS = {
    "logistic": fnad.value_and_grad(logistic),
    "angles": fnad.value_and_grad(angles),
    "by rows": rows,
    "gathered": picked,
    "hessian": fnad.hessian(lambda w, x, y: logistic(w, x, y)),
}


def data(n, dtype, k=5, scale=1.0):
    rng = np.random.default_rng(n)
    return (scale * rng.normal(size=k)).astype(dtype), rng.normal(size=(n, k)).astype(dtype), rng.integers(0, 2, n).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same_numbers(name, dtype):
    f = FUNCTIONS[name]
    jitted, tolerance = fnad.jit(f), 3e-4 if dtype == np.float32 else 1e-11
    for n in SIZES[name in ("logistic", "hessian") :]:
        args = data(n, dtype)
        for a, b in zip(fnad.tree.leaves(jitted(*args)), fnad.tree.leaves(f(*args)), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1, n) / 10)


def test_what_is_rare_happens_in_some_rows():
    w, x, y = data(50, np.float64)
    x[20:23] *= 1e9
    f = fnad.value_and_grad(angles)
    for a, b in zip(fnad.tree.leaves(fnad.jit(f)(w, x, y)), fnad.tree.leaves(f(w, x, y)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def cut(f, *args):
    (program,) = fnad.explain(f)(*args)._executable.programs
    return [stages(program, node) for node in program.nodes if isinstance(node, Loop)]


def test_products_with_rows_and_functions_of_them_are_stages():
    (found,) = [s for s in cut(fnad.value_and_grad(logistic), *data(40, np.float64)) if s is not None]
    assert [any(isinstance(node, Loop) for node in body) for body in found.bodies] == [True, False, True]
    assert found.kept


def test_what_does_little_for_a_row_or_goes_from_one_to_the_next_stays_as_it_is():
    w, x, _ = data(40, np.float64)
    assert not any(cut(lambda w, x: np.sum((x @ w) ** 2), w, x))

    def step(h, row):
        h = np.tanh(h + row @ w)
        return h, h * row

    assert not any(cut(lambda x: fnad.scan(step, 0.0, x), x))


def test_an_index_out_of_bounds_in_a_stage():
    f = fnad.jit(lambda w, x, i: np.sum(np.tanh(x @ w + np.take(w, i))))
    w, x, _ = data(40, np.float64)
    i = np.zeros(40, int)
    np.testing.assert_allclose(f(w, x, i), np.sum(np.tanh(x @ w + w[0])))
    i[33] = 5
    with pytest.raises(IndexError, match="out of bounds"):
        f(w, x, i)
