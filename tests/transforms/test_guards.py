"""Ways to lose a derivative without noticing: closures across levels, buffers, in-place rules, values of ended transforms."""

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, ClosureError, InPlaceError, LeakedTracerError


def by_vjp(f):
    g = fnad.custom_vjp(f)
    g.defvjp(lambda *a: (f(*a), a), lambda a, g: fnad.vjp(f, *a)[1](g))
    return g


def by_jvp(f):
    g = fnad.custom_jvp(f)
    g.defjvp(lambda p, t: fnad.jvp(f, p, t))
    return g


WRAPS = pytest.mark.parametrize("wrap", [fnad.checkpoint, by_vjp, by_jvp], ids=["checkpoint", "custom_vjp", "custom_jvp"])
OUTER = {
    "grad": lambda f: fnad.grad(f)(2.0),
    "jvp": lambda f: fnad.jvp(f, (2.0,), (1.0,)),
    "vmap": lambda f: fnad.vmap(f)(np.ones(2)),
}
INNER = {
    "grad": lambda f: fnad.grad(f)(3.0),
    "jvp": lambda f: fnad.jvp(f, (3.0,), (1.0,))[1],
    "vmap": lambda f: np.sum(fnad.vmap(f)(np.ones(2))),
}


@WRAPS
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_closing_over_an_inner_value_is_an_error(wrap, outer, inner):
    with pytest.raises(ClosureError, match="argument"):
        OUTER[outer](lambda a: INNER[inner](lambda b: wrap(lambda q: q * b)(a)))


@WRAPS
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_closing_over_an_outer_value_is_right(wrap, outer, inner):
    got = OUTER[outer](lambda a: INNER[inner](lambda b: wrap(lambda q: q * a)(b)))
    want = OUTER[outer](lambda a: INNER[inner](lambda b: b * a))
    np.testing.assert_allclose(got, want)


def test_rules_that_close_over_traced_values():
    def outer(x):
        f = fnad.custom_vjp(lambda y: y * 2)
        f.defvjp(lambda y: (y * 2, None), lambda _, g: (g * x,))
        return f(1.0 * x)

    with pytest.raises(ClosureError):
        fnad.grad(outer)(2.0)

    def outer_jvp(x):
        f = fnad.custom_jvp(lambda y: y * 2)
        f.defjvp(lambda p, t: (p[0] * 2, t[0] * x))
        return f(1.0 * x)

    with pytest.raises(ClosureError):
        fnad.jvp(outer_jvp, (2.0,), (1.0,))


def test_complex_python_cotangents():
    z, g = 1 + 2j, 0.3 - 0.7j
    f = lambda z: z * np.abs(z)
    np.testing.assert_allclose(fnad.vjp(f, z)[1](g)[0], fnad.vjp(f, np.complex128(z))[1](np.complex128(g))[0])
    (c,) = fnad.vjp(lambda x: (x * x) * (1 + 1j) * x, np.float64(2.0))[1](1 + 1j)
    assert c.dtype == np.float64
    assert c == 0.0


def test_rule_that_returns_a_python_number():
    f = fnad.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, g: (2.0,))
    assert fnad.grad(f)(np.float32(1)).dtype == np.float32


@pytest.mark.parametrize("n", [3, 20_000])
def test_linearize_is_of_the_values_at_the_call(n):
    c = np.ones(n)
    _, linear = fnad.linearize(lambda x: x * c, np.ones(n))
    c[:] = 7
    if n == 3:
        np.testing.assert_array_equal(linear(np.ones(n)), np.ones(n))
    else:
        with pytest.raises(InPlaceError):
            linear(np.ones(n))

    def reuses(x):
        m, total = np.zeros(3), 0.0
        for i in range(3):
            m[:] = 0
            m[i] = i + 1.0
            total = total + np.sum(x * m)
        return total

    assert fnad.linearize(reuses, np.ones(3))[1](np.ones(3)) == 6.0


@pytest.mark.parametrize("n", [3, 20_000])
def test_arguments_changed_under_another_name(n):
    x = np.ones(n)

    def f(t):
        y = np.sum(t**2)
        x[:] = 100
        return y

    if n == 3:
        np.testing.assert_array_equal(fnad.grad(f)(x), 2 * np.ones(n))
    else:
        with pytest.raises(InPlaceError):
            fnad.grad(f)(x)


def test_large_array_changed_and_restored():
    big = np.ones(20_000)

    def f(t):
        a = np.sum(t * big)
        big[0] += 1
        b = np.sum(t * big)
        big[0] -= 1
        return a + 3 * b

    with pytest.raises(InPlaceError):
        fnad.grad(f)(np.ones(20_000))


def test_sign_of_zero_is_a_change():
    buffer = np.zeros(1000)

    def f(t):
        a = np.sum(np.copysign(t, buffer))
        buffer[:] = -0.0
        return a + np.sum(np.copysign(t, buffer))

    np.testing.assert_array_equal(fnad.grad(f)(np.ones(1000)), np.zeros(1000))


def test_rules_that_write_into_cotangents_tangents_or_residuals():
    c = fnad.custom_vjp(lambda x: x * 1.0)

    def bwd(_, g):
        g *= 10
        return (g,)

    c.defvjp(lambda x: (x * 1.0, None), bwd)
    with pytest.raises(InPlaceError):
        fnad.grad(lambda x: np.sum((c(x) + x) * np.array([1.0, 2.0, 3.0])))(np.ones(3))

    d = fnad.custom_jvp(lambda x: x * 1.0)

    def rule(p, t):
        t[0][:] *= 10
        return p[0] * 1.0, t[0]

    d.defjvp(rule)
    with pytest.raises(InPlaceError):
        fnad.jvp(lambda x: d(x) + x, (np.ones(3),), (np.ones(3),))

    buffer = np.zeros(3)
    e = fnad.custom_vjp(lambda x, k: x * k)

    def fwd(x, k):
        buffer[:] = k
        return x * k, buffer

    e.defvjp(fwd, lambda r, g: (g * r, None))
    np.testing.assert_array_equal(fnad.grad(lambda x: np.sum(e(x, 1.0) + e(x, 2.0)))(np.ones(3)), 3 * np.ones(3))


def test_checkpointed_function_that_writes_into_an_argument():
    def f(x, b):
        b += 1
        return np.sum(x * b)

    with pytest.raises(InPlaceError):
        fnad.grad(lambda x: fnad.checkpoint(f)(x, np.zeros(3)))(np.ones(3))


@pytest.mark.parametrize(
    "use",
    [
        lambda d: fnad.grad(lambda y: d)(2.0),
        lambda d: fnad.jacrev(lambda y: d)(2.0),
        lambda d: fnad.vjp(lambda y: d, 2.0),
        lambda d: fnad.jvp(lambda y: d, (2.0,), (1.0,)),
        lambda d: fnad.linearize(lambda y: d, 2.0),
        lambda d: fnad.grad(lambda y: (y, d), has_aux=True)(2.0),
        lambda d: fnad.vmap(lambda y: d, out_axes=None)(np.ones(2)),
        lambda d: fnad.make_graph(lambda y: d)(2.0),
    ],
    ids=["grad", "jacrev", "vjp", "jvp", "linearize", "aux", "vmap", "make_graph"],
)
def test_values_of_ended_transforms_are_not_handed_out(use):
    kept = []
    fnad.grad(lambda x: kept.append(x * 1.0) or x)(1.0)
    with pytest.raises(LeakedTracerError, match="grad"):
        use(kept[0])


@pytest.mark.parametrize("rule", [np.abs, lambda t: np.maximum(t, 0.0), lambda t: t * np.abs(t), lambda t: t + 1.0])
def test_tangents_that_are_not_linear(rule):
    f = fnad.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda p, t: (p[0] * 1.0, rule(t[0])))
    with pytest.raises(ArgumentError, match="linear"):
        fnad.grad(lambda x: np.sum(f(x)))(np.ones(3))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_linear_rules_of_every_precision(dtype):
    f = fnad.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda p, t: (p[0] * 1.0, t[0] * 0.1 / (1.0 + np.exp(-p[0]))))
    assert fnad.grad(lambda x: np.sum(f(x)))(np.ones(30, dtype)).dtype == dtype
