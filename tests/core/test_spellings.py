"""Every spelling by which NumPy or Python code could drop a derivative raises and names the remedy; the others are right."""

from __future__ import annotations

import copy
import math
import operator
import pickle

import numpy as np
import pytest

import fnad
from fnad.errors import ConcretizationError, DTypeError, InPlaceError, ShapeError, TracerConversionError, UnsupportedError
from fnad.testing import assert_trees_close

PLAIN = np.arange(5.0)
ONES = np.ones(3)


def under_grad(f):
    fnad.grad(lambda x: (f(x), np.sum(x))[1])(ONES)


def under_jvp(f):
    fnad.jvp(lambda x: (f(x), np.sum(x))[1], (ONES,), (ONES,))


def under_vmap(f):
    fnad.vmap(lambda x: (f(x), np.sum(x))[1])(np.ones((2, 3)))


def while_recording(f):
    fnad.make_graph(lambda x: (f(x), np.sum(x))[1])(ONES)


def under_grad_of_grad(f):
    fnad.grad(lambda x: np.sum(fnad.grad(lambda y: (f(y), np.sum(y * x))[1])(x)))(ONES)


def under_vmap_of_grad(f):
    fnad.vmap(fnad.grad(lambda x: (f(x), np.sum(x))[1]))(np.ones((2, 3)))


KNOWN = [under_grad, under_jvp, under_grad_of_grad]
UNKNOWN = [under_vmap, while_recording, under_vmap_of_grad]
CONTEXTS = KNOWN + UNKNOWN


def add_to_plain(x):
    plain = np.ones(3)
    plain += x


def assign_to_plain_slice(x):
    plain = np.ones(3)
    plain[:] = x


def assign_to_plain_at_list(x):
    plain = np.ones(3)
    plain[[0, 1]] = x[:2]


def assign_to_traced(x):
    x[0] = 1.0


def assign_traced_to_traced(x):
    x[:1] = x[1:2]


def delete_from_traced(x):
    del x[0]


def repeat_while(x):
    while x[0] < 2.0:
        x = x * 2.0


VALUE = r"stop_gradient\(x\)|static_argnames|in_axes"

DROPS = {
    "float(t)": (lambda x: float(x[0]), TracerConversionError, r"np\.astype\(x\[0\], float\)"),
    "complex(t)": (lambda x: complex(x[0]), TracerConversionError, r"np\.astype\(x\[0\], complex\)"),
    "int(t)": (lambda x: int(x[0]), TracerConversionError, r"np\.astype\(x\[0\], int\)"),
    "operator.index(t)": (lambda x: operator.index(x[0]), TracerConversionError, VALUE),
    "range(t)": (lambda x: range(x[0]), TracerConversionError, r"fnad\.fori_loop"),
    "[...][t]": (lambda x: [1, 2, 3][x[0]], TracerConversionError, r"fnad\.at\(np\.stack\(items\)\)\[i\]\.get"),
    "round(t)": (lambda x: round(x[0]), TracerConversionError, r"np\.round"),
    "math.trunc(t)": (lambda x: math.trunc(x[0]), TracerConversionError, r"np\.trunc"),
    "t.item()": (lambda x: x[0].item(), TracerConversionError, r"\.item\(\) of the result"),
    "t.tolist()": (lambda x: x.tolist(), TracerConversionError, r"list\(x\)"),
    "t.tobytes()": (lambda x: x.tobytes(), TracerConversionError, r"of the result"),
    "np.array([t, t])": (lambda x: np.array([x[0], x[0]]), TracerConversionError, r"np\.stack"),
    "np.array([t, t], dtype=float)": (lambda x: np.array([x[0], x[0]], dtype=float), TracerConversionError, r"np\.stack"),
    "np.array([t, t], dtype=object)": (lambda x: np.array([x[0], x[0]], dtype=object), TracerConversionError, r"np\.stack"),
    "np.array([[1, t]])": (lambda x: np.array([[1.0, x[0]], [0.0, 1.0]]), TracerConversionError, r"np\.stack"),
    "np.array(t)": (lambda x: np.array(x), TracerConversionError, r"x itself"),
    "np.asarray(t)": (lambda x: np.asarray(x), TracerConversionError, r"x itself"),
    "np.asarray(0-d t)": (lambda x: np.asarray(x[0]), TracerConversionError, r"x itself"),
    "np.float64(t)": (lambda x: np.float64(x[0]), TracerConversionError, r"x\.astype\(np\.float64\)"),
    "np.arange(t)": (lambda x: np.arange(x[0]), TracerConversionError, r"x\.shape"),
    "rng.normal(t)": (lambda x: np.random.default_rng(0).normal(x[0]), TracerConversionError, r"before the call"),
    "math.sin(t)": (lambda x: math.sin(x[0]), TracerConversionError, r"np\.sin"),
    "math.floor(t)": (lambda x: math.floor(x[0]), TracerConversionError, r"np\.floor"),
    "math.isclose(t, 1)": (lambda x: math.isclose(x[0], 1.0), TracerConversionError, r"np\.isclose"),
    "np.add(t, 1, out=plain)": (lambda x: np.add(x, 1.0, out=np.zeros(3)), InPlaceError, r"a = a \+ x"),
    "np.add(plain, 1, out=t)": (lambda x: np.add(ONES, 1.0, out=x), InPlaceError, r"a = a \+ x"),
    "np.sum(t, out=plain)": (lambda x: np.sum(x, out=np.zeros(())), InPlaceError, r"returns"),
    "np.sum(plain, out=t)": (lambda x: np.sum(np.ones((2, 3)), axis=0, out=x), InPlaceError, r"returns"),
    "t.sum(out=plain)": (lambda x: x.sum(out=np.zeros(())), InPlaceError, r"returns"),
    "plain += t": (add_to_plain, InPlaceError, r"a = a \+ x"),
    "plain[:] = t": (assign_to_plain_slice, TracerConversionError, r"fnad\.at\(a\)\[i\]\.set"),
    "plain[[0, 1]] = t": (assign_to_plain_at_list, TracerConversionError, r"fnad\.at\(a\)\[i\]\.set"),
    "t[i] = 1": (assign_to_traced, InPlaceError, r"fnad\.at\(x\)\[i\]\.set"),
    "t[i] = t": (assign_traced_to_traced, InPlaceError, r"fnad\.at\(x\)\[i\]\.set"),
    "del t[i]": (delete_from_traced, InPlaceError, r"indexing"),
    "t.sort()": (lambda x: x.sort(), InPlaceError, r"np\.sort"),
    "t.partition(1)": (lambda x: x.partition(1), InPlaceError, r"np\.sort"),
    "t.fill(1)": (lambda x: x.fill(1.0), InPlaceError, r"np\.full_like"),
    "t.put(0, 1)": (lambda x: x.put(0, 1.0), InPlaceError, r"fnad\.at"),
    "t.resize(3)": (lambda x: x.resize(3), InPlaceError, r"np\.reshape"),
    "plain[t]": (lambda x: PLAIN[x], TracerConversionError, r"fnad\.at\(plain\)\[t\]\.get"),
    "plain[0-d t]": (lambda x: PLAIN[x[0]], TracerConversionError, r"fnad\.at\(plain\)\[t\]\.get"),
    "plain.dot(t)": (lambda x: ONES.dot(x), TracerConversionError, r"np\.dot\(plain, t\)"),
    "plain.put(0, t)": (lambda x: np.zeros(3).put([0], x[0]), TracerConversionError, r"fnad\.at"),
    "np.copyto(plain, t)": (lambda x: np.copyto(np.zeros(3), x), UnsupportedError, r"np\.copyto.*\n.*fnad\.at"),
    "np.put(plain, i, t)": (lambda x: np.put(np.zeros(3), [0], x[0]), UnsupportedError, r"np\.put.*\n.*fnad\.at"),
    "np.place(plain, m, t)": (lambda x: np.place(np.zeros(3), [True] * 3, x), UnsupportedError, r"np\.place.*\n.*fnad\.at"),
    "np.putmask(plain, m, t)": (lambda x: np.putmask(np.zeros(3), [True] * 3, x), UnsupportedError, r"np\.putmask.*\n.*fnad\.at"),
    "np.put_along_axis(plain, i, t)": (
        lambda x: np.put_along_axis(np.zeros(3), np.zeros(1, int), x[:1], 0),
        UnsupportedError,
        r"np\.put_along_axis.*\n.*fnad\.at",
    ),
    "np.fill_diagonal(t, 1)": (lambda x: np.fill_diagonal(x[:, None] * x, 1.0), UnsupportedError, r"np\.fill_diagonal.*\n.*fnad\.at"),
    "np.add.at(plain, i, t)": (lambda x: np.add.at(np.zeros(3), [0], x[0]), UnsupportedError, r"np\.add\.at.*\n.*fnad\.at"),
    "np.add.at(t, i, plain)": (lambda x: np.add.at(x, [0], 1.0), UnsupportedError, r"np\.add\.at.*\n.*fnad\.at"),
    "np.vectorize(f)(t)": (lambda x: np.vectorize(lambda v: v * 2)(x), UnsupportedError, r"np\.vectorize.*\n.*fnad\.vmap"),
    "np.vectorize(f, otypes)(t)": (
        lambda x: np.vectorize(lambda v: v * 2, otypes=[float])(x),
        UnsupportedError,
        r"np\.vectorize.*\n.*fnad\.vmap",
    ),
    "np.vectorize(f, signature)(t)": (
        lambda x: np.vectorize(lambda v: v * 2, signature="(n)->(n)")(x),
        UnsupportedError,
        r"np\.vectorize.*\n.*fnad\.vmap",
    ),
    "np.vectorize over a closure": (lambda x: np.vectorize(lambda v: v * x[0])(PLAIN), UnsupportedError, r"fnad\.vmap"),
    "np.frompyfunc(f, 1, 1)(t)": (lambda x: np.frompyfunc(lambda v: v, 1, 1)(x), UnsupportedError, r"np\.frompyfunc.*\n.*fnad\.vmap"),
    "np.save(file, t)": (lambda x: np.save("nowhere", x), UnsupportedError, r"np\.save.*\n.*after the call"),
    "np.savez(file, t)": (lambda x: np.savez("nowhere", x), UnsupportedError, r"np\.savez.*\n.*after the call"),
    "np.shares_memory(t, t)": (lambda x: np.shares_memory(x, x), UnsupportedError, r"np\.shares_memory.*\n.*outside"),
    "pickle.dumps(t)": (lambda x: pickle.dumps(x), TracerConversionError, VALUE),
    "{t: 1}": (lambda x: {x: 1}, TypeError, "unhashable"),
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("spelling", DROPS)
def test_spelling_that_would_drop_a_derivative(spelling, context):
    f, error, remedy = DROPS[spelling]
    with pytest.raises(error, match=remedy) as caught:
        context(f)
    if isinstance(caught.value, TracerConversionError):  # the advice that helps only where values are known is given only there
        assert ("stop_gradient(x) gives the plain value" in str(caught.value)) == (context in KNOWN)


@pytest.mark.parametrize("spelling", ["float(t)", "t.item()", "np.array([t, t])", "plain[t]", "t[i] = 1", "plain[:] = t"])
def test_error_shows_the_users_line(spelling):
    f, error, _ = DROPS[spelling]
    with pytest.raises(error, match=r"test_spellings\.py:"):
        under_grad(f)


# NumPy replaces what a conversion raises, for anything that can be indexed; ours is the stated cause.


def assign_to_plain_entry(x):
    plain = np.zeros(3)
    plain[0] = x[0]


def assign_to_complex_entry(x):
    plain = np.zeros(3, complex)
    plain[0] = x[0]


def assign_to_integer_entry(x):
    plain = np.zeros(3, int)
    plain[0] = x[0]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    "f",
    [
        assign_to_plain_entry,
        assign_to_complex_entry,
        assign_to_integer_entry,
        lambda x: np.zeros(3).fill(x[0]),
        lambda x: np.fromiter(x, float),
    ],
)
def test_assignment_of_one_entry(f, context):
    with pytest.raises((ValueError, TypeError)) as caught:
        context(f)
    error = caught.value
    error = error if isinstance(error, TracerConversionError) else error.__cause__
    assert isinstance(error, TracerConversionError)
    assert "fnad.at(a)[i].set(x) instead of a[i] = x" in str(error)


# -- what a value is needed for: right where it is known, an error with a way out where it is not ---------------------


def branch(x):
    return x * 2.0 if x[0] > 0 else x * 3.0


def loop(x):
    while np.max(x) < 10.0:
        x = x * 2.0
    return x


def chained(x):
    return x * 5.0 if 0.0 < x[0] <= 1.0 else x


def boolean(x):
    return x * 2.0 if x[0] else x


def membership(x):
    return x * 2.0 if 1.0 in x else x


def python_max(x):
    return max(x) * x


def count(x):
    """An index computed from values has no derivative, and is known."""
    n = int(np.argmax(x))
    return x * [1.0, 2.0, 3.0][n] * range(5)[operator.index(np.sum(x > 0))]


NEEDS_VALUE = {
    "if t": (branch, 2.0),
    "while t": (loop, 16.0),
    "a < t <= b": (chained, 5.0),
    "if 0-d t": (boolean, 2.0),
    "v in t": (membership, 2.0),
    "max(t)": (python_max, None),
    "int(np.argmax(t))": (count, 3.0),
}
INSTEAD = {"max(t)": r"np\.max\(x\)", "int(np.argmax(t))": r"np\.astype\(np\.argmax\(x\), int\)"}


@pytest.mark.parametrize("spelling", NEEDS_VALUE)
def test_value_is_known_under_grad_and_jvp(spelling):
    f, factor = NEEDS_VALUE[spelling]
    if factor is None:
        return
    assert_trees_close(fnad.grad(lambda x: np.sum(f(x)))(ONES), factor * ONES)
    assert_trees_close(fnad.jvp(f, (ONES,), (ONES,)), (f(ONES), factor * ONES))
    assert_trees_close(fnad.grad(lambda x: np.sum(fnad.grad(lambda y: np.sum(f(y) * x))(x)))(ONES), factor * ONES)


@pytest.mark.parametrize("context", UNKNOWN)
@pytest.mark.parametrize("spelling", NEEDS_VALUE)
def test_value_is_unknown_under_vmap_and_recording(spelling, context):
    with pytest.raises(ConcretizationError, match=INSTEAD.get(spelling, r"np\.where")):
        context(NEEDS_VALUE[spelling][0])


def test_python_max_follows_the_branch_taken():
    x = np.array([1.0, 3.0, 2.0])
    assert_trees_close(fnad.grad(lambda x: max(x))(x), np.array([0.0, 1.0, 0.0]))


def test_truth_of_an_array_is_ambiguous_as_in_numpy():
    for context in (under_grad, under_jvp):
        with pytest.raises(ValueError, match="ambiguous"):
            context(bool)


def test_comparisons_are_plain_where_the_value_is_known():
    seen = []
    for context in (under_grad, under_jvp):
        context(lambda x: seen.extend([x > 0, x == 1, x != 2.0, x[0] >= 1]))
    for mask in seen:
        assert isinstance(mask, np.ndarray | np.bool_)
    assert [np.all(mask) for mask in seen] == [True] * len(seen)


def test_comparisons_are_traced_where_it_is_not():
    got = fnad.vmap(lambda x: np.where(x > 0, x, 2.0 * x))(np.array([[1.0], [-1.0]]))
    assert_trees_close(got, np.array([[1.0], [-2.0]]))


# -- what works everywhere --------------------------------------------------------------------------------------------


def unpack(x):
    a, b, *rest = x
    return a * 2.0 + b * 3.0 + rest[0] * 4.0


def iterate(x):
    total = 0.0
    for i, v in enumerate(x):
        total = total + (i + 2.0) * v
    return total


def python_sum(x):
    return sum((i + 2.0) * v for i, v in zip(range(len(x)), reversed(list(x)), strict=True))


def rebind(x):
    first = x
    t = x * 1.0
    t += x
    t -= 1.0
    t *= 2.0
    t /= 2.0
    t **= 1
    assert first is x
    return np.sum(t)


def matmul_rebind(x):
    t = x
    t @= np.eye(3)
    return np.sum(t)


WORK = {
    "a, b, *c = t": (unpack, np.array([2.0, 3.0, 4.0])),
    "for v in t": (iterate, np.array([2.0, 3.0, 4.0])),
    "sum(t)": (python_sum, np.array([4.0, 3.0, 2.0])),
    "t += x rebinds": (rebind, 2.0 * ONES),
    "t @= m rebinds": (matmul_rebind, ONES),
    "round(t, 3)": (lambda x: np.sum(round(x[0], 3) + x), ONES),
    "abs, neg, pos": (lambda x: np.sum(abs(-(+x)) * 2), 2 * ONES),
    "divmod": (lambda x: np.sum(divmod(x, 2.0)[1]), ONES),
    "pow": (lambda x: np.sum(pow(x, 3)), 3 * ONES),
    "plain * t": (lambda x: np.sum(np.full(3, 2.0) * x), 2 * ONES),
    "plain @ t": (lambda x: np.full(3, 2.0) @ x, 2 * ONES),
    "list * t": (lambda x: np.sum([1.0, 2.0, 3.0] * x), np.array([1.0, 2.0, 3.0])),
    "np.float64 * t": (lambda x: np.sum(np.float64(2.0) * x + np.float32(1.0) / (x + 1.0) * 0), 2 * ONES),
    "copy.copy": (lambda x: np.sum(copy.copy(x) * copy.deepcopy(x)), 2 * ONES),
    "t.copy()": (lambda x: np.sum(x.copy()), ONES),
    "for v in t.flat": (lambda x: sum(v * 2 for v in x.flat), 2 * ONES),
    "t[i] for a plain integer": (lambda x: x[np.int64(1)] + x[True and 1] * 0, np.array([0.0, 1.0, 0.0])),
    "fnad.at(plain)[integer t].get()": (lambda x: np.sum(fnad.at(PLAIN)[np.argsort(x)].get() * x), np.arange(3.0)),
    "np.stack([t, t])": (lambda x: np.sum(np.stack([x[0], x[1]])), np.array([1.0, 1.0, 0.0])),
    "stop_gradient": (lambda x: np.sum(x * fnad.stop_gradient(x)), ONES),
}


@pytest.mark.parametrize("spelling", WORK)
def test_spelling_that_works_in_every_transform(spelling):
    f, gradient = WORK[spelling]
    assert_trees_close(fnad.grad(f)(ONES), np.asarray(gradient))
    assert_trees_close(fnad.jvp(f, (ONES,), (ONES,))[1], np.float64(np.sum(gradient)))
    assert_trees_close(fnad.vmap(f)(np.ones((2, 3))), np.full(2, f(ONES)))
    assert_trees_close(fnad.vmap(fnad.grad(f))(np.ones((2, 3))), np.broadcast_to(gradient, (2, 3)).copy())
    fnad.make_graph(f)(ONES)


def test_shape_and_length_are_plain():
    seen = []

    def look(x):
        m = x[:, None] * x
        seen.append((len(m), m.shape, m.ndim, m.size, str(m.dtype), m.nbytes, np.shape(m), np.ndim(m), np.size(m, 0), m.T.shape))

    for context in CONTEXTS:
        context(look)
    assert len(seen) == len(CONTEXTS)
    assert set(seen) == {(3, (3, 3), 2, 9, "float64", 72, (3, 3), 2, 3, (3, 3))}


def test_length_and_iteration_of_a_scalar_raise_as_in_numpy():
    for context in CONTEXTS:
        with pytest.raises(TypeError, match="len"):
            context(lambda x: len(x[0]))
        with pytest.raises(TypeError, match="0-d"):
            context(lambda x: list(x[0]))


def test_printing_a_tracer():
    texts = []
    for context in (under_grad, under_jvp, under_vmap, while_recording):
        context(lambda x: texts.append((repr(x), str(x), f"{x}")))
    for name, text in zip(("grad", "jvp", "vmap", "recording"), texts, strict=True):
        assert all(t.startswith(f"<{name} tracer float64[3]") for t in text)
    under_grad(lambda x: texts.append(f"{x[0]:.2f}"))
    assert texts[-1] == "1.00"
    with pytest.raises(ConcretizationError):
        under_vmap(lambda x: f"{x[0]:.2f}")


def test_unknown_function_is_named_with_the_nearest_and_how_to_register():
    with pytest.raises(UnsupportedError, match=r"np\.trim_zeros has no rule") as caught:
        under_grad(np.trim_zeros)
    assert "fnad.implements(np.trim_zeros)" in str(caught.value)
    assert "nearest supported" in str(caught.value)


def test_ufunc_options_that_are_not_traced_are_refused():
    with pytest.raises(UnsupportedError, match=r"np\.where"):
        under_grad(lambda x: np.add(x, 1.0, where=np.array([True, False, True])))
    with pytest.raises(UnsupportedError, match=r"np\.hypot\.outer|hypot\.accumulate"):
        under_grad(lambda x: np.hypot.accumulate(x))


def test_exceptions_are_what_numpy_users_catch():
    """Old `except TypeError` and `except ValueError` clauses still work."""
    assert issubclass(TracerConversionError, TypeError)
    assert issubclass(ConcretizationError, TypeError)
    assert issubclass(InPlaceError, TypeError)
    assert issubclass(UnsupportedError, NotImplementedError)


# -- arrays of objects hold tracers that no transform would find ------------------------------------------------------


def object_array(x):
    a = np.empty(3, object)
    for i in range(3):
        a[i] = x[i]
    return a


RETURNS_OBJECTS = {
    "vjp": lambda: fnad.vjp(object_array, ONES),
    "jvp": lambda: fnad.jvp(object_array, (ONES,), (ONES,)),
    "vmap": lambda: fnad.vmap(object_array)(np.ones((2, 3))),
    "jacrev": lambda: fnad.jacrev(object_array)(ONES),
    "jacfwd": lambda: fnad.jacfwd(object_array)(ONES),
    "grad": lambda: fnad.grad(object_array)(ONES),
    "linearize": lambda: fnad.linearize(object_array, ONES),
    "make_graph": lambda: fnad.make_graph(object_array)(ONES),
    "eval_shape": lambda: fnad.eval_shape(object_array, ONES),
    "checkpoint": lambda: fnad.grad(lambda x: fnad.checkpoint(object_array)(x).sum())(ONES),
    "custom_vjp": lambda: fnad.grad(lambda x: hidden_custom_vjp()(x).sum())(ONES),
    "custom_jvp": lambda: fnad.jvp(lambda x: hidden_custom_jvp()(x).sum(), (ONES,), (ONES,)),
}


def hidden_custom_vjp():
    f = fnad.custom_vjp(object_array)
    f.defvjp(lambda x: (object_array(x), None), lambda r, g: (np.ones(3),))
    return f


def hidden_custom_jvp():
    f = fnad.custom_jvp(object_array)
    f.defjvp(lambda primals, tangents: (object_array(primals[0]), object_array(tangents[0])))
    return f


@pytest.mark.parametrize("transform", RETURNS_OBJECTS)
def test_array_of_objects_as_a_result_is_refused(transform):
    with pytest.raises((DTypeError, ShapeError)) as caught:
        RETURNS_OBJECTS[transform]()
    assert "object" in str(caught.value)


def test_arithmetic_of_object_arrays_keeps_the_derivative_or_raises():
    assert_trees_close(fnad.grad(lambda x: object_array(x).sum())(ONES), ONES)
    assert_trees_close(fnad.grad(lambda x: object_array(x).dot(PLAIN[:3]))(ONES), PLAIN[:3].copy())
    assert_trees_close(fnad.grad(lambda x: np.sum(np.stack(list(object_array(x)))))(ONES), ONES)
    for drop in (
        lambda x: object_array(x).astype(float),
        lambda x: np.array(object_array(x), dtype=float),
        lambda x: np.sin(object_array(x)),
        lambda x: np.sum(object_array(x) * x),
    ):
        with pytest.raises((TypeError, ValueError)):
            under_grad(drop)


class Labelled:
    """Stands for pandas Series, sparse matrices and others that have arithmetic of their own."""

    def __init__(self, x):
        self.x = x
        self.dtype = x.dtype

    def __array__(self, *args, **kwargs):
        return self.x


@pytest.mark.parametrize("operand", [Labelled(np.ones(2)), np.ma.masked_array([1.0, 2.0], mask=[0, 1])], ids=["labelled", "masked"])
@pytest.mark.parametrize("transform", [fnad.grad, lambda f: lambda x: fnad.jvp(f, (x,), (x,)), fnad.vmap], ids=["grad", "jvp", "vmap"])
def test_operand_of_a_foreign_class_is_refused(operand, transform):
    with pytest.raises(TypeError, match=r"to_numpy|asarray"):
        transform(lambda x: np.sum(np.multiply(x, operand)))(np.ones(2))


def test_argument_of_a_foreign_class_is_refused():
    with pytest.raises(TypeError, match="to_numpy"):
        fnad.grad(lambda x: 0.0)(Labelled(np.ones(2)))


def test_lists_are_operands():
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(x * [1.0, 2.0]))(np.ones(2)), [1.0, 2.0])


def test_stopped_value_is_a_copy():
    def f(x):
        y = 2 * x
        z = np.sin(y)
        plain = fnad.stop_gradient(y)
        plain[:] = 0
        return np.sum(z)

    x = np.ones(2)
    np.testing.assert_allclose(fnad.grad(f)(x), 2 * np.cos([2.0, 2.0]))

    def g(x):
        fnad.stop_gradient(x)[:] = 0
        return np.sum(x)

    fnad.grad(g)(x)
    np.testing.assert_array_equal(x, [1.0, 1.0])


def test_flat_iterates_and_indexes():
    assert fnad.grad(lambda x: x.flat[3] * sum(x.flat))(np.arange(4.0).reshape(2, 2))[1, 1] == 9


def test_messages_stay_short():
    with pytest.raises(TypeError) as info:
        fnad.grad(lambda x: np.array(x).sum())(np.ones((40, 40)))
    assert len(str(info.value)) < 800


def test_scipy_functions_point_to_ours():
    import scipy.special

    with pytest.raises(TypeError, match=r"fnad\.scipy"):
        fnad.grad(lambda x: scipy.special.logsumexp(x))(np.ones(3))
