"""Loops that are easy to reverse wrongly: elements that iterations share, views, swaps, loops that end early."""

import numpy as np
import pytest

from fnad.loops.reverse_printer import adjoint
from tests.loops.derivatives import Derivatives, balanced, run


def moving_view(x, n):
    a = x.copy()
    for i in range(n):
        w = a[n - 1 - i :]
        w[i] = np.sin(w[i]) * x[i] + w[i] ** 2
    return a


def wrapped_offset(x, n):
    a = x.copy()
    for i in range(n):
        a[i] = np.sin(a[i - 1]) * a[i]
    return a


def mirrored(x, n):
    a = x.copy()
    for i in range(n):
        a[i] = a[n - 1 - i] ** 2 * x[i]
        a[n - 1 - i] = a[i] * np.cos(a[n - 1 - i])
    return a


def negative_start(x, n):
    a = x.copy()
    for i in range(-n, n):
        a[i] = np.sin(a[i]) * x[i]
    return a


def downwards(x, n):
    a = x.copy()
    for i in range(n - 1, -1, -1):
        a[i] = a[i] * a[i - 1] + x[i]
    return a


def swapped_by_value(x, n):
    u, v = x.copy(), x * 2.0
    for i in range(n):
        for k in range(n):
            v[k] = u[k] * np.sin(u[k - 1]) + v[k]
        if x[i] > 0.5:
            u, v = v, u
    return u, v


def carried_view(x, n):
    a = x.copy()
    w = a[1:]
    for i in range(n - 1):
        w[0] = w[0] * a[i] + np.sin(a[i + 1])
        w = a[1 + i :]
    return a


def early(x, n):
    s = x[0]
    for i in range(n):  # noqa: B007
        for j in range(n):
            if x[j] * s > 0.6:
                break
            s = s * x[j] + 0.3
        if s > 0.9:
            return s * s
    return s * j + i


def alternating(x, n):
    p, q = x.copy(), x.copy()
    for i in range(n):
        w = p[::-1]
        w[i] = q[i] * w[i] * np.sin(p[i])
        p, q = q, p
    return p, q


def levinson(x, n):
    a = np.zeros(n)
    e = x[0] + 3.0
    for k in range(1, n):
        acc = x[k]
        for j in range(1, k):
            acc += a[j] * x[k - j]
        g = -acc / e
        for j in range(1, k // 2 + 1):
            t = a[j] + g * a[k - j]
            a[k - j] += g * a[j]
            a[j] = t
        a[k] = g
        e *= 1.0 - g * g
    return a, e


def repeated(x, n):
    a = x.copy()
    idx = np.zeros(n, np.int64)
    for i in range(n):
        idx[i] = i // 2
    for i in range(n):
        a[idx[i]] = a[idx[i]] * x[i] + np.sin(a[idx[i]])
    return a


def swapped_neighbours(x, n):
    p, q = x.copy(), x * 0.5
    for i in range(n):
        p[i] = np.sin(q[i - 1]) * x[i]
        p, q = q, p
    return p, q


def moving_rows(x, n):
    a = np.outer(x, x)
    for i in range(n):
        w = a[:, (i * i) % n]
        w[i] = w[i] * np.sin(w[i - 1])
    return a


def bucketed_views(x, n):
    a = x.copy()
    for i in range(n):
        b = a[n - 1 - i :]
        a[i] = a[i] * np.sin(b[0])
    return a


def thomas(x, n):
    c = np.zeros(n)
    d = x.copy()
    c[0] = x[0] / 4.0
    d[0] = d[0] / 4.0
    for i in range(1, n):
        m = 4.0 - x[i - 1] * c[i - 1]
        c[i] = x[i] / m
        d[i] = (d[i] - x[i - 1] * d[i - 1]) / m
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d


def fresh_each_round(x, n):
    u = x.copy()
    for i in range(n):
        v = np.zeros(n)
        for k in range(n - 1):
            v[k + 1] = u[k] * np.sin(u[k - 1]) + x[i]
        if x[i] < 0.6:
            u = v
    return u


def twice(x, n):
    a = x * x
    return a, a[1:], a


def reassigned_inner(x, n):
    s = 1.0
    for i in range(n):
        r = x[i]
        for _ in range(i):
            r = r * s + np.sin(r)
            if r > 1.4:
                break
        s = s * 0.5 + r
    return s * r


def allocated_carried(x, n):
    u = x.copy()
    old = x * 2.0
    for i in range(n):
        v = u * old
        v[i] = np.sin(old[i]) * u[i - 1]
        u[0] = v[0] * old[0]
        old = u
        u = v
    return u, old


def inner_view_write(x, n):
    A = np.outer(x, x)
    for i in range(n):
        r = A[i]
        for j in range(1, n):
            r[j] = r[j - 1] * A[i - 1, j]
    return A


def inner_moving(x, n):
    a = x.copy()
    for k in range(2):
        for i in range(n):
            w = a[n - 1 - i :]
            t = w[0]
            w[i] = t * w[i] + x[k]
            a[0] = a[0] * w[i]
    return a


def while_early(x, n):
    a = x.copy()
    i = 0
    while i < n:
        a[i] = a[i - 1] * a[i]
        if a[i] < 0.2:
            a[0] = a[i] ** 2
            break
        i += 1
    return a, a[0] * i


def same_two(x, n):
    a = x.copy()
    b = a
    for i in range(n):
        b[i] = a[n - 1 - i] * x[i] + a[i] ** 2
        if i % 2 == 0:
            b = a[::-1]
    return a, b


def step_start(x, n):
    a = x.copy()
    for s in range(-2, 3):
        for i in range(s, n, 2):
            t = a[i]
            a[i - 1] = t * x[i]
            a[i] = t * a[i - 1]
    return a


def wrapped_row(x, n):
    A = np.outer(x, x)
    for i in range(n):
        A[i, i - 1] = A[i, i - 1] * np.sin(A[i - 1, i])
    for i in range(n):
        A[i, 0] = A[i, 0] ** 2 * A[i, n - 1]
        A[i, -1] = A[i, 0] * A[i, -1]
    return A


FUNCTIONS = [moving_view, wrapped_offset, mirrored, negative_start, downwards, swapped_by_value, carried_view, early, alternating]
FUNCTIONS += [levinson, repeated, swapped_neighbours, moving_rows, bucketed_views, thomas, fresh_each_round, twice, reassigned_inner]
FUNCTIONS += [allocated_carried, inner_view_write, inner_moving, while_early, same_two, step_start, wrapped_row]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_both_modes_and_differences_agree(function):
    x = np.random.default_rng(3).uniform(0.2, 0.9, 5)
    Derivatives(function, (x, 5)).check((x, 5))


@pytest.mark.parametrize("snapshots", [0, 2])
@pytest.mark.parametrize("function", [wrapped_offset, moving_view, swapped_by_value, swapped_neighbours, carried_view, fresh_each_round])
def test_snapshots_change_nothing(function, snapshots):
    x = np.random.default_rng(3).uniform(0.2, 0.9, 5)
    d = Derivatives(function, (x, 5))
    text, names = adjoint(d.fn, d.wanted, True, snapshots)
    d.adjoint = run(balanced(text), names, f"{d.fn.name}_adjoint")
    d.check((x, 5))


@pytest.mark.parametrize(
    "function", [moving_view, wrapped_offset, mirrored, negative_start, downwards, swapped_by_value, alternating, repeated]
)
@pytest.mark.parametrize("size", [0, 1, 2])
def test_small_sizes(function, size):
    x = np.random.default_rng(4).uniform(0.2, 0.9, size)
    Derivatives(function, (x, size)).check((x, size))
