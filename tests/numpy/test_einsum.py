"""np.einsum on traced values: the same values, dtypes and errors as NumPy's, and exact derivatives (einsum is multilinear)."""

from __future__ import annotations

import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fnad
from fnad.errors import FnadError
from fnad.testing import check_grads, check_vmap

CASES = [
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ji,kj", (3, 2), (4, 3)),
    ("ijk,jkl->il", (2, 3, 4), (3, 4, 2)),
    ("ijk,kjl->li", (2, 3, 4), (4, 3, 2)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("ij,ij->ji", (2, 3), (2, 3)),
    ("ij,i->ij", (2, 3), (2,)),
    ("i,j->ji", (2,), (3,)),
    ("bi,bj->bij", (2, 3), (2, 2)),
    ("bhid,bhjd->bhij", (2, 2, 3, 2), (2, 2, 2, 2)),
    ("bihd,bjhd->bhij", (2, 3, 2, 2), (2, 2, 2, 2)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->j", (3, 3, 2)),
    ("iii->i", (2, 2, 2)),
    ("iijj->ij", (2, 2, 3, 3)),
    ("ii,jj->ij", (2, 2), (3, 3)),
    ("ii,i->i", (3, 3), (3,)),
    ("ij->", (2, 3)),
    ("ij->ji", (2, 3)),
    ("ba", (2, 3)),
    ("bA", (2, 3)),
    ("ij,k->ij", (2, 3), (4,)),
    ("i,i->", (2,), (1,)),
    ("i,i->i", (1,), (3,)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("ij,ij->i", (1, 3), (2, 1)),
    ("ii,i", (1, 1), (3,)),
    ("ij->i", (1, 1)),
    ("i,i->i", (1,), (1,)),
    (",ij->ij", (), (2, 3)),
    ("...ij,...jk->...ik", (2, 2, 3), (3, 4)),
    ("...ij,...jk", (5, 1, 2, 3), (4, 3, 2)),
    ("i...,j...->ij...", (2, 3), (4, 1)),
    ("i...i", (3, 2, 3)),
    ("...", (2, 3)),
    ("...,...", (2, 3), (3,)),
    ("i...->...", (3,)),
    ("i->...i", (3,)),
    ("...ii->...i", (2, 3, 3)),
    ("", ()),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("i,i,i->i", (3,), (3,), (3,)),
    ("i,j,k->kji", (2,), (3,), (2,)),
    ("ij,ik,il->jkl", (2, 3), (2, 2), (2, 2)),
    ("abc,cd,db,ae->e", (2, 3, 2), (2, 4), (4, 3), (2, 3)),
    ("ij,jk,ki,i->", (2, 3), (3, 1), (1, 2), (2,)),
    (" i j , j k -> i k ", (2, 3), (3, 4)),
    ("ij,jk->ik", (0, 3), (3, 4)),
    ("ij,jk->ik", (2, 0), (0, 4)),
    ("ij,j->", (2, 0), (1,)),
]


def draw(shapes, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s).astype(dtype) for s in shapes]


def traced(f, *args):
    """The value of `f` computed on tracers."""
    return fnad.vjp(f, *args)[0]


def same(got, want):
    assert np.shape(got) == np.shape(want)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5 if got.dtype.itemsize <= 4 else 1e-12, atol=1e-5 if got.dtype.itemsize <= 4 else 1e-12)


def check_multilinear(subscripts, arrays, **options):
    """Value against NumPy; the derivative in an operand is einsum with the direction in its place; reverse mode by duality."""
    f = lambda *xs: np.einsum(subscripts, *xs, **options)
    value, pullback = fnad.vjp(f, *arrays)
    same(value, np.asarray(np.einsum(subscripts, *arrays)))
    rng = np.random.default_rng(1)
    cotangent = rng.normal(size=value.shape)
    grads = pullback(cotangent)
    for k, x in enumerate(arrays):
        t = rng.normal(size=x.shape)
        moved = [t if i == k else y for i, y in enumerate(arrays)]
        want = np.asarray(np.einsum(subscripts, *moved))
        got = fnad.jvp(lambda v, k=k: f(*arrays[:k], v, *arrays[k + 1 :]), (x,), (t,))[1]
        same(got, want)
        assert grads[k].shape == x.shape
        np.testing.assert_allclose(np.sum(grads[k] * t), np.sum(cotangent * want), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("subscripts", "shapes"), [(c[0], c[1:]) for c in CASES])
def test_value_and_derivatives(subscripts, shapes):
    check_multilinear(subscripts, draw(shapes))


@pytest.mark.parametrize(("subscripts", "shapes"), [(c[0], c[1:]) for c in CASES[::3]])
def test_to_second_order(subscripts, shapes):
    check_grads(lambda *xs: np.sin(np.einsum(subscripts, *xs)), tuple(draw(shapes)))


@pytest.mark.parametrize(("subscripts", "shapes"), [(c[0], c[1:]) for c in CASES])
def test_vmap(subscripts, shapes):
    f = lambda *xs: np.einsum(subscripts, *xs)
    grad = lambda *xs: fnad.grad(lambda *ys: np.sum(np.sin(f(*ys))), tuple(range(len(xs))))(*xs)
    every = tuple(draw([(2, *s) for s in shapes]))
    check_vmap(f, every)
    check_vmap(grad, every)
    first = tuple(draw([(2, *shapes[0]), *shapes[1:]]))
    check_vmap(grad, first, in_axes=(0, *(None,) * (len(shapes) - 1)))


@st.composite
def calls(draw_):
    """Subscripts with repeated, summed and broadcast indices, ellipses, and an explicit or implicit output."""
    letters = draw_(st.permutations("abcXY"))[:4]
    sizes = {x: draw_(st.integers(0, 3)) for x in letters}
    broadcast = [draw_(st.integers(1, 3)) for _ in range(2)]
    terms, shapes, width = [], [], 0
    for _ in range(draw_(st.integers(1, 4))):
        term = draw_(st.lists(st.sampled_from(letters), max_size=3))
        small = {x for x in term if draw_(st.integers(0, 5)) == 0}
        shape = [1 if x in small else sizes[x] for x in term]
        extra = draw_(st.sampled_from((None, None, 0, 1, 2)))
        if extra is not None:
            at = draw_(st.integers(0, len(term)))
            shape[at:at] = [draw_(st.sampled_from((1, n))) for n in broadcast[2 - extra :]]
            term = [*term[:at], "...", *term[at:]]
            width = max(width, extra)
        terms.append("".join(term))
        shapes.append(tuple(shape))
    subscripts = ",".join(terms)
    if draw_(st.booleans()):
        used = sorted({c for term in terms for c in term if c in string.ascii_letters})
        out = draw_(st.lists(st.sampled_from(used), unique=True)) if used else []
        if width or draw_(st.booleans()):
            out.insert(draw_(st.integers(0, len(out))), "...")
        subscripts += "->" + "".join(out)
    return subscripts, shapes, draw_(st.sampled_from((False, True, "optimal")))


@given(calls())
def test_random_subscripts(call):
    subscripts, shapes, optimize = call
    check_multilinear(subscripts, draw(shapes), optimize=optimize)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ii", [(1, 3)]),
        ("ij,jk", [(2, 3), (4, 3)]),
        ("i,i,i", [(2,), (1,), (3,)]),
        ("...i->i", [(2, 3)]),
        ("ij->ijj", [(2, 3)]),
        ("ij->k", [(2, 3)]),
        ("..i", [(2,)]),
        ("i.j", [(2, 2)]),
        ("i...j...", [(2, 3)]),
        ("i,j", [(2,)]),
        ("i", [(2,), (2,)]),
        ("ij", [(2,)]),
        ("i", [(2, 2)]),
        ("ij...", [(2,)]),
        ("i->i->", [(3,)]),
        ("1", [(3,)]),
        ("i-j", [(3,)]),
        ("i>j", [(3,)]),
        ("i->i,", [(3,)]),
        ("...i,...i->", [(2, 3), (2, 3)]),
        ("...i,...i->...", [(2, 3), (4, 3)]),
    ],
)
def test_malformed_calls_raise_as_in_numpy(subscripts, shapes):
    arrays = draw(shapes)
    with pytest.raises(ValueError):
        np.einsum(subscripts, *arrays)
    with pytest.raises(ValueError):
        traced(lambda *xs: np.einsum(subscripts, *xs), *arrays)


def test_size_errors_name_index_and_operand():
    with pytest.raises(FnadError, match=r"index: j[\s\S]*operand 1: 4"):
        traced(lambda a, b: np.einsum("ij,jk", a, b), np.ones((2, 3)), np.ones((4, 2)))


@pytest.mark.parametrize(
    "form",
    [
        lambda a, b: (a, [0, 1], b, [1, 2]),
        lambda a, b: (a, [0, 1], b, [1, 2], [2, 0]),
        lambda a, b: (a, [5, ...], b, (..., 3)),
        lambda a, b: (a, [..., 30], b, [30, 2], [..., 2]),
        lambda a, b: (a, [40, 2], b, [2, 30]),
    ],
)
def test_sublists(form):
    a, b = draw([(2, 3), (3, 3)])
    same(traced(lambda x, y: np.einsum(*form(x, y)), a, b), np.einsum(*form(a, b)))


@pytest.mark.parametrize("bad", [[0, 52], [-1, 0], [..., ...]])
def test_bad_sublists(bad):
    with pytest.raises(ValueError):
        traced(lambda x: np.einsum(x, bad), np.ones((2, 2)))


@pytest.mark.parametrize(
    "optimize", [True, "greedy", "optimal", ("greedy", 10), ["einsum_path", (0, 1), (0, 1)], ["einsum_path", (0, 2), (0, 1)]]
)
def test_optimize_decides_the_order_only(optimize):
    arrays = draw([(2, 3), (3, 4), (4, 2)])
    check_multilinear("ij,jk,kl->il", arrays, optimize=optimize)


def test_dtypes_follow_numpy():
    x = np.ones((2, 2), np.float32)
    for other in (np.float32, np.float64, np.int64, np.int8, bool, np.complex64):
        y = np.ones((2, 2), other)
        want = np.einsum("ij,jk->i", x, y)
        same(traced(lambda a, y=y: np.einsum("ij,jk->i", a, y), x), want)
        if want.dtype.kind == "f":
            assert fnad.grad(lambda a, y=y: np.einsum("ij,jk->", a, y))(x).dtype == np.float32
    assert traced(lambda a: np.einsum("ij->", a, dtype=np.float64), x).dtype == np.float64
    assert traced(lambda a: np.einsum("ij->", a, dtype=np.float32, casting="same_kind"), x.astype(float)).dtype == np.float32
    with pytest.raises(TypeError):
        traced(lambda a: np.einsum("ij->", a, dtype=np.float32), x.astype(float))
    for small in (np.int8, np.int32, bool):
        batch = np.ones((3, 4), small)
        same(fnad.vmap(lambda v: np.einsum("i->", v))(batch), np.einsum("bi->b", batch))
        same(fnad.vmap(lambda v: np.einsum("i,i->", v, v))(batch), np.einsum("bi,bi->b", batch, batch))


def test_complex_is_not_conjugated():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    same(traced(lambda a: np.einsum("ij,ij->i", a, a), z), np.einsum("ij,ij->i", z, z))
    check_grads(lambda a: np.einsum("ij,kj->ik", a, a), (z,))


def test_keywords():
    x = np.ones(3)
    with pytest.raises(fnad.errors.InPlaceError):
        traced(lambda a: np.einsum("i->i", a, out=np.zeros(3)), x)
    with pytest.raises(TypeError, match="foo"):
        traced(lambda a: np.einsum("i->i", a, foo=1), x)
    same(traced(lambda a: np.einsum("i->i", a, order="F"), x), x)


def test_einsum_path_answers_from_shapes():
    arrays = draw([(2, 3), (3, 4), (4, 2)])
    found = []
    traced(lambda *xs: found.append(np.einsum_path("ij,jk,kl->il", *xs)) or xs[0], *arrays)
    assert found[0] == np.einsum_path("ij,jk,kl->il", *arrays)


def test_more_indices_than_letters_are_contracted_left_to_right():
    letters = string.ascii_lowercase
    arrays = [np.ones((1,) * 53), np.ones((1,) * 27), np.ones((1,) * 26)]
    value = traced(lambda *xs: np.einsum(f"...{letters},...,{letters}->...{letters}", *xs), *arrays)
    assert value.shape == (1,) * 53


def test_contractions_are_matrix_products():
    text = str(fnad.make_graph(lambda a, b: np.einsum("ijk,jkl->il", a, b))(np.ones((2, 3, 4)), np.ones((3, 4, 5))))
    assert text.count("matmul") == 1
    assert "sum" not in text.replace("einsum", "")
    assert "transpose" not in text


def test_operand_of_python_numbers():
    same(traced(lambda a: np.einsum("i,i->i", [1.0, 2.0], a), np.ones(2)), np.array([1.0, 2.0]))
    same(traced(lambda a: np.einsum(",i->i", 2.0, a), np.ones(2, np.float32)), np.array([2.0, 2.0]))
