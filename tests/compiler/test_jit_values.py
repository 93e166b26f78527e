"""What a compiled function must look at in each call: the order of keys, memory that arguments share, the size of Python integers."""

from __future__ import annotations

import collections
import ctypes
import dataclasses
import operator

import numpy as np
import pytest
import scipy.special as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.errors import BoundsError


@dataclasses.dataclass
class Held:
    inside: dict


HOLDERS = {  # how a dict becomes an argument, and is found in it
    "dict": (lambda d: d, lambda t: t),
    "nested": (lambda d: {"p": [d, 1.0]}, lambda t: t["p"][0]),
    "defaultdict": (lambda d: collections.defaultdict(float, d), lambda t: t),
    "dataclass": (lambda d: Held({"q": d}), lambda t: t.inside["q"]),
}


@pytest.mark.parametrize(("hold", "take"), HOLDERS.values(), ids=HOLDERS)
def test_the_order_of_keys_is_that_of_the_call(hold, take):
    """A function that depends on it computes what it computes without jit."""
    find = lambda tree: np.stack(list(take(tree).values()))
    f = fnad.jit(find)
    orders = [{"a": 1.0, "b": 2.0, "c": 3.0}, {"c": 3.0, "a": 1.0, "b": 2.0}, {"b": 2.0, "c": 3.0, "a": 1.0}]
    for d in (*orders, *orders[::-1]):
        tree = hold(d)
        np.testing.assert_array_equal(f(tree), find(tree))
        np.testing.assert_array_equal(f(tree=tree), find(tree))


ALIASES = {
    "memoryview": lambda x: np.frombuffer(memoryview(x)),
    "dlpack": np.from_dlpack,
    "strides": lambda x: np.lib.stride_tricks.as_strided(x, x.shape, x.strides),
    "address": lambda x: np.ctypeslib.as_array((ctypes.c_double * x.size).from_address(x.ctypes.data)),
    "part": lambda x: np.frombuffer(memoryview(x)[1:], count=x.size - 1),
    "backwards": lambda x: np.frombuffer(memoryview(x))[::-1],
}


@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
@pytest.mark.parametrize("donated", [0, 1, (0, 1)])
def test_donated_memory_that_another_argument_shares_is_copied(alias, donated):
    compute = lambda a, b: (a * 2.0, b[::-1] * 3.0, np.sum(a) - np.sum(b))
    f = fnad.jit(compute, donate_argnums=donated)
    x = np.arange(6.0)
    y = alias(x)
    want = compute(x.copy(), y.copy())
    for g, w in zip(f(x, y), want, strict=True):
        np.testing.assert_array_equal(g, w)
    np.testing.assert_array_equal(x, np.arange(6.0))


def test_donated_memory_that_a_closure_shares_is_copied():
    x = np.arange(6.0)
    closed = np.frombuffer(memoryview(x))
    f = fnad.jit(lambda a, b: a + b * np.flip(a * 0.0 + closed), donate_argnums=0)
    for _ in range(2):
        np.testing.assert_array_equal(f(x, 1.0), np.full(6, 5.0))
        np.testing.assert_array_equal(x, np.arange(6.0))


def test_the_way_back_through_a_closure_that_shares_donated_memory():
    """Entries that are read in another order than they are written are those of before the call."""
    x = np.arange(6.0)
    closed = np.frombuffer(memoryview(x))
    np.testing.assert_array_equal(fnad.jit(lambda a: a + closed[::-1], donate_argnums=0)(x), np.full(6, 5.0))


def test_donated_neighbours_are_not_copied():
    """Arrays that lie side by side in memory, or are empty, do not overlap."""
    f = fnad.jit(lambda a, b: (a + 1.0, b + 1.0), donate_argnums=(0, 1))
    for n in (4, 0):
        x, y = np.zeros(n), np.zeros(n)
        p, q = f(x, y)
        assert (p is x, q is y) == (True, True)


OPERATIONS = [operator.add, operator.sub, operator.mul, lambda a, b: -a + b, lambda a, b: a * a - b, lambda a, b: a + b + b]


@given(st.sampled_from(OPERATIONS), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=60)
def test_python_integers_do_not_wrap(f, a, b):
    """A result is exact, or there is an error."""
    try:
        got = COMPILED[f](a, b)
    except OverflowError:
        assert max(abs(a * b), abs(a * a), abs(a) + 2 * abs(b)) >= 2**62
    else:
        assert got == f(a, b)


COMPILED = {f: fnad.jit(f) for f in OPERATIONS}


@given(st.sampled_from([np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.uint64]), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=60)
def test_python_integers_meet_dtypes_as_in_numpy(dtype, n):
    """They fit, or it is an error; comparisons take them as they are."""
    x = np.array([0, 1, 100], dtype)
    try:
        want = x + n
    except OverflowError:
        with pytest.raises(OverflowError, match=r"out of bounds for .*compiled function, at .*test_jit_values"):
            ADD(x, n)
    else:
        got = ADD(x, n)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(LESS(x, n), x < n)


ADD, LESS = fnad.jit(lambda x, n: x + n), fnad.jit(lambda x, n: x < n)


def test_python_integers_that_do_not_fit_in_loops_and_donated_programs():
    x = np.arange(3, dtype=np.uint8)
    with pytest.raises(OverflowError):
        fnad.jit(lambda n, x: fnad.scan(lambda c, _: (c + n, None), x, None, length=3)[0])(300, x)
    with pytest.raises(BoundsError, match="integer"):
        fnad.jit(lambda x, n: x + n, donate_argnums=0)(x.copy(), 300)
    f = fnad.jit(lambda x, n: x + n)
    for n in (1, 300, 2):
        if n == 300:
            with pytest.raises(OverflowError):
                f(x, n)
        else:
            np.testing.assert_array_equal(f(x, n), x + n)


def test_an_index_out_of_bounds_is_noticed_in_every_call():
    """Also by programs whose workspace is the stack, where native code itself looks at the flag."""
    f = fnad.jit(lambda x, i: fnad.at(x)[i].get() * 2.0)
    x = np.arange(4.0)
    for _ in range(3):
        assert f(x, 2) == 4.0
        with pytest.raises(BoundsError, match="index 7 is out of bounds"):
            f(x, 7)


def test_special_values_of_gammaln():
    x = np.array([-np.inf, np.inf, np.nan, -0.5, 0.5, 1.0, 2.0])
    for dtype in (np.float32, np.float64):
        np.testing.assert_allclose(fnad.jit(sp.gammaln)(x.astype(dtype)), sp.gammaln(x.astype(dtype)), rtol=4 * np.finfo(dtype).eps)
