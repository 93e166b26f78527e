"""Matrix products of native programs: our own kernel for each size of register, and BLAS behind the same arguments."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fnad import _llvm
from fnad.kernels.codegen import products
from fnad.kernels.codegen.emit_blas import print_gemm as print_blas
from fnad.kernels.codegen.emit_matrix import Tile, print_gemm, tile_for

DTYPES = {"f32": np.float32, "f64": np.float64}
SIZES = st.sampled_from([0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 48, 49, 100, 240, 257, 530])


def kernel(code, way):
    name = f"test_gemm_{code}_{way}"
    if way == "blas":
        products.register_blas(code)
        text = str(print_blas(name, code))
    else:
        text = print_gemm(name, code, tile_for(_llvm.host()[1]) if way == "host" else Tile(16, 4, 3))
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 13)(_llvm.load(_llvm.machine_code(text, loops=False), name))


@pytest.fixture(scope="module", params=[(code, way) for code in DTYPES for way in ("host", "small", "blas")], ids="-".join)
def product(request):
    run = kernel(*request.param)

    def multiply(a, b, out):
        size = out.itemsize
        operands = [n for x in (a, b) for n in (x.ctypes.data, *(s // size for s in x.strides))]
        run(*out.shape, a.shape[1], *operands, out.ctypes.data, out.strides[0] // size, 0, 0)
        return out

    return DTYPES[request.param[0]], multiply


def matrix(rng, rows, columns, dtype, turned):
    return rng.normal(size=(columns, rows)).astype(dtype).T if turned else rng.normal(size=(rows, columns)).astype(dtype)


@settings(max_examples=60, deadline=None)
@given(SIZES, SIZES, SIZES, st.booleans(), st.booleans(), st.integers(0, 9))
def test_products_of_all_sizes_and_orders(product, m, n, k, left, right, seed):
    dtype, multiply = product
    rng = np.random.default_rng(seed)
    a, b = matrix(rng, m, k, dtype, left), matrix(rng, k, n, dtype, right)
    room = np.full((m, n + 3), np.nan, dtype)  # what is not part of the result stays as it is
    got = multiply(a, b, room[:, :n])
    exact = a.astype(np.longdouble) @ b.astype(np.longdouble)
    bound = np.finfo(dtype).eps * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)) * (k + 2)
    assert np.all(np.abs(got - exact) <= bound)
    assert np.all(np.isnan(room[:, n:]))


@pytest.mark.parametrize("code", DTYPES)
def test_an_entry_depends_on_its_row_and_column_alone(code):
    """So products may be cut into blocks of rows or columns without a change of a bit."""
    run, rng = kernel(code, "host"), np.random.default_rng(1)
    a, b = (rng.normal(size=s).astype(DTYPES[code]) for s in ((100, 300), (300, 250)))

    def multiply(a, b):
        out = np.empty((a.shape[0], b.shape[1]), a.dtype)
        strides = [s // a.itemsize for x in (a, b) for s in x.strides]
        run(*out.shape, a.shape[1], a.ctypes.data, *strides[:2], b.ctypes.data, *strides[2:], out.ctypes.data, out.shape[1], 0, 0)
        return out

    whole = multiply(a, b)
    for cut in (8, 13, 64, 99):
        assert np.array_equal(np.concatenate([multiply(a[:cut], b), multiply(a[cut:], b)]), whole)
        assert np.array_equal(np.concatenate([multiply(a, b[:, :cut]), multiply(a, b[:, cut:])], axis=1), whole)


def test_special_values_spread_as_the_rules_of_arithmetic_say():
    run = kernel("f64", "host")
    a = np.array([[1.0, 0.0], [np.inf, 1.0], [np.nan, 0.0]])
    b = np.array([[0.0, 1.0], [1.0, np.inf]])
    out = np.empty((3, 2))
    run(3, 2, 2, a.ctypes.data, 2, 1, b.ctypes.data, 2, 1, out.ctypes.data, 2, 0, 0)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, [[0, np.nan], [np.nan, np.inf], [np.nan, np.nan]])


@pytest.mark.parametrize("way", ["host", "small", "blas"])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (37, 500, 300), (9, 97, 3), (5, 7, 0), (0, 3, 2), (3, 0, 2)])
def test_what_follows_sees_each_entry_once_and_finished(way, m, n, k):
    run, rng = kernel("f64", way), np.random.default_rng(0)
    a, b, out = rng.normal(size=(m, k)), rng.normal(size=(k, n)), np.full((m, n), np.nan)
    found = np.zeros((m, n))

    @ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)
    def after(context, row, end, column, last):
        assert context == 17
        found[row:end, column:last] += out[row:end, column:last]

    run(m, n, k, a.ctypes.data, k, 1, b.ctypes.data, n, 1, out.ctypes.data, n, ctypes.cast(after, ctypes.c_void_p).value, 17)
    np.testing.assert_array_equal(found, out)
    np.testing.assert_allclose(out, a @ b, atol=1e-11)
