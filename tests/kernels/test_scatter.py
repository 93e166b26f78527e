"""Scatter: the bits of `np.add.at`, whichever way is taken."""

from __future__ import annotations

import numpy as np
import pytest

import fnad
from fnad.kernels import scatter

SHAPES = [((), (8,), 1), ((3,), (5,), 1), ((2,), (), 2), ((), (), 2), ((), (), 1), ((3,), (2, 2), 2)]


@pytest.fixture(params=["NumPy", "kernel"])
def way(request, monkeypatch):
    monkeypatch.setattr(scatter._Work, "done", scatter._REPAID if request.param == "kernel" else 0)
    return request.param


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.float16, np.int64])
@pytest.mark.parametrize(("lead", "rest", "axes"), SHAPES)
@pytest.mark.parametrize("many", [(40, 30), (2, 3), (0,)])
def test_equals_add_at_bit_for_bit(way, dtype, lead, rest, axes, many):
    rng = np.random.default_rng(0)
    sizes = (7, 11)[:axes]
    indices = tuple(rng.integers(-n, n, many) for n in sizes)
    values = (10 * rng.normal(size=(*lead, *many, *rest))).astype(dtype)
    want = (10 * rng.normal(size=(*lead, *sizes, *rest))).astype(dtype)
    for order in "CF":
        got = np.array(want, order=order)
        scatter.add_at(got, indices, len(lead), values)
        expected = want.copy()
        np.add.at(expected, (slice(None),) * len(lead) + indices, values)
        np.testing.assert_array_equal(got, expected)


def test_index_arrays_broadcast_and_may_be_read_only(way):
    rows, columns = np.arange(40)[:, None] % 3, np.arange(30) % 5
    columns.flags.writeable = False
    values = np.broadcast_to(np.arange(4.0), (40, 30, 4))
    got, want = np.zeros((3, 5, 4)), np.zeros((3, 5, 4))
    scatter.add_at(got, (rows, columns), 0, values)
    np.add.at(want, (rows, columns), values)
    np.testing.assert_array_equal(got, want)


def test_kernel_undecorated():
    out = np.zeros((2, 3, 2))
    scatter.add_rows.py_func(out, np.array([2, 0, 2]), np.ones((2, 3, 2)))
    np.testing.assert_array_equal(out[:, :, 0], [[1.0, 0.0, 2.0]] * 2)


def test_work_is_counted(monkeypatch):
    monkeypatch.setattr(scatter._Work, "done", 0)
    scatter.add_at(np.zeros((3, 2)), (np.zeros(1000, int),), 0, np.ones((1000, 2)))
    assert scatter._Work.done == 2000


@pytest.mark.parametrize("index", [3, -4])
def test_bounds(index):
    with pytest.raises(IndexError, match="out of bounds"):
        scatter.flat_index((np.array([0, index]),), (3,))


def test_gradient_of_a_large_lookup(way):
    tokens = np.arange(4000).reshape(50, 80) % 7
    table = np.ones((9, 3), np.float32)
    got = fnad.grad(lambda t: np.sum(t[tokens] * tokens[..., None].astype(np.float32)))(table)
    want = np.bincount(tokens.ravel(), weights=tokens.ravel(), minlength=9)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, np.broadcast_to(want[:, None], (9, 3)))


def test_the_last_value_stays_in_c_order():
    index = np.asfortranarray([[0, 1], [1, 0]])
    out = np.zeros(2)
    scatter.set_at(out, (index,), 0, np.array([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(out, [4.0, 3.0])
