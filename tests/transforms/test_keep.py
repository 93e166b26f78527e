"""Buffers that are overwritten after a traced operation read them: right, or an error."""

import numpy as np
import pytest

import fnad
from fnad.errors import InPlaceError


def test_small_reused_buffer_is_right():
    def f(x):
        mask, total = np.zeros(5), 0.0
        for i in range(5):
            mask[:] = 0
            mask[i] = i + 1.0
            total = total + np.sum(x * mask)
        return total

    np.testing.assert_array_equal(fnad.grad(f)(np.ones(5)), [1.0, 2.0, 3.0, 4.0, 5.0])


def test_reused_index_buffer_is_right():
    def f(x):
        index, total = np.zeros(1, int), 0.0
        for i in range(3):
            index[0] = i
            total = total + (i + 1) * np.sum(x[index])
        return total

    np.testing.assert_array_equal(fnad.grad(f)(np.ones(3)), [1.0, 2.0, 3.0])


def test_large_reused_buffer_is_an_error():
    def f(x):
        buffer = np.ones(100_000)
        total = np.sum(x * buffer)
        buffer *= 2
        return total + np.sum(x * buffer)

    with pytest.raises(InPlaceError, match=r"float64\[100000\]"):
        fnad.grad(f)(np.ones(100_000))


def test_vjp_is_of_the_values_at_the_call():
    x = np.array([1.0, 2.0])
    _, pullback = fnad.vjp(np.square, x)
    x[:] = 0
    np.testing.assert_array_equal(pullback(np.ones(2))[0], [2.0, 4.0])


def test_operations_that_read_nothing_back_keep_nothing():
    def f(x):
        buffer = np.ones(100_000)
        y = x + buffer
        buffer[:] = 7
        return np.sum(y)

    np.testing.assert_array_equal(fnad.grad(f)(np.ones(100_000)), np.ones(100_000))
