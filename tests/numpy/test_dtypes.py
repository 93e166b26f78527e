"""Dtypes and edge cases as NumPy has them: dtype= of ufuncs, small integer indices, bounds, ends, axes of 0-d arrays."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.special as sp

import fnad
from fnad.kernels import scatter

f32, v = np.float32, np.array([2.0, 3.0])


def outcome(f):
    """The dtype and the value as text (nan equals nan there), or the class of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = f()
        except (TypeError, ValueError, IndexError) as error:
            return TypeError if isinstance(error, TypeError) else ValueError if isinstance(error, ValueError) else IndexError
    return np.asarray(out).dtype, str(np.asarray(out).tolist())


def alike(f, x):
    assert outcome(lambda: fnad.vjp(f, x)[0]) == outcome(lambda: f(x))


@pytest.mark.parametrize("dtype", [int, bool, np.float16, f32, float, complex, np.int8])
@pytest.mark.parametrize("x", [v, v.astype(f32), v + 1j])
def test_dtype_of_a_ufunc(dtype, x):
    for f in (np.exp, np.negative, np.absolute, np.square, np.reciprocal, np.conjugate):
        alike(lambda t, f=f: f(t, dtype=dtype), x)
    for f in (np.add, np.multiply, np.true_divide, np.power, np.less, np.maximum, np.logical_and, np.equal):
        for other in (1.5, 2, [1.0, 2.0], np.array([1, 2]), np.float64(1e300), 1j, True):
            alike(lambda t, f=f, other=other: f(t, other, dtype=dtype), x)
            alike(lambda t, f=f, other=other: f(other, t, dtype=dtype), x)


def test_dtype_of_a_ufunc_under_vmap_and_in_gradients():
    x = np.array([1.5, 2.5])
    np.testing.assert_array_equal(fnad.vmap(lambda t: np.less(t, 1.7, dtype=bool))(x), [True, False])
    g = fnad.grad(lambda t: np.sum(np.multiply(t, [1.0, 2.0], dtype=f32)))(x)
    assert g.dtype == np.float64
    assert g.tolist() == [1.0, 2.0]
    assert fnad.grad(lambda t: np.add(t, 1, dtype=f32))(2.0) == 1.0


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("mode", ["wrap", "clip", "raise"])
def test_indices_of_small_dtypes(dtype, mode):
    x = np.arange(200.0)
    index = np.array([0, 3, 100], dtype)
    np.testing.assert_array_equal(fnad.vjp(lambda t: np.take(t, index, mode=mode), x)[0], x[index])
    rows = [np.array([float(k)]) for k in range(20)]
    which = np.array([7], dtype)
    np.testing.assert_array_equal(fnad.vjp(lambda t: np.choose(which, [t, *rows[1:]], mode=mode), rows[0])[0], [7.0])
    found = fnad.vmap(lambda k: np.unravel_index(k, (20, 10)))(index)
    assert [a.dtype for a in found] == [np.intp] * 2
    np.testing.assert_array_equal(found, np.unravel_index(index, (20, 10)))


@pytest.mark.parametrize("a", [np.array([1, 2, 3], np.uint8), np.array([-1.0, 2.0, 9.0], f32), np.array([1, 2, 3]), np.ones(3, np.float16)])
@pytest.mark.parametrize("low", [None, -1, 0.5, np.float64(0), np.array([0, 1, 1], np.int16), 2])
@pytest.mark.parametrize("high", [np.array([2, 2, 4], np.float16), np.float64(1.5), np.array([3.0, 1.0, 2.0])])
def test_clip(a, low, high):
    alike(lambda t: np.clip(a, low, t), high)
    alike(lambda t: np.clip(a, t, low), high)
    if a.dtype.kind == "f":
        alike(lambda t: np.clip(t, low, high), a)


@pytest.mark.parametrize("start", [f32(1), np.float16(1), np.array([1.0, 2.0], f32), 1.0, np.complex64(1)])
@pytest.mark.parametrize("stop", [3, 2.5, np.uint8(3), True, np.array([3], np.uint8), f32(2), np.float64(2), 2j])
def test_linspace(start, stop):
    for f in (lambda t: np.linspace(t, stop, 4), lambda t: np.linspace(stop, t, 4), lambda t: np.linspace(t, stop, 4, retstep=True)[1]):
        found, wanted = fnad.vjp(f, start)[0], f(start)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-3 if np.asarray(wanted).dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("x", [2.0, np.float64(2.0), np.array(2.0), np.array([2.0])])
@pytest.mark.parametrize("axis", [0, -1, 1, (0,), None])
def test_axes_of_scalars(x, axis):
    for f in (
        lambda t: np.take(t, 0, axis=axis),
        lambda t: np.take(t, [0, 0], axis=axis),
        lambda t: np.squeeze(t, axis),
        lambda t: np.repeat(t, 3, axis=axis),
    ):
        alike(f, x)
    assert fnad.grad(lambda t: np.sum(np.repeat(t, 3, axis=0)))(2.0) == 3.0


def test_insert_of_values_with_leading_axes():
    for f in (
        lambda t: np.insert(t, 0, np.ones((1, 1))),
        lambda t: np.insert(t, [0, 1], np.ones((1, 2))),
        lambda t: np.insert(t, 0, np.ones((2, 1))),
    ):
        alike(f, v)
    for where in (0, [0]):
        alike(lambda t, where=where: np.insert(t, where, np.ones((1, 1, 2)), axis=0), np.ones((2, 2)))


@pytest.mark.parametrize("f", [np.partition, np.argpartition])
def test_partition_of_nothing(f):
    for shape, kth in (((0,), 0), ((0,), (0, 5)), ((3, 0), 0), ((0, 3), 1)):
        alike(lambda t, kth=kth: f(t, kth), np.zeros(shape))


def test_accumulate_over_all_axes():
    for x in (np.ones((2, 2)), np.ones(2), np.ones(())):
        alike(lambda t: np.add.accumulate(t, axis=None), x)


@pytest.mark.parametrize("f", [sp.expm1, sp.log1p, sp.exp2, sp.cbrt, sp.exp10, sp.expit])
@pytest.mark.parametrize("dtype", [np.float16, f32, float])
def test_functions_that_numpy_and_scipy_have(f, dtype):
    x = np.array([0.5, 0.25], dtype)
    out, pull = fnad.vjp(f, x)
    assert out.dtype == f(x).dtype
    assert pull(np.ones_like(out))[0].dtype == dtype
    np.testing.assert_allclose(out, f(x), rtol=1e-6)


def test_psi_of_complex_numbers():
    with pytest.raises(TypeError, match="complex"):
        fnad.grad(lambda z: np.real(sp.psi(z)))(1 + 1j)


def test_scatter_into_another_byte_order(monkeypatch):
    monkeypatch.setattr(scatter._Work, "done", scatter._REPAID)
    out, index = np.zeros((5, 700), ">f8"), np.array([1, 1, 3])
    scatter.add_at(out, (index,), 0, np.ones((3, 700)))
    assert out[:, 0].tolist() == [0.0, 2.0, 0.0, 1.0, 0.0]
    x = np.arange(4000.0).astype(">f8")
    np.testing.assert_array_equal(fnad.grad(lambda t: np.sum(t.reshape(4, 1000)[np.array([0, 0, 2])]))(x), np.repeat([2.0, 0, 1, 0], 1000))
