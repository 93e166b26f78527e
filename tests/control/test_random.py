"""Random nests of loops and branches: recorded, differentiated and batched, against the same nests as plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import fnad
from fnad.core.graph import evaluate
from fnad.testing import assert_trees_close

from .programs import Loops

LEAVES = [
    lambda a, b, s, p: (np.tanh(a * p["w"] + b), b, s),
    lambda a, b, s, p: (b, a * s, s),
    lambda a, b, s, p: (a, p["m"] @ b, s + np.sum(a) * 0.1),
    lambda a, b, s, p: (a + 0.1 * b, b, np.sin(s) * p["k"]),
    lambda a, b, s, p: (a, np.ones(2), s),
    lambda a, b, s, p: (np.cos(a) * p["w"], b * 0.5, s * 0.3),
    lambda a, b, s, p: (np.where(a > 0, a, 0.1 * a), np.outer(a, b) @ b * 0.1, s),
    lambda a, b, s, p: (fnad.at(a)[0].set(b[1] * 0.5 + a[1]), b, s),
    lambda a, b, s, p: (fnad.at(a)[1].add(s * 0.1), fnad.at(b)[0].set(a[1] + p["w"][0]), s),
]
KINDS = ("scan", "fori", "cond", "switch", "while", "sequence")


def sequence(rng, depth):
    """One or two steps, each `(lib, carry, params, x) -> carry`."""
    steps = [step(rng, depth) for _ in range(rng.integers(1, 3))]

    def run(lib, c, p, x):
        for f in steps:
            c = f(lib, c, p, x)
        return c

    return run


def step(rng, depth):
    if depth == 0:
        leaf = LEAVES[rng.integers(len(LEAVES))]
        return lambda lib, c, p, x: leaf(*c, p)
    kind = KINDS[rng.integers(len(KINDS))]
    n, level = int(rng.integers(0, 4)), rng.uniform(-1, 1)
    first = sequence(rng, depth - 1)
    if kind == "scan":
        return scanned(rng, first)
    if kind == "fori":
        return lambda lib, c, p, x: lib.fori_loop(0, n, lambda i, c: scaled(first(lib, c, p, x), 0.5 + 0.1 * i, 0.0), c)
    if kind == "while":
        test = lambda c: np.sum(c[0] ** 2) < 4.0
        return lambda lib, c, p, x: lib.while_loop(test, lambda c: scaled(first(lib, c, p, x), 1.3, 0.2), c, max_steps=n)
    if kind == "sequence":
        return first
    second, third = sequence(rng, depth - 1), sequence(rng, depth - 1)
    if kind == "cond":
        return lambda lib, c, p, x: lib.cond(c[2] > level, lambda c: first(lib, c, p, x), lambda c: second(lib, c, p, x), c)
    largest = lambda c: np.argmax(np.stack([c[2], c[0][0], c[1][0]]))
    return lambda lib, c, p, x: lib.switch(largest(c), [lambda f=f: f(lib, c, p, x) for f in (first, second, third)])


def scaled(c, factor, offset):
    return c[0] * factor + offset, c[1], c[2]


def scanned(rng, body):
    reverse, use, checkpoint = bool(rng.integers(2)), rng.integers(3), (None, None, 2, "binomial")[rng.integers(4)]

    def run(lib, c, p, x):
        def f(c, row):
            a, b, s = body(lib, c, p, row)
            return (a + row[0] * x[0], b, s), (a * row[0], s) if use else None

        c, ys = lib.scan(f, c, p["xs"][:3], reverse=reverse, checkpoint=checkpoint)
        return (c[0] + np.sum(ys[0], axis=0), c[1], c[2] + np.sum(ys[1]) * 0.1) if use == 2 else c

    return run


def drawn(seed):
    """A loss as a function of (the library, params, carry), and arguments."""
    rng = np.random.default_rng(seed)
    f = sequence(rng, int(rng.integers(1, 4)))
    p = {"w": rng.normal(size=2), "m": rng.normal(size=(2, 2)), "k": np.float64(rng.normal()), "xs": rng.normal(size=(4, 2))}
    c = (rng.normal(size=2), rng.normal(size=2), np.float64(rng.normal()))

    def loss(lib, p, c):
        a, b, s = f(lib, c, p, p["xs"][3])
        return np.sum(np.sin(a) * np.array([1.0, 2.0])) + np.sum(b) * 0.3 + s

    return loss, p, c


def check(seed, jit):
    loss, p, c = drawn(seed)
    plain, ours = (lambda p, c: loss(Loops, p, c)), (lambda p, c: loss(fnad, p, c))
    graph = fnad.make_graph(ours)(p, c)
    again = lambda p, c: evaluate(graph, fnad.tree.leaves((p, c)))[0]
    both = lambda f: fnad.value_and_grad(f, (0, 1))
    want = both(plain)(p, c)
    assert_trees_close(both(ours)(p, c), want)
    assert_trees_close(both(again)(p, c), want)
    if jit:
        assert_trees_close(fnad.jit(both(ours))(p, c), want)
        assert fnad.explain(both(ours))(p, c).hosts == []
    recorded = evaluate(fnad.make_graph(both(ours))(p, c), fnad.tree.leaves((p, c)))
    assert_trees_close(recorded, fnad.tree.leaves(want))

    t = fnad.tree.map(lambda x: x * 0.3 + 0.2, (p, c))
    forward_over_reverse = lambda f: fnad.jvp(fnad.grad(f, (0, 1)), (p, c), t)[1]
    reverse_over_forward = lambda f: fnad.grad(lambda *args: fnad.jvp(f, args, t)[1], (0, 1))(p, c)
    for second in (forward_over_reverse, reverse_over_forward):
        assert_trees_close(second(again), second(plain), atol=1e-8, rtol=1e-8)

    stacks = fnad.tree.map(lambda x: np.stack([x, x * 0.8, -x]), p)
    rows = [fnad.grad(plain)(fnad.tree.map(lambda x: x[i], stacks), c) for i in range(3)]  # noqa: B023
    want = fnad.tree.map(lambda *r: np.stack(r), *rows)
    with np.errstate(all="ignore"):
        assert_trees_close(fnad.vmap(fnad.grad(again), (0, None))(stacks, c), want, atol=1e-8, rtol=1e-8)
        summed = fnad.grad(lambda stacks: np.sum(fnad.vmap(again, (0, None))(stacks, c)))(stacks)
        assert_trees_close(summed, want, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("seed", range(24))
def test_random_nest(seed):
    check(seed, jit=seed % 4 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 200, 20))
def test_more_random_nests(start):
    for seed in range(start, start + 10):
        check(seed, jit=False)
