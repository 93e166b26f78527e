"""Scalar expressions: what NumPy, LLVM and the printed Python make of them is the same."""

import copy
import gc
import math
import pickle
import subprocess
import sys
import threading

import hypothesis
import hypothesis.strategies as st
import numba
import numpy as np
import pytest

from fnad.errors import ArgumentError, DTypeError
from fnad.kernels.codegen import expr as ex
from fnad.kernels.codegen.expr import DTYPES, FLOATS, INTEGERS, SIGNED, const, var
from fnad.kernels.codegen.graph import ordered, split_rare, substitute, variables
from fnad.kernels.codegen.numpy_expr import evaluate, fused
from fnad.kernels.codegen.python_expr import helpers, source

from .loops import Loop

X, Y = var("x", "f64"), var("y", "f64")


def run_source(exprs, env, decorator=""):
    """What the printed Python computes from scalars."""
    names = [f"out{k}" for k in range(len(exprs))]
    lines = [f"def program({', '.join(env)}):", *("    " + line for line in source(exprs, names)), f"    return {', '.join(names)},"]
    space = {"np": np, "math": math, "njit": numba.njit(error_model="numpy")}
    exec("\n\n".join([*helpers(exprs, decorator), "\n".join([*([decorator] if decorator else []), *lines])]), space)
    with np.errstate(all="ignore"):
        return space["program"](*env.values())


def same(a, b):
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f")


# Nodes


def test_equal_expressions_are_one_object():
    assert (X + 1) * (X + 1) is ex.square(X + 1)
    assert const(1, "f64") is const(1.0, "f64")
    assert const(0.0, "f64") is not const(-0.0, "f64")
    assert const(1, "i64") is not const(1, "f64")
    assert const(math.nan, "f64") is const(-math.nan, "f64")
    assert const(2**31, "i32").attr == -(2**31)
    assert const(-1, "u8").attr == 255
    assert const(0.1, "f32").attr == float(np.float32(0.1))
    assert ex.add(X, Y, strict=True) is not X + Y
    assert ex.table([1, 2], var("i", "i64"), "f64") is not ex.table([1, 2.5], var("i", "i64"), "f64")


def test_numbers_take_the_dtype_of_the_other_operand():
    single = var("s", "f32")
    for e in (1 + single, single - 2, 2 / single, 3 * single, ex.select(single > 1, single, 0)):
        assert e.dtype == "f32"
    assert (var("i", "i8") + 300).args[1].attr == 44
    assert (X < 1).dtype == "bool"
    assert ex.dtype_name(np.float32) == "f32"


def test_what_does_not_fit_is_refused():
    with pytest.raises(DTypeError, match="equal dtypes"):
        X + var("s", "f32")
    with pytest.raises(DTypeError, match="div"):
        var("i", "i64") / 2
    with pytest.raises(DTypeError, match="truth value"):
        bool(X < 1)
    with pytest.raises(DTypeError, match="one size"):
        ex.bitcast(X, "i32")
    with pytest.raises(DTypeError, match="no such dtype"):
        var("z", "c128")
    with pytest.raises(DTypeError, match="no such dtype"):
        ex.dtype_name(np.complex128)
    with pytest.raises(DTypeError, match="condition"):
        ex.select(X, X, X)
    with pytest.raises(AttributeError, match="cannot be changed"):
        X.op = "const"


def test_nodes_survive_copies_and_pickles():
    e = ex.select(X > Y, ex.fma(X, Y, 1.0), ex.sqrt(X))
    assert copy.copy(e) is e
    assert copy.deepcopy(e) is e
    assert pickle.loads(pickle.dumps(e)) is e
    assert "fma" in repr(e)
    assert repr(X) == "var('x', 'f64')"


def test_nodes_are_freed():
    gc.collect()
    before = len(ex._interned)
    made = [var(f"free{i}", "f64") + i for i in range(100)]
    assert len(ex._interned) > before + 100
    del made
    gc.collect()
    assert len(ex._interned) <= before + 1


def test_threads_get_the_same_nodes():
    found, barrier = [], threading.Barrier(8)

    def build():
        barrier.wait()
        e = var("shared", "f64")
        for i in range(300):
            e = e * 1.5 + i
        found.append(e)

    threads = [threading.Thread(target=build) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(map(id, found))) == 1


def test_deep_graphs_need_no_recursion():
    e = X
    for _ in range(50_000):
        e = e * 0.5 + 1.0
    assert len(ordered([e])) == 100_003
    assert abs(evaluate([e], {"x": 3.0})[0] - 2) < 1e-9
    assert len(source([e], ["y"])) == 100_000
    assert substitute([e], {X: Y}) != [e]
    assert split_rare([e]) == ([e], [])
    del e
    gc.collect()


def test_import_of_expressions_needs_neither_numba_nor_llvmlite():
    program = "import sys, fnad.kernels.scalar; print([m for m in ('numba', 'llvmlite') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "[]"


# Graphs


def test_variables_and_substitution():
    e = ex.select(X > 1, X * Y, Y)
    assert set(variables([e])) == {X, Y}
    (new,) = substitute([e], {X: Y + 1})
    assert new is ex.select(Y + 1 > 1, (Y + 1) * Y, Y)
    assert substitute([e], {}) == [e]


def test_rare_parts_can_be_split_off():
    e = ex.rare(X > 100, ex.call("sin", [X], "f64"), X) + ex.rare(X > 100, Y, 1.0)
    fast, conditions = split_rare([e, Y])
    assert fast == [X + 1.0, Y]
    assert conditions == [X > 100]
    x = np.array([1.0, 1000.0])
    np.testing.assert_allclose(evaluate([e], {"x": x, "y": 5.0})[0], [2.0, math.sin(1000.0) + 5])


# The three readings of an expression


def values(dtype, n, rng):
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if dtype in FLOATS:
        special = [0.0, -0.0, 1.0, -1.5, 2.5, math.inf, -math.inf, math.nan, 1e30, -3e9, 127.5, 1e-40, 2.0**63, 2.0**64, 255.0]
        return np.concatenate([np.array(special), rng.normal(size=n - len(special)) * 10]).astype(DTYPES[dtype])
    info = np.iinfo(DTYPES[dtype])
    special = np.array([0, 1, 2, 3, info.min, info.max, info.max - 1, info.min + 1], DTYPES[dtype])
    return np.concatenate([special, rng.integers(info.min, info.max, n - 8, dtype=DTYPES[dtype], endpoint=True)])


UNARY = {"neg": FLOATS + INTEGERS, "not_": (*INTEGERS, "bool"), "isnan": FLOATS}
UNARY |= dict.fromkeys(("fabs", "sqrt", "floor", "ceil", "trunc", "rint"), FLOATS)
BINARY = dict.fromkeys(("add", "sub", "mul", "min_", "max_"), FLOATS + INTEGERS)
BINARY |= dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), FLOATS + INTEGERS)
BINARY |= dict.fromkeys(("div", "copysign", "minimum", "maximum"), FLOATS)
BINARY |= dict.fromkeys(("floordiv", "mod", "shl", "shr"), INTEGERS)
BINARY["mulhi"] = ("u32", "u64")
BINARY |= dict.fromkeys(("and_", "or_", "xor"), (*INTEGERS, "bool"))


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_operations(dtype):
    """Every operation on every dtype, at special values: NumPy, LLVM, and Python."""
    rng = np.random.default_rng(1)
    x, y = values(dtype, 200, rng), rng.permutation(values(dtype, 200, rng))
    if dtype in INTEGERS:
        y[::3] = rng.integers(0, 70, len(y[::3])) % 100  # amounts of shifts, divisors
    a, b = var("x0", dtype), var("x1", dtype)
    exprs = [getattr(ex, op)(a) for op, dtypes in UNARY.items() if dtype in dtypes]
    exprs += [getattr(ex, op)(a, b) for op, dtypes in BINARY.items() if dtype in dtypes]
    exprs.append(ex.select(var("x2", "bool"), a, b))
    if dtype in INTEGERS:
        exprs += [a << 3, a >> 2, a >> (ex.BITS[dtype] - 1), a << 100, a >> 100, a >> -1]
    if dtype in FLOATS:
        exprs += [ex.mad(a, 2.0, b), ex.fma(a, 4.0, b)]
    condition = rng.integers(0, 2, len(x)).astype(bool)
    env = {"x0": x, "x1": y, "x2": condition}
    want = evaluate(exprs, env)
    for e, v, w in zip(exprs, Loop(lambda *_: exprs, dtype, dtype, "bool")(x, y, condition), want, strict=True):
        assert same(v, w), e
    for i in range(0, len(x), 7):
        for e, v, w in zip(exprs, run_source(exprs, {k: v[i] for k, v in env.items()}), want, strict=True):
            assert same(v, w[i]), (e, x[i], y[i])


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_casts(dtype):
    """Also of nan, infinities and numbers that do not fit."""
    rng = np.random.default_rng(2)
    x = values(dtype, 60, rng)
    a = var("x0", dtype)
    exprs = [ex.cast(a, other) for other in DTYPES]
    exprs += [ex.bitcast(a, o) for o in DTYPES if ex.BITS[o] == ex.BITS[dtype] and "bool" not in (o, dtype)]
    want = evaluate(exprs, {"x0": x})
    for e, v, w in zip(exprs, Loop(lambda _: exprs, dtype)(x), want, strict=True):
        assert v.dtype == w.dtype
        assert same(v, w), e
    for i in range(len(x)):
        for e, v, w in zip(exprs, run_source(exprs, {"x0": x[i]}), want, strict=True):
            assert same(v, w[i]), (e, x[i])


def test_casts_to_signed_integers_are_those_of_numpy_where_they_fit():
    x = np.array([-128.9, -1.5, 0.0, 1.9, 127.9])
    for dtype in SIGNED:
        assert same(evaluate([ex.cast(X, dtype)], {"x": x})[0], x.astype(DTYPES[dtype]))


def test_integer_division_is_that_of_numpy():
    a, b = np.meshgrid(np.arange(-128, 128, dtype=np.int8), np.arange(-128, 128, dtype=np.int8))
    x, y = var("x", "i8"), var("y", "i8")
    got = Loop(lambda x, y: [x // y, x % y], "i8", "i8")(a.ravel(), b.ravel())
    with np.errstate(all="ignore"):
        want = [np.floor_divide(a, b).ravel(), np.remainder(a, b).ravel()]
    assert all(map(same, got, want))
    assert all(map(same, evaluate([x // y, x % y], {"x": a.ravel(), "y": b.ravel()}), want))


def test_tables_and_calls():
    i = var("x0", "u8")
    e = ex.table([1.5, -2.0, 4.0, math.inf], i & 3, "f32")
    x = np.arange(50, dtype=np.uint8)
    want = np.array([1.5, -2.0, 4.0, math.inf], np.float32)[x & 3]
    assert same(evaluate([e], {"x0": x})[0], want)
    assert same(Loop(lambda i: ex.table([1.5, -2.0, 4.0, math.inf], i & 3, "f32"), "u8")(x), want)
    assert run_source([e], {"x0": x[2]}) == (4.0,)
    y = np.array([0.5, 1.5, -2.5])
    for name, want in (("tgamma", [math.gamma(v) for v in y]), ("erf", [math.erf(v) for v in y])):
        np.testing.assert_allclose(evaluate([ex.call(name, [X], "f64")], {"x": y})[0], want, rtol=1e-15)
        np.testing.assert_allclose(Loop(lambda x, name=name: ex.call(name, [x], "f64"), "f64")(y), want, rtol=1e-15)
        np.testing.assert_allclose(run_source([ex.call(name, [X], "f64")], {"x": y[0]}), want[0], rtol=1e-15)
    assert math.isnan(evaluate([ex.call("fmod", [X, Y], "f64")], {"x": 1.0, "y": 0.0})[0])
    with pytest.raises(ArgumentError, match="math module"):
        evaluate([ex.call("nonesuch", [X], "f64")], {"x": 1.0})


def test_fused_products_are_rounded_once():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 5000)) * np.exp(rng.uniform(-50, 50, (2, 5000)))
    c = -(a * b) * (1 + rng.choice([0, 1e-16, 1e-10, 1.0], 5000))
    got = Loop(ex.fma, "f64", "f64", "f64")(a, b, c)
    assert np.all(np.abs(got - fused(a, b, c)) <= np.spacing(np.abs(got)))
    exact = Loop(lambda a, b: ex.fma(a, b, -ex.mul(a, b, strict=True)), "f64", "f64")(a, b)
    assert same(exact, fused(a, b, -(a * b)))


def test_strict_sums_and_products_are_not_fused():
    rng = np.random.default_rng(4)
    a, b, c = rng.normal(size=(3, 1000))
    assert same(Loop(lambda a, b, c: ex.add(a * b, c, strict=True), "f64", "f64", "f64")(a, b, c), a * b + c)
    assert same(Loop(lambda a, b, c: ex.mul(a, b, strict=True) + c, "f64", "f64", "f64")(a, b, c), a * b + c)


def test_common_parts_are_printed_once():
    e = ex.sqrt(X * Y + 1)
    lines = source([e, e + 1, X, e], ["a", "b", "c", "d"])
    assert sum("np.sqrt" in line for line in lines) == 1
    assert run_source([e, e + 1, X, e], {"x": 2.0, "y": 4.0}) == (3.0, 4.0, 2.0, 3.0)


def test_results_may_use_each_other():
    assert run_source([X + 1, (X + 1) * 2], {"x": np.float64(2.0)}) == (3.0, 6.0)
    assert run_source([var("t0", "f64") * 2, var("t0", "f64") + 1], {"t0": 2.0}) == (4.0, 3.0)


@st.composite
def trees(draw):
    """Expressions of a few operations in one dtype, with casts to bool and back."""
    dtype = draw(st.sampled_from(list(FLOATS + INTEGERS)))
    pool = [var("x0", dtype), var("x1", dtype), const(draw(st.integers(-3, 100)), dtype)]
    usable = [op for op, dtypes in BINARY.items() if dtype in dtypes and op not in ("minimum", "maximum")]
    for _ in range(draw(st.integers(1, 12))):
        a, b = (pool[draw(st.integers(0, len(pool) - 1))] for _ in range(2))
        e = getattr(ex, draw(st.sampled_from(usable)))(a, b)
        pool.append(e if e.dtype == dtype else draw(st.sampled_from([ex.cast(e, dtype), ex.select(e, a, b)])))
    return pool[-3:]


@hypothesis.settings(max_examples=40)
@hypothesis.given(trees(), st.integers(0, 2**32))
def test_random_expressions(exprs, seed):
    dtype = exprs[0].dtype
    rng = np.random.default_rng(seed)
    x, y = (rng.permutation(values(dtype, 40, rng)) for _ in range(2))
    strict = _without_fusion(exprs)
    want = [np.broadcast_to(w, 40) for w in evaluate(strict, {"x0": x, "x1": y})]
    for v, w in zip(Loop(lambda *_: strict, dtype, dtype)(x, y), want, strict=True):
        assert same(v, w)
    for i in range(0, 40, 9):
        for v, w in zip(run_source(exprs, {"x0": x[i], "x1": y[i]}), want, strict=True):
            assert same(v, w[i])


def _without_fusion(exprs):
    """The same expressions with every float sum and product strict, so that all readings have the same bits."""
    done = {}
    for e in ordered(exprs):
        args = tuple(done[a] for a in e.args)
        done[e] = ex.node(e.op, args, e.dtype, "strict" if e.op in ("add", "sub", "mul") and e.dtype in FLOATS else e.attr)
    return [done[e] for e in exprs]


def test_numba_compiles_the_source():
    """All kinds of nodes in one function of each float dtype, types kept."""
    for dtype in FLOATS:
        x, i = var("x", dtype), var("i", "i32")
        word = "i32" if dtype == "f32" else "i64"
        exprs = [
            ex.fma(x, x, 1.0) + ex.mad(x, 2.0, x),
            ex.bitcast(ex.bitcast(x, word) + (1 << 20), dtype),
            ex.cast(ex.cast(x, "i8"), dtype) + ex.cast(ex.cast(x, "u64"), dtype),
            ex.select(ex.not_(x > 1) & ex.ne(i, 3), ex.floor(x), ex.copysign(1.5, x)),
            ex.table([1.0, 2.0], i & 1, dtype) * ex.cast(ex.call("erf", [ex.cast(x, "f64")], "f64"), dtype),
            (i << 30) + (i // 3) - (i % 5) + ex.cast(x > 2, "i32"),
            ex.min_(x, 3.0) + ex.maximum(x, 1.0) + abs_and_root(x),
        ]
        env = {"x": DTYPES[dtype].type(2.75), "i": np.int32(-7)}
        want = evaluate(exprs, env)
        got = run_source(exprs, env, "@njit")
        for e, v, w in zip(exprs, got, want, strict=True):
            assert np.isclose(v, w, rtol=4 * np.finfo(w.dtype).eps if w.dtype.kind == "f" else 0), e


def abs_and_root(x):
    return ex.fabs(ex.sqrt(x)) + ex.rint(x) + ex.trunc(x) + ex.ceil(x)
