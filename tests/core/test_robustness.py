"""Exceptions, threads, nesting, long chains and leaks: nothing is left behind, nothing recurses, nothing is kept too long."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fnad
from fnad.core.tracer import Trace, Tracer
from fnad.errors import LeakedTracerError
from fnad.testing import assert_trees_close

TRANSFORMED = {
    "grad": lambda f: fnad.grad(f)(np.ones(3)),
    "value_and_grad": lambda f: fnad.value_and_grad(f)(np.ones(3)),
    "vjp": lambda f: fnad.vjp(f, np.ones(3)),
    "jvp": lambda f: fnad.jvp(f, (np.ones(3),), (np.ones(3),)),
    "vmap": lambda f: fnad.vmap(f)(np.ones((2, 3))),
    "make_graph": lambda f: fnad.make_graph(f)(np.ones(3)),
    "vmap of grad": lambda f: fnad.vmap(fnad.grad(f))(np.ones((2, 3))),
    "grad of grad": lambda f: fnad.grad(lambda x: np.sum(fnad.grad(f)(x)))(np.ones(3)),
}


def objects(cls):
    gc.collect()
    return [o for o in gc.get_objects() if isinstance(o, cls)]


# -- exceptions -------------------------------------------------------------------------------------------------------


class Stop(Exception):
    pass


class Interrupt(BaseException):
    """As KeyboardInterrupt is: no Exception."""


@pytest.mark.parametrize("error", [Stop, Interrupt])
@pytest.mark.parametrize("transform", TRANSFORMED)
def test_exception_leaves_nothing_behind(transform, error):
    def fail(x):
        np.sum(np.tanh(x) * 2.0)
        raise error

    before = len(objects((Trace, Tracer)))
    for _ in range(3):
        with pytest.raises(error):
            TRANSFORMED[transform](fail)
    assert len(objects((Trace, Tracer))) == before
    assert_trees_close(fnad.grad(lambda x: np.sum(x * x))(np.ones(3)), 2 * np.ones(3))
    assert isinstance(np.tanh(np.ones(3)), np.ndarray)


@pytest.mark.parametrize("transform", TRANSFORMED)
def test_success_leaves_nothing_behind(transform):
    before = len(objects((Trace, Tracer)))
    TRANSFORMED[transform](lambda x: np.sum(np.tanh(x) * 2.0))
    assert len(objects((Trace, Tracer))) == before


def test_exception_in_the_backward_pass_leaves_nothing_behind():
    x = np.ones(3)
    _, pullback = fnad.vjp(lambda x: np.tanh(x) * 2.0, x)
    with pytest.raises(fnad.errors.ShapeError):
        pullback(np.ones(4))
    assert_trees_close(pullback(np.ones(3))[0], 2 * (1 - np.tanh(x) ** 2))


def test_exception_caught_inside_the_function_goes_on():
    def f(x):
        with contextlib.suppress(Exception):
            fnad.grad(lambda y: y * "a")(1.0)
        with contextlib.suppress(ValueError):
            fnad.grad(lambda y: np.sum(y * x))(np.ones(2))
        return np.sum(x * x)

    assert_trees_close(fnad.grad(f)(np.ones(3)), 2 * np.ones(3))


def test_generator_abandoned_halfway():
    """A function may stop using its tracers at any point."""

    def rows(x):
        yield from np.tanh(x)

    def f(x):
        g = rows(x)
        return next(g) * 2.0

    assert_trees_close(fnad.grad(f)(np.zeros(3)), np.array([2.0, 0.0, 0.0]))


# -- nesting ----------------------------------------------------------------------------------------------------------


def test_perturbations_are_not_confused():
    assert fnad.grad(lambda x: x * fnad.grad(lambda y: x + y)(1.0))(1.0) == 1.0
    assert fnad.grad(lambda x: x * fnad.grad(lambda y: x * y)(1.0))(3.0) == 6.0
    assert fnad.grad(lambda x: fnad.grad(lambda y: x * x * y)(2.0) * x)(3.0) == 27.0
    inner = lambda x: fnad.jvp(lambda y: x + y, (1.0,), (1.0,))[1]
    assert fnad.grad(lambda x: x * inner(x))(1.0) == 1.0
    assert fnad.jvp(lambda x: x * fnad.grad(lambda y: x + y)(1.0), (1.0,), (1.0,))[1] == 1.0
    assert fnad.jvp(lambda x: x * fnad.jvp(lambda y: x * y, (1.0,), (1.0,))[1], (3.0,), (1.0,))[1] == 6.0


def test_perturbations_are_not_confused_under_vmap():
    xs = np.array([1.0, 2.0, 3.0])
    assert_trees_close(fnad.vmap(fnad.grad(lambda x: x * fnad.grad(lambda y: x * y)(1.0)))(xs), 2 * xs)
    got = fnad.grad(lambda x: np.sum(fnad.vmap(lambda y: fnad.grad(lambda z: z * x * y)(1.0) * x)(xs)))(2.0)
    assert got == 4.0 * 6.0


def test_same_function_at_several_levels():
    f = lambda x: np.sum(x**3)
    g = fnad.grad(f)
    assert_trees_close(fnad.grad(lambda x: f(x) + np.sum(g(x) * x))(np.array([2.0])), np.array([12.0 + 36.0]))


def test_fifth_derivative():
    f = np.sin
    for _ in range(5):
        f = fnad.grad(f)
    assert f(0.3) == pytest.approx(np.cos(0.3))


# -- threads ----------------------------------------------------------------------------------------------------------


def test_threads_do_not_meet():
    def work(n):
        rng = np.random.default_rng(n)
        for _ in range(30):
            x = rng.standard_normal(4)
            inner = lambda y, n=n: np.sum(np.tanh(y) ** (n % 3 + 1))
            got = fnad.grad(lambda x: np.sum(fnad.grad(inner)(x) * x))(x)  # noqa: B023
            h = fnad.jvp(fnad.grad(inner), (x,), (x,))[1]
            want = h + fnad.grad(inner)(x)
            assert_trees_close(got, want)
            rows = fnad.vmap(fnad.grad(inner))(np.stack([x, 2 * x]))
            assert_trees_close(rows, np.stack([fnad.grad(inner)(x), fnad.grad(inner)(2 * x)]))
        return True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(interval)


def test_one_pullback_used_by_several_threads():
    x = np.linspace(0.0, 1.0, 50)
    _, pullback = fnad.vjp(lambda x: np.tanh(x) * x, x)
    want = pullback(np.ones(50))[0]
    with ThreadPoolExecutor(8) as pool:
        for got in pool.map(lambda _: pullback(np.ones(50))[0], range(40)):
            assert_trees_close(got, want, atol=0, rtol=0)


def test_tracer_used_in_another_thread_of_the_same_call():
    def f(x):
        with ThreadPoolExecutor(2) as pool:
            a, b = pool.map(lambda w: np.sum(np.tanh(x) * w), [1.0, 2.0])
        return a + b

    x = np.array([0.3, 0.4])
    assert_trees_close(fnad.grad(f)(x), 3 * (1 - np.tanh(x) ** 2))


def test_raising_in_one_thread_does_not_disturb_another():
    ready, go = threading.Event(), threading.Event()
    got = []

    def slow(x):
        ready.set()
        go.wait(10)
        return np.sum(x * x)

    thread = threading.Thread(target=lambda: got.append(fnad.grad(slow)(np.ones(2))))
    thread.start()
    ready.wait(10)
    with pytest.raises(Stop):
        fnad.grad(lambda x: (_ for _ in ()).throw(Stop))(np.ones(2))
    go.set()
    thread.join()
    assert_trees_close(got[0], 2 * np.ones(2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_computes():
    code = """
import os, numpy as np, fnad
f = lambda x: fnad.nn.functional.cross_entropy(np.tanh(x), np.array([1, 0])) + np.sum(x @ x.T)
x = np.ones((2, 3))
want = fnad.grad(f)(x)
pid = os.fork()
if pid == 0:
    os._exit(0 if np.array_equal(fnad.grad(f)(x), want) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)


# -- long chains ------------------------------------------------------------------------------------------------------

LENGTH = 100_000


def chain(x, length=LENGTH):
    for _ in range(length // 2):
        x = x * 1.000001
        x = x + 1e-7
    return x


def peak_of(call):
    call()
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_chain_of_100000_operations_in_reverse():
    value, gradient = fnad.value_and_grad(chain)(0.5)
    assert gradient == pytest.approx(1.000001 ** (LENGTH // 2), rel=1e-9)
    assert value == pytest.approx(chain(0.5))


def test_chain_of_100000_operations_forward():
    _, tangent = fnad.jvp(chain, (0.5,), (1.0,))
    assert tangent == pytest.approx(1.000001 ** (LENGTH // 2), rel=1e-9)


def test_memory_of_a_chain():
    """Linear in its length in reverse mode, at about a kilobyte for each operation; constant in forward mode."""
    short, long = (peak_of(lambda n=n: fnad.grad(chain)(0.5, length=n)) for n in (2000, 8000))
    assert long < 6 * short
    assert long < 1200 * 8000
    assert peak_of(lambda: fnad.jvp(lambda x: chain(x, 8000), (0.5,), (1.0,))) < 1e5


def test_chain_of_array_operations_recorded_and_evaluated():
    def f(x):
        for _ in range(10_000):
            x = np.sin(x)
        return np.sum(x)

    x = np.array([0.5, 1.0])
    graph = fnad.make_graph(fnad.grad(f))(x)
    assert_trees_close(fnad.core.graph.evaluate(graph, [x])[0], fnad.grad(f)(x))
    assert len(graph.equations) >= 20_000


def test_wide_fan_out_and_fan_in():
    def f(x):
        parts = [x * float(i) for i in range(3000)]
        total = parts[0]
        for p in parts[1:]:
            total = total + p
        return np.sum(total)

    assert_trees_close(fnad.grad(f)(np.ones(2)), np.full(2, 3000 * 2999 / 2))


# -- leaks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transform", "name"), [("grad", "grad"), ("jvp", "jvp"), ("vmap", "vmap"), ("make_graph", "recording"), ("vjp", "vjp")]
)
def test_leaked_tracer_names_transform_function_and_line(transform, name):
    kept = []

    def loss(x):
        kept.append(np.tanh(x))
        return np.sum(x)

    TRANSFORMED[transform](loss)
    with pytest.raises(LeakedTracerError) as caught:
        kept[0] * 2.0  # the line that is at fault
    message = str(caught.value)
    assert f"after the {name}" in message
    assert "loss" in message
    assert "the line that is at fault" in message
    assert "return the value from the function" in message
    assert ("stop_gradient" in message) == (name not in ("vmap", "recording"))


def test_leaked_tracer_in_a_later_transform():
    kept = []
    fnad.grad(lambda x: (kept.append(x), np.sum(x))[1])(np.ones(2))
    for use in (fnad.grad(lambda y: np.sum(y * kept[0])), fnad.vmap(lambda y: y * kept[0])):
        with pytest.raises(LeakedTracerError):
            use(np.ones((2, 2)) if use.__class__ is None else np.ones(2))


def test_what_is_known_of_a_leaked_tracer_can_still_be_printed():
    kept = []
    fnad.grad(lambda x: (kept.append(x), np.sum(x))[1])(np.ones(2))
    assert kept[0].shape == (2,)
    assert "grad tracer float64[2]" in repr(kept[0])


# -- what is kept alive -----------------------------------------------------------------------------------------------


def test_pullback_keeps_only_what_it_reads():
    """exp's slope is a function of its output: the input, itself computed, must be free after the forward pass."""
    seen = []

    def f(x):
        h = x + 1.0
        seen.append(weakref.ref(h.value))
        return np.exp(h)

    _, pullback = fnad.vjp(f, np.ones(1000))
    gc.collect()
    assert seen[0]() is None
    assert pullback(np.ones(1000))[0].shape == (1000,)


@pytest.mark.parametrize(
    ("operation", "kept"),
    [
        (lambda h: np.exp(h), False),
        (lambda h: h + 1.0, False),
        (lambda h: -h, False),
        (lambda h: h * 2.0, False),
        (lambda h: np.sum(h), False),
        (lambda h: np.reshape(h, (10, 100)), False),
        (lambda h: h[::2] * 1.0, False),
        (lambda h: np.concatenate([h, h]), False),
        (lambda h: np.sin(h), True),
        (lambda h: h * h, True),
    ],
)
def test_operands_kept_by_an_operation(operation, kept):
    seen = []

    def f(x):
        h = x + 1.0
        seen.append(weakref.ref(h.value))
        return operation(h) * 1.0

    _, pullback = fnad.vjp(f, np.ones(1000))
    gc.collect()
    assert (seen[0]() is not None) == kept
    del pullback
    gc.collect()
    assert seen[0]() is None


def test_memory_is_freed_during_the_backward_pass():
    """The peak of a gradient is that of the forward pass and a little, not twice that."""
    n, depth = 100_000, 30

    def f(x):
        for _ in range(depth):
            x = np.sin(x)
        return np.sum(x)

    x = np.ones(n)
    assert peak_of(lambda: fnad.grad(f)(x)) < (depth + 8) * x.nbytes


def test_forward_mode_keeps_no_history():
    n = 100_000

    def f(x):
        for _ in range(30):
            x = np.sin(x)
        return x

    x = np.ones(n)
    assert peak_of(lambda: fnad.jvp(f, (x,), (x,))) < 10 * x.nbytes


def test_cotangents_of_many_slices_do_not_cost_an_array_each():
    """A loop over the entries of an array is linear in their number, not quadratic."""
    n = 2000

    def f(x):
        total = 0.0
        for i in range(n):
            total = total + x[i] * float(i)
        return total

    assert_trees_close(fnad.grad(f)(np.ones(n)), np.arange(float(n)))
    assert peak_of(lambda: fnad.grad(f)(np.ones(n))) < n * n * 8 / 4


def test_no_reference_cycles():
    """Memory is given back by counting references; the collector is not needed."""
    before = {id(o) for o in objects((Trace, Tracer))}
    gc.disable()
    try:
        for call in TRANSFORMED.values():
            call(lambda x: np.sum(np.tanh(x) * x))
        assert not [o for o in gc.get_objects() if isinstance(o, Trace | Tracer) and id(o) not in before]
    finally:
        gc.enable()


# -- pickling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transformed", "args"),
    [
        (fnad.grad(np.linalg.norm), (np.array([3.0, 4.0]),)),
        (fnad.grad(np.sum), (np.array([3.0, 4.0]),)),
        (fnad.value_and_grad(np.sum), (np.array([3.0, 4.0]),)),
        (fnad.vmap(np.sum), (np.ones((2, 3)),)),
        (fnad.vmap(fnad.grad(np.sum), in_axes=1), (np.ones((2, 3)),)),
        (fnad.jacrev(np.tanh), (np.ones(2),)),
        (fnad.jacfwd(np.tanh), (np.ones(2),)),
        (fnad.hessian(np.sum), (np.ones(2),)),
    ],
    ids=lambda x: repr(x)[:40] if not isinstance(x, tuple) else "",
)
def test_transformed_importable_functions_pickle(transformed, args):
    again = pickle.loads(pickle.dumps(transformed))
    assert_trees_close(again(*args), transformed(*args), atol=0, rtol=0)


def test_errors_pickle():
    with pytest.raises(fnad.errors.ShapeError) as caught:
        fnad.grad(np.tanh)(np.ones(3))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert type(again) is fnad.errors.ShapeError
