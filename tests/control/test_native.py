"""Compiled loops and branches: what runs natively, what is called on the host, what is compiled anew, what is copied."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fnad
from fnad.compiler.host import calls
from fnad.compiler.program import Host
from fnad.compiler.schedule import Schedule
from fnad.compiler.simplify import simplify
from fnad.errors import UnsupportedError
from fnad.testing import assert_trees_close

from .programs import PROGRAMS
from .test_random import drawn

rng = np.random.default_rng(5)
X = rng.normal(size=9)
NATIVE = [name for name in PROGRAMS if name != "complex_values"]


def scheduled(f, *args):
    """The plan of a function, without compiling it."""
    return Schedule.of(simplify(fnad.make_graph(f)(*args)))


def total(f):
    return lambda *args: sum((np.sum(np.sin(x)) for x in fnad.tree.leaves(f(*args))), np.float64(0.0))


def forms(f, args, reverse):
    """What a program becomes under the transforms."""
    every = tuple(range(len(args)))
    yield f, args
    yield lambda *a: fnad.jvp(total(f), a, a), args
    yield fnad.vmap(f), [fnad.tree.map(lambda x: np.stack([x, 0.8 * x, -x]), a) for a in args]
    if reverse:
        yield fnad.value_and_grad(total(f), every), args


@pytest.mark.parametrize("name", NATIVE)
def test_nothing_runs_on_the_host(name):
    p = PROGRAMS[name]
    for f, args in forms(p.function, p.args, p.reverse):
        nodes = scheduled(f, *args).nodes
        assert not [n for n in nodes if isinstance(n, Host)]
        assert not [*calls(nodes)]


@settings(max_examples=8)
@given(seed=st.integers(1000, 100_000), form=st.sampled_from(["gradient", "forward", "batch"]))
def test_random_nests_compiled(seed, form):
    loss, p, c = drawn(seed)
    f = lambda p, c: loss(fnad, p, c)
    g, args = {
        "gradient": (fnad.value_and_grad(f, (0, 1)), (p, c)),
        "forward": (lambda p, c: fnad.jvp(f, (p, c), (p, c)), (p, c)),
        "batch": (fnad.vmap(f, (0, None)), (fnad.tree.map(lambda x: np.stack([x, x * 0.8, -x]), p), c)),
    }[form]
    with np.errstate(all="ignore"):
        assert_trees_close(fnad.jit(g)(*args), g(*args), atol=1e-9, rtol=1e-9)
    nodes = scheduled(g, *args).nodes
    assert not any(isinstance(n, Host) for n in nodes)
    assert not [*calls(nodes)]


def newton(a):
    return fnad.while_loop(lambda x: np.abs(x * x - a) > 1e-5 * a, lambda x: (x + a / x) / 2, a)


def power_iteration(n, a):
    return fnad.fori_loop(0, n, lambda i, v: (a @ v) / np.linalg.norm(a @ v), np.ones(a.shape[0]))


def steps(w, xs):
    """A scan with a branch in it."""
    body = lambda c, x: (fnad.cond(c > 0.5, lambda c: c * w, lambda c: c + x * x * w, c), c)
    return fnad.scan(body, 0.0, xs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_are_those_of_eager_mode(dtype):
    a = rng.normal(size=(3, 3)).astype(dtype)
    for f, args in (
        (newton, (dtype(2.0),)),
        (power_iteration, (4, a)),
        (steps, (dtype(0.9), a[0])),
        (lambda k, x: fnad.switch(k, [np.sin, np.cos, lambda x: x[::-1]], x), (2, a[:, ::-1])),
        (lambda x: fnad.cond(True, np.any, np.all, x > 0), (a,)),
    ):
        got, want = fnad.jit(f)(*args), f(*args)
        assert_trees_close(got, want, rtol=1e-5, atol=1e-5)
        for g, w in zip(fnad.tree.leaves(got), fnad.tree.leaves(want), strict=True):
            assert type(g) is type(w)
            assert g.dtype == w.dtype


def test_another_number_of_steps_or_size_compiles_nothing():
    loop, iterate = fnad.jit(fnad.value_and_grad(lambda w, xs: np.sum(steps(w, xs)[1]))), fnad.jit(power_iteration)
    branch = fnad.jit(lambda p, x: fnad.cond(p, lambda x: np.sin(x) * 2, lambda x: x[::-1], x))
    loop(0.9, np.ones(30)), iterate(3, np.eye(5)), branch(True, np.ones(5))
    before = fnad.cache_info()
    for n in (31, 50, 1000):
        xs = np.linspace(0, 1, n)
        assert_trees_close(loop(0.9, xs), fnad.value_and_grad(lambda w, xs: np.sum(steps(w, xs)[1]))(0.9, xs))
        assert_trees_close(branch(n == 50, xs), np.sin(xs) * 2 if n == 50 else xs[::-1])
        iterate(n, np.diag(np.arange(1.0, 7 + n % 7)))
    after = fnad.cache_info()
    assert (after.compiled, after.loaded) == (before.compiled, before.loaded)


def test_the_program_does_not_grow_with_the_number_of_steps():
    texts = {fnad.explain(fnad.value_and_grad(lambda w, xs: steps(w, xs)[0]))(0.9, np.ones(n)).loops for n in (10, 100_000)}
    assert len(texts) == 1


def test_only_the_chosen_branch_runs():
    """An index out of bounds is an error where it is computed."""
    f = fnad.jit(lambda k, x, i: fnad.switch(k, [lambda: 0.0, lambda: x[i], lambda: fnad.cond(i > 2, lambda: 1.0, lambda: x[i])]))
    assert f(0, np.ones(3), 7) == 0.0
    assert f(2, np.ones(3), 7) == 1.0
    assert f(5, np.ones(3), 2) == 1.0  # the nearest branch
    with pytest.raises(IndexError, match="out of bounds"):
        f(1, np.ones(3), 7)


@pytest.mark.parametrize("n", [0, 1])
def test_small_sizes(n):
    x = np.linspace(1, 2, n)
    f = lambda x: fnad.cond(np.sum(x) > 10, np.sin, lambda x: fnad.fori_loop(0, x.shape[0], lambda i, y: y * 2 + i, x), x)
    assert_trees_close(fnad.jit(f)(x), f(x))
    g = lambda x: fnad.scan(lambda c, x: (newton(c + x), c), 1.0, x)
    assert_trees_close(fnad.jit(g)(x), g(x))


def test_donated_memory_in_loops_and_branches():
    f = lambda x, n: (fnad.fori_loop(0, n, lambda i, x: x * 0.5 + i, x), fnad.cond(n > 2, np.sin, lambda x: x[::-1], x))
    for n in (0, 3):
        assert_trees_close(fnad.jit(f, donate_argnums=0)(X.copy(), n), f(X, n))


def module(explanation, path):
    explanation.save(path)
    spec = importlib.util.spec_from_file_location("saved", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_saved_and_shown(tmp_path):
    """Both printers compute the same."""

    def f(w, xs, k):
        c, ys = fnad.scan(lambda c, x: (fnad.cond(c > 0.5, lambda c: c * w, lambda c: newton(c + x * x), c), c), 0.1, xs)
        return c, ys, fnad.switch(k, [np.sum, np.max, lambda ys: ys[0]], ys), np.any(ys > 1)

    explained = fnad.explain(f)(0.9, X, 1)
    for part in ("if b", "while b", "for i", "test:"):
        assert part in explained.loops
    for part in ("while True:", "if not b", "else:", "for i"):
        assert part in explained.source
    saved = module(explained, tmp_path / "saved.py")
    for k in range(3):
        assert_trees_close(saved.run(0.9, X, k), fnad.tree.leaves(f(0.9, X, k)))


def test_the_gil_is_released_and_threads_do_not_meet():
    count = fnad.jit(lambda n, x: fnad.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + x / (c[1] + 1)), (0, x)))
    count(3, 1.0)
    ended, results = [], []

    def work():
        count(30_000_000, 1.0)
        ended.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    turns = 0
    while not ended:
        time.sleep(0.001)
        turns += 1
    thread.join()
    assert turns > 3
    threads = [threading.Thread(target=lambda k=k: results.append((k, count(1000 * k, 1.0 + k)[0]))) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(n == 1000 * k for k, n in results)


def test_several_of_a_kind():
    """Equal nodes share one native function."""

    def one(a, b, k):
        body = lambda c, x: (fnad.cond(np.sum(c) > 0, lambda c: np.sin(c) * b, lambda c: fnad.at(c)[k].set(x[0]), c), np.max(c))
        c, ys = fnad.scan(body, a, np.stack([a, b]))
        d = fnad.cond(k > 1, lambda: np.tanh(c) + a, lambda: c[::-1] * b)
        return c, ys, d, fnad.while_loop(lambda v: np.sum(v**2) > 1, lambda v: v * 0.5, d + 1)

    f = lambda a, b, k, n: (one(a, b, k), one(b, a, n), one(a * 2, b, k + n))
    for k, n in ((0, 1), (2, 3)):
        assert_trees_close(fnad.jit(f)(X, X[::-1] - 0.1, k, n), f(X, X[::-1] - 0.1, k, n))


def test_large_branches_run_in_parts():
    x, w = np.linspace(-1, 1, 300_000), rng.normal(size=(200, 200))
    f = lambda k, x, w: fnad.cond(k > 0, lambda: (np.sum(np.sin(x)), np.exp(x), w @ w), lambda: (np.sum(x**2), x * 2, w.T @ w))
    assert fnad.explain(f)(0, x, w).loops.count("in parts of") >= 4
    for k in (0, 1):
        assert_trees_close(fnad.jit(f)(k, x, w), f(k, x, w))


# -- arrays that are changed in place --------------------------------------------------------------------------------------

at = fnad.at
M = rng.normal(size=(4, 4))
CHANGES = {
    "entries of each other": (lambda i, c, x: (at(c[0])[i].set(c[1][i]), at(c[1])[i].set(c[0][i])), (X, X[::-1])),
    "places change": (lambda i, c, x: (at(c[1])[i].set(c[0][i]), at(c[0])[i].set(c[1][i])), (X, X[::-1])),
    "twice": (lambda i, c, x: at(at(c)[i].set(c[i] * 2))[i + 1].add(c[i] + x[i]), X),
    "new one read": (lambda i, c, x: (lambda d: (d, c[1] + d[i] + np.sum(d)))(at(c[0])[i].set(c[0][i + 1] * x[0])), (X, 1.0)),
    "old one read later": (lambda i, c, x: (lambda d: (d, c[1] + d[i] + c[0][i]))(at(c[0])[i].set(c[0][i + 1] * x[0])), (X, 1.0)),
    "old one kept": (lambda i, c, x: (at(c[0])[i].set(c[0][i + 1] * x[0]), c[0]), (X, X[::-1])),
    "new one kept twice": (lambda i, c, x: (lambda d: (d, d * 2.0, d))(at(c[0])[i].set(x[i])), (X, X, X)),
    "reversed": (lambda i, c, x: at(c)[::-1].set(c * 0.9), X),
    "shifted": (lambda i, c, x: at(c)[1:].set(c[:-1] * 0.9 + x[1:]), X),
    "permuted": (lambda i, c, x: at(c)[np.array([3, 2, 1, 0])].set(c[np.array([0, 1, 2, 3])] * 0.9), X),
    "diffusion": (lambda i, c, x: at(c)[1:-1].set(c[1:-1] + 0.1 * (c[2:] - 2 * c[1:-1] + c[:-2])), X),
    "transposed factor": (lambda i, c, x: at(c)[i % 4].add((c.T @ x[:4]) * 0.1), M),
    "product with itself": (lambda i, c, x: at(c)[i % 4].add((c @ c)[0] * 0.1), M),
    "another shape": (lambda i, c, x: at(c)[i % 4].add(np.reshape(c, (16,))[:4] * 0.1), M),
    "columns": (lambda i, c, x: at(c)[:, i % 4].add(c[:, (i + 1) % 4] * 0.1 + x[:4]), M),
    "in a loop until": (lambda i, c, x: fnad.while_loop(lambda c: c[i] < 1.0, lambda c: at(c)[i].add(x[i] ** 2 + 0.3), c, max_steps=4), X),
    "two in a branch": (
        lambda i, c, x: fnad.cond(c[0][i] > c[1][i], lambda a, b: (at(b)[i].set(a[i]), a), lambda a, b: (a, at(b)[i + 1].set(a[i])), *c),
        (X, X[::-1]),
    ),
    "read after a branch": (
        lambda i, c, x: (lambda d: (d, c[1] + c[0][i]))(fnad.cond(c[1] > 0, lambda a: at(a)[i].set(x[i]), lambda a: a * 0.9, c[0])),
        (X, 0.5),
    ),
    "changed twice in loops": (
        lambda i, c, x: fnad.fori_loop(0, 2, lambda j, c: c * 0.9 + x[j], fnad.fori_loop(0, 3, lambda j, c: at(c)[j].add(c[j + 1]), c)),
        X,
    ),
    "in a branch": (lambda i, c, x: fnad.cond(c[i] > 0, lambda c: at(c)[i].set(x[i]), lambda c: c, c), X),
    "in an inner loop": (lambda i, c, x: fnad.fori_loop(0, 4, lambda j, c: at(c)[j].add(c[i % 4] * 0.1 + x[i]), c), M),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_carry(name):
    body, init = CHANGES[name]
    f = lambda init, x: fnad.fori_loop(0, 7, lambda i, c: body(i, c, x), init)
    both = fnad.value_and_grad(total(f), (0, 1))
    assert_trees_close(fnad.jit(lambda *a: (f(*a), both(*a)))(init, X), (f(init, X), both(init, X)))


def test_a_changed_carry_is_not_copied():
    def f(t, a):
        return np.sum(fnad.fori_loop(1, 5000, lambda i, a: at(a)[i].set(np.sin(a[i - 1]) * t[i] + 1), a) ** 2)

    x = np.linspace(0, 1, 5000)
    forward = fnad.explain(f)(x, x)
    assert [line for line in forward.loops.splitlines() if line.startswith("    for")] == []
    backward = fnad.explain(fnad.grad(f, (0, 1)))(x, x)
    assert [line for line in backward.loops.splitlines() if line.startswith("    for")] == []
    assert backward._executable.work_bytes < 10 * x.nbytes  # entries that were read, not an array per step


# -- operations that are not compiled ----------------------------------------------------------------------------------------


def kalman(a, xs):
    body = lambda p, x: (np.linalg.solve(a + np.outer(x, x), p) + np.linalg.det(a + np.outer(x, x)), np.linalg.solve(a, p * x))
    return fnad.scan(body, np.ones(3), xs)


def inverted(x):
    return np.linalg.eigvalsh(np.diag(x * 0 + 2)) * x


HOSTED = {
    "scan": (kalman, (np.eye(3) * 2, X.reshape(3, 3))),
    "cond": (lambda x: fnad.cond(x[0] > 0, inverted, lambda x: x * 2, x), (X,)),
    "while": (
        lambda a: fnad.while_loop(lambda c: c[1] < 4, lambda c: (np.linalg.inv(c[0]) + np.linalg.det(c[0]), c[1] + 1), (a, 0))[0],
        (np.eye(3) * 2,),
    ),
    "weak": (lambda x: fnad.scan(lambda c, x: (np.where(c > 1, inverted(x)[0], c), c), 0.5, x), (X.reshape(3, 3),)),
}


@pytest.mark.parametrize("name", HOSTED)
def test_what_is_not_compiled_is_called_out_of_the_loop(name):
    f, args = HOSTED[name]
    for g in (f, fnad.grad(total(f))) if name != "while" else (f,):
        assert_trees_close(fnad.jit(g)(*args), g(*args))
    explained = fnad.explain(f)(*args)
    assert not any(step in explained.hosts for step in explained._executable.steps)
    names = [h.equation.primitive.name for h in explained.hosts]
    assert names
    assert not {"solve", "inv"} & set(names)  # native: Python is called where they fail
    assert all(f"{n}, called out of a loop or branch: " in str(explained) for n in names)
    with pytest.raises(UnsupportedError, match="can be saved"):
        explained.save("unused.py")


def test_errors_come_out_of_loops():
    f = fnad.jit(lambda a, n: fnad.fori_loop(0, n, lambda i, x: np.linalg.solve(a, x), np.ones(3)))
    with pytest.raises(np.linalg.LinAlgError):
        f(np.zeros((3, 3)), 5)
    np.testing.assert_allclose(f(np.eye(3) * 2, 5), np.full(3, 1 / 32))
    np.testing.assert_allclose(f(np.zeros((3, 3)), 0), np.ones(3))


def test_a_loop_with_calls_can_be_interrupted():
    code = (
        "import os, signal, threading, numpy as np, fnad\n"
        "f = fnad.jit(lambda x, n: fnad.fori_loop(0, n, lambda i, x: np.linalg.eigvalsh(np.diag(x * 0 + 1)) * x + 1.0, x))\n"
        "f(np.ones(3), 2)\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    f(np.ones(3), 1 << 40)\n"
        "except KeyboardInterrupt:\n    print(f(np.zeros(2), 3))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[3. 3.]"


def test_calls_of_several_threads_do_not_meet():
    f = fnad.jit(kalman)
    args = [(np.eye(3) * (2 + k), X.reshape(3, 3) + k) for k in range(4)]
    right = []

    def work(k):
        want = kalman(*args[k])
        right.extend(np.allclose(f(*args[k])[0], want[0]) for _ in range(20))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert right == [True] * 80


def test_checkpoint_and_custom_rules_in_bodies_are_native():
    @fnad.custom_vjp
    def double(x):
        return 2.0 * x

    double.defvjp(lambda x: (2.0 * x, None), lambda _, g: (2.0 * g,))
    f = lambda w: fnad.scan(lambda c, _: (fnad.checkpoint(lambda c, w: np.sin(double(c) * w))(c, w), None), w, None, length=5)[0]
    for g in (f, fnad.grad(f)):
        assert fnad.explain(g)(0.3).hosts == []
        assert_trees_close(fnad.jit(g)(0.3), g(0.3))


def test_a_product_read_entry_by_entry_inside_a_loop():
    """Its memory is that of all entries, whatever the loop needs of it at a time."""
    f = lambda a, b, xs: fnad.scan(lambda c, x: (np.sum((a @ b) * x) + c, None), 0.0, xs)[0]
    g = lambda a, b, xs: (lambda m: fnad.scan(lambda c, x: (np.sum(m * x) + c, None), 0.0, xs)[0])(a @ b)
    args = rng.normal(size=(20, 30)), rng.normal(size=(30, 25)), rng.normal(size=7)
    for h in (f, g):
        np.testing.assert_allclose(fnad.jit(h)(*args), h(*args), rtol=1e-9)
