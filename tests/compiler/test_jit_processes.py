"""fnad.jit in processes that fork and among threads: nothing hangs, nothing meets, the GIL is free while native code runs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fnad

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


def run(code, tmp_path, *args):
    """What a process prints; one that hangs is ended, which fails the test."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FNAD_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code, *args], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


POOL = """
import multiprocessing, sys, warnings
import numpy as np, fnad

warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
f = fnad.jit(fnad.value_and_grad(lambda w, x: np.sum(np.tanh(x @ w) ** 2)))
w, x = np.linspace(-1, 1, 64), np.random.default_rng(0).normal(size=(4000, 64))
want = fnad.value_and_grad(lambda w, x: np.sum(np.tanh(x @ w) ** 2))(w, x)

def work(k):
    value, gradient = f(w, x)
    return bool(np.isclose(value, want[0]) and np.allclose(gradient, want[1])), float(fnad.jit(lambda v: np.sum(v * k))(np.ones(3)))

if sys.argv[1] == "after":
    f(w, x)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work, range(6)) == [(True, 3.0 * k) for k in range(6)])
print(work(7) == (True, 21.0))
"""


@forks
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_pool_of_forked_processes(tmp_path, when):
    assert run(POOL, tmp_path, when) == ["True", "True"]


WHILE_COMPILING = """
import itertools, os, threading, time, warnings
import numpy as np, fnad

warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
operations = np.sin, np.cos, np.exp, np.tanh, np.abs, np.square

def chain(names):
    def f(x):
        for name in names:
            x = name(x)
        return np.sum(x)
    return f

def compile_all():
    for names in itertools.product(operations, repeat=3):
        if done.is_set():
            break
        fnad.jit(chain(names))(np.ones(3))

done = threading.Event()
thread = threading.Thread(target=compile_all)
thread.start()
codes = []
for k in range(3):
    time.sleep(0.3)
    child = os.fork()
    if child == 0:
        value = fnad.jit(chain(operations[: k + 1] * 2))(np.full(3, 0.5))
        os._exit(0 if np.isfinite(value) else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.set()
thread.join()
print(*codes)
"""


@forks
def test_a_child_compiles_though_another_thread_was_compiling(tmp_path):
    assert run(WHILE_COMPILING, tmp_path) == ["0", "0", "0"]


def test_the_gil_is_free_while_native_code_runs():
    """Another thread takes steps between the call and its return, though threads never have to give up the GIL."""
    f = fnad.jit(lambda x: np.sum(np.sin(x) * np.exp(-x * x) + np.tanh(x)))
    x = np.linspace(0, 1, 3_000_000)
    f(x)
    steps, seen, done = [0], [], threading.Event()

    def call():
        before = steps[0]
        f(x)
        seen.append(steps[0] - before)
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread = threading.Thread(target=call)
        thread.start()
        while not done.is_set():
            steps[0] += 1
            time.sleep(0)  # gives up the GIL for a moment; without the GIL free, the call would keep it until the end
        thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert seen[0] > 0


def test_threads_share_a_function_of_new_structures():
    """Recording, compiling and calling at once: every thread meets each of several structures first or last."""
    calls = threading.Barrier(6)
    f = fnad.jit(lambda p, n: {k: np.sum(v * n) for k, v in p.items()}, static_argnames="n")
    g = fnad.jit(fnad.grad(lambda p: f(p, 2)["a"]))

    def work(k):
        calls.wait()
        for size in (1, 2, 5, 2, 7):
            p = {"a": np.full(size, k + 1.0), "b": np.ones((size, 2), np.float32)}
            out = f(p, 3)
            assert out == {"a": 3.0 * size * (k + 1), "b": 6.0 * size}
            assert np.all(g(p)["a"] == 2)
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))


def test_threads_do_not_share_disable_jit():
    f = fnad.jit(lambda x: x * 2)
    with fnad.disable_jit():
        f(1.0)
        assert "0 programs" in repr(f)
        thread = threading.Thread(target=f, args=(1.0,))
        thread.start()
        thread.join()
    assert "1 program>" in repr(f)
