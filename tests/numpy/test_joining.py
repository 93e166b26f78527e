"""Joining, splitting, differences of neighbours, grids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.core.aval import Aval
from fnad.core.primitive import REGISTRY
from fnad.errors import InPlaceError, ShapeError, UnsupportedError

from .agree import agrees, same

RNG = np.random.default_rng(1)
A = RNG.normal(size=(2, 3, 2))
B = RNG.normal(size=(2, 3, 2))
M = RNG.normal(size=(3, 4))
V = RNG.normal(size=4)
W = RNG.normal(size=4)
S = np.float64(0.7)
ONES = np.ones((2, 3, 1))

TWO = {
    "concatenate": lambda a, b: np.concatenate([a, b]),
    "concat": lambda a, b: np.concat((a, b, ONES), axis=-1),
    "concatenate plain first": lambda a, b: np.concatenate([ONES, a, a], axis=2) * b[:, :, :1],
    "concatenate flat": lambda a, b: np.concatenate([a, b[0], np.arange(3)], axis=None),
    "concatenate tracer": lambda a, b: np.concatenate(a) + np.concatenate(b),
    "concatenate dtype": lambda a, b: np.concatenate([a, b], dtype=np.float64),
    "stack": lambda a, b: np.stack([a, b], axis=1),
    "stack last": lambda a, b: np.stack([a, 2.0 * b, np.zeros((2, 3, 2))], axis=-1),
    "stack scalars": lambda a, b: np.stack([a[0, 0, 0], 1.5, b[0, 0, 0], 2]),
    "stack lists": lambda a, b: np.stack([a[0, :, 0], [1.0, 2.0, 3.0]]) * b[0, :, 0],
    "stack tracer": lambda a, b: np.stack(a) * b,
    "vstack": lambda a, b: np.vstack([a, b]),
    "hstack": lambda a, b: np.hstack((a, b)),
    "dstack": lambda a, b: np.dstack([a[0], b[1]]),
    "vectors": lambda a, b: [f([a[0, 0], b[0, 0]]) for f in (np.vstack, np.hstack, np.dstack, np.column_stack)],
    "scalars": lambda a, b: [f([a[0, 0, 0], b[0, 0, 0], 2.0]) for f in (np.vstack, np.hstack, np.dstack, np.column_stack)],
    "column_stack": lambda a, b: np.column_stack([a[0], b[0, :, 0]]),
    "vstack dtype": lambda a, b: [np.vstack([a, b], dtype=np.float64), np.hstack([a, b], casting="safe")],
    "block": lambda a, b: np.block([[a[0], np.ones((3, 1))], [np.zeros((1, 2)), b[0, 0, 0]]]),
    "block of ranks": lambda a, b: np.block([a[0, 0], b[0, 0, 0], 1.0]),
    "block tracer": lambda a, b: np.block(a) * b,
    "append": lambda a, b: np.append(a, b),
    "append axis": lambda a, b: np.append(a, b, axis=1),
    "append plain": lambda a, b: np.append(np.ones(2), a) * np.append([1.0, 2.0], b),
    "meshgrid": lambda a, b: np.meshgrid(a[0, 0], b[0, :, 0], np.arange(2.0)),
    "meshgrid ij": lambda a, b: np.meshgrid(a[0, 0], b[0, :, 0], indexing="ij"),
    "meshgrid sparse": lambda a, b: np.meshgrid(a[0, 0], b[0, :, 0], sparse=True, copy=False),
    "meshgrid scalar": lambda a, b: np.meshgrid(a[0, 0, 0], b[0, 0]),
    "insert": lambda a, b: np.insert(a, 1, b[:, :, 0], axis=2),
    "insert scalar": lambda a, b: np.insert(a, [0, 2, -1], b[0, 0, 0]),
    "insert many": lambda a, b: np.insert(a, [0, 2], b[:, :2], axis=1),
    "insert slice": lambda a, b: np.insert(a, slice(0, 2), b[:, :2], axis=1),
    "insert mask": lambda a, b: np.insert(a, np.array([True, False, True]), b[:, :2], axis=1),
    "insert several at one": lambda a, b: np.insert(a, [1], b, axis=1),
    "insert first axis": lambda a, b: np.insert(a, -1, b[0], axis=0),
}

ONE = {
    "split": (lambda m: np.split(m, 2, axis=1), M),
    "split at": (lambda m: np.split(m, [1, 2], axis=0), M),
    "split beyond": (lambda m: np.split(m, [-1, 9], axis=-1), M),
    "array_split": (lambda m: np.array_split(m, 3, axis=1), M),
    "hsplit": (lambda m: [np.hsplit(m, 2), np.hsplit(m[0], [1])], M),
    "vsplit": (lambda m: np.vsplit(m, 3), M),
    "dsplit": (lambda a: np.dsplit(a, 2), A),
    "unstack": (np.unstack, A),
    "unstack axis": (lambda a: np.unstack(a, axis=-1), A),
    "iterate": (lambda a: [row * i for i, row in enumerate(a)], A),
    "delete": (lambda m: np.delete(m, 1, axis=1), M),
    "delete many": (lambda m: [np.delete(m, [0, -1]), np.delete(m, slice(0, 3, 2), 0), np.delete(V, 2) * m[0, :3]], M),
    "delete mask": (lambda m: np.delete(m, np.array([True, False, True, True]), axis=1), M),
    "diff": (np.diff, M),
    "diff twice": (lambda m: np.diff(m, 2, axis=0), M),
    "diff all away": (lambda m: np.diff(m, 5, axis=0), M),
    "diff not at all": (lambda m: np.diff(m, 0), M),
    "diff with borders": (lambda m: np.diff(m, prepend=0.0, append=m[:, :1]), M),
    "diff with traced scalar": (lambda m: np.diff(m, axis=0, prepend=m[0, 0]), M),
    "diff of plain": (lambda s: np.diff(np.ones(3), append=s), S),
    "ediff1d": (np.ediff1d, M),
    "ediff1d borders": (lambda v: np.ediff1d(v, to_end=[1.0, 2.0], to_begin=v[0]), V),
    "meshgrid of one": (lambda v: np.meshgrid(v), V),
}


@pytest.mark.parametrize("name", TWO)
def test_joining_as_numpy(name):
    agrees(TWO[name], A, B)


@pytest.mark.parametrize("name", ONE)
def test_parts_as_numpy(name):
    f, x = ONE[name]
    agrees(f, x)


def test_diff_of_booleans():
    seen = []
    fnad.grad(lambda x: np.sum(x) + 0.0 * len(seen.append(np.diff(x > 0)) or "1"))(np.array([1.0, -1.0, -2.0]))
    same(seen[0], np.array([True, False]))
    same(fnad.vmap(lambda x: np.diff(x > 0))(np.array([[1.0, -1.0, -2.0]])), np.array([[True, False]]))


def test_dtypes_promote_as_in_numpy():
    x32, ints = np.ones(2, np.float32), np.arange(2)
    for f in (
        lambda x: np.concatenate([x, ints]),
        lambda x: np.concatenate([x, ints.astype(np.int8)]),
        lambda x: np.stack([x[0], 1.0]),
        lambda x: np.stack([x, x + 1j]),
        lambda x: np.append(x, 1.0),
        lambda x: np.concatenate([x, x], dtype=np.float64),
    ):
        same(fnad.vjp(f, x32)[0], f(x32))
    assert fnad.grad(lambda x: np.sum(np.stack([x, 1.0])))(np.float32(2.0)).dtype == np.float32
    same(fnad.vjp(lambda t: np.stack([t, np.float32(1.0)]), 2.0)[0], np.stack([2.0, np.float32(1.0)]))


def test_only_what_is_differentiated_gets_a_cotangent():
    _, pull = fnad.vjp(lambda a: np.concatenate([np.ones(2), a, a]), V)
    same(pull(np.arange(10.0))[0], np.arange(2.0, 6.0) + np.arange(6.0, 10.0))


def test_results_share_no_memory():
    g = np.arange(8.0)
    one, two = fnad.vjp(lambda a, b: np.concatenate([a, b]), V, W)[1](g)
    assert not np.shares_memory(one, two)
    assert not np.shares_memory(one, g)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(-3, 2), st.data())
def test_concatenate_then_split_is_the_identity(sizes, axis, data):
    shape = list(data.draw(st.tuples(*[st.integers(0, 3)] * 3)))
    parts = []
    for n in sizes:
        shape[axis] = n
        parts.append(np.arange(float(np.prod(shape))).reshape(shape))
    cuts = np.cumsum(sizes)[:-1]
    out, pull = fnad.vjp(lambda *p: np.split(np.concatenate(p, axis=axis), cuts, axis=axis), *parts)
    same(out, parts)
    same(list(pull(parts)), parts)


@pytest.mark.parametrize(
    ("numpy", "error"),
    [
        (lambda a: np.concatenate([a, a[0]]), ValueError),
        (lambda a: np.concatenate([a, a[:, :1]]), ValueError),
        (lambda a: np.concatenate([a[0, 0, 0], a[0, 0, 0]]), ValueError),
        (lambda a: np.concatenate([a, a], axis=3), np.exceptions.AxisError),
        (lambda a: np.concatenate(a[:0]), ValueError),
        (lambda a: np.concatenate([a, a], dtype=int), TypeError),
        (lambda a: np.stack([a, a[0]]), ValueError),
        (lambda a: np.stack(a[:0]), ValueError),
        (lambda a: np.stack([a, a], axis=5), np.exceptions.AxisError),
        (lambda a: np.split(a, 2, axis=1), ValueError),
        (lambda a: np.array_split(a, 0), ValueError),
        (lambda a: np.hsplit(a[0, 0, 0], 2), ValueError),
        (lambda a: np.vsplit(a[0, 0], 2), ValueError),
        (lambda a: np.dsplit(a[0], 2), ValueError),
        (lambda a: np.unstack(a[0, 0, 0]), ValueError),
        (lambda a: np.block([a[0], [a[0]]]), ValueError),
        (lambda a: np.block([[a[0]], []]), ValueError),
        (lambda a: np.block([a[0], (a[0],)]), TypeError),
        (lambda a: np.diff(a, -1), ValueError),
        (lambda a: np.diff(a[0, 0, 0]), ValueError),
        (lambda a: np.ediff1d(a, to_end=1j), TypeError),
        (lambda a: np.meshgrid(a[0, 0], indexing="xz"), ValueError),
        (lambda a: np.delete(a, 9, axis=0), IndexError),
        (lambda a: np.insert(a, 9, 0.0, axis=0), IndexError),
    ],
)
def test_mistakes_raise_as_in_numpy(numpy, error):
    with pytest.raises(error):
        numpy(A)
    with pytest.raises(error):
        fnad.vjp(numpy, A)


def test_primitives_check_shapes():
    one, two = Aval((2, 3), np.dtype(float)), Aval((3, 3), np.dtype(float))
    for name, avals, params in (
        ("concatenate", (one, two), {"axis": 1}),
        ("stack", (one, two), {"axis": 0}),
        ("reshape", (one,), {"shape": (5,)}),
        ("static_set", (one, two), {"index": ()}),
        ("scatter_add", (one, two), {"axis": 0, "shape": (4,)}),
    ):
        with pytest.raises(ShapeError):
            REGISTRY[name].infer(*avals, **params)


def test_refusals():
    with pytest.raises(InPlaceError):
        fnad.grad(lambda x: np.sum(np.concatenate([x, x], out=np.zeros(8))))(V)
    with pytest.raises(InPlaceError):
        fnad.grad(lambda x: np.sum(np.stack([x, x], out=np.zeros((2, 4)))))(V)
    with pytest.raises(UnsupportedError):
        fnad.vmap(lambda x, i: np.delete(x, i))(M, np.array([0, 1, 2]))
    with pytest.raises(TypeError, match="insert"):
        fnad.grad(lambda x: np.sum(np.insert(np.arange(3), 0, x)))(V)
