"""`fnad.njit`: plainly it is numba's function, under transforms its arguments are pytrees that it never changes."""

from __future__ import annotations

import copy
import math
import os
import pickle
import re
import subprocess
import sys
import textwrap
from typing import NamedTuple

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, ClosureError, DTypeError, InPlaceError, UnsupportedError
from fnad.loops import generated

rng = np.random.default_rng(0)


@pytest.fixture
def as_python(monkeypatch):
    """Generated code runs as it is, which is what numba would compile: most of these tests would wait for numba only."""
    monkeypatch.setattr(generated, "load", lambda text, name, namespace, *_: generated.plain(text, name, namespace))
    for f in (energy, smooth, stretch):
        monkeypatch.setattr(f, "_programs", {})


slow_to_compile = pytest.mark.usefixtures("as_python")


class Spring(NamedTuple):
    stiffness: float
    rest: np.ndarray


class State(NamedTuple):
    x: np.ndarray
    energy: float


@fnad.njit
def energy(pos, mass):
    e = 0.0
    for i in range(pos.shape[0]):
        for j in range(i):
            d2 = 1e-2
            for k in range(pos.shape[1]):
                d2 += (pos[i, k] - pos[j, k]) ** 2
            e -= mass[i] * mass[j] / math.sqrt(d2)
    return e


@fnad.njit
def smooth(u, w, steps=2):
    for _ in range(steps):
        for i in range(1, u.size):
            u[i] = w * u[i] + (1.0 - w) * u[i - 1] ** 2
    return u


@fnad.njit
def stretch(spring, x, scale):
    y = np.empty_like(x)
    e = 0.0
    for i in range(x.size):
        y[i] = spring.stiffness * (x[i] - spring.rest[i]) * scale[0]
        e += y[i] * x[i] * scale[1]
    return State(y, e)


@fnad.njit
def twice(x):
    return 2.0 * x


POS, MASS = rng.normal(size=(5, 2)), 0.5 + rng.random(5)
U = rng.random(6)


def energy_by_numpy(pos, mass):
    i, j = np.tril_indices(len(mass), -1)
    return -np.sum(mass[i] * mass[j] / np.sqrt(1e-2 + np.sum((pos[i] - pos[j]) ** 2, axis=1)))


def smooth_by_numpy(u, w):
    for _ in range(2):
        done = [u[0]]
        for i in range(1, 6):
            done.append(w * u[i] + (1.0 - w) * done[-1] ** 2)
        u = np.stack(done)
    return u


# -- plainly -------------------------------------------------------------------------------------------------------------


def test_a_plain_call_is_numbas():
    u = U.copy()
    out = smooth(u, 0.3)
    assert np.shares_memory(out, u)
    assert np.allclose(out, smooth_by_numpy(U, 0.3))
    assert smooth.signatures == smooth.dispatcher.signatures
    assert smooth.py_func.__name__ == smooth.__name__ == "smooth"
    assert smooth(u.copy(), w=0.3, steps=0)[1] == u[1]


def test_numba_functions_call_it_and_take_it():
    import numba

    @numba.njit
    def outer(x):
        return twice(x) + 1.0

    @numba.njit
    def apply(f, x):
        return f(x)

    assert outer(3.0) == 7.0
    assert apply(twice, 3.0) == 6.0


def test_as_method_and_by_name():
    class Model:
        total = fnad.njit(lambda self, x: x * 3.0)
        plain = staticmethod(twice)

    assert Model().plain(2.0) == 4.0
    assert Model().total.__self__ is not None
    assert pickle.loads(pickle.dumps(energy)) is energy
    assert copy.deepcopy(energy) is energy


def test_signatures_and_options():
    @fnad.njit("float64(float64)", fastmath=True, nogil=True, error_model="numpy")
    def third(x):
        return x / 3.0

    assert third(1) == 1 / 3
    assert len(third.signatures) == 1
    assert np.isclose(fnad.grad(third)(1.0), 1 / 3)
    with pytest.raises(ArgumentError, match="unknown option"):
        fnad.njit(fast=True)


# -- gradients -----------------------------------------------------------------------------------------------------------


@slow_to_compile
@pytest.mark.parametrize("of", [energy, smooth])
def test_against_array_code(of):
    other, args = (energy_by_numpy, (POS, MASS)) if of is energy else (smooth_by_numpy, (U, 0.3))
    kept = copy.deepcopy(args)

    def loss(f):
        return lambda a, b: np.sum(np.tanh(f(a, b)) ** 2)

    mine, theirs = (fnad.value_and_grad(loss(f), (0, 1))(*args) for f in (of, other))
    assert np.isclose(mine[0], theirs[0])
    for a, b, x in zip(mine[1], theirs[1], args, strict=True):
        assert np.allclose(a, b)
        assert np.shape(a) == np.shape(x)
        assert np.asarray(a).dtype == np.asarray(x).dtype
    fnad.testing.check_grads(lambda a, b: loss(of)(a.copy(), b), args)
    assert all(np.array_equal(a, b) for a, b in zip(args, kept, strict=True))


@slow_to_compile
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_sizes_and_precisions(n, dtype):
    pos, mass = rng.normal(size=(n, 2)).astype(dtype), np.ones(n, dtype)
    g = fnad.grad(energy, (0, 1))(pos, mass)
    want = fnad.grad(energy_by_numpy, (0, 1))(pos, mass)
    for a, b, x in zip(g, want, (pos, mass), strict=True):
        assert a.shape == x.shape
        assert a.dtype == dtype
        assert np.allclose(a, b, atol=1e-5)


@slow_to_compile
def test_layouts():
    wide = np.asfortranarray(np.repeat(POS, 2, axis=0))[::2]
    frozen = MASS.copy()
    frozen.flags.writeable = False
    assert np.allclose(fnad.grad(energy, (0, 1))(wide, frozen)[0], fnad.grad(energy)(POS, MASS))


@slow_to_compile
def test_pytrees_in_and_out():
    spring, x, scale = Spring(2.0, np.zeros(3)), np.arange(3.0), (0.5, np.float64(3.0))

    def loss(spring, x, scale):
        out = stretch(spring, x, scale)
        assert isinstance(out, State)
        return np.sum(out.x) + out.energy

    g = fnad.grad(loss, (0, 1, 2))(spring, x, scale)
    assert isinstance(g[0], Spring)
    # y = k (x - r) s0, and the loss is sum(y) + sum(y x) s1
    k, s0, s1 = 2.0, 0.5, 3.0
    assert np.allclose(g[0].stiffness, np.sum(x * s0 * (1 + x * s1)))
    assert np.allclose(g[0].rest, -k * s0 * (1 + x * s1))
    assert np.allclose(g[1], k * s0 * (1 + x * s1) + k * x * s0 * s1)
    assert np.allclose(g[2], (np.sum(k * x * (1 + x * s1)), np.sum(k * x * s0 * x)))
    fnad.testing.check_grads(loss, (spring, x, scale))


@slow_to_compile
def test_only_what_is_asked_for_is_computed():
    fnad.grad(energy, 1)(POS, MASS)
    text = energy.adjoint_source(POS, MASS, argnums=1)
    assert re.search(r"mass(_\d+)?_b", text)
    assert not re.search(r"pos(_\d+)?_b", text)


@slow_to_compile
def test_integers_have_no_derivative():
    @fnad.njit
    def count(x, n):
        return n * x, n + 1, x > 0.0

    out, back = fnad.vjp(lambda x: count(x, 3), 2.0)
    assert out == (6.0, 4, True)
    assert isinstance(out[1], np.int64)
    assert isinstance(out[2], np.bool_)
    assert back((1.0, 0, False)) == (3.0,)
    assert fnad.jvp(lambda x: count(x, 3)[0], (2.0,), (1.0,)) == (6.0, 3.0)


@slow_to_compile
def test_defaults_and_keywords():
    g = fnad.grad(lambda u: np.sum(smooth(u, w=0.3)))(U)
    assert np.allclose(g, fnad.grad(lambda u: np.sum(smooth_by_numpy(u, 0.3)))(U))
    assert np.allclose(fnad.grad(lambda u: np.sum(smooth(u, 0.3, steps=0)))(U), 1.0)


@slow_to_compile
def test_higher_order_and_nesting():
    hessian = fnad.hessian(energy, 0)(POS, MASS)
    assert np.allclose(hessian, fnad.hessian(energy_by_numpy, 0)(POS, MASS))
    third = fnad.jvp(fnad.hessian(lambda m: energy(POS, m) ** 2), (MASS,), (np.ones(5),))[1]
    assert np.allclose(third, fnad.jvp(fnad.hessian(lambda m: energy_by_numpy(POS, m) ** 2), (MASS,), (np.ones(5),))[1])


@slow_to_compile
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_vmap(axes):
    stacked = [np.stack([x, 1.1 * x, 0.9 * x]) for x in (POS, MASS)]
    args = [s if a == 0 else s[0] for s, a in zip(stacked, axes, strict=True)]
    one = [[s[k] if a == 0 else s[0] for s, a in zip(stacked, axes, strict=True)] for k in range(3)]
    both = fnad.vmap(fnad.value_and_grad(energy, (0, 1)), axes)(*args)
    want = [fnad.value_and_grad(energy, (0, 1))(*o) for o in one]
    assert np.allclose(both[0], [w[0] for w in want])
    for k in range(2):
        assert np.allclose(both[1][k], np.stack([w[1][k] for w in want]))
    fnad.testing.check_grads(lambda p, m: np.sum(np.sin(fnad.vmap(energy, axes)(p, m))), args)
    twice_mapped = fnad.vmap(lambda s: fnad.vmap(lambda p, m: energy(s * p, m), axes)(*args))(np.array([1.0, 2.0]))
    assert twice_mapped.shape == (2, 3)
    assert np.allclose(twice_mapped[0], both[0])


@slow_to_compile
def test_vmap_over_nothing_and_over_results_of_several_shapes():
    assert fnad.vmap(energy)(np.empty((0, 5, 2)), np.empty((0, 5))).shape == (0,)

    @fnad.njit
    def first(x, n):
        return x[:n] * 2.0

    with pytest.raises(ValueError, match="same shape for all examples"):
        fnad.vmap(first, (None, 0))(U, np.array([1, 2]))


@slow_to_compile
def test_with_other_transforms():
    def step(u, w):
        u = smooth(u, w)
        return u, np.sum(u)

    ws = np.array([0.2, 0.4, 0.1])
    loss = lambda u, ws: np.sum(fnad.scan(step, u, ws)[1])
    fnad.testing.check_grads(loss, (U, ws))
    assert np.allclose(fnad.grad(fnad.checkpoint(energy))(POS, MASS), fnad.grad(energy)(POS, MASS))

    @fnad.custom_vjp
    def own(u):
        return energy(u, MASS)

    own.defvjp(lambda u: (energy(u, MASS), u), lambda u, g: (g * u,))
    assert np.allclose(fnad.grad(own)(POS), POS)


@slow_to_compile
def test_registered_derivatives():
    import numba

    @numba.njit
    def opaque(x, n):
        return x**n

    @numba.njit
    def slope(x, n):
        return n * x ** (n - 1)

    @numba.njit
    def curvature(x, n):
        return n * (n - 1) * x ** (n - 2)

    fnad.register_derivative(opaque, slope, None)

    @fnad.njit
    def f(x):
        s = 0.0
        for i in range(x.size):
            s += opaque(x[i], i)
        return s

    x = np.array([2.0, 3.0, 4.0])
    assert np.allclose(fnad.grad(f)(x), [0.0, 1.0, 8.0])
    with pytest.raises(UnsupportedError, match="not known"):
        fnad.hessian(f)(x)
    fnad.register_derivative(slope, curvature, None)
    assert np.allclose(np.diag(fnad.hessian(f)(x)), [0.0, 0.0, 2.0])
    with pytest.raises(ArgumentError, match="one partial derivative per argument"):
        fnad.register_derivative(opaque, slope)
    with pytest.raises(ArgumentError, match="that numba compiled"):
        fnad.register_derivative(math.sin, math.cos)


# -- mistakes ------------------------------------------------------------------------------------------------------------


@slow_to_compile
def test_overlap():
    @fnad.njit
    def add_into(target, x):
        for i in range(x.size):
            target[i] += x[i]
        return target

    with pytest.raises(InPlaceError, match="overlap"):
        fnad.grad(lambda u: np.sum(add_into(u, u)))(U)
    with pytest.raises(InPlaceError, match="overlap"):
        fnad.grad(lambda u: np.sum(add_into(u[1:], u[:-1])))(U)
    assert np.allclose(fnad.grad(lambda u: np.sum(add_into(u[1:] * 1.0, u[:-1])))(U), [1, 2, 2, 2, 2, 1])


@slow_to_compile
def test_closures():
    def loss(x):
        @fnad.njit
        def scaled(y):
            return x * y

        return scaled(2.0)

    with pytest.raises(ClosureError, match="variable: x"):
        fnad.grad(loss)(1.0)
    factor = np.array([2.0, 3.0])

    @fnad.njit
    def weighted(x):
        return factor[0] * x[0] + factor[1] * x[1]

    assert np.allclose(fnad.grad(weighted)(np.ones(2)), factor)


def test_what_cannot_be_an_argument():
    with pytest.raises(DTypeError, match=r"argument mass: builtins\.list"):
        fnad.grad(lambda p: energy(p, [1.0] * 5))(POS)
    with pytest.raises(TypeError):
        fnad.grad(energy)(POS)
    with pytest.raises(ArgumentError, match="types of the arguments"):
        fnad.njit(lambda x: x).adjoint_source()


def test_errors_of_the_users():
    @fnad.njit
    def checked(x):
        s = 0.0
        for i in range(x.size):
            if x[i] < 0.0:
                raise ValueError("negative")
            s += math.sqrt(x[i])
        return s

    bad = np.array([1.0, -1.0])
    batch = np.stack([np.ones(2), bad])
    for f in (checked, fnad.grad(checked), fnad.jit(checked), fnad.jit(fnad.grad(checked)), lambda x: fnad.vmap(fnad.grad(checked))(batch)):
        with pytest.raises(ValueError, match="negative"):
            f(bad)
    with pytest.raises(ValueError, match="negative"):
        fnad.jvp(fnad.grad(checked), (bad,), (bad,))


# -- under jit -----------------------------------------------------------------------------------------------------------


def test_jit_calls_it_natively():
    f = lambda p, m: np.tanh(energy(p, m)) * 2.0
    compiled = fnad.jit(fnad.value_and_grad(f, (0, 1)))
    mine, eager = compiled(POS, MASS), fnad.value_and_grad(f, (0, 1))(POS, MASS)
    assert np.isclose(mine[0], eager[0])
    assert all(np.allclose(a, b) for a, b in zip(mine[1], eager[1], strict=True))
    assert "nothing" in str(fnad.explain(compiled)(POS, MASS)).split("== on the host")[1].split("==")[0]


def test_jit_inside_of_loops_branches_and_batches():
    def step(u, w):
        u = fnad.cond(w > 0.15, lambda u, w: smooth(u, w), lambda u, w: u * w, u, w)
        return u, np.sum(u)

    ws = np.array([0.2, 0.1, 0.4])
    loss = lambda u, ws: np.sum(fnad.scan(step, u, ws)[1])
    mine, eager = fnad.jit(fnad.grad(loss, (0, 1)))(U, ws), fnad.grad(loss, (0, 1))(U, ws)
    assert all(np.allclose(a, b) for a, b in zip(mine, eager, strict=True))
    mapped = fnad.vmap(fnad.grad(lambda p, m: energy(p, m) * 2.0, (0, 1)), (0, None))
    batch = np.stack([POS, POS**2])
    assert all(np.allclose(a, b) for a, b in zip(fnad.jit(mapped)(batch, MASS), mapped(batch, MASS), strict=True))


def test_jit_and_sizes():
    @fnad.njit
    def padded(x, n):
        out = np.zeros((n, x.size))
        for i in range(n):
            out[i, :] = x * i
        return out

    assert np.allclose(fnad.jit(lambda x: padded(x, 3) * 2.0)(U)[2], 4.0 * U)
    assert fnad.jit(padded, static_argnums=1)(U, 3).shape == (3, 6)
    with pytest.raises(fnad.errors.ConcretizationError, match="depends on values"):
        fnad.jit(padded)(U, 3)
    assert fnad.eval_shape(lambda x: padded(x, 4), U).shape == (4, 6)


def test_jit_from_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    g = fnad.jit(fnad.grad(energy))
    want = [fnad.grad(energy)(s * POS, MASS) for s in range(1, 5)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            assert all(np.allclose(a, b) for a, b in zip(pool.map(lambda s: g(s * POS, MASS), range(1, 5)), want, strict=True))


# -- what is generated -----------------------------------------------------------------------------------------------------


@slow_to_compile
def test_generated_source_runs_as_python():
    for text in (energy.adjoint_source(POS, MASS), energy.tangent_source(POS, MASS, argnums=0)):
        compile(text, "generated", "exec")
        assert "# " in text
        assert "math.sqrt" in text or "np.sqrt" in text
    fnad.grad(energy)(POS, MASS)
    assert energy.adjoint_source() == energy.adjoint_source(POS, MASS)


CACHED = """
    import sys
    import numpy as np, fnad

    @fnad.njit(cache=True)
    def total(x, w):
        s = 0.0
        for i in range(x.size):
            s += w * x[i] ** 3
        return s

    x = np.arange(3.0)
    g = fnad.grad(total, (0, 1))(x, 2.0)
    j = fnad.jit(fnad.grad(total))(x, 2.0)
    assert np.allclose(g[0], 6 * x**2) and np.allclose(j, g[0]) and np.allclose(g[1], 9.0)
    program, = total._programs.values()
    functions = [f for f in program._made.values() if hasattr(f, "stats")]
    print(sum(sum(f.stats.cache_hits.values()) for f in functions), sum(sum(f.stats.cache_misses.values()) for f in functions))
"""


def test_derivatives_are_cached_on_disk(tmp_path):
    file = tmp_path / "cached.py"
    file.write_text(textwrap.dedent(CACHED))
    environment = os.environ | {"FNAD_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": str(tmp_path / "numba")}

    def run():
        out = subprocess.run([sys.executable, str(file)], env=environment, check=True, capture_output=True, text=True).stdout
        return [int(n) for n in out.split()]

    first, second = run(), run()
    assert first[0] == 0
    assert first[1] > 0
    assert second[0] > 0
    assert second[1] == 0
    assert list((tmp_path / "cache").glob("*/loops/total_adjoint_*.py"))
