"""Memory of compiled programs: what checkpointing saves, and that nothing stays behind."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import fnad
from fnad.compiler.pipeline import Executable, simplify

UNIT = 8 * 50 * 40  # bytes of one activation


def workspace(f, *args):
    """Bytes of temporaries of the compiled function: a number that does not depend on the machine."""
    return Executable(simplify(fnad.make_graph(f)(*args))).work_bytes


def chain(wrap, layers, every):
    def block(x, w):
        for _ in range(every):
            x = np.tanh(x @ w)
        return x

    wrapped = wrap(block)

    def loss(x, w):
        for _ in range(layers // every):
            x = wrapped(x, w)
        return np.sum(x)

    return fnad.grad(loss, (0, 1))


def test_checkpoint_lowers_the_workspace_of_a_deep_chain():
    """64 layers keep two activations each; in blocks of 8 they keep the inputs of 8 blocks and the activations of one."""
    x, w = np.full((50, 40), 0.1), np.full((40, 40), 0.01)
    everything, blocks = (workspace(chain(wrap, 64, 8), x, w) / UNIT for wrap in (lambda f: f, fnad.checkpoint))
    assert 127 < everything < 132
    assert blocks < 8 + 2 * 8 + 4
    for a, b in zip(*(fnad.jit(chain(wrap, 64, 8))(x, w) for wrap in (lambda f: f, fnad.checkpoint)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_checkpoint_in_the_body_of_a_scan():
    """A step keeps its carry, not what is between its operations."""

    def f(wrap):
        body = wrap(lambda c, w: np.tanh(w @ np.tanh(w @ np.tanh(w @ c))))
        return fnad.grad(lambda x, w: np.sum(fnad.scan(lambda c, _: (body(c, w), None), x, None, length=100)[0]))

    x, w = np.linspace(0, 1, 50), np.eye(50)
    everything, carries = (workspace(f(wrap), x, w) / x.nbytes for wrap in (lambda f: f, fnad.checkpoint))
    assert everything > 300
    assert carries < 110
    np.testing.assert_allclose(fnad.jit(f(fnad.checkpoint))(x, w), fnad.jit(f(lambda f: f))(x, w), rtol=1e-12)


def test_binomial_checkpoints_need_logarithmic_workspace():
    x = np.linspace(0, 1, 100)

    def needed(n, checkpoint):
        f = lambda x: np.sum(fnad.scan(lambda c, _: (np.sin(c) * 1.1, None), x, None, length=n, checkpoint=checkpoint)[0])
        return workspace(fnad.grad(f), x) / x.nbytes

    assert needed(10_000, None) > 10_000
    assert needed(10_000, 100) < 210
    tens = [needed(10**k, "binomial") for k in (1, 2, 3, 4)]
    assert tens[-1] < 60
    assert max(np.diff(tens)) < 16, "ten times as many steps cost a constant"


def test_sums_of_many_products_do_not_keep_them_all():
    w = np.ones((40, 40))
    few, many = (workspace(lambda xs: sum(x.T @ x for x in xs), [np.ones((8, 40))] * n) for n in (8, 32))
    assert many <= few + 2 * w.nbytes


# -- nothing stays behind ------------------------------------------------------------------------------------------------------


def resident():
    """Bytes of memory of this process."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def step(p, x):
    loss, g = fnad.value_and_grad(lambda p: np.sum(np.tanh(x @ p["w"] + p["b"]) ** 2))(p)
    return {k: v - 0.01 * g[k] for k, v in p.items()}, loss


def grown(action, warm, times):
    """Bytes that memory grows by while `action(i)` runs so many times, after so many to warm up."""
    for i in range(warm):
        action(i)
    gc.collect()
    before = resident()
    for i in range(times):
        action(warm + i)
    gc.collect()
    return resident() - before


def calls():
    f = fnad.jit(step)
    state = {"w": np.ones((20, 30)), "b": np.zeros(30)}
    x = np.ones((16, 20))

    def call(_):
        nonlocal state
        state = f(state, x)[0]

    return call


def recordings():
    """A new size each time: recorded and planned again. The function goes with what was made of it."""
    p = {"w": np.ones((20, 30)), "b": np.zeros(30)}
    return lambda i: fnad.jit(lambda p, x: step(p, x))(p, np.ones((1 + i % 500, 20)))


def gradients():
    p = {"w": np.ones((20, 30)), "b": np.zeros(30)}
    x = np.ones((64, 20))
    return lambda _: fnad.grad(lambda p: step(p, x)[1])(p)


def errors():
    f = fnad.jit(lambda x, i: np.take(x, i))

    def call(_):
        with pytest.raises(IndexError):
            f(np.ones(10_000), 10_000)

    return call


LIMIT = 2 << 20  # bytes: a leak of one small array per call shows within the shortest of these, one of 21 bytes in the longest
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@linux
@pytest.mark.parametrize(
    ("make", "warm", "times"), [(calls, 500, 20_000), (recordings, 60, 100), (gradients, 100, 1000), (errors, 50, 1000)]
)
def test_memory_does_not_grow(make, warm, times):
    assert grown(make(), warm, times) < LIMIT


@linux
@pytest.mark.slow
@pytest.mark.parametrize(("make", "warm", "times"), [(calls, 1000, 100_000), (recordings, 500, 2000), (gradients, 500, 10_000)])
def test_memory_does_not_grow_over_a_long_time(make, warm, times):
    assert grown(make(), warm, times) < LIMIT


@linux
def test_one_function_over_many_sizes():
    """Programs of sizes that were seen stay, as the function does; what each needs is small, for the code is shared."""
    f = fnad.jit(step)
    p = {"w": np.ones((4, 3)), "b": np.zeros(3)}
    per_size = grown(lambda i: f(p, np.ones((100 + i, 4))), 50, 150) / 150
    assert per_size < 50_000


PAGES = """
import resource
import numpy as np, fnad
f = fnad.jit(lambda x, y: (x + y, x * y, x - y))
x, y = np.ones(200_000), np.ones(200_000)
for _ in range(5):
    out = f(x, y)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    out = f(x, y)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20, fnad._malloc.keep_pages())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc")
@pytest.mark.parametrize("chosen", [{}, {"MALLOC_TRIM_THRESHOLD_": "131072"}])
def test_results_come_in_pages_that_were_used_before(chosen):
    """Unless the environment says what malloc does; three results are 1200 pages."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))} | chosen
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", PAGES], env=env, capture_output=True, text=True, check=True)
    faults, kept = done.stdout.split()
    if kept == "True":
        assert float(faults) < 100
    assert kept == str(not chosen) or not hasattr(ctypes.CDLL(None), "mallopt")
