"""Products, norms, powers and chains on traced values: values, dtypes and errors as NumPy's; derivatives exact."""

from __future__ import annotations

import itertools
import warnings
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import ArgumentError, InPlaceError, ShapeError
from fnad.testing import check_grads, check_vmap

MATVEC = [np.matvec, np.vecmat] if hasattr(np, "matvec") else []


def named(f, **keywords):
    """`f` with keywords, and a name for the test's id."""
    g = lambda *xs: f(*xs, **keywords)
    g.__name__ = f.__name__ + "".join(f" {k}={v}" for k, v in keywords.items())
    return g


def multi_dot(*arrays):
    return np.linalg.multi_dot(arrays)


PRODUCTS = [
    *((np.matmul, *shapes) for shapes in [
        [(2, 3), (3, 4)], [(3,), (3,)], [(2, 3), (3,)], [(3,), (3, 2)], [(4, 2, 3), (3, 2)], [(2, 3), (4, 3, 2)], [(4, 2, 3), (4, 3, 2)],
        [(2, 1, 3, 4), (5, 4, 2)], [(1, 2, 3), (3, 2)], [(2, 3), (1, 3, 2)], [(4, 2, 3), (1, 3, 2)], [(1, 1, 2, 3), (4, 3, 2)],
        [(2, 1, 2, 3), (1, 4, 3, 2)], [(4, 2, 3), (3,)], [(3,), (4, 3, 2)], [(2, 1), (1, 3)], [(1, 3), (3, 1)], [(4, 2, 3), (3, 1)],
        [(2, 3), (4, 3, 1)], [(4, 1, 3), (3, 2)], [(4, 2, 1), (1, 3)], [(1, 1), (1, 1)], [(2, 0), (0, 3)], [(0, 2), (2, 3)],
        [(0, 2, 3), (3, 2)], [(2, 3), (0, 3, 2)], [(0,), (0,)],
    ]),
    (lambda a, b: a @ b, (2, 3), (3, 2)),
    (np.linalg.matmul, (2, 3), (3,)),
    *((np.dot, *shapes) for shapes in [
        [(2, 3), (3, 4)], [(3,), (3,)], [(2, 3), (3,)], [(3,), (3, 2)], [(2, 2, 3), (3,)], [(2, 2, 3), (3, 2)], [(3,), (2, 3, 4)],
        [(2, 3), (2, 3, 4)], [(2, 2, 3), (2, 3, 1)], [(), ()], [(), (2, 3)], [(2, 3), ()], [(2, 0), (0, 3)],
    ]),
    *((np.vdot, *shapes) for shapes in [[(3,), (3,)], [(2, 3), (3, 2)], [(), ()], [(), (1,)], [(0,), (0, 2)]]),
    *((np.inner, *shapes) for shapes in [[(3,), (3,)], [(2, 3), (4, 3)], [(2, 2, 3), (3,)], [(3,), (2, 2, 3)], [(), (2,)], [(2,), ()]]),
    (np.inner, (2, 2), (2, 1, 2)),
    *((np.outer, *shapes) for shapes in [[(2,), (3,)], [(2, 2), (3,)], [(), (3,)], [(), ()], [(0,), (3,)]]),
    (np.linalg.outer, (2,), (3,)),
    *((named(np.tensordot, axes=axes), *shapes) for axes, *shapes in [
        (2, (2, 3, 4), (3, 4, 2)), (1, (2, 3), (3, 2)), (0, (2,), (3,)), (2, (2, 3), (2, 3)), (-1, (2,), (3,)), (np.int64(1), (2, 3), (3,)),
        (([1, 0], [0, 2]), (2, 3, 4), (3, 1, 2)), ((1, 0), (2, 3), (3, 2)), ([-1, -2], (2, 3), (3, 2)), (((0, 1), (1, 0)), (2, 3), (3, 2)),
        (([], []), (2,), (3,)), (([2, 0], [-3, 1]), (2, 3, 4), (4, 2, 1)), (0, (), (2, 3)), (1, (2, 0), (0, 3)),
    ]),
    (named(np.linalg.tensordot, axes=1), (2, 3), (3, 2)),
    *((np.kron, *shapes) for shapes in [[(2,), (3,)], [(2, 2), (3, 1)], [(2,), (2, 3)], [(2, 1, 2), (3,)], [(), (2,)], [(2, 2), ()]]),
    (np.kron, (0,), (2,)),
    *((np.cross, *shapes) for shapes in [[(3,), (3,)], [(2, 3), (3,)], [(2, 1, 3), (4, 3)]]),
    (named(np.cross, axis=0), (3, 2), (3, 2)),
    (named(np.cross, axisa=0, axisb=1, axisc=0), (3, 2), (2, 3)),
    (named(np.cross, axisc=-2), (4, 2, 3), (2, 3)),
    (named(np.linalg.cross, axis=0), (3, 2), (3, 2)),
    *((np.vecdot, *shapes) for shapes in [[(3,), (3,)], [(2, 3), (3,)], [(2, 1, 3), (4, 3)], [(2, 1), (2, 1)]]),
    (named(np.linalg.vecdot, axis=0), (3, 2), (3, 2)),
    (named(np.linalg.vecdot, axis=-2), (2, 3, 2), (3, 2)),
    *((f, *shapes) for f in MATVEC[:1] for shapes in [[(2, 3), (3,)], [(4, 2, 3), (3,)], [(2, 3), (4, 3)]]),
    *((f, *shapes) for f in MATVEC[1:] for shapes in [[(3,), (3, 2)], [(4, 3), (3, 2)]]),
    (multi_dot, (2, 3), (3, 4), (4, 2)),
    (multi_dot, (3,), (3, 4), (4, 2), (2,)),
    (multi_dot, (2, 3), (3, 1), (1, 4), (4,)),
    (multi_dot, (3,), (3, 2)),
    (multi_dot, (2, 2, 3), (3, 2)),
    (multi_dot, (3,), (3,)),
]  # fmt: skip


def draw(shapes, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=s), dtype) for s in shapes]


def traced(f, *args):
    """The value of `f` computed on tracers."""
    return fnad.vjp(f, *args)[0]


def same(got, want):
    assert np.shape(got) == np.shape(want)
    assert got.dtype == want.dtype
    coarse = got.dtype.itemsize <= 4 or got.dtype == np.complex64
    np.testing.assert_allclose(got, want, rtol=1e-5 if coarse else 1e-12, atol=1e-5 if coarse else 1e-12)


def check_multilinear(f, arrays):
    """Value against NumPy; the derivative in an operand is `f` with the direction in its place; reverse mode by duality."""
    value, pullback = fnad.vjp(f, *arrays)
    same(value, np.asarray(f(*arrays)))
    rng = np.random.default_rng(1)
    cotangent = rng.normal(size=np.shape(value))
    grads = pullback(cotangent)
    for k, x in enumerate(arrays):
        t = rng.normal(size=x.shape)
        want = np.asarray(f(*(t if i == k else y for i, y in enumerate(arrays))))
        same(fnad.jvp(lambda v, k=k: f(*arrays[:k], v, *arrays[k + 1 :]), (x,), (t,))[1], want)
        assert grads[k].shape == x.shape
        np.testing.assert_allclose(np.sum(grads[k] * t), np.sum(cotangent * want), rtol=1e-10, atol=1e-10)


CALLS = [pytest.param(c[0], c[1:], id=f"{c[0].__name__} {' '.join(map(str, c[1:]))}") for c in PRODUCTS]


@pytest.mark.parametrize(("f", "shapes"), CALLS)
def test_product(f, shapes):
    check_multilinear(f, draw(shapes))


@pytest.mark.parametrize(("f", "shapes"), CALLS)
def test_product_to_second_order(f, shapes):
    check_grads(lambda *xs: np.sin(f(*xs)), tuple(draw(shapes)))


@pytest.mark.parametrize(("f", "shapes"), CALLS)
def test_product_under_vmap(f, shapes):
    grad = lambda *xs: fnad.grad(lambda *ys: np.sum(np.sin(f(*ys))), tuple(range(len(xs))))(*xs)
    n = len(shapes)
    for batched in itertools.product((True, False), repeat=n) if n == 2 else [(True,) * n]:
        if any(batched):
            args = tuple(draw([(3, *s) if b else s for s, b in zip(shapes, batched, strict=True)]))
            check_vmap(f, args, in_axes=tuple(0 if b else None for b in batched))
            check_vmap(grad, args, in_axes=tuple(0 if b else None for b in batched))


@pytest.mark.parametrize(("f", "shapes"), CALLS)
def test_dtypes_of_products(f, shapes):
    arrays = draw(shapes, dtype=np.float32)
    for other in (np.float32, np.float64, np.int64, bool):
        mixed = [arrays[0], *(np.asarray(np.sign(x), other) for x in arrays[1:])]
        one = lambda a, mixed=mixed: f(a, *mixed[1:])
        try:
            want = np.asarray(f(*mixed))
        except TypeError:  # NumPy: no such loop
            continue
        same(traced(one, mixed[0]), want)
        assert fnad.grad(lambda a, one=one: np.sum(one(a)))(mixed[0]).dtype == np.float32
        same(fnad.jvp(one, (mixed[0],), (mixed[0],))[1], want)


@pytest.mark.parametrize(("f", "shapes"), CALLS[::2])
def test_complex_products(f, shapes):
    real, imaginary = draw(shapes), draw(shapes, seed=1)
    arrays = tuple(np.asarray(x + 1j * y) for x, y in zip(real, imaginary, strict=True))
    same(traced(f, *arrays), np.asarray(f(*arrays)))
    check_grads(f, arrays, order=1)


@given(st.data())
def test_matmul_of_any_ranks(data):
    side = st.integers(0, 3)
    n, k, m = data.draw(side), data.draw(side), data.draw(side)
    lead = data.draw(st.lists(side, max_size=3))
    shapes = []
    for core in ((n, k), (k, m)):
        own = [data.draw(st.sampled_from((1, s))) for s in lead[data.draw(st.integers(0, len(lead))) :]]
        shapes.append((*own, *core))
    check_multilinear(np.matmul, draw(shapes))


def test_operands_that_are_no_arrays():
    x = np.arange(1.0, 3.0)
    same(traced(lambda v: [[1.0, 2.0], [3.0, 4.0]] @ v, x), np.array([5.0, 11.0]))
    same(traced(lambda v: np.matmul(v, [3.0, 4.0]), x), np.float64(11.0))
    same(traced(lambda v: np.dot([3.0, 4.0], v), x), np.float64(11.0))
    same(traced(lambda v: np.kron((1, 2), v), x), np.array([1.0, 2.0, 2.0, 4.0]))
    with pytest.raises(fnad.errors.TracerConversionError):
        traced(lambda v: np.dot([v[0], 1.0], v), x)


def test_dot_as_a_method():
    x, y = draw([(2, 3), (3,)])
    same(traced(lambda a: a.dot(y), x), x @ y)
    with pytest.raises(fnad.errors.TracerConversionError):  # ndarray.dot does not ask its operand
        traced(lambda v: x.dot(v), y)


@pytest.mark.parametrize("f", [np.dot, np.inner, np.outer, np.kron, np.vdot])
def test_python_scalars_decide_the_dtype_as_in_numpy(f):
    for x in (np.ones(1, np.float32), np.float32(2)):
        want = f(2.0, x).dtype
        assert traced(lambda v, x=x: f(v, x), 2.0).dtype == want
        assert traced(lambda v: f(2.0, v), x).dtype == want


@pytest.mark.parametrize(
    ("f", "shapes", "error"),
    [
        (np.matmul, [(), (3,)], ValueError),
        (np.matmul, [(3,), ()], ValueError),
        (np.matmul, [(3,), (4,)], ValueError),
        (np.matmul, [(2, 3), (2, 3)], ValueError),
        (np.matmul, [(2, 3, 4), (3, 4, 5)], ValueError),
        (np.matmul, [(3, 1), (3, 1)], ValueError),
        (np.dot, [(3,), (4,)], ValueError),
        (np.dot, [(2, 3), (2, 3)], ValueError),
        (np.dot, [(2, 2, 3), (2, 2)], ValueError),
        (np.vdot, [(3,), (4,)], ValueError),
        (np.inner, [(3,), (4,)], ValueError),
        (np.linalg.outer, [(2, 2), (3,)], ValueError),
        (np.tensordot, [(2, 3), (3, 2)], ValueError),
        (named(np.tensordot, axes=([0], [0, 1])), [(2, 3), (2, 3)], ValueError),
        (named(np.tensordot, axes=([0, 0], [0, 0])), [(2, 2), (2, 2)], ValueError),
        (named(np.tensordot, axes=([5], [0])), [(2, 2), (2, 2)], IndexError),
        (named(np.tensordot, axes=3), [(2, 2), (2, 2)], IndexError),
        (np.cross, [(4,), (4,)], ValueError),
        (np.cross, [(), (3,)], ValueError),
        (named(np.cross, axis=1), [(3,), (3,)], np.exceptions.AxisError),
        (np.linalg.cross, [(2,), (2,)], ValueError),
        (np.vecdot, [(3,), (4,)], ValueError),
        (np.vecdot, [(), (4,)], ValueError),
        (lambda a: np.linalg.multi_dot([a]), [(3,)], ValueError),
        (multi_dot, [(3,), (3,), (3,)], np.linalg.LinAlgError),
        (multi_dot, [(2, 3), (2, 3, 3), (3,)], np.linalg.LinAlgError),
        (named(np.linalg.matrix_power, n=2), [(2, 3)], np.linalg.LinAlgError),
        (named(np.linalg.matrix_power, n=2), [(3,)], np.linalg.LinAlgError),
        (named(np.linalg.matrix_power, n=2.0), [(3, 3)], TypeError),
        (np.trace, [(3,)], ValueError),
        (named(np.trace, axis1=0, axis2=0), [(3, 3)], ValueError),
        (named(np.trace, axis1=0, axis2=5), [(3, 3)], np.exceptions.AxisError),
        *((f, [(2, 3), (2,)], ValueError) for f in MATVEC),
        *((f, [(3,), (3,)], ValueError) for f in MATVEC),
    ],
)
def test_errors_as_in_numpy(f, shapes, error):
    arrays = draw(shapes)
    with pytest.raises(error):
        f(*arrays)
    with pytest.raises(error):
        traced(f, *arrays)


def test_shape_errors_tell_both_operands():
    for call in (lambda a, b: a @ b, np.dot):
        with pytest.raises(ShapeError, match=r"float64\[2,3\][\s\S]*float64\[2,3\]"):
            traced(call, np.ones((2, 3)), np.ones((2, 3)))
        with pytest.raises(ShapeError):
            fnad.eval_shape(call, np.ones((2, 3)), np.ones((2, 3)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: np.dot(x, x, out=out),
        lambda x, out: np.outer(x, x, out=out),
        lambda x, out: np.matmul(x, x, out=out),
        lambda x, out: np.trace(x, out=out),
        lambda x, out: np.linalg.multi_dot([x, x], out=out),
    ],
)
def test_out_is_refused(call):
    with pytest.raises(InPlaceError):
        traced(lambda x: call(x, np.zeros((2, 2))), np.ones((2, 2)))


def test_plane_vectors_in_cross():
    for shapes in ([(2,), (2,)], [(2,), (3,)], [(3,), (2,)], [(4, 2), (3,)]):
        arrays = draw(shapes)
        with pytest.warns(DeprecationWarning, match="2-dimensional"):
            want = np.cross(*arrays)
        with pytest.warns(DeprecationWarning, match="2-dimensional"):
            same(traced(np.cross, *arrays), np.asarray(want))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_multilinear(np.cross, arrays)


def test_a_product_keeps_only_what_its_pullback_reads():
    w = np.ones((3, 2))

    def f(x):
        wide = np.tanh(x)
        refs.append(weakref.ref(wide.value))
        return np.sum(wide @ w)

    refs = []
    pullback = fnad.vjp(f, np.ones((2, 3)))[1]
    np.testing.assert_allclose(pullback(np.float64(1.0))[0], 2 * (1 - np.tanh(1.0) ** 2) * np.ones((2, 3)))

    def g(x, w):
        wide = x + 1.0
        refs.append(weakref.ref(wide.value))
        return np.sum(np.matmul(wide, w))

    pullback = fnad.vjp(lambda x: g(x, w), np.ones((2, 3)))[1]
    assert pullback is not None
    assert refs[1]() is None


def test_a_stack_times_one_matrix_is_pulled_back_as_one_product():
    x, w = draw([(4, 2, 3), (3, 5)])
    pulled = lambda x, w, g: fnad.vjp(lambda w: x @ w, w)[1](g)[0]
    text = str(fnad.make_graph(pulled)(x, w, np.ones((4, 2, 5))))
    assert "sum" not in text
    same(pulled(x, w, np.ones((4, 2, 5))), np.einsum("bij,bik->jk", x, np.ones((4, 2, 5))))


def test_vmap_of_a_vector_product_is_one_matrix_product():
    x, w = draw([(4, 3), (3, 5)])
    for f in (lambda v: v @ w, lambda v: w.T @ v):
        text = str(fnad.make_graph(lambda x, f=f: fnad.vmap(f)(x))(x))
        assert "float64[4,5] = matmul" in text
        same(fnad.vmap(f)(x), x @ w)


# -- trace ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((3, 3), {}),
        ((2, 4), {"offset": 1}),
        ((4, 2), {"offset": -2}),
        ((3, 3), {"offset": 5}),
        ((2, 3, 4), {}),
        ((2, 3, 4), {"axis1": 1, "axis2": 2}),
        ((2, 3, 4), {"axis1": -1, "axis2": 0, "offset": 1}),
        ((0, 0), {}),
    ],
)
def test_trace(shape, options):
    f = lambda x: np.trace(x, **options)
    check_multilinear(f, draw([shape]))
    check_vmap(f, tuple(draw([(3, *shape)])))
    check_grads(lambda x: np.sin(f(x)), tuple(draw([shape])))


def test_trace_dtypes_and_spellings():
    x = np.arange(12.0).reshape(3, 2, 2)
    same(traced(lambda a: np.linalg.trace(a, offset=1), x), np.linalg.trace(x, offset=1))
    same(traced(lambda a: np.linalg.diagonal(a, offset=-1), x), np.linalg.diagonal(x, offset=-1))
    same(traced(np.linalg.matrix_transpose, x), np.linalg.matrix_transpose(x))
    same(traced(lambda a: a.trace(), x[0]), np.trace(x[0]))
    assert traced(lambda a: np.trace(a, dtype=np.float64), np.eye(2, dtype=np.float32)).dtype == np.float64
    assert fnad.eval_shape(np.trace, np.ones((2, 2), np.int8)).dtype == np.trace(np.ones((2, 2), np.int8)).dtype


# -- norms ---------------------------------------------------------------------------------------------------------

VECTOR_ORDERS = [None, 1, 2, 3, 2.5, np.inf, -np.inf, 0, -1, -2.0, 0.5, np.float64(3.0), True]
MATRIX_ORDERS = [None, "fro", "f", 1, -1, np.inf, -np.inf]


def norms():
    for order in VECTOR_ORDERS:
        yield named(np.linalg.norm, ord=order), (4,)
        yield named(np.linalg.norm, ord=order, axis=0), (3, 2)
        yield named(np.linalg.norm, ord=order, axis=-1, keepdims=True), (2, 3)
        yield named(np.linalg.norm, ord=order, axis=(1,)), (2, 3)
        if order is not None:
            yield named(np.linalg.vector_norm, ord=order), (2, 3)
            yield named(np.linalg.vector_norm, ord=order, axis=(0, 2), keepdims=True), (2, 3, 2)
            yield named(np.linalg.vector_norm, ord=order, axis=1), (2, 3)
    for order in MATRIX_ORDERS:
        yield named(np.linalg.norm, ord=order), (3, 2)
        yield named(np.linalg.norm, ord=order, axis=(0, 2)), (3, 2, 2)
        yield named(np.linalg.norm, ord=order, axis=(-1, 0), keepdims=True), (3, 2, 2)
        if order is not None:
            yield named(np.linalg.matrix_norm, ord=order), (2, 3, 2)
            yield named(np.linalg.matrix_norm, ord=order, keepdims=True), (2, 3)
    yield np.linalg.norm, (2, 2, 2)
    yield np.linalg.norm, ()
    yield named(np.linalg.norm, keepdims=True), (2, 2)


NORMS = [pytest.param(f, shape, id=f"{f.__name__} {shape}") for f, shape in norms()]


@pytest.mark.parametrize(("f", "shape"), NORMS)
def test_norm(f, shape):
    (x,) = draw([shape])
    same(traced(f, x), np.asarray(f(x)))
    check_grads(f, (x,))
    check_vmap(f, tuple(draw([(3, *shape)])))
    check_vmap(fnad.grad(lambda v: np.sum(np.sin(f(v)))), tuple(draw([(3, *shape)])))


@pytest.mark.parametrize(("f", "shape"), NORMS)
def test_dtype_of_norm(f, shape):
    for dtype in (np.float32, np.complex64, np.complex128, np.int64):
        x = np.asarray(np.random.default_rng(0).normal(size=shape) * 4 + 1, np.float64).astype(dtype)
        with np.errstate(all="ignore"):
            want = np.asarray(f(x))
        got = fnad.eval_shape(f, x)
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if x.dtype.kind != "i":
            same(traced(f, x), want)
            assert fnad.grad(lambda v: np.sum(f(v)))(x).dtype == dtype


@pytest.mark.parametrize("f", [named(np.linalg.norm, ord=p) for p in (None, 1, 3, np.inf)], ids=lambda f: f.__name__)
def test_norm_of_complex_vectors(f):
    rng = np.random.default_rng(3)
    check_grads(f, (rng.normal(size=3) + 1j * rng.normal(size=3),))


@pytest.mark.parametrize(("f", "shape"), NORMS)
def test_norm_at_the_origin_has_gradient_zero(f, shape):
    x = np.zeros(shape)
    g = fnad.grad(lambda v: np.sum(f(v)))(x)
    np.testing.assert_array_equal(g, np.zeros(shape))


def test_squared_norm_at_the_origin():
    for x in (np.zeros(3), np.array([1.0, -2.0, 0.5])):
        np.testing.assert_allclose(fnad.grad(lambda v: np.linalg.norm(v) ** 2)(x), 2 * x, rtol=1e-15)
        np.testing.assert_allclose(fnad.jvp(lambda v: np.linalg.norm(v) ** 2, (x,), (np.ones(3),))[1], np.sum(2 * x), rtol=1e-15)
    np.testing.assert_array_equal(fnad.grad(lambda v: np.exp(-1.0 * np.linalg.norm(v) ** 2))(np.zeros((2, 1))), np.zeros((2, 1)))


def test_norm_where_some_entries_are_zero():
    for p in (3, 1.5, 2, 1, 0.5, -1, np.inf):
        check_grads(lambda v, p=p: np.linalg.norm(v, p), (np.array([3.0, 4.0, -1.0]),), order=1)
        g = fnad.grad(lambda v, p=p: np.linalg.norm(v, p))(np.array([3.0, 0.0, -1.0]))
        assert g[1] == 0
        assert np.all(np.isfinite(g))
    rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(fnad.grad(lambda m: np.sum(np.linalg.norm(m, axis=1)))(rows), [[0.0, 0.0], [0.6, 0.8]])


def test_ties_in_the_infinity_norm_share_the_gradient():
    np.testing.assert_array_equal(fnad.grad(lambda v: np.linalg.norm(v, np.inf))(np.array([2.0, -2.0, 1.0])), [0.5, -0.5, 0.0])


def test_norm_of_nothing():
    for order in (None, 2, 1, 0, 3, np.inf):
        assert traced(lambda v, order=order: np.linalg.norm(v, order), np.zeros(0)) == np.linalg.norm(np.zeros(0), order)
    assert traced(lambda m: np.linalg.norm(m, 1), np.zeros((2, 0))) == 0


@pytest.mark.parametrize(
    ("shape", "options", "error"),
    [
        ((3,), {"ord": "fro"}, ValueError),
        ((3,), {"ord": "nuc"}, ValueError),
        ((3, 3), {"ord": 0}, ValueError),
        ((3, 3), {"ord": 3}, ValueError),
        ((3, 3), {"ord": "abc"}, ValueError),
        ((3, 3, 3), {"ord": 1}, ValueError),
        ((3, 3, 3), {"axis": (0, 1, 2)}, ValueError),
        ((3, 3, 3), {"axis": (0, 0)}, ValueError),
        ((3, 3), {"axis": 5}, np.exceptions.AxisError),
        ((3, 3), {"axis": [0, 1]}, TypeError),
        ((3, 3), {"axis": 1.5j}, TypeError),
        ((0,), {"ord": -np.inf}, ValueError),
        ((), {"ord": 1}, ValueError),
    ],
)
def test_errors_of_norm_as_in_numpy(shape, options, error):
    x = np.ones(shape)
    with pytest.raises(error):
        np.linalg.norm(x, **options)
    with pytest.raises(error):
        traced(lambda v: np.linalg.norm(v, **options), x)


def test_what_norm_cannot_trace():
    for f in (np.linalg.norm, np.linalg.vector_norm):
        with pytest.raises(ArgumentError):
            traced(lambda v, p, f=f: f(v, ord=p), np.ones(2), 2.0)
        with pytest.raises(TypeError):  # a plain array does not ask its order
            traced(lambda p, f=f: f(np.ones(2), ord=p), 3.0)


# -- powers and chains ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, np.int64(5)])
@pytest.mark.parametrize("shape", [(2, 2), (2, 3, 3), (0, 0)])
def test_matrix_power(shape, n):
    (x,) = draw([shape])
    f = lambda a: np.linalg.matrix_power(a, n)
    same(np.asarray(traced(f, x)), np.linalg.matrix_power(x, n))
    check_grads(f, (0.5 * x,))


def test_chains_multiply_in_the_cheapest_order():
    shapes = [(10, 100), (100, 5), (5, 50)]
    a, b, c = draw(shapes)
    text = str(fnad.make_graph(multi_dot)(a, b, c))
    assert "float64[10,5] = matmul" in text
    text = str(fnad.make_graph(multi_dot)(np.ones((50, 5)), np.ones((5, 100)), np.ones((100, 10)), np.ones(10)))
    assert "float64[100] = matmul" in text
