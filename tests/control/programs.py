"""Functions that use control flow, each with the same function written as a Python loop or branch; and the forms they are tested in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.core.graph import evaluate

RNG = np.random.default_rng(11)


def recorded(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function as the evaluation of its recording."""

    def call(*args: Any) -> Any:
        spec = fnad.tree.structure(fnad.eval_shape(f, *args))
        return fnad.tree.unflatten(spec, evaluate(fnad.make_graph(f)(*args), fnad.tree.leaves(args)))

    return call


FORMS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {"eager": lambda f: f, "recorded": recorded, "jit": fnad.jit}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def equations(f: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    return fnad.make_graph(f)(*args).equations


@dataclass
class Program:
    """A function of floating-point arrays, the plain one it must agree with, and arguments."""

    function: Callable[..., Any]
    plain: Callable[..., Any]
    args: tuple[Any, ...]
    reverse: bool = True  # whether reverse mode can go through it


PROGRAMS: dict[str, Program] = {}


def program(*args: Any, reverse: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that takes (the library to use, *args): fnad itself, or `Loops`."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[f.__name__] = Program(lambda *a: f(fnad, *a), lambda *a: f(Loops, *a), args, reverse)
        return f

    return register


class Loops:
    """The control flow of fnad as plain Python."""

    @staticmethod
    def scan(f, init, xs=None, length=None, reverse=False, unroll=1, checkpoint=None):
        leaves = fnad.tree.leaves(xs)
        n = length if length is not None else len(leaves[0])
        carry, ys = init, [None] * n
        for i in reversed(range(n)) if reverse else range(n):
            carry, ys[i] = f(carry, fnad.tree.map(lambda x: x[i], xs))  # noqa: B023
        return carry, fnad.tree.map(lambda *rows: np.stack(rows), *ys)

    @staticmethod
    def fori_loop(lower, upper, body, init):
        for i in range(lower, upper):
            init = body(i, init)
        return init

    @staticmethod
    def while_loop(test, body, init, max_steps=None):
        steps = 0
        while steps != max_steps and test(init):
            init, steps = body(init), steps + 1
        return init

    @staticmethod
    def cond(pred, yes, no, *operands):
        return yes(*operands) if pred else no(*operands)

    @staticmethod
    def switch(index, branches, *operands):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    @staticmethod
    def map(f, xs):
        return Loops.scan(lambda _, x: (None, f(x)), None, xs)[1]


W = 0.5 * RNG.standard_normal((3, 3))
V = RNG.standard_normal(3)
XS = RNG.standard_normal((4, 3))


@program(W, V, XS)
def recurrent(lib, w, h0, xs):
    """A recurrent network: constants, carry and per-step values all matter."""
    h, ys = lib.scan(lambda h, x: (np.tanh(h @ w + x), np.sum(h * x)), h0, xs)
    return h, ys


@program(W, V, XS)
def backwards(lib, w, h0, xs):
    return lib.scan(lambda h, x: (np.tanh(h @ w + x), h), h0, xs, reverse=True)


@program({"a": V, "b": (XS, np.float64(0.3))}, XS)
def trees(lib, params, xs):
    """Pytrees everywhere, an integer in the carry, results that the carry does not reach."""

    def body(carry, x):
        n, c = carry["n"], carry["c"]
        c = (c[0] * np.cos(x["x"]) + params["b"][1] * n, c[1] + params["b"][0][0] * x["y"])
        return {"n": n + 1, "c": c}, {"sum": np.sum(c[0] * x["x"]), "other": (x["x"] ** 2, 2.0 * params["a"])}

    return lib.scan(body, {"n": 0, "c": (params["a"], np.zeros(3))}, {"x": xs, "y": np.sin(xs)})


@program(V)
def growing(lib, x):
    """The carry depends on the argument from the second step on, the third value from the third."""

    def body(carry, _):
        a, b, c = carry
        return (a * 0.9 + np.sin(x), a * b + 1.0, c + b * x), c[0]

    return lib.scan(body, (np.ones(3), np.zeros(3), np.zeros(3)), None, length=4)


@program(np.float64(0.7), V)
def weak_carry(lib, w, xs):
    """Python scalars as carry."""
    (total, count), ys = lib.scan(lambda c, x: ((c[0] + np.sin(w * x), c[1] + 1), c[0] * c[1]), (0.0, 0), xs)
    return total * count, ys


@program(W, XS)
def nested(lib, w, xs):
    """A scan in a scan, closing over the outer carry."""

    def outer(h, x):
        inner, ys = lib.scan(lambda c, y: (np.tanh(c * y + h), c * h[0]), h, np.stack([x, x[::-1]]))
        return inner @ w, np.sum(ys) * x

    return lib.scan(outer, xs[0], xs)


@program(V, XS)
def only_results(lib, v, xs):
    """No carry."""
    return lib.map(lambda x: np.sum(np.exp(x) * v), xs)


@program(V)
def unused(lib, x):
    """Results that nothing reads, and a carry that is not differentiated."""
    (_, c), _ys = lib.scan(lambda c, i: ((c[0] + i, c[1] * x + i), np.exp(x) * 1e3), (np.arange(3), x), np.arange(5))
    return c


@program(W, V)
def fori(lib, w, x):
    return lib.fori_loop(2, 6, lambda i, v: np.tanh(w @ v) + i * x, x)


@program(V)
def indexed(lib, x):
    """Entries of a closed-over array by the loop's counter, and writing into the carry."""
    return lib.fori_loop(0, 3, lambda i, v: fnad.at(v)[i].set(np.take(x, i) * v[0] + np.sin(v[i])), np.ones(3) * x[1])


@program(np.float64(2.0), np.float64(0.2))
def halving(lib, x, y):
    return lib.while_loop(lambda c: c[0] > 0.3, lambda c: (c[0] * 0.6, c[1] + np.sin(c[0]) * y), (x, 0.0), max_steps=12)


@program(V, reverse=False)
def unbounded(lib, x):
    return lib.while_loop(lambda c: np.sum(c[1] ** 2) < 100.0, lambda c: (c[0] + 1, c[1] * 1.5 + np.cos(x)), (0, x))


@program(V, W)
def branch(lib, x, w):
    return lib.cond(np.sum(x) > 0, lambda x: (w @ x, x[0]), lambda x: (np.sin(x), x[1] * w[0, 0]), x)


@program(np.float64(-0.4))
def safe_branch(lib, x):
    """The branch not taken has no finite slope."""
    return lib.cond(x > 0, np.sqrt, lambda x: x * x, x)


@program(V, np.float64(0.3))
def branches(lib, x, y):
    def pick(k):
        return lib.switch(k, [lambda x: np.sin(x) * y, lambda x: np.full(3, 2.0), lambda x: x**2 + y], x)

    return [pick(k) for k in (-1, 0, 1, 2, 5)]


@program(V, XS)
def branch_in_scan(lib, v, xs):
    def body(c, x):
        c = lib.cond(c[0] > x[0], lambda c: c * np.sin(v), lambda c: np.cos(c) + x, c)
        return c, lib.switch(np.argmax(x), [lambda: c[0], lambda: c[1] * v[0], lambda: c[2] ** 2])

    return lib.scan(body, v, xs)


@program(V, XS)
def while_in_scan(lib, v, xs):
    def body(c, x):
        y = lib.while_loop(lambda y: np.sum(y**2) > 1.0, lambda y: y * 0.6 + 0.01 * x, c + x, max_steps=6)
        return y, y[0] * v

    return lib.scan(body, v, xs)


@program(V, XS)
def scan_in_branch(lib, v, xs):
    return lib.cond(
        v[0] < 10.0,
        lambda xs: lib.scan(lambda c, x: (c * np.cos(x), c), v, xs),
        lambda xs: (v * 2.0, xs),
        xs,
    )


@program(V.astype(np.complex128) + 0.5j)
def complex_values(lib, z):
    return lib.fori_loop(0, 3, lambda i, c: c * z + np.conj(c), z)


@program(W, V, XS)
def heavy(lib, w, v, xs):
    """Operations whose results are kept for the way back."""

    def body(h, x):
        m = np.outer(h, x) @ w
        return np.tanh(np.sum(m, axis=0) + h), np.linalg.norm(m @ m)

    return lib.scan(body, v, xs)


for _name, _checkpoint in (("segments", 3), ("binomial", "binomial")):
    for _reverse in (False, True):

        def _checkpointed(lib, w, h0, xs, checkpoint=_checkpoint, reverse=_reverse):
            xs = np.concatenate([xs * k for k in (1.0, 0.5, 0.3, -0.2)])[:14]
            return lib.scan(lambda h, x: (np.tanh(h @ w + x), np.sum(h * x)), h0, xs, reverse=reverse, checkpoint=checkpoint)

        _checkpointed.__name__ = _name + ("_backwards" if _reverse else "")
        program(W, V, XS)(_checkpointed)
