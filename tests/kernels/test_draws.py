"""Kernels of random draws: compiled code and plain Python give the same bits, and blocks are those of NumPy's generator."""

import numpy as np
import pytest

from fnad._numba import Kernel
from fnad.kernels import draws

KEYS = np.array([[3, 2**64 - 1], [2**40, 5]], np.uint64)
A = np.array([[0.0, 0.05, 0.7, 1.0, 2.5, 40.0, np.inf, -1.0, np.nan], [3.0, 0.5, 1.0, 9.0, 1e4, 0.2, 1.0, 2.0, 3.0]])
RATES = np.array([[0.0, 0.5, 9.0, 11.0, 500.0, -1.0, np.nan], [3.0, 30.0, 1e6, 12.0, 2.0, 1.0, np.inf]])
COUNTS = np.array([[0.0, 5.0, 100.0, 100.0, 1000.0, -1.0, 5.0], [3.0, 30.0, 1e6, 12.0, 2.0, 1.0, 50.0]])
CHANCES = np.array([[0.5, 0.3, 0.02, 0.5, 0.9, 0.5, 2.0], [0.0, 1.0, 0.4, 0.7, np.nan, 0.1, 0.5]])
NODES = 0.5 + 0.5 * np.polynomial.legendre.leggauss(48)[0], 0.5 * np.polynomial.legendre.leggauss(48)[1]
PSI = np.array([-np.inf, -20.47, -1.22, -0.577, 0.703, 3.676, np.inf, np.nan, np.nan])
CALLS = {
    "gamma": (KEYS, A, False, np.empty(A.shape)),
    "gamma, logarithms": (KEYS, A, True, np.empty(A.shape)),
    "poisson": (KEYS, RATES, np.empty(RATES.shape, np.int64)),
    "binomial": (KEYS, COUNTS, CHANCES, np.empty(COUNTS.shape, np.int64)),
    "gamma_slope": (A[0], np.array([0.0, 0.2, 0.0, 2.0, 1.0, 45.0, 3.0, 1.0, 1.0]), PSI, False, *NODES, np.empty(9)),
    "gamma_slope, logarithms": (A[0], np.array([0.0, -50.0, 0.3, 2.0, 0.5, 3.6, 3.0, 1.0, 1.0]), PSI, True, *NODES, np.empty(9)),
}


@pytest.mark.parametrize("name", CALLS)
def test_compiled_code_is_plain_python(name, monkeypatch):
    kernel, args = getattr(draws, name.split(",")[0]), CALLS[name]
    kernel(*args)
    want = args[-1].copy()
    for other, value in list(vars(draws).items()):
        if isinstance(value, Kernel):
            monkeypatch.setattr(draws, other, value.py_func)
    with np.errstate(all="ignore"):
        kernel.py_func(*args)
    if args[-1].dtype.kind == "i":
        np.testing.assert_array_equal(args[-1], want)
    np.testing.assert_allclose(args[-1], want, 1e-13)


def test_blocks_are_those_of_numpy(monkeypatch):
    for name in ("_high", "_block"):
        monkeypatch.setattr(draws, name, getattr(draws, name).py_func)
    words = np.random.Philox(key=KEYS[0], counter=(3 << 192) + (7 << 64) + 5 - 1).random_raw(4)
    with np.errstate(over="ignore"):
        got = draws._block(*KEYS[0], 5, 7)
    np.testing.assert_array_equal(got, ((words >> np.uint64(12)) + 0.5) * 2.0**-52)
