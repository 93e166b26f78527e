"""fnad.jit: structure, types, closures, donation, nesting, errors, threads, processes, the disk cache."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import pathlib
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, ConcretizationError, DTypeError, InPlaceError, ShapeError
from fnad.kernels.codegen.emit import print_program

rng = np.random.default_rng(0)


def loss(p, x, y):
    h = np.tanh(x @ p["w"] + p["b"])
    return np.mean((h @ p["v"] - y) ** 2)


def problem(n, dtype=np.float64):
    p = {"w": rng.normal(size=(6, 5)), "b": rng.normal(size=5), "v": rng.normal(size=5)}
    p = {k: v.astype(dtype) for k, v in p.items()}
    return p, rng.normal(size=(n, 6)).astype(dtype), rng.normal(size=n).astype(dtype)


def agree(got, want, tol=1e-10):
    for g, w in zip(fnad.tree.leaves(got), fnad.tree.leaves(want), strict=True):
        assert type(g) is type(w)
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=tol, atol=tol)


def test_a_new_batch_size_compiles_nothing():
    step = fnad.jit(fnad.value_and_grad(loss))
    step(*problem(32))
    before = fnad.cache_info()
    for n in (33, 40, 57):
        args = problem(n)
        agree(step(*args), fnad.value_and_grad(loss)(*args))
    after = fnad.cache_info()
    assert (after.compiled, after.loaded) == (before.compiled, before.loaded)
    step(*problem(32, np.float32))
    again = fnad.cache_info()
    assert again.compiled + again.loaded > after.compiled + after.loaded


def test_another_literal_compiles_nothing():
    fnad.jit(lambda x: np.sum(x * 0.25) / 64)(np.ones(3))
    before = fnad.cache_info()
    assert fnad.jit(lambda x: np.sum(x * 0.75) / 65)(np.ones(3)) == pytest.approx(2.25 / 65)
    after = fnad.cache_info()
    assert (after.compiled, after.loaded) == (before.compiled, before.loaded)


def test_scalars_are_weak():
    x = np.ones(3, np.float32)
    assert fnad.jit(lambda x, lr: x * lr)(x, 0.1).dtype == np.float32
    assert fnad.jit(lambda x, lr: x * lr)(x, np.float64(0.1)).dtype == np.float64
    assert fnad.jit(lambda n: n + 1)(2) == 3


def test_types_of_results():
    f = lambda x: {"sum": np.sum(x), "array": x * 2, "same": x, "number": 3.0, "none": None}
    agree(fnad.jit(f)(np.ones(2))["sum"], f(np.ones(2))["sum"])
    out = fnad.jit(f)(np.ones(2))
    assert out["none"] is None
    assert isinstance(out["sum"], np.float64)


def test_results_share_no_memory():
    x, c = np.arange(3.0), np.arange(3.0)
    out = fnad.jit(lambda x: (x, x, c, np.reshape(x, (3, 1)), x.T, np.broadcast_to(x[:1], (3,))))(x)
    for i, a in enumerate(out):
        assert a.flags.writeable
        assert a.flags.c_contiguous
        assert not np.shares_memory(a, x)
        assert not np.shares_memory(a, c)
        assert not any(np.shares_memory(a, b) for b in out[:i])


def test_arguments_of_any_layout():
    x = rng.normal(size=(4, 6))
    f = lambda x: np.sin(x) @ x.T
    readonly = x.copy()
    readonly.flags.writeable = False
    for v in (x, np.asfortranarray(x), x[::-1], x[:, ::2].repeat(2, axis=1)[:, :6], readonly, x.astype(">f8")):
        np.testing.assert_allclose(fnad.jit(f)(v), f(v), rtol=1e-12)


def test_closed_over_arrays_are_passed_by_reference():
    w = np.ones(3)
    f = fnad.jit(lambda x: x * w)
    np.testing.assert_array_equal(f(np.ones(3)), [1, 1, 1])
    w[:] = 5
    np.testing.assert_array_equal(f(np.ones(3)), [5, 5, 5])
    w = np.zeros(3)  # another array under the same name is not looked up again
    np.testing.assert_array_equal(f(np.ones(3)), [5, 5, 5])


@pytest.mark.parametrize("size", [3, 1000])
@pytest.mark.parametrize(
    "build",
    [
        lambda f: fnad.grad(f),
        lambda f: lambda x: fnad.vjp(f, x)[1](1.0)[0],
        lambda f: lambda x: fnad.jvp(f, (x,), (np.ones_like(x),))[1],
        lambda f: lambda x: fnad.linearize(f, x)[1](np.ones(x.shape)),
        lambda f: lambda x: fnad.hvp(f, (x,), (np.ones(x.shape),)),
        lambda f: fnad.grad(lambda x: np.sum(fnad.grad(f)(x) ** 2)),
        lambda f: lambda x: fnad.vmap(fnad.grad(f))(np.stack([x, x])),
        lambda f: fnad.grad(fnad.checkpoint(f)),
    ],
)
def test_transforms_see_later_contents_of_closed_over_arrays(build, size):
    w, v, mask = np.ones(size), np.ones((size, 2)), np.zeros(size, bool)
    f = lambda x: np.sum(x * w) + np.sum(np.where(mask, x * x * x, x)) + np.sum((x @ v) ** 2)
    x = np.linspace(-1, 1, size)
    compiled = fnad.jit(build(f))
    compiled(x)
    w[:], v[1:], mask[::2] = 5, 3, True
    np.testing.assert_allclose(compiled(x), build(f)(x), rtol=1e-12)


def test_static_values_of_other_types_are_other_programs():
    f = fnad.jit(lambda x, n: x * n if isinstance(n, float) else x, static_argnums=1)
    assert [float(f(3.0, n)) for n in (2, 2.0, True)] == [3.0, 6.0, 3.0]
    h = fnad.jit(lambda x, n: x / np.float64(n), static_argnums=1)
    assert [float(h(1.0, n)) for n in (0.0, -0.0)] == [np.inf, -np.inf]
    g = fnad.jit(lambda x, n: x * n[0] if isinstance(n[0], float) else x, static_argnums=1)
    assert [float(g(3.0, (n,))) for n in (2, 2.0)] == [3.0, 6.0]


def test_closed_over_tracers():
    x = np.arange(3.0)
    outer = lambda w: np.sum(fnad.jit(lambda x: np.sin(x) * w)(x))
    np.testing.assert_allclose(fnad.grad(outer)(np.ones(3)), np.sin(x))
    np.testing.assert_allclose(fnad.vmap(lambda w: fnad.jit(lambda x: x * w)(x))(np.ones((2, 3))), np.stack([x, x]))


@pytest.mark.filterwarnings("ignore::fnad.errors.RecordingWarning")
def test_static_arguments():
    calls = []

    def f(x, n, how="sum"):
        calls.append(n)
        return getattr(np, how)(x**n)

    g = fnad.jit(f, static_argnums=1, static_argnames="how")
    assert g(np.arange(3.0), 2) == 5
    assert g(np.arange(4.0)[:3], 2) == 5
    assert g(np.arange(3.0), 3, how="max") == 8
    assert calls == [2, 3]
    with pytest.raises(ArgumentError, match="hashable"):
        g(np.arange(3.0), [2])


def test_donation():
    f = fnad.jit(lambda p, g: {k: p[k] - 0.5 * g[k] for k in p}, donate_argnums=0)
    p, g = {"a": np.ones(4), "b": np.ones((2, 3))}, {"a": np.ones(4), "b": np.ones((2, 3))}
    q = f(p, g)
    assert q["a"] is p["a"]
    assert q["b"] is p["b"]
    assert np.all(q["a"] == 0.5)
    assert np.all(g["a"] == 1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (lambda x: (x, x))(np.arange(4.0)),
        lambda: (lambda x: (x[:4], x[4:]))(np.arange(8.0)),
        lambda: (lambda x: (x, x[:]))(np.arange(4.0)),
        lambda: (np.broadcast_to(1.0, (4,)), np.ones(4)),
    ],
    ids=["same", "one base", "view", "read-only"],
)
def test_donated_memory_that_is_not_ours_is_copied(make):
    f = fnad.jit(lambda a, b: (a + b, b * 3), donate_argnums=0)
    a, b = make()
    want = a + b, b * 3
    kept = a.copy(), b.copy()
    for g, w in zip(f(a, b), want, strict=True):
        np.testing.assert_array_equal(g, w)
    np.testing.assert_array_equal(a, kept[0])
    np.testing.assert_array_equal(b, kept[1])


def test_donation_where_entries_are_read_elsewhere():
    for f in (lambda a: a[::-1] + 1, lambda a: a - np.mean(a), lambda a: np.cumsum(a)[::-1], lambda a: (a * 2, a[::-1] * 3)):
        x = rng.normal(size=7)
        want = fnad.tree.leaves(f(x.copy()))
        for g, w in zip(fnad.tree.leaves(fnad.jit(f, donate_argnums=0)(x)), want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-14)


def test_nesting():
    args = problem(7)
    f = fnad.jit(loss)
    agree(fnad.grad(f)(*args), fnad.grad(loss)(*args))
    agree(fnad.jit(fnad.grad(f))(*args), fnad.grad(loss)(*args))
    agree(fnad.jit(fnad.jit(loss))(*args), loss(*args))
    hess = lambda f: fnad.hessian(lambda b: f({**args[0], "b": b}, *args[1:]))(args[0]["b"])
    agree(hess(f), hess(loss))
    agree(fnad.jvp(f, args, args), fnad.jvp(loss, args, args))
    batch = fnad.vmap(f, (None, 0, 0))(args[0], args[1][:, None], args[2][:, None])
    np.testing.assert_allclose(batch, [loss(args[0], args[1][i : i + 1], args[2][i : i + 1]) for i in range(7)])
    agree(fnad.grad(lambda *a: fnad.checkpoint(f)(*a))(*args), fnad.grad(loss)(*args))
    agree(fnad.linearize(f, *args)[1](*args), fnad.jvp(loss, args, args)[1])


def test_method():
    class Model:
        scale = 3.0

        @fnad.jit
        def __call__(self, x):
            return x * 2

        @property
        def double(self):
            return fnad.jit(lambda x: x * self.scale)

    assert Model().double(2.0) == 6.0


def test_mistakes_are_named():
    with pytest.raises(ConcretizationError, match=r"test_jit\.py"):
        fnad.jit(lambda x: x if x > 0 else -x)(1.0)
    with pytest.raises(DTypeError, match=r"static_argnames='s'"):
        fnad.jit(lambda x, s: x)(1.0, "text")
    with pytest.raises(IndexError, match="out of bounds"):
        fnad.jit(lambda x, i: x[i])(np.ones(3), np.array([3]))
    with pytest.raises(IndexError, match="out of bounds"):
        fnad.jit(lambda x, i: fnad.at(x)[i].add(1.0))(np.ones(3), np.array([0, -4]))
    assert fnad.jit(lambda x, i: x[i])(np.arange(3.0), np.array([-1])) == 2.0  # and afterwards all is well


def test_pickle():
    f = pickle.loads(pickle.dumps(fnad.jit(np.sin)))
    assert f(0.5) == pytest.approx(np.sin(0.5))


def test_many_threads_share_a_function():
    f = fnad.jit(fnad.value_and_grad(loss))
    problems = [problem(n) for n in (5, 5, 9, 5, 9, 31, 5, 31)]
    wants = [fnad.value_and_grad(loss)(*a) for a in problems]
    failures = []

    def work(args, want):
        try:
            for _ in range(30):
                agree(f(*args), want)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(problems, wants, strict=True)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


BITS = """
import os, sys
import numpy as np, fnad
x = np.random.default_rng(0).normal(size=(3000, 300)).astype(sys.argv[1])
f = fnad.jit(lambda x: (np.sum(np.sin(x) * x), np.sum(np.exp(x), axis=0), np.max(x), np.mean(x, axis=1)))
import hashlib
print(hashlib.sha256(b"".join(np.asarray(o).tobytes() for o in f(x))).hexdigest(), fnad.cache_info().compiled)
"""


def run(code, *args, **env):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **{k: str(v) for k, v in env.items()}}
    done = subprocess.run([sys.executable, "-c", code, *args], env=env, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.split()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_same_bits_for_any_number_of_threads_and_a_second_process_compiles_nothing(tmp_path, dtype):
    one, compiled = run(BITS, dtype, FNAD_CACHE_DIR=tmp_path, NUMBA_NUM_THREADS=1)
    two, again = run(BITS, dtype, FNAD_CACHE_DIR=tmp_path, NUMBA_NUM_THREADS=2)
    assert one == two
    assert int(compiled) > 0
    assert int(again) == 0


SMALL = "import numpy as np, fnad; print(fnad.jit(lambda x: np.sum(np.tanh(x @ x)))(np.eye(3)), fnad.cache_info().compiled)"


def test_a_damaged_cache_costs_time_only(tmp_path):
    value, _ = run(SMALL, FNAD_CACHE_DIR=tmp_path)
    for path in pathlib.Path(tmp_path).rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    again, _ = run(SMALL, FNAD_CACHE_DIR=tmp_path)
    assert again == value


def test_without_a_cache_directory(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    assert run(SMALL, FNAD_CACHE_DIR=blocked)[0] == run(SMALL, FNAD_CACHE_DIR=tmp_path)[0]


FORK = """
import os, sys
import numpy as np, fnad
f = fnad.jit(lambda x: np.sum(np.sin(x) * np.exp(-x * x)))
x = np.linspace(0, 1, 1_000_000)
if sys.argv[1] == "after":
    f(x)
child = os.fork()
value = f(x)
if child == 0:
    os._exit(0 if abs(value - 1e6 * 0.29474) < 1e4 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), value > 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("when", ["before", "after"])
def test_fork(tmp_path, when):
    assert run(FORK, when, FNAD_CACHE_DIR=tmp_path) == ["0", "True"]


def test_memory_does_not_grow():
    import resource

    f = fnad.jit(fnad.value_and_grad(loss))
    args = problem(8)
    for _ in range(1000):
        f(*args)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20_000):
        f(*args)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB


def test_weak_and_strong_scalars_are_not_mixed_up():
    x = np.ones(3, np.float32)
    f = fnad.jit(lambda x, s: x * s)
    for s in (0.5, np.float64(0.5), np.array(0.5), 0.5, np.float32(0.5), np.array(0.5, np.float32), 2, np.int64(2), True):
        for _ in range(2):
            assert f(x, s).dtype == (x * s).dtype


def test_bounds_are_checked_in_several_loops_at_once():
    x, i = np.linspace(0.1, 1, 40), np.arange(600) % 3
    f = lambda x, i: (x[:, None] * x)[i][:, i]
    np.testing.assert_array_equal(fnad.jit(f)(x, i), f(x, i))
    with pytest.raises(IndexError):
        fnad.jit(f)(x, np.where(i == 2, 40, i))


def test_carries_that_change_places_under_other_shapes():
    swap = lambda a, b: fnad.scan(lambda c, x: ((c[1].reshape(4), c[0].reshape(2, 2)), None), (a, b), np.arange(3.0))[0]
    a, b = np.arange(4.0), np.arange(4.0).reshape(2, 2) + 10
    for got, want in zip(fnad.jit(swap)(a, b), swap(a, b), strict=True):
        np.testing.assert_array_equal(got, want)


def test_broadcast_arrays_that_are_closed_over_are_passed_by_reference():
    base = np.array([2.0])
    c = np.broadcast_to(base, (3,))
    f = fnad.jit(lambda x: x * c)
    np.testing.assert_array_equal(f(np.ones(3)), [2, 2, 2])
    base[0] = 5
    np.testing.assert_array_equal(f(np.ones(3)), [5, 5, 5])


@pytest.mark.parametrize("product", [np.matmul, np.dot, np.inner, lambda a, b: np.einsum("i,i", a, b), np.add, np.multiply, np.maximum])
def test_boolean_operands(product):
    for n in (0, 1, 3):
        a, b = np.arange(n) % 2 == 0, np.arange(n) > 1
        got, want = fnad.jit(product)(a, b), product(a, b)
        np.testing.assert_array_equal(got, want)
        assert np.asarray(got).dtype == np.asarray(want).dtype


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8])
def test_functions_of_small_integers_run_without_a_native_expression(dtype):
    np.testing.assert_array_equal(fnad.jit(np.signbit)(np.array([1, 0], dtype)), [False, False])


def test_explain_shows_the_program_for_static_arguments():
    stages = fnad.explain(fnad.jit(lambda x, n: x**n, static_argnums=1))(np.ones(3), 3)
    assert len(stages.graph.inputs) == 1
    assert not stages.hosts


@pytest.mark.filterwarnings("ignore::fnad.errors.RecordingWarning")
def test_disable_jit_runs_what_was_written():
    seen = []

    @fnad.jit
    def f(x):
        seen.append(type(x))
        return np.sum(x * x)

    x = np.arange(3.0)
    assert f(x) == 5
    with fnad.disable_jit():
        assert f(x) == 5
        assert seen[-1] is np.ndarray
        np.testing.assert_array_equal(fnad.grad(f)(x), 2 * x)
        with pytest.raises(ZeroDivisionError), fnad.disable_jit():
            raise ZeroDivisionError
        f(x)
    count = len(seen)
    assert f(x) == 5
    assert len(seen) == count == 4


def test_alternating_structures_and_scalars_take_the_right_program():
    f = fnad.jit(lambda p, s: {"r": p["a"] * s, "n": s + 1})
    calls = [
        ({"a": np.arange(3.0)}, 2.0),
        ({"a": np.arange(4.0, dtype=np.float32)}, 2),
        ({"a": np.arange(3.0)}, np.float32(2)),
        ({"a": np.arange(3.0)}, True),
        ({"a": np.arange(3.0)}, np.array(2)),
        ({"a": np.float64(1.5)}, np.int8(2)),
        ({"a": 1.5}, 1 + 2j),
    ]
    for _ in range(3):
        for p, s in calls:
            got, want = f(p, s), f.function(p, s)
            for k in want:
                assert np.array_equal(got[k], want[k])
                assert np.asarray(got[k]).dtype == np.asarray(want[k]).dtype
    with pytest.raises(OverflowError):
        f({"a": 1.5}, 2**80)
    assert np.array_equal(f(*calls[0])["r"], 2 * np.arange(3.0))


def test_calls_keep_no_references():
    f = fnad.jit(lambda p, lr: ({"w": p["w"] - lr * p["w"].sum(), "b": p["b"] * 2}, np.sum(p["b"])), donate_argnums=0)
    p = {"w": np.ones((3, 2)), "b": np.ones(2)}
    dtype = np.dtype(np.float64)

    def counts():
        return sys.getrefcount(dtype), sys.getrefcount(np.ndarray), sys.getrefcount(x)

    x = np.zeros(3)
    g = fnad.jit(lambda x: (x + 1, np.sum(x)))
    for _ in range(3):
        p, _ = f(p, 1e-3)
        g(x)
        with contextlib.suppress(Exception):
            g(x[:2].reshape(1, 2))
    before = counts()
    for _ in range(500):
        p, _ = f(p, 1e-3)
        g(x)
    after = counts()
    assert all(abs(a - b) < 20 for a, b in zip(before, after, strict=True)), (before, after)


def test_kinds_of_arrays(tmp_path):
    """A program gets the numbers of whatever array it is called with; subclasses with arithmetic of their own are refused."""
    f = fnad.jit(lambda x: np.sum(x * 2) + x[0])
    x = np.arange(3.0)
    fields = np.zeros(3, dtype=[("a", "f8"), ("b", "i4")])
    fields["a"] = x
    mapped = np.memmap(tmp_path / "x", np.float64, "w+", shape=3)
    mapped[:] = x
    kinds = [
        *(x, x[::-1].copy()[::-1], np.stack([x, x], 1)[:, 0], x.astype(">f8"), fields["a"], mapped),
        *(pickle.loads(pickle.dumps(np.stack([x, x], 1)))[:, 0], x.astype(">f8").repeat(2)[::2]),
        *(x.view(np.dtype("f8").newbyteorder("=")), x.astype(np.dtype("f8", metadata={"unit": "m"}))),
    ]
    for kind in kinds:
        for _ in range(3):
            assert f(kind) == 6.0
    for bad in (np.ma.masked_array(x, [0, 0, 1]), x.view(type("Mine", (np.ndarray,), {}))):
        with pytest.raises(DTypeError, match=r"np\.asarray\(x\)"):
            f(bad)


def network(layers, width):
    def f(params, x):
        for p in params:
            x = np.tanh(x @ p["w"] + p["b"])
        return np.mean(x * x)

    params = [{"w": rng.normal(size=(width, width)) / 8, "b": rng.normal(size=width)} for _ in range(layers)]
    optimizer = fnad.optim.adam(1e-2)

    def step(params, state, x):
        grads = fnad.grad(f)(params, x)
        updates, state = optimizer.update(grads, state, params)
        return fnad.optim.apply_updates(params, updates), state

    return step, (params, optimizer.init(params), rng.normal(size=(3, width)))


def test_layers_and_leaves_of_one_kind_are_printed_once():
    """Machine code does not grow with their number, whether loops are small or run in parts."""
    for width in (100, 300):
        sizes = []
        for layers in (12, 24):
            step, args = network(layers, width)
            with fnad.disable_jit():
                want = step(*args)
            for g, w in zip(fnad.tree.leaves(fnad.jit(step)(*args)), fnad.tree.leaves(want), strict=True):
                np.testing.assert_allclose(g, w, 1e-7, 1e-12)
            (program,) = fnad.explain(step)(*args)._executable.programs
            lines = str(print_program("step", program)).splitlines()
            sizes.append(sum(" = " in line and line[0] == " " for line in lines))  # instructions
        assert sizes[1] < 1.5 * sizes[0]


def test_infinities_of_the_user_are_no_constants_of_the_code():
    """With a constant -inf, LLVM turns the maximum into branches, which are many times slower than vectors."""

    def f(x, mask):
        return np.max(np.where(mask, x, -np.inf), axis=1)

    x, mask = rng.normal(size=(5, 9)).astype(np.float32), rng.random((5, 9)) < 0.5
    mask[2] = False
    assert np.array_equal(fnad.jit(f)(x, mask), f(x, mask))
    (line,) = [line for line in fnad.explain(f)(x, mask).loops.splitlines() if "select" in line]
    assert "inf" not in line


def overwritten(x):
    k = np.arange(3.0)
    y = x * k
    k *= 2
    y = y + x * k
    k[:] = 100
    return np.sum(y * x)


def one_hot(x):
    mask, y = np.zeros(3), 0.0
    for i in range(3):
        mask[:] = 0
        mask[i] = 1
        y = y + x * mask * (i + 1)
    return np.sum(y)


@pytest.mark.parametrize("f", [overwritten, one_hot])
def test_buffers_that_a_function_uses_again(f):
    x = np.array([1.0, -2.0, 0.5])
    assert fnad.jit(f)(x) == f(x)
    want = fnad.grad(f)(x)
    for g in (fnad.jit(fnad.grad(f)), fnad.grad(fnad.jit(f)), fnad.jit(fnad.grad(fnad.jit(f)))):
        assert np.array_equal(g(x), want)


def test_a_large_buffer_that_is_used_again_is_refused():
    def f(x):
        k = np.ones(300_000)
        y = x * k
        k[:] = 2
        return y

    with pytest.raises(InPlaceError, match=r"used at: .*y = x \* k"):
        fnad.jit(f)(np.ones(300_000))


@pytest.mark.parametrize("n", [3, 200])
def test_closed_over_arrays_in_another_order_are_seen_as_they_are(n):
    """The program works on a copy, which is made anew for each call into the same memory."""
    a, x = np.random.default_rng(0).normal(size=(n, n + 1)), np.ones(n)
    turned, part = a.T, a[:, ::2]
    f = fnad.jit(lambda x: (turned @ x, x @ part))
    for _ in range(3):
        for got, want in zip(f(x), (turned @ x, x @ part), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
        a += 1
    entry = fnad.explain(lambda x: turned @ x)(x)._executable
    first = entry.convert([x])[0]
    a += 1
    np.testing.assert_allclose(entry.convert([x])[0] - first, n, rtol=1e-9)


def test_a_closed_over_array_that_was_resized_is_refused():
    c = np.arange(6.0)
    f = fnad.jit(lambda x: c * x)
    x = np.ones(6)
    f(x)
    c.resize(2, refcheck=False)
    with pytest.raises(ShapeError, match="closes over"):
        f(x)


def test_lapack_is_native_and_its_failures_have_names():
    a = rng.normal(size=(4, 4)) + 4 * np.eye(4)
    b = rng.normal(size=(4, 2))
    stack = np.stack([a, 2 * a, a.T])
    spd = a @ a.T
    for dtype, tol in ((np.float64, 1e-10), (np.float32, 1e-3)):
        cases = [
            (np.linalg.solve, (a, b)), (np.linalg.solve, (a, b[:, 0])),
            (np.linalg.solve, (stack, b)), (np.linalg.solve, (a, np.stack([b, b]))),
            (np.linalg.inv, (a,)), (np.linalg.inv, (stack,)), (np.linalg.cholesky, (spd,)), (np.linalg.inv, (np.ones((1, 1)),)),
        ]  # fmt: skip
        for f, args in cases:
            args = [x.astype(dtype) for x in args]
            got, want = fnad.jit(f)(*args), f(*args)
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=tol, atol=tol)
    assert fnad.explain(np.linalg.inv)(a).hosts == []
    for f, bad in (
        (np.linalg.inv, np.zeros((2, 3, 3))),
        (np.linalg.cholesky, -np.eye(3)),
        (lambda x: np.linalg.solve(x, x), np.zeros((2, 2))),
    ):
        with pytest.raises(np.linalg.LinAlgError):
            fnad.jit(f)(bad)


def test_python_integers_outside_of_a_dtype():
    """They are compared as they are, and refused where NumPy refuses them."""
    y = np.array([0, 44, 200], np.uint8)

    def compare(y):
        return y > 300, y < 256, y == 256, y >= -1, y != 300, y < 300

    agree(fnad.jit(compare)(y), compare(y))
    assert not fnad.jit(lambda y, t: y > t)(y, 300).any()
    assert not fnad.jit(lambda y, t: y == t)(np.array([-1, 5], np.int8), 255).any()
    for f in (lambda y: y + 300, lambda y: np.maximum(y, -5), lambda y: y - (-1)):
        with pytest.raises(OverflowError, match="out of bounds for uint8"):
            fnad.jit(f)(y)
    logits, labels = rng.normal(size=(3, 200)), np.array([156, 3, 4], np.uint8)
    loss = fnad.nn.functional.cross_entropy
    np.testing.assert_allclose(fnad.jit(loss)(logits, labels), loss(logits, labels.astype(int)))


@dataclasses.dataclass
class Scaled:
    a: object
    k: object = dataclasses.field(default=1, metadata={"static": True})


def test_structures_that_are_equal_and_not_the_same():
    x = np.arange(3.0)
    f = fnad.jit(lambda p: x * (5 if isinstance(p, collections.OrderedDict) else 7))
    power, quotient = fnad.jit(lambda o: o.a**o.k), fnad.jit(lambda o: o.a / o.k)
    for _ in range(2):
        assert np.array_equal(f(collections.OrderedDict(b=x, a=x)), 5 * x)
        assert np.array_equal(f({"a": x, "b": x}), 7 * x)
        assert power(Scaled(np.arange(3), 2)).dtype == np.int64
        assert power(Scaled(np.arange(3), 2.0)).dtype == np.float64
        assert np.array_equal([quotient(Scaled(np.ones(1), z))[0] for z in (0.0, -0.0)], [np.inf, -np.inf])


def test_very_deep_trees():
    tree = np.ones(2)
    for _ in range(150):
        tree = [tree, None, ()]
    f = fnad.jit(lambda t: fnad.tree.map(lambda x: x * 2, t))
    for _ in range(2):
        assert np.array_equal(fnad.tree.leaves(f(tree))[0], [2.0, 2.0])


def test_complex_numbers_are_true_if_a_part_is():
    z = np.array([-2j, 0, 1 + 0j])
    assert np.array_equal(fnad.jit(lambda z: z.astype(bool))(z), z.astype(bool))
