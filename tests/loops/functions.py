"""Small loop functions, one or more for each thing that the front end understands, with arguments."""

# ruff: noqa: B007, B020, B905, F821, F841, RET504, RUF005, RUF059  (they are written as users write)
import math
import operator
from collections import namedtuple

import numpy as np
from numba import prange

CASES = {}
rng = np.random.default_rng(0)
V = rng.normal(size=7)
W = rng.normal(size=7)
M = rng.normal(size=(4, 5))
S = rng.normal(size=(4, 4))
TABLE = np.array([0.5, 1.5, -2.0])
SCALE = 2.5
Params = namedtuple("Params", "mass spring")
State = namedtuple("State", "x v")


def case(*args):
    def register(f):
        assert f.__name__ not in CASES
        CASES[f.__name__] = (f, args)
        return f

    return register


def helper(f):
    """Marks a function as compiled, as a dispatcher is marked, without compiling it."""

    def call(*args, **kwargs):
        return f(*args, **kwargs)

    call.py_func = f
    return call


# loops


@case(10, 2.0)
def for_with_steps(n, x):
    s = 0.0
    for i in range(n - 1, -1, -2):
        s = s * x + i
    return s


@case(3, 2.0)
def for_with_a_step_that_is_not_constant(k, x):
    s = 0.0
    for i in range(1, 20, k):
        s += x * i
    for i in range(20, 1, -k):
        s -= i
    return s


@case(V)
def for_over_an_array(x):
    s = 0.0
    for v in x:
        s += v * v
    return s


@case(M)
def for_over_rows(x):
    s = 0.0
    for row in x:
        for v in row:
            s = 0.5 * s + v
    return s


@case(V)
def for_over_enumerate(x):
    s = 0.0
    for i, v in enumerate(x):
        s += i * v
    for i, v in enumerate(x[1:], 3):
        s += i * v
    return s


@case(V, W[:5])
def for_over_zip(x, y):
    s = 0.0
    for a, b in zip(x, y):
        s += a * b
    for i, (a, b) in enumerate(zip(x, y)):
        s += i * a - b
    return s


@case(V)
def for_over_reversed(x):
    s = 0.0
    for i in reversed(range(1, x.size, 2)):
        s = s / 2 + x[i]
    return s


@case(1.5, 2.5)
def for_over_a_tuple(a, b):
    s = 0.0
    for v in (a, b, a * b):
        if v > 2.0:
            s += v
        else:
            continue
        s *= 2
    return s


@case(1.5, 2.5)
def break_out_of_a_tuple(a, b):
    s = 0.0
    for k, v in enumerate((a, b, 3.0)):
        if s > 2:
            break
        s += k + v
    return s


@case(V)
def for_over_prange(x):
    out = np.empty(x.size)
    total = 0.0
    for i in prange(x.size):
        out[i] = x[i] * 2
        total += x[i]
    return out, total


@case(5.0)
def the_variable_of_a_loop_after_it(x):
    i = -1
    for i in range(4):
        x += i
    j = 7
    for j in range(0):
        x += j
    return x * i + j


@case(100.0)
def while_loop(x):
    n = 0
    while x > 1.0 and n < 50:
        x /= 3.0
        n += 1
    return x, n


@case(100.0)
def while_true(x):
    steps = 0
    while True:
        x = 0.5 * x
        steps += 1
        if x < 1:
            break
        if steps == 3:
            continue
        x -= 0.25
    return x + steps


@case(V)
def while_with_a_condition_that_reads_an_array(x):
    i = 0
    while i < x.size and x[i] < 1.0:
        i += 1
    return i


@case(V, 0.1)
def break_and_continue_in_nested_loops(x, limit):
    s = 0.0
    for i in range(x.size):
        if x[i] < 0:
            continue
        for j in range(x.size):
            if x[j] < limit:
                if i == j:
                    break
                continue
            if i + j > 8:
                break
            s += x[i] * x[j]
        else_value = s
        if else_value > 5.0:
            break
    return s


@case(V)
def jump_under_two_ifs(x):
    s = 1.0
    for i in range(x.size):
        if x[i] > 0:
            if x[i] > 1:
                s *= 2
                continue
            s += 1
        else:
            if i == 5:
                break
            s -= 1
        s = s * 1.5 + x[i]
    return s


@case(V, 0.3)
def return_inside_a_loop(x, y):
    for i in range(x.size):
        for j in range(i):
            if x[i] * x[j] > y:
                return x[i] - x[j], i
    return y, -1


@case(V)
def return_of_an_array_inside_a_loop(x):
    total = 0.0
    for i in range(x.size):
        total += x[i]
        if total < -0.3:
            y = x * 2.0
            y[i] = total
            return y
    return x.copy()


@case(3.0)
def early_return(x):
    if x > 10:
        return 1.0
    if x > 2:
        y = x * x
        if y > 100:
            return y
        x = x + 1
    return x * 2


@case(-3.0)
def return_nothing_more(x):
    y = x
    if x < 0:
        y = -x
        return y
    else:
        pass
    return 2 * y


@case(V)
def name_of_the_iteration_before(x):
    s = 0.0
    for i in range(x.size):
        if i > 0:
            s += x[i] - before
        before = x[i]
    return s


@case(V)
def array_of_the_iteration_before(x):
    s = 0.0
    for i in range(3):
        if i > 0:
            s += last[i]
        last = x * (i + 1)
    return s


@case(V)
def integer_that_becomes_a_float(x):
    s = 0
    n = 1
    for i in range(x.size):
        s += x[i]
        for j in range(2):
            n = n * 2 if j == 0 else n - 1
    return s, n


@case(V)
def tuple_that_changes_in_a_loop(x):
    pair = (0, 1.0)
    for i in range(x.size):
        a, b = pair
        pair = (b, a + x[i])
    return pair


@case(3.0, 2)
def fibonacci_swaps(x, n):
    a, b, c = x, 1.0, 2.0
    for _ in range(n):
        a, b, c = b, c, a + b
    return a, b, c


@case(V)
def arrays_swap(x):
    a = x.copy()
    b = np.zeros_like(x)
    for k in range(3):
        for i in range(1, x.size):
            b[i] = 0.5 * (a[i - 1] + a[i]) + k
        a, b = b, a
    return a, b


@case(V)
def array_rebound_in_a_branch(x):
    y = x
    for i in range(3):
        if x[i] > 0:
            y = y * 2.0
        else:
            y = y[:] - 1.0
    return y


# branches and conditions


@case(0.7)
def if_elif_else(x):
    if x < 0:
        y = -x
    elif x < 0.5:
        y = 1
    elif x < 1:
        y = x * x
        x = 2.0
    else:
        y = 0.0
    return x + y


@case(0.0, 3.0)
def conditional_expression_is_lazy(x, y):
    safe = y / x if x != 0.0 else 1.0
    return safe + (x if x > y else y) + (0 if x > 1 else y)


@case(V)
def short_circuit_guards_an_index(x):
    s = 0.0
    for i in range(-2, 10):
        if (i >= 0 and i < x.size and x[i] > 0) or i == -2:
            s += 1.0 + i
        if not (i >= 0 and i < x.size) or x[i] < 0:
            s *= 1.5
    return s


@case(0.5, 2)
def chained_comparison(x, n):
    s = 0.0
    if 0.0 < x < 1.0:
        s += 1
    if 0 <= n < 5 > x:
        s += 10
    if 1 < n < int(x * 100) != 3:
        s += 100
    return s


@case(M, V)
def decided_while_building(x, y):
    if x.ndim == 2:
        s = x.shape[0] * 1.0
    else:
        s = x.no_such_thing
    if y.ndim == 2:
        return y[0, 0]
    if len(x.shape) == 2 and y.dtype == np.float64:
        s += 1
    return s


@case(2.0)
def none_as_a_default(x, y=None):
    if y is None:
        y = 3.0
    return x * y


@case(V, 3)
def raise_and_assert(x, n):
    assert n > 0, "n must be positive"
    if n > x.size:
        raise ValueError("too large")
    if n == 1:
        y = 1.0
    elif n == 3:
        y = 2.0
    else:
        raise ValueError(f"unknown {n}")
    print("hello", n)
    return x[n] * y


@case(7, 3, -7)
def integer_work(a, b, c):
    d, r = divmod(c, b)
    bits = (a & b) | (a ^ c) ^ (~b)
    return a // b, a % b, c // b, c % b, d, r, bits, a << 2, a >> 1, a**2, -a, +a, abs(c), a / b, 2**b


@case(3.7, -2.5)
def casts(x, y):
    a = int(x) + int(y)
    b = float(a) / 2
    c = bool(a)
    return a, b, c, round(x), np.float64(a), np.int64(y), math.floor(y), math.ceil(x), math.trunc(y)


@case(True, False, 2)
def booleans(a, b, n):
    c = a and not b
    d = n > 1 or b
    return a + b, c, d, (a | b) & d, not n, a ^ b


# scalar functions


@case(0.3, 1.7)
def functions_of_numbers(x, y):
    a = math.sin(x) + math.cos(y) * math.exp(-x) - math.log(y) / math.sqrt(y)
    b = np.tanh(x) + np.arctan2(x, y) + np.hypot(x, y) + math.atan(y) + np.log1p(x)
    c = math.pow(y, x) + y**x + y**3 + math.erf(x) + math.gamma(y) + math.lgamma(y)
    d = max(x, y, 1.0) - min(x, y) + np.maximum(x, y) * np.minimum(x, 0.1) + abs(x - y) + np.abs(-x) + math.fabs(x)
    e = np.sign(-y) + np.floor(y) + np.ceil(x) + math.pi + np.e + np.square(y) + np.power(y, 2) + np.cbrt(y)
    return a, b, c, d, e, math.degrees(x), math.isnan(x), np.isfinite(y), math.copysign(x, -1.0), math.fmod(y, x)


@case(np.float32(0.3), np.float32(1.5))
def single_precision(x, y):
    s = np.float32(0.0)
    for i in range(3):
        s += x * y + np.float32(i)
    return s, math.sqrt(y), x**2


@case(1 + 2j, 0.5)
def complex_numbers(z, x):
    w = z * z + x
    for i in range(3):
        w = w * w * 0.1 + z
    return w, w.real, w.imag, abs(w), (w * w.conjugate()).real, np.exp(1j * x)


# arrays


@case(M, V)
def shapes_and_sizes(x, y):
    n, m = x.shape
    return n, m, x.shape[-1], len(x), x.size, x.ndim, y.size + y.shape[0], x.T.shape[0]


@case(M, 1)
def mixed_indices(x, k):
    y = x.copy()
    y[k, 2:] = x[k + 1, :3]
    y[0] = 1.5
    y[-1, ::2] *= 2.0
    y[:, k] += x[:, -1]
    y[2, -1] -= 4.0
    y[..., 0] = -1.0
    s = y[k][2] + y[-1][-2] + y[1:][0, 1] + y[:, 1:3][k, 1] + y[0, ...].sum() + y[::-1][0][0]
    return y, s, x[1:-1, ::2].copy(), x[k]


@case(V)
def slices_as_stencil(u):
    v = u.copy()
    for _ in range(3):
        v[1:-1] = v[1:-1] + 0.1 * (v[2:] - 2 * v[1:-1] + v[:-2])
        v[1:] = v[:-1] * 0.5
        v[: v.size - 1] += 0.1 * v[1:]
        v[0], v[-1] = v[-1], v[0]
    return v


@case(V)
def a_view_writes_through(x):
    y = x.copy()
    z = y[2:5]
    z[0] = 10.0
    z += 1.0
    z[-1] = z[-2] * 2
    w = y
    w[0] = 5.0
    for i in range(len(z)):
        z[i] *= 2
    return y


@case(M)
def new_axes(x):
    a = x[:, None, :] * x[None, :, :]
    b = x[0][:, np.newaxis] + x[1]
    return a, b


@case(V, np.array([2, 0, -1, 2]))
def index_arrays(x, idx):
    y = x[idx] * 2.0
    z = np.zeros(x.size)
    z[idx] = y
    z[idx[:2]] += 1.0
    return y, z, x[x > 0], x[idx].sum()


@case(M, np.array([2, 0]))
def index_arrays_of_rows(x, idx):
    y = x.copy()
    y[idx] = x[idx] + 1
    y[:, idx] *= 2.0
    return y, x[idx, 1], x[:, idx]


@case(V)
def masks(x):
    y = x.copy()
    y[y < 0] = 0.0
    y[x > 0.5] *= 3.0
    y[x > 0.5] += x[x > 0.5]
    return y, np.sum(x[x < 0]), (x > 0).sum(), np.mean(x > 0)


@case(V, W)
def whole_array_expressions(x, y):
    a = np.exp(-x * x) / (1.0 + y**2) - np.abs(y)
    b = np.where(x > y, x, 2.0 * y) + np.maximum(x, 0.0)
    c = (x > 0) & (y < 0) | ~(x < y)
    return a, b, c, -x, x // 0.3, x % 0.7, 2 - x, np.clip(x, -0.5, 0.5), x.astype(np.int64), np.logical_not(x > 0)


@case(V, W)
def broadcasting(x, y):
    a = x.reshape(7, 1) * y
    b = a - y.reshape((1, -1))
    c = b + a.T
    c *= x
    c += 1
    return a, b, c


@case(M, rng.normal(size=(4, 1)), rng.normal(size=(1, 5)), rng.normal(size=1))
def broadcasting_at_run_time(x, column, row, one):
    a = x * column + row
    b = column * row
    a += column
    c = one + x[0]
    return a, b - one, c


@case(V, W)
def reductions(x, y):
    a = np.sum(x * y), np.prod(x), np.mean(x), np.max(x), np.min(y), np.var(x), np.std(y), x.sum() + y.mean()
    b = x.max(), x.argmax(), np.argmin(y), np.any(x > 2), np.all(x < 9), np.linalg.norm(x), x.dot(y), np.dot(x, y), sum((1, x[0]))
    return a, b


@case(M)
def reductions_of_matrices(x):
    a = np.sum(x, axis=0), np.sum(x, 1), x.mean(axis=-1), x.sum(), x.max(), np.linalg.norm(x)
    b = x - x.mean(axis=0)
    return a, b, np.max(x) - np.min(x), np.argmax(x)


@case(V, M)
def cumulative(x, a):
    return np.cumsum(x), np.cumprod(x), np.cumsum(a), np.diff(x), x.cumsum()


@case(M, S, V[:4], V[:5])
def products(a, s, v, w):
    return a @ w, v @ a, s @ a, v @ v, a.T @ s, np.outer(v, w), np.dot(s, v), np.trace(s), np.vdot(v, v), (s @ s @ v).sum()


@case(V[:3], W[:3])
def cross_products(a, b):
    return np.cross(a, b)


@case(M, V)
def joining(a, x):
    return np.concatenate((x, x[:2], x)), np.concatenate((a, a), axis=0), np.concatenate((a, a), 1), np.stack((x, x * 2))


@case(3, 2)
def allocations(n, m):
    a = np.zeros((n, m))
    b = np.ones(n) + np.full(n, 2.5)
    c = np.empty((n, n))
    c[:] = 0.0
    c.fill(3.0)
    d = np.zeros((n,), dtype=np.int64)
    d[1] = 4
    e = np.zeros(n, np.float32)
    f = np.full((n, m), 7)
    return a, b, c, d, e, f, np.eye(n), np.identity(m), np.zeros_like(a), np.full_like(b, 2.0), np.ones_like(d)


@case(4, 0.5)
def array_makers(n, x):
    a = np.array([x, 1.0, 2 * x])
    b = np.array([[1.0, x], [x * x, 4]])
    c = np.array([1, 2, n])
    d = np.array((x, n))
    return (
        a,
        b,
        c,
        d,
        np.arange(n),
        np.arange(1, 9, 3),
        np.arange(0.0, 1.0, 0.3),
        np.linspace(x, 2.0, n),
        np.asarray(a),
        np.linspace(0, 1, 3),
    )


@case(M)
def views_of_arrays(x):
    y = x.copy()
    flat = y.reshape(20)
    flat[3] = 100.0
    t = y.T
    t[0, 1] = 50.0
    u = y.ravel()
    u[-1] = -7.0
    z = y.flatten()
    z[0] = 1e3
    return y, np.transpose(y), t.copy(), z, y.reshape((5, -1))


@case(np.arange(6), np.array([True, False, True]))
def integer_arrays(k, mask):
    s = 0
    n = 0
    for i in range(k.size):
        s += k[i] * 2 - 1
        n += k[i] // 2
    for i in range(mask.size):
        if mask[i]:
            n += 1
    return s, n, k * 2, k / 2, k.sum(), mask.sum(), ~mask, k.max()


@case(np.float32(V), np.float32(2.0))
def single_precision_arrays(x, c):
    y = x * c
    z = np.zeros(3, dtype=np.float32)
    for i in range(3):
        z[i] = x[i] * c + 1.0
    return y, z, np.sum(x), x.dtype.type(3)


@case(V + 1j * W, 0.5)
def complex_arrays(z, x):
    w = z * x + 1j
    w[0] = 3.0
    return w, w.real, np.abs(w), np.sum(w * np.conj(w)), w.imag.sum()


@case(M[::2, ::-1], np.asfortranarray(S))
def strided_arguments(x, y):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j] * (i + 2 * j)
    return s, x * 2, y @ y, x.T.copy()


@case(np.zeros(0), np.zeros((0, 3)))
def empty_arrays(x, y):
    s = 1.0
    for v in x:
        s += v
    return s, x * 2, np.sum(x), y.sum(axis=0), x.copy()


@case(np.array([3.0]))
def arrays_of_one(x):
    return x * np.ones(4), x.max(), x[-1], np.cumsum(x)


@case(V.copy())
def written_argument(x):
    x[0] = 2.0
    y = x[1:]
    y *= 3
    return x.sum()


# tuples and functions


@case(Params(2.0, 0.5), State(1.0, 0.0), 5)
def named_tuples(p, s, n):
    for _ in range(n):
        a = -p.spring / p.mass * s.x
        s = State(s.x + 0.1 * s.v, s.v + 0.1 * a)
    return s


@case((1.0, (V, 2)), 3.0)
def nested_tuples(t, x):
    a, (v, k) = t
    b = t[1][0][k] + t[-1][1]
    first, *rest = (a, b, x)
    u = t + (x,)
    return (a * b, rest[0]), len(rest), u[2], (x, *rest)


@case(2.0)
def closures_and_globals(x):
    return x * SCALE + TABLE[1] * x**2 + np.sum(TABLE) + len(TABLE) + math.pi


@helper
def square(x):
    return x * x


@helper
def advance(u, dt, new, factor=2.0):
    for i in range(u.size):
        new[i] = u[i] + dt * square(u[i]) * factor


@helper
def first_negative(x):
    for i in range(x.size):
        if x[i] < 0:
            return i
    return -1


@helper
def apply_twice(f, x):
    return f(f(x))


@helper
def two_results(x, y):
    if x > y:
        return x, y
    return y, x


@case(V, 0.1)
def calls(x, dt):
    u = x.copy()
    new = np.empty_like(u)
    for _ in range(3):
        advance(u, dt, new)
        advance(new, dt, u, factor=0.5)
        u, new = new, u
    low, high = two_results(u[0], u[1])
    return u, first_negative(x), first_negative(x * x), apply_twice(square, dt), low - high


@case(V)
def local_functions(x):
    scale = 2.0
    f = lambda v: v * scale

    def g(v, w=1.5):
        if v > 0:
            return v * w
        return f(v)

    s = 0.0
    for i in range(x.size):
        s += g(x[i]) - f(x[i])
    return s


@case(V)
def shadowed_names(x):
    i = 3
    s = 0.0
    for i in range(2):
        for i in range(i, 4):
            s += i * x[i]
    sum = s * 2
    return sum, i


@case(V, 2)
def annotated_and_chained(x, n):
    a: float = 2.0
    b = c = x[n] * a
    y = z = x * 2
    y[0] = 99.0
    b += 1
    return a, b, c, z


@case(5)
def sieve(n):
    prime = np.ones(n * n, dtype=np.bool_)
    count = 0
    for i in range(2, n * n):
        if prime[i]:
            count += 1
            for j in range(i * i, n * n, i):
                prime[j] = False
    return count


@case(V)
def bubble_sort(x):
    y = x.copy()
    n = y.size
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if y[j] > y[j + 1]:
                y[j], y[j + 1] = y[j + 1], y[j]
                swapped = True
        if not swapped:
            break
    return y


@case(S, V[:4])
def gaussian_elimination(A, b):
    A, b = A.copy(), b.copy()
    n = b.size
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[p, k]):
                p = i
        if p != k:
            for j in range(n):
                A[k, j], A[p, j] = A[p, j], A[k, j]
            b[k], b[p] = b[p], b[k]
        for i in range(k + 1, n):
            f = A[i, k] / A[k, k]
            A[i, k:] -= f * A[k, k:]
            b[i] -= f * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]
    return x


@case(0.5, 1.0)
def collatz_like(x, y):
    n = 27
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
            x *= 0.99
        else:
            n = 3 * n + 1
            x += 0.01 * y
        steps += 1
    return x, steps


@case(V)
def operators_as_functions(x):
    return operator.add(x[0], x[1]), operator.mul(x, 2.0), np.add(x, 1), np.divide(x, 3), np.true_divide(1.0, x[0])


@case(V, 3)
def dynamic_slices(x, k):
    s = 0.0
    for i in range(x.size - k):
        window = x[i : i + k]
        s += window.max() - np.mean(x[i:]) + x[-k:][0] + x[: i + 1].sum()
    return s


@case(V)
def deleted_and_passed(x):
    y = x[0]
    del y
    return x[1]


@case(M)
def masks_of_matrices(x):
    y = x.copy()
    y[y > 1.0] = 1.0
    y[x < 0] *= -2.0
    y[x < -1] = x[x < -1] * 3.0
    y[y > x] -= 0.5
    return y, x[x > 0].sum(), x[x > 0]


@case((0.5, 2, -1.5), 1)
def tuples_of_numbers_at_an_index(t, k):
    s = 0.0
    for i in range(len(t)):
        s = s * 2 + t[i] + t[-1 - i]
    return s + t[k]


@case(M, 3)
def every_index(x, n):
    s = 0.0
    for i, j in np.ndindex(x.shape):
        s += x[i, j] * (i - j)
    for (i, j), v in np.ndenumerate(x):
        s += v * i * j
    for k in np.ndindex(n):
        s += k[0]
    return s


@case(V, 4)
def list_comprehensions(x, n):
    i = 7
    a = np.array([x[i] * i for i in range(n)])
    b = np.array([v * 2 for v in x[1:]])
    c, d = [k + 1 for k in (1.0, 2.0)]
    return a, b, c, d, np.asarray([i * i for i in range(3)]), i


@case(V)
def arrays_whose_dtype_is_settled_late(x):
    s = 0
    a = np.zeros(3)
    for i in range(x.size):
        for _ in range(2):
            a = np.full(3, s)
        s += x[i]
    return a, s
