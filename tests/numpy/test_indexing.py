"""Indexing of traced arrays: NumPy's semantics for every kind of index, and the transposes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.core.aval import aval_of
from fnad.core.cotangent import Scattered
from fnad.core.graph import evaluate, record
from fnad.core.primitive import REGISTRY
from fnad.errors import ConcretizationError, InPlaceError, TracerConversionError, UnsupportedError
from fnad.testing import check_grads, check_vmap

from .agree import agrees, same
from .indices import indexed

X = np.arange(24.0).reshape(2, 3, 4) ** 1.5
V = np.array([3.0, 1.0, 2.0])
TABLE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def draw(seed, shape):
    return np.random.default_rng(seed).normal(size=shape)


def transpose(shape, index, g):
    """What the pullback of `x[index]` must give."""
    out = np.zeros(shape)
    np.add.at(out, index, g)
    return out


@settings(max_examples=400)
@given(indexed())
def test_any_index(case):
    shape, index = case
    x = draw(0, shape)
    try:
        want = x[index]
    except IndexError:
        with pytest.raises(IndexError):
            fnad.vjp(lambda x: x[index], x)
        return
    if any(isinstance(i, np.ndarray) and i.dtype == bool and 0 in i.shape for i in (index if isinstance(index, tuple) else (index,))):
        return  # NumPy lets some empty masks pass that do not fit
    out, pull = fnad.vjp(lambda x: x[index], x)
    same(out, want)
    g = draw(1, np.shape(want))
    np.testing.assert_allclose(pull(g)[0], transpose(shape, index, g))
    direction = draw(2, shape)
    same(fnad.jvp(lambda x: x[index], (x,), (direction,))[1], direction[index])
    batch, cotangents = draw(3, (2, *shape)), draw(4, (2, *np.shape(want)))
    same(fnad.vmap(lambda x: x[index])(batch), np.stack([np.asarray(x)[index] for x in batch]))
    back = fnad.vmap(lambda x, g: fnad.vjp(lambda x: x[index], x)[1](g)[0])(batch, cotangents)
    np.testing.assert_allclose(back, np.stack([transpose(shape, index, g) for g in cotangents]))
    graph = record(lambda x: [x[index]], [aval_of(x)])
    assert graph.outputs[0].aval.shape == np.shape(want)
    np.testing.assert_array_equal(evaluate(graph, [x])[0], want)


@settings(max_examples=150)
@given(indexed(("int", "slice", "None", "...", "array", "array", "0-d"), 1), st.data())
def test_any_traced_index_arrays(case, data):
    shape, index = case
    items = index if isinstance(index, tuple) else (index,)
    places = [k for k, i in enumerate(items) if isinstance(i, np.ndarray)]
    try:
        sizes = np.shape(draw(0, shape)[index])
    except IndexError:
        return

    def build(arrays):
        return tuple(arrays[places.index(k)] if k in places else i for k, i in enumerate(items))

    def f(x, *arrays):
        return fnad.at(x)[build(arrays)].get()

    def back(x, *arrays):
        return fnad.vjp(lambda x: f(x, *arrays), x)[1](draw(7, sizes))[0]

    axes = [data.draw(st.sampled_from([0, None])) for _ in range(1 + len(places))]
    if all(a is None for a in axes):
        return
    args = [draw(0, shape) if axes[0] is None else draw(0, (2, *shape))]
    for axis, k in zip(axes[1:], places, strict=True):
        args.append(items[k] if axis is None else np.stack([items[k], -1 - items[k]]))
    check_vmap(f, tuple(args), tuple(axes))
    check_vmap(back, tuple(args), tuple(axes))
    plain = [args[0] if axes[0] is None else args[0][0], *[items[k] for k in places]]
    graph = record(lambda *a: [f(*a)], [aval_of(a) for a in plain])
    assert graph.outputs[0].aval.shape == sizes
    np.testing.assert_array_equal(evaluate(graph, plain)[0], f(*plain))


INDICES = {
    "int": 1,
    "negative": -1,
    "slice": slice(None, None, -2),
    "tuple": (0, slice(1, None), None, -1),
    "array": np.array([1, 0, 1]),
    "separated": (np.array([0, 1, 1]), slice(None), np.array([2, -1, 2])),
    "consecutive": (slice(None), np.array([[0], [2]]), np.array([0, 1])),
    "int and array": (0, slice(None), [3, 3]),
    "mask": X[0, 0] > 1.0,
    "mask of rows": X[:, :, 0] > 3.0,
    "new axis": (None, [0, 0], None),
}


@pytest.mark.parametrize("name", INDICES)
def test_derivatives(name):
    index = INDICES[name] if name != "mask" else (..., INDICES[name])
    agrees(lambda x: x[index], X)


def test_complex():
    z = X + 1j * X[::-1]
    check_grads(lambda z: z[0, [1, 1], ::2], (z,))


# -- results and errors as NumPy's -----------------------------------------------------------------------------------


def test_scalars_where_numpy_gives_scalars():
    same(fnad.vjp(lambda x: x[1], V)[0], np.float64(1.0))
    same(fnad.vjp(lambda x: x[..., 1], V)[0], np.float64(1.0))
    same(fnad.vjp(lambda x: x[()], np.float64(2.0))[0], np.float64(2.0))
    same(fnad.grad(lambda x: x[1])(V.astype(np.float32)), np.array([0, 1, 0], np.float32))


@pytest.mark.parametrize(
    "index",
    [
        3, -4, (0, 0), (..., ...), (slice(None), slice(None)), 1.0, "a", [0.5], np.array([1.5]), [0, 3], np.array([-4]),
        np.array([True, False]), (np.array([0, 1]), 0), [[0, 1], [2]], np.zeros(0),
    ],
    ids=str,
)  # fmt: skip
def test_mistakes_raise_as_in_numpy(index):
    with pytest.raises((IndexError, ValueError)) as numpy:
        V[index]
    with pytest.raises(numpy.type):
        fnad.grad(lambda x: np.sum(x[index]))(V)
    with pytest.raises(numpy.type):
        fnad.make_graph(lambda x: x[index])(V)


def test_index_arrays_that_do_not_broadcast():
    with pytest.raises(IndexError):
        X[[0, 1], [0, 1, 2]]
    with pytest.raises((IndexError, ValueError)):
        fnad.grad(lambda x: np.sum(x[[0, 1], [0, 1, 2]]))(X)
    with pytest.raises(ValueError, match="broadcast"):
        fnad.make_graph(lambda x: x[[0, 1], [0, 1, 2]])(X)


def test_iteration_and_unpacking():
    same(fnad.grad(lambda x: sum(x * i for i, x in enumerate(x)))(V), np.arange(3.0))
    same(fnad.grad(lambda x: np.hypot(*x[:2]))(np.array([3.0, 4.0, 1.0])), np.array([0.6, 0.8, 0.0]))
    same(fnad.vmap(lambda x: [*x])(TABLE), [TABLE[:, 0], TABLE[:, 1]])
    with pytest.raises(TypeError, match="0-d"):
        fnad.grad(lambda x: sum(x))(1.0)


# -- masks -----------------------------------------------------------------------------------------------------------


def test_masks_of_traced_values():
    same(fnad.grad(lambda x: np.sum(x[x > 1.5] ** 2))(V), np.array([6.0, 0.0, 4.0]))
    same(fnad.grad(lambda x: np.sum(x[np.isfinite(x) & (x < 0)]))(V), np.zeros(3))
    check_grads(lambda x: x[x > np.mean(x)], (X,))


@pytest.mark.parametrize("transform", [fnad.vmap, fnad.make_graph, lambda f: lambda x: fnad.vmap(fnad.grad(lambda x: np.sum(f(x))))(x)])
def test_masks_of_unknown_entries_name_the_way_out(transform):
    with pytest.raises(ConcretizationError, match=r"np\.where"):
        transform(lambda x: x[x > 0.0])(X)
    with pytest.raises(ConcretizationError, match=r"np\.where"):
        transform(lambda x: np.compress(np.ravel(x) > 0.0, x))(X)
    with pytest.raises(ConcretizationError, match=r"np\.where"):
        transform(lambda x: np.nonzero(x))(X)


# -- traced indices --------------------------------------------------------------------------------------------------


def test_per_example_gradients_of_a_lookup():
    got = fnad.vmap(fnad.grad(lambda w, i: w[i] ** 2 * 3.0), in_axes=(None, 0))(np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]))
    same(got, np.array([[0.0, 0, 18], [6, 0, 0], [0, 0, 18]]))
    same(fnad.grad(lambda x, i: np.sum(x[i] ** 2))(np.array([1.0, 2.0, 3.0, 4.0]), np.array([3, 1, 3])), np.array([0.0, 4, 0, 16]))


def test_lookups_in_plain_tables():
    rows = np.array([[0, 2], [1, 1]])
    same(fnad.vmap(lambda i: fnad.at(TABLE)[i].get())(rows), TABLE[rows])
    same(
        fnad.vmap(lambda i: np.take_along_axis(TABLE, i[:, None], axis=0))(rows),
        np.stack([np.take_along_axis(TABLE, i[:, None], 0) for i in rows]),
    )
    for spelling in (lambda i: TABLE[i], lambda i: np.take(TABLE, i, axis=0)):
        with pytest.raises(TracerConversionError):
            fnad.vmap(spelling)(rows)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64])
def test_indices_of_any_integer_type(dtype):
    index = np.array([2, 0, 2], dtype)
    same(fnad.vjp(lambda x: x[index], V)[0], V[index])
    same(fnad.vjp(lambda x: x[index[0]], V)[0], V[2])
    same(fnad.vmap(lambda i: fnad.at(V)[i].get())(index), V[index])
    same(fnad.grad(lambda x: np.sum(x[index]))(V), np.array([1.0, 0.0, 2.0]))


def test_slices_need_known_ends():
    with pytest.raises(ConcretizationError):
        fnad.vmap(lambda x, n: x[:n])(TABLE, np.array([0, 1, 2]))


def test_a_float_tracer_is_no_index():
    with pytest.raises((IndexError, TracerConversionError)):
        fnad.grad(lambda x: np.sum(V[x]))(1.0)
    with pytest.raises(IndexError):
        fnad.vmap(lambda x: x[x])(V[None])


def test_no_in_place_changes():
    def write(x):
        x[0] = 1.0

    def delete(x):
        del x[0]

    for f in (write, delete):
        with pytest.raises(InPlaceError, match=r"fnad\.at|select"):
            fnad.grad(f)(V)
    with pytest.raises((TracerConversionError, ValueError)):
        fnad.grad(lambda x: V.copy().__setitem__(0, x[0]))(V)


# -- cotangents ------------------------------------------------------------------------------------------------------


def test_plain_cotangents_are_scattered_not_padded():
    pull = REGISTRY["static_index"].vjp(None, V, index=(1,))[0](np.float64(2.0))
    assert isinstance(pull, Scattered)
    same(pull.dense(), np.array([0.0, 2.0, 0.0]))
    pull = REGISTRY["gather"].vjp(None, V, np.array([1, 1]), axis=0)[0](np.ones(2))
    assert isinstance(pull, Scattered)
    same(pull.dense(), np.array([0.0, 2.0, 0.0]))


def test_cotangents_of_many_uses_add_up():
    f = lambda x: x[0] * x[1] + np.sum(x[1:] * x[[0, 0]]) + np.sum(x) + x[-1]
    check_grads(f, (V,))
    same(fnad.grad(lambda x: x[0] + np.sum(x) + x[1] + np.sum(x[:2]) + x[0])(V), np.array([4.0, 3.0, 1.0]))
    _, pull = fnad.vjp(lambda x: (x, x[0], x[1:]), V)
    seed = np.ones(3)
    same(pull((seed, np.float64(1.0), np.ones(2)))[0], np.array([2.0, 2.0, 2.0]))
    same(seed, np.ones(3))


def test_a_fortran_cotangent_takes_scattered_parts():
    _, pull = fnad.vjp(lambda m: (m.T, m[[0, 0], 1], m[2, 1]), TABLE)
    seed = np.ones((2, 3))
    same(pull((seed, np.ones(2), np.float64(1.0)))[0], np.array([[1.0, 3.0], [1.0, 1.0], [1.0, 2.0]]))
    same(seed, np.ones((2, 3)))
    f = lambda m: np.sum(m.T @ np.ones((3, 2))) + np.sum(m[[0, 0], 1]) + m[2, 1]
    check_grads(f, (TABLE,))


def test_hessian_of_a_lookup():
    h = fnad.hessian(lambda x: np.sum(x[[0, 0, 2]] ** 3) + x[1] ** 2)(V)
    same(h, np.diag([36.0, 2.0, 12.0]))


# -- functions -------------------------------------------------------------------------------------------------------

ROWS = np.array([[2, 0, 1, 1], [0, 0, 2, 1]])[:, None, :]
FUNCTIONS = {
    "take": lambda x: np.take(x, [[5, -1], [5, 0]]),
    "take axis": lambda x: np.take(x, [2, 2, 0], axis=1),
    "take int": lambda x: x.take(1, axis=-1),
    "take wrap": lambda x: np.take(x, [7, -9], axis=2, mode="wrap"),
    "take clip": lambda x: np.take(x, [7, -9], axis=2, mode="clip"),
    "take none": lambda x: np.take(x, [], axis=2),
    "take mask as ints": lambda x: np.take(x, [True, False], axis=0),
    "take_along_axis": lambda x: np.take_along_axis(x, ROWS, axis=1),
    "take_along_axis broadcast": lambda x: np.take_along_axis(x[:1], ROWS[:, :, :1], axis=1),
    "take_along_axis flat": lambda x: np.take_along_axis(x, np.array([3, 3, 1]), axis=None),
    "compress": lambda x: np.compress([True, False, True], x, axis=1),
    "compress short": lambda x: x.compress([False, True], axis=2),
    "compress flat": lambda x: np.compress(np.array([0, 1, 1]), x),
    "extract": lambda x: np.extract(X > 3.0, x),
    "choose": lambda x: np.choose(np.array([0, 1, 1, 0]), [x[0, 0], x[1, 1]]),
    "choose broadcast": lambda x: np.choose(np.array([[0], [1]]), [x[0, :2], 2.0]),
    "choose wrap": lambda x: np.choose(np.array([2, -1, 0, 1]), (x[0, 0], x[1]), mode="wrap"),
    "choose clip": lambda x: np.choose(np.array([2, -1, 0, 1]), x, mode="clip"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_as_numpy(name):
    agrees(FUNCTIONS[name], X)


def test_functions_of_traced_indices():
    index = np.array([[5, 1], [0, 7]])
    check_vmap(lambda i: np.choose(i, [V[:2], V[1:]], mode="wrap"), (index,))
    check_vmap(lambda i, x: np.take(x, i, mode="clip"), (index, TABLE[:2]))
    check_vmap(lambda i, x: np.take(x, i % 2), (index, TABLE[:2]))
    check_vmap(lambda i: np.unravel_index(i, (2, 4)), (index,))
    check_vmap(lambda i: np.unravel_index(i, (2, 4), order="F"), (index,))
    check_vmap(lambda x: np.unravel_index(np.argmax(x), (2, 3, 4)), (np.stack([X, -X]),))
    check_vmap(lambda i: np.unravel_index(i, 9), (index,))
    with pytest.raises(TypeError):
        fnad.grad(lambda x: np.unravel_index(x, 9)[0])(1.0)
    with pytest.raises(UnsupportedError, match="clip"):
        fnad.vmap(lambda i: np.choose(i, [V[:2], V[1:]]))(index)
    with pytest.raises(ValueError, match="order"):
        fnad.vmap(lambda i: np.unravel_index(i, 9, order="A"))(index)


def test_positions_are_plain():
    x = np.array([[0.0, 1.0], [2.0, 0.0]])
    seen = []
    fnad.grad(lambda x: np.sum(x) + 0 * len(seen.extend([np.nonzero(x), np.argwhere(x), np.flatnonzero(x), x.nonzero()]) or "1"))(x)
    same(seen, [np.nonzero(x), np.argwhere(x), np.flatnonzero(x), np.nonzero(x)])
    with pytest.raises(ValueError, match="0d"):
        fnad.grad(lambda x: x * len(np.nonzero(x)))(1.0)


@pytest.mark.parametrize(
    ("numpy", "error"),
    [
        (lambda x: np.take(x, [3], axis=1), IndexError),
        (lambda x: np.take(x, np.array([0.5])), TypeError),
        (lambda x: np.take(x, 0, axis=5), np.exceptions.AxisError),
        (lambda x: np.take(x, 0, mode="no"), ValueError),
        (lambda x: np.take_along_axis(x, np.array([0]), axis=1), ValueError),
        (lambda x: np.take_along_axis(x, np.array([[[0.5]]]), axis=1), IndexError),
        (lambda x: np.take_along_axis(x, np.array([[0]]), axis=None), ValueError),
        (lambda x: np.compress([[True]], x), ValueError),
        (lambda x: np.choose([0, 5], [x[0, 0, :2], x[0, 1, :2]]), ValueError),
    ],
)
def test_mistakes_of_functions_raise_as_in_numpy(numpy, error):
    with pytest.raises(error):
        numpy(X)
    with pytest.raises(error):
        fnad.vjp(numpy, X)
    with pytest.raises(error):
        fnad.make_graph(numpy)(X)


def test_what_changes_arrays_in_place_is_refused():
    index = np.zeros((1, 3, 4), int)
    for f in (
        lambda x: np.put(x, [0], 1.0),
        lambda x: np.put_along_axis(x, index, 1.0, axis=0),
        lambda x: np.place(x, x > 0, 1.0),
        lambda x: np.putmask(x, x > 0, 1.0),
        lambda x: np.fill_diagonal(x[0], 1.0),
        lambda x: np.copyto(x, 1.0),
        lambda x: np.take(x, 0, out=np.zeros(())),
        lambda x: x.put([0], 1.0),
    ):
        with pytest.raises((UnsupportedError, InPlaceError)):
            fnad.grad(f)(X)
