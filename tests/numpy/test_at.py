"""Functional updates: `fnad.at(x)[index]` against NumPy's assignment and `ufunc.at`, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.core.aval import aval_of
from fnad.core.graph import evaluate, record
from fnad.errors import ConcretizationError, DTypeError, ShapeError, UnsupportedError
from fnad.testing import check_grads, check_vmap

from .agree import same
from .indices import indexed

METHODS = ("set", "add", "multiply", "divide", "power", "max", "min")
UFUNCS = {"add": np.add, "multiply": np.multiply, "divide": np.divide, "power": np.power, "max": np.maximum, "min": np.minimum}
X = np.arange(1.0, 13.0).reshape(3, 4)
V = np.array([1.0, 2.0, 3.0])


def reference(method, x, index, values):
    out = np.array(x)
    if method == "set":
        out[index] = values
    else:
        UFUNCS[method].at(out, index, values)
    return out


def update(method, x, index, values):
    return getattr(fnad.at(x)[index], method)(values)


def positive(seed, shape):
    return np.random.default_rng(seed).uniform(0.5, 2.0, shape)


@settings(max_examples=200)
@given(indexed(), st.sampled_from(METHODS))
def test_any_index(case, method):
    shape, index = case
    x = positive(0, shape)
    try:
        size = np.shape(x[index])
        fnad.at(x)[index].get()
    except IndexError:
        return
    values = positive(1, size)
    before = x.copy()
    out = update(method, x, index, values)
    np.testing.assert_allclose(out, reference(method, x, index, values), rtol=1e-14)
    if method in ("set", "add", "max", "min"):
        np.testing.assert_array_equal(out, reference(method, x, index, values))
    assert aval_of(out).dtype == x.dtype
    assert not np.shares_memory(out, x)
    np.testing.assert_array_equal(x, before)
    same(fnad.vjp(lambda x, v: update(method, x, index, v), x, values)[0], out if shape else out[()])
    batch = positive(2, (2, *shape)), positive(3, (2, *size))
    check_vmap(lambda x, v: update(method, x, index, v), batch)
    graph = record(lambda x, v: [update(method, x, index, v)], [aval_of(x), aval_of(values)])
    np.testing.assert_array_equal(evaluate(graph, [x, values])[0], out)


INDICES = {
    "int": 1,
    "slice": (slice(None), slice(None, None, -2)),
    "new axis": (None, 0),
    "unique": [2, 0],
    "repeated": [2, 0, 2, 2],
    "repeated pairs": ([0, 0, 2], [1, 1, -1]),
    "consecutive": (slice(1, None), np.array([[0, 3], [3, 0]])),
    "separated": (np.array([0, 2, 0]), None, np.array([1, 1, 1])),
    "mask": X % 3 == 1,
    "mask of rows": np.array([True, False, True]),
    "mask list": [True, False, True],
    "none of them": np.zeros((3, 4), bool),
    "empty": [],
    "all": ...,
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", INDICES)
def test_derivatives(name, method):
    index = INDICES[name]
    x = positive(4, (3, 4))
    values = positive(5, np.shape(x[index]))
    check_grads(lambda x, v: update(method, x, index, v), (x, values))
    check_grads(lambda x, s: update(method, x, index, s), (x, np.float64(1.3)))
    check_grads(lambda v: update(method, x, index, v), (values,), order=1)
    check_grads(lambda x: update(method, x, index, values), (x,), order=1)
    out, pull = fnad.vjp(lambda x, v: update(method, x, index, v), x.astype(np.float32), values.astype(np.float32))
    assert out.dtype == np.float32
    assert [g.dtype for g in pull(out)] == [np.float32, np.float32]


def test_complex():
    z = X + 1j
    for method in ("set", "add", "multiply"):
        check_grads(lambda z, v, method=method: update(method, z, [0, 0, 1], v), (z, (X * 1j)[:3]))
        check_grads(lambda z, v, method=method: update(method, z, 0, v), (z, X[0]))


def test_example_of_the_docstring():
    same(fnad.at(V)[1:].set(0.0), np.array([1.0, 0.0, 0.0]))
    same(fnad.at(V)[[0, 0, 2]].add(np.array([10.0, 20.0, 30.0])), np.array([31.0, 2.0, 33.0]))
    same(fnad.at(V)[1].get(), np.float64(2.0))
    assert not np.shares_memory(fnad.at(V)[1:].get(), V)
    same(fnad.grad(lambda x: fnad.at(x)[1].get() ** 2)(V), np.array([0.0, 4.0, 0.0]))


# -- repeated positions ----------------------------------------------------------------------------------------------


def test_set_differentiates_the_last_value_only():
    _, pull = fnad.vjp(lambda x, v: fnad.at(x)[[1, 1, 0, 1]].set(v), V, np.arange(4.0))
    for g, want in zip(pull(np.array([10.0, 20.0, 30.0])), ([0.0, 0, 30], [0.0, 0, 10, 20]), strict=True):
        same(g, np.array(want))
    index = np.asfortranarray([[0, 1], [1, 0]])[:, ::-1]
    out, pull = fnad.vjp(lambda v: fnad.at(np.zeros(2))[index].set(v), np.array([[1.0, 2.0], [3.0, 4.0]]))
    same(pull(np.ones(2))[0] * [[1.0, 2.0], [3.0, 4.0]], np.where(np.isin([[1, 2], [3, 4]], out), [[1.0, 2.0], [3.0, 4.0]], 0))


def test_ties_of_extremes_share_evenly():
    x, v = np.array([2.0, 1.0, 5.0]), np.array([2.0, 2.0, 1.0, 0.0])
    for method, sign in (("max", 1.0), ("min", -1.0)):
        _, pull = fnad.vjp(lambda x, v, m=method: update(m, x, [0, 0, 1, 1], v), sign * x, sign * v)
        gx, gv = pull(np.array([3.0, 4.0, 5.0]))
        np.testing.assert_allclose(gx, [1.0, 2.0, 5.0])
        np.testing.assert_allclose(gv, [1.0, 1.0, 2.0, 0.0])
        _, tangent = fnad.jvp(lambda x, v, m=method: update(m, x, [0, 0, 1, 1], v), (sign * x, sign * v), (np.ones(3), np.zeros(4)))
        np.testing.assert_allclose(tangent, [1 / 3, 0.5, 1.0])
    _, pull = fnad.vjp(lambda x, v: fnad.at(x)[0].max(v), x, np.float64(2.0))
    same(pull(np.ones(3)), (np.array([0.5, 1.0, 1.0]), np.float64(0.5)))


def test_nan_is_the_extreme():
    _, pull = fnad.vjp(lambda x, v: fnad.at(x)[[0, 0, 1]].max(v), V, np.array([np.nan, 9.0, 0.0]))
    gx, gv = pull(np.ones(3))
    same(gx, np.array([0.0, 1.0, 1.0]))
    same(gv, np.array([1.0, 0.0, 0.0]))


def test_powers_and_quotients_apply_one_after_the_other():
    same(fnad.at(np.array([2.0]))[[0, 0]].power([2.0, 3.0]), np.array([64.0]))
    same(fnad.at(np.array([12.0]))[[0, 0]].divide([2.0, 3.0]), np.array([2.0]))
    f = lambda x, v: fnad.at(x)[[0, 0, 0]].multiply(v)
    same(fnad.grad(lambda v: np.sum(f(V, v)))(np.array([0.0, 2.0, 3.0])), np.array([6.0, 0.0, 0.0]))


# -- traced indices and masks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["set", "add", "max", "min"])
def test_traced_index_arrays(method):
    rows = np.array([[0, 2, 0], [1, 1, 1]])
    f = lambda x, i, v: update(method, x, i, v)
    values = positive(6, (2, 3, 4))
    check_vmap(f, (positive(7, (2, 3, 4)), rows, values))
    check_vmap(f, (X, rows, values), in_axes=(None, 0, 0))
    check_vmap(f, (X, rows, values[0]), in_axes=(None, 0, None))
    check_vmap(lambda x, i, v: update(method, x, (slice(None), i), v[:, :3]), (X, rows, values), in_axes=(None, 0, 0))
    check_vmap(lambda x, i, v: update(method, x, (i, 1), v[:, 0]), (X, rows, values), in_axes=(None, 0, 0))
    check_grads(lambda x, v: fnad.vmap(f, (None, 0, 0))(x, rows, v), (positive(8, (3, 4)), values))
    check_vmap(lambda i: fnad.grad(lambda v: np.sum(f(X, i, v) ** 2))(values[0]), (rows,))
    check_vmap(lambda i: fnad.jvp(lambda x: f(x, i, values[0]), (X,), (X,))[1], (rows,))


@pytest.mark.parametrize("method", METHODS)
def test_one_traced_index(method):
    check_vmap(lambda x, i: update(method, x, i, 2.0), (X, np.array([0, -1, 2])))
    check_vmap(lambda x, i: update(method, x, (i, slice(1, None)), x[0, 1:]), (X, np.array([0, -1, 2])), in_axes=(None, 0))
    check_vmap(lambda x, i: fnad.grad(lambda x: np.sum(update(method, x, i, x[0]) ** 2))(x), (X, np.array([0, 2])), in_axes=(None, 0))


@pytest.mark.parametrize("method", ["multiply", "divide", "power"])
def test_products_at_unknown_indices_are_refused(method):
    with pytest.raises(UnsupportedError, match="repeat"):
        fnad.vmap(lambda i: update(method, V, i, 2.0))(np.array([[0, 1], [0, 0]]))


@pytest.mark.parametrize("method", METHODS)
def test_traced_masks(method):
    f = lambda x, v: update(method, x, x > 1.0, v)
    x, values = positive(9, (3, 4)), positive(10, (3, 4))
    for v in (np.float64(1.5), values):
        check_grads(f, (x, v))
        check_vmap(f, (np.stack([x, 1 / x]), v), in_axes=(0, None))
        graph = record(lambda *a: [f(*a)], [aval_of(x), aval_of(v)])
        np.testing.assert_array_equal(evaluate(graph, [x, v])[0], f(x, v))
    want = np.where(x > 1.0, values, x) if method == "set" else np.where(x > 1.0, UFUNCS[method](x, values), x)
    same(f(x, values), want)
    rows = lambda x, v: update(method, x, x[:, 0] > 1.0, v)
    check_vmap(rows, (np.stack([x, 1 / x]), values[0]), in_axes=(0, None))
    check_vmap(rows, (np.stack([x, 1 / x]), np.float64(2.0)), in_axes=(0, None))
    check_vmap(lambda s: update(method, s, s > 1.0, 2.0), (x[0],))


def test_a_mask_of_unknown_entries_takes_no_values_by_count():
    with pytest.raises(ConcretizationError, match=r"np\.where"):
        fnad.vmap(lambda x: fnad.at(x)[x[:, 0] > 2.0].set(np.ones((2, 4))))(np.stack([X, X]))
    with pytest.raises(ConcretizationError):
        fnad.vmap(lambda x: fnad.at(x)[x > 2.0].get())(X)
    with pytest.raises(IndexError):
        fnad.vmap(lambda x: fnad.at(x)[x[:2] > 2.0].set(0.0))(X)
    with pytest.raises(ShapeError):
        fnad.vmap(lambda x: fnad.at(x)[x[:, 0] > 2.0].set(np.ones(3)))(np.stack([X, X]))


def test_masks_do_not_warn_or_poison_what_they_leave_out():
    x = np.array([4.0, 0.0, 9.0])
    same(fnad.at(x)[x > 0].divide(x), np.array([1.0, 0.0, 1.0]))
    same(fnad.grad(lambda x: np.sum(fnad.at(x)[x > 0].power(0.5)))(x), np.array([0.25, 1.0, 1 / 6]))


# -- dtypes, shapes, errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value", "fits"),
    [
        (np.float32, 0.5, True), (np.float32, np.float64(0.5), True), (np.float32, 1, True), (np.int64, True, True),
        (np.int32, np.int64(3), True), (np.complex64, 1j, True), (np.float64, np.arange(3), True), (bool, True, True),
        (np.int64, 0.5, False), (np.int64, np.float64(1.0), False), (np.float64, 1j, False), (bool, 1, False),
        (np.uint8, np.int64(1), False), (np.float32, np.array(1 + 0j), False),
    ],
)  # fmt: skip
def test_dtypes(dtype, value, fits):
    x = np.zeros(3, dtype)
    if fits:
        want = x.copy()
        want[:] = value
        same(fnad.at(x)[:].set(value), want)
        same(fnad.at(x)[[0, 1, 2]].set(value), want)
    else:
        with pytest.raises(DTypeError, match="kind"):
            fnad.at(x)[:].set(value)


def test_a_traced_value_never_loses_its_kind():
    with pytest.raises(DTypeError, match="kind"):
        fnad.grad(lambda v: np.sum(fnad.at(np.zeros(3, int))[0].set(v)))(1.0)
    with pytest.raises(DTypeError, match="kind"):
        fnad.at(np.arange(1, 4))[0].divide(2)
    with pytest.raises(OverflowError):
        fnad.at(np.zeros(2, np.uint8))[0].set(300)


def test_results_of_scalars_and_weak_values():
    same(fnad.at(np.float64(2.0))[()].set(3.0), np.float64(3.0))
    same(fnad.at(2.0)[...].add(1), np.float64(3.0))
    same(fnad.grad(lambda v: np.sum(fnad.at(np.zeros(2, np.float32))[0].set(v)))(2.0), np.float64(1.0))
    same(fnad.at([1, 2])[0].set(5), np.array([5, 2]))


def test_values_broadcast_as_in_assignment():
    for index, value in (
        (0, 2.0),
        (slice(None), np.arange(4.0)),
        ([0, 1], np.ones((2, 1))),
        ([0, 0], np.ones((1, 1, 4))),
        (1, [1, 2, 3, 4]),
    ):
        same(fnad.at(X)[index].set(value), reference("set", X, index, value))
    for index, value in ((0, np.ones(3)), ([0, 1], np.ones((3, 4))), (0, np.ones((2, 4))), (X > 5, np.ones(5))):
        with pytest.raises(ShapeError):
            fnad.at(X)[index].set(value)


@pytest.mark.parametrize("index", [3, (0, 0, 0), [0, 5], 0.5, np.array([True, False]), (slice(None), [7])])
def test_bad_indices_raise_as_in_numpy(index):
    for method in METHODS:
        with pytest.raises(IndexError):
            update(method, X, index, 1.0)
    with pytest.raises(IndexError):
        fnad.at(X)[index].get()


def test_untouched_entries_keep_their_bits():
    x = np.array([-0.0, np.inf, np.nan, -0.0])
    for method in METHODS:
        for index in (slice(1, 2), [1, 1], [1]):
            out = update(method, x, index, 2.0)
            assert np.signbit(out[[0, 3]]).all()
            assert np.isnan(out[2])
