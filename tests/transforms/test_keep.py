"""Buffers that are overwritten after a traced operation read them: right, or an error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.core.keep import signature
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


@settings(derandomize=True, deadline=None)
@given(st.data(), st.sampled_from(["f4", "f8", "i1", "?", "c16"]), st.sampled_from([(40_000,), (7, 9001), (300, 500)]))
def test_signature_sees_single_entries_and_moves(data, dtype, shape):
    a = np.zeros(shape, dtype)
    before = signature(a)
    i, j = (data.draw(st.integers(0, a.size - 1)) for _ in range(2))
    a.flat[i] = 1
    once = signature(a)
    assert once != before
    a.flat[i] = 0
    a.flat[j] = 1
    assert (signature(a) == once) == (i == j)
    assert signature(a[::-1].T) == signature(a[::-1].T.copy())


def test_large_mask_that_moves_one_entry_is_an_error():
    def f(x):
        mask, y = np.zeros(100_000), 0.0
        for i in (1, 2, 3):
            mask[:] = 0
            mask[i] = i
            y = y + np.sum(x * mask)
        return y

    with pytest.raises(InPlaceError, match="copy"):
        fnad.grad(f)(np.ones(100_000))


def test_one_entry_of_a_large_primal_changed_before_the_pullback():
    x = np.ones(100_000)
    _, pullback = fnad.vjp(np.square, x)
    x[77_777] = 3.0
    with pytest.raises(InPlaceError):
        pullback(np.ones(100_000))
