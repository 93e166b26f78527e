"""Sorting, partitions, unique entries, searches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import ConcretizationError, InPlaceError, UnsupportedError

from .agree import agrees, same

RNG = np.random.default_rng(2)
M = RNG.normal(size=(3, 4))
V = RNG.normal(size=5)

CASES = {
    "sort": np.sort,
    "sort axis": lambda m: np.sort(m, axis=0),
    "sort flat": lambda m: np.sort(m, axis=None),
    "sort stable": lambda m: np.sort(m, kind="stable") + np.sort(m, stable=True),
    "sort down": lambda m: np.sort(m)[:, ::-1],
    "argsort and take": lambda m: np.take_along_axis(m, np.argsort(m, axis=0), axis=0),
    "argsort flat": lambda m: m.ravel()[m.argsort(axis=None)],
    "partition": lambda m: np.partition(m, 2),
    "partition several": lambda m: np.partition(m, (0, -1), axis=0),
    "partition flat": lambda m: np.partition(m, 3, axis=None),
    "argpartition": lambda m: np.take_along_axis(m, np.argpartition(m, 1), axis=-1),
    "unique": lambda m: m * np.size(m),
}


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name):
    agrees(CASES[name], M)


def test_orders_are_plain_under_grad():
    seen = []
    fnad.grad(lambda x: np.sum(x) + 0 * len(seen.extend([np.argsort(x), np.argsort(x[0]), np.argpartition(x[0], 0), x.argsort()]) or "1"))(
        V
    )
    same(seen, [np.argsort(V), np.argsort(V[0]), np.argpartition(V[0], 0), V.argsort()])


def test_ties_keep_their_order():
    x = np.array([2.0, 1.0, 2.0, 1.0])
    same(fnad.vjp(np.sort, x)[1](np.arange(4.0))[0], np.array([2.0, 0.0, 3.0, 1.0]))


def test_nan_comes_last():
    x = np.array([np.nan, 1.0, 0.0])
    out, pull = fnad.vjp(np.sort, x)
    same(out, np.array([0.0, 1.0, np.nan]))
    same(pull(np.arange(3.0))[0], np.array([2.0, 1.0, 0.0]))


@given(st.lists(st.integers(-3, 3), min_size=0, max_size=6))
def test_gradient_of_a_sorted_sum_is_one(values):
    x = np.array(values, float)
    same(fnad.grad(lambda x: np.sum(np.sort(x)))(x), np.ones(len(values)))


def test_complex_entries_sort_as_in_numpy():
    z = np.array([1 + 2j, 1 - 1j, 0.5 + 3j])
    same(fnad.vjp(np.sort, z)[0], np.sort(z))


def test_lexsort():
    first, second = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0, 1, 1, 0])
    same(
        fnad.vmap(lambda a: np.lexsort((a, second)))(np.stack([first, -first])),
        np.stack([np.lexsort((a, second)) for a in (first, -first)]),
    )
    same(fnad.vmap(lambda a: np.lexsort(a))(np.stack([[first, second]])), np.lexsort((first, second))[None])
    fnad.grad(lambda a: np.sum(a[np.lexsort((a, second))] * np.arange(4)))(first)
    with pytest.raises(ValueError, match="same shape"):
        fnad.vmap(lambda a: np.lexsort((a, np.ones(3))))(first[None])


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side):
    edges = np.array([0.0, 1.0, 1.0, 2.0])
    values = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, 3.0]])
    want = np.searchsorted(edges, values, side)
    same(fnad.vmap(lambda v: np.searchsorted(edges, v, side))(values), want)
    same(
        fnad.vmap(lambda e, v: np.searchsorted(e, v, side))(np.stack([edges, edges + 1]), values),
        np.stack([want[0], np.searchsorted(edges + 1, values[1], side)]),
    )
    same(fnad.vmap(lambda e: np.searchsorted(e, 0.5, side))(np.stack([edges, edges])[:0]), np.zeros(0, int))
    shuffled = edges[[3, 0, 1, 2]]
    seen = []
    fnad.grad(lambda e: np.sum(e) + 0 * len(seen.append(np.searchsorted(e, values, side, sorter=[1, 2, 3, 0])) or "1"))(shuffled)
    same(seen[0], want)
    for bad in (lambda e: np.searchsorted(e, 0.0, "middle"), lambda e: np.searchsorted(e[0], 0.0)):
        with pytest.raises(ValueError):
            fnad.grad(lambda e, bad=bad: np.sum(bad(e)))(edges)


def test_digitize():
    x = np.array([0.2, 6.4, 3.0, 1.0])
    for bins in (np.array([0.0, 1.0, 2.5, 4.0]), np.array([4.0, 2.5, 1.0, 0.0])):
        for right in (False, True):
            same(fnad.vmap(lambda x, bins=bins, right=right: np.digitize(x, bins, right))(x[:, None]), np.digitize(x[:, None], bins, right))
    with pytest.raises(ValueError, match="monotonic"):
        fnad.vmap(lambda x: np.digitize(x, [0.0, 1.0, 0.5]))(x)
    with pytest.raises(ConcretizationError):
        fnad.vmap(lambda b: np.digitize(0.5, b))(np.ones((2, 3)))


def test_unique():
    x = np.array([2.0, 1.0, 2.0, 3.0])
    out, pull = fnad.vjp(lambda x: np.unique(x) ** 2, x)
    same(out, np.unique(x) ** 2)
    same(pull(np.ones(3))[0], np.array([4.0, 2.0, 0.0, 6.0]))
    for options in ({"return_index": True}, {"return_inverse": True, "return_counts": True}, {"return_index": True, "return_counts": True}):
        same(fnad.vjp(lambda x, options=options: np.unique(x, **options), x)[0], np.unique(x, **options))
    rows = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]])
    same(fnad.vjp(lambda r: np.unique(r, axis=0), rows)[0], np.unique(rows, axis=0))
    with pytest.raises(ConcretizationError, match="unique"):
        fnad.vmap(np.unique)(rows)


def test_mistakes_and_refusals():
    for f, error in (
        (lambda x: np.sort(x[0]), np.exceptions.AxisError),
        (lambda x: np.sort(x, axis=1), np.exceptions.AxisError),
        (lambda x: np.argsort(x, axis=1), np.exceptions.AxisError),
        (lambda x: np.partition(x, 7), ValueError),
    ):
        with pytest.raises(error):
            f(V)
        with pytest.raises(error):
            fnad.grad(lambda x, f=f: np.sum(f(x)))(V)
    with pytest.raises(UnsupportedError, match="order="):
        fnad.grad(lambda x: np.sum(np.sort(x, order="a")))(V)
    with pytest.raises(InPlaceError, match=r"np\.sort"):
        fnad.grad(lambda x: x.sort())(V)


def test_compiled_sorts_and_searches_are_native_where_that_pays():
    """Short axes by counting, searches by halving, both without the host; longer axes are left to NumPy's sort."""
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64, np.int64):
        for n in (1, 2, 7, 36, 37):
            x = (4 * rng.normal(size=(3, n))).astype(dtype)
            hosts = fnad.explain(lambda x: (np.sort(x), np.argsort(x, axis=0)))(x).hosts
            assert [h.equation.primitive.name for h in hosts] == ([] if n <= 36 else ["argsort"])
            same(fnad.jit(lambda x: (np.sort(x), np.argsort(x, axis=0)))(x), (np.sort(x), np.argsort(x, axis=0, kind="stable")))
    edges, x = np.sort(rng.normal(size=1000)), rng.normal(size=50)
    assert not fnad.explain(lambda e, x: np.searchsorted(e, x))(edges, x).hosts
    same(fnad.jit(lambda e, x: np.searchsorted(e, x))(edges, x), np.searchsorted(edges, x))
    weights = rng.normal(size=40)
    loss = fnad.grad(lambda x: np.sum(weights * np.sort(x) ** 2))
    assert not fnad.explain(loss)(x[:40]).hosts
    np.testing.assert_allclose(fnad.jit(loss)(x[:40]), loss(x[:40]), rtol=1e-14)


ODD = [0.0, -0.0, 1.0, 2.5, np.inf, -np.inf, np.nan]


@given(st.lists(st.sampled_from(ODD), min_size=6, max_size=6), st.sampled_from([np.float32, np.float64]))
def test_compiled_order_is_stable_with_nan_last(values, dtype):
    x = np.array(values, dtype)
    same(JITTED[0](x), np.argsort(x, kind="stable"))
    same(JITTED[1](np.sort(x), x), np.searchsorted(np.sort(x), x, "left"))
    same(JITTED[2](np.sort(x), x), np.searchsorted(np.sort(x), x, "right"))


JITTED = [
    fnad.jit(np.argsort),
    fnad.jit(lambda e, x: np.searchsorted(e, x, "left")),
    fnad.jit(lambda e, x: np.searchsorted(e, x, "right")),
]


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=7))
def test_running_extremes_share_ties_evenly(values):
    """As the maximum of each prefix, whose ties share evenly."""
    x = np.array(values, float)
    g = np.arange(1.0, len(values) + 1)

    def prefixes(x):
        return np.stack([np.max(x[: k + 1]) for k in range(x.size)])

    out, pull = fnad.vjp(np.maximum.accumulate, x)
    same(out, np.maximum.accumulate(x))
    want = fnad.vjp(prefixes, x)[1](g)[0]
    np.testing.assert_allclose(pull(g)[0], want, rtol=1e-12)
    mirrored = fnad.vjp(np.minimum.accumulate, -x)[1](g)[0]
    np.testing.assert_allclose(mirrored, want, rtol=1e-12)


def test_running_extremes_as_numpy():
    agrees(lambda m: np.maximum.accumulate(m, axis=1) * np.minimum.accumulate(m), M)
    with pytest.raises(TypeError):
        fnad.grad(lambda x: np.maximum.accumulate(x))(1.0)
