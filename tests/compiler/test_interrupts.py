"""Programs that run for long end when a signal's handler raises, and programs run in threads with little memory for their stack."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

import fnad
from fnad.compiler import pauses

LONG = 2_000_000_000  # steps: seconds, not hours, if nobody looks for signals
MATRIX = np.full((32, 32), 1.0 / 32)


def counted(step):
    return lambda x: fnad.while_loop(lambda c: c[0] < LONG, lambda c: (c[0] + 1, step(c[1])), (0, x))[1]


def inner_loop(x):
    return fnad.while_loop(lambda d: d[0] < 1000, lambda d: (d[0] + 1, d[1] * 0.999), (0, x))[1]


LOOPS = {
    "scalars": (counted(lambda x: x * 0.999), 1.0),
    "vectors": (counted(np.tanh), np.ones(1000)),
    "products": (counted(lambda x: x @ MATRIX), MATRIX),
    "nested": (counted(inner_loop), 1.0),
    "branch": (lambda x: fnad.cond(x > 0, counted(np.sin), lambda x: x, x), 1.0),
    "scan": (lambda x: fnad.scan(lambda c, _: (np.cos(c), None), x, None, length=LONG)[0], 1.0),
    "scan of scans": (lambda x: fnad.fori_loop(0, LONG, lambda i, x: fnad.fori_loop(0, 10, lambda j, x: x * 0.999, x), x), 1.0),
    "host calls before": (lambda x: counted(np.sin)(np.argsort(x) * 1.0)[::-1], np.ones(4)),
    "host calls inside": (lambda x: counted(lambda x: np.linalg.eigvalsh(x * MATRIX)[-1] + inner_loop(x))(x), 1.0),
}


class Stop(Exception):
    pass


@pytest.fixture
def interrupted():
    """Whether a call ends with what the handler of a signal raises. It comes again and again, for a library may swallow what it raises."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("signal.setitimer is needed")

    def stop(*_):
        raise Stop

    def call(f, *args):
        before = signal.signal(signal.SIGALRM, stop)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.03, 0.03)
            f(*args)
        except Stop:
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)
        return False

    return call


@pytest.mark.parametrize(("f", "x"), LOOPS.values(), ids=LOOPS)
def test_long_loops_look_for_signals(f, x, interrupted):
    compiled = fnad.jit(f)
    fnad.explain(compiled)(x)  # what is met while it is recorded and compiled is another matter
    for _ in range(2):
        assert interrupted(compiled, x)
    assert fnad.jit(lambda x: x + 1.0)(2.0) == 3.0


def test_a_loop_goes_on_after_a_signal_that_raises_nothing():
    if not hasattr(signal, "setitimer"):
        pytest.skip("signal.setitimer is needed")
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(True))
    f = fnad.jit(lambda n: fnad.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + 2.0), (0, 0.0))[1])
    f(1)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert f(100_000_000) == 2e8
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == [True]


@pytest.mark.parametrize("n", [0, 1, 5, 39, 40, 41, 100])
def test_counts_of_steps_between_looks(n, monkeypatch):
    """Loops in pieces take all their steps, also where the last piece is short or the only one."""
    monkeypatch.setattr(pauses, "_PAUSE", 40)
    monkeypatch.setattr(pauses, "_LONG", 0)
    f = fnad.jit(lambda x: fnad.scan(lambda c, _: (c + np.sum(x), c), 0.0, None, length=n))
    last, all_ = f(np.ones(3))
    assert last == 3.0 * n
    np.testing.assert_array_equal(all_, 3.0 * np.arange(n))
    assert fnad.jit(lambda n: fnad.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + 3.0), (0, 0.0))[1])(n) == 3.0 * n


def test_products_in_threads_with_a_small_stack():
    found = []

    def work():
        x = np.arange(90_000.0).reshape(300, 300) / 9e4
        w = np.cos(x)
        value, slope = fnad.jit(fnad.value_and_grad(lambda w: np.sum((x @ w) @ w.T)))(w)
        whole = np.sum((x @ w) @ w.T)
        found.extend([value - whole, np.max(np.abs(slope - fnad.grad(lambda w: np.sum((x @ w) @ w.T))(w))), abs(whole)])

    before = threading.stack_size(128 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    error, slope_error, scale = found
    assert abs(error) < 1e-12 * scale
    assert slope_error < 1e-9
