"""Derivatives of loop functions that other loops call: `fnad.njit(fnad.grad(f))`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentError, ShapeError, UnsupportedError
from fnad.loops import generated


class Point(NamedTuple):
    x: float
    y: float


@fnad.njit
def potential(point, charge):
    return charge[0] / math.sqrt((point.x - charge[1]) ** 2 + point.y**2)


@fnad.njit
def energy(x, k):
    e = 0.0
    for i in range(x.size):
        e += k[i] * x[i] ** 3 - x[i] * x[i - 1]
    return e


@fnad.njit
def scaled_root(x, a):
    return a * math.sqrt(x)


TRANSFORMS = {"reverse": fnad.grad, "forward": fnad.jacfwd}
FORCES = {name: fnad.njit(transform(potential)) for name, transform in TRANSFORMS.items()}
SLOPES = {name: fnad.njit(transform(energy)) for name, transform in TRANSFORMS.items()}


@pytest.fixture
def as_python(monkeypatch):
    """Generated code runs as it is: most of these tests would wait for numba only."""
    monkeypatch.setattr(generated, "load", lambda text, name, namespace, *_: generated.plain(text, name, namespace))
    for f in (potential, energy, scaled_root):
        monkeypatch.setattr(f, "_programs", {})


def flight(force):
    """A loop whose length depends on the data, with a derivative in it."""

    @fnad.njit
    def path(charge, dt):
        x, y, vx, vy = 0.0, 1.0, 1.0, 0.0
        while y > -1.0 and x < 3.0:
            f = force(Point(x, y), (charge, 4.0))
            vx, vy = vx + dt * f.x, vy + dt * (f.y - 1.0)
            x, y = x + dt * vx, y + dt * vy
        return x * y + vx

    return path


def descent(slope):
    @fnad.njit
    def end(x, k):
        for _ in range(5):
            x = x - 0.05 * slope(x, k)
        return np.sum(x * x)

    return end


def difference(f, x, h=1e-5):
    return (f(x + h) - f(x - h)) / (2 * h)


@pytest.mark.parametrize("mode", TRANSFORMS)
def test_derivatives_of_loops_with_derivatives_in_them(mode, as_python):
    path = flight(FORCES[mode])
    reverse = fnad.grad(lambda c: path(c, 0.1))
    want = difference(lambda c: fnad.value_and_grad(path)(c, 0.1)[0], 0.7)
    assert reverse(0.7) == pytest.approx(want, rel=1e-8)
    assert fnad.jacfwd(lambda c: path(c, 0.1))(0.7) == pytest.approx(want, rel=1e-8)
    assert fnad.grad(reverse)(0.7) == pytest.approx(difference(reverse, 0.7), rel=1e-7)


@pytest.mark.parametrize("mode", TRANSFORMS)
def test_arrays(mode, as_python):
    end = descent(SLOPES[mode])
    x, k = np.array([1.0, -0.5, 0.3]), np.array([0.4, 0.2, -0.1])
    value, found = fnad.value_and_grad(end, argnums=(0, 1))(x, k)

    def by_hand(x, k):
        for _ in range(5):
            x = x - 0.05 * (3 * k * x**2 - np.roll(x, 1) - np.roll(x, -1))
        return np.sum(x * x)

    assert value == pytest.approx(by_hand(x, k), rel=1e-13)
    for g, want in zip(found, fnad.grad(by_hand, argnums=(0, 1))(x, k), strict=True):
        np.testing.assert_allclose(g, want, rtol=1e-12)


def test_compiled_in_a_loop_and_alone():
    x, k = np.array([1.0, -0.5, 0.3]), np.array([0.4, 0.2, -0.1])
    want = fnad.grad(energy)(x, k)
    np.testing.assert_allclose(SLOPES["forward"](x, k), want, rtol=1e-14)
    end = descent(SLOPES["reverse"])
    assert end(x, k) == pytest.approx(fnad.value_and_grad(end)(x, k)[0], rel=1e-14)


def test_value_and_gradient_under_a_transform(as_python):
    both = fnad.njit(fnad.value_and_grad(energy, argnums=(1, 0)))

    @fnad.njit
    def sum_of_all(x, k):
        value, (by_k, by_x) = both(x, k)
        return value + np.sum(by_k) + 2.0 * np.sum(by_x)

    def by_hand(x, k):
        value = np.sum(k * x**3 - x * np.roll(x, 1))
        return value + np.sum(x**3) + 2.0 * np.sum(3 * k * x**2 - np.roll(x, 1) - np.roll(x, -1))

    x, k = np.array([1.0, -0.5, 0.3]), np.array([0.4, 0.2, -0.1])
    np.testing.assert_allclose(fnad.grad(sum_of_all)(x, k), fnad.grad(by_hand)(x, k), rtol=1e-13)
    np.testing.assert_allclose(fnad.grad(lambda x: np.sum(SLOPES["reverse"](x, k)))(x), fnad.hessian(energy)(x, k).sum(0), rtol=1e-13)


@pytest.mark.parametrize("mode", TRANSFORMS)
def test_where_an_inner_seed_is_zero(mode, as_python):
    """d/da of d(a sqrt(x))/dx is 1 / (2 sqrt(x)) for a = 0 as well, though the inner cotangent is 0 there."""
    slope = fnad.njit(TRANSFORMS[mode](scaled_root))

    @fnad.njit
    def at_four(a):
        return slope(4.0, a)

    assert fnad.grad(at_four)(0.0) == 0.25
    assert fnad.jacfwd(at_four)(0.0) == 0.25


def test_tangents_are_linear_at_zero(as_python):
    def along(v):
        return fnad.jvp(scaled_root, (4.0, 3.0), (v, 0.0))[1]

    assert fnad.grad(along)(0.0) == 0.75
    assert fnad.jvp(along, (0.0,), (1.0,))[1] == 0.75
    with np.errstate(divide="ignore", invalid="ignore"):
        assert fnad.jvp(scaled_root, (0.0, 3.0), (0.0, 1.0))[1] == 0.0
        assert fnad.grad(scaled_root)(0.0, 0.0) == 0.0


def test_transformed_functions_are_not_taken_for_what_they_were_made_of(as_python):
    gradient = fnad.grad(scaled_root)
    assert not hasattr(gradient, "py_func")

    @fnad.njit
    def caller(x):
        return gradient(x, 2.0)

    with pytest.raises(UnsupportedError, match=r"fnad\.njit"):
        fnad.grad(caller)(4.0)


@fnad.njit
def swapped(x):
    u, v = x.copy(), np.empty_like(x)
    for _ in range(2):
        for i in range(x.size):
            v[i] = math.sin(u[i] * u[i - 1])
        u, v = v, u
    return np.sum(u**3)


@fnad.njit
def logistic(x, r):
    while x < 0.9:
        x = r * x * (1.0 - x)
    return x


@pytest.mark.parametrize("mode", TRANSFORMS)
def test_inner_derivatives_with_a_tape(mode, as_python):
    slope = fnad.njit(TRANSFORMS[mode](logistic, argnums=1))

    @fnad.njit
    def outer(r):
        return slope(0.3, r) * r

    want = difference(lambda r: fnad.grad(logistic, argnums=1)(0.3, r) * r, 3.7)
    assert fnad.grad(outer)(3.7) == pytest.approx(want, rel=1e-7)


def test_inner_derivatives_that_keep_arrays_are_taken_forward(as_python):
    x = np.array([0.3, 0.5, 0.9])
    slopes = [fnad.njit(transform(swapped)) for transform in TRANSFORMS.values()]

    def around(slope):
        @fnad.njit
        def outer(x):
            return np.sum(slope(x))

        return outer

    with pytest.raises(UnsupportedError, match=r"fnad\.jacfwd") as raised:
        fnad.grad(around(slopes[0]))(x)
    assert "return np.sum(slope(x))" in str(raised.value)
    np.testing.assert_allclose(fnad.grad(around(slopes[1]))(x), fnad.hessian(swapped)(x).sum(0), rtol=1e-12)


@pytest.mark.parametrize("mode", TRANSFORMS)
def test_arguments_without_influence(mode, as_python):
    @fnad.njit
    def first(x, y, z):
        return x * x

    slope = fnad.njit(TRANSFORMS[mode](first, argnums=(0, 1, 2)))

    @fnad.njit
    def outer(x, y, z):
        a, b, c = slope(x, y, z)
        return a + b + np.sum(c)

    value, found = fnad.value_and_grad(outer, argnums=(0, 1, 2))(3.0, 1.0, np.ones(2))
    assert (value, *found[:2], found[2].tolist()) == (6.0, 2.0, 0.0, [0.0, 0.0])


def test_errors():
    with pytest.raises(ArgumentError, match=r"fnad\.grad, value_and_grad or jacfwd"):
        fnad.njit(fnad.vmap(energy))
    with pytest.raises(ArgumentError, match="under fnad"):
        fnad.njit(fnad.grad(lambda x: x))
    with pytest.raises(ArgumentError, match="no options"):
        fnad.njit(fnad.grad(energy), parallel=True)

    @fnad.njit
    def double(x):
        return 2.0 * x

    several = fnad.njit(fnad.grad(double))
    by_integer = fnad.njit(fnad.grad(scaled_root, argnums=2))

    @fnad.njit
    def of_array(x):
        return np.sum(several(x))

    @fnad.njit
    def of_nothing(x):
        return by_integer(x, 2.0)

    with pytest.raises(ShapeError, match="returns one float"):
        fnad.grad(of_array)(np.ones(2))
    with pytest.raises(ArgumentError, match="argnums must name"):
        fnad.grad(of_nothing)(1.0)
