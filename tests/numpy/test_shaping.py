"""Shape, layout, padding, diagonals, and arrays made like others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import DTypeError, TracerConversionError, UnsupportedError

from .agree import agrees, same

RNG = np.random.default_rng(0)
A = RNG.normal(size=(2, 3, 2))
M = RNG.normal(size=(3, 4))
V = RNG.normal(size=4)
S = np.float64(0.7)
E = np.zeros((0, 3))

SHAPING = {
    "reshape": lambda a: np.reshape(a, (3, -1)),
    "reshape int": lambda a: np.reshape(a, 12),
    "reshape array": lambda a: np.reshape(a, np.array([4, 3])),
    "reshape F": lambda a: np.reshape(a, (4, 3), order="F"),
    "reshape method": lambda a: a.reshape(2, -1),
    "ravel": np.ravel,
    "ravel F": lambda a: a.ravel(order="F"),
    "flatten": lambda a: a.flatten(),
    "transpose": np.transpose,
    "transpose axes": lambda a: np.transpose(a, (2, 0, -2)),
    "transpose method": lambda a: a.transpose(1, 0, 2),
    "T": lambda a: a.T,
    "mT": lambda a: a.mT,
    "permute_dims": lambda a: np.permute_dims(a, (1, 2, 0)),
    "matrix_transpose": np.matrix_transpose,
    "swapaxes": lambda a: np.swapaxes(a, 0, -1),
    "moveaxis": lambda a: np.moveaxis(a, 0, -1),
    "moveaxis several": lambda a: np.moveaxis(a, [0, 1], [-1, 0]),
    "rollaxis": lambda a: np.rollaxis(a, 2),
    "rollaxis start": lambda a: np.rollaxis(a, 0, 3),
    "rollaxis negative": lambda a: np.rollaxis(a, 2, -2),
    "expand_dims": lambda a: np.expand_dims(a, (0, -1)),
    "expand_dims int": lambda a: np.expand_dims(a, np.int64(1)),
    "squeeze": lambda a: np.squeeze(a[None, :, :1]),
    "squeeze axis": lambda a: np.squeeze(a[:, None, None], axis=(1, -3)),
    "broadcast_to": lambda a: np.broadcast_to(a, (2, 2, 3, 2)),
    "broadcast_arrays": lambda a: np.broadcast_arrays(a, a[:, :1], 2.0, np.ones(2)),
    "atleast_1d": np.atleast_1d,
    "atleast_2d": lambda a: np.atleast_2d(a, a[0, 0], a[0, 0, 0]),
    "atleast_3d": lambda a: np.atleast_3d(a, a[0], a[0, 0], a[0, 0, 0], a[None]),
    "flip": np.flip,
    "flip axes": lambda a: np.flip(a, (0, -1)),
    "fliplr": np.fliplr,
    "flipud": np.flipud,
    "rot90": lambda a: [np.rot90(a, k) for k in range(-1, 5)],
    "rot90 axes": lambda a: np.rot90(a, 1, (2, 1)),
    "roll": lambda a: np.roll(a, 5),
    "roll axis": lambda a: np.roll(a, -1, axis=1),
    "roll axes": lambda a: np.roll(a, (1, 2), axis=(0, 1)),
    "roll one axis by many": lambda a: np.roll(a, (1, 1), axis=1),
    "roll many axes": lambda a: np.roll(a, 1, axis=(0, 1)),
    "repeat": lambda a: np.repeat(a, 2),
    "repeat axis": lambda a: np.repeat(a, 3, axis=1),
    "repeat none": lambda a: np.repeat(a, 0, axis=0),
    "repeat array": lambda a: np.repeat(a, [0, 2, 1], axis=1),
    "repeat array of one": lambda a: np.repeat(a, [2], axis=1),
    "repeat method": lambda a: a.repeat(2, axis=0),
    "tile": lambda a: np.tile(a, 2),
    "tile more": lambda a: np.tile(a, (2, 1, 3, 1)),
    "tile none": lambda a: np.tile(a, 0),
    "astype": lambda a: a.astype(np.float64) * 2.0,
    "pad": lambda a: np.pad(a, 1),
    "pad pairs": lambda a: np.pad(a, ((1, 0), (0, 2), (1, 1))),
    "pad one pair": lambda a: np.pad(a, (1, 2)),
    "pad dict": lambda a: np.pad(a, {-1: (0, 3), 0: 2}),
    "pad array": lambda a: np.pad(a, np.array([[1, 0], [0, 2], [1, 1]])),
    "pad constant": lambda a: np.pad(a, 1, constant_values=((1.0, 2.0), (3.0, 4.0), (5, 6))),
    "pad single values": lambda a: np.pad(a, ((1,), (2,), (0,)), constant_values=3.0),
    "pad edge": lambda a: np.pad(a, 2, mode="edge"),
    "pad reflect": lambda a: np.pad(a, ((0, 0), (3, 1), (1, 1)), mode="reflect"),
    "pad symmetric": lambda a: np.pad(a, ((3, 0), (1, 2), (0, 0)), mode="symmetric"),
    "pad wrap": lambda a: np.pad(a, (3, 1), "wrap"),
    "diagonal": np.diagonal,
    "diagonal axes": lambda a: a.diagonal(0, 2, 1),
    "diagonal outside": lambda a: np.diagonal(a, 7),
    "tril": np.tril,
    "triu": lambda a: np.triu(a, 1),
}


@pytest.mark.parametrize("name", SHAPING)
def test_as_numpy(name):
    agrees(SHAPING[name], A)


OTHER = {
    "diag of vector": (lambda v: [np.diag(v, k) for k in (-2, 0, 1)], V),
    "diag of empty vector": (lambda v: np.diag(v[:0], 2), V),
    "diag of matrix": (lambda m: [np.diag(m, k) for k in range(-4, 6)], M),
    "diagflat": (lambda m: np.diagflat(m, 1), M),
    "tril of vector": (np.tril, V),
    "triu of tall": (lambda m: [np.triu(m.T, k) for k in (-5, -1, 0, 2)], M),
    "scalar": (lambda s: [np.atleast_1d(s), np.atleast_3d(s), np.reshape(s, (1, 1)), np.ravel(s), s[None], np.broadcast_to(s, (2,))], S),
    "scalar repeat": (lambda s: [np.repeat(s, 3), np.tile(s, (2, 2)), np.expand_dims(s, 0), np.squeeze(s), np.roll(s, 1)], S),
    "scalar pad": (lambda s: np.pad(s, 0), S),
    "empty": (
        lambda e: [np.ravel(e), np.reshape(e, (3, 0)), np.flip(e), np.roll(e, 1, 0), np.repeat(e, 2, 0), np.tile(e, 2), np.pad(e, 1)],
        E,
    ),
}


@pytest.mark.parametrize("name", OTHER)
def test_other_arguments(name):
    f, x = OTHER[name]
    agrees(f, x)


@given(st.integers(0, 3), st.integers(0, 3), st.integers(-4, 4))
def test_diagonal_of_any_matrix(rows, columns, offset):
    m = np.arange(6.0 * rows * columns).reshape(rows, columns, 6)[..., 0]
    same(fnad.vjp(lambda m: np.diagonal(m, offset), m)[0], np.diagonal(m, offset))
    g = np.ones(np.diagonal(m, offset).shape)
    (back,) = fnad.vjp(lambda m: np.diagonal(m, offset), m)[1](g)
    np.testing.assert_array_equal(back, np.eye(rows, columns, offset))


@pytest.mark.parametrize(
    ("numpy", "error"),
    [
        (lambda a: np.reshape(a, (5, -1)), ValueError),
        (lambda a: np.reshape(a, (-1, -1)), ValueError),
        (lambda a: np.reshape(a, (-3, -4)), ValueError),
        (lambda a: np.reshape(a, 7), ValueError),
        (lambda a: np.transpose(a, (0, 1)), ValueError),
        (lambda a: np.transpose(a, (0, 0, 1)), ValueError),
        (lambda a: np.swapaxes(a, 0, 3), np.exceptions.AxisError),
        (lambda a: np.moveaxis(a, 0, 5), np.exceptions.AxisError),
        (lambda a: np.moveaxis(a, [0, 1], 0), ValueError),
        (lambda a: np.rollaxis(a, 0, 4), np.exceptions.AxisError),
        (lambda a: np.expand_dims(a, 9), np.exceptions.AxisError),
        (lambda a: np.expand_dims(a, (0, 0)), ValueError),
        (lambda a: np.squeeze(a, 0), ValueError),
        (lambda a: np.broadcast_to(a, (2, 3, 3)), ValueError),
        (lambda a: np.broadcast_to(a, (2,)), ValueError),
        (lambda a: np.flip(a, 3), np.exceptions.AxisError),
        (lambda a: np.fliplr(a[0, 0]), ValueError),
        (lambda a: np.flipud(a[0, 0, 0]), ValueError),
        (lambda a: np.rot90(a, 1, (0, 0)), ValueError),
        (lambda a: np.rot90(a, 1, (0,)), ValueError),
        (lambda a: np.roll(a, 1, 7), np.exceptions.AxisError),
        (lambda a: np.roll(a, (1, 2, 3), axis=(0, 1)), ValueError),
        (lambda a: np.roll(a, [[1]], axis=0), ValueError),
        (lambda a: np.repeat(a, [1, 2], axis=1), ValueError),
        (lambda a: np.repeat(a, -1), ValueError),
        (lambda a: np.pad(a, -1), ValueError),
        (lambda a: np.pad(a, ((1, 1), (1, 1))), ValueError),
        (lambda a: np.pad(a, 1, stat_length=2), ValueError),
        (lambda a: np.diagonal(a[0, 0]), ValueError),
        (lambda a: np.diagonal(a, 0, 1, 1), ValueError),
        (lambda a: np.diag(a), ValueError),
        (lambda a: np.tril(a[0, 0, 0]), TypeError),
    ],
)
def test_mistakes_raise_as_in_numpy(numpy, error):
    with pytest.raises(error):
        numpy(A)
    with pytest.raises(error):
        fnad.vjp(numpy, A)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: np.ravel(a, "K"),
        lambda a: np.reshape(a, (-1,), order="A"),
        lambda a: np.pad(a, 1, mode="mean"),
        lambda a: np.pad(a, 1, mode="reflect", reflect_type="odd"),
        lambda a: np.pad(a, 1, mode=lambda *args: None),
        lambda a: np.resize(a, (2, 2)),
    ],
)
def test_what_cannot_be_traced_is_refused(f):
    with pytest.raises(UnsupportedError):
        fnad.vjp(f, A)


def test_pad_with_traced_values():
    agrees(lambda a, s: np.pad(a, ((1, 1), (0, 0)), constant_values=((0.0, 0.0), (1.0, 1.0))) * s, M, S)
    f = lambda a, s: np.pad(a, ((1, 0), (0, 1)), constant_values=s)
    out, pull = fnad.vjp(f, M, S)
    same(out, f(M, S))
    np.testing.assert_array_equal(pull(np.ones((4, 5)))[1], 8.0)
    with pytest.raises(DTypeError, match="kind"):
        fnad.vmap(lambda s: np.pad(fnad.stop_gradient(s).astype(int), 1, constant_values=s))(V[:, None])


def test_traced_counts_must_be_known():
    same(fnad.grad(lambda x: np.sum(np.repeat(x, [int(x[0] > 0), 2])))(np.array([1.0, 2.0])), np.array([1.0, 2.0]))
    with pytest.raises(fnad.errors.ConcretizationError):
        fnad.vmap(lambda n: np.repeat(n, n))(np.array([1, 2]))


def test_astype():
    agrees(lambda a: a.astype(np.float32).astype(np.float64), A.astype(np.float32).astype(np.float64), order=0)
    same(fnad.grad(lambda x: np.sum(x.astype(np.float32)))(V), np.ones(4))
    same(fnad.grad(lambda x: np.sum(x.astype(complex).real))(V), np.ones(4))
    same(fnad.grad(lambda x: np.sum(x * x.astype(int)))(np.array([1.5, 2.5])), np.array([1.0, 2.0]))
    same(fnad.grad(lambda x: np.sum(np.astype(x, bool) * x))(np.array([1.5, 0.0])), np.array([1.0, 0.0]))


# -- creation --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.zeros_like, np.ones_like, lambda a, **k: np.full_like(a, 3, **k)])
@pytest.mark.parametrize("options", [{}, {"dtype": int}, {"shape": 4}, {"shape": (2, 2), "dtype": np.float32}])
def test_like(make, options):
    seen = []
    fnad.grad(lambda x: np.sum(seen.append(make(x, **options)) or x))(A)
    assert type(seen[0]) is np.ndarray
    same(seen[0], make(A, **options))
    fnad.vmap(lambda x: seen.append(make(x, **options)) or x)(A)
    same(seen[1], make(A[0], **options))


def test_empty_like():
    fnad.grad(lambda x: np.sum(x) * (np.empty_like(x, dtype=np.float32).shape == (2, 3, 2)))(A)


def test_full_like_of_a_traced_value():
    agrees(lambda a, s: np.full_like(a, s), A, S)
    agrees(lambda a, s: np.full_like(a, s, shape=(2, 2)) * a[0, 0, 0], A, S)
    with pytest.raises(DTypeError, match="kind"):
        fnad.grad(lambda x: np.sum(np.full_like(x, x[0], dtype=int)))(V)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: np.full(3, t),
        lambda t: np.full_like(np.ones(3), t),
        lambda t: np.array([t, t]),
        lambda t: np.array([1.0, t], dtype=float),
        lambda t: np.asarray(t),
        lambda t: np.arange(t),
        lambda t: np.eye(2) * np.array(t),
        lambda t: np.copyto(np.zeros(1), t),
        lambda t: np.fill_diagonal(np.zeros((2, 2)), t),
        lambda t: np.put(np.zeros(2), [0], t),
        lambda t: np.vectorize(lambda x: x)(t),
        lambda t: np.frompyfunc(lambda x: x, 1, 1)(t),
        lambda t: np.ix_(t, t),
    ],
)
def test_spellings_that_would_drop_a_derivative_raise(f):
    with pytest.raises((TracerConversionError, UnsupportedError, fnad.errors.InPlaceError)):
        fnad.grad(lambda t: np.sum(f(t)))(1.0)
    with pytest.raises((TracerConversionError, UnsupportedError, fnad.errors.InPlaceError)):
        fnad.vmap(lambda t: np.sum(f(t)))(V)


@pytest.mark.parametrize(("num", "endpoint"), list(itertools.product((0, 1, 2, 5), (True, False))))
def test_linspace(num, endpoint):
    agrees(lambda a, b: np.linspace(a, b, num, endpoint), S, np.float64(3.1), rounds=True)


def test_linspace_forms():
    agrees(lambda a, b: np.linspace(a, b, 4, axis=1), V, V[::-1].copy(), rounds=True)
    agrees(lambda a: np.linspace(a, 1.0, 4, retstep=True), S, rounds=True)
    agrees(lambda a, b: np.logspace(a, b, 3), S, np.float64(1.1), rounds=True)
    agrees(lambda a, b: np.logspace(a, b, 3, base=2.0, dtype=float), S, np.float64(1.1), rounds=True)
    same(fnad.vjp(lambda b: np.linspace(0.0, b, 3, dtype=np.float32), S)[0].dtype, np.dtype(np.float32))
    last = fnad.vjp(lambda a, b: np.linspace(a, b, 50), np.float64(0.1), np.float64(0.7))[0][-1]
    assert last == 0.7
    with pytest.raises(ValueError, match="non-negative"):
        fnad.vjp(lambda b: np.linspace(0.0, b, -1), S)
    with pytest.raises(UnsupportedError):
        fnad.vjp(lambda b: np.linspace(0.0, b, 3, dtype=int), S)
    with pytest.raises(UnsupportedError):
        fnad.vjp(lambda b: np.logspace(0.0, b, 3, base=np.array([2.0, 3.0])), S)
