"""Loops that are reversed piece by piece have the gradients that they have without, and need less memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import fnad
from fnad.errors import ArgumentError
from fnad.loops.reverse_printer import adjoint
from tests.loops.derivatives import Derivatives, balanced, run
from tests.loops.programs import loop_programs


def swapped(u0, a, n):
    u = u0.copy()
    v = np.zeros_like(u)
    s = 1.0
    for _ in range(n):
        for i in range(1, u.size):
            v[i] = np.sin(u[i] * a + u[i - 1]) + s * 0.1
        s = s * np.cos(v[1]) + u[0]
        u, v = v, u
        u[0] *= a
    w = 0.0
    for k in range(n - 1, -1, -1):
        w = w * a + u[k % u.size] * s
    return w, u


def fresh(u0, a, n):
    u = u0.copy()
    for _ in range(n):
        w = np.sin(u) * a
        w[0] = u[-1] * u[0]
        u = w
    return u


def relaxed(u0, a, n):
    u = u0.copy()
    for _ in range(n):
        for i in range(u.size):
            u[i] = u[i] * a + np.tanh(u[i - 1])
    return np.sum(u * u)


def with_snapshots(d, snapshots):
    text, names = adjoint(d.fn, d.wanted, True, snapshots)
    d.text = balanced(text)
    d.adjoint = run(d.text, names, f"{d.fn.name}_adjoint")
    return d


@pytest.mark.parametrize("snapshots", [0, 1, 3])
@pytest.mark.parametrize("trips", [0, 1, 2, 13])
@pytest.mark.parametrize("function", [swapped, fresh, relaxed])
def test_the_gradients_are_those_without_checkpoints(function, trips, snapshots):
    args = (np.random.default_rng(0).uniform(0.2, 0.8, 5), 0.7, trips)
    with_snapshots(Derivatives(function, args), snapshots).check(args)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(loop_programs(smooth=True))
def test_random_programs(program):
    function = program.function()
    with np.errstate(all="ignore"):
        outs = [np.asarray(o) for o in function(*program.copies())]
        assume(all(np.all(np.isfinite(o)) and np.all(abs(o) < 50) for o in outs))
        for snapshots in (0, 2):
            with_snapshots(Derivatives(function, program.args), snapshots).check(program.args, numeric=False)


def peak(f, *args):
    tracemalloc.start()
    f(*args)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_memory_grows_with_the_root_of_the_number_of_steps():
    args = (np.linspace(0.1, 0.9, 50), 0.5)
    d = Derivatives(relaxed, (*args, 1))
    whole = peak(d.adjoint, *args, 400, 1.0)
    pieces = peak(with_snapshots(d, 0).adjoint, *args, 400, 1.0)
    assert pieces < whole / 4


def test_through_the_decorator():
    @fnad.njit(checkpoint=4)
    def compiled(u0, a, n):
        u = u0.copy()
        for _ in range(n):
            for i in range(u.size):
                u[i] = u[i] * a + np.tanh(u[i - 1])
        return np.sum(u * u)

    u0 = np.linspace(0.1, 0.9, 5)
    want = Derivatives(relaxed, (u0, 0.5, 9)).adjoint(u0, 0.5, 9, 1.0)[1]
    np.testing.assert_allclose(fnad.grad(compiled)(u0, 0.5, 9), want, rtol=1e-12)


@pytest.mark.parametrize("option", [0, -1, 2.5, "binomial"])
def test_a_bad_option_is_an_error(option):
    with pytest.raises(ArgumentError, match="checkpoint"):
        fnad.njit(checkpoint=option)(relaxed)
